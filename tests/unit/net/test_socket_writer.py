"""Large writes by a duplicate of the socket, on real sockets."""

from __future__ import annotations

import asyncio
import socket
import sys
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafkaio._net import socket_writer
from kafkaio._net.transport import TcpTransport

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the writer is not used there"
)
MIB = 1_048_576


class Sink:
    """Notes how the connection ended."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[BaseException | None] = asyncio.Future()

    def frame_received(self, frame: Any) -> None:
        raise AssertionError("nothing is sent to this end")

    def connection_lost(self, cause: BaseException | None) -> None:
        self.ended.set_result(cause)


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[TcpTransport, Sink, socket.socket]]:
    """A transport, its sink, and the socket of the peer, which reads nothing yet."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as server:
        sink = Sink()
        transport = TcpTransport(100, sink)
        await loop.create_connection(lambda: transport, *server.getsockname())
        peer, _ = server.accept()
        peer.setblocking(False)
        with peer:
            yield transport, sink, peer
            transport.abort()
            await sink.ended


@pytest.fixture(autouse=True)
def is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    # Also with versions of Python that need no writer.
    monkeypatch.setattr(socket_writer, "copies", lambda _: True)


async def read(peer: socket.socket, size: int) -> bytes:
    loop, data = asyncio.get_running_loop(), bytearray()
    while len(data) < size:
        more = await loop.sock_recv(peer, min(size - len(data), 262_144))
        if not more:
            break
        data += more
    return bytes(data)


async def test_bytes_arrive_in_their_order() -> None:
    blocks = [bytes([n]) * (n * 70_000) for n in range(1, 60)]
    async with pair() as (transport, _, peer):
        transport.write([b"small"])
        expected = b"small"
        for number, block in enumerate(blocks):
            transport.write([b"head", memoryview(block), b"tail%d" % number])
            expected += b"head%btail%d" % (block, number)
            transport.write([b""])
            transport.write([b"alone"])
            expected += b"alone"
        assert transport.unsent > 50 * MIB
        assert await read(peer, len(expected)) == expected
        assert transport.unsent == 0
        transport.write([b"after", blocks[0]])
        assert await read(peer, 70_005) == b"after" + blocks[0]


async def test_what_waits_is_not_copied() -> None:
    block = bytes(64 * MIB)
    async with pair() as (transport, _, peer):
        tracemalloc.start()
        try:
            transport.write([b"head", block])
            assert transport.unsent > 32 * MIB
            left = len(block) + 4
            while left:
                left -= len(await read(peer, min(left, MIB)))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 8 * MIB


async def test_closing_sends_what_was_written() -> None:
    block = bytes(range(256)) * 100_000
    async with pair() as (transport, sink, peer):
        transport.write([block])
        transport.close()
        transport.write([b"not any more"])
        assert await read(peer, len(block) + 1) == block  # and then the end
        assert await sink.ended is None


async def test_aborting_does_not() -> None:
    block = bytes(32 * MIB)
    async with pair() as (transport, sink, peer):
        transport.write([block])
        transport.close()
        transport.abort()
        assert transport.unsent == 0
        assert await sink.ended is None
        assert len(await read(peer, len(block))) < len(block)


async def test_the_sink_is_told_why_writing_failed() -> None:
    async with pair() as (transport, sink, peer):
        transport.write([bytes(32 * MIB)])
        peer.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
        )  # reset
        peer.close()
        assert isinstance(await sink.ended, ConnectionError)
        transport.write([bytes(MIB)])
        assert transport.unsent == 0


async def test_without_a_file_left_the_transport_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none_left(*_: Any) -> Any:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(socket_writer, "SocketWriter", none_left)
    block = bytes(range(256)) * 10_000
    async with pair() as (transport, _, peer):
        transport.write([b"head", block])
        assert await read(peer, len(block) + 4) == b"head" + block
