"""Run Kafka's own command line tools against a cluster."""

import contextlib
import functools
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TypeAlias

import anyio
import anyio.to_thread
from anyio.abc import Process

from kafkaio._public import public
from kafkaio.testing._broker.lock import DirectoryLock
from kafkaio.testing.kafka._jars import fetch_jars, pinned
from kafkaio.testing.kafka._java import ClassArchive, Java, find_java
from kafkaio.testing.kafka._releases import Release
from tests.support.patience import HANGS

_File: TypeAlias = int | IO[bytes]

_QUIET: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
_SMALL: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_TRAINED: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"


@public("kafkaio.testing.kafka")
@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a program wrote, and how it ended.

    Attributes:
        returncode: 0 on success.
        stdout: Its standard output.
        stderr: Its standard error, where Kafka's logs go.
    """

    returncode: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        """The lines of its standard output."""
        return self.stdout.splitlines()


@functools.cache
def tool_jars(version: str) -> tuple[Path, ...]:
    """Return the jars of broker, clients and tools, fetching those that are missing.

    Args:
        version: A full version, such as ``4.3.1``.

    Raises:
        KafkaNotStarted: A jar could not be fetched.
    """
    return tuple(fetch_jars(pinned(version, "broker") + pinned(version, "tools")))


def java_command(
    java: Java,
    classpath: Sequence[Path],
    main: str,
    *args: str,
    extra: Sequence[Path] = (),
) -> list[str | Path]:
    """Return the command line of a main class.

    Args:
        java: The launcher.
        classpath: Kafka's jars.
        main: The class.
        *args: What it is given.
        extra: Where further classes are; they come last, for an archive of classes
            holds those of the jars before them.
    """
    path = os.pathsep.join(map(str, [*classpath, *extra]))
    archived = ClassArchive(java, classpath, _SMALL).use_flags()
    return [java.path, *_SMALL, *archived, _QUIET, "-cp", path, main, *args]


@functools.cache
def archive_classes(java: Java, classpath: tuple[Path, ...]) -> None:
    """Write an archive of loaded classes: programs need two thirds of the CPU to start.

    Blocks for seconds, the first time on a machine. Processes that need it at the same
    time start without one, but for the process that writes it.
    """
    archive = ClassArchive(java, classpath, _SMALL)
    archive.path.parent.mkdir(parents=True, exist_ok=True)
    lock = DirectoryLock(archive.path.parent)
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        try:
            lock.acquire()
        except OSError:
            return
        stack.callback(lock.release)
        output = Path(scratch, "classes")
        if flags := archive.train_flags(output):
            # It finds no broker and ends; until then it loads what all clients load.
            nobody = ("--bootstrap-server", "127.0.0.1:1", "--topic", "t")
            command = java_command(
                java, classpath, _TRAINED, *nobody, "--timeout-ms", "100"
            )
            command[1:1] = flags
            subprocess.run(command, capture_output=True, timeout=HANGS, check=False)
            archive.keep(output)


async def run_release_tool(
    release: Release,
    main: str,
    *args: str,
    stdin: str = "",
    timeout: float = 60.0,
) -> ToolOutput:
    """Run a tool of a release to its end; see `run_tool`.

    Raises:
        TimeoutError: It took longer than ``timeout`` seconds and was killed.
    """

    def command() -> list[str | Path]:
        java = find_java(release.minimum_java)
        return java_command(java, tool_jars(release.version), main, *args)

    found = await anyio.to_thread.run_sync(command)
    return await run_program(found, stdin=stdin, timeout=timeout)


async def run_program(
    command: Sequence[str | Path],
    *,
    stdin: str = "",
    timeout: float = 60.0,
) -> ToolOutput:
    """Run a command to its end; it is killed on timeout and on cancellation.

    Raises:
        TimeoutError: It took longer than ``timeout`` seconds.
    """
    # Files, not pipes: no task has to drain them, and none can fill up and block.
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin.encode())
        given.seek(0)
        process = await start_program(command, given, out, err)
        try:
            with anyio.fail_after(timeout):
                returncode = await process.wait()
        finally:
            await end_program(process)
        return ToolOutput(returncode, _text(out), _text(err))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


async def start_program(
    command: Sequence[str | Path], stdin: _File, stdout: _File, stderr: _File
) -> Process:
    """Start a process.

    The call is shielded: a process whose start is cancelled half-way would never be
    reaped by asyncio.
    """
    words = [str(word) for word in command]
    with anyio.CancelScope(shield=True):
        process = await anyio.open_process(
            words, stdin=stdin, stdout=stdout, stderr=stderr
        )
    return process  # noqa: RET504 - returned inside, mypy misses a return


async def end_program(process: Process) -> None:
    """Kill a process if it runs, and wait until it has ended."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    with anyio.CancelScope(shield=True):
        await process.aclose()
