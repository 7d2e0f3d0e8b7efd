"""OpenTelemetry's instrumentation of aiokafka on kafkaio, where it is installed.

Its own tests of sending and receiving replace parts of aiokafka by mocks. Here the same
is shown on a broker, in a process that has called `install()`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE

import pytest

from kafkaio.testing import Broker

SECONDS = 60
OFFSET = "messaging.kafka.message.offset"
PROGRAM = """
import asyncio, json, sys

import kafkaio.aiokafka

kafkaio.aiokafka.install()

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from opentelemetry import baggage, context
from opentelemetry.instrumentation.aiokafka import AIOKafkaInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

finished = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(finished))
AIOKafkaInstrumentor().instrument(tracer_provider=provider)


async def main(servers):
    where = {"bootstrap_servers": servers}
    async with AIOKafkaProducer(**where) as producer:
        await producer.send_and_wait("t", b"1", key=b"k")
        await (await producer.send("t", b"2", key=b"k"))
    consumer = AIOKafkaConsumer(
        "t", group_id="g", auto_offset_reset="earliest", client_id="c", **where
    )
    async with consumer:
        await consumer.getone()
        found = await consumer.getmany(timeout_ms=30_000)
        assert [r.value for records in found.values() for r in records] == [b"2"]
    spans = [
        {
            "name": span.name,
            "trace": span.context.trace_id,
            "attributes": dict(span.attributes),
        }
        for span in finished.get_finished_spans()
    ]
    print(json.dumps(spans))


asyncio.run(main(sys.argv[1]))
"""


async def test_spans_of_what_is_sent_and_received() -> None:
    pytest.importorskip("opentelemetry.instrumentation.aiokafka")
    async with Broker(topics={"t": 1}) as broker, asyncio.timeout(SECONDS):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROGRAM, broker.bootstrap_servers), stdout=PIPE
        )
        output, _ = await process.communicate()
        assert process.returncode == 0
    spans = json.loads(output)
    sent = [span for span in spans if span["name"] == "t send"]
    received = [span for span in spans if span["name"] == "t receive"]
    # One for each record; others stand for what getmany returned together.
    records = [span for span in received if OFFSET in span["attributes"]]
    assert [span["attributes"][OFFSET] for span in records] == [0, 1]
    # The headers carry the trace from the producer to the consumer.
    assert len(sent) == 2
    assert [span["trace"] for span in records] == [span["trace"] for span in sent]
    assert {span["attributes"]["messaging.client.id"] for span in records} == {"c"}
