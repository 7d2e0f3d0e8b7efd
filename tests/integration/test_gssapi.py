"""Logins by Kerberos to a real broker: `nox -s "nightly(gssapi)"`.

Needs Debian's Kerberos server and the extra ``gssapi``, which is compiled.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kafkaio import AuthenticationError, Client, Consumer, Producer
from kafkaio.testing.kafka._guard import Guard
from kafkaio.testing.kafka._nodes import free_ports
from kafkaio.testing.kafka._releases import KafkaNotStarted
from tests.integration.groups import until
from tests.integration.test_sasl import SESSION_MS, Sessions, Work, check
from tests.support.kafka import Kafka
from tests.support.kafka.kdc import Kdc
from tests.support.listener_counts import ListenerCounts
from tests.support.patience import HANGS

pytestmark = [
    pytest.mark.not_embedded("Kerberos with a real broker"),
    pytest.mark.kafka_versions("newest"),
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="module"),
]

SECONDS = 15.0
#: Until an error names what is wrong.
PROMPTLY = 3.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded() -> AsyncIterator[Kafka]:
    """A Kafka with Kerberos that limits sessions (KIP-368)."""
    async with Kafka(
        sasl=True, tls=True, gssapi=True, reauth_ms=SESSION_MS, jmx=True
    ) as kafka:
        await kafka.create_topic("t", 6)
        yield kafka


@pytest.fixture(scope="module")
def alice(guarded: Kafka) -> Path:
    """The keytab of a user."""
    return guarded.kdc.add_principal("alice")


def use_cache(
    kdc: Kdc, monkeypatch: pytest.MonkeyPatch, cache: Path | None = None
) -> None:
    """Have the library use a credentials cache, which by default does not exist."""
    for name, value in kdc.environment(cache).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def ticket(
    guarded: Kafka, alice: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ticket of alice."""
    cache = tmp_path / "cache"
    guarded.kdc.kinit("alice", alice, cache)
    use_cache(guarded.kdc, monkeypatch, cache)


def login(kafka: Kafka, listener: str = "SASL", **given: Any) -> dict[str, Any]:
    options = {
        "bootstrap_servers": kafka.bootstrap(listener),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
    }
    if listener == "SASL_SSL":
        options["security_protocol"] = listener
        options["ssl_truststore_location"] = str(kafka.certificates.authority)
    return options | given


async def refused(options: dict[str, Any]) -> AuthenticationError:
    """The error of a client, which comes promptly."""
    began = time.monotonic()
    with pytest.raises(AuthenticationError) as caught:
        async with Client(**options):
            pass
    assert time.monotonic() - began < PROMPTLY
    return caught.value


