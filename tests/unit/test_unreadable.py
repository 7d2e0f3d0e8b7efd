"""Batches and records that cannot be read: the same in every way of reading."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import crc32c
import pytest

import kafkaio
from kafkaio import (
    Consumer,
    CorruptRecord,
    DeserializationError,
    OffsetRange,
    Producer,
    Record,
    RecordTooLarge,
    TopicPartition,
    messages,
)
from kafkaio._consumer.reading.preparation import Preparation
from kafkaio._records.batch import RecordBatch, encode_batch, read_batches
from kafkaio._records.compression import Compression
from kafkaio.arrow import read_ranges
from kafkaio.testing import Broker

TP = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)
MIB = 2**20
#: Offsets of the batch in the middle, and the one after it.
BAD, BEHIND = 4, 6
GOOD = [b"0", b"1", b"2", b"3"]
LAST = [b"6", b"7"]

Damage = Callable[[bytearray], None]
#: Takes what is there; returns the values before the error.
Way = Callable[[Consumer, list[bytes | None]], Awaitable[None]]


def wrong_checksum(batch: bytearray) -> None:
    batch[-2] ^= 0xFF


def wrong_contents(batch: bytearray) -> None:
    # The records no longer decompress, and the checksum is right.
    batch[75:79] = b"\xff" * 4
    struct.pack_into(">I", batch, 17, crc32c.crc32c(bytes(batch[21:])))


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 2, "dead": 1, "out": 1}, data_dir=tmp_path) as made:
        yield made


async def write(broker: Broker, *values: bytes) -> None:
    """Append one batch, as a producer without limits would."""
    batch = encode_batch(
        [(1_000, None, value, ()) for value in values], compression=Compression.GZIP
    )
    data = messages.PartitionProduceData(index=0, records=batch)
    async with kafkaio.Client(broker.bootstrap_servers) as client:
        found = await client.request(
            messages.MetadataRequest(topics=[messages.MetadataRequestTopic(name="t")])
        )
        topic = messages.TopicProduceData(
            name="t", topic_id=found.topics[0].topic_id, partition_data=[data]
        )
        reply = await client.request(
            messages.ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic]),
            to=kafkaio.Leader(TP),
        )
        assert reply.responses[0].partition_responses[0].error_code == 0


async def fill(
    broker: Broker, folder: Path, damage: Damage | None, middle: bytes = b"bad"
) -> None:
    """Write four records, a batch of two that is damaged, and two records."""
    for values in (GOOD, [middle, middle], LAST):
        await write(broker, *values)
    if damage is not None:
        spoil(folder, damage)


def spoil(folder: Path, damage: Damage) -> None:
    """Damage the batch in the middle in the files of the broker."""
    [path] = folder.rglob("t-0/*.log")
    data = bytearray(path.read_bytes())
    position = 0
    for batch in read_batches(bytes(data)):
        if batch.base_offset == BAD:
            raw = data[position : position + batch.size_bytes]
            damage(raw)
            data[position : position + batch.size_bytes] = raw
        position += batch.size_bytes
    with path.open("r+b") as file:
        file.write(data)


async def by_poll(consumer: Consumer, values: list[bytes | None]) -> None:
    while True:
        poll = await consumer.poll(timeout=0.2)
        if not poll.records:
            return
        values += [record.value for record in poll.records]


async def by_iteration(consumer: Consumer, values: list[bytes | None]) -> None:
    async for record in consumer:
        values.append(record.value)


async def by_batches(consumer: Consumer, values: list[bytes | None]) -> None:
    async for batch in consumer.batches(max_wait=0.05):
        values += batch.values()


async def by_tables(consumer: Consumer, values: list[bytes | None]) -> None:
    async for table in consumer.arrow_batches(max_wait=0.05):
        values += table["value"].to_pylist()


#: The lane of a consumer: it is given out once.
lanes: WeakKeyDictionary[Consumer, kafkaio.Lane] = WeakKeyDictionary()


async def by_lane(consumer: Consumer, values: list[bytes | None]) -> None:
    while consumer not in lanes:
        lane = await anext(consumer.partitions())
        if lane.topic_partition == TP:
            lanes[consumer] = lane
    async for record in lanes[consumer]:
        values.append(record.value)


async def by_run(consumer: Consumer, values: list[bytes | None]) -> None:
    async def handle(record: Record) -> None:
        values.append(record.value)

    await consumer.run(handle, ordering="partition")


WAYS: list[Way] = [by_poll, by_iteration, by_batches, by_tables, by_lane, by_run]


async def read(
    way: Way, consumer: Consumer, values: list[bytes | None], count: int
) -> None:
    """Read until an error, or for long enough to see that nothing more comes."""
    with suppress(TimeoutError):
        async with asyncio.timeout(0.5 if len(values) >= count else 10):
            reading = asyncio.ensure_future(way(consumer, values))
            try:
                while len(values) < count and not reading.done():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.1)
                if reading.done():
                    reading.result()
            finally:
                reading.cancel()
                await asyncio.wait([reading])


async def fails(way: Way, consumer: Consumer, values: list[bytes | None]) -> Any:
    kinds = (CorruptRecord, RecordTooLarge, DeserializationError)
    with pytest.raises(kinds) as caught:  # noqa: PT012 - the time limit
        async with asyncio.timeout(10):
            await way(consumer, values)
            await way(consumer, values)
    return caught.value


@pytest.mark.parametrize("io_thread", [False, True])
@pytest.mark.parametrize("damage", [wrong_checksum, wrong_contents])
@pytest.mark.parametrize("way", WAYS)
async def test_a_corrupt_batch_says_where_it_is_and_can_be_left_out(
    broker: Broker, tmp_path: Path, way: Way, damage: Damage, *, io_thread: bool
) -> None:
    await fill(broker, tmp_path, damage)
    values: list[bytes | None] = []
    async with Consumer(
        broker.bootstrap_servers,
        topics="t",
        group_id="g",
        auto_offset_reset="earliest",
        io_thread=io_thread,
    ) as consumer:
        for _ in range(2):  # it stays where it is
            error = await fails(way, consumer, values)
            assert isinstance(error, CorruptRecord)
            assert (error.topic_partition, error.offset) == (TP, BAD)
            assert error.raw[:8] == BAD.to_bytes(8, "big")
            assert values == GOOD
        assert await consumer.position(TP) == BAD
        consumer.seek(error.topic_partition, error.next_offset)
        await read(way, consumer, values, 6)
        assert values[4:] == LAST


def number(data: bytes) -> int:
    return int(data)


@pytest.mark.parametrize("io_thread", [False, True])
@pytest.mark.parametrize("way", [way for way in WAYS if way is not by_tables])
async def test_a_deserializer_that_raises_says_which_record(
    broker: Broker, tmp_path: Path, way: Way, *, io_thread: bool
) -> None:
    await fill(broker, tmp_path, None)
    values: list[Any] = []
    async with Consumer(
        broker.bootstrap_servers,
        topics="t",
        group_id="g",
        auto_offset_reset="earliest",
        io_thread=io_thread,
        value_deserializer=number,
    ) as consumer:
        error = await fails(way, consumer, values)
        assert isinstance(error, DeserializationError)
        assert (error.topic_partition, error.offset) == (TP, BAD)
        assert not error.is_key
        assert error.record.value == b"bad"
        assert isinstance(error.__cause__, ValueError)
        assert values == [0, 1, 2, 3]


@pytest.mark.parametrize("damage", [wrong_checksum, wrong_contents])
async def test_ranges_say_which_batch(
    broker: Broker, tmp_path: Path, damage: Damage
) -> None:
    await fill(broker, tmp_path, damage)
    values: list[bytes | None] = []
    places: list[object] = []
    async with kafkaio.Client(broker.bootstrap_servers) as client:
        start = 0
        while start < 8:
            try:
                async for batch in read_ranges(client, [OffsetRange(TP, start, 8)]):
                    values += batch["value"].to_pylist()
                start = 8
            except CorruptRecord as error:
                places.append((error.topic_partition, error.offset))
                start = error.next_offset
    assert places == [(TP, BAD)]
    assert values == [*GOOD, *LAST]


@pytest.mark.parametrize("damage", [wrong_checksum, wrong_contents])
async def test_exactly_once_raises_behind_what_it_copied(
    broker: Broker, tmp_path: Path, damage: Damage
) -> None:
    await fill(broker, tmp_path, damage)
    seen: list[bytes | None] = []

    async def copy(tx: Any, records: list[Record]) -> None:
        seen.extend(record.value for record in records)

    async with (
        Producer(broker.bootstrap_servers, transactional_id="x") as producer,
        Consumer(
            broker.bootstrap_servers,
            topics="t",
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer,
    ):
        with pytest.raises(CorruptRecord) as caught:
            async with asyncio.timeout(10):
                await kafkaio.exactly_once(consumer, producer, copy)
        assert (caught.value.topic_partition, caught.value.offset) == (TP, BAD)
        assert (await consumer.committed([TP]))[TP].offset == BAD
    assert seen == GOOD


async def test_what_run_finished_before_the_error_is_committed(
    broker: Broker, tmp_path: Path
) -> None:
    await fill(broker, tmp_path, wrong_checksum)
    async with Consumer(
        broker.bootstrap_servers,
        topics="t",
        group_id="g",
        auto_offset_reset="earliest",
    ) as consumer:
        slow = asyncio.Event()
        seen: list[bytes | None] = []

        async def handle(record: Record) -> None:
            await slow.wait()
            seen.append(record.value)

        running = asyncio.ensure_future(consumer.run(handle))
        await asyncio.sleep(0.3)
        assert not running.done()  # the handlers are waited for, not cancelled
        slow.set()
        with pytest.raises(CorruptRecord) as caught:
            await running
        assert caught.value.offset == BAD
        assert seen == GOOD
        assert (await consumer.committed([TP]))[TP].offset == BAD


@pytest.mark.parametrize("damage", [wrong_checksum, wrong_contents])
async def test_run_in_transactions_commits_what_is_before(
    broker: Broker, tmp_path: Path, damage: Damage
) -> None:
    await fill(broker, tmp_path, damage)
    seen: list[bytes | None] = []

    async def handle(tx: Any, record: Record) -> None:
        del tx
        seen.append(record.value)

    servers = broker.bootstrap_servers
    async with (
        Producer(servers, transactional_id="x") as producer,
        Consumer(
            servers,
            topics="t",
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer,
    ):
        for _ in range(2):
            with pytest.raises(CorruptRecord) as caught:
                async with asyncio.timeout(10):
                    await consumer.run(handle, producer=producer, max_wait=0.05)
            assert (caught.value.topic_partition, caught.value.offset) == (TP, BAD)
            assert (await consumer.committed([TP]))[TP].offset == BAD
    assert sorted(seen) == GOOD


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("damage", [wrong_checksum, wrong_contents])
async def test_a_dead_letter_gets_the_bytes_of_the_batch(
    broker: Broker, tmp_path: Path, damage: Damage, *, transactional: bool
) -> None:
    await fill(broker, tmp_path, damage)
    seen: list[bytes | None] = []

    async def handle(*args: Any) -> None:
        seen.append(args[-1].value)

    servers = broker.bootstrap_servers
    options: dict[str, Any] = {"transactional_id": "x"} if transactional else {}
    async with (
        Producer(servers, **options) as producer,
        Consumer(
            servers,
            topics="t",
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=not transactional,
        ) as consumer,
    ):
        running = asyncio.ensure_future(
            consumer.run(
                handle,
                ordering="partition",
                retry=kafkaio.Retry(attempts=3),
                dead_letter=kafkaio.DeadLetter(producer, "dead"),
                producer=producer if transactional else None,
                max_wait=0.05,
            )
        )
        async with asyncio.timeout(20):
            while len(seen) < 6 and not running.done():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await consumer.close()
        await running
    assert seen == [*GOOD, *LAST]
    async with Consumer(
        servers,
        topics=["dead", "t"],
        group_id="g",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        assert (await consumer.committed([TP]))[TP].offset == 8
        [record] = (await consumer.poll(timeout=10)).records
    [letter] = read_batches(record.value, check_crcs=False)
    assert (letter.base_offset, letter.count) == (BAD, 2)
    headers = dict(record.headers)
    assert headers["dead-letter-offset"] == b"4"
    assert headers["dead-letter-error"] == b"kafkaio.CorruptRecord"


async def test_a_batch_that_was_damaged_on_the_way_is_no_dead_letter(
    broker: Broker, tmp_path: Path
) -> None:
    await fill(broker, tmp_path, None)
    seen: list[bytes | None] = []
    dead: list[Record] = []

    async def handle(record: Record) -> None:
        if not seen:
            await asyncio.sleep(0.1)
        seen.append(record.value)

    async def bury(record: Record, error: Exception) -> None:
        dead.append(record)

    checks = 0
    check = RecordBatch.check_crc

    def damaged(self: RecordBatch) -> None:
        nonlocal checks
        if self.base_offset == BAD and not checks:
            checks += 1
            raise CorruptRecord("on the way")
        check(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RecordBatch, "check_crc", damaged)
        async with Consumer(
            broker.bootstrap_servers,
            topics="t",
            group_id="g",
            auto_offset_reset="earliest",
        ) as consumer:
            running = asyncio.ensure_future(
                consumer.run(handle, ordering="partition", dead_letter=bury)
            )
            async with asyncio.timeout(20):
                while len(seen) < 8 and not running.done():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            await consumer.close()
            await running
    assert not dead
    assert checks == 1
    assert len(seen) == 8


# Large batches


async def test_a_large_batch_is_decompressed_with_turns_of_the_loop(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(broker, tmp_path, None, b"x" * 20 * MIB)
    set_aside: list[TopicPartition] = []
    is_ready = Preparation.is_ready

    def look(self: Preparation, buffer: Any) -> bool:
        ready = is_ready(self, buffer)
        if not ready:
            set_aside.append(buffer.tp)
        return ready

    monkeypatch.setattr(Preparation, "is_ready", look)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    servers = broker.bootstrap_servers
    for way in WAYS:
        values: list[bytes | None] = []
        async with Consumer(
            servers, topics="t", group_id=way.__name__, auto_offset_reset="earliest"
        ) as consumer:
            counting = asyncio.ensure_future(count())
            await read(way, consumer, values, 8)
            counting.cancel()
        assert [len(value or b"") for value in values] == [1] * 4 + [20 * MIB] * 2 + [
            1
        ] * 2
    assert set_aside == [TP] * len(WAYS)
    assert turns > 100 * len(WAYS)


@pytest.mark.parametrize("way", WAYS)
async def test_the_limit_of_decompression_is_named_and_other_partitions_go_on(
    broker: Broker, tmp_path: Path, way: Way
) -> None:
    await fill(broker, tmp_path, None, b"x" * 6 * MIB)
    values: list[bytes | None] = []
    async with Consumer(
        broker.bootstrap_servers,
        topics="t",
        group_id="g",
        auto_offset_reset="earliest",
        max_decompressed_batch_size=5 * MIB,
    ) as consumer:
        for _ in range(3):
            error = await fails(way, consumer, values)
            assert isinstance(error, RecordTooLarge)
            assert "max_decompressed_batch_size=5242880" in str(error)
            assert (error.topic_partition, error.offset) == (TP, BAD)
            assert error.next_offset == BEHIND
        assert values == GOOD
        async with Producer(broker.bootstrap_servers) as producer:
            await producer.send("t", b"other", partition=1)
        if way in {by_lane, by_run}:
            return
        async with asyncio.timeout(10):
            while b"other" not in values:
                with suppress(RecordTooLarge):
                    await read(way, consumer, values, len(values) + 1)


async def test_ranges_know_the_limit_and_large_batches(
    broker: Broker, tmp_path: Path
) -> None:
    await fill(broker, tmp_path, None, b"x" * 6 * MIB)
    servers = broker.bootstrap_servers
    async with kafkaio.Client(servers, max_decompressed_batch_size=5 * MIB) as client:
        values: list[bytes | None] = []
        with pytest.raises(RecordTooLarge, match="max_decompressed") as caught:  # noqa: PT012
            async for batch in read_ranges(client, [OffsetRange(TP, 0, 8)]):
                values += batch["value"].to_pylist()
        assert (caught.value.topic_partition, caught.value.offset) == (TP, BAD)
        assert values == GOOD
    async with kafkaio.Client(servers) as client:
        values = []
        async for batch in read_ranges(client, [OffsetRange(TP, 0, 8)]):
            values += batch["value"].to_pylist()
        assert [len(value or b"") for value in values] == [1] * 4 + [6 * MIB] * 2 + [
            1
        ] * 2


@pytest.mark.parametrize("what", ["seek", "pause", "close"])
async def test_what_happens_while_a_large_batch_is_decompressed(
    broker: Broker, tmp_path: Path, what: str
) -> None:
    await fill(broker, tmp_path, None, b"x" * 40 * MIB)
    async with Consumer(
        broker.bootstrap_servers,
        topics="t",
        group_id="g",
        auto_offset_reset="earliest",
        max_poll_records=4,
    ) as consumer:
        assert len((await consumer.poll(timeout=10)).records) == 4
        assert not (await consumer.poll(timeout=0.001)).records  # it has begun
        buffer = consumer._core.reader.buffers.get(TP)  # type: ignore[union-attr]
        assert buffer is not None
        assert buffer.is_aside
        if what == "close":
            return
        if what == "seek":
            consumer.seek(TP, BEHIND)
            expected = [b"6", b"7"]
        else:
            consumer.pause(TP)
            assert not (await consumer.poll(timeout=0.3)).records
            consumer.resume(TP)
            expected = [b"x" * 40 * MIB] * 2
        values: list[bytes | None] = []
        while len(values) < 2:
            poll = await consumer.poll(timeout=10)
            values += [record.value for record in poll.records]
        assert values[:2] == expected


async def test_a_batch_that_is_too_large_is_decompressed_once(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(broker, tmp_path, None, b"x" * 2 * MIB)
    checks = 0
    is_ready = Preparation.is_ready

    def counted(self: Preparation, buffer: Any) -> bool:
        nonlocal checks
        checks += 1
        return is_ready(self, buffer)

    async with Consumer(
        broker.bootstrap_servers,
        topics="t",
        group_id="g",
        auto_offset_reset="earliest",
        max_decompressed_batch_size=MIB,
    ) as consumer:
        assert len((await consumer.poll(timeout=10)).records) == 4
        monkeypatch.setattr(Preparation, "is_ready", counted)
        for _ in range(20):
            with pytest.raises(RecordTooLarge):
                await consumer.poll(timeout=10)
    assert checks <= 1
