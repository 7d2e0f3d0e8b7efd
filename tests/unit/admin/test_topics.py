"""Topics whose partitions have no leader, and waits for none."""

from __future__ import annotations

import asyncio

import pytest

from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.error_codes import ErrorCode as E
from kafkaio.protocol.messages import describe_topic_partitions as pages_api
from tests.fakes.broker import FakeCluster
from tests.unit.admin.support import admin_of

PAGE = pages_api.DescribeTopicPartitionsResponse(
    topics=[
        pages_api.DescribeTopicPartitionsResponseTopic(
            name="t",
            partitions=[
                pages_api.DescribeTopicPartitionsResponsePartition(
                    error_code=E.LEADER_NOT_AVAILABLE,
                    partition_index=number,
                    leader_id=-1,
                    replica_nodes=[1],
                )
                for number in range(6)
            ],
        )
    ]
)


@pytest.mark.parametrize("by", ["pages", "metadata"])
async def test_no_partition_has_a_leader(cluster: FakeCluster, by: str) -> None:
    for number in range(6):
        cluster.move_leader("t", number, -1)
    if by == "metadata":
        cluster.limit_version(ApiKey.DESCRIBE_TOPIC_PARTITIONS, -1)
    cluster.on(ApiKey.DESCRIBE_TOPIC_PARTITIONS, PAGE)
    async with admin_of(cluster) as admin:
        begun = asyncio.get_running_loop().time()
        described = (await admin.describe_topics(["t"], timeout=5))["t"]
        listed = await admin.list_topics(timeout=5)
        assert asyncio.get_running_loop().time() - begun < 1
    assert [it.leader for it in described.partitions] == [None] * 6
    assert listed["t"].partitions == 6


async def test_nothing_to_wait_for(cluster: FakeCluster) -> None:
    async with admin_of(cluster) as admin:
        before = len(cluster.log)
        await admin.wait_for_topics([])
        assert len(cluster.log) == before
