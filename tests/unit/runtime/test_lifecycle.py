"""The lifecycle of a client, a producer or a consumer, and the work that ends it."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import warnings
from collections.abc import Callable
from functools import partial

import anyio
import pytest

from kafkaio._runtime.lifecycle import (
    Closeable,
    Ending,
    Home,
    Lifecycle,
    LifecycleState,
    weakly,
)
from kafkaio.errors import (
    ClosedError,
    InternalError,
    KafkaError,
    UnsupportedVersion,
)

# Ending


class Thing:
    """Something whose parts wait until the test lets them go on."""

    def __init__(self) -> None:
        self.ending = Ending("thing")
        self.log: list[str] = []
        self.may_part = asyncio.Event()
        self.may_end = asyncio.Event()

    async def part(self) -> None:
        self.log.append("parts")
        await self.may_part.wait()
        self.log.append("has parted")

    async def end(self) -> None:
        self.log.append("ends")
        await self.may_end.wait()
        self.log.append("has ended")

    async def close(self) -> None:
        await self.ending.begin(self.part, self.end)

    async def closing(self) -> asyncio.Task[None]:
        task = asyncio.create_task(self.close())
        await turns()
        return task


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def others() -> int:
    return len(asyncio.all_tasks()) - 1


async def test_both_parts_run_one_after_the_other() -> None:
    thing = Thing()
    thing.may_part.set()
    thing.may_end.set()
    await thing.ending.wait()  # it has not begun
    await thing.close()
    assert thing.log == ["parts", "has parted", "ends", "has ended"]
    await thing.ending.wait()
    assert await others() == 0


async def test_a_cancelled_caller_cuts_the_first_part_and_waits_for_the_second() -> (
    None
):
    thing = Thing()
    closing = await thing.closing()
    closing.cancel()
    await turns()
    assert thing.log == ["parts", "ends"]
    assert not closing.done()
    thing.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert thing.log == ["parts", "ends", "has ended"]


@pytest.mark.parametrize("turn", range(1, 5))
async def test_the_second_part_runs_whenever_the_caller_is_cancelled(
    turn: int,
) -> None:
    thing = Thing()
    thing.may_end.set()
    closing = asyncio.create_task(thing.close())
    await turns(turn)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert thing.log[-2:] == ["ends", "has ended"]


async def test_a_caller_that_is_cancelled_twice_leaves_it_to_itself() -> None:
    thing = Thing()
    closing = await thing.closing()
    closing.cancel()
    await turns()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert thing.log == ["parts", "ends"]
    again = asyncio.create_task(thing.ending.wait())
    await turns()
    assert not again.done()
    thing.may_end.set()
    await again
    assert thing.log == ["parts", "ends", "has ended"]
    assert await others() == 0


async def test_a_cancelled_scope_waits_for_the_second_part() -> None:
    thing = Thing()
    asyncio.get_running_loop().call_later(0.01, thing.may_end.set)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await thing.close()
    assert thing.log[-2:] == ["ends", "has ended"]


async def test_who_only_waits_cuts_nothing() -> None:
    thing = Thing()
    closing = await thing.closing()
    waiting = asyncio.create_task(thing.ending.wait())
    await turns()
    waiting.cancel()
    await asyncio.wait([waiting])
    thing.may_part.set()
    thing.may_end.set()
    await closing
    assert thing.log == ["parts", "has parted", "ends", "has ended"]


async def test_when_every_task_is_cancelled_the_next_call_finishes_it() -> None:
    thing = Thing()
    closing = await thing.closing()
    for _ in range(2):
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await turns()
    assert closing.done()
    assert thing.log == ["parts", "ends"]
    thing.may_end.set()
    await thing.ending.wait()
    assert thing.log == ["parts", "ends", "ends", "has ended"]


async def test_of_several_calls_one_finishes_what_was_cut_short() -> None:
    thing = Thing()
    await thing.closing()
    for _ in range(2):
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await turns()
    waiting = [asyncio.create_task(thing.ending.wait()) for _ in range(3)]
    await turns()
    thing.may_end.set()
    await asyncio.wait(waiting)
    assert thing.log == ["parts", "ends", "ends", "has ended"]


async def test_calls_that_wait_meanwhile_see_it_cut_short_and_one_finishes() -> None:
    thing = Thing()
    closing = await thing.closing()
    work = next(t for t in asyncio.all_tasks() if t.get_name() == "thing")
    waiting = [asyncio.create_task(thing.ending.wait()) for _ in range(3)]
    await turns()
    for _ in range(2):  # the first part, then the second
        work.cancel()
        await turns()
    assert not [task for task in waiting if task.done()]
    thing.may_end.set()
    await asyncio.wait([closing, *waiting])
    assert thing.log == ["parts", "ends", "ends", "has ended"]
    assert not [task.exception() for task in waiting if task.exception()]


async def test_what_is_raised_reaches_whoever_waits() -> None:
    ending = Ending("thing")

    async def fail() -> None:
        raise ZeroDivisionError

    async def end() -> None:
        await ending.wait()  # not for itself

    with pytest.raises(ZeroDivisionError):
        await ending.begin(fail, end)
    with pytest.raises(ZeroDivisionError):
        await ending.wait()


# Lifecycle


ALL = tuple(LifecycleState)
ELSEWHERE = "the thing 'x' was started on another event loop and belongs to it"


def made() -> Lifecycle:
    return Lifecycle("thing", "x")


def running() -> Lifecycle:
    life = made()
    life.begin()
    life.started()
    return life


def in_state(state: LifecycleState) -> Lifecycle:
    """A lifecycle that came to ``state`` on a lawful way."""
    life = made()
    if state is LifecycleState.NEW:
        return life
    life.begin()
    if state is LifecycleState.STARTING:
        return life
    life.started()
    if state is LifecycleState.FAILED:
        life.crashed(ZeroDivisionError("bug"))
    elif state is LifecycleState.CLOSING:
        assert life.begin_close() is LifecycleState.RUNNING
    elif state is LifecycleState.CLOSED:
        life.ended()
    assert life.state is state
    return life


async def nothing() -> None:
    pass


async def end(life: Lifecycle, reports: list[bool]) -> None:
    await asyncio.sleep(0)
    reports.append(life.ended())


def in_another_loop(call: Callable[[], object]) -> None:
    async def fails() -> None:
        with pytest.raises(ClosedError, match=ELSEWHERE):
            call()

    thread = threading.Thread(target=lambda: asyncio.run(fails()))
    thread.start()
    thread.join()


async def test_an_object_starts_runs_and_closes() -> None:
    life = made()
    seen = [life.state]
    home = life.begin()
    seen.append(life.state)
    life.started()
    seen.append(life.state)
    assert life.home is home
    assert home.loop is asyncio.get_running_loop()
    life.check()
    assert life.begin_close() is LifecycleState.RUNNING
    seen.append(life.state)
    reports: list[bool] = []
    await life.close(None, partial(end, life, reports))
    seen.append(life.state)
    assert [state.value for state in seen] == [
        *("new", "starting", "running", "closing", "closed")
    ]
    assert reports == [True]
    assert "x" in repr(life)
    assert "closed" in repr(life)


@pytest.mark.parametrize("state", [s for s in ALL if s is not LifecycleState.NEW])
async def test_it_starts_once(state: LifecycleState) -> None:
    life = in_state(state)
    with pytest.raises(ClosedError, match=f"is {state.value}: it cannot be started"):
        life.begin()
    assert life.state is state


@pytest.mark.parametrize(
    "state", [LifecycleState.FAILED, LifecycleState.CLOSING, LifecycleState.CLOSED]
)
async def test_a_start_that_came_too_late_is_refused(state: LifecycleState) -> None:
    life = made()
    life.begin()
    if state is LifecycleState.FAILED:
        life.crashed(ZeroDivisionError())
    else:
        life.begin_close()
        if state is LifecycleState.CLOSED:
            life.ended()
    with pytest.raises(KafkaError, match=r"crashed|is closed"):
        life.started()
    assert life.state is state


@pytest.mark.parametrize("state", ALL)
async def test_only_a_running_object_is_used_unless_the_call_says_more(
    state: LifecycleState,
) -> None:
    for other in ALL:
        life = in_state(state)
        if state in {LifecycleState.RUNNING, other}:
            life.check(other)
        else:
            with pytest.raises(KafkaError):
                life.check(other)
        assert life.state is state


@pytest.mark.parametrize(
    ("state", "kind", "message"),
    [
        (
            LifecycleState.NEW,
            ClosedError,
            "the thing 'x' is not started: use `async with`",
        ),
        (LifecycleState.STARTING, ClosedError, "the thing 'x' is still starting"),
        (
            LifecycleState.FAILED,
            InternalError,
            "task of the thing 'x' crashed: Zero.*: bug",
        ),
        (LifecycleState.CLOSING, ClosedError, "the thing 'x' is closed"),
        (LifecycleState.CLOSED, ClosedError, "the thing 'x' is closed"),
    ],
)
async def test_the_error_says_why_it_cannot_be_used(
    state: LifecycleState, kind: type[KafkaError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        in_state(state).check()
    assert type(caught.value) is kind


async def test_it_belongs_to_its_event_loop() -> None:
    for state in set(ALL) - {LifecycleState.NEW}:
        in_another_loop(partial(in_state(state).check, *ALL))
    for state in (
        LifecycleState.STARTING,
        LifecycleState.RUNNING,
        LifecycleState.FAILED,
        LifecycleState.CLOSING,
    ):
        life = in_state(state)
        in_another_loop(life.begin_close)
        assert life.state is state


def test_without_a_loop_it_is_elsewhere() -> None:
    async def start() -> Lifecycle:
        return running()

    life = asyncio.run(start())
    with pytest.raises(ClosedError, match=ELSEWHERE):
        life.check()
    assert life.left_open == "the thing 'x'"
    life.abandon()
    assert life.begin_close() is None  # closed everywhere


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_it_belongs_to_its_process() -> None:
    heard: list[str] = []

    def in_child(life: Lifecycle) -> int:
        try:
            life.check()
        except ClosedError as error:
            life.soon(partial(heard.append, "soon"))
            fine = "started in another process" in str(error)
            return 0 if fine and heard == ["fork"] and life.left_open is None else 1
        return 2

    async def forks() -> int:
        life = running()
        assert life.home is not None
        life.home.on_fork = partial(heard.append, "fork")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads may exist
            child = os.fork()
        if not child:
            os._exit(in_child(life))
        life.check()
        assert life.left_open
        return child

    _, status = os.waitpid(asyncio.run(forks()), 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert heard == []


# Crashes


@pytest.mark.parametrize(
    "state", [LifecycleState.STARTING, LifecycleState.RUNNING, LifecycleState.CLOSING]
)
async def test_a_crash_is_heard_once_and_kept(state: LifecycleState) -> None:
    life = in_state(state)
    heard: list[tuple[int, BaseException]] = []
    bug = ZeroDivisionError("bug")
    for number in (1, 2):
        life.add_crash_listener(lambda cause, n=number: heard.append((n, cause)))
    life.crashed(bug)
    life.crashed(KeyError("another"))
    assert heard == [(1, bug), (2, bug)]
    expected = (
        LifecycleState.CLOSING
        if state is LifecycleState.CLOSING
        else LifecycleState.FAILED
    )
    assert life.state is expected
    assert life.cause is bug
    error = life.why_unusable()
    assert type(error) is InternalError
    assert error.__cause__ is bug
    assert error is not life.why_unusable()  # tracebacks do not pile up
    life.ended()
    assert type(life.why_unusable()) is InternalError


@pytest.mark.parametrize("state", [LifecycleState.NEW, LifecycleState.CLOSED])
async def test_a_crash_changes_nothing_where_nothing_runs(
    state: LifecycleState,
) -> None:
    life = in_state(state)
    heard: list[BaseException] = []
    life.add_crash_listener(heard.append)
    life.crashed(ZeroDivisionError())
    assert (life.state, life.cause, heard) == (state, None, [])


async def test_a_listener_is_removed_also_by_another_one() -> None:
    life = running()
    heard: list[str] = []
    undo: list[Callable[[], None]] = []
    life.add_crash_listener(lambda _: undo[0]())
    undo.append(life.add_crash_listener(lambda _: heard.append("in the same crash")))
    gone = life.add_crash_listener(lambda _: heard.append("never"))
    gone()
    gone()
    life.crashed(ZeroDivisionError())
    assert heard == ["in the same crash"]


async def test_a_crash_by_an_error_of_ours_is_that_error() -> None:
    life = running()
    cause = UnsupportedVersion("too old")
    life.crashed(cause)
    assert life.why_unusable() is cause


async def test_a_loop_that_ends_the_tasks_is_no_bug() -> None:
    life = running()
    life.crashed(ClosedError("cancelled from outside"))
    assert life.state is LifecycleState.FAILED
    with pytest.raises(ClosedError, match="cancelled from outside"):
        life.check()


# The end


@pytest.mark.parametrize("state", ALL)
async def test_one_call_closes(state: LifecycleState) -> None:
    life = in_state(state)
    if state in {LifecycleState.CLOSING, LifecycleState.CLOSED}:
        assert life.begin_close() is None
        assert life.state is state
    else:
        assert life.begin_close() is state
        assert life.state is LifecycleState.CLOSING
        assert life.begin_close() is None


async def test_others_wait_for_the_call_that_closes() -> None:
    life = running()
    done = asyncio.Event()
    log: list[str] = []

    async def close(name: str) -> None:
        if life.begin_close() is None:
            await life.closed()
        else:
            await life.close(None, done.wait)
        log.append(f"{name} {life.state.value}")

    tasks = [asyncio.create_task(close(name)) for name in ("first", "second")]
    await turns()
    assert log == []
    assert life.state is LifecycleState.CLOSING
    done.set()
    await asyncio.wait(tasks)
    await close("third")
    assert sorted(log) == ["first closed", "second closed", "third closed"]


async def test_it_is_closed_whatever_the_end_raises() -> None:
    life = running()

    async def fail() -> None:
        raise ZeroDivisionError

    life.begin_close()
    with pytest.raises(ZeroDivisionError):
        await life.close(nothing, fail)
    assert life.state is LifecycleState.CLOSED


async def test_the_end_is_reported_once_and_only_of_what_was_started() -> None:
    assert made().ended() is False
    life = running()
    assert [life.ended(), life.ended()] == [True, False]


# What was left open


@pytest.mark.parametrize("state", ALL)
async def test_what_is_left_open(state: LifecycleState) -> None:
    life = in_state(state)
    is_open = state in {
        LifecycleState.STARTING,
        LifecycleState.RUNNING,
        LifecycleState.FAILED,
    }
    assert life.is_open == is_open
    assert life.left_open == ("the thing 'x'" if is_open else None)
    life.has_owner = True
    assert life.left_open is None


class Open(Closeable):
    """Something that must be closed."""

    def __init__(self, log: list[str], life: Lifecycle | None = None) -> None:
        self._life = life or made()
        self._log = log
        self.closing_fails = False

    async def start(self, timeout: float | None = None) -> None:
        self._life.begin()
        self._life.started()

    async def close(self, timeout: float | None = None) -> None:
        if self._life.begin_close() is not None:
            await self._life.close(None, nothing)
        if self.closing_fails:
            raise ZeroDivisionError("closing")

    def _abandon(self) -> None:
        self._life.soon(partial(self._log.append, "parts ended"))


async def test_an_object_that_is_left_open_warns_and_its_parts_end() -> None:
    log: list[str] = []
    forgotten = [Open(log)]
    await forgotten[0].start()
    with pytest.warns(ResourceWarning, match="the thing 'x' was started and never"):
        forgotten.clear()
    assert log == []
    await turns()
    assert log == ["parts ended"]


async def test_an_object_that_was_closed_or_never_made_is_silent() -> None:
    log: list[str] = []
    async with Open(log):
        pass
    Open(log)
    Open.__new__(Open)
    gc.collect()
    assert log == []


def test_it_warns_also_when_its_loop_is_gone() -> None:
    left: list[Open] = []

    async def main() -> None:
        left.append(Open([]))
        await left[0].start()

    asyncio.run(main())
    with pytest.warns(ResourceWarning, match="never closed"):
        left.clear()


async def test_async_with_closes_and_the_first_error_stands() -> None:
    thing = Open([])
    thing.closing_fails = True

    async def leaves_by(error: Exception) -> None:
        async with thing as entered:
            assert entered is thing
            raise error

    with pytest.raises(KeyError) as caught:
        await leaves_by(KeyError("body"))
    assert caught.value.__notes__ == ["and in closing: ZeroDivisionError('closing')"]
    thing = Open([])
    thing.closing_fails = True
    with pytest.raises(ZeroDivisionError):
        async with thing:
            pass


# Home and weak references


async def test_soon_is_for_any_thread_and_no_closed_loop() -> None:
    home, done = Home("the thing"), asyncio.Event()
    thread = threading.Thread(target=home.soon, args=(done.set,))
    thread.start()
    await done.wait()
    thread.join()
    loop = asyncio.new_event_loop()
    home.loop = loop
    loop.close()
    home.soon(done.set)  # nothing happens
    made().soon(done.set)


def test_a_weak_method_keeps_no_object() -> None:
    log: list[int] = []

    class Listener:
        def hear(self, number: int) -> None:
            log.append(number)

    listener = Listener()
    call = weakly(listener.hear)
    call(1)
    del listener
    gc.collect()
    call(2)
    assert log == [1]
