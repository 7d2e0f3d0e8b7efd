"""What pushing metrics costs (KIP-714): producing with a push a second, and without.

Run it from the root of the repository as ``python -m benchmarks.telemetry``. It starts
an embedded broker in a process of its own, or uses ``--bootstrap``, a cluster with a
subscription to all metrics. Rounds alternate between both, and the median of the ratios
is printed; the first round is not counted. Processor time is that of this process. The
time of one push by itself is printed, too: the metrics are made, encoded and compressed
again and again from what the last round counted.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection

import kafkaio
from kafkaio.testing import Broker

TOPIC = "telemetry"
INTERVAL_MS = 1000
#: The most that pushing may cost, as a ratio; or else milliseconds for each push.
BAR, PUSH_BAR = 1.03, 10.0
_PUSHES = 50
#: The broker keeps its logs in memory, and a run writes 200 MB every second.
_RETENTION = {"log.retention.bytes": "67108864", "log.segment.bytes": "16777216"}


async def serve(pipe: Connection) -> None:
    """Run the broker until the other end of the pipe is closed."""
    async with Broker(topics={TOPIC: 4}, telemetry=True, config=_RETENTION) as broker:
        broker.telemetry.subscribe(interval_ms=INTERVAL_MS)
        pipe.send(broker.bootstrap_servers)
        while not await asyncio.to_thread(pipe.poll, 1.0):
            broker.telemetry.pushes.clear()
            broker.control.tidy()


def _serve(pipe: Connection) -> None:
    asyncio.run(serve(pipe))


async def produce(servers: str, count: int, *, is_pushing: bool) -> tuple[float, float]:
    """Return the seconds of processor time for ``count`` records, and for one push."""
    value = bytes(100)
    async with kafkaio.Producer(servers, enable_metrics_push=is_pushing) as producer:
        delivery = await producer.enqueue(TOPIC, value)
        await delivery
        if is_pushing:
            await producer.client_instance_id()
        began = time.process_time()
        for _ in range(count):
            delivery = await producer.enqueue(TOPIC, value)
        await delivery
        await producer.flush()
        cost = time.process_time() - began
        return cost, push_cost(producer) if is_pushing else 0.0


def push_cost(producer: kafkaio.Producer) -> float:
    telemetry = producer._cluster.telemetry
    began = time.process_time()
    for _ in range(_PUSHES):
        telemetry._request(is_last=False)
        telemetry._ledger.settle(is_refused=True)
    return (time.process_time() - began) / _PUSHES


async def run(servers: str, args: argparse.Namespace) -> None:
    ratios, each, pushes = [], [], []
    end = time.monotonic() + args.seconds
    number = 0
    while number < 2 or time.monotonic() < end:
        costs = {}
        for is_pushing in (True, False) if number % 2 else (False, True):
            gc.collect()
            cost, push = await produce(servers, args.records, is_pushing=is_pushing)
            costs[is_pushing] = cost
            if number and is_pushing:
                pushes.append(push * 1e3)
        if number:
            ratios.append(costs[True] / costs[False])
            each.append(costs[False] / args.records * 1e6)
        number += 1
    print(f"medians of {len(ratios)} rounds of {args.records} records")
    print(f"  without pushing  {statistics.median(each):.3f} us of CPU a record")
    print(f"  with a push a second  {statistics.median(ratios):.3f}  (bar {BAR:.2f})")
    print(f"  a push  {statistics.median(pushes):.2f} ms of CPU  (bar {PUSH_BAR:.0f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap", help="host:port; by default a broker is started")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--seconds", type=float, default=120.0)
    args = parser.parse_args()
    if args.bootstrap is not None:
        asyncio.run(run(args.bootstrap, args))
        return
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_serve, args=(there,), daemon=True)
    process.start()
    try:
        asyncio.run(run(here.recv(), args))
    finally:
        here.send(None)
        process.join()


if __name__ == "__main__":
    main()
