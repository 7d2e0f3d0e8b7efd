"""What clients, producers and consumers do when brokers refuse their credentials.

The broker refuses after 0.3 seconds, as Kafka does, and counts the attempts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from kafkaio._client import Client
from kafkaio._config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio._consumer import Consumer
from kafkaio._producer import Producer
from kafkaio.errors import AuthenticationError, DeliveryTimeout
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.list_groups import ListGroupsRequest
from kafkaio.testing import Broker, disconnect_before_write, error

#: Attempts within half a minute, of each connection: after 1, 2, 4, 8 and 10 seconds.
#: Jitter may bring one more.
MOST = 7


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    made = Broker(nodes=2, topics={"t": 2}, sasl=True, memory_transport=True)
    async with made as broker:
        yield broker


def options(broker: Broker, **others: Any) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "alice",
        "sasl_password": "alice-secret",
        **others,
    }


def client_of(broker: Broker, **others: Any) -> Client:
    config = ClientConfig.of(broker.bootstrap("SASL"), options(broker, **others))
    return Client.from_config(config, dial=broker.dial)


def producer_of(broker: Broker, **others: Any) -> Producer:
    config = ProducerConfig.of(broker.bootstrap("SASL"), options(broker, **others))
    return Producer.from_config(config, dial=broker.dial)


def consumer_of(broker: Broker, **others: Any) -> Consumer:
    config = ConsumerConfig.of(broker.bootstrap("SASL"), options(broker, **others))
    return Consumer.from_config(config, dial=broker.dial, topics=["t"])


def failures(broker: Broker) -> int:
    return broker.security.authentications.failed.total()


def revoke(broker: Broker) -> None:
    """Change the password, and break all connections."""
    broker.security.credentials.add_user("alice", "another")
    for node in range(2):
        broker.control.disconnect(node)


class Heard:
    """Keeps why connections could not be made."""

    def __init__(self) -> None:
        self.causes: list[str] = []

    def connection_lost(
        self, node_id: int, connection_class: str, cause: BaseException | None
    ) -> None:
        if cause is not None:
            self.causes.append(str(cause))


async def test_a_start_with_wrong_credentials_fails_at_once(broker: Broker) -> None:
    before = anyio.current_time()
    with pytest.raises(AuthenticationError) as caught:
        await client_of(broker, sasl_password="wrong").start()
    assert anyio.current_time() - before == pytest.approx(0.6)  # two servers
    assert caught.value.mechanism == "PLAIN"
    assert caught.value.step == "SaslAuthenticate"
    assert "Invalid username or password" in caught.value.reason
    assert "wrong" not in str(caught.value)
    assert failures(broker) <= 2  # one for each bootstrap server


async def test_a_call_fails_at_once_and_a_later_one_succeeds(broker: Broker) -> None:
    async with client_of(broker) as client:
        revoke(broker)
        with pytest.raises(AuthenticationError):
            await client.request(ListGroupsRequest())
        await anyio.sleep(30)
        assert failures(broker) <= 2 * MOST
        broker.security.credentials.add_user("alice", "alice-secret")
        await client.request(ListGroupsRequest())


async def test_a_producer_fails_what_waits_and_recovers(broker: Broker) -> None:
    async with producer_of(broker) as producer:
        await producer.send("t", b"1", partition=0)
        revoke(broker)
        with pytest.raises(AuthenticationError):
            await producer.send("t", b"2", partition=0)
        await anyio.sleep(30)
        assert failures(broker) <= 3 * MOST
        broker.security.credentials.add_user("alice", "alice-secret")
        await producer.send("t", b"3", partition=0)


async def test_a_producer_needs_only_the_brokers_it_writes_to(broker: Broker) -> None:
    wrong = broker.control.leader(("t", 1))
    refusal = error(ErrorCode.SASL_AUTHENTICATION_FAILED)
    rule = broker.faults.on(ApiKey.SASL_AUTHENTICATE, refusal, node=wrong)
    async with producer_of(broker) as producer:
        for _ in range(20):
            await producer.send("t", b"1", partition=0)
            await anyio.sleep(1)
        with pytest.raises(AuthenticationError):
            await producer.send("t", b"1", partition=1)
        await producer.send("t", b"1", partition=0)
    assert rule.count <= 2 * MOST


async def following(consumer: Consumer) -> bytes | None:
    """The value of the next record; None for an error of before."""
    try:
        return (await anext(consumer)).value
    except AuthenticationError:
        return None


@pytest.mark.parametrize("group_id", [None, "g"])
async def test_a_consumer_is_told_and_not_retried_hot(
    broker: Broker, group_id: str | None
) -> None:
    async with producer_of(broker) as producer:
        await producer.send("t", b"1", partition=0)
    async with consumer_of(
        broker, group_id=group_id, auto_offset_reset="earliest"
    ) as consumer:
        assert (await anext(consumer)).value == b"1"
        revoke(broker)
        before = anyio.current_time()
        with pytest.raises(AuthenticationError):
            await anext(consumer)
        assert anyio.current_time() - before < 3.0
        await anyio.sleep(30)
        assert failures(broker) <= 5 * MOST
        broker.security.credentials.add_user("alice", "alice-secret")
        async with producer_of(broker) as producer:
            await producer.send("t", b"2", partition=0)
        while (value := await following(consumer)) is None:
            pass
        assert value == b"2"


async def test_a_client_without_sasl_learns_that_the_listener_wants_it(
    broker: Broker,
) -> None:
    config = ClientConfig.of(broker.bootstrap("SASL"), {})
    before = anyio.current_time()
    with pytest.raises(AuthenticationError, match=r"may want SASL \(security"):
        await Client.from_config(config, dial=broker.dial).start()
    assert anyio.current_time() - before < 5.0


async def test_a_close_without_a_word_says_what_it_usually_means(
    broker: Broker,
) -> None:
    rule = broker.faults.on(ApiKey.SASL_AUTHENTICATE, disconnect_before_write())
    before = anyio.current_time()
    with pytest.raises(AuthenticationError, match="another sasl_mechanism") as caught:
        await client_of(broker).start()
    assert anyio.current_time() - before < 3.0
    assert caught.value.mechanism == "PLAIN"
    assert rule.count <= 2 * 3


async def test_one_close_without_a_word_is_retried(broker: Broker) -> None:
    broker.faults.on(ApiKey.SASL_AUTHENTICATE, disconnect_before_write(times=2))
    heard = Heard()
    config = ClientConfig.of(broker.bootstrap("SASL"), options(broker))
    async with Client.from_config(config, dial=broker.dial, observer=heard) as client:
        assert client.cluster.brokers
    assert heard.causes
    assert all("sasl.server.max.receive.size" in cause for cause in heard.causes)


async def test_a_request_that_closes_connections_is_no_refusal(broker: Broker) -> None:
    config = ProducerConfig.of(
        broker.bootstrap_servers, {"delivery_timeout_ms": 40_000}
    )
    async with Producer.from_config(config, dial=broker.dial) as producer:
        broker.faults.on(ApiKey.PRODUCE, disconnect_before_write())
        with pytest.raises(DeliveryTimeout):
            await producer.send("t", b"1")
