"""One segment: a file of batches, its two indexes, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkaio._records.batch import Decompressor, RecordBatch
from kafkaio._records.compression import BytesLike
from kafkaio.testing.log.epochs import LeaderEpochs
from kafkaio.testing.log.errors import CorruptBatchError
from kafkaio.testing.log.header import (
    BATCH_HEADER_SIZE,
    BatchHeader,
    check_batch,
    read_header,
)
from kafkaio.testing.log.index import OffsetIndex, TimeIndex
from kafkaio.testing.log.storage import Storage, StoredFile
from kafkaio.types import Record

__all__ = ["MAX_RELATIVE", "Segment", "StoredBatch", "decode", "name_of"]

#: The greatest distance of an offset from its segment's base: indexes hold 32 bits.
MAX_RELATIVE = 2**31 - 1
_CHUNK = 256 * 1024
_NOT_YET = -1


class StoredBatch(NamedTuple):
    """A batch in its place: ``raw`` is all of it, header included."""

    position: int
    header: BatchHeader
    raw: bytes


def name_of(base_offset: int, suffix: str) -> str:
    """The name of a segment's file, ``suffix`` being ``.log``, ``.index`` and so on."""
    return f"{base_offset:020d}{suffix}"


def decode(raw: bytes, start_offset: int = 0) -> list[Record]:
    """Open a stored batch.

    Raises:
        CorruptRecord: its records cannot be decompressed or decoded.
    """
    return RecordBatch(raw, Decompressor()).decode("", 0, start_offset)


