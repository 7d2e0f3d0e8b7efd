"""Programs that OpenTelemetry instruments, without a word of theirs about it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import kafkaio
from kafkaio.admin import ConfigChange, ConfigResource, ConfigResourceType
from kafkaio.aiokafka import AIOKafkaProducer
from kafkaio.errors import ArgumentValueError
from kafkaio.metrics.instrumentation import KafkaioInstrumentor
from kafkaio.metrics.opentelemetry import OpenTelemetryObserver
from kafkaio.testing import Broker

PROGRAM = """
import asyncio, sys
import kafkaio
from kafkaio.testing import Broker

async def main():
    async with Broker(topics={"orders": 1}) as broker:
        servers = broker.bootstrap_servers
        async with kafkaio.Producer(servers) as producer:
            await producer.send("orders", b"two apples")
        consumer = kafkaio.Consumer(
            servers, topics="orders", group_id="g", auto_offset_reset="earliest"
        )
        async with consumer:
            async def handle(record):
                print("traceparent:", [name for name, _ in record.headers])
                asyncio.get_running_loop().call_soon(over.set)
            over = asyncio.Event()
            work = asyncio.create_task(consumer.run(handle))
            await over.wait()
        await work

from opentelemetry import trace
with trace.get_tracer("program").start_as_current_span("order"):
    asyncio.run(main())
"""


class Spans:
    """Providers as an application sets them up, and what came to them."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.providers: dict[str, Any] = {
            "meter_provider": MeterProvider([self.reader]),
            "tracer_provider": self.tracers,
        }

    def named(self, beginning: str) -> list[ReadableSpan]:
        found = self.exporter.get_finished_spans()
        return [span for span in found if span.name.startswith(beginning)]

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def spans() -> Iterator[Spans]:
    made = Spans()
    yield made
    made.providers["meter_provider"].shutdown()
    made.tracers.shutdown()


@pytest.fixture
def instrument() -> Iterator[Callable[..., KafkaioInstrumentor]]:
    instrumentor = KafkaioInstrumentor()

    def begin(**options: Any) -> KafkaioInstrumentor:
        instrumentor.instrument(**options)
        return instrumentor

    yield begin
    if instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.uninstrument()


class StopHere(Exception):
    """Ends a ``run``."""


@pytest_asyncio.fixture
async def servers() -> AsyncIterator[str]:
    config = {"group.share.min.record.lock.duration.ms": 1000}
    topics = {"orders": 2, "jobs": 1, "out": 1}
    async with Broker(topics=topics, config=config) as broker:
        yield broker.bootstrap_servers


def reading(servers: str, **options: Any) -> kafkaio.Consumer:
    """A consumer of the orders."""
    given = {"topics": "orders", "group_id": "g", "auto_offset_reset": "earliest"}
    return kafkaio.Consumer(servers, **(given | options))


async def stop(*arguments: object) -> None:
    raise StopHere


def stop_too(record: object, error: Exception) -> Any:
    raise error


async def send(servers: str, spans: Spans, *topics: str, **options: Any) -> int:
    """Send one record to each topic within one span, and return its trace."""
    async with kafkaio.Producer(servers, **options) as producer:
        with spans.tracers.get_tracer("t").start_as_current_span("order") as order:
            for topic in topics:
                await producer.send(topic, b"two apples")
    return order.get_span_context().trace_id


async def test_every_object_has_the_observer(
    servers: str, spans: Spans, instrument: Callable[..., KafkaioInstrumentor]
) -> None:
    instrument(**spans.providers)
    trace_id = await send(servers, spans, "orders", "orders")
    async with reading(servers) as consumer:
        with pytest.raises(StopHere):
            await consumer.run(stop, concurrency=1)
    assert spans.named("send orders")
    assert spans.named("poll orders")
    # What a handler raises is raised, and noted in its span.
    [work] = spans.named("process orders")
    assert work.context.trace_id == trace_id
    assert [event.name for event in work.events] == ["exception"]
    assert work.attributes is not None
    assert work.attributes["messaging.consumer.group.name"] == "g"
    sent = spans.points("messaging.client.sent.messages")
    assert sum(point.value for point in sent) == 2


@pytest.mark.parametrize("io_thread", [False, True])
async def test_a_queue(
    servers: str,
    spans: Spans,
    instrument: Callable[..., KafkaioInstrumentor],
    io_thread: bool,
) -> None:
    instrument(**spans.providers)
    async with kafkaio.Admin(servers) as admin:
        group = ConfigResource(ConfigResourceType.GROUP, "s")
        change = ConfigChange("share.auto.offset.reset", "earliest")
        await admin.incremental_alter_configs({group: [change]})
    trace_id = await send(servers, spans, "jobs")
    share = kafkaio.ShareConsumer(
        servers, topics="jobs", group_id="s", io_thread=io_thread
    )
    async with share:
        with pytest.raises(StopHere):
            await share.run(stop, on_error=stop_too)
    [work] = spans.named("process jobs")
    assert work.context.trace_id == trace_id


async def test_exactly_once_has_one_span_for_its_records(
    servers: str, spans: Spans, instrument: Callable[..., KafkaioInstrumentor]
) -> None:
    instrument(**spans.providers)
    trace_id = await send(servers, spans, "orders", "jobs")
    copied = asyncio.Event()

    async def copy(tx: kafkaio.Transaction, records: list[kafkaio.Record]) -> None:
        for record in records:
            await tx.send("out", record.value)
        copied.set()

    async with (
        reading(servers, topics=["orders", "jobs"], enable_auto_commit=False) as source,
        kafkaio.Producer(servers, transactional_id="copy") as target,
    ):
        work = asyncio.create_task(
            kafkaio.exactly_once(source, target, copy, max_records=2, max_wait=30)
        )
        await copied.wait()
    await work
    [span] = spans.named("process")
    assert span.name == "process"  # of no single topic
    assert [link.context.trace_id for link in span.links] == [trace_id]
    # The records that it sent belong to its trace.
    async with reading(servers, topics="out", group_id=None) as reader:
        copies = (await reader.poll()).records
    context = f"{span.context.trace_id:032x}-{span.context.span_id:016x}".encode()
    assert context in dict(copies[0].headers)["traceparent"]


