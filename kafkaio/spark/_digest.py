"""A digest of rows that does not depend on their order.

A repeated task must have the same rows, but a shuffle may give them in another order
and in other batches. So the digest is a sum of hashes, one for each row.

Arrow and the codec's murmur2 work on whole columns: no Python object is made for a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from kafkaio._records.batch import BinaryView, column_partitions
from kafkaio.spark._marker_state import RowSum

#: The version of the algorithm: digests of different versions cannot be compared. It
#: is stored in markers, so any change of the code below needs a new number.
_WAY: Final = 1
#: A prime: `column_partitions` then returns nearly all of murmur2's 31 bits.
_HASHES: Final = 2**31 - 1
#: An odd constant (2**64 over the golden ratio), as in Fibonacci hashing: a product
#: with it loses no bit. The shift brings high bits down; a product only moves bits up.
_FACTOR: Final = pa.scalar(0x9E3779B97F4A7C15, pa.uint64())
_SHIFT: Final = pa.scalar(29, pa.uint64())
_MODULUS: Final = 2**64
#: The hash of a null; murmur2's results have 31 bits, so no text has the same.
_NULL: Final = pa.scalar(0xD6E8FEB86659FD93, pa.uint64())
#: Every column that can be written; their order is part of the way.
_COLUMNS: Final = ("key", "value", "headers", "topic", "partition", "timestamp")


class RowDigest:
    """Counts rows and sums up their hashes.

    The sum does not depend on the order of the rows, nor on how they are divided into
    batches; equal rows count as often as they occur. The hash of a row is of all its
    columns together, so that rows which exchange their values are noticed. A row that
    differs stays unnoticed with a probability of about 2**-31: enough against chance,
    but not against an attacker.

    It costs 0.05 us a row of 100 bytes with the compiled codec, and 9 us without.

    Attributes:
        rows: number of rows.
    """

    def __init__(self) -> None:
        self.rows: int = 0
        self._sum = 0

    def __str__(self) -> str:
        return f"{self._sum:016x}"

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch, in any of the columns that can be written."""
        columns = []
        for number, name in enumerate(_COLUMNS):
            place = batch.schema.get_field_index(name)
            if place >= 0:
                columns.append((number, batch.column(place)))
        hashes = _together(columns, batch.num_rows)
        self.rows += batch.num_rows
        self._sum = (self._sum + (pc.sum(hashes).as_py() or 0)) % _MODULUS

    @property
    def found(self) -> RowSum:
        """The sum of the rows so far, as markers store it."""
        return RowSum(self.rows, self._sum, _WAY)


def _together(columns: Iterable[tuple[int, pa.Array]], length: int) -> pa.Array:
    """Return one hash for each row of numbered columns."""
    hashes = pa.repeat(pa.scalar(1, pa.uint64()), length)
    for number, column in columns:
        # The number tells a column from another one with the same values.
        weight = pa.scalar(2 * number + 3, pa.uint64())
        hashes = _mixed(pc.add(pc.multiply(hashes, weight), _hashes(column)))
    return _mixed(hashes)


def _mixed(hashes: pa.Array) -> pa.Array:
    hashes = pc.multiply(hashes, _FACTOR)
    return pc.bit_wise_xor(hashes, pc.shift_right(hashes, _SHIFT))


def _hashes(column: pa.Array) -> pa.Array:
    """Return the hash of each value of a column, as uint64."""
    kind = column.type
    if pa.types.is_null(kind):
        return pa.repeat(_NULL, len(column))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list_hashes(column)
    # Numbers are their own hashes: `_together` mixes them.
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        numbers = column.cast(pa.int64()).view(pa.uint64())
        return pc.fill_null(numbers, _NULL)
    if not (pa.types.is_large_binary(kind) or pa.types.is_binary(kind)):
        column = column.cast(pa.large_binary())
    # The buffers themselves: a slice of an array shares them, from its offset on.
    validity, offsets, data = column.buffers()
    view = BinaryView(
        None if validity is None else memoryview(validity),
        memoryview(offsets),
        b"" if data is None else memoryview(data),
        column.offset,
        8 if pa.types.is_large_binary(column.type) else 4,
    )
    raw = column_partitions(view, 0, len(column), _HASHES)
    found = pa.Array.from_buffers(pa.int32(), len(column), [None, pa.py_buffer(raw)])
    return found.cast(pa.int64()).view(pa.uint64())


def _list_hashes(column: pa.Array) -> pa.Array:
    """Return the hash of each list of structs: of the fields, in their order."""
    lengths = pc.list_value_length(column).cast(pa.int64())
    counts = pc.fill_null(lengths, 0)
    zero = pa.array([0], pa.int64())
    bounds = pa.concat_arrays([zero, pc.cumulative_sum(counts)])
    starts, ends = bounds[:-1], bounds[1:]
    # `flatten` leaves out the entries under a null, as `bounds` does: the child array
    # of a null list may have some.
    entries = column.flatten()
    # The place in its list is hashed, too: another order of headers is another list.
    lists = pa.LargeListArray.from_arrays(bounds, entries)
    numbers = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), len(entries)))
    places = pc.subtract(numbers, starts.take(pc.list_parent_indices(lists)))
    fields = enumerate([*entries.flatten(), places])
    hashes = _together(fields, len(entries))
    # The sum of a list is the difference of two running sums, which may overflow: both
    # wrap around at 2**64, and so does their difference.
    sums = pa.concat_arrays([zero.view(pa.uint64()), pc.cumulative_sum(hashes)])
    found = pc.subtract(sums.take(ends), sums.take(starts))
    return pc.add(found, pc.fill_null(lengths.view(pa.uint64()), _NULL))
