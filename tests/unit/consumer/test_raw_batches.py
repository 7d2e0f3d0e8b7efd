"""Raw batches that are at hand are taken without a read, and nothing is missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import kafkaio
from kafkaio._consumer.core import Core
from kafkaio.testing import Broker
from kafkaio.types import TopicPartition
from tests.support.patience import HANGS

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
