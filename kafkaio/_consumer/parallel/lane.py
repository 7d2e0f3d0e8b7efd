"""A lane: the records of one assigned partition, for one task at its own pace.

A lane belongs to one assignment of its partition. It has three states:

* running: records are handed out;
* ending: the group has requested the partition back, or the consumer closes. The lane's
  iteration ends, and the partition is kept until the body is done with it;
* over: the body is done with the partition, or the partition is lost. Then the
  partition is released.

The body is done at the end of its ``async with lane:``, when it closes the lane, or
when its iteration has ended and all records that it took are committed. `Lane` is the
user's object; `Track` is the consumer's state of the lane. The consumer does not refer
to the `Lane`, so a lane that the user drops is collected, and is over by that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from kafkaio._arguments import count_of, seconds_of
from kafkaio._consumer.batch import Batch, Piece, size_of
from kafkaio._consumer.parallel.ports import LanesPort
from kafkaio._consumer.reading.iterators import RecordStream
from kafkaio._consumer.reading.progress import HandedOut, Turn
from kafkaio._consumer.reading.reader import Reader
from kafkaio._generic import Generic, K_co, V_co
from kafkaio._public import public
from kafkaio._runtime.caller import caller
from kafkaio._runtime.clock import now
from kafkaio._runtime.time_slice import SLICE, TimeSlice
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import ArgumentValueError, PartitionLost, UsageError
from kafkaio.types import AnyRecord, OffsetAndMetadata, Record, TopicPartition

T = TypeVar("T")

#: Records that a lane hands out at most before it looks at what is due.
_ALLOWANCE = 256

#: An argument of `Lane.commit`: a finished record or batch, or the next offset to read.
LaneCommit: TypeAlias = (
    Record[object, object] | Batch[object, object] | int | OffsetAndMetadata
)


class LaneOwnerPort(Protocol):
    """The owner of a lane: `Lanes`.

    Attributes:
        max_records: most records of a batch by default.
    """

    max_records: int

    def over(self, track: Track) -> None:
        """Release or hand on a partition whose lane is over."""

    def awaits_commit(self, tp: TopicPartition) -> bool:
        """Whether finished records of a partition wait for the user to commit them."""
        ...

    async def commit(
        self,
        track: Track,
        what: LaneCommit | None,
        within: float | None,
        moment: HandedOut | None = None,
    ) -> None:
        """Commit for a lane, as `Lane.commit` says."""


class LaneCrossingPort(Protocol):
    """Runs the steps of a lane in the consumer's thread, if that is another one."""

    def take(self, step: Callable[[], Awaitable[T]]) -> Coroutine[Any, Any, T]:
        """Run a step there, and return its result."""
        ...

    def ask(self, work: Callable[[], object]) -> None:
        """Call a function there, and block until it has returned."""

    def another(self) -> LaneCrossingPort:
        """Return a crossing for batches of the lane."""
        ...

    async def commit(self, commit: Callable[[HandedOut], Awaitable[None]]) -> None:
        """Commit there the records that the user has received by now."""


