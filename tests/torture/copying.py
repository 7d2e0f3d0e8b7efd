"""The ways in which a member of the group copies records in transactions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
)
from typing import Final, Protocol, TypeAlias

from kafkaio import (
    ClosedError,
    CommitFailed,
    Consumer,
    KafkaError,
    PartitionLost,
    Producer,
    Record,
    RevokeRequested,
    exactly_once,
)
from kafkaio._producer.transaction import Transaction
from kafkaio.errors import Fenced

_POLL_SECONDS: Final = 0.3
_MAX_RECORDS: Final = 200
_MAX_WAIT: Final = 0.2
_HOLD_SECONDS: Final = 1.5


class Hiccup(Exception):
    """A handler failed; the next attempt may not."""


class Worker(Protocol):
    """Copies records."""

    stopping: asyncio.Event

    def copy(self, tx: Transaction, record: Record) -> Awaitable[object]:
        """Enqueue the copy of one record."""
        ...

    async def work(self, share: float = 1.0) -> None:
        """Take a moment; now and then raise `Hiccup`.

        Args:
            share: the part of a transaction that this work is.
        """
        ...

    def tell(self, word: str, *details: object) -> None: ...


@contextlib.contextmanager
def another_try(worker: Worker) -> Iterator[None]:
    """Go on after errors after which a transaction is tried again."""
    try:
        yield
    except (Hiccup, PartitionLost, CommitFailed) as error:
        worker.tell("again", type(error).__name__)
    except ClosedError:
        if not worker.stopping.is_set():
            raise
    except KafkaError as error:
        if not error.retriable or isinstance(error, Fenced):
            raise
        worker.tell("again", type(error).__name__, error)


@contextlib.asynccontextmanager
async def _beside(work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run something beside the block, until the block ends.

    Not in a task group, which would wrap what the block raises.
    """
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        task.result()


async def _close_when_stopping(worker: Worker, consumer: Consumer) -> None:
    await worker.stopping.wait()
    await consumer.close()


async def loop(worker: Worker, consumer: Consumer, producer: Producer) -> None:
    """`kafkaio.exactly_once`."""

    async def copy_all(tx: Transaction, records: Iterable[Record]) -> None:
        for record in records:
            await worker.copy(tx, record)
        await worker.work()

    async with _beside(_close_when_stopping(worker, consumer)):
        while not worker.stopping.is_set():
            with another_try(worker):
                await exactly_once(
                    consumer,
                    producer,
                    copy_all,
                    max_records=_MAX_RECORDS,
                    max_wait=_MAX_WAIT,
                )


async def holding(worker: Worker, consumer: Consumer, producer: Producer) -> None:
    """`exactly_once`, while another task holds partitions whose revocation began."""

    async def listen() -> None:
        with contextlib.suppress(ClosedError):
            async for event in consumer.rebalances():
                if isinstance(event, RevokeRequested):
                    with contextlib.suppress(PartitionLost):
                        async with event.hold():
                            await asyncio.sleep(_HOLD_SECONDS)

    async with _beside(listen()):
        await loop(worker, consumer, producer)


async def handler(worker: Worker, consumer: Consumer, producer: Producer) -> None:
    """`consumer.run` with a producer: a handler for each record."""

    async def copy_one(tx: Transaction, record: Record) -> None:
        await worker.copy(tx, record)
        # One that fails aborts the whole transaction: else none would ever end.
        await worker.work(1 / _MAX_RECORDS)

    async with _beside(_close_when_stopping(worker, consumer)):
        while not worker.stopping.is_set():
            with another_try(worker):
                await consumer.run(
                    copy_one,
                    producer=producer,
                    concurrency=8,
                    ordering="key",
                    max_records=_MAX_RECORDS,
                    max_wait=_MAX_WAIT,
                )


async def by_hand(worker: Worker, consumer: Consumer, producer: Producer) -> None:
    """A transaction for each poll."""
    while not worker.stopping.is_set():
        with another_try(worker):
            async with producer.transaction(consumer) as tx:
                poll = await consumer.poll(
                    timeout=_POLL_SECONDS, max_records=_MAX_RECORDS
                )
                for record in poll.records:
                    await worker.copy(tx, record)
                if poll.records:
                    await worker.work()


async def plain_commits(worker: Worker, consumer: Consumer, producer: Producer) -> None:
    """The mistake: offsets are committed beside the transaction."""
    while not worker.stopping.is_set():
        with another_try(worker):
            async with producer.transaction() as tx:
                poll = await consumer.poll(
                    timeout=_POLL_SECONDS, max_records=_MAX_RECORDS
                )
                for record in poll.records:
                    await worker.copy(tx, record)
                if poll.records:
                    await consumer.commit()
                    await worker.work()


Way: TypeAlias = Callable[[Worker, Consumer, Producer], Awaitable[None]]
WAYS: Final[dict[str, Way]] = {
    "loop": loop,
    "holding": holding,
    "handler": handler,
    "by-hand": by_hand,
}
MISTAKES: Final[dict[str, Way]] = {"plain-commits": plain_commits}
