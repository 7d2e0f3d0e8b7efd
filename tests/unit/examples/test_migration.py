"""The migration pages: their programs run, and their tables are correct."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sys
from asyncio.subprocess import PIPE
from dataclasses import fields
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
import trustme
from confluent_kafka import schema_registry as confluent_registry
from confluent_kafka.schema_registry import avro, json_schema, protobuf

import kafkaio
from kafkaio import TopicPartition
from kafkaio._consumer import Batch
from kafkaio.registry import Avro, JsonSchema, Protobuf, Registry
from kafkaio.testing import Broker
from tests.support.patience import HANGS

PAGES = Path(__file__).parents[3] / "docs" / "migration"
#: The clients that have a page.
CLIENTS = ("aiokafka", "confluent-kafka", "kafka-python")
#: The clients that are installed for the tests.
INSTALLED = ("aiokafka", "confluent-kafka")
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`]+)`")
#: The objects that the names in the tables mean.
OBJECTS: dict[str, Any] = {
    "kafkaio": kafkaio,
    "producer": kafkaio.Producer,
    "consumer": kafkaio.Consumer,
    "client": kafkaio.Client,
    "record": kafkaio.Record,
    "batch": Batch,
    "poll": kafkaio.Poll,
    "messages": kafkaio.messages,
    "registry": Registry,
}
#: A test of something that differs from aiokafka: where it is named, and defined.
ROW = re.compile(r"`(test_row_\w+)`")
DEFINED = re.compile(r"^ *(?:async )?def (test_row_\w+)\(", re.MULTILINE)
USE = re.compile(rf"(?<![\w.])({'|'.join(OBJECTS)})\.(\w+)(?:\.(\w+))?(\()?")
CONFIGS = (kafkaio.ProducerConfig, kafkaio.ConsumerConfig)


def text_of(client: str) -> str:
    return (PAGES / f"{client}.md").read_text()


def programs(client: str) -> list[str]:
    return [code for code in CODE.findall(text_of(client)) if "localhost:9092" in code]


def rows(client: str, width: int) -> list[list[str]]:
    """Return the rows of all tables of a width, without headings."""
    found = []
    lines = text_of(client).splitlines()
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        cells = [cell.strip() for cell in line[1:-1].split("|")]
        is_head = after.startswith("|---") or line.startswith("|---")
        if line.startswith("|") and not is_head and len(cells) == width:
            found.append(cells)
    return found


async def run(code: str, bootstrap: str, *start: str) -> list[bytes]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", *start, "-c"),
        code.replace("localhost:9092", bootstrap),
        stdout=PIPE,
        stderr=PIPE,  # asyncio may report there that the machine is slow
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.splitlines()


@pytest.mark.parametrize("client", CLIENTS)
async def test_the_program_after_does_what_it_should(client: str) -> None:
    _, after = programs(client)
    async with Broker(topics={"orders": 1}) as broker, asyncio.timeout(HANGS):
        output = await run(after, broker.bootstrap_servers)
        assert output == [b"written at offset 0", b"read b'coffee'"]
        assert broker.control.committed("billing", ("orders", 0)) == 1


@pytest.mark.parametrize("client", INSTALLED)
async def test_the_program_before_does_the_same(client: str) -> None:
    before, _ = programs(client)
    async with Broker(topics={"orders": 1}) as broker, asyncio.timeout(HANGS):
        output = await run(before, broker.bootstrap_servers)
        assert output == [b"written at offset 0", b"read b'coffee'"]
        assert broker.control.committed("billing", ("orders", 0)) == 1


@pytest.mark.parametrize("how", ["import", "install", "start"])
async def test_the_program_before_runs_on_kafkaio(how: str) -> None:
    """The three ways that the page on aiokafka names."""
    before, _ = programs("aiokafka")
    start: tuple[str, ...] = ()
    if how == "import":
        line = CODE.findall(text_of("aiokafka"))[0]
        before = before.replace(line.replace("kafkaio.aiokafka", "aiokafka"), line)
        assert line in before
    elif how == "install":
        line = CODE.findall(text_of("aiokafka"))[1]
        assert "install()" in line
        before = line + before
    else:
        start = ("-m", "kafkaio.aiokafka")
    is_ours = "import sys; assert 'kafkaio.aiokafka.consumer' in sys.modules"
    async with Broker(topics={"orders": 1}) as broker, asyncio.timeout(HANGS):
        output = await run(before + is_ours, broker.bootstrap_servers, *start)
        assert output == [b"written at offset 0", b"read b'coffee'"]
        assert broker.control.committed("billing", ("orders", 0)) == 1


def test_what_differs_from_aiokafka_has_tests() -> None:
    """Each row of the table names a test, and each such test stands in a row."""
    differs = text_of("aiokafka").partition("\n## What differs\n")[2]
    table = differs.partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    named = [ROW.findall(line.split("|")[-2]) for line in lines[1:]]
    assert all(named)
    flat = [name for names in named for name in names]
    assert len(flat) == len(set(flat))
    tests = Path(__file__).parents[2]
    there = {
        name
        for path in tests.glob("*/**/test_*.py")
        for name in DEFINED.findall(path.read_text(encoding="utf-8"))
    }
    assert there == set(flat)


@pytest.mark.parametrize("client", CLIENTS)
def test_every_call_of_the_tables_exists(client: str) -> None:
    uses = [use for _, ours in rows(client, 2) for use in USE.findall(ours)]
    assert len(uses) > 40
    for name, attribute, below, is_called in uses:
        found: Any = OBJECTS[name]
        for part in filter(None, (attribute, below)):
            if name == "record":  # its fields are descriptors
                assert hasattr(found, part), part
            found = getattr(found, part, None) or kafkaio.Poll.__annotations__[part]
        if name in {"producer", "consumer", "client"}:
            assert callable(found) == bool(is_called), (name, attribute)


@pytest.mark.parametrize("client", CLIENTS)
def test_every_option_of_the_tables_exists_with_its_default(client: str) -> None:
    defaults = {f.name: f.default for config in CONFIGS for f in fields(config)}
    seen = 0
    for theirs, _, ours, default in rows(client, 4):
        named = SPAN.match(ours)
        if named is None or not ours.startswith("`"):
            assert ours.startswith(("not there", "leave", "none; ")), ours
            continue
        for option in SPAN.findall(ours.partition(":")[0].partition(", an ")[0]):
            if option in {"topics", "observer"}:
                continue
            if not re.fullmatch("[a-z0-9_]+", option):
                continue
            assert option in defaults, (theirs, option)
            written = SPAN.fullmatch(default)
            if written is None:
                assert default.startswith(("on, unless", "murmur2", "a number after"))
                continue
            seen += 1
            value = ast.literal_eval(written[1])
            if option == "bootstrap_servers":
                assert kafkaio.ClientConfig.of(value, {}) == kafkaio.ClientConfig()
            else:
                assert value == defaults[option], option
    assert seen > 25


@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_not_there_is_refused(client: str) -> None:
    for theirs, _, ours, _ in rows(client, 4):
        if not ours.startswith(("not there", "leave", "none; ")):
            continue
        for option in SPAN.findall(theirs):
            name = option.replace(".", "_")
            if re.fullmatch("[a-z0-9_]+", name):
                wanted: dict[str, Any] = {name: None}
                with pytest.raises(kafkaio.ConfigurationError, match="unknown option"):
                    kafkaio.Producer("localhost:9092", **wanted)
                with pytest.raises(kafkaio.ConfigurationError, match="unknown option"):
                    kafkaio.Consumer("localhost:9092", **wanted)


def member(
    bootstrap: str,
    strategy: tuple[str, ...] | None,
    revoked: list[int] | None = None,
) -> kafkaio.Consumer:
    counts = [] if revoked is None else revoked
    return kafkaio.Consumer(
        bootstrap,
        topics="orders",
        group_id="billing",
        group_protocol="classic",
        partition_assignment_strategy=strategy,
        heartbeat_interval_ms=50,
        on_revoked=lambda partitions: counts.append(len(partitions)),
    )


async def settle(*members: kafkaio.Consumer) -> list[frozenset[TopicPartition]]:
    """Read until the partitions are divided evenly."""
    async with asyncio.timeout(HANGS):
        while {len(m.assignment) for m in members} != {4 // len(members)}:
            for consumer in members:
                await consumer.poll(timeout=0.01)
    return [consumer.assignment for consumer in members]


@pytest.mark.parametrize("old", ["range", "roundrobin"])
async def test_a_group_changes_to_cooperative_sticky_by_rolling_restarts(
    old: str,
) -> None:
    async with Broker(topics={"orders": 4}) as broker:
        servers = broker.bootstrap_servers
        both = ("cooperative-sticky", old)
        first = member(servers, (old,))
        await first.start()
        # 1. New members name both assignors; the group still uses the old one.
        taken: list[int] = []
        second = member(servers, both, taken)
        joining = asyncio.create_task(second.start())
        while not joining.done():
            await first.poll(timeout=0.01)
        await joining
        await settle(first, second)
        with pytest.raises(kafkaio.GroupError, match=f"uses the assignor '{old}'"):
            await member(servers, None).start()
        # 2. The last old member leaves; a rebalance still takes every partition.
        await first.close()
        await settle(second)
        # 3. Members that name only cooperative-sticky can join now.
        taken.clear()
        kept: list[int] = []
        third = member(servers, None, kept)
        joining = asyncio.create_task(third.start())
        while not joining.done():
            await second.poll(timeout=0.01)
        await joining
        await settle(second, third)
        assert taken == [4]
        await second.close()
        await settle(third)
        fourth = member(servers, None)
        joining = asyncio.create_task(fourth.start())
        while not joining.done():
            await third.poll(timeout=0.01)
        await joining
        await settle(third, fourth)
        assert kept == [2]
        await third.close()
        await fourth.close()


async def test_the_partitioner_of_librdkafka() -> None:
    (code,) = [c for c in CODE.findall(text_of("confluent-kafka")) if "zlib" in c]
    names: dict[str, Any] = {}
    exec(code, names)
    keys = [b"customer-%d" % n for n in range(30)]

    def by_librdkafka(servers: str) -> dict[bytes, int]:
        found: dict[bytes, int] = {}
        producer = confluent_kafka.Producer({"bootstrap.servers": servers})
        for key in keys:
            producer.produce(
                *("orders", b"v", key),
                on_delivery=lambda _, m: found.update(
                    {m.key() or b"": m.partition() or 0}
                ),
            )
        producer.flush()
        return found

    async with (
        Broker(topics={"orders": 7}) as broker,
        kafkaio.Producer(
            broker.bootstrap_servers, partitioner=names["consistent"]
        ) as producer,
    ):
        theirs = await asyncio.to_thread(by_librdkafka, broker.bootstrap_servers)
        metas = [await producer.send("orders", b"v", key=key) for key in keys]
    assert {k: m.partition for k, m in zip(keys, metas, strict=True)} == theirs


# serializers and the registry, of confluent-kafka.md


SERIALIZERS = (avro.AvroSerializer, json_schema.JSONSerializer)
DESERIALIZERS = (avro.AvroDeserializer, json_schema.JSONDeserializer)
MESSAGES = (protobuf.ProtobufSerializer, protobuf.ProtobufDeserializer)
SERDES = (Avro, JsonSchema, Protobuf)


def configuration(of: str) -> list[list[str]]:
    """The rows of one table: their names, the default, and ours."""
    table = text_of("confluent-kafka").partition(f"| configuration of {of} |")[2]
    lines = table.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]


def test_every_configuration_of_a_serializer_has_its_default() -> None:
    defaults: dict[str, Any] = {}
    for kind in (*SERIALIZERS, *DESERIALIZERS, *MESSAGES):
        defaults |= kind._default_conf
    rows_of_serdes = configuration("a serializer")
    assert len(rows_of_serdes) > 5
    for theirs, written, _ in rows_of_serdes:
        (name,) = SPAN.findall(theirs)
        value = getattr(defaults[name], "__name__", repr(defaults[name]))
        assert written.startswith(f"`{value}`"), name


@pytest.mark.parametrize(
    ("of", "kinds"), [("a serializer", SERDES), ("the client", (Registry,))]
)
def test_every_option_of_the_registry_exists(of: str, kinds: tuple[Any, ...]) -> None:
    options = set.union(*({*inspect.signature(kind).parameters} for kind in kinds))
    named = [SPAN.findall(ours)[0] for *_, ours in configuration(of) if "`" in ours]
    assert len(named) >= 6
    for option in named:
        assert option.rstrip("=") in options, option


#: A value of each property of their client that is there in kafkaio.
PROPERTIES: dict[str, dict[str, object]] = {
    "url": {},
    "basic.auth.user.info": {"basic.auth.user.info": "user:secret"},
    "bearer.auth.token": {
        "bearer.auth.credentials.source": "STATIC_TOKEN",
        "bearer.auth.token": "secret",
        "bearer.auth.logical.cluster": "lsrc-1",
        "bearer.auth.identity.pool.id": "pool-1",
    },
    "bearer.auth.issuer.endpoint.url": {
        "bearer.auth.credentials.source": "OAUTHBEARER",
        "bearer.auth.issuer.endpoint.url": "https://localhost/token",
        "bearer.auth.client.id": "orders",
        "bearer.auth.client.secret": "secret",
        "bearer.auth.scope": "schemas",
        "bearer.auth.logical.cluster": "lsrc-1",
        "bearer.auth.identity.pool.id": "pool-1",
    },
    "ssl.ca.location": {
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "client.crt",
        "ssl.key.location": "client.key",
        "ssl.key.password": "secret",
    },
    "proxy": {"proxy": "http://localhost:3128"},
    "timeout": {"timeout": 5},
    "max.retries": {"max.retries": 5},
    "cache.capacity": {"cache.capacity": 10},
    "cache.latest.ttl.sec": {"cache.latest.ttl.sec": 10},
}


@pytest.mark.parametrize("prefix", ["", "schema.registry."])
def test_the_properties_of_their_client(
    prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    authority = trustme.CA()
    authority.cert_pem.write_to_path("ca.pem")
    client = authority.issue_cert("client.test")
    client.cert_chain_pems[0].write_to_path("client.crt")
    client.private_key_pem.write_to_path("client.key")
    given = {name for values in PROPERTIES.values() for name in values} | {"url"}
    for theirs, _, ours in configuration("the client"):
        names = SPAN.findall(theirs)
        if ours.startswith("leave"):
            for name in names:
                with pytest.raises(kafkaio.ConfigurationError, match="leave it out"):
                    Registry.from_properties({"url": "http://localhost", name: 1})
        else:
            assert {*names} <= given
    for values in PROPERTIES.values():
        all_values = {"url": "https://localhost:8081", **values}
        confluent_registry.SchemaRegistryClient(all_values)
        made = Registry.from_properties(
            {f"{prefix}{name}": value for name, value in all_values.items()}
        )
        assert "secret" not in repr(made)


def test_every_call_of_their_client_exists() -> None:
    calls = re.findall(r"`client\.(\w+)\(", text_of("confluent-kafka"))
    assert len(calls) > 10
    for call in calls:
        assert hasattr(confluent_registry.SchemaRegistryClient, call), call


ORDER = """
{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
"""


async def test_a_serializer_of_theirs_works_as_it_is() -> None:
    client = confluent_registry.SchemaRegistryClient.new_client(
        {"url": "mock://migration"}
    )
    async with (
        Broker(topics={"orders": 1}) as broker,
        kafkaio.Producer(
            broker.bootstrap_servers,
            value_serializer=avro.AvroSerializer(client, ORDER),
        ) as producer,
        kafkaio.Consumer(
            broker.bootstrap_servers,
            topics="orders",
            auto_offset_reset="earliest",
            value_deserializer=avro.AvroDeserializer(client, ORDER),
        ) as consumer,
    ):
        await producer.send("orders", {"id": 7})
        assert (await anext(consumer)).value == {"id": 7}
    assert client.get_subjects() == ["orders-value"]


async def test_an_asynchronous_serializer_of_theirs_is_awaited_by_an_object() -> None:
    client = confluent_registry.AsyncSchemaRegistryClient.new_client(
        {"url": "mock://migration"}
    )
    serializer = await avro.AsyncAvroSerializer(client, ORDER)

    class Awaited:
        async def serialize(self, value: object, context: Any) -> bytes | None:
            data: bytes | None = await serializer(value, context)
            return data

    async with Broker(topics={"orders": 1}) as broker:
        servers = broker.bootstrap_servers
        async with kafkaio.Producer(servers, value_serializer=serializer) as producer:
            with pytest.raises(kafkaio.ConfigurationError, match="coroutine"):
                await producer.send("orders", {"id": 7})
        async with kafkaio.Producer(servers, value_serializer=Awaited()) as producer:
            await producer.send("orders", {"id": 7})


# faststream.md


async def test_the_program_after_faststream_does_what_it_should() -> None:
    *_, after = programs("faststream")
    async with Broker(topics={"orders": 1}) as broker, asyncio.timeout(HANGS):
        output = await run(after, broker.bootstrap_servers)
        assert output == [b"written at offset 0", b"read 2 coffee"]
        assert broker.control.committed("billing", ("orders", 0)) == 1


def test_every_call_of_the_page_on_faststream_exists() -> None:
    uses = [use for _, ours in rows("faststream", 2) for use in USE.findall(ours)]
    assert len(uses) > 10
    for name, attribute, _, _ in uses:
        assert hasattr(OBJECTS[name], attribute), (name, attribute)
