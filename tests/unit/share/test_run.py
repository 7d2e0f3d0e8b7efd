"""``ShareConsumer.run``: what becomes of each record, however its handler ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

from kafkaio import DeadLetter
from kafkaio._machines.backoff import Backoff
from kafkaio._runtime.observer import Observer
from kafkaio._share import run as run_module
from kafkaio._share.ports import FetchedPart, HandlersPort
from kafkaio._share.reading.iterators import Holder
from kafkaio._share.run import FailedRecords, OnError, ShareRunner, check_on_error
from kafkaio.errors import (
    ArgumentTypeError,
    ClosedError,
    ConfigurationError,
    CorruptRecord,
    DeserializationError,
    Reject,
    Release,
    RequestTimeout,
    UsageError,
)
from tests.unit.consumer.in_parallel import eventually
from tests.unit.share.fake_engine import P0, P1, World, batch_of, corrupt


class Heard(Observer):
    """Keeps what ``run`` reports."""

    def __init__(self) -> None:
        self.failed: list[tuple[int, str, BaseException]] = []
        self.retried: list[str] = []

    def handler_failed(
        self,
        group: str,
        partition: Any,
        offset: int,
        delivery_count: int,
        outcome: str,
        error: BaseException,
    ) -> None:
        self.failed.append((offset, outcome, error))

    def retrying(
        self, what: str, attempt: int, delay: float, cause: BaseException
    ) -> None:
        self.retried.append(what)


class Running:
    """A call of ``run`` in a task of its own."""

    def __init__(self, **options: Any) -> None:
        self.world = World(**options)
        self.heard = Heard()
        self.world.engine.observer = self.heard
        self.handlers: HandlersPort | None = None
        self.bounds: list[int] = []
        self.world.engine.bound_work = self.bound_work  # type: ignore[attr-defined]
        self.world.engine.begin_work = self._begin  # type: ignore[method-assign]
        self.world.engine.end_work = self._end  # type: ignore[method-assign]
        self.task: asyncio.Task[None] | None = None

    def _begin(self, handlers: HandlersPort) -> None:
        self.handlers = handlers

    def bound_work(self, handlers: HandlersPort) -> None:
        assert self.handlers is handlers
        self.bounds.append(handlers.most_records)

    def _end(self, handlers: HandlersPort) -> None:
        assert self.handlers is handlers
        self.handlers = None

    async def start(
        self,
        handler: Callable[[Any], Awaitable[object]],
        *,
        on_error: OnError = Release,
        broker_topic: str | None = None,
        concurrency: int = 4,
        max_processing: float | None = None,
    ) -> asyncio.Task[None]:
        world = self.world
        failed = FailedRecords(on_error, "workers", self.heard, broker_topic)
        runner = ShareRunner(
            world.engine,
            world.reads,
            world.reader,
            handler,
            failed,
            concurrency=concurrency,
            max_processing=max_processing,
        )
        self.task = asyncio.ensure_future(runner.run())
        await world.turns()
        return self.task

    def fetch(self, count: int = 4, first: int = 0, *, tp: Any = P0) -> None:
        last = first + count - 1
        data = batch_of(first, range(first, first + count), last)
        self.world.fetch(data, (first, last), tp=tp)

    async def turns(self, count: int = 12) -> str:
        await self.world.turns(count)
        return self.world.ledger.told()

    async def close(self) -> None:
        if self.task is not None and not self.task.done():
            self.task.cancel()
            await asyncio.wait([self.task])
        await self.world.close()


@pytest_asyncio.fixture
async def r() -> AsyncIterator[Running]:
    running = Running()
    yield running
    await running.close()


class Work:
    """A handler that waits until a test lets it go on."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.cancelled: list[int] = []
        self.gates: dict[int, asyncio.Future[None]] = {}

    async def __call__(self, record: Any) -> None:
        self.begun.append(record.offset)
        gate = self.gates[record.offset] = asyncio.get_running_loop().create_future()
        try:
            await gate
        except asyncio.CancelledError:
            self.cancelled.append(record.offset)
            raise

    def finish(self, *offsets: int) -> None:
        for offset in offsets:
            self.gates[offset].set_result(None)


