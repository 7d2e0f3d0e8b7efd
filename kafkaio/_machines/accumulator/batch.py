"""One batch of a producer, and the receipt that its senders hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from kafkaio._machines.sequence import Numbered
from kafkaio._records.batch import BatchBuilder
from kafkaio.types import Header, TopicPartition

__all__ = ["PlainRecord", "ProduceBatch", "Rank", "Receipt"]

#: Timestamp in ms, key, value and headers: what ``BatchBuilder.try_append`` takes.
PlainRecord: TypeAlias = tuple[int, bytes | None, bytes | None, tuple[Header, ...]]
#: A batch's place among those of its partition. Parts of a batch that was divided
#: rank where it stood: (7,) < (7, 0) < (7, 1) < (8,).
Rank: TypeAlias = tuple[int, ...]


class Receipt:
    """What became of some records that travel together.

    It is settled once: acknowledged, failed, or moved (its records travel on under
    other receipts, because their batch was divided). Settling is one call however
    many records there are, and each waiter is called back once.

    Attributes:
        topic: name of the topic.
        partition: number of the partition, -1 until there is one.
        count: records it stands for.
        is_settled: whether it is known what became of them.
        base_offset: offset of the first record, -1 if the broker did not say.
        log_append_time: milliseconds, -1 where the records keep their own timestamps.
        error: why the records failed, None if they did not.
        moved: for each record, its new receipt and index; None if they did not move.
    """

    __slots__ = (
        "__weakref__",
        "_seen",
        "_waiters",
        "base_offset",
        "count",
        "error",
        "is_settled",
        "log_append_time",
        "moved",
        "on_lost",
        "partition",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        *,
        count: int = 0,
        on_lost: Callable[[Receipt, int], None] | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.count = count
        self.is_settled = False
        self.base_offset = -1
        self.log_append_time = -1
        self.error: Exception | None = None
        self.moved: Sequence[tuple[Receipt, int]] | None = None
        self.on_lost = on_lost
        self._waiters: dict[Callable[[], None], None] | None = None
        # Records of a failed receipt whose error reached somebody.
        self._seen: set[int] | None = None

    def __del__(self) -> None:
        # The last handle is gone, so nobody can ask any more. Asked-for errors were
        # raised where they were awaited; the rest is reported, once per receipt.
        if self.error is not None and self.on_lost is not None:
            unseen = self.count - (len(self._seen) if self._seen else 0)
            if unseen > 0:
                self.on_lost(self, unseen)

    def acknowledge(self, base_offset: int, log_append_time: int) -> None:
        """Settle: the broker has the records."""
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self._settle()

    def fail(self, error: Exception) -> None:
        """Settle: the records are given up."""
        self.error = error
        self._settle()

    def move(self, moved: Sequence[tuple[Receipt, int]]) -> None:
        """Settle: each record now has the receipt and index at its place here."""
        self.moved = moved
        self._settle()

    def see(self, index: int) -> None:
        """Note that somebody has learned of the error of record ``index``."""
        if self._seen is None:
            self._seen = set()
        self._seen.add(index)

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` once when it is settled, which it must not be yet."""
        assert not self.is_settled
        if self._waiters is None:
            self._waiters = {}
        self._waiters[callback] = None

    def forget(self, callback: Callable[[], None]) -> None:
        """Do not call ``callback`` any more; harmless if it was called."""
        if self._waiters is not None:
            self._waiters.pop(callback, None)

    def _settle(self) -> None:
        assert not self.is_settled
        self.is_settled = True
        waiters, self._waiters = self._waiters, None
        for callback in waiters or ():
            callback()


class ProduceBatch(Numbered):
    """Records of one partition that are sent, and succeed or fail, together.

    Attributes:
        partition: the partition.
        rank: its place among the batches of the partition.
        builder: the records.
        receipt: what their senders hold.
        created: when the first record came, in seconds.
        is_sealed: whether it takes no more records.
        is_divided: whether it is a part of a batch that was too large.
        is_expired: whether it was given up while on the wire.
        attempts: how often it was sent.
        retry_at: not to be sent again before this time.
        sent_to: leader and leader epoch when it was last sent.
        cause: why the last attempt did not succeed, or none could be made.
        charged: bytes of the buffer that it takes up.
    """

    __slots__ = (
        "attempts",
        "builder",
        "cause",
        "charged",
        "created",
        "is_divided",
        "is_expired",
        "is_sealed",
        "partition",
        "rank",
        "receipt",
        "retry_at",
        "sent_to",
    )

    def __init__(
        self,
        partition: TopicPartition,
        rank: Rank,
        builder: BatchBuilder,
        receipt: Receipt,
        created: float,
    ) -> None:
        super().__init__()
        self.partition = partition
        self.rank = rank
        self.builder = builder
        self.receipt = receipt
        self.created = created
        self.is_sealed = False
        self.is_divided = False
        self.is_expired = False
        self.attempts = 0
        self.retry_at = 0.0
        self.sent_to = (-1, -1)
        self.cause: Exception | None = None
        self.charged = 0

    @property
    def count(self) -> int:
        """Records in the batch."""
        return self.builder.count

    def encode(self) -> bytes:
        """Return the batch as it goes on the wire, with its present numbers."""
        if self.identity is None:
            return self.builder.build()
        return self.builder.build(
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            base_sequence=self.base_sequence,
        )

    def __repr__(self) -> str:
        topic, partition = self.partition
        state = "on the wire" if self.is_on_wire else "waiting"
        return (
            f"<ProduceBatch {topic}-{partition} {state} | {self.count} records, "
            f"sequence {self.base_sequence}, {self.attempts} attempts>"
        )
