"""Gauges: figures that are read from ``statistics()`` at each scrape or export.

`kafkaio.Observer.started` and ``closed`` report clients, producers and consumers.
`Sources` keeps weak references to them, and reads them in any thread. Figures of
several objects with the same labels become one, as `GAUGES` says: their sum, their
greatest or their least.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Any, Final, TypeAlias
from weakref import ref

from kafkaio._dataclass import dataclass
from kafkaio._named_tuple import NamedTuple
from kafkaio._runtime.observer import Observed

#: Attempts at a snapshot, which fails if the event loop's thread changes a dict.
_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class Gauge:
    """One figure.

    Attributes:
        help: its description.
        labels: the names of its labels, beside those that every figure has.
        join: combines the figures of several objects.
        is_total: whether it only grows, so that the figure of a closed object stays.
    """

    help: str
    labels: tuple[str, ...] = ()
    join: Callable[[float, float], float] = float.__add__
    is_total: bool = False


_GROUP: Final = ("group",)
_TOPIC: Final = ("group", "topic")
_QUERY: Final = ("query",)
#: The metrics of a source of Spark's own connector, and the figures that they become.
_BEHIND: Final = {
    "minOffsetsBehindLatest": "query_offsets_behind_min",
    "maxOffsetsBehindLatest": "query_offsets_behind_max",
    "avgOffsetsBehindLatest": "query_offsets_behind_avg",
}

#: Every figure, by its name without namespace. The lags have the label ``partition`` if
#: that was asked for.
GAUGES: Final[Mapping[str, Gauge]] = {
    "connections": Gauge("Open connections."),
    "requests_in_flight": Gauge("Requests without an answer."),
    "metadata_age_seconds": Gauge("Seconds since the last metadata.", join=max),
    "buffer_bytes": Gauge("Bytes of the producer's buffer in use."),
    "buffer_limit_bytes": Gauge("Bytes of the producer's buffer."),
    "buffer_waiting_calls": Gauge("Calls that wait for buffer memory."),
    "buffer_wait_seconds_total": Gauge(
        "Seconds that calls have waited for buffer memory.", is_total=True
    ),
    "buffer_timeouts_total": Gauge(
        "Calls that waited for buffer memory longer than max_block_ms.", is_total=True
    ),
    "consumer_assigned_partitions": Gauge("Assigned partitions.", _GROUP),
    "consumer_buffer_bytes": Gauge("Bytes fetched and not handed out.", _GROUP),
    "consumer_idle_seconds_total": Gauge(
        "Seconds in which the consumer waited for records.", _GROUP, is_total=True
    ),
    "consumer_lag": Gauge("Offsets between position and end of the log.", _TOPIC),
    "consumer_lag_max": Gauge("The greatest lag of a partition.", _TOPIC, join=max),
    "consumer_lead_min": Gauge(
        "The fewest offsets between the start of a log and the position.",
        _TOPIC,
        join=min,
    ),
    "share_assigned_partitions": Gauge(
        "Assigned partitions of share consumers.", _GROUP
    ),
    "share_records_in_flight": Gauge("Records that are locked.", _GROUP),
    "share_buffered_records": Gauge("Records fetched and not handed out.", _GROUP),
    "share_buffer_bytes": Gauge("Their bytes.", _GROUP),
    "share_idle_seconds_total": Gauge(
        "Seconds in which the share consumer waited for records.", _GROUP, is_total=True
    ),
    "query_lag": Gauge(
        "Offsets that a streaming query of Spark is behind.", ("query", "topic")
    ),
    "query_offsets_behind_min": Gauge(
        "The fewest offsets that a partition of a query is behind.", _QUERY, join=min
    ),
    "query_offsets_behind_max": Gauge(
        "The most offsets that a partition of a query is behind.", _QUERY, join=max
    ),
    "query_offsets_behind_avg": Gauge(
        "Offsets that partitions of a query are behind on average.", _QUERY, join=max
    ),
}


class GaugeReading(NamedTuple):
    """A figure of one moment.

    Attributes:
        name: which of `GAUGES`.
        labels: the values of its labels.
        value: the figure.
    """

    name: str
    labels: tuple[str, ...]
    value: float


#: Figures by name and labels.
Figures: TypeAlias = dict[tuple[str, tuple[str, ...]], float]


class Sources:
    """The objects that have started and not closed, for one observer.

    Args:
        partition_labels: whether the figures of partitions have a label for each.
    """

    def __init__(self, *, partition_labels: bool = False) -> None:
        self._by_partition = partition_labels
        self._open: dict[int, tuple[str, str, int, ref[Observed]]] = {}
        # The totals of closed objects: a counter must never go back.
        self._past: Figures = {}

    def add(self, kind: str, name: str, source: Observed) -> None:
        """Note an object that has started."""
        # The callback refers to the dict, and not to `self`, which would live as long.
        key, open_ = id(source), self._open
        # Removes an object that is collected without having been closed.
        weak = ref(source, lambda _: open_.pop(key, None))
        open_[key] = kind, name, os.getpid(), weak

    def remove(self, source: Observed) -> None:
        """Note that an object has closed; its totals stay."""
        found = self._open.pop(id(source), None)
        if found is None:
            return
        for reading in self._read(found[0], found[1], source):
            if GAUGES[reading.name].is_total:
                put(self._past, *reading)

    def readings(self) -> list[GaugeReading]:
        """Read every figure now; objects of a parent process are left out."""
        figures = dict(self._past)
        # A copy: other threads add and remove objects meanwhile.
        for kind, name, pid, weak in list(self._open.values()):
            source = weak()
            # After a fork, the parent's objects are in memory, and belong to the
            # parent: it reports them.
            if source is None or pid != os.getpid():
                continue
            for reading in self._read(kind, name, source):
                put(figures, *reading)
        return [GaugeReading(*key, value) for key, value in figures.items()]

    def _read(self, kind: str, name: str, source: Observed) -> list[GaugeReading]:
        for _ in range(_ATTEMPTS):
            try:
                statistics = source.statistics()
            except RuntimeError:
                # The event loop's thread has changed a dict during the iteration.
                continue
            return list(self._readings(kind, name, statistics))
        return []

    def _readings(
        self, kind: str, name: str, statistics: Any
    ) -> Iterator[GaugeReading]:
        if kind == "client":
            yield from _of_client(statistics)
        elif kind == "producer":
            yield from _of_producer(statistics)
        elif kind == "consumer":
            yield from _of_consumer(name, statistics)
            for (topic, partition), place in statistics.partitions.items():
                labels: tuple[str, ...] = (name, topic)
                if self._by_partition:
                    labels = (name, topic, str(partition))
                if place.lag is not None:
                    yield GaugeReading("consumer_lag", labels, place.lag)
                    yield GaugeReading("consumer_lag_max", (name, topic), place.lag)
                if place.lead is not None:
                    yield GaugeReading("consumer_lead_min", (name, topic), place.lead)
        elif kind == "share_consumer":
            yield from _of_share_consumer(name, statistics)
        elif kind == "query":
            yield from _of_query(name, statistics)


def put(figures: Figures, name: str, labels: tuple[str, ...], value: float) -> None:
    """Add a reading to figures, joined with an earlier one of the same labels."""
    key = name, labels
    before = figures.get(key)
    value = float(value)
    figures[key] = value if before is None else GAUGES[name].join(before, value)


def _of_client(statistics: Any) -> Iterator[GaugeReading]:
    connections = statistics.connections
    yield GaugeReading("connections", (), len(connections))
    in_flight = sum(connection.in_flight for connection in connections)
    yield GaugeReading("requests_in_flight", (), in_flight)
    if statistics.metadata_age != inf:
        yield GaugeReading("metadata_age_seconds", (), statistics.metadata_age)


def _of_producer(statistics: Any) -> Iterator[GaugeReading]:
    yield GaugeReading("buffer_bytes", (), statistics.buffer.used_bytes)
    yield GaugeReading("buffer_limit_bytes", (), statistics.buffer_memory)
    yield GaugeReading("buffer_waiting_calls", (), statistics.waiting_for_room)
    yield GaugeReading("buffer_wait_seconds_total", (), statistics.waited_for_room)
    yield GaugeReading("buffer_timeouts_total", (), statistics.room_timeouts)


def _of_consumer(group: str, statistics: Any) -> Iterator[GaugeReading]:
    yield GaugeReading("consumer_assigned_partitions", (group,), statistics.assigned)
    yield GaugeReading("consumer_buffer_bytes", (group,), statistics.buffered_bytes)
    yield GaugeReading("consumer_idle_seconds_total", (group,), statistics.idle_seconds)


def _of_share_consumer(group: str, statistics: Any) -> Iterator[GaugeReading]:
    yield GaugeReading("share_assigned_partitions", (group,), statistics.assigned)
    yield GaugeReading("share_records_in_flight", (group,), statistics.in_flight)
    yield GaugeReading("share_buffered_records", (group,), statistics.buffered)
    yield GaugeReading("share_buffer_bytes", (group,), statistics.buffered_bytes)
    yield GaugeReading("share_idle_seconds_total", (group,), statistics.idle_seconds)


def _of_query(query: str, statistics: Any) -> Iterator[GaugeReading]:
    for (topic, _), lag in statistics.lag.items():
        yield GaugeReading("query_lag", (query, topic), lag)
    for metric, name in _BEHIND.items():
        if metric in statistics.metrics:
            yield GaugeReading(name, (query,), statistics.metrics[metric])
