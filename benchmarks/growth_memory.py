"""Whether memory grows with the number of records or requests.

Run it as ``python benchmarks/growth_memory.py HOST:PORT``; ``run.py --serve`` starts a
broker for it. The work is done in ten parts. The memory of Python objects (tracemalloc)
after the last part is compared with that after the second. It does not include the pool
of memory for frames, which has a limit of its own. The resident memory is printed, too:
it includes memory of C code, but also memory that the allocator has not returned to the
system. The exit status is 1 if a limit is exceeded.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path

import consume
from growth_produce import Bounds, create, no_key, produce

import kafkaio

MIB = 2**20
PAGE = os.sysconf("SC_PAGE_SIZE")
PARTS = 10
#: Records of the topic, which is read repeatedly.
TOPIC_RECORDS = 500_000

#: Producers that send at the same time, each of them one record after the other.
SENDERS = 8

Part = Callable[[], Awaitable[None]]


def resident() -> int:
    """Return the resident memory of the process, in bytes."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * PAGE


def spec(
    args: argparse.Namespace, partitions: int, records: int, value_size: int = 100
) -> argparse.Namespace:
    """Return the arguments of `fill` for a topic."""
    return argparse.Namespace(
        bootstrap=args.bootstrap,
        records=records,
        partitions=partitions,
        value_size=value_size,
        batch_size=16_384,
        compression="none",
    )


async def consumer_of(topic: argparse.Namespace, **options: object) -> kafkaio.Consumer:
    name = await consume.fill(topic)
    where = [kafkaio.TopicPartition(name, n) for n in range(topic.partitions)]
    return kafkaio.Consumer(
        topic.bootstrap, assign=where, auto_offset_reset="earliest", **options
    )


def object_bytes() -> int:
    """Return the bytes of all Python objects, without the memory for frames."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def blocks() -> int:
    """Return the number of allocated blocks; most objects are one block."""
    gc.collect()
    return sys.getallocatedblocks()


async def ten_times(what: str, part: Part, bounds: Bounds) -> None:
    """Do a part of the work ten times, and compare its growth with the limit."""
    await part()
    await part()  # now everything that is created once exists
    before, resident_before = object_bytes(), resident()
    for _ in range(PARTS - 2):
        await part()
    grown = object_bytes() - before
    bounds.check(f"growth over {what}", grown / MIB, 1, "MiB")
    print(f"  resident memory: {(resident() - resident_before) / MIB:.1f} MiB")


async def consuming(args: argparse.Namespace, bounds: Bounds) -> None:
    """Consume records in every way."""
    topic = spec(args, 4, TOPIC_RECORDS)
    each = args.records // PARTS
    for name, way in consume.WAYS.items():
        async with await consumer_of(topic) as consumer:

            async def part(
                consumer: kafkaio.Consumer = consumer, way: consume.Way = way
            ) -> None:
                for _ in range(max(1, each // TOPIC_RECORDS)):
                    consumer.seek_to_beginning()
                    await way(consumer, TOPIC_RECORDS)
                    consumer.seek_to_end()

            await ten_times(f"{args.records:,} records, {name}", part, bounds)


async def producing(args: argparse.Namespace, bounds: Bounds) -> None:
    """Produce records without waiting for each."""
    topic = await create(args.bootstrap, 4)
    async with kafkaio.Producer(args.bootstrap) as producer:

        async def part() -> None:
            await produce(producer, topic, args.records // PARTS, no_key)

        await ten_times(f"{args.records:,} records, enqueue_nowait", part, bounds)


async def requests(args: argparse.Namespace, bounds: Bounds) -> None:
    """Send each record in a request of its own."""
    topic = await create(args.bootstrap, 4)
    each = args.requests // PARTS // SENDERS

    async with kafkaio.Client(args.bootstrap) as client:

        async def send_all() -> None:
            async with kafkaio.Producer(client, linger_ms=0) as producer:
                for _ in range(each):
                    await producer.send(topic, b"v")

        async def part() -> None:
            async with asyncio.TaskGroup() as group:
                for _ in range(SENDERS):
                    group.create_task(send_all())

        what = f"{args.requests:,} requests"
        tracemalloc.stop()
        await part()
        before, resident_before = blocks(), resident()
        for _ in range(PARTS - 2):
            await part()
        bounds.check(f"growth over {what}", blocks() - before, 1000, "blocks")
        print(f"  resident memory: {(resident() - resident_before) / MIB:.1f} MiB")
        tracemalloc.start()
        before = object_bytes()
        await part()
        grown = object_bytes() - before
        bounds.check(
            f"growth over {each * SENDERS:,} requests", grown / MIB, 0.1, "MiB"
        )


WORK = {f.__name__: f for f in (consuming, producing, requests)}


async def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bootstrap", help="HOST:PORT of a broker")
    parser.add_argument("only", nargs="*", help=f"some of: {', '.join(WORK)}")
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--requests", type=int, default=1_000_000)
    args = parser.parse_args()
    bounds = Bounds()
    tracemalloc.start()
    for name in args.only or WORK:
        await WORK[name](args, bounds)
    return 0 if bounds.held else 1


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
