"""A broker that closes, stalls or lies anywhere in the handshake.

Each ends in a typed error within the time limit, and leaves no task and no connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kafkaio._runtime.clock import now
from kafkaio.client import Client
from kafkaio.config import ClientConfig
from kafkaio.errors import AuthenticationError, BrokerNotAvailable, KafkaError
from kafkaio.testing import Broker
from kafkaio.testing.broker.faults import (
    Fault,
    close_at,
    endless_challenges,
    foreign_nonce,
    garbage,
    invert_at,
    iteration_count,
    stall_at,
    wrong_correlation_id,
    wrong_signature,
)

#: Seconds that a start may take, and a little more to close.
LIMIT = 20.0
#: Where an answer is cut: at each byte of those of SASL, here and there in the other.
POSITIONS = {
    "ApiVersions": range(0, 200, 7),
    "SaslHandshake": range(130),
    "SaslAuthenticate": range(130),
}


async def outcome(api: str, fault: Fault, mechanism: str) -> KafkaError | None:
    """Start a client; return why it failed."""
    made = Broker(sasl=True, memory_transport=True)
    async with made as broker:
        options = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism,
            "sasl_username": "alice",
            "sasl_password": "alice-secret",
        }
        config = ClientConfig.of(broker.bootstrap("SASL"), options)
        broker.faults.on(api, fault)
        client = Client.from_config(config, dial=broker.dial)
        before, tasks = now(), asyncio.all_tasks()
        found: KafkaError | None = None
        try:
            await client.start(LIMIT)
        except KafkaError as error:
            found = error
        assert now() - before <= LIMIT + 3
        await client.close()
        for _ in range(3):
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == tasks
        assert "alice-secret" not in str(found)
        return found


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("api", POSITIONS)
@pytest.mark.parametrize("fault", [close_at, stall_at])
async def test_at_every_byte(
    fault: Callable[[int], Fault], api: str, mechanism: str
) -> None:
    failed = 0
    for position in POSITIONS[api]:
        error = await outcome(api, fault(position), mechanism)
        if error is None:
            break  # past the end of the answer
        failed += 1
        assert isinstance(error, AuthenticationError | BrokerNotAvailable), position
    assert failed > 10


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("api", POSITIONS)
async def test_a_wrong_bit_at_every_byte(api: str, mechanism: str) -> None:
    """Some bits mean nothing; all others end in a typed error."""
    for position in POSITIONS[api][:60]:
        error = await outcome(api, invert_at(position), mechanism)
        assert error is None or isinstance(error, KafkaError), position


@pytest.mark.parametrize(
    "fault",
    [
        wrong_signature(),
        foreign_nonce(),
        iteration_count(10_000_000),
        iteration_count(1),
        endless_challenges(b"r=more"),
        garbage(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        wrong_correlation_id(),
    ],
    ids=repr,
)
async def test_a_broker_that_lies(fault: Fault) -> None:
    error = await outcome("SaslAuthenticate", fault, "SCRAM-SHA-256")
    assert error is not None
    assert error.retriable or isinstance(error, KafkaError)
