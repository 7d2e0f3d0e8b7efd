"""Logins to a real broker: right and wrong ones, and sessions that are renewed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from kafkaio import AuthenticationError, Client, Consumer, Producer
from kafkaio.testing.kafka._releases import DEFAULT_VERSION
from tests.support.kafka import Kafka
from tests.support.listener_counts import ListenerCounts
from tests.support.patience import HANGS, NEVER_MS
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
OTHERS = ("SCRAM-SHA-512", "OAUTHBEARER")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded(kafka_version: str) -> AsyncIterator[Kafka]:
    """A Kafka that limits sessions on its SASL listener, where it can (KIP-368)."""
    limit = None if kafka_version == "2.1" else SESSION_MS
    is_new = kafka_version == DEFAULT_VERSION
    async with Kafka(
        version=kafka_version, sasl=True, reauth_ms=limit, jmx=is_new
    ) as kafka:
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
    options = login(guarded, mechanism, default_api_timeout_ms=NEVER_MS, **given)
    with (
        caplog.at_level(logging.DEBUG, "kafkaio"),
        pytest.raises(AuthenticationError) as caught,
    ):
        async with asyncio.timeout(HANGS), Client(observer=heard, **options):
            pass
    error = caught.value
    assert reason in error.reason
    assert (error.mechanism, error.step) == (mechanism, "SaslAuthenticate")
    assert error.broker == guarded.bootstrap("SASL")
    # Nothing asks the broker again, though there is time.
    assert heard.refused == 1
    for text in (str(error), repr(error), caplog.text, repr(options.keys())):
        assert "secret" not in text


@pytest.mark.kafka_versions("newest")
async def test_a_listener_without_sasl(guarded: Kafka) -> None:
    options = login(guarded, "PLAIN", bootstrap_servers=guarded.bootstrap_servers)
    with pytest.raises(AuthenticationError, match="security_protocol is to be"):
        async with Client(**options):
            pass


@pytest.mark.kafka_versions("newest")
async def test_a_client_without_sasl(guarded: Kafka) -> None:
    client = Client(guarded.bootstrap("SASL"), default_api_timeout_ms=NEVER_MS)
    with pytest.raises(AuthenticationError, match="security_protocol"):
        async with asyncio.timeout(HANGS), client:
            pass


class Sessions:
    """Counts logins, and connections that ended with an error."""

    def __init__(self) -> None:
        self.logins = 0
        self.again: Counter[tuple[int, str]] = Counter()
        self.lost: list[object] = []

    def authenticated(
        self, node: int, kind: str, *facts: object, is_renewal: bool
    ) -> None:
        del facts, is_renewal
        self.logins += 1
        self.again[node, kind] += 1

    def connection_lost(self, node: int, kind: str, cause: object) -> None:
        if cause is not None:
            self.lost.append((node, kind, cause))


@dataclass
class Work:
    """A producer, and a group of four in which a member comes and goes.

    Attributes:
        options: how clients log in.
        topic: the topic and the group.
        seconds: how long it sends.
        every: seconds between two changes of the group.
        lasted: seconds that it took, on a busy machine more than `seconds`.
        heard: what the clients' observers were told, one for each client.
        latencies: seconds until each record was acknowledged.
    """

    options: dict[str, Any]
    topic: str
    seconds: float
    every: float
    heard: list[Sessions] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    lasted: float = 0.0
    _sent: Counter[bytes | None] = field(default_factory=Counter)
    _got: Counter[bytes | None] = field(default_factory=Counter)

    async def run(self) -> None:
        """Do it all; nothing may be lost or repeated, and no connection may break."""
        began = time.monotonic()
        self._until = began + self.seconds
        async with (
            asyncio.timeout(self.seconds + HANGS),
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(self._produce())
            for _ in range(3):
                tasks.create_task(self._consume(self._is_wanted))
            tasks.create_task(self._come_and_go())
        self.lasted = time.monotonic() - began
        assert self._got == self._sent
        assert [lost for each in self.heard for lost in each.lost] == []

    def _observer(self) -> Sessions:
        self.heard.append(Sessions())
        return self.heard[-1]

    def _is_wanted(self) -> bool:
        return time.monotonic() < self._until or self._got.total() < self._sent.total()

    async def _produce(self) -> None:
        async with Producer(observer=self._observer(), **self.options) as producer:
            while time.monotonic() < self._until:
                value = b"%d" % self._sent.total()
                self._sent[value] += 1
                began = time.monotonic()
                await producer.send(self.topic, value)
                self.latencies.append(time.monotonic() - began)

    async def _consume(self, is_wanted: Callable[[], bool]) -> None:
        asked = {"group_id": self.topic, "auto_offset_reset": "earliest"}
        async with Consumer(
            topics=self.topic, observer=self._observer(), **asked, **self.options
        ) as consumer:
            while is_wanted():
                for record in (await consumer.poll(timeout=0.2)).records:
                    self._got[record.value] += 1
            await consumer.commit()

    async def _come_and_go(self) -> None:
        while time.monotonic() + 2 * self.every <= self._until:
            await asyncio.sleep(self.every)
            until = time.monotonic() + self.every
            await self._consume(lambda until=until: time.monotonic() < until)  # type: ignore[misc]  # bound at once


async def _work(
    kafka: Kafka, mechanism: str, seconds: float, every: float, **given: Any
) -> Work:
    topic = await kafka.create_topic(f"{mechanism.lower()}-{seconds:g}", 6)
    work = Work(login(kafka, mechanism, **given), topic, seconds, every)
    await work.run()
    return work


@pytest.mark.kafka_versions("newest")
async def test_sessions_of_two_seconds(guarded: Kafka) -> None:
    """Nothing is lost, repeated or refused; at the same time by two mechanisms."""
    async with ListenerCounts(guarded) as counts, asyncio.TaskGroup() as tasks:
        works = [
            tasks.create_task(_work(guarded, name, SECONDS, SECONDS / 4))
            for name in ("PLAIN", "OAUTHBEARER")
        ]
    check(counts, [work.result() for work in works])


def check(counts: ListenerCounts, works: list[Work]) -> None:
    """The broker has counted what the clients were told: one login a session."""
    heard = [sessions for work in works for sessions in work.heard]
    assert counts.refused == 0
    # No connection in use was cut off, or it would have been heard. A consumer that
    # closes says so to its leader in a Fetch; behind a long poll, the broker may read
    # it after the end of the session.
    assert counts.of("expired-connections-killed-count") <= len(heard)
    # A client that closes while a login is under way does not hear how it ends.
    unheard = counts.succeeded - sum(sessions.logins for sessions in heard)
    assert 0 <= unheard <= len(heard)
    for work in works:
        # A session is renewed after 0.85 of its two seconds at the earliest. The first
        # login is one more, and so is another connection of the same kind.
        most = work.lasted * 1_000 / (SESSION_MS * 0.85) + 3
        for sessions in work.heard:
            assert max(sessions.again.values()) <= most
        # The producer's connection was in use all the time.
        renewals = work.seconds * 1_000 / SESSION_MS
        assert max(work.heard[0].again.values()) >= renewals * 0.9


@pytest.mark.kafka_versions("newest")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mechanisms", [("PLAIN", "SCRAM-SHA-256"), OTHERS])
async def test_five_minutes_of_sessions(
    guarded: Kafka, mechanisms: tuple[str, ...]
) -> None:
    async with ListenerCounts(guarded) as counts, asyncio.TaskGroup() as tasks:
        works = [
            tasks.create_task(_work(guarded, name, 300.0, 30.0)) for name in mechanisms
        ]
    check(counts, [work.result() for work in works])


@pytest.mark.kafka_versions("newest")
@pytest.mark.parametrize("mechanism", ["PLAIN", "OAUTHBEARER"])
async def test_sessions_cost_no_latency(guarded: Kafka, mechanism: str) -> None:
    """Beside a broker without sessions: p99 is 1.5 times as long or 10 ms more."""
    async with Kafka(sasl=True) as free:
        await free.create_topic("t", 6)
        async with asyncio.TaskGroup() as tasks:
            works = [
                tasks.create_task(_latencies(kafka, mechanism))
                for kafka in (guarded, free)
            ]
    renewed, plain = (sorted(work.result()) for work in works)
    p99 = [found[int(len(found) * 0.99)] for found in (renewed, plain)]
    assert p99[0] <= max(1.5 * p99[1], p99[1] + 0.010), p99


async def _latencies(kafka: Kafka, mechanism: str) -> list[float]:
    """Seconds until each record was acknowledged, one after another."""
    found = []
    async with Producer(**login(kafka, mechanism)) as producer:
        await producer.send("t", b"first")
        until = time.monotonic() + 20
        while time.monotonic() < until:
            began = time.monotonic()
            await producer.send("t", b"v")
            found.append(time.monotonic() - began)
            await asyncio.sleep(0.002)
    return found
