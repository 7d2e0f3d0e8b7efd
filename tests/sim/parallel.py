"""Reading with many tasks: a lane for each partition, or a handler for each record."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Literal

from kafkaio._consumer.parallel.lane import Lane
from kafkaio.types import Record
from tests.sim.checker import Held
from tests.sim.revocations import Keep, keeping
from tests.sim.user import User, background

__all__ = ["read_lanes", "run_handlers"]

_MOST: Final = 20
#: How many handlers run at a time, at least and at most.
_CONCURRENCY: Final = (4, 20)
#: The share of records whose handler fails, so that they become dead letters.
_FAILS: Final = 0.02
_ORDERINGS: Final[tuple[Literal["key", "partition", "none"], ...]] = (
    "key",
    "key",
    "partition",
    "none",
)


async def read_lanes(user: User) -> None:
    """Read each partition in a task of its own; some use ``async with lane``."""
    async with background() as start:
        async for lane in user.consumer.partitions():
            is_entered = user.rng.random() < 1 / 2
            start(_enter if is_entered else _read_lane, user, lane)


async def _enter(user: User, lane: Lane) -> None:
    async with lane:
        await _read_lane(user, lane, is_entered=True)


async def _read_lane(user: User, lane: Lane, *, is_entered: bool = False) -> None:
    mine, keep = [lane.partition], Keep(user.session)
    is_committed = True
    try:
        async for batch in lane.batches(max_records=_MOST):
            for record in batch.records:
                user.enter(record)
            keep.only(mine)
            await user.work()
            if not lane.is_lost:
                user.checker.finished(user.session, mine)
            if not user.auto_commit:
                is_committed = await _commit(user, lane)
                if is_committed and not is_entered:
                    keep.only()  # from now on the lane may end at any time
        if not is_committed:
            await _commit(user, lane)
    finally:
        keep.only()


async def _commit(user: User, lane: Lane) -> bool:
    held = user.session.held.get(lane.partition)
    if held is None or lane.is_lost:
        return True
    return await user.commit_all([lane.partition], lane.commit)


async def run_handlers(user: User) -> None:
    """Process records with concurrent handlers; some fail for ever."""
    ordering = user.rng.choice(_ORDERINGS)

    def order_key_of(record: Record) -> Hashable:
        by = {"key": record.key, "partition": None, "none": record.offset}
        return by[ordering]

    async def handle(record: Record) -> None:
        number, order_key = record.partition, order_key_of(record)
        what = record.offset, record.value
        held = user.checker.begun(user.session, number, what, order_key)
        if held is None or held.work_order is None:
            return
        try:
            with keeping(user.session, [number]):
                await user.work()
            if user.rng.random() < _FAILS:
                raise _UnfitError(held)
        finally:
            held.work_order.stop(order_key)
        user.checker.done(user.session, number, held, record.offset)

    async def bury(record: Record, error: Exception) -> None:
        assert isinstance(error, _UnfitError)
        with keeping(user.session, [record.partition]):
            await user.work()
        number = record.partition
        user.checker.done(user.session, number, error.held, record.offset)

    await user.consumer.run(
        handle,
        concurrency=user.rng.randint(*_CONCURRENCY),
        ordering=ordering,
        dead_letter=bury,
    )


class _UnfitError(Exception):
    """Raised for a record that cannot be processed; carries its assignment."""

    def __init__(self, held: Held) -> None:
        super().__init__("unfit")
        self.held = held
