"""The fixtures of the pytest plugin, on the embedded broker and on a real Kafka."""

from __future__ import annotations

import asyncio

import pytest

from kafkaio import Consumer, Producer
from kafkaio.testing.pytest_plugin import TopicFactory


@pytest.mark.kafka("embedded", "real", partitions=3)
async def test_a_round_trip(
    kafka_producer: Producer,
    kafka_consumer: Consumer,
    kafka_topic: str,
    kafka_topics: TopicFactory,
) -> None:
    for index in range(3):
        await kafka_producer.send(kafka_topic, b"%d" % index, partition=index)
    async with asyncio.timeout(20):
        found = {(await anext(kafka_consumer)).value for _ in range(3)}
    assert found == {b"0", b"1", b"2"}
    other = kafka_topics(config={"cleanup.policy": "compact"})
    assert (await kafka_producer.send(other, b"v", key=b"k")).offset == 0
