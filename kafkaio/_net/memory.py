"""A network in memory: the same frames and failures as TCP, without sockets.

Bytes need one iteration of the event loop from end to end and keep their order; the end
of a stream comes after the bytes before it. Nothing else takes time, so an event loop
with a virtual clock runs a client and its brokers at full speed. A simulation passes a
carrier of its own, which can take any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from kafkaio._net.receive import FrameReceiver, LargeFrames
from kafkaio._net.transport import DialOptions, FrameSinkPort, TransportPort
from kafkaio.errors import BrokerNotAvailable, ProtocolError
from kafkaio.protocol._message import Buffer

#: The limit of brokers (socket.request.max.bytes); the client has its own.
MAX_REQUEST_BYTES: Final = 104_857_600
#: Takes the server's end of a new connection; returns the receiver of its frames.
Accept: TypeAlias = Callable[["MemoryTransport"], FrameSinkPort]

#: Carries what one end did to the other: calls its arguments later, in their order.
Carry: TypeAlias = Callable[[Callable[[], None]], object]


def _next_iteration(arrive: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_soon(arrive)


class MemoryTransport:
    """One end of a stream in memory; a Transport.

    Args:
        max_frame_size: the largest frame that this end accepts.
        carry: carries what this end writes, and its end, to the other end.
        large: decides on large frames; None accepts all.
    """

    def __init__(
        self,
        max_frame_size: int,
        carry: Carry = _next_iteration,
        large: LargeFrames | None = None,
    ) -> None:
        self._carry = carry
        self._sink: FrameSinkPort | None = None
        self._frames = FrameReceiver(max_frame_size, self._deliver, self._pause, large)
        # Bytes received while reading is paused.
        self._unread = bytearray()
        self._is_paused = False
        self._peer: MemoryTransport | None = None
        self._is_open = True
        self._stalled: list[bytes] | None = None

    @property
    def is_open(self) -> bool:
        """Whether neither this end nor, as far as it knows, the peer has closed."""
        return self._is_open

    def limit_frames(self, size: int) -> None:
        """Set the size of the largest frame accepted from now on, in bytes."""
        self._frames.max_frame_size = size

    @property
    def received(self) -> int:
        """Bytes received so far."""
        return self._frames.received

    @property
    def unsent(self) -> int:
        """Bytes that a stalled peer has not read."""
        return sum(map(len, self._stalled or ()))

    def connect(self, peer: MemoryTransport, sink: FrameSinkPort) -> None:
        """Join this end to the other end, and to the receiver of its frames."""
        self._peer = peer
        self._sink = sink

    def write(self, parts: Sequence[Buffer]) -> None:
        """Send bytes; they arrive in a later iteration of the event loop."""
        if not self._is_open:
            return
        data = b"".join(parts)
        if self._stalled is None:
            self._later(data)
        else:
            self._stalled.append(data)

    def stall(self) -> None:
        """Keep back everything written until ``flow``, like a peer that hangs."""
        self._stalled = self._stalled or []

    def flow(self) -> None:
        """Let bytes arrive again, beginning with those that were kept back."""
        held, self._stalled = self._stalled or [], None
        for data in held:
            self._later(data)

    def close(self) -> None:
        """Close both ends, after what was written has arrived."""
        self._end(None, None)

    def abort(self) -> None:
        """Close both ends; the same as ``close``, because nothing is buffered."""
        self._end(None, None)

    def reset(self, cause: BaseException) -> None:
        """Break the stream; both ends learn the cause."""
        self._end(cause, cause)

    def _later(self, data: bytes) -> None:
        peer = self._peer
        assert peer is not None
        self._carry(partial(peer._receive, data))

    def _pause(self, is_paused: bool) -> None:  # noqa: FBT001 - a callback
        self._is_paused = is_paused
        if not is_paused:
            asyncio.get_running_loop().call_soon(self._read_on)

    def _read_on(self) -> None:
        if not self._is_paused:
            data, self._unread = self._unread, bytearray()
            self._receive(data)

    def _receive(self, data: Buffer) -> None:
        if self._is_paused or self._unread:
            self._unread += data
            return
        view = memoryview(data)
        try:
            while view and self._is_open and not self._is_paused:
                space = self._frames.space()
                count = min(len(space), len(view))
                space[:count] = view[:count]
                view = view[count:]
                self._frames.filled(count)
            self._unread += view
        except ProtocolError as error:
            self._end(error, None)

    def _deliver(self, frame: Buffer) -> None:
        if self._is_open and self._sink is not None:
            self._sink.frame_received(frame)

    def _end(self, ours: BaseException | None, theirs: BaseException | None) -> None:
        if not self._is_open:
            return
        asyncio.get_running_loop().call_soon(self._lost, ours)
        self._is_open = False
        self._frames.close()
        if self._peer is not None:
            self._carry(partial(self._peer._peer_ended, theirs))

    def _peer_ended(self, cause: BaseException | None) -> None:
        if self._is_open:
            self._is_open = False
            self._frames.close()
            self._lost(cause)

    def _lost(self, cause: BaseException | None) -> None:
        if self._sink is not None:
            self._sink.connection_lost(cause)


class MemoryNetwork:
    """Hosts and ports in memory; its ``dial`` is a Dial."""

    def __init__(self) -> None:
        self._listeners: dict[tuple[str, int], Accept] = {}

    def listen(self, host: str, port: int, accept: Accept) -> None:
        """Accept connections to an address, until ``unlisten``."""
        self._listeners[host, port] = accept

    def unlisten(self, host: str, port: int) -> None:
        """Refuse connections to an address from now on; open ones stay."""
        self._listeners.pop((host, port), None)

    async def dial(
        self, host: str, port: int, sink: FrameSinkPort, options: DialOptions
    ) -> TransportPort:
        """Connect to a listener.

        Raises:
            BrokerNotAvailable: no listener has that address.
        """
        await asyncio.sleep(0)
        client = MemoryTransport(options.max_frame_size, large=options.large)
        self.join(host, port, client, MemoryTransport(MAX_REQUEST_BYTES), sink)
        return client

    def join(
        self,
        host: str,
        port: int,
        client: MemoryTransport,
        server: MemoryTransport,
        sink: FrameSinkPort,
    ) -> None:
        """Join a client's end of a new connection to a listener's end.

        Raises:
            BrokerNotAvailable: no listener has that address.
        """
        accept = self._listeners.get((host, port))
        if accept is None:
            raise BrokerNotAvailable(f"{host}:{port}: connect: connection refused")
        client.connect(server, sink)
        server.connect(client, accept(server))