async def test_a_program_with_the_names_of_aiokafka(
    servers: str, spans: Spans, instrument: Callable[..., KafkaioInstrumentor]
) -> None:
    instrument(**spans.providers)
    producer = AIOKafkaProducer(bootstrap_servers=servers)
    await producer.start()
    try:
        with spans.tracers.get_tracer("t").start_as_current_span("order"):
            await producer.send_and_wait("orders", b"two apples")
    finally:
        await producer.stop()
    async with reading(servers) as consumer:
        [record] = (await consumer.poll()).records
    assert [name for name, _ in record.headers] == ["traceparent"]
    assert len(spans.named("send orders")) == 1
    assert spans.named("poll orders")


async def test_the_observer_of_the_program_stays_and_another_of_its_kind_alone(
    servers: str, spans: Spans, instrument: Callable[..., KafkaioInstrumentor]
) -> None:
    instrument(**spans.providers)
    own = Spans()

    class Mine:
        count = 0

        def batch_acknowledged(self, batch: object) -> None:
            self.count += 1

    mine = Mine()
    await send(servers, spans, "orders", observer=mine)
    assert mine.count == len(spans.named("send")) == 1
    observer = OpenTelemetryObserver(**own.providers)
    await send(servers, spans, "orders", observer=[mine, observer])
    assert mine.count == 2
    assert len(own.named("send")) == len(spans.named("send")) == 1


async def test_after_the_end_nothing_comes_from_what_is_there_either(
    servers: str, spans: Spans, instrument: Callable[..., KafkaioInstrumentor]
) -> None:
    instrumentor = instrument(**spans.providers)
    observer = instrumentor.observer
    assert observer is not None
    async with kafkaio.Producer(servers) as producer:
        await producer.send("orders", b"a")
        assert len(spans.named("send")) == 1
        instrumentor.uninstrument()
        assert instrumentor.observer is None
        await producer.send("orders", b"b")
        await send(servers, spans, "orders")
        assert len(spans.named("send")) == 1
    # What is closed is forgotten.
    assert not spans.points("kafkaio.connections")
    # Begun again for the same providers, it is the same observer: their metrics are
    # made once.
    assert instrument(**spans.providers).observer is observer
    await send(servers, spans, "orders")
    assert len(spans.named("send")) == 2


async def test_to_instrument_twice_is_to_do_it_once(
    servers: str, spans: Spans, instrument: Callable[..., KafkaioInstrumentor]
) -> None:
    instrument(**spans.providers)
    instrument(**spans.providers)
    await send(servers, spans, "orders")
    assert len(spans.named("send")) == 1


@pytest.mark.parametrize(
    ("variable", "value", "options"),
    [
        ("SPANS", "record", {"spans": "record"}),
        ("SPANS", " None", {"spans": "none"}),
        ("PROPAGATE", "FALSE", {"propagate": False}),
        ("PROPAGATE", "", {}),
    ],
)
def test_the_environment_has_options(
    monkeypatch: pytest.MonkeyPatch,
    instrument: Callable[..., KafkaioInstrumentor],
    variable: str,
    value: str,
    options: dict[str, Any],
) -> None:
    monkeypatch.setenv(f"OTEL_PYTHON_KAFKAIO_{variable}", value)
    observer = instrument().observer
    assert observer is not None
    given = {"spans": "batch", "propagate": True, **options}
    assert observer._spans == given["spans"]
    does_inject = given["propagate"] or given["spans"] == "record"
    assert (observer.inject is not None) is does_inject
    assert observer.handling is not None


@pytest.mark.parametrize("variable", ["SPANS", "PROPAGATE"])
def test_an_impossible_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    name = f"OTEL_PYTHON_KAFKAIO_{variable}"
    monkeypatch.setenv(name, "some")
    with pytest.raises(ArgumentValueError, match=name):
        KafkaioInstrumentor().instrument()
    assert KafkaioInstrumentor().observer is None


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match="providers"):
        KafkaioInstrumentor().instrument(providers=None)


def test_the_entry_point_leads_to_it() -> None:
    [point] = entry_points(group="opentelemetry_instrumentor", name="kafkaio")
    assert point.load() is KafkaioInstrumentor


def run(tmp_path: Path, **env: str) -> str:
    """Run the program under the command, and return what it printed."""
    command = Path(sys.executable).with_name("opentelemetry-instrument")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [str(command), sys.executable, str(program)],
        env={
            **os.environ,
            "OTEL_TRACES_EXPORTER": "console",
            "OTEL_METRICS_EXPORTER": "console",
            "OTEL_LOGS_EXPORTER": "none",
            **env,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    return done.stdout


def test_a_program_that_knows_nothing_of_it(tmp_path: Path) -> None:
    printed = run(tmp_path)
    assert "traceparent: ['traceparent']" in printed
    for name in ("send orders", "poll orders", "process orders"):
        assert f'"name": "{name}"' in printed
    assert '"name": "messaging.process.duration"' in printed


def test_a_program_can_be_left_alone(tmp_path: Path) -> None:
    printed = run(tmp_path, OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="kafkaio")
    assert "traceparent: []" in printed
    assert '"name": "order"' in printed
    assert "send orders" not in printed
