"""Counts, sums, averages and maxima of numbers, in the same windows as Java's.

Java's averages, maxima and rates cover the last 30 to 60 seconds; its sums cover all
time. `Samples` keeps the sums of two windows. The window turns when the samples are
read, not when a number is added, so that adding needs no clock. If samples are read
less often than that, a window is as long as the interval between two readings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import nan
from typing import Final

from kafkaio._client.telemetry.otlp import Attributes, Point

#: Least seconds of a window; Java's ``metrics.sample.window.ms``.
WINDOW: Final = 30.0


class Samples:
    """Numbers of one kind.

    Attributes:
        count: how many came in the current window.
        total: their sum.
        peak: the greatest of them; 0 without any.
    """

    __slots__ = ("_count", "_peak", "_total", "count", "ever", "peak", "sum", "total")

    def __init__(self) -> None:
        self.count: int = 0
        self.total: float = 0.0
        self.peak: float = 0.0
        # The previous window.
        self._count = 0
        self._total = self._peak = 0.0
        # Count and sum of all windows that have ended: neither ever decreases.
        self.ever: int = 0
        self.sum: float = 0.0

    def add(self, value: float) -> None:
        """Add a number, which is not negative."""
        self.count += 1
        self.total += value
        if value > self.peak:
            self.peak = value

    def include(self, other: Samples) -> None:
        """Add all numbers of another."""
        self.count += other.count
        self.total += other.total
        self.peak = max(self.peak, other.peak)
        self._count += other._count
        self._total += other._total
        self._peak = max(self._peak, other._peak)
        self.ever += other.ever
        self.sum += other.sum

    def turn(self) -> None:
        """Begin a new window; of the one before the last, only the sums are kept."""
        self.ever += self.count
        self.sum += self.total
        self._count, self._total, self._peak = self.count, self.total, self.peak
        self.count, self.total, self.peak = 0, 0.0, 0.0

    @property
    def all_count(self) -> int:
        """Number of all samples since the start."""
        return self.ever + self.count

    @property
    def all_total(self) -> float:
        """Sum of all samples since the start."""
        return self.sum + self.total

    @property
    def recent_count(self) -> int:
        """Number of samples in both windows."""
        return self._count + self.count

    @property
    def recent_total(self) -> float:
        """Sum of the samples in both windows."""
        return self._total + self.total

    @property
    def average(self) -> float:
        """The average over both windows; NaN without a number, as in Java."""
        return self.recent_total / self.recent_count if self.recent_count else nan

    @property
    def greatest(self) -> float:
        """The maximum over both windows; NaN without a number, as in Java."""
        return max(self.peak, self._peak) if self.recent_count else nan


def merged(many: Iterable[Samples]) -> Samples:
    """Return the sum of several samples, such as those of all brokers."""
    one = Samples()
    for each in many:
        one.include(each)
    return one


class Naming:
    """Makes the points of one group of metrics by Java's names.

    Args:
        group: how the names begin, without a final dot.
        span: seconds of both windows.
        attributes: attributes that all of them have.
    """

    __slots__ = ("_attributes", "_group", "_span")

    def __init__(self, group: str, span: float, attributes: Attributes = ()) -> None:
        self._group = group
        self._span = span
        self._attributes = attributes

    def gauge(self, name: str, value: float) -> Point:
        """Return a gauge."""
        return Point(f"{self._group}.{name}", value, self._attributes)

    def sum(self, name: str, value: float) -> Point:
        """Return a sum that only grows."""
        return Point(f"{self._group}.{name}", value, self._attributes, is_sum=True)

    def counted(self, name: str, samples: Samples) -> Iterator[Point]:
        """Yield the rate per second of their number, and the number of all."""
        yield self.gauge(f"{name}.rate", samples.recent_count / self._span)
        yield self.sum(f"{name}.total", samples.all_count)

    def summed(self, name: str, samples: Samples) -> Iterator[Point]:
        """Yield the rate per second of their sum, and the sum of all."""
        yield self.gauge(f"{name}.rate", samples.recent_total / self._span)
        yield self.sum(f"{name}.total", samples.all_total)

    def hourly(self, name: str, samples: Samples) -> Iterator[Point]:
        """Yield the rate per hour of their number, and the number of all."""
        rate = samples.recent_count / self._span * 3600
        yield self.gauge(f"{name}.rate.per.hour", rate)
        yield self.sum(f"{name}.total", samples.all_count)

    def spread(
        self, name: str, samples: Samples, factor: float = 1.0
    ) -> Iterator[Point]:
        """Yield the average and the maximum, each multiplied by a factor."""
        yield self.gauge(f"{name}.avg", samples.average * factor)
        yield self.gauge(f"{name}.max", samples.greatest * factor)
