"""One batch of a producer."""

from __future__ import annotations

from typing import TypeAlias

from kafkaio._machines.sequence import Numbered
from kafkaio._records._impl import Receipt
from kafkaio._records.batch import BatchBuilder, PlainRecord
from kafkaio.types import TopicPartition

__all__ = ["PlainRecord", "ProduceBatch", "Rank", "Receipt"]

#: A batch's place among those of its partition. Parts of a batch that was divided
#: rank where it stood: (7,) < (7, 0) < (7, 1) < (8,).
Rank: TypeAlias = tuple[int, ...]


class ProduceBatch(Numbered):
    """Records of one partition that are sent, and succeed or fail, together.

    Attributes:
        partition: the partition.
        rank: its place among the batches of the partition.
        builder: the records.
        receipt: what their senders hold.
        created: when the first record came, in seconds.
        is_leased: whether records go into it past the accumulator, which has charged
            it with all the room that it may still use.
        is_sealed: whether it takes no more records.
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
        "is_expired",
        "is_leased",
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
        Numbered.__init__(self)  # at half the price of super()
        self.partition = partition
        self.rank = rank
        self.builder = builder
        self.receipt = receipt
        self.created = created
        self.is_leased = False
        self.is_sealed = False
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
