"""The limits that an accumulator holds, and the errors when one is passed."""

from __future__ import annotations

from kafkaio._dataclass import dataclass
from kafkaio._machines.accumulator.batch import ProduceBatch, Receipt
from kafkaio.errors import DeliveryTimeout, RecordTooLarge, UnknownTopicOrPartition
from kafkaio.protocol.error_codes import ErrorCode

__all__ = [
    "AccumulatorStatistics",
    "Limits",
    "not_acknowledged",
    "too_large",
    "unknown_topic",
]

_OPEN_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in bytes and times in seconds.

    Attributes:
        batch_size: the most that a batch is filled up to.
        buffer_memory: all records together.
        max_request_size: one request, and so one record.
        linger: longest wait for more records.
        delivery_timeout: from a record's append to its acknowledgement.
        max_block: longest wait for a topic's metadata.
        max_in_flight: requests to one node without an answer.
        availability_timeout: how long a node may take nothing before keyless records
            avoid it; 0 to never avoid one.
    """

    batch_size: int = 1_000_000
    buffer_memory: int = 33_554_432
    max_request_size: int = 1_048_576
    linger: float = 0.005
    delivery_timeout: float = 120.0
    max_block: float = 60.0
    max_in_flight: int = 5
    availability_timeout: float = 0.0

    @property
    def open_for(self) -> float:
        """How long a batch takes records, if it cannot be sent.

        Its delivery timeout counts from its first record, so this is what a later
        record may lose of it.
        """
        return max(self.linger, self.delivery_timeout * _OPEN_SHARE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccumulatorStatistics:
    """A snapshot of an accumulator.

    Attributes:
        topics: topics written to.
        used_bytes: bytes of ``buffer_memory`` taken.
        waiting_batches: batches that are filling or ready to be sent.
        batches_on_wire: batches sent and neither answered nor lost.
        undesignated_records: records whose topic is not known yet.
    """

    topics: int
    used_bytes: int
    waiting_batches: int
    batches_on_wire: int
    undesignated_records: int


def too_large(size: int, limits: Limits) -> RecordTooLarge:
    """Return the error of a record that can never be sent."""
    return RecordTooLarge(
        f"the record takes up to {size} bytes with its batch header, more than "
        f"max_request_size={limits.max_request_size} or "
        f"buffer_memory={limits.buffer_memory} allow"
    )


def not_acknowledged(batch: ProduceBatch, limits: Limits) -> DeliveryTimeout:
    """Return the error of a batch that ran out of time; it says the last cause."""
    topic, partition = batch.partition
    if batch.is_on_wire:
        state = f"sent {batch.attempts} times, the last time without an answer yet"
    elif batch.attempts:
        state = f"sent {batch.attempts} times"
    else:
        state = "never sent"
    cause = f"; last cause: {batch.cause}" if batch.cause is not None else ""
    error = DeliveryTimeout(
        f"{topic}-{partition}: not acknowledged within "
        f"{limits.delivery_timeout:g} s, {state}{cause}"
    )
    error.__cause__ = batch.cause
    return error


def unknown_topic(
    receipt: Receipt, partition_count: int, limits: Limits
) -> UnknownTopicOrPartition:
    """Return the error of a record whose topic or partition stayed unknown."""
    if partition_count:
        missing = (
            f"topic {receipt.topic!r} has no partition {receipt.partition}, only 0 to "
            f"{partition_count - 1}"
        )
    else:
        missing = f"topic {receipt.topic!r} is not known to the cluster"
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return UnknownTopicOrPartition(
        f"{missing}, also after {limits.max_block:g} s",
        code=code,
        name=code.name,
        retriable=True,
    )
