"""``kafkaio consume --share``: a worker of a queue, from a shell."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

import kafkaio
from kafkaio.testing import Broker
from tests.support.cli import Result, environment, run, run_beside, terminal, validate

CONFIGS = ("configs", "set", "group", "workers")


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"jobs": 1}) as broker:
        with environment(
            KAFKAIO_BOOTSTRAP_SERVERS=broker.bootstrap_servers,
            XDG_CONFIG_HOME="/nonexistent",
        ):
            earliest = "share.auto.offset.reset=earliest"
            (await run_beside(*CONFIGS, earliest)).check()
            yield broker


async def send(broker: Broker, *values: bytes) -> None:
    """Send values as one record batch."""
    async with kafkaio.Producer(broker.bootstrap_servers, linger_ms=50) as producer:
        await producer.send_many("jobs", values)


async def take(*words: str) -> Result:
    return await run_beside("consume", "jobs", "--share", "workers", *words)


async def lag() -> int:
    offsets = await run_beside("share-groups", "offsets", "workers", "--json")
    [row] = offsets.check().document["offsets"]
    found: int = row["lag"]
    return found


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        (("-g", "x"), "--group: --share names the group"),
        (("-p", "1"), "--partition: the group says"),
        (("-o", "end"), "--offset: the group has one place for all its workers"),
        (("-o", "end"), "kafkaio share-groups reset workers moves it"),
        (("-o", "5"), "configs set group workers share.auto.offset.reset=earliest"),
        (("-e",), "--exit: a queue has no end"),
        (("--filter", "key == 'a'"), "--filter: what it leaves out"),
        (("--to-arrow", "x"), "--to-arrow: a record is accepted when it is printed"),
        (("--to-parquet", "x"), "use --jsonl"),
        (
            ("--read-committed",),
            "configs set group workers share.isolation.level=read_committed",
        ),
    ],
)
def test_what_has_no_meaning_for_a_queue_is_refused(
    option: tuple[str, ...], instead: str
) -> None:
    result = run("consume", "jobs", "--share", "workers", *option).check(2)
    assert instead in result.err
    assert len(result.err.splitlines()) == 1


def test_options_that_need_each_other() -> None:
    for words, message in (
        (("--on-error", "reject"), "--on-error needs --share"),
        (("--share", "g", "--on-error", "reject"), "--on-error needs -s"),
        (("--share", ""), "--share names a group, and this name is empty"),
    ):
        result = run("consume", "jobs", *words).check(2)
        assert result.err == f"kafkaio consume: {message}\n"


def test_a_cluster_that_does_not_answer_is_named() -> None:
    words = ("-b", "127.0.0.1:1", "--timeout", "0.5")
    result = run("consume", "jobs", "--share", "workers", *words).check(1)
    assert "the cluster did not answer" in result.err
    assert "127.0.0.1:1" in result.err


async def test_what_is_printed_is_accepted(broker: Broker) -> None:
    await send(broker, b"one", b"two", b"three")
    first = (await take("-c", "2")).check()
    assert first.out == "one\ntwo\n"
    # The third one was not locked for it, or was given back at once.
    second = (await take("-c", "1", "--jsonl")).check()
    [line] = second.lines
    validate(line, "consume", "line")
    assert (line["value"], line["offset"]) == ("three", 2)
    assert line["delivery_count"] == 1
    assert await lag() == 0


async def test_a_document_has_the_delivery_counts(broker: Broker) -> None:
    await send(broker, b"one")
    async with kafkaio.ShareConsumer(
        broker.bootstrap_servers, topics="jobs", group_id="workers"
    ) as share:
        async for record in share:
            record.release()
            break
    document = (await take("-c", "1", "--json")).check().document
    assert [row["delivery_count"] for row in document["records"]] == [2]
    # What consume prints, produce reads.
    (await take_back(document["records"])).check()


async def take_back(rows: list[dict[str, object]]) -> Result:
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    return await run_beside("produce", "jobs", "--jsonl", typed=lines)


async def test_what_cannot_be_decoded_is_rejected(broker: Broker) -> None:
    await send(broker, b"%08d" % 1, b"no long", b"%08d" % 2)
    words = ("-s", "long", "--skip-errors", "--on-error", "reject", "-c", "2")
    result = (await take(*words)).check(3)
    assert len(result.out.splitlines()) == 2
    assert "jobs-0@1 value" in result.err
    assert await lag() == 0


async def test_what_cannot_be_decoded_ends_it_and_comes_again(broker: Broker) -> None:
    await send(broker, b"%08d" % 1, b"no long", b"%08d" % 2)
    result = (await take("-s", "long")).check(1)
    assert len(result.out.splitlines()) == 1
    assert "jobs-0@1 value" in result.err
    again = (await take("-c", "2", "--jsonl")).check()
    assert {(line["offset"], line["value"]) for line in again.lines} == {
        (1, "no long"),
        (2, "00000002"),
    }
    assert await lag() == 0


async def test_ctrl_c_gives_back_what_was_not_printed(broker: Broker) -> None:
    await send(broker, b"one")
    async with terminal("consume", "jobs", "--share", "workers") as shell:
        await shell.until("one")
        assert await shell.interrupted() == 130
    await send(broker, b"two")
    assert (await take("-c", "1", "--jsonl")).check().lines[0]["offset"] == 1


async def test_a_group_of_another_kind_is_named(broker: Broker) -> None:
    async with kafkaio.Consumer(
        broker.bootstrap_servers, topics="jobs", group_id="workers"
    ):
        result = (await take("-c", "1")).check(1)
    assert "workers" in result.err
