"""`AIOKafkaClient` and `ClusterMetadata`."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

import kafkaio
from kafkaio import messages
from kafkaio.aiokafka import AIOKafkaClient, errors
from kafkaio.aiokafka.client import ConnectionGroup, CoordinationType
from kafkaio.aiokafka.cluster import ClusterMetadata
from kafkaio.aiokafka.structs import BrokerMetadata, PartitionMetadata, TopicPartition
from kafkaio.testing import Broker, SecurityConfig, delay, error


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(nodes=2, topics={"orders": 3}) as broker:
        yield broker


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[AIOKafkaClient]:
    client = AIOKafkaClient(bootstrap_servers=broker.bootstrap_servers)
    await client.bootstrap()
    yield client
    await client.close()


# ---- its life ------------------------------------------------------------------------


async def test_before_bootstrap() -> None:
    client = AIOKafkaClient(bootstrap_servers="127.0.0.1:9092,[::1]:9093,kafka")
    assert repr(client) == "<AIOKafkaClient client_id=aiokafka-0.14.0>"
    assert sorted(client.hosts) == [
        ("127.0.0.1", 9092, socket.AF_INET),
        ("::1", 9093, socket.AF_INET6),
        ("kafka", 9092, socket.AF_UNSPEC),
    ]
    assert (client.native, client.get_random_node()) == (None, None)
    assert client.cluster.brokers() == set()
    assert not await client.ready(0)
    assert not await client.force_metadata_update()
    with pytest.raises(errors.NodeNotReadyError):
        await client.send(0, messages.MetadataRequest())
    for call in (client.fetch_all_metadata(), client._wait_on_metadata("orders")):
        with pytest.raises(errors.NodeNotReadyError):
            await call
    await client.close()


def test_no_loop_runs() -> None:
    with pytest.raises(RuntimeError, match="async function"):
        AIOKafkaClient()


async def test_another_loop() -> None:
    other = asyncio.new_event_loop()
    try:
        client = AIOKafkaClient(loop=other)
        with pytest.raises(AssertionError, match="another event loop"):
            await client.bootstrap()
    finally:
        other.close()


async def test_bootstrap_and_close(broker: Broker) -> None:
    client = AIOKafkaClient(bootstrap_servers=broker.bootstrap_servers)
    await client.bootstrap()
    await client.bootstrap()
    assert isinstance(client.native, kafkaio.Client)
    assert {each.nodeId for each in client.cluster.brokers()} == {0, 1}
    assert client.get_random_node() in {0, 1}
    assert isinstance(client.cluster.controller, BrokerMetadata)
    await client.close()
    await client.close()
    # What it knew can still be read.
    assert len(client.cluster.brokers()) == 2
    await client.bootstrap()
    assert await client.ready(0)
    await client.close()


async def test_row_bootstrap_tries_until_the_time_limit() -> None:
    """``start()`` tries the servers for ``request_timeout_ms``, not once each."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        port = taken.getsockname()[1]
        client = AIOKafkaClient(
            bootstrap_servers=f"127.0.0.1:{port}", request_timeout_ms=200
        )
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(errors.KafkaConnectionError, match=str(port)) as raised:
            await client.bootstrap()
        assert loop.time() - began >= 0.2
    assert isinstance(raised.value, kafkaio.NetworkError)
    assert client.native is None
    await client.close()


async def test_a_server_that_is_no_broker() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = AIOKafkaClient(
            bootstrap_servers=f"127.0.0.1:{port}", request_timeout_ms=5_000
        )
        with pytest.raises(errors.KafkaConnectionError) as raised:
            await client.bootstrap()
    assert isinstance(raised.value, kafkaio.ProtocolError)


async def test_a_refused_login_is_a_connection_error() -> None:
    async with Broker(
        sasl=True,
        users={"alice": "secret"},
        security=SecurityConfig(refusal_delay=0.0),
    ) as broker:
        client = AIOKafkaClient(
            bootstrap_servers=broker.bootstrap("SASL"),
            security_protocol="SASL_PLAINTEXT",
            sasl_plain_username="alice",
            sasl_plain_password="wrong",
        )
        with pytest.raises(errors.KafkaConnectionError) as raised:
            await client.bootstrap()
        assert isinstance(raised.value, errors.AuthenticationFailedError)
        assert isinstance(raised.value, kafkaio.AuthenticationError)


# ---- metadata ------------------------------------------------------------------------


async def test_all_topics(client: AIOKafkaClient) -> None:
    assert client.cluster.topics() == set()
    found = await client.fetch_all_metadata()
    assert found.topics() == {"orders"}
    assert client.cluster.topics() == set()
    assert await client.force_metadata_update()
    assert client.cluster.partitions_for_topic("orders") == {0, 1, 2}
    assert client.cluster.available_partitions_for_topic("orders") == {0, 1, 2}
    leader = client.cluster.leader_for_partition(TopicPartition("orders", 1))
    assert leader in {0, 1}
    led = client.cluster.partitions_for_broker(leader)
    assert led
    assert TopicPartition("orders", 1) in led


