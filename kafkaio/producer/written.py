"""Where many records were written, without an object for each until it is asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TypeAlias, overload

from kafkaio._records._impl import metadata_run
from kafkaio.types import RecordMetadata

__all__ = ["Run", "Written"]

#: Topic, partition, offset of the first (-1 if unknown), how many, their timestamp.
Run: TypeAlias = tuple[str, int, int, int, int]


class Written(Sequence[RecordMetadata]):
    """A sequence of `RecordMetadata` that makes each when it is taken.

    It is read-only, keeps nothing of the producer, and equals any sequence with the
    same items. A slice is a list.
    """

    __slots__ = ("_ends", "_runs")

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = list(runs)
        # Of each run, how many records there are up to its end.
        self._ends = list(accumulate(run[3] for run in self._runs))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, at: int, /) -> RecordMetadata: ...

    @overload
    def __getitem__(self, at: slice, /) -> list[RecordMetadata]: ...

    def __getitem__(self, at: int | slice, /) -> RecordMetadata | list[RecordMetadata]:
        places = range(len(self))[at]
        if isinstance(places, range):
            return [self._at(place) for place in places]
        return self._at(places)

    def _at(self, place: int) -> RecordMetadata:
        number = bisect_right(self._ends, place)
        topic, partition, offset, count, timestamp = self._runs[number]
        if offset >= 0:
            offset += place - (self._ends[number] - count)
        return RecordMetadata(topic, partition, offset, timestamp)

    def __iter__(self) -> Iterator[RecordMetadata]:
        for run in self._runs:
            yield from metadata_run(*run)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(
            mine == theirs for mine, theirs in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        if len(self) > 10:
            return f"<{len(self)} RecordMetadata, {self[0]!r} to {self[-1]!r}>"
        return repr(list(self))
