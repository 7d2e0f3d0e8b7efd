"""Runs commands: in this process, and in a pseudo-terminal."""

from __future__ import annotations

import asyncio
import fcntl
import io
import json
import os
import re
import signal
import struct
import sys
import termios
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import jsonschema
from click.testing import CliRunner
from referencing import Registry, Resource

import kafkaio._cli
from kafkaio._cli.main import main
from tests.support.patience import HANGS

SCHEMAS = Path(kafkaio._cli.__file__).parent / "schemas"


@dataclass(frozen=True)
class Result:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What ``--json`` printed."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """The columns that were printed, heads included."""
        return [line.split("\t") for line in self.out.splitlines()]

    @property
    def lines(self) -> list[Any]:
        """What ``--jsonl`` printed."""
        return [json.loads(line) for line in self.out.splitlines()]

    def check(self, code: int = 0) -> Self:
        """Check the exit code."""
        assert self.code == code, self
        return self


def run(*words: str, typed: str | None = None) -> Result:
    """Run a command in this thread, without a terminal.

    What ``--json`` prints is checked against the schema of the command: so the command
    is the first of the words, and its subcommand the second.
    """
    runner = CliRunner()
    with runner.isolation(input=typed) as (out, err, _):
        try:
            code = main(words)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        if not sys.stderr.closed:
            sys.stderr.flush()
    result = Result(int(code), out.getvalue().decode(), err.getvalue().decode())
    if "--json" in words and result.out:
        validate(result.document, *words[:2])
    return result


def run_at_terminal(
    *words: str, typed: str | None = None, columns: int = 150
) -> Result:
    """Run a command in this thread, in a pseudo-terminal of 40 lines.

    Questions are answered with ``y``. What is returned as its output is the screen in
    the end. See `terminal` for a command in a process of its own.

    Args:
        words: as for `run`.
        typed: what comes from a pipe at stdin; None to have the terminal there, too.
        columns: the width of the terminal.
    """
    code, printed = printed_at_terminal(*words, typed=typed, columns=columns)
    return Result(code, screen(printed), "")


def printed_at_terminal(
    *words: str, typed: str | None = None, columns: int = 150
) -> tuple[int, str]:
    """Run a command as `run_at_terminal` does.

    Returns:
        The exit code, and all that it wrote, colours and movements included.
    """
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    received = bytearray()
    reader = threading.Thread(target=_answer, args=(ours, received))
    reader.start()
    pipe = None if typed is None else io.TextIOWrapper(io.BytesIO(typed.encode()))
    before = sys.stdin, sys.stdout, sys.stderr
    try:
        with (
            environment(TERM="xterm-256color", COLUMNS=str(columns), LINES="40"),
            open(theirs, closefd=False) as stdin,
            open(theirs, "w", buffering=1, closefd=False) as out,
            open(theirs, "w", buffering=1, closefd=False) as err,
        ):
            sys.stdin, sys.stdout, sys.stderr = pipe or stdin, out, err
            code = main(words)
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        os.close(theirs)
        reader.join()
        os.close(ours)
    return int(code), received.decode()


def _answer(handle: int, received: bytearray) -> None:
    """Read what a command prints at a terminal; answer its questions."""
    with suppress(OSError):  # the other side is closed
        while found := os.read(handle, 65536):
            received += found
            if received.endswith(b"[y/N]: "):
                os.write(handle, b"y\n")


_PIECES = re.compile(
    r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07]*\x07|\r|\n|[^\x1b\r\n]+"
)


def screen(printed: str) -> str:
    """Return what a terminal shows in the end: lines go over those at the same place.

    It knows what moves the cursor up and what erases a line.
    """
    lines = [""]
    row = column = 0
    for piece in _PIECES.finditer(printed):
        text, count, letter = piece[0], piece[1], piece[2]
        if text == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif text == "\r":
            column = 0
        elif letter == "A":
            row = max(0, row - int(count or 1))
        elif letter == "K":
            lines[row] = "" if count == "2" else lines[row][:column]
        elif not text.startswith("\x1b"):
            line = lines[row].ljust(column)
            lines[row] = line[:column] + text + line[column + len(text) :]
            column += len(text)
    return "\n".join(line.rstrip() for line in lines)


async def run_beside(*words: str, typed: str | None = None) -> Result:
    """Run a command in a thread, beside the event loop of the test."""
    return await asyncio.to_thread(run, *words, typed=typed)


def schema_names(command: str) -> set[str]:
    """Return the names of the schemas of a command."""
    return set(_schema(command)["$defs"])


def validate(document: object, command: str, subcommand: str = "") -> None:
    """Check a document against the schema of a command.

    Args:
        document: what ``--json`` printed, or a line of ``--jsonl``.
        command: the command.
        subcommand: its subcommand, or the name of another schema of the same file.
    """
    names = schema_names(command)
    name = subcommand if subcommand in names else command
    assert name in names, f"schemas/{command}.json has no schema {name}"
    schema = {"$ref": f"{command}.json#/$defs/{name}"}
    jsonschema.Draft202012Validator(
        schema,
        registry=_registry(),
        format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER,
    ).validate(document)


@cache
def _schema(command: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / f"{command}.json").read_text())
    return found


@cache
def _registry() -> Registry[Any]:
    return Registry().with_resources(
        (path.name, Resource.from_contents(_schema(path.stem)))
        for path in SCHEMAS.glob("*.json")
    )


_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\r")


class Terminal:
    """A command that runs in a pseudo-terminal of 100 columns and 30 lines."""

    def __init__(self, process: asyncio.subprocess.Process, handle: int) -> None:
        self._process = process
        self._handle = handle
        self._received = bytearray()
        self._changed = asyncio.Event()
        asyncio.get_running_loop().add_reader(handle, self._read)

    @property
    def raw(self) -> str:
        """Everything that was printed."""
        return self._received.decode(errors="replace")

    @property
    def text(self) -> str:
        """Everything that was printed, without colours and movements of the cursor."""
        return _ESCAPES.sub("", self.raw)

    async def until(self, text: str, seconds: float = HANGS) -> None:
        """Wait until a text was printed."""
        async with asyncio.timeout(seconds):
            while text not in self.text:
                assert not self.is_over or text in self.text, self.text
                self._changed.clear()
                await self._changed.wait()

    def forget(self) -> None:
        """Forget what was printed: `until` waits for what comes next."""
        self._received.clear()

    def type(self, text: str) -> None:
        """Type a text; ``\\x03`` is Ctrl+C."""
        os.write(self._handle, text.encode())

    @property
    def is_over(self) -> bool:
        """Whether the command has ended."""
        return self._process.returncode is not None

    async def ended(self, seconds: float = HANGS) -> int:
        """Wait for the end; return the exit code."""
        async with asyncio.timeout(seconds):
            return await self._process.wait()

    async def interrupted(self, seconds: float = HANGS) -> int:
        """Type Ctrl+C until the command ends; return the exit code.

        A single one is lost if it comes after Python has looked for signals and before
        it waits for input.
        """
        async with asyncio.timeout(seconds):
            while True:
                self.type("\x03")
                with suppress(TimeoutError):
                    return await self.ended(2)

    def _read(self) -> None:
        try:
            received = os.read(self._handle, 65536)
        except OSError:  # the command has closed its side
            received = b""
        if not received:
            asyncio.get_running_loop().remove_reader(self._handle)
        self._received += received
        self._changed.set()

    async def close(self) -> None:
        """End the command, if it still runs."""
        if not self.is_over:
            self._process.send_signal(signal.SIGKILL)
            await self._process.wait()
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)


@asynccontextmanager
async def terminal(*words: str) -> AsyncIterator[Terminal]:
    """Run a command in a pseudo-terminal."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": ""}
    del environment["NO_COLOR"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kafkaio", *words),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        preexec_fn=_take_terminal,
    )
    os.close(theirs)
    running = Terminal(process, ours)
    try:
        yield running
    finally:
        await running.close()


def _take_terminal() -> None:
    """Make the pseudo-terminal the controlling one, so that Ctrl+C is a signal."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Set variables of the environment for a while."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