async def test_topics_that_are_tracked(broker: Broker, client: AIOKafkaClient) -> None:
    broker.create_topic("other")
    assert await client.set_topics(["orders"])
    assert client.cluster.topics() == {"orders"}
    assert client.set_topics(["orders"]).done()
    assert await client.add_topic("other")
    assert client.cluster.topics() == {"orders", "other"}
    assert client.add_topic("other").done()
    assert await client.set_topics([])
    with pytest.raises(TypeError):
        client.set_topics("orders")


async def test_topics_that_are_tracked_are_asked_for_again(broker: Broker) -> None:
    client = AIOKafkaClient(
        bootstrap_servers=broker.bootstrap_servers, metadata_max_age_ms=20
    )
    await client.bootstrap()
    assert await client.force_metadata_update()
    told = asyncio.Event()
    client.cluster.add_listener(
        lambda cluster: "later" in cluster.topics() and told.set()
    )
    broker.create_topic("later")
    async with asyncio.timeout(20):
        await told.wait()
    await client.close()


async def test_updates_that_fail(
    client: AIOKafkaClient, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = client.cluster.request_update()
    client._timeout = 0.1
    broker.faults.on("Metadata", delay(5.0))
    with caplog.at_level(logging.WARNING, "kafkaio.aiokafka"):
        assert not await client.force_metadata_update()
    assert "metadata cannot be updated" in caplog.text
    assert isinstance(waiting.exception(), errors.KafkaError)
    with pytest.raises(errors.KafkaError):
        await client.fetch_all_metadata()


async def test_close_answers_who_waits(client: AIOKafkaClient, broker: Broker) -> None:
    broker.faults.on("Metadata", delay(60.0))
    waiting = [client.force_metadata_update() for _ in range(3)]
    await client.close()
    assert [each.result() for each in waiting] == [False] * 3


async def test_the_partitions_of_a_topic(client: AIOKafkaClient) -> None:
    assert await client._wait_on_metadata("orders") == {0, 1, 2}
    await client._maybe_wait_metadata()
    # It is created by the look, as with aiokafka.
    assert await client._wait_on_metadata("created") == {0}


async def test_a_topic_that_never_comes() -> None:
    async with Broker(auto_create_topics=False) as broker:
        client = AIOKafkaClient(
            bootstrap_servers=broker.bootstrap_servers, request_timeout_ms=300
        )
        await client.bootstrap()
        with pytest.raises(errors.UnknownTopicOrPartitionError, match="nothing"):
            await client._wait_on_metadata("nothing")
        await client.close()


async def test_a_topic_that_may_not_be_described(
    client: AIOKafkaClient, broker: Broker
) -> None:
    broker.faults.on("Metadata", error(kafkaio.ErrorCode(29)))
    with pytest.raises(errors.TopicAuthorizationFailedError, match="secret"):
        await client._wait_on_metadata("secret")


# ---- requests ------------------------------------------------------------------------


async def test_requests(client: AIOKafkaClient) -> None:
    assert await client.ready(0)
    assert not await client.ready(7)
    answer = await client.send(
        1, messages.ListGroupsRequest(), group=ConnectionGroup.COORDINATION
    )
    assert isinstance(answer, messages.ListGroupsResponse)
    with pytest.raises(errors.NodeNotReadyError, match="7"):
        await client.send(7, messages.ListGroupsRequest())


async def test_a_broker_that_does_not_answer(
    client: AIOKafkaClient, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    client._timeout = 0.1
    broker.faults.on("ApiVersions", delay(5.0))
    with caplog.at_level(logging.WARNING, "kafkaio.aiokafka"):
        assert not await client.ready(0)
    assert "broker 0 is not ready" in caplog.text


async def test_row_messages_of_aiokafka_are_refused(client: AIOKafkaClient) -> None:
    """``AIOKafkaClient.send`` takes messages of ``kafkaio.messages`` alone."""
    theirs = pytest.importorskip("aiokafka.protocol.metadata")
    with pytest.raises(NotImplementedError, match=r"kafkaio\.messages"):
        await client.send(0, theirs.MetadataRequest([]))


@pytest.mark.parametrize("versions", [None, {"FindCoordinator": 3}])
async def test_coordinators(broker: Broker, versions: dict[str, int] | None) -> None:
    client = AIOKafkaClient(bootstrap_servers=broker.bootstrap_servers)
    client._options["max_versions"] = versions
    await client.bootstrap()
    for kind in CoordinationType:
        assert await client.coordinator_lookup(kind, "key") in {0, 1}
    await client.close()


async def test_a_coordinator_that_may_not_be_known(
    client: AIOKafkaClient, broker: Broker
) -> None:
    broker.faults.on("FindCoordinator", error(kafkaio.ErrorCode(30)))
    with pytest.raises(errors.GroupAuthorizationFailedError, match="'g'"):
        await client.coordinator_lookup(CoordinationType.GROUP, "g")


# ---- what it knows -------------------------------------------------------------------


def answer(*topics: messages.MetadataResponseTopic) -> messages.MetadataResponse:
    return messages.MetadataResponse(
        brokers=[messages.MetadataResponseBroker(node_id=1, host="h", port=2)],
        controller_id=1,
        topics=[*topics],
    )


def topic(name: str, **more: Any) -> messages.MetadataResponseTopic:
    partitions = [
        messages.MetadataResponsePartition(
            partition_index=number, leader_id=leader, replica_nodes=[1], isr_nodes=[1]
        )
        for number, leader in enumerate(more.pop("leaders", (1, -1)))
    ]
    return messages.MetadataResponseTopic(name=name, partitions=partitions, **more)


def test_an_answer_replaces_what_was_known() -> None:
    cluster = ClusterMetadata(bootstrap_servers="one:1,two", ignored=3)
    assert {each.host for each in cluster.brokers()} == {"one", "two"}
    assert cluster.is_bootstrap("bootstrap-0")
    assert cluster.broker_metadata("bootstrap-0") == ("bootstrap-0", "one", 1, None)
    cluster.update_metadata(
        answer(
            topic("a"),
            topic("__offsets", is_internal=True),
            topic("secret", error_code=29, leaders=()),
            topic("gone", error_code=3, leaders=()),
        )
    )
    assert str(cluster) == "ClusterMetadata(brokers: 1, topics: 2)"
    assert cluster.brokers() == {BrokerMetadata(1, "h", 2, None)}
    assert cluster.broker_metadata(1) == cluster.controller
    assert cluster.broker_metadata(2) is None
    assert cluster.topics() == {"a"}
    assert cluster.topics(exclude_internal_topics=False) == {"a", "__offsets"}
    assert cluster.unauthorized_topics == {"secret"}
    assert cluster.available_partitions_for_topic("a") == {0}
    for unknown in (
        cluster.partitions_for_topic("b"),
        cluster.available_partitions_for_topic("b"),
        cluster.leader_for_partition(TopicPartition("b", 0)),
        cluster.leader_for_partition(TopicPartition("a", 9)),
        cluster.partitions_for_broker(9),
    ):
        assert unknown is None
    assert cluster.leader_for_partition(TopicPartition("a", 1)) == -1
    cluster.update_metadata(answer())
    assert cluster.topics() == set()


def test_futures_and_listeners_of_updates() -> None:
    cluster = ClusterMetadata()
    seen: list[ClusterMetadata] = []
    cluster.add_listener(seen.append)
    waiting = cluster.request_update()
    assert cluster.request_update() is waiting
    cluster.update_metadata(answer())
    assert waiting.result() is cluster
    assert seen == [cluster]
    cluster.remove_listener(seen.append)
    waiting = cluster.request_update()
    cluster.update_metadata(messages.MetadataResponse())
    assert isinstance(waiting.exception(), errors.MetadataEmptyBrokerList)
    assert seen == [cluster]


def test_views_of_a_client_of_kafkaio() -> None:
    def view(*names: str, leader: int = 0) -> kafkaio.ClusterView:
        return kafkaio.ClusterView(
            brokers={0: kafkaio.Broker(0, "h", 1)},
            controller_id=0,
            by_name={
                name: kafkaio.TopicView(
                    name,
                    is_internal=name.startswith("__"),
                    error=kafkaio.ErrorCode(29 if name == "secret" else 0),
                    partitions={0: kafkaio.PartitionView(name, 0, leader=leader)},
                )
                for name in names
            },
        )

    cluster = ClusterMetadata()
    cluster.update_metadata(answer(topic("asked")))
    cluster.merge(view("used", "__offsets", "secret"))
    assert cluster.topics() == {"asked", "used"}
    assert cluster.internal_topics == {"__offsets"}
    assert cluster.unauthorized_topics == {"secret"}
    assert cluster.brokers() == {BrokerMetadata(0, "h", 1, None)}
    assert cluster.controller == BrokerMetadata(0, "h", 1, None)
    # A leader moves, a topic is deleted, and one that was asked for is left alone.
    cluster.merge(view("used", leader=-1))
    assert cluster.leader_for_partition(TopicPartition("used", 0)) == -1
    cluster.merge(view())
    assert cluster.topics() == {"asked"}


def test_a_copy_with_more_partitions() -> None:
    cluster = ClusterMetadata()
    cluster.update_metadata(answer(topic("a")))
    more = cluster.with_partitions([PartitionMetadata("b", 3, 1, [1], [1], None)])
    assert more.partitions_for_topic("b") == {3}
    assert more.partitions_for_broker(1) == {
        TopicPartition("a", 0),
        TopicPartition("b", 3),
    }
    assert cluster.partitions_for_topic("b") is None
