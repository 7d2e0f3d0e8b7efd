"""Whether memory grows with what was consumed, produced, or asked.

Run it as ``python benchmarks/growth_memory.py HOST:PORT``; ``run.py --serve`` starts a
broker for it. The work is done in ten parts; what Python objects take up
(tracemalloc) after the last is compared with what they took up after the second,
without the memory that is kept for frames, which has a bound of its own. The resident
memory stands beside it: it counts what C code keeps too, but also what the allocator
does not give back. The exit status is 1 where a bound is passed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tracemalloc
from collections.abc import Awaitable, Callable

import consume
from growth import MIB, Bounds, consumer_of, resident, spec
from growth_produce import create, no_key, produce

import kafkaio

PARTS = 10
#: Records of the topic that is read again and again.
TOPIC_RECORDS = 500_000

#: Producers that send at the same time, each one record after the other.
SENDERS = 8

Part = Callable[[], Awaitable[None]]


def kept() -> int:
    """Bytes that Python objects take up; the memory for frames is not among them."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def blocks() -> int:
    """Blocks of memory that Python objects are in; one object is mostly one."""
    gc.collect()
    return sys.getallocatedblocks()


async def ten_times(what: str, part: Part, bounds: Bounds) -> None:
    """Do a part of the work ten times, and hold its growth to the bound."""
    await part()
    await part()  # whatever is made once is there now
    before, resident_before = kept(), resident()
    for _ in range(PARTS - 2):
        await part()
    grown = kept() - before
    bounds.tell(f"growth over {what}", grown / MIB, 1, "MiB")
    print(f"  of the process: {(resident() - resident_before) / MIB:.1f} MiB")


async def consuming(args: argparse.Namespace, bounds: Bounds) -> None:
    """Records, read in every way."""
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
    """Records, sent without waiting for each."""
    topic = await create(args.bootstrap, 4)
    async with kafkaio.Producer(args.bootstrap) as producer:

        async def part() -> None:
            await produce(producer, topic, args.records // PARTS, no_key)

        await ten_times(f"{args.records:,} records, enqueue_nowait", part, bounds)


async def requests(args: argparse.Namespace, bounds: Bounds) -> None:
    """Records, each of them a request of its own."""
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
        bounds.tell(f"growth over {what}", blocks() - before, 1000, "blocks")
        print(f"  of the process: {(resident() - resident_before) / MIB:.1f} MiB")
        tracemalloc.start()
        before = kept()
        await part()
        grown = kept() - before
        bounds.tell(f"growth over {each * SENDERS:,} requests", grown / MIB, 0.1, "MiB")


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
