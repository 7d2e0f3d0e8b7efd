"""The ways in which users read, and hold partitions that are to be revoked."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio

from kafkaio._consumer.rebalance.events import Lost, Revoked, RevokeRequested
from kafkaio.errors import PartitionLost
from kafkaio.types import TopicPartition
from tests.sim.checker import Held
from tests.sim.parallel import read_lanes, run_handlers
from tests.sim.revocations import Keep, keeping
from tests.sim.user import TOPIC, Start, User, background, numbers

__all__ = ["STYLES", "Style"]

_MOST: Final = 20
#: Seconds of a hold, log-uniform; and the share of holds that exceed the deadline.
_HOLDS: Final = (0.05, 30.0)
_TOO_LONG: Final = 0.08
#: Seconds after which a user must know that a partition was revoked or lost.
_HEARS: Final = 2.0
#: Seconds of the work on one record.
_WORK: Final = (0.01, 4.0)


@dataclass(frozen=True, slots=True)
class Style:
    """A way to read.

    Attributes:
        read: reads until cancelled, or until the consumer closes.
        auto_commit: whether the consumer commits automatically; None draws it.
        ends_by_closing: whether its user closes the consumer while tasks still read,
            which then have to end by themselves.
    """

    read: Callable[[User], Awaitable[None]]
    auto_commit: bool | None = None
    ends_by_closing: bool = True


async def _iterate(user: User) -> None:
    async for record in user.consumer:
        await user.handle([record])
        user.seek_back()


async def _poll(user: User) -> None:
    while True:
        poll = await user.consumer.poll(timeout=20.0, max_records=_MOST)
        await user.handle(poll.records)
        user.seek_back()


async def _take_batches(user: User) -> None:
    async for batch in user.consumer.batches(max_records=_MOST, max_wait=0.3):
        await user.handle(batch.records)
        with user.at_work():
            commit = partial(user.consumer.commit, batch)
            await user.commit_all([batch.partition], commit)
        user.seek_back()


# ---- the loop of KIP-983 -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Job:
    held: Held
    offset: int
    due: float


class _Delaying:
    """Processes records between polls, commits finished ones, delays the others."""

    def __init__(self, user: User) -> None:
        self._user = user
        self._jobs: dict[int, deque[_Job]] = {}
        # By partition, the last finished record that is not committed.
        self._done: dict[int, _Job] = {}
        # By partition, the time until which the user delays its revocation.
        self._until: dict[int, float] = {}
        self._keep = Keep(user.session)
        # The time at which a delay was refused, and the assignments concerned.
        self._refused = (0.0, list[Held]())

    async def read(self) -> None:
        user = self._user
        try:
            while True:
                poll = await user.consumer.poll(timeout=1.0, max_records=_MOST)
                asked = numbers(poll.to_be_revoked)
                self._keep.only(asked)
                self._abandon(numbers(poll.lost))
                for record in poll.records:
                    user.enter(record)
                    self._start(record.partition, record.offset)
                self._check_refusal()
                self._hear(asked)
                with user.at_work():
                    await user.work()
                    await self._commit()
                self._keep.only(self._delay(asked))
        finally:
            self._keep.only()
            user.checker.commit_failed_for(user.session, self._done)

    def _start(self, partition: int, offset: int) -> None:
        jobs = self._jobs.setdefault(partition, deque())
        due = anyio.current_time() + _drawn(self._user.rng, *_WORK) / 4
        if jobs:
            due = max(due, jobs[-1].due)
        jobs.append(_Job(self._user.session.held[partition], offset, due))

    def _hear(self, asked: Collection[int]) -> None:
        now, held = anyio.current_time(), self._user.session.held
        for partition in asked:
            if partition not in self._until and partition in held:
                self._until[partition] = now + hold_time(self._user.rng)
                held[partition].deadline = now + self._user.patience
                held[partition].is_revoke_requested = True

    def _abandon(self, lost: Collection[int]) -> None:
        for partition in lost:
            for what in (self._jobs, self._done, self._until):
                what.pop(partition, None)

    async def _commit(self) -> None:
        now, held = anyio.current_time(), self._user.session.held
        for partition, jobs in self._jobs.items():
            while jobs and jobs[0].due <= now:
                job = jobs.popleft()
                if held.get(partition) is job.held and not job.held.is_revoked:
                    job.held.finished = job.offset + 1
                    self._done[partition] = job
        offsets = {
            TopicPartition(TOPIC, partition): job.offset + 1
            for partition, job in self._done.items()
            if held.get(partition) is job.held and not job.held.is_revoked
        }
        commit = partial(self._user.consumer.commit, offsets)
        if offsets and await self._user.try_to(commit):
            self._done.clear()
        self._abandon(numbers(self._user.consumer.lost))

    def _delay(self, asked: Collection[int]) -> list[int]:
        user, now = self._user, anyio.current_time()
        for partition in list(self._until):
            if partition not in asked:
                del self._until[partition]
        busy = [
            p
            for p in asked
            if self._jobs.get(p) or p in self._done or now < self._until.get(p, now)
        ]
        is_kept = user.consumer.delay_revoke([TopicPartition(TOPIC, p) for p in busy])
        lost = numbers(user.consumer.lost)
        if not is_kept:
            self._refused = now, [user.session.held[p] for p in busy if user.has(p)]
        return [partition for partition in busy if partition not in lost]

    def _check_refusal(self) -> None:
        """Check that a delay was refused only for partitions that were then lost."""
        at, refused = self._refused
        if not refused or anyio.current_time() < at + _HEARS:
            return
        mine = list(self._user.session.held.values())
        if all(held in mine and not held.is_revoked for held in refused):
            name = self._user.session.name
            self._user.checker.break_law("delay refused", f"{name}, at {at:.3f}")
        self._refused = at, []


async def _delay(user: User) -> None:
    await _Delaying(user).read()


# ---- events, and holds ---------------------------------------------------------------


async def _hold(user: User) -> None:
    events = user.consumer.rebalances()
    open_requests = set[int]()

    async def listen() -> None:
        async with background() as start:
            async for event in events:
                match event:
                    case RevokeRequested():
                        open_requests.update(numbers(event.partitions))
                        await _asked(user, event, start, is_patient=True)
                    case Revoked(partitions) | Lost(partitions):
                        open_requests.difference_update(numbers(partitions))
                    case _:
                        pass
        if open_requests:
            what = f"{user.session.name}: {sorted(open_requests)}"
            user.checker.break_law("request without an end", what)

    async with background() as start:
        start(listen)
        await _read_on(user)


async def _wait(user: User) -> None:
    async def listen() -> None:
        async with background() as start:
            while True:
                async with user.consumer.wait_for_revoke() as event:
                    # While no task waits, nothing delays a revocation.
                    await _asked(user, event, start, is_patient=False)

    async with background() as start:
        start(listen)
        await _read_on(user)


async def _read_on(user: User) -> None:
    """Read as the only reader; commit from time to time without auto-commit."""
    if user.auto_commit:
        await _iterate(user)
    while True:
        poll = await user.consumer.poll(timeout=5.0, max_records=_MOST)
        await user.handle(poll.records)
        if user.rng.random() < 1 / 4 or not poll.records:
            with user.at_work():
                held = set(user.session.held)
                await user.commit_all(held, user.consumer.commit)


async def _asked(
    user: User, event: RevokeRequested, start: Start, *, is_patient: bool
) -> None:
    asked_at, held = event.deadline - user.patience, user.session.held
    partitions = numbers(event.partitions)
    user.say(f"is asked for {partitions} until {event.deadline:.1f}")
    # A later assignment: it was lost and assigned again while the event waited.
    meant = [held[p] for p in partitions if p in held and held[p].since <= asked_at]
    for one in meant:
        one.deadline = event.deadline
        one.is_revoke_requested = True
    if user.auto_commit and user.rng.random() < 1 / 5:
        return
    stack = AsyncExitStack()
    try:
        kept = numbers(await stack.enter_async_context(event.hold()))
    except PartitionLost:
        if any(not one.is_revoked for one in meant):
            user.checker.break_law("hold refused", f"{user.session.name}: {partitions}")
        return
    if is_patient and user.rng.random() < 1 / 2:
        await _drain(user, stack, kept)
    else:
        start(_drain, user, stack, kept)


async def _drain(user: User, stack: AsyncExitStack, kept: Collection[int]) -> None:
    async with stack:
        with keeping(user.session, kept):
            await anyio.sleep(hold_time(user.rng))
            while user.in_hand.intersection(kept):
                await user.handled.wait()
            await user.commit(kept)
        user.say(f"keeps {kept} no longer")


def hold_time(rng: random.Random) -> float:
    """Return the seconds for which a user holds partitions."""
    least, most = _HOLDS
    return 3 * most if rng.random() < _TOO_LONG else _drawn(rng, least, most)


def _drawn(rng: random.Random, least: float, most: float) -> float:
    return float(least * (most / least) ** rng.random())


#: Every way to read, by its name in scenarios.
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
