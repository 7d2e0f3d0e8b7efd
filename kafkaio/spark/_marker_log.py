"""Markers in a compacted topic: creates, reads and writes it.

All markers are in partition 0, for any number of partitions: they depend on the log
order, and a partition that is chosen by a hash would change with the number of
partitions.

A worker keeps what it has read (`MarkerLog`), so that the next task reads only newer
records: one Fetch, up to the marker that it has just written. The read is complete when
it reaches that marker, and not at the high watermark of an answer: a leader that was
just elected may return one that is too low (KIP-207).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final
from uuid import UUID
from weakref import WeakKeyDictionary

from kafkaio._client import Client, Leader
from kafkaio._client.client import cluster_of
from kafkaio._client.retry import Attempts
from kafkaio._producer import Producer
from kafkaio._producer.transaction import Transaction
from kafkaio._records.batch import Batch, Decompressor, first_batch_size, read_batches
from kafkaio._runtime.clock import now
from kafkaio._runtime.group import TaskGroup
from kafkaio.admin import Admin, ConfigResource, ConfigResourceType, NewTopic
from kafkaio.errors import (
    AuthorizationError,
    BrokerError,
    ConfigurationError,
    KafkaError,
    RecordTooLarge,
    RequestTimeout,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import ZERO_UUID
from kafkaio.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from kafkaio.spark._marker_groups import marker_in
from kafkaio.spark._marker_names import TaskName, output_scope, parted
from kafkaio.spark._marker_records import (
    MarkerReader,
    begun_record,
    done_record,
    rows_record,
    verified_record,
)
from kafkaio.spark._marker_state import AppState, RowsMarker, RowSum
from kafkaio.types import TopicPartition

_log = logging.getLogger("kafkaio.spark")

_PARTITION: Final = 0
#: Bytes of one fetch; a single larger batch needs more.
_FETCH_BYTES: Final = 4 * 1024 * 1024
#: Seconds after which the log is read from its beginning. The log cleaner removes
#: tombstones after a day (``delete.retention.ms``): a worker that reads on would never
#: see the deletion of a marker. An hour leaves room for clocks and slow cleaners.
_MOST_AGE: Final = 3600.0
#: Small segments, since the active one is never compacted; but not compacted at once,
#: since a worker that reads for the first time reads all of it in either case.
_CONFIGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(8 * 1024 * 1024),
    "segment.ms": str(60 * 60 * 1000),
    "min.cleanable.dirty.ratio": "0.2",
    "max.compaction.lag.ms": str(6 * 60 * 60 * 1000),
}
#: Replicas of the topic with brokers before 2.4, which have no default (KIP-464).
_REPLICAS_BEFORE_2_4: Final = 3
#: Seconds after which a worker tries again to make the topic.
_REFUSED: Final = 300.0
#: Refusals by which a topic cannot be made by this principal, or on this cluster.
_REFUSING: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.POLICY_VIOLATION,
    }
)


class TopicRefused(KafkaError):
    """The topic of the markers is missing, and may not be made."""


class MarkerUndecided(KafkaError):
    """Whether rows of the task are in cannot be known: a control batch was lost."""


class MarkerLog:
    """The markers that a client has read of a topic. Kept with the client.

    Args:
        client: a started client.
        topic: the topic.
    """

    def __init__(self, client: Client, topic: str) -> None:
        # Not the client itself: `_logs` keeps this object for as long as the client
        # lives, and a reference back would keep the client alive.
        self._cluster = cluster_of(client)
        self._config = client.config
        self.at: TopicPartition = TopicPartition(topic, _PARTITION)
        self.is_prepared: bool = False
        # The refusal to create the topic, and until when that is not tried again.
        self.refused: TopicRefused | None = None
        self.refused_until: float = 0.0
        self.reader: MarkerReader = MarkerReader()
        self._topic_id: UUID | None = None
        self._since = now()
        self._needed = 0
        self._strangers = 0
        self._decompressor = Decompressor()
        self._lock = asyncio.Lock()

    @classmethod
    def of(cls, client: Client, topic: str) -> MarkerLog:
        """Return the log that is kept for a topic."""
        logs = _logs.setdefault(client, {})
        if topic not in logs:
            logs[topic] = cls(client, topic)
        return logs[topic]

    async def read_own(
        self, client: Client, scope: str, task: int, offset: int
    ) -> None:
        """Read up to the *begun* that an attempt has written, and make sure of it.

        A log that was truncated or made again may be shorter than the last position.

        Raises:
            RequestTimeout: as `read_to` says.
            KafkaError: it is not there, or the leader refused.
        """
        await self.read_to(client, offset + 1)
        if self.reader.has_begun_at(scope, task, offset):
            return
        await self.read_to(client, offset + 1, anew=True)
        if not self.reader.has_begun_at(scope, task, offset):
            raise KafkaError(
                f"{self.at.topic}-{self.at.partition} does not have what task {task} "
                f"has written at offset {offset}"
            )

    async def read_to(self, client: Client, end: int, *, anew: bool = False) -> None:
        """Read up to an offset that is known to be written.

        Args:
            client: the client.
            end: the offset after the last one to be read.
            anew: whether to read the log from its beginning.

        Raises:
            RequestTimeout: the leader did not answer, or did not have it, in time.
            KafkaError: the leader refused.
        """
        # Only the holder of the lock replaces `reader`: the answer to a fetch continues
        # at the position at which the fetch began.
        async with self._lock:
            if anew:
                self._begin_anew()
            seconds = self._config.default_api_timeout_ms / 1000
            what = f"read the markers in {self.at.topic}-{self.at.partition}"
            attempts = Attempts(what, self._cluster.retry_policy, seconds)
            while True:
                self._begin_anew_if_old()
                if self.reader.position >= end:
                    break
                error = await self._fetch(client, attempts)
                if error is not None:
                    await attempts.pause(error)
            self._warn_of_strangers()

    async def read_all(self, client: Client) -> None:
        """Read the log to its present end, as `read_to` does."""
        found = await client.offsets({self.at: "latest"})
        end = found[self.at]
        assert end is not None  # the latest offset is always known
        # A log that has become shorter is another one: the topic was made again, or an
        # unclean election has lost its end.
        is_shorter = end.offset < self.reader.position
        await self.read_to(client, end.offset, anew=is_shorter)

    def _begin_anew_if_old(self) -> None:
        topic_id = self._cluster.view.topic_id(self.at.topic)
        is_other = None not in {topic_id, self._topic_id} and topic_id != self._topic_id
        if is_other or now() - self._since > _MOST_AGE:
            self._begin_anew()
        self._topic_id = topic_id

    def _begin_anew(self, position: int = 0) -> None:
        self.reader = MarkerReader()
        self.reader.position = position
        self._since = now()
        self._strangers = 0

    async def _fetch(self, client: Client, attempts: Attempts) -> KafkaError | None:
        """Fetch once; return the error to wait for before the next attempt, if any."""
        size = max(_FETCH_BYTES, self._needed)
        request = FetchRequest(
            # At once: the marker to be read is written already.
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=size,
            # Uncommitted records, too: `MarkerReader` needs the open transactions.
            isolation_level=0,
            # No fetch session (KIP-227): a fetch comes once for each task.
            session_id=0,
            session_epoch=-1,
            topics=[
                FetchTopic(
                    topic=self.at.topic,
                    topic_id=self._topic_id or ZERO_UUID,
                    partitions=[
                        FetchPartition(
                            partition=self.at.partition,
                            fetch_offset=self.reader.position,
                            partition_max_bytes=size,
                        )
                    ],
                )
            ],
        )
        left = max(0.001, attempts.deadline - now())
        answer = await client.request(request, Leader(self.at), timeout=left)
        code = answer.error_code
        data = next((p for t in answer.responses for p in t.partitions), None)
        if data is not None and not code:
            code = data.error_code
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            found = await client.offsets({self.at: "earliest"})
            begin = found[self.at]
            self._begin_anew(0 if begin is None else begin.offset)
            return None
        if code or data is None:
            # Another leader, or another topic id, perhaps.
            self._cluster.request_refresh(self.at.topic)
            failure = broker_error(
                code or ErrorCode.UNKNOWN_SERVER_ERROR, attempts.what, api=1
            )
            if not failure.retriable:
                raise failure
            return failure
        return self._take(data, attempts.what)

    def _take(self, data: PartitionData, what: str) -> KafkaError | None:
        before = self.reader.position
        records = data.records or b""
        for batch in read_batches(records, decompressor=self._decompressor):
            self._take_batch(batch)
        if self.reader.position > before:
            self._needed = 0
            return None
        needed = first_batch_size(records) if records else None
        if needed is not None:
            if needed > self._config.max_response_size:
                raise RecordTooLarge(
                    f"{what}: a batch at offset {before} takes {needed} bytes, more "
                    f"than max_response_size={self._config.max_response_size}"
                )
            self._needed = needed
            return None
        # The marker was acknowledged, so a leader that was just elected has it, and
        # returns it when its high watermark is up to date.
        return broker_error(ErrorCode.OFFSET_NOT_AVAILABLE, what, api=1)

    def _take_batch(self, batch: Batch) -> None:
        reader = self.reader
        # A fetch returns whole batches, also those that begin before its offset.
        if batch.next_offset <= reader.position:
            return
        if batch.is_control:
            reader.control(batch.producer_id, batch.control_type())
        else:
            owner = batch.producer_id if batch.is_transactional else -1
            start = reader.position
            for record in batch.iterate(self.at.topic, self.at.partition, start):
                reader.record(
                    owner, record.key, record.value, record.timestamp, record.offset
                )
        reader.position = batch.next_offset

    def _warn_of_strangers(self) -> None:
        if self.reader.strangers > self._strangers:
            _log.warning(
                "the topic %r of markers has %d records that are not markers: they are "
                "ignored; nothing else should write to it",
                self.at.topic,
                self.reader.strangers,
            )
        self._strangers = self.reader.strangers


_logs: WeakKeyDictionary[Client, dict[str, MarkerLog]] = WeakKeyDictionary()


class TopicMarkers:
    """Keeps markers as records of a compacted topic.

    Where the topic may not be created, groups keep the markers. If it is created later,
    an application that began with groups continues with the topic: the group of a task
    is read as long as the topic has no marker of an earlier version.

    Args:
        client: a started client.
        topic: the topic.
        groups_at: the topic at which groups may have kept markers; None if they cannot.
        output: the topic that is written to; None if the rows name their topics.
    """

    begins_by_writing = True

    def __init__(
        self,
        client: Client,
        topic: str,
        groups_at: str | None = None,
        output: str | None = None,
    ) -> None:
        self._client = client
        self._log = MarkerLog.of(client, topic)
        self._groups_at = groups_at
        self._output = output
        self.topic = topic

    async def prepare(self) -> None:
        """Make the topic if it is missing; check that it is compacted.

        Raises:
            TopicRefused: it is missing and may not be made.
            ConfigurationError: it is not compacted.
            KafkaError: a broker did not answer, or refused.
        """
        log = self._log
        if log.is_prepared:
            return
        if log.refused is not None and now() < log.refused_until:
            raise log.refused
        try:
            await self._find()
        except TopicRefused as error:
            log.refused, log.refused_until = error, now() + _REFUSED
            raise
        await self._check()
        self._log.is_prepared = True

    async def _find(self) -> None:
        try:
            await self._client.partitions_for(self.topic)
        except UnknownTopicOrPartition:
            await self._make()
        except AuthorizationError as error:
            raise TopicRefused(
                f"the topic {self.topic!r} for the markers may not be seen ({error}): "
                "grant Describe, Read and Write on it, and Create if it is missing"
            ) from error

    async def _make(self) -> None:
        async with Admin(self._client) as admin:
            try:
                try:
                    # With the cluster's default of replicas.
                    await admin.create_topics([_new_topic(self.topic, None)])
                except UnsupportedVersion:
                    brokers = len(self._client.cluster.brokers)
                    replicas = min(_REPLICAS_BEFORE_2_4, max(1, brokers))
                    await admin.create_topics([_new_topic(self.topic, replicas)])
            except BrokerError as error:
                if error.code in _REFUSING:
                    raise TopicRefused(
                        f"the topic {self.topic!r} for the markers is missing and may "
                        f"not be created ({error}): grant Create, Describe, Read and "
                        "Write on it, or create it with cleanup.policy=compact"
                    ) from error
                # Another worker was quicker: all tasks of the first batch try it.
                if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise

    async def _check(self) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, self.topic)
        async with Admin(self._client) as admin:
            try:
                found = (await admin.describe_configs([resource]))[resource]
            except AuthorizationError:
                _log.warning(
                    "whether the topic %r of the markers is compacted cannot be "
                    "checked: grant DescribeConfigs on it",
                    self.topic,
                )
                return
        entry = found.get("cleanup.policy")
        policy = "" if entry is None or entry.value is None else entry.value
        if {part.strip() for part in policy.split(",")} != {"compact"}:
            raise ConfigurationError(
                f"markerTopic {self.topic!r} has cleanup.policy={policy}: its markers "
                "would be deleted while they are needed. Set its cleanup.policy to "
                "compact, name another topic, or use markerStore=groups"
            )

    async def begin(self, tx: Transaction, name: TaskName, run: str) -> AppState:
        """Write that the task's transaction has begun, and read all that was before.

        Raises:
            KafkaError: the marker was not written, or not read.
        """
        if self._groups_at is None or _knows(
            self._log.reader.state(self._scope(name.scope)), name
        ):
            return await self._begin(tx, name, run)
        state, marker = await self._begin_and_ask(tx, name, run)
        if marker is not None and marker.version >= 0 and not _knows(state, name):
            state.tasks[name.task] = marker
        return state

    async def _begin(self, tx: Transaction, name: TaskName, run: str) -> AppState:
        record = begun_record(self._scope(name.scope), name.task, name.version, run)
        offset = await self._send(tx, record)
        scope = self._scope(name.scope)
        await self._log.read_own(self._client, scope, name.task, offset)
        if self._log.reader.is_undecided(scope, name.task):
            # If a partition has no leader, Kafka drops the control batch for it.
            raise MarkerUndecided(
                f"{name} is not written: its earlier transaction has ended, and its end"
                f" is missing in {self.topic}-{_PARTITION}, so whether its rows are in "
                "is not known. Compare the topics that it writes to, and end that "
                "transaction there: see kafkaio transactions hanging"
            )
        return self._log.reader.state(self._scope(name.scope))

    async def _begin_and_ask(
        self, tx: Transaction, name: TaskName, run: str
    ) -> tuple[AppState, RowsMarker | None]:
        # Concurrently, since they do not depend on each other: both come after the
        # producer has its epoch.
        markers: list[RowsMarker | None] = []
        states: list[AppState] = []
        failures: list[KafkaError] = []

        async def ask() -> None:
            try:
                markers.append(await self._marker_of_group(name))
            except KafkaError as error:
                failures.append(error)

        async with TaskGroup() as group:
            group.start_soon(ask)
            try:
                states.append(await self._begin(tx, name, run))
            except KafkaError as error:
                failures.insert(0, error)
                group.cancel_scope.cancel()
        if failures:
            raise failures[0]
        return states[0], markers[0]

    async def _marker_of_group(self, name: TaskName) -> RowsMarker | None:
        assert self._groups_at is not None
        at = TopicPartition(self._groups_at, 0)
        try:
            found = await self._client.committed(name.transactional_id, [at])
        except AuthorizationError:
            # Without this right no task could have committed a marker to a group.
            return None
        return marker_in(found[at])

    async def again(self, name: TaskName, run: str) -> AppState:
        """Read the markers that were written since `begin`.

        Raises:
            KafkaError: the log was not read.
        """
        del run
        return await self.look(name.scope)

    async def look(self, scope: str, version: int = 0) -> AppState:
        """Read the state of an application.

        Raises:
            KafkaError: the log was not read.
        """
        del version
        await self._log.read_all(self._client)
        return self._log.reader.state(self._scope(scope))

    async def mark(
        self, tx: Transaction, name: TaskName, run: str, rows: RowSum
    ) -> None:
        """Add the rows' marker to the transaction, which its commit waits for."""
        key, value = rows_record(
            self._scope(name.scope), name.task, name.version, run, rows
        )
        _ = await tx.enqueue(self.topic, value, key=key, partition=_PARTITION)

    async def verify(self, tx: Transaction, name: TaskName, run: str) -> None:
        """Add to a transaction that the run has the rows that another one committed."""
        key, value = verified_record(
            self._scope(name.scope), name.task, name.version, run
        )
        _ = await tx.enqueue(self.topic, value, key=key, partition=_PARTITION)

    async def refuse(self, name: TaskName, run: str) -> None:
        """Do nothing: runs of this store are judged by their driver."""

    async def finish(self, scope: str, version: int, run: str, rows: RowSum) -> None:
        """Write that a whole version is in.

        Raises:
            KafkaError: it was not written.
        """
        key, value = done_record(self._scope(scope), version, run, rows)
        await self._write([(key, value)])

    async def delete(self, scope: str) -> int:
        """Delete all markers of an application; return their number.

        Raises:
            KafkaError: they were not deleted.
        """
        await self._log.read_all(self._client)
        reader = self._log.reader
        mine = [each for each in reader.scopes if parted(each)[0] == scope]
        keys = [key for each in mine for key in reader.keys(each)]
        await self._write([(key, None) for key in keys])
        return len(keys)

    async def scopes(self) -> dict[str, AppState]:
        """Return the state of every output of every application, by scope.

        Raises:
            KafkaError: the log was not read.
        """
        await self._log.read_all(self._client)
        reader = self._log.reader
        return {scope: reader.state(scope) for scope in reader.scopes}

    def _scope(self, scope: str) -> str:
        return output_scope(scope, self._output)

    async def _send(self, tx: Transaction, record: tuple[bytes, bytes]) -> int:
        key, value = record
        made = await tx.send(self.topic, value, key=key, partition=_PARTITION)
        return made.offset

    async def _write(self, records: list[tuple[bytes, bytes | None]]) -> None:
        """Write markers outside a transaction, within the time of one call.

        Raises:
            RequestTimeout: they were not acknowledged in time; they may be written.
            KafkaError: a marker was not written.
        """
        if not records:
            return
        limit_ms = self._client.config.default_api_timeout_ms
        producer = Producer(self._client, linger_ms=0, max_block_ms=limit_ms)
        try:
            # A producer without a transactional id, for this write only.
            async with asyncio.timeout(limit_ms / 1000):
                await producer.start()
                sent = [
                    await producer.enqueue(
                        self.topic, value, key=key, partition=_PARTITION
                    )
                    for key, value in records
                ]
                for each in sent:
                    await each
        except TimeoutError as error:
            # kafkaio's own timeouts are TimeoutErrors, too, and say more.
            if isinstance(error, KafkaError):
                raise
            raise RequestTimeout(
                f"markers in {self.topic!r} were not acknowledged within {limit_ms} ms"
            ) from None
        finally:
            await producer.close(timeout=0)


def _knows(state: AppState, name: TaskName) -> bool:
    """Whether the topic has the task's markers, or those of an earlier version."""
    is_later = any(each.version < name.version for each in state.tasks.values())
    return is_later or name.task in state.tasks


def _new_topic(name: str, replicas: int | None) -> NewTopic:
    return NewTopic(
        name, partitions=1, replication_factor=replicas, configs=dict(_CONFIGS)
    )
