"""Metrics and spans for OpenTelemetry, by its conventions for messaging.

This module needs opentelemetry-api: ``pip install 'kafkaio[opentelemetry]'``. Without
an SDK that the application has set up, the library records nothing.

The producer has a span ``send TOPIC`` for each batch that a broker acknowledged, and
the consumer a span ``poll`` for each fetch that brought records. The application opens
a span ``process TOPIC`` for its work on a batch or a record
(`OpenTelemetryObserver.process`), with links to the spans in which the records were
sent. The links come from the records' headers (W3C ``traceparent`` and ``tracestate``),
which the producer writes if the observer was made with ``propagate=True``. Iterators
never attach a context: a ``with`` block attaches and detaches its own. With
``handlers=True`` the span is opened around each call of a handler of ``run`` and
`kafkaio.exactly_once`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any, Final, Literal, Protocol, TypeAlias

from opentelemetry import context as otel_context, metrics, trace
from opentelemetry.trace import Link, SpanContext, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from kafkaio._runtime.observer import (
    AcknowledgedBatch,
    AcknowledgedPart,
    AcquiredPart,
    FetchedPart,
)
from kafkaio._version import __version__
from kafkaio.errors import ArgumentValueError
from kafkaio.metrics._gauges import GAUGES
from kafkaio.metrics._semconv import (
    METRICS,
    OWN_GAUGES,
    SECONDS,
    Instrument,
    attributes,
    names_in_force,
)
from kafkaio.metrics._table import Adders, MeasuringObserver, Row, topic_of
from kafkaio.types import Headers, Record, TopicPartition

__all__ = ["OpenTelemetryObserver", "RecordSequence", "Spans"]

#: The objects that have spans.
Spans: TypeAlias = Literal["batch", "record", "none"]

_PROPAGATOR: Final = TraceContextTextMapPropagator()
_PARENT: Final = "traceparent"
_STATE: Final = "tracestate"
_TYPES: Final = {
    "create": "create",
    "send": "send",
    "poll": "receive",
    "process": "process",
    "commit": "settle",
    "ack": "settle",
}
#: Sums that are kept here, and read when metrics are exported: adding to a counter of
#: the SDK takes ten times as long.
_COUNTED: Final = (
    "sent",
    "consumed",
    "batches",
    "queue",
    "retries",
    "failed_rebalances",
    "failed_authentications",
    "redelivered",
    "acknowledged",
    "failed_acknowledgements",
    "lost_locks",
    "renewed_locks",
    "handler_failures",
)
#: The attributes of the conventions that labels stand for.
_FACTS: Final = {
    "topic": "destination",
    "group": "group",
    "error": "error",
    "query": "query",
}
#: Labels that are attributes of kafkaio's own.
_OWN: Final = ("api", "node", "mechanism", "step", "outcome")
#: Requests whose time is that of an operation of the conventions.
_OPERATIONS: Final = frozenset({"Produce", "Fetch", "ShareFetch", "ShareAcknowledge"})
#: Seconds for which one reading of the gauges serves all of them: the SDK calls back
#: for each gauge of an export.
_FRESH: Final = 0.5


class _Total:
    """A sum with its attributes, that any thread may add to."""

    __slots__ = ("_lock", "attributes", "value")

    def __init__(self, found: dict[str, Any]) -> None:
        self.attributes = found
        self.value: float = 0
        self._lock = Lock()

    def add(self, amount: float) -> None:
        with self._lock:
            self.value += amount


class RecordSequence(Protocol):
    """A `kafkaio.Batch`, or another sequence of records of one partition."""

    def __iter__(self) -> Iterator[Record[object, object]]: ...

    def __len__(self) -> int: ...


class OpenTelemetryObserver(MeasuringObserver, exporter="opentelemetry"):
    """Records metrics and spans of clients, producers and consumers.

    Args:
        meter_provider: makes the metrics; the global one by default.
        tracer_provider: makes the spans; the global one by default.
        spans: ``"batch"``: spans for batches and fetches. ``"record"``: beside them a
            span ``create TOPIC`` for each record that is sent, whose context goes with
            the record. ``"none"``: no spans.
        propagate: whether records get the context in which they are sent, as headers,
            unless they have a ``traceparent`` already. Each record then takes the way
            of records that are serialized, which costs about a microsecond. Rows of
            tables get none.
        partition_attributes: whether metrics have an attribute for the partition.
        max_links: so many records of a batch are looked at for links.
        handlers: whether a handler of ``run``, or of `kafkaio.exactly_once`, works
            within `process`. Programs that call `process` themselves leave it out.

    Attributes:
        handling: called by ``run`` and `kafkaio.exactly_once` for each call of the
            handler; None without ``handlers``.
        inject: called by a producer for the headers of each record; None without
            propagation of the context.
        sources: the objects that gauges are read from.

    Raises:
        ArgumentValueError: ``spans`` is none of these words.
    """

    def __init__(  # noqa: PLR0913
        self,
        meter_provider: metrics.MeterProvider | None = None,
        tracer_provider: trace.TracerProvider | None = None,
        *,
        spans: Spans = "batch",
        propagate: bool = False,
        partition_attributes: bool = False,
        max_links: int = 128,
        handlers: bool = False,
    ) -> None:
        if spans not in {"batch", "record", "none"}:
            raise ArgumentValueError(
                f"spans must be 'batch', 'record' or 'none', not {spans!r}"
            )
        super().__init__(partition_labels=partition_attributes)
        self._names = names_in_force(os.environ)
        schema = self._names[-1].schema_url
        self._meter = metrics.get_meter("kafkaio", __version__, meter_provider, schema)
        self._tracer = trace.get_tracer(
            "kafkaio", __version__, tracer_provider, schema_url=schema
        )
        self._spans = spans
        self._propagates = propagate or spans == "record"
        self._max_links = max_links
        self.inject: Callable[[str, Headers], Headers] | None  # type: ignore[assignment]
        self.inject = self._inject if self._propagates else None
        self.handling: (  # type: ignore[assignment]
            Callable[[object, str | None], AbstractContextManager[object]] | None
        )
        self.handling = self._handling if handlers else None
        # The attributes of operations, by these and their facts.
        self._attributes: dict[tuple[object, ...], dict[str, Any]] = {}
        # The last context that was written, and its headers: the records of one span
        # often follow each other.
        self._written: tuple[SpanContext | None, tuple[tuple[str, bytes], ...]]
        self._written = None, ()
        # By metric, and by attributes.
        self._totals: dict[str, dict[frozenset[tuple[str, Any]], _Total]]
        self._totals = {key: {} for key in _COUNTED}
        self._read_at = 0.0
        self._readings: Sequence[Any] = ()
        self._make_instruments()

    def _make_instruments(self) -> None:
        self._histograms = {
            key: self._meter.create_histogram(
                it.name, it.unit, it.help, explicit_bucket_boundaries_advisory=SECONDS
            )
            for key, it in METRICS.items()
            if key not in _COUNTED
        }
        for key in _COUNTED:
            it: Instrument = METRICS[key]
            read = partial(self._observe_total, key)
            self._meter.create_observable_counter(it.name, [read], it.unit, it.help)
        for key, (name, unit) in OWN_GAUGES.items():
            gauge = GAUGES[key]
            make = (
                self._meter.create_observable_counter
                if gauge.is_total
                else self._meter.create_observable_gauge
            )
            make(name, [partial(self._observe, key)], unit, gauge.help)

    def _make_adders(self, row: Row, labels: Mapping[str, object]) -> Adders:
        found = self._attributes_of(row, labels)
        return [
            (self._adder(name, found), index)
            for index, name in enumerate(row.opentelemetry)
            if name
        ]

    def _adder(self, key: str, found: dict[str, Any]) -> Callable[[float], object]:
        if key not in _COUNTED:
            return partial(self._histograms[key].record, attributes=found)
        # Other labels, or another event, may have the same attributes, and two sums
        # with the same attributes would be two conflicting observations.
        totals = self._totals[key]
        return totals.setdefault(frozenset(found.items()), _Total(found)).add

    def _attributes_of(self, row: Row, labels: Mapping[str, object]) -> dict[str, Any]:
        facts: dict[str, Any] = {
            fact: labels[label] for label, fact in _FACTS.items() if label in labels
        }
        if "partition" in labels and "error" not in labels:
            # A record that fails may have no partition yet.
            facts["partition"] = str(labels["partition"])
        if row.operation:
            return self._operation(row.operation, facts)
        own = {f"kafkaio.{name}": labels[name] for name in _OWN if name in labels}
        return {**attributes(self._names, facts), **own}

    def _observe_total(
        self, key: str, options: metrics.CallbackOptions
    ) -> Iterable[metrics.Observation]:
        del options
        totals = list(self._totals[key].values())
        return [metrics.Observation(it.value, it.attributes) for it in totals]

    def _observe(
        self, key: str, options: metrics.CallbackOptions
    ) -> Iterable[metrics.Observation]:
        del options
        at = time.monotonic()
        if at > self._read_at + _FRESH:
            self._read_at, self._readings = at, self.sources.readings()
        for name, labels, value in self._readings:
            if name == key:
                given = (_FACTS[label] for label in GAUGES[name].labels)
                facts = dict(zip((*given, "partition"), labels, strict=False))
                yield metrics.Observation(value, attributes(self._names, facts))

    def _of(self, operation: str, **facts: str | None) -> dict[str, Any]:
        """Return the attributes of an operation, made once."""
        key = operation, *facts.items()
        found = self._attributes.get(key)
        if found is None:
            found = self._attributes[key] = self._operation(operation, facts)
        return found

    def _operation(
        self, operation: str, facts: Mapping[str, str | int | bool | None]
    ) -> dict[str, Any]:
        common = {
            "system": "kafka",
            "operation": operation,
            "operation_type": _TYPES[operation],
        }
        return attributes(self._names, {**common, **facts})

    # ---- events that are more than their metrics -----------------------------------

    def request_answered(
        self, api: str, version: int, node_id: int, seconds: float, size: int
    ) -> None:
        """Record its time, unless it is that of an operation."""
        if api not in _OPERATIONS:
            self._measure("request_answered", api, version, node_id, seconds, size)

    def batch_acknowledged(self, batch: AcknowledgedBatch) -> None:
        """Record times and records, and a span."""
        self._measure("batch_acknowledged", batch)
        if self._spans != "none":
            self._send_span(batch)

    def _send_span(self, batch: AcknowledgedBatch) -> None:
        topic, partition = batch.partition
        # With propagation, the span whose context goes with the records is another one:
        # the application's, or that of the record.
        kind = SpanKind.CLIENT if self._propagates else SpanKind.PRODUCER
        found = self._of("send", destination=topic, partition=str(partition))
        self._span(f"send {topic}", kind, batch.seconds, found, batch.records)

    def fetch_answered(
        self,
        node_id: int,
        seconds: float,
        parts: Mapping[TopicPartition, FetchedPart],
    ) -> None:
        """Record its time, and a span if it brought records."""
        self._measure("fetch_answered", node_id, seconds, parts)
        if parts and self._spans != "none":
            count = sum(part.records for part in parts.values())
            self._poll_span(topic_of(parts), None, seconds, count)

    def records_acquired(
        self,
        group: str,
        node_id: int,
        seconds: float,
        parts: Mapping[TopicPartition, AcquiredPart],
    ) -> None:
        """Record its time, what was redelivered, and a span if it brought records."""
        self._measure("records_acquired", group, node_id, seconds, parts)
        self._measure_acquired(parts)
        if parts and self._spans != "none":
            count = sum(part.records for part in parts.values())
            self._poll_span(topic_of(parts), group, seconds, count)

    def records_acknowledged(
        self,
        group: str,
        node_id: int,
        seconds: float,
        parts: Mapping[TopicPartition, AcknowledgedPart],
    ) -> None:
        """Record its time, and the records of each outcome."""
        self._measure("records_acknowledged", group, node_id, seconds, parts)
        self._measure_outcomes(parts)

    def _poll_span(
        self, topic: str | None, group: str | None, seconds: float, count: int
    ) -> None:
        name = "poll" if topic is None else f"poll {topic}"
        found = self._of("poll", destination=topic, group=group)
        self._span(name, SpanKind.CLIENT, seconds, found, count)

    def _span(
        self,
        name: str,
        kind: SpanKind,
        seconds: float,
        found: Mapping[str, Any],
        count: int,
    ) -> None:
        """Record a span that ends now, with the number of its records."""
        end = time.time_ns()
        counts = dict.fromkeys((it.count for it in self._names), count)
        span = self._tracer.start_span(
            name,
            otel_context.Context(),
            kind,
            {**found, **counts},
            start_time=end - int(seconds * 1e9),
        )
        span.end(end)

    # ---- contexts in records -------------------------------------------------------

    def _inject(self, topic: str, headers: Headers) -> Headers:
        """Return the headers with the context of the current span."""
        if self._spans == "record" and isinstance(topic, str):
            kind = SpanKind.PRODUCER
            span = self._tracer.start_span(
                f"create {topic}",
                kind=kind,
                attributes=self._of("create", destination=topic),
            )
            span.end()
        else:
            span = trace.get_current_span()
        found = span.get_span_context()
        if not found.is_valid:
            return headers
        # Read once: a producer of another thread may replace it between two reads.
        written = self._written
        if written[0] is not found:
            written = self._written = found, _headers_of(found)
        return _with(headers, written[1])

    def extract(self, record: Record[object, object]) -> otel_context.Context:
        """Return the context in which a record was sent; empty if it has none."""
        carrier = {
            name: value.decode("ascii", "replace")
            for name, value in record.headers
            if value is not None and name in {_PARENT, _STATE}
        }
        return _PROPAGATOR.extract(carrier, otel_context.Context())

    @contextmanager
    def process(
        self, what: Record[object, object] | RecordSequence, group: str | None = None
    ) -> Iterator[trace.Span]:
        """Make the current span one that stands for the work on records.

        It has links to the spans in which the records were sent. If there is no current
        span, that of a single record is its parent, so that the trace goes on. An
        exception that leaves the block is noted in the span, and raised.

        Args:
            what: a record, or a `kafkaio.Batch` or other records of one partition: at
                least one.
            group: the consumer group, for an attribute.

        Yields:
            The span; with ``spans="none"`` one that records nothing, and the current
            span does not change.
        """
        first = what if isinstance(what, Record) else next(iter(what))
        with self._process(what, group, first.topic, first.partition) as span:
            yield span

    def _handling(
        self, what: Any, group: str | None
    ) -> AbstractContextManager[trace.Span]:
        """Work on a record, or on a list of records of any partitions."""
        records = (what,) if isinstance(what, Record) else what
        topics = {record.topic for record in records}
        partitions = {record.partition for record in records}
        is_one = len(topics) == len(partitions) == 1
        topic = topics.pop() if len(topics) == 1 else None
        return self._process(what, group, topic, partitions.pop() if is_one else None)

    @contextmanager
    def _process(
        self,
        what: Record[object, object] | RecordSequence,
        group: str | None,
        topic: str | None,
        partition: int | None,
    ) -> Iterator[trace.Span]:
        records = (what,) if isinstance(what, Record) else what
        links = self._links(records)
        facts: dict[str, str | int | bool | None] = {
            "destination": topic,
            "partition": None if partition is None else str(partition),
            "group": group,
        }
        parent: otel_context.Context | None = None
        if isinstance(what, Record):
            facts["offset"] = what.offset
            facts["tombstone"] = True if what.value is None else None
            if links and not trace.get_current_span().get_span_context().is_valid:
                parent = self.extract(what)
        else:
            facts["count"] = len(what)
        # A record without a current span continues its sender's trace. With one, the
        # application's own trace goes on, and a link leads to the sender.
        began, error = time.perf_counter(), None
        try:
            if self._spans == "none":
                yield trace.INVALID_SPAN
            else:
                span = self._tracer.start_span(
                    "process" if topic is None else f"process {topic}",
                    parent,
                    SpanKind.CONSUMER,
                    self._operation("process", facts),
                    links,
                )
                with trace.use_span(span, end_on_exit=True):
                    yield span
        except BaseException as failure:
            error = type(failure).__name__
            raise
        finally:
            found = self._of("process", destination=topic, group=group, error=error)
            self._histograms["process"].record(time.perf_counter() - began, found)

    def _links(self, records: Iterable[Record[object, object]]) -> list[Link]:
        if self._spans == "none":
            return []
        found: dict[tuple[int, int], SpanContext] = {}
        for record in islice(records, self._max_links):
            if not record.headers:
                continue
            span = trace.get_current_span(self.extract(record))
            sent_in = span.get_span_context()
            if sent_in.is_valid:
                found[sent_in.trace_id, sent_in.span_id] = sent_in
        return [Link(each) for each in found.values()]


def _headers_of(found: SpanContext) -> tuple[tuple[str, bytes], ...]:
    parent = f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"
    headers = [(_PARENT, parent.encode())]
    if found.trace_state:
        headers.append((_STATE, found.trace_state.to_header().encode()))
    return tuple(headers)


def _with(headers: Headers, more: tuple[tuple[str, bytes], ...]) -> Headers:
    """Add headers to those of a record, unless it has a context already."""
    if not headers:
        return more
    if isinstance(headers, Mapping):
        return headers if _PARENT in headers else (*headers.items(), *more)
    if not isinstance(headers, list | tuple):
        headers = tuple(headers)
    if any(pair[0] == _PARENT for pair in headers):
        return headers
    return (*headers, *more)
