"""Acquired ranges as the user's thread has them, and those of the ledger beside them.

The ledger works on its ranges in the I/O thread, in several steps that no other thread
may come between. So records in the user's hands refer to a *mirror*: a range of their
own, of the same offsets. Two things happen to a mirror, in either thread: an offset is
decided, or all held offsets of a part are. Both are one step of the compiled codec,
which holds the interpreter's lock meanwhile. (The pure one takes several steps, so it
is refused with ``io_thread``.)

Decisions cross in bundles: the first one of a range asks the I/O thread to collect, and
what is decided until then goes with it. `Mirror.collect` clears ``is_queued`` before it
looks, so a decision that comes behind its look asks again.

A lock may end while a decision is on its way. The decision does not count then, which
is reported as of any other: by ``record.acked``, ``flush`` and the observer.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final, TypeAlias

from kafkaio._records._acquired import STATE
from kafkaio._records.batch import Acquired
from kafkaio._runtime.thread import LoopThread

#: Called with a range of the ledger, and the first and last offset of decisions that
#: came too late.
OnLate: TypeAlias = Callable[[Acquired, int, int], None]
#: Runs of decisions.
_DECIDED: Final = re.compile(rb"\x01+|\x02+|\x03+|\x05+", re.DOTALL)
#: Runs of whatever became of offsets.
_CHANGED: Final = re.compile(
    b"|".join(b"\\x%02x+" % state for state in range(1, STATE + 1)), re.DOTALL
)
#: For `bytes.translate`: what became of an offset, wherever the ledger is with it.
_STATES: Final = bytes(state & STATE for state in range(256))


class Mirror:
    """The mirror of one range, and the listener of its decisions.

    Args:
        real: the range of the ledger.
        thread: the I/O thread.
        forget: called when nothing more can happen to the range.
        on_late: called when the lock of decided offsets is gone.

    Attributes:
        real: see above.
        shown: the mirror.
    """

    __slots__ = ("_forget", "_on_late", "_seen", "_thread", "real", "shown")

    def __init__(
        self,
        real: Acquired,
        thread: LoopThread,
        forget: Callable[[Mirror], None],
        on_late: OnLate,
    ) -> None:
        self.real = real
        self._thread = thread
        self._forget = forget
        self._on_late = on_late
        # The states of the mirror that were collected.
        self._seen = bytes(len(real.states))
        place = (real.topic, real.partition, real.first, real.last)
        self.shown = Acquired(*place, real.delivery_count, real.node_id, self)
        self.shown.deadline = real.deadline

    # In either thread (`AcquiredListenerPort`)

    def decided(self, acquired: Acquired) -> None:
        """Have the decisions collected, soon."""
        del acquired  # the mirror
        if self._thread.is_inside:
            self.collect()
        else:
            self._thread.tell(self.collect)

    def acked(self, acquired: Acquired, offset: int) -> Awaitable[None]:
        """Return what is done when the leader has answered the acknowledgement."""
        del acquired
        return _AckedAcross(self, self._thread, offset)

    def has_ended(self, acquired: Acquired, offset: int) -> bool:
        """Whether the lock has ended, by the clock as well."""
        del acquired
        return self.real.is_lost(offset)

    # In the I/O thread

    def collect(self) -> None:
        """Pass new decisions on to the ledger's range."""
        shown, real, seen = self.shown, self.real, self._seen
        shown.is_queued = False  # first: see the module
        states = self._seen = bytes(shown.states)
        size = len(states)
        changes = int.from_bytes(states) ^ int.from_bytes(seen)
        if not changes:
            return
        if shown.handed_to > real.handed_to:
            real.handed_to = shown.handed_to
        # Each byte changes once, from 0.
        for run in _DECIDED.finditer(changes.to_bytes(size)):
            first, last = real.first + run.start(), real.first + run.end() - 1
            decided = real.decide_range(first, last, states[run.start()])
            if decided <= last - first:
                self._report_late(first, last)
        if not shown.held:
            self._forget(self)

    def _report_late(self, first: int, last: int) -> None:
        late = [n for n in range(first, last + 1) if self.real.is_lost(n)]
        if late:
            self._on_late(self.real, late[0], late[-1])

    def refresh(self) -> None:
        """Note in the mirror what became of the range without its decisions."""
        shown, real = self.shown, self.real
        shown.lost_because = real.lost_because
        shown.deadline = real.deadline
        base = real.first
        for run in _CHANGED.finditer(bytes(real.states).translate(_STATES)):
            first, end = run.span()
            state = real.states[first] & STATE
            shown.decide_range(base + first, base + end - 1, state)


class _AckedAcross:
    """What ``record.acked`` returns; it can be awaited several times."""

    __slots__ = ("_mirror", "_offset", "_thread")

    def __init__(self, mirror: Mirror, thread: LoopThread, offset: int) -> None:
        self._mirror = mirror
        self._thread = thread
        self._offset = offset

    def __await__(self) -> Generator[Any, None, None]:
        mirror, offset = self._mirror, self._offset

        def begin() -> Awaitable[None]:
            mirror.collect()  # the decision may be on its way
            return mirror.real.acked(offset)

        if self._thread.is_inside:
            return begin().__await__()
        return self._thread.call(begin).__await__()


class Mirrors:
    """The mirrors of all ranges that something can happen to; for the I/O thread.

    Args:
        thread: the I/O thread.
        on_late: called when the lock of decided offsets is gone.
    """

    def __init__(self, thread: LoopThread, on_late: OnLate) -> None:
        self._thread = thread
        self._on_late = on_late
        self._mirrors: dict[Acquired, Mirror] = {}

    def show(self, real: Acquired) -> Acquired:
        """Make the mirror of a range, for the reader."""
        mirror = self._mirrors[real] = Mirror(
            real, self._thread, self._forget, self._on_late
        )
        return mirror.shown

    def shown(self, real: Acquired) -> Acquired:
        """Return the mirror of a range; the range itself if it has none any more."""
        mirror = self._mirrors.get(real)
        return real if mirror is None else mirror.shown

    def refresh(self, real: Acquired) -> None:
        """Note that locks of a range were lost or renewed."""
        if (mirror := self._mirrors.get(real)) is not None:
            mirror.refresh()

    def handed_out(self) -> None:
        """Note in the ledger's ranges which records were handed out."""
        for real, mirror in self._mirrors.items():
            if mirror.shown.handed_to > real.handed_to:
                real.handed_to = mirror.shown.handed_to

    def end(self) -> None:
        """Note what closing has released."""
        for mirror in [*self._mirrors.values()]:
            mirror.refresh()
        self._mirrors.clear()

    def _forget(self, mirror: Mirror) -> None:
        self._mirrors.pop(mirror.real, None)
