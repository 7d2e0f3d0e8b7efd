"""A stream of bytes that ends, stalls or is falsified at one of its bytes."""

from __future__ import annotations

from collections.abc import Sequence

from kafkaio._net.transport import TransportPort
from kafkaio.protocol._message import Buffer
from kafkaio.testing._broker.faults import Action, Fault


class Cut:
    """Applies a fault to a stream.

    Args:
        fault: ``close_at``, ``stall_at`` or ``invert_at``.

    Attributes:
        is_closed: whether the stream has to be closed now.
        is_stalled: whether nothing may be sent any more.
    """

    def __init__(self, fault: Fault) -> None:
        self.is_closed: bool = False
        self.is_stalled: bool = False
        self._action = fault.action
        self._left = fault.position

    def cut(self, data: bytes) -> bytes:
        """Return the bytes to send in place of the next ones of the stream."""
        if self.is_closed or self.is_stalled:
            return b""
        # Negative once the position has passed: then INVERT_AT changes nothing more.
        here, self._left = self._left, self._left - len(data)
        if self._action is Action.INVERT_AT:
            if not 0 <= here < len(data):
                return data
            return data[:here] + bytes([data[here] ^ 0xFF]) + data[here + 1 :]
        if here > len(data):
            return data
        self.is_closed = self._action is Action.CLOSE_AT
        self.is_stalled = not self.is_closed
        return data[:here]


class CutTransport:
    """A Transport that cuts what is written to another one."""

    def __init__(self, transport: TransportPort, fault: Fault) -> None:
        self._transport = transport
        self._cut = Cut(fault)

    def write(self, parts: Sequence[Buffer]) -> None:
        """See Transport."""
        data = self._cut.cut(b"".join(parts))
        if data:
            self._transport.write([data])
        if self._cut.is_closed:
            self._transport.close()

    def close(self) -> None:
        """See Transport. A stalled stream stays open."""
        if not self._cut.is_stalled:
            self._transport.close()

    def abort(self) -> None:
        """See Transport."""
        self._transport.abort()

    def limit_frames(self, size: int) -> None:
        """See Transport."""
        self._transport.limit_frames(size)

    @property
    def received(self) -> int:
        """See Transport."""
        return self._transport.received

    @property
    def unsent(self) -> int:
        """See Transport."""
        return self._transport.unsent
