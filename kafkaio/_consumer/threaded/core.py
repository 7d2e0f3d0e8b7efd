"""The consumer's core in a thread of its own (``io_thread``).

`ThreadedCore` has the methods of `Core`, and runs them in the event loop of the I/O
thread. A call that waits is awaited from the user's event loop. A call that does not
wait blocks its caller for one turn of the other loop, which no code of the user's can
delay: callbacks and handlers run in the user's loop. Records cross in chunks, not one
by one.

A value may have come from the I/O thread when its caller was cancelled. It is kept, and
the next call has it: a `Poll` also reports revocations, which must not be missed.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Set
from functools import partial, wraps
from time import monotonic
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeAlias, TypeVar

from kafkaio._client.cluster import Cluster
from kafkaio._config import ConsumerConfig
from kafkaio._consumer.commit import ToCommit
from kafkaio._consumer.core import AFTER_START, CLOSE_TIMEOUT, Core
from kafkaio._consumer.parallel.handlers import Handler, work_of
from kafkaio._consumer.parallel.lanes import LaneIterator
from kafkaio._consumer.parallel.run import OnDead, TransactionalRun
from kafkaio._consumer.reading.iterators import (
    BatchIterator,
    PlainStream,
    Poll,
    RawBatchIterator,
    RecordIterator,
    TableIterator,
)
from kafkaio._consumer.reading.progress import HandedOut
from kafkaio._consumer.rebalance.callbacks import PartitionsCallback
from kafkaio._consumer.rebalance.events import Hold, RevokeRequested
from kafkaio._consumer.rebalance.feed import Rebalances
from kafkaio._consumer.threaded.handoff import Handoff, Transfer
from kafkaio._consumer.threaded.iterators import (
    Crossing,
    HoldingAcross,
    LaneCrossings,
    ReadCrossing,
)
from kafkaio._consumer.threaded.life import ThreadedLife
from kafkaio._consumer.transactions import JoinedAcross, TransactionOffsets
from kafkaio._consumer.wanted import ReadSelection
from kafkaio._machines.retries import Retry
from kafkaio._machines.schedule import Ordering
from kafkaio._runtime.lifecycle import Lifecycle
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.thread import LoopThread
from kafkaio._runtime.time_slice import TimeSlice
from kafkaio.errors import KafkaError, UsageError
from kafkaio.types import AnyRecord, Record, TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.log_ranges import Edge

P = ParamSpec("P")
T = TypeVar("T")
#: `Core.read`, or that of a read to an end.
Read: TypeAlias = Callable[
    [Callable[[], list[AnyRecord] | None], Callable[[], float | None]],
    Awaitable[list[AnyRecord] | None],
]


def _asked(
    method: Callable[Concatenate[Core, P], T], *, settles: bool = False
) -> Callable[Concatenate[ThreadedCore, P], T]:
    """Run a method of the core in the thread, and block until it has returned.

    Args:
        method: the method.
        settles: whether it changes which records are handed out next.
    """

    @wraps(method)
    def ask(self: ThreadedCore, /, *args: P.args, **named: P.kwargs) -> T:
        def work() -> T:
            if settles:
                self._settle()
            return method(self._core, *args, **named)

        return self.ask(work)

    return ask


def _called(
    method: Callable[Concatenate[Core, P], Awaitable[T]],
) -> Callable[Concatenate[ThreadedCore, P], Coroutine[Any, Any, T]]:
    """Run a coroutine method of the core in the thread, and wait for it."""

    @wraps(method)
    async def call(self: ThreadedCore, /, *args: P.args, **named: P.kwargs) -> T:
        return await self.call(lambda: method(self._core, *args, **named))

    return call


class ThreadedCore:
    """A core that stays in its group while the user's event loop is blocked.

    The arguments are those of `Core`.

    Attributes:
        life: the lifecycle of the core.
        config: the consumer's options.
        thread: the I/O thread.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        *,
        owns_cluster: bool,
        on_assigned: PartitionsCallback | None,
        on_revoked: PartitionsCallback | None,
        on_lost: PartitionsCallback | None,
    ) -> None:
        if not owns_cluster:
            raise UsageError(
                "io_thread=True needs a client of its own, and a shared one lives on "
                "another loop: give bootstrap servers"
            )
        self.config = config
        thread = LoopThread("kafkaio I/O")
        self.thread: LoopThread = thread
        self._core = core = Core(
            cluster,
            config,
            owns_cluster=True,
            on_assigned=_at_home(thread, on_assigned),
            on_revoked=_at_home(thread, on_revoked),
            on_lost=_at_home(thread, on_lost),
        )
        self._threaded = ThreadedLife(
            thread, core, closing=CLOSE_TIMEOUT, after_start=AFTER_START
        )
        self.life: Lifecycle = core.life
        self._handoff = Handoff(core.reader, core.is_interrupted)
        core.reader.hand_off_to(self._handoff)
        # What a deserializer awaits, such as the client of a registry, lives in the
        # user's loop.
        core.reader.deserialization.deserializers.awaits = thread.call_owner
        # When the user's loop is to get a turn.
        self._time_slice = TimeSlice(monotonic)
        # Polls whose callers were cancelled after they had come.
        self._polls = deque[tuple[Poll[Any, Any], Transfer]]()
        if core.member is not None:
            core.assigned.feed.attach(HoldingAcross(self, core.member))

    # Crossing

    def ask(self, work: Callable[[], T]) -> T:
        """Call a function in the thread, and block until it has returned."""
        return self._threaded.ask(work)

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Call a coroutine function in the thread, and wait for it."""
        return await self._threaded.call(work)

    def _settle(self) -> None:
        # Finish the records taken, and return the rest to the reader; in the thread.
        self._handoff.settle()
        while self._polls:
            self._read_again()
            self._handoff.settle()

    def _read_again(self) -> None:
        # The caller of a poll was cancelled after its records had come.
        poll, transfer = self._polls.popleft()
        self._handoff.turn_back(transfer)
        self._handoff.fill(poll.records)

    # Life

    async def start(self, within: float | None) -> None:
        """Start the thread, and the core in it."""
        await self._threaded.start(within)

    async def close(self, within: float | None) -> None:
        """Close the core, and join the thread; see `ThreadedLife`."""
        await self._threaded.close(within)

    def abandon(self) -> None:
        """End soon, and wait for nothing: the consumer was collected while open."""
        self._threaded.abandon()

    # Reading

    @property
    def is_closed(self) -> bool:
        """Whether the user has closed it, and no crash had ended it."""
        return self.life.is_closed

    def stream(self, wait: Callable[[], Coroutine[Any, Any, AnyRecord]]) -> PlainStream:
        """Return an iterator over records, which calls ``wait`` if there is none."""
        self._core.check_open()
        return PlainStream(self._handoff, wait, self._time_slice)

    async def take_next(self) -> AnyRecord:
        """Return the next record, if possible without asking the thread."""
        if self._time_slice.is_over:
            await self._time_slice.give_way()
        record = self._handoff.take()
        return await self.next_record() if record is None else record

    async def next_record(self) -> AnyRecord:
        """Return the next record; wait for it as long as it takes."""
        while True:
            # If this is cancelled after records have come, the next call has them.
            await self.call(self._exchange)
            self._time_slice.renew()
            record = self._handoff.take()
            if record is not None:
                return record

    async def _exchange(self, read: Read | None = None) -> None:
        # Fetch a chunk of records into the handoff; in the thread.
        core, limit = self._core, self.config.max_poll_records
        self._handoff.settle()
        if self._polls:
            self._read_again()
            return
        core.assigned.has_news = False
        read = core.read if read is None else read
        records = await read(lambda: core.reader.take(limit) or None, _never) or []
        core.reader.sync()
        self._handoff.fill(records)

    async def poll(
        self,
        limit: int,
        wait: float | None,
        among: frozenset[TopicPartition] | None = None,
    ) -> Poll[Any, Any]:
        """Take the records that are there; wait only if there are none."""
        core = self._core

        async def work() -> None:
            self._handoff.settle()
            poll = await core.poll(limit, wait, among)
            core.reader.sync()
            self._polls.append((poll, self._handoff.send(core.reader.read_now())))

        if not self._polls:
            await self.call(work)
        poll, transfer = self._polls[0]
        if among is not None and not among.issuperset(poll.by_partition):
            # It was kept for a caller that was cancelled, and has other records. What
            # it reports is reported all the same.
            self.ask(self._settle)
            return Poll([], poll.to_be_revoked, poll.lost)
        self._polls.popleft()
        self._handoff.receive(transfer)
        return poll

    def batches(
        self, owner: object, limit: int, wait: float, edge: Edge | None = None
    ) -> BatchIterator[Any, Any]:
        """Return an iterator over batches, which keeps ``owner`` alive."""
        self._core.check_open()
        return BatchIterator(self._reads(edge), self._core.reader, limit, wait, owner)

    def raw_batches(self, owner: object, edge: Edge | None = None) -> RawBatchIterator:
        """Return an iterator over raw batches, which keeps ``owner`` alive."""
        self._core.check_open()
        reader = self._core.reader
        return RawBatchIterator(self._reads(edge), reader, _not_here, owner)

    def tables(
        self,
        owner: object,
        limit: int,
        wait: float,
        edge: Edge | None = None,
        *,
        headers: bool,
    ) -> TableIterator:
        """Return an iterator over tables, which keeps ``owner`` alive."""
        self._core.check_open()
        reads, reader = self._reads(edge), self._core.reader
        return TableIterator(reads, reader, limit, wait, headers=headers, owner=owner)

    def _reads(self, edge: Edge | None) -> ReadCrossing:
        core = self._core
        reads = core if edge is None else core.until(edge)
        return ReadCrossing(reads, core.reader, self, self._handoff, self._settle)

    # Reading to an end

    def records(self, owner: object, edge: Edge) -> RecordIterator[Any, Any]:
        """Return an iterator over records before an end, which keeps ``owner``."""
        until, handoff = self._core.until(edge), self._handoff
        # The records that are here are of another read, until the first step.
        has_begun = False

        def take() -> AnyRecord | None:
            return None if self._time_slice.is_over or not has_begun else handoff.take()

        async def read() -> AnyRecord:
            nonlocal has_begun
            if self._time_slice.is_over:
                await self._time_slice.give_way()
            while True:
                record = handoff.take() if has_begun else None
                if record is not None:
                    return record
                await self.call(lambda: self._exchange(until.read))
                has_begun = True
                self._time_slice.renew()

        return RecordIterator(self, take, read, owner)

    async def read_to_end(self, edge: Edge, within: float) -> list[AnyRecord]:
        """Return all records before an end."""
        core = self._core

        async def work() -> None:
            self._settle()
            records = await core.read_to_end(edge, within)
            core.reader.sync()
            transfer = self._handoff.send(core.reader.read_now())
            self._polls.append((Poll(records), transfer))

        # If this is cancelled after the records have come, the next read has them.
        await self.call(work)
        poll, transfer = self._polls.popleft()
        self._handoff.receive(transfer)
        return poll.records

    # DividingPort the records among several tasks

    def lanes(self, owner: object) -> LaneIterator[Any, Any]:
        """Return an iterator over lanes, which keeps ``owner`` alive.

        Each record of a lane crosses by itself; its batches cross as a whole.
        """
        crossings = LaneCrossings(self, self._handoff, self._settle)
        return LaneIterator(self._core.all_lanes(), owner, crossings)

    async def run(
        self,
        handler: Handler,
        concurrency: int,
        ordering: Ordering,
        retry: Retry | None,
        dead_letter: OnDead | None,
        transactions: TransactionalRun | None = None,
    ) -> None:
        """Call a handler with each record, in the user's event loop."""
        if transactions is not None:
            raise UsageError(
                "run() works in transactions without io_thread only: the producer "
                "lives in this thread, and run() in the other"
            )
        thread = self.thread

        async def in_turn(record: AnyRecord) -> None:
            # Many handlers may begin in one turn of the user's loop.
            self._time_slice.woken()
            if self._time_slice.is_over:
                await self._time_slice.take_turn()
            await work_of(handler, record)

        async def cross(record: AnyRecord) -> None:
            await thread.call_user(partial(in_turn, record))

        async def cross_dead(record: Record, error: Exception) -> None:
            assert dead_letter is not None
            await thread.call_user(lambda: dead_letter(record, error))

        on_dead = None if dead_letter is None else cross_dead

        async def work() -> None:
            self._settle()
            await self._core.run(cross, concurrency, ordering, retry, on_dead)

        await self.call(work)

    # Commits

    async def commit_for_user(
        self, what: ToCommit | None, within: float, mark: HandedOut | None = None
    ) -> None:
        """Commit the records that the user was handed by now, or those it names."""
        mark = mark or self._handoff.mark()
        await self.call(lambda: self._core.commit_for_user(what, within, mark))

    # Transactions of a producer

    def offsets_in_transaction(self, what: object) -> TransactionOffsets | None:
        """Return the offsets that ``commit(what)`` would commit, for a transaction."""
        mark = self._handoff.mark()
        found = self.ask(lambda: self._core.offsets_in_transaction(what, mark))
        if found is not None:
            found.thread = self
        return found

    def join_transaction(
        self, on_revoke: Callable[[], None], on_lost: Callable[[KafkaError], None]
    ) -> JoinedAcross:
        """Begin to hold partitions; the callbacks run in the user's loop."""
        thread = self.thread

        def revoke() -> None:
            thread.tell_owner(on_revoke)

        def lost(error: KafkaError) -> None:
            thread.tell_owner(lambda: on_lost(error))

        joined = self.ask(lambda: self._core.join_transaction(revoke, lost))
        return JoinedAcross(joined, self, self._handoff.mark, self._settle)

    # Rebalances

    def rebalances(self) -> Rebalances:
        """Return an iterator over the events of rebalances from now on."""
        self._core.life.check_process()
        feed = self._core.assigned.feed
        return self.ask(lambda: Rebalances(feed, Crossing(self)))

    async def next_revoke(self) -> tuple[RevokeRequested, Hold]:
        """Return the next request of a revocation, and the hold of its partitions."""
        found = list[tuple[RevokeRequested, Hold]]()

        async def work() -> None:
            found.append(await self._core.next_revoke())

        try:
            await self.call(work)
        except BaseException:
            for request, hold in found:
                feed = self._core.assigned.feed
                self.ask(partial(feed.not_returned, request, hold))
            raise
        return found[0]

    @property
    def observer(self) -> Observer:
        """The observer of the cluster."""
        return self._core.observer

    def passing(self, error: BaseException) -> tuple[int, float] | None:
        """Return what is known of a failure to deserialize that passes."""
        return self._core.passing(error)

    @property
    def wanted(self) -> ReadSelection:
        """The selection of topics or partitions."""
        return self._core.wanted

    # Everything else runs in the thread as it is. `Final` makes every type checker take
    # the type that the wrapper returns.

    assignment: Final = _asked(Core.assignment)
    paused: Final = _asked(Core.paused)
    to_be_revoked: Final = _asked(Core.to_be_revoked)
    lost: Final = _asked(Core.lost)
    group_metadata: Final = _asked(Core.group_metadata)
    delay_revoke: Final = _asked(Core.delay_revoke)
    statistics: Final = _asked(Core.statistics)
    enforce_rebalance: Final = _asked(Core.enforce_rebalance)
    apply: Final = _asked(Core.apply, settles=True)
    pause: Final = _asked(Core.pause, settles=True)
    resume: Final = _asked(Core.resume)
    seek: Final = _asked(Core.seek, settles=True)
    seek_to: Final = _asked(Core.seek_to, settles=True)
    log_ends: Final = _asked(Core.log_ends)
    current_lag: Final = _asked(Core.current_lag)
    position: Final = _called(Core.position)
    offsets: Final = _called(Core.offsets)
    ends: Final = _called(Core.ends)
    lag: Final = _called(Core.lag)
    topics: Final = _called(Core.topics)
    partitions_for_topic: Final = _called(Core.partitions_for_topic)
    committed: Final = _called(Core.committed)
    rewind: Final = _called(Core.rewind)
    client_instance_id: Final = _called(Core.client_instance_id)
    register_metric: Final = _asked(Core.register_metric)
    unregister_metric: Final = _asked(Core.unregister_metric)


def _never() -> None:
    """There is no time limit."""


def _not_here(most: int) -> None:
    """There is nothing at hand: every batch comes from the other thread."""
    del most


def _at_home(
    thread: LoopThread, callback: PartitionsCallback | None
) -> PartitionsCallback | None:
    # A callback that runs in the user's event loop.
    if callback is None:
        return None

    async def at_home(partitions: Set[TopicPartition]) -> None:
        async def run() -> None:
            outcome = callback(partitions)
            if inspect.isawaitable(outcome):
                await outcome

        await thread.call_user(run)

    return at_home
