"""Pushing metrics from the I/O thread, on real time: the thread has a loop of its own."""

from __future__ import annotations

import asyncio

from kafkaio import Consumer, Metric
from kafkaio.testing import Broker
from tests.support.telemetry import parsed


async def test_a_consumer_with_an_io_thread_pushes_too() -> None:
    async with Broker(topics={"t": 1}, telemetry=True) as broker:
        broker.telemetry.subscribe(metrics="com.", interval_ms=100)
        servers = broker.bootstrap_servers
        async with Consumer(servers, topics="t", io_thread=True) as consumer:
            consumer.register_metric(Metric(name="com.x", read=lambda: 4))
            identity = await consumer.client_instance_id(20)
            async with asyncio.timeout(20):
                while not broker.telemetry.pushes:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.01)
    first = broker.telemetry.pushes[0]
    assert first.client_instance_id == identity
    assert {"com.x": 4.0}.items() <= {
        one.name: one.value for one in parsed(first.metrics)[1]
    }.items()
