"""``Consumer.partitions``: a lane for each assigned partition."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import ExitStack
from typing import Any, Protocol, Self, TypeVar

from kafkaio._consumer.parallel.lane import (
    Lane,
    LaneCommit,
    LaneCrossingPort,
    Track,
    check_current,
    offset_after,
)
from kafkaio._consumer.parallel.ports import LanesPort
from kafkaio._consumer.reading.progress import HandedOut
from kafkaio._generic import Generic, K_co, V_co
from kafkaio._public import public
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._runtime.caller import when_done
from kafkaio.types import TopicPartition

T = TypeVar("T")


class Lanes:
    """Divides a consumer's records by partition, from the first lane until it closes.

    Args:
        consumer: whose records they are.
        max_records: most records of a lane's batch by default.
        timeout: seconds that a lane's commit may take by default.
    """

    def __init__(
        self, consumer: LanesPort, *, max_records: int, timeout: float
    ) -> None:
        self.max_records = max_records
        self._consumer = consumer
        self._reader = consumer.reader
        self._timeout = timeout
        self._tracks: dict[TopicPartition, Track] = {}
        # New lanes that no iterator has handed to the user yet.
        self._fresh: deque[Track] = deque()
        self._changed = Broadcast()
        self._has_started = self._is_draining = False
        # Tasks that closed the consumer from within a body: closing must not wait for
        # them.
        self._gone = set[asyncio.Task[object] | None]()
        self._context = ExitStack()
        self._progress = 0

    @property
    def has_order(self) -> bool:
        """True: a lane finishes its records in order."""
        return True

    def start(self) -> None:
        """Divide the records from now on. Nothing happens the second time.

        Raises:
            UsageError: another task reads.
            ClosedError: the consumer is not running.
        """
        if not self._has_started:
            self._consumer.check()
            self._context.enter_context(self._consumer.dividing(self))
            self._has_started = True
            self._consumer.spawn(self._run, "lanes")

    async def next(self) -> Track:
        """Return the next lane; wait until there is one.

        Raises:
            StopAsyncIteration: the consumer closes.
            Exception: an error of a background task.
        """
        while not self._fresh:
            if self._is_draining:
                raise StopAsyncIteration
            self._consumer.check()
            self._reader.raise_errors()
            if not self._tracks:
                self._consumer.check_wanted()
            await self._changed.wait()
        return self._fresh.popleft()

    async def _run(self) -> None:
        try:
            while True:
                await self._consumer.wait_for_news(None)
                self._spread()
        finally:
            # Bodies that wait notice that the consumer is closed or has crashed.
            self._wake_all()
            self._context.close()

    def _spread(self) -> None:
        # An error is raised by the first lane that takes a step: wake all of them.
        reader = self._reader
        if reader.has_failed or not self._consumer.may_read:
            self._wake_all()
            return
        for buffer in reader.buffers.ready:
            track = self._tracks.get(buffer.tp)
            if track is not None:
                track.wake()

    def _wake_all(self) -> None:
        self._changed.notify_all()
        for track in self._tracks.values():
            track.wake()

    # Calls of the reader (see `kafkaio._consumer.reading.divider.DividerPort`)

    def assigned(self, tp: TopicPartition) -> None:
        """Make a new lane, unless one goes on because only its log was truncated."""
        if self._is_draining:
            return
        before = self._tracks.get(tp)
        if before is not None and not before.is_over:
            before.wake()
            return
        track = Track(self, self._consumer, tp, self._reader.ledger.number(tp))
        self._tracks[tp] = track
        self._fresh.append(track)
        self._changed.notify_all()

    def revoke_requested(self, tp: TopicPartition) -> None:
        """Ask the lane to end."""
        if tp in self._tracks:
            self._tracks[tp].end()

    def may_go(self, tp: TopicPartition) -> bool:
        """Whether the lane is over."""
        return tp not in self._tracks or self._tracks[tp].is_over

    def unassigned(self, tp: TopicPartition) -> None:
        """End the lane if it has not ended: the partition is gone."""
        track = self._tracks.pop(tp, None)
        if track is not None:
            # A lane that the user never got is not handed out either.
            self._withdraw(track)
            track.lose()

    def sync(self) -> None:
        """Do nothing: the turns of lanes are brought up to date as the reader's is."""

    def committed(self) -> None:
        """End the lanes whose bodies waited only for this commit."""
        # A copy: a lane that is over releases its partition, which removes it.
        for track in list(self._tracks.values()):
            track.settle()

    def shows_life(self) -> bool:
        """Whether a lane took or awaits records, or none is at work."""
        before, self._progress = self._progress, self._reader.progress
        at_work = [track for track in self._tracks.values() if track.has_taken]
        return (
            before != self._progress
            or not at_work
            or any(track.is_waiting for track in at_work)
        )

    def begin_draining(self) -> None:
        """End all lanes."""
        self._is_draining = True
        self._changed.notify_all()
        for track in list(self._tracks.values()):
            self._withdraw(track)
            track.end()

    async def drain(self) -> None:
        """Wait for the bodies of all lanes."""
        # A body without ``async with`` is done when its task is: nothing else shows it.
        tracks = list(self._tracks.values())
        for track in tracks:
            if track.taker is not None:
                when_done(track.taker, self._changed.notify_all)
        while any(self._is_busy(track) for track in tracks):
            await self._changed.wait()

    def leave(self, task: asyncio.Task[object] | None) -> None:
        """End the lanes of a task that closes the consumer itself."""
        self._is_draining = True
        self._gone.add(task)
        for track in self._tracks.values():
            if track.leave(task) and not self._is_busy(track):
                track.finish()
        self._changed.notify_all()

    def _is_busy(self, track: Track) -> bool:
        if track.is_over or track.is_entered:
            return not track.is_over
        taker = track.taker
        return not (taker is None or taker in self._gone or taker.done())

    def stop(self) -> None:
        """Do nothing: the bodies are the user's tasks, and end at their next step."""

    # Calls of the lanes

    def over(self, track: Track) -> None:
        """Release a lane's partition, or hand it to another lane."""
        tp = track.tp
        self._changed.notify_all()
        if self._tracks.get(tp) is not track or self._is_draining:
            return
        if track.is_ending:
            self._withdraw(track)
            self._consumer.release(tp)
            return
        # The partition is still assigned: another lane goes on with it, from the first
        # record that this one has not finished.
        track.is_ending = True
        self._reader.take_back(tp)
        self.assigned(tp)

    def awaits_commit(self, tp: TopicPartition) -> bool:
        """Whether finished records of a partition wait for the user to commit them."""
        return self._consumer.awaits_commit(tp)

    async def commit(
        self,
        track: Track,
        what: LaneCommit | None,
        within: float | None,
        moment: HandedOut | None = None,
    ) -> None:
        """Commit for a lane, as ``Lane.commit`` says."""
        ledger = self._reader.ledger
        within = self._timeout if within is None else within
        # For a lost partition `check_current` raises the better error.
        if not track.is_lost:
            self._consumer.check(while_closing=True)
        after = None if what is None else offset_after(track, what)
        check_current(track, what)
        if after is None:
            # After it is over, another lane may be at work on the partition.
            if track.is_over:
                self._reader.sync(track.tp)
            else:
                self._reader.acknowledge({track.tp}, moment)
            await self._consumer.commit(ledger.finished({track.tp}), within)
        else:
            await self._consumer.commit(ledger.commit_of({track.tp: after}), within)

    def _withdraw(self, track: Track) -> None:
        if track in self._fresh:
            self._fresh.remove(track)


