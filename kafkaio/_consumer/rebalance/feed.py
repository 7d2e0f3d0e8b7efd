"""Delivers rebalance events to listeners, and holds partitions for them.

`RebalanceFeed` is the consumer's end: the assignment reports its changes to it. Each
`Rebalances` is a listener's end, with a queue of its own.

While a `RevokeRequested` waits in a listener's queue, or is the event that the listener
looks at, a hold keeps its partitions: so every listener sees the request while the
partitions are still assigned, however many listeners there are. That hold ends when the
listener asks for its next event.

Such a hold must not outlive the one that would end it. A listener therefore belongs to
the task that asked it for an event last. When that task has ended, or no task has asked
yet, the listener's holds end after `_TAKEOVER`, in which another task may go on with
the iterator. References to tasks and listeners are weak: a listener that nobody refers
to any more releases its holds when it is collected.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final, Protocol, Self, TypeVar

from kafkaio._consumer.rebalance.events import (
    Assigned,
    Hold,
    HoldPort,
    Lost,
    Rebalance,
    Revoked,
    RevokeRequested,
)
from kafkaio._machines.membership.ledger import Claim
from kafkaio._public import public
from kafkaio._runtime.caller import TaskReference, caller, refer, when_done
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import ClosedError, UsageError
from kafkaio.types import TopicPartition

T = TypeVar("T")

#: Seconds for which a listener without a task holds requests. Its task may be about to
#: start, and some callers run each step in a task of its own, as `asyncio.wait_for`
#: does before Python 3.12.
_TAKEOVER: Final = 0.5


class CrossingPort(Protocol):
    """Takes the steps of a listener in the event loop of the feed, a thread away."""

    def take(self, step: Callable[[], Awaitable[T]]) -> Coroutine[Any, Any, T]:
        """Take a step there, and return its result."""
        ...

    def ask(self, work: Callable[[], object]) -> None:
        """Call a function there, and block until it has returned."""


@public("kafkaio")
class Rebalances:
    """Iterates over the rebalance events of a consumer; see `Consumer.rebalances`.

    Args:
        feed: where the events come from.
        crossing: takes the steps, if the feed is in another thread.
    """

    def __init__(
        self, feed: RebalanceFeed, crossing: CrossingPort | None = None
    ) -> None:
        self._feed = feed
        self._crossing = crossing
        # Events that were not returned yet, each request with its hold.
        self._events: deque[tuple[Rebalance, Hold | None]] = deque()
        # Holds the partitions of the request that was returned last.
        self._hold: Hold | None = None
        self._wakeup = Wakeup()
        self._is_waiting = False
        self._is_closed = False
        #: Whether the partitions of new requests are held for this listener.
        self.is_holding: bool = True
        # The task that asked for an event last. Weak, because an exception that ended
        # the task may refer to this listener, which is to be freed with the task and
        # without the garbage collector.
        self._task: TaskReference = refer(None)
        feed.add(self)

    def __del__(self) -> None:
        # The loop over the events was left by ``break`` or by an exception. This may
        # run in a thread that is not the event loop's.
        if holds := self._take_holds():
            self._feed.release_soon(holds)

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Rebalance]:
        """Return the next event. If cancelled, no event was taken.

        Raises:
            UsageError: another task waits for the next event.
            Exception: the crash of the consumer.
        """
        return (
            self._next() if self._crossing is None else self._crossing.take(self._next)
        )

    async def _next(self) -> Rebalance:
        if self._is_waiting:
            raise UsageError("another task waits for the next rebalance")
        if (hold := self.take_hold()) is not None:
            hold.release()
        self._belong_to(caller())
        self._is_waiting = True
        try:
            while not self._events:
                if self._is_closed or self._feed.has_ended():
                    raise StopAsyncIteration
                await self._wakeup.wait(None)
        finally:
            self._is_waiting = False
        event, self._hold = self._events.popleft()
        return event

    async def aclose(self) -> None:
        """Listen no longer, and hold no partition any longer."""
        self.close()

    def close(self) -> None:
        """Listen no longer, and hold no partition any longer."""
        if self._crossing is None:
            self._close()
        else:
            self._crossing.ask(self._close)

    def _close(self) -> None:
        self._is_closed = True
        self._feed.discard(self)
        self._wakeup.notify()
        self.stop_holding()
        self._events.clear()

    def is_of(self, task: asyncio.Task[object] | None) -> bool:
        """Whether that task was the last to ask for an event."""
        return task is not None and self._task() is task

    @property
    def has_task(self) -> bool:
        """Whether the task that asked for an event last is still running."""
        task = self._task()
        return task is not None and not task.done()

    def _belong_to(self, task: asyncio.Task[object] | None) -> None:
        if self.is_of(task):
            return
        # The first task, or one that goes on where another stopped: requests that wait
        # and whose holds have ended are held again.
        self.is_holding = True
        self._task = refer(task)
        for _, hold in self._events:
            if hold is not None and not hold.is_held:
                hold.keep()
        if task is not None:
            self._feed.watch(task)

    def stop_holding(self) -> None:
        """Go on delivering events, but hold no partition any longer."""
        self.is_holding = False
        for hold in self._take_holds():
            hold.release()

    def put(self, event: Rebalance, hold: Hold | None = None) -> None:
        """Queue an event; it is merged into a waiting one of the same kind.

        Requests are not merged: each has a deadline and a hold of its own.
        """
        if self._events and not isinstance(event, RevokeRequested):
            before, _ = self._events[-1]
            if type(before) is type(event):
                self._events.pop()
                event = type(event)(before.partitions | event.partitions)
        self._events.append((event, hold))
        self._wakeup.notify()

    def wake(self) -> None:
        """Notice that the consumer has ended."""
        self._wakeup.notify()

    def take_hold(self) -> Hold | None:
        """Take over the hold of the event that was returned last."""
        hold, self._hold = self._hold, None
        return hold

    def _take_holds(self) -> list[Hold]:
        holds = [self.take_hold(), *(hold for _, hold in self._events)]
        return [hold for hold in holds if hold is not None]


class RebalanceFeed:
    """Delivers the changes of the assignment to every listener."""

    def __init__(self) -> None:
        self._member: HoldPort | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # Weak, so that a forgotten listener does not hold partitions for ever.
        self._listeners: weakref.WeakSet[Rebalances] = weakref.WeakSet()
        self._entered: set[Hold] = set()
        # The tasks that listen, or did: their ends are noticed.
        self._watched: weakref.WeakSet[asyncio.Task[object]] = weakref.WeakSet()
        # Assignments whose revocation is requested, with their deadlines, and which of
        # them `next_request` has returned.
        self._pending: dict[Claim, float] = {}
        self._returned: set[Claim] = set()
        self._has_ended = False
        self._failure: BaseException | None = None

    @property
    def is_observed(self) -> bool:
        """Whether a listener takes the events, or may begin to."""
        return any(listener.is_holding for listener in self._listeners)

    def attach(self, member: HoldPort) -> None:
        """Hold the assignments of this group member."""
        self._member = member

    def add(self, listener: Rebalances) -> None:
        """Deliver to this listener from now on."""
        self._listeners.add(listener)

    def discard(self, listener: Rebalances) -> None:
        """Deliver to this listener no longer."""
        self._listeners.discard(listener)

    def watch(self, task: asyncio.Task[object]) -> None:
        """Notice the end of a task that listens, of this event loop or of another."""
        if task not in self._watched:
            self._watched.add(task)
            # Weak, because the task may outlive the consumer.
            when_done(task, partial(_release_orphans_later, weakref.ref(self)))

    def release_orphans(self) -> None:
        """End the holds of listeners that have no running task."""
        for listener in [*self._listeners]:
            if not listener.has_task:
                listener.stop_holding()

    def has_ended(self) -> bool:
        """Whether no event follows any more.

        Raises:
            Exception: the crash of the consumer.
        """
        if self._failure is not None:
            raise self._failure
        return self._has_ended

    async def next_request(self) -> tuple[RevokeRequested, Hold]:
        """Return the first pending request that was not returned, or the next one.

        The hold that comes with it keeps the partitions until it is released.

        Raises:
            ClosedError: the consumer was closed.
            Exception: the crash of the consumer.
        """
        listener = Rebalances(self)
        try:
            if (waiting := self._unreturned()) is not None:
                listener.put(*waiting)
            async for event in listener:
                if isinstance(event, RevokeRequested):
                    return event, self._returns(event, listener.take_hold())
            raise ClosedError("the consumer is closed")
        finally:
            listener.close()

    # ---- changes -------------------------------------------------------------------

    def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """Partitions were added."""
        self._deliver(Assigned, partitions)

    def requested(self, partitions: frozenset[TopicPartition], deadline: float) -> None:
        """The group requests partitions: hold them for each listener."""
        assert self._member is not None
        claims = self._member.claims(partitions)
        self._pending |= dict.fromkeys(claims, deadline)
        self._loop = asyncio.get_running_loop()
        for listener in [*self._listeners]:
            hold = Hold(self._member, claims, self._entered)
            if listener.is_holding:
                hold.keep()
            listener.put(RevokeRequested(partitions, deadline, _hold=hold), hold)
        if any(
            listener.is_holding and not listener.has_task
            for listener in self._listeners
        ):
            _release_orphans_later(weakref.ref(self))

    def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Partitions were released."""
        self._forget(partitions)
        self._deliver(Revoked, partitions)

    def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """Partitions were lost."""
        self._forget(partitions)
        self._deliver(Lost, partitions)

    def end(self, failure: BaseException | None = None) -> None:
        """No event follows: listeners end when their queues are empty."""
        self._failure = self._failure or failure
        self._has_ended = True
        for listener in [*self._listeners]:
            listener.wake()

    def left(self, task: asyncio.Task[object] | None) -> None:
        """A task closes the consumer: nothing is held for it any longer."""
        for hold in [*self._entered]:
            if hold.is_of(task):
                hold.release()
        for listener in [*self._listeners]:
            if listener.is_of(task):
                listener.stop_holding()
        self.release_orphans()

    def release_soon(self, holds: list[Hold]) -> None:
        """End these holds in the event loop; may be called in any thread."""
        assert self._loop is not None  # holds are made in it
        with contextlib.suppress(RuntimeError):  # the loop is closed, and all with it
            for hold in holds:
                self._loop.call_soon_threadsafe(hold.release)

    def _deliver(
        self,
        kind: Callable[[frozenset[TopicPartition]], Rebalance],
        partitions: frozenset[TopicPartition],
    ) -> None:
        if partitions:
            for listener in [*self._listeners]:
                listener.put(kind(partitions))

    def _forget(self, partitions: frozenset[TopicPartition]) -> None:
        for claim in [c for c in self._pending if c.partition in partitions]:
            del self._pending[claim]
        self._returned &= self._pending.keys()

    def _unreturned(self) -> tuple[RevokeRequested, Hold] | None:
        if self._member is None:
            return None
        claims = tuple(c for c in self._pending if c not in self._returned)
        hold = Hold(self._member, claims, self._entered)
        partitions = hold.keep()
        if not partitions:
            return None
        deadline = min(at for c, at in self._pending.items() if c in claims)
        return RevokeRequested(partitions, deadline, _hold=hold), hold

    def _returns(self, event: RevokeRequested, hold: Hold | None) -> Hold:
        assert hold is not None
        self._returned |= self._claims_of(event)
        return hold

    def not_returned(self, event: RevokeRequested, hold: Hold) -> None:
        """Undo `next_request`: its caller was cancelled before it got the request."""
        self._returned -= self._claims_of(event)
        hold.release()

    def _claims_of(self, event: RevokeRequested) -> set[Claim]:
        return {c for c in self._pending if c.partition in event.partitions}


def _release_orphans_later(feed: weakref.ref[RebalanceFeed]) -> None:
    def release() -> None:
        if (still := feed()) is not None:
            still.release_orphans()

    asyncio.get_running_loop().call_later(_TAKEOVER, release)
