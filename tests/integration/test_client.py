"""The client against real brokers: destinations, concurrency, a broker that dies."""

from collections.abc import AsyncIterator

import anyio
import pytest

from kafkaio._client import (
    ALL_TOPICS,
    ANY,
    Broker,
    Client,
    Controller,
    CoordinatorKind,
    GroupCoordinator,
    Leader,
    TransactionCoordinator,
)
from kafkaio._net.connection_class import ConnectionClass
from kafkaio.errors import (
    RequestTimeout,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from kafkaio.protocol import messages
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.create_topics import CreatableTopic
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsTopic,
)
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import TopicPartition

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

#: Brokers that give topics no id (KIP-516) and know no DescribeCluster (KIP-700).
BEFORE_2_8 = {"2.1"}


@pytest.fixture
async def client(real_kafka_cluster: Kafka) -> AsyncIterator[Client]:
    async with Client(real_kafka_cluster.bootstrap_servers) as client:
        yield client


def earliest(tp: TopicPartition) -> messages.ListOffsetsRequest:
    partition = ListOffsetsPartition(partition_index=tp.partition, timestamp=-2)
    topic = ListOffsetsTopic(name=tp.topic, partitions=[partition])
    return messages.ListOffsetsRequest(topics=[topic])


async def offset_of(client: Client, tp: TopicPartition) -> int:
    response = await client.request(earliest(tp), Leader(tp))
    (found,) = response.topics[0].partitions
    assert found.error_code == 0
    return found.offset


async def test_every_destination(
    client: Client, cluster_topic: TopicFactory, kafka_version: str
) -> None:
    name = cluster_topic(partitions=6)
    assert set(client.cluster.brokers) == {1, 2, 3}
    assert client.cluster.cluster_id

    anyone = await client.request(messages.MetadataRequest(topics=[]), ANY)
    assert {b.node_id for b in anyone.brokers} == {1, 2, 3}
    describe = messages.DescribeClusterRequest()
    if kafka_version in BEFORE_2_8:
        with pytest.raises(UnsupportedVersion, match="does not know DescribeCluster"):
            await client.request(describe, ANY)
    else:
        described = await client.request(describe, ANY)
        assert {b.broker_id for b in described.brokers} == {1, 2, 3}

    for node_id in client.cluster.brokers:
        logs = messages.DescribeLogDirsRequest(topics=None)
        answer = await client.request(logs, Broker(node_id))
        assert answer.results[0].error_code == 0

    new = CreatableTopic(name=f"{name}-new", num_partitions=1, replication_factor=1)
    create = messages.CreateTopicsRequest(topics=[new], timeout_ms=10_000)
    created = await client.request(create, Controller)
    assert [t.error_code for t in created.topics] == [0]
    again = await client.request(create, Controller)
    assert [t.error_code for t in again.topics] == [ErrorCode.TOPIC_ALREADY_EXISTS]

    for number in range(6):
        assert await offset_of(client, TopicPartition(name, number)) == 0

    groups = messages.DescribeGroupsRequest(groups=["nobody"])
    (group,) = (await client.request(groups, GroupCoordinator("nobody"))).groups
    assert group.group_id == "nobody"

    init = messages.InitProducerIdRequest(
        transactional_id="t", transaction_timeout_ms=10_000
    )
    producer = await client.request(init, TransactionCoordinator("t"))
    assert (producer.error_code, producer.producer_epoch) == (0, 0)


async def test_views(
    real_kafka_cluster: Kafka,
    client: Client,
    cluster_topic: TopicFactory,
    kafka_version: str,
) -> None:
    name = cluster_topic(partitions=3)
    client._cluster.watch_topics("me", ALL_TOPICS)
    view = await client._cluster.wait_for_topics([name])
    assert view.partition_count(name) == 3
    topic_id = view.topic_id(name)
    if kafka_version in BEFORE_2_8:
        assert topic_id is None
    else:
        assert topic_id is not None
        assert view.topic_name(topic_id) == name
    partitions = view.partitions(name)
    assert all(len(partition.isr) > 0 for partition in partitions)
    # What brokers before 2.4 say of epochs is not to be believed.
    epochs = {partition.leader_epoch for partition in partitions}
    assert epochs == {-1} if kafka_version in BEFORE_2_8 else min(epochs) >= 0
    servers = real_kafka_cluster.bootstrap_servers
    async with Client(servers, allow_auto_create_topics=False) as lazy:
        with pytest.raises(UnknownTopicOrPartition):
            await lazy._cluster.wait_for_topics(["absent"], timeout=2)


async def test_many_at_once(client: Client, cluster_topic: TopicFactory) -> None:
    name = cluster_topic(partitions=6)
    done = 0

    async def ask(number: int) -> None:
        nonlocal done
        assert await offset_of(client, TopicPartition(name, number % 6)) == 0
        await client._cluster.coordinator(CoordinatorKind.GROUP, f"group-{number}")
        done += 1

    async with anyio.create_task_group() as group:
        for number in range(300):
            group.start_soon(ask, number)
    assert done == 300
    # Nobody opened more than one connection per broker for all that.
    assert len(client.statistics().connections) <= 3


async def test_a_broker_is_killed_and_comes_back(
    real_kafka_cluster: Kafka, client: Client, cluster_topic: TopicFactory
) -> None:
    name = cluster_topic(partitions=3, replication_factor=3)
    view = await client._cluster.wait_for_topics([name])
    tp = next(
        TopicPartition(name, p.partition)
        for p in view.partitions(name)
        if p.leader == 2
    )
    await client._cluster.connection(2, ConnectionClass.SHARED)
    await real_kafka_cluster.kill(2)
    # Asked for at once: the dead leader is found out, and the new one is asked.
    assert await offset_of(client, tp) == 0
    assert client.cluster.leader(tp) in {1, 3}
    assert 2 not in client.cluster.brokers
    with pytest.raises(RequestTimeout, match="broker 2 is not in the cluster"):
        await client.request(messages.ListGroupsRequest(), Broker(2), timeout=1)
    await real_kafka_cluster.start(2)
    answer = await client.request(messages.ListGroupsRequest(), Broker(2))
    assert answer.error_code == 0
