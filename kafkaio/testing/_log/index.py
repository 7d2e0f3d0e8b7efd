"""The two sparse indexes of a segment, in memory and in Kafka's file format.

Each index gets an entry with the first batch after ``index_interval_bytes`` were
written since the last entry. An entry of the offset index is the *last* offset and the
position of that batch; an entry of the time index is the greatest timestamp so far,
and the last offset of the first batch that has it. Both are searched by bisection.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from kafkaio._named_tuple import NamedTuple

#: Offset relative to the segment's base, and position.
OFFSET_ENTRY = struct.Struct(">ii")
#: Timestamp, and offset relative to the segment's base.
TIME_ENTRY = struct.Struct(">qi")


class OffsetEntry(NamedTuple):
    """``offset`` is the last offset of the batch at ``position`` in the segment."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """The greatest timestamp so far, and the last offset of the first batch with it."""

    timestamp: int
    offset: int


class OffsetIndex:
    """Maps offsets to positions in one segment.

    Attributes:
        base_offset: the offset that those in the file are relative to.
    """

    __slots__ = ("_offsets", "_positions", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset: int = base_offset
        self._offsets = array("q")
        self._positions = array("q")

    def __len__(self) -> int:
        return len(self._offsets)

    def append(self, offset: int, position: int) -> None:
        """Add an entry; both numbers have to be greater than the last ones."""
        self._offsets.append(offset)
        self._positions.append(position)

    def position_before(self, offset: int) -> int:
        """The greatest known position from which a scan finds ``offset``."""
        found = bisect_right(self._offsets, offset) - 1
        return self._positions[found] if found >= 0 else 0

    def last_position(self, position: int, before: int) -> int:
        """The greatest known position of a batch within two limits; 0 for none.

        Args:
            position: the batch begins here or before.
            before: its last offset is below this one.
        """
        found = bisect_right(self._positions, position)
        found = min(found, bisect_left(self._offsets, before)) - 1
        return self._positions[found] if found >= 0 else 0

    def encode(self, start: int = 0) -> bytes:
        """The file's bytes from entry ``start`` on."""
        base = self.base_offset
        pairs = zip(self._offsets[start:], self._positions[start:], strict=True)
        return b"".join(OFFSET_ENTRY.pack(o - base, p) for o, p in pairs)


class TimeIndex:
    """Maps timestamps to offsets in one segment.

    Attributes:
        base_offset: the offset that those in the file are relative to.
    """

    __slots__ = ("_offsets", "_timestamps", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset: int = base_offset
        self._timestamps = array("q")
        self._offsets = array("q")

    def __len__(self) -> int:
        return len(self._timestamps)

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry, unless its timestamp is not greater than the last one."""
        if timestamp < 0 or (self._timestamps and timestamp <= self._timestamps[-1]):
            return
        self._timestamps.append(timestamp)
        self._offsets.append(offset)

    def offset_before(self, timestamp: int) -> int:
        """The greatest known offset from which a scan finds the first such record."""
        found = bisect_right(self._timestamps, timestamp) - 1
        return self._offsets[found] if found >= 0 else self.base_offset

    def encode(self, start: int = 0) -> bytes:
        """The file's bytes from entry ``start`` on."""
        base = self.base_offset
        pairs = zip(self._timestamps[start:], self._offsets[start:], strict=True)
        return b"".join(TIME_ENTRY.pack(t, o - base) for t, o in pairs)


def read_offset_index(data: bytes, base_offset: int) -> Iterator[OffsetEntry]:
    """Yield the entries of an ``.index`` file.

    Kafka preallocates the file of its newest segment, so an entry of zeros ends it: the
    first batch of a segment never has an entry. A truncated last entry is left out.
    """
    whole = len(data) - len(data) % OFFSET_ENTRY.size
    for relative, position in OFFSET_ENTRY.iter_unpack(memoryview(data)[:whole]):
        if relative == 0 and position == 0:
            return
        yield OffsetEntry(base_offset + relative, position)


def read_time_index(data: bytes, base_offset: int) -> Iterator[TimeEntry]:
    """Yield the entries of a ``.timeindex`` file; see `read_offset_index`."""
    whole = len(data) - len(data) % TIME_ENTRY.size
    for timestamp, relative in TIME_ENTRY.iter_unpack(memoryview(data)[:whole]):
        if timestamp == 0 and relative == 0:
            return
        yield TimeEntry(timestamp, base_offset + relative)
