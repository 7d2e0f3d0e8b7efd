"""Groups and their offsets by `kafkaio.Admin`, on real brokers and the embedded one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

import kafkaio
from kafkaio.admin import (
    Admin,
    GroupState,
    GroupType,
    settled,
)
from kafkaio.errors import (
    AdminErrors,
    ArgumentValueError,
    BrokerError,
    GroupError,
    RequestTimeout,
    UnknownTopicOrPartition,
)
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import OffsetAndMetadata, TopicPartition
from tests.integration.groups import until
from tests.support.raw_transactions import OLD, Cluster, RawProducer
from tests.support.retries import Retries

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

PROTOCOLS = [
    "classic",
    pytest.param("consumer", marks=pytest.mark.kafka_versions("4.0+")),
]


@pytest.fixture
async def client(real_kafka_cluster: Kafka) -> AsyncIterator[kafkaio.Client]:
    async with kafkaio.Client(real_kafka_cluster.bootstrap_servers) as client:
        yield client


@pytest.fixture
async def admin(client: kafkaio.Client) -> AsyncIterator[Admin]:
    async with Admin(client) as admin:
        yield admin


@pytest.fixture
def group() -> str:
    return f"admin-{uuid4().hex[:12]}"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_group_is_described(
    client: kafkaio.Client,
    admin: Admin,
    cluster_topic: TopicFactory,
    group: str,
    protocol: str,
) -> None:
    topic = cluster_topic(partitions=3)
    mine = {TopicPartition(topic, number) for number in range(3)}
    async with kafkaio.Consumer(
        client,
        topics=[topic],
        group_id=group,
        group_protocol=protocol,  # type: ignore[arg-type]  # one of two
    ):
        while True:  # the coordinator hears a moment later that all are taken over
            described = (await admin.describe_consumer_groups([group]))[group]
            if described.state is GroupState.STABLE:
                break
        assert described.type == protocol
        assert described.protocol_type == "consumer"
        assert described.coordinator in client.cluster.brokers
        (member,) = described.members
        assert member.assignment == mine
        assert member.client_id == client.config.client_id
        assert member.instance_id is None
        assert member.host
        if protocol == "consumer":
            assert member.target_assignment == mine
            assert described.group_epoch is not None
        listed = (await admin.list_groups())[group]
        assert listed.coordinator == described.coordinator
        assert listed.protocol_type == "consumer"
        assert listed.state in {GroupState.STABLE, None}
        if listed.state is not None:  # Kafka 2.6
            stable = await admin.list_groups(states=["stable"])
            assert group in stable
        tp = TopicPartition(topic, 0)
        with pytest.raises(GroupError, match="the group is in use"):
            await admin.alter_consumer_group_offsets(group, {tp: 0})
        with pytest.raises(GroupError) as caught:
            await admin.delete_consumer_groups([group])
        assert caught.value.code == E.NON_EMPTY_GROUP
        assert caught.value.item == group


async def test_offsets_of_groups(
    client: kafkaio.Client, admin: Admin, cluster_topic: TopicFactory, group: str
) -> None:
    topic = cluster_topic(partitions=2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with kafkaio.Producer(client) as producer:
        for _ in range(10):
            await producer.send(topic, b"x", partition=0)
    wanted = {first: 4, second: OffsetAndMetadata(0, "here")}
    assert await admin.alter_consumer_group_offsets(group, wanted) == {
        first: None,
        second: None,
    }
    other = f"{group}-other"
    found = await admin.list_consumer_group_offsets([group, other])
    assert list(found) == [group, other]
    assert found[other] == {}
    offsets = found[group]
    assert offsets[first] == OffsetAndMetadata(4)
    assert offsets[second] == OffsetAndMetadata(0, "here")
    some = await admin.list_consumer_group_offsets({group: [second], other: [first]})
    assert some == {group: {second: offsets[second]}, other: {first: None}}
    lag = (await admin.lag([group]))[group]
    assert {tp: each.lag for tp, each in lag.partitions.items()} == {
        first: 6,
        second: 0,
    }
    assert lag.total == 6
    listed = (await admin.list_groups(types=["classic"]))[group]
    assert listed.state in {GroupState.EMPTY, None}
    assert listed.type is GroupType.CLASSIC
    assert await admin.delete_consumer_groups([group]) == {group: None}
    results = await settled(admin.describe_consumer_groups([group, other]))
    assert [
        error.code
        for error in results.failed.values()
        if isinstance(error, BrokerError)
    ] == [E.GROUP_ID_NOT_FOUND] * 2
    with pytest.raises(AdminErrors, match="delete groups: 2 of 2 failed"):
        await admin.delete_consumer_groups([group, other])


@pytest.mark.kafka_versions("2.8+")
async def test_offsets_of_an_open_transaction(
    cluster_topic: TopicFactory, real_kafka_cluster: Kafka, group: str
) -> None:
    tp = TopicPartition(cluster_topic(partitions=1), 0)
    observer = Retries()
    servers = real_kafka_cluster.bootstrap_servers
    async with (
        kafkaio.Client(servers, observer=observer) as client,
        Admin(client) as admin,
    ):
        await admin.alter_consumer_group_offsets(group, {tp: 1})
        raw = RawProducer(Cluster(client), f"txn-{group}", OLD)
        await raw.start()
        assert await raw.add_offsets(group) == E.NONE
        assert await raw.commit_offsets(group, {tp: 3}) == [E.NONE]

        with pytest.raises(RequestTimeout, match="UNSTABLE_OFFSET_COMMIT") as caught:
            await admin.list_consumer_group_offsets(
                [group], require_stable=True, timeout=1
            )
        assert isinstance(caught.value.__cause__, BrokerError)
        assert caught.value.__cause__.code == E.UNSTABLE_OFFSET_COMMIT
        # Whoever does not ask for that gets what was committed before.
        found = await admin.list_consumer_group_offsets([group])
        assert found == {group: {tp: OffsetAndMetadata(1)}}
        observer.codes.clear()
        listing = asyncio.create_task(
            admin.list_consumer_group_offsets([group], require_stable=True)
        )
        await until(lambda: E.UNSTABLE_OFFSET_COMMIT in observer.codes)
        assert await raw.end(commit=True) == E.NONE
        assert await listing == {group: {tp: OffsetAndMetadata(3)}}


async def test_offsets_are_reset(
    client: kafkaio.Client, admin: Admin, cluster_topic: TopicFactory, group: str
) -> None:
    topic = cluster_topic(partitions=1)
    tp = TopicPartition(topic, 0)
    begin = int(time.time()) * 1000 - 3_600_000
    async with kafkaio.Producer(client) as producer:
        for number in range(10):
            await producer.send(
                topic, b"x", partition=0, timestamp=begin + number * 60_000
            )
    await admin.alter_consumer_group_offsets(group, {tp: 3})

    async def after(**how: object) -> int:
        resets = await admin.reset_offsets(group, **how)  # type: ignore[arg-type]
        return resets[tp].after

    told = await admin.reset_offsets(group, "latest", dry_run=True)
    assert (told[tp].before, told[tp].after) == (3, 10)
    assert (await admin.list_consumer_group_offsets([group]))[group] == {
        tp: OffsetAndMetadata(3)
    }
    assert await after(shift_by=2) == 5
    assert await after(shift_by=-9) == 0
    assert await after(to="latest") == 10
    moment = datetime.fromtimestamp(begin / 1000 + 120, UTC)
    assert await after(to=moment) == 2
    assert await after(to=timedelta(minutes=1)) == 10
    assert await after(to=timedelta(hours=2)) == 0
    assert await after(to={tp: 99}) == 10
    assert await after(to={tp: 7}) == 7
    assert (await admin.list_consumer_group_offsets([group]))[group] == {
        tp: OffsetAndMetadata(7)
    }
    with pytest.raises(ArgumentValueError, match="either to or shift_by"):
        await admin.reset_offsets(group)
    with pytest.raises(ArgumentValueError, match="before 1970"):
        await admin.reset_offsets(group, timedelta(days=40_000))
    with pytest.raises(ArgumentValueError, match="no offset of"):
        await admin.reset_offsets(f"{group}-new", shift_by=1, partitions=[tp])


@pytest.mark.kafka_versions("2.8+")
async def test_members_are_removed_and_offsets_deleted(
    client: kafkaio.Client, admin: Admin, cluster_topic: TopicFactory, group: str
) -> None:
    topic, other = cluster_topic(partitions=1), cluster_topic(partitions=1)
    tp, free = TopicPartition(topic, 0), TopicPartition(other, 0)
    await admin.alter_consumer_group_offsets(group, {tp: 0, free: 0})
    async with kafkaio.Consumer(
        client,
        topics=[topic],
        group_id=group,
        group_instance_id="here",
        group_protocol="classic",
    ):
        with pytest.raises(GroupError) as caught:
            await admin.delete_consumer_group_offsets(group, [tp, free])
        assert caught.value.code == E.GROUP_SUBSCRIBED_TO_TOPIC
        assert caught.value.item == tp
        assert dict(caught.value.results) == {free: None}
        with pytest.raises(GroupError) as unknown:
            await admin.remove_members_from_consumer_group(group, ["nobody"])
        assert unknown.value.code == E.UNKNOWN_MEMBER_ID
        removed = await admin.remove_members_from_consumer_group(group, ["here"])
        assert removed == {"here": None}
    results = await settled(
        admin.delete_consumer_group_offsets(group, [TopicPartition(f"{topic}-no", 0)])
    )
    assert isinstance(*results.failed.values(), UnknownTopicOrPartition | BrokerError)


async def test_what_is_asked_of_nothing(admin: Admin) -> None:
    assert await admin.describe_consumer_groups([]) == {}
    assert await admin.delete_consumer_groups([]) == {}
    assert await admin.lag([]) == {}
    assert await admin.list_consumer_group_offsets([]) == {}
    with pytest.raises(ArgumentValueError, match="'g' occurs twice"):
        await admin.describe_consumer_groups(["g", "g"])
    with pytest.raises(ArgumentValueError, match="did you mean 'Stable'"):
        await admin.list_groups(states=["stabl"])
