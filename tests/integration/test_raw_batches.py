"""Record batches that are copied as they were fetched, on a real Kafka."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

import kafkaio
from kafkaio._records.batch import read_batches
from kafkaio.testing import Broker, disconnect_after_write, error
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import TimestampType, TopicPartition
from tests.support.patience import HANGS
from tests.unit.records.test_legacy import message, wrapper

pytestmark = pytest.mark.timeout(120)

#: Older records would be deleted by their age.
BEGUN = int(time.time() * 1000)
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]

Content = tuple[bytes | None, bytes | None, list[Any], int]


def numbered(first: int, count: int) -> list[kafkaio.NewRecord]:
    return [
        kafkaio.NewRecord(
            b"value %d" % n * 5 if n % 7 else None,
            key=b"key %d" % n,
            headers=[("n", b"%d" % n)],
            timestamp=BEGUN + n,
            partition=0,
        )
        for n in range(first, first + count)
    ]


def content(record: kafkaio.Record) -> Content:
    return record.key, record.value, list(record.headers), record.timestamp


def consumer(servers: str, topic: str, **options: Any) -> kafkaio.Consumer:
    options = {"auto_offset_reset": "earliest", "group_id": None, **options}
    return kafkaio.Consumer(servers, topics=[topic], **options)


async def read(servers: str, topic: str, **options: Any) -> list[kafkaio.Record]:
    async with consumer(servers, topic, **options) as reader, asyncio.timeout(HANGS):
        return await reader.read_to_end()


async def mirror(
    servers: str, source: str, target: str, **options: Any
) -> list[tuple[kafkaio.RawBatch, Sequence[kafkaio.RecordMetadata]]]:
    """Copy a topic as it is now; return the batches and where they went."""
    async with (
        asyncio.timeout(HANGS),
        consumer(servers, source, **options) as reader,
        kafkaio.Producer(servers) as producer,
    ):
        sent = [
            (batch, await producer.enqueue_raw(batch, target, batch.partition))
            async for batch in reader.raw_batches(until="latest")
        ]
        return [(batch, await delivery) for batch, delivery in sent]


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    topics = {"source": 1, "target": 1}
    async with Broker(topics=topics) as broker, asyncio.timeout(HANGS):
        yield broker


@pytest.mark.parametrize("codec", CODECS)
async def test_the_records_are_the_same_and_the_bytes_too(
    real_kafka: Kafka, topic: TopicFactory, codec: str
) -> None:
    servers, source, target = real_kafka.bootstrap_servers, topic(), topic()
    async with kafkaio.Producer(servers, compression_type=codec) as producer:
        for first in range(0, 300, 100):
            await producer.send_many(source, numbered(first, 100))

    copied = await mirror(servers, source, target)

    before, after = await read(servers, source), await read(servers, target)
    assert [content(record) for record in after] == [content(r) for r in before]
    assert len(after) == 300
    async with consumer(servers, target) as reader:
        again = [batch async for batch in reader.raw_batches(until="latest")]
    for (batch, places), copy in zip(copied, again, strict=True):
        assert batch.is_whole
        assert batch.compression_type == copy.compression_type == codec
        assert batch.data[61:] == copy.data[61:]
        assert [place.offset for place in places] == list(
            range(copy.base_offset, copy.last_offset + 1)
        )
        assert copy.producer_id >= 0
        assert copy.producer_id != batch.producer_id


async def test_runs_of_batches_stay_as_they_are(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    servers = real_kafka.bootstrap_servers
    source, target = topic(partitions=2), topic(partitions=2)
    async with kafkaio.Producer(servers, compression_type="zstd") as producer:
        for first in range(0, 400, 10):
            records = [
                replace(record, partition=first // 10 % 2)
                for record in numbered(first, 10)
            ]
            await producer.send_many(source, records)

    async with (
        asyncio.timeout(HANGS),
        consumer(servers, source) as reader,
        kafkaio.Producer(servers) as producer,
    ):
        batches, sent = reader.raw_batches(until="latest"), []
        while run := await batches.take(4_000):
            sent.append(
                (run, await producer.enqueue_raw(run, target, run[0].partition))
            )
        for run, delivery in sent:
            places = await delivery
            assert [*delivery.offsets] == [place.offset for place in places]
            assert len(delivery) == sum(batch.count for batch in run)
    assert max(len(run) for run, _ in sent) > 3

    async def bodies(name: str) -> list[tuple[int, int, bytes]]:
        async with consumer(servers, name) as reader:
            found = [batch async for batch in reader.raw_batches(until="latest")]
        return sorted(
            (it.partition, it.base_offset, bytes(it.data[61:])) for it in found
        )

    assert await bodies(target) == await bodies(source)


async def test_markers_and_aborted_batches_are_left_out(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    servers, source, target = real_kafka.bootstrap_servers, topic(), topic()
    name = f"raw-{uuid4().hex}"
    async with kafkaio.Producer(servers, transactional_id=name) as producer:
        for first in range(0, 60, 10):
            transaction = producer.transaction()
            await transaction.begin()
            await transaction.send_many(source, numbered(first, 10))
            await (transaction.commit() if first % 20 else transaction.abort())

    options = {"isolation_level": "read_committed"}
    committed = await mirror(servers, source, target, **options)

    kept = [record.key for record in await read(servers, target)]
    assert kept == [record.key for record in await read(servers, source, **options)]
    assert len(kept) == 30
    assert all(batch.is_transactional for batch, _ in committed)
    async with consumer(servers, target) as reader:
        async for copy in reader.raw_batches(until="latest"):
            assert not copy.is_transactional
    # Aborted records are data for whoever reads uncommitted; markers never are.
    everything = await mirror(servers, source, topic())
    assert sum(len(places) for _, places in everything) == 60


async def test_batches_are_written_in_transactions(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    servers, source, target = real_kafka.bootstrap_servers, topic(), topic()
    group, name = f"raw-{uuid4().hex}", f"raw-{uuid4().hex}"
    async with kafkaio.Producer(servers, compression_type="lz4") as producer:
        for first in range(0, 40, 10):
            await producer.send_many(source, numbered(first, 10))

    settings = {"group_id": group, "enable_auto_commit": False}
    async with (
        asyncio.timeout(HANGS),
        consumer(servers, source, **settings) as reader,
        kafkaio.Producer(servers, transactional_id=name) as producer,
    ):
        batches = reader.raw_batches()
        for attempt in range(5):
            try:
                async with producer.transaction(reader) as transaction:
                    batch = await anext(batches)
                    await transaction.send_raw(batch, target, 0)
                    assert attempt != 1
            except AssertionError:
                # The consumer went back: the next transaction has the batch again.
                assert batch.base_offset == 10
        place = TopicPartition(source, 0)
        assert (await reader.committed([place]))[place] == kafkaio.OffsetAndMetadata(
            40, leader_epoch=batch.leader_epoch
        )

    copied = await read(servers, target, isolation_level="read_committed")
    assert [record.key for record in copied] == [b"key %d" % n for n in range(40)]
    assert len(await read(servers, target)) == 50


async def test_what_was_committed_in_the_middle_of_a_batch_is_not_written_again(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    servers, source, target = real_kafka.bootstrap_servers, topic(), topic()
    group, place = f"raw-{uuid4().hex}", TopicPartition(source, 0)
    async with kafkaio.Producer(servers, compression_type="gzip") as producer:
        for first in range(0, 30, 10):
            await producer.send_many(source, numbered(first, 10))

    settings = {"group_id": group, "enable_auto_commit": False}
    async with (
        asyncio.timeout(HANGS),
        consumer(servers, source, **settings) as reader,
        kafkaio.Producer(servers) as producer,
    ):
        async for batch in reader.raw_batches(until={place: 14}):
            await producer.send_raw(batch, target, 0)
        assert await reader.position(place) == 14
        await reader.commit()
    copied = await mirror(servers, source, target, **settings)

    first, second = copied
    assert (first[0].first_offset, first[0].next_offset) == (14, 20)
    assert not first[0].is_whole
    assert second[0].is_whole
    keys = [record.key for record in await read(servers, target)]
    assert keys == [b"key %d" % n for n in range(30)]


async def test_a_part_that_was_read_as_records_is_not_handed_out_again(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    servers, source = real_kafka.bootstrap_servers, topic()
    async with kafkaio.Producer(servers) as producer:
        for first in range(0, 20, 10):
            await producer.send_many(source, numbered(first, 10))

    async with consumer(servers, source) as reader, asyncio.timeout(HANGS):
        seen = [await anext(reader) for _ in range(3)]
        whole = await anext(reader.raw_batches())
        rest = await reader.read_to_end()

    assert [record.offset for record in seen] == [0, 1, 2]
    assert [record.offset for record in whole.records()] == list(range(3, 10))
    assert [record.offset for record in rest] == list(range(10, 20))


@pytest.mark.kafka_versions("2.8+")
async def test_timestamps_of_the_broker_stay(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    config = {"message.timestamp.type": "LogAppendTime"}
    servers, source, target = (
        real_kafka.bootstrap_servers,
        topic(config=config),
        topic(),
    )
    async with kafkaio.Producer(servers) as producer:
        await producer.send_many(source, numbered(0, 10))

    [(batch, _)] = await mirror(servers, source, target)

    assert batch.timestamp_type is TimestampType.LOG_APPEND
    assert not batch.is_whole
    before, after = await read(servers, source), await read(servers, target)
    assert [content(record) for record in after] == [content(r) for r in before]
    # And the target may set its own.
    again = topic(config=config)
    [(_, places)] = await mirror(servers, target, again)
    stamps = {record.timestamp for record in await read(servers, again)}
    assert {place.timestamp for place in places} == stamps


async def test_a_topic_that_takes_smaller_batches_gets_smaller_ones(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    servers, source = real_kafka.bootstrap_servers, topic()
    target = topic(config={"max.message.bytes": "700"})
    async with kafkaio.Producer(servers, linger_ms=100) as producer:
        await producer.send_many(source, numbered(0, 100))

    copied = await mirror(servers, source, target)

    assert any(batch.is_whole and batch.size_bytes > 700 for batch, _ in copied)
    after = await read(servers, target)
    assert [record.key for record in after] == [b"key %d" % n for n in range(100)]
    offsets = [place.offset for _, places in copied for place in places]
    assert offsets == list(range(100))


@pytest.mark.not_embedded("waits for a real log cleaner")
async def test_batches_that_were_compacted(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    config = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
    }
    servers = real_kafka.bootstrap_servers
    source, target = topic(config=config), topic()
    options: dict[str, Any] = {"compression_type": "zstd", "linger_ms": 20}
    written = 0
    async with asyncio.timeout(HANGS), kafkaio.Producer(servers, **options) as producer:
        while True:
            # Each round ends a segment, and leaves the cleaner something to do.
            await producer.send_many(
                source,
                [
                    kafkaio.NewRecord(b"%d" % n, key=b"%d" % (n % 7), partition=0)
                    for n in range(written, written + 10)
                ],
            )
            written += 10
            if written > 100 and len(await read(servers, source)) < written // 2:
                break

    copied = await mirror(servers, source, target)

    kinds = {batch.is_whole for batch, _ in copied}
    assert kinds == {True, False}
    last = {record.key: record.value for record in await read(servers, target)}
    assert last == {b"%d" % (n % 7): b"%d" % n for n in range(written - 7, written)}
    for batch, places in copied:
        assert len(places) == len(batch.records())


async def test_a_target_with_a_codec_of_its_own(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    servers, source = real_kafka.bootstrap_servers, topic()
    target = topic(config={"compression.type": "gzip"})
    async with kafkaio.Producer(servers, compression_type="lz4") as producer:
        await producer.send_many(source, numbered(0, 100))

    await mirror(servers, source, target)

    before, after = await read(servers, source), await read(servers, target)
    assert [content(record) for record in after] == [content(r) for r in before]


async def test_one_after_the_other_with_records_in_between(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    servers, source, target = real_kafka.bootstrap_servers, topic(), topic()
    async with kafkaio.Producer(servers) as producer:
        await producer.send_many(source, numbered(0, 5))

    async with (
        consumer(servers, source) as reader,
        kafkaio.Producer(servers, linger_ms=1000) as producer,
    ):
        batch = await anext(reader.raw_batches())
        for number in range(3):
            _ = await producer.enqueue(target, b"before %d" % number, partition=0)
            _ = await producer.enqueue_raw(batch, target, 0)
            _ = await producer.enqueue(target, b"after %d" % number, partition=0)
        await producer.flush()

    values = [record.value for record in batch.records()]
    expected = [
        value
        for number in range(3)
        for value in (b"before %d" % number, *values, b"after %d" % number)
    ]
    assert [record.value for record in await read(servers, target)] == expected


# ---- on an embedded broker of their own ----------------------------------------------


async def test_an_answer_that_is_lost_writes_nothing_twice(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    async with kafkaio.Producer(servers, compression_type="zstd") as producer:
        for first in range(0, 100, 10):
            await producer.send_many("source", numbered(first, 10))
    broker.faults.on("Produce", disconnect_after_write(rate=0.5, seed=3, times=6))
    broker.faults.on("Produce", error(kafkaio.ErrorCode.NOT_ENOUGH_REPLICAS, times=3))

    copied = await mirror(servers, "source", "target")

    after = await read(servers, "target")
    assert [record.key for record in after] == [b"key %d" % n for n in range(100)]
    assert [place.offset for _, places in copied for place in places] == [*range(100)]


async def test_runs_are_written_once_whatever_happens_between() -> None:
    # Small batches of two partitions, whose leaders move while requests are lost.
    topics = {"source": 2, "target": 2}
    async with Broker(topics=topics, nodes=2) as broker, asyncio.timeout(HANGS):
        servers = broker.bootstrap_servers
        async with kafkaio.Producer(servers) as producer:
            for first in range(0, 600, 5):
                records = [
                    replace(record, partition=first // 5 % 2)
                    for record in numbered(first, 5)
                ]
                await producer.send_many("source", records)
        broker.faults.on("Produce", disconnect_after_write(rate=0.3, seed=5, times=8))
        broker.faults.on(
            "Produce", error(kafkaio.ErrorCode.NOT_ENOUGH_REPLICAS, times=3)
        )
        async with (
            consumer(servers, "source") as reader,
            kafkaio.Producer(servers, retry_backoff_ms=10) as producer,
        ):
            batches, sent = reader.raw_batches(until="latest"), []
            while run := await batches.take(2_000):
                partition = run[0].partition
                sent.append(await producer.enqueue_raw(run, "target", partition))
                tp = TopicPartition("target", partition)
                broker.control.move_leader(tp, len(sent) % 2)
                await asyncio.sleep(0)
            for delivery in sent:
                assert [*delivery.offsets] == [it.offset for it in await delivery]
        before, after = await read(servers, "source"), await read(servers, "target")
        for partition in range(2):
            written = [content(it) for it in after if it.partition == partition]
            assert written == [
                content(it) for it in before if it.partition == partition
            ]
            assert len(written) == 300


async def test_several_batches_some_of_which_go_the_long_way(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    async with kafkaio.Producer(servers) as producer:
        for first in range(0, 40, 10):
            await producer.send_many("source", numbered(first, 10))
    place = TopicPartition("source", 0)
    async with kafkaio.Consumer(servers, assign=[place]) as reader:
        reader.seek(place, 3)
        found = [batch async for batch in reader.raw_batches(until="latest")]
    async with kafkaio.Producer(servers) as producer:
        # The first begins in the middle of a batch, and one is left out.
        delivery = await producer.enqueue_raw([*found[:2], found[3]], "target", 0)
        places = await delivery
        nothing = await producer.enqueue_raw([], "target", 0)
        assert nothing.is_done
        assert [*(await nothing)] == []
        with pytest.raises(kafkaio.ArgumentTypeError):
            await producer.enqueue_raw([found[0], b""], "target", 0)  # type: ignore[list-item]
    assert [*delivery.offsets] == [*range(3, 20), *range(30, 40)]
    assert [place.offset for place in places] == list(range(27))
    after = await read(servers, "target")
    assert [it.key for it in after] == [b"key %d" % n for n in delivery.offsets]


@pytest.mark.parametrize("magic", [0, 1])
async def test_messages_of_old_formats_become_records(
    broker: Broker, magic: int
) -> None:
    # No broker of today keeps such logs, so these are as old ones had them.
    inner = b"".join(
        message(magic, n, b"%d" % n, timestamp=BEGUN + n) for n in range(10)
    )
    [old] = read_batches(wrapper(magic, 9, inner, timestamp=BEGUN + 9))
    whole, part = (
        kafkaio.RawBatch(TopicPartition("source", 0), old, place)
        for place in ((0, 10), (4, 7))
    )
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        delivery = await producer.enqueue_raw(part, "target", 0)
        await producer.send_raw(whole, "target", 0)

    assert [*delivery.offsets] == [4, 5, 6]
    after = await read(broker.bootstrap_servers, "target")
    assert [record.value for record in after] == [
        b"%d" % n for n in (*range(4, 7), *range(10))
    ]
    times = {record.timestamp for record in after}
    assert times == ({BEGUN + n for n in range(10)} if magic else {-1})


async def test_a_batch_that_cannot_be_written_fails_as_a_whole(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    async with kafkaio.Producer(servers) as producer:
        await producer.send_many("source", numbered(0, 10))
    broker.faults.on(
        "Produce", error(kafkaio.ErrorCode.TOPIC_AUTHORIZATION_FAILED, times=1)
    )

    async with (
        consumer(servers, "source") as reader,
        kafkaio.Producer(servers) as producer,
    ):
        batch = await anext(reader.raw_batches())
        with pytest.raises(kafkaio.DeliveriesFailed) as failed:
            await producer.send_raw(batch, "target", 0)
        assert sorted(failed.value.failures) == list(range(10))
        # The next one finds no gap.
        assert (await producer.send_raw(batch, "target", 0))[0].offset == 0
        with pytest.raises(kafkaio.UnknownTopicOrPartition):
            await producer.send_raw(batch, "target", 1)
        with pytest.raises(kafkaio.ArgumentTypeError):
            await producer.send_raw(batch.data, "target", 0)  # type: ignore[arg-type]


async def test_buffer_memory_is_a_limit_for_batches_too(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    async with kafkaio.Producer(servers) as producer:
        for first in range(0, 100, 10):
            await producer.send_many("source", numbered(first, 10))
    async with consumer(servers, "source") as reader:
        batches = [batch async for batch in reader.raw_batches(until="latest")]
    largest = max(batch.size_bytes for batch in batches)
    options = {"buffer_memory": 2 * largest, "max_block_ms": 300, "linger_ms": 0}
    rule = broker.faults.on("Produce", error(kafkaio.ErrorCode.NOT_ENOUGH_REPLICAS))

    async with kafkaio.Producer(servers, **options) as producer:
        taken = [await producer.enqueue_raw(batches[0], "target", 0)]
        taken += [await producer.enqueue_raw(batches[1], "target", 0)]
        with pytest.raises(kafkaio.KafkaTimeout):
            await producer.enqueue_raw(batches[2], "target", 0)
        assert producer.statistics().buffer.used_bytes <= 2 * largest
        broker.faults.remove(rule)
        for delivery in taken:
            await delivery
        assert producer.statistics().buffer.used_bytes == 0
    # What does not fit at all goes the long way, and is divided.
    small = {"buffer_memory": largest - 1, "max_request_size": largest - 1}
    async with kafkaio.Producer(servers, **small) as producer:
        big = max(batches, key=lambda batch: batch.size_bytes)
        assert len(await producer.send_raw(big, "target", 0)) == 10


async def test_a_cancelled_step_has_taken_nothing(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    async with consumer(servers, "source") as reader:
        batches = reader.raw_batches()
        step = asyncio.ensure_future(anext(batches))
        await asyncio.sleep(0)
        step.cancel()
        await asyncio.wait([step])
        async with kafkaio.Producer(servers) as producer:
            await producer.send_many("source", numbered(0, 10))
        assert (await anext(batches)).first_offset == 0
        await reader.close()
        with pytest.raises(StopAsyncIteration):
            await anext(batches)


async def test_batches_come_from_an_io_thread(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    async with kafkaio.Producer(servers) as producer:
        for first in range(0, 30, 10):
            await producer.send_many("source", numbered(first, 10))

    settings = {"io_thread": True, "group_id": "g", "enable_auto_commit": False}
    async with consumer(servers, "source", **settings) as reader:
        seen = []
        async for batch in reader.raw_batches(until="latest"):
            seen += [record.offset for record in batch.records()]
            if batch.next_offset == 20:
                await reader.commit()
        assert seen == list(range(30))
        place = TopicPartition("source", 0)
        committed = (await reader.committed([place]))[place]
        assert committed is not None
        assert committed.offset == 20
