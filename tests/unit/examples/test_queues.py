"""The programs in the guide's page on queues run as they are printed there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import fields
from functools import partial
from pathlib import Path

import confluent_kafka
import pytest

import kafkaio
from kafkaio.admin import ConfigChange, ConfigResource, ConfigResourceType
from kafkaio.testing import Broker
from tests.pages import python_blocks, run_block
from tests.support.patience import HANGS

LOCAL = "localhost:9092"
DOCS = Path(__file__).parents[3] / "docs"
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


async def test_a_short_outage_loses_nothing(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    await send(broker, "jobs", b"1", b"none", b"2")
    block = program("def later", broker).replace("sleep(10 *", "sleep(0.2 *")
    assert "sleep(0.2 *" in block
    down = block.replace("async def work(", "async def work_(") + OUTAGE
    until = asyncio.get_running_loop().time() + 0.5
    await run_until(down, partial(finished, broker, "jobs"), {"until": until})
    assert sorted(capsys.readouterr().out.split()) == ["1", "2", "done:", "done:"]


OUTAGE = """


async def work(record):
    if asyncio.get_running_loop().time() < until:
        raise ConnectionError("the database is down")
    await work_(record)
"""


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


# ---- names -----------------------------------------------------------------------

PAGES = ("guide/queues.md", "migration/queues.md")
#: The objects that the names in code spans mean.
OBJECTS = {
    "share": kafkaio.ShareConsumer,
    "record": kafkaio.ShareRecord,
    "batch": kafkaio.ShareBatch,
    "admin": kafkaio.Admin,
    "kafkaio": kafkaio,
}
USE = re.compile(rf"(?<![\w.])({'|'.join(OBJECTS)})\.(\w+)")
SPAN = re.compile(r"`([^`\n]+)`")
#: Not kafkaio's: what Java's records and clients, and options, have there.
THEIRS = {
    ("record", "deliveryCount"),
    ("share", "acknowledgement"),
    ("share", "acquire"),
}
OPTION = re.compile(r"^([a-z_]+)=")


def spans(page: str) -> list[str]:
    text = (DOCS / page).read_text()
    return SPAN.findall(
        re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    )


@pytest.mark.parametrize("page", PAGES)
def test_every_name_of_the_page_exists(page: str) -> None:
    uses = {use for span in spans(page) for use in USE.findall(span)}
    missing = [
        use
        for use in uses - THEIRS
        if not hasattr(OBJECTS[use[0]], use[1])
        and not any(config.startswith(".".join(use)) for config in GROUP_CONFIGS)
    ]
    assert not missing
    assert len(uses) > 15


#: Kafka's configs of groups and brokers, which begin like the object.
GROUP_CONFIGS = (
    "share.auto.offset.reset",
    "share.delivery.count.limit",
    "share.heartbeat.interval.ms",
    "share.isolation.level",
    "share.partition.max.record.locks",
    "share.record.lock.duration.ms",
    "share.renew.acknowledge.enable",
    "share.session.timeout.ms",
    "share.version",
)


def test_the_options_of_the_guide_exist_with_their_defaults() -> None:
    given = {
        "acknowledgement": "explicit",
        "acquire_mode": "batch_optimized",
        "max_processing_ms": 300_000,
        "renew_locks": True,
        "undeserializable": "release",
        "io_thread": False,
    }
    config = kafkaio.ShareConsumerConfig(group_id="workers")
    assert {name: getattr(config, name) for name in given} == given
    known = {field.name for field in fields(kafkaio.ShareConsumerConfig)}
    known |= {"topics", "value_deserializer", "concurrency", "timeout", "requeue"}
    known |= {"max_records", "max_wait", "ordering", "multiple", "error", "on_error"}
    for page in PAGES:
        named = {match[1] for span in spans(page) if (match := OPTION.match(span))}
        assert named <= known, named - known


def test_javas_options_are_taken_by_their_names() -> None:
    config = kafkaio.ShareConsumerConfig.from_properties(
        {
            "bootstrap.servers": "localhost:9092",
            "group.id": "workers",
            "share.acknowledgement.mode": "implicit",
            "share.acquire.mode": "record_limit",
            "max.poll.records": 7,
            "fetch.min.bytes": 2,
            "fetch.max.bytes": 3000,
            "fetch.max.wait.ms": 40,
        }
    )
    assert (config.acknowledgement, config.acquire_mode) == ("implicit", "record_limit")
    assert (config.max_in_flight, config.fetch_max_wait_ms) == (7, 40)


def test_confluents_names_exist() -> None:
    text = (DOCS / "migration" / "queues.md").read_text()
    section = text.partition("## From confluent")[2].partition("\n## ")[0]
    names = set(re.findall(r"`consumer\.(\w+)\(", section))
    assert len(names) > 4
    assert all(hasattr(confluent_kafka.ShareConsumer, name) for name in names)
    assert hasattr(confluent_kafka, "DeserializingShareConsumer")
