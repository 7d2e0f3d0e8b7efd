"""Errors name the true cause: on an embedded broker that misbehaves in one way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

import kafkaio
from kafkaio.protocol._broker_errors import broker_error, meaning, sentence
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker

OAUTH: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "OAUTHBEARER",
}
ALICE: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "alice",
    "sasl_password": "alice-secret",
}


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(sasl=True, acls=True, topics={"t": 1}) as broker:
        yield broker


@pytest.mark.parametrize("kind", [kafkaio.Client, kafkaio.Admin])
async def test_a_token_that_does_not_come(broker: Broker, kind: Any) -> None:
    async def hang() -> kafkaio.types.Token:
        await asyncio.Event().wait()
        raise AssertionError

    client = kind(broker.bootstrap("SASL"), sasl_oauth_token_provider=hang, **OAUTH)
    with pytest.raises(kafkaio.BrokerNotAvailable) as told:
        await client.start(timeout=0.5)
    assert "no broker was asked: the client waits for credentials" in str(told.value)
    assert "did not answer" not in str(told.value)


async def test_a_broker_that_closes_on_wrong_credentials() -> None:
    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reader = _
        # ApiVersions and SaslHandshake are answered by the real one; here the
        # connection ends at the first request of the login.
        async with Broker(sasl=True) as broker:
            port = broker.nodes[0].endpoints["SASL"].port
            up, down = await asyncio.open_connection("127.0.0.1", port)
            for _number in range(2):
                size = await reader.readexactly(4)
                down.write(size + await reader.readexactly(int.from_bytes(size)))
                size = await up.readexactly(4)
                writer.write(size + await up.readexactly(int.from_bytes(size)))
            await reader.readexactly(4)
            down.close()
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        client = kafkaio.Client(f"127.0.0.1:{port}", **ALICE)
        with pytest.raises(kafkaio.NetworkError) as told:
            await client.start(timeout=5)
    assert "PLAIN" in str(told.value)
    assert "credentials" in str(told.value)


async def test_users_without_the_right_to_see_them(broker: Broker) -> None:
    async with kafkaio.Admin(broker.bootstrap("SASL"), **ALICE) as admin:
        async with asyncio.timeout(5):
            with pytest.raises(
                kafkaio.AuthorizationError, match="needs DESCRIBE on the"
            ):
                await admin.describe_user_scram_credentials()


async def test_a_topic_that_is_not_there_is_said_in_a_sentence(broker: Broker) -> None:
    async with kafkaio.Consumer(
        broker.bootstrap_servers, allow_auto_create_topics=False
    ) as consumer:
        with pytest.raises(kafkaio.UnknownTopicOrPartition) as told:
            await consumer.partitions_for_topic("nothing")
    text = "look up topic 'nothing': there is no such topic or partition"
    assert str(told.value).startswith(text)


async def test_a_record_of_a_topic_that_brokers_refuse_to_describe() -> None:
    async with Broker(auto_create_topics=False) as broker:
        broker.faults.on("Metadata", refusing())
        producer = kafkaio.Producer(broker.bootstrap_servers, max_block_ms=300)
        async with producer:
            with pytest.raises(kafkaio.UnknownTopicOrPartition) as told:
                await producer.send("nosuch", b"v")
    assert "is not known to the cluster, also after 0.3 s (max_block_ms)" in str(
        told.value
    )


def refusing() -> Any:
    from kafkaio.testing import error

    return error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


# ---- words ---------------------------------------------------------------------------


def test_no_topic_without_a_name() -> None:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    text = str(broker_error(code, "look up", api=3))
    assert "there is no such topic, or the principal may not DESCRIBE it" in text
    text = str(broker_error(code, "look up", api=3, topic="t"))
    assert "there is no topic 't', or the principal may not DESCRIBE it" in text


def test_what_codes_mean() -> None:
    said = sentence(ErrorCode.GROUP_ID_NOT_FOUND, "delete group g")
    assert said == "delete group g: there is no such group"
    # A code of a newer broker, and one whose right is named elsewhere.
    assert sentence(9_999, "do it") == "do it"
    assert not meaning(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
