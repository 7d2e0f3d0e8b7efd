"""The same little programs with anyio's scopes and groups, and with ours.

A program is a random tree of blocks. It runs on a clock of its own.
The time of each step, what each scope says afterwards, and what comes out are equal.
"""

from __future__ import annotations

import asyncio
import random
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, TypeAlias
from zlib import crc32

import anyio
import pytest

from kafkaio._runtime.group import TaskGroup
from kafkaio._runtime.scopes import CancelScope
from tests.virtual_loop import VirtualClockLoop

VERSION = tuple(map(int, version("anyio").split(".")[:2]))

#: Programs of each seed.
PROGRAMS = 30

#: A step is its name and its arguments, some of which are blocks of steps.
Step: TypeAlias = tuple[Any, ...]
Block: TypeAlias = list[Step]


#: The task that runs.
WHO: ContextVar[str] = ContextVar("who", default="main")


@dataclass
class Kit:
    scope: Callable[..., Any]
    group: Callable[..., Any]


ANYIO = Kit(anyio.CancelScope, anyio.create_task_group)
OURS = Kit(CancelScope, TaskGroup)


def apart(what: str) -> float:
    """Return seconds that keep two events from happening at the same time."""
    return crc32(f"{WHO.get()} {what}".encode()) % 9973 / 10_000


