"""Rows of Arrow tables against scripted brokers, on a virtual clock."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest

from kafkaio._machines.partitioner import key_partition
from kafkaio._producer.bulk import DeliveriesFailed
from kafkaio.errors import (
    ArgumentValueError,
    BrokerError,
    ClosedError,
    KafkaTimeout,
    RecordTooLarge,
    UnknownTopicOrPartition,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from tests.fakes.broker import HANG, FakeCluster
from tests.unit.producer.broker_log import Logs
from tests.unit.producer.conftest import MakeProducer


def landed(table: pa.Table) -> list[tuple[int, int]]:
    assert table.schema.names == ["partition", "offset", "timestamp"]
    assert table.schema.field("timestamp").type == pa.timestamp("ms", tz="UTC")
    rows = zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True)
    return list(rows)


async def test_rows_go_where_their_keys_belong(make: MakeProducer, logs: Logs) -> None:
    keys = [f"k{n % 11}" if n % 5 else None for n in range(300)]
    table = pa.table(
        {
            "id": keys,
            "body": pa.array([f"v{n}" for n in range(300)], pa.large_string()),
            "at": range(1_000, 1_300),
            "h": pa.array(
                [[("n", b"%d" % n)] for n in range(300)],
                pa.map_(pa.string(), pa.binary()),
            ),
        }
    )
    chunked = pa.concat_tables([table.slice(0, 120), table.slice(120)])
    async with make(batch_size=400) as producer:
        written = await producer.send_table(
            "orders", chunked, key="id", value="body", headers="h", timestamp="at"
        )
    for row, (partition, offset) in enumerate(landed(written)):
        record = logs.log("orders", partition).records[offset]
        key = keys[row] and keys[row].encode()
        assert (record.key, record.value) == (key, b"v%d" % row)
        assert record.timestamp == 1_000 + row
        assert record.headers == (("n", b"%d" % row),)
        if key is not None:
            assert partition == key_partition(key, 3)
    assert [time.timestamp() for time in written["timestamp"].to_pylist()] == [
        (1_000 + row) / 1_000 for row in range(300)
    ]
    for partition in range(3):
        numbers = [int(v[1:]) for v in logs.log("orders", partition).values]
        assert numbers == sorted(numbers)
    assert sum(len(logs.log("orders", p).records) for p in range(3)) == 300


async def test_rows_for_one_partition(make: MakeProducer, logs: Logs) -> None:
    batch = pa.RecordBatch.from_pydict({"k": ["a", "b"], "v": [None, "x"]})
    async with make() as producer:
        written = await producer.send_table(
            "orders", batch, key="k", value="v", partition=2
        )
        tombstones = await producer.send_table("orders", batch, value=None, partition=2)
        empty = await producer.send_table("orders", batch.slice(2), value="v")
    assert landed(written) == [(2, 0), (2, 1)]
    assert landed(tombstones) == [(2, 2), (2, 3)]
    assert landed(empty) == []
    assert logs.log("orders", 2).values == [None, b"x", None, None]


async def test_offsets_are_null_without_acks(make: MakeProducer) -> None:
    async with make(acks=0, enable_idempotence=False) as producer:
        written = await producer.send_table("one", pa.table({"value": ["a", "b"]}))
    assert landed(written) == [(0, None), (0, None)]


async def test_a_table_larger_than_the_buffer(make: MakeProducer, logs: Logs) -> None:
    values = [b"%03d" % n * 150 for n in range(200)]
    async with make(buffer_memory=20_000, batch_size=2_000) as producer:
        written = await producer.send_table("one", pa.table({"value": values}))
        assert producer.statistics().buffer.used_bytes == 0
    assert landed(written) == [(0, offset) for offset in range(200)]
    assert logs.values("one") == values


async def test_the_loop_gets_its_turns(make: MakeProducer) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with make() as producer, asyncio.TaskGroup() as group:
        counter = group.create_task(count())
        turns = 0
        await producer.send_table("one", pa.table({"value": [b"x" * 1_000] * 1_000}))
        counter.cancel()
    assert turns > 10


async def test_a_custom_partitioner_is_asked(make: MakeProducer, logs: Logs) -> None:
    asked = []

    def choose(topic: str, key: object, value: bytes, count: int) -> int:
        asked.append((topic, key, value, count))
        return 1

    table = pa.table({"k": ["a", None], "value": ["x", "y"]})
    async with make(partitioner=choose) as producer:
        written = await producer.send_table("orders", table, key="k")
    assert landed(written) == [(1, 0), (1, 1)]
    assert asked == [("orders", b"a", b"x", 3), ("orders", None, b"y", 3)]


async def test_serializers_are_not_asked(make: MakeProducer, logs: Logs) -> None:
    async with make(value_serializer=lambda _: b"no") as producer:
        await producer.send_table("one", pa.table({"value": ["x"]}))
    assert logs.values("one") == [b"x"]


async def test_all_is_checked_before_a_row_is_taken_in(make: MakeProducer) -> None:
    table = pa.table(
        {
            "value": [b"a", b"b"],
            "n": [1, 2],
            "t": [5, -1],
            "large": [b"a", b"x" * (2 << 20)],
        }
    )
    async with make() as producer:
        with pytest.raises(ArgumentValueError, match="no column 'y'"):
            await producer.send_table("one", table, key="y")
        with pytest.raises(ArgumentValueError, match="column 'n' is int64"):
            await producer.send_table("one", table, value="n")
        with pytest.raises(ArgumentValueError, match="the timestamp -1"):
            await producer.send_table("one", table, timestamp="t")
        with pytest.raises(RecordTooLarge, match="row 1 takes up to 2097"):
            await producer.send_table("one", table, value="large")
        with pytest.raises(ArgumentValueError, match="negative"):
            await producer.send_table("one", table, partition=-1)
        with pytest.raises(UnknownTopicOrPartition):
            await producer.send_table("nowhere", table)
        assert producer.statistics().buffer.used_bytes == 0
    with pytest.raises(ClosedError):
        await producer.send_table("one", table)


async def test_says_which_rows_failed(make: MakeProducer, logs: Logs) -> None:
    table = pa.table({"value": [b"a", b"POISON", b"c", b"POISON"]})
    async with make() as producer:
        with pytest.raises(DeliveriesFailed) as caught:
            await producer.send_table("one", table)
    assert sorted(caught.value.failures) == [1, 3]
    assert {n: m.offset for n, m in caught.value.delivered.items()} == {0: 0, 2: 1}
    assert logs.values("one") == [b"a", b"c"]


async def test_says_what_could_not_be_taken_in(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    async with make(buffer_memory=2_000, max_block_ms=300) as producer:
        await producer.partitions_for("one")
        cluster.on(ApiKey.PRODUCE, HANG, times=1)
        table = pa.table({"value": [b"x" * 1_500, b"y" * 1_500, b"z"]})
        with pytest.raises(DeliveriesFailed) as caught:
            await producer.send_table("one", table)
    assert sorted(caught.value.failures) == [1, 2]
    assert isinstance(caught.value.failures[1], KafkaTimeout)
    assert caught.value.delivered[0].offset == 0


async def test_a_batch_that_is_divided(make: MakeProducer, logs: Logs) -> None:
    logs.refuse = lambda _topic, _partition, batch: (
        ErrorCode.MESSAGE_TOO_LARGE if batch.count > 4 else 0
    )
    values = [b"%d" % n for n in range(10)]
    async with make() as producer:
        written = await producer.send_table("one", pa.table({"value": values}))
    assert landed(written) == [(0, offset) for offset in range(10)]
    assert logs.values("one") == values


async def test_cancelling_ends_the_wait_and_not_the_records(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    async with make() as producer:
        await producer.partitions_for("one")
        async with asyncio.TaskGroup() as group:
            table = pa.table({"value": [b"a", b"b"]})
            sending = group.create_task(producer.send_table("one", table))
            while not producer.statistics().buffer.used_bytes:  # noqa: ASYNC110
                await asyncio.sleep(0)
            sending.cancel()
        await producer.flush()
    assert logs.values("one") == [b"a", b"b"]
    assert producer.statistics().buffer.used_bytes == 0


async def test_every_row_of_a_refused_table_fails(
    make: MakeProducer, logs: Logs
) -> None:
    logs.refuse = lambda *_: ErrorCode.TOPIC_AUTHORIZATION_FAILED
    async with make() as producer:
        with pytest.raises(DeliveriesFailed) as caught:
            await producer.send_table("one", pa.table({"value": [b"a", b"b"]}))
    assert sorted(caught.value.failures) == [0, 1]
    assert all(isinstance(e, BrokerError) for e in caught.value.failures.values())
