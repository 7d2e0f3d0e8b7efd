"""The programs in the guide's page on queues run as they are printed there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import pytest

import kafkaio
from kafkaio.admin import ConfigChange, ConfigResource, ConfigResourceType
from kafkaio.testing import Broker
from tests.pages import python_blocks, run_block
from tests.support.patience import HANGS

LOCAL = "localhost:9092"
GROUP = ConfigResource(ConfigResourceType.GROUP, "workers")


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    topics = {"jobs": 1, "numbers": 1, "jobs.dead": 1}
    async with Broker(topics=topics) as broker, asyncio.timeout(HANGS):
        async with kafkaio.Admin(broker.bootstrap_servers) as admin:
            earliest = ConfigChange("share.auto.offset.reset", "earliest")
            await admin.incremental_alter_configs({GROUP: [earliest]})
        yield broker


def program(word: str, broker: Broker) -> str:
    """The block that has a word of its own."""
    blocks = python_blocks("guide/queues.md", {LOCAL: broker.bootstrap_servers})
    (found,) = [block for block in blocks if word in block]
    return found


async def send(broker: Broker, topic: str, *values: bytes) -> None:
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        await producer.send_many(topic, values)


async def run_until(
    block: str,
    ended: Callable[[], Awaitable[bool]],
    names: dict[str, object] | None = None,
) -> None:
    """Run a program that goes on for ever until it has done enough, then cancel it."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(run_block(block, names))
        while not await ended():
            assert not task.done()
            await asyncio.sleep(0.01)
        task.cancel()


async def finished(broker: Broker, topic: str) -> bool:
    """Whether the group has no record left, neither locked nor to be delivered."""
    async with kafkaio.Admin(broker.bootstrap_servers) as admin:
        found = (await admin.list_share_group_offsets(["workers"]))["workers"]
    place = found.get(kafkaio.TopicPartition(topic, 0))
    return place is not None and place.lag == 0


async def test_a_pool_of_workers(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    await send(broker, "jobs", b"one", b"", b"two")
    block = program("an empty job", broker)
    await run_until(block, partial(finished, broker, "jobs"))
    assert sorted(capsys.readouterr().out.split("\n")) == ["", "done: one", "done: two"]


async def test_errors_are_decided_by_a_function(
    broker: Broker, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    await send(broker, "numbers", b"1", b"none", b"2")
    block = program("def failed", broker)
    await run_until(block, partial(finished, broker, "numbers"))
    assert sorted(capsys.readouterr().out.split()) == ["1", "2", "done:", "done:"]
    assert caplog.text.count("no number at offset 1") == 1


async def test_record_by_record(broker: Broker) -> None:
    # The one that is released comes again until the group's limit, and is archived.
    await send(broker, "jobs", b"one", b"early", b"two")
    block = program("class TryLater", broker)
    calls = block.replace("async def work(", "async def work_(") + COUNTING
    names: dict[str, object] = {"seen": []}
    await run_until(calls, partial(finished, broker, "jobs"), names)
    assert names["seen"] == [b"one", *[b"early"] * 5, b"two"]


COUNTING = """


async def work(value):
    seen.append(value)
    seen.sort(key=[b"one", b"early", b"two"].index)
    await work_(value)
"""


async def test_batches(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    await send(broker, "jobs", b"one", b"", b"two")
    block = program("share.batches(", broker)
    await run_until(block, partial(finished, broker, "jobs"))
    assert capsys.readouterr().out == "2 done, 1 rejected\n"


async def test_proof(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    await send(broker, "jobs", b"one", b"two")
    block = program("record.acked", broker)
    await run_until(block, partial(finished, broker, "jobs"))
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["accepted at offset 0", "accepted at offset 1"]


async def test_dead_letters(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    await send(broker, "jobs", b"1", b"none", b"2")
    block = program("DeadLetter", broker)
    await run_until(block, partial(finished, broker, "jobs"))
    assert sorted(capsys.readouterr().out.splitlines()) == ["done: 1", "done: 2"]
    async with kafkaio.Consumer(
        broker.bootstrap_servers, topics="jobs.dead", auto_offset_reset="earliest"
    ) as consumer:
        dead = await anext(consumer)
    assert dead.value == b"none"
    assert (dict(dead.headers)["dead-letter-offset"]) == b"1"


async def test_configs_of_a_group(broker: Broker) -> None:
    await run_block(program('share.record.lock.duration.ms", "60000', broker))
    async with kafkaio.Admin(broker.bootstrap_servers) as admin:
        found = (await admin.describe_configs([GROUP]))[GROUP]
    assert found["share.record.lock.duration.ms"].value == "60000"


async def test_a_test_of_a_worker(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    await run_block(program("Broker(topics", broker))
    assert capsys.readouterr().out == "delivery 1\ndelivery 2\n"
