"""Clients that log in by tokens, to an embedded broker."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from kafkaio import AuthenticationError, Client, Consumer, Producer
from kafkaio.testing import Broker, SecurityConfig
from kafkaio.types import Token
from tests.unit.testing.broker.logins import token


class Provider:
    """Returns unsecured tokens of alice (RFC 7515, alg none)."""

    def __init__(self, seconds: float = 60.0, subject: str = "alice") -> None:
        self.seconds = seconds
        self.subject = subject
        self.calls = 0

    async def __call__(self) -> Token:
        self.calls += 1
        await asyncio.sleep(0)
        end = time.time() + self.seconds
        value = token(self.subject, self.seconds, iat=time.time())
        return Token(value=value, expires=end)


def options(broker: Broker, provider: object) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker.bootstrap("SASL"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": provider,
        "default_api_timeout_ms": 5_000,
    }


async def test_all_connections_share_one_token() -> None:
    before = asyncio.all_tasks()
    async with Broker(nodes=3, sasl=True, topics={"t": 6}) as broker:
        provider = Provider()
        async with Producer(**options(broker, provider)) as producer:
            for number in range(60):
                await producer.send("t", b"%d" % number, partition=number % 6)
        assert provider.calls == 1
        assert broker.security.authentications.first["OAUTHBEARER"] >= 3
        placed = options(broker, Provider()) | {"auto_offset_reset": "earliest"}
        read: list[bytes | None] = []
        async with Consumer(topics="t", group_id="g", **placed) as consumer:
            while len(read) < 60:
                read += [r.value for r in (await consumer.poll(timeout=5)).records]
    assert sorted(map(int, filter(None, read))) == list(range(60))
    assert asyncio.all_tasks() <= before


async def test_a_token_that_ends_by_the_brokers_clock() -> None:
    """The login succeeds, and the broker closes at the first request."""

    security = SecurityConfig(token_skew=30)

    class Ended(Provider):
        async def __call__(self) -> Token:
            found = await super().__call__()
            return Token(value=found.value, expires=time.time() + 60)

    async with Broker(sasl=True, security=security) as broker:
        client = Client(**options(broker, Ended(-1)))
        with pytest.raises(AuthenticationError, match="ended by the broker's clock"):
            await client.start()
        await client.close()
        assert broker.security.authentications.killed in {3, 4}


async def test_a_provider_that_fails_is_told_and_asked_again() -> None:
    class Fails(Provider):
        async def __call__(self) -> Token:
            if self.calls == 0:
                self.calls += 1
                raise OSError("the token server is away")
            return await super().__call__()

    async with Broker(sasl=True, topics={"t": 1}) as broker:
        provider = Fails()
        producer = Producer(**options(broker, provider))
        with pytest.raises(AuthenticationError, match="failed with OSError") as caught:
            await producer.start()
        assert caught.value.mechanism == "OAUTHBEARER"
        await producer.close()
        async with Producer(**options(broker, provider)) as producer:
            assert (await producer.send("t", b"v")).offset == 0
