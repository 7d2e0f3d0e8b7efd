"""Tables that are taken in now and acknowledged later, against scripted brokers."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from kafkaio._machines.partitioner import key_partition
from kafkaio._producer import Producer
from kafkaio._producer.bulk import DeliveriesFailed
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ClosedError,
    KafkaTimeout,
    RecordTooLarge,
    UnknownTopicOrPartition,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import RecordMetadata, TopicPartition
from tests.fakes.broker import HANG, FakeCluster
from tests.unit.producer.broker_log import Logs
from tests.unit.producer.conftest import MakeProducer

TEXTS = [
    pa.string(),
    pa.large_string(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int64(), pa.large_string()),
]


def values(count: int) -> pa.Table:
    return pa.table({"value": [b"%d" % n for n in range(count)]})


async def full_buffer(make: MakeProducer, cluster: FakeCluster, **options: Any):
    """A producer whose buffer has room for one row, and brokers that are silent."""
    producer = make(buffer_memory=2_000, **options)
    await producer.start()
    await producer.partitions_for("one")
    cluster.on(ApiKey.PRODUCE, HANG, times=1)
    table = pa.table({"value": [b"x" * 1_500, b"y" * 1_500, b"z"]})
    return producer, table


# ---- the delivery


async def test_it_is_taken_in_before_it_is_acknowledged(
    make: MakeProducer, logs: Logs
) -> None:
    async with make() as producer:
        first = await producer.enqueue_table("one", values(3))
        second = await producer.enqueue_table("one", values(2))
        assert not first.is_done
        assert (len(first), first.written, first.failed) == (3, 0, 0)
        assert repr(first) == "<TableDelivery of 3 rows, 0 written, 0 failed>"
        for ask in (first.result, first.exception):
            with pytest.raises(UsageError, match="on their way"):
                ask()
        assert logs.values("one") == []
        written = await first
        assert (await second)["offset"].to_pylist() == [3, 4]
        assert written["offset"].to_pylist() == [0, 1, 2]
        assert await first == first.result() == written  # as often as one likes
        assert first.exception() is None
        assert (first.is_done, first.written, first.failed) == (True, 3, 0)
        assert repr(first) == "<TableDelivery of 3 rows, written>"
    assert logs.values("one") == [b"0", b"1", b"2", b"0", b"1"]


async def test_nothing_of_the_table_is_kept(make: MakeProducer) -> None:
    async with make() as producer:
        # pytest refers to what a test refers to; the memory says who else does.
        held = pa.total_allocated_bytes()
        times = pa.array(range(100_000), pa.int64())
        table = pa.table({"value": pa.array(["x"] * 100_000), "t": times})
        delivery = await producer.enqueue_table("one", table, timestamp="t")
        del table, times
        gc.collect()
        assert pa.total_allocated_bytes() - held < 100_000
        assert (await delivery)["timestamp"].cast(pa.int64()).to_pylist()[-1] == 99_999


async def test_an_empty_table(make: MakeProducer) -> None:
    async with make() as producer:
        for topic in ("one", None):
            columns = {} if topic else {"topic_column": "value"}
            empty = pa.table({"value": pa.array([], pa.string())})
            delivery = await producer.enqueue_table(topic, empty, **columns)
            assert delivery.is_done
            assert (await delivery).num_rows == len(delivery) == 0


async def test_a_table_that_nobody_awaits(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    lost: list[tuple[TopicPartition, int]] = []

    class Observer:
        def delivery_lost(
            self, tp: TopicPartition, error: BaseException, n: int
        ) -> None:
            lost.append((tp, n))

    async with make(observer=Observer()) as producer:
        await producer.enqueue_table("one", values(5))
        await producer.flush()
        assert lost == []
        logs.refuse = lambda *_: ErrorCode.TOPIC_AUTHORIZATION_FAILED
        delivery = await producer.enqueue_table("one", values(5))
        await producer.flush()
        assert isinstance(delivery.exception(), DeliveriesFailed)
        del delivery
        assert lost == []
        await producer.enqueue_table("one", values(7))
        await producer.flush()
    gc.collect()
    assert lost == [(TopicPartition("one", 0), 7)]


async def test_says_what_became_of_each_row(make: MakeProducer, logs: Logs) -> None:
    bodies = [b"POISON" if n % 3 == 1 else b"%d" % n for n in range(40)]
    async with make() as producer:
        delivery = await producer.enqueue_table("one", pa.table({"value": bodies}))
        with pytest.raises(DeliveriesFailed) as caught:
            await delivery
        assert (delivery.written, delivery.failed) == (27, 13)
        assert repr(delivery) == "<TableDelivery of 40 rows, 13 failed>"
    error = caught.value
    poisoned = list(range(1, 40, 3))
    assert str(error).startswith(
        "13 of 40 rows failed (index 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, ...); the "
        "first: "
    )
    assert str(error.failures[1]) in str(error)
    assert isinstance(error.failures, Mapping)
    assert list(error.failures) == poisoned
    assert len(error.failures) == len(poisoned)
    assert set(error.failures.values()) == set(error.exceptions)
    assert len(error.delivered) == 27
    assert 1 not in error.delivered
    assert 99 not in error.delivered
    assert 0 not in error.failures
    assert -1 not in error.failures
    assert repr(error.failures) == repr(dict(error.failures))
    assert repr(error.delivered) == repr(dict(error.delivered))
    log = logs.log("one", 0)
    for row, place in error.delivered.items():
        assert isinstance(place, RecordMetadata)
        assert log.records[place.offset].value == bodies[row]
    assert logs.values("one") == [body for body in bodies if body != b"POISON"]


async def test_a_batch_that_is_divided(make: MakeProducer, logs: Logs) -> None:
    logs.refuse = lambda _topic, _partition, batch: (
        ErrorCode.MESSAGE_TOO_LARGE if batch.count > 4 else 0
    )
    async with make() as producer:
        delivery = await producer.enqueue_table("one", values(30))
        assert (await delivery)["offset"].to_pylist() == list(range(30))
        assert delivery.written == 30


# ---- topics and partitions by column


@pytest.mark.parametrize("kind", TEXTS, ids=str)
async def test_rows_have_topics_of_their_own(
    kind: pa.DataType, make: MakeProducer, logs: Logs
) -> None:
    count = 300
    topics = ["orders" if n % 3 else "one" for n in range(count)]
    table = pa.table(
        {
            "to": pa.array(topics, pa.string()).cast(kind),
            "key": [f"k{n % 7}" for n in range(count)],
            "value": [f"v{n}" for n in range(count)],
        }
    )
    chunked = pa.concat_tables([table.slice(0, 100), table.slice(101, 199)])
    kept = [n for n in range(count) if n != 100]
    async with make(batch_size=300) as producer:
        delivery = await producer.enqueue_table(
            None, chunked, key="key", topic_column="to"
        )
        written = await delivery
    assert written.schema.names == ["topic", "partition", "offset", "timestamp"]
    assert written["topic"].to_pylist() == [topics[n] for n in kept]
    for row, number in zip(written.to_pylist(), kept, strict=True):
        record = logs.log(row["topic"], row["partition"]).records[row["offset"]]
        assert record.value == b"v%d" % number
        if row["topic"] == "orders":
            assert row["partition"] == key_partition(b"k%d" % (number % 7), 3)
    for topic, partitions in (("orders", 3), ("one", 1)):
        for partition in range(partitions):
            numbers = [int(v[1:]) for v in logs.log(topic, partition).values]
            assert numbers == sorted(numbers)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.uint16(), pa.int64()])
async def test_rows_have_partitions_of_their_own(
    kind: pa.DataType, make: MakeProducer, logs: Logs
) -> None:
    numbers = [(None, 0, 1, 2)[n % 4] for n in range(200)]
    table = pa.table(
        {
            "p": pa.array(numbers, kind),
            "k": [f"k{n}" if n % 8 else None for n in range(200)],
            "value": [f"v{n}" for n in range(200)],
        }
    )
    async with make(batch_size=400) as producer:
        written = await producer.send_table(
            "orders", table, key="k", partition_column="p"
        )
        nobody = pa.table({"value": ["last"], "p": pa.array([None])})
        await producer.send_table("orders", nobody, partition_column="p")
    for row, to in enumerate(written["partition"].to_pylist()):
        key = table["k"][row].as_py()
        if numbers[row] is not None:
            assert to == numbers[row]
        elif key is not None:
            assert to == key_partition(key.encode(), 3)
    found = [logs.log("orders", p).values for p in range(3)]
    assert sum(map(len, found)) == 201
    assert sum(b"last" in each for each in found) == 1


async def test_rows_name_both(make: MakeProducer, logs: Logs) -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "t": ["orders", "one", "orders", "orders"],
            "p": pa.array([2, 0, 1, 2], pa.int32()),
            "value": [b"a", b"b", b"c", b"d"],
        }
    ).slice(1)
    async with make() as producer:
        written = await producer.send_table(
            None, batch, topic_column="t", partition_column="p"
        )
    assert written["partition"].to_pylist() == [0, 1, 2]
    assert logs.values("one") == [b"b"]
    assert [logs.log("orders", p).values for p in range(3)] == [[], [b"c"], [b"d"]]


async def test_a_dictionary_with_words_that_no_row_uses(
    make: MakeProducer, logs: Logs
) -> None:
    words = pa.array(["", "nowhere", "one"])
    unused = pa.DictionaryArray.from_arrays(pa.array([2, 2, 2, 2]), words)
    with_null = pa.DictionaryArray.from_arrays(
        pa.array([1, 1, 1, 1]), pa.array([None, "one"])
    )
    async with make() as producer:
        for column in (unused, with_null):
            table = pa.table({"t": column, "value": ["a", "b", "c", "d"]})
            await producer.send_table(None, table, topic_column="t")
    assert logs.values("one") == [b"a", b"b", b"c", b"d"] * 2


TABLE = pa.table(
    {
        "value": [b"a", b"b", b"c"],
        "n": [0, 1, 2],
        "negative": [0, None, -3],
        "huge": [0, 2**31, 1],
        "wrapped": pa.array([0, 1, 2**63 + 5], pa.uint64()),
        "real": [0.0, 1.0, 2.0],
        "topic": ["orders", "one", "orders"],
        "nulls": ["orders", None, None],
        "empty": ["one", "", "one"],
        "nowhere": ["one", "orders", "nowhere"],
        "binary": [b"one"] * 3,
        "large": [b"a", b"b", b"x" * (2 << 20)],
        "t": [5, 6, -1],
    }
)
BY_TOPIC = {"topic": None, "topic_column": "topic"}
V, T, U = ArgumentValueError, ArgumentTypeError, UnknownTopicOrPartition
REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"topic": None}, V, "topic is missing"),
    ({"topic": 5}, T, "topic must be str"),
    ({"topic_column": "topic"}, V, "give topic or topic_column, not both"),
    (
        {"partition": 0, "partition_column": "n"},
        V,
        "give partition or partition_column, not both",
    ),
    ({"key": 5}, T, "the name of a column must be str or None, not int"),
    ({**BY_TOPIC, "topic_column": "no"}, V, "the table has no column 'no'"),
    ({**BY_TOPIC, "topic_column": "n"}, V, "column 'n' is int64; topics must be"),
    ({**BY_TOPIC, "topic_column": "binary"}, V, "column 'binary' is binary; topics"),
    (
        {**BY_TOPIC, "topic_column": "nulls"},
        V,
        "column 'nulls', row 1: a topic cannot be null",
    ),
    (
        {**BY_TOPIC, "topic_column": "empty"},
        V,
        "column 'empty', row 1: a topic cannot be empty",
    ),
    ({**BY_TOPIC, "topic_column": "nowhere"}, U, "column 'nowhere', row 2: topic"),
    ({"topic": "nowhere"}, U, "topic 'nowhere'"),
    ({"partition_column": "value"}, V, "column 'value' is binary; partitions must"),
    ({"partition_column": "real"}, V, "column 'real' is double; partitions must be"),
    (
        {"partition_column": "negative"},
        V,
        "column 'negative', row 2: there is no such partition: -3",
    ),
    (
        {"partition_column": "huge"},
        V,
        "column 'huge', row 1: there is no such partition: 2147483648",
    ),
    (
        {"partition_column": "wrapped"},
        V,
        "column 'wrapped', row 2: there is no such partition: 9223372036854775813",
    ),
    (
        {**BY_TOPIC, "partition_column": "n"},
        U,
        "column 'n', row 1: 'one' has no partition 1, only 0 to 0",
    ),
    ({"topic": "one", "partition_column": "n"}, U, "column 'n', row 1: 'one' has no"),
    (
        {**BY_TOPIC, "partition": 2},
        U,
        "topic 'one' has no partition 2",
    ),
    ({"partition": 3}, U, "topic 'orders' has no partition 3"),
    ({"timestamp": "t"}, V, "column 't', row 2: a record cannot have the timestamp"),
    ({"value": "large"}, RecordTooLarge, "row 2 takes up to 2097"),
]


@pytest.mark.parametrize(("arguments", "error", "begins"), REFUSED)
async def test_all_is_checked_before_a_row_is_taken_in(
    make: MakeProducer,
    arguments: dict[str, Any],
    error: type[Exception],
    begins: str,
) -> None:
    arguments = {"topic": "orders", **arguments}
    async with make(max_block_ms=2_000) as producer:
        for call in (producer.enqueue_table, producer.send_table):
            topic = arguments["topic"]
            rest = {name: arguments[name] for name in arguments if name != "topic"}
            with pytest.raises(error, match=f"^{begins}"):
                await call(topic, TABLE, **rest)
            assert producer.statistics().buffer.used_bytes == 0


async def test_rows_are_counted_from_the_start_of_the_table(
    make: MakeProducer,
) -> None:
    parts = [pa.table({"value": ["a"], "p": [n]}) for n in (0, 0, 1, 7)]
    table = pa.concat_tables(parts)
    async with make() as producer:
        with pytest.raises(UnknownTopicOrPartition, match="column 'p', row 3"):
            await producer.enqueue_table("orders", table, partition_column="p")


async def test_a_partition_that_the_metadata_do_not_know_yet(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    async with make() as producer:
        await producer.partitions_for("one")
        known = cluster.topics["one"].partitions
        known.append(replace(known[0]))
        table = pa.table({"value": [b"v"], "p": [1]})
        written = await producer.send_table("one", table, partition_column="p")
    assert written["partition"].to_pylist() == [1]


# ---- backpressure


async def test_a_table_larger_than_the_buffer_is_taken_in_in_order(
    make: MakeProducer, logs: Logs
) -> None:
    bodies = [b"%03d" % n * 150 for n in range(200)]
    async with make(buffer_memory=20_000, batch_size=2_000) as producer:
        delivery = await producer.enqueue_table("one", pa.table({"value": bodies}))
        assert 100 < delivery.written < 200  # it could only end when most had left
        await delivery
        assert producer.statistics().buffer.used_bytes == 0
    assert logs.values("one") == bodies


async def test_cancellation_says_how_many_rows_were_taken_in(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    producer, table = await full_buffer(make, cluster)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(producer.enqueue_table("one", table))
        while not producer.statistics().waiting_for_room:  # noqa: ASYNC110
            await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert caught.value.__notes__ == ["1 of 3 rows of the table were taken in"]
    await producer.close(timeout=0)


async def test_so_does_a_time_out(make: MakeProducer, cluster: FakeCluster) -> None:
    producer, table = await full_buffer(make, cluster, max_block_ms=300)
    with pytest.raises(KafkaTimeout, match="no space") as caught:
        await producer.enqueue_table("one", table)
    assert caught.value.__notes__ == ["1 of 3 rows of the table were taken in"]
    await producer.close(timeout=0)


async def test_so_does_a_producer_that_is_closed(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    producer, table = await full_buffer(make, cluster)
    more = pa.table({"value": [b"x" * 1_500, b"y"]})
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(stopped(producer, each)) for each in (table, more)]
        while producer.statistics().waiting_for_room < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await producer.close(timeout=0)
    assert [task.result() for task in tasks] == [
        ["1 of 3 rows of the table were taken in"],
        ["0 of 2 rows of the table were taken in"],
    ]


async def stopped(producer: Producer, table: pa.Table) -> list[str]:
    with pytest.raises(ClosedError) as caught:
        await producer.enqueue_table("one", table)
    return caught.value.__notes__


async def test_a_producer_that_is_closed_fails_what_it_took_in(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    producer = make()
    await producer.start()
    await producer.partitions_for("one")
    cluster.on(ApiKey.PRODUCE, HANG, times=9)
    delivery = await producer.enqueue_table("one", values(4))
    await producer.close(timeout=0)
    with pytest.raises(DeliveriesFailed, match=r"^4 of 4 rows failed") as caught:
        await delivery
    assert all(isinstance(each, ClosedError) for each in caught.value.exceptions)
    assert delivery.failed == 4
