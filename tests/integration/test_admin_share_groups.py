"""Share groups and streams groups by `kafkaio.Admin`, on real brokers from 4.2 on."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

import kafkaio
from kafkaio.admin import (
    Admin,
    GroupState,
    GroupType,
    ReplicaDirectories,
    ShareOffset,
    settled,
)
from kafkaio.errors import (
    AdminErrors,
    ArgumentTypeError,
    ArgumentValueError,
    GroupError,
    UnknownTopicOrPartition,
)
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages import streams_group_heartbeat as streams_api
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import OffsetAndMetadata, TopicPartition
from tests.integration.groups import StreamsMember, share_heartbeat, share_joined

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("4.2+"),
]
not_embedded = pytest.mark.not_embedded("it has no streams groups")


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


@not_embedded
async def test_a_share_group_from_its_first_member_to_its_end(
    client: kafkaio.Client, admin: Admin, cluster_topic: TopicFactory, group: str
) -> None:
    topic, member = cluster_topic(partitions=2), str(uuid4())
    tps = [TopicPartition(topic, number) for number in range(2)]
    await share_joined(client, group, member, topic)

    described = await admin.describe_share_groups(
        [group], include_authorized_operations=True
    )
    it = described[group]
    assert it.state is GroupState.STABLE
    assert it.coordinator in client.cluster.brokers
    assert it.assignor == "simple"
    assert it.group_epoch >= it.assignment_epoch > 0
    assert it.authorized_operations
    (found,) = it.members
    assert (found.member_id, found.subscription) == (member, {topic})
    assert found.assignment == set(tps)
    assert found.host
    assert found.client_id == client.config.client_id
    listed = await admin.list_groups(types=["share"], states=["stable"])
    assert listed[group].type is GroupType.SHARE
    for error in (
        *(await settled(admin.describe_consumer_groups([group]))).failed.values(),
        *(await settled(admin.describe_classic_groups([group]))).failed.values(),
        *(await settled(admin.describe_streams_groups([group]))).failed.values(),
    ):
        assert isinstance(error, GroupError)
        assert error.code == E.GROUP_ID_NOT_FOUND

    for in_use in (
        await settled(admin.delete_share_groups([group])),
        await settled(admin.alter_share_group_offsets(group, {tps[0]: 0})),
        await settled(admin.delete_share_group_offsets(group, [topic])),
    ):
        (error,) = in_use.failed.values()
        assert not in_use.found
        assert isinstance(error, GroupError)
        assert error.code == E.NON_EMPTY_GROUP
    await share_heartbeat(client, group, member, -1)
    assert await admin.delete_share_groups([group]) == {group: None}


async def test_offsets_of_a_share_group(
    admin: Admin, cluster_topic: TopicFactory, group: str
) -> None:
    topic = cluster_topic(partitions=2)
    tps = [TopicPartition(topic, number) for number in range(2)]
    assert await admin.list_share_group_offsets({group: tps}) == {
        group: dict.fromkeys(tps)
    }
    altered = await admin.alter_share_group_offsets(group, {tps[1]: 0, tps[0]: 0})
    assert altered == {tps[1]: None, tps[0]: None}
    while True:  # the group's own topic learns of it a moment later
        offsets = (await admin.list_share_group_offsets([group]))[group]
        if offsets:
            break
    assert list(offsets) == tps
    for offset in offsets.values():
        assert isinstance(offset, ShareOffset)
        assert offset.start_offset == 0
    missing = TopicPartition("no-such-topic", 0)
    with pytest.raises(UnknownTopicOrPartition) as unknown:
        await admin.alter_share_group_offsets(group, {missing: 0, tps[0]: 0})
    assert unknown.value.item == missing
    assert dict(unknown.value.results) == {tps[0]: None}
    with pytest.raises(UnknownTopicOrPartition) as unknown:
        await admin.delete_share_group_offsets(group, ["no-such-topic", topic])
    assert unknown.value.item == "no-such-topic"
    assert dict(unknown.value.results) == {topic: None}
    assert (await admin.list_share_group_offsets([group]))[group] == {}
    assert await admin.delete_share_groups([group]) == {group: None}


@not_embedded
async def test_groups_that_are_no_share_groups(
    admin: Admin, cluster_topic: TopicFactory, group: str
) -> None:
    tp = TopicPartition(cluster_topic(), 0)
    await admin.alter_consumer_group_offsets(group, {tp: 0})
    other = f"{group}-none"
    with pytest.raises(AdminErrors) as several:
        await admin.describe_share_groups([group, other])
    assert [error.item for error in several.value.exceptions] == [group, other]
    for call, names in (
        (admin.describe_share_groups, [group]),
        (admin.describe_streams_groups, [group]),
        (admin.delete_share_groups, [other]),
        (admin.delete_streams_groups, [other]),
    ):
        with pytest.raises(GroupError) as caught:
            await call(names)
        assert caught.value.code == E.GROUP_ID_NOT_FOUND
    with pytest.raises(GroupError, match="is not a share group"):
        await admin.alter_share_group_offsets(group, {tp: 0})
    with pytest.raises(GroupError, match="is not a share group"):
        await admin.delete_share_group_offsets(group, [tp.topic])
    assert await admin.list_share_group_offsets([other, group]) == {
        other: {},
        group: {},
    }


@not_embedded
async def test_a_streams_group(
    client: kafkaio.Client, admin: Admin, cluster_topic: TopicFactory, group: str
) -> None:
    source, member = cluster_topic(partitions=2), StreamsMember(client, group)
    tps = [TopicPartition(source, number) for number in range(2)]
    await member.join(
        topology=streams_api.Topology(
            epoch=3,
            subtopologies=[
                streams_api.Subtopology(subtopology_id="0", source_topics=[source])
            ],
        ),
        process_id="process",
        rebalance_timeout_ms=10_000,
        user_endpoint=streams_api.StreamsGroupHeartbeatRequestEndpoint(
            host="here", port=80
        ),
        client_tags=[streams_api.KeyValue(key="zone", value="a")],
    )
    while not member.active:
        await member.beat()
    await member.beat()
    it = (await admin.describe_streams_groups([group]))[group]
    assert it.state is GroupState.STABLE
    assert it.topology_epoch == 3
    (subtopology,) = it.subtopologies
    assert (subtopology.subtopology_id, subtopology.source_topics) == ("0", (source,))
    (found,) = it.members
    assert found.member_id == member.member_id
    assert (found.endpoint, found.client_tags) == (("here", 80), {"zone": "a"})
    assert found.process_id == "process"
    assert found.assignment.active == found.target_assignment.active == {"0": (0, 1)}
    assert found.assignment.standby == {}
    assert list(await admin.list_groups(types=["streams"])) == [group]
    with pytest.raises(GroupError) as caught:
        await admin.delete_streams_groups([group])
    assert caught.value.code == E.NON_EMPTY_GROUP
    with pytest.raises(GroupError, match="the group is in use"):
        await admin.alter_streams_group_offsets(group, {tps[0]: 0})
    await member.leave()
    assert await admin.alter_streams_group_offsets(group, {tps[0]: 0, tps[1]: 0}) == {
        tps[0]: None,
        tps[1]: None,
    }
    assert await admin.list_streams_group_offsets([group]) == {
        group: {tp: OffsetAndMetadata(0) for tp in tps}
    }
    forgotten = await admin.delete_streams_group_offsets(group, [tps[0]])
    assert forgotten == {tps[0]: None}
    assert await admin.list_streams_group_offsets({group: tps}) == {
        group: {tps[0]: None, tps[1]: OffsetAndMetadata(0)}
    }
    assert await admin.delete_streams_groups([group]) == {group: None}


async def test_classic_groups(
    client: kafkaio.Client, admin: Admin, cluster_topic: TopicFactory, group: str
) -> None:
    topic = cluster_topic(partitions=1)
    async with kafkaio.Consumer(
        client, topics=[topic], group_id=group, group_protocol="classic"
    ):
        while True:
            it = (await admin.describe_classic_groups([group]))[group]
            if it.state is GroupState.STABLE:
                break
        assert it == (await admin.describe_consumer_groups([group]))[group]
        assert it.type is GroupType.CLASSIC
        assert [member.assignment for member in it.members] == [
            {TopicPartition(topic, 0)}
        ]
    async with kafkaio.Consumer(
        client, topics=[topic], group_id=f"{group}-new", group_protocol="consumer"
    ):
        with pytest.raises(GroupError) as caught:
            await admin.describe_classic_groups([f"{group}-new", group])
        assert caught.value.code == E.GROUP_ID_NOT_FOUND
        assert caught.value.item == f"{group}-new"
        assert list(caught.value.results) == [group]


async def test_where_replicas_are(
    client: kafkaio.Client, admin: Admin, cluster_topic: TopicFactory
) -> None:
    topic = cluster_topic(partitions=1)
    tp = TopicPartition(topic, 0)
    replicas = (await admin.describe_topics([topic]))[topic].partitions[0].replicas
    here = [(tp, node) for node in replicas]
    nothing = (TopicPartition(topic, 7), replicas[0])
    found = await admin.describe_replica_log_dirs([nothing, *here])
    assert list(found) == [nothing, *here]
    assert found[nothing] == ReplicaDirectories()
    directories = await admin.describe_log_dirs()
    for tp, node in here:
        place = found[tp, node]
        assert place.current in directories[node]
        assert place.current_offset_lag == 0
        assert place.future is place.future_offset_lag is None
    with pytest.raises(kafkaio.RequestTimeout, match=re.escape(f"{topic}-0 on 99")):
        await admin.describe_replica_log_dirs([(tp, 99)], timeout=1)


async def test_what_is_asked_of_nothing(admin: Admin) -> None:
    for call in (
        admin.describe_classic_groups([]),
        admin.describe_share_groups([]),
        admin.describe_streams_groups([]),
        admin.delete_share_groups([]),
        admin.delete_streams_groups([]),
        admin.list_share_group_offsets([]),
        admin.list_streams_group_offsets({}),
        admin.alter_share_group_offsets("g", {}),
        admin.alter_streams_group_offsets("g", {}),
        admin.delete_share_group_offsets("g", []),
        admin.delete_streams_group_offsets("g", []),
        admin.describe_replica_log_dirs([]),
    ):
        assert await call == {}
    tp = TopicPartition("t", 0)
    for call, error in (
        (admin.describe_share_groups(["g", "g"]), ArgumentValueError),
        (admin.describe_streams_groups("g"), ArgumentTypeError),
        (admin.delete_share_groups([""]), ArgumentValueError),
        (admin.alter_share_group_offsets("g", {tp: -1}), ArgumentValueError),
        (admin.alter_share_group_offsets("g", [tp]), ArgumentTypeError),  # type: ignore[arg-type]
        (admin.alter_share_group_offsets("g", {tp: "0"}), ArgumentTypeError),  # type: ignore[dict-item]
        (admin.delete_share_group_offsets("g", ["t", "t"]), ArgumentValueError),
        (admin.describe_replica_log_dirs([tp]), ArgumentTypeError),  # type: ignore[list-item]
        (admin.describe_replica_log_dirs([(tp, "1")]), ArgumentTypeError),  # type: ignore[list-item]
        (admin.describe_replica_log_dirs([(tp, 1), (tp, 1)]), ArgumentValueError),
    ):
        with pytest.raises(error):
            await call
