"""What a consumer in a thread hands out, with its steps taken in the thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeAlias, TypeVar

from kafkaio._machines.membership.ledger import Claim
from kafkaio._runtime.thread import caller
from kafkaio.consumer.arguments import most_of
from kafkaio.consumer.batch import Batch
from kafkaio.consumer.core import Core
from kafkaio.consumer.parallel.lane import Lane, LaneBatches, LaneCommit, Track
from kafkaio.consumer.parallel.lanes import LaneIterator, Lanes
from kafkaio.consumer.reading.iterators import BatchIterator, TableIterator
from kafkaio.consumer.rebalance.events import HoldingMember, Rebalance
from kafkaio.consumer.rebalance.feed import RebalanceFeed, Rebalances
from kafkaio.consumer.threaded.handoff import Crossing, Window
from kafkaio.types import Record, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BatchesAcross",
    "Crossroads",
    "EventsAcross",
    "GroupAcross",
    "LanesAcross",
    "TablesAcross",
]

T = TypeVar("T")
_Table: TypeAlias = "pa.Table"


class Way(Protocol):
    """The way to where the core is."""

    def ask(self, work: Callable[[], T]) -> T:
        """Call a function there, and block until it has answered."""
        ...


class Crossroads(Way, Protocol):
    """The consumer, and the ways to where its core is."""

    window: Window

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine function there, and wait for it."""
        ...

    def settle(self) -> None:
        """What was not taken goes back; there."""
        ...


class GroupAcross:
    """The membership as holds see it, from whichever thread."""

    def __init__(self, way: Way, group: HoldingMember) -> None:
        self._way = way
        self._group = group

    def claims(self, partitions: Iterable[TopicPartition]) -> tuple[Claim, ...]:
        """The assignments of those partitions that are assigned."""
        return self._way.ask(lambda: self._group.claims(partitions))

    def hold(self, claims: Iterable[Claim]) -> tuple[Claim, ...]:
        """Keep these assignments until `unhold`; those kept are returned."""
        return self._way.ask(lambda: self._group.hold(claims))

    def unhold(self, claims: Iterable[Claim]) -> None:
        """End one hold of each of these."""
        self._way.ask(lambda: self._group.unhold(claims))


class _Crossing(Generic[T]):
    """An iterator whose steps are taken in the thread; to be mixed in before it."""

    _consumer: Crossroads
    # What came when its caller had been cancelled.
    _kept: deque[T]

    async def __anext__(self) -> T:
        """The next one. If cancelled, the next call has it."""
        step: Any = super().__anext__  # type: ignore[misc]  # of the class after it

        async def work() -> None:
            self._begin()
            self._keep(await step())

        if not self._kept:
            await self._consumer.call(work)
        return self._kept.popleft()

    def _begin(self) -> None:
        """Before each step, in the thread."""

    def _keep(self, value: T) -> None:
        self._kept.append(value)


class _Reading(_Crossing[T]):
    _core: Core
    # Tells that the records in `_kept` are not the user's yet.
    _crossing: Crossing

    async def __anext__(self) -> T:
        """The next one. If cancelled, nothing was taken."""
        try:
            value = await super().__anext__()
        except BaseException:
            if self._kept:
                self._consumer.ask(self._take_back)
            raise
        self._consumer.window.receive(self._crossing)
        return value

    def _keep(self, value: T) -> None:
        self._crossing = self._consumer.window.crosses(self._read())
        super()._keep(value)

    def _read(self) -> Collection[TopicPartition]:
        # The partitions of which the step has read.
        self._core.reader.sync()
        return self._core.reader.read_now()

    def _take_back(self) -> None:
        # What was read and reached nobody; all before it is finished.
        self._kept.clear()
        self._consumer.window.turn_back(self._crossing)
        self._core.reader.sync()
        self._core.reader.take_back()

    def _begin(self) -> None:
        self._consumer.settle()


class BatchesAcross(_Reading[Batch], BatchIterator):
    """Batches that need nothing of the thread's any more."""

    def __init__(
        self, consumer: Crossroads, core: Core, most: int, wait: float
    ) -> None:
        super().__init__(core, most, wait)
        self._consumer, self._kept = consumer, deque()

    def _gather(self, *, is_due: bool) -> Batch | None:
        batch = super()._gather(is_due=is_due)
        if batch is not None:
            batch.detach()
        return batch


class TablesAcross(_Reading[_Table], TableIterator):
    """Tables made in the thread."""

    def __init__(
        self,
        consumer: Crossroads,
        core: Core,
        most: int,
        wait: float,
        *,
        headers: bool,
    ) -> None:
        super().__init__(core, most, wait, headers=headers)
        self._consumer, self._kept = consumer, deque()


class EventsAcross(_Crossing[Rebalance], Rebalances):
    """What rebalances do; it waits in the thread to be looked at."""

    def __init__(self, consumer: Crossroads, feed: RebalanceFeed) -> None:
        consumer.ask(partial(super().__init__, feed))
        self._consumer, self._kept = consumer, deque()

    def close(self) -> None:
        """Listen no more, and keep no partition any longer."""
        self._consumer.ask(super().close)


class LanesAcross(_Crossing[Lane], LaneIterator):
    """Lanes whose bodies run in another loop."""

    def __init__(self, consumer: Crossroads, lanes: Lanes) -> None:
        super().__init__(lanes)
        self._consumer, self._kept = consumer, deque()

    def _begin(self) -> None:
        self._consumer.settle()

    def _made(self, track: Track) -> Lane:
        return _LaneAcross(self._consumer, track)


class _OfLane(_Reading[T]):
    _track: Track

    def _read(self) -> Collection[TopicPartition]:
        return [self._track.tp]

    def _take_back(self) -> None:
        # Other lanes are at work.
        self._kept.clear()
        self._consumer.window.turn_back(self._crossing)
        reader = self._track.reader
        reader.sync()
        if self._track.tp in reader.positions and not self._track.is_over:
            reader.take_back(self._track.tp)

    def _begin(self) -> None:
        """The lanes have the records, and nobody else."""


class _LaneAcross(_OfLane[Record], Lane):
    def __init__(self, consumer: Crossroads, track: Track) -> None:
        super().__init__(track)
        self._consumer, self._kept = consumer, deque()

    async def __aenter__(self) -> Self:
        self._consumer.ask(partial(self._track.enter, caller()))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._consumer.ask(self._track.finish)

    async def close(self) -> None:
        """The body is through with the partition; waits for nothing."""
        self._consumer.ask(self._track.finish)

    def batches(
        self, *, max_records: int | None = None, max_wait: float = 0.0
    ) -> LaneBatches:
        """Iterate over batches instead, as `Lane.batches` says."""
        default = self._track.owner.max_records
        most = most_of(max_records, default)
        return _LaneBatchesAcross(self._consumer, self, self._track, most, max_wait)

    async def commit(
        self,
        what: LaneCommit | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> None:
        """Commit for this partition, as `Lane.commit` says."""
        track, moment = self._track, self._consumer.window.moment()
        commit = partial(track.owner.commit, track, what, timeout, moment)
        await self._consumer.call(commit)


class _LaneBatchesAcross(_OfLane[Batch], LaneBatches):
    def __init__(
        self, consumer: Crossroads, lane: Lane, track: Track, most: int, wait: float
    ) -> None:
        super().__init__(lane, track, most, wait)
        self._consumer, self._kept = consumer, deque()

    def _take(self) -> Batch | None:
        batch = super()._take()
        if batch is not None:
            batch.detach()
        return batch
