"""How long the event loop is held up by large compressed batches, and what a thread
would do about it.

Run it as ``python benchmarks/stall.py HOST:PORT``; ``run.py --serve`` starts a broker
for it. Two tables are printed, in milliseconds.

The first: batches of a megabyte are consumed with ``async for`` at full speed, and a
task that wants every turn of the loop notes how much CPU time each turn took, so that
other work on the machine does not count. The second: one such batch is decompressed,
on the loop and in a thread, while the loop has nothing else to do and while it is as
busy as in the first table; what counts is the time until the result is there.
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
#: Seconds of a turn that only looks whether something has come.
IDLE = 0.0001
CODECS = ("none", "lz4", "zstd", "gzip")


def told(seconds: list[float]) -> str:
    """Median, 99th percentile and most."""
    found = sorted(seconds)
    places = (found[len(found) // 2], found[len(found) * 99 // 100], found[-1])
    return "".join(f"{1000 * place:9.2f}" for place in places)


async def watch(turns: list[float]) -> None:
    """Note how long each turn takes, for as long as it is not cancelled."""
    while True:
        start = time.thread_time()
        await asyncio.sleep(0)
        turns.append(time.thread_time() - start)


async def consuming(args: argparse.Namespace, codec: str) -> list[float]:
    """How long turns take while records are read as fast as they go."""
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
    turns: list[float] = []
    async with kafkaio.Consumer(
        args.bootstrap, assign=where, auto_offset_reset="earliest"
    ) as consumer:
        await iterate(consumer, 1)
        async with asyncio.TaskGroup() as group:
            watcher = group.create_task(watch(turns))
            for _ in range(args.rounds):
                consumer.seek_to_beginning()
                await iterate(consumer, args.records)
            watcher.cancel()
    # Those in which nothing was at hand say nothing.
    return [turn for turn in turns if turn > IDLE]


async def busy() -> None:
    """Turns of the loop as a reader takes them, a millisecond each."""
    while True:
        end = time.perf_counter() + 0.001
        while time.perf_counter() < end:
            pass
        await asyncio.sleep(0)


async def waits(work: Callable[[], Awaitable[object]], *, is_busy: bool) -> list[float]:
    """Seconds until the work was done, time after time."""
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
    """One batch on the loop and in a thread."""
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
            print(f"{codec.name.lower():6} {name:12} {loop}{told(found)}", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bootstrap", help="HOST:PORT of a broker")
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=4)
    args = parser.parse_args()
    print(f"{'turns of the loop':24}   median     99 %     most")
    for codec in CODECS:
        print(f"{codec:24}{told(await consuming(args, codec))}", flush=True)
    print(f"{'until a batch is there':24}   median     99 %     most")
    for name in CODECS[1:]:
        await offloading(Compression[name.upper()])


if __name__ == "__main__":
    asyncio.run(main())
