"""Listeners: a node accepts connections on a TCP port or in an in-memory network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from kafkaio._net.memory import MemoryNetwork, MemoryTransport
from kafkaio._net.transport import FrameSink, TcpTransport, Transport

__all__ = ["MAX_REQUEST_BYTES", "Listener", "MemoryListener", "TcpListener"]

#: Kafka's default of socket.request.max.bytes.
MAX_REQUEST_BYTES: Final = 104_857_600

#: Called with a new connection and the client's host; returns the connection's sink.
Accept = Callable[[Transport, str], FrameSink]


class Listener(Protocol):
    """One node's address."""

    async def open(self, accept: Accept) -> int:
        """Start to accept connections; return the port."""

    async def close(self) -> None:
        """Stop accepting connections; open ones stay."""


class _Accepted(TcpTransport):
    """One accepted TCP connection."""

    def __init__(self, accept: Accept) -> None:
        super().__init__(MAX_REQUEST_BYTES, None)
        self._accept = accept

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._sink = self._accept(self, peer[0] if peer else "")


class TcpListener:
    """A TCP port; a Listener. It keeps the port number when it is opened again."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._server: asyncio.Server | None = None

    async def open(self, accept: Accept) -> int:
        """Listen; port 0 takes a free port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Accepted(accept), self._host, self._port
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self._port

    async def close(self) -> None:
        """Stop listening; open connections stay."""
        if self._server is not None:
            self._server.close()
            self._server = None


class MemoryListener:
    """An address in an in-memory network; a Listener."""

    def __init__(self, network: MemoryNetwork, host: str, port: int) -> None:
        self._network = network
        self._host = host
        self._port = port

    async def open(self, accept: Accept) -> int:
        """Listen."""

        def accepted(transport: MemoryTransport) -> FrameSink:
            return accept(transport, "memory")

        self._network.listen(self._host, self._port, accepted)
        return self._port

    async def close(self) -> None:
        """Stop listening; open connections stay."""
        self._network.unlisten(self._host, self._port)
