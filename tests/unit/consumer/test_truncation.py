"""What was read is validated with every new leader (KIP-320)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafkaio.errors import AuthorizationError, LogTruncated
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.fetch import FetchRequest
from kafkaio.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
)
from kafkaio.types import TopicPartition
from tests.fakes.broker import DISCONNECT, FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs

ONE = TopicPartition("one", 0)
FIRST = {"assign": [ONE], "auto_offset_reset": "earliest"}


async def values(consumer: Any, count: int) -> list[bytes]:
    async with asyncio.timeout(5):
        return [(await anext(consumer)).value for _ in range(count)]


def elect(cluster: FakeCluster, logs: FakeLogs, *, cut_at: int | None = None) -> None:
    """Another leader, whose log ends at ``cut_at``, and has something else there."""
    state = cluster.partition(*ONE)
    cluster.move_leader(*ONE, (state.leader + 1) % 3)
    if cut_at is not None:
        logs.log(*ONE).truncate(cut_at)
    logs.append(*ONE, b"new", epoch=cluster.partition(*ONE).epoch)


def asked(cluster: FakeCluster) -> list[tuple[int, int]]:
    """The epochs of each question: of the leader, of what was read."""
    return [
        (partition.current_leader_epoch, partition.leader_epoch)
        for request in cluster.requests(OffsetForLeaderEpochRequest)
        for topic in request.topics
        for partition in topic.partitions
    ]


async def test_a_leader_that_agrees_is_asked_once_and_nothing_is_read_twice(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    for n in range(4):
        logs.append(*ONE, b"%d" % n)
    async with make(**FIRST) as consumer:
        assert await values(consumer, 2) == [b"0", b"1"]
        elect(cluster, logs)
        assert await values(consumer, 3) == [b"2", b"3", b"new"]
        assert asked(cluster) == [(1, 0)]
        assert await consumer.position(ONE) == 5


@pytest.mark.parametrize("policy", ["earliest", "latest"])
async def test_with_a_policy_reading_goes_on_where_the_log_was_cut(
    policy: str, cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    for n in range(4):
        logs.append(*ONE, b"%d" % n)
    async with make(assign=[ONE], auto_offset_reset=policy) as consumer:
        consumer.seek(ONE, 0)
        assert await values(consumer, 4) == [b"0", b"1", b"2", b"3"]
        elect(cluster, logs, cut_at=2)
        assert await values(consumer, 1) == [b"new"]
        assert await consumer.position(ONE) == 3


async def test_without_a_policy_the_user_is_told_where_the_logs_differ(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    for n in range(4):
        logs.append(*ONE, b"%d" % n)
    async with make(assign=[ONE], auto_offset_reset="none") as consumer:
        consumer.seek(ONE, 0)
        assert len(await values(consumer, 4)) == 4
        elect(cluster, logs, cut_at=2)
        for _ in range(2):
            with pytest.raises(
                LogTruncated, match=r"one-0.* offset 4.* offset 2"
            ) as told:
                await values(consumer, 1)
        assert (told.value.topic, told.value.partition) == ONE
        assert (told.value.position, told.value.diverging_offset) == (4, 2)
        consumer.seek(ONE, told.value.diverging_offset)
        assert await values(consumer, 1) == [b"new"]


async def test_a_log_that_knows_no_such_epoch_has_lost_it_all(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    logs.append(*ONE, b"0")
    async with make(assign=[ONE], auto_offset_reset="none") as consumer:
        consumer.seek(ONE, 0)
        await values(consumer, 1)
        elect(cluster, logs, cut_at=0)
        with pytest.raises(LogTruncated, match="has lost that part") as told:
            await values(consumer, 1)
        assert told.value.diverging_offset == -1


async def test_a_log_that_lost_it_all_is_reset(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    logs.append(*ONE, b"0")
    async with make(**FIRST) as consumer:
        await values(consumer, 1)
        elect(cluster, logs, cut_at=0)
        assert await values(consumer, 1) == [b"new"]


async def test_a_committed_offset_is_validated_before_the_first_fetch(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    for n in range(4):
        logs.append(*ONE, b"%d" % n)
    logs.committed[ONE], logs.committed_epochs[ONE] = 4, 0
    elect(cluster, logs, cut_at=2)
    async with make(group_id="g", **FIRST) as consumer:
        assert asked(cluster) == [(1, 0)]
        assert await values(consumer, 1) == [b"new"]
        fetched = [
            r.topics[0].partitions[0].fetch_offset
            for r in cluster.requests(FetchRequest)
        ]
        assert fetched[0] == 2


async def test_whoever_wrote_the_last_record_is_not_asked(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    elect(cluster, logs)
    logs.committed[ONE], logs.committed_epochs[ONE] = 1, 1
    async with make(group_id="g", **FIRST) as consumer:
        logs.append(*ONE, b"more", epoch=1)
        assert await values(consumer, 1) == [b"more"]
    assert asked(cluster) == []


async def test_a_broker_that_cannot_be_asked_is_believed(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    logs.append(*ONE, b"0")
    for node in cluster.nodes.values():
        node.versions[ApiKey.OFFSET_FOR_LEADER_EPOCH] = (0, 2)
    async with make(**FIRST) as consumer:
        await values(consumer, 1)
        elect(cluster, logs)
        assert await values(consumer, 1) == [b"new"]
    assert asked(cluster) == []


async def test_a_lane_that_waits_goes_on_where_the_log_was_cut(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    for n in range(4):
        logs.append(*ONE, b"%d" % n)
    async with make(**FIRST) as consumer:
        lanes = consumer.partitions()
        lane = await anext(lanes)
        for n in range(4):
            assert (await anext(lane)).value == b"%d" % n
        waiting = asyncio.ensure_future(anext(lane))
        elect(cluster, logs, cut_at=2)
        async with asyncio.timeout(5):
            assert (await waiting).value == b"new"
        another = asyncio.ensure_future(anext(lanes))
        assert await asyncio.wait([another], timeout=5) == (set(), {another})
        another.cancel()


async def test_a_lane_that_waits_is_told_where_the_logs_differ(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    for n in range(4):
        logs.append(*ONE, b"%d" % n)
    async with make(assign=[ONE], auto_offset_reset="none") as consumer:
        consumer.seek(ONE, 0)
        lane = await anext(consumer.partitions())
        for n in range(4):
            assert (await anext(lane)).value == b"%d" % n
        waiting = asyncio.ensure_future(anext(lane))
        elect(cluster, logs, cut_at=2)
        with pytest.raises(LogTruncated, match=r"one-0.* offset 4.* offset 2"):
            async with asyncio.timeout(5):
                await waiting


@pytest.mark.parametrize("trouble", ["refusal", "disconnect", "hole"])
async def test_the_question_is_asked_again_until_it_is_answered(
    trouble: str, cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    logs.append(*ONE, b"0")
    async with make(**FIRST) as consumer:
        await values(consumer, 1)
        elect(cluster, logs)
        if trouble == "refusal":
            logs.refusals[ONE] = ErrorCode.UNKNOWN_LEADER_EPOCH
        elif trouble == "disconnect":
            cluster.on(ApiKey.OFFSET_FOR_LEADER_EPOCH, DISCONNECT, times=2)
        else:
            empty = OffsetForLeaderEpochRequest.response_type()()
            cluster.on(ApiKey.OFFSET_FOR_LEADER_EPOCH, empty, times=1)
        await cluster.received(ApiKey.OFFSET_FOR_LEADER_EPOCH, 1)
        await asyncio.sleep(0.01)
        logs.refusals.clear()
        assert await values(consumer, 1) == [b"new"]
    assert len(asked(cluster)) > 1


async def test_a_refusal_for_good_reaches_the_user(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    logs.append(*ONE, b"0")
    async with make(**FIRST) as consumer:
        await values(consumer, 1)
        elect(cluster, logs)
        logs.refusals[ONE] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        with pytest.raises(AuthorizationError, match="validate the position in one-0"):
            await values(consumer, 1)
        logs.refusals.clear()
        assert await values(consumer, 1) == [b"new"]


async def test_a_seek_wins_over_a_question_under_way(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    for n in range(4):
        logs.append(*ONE, b"%d" % n)
    async with make(**FIRST) as consumer:
        assert len(await values(consumer, 4)) == 4
        gate = cluster.hold(ApiKey.OFFSET_FOR_LEADER_EPOCH)
        elect(cluster, logs, cut_at=2)
        await cluster.received(ApiKey.OFFSET_FOR_LEADER_EPOCH, 1)
        consumer.seek(ONE, 1)
        gate.release()
        assert await values(consumer, 2) == [b"1", b"new"]
