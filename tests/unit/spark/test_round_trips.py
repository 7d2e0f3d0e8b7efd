"""How many round trips a task waits for that writes exactly once.

Over a line of 20 ms they are nearly all that a small task costs. The tests count them
on virtual time, on which nothing but the line takes any (`tests.support.far`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TypeVar

import pyarrow as pa
import pytest

from kafkaio._client import Client
from kafkaio._config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio._consumer import Consumer
from kafkaio._producer.transaction import Transaction
from kafkaio.admin import Admin
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.spark._exactly_once import AttemptFailed, TaskAttempt, TaskName, TaskResult
from kafkaio.spark._kept import KeptProducers
from kafkaio.spark._marker_stores import store_of
from kafkaio.testing import Broker
from kafkaio.testing._broker.faults import error
from kafkaio.types import TopicPartition
from tests.support.far import Far
from tests.virtual_loop import VirtualClockLoop

T = TypeVar("T")
ROWS = 100


class Worker:
    """A process that Spark runs tasks in."""

    def __init__(self, world: World, client: Client) -> None:
        self._world = world
        self.client = client
        self.producers = KeptProducers()

    async def task(self, version: int, task: int, **store: str | None) -> TaskResult:
        """Write the rows of a task, as the writer does, and pause as Spark does."""
        await asyncio.sleep(0.2)
        self._world.begin()
        servers = self._world.broker.bootstrap_servers
        where = {"topic": "markers", "groups_at": None} | store
        attempt = TaskAttempt(
            self.client,
            TaskName(app="app", version=version, task=task),
            marker_topic="out",
            config=ProducerConfig.of(servers, {}),
            run=f"run of {version}",
            markers=await store_of(self.client, **where),
            producers=self.producers,
        )
        result = await attempt.run(rows(), put)
        self._world.wanted += ROWS
        return result


class World:
    """A cluster that is 20 ms away."""

    def __init__(self, broker: Broker, stack: AsyncExitStack) -> None:
        self.broker = broker
        self.far = Far(broker.dial)
        self.wanted = 0
        self._stack = stack
        self._began = 0.0

    async def worker(self) -> Worker:
        """Make a worker whose connections are open: it has written something."""
        config = ClientConfig.of(self.broker.bootstrap_servers, {})
        client = Client.from_config(config, dial=self.far)
        made = Worker(self, await self._stack.enter_async_context(client))
        self._stack.push_async_callback(made.producers.close)
        return made

    def begin(self) -> None:
        """Begin to count: each task does."""
        self.far.asked.clear()
        self._began = asyncio.get_running_loop().time()

    @property
    def trips(self) -> float:
        """Round trips of the last task, one after the other."""
        return round(self.far.trips_since(self._began), 1)

    @property
    def asked(self) -> list[str]:
        return [one.api.name for one in self.far.asked]

    async def check(self) -> None:
        """Check that readers see each row once."""
        options = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        config = ConsumerConfig.of(self.broker.bootstrap_servers, options)
        tps = [TopicPartition("out", number) for number in range(4)]
        found = 0
        while self.broker.control.open_transactions():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        async with Consumer.from_config(
            config, assign=tps, dial=self.broker.dial
        ) as consumer:
            ends = await consumer.end_offsets(tps)
            while any([await consumer.position(tp) < ends[tp] for tp in tps]):
                found += len((await consumer.poll(timeout=0.1)).records)
        assert found == self.wanted


async def rows() -> AsyncIterator[pa.RecordBatch]:
    yield pa.record_batch({"value": [f"row {number}" for number in range(ROWS)]})


async def put(tx: Transaction, batch: pa.RecordBatch) -> None:
    for number, value in enumerate(batch.column("value").to_pylist()):
        _ = await tx.enqueue("out", value.encode(), partition=number % 4)


def in_world(body: Callable[[World], Awaitable[T]], *, level: int = 2) -> T:
    async def main() -> T:
        broker = Broker(
            memory_transport=True,
            topics={"out": 4},
            features={"transaction.version": level},
        )
        async with asyncio.timeout(3600), broker, AsyncExitStack() as stack:
            world = World(broker, stack)
            result = await body(world)
            await world.check()
            return result

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(main())


STORES = pytest.mark.parametrize(
    "store", [{}, {"groups_at": "out"}], ids=["topic", "topic, groups before"]
)


@STORES
def test_the_tasks_of_a_batch(store: dict[str, str]) -> None:
    """Each has an id that its worker has not used yet: five round trips."""

    async def body(world: World) -> None:
        worker = await world.worker()
        await worker.task(0, 0, **store)
        for task in range(1, 20):
            await worker.task(0, task, **store)
            assert world.trips <= 5, world.asked
            assert "INIT_PRODUCER_ID" in world.asked

    in_world(body)


@STORES
def test_a_task_of_micro_batches(store: dict[str, str]) -> None:
    """Its worker has written the batch before: four round trips."""

    async def body(world: World) -> None:
        worker = await world.worker()
        await worker.task(0, 3, **store)
        for version in range(1, 10):
            await worker.task(version, 3, **store)
            assert world.trips <= 4, world.asked
            assert "INIT_PRODUCER_ID" not in world.asked

    in_world(body)


def test_before_kafka_4_partitions_are_added_to_transactions() -> None:
    """That is a round trip before the first marker, and one before the rows."""

    async def body(world: World) -> None:
        worker = await world.worker()
        for version in range(3):
            await worker.task(version, 0)
        assert world.trips <= 6, world.asked
        await worker.task(3, 1)
        assert world.trips <= 7, world.asked

    in_world(body, level=1)


def test_tasks_that_change_their_workers() -> None:
    """No worker asks in vain whether it still has the id."""

    async def body(world: World) -> None:
        one, two = await world.worker(), await world.worker()
        for version in range(9):
            for task in range(2):
                worker = (one, two)[(version // 2 + task) % 2]
                await worker.task(version, task)
                if version:
                    # Each other micro-batch the worker is the same.
                    assert world.trips <= 5 - version % 2, world.asked

    in_world(body)


@pytest.mark.parametrize("store", [{}, {"topic": None, "groups_at": "out"}])
def test_a_producer_that_was_replaced_fails_no_attempt(
    store: dict[str, str | None],
) -> None:
    async def body(world: World) -> None:
        worker = await world.worker()
        await worker.task(0, 0, **store)
        config = ClientConfig.of(world.broker.bootstrap_servers, {})
        async with Admin.from_config(config, dial=world.broker.dial) as admin:
            await admin.fence_producers(["kafkaio-app-0"])
        await worker.task(1, 0, **store)
        await worker.task(2, 0, **store)
        assert "INIT_PRODUCER_ID" not in world.asked

    in_world(body)


def test_an_attempt_that_fails_keeps_no_producer() -> None:
    async def body(world: World) -> None:
        worker = await world.worker()
        await worker.task(0, 0)
        assert worker.producers.count == 1
        refused = error(ErrorCode.TRANSACTION_ABORTABLE, times=1)
        world.broker.faults.on("EndTxn", refused)
        with pytest.raises(AttemptFailed):
            await worker.task(1, 0)
        assert worker.producers.count == 0
        await worker.task(1, 0)
        assert "INIT_PRODUCER_ID" in world.asked

    in_world(body)
