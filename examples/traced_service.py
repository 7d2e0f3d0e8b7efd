"""Two services, and one trace through both: an order is placed, and then packed.

    python examples/traced_service.py

The shop sends orders within spans of its own. The producer writes their context into
the headers of the records. The warehouse reads batches, and works on each within
``observer.process``: a span with links to the spans of the shop. What it sends from
there carries the warehouse's context on. The spans are printed; a service would export
them by OTLP. It needs ``pip install 'kafkaio[opentelemetry]' opentelemetry-sdk``.
"""

from __future__ import annotations

import asyncio

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import kafkaio
from kafkaio.metrics.opentelemetry import OpenTelemetryObserver
from kafkaio.testing import Broker

ORDERS, PARCELS = "orders", "parcels"


async def shop(servers: str, tracers: TracerProvider) -> None:
    """Place two orders, each within a span."""
    observer = OpenTelemetryObserver(tracer_provider=tracers, propagate=True)
    tracer = tracers.get_tracer("shop")
    async with kafkaio.Producer(servers, observer=observer) as producer:
        for what in (b"apples", b"pears"):
            with tracer.start_as_current_span("place order"):
                await producer.send(ORDERS, what)


async def warehouse(servers: str, tracers: TracerProvider) -> None:
    """Pack each batch of orders, within a span that knows who placed them."""
    observer = OpenTelemetryObserver(tracer_provider=tracers, propagate=True)
    async with (
        kafkaio.Producer(servers, observer=observer) as producer,
        kafkaio.Consumer(
            servers,
            topics=ORDERS,
            group_id="warehouse",
            auto_offset_reset="earliest",
            observer=observer,
        ) as consumer,
    ):
        batch = await anext(consumer.batches(max_records=2, max_wait=5.0))
        with observer.process(batch, group="warehouse"):
            for order in batch:
                await producer.send(PARCELS, b"a parcel of " + (order.value or b""))


async def customer(servers: str, tracers: TracerProvider) -> None:
    """Receive the parcels, each in the trace that it belongs to."""
    observer = OpenTelemetryObserver(tracer_provider=tracers)
    async with kafkaio.Consumer(
        servers, topics=PARCELS, auto_offset_reset="earliest", observer=observer
    ) as consumer:
        for _ in range(2):
            parcel = await anext(consumer)
            with observer.process(parcel) as span:
                span.add_event("received")


def show(spans: tuple[ReadableSpan, ...]) -> None:
    """Print each span with the trace that it belongs to, and those it links to."""
    names = {span.context.span_id: span.name for span in spans if span.context}
    traces: dict[int, int] = {}
    for span in sorted(spans, key=lambda span: span.start_time or 0):
        assert span.context is not None
        trace = traces.setdefault(span.context.trace_id, len(traces) + 1)
        parent = names.get(span.parent.span_id) if span.parent else None
        links = [names[link.context.span_id] for link in span.links]
        print(f"trace {trace}: {span.name}; parent {parent}; links {links}")


async def main() -> None:
    exporter, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    async with Broker(topics={ORDERS: 1, PARCELS: 1}) as broker:
        await shop(broker.bootstrap_servers, tracers)
        await warehouse(broker.bootstrap_servers, tracers)
        await customer(broker.bootstrap_servers, tracers)
    show(exporter.get_finished_spans())
    tracers.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
