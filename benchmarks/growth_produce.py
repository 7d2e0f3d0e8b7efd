"""What producing to many partitions costs compared with few.

Run it as ``python benchmarks/growth_produce.py HOST:PORT [records]``; ``run.py
--serve`` starts a broker for it. It prints the CPU time of this process per record, the
best of several rounds; few and many partitions take turns. Records with keys spread
over all partitions at once, so the size of the batches depends on how many records are
in flight. The exit status is 1 if a limit is exceeded. `growth_memory.py` measures
memory.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
import uuid
from collections.abc import Callable

import kafkaio
from kafkaio.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

VALUE = b"v" * 100
WINDOW = 8192
ROUNDS = 5
FEW, MANY = 4, 512
BOUND = 1.5

KeyOf = Callable[[int], bytes | None]


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


def no_key(_: int) -> bytes | None:
    return None


def key(number: int) -> bytes | None:
    return b"%d" % (number % 100_000)


async def create(bootstrap: str, partitions: int) -> str:
    topic = f"growth-{partitions}-{uuid.uuid4().hex[:8]}"
    asked = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    async with kafkaio.Client(bootstrap) as client:
        request = CreateTopicsRequest(topics=[asked], timeout_ms=60_000)
        answer = await client.request(request, kafkaio.Controller)
    if any(found.error_code for found in answer.topics):
        raise RuntimeError(answer)
    return topic


async def produce(
    producer: kafkaio.Producer,
    topic: str,
    records: int,
    key_of: KeyOf,
    window: int = WINDOW,
) -> None:
    deliveries: list[kafkaio.Delivery] = []
    for number in range(records):
        try:
            sent = producer.enqueue_nowait(topic, VALUE, key=key_of(number))
        except kafkaio.BufferFull:
            sent = await producer.enqueue(topic, VALUE, key=key_of(number))
        deliveries.append(sent)
        if len(deliveries) == window:
            await deliveries[0]
            deliveries = []
    await producer.flush()


class Batches:
    """An observer that counts batches."""

    def __init__(self) -> None:
        self.batches = 0

    def batch_sent(self, tp: kafkaio.TopicPartition, records: int, size: int) -> None:
        self.batches += 1


async def partitions(
    bootstrap: str, records: int, key_of: KeyOf, window: int
) -> tuple[float, float]:
    """Compare many partitions with few.

    Returns:
        The CPU per record with many partitions divided by that with few, and the
        records per batch with many.
    """
    few, many = [await create(bootstrap, count) for count in (FEW, MANY)]
    best = {few: float("inf"), many: float("inf")}
    seen = Batches()
    async with kafkaio.Producer(
        bootstrap, observer=seen, batch_size=131_072
    ) as producer:
        for topic in best:
            await producer.partitions_for(topic, 60)
        for _ in range(ROUNDS):
            for topic in best:
                gc.collect()
                seen.batches = 0
                start = time.process_time_ns()
                await produce(producer, topic, records, key_of, window)
                spent = (time.process_time_ns() - start) / records
                best[topic] = min(best[topic], spent)
    print(f"{best[few]:.0f} ns on {FEW} partitions, {best[many]:.0f} on {MANY}")
    return best[many] / best[few], records / seen.batches


async def main(bootstrap: str, records: int) -> int:
    print(f"codec: {'compiled' if kafkaio.accelerated else 'pure Python'}")
    bounds = Bounds()
    ways = (
        ("without keys", no_key, WINDOW, BOUND),
        ("100,000 keys, 65,536 outstanding", key, 65_536, BOUND),
        ("100,000 keys, 8,192 outstanding", key, WINDOW, float("inf")),
    )
    for name, key_of, window, bound in ways:
        ratio, size = await partitions(bootstrap, records, key_of, window)
        bounds.check(f"{name}, {size:.0f} in a batch", ratio, bound, "times")
    return 0 if bounds.held else 1


if __name__ == "__main__":
    raise SystemExit(
        asyncio.run(main(sys.argv[1], int((sys.argv[2:] or ["200000"])[0])))
    )
