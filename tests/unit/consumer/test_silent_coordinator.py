"""A coordinator that accepts everything and answers nothing, on the embedded broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafkaio._client.client import Client
from kafkaio._config import ClientConfig
from kafkaio._consumer import Consumer
from kafkaio._runtime.clock import now
from kafkaio.testing import Broker
from kafkaio.types import TopicPartition
from tests.unit.consumer.group_fakes import until, virtual

SESSION = 10.0
OPTIONS: dict[str, Any] = {
    "topics": "t",
    "group_id": "g",
    "group_protocol": "classic",
    "session_timeout_ms": 10_000,
    "heartbeat_interval_ms": 1_000,
    "auto_offset_reset": "earliest",
}
NEWER: dict[str, Any] = {
    "topics": "t",
    "group_id": "g",
    "group_protocol": "consumer",
}


@asynccontextmanager
async def member(
    broker: Broker, options: dict[str, Any] = OPTIONS, **more: Any
) -> AsyncIterator[Consumer]:
    config = ClientConfig.of(broker.bootstrap_servers, {})
    async with Client.from_config(config, dial=broker.dial) as client:
        consumer = Consumer(client, **options, **more)
        try:
            yield consumer
        finally:
            await consumer.close(5.0)


def coordinator_of(consumer: Consumer) -> int | None:
    return consumer._core.member.statistics().coordinator


async def fail_over(broker: Broker) -> int:
    """Let the coordinator hang, and another one take over; its node id."""
    old = broker.control.coordinator("g")
    broker.control.pause(old)
    new = (old + 1) % 3
    broker.control.move_coordinator("g", new)
    return new


@virtual
async def test_a_parked_join_is_begun_anew_elsewhere() -> None:
    eager = {"partition_assignment_strategy": "range"}
    async with (
        Broker(nodes=3, topics={"t": 4}, memory_transport=True) as broker,
        member(broker, **eager) as one,
        member(broker, **eager) as two,
    ):
        await one.start()
        events = one.rebalances()
        joining = asyncio.ensure_future(two.start())
        requested = await anext(events)
        async with requested.hold():  # so that the group waits for us
            await asyncio.sleep(60)
            assert not joining.done()
            new = await fail_over(broker)
            begun = now()
            await until(
                lambda: coordinator_of(one) == new == coordinator_of(two), limit=SESSION
            )
            assert now() - begun < SESSION
            assert len(one.assignment) == 4
        # The newcomer may come a rebalance later, and nobody listens any more.
        await events.aclose()
        async with asyncio.timeout(SESSION):
            await joining
        assert len(one.assignment) == 2 == len(two.assignment)


@virtual
@pytest.mark.parametrize("options", [OPTIONS, NEWER], ids=["classic", "consumer"])
async def test_heartbeats_go_elsewhere(options: dict[str, Any]) -> None:
    async with (
        Broker(nodes=3, topics={"t": 4}, memory_transport=True) as broker,
        member(broker, options) as consumer,
    ):
        await consumer.start()
        generation = consumer.group_metadata.generation
        new = await fail_over(broker)
        # The consumer protocol's session is the coordinator's own: 45 s.
        limit = SESSION if options is OPTIONS else 45.0
        await until(lambda: coordinator_of(consumer) == new, limit=limit)
        await asyncio.sleep(60)
        assert len(consumer.assignment) == 4
        assert consumer.group_metadata.generation == generation


@virtual
@pytest.mark.parametrize("options", [OPTIONS, NEWER], ids=["classic", "consumer"])
async def test_a_commit_that_hangs_goes_elsewhere(options: dict[str, Any]) -> None:
    async with (
        Broker(nodes=3, topics={"t": 4}, memory_transport=True) as broker,
        member(broker, options) as consumer,
    ):
        await consumer.start()
        tp = TopicPartition("t", 0)
        await fail_over(broker)
        async with asyncio.timeout(SESSION if options is OPTIONS else 45.0):
            await consumer.commit({tp: 0})
        assert broker.control.committed("g", tp) == 0


@virtual
async def test_the_coordinator_is_asked_for_though_a_broker_hangs() -> None:
    async with Broker(nodes=3, topics={"t": 4}, memory_transport=True) as broker:
        broker.control.pause((broker.control.coordinator("g") + 1) % 3)
        for _ in range(6):
            # Whichever broker is asked first.
            async with member(broker, {"group_id": "g"}) as consumer:
                await consumer.start()
                async with asyncio.timeout(SESSION):
                    assert await consumer.committed([TopicPartition("t", 0)])
