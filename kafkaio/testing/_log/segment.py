"""One segment of a log: a file of batches and its two indexes.

The indexes are kept in memory and written when the segment is flushed. Their files are
never needed: recovery builds the indexes from the batches again.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkaio._named_tuple import NamedTuple
from kafkaio._records.batch import Decompressor, RecordBatch
from kafkaio._records.compression import BytesLike
from kafkaio.testing._log.epochs import LeaderEpochs
from kafkaio.testing._log.errors import CorruptBatchError
from kafkaio.testing._log.header import (
    BATCH_HEADER_SIZE,
    LogBatchHeader,
    check_batch,
    read_header,
)
from kafkaio.testing._log.index import OffsetIndex, TimeIndex
from kafkaio.testing._log.storage import StoragePort, StoredFilePort
from kafkaio.types import Record

#: The greatest offset relative to the segment's base: indexes have 32 bits for it.
MAX_RELATIVE = 2**31 - 1
_CHUNK = 256 * 1024
_NOT_YET = -1


class StoredBatch(NamedTuple):
    """A batch and its position in the file; ``raw`` is the whole batch with header."""

    position: int
    header: LogBatchHeader
    raw: bytes


def name_of(base_offset: int, suffix: str) -> str:
    """The name of a segment's file with a suffix such as ``.log`` or ``.index``."""
    return f"{base_offset:020d}{suffix}"


def decode(raw: bytes, start_offset: int = 0) -> list[Record]:
    """Decode the records of a stored batch, from ``start_offset`` on.

    Raises:
        CorruptRecord: its records cannot be decompressed or decoded.
    """
    return RecordBatch(raw, Decompressor()).decode("", 0, start_offset)


