"""A log that loses what was read: an unclean election on real brokers (KIP-320)."""

from __future__ import annotations

import asyncio

import pytest

from kafkaio import Consumer, LogTruncated, Producer, TopicPartition
from kafkaio._client import Client
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.support.patience import HANGS

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.kafka_versions("2.8+"),  # asked from 2.3 on
]

UNCLEAN = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}


async def read(consumer: Consumer, count: int) -> list[bytes | None]:
    async with asyncio.timeout(HANGS):
        return [(await anext(consumer)).value for _ in range(count)]


async def replicas(kafka: Kafka, tp: TopicPartition) -> tuple[int, int]:
    """The leader and the follower of a partition with two replicas."""
    async with Client(kafka.bootstrap_servers) as client:
        view = (await client._cluster.wait_for_topics([tp.topic])).partition(tp)
        assert view is not None
        assert view.leader is not None
        (follower,) = set(view.replicas) - {view.leader}
        return view.leader, follower


async def test_an_unclean_election_is_told_to_who_has_read_too_far(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory
) -> None:
    kafka = real_kafka_cluster
    tp = TopicPartition(cluster_topic(1, 2, UNCLEAN), 0)
    leader, follower = await replicas(kafka, tp)
    servers = kafka.bootstrap_servers
    lost, kept = [b"%d" % n for n in range(5, 10)], [b"%d" % n for n in range(5)]
    async with (
        Producer(servers) as producer,
        Consumer(servers, assign=[tp], auto_offset_reset="none") as told,
        Consumer(servers, assign=[tp], auto_offset_reset="earliest") as follows,
    ):
        told.seek(tp, 0)
        await producer.send_many(tp.topic, kept)
        assert await read(told, 5) == await read(follows, 5) == kept
        await kafka.kill(follower)
        await producer.send_many(tp.topic, lost)
        assert await read(told, 5) == await read(follows, 5) == lost
        await kafka.kill(leader)
        await kafka.restart(follower)
        try:
            await producer.send(tp.topic, b"new")
            with pytest.raises(LogTruncated) as error:
                await read(told, 1)
            assert (error.value.position, error.value.diverging_offset) == (10, 5)
            told.seek(tp, error.value.diverging_offset)
            assert await read(told, 1) == await read(follows, 1) == [b"new"]
        finally:
            await kafka.restart(leader)
