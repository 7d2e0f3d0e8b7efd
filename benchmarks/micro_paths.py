"""Nanoseconds of CPU per record of the paths through the client, and of their steps.

Run it as ``python benchmarks/micro_paths.py HOST:PORT [records]``; ``run.py --serve``
starts a broker for it. It prints the best of several rounds, because other work on the
machine can only add to a round. The broker's CPU time and waiting are not included.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import sys
import time
import uuid
from collections.abc import Awaitable, Callable

import kafkaio
from kafkaio._runtime.clock import now, wall_ms

VALUE = b"v" * 100
KEY = b"k" * 16
ROUNDS = 5
WINDOW = 8192
CONCURRENCY = 64

Work = Callable[[int], Awaitable[None]]


def report(name: str, nanoseconds: float) -> None:
    print(f"{nanoseconds:10,.0f} ns  {name}", flush=True)


async def cpu(name: str, work: Work, records: int) -> None:
    """Print the least CPU time per record of ``work(records)``."""
    best = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        start = time.process_time_ns()
        await work(records)
        best = min(best, (time.process_time_ns() - start) / records)
    report(name, best)


def step(name: str, call: Callable[[], object], times: int = 50_000) -> None:
    """Print the least time of one call, without that of the loop around it."""
    best = empty = float("inf")
    repeat = range(times)
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        for _ in repeat:
            pass
        middle = time.perf_counter_ns()
        for _ in repeat:
            call()
        end = time.perf_counter_ns()
        empty = min(empty, middle - start)
        best = min(best, end - middle)
    report(name, (best - empty) / times)


class Produce:
    """The ways to write."""

    def __init__(self, producer: kafkaio.Producer, topic: str) -> None:
        self.producer = producer
        self.topic = topic

    async def nowait(self, records: int) -> None:
        deliveries = []
        for _ in range(records):
            deliveries.append(self.producer.enqueue_nowait(self.topic, VALUE))
            if len(deliveries) == WINDOW:
                await deliveries[-1]
                deliveries = []
        await self.producer.flush()

    async def with_headers(self, records: int) -> None:
        deliveries = []
        for _ in range(records):
            deliveries.append(
                self.producer.enqueue_nowait(
                    self.topic,
                    VALUE,
                    key=KEY,
                    headers=[("trace", b"1"), ("k", b"v")],
                )
            )
            if len(deliveries) == WINDOW:
                await deliveries[-1]
                deliveries = []
        await self.producer.flush()

    async def many(self, records: int) -> None:
        for done in range(0, records, WINDOW):
            values = [VALUE] * min(WINDOW, records - done)
            await self.producer.send_many(self.topic, values)

    async def table(self, records: int) -> None:
        import pyarrow as pa

        table = pa.table({"value": [VALUE] * min(records, 65_536)})
        for done in range(0, records, table.num_rows):
            await self.producer.send_table(self.topic, table.slice(0, records - done))

    async def concurrent(self, records: int) -> None:
        async def caller() -> None:
            for _ in range(records // CONCURRENCY):
                await self.producer.send(self.topic, VALUE)

        async with asyncio.TaskGroup() as group:
            for _ in range(CONCURRENCY):
                group.create_task(caller())

    async def alone(self, records: int) -> None:
        for _ in range(records):
            await self.producer.send(self.topic, VALUE)


class Consume:
    """The ways to read a partition from its beginning."""

    def __init__(self, consumer: kafkaio.Consumer) -> None:
        self.consumer = consumer

    async def one_by_one(self, records: int) -> None:
        self.consumer.seek_to_beginning()
        left = records
        async for record in self.consumer:
            record.value  # noqa: B018 - reading it is what is measured
            left -= 1
            if not left:
                return

    async def in_batches(self, records: int) -> None:
        self.consumer.seek_to_beginning()
        left = records
        async for batch in self.consumer.batches(max_records=1000):
            for record in batch.records:
                record.value  # noqa: B018 - likewise
            left -= len(batch.records)
            if left <= 0:
                return


async def main(bootstrap: str, records: int) -> None:
    print(f"codec: {'compiled' if kafkaio.accelerated else 'pure Python'}")
    topic = f"micro-paths-{uuid.uuid4().hex[:8]}"
    async with kafkaio.Producer(bootstrap, batch_size=131_072) as producer:
        await producer.send(topic, VALUE, partition=0)
        for _ in range(records):
            await producer.enqueue(topic, VALUE, partition=0)
        await producer.flush()

        produce = Produce(producer, topic)
        await cpu("produce: enqueue_nowait, flushed", produce.nowait, records)
        await cpu("the same, key and two headers", produce.with_headers, records)
        await cpu("produce: send_many", produce.many, records)
        if importlib.util.find_spec("pyarrow") is not None:
            await cpu("produce: send_table", produce.table, records)
        await cpu(f"produce: {CONCURRENCY} x send", produce.concurrent, records // 5)
        await cpu("produce: one send at a time", produce.alone, records // 50)
        delivery = producer.enqueue_nowait(topic, VALUE)
        await delivery
        step("  Delivery.result()", delivery.result)
        step("  Delivery.exception()", delivery.exception)

    where = [kafkaio.TopicPartition(topic, 0)]
    async with kafkaio.Consumer(bootstrap, assign=where) as consumer:
        consume = Consume(consumer)
        await cpu("consume: async for", consume.one_by_one, records)
        await cpu("consume: batches()", consume.in_batches, records)

    step("  the loop's clock", now)
    step("  the wall clock in ms", wall_ms)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int((sys.argv[2:] or ["100000"])[0])))
