"""Topics whose replicas are not in sync, or have no leader, and waits for none."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from kafkaio.admin import settled
from kafkaio.errors import RequestTimeout
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol._message import Response
from kafkaio.protocol.messages import describe_topic_partitions as pages_api
from tests.fakes.broker import HANG, FakeCluster
from tests.unit.admin.support import admin_of


def page(cluster: FakeCluster, topic_id: UUID | None = None) -> Response:
    """What DescribeTopicPartitions tells of topic ``t``, which no broker leads."""
    return pages_api.DescribeTopicPartitionsResponse(
        topics=[
            pages_api.DescribeTopicPartitionsResponseTopic(
                name="t",
                topic_id=topic_id or cluster.topics["t"].topic_id,
                partitions=[
                    pages_api.DescribeTopicPartitionsResponsePartition(
                        error_code=E.LEADER_NOT_AVAILABLE,
                        partition_index=number,
                        leader_id=-1,
                        replica_nodes=[1, 2],
                        eligible_leader_replicas=[2],
                        last_known_elr=[1],
                    )
                    for number in range(6)
                ],
            )
        ]
    )


def fall_behind(cluster: FakeCluster) -> None:
    for number in range(6):
        cluster.partition("t", number).isr.clear()
        cluster.move_leader("t", number, -1)


@pytest.mark.parametrize("by", ["pages", "metadata"])
async def test_no_partition_has_a_leader(cluster: FakeCluster, by: str) -> None:
    fall_behind(cluster)
    if by == "metadata":
        cluster.limit_version(ApiKey.DESCRIBE_TOPIC_PARTITIONS, -1)
        cluster.drop_connections()
    else:
        cluster.on(ApiKey.DESCRIBE_TOPIC_PARTITIONS, page(cluster))
    async with admin_of(cluster) as admin:
        begun = asyncio.get_running_loop().time()
        described = (await admin.describe_topics(["t"], timeout=5))["t"]
        listed = await admin.list_topics(timeout=5)
        assert asyncio.get_running_loop().time() - begun < 1
    assert [it.leader for it in described.partitions] == [None] * 6
    assert {it.elr for it in described.partitions} == {(2,) if by == "pages" else ()}
    assert listed["t"].partitions == 6


async def test_replicas_in_sync_are_described_by_metadata_alone(
    cluster: FakeCluster,
) -> None:
    cluster.add_topic("behind")
    cluster.partition("behind", 0).isr.pop()
    cluster.on(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        pages_api.DescribeTopicPartitionsResponse(
            topics=[
                pages_api.DescribeTopicPartitionsResponseTopic(
                    name="behind", topic_id=cluster.topics["behind"].topic_id
                )
            ]
        ),
    )
    by_id = cluster.topics["behind"].topic_id
    async with admin_of(cluster) as admin:
        await admin.describe_topics(["t"])
        assert cluster.logged(ApiKey.DESCRIBE_TOPIC_PARTITIONS) == []
        found = await admin.describe_topics(["t", "behind", by_id])
    (logged,) = cluster.logged(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
    assert [it.name for it in logged.request.topics] == ["behind"]
    assert list(found) == ["t", "behind", by_id]
    assert found["behind"] == found[by_id]
    assert found["behind"].partitions == ()


async def test_another_topic_has_got_the_name_since(cluster: FakeCluster) -> None:
    fall_behind(cluster)
    cluster.on(ApiKey.DESCRIBE_TOPIC_PARTITIONS, page(cluster, UUID(int=7)))
    async with admin_of(cluster) as admin:
        (found,) = (await admin.describe_topics(["t"])).values()
    assert found.topic_id == cluster.topics["t"].topic_id
    assert {it.elr for it in found.partitions} == {()}


async def test_eligible_leaders_are_not_told_in_time(cluster: FakeCluster) -> None:
    fall_behind(cluster)
    cluster.add_topic("whole")
    cluster.on(ApiKey.DESCRIBE_TOPIC_PARTITIONS, HANG)
    async with admin_of(cluster) as admin:
        found = await settled(admin.describe_topics(["t", "whole"], timeout=0.5))
    assert isinstance(found.failed["t"], RequestTimeout)
    assert list(found.found) == ["whole"]


async def test_nothing_to_wait_for(cluster: FakeCluster) -> None:
    async with admin_of(cluster) as admin:
        before = len(cluster.log)
        await admin.wait_for_topics([])
        assert len(cluster.log) == before
