"""``Consumer.partitions``: a lane per partition, which ends when that is asked back."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kafkaio._consumer import Batch, Consumer
from kafkaio._consumer.parallel import Lane
from kafkaio.errors import (
    ClosedError,
    DeserializationError,
    InternalError,
    OffsetOutOfRange,
    PartitionLost,
    UsageError,
)
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.serde import DeserializationContext, SerializationContext, Topic
from kafkaio.types import OffsetAndMetadata, TopicPartition
from tests.fakes.broker import FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs
from tests.unit.consumer.group_fakes import FakeGroup
from tests.unit.consumer.in_parallel import (
    MEMBER,
    ORDERS,
    committed,
    eventually,
    fill,
    rest,
)


class Numbers:
    """A serde of numbers."""

    def serialize(self, value: int, context: SerializationContext) -> bytes:
        return b"%d" % value

    def deserialize(self, data: bytes, context: DeserializationContext) -> int:
        return int(data)


BY_HAND = {**MEMBER, "enable_auto_commit": False}


@pytest.fixture
async def group(cluster: FakeCluster, logs: FakeLogs) -> AsyncIterator[FakeGroup]:
    group = FakeGroup(cluster)
    yield group
    group.close()


async def three(consumer: Consumer) -> list[Lane]:
    """The lanes of a member that is alone, in the order of the partitions."""
    lanes = consumer.partitions()
    found = [await anext(lanes) for _ in ORDERS]
    return sorted(found, key=lambda lane: lane.partition)


async def opened(logs: FakeLogs, make: MakeConsumer) -> tuple[Consumer, list[Lane]]:
    """A member that is alone and started, two records for each of its lanes."""
    for tp in ORDERS:
        fill(logs, tp, None, None)
    consumer = make(**MEMBER)
    await consumer.start()
    return consumer, await three(consumer)


class Bodies:
    """A body for each lane, in a task of its own, as the API's page has it."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.done: list[tuple[int, int]] = []
        self.gates: dict[int, asyncio.Event] = {}
        self.ended: list[int] = []
        self.lost: list[int] = []
        self.tasks: set[asyncio.Task[Any]] = set()
        self.task = asyncio.ensure_future(self.dispatch())

    def hold(self, partition: int) -> asyncio.Event:
        return self.gates.setdefault(partition, asyncio.Event())

    async def dispatch(self) -> None:
        async for lane in self.consumer.partitions():
            task = asyncio.ensure_future(self.work(lane))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
            del lane  # or it would be kept alive till the next one

    async def work(self, lane: Lane) -> None:
        async for record in lane:
            if lane.partition in self.gates:
                await self.gates[lane.partition].wait()
            self.done.append((record.partition, record.offset))
        self.ended.append(lane.partition)
        if lane.is_lost:
            self.lost.append(lane.partition)
        elif not self.consumer._core.auto_commits:
            await lane.commit()

    async def __aenter__(self) -> Bodies:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.wait([self.task], timeout=60)
        assert self.task.done()
        await self.task
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=60)
        assert not self.tasks


