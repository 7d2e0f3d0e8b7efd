"""Reading with many tasks: a lane for each partition, or a handler for each record."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Literal

from kafkaio.consumer.parallel.lane import Lane
from kafkaio.types import Record
from tests.sim.book import Held
from tests.sim.desk import Desk, beside
from tests.sim.revokes import Keep, keeping

__all__ = ["read_lanes", "run_handlers"]

_MOST: Final = 20
#: How many handlers run at a time, at least and at most.
_CONCURRENCY: Final = (4, 20)
#: How often a handler fails, of which its dead letter's office hears.
_FAILS: Final = 0.02
_ORDERINGS: Final[tuple[Literal["key", "partition", "none"], ...]] = (
    "key",
    "key",
    "partition",
    "none",
)


async def read_lanes(desk: Desk) -> None:
    """Read each partition in a task of its own; some enter their lane, some do not."""
    async with beside() as start:
        async for lane in desk.consumer.partitions():
            is_entered = desk.dice.random() < 1 / 2
            start(_enter if is_entered else _read_lane, desk, lane)


async def _enter(desk: Desk, lane: Lane) -> None:
    async with lane:
        await _read_lane(desk, lane, is_entered=True)


async def _read_lane(desk: Desk, lane: Lane, *, is_entered: bool = False) -> None:
    mine, keep = [lane.partition], Keep(desk.session)
    is_committed = True
    try:
        async for batch in lane.batches(max_records=_MOST):
            for record in batch.records:
                desk.enter(record)
            keep.only(mine)
            await desk.work()
            if not lane.is_lost:
                desk.book.finished(desk.session, mine)
            if not desk.auto_commit:
                is_committed = await _commit(desk, lane)
                if is_committed and not is_entered:
                    keep.only()  # from now on the lane may be over any time
        if not is_committed:
            await _commit(desk, lane)
    finally:
        keep.only()


async def _commit(desk: Desk, lane: Lane) -> bool:
    held = desk.session.held.get(lane.partition)
    if held is None or lane.is_lost:
        return True
    return await desk.commit_all([lane.partition], lane.commit)


async def run_handlers(desk: Desk) -> None:
    """Have a handler called with many records at a time; some fail for good."""
    ordering = desk.dice.choice(_ORDERINGS)

    def strand_of(record: Record) -> Hashable:
        by = {"key": record.key, "partition": None, "none": record.offset}
        return by[ordering]

    async def handle(record: Record) -> None:
        number, strand = record.partition, strand_of(record)
        what = record.offset, record.value
        held = desk.book.begun(desk.session, number, what, strand)
        if held is None or held.strands is None:
            return
        try:
            with keeping(desk.session, [number]):
                await desk.work()
            if desk.dice.random() < _FAILS:
                raise _UnfitError(held)
        finally:
            held.strands.stop(strand)
        desk.book.done(desk.session, number, held, record.offset)

    async def bury(record: Record, error: Exception) -> None:
        assert isinstance(error, _UnfitError)
        with keeping(desk.session, [record.partition]):
            await desk.work()
        number = record.partition
        desk.book.done(desk.session, number, error.held, record.offset)

    await desk.consumer.run(
        handle,
        concurrency=desk.dice.randint(*_CONCURRENCY),
        ordering=ordering,
        dead_letter=bury,
    )


class _UnfitError(Exception):
    """A record that nobody can do anything with, of some assignment."""

    def __init__(self, held: Held) -> None:
        super().__init__("unfit")
        self.held = held
