"""Topics as tables, on real brokers: what a consumer reads."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafkaio import Consumer, Producer, TopicPartition
from kafkaio.arrow import read_batches, read_table, records_to_table
from kafkaio.errors import OffsetOutOfRange, UnknownTopicOrPartition
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import Record
from tests.integration.committed import settled

pytestmark = pytest.mark.timeout(120)
PARTITIONS = 3


async def consumed(servers: str, name: str, isolation: Any) -> list[Record]:
    """What a consumer reads of a topic, up to its end, sorted."""
    tps = [TopicPartition(name, number) for number in range(PARTITIONS)]
    found: list[Record] = []
    async with (
        asyncio.timeout(60),
        Consumer(
            servers,
            assign=tps,
            auto_offset_reset="earliest",
            isolation_level=isolation,
        ) as consumer,
    ):
        ends = await consumer.end_offsets(tps)
        for tp in tps:
            while await consumer.position(tp) < ends[tp]:
                found += (await consumer.poll(timeout=0.1)).records
    return sorted(found, key=lambda record: (record.partition, record.offset))


async def write(servers: str, name: str) -> None:
    """Write plain records, and transactions of which every other one is aborted."""
    async with (
        Producer(servers, compression_type="zstd") as plain,
        Producer(servers, transactional_id=f"tables-{uuid.uuid4()}") as producer,
    ):
        for n in range(12):
            to = n % PARTITIONS
            await plain.send(name, b"plain %d" % n, partition=to, headers=[("n", b"1")])
            with suppress(EOFError):
                async with producer.transaction() as transaction:
                    await transaction.send(name, b"in %d" % n, key=b"k", partition=to)
                    if n % 2:
                        raise EOFError
    await settled(servers, name, PARTITIONS)


async def test_tables_are_what_a_consumer_reads(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    servers, name = real_kafka.bootstrap_servers, topic(partitions=PARTITIONS)
    await write(servers, name)
    columns = ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
    levels: list[Any] = ["read_committed", "read_uncommitted"]
    for isolation in levels:
        read = partial(
            read_table, servers, name, columns=columns, isolation_level=isolation
        )
        table = await asyncio.to_thread(read)
        records = await consumed(servers, name, isolation)
        assert table.num_rows == (18 if isolation == "read_committed" else 24)
        assert rows_of(table) == rows_of(records_to_table(records, headers=True))
        # The halves before and after a record's time are the whole.
        middle = next(r.timestamp for r in records if r.value == b"plain 6")
        before, after = [
            await asyncio.to_thread(partial(read, **{edge: middle}))
            for edge in ("end", "start")
        ]
        assert rows_of(pa.concat_tables([before, after])) == rows_of(table)
        times = pa.scalar(middle, pa.int64()).cast(pa.timestamp("ms", tz="UTC"))
        assert before.filter(pc.greater_equal(before["timestamp"], times)).num_rows == 0
        assert b"plain 6" in after["value"].to_pylist()


def rows_of(table: pa.Table) -> list[dict[str, object]]:
    """The rows, sorted."""
    place = [("partition", "ascending"), ("offset", "ascending")]
    return table.sort_by(place).to_pylist()  # type: ignore[no-any-return]


async def test_what_cannot_be_read(real_kafka: Kafka, topic: TopicFactory) -> None:
    servers, name = real_kafka.bootstrap_servers, topic()
    async with Producer(servers) as producer:
        await producer.send(name, b"one")
    cases: list[tuple[Any, Any, type[Exception]]] = [
        (f"{name}-missing", "earliest", UnknownTopicOrPartition),
        (TopicPartition(name, 1), "earliest", UnknownTopicOrPartition),
        (name, {TopicPartition(name, 0): 2}, OffsetOutOfRange),
    ]
    for what, start, expected in cases:
        with pytest.raises(expected):
            await asyncio.to_thread(read_batches, servers, what, start=start)
