"""Listeners: a node accepts connections on a TCP port or in an in-memory network.

TLS is done over buffers in memory, not by asyncio: so a fault can take effect at any
byte that is on the wire, and what a client whose certificate is refused gets to see is
what OpenSSL wrote.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kafkaio._net.memory import MemoryNetwork, MemoryTransport
from kafkaio._net.receive import FrameReceiver
from kafkaio._net.transport import FrameSinkPort, TcpTransport, TransportPort
from kafkaio.errors import ProtocolError
from kafkaio.protocol._message import Buffer
from kafkaio.testing._broker.connection import MAX_REQUEST_BYTES
from kafkaio.testing._broker.cut import Cut, CutTransport
from kafkaio.testing._broker.faults import Fault
from kafkaio.testing._security.principals import NoPrincipal

#: Java's alert for a client that does not speak TLS, where OpenSSL sends nothing: the
#: alert internal_error (RFC 8446, section 6).
_ALERT: Final = b"\x15\x03\x03\0\2\2\x50"


@dataclass(frozen=True, slots=True)
class AcceptedClient:
    """The client of an accepted connection.

    Attributes:
        host: the client's address.
        principal: the principal of its certificate; None without one.
        reached: the address of this machine that it connected to; empty in memory.
    """

    host: str
    principal: str | None = None
    reached: str = ""


#: Called with a new connection and its client; returns the connection's sink.
Accept = Callable[[TransportPort, AcceptedClient], FrameSinkPort]
#: The fault that applies to all that is sent on a new connection, if any.
StreamFault = Callable[[], Fault | None]


class TlsPort(Protocol):
    """The TLS settings of a listener."""

    def context(self) -> ssl.SSLContext:
        """The context for a new connection."""

    def principal(self, certificate: bytes | None) -> str | None:
        """The principal of a client's certificate in DER; None without one.

        Raises:
            NoPrincipal: no rule fits its subject.
        """


class ListenerPort(Protocol):
    """One node's address."""

    async def open(self, accept: Accept, fault: StreamFault) -> int:
        """Start to accept connections; return the port."""

    async def close(self) -> None:
        """Stop accepting connections; open ones stay."""


class _Accepted(TcpTransport):
    """One accepted TCP connection."""

    def __init__(self, accept: Accept, fault: StreamFault) -> None:
        super().__init__(MAX_REQUEST_BYTES, None)
        self._accept = accept
        self._fault = fault

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        fault = self._fault()
        stream = self if fault is None else CutTransport(self, fault)
        client = AcceptedClient(_host(transport), reached=_host(transport, "sockname"))
        self.deliver_to(self._accept(stream, client))