class Track:
    """A lane, as the consumer sees it.

    Args:
        owner: divides the partitions among lanes.
        consumer: whose records they are.
        tp: the partition.
        number: the number of its assignment.
    """

    def __init__(
        self,
        owner: LaneOwnerPort,
        consumer: LanesPort,
        tp: TopicPartition,
        number: int | None,
    ) -> None:
        self.owner = owner
        self.reader: Reader = consumer.reader
        self.tp = tp
        self.number = number
        self._consumer = consumer
        #: Whether the lane was asked to end.
        self.is_ending: bool = False
        #: Whether the body is done with the partition.
        self.is_over: bool = False
        #: Whether the partition was lost before the body was done.
        self.is_lost: bool = False
        #: Whether a task is within ``async with``, and which.
        self.is_entered: bool = False
        self._inside: asyncio.Task[object] | None = None
        #: Whether a record was handed out.
        self.has_taken: bool = False
        #: Whether the body's iteration has ended.
        self.has_stopped: bool = False
        self.is_waiting: bool = False
        #: The task that was the first to take a record, or the last to wait.
        self.taker: asyncio.Task[object] | None = None
        #: Decides when a body with records at hand gives the event loop a turn.
        self.time_slice: TimeSlice = consumer.time_slice
        self._wakeup = Wakeup()
        #: Hands out the records one by one, without a coroutine where one is at hand.
        self._turn: Turn = self.reader.turn(self._refill)
        self.stream: RecordStream = RecordStream(self._turn.handout, self.next)

    def wake(self) -> None:
        """Wake the body, if it waits."""
        self._wakeup.notify()

    def enter(self, task: asyncio.Task[object] | None) -> None:
        """Note that a task entered an ``async with``."""
        self.is_entered, self._inside = True, task

    def leave(self, task: asyncio.Task[object] | None) -> bool:
        """Note that a task closes the consumer; return whether it is the body."""
        if self._inside is task:
            self.is_entered = False
        return task in {self._inside, self.taker}

    def end(self) -> None:
        """Ask the body to end."""
        self.is_ending = True
        self.settle()
        self.wake()

    def lose(self) -> None:
        """End the lane: the partition is not assigned any more."""
        # Not lost if the body was done before: it lost nothing.
        self.is_lost = not self.is_over
        self.is_ending = self.is_over = True
        self.wake()

    def settle(self) -> None:
        """End the lane if it was asked to end and its body is done."""
        if self.is_ending and not (self.is_over or self._is_at_work()):
            self.finish()

    def finish(self) -> None:
        """End the lane: the body is done with the partition."""
        # Once, however often: `__del__`, `close` and the end of a block may all follow.
        if not self.is_over:
            self.is_over = True
            self.owner.over(self)

    def _is_at_work(self) -> bool:
        if self.is_entered:
            return True
        if not self.has_taken:
            return False
        return not self.has_stopped or self.owner.awaits_commit(self.tp)

    def _refill(self) -> bool:
        # Called by the handout when its credit or its chunk is used up. Returns whether
        # it can go on without a wait; `next` does what may wait or end the lane.
        if (
            self.is_ending
            or self.is_over
            or not self.has_taken
            or self.time_slice.is_over
            or self._is_interrupted()
        ):
            return False
        self.reader.step_of(self.tp)
        return self._find(self.time_slice.end - self.time_slice.clock())

    def _is_interrupted(self) -> bool:
        return not self._consumer.may_read or bool(self.reader.errors)

    def _find(self, seconds: float) -> bool:
        found = self.reader.find_of(self.tp, self._turn)
        if found:
            self._turn.handout.grant(_ALLOWANCE, seconds)
        return found

    async def next(self) -> AnyRecord:
        """Return the next record; wait for it as long as it takes."""
        while True:
            if self.time_slice.is_over:
                await self.time_slice.take_turn()
            self.step()
            # At least one record, even if the slice has just ended.
            while self._find(SLICE):
                # None if its deserializer has to be awaited.
                if (record := self._turn.handout.take()) is not None:
                    self._took()
                    return record
            await self.wait()

    def step(self) -> None:
        """Begin a step: the records taken before are finished.

        Raises:
            StopAsyncIteration: the lane has ended.
        """
        # When it is over, another lane may be at work on the partition.
        if not self.is_over:
            self.reader.step_of(self.tp)
        if self.is_ending or self.is_over:
            self.has_stopped = True
            self.settle()
            raise StopAsyncIteration
        self._consumer.check()
        self.reader.raise_errors()

    def take(self, limit: int, *, may_fail: bool = True) -> Piece | None:
        """Take the records that are here, up to the end of a fetched batch.

        Args:
            limit: most records.
            may_fail: whether to raise an error that comes next, and not by a later
                call.
        """
        piece = self.reader.take_of(self.tp, limit, raw=False, may_fail=may_fail)
        if piece is not None:
            self._took()
        return piece

    def _took(self) -> None:
        if not self.has_taken:
            self.has_taken = True
            self.taker = caller()

    async def wait(self, until: float | None = None) -> None:
        """Wait for records or another event of the lane.

        Raises:
            OffsetOutOfRange: the partition has neither a position nor a reset policy.
            UsageError: another task waits already.
        """
        self.reader.raise_without_position(self.tp)
        self.taker = caller()
        if self.is_waiting:
            raise UsageError("another task reads this lane")
        self.is_waiting = True
        try:
            await self._wakeup.wait(until)
        finally:
            self.is_waiting = False
        self.time_slice.woken()


