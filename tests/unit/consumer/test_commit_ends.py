"""A commit of the last record or batch leaves no lag behind markers (KIP-1094)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

import kafkaio
from kafkaio._client.client import Client
from kafkaio._config import ClientConfig
from kafkaio._consumer import Consumer
from kafkaio.testing import Broker
from kafkaio.types import TopicPartition

T = TopicPartition("t", 0)
OPTIONS: dict[str, Any] = {
    "topics": "t",
    "group_id": "g",
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "isolation_level": "read_committed",
}
COUNT = 6


@asynccontextmanager
async def log(*, aborted: bool, memory: bool = True) -> AsyncIterator[Broker]:
    """A log of two transactions of three records, which ends with markers."""
    async with Broker(topics={"t": 1}, memory_transport=memory) as broker:
        dial = {"dial": broker.dial} if memory else {}
        config = ClientConfig.of(broker.bootstrap_servers, {})
        async with (
            Client.from_config(config, **dial) as client,
            kafkaio.Producer(client, transactional_id="p") as producer,
        ):
            for _ in range(2):
                async with producer.transaction() as tx:
                    for _ in range(COUNT // 2):
                        await tx.send("t", b"x")
            with suppress(RuntimeError):
                async with producer.transaction() as tx:
                    if aborted:
                        await tx.send("t", b"never")
                    raise RuntimeError
        yield broker


async def by_batches(consumer: Consumer) -> None:
    count = 0
    async for batch in consumer.batches(max_wait=1):
        await consumer.commit(batch)
        if (count := count + len(batch)) == COUNT:
            return


async def by_full_batches(consumer: Consumer) -> None:
    count = 0
    async for batch in consumer.batches(max_records=3):
        await consumer.commit(batch)
        if (count := count + len(batch)) == COUNT:
            return


async def by_records(consumer: Consumer) -> None:
    count = 0
    async for record in consumer:
        await consumer.commit(record)
        if (count := count + 1) == COUNT:
            return


async def by_polls(consumer: Consumer) -> None:
    count = 0
    while count < COUNT:
        for record in (await consumer.poll(timeout=1)).records:
            await consumer.commit(record)
            count += 1


async def by_lanes(consumer: Consumer) -> None:
    lane = await anext(consumer.partitions())
    count = 0
    async for record in lane:
        await lane.commit(record)
        if (count := count + 1) == COUNT:
            return


async def by_batches_of_lanes(consumer: Consumer) -> None:
    lane = await anext(consumer.partitions())
    count = 0
    async for batch in lane.batches(max_wait=1):
        await lane.commit(batch)
        if (count := count + len(batch)) == COUNT:
            return


WAYS: list[Callable[[Consumer], Awaitable[None]]] = [
    by_batches,
    by_full_batches,
    by_records,
    by_polls,
    by_lanes,
    by_batches_of_lanes,
]


@pytest.mark.parametrize("aborted", [False, True], ids=["committed", "aborted"])
@pytest.mark.parametrize("way", WAYS)
async def test_no_lag_is_left(
    way: Callable[[Consumer], Awaitable[None]], aborted: bool
) -> None:
    async with log(aborted=aborted) as broker:
        config = ClientConfig.of(broker.bootstrap_servers, {})
        async with (
            Client.from_config(config, dial=broker.dial) as client,
            Consumer(client, **OPTIONS) as consumer,
        ):
            await way(consumer)
            end = (await consumer.end_offsets([T]))[T]
            assert broker.control.committed("g", T) == end > COUNT


async def test_deserialized_records() -> None:
    async with log(aborted=False) as broker:
        config = ClientConfig.of(broker.bootstrap_servers, {})
        async with (
            Client.from_config(config, dial=broker.dial) as client,
            Consumer(client, **OPTIONS, value_deserializer=bytes.decode) as consumer,
        ):
            await by_batches(consumer)
            end = (await consumer.end_offsets([T]))[T]
            assert broker.control.committed("g", T) == end


async def test_what_is_not_done_is_not_passed_over() -> None:
    async with log(aborted=False) as broker:
        config = ClientConfig.of(broker.bootstrap_servers, {})
        async with (
            Client.from_config(config, dial=broker.dial) as client,
            Consumer(client, **OPTIONS) as consumer,
        ):
            records = list[Any]()
            while len(records) < COUNT:
                records += (await consumer.poll(timeout=1)).records
            for record in records[:-1]:
                await consumer.commit(record)
                assert broker.control.committed("g", T) == record.offset + 1
            # The offset that a program names is committed as it is.
            await consumer.commit({T: records[-1].offset + 1})
            assert broker.control.committed("g", T) == records[-1].offset + 1


async def test_a_transaction_commits_the_end_of_a_batch() -> None:
    async with log(aborted=False) as broker:
        config = ClientConfig.of(broker.bootstrap_servers, {})
        async with (
            Client.from_config(config, dial=broker.dial) as client,
            kafkaio.Producer(client, transactional_id="q") as producer,
            Consumer(client, **OPTIONS) as consumer,
        ):
            async for batch in consumer.batches(max_records=COUNT, max_wait=1):
                async with producer.transaction() as tx:
                    await tx.commit_offsets(consumer, batch)
                break
            end = (await consumer.end_offsets([T]))[T]
            committed = (await consumer.committed([T]))[T]
            assert committed is not None
            assert committed.offset == end


def test_in_an_io_thread() -> None:
    async def go() -> None:
        for way in (by_batches, by_records, by_lanes):
            async with (
                log(aborted=True, memory=False) as broker,
                Consumer(
                    broker.bootstrap_servers, **OPTIONS, io_thread=True
                ) as consumer,
            ):
                await way(consumer)
                end = (await consumer.end_offsets([T]))[T]
                assert broker.control.committed("g", T) == end

    asyncio.run(go())
