"""Reads stdin or files: whole, or in pieces without blocking the event loop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO, Final

from kafkaio._cli.text.exits import CommandFailed, Exit

#: Bytes of a piece. Other tasks run between two pieces.
_SIZE: Final = 256 * 1024


def text_of(path: str | Path) -> str:
    """Return the text of a file, or that of stdin for ``-``.

    Raises:
        CommandFailed: the file cannot be read, or is not UTF-8.
    """
    try:
        if str(path) == "-":
            return sys.stdin.read()
        return Path(path).read_text("utf-8")
    except OSError as error:
        text = f"{path}: {error.strerror or error}"
        raise CommandFailed(text, Exit.USAGE) from None
    except ValueError:
        raise CommandFailed(f"{path}: not text in UTF-8", Exit.USAGE) from None


async def pieces(path: str | None) -> AsyncIterator[bytes]:
    """Yield the bytes of a file, or of stdin, as they arrive.

    A cancellation takes effect while a terminal or a pipe has nothing to read.

    Raises:
        CommandFailed: the file cannot be read.
    """
    if path is None or path == "-":
        async for piece in _stream(sys.stdin.buffer):
            yield piece
        return
    try:
        with open(path, "rb") as file:  # noqa: ASYNC230 - a local file does not block
            while piece := file.read(_SIZE):
                yield piece
                await asyncio.sleep(0)
    except OSError as error:
        text = f"{path}: {error.strerror or error}"
        raise CommandFailed(text, Exit.USAGE) from None


async def _stream(stream: BinaryIO) -> AsyncIterator[bytes]:
    # read1 returns what is there; read would wait until the whole size has arrived, and
    # records typed at a terminal would not be sent before.
    read = getattr(stream, "read1", stream.read)
    while True:
        await _until_readable(stream)
        piece = read(_SIZE)
        if not piece:
            return
        yield piece


async def _until_readable(stream: BinaryIO) -> None:
    """Wait until a read does not block, where the system supports that."""
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    try:
        descriptor = stream.fileno()
        loop.add_reader(descriptor, readable.set)
    except (OSError, ValueError, NotImplementedError):
        # epoll refuses regular files, which are always readable; Windows has no wait
        # for a console; an object in the place of stdin may have no descriptor.
        await asyncio.sleep(0)
        return
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)
