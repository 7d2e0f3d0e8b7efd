"""`AIOKafkaConsumer`, on `kafkaio.Consumer`."""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NoReturn, Self

import kafkaio
from kafkaio import TopicPartition
from kafkaio.aiokafka import errors
from kafkaio.aiokafka._options import check_loop, deprecated_loop, warn_unclosed
from kafkaio.aiokafka._pickling import restored
from kafkaio.aiokafka._translation import translated, translating
from kafkaio.aiokafka.abc import AbstractTokenProvider, ConsumerRebalanceListener
from kafkaio.aiokafka.client import AIOKafkaClient
from kafkaio.aiokafka.consumer._listening import Listening
from kafkaio.aiokafka.consumer._patterns import whole
from kafkaio.aiokafka.consumer._readers import Native, Readers
from kafkaio.aiokafka.consumer._settings import check_count, consumer_options
from kafkaio.aiokafka.consumer.subscription_state import (
    SubscriptionState,
    SubscriptionType,
)
from kafkaio.aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafkaio.aiokafka.coordinator.assignors.roundrobin import (
    RoundRobinPartitionAssignor,
)
from kafkaio.aiokafka.structs import (
    ConsumerRecord,
    OffsetAndMetadata,
    OffsetAndTimestamp,
)
from kafkaio.aiokafka.util import commit_structure_validate

__all__ = ["AIOKafkaConsumer"]

_log = logging.getLogger(__name__)
#: Most seconds of the commit that `stop` begins with.
_COMMITTING = 5.0


class _Coordinator:
    """The place of the consumer in its group, as libraries look at it."""

    def __init__(self, native: Native, group_id: str | None) -> None:
        self._native = native
        self.group_id = group_id

    @property
    def member_id(self) -> str:
        """The id that the group coordinator has given; empty without one."""
        if self.group_id is None:
            return ""
        return self._native.group_metadata.member_id

    @property
    def generation(self) -> int:
        """The generation of the group; -1 outside of one."""
        if self.group_id is None:
            return -1
        return self._native.group_metadata.generation


