"""The processes of members: of kafkaio, and of Java."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Final

from kafkaio.testing.kafka._releases import find_release
from tests.support.java import JavaProgram, RunningJava, Toolbox
from tests.torture.journal import Journal
from tests.torture.plan import POLL_SECONDS, SESSION_SECONDS, Settings

_ROOT: Final = Path(__file__).parent.parent.parent
_SOURCES: Final = _ROOT / "tests" / "java" / "group"
#: Java and Kafka's tools, for brokers of all releases.
TOOLS: Final = Toolbox(find_release())
_MEMBER: Final = TOOLS.program(_SOURCES, "TortureMember")
#: A member that copies records in transactions.
JAVA_COPIER: Final = TOOLS.program(_SOURCES, "TortureCopier")
_END_SECONDS: Final = 60.0


class Ours:
    """A process of ours, with members in it.

    Args:
        settings: what the members have in common.
        path: the journal of the process.
        journal: where its death is told.
        module: what it runs; its arguments are `settings`, `path` and `extra`.
        extra: further arguments.
    """

    def __init__(
        self,
        settings: Settings,
        path: Path,
        journal: Journal,
        module: str = "tests.torture.worker",
        *extra: str,
    ) -> None:
        #: The members that were told to join, since this process was started.
        self.members: set[str] = set()
        self._settings = settings
        self._path = path
        self._journal = journal
        self._module = module
        self._extra = extra
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", self._module),
            *(self._settings.dumps(), str(self._path), *self._extra),
            stdin=asyncio.subprocess.PIPE,
            cwd=_ROOT,
        )

    def tell(self, do: str, **details: object) -> None:
        """Send it a command; see `tests.torture.worker`."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write((json.dumps({"do": do} | details) + "\n").encode())

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it is running."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def kill(self) -> None:
        """Kill it (SIGKILL), and with it all of its members."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
            for name in self.members:
                self._journal.write(name, "killed")
        self.members.clear()

    async def end(self) -> None:
        """Have all members leave, and wait for the end of the process.

        Raises:
            TimeoutError: it has not.
            RuntimeError: it failed.
        """
        assert self._process is not None
        if self._process.returncode is None:
            self.tell("end")
        async with asyncio.timeout(_END_SECONDS):
            status = await self._process.wait()
        if status:
            raise RuntimeError(f"a process of members ended with {status}")


class Java:
    """A member of Java, in a process of its own.

    Args:
        name: of the member.
        protocol: how it is in the group.
        settings: what all members have in common.
        directory: where journals are.
        journal: where its death is told.
        program: what it runs.
        extra: further arguments of the program.
    """

    def __init__(
        self,
        name: str,
        protocol: str,
        settings: Settings,
        directory: Path,
        journal: Journal,
        program: JavaProgram = _MEMBER,
        *extra: str,
    ) -> None:
        self._name = name
        self._protocol = protocol
        self._settings = settings
        self._path = directory / f"{name}.journal"
        self._journal = journal
        self._source = program
        self._extra = extra
        self._program: RunningJava | None = None

    async def start(self) -> None:
        program = await self._source.start(
            self._settings.bootstrap,
            *(self._settings.group, self._settings.topic),
            *(self._protocol, self._name, str(self._path)),
            *(str(round(s * 1000)) for s in (SESSION_SECONDS, POLL_SECONDS)),
            *self._extra,
        )
        self._program = await program.__aenter__()

    async def kill(self) -> None:
        """Kill it (SIGKILL)."""
        if self._program is not None:
            await self._program.__aexit__(None, None, None)
            self._journal.write(self._name, "killed")
            self._program = None

    async def end(self) -> None:
        """Have it leave, and wait for its end.

        Raises:
            TimeoutError: it has not.
            RuntimeError: it failed.
        """
        if self._program is None:
            return
        program, self._program = self._program, None
        try:
            await program.close_input()
            if status := await program.wait(_END_SECONDS):
                raise RuntimeError(f"a member of Java: {status}: {program.stderr}")
        finally:
            await program.__aexit__(None, None, None)
