"""A consumer belongs to the event loop that started it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kafkaio._config import ConsumerConfig
from kafkaio._consumer import Consumer
from kafkaio.errors import ClosedError
from kafkaio.testing import Broker

READS: dict[str, Callable[[Consumer], Awaitable[object]]] = {
    "poll": lambda consumer: consumer.poll(timeout=0.1),
    "anext": anext,
    "batches": lambda consumer: anext(consumer.batches()),
    "commit": lambda consumer: consumer.commit(),
}


async def opened() -> tuple[Broker, Consumer]:
    broker = await Broker(topics={"t": 1}, memory_transport=True).__aenter__()
    config = ConsumerConfig.of(broker.bootstrap_servers, {"group_id": "g"})
    consumer = Consumer.from_config(config, dial=broker.dial, topics="t")
    await consumer.start()
    return broker, consumer


async def ended(broker: Broker, consumer: Consumer) -> None:
    assert (await consumer.poll(timeout=0)).records == []
    await consumer.close()
    await broker.__aexit__(None, None, None)


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_reading_on_another_loop_is_refused(
    read: Callable[[Consumer], Awaitable[object]],
) -> None:
    async def fails(consumer: Consumer) -> None:
        async with asyncio.timeout(5):
            with pytest.raises(ClosedError, match="started on another event loop"):
                await read(consumer)

    with asyncio.Runner() as home:
        broker, consumer = home.run(opened())
        asyncio.run(fails(consumer))
        home.run(ended(broker, consumer))  # and nothing was spoilt by it
