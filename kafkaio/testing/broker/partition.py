"""One partition: who leads it, its log, and who waits for records in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from uuid import UUID

from kafkaio._runtime.clock import now
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.message import Buffer
from kafkaio.testing.broker.batches import (
    check_sent,
    headers_of,
    keyless_records,
    only_batch,
    producer_of,
)
from kafkaio.testing.broker.producers import ProducerBatch, ProducerStates
from kafkaio.testing.broker.refusal import Malformed, Refusal
from kafkaio.testing.broker.settings import TopicSettings
from kafkaio.testing.log import Appended, Log, LogError

__all__ = ["NO_LEADER", "Partition"]

NO_LEADER = -1
_REBUILD_BYTES = 1 << 20


class Partition:
    """One partition. Its replicas share one log: replication takes no time here.

    So the high watermark and the last stable offset are the end of the log. Of a
    replica that falls out of sync it is noted how far it got, where it might lead all
    the same (``unclean.leader.election.enable``): the log is cut there then.

    Attributes:
        topic: name of the topic.
        topic_id: id of the topic.
        index: number of the partition.
        replicas: ids of the nodes that hold it, the preferred leader first.
        isr: those that are up.
        leader: id of the node that leads, -1 for none.
        leader_epoch: counts the leaders.
        settles_at: when nodes know who leads; until then, nobody does as leader.
        now: tells the time.
        settings: the topic's configs.
        producers: what is known of idempotent producers.
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
        self.isr = list(replicas)
        self.leader = replicas[0]
        self.leader_epoch = 0
        self.settles_at = -inf
        self.now: Callable[[], float] = now
        self._led_before = (self.leader, self.leader_epoch)
        #: The ends of replicas out of sync, by node, where they may come to matter.
        self._ends: dict[int, int] = {}
        self.settings = settings
        self.producers = ProducerStates()
        self._open_log = open_log
        self._log: Log | None = None
        # In the order in which they came: a simulation has to repeat itself.
        self._waiting: dict[Wakeup, None] = {}

    def __repr__(self) -> str:
        return (
            f"<Partition {self.topic}-{self.index} leader={self.leader}"
            f" epoch={self.leader_epoch}>"
        )

    @property
    def log(self) -> Log:
        """The log, opened when first needed."""
        if self._log is None:
            self._log = self._open_log()
            self._recall(self._log)
        return self._log

    def _recall(self, log: Log) -> None:
        """Learn the producers from a log that was there before us."""
        offset = log.start_offset
        while offset < log.end_offset:
            data = log.read(offset, _REBUILD_BYTES)
            if not data:  # compaction took what was last
                return
            for header in headers_of(data):
                offset = header.last_offset + 1
                producer = producer_of(header)
                if producer is not None:
                    self.producers.appended(producer, header.base_offset, -1)

    @property
    def start_offset(self) -> int:
        """The first offset that can be read."""
        return self.log.start_offset

    @property
    def high_watermark(self) -> int:
        """Where consumers stop."""
        return self.log.end_offset

    @property
    def is_settled(self) -> bool:
        """Whether nodes know who leads."""
        return self.settles_at == -inf or self.settles_at <= self.now()

    @property
    def known_leader(self) -> tuple[int, int]:
        """Who leads as far as nodes know, and the leader epoch."""
        if self.is_settled:
            return self.leader, self.leader_epoch
        return self._led_before

    def check_epoch(self, current_leader_epoch: int, node_id: int) -> None:
        """Hold a client's idea of the leader epoch against that of a node; -1 is none.

        Raises:
            Refusal: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH; NOT_LEADER_OR_FOLLOWER
                of a node that has no replica.
        """
        if node_id not in self.replicas:
            raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        known = self.known_leader[1]
        if current_leader_epoch in {-1, known}:
            return
        if current_leader_epoch < known:
            raise Refusal(ErrorCode.FENCED_LEADER_EPOCH)
        raise Refusal(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The greatest leader epoch up to ``epoch``, and where it ended.

        Epochs in which nothing was written count: each ended where the next began.

        Returns:
            ``(-1, -1)`` where it is newer than that of the leader.
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
        """Make sure that a node leads, and knows that it does.

        Raises:
            Refusal: NOT_LEADER_OR_FOLLOWER.
        """
        if self.leader != node_id or not self.is_settled:
            raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def produce(self, records: Buffer, acks: int, now_ms: int) -> Appended:
        """Append what a client sent, once.

        Raises:
            Refusal: the reason why it is not appended.
        """
        header = only_batch(records)
        if acks not in {-1, 0, 1}:
            raise Malformed(ErrorCode.INVALID_REQUIRED_ACKS)
        if acks == -1 and len(self.isr) < self.settings.min_insync_replicas:
            raise Refusal(ErrorCode.NOT_ENOUGH_REPLICAS)
        check_sent(header, records, self.settings.max_message_bytes)
        if self.settings.is_compacted:
            self._check_keys(records)
        producer = producer_of(header)
        if producer is not None:
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
        """Append a batch as the leader does, without asking whether it may."""
        found = self.log.append(records, leader_epoch=self.leader_epoch, now_ms=now_ms)
        if producer is not None:
            self.producers.appended(producer, found.base_offset, found.log_append_time)
        self.wake()
        return found

    def delete_records(self, before: int) -> int:
        """Move the start; return it.

        Raises:
            Refusal: OFFSET_OUT_OF_RANGE for what was never written, POLICY_VIOLATION
                where the topic is compacted only.
        """
        if not self.settings.is_deleting:
            raise Refusal(ErrorCode.POLICY_VIOLATION)
        if not 0 <= before <= self.high_watermark:
            raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
        if before > self.start_offset:
            self.log.delete_records(before)
            self.wake()
        return self.start_offset

    def wait_with(self, wakeup: Wakeup) -> None:
        """Notify ``wakeup`` whenever something changes here, until ``forget``."""
        self._waiting[wakeup] = None

    def forget(self, wakeup: Wakeup) -> None:
        """Notify ``wakeup`` no more."""
        self._waiting.pop(wakeup, None)

    def wake(self) -> None:
        """Tell who waits that records came, the leader changed, or all is gone."""
        for wakeup in self._waiting:
            wakeup.notify()

    def elect(self, leader: int, settles_at: float = -inf) -> None:
        """Change the leader; -1 leaves the partition without one."""
        self._led_before = self.known_leader
        self.settles_at = settles_at
        self.leader = leader
        self.leader_epoch += 1
        self.wake()

    def set_isr(self, isr: Iterable[int]) -> None:
        """Say which replicas are in sync from now on."""
        wanted = set(isr)
        before, self.isr = self.isr, [one for one in self.replicas if one in wanted]
        for node in self.isr:
            self._ends.pop(node, None)
        if self.settings.elects_unclean:
            left = [node for node in before if node not in self.isr]
            self._ends.update(dict.fromkeys(left, self.log.end_offset))

    def cut_to(self, node_id: int) -> None:
        """Lose what a replica out of sync has not got, and all others with it."""
        self.log.truncate_to(self._ends.pop(node_id, self.log.end_offset))
        self.producers.forget()
        self._recall(self.log)
        self.isr = [node_id]

    def apply_settings(self) -> None:
        """Let the log obey the topic's configs as they are now."""
        if self._log is not None:
            self._log.config = self.settings.log_config

    def flush_if_due(self, now_ms: int) -> None:
        """Flush what has waited for ``flush.ms``."""
        if self._log is not None:
            self._log.flush_if_due(now_ms)

    def tidy(self, now_ms: int) -> None:
        """Forget and compact what is due."""
        log = self._log
        if log is None:
            return
        before = log.start_offset
        log.apply_retention(now_ms)
        log.compact(now_ms)
        if log.start_offset != before:
            self.wake()

    def close(self) -> None:
        """Close the log; it opens again when next needed."""
        if self._log is not None:
            self._log.close()
            self._log = None
        self.wake()
