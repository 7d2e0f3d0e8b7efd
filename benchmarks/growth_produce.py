"""What producing costs as partitions grow.

Run it as ``python benchmarks/growth_produce.py HOST:PORT [records]``; ``run.py
--serve`` starts a broker for it. CPU time is of this process, per record, the best of
several rounds, few and many partitions taking turns.
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

KeyOf = Callable[[int], bytes | None]


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
    producer: kafkaio.Producer, topic: str, records: int, key_of: KeyOf
) -> None:
    deliveries: list[kafkaio.Delivery] = []
    for number in range(records):
        try:
            sent = producer.enqueue_nowait(topic, VALUE, key=key_of(number))
        except kafkaio.BufferFull:
            sent = await producer.enqueue(topic, VALUE, key=key_of(number))
        deliveries.append(sent)
        if len(deliveries) == WINDOW:
            await deliveries[0]
            deliveries = []
    await producer.flush()


async def cpu(producer: kafkaio.Producer, topic: str, records: int, keys: KeyOf) -> int:
    gc.collect()
    start = time.process_time_ns()
    await produce(producer, topic, records, keys)
    return (time.process_time_ns() - start) // records


async def partitions(bootstrap: str, records: int) -> None:
    few, many = [await create(bootstrap, count) for count in (FEW, MANY)]
    async with kafkaio.Producer(bootstrap, batch_size=131_072) as producer:
        for topic in (few, many):
            await producer.partitions_for(topic, 60)
        for name, keys in (("without keys", no_key), ("with keys", key)):
            best = {few: sys.maxsize, many: sys.maxsize}
            for _ in range(ROUNDS):
                for topic in best:
                    found = await cpu(producer, topic, records, keys)
                    best[topic] = min(best[topic], found)
            print(
                f"{name}: {best[few]} ns per record on {FEW} partitions, "
                f"{best[many]} on {MANY}: {best[many] / best[few]:.2f} times",
                flush=True,
            )


async def main(bootstrap: str, records: int) -> None:
    print(f"codec: {'compiled' if kafkaio.accelerated else 'pure Python'}")
    await partitions(bootstrap, records)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int((sys.argv[2:] or ["200000"])[0])))
