"""Reading to an end, where the cluster fails, and for any shape of log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import kafkaio
from kafkaio.errors import ArgumentTypeError, ArgumentValueError, ClosedError
from kafkaio.testing import Broker
from kafkaio.types import TopicPartition
from tests.support.patience import HANGS

TPS = [TopicPartition("t", n) for n in range(3)]


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with (
        Broker(nodes=2, topics={"t": 3}, replication_factor=1) as broker,
        asyncio.timeout(HANGS),
    ):
        yield broker


def consumer(broker: Broker, **options: Any) -> kafkaio.Consumer:
    given = {"topics": "t", "auto_offset_reset": "earliest", "log": False, **options}
    return kafkaio.Consumer(broker.bootstrap_servers, **given)


Batches = dict[int, list[int]]


@settings(max_examples=25)
@given(
    batches=st.dictionaries(
        st.integers(0, 2), st.lists(st.integers(1, 6), max_size=5), max_size=3
    ),
    ends=st.lists(
        st.dictionaries(st.sampled_from(TPS), st.integers(0, 30), max_size=3),
        max_size=4,
    ),
    ways=st.lists(
        st.sampled_from(["records", "batches", "raw", "arrow", "list"]), min_size=5
    ),
    most=st.integers(1, 9),
    compression=st.sampled_from(["none", "gzip"]),
    deserializes=st.booleans(),
)
def test_ends_anywhere_cut_the_logs_into_what_they_hold(
    batches: Batches,
    ends: list[dict[Any, int]],
    ways: list[str],
    most: int,
    compression: str,
    *,
    deserializes: bool,
) -> None:
    options: dict[str, Any] = {"value_deserializer": bytes.decode}
    asyncio.run(
        _cut(batches, ends, ways, most, compression, options if deserializes else {})
    )


async def _cut(
    batches: Batches,
    ends: list[dict[Any, int]],
    ways: list[str],
    most: int,
    compression: Any,
    options: dict[str, Any],
) -> None:
    lengths = {tp: sum(batches.get(tp.partition, [])) for tp in TPS}
    async with Broker(topics={"t": 3}) as broker, asyncio.timeout(HANGS):
        async with kafkaio.Producer(
            broker.bootstrap_servers, compression_type=compression
        ) as producer:
            for partition, sizes in batches.items():
                for size in sizes:
                    new = [kafkaio.NewRecord(b"v", partition=partition)] * size
                    await producer.send_many("t", new)
        async with consumer(broker, **options) as reader:
            at = dict.fromkeys(TPS, 0)
            for end, way in zip([*ends, {}], ways, strict=False):
                # No further than the logs: an offset that is not there is waited for.
                known = {tp: min(n, lengths[tp]) for tp, n in end.items()}
                found = await _read(reader, way, known or "latest", most)
                wanted = {tp: known.get(tp, lengths[tp]) for tp in TPS}
                for tp in TPS:
                    stop = max(at[tp], wanted[tp])
                    assert found.get(tp, []) == list(range(at[tp], stop)), (tp, way)
                    at[tp] = stop


async def _read(
    reader: kafkaio.Consumer, way: str, until: Any, most: int
) -> dict[TopicPartition, list[int]]:
    found: dict[TopicPartition, list[int]] = {}
    if way == "arrow":
        async for table in reader.arrow_batches(until=until, max_records=most):
            columns = table.select(["topic", "partition", "offset"]).to_pylist()
            for row in columns:
                tp = TopicPartition(row["topic"], row["partition"])
                found.setdefault(tp, []).append(row["offset"])
        return found
    if way == "batches":
        async for batch in reader.batches(until=until, max_records=most):
            offsets = [record.offset for record in batch]
            found.setdefault(batch.topic_partition, []).extend(offsets)
        return found
    if way == "raw":
        async for whole in reader.raw_batches(until=until):
            offsets = [*range(whole.first_offset, whole.next_offset)]
            found.setdefault(whole.topic_partition, []).extend(offsets)
        return found
    if way == "list" and until == "latest":
        records = await reader.read_to_end()
    else:
        records = [record async for record in reader.records(until=until)]
    for record in records:
        found.setdefault(record.topic_partition, []).append(record.offset)
    return found


async def test_a_leader_that_is_gone_is_named(broker: Broker) -> None:
    for tp in TPS:
        broker.control.move_leader(tp, 1 if tp is TPS[1] else 0)
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        for tp in TPS:
            await producer.send("t", b"v", partition=tp.partition)
    async with consumer(broker, default_api_timeout_ms=2000) as reader:
        records = reader.records(until={TPS[0]: 1, TPS[1]: 2, TPS[2]: 1})
        seen = [(await anext(records)).topic_partition for _ in TPS]
        assert sorted(seen) == TPS
        broker.control.pause(1)
        with pytest.raises(kafkaio.RequestTimeout, match=r"t-1 at 1 of 2: no records"):
            await anext(records)
        with pytest.raises(kafkaio.RequestTimeout):  # the ends are not found
            await reader.read_to_end()
        broker.control.resume(1)
        assert await reader.read_to_end() == []


async def test_an_offset_that_is_not_there_is_waited_for(broker: Broker) -> None:
    ends = {TPS[0]: 2, TPS[1]: 0, TPS[2]: 0}
    async with (
        kafkaio.Producer(broker.bootstrap_servers) as producer,
        consumer(broker, default_api_timeout_ms=1000) as reader,
    ):
        await producer.send("t", b"0", partition=0)
        records = reader.records(until=ends)
        assert (await anext(records)).value == b"0"
        second = asyncio.create_task(anext(records))
        await producer.send("t", b"1", partition=0)
        await producer.send("t", b"2", partition=0)
        assert (await second).value == b"1"
        with pytest.raises(StopAsyncIteration):
            await anext(records)
        further = reader.records(until={**ends, TPS[0]: 9})
        assert (await anext(further)).offset == 2
        with pytest.raises(kafkaio.RequestTimeout, match="t-0 at 3 of 9"):
            await anext(further)


async def test_a_partition_that_is_assigned_later_is_read_too(broker: Broker) -> None:
    async with (
        kafkaio.Producer(broker.bootstrap_servers) as producer,
        consumer(broker, topics=None, assign=TPS[:1]) as reader,
    ):
        for tp in TPS:
            await producer.send_many(
                "t", [kafkaio.NewRecord(b"v", partition=tp.partition)] * 3
            )
        seen = []
        async for record in reader.records(until="latest"):
            if not seen:
                reader.assign(TPS[:2])
            seen.append(record.topic_partition)
        assert sorted(seen) == [TPS[0]] * 3 + [TPS[1]] * 3


async def test_a_partition_that_goes_away_does_not_count(broker: Broker) -> None:
    async with (
        kafkaio.Producer(broker.bootstrap_servers) as producer,
        consumer(broker, topics=None, assign=TPS) as reader,
    ):
        await producer.send("t", b"v", partition=0)
        seen = []
        async for record in reader.records(until={TPS[0]: 1, TPS[1]: 9, TPS[2]: 9}):
            seen.append(record.topic_partition)
            reader.assign(TPS[:1])
        assert seen == TPS[:1]


async def test_a_topic_that_is_deleted_is_an_error(broker: Broker) -> None:
    async with (
        kafkaio.Admin(broker.bootstrap_servers) as admin,
        consumer(broker, default_api_timeout_ms=3000) as reader,
    ):
        await admin.delete_topics(["t"])
        with pytest.raises((kafkaio.UnknownTopicOrPartition, kafkaio.RequestTimeout)):
            await anext(reader.records(until=dict.fromkeys(TPS, 5)))


async def test_what_is_read_all_at_once_is_finished_by_the_next_read(
    broker: Broker,
) -> None:
    async with (
        kafkaio.Producer(broker.bootstrap_servers) as producer,
        consumer(broker, group_id="g", enable_auto_commit=False) as reader,
    ):
        await producer.send_many(
            "t", [kafkaio.NewRecord(b"v", partition=0) for _ in range(3)]
        )
        assert len(await reader.read_to_end()) == 3
        await reader.commit()
        committed = (await reader.committed([TPS[0]]))[TPS[0]]
        assert committed is not None
        assert committed.offset == 3


async def test_wrong_ends_are_refused_at_once(broker: Broker) -> None:
    async with consumer(broker) as reader:
        for until, error in (
            ("soon", ArgumentValueError),
            (5, ArgumentValueError),
            ({TPS[0]: -1}, ArgumentValueError),
            (datetime(2026, 1, 1), ArgumentValueError),  # noqa: DTZ001
            (b"latest", ArgumentTypeError),
            ({"t": 1}, ArgumentTypeError),
        ):
            for make in (reader.records, reader.batches, reader.arrow_batches):
                with pytest.raises(error):
                    make(until=until)
        assert reader.records(until=datetime.now(UTC))
    with pytest.raises(ClosedError):
        reader.records(until="latest")
    with pytest.raises(ClosedError):
        await reader.read_to_end()


async def test_the_iteration_ends_when_the_consumer_is_closed(broker: Broker) -> None:
    async with consumer(broker) as reader:
        records = reader.records(until={TPS[0]: 5})
        step = asyncio.create_task(anext(records))
        await asyncio.sleep(0)
        await reader.close()
        with pytest.raises(StopAsyncIteration):
            await step
