"""Where clients dial in: a TCP port, or an address of the network in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from kafkaio._net.memory import MemoryNetwork, MemoryTransport
from kafkaio._net.receive import FrameReceiver
from kafkaio._net.transport import FrameSink, Transport, write_parts
from kafkaio.errors import ProtocolError
from kafkaio.protocol.message import Buffer

__all__ = ["MAX_REQUEST_BYTES", "Listener", "MemoryListener", "TcpListener"]

#: Kafka's default of socket.request.max.bytes.
MAX_REQUEST_BYTES: Final = 104_857_600

#: Given a new connection and the client's host; gives who listens to it.
Accept = Callable[[Transport, str], FrameSink]


class Listener(Protocol):
    """One node's address."""

    async def open(self, accept: Accept) -> int:
        """Accept connections from now on; return the port."""

    async def close(self) -> None:
        """Accept no more."""


class _ServerProtocol(asyncio.BufferedProtocol):
    """One accepted TCP connection; a Transport."""

    def __init__(self, accept: Accept) -> None:
        self._accept = accept
        self._sink: FrameSink | None = None
        self._frames = FrameReceiver(MAX_REQUEST_BYTES, self._deliver)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not checked: uvloop's transports have the methods, but not the base class.
        self._transport = transport  # type: ignore[assignment]
        peer = transport.get_extra_info("peername")
        self._sink = self._accept(self, peer[0] if peer else "")

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._frames.room()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            self._frames.filled(nbytes)
        except ProtocolError:
            self.abort()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._sink is not None:
            self._sink.connection_lost(exc)

    def _deliver(self, frame: Buffer) -> None:
        if self._sink is not None:
            self._sink.frame_received(frame)

    def write(self, parts: Sequence[Buffer]) -> None:
        """Send bytes."""
        if self._transport is not None:
            write_parts(self._transport, parts)

    def close(self) -> None:
        """Send what was written, then close."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close now."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def received(self) -> int:
        """Bytes received so far."""
        return self._frames.received

    @property
    def unsent(self) -> int:
        """Bytes that the client's machine has not taken yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()


class TcpListener:
    """A port of this machine; a Listener. It keeps its number when opened again."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._server: asyncio.Server | None = None

    async def open(self, accept: Accept) -> int:
        """Listen; port 0 takes one that is free."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _ServerProtocol(accept), self._host, self._port
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self._port

    async def close(self) -> None:
        """Stop listening; open connections stay."""
        if self._server is not None:
            self._server.close()
            self._server = None


class MemoryListener:
    """An address in a network in memory; a Listener."""

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
