"""Batches and tables: made when asked for, and as often as asked for."""

from __future__ import annotations

import asyncio
import sys

import pytest

from kafkaio import accelerated
from kafkaio._consumer import Batch, Consumer
from kafkaio._net.frame_pool import frame_pool
from kafkaio._records.batch import Compression
from kafkaio.arrow import schema
from kafkaio.errors import (
    AuthorizationError,
    CorruptRecord,
    DeserializationError,
    UsageError,
)
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs

ONE = TopicPartition("one", 0)
ORDERS = [TopicPartition("orders", n) for n in range(3)]
FIRST = {"assign": [ONE], "auto_offset_reset": "earliest"}


def values(start: int, stop: int) -> list[bytes]:
    return [b"%d" % n for n in range(start, stop)]


async def arrived(consumer: Consumer, count: int) -> None:
    """Wait until so many records are buffered."""
    reader = consumer._core.reader
    while reader.buffers.all_at_hand < count:
        await consumer._core._news.wait(None)


async def test_a_batch_is_read_in_every_way(logs: FakeLogs, make: MakeConsumer):
    for start in (0, 4, 8):
        logs.append("one", 0, *values(start, start + 4))
    async with make(**FIRST) as consumer:
        await arrived(consumer, 12)
        batches = consumer.batches(max_records=6)
        first, second = await anext(batches), await anext(batches)
        assert (first.first_offset, first.last_offset, len(first)) == (0, 5, 6)
        assert (second.first_offset, second.last_offset, len(second)) == (6, 11, 6)
        for batch, start in ((first, 0), (second, 6)):
            for _ in range(2):
                assert batch.values() == values(start, start + 6)
                assert batch.keys() == [None] * 6
                assert [r.offset for r in batch] == [*range(start, start + 6)]
                assert batch.to_arrow()["value"].to_pylist() == batch.values()
            records = batch.records
            assert records == [*batch]
            assert batch.records is records
            assert all(a is b for a, b in zip(batch, records, strict=True))
            assert batch.topic_partition == ONE
        assert repr(second) == "<Batch one-0 | 6 records, offsets 6-11>"


async def test_a_part_of_a_batch_of_the_log(logs: FakeLogs, make: MakeConsumer):
    logs.append("one", 0, *values(0, 10))
    async with make(**FIRST, group_id="g", enable_auto_commit=False) as consumer:
        consumer.seek(ONE, 2)
        batches = consumer.batches(max_records=3)
        batch = await anext(batches)
        assert batch.values() == values(2, 5)
        assert batch.last.offset == 4
        await consumer.commit(batch)
        assert logs.committed["one", 0] == 5
        record = await anext(consumer)
        assert record.offset == 5
        assert [r.offset for r in (await consumer.poll()).records] == [6, 7, 8, 9]
        assert batch.values() == values(2, 5)  # it stays as it was
        with pytest.raises(UsageError, match="max_records=0"):
            consumer.batches(max_records=0)


async def test_batches_with_deserializers(logs: FakeLogs, make: MakeConsumer):
    logs.append("one", 0, b"1", b"2", b"x", b"4")
    async with make(**FIRST, value_deserializer=int) as consumer:
        batches = consumer.batches()
        batch = await anext(batches)
        assert batch.values() == [1, 2]
        assert batch.keys() == [None, None]
        assert [r.value for r in batch] == [1, 2]
        assert batch.last_offset == 1
        assert batch.to_arrow()["value"].to_pylist() == [1, 2]
        with pytest.raises(DeserializationError, match="invalid literal"):
            await anext(batches)
        consumer.seek(ONE, 3)
        assert (await anext(batches)).values() == [4]


async def test_a_record_keeps_nothing_but_itself(logs: FakeLogs, make: MakeConsumer):
    logs.append("one", 0, *values(0, 5))
    async with make(**FIRST) as consumer:
        batch = await anext(consumer.batches())
        assert isinstance(batch, Batch)
        held = sys.getrefcount(batch)
        kept = [*batch]
        assert sys.getrefcount(batch) == held
        assert kept[0].value == b"0"


# Tables


async def test_tables_of_all_partitions(logs: FakeLogs, make: MakeConsumer):
    for tp in ORDERS:
        for n in range(3):
            logs.append(*tp, *values(2 * n, 2 * n + 2))
    async with make(assign=ORDERS, auto_offset_reset="earliest") as consumer:
        await arrived(consumer, 18)
        found: dict[int, list[int]] = {0: [], 1: [], 2: []}
        lengths = []
        async for table in consumer.arrow_batches(max_records=7):
            assert table.schema == schema()
            lengths.append(table.num_rows)
            for row in table.to_pylist():
                assert row["topic"] == "orders"
                assert row["value"] == b"%d" % row["offset"]
                found[row["partition"]].append(row["offset"])
            if sum(lengths) == 18:
                break
        assert found == {n: list(range(6)) for n in range(3)}
        assert lengths == [7, 7, 4]


