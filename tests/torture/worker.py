"""A process with members of the group, which reads commands from standard input.

Each line of the input is a command in JSON, such as ``{"do": "leave", "member": "7"}``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from kafkaio import Consumer, Record
from tests.torture.journal import DIRECTOR, Journal, Watch
from tests.torture.plan import JOIN_SECONDS, Settings
from tests.torture.styles import AUTOMATIC, STYLES


class Member:
    """A member of the group, from its start to its end.

    Args:
        name: what it is called in the journal.
        style: how it works.
        settings: what all members have in common.
        journal: where it tells what it does.
    """

    def __init__(
        self, name: str, style: str, settings: Settings, journal: Journal
    ) -> None:
        self.name = name
        self.stopping = asyncio.Event()
        self._style = style
        self._settings = settings
        self._journal = journal
        self._rng = random.Random(f"{settings.seed} {name}")
        self._stall = 0.0

    def stall(self, seconds: float) -> None:
        """Make the next record take that long."""
        self._stall = seconds

    def tell(self, word: str, *details: object) -> None:
        self._journal.write(self.name, word, *details)

    async def work(self, record: Record) -> None:
        """Process a record, which mostly takes a moment."""
        stall, self._stall = self._stall, 0.0
        if stall:
            self.tell("stalling", f"{stall:.1f}", record.partition, record.offset)
        pause = stall or self._rng.choice((0, 0, 0, 0, 0.001, 0.01))
        await asyncio.sleep(pause)
        assert record.value is not None
        self.tell(
            "did", record.partition, record.offset, *record.value.decode().split()
        )

    async def live(self, protocol: str) -> None:
        """Run the member until it is told to leave."""
        options = self._settings.options(protocol)
        options["client_id"] = self.name
        options["enable_auto_commit"] = self._style in AUTOMATIC
        consumer = Consumer(
            self._settings.bootstrap,
            topics=self._settings.topic,
            observer=Watch(self._journal, self.name),
            **options,
        )
        self.tell("joining", self._style, protocol)
        try:
            await consumer.start(JOIN_SECONDS)
            self.tell("joined")
            await STYLES[self._style](self, consumer)
        finally:
            await consumer.close()
        self.tell("left")


class Lives(Protocol):
    """A member, as far as its process knows it."""

    name: str
    stopping: asyncio.Event

    def stall(self, seconds: float) -> None:
        """Make the next work take that long."""
        ...

    def tell(self, word: str, *details: object) -> None:
        """Write to the journal."""
        ...

    async def live(self, protocol: str) -> None:
        """Run the member until `stopping` is set."""
        ...


#: Makes a member of a name and a style.
Makes = Callable[[str, str], Lives]


class Process:
    """All members of this process.

    Args:
        tasks: where they live.
        settings: what they have in common.
        journal: where they tell what they do.
        make: makes a member.
    """

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        settings: Settings,
        journal: Journal,
        make: Makes,
    ) -> None:
        self._tasks = tasks
        self._settings = settings
        self._journal = journal
        self._make = make
        self._members: dict[str, tuple[Lives, asyncio.Task[None]]] = {}

    async def _live(self, member: Lives, protocol: str) -> None:
        try:
            await member.live(protocol)
        except Exception as error:  # noqa: BLE001  (the verdict tells it)
            member.tell("failed", _reason(error))
        finally:
            del self._members[member.name]

    def obey(self, command: dict[str, object]) -> bool:
        """Execute a command; return whether the process goes on."""
        name, seconds = (
            str(command.get("member")),
            float(str(command.get("seconds", 0))),
        )
        member, task = self._members.get(name, (None, None))
        match command["do"]:
            case "join":
                self._join(name, str(command["style"]), str(command["protocol"]))
            case "leave" if member:
                member.stopping.set()
            case "cancel" if task:
                self._journal.write(name, "cancelled")
                task.cancel()
                # Possibly once more, while it cleans up.
                asyncio.get_running_loop().call_later(seconds, task.cancel)
            case "stall" if member:
                member.stall(seconds)
            case "block":
                self._block(seconds)
            case "end":
                for each, _ in self._members.values():
                    each.stopping.set()
                return False
            case _:  # the member is gone already
                pass
        return True

    def _join(self, name: str, style: str, protocol: str) -> None:
        member = self._make(name, style)
        task = self._tasks.create_task(self._live(member, protocol))
        self._members[name] = member, task

    def _block(self, seconds: float) -> None:
        """Block the whole process for a while."""
        self._journal.write(DIRECTOR, "blocked", f"{seconds:.1f}")
        if self._settings.is_stall(seconds):
            for name in self._members:
                self._journal.write(name, "stalling", f"{seconds:.1f}")
        time.sleep(seconds)


def _reason(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return " + ".join(_reason(e) for e in error.exceptions)
    return f"{type(error).__name__}: {error}"


async def run(settings: Settings, journal: Journal, make: Makes) -> None:
    """Obey the commands of standard input until the last one."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    async with asyncio.TaskGroup() as tasks:
        process = Process(tasks, settings, journal, make)
        while line := await reader.readline():
            if not process.obey(json.loads(line)):
                break
        else:  # the director is gone
            raise SystemExit(1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("settings", type=Settings.loads)
    parser.add_argument("journal", type=Path)
    args = parser.parse_args()
    settings, journal = args.settings, Journal(args.journal)
    asyncio.run(
        run(
            settings,
            journal,
            lambda name, style: Member(name, style, settings, journal),
        )
    )
    journal.close()


if __name__ == "__main__":
    main()
