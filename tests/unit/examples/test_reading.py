"""The programs of the page that compares the ways to read, and what each commits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import kafkaio
from kafkaio.admin import ConfigChange, ConfigResource, ConfigResourceType
from kafkaio.testing import Broker
from tests.pages import python_blocks, run_block
from tests.support.patience import HANGS

LOCAL = "localhost:9092"
ORDERS = kafkaio.TopicPartition("orders", 0)
VALUES = [b"%d" % n for n in range(10)]
#: The page's limits are larger than what the tests send.
SMALL = {"max_records=500": "max_records=4", "max_records=50_000": "max_records=4"}


class Stop(Exception):
    """Ends a program in the middle of its work."""


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    topics = {"orders": 1, "invoices": 1}
    async with Broker(topics=topics) as broker, asyncio.timeout(HANGS):
        async with kafkaio.Producer(broker.bootstrap_servers) as producer:
            records = [
                kafkaio.NewRecord(value, key=b"key-%d" % (n % 2))
                for n, value in enumerate(VALUES)
            ]
            await producer.send_many("orders", records)
        yield broker


def program(word: str, broker: Broker) -> str:
    """The block that has a word of its own."""
    replace = {LOCAL: broker.bootstrap_servers, **SMALL}
    blocks = python_blocks("guide/reading.md", replace)
    (found,) = [block for block in blocks if word in block]
    return found


async def run_until(
    word: str, broker: Broker, is_last: Callable[..., bool]
) -> list[Any]:
    """Run a program whose ``print`` raises in the end; return what it printed."""
    printed: list[Any] = []

    def show(*what: Any) -> None:
        if is_last(*what):
            raise Stop
        printed.append(what[-1])

    with pytest.raises((Stop, ExceptionGroup)) as caught:
        await run_block(program(word, broker), {"print": show})
    error = caught.value
    while isinstance(error, ExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, Stop)
    return printed


def sees(value: bytes) -> Callable[..., bool]:
    return lambda *what: (
        what[-1] == value or (isinstance(what[-1], list) and value in what[-1])
    )


async def committed(broker: Broker) -> int | None:
    async with kafkaio.Client(broker.bootstrap_servers) as client:
        found = (await client.committed("billing", [ORDERS]))[ORDERS]
    return None if found is None else found.offset


async def test_async_for_commits_the_records_before_the_one_in_hand(
    broker: Broker,
) -> None:
    assert await run_until('"record"', broker, sees(b"6")) == VALUES[:6]
    assert await committed(broker) == 6


async def test_a_batch_is_committed_when_it_is_done(broker: Broker) -> None:
    assert await run_until("batch.values()", broker, sees(b"6")) == [VALUES[:4]]
    assert await committed(broker) == 4


async def test_a_poll_is_committed_when_it_is_done(broker: Broker) -> None:
    assert await run_until('"polled"', broker, sees(b"6")) == VALUES[:6]
    assert await committed(broker) == 4


async def test_run_commits_up_to_the_first_record_that_is_not_finished(
    broker: Broker,
) -> None:
    seen = await run_until('"handled"', broker, sees(b"6"))
    assert VALUES[6] not in seen
    assert VALUES[8] not in seen  # of the same key
    upto = await committed(broker)
    assert VALUES[: upto or 0] == sorted(seen)[: upto or 0]
    assert (upto or 0) <= 6


async def test_a_lane_commits_the_records_before_the_one_in_hand(
    broker: Broker,
) -> None:
    assert await run_until('"lane"', broker, sees(b"6")) == VALUES[:6]
    assert await committed(broker) == 6


async def test_a_table_is_committed_when_it_is_done(broker: Broker) -> None:
    assert await run_until('"table"', broker, sees(b"6")) == [VALUES[:4]]
    assert await committed(broker) == 4


async def test_up_to_now(broker: Broker) -> None:
    printed: list[Any] = []
    names = {"print": lambda *what: printed.append(what[-1])}
    await run_block(program('"until"', broker), names)
    assert printed == VALUES
    assert await committed(broker) is None


async def test_offsets_are_committed_with_the_output(broker: Broker) -> None:
    task = asyncio.create_task(run_block(program("billing-1", broker)))
    while await committed(broker) != 10:
        assert not task.done()
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    async with kafkaio.Consumer(
        broker.bootstrap_servers,
        topics="invoices",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        values = [(await anext(consumer)).value for _ in VALUES]
    assert values == [b"invoice " + value for value in VALUES]


async def test_a_queue_accepts_each_record_by_itself(broker: Broker) -> None:
    group = ConfigResource(ConfigResourceType.GROUP, "workers")
    async with kafkaio.Admin(broker.bootstrap_servers) as admin:
        earliest = ConfigChange("share.auto.offset.reset", "earliest")
        await admin.incremental_alter_configs({group: [earliest]})
        done: set[bytes] = set()
        failed: list[bytes] = []

        def show(word: str, value: bytes) -> None:
            assert word == "job"
            if value == b"6" and not failed:
                failed.append(value)
                raise Stop  # released, by default: it comes again
            done.add(value)

        names = {"print": show}
        task = asyncio.create_task(run_block(program('"job"', broker), names))
        while True:
            found = (await admin.list_share_group_offsets(["workers"]))["workers"]
            place = found.get(ORDERS)
            if place is not None and place.lag == 0:
                break
            assert not task.done()
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
    assert done == {*VALUES}
    assert failed == [b"6"]


async def test_the_rules_of_all_ways(broker: Broker) -> None:
    """One task reads at a time, and a program may change its way."""
    async with kafkaio.Consumer(
        broker.bootstrap_servers,
        topics="orders",
        group_id="billing",
        auto_offset_reset="earliest",
    ) as consumer:
        poll = await consumer.poll(max_records=3)
        values = [record.value for record in poll.records]
        async for record in consumer:
            values.append(record.value)
            if len(values) == 6:
                break
        batch = await anext(consumer.batches(max_records=4))
        assert values + batch.values() == VALUES
        waiting = asyncio.create_task(consumer.poll())
        await asyncio.sleep(0)
        with pytest.raises(kafkaio.UsageError, match="another task is reading"):
            await consumer.poll()
        waiting.cancel()
        await asyncio.wait([waiting])
