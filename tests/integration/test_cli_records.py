"""``kafkaio consume produce copy replay bench request``, on a broker."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafkaio
from kafkaio import Producer, TopicPartition
from kafkaio.testing import Broker, SchemaRegistry
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.support.cli import Result, environment, run_beside, terminal, validate
from tests.support.kafka import run_tool
from tests.support.patience import HANGS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

#: Of topics whose records are older than any retention.
KEEP = {"retention.ms": "-1"}


class Shell:
    """Runs commands against a broker."""

    def __init__(self, servers: str) -> None:
        self.servers = servers

    async def __call__(self, *words: str, typed: str | None = None) -> Result:
        return await run_beside(*words, "-b", self.servers, typed=typed)


@pytest.fixture
def kafkaio_(real_kafka: Kafka) -> Shell:
    return Shell(real_kafka.bootstrap_servers)


def complaints(said: bytes) -> list[bytes]:
    """Return lines of stderr; in debug mode asyncio tells that the machine is slow."""
    lines = [line for line in said.splitlines() if line]
    return [line for line in lines if not line.startswith(b"Executing ")]


async def test_records_with_schemas(
    kafkaio_: Shell, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic(1)
    file = tmp_path / "order.avsc"
    file.write_text(
        '{"type":"record","name":"O","fields":[{"name":"id","type":"long"},'
        '{"name":"note","type":["null","string"],"default":null}]}'
    )
    async with SchemaRegistry() as registry:
        at = ("-s", "avro", "-s", "key=long", "-r", registry.url)
        sent = await kafkaio_(
            *("produce", name, *at, "--schema", str(file), "-f", r"%k\t%v\n"),
            typed='7\t{"id": 1}\n8\t{"id": 2, "note": "x"}\n',
        )
        sent.check()
        shown = await kafkaio_("consume", name, "-e", *at, "--jsonl", "-g", f"{name}-g")
        assert [(row["key"], row["value"]) for row in shown.check().lines] == [
            (7, {"id": 1, "note": None}),
            (8, {"id": 2, "note": "x"}),
        ]
        again = await kafkaio_("consume", name, "-e", *at, "-g", f"{name}-g")
        assert again.check().out == ""
        await kafkaio_("produce", name, typed="plain\n")
        keep = ("--filter", "value.note == 'x'", "--skip-errors")
        some = await kafkaio_("consume", name, "-e", *at, *keep, "-f", r"%k %o\n")
        assert some.check(3).out == "8 1\n"
        assert f"{name}-0@2 value: unknown magic byte" in some.err
        count = registry.count("GET /schemas/ids")
        assert count <= 4  # each command asks once


async def test_produced_lines_are_consumed(
    kafkaio_: Shell, topic: TopicFactory
) -> None:
    name = topic(1)
    typed = "a\t1\nb\t2\nc\t"
    sent = await kafkaio_(
        *("produce", name, "-f", r"%k\t%v\n", "-H", "h=x", "--json"), typed=typed
    )
    assert sent.check().document == {
        "records": 3,
        "failed": 0,
        "partitions": [{"topic": name, "partition": 0, "records": 3}],
        "errors": [],
    }

    shown = await kafkaio_("consume", name, "-e", "-f", r"%o %k=%v %h{%k:%v}\n")
    assert shown.check().out == "0 a=1 h:x\n1 b=2 h:x\n2 c= h:x\n"
    last = await kafkaio_("consume", name, "-e", "-o", "-2", "--kcat-format", r"%k\n")
    assert last.check().out == "b\nc\n"
    middle = await kafkaio_("consume", name, "-o", "1..2")
    assert middle.check().out == "2\n"
    first = await kafkaio_("consume", name, "-c", "1")
    assert first.check().out == "1\n"
    some = await kafkaio_("consume", name, "-e", "--filter", "key == 'b'", "-f", "%v")
    assert some.check().out == "2"
    document = (await kafkaio_("consume", name, "--json", "-e")).check().document
    assert [each["key"] for each in document["records"]] == ["a", "b", "c"]


async def test_lines_of_json_go_in_and_out(
    kafkaio_: Shell, topic: TopicFactory
) -> None:
    name, other = topic(2, config=KEEP), topic(2, config=KEEP)
    lines = [
        {"key": "k", "value": {"base64": "/w=="}, "partition": 1, "timestamp": 1000},
        {"key": None, "value": None, "headers": [{"name": "a", "value": None}]},
    ]
    typed = "\n".join(map(json.dumps, lines))
    (await kafkaio_("produce", name, "--jsonl", typed=typed)).check()

    out = (await kafkaio_("consume", name, "-e", "--jsonl", "-p", "1")).check()
    found = [line for line in out.lines if line["key"] == "k"]
    validate(found[0], "consume", "line")
    assert found[0]["value"] == {"base64": "/w=="}
    assert found[0]["timestamp"] == 1000

    every = (await kafkaio_("consume", name, "-e", "--jsonl")).check()
    moved = [json.dumps({**line, "topic": other}) for line in every.lines]
    (await kafkaio_("produce", "--jsonl", typed="\n".join(moved))).check()
    again = (await kafkaio_("consume", other, "-e", "--jsonl")).check()
    known = ("partition", "key", "value", "headers", "timestamp")
    assert sorted(str([line[k] for k in known]) for line in again.lines) == sorted(
        str([line[k] for k in known]) for line in every.lines
    )


async def test_a_bad_line_is_named_and_those_before_are_sent(
    kafkaio_: Shell, topic: TopicFactory
) -> None:
    name = topic(1)
    result = await kafkaio_(
        "produce", name, "--jsonl", typed='{"value":"a"}\n{"x":1}\n'
    )

    assert result.check(1).err == (
        "kafkaio produce: line 2: unknown key 'x'; the records before it are sent\n"
    )
    assert (await kafkaio_("consume", name, "-e")).check().out == "a\n"


async def test_a_group_goes_on_where_it_stopped(
    kafkaio_: Shell, topic: TopicFactory
) -> None:
    name = topic(1)
    group = f"{name}-group"
    (await kafkaio_("produce", name, typed="1\n2\n3\n4\n")).check()

    assert (await kafkaio_("consume", name, "-g", group, "-c", "3")).out == "1\n2\n3\n"
    assert (await kafkaio_("consume", name, "-g", group, "-e")).out == "4\n"
    assert (await kafkaio_("consume", name, "-g", group, "-e")).check().out == ""


async def test_a_member_without_a_partition_ends(
    kafkaio_: Shell, topic: TopicFactory
) -> None:
    name = topic(1)
    group = f"{name}-group"
    (await kafkaio_("produce", name, typed="1\n")).check()
    async with kafkaio.Consumer(
        kafkaio_.servers,
        topics=[name],
        group_id=group,
        group_protocol="classic",
        heartbeat_interval_ms=100,
    ) as consumer:
        # The member that is there first keeps the partition.
        words = ("consume", name, "-g", group, "--exit", "--timeout", "2")
        left_out = await kafkaio_(*words, "-X", "group.protocol=classic")
        assert consumer.assignment == {TopicPartition(name, 0)}
    assert left_out.check().out == ""
    assert left_out.err == (
        f"kafkaio consume: group {group} assigned no partition to this member within "
        "2 s (--timeout): others read them\n"
    )


async def test_committed_records_end_before_a_marker(
    kafkaio_: Shell, topic: TopicFactory
) -> None:
    name = topic(1)
    async with Producer(kafkaio_.servers, transactional_id=name) as producer:
        async with producer.transaction() as tx:
            await tx.send(name, b"kept")
        with suppress(RuntimeError):
            async with producer.transaction() as tx:
                await tx.send(name, b"aborted")
                raise RuntimeError

    shown = await kafkaio_("consume", name, "-e", "--read-committed")
    assert shown.check().out == "kept\n"


async def test_files_of_arrow_and_parquet(
    kafkaio_: Shell, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic(2)
    (await kafkaio_("produce", name, "-k", "k", typed="1\n2\n3\n")).check()
    arrow, parquet = tmp_path / "a.arrow", tmp_path / "a.parquet"

    (await kafkaio_("consume", name, "-e", "--to-arrow", str(arrow))).check()
    (await kafkaio_("consume", name, "-c", "2", "--to-parquet", str(parquet))).check()

    with pa.ipc.open_file(arrow) as file:
        assert file.read_all()["value"].to_pylist() == [b"1", b"2", b"3"]
    assert pq.read_table(parquet)["key"].to_pylist() == [b"k", b"k"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("consume", "t", "-f", "%z"), "unknown token %z"),
        (("consume", "t", "--filter", "key = 1"), "comparison"),
        (("consume", "t", "-o", "x"), "none of beginning"),
        (("consume", "t", "-J", "--jsonl"), "exclude each other"),
        (("consume", "t", "-g", "g", "-o", "3"), "with --group"),
        (("produce", "t", "-f", "%k%v"), "the end of %k is not defined"),
        (("produce",), "name a TOPIC"),
        (("copy", "t", "t"), "copied to itself"),
        (("copy", "t", "u", "--exactly-once"), "needs a --group"),
        (("copy", "t", "u", "--offset-map", "m"), "needs --raw"),
        (
            ("copy", "t", "u", "--raw", "--filter", "offset == 1"),
            "--raw and --filter exclude",
        ),
        (("copy", "t", "u", "--raw", "--exactly-once"), "needs a --group"),
        (("request", "metadatas"), "did you mean Metadata"),
        (("request", "Metadata", "{"), "JSON: "),
        (("request", "Metadata", '{"topics":[{"nme":""}]}'), "topics[0].nme"),
        (("request", "Metadata", "--to", "x"), "not any, controller"),
        (("request", "Metadata", "--version", "99"), "has versions 0 to 13"),
    ],
)
async def test_a_wrong_command_line(
    kafkaio_: Shell, words: tuple[str, ...], said: str
) -> None:
    result = await kafkaio_(*words, typed="a\n")

    assert said in result.check(2).err


async def test_a_topic_is_copied_with_all_it_has(
    kafkaio_: Shell, topic: TopicFactory
) -> None:
    source, copied = (topic(n, config=KEEP) for n in (2, 3))
    async with Producer(kafkaio_.servers) as producer:
        for number in range(6):
            await producer.send(
                source,
                b"%d" % number if number else None,
                key=b"k",
                headers=[("h", None)],
                timestamp=1000 + number,
                partition=number % 2,
            )
    shown = ("-e", "-f", r"%p %d %k=%v %h{%k}\n")

    done = await kafkaio_("copy", source, copied, "--partitions", "--json")
    assert done.check().document["records"] == 6
    expected = (await kafkaio_("consume", source, *shown)).check().out
    assert expected.count("\n") == 6
    got = (await kafkaio_("consume", copied, *shown)).check().out
    assert sorted(got.splitlines()) == sorted(expected.splitlines())


async def test_a_topic_is_copied_raw_with_a_map_of_its_offsets(
    kafkaio_: Shell, topic: TopicFactory, tmp_path: Path
) -> None:
    source, copied = topic(2), topic(3)
    async with Producer(kafkaio_.servers, compression_type="zstd") as producer:
        await producer.send(copied, b"first", partition=1)
        for start in range(0, 30, 10):
            for partition in range(2):
                records = [
                    kafkaio.NewRecord(b"%d" % n, key=b"k", partition=partition)
                    for n in range(start, start + 10)
                ]
                await producer.send_many(source, records)
    shown = ("-e", "-f", r"%p %k=%v\n")
    found = tmp_path / "offsets.jsonl"
    words = ("copy", source, copied, "-g", f"{source}-group", "--json")
    # The place of the group is in the middle of a batch.
    first = await kafkaio_("copy", source, copied, "--raw", "-o", "0..15", "--json")
    assert first.check().document["records"] == 30
    where = {TopicPartition(source, n): 15 for n in range(2)}
    async with kafkaio.Admin(kafkaio_.servers) as admin:
        await admin.alter_consumer_group_offsets(f"{source}-group", where)

    rest = await kafkaio_(*words, "--raw", "--offset-map", str(found))
    assert rest.check().document["records"] == 30
    again = await kafkaio_(*words, "--raw", "--offset-map", str(found))
    assert again.check().document["records"] == 0

    expected = (await kafkaio_("consume", source, *shown)).check().out.splitlines()
    got = (await kafkaio_("consume", copied, *shown)).check().out.splitlines()
    assert sorted(got) == sorted([*expected, "1 =first"])
    lines = [json.loads(line) for line in found.read_text().splitlines()]
    for partition in range(2):
        mapped = [
            (line["offset"] + at, line["to_offset"] + at)
            for line in lines
            if line["partition"] == partition
            for at in range(line["records"])
        ]
        assert mapped == [(n, n + partition) for n in range(15, 30)]
    assert {(line["from"], line["to"]) for line in lines} == {(source, copied)}


@pytest.mark.kafka_versions("2.8+")  # who is no member is fenced (KIP-447)
async def test_a_topic_is_copied_exactly_once(
    kafkaio_: Shell, topic: TopicFactory
) -> None:
    source, once = (topic(n) for n in (2, 2))
    (await kafkaio_("produce", source, typed="1\n2\n3\n4\n5\n6\n")).check()

    words = ("copy", source, once, "-g", f"{once}-group", "--exactly-once")
    assert (await kafkaio_(*words, "--json")).check().document["records"] == 6
    assert (await kafkaio_(*words, "--json")).check().document["records"] == 0
    committed = await kafkaio_("consume", once, "-e", "--read-committed")
    assert len(committed.check().out.splitlines()) == 6


@pytest.mark.kafka_versions("2.8+")
async def test_batches_are_copied_exactly_once(
    kafkaio_: Shell, topic: TopicFactory, tmp_path: Path
) -> None:
    source, once, found = topic(2), topic(2), tmp_path / "offsets.jsonl"
    async with Producer(
        kafkaio_.servers, transactional_id=source, compression_type="zstd"
    ) as producer:
        for number in range(12):
            transaction = producer.transaction()
            await transaction.begin()
            for partition in range(2):
                value = b"%d in %d" % (number, partition)
                await transaction.send(source, value, partition=partition)
            # The last one is committed, so a marker is all that is at the end.
            await (transaction.commit() if number % 2 else transaction.abort())

    words = ("copy", source, once, "-g", f"{once}-group", "--raw", "--exactly-once")
    words = (*words, "--offset-map", str(found), "--json")
    assert (await kafkaio_(*words)).check().document["records"] == 12
    assert (await kafkaio_(*words)).check().document["records"] == 0

    shown = ("consume", once, "-e", "--read-committed", "-f", r"%p %v\n")
    got = (await kafkaio_(*shown)).check().out.splitlines()
    assert sorted(got) == sorted(
        f"{partition} {number} in {partition}"
        for number in range(1, 12, 2)
        for partition in range(2)
    )
    lines = [json.loads(line) for line in found.read_text().splitlines()]
    assert sum(line["records"] for line in lines) == 12
    async with kafkaio.Consumer(kafkaio_.servers, topics=[once]) as consumer:
        consumer.seek_to_beginning()
        async with asyncio.timeout(HANGS):
            batch = await anext(consumer.raw_batches())
    assert batch.is_transactional
    assert batch.compression_type == "zstd"


@pytest.mark.kafka_versions("2.8+")
async def test_a_raw_copy_that_is_killed_repeats_nothing(
    kafkaio_: Shell, topic: TopicFactory
) -> None:
    source, once = topic(2), topic(2)
    words = ("copy", source, once, "-g", f"{once}-group", "--raw", "--exactly-once")
    # The member that was killed keeps its partitions for one session.
    words = (*words, "-X", "group.protocol=classic", "-X", "session.timeout.ms=6000")
    sent: list[bytes] = []

    async def send() -> None:
        async with Producer(kafkaio_.servers, compression_type="zstd") as producer:
            while True:
                batch = [b"%d" % n for n in range(len(sent), len(sent) + 5)]
                sent.extend(batch)
                await asyncio.shield(producer.send_many(source, batch))
                await asyncio.sleep(0.005)

    reading = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    async with (
        kafkaio.Consumer(kafkaio_.servers, topics=[once], **reading) as reader,
        asyncio.timeout(HANGS),
        asyncio.TaskGroup() as tasks,
    ):
        sending = tasks.create_task(send())
        for kills in range(3):
            copy = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "kafkaio", *words),
                *("--follow", "-b", kafkaio_.servers),
            )
            # Each time at another place of a transaction.
            for _ in range(100 + 37 * kills):
                await anext(reader)
            copy.kill()
            await copy.wait()
        sending.cancel()
    (await kafkaio_(*words)).check()

    shown = ("consume", once, "-e", "--read-committed")
    got = (await kafkaio_(*shown)).check().out.encode().split()
    assert sorted(got) == sorted(sent)


async def test_a_copy_goes_on_with_its_group(
    kafkaio_: Shell, topic: TopicFactory
) -> None:
    source, copied = topic(1), topic(1)
    words = ("copy", source, copied, "-g", f"{source}-group", "--json")

    (await kafkaio_("produce", source, typed="1\n2\n")).check()
    assert (await kafkaio_(*words)).check().document["records"] == 2
    (await kafkaio_("produce", source, typed="3\n")).check()
    assert (await kafkaio_(*words)).check().document["records"] == 1
    assert (await kafkaio_("consume", copied, "-e")).check().out == "1\n2\n3\n"


async def test_a_copy_to_another_cluster(
    kafkaio_: Shell, topic: TopicFactory, tmp_path: Path
) -> None:
    source = topic(2)
    (await kafkaio_("produce", source, "-k", "k", typed="1\n2\n3\n")).check()
    async with Broker(topics={source: 2, "other": 1}) as broker:
        there = Shell(broker.bootstrap_servers)
        words = ("copy", source, source, "--to-bootstrap", there.servers)
        done = await kafkaio_(*words, "--partitions", "--json")
        assert done.check().document["records"] == 3
        shown = ("consume", source, "-e", "-f", r"%p %k=%v\n")
        expected = (await kafkaio_(*shown)).check().out
        assert (await there(*shown)).check().out == expected

        file = tmp_path / "kafkaio" / "config.toml"
        file.parent.mkdir()
        file.write_text(f'[profiles.there]\nbootstrap.servers = "{there.servers}"\n')
        profile = ("copy", source, "other", "--to-profile", "there", "--filter")
        with environment(XDG_CONFIG_HOME=str(tmp_path)):
            done = await kafkaio_(*profile, "value != '2'", "--json")
        assert done.check().document["records"] == 2
        assert (await there("consume", "other", "-e")).check().out == "1\n3\n"


async def test_a_copy_follows_its_source_until_ctrl_c(
    kafkaio_: Shell, topic: TopicFactory
) -> None:
    source, copied = topic(1), topic(1)
    words = ("copy", source, copied, "-g", f"{source}-group", "--follow")
    (await kafkaio_("produce", source, typed="1\n")).check()
    async with (
        kafkaio.Consumer(kafkaio_.servers, topics=[copied]) as consumer,
        terminal(*words, "-b", kafkaio_.servers) as shown,
        asyncio.timeout(HANGS),
    ):
        values = [(await anext(consumer)).value]
        (await kafkaio_("produce", source, typed="2\n")).check()
        values.append((await anext(consumer)).value)
        shown.type("\x03")
        assert await shown.ended(10) == 130
    assert values == [b"1", b"2"]
    again = await kafkaio_(*words[:-1], "--json")
    assert again.check().document["records"] == 0  # all that was copied is committed


@pytest.mark.kafka_versions("2.1")
async def test_brokers_that_cannot_copy_exactly_once(
    kafkaio_: Shell, topic: TopicFactory
) -> None:
    source, once = topic(1), topic(1)
    (await kafkaio_("produce", source, typed="1\n")).check()
    words = ("copy", source, once, "-g", f"{once}-group", "--exactly-once")
    assert "2.5" in (await kafkaio_(*words)).check(1).err
    committed = await kafkaio_("consume", once, "-e", "--read-committed")
    assert committed.check().out == ""


@pytest.mark.kafka_versions("2.8+")
async def test_transactions_copy_what_is_kept_and_end_behind_a_marker(
    kafkaio_: Shell, topic: TopicFactory
) -> None:
    source, copied = topic(1), topic(1)
    async with (
        Producer(kafkaio_.servers, transactional_id=source) as producer,
        producer.transaction() as tx,
    ):
        for number in range(6):
            await tx.send(source, b"%d" % number)
    words = ("copy", source, copied, "-g", f"{source}-group", "--exactly-once")
    done = await kafkaio_(*words, "--filter", "value in ('1', '4')", "--json")
    assert done.check().document["records"] == 2
    shown = ("consume", copied, "-e", "--read-committed")
    assert (await kafkaio_(*shown)).check().out == "1\n4\n"


async def test_a_topic_that_does_not_exist_is_named(
    kafkaio_: Shell, topic: TopicFactory
) -> None:
    name = f"{topic(1)}-no"
    words = ("-X", "allow.auto.create.topics=false", "--timeout", "0.5")
    result = (await kafkaio_("produce", name, *words, typed="x\n")).check(1)
    assert f"record 1: topic '{name}' is not known to the cluster" in result.err


@pytest.mark.not_embedded("it is compared with Kafka's own tool")
@pytest.mark.kafka_versions("newest")
async def test_it_prints_what_kafkas_console_consumer_prints(
    kafkaio_: Shell, real_kafka: Kafka, topic: TopicFactory
) -> None:
    name = topic(1, config=KEEP)
    async with Producer(kafkaio_.servers) as producer:
        for number, value in enumerate((b"one", "zw\u00f6lf".encode(), b"", None)):
            await producer.send(
                name,
                value,
                key=None if number == 2 else b"k%d" % number,
                headers=[("h", b"%d" % number)],
                timestamp=1000 + number,
            )
    tool = await run_tool(
        real_kafka,
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", kafkaio_.servers, "--topic", name),
        *("--from-beginning", "--max-messages", "4"),
        *(
            "--formatter-property",
            "print.timestamp=true",
            "--formatter-property",
            "print.partition=true",
        ),
        *(
            "--formatter-property",
            "print.offset=true",
            "--formatter-property",
            "print.headers=true",
        ),
        *(
            "--formatter-property",
            "print.key=true",
            "--formatter-property",
            "null.literal=",
        ),
    )
    layout = r"%a{timestamp-type}:%d\tPartition:%p\tOffset:%o\t%h{%k:%v}\t%k\t%v\n"
    shown = await kafkaio_("consume", name, "-e", "-f", layout)
    assert shown.check().out == tool.stdout
    plain = await kafkaio_("consume", name, "-e")
    assert plain.check().out.splitlines() == ["one", "zw\u00f6lf", "", ""]


async def test_a_replay_keeps_the_order_of_time(
    kafkaio_: Shell, topic: TopicFactory
) -> None:
    source, again = topic(3, config=KEEP), topic(1)
    async with Producer(kafkaio_.servers) as producer:
        for number in range(9):
            await producer.send(
                source, b"%d" % number, timestamp=1000 + number, partition=number % 3
            )

    words = ("replay", source, again, "--speed", "0.1", "--json")
    assert (await kafkaio_(*words)).check().document["records"] == 9
    shown = (await kafkaio_("consume", again, "-e", "-f", "%v %d\n")).check()
    lines = [line.split() for line in shown.out.splitlines()]
    assert [value for value, _ in lines] == [str(n) for n in range(9)]
    times = [int(time) for _, time in lines]
    assert times[-1] - times[0] >= 60  # 8 ms at a tenth of the speed, less the slack


async def test_bench_counts_every_record(kafkaio_: Shell, topic: TopicFactory) -> None:
    name = topic(2)

    words = ("--json", "-n", "300", "--size", "10", "--keys", "3")
    (sent,) = (
        (await kafkaio_("bench", "produce", name, *words)).check().document["results"]
    )
    assert (sent["records"], sent["bytes"]) == (300, 3000)
    assert sent["latency_ms"]["p50"] <= sent["latency_ms"]["max"]
    read = (await kafkaio_("bench", "consume", name, "--json")).check().document
    assert (read["results"][0]["records"], read["results"][0]["bytes"]) == (300, 3000)
    both = (await kafkaio_("bench", "both", name, *words)).check().document["results"]
    assert [row["records"] for row in both] == [300, 300]


@pytest.mark.parametrize("direction", ["both", "produce"])
async def test_bench_creates_its_topic(
    kafkaio_: Shell, topic: TopicFactory, direction: str
) -> None:
    name = f"{topic(1)}-new"
    words = ("--json", "-n", "20", "-X", "allow.auto.create.topics=false")
    rows = (await kafkaio_("bench", direction, name, *words)).check().document
    assert {row["records"] for row in rows["results"]} == {20}
    (await kafkaio_("bench", direction, name, *words)).check()
    (await kafkaio_("topics", "delete", name, "--yes")).check()


async def test_any_request_goes_from_json_to_json(
    kafkaio_: Shell, topic: TopicFactory
) -> None:
    name = topic(1)
    (await kafkaio_("produce", name, typed="1\n2\n")).check()
    asked = {
        "topics": [
            {"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]}
        ]
    }
    body = json.dumps({"replica_id": -1, **asked})

    answer = await kafkaio_("request", "ListOffsets", body, "--to", f"leader:{name}:0")
    assert answer.check().document["topics"][0]["partitions"][0]["offset"] == 2
    old = await kafkaio_(
        *("request", "ListOffsets", body, "--to", f"leader:{name}:0", "--version", "1")
    )
    assert "throttle_time_ms" not in old.check().document
    group = await kafkaio_("request", "DescribeGroups", "--to", "group:g")
    assert group.check().document["groups"] == []
    listed = (await kafkaio_("request", "--list", "--json")).check().document
    assert listed["requests"][0]["name"] == "Produce"
    fields = (await kafkaio_("request", "--schema", "--json", "Fetch")).check().document
    assert fields["request"][0]["name"]


async def test_in_a_terminal(kafkaio_: Shell, topic: TopicFactory) -> None:
    name = topic(1)
    group = f"{name}-group"
    (await kafkaio_("produce", name, typed="one\ntwo\n")).check()

    words = ("consume", name, "-g", group, "-b", kafkaio_.servers)
    async with terminal(*words) as shown:
        await shown.until("two")
        shown.type("\x03")
        assert await shown.ended(5) == 130
    async with kafkaio.Client(kafkaio_.servers) as client:
        committed = await client.committed(group, [TopicPartition(name, 0)])
    assert [each and each.offset for each in committed.values()] == [2]


async def test_a_closed_pipe_ends_quietly(kafkaio_: Shell, topic: TopicFactory) -> None:
    name = topic(1)
    async with Producer(kafkaio_.servers) as producer:
        await producer.send_many(name, [b"x" * 1000] * 2000)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kafkaio", "consume", name, "-b", kafkaio_.servers),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1024,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    await process.stdout.readline()
    process.stdout._transport.close()  # type: ignore[attr-defined]
    async with asyncio.timeout(HANGS):
        assert complaints(await process.stderr.read()) == []
        assert await process.wait() == 1


async def test_ctrl_c_sends_what_was_read(kafkaio_: Shell, topic: TopicFactory) -> None:
    name = topic(1)
    words = ("produce", name, "-b", kafkaio_.servers, "-X", "linger.ms=60000")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kafkaio", *words),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    partition = TopicPartition(name, 0)
    async with asyncio.timeout(HANGS), kafkaio.Client(kafkaio_.servers) as client:
        end = 0
        process.stdin.write(b"".join(b"%d\n" % n for n in range(5000)))
        while not end:
            found = await client.offsets({partition: "latest"})
            end = found[partition].offset  # type: ignore[union-attr]
        process.send_signal(signal.SIGINT)
        _, said = await process.communicate()
    assert (process.returncode, complaints(said)) == (130, [])
    out = (await kafkaio_("consume", name, "-e")).check().out
    assert out.split() == [str(n) for n in range(5000)]
