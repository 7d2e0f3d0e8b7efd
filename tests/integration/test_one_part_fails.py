"""One partition of a real cluster fails, and a producer goes on with the others.

The embedded broker shows the whole matrix (`test_producer_matrix`).
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafkaio import BufferFull, Producer
from kafkaio.types import TopicPartition
from tests.support import patience
from tests.support.kafka import Kafka

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.kafka_versions("3.9", "newest"),
    pytest.mark.not_embedded("test_producer_matrix shows it"),
]

SOON = patience.HANGS


async def leader_of(producer: Producer, topic: str, partition: int) -> int:
    await producer.partitions_for(topic)
    return producer._cluster.view.leader(TopicPartition(topic, partition))


async def test_a_node_without_replicas_goes(kafka_version: str) -> None:
    async with Kafka(brokers=3, version=kafka_version) as kafka:
        topic = await kafka.create_topic("spread", 6, replication_factor=1)
        async with Producer(
            kafka.bootstrap_servers, log=False, buffer_memory=4_000_000
        ) as producer:
            sticky = (await producer.send(topic, b"first")).partition
            node = await leader_of(producer, topic, sticky)
            await kafka.kill(node)
            written: list[int] = []
            async with asyncio.timeout(SOON):
                while len(written) < 5:
                    try:
                        async with asyncio.timeout(1.0):
                            place = await producer.send(topic, b"v")
                    except TimeoutError:
                        continue
                    written.append(place.partition)
            assert sticky not in written
            await fill_its_share(producer, topic, sticky, written[-1])
            await producer.close(timeout=0)


async def fill_its_share(producer: Producer, topic: str, gone: int, well: int) -> None:
    tasks: list[asyncio.Task[Any]] = [
        asyncio.create_task(producer.send(topic, bytes(1_000), partition=gone))
        for _ in range(6_000)
    ]
    async with asyncio.timeout(SOON):
        while not producer.statistics().waiting_for_room:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for _ in range(20):
            await producer.send(topic, bytes(50_000), partition=well)
    with pytest.raises(BufferFull, match=f"{topic}-{gone} makes no progress"):
        producer.enqueue_nowait(topic, bytes(1_000), partition=gone)
    assert producer.statistics().buffer.used_bytes < 3_000_000
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