async def send(producer: Producer, seconds: float) -> None:
    """Send a record ten times a second."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await producer.send("t", b"v")
        await asyncio.sleep(0.1)


@pytest.mark.usefixtures("ticket")
@pytest.mark.parametrize("listener", ["SASL", "SASL_SSL"])
async def test_a_ticket(guarded: Kafka, listener: str) -> None:
    options = login(guarded, listener)
    async with Producer(**options) as producer:
        sent = await producer.send("t", listener.encode())
    async with Consumer(
        topics="t", group_id=listener, auto_offset_reset="earliest", **options
    ) as consumer:
        found: set[tuple[int, int, bytes | None]] = set()
        async with asyncio.timeout(HANGS):
            while (sent.partition, sent.offset, listener.encode()) not in found:
                records = (await consumer.poll(timeout=1.0)).records
                found |= {(one.partition, one.offset, one.value) for one in records}


async def test_a_keytab(
    guarded: Kafka, alice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_cache(guarded.kdc, monkeypatch)
    by_keytab = {"sasl_kerberos_principal": "alice", "sasl_kerberos_keytab": str(alice)}
    async with Producer(**login(guarded, **by_keytab)) as producer:
        assert (await producer.send("t", b"v")).offset >= 0


async def test_no_ticket(guarded: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    use_cache(guarded.kdc, monkeypatch)
    error = await refused(login(guarded))
    assert "run kinit, or give sasl_kerberos_keytab" in str(error)
    assert error.mechanism == "GSSAPI"


async def test_a_ticket_that_has_ended(
    guarded: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kdc, cache = guarded.kdc, tmp_path / "cache"
    kdc.kinit("brief", kdc.add_principal("brief", ticket_life=1), cache)
    await until(lambda: not kdc.has_ticket(cache), limit=HANGS)
    use_cache(kdc, monkeypatch, cache)
    error = await refused(login(guarded))
    assert "expired: run kinit again" in str(error)


@pytest.mark.usefixtures("ticket")
async def test_a_service_that_kerberos_does_not_know(guarded: Kafka) -> None:
    error = await refused(login(guarded, sasl_kerberos_service_name="kafak"))
    assert "kafak/127.0.0.1@KAFKAIO.TEST not found in Kerberos database" in str(error)
    assert "compare its principal with sasl_kerberos_service_name" in str(error)


@pytest.mark.usefixtures("ticket")
async def test_a_service_that_is_not_the_broker(guarded: Kafka) -> None:
    """Kerberos gives a ticket for it, which the broker has no key for."""
    guarded.kdc.add_principal("other/127.0.0.1")
    error = await refused(login(guarded, sasl_kerberos_service_name="other"))
    assert error.step == "SaslAuthenticate"
    assert error.broker == guarded.bootstrap("SASL")


async def test_a_user_that_is_deleted(
    guarded: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It works until its ticket ends; the next login says why it is refused."""
    kdc = guarded.kdc
    use_cache(kdc, monkeypatch)
    keytab = str(kdc.add_principal("eve", ticket_life=3))
    options = login(guarded, sasl_kerberos_principal="eve", sasl_kerberos_keytab=keytab)
    heard = Sessions()
    async with Producer(observer=heard, **options) as producer:
        await producer.send("t", b"before")
        kdc.delete_principal("eve")
        await producer.send("t", b"after")
        with pytest.raises(AuthenticationError) as caught:
            await send(producer, SECONDS)
    assert "Kerberos may no longer know sasl_kerberos_principal" in str(caught.value)
    assert heard.lost != []
    error = await refused(options)
    assert "Kerberos may no longer know sasl_kerberos_principal" in str(error)


async def test_a_keytab_gets_new_tickets(
    guarded: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tickets end three times, and no connection with them."""
    use_cache(guarded.kdc, monkeypatch)
    keytab = str(guarded.kdc.add_principal("carol", ticket_life=5))
    options = login(
        guarded, sasl_kerberos_principal="carol", sasl_kerberos_keytab=keytab
    )
    heard = Sessions()
    async with Producer(observer=heard, **options) as producer:
        await send(producer, SECONDS)
    assert heard.lost == []
    assert max(heard.again.values()) >= SECONDS * 1_000 / SESSION_MS * 0.9


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("ticket")
async def test_five_minutes_of_sessions(guarded: Kafka) -> None:
    """Each record comes once, and no connection is lost, while members come and go."""
    topic = await guarded.create_topic("sessions", 6)
    work = Work(login(guarded), topic, 300.0, 30.0)
    async with ListenerCounts(guarded) as counts:
        await work.run()
    check(counts, [work])


async def test_what_the_server_refuses(guarded: Kafka, tmp_path: Path) -> None:
    kdc = guarded.kdc
    keytab = kdc.add_principal("bob")
    with pytest.raises(KafkaNotStarted, match="already exists"):
        kdc.add_principal("bob")
    kdc.delete_principal("bob")
    with pytest.raises(KafkaNotStarted, match="does not exist"):
        kdc.delete_principal("bob")
    with pytest.raises(KafkaNotStarted, match="not found in Kerberos database"):
        kdc.kinit("bob", keytab, tmp_path / "cache")
    assert not kdc.has_ticket(tmp_path / "cache")


async def test_a_port_that_another_process_has_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = Guard(tmp_path / "kdc")
    kdc = Kdc(tmp_path / "kdc", lambda node, command: node.spawn(command, guard))
    with socket.create_server(("127.0.0.1", 0)) as other:
        ports = iter([[other.getsockname()[1]], *([port] for port in free_ports(2))])
        monkeypatch.setattr("tests.support.kafka.kdc.free_ports", lambda _: next(ports))
        try:
            kdc.start()
            assert kdc.node.pid is not None
            assert other.getsockname()[1] not in kdc.node.ports.values()
            kdc.kinit("eve", kdc.add_principal("eve"), tmp_path / "cache")
            assert kdc.has_ticket(tmp_path / "cache")
        finally:
            kdc.node.kill()
            guard.close()
    assert not kdc.directory.exists()
