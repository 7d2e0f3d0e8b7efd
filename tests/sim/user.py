"""The user of one consumer: reads, works, commits, and reports it to the checker."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

import anyio

from kafkaio._consumer import Consumer
from kafkaio._runtime.broadcast import Broadcast
from kafkaio.errors import (
    ClosedError,
    KafkaError,
    KafkaTimeout,
    MembershipError,
    NetworkError,
)
from kafkaio.types import Record, TopicPartition
from tests.sim.checker import Checker, Session

__all__ = ["EXPECTED", "GROUP", "TOPIC", "Start", "User", "background", "numbers"]

TOPIC: Final = "orders"
GROUP: Final = "billing"
#: The body of a task.
Part: TypeAlias = Callable[..., Awaitable[None]]
#: Starts a task, as a task group does.
Start: TypeAlias = Callable[..., None]
#: Errors that faults may cause; any other is a bug of the client.
EXPECTED: Final = (KafkaTimeout, MembershipError, NetworkError)


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """What the code of a user works with, for the life of one consumer.

    Attributes:
        consumer: the consumer.
        session: the consumer, to the checker.
        checker: told of everything that happens.
        rng: draws what the user decides.
        auto_commit: whether the consumer commits automatically.
        patience: seconds from a requested revocation to the loss of the partition.
        work: does a piece of work, which may take long.
        seek_back: seeks back in the partitions that the scenario names.
        say: writes a line to the trace.
        in_hand: the partitions whose records the only reader works on.
        handled: notified when ``in_hand`` changes.
    """

    consumer: Consumer
    session: Session
    checker: Checker
    rng: random.Random
    auto_commit: bool
    patience: float
    work: Callable[[], Awaitable[None]]
    seek_back: Callable[[], None]
    say: Callable[[str], None]
    in_hand: set[int] = field(default_factory=set)
    handled: Broadcast = field(default_factory=Broadcast)

    def has(self, partition: int) -> bool:
        """Whether a partition is assigned, and not revoked yet."""
        held = self.session.held.get(partition)
        return held is not None and not held.is_revoked

    def enter(self, record: Record) -> None:
        """Report a record that the consumer returned."""
        self.checker.handed_out(
            self.session, record.partition, record.offset, record.value
        )

    async def handle(self, records: Collection[Record]) -> None:
        """Work on records as the only reader, one after the other."""
        for record in records:
            self.enter(record)
        self.in_hand.update(record.partition for record in records)
        if records:
            with self.at_work():
                await self.work()
        self.checker.finished(self.session, self.in_hand)
        self.in_hand.clear()
        self.handled.notify_all()

    @contextmanager
    def at_work(self) -> Generator[None]:
        """The only reader does something other than reading."""
        self.session.is_at_work = True
        try:
            yield
        finally:
            self.session.is_at_work = False

    async def commit(self, partitions: Collection[int]) -> bool:
        """Commit everything returned of partitions; return whether that worked.

        Every record must be finished.
        """
        kept = [TopicPartition(TOPIC, p) for p in sorted(partitions) if self.has(p)]
        commit = partial(self.consumer.commit, kept)
        return await self.commit_all(partitions, commit)

    async def commit_all(
        self, partitions: Collection[int], commit: Callable[[], Awaitable[None]]
    ) -> bool:
        """Commit all finished records of partitions, and report the result."""
        is_committed = False
        try:
            is_committed = await self.try_to(commit)
        finally:
            if is_committed:
                self.checker.commit_succeeded(self.session, partitions)
            else:
                self.checker.commit_failed_for(self.session, partitions)
        return is_committed

    async def try_to(self, commit: Callable[[], Awaitable[None]]) -> bool:
        """Commit; return whether that worked, which a fault may prevent."""
        try:
            await commit()
        except (*EXPECTED, ClosedError) as error:
            self.say(f"could not commit: {error!r}"[:200])
            return False
        return True


@asynccontextmanager
async def background() -> AsyncGenerator[Start]:
    """Start tasks beside the body; the block ends when all of them have ended.

    A ClosedError, in a task or in the body, is a normal end.

    Raises:
        KafkaError: the first that a task or the body raised; it cancels the others.
    """
    failures: list[KafkaError] = []

    async def guarded(part: Part, *arguments: object) -> None:
        try:
            await part(*arguments)
        except ClosedError:
            pass
        except KafkaError as error:
            failures.append(error)
            tasks.cancel_scope.cancel()

    def start(part: Part, *arguments: object) -> None:
        tasks.start_soon(guarded, part, *arguments)

    async with anyio.create_task_group() as tasks:
        try:
            yield start
        except ClosedError:
            pass
        except KafkaError as error:
            failures.append(error)
            tasks.cancel_scope.cancel()
    if failures:
        raise failures[0]


def numbers(partitions: Collection[TopicPartition]) -> list[int]:
    """The numbers of those partitions that belong to ``TOPIC``."""
    return sorted(tp.partition for tp in partitions if tp.topic == TOPIC)
