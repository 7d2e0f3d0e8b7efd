"""All ways of reading by turns, with seeks, pauses and faults: each record once."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from kafkaio._consumer import Consumer
from kafkaio._records.batch import Compression
from kafkaio._records.raw import RawBatch
from kafkaio.errors import UsageError
from kafkaio.types import Record, TopicPartition
from tests.fakes.broker import FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs, Log
from tests.unit.consumer.test_chaos import ORDERS, Chaos
from tests.unit.consumer.test_reading import transactional

CODECS = [Compression.NONE, Compression.NONE, Compression.GZIP, Compression.LZ4]


class Waiting:
    """A deserializer that has to be awaited."""

    async def deserialize(self, data: bytes, context: object) -> bytes:
        await asyncio.sleep(0.001)
        return data


DESERIALIZERS: dict[str, Any] = {
    "none": {},
    "at once": {"value_deserializer": bytes},
    "later": {"value_deserializer": Waiting()},
}


class Walk:
    """Writes, reads and disturbs as the dice say, and knows what has to come next."""

    def __init__(
        self, seed: int, cluster: FakeCluster, logs: FakeLogs, consumer: Consumer
    ) -> None:
        chaos = Chaos(seed, cluster, logs, consumer)
        self.dice = chaos.dice
        self.logs = logs
        self.consumer = consumer
        self.raw = consumer.raw_batches()
        self.batches = consumer.batches(max_records=5, max_wait=0.005)
        self.visible: dict[TopicPartition, list[int]] = {tp: [] for tp in ORDERS}
        self.at = dict.fromkeys(ORDERS, 0)
        self.producers = 0
        self.ways: list[Callable[[], Awaitable[None]]] = [
            self.one,
            self.poll,
            self.poll_some,
            self.raw_one,
            self.raw_run,
            self.batch,
            self.records_until,
            self.raw_until,
            self.batches_until,
        ]
        self.acts = [
            *[self.write] * 8,
            self.seek,
            chaos.pause,
            chaos.resume,
            chaos.fail,
            chaos.move,
            chaos.disconnect,
            chaos.lose_sessions,
        ]

    def any(self) -> TopicPartition:
        return self.dice.choice(ORDERS)

    def log(self, tp: TopicPartition) -> Log:
        return self.logs.log(*tp)

    # What happens

    def write(self) -> None:
        tp, dice = self.any(), self.dice
        log, base = self.log(tp), self.log(tp).end
        log.epochs = log.epochs or [(0, 0)]
        values = [bytes(dice.randrange(400))] * dice.randrange(1, 6)
        kind = dice.choice(["plain", "plain", "plain", "aborted", "committed"])
        if kind == "plain":
            log.append(values, compression=dice.choice(CODECS))
        else:
            self.producers += 1
            transactional(log, self.producers, *values)
        if kind != "aborted":
            self.visible[tp] += range(base, log.end)
        if kind != "plain":
            end = log.marker(self.producers, commit=kind == "committed")
            if kind == "aborted":
                log.aborted.append((self.producers, base, end))
        self.logs.grow()

    def seek(self) -> None:
        tp = self.any()
        self.at[tp] = self.dice.randrange(self.log(tp).end + 1)
        self.consumer.seek(tp, self.at[tp])

    # What is read

    def following(self, tp: TopicPartition) -> int | None:
        visible = self.visible[tp]
        index = bisect_left(visible, self.at[tp])
        return visible[index] if index < len(visible) else None

    def note(self, *records: Record) -> None:
        for record in records:
            tp = record.topic_partition
            assert record.offset == self.following(tp)
            self.at[tp] = record.offset + 1

    def note_raw(self, *batches: RawBatch) -> None:
        for batch in batches:
            tp = TopicPartition(batch.topic, batch.partition)
            following = self.following(tp)
            assert following is not None
            assert self.at[tp] <= batch.first_offset <= following < batch.next_offset
            self.at[tp] = batch.next_offset

    async def one(self) -> None:
        self.note(await anext(self.consumer))

    async def poll(self) -> None:
        most = self.dice.randrange(1, 9)
        self.note(*(await self.consumer.poll(timeout=0.1, max_records=most)).records)

    async def poll_some(self) -> None:
        some = self.dice.sample(ORDERS, 2)
        poll = await self.consumer.poll(timeout=0.1, max_records=3, partitions=some)
        assert set(poll.by_partition) <= set(some)
        self.note(*poll.records)

    async def raw_one(self) -> None:
        self.note_raw(await anext(self.raw))

    async def raw_run(self) -> None:
        self.note_raw(*await self.raw.take(self.dice.randrange(1, 3000)))

    async def batch(self) -> None:
        self.note(*await anext(self.batches))

    def ends(self) -> dict[TopicPartition, int]:
        return {tp: self.dice.randrange(self.log(tp).end + 1) for tp in ORDERS}

    async def records_until(self) -> None:
        ends, left = self.ends(), self.dice.randrange(1, 9)
        async for record in self.consumer.records(until=ends):
            assert record.offset < ends[record.topic_partition]
            self.note(record)
            left -= 1
            if not left:
                break

    async def raw_until(self) -> None:
        ends = self.ends()
        run = await self.consumer.raw_batches(until=ends).take(2000)
        for batch in run:
            tp = TopicPartition(batch.topic, batch.partition)
            assert batch.next_offset <= ends[tp]
        self.note_raw(*run)

    async def batches_until(self) -> None:
        ends, most = self.ends(), self.dice.randrange(1, 9)
        async for batch in self.consumer.batches(until=ends, max_records=most):
            assert all(record.offset < ends[batch.topic_partition] for record in batch)
            self.note(*batch)
            break

    async def read(self) -> None:
        with suppress(TimeoutError, UsageError):  # or all that is left is paused
            async with asyncio.timeout(self.dice.choice([0.0, 0.01, 0.5])):
                await self.dice.choice(self.ways)()
        for tp in ORDERS:
            # Nothing was skipped by what was cancelled.
            following = self.following(tp)
            most = self.log(tp).end if following is None else following
            position = await self.consumer.position(tp)
            assert self.at[tp] <= position <= max(most, self.at[tp])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("deserializers", DESERIALIZERS)
async def test_every_record_comes_once_and_in_order(
    seed: int,
    deserializers: str,
    cluster: FakeCluster,
    logs: FakeLogs,
    make: MakeConsumer,
):
    consumer = make(
        assign=ORDERS,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        max_partition_fetch_bytes=1500,
        fetch_buffer_bytes=5000,
        **DESERIALIZERS[deserializers],
    )
    async with consumer:
        walk = Walk(seed, cluster, logs, consumer)
        for _ in range(200):
            walk.dice.choice(walk.acts)()
            await walk.read()
        consumer.resume(*ORDERS)
        async with asyncio.timeout(300):
            while any(walk.following(tp) is not None for tp in ORDERS):
                await walk.read()
