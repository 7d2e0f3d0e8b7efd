"""Bytes from a socket into frames, without copying the large ones.

Small frames arrive many at a time in one scratch buffer, and each is copied out of it.
A frame that outgrows the scratch gets memory of its own size from the thread's pool,
and the socket then reads straight into that.
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
    """Where a transport puts bytes; hands each frame to a callback, without its length.

    The bytes of a frame are not written to while anyone refers to it, or to a view of
    a part of it.

    Args:
        max_frame_size: a longer frame is refused before memory is set aside for it.
        deliver: called with each frame, in order.
    """

    __slots__ = (
        "_big", "_deliver", "_end", "_filled", "_max", "_pool", "_scratch", "_start",
        "received",
    )  # fmt: skip

    def __init__(self, max_frame_size: int, deliver: Callable[[Buffer], None]) -> None:
        self._max = max_frame_size
        self._deliver = deliver
        self._pool = frame_pool()
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        # What the scratch holds and no frame has taken yet: _start <= _end. While a
        # frame has a buffer of its own, the scratch is empty.
        self._start = 0
        self._end = 0
        self._big: memoryview | None = None
        self._filled = 0
        #: Bytes received so far.
        self.received = 0

    def room(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._big is not None:
            return self._big[self._filled :]
        return self._scratch[self._end :]

    def filled(self, count: int) -> None:
        """Note that ``count`` bytes were put into ``room``; deliver complete frames.

        Raises:
            ProtocolError: a length is negative or over the limit.
        """
        self.received += count
        if self._big is not None:
            self._fill(self._big, count)
            return
        self._end += count
        while self._end - self._start >= _LENGTH:
            size = frame_size(self._scratch, self._start, self._max)
            begin = self._start + _LENGTH
            if begin + size > self._end:
                if begin + size > SCRATCH_BYTES:
                    self._make_room(size)
                break
            # Before the delivery, which may raise or look at us.
            self._start = begin + size
            self._deliver(bytes(self._scratch[begin : begin + size]))
        if self._start == self._end:
            self._start = self._end = 0
        elif SCRATCH_BYTES - self._end < _LENGTH:
            self._move()
        self._pool.tidy()

    def _fill(self, big: memoryview, count: int) -> None:
        """Note bytes of the frame that has a buffer of its own."""
        self._filled += count
        if self._filled == len(big):
            self._big, self._filled = None, 0
            # Read-only: a frame is shared by everything decoded from it.
            self._deliver(big.toreadonly())

    def _make_room(self, size: int) -> None:
        """The frame that begins in the scratch does not end in it."""
        here = self._scratch[self._start + _LENGTH : self._end]
        if size + _LENGTH > SCRATCH_BYTES:
            big = self._pool.take(size)
            big[: len(here)] = here
            self._big, self._filled = big, len(here)
            self._start = self._end = 0
        else:
            self._move()

    def _move(self) -> None:
        """Put what is left at the front of the scratch."""
        rest = bytes(self._scratch[self._start : self._end])
        self._scratch[: len(rest)] = rest
        self._start, self._end = 0, len(rest)
