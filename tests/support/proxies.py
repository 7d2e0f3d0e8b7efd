"""A proxy of our own: SOCKS 5 and CONNECT, with faults."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["ForwardProxy", "proxy_server"]

_Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_FAILURES = {"refused": 5, "forbidden": 2, "unreachable": 4}


@dataclass
class ForwardProxy:
    """What a proxy does, and what it was asked for.

    Attributes:
        scheme: ``socks5`` or ``http``.
        login: user and password that it wants; None for none.
        names: what the names stand for that it looks up.
        hangs_at: ``greeting`` or ``request``: where it says nothing any more.
        fails: what it says of every request: ``refused``, ``forbidden``.
        answer: bytes that it answers with in place of anything else.
        piecewise: whether it sends its answers byte by byte.
        asked: the hosts and ports that it was asked for, as they were written.
    """

    scheme: str
    login: tuple[str, str] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    hangs_at: str = ""
    fails: str = ""
    answer: bytes | None = None
    piecewise: bool = False
    asked: list[tuple[str, int]] = field(default_factory=list)
    port: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def url(self, scheme: str = "", login: str = "") -> str:
        """The value of the option ``proxy``."""
        user = f"{login}@" if login else ""
        return f"{scheme or self.scheme}://{user}127.0.0.1:{self.port}"

    async def _say(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        step = 1 if self.piecewise else max(1, len(data))
        for at in range(0, len(data), step):
            writer.write(data[at : at + step])
            await writer.drain()
            await asyncio.sleep(0.001 if self.piecewise else 0)

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve one client to the end of its connection."""
        if self.hangs_at == "greeting":
            await reader.read()
            return
        if self.answer is not None:
            await reader.read(1)
            await self._say(writer, self.answer)
            return
        ask = self._socks if self.scheme == "socks5" else self._http
        streams = await ask(reader, writer)
        if streams is None:
            return
        ours, theirs = streams
        await asyncio.gather(_pipe(reader, theirs), _pipe(ours, writer))

    async def _request(self, host: str, port: int) -> _Streams | None:
        """Connect to what was asked for; None if that fails."""
        self.asked.append((host, port))
        if self.hangs_at == "request":
            await asyncio.Event().wait()
        try:
            streams = await asyncio.open_connection(self.names.get(host, host), port)
        except (OSError, ValueError, OverflowError):
            return None
        self.writers.append(streams[1])
        return streams

    async def _socks(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> _Streams | None:
        assert await reader.readexactly(1) == b"\5"
        methods = await reader.readexactly((await reader.readexactly(1))[0])
        method = 2 if self.login else 0
        if method not in methods:
            await self._say(writer, b"\5\xff")
            return None
        await self._say(writer, bytes([5, method]))
        if self.login and not await self._socks_login(reader, writer):
            return None
        _, _, _, kind = await reader.readexactly(4)
        if kind == 3:
            size = (await reader.readexactly(1))[0]
            host = (await reader.readexactly(size)).decode("ascii")
        else:
            packed = await reader.readexactly(4 if kind == 1 else 16)
            host = str(ipaddress.ip_address(packed))
        port = int.from_bytes(await reader.readexactly(2), "big")
        streams = await self._request(host, port)
        fails = self.fails or ("" if streams else "unreachable")
        code = _FAILURES.get(fails, 0)
        # Its own address as a name: an answer of another size than usual.
        bound = b"\3\x05proxy\0\0" if self.piecewise else b"\1\0\0\0\0\0\0"
        await self._say(writer, bytes([5, code, 0]) + bound)
        return None if code else streams

    async def _socks_login(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        assert await reader.readexactly(1) == b"\1"
        given = []
        for _ in range(2):
            size = (await reader.readexactly(1))[0]
            given.append((await reader.readexactly(size)).decode())
        is_right = tuple(given) == self.login
        await self._say(writer, bytes([1, 0 if is_right else 1]))
        return is_right

    async def _http(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> _Streams | None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        method, where, _ = first.split()
        assert method == "CONNECT"
        headers = dict(line.split(": ", 1) for line in lines)
        assert headers["Host"] == where
        if self.login is not None:
            basic = base64.b64encode(":".join(self.login).encode()).decode()
            if headers.get("Proxy-Authorization") != f"Basic {basic}":
                text = b"HTTP/1.1 407 Proxy Authentication Required\r\n"
                await self._say(writer, text + b"Content-Length: 0\r\n\r\n")
                return None
        host, _, port = where.rpartition(":")
        streams = await self._request(host.strip("[]"), int(port))
        if self.fails or streams is None:
            await self._say(writer, b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            return None
        await self._say(writer, b"HTTP/1.1 200 Connection established\r\n")
        await asyncio.sleep(0)  # the rest of the head comes later
        await self._say(writer, b"Via: 1.1 a\r\n\r\n")
        return streams


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def proxy_server(proxy: ForwardProxy) -> AsyncIterator[ForwardProxy]:
    """Run a proxy on loopback."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        proxy.writers.append(writer)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await proxy.serve(reader, writer)
        finally:
            writer.close()
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, family=socket.AF_INET)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        for _ in range(20):  # let it see clients that it has just accepted
            await asyncio.sleep(0)
        server.close()
        for writer in proxy.writers:
            writer.transport.abort()
        if proxy.hangs_at == "request":
            for task in tasks:
                task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for _ in range(20):  # let the transports close
            await asyncio.sleep(0)
