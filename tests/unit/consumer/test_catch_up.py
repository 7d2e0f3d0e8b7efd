"""What becomes fetchable while a fetch waits does not wait for its answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafkaio.types import TopicPartition
from tests.fakes.broker import DISCONNECT, FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs

ONE = TopicPartition("one", 0)
ORDERS = [TopicPartition("orders", n) for n in range(3)]
SOON = 0.02
WAIT = {"fetch_max_wait_ms": 30_000}


def beside(cluster: FakeCluster) -> list[FetchRequest]:
    """The fetches outside of every session."""
    return [
        r
        for r in cluster.requests(FetchRequest)
        if (r.session_id, r.session_epoch) == (0, -1)
    ]


def partitions(request: FetchRequest) -> list[tuple[int, int]]:
    return [(p.partition, p.fetch_offset) for t in request.topics for p in t.partitions]


async def next_value(consumer: Any, within: float = SOON) -> bytes | None:
    async with asyncio.timeout(within):
        return (await anext(consumer)).value


@pytest.mark.parametrize("highest", [18, 12, 6])
async def test_a_seek_is_served_beside_a_waiting_fetch(
    highest: int, cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    cluster.limit_version(ApiKey.FETCH, highest)
    logs.grants_sessions = highest >= 7
    for n in range(5):
        logs.append("one", 0, b"%d" % n)
    async with make(assign=[ONE], **WAIT) as consumer:  # at the end
        await asyncio.sleep(1)
        consumer.seek(ONE, 3)
        assert await next_value(consumer) == b"3"
        assert await next_value(consumer) == b"4"
        # The fetch from the end still waits, and its answer is what comes next.
        logs.append("one", 0, b"5")
        assert await next_value(consumer) == b"5"


async def test_resumed_and_added_partitions_are_served_at_once(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    logs.append("orders", 0, b"resumed")
    options = {"auto_offset_reset": "earliest", "client_rack": "r1", **WAIT}
    async with make(assign=[ONE, ORDERS[0]], **options) as consumer:
        consumer.pause(ORDERS[0])
        await asyncio.sleep(1)
        consumer.seek(ORDERS[0], 0)
        consumer.resume(ORDERS[0])
        assert await next_value(consumer) == b"resumed"
        logs.append("orders", 0, b"added")
        consumer.assign([ONE])
        await asyncio.sleep(1)
        consumer.assign([ONE, ORDERS[0]])
        assert await next_value(consumer) == b"resumed"
        assert await next_value(consumer) == b"added"
    assert {r.rack_id for r in cluster.requests(FetchRequest)} >= {"r1"}
    assert all(r.max_wait_ms == 0 for r in beside(cluster))


async def test_what_brings_nothing_is_asked_for_once(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    logs.append("orders", 0, b"0", b"1")
    async with make(assign=[ONE], **WAIT) as consumer:
        await asyncio.sleep(1)
        consumer.assign([ONE, ORDERS[0]])
        await asyncio.sleep(1)
        consumer.pause(ONE)
        consumer.resume(ONE)
        await asyncio.sleep(1)
        assert [partitions(r) for r in beside(cluster)] == [[(0, 2)]]
        # The next fetch of the session has it.
        logs.append("one", 0, b"wakes")
        assert await next_value(consumer) == b"wakes"
        logs.append("orders", 0, b"2")
        assert await next_value(consumer) == b"2"
        assert len(beside(cluster)) == 1


async def test_beside_a_longer_wait_an_empty_partition_is_asked_for_again(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    logs.append("orders", 0, b"0", b"1")
    async with make(assign=[ONE], fetch_max_wait_ms=500) as consumer:
        # Quiet for so long that each fetch waits for two seconds.
        await asyncio.sleep(4.2)
        assert cluster.requests(FetchRequest)[-1].max_wait_ms == 2_000
        consumer.assign([ONE, ORDERS[0]])
        await asyncio.sleep(0.1)
        logs.append("orders", 0, b"2")
        assert await next_value(consumer, 0.5) == b"2"
        assert [partitions(r) for r in beside(cluster)] == [[(0, 2)], [(0, 2)]]


async def test_a_fetch_that_is_answered_at_once_needs_none_beside_it(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    logs.append("one", 0, b"0")
    async with make(assign=[ONE], auto_offset_reset="earliest", **WAIT) as consumer:
        assert await next_value(consumer, 1) == b"0"
        logs.append("orders", 0, b"old")
        consumer.assign([ONE, ORDERS[0]])
        await asyncio.sleep(0.001)
        logs.append("one", 0, b"1")
        seen = {await next_value(consumer), await next_value(consumer)}
        assert seen == {b"1", b"old"}
        assert not beside(cluster)


async def test_no_room_beside(cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer):
    logs.append("orders", 0, b"0")
    async with make(
        assign=[ONE],
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=2_000,
        fetch_buffer_bytes=1_000,
        fetch_max_wait_ms=500,
    ) as consumer:
        await asyncio.sleep(0.1)
        consumer.assign([ONE, ORDERS[0]])
        assert await next_value(consumer, 1) == b"0"
    assert not beside(cluster)


@pytest.mark.parametrize(
    "answer",
    [
        DISCONNECT,
        FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR),
        FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic="one", partitions=[PartitionData(partition_index=7)]
                )
            ]
        ),
    ],
)
async def test_what_fails_beside_is_asked_for_again(
    answer: Any, cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    async with make(assign=[ONE], fetch_max_wait_ms=500) as consumer:
        await asyncio.sleep(1.1)
        logs.append("orders", 0, b"0")
        cluster.on(ApiKey.FETCH, answer, times=1)
        consumer.assign([ONE, ORDERS[0]])
        consumer.seek(ORDERS[0], 0)
        assert await next_value(consumer, 0.6) == b"0"
        assert len(beside(cluster)) == 2


async def test_one_waiting_broker_leaves_the_others_their_room(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    # Node 0 has nothing, and its fetch keeps the room that it was given.
    for n in (1, 2):
        logs.append("orders", n, b"%d" % n)
    gate = cluster.hold(ApiKey.LIST_OFFSETS, node=1)
    async with asyncio.TaskGroup() as tasks:
        consumer = make(
            assign=ORDERS,
            auto_offset_reset="earliest",
            fetch_buffer_bytes=400_000,
            max_partition_fetch_bytes=100_000,
            **WAIT,
        )
        started = tasks.create_task(consumer.start())
        await asyncio.sleep(1)
        assert gate.waiting == 1
        gate.release()
        await started
    assert {await next_value(consumer), await next_value(consumer)} == {b"1", b"2"}
    await consumer.close()


async def test_a_broker_to_come_finds_room(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    logs.append("orders", 1, b"1")
    async with make(
        assign=[ORDERS[0]],
        auto_offset_reset="earliest",
        fetch_buffer_bytes=400_000,
        max_partition_fetch_bytes=200_000,
        **WAIT,
    ) as consumer:
        await asyncio.sleep(1)
        consumer.assign(ORDERS[:2])
        assert await next_value(consumer) == b"1"
