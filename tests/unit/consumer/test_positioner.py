"""How fast, and with how few questions, positions are found."""

from __future__ import annotations

import asyncio

import pytest

from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.list_offsets import ListOffsetsRequest
from kafkaio.types import TopicPartition
from tests.fakes.broker import HANG, FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs

MANY = [TopicPartition("many", n) for n in range(12)]


class Retries:
    def __init__(self) -> None:
        self.told: list[tuple[int, float]] = []

    def retrying(
        self, what: str, attempt: int, delay: float, cause: BaseException
    ) -> None:
        if what == "look-up of positions":
            self.told.append((attempt, delay))


@pytest.fixture
def many(cluster: FakeCluster, logs: FakeLogs) -> FakeLogs:
    cluster.add_topic("many", 12)
    for tp in MANY:
        logs.append(*tp, b"v")
    return logs


def asked(cluster: FakeCluster, node: int) -> list[set[int]]:
    """The partitions of each question for offsets that a broker was asked."""
    return [
        {p.partition_index for t in r.topics for p in t.partitions}
        for r in cluster.requests(ListOffsetsRequest, node)
    ]


async def test_an_unknown_topic_waits_for_metadata_and_not_for_a_time(
    cluster: FakeCluster, many: FakeLogs, make: MakeConsumer
):
    cluster.delay(ApiKey.METADATA, 0.003)
    told = Retries()
    async with make(told, auto_offset_reset="earliest") as consumer:
        await asyncio.sleep(1)
        consumer.assign(MANY)
        async with asyncio.timeout(0.02):
            seen = {(await anext(consumer)).topic_partition for _ in MANY}
        assert seen == set(MANY)
    assert told.told == []
    for node in range(3):
        (question,) = asked(cluster, node)
        assert question == {tp.partition for tp in MANY if tp.partition % 3 == node}


async def test_a_partition_without_a_leader_waits_for_one(
    cluster: FakeCluster, many: FakeLogs, make: MakeConsumer
):
    cluster.partition("many", 0).leader = -1
    async with make(auto_offset_reset="earliest") as consumer:
        consumer.assign(MANY[:2])
        await asyncio.sleep(5)
        assert (await anext(consumer)).partition == 1
        assert asked(cluster, 0) == []
        cluster.move_leader("many", 0, 2)
        async with asyncio.timeout(1.3):  # retry_backoff_max_ms, with its jitter
            assert (await anext(consumer)).partition == 0


async def test_what_failed_together_is_asked_for_together(
    cluster: FakeCluster, many: FakeLogs, make: MakeConsumer
):
    for tp in MANY:
        many.refusals[tp] = ErrorCode.OFFSET_NOT_AVAILABLE
    told = Retries()
    async with make(told, auto_offset_reset="earliest") as consumer:
        consumer.assign(MANY)
        await asyncio.sleep(0.05)
        many.refusals.clear()
        await asyncio.sleep(0.2)
        assert len({(await anext(consumer)).partition for _ in MANY}) == 12
    for node in range(3):
        first, second = asked(cluster, node)
        assert first == second
    assert [attempt for attempt, _ in told.told] == [1, 1, 1]  # once per broker
    assert all(0.08 <= delay <= 0.12 for _, delay in told.told)


async def test_a_leader_without_an_answer_delays_no_other(
    cluster: FakeCluster, many: FakeLogs, make: MakeConsumer
):
    cluster.on(ApiKey.LIST_OFFSETS, HANG, node=0, times=1)
    async with make(
        auto_offset_reset="earliest", request_timeout_ms=10_000
    ) as consumer:
        consumer.assign(MANY)
        async with asyncio.timeout(0.1):
            seen = {(await anext(consumer)).partition for _ in range(8)}
        assert seen == {n for n in range(12) if n % 3}
        # One that is added meanwhile waits for no other leader, either.
        consumer.seek_to_beginning(MANY[1])
        async with asyncio.timeout(0.1):
            assert (await anext(consumer)).partition == 1
        async with asyncio.timeout(15):
            rest = {(await anext(consumer)).partition for _ in range(4)}
        assert rest == {0, 3, 6, 9}


async def test_committed_offsets_come_in_one_answer(
    cluster: FakeCluster, many: FakeLogs, make: MakeConsumer
):
    many.append("many", 0, b"after")
    many.committed["many", 0] = 1
    async with make(group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.assign(MANY)
        async with asyncio.timeout(0.05):
            seen = {(await anext(consumer)).topic_partition for _ in MANY}
        assert seen == set(MANY)
        assert await consumer.position(MANY[0]) == 2
    assert len(cluster.logged(ApiKey.OFFSET_FETCH)) == 1
    assert asked(cluster, 0) == [{3, 6, 9}]


async def test_a_seek_wins_over_a_lookup_that_fails(
    cluster: FakeCluster, many: FakeLogs, make: MakeConsumer
):
    gate = cluster.hold(ApiKey.LIST_OFFSETS, node=0)
    many.refusals[MANY[0]] = ErrorCode.OFFSET_NOT_AVAILABLE
    told = Retries()
    async with make(told, auto_offset_reset="latest") as consumer:
        consumer.assign(MANY[:1])
        await asyncio.sleep(0.05)
        assert gate.waiting == 1
        consumer.seek(MANY[0], 0)
        gate.release()
        async with asyncio.timeout(0.02):
            assert (await anext(consumer)).offset == 0
        await asyncio.sleep(1)
    assert told.told == []
    assert len(asked(cluster, 0)) == 1
