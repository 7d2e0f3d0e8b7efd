"""How the steps of iterators cross from the user's thread to the I/O thread.

A `Crossing` takes the steps of one iterator in the I/O thread, whatever the iterator
is. The value of a step is kept here until the user's task goes on. If that task was
cancelled meanwhile, the value is undone (records are returned to the reader) or, where
nothing needs to be undone, the next step returns it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, Protocol, TypeVar

from kafkaio._consumer.batch import Batch, detach
from kafkaio._consumer.parallel.lane import Track
from kafkaio._consumer.reading.iterators import ReadPort
from kafkaio._consumer.reading.progress import HandedOut
from kafkaio._consumer.reading.reader import Reader
from kafkaio._consumer.rebalance.events import HoldPort
from kafkaio._consumer.threaded.handoff import Handoff, Transfer
from kafkaio._machines.membership.ledger import Claim
from kafkaio.types import TopicPartition

T = TypeVar("T")


class IoThreadPort(Protocol):
    """Runs functions in the I/O thread, or here if this is the thread."""

    def ask(self, work: Callable[[], T]) -> T:
        """Call a function there, and block until it has returned."""
        ...

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Call a coroutine function there, and wait for it."""
        ...


class CrossedPort(Protocol):
    """Follows the value of a step on its way from one thread to the other."""

    def sent(self) -> None:
        """Note that a step returned a value; in the I/O thread."""

    def received(self) -> None:
        """Note that the user's task has the value; in the user's thread."""

    def undo(self) -> None:
        """Undo the step, because its caller was cancelled; in the I/O thread."""


class Crossing:
    """Takes the steps of one iterator in the I/O thread.

    Args:
        thread: the I/O thread.
        before: called before each step, in the I/O thread.
        crossed: follows the values; None if nothing is to be undone.
    """

    __slots__ = ("_before", "_crossed", "_kept", "_thread")

    def __init__(
        self,
        thread: IoThreadPort,
        before: Callable[[], None] | None = None,
        crossed: CrossedPort | None = None,
    ) -> None:
        self._thread = thread
        self._before = before
        self._crossed = crossed
        self._kept = deque[Any]()

    def ask(self, work: Callable[[], object]) -> None:
        """Call a function in the I/O thread, and block until it has returned."""
        self._thread.ask(work)

    async def take(self, step: Callable[[], Awaitable[T]]) -> T:
        """Take a step in the I/O thread, and return its result."""
        if self._crossed is None:
            return await self._take(step)
        try:
            value = await self._take(step)
        except BaseException:
            # Cancelled after the step had ended in the I/O thread. Its records count as
            # handed out there, and nobody would ever get them.
            if self._kept:
                self._kept.clear()
                self._thread.ask(self._crossed.undo)
            raise
        # There is no await between this and the return: the user has the value.
        self._crossed.received()
        return value

    async def _take(self, step: Callable[[], Awaitable[T]]) -> T:
        async def work() -> None:
            if self._before is not None:
                self._before()
            value = await step()
            if isinstance(value, Batch):
                detach(value)  # it needs nothing of the I/O thread any more
            if self._crossed is not None:
                self._crossed.sent()
            # Last: a value that is kept can be undone.
            self._kept.append(value)

        if not self._kept:
            await self._thread.call(work)
        value: T = self._kept.popleft()
        return value


class Transit:
    """Records on their way to the user (`CrossedPort`).

    Args:
        handoff: keeps the records that are on their way.
        read: returns the partitions that the step read.
        take_back: returns the records of the step to the reader.
    """

    __slots__ = ("_handoff", "_read", "_take_back", "_transfer")

    def __init__(
        self,
        handoff: Handoff,
        read: Callable[[], Collection[TopicPartition]],
        take_back: Callable[[], None],
    ) -> None:
        self._handoff = handoff
        self._read = read
        self._take_back = take_back
        self._transfer = Transfer(())

    def sent(self) -> None:
        """Note that the records are on their way."""
        self._transfer = self._handoff.send(self._read())

    def received(self) -> None:
        """Note that the user has the records."""
        self._handoff.receive(self._transfer)

    def undo(self) -> None:
        """Return the records to the reader."""
        self._handoff.turn_back(self._transfer)
        self._take_back()


