"""``Consumer.partitions``: a lane for each assigned partition."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from kafkaio._runtime.thread import when_done
from kafkaio.client.broadcast import Broadcast
from kafkaio.consumer.parallel.divider import let_go, shared
from kafkaio.consumer.parallel.lane import (
    Lane,
    LaneCommit,
    Track,
    check_current,
    offset_after,
)
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio.consumer.core import Core
    from kafkaio.consumer.threaded.handoff import Moment

__all__ = ["LaneIterator", "Lanes"]


class Lanes:
    """The lanes of one consumer, from the first that is asked for until it closes.

    Args:
        core: the consumer's inner works.
    """

    def __init__(self, core: Core) -> None:
        self.core = core
        self._tracks: dict[TopicPartition, Track] = {}
        # Those that no iterator has given to the user.
        self._fresh: deque[Track] = deque()
        self._changed = Broadcast()
        self._has_started = self._is_draining = False
        # Tasks that have left their bodies, by closing the consumer.
        self._gone = set[asyncio.Task[object] | None]()
        self._context = ExitStack()
        self._progress = 0

    @property
    def has_order(self) -> bool:
        """A record that is done says that those before it are."""
        return True

    def start(self) -> None:
        """Divide the records from now on. Nothing happens the second time.

        Raises:
            UsageError: another task reads.
            ClosedError: the consumer is not running.
        """
        if not self._has_started:
            self.core.check()
            self._context.enter_context(shared(self.core, self))
            self._has_started = True
            self.core.spawn(self._run, "lanes")

    async def next(self) -> Track:
        """The next lane; waits until there is one.

        Raises:
            StopAsyncIteration: the consumer closes.
            Exception: what the background reported.
        """
        while not self._fresh:
            if self._is_draining:
                raise StopAsyncIteration
            self.core.check()
            self.core.reader.raise_errors()
            if not self._tracks:
                self.core.check_wanted()
            await self._changed.wait()
        return self._fresh.popleft()

    async def _run(self) -> None:
        try:
            while True:
                await self.core.wait_for_news(None)
                self._spread()
        finally:
            self._wake_all()
            self._context.close()

    def _spread(self) -> None:
        core, reader = self.core, self.core.reader
        if reader.has_failed or core.state != "running" or core.wanted.is_nothing:
            self._wake_all()
            return
        for buffer in reader.buffers.ready:
            track = self._tracks.get(buffer.tp)
            if track is not None:
                track.wake()

    def _wake_all(self) -> None:
        self._changed.tell()
        for track in self._tracks.values():
            track.wake()

    # What the consumer tells

    def assigned(self, tp: TopicPartition) -> None:
        """There is a new lane."""
        if self._is_draining:
            return
        track = Track(self, tp, self.core.reader.ledger.number(tp))
        self._tracks[tp] = track
        self._fresh.append(track)
        self._changed.tell()

    def revoke_requested(self, tp: TopicPartition) -> None:
        """The lane is to end."""
        if tp in self._tracks:
            self._tracks[tp].end()

    def may_go(self, tp: TopicPartition) -> bool:
        """Whether the lane is over."""
        return tp not in self._tracks or self._tracks[tp].is_over

    def unassigned(self, tp: TopicPartition) -> None:
        """The lane ends, if it has not."""
        track = self._tracks.pop(tp, None)
        if track is not None:
            self._withdraw(track)
            track.lose()

    def sync(self) -> None:
        """The lanes tell the ledger themselves."""

    def committed(self) -> None:
        """Perhaps that was what a lane had to do yet."""
        for track in list(self._tracks.values()):
            track.settle()

    def shows_life(self) -> bool:
        """Whether a lane went on, or one waits for records, or none is at work."""
        before, self._progress = self._progress, self.core.reader.progress
        at_work = [track for track in self._tracks.values() if track.has_taken]
        return (
            before != self._progress
            or not at_work
            or any(track.is_waiting for track in at_work)
        )

    def begin_draining(self) -> None:
        """End all lanes."""
        self._is_draining = True
        self._changed.tell()
        for track in list(self._tracks.values()):
            self._withdraw(track)
            track.end()

    async def drain(self) -> None:
        """Wait for the bodies of all lanes."""
        tracks = list(self._tracks.values())
        for track in tracks:
            if track.taker is not None:
                when_done(track.taker, self._changed.tell)
        while any(self._is_busy(track) for track in tracks):
            await self._changed.wait()

    def left(self, task: asyncio.Task[object] | None) -> None:
        """A task is done with the lanes that it is in."""
        self._is_draining = True
        self._gone.add(task)
        for track in self._tracks.values():
            if track.leave(task) and not self._is_busy(track):
                track.finish()
        self._changed.tell()

    def _is_busy(self, track: Track) -> bool:
        if track.is_over or track.is_entered:
            return not track.is_over
        taker = track.taker
        return not (taker is None or taker in self._gone or taker.done())

    def stop(self) -> None:
        """The bodies are the user's: they end with their next step."""

    # What lanes tell

    def over(self, track: Track) -> None:
        """A lane's body is through."""
        tp = track.tp
        self._changed.tell()
        if self._tracks.get(tp) is not track or self._is_draining:
            return
        if track.is_ending:
            self._withdraw(track)
            let_go(self.core, tp)
            return
        # The partition is still ours: somebody else may go on with it.
        track.is_ending = True
        self.core.reader.take_back(tp)
        self.assigned(tp)

    def is_committed(self, track: Track) -> bool:
        """Whether all that was finished is, or will be before the partition goes."""
        core = self.core
        return (
            core.auto_commits
            or core.committer is None
            or not core.reader.ledger.is_due(track.tp)
        )

    async def commit(
        self,
        track: Track,
        what: LaneCommit | None,
        within: float | None,
        moment: Moment | None = None,
    ) -> None:
        """Commit for a lane, as ``Lane.commit`` says."""
        core = self.core
        if within is None:
            within = core.config.default_api_timeout_ms / 1000
        if not track.is_lost:  # else that is what to tell
            core.check(is_parting_ok=True)
        after = None if what is None else offset_after(track.tp, what)
        check_current(track, what)
        if after is None:
            # Once it is over, another lane may have the partition, and work on it.
            if not track.is_over:
                core.reader.acknowledge({track.tp}, moment)
            await core.commit(core.reader.ledger.finished({track.tp}), within)
        else:
            commit = core.reader.ledger.commit_of({track.tp: after})
            await core.commit(commit, within)

    def _withdraw(self, track: Track) -> None:
        if track in self._fresh:
            self._fresh.remove(track)


class LaneIterator:
    """Iterates over lanes, as ``Consumer.partitions`` says.

    Args:
        lanes: the consumer's lanes.
    """

    #: Held, so that a consumer that is iterated over is not taken for forgotten.
    consumer: object = None

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Lane:
        """The next lane. If cancelled, none was taken."""
        self._lanes.start()
        return self._made(await self._lanes.next())

    def _made(self, track: Track) -> Lane:
        return Lane(track)