class Segment:
    """One segment. The `Log` checks what it appends; a segment does not.

    Args:
        storage: has its files.
        base_offset: the offset in its name; no batch begins below it.
        index_interval: bytes of log between two index entries.
        created_ms: its age counts from here if no record has a timestamp.

    Attributes:
        base_offset: as above.
        next_offset: the offset after the last batch; the base offset if there is none.
        size_bytes: size of the batches in bytes.
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
        self,
        storage: StoragePort,
        base_offset: int,
        index_interval: int,
        created_ms: int,
    ) -> None:
        self._storage = storage
        self._interval = index_interval
        self._file: StoredFilePort = storage.open(name_of(base_offset, ".log"))
        # The number of entries in the files of the indexes; unknown until the files
        # were written from the start.
        self._written: tuple[int, int] = (_NOT_YET, _NOT_YET)
        self.base_offset: int = base_offset
        self.created_ms: int = created_ms
        self._reset()

    def _reset(self) -> None:
        self._offsets = OffsetIndex(self.base_offset)
        self._times = TimeIndex(self.base_offset)
        self._since_entry = 0
        self._max_timestamp_offset = self.base_offset
        self.first_timestamp: int = -1
        self.max_timestamp: int = -1
        self.next_offset: int = self.base_offset
        self.size_bytes: int = 0

    @property
    def largest_timestamp(self) -> int:
        """The time from which retention counts the age."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.created_ms

    # Writing

    def append(self, header: LogBatchHeader, raw: BytesLike) -> None:
        """Write a batch at the end; it is not flushed."""
        self._file.append(raw)
        self._index(header)

    def _index(self, header: LogBatchHeader) -> None:
        # Kafka's rules for index entries: its log dump tool checks them.
        if self.first_timestamp < 0:
            self.first_timestamp = header.max_timestamp
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
            # The offset of the batch's end, as in Kafka: the batch is searched for the
            # record itself.
            self._max_timestamp_offset = header.last_offset
        if self._since_entry > self._interval:
            self._offsets.append(header.last_offset, self.size_bytes)
            self._times.append(self.max_timestamp, self._max_timestamp_offset)
            self._since_entry = 0
        self._since_entry += header.size
        self.size_bytes += header.size
        self.next_offset = header.next_offset

    def flush(self) -> None:
        """Flush the batches and write the indexes."""
        self._file.flush()
        self._save_indexes()

    def seal(self) -> None:
        """Flush the segment, and `complete` it."""
        self._file.flush()
        self.complete()

    def complete(self) -> None:
        """Add the last entry of the time index, write both indexes, close the file."""
        self._times.append(self.max_timestamp, self._max_timestamp_offset)
        self._save_indexes()
        self._file.close()

    def close(self) -> None:
        """Close the file; it is opened again on next use."""
        self._file.close()

    def replace_by(self, scratch: str) -> None:
        """Replace the file of batches by a flushed one; the caller has to `recover`."""
        self._file.close()
        self._storage.replace(scratch, name_of(self.base_offset, ".log"))
        self._storage.sync()
        self._file = self._storage.open(name_of(self.base_offset, ".log"))
        self._written = (_NOT_YET, _NOT_YET)

    def _save_indexes(self) -> None:
        # They need no flush: recovery builds them from the batches again.
        offsets, times = self._offsets, self._times
        before = self._written
        self._save(".index", before[0], len(offsets), offsets.encode(max(before[0], 0)))
        self._save(".timeindex", before[1], len(times), times.encode(max(before[1], 0)))
        self._written = (len(offsets), len(times))

    def _save(self, suffix: str, before: int, count: int, entries: bytes) -> None:
        if before == count:
            return
        file = self._storage.open(name_of(self.base_offset, suffix))
        # The content of the file may be from before a crash or a truncation.
        if before == _NOT_YET:
            file.truncate(0)
        file.append(entries)
        file.close()

    def truncate_to(self, offset: int) -> None:
        """Remove the batch that has ``offset``, and everything after it."""
        position = self.find(offset)
        if position is not None:
            self._truncate(position)

    def _truncate(self, position: int) -> None:
        kept = [batch.header for batch in self.batches(0, position)]
        self._file.truncate(position)
        self._file.flush()
        self._written = (_NOT_YET, _NOT_YET)
        self._reset()
        for header in kept:
            self._index(header)

    def remove(self) -> None:
        """Remove the files."""
        self._file.close()
        for suffix in (".log", ".index", ".timeindex"):
            self._storage.remove(name_of(self.base_offset, suffix))

    def recover(self, epochs: LeaderEpochs) -> str | None:
        """Verify each batch, index it, and truncate the file at the first bad one.

        Returns:
            The error in the first bad batch, None if all are intact.
        """
        self._reset()
        problem: str | None = None
        try:
            for batch in self.batches(0, self._file.size):
                self._verify(batch)
                self._index(batch.header)
                epochs.assign(batch.header.leader_epoch, batch.header.base_offset)
        except CorruptBatchError as error:
            problem = f"{error} (position {self.size_bytes})"
            # Up to the last intact batch; what follows cannot be trusted, even if it
            # looks sound.
            self._file.truncate(self.size_bytes)
            self._file.flush()
        return problem

    def _verify(self, batch: StoredBatch) -> None:
        check_batch(batch.header, batch.raw)
        # Gaps are sound: compaction leaves them.
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
        """Yield the batches from ``position``, where one begins, to ``end``.

        Raises:
            CorruptBatchError: the next one is truncated or has an impossible header.
                Checksums are not verified.
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

    def _headers(self, position: int) -> Iterator[tuple[int, LogBatchHeader]]:
        while position < self.size_bytes:
            header = read_header(self._file.read(position, BATCH_HEADER_SIZE))
            yield position, header
            position += header.size

    def find(self, offset: int) -> int | None:
        """The position of the batch that has ``offset``, or else of the next one."""
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
        # The usual case, a reader at the end: no header has to be read.
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
                # A batch that is larger than the limit is returned alone, or its reader
                # could never pass it.
                end = end if min_one and position == start else position
                break
        return self._file.read(start, end - start)

    def first_at(
        self, timestamp: int, start_offset: int
    ) -> tuple[int, int, int] | None:
        """Find the first record whose timestamp is at least ``timestamp``.

        Returns:
            Its offset, timestamp and leader epoch; None if there is none.

        Raises:
            CorruptRecord: a batch cannot be decoded.
        """
        if self.max_timestamp < timestamp:
            return None
        begin = max(self._times.offset_before(timestamp), start_offset)
        position = self.find(begin)
        if position is None:
            return None
        for batch in self.batches(position):
            # Only a batch that has such a record is decompressed.
            if batch.header.max_timestamp < timestamp:
                continue
            for record in decode(batch.raw, start_offset):
                if record.timestamp >= timestamp:
                    epoch = batch.header.leader_epoch
                    return record.offset, record.timestamp, epoch
        return None
