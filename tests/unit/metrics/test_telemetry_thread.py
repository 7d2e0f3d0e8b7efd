"""Pushing metrics from the I/O thread, whose loop runs on real time."""

from __future__ import annotations

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
    # The last push comes with the end.
    last = broker.telemetry.pushes[-1]
    assert last.is_terminating
    assert last.client_instance_id == identity
    assert [(one.name, one.value) for one in parsed(last.metrics)[1]] == [("com.x", 4)]