class ReadCrossing:
    """Runs the reads of an iterator over batches or tables (`ReadPort`).

    Args:
        core: runs the reads in the I/O thread.
        reader: hands the records out.
        thread: the I/O thread.
        handoff: keeps the records that are on their way.
        settle: finishes the records that the user has taken.
    """

    __slots__ = ("_core", "_crossing")

    def __init__(
        self,
        core: ReadPort,
        reader: Reader,
        thread: IoThreadPort,
        handoff: Handoff,
        settle: Callable[[], None],
    ) -> None:
        def read() -> Collection[TopicPartition]:
            reader.sync()
            return reader.read_now()

        def take_back() -> None:
            # `settle` finished everything before the step, so the records that are not
            # finished are those of the step.
            reader.sync()
            reader.take_back()

        self._core = core
        transit = Transit(handoff, read, take_back)
        self._crossing = Crossing(thread, settle, transit)

    @property
    def is_closed(self) -> bool:
        """Whether the consumer was closed, and not ended by a crash."""
        return self._core.is_closed

    async def read(
        self, take: Callable[[], T | None], until: Callable[[], float | None]
    ) -> T | None:
        """Read until ``take`` returns something, in the I/O thread."""

        async def step() -> T:
            while (taken := await self._core.read(take, until)) is None:
                pass
            return taken

        return await self._crossing.take(step)


class LaneCrossing(Crossing):
    """Takes the steps of a lane, or of its batches.

    Args:
        track: the lane.
        thread: the I/O thread.
        handoff: keeps the records that are on their way.
    """

    __slots__ = ("_handoff", "_track")

    def __init__(self, track: Track, thread: IoThreadPort, handoff: Handoff) -> None:
        def take_back() -> None:
            reader = track.reader
            reader.sync()
            # A partition that is assigned again belongs to another lane, whose position
            # must not move.
            if track.tp in reader.positions and not track.is_over:
                reader.take_back(track.tp)

        super().__init__(thread, None, Transit(handoff, lambda: [track.tp], take_back))
        self._track = track
        self._handoff = handoff

    def another(self) -> LaneCrossing:
        """Return a crossing for batches of the lane."""
        return LaneCrossing(self._track, self._thread, self._handoff)

    async def commit(self, commit: Callable[[HandedOut], Awaitable[None]]) -> None:
        """Commit in the I/O thread the records that the user was handed by now."""
        # Taken in the user's thread, before the call crosses: records that arrive in
        # the meantime are not part of this commit.
        mark = self._handoff.mark()
        await self._thread.call(lambda: commit(mark))


class LaneCrossings(Crossing):
    """Takes the steps of an iterator over lanes, and makes those of its lanes.

    Args:
        thread: the I/O thread.
        handoff: keeps the records that are on their way.
        settle: finishes the records that the user has taken.
    """

    __slots__ = ("_handoff",)

    def __init__(
        self, thread: IoThreadPort, handoff: Handoff, settle: Callable[[], None]
    ) -> None:
        super().__init__(thread, settle)
        self._handoff = handoff

    def lane(self, track: Track) -> LaneCrossing:
        """Return a crossing for a lane."""
        return LaneCrossing(track, self._thread, self._handoff)


class HoldingAcross:
    """The membership as holds use it, in whichever thread (`HoldPort`)."""

    def __init__(self, thread: IoThreadPort, member: HoldPort) -> None:
        self._thread = thread
        self._member = member

    def claims(self, partitions: Iterable[TopicPartition]) -> tuple[Claim, ...]:
        """Return the assignments of those partitions that are assigned."""
        return self._thread.ask(lambda: self._member.claims(partitions))

    def hold(self, claims: Iterable[Claim]) -> tuple[Claim, ...]:
        """Keep these assignments until `unhold`; return those that are kept."""
        return self._thread.ask(lambda: self._member.hold(claims))

    def unhold(self, claims: Iterable[Claim]) -> None:
        """End one hold of each of these."""
        self._thread.ask(lambda: self._member.unhold(claims))