async def test_a_table_waits_until_it_is_full_or_time_is_up(
    logs: FakeLogs, make: MakeConsumer
):
    async with make(**FIRST) as consumer:
        logs.append("one", 0, b"a", b"b")
        tables = consumer.arrow_batches(max_records=3, max_wait=2.0, headers=True)
        table = await anext(tables)
        assert table["value"].to_pylist() == [b"a", b"b"]
        assert table["headers"].to_pylist() == [[], []]
        logs.append("one", 0, b"c", b"d", b"e", b"f")
        assert (await anext(tables)).num_rows == 3
        assert (await anext(tables))["offset"].to_pylist() == [5]
        assert await consumer.position(ONE) == 6


async def test_what_arrow_cannot_hold_is_not_lost(logs: FakeLogs, make: MakeConsumer):
    logs.append("one", 0, b"1", b"[2]")
    async with make(**FIRST, value_deserializer=eval) as consumer:
        for _ in range(2):
            with pytest.raises(UsageError, match="Arrow has no column"):
                await anext(consumer.arrow_batches(max_wait=0.1))
            assert await consumer.position(ONE) == 0
        assert [r.value for r in (await consumer.poll()).records] == [1, [2]]


@pytest.mark.parametrize("table", [False, True])
async def test_what_stands_before_a_corrupt_batch_is_read(
    logs: FakeLogs, make: MakeConsumer, table: bool
):
    logs.append("one", 0, b"a", b"b")
    log = logs.log("one")
    log.append([b"bad" * 100], compression=Compression.GZIP)
    base, last, timestamp, batch = log.batches[1]
    log.batches[1] = (base, last, timestamp, batch[:70] + b"????" + batch[74:])
    async with make(**FIRST, check_crcs=False) as consumer:
        await arrived(consumer, 3)
        ways = consumer.arrow_batches() if table else consumer.batches()
        assert len(await anext(ways)) == 2
        for _ in range(2):
            with pytest.raises(CorruptRecord):
                await anext(ways)
        consumer.seek(ONE, 3)
        logs.append("one", 0, b"c")
        assert len(await anext(ways)) == 1


async def test_a_refusal_is_told_after_the_tables(logs: FakeLogs, make: MakeConsumer):
    logs.append("one", 0, b"a")
    async with make(**FIRST) as consumer:
        await arrived(consumer, 1)
        logs.fail("one", 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        logs.grow()
        await asyncio.sleep(1)
        buffer = consumer._core.reader.buffers.get(ONE)
        assert buffer is not None
        assert buffer.failure is not None
        tables = consumer.arrow_batches()
        assert (await anext(tables)).num_rows == 1
        with pytest.raises(AuthorizationError):
            await anext(tables)
        logs.append("one", 0, b"b")
        assert (await anext(tables)).num_rows == 1


async def test_a_kept_batch_keeps_no_more_than_its_records(
    logs: FakeLogs, make: MakeConsumer
):
    count = 40
    for n in range(count):
        logs.append("one", 0, b"%d" % n * 5000)
    pool = frame_pool()
    async with make(**FIRST) as consumer:
        await arrived(consumer, count)
        batches = consumer.batches(max_records=3)
        kept = [await anext(batches) for _ in range(6)]
        # The newest two share the memory of what was received; the loop that takes
        # them may have dropped them before it is used for anything else.
        assert len(pool.lent) == 1
        consumer.seek_to_end()
        assert len(pool.lent) == int(accelerated)  # pure records are made at once
        del kept[-2:]
        assert not pool.lent
        assert [batch.first_offset for batch in kept] == [0, 3, 6, 9]
        for batch in kept:
            wanted = range(batch.first_offset, batch.last_offset + 1)
            assert batch.values() == [b"%d" % n * 5000 for n in wanted]


async def test_a_batch_at_the_end_of_what_was_received_keeps_only_itself(
    logs: FakeLogs, make: MakeConsumer
):
    for n in range(10):
        logs.append("one", 0, b"%d" % n * 20_000)
    async with make(**FIRST) as consumer:
        await arrived(consumer, 10)
        batch = await anext(consumer.batches(max_records=10))
        assert not frame_pool().lent
        assert len(batch) == 10
        assert batch.values() == [b"%d" % n * 20_000 for n in range(10)]


async def test_a_paused_partition_keeps_only_its_own_bytes(
    logs: FakeLogs, make: MakeConsumer
):
    for n in range(10):
        logs.append("one", 0, b"%d" % n * 20_000)
    async with make(**FIRST) as consumer:
        await arrived(consumer, 10)
        assert (await anext(consumer)).offset == 0
        assert len(frame_pool().lent) == 1
        consumer.pause(ONE)
        assert not frame_pool().lent
        consumer.resume(ONE)
        found = [await anext(consumer) for _ in range(9)]
        assert [record.offset for record in found] == list(range(1, 10))
