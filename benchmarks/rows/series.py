"""The ratios of each run that was kept, and whether a new one has fallen behind them.

``benchmarks/series.jsonl`` has an entry a line. Ratios are those of `compare`, each to
the fastest other client of its run, and are compared with those of the same machine
only: another processor moves them by more than a fifth.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

#: A row has fallen if its ratio is so many times the median of the last entries.
FALLEN = 1.2
#: How many of the last entries the median is taken of, and how many there have to be.
LAST, LEAST = 7, 3


@dataclass(frozen=True)
class Entry:
    """One run.

    Attributes:
        commit: what was measured.
        date: when, in UTC.
        machine: its processor and number of cores.
        other: percent of a core that everything else used.
        ratios: by the keys of lines.
    """

    commit: str
    date: str
    machine: str
    other: float
    ratios: Mapping[str, float]

    def line(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class Fall:
    """A ratio that is worse than before."""

    key: str
    before: float
    now: float

    def __str__(self) -> str:
        times = self.now / self.before
        return f"{self.key}: {self.now:.2f}, and before {self.before:.2f} ({times:.2f})"


def parse(text: str) -> list[Entry]:
    """Return the entries of a file, the oldest first."""
    return [Entry(**json.loads(line)) for line in text.splitlines() if line.strip()]


def falls(entry: Entry, series: Iterable[Entry]) -> list[Fall]:
    """Return the ratios of an entry that have fallen, the worst first."""
    alike = [each for each in series if each.machine == entry.machine]
    found = []
    for key, now in entry.ratios.items():
        before = usual(key, alike)
        if before is not None and now > before * FALLEN:
            found.append(Fall(key, before, now))
    return sorted(found, key=lambda fall: -fall.now / fall.before)


def usual(key: str, series: Sequence[Entry]) -> float | None:
    """Return the median of the last ratios, or None if there are too few."""
    last = [each.ratios[key] for each in series if key in each.ratios][-LAST:]
    return statistics.median(last) if len(last) >= LEAST else None


def better_of(first: Entry, again: Entry) -> Entry:
    """Return an entry with the smaller ratio of what was measured twice.

    Other work on the machine can make one run worse. A change of the code makes both.
    """
    ratios = {
        key: min(ratio, again.ratios.get(key, ratio))
        for key, ratio in first.ratios.items()
    }
    return Entry(first.commit, first.date, first.machine, first.other, ratios)
