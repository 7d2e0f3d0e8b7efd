"""Logins to a real broker: right and wrong ones, and sessions that are renewed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from kafkaio import AuthenticationError, Client, Consumer, Producer
from kafkaio.testing.kafka import Kafka
from tests.unit.security.test_token_login import Provider

pytestmark = [
    pytest.mark.not_embedded("the logins of a real broker"),
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="module"),
]

PASSWORD = "alice-secret"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *SCRAM, "OAUTHBEARER")
#: Of the listener, so short that many sessions end within a test.
SESSION_MS = 2_000
SECONDS = 12.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded(kafka_version: str) -> AsyncIterator[Kafka]:
    """A Kafka that limits sessions on its SASL listener, where it can (KIP-368)."""
    limit = "connections.max.reauth.ms"
    config = {f"listener.name.sasl.{m.lower()}.{limit}": SESSION_MS for m in MECHANISMS}
    async with Kafka(version=kafka_version, sasl=True, config=config) as kafka:
        await kafka.create_topic("t", 6)
        yield kafka


def login(kafka: Kafka, mechanism: str, **given: Any) -> dict[str, Any]:
    credentials: dict[str, Any] = {
        "sasl_username": "alice",
        "sasl_password": PASSWORD,
    }
    if mechanism == "OAUTHBEARER":
        credentials = {"sasl_oauth_token_provider": Provider(3_600)}
    return {
        "bootstrap_servers": kafka.bootstrap("SASL"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        **credentials,
        **given,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_the_right_credentials(guarded: Kafka, mechanism: str) -> None:
    async with Producer(**login(guarded, mechanism)) as producer:
        assert (await producer.send("t", b"v")).offset >= 0


class Dials:
    """Counts the attempts to connect."""

    def __init__(self) -> None:
        self.refused = 0

    def connection_lost(self, node: int, kind: str, cause: object) -> None:
        del node, kind
        self.refused += isinstance(cause, AuthenticationError)


@pytest.mark.parametrize(
    ("mechanism", "given", "reason"),
    [
        ("PLAIN", {"sasl_password": "wrong-secret"}, "Invalid username or password"),
        ("PLAIN", {"sasl_username": "eve"}, "Invalid username or password"),
        *(
            (name, wrong, "invalid credentials with SASL mechanism")
            for name in SCRAM
            for wrong in ({"sasl_password": "wrong-secret"}, {"sasl_username": "eve"})
        ),
        (
            "OAUTHBEARER",
            {"sasl_oauth_token_provider": Provider(3_600, subject="")},
            "invalid_token",
        ),
    ],
)
async def test_the_wrong_credentials(
    guarded: Kafka,
    mechanism: str,
    given: dict[str, Any],
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard = Dials()
    options = login(guarded, mechanism, **given)
    with caplog.at_level(logging.DEBUG, "kafkaio"):
        began = time.monotonic()
        with pytest.raises(AuthenticationError) as caught:
            async with Client(observer=heard, **options):
                pass
        taken = time.monotonic() - began
    error = caught.value
    assert reason in error.reason
    assert (error.mechanism, error.step) == (mechanism, "SaslAuthenticate")
    assert error.broker == guarded.bootstrap("SASL")
    # The broker waits 0.3 s before it refuses. Nothing asks it again.
    assert taken < 3
    assert heard.refused == 1
    for text in (str(error), repr(error), caplog.text, repr(options.keys())):
        assert "secret" not in text


@pytest.mark.kafka_versions("4.3")
async def test_a_listener_without_sasl(guarded: Kafka) -> None:
    options = login(guarded, "PLAIN", bootstrap_servers=guarded.bootstrap_servers)
    with pytest.raises(AuthenticationError, match="security_protocol is to be"):
        async with Client(**options):
            pass


@pytest.mark.kafka_versions("4.3")
async def test_a_client_without_sasl(guarded: Kafka) -> None:
    began = time.monotonic()
    with pytest.raises(AuthenticationError, match="security_protocol"):
        async with Client(guarded.bootstrap("SASL")):
            pass
    assert time.monotonic() - began < 5


class Sessions:
    """Counts logins, and connections that ended with an error."""

    def __init__(self) -> None:
        self.again = 0
        self.lost: list[object] = []

    def authenticated(self, *facts: object, **more: object) -> None:
        del facts, more
        self.again += 1

    def connection_lost(self, node: int, kind: str, cause: object) -> None:
        if cause is not None:
            self.lost.append((node, kind, cause))


async def _work(kafka: Kafka, mechanism: str, heard: Sessions) -> None:
    """Produce, and consume in a group in which a member comes and goes."""
    options = login(kafka, mechanism)
    topic = await kafka.create_topic(f"sessions-{mechanism.lower()}", 6)
    sent, got = Counter[bytes | None](), Counter[bytes | None]()
    until = time.monotonic() + SECONDS

    async def produce(producer: Producer) -> None:
        while time.monotonic() < until:
            value = b"%d" % sent.total()
            sent[value] += 1
            await producer.send(topic, value)

    async def consume(begin: float, end: float) -> None:
        await asyncio.sleep(begin)
        asked = {"group_id": topic, "auto_offset_reset": "earliest", **options}
        async with Consumer(topics=topic, observer=heard, **asked) as consumer:
            while time.monotonic() < end or (end == until and got.total() < len(sent)):
                for record in (await consumer.poll(timeout=0.2)).records:
                    got[record.value] += 1
            await consumer.commit()

    async with (
        Producer(observer=heard, **options) as producer,
        asyncio.timeout(SECONDS + 30),
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(produce(producer))
        tasks.create_task(consume(0, until))
        tasks.create_task(consume(0, until))
        tasks.create_task(consume(0, until))
        tasks.create_task(consume(SECONDS / 4, until - SECONDS / 4))
    assert got == sent


@pytest.mark.kafka_versions("4.3")
async def test_sessions_of_two_seconds(guarded: Kafka) -> None:
    """Nothing is lost, repeated or refused; at the same time by two mechanisms."""
    heard = {name: Sessions() for name in ("PLAIN", "OAUTHBEARER")}
    async with asyncio.TaskGroup() as tasks:
        for name, sessions in heard.items():
            tasks.create_task(_work(guarded, name, sessions))
    for sessions in heard.values():
        assert sessions.lost == []
        # The producer alone has a dozen.
        assert sessions.again > SECONDS * 1_000 / SESSION_MS
