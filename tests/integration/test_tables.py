"""Tables that name topics and partitions, read by librdkafka and by Java."""

from __future__ import annotations

import asyncio
import time

import confluent_kafka
import pyarrow as pa
import pytest

import kafkaio
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.integration.test_console_tools import PRODUCER, TOOLS
from tests.support.patience import HANGS

pytestmark = pytest.mark.timeout(180)

ROWS = 6_000
JAVA_ROWS = 400


def table(topics: list[str], count: int) -> pa.Table:
    """Rows in the form in which Spark hands them to a data source."""
    now = time.time_ns() // 1_000
    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    return pa.table(
        {
            "key": pa.array(
                [b"key-%d" % (n % 700) if n % 5 else None for n in range(count)]
            ),
            "value": [f"value {n}" if n % 11 else None for n in range(count)],
            "topic": [topics[n % len(topics)] for n in range(count)],
            "partition": pa.array(
                [n % 3 if n % 4 == 0 else None for n in range(count)], pa.int32()
            ),
            "timestamp": pa.array(
                range(now, now + 1_000 * count, 1_000), pa.timestamp("us", tz="UTC")
            ),
            "headers": pa.array(
                [
                    [{"key": "n", "value": b"%d" % n}] if n % 2 else None
                    for n in range(count)
                ],
                pa.list_(header),
            ),
        }
    )


COLUMNS = {
    "key": "key",
    "headers": "headers",
    "timestamp": "timestamp",
    "topic_column": "topic",
    "partition_column": "partition",
}


def read_by_librdkafka(
    servers: str, topics: list[str], count: int, partitions: int = 3
) -> dict:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "tables", "log_level": 0}
    )
    consumer.assign(
        [
            confluent_kafka.TopicPartition(topic, partition, 0)
            for topic in topics
            for partition in range(partitions)
        ]
    )
    found: dict = {}
    try:
        while len(found) < count:
            messages = consumer.consume(count, timeout=HANGS)
            assert messages, f"only {len(found)} of {count}"
            for message in messages:
                assert message.error() is None
                where = message.topic(), message.partition(), message.offset()
                found[where] = (
                    message.key(),
                    message.value(),
                    message.timestamp()[1],
                    message.headers() or [],
                )
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("batch_size", [16_384, 262_144])
async def test_librdkafka_reads_what_was_enqueued(
    real_kafka: Kafka, topic: TopicFactory, batch_size: int
) -> None:
    topics = [topic(3), topic(3)]
    rows = table(topics, ROWS)
    servers = real_kafka.bootstrap_servers
    async with kafkaio.Producer(
        servers, batch_size=batch_size, buffer_memory=1 << 20, acks="all"
    ) as producer:
        batches = rows.to_batches(max_chunksize=1_000)
        deliveries = [
            await producer.enqueue_table(None, batch, **COLUMNS) for batch in batches
        ]
        parts = [(await delivery).cast(WITH_TEXT) for delivery in deliveries]
    written = pa.concat_tables(parts)
    found = await asyncio.to_thread(read_by_librdkafka, servers, topics, ROWS)
    assert written["topic"].to_pylist() == rows["topic"].to_pylist()
    for row, to in zip(rows.to_pylist(), written.to_pylist(), strict=True):
        expected = (
            row["key"],
            row["value"] and row["value"].encode(),
            int(row["timestamp"].timestamp() * 1_000),
            [(pair["key"], pair["value"]) for pair in row["headers"] or ()],
        )
        assert found.pop((to["topic"], to["partition"], to["offset"])) == expected
        if row["partition"] is not None:
            assert to["partition"] == row["partition"]
    assert not found


WITH_TEXT = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("ms", tz="UTC"),
    }
)


def places(
    servers: str, topic: str, count: int, partitions: int
) -> dict[bytes, tuple[int, bytes]]:
    """Key to partition and value."""
    found = read_by_librdkafka(servers, [topic], count, partitions)
    return {key: (at[1], value) for at, (key, value, *_) in found.items()}


async def test_keys_go_where_javas_producer_sends_them(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    ours, javas = topic(7), topic(7)
    servers = real_kafka.bootstrap_servers
    pairs = [(f"key-{n}" * (1 + n % 5), f"value {n}") for n in range(JAVA_ROWS)]
    async with kafkaio.Producer(servers) as producer:
        rows = pa.table({"k": [key for key, _ in pairs], "v": [v for _, v in pairs]})
        delivery = await producer.enqueue_table(ours, rows, key="k", value="v")
        written = await delivery
    output = await TOOLS.run(
        PRODUCER,
        *("--bootstrap-server", servers, "--topic", javas),
        *("--reader-property", "parse.key=true"),
        stdin="".join(f"{key}\t{value}\n" for key, value in pairs),
    )
    assert output.returncode == 0, output.stderr
    found = await asyncio.to_thread(places, servers, ours, JAVA_ROWS, 7)
    assert found == await asyncio.to_thread(places, servers, javas, JAVA_ROWS, 7)
    told = written["partition"].to_pylist()
    assert told == [found[key.encode()][0] for key, _ in pairs]
