"""An asynchronous iterator, one blocking step after the other."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

import pytest

from kafkaio._runtime.blocking import BlockingIterator
from kafkaio.errors import ClosedError, InternalError

ROOT = Path(__file__).parents[3]
NAME = "the reader of numbers"


class Numbers:
    """A source of 0, 1, 2, which notes what happens to it."""

    def __init__(
        self,
        *,
        at: int | None = None,
        do: Callable[[], object] | None = None,
        fails_to_start: bool = False,
    ) -> None:
        self.events: list[str] = []
        self.closed = threading.Event()
        self.thread: threading.Thread | None = None
        self._next = 0
        self._at, self._do = at, do
        self._fails_to_start = fails_to_start

    async def start(self) -> None:
        self.thread = threading.current_thread()
        self.events.append("start")
        if self._fails_to_start:
            raise LookupError("nobody there")

    async def __anext__(self) -> int:
        number = self._next
        self.events.append(f"step {number}")
        await asyncio.sleep(0)
        if number == self._at and self._do is not None:
            self._do()
            await asyncio.get_running_loop().create_future()
        if number == 3:
            raise StopAsyncIteration
        self._next += 1
        return number

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.events.append("close")
        self.closed.set()

    def has_ended(self) -> bool:
        """Whether it was closed, and its thread ends."""
        assert self.thread is not None
        self.thread.join(10)
        return self.closed.is_set() and not self.thread.is_alive()


def test_a_step_is_made_when_it_is_asked_for() -> None:
    source = Numbers()
    numbers = BlockingIterator(source, NAME)
    assert source.events == ["start"]
    assert next(numbers) == 0
    assert source.events == ["start", "step 0"]
    assert list(numbers) == [1, 2]
    assert source.has_ended()
    assert source.thread is not threading.current_thread()
    assert list(numbers) == []


async def test_it_works_where_a_loop_runs() -> None:
    assert list(BlockingIterator(Numbers(), NAME)) == [0, 1, 2]


def test_what_the_start_raises() -> None:
    source = Numbers(fails_to_start=True)
    with pytest.raises(LookupError, match="nobody there"):
        BlockingIterator(source, NAME)
    assert source.has_ended()


def test_a_failure_is_never_taken_for_the_end() -> None:
    def fail() -> None:
        raise LookupError("lost")

    source = Numbers(at=1, do=fail)
    numbers = BlockingIterator(source, NAME)
    assert next(numbers) == 0
    with pytest.raises(LookupError, match="lost"):
        next(numbers)
    assert source.has_ended()
    for _ in range(2):
        with pytest.raises(ClosedError, match=r"failed before: LookupError: lost"):
            next(numbers)


def test_an_interrupt_cancels_the_step() -> None:
    source = Numbers(at=1, do=lambda: os.kill(os.getpid(), signal.SIGINT))
    numbers = BlockingIterator(source, NAME)
    assert next(numbers) == 0
    with pytest.raises(KeyboardInterrupt):
        next(numbers)
    assert source.has_ended()
    with pytest.raises(ClosedError, match="KeyboardInterrupt"):
        next(numbers)


def test_it_ends_when_it_is_closed() -> None:
    source = Numbers()
    with closing(BlockingIterator(source, NAME)) as numbers:
        assert next(numbers) == 0
    assert source.has_ended()
    numbers.close()
    assert list(numbers) == []


def test_it_ends_when_it_is_collected() -> None:
    source = Numbers()
    numbers = BlockingIterator(source, NAME)
    assert list(islice(numbers, 2)) == [0, 1]
    del numbers
    gc.collect()
    assert source.closed.wait(10)
    assert source.has_ended()


def test_closed_in_another_thread_a_step_raises() -> None:
    numbers: list[BlockingIterator[int]] = []
    others: list[threading.Thread] = []

    def close() -> None:
        other = threading.Thread(target=numbers[0].close)
        other.start()
        others.append(other)

    source = Numbers(at=0, do=close)
    numbers.append(BlockingIterator(source, NAME))
    with pytest.raises(ClosedError, match="is closed"):
        next(numbers[0])
    assert source.has_ended()
    others[0].join(10)
    assert not others[0].is_alive()


def test_one_step_at_a_time() -> None:
    numbers, found = BlockingIterator(Numbers(), NAME), set[int]()

    def read() -> None:
        found.update(numbers)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == {0, 1, 2}


def test_a_thread_that_crashes_answers() -> None:
    def crash() -> None:
        raise SystemExit(3)

    numbers = BlockingIterator(Numbers(at=0, do=crash), NAME)
    with pytest.raises(InternalError, match=r"crashed: SystemExit\(3\)"):
        next(numbers)


def run(program: str) -> str:
    """Run a program in a process of its own; what it writes to stderr is a failure."""
    head = (
        "import asyncio, os, sys\n"
        "from tests.unit.runtime.test_blocking import NAME, Numbers\n"
        "from kafkaio._runtime.blocking import BlockingIterator\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", head + program],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_interpreter_exits_while_it_is_open() -> None:
    program = """
class Said(Numbers):
    async def aclose(self):
        print("closed", flush=True)

numbers = BlockingIterator(Said(), NAME)
print(next(numbers), flush=True)
"""
    assert run(program).split() == ["0", "closed"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_that_was_forked_does_not_read() -> None:
    program = """
import warnings
warnings.simplefilter("ignore")  # of threads in a process that forks
numbers = BlockingIterator(Numbers(), NAME)
next(numbers)
if not os.fork():
    try:
        next(numbers)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    numbers.close()
    del numbers
    sys.exit()
os.wait()
print(*numbers, flush=True)
"""
    said, rest = run(program).splitlines()
    assert said.startswith(f"ClosedError {NAME} was started in another process")
    assert rest == "1 2"


def test_no_thread_is_left() -> None:
    with suppress(LookupError):
        BlockingIterator(Numbers(fails_to_start=True), NAME)
    list(BlockingIterator(Numbers(), NAME))
    assert NAME not in {thread.name for thread in threading.enumerate()}
