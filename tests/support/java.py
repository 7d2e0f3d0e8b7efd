"""Java programs of our own, compiled and run against Kafka's classes.

Tests compare kafkaio with them. Kafka's own tools run on the same class path.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import anyio
import anyio.to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from kafkaio.testing.kafka._jars import cache_directory
from kafkaio.testing.kafka._java import Java, find_java
from kafkaio.testing.kafka._releases import KafkaNotStarted, Release
from tests.support.kafka.tools import (
    ToolOutput,
    archive_classes,
    end_program,
    java_command,
    run_program,
    start_program,
    tool_jars,
)
from tests.support.patience import HANGS

_LONGEST_LINE: Final = 16 * 1024 * 1024


class JavaFailed(RuntimeError):
    """A Java program or the compiler ended with an error; carries its output."""


class RunningJava:
    """A Java program that runs on: read its lines, write to it, end it.

    Made by `JavaProgram.start` or `Toolbox.start`; an async context manager that
    kills the program on the way out, also when cancelled. Standard error goes to
    the file `stderr`, which lives as long as the block.
    """

    def __init__(self, command: Sequence[str | Path]):
        self._command = command
        self._process: Process | None = None
        self._lines: BufferedByteReceiveStream | None = None
        self._log = Path()

    async def __aenter__(self) -> Self:
        handle, name = tempfile.mkstemp(prefix="kafkaio-java-", suffix=".log")
        self._log = Path(name)
        try:
            self._process = await start_program(
                self._command, subprocess.PIPE, subprocess.PIPE, handle
            )
        except BaseException:
            self._log.unlink()
            raise
        finally:
            os.close(handle)
        assert self._process.stdout is not None  # a pipe, asked for above
        self._lines = BufferedByteReceiveStream(self._process.stdout)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await end_program(self._running)
        finally:
            self._log.unlink(missing_ok=True)

    @property
    def _running(self) -> Process:
        if self._process is None:
            raise RuntimeError("use `async with`")
        return self._process

    @property
    def pid(self) -> int:
        """The process id."""
        return self._running.pid

    @property
    def stderr(self) -> str:
        """What it has written to standard error so far."""
        return self._log.read_text("utf-8", "replace")

    async def readline(self, timeout: float = HANGS) -> str:
        """Return the next line of standard output, without its end.

        If cancelled or timed out, what had come of the line stays for the next call.

        Raises:
            TimeoutError: No whole line came in `timeout` seconds.
            JavaFailed: The program has ended; the message is its standard error.
        """
        if self._lines is None:
            raise RuntimeError("use `async with`")
        try:
            with anyio.fail_after(timeout):
                data = await self._lines.receive_until(b"\n", _LONGEST_LINE)
        except (anyio.EndOfStream, anyio.IncompleteRead):
            raise JavaFailed(f"no further line:\n{self.stderr}") from None
        return data.decode("utf-8", "replace").rstrip("\r")

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        try:
            return await self.readline(float("inf"))
        except JavaFailed:
            raise StopAsyncIteration from None

    async def write(self, text: str) -> None:
        """Write to its standard input."""
        assert self._running.stdin is not None
        await self._running.stdin.send(text.encode())

    async def close_input(self) -> None:
        """Close its standard input."""
        assert self._running.stdin is not None
        await self._running.stdin.aclose()

    def terminate(self) -> None:
        """Ask it to end (SIGTERM); Java runs its shutdown hooks."""
        self._running.terminate()

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self._running.kill()

    async def wait(self, timeout: float = HANGS) -> int:
        """Wait until it ends, and return its exit code.

        Raises:
            TimeoutError: It runs on after `timeout` seconds.
        """
        with anyio.fail_after(timeout):
            return await self._running.wait()


class Toolbox:
    """Java, and the class path of one release with all its tools.

    Attributes:
        java: The launcher.
        classpath: Broker, clients and tools, fetched when first asked for.
    """

    def __init__(self, release: Release):
        self._release = release
        self._classpath: list[Path] = []
        self._java: Java | None = None

    @property
    def java(self) -> Java:
        """The Java that runs the tools; the first use blocks to find it."""
        if self._java is None:
            self._java = find_java(self._release.minimum_java)
        return self._java

    @property
    def classpath(self) -> list[Path]:
        """The jars of clients, broker and tools; the first use blocks to fetch them."""
        if not self._classpath:
            self._classpath = list(tool_jars(self._release.version))
        return list(self._classpath)

    def command(
        self, main: str, *args: str, extra: Sequence[Path] = ()
    ) -> list[str | Path]:
        """Return the command line of a main class; the first call blocks."""
        classpath = tuple(self.classpath)
        archive_classes(self.java, classpath)
        return java_command(self.java, classpath, main, *args, extra=extra)

    async def run(
        self,
        main: str,
        *args: str,
        stdin: str = "",
        timeout: float = HANGS,
    ) -> ToolOutput:
        """Run a tool to its end, such as ``org.apache.kafka.tools.ConsoleConsumer``.

        Raises:
            TimeoutError: It took longer than `timeout` seconds and was killed.
        """
        command = await anyio.to_thread.run_sync(lambda: self.command(main, *args))
        return await run_program(command, stdin=stdin, timeout=timeout)

    async def start(self, main: str, *args: str) -> RunningJava:
        """Return a tool to run on under ``async with await toolbox.start(...)``."""
        command = await anyio.to_thread.run_sync(lambda: self.command(main, *args))
        return RunningJava(command)

    def program(self, source: Path, main: str | None = None) -> "JavaProgram":
        """Return a program of ours: a ``.java`` file, or a directory of them."""
        return JavaProgram(source, self, main)


def compiler_of(java: Java) -> Path:
    """Return `javac`: the one beside the launcher, else the one on PATH.

    Raises:
        KafkaNotStarted: Neither exists; a runtime alone has no compiler.
    """
    beside = java.path.resolve().with_name("javac")
    if beside.exists():
        return beside
    if found := shutil.which("javac"):
        return Path(found)
    raise KafkaNotStarted(f"no javac beside {java.path} or on PATH: install a JDK")


class JavaProgram:
    """A small Java program, compiled against Kafka when first run.

    ::

        program = toolbox.program(Path("tests/java/Echo.java"))
        output = await program.run(kafka.bootstrap_servers, "topic", stdin="x")
        assert output.lines == ["topic x"]

        async with await program.start(kafka.bootstrap_servers) as member:
            assert await member.readline() == "joined"

    Args:
        source: A ``.java`` file, or a directory whose files are compiled together.
        toolbox: Where Java and the class path come from.
        main: The main class; by default the file's name, or ``Main``.
    """

    def __init__(self, source: Path, toolbox: Toolbox, main: str | None = None):
        self._source = source
        self._toolbox = toolbox
        self._main = main or (source.stem if source.suffix == ".java" else "Main")

    async def run(
        self,
        *args: str,
        stdin: str = "",
        timeout: float = HANGS,
    ) -> ToolOutput:
        """Run the program to its end; the time to compile it is not counted.

        Raises:
            JavaFailed: It does not compile; the message is the compiler's.
            TimeoutError: It took longer than `timeout` seconds and was killed.
        """
        command = await anyio.to_thread.run_sync(lambda: self._command(args))
        return await run_program(command, stdin=stdin, timeout=timeout)

    async def start(self, *args: str) -> RunningJava:
        """Return the program to run on under ``async with await program.start()``.

        Raises:
            JavaFailed: It does not compile; the message is the compiler's.
        """
        command = await anyio.to_thread.run_sync(lambda: self._command(args))
        return RunningJava(command)

    async def jar(self, target: Path) -> Path:
        """Write the classes as a jar, for a broker's class path; return it.

        Raises:
            JavaFailed: They do not compile; the message is the compiler's.
        """
        classes = await anyio.to_thread.run_sync(self._compiled)
        with zipfile.ZipFile(target, "w") as jar:
            for file in sorted(classes.rglob("*.class")):
                jar.write(file, file.relative_to(classes))
        return target

    def command(self, *args: str) -> list[str | Path]:
        """Return the command line; the first call compiles, and blocks.

        Raises:
            JavaFailed: It does not compile; the message is the compiler's.
        """
        return self._command(args)

    def _command(self, args: Sequence[str]) -> list[str | Path]:
        classes = self._compiled()
        return self._toolbox.command(self._main, *args, extra=[classes])

    def _files(self) -> list[Path]:
        if self._source.is_dir():
            return sorted(self._source.rglob("*.java"))
        return [self._source]

    def _compiled(self) -> Path:
        """Return the directory of the classes, compiled once for these sources."""
        digest = hashlib.sha256()
        for part in (self._toolbox.java.path, *self._toolbox.classpath):
            digest.update(str(part).encode())
        for file in self._files():
            digest.update(str(file).encode() + file.read_bytes())
        target = cache_directory() / "programs" / digest.hexdigest()[:16]
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            self._compile(target)
        return target

    def _compile(self, target: Path) -> None:
        path = os.pathsep.join(map(str, self._toolbox.classpath))
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            classes = Path(scratch, "classes")
            answer = subprocess.run(
                [
                    compiler_of(self._toolbox.java),
                    *("-nowarn", "-cp", path, "-d", classes),
                    *self._files(),
                ],
                capture_output=True,
                text=True,
                timeout=HANGS,
                check=False,
            )
            if answer.returncode:
                raise JavaFailed(f"javac: {answer.stdout}{answer.stderr}")
            # Another process may have been faster; its classes are the same.
            with contextlib.suppress(OSError):
                classes.rename(target)
