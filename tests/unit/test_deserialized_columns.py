"""Deserializers that make columns of whole batches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

import kafkaio
from kafkaio import Consumer, DeserializationError, Producer, TopicPartition
from kafkaio.serde import DeserializationContext
from kafkaio.testing import Broker

TP = TopicPartition("t", 0)
TYPE = pa.struct([("n", pa.int64())])


class Numbers:
    """JSON with a column of its own, once it knows a schema; `knows` is asked once."""

    def __init__(self, *, knows: bool = True) -> None:
        self.knows = knows
        self.records = self.batches = 0

    def deserialize(self, data: bytes, context: DeserializationContext) -> Any:
        self.records += 1
        return json.loads(data) if self.knows else self.learn(data)

    async def learn(self, data: bytes) -> Any:
        await asyncio.sleep(0.01)
        self.knows = True
        return json.loads(data)

    def serialize(self, value: object, context: object) -> bytes:
        return json.dumps(value).encode()

    def to_arrow(self, data: Sequence[bytes | None]) -> pa.Array | None:
        self.batches += 1
        if not self.knows:
            return None
        return pa.array(
            [None if one is None else json.loads(one) for one in data], TYPE
        )


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 2, "plain": 1}) as made:
        yield made


async def write(broker: Broker, *values: bytes | None, **place: Any) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        for value in values:
            await producer.enqueue("t", value, key=b'{"n": 1}', **place)


def made(broker: Broker, serde: Numbers, **options: Any) -> Consumer[Any, Any]:
    topic = kafkaio.Topic("t", value=serde)
    return Consumer(
        broker.bootstrap_servers,
        topics=topic,
        **{"auto_offset_reset": "earliest", "group_id": "g", **options},
    )


async def rows(consumer: Consumer[Any, Any], count: int, **options: Any) -> list[Any]:
    found: list[Any] = []
    async with asyncio.timeout(10):
        async for table in consumer.arrow_batches(**options):
            assert table.schema.field("value").type == TYPE
            assert table.schema.field("key").type == pa.binary()
            found += table.to_pylist()
            if len(found) >= count:
                return found
    raise AssertionError


@pytest.mark.parametrize("io_thread", [False, True])
async def test_tables_are_made_of_bytes(broker: Broker, *, io_thread: bool) -> None:
    for partition in (0, 1):
        await write(
            broker,
            b'{"n": 1}',
            None,
            b'{"n": 3}',
            partition=partition,
            headers=[("h", b"")],
        )
    serde = Numbers()
    async with made(broker, serde, io_thread=io_thread) as consumer:
        found = await rows(consumer, 6, headers=True)
        assert await consumer.position(TP) == 3
    by_partition: dict[int, list[Any]] = {0: [], 1: []}
    for row in found:
        by_partition[row["partition"]].append((row["offset"], row["value"]))
        assert (row["topic"], row["key"]) == ("t", b'{"n": 1}')
        assert row["headers"] == [{"name": "h", "value": b""}]
    expected = [(0, {"n": 1}), (1, None), (2, {"n": 3})]
    assert by_partition == {0: expected, 1: expected}
    assert serde.records == 0


async def test_a_schema_that_is_not_there_is_waited_for(broker: Broker) -> None:
    await write(broker, *[b'{"n": %d}' % n for n in range(20)], partition=0)
    serde = Numbers(knows=False)
    async with made(broker, serde) as consumer:
        found = await rows(consumer, 20, max_records=7)
    assert [row["value"]["n"] for row in found] == [*range(20)]
    assert [row["offset"] for row in found] == [*range(20)]
    # Only what was made while the schema was waited for was made one by one.
    assert serde.records <= 3


@pytest.mark.parametrize("knows", [False, True])
async def test_a_row_that_is_not_valid_says_where_it_is(
    broker: Broker, *, knows: bool
) -> None:
    await write(broker, b'{"n": 0}', b'{"n": 1}', b"bad", b'{"n": 3}', partition=0)
    await write(broker, b'{"n": 9}', partition=1)
    found: list[Any] = []
    async with made(broker, Numbers(knows=knows)) as consumer:
        for _ in range(2):
            with pytest.raises(DeserializationError) as caught:  # noqa: PT012
                async with asyncio.timeout(10):
                    async for table in consumer.arrow_batches():
                        found += table.to_pylist()
            assert (caught.value.topic_partition, caught.value.offset) == (TP, 2)
            assert caught.value.record.value == b"bad"
        assert {row["offset"] for row in found if row["partition"] == 0} == {0, 1}
        consumer.seek(TP, caught.value.next_offset)
        found += await rows(consumer, 1)
    mine = [row["value"]["n"] for row in found if row["partition"] == 0]
    assert mine == [0, 1, 3]


async def test_batches_have_records_and_columns(broker: Broker) -> None:
    await write(broker, *[b'{"n": %d}' % n for n in range(9)], partition=0)
    serde = Numbers(knows=False)
    async with made(broker, serde) as consumer:
        seen: list[Any] = []
        kept: list[kafkaio.Batch[Any, Any]] = []
        async with asyncio.timeout(10):
            async for batch in consumer.batches(max_records=4):
                kept.append(batch)
                seen += batch.values()
                if len(seen) == 9:
                    break
    assert seen == [{"n": n} for n in range(9)]
    # A batch that is kept gives the same at any time.
    for _ in range(2):
        columns = [batch.to_arrow()["value"] for batch in kept]
        assert all(column.type == TYPE for column in columns)
        assert [one["n"] for column in columns for one in column.to_pylist()] == [
            *range(9)
        ]
    assert kept[0].values() == kept[0].to_arrow()["value"].to_pylist()
    assert kept[0].to_arrow().schema.field("key").type == pa.binary()


async def test_batches_of_a_lane_have_columns(broker: Broker) -> None:
    await write(broker, b'{"n": 5}', partition=0)
    async with made(broker, Numbers()) as consumer, asyncio.timeout(10):
        async for lane in consumer.partitions():
            if lane.topic_partition != TP:
                continue
            batch = await anext(lane.batches())
            assert batch.to_arrow()["value"].type == TYPE
            break


class NoColumns(Numbers):
    """Its columns are not to be had, as with a schema's id in the headers."""

    def to_arrow(self, data: Sequence[bytes | None]) -> pa.Array | None:
        return None


async def test_objects_become_columns_where_bytes_do_not(broker: Broker) -> None:
    await write(broker, *[b'{"n": %d}' % n for n in range(5)], partition=0)
    serde = NoColumns()
    async with made(broker, serde) as consumer:
        found = await rows(consumer, 5)
    assert [row["value"]["n"] for row in found] == [*range(5)]
    assert serde.records == 5


async def test_topics_with_different_serdes_have_tables_of_their_own(
    broker: Broker,
) -> None:
    await write(broker, b'{"n": 5}', partition=0)
    async with Producer(broker.bootstrap_servers) as producer:
        await producer.send("plain", b"plain")
        await producer.send("plain", b"more")
    async with Consumer(
        broker.bootstrap_servers,
        topics=[kafkaio.Topic("t", value=Numbers()), "plain"],
        auto_offset_reset="earliest",
    ) as consumer:
        found: list[Any] = []
        async with asyncio.timeout(10):
            async for table in consumer.arrow_batches(max_records=3, max_wait=1):
                found.append((table["topic"].to_pylist(), table["value"].type))
                if sum(len(topics) for topics, _ in found) == 3:
                    break
    assert sorted(found, key=str) == [
        (["plain", "plain"], pa.binary()),
        (["t"], TYPE),
    ]
