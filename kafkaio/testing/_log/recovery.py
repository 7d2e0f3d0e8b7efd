"""The steps of `Log.open`: find the segments, verify them, repair them after a crash.

After it every batch is intact, and every segment but the newest is complete. A segment
that compaction was about to remove, and everything after the first bad batch, is
removed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kafkaio.testing._log.epochs import LeaderEpochs
from kafkaio.testing._log.segment import Segment
from kafkaio.testing._log.storage import StoragePort, read_whole, write_whole

#: Suffix of the file that compaction writes before it replaces a segment.
CLEANED_SUFFIX = ".cleaned"
_SCRATCH_SUFFIXES = (CLEANED_SUFFIX, ".tmp")
_START_FILE = "log-start-offset-checkpoint"
_SEGMENT = re.compile(r"(\d{20})\.log")
_INDEX = re.compile(r"(\d{20})\.(?:index|timeindex)")


@dataclass(frozen=True, slots=True)
class Recovery:
    """The result of a recovery.

    Attributes:
        segments: the segments, at least one, oldest first.
        epochs: the leader epochs.
        start_offset: the first offset that can be read.
        problem: the error in the first bad batch, None if all are intact.
        removed_segments: the number of segments that were removed.
    """

    segments: tuple[Segment, ...]
    epochs: LeaderEpochs
    start_offset: int
    problem: str | None
    removed_segments: int


def read_start(storage: StoragePort) -> int:
    """Read the saved start offset, 0 if there is none or it cannot be parsed."""
    lines = read_whole(storage, _START_FILE).split(b"\n")
    is_sound = len(lines) > 1 and lines[0] == b"0" and lines[1].isdigit()
    return int(lines[1]) if is_sound else 0


def write_start(storage: StoragePort, offset: int) -> None:
    """Save the start offset: a line with the version, a line with the offset."""
    write_whole(storage, _START_FILE, b"0\n%d\n" % offset)


def recover(storage: StoragePort, index_interval: int, now_ms: int) -> Recovery:
    """Recover the log in ``storage``; afterwards every batch is intact."""
    bases = _remove_leftovers(storage)
    epochs = LeaderEpochs(storage)
    kept: list[Segment] = []
    problem: str | None = None
    removed = 0
    for base in bases:
        segment = Segment(storage, base, index_interval, now_ms)
        # A segment that begins below the end of the one before was about to be removed
        # by compaction when the process ended: its records are in the one before.
        is_leftover = kept and base < kept[-1].next_offset
        if problem is not None or is_leftover:
            segment.remove()
            removed += 1
            continue
        problem = segment.recover(epochs)
        kept.append(segment)
    return _completed(storage, index_interval, now_ms, (kept, epochs, problem, removed))


def _remove_leftovers(storage: StoragePort) -> list[int]:
    # Returns the base offsets of the segments, sorted.
    names = storage.names()
    bases = sorted(int(m[1]) for m in map(_SEGMENT.fullmatch, names) if m)
    for name in names:
        index = _INDEX.fullmatch(name)
        is_orphan = index is not None and int(index[1]) not in bases
        # Files that were being written when the process ended have these suffixes: the
        # originals are still there.
        if is_orphan or name.endswith(_SCRATCH_SUFFIXES):
            storage.remove(name)
    return bases


def _completed(
    storage: StoragePort,
    index_interval: int,
    now_ms: int,
    found: tuple[list[Segment], LeaderEpochs, str | None, int],
) -> Recovery:
    kept, epochs, problem, removed = found
    start = read_start(storage)
    if kept and kept[-1].next_offset < start:
        # Records were deleted up to an offset that was lost in the crash: everything
        # that is left is below the start.
        for segment in kept:
            segment.remove()
        kept = []
    # A log has one segment at least, which the next batch is appended to.
    if not kept:
        kept = [Segment(storage, start, index_interval, now_ms)]
    for segment in kept[:-1]:
        segment.complete()
    storage.sync()
    start = max(start, kept[0].base_offset)
    epochs.merge_checkpoint()
    epochs.truncate_end(kept[-1].next_offset)
    epochs.truncate_start(start)
    return Recovery(tuple(kept), epochs, start, problem, removed)
