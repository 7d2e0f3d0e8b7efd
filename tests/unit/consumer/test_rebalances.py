"""What the user hears of a rebalance, and how partitions are kept through one."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from kafkaio import Assigned, Lost, Revoked, RevokeRequested
from kafkaio._consumer import Consumer, Rebalance, Rebalances
from kafkaio.errors import (
    ClosedError,
    InternalError,
    PartitionLost,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.types import TopicPartition
from tests.fakes.broker import HANG, FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs
from tests.unit.consumer.group_fakes import FakeGroup

ORDERS = [TopicPartition("orders", n) for n in range(3)]
MEMBER = {
    "topics": "orders",
    "group_id": "g",
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 1000,
    "session_timeout_ms": 10_000,
    "max_poll_interval_ms": 60_000,
}
EAGER = {"partition_assignment_strategy": ("range",)}
PROTOCOLS = pytest.mark.parametrize("protocol", [{}, EAGER], ids=["coop", "eager"])


@pytest.fixture
async def group(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
) -> AsyncIterator[FakeGroup]:
    group = FakeGroup(cluster)
    for tp in ORDERS:
        logs.append(*tp, b"x", b"y")
    yield group
    group.close()


async def until(condition: Callable[[], object], limit: float = 1000.0) -> None:
    async with asyncio.timeout(limit):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def drink(consumer: Consumer) -> None:
    """Take all six records, and ask for more so that they are finished."""
    seen = 0
    while seen < 6:
        seen += len((await consumer.poll(timeout=1)).records)
    await consumer.poll(timeout=0)


async def asked(consumer: Consumer) -> frozenset[TopicPartition]:
    """Poll until the group asks for something back."""
    async with asyncio.timeout(100):
        while not (poll := await consumer.poll(timeout=60)).to_be_revoked:
            pass
    return poll.to_be_revoked


async def begun(events: Rebalances) -> Rebalances:
    """Begin to listen in this task, before there is anything to hear."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await anext(events)
    return events


class Listening:
    """Notes the events of a consumer."""

    def __init__(self, consumer: Consumer) -> None:
        self.events: list[Rebalance] = []
        self._task = asyncio.create_task(self._listen(consumer))

    async def _listen(self, consumer: Consumer) -> None:
        async for event in consumer.rebalances():
            self.events.append(event)

    async def ended(self) -> list[Rebalance]:
        async with asyncio.timeout(100):
            await self._task
        return self.events


# ---- poll and delay


@PROTOCOLS
async def test_a_delay_lasts_until_the_poll_after_the_next(
    group: FakeGroup, make: MakeConsumer, protocol: dict[str, object]
) -> None:
    async with make(**MEMBER, **protocol, enable_auto_commit=False) as one:
        await drink(one)
        starting = asyncio.create_task(make(**MEMBER, **protocol).start())
        going = await asked(one)
        assert one.to_be_revoked == going
        for _ in range(3):
            assert one.delay_revoke(going)
            assert one.to_be_revoked == frozenset()  # not with the next poll
            poll = await one.poll(timeout=2)
            assert poll.to_be_revoked == going
            assert going <= one.assignment
            await one.commit(dict.fromkeys(going, 2))
        assert one.statistics().to_be_revoked == len(going)
        await one.poll(timeout=2)
        await until(lambda: not one.statistics().to_be_revoked)
        assert not one.to_be_revoked
        if protocol:
            await asked(one) if one.to_be_revoked else None
        await starting
        assert {group.offsets[tp].offset for tp in going} == {2}


async def test_the_poll_returns_early_and_once(
    group: FakeGroup, make: MakeConsumer
) -> None:
    async with make(**MEMBER) as one:
        await drink(one)
        starting = asyncio.create_task(make(**MEMBER).start())
        began = asyncio.get_running_loop().time()
        going = await asked(one)
        assert asyncio.get_running_loop().time() < began + 10
        assert one.delay_revoke(going)
        began = asyncio.get_running_loop().time()
        await one.poll(timeout=5)  # what is delayed is no news
        assert asyncio.get_running_loop().time() >= began + 5
        await one.poll(timeout=1)
        await starting


