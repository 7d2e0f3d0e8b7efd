"""What consuming costs with many partitions, while idle, and when it is slow.

Run it as ``python benchmarks/growth.py HOST:PORT``; ``run.py --serve`` starts a broker
for it. Each line has a figure and its limit. The exit status is 1 if a figure exceeds
its limit.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import time
from pathlib import Path

from consume import fill, iterate

import kafkaio

MIB = 2**20
PAGE = os.sysconf("SC_PAGE_SIZE")


class Bounds:
    """Prints figures with their limits.

    Attributes:
        held: whether all figures were within their limits.
    """

    def __init__(self) -> None:
        self.held = True

    def check(self, what: str, figure: float, bound: float, unit: str) -> None:
        is_held = figure <= bound
        self.held &= is_held
        mark = "" if is_held else "   EXCEEDED"
        print(f"{what:52} {figure:9.2f} of {bound:7.2f} {unit}{mark}", flush=True)


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
    name = await fill(topic)
    where = [kafkaio.TopicPartition(name, n) for n in range(topic.partitions)]
    return kafkaio.Consumer(
        topic.bootstrap, assign=where, auto_offset_reset="earliest", **options
    )


async def partitions(args: argparse.Namespace, bounds: Bounds) -> None:
    """CPU per record with many partitions, divided by that with few; in turns."""
    best: dict[int, float] = {}
    for _ in range(args.rounds):
        for count in (4, 512):
            async with await consumer_of(spec(args, count, args.records)) as consumer:
                gc.collect()
                start = time.process_time_ns()
                await iterate(consumer, args.records)
                spent = (time.process_time_ns() - start) / args.records
            best[count] = min(spent, best.get(count, spent))
    print(f"{best[4]:.0f} ns per record of 4 partitions, {best[512]:.0f} ns of 512")
    bounds.check("512 partitions against 4", best[512] / best[4], 1.3, "times")


async def idle(args: argparse.Namespace, bounds: Bounds) -> None:
    """CPU of a consumer that waits for records of 200 partitions."""
    async with await consumer_of(spec(args, 200, 200)) as consumer:
        await iterate(consumer, 200)
        waiting = asyncio.create_task(iterate(consumer, 1))
        await asyncio.sleep(2)
        start = time.process_time()
        await asyncio.sleep(args.seconds)
        spent = time.process_time() - start
        waiting.cancel()
        await asyncio.wait([waiting])
    bounds.check("idle on 200 partitions", 100 * spent / args.seconds, 1, "% of a core")


async def slow(args: argparse.Namespace, bounds: Bounds) -> None:
    """Memory of a consumer that reads more slowly than its topic is fetched."""
    budget = 50 * MIB
    topic = spec(args, 64, 200_000, 1000)
    slow_one = await consumer_of(topic, fetch_buffer_bytes=budget)
    gc.collect()
    before = peak = resident()
    buffered = 0
    async with slow_one as consumer:
        end = time.monotonic() + args.seconds
        async for _ in consumer:
            peak = max(peak, resident())
            buffered = max(buffered, consumer.statistics().buffered_bytes)
            if time.monotonic() > end:
                break
            await asyncio.sleep(0.001)
    print(f"{buffered / MIB:.0f} MiB buffered at most")
    most = budget / MIB + 30
    bounds.check("memory of a slow consumer", (peak - before) / MIB, most, "MiB")


WORK = {f.__name__: f for f in (partitions, idle, slow)}


async def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bootstrap", help="HOST:PORT of a broker")
    parser.add_argument("only", nargs="*", help=f"some of: {', '.join(WORK)}")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    args = parser.parse_args()
    bounds = Bounds()
    for name in args.only or WORK:
        await WORK[name](args, bounds)
    return 0 if bounds.held else 1


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
