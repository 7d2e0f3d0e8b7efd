"""Divides ranges of offsets among tasks: a pure function of ranges and options.

A micro-batch that Spark repeats is planned again, in another process. The plan must not
depend on anything else, such as the time, the brokers, or earlier plans: exactly-once
writing needs the same rows in the same task.

Splitting gives the same offsets as ``KafkaOffsetRangeCalculator`` of Spark's own
connector. Bundling is our own, because the start of a Python task costs as much as
reading about 50,000 records.

Invariants: the tasks cover every range exactly once; a task's ranges and the tasks are
in the order of topic, partition and offset, apart from bundled small ranges, which
stand where their first range does; no range is empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from kafkaio.types import OffsetRange

#: The ranges of one task, in the order in which it reads them.
Task = tuple[OffsetRange, ...]


def plan(
    ranges: Iterable[OffsetRange],
    *,
    min_partitions: int | None = None,
    max_records_per_partition: int | None = None,
    min_records_per_task: int = 0,
) -> list[Task]:
    """Divide ranges among tasks.

    Args:
        ranges: at most one for each partition, in any order. Those that are empty, or
            end before they start, are left out.
        min_partitions: split large ranges so that there are about this many.
        max_records_per_partition: split ranges with more offsets than these.
        min_records_per_task: bundle ranges with fewer offsets than these; never to
            fewer than ``min_partitions`` tasks.
    """
    # Sorted, because the order of the brokers' answers may differ in a repetition.
    whole = sorted(r for r in ranges if r.end > r.start)
    split = whole
    if max_records_per_partition is not None:
        split = [
            part
            for r in whole
            for part in _divided(r, math.ceil(_size(r) / max_records_per_partition))
        ]
    if min_partitions is not None and min_partitions > len(split):
        split = _split(split, min_partitions)
    # Bundling must not undo what `min_partitions` asked for.
    spare = len(split) - (min_partitions or 1)
    return _bundled(split, min_records_per_task, spare)


def _size(r: OffsetRange) -> int:
    return r.end - r.start


def _split(ranges: list[OffsetRange], wanted: int) -> list[OffsetRange]:
    """Split the large ranges in proportion, until there are about as many as wanted.

    Ranges too small to be split are set aside first, with one task each.
    """
    total = sum(map(_size, ranges))
    small = [r for r in ranges if _parts(r, total, wanted) == 1]
    rest = total - sum(map(_size, small))
    left = max(wanted - len(small), 1)
    # The connector compares partitions here, and not ranges: where a partition was
    # divided before, one small range keeps all of them whole. Kept, so that both plan
    # the same tasks.
    whole = {r.partition for r in small}
    return [
        part
        for r in ranges
        for part in _divided(r, 1 if r.partition in whole else _parts(r, rest, left))
    ]


def _parts(r: OffsetRange, total: int, wanted: int) -> int:
    # Rounded as Java does: halves go up.
    return max(math.floor(_size(r) / total * wanted + 0.5), 1)


def _divided(r: OffsetRange, parts: int) -> list[OffsetRange]:
    """Divide a range into parts of equal size; the last ones get the remainder."""
    found, start, left = [], r.start, _size(r)
    for part in range(parts):
        size = left // (parts - part)
        left -= size
        if size:
            found.append(OffsetRange(r.partition, start, start + size))
        start += size
    return found


def _bundled(ranges: list[OffsetRange], least: int, spare: int) -> list[Task]:
    """Put small ranges together until each task has ``least`` offsets.

    Args:
        ranges: in their order.
        least: offsets of a task; larger ranges stay alone.
        spare: how many tasks fewer than ranges there may be.
    """
    tasks: list[list[OffsetRange]] = []
    open_task: list[OffsetRange] | None = None
    size = 0
    for r in ranges:
        if _size(r) >= least:
            tasks.append([r])
        elif open_task is None or spare <= 0:
            open_task, size = [r], _size(r)
            tasks.append(open_task)
        else:
            open_task.append(r)
            size += _size(r)
            spare -= 1
        if size >= least:
            open_task, size = None, 0
    return [tuple(task) for task in tasks]
