"""Pushing metrics to a real Kafka: its codes, and Java's clients beside kafkaio's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from math import isnan
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from kafkaio import Admin, Consumer, Producer
from kafkaio.admin import ConfigChange, ConfigResource, ConfigResourceType
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka._releases import find_release
from tests.support.java import Toolbox
from tests.support.telemetry import (
    CODES,
    Pushed,
    Sink,
    kafka_with_sink,
    raw_codes,
    shapes,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("the plug-in is for a real Kafka"),
]

TOOLS: Final = Toolbox(find_release())
PREFIX: Final = "org.apache.kafka."
COUNT: Final = 4_000
#: What KIP-714 requires of a producer and of a consumer.
OF_ALL: Final = (
    "connection.creation.rate",
    "connection.creation.total",
    "node.request.latency.avg",
    "node.request.latency.max",
)
OF_PRODUCERS: Final = (
    *OF_ALL,
    "produce.throttle.time.avg",
    "produce.throttle.time.max",
    "record.queue.time.avg",
    "record.queue.time.max",
)
OF_CONSUMERS: Final = (
    *OF_ALL,
    "poll.idle.ratio.avg",
    "coordinator.commit.latency.avg",
    "coordinator.commit.latency.max",
    "coordinator.assigned.partitions",
    "coordinator.rebalance.latency.avg",
    "coordinator.rebalance.latency.max",
    "coordinator.rebalance.latency.total",
    "fetch.manager.fetch.latency.avg",
    "fetch.manager.fetch.latency.max",
)


@pytest_asyncio.fixture
async def telemetry(tmp_path: Path) -> AsyncIterator[tuple[Kafka, Sink]]:
    async with kafka_with_sink(tmp_path) as (kafka, sink):
        subscription = ConfigResource(ConfigResourceType.CLIENT_METRICS, "all")
        changes = [ConfigChange("metrics", "*"), ConfigChange("interval.ms", "1000")]
        async with Admin(kafka.bootstrap_servers, enable_metrics_push=False) as admin:
            await admin.incremental_alter_configs({subscription: changes})
        yield kafka, sink


def total(pushes: list[Pushed], name: str) -> float:
    return sum(
        one.value
        for push in pushes
        for one in push.values
        if one.name == PREFIX + name and one.kind == "sum"
    )


def compare(ours: list[Pushed], javas: list[Pushed], required: list[str]) -> None:
    mine = shapes(one for push in ours for one in push.values)
    theirs = shapes(one for push in javas for one in push.values)
    for name in required:
        assert mine[PREFIX + name] == theirs[PREFIX + name], name
    # Nothing that Java has not; and what both have is of the same type.
    assert mine.keys() <= theirs.keys()
    for name, shape in mine.items():
        assert shape <= theirs[name], name
    for push in ours:
        assert push.instance_id == ours[0].instance_id
    assert ours[-1].is_terminating
    some = {PREFIX + name for name in required}
    numbers = [one for one in ours[-1].values if one.name in some]
    assert not any(isnan(one.value) for one in numbers)


async def test_codes_and_javas_clients(telemetry: tuple[Kafka, Sink]) -> None:
    kafka, sink = telemetry
    servers = kafka.bootstrap_servers
    topic = await kafka.create_topic("both", partitions=2)
    assert await raw_codes(servers, 1.0) == CODES
    await produce_by_both(servers, topic)
    java = await sink.wait_for("perf-producer-client", has_ended)
    mine = await sink.wait_for("mine", has_ended)
    compare(mine, java, [f"producer.{name}" for name in OF_PRODUCERS])
    for name in ("record.send.total", "topic.record.send.total"):
        assert total(mine, f"producer.{name}") == COUNT
        assert total(java, f"producer.{name}") == pytest.approx(COUNT, rel=0.1)
    await consume_by_both(servers, topic)
    java = await sink.wait_for("java-reader", has_ended)
    mine = await sink.wait_for("my-reader", has_ended)
    compare(mine, java, [f"consumer.{name}" for name in OF_CONSUMERS])
    assert mine[0].resource.keys() == java[0].resource.keys()
    for name in ("records.consumed.total", "bytes.consumed.total"):
        theirs = total(java, f"consumer.fetch.manager.{name}")
        assert total(mine, f"consumer.fetch.manager.{name}") == pytest.approx(
            theirs, rel=0.1
        )


def has_ended(pushes: list[Pushed]) -> bool:
    return bool(pushes) and pushes[-1].is_terminating


async def produce_by_both(servers: str, topic: str) -> None:
    await TOOLS.run(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", str(COUNT), "--record-size", "100"),
        *("--throughput", "1000", "--bootstrap-server", servers),
    )
    async with Producer(servers, client_id="mine", linger_ms=20) as producer:
        await producer.client_instance_id()
        for _ in range(COUNT):
            _ = await producer.enqueue(topic, bytes(100))


async def consume_by_both(servers: str, topic: str) -> None:
    await TOOLS.run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--topic", topic, "--group", "javas", "--from-beginning"),
        *("--timeout-ms", "9000", "--bootstrap-server", servers),
        *("--command-property", "client.id=java-reader"),
    )
    async with Consumer(
        servers,
        topics=topic,
        client_id="my-reader",
        group_id="mine",
        auto_offset_reset="earliest",
    ) as consumer:
        taken = 0
        while taken < 2 * COUNT:
            taken += len((await consumer.poll(timeout=1)).records)
        await consumer.commit()
