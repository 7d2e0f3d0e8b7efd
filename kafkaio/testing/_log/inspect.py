"""Reads and checks the files of a log without changing them, for ``kafkaio log``."""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kafkaio._records.batch import (
    Batch,
    Decompressor,
    RecordBatch,
    first_batch_size,
)
from kafkaio._records.compression import DEFAULT_LIMIT
from kafkaio._records.legacy import LegacyBatch
from kafkaio.errors import CorruptRecord, RecordTooLarge
from kafkaio.testing._log.epochs import EPOCH_FILE, EpochEntry, read_epochs
from kafkaio.testing._log.formats import read_producer_snapshot, read_transaction_index
from kafkaio.testing._log.index import read_offset_index, read_time_index

_LARGEST_PREFIX = 17
_SUFFIXES = (".log", ".index", ".timeindex", ".snapshot", ".txnindex")


@dataclass(frozen=True, slots=True)
class FoundBatch:
    """A batch of any message format, and its position in the file."""

    position: int
    batch: Batch


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in a file."""

    path: Path
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


def find_files(path: Path) -> list[Path]:
    """Return the files of logs at or below ``path``, sorted."""
    if path.is_file():
        return [path]
    return sorted(
        file
        for file in path.rglob("*")
        if file.is_file() and (file.suffix in _SUFFIXES or file.name == EPOCH_FILE)
    )


def base_offset_of(path: Path) -> int:
    """Return the offset in the name of a segment's file.

    Raises:
        ValueError: the name does not begin with an offset.
    """
    stem = path.name.split(".")[0].split("-")[0]
    if not stem.isdigit():
        raise ValueError(f"the name {path.name} does not begin with an offset")
    return int(stem)


def read_segment(path: Path) -> Iterator[FoundBatch]:
    """Yield the batches of a ``.log`` file, of any message format.

    Raises:
        CorruptRecord: the next batch is incomplete, or its checksum is wrong.
    """
    decompressor = Decompressor()
    with path.open("rb") as file:
        position = 0
        while prefix := file.read(_LARGEST_PREFIX):
            size = first_batch_size(prefix)
            # The prefix has the size of the batch, which the rest is read by.
            raw = prefix if size is None else prefix + file.read(size - len(prefix))
            if size is None or len(raw) < size:
                raise CorruptRecord(
                    f"the file ends within the batch at position {position}"
                )
            batch: Batch
            # The magic byte is in the same place in all formats.
            if raw[16] == 2:
                batch = RecordBatch(raw, decompressor, DEFAULT_LIMIT)
            else:
                batch = LegacyBatch(raw, decompressor, DEFAULT_LIMIT)
            batch.check_crc()
            yield FoundBatch(position, batch)
            position += size


@dataclass(slots=True)
class _Segment:
    # The verified batches of a segment, to compare its indexes with.
    positions: dict[int, int]
    last_offsets: list[int]
    running_max: list[int]


def verify(path: Path) -> Iterator[Problem]:
    """Check one file of a log; yield the errors.

    Segments: checksums, that records decode, that offsets grow from that in the file's
    name. Indexes: that entries grow, and agree with the batches of the segment.
    Snapshots and transaction indexes: checksums, versions, sizes. Leader epoch
    checkpoints: that they agree with the batches of all segments beside them.
    """
    checks = {
        ".log": _verify_log,
        ".index": _verify_index,
        ".timeindex": _verify_time_index,
        ".snapshot": _verify_snapshot,
        ".txnindex": _verify_transactions,
    }
    check = _verify_epochs if path.name == EPOCH_FILE else checks.get(path.suffix)
    if check is None:
        yield Problem(path, "not a file of a log")
        return
    try:
        for text in check(path):
            yield Problem(path, text)
    except (CorruptRecord, RecordTooLarge, ValueError, IndexError) as error:
        yield Problem(path, str(error) or "truncated")


def _verify_log(path: Path) -> Iterator[str]:
    expected = base_offset_of(path)
    position = 0
    try:
        for found in read_segment(path):
            position, batch = found.position, found.batch
            if batch.base_offset < expected:
                yield f"offset {batch.base_offset} follows {expected - 1} at {position}"
            records = batch.decode("", 0)
            if len(records) != batch.count:
                yield f"the batch at {position} has {len(records)} of {batch.count}"
            expected = batch.next_offset
            position += batch.size_bytes
    except (CorruptRecord, RecordTooLarge) as error:
        yield f"{error} (position {position})"


def _segment_of(path: Path) -> _Segment:
    segment = _Segment({}, [], [])
    newest = -1
    log = path.with_suffix(".log")
    if not log.exists():
        raise ValueError("this segment does not exist")
    # A bad batch is an error of the segment's own file; compare with those before it.
    with contextlib.suppress(CorruptRecord):
        for found in read_segment(log):
            batch = found.batch
            # The time index has the greatest timestamp so far, not that of a batch.
            newest = max(newest, batch.max_timestamp)
            segment.positions[found.position] = batch.next_offset - 1
            segment.last_offsets.append(batch.next_offset - 1)
            segment.running_max.append(newest)
    return segment


def _verify_index(path: Path) -> Iterator[str]:
    segment = _segment_of(path)
    before = (-1, -1)
    for entry in read_offset_index(path.read_bytes(), base_offset_of(path)):
        if entry.offset <= before[0] or entry.position <= before[1]:
            yield f"{entry} follows {before}"
        elif entry.position not in segment.positions:
            yield f"no batch begins at position {entry.position}"
        elif segment.positions[entry.position] != entry.offset:
            actual = segment.positions[entry.position]
            yield f"offset {entry.offset} is indexed at {actual}"
        before = entry


def _verify_time_index(path: Path) -> Iterator[str]:
    segment = _segment_of(path)
    before = (-1, -1)
    for entry in read_time_index(path.read_bytes(), base_offset_of(path)):
        found = bisect_left(segment.last_offsets, entry.offset)
        if entry.timestamp <= before[0] or entry.offset < before[1]:
            yield f"{entry} follows {before}"
        elif found == len(segment.last_offsets):
            yield f"offset {entry.offset} is not in the segment"
        elif segment.last_offsets[found] != entry.offset:
            yield f"offset {entry.offset} ends no batch"
        elif segment.running_max[found] != entry.timestamp:
            yield f"up to {entry.offset} {segment.running_max[found]} is the newest"
        before = entry


def _verify_snapshot(path: Path) -> Iterator[str]:
    offset = base_offset_of(path)
    for entry in read_producer_snapshot(path.read_bytes()):
        if entry.last_offset >= offset:
            yield f"producer {entry.producer_id} is at {entry.last_offset} already"


def _verify_transactions(path: Path) -> Iterator[str]:
    for entry in read_transaction_index(path.read_bytes()):
        if not entry.first_offset <= entry.last_offset:
            yield f"{entry} ends before it begins"


def _verify_epochs(path: Path) -> Iterator[str]:
    entries = read_epochs(path.read_bytes())
    for log in sorted(path.parent.glob("*.log")):
        try:
            for found in read_segment(log):
                yield from _compare_epoch(entries, found.batch)
        except CorruptRecord:
            return  # an error of the segment's own file


def _compare_epoch(entries: list[EpochEntry], batch: Batch) -> Iterator[str]:
    if batch.leader_epoch < 0:
        return
    below = [entry for entry in entries if entry.start_offset <= batch.base_offset]
    # Batches before the first entry belong to epochs that were deleted from the start.
    if below and below[-1].epoch != batch.leader_epoch:
        yield (
            f"the batch at offset {batch.base_offset} has epoch "
            f"{batch.leader_epoch}, not {below[-1].epoch}"
        )
