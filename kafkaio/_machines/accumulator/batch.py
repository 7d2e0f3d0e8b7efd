"""One batch of a producer: records that are sent, and succeed or fail, together."""

from __future__ import annotations

from typing import TypeAlias

from kafkaio._machines.sequence import UNNUMBERED, Identity
from kafkaio._records._impl import Receipt
from kafkaio._records.batch import BatchBuilder, PlainRecord
from kafkaio.types import TopicPartition

__all__ = ["PlainRecord", "ProduceBatch", "Rank", "Receipt"]

#: A batch's place among those of its partition. The parts of a batch that was split
#: take its place: (7,) < (7, 0) < (7, 1) < (8,).
Rank: TypeAlias = tuple[int, ...]


class ProduceBatch:
    """Records of one partition that are sent, and succeed or fail, together.

    A batch is open, then sealed; it waits, then is on the wire. If an attempt does not
    succeed, it waits again, until its receipt is settled. It may be leased only while
    it is open and waits, and it has an identity from the moment it is first sent.

    Attributes:
        partition: the partition.
        rank: its place among the batches of the partition.
        builder: the records.
        receipt: what the deliveries of its records refer to.
        created: time of its first record, in seconds.
        is_leased: whether records go into it past the accumulator, which has charged
            it with all bytes that it may still use.
        is_sealed: whether it takes no more records.
        is_expired: whether its receipt failed while it was on the wire.
        is_on_wire: whether it was sent, and neither answered nor lost.
        is_uncertain: whether an earlier attempt was never answered, so that the batch
            may be in the log.
        identity: the producer identity it was numbered under, None before.
        base_sequence: sequence number of its first record, -1 before.
        attempts: how often it was sent.
        retry_at: time before which it is not sent again.
        sent_to: leader and leader epoch of the last attempt.
        cause: why the last attempt did not succeed, or none could be made.
        charged: bytes of buffer memory that it is charged with.
    """

    __slots__ = (
        "attempts",
        "base_sequence",
        "builder",
        "cause",
        "charged",
        "created",
        "identity",
        "is_expired",
        "is_leased",
        "is_on_wire",
        "is_sealed",
        "is_uncertain",
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
        self.identity: Identity | None = None
        self.base_sequence = UNNUMBERED
        self.is_on_wire = False
        self.is_uncertain = False
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
        """Return the bytes of the batch, with its current sequence numbers."""
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
