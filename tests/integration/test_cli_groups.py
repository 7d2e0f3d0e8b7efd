"""``kafkaio groups`` and ``lag``, on real brokers and the embedded one."""

from __future__ import annotations

from uuid import uuid4

import pytest

import kafkaio
from kafkaio.testing import Broker
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.integration.test_cli_topics import Shell
from tests.support.cli import terminal, validate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

FIRST = 1_700_000_000_000


@pytest.fixture
def shell(real_kafka: Kafka) -> Shell:
    return Shell(real_kafka.bootstrap_servers)


@pytest.fixture
def group() -> str:
    return f"cli-{uuid4().hex[:12]}"


async def filled(servers: str, place: str, count: int) -> None:
    """Write records of one second each to partition 0."""
    async with kafkaio.Producer(servers) as producer:
        for number in range(count):
            await producer.send(
                place, b"v", partition=0, timestamp=FIRST + number * 1000
            )


@pytest.fixture
async def place(shell: Shell, group: str, topic: TopicFactory) -> str:
    """A topic with ten records in one partition of two, of which the group read 4."""
    name = topic(partitions=2, config={"retention.ms": "-1"})
    await filled(shell.servers, name, 10)
    async with kafkaio.Admin(shell.servers) as admin:
        await admin.alter_consumer_group_offsets(
            group,
            {kafkaio.TopicPartition(name, 0): 4, kafkaio.TopicPartition(name, 1): 0},
        )
    return name


