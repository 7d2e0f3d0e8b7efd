"""``kafkaio topics``, ``offsets`` and ``configs``, on real and embedded brokers."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import click
import pytest

import kafkaio
from kafkaio._cli.root import root
from kafkaio._cli.shell.completion import complete_groups, complete_topics
from kafkaio._cli.shell.given import Given
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.support.cli import Result, run_beside, terminal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


class Shell:
    """Runs commands on a cluster."""

    def __init__(self, servers: str) -> None:
        self.servers = servers

    async def __call__(self, line: str, code: int = 0, typed: str = "") -> Result:
        words = (*line.split(), "-b", self.servers)
        return (await run_beside(*words, typed=typed)).check(code)


@pytest.fixture
def shell(real_kafka: Kafka) -> Shell:
    return Shell(real_kafka.bootstrap_servers)


@pytest.fixture
def name() -> str:
    return f"cli-{uuid4().hex[:12]}"


async def test_the_life_of_topics(shell: Shell, name: str) -> None:
    made = await shell(f"topics create {name}-a {name}-b -p 3 -c retention.ms=60000")
    assert made.rows[0] == ["NAME", "PARTITIONS", "REPLICATION FACTOR"]
    assert [row[0] for row in made.rows[1:]] == [f"{name}-a", f"{name}-b"]

    again = await shell(f"topics create {name}-a {name}-c --json", code=3)
    assert [each["name"] for each in again.document["topics"]] == [f"{name}-c"]
    assert again.document["errors"][0]["code"] == "TOPIC_ALREADY_EXISTS"
    assert again.err.startswith("kafkaio topics create: ")
    assert len(again.err.splitlines()) == 1
    await shell(f"topics create {name}-a", code=1)
    await shell(f"topics create {name}-a --if-not-exists")

    listed = (await shell(f"topics list {name}* --json")).document["topics"]
    assert [each["name"] for each in listed] == [f"{name}-{x}" for x in "abc"]
    listed = await shell(f"topics list {name}-[ab] --jsonl")
    assert [each["partitions"] for each in listed.lines] == [3, 3]
    listed = await shell(f"topics list --regex {name}-(a|c)")
    assert [row[0] for row in listed.rows[1:]] == [f"{name}-a", f"{name}-c"]

    grown = await shell(f"topics add-partitions {name}-a -n 2")
    assert grown.rows[1] == [f"{name}-a", "5"]
    await shell(f"topics alter {name}-a -p 6 -c retention.ms=70000")
    await shell(f"topics wait {name}-a")
    described = (await shell(f"topics describe {name}-a --json")).document["topics"][0]
    assert [it["partition"] for it in described["partitions"]] == [0, 1, 2, 3, 4, 5]
    assert all(it["leader"] in it["isr"] for it in described["partitions"])
    assert {it["size"] for it in described["partitions"]} == {0}
    assert (await shell(f"topics describe {name}-a --unavailable")).rows[1:] == []
    healthy = await shell(f"topics list {name}* --under-replicated --json")
    assert healthy.document["topics"] == []

    refused = await shell(f"topics delete {name}*", code=2)
    assert "--yes" in refused.err
    assert f"delete topic {name}-a and its records" in refused.err
    gone = await shell(f"topics delete {name}* --yes --json")
    assert [each["name"] for each in gone.document["topics"]] == [
        f"{name}-{x}" for x in "abc"
    ]
    missing = await shell(f"topics delete {name}-a --yes", code=1)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in missing.err
    await shell(f"topics delete {name}-a --yes --if-exists")
    assert "no topic matches" in (await shell(f"topics list {name}*", code=1)).err


async def test_what_is_only_checked(shell: Shell, name: str) -> None:
    made = await shell(f"topics create {name} -p 2 --dry-run --json")
    assert made.document["executed"] is False
    assert "UNKNOWN_TOPIC" in (await shell(f"topics describe {name}", code=1)).err


async def test_configs(shell: Shell, name: str) -> None:
    await shell(f"topics create {name} -p 1 -c retention.ms=60000")
    shown = await shell(f"configs get topic {name}")
    assert shown.rows[1:] == [[name, "retention.ms", "60000", "topic"]]
    await shell(f"configs set topic {name} cleanup.policy=compact retention.ms=5")
    await shell(f"configs set topic {name} cleanup.policy=delete --append")
    found = (await shell(f"configs get topic {name} -k cleanup.policy --json")).document
    assert set(found["configs"][0]["value"].split(",")) == {"compact", "delete"}
    unset = await shell(
        f"configs unset topic {name} retention.ms cleanup.policy --json"
    )
    assert {each["change"] for each in unset.document["configs"]} == {"delete"}
    assert (await shell(f"configs get topic {name}")).rows[1:] == []
    every = (await shell(f"configs get topic {name} --all --json")).document["configs"]
    assert {"source", "type"} <= every[0].keys()
    assert len(every) > 20
    checked = await shell(f"configs set topic {name} retention.ms=x --dry-run", code=1)
    assert "INVALID_CONFIG" in checked.err
    wrong = await shell(f"configs get topics {name}", code=2)
    assert "'topics' is not one of" in wrong.err


async def test_offsets(shell: Shell, name: str, topic: TopicFactory) -> None:
    place = topic(partitions=2, config={"retention.ms": "-1"})
    async with kafkaio.Producer(shell.servers) as producer:
        for number in range(5):
            await producer.send(
                place, b"v", partition=0, timestamp=1_700_000_000_000 + number * 1000
            )
    found = await shell(f"topics offsets {place}")
    assert found.rows == [
        ["TOPIC", "PARTITION", "START", "END", "COUNT"],
        [place, "0", "0", "5", "5"],
        [place, "1", "0", "0", "0"],
    ]
    both = (await shell(f"offsets {place}:1 {place}:0 --at latest")).rows
    assert [(row[1], row[3]) for row in both[1:]] == [("0", "5"), ("1", "0")]
    rows = (await shell(f"offsets {place}:0")).rows
    assert [row[2:4] for row in rows[1:]] == [["earliest", "0"], ["latest", "5"]]
    at = await shell(
        f"offsets {place} --at @1700000002000 --at 2023-11-14T22:13:24 --at -3 --json"
    )
    assert [each["offset"] for each in at.document["offsets"]] == [
        2,
        4,
        4,
        None,
        None,
        None,
    ]
    assert at.document["offsets"][0]["timestamp"] == "2023-11-14T22:13:22+00:00"
    assert "UNKNOWN_TOPIC" in (await shell(f"offsets {place} {name}", code=3)).err
    some = await shell(f"topics list {place} {name}", code=3)
    assert [row[0] for row in some.rows] == ["NAME", place]
    assert "is not a time" in (await shell(f"offsets {place} --at soon", code=2)).err


async def test_names_are_completed(shell: Shell, name: str) -> None:
    await shell(f"topics create {name}-a {name}-b")
    async with kafkaio.Admin(shell.servers) as admin:
        await admin.alter_consumer_group_offsets(
            f"{name}-g", {kafkaio.TopicPartition(f"{name}-a", 0): 0}
        )
    context = click.Context(root, obj=Given(bootstrap_server=shell.servers))
    argument = click.Argument(["names"])
    for complete, found in [
        (complete_topics, [f"{name}-a", f"{name}-b"]),
        (complete_groups, [f"{name}-g"]),
    ]:
        items = await asyncio.to_thread(complete, context, argument, name)
        assert [each.value for each in items] == found


async def test_in_a_terminal(shell: Shell, name: str) -> None:
    await shell(f"topics create {name} -p 1")
    words = ("topics", "delete", name, "-b", shell.servers)
    async with terminal(*words) as shown:
        await shown.until("Go on? [y/N]: ")
        assert await shown.interrupted() == 130
        assert "Traceback" not in shown.text
    assert name in (await shell("topics list")).out
    async with terminal(*words) as shown:
        await shown.until("Go on? [y/N]: ")
        shown.type("y\n")
        assert await shown.ended() == 0
        assert f"delete topic {name} and its records" in shown.text
        assert "NAME" in shown.text
        assert "\x1b[" in shown.raw
    assert name not in (await shell("topics list")).out
