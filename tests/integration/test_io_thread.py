"""``io_thread=True`` on a real Kafka: a blocked loop costs no membership."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from kafkaio._producer import Producer
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.integration.groups import member

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
SESSION = 6.0
COUNT = 2_000
CLASSIC: dict[str, object] = {
    "group_protocol": "classic",
    "session_timeout_ms": int(SESSION * 1000),
    "heartbeat_interval_ms": 500,
}


def block_until(condition: Callable[[], bool], limit: float) -> None:
    """Keep the loop of the test from turning."""
    pause, clock = threading.Event(), asyncio.get_running_loop().time
    end = clock() + limit
    while not condition():
        assert clock() < end
        pause.wait(0.05)


def block_for(seconds: float) -> None:
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    block_until(lambda: clock() >= end, 2 * seconds)


async def fill(kafka: Kafka, name: str) -> None:
    async with Producer(kafka.bootstrap_servers) as producer:
        for n in range(COUNT):
            await producer.enqueue(name, b"%d" % n, partition=n % 4)


async def test_a_loop_blocked_for_three_sessions(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    name = topic(partitions=4)
    await fill(real_kafka, name)
    async with member(real_kafka, name, name, io_thread=True, **CLASSIC) as consumer:
        generation = consumer.group_metadata.generation
        values = [(await anext(consumer)).value]
        block_for(3 * SESSION)
        assert consumer.statistics().group == "STABLE"
        assert consumer.group_metadata.generation == generation
        values += [(await anext(consumer)).value for _ in range(COUNT - 1)]
        # Nobody was expelled, and not one record came twice.
        assert sorted(values) == sorted(b"%d" % n for n in range(COUNT))
        assert consumer.group_metadata.generation == generation
        await consumer.commit()
        done = await consumer.committed()
        assert sum(at.offset for at in done.values() if at is not None) == COUNT


async def test_who_does_not_read_on_is_out_and_comes_back(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    name = topic(partitions=4)
    await fill(real_kafka, name)
    options = CLASSIC | {"io_thread": True, "max_poll_interval_ms": 7_000}
    async with member(real_kafka, name, name, **options) as consumer:
        all_of_it = consumer.assignment
        assert len(all_of_it) == 4
        await anext(consumer)
        block_until(lambda: not consumer.assignment, 30)
        assert consumer.lost == all_of_it
        # It joins again with the next step, and reads what it had not committed.
        values = [(await anext(consumer)).value for _ in range(COUNT)]
        assert sorted(values) == sorted(b"%d" % n for n in range(COUNT))
        assert consumer.assignment == all_of_it
