"""Consumers that share the partitions of a group, on a scripted coordinator."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from kafkaio._consumer import Consumer
from kafkaio.errors import (
    CommitFailed,
    GroupError,
    PartitionLost,
    RequestTimeout,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.join_group import JoinGroupResponse
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from kafkaio.types import OffsetAndMetadata, TopicPartition
from tests.fakes.broker import DEFAULT, FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs
from tests.unit.consumer.group_fakes import FakeGroup

ORDERS = [TopicPartition("orders", n) for n in range(3)]
MEMBER = {
    "topics": "orders",
    "group_id": "g",
    "group_protocol": "classic",
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 1000,
    "session_timeout_ms": 10_000,
    "max_poll_interval_ms": 60_000,
}


@pytest.fixture
async def group(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
) -> AsyncIterator[FakeGroup]:
    group = FakeGroup(cluster)
    yield group
    group.close()


def offsets(group: FakeGroup) -> dict[TopicPartition, int]:
    return {tp: at.offset for tp, at in group.offsets.items()}


async def settle(*consumers: Consumer) -> None:
    """Poll until the group is at rest and every partition has one owner."""
    for _ in range(200):
        for consumer in consumers:
            await consumer.poll(timeout=0.05)
        owned = [tp for consumer in consumers for tp in consumer.assignment]
        busy = any(consumer.to_be_revoked for consumer in consumers)
        if sorted(owned) == ORDERS and not busy:
            return
    raise AssertionError(f"no rest: {consumers}")


async def test_one_member_reads_all(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
):
    calls: list[object] = []
    for tp in ORDERS:
        logs.append(*tp, b"x", b"y")
    group.offsets[ORDERS[1]] = OffsetAndMetadata(1, leader_epoch=0)
    async with make(**MEMBER, on_assigned=calls.append) as consumer:
        assert calls == [set(ORDERS)]
        assert consumer.assignment == set(ORDERS)
        assert consumer.group_metadata.generation == 1
        assert "STABLE" in repr(consumer)
        found = [await anext(consumer) for _ in range(5)]
        assert {(r.partition, r.offset) for r in found} == {
            (0, 0),
            (0, 1),
            (1, 1),
            (2, 0),
            (2, 1),
        }
        consumer.enforce_rebalance("for the test")
        await asyncio.sleep(2)
        assert consumer.group_metadata.generation == 2
        assert consumer.assignment == set(ORDERS)
        assert calls == [set(ORDERS)]  # nothing moved
    assert len(group.left) == 1
    assert sum(offsets(group).values()) == 5  # all but the one handed out last


async def test_a_release_that_has_no_time_for_its_commit_says_so(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
):
    logs.append(*ORDERS[0], b"x", b"y")
    loop = asyncio.get_running_loop()
    async with make(**MEMBER) as consumer:
        assert [(await anext(consumer)).value for _ in range(2)] == [b"x", b"y"]
        with pytest.raises(RequestTimeout):
            await consumer._core.settle_commits({ORDERS[0]}, loop.time() - 1)
    assert offsets(group)[ORDERS[0]] == 1  # all but the one handed out last


async def test_nothing_is_read_twice_when_partitions_move(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
):
    revoked: list[frozenset[TopicPartition]] = []

    async def on_revoked(partitions: frozenset[TopicPartition]) -> None:
        revoked.append(partitions)

    for tp in ORDERS:
        logs.append(*tp, b"x", b"y")
    async with make(**MEMBER, on_revoked=on_revoked) as one:
        seen = []
        while len(seen) < 6:
            seen += (await one.poll(timeout=1)).records
        async with make(**MEMBER) as two:
            await settle(one, two)
            assert len(two.assignment) == 1
            assert revoked == [two.assignment]
            (moved,) = two.assignment
            assert offsets(group)[moved] == 2  # committed before it was given up
            logs.append(*moved, b"z")
            poll = await two.poll(timeout=1)
            assert [r.value for r in poll.records] == [b"z"]
            with pytest.raises(PartitionLost, match=moved.topic):
                await one.commit({moved: 1})
            assert offsets(group)[moved] == 2
        await settle(one)
        assert one.assignment == set(ORDERS)


async def test_a_revoke_waits_for_the_step_and_ends_the_poll(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
):
    for tp in ORDERS:
        logs.append(*tp, b"x", b"y")
    async with make(**MEMBER) as one:
        seen = []
        while len(seen) < 6:
            seen += (await one.poll(timeout=1)).records
        for tp in ORDERS:
            logs.append(*tp, b"z")
        await one.poll(timeout=1)  # unfinished from here on
        two = make(**MEMBER)
        starting = asyncio.create_task(two.start())
        await asyncio.sleep(5)
        asked = one.to_be_revoked
        assert asked
        assert asked <= one.assignment
        await asyncio.sleep(5)
        assert one.to_be_revoked == asked  # the user has not asked for more
        for tp in asked:
            logs.append(*tp, b"never seen here")
            await one.commit({tp: 3})
            assert offsets(group)[tp] == 3
        poll = await one.poll(timeout=30)
        assert not {r.topic_partition for r in poll.records} & asked
        await settle(one, two)
        await starting
        assert asked == two.assignment


async def test_partitions_that_are_lost(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
):
    lost: list[object] = []
    for tp in ORDERS:
        logs.append(*tp, b"x")
    async with make(**MEMBER, on_lost=lost.append) as consumer:
        record = await anext(consumer)
        group.forget(consumer.group_metadata.member_id)
        await asyncio.sleep(1.5)
        assert lost == [set(ORDERS)]
        assert consumer.lost == set(ORDERS)
        poll = await consumer.poll(timeout=1)
        assert poll.lost == set(ORDERS)
        # It has joined again, and reads on after what was committed.
        assert consumer.assignment == set(ORDERS)
        again = poll.records or (await consumer.poll(timeout=1)).records
        assert record in again
        assert (await consumer.poll(timeout=1)).lost == frozenset()
        assert consumer.lost == frozenset()


async def test_a_reader_that_waits_is_alive(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
):
    async with make(**MEMBER) as consumer:
        waiting = asyncio.create_task(anext(consumer))
        await asyncio.sleep(300)
        assert consumer.assignment == set(ORDERS)
        assert group.generation == 1
        logs.append(*ORDERS[0], b"x")
        assert (await waiting).value == b"x"
        await asyncio.sleep(90)  # nobody reads for longer than the poll interval
        assert consumer.assignment == frozenset()
        assert group.left
        logs.append(*ORDERS[0], b"y")
        async with asyncio.timeout(60):
            while (await anext(consumer)).value != b"y":
                pass


async def test_subscribing_to_something_else(
    group: FakeGroup, cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    logs.append("one", 0, b"x")
    async with make(**MEMBER) as consumer:
        consumer.subscribe(re.compile("on.*"))
        assert (await anext(consumer)).topic == "one"
        assert consumer.assignment == {TopicPartition("one", 0)}
        consumer.unsubscribe()
        await asyncio.sleep(5)
        assert consumer.assignment == frozenset()
        consumer.assign([ORDERS[2]])
        logs.append(*ORDERS[2], b"y")
        assert (await anext(consumer)).value == b"y"


@pytest.mark.parametrize("begins_early", [False, True])
async def test_partitions_fixed_while_the_group_still_has_them(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer, *, begins_early: bool
):
    for tp in ORDERS:
        logs.append(*tp, b"x", b"y")
    revoked: list[object] = []
    async with make(**MEMBER, on_revoked=revoked.append) as consumer:
        read = 0
        while not begins_early and read < 6:
            read += len((await consumer.poll(timeout=1)).records)
        await consumer.poll(timeout=0, max_records=1)
        consumer.unsubscribe()
        consumer.assign(ORDERS[:2])
        for tp in ORDERS:
            logs.append(*tp, b"z")
        values: list[bytes | None] = []
        while values.count(b"z") < 2:
            values += [r.value for r in (await consumer.poll(timeout=1)).records]
        assert consumer.assignment == set(ORDERS[:2])
        assert revoked == [set(ORDERS)]
        if not begins_early:
            assert values == [b"z", b"z"]
            # Before the group had them back, not after.
            assert offsets(group) == dict.fromkeys(ORDERS, 2)
        consumer.unsubscribe()
        assert consumer.assignment == frozenset()


async def test_several_close_it_and_all_wait(group: FakeGroup, make: MakeConsumer):
    async def hang(partitions: object) -> None:
        await asyncio.sleep(5)

    consumer = make(**MEMBER, on_revoked=hang)
    await consumer.start()
    first = asyncio.create_task(consumer.close())
    await asyncio.sleep(1)
    await consumer.close(timeout=1)
    assert not first.done()
    await consumer.close()
    assert consumer.statistics().state == "closed"
    assert len(group.left) == 1
    await first


async def test_closing_does_not_wait_for_itself(group: FakeGroup, make: MakeConsumer):
    calls: list[str] = []

    async def close(partitions: object) -> None:
        calls.append(consumer.statistics().state)
        await consumer.close()

    consumer = make(**MEMBER, on_revoked=close)
    await consumer.start()
    consumer.unsubscribe()
    consumer.subscribe("orders")
    with pytest.raises(UsageError, match="in another task"):
        await anext(consumer)
    await settle(consumer)
    begun = asyncio.get_running_loop().time()
    await consumer.close()
    assert asyncio.get_running_loop().time() - begun < 1
    assert calls == ["running", "closing"]
    assert len(group.left) == 2


async def test_a_handler_does_not_close_what_waits_for_it(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
):
    logs.append(*ORDERS[0], b"x")
    async with make(**MEMBER) as consumer:

        async def close(record: object) -> None:
            await consumer.close()

        begun = asyncio.get_running_loop().time()
        with pytest.raises(UsageError, match="in another task"):
            await consumer.run(close)
        assert asyncio.get_running_loop().time() - begun < 5
        assert consumer.statistics().state == "running"
    assert len(group.left) == 1


async def test_who_has_unsubscribed_commits_as_an_outsider(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
):
    logs.append(*ORDERS[0], b"x", b"y")
    async with make(**MEMBER, enable_auto_commit=False) as consumer:
        record = await anext(consumer)
        batch = await anext(consumer.batches())
        consumer.unsubscribe()
        await asyncio.sleep(5)
        assert consumer.assignment == frozenset()
        # Others may have had it, and may have been further.
        for done in (record, batch):
            with pytest.raises(PartitionLost):
                await consumer.commit(done)
        await consumer.commit({ORDERS[0]: 1})  # as Java does: the group has no member
        assert offsets(group) == {ORDERS[0]: 1}
        async with make(**MEMBER):
            with pytest.raises(CommitFailed):
                await consumer.commit({ORDERS[0]: 2})
        assert offsets(group)[ORDERS[0]] == 1


async def test_what_a_callback_raises_in_closing_reaches_the_caller(
    group: FakeGroup, make: MakeConsumer
):
    async def fail(partitions: object) -> None:
        raise ZeroDivisionError("mine")

    consumer = make(**MEMBER, on_revoked=fail)
    await consumer.start()
    with pytest.raises(ZeroDivisionError, match="mine"):
        await consumer.close()
    await consumer.close()
    with pytest.raises(KeyError) as left_by:
        async with make(**MEMBER, on_revoked=fail):
            raise KeyError
    assert left_by.value.__notes__ == ["and in closing: ZeroDivisionError('mine')"]
    assert len(group.left) == 2


async def test_a_callback_that_waits_for_what_is_cancelled_is_not_cancelled(
    group: FakeGroup, make: MakeConsumer
):
    async def wait(partitions: object) -> None:
        task = asyncio.create_task(asyncio.sleep(5))
        task.cancel()
        await task

    consumer = make(**MEMBER, on_revoked=wait)
    await consumer.start()
    consumer.unsubscribe()
    consumer.subscribe("orders")
    with pytest.raises(UsageError, match="waited for something that was cancelled"):
        await anext(consumer)
    await settle(consumer)
    with pytest.raises(UsageError, match="waited for something that was cancelled"):
        await consumer.close()
    assert len(group.left) == 2


async def test_a_callback_in_closing_may_look_things_up(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
):
    logs.append(*ORDERS[0], b"x", b"y")
    found: list[object] = []

    async def look(partitions: object) -> None:
        found.append((await consumer.committed())[ORDERS[0]])
        found.append((await consumer.end_offsets([ORDERS[0]]))[ORDERS[0]])
        found.append((await consumer.lag(ORDERS[0]))[ORDERS[0]])

    consumer = make(**MEMBER, on_revoked=look)
    await consumer.start()
    await anext(consumer)
    await anext(consumer)
    await consumer.close()
    assert found == [OffsetAndMetadata(1, leader_epoch=0), 2, 0]


async def test_what_the_group_refuses_ends_the_reader(
    group: FakeGroup, cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    async def fail(partitions: object) -> None:
        raise ZeroDivisionError("mine")

    async with make(**MEMBER, on_revoked=fail) as consumer:
        consumer.unsubscribe()
        await asyncio.sleep(5)
        with pytest.raises(ZeroDivisionError, match="mine"):
            await consumer.poll(timeout=1)
    refusal = JoinGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    async with make(**MEMBER) as consumer:
        waiting = asyncio.create_task(anext(consumer))
        cluster.on(ApiKey.JOIN_GROUP, refusal)
        consumer.enforce_rebalance()
        with pytest.raises(GroupError):
            await waiting
        assert consumer.statistics().state == "running"  # it may be one bad answer
        for _ in range(50):
            with pytest.raises(GroupError):
                await anext(consumer)
            if consumer.statistics().state == "failed":
                break
        assert consumer.statistics().state == "failed"
    with pytest.raises(GroupError):
        await make(**MEMBER).start()


async def test_a_group_without_a_coordinator(
    group: FakeGroup, cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    cluster.hold(ApiKey.JOIN_GROUP)
    with pytest.raises(RequestTimeout, match="no assignment in 5 s"):
        await make(**MEMBER).start(timeout=5)


async def test_a_slow_commit_does_not_keep_a_revoke(
    group: FakeGroup, cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    for tp in ORDERS:
        logs.append(*tp, b"x", b"y")
    async with make(**MEMBER, default_api_timeout_ms=2000) as one:
        for _ in range(6):
            await one.poll(timeout=0.2)
        for tp in ORDERS:
            logs.append(*tp, b"x", b"y")
        await one.poll(timeout=0.2)
        gate = cluster.hold(ApiKey.OFFSET_COMMIT)
        async with make(**MEMBER) as two:
            waiting = asyncio.create_task(settle(one, two))
            await asyncio.sleep(8)
            cluster.reset(ApiKey.OFFSET_COMMIT)
            cluster.on(ApiKey.OFFSET_COMMIT, group._commit)
            gate.release()
            await waiting
            assert len(two.assignment) == 1


async def test_what_is_finished_while_the_last_commit_is_on_its_way_is_committed(
    group: FakeGroup, cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    logs.append(*ORDERS[0], b"x", b"y", b"z")
    async with make(**MEMBER) as consumer:
        await anext(consumer)
        await anext(consumer)
        gate = cluster.hold(ApiKey.OFFSET_COMMIT)
        consumer.unsubscribe()
        await asyncio.sleep(1)
        assert gate.waiting == 1
        # Whoever waits for the next one has finished the second.
        waiting = asyncio.create_task(anext(consumer))
        await asyncio.sleep(1)
        assert offsets(group) == {}
        cluster.on(ApiKey.OFFSET_COMMIT, group._commit)
        gate.release()
        await asyncio.sleep(5)
        assert consumer.assignment == frozenset()
        assert offsets(group)[ORDERS[0]] == 2
        waiting.cancel()


async def test_who_waits_for_start_is_alive(
    group: FakeGroup, cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    def answer(node: object, header: object, request: object) -> object:
        return loading if is_loading else DEFAULT

    loading, is_loading = not_loaded_yet(), True
    cluster.on(ApiKey.OFFSET_FETCH, answer)
    logs.append(*ORDERS[0], b"x")
    consumer = make(**MEMBER)
    starting = asyncio.create_task(consumer.start(timeout=300))
    await asyncio.sleep(150)  # for longer than the poll interval
    assert consumer.assignment == set(ORDERS)
    assert group.generation == 1
    is_loading = False
    await starting
    assert (await anext(consumer)).value == b"x"
    await consumer.close()


async def test_start_does_not_wait_for_positions_of_what_was_lost(
    group: FakeGroup, cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    cluster.on(ApiKey.OFFSET_FETCH, not_loaded_yet())
    consumer = make(**MEMBER)
    starting = asyncio.create_task(consumer.start(timeout=300))
    await asyncio.sleep(10)
    assert consumer.assignment == set(ORDERS)
    cluster.hold(ApiKey.JOIN_GROUP)
    group.forget(consumer.group_metadata.member_id)
    async with asyncio.timeout(10):
        await starting
    assert consumer.assignment == frozenset()
    await consumer.close()


def not_loaded_yet() -> OffsetFetchResponse:
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    group = OffsetFetchResponseGroup(group_id="g", error_code=code)
    return OffsetFetchResponse(error_code=code, groups=[group])