class Program:
    """Runs a program, and writes down what happens in each task."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.logs: dict[str, list[tuple[object, ...]]] = {}
        #: By the task that has entered them, in its order.
        self.scopes: defaultdict[str, list[Any]] = defaultdict(list)
        self.groups: Counter[str] = Counter()
        #: How often each task was cancelled by something else than a scope.
        self.cancelled: Counter[asyncio.Task[object]] = Counter()

    def note(self, *what: object) -> None:
        loop = asyncio.get_running_loop()
        # Which task runs first in a turn of the loop does not matter.
        log = self.logs.setdefault(WHO.get(), [])
        log.append((round(loop.time(), 3), *what))

    async def run(self, block: Block) -> None:
        for what, *arguments in block:
            await getattr(self, what)(*arguments)
            self.note("after", what)

    async def turn(self) -> None:
        await asyncio.sleep(0)

    async def wait(self, seconds: int) -> None:
        await asyncio.sleep(seconds + apart("wait"))

    async def wait_for_task(self, seconds: int) -> None:
        await asyncio.create_task(asyncio.sleep(seconds + apart("wait for")))

    def found(self, number: int) -> list[Any]:
        """Return a scope of this task, or one of the first; none if there is none."""
        scopes = self.scopes[WHO.get() if number < 2 else "main"]
        return scopes[number % 2 : number % 2 + 1]

    async def cancel(self, number: int) -> None:
        for scope in self.found(number):
            scope.cancel()

    async def cancel_later(self, number: int, seconds: int) -> None:
        loop = asyncio.get_running_loop()
        for scope in self.found(number):
            loop.call_later(seconds + apart("scope"), scope.cancel)

    def cancel_task(self, task: asyncio.Task[object]) -> None:
        self.cancelled[task] += task.cancel()

    async def task_cancel_later(self, seconds: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        cancel = partial(self.cancel_task, task)
        asyncio.get_running_loop().call_later(seconds + apart("task"), cancel)

    async def both_cancel_later(self, number: int, native_first: bool) -> None:
        task = asyncio.current_task()
        assert task is not None
        calls = [scope.cancel for scope in self.found(number)]
        cancel = partial(self.cancel_task, task)
        calls.insert(0 if native_first else len(calls), cancel)
        for call in calls:
            asyncio.get_running_loop().call_later(1 + apart("both"), call)

    async def fail(self) -> None:
        raise ValueError

    async def swallow(self, block: Block) -> None:
        try:
            await self.run(block)
        except asyncio.CancelledError:
            self.note("swallowed")

    async def tidy(self, block: Block, after: Block) -> None:
        try:
            await self.run(block)
        finally:
            self.note("tidies")
            await self.run(after)

    async def replace(self, block: Block) -> None:
        try:
            await self.run(block)
        except asyncio.CancelledError:
            raise asyncio.CancelledError  # noqa: B904

    async def timeout(self, seconds: int, block: Block) -> None:
        try:
            async with asyncio.timeout(seconds + apart("timeout")):
                await self.run(block)
        except TimeoutError:
            self.note("timed out")

    def make(self, deadline: int | None, shield: bool, *, early: bool) -> Any:
        loop, scopes = asyncio.get_running_loop(), self.scopes[WHO.get()]
        scope = self.kit.scope(shield=shield)
        if deadline is not None:
            scope.deadline = loop.time() + deadline + apart(f"deadline {len(scopes)}")
        if early:
            scope.cancel()
        scopes.append(scope)
        return scope

    async def scope(
        self, deadline: int | None, shield: bool, early: bool, block: Block
    ) -> None:
        scope = self.make(deadline, shield, early=early)
        task = asyncio.current_task()
        assert task is not None
        try:
            with scope:
                await self.run(block)
        finally:
            self.note("left", scope.cancel_called, scope.cancelled_caught)

    async def child(self, name: str, block: Block) -> None:
        WHO.set(name)
        try:
            await self.run(block)
        finally:
            self.note("child ended")

    async def group(self, block: Block, children: list[Block]) -> None:
        try:
            async with self.kit.group() as group:
                self.scopes[WHO.get()].append(group.cancel_scope)
                self.groups[WHO.get()] += 1
                name = f"{WHO.get()}.{self.groups[WHO.get()]}"
                for number, child in enumerate(children):
                    group.start_soon(self.child, f"{name}.{number}", child)
                await self.run(block)
        except* ValueError:
            self.note("a group failed")


class LostCancellation(Exception):
    """A scope has taken a cancellation of the task back that was not its own."""


def outcome(kit: Kit, program: Block) -> object:
    made = Program(kit)

    async def main() -> object:
        task = asyncio.create_task(made.run(program))
        await asyncio.wait([task])
        error = None if task.cancelled() else task.exception()
        made.note("ended", task.cancelled(), repr(error))
        if task.cancelling() != made.cancelled[task]:
            raise LostCancellation
        left = asyncio.all_tasks() - {asyncio.current_task()}
        return made.logs, len(left)

    with (
        warnings.catch_warnings(),
        asyncio.Runner(loop_factory=VirtualClockLoop, debug=False) as runner,
    ):
        warnings.simplefilter("error")
        return runner.run(main())


class Author:
    """Writes programs."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def block(self, depth: int) -> Block:
        return [self.step(depth) for _ in range(self.dice.randint(1, 4))]

    def step(self, depth: int) -> Step:
        dice = self.dice
        if depth == 0 or dice.random() < 0.45:
            number, seconds = dice.randrange(4), dice.randrange(5)
            leaves: list[Step] = [
                ("turn",),
                ("wait", seconds),
                ("wait", seconds),
                ("wait_for_task", seconds),
                ("cancel", number),
                ("cancel_later", number, seconds),
                ("task_cancel_later", seconds),
                ("both_cancel_later", number, dice.random() < 0.5),
                ("fail",),
            ]
            return dice.choices(leaves, weights=[3, 3, 3, 3, 2, 3, 1, 1, 1])[0]
        inner = depth - 1
        what = dice.choice(["scope", "scope", "scope", "group", "group", *WRAPPERS])
        match what:
            case "scope":
                deadline = dice.choice([None, None, -1, 0, 1, 2, 4])
                shield, early = dice.random() < 0.3, dice.random() < 0.15
                return what, deadline, shield, early, self.block(inner)
            case "group":
                children = [self.block(inner) for _ in range(dice.randint(1, 3))]
                return what, self.block(inner), children
            case "tidy":
                return what, self.block(inner), self.block(inner)
            case "timeout":
                return what, dice.randrange(5), self.block(inner)
            case _:
                return what, self.block(inner)


WRAPPERS = ["swallow", "tidy", "replace", "timeout"]


@pytest.mark.skipif(VERSION < (4, 16), reason="older ones lose cancellations")
@pytest.mark.parametrize("seed", range(20))
def test_programs_run_as_with_anyio(seed: int) -> None:
    author = Author(seed)
    for _ in range(PROGRAMS):
        program = author.block(author.dice.randint(1, 3))
        ours = outcome(OURS, program)
        # Where groups are in groups, anyio 4.16 may do so.
        with suppress(LostCancellation):
            assert ours == outcome(ANYIO, program), program
