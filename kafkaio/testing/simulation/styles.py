"""The ways to read, and to keep what the group asks for, that a user has."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio

from kafkaio.consumer.rebalance.events import Lost, Revoked, RevokeRequested
from kafkaio.errors import PartitionLost
from kafkaio.testing.simulation.book import Held
from kafkaio.testing.simulation.desk import TOPIC, Desk, Start, beside, numbers
from kafkaio.testing.simulation.parallel import read_lanes, run_handlers
from kafkaio.testing.simulation.revokes import Keep, keeping
from kafkaio.types import TopicPartition

__all__ = ["STYLES", "Style"]

_MOST: Final = 20
#: Seconds of a hold: short ones are as likely as long ones, and some are far too long.
_HOLDS: Final = (0.05, 30.0)
_TOO_LONG: Final = 0.08
#: Seconds until a user surely has heard what became of a partition.
_HEARS: Final = 2.0
#: Seconds of the work on one record.
_WORK: Final = (0.01, 4.0)


@dataclass(frozen=True, slots=True)
class Style:
    """A way to read.

    Attributes:
        read: reads until cancelled, or until the consumer closes.
        auto_commit: whether the consumer commits; None where the dice decide.
        ends_by_closing: whether its user closes the consumer without a word to whoever
            reads, which has to end in good order by itself.
    """

    read: Callable[[Desk], Awaitable[None]]
    auto_commit: bool | None = None
    ends_by_closing: bool = True


async def _iterate(desk: Desk) -> None:
    stream = aiter(desk.consumer)
    while True:
        record = await anext(stream)
        await desk.handle([record])
        desk.seek_back()


async def _poll(desk: Desk) -> None:
    while True:
        poll = await desk.consumer.poll(timeout=20.0, max_records=_MOST)
        await desk.handle(poll.records)
        desk.seek_back()


async def _take_batches(desk: Desk) -> None:
    async for batch in desk.consumer.batches(max_records=_MOST, max_wait=0.3):
        await desk.handle(batch.records)
        with desk.at_work():
            commit = partial(desk.consumer.commit, batch)
            await desk.commit_all([batch.partition], commit)
        desk.seek_back()


# ---- the loop of KIP-983 -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Job:
    held: Held
    offset: int
    due: float


class _Delaying:
    """Works beside its polls, commits what is done, delays what is not."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._jobs: dict[int, deque[_Job]] = {}
        # The last that was done and is not committed yet.
        self._done: dict[int, _Job] = {}
        # Until when the user wants to keep what was asked for.
        self._until: dict[int, float] = {}
        self._keep = Keep(desk.session)
        # When a delay was refused, and of what.
        self._refused = (0.0, list[Held]())

    async def read(self) -> None:
        desk = self._desk
        try:
            while True:
                poll = await desk.consumer.poll(timeout=1.0, max_records=_MOST)
                asked = numbers(poll.to_be_revoked)
                self._keep.only(asked)
                self._abandon(numbers(poll.lost))
                for record in poll.records:
                    desk.enter(record)
                    self._start(record.partition, record.offset)
                self._check_refusal()
                self._hear(asked)
                with desk.at_work():
                    await desk.work()
                    await self._commit()
                self._keep.only(self._delay(asked))
        finally:
            self._keep.only()
            desk.book.disordered(desk.session, self._done)

    def _start(self, partition: int, offset: int) -> None:
        jobs = self._jobs.setdefault(partition, deque())
        due = anyio.current_time() + _drawn(self._desk.dice, *_WORK) / 4
        if jobs:
            due = max(due, jobs[-1].due)
        jobs.append(_Job(self._desk.session.held[partition], offset, due))

    def _hear(self, asked: Collection[int]) -> None:
        now, held = anyio.current_time(), self._desk.session.held
        for partition in asked:
            if partition not in self._until and partition in held:
                self._until[partition] = now + hold_time(self._desk.dice)
                held[partition].deadline = now + self._desk.patience
                held[partition].is_requested = True

    def _abandon(self, lost: Collection[int]) -> None:
        for partition in lost:
            for what in (self._jobs, self._done, self._until):
                what.pop(partition, None)

    async def _commit(self) -> None:
        now, held = anyio.current_time(), self._desk.session.held
        for partition, jobs in self._jobs.items():
            while jobs and jobs[0].due <= now:
                job = jobs.popleft()
                if held.get(partition) is job.held and not job.held.is_asked_back:
                    job.held.finished = job.offset + 1
                    self._done[partition] = job
        offsets = {
            TopicPartition(TOPIC, partition): job.offset + 1
            for partition, job in self._done.items()
            if held.get(partition) is job.held and not job.held.is_asked_back
        }
        commit = partial(self._desk.consumer.commit, offsets)
        if offsets and await self._desk.try_to(commit):
            self._done.clear()
        self._abandon(numbers(self._desk.consumer.lost))

    def _delay(self, asked: Collection[int]) -> list[int]:
        desk, now = self._desk, anyio.current_time()
        for partition in list(self._until):
            if partition not in asked:
                del self._until[partition]
        busy = [
            p
            for p in asked
            if self._jobs.get(p) or p in self._done or now < self._until.get(p, now)
        ]
        is_kept = desk.consumer.delay_revoke([TopicPartition(TOPIC, p) for p in busy])
        lost = numbers(desk.consumer.lost)
        if not is_kept:
            self._refused = now, [desk.session.held[p] for p in busy if desk.has(p)]
        return [partition for partition in busy if partition not in lost]

    def _check_refusal(self) -> None:
        """That a delay was refused has to have a reason, of which the user hears."""
        at, refused = self._refused
        if not refused or anyio.current_time() < at + _HEARS:
            return
        mine = list(self._desk.session.held.values())
        if all(held in mine and not held.is_asked_back for held in refused):
            name = self._desk.session.name
            self._desk.book.break_law("delay refused", f"{name}, at {at:.3f}")
        self._refused = at, []


