"""Handing records out one at a time: each law on the pure and on the compiled twin."""

from __future__ import annotations

import asyncio
import gc
import importlib
import inspect
import sys
import weakref
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from kafkaio._consumer.reading.iterators import PlainStream
from kafkaio._records._layout import DecodedColumns
from kafkaio.errors import UsageError
from kafkaio.types import Record
from tests.unit.records.conftest import compiled_codec
from tests.unit.records.strategies import origin, record

law = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def pure_twin() -> SimpleNamespace:
    stream = importlib.import_module("kafkaio._records._stream")
    cursor = importlib.import_module("kafkaio._records._cursor")
    columns = importlib.import_module("kafkaio._records._columns")
    return SimpleNamespace(
        Handout=stream.Handout,
        RecordStream=PlainStream,
        RecordCursor=cursor.RecordCursor,
        ColumnsBuilder=columns.ColumnsBuilder,
    )


@pytest.fixture(params=["python", "compiled"])
def twin(request: pytest.FixtureRequest) -> Any:
    return pure_twin() if request.param == "python" else compiled_codec()


def section(count: int, holes: int = 0) -> bytes:
    return b"".join(
        record(offset_delta=n * (holes + 1), key=b"k%d" % n, value=b"%d" % n)
        for n in range(count)
    )


def cursor_of(twin: Any, count: int, *, start: int = 0, holes: int = 0) -> Any:
    place = origin(start_offset=start, base_offset=100, last_offset_delta=1000)
    return twin.RecordCursor(section(count, holes), 0, count, place, 1101)


class Owner:
    """What a reader does for its handout: new cursors while there are any."""

    def __init__(
        self,
        twin: Any,
        counts: list[int],
        *,
        credit: int = 1000,
        convert: Callable[[Record], Record | None] | None = None,
    ) -> None:
        self.twin = twin
        self.counts = counts
        self.credit = credit
        self.handout = twin.Handout(self.refill, convert)
        self.refills = 0

    def refill(self) -> bool:
        self.refills += 1
        if self.handout.credit <= 0:
            self.handout.credit = self.credit
        cursor = self.handout.cursor
        if cursor is not None and cursor.remaining:
            return True
        if not self.counts:
            return False
        self.handout.cursor = cursor_of(self.twin, self.counts.pop(0))
        self.handout.mark = -1
        return True


