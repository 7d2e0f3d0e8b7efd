"""Reads ranges of topics in batches, for ``consume``, ``copy`` and ``replay``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kafkaio._cli.records.places import Place, PlaceRange, find_places, partitions_of
from kafkaio._runtime.clock import now
from kafkaio._runtime.scopes import move_on_after
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._cli.shell.session import CommandSession
    from kafkaio._consumer import Batch, Consumer, RawBatchIterator
    from kafkaio._records.raw import RawBatch

#: Options of a consumer that commits nothing, even if a profile has a group.
NO_GROUP: Final[Mapping[str, object]] = {"group_id": None, "enable_auto_commit": False}
#: Seconds without a batch after which the positions are compared with the ends.
_IDLE_SECONDS = 0.1


@dataclass(frozen=True)
class ReadPlan:
    """The range to read.

    Attributes:
        topics: names of topics.
        partitions: numbers of partitions; all if empty.
        places: the range in each partition.
        is_group: whether a group assigns the partitions and has their offsets.
        stops: whether to stop at the current end, if the range has none.
        patience: seconds to wait for partitions of the group, if reading stops. A group
            with more members than partitions has none for this member; a group that
            rebalances has them in a moment.
    """

    topics: Sequence[str]
    partitions: Sequence[int] = ()
    places: PlaceRange = field(default_factory=PlaceRange)
    is_group: bool = False
    stops: bool = False
    patience: float = 30.0


async def begin(consumer: Consumer, plan: ReadPlan) -> BoundedReader:
    """Assign the partitions to a started consumer, unless a group does that.

    Returns:
        The reader, which stops at the end of the range.
    """
    found = await partitions_of(consumer, plan.topics, plan.partitions)
    end = plan.places.end
    if end is None and plan.stops:
        end = Place("latest")
    # The ends are those of now: records that are written meanwhile are not read, so the
    # command ends even while producers are faster.
    ends = None if end is None else await find_places(consumer, found, end)
    if not plan.is_group:
        starts = await find_places(consumer, found, plan.places.start)
        # An empty partition is never fetched: a fetch at its end would wait.
        wanted = [tp for tp in found if ends is None or starts[tp] < ends[tp]]
        consumer.assign(wanted)
        for tp in wanted:
            consumer.seek(tp, starts[tp])
        total = None if ends is None else sum(ends[tp] - starts[tp] for tp in wanted)
        ends = None if ends is None else {tp: ends[tp] for tp in wanted}
        return BoundedReader(consumer, ends, total)
    return BoundedReader(consumer, ends, patience=plan.patience)


class BoundedReader:
    """Reads until every partition is at its end.

    Args:
        consumer: the consumer.
        ends: the offsets to stop before, by partition; None to read without end.
        total: the number of offsets in the range; None if it is unknown.
        patience: seconds to wait for partitions if the group assigns none.

    Attributes:
        total: as above.
    """

    def __init__(
        self,
        consumer: Consumer,
        ends: dict[TopicPartition, int] | None,
        total: int | None = None,
        *,
        patience: float = 0.0,
    ) -> None:
        self.total = total
        self._consumer = consumer
        # A partition is removed when it is at its end.
        self._ends = ends
        self._patience = patience
        # When the member was first seen without partitions; None while it has some.
        self._unassigned_since: float | None = None

    def end_of(self, partition: TopicPartition) -> int | None:
        """Return the offset to stop before; None without an end."""
        return None if self._ends is None else self._ends.get(partition)

    @property
    def is_over(self) -> bool:
        """Whether every partition is at its end."""
        if self._ends is None:
            return False
        if not self._ends:
            return True
        # In a group only the own partitions count. Before the first assignment there
        # are none, which does not mean that all are read.
        assigned = self._consumer.assignment
        return bool(assigned) and self._ends.keys().isdisjoint(assigned)

    @property
    def has_end(self) -> bool:
        """Whether reading stops at an end."""
        return self._ends is not None

    def is_left_out(self) -> bool:
        """Whether the group assigns no partition for longer than the patience."""
        if not self._ends or self._consumer.assignment:
            self._unassigned_since = None
            return False
        if self._unassigned_since is None:
            self._unassigned_since = now()
        return now() - self._unassigned_since >= self._patience

    def note_if_left_out(self, session: CommandSession, group: str | None) -> None:
        """Explain that nothing was read, if the group assigned no partition."""
        if self.is_left_out():
            session.note(
                f"group {group} assigned no partition to this member within "
                f"{self._patience:g} s (--timeout): others read them"
            )

    def ended(self, partition: TopicPartition) -> None:
        """Stop to read a partition that is at its end."""
        if self._ends is not None and self._ends.pop(partition, None) is not None:
            self._consumer.pause(partition)

    async def check_ends(self) -> None:
        """Stop to read partitions whose position is at the end.

        No record may come at the last offsets: they can be markers of transactions, or
        removed by compaction.
        """
        for tp in self._consumer.assignment:
            end = self.end_of(tp)
            if end is not None and await self._consumer.position(tp) >= end:
                self.ended(tp)

    def is_open(self, partition: TopicPartition) -> bool:
        """Whether more records of a partition may come before its end."""
        return self._ends is None or partition in self._ends

    async def batches(
        self, max_records: int | None = None
    ) -> AsyncIterator[tuple[Batch, int | None]]:
        """Yield batches, each with the offset to stop before if the end is in it.

        The next batch finishes the one before.
        """
        async for found in self.steps(max_records):
            if found is not None:
                yield found

    async def steps(
        self, max_records: int | None = None
    ) -> AsyncIterator[tuple[Batch, int | None] | None]:
        """Yield batches as `batches` does, and None after a while without one."""
        batches = self._consumer.batches(max_records=max_records)
        if self._ends is None:
            async for batch in batches:
                yield batch, None
            return
        while not self.is_over and not self.is_left_out():
            found = None
            # A cancelled anext takes no batch, so none is lost here.
            with move_on_after(_IDLE_SECONDS):
                found = await anext(batches)
            if found is None:
                await self.check_ends()
                yield None
            else:
                yield self._cut(found)

    def raw_batches(self) -> RawRuns:
        """Return the record batches as they were fetched, up to the end."""
        # The ends of partitions that the group assigns later are looked up then.
        until = None if self._ends is None else {**self._ends}
        if until is not None and not until:
            return RawRuns(self, self._consumer, None)
        batches = self._consumer.raw_batches(until=until)
        return RawRuns(self, self._consumer, batches)

    def _cut(self, batch: Batch) -> tuple[Batch, int | None]:
        """Return a batch and the end in it; stop the partition if it is reached."""
        tp = batch.topic_partition
        end = self.end_of(tp)
        if end is None:
            return batch, None
        last = batch.last_offset
        if last + 1 >= end:
            self.ended(tp)
        return batch, end if last >= end else None


class RawRuns:
    """The raw batches of a reader, which waits for its group to assign partitions.

    Args:
        reader: knows how long to wait.
        consumer: has the assignment.
        batches: end at once while there is none; None if there are no partitions.
    """

    def __init__(
        self,
        reader: BoundedReader,
        consumer: Consumer,
        batches: RawBatchIterator | None,
    ) -> None:
        self._reader = reader
        self._consumer = consumer
        self._batches = batches

    async def take(self, max_bytes: int) -> list[RawBatch]:
        """Take batches that follow each other; see `RawBatchIterator.take`.

        The next call finishes them. After the end, the batches go on if the consumer
        went back.
        """
        if self._batches is None:
            return []
        while True:
            found = await self._batches.take(max_bytes)
            if found or self._consumer.assignment or self._reader.is_left_out():
                return found
            await asyncio.sleep(_IDLE_SECONDS)
