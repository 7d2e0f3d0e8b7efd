"""Share groups and streams groups: requests, answers, and brokers that have none."""

from __future__ import annotations

import pytest

from kafkaio.admin import (
    ShareOffset,
    StreamsTopic,
    settled,
)
from kafkaio.errors import (
    AdminErrors,
    AuthorizationError,
    ProtocolError,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages import (
    alter_share_group_offsets as alter_api,
    delete_share_group_offsets as delete_api,
    describe_share_group_offsets as offsets_api,
    share_group_describe as share_api,
    streams_group_describe as streams_api,
)
from kafkaio.types import TopicPartition
from tests.fakes.broker import FakeCluster, FakeNode
from tests.unit.admin.support import admin_of

T = [TopicPartition("t", number) for number in range(3)]
NAMES = [f"g{number}" for number in range(100)]


async def test_groups_of_one_coordinator_share_a_request(cluster: FakeCluster) -> None:
    def describe(
        _: FakeNode, __: object, request: share_api.ShareGroupDescribeRequest
    ) -> share_api.ShareGroupDescribeResponse:
        return share_api.ShareGroupDescribeResponse(
            groups=[
                share_api.DescribedGroup(group_id=name, group_state="Empty")
                for name in reversed(request.group_ids)
            ]
        )

    def offsets(
        _: FakeNode, __: object, request: offsets_api.DescribeShareGroupOffsetsRequest
    ) -> offsets_api.DescribeShareGroupOffsetsResponse:
        return offsets_api.DescribeShareGroupOffsetsResponse(
            groups=[
                offsets_api.DescribeShareGroupOffsetsResponseGroup(group_id=it.group_id)
                for it in reversed(request.groups)
            ]
        )

    cluster.on(ApiKey.SHARE_GROUP_DESCRIBE, describe)
    cluster.on(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, offsets)
    async with admin_of(cluster) as admin:
        described = await admin.describe_share_groups(NAMES)
        assert await admin.list_share_group_offsets(NAMES) == {
            name: {} for name in NAMES
        }
    assert list(described) == NAMES
    assert {it.coordinator for it in described.values()} == {0, 1, 2}
    assert len(cluster.logged(ApiKey.SHARE_GROUP_DESCRIBE)) == 3
    assert len(cluster.logged(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS)) == 3


async def test_what_is_not_known_of_an_offset(cluster: FakeCluster) -> None:
    entry = offsets_api.DescribeShareGroupOffsetsResponsePartition
    partitions = [
        entry(partition_index=2, start_offset=-1, leader_epoch=-1),
        entry(partition_index=1, start_offset=5, leader_epoch=-1),
        entry(partition_index=0, start_offset=7, leader_epoch=2, lag=3),
    ]
    topic = offsets_api.DescribeShareGroupOffsetsResponseTopic(
        topic_name="t", partitions=partitions
    )
    cluster.on(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        offsets_api.DescribeShareGroupOffsetsResponse(
            groups=[
                offsets_api.DescribeShareGroupOffsetsResponseGroup(
                    group_id="g", topics=[topic]
                )
            ]
        ),
    )
    async with admin_of(cluster) as admin:
        found = (await admin.list_share_group_offsets({"g": T}))["g"]
        assert list(found) == T
        assert found == {
            T[0]: ShareOffset(7, 2, 3),
            T[1]: ShareOffset(5, None, None),
            T[2]: None,
        }
        partitions[1].error_code = E.TOPIC_AUTHORIZATION_FAILED
        with pytest.raises(AuthorizationError, match="share group g: t-1: refused"):
            await admin.list_share_group_offsets(["g"])


async def test_each_partition_fails_for_itself(cluster: FakeCluster) -> None:
    entry = alter_api.AlterShareGroupOffsetsResponsePartition
    answer = alter_api.AlterShareGroupOffsetsResponse(
        responses=[
            alter_api.AlterShareGroupOffsetsResponseTopic(
                topic_name="t",
                partitions=[
                    entry(partition_index=1, error_code=E.UNKNOWN_TOPIC_OR_PARTITION),
                    entry(partition_index=0),
                ],
            )
        ]
    )
    cluster.on(ApiKey.ALTER_SHARE_GROUP_OFFSETS, answer)
    async with admin_of(cluster) as admin:
        with pytest.raises(UnknownTopicOrPartition) as caught:
            await admin.alter_share_group_offsets("g", {T[0]: 1, T[1]: 2})
        assert caught.value.item == T[1]
        assert dict(caught.value.results) == {T[0]: None}
        answer.error_code = E.GROUP_AUTHORIZATION_FAILED
        with pytest.raises(AdminErrors) as several:
            await admin.alter_share_group_offsets("g", {T[0]: 1, T[1]: 2})
        assert [each.item for each in several.value.exceptions] == T[:2]
        answer.error_code = 0
        with pytest.raises(ProtocolError, match="has t-1, which was not asked for"):
            await admin.alter_share_group_offsets("g", {T[2]: 1})


async def test_each_topic_fails_for_itself(cluster: FakeCluster) -> None:
    topic = delete_api.DeleteShareGroupOffsetsResponseTopic
    cluster.on(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        delete_api.DeleteShareGroupOffsetsResponse(
            responses=[
                topic(topic_name="b", error_code=E.TOPIC_AUTHORIZATION_FAILED),
                topic(topic_name="a"),
            ]
        ),
    )
    async with admin_of(cluster) as admin:
        found = await settled(admin.delete_share_group_offsets("g", ["a", "b"]))
    assert found.found == {"a": None}
    assert isinstance(found.failed["b"], AuthorizationError)


async def test_a_topology(cluster: FakeCluster) -> None:
    log = streams_api.TopicInfo(
        name="log",
        replication_factor=3,
        topic_configs=[streams_api.KeyValue(key="cleanup.policy", value="compact")],
    )
    group = streams_api.DescribedGroup(
        group_id="g",
        group_state="NotReady",
        topology=streams_api.Topology(
            epoch=2,
            subtopologies=[
                streams_api.Subtopology(
                    subtopology_id="0",
                    source_topics=["a"],
                    repartition_sink_topics=["b"],
                    state_changelog_topics=[log],
                    repartition_source_topics=[streams_api.TopicInfo(name="b")],
                )
            ],
        ),
        members=[
            streams_api.Member(
                member_id="m",
                task_offsets=[
                    streams_api.TaskOffset(subtopology_id="0", partition=1, offset=5)
                ],
                assignment=streams_api.Assignment(
                    standby_tasks=[
                        streams_api.TaskIds(subtopology_id="0", partitions=[2, 1])
                    ]
                ),
            )
        ],
    )
    other = streams_api.DescribedGroup(group_id="h", group_state="Empty")
    cluster.on(
        ApiKey.STREAMS_GROUP_DESCRIBE,
        lambda _, __, request: streams_api.StreamsGroupDescribeResponse(
            groups=[it for it in (other, group) if it.group_id in request.group_ids]
        ),
    )
    async with admin_of(cluster) as admin:
        found = await admin.describe_streams_groups(["g", "h"])
    assert list(found) == ["g", "h"]
    it = found["g"]
    assert it.topology_epoch == 2
    assert it.subtopologies[0].state_changelog_topics == {
        "log": StreamsTopic(0, 3, {"cleanup.policy": "compact"})
    }
    assert it.subtopologies[0].repartition_source_topics == {
        "b": StreamsTopic(0, 0, {})
    }
    (member,) = it.members
    assert member.task_offsets == {("0", 1): 5}
    assert member.assignment.standby == {"0": (1, 2)}
    assert member.endpoint is None
    assert (found["h"].topology_epoch, found["h"].subtopologies) == (None, ())


async def test_brokers_without_them(cluster: FakeCluster) -> None:
    for api in (
        ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.STREAMS_GROUP_DESCRIBE,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    ):
        cluster.limit_version(api, -1)
        cluster.drop_connections()
    async with admin_of(cluster) as admin:
        for results in (
            await settled(admin.describe_share_groups(["g"])),
            await settled(admin.describe_streams_groups(["g"])),
            await settled(admin.list_share_group_offsets(["g"])),
            await settled(admin.alter_share_group_offsets("g", {T[0]: 0})),
            await settled(admin.delete_share_group_offsets("g", ["t"])),
        ):
            (error,) = results.failed.values()
            assert isinstance(error, UnsupportedVersion)
            assert "needs Kafka 4.1 or later" in str(error)
