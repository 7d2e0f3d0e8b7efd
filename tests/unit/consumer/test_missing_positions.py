"""Partitions that cannot be read keep the others from nothing, and are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from kafkaio._consumer import Consumer
from kafkaio.errors import AuthorizationError, RequestTimeout
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import OffsetAndMetadata, Record, TopicPartition
from tests.fakes.broker import HANG, FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs
from tests.unit.consumer.group_fakes import FakeGroup

ORDERS = [TopicPartition("orders", n) for n in range(3)]
GROUP: dict[str, Any] = {
    "topics": "orders",
    "group_id": "g",
    "group_protocol": "classic",
}
#: The ways to start on the three partitions.
STARTS: dict[str, dict[str, Any]] = {
    "group": GROUP,
    "topics": {"topics": "orders"},
    "assign": {"assign": ORDERS},
    "assign in a group": {"assign": ORDERS, "group_id": "g"},
}


class Missing:
    """What the observer hears of partitions without a position, and when."""

    def __init__(self) -> None:
        self.told: list[tuple[float, dict[int, str]]] = []
        self.began = asyncio.get_running_loop().time()

    def positions_missing(self, reasons: Mapping[TopicPartition, str]) -> None:
        time = asyncio.get_running_loop().time() - self.began
        self.told.append((time, {tp.partition: why for tp, why in reasons.items()}))


@pytest.fixture
async def group(cluster: FakeCluster, logs: FakeLogs) -> AsyncIterator[FakeGroup]:
    group = FakeGroup(cluster)
    yield group
    group.close()


def leaderless(cluster: FakeCluster, *partitions: int) -> None:
    for number in partitions or range(3):
        cluster.partition("orders", number).leader = -1


async def read(consumer: Consumer, count: int) -> set[tuple[int, int]]:
    async with asyncio.timeout(20):
        found = [await anext(consumer) for _ in range(count)]
    return {(record.partition, record.offset) for record in found}


@pytest.mark.parametrize("how", STARTS)
@pytest.mark.parametrize("lack", ["leader", "answer"])
async def test_a_consumer_starts_without_a_partition(
    cluster: FakeCluster,
    logs: FakeLogs,
    group: FakeGroup,
    make: MakeConsumer,
    how: str,
    lack: str,
):
    for tp in ORDERS:
        logs.append(*tp, b"old")
    if lack == "leader":
        leaderless(cluster, 0)
        reason = "it has no leader"
    else:
        cluster.on(ApiKey.LIST_OFFSETS, HANG, node=0)
        reason = "its leader, broker 0, has not answered yet"
    observer = Missing()
    async with make(observer, **STARTS[how]) as consumer:
        assert 5 <= asyncio.get_running_loop().time() - observer.began < 6
        assert [reasons for _, reasons in observer.told] == [{0: reason}]
        # The promise of `latest` holds wherever the leader answered.
        logs.append(*ORDERS[1], b"new")
        logs.append(*ORDERS[2], b"new")
        assert await read(consumer, 2) == {(1, 1), (2, 1)}
        with pytest.raises(
            RequestTimeout, match=rf"orders-0 is not known yet: {reason}"
        ):
            await consumer.position(ORDERS[0], timeout=1)
        if lack == "leader":
            cluster.partition("orders", 0).leader = 0
        else:
            cluster.reset(ApiKey.LIST_OFFSETS)
            cluster.on(ApiKey.LIST_OFFSETS, logs.list_offsets)
        assert await consumer.position(ORDERS[0], timeout=40) == 1
        logs.append(*ORDERS[0], b"new")
        assert await read(consumer, 1) == {(0, 1)}


async def test_an_answer_that_is_slow_and_comes_is_waited_for(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    cluster.delay(ApiKey.LIST_OFFSETS, 4.5, node=0)
    observer = Missing()
    async with make(observer, topics="orders") as consumer:
        logs.append(*ORDERS[0], b"new")
        assert await read(consumer, 1) == {(0, 0)}
    assert observer.told == []


async def test_a_start_that_finds_nothing_says_what_each_partition_lacks(
    cluster: FakeCluster, logs: FakeLogs, group: FakeGroup, make: MakeConsumer
):
    leaderless(cluster, 0, 1)
    cluster.on(ApiKey.LIST_OFFSETS, HANG, node=2)
    with pytest.raises(RequestTimeout) as raised:
        await make(**GROUP).start(timeout=8)
    assert str(raised.value) == (
        "no position was found in time: orders-0, orders-1 (it has no leader); "
        "orders-2 (its leader, broker 2, has not answered yet)"
    )


async def test_a_time_limit_below_the_patience_starts_with_what_there_is(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    leaderless(cluster, 0)
    observer = Missing()
    consumer = make(observer, topics="orders")
    await consumer.start(timeout=1)
    assert observer.told == [(pytest.approx(1, abs=0.2), {0: "it has no leader"})]


async def test_a_missing_partition_is_told_again(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    leaderless(cluster, 0)
    observer = Missing()
    async with make(observer, topics="orders"):
        await asyncio.sleep(100)
    times = [round(time) for time, _ in observer.told]
    assert times == [5, 15, 35, 75]


async def test_a_seek_is_told_of_a_leader_that_is_gone(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    observer = Missing()
    async with make(observer, topics="orders", metadata_max_age_ms=1000) as consumer:
        leaderless(cluster, 0)
        await asyncio.sleep(3)
        consumer.seek_to_beginning(ORDERS[0])
        await asyncio.sleep(6)
        assert [reasons for _, reasons in observer.told] == [{0: "it has no leader"}]
        logs.append(*ORDERS[1], b"new")
        assert await read(consumer, 1) == {(1, 0)}


async def test_one_unstable_offset_delays_no_other_partition(
    cluster: FakeCluster, logs: FakeLogs, group: FakeGroup, make: MakeConsumer
):
    for tp in ORDERS:
        logs.append(*tp, b"0", b"1")
        group.offsets[tp] = OffsetAndMetadata(1)
    fetch: Callable[..., Any] = group._fetch
    unstable = True

    def partly(node: Any, header: Any, request: Any) -> Any:
        answer = fetch(node, header, request)
        for found in answer.groups:
            for topic in found.topics:
                for item in topic.partitions:
                    if unstable and item.partition_index == 0:
                        item.error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
                        item.committed_offset = -1
        return answer

    cluster.on(ApiKey.OFFSET_FETCH, partly)
    observer = Missing()
    async with make(observer, **GROUP) as consumer:
        assert await read(consumer, 2) == {(1, 1), (2, 1)}
        [(_, reasons)] = observer.told
        assert "committed offset is not known yet" in reasons[0]
        assert "UNSTABLE_OFFSET_COMMIT" in reasons[0]
        unstable = False
        assert await read(consumer, 1) == {(0, 1)}


async def test_a_topic_whose_offsets_are_refused_is_told_once(
    cluster: FakeCluster, logs: FakeLogs, group: FakeGroup, make: MakeConsumer
):
    fetch: Callable[..., Any] = group._fetch
    refuses = False

    def refusing(node: Any, header: Any, request: Any) -> Any:
        answer = fetch(node, header, request)
        for found in answer.groups:
            for topic in found.topics:
                for item in topic.partitions:
                    if refuses and topic.name == "orders":
                        item.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return answer

    cluster.on(ApiKey.OFFSET_FETCH, refusing)
    options = {**GROUP, "topics": "one", "auto_offset_reset": "earliest"}
    async with make(**options) as consumer:
        refuses = True
        consumer.subscribe(["orders", "one"])
        with pytest.raises(AuthorizationError, match="orders-0"):
            await consumer.poll(timeout=5)
        logs.append("one", 0, b"1")  # the other topic is read on
        assert (await consumer.poll(timeout=0.05)).records


async def test_a_right_on_one_partition_keeps_the_others_from_nothing(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    logs.refusals[ORDERS[0]] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    began = asyncio.get_running_loop().time()
    async with make(topics="orders") as consumer:
        assert asyncio.get_running_loop().time() - began < 1  # nothing to wait for
        with pytest.raises(AuthorizationError, match="orders-0"):
            await consumer.poll(timeout=1)
        logs.append(*ORDERS[1], b"new")
        assert await read(consumer, 1) == {(1, 0)}


async def test_a_right_that_is_missing_for_everything_is_an_error_of_the_start(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    for tp in ORDERS:
        logs.refusals[tp] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(AuthorizationError, match=r"orders-[012]"):
        await make(topics="orders").start()


async def test_run_reads_what_there_is(
    cluster: FakeCluster, logs: FakeLogs, group: FakeGroup, make: MakeConsumer
):
    leaderless(cluster, 0)
    seen: list[int] = []

    async def handle(record: Record) -> None:
        seen.append(record.partition)

    async with make(**GROUP, auto_offset_reset="earliest") as consumer:
        running = asyncio.create_task(consumer.run(handle))
        for tp in ORDERS:
            logs.append(*tp, b"v")
        await until(lambda: sorted(seen) == [1, 2])
        cluster.partition("orders", 0).leader = 0
        await until(lambda: sorted(seen) == [0, 1, 2])
        await consumer.close()
        await running


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  (the clock jumps)
            await asyncio.sleep(0.1)
