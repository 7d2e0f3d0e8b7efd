"""Reading to an end: records, batches, tables and one list, on a real Kafka."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import kafkaio
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import TopicPartition
from tests.support.patience import HANGS

pytestmark = pytest.mark.timeout(120)

Values = list[bytes | None]
#: Reads to an end: the consumer, and what is passed as ``until``.
Read = Callable[[kafkaio.Consumer, Any], AsyncIterator[Values]]


async def by_record(consumer: kafkaio.Consumer, until: Any) -> AsyncIterator[Values]:
    async for record in consumer.records(until=until):
        yield [record.value]


async def by_batch(consumer: kafkaio.Consumer, until: Any) -> AsyncIterator[Values]:
    async for batch in consumer.batches(until=until, max_records=7):
        yield batch.values()


async def by_table(consumer: kafkaio.Consumer, until: Any) -> AsyncIterator[Values]:
    async for table in consumer.arrow_batches(until=until, max_records=11):
        yield table.column("value").to_pylist()


READS: dict[str, Read] = {"records": by_record, "batches": by_batch, "arrow": by_table}


async def all_of(values: AsyncIterator[Values]) -> Values:
    async with asyncio.timeout(HANGS):
        return [value async for some in values for value in some]


async def write(kafka: Kafka, topic: str, first: int, count: int) -> None:
    """Write numbers, in turn to three partitions."""
    async with kafkaio.Producer(kafka.bootstrap_servers) as producer:
        await producer.send_many(
            topic,
            [
                kafkaio.NewRecord(b"%d" % n, partition=n % 3)
                for n in range(first, first + count)
            ],
        )


def consumer(kafka: Kafka, **options: Any) -> kafkaio.Consumer:
    return kafkaio.Consumer(
        kafka.bootstrap_servers, **{"auto_offset_reset": "earliest", **options}
    )


def numbers(first: int, count: int) -> set[bytes]:
    return {b"%d" % n for n in range(first, first + count)}


@pytest.mark.parametrize("io_thread", [False, True])
@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_it_ends_where_the_logs_ended_and_goes_on_later(
    real_kafka: Kafka, topic: TopicFactory, read: Read, *, io_thread: bool
):
    name = topic(3)
    await write(real_kafka, name, 0, 100)
    async with consumer(real_kafka, topics=name, io_thread=io_thread) as reader:
        seen: Values = []
        async with asyncio.timeout(HANGS):
            async for some in read(reader, "latest"):
                if not seen:
                    await write(real_kafka, name, 100, 50)  # too late
                seen += some
        assert len(seen) == 100
        assert set(seen) == numbers(0, 100)
        assert reader.paused == frozenset()
        rest = await all_of(read(reader, "latest"))
        assert len(rest) == 50
        assert set(rest) == numbers(100, 50)
        assert await all_of(read(reader, "latest")) == []


@pytest.mark.parametrize("io_thread", [False, True])
async def test_all_of_it_as_a_list(
    real_kafka: Kafka, topic: TopicFactory, *, io_thread: bool
):
    name, empty = topic(3), topic(2)
    await write(real_kafka, name, 0, 1200)  # more than max_poll_records
    async with (
        consumer(real_kafka, topics=[name, empty], io_thread=io_thread) as reader,
        asyncio.timeout(HANGS),
    ):
        records = await reader.read_to_end()
        assert len(records) == 1200
        assert {record.value for record in records} == numbers(0, 1200)
        for number in range(3):
            of_one = [r.offset for r in records if r.partition == number]
            assert of_one == list(range(400))
        assert await reader.read_to_end() == []
        await write(real_kafka, name, 1200, 3)
        assert len(await reader.read_to_end()) == 3


@pytest.mark.parametrize("io_thread", [False, True])
@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_an_offset_within_a_batch_is_exact_and_nothing_is_lost_behind_it(
    real_kafka: Kafka, topic: TopicFactory, read: Read, *, io_thread: bool
):
    name = topic(3)
    tps = [TopicPartition(name, n) for n in range(3)]
    await write(real_kafka, name, 0, 300)
    async with consumer(real_kafka, topics=name, io_thread=io_thread) as reader:
        seen = await all_of(read(reader, {tps[0]: 17, tps[1]: 0, tps[2]: 100}))
        assert sorted(seen, key=_number) == sorted(
            [b"%d" % (3 * n) for n in range(17)]
            + [b"%d" % (3 * n + 2) for n in range(100)],
            key=_number,
        )
        assert [await reader.position(tp) for tp in tps] == [17, 0, 100]
        seen += await all_of(read(reader, {tps[0]: 18, tps[1]: 99}))
        seen += await all_of(read(reader, "latest"))
        assert len(seen) == 300
        assert set(seen) == numbers(0, 300)


def _number(value: bytes | None) -> int:
    assert value is not None
    return int(value)


async def test_a_time_is_where_the_first_record_is_not_older(
    real_kafka: Kafka, topic: TopicFactory
):
    name = topic()
    stamp = time.time_ns() // 1_000_000
    async with kafkaio.Producer(real_kafka.bootstrap_servers) as producer:
        for ago in (3000, 2000, 1000):
            await producer.send(name, b"%d" % ago, timestamp=stamp - ago)
    async with consumer(real_kafka, topics=name) as reader:
        seen = await all_of(by_record(reader, stamp - 2000))
        assert seen == [b"3000"]
        seen = await all_of(by_record(reader, stamp + 10_000))  # later than all
        assert seen == [b"2000", b"1000"]


@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_a_loop_that_is_left_leaves_nothing_behind(
    real_kafka: Kafka, topic: TopicFactory, read: Read
):
    name = topic(3)
    await write(real_kafka, name, 0, 90)
    async with consumer(real_kafka, topics=name) as reader, asyncio.timeout(HANGS):
        seen: Values = []
        # An end within a batch, which is cut.
        ends = {TopicPartition(name, n): 20 for n in range(3)}
        async for some in read(reader, ends):
            seen += some
            if len(seen) > 10:
                break
        assert reader.paused == frozenset()
        while len(seen) < 90:
            seen += [r.value for r in (await reader.poll(timeout=HANGS)).records]
        assert set(seen) == numbers(0, 90)
        assert len(seen) == 90


@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_markers_and_aborted_records_at_the_end_are_passed_over(
    real_kafka: Kafka, topic: TopicFactory, read: Read
):
    name = topic()
    tp = TopicPartition(name, 0)
    async with kafkaio.Producer(
        real_kafka.bootstrap_servers, transactional_id=name
    ) as producer:
        async with producer.transaction() as transaction:
            await transaction.send(name, b"committed")
        aborted = producer.transaction()
        await aborted.begin()
        await aborted.send(name, b"aborted")
        await aborted.abort()
    async with consumer(
        real_kafka, topics=name, isolation_level="read_committed"
    ) as reader:
        async with asyncio.timeout(HANGS):
            while (await reader.end_offsets([tp]))[tp] < 4:  # noqa: ASYNC110
                await asyncio.sleep(0.01)  # the marker comes a moment later
        assert await all_of(read(reader, "latest")) == [b"committed"]
        assert await reader.position(tp) == 4


async def test_open_transactions_are_not_waited_for(
    real_kafka: Kafka, topic: TopicFactory
):
    name = topic()
    await write_one(real_kafka, name, b"before")
    async with kafkaio.Producer(
        real_kafka.bootstrap_servers, transactional_id=name
    ) as producer:
        async with producer.transaction() as transaction:
            await transaction.send(name, b"open")
            await write_one(real_kafka, name, b"behind")
            async with consumer(
                real_kafka, topics=name, isolation_level="read_committed"
            ) as reader:
                seen = await all_of(by_record(reader, "latest"))
                assert seen == [b"before"]
        async with consumer(
            real_kafka, topics=name, isolation_level="read_committed"
        ) as reader:
            async with asyncio.timeout(HANGS):
                seen = []
                while len(seen) < 3:  # the marker comes a moment later
                    seen += await all_of(by_record(reader, "latest"))
            assert seen == [b"before", b"open", b"behind"]


async def write_one(kafka: Kafka, topic: str, value: bytes) -> None:
    async with kafkaio.Producer(kafka.bootstrap_servers) as producer:
        await producer.send(topic, value)


async def test_deleted_records_leave_nothing_to_read(
    real_kafka: Kafka, topic: TopicFactory
):
    name = topic()
    tp = TopicPartition(name, 0)
    async with kafkaio.Producer(real_kafka.bootstrap_servers) as producer:
        await producer.send_many(name, [b"v"] * 10)
    async with kafkaio.Admin(real_kafka.bootstrap_servers) as admin:
        await admin.delete_records({tp: 10})
    async with consumer(real_kafka, topics=name) as reader:
        assert await all_of(by_record(reader, "latest")) == []
        assert await reader.read_to_end() == []


async def test_finished_records_are_committed(real_kafka: Kafka, topic: TopicFactory):
    name = topic()
    tp = TopicPartition(name, 0)
    async with kafkaio.Producer(real_kafka.bootstrap_servers) as producer:
        await producer.send_many(name, [b"%d" % n for n in range(10)])
    async with consumer(real_kafka, topics=name, group_id=name) as reader:
        async with asyncio.timeout(HANGS):
            async for record in reader.records(until={tp: 8}):
                if record.offset == 5:
                    break
    # The record in hand, 5, was not finished.
    async with consumer(real_kafka, topics=name, group_id=name) as reader:
        committed = (await reader.committed([tp]))[tp]
        assert committed is not None
        assert committed.offset == 5
        assert [r.offset for r in await reader.read_to_end()] == [5, 6, 7, 8, 9]


async def test_members_of_a_group_read_their_partitions_to_the_end(
    real_kafka: Kafka, topic: TopicFactory
):
    name = topic(3)
    await write(real_kafka, name, 0, 300)
    options: dict[str, Any] = {"topics": name, "group_id": name}
    seen: Values = []

    async def read(reader: kafkaio.Consumer) -> None:
        seen.extend(await all_of(by_batch(reader, "latest")))
        await reader.commit()

    async with (
        consumer(real_kafka, **options) as one,
        consumer(real_kafka, **options) as other,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(read(one))
        group.create_task(read(other))
    # What was in hand when a partition moved may have come twice.
    assert set(seen) == numbers(0, 300)


async def test_a_member_without_partitions_ends(real_kafka: Kafka, topic: TopicFactory):
    name = topic()
    await write_one(real_kafka, name, b"v")
    options: dict[str, Any] = {"topics": name, "group_id": name}
    async with (
        consumer(real_kafka, **options) as one,
        consumer(real_kafka, **options) as other,
    ):
        found = [
            await all_of(by_record(one, "latest")),
            await all_of(by_record(other, "latest")),
        ]
        assert [b"v"] in found


async def test_paused_partitions_are_an_error_unless_others_are_left(
    real_kafka: Kafka, topic: TopicFactory
):
    name = topic(3)
    tps = [TopicPartition(name, n) for n in range(3)]
    await write(real_kafka, name, 0, 30)
    async with consumer(real_kafka, topics=name) as reader:
        reader.pause(tps[1])
        records = reader.records(until="latest")
        for _ in range(20):
            assert (await anext(records)).partition != 1
        with pytest.raises(kafkaio.UsageError, match=f"{name}-1 is paused"):
            await anext(records)
        with pytest.raises(kafkaio.UsageError, match="resume first"):
            await reader.read_to_end()
        reader.resume(tps[1])
        assert len(await reader.read_to_end()) == 10


async def test_a_cancelled_call_has_taken_nothing(
    real_kafka: Kafka, topic: TopicFactory
):
    name = topic()
    tp = TopicPartition(name, 0)
    async with kafkaio.Producer(real_kafka.bootstrap_servers) as producer:
        await producer.send_many(name, [b"%d" % n for n in range(10)])
    async with consumer(real_kafka, topics=name) as reader:
        # An offset that is not there yet keeps the step waiting, with records in hand.
        waiting = asyncio.create_task(anext(reader.batches(until={tp: 20})))
        batch = await waiting
        assert batch.last_offset == 9
        reader.seek(tp, 0)
        reader.pause(tp)
        with pytest.raises(kafkaio.UsageError):
            await reader.read_to_end()
        reader.resume(tp)
        task = asyncio.create_task(reader.read_to_end())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [r.offset for r in await reader.read_to_end()] == list(range(10))
