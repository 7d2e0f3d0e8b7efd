"""Cuts the bytes from a socket into frames, without copying the large ones.

Small frames arrive many at a time in one scratch buffer, and each is copied out of it.
A frame that does not fit into the scratch gets memory of its own size from the thread's
frame pool, and the socket then reads directly into it.

Before that the receiver may refuse the frame, and it waits until the budget of all
connections has space for it. Small frames do neither.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from kafkaio._dataclass import dataclass
from kafkaio._net.budget import ReceiveBudget
from kafkaio._net.frame_pool import frame_pool
from kafkaio.protocol._framing import frame_size
from kafkaio.protocol._message import Buffer

SCRATCH_BYTES: Final = 65_536
_LENGTH: Final = 4
_SIZE: Final = struct.Struct(">i")


def _accept(size: int) -> None:
    del size


@dataclass(frozen=True, slots=True)
class LargeFrames:
    """How frames that do not fit into the scratch buffer are accepted.

    Attributes:
        announced: called with the size of each before memory is allocated; it raises
            ProtocolError to refuse the frame.
        budget: each waits for it; None for none.
    """

    announced: Callable[[int], None] = _accept
    budget: ReceiveBudget | None = None


class FrameReceiver:
    """Takes bytes from a transport, and passes each frame without its length on.

    The bytes of a frame do not change while a reference to it, or to a view of a part
    of it, exists.

    Args:
        max_frame_size: a longer frame is refused before memory is allocated for it.
        deliver: called with each frame, in order.
        pause: called with whether to stop reading: a frame waits for the budget. Bytes
            that come nevertheless are taken.
        large: decides on large frames; None accepts all.

    Attributes:
        room: what `space` returns, for callers on a hot path; empty if that has to make
            space first.
    """

    __slots__ = (
        "_announced", "_big", "_budget", "_end", "_filled", "_pause", "_pool",
        "_scratch", "_start", "_waiting", "deliver", "max_frame_size", "received",
        "room",
    )  # fmt: skip

    def __init__(
        self,
        max_frame_size: int,
        deliver: Callable[[Buffer], None],
        pause: Callable[[bool], None] | None = None,
        large: LargeFrames | None = None,
    ) -> None:
        self._announced = _accept if large is None else large.announced
        self._budget = None if large is None else large.budget
        self._pause = pause
        # The size of a frame that waits for the budget; 0 for none.
        self._waiting = 0
        #: May be set at any time; holds for the frames whose length comes afterwards.
        self.max_frame_size = max_frame_size
        self.deliver = deliver
        self._pool = frame_pool()
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.room = self._scratch
        # Invariant: _start <= _end, and the bytes between them are not delivered yet.
        # While a frame has a buffer of its own, the scratch is empty.
        self._start = 0
        self._end = 0
        self._big: memoryview | None = None
        self._filled = 0
        #: Bytes received so far.
        self.received = 0

    def space(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if not self.room:
            # The transport did not pause, and the scratch is full: receive the frame
            # although the budget is exhausted.
            self._take_anyway()
        return self.room

    def close(self) -> None:
        """End the reservation of an unfinished frame; nothing is received any more."""
        if self._budget is None:
            return
        if self._waiting:
            self._budget.withdraw(self._granted)
            self._waiting = 0
        elif self._big is not None:
            self._budget.release(len(self._big))
            self._big, self._filled = None, 0
            self.room = self._scratch

    def filled(self, count: int) -> None:
        """``count`` bytes were put into ``space``: deliver the complete frames.

        Raises:
            ProtocolError: a length is negative or over the limit.
        """
        self.received += count
        if self._big is not None:
            self._fill(self._big, count)
            return
        scratch = self._scratch
        if (
            not self._end
            and count >= _LENGTH
            and _SIZE.unpack_from(scratch)[0] == count - _LENGTH <= self.max_frame_size
        ):
            # One frame, and nothing else: so it is with one request in flight. The
            # scratch stays as empty as it was.
            deliver = self.deliver
            deliver(bytes(scratch[_LENGTH:count]))
        else:
            self._end += count
            self.room = scratch[self._end :]
            if not self._waiting:
                self._split()
        if self._pool.kept:
            self._pool.tidy()

    def _split(self) -> None:
        """Deliver the complete frames in the scratch."""
        while self._end - self._start >= _LENGTH:
            size = frame_size(self._scratch, self._start, self.max_frame_size)
            begin = self._start + _LENGTH
            if begin + size > self._end:
                if begin + size > SCRATCH_BYTES and not self._make_space(size):
                    return
                break
            # Before the delivery: it may raise, or call this object again.
            self._start = begin + size
            self.deliver(bytes(self._scratch[begin : begin + size]))
        if self._start == self._end:
            self._start = self._end = 0
            if self._big is None:
                self.room = self._scratch
        elif SCRATCH_BYTES - self._end < _LENGTH:
            self._move()

    def began_with(self, start: bytes) -> bool:
        """Whether ``filled`` has refused the first frame, and it begins so."""
        is_first = self.received == self._end and not self._start
        return is_first and self._scratch[: len(start)] == start

    def _fill(self, big: memoryview, count: int) -> None:
        """Count bytes of the frame that has a buffer of its own."""
        self._filled += count
        self.room = big[self._filled :]
        if self._filled == len(big):
            self._big, self._filled = None, 0
            self.room = self._scratch
            try:
                # Read-only: a frame is shared by everything decoded from it.
                self.deliver(big.toreadonly())
            finally:
                if self._budget is not None:
                    self._budget.release(len(big))

    def _make_space(self, size: int) -> bool:
        """Make space for a frame that begins in the scratch and does not end in it.

        Returns:
            Whether there is space; else the frame waits for the budget.
        """
        if size + _LENGTH <= SCRATCH_BYTES:
            self._move()
            return True
        self._announced(size)
        if self._budget is not None:
            self._waiting = size
            if not self._budget.reserve(size, self._granted):
                if self._pause is not None:
                    self._pause(True)  # noqa: FBT003 - a callback of one argument
                return False
            self._waiting = 0
        self._begin_big(size)
        return True

    def _granted(self) -> None:
        """Go on with the frame that waited: the budget has space for it."""
        size, self._waiting = self._waiting, 0
        self._begin_big(size)
        if self._pause is not None:
            self._pause(False)  # noqa: FBT003

    def _take_anyway(self) -> None:
        assert self._waiting
        assert self._budget is not None
        self._budget.withdraw(self._granted)
        self._budget.add(self._waiting)
        self._granted()

    def _begin_big(self, size: int) -> None:
        here = self._scratch[self._start + _LENGTH : self._end]
        big = self._pool.take(size)
        big[: len(here)] = here
        self._big, self._filled = big, len(here)
        self.room = big[len(here) :]
        self._start = self._end = 0

    def _move(self) -> None:
        """Move what is left to the front of the scratch."""
        rest = bytes(self._scratch[self._start : self._end])
        self._scratch[: len(rest)] = rest
        self._start, self._end = 0, len(rest)
        self.room = self._scratch[len(rest) :]
