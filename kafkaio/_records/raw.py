"""Record batches as they were fetched, and as they are written again.

`RawBatch` is what a consumer hands out instead of records. `EncodedBatch` is what a
producer makes of it: the same compressed records under a header with the producer's own
id, epoch and sequence number. It stands in the place of a `BatchBuilder`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from kafkaio._public import public
from kafkaio._records._layout import (
    BATCH_HEADER_SIZE,
    MIN_RECORD_SIZE,
    TRANSACTIONAL,
    PlainRecord,
)
from kafkaio._records.batch import read_batches
from kafkaio._records.compression import Compression, Decompressor
from kafkaio._records.legacy import LegacyBatch
from kafkaio._records.view import RecordBatch
from kafkaio.types import Record, TimestampType, TopicPartition

#: Bytes of a batch from which on its records are not copied.
_VIEWED: Final = 16_384


@public("kafkaio")
class RawBatch:
    """A record batch as it was fetched, compressed as its producer left it.

    ``Consumer.raw_batches`` yields them, and ``Producer.send_raw`` writes them. It has
    its own bytes, so it may be kept for any time. It is immutable.

    Usually it stands for all of its records. Where reading began or ended in the middle
    of a batch it stands for those from `first_offset` to before `next_offset` alone.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        first_offset: the first offset that the batch stands for.
        next_offset: the offset after the last one that it stands for; where reading
            goes on.
        size_bytes: size of the batch.
        assignment: number of the assignment under which the batch was read.
    """

    __slots__ = (
        "_batch",
        "assignment",
        "first_offset",
        "next_offset",
        "partition",
        "size_bytes",
        "topic",
    )

    def __init__(
        self,
        tp: TopicPartition,
        batch: RecordBatch | LegacyBatch,
        place: tuple[int, int],
        assignment: int = -1,
    ) -> None:
        batch.detach()
        self._batch = batch
        self.topic: str
        self.partition: int
        self.topic, self.partition = tp
        first, end = place
        base, after = batch.base_offset, batch.next_offset
        self.first_offset: int = max(base, first)
        self.next_offset: int = min(after, end)
        self.size_bytes: int = batch.size_bytes
        self.assignment: int = assignment

    def __repr__(self) -> str:
        return (
            f"<RawBatch {self.topic}-{self.partition} {self.compression_type} | "
            f"{self.count} records, offsets {self.first_offset}-"
            f"{self.next_offset - 1}, {self.size_bytes} bytes>"
        )

    @property
    def base_offset(self) -> int:
        """Offset of the first record that the batch had when it was written."""
        return self._batch.base_offset

    @property
    def last_offset(self) -> int:
        """Offset of the last record; compaction may have removed it since."""
        return self._batch.last_offset

    @property
    def count(self) -> int:
        """Number of records in the bytes."""
        return self._batch.count

    @property
    def compression_type(self) -> str:
        """The codec: ``none``, ``gzip``, ``snappy``, ``lz4``, ``zstd``."""
        return self._batch.compression.name.lower()

    @property
    def timestamp_type(self) -> TimestampType:
        """Who set the timestamps."""
        return self._batch.timestamp_type

    @property
    def base_timestamp(self) -> int:
        """The timestamp that those of the records are relative to, in milliseconds."""
        return self._batch.base_timestamp

    @property
    def max_timestamp(self) -> int:
        """The greatest timestamp, or the broker's."""
        return self._batch.max_timestamp

    @property
    def producer_id(self) -> int:
        """Id of the producer, -1 if it had none."""
        return self._batch.producer_id

    @property
    def producer_epoch(self) -> int:
        """Epoch of the producer, -1 if it had none."""
        return self._batch.producer_epoch

    @property
    def base_sequence(self) -> int:
        """Sequence number of the first record, -1 if it had none."""
        return self._batch.base_sequence

    @property
    def is_transactional(self) -> bool:
        """Whether the batch was written in a transaction."""
        return self._batch.is_transactional

    @property
    def leader_epoch(self) -> int:
        """Epoch of the leader that appended it, -1 if unknown."""
        return self._batch.leader_epoch

    @property
    def message_format(self) -> int:
        """Number of the message format: 2; 0 or 1 in topics of old brokers."""
        return self._batch.magic

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the batch."""
        return TopicPartition(self.topic, self.partition)

    @property
    def data(self) -> memoryview:
        """The bytes of the batch, header included; read-only."""
        return memoryview(self._batch.raw)

    @property
    def is_whole(self) -> bool:
        """Whether ``Producer.send_raw`` can write the compressed records as they are.

        Otherwise it decompresses the batch and writes its records anew: if the batch
        stands for a part of its records, has gaps that compaction left, has timestamps
        of the broker, or has message format 0 or 1. It cannot write one that claims
        more records than its bytes can hold.
        """
        batch = self._batch
        return (
            isinstance(batch, RecordBatch)
            and self.first_offset == batch.base_offset
            and self.next_offset == batch.next_offset
            and 0 < batch.count == self.next_offset - self.first_offset
            and batch.timestamp_type is TimestampType.CREATE
            and _may_hold(batch)
        )

    def records(self) -> list[Record]:
        """Return the records that the batch stands for, with bytes as keys and values.

        They are decompressed with each call.

        Raises:
            CorruptRecord: the records cannot be decoded.
            RecordTooLarge: they decompress to more than ``max_decompressed_batch_size``
                of the consumer.
        """
        # With a decompressor of its own: that of the consumer may be in another thread.
        limit = self._batch._max_decompressed
        [batch] = read_batches(self.data, check_crcs=False, max_decompressed=limit)
        cursor = batch.iterate(self.topic, self.partition, self.first_offset)
        end = self.next_offset
        return list(takewhile(lambda record: record.offset < end, cursor))


def _may_hold(batch: RecordBatch) -> bool:
    """Whether the bytes of a batch may hold as many records as it claims."""
    # Without this, a header alone would make as many results as it likes.
    size = batch.size_bytes - BATCH_HEADER_SIZE
    if batch.compression is not Compression.NONE:
        size = batch._max_decompressed
    return batch.count <= size // MIN_RECORD_SIZE


class EncodedBatch:
    """The records of a fetched batch, in the place of a producer's `BatchBuilder`.

    Args:
        batch: a whole one.
        transactional: whether it becomes part of a transaction.

    Attributes:
        count: number of records.
        size_bytes: size of the batch, exact.
        first_timestamp: the timestamp that those of the records are relative to.
        compression: the codec.
    """

    __slots__ = (
        "_attributes",
        "_batch",
        "compression",
        "count",
        "first_timestamp",
        "size_bytes",
    )

    def __init__(self, batch: RawBatch, *, transactional: bool = False) -> None:
        fetched = batch._batch
        assert isinstance(fetched, RecordBatch)  # as it is whole
        self._batch = fetched
        codec = fetched.compression
        self.compression: Compression = codec
        self.count: int = fetched.count
        self.size_bytes: int = fetched.size_bytes
        self.first_timestamp: int = fetched.base_timestamp
        # Not in the attributes: the mark of a delete horizon (KIP-534), which is the
        # broker's. The records' timestamps are relative to it as to any other base.
        self._attributes: int = codec | TRANSACTIONAL if transactional else codec

    def build(
        self,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        partition_leader_epoch: int = -1,
    ) -> bytes:
        """Return the batch, with the producer's state in its header."""
        return b"".join(
            self.build_parts(
                producer_id, producer_epoch, base_sequence, partition_leader_epoch
            )
        )

    def build_parts(
        self,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        partition_leader_epoch: int = -1,
    ) -> tuple[bytes, bytes | memoryview]:
        """Return what ``build`` does as header and records, without copying these.

        A small batch is all in the first part: a view takes longer than the copy.
        """
        batch = self._batch
        is_small = self.size_bytes < _VIEWED
        header = batch.renumbered(
            self._attributes,
            producer_id,
            producer_epoch,
            base_sequence,
            partition_leader_epoch,
            whole=is_small,
        )
        if is_small:
            return header, b""
        # Not `raw`, which would take as long as the rest.
        return header, memoryview(batch._data)[BATCH_HEADER_SIZE:]

    def records(self) -> Iterator[PlainRecord]:
        """Yield the records, to split a batch that a broker refuses as too large.

        Raises:
            CorruptRecord: the records cannot be decoded.
            RecordTooLarge: they decompress to more than the consumer allows.
        """
        limit = self._batch._max_decompressed
        batch = RecordBatch(self.build(), Decompressor(), limit)
        for record in batch.iterate("", 0):
            yield record.timestamp, record.key, record.value, record.headers

    def __repr__(self) -> str:
        codec = self.compression.name.lower()
        return f"<EncodedBatch {codec} | {self.count} records, {self.size_bytes} bytes>"


def plain_records(batch: RawBatch) -> Sequence[tuple[int, PlainRecord]]:
    """Return the records that a batch stands for, each with its offset.

    Raises:
        CorruptRecord: the records cannot be decoded.
        RecordTooLarge: they decompress to more than the consumer allows.
    """
    return [
        (record.offset, (record.timestamp, record.key, record.value, record.headers))
        for record in batch.records()
    ]
