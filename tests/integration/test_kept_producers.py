"""Producers that are kept idle, and whether they still have their ids.

`tests/unit/producer/test_current.py` has what brokers cannot be made to do.
"""

from __future__ import annotations

import uuid

import pytest

from kafkaio import Client, Producer
from kafkaio._config import ProducerConfig
from kafkaio._producer.current import is_current
from kafkaio.errors import Fenced
from kafkaio.spark._kept import KeptProducers, sharing
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import topic_factory
from tests.integration.committed import ours, settled

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("2.8+"),
    pytest.mark.not_embedded("of the real brokers; units show the embedded one"),
]


async def started(client: Client, config: ProducerConfig) -> Producer:
    producer = sharing(client, config)
    await producer.start()
    return producer


async def commit(producer: Producer, topic: str, value: bytes) -> None:
    async with producer.transaction() as tx:
        await tx.enqueue(topic, value)


async def test_a_producer_is_kept_until_it_is_replaced(
    transactional: Kafka, request: pytest.FixtureRequest
) -> None:
    topic = topic_factory(transactional, request)(partitions=1)
    servers, name = transactional.bootstrap_servers, f"kept-{uuid.uuid4()}"
    config = ProducerConfig.of(servers, {"transactional_id": name})
    kept, wanted = KeptProducers(), []
    async with Client(servers) as client, Client(servers) as elsewhere:
        first = await started(client, config)
        for number in range(20):
            await kept.give_back(client, first)
            assert await kept.reuse(client, config) is first
            wanted.append(b"%d" % number)
            await commit(first, topic, wanted[-1])
        async with first.transaction() as tx:
            await tx.send(topic, b"aborted")
            await tx.abort()
        assert await is_current(first, 30)

        successor = await started(elsewhere, config)
        async with successor.transaction() as tx:
            await tx.send(topic, b"successor's")
            assert not await is_current(first, 30)
        wanted.append(b"successor's")
        with pytest.raises(Fenced):
            await commit(first, topic, b"nobody's")
        await kept.give_back(client, first)
        await successor.close()
        assert await kept.reuse(client, config) is None
        again = await started(client, config)
        wanted.append(b"again")
        await commit(again, topic, wanted[-1])
        await again.close()
    await settled(servers, topic, 1)
    assert await ours(servers, topic) == sorted(wanted)
