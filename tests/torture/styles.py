"""The ways in which a member of the group works on its records."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final, Protocol

from kafkaio import (
    ClosedError,
    CommitFailed,
    Consumer,
    Lane,
    Lost,
    PartitionLost,
    Record,
    Revoked,
    RevokeRequested,
    TopicPartition,
)

_POLL_SECONDS: Final = 0.3
#: The most records in work: more could not be done before a revocation is due.
_IN_WORK: Final = 150
#: Errors of a commit when the partitions have other owners by now.
_TOO_LATE: Final = (PartitionLost, CommitFailed, ClosedError)


class Worker(Protocol):
    """Processes records."""

    stopping: asyncio.Event

    async def work(self, record: Record) -> None:
        """Process one record."""
        ...


class Desk:
    """Records in work, those of each partition in their order, in a task of its own.

    Args:
        tasks: where the tasks run.
        worker: who works.
        consumer: where it commits.
    """

    def __init__(
        self, tasks: asyncio.TaskGroup, worker: Worker, consumer: Consumer
    ) -> None:
        self._tasks = tasks
        self._worker = worker
        self._consumer = consumer
        self._queues: dict[TopicPartition, deque[Record]] = {}
        self._drains: dict[TopicPartition, asyncio.Task[None]] = {}
        self._done: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}

    @property
    def room(self) -> int:
        """The number of further records that can be taken."""
        return _IN_WORK - sum(map(len, self._queues.values()))

    def start(self, records: Iterable[Record]) -> None:
        for record in records:
            tp = record.topic_partition
            self._queues.setdefault(tp, deque()).append(record)
            if tp not in self._drains or self._drains[tp].done():
                self._drains[tp] = self._tasks.create_task(self._drain(tp))

    async def _drain(self, tp: TopicPartition) -> None:
        queue = self._queues[tp]
        while queue:
            await self._worker.work(queue[0])
            self._done[tp] = queue.popleft().offset + 1

    async def commit(self) -> None:
        """Commit what is done, except for partitions that were lost meanwhile."""
        news = {
            tp: done
            for tp, done in self._done.items()
            if self._committed.get(tp) != done
        }
        with contextlib.suppress(*_TOO_LATE):
            await self._consumer.commit(news)
            self._committed |= news

    def busy(self, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
        """The partitions with records that are not done or not committed."""
        return {
            tp
            for tp in partitions
            if self._queues.get(tp) or self._done.get(tp) != self._committed.get(tp)
        }

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop the work on these partitions."""
        for tp in partitions:
            if drain := self._drains.pop(tp, None):
                drain.cancel()
            self._queues.pop(tp, None)
            self._done.pop(tp, None)
            self._committed.pop(tp, None)

    def keep(self, partitions: Collection[TopicPartition]) -> None:
        """Stop the work on all other partitions."""
        self.forget([tp for tp in self._queues if tp not in partitions])

    async def finish(self, partitions: Iterable[TopicPartition]) -> None:
        """Wait until these are done, and commit."""
        if drains := [self._drains[tp] for tp in partitions if tp in self._drains]:
            await asyncio.wait(drains)
        await self.commit()

    async def hand_over(self, partitions: Collection[TopicPartition]) -> None:
        """Wait until every record of these partitions is done, and commit."""
        if drains := [self._drains[tp] for tp in partitions if tp in self._drains]:
            await asyncio.wait(drains)
        done = {tp: self._done[tp] for tp in partitions if tp in self._done}
        with contextlib.suppress(*_TOO_LATE):
            await self._consumer.commit(partitions)
            self._committed |= done

    async def finish_all(self) -> None:
        await self.finish([*self._drains])


async def delay(worker: Worker, consumer: Consumer) -> None:
    """The loop of KIP-983: delays the revocation of partitions with records in work."""
    async with asyncio.TaskGroup() as tasks:
        desk = Desk(tasks, worker, consumer)
        while not worker.stopping.is_set():
            poll = await consumer.poll(
                timeout=_POLL_SECONDS, max_records=max(1, desk.room)
            )
            desk.forget(poll.lost)
            desk.keep(consumer.assignment)
            desk.start(poll.records)
            await desk.commit()
            if busy := desk.busy(poll.to_be_revoked):
                consumer.delay_revoke(busy)
        await desk.finish_all()


async def hold(worker: Worker, consumer: Consumer) -> None:
    """Batches in one task; in another, rebalances, and holds while work goes on."""

    async def listen() -> None:
        async for event in consumer.rebalances():
            match event:
                case RevokeRequested(partitions):
                    with contextlib.suppress(PartitionLost):
                        async with event.hold():
                            await desk.hand_over(partitions)
                case Lost(partitions) | Revoked(partitions):
                    desk.forget(partitions)
                case _:
                    pass

    async def read() -> None:
        async for batch in consumer.batches(max_records=50):
            desk.start(batch)
            while desk.room < 0:  # noqa: ASYNC110  (any of the tasks makes room)
                await asyncio.sleep(0.02)

    async with asyncio.TaskGroup() as tasks:
        desk = Desk(tasks, worker, consumer)
        listener = tasks.create_task(listen())
        reader = tasks.create_task(read())
        while not worker.stopping.is_set():
            await asyncio.sleep(_POLL_SECONDS)
            await desk.commit()
        reader.cancel()
        await asyncio.wait([reader])
        await desk.finish_all()
        listener.cancel()


async def handler(worker: Worker, consumer: Consumer) -> None:
    """A handler for each record, several at a time, in order by key."""

    async def stop() -> None:
        await worker.stopping.wait()
        await consumer.close()

    async with asyncio.TaskGroup() as tasks:
        stopper = tasks.create_task(stop())
        await consumer.run(worker.work, concurrency=8, ordering="key")
        await stopper


async def lanes(worker: Worker, consumer: Consumer) -> None:
    """A task for each partition, which ends when its revocation is requested."""

    async def walk(lane: Lane) -> None:
        async with lane:
            async for batch in lane.batches(max_records=50):
                for record in batch:
                    if lane.is_lost:
                        return
                    await worker.work(record)
                with contextlib.suppress(*_TOO_LATE):
                    await lane.commit(batch)

    async def stop() -> None:
        await worker.stopping.wait()
        await consumer.close()

    async with asyncio.TaskGroup() as tasks:
        stopper = tasks.create_task(stop())
        async for lane in consumer.partitions():
            tasks.create_task(walk(lane))
        await stopper


async def iterate(worker: Worker, consumer: Consumer) -> None:
    """One record after the other, with automatic commits of finished ones."""
    record: Record | None = None
    while not worker.stopping.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_POLL_SECONDS):
                record = await anext(consumer)
            await worker.work(record)
    if record is not None:
        with contextlib.suppress(*_TOO_LATE):
            await consumer.commit(record)


Style = Callable[[Worker, Consumer], Awaitable[None]]
STYLES: Final[dict[str, Style]] = {
    "delay": delay,
    "hold": hold,
    "handler": handler,
    "lanes": lanes,
    "iterate": iterate,
}
#: The ways that use auto-commit.
AUTOMATIC: Final = {"iterate"}
