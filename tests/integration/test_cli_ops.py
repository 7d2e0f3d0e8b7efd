"""The administrator's commands, on the embedded cluster and on a real one."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kafkaio
from kafkaio._cli.reassignment.files import BROKER_THROTTLES, TOPIC_THROTTLES
from kafkaio._cli.reassignment.moves import clear_throttle
from kafkaio.admin import ConfigResource, ConfigResourceType
from kafkaio.errors import Fenced
from kafkaio.protocol.messages.api_versions import ApiVersionsRequest
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import Broker
from tests.support.cli import Result, run_at_terminal, run_beside, terminal
from tests.support.kafka import run_tool
from tests.support.patience import HANGS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("newest"),
]

REAL = pytest.mark.not_embedded("requests and configs of a real broker")
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


@pytest.fixture
def servers(real_kafka_cluster: Kafka) -> tuple[str, str]:
    return "-b", real_kafka_cluster.bootstrap_servers


async def until(words: tuple[str, ...], holds: Callable[[Any], object]) -> Result:
    """Run a command until its document is as expected: brokers learn of changes."""
    end = time.monotonic() + HANGS
    while True:
        result = await run_beside(*words)
        if result.out and holds(result.document):
            return result
        assert time.monotonic() < end, result


# ---- the cluster ---------------------------------------------------------------------


async def test_the_cluster_is_described(servers: tuple[str, str]) -> None:
    document = (
        (await run_beside("cluster", "describe", "--json", *servers)).check().document
    )
    brokers = (await run_beside("cluster", "brokers", *servers)).check().rows
    heads = ["NODE ID", "HOST", "PORT", "RACK", "IS FENCED"]
    assert brokers[0] == heads
    assert [int(row[0]) for row in brokers[1:]] == document["brokers"]
    assert document["controller"] in document["brokers"]
    assert {row[4] for row in brokers[1:]} == {"no"}
    assert "ALTER" in document["operations"]
    assert document["errors"] == []


async def test_features_are_described(servers: tuple[str, str]) -> None:
    words: tuple[str, ...] = ("features", "describe", "--json", *servers)
    document = (await run_beside(*words)).check().document
    levels = {each["feature"]: each for each in document["features"]}
    level = levels["transaction.version"]
    assert level["supported_min"] <= level["level"] <= level["supported_max"]


async def test_features_are_updated_if_it_is_confirmed(
    servers: tuple[str, str],
) -> None:
    words: tuple[str, ...] = ("features", "downgrade", "transaction.version=1")
    dry = await run_beside(*words, "--dry-run", "--json", *servers)
    document = dry.check().document
    (row,) = document["features"]
    assert (document["executed"], row["level"]) == (False, 1)
    refused = (await run_beside(*words, *servers)).check(2)
    assert refused.err.splitlines() == [
        f"transaction.version: level {row['level_before']} -> 1",
        "kafkaio features downgrade: nothing was done: confirm it with --yes",
    ]
    unknown = await run_beside("features", "upgrade", "nonsense=3", "--yes", *servers)
    assert "nonsense" in unknown.check(1).err


async def test_the_quorum_is_shown(servers: tuple[str, str]) -> None:
    words: tuple[str, ...] = ("quorum", "status", "--json", *servers)
    status = (await run_beside(*words)).check().document
    words = ("quorum", "replication", "--json", *servers)
    nodes = (await run_beside(*words)).check().document["nodes"]
    roles = {each["node_id"]: each["role"] for each in nodes}
    assert roles[status["leader"]] == "leader"
    assert sorted(roles) == sorted({*status["voters"], *status["observers"]})
    assert status["max_follower_lag"] >= 0
    voters = (await run_beside("quorum", "voters", *servers)).check().rows
    assert [int(row[0]) for row in voters[1:]] == status["voters"]


@REAL
async def test_voters_that_are_static(
    servers: tuple[str, str], real_kafka_cluster: Kafka
) -> None:
    where = real_kafka_cluster.bootstrap_controllers.split(",")[0]
    voters = (await run_beside("quorum", "voters", *servers)).check().rows
    assert f"CONTROLLER://{where}" in {each for row in voters for each in row}
    number = "00000000-0000-0000-0000-000000000001"
    words: tuple[str, ...] = (
        "quorum",
        "add-voter",
        "9",
        number,
        f"CONTROLLER://{where}",
        *servers,
    )
    assert "support adding voter" in (await run_beside(*words)).check(1).err
    words = ("quorum", "remove-voter", "9", number, "--yes", *servers)
    assert "support removing voter" in (await run_beside(*words)).check(1).err


async def test_a_broker_that_is_not_registered(servers: tuple[str, str]) -> None:
    failed = await run_beside("cluster", "unregister", "99", "--yes", *servers)
    assert "BROKER_ID_NOT_REGISTERED" in failed.check(1).err


async def test_versions_are_those_that_a_broker_tells(
    servers: tuple[str, str], real_kafka_cluster: Kafka
) -> None:
    node = real_kafka_cluster.node_ids[0]
    words: tuple[str, ...] = ("api-versions", "--broker", str(node), "--json", *servers)
    rows = (await run_beside(*words)).check().document["api_versions"]
    request = ApiVersionsRequest(
        client_software_name="test", client_software_version="1"
    )
    async with kafkaio.Client(servers[1]) as client:
        answer = await client.request(request, to=Broker(node))
    told = {it.api_key: (it.min_version, it.max_version) for it in answer.api_keys}
    shown = {
        row["api_key"]: (row["broker_min"], row["broker_max"])
        for row in rows
        if row["broker_min"] is not None
    }
    assert shown == told
    (fetch,) = (row for row in rows if row["api"] == "Fetch")
    assert fetch["highest"] == min(fetch["broker_max"], fetch["client_max"])
    one = await run_beside("api-versions", "--api", "create_topics", *servers)
    assert [row[2] for row in one.check().rows[1:]] == ["CreateTopics"] * 3
    wrong = (await run_beside("api-versions", "--api", "creat_topic", *servers)).check(
        2
    )
    assert "unknown API 'creat_topic': did you mean CreateTopics?" in wrong.err


async def test_a_broker_that_is_not_there(servers: tuple[str, str]) -> None:
    for command in ("api-versions", "log-dirs"):
        failed = (await run_beside(command, "--broker", "99", *servers)).check(1)
        assert failed.err.startswith(
            f"kafkaio {command}: broker 99 does not exist: the "
        )


# ---- replicas and leaders ------------------------------------------------------------


async def test_log_directories_are_shown(
    servers: tuple[str, str], cluster_topic: TopicFactory
) -> None:
    topic = cluster_topic(partitions=2, replication_factor=2)
    words: tuple[str, ...] = ("log-dirs", "--topic", topic)
    found = await until(
        (*words, "--json", *servers),
        lambda it: sum(each["replica_count"] for each in it["log_dirs"]) == 4,
    )
    document = found.check().document
    assert {each["error"] for each in document["log_dirs"]} == {None}
    rows = (await run_beside(*words, "--replicas", *servers)).check().rows
    assert sorted((row[2], row[3]) for row in rows[1:]) == [
        (topic, str(number)) for number in (0, 0, 1, 1)
    ]


async def test_leaders_are_elected(
    servers: tuple[str, str], cluster_topic: TopicFactory
) -> None:
    topic = cluster_topic(partitions=2, replication_factor=2)
    elected = (await run_beside("elect", "preferred", topic, *servers)).check()
    heads = ["TOPIC", "PARTITION", "ELECTED"]
    assert elected.rows == [heads, [topic, "0", "no"], [topic, "1", "no"]]
    words: tuple[str, ...] = ("elect", "unclean", f"{topic}:1", "no-such-topic:0")
    refused = (await run_beside(*words, *servers)).check(2)
    assert f"elect, and maybe lose records of: {topic}-1" in refused.err
    some = (await run_beside(*words, "--yes", "--json", *servers)).check(3)
    assert [each["partition"] for each in some.document["elections"]] == [1]
    (error,) = some.document["errors"]
    assert (error["item"], error["code"]) == (
        "no-such-topic-0",
        "UNKNOWN_TOPIC_OR_PARTITION",
    )
    assert len(some.err.splitlines()) == 1
    one = await run_beside("elect", "preferred", f"{topic}:0-1", *servers)
    assert len(one.check().rows) == 3
    wrong = await run_beside("elect", "preferred", f"{topic}:x", *servers)
    assert "is not TOPIC or TOPIC:0,1,4-6" in wrong.check(2).err
    everything = await run_beside("elect", "preferred", "--all", "--json", *servers)
    assert everything.check().document["errors"] == []


async def test_replicas_move_as_planned(
    servers: tuple[str, str],
    real_kafka_cluster: Kafka,
    cluster_topic: TopicFactory,
    tmp_path: Path,
) -> None:
    topic = cluster_topic(partitions=3, replication_factor=2)
    gone, *rest = real_kafka_cluster.node_ids
    words: tuple[str, ...] = (
        "reassign",
        "plan",
        topic,
        "--without",
        str(gone),
        "--json",
        *servers,
    )
    plan = (await run_beside(*words)).check()
    assert plan.document["copied_replicas"] == 2
    file = tmp_path / "moves.json"
    file.write_text(plan.out)

    shown = (await run_beside("reassign", "execute", str(file), *servers)).check()
    assert shown.rows[0] == ["TOPIC", "PARTITION", "BEFORE", "AFTER"]
    assert shown.err == (
        "kafkaio reassign execute: nothing was done: do it with --execute\n"
    )
    before = await run_beside("reassign", "verify", str(file), "--json", *servers)
    assert before.check(1).document["done"] is False

    words = ("reassign", "execute", str(file), "--execute")
    moved = (await run_beside(*words, "--json", *servers)).check().document
    assert moved["executed"] is True
    assert len(moved["partitions"]) == len(plan.document["partitions"])
    words = ("reassign", "verify", str(file), "--json", *servers)
    assert (await run_beside(*words)).check().document["done"] is True
    again = ("reassign", "plan", topic, "--without", str(gone), "--json", *servers)
    assert (await run_beside(*again)).check().document["partitions"] == []
    async with kafkaio.Admin(servers[1]) as admin:
        (described,) = (await admin.describe_topics([topic])).values()
    assert {node for it in described.partitions for node in it.replicas} == {*rest}
    nothing = await run_beside("reassign", "cancel", str(file), "--execute", *servers)
    assert len(nothing.check().rows) == 1


@REAL
async def test_a_throttle_goes_when_all_have_moved(
    servers: tuple[str, str], real_kafka_cluster: Kafka, cluster_topic: TopicFactory
) -> None:
    topic = cluster_topic(partitions=1, replication_factor=1)
    words: tuple[str, ...] = (
        "reassign",
        "plan",
        topic,
        "--replication-factor",
        "2",
        "--json",
        *servers,
    )
    plan = (await run_beside(*words)).check().out
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    broker = ConfigResource(
        ConfigResourceType.BROKER, str(real_kafka_cluster.node_ids[0])
    )
    names = (*BROKER_THROTTLES, *TOPIC_THROTTLES)

    async def throttles() -> dict[str, str | None]:
        async with kafkaio.Admin(servers[1]) as admin:
            found = await admin.describe_configs([resource, broker])
        return {
            name: entry.value
            for configs in found.values()
            for name, entry in configs.items()
            if name in names and entry.source in {"topic", "broker"}
        }

    words = ("reassign", "execute", "-", "--throttle", "10MB", "--no-wait", "--execute")
    (await run_beside(*words, *servers, typed=plan)).check()
    set_now = await throttles()
    assert set_now[TOPIC_THROTTLES[0]] is not None
    words = ("reassign", "verify", "-", "--wait", "--clear-throttle", *servers)
    (await run_beside(*words, typed=plan)).check()
    left = await throttles()
    end = time.monotonic() + HANGS
    while left:
        assert time.monotonic() < end, left
        left = await throttles()
    words = ("reassign", "execute", "-", "--throttle", "10MB", "--yes", *servers)
    (await run_beside(*words, typed=plan)).check()


@REAL
async def test_a_move_is_cancelled_on_its_way(
    servers: tuple[str, str], cluster_topic: TopicFactory
) -> None:
    topic = cluster_topic(partitions=1, replication_factor=1)
    async with kafkaio.Producer(servers[1]) as producer:
        await producer.send_many(topic, [b"x" * 50_000] * 100)
    words: tuple[str, ...] = ("reassign", "plan", topic, "--replication-factor", "2")
    plan = (await run_beside(*words, "--json", *servers)).check().out
    before = json.loads(plan)["before"][0]["replicas"]
    words = ("reassign", "execute", "-", "--throttle", "1", "--no-wait", "--execute")
    (await run_beside(*words, *servers, typed=plan)).check()

    words = ("reassign", "verify", "-", "--json", *servers)
    state = (await run_beside(*words, typed=plan)).check(1).document
    assert state["partitions"][0]["state"] == "moving"
    cancel = ("reassign", "cancel", "-", "--json", *servers)
    shown = (await run_beside(*cancel, typed=plan)).check().document
    assert shown["executed"] is False
    done = (await run_beside(*cancel, "--execute", typed=plan)).check().document
    assert done["partitions"] == shown["partitions"] != []
    state = (await run_beside(*words, typed=plan)).check(1).document
    assert state["partitions"][0]["state"] == "different"
    assert state["partitions"][0]["replicas"] == before
    async with kafkaio.Admin(servers[1]) as admin:
        await clear_throttle(admin, [topic])


async def test_a_move_shows_its_progress_at_a_terminal(
    servers: tuple[str, str], cluster_topic: TopicFactory, tmp_path: Path
) -> None:
    topic = cluster_topic(partitions=2, replication_factor=1)
    words: tuple[str, ...] = ("reassign", "plan", topic, "--replication-factor", "2")
    file = tmp_path / "moves.json"
    file.write_text((await run_beside(*words, "--json", *servers)).check().out)
    words = ("reassign", "execute", str(file), "--execute", *servers)
    async with terminal(*words) as shown:
        assert await shown.ended() == 0
    assert "moving" in shown.text
    assert "2 partitions" in shown.text


@REAL
async def test_the_tool_of_kafka_reads_a_plan(
    servers: tuple[str, str],
    real_kafka_cluster: Kafka,
    cluster_topic: TopicFactory,
    tmp_path: Path,
) -> None:
    topic = cluster_topic(partitions=1, replication_factor=1)
    words: tuple[str, ...] = (
        "reassign",
        "plan",
        topic,
        "--replication-factor",
        "2",
        "--json",
        *servers,
    )
    file = tmp_path / "moves.json"
    file.write_text((await run_beside(*words)).check().out)
    tool = ("--bootstrap-server", servers[1], "--reassignment-json-file", str(file))
    started = await run_tool(real_kafka_cluster, REASSIGN, *tool, "--execute")
    assert "Successfully started" in started.stdout
    words = ("reassign", "verify", str(file), "--wait", "--clear-throttle", "--json")
    assert (await run_beside(*words, *servers)).check().document["done"] is True
    verified = await run_tool(real_kafka_cluster, REASSIGN, *tool, "--verify")
    assert f"Reassignment of partition {topic}-0 is completed" in verified.stdout
    # And the other way round: what the tool proposes is executed here.
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    nodes = ",".join(map(str, real_kafka_cluster.node_ids[:2]))
    generated = await run_tool(
        real_kafka_cluster,
        *(REASSIGN, "--bootstrap-server", servers[1], "--generate"),
        *("--topics-to-move-json-file", str(topics), "--broker-list", nodes),
    )
    file.write_text(generated.stdout.strip().splitlines()[-1])
    words = ("reassign", "execute", str(file), "--yes", "--json", *servers)
    assert (await run_beside(*words)).check().document["executed"] is True


async def test_files_that_are_wrong_are_named(
    servers: tuple[str, str], cluster_topic: TopicFactory, tmp_path: Path
) -> None:
    missing = tmp_path / "missing.json"
    failed = (await run_beside("reassign", "verify", str(missing), *servers)).check(2)
    assert failed.err.endswith("missing.json: No such file or directory\n")
    failed = await run_beside("reassign", "execute", "-", *servers, typed="{}")
    assert failed.check(2).err == (
        "kafkaio reassign execute: -: partitions: a list is missing\n"
    )
    text = json.dumps(
        {"partitions": [{"topic": "no-such", "partition": 0, "replicas": [1]}]}
    )
    failed = await run_beside("reassign", "execute", "-", *servers, typed=text)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in failed.check(1).err
    cluster_topic()
    words: tuple[str, ...] = (
        "reassign",
        "plan",
        "--all",
        "--replication-factor",
        "9",
        *servers,
    )
    assert "need more than 3 brokers" in (await run_beside(*words)).check(1).err


# ---- records and transactions --------------------------------------------------------


async def test_records_are_deleted_if_it_is_confirmed(
    servers: tuple[str, str], cluster_topic: TopicFactory, tmp_path: Path
) -> None:
    topic = cluster_topic(partitions=2)
    async with kafkaio.Producer(servers[1]) as producer:
        for _ in range(10):
            await producer.send(topic, b"x", partition=0)
    words: tuple[str, ...] = ("records", "delete", f"{topic}:0@4", f"{topic}:7@1")
    refused = (await run_beside(*words, *servers)).check(2)
    assert refused.err.startswith(
        f"delete: records of {topic}-0 from offset 0 to offset 4\n"
    )
    some = (await run_beside(*words, "--yes", "--json", *servers)).check(3)
    assert some.document["partitions"] == [
        {"topic": topic, "partition": 0, "start_before": 0, "start": 4, "deleted": 4}
    ]
    assert [each["item"] for each in some.document["errors"]] == [f"{topic}-7"]
    words = ("records", "delete", f"{topic}:0@99", "--yes", *servers)
    assert "OFFSET_OUT_OF_RANGE" in (await run_beside(*words)).check(1).err
    file = tmp_path / "offsets.json"
    entry = {"topic": topic, "partition": 0, "offset": -1}
    file.write_text(json.dumps({"partitions": [entry], "version": 1}))
    words = ("records", "delete", "--offset-json-file", str(file), "--yes", *servers)
    heads = ["TOPIC", "PARTITION", "START BEFORE", "START", "DELETED"]
    assert (await run_beside(*words)).check().rows == [
        heads,
        [topic, "0", "4", "10", "6"],
    ]
    words = ("records", "delete", "orders", *servers)
    assert "is not TOPIC:PARTITION@OFFSET" in (await run_beside(*words)).check(2).err


async def test_transactions_are_shown_and_ended(
    servers: tuple[str, str], cluster_topic: TopicFactory
) -> None:
    topic = cluster_topic(partitions=1)
    name = f"{topic}-id"
    async with kafkaio.Producer(servers[1], transactional_id=name) as producer:
        with pytest.raises(Fenced):
            await _show_and_terminate(producer, servers, topic)
    words: tuple[str, ...] = ("transactions", "fence", name, "--yes", *servers)
    assert (await run_beside(*words)).check().rows[1][0] == name
    words = ("transactions", "terminate", "nobody", "--yes", *servers)
    assert "TRANSACTIONAL_ID_NOT_FOUND" in (await run_beside(*words)).check(1).err
    words = ("transactions", "hanging", "--topic", topic, "--json", *servers)
    assert (await run_beside(*words)).check().document["transactions"] == []


async def _show_and_terminate(
    producer: kafkaio.Producer, servers: tuple[str, str], topic: str
) -> None:
    """What the commands show of a transaction that is open, and how it ends."""
    name = f"{topic}-id"
    async with producer.transaction() as transaction:
        await transaction.send(topic, b"x")
        words: tuple[str, ...] = (
            "transactions",
            "list",
            "--state",
            "ongoing",
            "--json",
            *servers,
        )
        listed = (await run_beside(*words)).check().document["transactions"]
        assert name in {each["transactional_id"] for each in listed}
        words = ("transactions", "describe", name, "nobody", "--json", *servers)
        described = (await run_beside(*words)).check(3).document
        (row,) = described["transactions"]
        assert row["partitions"] == [{"topic": topic, "partition": 0}]
        assert row["start_time"] is not None
        assert [each["item"] for each in described["errors"]] == ["nobody"]
        rows = (await run_beside(*words[:-4], *servers)).rows
        assert rows[1][-1] == f"{topic}-0"

        abort = ("transactions", "abort", f"{topic}:0", "0", *servers)
        assert "abort: the transaction in" in (await run_beside(*abort)).check(2).err
        refused = (await run_beside(*abort, "--yes")).check(2)
        assert len(refused.err.splitlines()) == 1  # its coordinator still has it
        forced = (await run_beside(*abort, "--yes", "--force", "--json")).check()
        assert forced.document["aborted"] == [
            {"topic": topic, "partition": 0, "start_offset": 0}
        ]
        words = ("transactions", "terminate", name, *servers)
        assert f"terminate: the transaction of {name}" in (
            (await run_beside(*words)).check(2).err
        )
        ended = (await run_beside(*words, "--yes", "--json")).check().document
        assert ended["fenced"][0]["transactional_id"] == name


# ---- share groups --------------------------------------------------------------------


@REAL
async def test_the_offsets_of_a_share_group(
    servers: tuple[str, str], cluster_topic: TopicFactory
) -> None:
    topic = cluster_topic(partitions=2)
    group = f"{topic}-group"
    async with kafkaio.Producer(servers[1]) as producer:
        for _ in range(3):
            await producer.send(topic, b"x", partition=0)
    # The group is made by setting its offsets.
    reset = ("share-groups", "reset", group, "--json", *servers)
    nothing = await run_beside(*reset, "--to-earliest")
    assert "has no offsets: name a topic" in nothing.check(1).err
    words: tuple[str, ...] = (*reset, "--topic", topic, "--to-latest")
    dry = (await run_beside(*words)).check()
    assert dry.document["executed"] is False
    assert (
        dry.err
        == "kafkaio share-groups reset: nothing was done: do it with --execute\n"
    )
    done = (await run_beside(*words, "--execute")).check().document
    assert [(row["before"], row["after"]) for row in done["partitions"]] == [
        (None, 3),
        (None, 0),
    ]
    listed = (await run_beside("share-groups", "list", "--json", *servers)).check()
    assert group in {each["group"] for each in listed.document["groups"]}
    described = await run_beside("share-groups", "describe", group, "nobody", *servers)
    assert described.check(3).rows[1][:2] == [group, "Empty"]
    words = ("share-groups", "describe", group, "--json", *servers)
    assert (await run_beside(*words)).check().document["groups"][0]["group"] == group
    shown = ("share-groups", "offsets", group, "--json", *servers)
    await until(
        shown, lambda it: [row["start_offset"] for row in it["offsets"]] == [3, 0]
    )
    words = (*reset, "--topic", f"{topic}:0", "--to-datetime", "2020-01-01T00:00:00Z")
    back = (await run_beside(*words)).check().document["partitions"]
    assert [(row["before"], row["after"]) for row in back] == [(3, 0)]
    assert (
        "is not a time" in (await run_beside(*words, "--to-datetime", "x")).check(2).err
    )
    for command in ("groups describe", "lag"):
        other = await run_beside(*command.split(), group, *servers)
        assert "is a share group: use kafkaio share-groups" in other.check(1).err
    await _share_groups_at_a_terminal(servers, group, topic)
    words = ("share-groups", "delete", group, *servers)
    refused = (await run_beside(*words)).check(2)
    assert refused.err.startswith(f"delete: share group {group}\n")
    assert (await run_beside(*words, "--yes")).check().rows == [["GROUP"], [group]]
    gone = await run_beside("share-groups", "delete", group, "--yes", *servers)
    assert "GROUP_ID_NOT_FOUND" in gone.check(1).err


async def _share_groups_at_a_terminal(
    servers: tuple[str, str], group: str, topic: str
) -> None:
    """Another group comes, is shown, and goes; a third one goes as JSON."""
    for name in (f"{group}-2", f"{group}-3"):
        reset = ("share-groups", "reset", name, "--topic", topic, "--to-earliest")
        made = await asyncio.to_thread(run_at_terminal, *reset, "--execute", *servers)
        assert made.check().out.split()[:4] == ["TOPIC", "PARTITION", "BEFORE", "AFTER"]
    for command, heads in [
        ("describe", "GROUP STATE MEMBER ID CLIENT ID HOST SUBSCRIPTION ASSIGNMENT"),
        ("offsets", "GROUP TOPIC PARTITION START OFFSET LAG"),
        ("delete", f"delete: share group {group}-2 Go on? [y/N]: y GROUP"),
    ]:
        words = ("share-groups", command, f"{group}-2", *servers)
        shown = (await asyncio.to_thread(run_at_terminal, *words)).check().out
        assert " ".join(shown.replace("─", "").split()).startswith(heads)
        assert f"{group}-2" in shown
    words = ("share-groups", "delete", f"{group}-3", "--yes", "--json", *servers)
    deleted = (await run_beside(*words)).check().document
    assert deleted["groups"] == [{"group": f"{group}-3"}]


# ---- quotas and client metrics -------------------------------------------------------


async def test_quotas_are_set_seen_and_removed(servers: tuple[str, str]) -> None:
    who = ("--user", "carol", "--default-client-id")
    words: tuple[str, ...] = (
        "quotas",
        "set",
        "producer_byte_rate=1MiB",
        "request_percentage=12.5",
    )
    wrong = await run_beside("quotas", "set", "nonsense=1", *who, *servers)
    assert "INVALID_REQUEST" in wrong.check(1).err
    made = (await run_beside(*words, *who, "--json", *servers)).check().document
    both = [
        {"user": "carol", "client_id": "<default>", "ip": None, **quota}
        for quota in (
            {"quota": "producer_byte_rate", "value": 1048576},
            {"quota": "request_percentage", "value": 12.5},
        )
    ]
    assert made["quotas"] == both
    shown = ("quotas", "describe", "--user", "carol", "--json", *servers)
    await until(shown, lambda it: it["quotas"] == both)
    alone = await run_beside(*shown[:-3], "--strict", *servers)
    assert len(alone.check().rows) == 1
    words = ("quotas", "unset", "producer_byte_rate", "request_percentage", *who)
    gone = (await run_beside(*words, *servers)).check()
    assert [row[-1] for row in gone.rows] == ["VALUE", "-", "-"]
    await until(shown, lambda it: not it["quotas"])


@REAL
async def test_subscriptions_of_client_metrics(servers: tuple[str, str]) -> None:
    words: tuple[str, ...] = (
        "client-metrics",
        "set",
        "ours",
        "--metrics",
        "org.apache.kafka.producer.",
    )
    low = await run_beside(*words, "--interval-ms", "5", *servers)
    assert "INVALID_REQUEST" in low.check(1).err
    made = await run_beside(*words, "--interval-ms", "5000", "--json", *servers)
    assert made.check().document["subscriptions"][0]["name"] == "ours"
    listed = ("client-metrics", "list", "--json", *servers)
    await until(listed, lambda it: it["subscriptions"] == [{"name": "ours"}])
    described = await run_beside("client-metrics", "describe", "--json", *servers)
    (row,) = described.check().document["subscriptions"]
    assert (row["metrics"], row["interval_ms"]) == ("org.apache.kafka.producer.", 5000)
    gone = await run_beside("client-metrics", "delete", "ours", "--yes", *servers)
    assert gone.check().rows == [["NAME"], ["ours"]]
    await until(listed, lambda it: not it["subscriptions"])
    failed = await run_beside("client-metrics", "delete", "ours", "--yes", *servers)
    assert failed.check(1).err == (
        "kafkaio client-metrics delete: subscription 'ours' does not exist\n"
    )


# ---- all of them ---------------------------------------------------------------------


async def test_in_a_terminal(
    servers: tuple[str, str], cluster_topic: TopicFactory
) -> None:
    topic = cluster_topic(partitions=1)
    async with terminal("records", "delete", f"{topic}:0@latest", *servers) as shown:
        await shown.until("Go on?")
        shown.type("n\n")
        assert await shown.ended() == 1
        assert "nothing was done" in shown.text


async def test_without_a_broker_there_is_one_line() -> None:
    words: tuple[str, ...] = ("-b", "127.0.0.1:1", "--timeout", "0.1")
    for command in (
        *(("cluster", "describe"), ("log-dirs",), ("elect", "preferred", "t")),
        *(("acls", "list"), ("quotas", "describe"), ("users", "list")),
        *(("tokens", "list"), ("reassign", "plan", "t"), ("api-versions",)),
        *(("records", "delete", "t:0@1"), ("transactions", "list")),
        *(("features", "describe"), ("quorum", "status"), ("client-metrics", "list")),
    ):
        failed = (await run_beside(*command, *words)).check(1)
        assert failed.out == ""
        (line,) = failed.err.splitlines()
        assert line.startswith(f"kafkaio {command[0]}")
        assert "127.0.0.1:1" in line