async def nothing(record: Any) -> None:
    """Do nothing with a record."""


async def test_a_return_accepts(r: Running) -> None:
    await r.start(nothing)
    r.fetch(20)
    assert await r.turns() == "a" * 20
    r.fetch(5, 20)
    assert await r.turns() == "a" * 25


async def test_so_many_handlers_run_and_the_rest_waits_in_the_reader(
    r: Running,
) -> None:
    work = Work()
    await r.start(work, concurrency=3)
    assert r.handlers is not None
    assert (r.handlers.most_records, r.handlers.max_processing) == (6, None)
    r.fetch(5)
    r.fetch(4, tp=P1)
    await r.turns()
    assert len(work.begun) == 3
    assert r.world.reader.buffered == 6
    work.finish(work.begun[1])
    await r.turns()
    assert len(work.begun) == 4
    for _ in range(9):
        work.finish(*(each for each, gate in work.gates.items() if not gate.done()))
        await r.turns()
    assert (r.world.ledger.told(P0), r.world.ledger.told(P1)) == ("aaaaa", "aaaa")


async def test_quick_handlers_may_have_more_records_and_slow_ones_fewer(
    r: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 100.0
    monkeypatch.setattr("kafkaio._share.run.now", lambda: clock)
    work = Work()

    async def handler(record: Any) -> None:
        if record.offset >= 1000:
            await work(record)

    await r.start(handler, concurrency=10)
    assert r.bounds == []
    clock += 0.1
    r.fetch(1000)
    await r.turns()
    assert r.bounds == [500]  # 1,000 in 0.1 s: 500 in 50 ms
    clock += 0.1
    r.fetch(10, 1000)
    await r.turns()
    clock += 3.0
    work.finish(*range(1000, 1010))
    await r.turns()
    assert r.bounds == [500, 20]  # as many as there are handlers, and the next ones


async def test_nothing_is_fetched_before_and_after(r: Running) -> None:
    assert not r.world.reader.wants
    task = await r.start(nothing)
    assert r.world.reader.wants
    task.cancel()
    await r.turns()
    assert not r.world.reader.wants
    assert r.handlers is None
    r.fetch()
    assert r.world.ledger.told() == "rrrr"


@pytest.mark.parametrize(
    ("raised", "letter"),
    [(Release, "r"), (Reject, "x"), (Release("later"), "r"), (Reject("no"), "x")],
)
async def test_handlers_say_what_becomes_of_their_record(
    r: Running, raised: Any, letter: str
) -> None:
    async def handler(record: Any) -> None:
        if record.offset == 1:
            raise raised

    await r.start(handler, on_error=unexpected)
    r.fetch()
    assert await r.turns() == f"a{letter}aa"
    assert r.heard.failed == []


def unexpected(record: Any, error: Exception) -> None:
    pytest.fail(f"on_error was called: {error!r}")


async def failing(record: Any) -> None:
    raise ValueError(record.offset)


class Wrong:
    """Something that ``on_error`` returns by mistake."""


async def soon(result: object) -> object:
    await asyncio.sleep(0)
    if isinstance(result, type | Exception) and result is not None:
        raise result  # type: ignore[misc]  # of these tests
    return result


def throw(error: Exception) -> Any:
    raise error


@pytest.mark.parametrize("ends", [False, True])
async def test_a_failed_record_is_released_after_a_wait(
    r: Running, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    # While it waits, its worker takes no other; the end of the run ends the wait.
    wait_ms = 60_000 if ends else 20
    monkeypatch.setattr(run_module, "_BEFORE_RELEASE", Backoff(wait_ms, wait_ms))
    begun: list[int] = []

    async def handler(record: Any) -> None:
        begun.append(record.offset)
        raise ValueError

    task = await r.start(handler, concurrency=1)
    acquired = r.world.ledger.acquire(P0, 0, 1)
    acquired.deadline = asyncio.get_running_loop().time() + 600
    data = batch_of(0, range(2), 1)
    r.world.reader.received(FetchedPart(P0, 1, (acquired,), data))
    assert await r.turns() == "hh"
    assert begun == [0]
    if ends:
        assert r.handlers is not None
        r.handlers.begin_draining()
        await asyncio.wait_for(task, 10)
        assert (r.world.ledger.told()[0], begun) == ("r", [0])
    else:
        await eventually(lambda: r.world.ledger.told() == "rr")
        assert begun == [0, 1]


async def test_a_release_that_was_asked_for_does_not_wait(r: Running) -> None:
    async def handler(record: Any) -> None:
        raise Release

    await r.start(handler, concurrency=1)
    acquired = r.world.ledger.acquire(P0, 0, 1)
    acquired.deadline = asyncio.get_running_loop().time() + 600
    data = batch_of(0, range(2), 1)
    r.world.reader.received(FetchedPart(P0, 1, (acquired,), data))
    assert await r.turns() == "rr"


@pytest.mark.parametrize(
    ("on_error", "letter", "outcome"),
    [
        (Release, "r", "released"),
        (Reject, "x", "rejected"),
        (Release("x"), "r", "released"),
        (Reject("x"), "x", "rejected"),
        (lambda record, error: None, "a", "accepted"),
        (lambda record, error: Release, "r", "released"),
        (lambda record, error: Reject("x"), "x", "rejected"),
        (lambda record, error: throw(Reject("x")), "x", "rejected"),
        (lambda record, error: soon(None), "a", "accepted"),
        (lambda record, error: soon(Release("x")), "r", "released"),
        (lambda record, error: soon(Reject), "x", "rejected"),
        (lambda record, error: record.release(), "r", "accepted"),
    ],
)
async def test_on_error_says_what_becomes_of_a_record(
    r: Running, on_error: Any, letter: str, outcome: str
) -> None:
    await r.start(failing, on_error=on_error)
    r.fetch()
    assert await r.turns() == letter * 4
    assert [each[:2] for each in r.heard.failed] == [(n, outcome) for n in range(4)]
    assert {type(each[2]) for each in r.heard.failed} == {ValueError}


@pytest.mark.parametrize(
    ("on_error", "error", "text"),
    [
        (lambda record, error: Wrong(), UsageError, "returns Release, Reject or None"),
        (lambda record, error: throw(KeyError("k")), KeyError, "k"),
        (lambda record, error: soon(KeyError("k")), KeyError, "k"),
    ],
)
async def test_an_on_error_that_fails_ends_the_run(
    r: Running, on_error: Any, error: type[Exception], text: str
) -> None:
    task = await r.start(failing, on_error=on_error, concurrency=2)
    r.fetch()
    await r.turns()
    with pytest.raises(error, match=text) as caught:
        await task
    assert "raised for jobs-0 at offset 0" in caught.value.__notes__
    # Nothing is accepted, and nothing stays locked.
    assert r.world.ledger.told() == "rrrr"


@pytest.mark.parametrize("wrong", [None, 5, "release", ValueError, Wrong])
def test_what_on_error_cannot_be(wrong: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="on_error must be a Release"):
        check_on_error(wrong)


class Sender:
    """A producer of dead letters."""

    def __init__(self, error: Exception | None = None) -> None:
        self.sent: list[tuple[str, bytes | None]] = []
        self.error = error
        self.gate: asyncio.Future[None] | None = None

    async def send(self, topic: str, value: bytes | None, **more: Any) -> None:
        if self.gate is not None:
            await self.gate
        if self.error is not None:
            raise self.error
        self.sent.append((topic, value))


async def test_dead_letters_are_accepted_once_they_are_written() -> None:
    r = Running(value_deserializer=int)
    sender = Sender()
    sender.gate = asyncio.get_running_loop().create_future()

    async def handler(record: Any) -> None:
        assert type(record.value) is int
        if record.offset % 2:
            raise ValueError

    await r.start(handler, on_error=DeadLetter(sender, "dead"))  # type: ignore[arg-type]
    r.fetch()
    assert await r.turns() == "ahah"
    sender.gate.set_result(None)
    assert await r.turns() == "aaaa"
    # The bytes, not what the handler got.
    assert sender.sent == [("dead", b"1"), ("dead", b"3")]
    assert [each[:2] for each in r.heard.failed] == [(1, "accepted"), (3, "accepted")]
    await r.close()


async def test_a_dead_letter_that_cannot_be_written_comes_again(r: Running) -> None:
    sender = Sender(RequestTimeout("late"))
    await r.start(failing, on_error=DeadLetter(sender, "dead"))  # type: ignore[arg-type]
    r.fetch(1)
    assert await r.turns() == "r"
    assert r.heard.retried == ["the dead letter of jobs-0 at offset 0"]
    assert r.heard.failed[0][1] == "released"


async def test_dead_letters_are_left_to_the_brokers(r: Running) -> None:
    sender = Sender()
    letter = DeadLetter(sender, "dead")  # type: ignore[arg-type]
    await r.start(failing, on_error=letter, broker_topic="dlq.jobs")
    r.fetch(2)
    assert await r.turns() == "xx"
    assert sender.sent == []


async def test_what_a_handler_has_decided_stays(r: Running) -> None:
    async def handler(record: Any) -> None:
        if record.offset == 0:
            record.reject()
        elif record.offset == 1:
            record.ack()
            raise ValueError
        elif record.offset == 2:
            record.release()
            raise Reject

    await r.start(handler, on_error=unexpected)
    r.fetch()
    assert await r.turns() == "xara"
    assert [each[:2] for each in r.heard.failed] == [(1, "decided before")]


async def test_implicit_acknowledgement_accepts_no_record_that_is_worked_on() -> None:
    r = Running(acknowledgement="implicit")
    work = Work()
    await r.start(work, concurrency=4)
    r.fetch(2)
    await r.turns()
    r.fetch(2, 2)
    assert await r.turns() == "hhhh"
    work.finish(1)
    assert await r.turns() == "hahh"
    assert r.task is not None
    r.task.cancel()
    assert await r.turns() == "rarr"
    await r.close()


async def test_a_handler_that_is_no_coroutine_function(r: Running) -> None:
    task = await r.start(lambda record: 5, on_error=unexpected)  # type: ignore[arg-type,return-value]
    r.fetch()
    await r.turns()
    with pytest.raises(UsageError, match="needs a coroutine function"):
        await task
    assert r.world.ledger.told() == "rrrr"


@pytest.mark.parametrize("way", ["poll", "run"])
async def test_a_handler_that_reads_from_its_consumer_ends_the_run(
    r: Running, way: str
) -> None:
    # Else each record would be delivered until the group's limit, and then archived.
    async def handler(record: Any) -> None:
        if way == "poll":
            await r.world.reads.poll(5, 0.0)
        else:
            with r.world.reads.dividing(Holder("run")):
                raise AssertionError

    task = await r.start(handler)
    r.fetch()
    await r.turns()
    with pytest.raises(UsageError, match=r"a handler of run.*reads from the cons"):
        await task
    assert r.world.ledger.told() == "rrrr"
    assert not r.heard.failed


# Lost locks


async def test_a_handler_whose_lock_is_lost_is_cancelled(r: Running) -> None:
    work = Work()
    task = await r.start(work, concurrency=3, max_processing=2.5)
    r.fetch(4)
    await r.turns()
    assert work.begun == [0, 1, 2]
    assert r.handlers is not None
    assert r.handlers.max_processing == 2.5
    [acquired] = r.world.ledger.ranges
    acquired.lose(1, 1)
    r.handlers.lost(acquired)
    await r.turns()
    # The worker goes on with the next record.
    assert (work.cancelled, work.begun) == ([1], [0, 1, 2, 3])
    work.finish(0, 2, 3)
    assert await r.turns() == "alaa"
    r.fetch(3, 4)
    await r.turns()
    assert work.begun[4:] == [4, 5, 6]
    work.finish(4, 5, 6)
    assert await r.turns() == "alaaaaa"
    assert not task.done()
    assert r.heard.failed == []


async def test_a_handler_that_ends_otherwise_when_its_lock_is_lost(r: Running) -> None:
    async def handler(record: Any) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            if record.offset == 0:
                raise ValueError from None  # in place of the cancellation
            # Suppressed: it returns.

    await r.start(handler, concurrency=2, on_error=unexpected)
    r.fetch(2)
    await r.turns()
    [acquired] = r.world.ledger.ranges
    acquired.lose(0, 1)
    assert r.handlers is not None
    r.handlers.lost(acquired)
    assert await r.turns() == "ll"
    assert [each[:2] for each in r.heard.failed] == [(0, "lost")]
    r.fetch(1, 2)
    assert await r.turns() == "llh"  # the workers live
    assert r.task is not None
    assert not r.task.done()


# The end


async def test_a_cancelled_run_releases_what_is_not_finished(r: Running) -> None:
    work = Work()
    task = await r.start(work, concurrency=3)
    r.fetch(6)
    await r.turns()
    work.finish(1)
    await r.turns()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(work.cancelled) == [0, 2, 3]
    assert r.world.ledger.told() == "rarrrr"
    assert not r.world.reads.reading.is_on


@pytest.mark.parametrize("turns", range(12))
async def test_cancelled_at_every_await_of_a_worker(turns: int) -> None:
    r = Running(value_deserializer=Later())
    finished: set[int] = set()

    async def handler(record: Any) -> None:
        await asyncio.sleep(0)
        if record.offset % 3 == 1:
            raise ValueError
        await asyncio.sleep(0)
        finished.add(record.offset)

    async def on_error(record: Any, error: Exception) -> None:
        await asyncio.sleep(0)
        finished.add(record.offset)

    task = await r.start(handler, on_error=on_error, concurrency=2)
    r.fetch(5)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    states = r.world.ledger.states()
    assert {offset for offset, state in states.items() if state == "a"} == finished
    assert set(states.values()) <= {"a", "r"}
    await r.close()


class Later:
    """A deserializer that waits."""

    async def deserialize(self, data: bytes, context: Any) -> int:
        await asyncio.sleep(0)
        return int(data)


async def test_draining_finishes_what_has_begun(r: Running) -> None:
    work = Work()
    task = await r.start(work, concurrency=2)
    r.fetch(4)
    await r.turns()
    handlers = r.handlers
    assert handlers is not None
    handlers.begin_draining()
    waiting = asyncio.ensure_future(handlers.drain())
    work.finish(0)
    await r.turns()
    assert not waiting.done()
    assert work.begun == [0, 1]
    work.finish(1)
    await r.turns()
    assert waiting.done()
    await task
    assert r.world.ledger.told() == "aarr"


async def test_stopping_releases_what_has_begun(r: Running) -> None:
    work = Work()
    task = await r.start(work, concurrency=2)
    r.fetch(4)
    await r.turns()
    assert r.handlers is not None
    r.handlers.begin_draining()
    r.handlers.stop()
    await task
    assert sorted(work.cancelled) == [0, 1]
    assert r.world.ledger.told() == "rrrr"


async def test_a_handler_that_is_cancelled_from_elsewhere_ends_the_run(
    r: Running,
) -> None:
    async def handler(record: Any) -> None:
        raise asyncio.CancelledError

    task = await r.start(handler, concurrency=2)
    r.fetch(2)
    await r.turns()
    with pytest.raises(ClosedError, match="the handler of jobs-0 at offset 0 was"):
        await task
    assert r.world.ledger.told() == "rr"


async def test_a_handler_that_never_waits_can_be_cancelled(r: Running) -> None:
    task = await r.start(nothing, concurrency=3)
    r.fetch(5_000)
    await eventually(lambda: "a" in r.world.ledger.told())
    task.cancel()
    await asyncio.wait([task])
    assert set(r.world.ledger.told()) <= {"a", "r"}


async def test_one_run_or_reader_at_a_time(r: Running) -> None:
    await r.start(nothing)
    with pytest.raises(UsageError, match="another task is reading"):
        await r.world.reads.poll(5, 0.0)
    assert r.task is not None
    r.task.cancel()
    await r.turns()
    r.fetch(1)
    assert await r.world.reads.poll(5, 0.0) == []


async def test_without_topics(r: Running) -> None:
    work = Work()
    task = await r.start(work, concurrency=2)
    r.fetch(3)
    await r.turns()
    r.world.reads.subscribed(has_topics=False)
    await r.turns()
    assert not task.done()  # what has begun is finished first
    work.finish(0, 1)
    await r.turns()
    with pytest.raises(UsageError, match="not subscribed to any topics"):
        await task
    assert r.world.ledger.told() == "aar"


async def test_errors_of_the_engine_end_the_run_when_all_is_finished(
    r: Running,
) -> None:
    work = Work()
    task = await r.start(work, concurrency=2)
    r.fetch(3)
    await r.turns()
    r.world.reader.failed(RequestTimeout("no coordinator"))
    await r.turns()
    assert (task.done(), work.begun) == (False, [0, 1])
    work.finish(0, 1)
    await r.turns()
    with pytest.raises(RequestTimeout, match="no coordinator"):
        await task
    assert r.world.ledger.told() == "aar"


# Records that cannot be read


async def test_a_corrupt_batch_goes_to_on_error_and_the_rest_goes_on(
    r: Running,
) -> None:
    buried: list[tuple[Any, Exception]] = []

    async def on_error(record: Any, error: Exception) -> None:
        buried.append((record, error))

    await r.start(nothing, on_error=on_error)
    broken = corrupt(batch_of(0, range(4), 3))
    r.world.fetch(broken + batch_of(4, range(4, 8), 7), (0, 7))
    assert await r.turns() == "xxxxaaaa"
    [(stand_in, error)] = buried
    assert isinstance(error, CorruptRecord)
    assert (stand_in.topic_partition, stand_in.offset, stand_in.value) == (
        P0,
        0,
        broken,
    )
    assert [each[:2] for each in r.heard.failed] == [(0, "accepted")]


async def test_what_was_cancelled_in_on_error_of_a_corrupt_batch_ends_the_run(
    r: Running,
) -> None:
    asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asked.cancel()

    async def on_error(record: Any, error: Exception) -> None:
        await asked

    task = await r.start(nothing, on_error=on_error)
    r.world.fetch(corrupt(batch_of(0, range(4), 3)), (0, 3))
    await r.turns()
    # As where the handler of a record was cancelled: not as if the consumer closed.
    with pytest.raises(ClosedError, match="jobs-0 at offset 0 was cancelled"):
        await task


async def test_a_record_that_cannot_be_deserialized_goes_to_on_error() -> None:
    r = Running(value_deserializer=lambda data: 1 // int(data))
    buried: list[tuple[Any, Exception]] = []

    def on_error(record: Any, error: Exception) -> Reject:
        buried.append((record, error))
        return Reject("it has no number")

    await r.start(nothing, on_error=on_error)
    r.fetch(3)
    assert await r.turns() == "xaa"
    [(made, error)] = buried
    assert isinstance(error, DeserializationError)
    assert made.value == b"0"
    await r.close()


class Registry:
    """A deserializer whose registry is down at first."""

    def __init__(self, failures: int, *, waits: bool) -> None:
        self.failures = failures
        self.waits = waits

    def deserialize(self, data: bytes, context: Any) -> Any:
        return self._later(data) if self.waits else self._now(data)

    async def _later(self, data: bytes) -> str:
        await asyncio.sleep(0)
        return self._now(data)

    def _now(self, data: bytes) -> str:
        if self.failures:
            self.failures -= 1
            raise RequestTimeout("the registry is down")
        return data.decode()


@pytest.mark.parametrize("waits", [False, True])
async def test_a_registry_that_is_down_is_no_fault_of_the_record(waits: bool) -> None:
    registry = Registry(3, waits=waits)
    r = Running(value_deserializer=registry, retry_backoff_ms=1)
    seen: list[str] = []

    async def handler(record: Any) -> None:
        seen.append(record.value)

    await r.start(handler, on_error=unexpected, concurrency=1)
    r.fetch(2)
    await eventually(lambda: r.world.ledger.told() == "aa")
    assert seen == ["0", "1"]
    assert set(r.heard.retried) == {"the deserializer of jobs-0 at offset 0"}
    await r.close()


async def test_a_deserializer_that_is_a_coroutine_function_ends_the_run() -> None:
    async def wrong(data: bytes) -> int:
        return int(data)

    # The option itself finds it if it is declared as one.
    r = Running(value_deserializer=lambda data: wrong(data))
    task = await r.start(nothing, on_error=unexpected)
    r.fetch(2)
    await r.turns()
    with pytest.raises(ConfigurationError, match="value_deserializer returned a cor"):
        await task
    assert r.world.ledger.told() == "rr"
    await r.close()
