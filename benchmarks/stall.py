"""How long large compressed batches block the event loop, and whether a thread helps.

Run it as ``python benchmarks/stall.py HOST:PORT``; ``run.py --serve`` starts a broker
for it. It prints two tables, in milliseconds.

The first: ``async for`` consumes batches of a megabyte at full speed, while a task that
runs in every iteration of the event loop notes the CPU time of each iteration. (CPU
time, so that other work on the machine does not matter.) The second: one such batch is
decompressed on the event loop and in a thread, while the loop has nothing else to do,
and while it is as busy as in the first table. The figure is the time until the result
is there.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable

from consume import fill, iterate, make_value

import kafkaio
from kafkaio._records.batch import Compression, Compressor, Decompressor

BATCH = 1_048_576
#: Seconds of an iteration that only checks for I/O.
IDLE = 0.0001
CODECS = ("none", "lz4", "zstd", "gzip")


def summary(seconds: list[float]) -> str:
    """Format the median, the 99th percentile and the maximum."""
    found = sorted(seconds)
    places = (found[len(found) // 2], found[len(found) * 99 // 100], found[-1])
    return "".join(f"{1000 * place:9.2f}" for place in places)


async def watch(times: list[float]) -> None:
    """Append the CPU time of each iteration of the event loop, until cancelled."""
    while True:
        start = time.thread_time()
        await asyncio.sleep(0)
        times.append(time.thread_time() - start)


async def consuming(args: argparse.Namespace, codec: str) -> list[float]:
    """Return the times of iterations while records are read at full speed."""
    topic = argparse.Namespace(
        bootstrap=args.bootstrap,
        records=args.records,
        partitions=4,
        value_size=100,
        batch_size=BATCH,
        compression=codec,
    )
    name = await fill(topic)
    where = [kafkaio.TopicPartition(name, n) for n in range(4)]
    times: list[float] = []
    async with kafkaio.Consumer(
        args.bootstrap, assign=where, auto_offset_reset="earliest"
    ) as consumer:
        await iterate(consumer, 1)
        async with asyncio.TaskGroup() as group:
            watcher = group.create_task(watch(times))
            for _ in range(args.rounds):
                consumer.seek_to_beginning()
                await iterate(consumer, args.records)
            watcher.cancel()
    # Iterations without records say nothing.
    return [seconds for seconds in times if seconds > IDLE]


async def busy() -> None:
    """Keep the event loop busy as a reader does, a millisecond per iteration."""
    while True:
        end = time.perf_counter() + 0.001
        while time.perf_counter() < end:
            pass
        await asyncio.sleep(0)


async def waits(work: Callable[[], Awaitable[object]], *, is_busy: bool) -> list[float]:
    """Do the work repeatedly, and return the seconds that each time took."""
    found: list[float] = []
    async with asyncio.TaskGroup() as group:
        others = group.create_task(busy()) if is_busy else None
        await asyncio.sleep(0)
        for _ in range(50):
            start = time.perf_counter()
            await work()
            found.append(time.perf_counter() - start)
            await asyncio.sleep(0)
        if others is not None:
            others.cancel()
    return found


async def offloading(codec: Compression) -> None:
    """Decompress one batch on the event loop and in a thread."""
    values = b"".join(make_value(number, 100) for number in range(BATCH // 100))
    data = Compressor(codec).compress(values)
    decompressor = Decompressor()

    async def inline() -> None:
        decompressor.decompress(codec, data)

    async def in_thread() -> None:
        await asyncio.to_thread(decompressor.decompress, codec, data)

    for is_busy in (False, True):
        loop = "busy" if is_busy else "idle"
        for name, work in (("on the loop", inline), ("in a thread", in_thread)):
            found = await waits(work, is_busy=is_busy)
            print(
                f"{codec.name.lower():6} {name:12} {loop}{summary(found)}", flush=True
            )


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bootstrap", help="HOST:PORT of a broker")
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=4)
    args = parser.parse_args()
    print(f"{'iterations of the loop':24}   median     99 %  longest")
    for codec in CODECS:
        print(f"{codec:24}{summary(await consuming(args, codec))}", flush=True)
    print(f"{'until a batch is there':24}   median     99 %  longest")
    for name in CODECS[1:]:
        await offloading(Compression[name.upper()])


if __name__ == "__main__":
    asyncio.run(main())