async def test_each_partition_goes_at_its_own_pace(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    consumer = make(**MEMBER)
    await consumer.start()
    async with Bodies(consumer) as bodies:
        gate = bodies.hold(1)
        for tp in ORDERS:
            fill(logs, tp, *[None] * 50)
        await eventually(lambda: len(bodies.done) == 100)
        assert not [n for n, _ in bodies.done if n == 1]
        for n in (0, 2):
            assert [at for m, at in bodies.done if m == n] == list(range(50))
        assert await consumer.position(ORDERS[1]) == 1
        with pytest.raises(UsageError, match="another task is reading"):
            await anext(consumer)
        gate.set()
        await eventually(lambda: len(bodies.done) == 150)
        await consumer.close()
    assert sorted(bodies.ended) == [0, 1, 2]
    assert not bodies.lost
    assert [committed(group, tp) for tp in ORDERS] == [50] * 3


@pytest.mark.parametrize("options", [MEMBER, BY_HAND])
async def test_a_revoke_waits_for_the_body_and_its_commit(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer, options: dict[str, Any]
) -> None:
    one, two = make(**options), make(**options)
    await one.start()
    async with Bodies(one) as first:
        gates = [first.hold(n) for n in range(3)]
        for tp in ORDERS:
            fill(logs, tp, None, None)
        joining = asyncio.ensure_future(two.start())
        await eventually(lambda: one.to_be_revoked)
        (moved,) = one.to_be_revoked
        for tp in ORDERS:
            if tp != moved:
                gates[tp.partition].set()
                fill(logs, tp, None)
        await eventually(lambda: len(first.done) == 6)  # the others run on
        assert moved in one.assignment
        assert not first.ended
        gates[moved.partition].set()
        await joining
        async with Bodies(two) as second:
            await rest(one, two)
            await eventually(lambda: second.done)
            # What it worked on is done and committed; the other record was not
            # handed out any more.
            assert first.done[-1] == (moved.partition, 0)
            assert first.ended == [moved.partition]
            assert second.done == [(moved.partition, 1)]
            await two.close()
        await one.close()
    assert sorted(first.done + second.done) == sorted({*first.done, *second.done})
    assert not first.lost + second.lost


async def asked_back(
    group: FakeGroup, one: Consumer, two: Consumer, lanes: list[Lane]
) -> tuple[Lane, asyncio.Future[None]]:
    """Let another one join; the lane that is asked to end."""
    joining = asyncio.ensure_future(two.start())
    await eventually(lambda: one.to_be_revoked)
    (moved,) = one.to_be_revoked
    return lanes[moved.partition], joining


async def test_a_lane_that_nothing_was_taken_from_goes_at_once(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    one, two = make(**MEMBER), make(**MEMBER)
    async with one:
        lanes = await three(one)
        await two.start()
        await eventually(lambda: len(two.assignment) == 1)
        moved = lanes[next(iter(two.assignment)).partition]
        assert "over" in repr(moved)
        assert not moved.is_lost
        assert [record async for record in moved] == []
        with pytest.raises(PartitionLost, match="taken from this lane"):
            await moved.commit(0)


async def test_a_truncation_makes_no_lane_of_a_partition_that_is_to_go(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    """The leader said so after the group had asked for the partition."""
    consumer, lanes = await opened(logs, make)
    reader = consumer._core.reader  # type: ignore[union-attr]  # no thread
    gone = lanes[0].topic_partition
    reader.revoke_requested(gone)
    reader.truncated(gone)
    assert reader.divider is not None
    assert reader.divider.may_go(gone)
    assert not reader.divider.may_go(lanes[1].topic_partition)
    await consumer.close()


async def test_a_lane_that_was_not_given_out_yet_goes_at_once(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    one, two = make(**MEMBER), make(**MEMBER)
    async with one:
        lanes = one.partitions()
        first = await anext(lanes)
        await two.start()
        await eventually(lambda: len(two.assignment) == 1)
        left = one.assignment - {first.topic_partition}
        others = [await anext(lanes) for _ in left]
        assert {lane.topic_partition for lane in others} == left
        waiting = asyncio.ensure_future(anext(lanes))
        await asyncio.sleep(1)
        assert not waiting.done()
        waiting.cancel()


async def test_leaving_async_with_is_the_end(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    for tp in ORDERS:
        fill(logs, tp, None, None, None)
    one, two = make(**BY_HAND), make(**MEMBER)
    async with one:
        lanes = await three(one)
        for lane in lanes:
            await lane.__aenter__()
            await anext(lane)
        lane, joining = await asked_back(group, one, two, lanes)
        assert [record.offset async for record in lane] == []  # told to end
        await asyncio.sleep(5)
        assert lane.topic_partition in one.assignment  # ... but it has not yet
        await lane.commit()
        await asyncio.sleep(5)
        assert lane.topic_partition in one.assignment
        await lane.__aexit__(None, None, None)
        await joining
        await rest(one, two)
        assert committed(group, lane.topic_partition) == 1
        record = await anext(two)
        assert record.offset == 1


async def test_a_body_that_broke_out_is_followed_by_another(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    fill(logs, ORDERS[0], None, None, None)
    async with make(**MEMBER) as consumer:
        lanes = consumer.partitions()
        found = [await anext(lanes) for _ in ORDERS]
        (lane,) = [lane for lane in found if lane.partition == 0]
        async with lane:
            async for record in lane:
                if record.offset == 1:
                    break
        again = await anext(lanes)
        assert again.topic_partition == ORDERS[0]
        assert (await anext(again)).offset == 1  # it was not finished
        await again.close()
        await again.close()
        third = await anext(lanes)
        assert (await anext(third)).offset == 1
        with pytest.raises(StopAsyncIteration):
            await anext(again)


async def test_a_body_that_was_cancelled_is_followed_by_another(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    begun = asyncio.Event()

    async def body(lane: Lane) -> None:
        async for _ in lane:
            begun.set()
            await asyncio.Event().wait()

    fill(logs, ORDERS[0], None, None)
    async with make(**MEMBER) as consumer:
        lanes = consumer.partitions()
        found = {lane.partition: lane for lane in [await anext(lanes) for _ in ORDERS]}
        task = asyncio.ensure_future(body(found.pop(0)))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        del task
        gc.collect()
        again = await anext(lanes)
        assert again.partition == 0
        assert (await anext(again)).offset == 0


async def test_a_body_that_never_ends_loses_its_partition(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    for tp in ORDERS:
        fill(logs, tp, None, None)
    one, two = make(**MEMBER), make(**MEMBER)
    async with one:
        lanes = await three(one)
        for lane in lanes:
            await anext(lane)
        moved, joining = await asked_back(group, one, two, lanes)
        await joining
        async with Bodies(two) as second:
            await eventually(lambda: moved.is_lost)
            assert "lost" in repr(moved)
            with pytest.raises(StopAsyncIteration):
                await anext(moved)
            with pytest.raises(PartitionLost):
                await moved.commit()
            # Nothing of it was committed, so the next owner has it all.
            await eventually(lambda: (moved.partition, 0) in second.done)
            await two.close()


async def test_a_partition_that_comes_again_has_a_lane_of_its_own(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    for tp in ORDERS:
        fill(logs, tp, None, None)
    async with make(**MEMBER) as consumer:
        lanes = consumer.partitions()
        old = [await anext(lanes) for _ in ORDERS]
        taken = [await anext(lane) for lane in old]
        batch = Batch(taken[0].topic_partition, [taken[:1]], 1)
        group.forget(*group.members)
        new = [await anext(lanes) for _ in ORDERS]
        assert all(lane.is_lost for lane in old)
        assert {lane.partition for lane in new} == {0, 1, 2}
        assert [(await anext(lane)).offset for lane in new] == [0, 0, 0]
        (same,) = [lane for lane in new if lane.partition == batch.partition]
        for lane, what in ((old[0], None), (old[0], taken[0]), (same, batch)):
            with pytest.raises(PartitionLost):
                await lane.commit(what)


async def test_what_a_lane_commits(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    for tp in ORDERS:
        fill(logs, tp, *[None] * 10)
    async with make(**BY_HAND) as consumer:
        lanes = await three(consumer)
        first = await anext(lanes[0])
        await lanes[0].commit()  # everything that it has handed out
        assert committed(group, ORDERS[0]) == 1
        await anext(lanes[0])
        await lanes[0].commit(first)
        assert committed(group, ORDERS[0]) == 1
        batch = await anext(lanes[1].batches(max_records=4))
        await lanes[1].commit(batch, timeout=5)
        assert committed(group, ORDERS[1]) == 4
        await consumer.commit(await anext(lanes[1].batches(max_records=4)))
        assert committed(group, ORDERS[1]) == 8
        await lanes[2].commit(7)
        assert committed(group, ORDERS[2]) == 7
        await lanes[2].commit(OffsetAndMetadata(3, "note"))
        assert group.offsets[ORDERS[2]].metadata == "note"
        for stranger in (first, batch):
            with pytest.raises(UsageError, match="is not of orders-2"):
                await lanes[2].commit(stranger)
        await anext(lanes[0])
        await anext(lanes[1])
        await consumer.commit(ORDERS[0])
        assert committed(group, ORDERS[0]) == 3
        assert committed(group, ORDERS[1]) == 8
        await consumer.commit()  # everything handed out, by every lane
        assert committed(group, ORDERS[1]) == 9


async def test_a_lane_that_is_over_commits_nothing_of_the_next_one(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    fill(logs, ORDERS[0], *[None] * 10)
    async with make(**BY_HAND) as consumer:
        lanes = await three(consumer)
        old = lanes[0]
        async with old:
            for _ in range(3):
                await anext(old)
        new = await anext(consumer.partitions())
        assert (await anext(new)).offset == 2  # the old one had not finished it
        await anext(new)
        await old.commit()
        assert committed(group, ORDERS[0]) == 3
        await new.commit()
        assert committed(group, ORDERS[0]) == 4


async def test_a_lane_goes_where_the_user_seeks(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    fill(logs, ORDERS[0], *[None] * 10)
    async with make(**BY_HAND) as consumer:
        lane = (await three(consumer))[0]
        found = [(await anext(lane)).offset for _ in range(3)]
        assert await consumer.position(ORDERS[0]) == 3
        consumer.seek(ORDERS[0], 7)
        assert await consumer.position(ORDERS[0]) == 7
        found += [(await anext(lane)).offset for _ in range(2)]
        consumer.seek(ORDERS[0], 1)
        found.append((await anext(lane)).offset)
        assert found == [0, 1, 2, 7, 8, 1]
        await lane.commit()
        assert committed(group, ORDERS[0]) == 2


async def test_a_lane_takes_the_deserializer_of_a_new_subscription(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    fill(logs, ORDERS[0], *[None] * 10)
    async with make(**MEMBER) as consumer:
        lane = (await three(consumer))[0]
        assert [(await anext(lane)).value for _ in range(2)] == [b"0", b"1"]
        consumer.subscribe(Topic("orders", value=Numbers()))
        assert [(await anext(lane)).value for _ in range(2)] == [2, 3]
        consumer.subscribe("orders")
        assert (await anext(lane)).value == b"4"


async def test_a_pause_takes_effect_between_two_records_of_a_chunk(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    fill(logs, ORDERS[0], *[None] * 10)
    async with make(**MEMBER) as consumer:
        lane = (await three(consumer))[0]
        assert (await anext(lane)).offset == 0
        assert (await anext(lane)).offset == 1
        consumer.pause(ORDERS[0])
        waiting = asyncio.ensure_future(anext(lane))
        await asyncio.sleep(1)  # the clock jumps
        assert not waiting.done()
        consumer.resume(ORDERS[0])
        assert (await waiting).offset == 2


async def test_one_by_one_and_in_batches_by_turns(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    fill(logs, ORDERS[0], *[None] * 10)
    async with make(**BY_HAND) as consumer:
        lane = (await three(consumer))[0]
        batches = lane.batches(max_records=3)
        found = [(await anext(lane)).offset for _ in range(2)]
        found += [record.offset for record in await anext(batches)]
        found += [(await anext(lane)).offset for _ in range(2)]
        found += [record.offset for record in await anext(batches)]
        assert found == list(range(10))
        await lane.commit()
        assert committed(group, ORDERS[0]) == 10


async def test_what_a_lane_has_read_is_known_within_a_chunk(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    for tp in ORDERS:
        fill(logs, tp, *[None] * 10)
    async with make(**BY_HAND) as consumer:
        lanes = await three(consumer)
        for lane in lanes:
            for _ in range(lane.partition + 2):
                last = await anext(lane)
        places = [await consumer.position(tp) for tp in ORDERS]
        assert places == [2, 3, 4]
        statistics = consumer.statistics().partitions
        assert [statistics[tp].position for tp in ORDERS] == places
        await consumer.commit(last)
        assert [committed(group, tp) for tp in ORDERS] == [None, None, 4]
        await consumer.commit()  # what was handed out of every lane
        assert [committed(group, tp) for tp in ORDERS] == places


async def test_a_lane_gives_the_loop_a_turn(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    fill(logs, ORDERS[0], *[None] * 10_000)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with make(**MEMBER) as consumer:
        lane = (await three(consumer))[0]
        counting = asyncio.ensure_future(count())
        async for record in lane:
            if record.offset % 1_000 == 0:
                lane._track.time_slice.end = 0.0  # as if a millisecond had passed
            if record.offset == 9_999:
                break
        counting.cancel()
    # A turn is due with every 256th record at the latest.
    assert turns >= 10


async def test_a_lane_that_is_dropped_in_a_chunk_is_collected(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    fill(logs, ORDERS[0], *[None] * 10)
    async with make(**MEMBER) as consumer:
        lanes = await three(consumer)
        for _ in range(3):
            await anext(lanes[0])
        del lanes[0]
        again = await anext(consumer.partitions())
        assert again.topic_partition == ORDERS[0]
        assert (await anext(again)).offset == 2  # the last one was not finished


async def test_batches_of_a_lane(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    for _ in range(3):
        fill(logs, ORDERS[0], *[None] * 4)
    fill(logs, ORDERS[1], None)
    async with make(**MEMBER) as consumer:
        lanes = await three(consumer)
        many = lanes[0].batches(max_records=10, max_wait=5)
        batch = await anext(many)  # it is full: no need to wait
        assert (len(batch), batch.first_offset, batch.last_offset) == (10, 0, 9)
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert len(await anext(many)) == 2
        assert loop.time() - began == pytest.approx(5, abs=0.5)
        assert len(await anext(lanes[1].batches())) == 1
        with pytest.raises(UsageError, match="at least 1"):
            lanes[1].batches(max_records=-1)
        waiting = asyncio.ensure_future(anext(lanes[2]))
        await asyncio.sleep(0.1)
        with pytest.raises(UsageError, match="another task reads this lane"):
            await anext(lanes[2])
        waiting.cancel()


async def test_a_record_that_cannot_be_read_stops_its_lane_alone(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    def decode(value: bytes) -> int:
        if value == b"2":
            raise ValueError("poison")
        return int(value)

    for tp in ORDERS[:2]:
        fill(logs, tp, *[None] * 3)
    async with make(**MEMBER, value_deserializer=decode) as consumer:
        lanes = await three(consumer)
        for lane in lanes[:2]:
            assert [(await anext(lane)).value for _ in range(2)] == [0, 1]
        with pytest.raises(DeserializationError, match="poison"):
            await anext(lanes[0])
        consumer.seek(ORDERS[0], 3)
        fill(logs, ORDERS[0], None)
        assert (await anext(lanes[0])).offset == 3
        consumer.seek(ORDERS[1], 0)
        batches = lanes[1].batches()
        assert [r.value for r in await anext(batches)] == [0, 1]
        with pytest.raises(DeserializationError, match="poison"):
            await anext(batches)


async def test_errors_of_one_partition_and_of_the_consumer(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    async def crash() -> None:
        raise RuntimeError("bug")

    logs.fail("orders", 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    fill(logs, ORDERS[1], None)
    async with make(**MEMBER) as consumer:
        lanes = await three(consumer)
        with pytest.raises(Exception, match="TOPIC_AUTHORIZATION_FAILED"):
            await anext(lanes[0])
        assert (await anext(lanes[1])).offset == 0
        more = asyncio.ensure_future(anext(consumer.partitions()))
        waiting = asyncio.ensure_future(anext(lanes[1]))
        await asyncio.sleep(0.1)
        consumer._core.reader.fail(OSError("callback"))
        await asyncio.wait([more, waiting], return_when=asyncio.FIRST_COMPLETED)
        (told,) = [task for task in (more, waiting) if task.done()]
        with pytest.raises(OSError, match="callback"):
            await told
        (left,) = [task for task in (more, waiting) if task is not told]
        consumer._core.spawn(crash, "crash")
        with pytest.raises(InternalError, match="bug"):
            await left
        with pytest.raises(InternalError, match="bug"):
            await anext(consumer.partitions())


async def test_a_stranded_partition_raises_in_its_lane(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    group.offsets |= dict.fromkeys(ORDERS, OffsetAndMetadata(0))
    fill(logs, ORDERS[1], None)
    async with make(**{**MEMBER, "auto_offset_reset": "none"}) as consumer:
        lanes = await three(consumer)
        waiting = asyncio.ensure_future(anext(lanes[0]))
        consumer.seek(ORDERS[0], 99)
        with pytest.raises(OffsetOutOfRange, match="orders-0"):
            await waiting
        assert (await anext(lanes[1])).offset == 0


async def test_closing_waits_for_bodies_and_ends_the_iteration(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    for tp in ORDERS:
        fill(logs, tp, None, None)
    consumer = make(**MEMBER)
    await consumer.start()
    async with Bodies(consumer) as bodies:
        gates = [bodies.hold(n) for n in range(3)]
        await asyncio.sleep(1)
        closing = asyncio.ensure_future(consumer.close(timeout=20))
        await asyncio.sleep(5)
        assert not closing.done()
        for gate in gates:
            gate.set()
        await closing
    assert sorted(bodies.done) == [(0, 0), (1, 0), (2, 0)]
    assert sorted(bodies.ended) == [0, 1, 2]
    assert [committed(group, tp) for tp in ORDERS] == [1, 1, 1]
    with pytest.raises(StopAsyncIteration):
        await anext(consumer.partitions())


async def test_closing_has_its_bound_and_waits_for_nobody_who_has_left(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    for tp in ORDERS:
        fill(logs, tp, None, None)
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with make(**MEMBER) as consumer:
        lanes = await three(consumer)
        async for _ in lanes[0]:
            break  # by this task, which closes
        task = asyncio.ensure_future(anext(lanes[1]))
        await task  # by one that has ended
    assert loop.time() - began < 1
    assert [committed(group, tp) for tp in ORDERS] == [0, 0, 0]

    consumer = make(**MEMBER)
    await consumer.start()
    lanes = await three(consumer)
    async with lanes[1] as lane:
        await anext(lane)
        began = loop.time()
        await asyncio.ensure_future(consumer.close(timeout=10))
        assert loop.time() - began == pytest.approx(8, abs=1)
        assert lane.is_lost
        with pytest.raises(PartitionLost):
            await lane.commit()


async def test_who_closes_has_left_the_bodies_that_it_is_in(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    loop = asyncio.get_running_loop()
    consumer, lanes = await opened(logs, make)
    async with lanes[0] as mine, lanes[1]:
        await anext(mine)
        await anext(mine)
        began = loop.time()
        await consumer.close()
        assert loop.time() - began < 1
        with pytest.raises(StopAsyncIteration):
            await anext(mine)
        assert not mine.is_lost
        with pytest.raises(ClosedError):
            await mine.commit()
    assert committed(group, ORDERS[0]) == 1  # the second was not finished
    assert len(group.left) == 1


async def test_who_closes_waits_for_other_tasks_in_its_bodies(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    loop = asyncio.get_running_loop()
    consumer, lanes = await opened(logs, make)

    async def read(lane: Lane) -> None:
        async for _ in lane:
            await asyncio.sleep(3)

    async def stay(lane: Lane, seconds: float) -> None:
        async with lane:
            await anext(lane)
            await asyncio.sleep(seconds)
            await consumer.close()

    async with lanes[0] as shared:
        reading = asyncio.ensure_future(read(shared))
        staying = asyncio.ensure_future(stay(lanes[1], 2))
        await asyncio.sleep(1)
        began = loop.time()
        await consumer.close()
        assert loop.time() - began == pytest.approx(2, abs=0.1)
        await asyncio.gather(reading, staying)
        assert loop.time() - began == pytest.approx(2, abs=0.1)
    assert committed(group, ORDERS[0]) == 1


async def test_hung_bodies_cost_the_place_in_the_group(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    fill(logs, ORDERS[0], None)
    async with make(**MEMBER) as consumer:
        lanes = await three(consumer)
        await anext(lanes[0])
        await asyncio.sleep(50)
        assert not group.left
        await asyncio.sleep(40)
        assert len(group.left) == 1


async def test_a_body_that_waits_is_alive(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    fill(logs, ORDERS[0], None)
    consumer = make(**MEMBER)
    await consumer.start()
    async with Bodies(consumer) as bodies:
        await eventually(lambda: bodies.done)
        await asyncio.sleep(200)
        assert not group.left
        await consumer.close()


async def test_slow_bodies_do_not_keep_the_buffer_from_others(
    logs: FakeLogs, make: MakeConsumer
) -> None:
    for tp in ORDERS[:2]:
        for _ in range(4):
            logs.append(*tp, bytes(4_000))
    seen: list[bytes] = []

    async def body(lane: Lane) -> None:
        async for record in lane:
            if record.partition < 2:
                await asyncio.sleep(1_000)
            seen.append(record.value or b"")

    limits = {"fetch_buffer_bytes": 6_000, "max_partition_fetch_bytes": 3_000}
    options = {"auto_offset_reset": "earliest", **limits}
    async with make(assign=ORDERS, **options) as consumer:

        async def read() -> None:
            async with asyncio.TaskGroup() as group:
                async for lane in consumer.partitions():
                    group.create_task(body(lane))

        task = asyncio.ensure_future(read())
        await asyncio.sleep(10)
        for n in range(5):
            logs.append(*ORDERS[2], b"%d" % n)
            async with asyncio.timeout(2):
                await eventually(lambda: len(seen) > n)  # noqa: B023
        # A little of each partition, and no more of those that stand still.
        assert consumer._core.reader.buffers.size < 20_000
        task.cancel()
    assert seen == [b"0", b"1", b"2", b"3", b"4"]


async def test_without_a_group(logs: FakeLogs, make: MakeConsumer) -> None:
    for tp in ORDERS:
        fill(logs, tp, None)
    async with make(assign=ORDERS, auto_offset_reset="earliest") as consumer:
        lanes = await three(consumer)
        assert [(await anext(lane)).offset for lane in lanes] == [0, 0, 0]
        waiting = asyncio.ensure_future(anext(lanes[2]))
        await asyncio.sleep(0.1)
        consumer.assign([TopicPartition("orders", 1)])
        with pytest.raises(StopAsyncIteration):
            await waiting
        assert lanes[0].is_lost
        assert not lanes[1].is_lost


async def test_it_takes_a_consumer_that_runs(make: MakeConsumer) -> None:
    consumer = make(topics="orders")
    with pytest.raises(ClosedError, match="not started"):
        await anext(consumer.partitions())
    async with consumer:
        waiting = asyncio.ensure_future(anext(consumer))
        await asyncio.sleep(0.1)
        with pytest.raises(UsageError, match="another task"):
            await anext(consumer.partitions())
        waiting.cancel()
