"""Nanoseconds of CPU per record of each way to consume.

Run it as ``python benchmarks/consume.py HOST:PORT``; ``run.py --serve`` starts a broker
for it. ``--help`` lists what can be varied. The ways take turns, round by round, and
each reads the whole topic from its beginning. The result is the least of the rounds,
because other work on the machine can only add to a round. The broker's CPU time is not
included.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import time
from collections.abc import Awaitable, Callable

import kafkaio
from kafkaio.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
)

Way = Callable[[kafkaio.Consumer, int], Awaitable[None]]


async def iterate(consumer: kafkaio.Consumer, left: int) -> None:
    async for record in consumer:
        record.key  # noqa: B018 - reading it is what is measured
        record.value  # noqa: B018 - likewise
        left -= 1
        if not left:
            return


async def batch_records(consumer: kafkaio.Consumer, left: int) -> None:
    async for batch in consumer.batches(max_records=1000):
        for record in batch:
            record.value  # noqa: B018 - likewise
        left -= len(batch)
        if left <= 0:
            return


async def batch_values(consumer: kafkaio.Consumer, left: int) -> None:
    async for batch in consumer.batches(max_records=1000):
        for value in batch.values():
            value  # noqa: B018 - likewise
        left -= len(batch)
        if left <= 0:
            return


async def tables(consumer: kafkaio.Consumer, left: int) -> None:
    async for table in consumer.arrow_batches():
        left -= table.num_rows
        if left <= 0:
            return


async def poll(consumer: kafkaio.Consumer, left: int) -> None:
    while left > 0:
        records = (await consumer.poll(max_records=1000)).records
        for record in records:
            record.value  # noqa: B018 - likewise
        left -= len(records)


class _Enough(Exception):
    """All records were read."""


async def run(consumer: kafkaio.Consumer, left: int) -> None:
    async def handle(record: kafkaio.Record) -> None:
        nonlocal left
        record.value  # noqa: B018 - likewise
        left -= 1
        if not left:
            raise _Enough

    with contextlib.suppress(_Enough):
        await consumer.run(handle)


async def task_per_record(consumer: kafkaio.Consumer, left: int) -> None:
    """The alternative to `run`: no order, no retries, no commits in order."""
    free = asyncio.Semaphore(100)

    async def handle(record: kafkaio.Record) -> None:
        record.value  # noqa: B018 - likewise
        free.release()

    async with asyncio.TaskGroup() as tasks:
        async for record in consumer:
            await free.acquire()
            tasks.create_task(handle(record))
            left -= 1
            if not left:
                return


async def lanes(consumer: kafkaio.Consumer, left: int) -> None:
    async def body(lane: kafkaio.Lane) -> None:
        nonlocal left
        async for record in lane:
            record.value  # noqa: B018 - likewise
            left -= 1
            if not left:
                raise _Enough

    try:
        async with asyncio.TaskGroup() as tasks:
            async for lane in consumer.partitions():
                tasks.create_task(body(lane))
    except* _Enough:
        pass


async def lane_batches(consumer: kafkaio.Consumer, left: int) -> None:
    async def body(lane: kafkaio.Lane) -> None:
        nonlocal left
        async for batch in lane.batches(max_records=1000):
            for record in batch:
                record.value  # noqa: B018 - likewise
            left -= len(batch)
            if left <= 0:
                raise _Enough

    try:
        async with asyncio.TaskGroup() as tasks:
            async for lane in consumer.partitions():
                tasks.create_task(body(lane))
    except* _Enough:
        pass


WAYS: dict[str, Way] = {
    "async for": iterate,
    "batches(), records": batch_records,
    "batches(), values()": batch_values,
    "poll()": poll,
    "arrow_batches()": tables,
    "run()": run,
    "a task per record": task_per_record,
    "partitions()": lanes,
    "partitions(), batches": lane_batches,
}


def make_value(number: int, size: int) -> bytes:
    """JSON-like text, which compresses about as well as such text does."""
    text = b'{"id": %d, "name": "measure %x", "price": %d.5, "text": "' % (
        number,
        number * 7919,
        number * 7 % 1000,
    )
    return text.ljust(size - 2, b"x")[: size - 2] + b'"}'


async def create(args: argparse.Namespace, topic: str) -> bool:
    """Create the topic; return False if it exists."""
    async with kafkaio.Client(args.bootstrap) as client:
        new = CreatableTopic(
            name=topic, num_partitions=args.partitions, replication_factor=1
        )
        request = CreateTopicsRequest(topics=[new], timeout_ms=10_000)
        answer = await client.request(request, to=kafkaio.Controller)
        return answer.topics[0].error_code == 0


async def fill(args: argparse.Namespace) -> str:
    """Write the topic, unless it exists. Its name says what it contains."""
    topic = (
        f"consume-{args.records}-{args.value_size}-{args.partitions}-"
        f"{args.batch_size}-{args.compression}"
    )
    if not await create(args, topic):
        return topic
    pool = [make_value(number, args.value_size) for number in range(997)]
    async with kafkaio.Producer(
        args.bootstrap,
        batch_size=args.batch_size,
        linger_ms=50,
        compression_type=args.compression,
    ) as producer:
        for number in range(args.records):
            # Partition after partition, so that batches are full with many, too.
            partition = number * args.partitions // args.records
            await producer.enqueue(topic, pool[number % 997], partition=partition)
        await producer.flush()
    return topic


async def measure(args: argparse.Namespace, topic: str) -> dict[str, float]:
    """Return the least CPU time per record of each way."""
    best: dict[str, float] = {}
    where = [kafkaio.TopicPartition(topic, n) for n in range(args.partitions)]
    for _ in range(args.rounds):
        for name, way in WAYS.items():
            if args.only and args.only not in name:
                continue
            async with kafkaio.Consumer(
                args.bootstrap, assign=where, auto_offset_reset="earliest"
            ) as consumer:
                gc.collect()
                start = time.process_time_ns()
                await way(consumer, args.records)
                spent = (time.process_time_ns() - start) / args.records
            best[name] = min(spent, best.get(name, spent))
    return best


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bootstrap", help="HOST:PORT of a broker")
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--value-size", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=131_072)
    parser.add_argument("--compression", default="none")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="measure only ways whose name contains this")
    return parser.parse_args()


async def main() -> None:
    args = arguments()
    print(f"codec: {'compiled' if kafkaio.accelerated else 'pure Python'}")
    best = await measure(args, await fill(args))
    for name, nanoseconds in best.items():
        print(f"{nanoseconds:8,.0f} ns  {name}")


if __name__ == "__main__":
    asyncio.run(main())
