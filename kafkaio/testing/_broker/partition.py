"""One partition: its leader, its log, and the fetches that wait for its records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from uuid import UUID

from kafkaio._records.control import ControlType, EndTxnMarker, control_batch
from kafkaio._runtime.clock import now
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Buffer
from kafkaio.testing._broker.batches import (
    batches_of,
    check_sent,
    keyless_records,
    marker_of,
    only_batch,
    producer_of,
)
from kafkaio.testing._broker.producers import (
    ProducerBatch,
    ProducerStates,
    TransactionMarker,
)
from kafkaio.testing._broker.refusal import Malformed, Refusal
from kafkaio.testing._broker.settings import TopicSettings
from kafkaio.testing._log import AbortedTransaction, Appended, Log, LogError

NO_LEADER = -1
_REBUILD_BYTES = 1 << 20


class EmbeddedPartition:
    """One partition. Its replicas share one log: replication takes no time here.

    So the high watermark is the end of the log. For a
    replica that falls out of sync, the end of the log at that moment is remembered if
    the topic allows unclean elections (``unclean.leader.election.enable``): when that
    replica becomes the leader, the log is truncated to it.

    Attributes:
        topic: name of the topic.
        topic_id: id of the topic.
        index: number of the partition.
        replicas: ids of the nodes that hold it, the preferred leader first.
        isr: the in-sync replicas.
        leader: id of the leader, -1 for none.
        leader_epoch: grows by one with each change of the leader.
        leader_known_at: the time from which nodes know the leader; until then no node
            acts as the leader.
        now: the cluster's clock, in seconds.
        settings: the topic's configs.
        producers: the state of idempotent producers.
    """

    def __init__(
        self,
        topic: str,
        topic_id: UUID,
        index: int,
        replicas: list[int],
        settings: TopicSettings,
        open_log: Callable[[], Log],
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.replicas = replicas
        self.isr: list[int] = list(replicas)
        self.leader: int = replicas[0]
        self.leader_epoch: int = 0
        self.leader_known_at: float = -inf
        self.now: Callable[[], float] = now
        # Nodes that do not know the new leader yet still name this one.
        self._previous_leader = (self.leader, self.leader_epoch)
        #: The end of the log when a replica fell out of sync, by node; only while the
        #: topic allows unclean elections.
        self._ends: dict[int, int] = {}
        self.settings = settings
        self.producers: ProducerStates = ProducerStates()
        self._open_log = open_log
        self._log: Log | None = None
        # A dict for its order: a simulation with the same seed must run the same way.
        self._waiters: dict[Wakeup, None] = {}

    def __repr__(self) -> str:
        return (
            f"<Partition {self.topic}-{self.index} leader={self.leader}"
            f" epoch={self.leader_epoch}>"
        )

    @property
    def log(self) -> Log:
        """The log, opened on first use."""
        if self._log is None:
            self._log = self._open_log()
            self._restore_producers(self._log)
        return self._log

    def open(self) -> None:
        """Open the log, if it is not open, and restore the producers from it."""
        _ = self.log

    def _restore_producers(self, log: Log) -> None:
        """Restore the state of producers from a snapshot and the batches after it.

        The aborted transactions among them are found, too.
        """
        offset = log.start_offset
        self.producers.clear()
        snapshot = log.read_snapshot()
        # A snapshot from before the start would bring producers whose batches were
        # deleted.
        if snapshot is not None and snapshot[0] >= offset:
            offset = snapshot[0]
            self.producers.restore(snapshot[1])
        since = offset
        aborted: list[AbortedTransaction] = []
        while offset < log.end_offset:
            data = log.read(offset, _REBUILD_BYTES)
            if not data:  # compaction removed the last batches
                break
            for header, raw in batches_of(data):
                offset = header.last_offset + 1
                producer = producer_of(header)
                if header.is_control:
                    marker = marker_of(header, raw)
                    if marker is not None:
                        ended = self.producers.ended(marker, header.base_offset)
                        aborted += [] if ended is None else [ended]
                elif producer is not None:
                    self.producers.appended(producer, header.base_offset, -1)
        # The file may lack transactions that were aborted shortly before a crash.
        log.restore_aborted(since, aborted)
        # Last: a snapshot that is written while producers are restored would be
        # incomplete.
        log.producers = self.producers.image

    @property
    def start_offset(self) -> int:
        """The first offset that can be read."""
        return self.log.start_offset

    @property
    def high_watermark(self) -> int:
        """The offset up to which consumers can read."""
        return self.log.end_offset

    @property
    def last_stable_offset(self) -> int:
        """The offset before the first record of an open transaction."""
        log = self.log
        # DeleteRecords can remove the beginning of a transaction that is open; the
        # offset must not lie before the log.
        unstable = self.producers.first_unstable
        return log.end_offset if unstable is None else max(unstable, log.start_offset)

    def fetchable(self, isolation_level: int) -> int:
        """The offset up to which a client can read at an isolation level."""
        return self.last_stable_offset if isolation_level else self.high_watermark

    @property
    def is_leader_known(self) -> bool:
        """Whether nodes know the current leader."""
        return self.leader_known_at == -inf or self.leader_known_at <= self.now()

    @property
    def known_leader(self) -> tuple[int, int]:
        """The leader and the leader epoch, as nodes know them now."""
        if self.is_leader_known:
            return self.leader, self.leader_epoch
        return self._previous_leader

    def check_epoch(self, current_leader_epoch: int, node_id: int) -> None:
        """Compare a client's leader epoch (-1 for none) with the one that a node knows.

        Raises:
            Refusal: FENCED_LEADER_EPOCH if the client's is older,
                UNKNOWN_LEADER_EPOCH if it is newer, NOT_LEADER_OR_FOLLOWER if the
                node has no replica.
        """
        # A node without a replica cannot judge epochs: the client has to look up the
        # leader.
        if node_id not in self.replicas:
            raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        # By what the node knows: with a delay, it takes the new epoch of a client for
        # one from the future.
        known = self.known_leader[1]
        if current_leader_epoch in {-1, known}:
            return
        if current_leader_epoch < known:
            raise Refusal(ErrorCode.FENCED_LEADER_EPOCH)
        raise Refusal(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The greatest leader epoch that is at most ``epoch``, and its end offset.

        Epochs in which nothing was written count: each ends where the next begins.

        Returns:
            ``(-1, -1)`` if ``epoch`` is newer than the leader's.
        """
        log = self.log
        if not 0 <= epoch <= self.leader_epoch:
            return -1, -1
        if epoch == self.leader_epoch or not log.leader_epochs:
            return epoch, log.end_offset
        newest = log.leader_epochs[-1].epoch
        if epoch > newest:
            return newest, log.end_offset
        return log.end_offset_for_epoch(epoch)

    def check_leader(self, node_id: int) -> None:
        """Check that a node is the leader and knows it.

        Raises:
            Refusal: NOT_LEADER_OR_FOLLOWER.
        """
        if self.leader != node_id or not self.is_leader_known:
            raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def produce(self, records: Buffer, acks: int, now_ms: int) -> Appended:
        """Append a batch that a client sent, unless it was appended before.

        Args:
            records: what the request has for the partition: one batch.
            acks: the request's acks: -1 (all), 0 or 1.
            now_ms: the wall clock's time.

        Returns:
            The batch's place in the log; for a batch that an idempotent producer sent
            again, the place of the first.

        Raises:
            Refusal: the reason why it is not appended.
        """
        header = only_batch(records)
        if acks not in {-1, 0, 1}:
            raise Malformed(ErrorCode.INVALID_REQUIRED_ACKS)
        # Before the content of the batch is checked, in the order of Kafka.
        if acks == -1 and len(self.isr) < self.settings.min_insync_replicas:
            raise Refusal(ErrorCode.NOT_ENOUGH_REPLICAS)
        check_sent(header, records, self.settings.max_message_bytes)
        if self.settings.is_compacted:
            self._check_keys(records)
        producer = producer_of(header)
        if producer is not None:
            # A log that was not read yet knows no producers, and would take a duplicate
            # for a new batch.
            self.open()
            found = self._check_sequence(producer)
            if found is not None:
                return found
        try:
            return self.append(records, now_ms, producer)
        except LogError as error:
            raise Refusal(error.error_code, str(error)) from error

    def _check_keys(self, records: Buffer) -> None:
        keyless = keyless_records(records)
        if keyless:
            raise Refusal(
                ErrorCode.INVALID_RECORD,
                "Compacted topic cannot accept message without key in topic partition"
                f" {self.topic}-{self.index}.",
                keyless,
            )

    def _check_sequence(self, batch: ProducerBatch) -> Appended | None:
        duplicate = self.producers.find_duplicate(batch)
        if duplicate is not None:
            base_offset, append_time = duplicate
            return Appended(
                base_offset, base_offset + batch.record_count - 1, append_time
            )
        self.producers.check(batch)
        return None

    def append(
        self, records: Buffer, now_ms: int, producer: ProducerBatch | None = None
    ) -> Appended:
        """Append a batch as the leader, without any check of the client's rights."""
        found = self.log.append(records, leader_epoch=self.leader_epoch, now_ms=now_ms)
        if producer is not None:
            # After the append, which may refuse the batch.
            self.producers.appended(producer, found.base_offset, found.log_append_time)
        self.wake()
        return found

    def append_marker(self, marker: TransactionMarker) -> int:
        """Append the marker that ends a producer's transaction; return its offset.

        Raises:
            Refusal: INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.
        """
        log = self.log
        self.producers.check_marker(marker)
        kind = ControlType.COMMIT if marker.is_commit else ControlType.ABORT
        batch = control_batch(
            EndTxnMarker(kind, marker.coordinator_epoch),
            producer_id=marker.producer_id,
            producer_epoch=marker.epoch,
            timestamp=marker.timestamp,
        )
        found = log.append(
            batch, leader_epoch=self.leader_epoch, now_ms=marker.timestamp
        )
        # With the offset of the marker, which the log has decided.
        aborted = self.producers.ended(marker, found.base_offset)
        if aborted is not None:
            log.add_aborted(aborted)
        self.wake()
        return found.base_offset

    def delete_records(self, before: int) -> int:
        """Move the start of the log up to an offset; return the start.

        Raises:
            Refusal: OFFSET_OUT_OF_RANGE beyond the end, POLICY_VIOLATION if the
                topic's cleanup policy is compaction alone.
        """
        if not self.settings.is_deleting:
            raise Refusal(ErrorCode.POLICY_VIOLATION)
        if not 0 <= before <= self.high_watermark:
            raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
        if before > self.start_offset:
            self.log.delete_records(before)
            self.wake()
        return self.start_offset

    def add_waiter(self, wakeup: Wakeup) -> None:
        """Notify ``wakeup`` at every `wake` until `remove_waiter`."""
        self._waiters[wakeup] = None

    def remove_waiter(self, wakeup: Wakeup) -> None:
        """Stop to notify ``wakeup``."""
        self._waiters.pop(wakeup, None)

    def wake(self) -> None:
        """Notify the waiters of new records, a new leader, or the topic's deletion."""
        for wakeup in self._waiters:
            wakeup.notify()

    def elect(self, leader: int, leader_known_at: float = -inf) -> None:
        """Change the leader; -1 leaves the partition without one."""
        self._previous_leader = self.known_leader
        self.leader_known_at = leader_known_at
        self.leader = leader
        self.leader_epoch += 1
        self.wake()

    def set_isr(self, isr: Iterable[int]) -> None:
        """Set the in-sync replicas."""
        wanted = set(isr)
        before, self.isr = self.isr, [one for one in self.replicas if one in wanted]
        for node in self.isr:
            # A replica that is in sync again has the whole log.
            self._ends.pop(node, None)
        # The end of a replica that falls out of sync matters only where it may lead all
        # the same.
        if self.settings.elects_unclean:
            left = [node for node in before if node not in self.isr]
            self._ends.update(dict.fromkeys(left, self.log.end_offset))

    def truncate_to_replica(self, node_id: int) -> None:
        """Truncate the log to what a replica that is out of sync has.

        That is what an unclean election loses. The replica is the only one in sync
        then.
        """
        self.log.truncate_to(self._ends.pop(node_id, self.log.end_offset))
        # Producers may have written what is gone: their sequence numbers continue from
        # what is left.
        self._restore_producers(self.log)
        self.isr = [node_id]

    def apply_settings(self) -> None:
        """Give the log the topic's current configs."""
        if self._log is not None:
            self._log.config = self.settings.log_config

    def flush_if_due(self, now_ms: int) -> None:
        """Flush the log if something in it has waited for ``flush.ms``."""
        if self._log is not None:
            self._log.flush_if_due(now_ms)

    def tidy(self, now_ms: int) -> None:
        """Apply retention and compaction."""
        log = self._log
        if log is None:
            return
        before = log.start_offset
        log.apply_retention(now_ms)
        # Not beyond: whether the records of an open transaction count is not known.
        log.compact(now_ms, up_to=self.last_stable_offset)
        if log.start_offset != before:
            self.wake()

    def close(self) -> None:
        """Close the log; it is opened again on next use."""
        if self._log is not None:
            # The next start reads the producers from here and not from the whole log.
            self._log.write_snapshot()
            self._log.close()
            self._log = None
        self.wake()
