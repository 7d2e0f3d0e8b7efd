"""Which event of an observer adds what to which metric: one table for all exporters.

A row of `EVENTS` reads the arguments of an event as the values of its labels and its
amounts, and names the metrics of each exporter that get one of these amounts.
`MeasuringObserver` turns the rows into methods. An exporter adds its own parts: how
its metrics are made, spans, contexts.

Invariant: every event of `kafkaio.Observer` has a row or is in `WITHOUT_METRIC`
(`tests/unit/metrics/test_table.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partialmethod
from typing import Final, Literal, TypeAlias

from kafkaio._named_tuple import NamedTuple
from kafkaio._runtime.observer import (
    AcknowledgedPart,
    AcquiredPart,
    FetchedPart,
    Observed,
    Observer,
)
from kafkaio.metrics._gauges import Sources
from kafkaio.types import TopicPartition

#: The values of the labels, then the amounts, each in the order of the row.
Figures: TypeAlias = tuple[tuple[object, ...], tuple[float, ...]]
#: Functions that add an amount to a metric, each with the index of its amount.
Adders: TypeAlias = Sequence[tuple[Callable[[float], object], int]]

_RENEWAL: Final = {True: "renewal", False: "first"}
#: The values of the label ``outcome`` for the figures of an `AcknowledgedPart`.
_OUTCOMES: Final = ("accepted", "released", "rejected", "gap")


class Row(NamedTuple):
    """The measurements of one event.

    Attributes:
        read: has the parameters of the event.
        labels: the names of the values that ``read`` returns. ``partition`` is a
            `TopicPartition`, of which an exporter uses the topic, and the number if
            the user asked for labels of partitions.
        prometheus: the metric of Prometheus that gets each amount; empty for none.
        opentelemetry: likewise for OpenTelemetry.
        operation: the operation of OpenTelemetry's conventions; empty if it is none.
    """

    read: Callable[..., Figures]
    labels: tuple[str, ...]
    prometheus: tuple[str, ...]
    opentelemetry: tuple[str, ...] = ()
    operation: Literal["send", "poll", "commit", "ack", ""] = ""


#: Events that no exporter measures: they are for the log.
WITHOUT_METRIC: Final = frozenset(
    {
        "acknowledgements_missing",
        "assignment_changed",
        "batch_sent",
        "credentials_exposed",
        "dead_letters_at_broker",
        "group_configs_unknown",
        "group_protocol",
        "loop_blocked",
        "new_partitions",
        "partition_unavailable",
        "positions_missing",
        "query_lag",  # a gauge: read from `statistics()`
        "telemetry_ended",
        "topic_unavailable",
    }
)


def _class_of(error: BaseException) -> str:
    return type(error).__name__


def topic_of(
    parts: Mapping[TopicPartition, FetchedPart] | Mapping[TopicPartition, AcquiredPart],
) -> str | None:
    """Return the topic of an answer to a fetch; None if it has several or none."""
    topic = None
    for tp in parts:
        if topic is None:
            topic = tp.topic
        elif tp.topic != topic:
            return None
    return topic


#: What is in events for many partitions, and has a row of its own.
PARTS: Final = frozenset({"fetched_part", "acquired_part", "outcome"})

#: The rows of all events with a metric, and of `PARTS`. ``outcome`` is one of the
#: figures of a partition in ``records_acknowledged``.
EVENTS: Final[Mapping[str, Row]] = {
    "connection_opened": Row(
        lambda node_id, connection_class, host, port: ((node_id,), (1,)),
        ("node",),
        ("connections_opened",),
    ),
    "connection_lost": Row(
        lambda node_id, connection_class, cause: (
            (node_id, "closed" if cause is None else _class_of(cause)),
            (1,),
        ),
        ("node", "cause"),
        ("connections_lost",),
    ),
    "authenticated": Row(
        lambda node_id, connection_class, mechanism, lifetime, seconds, *, is_renewal: (
            (mechanism, _RENEWAL[is_renewal], "ok"),
            (1, seconds),
        ),
        ("mechanism", "kind", "outcome"),
        ("authentications", "authentication_seconds"),
    ),
    "authentication_failed": Row(
        lambda node_id, connection_class, mechanism, error, *, is_renewal: (
            (mechanism, _RENEWAL[is_renewal], "failed"),
            (1,),
        ),
        ("mechanism", "kind", "outcome"),
        ("authentications",),
        ("failed_authentications",),
    ),
    "request_sent": Row(
        lambda api, version, node_id, size: ((api, node_id), (1, size)),
        ("api", "node"),
        ("requests", "request_bytes"),
    ),
    "request_answered": Row(
        lambda api, version, node_id, seconds, size: ((api, node_id), (seconds, size)),
        ("api", "node"),
        ("request_seconds", "response_bytes"),
        ("request", ""),
    ),
    "throttled": Row(
        lambda node_id, seconds, api: ((api, node_id), (seconds,)),
        ("api", "node"),
        ("throttle_seconds",),
    ),
    "metadata_updated": Row(
        lambda brokers, topics: ((), (1,)),
        (),
        ("metadata_refreshes",),
    ),
    "retrying": Row(
        lambda what, attempt, delay, cause: ((_class_of(cause),), (1,)),
        ("error",),
        ("retries",),
        ("retries",),
    ),
    "batch_acknowledged": Row(
        lambda batch: (
            (batch.partition,),
            (
                1,
                batch.records,
                batch.wire_size,
                batch.size,
                batch.queue_seconds,
                batch.seconds,
            ),
        ),
        ("partition",),
        (
            "produced_batches",
            "produced_records",
            "produced_bytes",
            "produced_uncompressed_bytes",
            "produce_queue_seconds",
            "produce_seconds",
        ),
        ("batches", "sent", "", "", "queue", "operation"),
        "send",
    ),
    "batch_retried": Row(
        lambda partition, records, attempts, error: ((partition,), (records,)),
        ("partition",),
        ("produce_retried_records",),
    ),
    "batch_split": Row(
        lambda partition, records: ((partition,), (1,)),
        ("partition",),
        ("produce_split_batches",),
    ),
    "record_failed": Row(
        lambda partition, error, count: ((partition, _class_of(error)), (count,)),
        ("partition", "error"),
        ("produce_failed_records",),
        ("sent",),
        "send",
    ),
    "delivery_lost": Row(
        lambda partition, error, count: ((partition,), (count,)),
        ("partition",),
        ("produce_unawaited_failures",),
    ),
    "transaction_step": Row(
        lambda transactional_id, step, seconds: ((step,), (seconds,)),
        ("step",),
        ("transaction_seconds",),
        ("transaction",),
    ),
    "fetch_answered": Row(
        lambda node_id, seconds, parts: ((node_id, topic_of(parts)), (seconds,)),
        ("node", "topic"),
        ("fetch_seconds",),
        ("operation",),
        "poll",
    ),
    "fetched_part": Row(
        lambda partition, part: ((partition,), part),
        ("partition",),
        ("fetched_records", "fetched_bytes"),
    ),
    "records_handed_out": Row(
        lambda partition, records: ((partition,), (records,)),
        ("partition",),
        ("consumed_records",),
        ("consumed",),
        "poll",
    ),
    "offsets_committed": Row(
        lambda offsets, seconds: ((), (len(offsets), seconds)),
        (),
        ("committed_partitions", "commit_seconds"),
        ("", "operation"),
        "commit",
    ),
    "commit_failed": Row(
        lambda group, error: ((group,), (1,)),
        ("group",),
        ("failed_commits",),
    ),
    "records_acquired": Row(
        lambda group, node_id, seconds, parts: (
            (group, node_id, topic_of(parts)),
            (seconds,),
        ),
        ("group", "node", "topic"),
        ("share_fetch_seconds",),
        ("operation",),
        "poll",
    ),
    "acquired_part": Row(
        lambda partition, part: ((partition,), part),
        ("partition",),
        (
            "share_acquired_records",
            "share_acquired_bytes",
            "share_redelivered_records",
        ),
        ("", "", "redelivered"),
    ),
    "records_acknowledged": Row(
        lambda group, node_id, seconds, parts: ((group, node_id), (seconds,)),
        ("group", "node"),
        ("share_acknowledge_seconds",),
        ("operation",),
        "ack",
    ),
    "outcome": Row(
        lambda partition, outcome, records: ((partition, outcome), (records,)),
        ("partition", "outcome"),
        ("share_acknowledged_records",),
        ("acknowledged",),
    ),
    "acknowledgement_failed": Row(
        lambda group, partition, first_offset, last_offset, error: (
            (partition, _class_of(error)),
            (last_offset - first_offset + 1,),
        ),
        ("partition", "error"),
        ("share_failed_acknowledgements",),
        ("failed_acknowledgements",),
    ),
    "lock_lost": Row(
        lambda group, partition, first_offset, last_offset, error: (
            (partition,),
            (last_offset - first_offset + 1,),
        ),
        ("partition",),
        ("share_lost_locks",),
        ("lost_locks",),
    ),
    "handler_failed": Row(
        lambda group, partition, offset, delivery_count, outcome, error: (
            (partition, outcome),
            (1,),
        ),
        ("partition", "outcome"),
        ("share_handler_failures",),
        ("handler_failures",),
    ),
    "locks_renewed": Row(
        lambda group, node_id, partition, records: ((partition,), (records,)),
        ("partition",),
        ("share_renewed_locks",),
        ("renewed_locks",),
    ),
    "heartbeat_answered": Row(
        lambda group, seconds: ((group,), (seconds,)),
        ("group",),
        ("heartbeat_seconds",),
    ),
    "rebalance_completed": Row(
        lambda group, seconds: ((group,), (seconds,)),
        ("group",),
        ("rebalance_seconds",),
        ("rebalance",),
    ),
    "rebalance_failed": Row(
        lambda group, error: ((group,), (1,)),
        ("group",),
        ("failed_rebalances",),
        ("failed_rebalances",),
    ),
    "rebalance": Row(
        lambda state, assigned, revoked, lost: ((), (len(lost),)),
        (),
        ("lost_partitions",),
    ),
}


class MeasuringObserver(Observer, ABC):
    """An observer whose events add to metrics, as `EVENTS` says.

    A subclass gets a method for each row that its exporter has metrics in, unless it
    has a method of its own, which calls `_measure`. Other events stay without one, so
    that nothing is called for them.

    Args:
        partition_labels: whether figures of topics have a label for the partition.

    Attributes:
        sources: the objects that gauges are read from.
    """

    def __init_subclass__(
        cls, *, exporter: Literal["prometheus", "opentelemetry"] | None = None
    ) -> None:
        super().__init_subclass__()
        if exporter is None:
            return  # a subclass of an exporter has its methods
        for event, row in EVENTS.items():
            is_event = event in vars(Observer)
            if is_event and getattr(row, exporter) and event not in vars(cls):
                setattr(cls, event, partialmethod(MeasuringObserver._measure, event))

    def __init__(self, *, partition_labels: bool) -> None:
        self.sources: Sources = Sources(partition_labels=partition_labels)
        self._by_partition = partition_labels
        # The reader of each event, and its adders by the values of its labels.
        self._events: dict[
            str, tuple[Callable[..., Figures], dict[tuple[object, ...], Adders]]
        ]
        self._events = {event: (row.read, {}) for event, row in EVENTS.items()}
        # The same by event and labels: without labels of partitions, all partitions of
        # a topic share one entry.
        self._adders: dict[tuple[object, ...], Adders] = {}

    def started(self, kind: str, name: str, source: Observed) -> None:
        """Read its gauges from now on."""
        self.sources.add(kind, name, source)

    def closed(self, kind: str, name: str, source: Observed) -> None:
        """Read its gauges no longer."""
        del kind, name
        self.sources.remove(source)

    def _measure(self, event: str, *args: object, **kwargs: object) -> None:
        """Add the amounts of an event, whose arguments follow, to its metrics."""
        read, known = self._events[event]
        values, amounts = read(*args, **kwargs)
        adders = known.get(values)
        if adders is None:
            adders = known[values] = self._adders_of(event, values)
        for add, index in adders:
            add(amounts[index])

    def _measure_acquired(self, parts: Mapping[TopicPartition, AcquiredPart]) -> None:
        for tp, part in parts.items():
            self._measure("acquired_part", tp, part)

    def _measure_outcomes(
        self, parts: Mapping[TopicPartition, AcknowledgedPart]
    ) -> None:
        for tp, part in parts.items():
            for outcome, records in zip(_OUTCOMES, part, strict=True):
                if records:
                    self._measure("outcome", tp, outcome, records)

    def _adders_of(self, event: str, values: tuple[object, ...]) -> Adders:
        row = EVENTS[event]
        labels = dict(zip(row.labels, values, strict=True))
        partition = labels.get("partition")
        if isinstance(partition, TopicPartition):
            labels["topic"] = partition.topic
            labels["partition"] = partition.partition
            if not self._by_partition:
                del labels["partition"]
        key = event, *labels.values()
        found = self._adders.get(key)
        if found is None:
            found = self._adders[key] = self._make_adders(row, labels)
        return found

    @abstractmethod
    def _make_adders(self, row: Row, labels: Mapping[str, object]) -> Adders:
        """Return what adds to the metrics of a row.

        Args:
            row: the row.
            labels: the values of its labels, with ``topic`` for ``partition``, and the
                number of the partition only if it is to be a label.
        """