class AIOKafkaConsumer:
    """Reads records from Kafka, with the names of aiokafka.

    Nothing happens in the constructor. `start` connects and, with a ``group_id``, joins
    the group; `stop` has to be called in the end. ``async with`` does both.

    Any number of tasks may read at the same time. The records of a partition come in
    the order of their offsets. A read that is cancelled has taken nothing.

    Automatic commits commit what is finished: records whose successors were asked for.
    So a crash repeats records and skips none. `commit` without arguments commits
    everything that was handed out.

    A rebalance waits until the partitions to be given up are not worked on: until the
    next read, for ``max_poll_interval_ms`` at most.

    Args:
        topics: topics to subscribe to.
        loop: the event loop. Deprecated: the running one is used.
        bootstrap_servers: ``"host:port"``, several of these with commas, or a list.
        client_id: name that brokers see.
        group_id: the group to join and to commit offsets for; None for no group.
        group_instance_id: name of a static member (KIP-345).
        key_deserializer: turns the bytes of keys into objects; called for None, too.
        value_deserializer: turns the bytes of values into objects, likewise.
        fetch_max_wait_ms: how long a broker waits for ``fetch_min_bytes``.
        fetch_max_bytes: most bytes of an answer; a larger record is still returned.
        fetch_min_bytes: bytes that a broker waits for before it answers a fetch.
        max_partition_fetch_bytes: most bytes of one partition in an answer.
        request_timeout_ms: longest wait for an answer.
        retry_backoff_ms: first pause between retries.
        auto_offset_reset: where to begin without a valid offset: ``latest``,
            ``earliest``, or ``none`` to raise an error.
        enable_auto_commit: whether finished records are committed automatically.
        auto_commit_interval_ms: time between two automatic commits.
        check_crcs: whether the checksum of each batch is verified.
        metadata_max_age_ms: metadata is fetched again after this time.
        partition_assignment_strategy: classes of assignors, the preferred one first.
        max_poll_interval_ms: longest time between two reads: after it the consumer
            leaves the group.
        rebalance_timeout_ms: has no effect beyond a warning: a rebalance waits for
            ``max_poll_interval_ms``.
        session_timeout_ms: the group removes a member that sent no heartbeat for this
            long.
        heartbeat_interval_ms: time between two heartbeats.
        consumer_timeout_ms: has no effect: fetches do not wait for each other.
        max_poll_records: most records that `getmany` returns; None for 10,000.
        ssl_context: TLS settings, needed with ``SSL`` and ``SASL_SSL``.
        security_protocol: ``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``.
        api_version: deprecated; has no effect.
        exclude_internal_topics: whether a pattern matches none of Kafka's own topics.
        connections_max_idle_ms: an unused connection is closed after this time; None
            for never.
        isolation_level: ``read_committed`` skips records of aborted transactions, and
            waits for open ones; ``read_uncommitted`` does not.
        sasl_mechanism: ``PLAIN``, ``SCRAM-SHA-256``, ``SCRAM-SHA-512``, ``GSSAPI`` or
            ``OAUTHBEARER``.
        sasl_plain_password: password for PLAIN and SCRAM.
        sasl_plain_username: user for PLAIN and SCRAM.
        sasl_kerberos_service_name: name of the brokers' principal, for GSSAPI.
        sasl_kerberos_domain_name: not supported.
        sasl_oauth_token_provider: returns the tokens, for OAUTHBEARER.
        client_rack: rack of this client, to fetch from a near replica (KIP-392).

    Raises:
        ValueError: an option is impossible, or not supported.
        TypeError: the topics are not names.
        RuntimeError: no event loop is running, and none was given.
    """

    # None until the constructor has succeeded, for `__del__`. Others read it, too.
    _closed: bool | None = None
    _source_traceback: traceback.StackSummary | None = None

    def __init__(  # noqa: PLR0913 - the options of aiokafka
        self,
        *topics: str,
        loop: asyncio.AbstractEventLoop | None = None,
        bootstrap_servers: str | Sequence[str] = "localhost",
        client_id: str = "aiokafka-0.14.0",
        group_id: str | None = None,
        group_instance_id: str | None = None,
        key_deserializer: Callable[..., object] | None = None,
        value_deserializer: Callable[..., object] | None = None,
        fetch_max_wait_ms: int = 500,
        fetch_max_bytes: int = 52_428_800,
        fetch_min_bytes: int = 1,
        max_partition_fetch_bytes: int = 1_048_576,
        request_timeout_ms: int = 40_000,
        retry_backoff_ms: int = 100,
        auto_offset_reset: str = "latest",
        enable_auto_commit: bool = True,
        auto_commit_interval_ms: int = 5_000,
        check_crcs: bool = True,
        metadata_max_age_ms: int = 300_000,
        partition_assignment_strategy: Sequence[type[AbstractPartitionAssignor]] = (
            RoundRobinPartitionAssignor,
        ),
        max_poll_interval_ms: int = 300_000,
        rebalance_timeout_ms: int | None = None,
        session_timeout_ms: int = 10_000,
        heartbeat_interval_ms: int = 3_000,
        consumer_timeout_ms: int = 200,
        max_poll_records: int | None = None,
        ssl_context: ssl.SSLContext | None = None,
        security_protocol: str = "PLAINTEXT",
        api_version: str | None = None,
        exclude_internal_topics: bool = True,
        connections_max_idle_ms: int | None = 540_000,
        isolation_level: str = "read_uncommitted",
        sasl_mechanism: str = "PLAIN",
        sasl_plain_password: str | None = None,
        sasl_plain_username: str | None = None,
        sasl_kerberos_service_name: str = "kafka",
        sasl_kerberos_domain_name: str | None = None,
        sasl_oauth_token_provider: AbstractTokenProvider | None = None,
        client_rack: str | None = None,
    ) -> None:
        self._loop = deprecated_loop(loop)
        if self._loop.get_debug():
            self._source_traceback = traceback.extract_stack(sys._getframe(1))
        self._options = consumer_options(
            auto_commit_interval_ms=auto_commit_interval_ms,
            auto_offset_reset=auto_offset_reset,
            check_crcs=check_crcs,
            enable_auto_commit=enable_auto_commit,
            exclude_internal_topics=exclude_internal_topics,
            fetch_max_bytes=fetch_max_bytes,
            fetch_max_wait_ms=fetch_max_wait_ms,
            fetch_min_bytes=fetch_min_bytes,
            group_id=group_id,
            group_instance_id=group_instance_id,
            heartbeat_interval_ms=heartbeat_interval_ms,
            isolation_level=isolation_level,
            key_deserializer=key_deserializer,
            max_partition_fetch_bytes=max_partition_fetch_bytes,
            max_poll_interval_ms=max_poll_interval_ms,
            max_poll_records=max_poll_records,
            partition_assignment_strategy=partition_assignment_strategy,
            session_timeout_ms=session_timeout_ms,
            value_deserializer=value_deserializer,
        )
        if rebalance_timeout_ms not in (None, max_poll_interval_ms):
            warnings.warn(
                "rebalance_timeout_ms has no effect: a rebalance waits for this "
                f"consumer for max_poll_interval_ms={max_poll_interval_ms}",
                stacklevel=2,
            )
        self._client = AIOKafkaClient(
            loop=self._loop,
            bootstrap_servers=bootstrap_servers,
            client_id=client_id,
            metadata_max_age_ms=metadata_max_age_ms,
            request_timeout_ms=request_timeout_ms,
            api_version=api_version,
            retry_backoff_ms=retry_backoff_ms,
            security_protocol=security_protocol,
            ssl_context=ssl_context,
            connections_max_idle_ms=connections_max_idle_ms,
            sasl_mechanism=sasl_mechanism,
            sasl_plain_username=sasl_plain_username,
            sasl_plain_password=sasl_plain_password,
            sasl_kerberos_service_name=sasl_kerberos_service_name,
            sasl_kerberos_domain_name=sasl_kerberos_domain_name,
            sasl_oauth_token_provider=sasl_oauth_token_provider,
        )
        # aiokafka's client has no such option.
        if client_rack is not None:
            self._client._options["client_rack"] = client_rack
        self._client._options["default_api_timeout_ms"] = request_timeout_ms
        # Instrumentations read it.
        self._group_id = group_id
        self._group_instance_id = group_instance_id
        self._timeout = request_timeout_ms / 1000
        self._most = self._options["max_poll_records"]
        self._excludes_internal = exclude_internal_topics
        self._auto_commits = enable_auto_commit and group_id is not None
        self._subscription = SubscriptionState(self._assigned_now, self._matching)
        self._listening = Listening(
            self._subscription, self._changed, has_group=group_id is not None
        )
        self._native: Native | None = None
        self._readers: Readers | None = None
        self._coordinator: _Coordinator | None = None
        # Set, and replaced, when something else is assigned or to be read.
        self._change = asyncio.Event()
        self._fixed = frozenset[TopicPartition]()
        # The task that was handed records last, and whether several were at a time.
        self._taker: asyncio.Task[Any] | None = None
        self._has_several = False
        self._closed = False
        if topics:
            self._subscription.subscribe(_names(topics), None)

    # Warns as aiokafka does. The parts end by themselves when they are collected.
    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if self._closed is False:
            warn_unclosed(self, "consumer", self._loop, self._source_traceback, _warn)

    # ---- life ------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect, join the group if there is one, and find where to begin.

        Waits until each topic that was subscribed to exists, and until the group has
        assigned partitions and their positions are known. So records that are written
        after it are read, also with ``auto_offset_reset="latest"``.

        If the call fails or is cancelled, it may be made again.

        Raises:
            KafkaConnectionError: no bootstrap server answered in time, or they refuse
                the login: then it is an AuthenticationFailedError, too.
            UnknownTopicOrPartitionError: a topic does not exist after
                ``request_timeout_ms``.
            TopicAuthorizationFailedError: the principal may not describe a topic.
            KafkaError: the group refuses the member.
            ConsumerStoppedError: the consumer was stopped.
            AssertionError: it was started before.
        """
        check_loop(self._loop)
        if self._closed:
            raise errors.ConsumerStoppedError("the consumer was stopped")
        if self._native is not None:
            raise AssertionError("Did you call `start` twice?")
        await self._client.bootstrap()
        for topic in (
            () if self._subscription.subscribed_pattern else self.subscription()
        ):
            await self._client._wait_on_metadata(topic)
        client = self._client.native
        assert client is not None
        native = Native(
            client,
            on_assigned=self._listening.assigned,
            on_revoked=self._listening.revoked,
            **self._options,
        )
        # Listeners use the consumer while it starts.
        self._native = native
        self._coordinator = _Coordinator(native, self._group_id)
        self._readers = Readers(native, self._loop.time)
        try:
            self._select()
            with translating(closed=errors.ConsumerStoppedError):
                await native.start()
        except BaseException:
            self._native = self._readers = self._coordinator = None
            raise
        await self._report_none()
        self._changed()

    async def _report_none(self) -> None:
        # kafkaio reports no assignment of nothing, and aiokafka does.
        subscription = self._subscription.subscription
        if subscription is not None and not subscription.is_assigned:
            await self._listening.assigned(())

    async def stop(self) -> None:
        """Commit, leave the group and disconnect. May be called again.

        With ``enable_auto_commit``, everything that was handed out is committed if the
        task that has read calls this, and no exception is being handled: then it is
        done with it. Else records that may still be worked on are left out.

        Reads that wait end: `getone` raises ConsumerStoppedError, `getmany` returns
        nothing, and ``async for`` ends. The listener is not called.

        If the call is cancelled, everything ends all the same, without a commit.

        Raises:
            IllegalStateError: it is called by a listener, and would wait for that.
        """
        await self._stop(is_done=sys.exc_info()[1] is None)

    async def _stop(self, *, is_done: bool) -> None:
        if self._closed:
            return
        self._closed = self._listening.is_stopping = True
        native = self._native
        try:
            if native is not None:
                if is_done and self._auto_commits and self._has_taken_all():
                    await self._commit_all(native)
                with translating():
                    await native.close()
        except errors.IllegalStateError:
            self._closed = self._listening.is_stopping = False
            raise
        finally:
            if self._closed:
                self._changed()
                self._taker = None
                await self._client.close()

    def _has_taken_all(self) -> bool:
        return not self._has_several and self._taker is asyncio.current_task()

    async def _commit_all(self, native: Native) -> None:
        try:
            await native.commit(timeout=min(_COMMITTING, self._timeout))
        except kafkaio.KafkaError as error:
            _log.warning("the commit of a consumer that stops failed: %s", error)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        await self._stop(is_done=exc is None)

    # ---- what is read ----------------------------------------------------------------

    def subscribe(
        self,
        topics: Collection[str] = (),
        pattern: str | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Subscribe to topics, or to a pattern, instead of those before.

        May be called before `start`. With a ``group_id``, the group divides the
        partitions among its members, and the listener is called for each rebalance.

        Args:
            topics: a list, tuple or set of names.
            pattern: regular expression; matches topics whose names begin with a match.
            listener: called before partitions are given up, and after partitions were
                assigned. It replaces the listener before.

        Raises:
            TypeError: both topics and a pattern are given, or neither; or the listener
                is not a `ConsumerRebalanceListener`.
            ValueError: the pattern is not a regular expression.
            IllegalStateError: partitions are assigned, or the subscription is of the
                other kind: `unsubscribe` first.
        """
        if not (topics or pattern):
            raise TypeError("You should provide either `topics` or `pattern`")
        if topics and pattern:
            raise TypeError("You can't provide both `topics` and `pattern`")
        if listener is not None and not isinstance(listener, ConsumerRebalanceListener):
            raise TypeError(
                "listener should be an instance of ConsumerRebalanceListener"
            )
        if pattern is not None:
            self._subscription.subscribe_pattern(_compiled(pattern), listener)
        else:
            self._subscription.subscribe(_names(topics), listener)
        self._select()

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions, instead of those before.

        May be called before `start`.

        Args:
            partitions: a list, tuple or set of partitions.

        Raises:
            IllegalStateError: topics or a pattern are subscribed to.
            TypeError: they are not partitions.
        """
        partitions = [*partitions]
        _check_partitions(partitions)
        self._subscription.check(SubscriptionType.USER_ASSIGNED)
        self._fixed = frozenset(partitions)
        self._subscription.assign_from_user(partitions)
        self._select()

    def unsubscribe(self) -> None:
        """Stop reading: end the subscription, or give up the fixed partitions.

        The group is left in the background. The listener is not called.
        """
        self._subscription.unsubscribe()
        self._fixed = frozenset()
        # A consumer that was stopped has left already.
        if self._native is not None and not self._closed:
            with translating():
                self._native.unsubscribe()
        self._changed()

    def _select(self) -> None:
        native, state = self._native, self._subscription
        if native is not None and state.subscription is not None:
            pattern = state.subscribed_pattern
            with translating():
                if not state.partitions_auto_assigned():
                    native.assign(self._fixed)
                else:
                    wanted = state.topics if pattern is None else whole(pattern)
                    is_same = native.subscription == wanted
                    native.subscribe(wanted)
                    if is_same and self._group_id is not None:
                        # aiokafka joins the group anew, and calls the new listener.
                        native.enforce_rebalance("subscribed again")
        self._changed()

    def subscription(self) -> frozenset[str]:
        """Return the topics that are read; with a pattern those that match it."""
        return self._subscription.topics

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that this consumer has now."""
        return self._subscription.assigned_partitions()

    def _assigned_now(self) -> frozenset[TopicPartition]:
        if not self._subscription.partitions_auto_assigned():
            return self._fixed
        return frozenset() if self._native is None else self._native.assignment

    def _matching(self, pattern: re.Pattern[str]) -> frozenset[str]:
        known = self._client.cluster.topics(self._excludes_internal)
        found = {name for name in known if pattern.match(name)}
        return frozenset(found.union(tp.topic for tp in self._assigned_now()))

    def _changed(self) -> None:
        """Wake reads: something else is assigned, or to be read."""
        change, self._change = self._change, asyncio.Event()
        change.set()
        if self._readers is not None:
            self._readers.changed()

    async def _wait_for_change(self, until: float | None) -> bool:
        """Wait until the assignment has changed; return whether it has."""
        try:
            async with asyncio.timeout_at(until):
                await self._change.wait()
        except TimeoutError:
            return False
        return True

    # ---- reading ---------------------------------------------------------------------

    async def getone(self, *partitions: TopicPartition) -> ConsumerRecord[Any, Any]:
        """Return the next record; wait for it as long as it takes.

        If the call is cancelled, no record was taken.

        Args:
            partitions: the partitions to read; all that are assigned by default. For
                one that is not assigned, it waits until it is.

        Raises:
            ConsumerStoppedError: the consumer was stopped, before or meanwhile.
            NoOffsetForPartitionError: a partition has no committed offset, and
                ``auto_offset_reset`` is ``none``.
            OffsetOutOfRangeError: its position is outside the log, likewise.
            TopicAuthorizationFailedError: the principal may not read a topic.
            RecordTooLargeError: a batch is larger than kafkaio accepts;
                ``seek(tp, error.next_offset)`` goes past it.
            CorruptRecordException: a batch fails its checks.
            IllegalStateError: the consumer was not started.
            Exception: a deserializer raised it.
        """
        if partitions or self._closed or self._readers is None:
            self._check_reading(partitions)
        try:
            record: Any = None
            if not partitions and self._subscription.subscription is not None:
                assert self._readers is not None
                try:
                    record = await self._readers.read_one()
                except kafkaio.UsageError:
                    record = None  # nothing is read any more: `_read` waits
            while record is None:
                found = (await self._read(partitions, 1, None)).records
                record = found[0] if found else None
        except kafkaio.KafkaError as error:
            self._raise(error)
        if self._taker is not asyncio.current_task():
            self._taken()
        return record  # type: ignore[no-any-return]  # see ConsumerRecord

    async def getmany(
        self,
        *partitions: TopicPartition,
        timeout_ms: int = 0,
        max_records: int | None = None,
    ) -> dict[TopicPartition, list[ConsumerRecord[Any, Any]]]:
        """Return the records that are there; wait only if there are none.

        If the call is cancelled, no record was taken.

        Args:
            partitions: the partitions to read; all that are assigned by default.
            timeout_ms: milliseconds to wait if there are no records.
            max_records: most records; ``max_poll_records`` by default.

        Returns:
            The records by partition. Nothing when time is up, and if the consumer is
            stopped meanwhile.

        Raises:
            ValueError: ``max_records`` is not a positive number.
            ConsumerStoppedError: the consumer was stopped before.
            KafkaError: as `getone`.
        """
        self._check_reading(partitions)
        check_count("`max_records` must be a positive Integer", max_records)
        until = self._loop.time() + max(0, timeout_ms) / 1000
        try:
            poll = await self._read(partitions, max_records or self._most, until)
        except kafkaio.ClosedError as error:
            if self._closed:
                return {}
            self._raise(error)
        except kafkaio.KafkaError as error:
            self._raise(error)
        if poll.records:
            self._taken()
        return poll.by_partition  # type: ignore[return-value]  # see ConsumerRecord

    def __aiter__(self) -> Self:
        """Return this object. The iteration ends when `stop` is called.

        Raises:
            ConsumerStoppedError: it was called already.
        """
        if self._closed:
            raise errors.ConsumerStoppedError("the consumer was stopped")
        return self

    async def __anext__(self) -> ConsumerRecord[Any, Any]:
        """Return the next record, as `getone` does."""
        try:
            return await self.getone()
        except errors.ConsumerStoppedError:
            raise StopAsyncIteration from None

    def _check_reading(self, partitions: tuple[TopicPartition, ...]) -> None:
        if self._closed:
            raise errors.ConsumerStoppedError("the consumer was stopped")
        if self._native is None:
            raise errors.IllegalStateError("the consumer is not started")
        if not all(isinstance(each, TopicPartition) for each in partitions):
            raise AssertionError("partitions must be TopicPartition namedtuples")

    async def _read(
        self, partitions: tuple[TopicPartition, ...], limit: int, until: float | None
    ) -> kafkaio.Poll[Any, Any]:
        """Take records; wait for an assignment, too, until time is up."""
        native, readers = self._native, self._readers
        assert native is not None
        assert readers is not None
        wanted = frozenset(partitions) if partitions else None
        while True:
            if self._closed:
                raise errors.ConsumerStoppedError("the consumer was stopped")
            among, change = self._readable(wanted), self._change
            if among is not None and not among:
                if not await self._wait_for_change(until):
                    return kafkaio.Poll([])
                continue
            try:
                poll = await readers.read(among, limit, until)
            except kafkaio.UsageError:
                if self._change is change:
                    raise
                continue  # it was given up meanwhile
            if poll.records or (until is not None and self._loop.time() >= until):
                return poll

    def _readable(
        self, wanted: frozenset[TopicPartition] | None
    ) -> frozenset[TopicPartition] | None:
        """Return the partitions to read: empty for none now, None for all."""
        state = self._subscription
        if state.subscription is None:
            return frozenset()
        if wanted is not None:
            return wanted & self._assigned_now()
        if not state.partitions_auto_assigned() and not self._fixed:
            return frozenset()
        return None

    def _taken(self) -> None:
        task = asyncio.current_task()
        if self._taker is not task:
            if self._taker is not None and not self._taker.done():
                self._has_several = True
            self._taker = task

    def _raise(self, error: kafkaio.KafkaError) -> NoReturn:
        if isinstance(error, kafkaio.OffsetOutOfRange) and error.position < 0:
            kind = errors.NoOffsetForPartitionError
            raise restored(kind, error.args, vars(error)) from error
        known = translated(error, closed=errors.ConsumerStoppedError)
        if known is error:
            raise error
        raise known from (error if known is not error.__cause__ else known.__cause__)

    # ---- positions -------------------------------------------------------------------

    def _started(self) -> Native:
        if self._native is None:
            raise errors.IllegalStateError("the consumer is not started")
        return self._native

    def _chosen(self, partitions: tuple[TopicPartition, ...]) -> list[TopicPartition]:
        _check_partitions(partitions)
        assigned = self._assigned_now()
        if not partitions and not assigned:
            raise AssertionError("No partitions are currently assigned")
        if others := {*partitions} - assigned:
            raise errors.IllegalStateError(f"Partitions {others} are not assigned")
        return [*(partitions or assigned)]

    def _check_assigned(self, partition: TopicPartition) -> Native:
        if not self._subscription.is_assigned(partition):
            raise AssertionError("Partition is not assigned")
        return self._started()

    async def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record to be handed out, once it is known.

        Raises:
            IllegalStateError: the partition is not assigned.
            KafkaTimeoutError: it is not known after ``request_timeout_ms``.
            NoOffsetForPartitionError: there is none, and ``auto_offset_reset`` is
                ``none``.
        """
        native = self._started()
        until = self._loop.time() + self._timeout
        is_assigned = self._subscription.is_assigned(partition)
        while is_assigned:
            try:
                return await native.position(
                    partition, timeout=max(0.0, until - self._loop.time())
                )
            except kafkaio.UsageError:
                # A rebalance took it, and perhaps gives it back.
                is_assigned = await self._is_assigned_before(partition, until)
            except kafkaio.RequestTimeout as error:
                raise errors.KafkaTimeoutError(str(error)) from error
            except kafkaio.KafkaError as error:
                self._raise(error)
        raise errors.IllegalStateError(f"Partition {partition} is not assigned")

    async def _is_assigned_before(
        self, partition: TopicPartition, until: float
    ) -> bool:
        """Wait until a partition is assigned; False when time is up."""
        state = self._subscription
        while state.subscription is not None:
            if state.is_assigned(partition):
                return True
            if not await self._wait_for_change(until):
                return False
        return False

    def highwater(self, partition: TopicPartition) -> int | None:
        """Return the offset after the last record, as the last fetch reported it.

        None before the first fetch.

        Raises:
            AssertionError: the partition is not assigned.
        """
        return self._check_assigned(partition).high_watermark(partition)

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        """Return the first offset of an open transaction, as the last fetch reported.

        None before the first fetch; with ``read_uncommitted`` brokers may say -1.

        Raises:
            AssertionError: the partition is not assigned.
        """
        native = self._check_assigned(partition)
        if native.high_watermark(partition) is None:
            return None
        stable = native.last_stable_offset(partition)
        return -1 if stable is None else stable

    def last_poll_timestamp(self, partition: TopicPartition) -> int | None:
        """Refuse: kafkaio does not keep the time of the last fetch.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "last_poll_timestamp: kafkaio keeps no time of the last fetch of "
            f"{partition}; consumer.end_offsets() asks the leader"
        )

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read a partition from an offset.

        Raises:
            ValueError: the offset is negative, or not an integer.
            IllegalStateError: the partition is not assigned.
        """
        _check_offset(offset)
        with translating():
            self._started().seek(partition, offset)

    async def seek_to_beginning(self, *partitions: TopicPartition) -> bool:
        """Read partitions from the first record that the log has.

        Args:
            partitions: assigned partitions; all that are assigned by default.

        Returns:
            Whether the positions were found within ``request_timeout_ms``.

        Raises:
            IllegalStateError: a partition is not assigned.
            TypeError: it is not a partition.
            AssertionError: none is assigned.
        """
        chosen = self._chosen(partitions)
        with translating():
            self._started().seek_to_beginning(*chosen)
        return await self._found(chosen)

    async def seek_to_end(self, *partitions: TopicPartition) -> bool:
        """Read partitions from after the last record; otherwise `seek_to_beginning`.

        Args:
            partitions: assigned partitions; all that are assigned by default.

        Returns:
            Whether the positions were found within ``request_timeout_ms``.
        """
        chosen = self._chosen(partitions)
        with translating():
            self._started().seek_to_end(*chosen)
        return await self._found(chosen)

    async def _found(self, partitions: list[TopicPartition]) -> bool:
        native, until = self._started(), self._loop.time() + self._timeout
        try:
            for tp in partitions:
                await native.position(tp, timeout=max(0.0, until - self._loop.time()))
        except (kafkaio.RequestTimeout, kafkaio.UsageError):
            return False  # not in time, or not assigned any more
        except kafkaio.KafkaError as error:
            self._raise(error)
        return True

    async def seek_to_committed(
        self, *partitions: TopicPartition
    ) -> dict[TopicPartition, int | None]:
        """Read partitions from their committed offsets.

        A partition without one stays where it is.

        Args:
            partitions: assigned partitions; all that are assigned by default.

        Returns:
            The committed offsets; None where there is none.

        Raises:
            IllegalStateError: a partition is not assigned.
            IllegalOperation: the consumer has no group.
            TypeError: it is not a partition.
            AssertionError: none is assigned.
        """
        chosen = self._chosen(partitions)
        found = await self._committed(chosen)
        for tp, offset in found.items():
            if offset is not None:
                self.seek(tp, offset)
        return found

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out no records of these partitions until `resume`.

        Raises:
            TypeError: it is not a partition.
            IllegalStateError: it is not assigned.
        """
        _check_partitions(partitions)
        with translating():
            self._started().pause(*partitions)

    def paused(self) -> set[TopicPartition]:
        """Return the partitions that are paused."""
        return set() if self._native is None else {*self._native.paused}

    def resume(self, *partitions: TopicPartition) -> None:
        """End a pause.

        Raises:
            TypeError: it is not a partition.
            IllegalStateError: it is not assigned.
        """
        _check_partitions(partitions)
        with translating():
            self._started().resume(*partitions)

    # ---- committed offsets -----------------------------------------------------------

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | tuple[int, str] | OffsetAndMetadata]
        | None = None,
    ) -> None:
        """Commit offsets for the group.

        If the call is cancelled, they may be committed all the same.

        Args:
            offsets: offsets of the next records to read, by partition, with metadata or
                without. By default everything that was handed out.

        Raises:
            CommitFailedError: the group has moved on without this member.
            IllegalOperation: the consumer has no group.
            IllegalStateError: nothing is subscribed to, or a partition is not assigned.
            ValueError: the offsets have another form.
            TypeError: a key is not a partition, or metadata is not text.
            KafkaError: the coordinator refused, or did not answer in time.
        """
        if self._group_id is None:
            raise errors.IllegalOperation("Requires group_id")
        subscription = self._subscription.subscription
        if subscription is None:
            raise errors.IllegalStateError("Not subscribed to any topics")
        if (assignment := subscription.assignment) is None:
            raise errors.IllegalStateError("No partitions assigned")
        what = None
        if offsets is not None:
            given = commit_structure_validate(offsets)
            for tp in given:
                if tp not in assignment.tps:
                    raise errors.IllegalStateError(f"Partition {tp} is not assigned")
            what = {
                tp: kafkaio.OffsetAndMetadata(each.offset, each.metadata)
                for tp, each in given.items()
            }
        with translating(closed=errors.ConsumerStoppedError):
            await self._started().commit(what)

    async def committed(self, partition: TopicPartition) -> int | None:
        """Return the committed offset of a partition; None if there is none.

        Args:
            partition: any partition.

        Raises:
            IllegalOperation: the consumer has no group.
            KafkaError: the coordinator refused, or did not answer in time.
        """
        return (await self._committed([partition]))[partition]

    async def _committed(
        self, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        if self._group_id is None:
            raise errors.IllegalOperation("Requires group_id")
        with translating(closed=errors.ConsumerStoppedError):
            found = await self._started().committed(partitions)
        return {tp: None if at is None else at.offset for tp, at in found.items()}

    # ---- the cluster -----------------------------------------------------------------

    async def topics(self) -> set[str]:
        """Return the names of all topics that the principal may see; asks a broker.

        Raises:
            KafkaError: no broker answered within ``request_timeout_ms``.
        """
        return (await self._client.fetch_all_metadata()).topics()

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the numbers of a topic's partitions; None if they are not known."""
        return self._client.cluster.partitions_for_topic(topic)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return each partition's first offset whose record is not older than a time.

        Args:
            timestamps: milliseconds since the Unix epoch, by partition.

        Returns:
            An entry for each partition; None if every record is older.

        Raises:
            ValueError: a time is negative.
            KafkaTimeoutError: no answer came within ``request_timeout_ms``.
        """
        for tp, time in timestamps.items():
            if time < 0:
                raise ValueError(
                    f"The target time for partition {tp} is {time}. The target time "
                    "cannot be negative."
                )
        native = self._started()
        with _asking():
            found = await native.offsets_for_times(
                {tp: int(time) for tp, time in timestamps.items()},
                timeout=self._timeout,
            )
        return {
            tp: None if at is None else OffsetAndTimestamp(at.offset, at.timestamp)
            for tp, at in found.items()
        }

    async def beginning_offsets(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return the offset of the first record of each partition.

        Args:
            partitions: any partitions.

        Raises:
            KafkaTimeoutError: no answer came within ``request_timeout_ms``.
        """
        native = self._started()
        with _asking():
            return await native.beginning_offsets([*partitions], timeout=self._timeout)

    async def end_offsets(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each partition.

        Args:
            partitions: any partitions.

        Raises:
            KafkaTimeoutError: no answer came within ``request_timeout_ms``.
        """
        native = self._started()
        with _asking():
            return await native.end_offsets([*partitions], timeout=self._timeout)


@contextmanager
def _asking() -> Iterator[None]:
    """Raise the errors of a look-up of offsets: aiokafka asks until time is up."""
    try:
        yield
    except (kafkaio.RequestTimeout, kafkaio.UnknownTopicOrPartition) as error:
        raise errors.KafkaTimeoutError(str(error)) from error
    except kafkaio.KafkaError as error:
        raise translated(error, closed=errors.ConsumerStoppedError) from error


def _check_offset(offset: object) -> None:
    if not isinstance(offset, int) or offset < 0:
        raise ValueError("Offset must be a positive integer")


def _names(topics: object) -> frozenset[str]:
    if not isinstance(topics, tuple | set | frozenset | list):
        raise TypeError("Topics should be list of strings")
    return frozenset(topics)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a valid pattern: {error}") from error


def _check_partitions(partitions: Collection[object]) -> None:
    if not all(isinstance(each, TopicPartition) for each in partitions):
        raise TypeError("partitions must be TopicPartition namedtuples")