class _AcceptedTls(asyncio.Protocol):
    """One accepted TLS connection; a TransportPort.

    The node learns of it when the handshake is done.
    """

    def __init__(
        self,
        accept: Accept,
        fault: StreamFault,
        tls: TlsPort,
        shaking: set[_AcceptedTls],
    ) -> None:
        self._accept = accept
        self._stream_fault = fault
        self._tls_settings = tls
        self._shaking = shaking
        self._cut: Cut | None = None
        self._sink: FrameSinkPort | None = None
        self._frames = FrameReceiver(MAX_REQUEST_BYTES, self._deliver)
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = tls.context().wrap_bio(
            self._incoming, self._outgoing, server_side=True
        )
        self._transport: asyncio.Transport | None = None
        self._cause: BaseException | None = None

    # ---- what asyncio calls ------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # uvloop's has another base class
        # A listener that closes ends handshakes, because the node does not know these
        # connections yet.
        self._shaking.add(self)
        fault = self._stream_fault()
        if fault is not None:
            self._cut = Cut(fault)

    def data_received(self, data: bytes) -> None:
        self._incoming.write(data)
        try:
            if self._sink is None:
                self._shake()
            self._read()
        # The handshake, or the record, is not complete; there may be something to send
        # all the same.
        except ssl.SSLWantReadError:
            self._flush()
        except (ssl.SSLError, ProtocolError, NoPrincipal) as error:
            # An alert of OpenSSL for the peer goes first.
            self._cause = error
            is_tls = isinstance(error, ssl.SSLError)
            # OpenSSL does not always have an alert ready; a client that gets none would
            # report a lost connection.
            if is_tls and self._sink is None and not self._outgoing.pending:
                self._outgoing.write(_ALERT)
            self._flush()
            self.close()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._shaking.discard(self)
        if self._sink is not None:
            self._sink.connection_lost(self._cause or exc)

    # ---- TransportPort ---------------------------------------------------------------

    def write(self, parts: Sequence[Buffer]) -> None:
        """See TransportPort."""
        if self._transport is None or self._transport.is_closing():
            return
        for part in parts:
            if len(part):
                self._tls.write(part)
        self._flush()

    def close(self) -> None:
        """See TransportPort. A stalled stream stays open."""
        is_stalled = self._cut is not None and self._cut.is_stalled
        if self._transport is not None and not is_stalled:
            self._transport.close()

    def abort(self) -> None:
        """See TransportPort."""
        if self._transport is not None:
            self._transport.abort()

    def limit_frames(self, size: int) -> None:
        """See TransportPort."""
        self._frames.max_frame_size = size

    @property
    def received(self) -> int:
        """See TransportPort."""
        return self._frames.received

    @property
    def unsent(self) -> int:
        """See TransportPort."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    # ---- TLS ---------------------------------------------------------------------

    def _shake(self) -> None:
        self._tls.do_handshake()
        self._flush()
        self._shaking.discard(self)
        assert self._transport is not None
        subject = self._tls_settings.principal(self._tls.getpeercert(binary_form=True))
        reached = _host(self._transport, "sockname")
        client = AcceptedClient(_host(self._transport), subject, reached)
        self._sink = self._accept(self, client)

    def _read(self) -> None:
        while True:
            space = self._frames.space()
            # With a buffer it returns a number, whatever typeshed says.
            count = int(self._tls.read(len(space), space))
            if not count:
                self.close()
                return
            self._frames.filled(count)

    def _flush(self) -> None:
        data = self._outgoing.read()
        if self._cut is not None:
            # After TLS: faults count bytes as they are on the wire.
            data = self._cut.cut(data)
        if data and self._transport is not None:
            self._transport.write(data)
        if self._cut is not None and self._cut.is_closed:
            self.close()

    def _deliver(self, frame: Buffer) -> None:
        if self._sink is not None:
            self._sink.frame_received(frame)


def _host(transport: asyncio.BaseTransport, side: str = "peername") -> str:
    address = transport.get_extra_info(side)
    return address[0] if address else ""


class TcpListener:
    """A TCP port; a Listener. It keeps the port number when it is opened again.

    Args:
        host: the address to listen at.
        port: the port; 0 takes a free one.
        tls: the TLS settings; None for none.
    """

    def __init__(self, host: str, port: int, tls: TlsPort | None = None) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._shaking: set[_AcceptedTls] = set()

    async def open(self, accept: Accept, fault: StreamFault) -> int:
        """Listen."""
        loop = asyncio.get_running_loop()
        tls = self._tls

        def accepted() -> asyncio.BaseProtocol:
            if tls is None:
                return _Accepted(accept, fault)
            return _AcceptedTls(accept, fault, tls, self._shaking)

        self._server = await loop.create_server(accepted, self._host, self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self._port

    async def close(self) -> None:
        """Stop listening, and end handshakes; open connections stay."""
        server, self._server = self._server, None
        if server is not None:
            loop = asyncio.get_running_loop()
            if isinstance(loop, asyncio.SelectorEventLoop):
                # A connection that was just accepted gets its transport in the next
                # turn of the loop. Before Python 3.12 that fails if the server is
                # closed by then, and the connection stays open.
                for sock in server.sockets:
                    loop.remove_reader(sock)
                await asyncio.sleep(0)
            server.close()
        for shaking in list(self._shaking):
            shaking.abort()


class MemoryListener:
    """An address in an in-memory network; a Listener."""

    def __init__(self, network: MemoryNetwork, host: str, port: int) -> None:
        self._network = network
        self._host = host
        self._port = port

    async def open(self, accept: Accept, fault: StreamFault) -> int:
        """Listen."""

        def accepted(transport: MemoryTransport) -> FrameSinkPort:
            found = fault()
            stream = transport if found is None else CutTransport(transport, found)
            return accept(stream, AcceptedClient("memory"))

        self._network.listen(self._host, self._port, accepted)
        return self._port

    async def close(self) -> None:
        """Stop listening; open connections stay."""
        self._network.unlisten(self._host, self._port)
