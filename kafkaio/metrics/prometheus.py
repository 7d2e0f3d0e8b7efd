"""Metrics for Prometheus: counters and histograms of events, and gauges.

This module needs prometheus-client: ``pip install 'kafkaio[prometheus]'``. The metrics
are made once for each registry, for any number of observers. Each combination of labels
is looked up once, and kept. Events do not set gauges: each scrape reads them from
``statistics()``.

With ``PROMETHEUS_MULTIPROC_DIR``, a scrape reads files that many processes have
written. Gauges are then metrics of the library, set at most once a second.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, ref

from kafkaio._dataclass import dataclass
from kafkaio._runtime.observer import (
    AcknowledgedPart,
    AcquiredPart,
    FetchedPart,
    Observed,
)
from kafkaio.errors import ConfigurationError
from kafkaio.metrics._gauges import GAUGES, Figures, put
from kafkaio.metrics._table import Adders, MeasuringObserver, Row
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

__all__ = ["COUNTERS", "HISTOGRAMS", "PrometheusObserver"]

#: Where a bucket of seconds ends.
BUCKETS: Final = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    5,
    10,
)
#: How the gauges of many processes become one; other gauges are added up.
_MODES: Final[Mapping[object, Any]] = {max: "livemax", min: "livemin"}
#: The value of a gauge that is no longer read, since a file keeps its last value: one
#: that does not change the figure of other processes. 0 for other gauges.
_ABSENT: Final[Mapping[object, float]] = {min: inf}
#: Seconds between two settings of the gauges of one of many processes.
_INTERVAL: Final = 1.0


@dataclass(frozen=True, slots=True)
class Family:
    """A metric before it is made.

    Attributes:
        help: its description.
        labels: its labels beside ``client_id``. ``topic`` is followed by ``partition``
            if that was asked for.
    """

    help: str
    labels: tuple[str, ...] = ()


_NODE: Final = ("api", "node")
_TOPIC: Final = ("topic",)

#: The counters, by their names without namespace and ``_total``.
COUNTERS: Final[Mapping[str, Family]] = {
    "connections_opened": Family("Connections that became ready.", ("node",)),
    "connections_lost": Family(
        "Connections that ended, or could not be made, by cause.", ("node", "cause")
    ),
    "authentications": Family(
        "Authentications, by their outcome: ok or failed.",
        ("mechanism", "kind", "outcome"),
    ),
    "requests": Family("Requests sent.", _NODE),
    "request_bytes": Family("Bytes of requests.", _NODE),
    "response_bytes": Family("Bytes of answers.", _NODE),
    "throttle_seconds": Family("Seconds for which quotas forbade sending.", _NODE),
    "retries": Family("Requests and other steps that were repeated."),
    "metadata_refreshes": Family("Times that the metadata was refreshed."),
    "produced_batches": Family("Batches acknowledged.", _TOPIC),
    "produced_records": Family("Records acknowledged.", _TOPIC),
    "produced_bytes": Family("Bytes of acknowledged batches, as sent.", _TOPIC),
    "produced_uncompressed_bytes": Family("The same before compression.", _TOPIC),
    "produce_retried_records": Family("Records sent again.", _TOPIC),
    "produce_failed_records": Family("Records whose delivery failed.", _TOPIC),
    "produce_unawaited_failures": Family(
        "Records that failed, and whose delivery nobody awaited.", _TOPIC
    ),
    "produce_split_batches": Family("Batches that were too large.", _TOPIC),
    "fetched_records": Family("Records fetched.", _TOPIC),
    "fetched_bytes": Family("Bytes of records fetched.", _TOPIC),
    "consumed_records": Family("Records that the user has taken.", _TOPIC),
    "committed_partitions": Family("Offsets committed, counted by partition."),
    "share_acquired_records": Family("Records locked for a share consumer.", _TOPIC),
    "share_acquired_bytes": Family("Bytes of the batches that brought them.", _TOPIC),
    "share_redelivered_records": Family(
        "Records locked that were delivered before.", _TOPIC
    ),
    "share_acknowledged_records": Family(
        "Records acknowledged, by outcome: accepted, released, rejected or gap.",
        ("topic", "outcome"),
    ),
    "share_failed_acknowledgements": Family(
        "Records whose acknowledgement did not count, or whose result is unknown.",
        ("topic", "error"),
    ),
    "share_lost_locks": Family(
        "Records whose lock was lost before a decision.", _TOPIC
    ),
    "share_handler_failures": Family(
        "Records whose handler of run() failed, by what became of them.",
        ("topic", "outcome"),
    ),
    "share_renewed_locks": Family("Records whose lock was renewed.", _TOPIC),
    "failed_commits": Family("Automatic commits that failed.", ("group",)),
    "failed_rebalances": Family("Rebalances that failed.", ("group",)),
    "lost_partitions": Family("Partitions lost to other members."),
}

#: The histograms, all of seconds.
HISTOGRAMS: Final[Mapping[str, Family]] = {
    "request_seconds": Family("From a request to its answer.", _NODE),
    "authentication_seconds": Family("An exchange of credentials.", ("mechanism",)),
    "produce_queue_seconds": Family("From the first record to the request.", _TOPIC),
    "produce_seconds": Family("From the request to the acknowledgement.", _TOPIC),
    "fetch_seconds": Family("From a fetch to its answer.", ("node",)),
    "share_fetch_seconds": Family(
        "From a fetch of a share consumer to its answer.", ("node",)
    ),
    "share_acknowledge_seconds": Family(
        "From an acknowledgement to its answer.", ("node",)
    ),
    "commit_seconds": Family("From a commit to its acknowledgement."),
    "heartbeat_seconds": Family("From a heartbeat to its answer.", ("group",)),
    "rebalance_seconds": Family("Rebalances of a member.", ("group",)),
    "transaction_seconds": Family("Steps of transactions.", ("step",)),
}


class _Families:
    """All metrics of one registry and namespace, and what observes them."""

    def __init__(
        self,
        registry: CollectorRegistry,
        namespace: str,
        buckets: Sequence[float],
        *,
        partition_labels: bool,
    ) -> None:
        from prometheus_client import Counter, Gauge, Histogram

        self.namespace = namespace
        self.partition_labels = partition_labels
        # Not a WeakSet: an exporter's thread iterates over it while others are added.
        self._observers: dict[int, ref[PrometheusObserver]] = {}
        make: dict[str, Any] = {"namespace": namespace, "registry": registry}
        self.counters = {
            name: Counter(name, it.help, self._labels(it.labels), **make)
            for name, it in COUNTERS.items()
        }
        self.histograms = {
            name: Histogram(
                name, it.help, self._labels(it.labels), buckets=buckets, **make
            )
            for name, it in HISTOGRAMS.items()
        }
        self.gauges: dict[str, Any] = {}
        # The last values of the gauges of one of many processes, and their time.
        self._set: Figures = {}
        self._set_at = -inf
        self._setting = Lock()
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            registry.register(self)
            return
        for name, it in GAUGES.items():
            what = (name, it.help, self._gauge_labels(name))
            mode = _MODES.get(it.join, "livesum")
            self.gauges[name] = (
                Counter(*what, **make)
                if it.is_total
                else Gauge(*what, multiprocess_mode=mode, **make)
            )

    def adder(self, name: str, labels: Mapping[str, str]) -> Callable[[float], object]:
        """Return what adds to a counter, or is observed by a histogram.

        Args:
            name: which of them.
            labels: values of its labels; others are left out.
        """
        if (it := COUNTERS.get(name)) is not None:
            values = [labels[label] for label in self._labels(it.labels)]
            return self.counters[name].labels(*values).inc
        values = [labels[label] for label in self._labels(HISTOGRAMS[name].labels)]
        return self.histograms[name].labels(*values).observe

    def _labels(self, labels: tuple[str, ...]) -> list[str]:
        more = ["partition"] if "topic" in labels and self.partition_labels else []
        return ["client_id", *labels, *more]

    def _gauge_labels(self, name: str) -> list[str]:
        by_partition = name == "consumer_lag" and self.partition_labels
        more = ["partition"] if by_partition else []
        return ["client_id", *GAUGES[name].labels, *more]

    def add(self, observer: PrometheusObserver) -> None:
        """Read the gauges of an observer for as long as it exists."""
        key, observers = id(observer), self._observers
        observers[key] = ref(observer, lambda _: observers.pop(key, None))

    def describe(self) -> Iterator[Metric]:
        """Part of prometheus-client's Collector: nothing is read to register it."""
        return iter(self._metrics().values())

    def collect(self) -> Iterator[Metric]:
        """Part of prometheus-client's Collector: read every gauge now."""
        metrics = self._metrics()
        for (name, labels), value in self._joined().items():
            metrics[name].add_metric(labels, value)
        return iter(metrics.values())

    def _joined(self) -> Figures:
        """Read the figures of all observers, as one for each combination of labels."""
        joined: Figures = {}
        for weak in list(self._observers.values()):
            observer = weak()
            if observer is None:
                continue
            for name, labels, value in observer.sources.readings():
                put(joined, name, (observer.client_id, *labels), value)
        return joined

    def set_gauges(self, at: float) -> None:
        """Set the gauges of one of many processes, if a second has passed.

        Args:
            at: the time in seconds; ``inf`` sets them in any case.
        """
        if at < self._set_at + _INTERVAL or not self._setting.acquire(blocking=False):
            return  # another thread is doing so
        try:
            if at < inf:
                self._set_at = at
            figures = self._joined()
            # Gauges of closed objects: totals stay, and the others lose their value.
            for key in self._set.keys() - figures.keys():
                it = GAUGES[key[0]]
                figures[key] = (
                    self._set[key] if it.is_total else _ABSENT.get(it.join, 0)
                )
            for key, value in figures.items():
                name, labels = key
                child = self.gauges[name].labels(*labels)
                if GAUGES[name].is_total:
                    # A counter of the library takes differences. It is never less: the
                    # total of an object that was collected unclosed is lost.
                    child.inc(max(0.0, value - self._set.get(key, 0.0)))
                else:
                    child.set(value)
            self._set = figures
        finally:
            self._setting.release()

    def _metrics(self) -> dict[str, Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        return {
            name: (CounterMetricFamily if it.is_total else GaugeMetricFamily)(
                f"{self.namespace}_{name.removesuffix('_total')}",
                it.help,
                labels=self._gauge_labels(name),
            )
            for name, it in GAUGES.items()
        }


#: The families of each registry, by namespace.
_made: WeakKeyDictionary[CollectorRegistry, dict[str, _Families]] = WeakKeyDictionary()


def _families(
    registry: CollectorRegistry,
    namespace: str,
    buckets: Sequence[float],
    *,
    partition_labels: bool,
) -> _Families:
    of_registry = _made.setdefault(registry, {})
    found = of_registry.get(namespace)
    if found is None:
        found = of_registry[namespace] = _Families(
            registry, namespace, buckets, partition_labels=partition_labels
        )
    if found.partition_labels is not partition_labels:
        raise ConfigurationError(
            f"the registry has metrics {namespace}_* with another partition_labels: "
            "take another namespace or registry"
        )
    return found


class PrometheusObserver(MeasuringObserver, exporter="prometheus"):
    """Counts events for Prometheus.

    One observer may serve several clients, and several observers may share a registry.
    A scrape may come in any thread. After a fork, the child's gauges are those of its
    own clients. ``docs/guide/metrics.md`` lists the metrics.

    Args:
        registry: where the metrics are registered; prometheus-client's own by default.
        namespace: the beginning of their names.
        client_id: the label ``client_id`` of each.
        partition_labels: whether figures of topics have a label ``partition``. That
            makes a time series for each partition and metric.
        buckets: where the buckets of histograms end, in seconds. The first observer of
            a registry and namespace decides.

    Attributes:
        client_id: the label.
        sources: the objects that gauges are read from.

    Raises:
        ImportError: prometheus-client is not installed.
        ConfigurationError: the registry has the same metrics with other labels.
    """

    def __init__(
        self,
        registry: CollectorRegistry | None = None,
        namespace: str = "kafkaio",
        *,
        client_id: str = "kafkaio",
        partition_labels: bool = False,
        buckets: Sequence[float] = BUCKETS,
    ) -> None:
        if registry is None:
            from prometheus_client import REGISTRY

            registry = REGISTRY
        super().__init__(partition_labels=partition_labels)
        self.client_id = client_id
        self._families = _families(
            registry, namespace, buckets, partition_labels=partition_labels
        )
        self._families.add(self)

    def _make_adders(self, row: Row, labels: Mapping[str, object]) -> Adders:
        texts = {name: str(value) for name, value in labels.items()}
        texts["client_id"] = self.client_id
        return [
            (self._families.adder(name, texts), index)
            for index, name in enumerate(row.prometheus)
        ]

    def closed(self, kind: str, name: str, source: Observed) -> None:
        """Read its gauges no longer."""
        super().closed(kind, name, source)
        if self._families.gauges:
            self._families.set_gauges(inf)

    def request_answered(
        self, api: str, version: int, node_id: int, seconds: float, size: int
    ) -> None:
        """Count its time and its bytes."""
        # Requests are often enough, and rare enough, to set the gauges beside them.
        self._measure("request_answered", api, version, node_id, seconds, size)
        if self._families.gauges:
            self._families.set_gauges(time.monotonic())

    def fetch_answered(
        self,
        node_id: int,
        seconds: float,
        parts: Mapping[TopicPartition, FetchedPart],
    ) -> None:
        """Count its time, and the records and bytes of each topic."""
        measure = self._measure
        measure("fetch_answered", node_id, seconds, parts)
        for tp, part in parts.items():
            measure("fetched_part", tp, part)

    def records_acquired(
        self,
        group: str,
        node_id: int,
        seconds: float,
        parts: Mapping[TopicPartition, AcquiredPart],
    ) -> None:
        """Count its time, and the records and bytes of each topic."""
        self._measure("records_acquired", group, node_id, seconds, parts)
        self._measure_acquired(parts)

    def records_acknowledged(
        self,
        group: str,
        node_id: int,
        seconds: float,
        parts: Mapping[TopicPartition, AcknowledgedPart],
    ) -> None:
        """Count its time, and the records of each topic and outcome."""
        self._measure("records_acknowledged", group, node_id, seconds, parts)
        self._measure_outcomes(parts)

    def rebalance(
        self,
        state: str,
        assigned: Collection[TopicPartition],
        revoked: Collection[TopicPartition],
        lost: Collection[TopicPartition],
    ) -> None:
        """Count the partitions that were lost."""
        if lost:
            self._measure("rebalance", state, assigned, revoked, lost)