class LaneCrossingsPort(Protocol):
    """Runs the steps of a `LaneIterator` in the consumer's thread."""

    def take(self, step: Callable[[], Awaitable[T]]) -> Coroutine[Any, Any, T]:
        """Run a step there, and return its result."""
        ...

    def lane(self, track: Track) -> LaneCrossingPort:
        """Return a crossing for a lane."""
        ...


@public("kafkaio")
class LaneIterator(Generic[K_co, V_co]):
    """Iterates over lanes, as ``Consumer.partitions`` says.

    Args:
        lanes: the consumer's lanes.
        owner: the consumer, which is not collected while it is iterated over.
        crossings: runs the steps, if the consumer is in another thread.
    """

    def __init__(
        self, lanes: Lanes, owner: object, crossings: LaneCrossingsPort | None = None
    ) -> None:
        self._lanes = lanes
        self._owner = owner
        self._crossings = crossings

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Lane[K_co, V_co]]:
        """Return the next lane. If cancelled, none was taken."""
        crossings = self._crossings
        return self._next() if crossings is None else crossings.take(self._next)

    async def _next(self) -> Lane[K_co, V_co]:
        self._lanes.start()
        track = await self._lanes.next()
        crossings = self._crossings
        return Lane(track, None if crossings is None else crossings.lane(track))
