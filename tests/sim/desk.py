"""What a user of a consumer has at hand while working: the consumer and the book."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

import anyio

from kafkaio.client.broadcast import Broadcast
from kafkaio.consumer import Consumer
from kafkaio.errors import (
    ClosedError,
    KafkaError,
    KafkaTimeout,
    MembershipError,
    NetworkError,
)
from kafkaio.types import Record, TopicPartition
from tests.sim.book import Book, Session

__all__ = ["EXPECTED", "GROUP", "TOPIC", "Desk", "Start", "beside", "numbers"]

TOPIC: Final = "orders"
GROUP: Final = "billing"
#: Something that a task does.
Part: TypeAlias = Callable[..., Awaitable[None]]
#: Starts a task, as a task group does.
Start: TypeAlias = Callable[..., None]
#: What the outside may do to a call; anything else is a mistake of the client's.
EXPECTED: Final = (KafkaTimeout, MembershipError, NetworkError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A user's place of work, for one life of a consumer.

    Attributes:
        consumer: the consumer.
        session: what the book knows it by.
        book: where everything is entered.
        dice: for what the user decides.
        auto_commit: whether the consumer commits by itself.
        patience: seconds after which a partition that is asked back is lost.
        work: does a piece of work, which may take long.
        seek_back: goes back where somebody wants that.
        say: notes what happens.
        in_hand: the partitions whose records are worked on by the only reader.
        handled: told when that changes.
    """

    consumer: Consumer
    session: Session
    book: Book
    dice: random.Random
    auto_commit: bool
    patience: float
    work: Callable[[], Awaitable[None]]
    seek_back: Callable[[], None]
    say: Callable[[str], None]
    in_hand: set[int] = field(default_factory=set)
    handled: Broadcast = field(default_factory=Broadcast)

    def has(self, partition: int) -> bool:
        """Whether a partition is assigned, and not given up yet."""
        held = self.session.held.get(partition)
        return held is not None and not held.is_asked_back

    def enter(self, record: Record) -> None:
        """Enter that a record came."""
        self.book.handed_out(
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
        self.book.finished(self.session, self.in_hand)
        self.in_hand.clear()
        self.handled.tell()

    @contextmanager
    def at_work(self) -> Generator[None]:
        """The only reader does something else than reading."""
        self.session.is_at_work = True
        try:
            yield
        finally:
            self.session.is_at_work = False

    async def commit(self, partitions: Collection[int]) -> bool:
        """Commit all that came of partitions; returns whether that worked.

        All of it has to be finished.
        """
        kept = [TopicPartition(TOPIC, p) for p in sorted(partitions) if self.has(p)]
        commit = partial(self.consumer.commit, kept)
        return await self.commit_all(partitions, commit)

    async def commit_all(
        self, partitions: Collection[int], commit: Callable[[], Awaitable[None]]
    ) -> bool:
        """Commit all that is finished of partitions, and enter what came of it."""
        is_committed = False
        try:
            is_committed = await self.try_to(commit)
        finally:
            enter = self.book.caught_up if is_committed else self.book.disordered
            enter(self.session, partitions)
        return is_committed

    async def try_to(self, commit: Callable[[], Awaitable[None]]) -> bool:
        """Commit; returns whether that worked, which the outside may prevent."""
        try:
            await commit()
        except (*EXPECTED, ClosedError) as error:
            self.say(f"could not commit: {error!r}"[:200])
            return False
        return True


@asynccontextmanager
async def beside() -> AsyncGenerator[Start]:
    """Start tasks beside the body; ends when all of them have ended.

    That the consumer was closed is an end like any other, of the body as well.

    Raises:
        KafkaError: the first that one of them raised; it ends the others.
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
    """The numbers of those that are of the topic that all is about."""
    return sorted(tp.partition for tp in partitions if tp.topic == TOPIC)
