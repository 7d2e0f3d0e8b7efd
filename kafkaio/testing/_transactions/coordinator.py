"""The transaction coordinators of a cluster: requests, timers, the log.

A shard is one partition of ``__transaction_state`` with the transactional ids that
hash to it; its leader coordinates them. A shard is read from the log at the broker's
start and whenever its leader changes: then markers that may not have been written are
written again, as by a real coordinator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

from kafkaio._records.batch import read_batches
from kafkaio._records.builder import encode_batch
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.cluster import TRANSACTIONS_TOPIC, EmbeddedCluster
from kafkaio.testing._broker.group_config import GroupConfig
from kafkaio.testing._broker.partition import NO_LEADER, EmbeddedPartition
from kafkaio.testing._broker.producers import TransactionMarker
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._transactions.markers import MarkerWriter
from kafkaio.testing._transactions.records import (
    read_key,
    read_value,
    transaction_key,
    transaction_value,
)
from kafkaio.testing._transactions.transaction import (
    TopicPartition,
    TransactionMetadata,
    TransactionStatus,
)

_READ_BYTES: Final = 1 << 20
#: Kafka's configs of the times, and their defaults in milliseconds.
_TIMEOUT_CHECK: Final = (
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    10_000,
)
_EXPIRY_CHECK: Final = (
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    3_600_000,
)
_EXPIRATION: Final = ("transactional.id.expiration.ms", 604_800_000)
_LONGEST_TIMEOUT: Final = ("transaction.max.timeout.ms", 900_000)
_NOBODY: Final = (-1, -1)


class EmbeddedTransactionCoordinator:
    """The transaction coordinators of all nodes in one object.

    Requests of clients go through `refuse` first, which checks that the node they were
    sent to is the coordinator of the id; leaders of partitions use `reach`.

    Args:
        cluster: the cluster.

    Attributes:
        transactions: the transactions of all loaded shards, by transactional id.
        markers: writes the markers.
        log_delay: seconds that a write to the log takes. Meanwhile other requests of
            the id are answered CONCURRENT_TRANSACTIONS.
    """

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._now = cluster.clock.now
        self._wall_ms = cluster.clock.wall_ms
        self.transactions: dict[str, TransactionMetadata] = {}
        self.markers: MarkerWriter = MarkerWriter(cluster)
        self.log_delay: float = 0.0
        # When the last write of an id is complete.
        self._written_at: dict[str, float] = {}
        # When a shard can be used, by its number. A coordinator that has just moved
        # answers COORDINATOR_LOAD_IN_PROGRESS until then.
        self._ready_at: dict[int, float] = {}
        self._loaded: set[int] = set()
        self._loads: dict[int, asyncio.TimerHandle] = {}
        # When an open transaction times out, by transactional id.
        self._deadlines: dict[str, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._next_timeout_check = self._now() + self._seconds(_TIMEOUT_CHECK)
        self._next_expiry_check = self._now() + self._seconds(_EXPIRY_CHECK)
        self._is_closed = False

    def _seconds(self, config: tuple[str, int]) -> float:
        return self._ms(config) / 1000

    def _ms(self, config: tuple[str, int]) -> int:
        name, default = config
        return int(self._cluster.configs.in_force(name) or default)

    # ---- shards ------------------------------------------------------------------

    def _shard_of(self, transactional_id: str) -> EmbeddedPartition:
        return self._cluster.transactions_partition(transactional_id)

    def _shards(self) -> list[EmbeddedPartition]:
        topic = self._cluster.topics.get(TRANSACTIONS_TOPIC)
        return [] if topic is None else topic.partitions

    def refuse(self, node_id: int, transactional_id: str) -> ErrorCode:
        """Return why a node cannot serve a transactional id; NONE if it can."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        shard = self._shard_of(transactional_id)
        if shard.leader != node_id:
            return ErrorCode.NOT_COORDINATOR
        return self._load_in_time(shard)

    def reach(self, transactional_id: str) -> ErrorCode:
        """Return why a leader cannot ask an id's coordinator now; NONE if it can."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        shard = self._shard_of(transactional_id)
        # Brokers ask each other here: one that is down or paused does not answer at
        # all, so its partner reports that the coordinator is not available.
        if shard.leader == NO_LEADER or not self._cluster.acts(shard.leader):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return self._load_in_time(shard)

    @property
    def _load_time(self) -> float:
        return (self._cluster.group_config or GroupConfig()).load_time

    def _load_in_time(self, shard: EmbeddedPartition) -> ErrorCode:
        now = self._now()
        if self._ready_at.setdefault(shard.index, now + self._load_time) > now:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        self._load(shard)
        return ErrorCode.NONE

    def load_all(self) -> None:
        """Begin to load every shard, as nodes do when they start."""
        for shard in self._shards():
            self.moved(shard)

    def moved(self, shard: EmbeddedPartition) -> None:
        """Handle a change of a shard's coordinator: its transactions are loaded."""
        self._loaded.discard(shard.index)
        for transactional_id in list(self.transactions):
            if self._shard_of(transactional_id) is shard:
                # The next coordinator finds the prepared transactions in the log and
                # writes their markers again; those of this one must not come on top.
                self.markers.forget(transactional_id)
                del self.transactions[transactional_id]
        self._ready_at[shard.index] = self._now() + self._load_time
        # A leader that changes twice in a row must not be ready at the time of the
        # first change.
        timer = self._loads.pop(shard.index, None)
        if timer is not None:
            timer.cancel()
        if shard.leader != NO_LEADER and not self._is_closed:
            loop = asyncio.get_running_loop()
            self._loads[shard.index] = loop.call_later(
                self._load_time, self._load_if_led, shard
            )

    def _load_if_led(self, shard: EmbeddedPartition) -> None:
        self._loads.pop(shard.index, None)
        if shard.leader != NO_LEADER:
            self._load_in_time(shard)

    def _load(self, shard: EmbeddedPartition) -> None:
        if shard.index in self._loaded:
            return
        self._loaded.add(shard.index)
        found: dict[str, TransactionMetadata] = {}
        for key, value in _read(shard):
            transactional_id = read_key(key)
            if transactional_id is None:
                continue
            if value is None:
                # A tombstone: the id has expired.
                found.pop(transactional_id, None)
            else:
                found[transactional_id] = read_value(transactional_id, value)
        self.transactions |= found
        for name, transaction in found.items():
            # By the wall clock, which the log has: the time in which no coordinator ran
            # counts, too.
            ends_ms = transaction.started_ms + transaction.timeout_ms
            seconds = (ends_ms - self._wall_ms()) / 1000
            self._deadlines[name] = self._now() + seconds
            # The decision is in the log, but markers may be missing. Those that are
            # left are written again.
            if transaction.state.is_prepared:
                self._write_markers(transaction)
        self._set_timer()

    def _save(self, transaction: TransactionMetadata) -> None:
        if self.log_delay:
            name = transaction.transactional_id
            self._written_at[name] = self._now() + self.log_delay
        value = transaction_value(transaction, self._cluster.transaction_version)
        self._write(transaction.transactional_id, value)

    def _write(self, transactional_id: str, value: bytes | None) -> None:
        now_ms = self._wall_ms()
        batch = encode_batch([(now_ms, transaction_key(transactional_id), value, ())])
        self._shard_of(transactional_id).append(batch, now_ms)

    def is_writing(self, transactional_id: str) -> bool:
        """Whether a write of an id is not complete."""
        return self._written_at.get(transactional_id, 0.0) > self._now()

    async def written(self, transactional_id: str) -> None:
        """Wait until the last write of an id is complete; it is answered then."""
        while self.is_writing(transactional_id):  # noqa: ASYNC110  (time passes)
            await asyncio.sleep(self._written_at[transactional_id] - self._now())

    # ---- what producers ask for --------------------------------------------------

    def initialise(
        self, transactional_id: str, timeout_ms: int, expected: tuple[int, int] | None
    ) -> tuple[ErrorCode, tuple[int, int]]:
        """Handle InitProducerId.

        An open transaction is aborted; until that is done the answer is
        CONCURRENT_TRANSACTIONS.

        Returns:
            An error code, and the producer id and epoch.
        """
        if not 0 < timeout_ms <= self._ms(_LONGEST_TIMEOUT):
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT, _NOBODY
        if self.is_writing(transactional_id):
            return ErrorCode.CONCURRENT_TRANSACTIONS, _NOBODY
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            transaction = TransactionMetadata(
                transactional_id, self._cluster.new_producer_id()
            )
            self.transactions[transactional_id] = transaction
        is_open = transaction.state is TransactionStatus.ONGOING
        code = transaction.initialise(
            expected, timeout_ms, self._cluster.new_producer_id, self._wall_ms()
        )
        if code:
            # The transaction of the producer before is aborted first. The client
            # repeats its request until the markers are written, and gets its epoch
            # then.
            if is_open and code == ErrorCode.CONCURRENT_TRANSACTIONS:
                self.fence(transaction)
            return code, _NOBODY
        self._save(transaction)
        self._set_timer()
        return code, transaction.identity

    def fence(self, transaction: TransactionMetadata) -> None:
        """Abort an open transaction; its producer's epoch is too old from then on."""
        transaction.fence(
            self._cluster.transaction_version,
            self._cluster.new_producer_id,
            self._wall_ms(),
        )
        self._save(transaction)
        self._write_markers(transaction)

    def add(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        partitions: Iterable[TopicPartition],
        client_version: int,
    ) -> ErrorCode:
        """Add partitions to a transaction, which begins if it is not open."""
        partitions = set(partitions)
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        code = transaction.check(*producer)
        if not code and self.is_writing(transactional_id):
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if not code and not transaction.has(partitions):
            # The timeout counts from the first partition, not from the last.
            if transaction.state is not TransactionStatus.ONGOING:
                seconds = transaction.timeout_ms / 1000
                self._deadlines[transactional_id] = self._now() + seconds
            transaction.add(partitions, client_version, self._wall_ms())
            self._save(transaction)
            self._set_timer()
        return code

    def verify(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        partition: TopicPartition,
    ) -> ErrorCode:
        """Check that a partition is in the open transaction."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        code = transaction.check(*producer)
        # Nothing was written, so the producer can abort and continue (KIP-890).
        if not code and not transaction.has([partition]):
            return ErrorCode.TRANSACTION_ABORTABLE
        return code

    def end(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        client_version: int,
        *,
        commit: bool,
    ) -> tuple[ErrorCode, tuple[int, int]]:
        """Handle EndTxn.

        Returns:
            An error code, and the producer id and epoch to continue with.
        """
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING, _NOBODY
        if self.is_writing(transactional_id):
            return ErrorCode.CONCURRENT_TRANSACTIONS, _NOBODY
        code = transaction.end(
            producer,
            client_version,
            self._cluster.new_producer_id,
            self._wall_ms(),
            commit=commit,
        )
        if code:
            return code, _NOBODY
        continues_as = transaction.identity
        # NONE is the repeated end of a transaction that has ended in this way: nothing
        # changes, and nothing is written.
        if code is None:
            self._save(transaction)
            self._write_markers(transaction)
        return ErrorCode.NONE, continues_as

    # ---- markers -----------------------------------------------------------------

    def _write_markers(self, transaction: TransactionMetadata) -> None:
        if not transaction.partitions:
            self._complete(transaction)
            return
        marker = TransactionMarker(
            transaction.producer_id,
            transaction.epoch,
            transaction.state is TransactionStatus.PREPARE_COMMIT,
            self._shard_of(transaction.transactional_id).leader_epoch,
            transaction.client_version,
        )

        def written(place: TopicPartition) -> None:
            transaction.partitions = transaction.partitions - {place}
            if not transaction.partitions:
                self._complete(transaction)

        self.markers.write(
            transaction.transactional_id,
            marker,
            transaction.partitions,
            written,
            after=self.log_delay,
        )

    def _complete(self, transaction: TransactionMetadata) -> None:
        transaction.complete(self._wall_ms())
        self._save(transaction)

    # ---- time --------------------------------------------------------------------

    def _set_timer(self) -> None:
        """Set the timer for the next check, if there is anything to check for."""
        if self._is_closed or not self.transactions:
            return
        self._pass_over()
        due = self._next_expiry_check
        states = (one.state for one in self.transactions.values())
        # Timeouts are checked at fixed intervals, as in Kafka: a transaction can stay
        # open for up to one interval longer than its timeout.
        if TransactionStatus.ONGOING in states:
            due = min(due, self._next_timeout_check)
        if self._timer is not None:
            if self._timer_due <= due:
                return
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer_due = due
        self._timer = loop.call_later(max(0.0, due - self._now()), self._tick)

    def _pass_over(self) -> None:
        """Skip the checks that were due while there was nothing to check for."""
        now = self._now()
        if self._next_timeout_check <= now:
            interval = self._seconds(_TIMEOUT_CHECK)
            passed = (now - self._next_timeout_check) // interval + 1
            self._next_timeout_check += passed * interval

    def _tick(self) -> None:
        self._timer = None
        self.clock_moved()

    def clock_moved(self) -> None:
        """Make the checks that are due by the broker's clock."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._now()
        if self._next_timeout_check <= now:
            self.abort_timed_out()
            self._pass_over()
        if self._next_expiry_check <= now:
            self._next_expiry_check = now + self._seconds(_EXPIRY_CHECK)
            self.expire()
        self._set_timer()

    def _coordinated(self) -> Iterator[TransactionMetadata]:
        for transaction in list(self.transactions.values()):
            # The timers of a node that is down or paused do not run.
            leader = self._shard_of(transaction.transactional_id).leader
            if leader != NO_LEADER and self._cluster.acts(leader):
                yield transaction

    def abort_timed_out(self) -> None:
        """Abort the transactions that have been open for too long."""
        now = self._now()
        for transaction in self._coordinated():
            is_open = transaction.state is TransactionStatus.ONGOING
            if is_open and self._deadlines[transaction.transactional_id] < now:
                self.fence(transaction)

    def expire(self) -> None:
        """Delete the ids that have not been used for long and have nothing open."""
        oldest = self._wall_ms() - self._ms(_EXPIRATION)
        for transaction in self._coordinated():
            is_open = transaction.state is TransactionStatus.ONGOING
            if is_open or transaction.state.is_prepared:
                continue
            if transaction.updated_ms <= oldest:
                del self.transactions[transaction.transactional_id]
                # A tombstone, so that the id stays unknown after the next load.
                self._write(transaction.transactional_id, None)

    def set_epoch(self, transaction: TransactionMetadata, epoch: int) -> None:
        """Set the epoch of an id whose transactions are complete."""
        transaction.epoch = epoch
        self._save(transaction)

    # ---- looking -----------------------------------------------------------------

    def led_by(self, node_id: int) -> list[TransactionMetadata]:
        """Return the transactions that a node coordinates, sorted by id.

        Raises:
            Refusal: COORDINATOR_LOAD_IN_PROGRESS.
        """
        for shard in self._shards():
            if shard.leader == node_id and (error := self._load_in_time(shard)):
                raise Refusal(error)
        return [
            one
            for name, one in sorted(self.transactions.items())
            if self._shard_of(name).leader == node_id
        ]

    def close(self) -> None:
        """Stop every timer."""
        self._is_closed = True
        self.markers.close()
        for timer in self._loads.values():
            timer.cancel()
        self._loads.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _read(shard: EmbeddedPartition) -> Iterator[tuple[bytes, bytes | None]]:
    log = shard.log
    offset = log.start_offset
    while offset < log.end_offset:
        data = log.read(offset, _READ_BYTES)
        if not data:  # compaction removed the last batches
            return
        for batch in read_batches(data):
            for record in batch.decode("", shard.index, offset):
                if record.key is not None:
                    yield record.key, record.value
            offset = batch.last_offset + 1


class _TransactionsLeaderFollower:
    """Reports every new leader of a shard to a coordinator."""

    def __init__(self, coordinator: EmbeddedTransactionCoordinator) -> None:
        self.coordinator = coordinator

    def __call__(self, partition: EmbeddedPartition, before: int) -> None:
        del before
        if partition.topic == TRANSACTIONS_TOPIC:
            self.coordinator.moved(partition)


def coordinator_of(cluster: EmbeddedCluster) -> EmbeddedTransactionCoordinator:
    """Return the coordinator of a cluster; create it on the first call."""
    for callback in cluster.leader_changed:
        if isinstance(callback, _TransactionsLeaderFollower):
            return callback.coordinator
    coordinator = EmbeddedTransactionCoordinator(cluster)
    cluster.leader_changed.append(_TransactionsLeaderFollower(coordinator))
    return coordinator
