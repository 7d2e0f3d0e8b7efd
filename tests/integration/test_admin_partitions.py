"""Partitions, replicas and records by `kafkaio.Admin`, on real brokers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

import kafkaio
from kafkaio.admin import (
    Admin,
    NewPartitions,
    NewTopic,
    settled,
)
from kafkaio.errors import (
    AdminErrors,
    ArgumentValueError,
    BrokerError,
    OffsetOutOfRange,
    UnknownTopicOrPartition,
)
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import TopicPartition

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
async def client(real_kafka_cluster: Kafka) -> AsyncIterator[kafkaio.Client]:
    async with kafkaio.Client(real_kafka_cluster.bootstrap_servers) as client:
        yield client


@pytest.fixture
async def admin(client: kafkaio.Client) -> AsyncIterator[Admin]:
    async with Admin(client) as admin:
        yield admin


def codes(errors: AdminErrors) -> dict[object, int]:
    return {
        each.item: each.code
        for each in errors.exceptions
        if isinstance(each, BrokerError)
    }


async def test_more_partitions(
    client: kafkaio.Client, admin: Admin, cluster_topic: TopicFactory
) -> None:
    stays = cluster_topic(partitions=2)
    grows = f"{stays}-of-one-replica"
    await admin.create_topics([NewTopic(grows, 2, 1)])
    await admin.create_partitions({grows: 4}, validate_only=True)
    assert len((await admin.describe_topics([grows]))[grows].partitions) == 2
    nodes = sorted(client.cluster.brokers)
    with pytest.raises(AdminErrors, match="2 of 3 failed") as caught:
        await admin.create_partitions(
            {
                stays: 2,
                grows: NewPartitions(3, assignments=[[nodes[0]]]),
                "no-such-topic": 3,
            }
        )
    assert {
        e.item: e.code for e in caught.value.exceptions if isinstance(e, BrokerError)
    } == {
        stays: E.INVALID_PARTITIONS,
        "no-such-topic": E.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert dict(caught.value.results) == {grows: None}
    while len((await admin.describe_topics([grows]))[grows].partitions) < 3:
        pass  # the brokers learn of it a moment later
    with pytest.raises(ArgumentValueError, match="must be positive"):
        await admin.create_partitions({grows: 0})


async def test_offsets_and_deleted_records(
    client: kafkaio.Client, admin: Admin, cluster_topic: TopicFactory
) -> None:
    topic = cluster_topic(partitions=2)
    full, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    missing = TopicPartition(topic, 7)
    begin = int(time.time()) * 1000 - 60_000
    async with kafkaio.Producer(client) as producer:
        for number in range(10):
            await producer.send(
                topic, b"x", partition=0, timestamp=begin + number * 1_000
            )
    moment = datetime.fromtimestamp(begin / 1000 + 3, UTC)
    found = await admin.list_offsets({full: "latest", empty: "latest"})
    assert [each and each.offset for each in found.values()] == [10, 0]
    (at,) = (await admin.list_offsets({full: moment})).values()
    assert at is not None
    assert (at.offset, at.timestamp) == (3, begin + 3_000)
    with pytest.raises(UnknownTopicOrPartition) as caught:
        await admin.list_offsets({missing: "latest", full: "earliest"})
    assert caught.value.item == missing
    assert list(caught.value.results) == [full]

    assert await admin.delete_records({full: 4, empty: "latest"}) == {full: 4, empty: 0}
    (first,) = (await admin.list_offsets({full: "earliest"})).values()
    assert first is not None
    assert first.offset == 4
    results = await settled(admin.delete_records({full: 11, missing: 0}))
    assert isinstance(results.failed[full], OffsetOutOfRange)
    assert isinstance(results.failed[missing], UnknownTopicOrPartition)
    assert await admin.delete_records({full: "latest"}) == {full: 10}
    with pytest.raises(ArgumentValueError, match="negative"):
        await admin.delete_records({full: -2})


@pytest.mark.kafka_versions("3.9", "newest")
async def test_the_record_with_the_highest_timestamp(
    client: kafkaio.Client, admin: Admin, cluster_topic: TopicFactory
) -> None:
    topic = cluster_topic(partitions=1)
    tp = TopicPartition(topic, 0)
    begin = int(time.time()) * 1000
    async with kafkaio.Producer(client) as producer:
        for age in (5_000, 1_000, 3_000):
            await producer.send(topic, b"x", partition=0, timestamp=begin - age)
    found = (await admin.list_offsets({tp: "max_timestamp"}))[tp]
    assert found is not None
    assert (found.offset, found.timestamp) == (1, begin - 1_000)
    local = (await admin.list_offsets({tp: "earliest_local"}))[tp]
    assert local is not None
    assert local.offset == 0


@pytest.mark.kafka_versions("2.8", "3.9", "newest")
async def test_elections(admin: Admin, cluster_topic: TopicFactory) -> None:
    topic = cluster_topic(partitions=2)
    here, missing = TopicPartition(topic, 0), TopicPartition("no-such-topic", 0)
    assert await admin.elect_leaders(partitions=[here]) == {here: False}
    # Other tests may have left partitions whose leader is not the preferred one.
    everything = await settled(admin.elect_leaders())
    assert everything.found.get(here, False) is False
    with pytest.raises(UnknownTopicOrPartition) as caught:
        await admin.elect_leaders("unclean", [missing, here])
    assert caught.value.item == missing
    assert dict(caught.value.results) == {here: False}
    with pytest.raises(ArgumentValueError, match="did you mean 'preferred'"):
        await admin.elect_leaders("prefer", [here])
    assert await admin.elect_leaders(partitions=[]) == {}


@pytest.mark.kafka_versions("2.8", "3.9", "newest")
async def test_replicas_are_moved(
    client: kafkaio.Client, admin: Admin, cluster_topic: TopicFactory
) -> None:
    topic = cluster_topic(partitions=2)
    tp, still = TopicPartition(topic, 0), TopicPartition(topic, 1)
    nodes = sorted(client.cluster.brokers)
    before = (await admin.describe_topics([topic]))[topic].partitions[0].replicas
    target = [node for node in nodes if node not in before][:1] or [nodes[0]]
    assert await admin.alter_partition_reassignments({tp: target}) == {tp: None}
    while await admin.list_partition_reassignments([tp]):
        pass
    while True:  # the brokers learn of it a moment later
        now = (await admin.describe_topics([topic]))[topic].partitions[0].replicas
        if list(now) == target:
            break
    with pytest.raises(AdminErrors) as caught:
        await admin.alter_partition_reassignments({still: None, tp: [nodes[0], 99]})
    assert {
        e.item: e.code for e in caught.value.exceptions if isinstance(e, BrokerError)
    } == {
        still: E.NO_REASSIGNMENT_IN_PROGRESS,
        tp: E.INVALID_REPLICA_ASSIGNMENT,
    }


async def test_log_directories(
    client: kafkaio.Client, admin: Admin, cluster_topic: TopicFactory
) -> None:
    topic = cluster_topic(partitions=3)
    described = await admin.describe_log_dirs()
    nodes = sorted(client.cluster.brokers)
    assert list(described) == nodes
    held = {
        tp
        for directories in described.values()
        for directory in directories.values()
        for tp in directory.replicas
        if tp.topic == topic
    }
    assert held == {TopicPartition(topic, number) for number in range(3)}
    for directories in described.values():
        for directory in directories.values():
            assert directory.error is None
            assert directory.total_bytes is None or directory.total_bytes > 0
    assert list(await admin.describe_log_dirs([nodes[1]])) == [nodes[1]]
