"""What is watched while answers lie, and what counts as a finding."""

from __future__ import annotations

import asyncio
import gc
import resource
import time
import traceback
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from kafkaio.errors import Fenced, InternalError, KafkaError

__all__ = ["Finding", "Watch"]

T = TypeVar("T")
#: Seconds beyond its limit that a call may take on a busy machine.
_GRACE: Final = 4.0
#: Seconds that the event loop may stand still on a busy machine.
_STILL: Final = 1.0
#: Share of the time that the process may be busy while its calls wait.
_BUSY: Final = 0.85
_MEMORY: Final = 200 * 1024


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not happen.

    Attributes:
        kind: which kind of thing.
        text: what happened, with the traceback if there is one.
    """

    kind: str
    text: str


@dataclass(slots=True)
class Watch:
    """Watches one run.

    Attributes:
        findings: what was found.
        errors: how often each kind of error was raised, and rightly so.
        last: the last of them.
        replace: how many of them said that what raised them has to be replaced.
    """

    findings: list[Finding] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)
    replace: int = 0
    last: str = ""
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    _ticker: asyncio.Task[None] | None = None
    _began: tuple[float, float, int] = (0.0, 0.0, 0)

    def begin(self) -> None:
        """Watch the running loop from now on."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._on_loop)
        self._tasks = asyncio.all_tasks()
        self._ticker = asyncio.create_task(self._tick(), name="watch")
        self._began = (time.monotonic(), time.process_time(), _memory())

    def found(self, kind: str, text: str) -> None:
        """Note something that must not happen."""
        self.findings.append(Finding(kind, text))

    async def call(
        self, name: str, within: float, work: Awaitable[T], *, quiet: bool = True
    ) -> T | None:
        """Await a call that has a limit, and judge what it raises.

        Args:
            name: of the call.
            within: its limit in seconds.
            work: the call.
            quiet: whether errors of Kafka are nothing to speak of.
        """
        began = time.monotonic()
        try:
            async with asyncio.timeout(within + 3 * _GRACE):
                return await work
        except TimeoutError as error:
            if not isinstance(error, KafkaError):
                self.found("over its limit", f"{name} did not end {3 * _GRACE} s late")
            self._note(error)
        except Exception as error:  # noqa: BLE001 - judged here
            self._judge(name, error)
            if not quiet:
                self.errors[f"{name}: {error!r}"[:300]] = 1
        took = time.monotonic() - began
        if took > within + _GRACE:
            self.found("over its limit", f"{name} took {took:.1f} s of {within} s")
        return None

    def _judge(self, name: str, error: BaseException) -> None:
        if isinstance(error, BaseExceptionGroup):
            for each in error.exceptions:
                self._judge(name, each)
        elif isinstance(error, InternalError) or not isinstance(error, KafkaError):
            text = "".join(traceback.format_exception(error))
            self.found("no error of Kafka", f"{name}: {text}")
        else:
            self._note(error)

    def _note(self, error: BaseException) -> None:
        # Those that say that what raised them has to be replaced.
        self.last = repr(error)
        text = str(error)
        says_so = "replace" in text or "make another one" in text
        self.replace += isinstance(error, Fenced) or says_so
        name = type(error).__name__
        self.errors[name] = self.errors.get(name, 0) + 1

    def _on_loop(
        self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]
    ) -> None:
        del loop
        error = context.get("exception")
        text = "".join(traceback.format_exception(error)) if error else ""
        self.found("at the loop", f"{context.get('message')}: {text}")

    async def _tick(self) -> None:
        while True:
            at = time.monotonic()
            busy = time.process_time()
            await asyncio.sleep(0.05)
            late = time.monotonic() - at - 0.05
            if late > _STILL and time.process_time() - busy > 0.7 * late:
                self.found("loop blocked", f"the loop stood still for {late:.1f} s")

    def rest(self, what: str) -> None:
        """Compare time and memory since `begin`, or since the last `rest`."""
        at, cpu, memory = self._began
        took = time.monotonic() - at
        share = (time.process_time() - cpu) / max(took, 0.1)
        if share > _BUSY and took > 1.5:
            self.found("busy", f"{what}: {share:.0%} of the CPU for {took:.1f} s")
        grown = _memory() - memory
        if grown > _MEMORY:
            self.found("memory", f"{what}: {grown // 1024} MiB more")
        self._began = (time.monotonic(), time.process_time(), _memory())

    async def end(self) -> None:
        """Look for tasks that are left; everything else was closed."""
        assert self._ticker is not None
        self._ticker.cancel()
        left: list[asyncio.Task[Any]] = []
        for _ in range(40):
            left = [
                task
                for task in asyncio.all_tasks() - self._tasks
                if task is not self._ticker and task.get_name() != "proxy"
            ]
            if not left:
                break
            await asyncio.sleep(0.05)
        for task in left:
            self.found("task left", repr(task))
        gc.collect()  # errors that nobody retrieved are reported now
        await asyncio.sleep(0)


def _memory() -> int:
    """The most memory that this process has had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
