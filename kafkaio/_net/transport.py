"""A stream of frames to one peer, over TCP or TLS; ``dialling.py`` connects it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from kafkaio._dataclass import dataclass
from kafkaio._net.receive import FrameReceiver, LargeFrames
from kafkaio._net.socket_writer import Output
from kafkaio._net.tls import TlsLayer
from kafkaio._public import public
from kafkaio.errors import AuthenticationError, ProtocolError
from kafkaio.protocol._message import Buffer

if TYPE_CHECKING:
    from kafkaio._config.proxy import Proxy

# The first bytes of a TLS alert, read as a length.
_TLS_ALERT: Final = b"\x15\x03"


class ProxyRefused(OSError):
    """The proxy rejects the client's user and password, or requires some."""


class FrameSinkPort(Protocol):
    """Receives what arrives on a transport."""

    def frame_received(self, frame: Buffer) -> None:
        """Take one frame, without its length; its bytes do not change afterwards."""

    def connection_lost(self, cause: BaseException | None) -> None:
        """The stream has ended; called exactly once. None: the peer closed it."""


class TransportPort(Protocol):
    """A connected stream."""

    def write(self, parts: Sequence[Buffer], /) -> None:
        """Send frames with their lengths; never blocks. Does nothing once closed.

        The buffers are not copied: they must not change afterwards.
        """

    def close(self) -> None:
        """Send what was written, then close."""

    def abort(self) -> None:
        """Close now."""

    def limit_frames(self, size: int) -> None:
        """Set the size of the largest frame accepted from now on, in bytes."""

    @property
    def received(self) -> int:
        """Bytes received so far."""

    @property
    def unsent(self) -> int:
        """Bytes written that the operating system has not taken yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialOptions:
    """How to make one connection.

    Attributes:
        timeout: seconds for all of it, from the look-up of the name to the end of TLS,
            whatever number of addresses there is.
        max_frame_size: the largest frame accepted, in bytes.
        large: decides on large frames; None accepts all.
        ssl_context: TLS settings; None for plain TCP.
        send_buffer_bytes: SO_SNDBUF, -1 for the system's default.
        receive_buffer_bytes: SO_RCVBUF, -1 for the system's default.
        user_timeout: seconds after which a connection is dead whose peer acknowledges
            nothing (TCP_USER_TIMEOUT), where the system supports it.
        proxy: the proxy to connect by; None for none.
    """

    timeout: float
    max_frame_size: int
    large: LargeFrames | None = None
    ssl_context: ssl.SSLContext | None = None
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    user_timeout: float = 85.0
    proxy: Proxy | None = None


@public("kafkaio")
class Dial(Protocol):
    """Connects to a host; ``TcpDial``, or the in-memory network of tests."""

    async def __call__(
        self, host: str, port: int, sink: FrameSinkPort, options: DialOptions
    ) -> TransportPort:
        """Connect, and pass what arrives to ``sink``.

        Raises:
            BrokerNotAvailable: no address could be reached.
            AuthenticationError: the TLS handshake failed.
        """


def _drop(what: Buffer | Sequence[Buffer]) -> None:
    del what


class TcpTransport(asyncio.BufferedProtocol):
    """A Transport over a transport of asyncio, and the protocol of that.

    Args:
        max_frame_size: a longer frame from the peer ends the connection.
        sink: receives what arrives; None until `deliver_to`.
        large: decides on large frames; None accepts all.
        address: ``host:port`` of the peer, for errors.

    Attributes:
        write: see `TransportPort`. It is that of the output itself while there is one.
    """

    write: Callable[[Sequence[Buffer]], None]

    def __init__(
        self,
        max_frame_size: int,
        sink: FrameSinkPort | None,
        large: LargeFrames | None = None,
        address: str = "",
    ) -> None:
        self._sink = sink
        self._address = address
        deliver = _drop if sink is None else sink.frame_received
        self._frames = FrameReceiver(max_frame_size, deliver, self._pause, large)
        self._transport: asyncio.Transport | None = None
        # The transport, if that is one of TLS.
        self._output: Output | TlsLayer | None = None
        self.write = _drop
        self._broken: BaseException | None = None
        # A second `close` of asyncio's TLS transport, or one after an `abort`, drops
        # its connection, and its other methods raise afterwards. So end it only once.
        self._is_ending = False

    def deliver_to(self, sink: FrameSinkPort) -> None:
        """Pass what arrives from now on to ``sink``."""
        self._sink = sink
        self._frames.deliver = sink.frame_received

    # ---- what asyncio calls ------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not checked: uvloop's transports have the methods, but not the base class.
        made: asyncio.Transport = transport  # type: ignore[assignment]
        self._transport = made
        if isinstance(made, TlsLayer):
            self._output = made
        else:
            self._output = Output(made, self._write_failed)
        self.write = self._output.writelines

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._frames.room or self._frames.space()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            self._frames.filled(nbytes)
        except ProtocolError as error:
            self._broken = error
            # A peer that expects TLS answers plaintext with an alert.
            if self._frames.began_with(_TLS_ALERT):
                self._broken = AuthenticationError(
                    f"{self._address}: the peer speaks TLS, the client does not: give "
                    "security_protocol='SSL', or 'SASL_SSL'",
                    mechanism="TLS",
                    broker=self._address,
                    step="open",
                )
            self.abort()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if isinstance(self._output, Output):
            self._output.drop()
        self._output, self.write = None, _drop
        # The first cause counts: after `abort`, asyncio reports none.
        self._broken = self._broken or exc
        self._frames.close()
        if self._sink is not None:
            self._sink.connection_lost(self._broken)

    # ---- Transport ---------------------------------------------------------------

    def close(self) -> None:
        """See Transport."""
        if self._output is not None and not self._is_ending:
            self._is_ending, self.write = True, _drop
            if self._output.get_write_buffer_size():
                self._frames.deliver = _drop
            self._output.close()

    def abort(self) -> None:
        """See Transport."""
        if self._output is not None:
            self._is_ending, self.write = True, _drop
            self._output.abort()

    def limit_frames(self, size: int) -> None:
        """See Transport."""
        self._frames.max_frame_size = size

    @property
    def received(self) -> int:
        """See Transport."""
        return self._frames.received

    @property
    def unsent(self) -> int:
        """See Transport."""
        return 0 if self._output is None else self._output.get_write_buffer_size()

    def _write_failed(self, error: OSError) -> None:
        self._broken = self._broken or error
        self.abort()

    def _pause(self, is_paused: bool) -> None:  # noqa: FBT001 - a callback
        if self._transport is None or self._transport.is_closing():
            return
        if is_paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()


class DialledTransport(TcpTransport):
    """Does not report its end to the sink before ``adopt``.

    Until then the dialling code may still try another address.

    Args:
        max_frame_size: as for the others.
        sink: likewise.
        large: likewise.
        address: likewise.
    """

    def __init__(
        self,
        max_frame_size: int,
        sink: FrameSinkPort,
        large: LargeFrames | None,
        address: str,
    ) -> None:
        super().__init__(max_frame_size, sink, large, address)
        self._adopted = False
        #: Called with the number of bytes received when an adopted stream has ended.
        self.on_end: Callable[[int], None] | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._adopted:
            self._sink = None
        elif self.on_end is not None:
            self.on_end(self.received)
        super().connection_lost(exc)

    def adopt(self) -> None:
        """Report the end of the stream from now on; raise if it has ended already."""
        if isinstance(self._broken, AuthenticationError):
            raise self._broken
        if self._transport is None:
            raise ConnectionResetError(str(self._broken or "connection reset"))
        self._adopted = True
