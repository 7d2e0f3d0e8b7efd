"""The consumer whose inner works run in a thread of their own (``io_thread``).

Its methods are those of `Consumer`, run in the thread's loop. What waits is awaited
from here; what does not wait blocks the caller for a turn of that loop, which no code
of the user's can hold up. Records cross in chunks, not one by one.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Set
from functools import partial, wraps
from typing import Any, TypeVar

from kafkaio._runtime.clock import now
from kafkaio._runtime.thread import LoopThread
from kafkaio.consumer.arguments import most_of
from kafkaio.consumer.consumer import TABLE_ROWS, Consumer
from kafkaio.consumer.core import CLOSE_TIMEOUT, Core
from kafkaio.consumer.parallel.lanes import LaneIterator, Lanes
from kafkaio.consumer.parallel.run import Handler, OnDead, work_of
from kafkaio.consumer.places import ToCommit
from kafkaio.consumer.poll import Poll
from kafkaio.consumer.reading.iterators import BatchIterator, TableIterator
from kafkaio.consumer.reading.stream import PlainStream
from kafkaio.consumer.rebalance.callbacks import Callbacks, PartitionsCallback
from kafkaio.consumer.rebalance.events import RevokeRequested
from kafkaio.consumer.rebalance.feed import GRACE, Rebalances, after_turns
from kafkaio.consumer.threaded.handoff import Crossing, Window
from kafkaio.consumer.threaded.iterators import (
    BatchesAcross,
    EventsAcross,
    GroupAcross,
    LanesAcross,
    TablesAcross,
)
from kafkaio.consumer.wanted import Wanted
from kafkaio.errors import UsageError
from kafkaio.types import GroupMetadata, Record, TopicPartition

__all__ = ["ThreadedConsumer"]

T = TypeVar("T")
MethodT = TypeVar("MethodT", bound=Callable[..., object])
#: Seconds that the thread has to end, at least.
_ENDING = 0.5


def _asked(method: MethodT, *, settles: bool = False) -> MethodT:
    """Run a method in the thread, and block until it has answered.

    Args:
        method: one of `Consumer`.
        settles: whether it changes what is handed out next.
    """

    @wraps(method)
    def ask(self: ThreadedConsumer, *args: object, **named: object) -> object:
        def work() -> object:
            if settles:
                self.settle()
            return method(self, *args, **named)

        return self.ask(work)

    return ask  # type: ignore[return-value]  # called as the method is


def _called(method: MethodT) -> MethodT:
    """Run a coroutine method in the thread, and wait for it."""

    @wraps(method)
    async def call(self: ThreadedConsumer, *args: object, **named: object) -> object:
        work: Any = partial(method, self, *args, **named)
        return await self.call(work)

    return call  # type: ignore[return-value]  # called as the method is


class _Way:
    """The way to where the core is, for who does not keep the consumer alive."""

    __slots__ = ("_thread",)

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread

    def ask(self, work: Callable[[], T]) -> T:
        """Call a function there, and block until it has answered."""
        if self._thread.is_inside or not self._thread.is_running:
            return work()
        return self._thread.call_blocking(work)


class ThreadedConsumer(Consumer, in_thread=True):
    """A consumer that stays in its group while the user's loop is blocked.

    Made by ``Consumer(io_thread=True)``; see the option for what it means.
    """

    def _set_up(self, core: Core, wanted: Wanted) -> None:
        if not core.owns_cluster:
            raise UsageError(
                "io_thread=True needs a client of its own, and a shared one lives on "
                "another loop: give bootstrap servers"
            )
        super()._set_up(core, wanted)
        self.thread = LoopThread("kafkaio I/O")
        self.window = core.reader.window = Window(core)
        # What crossed the last time and was not taken: its caller was cancelled.
        self._polls = deque[tuple[Poll, Crossing]]()
        self._requests = deque[tuple[RevokeRequested, Callable[[], None]]]()
        host, callbacks = core.assigned, core.assigned.callbacks
        host.callbacks = Callbacks(
            self._at_home(callbacks.on_assigned),
            self._at_home(callbacks.on_revoked),
            self._at_home(callbacks.on_lost),
            callbacks.report,
            callbacks.insiders,
        )
        if core.member is not None:
            host.feed.attach(GroupAcross(_Way(self.thread), core.member))

    # Across

    def ask(self, work: Callable[[], T]) -> T:
        """Call a function where the core is, and block until it has answered."""
        return _Way(self.thread).ask(work)

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine function where the core is, and wait for it."""
        if self.thread.is_inside or not self.thread.is_running:
            return await work()
        return await self.thread.call(work)

    def settle(self) -> None:
        """What was not taken goes back; where the core is."""
        self.window.settle()
        while self._polls:
            self._read_again()
            self.window.settle()

    def _read_again(self) -> None:
        # The caller of a poll was cancelled when its records had come already.
        poll, crossing = self._polls.popleft()
        self.window.turn_back(crossing)
        self.window.fill(poll.records)

    def _forgotten(self) -> None:
        super()._forgotten()
        self.thread.abandon()

    def _at_home(
        self, callback: PartitionsCallback | None
    ) -> PartitionsCallback | None:
        if callback is None:
            return None
        thread = self.thread

        async def at_home(partitions: Set[TopicPartition]) -> None:
            async def run() -> None:
                outcome = callback(partitions)
                if inspect.isawaitable(outcome):
                    await outcome

            await thread.call_owner(run)

        return at_home

    # Life

    async def start(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Start the thread, and in it the consumer, as `Consumer.start` does."""
        self.thread.start()
        try:
            await self.thread.call(partial(super().start, timeout))
        except BaseException:
            await self.thread.aclose(_ENDING)
            raise

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Close as `Consumer.close` does, and join the thread.

        If the call is cancelled, however often, it returns when the consumer has ended.
        """
        deadline = now() + (CLOSE_TIMEOUT if timeout is None else timeout)
        try:
            await self.call(partial(super().close, timeout))
        except BaseException:
            if self._core.state == "closing" and not self.thread.is_inside:
                # This loop ends before the consumer has: nobody will join the thread.
                self.thread.abandon()
            raise
        finally:
            if self._core.state == "closed":  # else whoever closes it does that
                await self.thread.aclose(max(_ENDING, deadline - now()))

    # ExclusiveReading

    def __aiter__(self) -> AsyncIterator[Record]:
        """Iterate over records, as `Consumer` does."""
        return PlainStream(self.window, self._next)

    async def __anext__(self) -> Record:
        """The next record, as `Consumer` has it."""
        record = self.window.take()
        return await self._next() if record is None else record

    async def _next(self) -> Record:
        while True:
            # If this is cancelled when they are there already, the next call has them.
            await self.call(self._exchange)
            record = self.window.take()
            if record is not None:
                return record

    async def _exchange(self) -> None:
        core = self._core
        self.window.settle()
        if self._polls:
            self._read_again()
            return
        core.assigned.has_news = False

        def take() -> list[Record] | None:
            return core.reader.take(core.config.max_poll_records) or None

        records = await core.read(take, lambda: None) or []
        core.reader.sync()
        self.window.fill(records)

    async def poll(
        self,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        max_records: int | None = None,
    ) -> Poll:
        """Take what is at hand, as `Consumer.poll` does."""
        core = self._core
        poll = partial(super().poll, timeout=timeout, max_records=max_records)

        async def work() -> None:
            self.window.settle()
            polled = await poll()
            core.reader.sync()
            crossing = self.window.crosses(core.reader.read_now())
            self._polls.append((polled, crossing))

        if not self._polls:
            await self.call(work)
        polled, crossing = self._polls.popleft()
        self.window.receive(crossing)
        return polled

    def batches(
        self, *, max_records: int | None = None, max_wait: float = 0.0
    ) -> BatchIterator:
        """Iterate over batches, as `Consumer.batches` says."""
        limit = most_of(max_records, self._core.config.max_poll_records)
        return BatchesAcross(self, self._core, limit, max_wait)

    def arrow_batches(
        self,
        *,
        max_records: int | None = None,
        max_wait: float = 0.0,
        headers: bool = False,
    ) -> TableIterator:
        """Iterate over tables, as `Consumer.arrow_batches` says."""
        limit = most_of(max_records, TABLE_ROWS)
        return TablesAcross(self, self._core, limit, max_wait, headers=headers)

    def partitions(self) -> LaneIterator:
        """Iterate over lanes, as `Consumer.partitions` says.

        Each record of a lane crosses by itself; its batches cross as a whole.
        """
        if self._lanes is None:
            config = self._core.config
            self._lanes = Lanes(
                self._core,
                max_records=config.max_poll_records,
                timeout=config.default_api_timeout_ms / 1000,
            )
        return LanesAcross(self, self._lanes)

    async def run(self, handler: Handler, **options: Any) -> None:
        """Call a handler with each record, as `Consumer.run` does.

        Handlers run in the caller's loop: each call of one crosses the threads.
        """

        async def cross(record: Record) -> None:
            await self.thread.call_owner(lambda: work_of(handler, record))

        if (dead_letter := options.get("dead_letter")) is not None:
            options["dead_letter"] = _dead_across(self.thread, dead_letter)
        run = partial(super().run, cross, **options)

        async def work() -> None:
            self.settle()
            await run()

        await self.call(work)

    async def commit(
        self,
        what: ToCommit | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> None:
        """Commit offsets, as `Consumer.commit` does."""
        moment = self.window.moment()
        await self.call(partial(self._commit, what, timeout, moment))

    # What the group does

    def rebalances(self) -> Rebalances:
        """Iterate over what rebalances do, as `Consumer.rebalances` says."""
        return EventsAcross(self, self._core.assigned.feed)

    async def wait_for_revoke(self) -> RevokeRequested:
        """Wait until the group asks partitions back, as in `Consumer`."""
        wait = super().wait_for_revoke

        async def work() -> None:
            request = await wait()
            hold = request.hold()
            hold.keep()
            self._requests.append((request, hold.release))

        try:
            if not self._requests:
                await self.call(work)
        except BaseException:
            for _, release in self._requests:
                self.ask(release)
            raise
        request, release = self._requests.popleft()
        after_turns(asyncio.get_running_loop(), GRACE, release)
        return request

    # Everything else runs there as it is

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions assigned now."""
        return self.ask(lambda: super(ThreadedConsumer, self).assignment)

    @property
    def to_be_revoked(self) -> frozenset[TopicPartition]:
        """Partitions that the next step gives up, as in `Consumer`."""
        return self.ask(lambda: super(ThreadedConsumer, self).to_be_revoked)

    @property
    def lost(self) -> frozenset[TopicPartition]:
        """Partitions that were lost, as in `Consumer`."""
        return self.ask(lambda: super(ThreadedConsumer, self).lost)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return self.ask(lambda: super(ThreadedConsumer, self).paused)

    @property
    def group_metadata(self) -> GroupMetadata:
        """Who this consumer is to its group, as in `Consumer`."""
        return self.ask(lambda: super(ThreadedConsumer, self).group_metadata)

    delay_revoke = _asked(Consumer.delay_revoke)
    statistics = _asked(Consumer.statistics)
    enforce_rebalance = _asked(Consumer.enforce_rebalance)
    subscribe = _asked(Consumer.subscribe, settles=True)
    unsubscribe = _asked(Consumer.unsubscribe, settles=True)
    assign = _asked(Consumer.assign, settles=True)
    pause = _asked(Consumer.pause, settles=True)
    resume = _asked(Consumer.resume)
    seek = _asked(Consumer.seek, settles=True)
    seek_to_beginning = _asked(Consumer.seek_to_beginning, settles=True)
    seek_to_end = _asked(Consumer.seek_to_end, settles=True)
    offsets_for_times = _called(Consumer.offsets_for_times)
    beginning_offsets = _called(Consumer.beginning_offsets)
    end_offsets = _called(Consumer.end_offsets)
    lag = _called(Consumer.lag)
    current_lag = _asked(Consumer.current_lag)
    topics = _called(Consumer.topics)
    partitions_for_topic = _called(Consumer.partitions_for_topic)
    committed = _called(Consumer.committed)
    rewind = _called(Consumer.rewind)
    position = _called(Consumer.position)


def _dead_across(thread: LoopThread, dead_letter: OnDead) -> OnDead:
    async def cross(record: Record, error: Exception) -> None:
        await thread.call_owner(lambda: dead_letter(record, error))

    return cross