async def test_what_was_asked_between_two_polls_is_told_before_it_goes(
    group: FakeGroup, make: MakeConsumer
) -> None:
    async with make(**MEMBER) as one:
        await drink(one)
        starting = asyncio.create_task(make(**MEMBER).start())
        await until(lambda: one.to_be_revoked)
        poll = await one.poll(timeout=60)
        assert poll.to_be_revoked
        assert one.delay_revoke(poll.to_be_revoked)
        assert (await one.poll(timeout=1)).to_be_revoked == poll.to_be_revoked
        await one.poll(timeout=1)
        await starting


async def test_records_of_a_delayed_partition_are_not_finished(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    async with make(**MEMBER, auto_commit_interval_ms=1000) as one:
        await drink(one)
        for tp in ORDERS:
            logs.append(*tp, b"z")
        await asyncio.sleep(1)
        assert len((await one.poll(timeout=1)).records) == 3
        starting = asyncio.create_task(make(**MEMBER).start())
        await until(lambda: one.statistics().to_be_revoked)
        (going,) = one.to_be_revoked
        assert one.delay_revoke([going])
        assert (await one.poll(timeout=3)).to_be_revoked == {going}
        assert group.offsets[going].offset == 2
        await one.poll(timeout=1)
        await starting
        assert group.offsets[going].offset == 3


@PROTOCOLS
async def test_past_the_deadline_it_is_lost(
    group: FakeGroup, make: MakeConsumer, protocol: dict[str, object]
) -> None:
    async with make(**MEMBER, **protocol) as one:
        listening = Listening(one)
        await drink(one)
        starting = asyncio.create_task(make(**MEMBER, **protocol).start())
        going = await asked(one)
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(0.1)
        held = next(e for e in listening.events if isinstance(e, RevokeRequested))
        while one.delay_revoke(going):
            poll = await one.poll(timeout=1)
            assert asyncio.get_running_loop().time() < began + 59
        assert poll.lost == going == one.lost
        assert not poll.to_be_revoked
        # A margin of two heartbeat intervals is left.
        assert asyncio.get_running_loop().time() == pytest.approx(began + 58, abs=1.5)
        assert held.deadline == pytest.approx(began + 58, abs=1.5)
        assert not one.delay_revoke(going)
        with pytest.raises(PartitionLost):
            await one.commit(dict.fromkeys(going - one.assignment or going, 1))
        with pytest.raises(PartitionLost):
            await held.hold().__aenter__()
        assert not (await one.poll(timeout=1)).lost
        assert one.lost == frozenset()
        assert Lost(going) in listening.events
        assert group.expired == []
        while not starting.done():
            await one.poll(timeout=1)


@PROTOCOLS
async def test_what_is_finished_is_committed_before_it_is_lost(
    group: FakeGroup, make: MakeConsumer, protocol: dict[str, object]
) -> None:
    options = MEMBER | protocol | {"auto_commit_interval_ms": 3_600_000}
    async with make(**options) as one:
        await drink(one)
        waiting = one.wait_for_revoke()
        starting = asyncio.create_task(make(**options).start())
        async with waiting as event:
            await asyncio.sleep(event.deadline - asyncio.get_running_loop().time() - 3)
            assert not event.partitions & group.offsets.keys()
            while not one.lost:
                await one.poll(timeout=1)
            assert one.lost == event.partitions
            assert {group.offsets[tp].offset for tp in event.partitions} == {2}
        while not starting.done():
            await one.poll(timeout=1)


async def test_a_commit_of_the_old_assignment_does_not_touch_the_new(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    async with make(**MEMBER, enable_auto_commit=False) as one:
        old = await anext(one)
        tp = old.topic_partition
        await one.commit(old)
        later = await anext(one)
        group.forget(one.group_metadata.member_id)
        await until(lambda: one.lost)
        await until(lambda: one.assignment)
        # It is assigned again, and the user cannot know that yet.
        for what in ({tp: 2}, later):
            with pytest.raises(PartitionLost):
                await one.commit(what)
        again = await anext(one)
        while again.topic_partition != later.topic_partition:
            again = await anext(one)
        assert again == later
        await one.commit(again)
        await one.commit({tp: 1})
        logs.append(*tp, b"z")  # this partition may have been read last
        beyond = await anext(one)
        if beyond.topic_partition == tp:
            await one.commit(beyond)


async def test_a_record_from_before_a_new_assignment_is_refused(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    async with make(**MEMBER, enable_auto_commit=False) as one:
        records = [await anext(one) for _ in range(6)]
        group.forget(one.group_metadata.member_id)
        await until(lambda: one.lost)
        await until(lambda: one.assignment)
        poll = await one.poll(timeout=1, max_records=1)
        assert poll.lost
        (again,) = poll.records or (await one.poll(timeout=1, max_records=1)).records
        tp = again.topic_partition
        first, second = (r for r in records if r.topic_partition == tp)
        assert again == first
        await one.commit(first)
        with pytest.raises(PartitionLost, match="since the record was read"):
            await one.commit(second)
        one.seek_to_beginning(tp)
        await one.commit(first)  # a seek makes no other assignment


async def test_a_delay_of_what_nobody_asked_for(
    group: FakeGroup, make: MakeConsumer
) -> None:
    async with make(**MEMBER) as one:
        assert one.delay_revoke(ORDERS)
        assert not one.delay_revoke([TopicPartition("orders", 9)])
        await drink(one)
        assert sum(group.offsets[tp].offset for tp in group.offsets) <= 6
        starting = asyncio.create_task(make(**MEMBER).start())
        going = await asked(one)
        await one.poll(timeout=0.5)
        assert not one.delay_revoke(going)  # it is going, or gone
        await starting
    alone = make(assign=ORDERS)
    assert alone.delay_revoke([])
    assert not alone.delay_revoke(ORDERS)
    assert alone.to_be_revoked == frozenset() == alone.lost


# ---- events and holds


@PROTOCOLS
async def test_the_events_of_a_hand_over(
    group: FakeGroup, make: MakeConsumer, protocol: dict[str, object]
) -> None:
    one = make(**MEMBER, **protocol)
    listening = Listening(one)
    await asyncio.sleep(0)
    async with one:
        await drink(one)
        starting = asyncio.create_task(make(**MEMBER, **protocol).start())
        while len(one.assignment) != 2:
            await one.poll(timeout=1)
        await starting
    events = await listening.ended()
    assert events[0] == Assigned(frozenset(ORDERS))
    requested = events[1]
    assert isinstance(requested, RevokeRequested)
    assert events[2] == Revoked(requested.partitions)
    if protocol:
        assert isinstance(events[3], Assigned)
    match events[-2:]:
        case [RevokeRequested(partitions, deadline), Revoked(gone)]:
            assert partitions == gone == one.assignment or len(gone) == 2
            assert deadline > 0
        case other:
            raise AssertionError(other)
    with pytest.raises(StopAsyncIteration):
        await anext(one.rebalances())


@PROTOCOLS
async def test_a_hold_keeps_the_partitions_and_the_rest_runs_on(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer, protocol: dict[str, object]
) -> None:
    async with make(**MEMBER, **protocol) as one:
        await drink(one)
        starting = asyncio.create_task(make(**MEMBER, **protocol).start())
        waiting = one.wait_for_revoke()
        entering = asyncio.create_task(waiting.__aenter__())
        going = await asked(one)
        assert (await entering).partitions == going
        try:
            for tp in ORDERS:
                logs.append(*tp, b"z")
            seen = []
            for _ in range(20):
                seen += (await one.poll(timeout=1)).records
            assert {r.topic_partition for r in seen} == set(ORDERS) - going
            assert going <= one.assignment
            await one.commit(dict.fromkeys(going, 2))
        finally:
            await waiting.__aexit__(None, None, None)
        await until(lambda: not one.statistics().to_be_revoked)
        while not starting.done():
            await one.poll(timeout=1)


@PROTOCOLS
async def test_what_is_held_has_a_position_after_a_reset(
    group: FakeGroup, make: MakeConsumer, protocol: dict[str, object]
) -> None:
    async with make(**MEMBER, **protocol) as one:
        await drink(one)
        starting = asyncio.create_task(make(**MEMBER, **protocol).start())
        async with one.wait_for_revoke() as event:
            held = event.partitions
            one.seek_to_beginning(*held)
            for tp in held:
                assert await one.position(tp, timeout=5) == 0
            one.seek_to_end(*held)
            for tp in held:
                assert await one.position(tp, timeout=5) == 2
            one.seek_to_beginning(*held)
            for tp in held:
                await one.position(tp, timeout=5)
            assert not (await one.poll(timeout=1)).records
        while one.statistics().to_be_revoked or not starting.done():
            await one.poll(timeout=1)
        # What a seek sets is committed, as without a rebalance.
        assert {group.offsets[tp].offset for tp in held} == {0}


async def test_a_hold_ends_with_its_block_however_that_ends(
    group: FakeGroup, make: MakeConsumer
) -> None:
    async with make(**MEMBER) as one:
        await drink(one)
        reading = asyncio.create_task(anext(one))
        starting = asyncio.create_task(make(**MEMBER).start())
        events = list[RevokeRequested]()

        async def fail() -> None:
            async with one.wait_for_revoke() as event:
                events.append(event)
                async with event.hold():  # both count
                    await asyncio.sleep(5)
                assert one.statistics().to_be_revoked
                await asyncio.sleep(5)
                assert one.statistics().to_be_revoked
                raise ZeroDivisionError

        async def keep() -> None:
            async with hold:
                await asyncio.sleep(1000)

        with pytest.raises(ZeroDivisionError):
            await fail()
        await until(lambda: len(one.assignment) == 2)
        hold = events[0].hold()
        with pytest.raises(PartitionLost):
            await keep()
        assert "over" in repr(hold)
        await starting
        # And by a cancellation.
        closing = asyncio.create_task(make(**MEMBER).start())
        async with one.wait_for_revoke() as event:
            hold = event.hold()
            assert "not taken" in repr(hold)
            keeping = asyncio.create_task(keep())
            await asyncio.sleep(1)
        await asyncio.sleep(9)
        assert "orders" in repr(hold)
        assert event.partitions <= one.assignment
        keeping.cancel()
        await until(lambda: not event.partitions & one.assignment)
        with pytest.raises(UsageError, match="once"):
            hold.take()
        await closing
        reading.cancel()


async def test_a_listener_is_not_passed_over(
    group: FakeGroup, make: MakeConsumer
) -> None:
    """Until it asks for the next event its partitions stay, held or not."""
    async with make(**MEMBER) as one:
        reading = asyncio.create_task(anext(one))  # a reader that waits all the time
        async with asyncio.timeout(5):
            await reading
            for _ in range(5):
                await anext(one)
        reading = asyncio.create_task(anext(one))
        events = await begun(one.rebalances())
        quick = Listening(one)
        starting = asyncio.create_task(make(**MEMBER).start())
        await until(lambda: quick.events)
        await asyncio.sleep(10)
        assert one.statistics().to_be_revoked  # it has not even looked
        event = await anext(events)
        assert isinstance(event, RevokeRequested)
        await asyncio.sleep(10)
        assert one.statistics().to_be_revoked
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await anext(events)
        await until(lambda: not one.statistics().to_be_revoked)
        assert await anext(events) == Revoked(event.partitions)
        await starting
        reading.cancel()


async def listen(events: Rebalances, how: str) -> None:
    async for event in events:
        if how == "raises":
            raise RuntimeError
        if how == "returns" and isinstance(event, RevokeRequested):
            return


@pytest.mark.parametrize("how", ["is cancelled", "raises", "returns"])
async def test_a_listener_whose_task_has_ended_keeps_nothing(
    group: FakeGroup, make: MakeConsumer, how: str
) -> None:
    one = make(**MEMBER)
    events = one.rebalances()
    await one.start()
    listening = asyncio.create_task(listen(events, how))
    reading = asyncio.create_task(anext(one))
    await reading
    if how == "is cancelled":
        await asyncio.sleep(1)
        listening.cancel()
    loop = asyncio.get_running_loop()
    two = make(**MEMBER)
    starting = asyncio.create_task(two.start())
    await until(lambda: one.to_be_revoked)
    began, reading = loop.time(), asyncio.create_task(drink(one))
    await until(lambda: not one.statistics().to_be_revoked)
    assert loop.time() < began + 2  # the deadline is a minute away
    assert listening.done()
    await starting
    began = loop.time()
    await one.close()
    assert loop.time() < began + 1
    reading.cancel()
    assert events is not None  # somebody refers to it all the time


async def test_what_nobody_has_iterated_over_keeps_nothing(
    group: FakeGroup, make: MakeConsumer
) -> None:
    one = make(**MEMBER)
    events = one.rebalances()
    await one.start()
    two = make(**MEMBER)
    await two.start()
    await until(lambda: one.assignment < frozenset(ORDERS))
    loop = asyncio.get_running_loop()
    assert loop.time() < 10  # the deadline is a minute away
    assert await anext(events) == Assigned(frozenset(ORDERS))
    request = await anext(events)
    assert isinstance(request, RevokeRequested)
    with pytest.raises(PartitionLost):
        request.hold().take()
    await one.close()
    assert loop.time() < 11


async def test_whoever_goes_on_where_a_listener_stopped_keeps_partitions(
    group: FakeGroup, make: MakeConsumer
) -> None:
    async with make(**MEMBER) as one:
        events = one.rebalances()

        async def stop() -> None:
            await begun(events)
            await until(lambda: one.statistics().to_be_revoked)

        first = asyncio.create_task(stop())
        starting = asyncio.create_task(make(**MEMBER).start())
        await first
        request = await anext(events)  # this task listens from now on
        assert isinstance(request, RevokeRequested)
        await asyncio.sleep(5)
        assert one.statistics().to_be_revoked
        await events.aclose()
        await starting


async def test_a_step_with_a_task_of_its_own_leaves_time_to_hold(
    group: FakeGroup, make: MakeConsumer
) -> None:
    async with make(**MEMBER) as one:
        events = one.rebalances()
        starting = asyncio.create_task(make(**MEMBER).start())
        request = await asyncio.create_task(_next(events))
        assert isinstance(request, RevokeRequested)
        async with request.hold():
            await asyncio.sleep(5)
            assert one.statistics().to_be_revoked
        await starting


async def _next(events: Rebalances) -> Rebalance:
    return await anext(events)


async def test_closing_does_not_wait_for_listeners_without_a_task(
    group: FakeGroup, make: MakeConsumer
) -> None:
    one = make(**MEMBER)
    events, unused = one.rebalances(), one.rebalances()
    await one.start()

    async def service() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(listen(events, "is cancelled"))
            tasks.create_task(drink(one))
            await asyncio.sleep(100)

    running = asyncio.create_task(service())
    await asyncio.sleep(1)
    running.cancel()
    await asyncio.wait([running])
    began = asyncio.get_running_loop().time()
    await one.close()
    assert asyncio.get_running_loop().time() == began
    assert len(group.left) == 1
    del unused


@pytest.mark.parametrize("how", ["aclose", "forget"])
async def test_who_stops_listening_keeps_nothing(
    group: FakeGroup, make: MakeConsumer, how: str
) -> None:
    async with make(**MEMBER) as one:
        events = await begun(one.rebalances())
        starting = asyncio.create_task(make(**MEMBER).start())
        await until(lambda: one.to_be_revoked)
        await asyncio.sleep(5)
        assert one.to_be_revoked
        if how == "aclose":
            await events.aclose()
            with pytest.raises(StopAsyncIteration):
                await anext(events)
        else:
            del events
            gc.collect()
        await until(lambda: not one.statistics().to_be_revoked)
        await starting


async def test_events_that_wait_become_one_with_their_like(
    group: FakeGroup, make: MakeConsumer
) -> None:
    one = make(**MEMBER)
    events = await begun(one.rebalances())
    async with one:
        group.forget(one.group_metadata.member_id)
        await until(lambda: one.lost)
        await until(lambda: one.assignment)
        one.unsubscribe()
        await asyncio.sleep(5)
        # The request waits to be looked at.
        assert one.statistics().to_be_revoked == len(ORDERS)
        assert not one.assignment
        everything = frozenset(ORDERS)
        assert await anext(events) == Assigned(everything)
        assert await anext(events) == Lost(everything)
        assert await anext(events) == Assigned(everything)
        assert isinstance(await anext(events), RevokeRequested)
        assert await anext(events) == Revoked(everything)
        host = one._core.assigned
        for tp in ORDERS:
            host.feed.assigned(frozenset({tp}))
        assert await anext(events) == Assigned(everything)
        waiting = asyncio.create_task(anext(events))
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="another task"):
            await anext(events)
    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_waiting_for_requests_misses_none(
    group: FakeGroup, make: MakeConsumer
) -> None:
    async with make(**MEMBER) as one:
        await drink(one)
        starting = asyncio.create_task(make(**MEMBER).start())
        await until(lambda: one.to_be_revoked)
        async with one.wait_for_revoke() as event:  # requested before the call
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1), one.wait_for_revoke():
                    pytest.fail("it was returned twice")
            for _ in range(5):
                await one.poll(timeout=1)
            assert event.partitions <= one.assignment
        while not starting.done():
            await one.poll(timeout=1)
        held = list[RevokeRequested]()

        async def wait() -> None:
            async with one.wait_for_revoke() as event:
                held.append(event)

        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        await one.close()
        await waiting
        assert held[0].partitions  # of closing
        with pytest.raises(ClosedError):
            await wait()
    with pytest.raises(UsageError, match="group_id"):
        await make(topics="orders").wait_for_revoke().__aenter__()
    with pytest.raises(UsageError, match="came from a consumer"):
        RevokeRequested(frozenset(ORDERS), 1.0).hold()


async def test_a_failure_reaches_the_listeners(
    group: FakeGroup, make: MakeConsumer
) -> None:
    async with make(**MEMBER) as one:
        events = one.rebalances()
        request = one.wait_for_revoke()
        waiting = asyncio.create_task(request.__aenter__())
        await asyncio.sleep(0)
        one._core.life.crashed(ZeroDivisionError("mine"))
        for call in (waiting, anext(events)):
            with pytest.raises(InternalError, match="mine"):
                await call


# ---- the end


async def test_closing_waits_for_the_holds_and_they_may_commit(
    group: FakeGroup, make: MakeConsumer
) -> None:
    one = make(**MEMBER, enable_auto_commit=False)
    await one.start()

    async def listen() -> None:
        async for event in one.rebalances():
            if isinstance(event, RevokeRequested):
                async with event.hold():
                    await asyncio.sleep(5)
                    await one.commit(dict.fromkeys(event.partitions, 2))

    listening = asyncio.create_task(listen())
    await drink(one)
    await one.close()
    await listening
    assert {tp: at.offset for tp, at in group.offsets.items()} == dict.fromkeys(
        ORDERS, 2
    )
    assert len(group.left) == 1


@pytest.mark.parametrize("how", ["late", "expelled", "in flight", "before the end"])
async def test_a_commit_of_what_is_lost_while_it_is_held_in_closing(
    group: FakeGroup, make: MakeConsumer, cluster: FakeCluster, how: str
) -> None:
    one = make(**MEMBER, enable_auto_commit=False)
    await one.start()
    held, failures = asyncio.Event(), list[BaseException]()
    wait = {"late": 20.0, "expelled": 6.0, "in flight": 0.0, "before the end": 4.0}

    async def listen() -> None:
        async with one.wait_for_revoke() as request:
            held.set()
            await asyncio.sleep(wait[how])
            try:
                await one.commit(dict.fromkeys(request.partitions, 1))
            except Exception as error:  # noqa: BLE001
                failures.append(error)

    listening = asyncio.create_task(listen())
    await drink(one)
    if how in {"in flight", "before the end"}:
        cluster.on(ApiKey.OFFSET_COMMIT, HANG)
    closing = asyncio.create_task(one.close(timeout=5))
    await held.wait()
    if how == "expelled":
        (member,) = group.members
        group.forget(member)
    await closing
    await listening
    assert [type(failure) for failure in failures] == [PartitionLost]


async def test_who_was_cancelled_while_it_listened_keeps_nothing(
    group: FakeGroup, make: MakeConsumer
) -> None:
    one = make(**MEMBER)
    await one.start()

    async def listen() -> None:
        async for _ in one.rebalances():
            pass

    gc.disable()
    try:
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(listen())
            await asyncio.sleep(1)
            listening.cancel()
        del listening, tasks
        began = asyncio.get_running_loop().time()
        await one.close()
        assert asyncio.get_running_loop().time() < began + 1
    finally:
        gc.enable()


async def close_in_a_hold(one: Consumer) -> None:
    asyncio.get_running_loop().call_later(1, one.unsubscribe)
    event = await anext(one.rebalances())
    assert isinstance(event, RevokeRequested)
    async with event.hold():
        await one.close()
    with pytest.raises(PartitionLost):
        event.hold().take()


async def close_in_a_hold_that_was_waited_for(one: Consumer) -> None:
    asyncio.get_running_loop().call_later(1, one.unsubscribe)
    async with one.wait_for_revoke() as event:
        assert event.partitions == set(ORDERS)
        await one.close()


async def close_while_an_event_is_looked_at(one: Consumer) -> None:
    asyncio.get_running_loop().call_later(1, one.unsubscribe)
    seen = []
    async for event in one.rebalances():
        seen.append(event)
        await one.close()
    gone = frozenset(ORDERS)
    assert [type(event) for event in seen] == [RevokeRequested, Revoked]
    assert seen[1] == Revoked(gone)


async def close_where_the_request_would_be_heard(one: Consumer) -> None:
    events = one.rebalances()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await anext(events)
    await one.close()
    assert [type(event) async for event in events] == [RevokeRequested, Revoked]


@pytest.mark.parametrize(
    "close",
    [
        close_in_a_hold,
        close_in_a_hold_that_was_waited_for,
        close_while_an_event_is_looked_at,
        close_where_the_request_would_be_heard,
    ],
)
async def test_closing_does_not_wait_for_what_its_own_task_holds(
    group: FakeGroup, make: MakeConsumer, close: Callable[[Consumer], Awaitable[None]]
) -> None:
    one = make(**MEMBER)
    await one.start()
    await drink(one)
    began = asyncio.get_running_loop().time()
    await close(one)
    assert asyncio.get_running_loop().time() < began + 2
    assert one.statistics().state == "closed"
    assert {group.offsets[tp].offset for tp in ORDERS} == {2}
    assert len(group.left) == 1


async def test_closing_in_a_hold_waits_for_the_holds_of_others(
    group: FakeGroup, make: MakeConsumer
) -> None:
    one = make(**MEMBER, enable_auto_commit=False)
    await one.start()
    await drink(one)

    async def hold(seconds: float, *, closes: bool) -> None:
        async with one.wait_for_revoke() as event:
            await asyncio.sleep(seconds)
            if closes:
                await one.close()
            else:
                await one.commit(dict.fromkeys(event.partitions, 2))

    holding = [
        asyncio.create_task(hold(6, closes=False)),
        asyncio.create_task(hold(3, closes=True)),  # while another task closes, too
    ]
    asyncio.get_running_loop().call_later(1, one.unsubscribe)
    async with one.wait_for_revoke():
        began = asyncio.get_running_loop().time()
        await one.close()
    assert asyncio.get_running_loop().time() == pytest.approx(began + 6, abs=0.1)
    await asyncio.gather(*holding)
    assert {group.offsets[tp].offset for tp in ORDERS} == {2}


async def test_closing_does_not_wait_for_ever(
    group: FakeGroup, make: MakeConsumer
) -> None:
    one = make(**MEMBER)
    await one.start()
    events = one.rebalances()

    async def be_slow() -> None:
        await begun(events)
        await asyncio.sleep(100)

    slow = asyncio.create_task(be_slow())
    await asyncio.sleep(1)
    began = asyncio.get_running_loop().time()
    await one.close(timeout=7)
    assert asyncio.get_running_loop().time() == pytest.approx(began + 6, abs=0.1)
    assert len(group.left) == 1  # the group need not wait for the session to end
    event = await anext(events)
    assert isinstance(event, RevokeRequested)
    with pytest.raises(PartitionLost):
        event.hold().take()
    assert await anext(events) == Lost(event.partitions)
    slow.cancel()


async def test_a_callback_that_hangs_does_not_keep_the_group(
    group: FakeGroup, make: MakeConsumer
) -> None:
    lost: list[object] = []

    async def hang(partitions: object) -> None:
        await asyncio.sleep(1000)

    one = make(**MEMBER, on_revoked=hang, on_lost=lost.append)
    await one.start()
    await one.close(timeout=7)
    assert lost == [set(ORDERS)]
    assert len(group.left) == 1


@PROTOCOLS
async def test_what_was_handed_out_is_committed_in_a_hold(
    group: FakeGroup, make: MakeConsumer, protocol: dict[str, object]
) -> None:
    async with make(**MEMBER, **protocol, enable_auto_commit=False) as one:
        seen = 0
        while seen < 6:
            seen += len((await one.poll(timeout=1)).records)
        starting = asyncio.create_task(make(**MEMBER, **protocol).start())
        async with one.wait_for_revoke() as event:
            kept = event.partitions
            await one.poll(timeout=0)
            await one.commit(kept)
            assert {tp: at.offset for tp, at in group.offsets.items()} == dict.fromkeys(
                kept, 2
            )
        await one.poll(timeout=2)
        await starting
        gone = kept - one.assignment
        assert gone
        with pytest.raises(PartitionLost):
            await one.commit(gone)
