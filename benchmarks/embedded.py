"""The embedded broker: how fast it starts, and records per second through it.

    python benchmarks/embedded.py [--records 300000] [--size 100] [--profile]

Broker and client share one process, one event loop and one core. Times are CPU seconds
of this process, so that other work on the machine matters little; the best of three.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial

from kafkaio import BufferFull, Consumer, Producer
from kafkaio.testing import Broker

COLD = """
import asyncio, time
began = time.process_time()
from kafkaio.testing import Broker
loaded = time.process_time()
async def start():
    async with Broker(nodes={nodes}, topics={{"t": 6}}):
        return time.process_time()
started = asyncio.run(start())
print((loaded - began) * 1000, (started - loaded) * 1000)
"""


async def best_of(rounds: int, run: Callable[[], Awaitable[float]]) -> float:
    return min([await run() for _ in range(rounds)])


def starts() -> None:
    for nodes in (1, 3):
        lines = [
            subprocess.run(  # noqa: S603
                [sys.executable, "-c", COLD.format(nodes=nodes)],
                check=True,
                capture_output=True,
                text=True,
            ).stdout.split()
            for _ in range(5)
        ]
        load, start = (min(map(float, column)) for column in zip(*lines, strict=True))
        print(f"{nodes} nodes: import {load:.0f} ms, first start {start:.1f} ms")


async def warm_start() -> None:
    async def once() -> float:
        began = time.process_time()
        async with Broker(nodes=3, topics={"t": 6}):
            return time.process_time() - began

    print(f"3 nodes, second start: {await best_of(5, once) * 1000:.1f} ms")


async def produce(broker: Broker, topic: str, count: int, value: bytes) -> float:
    async with Producer(broker.bootstrap_servers) as producer:
        await producer.send(topic, value)
        began = time.process_time()
        sent = 1
        while sent < count:
            try:
                producer.enqueue_nowait(topic, value)
            except BufferFull:
                await producer.enqueue(topic, value)
            sent += 1
            if sent % 1000 == 0:
                await asyncio.sleep(0)
        await producer.flush()
        return time.process_time() - began


async def produce_many(broker: Broker, topic: str, count: int, value: bytes) -> float:
    values = [value] * 8192
    async with Producer(broker.bootstrap_servers) as producer:
        began = time.process_time()
        for _ in range(count // len(values)):
            await producer.send_many(topic, values)
        return time.process_time() - began


async def consume(broker: Broker, topic: str, count: int, _: bytes) -> float:
    async with Consumer(
        broker.bootstrap_servers, topics=topic, auto_offset_reset="earliest"
    ) as consumer:
        began = time.process_time()
        async for _ in consumer:
            count -= 1
            if not count:
                break
        return time.process_time() - began


async def consume_batches(broker: Broker, topic: str, count: int, _: bytes) -> float:
    async with Consumer(
        broker.bootstrap_servers, topics=topic, auto_offset_reset="earliest"
    ) as consumer:
        began = time.process_time()
        async for batch in consumer.batches(max_records=1000):
            count -= len(batch.values())
            if count <= 0:
                break
        return time.process_time() - began


async def speeds(records: int, size: int, *, is_profiled: bool) -> None:
    value = bytes(size)
    async with Broker(topics={"t": 6, "p": 6}) as broker:
        paths = [
            ("produce, enqueue_nowait", produce, "t"),
            ("produce, send_many", produce_many, "p"),
            ("consume, async for", consume, "t"),
            ("consume, batches", consume_batches, "t"),
        ]
        for name, path, topic in paths:
            profile = cProfile.Profile()
            if is_profiled:
                profile.enable()
            run = partial(path, broker, topic, records, value)
            seconds = await best_of(1 if is_profiled else 3, run)
            profile.disable()
            print(f"{name}: {records / seconds:,.0f} records/s")
            if is_profiled:
                pstats.Stats(profile).sort_stats("tottime").print_stats(25)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--size", type=int, default=100, help="bytes of a value")
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    starts()
    asyncio.run(warm_start())
    asyncio.run(speeds(chosen.records, chosen.size, is_profiled=chosen.profile))


if __name__ == "__main__":
    main()
