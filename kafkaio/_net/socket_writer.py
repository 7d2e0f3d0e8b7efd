"""Writes to the socket of a transport without copying what has to wait.

`Output` is the way in: it has a `SocketWriter` where that saves something. Before
Python 3.12, a transport of asyncio copies what its socket does not take at once, and
with a record batch of a megabyte that is nearly all of it. The writer has a duplicate
of the socket, because the loop lets nobody else wait for a transport's own.

Invariant: while the writer has bytes, or once it has written any, nothing is written by
the transport, so that the bytes keep their order.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from kafkaio.protocol._message import Buffer

#: A buffer of at least this size is written by itself: a copy costs more than a call.
LARGE: Final = 65_536
#: Buffers that are written at once; systems accept 1,024.
_MOST: Final = 256


def copies(transport: asyncio.BaseTransport) -> bool:
    """Whether a transport copies what its socket does not take at once."""
    # Those of uvloop are no instances of asyncio's class, and copy nothing.
    return (
        sys.version_info < (3, 12)
        and sys.platform != "win32"
        and isinstance(transport, asyncio.Transport)
    )


def joined(parts: Sequence[Buffer]) -> Sequence[Buffer]:
    """Return buffers with the same bytes: small ones joined, large ones as they are."""
    if len(parts) == 1:
        return parts
    found: list[Buffer] = []
    small: list[Buffer] = []
    for part in parts:
        if len(part) < LARGE:
            small.append(part)
            continue
        if small:
            found.append(b"".join(small))
            small = []
        found.append(part)
    if small:
        found.append(b"".join(small))
    return found


def write_parts(transport: asyncio.WriteTransport, parts: Sequence[Buffer]) -> None:
    """Write buffers in order: small ones are joined, large ones are not copied."""
    for part in joined(parts):
        transport.write(part)


class Output:
    """Writes buffers to a TCP transport; its methods have the names of that.

    Args:
        transport: the transport, to which nothing else writes.
        failed: called with the error after which nothing more can be written.
    """

    __slots__ = ("_copies", "_failed", "_transport", "_writer")

    def __init__(
        self, transport: asyncio.Transport, failed: Callable[[OSError], None]
    ) -> None:
        self._transport = transport
        self._failed = failed
        self._copies = copies(transport)
        # None before something large is written, and where nothing is copied.
        self._writer: SocketWriter | None = None

    def writelines(self, parts: Sequence[Buffer]) -> None:
        """Write buffers in order; they must not change until they are sent."""
        writer, transport = self._writer, self._transport
        if writer is None:
            if len(parts) == 1 and len(parts[0]) < LARGE:
                transport.write(parts[0])
                return
            if (
                not self._copies
                or transport.get_write_buffer_size()
                or max(map(len, parts)) < LARGE
            ):
                write_parts(transport, parts)
                return
            try:
                writer = self._writer = SocketWriter(transport, self._failed)
            except OSError:  # too many open files
                write_parts(transport, parts)
                return
        writer.write(parts)

    def get_write_buffer_size(self) -> int:
        """Bytes written that the operating system has not taken yet."""
        pending = 0 if self._writer is None else self._writer.pending
        return pending + self._transport.get_write_buffer_size()

    def close(self) -> None:
        """Send what was written, then close the transport."""
        if self._writer is not None and self._writer.pending:
            self._writer.when_sent(self._transport.close)
        else:
            self._transport.close()

    def abort(self) -> None:
        """Close the transport now."""
        self.drop()
        self._transport.abort()

    def drop(self) -> None:
        """Write nothing more; may be called again."""
        if self._writer is not None:
            self._writer.close()


class SocketWriter:
    """Writes by a duplicate of a socket.

    Args:
        transport: a transport that has nothing left to write.
        failed: called with the error that ends the writer.

    Raises:
        OSError: there are too many open files.
    """

    __slots__ = (
        "_failed",
        "_is_waiting",
        "_loop",
        "_on_sent",
        "_queue",
        "_sock",
        "pending",
    )

    def __init__(
        self, transport: asyncio.Transport, failed: Callable[[OSError], None]
    ) -> None:
        self._sock: socket.socket = transport.get_extra_info("socket").dup()
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._queue: deque[memoryview] = deque()
        #: Bytes that the operating system has not taken yet.
        self.pending: int = 0
        self._is_waiting = False
        self._on_sent: Callable[[], None] | None = None

    def write(self, parts: Sequence[Buffer]) -> None:
        """Write buffers, which must not change until they are sent."""
        for part in parts:
            if part:
                self._queue.append(memoryview(part))
                self.pending += len(part)
        if self.pending and not self._is_waiting:
            self._send()

    def when_sent(self, call: Callable[[], None]) -> None:
        """Call a function once nothing is pending; something must be."""
        self._on_sent = call

    def close(self) -> None:
        """Write nothing more; may be called again."""
        if self._is_waiting:
            self._is_waiting = False
            self._loop.remove_writer(self._sock)
        self._queue.clear()
        self.pending = 0
        self._on_sent = None
        self._sock.close()

    def _send(self) -> None:
        try:
            count = self._sock.sendmsg(list(islice(self._queue, _MOST)))
        except (BlockingIOError, InterruptedError):
            count = 0
        except OSError as error:
            self.close()
            self._failed(error)
            return
        self._sent(count)
        if self.pending:
            if not self._is_waiting:
                self._is_waiting = True
                self._loop.add_writer(self._sock, self._send)
            return
        if self._is_waiting:
            self._is_waiting = False
            self._loop.remove_writer(self._sock)
        if self._on_sent is not None:
            self._on_sent()

    def _sent(self, count: int) -> None:
        queue = self._queue
        self.pending -= count
        while count:
            first = queue.popleft()
            if count < len(first):
                queue.appendleft(first[count:])
                return
            count -= len(first)