@public("kafkaio")
class Lane(Generic[K_co, V_co]):
    """The records of one assigned partition, as ``Consumer.partitions`` gives it.

    ``async for record in lane`` has them one at a time, `batches` many. Asking for
    more finishes the records taken before. The iteration ends when the group requests
    the partition back, when the partition was lost, and when the consumer closes.

    The partition is not released until the lane is over, or until the group's
    deadline. A lane is over

    * at the end of ``async with lane:``, however it is left; by `close`; or when the
      task in it closes the consumer;
    * without these: when the iteration has ended and the records taken are committed
      (at once with ``enable_auto_commit``, which commits before the release);
    * as soon as it is to end, if nothing was ever taken from it;
    * when nothing refers to it any more.

    If a lane is over while its partition is still assigned (the body left its loop),
    another lane follows, which begins at the first unfinished record.

    A record that cannot be deserialized, or a batch that cannot be read, is raised by
    the lane of its partition alone. ``consumer.seek(error.topic_partition,
    error.next_offset)`` goes past it, and the lane goes on from there.

    Only one task may read a lane at a time.
    """

    __slots__ = ("_crossing", "_loop", "_track")

    def __init__(self, track: Track, crossing: LaneCrossingPort | None = None) -> None:
        self._track = track
        self._crossing = crossing
        self._loop = asyncio.get_running_loop()

    def __repr__(self) -> str:
        track = self._track
        state = "running"
        if track.is_ending:
            state = "lost" if track.is_lost else "over" if track.is_over else "ending"
        return f"<Lane {self.topic}-{self.partition} | {state}>"

    def __del__(self) -> None:
        # The collector may run in any thread, and at any point of the loop's code.
        if not self._track.is_over and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._track.finish)

    @property
    def topic(self) -> str:
        """Name of the topic."""
        return self._track.tp.topic

    @property
    def partition(self) -> int:
        """Number of the partition."""
        return self._track.tp.partition

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return self._track.tp

    @property
    def is_lost(self) -> bool:
        """Whether the partition was taken before the lane was over."""
        return self._track.is_lost

    async def __aenter__(self) -> Self:
        self._do(partial(self._track.enter, caller()))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._do(self._track.finish)

    async def close(self) -> None:
        """End the lane: the body is done with the partition. Waits for nothing."""
        self._do(self._track.finish)

    def _do(self, work: Callable[[], None]) -> None:
        if self._crossing is None:
            work()
        else:
            self._crossing.ask(work)

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Record[K_co, V_co]]:
        """Return the next record. If cancelled, none was taken.

        Raises:
            KafkaError: as iterating over the consumer does, as far as it concerns this
                partition.
            UsageError: another task reads this lane.
        """
        track, crossing = self._track, self._crossing
        if crossing is not None:
            return crossing.take(track.next)
        return track.stream.__anext__()

    def batches(
        self, *, max_records: int | None = None, max_wait: float = 0.0
    ) -> LaneBatches[K_co, V_co]:
        """Iterate over batches; asking for the next one finishes the one before.

        Args:
            max_records: most records of a batch, ``max_poll_records`` by default.
            max_wait: seconds to wait for that many, once there are any.
        """
        most = count_of("max_records", max_records, self._track.owner.max_records)
        crossing = None if self._crossing is None else self._crossing.another()
        return LaneBatches(self, self._track, most, max_wait, crossing)

    async def commit(
        self,
        what: LaneCommit | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commit for this partition; return when the group coordinator has it.

        Args:
            what: a finished record or batch of the partition, as for
                ``Consumer.commit``, or the offset to read next. None commits
                everything that this lane has handed out.
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Raises:
            PartitionLost: the partition does not belong to this lane any more.
            ArgumentValueError: the record or batch is of another partition.
            UsageError: the consumer has no group.
            KafkaError: as ``Consumer.commit`` does.
        """
        commit = partial(self._track.owner.commit, self._track, what, timeout)
        if self._crossing is None:
            await commit()
        else:
            await self._crossing.commit(commit)


@public("kafkaio")
class LaneBatches(Generic[K_co, V_co]):
    """Iterates over batches of a lane.

    Args:
        lane: the lane; it is kept alive.
        track: its state.
        max_records: most records of a batch.
        max_wait: seconds to wait for that many, once there are any.
        crossing: runs the steps, if the consumer is in another thread.
    """

    def __init__(
        self,
        lane: Lane[K_co, V_co],
        track: Track,
        max_records: int,
        max_wait: float,
        crossing: LaneCrossingPort | None = None,
    ) -> None:
        self._crossing = crossing
        self._lane = lane
        self._track = track
        self._max_records = max_records
        self._max_wait = seconds_of("max_wait", max_wait)

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Batch[K_co, V_co]]:
        """Return the next batch. If cancelled, nothing was taken."""
        return (
            self._next() if self._crossing is None else self._crossing.take(self._next)
        )

    async def _next(self) -> Batch[K_co, V_co]:
        track, until = self._track, None
        while True:
            if track.time_slice.is_over:
                await track.time_slice.take_turn()
            track.step()
            buffers = track.reader.buffers
            at_hand = buffers.at_hand(track.tp)
            if at_hand and until is None:
                until = now() + self._max_wait
            # A filter may remove all records at hand: then the wait begins again.
            is_due = until is not None and now() >= until
            is_due = is_due or buffers.must_raise(track.tp)
            if at_hand >= self._max_records or is_due:
                until = None
                if (batch := self._take()) is not None:
                    return batch
            await track.wait(until)

    def _take(self) -> Batch[K_co, V_co] | None:
        track, left = self._track, self._max_records
        pieces: list[Piece] = []
        while left:
            # An error behind these records is raised by the next step.
            piece = track.take(left, may_fail=not pieces)
            if piece is None:
                break
            pieces.append(piece)
            left -= size_of(piece)
        number = -1 if track.number is None else track.number
        return Batch(track.tp, pieces, number) if pieces else None


def offset_after(track: Track, what: LaneCommit) -> OffsetAndMetadata:
    """Return the offset to commit for an argument of `Lane.commit`.

    Raises:
        ArgumentValueError: it is of another partition.
    """
    if isinstance(what, OffsetAndMetadata):
        return what
    if isinstance(what, int):
        return OffsetAndMetadata(what)
    tp = track.tp
    if what.topic_partition != tp:
        raise ArgumentValueError(f"{what!r} is not of {tp.topic}-{tp.partition}")
    return track.reader.place_after(what)


def check_current(track: Track, batch: LaneCommit | None) -> None:
    """Raise if the lane, or a batch, is of an assignment that has ended.

    Raises:
        PartitionLost: the partition does not belong to the lane any more.
    """
    # The same partition may be assigned again since, under another number.
    current = track.reader.ledger.number(track.tp)
    is_old = isinstance(batch, Batch) and batch.assignment != current
    if is_old or current is None or current != track.number:
        raise PartitionLost(
            f"{track.tp.topic}-{track.tp.partition} was taken from this lane"
        )
