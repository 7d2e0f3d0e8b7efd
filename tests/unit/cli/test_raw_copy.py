"""``kafkaio copy --raw``: which batches are copied, and where the copy ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from kafkaio._cli.records.ranges import BoundedReader
from kafkaio._cli.records.raw_copy import OffsetMap, RawCopier
from kafkaio._cli.records.sending import SendSummary
from kafkaio._cli.shell.progress import ProgressBar
from kafkaio._consumer import Consumer
from kafkaio._runtime.clock import now
from kafkaio.errors import TransactionAborted
from kafkaio.testing import Broker
from kafkaio.types import RecordMetadata, TopicPartition
from tests.unit.consumer.fake_transactions import PROTOCOLS, World
from tests.unit.consumer.group_fakes import virtual

ORDERS = [TopicPartition("orders", n) for n in range(3)]
COUNT = 30
VALUES = [b"%d" % number for number in range(COUNT)]


class Progress:
    """Counts records."""

    def __init__(self) -> None:
        self.done = 0

    def add(self, count: int) -> None:
        self.done += count


class Refused(OffsetMap):
    """Lets the first transactions fail once their batches are acknowledged."""

    def __init__(self, times: int, path: Path | None = None) -> None:
        super().__init__(path, "copies")
        self.times = times

    def add(
        self,
        source: TopicPartition,
        offsets: Sequence[int],
        written: Sequence[RecordMetadata],
    ) -> None:
        super().add(source, offsets, written)
        if self.times:
            self.times -= 1
            raise TransactionAborted("refused", reason="refused")


@asynccontextmanager
async def world(protocol: str = "kip848") -> AsyncIterator[World]:
    """Start a broker with records in `orders`, and room for them in `copies`."""
    topics = {"orders": 3, "copies": 3}
    async with AsyncExitStack() as stack:
        broker = Broker(topics=topics, memory_transport=True)
        there = World(
            await stack.enter_async_context(broker), stack, PROTOCOLS[protocol]
        )
        await there.write(*VALUES)
        yield there


async def copied(there: World, offsets: OffsetMap, **options: Any) -> SendSummary:
    async with (
        await there.consumer(isolation_level="read_committed") as consumer,
        there.producer(**options) as producer,
    ):
        ends = dict.fromkeys(ORDERS, COUNT // 3)
        reader = BoundedReader(consumer, ends, patience=30)
        progress = cast("ProgressBar", Progress())
        with offsets:
            copier = RawCopier(consumer, producer, "copies", offsets, progress)
            return await copier.exactly_once(reader)


async def visible(there: World) -> list[bytes]:
    options = {
        "topics": "copies",
        "group_id": None,
        "isolation_level": "read_committed",
    }
    async with await there.consumer(**options) as consumer:
        return [record.value or b"" for record in await consumer.read_to_end()]


@virtual
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("refusals", [0, 2])
async def test_batches_are_copied_once_whatever_is_aborted(
    protocol: str, refusals: int, tmp_path: Path
) -> None:
    found = tmp_path / "offsets"
    async with world(protocol) as there:
        sent = await copied(there, Refused(refusals, found))
        assert sent.records == COUNT
        assert there.offsets() == dict.fromkeys(ORDERS, COUNT // 3)
        assert sorted(await visible(there)) == sorted(VALUES)
        # Nothing is left for the next one.
        assert (await copied(there, Refused(0))).records == 0
    lines = [json.loads(line) for line in found.read_text().splitlines()]
    mapped = {
        (it["partition"], it["offset"] + n): it["to_offset"] + n
        for it in lines
        for n in range(it["records"])
    }
    assert mapped.keys() == {(n % 3, n // 3) for n in range(COUNT)}


@virtual
async def test_a_transaction_is_bounded_by_its_bytes() -> None:
    async with world() as there:
        # Half of the buffer is filled: with two batches.
        sent = await copied(there, Refused(0), buffer_memory=300)
        assert sent.records == COUNT
        assert sorted(await visible(there)) == sorted(VALUES)
        client = await there.client()
        found = await client.offsets(
            {TopicPartition("copies", n): "latest" for n in range(3)}
        )
        ends = [place.offset for place in found.values() if place is not None]
        assert sum(ends) >= COUNT + 10  # a marker for each transaction


class Unassigned:
    """A consumer whose group assigns nothing for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._until = now() + seconds

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(ORDERS[:1]) if now() >= self._until else frozenset()

    def raw_batches(self, *, until: object) -> Unassigned:
        assert until == {ORDERS[0]: 1}
        return self

    async def take(self, max_bytes: int) -> list[Any]:
        assert max_bytes
        return []


@virtual
@pytest.mark.parametrize(("seconds", "after"), [(7.0, 7.0), (100.0, 30.0), (0.0, 0.0)])
async def test_the_end_waits_for_partitions_of_the_group(
    seconds: float, after: float
) -> None:
    consumer = cast("Consumer", Unassigned(seconds))
    reader = BoundedReader(consumer, {ORDERS[0]: 1}, patience=30)
    began = asyncio.get_running_loop().time()
    assert await reader.raw_batches().take(1) == []
    assert after <= asyncio.get_running_loop().time() - began <= after + 0.2
