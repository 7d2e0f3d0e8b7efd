"""A broker that closes the connection on large requests (``socket.request.max.bytes``).

So do services with limits of their own. The broker is the test's own, because the limit
is an option of brokers.
"""

from __future__ import annotations

import asyncio

import pytest

from kafkaio import DeliveryTimeout, Producer
from tests.support.kafka import Kafka
from tests.support.patience import HANGS

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("2.8", "newest"),
    pytest.mark.not_embedded("it has no such limit"),
]

LIMIT = 100_000


async def test_requests_become_smaller_until_the_broker_takes_them(
    kafka_version: str,
) -> None:
    config = {"socket.request.max.bytes": LIMIT}
    async with Kafka(brokers=1, version=kafka_version, config=config) as kafka:
        topic = await kafka.create_topic("limited", 3)
        async with Producer(
            kafka.bootstrap_servers, log=False, retry_backoff_max_ms=100
        ) as producer:
            await producer.partitions_for(topic)
            deliveries = [
                producer.enqueue_nowait(topic, b"%06d" % n * 50, partition=n % 3)
                for n in range(3_000)
            ]
            async with asyncio.timeout(HANGS):
                places = [await delivery for delivery in deliveries]
            for partition in range(3):
                offsets = [p.offset for p in places if p.partition == partition]
                assert offsets == list(range(1_000))
        async with Producer(
            kafka.bootstrap_servers,
            log=False,
            delivery_timeout_ms=1_500,
            request_timeout_ms=1_000,
        ) as producer:
            with pytest.raises(
                DeliveryTimeout, match=r"the request had 1500\d\d bytes"
            ):
                await producer.send(topic, bytes(150_000))