class Source:
    """The long way: records that others bring, each waited for."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Record | Exception] = asyncio.Queue()
        self.waiting = 0

    async def wait(self) -> Record:
        self.waiting += 1
        try:
            found = await self.queue.get()
            if isinstance(found, Exception):
                raise found
            return found
        finally:
            self.waiting -= 1


def late(number: int) -> Record:
    return Record("orders", 3, number, 0, None, b"late")


# Cursors


@law
@given(
    count=st.integers(0, 30),
    holes=st.integers(0, 3),
    start=st.integers(95, 135),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["next", "take", "skip", "cut", "copy", "columns"]),
            st.integers(-1, 12),
        ),
        max_size=20,
    ),
)
def test_cursors_of_both_twins_agree(
    count: int, holes: int, start: int, steps: list[tuple[str, int]]
) -> None:
    twins = [pure_twin(), compiled_codec()]
    cursors = [cursor_of(twin, count, start=start, holes=holes) for twin in twins]
    for step, number in steps:
        found = []
        for index, cursor in enumerate(cursors):
            if step == "next":
                found.append(next(cursor, None))
            elif step == "take":
                found.append(cursor.take(number))
            elif step == "skip":
                found.append(cursor.skip(number))
            elif step == "cut":
                piece = cursor.cut(number)
                around = piece.remaining, piece.next_offset
                found.append((*around, piece.copy().take(99), piece.take_values(99)))
                assert piece.next_offset == (
                    cursor.next_offset if found[-1][2] else around[1]
                )
                assert piece.remaining == 0
            elif step == "copy":
                cursors[index] = cursor.copy()
                cursor.skip(99)
                found.append(cursor.next_offset)
            else:
                builder = twins[index].ColumnsBuilder(DecodedColumns(headers=True))
                assert builder.add_cursor(cursor)
                found.append(builder.finish())
                assert cursor.bytes_left >= 0
        assert found[0] == found[1]
        states = [(c.remaining, c.next_offset) for c in cursors]
        assert states[0] == states[1]


def test_a_piece_is_read_any_number_of_times(twin: Any) -> None:
    cursor = cursor_of(twin, 10)
    first = cursor.cut(4)
    rest = cursor.cut(99)
    assert [r.offset for r in first.copy()] == [100, 101, 102, 103]
    assert [r.offset for r in first.copy()] == [100, 101, 102, 103]
    assert (first.remaining, rest.remaining, cursor.remaining) == (4, 6, 0)
    assert rest.copy().take_keys(2) == [b"k4", b"k5"]
    cursor.stop()
    assert len([*rest]) == 6
    assert rest.next_offset == cursor.next_offset == 1101


def test_columns_of_a_cursor_have_a_limit(twin: Any) -> None:
    cursor = cursor_of(twin, 10)
    size = len(section(10))
    with pytest.raises(UsageError, match="too much"):
        twin.ColumnsBuilder(limit=size - 1).add_cursor(cursor)
    builder = twin.ColumnsBuilder(limit=size)
    assert builder.add_cursor(cursor)
    assert not builder.add_cursor(cursor)
    assert builder.length == 10
    assert cursor.remaining == 10


# The handout


def test_everything_in_order_and_what_is_finished(twin: Any) -> None:
    owner = Owner(twin, [3, 1, 2], credit=2)
    handout = owner.handout
    marks, offsets = [], []
    while (taken := handout.take()) is not None:
        offsets.append(taken.offset)
        marks.append(handout.mark)
        assert handout.cursor.next_offset > marks[-1] or handout.cursor.remaining == 0
    assert offsets == [100, 101, 102, 100, 100, 101]
    assert marks == [0, 101, 102, 0, 0, 101]
    assert handout.take() is None


def test_nothing_is_taken_without_credit_or_cursor(twin: Any) -> None:
    handout = twin.Handout(lambda: False)
    handout.credit = 5
    assert handout.take() is None
    assert handout.take_run(5) == []
    handout.cursor = cursor_of(twin, 3)
    handout.credit = 0
    assert handout.take() is None
    handout.credit = 1
    assert handout.take().offset == 100
    assert handout.take() is None
    assert [r.offset for r in handout.take_run(1)] == [101]
    assert [r.offset for r in handout.take_run(9)] == [102]


def test_a_grant_ends_with_its_time(twin: Any) -> None:
    times = [0.0]
    asked: list[int] = []

    def refill() -> bool:
        asked.append(handout.credit)
        return False

    handout = twin.Handout(refill, None, lambda: times[0])
    handout.cursor = cursor_of(twin, 3)
    handout.grant(10, 0.5)
    times[0] = 0.4
    assert handout.take().offset == 100
    times[0] = 0.6
    assert handout.take() is None
    assert asked == [0]  # the owner sees that nothing may be handed out any more
    handout.grant(1, 0.5)
    assert handout.take().offset == 101
    assert handout.take() is None


def test_the_clock_of_the_system_ends_a_grant() -> None:
    handout = compiled_codec().Handout(lambda: False)
    handout.cursor = cursor_of(compiled_codec(), 3)
    handout.grant(10, 1000)
    assert handout.take().offset == 100
    handout.grant(10, -1)
    assert handout.take() is None


def test_an_owner_that_promises_too_much_is_not_believed(twin: Any) -> None:
    handout = twin.Handout(lambda: True)
    assert handout.take() is None
    handout.cursor = cursor_of(twin, 0)
    assert handout.take() is None


def test_what_the_owner_raises_comes_out(twin: Any) -> None:
    def fail() -> bool:
        raise ZeroDivisionError("mine")

    handout = twin.Handout(fail)
    with pytest.raises(ZeroDivisionError, match="mine"):
        handout.take()


def test_a_record_that_cannot_be_converted_comes_again(twin: Any) -> None:
    bad = {102, 103}

    def convert(record: Record) -> Record:
        if record.offset in bad:
            raise ValueError(record.offset)
        return late(record.offset)

    owner = Owner(twin, [6], convert=convert)
    handout = owner.handout
    assert handout.take() == late(100)
    assert handout.take() == late(101)
    for _ in range(2):
        with pytest.raises(ValueError, match="102"):
            handout.take()
        assert handout.mark == handout.cursor.next_offset == 102
    with pytest.raises(ValueError, match="102"):
        handout.take_run(5)
    bad.discard(102)
    assert handout.take_run(5) == [late(102)]
    bad.clear()
    assert handout.take_run(2) == [late(103), late(104)]
    assert handout.take() == late(105)
    assert handout.take() is None


def test_a_record_that_has_to_wait_comes_again(twin: Any) -> None:
    late_ones = {100, 102}

    def convert(record: Record) -> Record | None:
        return None if record.offset in late_ones else late(record.offset)

    owner = Owner(twin, [4], convert=convert)
    handout = owner.handout
    for _ in range(2):
        assert handout.take() is None
        assert handout.take_run(9) == []
        # Asking has finished what was taken before, and took nothing.
        assert handout.mark == handout.cursor.next_offset == 0
        assert handout.cursor.remaining == 4
    late_ones.discard(100)
    assert handout.take_run(9) == [late(100), late(101)]
    assert handout.take() is None
    assert handout.mark == handout.cursor.next_offset == 102
    # Another function, or none, from now on.
    handout.convert = None
    assert handout.take().value == b"2"
    handout.convert = convert
    assert handout.take() == late(103)


async def test_a_stream_waits_for_a_record_that_is_not_converted(twin: Any) -> None:
    waits = True

    def convert(record: Record) -> Record | None:
        return None if waits and record.offset == 101 else record

    owner, source = Owner(twin, [3], convert=convert), Source()
    stream = twin.RecordStream(owner.handout, source.wait)
    assert (await anext(stream)).offset == 100
    source.queue.put_nowait(late(7))
    assert (await anext(stream)).offset == 7
    waits = False
    assert [(await anext(stream)).offset for _ in range(2)] == [101, 102]


# The stream


async def test_at_hand_then_late_then_at_hand(twin: Any) -> None:
    owner, source = Owner(twin, [3]), Source()
    found = []
    stream = twin.RecordStream(owner.handout, source.wait)
    assert aiter(stream) is stream

    async def bring() -> None:
        await asyncio.sleep(0.001)
        source.queue.put_nowait(late(7))
        await asyncio.sleep(0.001)
        owner.counts.append(2)
        source.queue.put_nowait(late(8))
        source.queue.put_nowait(ZeroDivisionError("over"))

    async with asyncio.TaskGroup() as group:
        group.create_task(bring())
        with pytest.raises(ZeroDivisionError, match="over"):
            await read_on(stream, found)
    assert found == [100, 101, 102, 7, 8, 100, 101]
    assert source.waiting == 0


async def read_on(stream: Any, found: list[int]) -> None:
    async for each in stream:
        found.append(each.offset)


async def test_nothing_suspends_while_records_are_at_hand(twin: Any) -> None:
    owner = Owner(twin, [50])
    stream = twin.RecordStream(owner.handout, Source().wait)

    async def read() -> int:
        total = 0
        async for each in stream:
            total += each.offset
            if each.offset == 149:
                break
        return total

    reading = read()
    with pytest.raises(StopIteration) as stop:
        reading.send(None)  # it would give a future to wait for, if it suspended
    assert stop.value.value == sum(range(100, 150))


async def test_many_ways_to_ask_for_one(twin: Any) -> None:
    owner, source = Owner(twin, [20]), Source()
    stream = twin.RecordStream(owner.handout, source.wait)
    assert (await anext(stream)).offset == 100
    assert (await anext(stream, None)).offset == 101
    assert (await asyncio.wait_for(anext(stream), 1)).offset == 102
    assert (await asyncio.create_task(stream.__anext__())).offset == 103
    assert (await asyncio.gather(anext(stream)))[0].offset == 104
    assert (await stream.__anext__()).offset == 105
    async with asyncio.timeout(1):
        assert (await anext(stream)).offset == 106


async def test_errors_leave_it_usable(twin: Any) -> None:
    owner, source = Owner(twin, [0]), Source()
    stream = twin.RecordStream(owner.handout, source.wait)
    for error in (ValueError("one"), KeyError("two")):
        source.queue.put_nowait(error)
        with pytest.raises(type(error)) as caught:
            await anext(stream)
        assert caught.value is error
    source.queue.put_nowait(late(1))
    assert await anext(stream) == late(1)


@pytest.mark.parametrize("turns", range(4))
async def test_cancelled_while_waiting(twin: Any, turns: int) -> None:
    owner, source = Owner(twin, []), Source()
    stream = twin.RecordStream(owner.handout, source.wait)

    async def read() -> None:
        async for each in stream:
            raise AssertionError(each)

    task = asyncio.create_task(read())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel("enough")
    with pytest.raises(asyncio.CancelledError):
        await task
    assert source.waiting == 0
    source.queue.put_nowait(late(1))
    assert await anext(stream) == late(1)


async def test_cancelled_when_its_record_has_come(twin: Any) -> None:
    # What waits decides whether a cancellation is too late, as always.
    async def wait() -> Record:
        try:
            await asyncio.sleep(10)
        except BaseException:  # noqa: BLE001 - as nobody should
            return late(5)
        raise AssertionError

    stream = twin.RecordStream(Owner(twin, []).handout, wait)
    task = asyncio.create_task(anext_of(stream))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    assert await task == late(5)
    assert task.cancelling() == 1


async def anext_of(stream: Any) -> Record:
    return await anext(stream)


async def test_two_at_a_time_do_not_mix(twin: Any) -> None:
    owner, source = Owner(twin, [2]), Source()
    stream = twin.RecordStream(owner.handout, source.wait)
    asked = [stream.__anext__() for _ in range(3)]
    tasks = [asyncio.create_task(one) for one in asked]
    await asyncio.sleep(0.001)
    for number in range(3):
        source.queue.put_nowait(late(number))
    found = [await task for task in tasks]
    offsets = sorted(r.offset for r in found)
    assert len(set(offsets)) == 3
    assert len(offsets) == 3
    # One that waits does not keep a second one from waiting for itself.
    first = asyncio.create_task(anext_of(stream))
    second = asyncio.create_task(anext_of(stream))
    await asyncio.sleep(0.001)
    while source.waiting or not (first.done() and second.done()):
        source.queue.put_nowait(late(50))
        await asyncio.sleep(0.001)
    assert {(await first).offset, (await second).offset} <= {*range(3), 50, 100, 101}


async def test_a_task_that_ends_while_it_waits(twin: Any) -> None:
    ended = []

    async def wait() -> Record:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(sys.exc_info()[0])
        raise AssertionError

    stream = twin.RecordStream(Owner(twin, []).handout, wait)
    reading = anext_of(stream)
    reading.send(None)
    reading.close()
    assert ended == [GeneratorExit]
    reading = anext_of(stream)
    reading.send(None)
    with pytest.raises(ZeroDivisionError):
        reading.throw(ZeroDivisionError("x"))
    assert ended == [GeneratorExit, ZeroDivisionError]


async def test_an_awaitable_by_hand(twin: Any) -> None:
    owner, source = Owner(twin, [2]), Source()
    stream = twin.RecordStream(owner.handout, source.wait)
    awaitable = stream.__anext__()
    assert inspect.isawaitable(awaitable)
    assert isinstance(awaitable, Coroutine)
    with pytest.raises(StopIteration) as stop:
        awaitable.send(None)
    assert stop.value.value.offset == 100
    awaitable = stream.__anext__()
    with pytest.raises(ZeroDivisionError):
        awaitable.throw(ZeroDivisionError())
    awaitable = stream.__anext__()
    awaitable.close()
    with pytest.raises(StopIteration) as stop:
        stream.__anext__().__await__().__next__()
    assert stop.value.value.offset == 101
    waiting = stream.__anext__()
    future = waiting.send(None)
    assert asyncio.isfuture(future)
    with pytest.raises(KeyError):
        waiting.throw(KeyError("x"))
    assert source.waiting == 0


@pytest.mark.filterwarnings("ignore:the .type, exc, tb. signature")
async def test_the_old_ways_to_throw(twin: Any) -> None:
    stream = twin.RecordStream(Owner(twin, [1]).handout, Source().wait)
    for arguments in [(KeyError,), (KeyError, "why"), (KeyError("why"), None, None)]:
        with pytest.raises(KeyError):
            stream.__anext__().throw(*arguments)


async def test_nothing_is_kept_that_was_handed_out(twin: Any) -> None:
    class Value:
        """Something that can be watched."""

    def convert(record: Record) -> Record:
        return SimpleNamespace(offset=record.offset, value=Value())  # type: ignore[return-value]

    owner = Owner(twin, [100], convert=convert)
    stream = twin.RecordStream(owner.handout, Source().wait)
    watched = []
    for _ in range(100):
        watched.append(weakref.ref((await anext(stream)).value))
    gc.collect()
    # A stream may keep its last result until the next.
    assert sum(ref() is not None for ref in watched) <= 1


async def test_nothing_leaks(twin: Any) -> None:
    owner, source = Owner(twin, []), Source()
    stream = twin.RecordStream(owner.handout, source.wait)
    one = late(1)

    async def rounds(count: int) -> None:
        for _ in range(count):
            owner.counts.append(3)
            for _ in range(3):
                await anext(stream)
            source.queue.put_nowait(one)
            await anext(stream)
            source.queue.put_nowait(ValueError())
            with pytest.raises(ValueError):  # noqa: PT011 - it has no message
                await anext(stream)

    await rounds(20)
    gc.collect()
    held = sys.getrefcount(one), sys.getrefcount(stream), sys.getrefcount(None)
    objects = len(gc.get_objects())
    await rounds(100)
    gc.collect()
    assert abs(len(gc.get_objects()) - objects) < 30
    assert sys.getrefcount(one) <= held[0] + 1
    assert sys.getrefcount(stream) == held[1]
    assert abs(sys.getrefcount(None) - held[2]) < 50


async def test_a_stream_and_all_it_holds_can_be_collected(twin: Any) -> None:
    class Reader:
        def __init__(self) -> None:
            self.handout = twin.Handout(self.refill)
            self.stream = twin.RecordStream(self.handout, self.wait)

        def refill(self) -> bool:
            return False

        async def wait(self) -> Record:
            return late(1)

    reader = Reader()
    assert await anext(reader.stream) == late(1)
    gone = weakref.ref(reader)
    del reader
    gc.collect()
    assert gone() is None
