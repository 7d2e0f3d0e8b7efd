"""``Consumer.run``: many handlers, commits in order, nothing twice and nothing lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

from kafkaio._consumer import Consumer
from kafkaio._consumer.parallel import DeadLetter
from kafkaio._machines.retries import Retry
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ClosedError,
    DeserializationError,
    InternalError,
    RegistryError,
    UsageError,
)
from kafkaio.serde import DeserializationContext, Topic
from kafkaio.types import Record
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


@pytest.fixture
async def group(cluster: FakeCluster, logs: FakeLogs) -> AsyncIterator[FakeGroup]:
    group = FakeGroup(cluster)
    yield group
    group.close()


class Work:
    """A handler that can be held up, record by record."""

    def __init__(self) -> None:
        self.begun: list[tuple[int, int]] = []
        self.done: list[tuple[int, int]] = []
        self.cancelled: list[tuple[int, int]] = []
        self.gates: dict[tuple[int, int], asyncio.Event] = {}
        self.changed = asyncio.Condition()

    def hold(self, partition: int, offset: int) -> asyncio.Event:
        return self.gates.setdefault((partition, offset), asyncio.Event())

    async def __call__(self, record: Record) -> None:
        place = record.partition, record.offset
        self.begun.append(place)
        await self.tell()
        try:
            if place in self.gates:
                await self.gates[place].wait()
        except asyncio.CancelledError:
            self.cancelled.append(place)
            raise
        self.done.append(place)
        await self.tell()

    async def tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(300), self.changed:
            await self.changed.wait_for(condition)

    async def until_done(self, count: int) -> None:
        await self.until(lambda: len(self.done) == count)


class Running:
    """A run in a task of its own."""

    def __init__(self, consumer: Consumer, handler: Any, **options: Any) -> None:
        self.task = asyncio.ensure_future(consumer.run(handler, **options))

    async def __aenter__(self) -> asyncio.Task[None]:
        return self.task

    async def __aexit__(self, *exc: object) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


async def test_commits_are_in_order_whatever_is_done_first(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    work = Work()
    gate = work.hold(0, 1)
    fill(logs, ORDERS[0], b"a", b"b", b"c", b"d")
    fill(logs, ORDERS[1], b"a", b"b")
    consumer = make(**MEMBER, enable_auto_commit=False)
    async with consumer, Running(consumer, work):
        await work.until_done(5)
        await asyncio.sleep(6)  # the commit is aggregated
        assert committed(group, ORDERS[0]) == 1
        assert committed(group, ORDERS[1]) == 2
        gate.set()
        await work.until_done(6)
        await consumer.commit()
        assert committed(group, ORDERS[0]) == 4


@pytest.mark.parametrize("ends_by", ["cancellation", "failure"])
async def test_only_while_it_runs_it_commits_automatically(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer, ends_by: str
) -> None:
    """What it has finished is committed even so, and nothing that is read later."""
    fill(logs, ORDERS[0], *[b"a"] * 6)
    done = list[int]()
    two = asyncio.Event()

    async def handle(record: Record) -> None:
        if len(done) == 2:
            two.set()
            if ends_by == "failure":
                raise ZeroDivisionError
            await asyncio.sleep(1000)
        done.append(record.offset)

    options = MEMBER | {"auto_commit_interval_ms": 3_600_000}
    async with make(**options, enable_auto_commit=False) as consumer:
        async with Running(consumer, handle, concurrency=1) as run:
            await two.wait()
        assert run.cancelled() or isinstance(run.exception(), ZeroDivisionError)
        await eventually(lambda: committed(group, ORDERS[0]) == 2)
        for offset in range(2, 6):
            assert (await anext(consumer)).offset == offset
    assert committed(group, ORDERS[0]) == 2


async def test_what_it_finished_is_not_committed_over_a_commit_of_the_users(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    for n in (0, 1):
        fill(logs, ORDERS[n], *[b"a"] * 4)
    work = Work()
    options = MEMBER | {"auto_commit_interval_ms": 3_600_000}
    async with make(**options, enable_auto_commit=False) as consumer:
        async with Running(consumer, work) as run:
            await work.until_done(8)
            committing = asyncio.ensure_future(consumer.commit({ORDERS[0]: 1}))
            run.cancel()
        await committing
    assert committed(group, ORDERS[0]) == 1
    assert committed(group, ORDERS[1]) == 4


async def test_a_key_is_worked_on_in_order_and_others_meanwhile(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    work = Work()
    gate = work.hold(0, 0)
    fill(logs, ORDERS[0], b"a", b"b", b"a", None, None)
    consumer = make(**MEMBER)
    async with consumer, Running(consumer, work):
        await work.until_done(3)
        assert sorted(work.done) == [(0, 1), (0, 3), (0, 4)]
        assert (0, 2) not in work.begun
        gate.set()
        await work.until_done(5)
        assert work.done[-2:] == [(0, 0), (0, 2)]


@pytest.mark.parametrize(("ordering", "begun"), [("partition", 2), ("none", 4)])
async def test_other_orderings(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer, ordering: str, begun: int
) -> None:
    work = Work()
    for n in (0, 1):
        fill(logs, ORDERS[n], b"a", b"a")
        work.hold(n, 0)
        work.hold(n, 1)
    consumer = make(**MEMBER)
    async with consumer, Running(consumer, work, ordering=ordering):
        await work.until(lambda: len(work.begun) == begun)
        await asyncio.sleep(1)
        assert len(work.begun) == begun


async def test_no_more_handlers_than_asked_for(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    most = at_work = done = 0

    async def handle(record: Record) -> None:
        nonlocal most, at_work, done
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0.01 if record.offset % 3 else 0)
        at_work -= 1
        done += 1

    for tp in ORDERS:
        fill(logs, tp, *[None] * 200)
    consumer = make(**MEMBER, max_poll_records=50)
    async with consumer, Running(consumer, handle, concurrency=7):
        await eventually(lambda: consumer._core.reader.divider)
        schedule = consumer._core.reader.divider._schedule
        while done < 600:
            assert schedule.in_hand <= 50
            await asyncio.sleep(0.1)
        assert most == 7
        await consumer.commit()
        assert [committed(group, tp) for tp in ORDERS] == [200] * 3


async def test_a_handler_that_never_waits_leaves_the_loop_its_turns(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    seen = 0

    async def handle(record: Record) -> None:
        nonlocal seen
        seen += 1

    for tp in ORDERS:
        fill(logs, tp, *[b"k"] * 1000)
    consumer = make(**MEMBER)
    async with consumer, Running(consumer, handle):
        await eventually(lambda: seen == 3000)
        # One worker did it all: no task was made for a record.
        assert len(consumer._core.reader.divider._workers) <= 2


async def test_a_failure_ends_the_run_with_its_cause(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    work = Work()
    work.hold(1, 0)

    async def handle(record: Record) -> None:
        if record.topic_partition == ORDERS[0] and record.offset == 2:
            await work.until(lambda: (0, 4) in work.done and (1, 0) in work.begun)
            raise ValueError("no good")
        await work(record)

    fill(logs, ORDERS[0], *[None] * 5)
    fill(logs, ORDERS[1], None)
    async with make(**MEMBER) as consumer:
        with pytest.raises(ValueError, match="no good") as failed:
            await consumer.run(handle)
        assert failed.value.__notes__ == ["raised for orders-0 at offset 2"]
        assert work.cancelled == [(1, 0)]
        # What is not finished is read again, and nothing from it on is committed.
        assert await consumer.position(ORDERS[0]) == 2
        assert await consumer.position(ORDERS[1]) == 0
        await consumer.commit()
        assert committed(group, ORDERS[0]) == 2
        again = [await anext(consumer) for _ in range(4)]
        assert sorted((r.partition, r.offset) for r in again) == [
            (0, 2),
            (0, 3),
            (0, 4),
            (1, 0),
        ]


async def test_failures_of_one_kind_are_named_once(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    begun: list[Record] = []
    all_begun = asyncio.Event()

    async def handle(record: Record) -> None:
        begun.append(record)
        if len(begun) == 5:
            all_begun.set()
        await all_begun.wait()
        raise ValueError("down")

    fill(logs, ORDERS[0], *[None] * 5)
    async with make(**MEMBER) as consumer:
        with pytest.raises(ValueError, match="down") as failed:
            await consumer.run(handle)
    assert failed.value.__notes__[1:] == ["and another: ValueError('down')"]


async def test_a_failure_after_a_cancellation_is_a_note_of_it(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    """What a handler raises as it is cancelled does not hide why it was."""
    has_begun = asyncio.Event()

    async def handle(record: Record) -> None:
        if record.offset == 1:
            await has_begun.wait()
            raise asyncio.CancelledError
        has_begun.set()
        try:
            await asyncio.sleep(1000)
        finally:
            raise ValueError("down")

    fill(logs, ORDERS[0], None, None)
    async with make(**MEMBER) as consumer:
        with pytest.raises(ClosedError, match="at offset 1 was cancelled") as failed:
            await consumer.run(handle)
    assert failed.value.__notes__ == ["and another: ValueError('down')"]


async def test_a_truncation_does_not_keep_a_partition_that_is_to_go(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    """The leader said so after the group had asked for the partition."""
    work = Work()
    fill(logs, ORDERS[0], None, None)
    async with make(**MEMBER) as consumer, Running(consumer, work):
        await work.until_done(2)
        reader = consumer._core.reader  # type: ignore[union-attr]  # no thread
        reader.revoke_requested(ORDERS[0])
        reader.truncated(ORDERS[0])
        assert reader.divider is not None
        assert reader.divider.may_go(ORDERS[0])


async def test_cancelling_acknowledges_nothing(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    work = Work()
    work.hold(0, 1)
    fill(logs, ORDERS[0], None, None, None)
    async with make(**MEMBER) as consumer:
        async with Running(consumer, work):
            await work.until_done(2)
            with pytest.raises(UsageError, match="another task"):
                await anext(consumer)
        assert work.cancelled == [(0, 1)]
        assert await consumer.position(ORDERS[0]) == 1
    assert committed(group, ORDERS[0]) == 1


async def test_retries_wait_and_keep_the_order(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    calls: list[tuple[int, float]] = []
    loop = asyncio.get_running_loop()

    async def handle(record: Record) -> None:
        calls.append((record.offset, loop.time()))
        if record.offset == 0 and len(calls) < 5:
            raise OSError("down")

    fill(logs, ORDERS[0], b"a", b"a", b"b")
    consumer = make(**MEMBER)
    retry = Retry(attempts=4, backoff_ms=1000)
    async with consumer, Running(consumer, handle, retry=retry):
        await eventually(lambda: len(calls) == 6)
        assert [offset for offset, _ in calls] == [0, 2, 0, 0, 0, 1]
        times = [at for offset, at in calls if offset == 0]
        waits = [b - a for a, b in pairwise(times)]
        for wait, wanted in zip(waits, (1, 2, 4), strict=True):
            assert 0.8 * wanted <= wait <= 1.2 * wanted + 0.01
        await consumer.commit()
        assert committed(group, ORDERS[0]) == 3


async def test_what_fails_for_good_is_buried_and_finished(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    dead: list[tuple[Record, Exception]] = []
    release = asyncio.Event()

    async def bury(record: Record, error: Exception) -> None:
        dead.append((record, error))
        await release.wait()

    def decode(value: bytes) -> int:
        if value == b"1":
            raise ValueError("poison")
        return int(value)

    seen: list[object] = []

    async def handle(record: Record) -> None:
        seen.append(record.value)
        if record.value == 2:
            raise KeyError("two")

    fill(logs, ORDERS[0], b"a", b"a", b"b", b"c")
    consumer = make(**MEMBER, value_deserializer=decode)
    retry = Retry(attempts=2, backoff_ms=1, on=(KeyError,))
    run = Running(consumer, handle, retry=retry, dead_letter=bury)
    async with consumer, run:
        await eventually(lambda: len(dead) == 2 and len(seen) == 4)
        assert sorted(map(str, seen)) == ["0", "2", "2", "3"]
        assert [(r.value, type(e)) for r, e in dead] == [
            (b"1", DeserializationError),
            (b"2", KeyError),
        ]
        await consumer.commit()
        assert committed(group, ORDERS[0]) == 1  # it is not in safety yet
        release.set()
        await asyncio.sleep(1)
        await consumer.commit()
        assert committed(group, ORDERS[0]) == 4


def test_a_dead_letter_has_the_name_of_a_topic() -> None:
    class Producing:
        async def send(self, topic: str, value: object, **options: object) -> None: ...

    with pytest.raises(ArgumentTypeError, match=r"pass the name, 'orders\.dead'"):
        DeadLetter(Producing(), Topic("orders.dead"))  # type: ignore[arg-type]
    with pytest.raises(ArgumentValueError, match="must not be empty"):
        DeadLetter(Producing(), "")


async def test_the_dead_letter_tells_where_the_record_came_from() -> None:
    sent: list[tuple[Any, ...]] = []

    class Producing:
        async def send(
            self, topic: str, value: object, *, key: object, headers: object
        ) -> None:
            sent.append((topic, value, key, headers))

    bury = DeadLetter(Producing(), "orders.dead")
    record = Record("orders", 2, 17, 99, b"k", b"v", (("trace", b"1"),))
    await bury(record, ConnectionError("gone"))
    assert sent == [
        (
            "orders.dead",
            b"v",
            b"k",
            [
                ("trace", b"1"),
                ("dead-letter-topic", b"orders"),
                ("dead-letter-partition", b"2"),
                ("dead-letter-offset", b"17"),
                ("dead-letter-timestamp", b"99"),
                ("dead-letter-error", b"builtins.ConnectionError"),
                ("dead-letter-message", b"gone"),
            ],
        )
    ]
    assert repr(bury) == "<DeadLetter 'orders.dead'>"


async def test_a_grave_that_refuses_ends_the_run(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    async def handle(record: Record) -> None:
        raise KeyError("handler")

    async def refuse(record: Record, error: Exception) -> None:
        raise OSError("no room") from error

    fill(logs, ORDERS[0], b"a", b"b")
    async with make(**MEMBER) as consumer:
        with pytest.raises(OSError, match="no room") as failed:
            await consumer.run(handle, dead_letter=refuse)
        assert isinstance(failed.value.__cause__, KeyError)
        await consumer.commit()
        assert committed(group, ORDERS[0]) == 0


async def test_a_handler_that_is_no_coroutine_function_ends_the_run(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    seen: list[Record] = []
    buried: list[Record] = []

    async def bury(record: Record, error: Exception) -> None:
        buried.append(record)

    handle: Any = seen.append
    fill(logs, ORDERS[0], b"a", b"b", b"c")
    async with make(**MEMBER) as consumer:
        with pytest.raises(UsageError, match="a coroutine function: ") as failed:
            await consumer.run(
                handle, retry=Retry(attempts=5), dead_letter=bury, ordering="none"
            )
        assert isinstance(failed.value, TypeError)
        await consumer.commit()
        assert committed(group, ORDERS[0]) == 0
    assert len(seen) == 1
    assert buried == []


async def test_burying_may_be_cancelled(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    begun = asyncio.Event()

    async def handle(record: Record) -> None:
        raise KeyError("handler")

    async def bury(record: Record, error: Exception) -> None:
        begun.set()
        await asyncio.Event().wait()

    fill(logs, ORDERS[0], b"a")
    async with make(**MEMBER) as consumer:
        async with Running(consumer, handle, dead_letter=bury) as task:
            await begun.wait()
            task.cancel()
        assert task.cancelled()
        assert await consumer.position(ORDERS[0]) == 0


async def test_a_handler_cancelled_by_others_is_not_lost_sight_of(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    async def handle(record: Record) -> None:
        raise asyncio.CancelledError

    fill(logs, ORDERS[0], b"a")
    async with make(**MEMBER) as consumer:
        with pytest.raises(ClosedError, match="orders-0 at offset 0 was cancelled"):
            await consumer.run(handle)


async def test_closing_lets_handlers_end_and_commits(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    work = Work()
    gate = work.hold(0, 0)
    fill(logs, ORDERS[0], b"a", b"a", b"b", b"a")
    consumer = make(**MEMBER)
    await consumer.start()
    async with Running(consumer, work) as task:
        await work.until_done(1)
        closing = asyncio.ensure_future(consumer.close(timeout=20))
        await asyncio.sleep(5)
        assert not closing.done()
        gate.set()
        await closing
        await task
    # All up to the last that was begun, so that none of those comes twice.
    assert work.done == [(0, 2), (0, 0), (0, 1)]
    assert committed(group, ORDERS[0]) == 3
    assert len(group.left) == 1


async def test_closing_has_its_bound(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    work = Work()
    work.hold(0, 1)
    fill(logs, ORDERS[0], b"a", b"b")
    consumer = make(**MEMBER)
    await consumer.start()
    async with Running(consumer, work) as task:
        await work.until_done(1)
        began = asyncio.get_running_loop().time()
        await consumer.close(timeout=10)
        assert asyncio.get_running_loop().time() - began == pytest.approx(8, abs=1)
        await task
    assert work.cancelled == [(0, 1)]
    assert committed(group, ORDERS[0]) == 1
    assert len(group.left) == 1


async def test_a_revoke_waits_for_the_handlers_of_its_partition(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    work, others = Work(), Work()
    gates = [work.hold(n, 1) for n in range(3)]
    for tp in ORDERS:
        fill(logs, tp, b"a", b"b", b"b")
    one, two = make(**MEMBER), make(**MEMBER)
    async with one, Running(one, work):
        await work.until_done(3)
        joining = asyncio.ensure_future(two.start())
        await eventually(lambda: one.to_be_revoked)
        (moved,) = one.to_be_revoked
        # The others run on meanwhile.
        kept = [tp for tp in ORDERS if tp != moved]
        for tp in kept:
            gates[tp.partition].set()
            fill(logs, tp, b"c")
        await work.until_done(3 + 6)
        assert moved in one.assignment
        gates[moved.partition].set()
        await joining
        async with Running(two, others):
            await rest(one, two)
            await others.until_done(1)
            assert (moved.partition, 2) not in work.begun
            assert others.done == [(moved.partition, 2)]
            assert not work.cancelled
        await two.close()
    assert len(work.done) + len(others.done) == 11
    assert len({*work.done, *others.done}) == 11


async def test_a_revoke_does_not_wait_for_a_registry_that_is_down(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    def decode(data: bytes) -> bytes:
        if data == b"b":
            raise RegistryError("down", retriable=True)
        return data

    for tp in ORDERS:
        fill(logs, tp, b"a", b"b", b"c")
    work, others = Work(), Work()
    one, two = make(**MEMBER, key_deserializer=decode), make(**MEMBER)
    async with one, Running(one, work):
        await work.until_done(6)
        await two.start()
        async with Running(two, others):
            await eventually(lambda: len(two.assignment) == 1)
            (moved,) = two.assignment
            # What was finished behind the first unfinished record is done again.
            await others.until_done(2)
            assert sorted(others.done) == [(moved.partition, 1), (moved.partition, 2)]
            assert committed(group, moved) in {1, 3}
        # Nor does closing wait.
        await asyncio.wait_for(one.close(), 5)
        await two.close()
    assert [committed(group, tp) for tp in ORDERS if tp != moved] == [1, 1]


async def test_an_idle_partition_goes_at_once(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    one, two = make(**MEMBER), make(**MEMBER)
    async with one, Running(one, Work()):
        await two.start()
        async with Running(two, Work()):
            await eventually(lambda: len(two.assignment) == 1)
            await rest(one, two)
        await two.close()


async def test_handlers_of_a_lost_partition_are_cancelled_and_no_others(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    work = Work()
    gates = [work.hold(n, 0) for n in range(3)]
    for tp in ORDERS:
        fill(logs, tp, b"a", b"a")
    consumer = make(**MEMBER)
    async with consumer, Running(consumer, work):
        await work.until(lambda: len(work.begun) == 3)
        group.forget(*group.members)
        await work.until(lambda: len(work.begun) == 6)  # assigned and read again
        assert sorted(work.cancelled) == [(0, 0), (1, 0), (2, 0)]
        assert not work.done
        for gate in gates:
            gate.set()
        await work.until_done(6)
        await consumer.commit()
        assert [committed(group, tp) for tp in ORDERS] == [2] * 3


async def test_a_handler_that_ignores_its_cancellation(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    calls: list[int] = []

    async def handle(record: Record) -> None:
        calls.append(record.offset)
        if len(calls) == 1:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        else:
            await asyncio.sleep(0)

    fill(logs, ORDERS[0], b"a", b"a")
    consumer = make(**MEMBER)
    async with consumer, Running(consumer, handle):
        await eventually(lambda: calls)
        group.forget(*group.members)
        await eventually(lambda: len(calls) == 3)
        await asyncio.sleep(1)
        assert calls == [0, 0, 1]
        await consumer.commit()
        assert committed(group, ORDERS[0]) == 2


async def test_a_record_alone_is_not_committed_meanwhile(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    failures: list[UsageError] = []

    async def handle(record: Record) -> None:
        try:
            await consumer.commit(record)
        except UsageError as error:
            failures.append(error)
        await consumer.commit({record.topic_partition: 1})

    fill(logs, ORDERS[0], b"a", b"b")
    consumer = make(**MEMBER)
    async with consumer, Running(consumer, handle):
        await eventually(lambda: len(failures) == 2)
        assert "does not finish those before" in str(failures[0])
        await eventually(lambda: committed(group, ORDERS[0]) == 1)


async def test_a_commit_is_of_what_handlers_have_finished(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    work = Work()
    gate = work.hold(0, 1)
    for tp in ORDERS[:2]:
        fill(logs, tp, b"a", b"b", b"c")
    consumer = make(**MEMBER, auto_commit_interval_ms=1_000_000)
    async with consumer, Running(consumer, work):
        await work.until_done(5)
        await consumer.commit(ORDERS[0])
        assert committed(group, ORDERS[0]) == 1  # the second is at work
        assert committed(group, ORDERS[1]) is None
        await consumer.commit()
        assert committed(group, ORDERS[0]) == 1
        assert committed(group, ORDERS[1]) == 3
        gate.set()
        await work.until_done(6)
        await consumer.commit()
        assert committed(group, ORDERS[0]) == 3


async def test_a_seek_back_begins_anew(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    work = Work()
    fill(logs, ORDERS[0], b"a", b"b", b"c")
    consumer = make(**MEMBER)
    async with consumer, Running(consumer, work):
        await work.until_done(3)
        consumer.seek(ORDERS[0], 1)
        await work.until_done(5)
        assert work.done[3:] == [(0, 1), (0, 2)]
        await consumer.commit()
        assert committed(group, ORDERS[0]) == 3


async def test_hung_handlers_cost_the_place_in_the_group(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    work = Work()
    work.hold(0, 0)
    fill(logs, ORDERS[0], b"a")
    consumer = make(**MEMBER)
    async with consumer, Running(consumer, work):
        await asyncio.sleep(50)
        assert not group.left
        await asyncio.sleep(40)
        assert len(group.left) == 1
        assert work.cancelled == [(0, 0)]


async def test_without_a_group_nothing_is_committed(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
) -> None:
    work = Work()
    fill(logs, ORDERS[2], b"a", b"b")
    consumer = make(topics="orders", auto_offset_reset="earliest")
    async with consumer, Running(consumer, work):
        await work.until_done(2)
        await asyncio.sleep(10)


async def test_what_cannot_be_asked_for(make: MakeConsumer, logs: FakeLogs) -> None:
    work = Work()
    consumer = make(topics="orders")
    with pytest.raises(ClosedError, match="not started"):
        await consumer.run(work)
    async with consumer:
        with pytest.raises(UsageError, match="concurrency=0"):
            await consumer.run(work, concurrency=0)
        with pytest.raises(UsageError, match="ordering='keys'"):
            await consumer.run(work, ordering="keys")


async def test_what_breaks_in_the_background_ends_the_run(
    logs: FakeLogs, make: MakeConsumer
) -> None:
    async def crash() -> None:
        raise RuntimeError("bug")

    consumer = make(topics="orders")
    async with consumer, Running(consumer, Work()) as task:
        await asyncio.sleep(0.1)
        consumer._core.spawn(crash, "crash")
        with pytest.raises(InternalError, match="bug"):
            await task


async def test_a_lookup_that_fails_after_a_revoke_request_holds_nothing_back(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    asked, gate = asyncio.Event(), asyncio.Event()

    async def look_up() -> bytes:
        asked.set()
        await gate.wait()
        raise RegistryError("down", retriable=True)

    class Decoder:
        def deserialize(self, data: bytes, context: DeserializationContext) -> Any:
            return look_up() if data == b"b" else data

    for tp in ORDERS:
        fill(logs, tp, b"a", b"b")
    work, others = Work(), Work()
    one, two = make(**MEMBER, key_deserializer=Decoder()), make(**MEMBER)
    async with one, Running(one, work):
        await work.until_done(3)
        await asked.wait()
        await two.start()
        async with Running(two, others):
            await eventually(lambda: bool(one.to_be_revoked))
            gate.set()
            began = asyncio.get_running_loop().time()
            await others.until_done(1)
            assert asyncio.get_running_loop().time() - began < 10
            await two.close()
