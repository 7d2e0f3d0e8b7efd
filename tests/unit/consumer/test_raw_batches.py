"""Raw batches that are at hand are taken without a read, and nothing is missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import kafkaio
from kafkaio._consumer.core import Core
from kafkaio.errors import CorruptRecord
from kafkaio.testing import Broker
from kafkaio.types import TopicPartition
from tests.support.patience import HANGS
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs
from tests.unit.consumer.test_batches import arrived

ONE = TopicPartition("one", 0)
FIRST = {"assign": [ONE], "auto_offset_reset": "earliest"}
TPS = [TopicPartition("t", n) for n in range(2)]
BATCHES, RECORDS = 20, 3


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 2}) as broker, asyncio.timeout(HANGS):
        async with kafkaio.Producer(broker.bootstrap_servers) as producer:
            for _ in range(BATCHES):
                for tp in TPS:
                    new = [kafkaio.NewRecord(b"v", partition=tp.partition)] * RECORDS
                    await producer.send_many("t", new)
        yield broker


def consumer(broker: Broker, **options: Any) -> kafkaio.Consumer:
    given = {"assign": TPS, "auto_offset_reset": "earliest", "log": False, **options}
    return kafkaio.Consumer(broker.bootstrap_servers, **given)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """An item for each read of a core."""
    seen: list[object] = []
    read = Core.read

    async def counted(core: Core, *args: Any, **options: Any) -> Any:
        seen.append(core)
        return await read(core, *args, **options)

    monkeypatch.setattr(Core, "read", counted)
    return seen


@pytest.mark.parametrize("until", [None, "latest"])
async def test_batches_at_hand_take_no_read(
    broker: Broker, reads: list[object], until: Any
) -> None:
    async with consumer(broker) as reader:
        # Each slice of time ends with a read: here it never does.
        reader._core.reader.allowance = lambda: 1
        batches = reader.raw_batches(until=until)
        found = [await anext(batches) for _ in range(2 * BATCHES)]
        assert len(reads) < BATCHES
        for tp in TPS:
            offsets = [it.first_offset for it in found if it.topic_partition == tp]
            assert offsets == list(range(0, BATCHES * RECORDS, RECORDS))
            assert await reader.position(tp) == BATCHES * RECORDS
        # The partitions take turns.
        assert found[4].partition != found[5].partition
        if until:
            with pytest.raises(StopAsyncIteration):
                await anext(batches)


async def test_a_step_finishes_the_batch_before(broker: Broker) -> None:
    options = {"group_id": "g", "enable_auto_commit": False, "assign": TPS[:1]}
    async with consumer(broker, **options) as reader:
        tp, number = TPS[0], 0
        async for batch in reader.raw_batches(until="latest"):
            number += 1
            assert await reader.position(tp) == batch.next_offset
            if number % 5 == 0:
                await reader.commit()
                committed = (await reader.committed([tp]))[tp]
                assert committed is not None
                assert committed.offset == batch.next_offset
        assert number == BATCHES


async def test_what_the_user_decides_counts_from_the_next_step(broker: Broker) -> None:
    async with consumer(broker) as reader:
        batches = reader.raw_batches()
        await anext(batches)
        reader.pause(TPS[0])
        found = [await anext(batches) for _ in range(4)]
        assert {batch.topic_partition for batch in found} == {TPS[1]}
        reader.seek(TPS[1], 1)
        batch = await anext(batches)
        assert (batch.first_offset, batch.base_offset, batch.is_whole) == (1, 0, False)
        reader.resume(TPS[0])
        reader.assign(TPS[:1])
        assert (await anext(batches)).topic_partition == TPS[0]
        # Records and batches may be read in turn, and no record comes twice.
        before = await reader.position(TPS[0])
        record = await anext(reader)
        assert record.offset == before
        assert (await anext(batches)).first_offset == before + 1
        await reader.close()
        with pytest.raises(StopAsyncIteration):
            await anext(batches)


async def test_ends_in_the_middle_of_batches(broker: Broker) -> None:
    ends = {TPS[0]: 4, TPS[1]: 2}
    async with consumer(broker, assign=TPS[:1]) as reader:
        seen: dict[TopicPartition, list[int]] = {tp: [] for tp in TPS}
        async for batch in reader.raw_batches(until=ends):
            offsets = range(batch.first_offset, batch.next_offset)
            seen[batch.topic_partition].extend(offsets)
            reader.assign(TPS)  # a partition that comes later has an end, too
        assert seen == {TPS[0]: [0, 1, 2, 3], TPS[1]: [0, 1]}


async def test_a_partition_without_an_end_waits_for_it(broker: Broker) -> None:
    async with consumer(broker, assign=TPS[:1]) as reader:
        batches = reader.raw_batches(until={TPS[0]: 60, TPS[1]: 3})
        await anext(batches)
        reader.assign(TPS)
        broker.control.pause(0)  # its end is looked up, in vain
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(batches), 0.1)
        broker.control.resume(0)
        found = [batch async for batch in batches]
        assert sum(batch.topic_partition == TPS[1] for batch in found) == 1


async def test_a_run_has_the_batches_that_follow_in_a_partition(
    broker: Broker, reads: list[object]
) -> None:
    async with consumer(broker) as reader:
        reader._core.reader.allowance = lambda: 1
        batches = reader.raw_batches(until="latest")
        first = await anext(batches)
        size, seen = first.size_bytes, dict.fromkeys(TPS, 0)
        seen[first.topic_partition] = first.next_offset
        lengths, places = [], []
        # The last bytes begin a batch that is taken as a whole.
        while run := await batches.take(3 * size + 1):
            lengths.append(len(run))
            tp = run[0].topic_partition
            places.append(tp)
            for batch in run:
                assert batch.topic_partition == tp
                assert batch.first_offset == seen[tp]
                assert batch.assignment == run[0].assignment
                assert len(batch.records()) == RECORDS
                seen[tp] = batch.next_offset
            assert await reader.position(tp) == seen[tp]
        assert seen == dict.fromkeys(TPS, BATCHES * RECORDS)
        assert max(lengths) == 4
        assert places[0] != places[1]
        assert len(reads) < BATCHES
        assert await batches.take(1) == []
        with pytest.raises(kafkaio.ArgumentValueError):
            await batches.take(0)


async def test_a_step_finishes_the_run_before(broker: Broker) -> None:
    options = {"group_id": "g", "enable_auto_commit": False, "assign": TPS[:1]}
    async with consumer(broker, **options) as reader:
        batches = reader.raw_batches()
        await batches.take(1)
        run = await batches.take(10_000)
        assert len(run) > 5
        await reader.commit()
        committed = (await reader.committed(TPS[:1]))[TPS[0]]
        assert committed is not None
        assert committed.offset == run[-1].next_offset


async def test_a_run_ends_where_reading_does(broker: Broker) -> None:
    ends = {TPS[0]: 4 * RECORDS, TPS[1]: 4 * RECORDS + 1}
    async with consumer(broker) as reader:
        batches, found = reader.raw_batches(until=ends), []
        while run := await batches.take(10_000):
            found += run
        for tp, end in ends.items():
            offsets = [
                offset
                for it in found
                if it.topic_partition == tp
                for offset in range(it.first_offset, it.next_offset)
            ]
            assert offsets == list(range(end))
        assert [it.is_whole for it in found].count(False) == 1
        # The next one begins in the middle of a batch.
        run = await reader.raw_batches(until="latest").take(10_000)
        assert run[0].first_offset == ends[run[0].topic_partition]


async def test_a_run_leaves_out_what_a_loop_does(broker: Broker) -> None:
    async with kafkaio.Producer(
        broker.bootstrap_servers, transactional_id="x"
    ) as producer:
        for number in range(6):
            transaction = producer.transaction()
            await transaction.begin()
            for _ in range(3):
                await transaction.send("t", b"%d" % number, partition=0)
            await (transaction.abort() if number % 2 else transaction.commit())
    options = {"assign": TPS[:1], "isolation_level": "read_committed"}
    async with consumer(broker, **options) as reader:
        alone = [batch async for batch in reader.raw_batches(until="latest")]
        reader.seek(TPS[0], 0)
        batches, runs = reader.raw_batches(until="latest"), []
        while run := await batches.take(10_000):
            runs.append(run)
        together = [batch for run in runs for batch in run]
        assert [it.data for it in together] == [it.data for it in alone]
        assert len(alone) == BATCHES + 9
        # A marker, which has no records, ends a run.
        assert [len(run) for run in runs[-3:]] == [BATCHES + 3, 3, 3]


async def test_a_corrupt_batch_ends_a_run(logs: FakeLogs, make: MakeConsumer) -> None:
    for value in (b"a", b"b", b"c", b"d"):
        logs.append("one", 0, value)
    log = logs.log("one")
    base, last, timestamp, batch = log.batches[2]
    log.batches[2] = (base, last, timestamp, batch[:-1] + b"?")
    async with make(**FIRST) as consumer:
        await arrived(consumer, 4)
        batches = consumer.raw_batches()
        assert [it.base_offset for it in await batches.take(10_000)] == [0, 1]
        with pytest.raises(CorruptRecord):
            await batches.take(10_000)
        consumer.seek(ONE, 3)
        assert [it.base_offset for it in await batches.take(10_000)] == [3]
    async with make(**FIRST, check_crcs=False) as consumer:
        await arrived(consumer, 4)
        assert len(await consumer.raw_batches().take(10_000)) == 4
