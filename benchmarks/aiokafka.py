"""What aiokafka's names cost: `kafkaio`, `kafkaio.aiokafka` and aiokafka side by side.

Run it from the root of the repository as ``python -m benchmarks.aiokafka``. It starts
an Apache Kafka of one node, or uses ``--bootstrap``. In each round every way to produce
and to consume runs with each of the three, in an order that changes from round to
round, so that whatever else the machine does hits all of them. There are as many rounds
as fit into ``--seconds``, and the first one is not counted. Processor time is that of
this process, per record; the broker's is not in it. Each figure is a median, with the
median of the ratios to kafkaio's own of the same round.

A program of aiokafka that moves by one import pays what the second column says, so the
bars are: `BAR` of kafkaio's own at most, and less than aiokafka in any case.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import statistics
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import aiokafka

import kafkaio
import kafkaio.aiokafka
from kafkaio.testing.kafka import Kafka

TOPIC = f"names-{uuid.uuid4().hex[:8]}"
PARTITIONS = 4
VALUE = b"v" * 100
KEY = b"k" * 16
COROUTINES = 64
#: Records that a program sends before it waits for their futures.
WINDOW = 1_000
#: Records of one call that reads many.
MANY = 500
#: The most that aiokafka's names may cost, as a ratio to kafkaio's own; of the works
#: that have a bar.
BAR = 1.5
BARRED = ("await one by one", "64 coroutines await", "getmany")

Work = Callable[[Any, int], Awaitable[None]]


class Way(NamedTuple):
    """One thing that a program does, in the words of both.

    Attributes:
        records: how many records of it make a run.
        ours: does it with a client of kafkaio.
        theirs: does it with one of aiokafka.
    """

    records: int
    ours: Work
    theirs: Work


async def one_by_one(send: Callable[[str, bytes], Awaitable[object]], n: int) -> None:
    for _ in range(n):
        await send(TOPIC, VALUE)


async def by_coroutines(
    send: Callable[[str, bytes], Awaitable[object]], n: int
) -> None:
    await asyncio.gather(
        *(one_by_one(send, n // COROUTINES) for _ in range(COROUTINES))
    )


async def deliveries(producer: kafkaio.Producer, n: int) -> None:
    for _ in range(n // WINDOW):
        sent = [await producer.enqueue(TOPIC, VALUE, key=KEY) for _ in range(WINDOW)]
        for each in sent:
            await each


async def futures(producer: Any, n: int) -> None:
    for _ in range(n // WINDOW):
        sent = [await producer.send(TOPIC, VALUE, KEY) for _ in range(WINDOW)]
        for each in sent:
            await each


async def poll(consumer: kafkaio.Consumer, n: int) -> None:
    while n > 0:
        n -= len((await consumer.poll(timeout=1.0, max_records=MANY)).records)


async def getmany(consumer: Any, n: int) -> None:
    while n > 0:
        found = await consumer.getmany(timeout_ms=1_000, max_records=MANY)
        n -= sum(map(len, found.values()))


async def anext_(consumer: kafkaio.Consumer, n: int) -> None:
    for _ in range(n):
        await anext(consumer)


async def getone(consumer: Any, n: int) -> None:
    for _ in range(n):
        await consumer.getone()


async def iterate(consumer: Any, n: int) -> None:
    async for _ in consumer:
        n -= 1
        if not n:
            break


PRODUCE: Mapping[str, Way] = {
    "await one by one": Way(
        1_000,
        lambda it, n: one_by_one(it.send, n),
        lambda it, n: one_by_one(it.send_and_wait, n),
    ),
    "64 coroutines await": Way(
        12_800,
        lambda it, n: by_coroutines(it.send, n),
        lambda it, n: by_coroutines(it.send_and_wait, n),
    ),
    "send, futures": Way(20_000, deliveries, futures),
}
CONSUME: Mapping[str, Way] = {
    "getmany": Way(50_000, poll, getmany),
    "getone": Way(20_000, anext_, getone),
    "async for": Way(20_000, iterate, iterate),
}


async def measured(work: Work, client: Any, records: int) -> float:
    """Return microseconds of this process for each record of a work."""
    gc.collect()
    began = time.process_time_ns()
    await work(client, records)
    return (time.process_time_ns() - began) / records / 1_000


async def produce(servers: str, who: str, way: Way) -> float:
    if who == "kafkaio":
        async with kafkaio.Producer(servers) as ours:
            await ours.send(TOPIC, VALUE)
            return await measured(way.ours, ours, way.records)
    module = aiokafka if who == "aiokafka" else kafkaio.aiokafka
    async with module.AIOKafkaProducer(bootstrap_servers=servers) as theirs:
        await theirs.send_and_wait(TOPIC, VALUE)
        return await measured(way.theirs, theirs, way.records)


async def consume(servers: str, who: str, way: Way) -> float:
    places = [kafkaio.TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    if who == "kafkaio":
        async with kafkaio.Consumer(
            servers, assign=places, auto_offset_reset="earliest"
        ) as ours:
            await anext(ours)
            return await measured(way.ours, ours, way.records)
    module = aiokafka if who == "aiokafka" else kafkaio.aiokafka
    theirs = module.AIOKafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest"
    )
    theirs.assign([module.TopicPartition(*each) for each in places])
    async with theirs:
        await theirs.getone()
        return await measured(way.theirs, theirs, way.records)


async def fill(servers: str) -> None:
    """Write what is read: more than any run reads."""
    async with kafkaio.Admin(servers) as admin:
        await admin.create_topics([kafkaio.NewTopic(TOPIC, PARTITIONS)])
    most = 2 * max(way.records for way in CONSUME.values())
    async with kafkaio.Producer(servers, batch_size=16_384) as producer:
        for _ in range(most // 1_000):
            await producer.send_many(TOPIC, [VALUE] * 1_000)


Ran = dict[tuple[str, str], list[float]]


async def rounds(servers: str, seconds: float, only: str) -> Ran:
    works = [
        *((name, way, produce) for name, way in PRODUCE.items() if only in name),
        *((name, way, consume) for name, way in CONSUME.items() if only in name),
    ]
    orders = itertools.cycle(itertools.permutations(WHO))
    found: Ran = {(name, who): [] for name, _, _ in works for who in WHO}
    end = time.monotonic() + seconds
    warm = False
    while not warm or time.monotonic() < end or len(next(iter(found.values()))) < 2:
        order = next(orders)
        for name, way, run in works:
            for who in order:
                taken = await run(servers, who, way)
                if warm:
                    found[name, who].append(taken)
        warm = True
    return found


WHO = ("kafkaio", "kafkaio.aiokafka", "aiokafka")


def report(found: Ran) -> None:
    count = len(next(iter(found.values())))
    print(f"\nmicroseconds of CPU per record, medians of {count} rounds")
    print(f"{'':20}" + "".join(f"{who:>18}" for who in WHO) + "     ratios to kafkaio")
    for name in dict.fromkeys(name for name, _ in found):
        own = found[name, WHO[0]]
        figures = [statistics.median(found[name, who]) for who in WHO]
        ratios = [
            statistics.median(
                each / base for each, base in zip(found[name, who], own, strict=True)
            )
            for who in WHO[1:]
        ]
        is_fine = (name not in BARRED or ratios[0] <= BAR) and ratios[0] < ratios[1]
        print(
            f"{name:20}"
            + "".join(f"{figure:18.2f}" for figure in figures)
            + f"     {ratios[0]:.2f}  {ratios[1]:.2f}"
            + ("" if is_fine else "  ABOVE THE BAR"),
            flush=True,
        )


async def run(servers: str, seconds: float, only: str) -> None:
    await fill(servers)
    report(await rounds(servers, seconds, only))


async def on_kafka(seconds: float, only: str) -> None:
    async with Kafka(1) as kafka:
        await run(kafka.bootstrap_servers, seconds, only)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", help="a running broker; its topic is left")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", default="", help="works with this in their name")
    given = parser.parse_args()
    if given.bootstrap:
        asyncio.run(run(given.bootstrap, given.seconds, given.only))
        return
    asyncio.run(on_kafka(given.seconds, given.only))


if __name__ == "__main__":
    main()
