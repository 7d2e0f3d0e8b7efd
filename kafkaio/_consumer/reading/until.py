"""Reading to an end: records before an offset of each partition, and no more.

`ReadUntil` stands between an iterator and the core. Each step looks up the ends of
partitions that have none yet, and reads with them (`Reader.before`). Nothing of it
lasts beyond a step, so a loop that is left leaves a consumer as any loop does: nothing
is paused, and the next read goes on where it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum, auto
from math import inf
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

from kafkaio._client.log_ranges import Edge, LogRanges, Selection
from kafkaio._client.offsets import EARLIEST
from kafkaio._consumer.reading.reader import Reader
from kafkaio._runtime.clock import now
from kafkaio.errors import RequestTimeout, UsageError
from kafkaio.types import AnyRecord, TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ClusterPort

T = TypeVar("T")

#: The end of a partition that has nothing to read; also before a position is known.
_NOTHING: Final = -1
#: Seconds between two looks at a group that assigns nothing while it rebalances.
_LOOK: Final = 0.05
#: Partitions named in one message.
_NAMED: Final = 10

_Places: TypeAlias = Mapping[TopicPartition, int]


class _Step(Enum):
    OVER = auto()  #: every partition is at its end
    NEW = auto()  #: a partition has no end yet


class BoundedCorePort(Protocol):
    """The core, for a read to an end."""

    @property
    def is_closed(self) -> bool:
        """Whether the consumer was closed, and not ended by a crash."""
        ...

    @property
    def reader(self) -> Reader:
        """Hands the records out."""
        ...

    @property
    def cluster(self) -> ClusterPort:
        """The way to the cluster."""
        ...

    def to_be_read(self) -> Collection[TopicPartition]:
        """Return the partitions of which records may come."""
        ...

    def is_assigning(self) -> bool:
        """Whether the group is about to assign partitions."""
        ...

    def lack(self, tp: TopicPartition) -> str:
        """Return what a partition lacks to be read."""
        ...

    async def read(
        self,
        take: Callable[[], T | None],
        until: Callable[[], float | None],
        *,
        steps: bool = True,
    ) -> T | None:
        """Wait until ``take`` returns something; None when ``until`` has passed."""
        ...


class ReadUntil:
    """Reads the assigned partitions to an end (`ReadPort`).

    Partitions that are assigned later have ends, too, which are looked up then. Those
    that are revoked or lost do not count any more.

    Args:
        core: runs the reads.
        edge: where to end.
        level: the isolation level as requests have it: 1 ends at last stable offsets.
        patience: seconds without any progress after which a step fails.
        within: seconds for all of it; infinite for no limit.

    Attributes:
        ends: the ends that are known, by partition.
    """

    def __init__(
        self,
        core: BoundedCorePort,
        edge: Edge,
        level: int,
        patience: float,
        within: float = inf,
    ) -> None:
        self._core = core
        self._edge = edge
        self._level = level
        self._patience = min(patience, within)
        self._deadline = now() + within
        self.ends: dict[TopicPartition, int] = {}
        # The positions when they last changed, and until when they must change again.
        self._places: _Places = {}
        self._limit = 0.0

    @property
    def is_closed(self) -> bool:
        """Whether the consumer was closed, and not ended by a crash."""
        return self._core.is_closed

    async def read(
        self, take: Callable[[], T | None], until: Callable[[], float | None]
    ) -> T | None:
        """Wait until ``take`` returns something; None when ``until`` has passed.

        Raises:
            StopAsyncIteration: every partition is at its end.
            RequestTimeout: nothing has moved for longer than the patience.
            UsageError: all partitions that are not at their end are paused.
        """
        taken: Any = await self._read(take, until)
        if taken is _Step.OVER:
            raise StopAsyncIteration
        result: T | None = taken
        return result

    async def read_all(self, most: int) -> list[AnyRecord]:
        """Read all records, in one step.

        If the call fails or is cancelled, nothing was taken: they are read again.

        Args:
            most: records that are taken at once.

        Raises:
            RequestTimeout: as `read`.
            UsageError: as `read`.
        """
        reader = self._core.reader
        records: list[AnyRecord] = []
        # By partition, the assignment under which its records were read.
        numbers: dict[TopicPartition, int | None] = {}

        def take() -> None:
            while found := reader.take(most):
                records.extend(found)
                for tp in {record.topic_partition for record in found}:
                    numbers[tp] = reader.ledger.number(tp)

        try:
            await self._read(take, lambda: None)
        except BaseException:
            reader.sync()
            reader.take_back()
            raise
        ledger = reader.ledger
        gone = {tp for tp, number in numbers.items() if number != ledger.number(tp)}
        if gone:
            return [record for record in records if record.topic_partition not in gone]
        return records

    async def _read(
        self, take: Callable[[], object], until: Callable[[], float | None]
    ) -> object:
        self._moved()
        steps = True

        def step() -> object:
            return self._step(take)

        def limit() -> float:
            given = until()
            least = self._limit if given is None else min(given, self._limit)
            return min(least, now() + _LOOK) if self._core.is_assigning() else least

        while True:
            await self._find_ends()
            taken = await self._core.read(step, limit, steps=steps)
            # What was handed out is finished once, with the first read.
            steps = False
            if taken is _Step.NEW:
                continue
            if taken is not None:
                return taken
            if (given := until()) is not None and now() >= given:
                return None
            if now() >= self._limit:
                raise self._stuck()

    async def _find_ends(self) -> None:
        unknown = [tp for tp in self._core.to_be_read() if tp not in self.ends]
        if not unknown:
            return
        edge = Edge(
            {tp: at for tp, at in self._edge.offsets.items() if tp in unknown},
            {tp: at for tp, at in self._edge.times.items() if tp in unknown},
            self._edge.otherwise,
        )
        left = max(0.0, min(self._patience, self._deadline - now()))
        ranges = LogRanges(self._core.cluster, self._level, left)
        found = await ranges.find(
            Selection((), tuple(unknown)), Edge({}, {}, EARLIEST), edge
        )
        self.ends.update(dict.fromkeys(unknown, _NOTHING))
        self.ends.update({part.partition: part.end for part in found})
        reader = self._core.reader
        reader.sync()
        for tp in unknown:
            # Records that were fetched before may be of offsets after the end.
            reader.begin_again_if_beyond(tp, self.ends[tp])
        self._moved()

    def _step(self, take: Callable[[], object]) -> object:
        core = self._core
        if any(tp not in self.ends for tp in core.to_be_read()):
            return _Step.NEW
        with core.reader.before(self.ends):
            taken = take()
        if taken is not None:
            return taken
        unread = self._unread()
        if not unread:
            return None if core.is_assigning() else _Step.OVER
        if all(core.reader.positions[tp].is_paused for tp in unread):
            raise UsageError(
                f"{_named(unread)} paused before the end of what is to be read: "
                "resume first"
            )
        if self._places_of(self._core.to_be_read()) != self._places:
            self._moved()
        return None

    def _unread(self) -> list[TopicPartition]:
        reader = self._core.reader
        reader.sync()
        return [
            tp
            for tp in self._core.to_be_read()
            if reader.positions[tp].position < self.ends[tp]
        ]

    def _places_of(self, partitions: Collection[TopicPartition]) -> _Places:
        positions = self._core.reader.positions
        return {tp: positions[tp].fetch_offset for tp in partitions}

    def _moved(self) -> None:
        self._limit = min(now() + self._patience, self._deadline)
        known = self.ends.keys() & set(self._core.to_be_read())
        self._places = self._places_of(known)

    def _stuck(self) -> RequestTimeout:
        unread = self._unread()
        if not unread:
            return RequestTimeout(
                f"the group has assigned no partition within {self._patience:g} s"
            )
        positions = self._core.reader.positions
        reasons = [
            f"{tp.topic}-{tp.partition} at {positions[tp].position} of "
            f"{self.ends[tp]}: {self._core.lack(tp)}"
            for tp in sorted(unread)[:_NAMED]
        ]
        more = len(unread) - len(reasons)
        waited = f"nothing was read for {self._patience:g} s"
        return RequestTimeout(
            ("time is up" if self._limit >= self._deadline else waited)
            + ", before the end: "
            + "; ".join(reasons)
            + (f"; and {more} more" if more else "")
        )


def _named(partitions: Collection[TopicPartition]) -> str:
    names = [f"{tp.topic}-{tp.partition}" for tp in sorted(partitions)]
    more = len(names) - _NAMED
    text = ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"{text} {'is' if len(names) == 1 else 'are'}"
