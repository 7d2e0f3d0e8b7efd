"""Sessions of two seconds (KIP-368) under a producer, a group and an admin.

The broker closes a connection at the first request after the end of its session, and
counts that, as it counts authentications.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafkaio import Admin
from kafkaio._config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio._consumer import Consumer
from kafkaio._producer import Producer
from kafkaio.testing import Broker

SECONDS = 60


class Heard:
    """Counts connections and authentications, and keeps why connections ended."""

    def __init__(self) -> None:
        self.opened = 0
        self.lifetimes: list[float] = []
        self.causes: list[BaseException] = []

    def connection_opened(self, *_: object) -> None:
        self.opened += 1

    def authenticated(self, *event: Any, is_renewal: bool) -> None:
        del is_renewal
        self.lifetimes.append(event[3])

    def connection_lost(self, *event: Any) -> None:
        if event[2] is not None:
            self.causes.append(event[2])


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_sessions_end_under_the_traffic(mechanism: str) -> None:
    made = Broker(
        nodes=2, topics={"t": 4}, sasl=True, reauth_ms=2000, memory_transport=True
    )
    options = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_username": "alice",
        "sasl_password": "alice-secret",
    }
    heard = Heard()
    async with made as broker:
        servers = broker.bootstrap("SASL")
        producing = ProducerConfig.of(servers, options)
        consuming = ConsumerConfig.of(
            servers, {**options, "group_id": "g", "auto_offset_reset": "earliest"}
        )
        asking = ClientConfig.of(servers, options)
        producer = Producer.from_config(producing, observer=heard, dial=broker.dial)
        consumer = Consumer.from_config(
            consuming, observer=heard, dial=broker.dial, topics=["t"]
        )
        admin = Admin.from_config(asking, observer=heard, dial=broker.dial)
        async with producer, consumer, admin:
            received = asyncio.create_task(take(consumer, 10 * SECONDS))
            for number in range(10 * SECONDS):
                await producer.send("t", b"%d" % number)
                await asyncio.sleep(0.1)
                if number % 100 == 0:  # idle for ten seconds, five sessions
                    assert await admin.list_transactions() == []
            assert await received == set(range(10 * SECONDS))
        counts = broker.security.authentications
        assert heard.causes == []
        assert counts.killed == 0
        assert not counts.failed
        assert counts.first.total() == heard.opened
        # Each connection at most once per 1.7 seconds, which is 0.85 of a session.
        assert counts.again.total() <= heard.opened * SECONDS / 1.7
        assert counts.again.total() > 4 * SECONDS / 2
        assert heard.lifetimes == [2.0] * (heard.opened + counts.again.total())


async def take(consumer: Consumer, count: int) -> set[int]:
    found: set[int] = set()
    async for record in consumer:
        number = int(record.value or b"")
        assert number not in found
        found.add(number)
        if len(found) == count:
            break
    return found
