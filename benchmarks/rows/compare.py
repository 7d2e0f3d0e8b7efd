"""Figures of a run beside those of other clients: ratios, and the bars.

A ratio is one of costs: what kafkaio spends, as a share of what the other spends. For
rates it is the other's rate as a share of kafkaio's. Below 1 kafkaio is ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.rows.model import Bar, Measure, Row, Way

OURS = "kafkaio"


@dataclass(frozen=True)
class Line:
    """One figure of kafkaio, and those of the others.

    Attributes:
        row: the work.
        way: how kafkaio did it.
        measure: what the figure is.
        figure: kafkaio's.
        peers: the best of each other client, by name.
        bar: the bound of the figure itself, if there is a bar whose base was measured.
    """

    row: Row
    way: Way
    measure: Measure
    figure: float
    peers: Mapping[str, float]
    bar: float | None

    @property
    def key(self) -> str:
        """The line's name in the series."""
        call = self.way.call.replace("`", "").replace(" ", "-")
        return "/".join(filter(None, [self.row.name, self.measure.name, call]))

    @property
    def fastest(self) -> str:
        """The other client whose figure is best."""
        best = max if self.measure.is_rate else min
        return best(self.peers, key=lambda name: self.peers[name])

    @property
    def ratio(self) -> float:
        return cost(self.figure, self.peers[self.fastest], self.measure)

    @property
    def is_held(self) -> bool | None:
        """Whether the figure is within its bar; None without one."""
        if self.bar is None:
            return None
        return cost(self.figure, self.bar, self.measure) <= 1


def cost(figure: float, other: float, measure: Measure) -> float:
    above, below = (other, figure) if measure.is_rate else (figure, other)
    return above / below if below else float("inf")


class Run:
    """The medians of a run, as ``--json`` wrote them."""

    def __init__(self, run: Mapping[str, object], table: Sequence[Row]) -> None:
        rows = run["rows"]
        assert isinstance(rows, Mapping)
        self._rows = rows
        self._table = [row for row in table if row.name in rows]

    def lines(self) -> Iterator[Line]:
        """Yield what kafkaio did, in the order of the table."""
        for row in self._table:
            for measure in row.measures:
                peers = self._peers(row, measure)
                for way in row.ways:
                    figure = self.figure(row.name, way.label, measure)
                    if way.client != OURS or figure is None:
                        continue
                    bar = way.bars.get(measure.name)
                    bound = None if bar is None else self._bound(row, measure, bar)
                    yield Line(row, way, measure, figure, peers, bound)

    def figure(self, row: str, label: str, measure: Measure) -> float | None:
        """Return a median, if it was measured."""
        figures = self._rows.get(row, {}).get("ways", {}).get(label, {})
        found = figures.get(measure.name)
        return None if found is None else float(found["median"])

    def _peers(self, row: Row, measure: Measure) -> dict[str, float]:
        found: dict[str, float] = {}
        best = max if measure.is_rate else min
        for way in row.ways:
            figure = self.figure(row.name, way.label, measure)
            if way.client != OURS and figure is not None:
                found[way.client] = best(figure, found.get(way.client, figure))
        return found

    def _bound(self, row: Row, measure: Measure, bar: Bar) -> float | None:
        if bar.absolute is not None:
            return bar.absolute
        base: float | None
        if bar.way:
            label = f"{OURS} {bar.way}"
            base = self.figure(bar.row or row.name, label, measure)
        else:
            peers = self._peers(row, measure)
            best = max if measure.is_rate else min
            fastest = best(peers.values(), default=None)
            base = peers.get(bar.client) if bar.client else fastest
        return None if base is None else base * bar.ratio
