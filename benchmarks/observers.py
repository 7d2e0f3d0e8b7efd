"""What observers cost: producing and consuming with none, and with each of them.

Run it from the root of the repository as ``python -m benchmarks.observers``. It starts
an Apache Kafka of one node, or uses ``--bootstrap``. In each round every variant
produces the records and reads them, in an order that changes from round to round, so
that whatever else the machine does hits all of them. There are as many rounds as fit
into ``--seconds``. Processor time is that of this process. Each variant is compared
with the run without observers of the same round, and the median of these ratios is
printed. The first round is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import kafkaio
from kafkaio.metrics.opentelemetry import OpenTelemetryObserver
from kafkaio.metrics.prometheus import PrometheusObserver
from kafkaio.testing.kafka import Kafka

TOPIC = "observers"
#: The most that a variant may cost, as a ratio to none.
BARS = {"prometheus": 1.03, "otel metrics": 1.03, "otel batch spans": 1.08}


def variants() -> dict[str, Callable[[], Any]]:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        SpanExporter,
        SpanExportResult as Result,
    )
    from prometheus_client import CollectorRegistry

    class Drop(SpanExporter):
        def export(self, spans: Any) -> Result:
            return Result.SUCCESS

    registry = CollectorRegistry()
    meters, tracers = MeterProvider([InMemoryMetricReader()]), TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(Drop()))
    return {
        "none": lambda: None,
        "prometheus": lambda: PrometheusObserver(registry),
        "otel metrics": lambda: OpenTelemetryObserver(meters, tracers, spans="none"),
        "otel batch spans": lambda: OpenTelemetryObserver(meters, tracers),
    }


async def produce(servers: str, observer: object | None, count: int) -> float:
    """Return the seconds of processor time for ``count`` records."""
    value = bytes(100)
    async with kafkaio.Producer(servers, observer=observer) as producer:
        await producer.send(TOPIC, value)
        began = time.process_time()
        for _ in range(count):
            delivery = await producer.enqueue(TOPIC, value)
        await delivery
        await producer.flush()
        return time.process_time() - began


async def consume(servers: str, observer: object | None, count: int) -> float:
    """Return the seconds of processor time for ``count`` records."""
    async with kafkaio.Consumer(
        servers, topics=TOPIC, auto_offset_reset="earliest", observer=observer
    ) as consumer:
        await anext(consumer)
        began, left = time.process_time(), count - 1
        async for _ in consumer:
            left -= 1
            if not left:
                break
        return time.process_time() - began


async def run(servers: str, args: argparse.Namespace) -> None:
    made = variants()
    costs: dict[str, dict[str, list[float]]] = {
        what: {name: [] for name in made} for what in ("produce", "consume")
    }
    async with kafkaio.Admin(servers) as admin:
        await admin.create_topics([kafkaio.NewTopic(TOPIC, 4)])
    end, longest = time.monotonic() + args.seconds, 0.0
    for number, order in enumerate(itertools.cycle(itertools.permutations(made))):
        began = time.monotonic()
        if number > 1 and began + longest > end:
            break
        for name in order:
            for what, work in (("produce", produce), ("consume", consume)):
                gc.collect()
                cost = await work(servers, made[name](), args.records)
                if number:
                    costs[what][name].append(cost)
        longest = max(longest, time.monotonic() - began)
    for what, found in costs.items():
        report(what, found, args.records)


def report(what: str, found: dict[str, list[float]], records: int) -> None:
    base = found["none"]
    print(f"{what}: medians of {len(base)} rounds")
    for name, seconds in found.items():
        ratio = statistics.median(a / b for a, b in zip(seconds, base, strict=True))
        each = statistics.median(seconds) / records * 1e6
        bar = f"  (bar {BARS[name]:.2f})" if name in BARS else ""
        print(f"  {name:18} {each:6.3f} us of CPU a record  {ratio:5.3f}{bar}")


async def on_kafka(args: argparse.Namespace) -> None:
    async with Kafka(1) as kafka:
        await run(kafka.bootstrap_servers, args)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap", help="host:port; by default a Kafka is started")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=200.0)
    args = parser.parse_args()
    if args.bootstrap is not None:
        asyncio.run(run(args.bootstrap, args))
        return
    asyncio.run(on_kafka(args))


if __name__ == "__main__":
    main()
