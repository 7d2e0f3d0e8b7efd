"""Committed offsets: written in order, read when they are stable.

A commit is fenced on both sides. The coordinator refuses the member ids and the
generations of the past, but within the current generation it accepts a commit of any
partition, one that has moved to another member too. So each commit remembers the
numbers of the assignments that it is for, and is checked against those in force each
time before it is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Protocol

import anyio

from kafkaio._machines.backoff import Backoff
from kafkaio._machines.reactions import Step, reaction
from kafkaio._net.lane import Lane
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.observer import Observer
from kafkaio.config import ConsumerConfig
from kafkaio.consumer.group.offsets import (
    MAX_VERSION,
    Fetched,
    commit_codes,
    commit_request,
    fetch_request,
    fetched,
)
from kafkaio.consumer.group.rpc import GroupClient, GroupRpc
from kafkaio.consumer.stores import InKafka, bound, store_errors
from kafkaio.errors import (
    CommitFailed,
    KafkaError,
    PartitionLost,
    RebalanceInProgress,
    RequestTimeout,
    UnsupportedVersion,
    UsageError,
)
from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.broker_errors import broker_error
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.messages.offset_commit import OffsetCommitResponse
from kafkaio.protocol.messages.offset_fetch import OffsetFetchRequest
from kafkaio.types import (
    GroupMetadata,
    OffsetAndMetadata,
    OffsetStore,
    TopicPartition,
)

__all__ = ["CommitMember", "OffsetCommitter"]

_Offsets = Mapping[TopicPartition, OffsetAndMetadata]
_RESETS = frozenset({Step.RESET_GENERATION, Step.RESET_MEMBER})
_STALE = _RESETS | {Step.REFRESH_MEMBER}


class CommitMember(Protocol):
    """The membership that commits are made under."""

    @property
    def is_subscribed(self) -> bool:
        """Whether a group decides what may be committed."""
        ...

    @property
    def committable(self) -> Mapping[TopicPartition, int]:
        """What may be committed now, with numbers that no later claim has."""
        ...

    @property
    def uses_epochs(self) -> bool:
        """Whether look-ups are fenced, too (KIP-848)."""
        ...

    @property
    def is_joining(self) -> bool:
        """Whether the answer to a JoinGroup will tell the generation."""
        ...

    def commit_refused(self, code: int, identity: GroupMetadata) -> None:
        """The coordinator does not accept us as that member."""
        ...


class OffsetCommitter:
    """Commits and fetches the offsets of one group.

    One commit is in flight at a time, and they take effect in the order of the calls;
    but nothing calls back what is under way on a connection that breaks. If the broker
    still reads that, after the next commit came by another, it sets the offset back.
    Works without a membership too, for partitions assigned by hand.
    """

    def __init__(
        self,
        client: GroupClient,
        config: ConsumerConfig,
        identity: Callable[[], GroupMetadata],
    ) -> None:
        if config.group_id is None:
            raise UsageError("a group_id is needed to commit offsets")
        self._rpc = GroupRpc(client, config.group_id)
        self._observer = client.observer
        self._identity = identity
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._request_timeout = config.request_timeout_ms / 1000
        self._store = config.offset_store
        self._member: CommitMember | None = None
        self._turn = asyncio.Lock()

    def attach(self, member: CommitMember) -> None:
        """From now on commit only what that member owns, and tell it of refusals."""
        self._member = member

    async def commit(self, offsets: _Offsets, *, timeout: float) -> None:  # noqa: ASYNC109
        """Commit, after all commits called for before.

        If the call is cancelled, the commit may still take effect, but not after a
        later one, unless its connection has broken.

        Args:
            offsets: offsets of the next records to read.
            timeout: seconds; what may pass is tried again until then.

        Raises:
            PartitionLost: one of the partitions is not ours, or not any more; nothing
                of it is committed.
            CommitFailed: the group went on without us.
            OffsetStoreError: the ``offset_store`` failed.
            RebalanceInProgress: the group is still rebalancing when time is up.
            RequestTimeout: the coordinator did not acknowledge it in time.
            BrokerError: it was refused for another reason.
            UsageError: an offset is negative.
        """
        for tp, at in offsets.items():
            if at.offset < 0:  # a broker would take it, and have none from then on
                raise UsageError(f"{tp.topic}-{tp.partition} has no offset {at.offset}")
        if not offsets:
            return
        numbers = self._numbers(offsets)
        attempts = _Attempts(f"a commit to group {self._rpc.group_id!r}", timeout)
        with anyio.CancelScope(deadline=attempts.deadline) as waiting:
            await self._turn.acquire()
        if waiting.cancelled_caught:
            raise attempts.expired()
        try:
            if self._store is None:
                await self._commit_in_kafka(offsets, numbers, attempts)
            else:
                await self._commit_in_store(self._store, offsets, numbers, attempts)
        finally:
            self._turn.release()

    async def fetch(
        self,
        partitions: Collection[TopicPartition] | None,
        *,
        timeout: float,  # noqa: ASYNC109
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The committed offsets, once no open transaction can change them.

        Args:
            partitions: which ones; None for all that the group has.
            timeout: seconds; what may pass is tried again until then.

        Returns:
            An entry for each partition asked for: None where nothing is committed.

        Raises:
            RequestTimeout: there was no answer in time, or offsets were not stable.
            BrokerError: it was refused.
            UnsupportedVersion: the broker cannot be asked for all.
            OffsetStoreError: the ``offset_store`` failed.
            UsageError: an ``offset_store`` cannot be asked for all.
        """
        wanted = None if partitions is None else frozenset(partitions)
        if wanted is not None and not wanted:
            return {}
        attempts = _Attempts(
            f"the look-up of offsets of group {self._rpc.group_id!r}", timeout
        )
        if self._store is not None:
            return await self._fetch_from_store(self._store, wanted, attempts)
        return await self._fetch_from_kafka(wanted, attempts)

    # ---- an offset store -------------------------------------------------------------

    async def _commit_in_store(
        self,
        store: OffsetStore,
        offsets: _Offsets,
        numbers: Mapping[TopicPartition, int] | None,
        attempts: _Attempts,
    ) -> None:
        self._check(numbers)
        kafka = self._in_kafka(numbers, attempts)
        with (
            anyio.CancelScope(deadline=attempts.deadline) as writing,
            store_errors(store, "write"),
        ):
            await bound(store, kafka).commit(self._identity(), dict(offsets))
        if writing.cancelled_caught:
            raise attempts.expired()
        self._observer.offsets_committed(dict(offsets))

    async def _fetch_from_store(
        self,
        store: OffsetStore,
        wanted: frozenset[TopicPartition] | None,
        attempts: _Attempts,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        if wanted is None:
            raise UsageError(f"{store!r} must be asked for partitions by name")
        kafka = self._in_kafka(None, attempts)
        with (
            anyio.CancelScope(deadline=attempts.deadline) as reading,
            store_errors(store, "read"),
        ):
            found = await bound(store, kafka).load(self._identity(), wanted)
        if reading.cancelled_caught:
            raise attempts.expired()
        return {tp: found.get(tp) for tp in sorted(wanted)}

    def _in_kafka(
        self, numbers: Mapping[TopicPartition, int] | None, attempts: _Attempts
    ) -> InKafka:
        return InKafka(
            partial(self._fetch_from_kafka, attempts=attempts),
            partial(self._commit_in_kafka, numbers=numbers, attempts=attempts),
        )

    # ---- Kafka -----------------------------------------------------------------------

    async def _fetch_from_kafka(
        self, wanted: frozenset[TopicPartition] | None, attempts: _Attempts
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        while True:
            found, error = Fetched(), None
            identity = self._asking()
            try:
                found = await self._fetch_once(identity, wanted, attempts)
            except KafkaError as failure:
                if not failure.retriable:
                    raise
                error = failure
            error = error or self._fetch_error(found, identity)
            if error is None:
                result = dict.fromkeys(wanted or ()) | found.offsets
                return {tp: result[tp] for tp in sorted(result)}
            await attempts.pause(error, self._backoff, self._observer)

    async def _commit_in_kafka(
        self,
        offsets: _Offsets,
        numbers: Mapping[TopicPartition, int] | None,
        attempts: _Attempts,
    ) -> None:
        rest = dict(offsets)
        while rest:
            self._check(numbers)
            error = await self._commit_once(rest, offsets, numbers, attempts)
            if error is not None:
                await attempts.pause(error, self._backoff, self._observer)

    async def _commit_once(
        self,
        rest: dict[TopicPartition, OffsetAndMetadata],
        offsets: _Offsets,
        numbers: Mapping[TopicPartition, int] | None,
        attempts: _Attempts,
    ) -> KafkaError | None:
        timeout = attempts.within(self._request_timeout)
        try:
            connection = await self._rpc.connection(Lane.SHARED, now() + timeout)
            # That may have taken long: what is ours and who we are is as of now.
            self._check(numbers)
            identity = self._identity()
            reply = await self._rpc.call_on(
                connection,
                commit_request(identity, rest),
                timeout=timeout,
                max_version=MAX_VERSION,
            )
        except KafkaError as error:
            if not error.retriable:
                raise
            return error
        done = self._take(reply, rest)
        if done and self._store is None:
            self._observer.offsets_committed({tp: offsets[tp] for tp in done})
        for tp in done:
            del rest[tp]
        return self._commit_error(commit_codes(reply), rest, identity)

    def _take(
        self, reply: OffsetCommitResponse, rest: _Offsets
    ) -> list[TopicPartition]:
        codes = commit_codes(reply)
        return [tp for tp in rest if codes.get(tp) == ErrorCode.NONE]

    def _commit_error(
        self,
        codes: Mapping[TopicPartition, int],
        rest: _Offsets,
        identity: GroupMetadata,
    ) -> KafkaError | None:
        # Raises what is final; what is returned may pass. Errors of the group stand on
        # every partition, so the first final one is as good as any.
        passing: KafkaError | None = None
        for tp in sorted(rest):
            code = codes.get(tp, ErrorCode.UNKNOWN_SERVER_ERROR)
            asked = reaction(ApiKey.OFFSET_COMMIT, code)
            error = self._error(f"the commit of {tp.topic}-{tp.partition}", code)
            if asked.refind_coordinator:
                self._rpc.forget()
            if asked.step in _RESETS or code == ErrorCode.FENCED_INSTANCE_ID:
                passing = self._expelled(code, identity, error)
            elif asked.step is Step.REJOIN:
                passing = self._rebalancing(error)
            elif asked.step is Step.REFRESH_MEMBER and self._member is not None:
                # The next heartbeat, which this brings about, tells the epoch.
                self._member.commit_refused(code, identity)
                passing = error
            elif asked.retry:
                passing = error
            else:
                raise error
        return passing

    def _expelled(
        self, code: int, identity: GroupMetadata, error: KafkaError
    ) -> KafkaError:
        current = self._identity()
        if (current.member_id, current.generation) != (
            identity.member_id,
            identity.generation,
        ):
            # We joined a new generation while this was on its way. What we still own
            # can be committed under the new name. A static member that has joined
            # under a new id is the one that fenced its former self.
            return error
        joins = self._member is not None and self._member.is_joining
        if joins and code == ErrorCode.ILLEGAL_GENERATION:
            # The new generation may have begun, and its number be on its way to us, on
            # another connection than this answer came by.
            return error
        if code == ErrorCode.FENCED_INSTANCE_ID:
            if self._member is not None:
                self._member.commit_refused(code, identity)
            raise error
        if self._member is not None and self._member.is_subscribed:
            self._member.commit_refused(code, identity)
            raise CommitFailed(
                f"group {self._rpc.group_id!r} went on without this member; its "
                f"partitions may belong to others by now"
            ) from error
        raise CommitFailed(
            f"group {self._rpc.group_id!r} has members of its own, so offsets of "
            f"partitions assigned by hand cannot be committed to it"
        ) from error

    def _rebalancing(self, error: KafkaError) -> KafkaError:
        failure = RebalanceInProgress(
            f"group {self._rpc.group_id!r} is rebalancing; the commit was not taken"
        )
        failure.__cause__ = error
        if self._member is None or not self._member.is_subscribed:
            raise failure
        # Our own SyncGroup is on its way, and with it the end of this.
        return failure

    def _numbers(self, offsets: _Offsets) -> dict[TopicPartition, int] | None:
        if self._member is None:
            return None
        ours = self._member.committable
        # Who has unsubscribed has still to give back what there is.
        if not self._member.is_subscribed and ours.keys().isdisjoint(offsets):
            return None
        numbers = {tp: ours.get(tp, 0) for tp in offsets}
        self._check(numbers)
        return numbers

    def _check(self, numbers: Mapping[TopicPartition, int] | None) -> None:
        if numbers is None or self._member is None:
            return
        ours = self._member.committable
        gone = sorted(tp for tp, n in numbers.items() if n != ours.get(tp))
        if gone:
            names = ", ".join(f"{tp.topic}-{tp.partition}" for tp in gone)
            raise PartitionLost(f"not assigned to this consumer (any more): {names}")

    async def _fetch_once(
        self,
        identity: GroupMetadata,
        partitions: frozenset[TopicPartition] | None,
        attempts: _Attempts,
    ) -> Fetched:
        timeout = attempts.within(self._request_timeout)
        connection = await self._rpc.connection(Lane.SHARED, now() + timeout)
        version = connection.versions.usable(
            OffsetFetchRequest, max_version=MAX_VERSION
        )
        try:
            request = fetch_request(identity, partitions, version)
        except ValueError as error:
            raise UnsupportedVersion(str(error)) from error
        reply = await self._rpc.call_on(
            connection, request, timeout=timeout, max_version=version
        )
        return fetched(reply)

    def _asking(self) -> GroupMetadata:
        # In other groups nobody asks in particular, and without an epoch nobody can.
        identity = self._identity()
        fences = self._member is not None and self._member.uses_epochs
        if fences and identity.generation >= 0:
            return identity
        return GroupMetadata(group_id=self._rpc.group_id)

    def _fetch_error(
        self, found: Fetched, identity: GroupMetadata
    ) -> KafkaError | None:
        if found.error == ErrorCode.GROUP_ID_NOT_FOUND:
            return None  # nobody has committed anything yet
        errors = {"all partitions": found.error} if found.error else {}
        errors |= {f"{tp.topic}-{tp.partition}": c for tp, c in found.errors.items()}
        passing: KafkaError | None = None
        for what, code in errors.items():
            asked = reaction(ApiKey.OFFSET_FETCH, code)
            error = self._error(f"the committed offset of {what}", code)
            if asked.refind_coordinator:
                self._rpc.forget()
            if identity.member_id and asked.step in _STALE and self._member is not None:
                # The member hears of it, and asks again as what it is by then.
                self._member.commit_refused(code, identity)
            elif not asked.retry:
                raise error
            passing = error
        return passing

    def _error(self, what: str, code: int) -> KafkaError:
        return broker_error(code, f"group {self._rpc.group_id!r} refused {what}")


class _Attempts:
    """One call's time: how long it has, and how long it waits in between."""

    __slots__ = ("_attempt", "_last", "_timeout", "_what", "deadline")

    def __init__(self, what: str, timeout: float) -> None:
        self._what = what
        self._timeout = timeout
        self.deadline = now() + timeout
        self._attempt = 0
        self._last: KafkaError | None = None

    def within(self, limit: float) -> float:
        """What is left, but not more than ``limit``; a moment at least."""
        return max(0.001, min(limit, self.deadline - now()))

    async def pause(
        self, error: KafkaError, backoff: Backoff, observer: Observer
    ) -> None:
        """Wait before the next attempt.

        Raises:
            RequestTimeout: there is no time for one.
            RebalanceInProgress: that is what the last attempt failed by.
        """
        self._last = error
        delay = backoff.delay(self._attempt, roll())
        self._attempt += 1
        if now() + delay >= self.deadline:
            raise self.expired()
        observer.retrying(self._what, self._attempt, delay, error)
        await anyio.sleep(delay)

    def expired(self) -> KafkaError:
        """What to raise when time is up."""
        if isinstance(self._last, RebalanceInProgress):
            return self._last
        last = "" if self._last is None else f"; the last failure: {self._last}"
        error = RequestTimeout(
            f"{self._what} did not succeed within {self._timeout:g} s{last}"
        )
        error.__cause__ = self._last
        return error
