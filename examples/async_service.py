"""A service that works on orders concurrently and shuts down cleanly on SIGTERM.

    python examples/async_service.py                              # a demonstration
    python examples/async_service.py --bootstrap localhost:9092   # until SIGTERM

The service works on up to a hundred orders at a time, and on the orders of one customer
one after the other. On SIGTERM (or SIGINT) it begins no further order, finishes those
that it has begun, commits them and leaves the group. The next start goes on with the
first order that was not begun, so no order is worked on twice. Without --bootstrap the
service runs on an embedded broker, and gets its SIGTERM halfway.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field

import kafkaio
from kafkaio.testing import Broker

TOPIC = "orders"


@dataclass
class Service:
    """Works on orders until `stopping` is set."""

    bootstrap: str
    seconds: float
    #: After so many orders, a demonstration sends itself a SIGTERM.
    stop_after: int | None = None
    done: Counter[bytes] = field(default_factory=Counter)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, record: kafkaio.Record) -> None:
        await asyncio.sleep(self.seconds)  # ask a database, call another service ...
        order = record.value or b""
        self.done[order] += 1
        print(f"done {order.decode()}", flush=True)
        if self.done.total() == self.stop_after:
            os.kill(os.getpid(), signal.SIGTERM)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        consumer = kafkaio.Consumer(
            self.bootstrap,
            topics=TOPIC,
            group_id="async-service",
            auto_offset_reset="earliest",
        )
        async with consumer, asyncio.TaskGroup() as tasks:
            tasks.create_task(self.stop(consumer))
            print("ready", flush=True)
            await consumer.run(self.handle, concurrency=100, ordering="key")
        print(f"stopped after {self.done.total()} orders", flush=True)

    async def stop(self, consumer: kafkaio.Consumer) -> None:
        await self.stopping.wait()
        # Finishes what was begun, commits and leaves the group; then run() returns.
        await consumer.close(timeout=20)


async def demonstrate(count: int) -> bool:
    """Serve half of the orders, stop, start again, and so on to the last one."""
    async with Broker(topics={TOPIC: 6}) as broker:
        async with kafkaio.Producer(broker.bootstrap_servers) as producer:
            await producer.send_many(
                TOPIC,
                [
                    kafkaio.NewRecord(b"order-%d" % n, key=b"customer-%d" % (n % 50))
                    for n in range(count)
                ],
            )
        done: Counter[bytes] = Counter()
        while len(done) < count:
            enough = (count - len(done) + 1) // 2
            service = Service(broker.bootstrap_servers, 0.02, stop_after=enough)
            await service.run()
            done += service.done
    print(f"{len(done)} of {count} orders, {done.total() - len(done)} twice")
    return done.total() == len(done) == count


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--bootstrap", help="a running Kafka")
    parser.add_argument(
        "--records", type=int, default=1000, help="orders of the demonstration"
    )
    parser.add_argument(
        "--seconds", type=float, default=0.02, help="time that an order takes"
    )
    args = parser.parse_args()
    if args.bootstrap is None:
        return 0 if await demonstrate(args.records) else 1
    await Service(args.bootstrap, args.seconds).run()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
