"""What a rebalance does to a consumer, as events to wait for; and holds.

Each listener has a queue of its own. While a `RevokeRequested` waits in it, or is
being looked at, its partitions are kept: so nobody who listens is passed over. A
listener lives as long as the task that iterates over it. Soon after that task has ended
it keeps nothing, whoever still refers to the iterator.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import field
from functools import partial
from types import TracebackType
from typing import Final, Protocol, Self, TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio._machines.membership.ledger import Claim
from kafkaio._runtime.thread import TaskReference, caller, refer, when_done
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import ClosedError, PartitionLost, UsageError
from kafkaio.types import TopicPartition

__all__ = [
    "GRACE",
    "Assigned",
    "Hold",
    "Lost",
    "Rebalance",
    "RebalanceFeed",
    "Rebalances",
    "RevokeRequested",
    "Revoked",
    "after_turns",
]

#: Turns of the loop that a request returned by `Consumer.wait_for_revoke` is kept:
#: enough to come through the tasks that may be wrapped around the call.
GRACE: Final = 8
#: Seconds that a listener without a task keeps requests: its task may be about to
#: start, and some give each step a task of its own, as `asyncio.wait_for` does before
#: Python 3.12.
_PATIENCE: Final = 0.5


def _no_task() -> None:
    """There is none."""


class HoldingGroup(Protocol):
    """The membership whose assignments are held."""

    def claims(self, partitions: Iterable[TopicPartition]) -> tuple[Claim, ...]:
        """The assignments of those partitions that are assigned."""
        ...

    def hold(self, claims: Iterable[Claim]) -> tuple[Claim, ...]:
        """Keep these assignments; those that can be kept are returned."""
        ...

    def unhold(self, claims: Iterable[Claim]) -> None:
        """End one hold of each of these."""
        ...


class Hold:
    """Keeps partitions from being given up, until it is left or they are lost.

    An async context manager; entering it waits for nothing and gives the partitions
    that are held. Leaving it, by whatever way, ends the hold. It concerns the
    assignments of the moment at which the hold was made: a partition that was given
    up and assigned again is not held by it. It ends, too, when the task that entered it
    closes the consumer.

    Args:
        group: the membership.
        claims: what to hold.
        entered: the holds that somebody has entered, this one while that is so.
        before: a hold that this one takes the place of.
    """

    __slots__ = (
        "__weakref__",
        "_before",
        "_claims",
        "_entered",
        "_group",
        "_held",
        "_holder",
    )

    def __init__(
        self,
        group: HoldingGroup,
        claims: tuple[Claim, ...],
        entered: set[Hold],
        before: Hold | None = None,
    ) -> None:
        self._group = group
        self._claims = claims
        self._entered = entered
        self._before = before
        self._holder: TaskReference = _no_task
        self._held: tuple[Claim, ...] | None = None

    def __repr__(self) -> str:
        names = ", ".join(f"{tp.topic}-{tp.partition}" for tp, _ in self._claims)
        state = "not taken" if self._held is None else "held" if self._held else "over"
        return f"<Hold of {names} | {state}>"

    async def __aenter__(self) -> frozenset[TopicPartition]:
        return self.take()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def take(self) -> frozenset[TopicPartition]:
        """Hold what is still there, and return it.

        Raises:
            PartitionLost: all of it was lost or given up.
            UsageError: it was taken before.
        """
        if self._held is not None:
            raise UsageError("a hold is entered once; make another one")
        held = self.keep()
        if self._before is not None:
            self._before.release()
        if not held:
            raise PartitionLost("the partitions are not assigned to this consumer")
        self._holder = refer(caller())
        self._entered.add(self)
        return held

    def is_of(self, task: asyncio.Task[object] | None) -> bool:
        """Whether that task has entered it."""
        return self._holder() is task

    @property
    def is_held(self) -> bool:
        """Whether it keeps anything now."""
        return bool(self._held)

    def keep(self) -> frozenset[TopicPartition]:
        """Hold what is still there, possibly nothing, and return it."""
        self._held = self._group.hold(self._claims)
        return frozenset(claim.partition for claim in self._held)

    def release(self) -> None:
        """End the hold. Nothing happens if it is not held."""
        held, self._held = self._held, ()
        self._entered.discard(self)
        if held:
            self._group.unhold(held)

    def another(self) -> Hold:
        """A hold of the same assignments, which ends this one when it is taken."""
        return Hold(self._group, self._claims, self._entered, self)


@dataclass(frozen=True, slots=True)
class Assigned:
    """Partitions were assigned; their records may come.

    Attributes:
        partitions: those that are new.
    """

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class RevokeRequested:
    """The group asks partitions back (KIP-983).

    None of their records is handed out any more; commits of them count until they are
    given up. They stay while somebody holds them, until the deadline at most.

    Attributes:
        partitions: those that are asked for.
        deadline: when the partitions that have not been given up are lost, in seconds
            of the event loop's clock, as `asyncio.timeout_at` takes it. The group's own
            deadline is two heartbeat intervals later.
    """

    partitions: frozenset[TopicPartition]
    deadline: float
    _offer: Hold | None = field(default=None, kw_only=True, repr=False, compare=False)

    def hold(self) -> Hold:
        """Keep the partitions while an ``async with`` block runs.

        The block may end by an exception or a cancellation: the hold ends as well.
        Several may be taken, one after the other or at once; all of them count. After
        the last one the partitions go, if the reader has taken a step since the
        request, or waits for a record, or has read nothing yet; else with its next
        step. The deadline is not put off. The task that entered it and closes the
        consumer has left it by that: `Consumer.close` waits for other tasks' holds.

        Entering raises `PartitionLost` when none of the partitions is left to hold.
        """
        if self._offer is None:
            raise UsageError("only an event that came from a consumer can be held")
        return self._offer.another()


@dataclass(frozen=True, slots=True)
class Revoked:
    """Partitions were given up: committed, called back for, and let go.

    Attributes:
        partitions: those that another member may read now.
    """

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Lost:
    """Partitions are gone without having been given up; no commit of them counts.

    Attributes:
        partitions: those that are gone.
    """

    partitions: frozenset[TopicPartition]


#: What `Rebalances` brings.
Rebalance: TypeAlias = Assigned | RevokeRequested | Revoked | Lost


class Rebalances:
    """Iterates over the events of a consumer, as ``Consumer.rebalances`` says.

    Args:
        feed: where the events come from.
    """

    def __init__(self, feed: RebalanceFeed) -> None:
        self._feed = feed
        self._events: deque[tuple[Rebalance, Hold | None]] = deque()
        # Keeps the partitions of the request that is being looked at.
        self._offer: Hold | None = None
        self._wakeup = Wakeup()
        self._is_waiting = False
        self._is_closed = False
        #: Whether the partitions of requests are kept until it has told of them.
        self.keeps = True
        # The task that asked for an event last. What that failed with may refer to us,
        # who are to be forgotten with it and without the garbage collector.
        self._listener: TaskReference = _no_task
        feed.add(self)

    def __del__(self) -> None:
        # A loop that was left by ``break`` or by an exception: perhaps in a thread
        # that is not the loop's.
        if offers := self._take_offers():
            self._feed.release_soon(offers)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Rebalance:
        """The next event. If cancelled, none was taken.

        Raises:
            UsageError: another task waits for the next event.
            Exception: what the consumer failed of.
        """
        if self._is_waiting:
            raise UsageError("another task waits for the next rebalance")
        self._end_offer()
        self._be_heard_by(caller())
        self._is_waiting = True
        try:
            while not self._events:
                if self._is_closed or self._feed.has_ended():
                    raise StopAsyncIteration
                await self._wakeup.wait(None)
        finally:
            self._is_waiting = False
        event, self._offer = self._events.popleft()
        return event

    async def aclose(self) -> None:
        """Listen no more, and keep no partition any longer."""
        self.close()

    def close(self) -> None:
        """Listen no more, and keep no partition any longer."""
        self._is_closed = True
        self._feed.discard(self)
        self._wakeup.notify()
        self.let_go()
        self._events.clear()

    def is_of(self, task: asyncio.Task[object] | None) -> bool:
        """Whether that task was the last to ask for an event."""
        return task is not None and self._listener() is task

    @property
    def has_task(self) -> bool:
        """Whether the task that asked for an event last goes on."""
        task = self._listener()
        return task is not None and not task.done()

    def _be_heard_by(self, task: asyncio.Task[object] | None) -> None:
        if self.is_of(task):
            return
        # The first task, or one that goes on where another stopped.
        self.keeps = True
        self._listener = refer(task)
        for _, offer in self._events:
            if offer is not None and not offer.is_held:
                offer.keep()
        if task is not None:
            self._feed.watch(task)

    def let_go(self) -> None:
        """Tell what happens, and keep no partition any longer."""
        self.keeps = False
        for offer in self._take_offers():
            offer.release()

    def put(self, event: Rebalance, offer: Hold | None = None) -> None:
        """An event happened; one that waits behind its like becomes one with it."""
        if self._events and not isinstance(event, RevokeRequested):
            before, _ = self._events[-1]
            if type(before) is type(event):
                self._events.pop()
                event = type(event)(before.partitions | event.partitions)
        self._events.append((event, offer))
        self._wakeup.notify()

    def wake(self) -> None:
        """The consumer has ended."""
        self._wakeup.notify()

    def take_offer(self) -> Hold | None:
        """Take what keeps the partitions of the event that was returned last."""
        offer, self._offer = self._offer, None
        return offer

    def _end_offer(self) -> None:
        if (offer := self.take_offer()) is not None:
            offer.release()

    def _take_offers(self) -> list[Hold]:
        offers = [self.take_offer(), *(offer for _, offer in self._events)]
        return [offer for offer in offers if offer is not None]


class RebalanceFeed:
    """Tells every listener what happens; the consumer's end of `Rebalances`."""

    def __init__(self) -> None:
        self._group: HoldingGroup | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # Weak, so that a listener who is forgotten does not keep partitions for ever.
        self._listeners: weakref.WeakSet[Rebalances] = weakref.WeakSet()
        self._entered: set[Hold] = set()
        # The tasks that listen, or did: their ends are noticed.
        self._watched: weakref.WeakSet[asyncio.Task[object]] = weakref.WeakSet()
        # Pending assignments, with their deadlines, and which of them `next_request`
        # has returned.
        self._pending: dict[Claim, float] = {}
        self._returned: set[Claim] = set()
        self._has_ended = False
        self._failure: BaseException | None = None

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens, or may begin to."""
        return any(listener.keeps for listener in self._listeners)

    def attach(self, group: HoldingGroup) -> None:
        """The assignments are those of this group."""
        self._group = group

    def add(self, listener: Rebalances) -> None:
        """Tell this one too from now on."""
        self._listeners.add(listener)

    def discard(self, listener: Rebalances) -> None:
        """Tell this one no more."""
        self._listeners.discard(listener)

    def watch(self, task: asyncio.Task[object]) -> None:
        """Notice the end of a task that listens, of this loop or of another."""
        if task not in self._watched:
            self._watched.add(task)
            # Weak, because the task may outlive the consumer.
            when_done(task, partial(_let_go_soon, weakref.ref(self)))

    def let_go_of_orphans(self) -> None:
        """Nothing is kept any longer for listeners that have no task."""
        for listener in [*self._listeners]:
            if not listener.has_task:
                listener.let_go()

    def has_ended(self) -> bool:
        """Whether nothing will happen any more.

        Raises:
            Exception: what the consumer failed of.
        """
        if self._failure is not None:
            raise self._failure
        return self._has_ended

    async def next_request(self) -> RevokeRequested:
        """The first request that is pending and was not returned yet, or the next.

        Raises:
            ClosedError: the consumer was closed.
            Exception: what the consumer failed of.
        """
        listener = Rebalances(self)
        try:
            if (waiting := self._unreturned()) is not None:
                listener.put(*waiting)
            async for event in listener:
                if isinstance(event, RevokeRequested):
                    return self._return(event, listener.take_offer())
            raise ClosedError("the consumer is closed")
        finally:
            listener.close()

    # ---- what happened -------------------------------------------------------------

    def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """Partitions were added."""
        self._tell(Assigned, partitions)

    def requested(self, partitions: frozenset[TopicPartition], deadline: float) -> None:
        """The group asks partitions back: they are kept for whoever listens."""
        assert self._group is not None
        claims = self._group.claims(partitions)
        self._pending |= dict.fromkeys(claims, deadline)
        self._loop = asyncio.get_running_loop()
        for listener in [*self._listeners]:
            offer = Hold(self._group, claims, self._entered)
            if listener.keeps:
                offer.keep()
            listener.put(RevokeRequested(partitions, deadline, _offer=offer), offer)
        if any(
            listener.keeps and not listener.has_task for listener in self._listeners
        ):
            _let_go_soon(weakref.ref(self))

    def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Partitions were given up."""
        self._forget(partitions)
        self._tell(Revoked, partitions)

    def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """Partitions are gone."""
        self._forget(partitions)
        self._tell(Lost, partitions)

    def end(self, failure: BaseException | None = None) -> None:
        """Nothing more happens: listeners end, once they have heard what did."""
        self._failure = self._failure or failure
        self._has_ended = True
        for listener in [*self._listeners]:
            listener.wake()

    def left(self, task: asyncio.Task[object] | None) -> None:
        """A task closes the consumer: nothing is kept for it any longer."""
        for hold in [*self._entered]:
            if hold.is_of(task):
                hold.release()
        for listener in [*self._listeners]:
            if listener.is_of(task):
                listener.let_go()
        self.let_go_of_orphans()

    def release_soon(self, offers: list[Hold]) -> None:
        """End these holds in the loop's own time; from any thread."""
        assert self._loop is not None  # offers are made in it
        with contextlib.suppress(RuntimeError):  # the loop is closed, and all with it
            for offer in offers:
                self._loop.call_soon_threadsafe(offer.release)

    def _tell(
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
        if self._group is None:
            return None
        claims = tuple(c for c in self._pending if c not in self._returned)
        offer = Hold(self._group, claims, self._entered)
        partitions = offer.keep()
        if not partitions:
            return None
        deadline = min(at for c, at in self._pending.items() if c in claims)
        return RevokeRequested(partitions, deadline, _offer=offer), offer

    def _return(self, event: RevokeRequested, offer: Hold | None) -> RevokeRequested:
        assert offer is not None
        self._returned |= {c for c in self._pending if c.partition in event.partitions}
        after_turns(asyncio.get_running_loop(), GRACE, offer.release)
        return event


def _let_go_soon(feed: weakref.ref[RebalanceFeed]) -> None:
    def let_go() -> None:
        if (still := feed()) is not None:
            still.let_go_of_orphans()

    asyncio.get_running_loop().call_later(_PATIENCE, let_go)


def after_turns(
    loop: asyncio.AbstractEventLoop, turns: int, call: Callable[[], None]
) -> None:
    """Call something when the loop has had so many turns."""
    if turns:
        loop.call_soon(after_turns, loop, turns - 1, call)
    else:
        call()
