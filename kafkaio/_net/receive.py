"""Cuts the bytes from a socket into frames, without copying the large ones.

Small frames arrive many at a time in one scratch buffer, and each is copied out of it.
A frame that does not fit into the scratch gets memory of its own size from the thread's
frame pool, and the socket then reads directly into it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafkaio._net.frame_pool import frame_pool
from kafkaio.protocol.framing import frame_size
from kafkaio.protocol.message import Buffer

__all__ = ["FrameReceiver"]

SCRATCH_BYTES: Final = 65_536
_LENGTH: Final = 4


class FrameReceiver:
    """Takes bytes from a transport, and passes each frame without its length on.

    The bytes of a frame do not change while a reference to it, or to a view of a part
    of it, exists.

    Args:
        max_frame_size: a longer frame is refused before memory is allocated for it.
        deliver: called with each frame, in order.
    """

    __slots__ = (
        "_big", "_deliver", "_end", "_filled", "_pool", "_scratch", "_start",
        "max_frame_size", "received",
    )  # fmt: skip

    def __init__(self, max_frame_size: int, deliver: Callable[[Buffer], None]) -> None:
        #: May be set at any time; holds for the frames whose length comes afterwards.
        self.max_frame_size = max_frame_size
        self._deliver = deliver
        self._pool = frame_pool()
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        # Invariant: _start <= _end, and between them are the bytes that belong to no
        # frame yet. While a frame has a buffer of its own, the scratch is empty.
        self._start = 0
        self._end = 0
        self._big: memoryview | None = None
        self._filled = 0
        #: Bytes received so far.
        self.received = 0

    def space(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._big is not None:
            return self._big[self._filled :]
        return self._scratch[self._end :]

    def filled(self, count: int) -> None:
        """``count`` bytes were put into ``space``: deliver the complete frames.

        Raises:
            ProtocolError: a length is negative or over the limit.
        """
        self.received += count
        if self._big is not None:
            self._fill(self._big, count)
            return
        self._end += count
        while self._end - self._start >= _LENGTH:
            size = frame_size(self._scratch, self._start, self.max_frame_size)
            begin = self._start + _LENGTH
            if begin + size > self._end:
                if begin + size > SCRATCH_BYTES:
                    self._make_space(size)
                break
            # Before the delivery, which may raise, or call this object again.
            self._start = begin + size
            self._deliver(bytes(self._scratch[begin : begin + size]))
        if self._start == self._end:
            self._start = self._end = 0
        elif SCRATCH_BYTES - self._end < _LENGTH:
            self._move()
        self._pool.tidy()

    def _fill(self, big: memoryview, count: int) -> None:
        """Count bytes of the frame that has a buffer of its own."""
        self._filled += count
        if self._filled == len(big):
            self._big, self._filled = None, 0
            # Read-only: a frame is shared by everything decoded from it.
            self._deliver(big.toreadonly())

    def _make_space(self, size: int) -> None:
        """Make space for a frame that begins in the scratch and does not end in it."""
        here = self._scratch[self._start + _LENGTH : self._end]
        if size + _LENGTH > SCRATCH_BYTES:
            big = self._pool.take(size)
            big[: len(here)] = here
            self._big, self._filled = big, len(here)
            self._start = self._end = 0
        else:
            self._move()

    def _move(self) -> None:
        """Move what is left to the front of the scratch."""
        rest = bytes(self._scratch[self._start : self._end])
        self._scratch[: len(rest)] = rest
        self._start, self._end = 0, len(rest)
