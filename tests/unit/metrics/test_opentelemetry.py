"""The metrics and spans for OpenTelemetry: names, units, attributes, contexts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import opentelemetry.semconv._incubating.attributes.messaging_attributes as published
import opentelemetry.semconv._incubating.metrics.messaging_metrics as published_metrics
import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE
from opentelemetry.semconv.schemas import Schemas
from opentelemetry.trace import SpanKind, StatusCode

from kafkaio._runtime.observer import AcquiredPart, FetchedPart, Observer, guarded
from kafkaio.errors import ArgumentValueError
from kafkaio.metrics._gauges import GAUGES
from kafkaio.metrics._semconv import LATEST, METRICS, OPT_IN, OWN_GAUGES, PUBLISHED
from kafkaio.metrics.opentelemetry import OpenTelemetryObserver
from kafkaio.types import Record, TopicPartition
from tests.unit.metrics.test_prometheus import (
    BATCH,
    EVENTS,
    ONE,
    client,
    consumer,
    play,
    producer as producer_facts,
    query,
    share_consumer,
)

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SENT_IN = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331


class Backend:
    """What an application sets up, and what came to it."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))

    def observer(self, **options: Any) -> OpenTelemetryObserver:
        return OpenTelemetryObserver(self.meters, self.tracers, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def metrics(self) -> dict[str, Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        [scope] = data.resource_metrics[0].scope_metrics
        assert scope.scope.name == "kafkaio"
        return {metric.name: metric for metric in scope.metrics}

    def points(self, name: str) -> list[Any]:
        return list(self.metrics()[name].data.data_points)


@pytest.fixture
def backend() -> Iterator[Backend]:
    made = Backend()
    yield made
    made.meters.shutdown()
    made.tracers.shutdown()


def record(**facts: Any) -> Record:
    return Record(**{"topic": "one", "partition": 3, "offset": 7, **RECORD, **facts})


RECORD: dict[str, Any] = {
    "timestamp": 0,
    "timestamp_type": 0,
    "key": b"k",
    "value": b"v",
}


# ---- names -------------------------------------------------------------------------


def test_the_published_names_are_those_of_the_library() -> None:
    assert PUBLISHED.schema_url == Schemas.V1_44_0.value
    names = {
        "system": published.MESSAGING_SYSTEM,
        "destination": published.MESSAGING_DESTINATION_NAME,
        "partition": published.MESSAGING_DESTINATION_PARTITION_ID,
        "group": published.MESSAGING_CONSUMER_GROUP_NAME,
        "client": published.MESSAGING_CLIENT_ID,
        "operation": published.MESSAGING_OPERATION_NAME,
        "operation_type": published.MESSAGING_OPERATION_TYPE,
        "count": published.MESSAGING_BATCH_MESSAGE_COUNT,
        "offset": published.MESSAGING_KAFKA_OFFSET,
        "key": published.MESSAGING_KAFKA_MESSAGE_KEY,
        "tombstone": published.MESSAGING_KAFKA_MESSAGE_TOMBSTONE,
        "error": ERROR_TYPE,
    }
    assert {name: getattr(PUBLISHED, name) for name in names} == names
    of_metrics = {
        "operation": published_metrics.MESSAGING_CLIENT_OPERATION_DURATION,
        "sent": published_metrics.MESSAGING_CLIENT_SENT_MESSAGES,
        "consumed": published_metrics.MESSAGING_CLIENT_CONSUMED_MESSAGES,
        "process": published_metrics.MESSAGING_PROCESS_DURATION,
    }
    assert {name: METRICS[name].name for name in of_metrics} == of_metrics


def test_the_latest_names_are_pinned() -> None:
    assert LATEST.version == "1.45.0"
    changed = {
        name: getattr(LATEST, name)
        for name in Names
        if getattr(LATEST, name) != getattr(PUBLISHED, name)
    }
    assert changed == {
        "version": "1.45.0",
        "system": "messaging.system.name",
        "offset": "kafka.offset",
        "key": "kafka.message.key",
        "tombstone": "kafka.message.tombstone",
    }


Names = tuple(type(LATEST).__dataclass_fields__)


@pytest.mark.parametrize(
    ("opt_in", "systems", "schema"),
    [
        ("", {"messaging.system"}, PUBLISHED),
        ("http/dup", {"messaging.system"}, PUBLISHED),
        ("http, messaging", {"messaging.system.name"}, LATEST),
        ("messaging/dup", {"messaging.system", "messaging.system.name"}, LATEST),
    ],
)
def test_names_follow_the_opt_in(
    opt_in: str,
    systems: set[str],
    schema: Any,
    backend: Backend,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(OPT_IN, opt_in)
    backend.observer().batch_acknowledged(BATCH)
    [span] = backend.spans
    assert span.attributes is not None
    assert {name for name in span.attributes if "system" in name} == systems
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.schema_url == schema.schema_url
    [point] = backend.points("messaging.client.sent.messages")
    assert {name for name in point.attributes if "system" in name} == systems


# ---- metrics -----------------------------------------------------------------------


def test_every_event_is_a_metric(backend: Backend) -> None:
    observer = backend.observer()
    for name, arguments in EVENTS.items():
        if hasattr(observer, name):
            more = {"is_renewal": True} if name.startswith("authentic") else {}
            getattr(observer, name)(*arguments, **more)
    observer.request_answered("Metadata", 12, 1, 0.1, 50)
    observer.batch_acknowledged(replace(BATCH, queue_seconds=0.0))
    found = backend.metrics()
    assert {name: it.unit for name, it in found.items()} == {
        it.name: it.unit for key, it in METRICS.items() if key != "process"
    }
    common = {"messaging.system": "kafka", "messaging.destination.name": "one"}
    send = {
        **common,
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
    }
    poll = {
        **common,
        "messaging.operation.name": "poll",
        "messaging.operation.type": "receive",
    }
    commit = {
        "messaging.system": "kafka",
        "messaging.operation.name": "commit",
        "messaging.operation.type": "settle",
    }
    ack = {
        "messaging.system": "kafka",
        "messaging.operation.name": "ack",
        "messaging.operation.type": "settle",
        "messaging.consumer.group.name": "s",
    }
    sent = backend.points("messaging.client.sent.messages")
    assert [(point.value, dict(point.attributes)) for point in sent] == [
        (20, send),
        (3, {**send, "error.type": "OSError"}),
    ]
    [consumed] = backend.points("messaging.client.consumed.messages")
    assert (consumed.value, dict(consumed.attributes)) == (7, poll)
    times = backend.points("messaging.client.operation.duration")
    assert [(point.sum, dict(point.attributes)) for point in times] == [
        (0.04, send),
        (0.4, poll),
        (0.6, {**poll, "messaging.consumer.group.name": "s"}),
        (0.2, ack),
        (0.125, commit),
    ]
    outcomes = backend.points("kafkaio.share.acknowledged")
    topic = {"messaging.destination.name": "one"}
    assert [(point.value, dict(point.attributes)) for point in outcomes] == [
        (5, {**topic, "kafkaio.outcome": "accepted"}),
        (2, {**topic, "kafkaio.outcome": "released"}),
        (1, {**topic, "kafkaio.outcome": "gap"}),
    ]
    of_share = {
        name: [(point.value, dict(point.attributes)) for point in backend.points(name)]
        for name in found
        if name.startswith("kafkaio.share.") and name != "kafkaio.share.acknowledged"
    }
    assert of_share == {
        "kafkaio.share.redelivered": [(4, topic)],
        "kafkaio.share.acknowledgement.failures": [
            (3, {**topic, "error.type": "LockLost"})
        ],
        "kafkaio.share.locks.lost": [(2, topic)],
        "kafkaio.share.locks.renewed": [(8, topic)],
        "kafkaio.share.handler.failures": [
            (1, {**topic, "kafkaio.outcome": "released"})
        ],
    }
    [request] = backend.points("kafkaio.request.duration")
    assert dict(request.attributes) == {"kafkaio.api": "Metadata", "kafkaio.node": 1}
    [queue] = backend.points("kafkaio.producer.queue.time")
    assert (queue.value, dict(queue.attributes)) == (0.005, send)
    [step] = backend.points("kafkaio.transaction.duration")
    assert (step.sum, dict(step.attributes)) == (0.75, {"kafkaio.step": "commit"})
    [rebalance] = backend.points("kafkaio.consumer.rebalance.duration")
    assert dict(rebalance.attributes) == {"messaging.consumer.group.name": "g"}


def test_gauges_are_read_when_metrics_are_exported(backend: Backend) -> None:
    observer = backend.observer(partition_attributes=True)
    sources = [client(), producer_facts(), consumer(), share_consumer(), query()]
    kinds = ("client", "producer", "consumer", "share_consumer", "query")
    for kind, source in zip(kinds, sources, strict=True):
        observer.started(kind, "g", source)
    found = backend.metrics()
    assert OWN_GAUGES.keys() == GAUGES.keys()
    assert {name: it.unit for name, it in found.items()} == dict(OWN_GAUGES.values())
    [lag] = found["kafkaio.consumer.lag"].data.data_points
    assert (lag.value, dict(lag.attributes)) == (
        5,
        {
            "messaging.consumer.group.name": "g",
            "messaging.destination.name": "one",
            "messaging.destination.partition.id": "3",
        },
    )
    observer.closed("producer", "g", sources[1])


def test_it_has_no_other_methods_than_an_observer_and_its_own() -> None:
    mine = {name for name in vars(OpenTelemetryObserver) if name[0] != "_"}
    assert mine - vars(Observer).keys() == {"extract", "process"}


# ---- spans -------------------------------------------------------------------------


def test_a_batch_that_was_sent_is_a_span(backend: Backend) -> None:
    backend.observer().batch_acknowledged(BATCH)
    [span] = backend.spans
    assert (span.name, span.kind, span.parent) == ("send one", SpanKind.PRODUCER, None)
    assert span.attributes == {
        "messaging.system": "kafka",
        "messaging.destination.name": "one",
        "messaging.destination.partition.id": "3",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.batch.message_count": 10,
    }
    assert span.start_time is not None
    assert span.end_time is not None
    assert (span.end_time - span.start_time) / 1e9 == pytest.approx(0.02)


def test_a_fetch_with_records_is_a_span(backend: Backend) -> None:
    observer = backend.observer()
    observer.fetch_answered(1, 0.5, {})
    assert backend.spans == []
    two = TopicPartition("two", 0)
    observer.fetch_answered(1, 0.4, {ONE: FetchedPart(7, 700)})
    observer.fetch_answered(1, 0.4, {ONE: FetchedPart(7, 70), two: FetchedPart(2, 7)})
    one, both = backend.spans
    assert (one.name, one.kind, both.name) == ("poll one", SpanKind.CLIENT, "poll")
    assert both.attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "poll",
        "messaging.operation.type": "receive",
        "messaging.batch.message_count": 9,
    }


def test_what_a_share_consumer_acquired_is_a_span(backend: Backend) -> None:
    observer = backend.observer()
    observer.records_acquired("s", 1, 0.5, {})
    assert backend.spans == []
    observer.records_acquired("s", 1, 0.4, {ONE: AcquiredPart(9, 900, 4)})
    [span] = backend.spans
    assert (span.name, span.kind) == ("poll one", SpanKind.CLIENT)
    assert span.attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "poll",
        "messaging.operation.type": "receive",
        "messaging.destination.name": "one",
        "messaging.consumer.group.name": "s",
        "messaging.batch.message_count": 9,
    }


def test_without_spans_there_are_metrics_alone(backend: Backend) -> None:
    observer = backend.observer(spans="none", propagate=True)
    play(WithAll(observer))
    with observer.process(record(headers=(("traceparent", PARENT.encode()),))) as span:
        assert not span.is_recording()
    assert backend.spans == []
    assert "messaging.process.duration" in backend.metrics()
    with pytest.raises(ArgumentValueError, match="spans must be"):
        backend.observer(spans="all")


def test_without_spans_the_current_one_stays(backend: Backend) -> None:
    observer = backend.observer(spans="none", propagate=True)
    span = backend.tracers.get_tracer("app").start_span("order")
    with trace.use_span(span), observer.process(record()):
        assert trace.get_current_span() is span
        assert dict(observer.inject("one", None))["traceparent"]


def test_buckets_of_seconds_are_those_of_the_conventions(backend: Backend) -> None:
    play(WithAll(backend.observer()))
    for name, metric in backend.metrics().items():
        if name.endswith(".duration"):
            assert metric.unit == "s"
            [point, *_] = metric.data.data_points
            assert point.explicit_bounds[:2] == (0.005, 0.01)
            assert point.explicit_bounds[-1] == 10


class WithAll:
    """An observer, with what it does not hear."""

    def __init__(self, observer: object) -> None:
        self._guard = guarded(observer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._guard, name)


def test_work_on_a_record_goes_on_with_its_trace(backend: Backend) -> None:
    observer = backend.observer()
    sent = record(headers=(("traceparent", PARENT.encode()), ("tracestate", b"a=1")))
    with observer.process(sent, "g") as span:
        assert trace.get_current_span() is span
    assert not trace.get_current_span().get_span_context().is_valid
    [done] = backend.spans
    assert (done.name, done.kind) == ("process one", SpanKind.CONSUMER)
    assert done.parent is not None
    assert (done.parent.trace_id, done.parent.span_id) == SENT_IN
    [link] = done.links
    assert (link.context.trace_id, link.context.span_id) == SENT_IN
    assert link.context.trace_state.get("a") == "1"
    assert done.attributes is not None
    assert done.attributes["messaging.kafka.offset"] == 7
    assert done.attributes["messaging.consumer.group.name"] == "g"
    assert "messaging.kafka.message.tombstone" not in done.attributes
    with observer.process(record(value=None)):
        pass
    last = backend.spans[-1].attributes
    assert last is not None
    assert last["messaging.kafka.message.tombstone"] is True


def test_work_within_a_span_is_its_child_and_has_links(backend: Backend) -> None:
    observer = backend.observer()
    sent = record(headers=(("traceparent", PARENT.encode()),))
    outer = backend.tracers.get_tracer("mine").start_span("outer")
    with trace.use_span(outer), observer.process(sent):
        pass
    [done] = backend.spans
    assert done.parent == outer.get_span_context()
    assert len(done.links) == 1


def test_work_on_a_batch_has_a_link_for_each_context(backend: Backend) -> None:
    observer = backend.observer(max_links=5)
    other = PARENT.replace("b7ad", "c7ad").encode()
    headers = [
        (),
        (("traceparent", PARENT.encode()),),
        (("traceparent", b"rubbish"), ("x", None)),
        (("traceparent", PARENT.encode()),),
        (("traceparent", other),),
        (("traceparent", PARENT.replace("b7ad", "d7ad").encode()),),  # beyond
    ]
    records = [record(headers=each) for each in headers]
    with observer.process(records):
        pass
    [done] = backend.spans
    assert [link.context.span_id >> 48 for link in done.links] == [0xB7AD, 0xC7AD]
    assert done.parent is None
    assert done.attributes is not None
    assert done.attributes["messaging.batch.message_count"] == 6


def test_an_error_is_noted_and_raised(backend: Backend) -> None:
    observer = backend.observer()
    with pytest.raises(ValueError, match="bad"), observer.process(record()):
        raise ValueError("bad")
    [done] = backend.spans
    assert done.status.status_code is StatusCode.ERROR
    [point] = backend.points("messaging.process.duration")
    assert point.attributes["error.type"] == "ValueError"
    assert not trace.get_current_span().get_span_context().is_valid


# ---- contexts in headers -----------------------------------------------------------


def test_only_an_observer_that_is_asked_to_injects(backend: Backend) -> None:
    assert backend.observer().inject is None
    assert "inject" not in vars(guarded(backend.observer()))
    assert "inject" in vars(guarded(backend.observer(propagate=True)))


def test_the_current_context_is_written_unless_there_is_one(backend: Backend) -> None:
    inject = backend.observer(propagate=True).inject
    assert inject is not None
    assert inject("one", [("a", b"1")]) == [("a", b"1")]
    span = backend.tracers.get_tracer("mine").start_span("outer")
    found = span.get_span_context()
    ids = f"{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"
    parent = f"00-{ids}".encode()
    with trace.use_span(span):
        assert inject("one", ()) == (("traceparent", parent),)
        assert inject("one", [("a", b"1")]) == (("a", b"1"), ("traceparent", parent))
        assert inject("one", {"a": None}) == (("a", None), ("traceparent", parent))
        own = {"traceparent": b"x"}
        assert inject("one", own) is own
        pairs = [("traceparent", b"x")]
        assert inject("one", pairs) is pairs
    state = trace.TraceState([("vendor", "1")])
    foreign = trace.NonRecordingSpan(
        trace.SpanContext(*SENT_IN, True, trace.TraceFlags(1), state)
    )
    with trace.use_span(foreign):
        assert inject("one", ()) == (
            ("traceparent", PARENT.encode()),
            ("tracestate", b"vendor=1"),
        )


def test_a_span_for_each_record_goes_with_it(backend: Backend) -> None:
    observer = backend.observer(spans="record")
    assert observer.inject is not None
    first, second = (observer.inject("one", ()) for _ in range(2))
    assert first != second
    observer.batch_acknowledged(BATCH)
    *created, sent = backend.spans
    assert [span.name for span in created] == ["create one"] * 2
    assert {span.kind for span in created} == {SpanKind.PRODUCER}
    assert sent.kind is SpanKind.CLIENT
    written = record(headers=first)
    context = trace.get_current_span(observer.extract(written)).get_span_context()
    assert created[0].context is not None
    assert context.span_id == created[0].context.span_id
