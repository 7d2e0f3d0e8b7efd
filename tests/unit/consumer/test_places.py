"""Positions, seeks, pauses and look-ups of offsets."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from kafkaio._runtime.clock import wall_ms
from kafkaio.errors import (
    AuthorizationError,
    ClosedError,
    OffsetOutOfRange,
    RequestTimeout,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.list_offsets import ListOffsetsResponse
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from kafkaio.types import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from tests.fakes.broker import DISCONNECT, HANG, FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs

ONE = TopicPartition("one", 0)
ORDERS = [TopicPartition("orders", n) for n in range(3)]
FIRST = {"assign": [ONE], "auto_offset_reset": "earliest"}


def fill(
    logs: FakeLogs, topic: str = "one", partition: int = 0, count: int = 5
) -> None:
    for n in range(count):
        logs.append(topic, partition, b"%d" % n, timestamp=1000 + n)


async def test_seeking(logs: FakeLogs, make: MakeConsumer):
    fill(logs)
    async with make(**FIRST) as consumer:
        assert (await anext(consumer)).offset == 0
        consumer.seek(ONE, 3)
        assert await consumer.position(ONE) == 3
        assert (await anext(consumer)).offset == 3
        consumer.seek(ONE, OffsetAndMetadata(1, leader_epoch=0))
        assert (await anext(consumer)).offset == 1
        consumer.seek_to_beginning()
        assert (await anext(consumer)).offset == 0
        consumer.seek_to_end(ONE)
        assert await consumer.position(ONE) == 5
        logs.append("one", 0, b"new")
        assert (await anext(consumer)).value == b"new"
        with pytest.raises(UsageError, match="-1"):
            consumer.seek(ONE, -1)
        with pytest.raises(UsageError, match="orders-0 is not assigned"):
            consumer.seek(ORDERS[0], 1)
        with pytest.raises(UsageError, match="not assigned"):
            await consumer.position(ORDERS[0])


async def test_a_seek_while_a_fetch_is_under_way(logs: FakeLogs, make: MakeConsumer):
    fill(logs)
    async with make(assign=[ONE]) as consumer:  # at the end
        await asyncio.sleep(0.9)  # not as long as two fetches wait
        consumer.seek(ONE, 2)
        logs.append("one", 0, b"5")  # answers the fetch from the old position
        assert [(await anext(consumer)).offset for _ in range(4)] == [2, 3, 4, 5]
        # One of the old position, and where two asked from the new one, one more.
        assert consumer.statistics().stale_answers in {1, 2}


async def test_a_pause_keeps_what_is_buffered(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    fill(logs)
    fill(logs, "orders", 0)
    async with make(assign=[ONE, ORDERS[0]], auto_offset_reset="earliest") as consumer:
        await asyncio.sleep(1)
        assert consumer.statistics().buffered_bytes > 0
        consumer.pause(ONE)
        consumer.pause(ONE)
        assert consumer.paused == {ONE}
        poll = await consumer.poll(timeout=1)
        assert {r.topic for r in poll.records} == {"orders"}
        assert (await consumer.poll(timeout=1)).records == []
        asked = len(cluster.logged(ApiKey.FETCH))
        consumer.resume(ONE)
        consumer.resume(ONE)
        poll = await consumer.poll(timeout=0)
        assert [r.offset for r in poll.records] == list(range(5))
        assert len(cluster.logged(ApiKey.FETCH)) == asked  # nothing was fetched anew
        assert consumer.paused == frozenset()


async def test_a_pause_in_the_middle_of_a_batch(logs: FakeLogs, make: MakeConsumer):
    logs.append("one", 0, b"a", b"b", b"c")
    async with make(**FIRST) as consumer:
        assert (await anext(consumer)).offset == 0
        consumer.pause(ONE)
        assert await consumer.position(ONE) == 1
        assert (await consumer.poll(timeout=1)).records == []
        consumer.resume(ONE)
        assert [(await anext(consumer)).offset for _ in range(2)] == [1, 2]


async def test_ends_times_and_lag(logs: FakeLogs, make: MakeConsumer):
    fill(logs)
    logs.log("one").start = 1
    async with make(**FIRST) as consumer:
        await anext(consumer)
        assert await consumer.beginning_offsets([ONE, ORDERS[1]]) == {
            ONE: 1,
            ORDERS[1]: 0,
        }
        assert await consumer.end_offsets([ONE]) == {ONE: 5}
        assert await consumer.lag() == {ONE: 3}
        assert await consumer.offsets_for_times({ONE: 1003, ORDERS[0]: 5}) == {
            ONE: OffsetAndTimestamp(3, 1003),
            ORDERS[0]: None,
        }
        with pytest.raises(UsageError, match="negative"):
            await consumer.offsets_for_times({ONE: -1})
        with pytest.raises(UnknownTopicOrPartition, match="no partition 7"):
            await consumer.end_offsets([TopicPartition("one", 7)])


async def test_lookups_are_repeated_until_the_leader_is_found(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    fill(logs)
    async with make(**FIRST) as consumer:
        await consumer.end_offsets([ONE])
        cluster.move_leader("one", 0, 2)
        assert await consumer.end_offsets([ONE]) == {ONE: 5}
        cluster.move_leader("one", 0, -1)
        consumer._core.cluster.request_refresh("one")
        with pytest.raises(RequestTimeout, match="one-0"):
            await consumer.end_offsets([ONE], timeout=3)


async def test_out_of_range_follows_the_policy(logs: FakeLogs, make: MakeConsumer):
    fill(logs)
    async with make(**FIRST) as consumer:
        consumer.seek(ONE, 99)
        assert (await anext(consumer)).offset == 0
    async with make(assign=[ONE]) as consumer:
        consumer.seek(ONE, 99)
        await asyncio.sleep(1)
        assert await consumer.position(ONE) == 5


async def test_out_of_range_is_told_after_the_data_before_it(
    logs: FakeLogs, make: MakeConsumer
):
    fill(logs, count=3)
    async with make(**FIRST, fetch_max_wait_ms=100) as consumer:
        await asyncio.sleep(0.05)
        logs.log("one").end = 2  # an unclean election: the next fetch is past the end
        await asyncio.sleep(1)
        assert [(await anext(consumer)).offset for _ in range(3)] == [0, 1, 2]
        logs.log("one").end = 3
        assert (await anext(consumer)).offset == 0


async def test_without_a_policy_there_is_an_error(logs: FakeLogs, make: MakeConsumer):
    fill(logs)
    async with make(assign=[ONE], auto_offset_reset="none") as consumer:
        for _ in range(2):
            with pytest.raises(OffsetOutOfRange, match="one-0"):
                await anext(consumer)
        with pytest.raises(OffsetOutOfRange, match="one-0"):
            await consumer.position(ONE)
        consumer.seek(ONE, 2)
        assert (await anext(consumer)).offset == 2
        consumer.seek(ONE, 77)
        with pytest.raises(OffsetOutOfRange, match="offset 77 is outside") as caught:
            await anext(consumer)
        error = caught.value
        assert (error.topic, error.partition, error.position) == (*ONE, 77)
    options = {"assign": [ONE], "auto_offset_reset": "none", "group_id": "g"}
    async with make(**options) as consumer:
        with pytest.raises(OffsetOutOfRange, match="one-0"):
            await consumer.poll(timeout=1)


async def test_by_duration(logs: FakeLogs, make: MakeConsumer):
    logs.append("one", 0, b"old", timestamp=wall_ms() - 7_200_000)
    logs.append("one", 0, b"new", timestamp=wall_ms() - 1_800_000)
    policy = {"auto_offset_reset": "by_duration:PT1H"}
    async with make(assign=[ONE], **policy) as consumer:
        assert await consumer.position(ONE) == 1
    policy = {"auto_offset_reset": "by_duration:PT1M"}
    async with make(assign=[ONE, ORDERS[0]], **policy) as consumer:
        # No record is that new: reading begins at the end, at once.
        assert await consumer.position(ONE) == 2
        assert await consumer.position(ORDERS[0]) == 0


async def test_a_lookup_that_fails_is_repeated(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    fill(logs)
    cluster.move_leader("one", 0, -1)
    consumer = make(**FIRST)
    starting = asyncio.create_task(consumer.start())
    await asyncio.sleep(5)
    assert not starting.done()
    cluster.move_leader("one", 0, 1)
    await starting
    assert (await anext(consumer)).offset == 0


async def test_starting_in_vain(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    with pytest.raises(UnknownTopicOrPartition, match="no partition 4"):
        await make(assign=[TopicPartition("one", 4)]).start()
    with pytest.raises(UnknownTopicOrPartition):
        await make(topics="nowhere").start(timeout=5)
    cluster.move_leader("one", 0, -1)
    with pytest.raises(RequestTimeout, match="no position"):
        await make(**FIRST).start(timeout=5)
    cluster.partition("one", 0).error = ErrorCode.NONE


async def test_a_committed_offset_that_cannot_be_loaded(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    fill(logs)
    refusal = OffsetFetchResponse(
        groups=[
            OffsetFetchResponseGroup(
                group_id="g", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED
            )
        ]
    )
    cluster.on(ApiKey.OFFSET_FETCH, refusal)
    with pytest.raises(AuthorizationError):
        await make(**FIRST, group_id="g").start()
    cluster.on(ApiKey.OFFSET_FETCH, logs.offset_fetch)
    cluster.on(ApiKey.OFFSET_FETCH, DISCONNECT, times=2)
    async with make(**FIRST, group_id="g") as consumer:
        assert (await anext(consumer)).offset == 0


async def test_a_reset_that_is_refused(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    fill(logs)
    logs.refusals["one", 0] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(AuthorizationError, match="one-0"):
        await make(**FIRST).start()
    async with make(assign=[ORDERS[0]]) as consumer:
        with pytest.raises(AuthorizationError, match="one-0"):
            await consumer.end_offsets([ONE])
        del logs.refusals["one", 0]
        consumer.assign([ONE])
        consumer.seek_to_beginning()
        assert (await anext(consumer)).offset == 0


@pytest.mark.parametrize("outcome", [DISCONNECT, HANG, ListOffsetsResponse()])
async def test_a_lookup_without_an_answer(
    outcome: Any, cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    fill(logs)
    cluster.on(ApiKey.LIST_OFFSETS, outcome, times=2)
    async with make(**FIRST, request_timeout_ms=2000) as consumer:
        assert (await anext(consumer)).offset == 0


async def test_a_lookup_that_the_broker_does_not_know(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    cluster.limit_version(ApiKey.LIST_OFFSETS, -1)
    with pytest.raises(UnsupportedVersion):
        await make(**FIRST).start()


# ---- what fetches told, and what there is to read


async def test_what_the_last_fetch_told(logs: FakeLogs, make: MakeConsumer) -> None:
    async with make(**FIRST) as consumer:
        told = (consumer.high_watermark, consumer.last_stable_offset)
        assert [tell(ONE) for tell in (*told, consumer.current_lag)] == [None] * 3
        fill(logs)
        assert (await anext(consumer)).offset == 0
        assert [tell(ONE) for tell in told] == [5, 5]
        assert consumer.current_lag(ONE) == 4  # the record at work was handed out
        consumer.seek(ONE, 2)
        assert consumer.current_lag(("one", 0)) == 3  # type: ignore[arg-type]
        consumer.seek_to_beginning(ONE)
        assert consumer.current_lag(ONE) is None  # there is no position
        for tell in (*told, consumer.current_lag):
            with pytest.raises(UsageError, match="orders-1 is not assigned"):
                tell(ORDERS[1])
        consumer.assign([])
        consumer.assign([ONE])
        assert consumer.high_watermark(ONE) is None


@pytest.mark.parametrize(
    ("isolation", "lag"), [("read_committed", 2), ("read_uncommitted", 5)]
)
async def test_the_lag_ends_where_the_isolation_level_does(
    logs: FakeLogs, make: MakeConsumer, isolation: str, lag: int
) -> None:
    fill(logs)
    logs.log("one").last_stable = 2
    async with make(**FIRST, isolation_level=isolation) as consumer:
        await consumer.poll(max_records=1)
        assert consumer.high_watermark(ONE) == 5
        assert consumer.last_stable_offset(ONE) == 2
        consumer.seek(ONE, 0)
        assert consumer.current_lag(ONE) == lag


async def test_what_was_subscribed_to(logs: FakeLogs, make: MakeConsumer) -> None:
    del logs
    async with make(assign=[ONE]) as consumer:
        assert consumer.subscription == frozenset()
    async with make(topics="one") as consumer:
        assert consumer.subscription == {"one"}
        consumer.subscribe(["one", "orders"])
        assert consumer.subscription == {"one", "orders"}
        consumer.unsubscribe()
        assert consumer.subscription == frozenset()
        pattern = re.compile("o.*")
        consumer.subscribe(pattern)
        assert consumer.subscription is pattern


async def test_what_topics_there_are(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
) -> None:
    del logs
    cluster.topics["one"].is_internal = True
    async with make(**FIRST) as consumer:
        assert await consumer.topics() == {"orders"}
        assert await consumer.partitions_for_topic("orders") == {0, 1, 2}
        with pytest.raises(UnknownTopicOrPartition, match="'missing'"):
            await consumer.partitions_for_topic("missing")
    async with make(**FIRST, exclude_internal_topics=False) as consumer:
        assert await consumer.topics() == {"one", "orders"}
    with pytest.raises(ClosedError):
        await consumer.topics()
    with pytest.raises(ClosedError):
        await consumer.partitions_for_topic("orders")
