"""What a user asks a cluster by raw requests, with ``kafkaio.messages`` alone."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import kafkaio
from kafkaio import messages
from kafkaio.testing import Broker

GROUP = "billing"


@pytest.fixture
async def client() -> AsyncIterator[kafkaio.Client]:
    """A client of a cluster with two topics and a group that read a part of one."""
    topics = {"orders": 2, "returns": 1}
    async with Broker(nodes=2, topics=topics) as broker:
        servers = broker.bootstrap_servers
        async with kafkaio.Producer(servers) as producer:
            for n in range(10):
                await producer.send("orders", b"%d" % n, partition=n % 2)
        async with kafkaio.Client(servers) as client:
            yield client


async def test_the_topics_of_a_cluster(client: kafkaio.Client) -> None:
    reply = await client.request(messages.MetadataRequest(topics=None))
    assert {t.name: len(t.partitions) for t in reply.topics} == {
        "orders": 2,
        "returns": 1,
    }
    named = messages.MetadataRequestTopic(name="returns")
    reply = await client.request(messages.MetadataRequest(topics=[named]))
    assert [topic.name for topic in reply.topics] == ["returns"]


async def test_the_lag_of_a_group(client: kafkaio.Client) -> None:
    consumer = kafkaio.Consumer(client, topics="orders", group_id=GROUP)
    async with consumer:
        tps = [kafkaio.TopicPartition("orders", index) for index in range(2)]
        await consumer.commit({tps[0]: 1, tps[1]: 5})
    assert await lag_of(client, GROUP) == {tps[0]: 4, tps[1]: 0}


async def lag_of(
    client: kafkaio.Client, group: str
) -> dict[kafkaio.TopicPartition, int]:
    """Return how many records of each partition a group has not committed."""
    cluster = await client.request(messages.MetadataRequest(topics=None))
    names = {topic.topic_id: topic.name or "" for topic in cluster.topics}
    fetch = messages.OffsetFetchRequest(
        groups=[messages.OffsetFetchRequestGroup(group_id=group, topics=None)]
    )
    reply = await client.request(fetch, to=kafkaio.GroupCoordinator(group))
    committed = {
        kafkaio.TopicPartition(
            topic.name or names[topic.topic_id], part.partition_index
        ): part.committed_offset
        for topic in reply.groups[0].topics
        for part in topic.partitions
    }
    return {tp: await end_of(client, tp) - committed[tp] for tp in sorted(committed)}


async def end_of(client: kafkaio.Client, tp: kafkaio.TopicPartition) -> int:
    part = messages.ListOffsetsPartition(partition_index=tp.partition, timestamp=-1)
    topic = messages.ListOffsetsTopic(name=tp.topic, partitions=[part])
    request = messages.ListOffsetsRequest(topics=[topic])
    ends = await client.request(request, to=kafkaio.Leader(tp))
    return ends.topics[0].partitions[0].offset