async def test_lag(shell: Shell, group: str, place: str) -> None:
    shown = await shell(f"lag {group}")
    assert shown.rows == [
        ["GROUP", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG"],
        [group, place, "0", "4", "10", "6"],
        [group, place, "1", "0", "0", "0"],
    ]
    document = (await shell(f"lag {group} --time --json")).document
    assert document["groups"][0]["lag"] == 6
    # The record at offset 4 is of 2023.
    assert document["partitions"][0]["seconds_behind"] > 1e7
    assert document["partitions"][1]["seconds_behind"] == 0
    sums = (await shell(f"lag {group[:-1]}* --total")).rows
    assert sums[1:] == [[group, "2", "6"]]
    watched = await shell(f"lag {group} --watch --rounds 2 --interval 0.1 --jsonl")
    assert [line["partition"] for line in watched.lines] == [0, 1, 0, 1]
    assert watched.lines[0]["consumed_per_second"] is None
    assert watched.lines[2]["consumed_per_second"] == 0
    for line in watched.lines:
        validate(line, "lag", "line")
    assert "no group matches" in (await shell(f"lag {group}x*", code=1)).err


async def test_lag_of_what_is_not_there(shell: Shell, group: str, place: str) -> None:
    missing = await shell(f"lag {group} {group}-no", code=3)
    assert missing.err == f"kafkaio lag: group '{group}-no' does not exist\n"
    assert [row[1] for row in missing.rows[1:]] == [place, place]
    assert "does not exist" in (await shell(f"lag {group}-no", code=1)).err


async def test_groups_are_listed_and_described(
    shell: Shell, group: str, place: str
) -> None:
    rows = (await shell(f"groups list {group[:-2]}*")).rows
    assert rows[0] == ["GROUP", "TYPE", "STATE", "COORDINATOR"]
    assert rows[1][:3] == [group, "classic", "Empty"]
    stable = await shell(f"groups list {group[:-2]}* --state Stable", code=1)
    assert "no group matches" in stable.err
    some = await shell(f"groups list {group} {group}-no", code=3)
    assert ([row[0] for row in some.rows[1:]], len(some.rows)) == ([group], 2)
    assert f"group '{group}-no' does not exist" in some.err
    found = (await shell("groups list --type classic --state empty --json")).document
    assert group in [each["group"] for each in found["groups"]]
    async with kafkaio.Consumer(
        shell.servers, topics=[place], group_id=group, group_protocol="classic"
    ):
        described = (await shell(f"groups describe {group} --json")).document
        member = described["groups"][0]["members"][0]
        assert member["assignment"] == [f"{place}-0", f"{place}-1"]
        shown = await shell(f"groups describe {group}")
        assert shown.rows[1][-1] == f"{place}-0,{place}-1"
        refused = await shell(f"groups reset {group} --to-latest --execute", code=1)
        assert group in refused.err
        assert "Traceback" not in refused.err
        watched = await shell(f"groups watch {group} --rounds 1 --jsonl")
        assert watched.lines[0]["members"] == 1
        validate(watched.lines[0], "groups", "watch")
        removed = await shell(f"groups remove-members {group} --all --yes --json")
        assert len(removed.document["members"]) == 1


async def test_where_offsets_go(shell: Shell, group: str, place: str) -> None:
    for options, after in [
        ("--to-earliest", 0),
        ("--to-latest", 10),
        ("--to-current", 4),
        ("--to-offset 7", 7),
        ("--to-offset 99", 10),
        ("--shift-by 3", 7),
        ("--shift-by -9", 0),
        ("--to-datetime 2023-11-14T22:13:22Z", 2),
        ("--to-datetime @1700000003000", 3),
        ("--by-duration 1h", 10),
    ]:
        line = f"groups reset {group} --topic {place}:0 {options} --json"
        row = {"group": group, "topic": place, "partition": 0, "before": 4}
        document = (await shell(line)).document
        assert document["offsets"] == [{**row, "after": after}], options
        assert (document["executed"], document["errors"]) == (False, [])


async def test_a_reset_is_written_when_it_is_executed(
    shell: Shell, group: str, place: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    await shell(f"groups reset {group} --to-earliest")
    assert (await shell(f"groups offsets {group}")).rows[1] == [
        group,
        place,
        "0",
        "4",
        "",
    ]
    done = await shell(
        f"groups reset {group} --shift-by 2 --topic {place}:0 --execute --json"
    )
    assert done.document["executed"] is True
    committed = (await shell(f"groups offsets {group} --json")).document["offsets"]
    assert [each["offset"] for each in committed] == [6, 0]
    # What kafka-consumer-groups.sh --export prints, and reads.
    exported = await shell(f"groups reset {group} --to-current --export")
    assert exported.out == f"{place},0,6\n{place},1,0\n"
    changed = exported.out.replace(",6", ",1")
    read = await shell(f"groups reset {group} --from-file - --execute", typed=changed)
    assert read.rows[1:] == [
        [group, place, "0", "6", "1"],
        [group, place, "1", "0", "0"],
    ]
    several = await shell(
        f"groups reset {group} {group}-2 --to-current --export", code=3
    )
    assert several.out == f"{group},{place},0,1\n{group},{place},1,0\n"
    assert f"group '{group}-2' has no committed offsets" in several.err
    file = tmp_path_factory.mktemp("csv") / "wrong.csv"
    file.write_text(f"{place},0,1\n{place},x,1\n")
    wrong = await shell(f"groups reset {group} --from-file {file}", code=2)
    assert f"{file}:2: '{place},x,1' is not topic,partition,offset" in wrong.err
    gone = await shell(f"groups delete-offsets {group} {place}:0 --yes --json")
    assert [each["partition"] for each in gone.document["offsets"]] == [0]
    refused = await shell(f"groups delete {group}", code=2)
    assert "--yes" in refused.err
    await shell(f"groups delete {group} --yes --json")
    assert (
        "GROUP_ID_NOT_FOUND"
        in (await shell(f"groups delete {group} --yes", code=1)).err
    )


async def test_wrong_calls_of_reset(shell: Shell, group: str) -> None:
    for options, message in [
        ("", "give one of --to-earliest, "),
        ("--to-latest --shift-by 1", "give one of "),
        ("--to-latest --execute --dry-run", "exclude each other"),
        ("--by-duration soon", "is not a duration"),
        ("--by-duration P36500D", "'P36500D' ago is before 1970"),
        ("--from-file /no/such/file", "No such file"),
        ("--to-latest --topic a:x", "is not TOPIC or TOPIC:0,1,4-6"),
    ]:
        assert message in (await shell(f"groups reset {group} {options}", code=2)).err


async def test_watches_redraw_in_place_survive_a_restart_and_end_at_once(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    directory = tmp_path_factory.mktemp("data")
    async with Broker(topics={"orders": 1}, data_dir=directory) as broker:
        servers = broker.bootstrap_servers
        await filled(servers, "orders", 5)
        async with kafkaio.Admin(servers) as admin:
            await admin.alter_consumer_group_offsets(
                "billing", {kafkaio.TopicPartition("orders", 0): 2}
            )
        words = ("billing", "--interval", "0.1", "-b", servers)
        async with (
            terminal("lag", "--watch", *words) as lag,
            terminal("groups", "watch", *words) as groups,
        ):
            for shown in (lag, groups):
                await shown.until("billing")
                await shown.until(" UTC")
            await filled(servers, "orders", 3)
            await lag.until(" 6 ")
            assert "\x1b[1A" in lag.raw  # the cursor goes up
            port = int(servers.rpartition(":")[2])
            await broker.__aexit__(None, None, None)
            for shown in (lag, groups):
                await shown.until("no answer since")
                shown.forget()
            async with Broker(port=port, data_dir=directory):
                for shown in (lag, groups):
                    await shown.until("billing")
                for shown in (lag, groups):
                    shown.type("\x03")
                    assert await shown.ended() == 130
                    assert "Traceback" not in shown.text


async def test_a_watch_ends_between_two_looks() -> None:
    """The next one is longer away than the test waits for anything."""
    async with Broker(topics={"orders": 1}) as broker:
        servers = broker.bootstrap_servers
        async with kafkaio.Admin(servers) as admin:
            await admin.alter_consumer_group_offsets(
                "billing", {kafkaio.TopicPartition("orders", 0): 2}
            )
        words = ("billing", "--watch", "--interval", "3600", "-b", servers)
        async with terminal("lag", *words) as shown:
            await shown.until(" UTC")
            shown.type("\x03")
            assert await shown.ended() == 130
