"""The core of a share consumer in a thread of its own (``io_thread``).

`ThreadedShareCore` has the methods of `ShareCore` that `kafkaio.ShareConsumer` calls,
and runs them in the event loop of the I/O thread: heartbeats, fetches, renewals and
acknowledgements go on while the user's loop is blocked. A call that waits is awaited
from the user's loop. One that does not wait blocks its caller for one turn of the other
loop, which no code of the user's can delay: handlers run in the user's loop.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from kafkaio._consumer.parallel.handlers import work_of
from kafkaio._consumer.threaded.life import ThreadedLife
from kafkaio._records._impl import accelerated
from kafkaio._records.batch import Acquired
from kafkaio._runtime.lifecycle import Lifecycle
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.thread import LoopThread
from kafkaio._runtime.time_slice import TimeSlice
from kafkaio._share.core import AFTER_START, CLOSE_TIMEOUT, ShareCore
from kafkaio._share.ports import HandlersPort
from kafkaio._share.reading.reader import ShareReader
from kafkaio._share.reading.reads import ShareReads
from kafkaio._share.run import FailedRecords, ShareHandler, ShareRunner
from kafkaio._share.statistics import ShareConsumerStatistics
from kafkaio._share.threaded.mirrors import Mirrors
from kafkaio._share.threaded.reads import ThreadedReads
from kafkaio.errors import ConfigurationError, KafkaError, UsageError
from kafkaio.types import Metric, TopicPartition

if TYPE_CHECKING:
    from kafkaio._records._acquired import AnyShareRecord

T = TypeVar("T")


class ThreadedShareCore:
    """A core that keeps its locks while the user's event loop is blocked.

    Args:
        core: the core, attached to the reader.
        reader: the reader.
        reads: the reads of that reader.

    Attributes:
        life: the lifecycle of the core.
        reads: the reads for the user's thread.

    Raises:
        ConfigurationError: kafkaio runs without its compiled codec.
        UsageError: the client is shared.
    """

    def __init__(self, core: ShareCore, reader: ShareReader, reads: ShareReads) -> None:
        if not core.owns_cluster:
            raise UsageError(
                "io_thread=True needs a client of its own, and a shared one lives on "
                "another loop: give bootstrap servers"
            )
        if not accelerated:
            raise ConfigurationError(
                "io_thread=True of a share consumer needs kafkaio's compiled codec, "
                "which decides about a record in one step for both threads"
            )
        self._core = core
        self._reader = reader
        self._reads = reads
        self.life: Lifecycle = core.life
        self._thread = thread = LoopThread("kafkaio I/O")
        self._mirrors = mirrors = Mirrors(thread, core.decided_late)
        self._threaded = ThreadedLife(
            thread,
            _CoreInThread(core, reads, mirrors),
            closing=CLOSE_TIMEOUT,
            after_start=AFTER_START,
        )
        reader.show = mirrors.show
        core.watch_ranges(mirrors.refresh)
        # What a deserializer awaits, such as the client of a registry, lives in the
        # user's loop.
        reader.deserialization.deserializers.awaits = thread.call_owner
        accepts = core.config.acknowledgement == "implicit"
        self.reads: ThreadedReads = ThreadedReads(
            thread, reads, reader, mirrors, core.life, accepts=accepts
        )

    def ask(self, work: Callable[[], T]) -> T:
        """Call a function in the thread, and block until it has returned."""
        return self._threaded.ask(work)

    async def _call(self, work: Callable[[], Awaitable[T]]) -> T:
        return await self._threaded.call(work)

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

    def check_open(self) -> None:
        """Raise ClosedError if it is closed; it need not have been started."""
        self._core.check_open()

    # What to read

    @property
    def subscription(self) -> frozenset[str] | re.Pattern[str]:
        """The topics or the pattern."""
        return self._core.subscription

    def subscribe(self, topics: frozenset[str] | re.Pattern[str]) -> None:
        """Read these topics."""
        self.ask(lambda: self._core.subscribe(topics))

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this consumer may fetch from."""
        return self.ask(lambda: self._core.assignment)

    async def run(
        self,
        handler: ShareHandler,
        failed: FailedRecords,
        *,
        concurrency: int,
        max_processing: float | None,
    ) -> None:
        """Call a handler with each record, in the user's event loop."""
        thread, time_slice = self._thread, TimeSlice()
        time_slice.start()

        async def in_turn(record: AnyShareRecord) -> None:
            # Many handlers may begin in one turn of the user's loop.
            time_slice.woken()
            if time_slice.is_over:
                await time_slice.take_turn()
            await work_of(handler, record)

        async def cross(record: AnyShareRecord) -> None:
            await thread.call_user(partial(in_turn, record))

        runner = ShareRunner(
            _RunEngine(self._core, self._mirrors),
            self._reads,
            self._reader,
            cross,
            _FailedAcross(failed, thread),
            concurrency=concurrency,
            max_processing=max_processing,
        )
        await self.reads.run(runner.run)

    # Acknowledgements

    async def flush(self, timeout: float) -> None:
        """See `EnginePort`."""
        await self._call(lambda: self._core.flush(timeout))

    async def commit(
        self, timeout: float
    ) -> Mapping[TopicPartition, KafkaError | None]:
        """See `EnginePort`."""
        return await self._call(lambda: self._core.commit(timeout))

    # The rest

    @property
    def observer(self) -> Observer:
        """Observes what happens; it is called in the thread."""
        return self._core.observer

    async def broker_dead_letters(self) -> str | None:
        """See `ShareCore`."""
        return await self._call(self._core.broker_dead_letters)

    def statistics(self) -> ShareConsumerStatistics:
        """Return a snapshot of the consumer."""
        return self.ask(self._core.statistics)

    async def client_instance_id(self, within: float) -> UUID:
        """See `ShareCore`."""
        return await self._call(lambda: self._core.client_instance_id(within))

    def register_metric(self, metric: Metric) -> None:
        """See `ShareCore`."""
        self.ask(lambda: self._core.register_metric(metric))

    def unregister_metric(self, metric: Metric) -> None:
        """See `ShareCore`."""
        self.ask(lambda: self._core.unregister_metric(metric))