async def _delay(desk: Desk) -> None:
    await _Delaying(desk).read()


# ---- events, and holds ---------------------------------------------------------------


async def _hold(desk: Desk) -> None:
    events = desk.consumer.rebalances()
    open_requests = set[int]()

    async def listen() -> None:
        async with beside() as start:
            async for event in events:
                match event:
                    case RevokeRequested():
                        open_requests.update(numbers(event.partitions))
                        await _asked(desk, event, start, is_patient=True)
                    case Revoked(partitions) | Lost(partitions):
                        open_requests.difference_update(numbers(partitions))
                    case _:
                        pass
        if open_requests:
            what = f"{desk.session.name}: {sorted(open_requests)}"
            desk.book.break_law("asked for without an end", what)

    async with beside() as start:
        start(listen)
        await _read_on(desk)


async def _wait(desk: Desk) -> None:
    async def listen() -> None:
        async with beside() as start:
            while True:
                async with desk.consumer.wait_for_revoke() as event:
                    # Nothing keeps what is requested while nobody waits.
                    await _asked(desk, event, start, is_patient=False)

    async with beside() as start:
        start(listen)
        await _read_on(desk)


async def _read_on(desk: Desk) -> None:
    """Read as the only reader, and commit now and then, if need be."""
    if desk.auto_commit:
        await _iterate(desk)
    while True:
        poll = await desk.consumer.poll(timeout=5.0, max_records=_MOST)
        await desk.handle(poll.records)
        if desk.dice.random() < 1 / 4 or not poll.records:
            with desk.at_work():
                held = set(desk.session.held)
                await desk.commit_all(held, desk.consumer.commit)


async def _asked(
    desk: Desk, event: RevokeRequested, start: Start, *, is_patient: bool
) -> None:
    asked_at, held = event.deadline - desk.patience, desk.session.held
    partitions = numbers(event.partitions)
    desk.say(f"is asked for {partitions} until {event.deadline:.1f}")
    # What came later was lost and assigned again while the event was waiting.
    meant = [held[p] for p in partitions if p in held and held[p].since <= asked_at]
    for one in meant:
        one.deadline = event.deadline
        one.is_requested = True
    if desk.auto_commit and desk.dice.random() < 1 / 5:
        return
    stack = AsyncExitStack()
    try:
        kept = numbers(await stack.enter_async_context(event.hold()))
    except PartitionLost:
        if any(not one.is_asked_back for one in meant):
            desk.book.break_law("hold refused", f"{desk.session.name}: {partitions}")
        return
    if is_patient and desk.dice.random() < 1 / 2:
        await _drain(desk, stack, kept)
    else:
        start(_drain, desk, stack, kept)


async def _drain(desk: Desk, stack: AsyncExitStack, kept: Collection[int]) -> None:
    async with stack:
        with keeping(desk.session, kept):
            await anyio.sleep(hold_time(desk.dice))
            while desk.in_hand.intersection(kept):
                await desk.handled.wait()
            await desk.commit(kept)
        desk.say(f"keeps {kept} no longer")


def hold_time(dice: random.Random) -> float:
    """Seconds for which somebody keeps what was asked for."""
    least, most = _HOLDS
    return 3 * most if dice.random() < _TOO_LONG else _drawn(dice, least, most)


def _drawn(dice: random.Random, least: float, most: float) -> float:
    return float(least * (most / least) ** dice.random())


#: All of them, by the names that scenarios have for them.
STYLES: Final[Mapping[str, Style]] = {
    "iterate": Style(_iterate, auto_commit=True, ends_by_closing=False),
    "poll": Style(_poll, auto_commit=True, ends_by_closing=False),
    "batches": Style(_take_batches, auto_commit=False, ends_by_closing=False),
    "delay": Style(_delay, auto_commit=False, ends_by_closing=False),
    "hold": Style(_hold),
    "wait": Style(_wait),
    "lanes": Style(read_lanes),
    "run": Style(run_handlers, auto_commit=False),
}
