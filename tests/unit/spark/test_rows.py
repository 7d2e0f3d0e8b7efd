"""Rows of Spark in a producer: which columns are written, and what fails."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from threading import Event, get_ident

import pyarrow as pa
import pytest

from kafkaio._config import ConsumerConfig, ProducerConfig
from kafkaio._consumer import Consumer
from kafkaio._producer import Producer
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BrokerError,
    UnknownTopicOrPartition,
)
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.spark._rows import RowColumns, pulled, write_rows
from kafkaio.testing import Broker
from kafkaio.testing._broker.faults import error
from kafkaio.types import Record, TopicPartition

HEADERS = "array<struct<key:string,value:binary>>"
ALL = {
    "topic": "string",
    "timestamp": "timestamp",
    "value": "binary",
    "headers": HEADERS,
    "partition": "int",
    "key": "string",
}


def test_columns_are_chosen_by_their_names() -> None:
    columns = RowColumns.of({"offset": "bigint", **ALL}, None)
    assert columns.topic is None
    assert set(columns.names) == set(ALL)
    assert pickle.loads(pickle.dumps(columns)) == columns


def test_the_option_wins_over_the_column() -> None:
    columns = RowColumns.of(ALL, "out")
    assert columns.topic == "out"
    assert "topic" not in columns.names


def test_an_unusual_type_does_not_matter_where_it_is_not_written() -> None:
    assert RowColumns.of({"value": "string", "topic": "int"}, "out").names == ("value",)


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"key": "binary"}, "the column 'value' is missing: the rows have key"),
        ({}, "the column 'value' is missing: the rows have no columns"),
        ({"value": "binary"}, "there is no topic to write to"),
    ],
)
def test_what_is_missing_is_named(types: dict[str, str], message: str) -> None:
    with pytest.raises(ArgumentValueError, match=message):
        RowColumns.of(types, None)


@pytest.mark.parametrize(
    ("name", "found", "remedy"),
    [
        ("value", "bigint", "use cast(value as string) as value, or rename it"),
        ("value", "struct<n:bigint>", "use to_json(value) as value, or"),
        ("key", "map<string,string>", "use to_json(key) as key, or"),
        ("headers", "map<string,string>", "transform(map_entries(headers), h -> "),
        ("headers", "string", "named_struct('key', ..., 'value', cast(... as binary))"),
        ("partition", "bigint", "use cast(partition as int) as partition, or"),
        ("timestamp", "bigint", "use timestamp_millis(timestamp), timestamp_micros"),
        ("timestamp", "date", "use cast(timestamp as timestamp) as timestamp, or"),
        ("topic", "binary", "use cast(topic as string) as topic, or"),
    ],
)
def test_a_wrong_type_has_a_remedy(name: str, found: str, remedy: str) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        RowColumns.of({"value": "binary", "topic": "string", name: found}, None)
    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    ("name", "found", "wanted"),
    [
        ("value", "int", "binary or string"),
        ("key", "array<binary>", "binary or string"),
        ("headers", "map<string,binary>", "array<struct<key:string,value:binary>>"),
        ("topic", "binary", "string"),
        ("partition", "bigint", "int"),
        ("timestamp", "bigint", "timestamp"),
    ],
)
def test_a_type_that_cannot_be_written(name: str, found: str, wanted: str) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        RowColumns.of(ALL | {name: found}, None)
    assert f"the column {name!r} is {found}; it must be {wanted}" in str(caught.value)


def test_a_collation_is_a_string() -> None:
    types = {"value": "string collate UTF8_LCASE"}
    assert RowColumns.of(types, "out").names == ("value",)


# ---- writing -------------------------------------------------------------------------


async def written(broker: Broker, topic: str = "out") -> list[Record]:
    config = ConsumerConfig.of(
        broker.bootstrap_servers,
        {"auto_offset_reset": "earliest", "enable_auto_commit": False},
    )
    assign = [TopicPartition(topic, number) for number in range(2)]
    consumer = Consumer.from_config(config, assign=assign, dial=broker.dial)
    records: list[Record] = []
    async with consumer:
        ends = await consumer.end_offsets(assign)
        while len(records) < sum(ends.values()):
            records += (await consumer.poll(timeout=1)).records
    return records


async def batches(*made: pa.RecordBatch) -> AsyncIterator[pa.RecordBatch]:
    for batch in made:
        yield batch


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    topics = {"out": 2, "other": 2}
    async with Broker(
        memory_transport=True, topics=topics, auto_create_topics=False
    ) as broker:
        yield broker


@pytest.fixture
async def producer(broker: Broker) -> AsyncIterator[Producer]:
    options = {"max_block_ms": 1000}  # how long a topic may be missing
    config = ProducerConfig.of(broker.bootstrap_servers, options)
    async with Producer.from_config(config, dial=broker.dial) as producer:
        yield producer


async def test_all_columns(broker: Broker, producer: Producer) -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    batch = pa.record_batch(
        {
            "offset": pa.array([7, 8]),
            "value": pa.array([b"one", None], pa.binary()),
            "key": pa.array(["k", None], pa.string()),
            "headers": pa.array([[{"key": "h", "value": b"v"}], None], kind),
            "topic": pa.array(["out", "other"]),
            "partition": pa.array([1, 0], pa.int32()),
            "timestamp": pa.array(
                [datetime(2026, 1, 1, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC")
            ),
        }
    )
    columns = RowColumns.of(ALL, None)
    assert await write_rows(producer, columns, batches(batch, batch)) == 4
    one, again = await written(broker)
    assert (one.partition, one.key, one.value) == (1, b"k", b"one")
    assert one.headers == (("h", b"v"),)
    assert one.timestamp == 1_767_225_600_000
    assert again.offset == 1
    other, _ = await written(broker, "other")
    assert (other.partition, other.key, other.value) == (0, None, None)
    assert other.headers == ()


async def test_the_topic_of_all_rows(broker: Broker, producer: Producer) -> None:
    batch = pa.record_batch({"value": ["a"] * 1000, "topic": ["other"] * 1000})
    columns = RowColumns.of({"value": "string", "topic": "string"}, "out")
    await write_rows(producer, columns, batches(*[batch] * 20))
    assert len(await written(broker)) == 20_000
    assert await written(broker, "other") == []


async def test_no_rows(broker: Broker, producer: Producer) -> None:
    columns = RowColumns.of({"value": "string"}, "out")
    assert await write_rows(producer, columns, batches()) == 0
    assert await written(broker) == []


async def test_the_first_failure_is_raised(broker: Broker, producer: Producer) -> None:
    rule = error(ErrorCode.INVALID_RECORD)
    broker.faults.on("Produce", rule, partition=("out", 1))
    partitions = pa.array([0, 1, 1], pa.int32())
    batch = pa.record_batch({"value": ["a", "b", "c"], "partition": partitions})
    columns = RowColumns.of({"value": "string", "partition": "int"}, "out")
    with pytest.raises(BrokerError, match="out-1") as caught:
        await write_rows(producer, columns, batches(batch))
    assert caught.value.code == ErrorCode.INVALID_RECORD
    assert "2 of 3" in caught.value.__notes__[0]


async def test_a_failure_ends_the_write_early(
    broker: Broker, producer: Producer
) -> None:
    broker.faults.on("Produce", error(ErrorCode.INVALID_RECORD))
    batch = pa.record_batch({"value": ["a" * 1000] * 1000})
    seen = 0

    async def endless() -> AsyncIterator[pa.RecordBatch]:
        nonlocal seen
        while True:
            seen += 1
            yield batch
            await asyncio.sleep(0.001)

    columns = RowColumns.of({"value": "string"}, "out")
    with pytest.raises(BrokerError):
        await write_rows(producer, columns, endless())
    assert seen


async def test_a_topic_that_is_missing(producer: Producer) -> None:
    columns = RowColumns.of({"value": "string"}, "nowhere")
    with pytest.raises(UnknownTopicOrPartition, match="nowhere"):
        await write_rows(producer, columns, batches(pa.record_batch({"value": ["a"]})))


async def test_a_row_without_a_topic(producer: Producer) -> None:
    batch = pa.record_batch({"value": ["a", "b"], "topic": ["out", None]})
    columns = RowColumns.of({"value": "string", "topic": "string"}, None)
    with pytest.raises(ArgumentValueError, match="topic"):
        await write_rows(producer, columns, batches(batch))


async def test_batches_are_pulled_while_the_loop_runs() -> None:
    released, threads = Event(), set()

    def blocking() -> Iterator[int]:
        for number in range(3):
            threads.add(get_ident())
            assert released.wait(10)
            yield number

    async def release() -> None:
        released.set()

    async with asyncio.TaskGroup() as group:
        found = group.create_task(collected(blocking()))
        group.create_task(release())
    assert found.result() == [0, 1, 2]
    assert get_ident() not in threads


async def collected(items: Iterator[int]) -> list[int]:
    return [item async for item in pulled(items)]


async def test_what_the_input_raises_is_raised() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await collected(broken())
