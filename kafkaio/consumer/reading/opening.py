"""What a batch in its turn holds for the user, if it can be believed."""

from __future__ import annotations

from kafkaio._records.batch import LegacyBatch, RecordBatch, RecordCursor
from kafkaio.consumer.reading.buffers import Sieve
from kafkaio.errors import CorruptRecord
from kafkaio.types import TopicPartition

__all__ = ["open_batch", "placed"]


def open_batch(
    batch: RecordBatch | LegacyBatch, sieve: Sieve, tp: TopicPartition, position: int
) -> RecordCursor | None:
    """Decompress a batch, and check its records; None where none is for the user.

    Raises:
        CorruptRecord: they cannot be decompressed or decoded.
    """
    try:
        if sieve.passes(batch) and batch.next_offset > position:
            return batch.iterate(tp.topic, tp.partition, position)
    except CorruptRecord as error:
        placed(error, tp, position)
        raise
    return None


def placed(error: CorruptRecord, tp: TopicPartition, position: int) -> CorruptRecord:
    """Returns the error, which tells from now on where it was."""
    error.add_note(f"{tp.topic}-{tp.partition} at offset {position}")
    return error
