"""TLS to a real broker: trust, client certificates, rotation, and ports mixed up."""

import asyncio
import datetime
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import trustme

import kafkaio
from tests.support.kafka import Kafka
from tests.support.patience import HANGS, NEVER_MS

pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("the embedded broker has no TLS yet"),
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kafka() -> AsyncIterator[Kafka]:
    async with Kafka(tls=True) as started:
        yield started


def trusting(kafka: Kafka) -> dict[str, Any]:
    return {
        "security_protocol": "SSL",
        "ssl_truststore_location": str(kafka.certificates.authority),
    }


async def connect(kafka: Kafka, listener: str, **options: Any) -> None:
    async with kafkaio.Client(kafka.bootstrap(listener), **options) as client:
        await client.request(kafkaio.messages.MetadataRequest(topics=None))


async def refused(kafka: Kafka, listener: str, **options: Any) -> str:
    """The error of a client that is refused at once."""
    options = {"default_api_timeout_ms": NEVER_MS, **options}
    with pytest.raises(kafkaio.AuthenticationError) as caught:
        async with asyncio.timeout(HANGS):
            await connect(kafka, listener, **options)
    return str(caught.value)


async def test_a_round_trip(kafka: Kafka) -> None:
    name = await kafka.create_topic("secret", 1)
    where = kafka.bootstrap("SSL")
    async with kafkaio.Producer(where, **trusting(kafka)) as producer:
        assert (await producer.send(name, b"v" * 300_000)).offset == 0
    async with kafkaio.Consumer(
        where, topics=name, auto_offset_reset="earliest", **trusting(kafka)
    ) as consumer:
        async for record in consumer:
            assert record.value == b"v" * 300_000
            break


async def test_a_broker_that_is_not_trusted(kafka: Kafka) -> None:
    text = await refused(kafka, "SSL", security_protocol="SSL")
    assert "ssl_truststore_location" in text


async def test_a_broker_with_another_name(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, port = kafka.bootstrap("SSL").split(":")
    resolved = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, int(port)))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: resolved)
    client = kafkaio.Client(f"other.example:{port}", **trusting(kafka))
    with pytest.raises(kafkaio.AuthenticationError, match="other names"):
        await client.start(timeout=20)
    await client.close()


async def test_a_client_with_a_certificate(kafka: Kafka) -> None:
    path = str(kafka.certificates.clients["alice"])
    await connect(kafka, "MTLS", ssl_keystore_location=path, **trusting(kafka))


async def test_a_client_without_a_certificate(kafka: Kafka) -> None:
    text = await refused(kafka, "MTLS", **trusting(kafka))
    assert "wants a certificate of the client" in text
    assert "ssl_keystore_location" in text


async def test_a_client_of_another_authority(kafka: Kafka, tmp_path: Path) -> None:
    path = tmp_path / "mallory.pem"
    leaf = trustme.CA().issue_cert("mallory")
    leaf.private_key_and_cert_chain_pem.write_to_path(path)
    text = await refused(
        kafka, "MTLS", ssl_keystore_location=str(path), **trusting(kafka)
    )
    assert "client's certificate" in text


async def test_a_client_with_an_expired_certificate(
    kafka: Kafka, tmp_path: Path
) -> None:
    past = datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC)
    leaf = trustme.CA().issue_cert("alice", not_after=past)
    path = tmp_path / "old.pem"
    leaf.private_key_and_cert_chain_pem.write_to_path(path)
    with pytest.raises(kafkaio.ConfigurationError, match="expired at 2001-01-01"):
        await connect(kafka, "MTLS", ssl_keystore_location=str(path), **trusting(kafka))
    context = ssl.create_default_context(cafile=kafka.certificates.authority)
    leaf.configure_cert(context)
    text = await refused(kafka, "MTLS", security_protocol="SSL", ssl_context=context)
    assert "certificate" in text


async def test_a_certificate_that_is_replaced_while_a_producer_runs(
    kafka: Kafka, tmp_path: Path
) -> None:
    name = await kafka.create_topic("rotated", 1)
    path = tmp_path / "client.pem"
    path.write_bytes(kafka.certificates.clients["alice"].read_bytes())
    options = {"ssl_keystore_location": str(path), **trusting(kafka)}
    async with kafkaio.Producer(kafka.bootstrap("MTLS"), **options) as producer:
        await producer.send(name, b"1")
        # The certificate of another authority: open connections stay as they are.
        other = trustme.CA().issue_cert("mallory")
        other.private_key_and_cert_chain_pem.write_to_path(path)
        assert (await producer.send(name, b"2")).offset == 1
        # A file that is half written, and then the whole one.
        path.write_bytes(b"")
        path.write_bytes(kafka.certificates.clients["alice"].read_bytes())
        assert (await producer.send(name, b"3")).offset == 2


async def test_plaintext_to_a_tls_port_ends_at_once(kafka: Kafka) -> None:
    text = await refused(kafka, "SSL")
    assert "security_protocol='SSL'" in text


async def test_tls_to_a_plaintext_port_hints_at_it(kafka: Kafka) -> None:
    client = kafkaio.Client(kafka.bootstrap("PLAINTEXT"), **trusting(kafka))
    with pytest.raises(kafkaio.NetworkError, match="See security_protocol"):
        await client.start(timeout=3)
    await client.close()
