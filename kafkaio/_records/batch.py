"""Record batches: the names that the rest of kafkaio imports from this package.

`BatchBuilder` writes batches of message format 2. `read_batches` reads the records of a
Fetch response, which can be of any message format that Kafka has had.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from kafkaio._records._acquired import (
    ACCEPT as ACCEPT,
    DONE as DONE,
    FAILED as FAILED,
    GAP as GAP,
    HELD as HELD,
    LOST as LOST,
    REJECT as REJECT,
    RELEASE as RELEASE,
    STATE as STATE,
    TAKEN as TAKEN,
)
from kafkaio._records._impl import (
    Acquired as Acquired,
    AcquiredCursor as AcquiredCursor,
    ColumnsBuilder as ColumnsBuilder,
    Handout as Handout,
    Record as Record,
    RecordCursor as RecordCursor,
    Rows as Rows,
    ShareRecord as ShareRecord,
    acquired_of as acquired_of,
    column_partitions as column_partitions,
    converted as converted,
    settle as settle,
)
from kafkaio._records._layout import (
    BATCH_HEADER_SIZE,
    LENGTH_END,
    MAGIC_OFFSET,
    MIN_LEGACY_LENGTH,
    MOST_BYTES as MOST_BYTES,
    BinaryColumn as BinaryColumn,
    BinaryView as BinaryView,
    BytesLike,
    Columns as Columns,
    DecodedColumns as DecodedColumns,
    Destinations as Destinations,
    HeaderColumns as HeaderColumns,
    HeaderView as HeaderView,
)
from kafkaio._records.builder import (
    BatchBuilder as BatchBuilder,
    PlainRecord as PlainRecord,
    encode_batch as encode_batch,
    with_base_offset as with_base_offset,
    with_log_append_time as with_log_append_time,
)
from kafkaio._records.compression import (
    DEFAULT_LIMIT,
    Compression as Compression,
    Compressor as Compressor,
    Decompressor as Decompressor,
)
from kafkaio._records.control import (
    ControlType as ControlType,
    EndTxnMarker as EndTxnMarker,
    control_batch as control_batch,
    parse_end_txn_marker as parse_end_txn_marker,
)
from kafkaio._records.view import RecordBatch as RecordBatch
from kafkaio.errors import CorruptRecord

if TYPE_CHECKING:
    from kafkaio._records.legacy import LegacyBatch

#: A batch of any format: each has the attributes and methods of `RecordBatch`.
Batch: TypeAlias = "RecordBatch | LegacyBatch"

_PREFIX = struct.Struct(">qi")
_LENGTH_AND_MAGIC = struct.Struct(">8x i 4x b")
_MIN_LENGTH = BATCH_HEADER_SIZE - LENGTH_END
# The base offset, the delta of the last offset, and the number of records.
_EXTENT = struct.Struct(">q 15x i 30x i")


def read_batches(
    data: BytesLike,
    *,
    check_crcs: bool = True,
    max_decompressed: int = DEFAULT_LIMIT,
    decompressor: Decompressor | None = None,
) -> Iterator[Batch]:
    """Yield the batches of one partition in a Fetch response, one by one.

    The batches refer to ``data``, which must not change as long as they exist, or until
    `RecordBatch.detach`. An incomplete last batch is left out; if it is the only one,
    `first_batch_size` returns the size that a fetch needs for it.

    Args:
        data: the ``records`` field of the response.
        check_crcs: whether to verify the checksum of each batch.
        max_decompressed: the most bytes that the records of one batch may decompress
            to.
        decompressor: the decompressor to use; None for a new one. A consumer keeps one,
            because its contexts are expensive to create.

    Raises:
        CorruptRecord: the next batch is corrupt. Those before it were yielded.
    """
    view = memoryview(data)
    decompressor = decompressor or Decompressor()
    position = 0
    while True:
        # The length and the magic byte stand at the same place in every format.
        if len(view) - position > MAGIC_OFFSET:
            length, magic = _LENGTH_AND_MAGIC.unpack_from(view, position)
        else:
            length = magic = -1
        is_usual = magic == 2 and length >= _MIN_LENGTH
        size = LENGTH_END + length if is_usual else _size_at(view, position)
        # A broker cuts the last batch at the limit of bytes: that is not an error.
        if size is None or position + size > len(view):
            return
        raw = view[position : position + size]
        batch: Batch
        if is_usual:
            batch = RecordBatch(raw, decompressor, max_decompressed)
        else:
            # Few topics are so old, and each batch of theirs is large.
            from kafkaio._records.legacy import LegacyBatch

            batch = LegacyBatch(bytes(raw), decompressor, max_decompressed)
        if check_crcs:
            batch.check_crc()
        yield batch
        position += size


def first_batch_size(data: BytesLike) -> int | None:
    """Return the size of the first batch in ``data``, even if it is incomplete.

    Returns:
        The size in bytes; None if ``data`` is too short to know it.

    Raises:
        CorruptRecord: the length or the magic byte is impossible.
    """
    return _size_at(data, 0)


def claimed_end(data: BytesLike) -> int:
    """Return the offset after a batch whose header may be wrong.

    Returns:
        The offset; -1 unless the batch has message format 2, and its header says twice
        how many offsets it has. A batch that was compacted says it once: it has fewer
        records than offsets.
    """
    if len(data) < _EXTENT.size or data[MAGIC_OFFSET] != 2:
        return -1
    base: int
    base, delta, count = _EXTENT.unpack_from(data)
    return base + count if base >= 0 and count == delta + 1 > 0 else -1


def _size_at(data: BytesLike, position: int) -> int | None:
    rest = len(data) - position
    if rest < LENGTH_END:
        return None
    offset, length = _PREFIX.unpack_from(data, position)
    if length < MIN_LEGACY_LENGTH:
        raise CorruptRecord(f"the batch at offset {offset} has the length {length}")
    if rest <= MAGIC_OFFSET:
        return None
    # Checked before the length is believed: a wrong length would skip good batches, or
    # make a fetch ask for gigabytes.
    magic = data[position + MAGIC_OFFSET]
    if magic > 2:
        raise CorruptRecord(f"the batch at offset {offset} has the magic byte {magic}")
    if magic == 2 and length < _MIN_LENGTH:
        raise CorruptRecord(f"the batch at offset {offset} has the length {length}")
    size: int = LENGTH_END + length
    return size