class Segment:
    """One segment. Its checks are those of `Log`; it trusts what it is given.

    Args:
        storage: where its files are.
        base_offset: the offset it is named by, which no batch of it is below.
        index_interval: bytes of log between two index entries.
        created_ms: stands in where no record has a timestamp.

    Attributes:
        base_offset: as above.
        next_offset: the offset after the last batch, the base if there is none.
        size_bytes: bytes of batches.
        first_timestamp: greatest timestamp of the first batch, -1 if none.
        max_timestamp: the greatest timestamp, -1 if none.
        created_ms: as above.
    """

    __slots__ = (
        "_file",
        "_interval",
        "_max_timestamp_offset",
        "_offsets",
        "_since_entry",
        "_storage",
        "_times",
        "_written",
        "base_offset",
        "created_ms",
        "first_timestamp",
        "max_timestamp",
        "next_offset",
        "size_bytes",
    )

    def __init__(
        self, storage: Storage, base_offset: int, index_interval: int, created_ms: int
    ) -> None:
        self._storage = storage
        self._interval = index_interval
        self._file: StoredFile = storage.open(name_of(base_offset, ".log"))
        # How many entries of each index its file has; unknown until written whole.
        self._written: tuple[int, int] = (_NOT_YET, _NOT_YET)
        self.base_offset = base_offset
        self.created_ms = created_ms
        self._forget()

    def _forget(self) -> None:
        self._offsets = OffsetIndex(self.base_offset)
        self._times = TimeIndex(self.base_offset)
        self._since_entry = 0
        self._max_timestamp_offset = self.base_offset
        self.first_timestamp = -1
        self.max_timestamp = -1
        self.next_offset = self.base_offset
        self.size_bytes = 0

    @property
    def largest_timestamp(self) -> int:
        """What retention counts the age from."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.created_ms

    # Writing

    def append(self, header: BatchHeader, raw: BytesLike) -> None:
        """Write a batch at the end; it is not flushed."""
        self._file.append(raw)
        self._note(header)

    def _note(self, header: BatchHeader) -> None:
        # The rules of Kafka's own index entries, which its log dump checks.
        if self.first_timestamp < 0:
            self.first_timestamp = header.max_timestamp
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
            self._max_timestamp_offset = header.last_offset
        if self._since_entry > self._interval:
            self._offsets.append(header.last_offset, self.size_bytes)
            self._times.append(self.max_timestamp, self._max_timestamp_offset)
            self._since_entry = 0
        self._since_entry += header.size
        self.size_bytes += header.size
        self.next_offset = header.next_offset

    def flush(self) -> None:
        """Return once no power cut can take a batch; writes the indexes as well."""
        self._file.flush()
        self._save_indexes()

    def seal(self) -> None:
        """Flush the segment, and `complete` it."""
        self._file.flush()
        self.complete()

    def complete(self) -> None:
        """End the time index, write both indexes and give back the handle."""
        self._times.append(self.max_timestamp, self._max_timestamp_offset)
        self._save_indexes()
        self._file.close()

    def close(self) -> None:
        """Give back the handle; the next use opens it again."""
        self._file.close()

    def replace_by(self, scratch: str) -> None:
        """Take a flushed file of batches in place of this one; `recover` reads it."""
        self._file.close()
        self._storage.replace(scratch, name_of(self.base_offset, ".log"))
        self._storage.sync()
        self._file = self._storage.open(name_of(self.base_offset, ".log"))
        self._written = (_NOT_YET, _NOT_YET)

    def _save_indexes(self) -> None:
        # They are never flushed: recovery makes them anew from the batches.
        offsets, times = self._offsets, self._times
        before = self._written
        self._save(".index", before[0], len(offsets), offsets.encode(max(before[0], 0)))
        self._save(".timeindex", before[1], len(times), times.encode(max(before[1], 0)))
        self._written = (len(offsets), len(times))

    def _save(self, suffix: str, before: int, count: int, entries: bytes) -> None:
        if before == count:
            return
        file = self._storage.open(name_of(self.base_offset, suffix))
        if before == _NOT_YET:
            file.truncate(0)
        file.append(entries)
        file.close()

    def truncate_to(self, offset: int) -> None:
        """Remove the batch that has ``offset``, and all after it."""
        position = self.find(offset)
        if position is not None:
            self._cut(position)

    def _cut(self, position: int) -> None:
        kept = [batch.header for batch in self.batches(0, position)]
        self._file.truncate(position)
        self._file.flush()
        self._written = (_NOT_YET, _NOT_YET)
        self._forget()
        for header in kept:
            self._note(header)

    def remove(self) -> None:
        """Remove the files."""
        self._file.close()
        for suffix in (".log", ".index", ".timeindex"):
            self._storage.remove(name_of(self.base_offset, suffix))

    def recover(self, epochs: LeaderEpochs) -> str | None:
        """Verify each batch, learn of it, and cut the file off at the first bad one.

        Returns:
            What was wrong with the first bad one, None if all are good.
        """
        self._forget()
        problem: str | None = None
        try:
            for batch in self.batches(0, self._file.size):
                self._verify(batch)
                self._note(batch.header)
                epochs.assign(batch.header.leader_epoch, batch.header.base_offset)
        except CorruptBatchError as error:
            problem = f"{error} (position {self.size_bytes})"
            self._file.truncate(self.size_bytes)
            self._file.flush()
        return problem

    def _verify(self, batch: StoredBatch) -> None:
        check_batch(batch.header, batch.raw)
        if not self.next_offset <= batch.header.base_offset:
            raise CorruptBatchError(
                f"offset {batch.header.base_offset} follows {self.next_offset - 1}"
            )
        if batch.header.last_offset - self.base_offset > MAX_RELATIVE:
            raise CorruptBatchError(
                f"offset {batch.header.last_offset} is in segment {self.base_offset}"
            )

    # Reading

    def batches(
        self, position: int = 0, end: int | None = None
    ) -> Iterator[StoredBatch]:
        """Yield the batches from ``position``, which one begins at, to ``end``.

        Raises:
            CorruptBatchError: the next one is cut off or has an impossible header;
                its checksum is not looked at.
        """
        end = self.size_bytes if end is None else end
        chunk, start = b"", position
        while position < end:
            inside = position - start
            if len(chunk) - inside < BATCH_HEADER_SIZE:
                chunk, start, inside = self._chunk(position, end, _CHUNK), position, 0
            header = read_header(chunk, inside)
            if len(chunk) - inside < header.size:
                if position + header.size > end:
                    raise CorruptBatchError(
                        f"the batch at offset {header.base_offset} has "
                        f"{end - position} of {header.size} bytes"
                    )
                wanted = max(header.size, _CHUNK)
                chunk, start, inside = self._chunk(position, end, wanted), position, 0
            raw = chunk[inside : inside + header.size]
            yield StoredBatch(position, header, raw)
            position += header.size

    def _chunk(self, position: int, end: int, wanted: int) -> bytes:
        return self._file.read(position, min(wanted, end - position))

    def _headers(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        while position < self.size_bytes:
            header = read_header(self._file.read(position, BATCH_HEADER_SIZE))
            yield position, header
            position += header.size

    def find(self, offset: int) -> int | None:
        """Position of the batch that has ``offset``, or else of the next one."""
        if offset >= self.next_offset:
            return None
        for position, header in self._headers(self._offsets.position_before(offset)):
            if header.last_offset >= offset:
                return position
        return None

    def read(self, offset: int, max_bytes: int, up_to: int, *, min_one: bool) -> bytes:
        """Read whole batches from the one that has ``offset``; see `Log.read`."""
        start = self.find(offset)
        if start is None:
            return b""
        if up_to >= self.next_offset and self.size_bytes - start <= max_bytes:
            return self._file.read(start, self.size_bytes - start)
        end = start
        known = self._offsets.last_position(start + max_bytes, up_to)
        for position, header in self._headers(max(start, known)):
            if header.next_offset > up_to:
                end = position
                break
            end = position + header.size
            if end - start > max_bytes:
                end = end if min_one and position == start else position
                break
        return self._file.read(start, end - start)

    def first_at(
        self, timestamp: int, start_offset: int
    ) -> tuple[int, int, int] | None:
        """Offset, timestamp and leader epoch of the first record that is not older.

        Raises:
            CorruptRecord: a batch cannot be opened.
        """
        if self.max_timestamp < timestamp:
            return None
        begin = max(self._times.offset_before(timestamp), start_offset)
        position = self.find(begin)
        if position is None:
            return None
        for batch in self.batches(position):
            if batch.header.max_timestamp < timestamp:
                continue
            for record in decode(batch.raw, start_offset):
                if record.timestamp >= timestamp:
                    epoch = batch.header.leader_epoch
                    return record.offset, record.timestamp, epoch
        return None
