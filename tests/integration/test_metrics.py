"""The observers for Prometheus and OpenTelemetry beside real work."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

import kafkaio
from kafkaio.metrics.opentelemetry import OpenTelemetryObserver
from kafkaio.metrics.prometheus import PrometheusObserver
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory

COUNT = 200


class Oops:
    """Raises at everything that concerns data."""

    def batch_acknowledged(self, batch: object) -> None:
        raise ValueError("oops")

    def fetch_answered(self, *event: Any) -> None:
        raise ValueError("oops")

    def records_handed_out(self, *event: Any) -> None:
        raise ValueError("oops")


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


def consumer(real_kafka: Kafka, observer: object, **options: Any) -> kafkaio.Consumer:
    return kafkaio.Consumer(
        real_kafka.bootstrap_servers,
        observer=observer,
        auto_offset_reset="earliest",
        **options,
    )


@pytest.mark.parametrize("io_thread", [False, True])
async def test_prometheus_counts_what_was_done(
    real_kafka: Kafka,
    topic: TopicFactory,
    group: str,
    io_thread: bool,
) -> None:
    name = topic(2)
    registry = CollectorRegistry()
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    observers = [Oops(), PrometheusObserver(registry, client_id="c")]
    async with kafkaio.Producer(
        real_kafka.bootstrap_servers, observer=observers, compression_type="lz4"
    ) as producer:
        await producer.send_many(name, [bytes(100)] * COUNT)
    names = {"client_id": "c", "topic": name}
    of_group = {"client_id": "c", "group": group}
    async with consumer(
        real_kafka,
        observers[1] if io_thread else observers,
        topics=name,
        group_id=group,
        io_thread=io_thread,
    ) as reader:
        read = 0
        async for batch in reader.batches():
            read += len(batch)
            if read == COUNT:
                break
        # What is read may have come before it was asked for: this waits for certain.
        await reader.poll(timeout=0.05)
        await reader.commit()

        def value(metric: str, labels: dict[str, str]) -> float | None:
            return registry.get_sample_value(f"kafkaio_{metric}", labels)

        assert value("produced_records_total", names) == COUNT
        assert value("fetched_records_total", names) == COUNT
        assert value("consumed_records_total", names) == COUNT
        sent, plain = (
            value("produced_bytes_total", names),
            value("produced_uncompressed_bytes_total", names),
        )
        assert sent is not None
        assert plain is not None
        assert sent < plain / 2
        assert value("consumer_lag", {**of_group, "topic": name}) == 0
        assert value("consumer_assigned_partitions", of_group) == 2
        assert value("rebalance_seconds_count", of_group) == 1
        assert value("commit_seconds_count", {"client_id": "c"}) == 1
        age = value("metadata_age_seconds", {"client_id": "c"})
        assert age is not None
        assert 0 <= age < 60
        idle = value("consumer_idle_seconds_total", of_group)
        assert idle is not None
        assert idle > 0
    assert value("consumer_assigned_partitions", of_group) is None
    assert value("failed_rebalances_total", of_group) is None


async def test_a_trace_goes_through_kafka(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(1)
    reader, exporter = InMemoryMetricReader(), InMemorySpanExporter()
    meters, tracers = MeterProvider([reader]), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    observer = OpenTelemetryObserver(meters, tracers, propagate=True)
    mine = tracers.get_tracer("mine")
    async with kafkaio.Producer(
        real_kafka.bootstrap_servers, observer=observer
    ) as producer:
        for order in range(2):
            with mine.start_as_current_span(f"order {order}"):
                await producer.send(name, b"x")
        await producer.send(name, b"no trace")
    async with consumer(real_kafka, observer, topics=name, group_id=group) as reads:
        batches = reads.batches(max_records=3, max_wait=5.0)
        batch = await anext(batches)
        with observer.process(batch, group):
            assert len(batch) == 3
        with observer.process(next(iter(batch)), group):
            pass
        assert trace.get_current_span() is trace.INVALID_SPAN
    spans = {span.name: span for span in exporter.get_finished_spans()}
    orders = [spans[f"order {n}"].get_span_context() for n in range(2)]
    both, one = (
        span for span in exporter.get_finished_spans() if span.name == f"process {name}"
    )
    assert [link.context.span_id for link in both.links] == [
        span.span_id for span in orders
    ]
    assert one.parent is not None
    assert one.parent.span_id == orders[0].span_id
    assert {f"send {name}", f"poll {name}"} <= spans.keys()
    data = reader.get_metrics_data()
    assert data is not None
    found = {
        metric.name: metric
        for scope in data.resource_metrics[0].scope_metrics
        for metric in scope.metrics
    }
    counts = {
        key: sum(point.value for point in found[key].data.data_points)
        for key in (
            "messaging.client.sent.messages",
            "messaging.client.consumed.messages",
        )
    }
    assert set(counts.values()) == {3}
    meters.shutdown()
    tracers.shutdown()