class _CoreInThread:
    """The core, and what begins and ends with it in the thread (`CorePort`)."""

    def __init__(self, core: ShareCore, reads: ShareReads, mirrors: Mirrors) -> None:
        self.life: Lifecycle = core.life
        self._core = core
        self._reads = reads
        self._mirrors = mirrors

    async def start(self, within: float | None) -> None:
        await self._core.start(within)
        self._reads.time_slice.start()

    async def close(self, within: float | None) -> None:
        try:
            await self._core.close(within)
        finally:
            self._mirrors.end()

    def abandon(self) -> None:
        self._core.abandon()


class _RunEngine:
    """The core, as ``run`` uses it: its records are of the mirrors (`WorkPort`)."""

    def __init__(self, core: ShareCore, mirrors: Mirrors) -> None:
        self._core = core
        self._mirrors = mirrors
        self._handlers: dict[HandlersPort, HandlersPort] = {}

    @property
    def observer(self) -> Observer:
        return self._core.observer

    def check(self) -> None:
        self._core.check()

    async def wait_for_news(self, until: float | None) -> None:
        await self._core.wait_for_news(until)

    def notify(self) -> None:
        self._core.notify()

    def begin_work(self, handlers: HandlersPort) -> None:
        across = self._handlers[handlers] = _HandlersAcross(handlers, self._mirrors)
        self._core.begin_work(across)

    def bound_work(self, handlers: HandlersPort) -> None:
        self._core.bound_work(self._handlers[handlers])

    def end_work(self, handlers: HandlersPort) -> None:
        self._core.end_work(self._handlers.pop(handlers))


class _HandlersAcross:
    """Handlers of ``run`` that know the mirrors of ranges (`HandlersPort`)."""

    def __init__(self, handlers: HandlersPort, mirrors: Mirrors) -> None:
        self._handlers = handlers
        self._mirrors = mirrors

    @property
    def most_records(self) -> int:
        return self._handlers.most_records

    @property
    def max_processing(self) -> float | None:
        return self._handlers.max_processing

    def lost(self, acquired: Acquired) -> None:
        self._handlers.lost(self._mirrors.shown(acquired))

    def begin_draining(self) -> None:
        self._handlers.begin_draining()

    async def drain(self) -> None:
        await self._handlers.drain()

    def stop(self) -> None:
        self._handlers.stop()


class _FailedAcross:
    """Asks what becomes of a failed record in the user's loop (`FailedPort`)."""

    __slots__ = ("_failed", "_thread")

    def __init__(self, failed: FailedRecords, thread: LoopThread) -> None:
        self._failed = failed
        self._thread = thread

    async def decide(self, record: AnyShareRecord, error: Exception) -> int:
        """Return what becomes of a record."""
        return await self._thread.call_user(lambda: self._failed.decide(record, error))

    def is_held_back(self, error: Exception) -> bool:
        """Whether a record is released only after a wait."""
        return self._failed.is_held_back(error)

    def report(self, record: AnyShareRecord, error: Exception, outcome: str) -> None:
        """Tell the observer about a failure."""
        self._failed.report(record, error, outcome)
