"""The consumer against scripted brokers with logs, under a clock that jumps."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from kafkaio import Consumer
from kafkaio.errors import ClosedError, UsageError
from kafkaio.types import TopicPartition
from tests.fakes.broker import FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs

ONE = TopicPartition("one", 0)
ORDERS = [TopicPartition("orders", n) for n in range(3)]


def numbers(start: int, count: int) -> list[bytes]:
    return [b"%d" % n for n in range(start, start + count)]


async def test_reads_what_is_there_and_what_comes(logs: FakeLogs, make: MakeConsumer):
    logs.append("one", 0, *numbers(0, 3))
    async with make(assign=[ONE], auto_offset_reset="earliest") as consumer:
        found = [await anext(consumer) for _ in range(3)]
        assert [r.value for r in found] == numbers(0, 3)
        assert [r.offset for r in found] == [0, 1, 2]
        waiting = asyncio.create_task(anext(consumer))
        await asyncio.sleep(10)
        assert not waiting.done()
        logs.append("one", 0, b"late")
        assert (await waiting).value == b"late"
        assert await consumer.position(ONE) == 4


async def test_latest_sees_what_is_written_after_start(
    logs: FakeLogs, make: MakeConsumer
):
    logs.append("one", 0, b"old")
    async with make(topics="one") as consumer:
        logs.append("one", 0, b"new")
        assert (await anext(consumer)).value == b"new"


async def test_all_partitions_of_a_topic_without_a_group(
    logs: FakeLogs, make: MakeConsumer
):
    for n in range(3):
        logs.append("orders", n, *numbers(10 * n, 2))
    async with make(topics=["orders"], auto_offset_reset="earliest") as consumer:
        assert consumer.assignment == set(ORDERS)
        poll = await consumer.poll(timeout=5)
        while len(poll.records) < 6:
            more = await consumer.poll(timeout=5)
            assert more.records
            poll.records.extend(more.records)
        found = {(r.partition, r.value) for r in poll.records}
        assert found == {(n, v) for n in range(3) for v in numbers(10 * n, 2)}


async def test_a_second_reader_is_refused(logs: FakeLogs, make: MakeConsumer):
    async with make(assign=[ONE]) as consumer:
        waiting = asyncio.create_task(consumer.poll())
        await asyncio.sleep(1)
        with pytest.raises(UsageError, match="another task"):
            await anext(consumer)
        logs.append("one", 0, b"x")
        assert [r.value for r in (await waiting).records] == [b"x"]


async def test_reading_outside_of_its_life(logs: FakeLogs, make: MakeConsumer):
    consumer = make(assign=[ONE])
    with pytest.raises(ClosedError, match="not started"):
        await anext(consumer)
    await consumer.start()
    waiting = asyncio.create_task(anext(consumer))
    await asyncio.sleep(1)
    await consumer.close()
    with pytest.raises(ClosedError):
        await waiting
    with pytest.raises(ClosedError):
        await consumer.poll(timeout=0)


async def test_survives_a_broker_that_restarts(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    logs.append("one", 0, b"a")
    async with make(assign=[ONE], auto_offset_reset="earliest") as consumer:
        assert (await anext(consumer)).value == b"a"
        cluster.stop(0)
        await asyncio.sleep(3)
        cluster.move_leader("one", 0, 1)
        logs.append("one", 0, b"b")
        assert (await anext(consumer)).value == b"b"
        cluster.start(0)


def test_properties_come_with_the_same_arguments_as_options() -> None:
    properties = {"bootstrap.servers": "a:1", "group.id": "g"}
    assert parameters(Consumer.from_properties) >= parameters(Consumer.from_config) - {
        "config",
        "dial",
    }
    with pytest.raises(UsageError, match="on_revoked"):
        Consumer.from_properties(properties, on_revoked="no function")  # type: ignore[arg-type]


def parameters(method: Any) -> set[str]:
    return set(inspect.signature(method).parameters)
