"""A partition's log as a list of batches, for brokers that keep nothing on disk."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple, Protocol

from kafkaio._records.batch import read_batches
from kafkaio._records.builder import with_base_offset, with_log_append_time
from kafkaio.protocol.message import Buffer
from kafkaio.testing.broker.batches import BatchHeader, headers_of

__all__ = ["Appended", "Found", "LogSettings", "MemoryLog", "PartitionLog"]


class Appended(NamedTuple):
    """Where a batch came to lie; the time is -1 where the producer's is kept."""

    base_offset: int
    last_offset: int
    log_append_time: int


class Found(NamedTuple):
    """A record that a timestamp leads to."""

    offset: int
    timestamp: int
    leader_epoch: int


class LogSettings(Protocol):
    """The topic settings that a log in memory heeds."""

    @property
    def uses_log_append_time(self) -> bool:
        """Whether the broker sets the timestamps."""


class PartitionLog(Protocol):
    """What a partition needs of its log."""

    @property
    def start_offset(self) -> int:
        """The first offset that can be read."""

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""

    def append(self, batch: Buffer, *, leader_epoch: int, now_ms: int) -> Appended:
        """Append one batch that was checked before."""

    def read(self, offset: int, max_bytes: int, *, min_one: bool = True) -> bytes:
        """Whole batches from the one with ``offset`` on."""

    def offset_for_timestamp(self, timestamp: int) -> Found | None:
        """The first record that is not older than ``timestamp``."""

    def max_timestamp(self) -> Found | None:
        """The first record with the greatest timestamp."""

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The last epoch up to ``epoch``, and where it ends; (-1, -1) if unknown."""

    def delete_records(self, before: int) -> None:
        """Make what lies before an offset unreadable."""

    def close(self) -> None:
        """Write out what has to be."""


class MemoryLog:
    """The batches of one partition; a PartitionLog. Nothing expires."""

    def __init__(self, settings: LogSettings) -> None:
        self._settings = settings
        self._headers: list[BatchHeader] = []
        self._data: list[bytes] = []
        self._last_offsets: list[int] = []
        self._epochs: list[tuple[int, int]] = []
        self.start_offset = 0
        self.end_offset = 0

    def append(self, batch: Buffer, *, leader_epoch: int, now_ms: int) -> Appended:
        """Append one batch that was checked before."""
        append_time = now_ms if self._settings.uses_log_append_time else -1
        data = with_base_offset(batch, self.end_offset, leader_epoch)
        if append_time >= 0:
            data = with_log_append_time(data, append_time)
        header = next(headers_of(data))
        if not self._epochs or self._epochs[-1][0] < leader_epoch:
            self._epochs.append((leader_epoch, header.base_offset))
        self._headers.append(header)
        self._data.append(data)
        self._last_offsets.append(header.last_offset)
        self.end_offset = header.last_offset + 1
        return Appended(header.base_offset, header.last_offset, append_time)

    def read(self, offset: int, max_bytes: int, *, min_one: bool = True) -> bytes:
        """Whole batches from the one with ``offset`` on.

        Args:
            offset: where to begin; the batch around it may begin earlier.
            max_bytes: how much there may be.
            min_one: whether the first batch comes even if it is larger than that.
        """
        first = bisect_left(self._last_offsets, offset)
        size, last = 0, first
        for data in self._data[first:]:
            if size + len(data) > max_bytes and not (min_one and last == first):
                break
            size += len(data)
            last += 1
        return b"".join(self._data[first:last])

    def offset_for_timestamp(self, timestamp: int) -> Found | None:
        """The first record that is not older than ``timestamp``."""
        for header, data in zip(self._headers, self._data, strict=True):
            if header.max_timestamp >= timestamp:
                for record in _records(data):
                    if record[1] >= timestamp and record[0] >= self.start_offset:
                        return Found(*record, header.leader_epoch)
        return None

    def max_timestamp(self) -> Found | None:
        """The first record with the greatest timestamp."""
        if not self._headers:
            return None
        greatest = max(header.max_timestamp for header in self._headers)
        return self.offset_for_timestamp(greatest)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The last epoch up to ``epoch``, and where it ends; (-1, -1) if unknown."""
        after = bisect_right(self._epochs, (epoch, self.end_offset))
        if after == 0:
            return -1, -1
        is_last = after == len(self._epochs)
        end = self.end_offset if is_last else self._epochs[after][1]
        return self._epochs[after - 1][0], end

    def delete_records(self, before: int) -> None:
        """Make what lies before an offset unreadable; whole batches are freed."""
        self.start_offset = max(self.start_offset, before)
        gone = bisect_left(self._last_offsets, self.start_offset)
        del self._headers[:gone], self._data[:gone], self._last_offsets[:gone]

    def close(self) -> None:
        """Nothing to do: nothing is kept."""


def _records(data: bytes) -> list[tuple[int, int]]:
    """Offset and timestamp of every record of a batch."""
    return [
        (record.offset, record.timestamp)
        for batch in read_batches(data, check_crcs=False)
        for record in batch.decode("", 0)
    ]
