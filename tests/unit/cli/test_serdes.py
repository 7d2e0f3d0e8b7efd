"""``consume -s`` and ``produce -s``: records with schemas, from a shell."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafkaio
from kafkaio._cli.records.protobuf import message_reader, message_writer
from kafkaio.errors import SchemaError
from kafkaio.registry import Avro, Registry, Schema, SchemaReference
from kafkaio.serde import Long, SerializationContext
from kafkaio.testing import Broker, SchemaRegistry
from tests.support.cli import Result, run, run_beside

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {
                "name": "amount",
                "type": {
                    "type": "bytes",
                    "logicalType": "decimal",
                    "precision": 20,
                    "scale": 2,
                },
            },
            {"name": "note", "type": ["null", "string"], "default": None},
            {
                "name": "at",
                "type": {"type": "long", "logicalType": "timestamp-millis"},
                "default": 0,
            },
        ],
    }
)
CUSTOMER = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name"],
    }
)
EVENT = """
syntax = "proto3";
package shop;
message Event {
  string name = 1;
  int64 number = 2;
  message Inner { bool flag = 1; }
  Inner inner = 3;
}
message Other { int32 count = 1; }
"""
AVRO = Schema(ORDER)
LINES = (
    '{"id": 1, "amount": "123456789012345.67", "note": "a"}\n{"id": 2, "amount": 3}\n'
)
PRINTED = [
    {
        "id": 1,
        "amount": "123456789012345.67",
        "note": "a",
        "at": "1970-01-01T00:00:00+00:00",
    },
    {"id": 2, "amount": "3.00", "note": None, "at": "1970-01-01T00:00:00+00:00"},
]


@dataclass
class Shell:
    """Runs commands beside a broker and a registry."""

    broker: Broker
    registry: SchemaRegistry

    async def __call__(self, *words: str, typed: str | None = None) -> Result:
        at = ("-b", self.broker.bootstrap_servers)
        if {"-s", "schemas"} & {*words}:
            at = (*at, "-X", f"schema.registry.url={self.registry.url}")
        return await run_beside(*words, *at, typed=typed)

    async def values(self, topic: str) -> list[bytes]:
        """Return the values of a topic as they are."""
        printed = await self("consume", topic, "-e", "-f", r"%v{hex}\n")
        return [bytes.fromhex(line) for line in printed.check().out.splitlines()]

    async def send(self, topic: str, *values: bytes | None) -> None:
        """Send values that have their frame already."""
        async with kafkaio.Producer(self.broker.bootstrap_servers) as producer:
            for value in values:
                await producer.send(topic, value)


@pytest.fixture
async def shell() -> AsyncIterator[Shell]:
    async with Broker(topics={"t": 1}) as broker, SchemaRegistry() as registry:
        yield Shell(broker, registry)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "order.avsc"
    path.write_text(ORDER)
    return path


async def test_avro_is_written_by_a_file_and_read(shell: Shell, file: Path) -> None:
    words = ("produce", "t", "-s", "avro", "--schema", str(file))
    (await shell(*words, typed=LINES)).check()
    assert shell.registry.subjects() == ["t-value"]

    shown = (await shell("consume", "t", "-e", "-s", "value=avro")).check()
    assert [json.loads(line) for line in shown.out.splitlines()] == PRINTED
    rows = (await shell("consume", "t", "-e", "-s", "avro", "--jsonl")).check().lines
    assert [row["value"] for row in rows] == PRINTED
    assert {row["value_schema_id"] for row in rows} == {1}
    assert "key_schema_id" not in rows[0]
    document = (await shell("consume", "t", "-e", "-s", "avro", "--json")).check()
    assert [row["value"] for row in document.document["records"]] == PRINTED
    envelope = (await shell("consume", "t", "-e", "-s", "avro", "-J")).check().lines
    assert [(row["payload"], row["value_schema_id"]) for row in envelope] == [
        (value, 1) for value in PRINTED
    ]


async def test_filters_and_formats_see_what_is_decoded(
    shell: Shell, file: Path
) -> None:
    words = ("produce", "t", "-s", "avro", "--schema", str(file))
    (await shell(*words, typed=LINES)).check()
    keep = ("--filter", 'value.id > 1 and value.amount == "3.00"')
    some = await shell("consume", "t", "-e", "-s", "avro", *keep, "-f", r"%o %V %v\n")
    text = json.dumps(PRINTED[1], separators=(",", ":"))
    assert some.check().out == f"1 {len(text)} {text}\n"


async def test_what_consume_prints_produce_reads(shell: Shell, file: Path) -> None:
    words = ("produce", "t", "-s", "avro", "--schema", str(file), "-k", "5")
    (await shell(*words, "-s", "key=long", typed=LINES)).check()
    serdes = ("-s", "avro", "-s", "key=long")
    printed = (await shell("consume", "t", "-e", *serdes, "--jsonl")).check().out
    assert [json.loads(line)["key"] for line in printed.splitlines()] == [5, 5]
    shell.broker.create_topic("copy")
    copied = ("produce", "copy", *serdes, "--subject", "t-value", "--jsonl")
    (await shell(*copied, typed=printed)).check()
    first = await shell("consume", "t", "-e", *serdes, "-f", r"%k %v\n")
    second = await shell("consume", "copy", "-e", *serdes, "-f", r"%k %v\n")
    assert second.check().out == first.check().out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "x", "amount": 3}', "line 2: value: id must be an int, not str"),
        ('{"id": 1}', "line 2: value: amount is missing"),
        ('{"id": 1, "amount": "1.005"}', "line 2: value: amount has 3 places"),
        ('{"id": 1, "amount": 1, "x": 1}', "line 2: value: x is not a field"),
        ('{"id": 1, "amount": 1, "at": "now"}', "line 2: value: at must be a datetime"),
        ('{"id": 99999999999999999999, "amount": 1}', "value: id is out of the range"),
        ("{", "line 2: value: it is not JSON"),
        ('{"id": ' + "[" * 5000, "line 2: value: it is not JSON"),
    ],
)
async def test_what_does_not_fit_names_line_and_field(
    shell: Shell, file: Path, line: str, message: str
) -> None:
    typed = f'{{"id": 1, "amount": 1}}\n{line}\n{{"id": 3, "amount": 1}}\n'
    words = ("produce", "t", "-s", "avro", "--schema", str(file))
    failed = (await shell(*words, typed=typed)).check(1)
    assert message in failed.err
    assert "the records before it are sent" in failed.err
    assert len(failed.err.splitlines()) == 1
    shown = (await shell("consume", "t", "-e", "-s", "avro")).check()
    assert [json.loads(each)["id"] for each in shown.out.splitlines()] == [1]


async def test_the_latest_schema_of_the_topic_is_the_default(shell: Shell) -> None:
    missing = await shell("produce", "t", "-s", "avro", typed=LINES)
    assert "t-value" in missing.check(1).err
    assert await shell.values("t") == []
    shell.registry.register("t-value", AVRO)
    (await shell("produce", "t", "-s", "avro", typed=LINES)).check()
    assert len(await shell.values("t")) == 2


async def test_a_schema_by_its_id(shell: Shell) -> None:
    found = shell.registry.register("orders", AVRO)
    by_id = ("-s", "avro", "--schema-id", str(found.id))
    (await shell("produce", "t", *by_id, typed=LINES)).check()
    wrong = await shell("produce", "t", "-s", "json", "--schema-id", "1", typed="{}")
    assert "schema 1 is of AVRO: use -s avro" in wrong.check(2).err
    absent = await shell("produce", "t", "-s", "avro", "--schema-id", "9", typed="{}")
    assert "9" in absent.check(1).err


async def test_an_incompatible_schema_sends_nothing(
    shell: Shell, tmp_path: Path
) -> None:
    shell.registry.register("t-value", AVRO)
    other = tmp_path / "other.avsc"
    other.write_text(ORDER.replace('"name": "id"', '"name": "number"'))
    words = ("produce", "t", "-s", "avro", "--schema", str(other))
    failed = await shell(*words, typed='{"number": 1, "amount": 1}\n')
    assert "t-value" in failed.check(1).err
    assert await shell.values("t") == []


async def test_json_schemas(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "customer.json"
    path.write_text(CUSTOMER)
    words = ("produce", "t", "-s", "json", "--schema", str(path))
    (await shell(*words, typed='{"name": "Zoë", "age": 5}\n')).check()
    wrong = (await shell(*words, typed='{"name": "a"}\n{"name": 5}\n')).check(1)
    assert "line 2: value: name must be of the type string" in wrong.err
    shown = (await shell("consume", "t", "-e", "-s", "json")).check()
    assert shown.out == '{"age":5,"name":"Zoë"}\n{"name":"a"}\n'


async def test_json_without_a_schema(shell: Shell) -> None:
    await shell.send("t", b'{"a":  [1]}', None, b'"x"')
    shown = (await shell("consume", "t", "-e", "-s", "json", "--jsonl")).check().lines
    assert [row["value"] for row in shown] == [{"a": [1]}, None, "x"]
    assert shell.registry.count("GET /schemas") == 0
    kept = await shell("consume", "t", "-e", "--filter", "value.a.0 == 1")
    assert kept.check().out == '{"a":  [1]}\n'


async def test_protobuf_without_generated_classes(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "event.proto"
    path.write_text(EVENT)
    words = ("produce", "t", "-s", "protobuf", "--schema", str(path))
    typed = '{"name": "a", "number": 5, "inner": {"flag": true}}\n'
    (await shell(*words, typed=typed)).check()
    for name in ("Other", "shop.Event.Inner"):
        content = '{"count": 3}' if name == "Other" else '{"flag": true}'
        (await shell(*words, "--message", name, typed=f"{content}\n")).check()
    shown = (await shell("consume", "t", "-e", "-s", "protobuf")).check()
    assert [json.loads(line) for line in shown.out.splitlines()] == [
        {"name": "a", "number": "5", "inner": {"flag": True}},
        {"count": 3},
        {"flag": True},
    ]
    wrong = (await shell(*words, typed='{"nme": 1}\n')).check(1)
    assert 'has no field named "nme"' in wrong.err
    absent = (await shell(*words, "--message", "Nope", typed="{}\n")).check(1)
    assert "has no message 'Nope'" in absent.err


FOREIGN = """
syntax = "proto3";
import "buf/validate/validate.proto"; // option (of.a.comment) = 1;
import "line.proto";
option java_package = "a.b";
option (of.the.file) = { a: "};" };
message Basket {
  option (confluent.message_meta) = { tags: "PII" };
  string id = 1 [(buf.validate.field).string = {min_len: 1}, deprecated = true];
  repeated Line lines = 2;
}
extend google.protobuf.FieldOptions { string mine = 50000; }
"""


def test_options_that_only_other_tools_know_are_passed_over() -> None:
    line = 'syntax = "proto3"; message Line { string sku = 1 [(x) = "y"]; }'
    schemas = {"line.proto": Schema(line, "PROTOBUF")}
    write = message_writer(Schema(FOREIGN, "PROTOBUF"), schemas, None)
    read = message_reader(Schema(FOREIGN, "PROTOBUF"), schemas, None)
    tree = {"id": "a", "lines": [{"sku": "b"}]}
    assert read(write(tree), 0) == tree
    wrong = Schema(
        'syntax = "proto2"; message M { optional group G = 1 {} }', "PROTOBUF"
    )
    with pytest.raises(SchemaError, match="group"):
        message_reader(wrong, {}, None)


async def test_the_header_that_names_a_schema_is_read(shell: Shell) -> None:
    async with Registry(shell.registry.url) as registry:
        orders = kafkaio.Topic("t", value=Avro('"string"', registry, wire="header"))
        async with kafkaio.Producer(shell.broker.bootstrap_servers) as producer:
            await producer.send(orders, "x")  # type: ignore[arg-type]
            await producer.send("t", b"y", headers=[("__value_schema_id", b"wrong")])
    (row,) = (await shell("consume", "t", "-s", "avro", "-c", "1", "--jsonl")).lines
    assert row["value"] == "x"
    assert len(row["value_schema_id"]) == 36
    shell.broker.create_topic("copy")
    copied = ("produce", "copy", "-s", "avro", "--subject", "t-value", "--jsonl")
    (await shell(*copied, typed=json.dumps(row))).check()
    again = await shell("consume", "copy", "-e", "-s", "avro", "--jsonl")
    assert [(each["value"], each["headers"]) for each in again.check().lines] == [
        ("x", [])
    ]
    failed = (await shell("consume", "t", "-e", "-s", "avro", "-o", "1")).check(1)
    assert "the header __value_schema_id" in failed.err


@pytest.mark.parametrize(
    ("data", "printed"),
    [
        (b'"\\ud800"', '"\\ud800"\n'),
        (b"1e999", '"Infinity"\n'),
        (b"[NaN]", "t-0@0 value: the value is not JSON: it has NaN"),
        (b"[" * 100_000, "t-0@0 value: "),
        (b"[" * 600 + b"]" * 600, "t-0@0 value: the value is nested too deeply"),
        (b"\xff", "t-0@0 value: the value is not UTF-8"),
        (b"\0\0\0\0", "t-0@0 value: the prefix that names the schema is truncated"),
    ],
)
async def test_odd_json(shell: Shell, data: bytes, printed: str) -> None:
    await shell.send("t", data)
    shown = await shell("consume", "t", "-e", "-s", "json")
    assert printed in (shown.out or shown.err)
    assert len((shown.out or shown.err).splitlines()) == 1


async def test_files_have_typed_columns(
    shell: Shell, file: Path, tmp_path: Path
) -> None:
    await shell.send("t", None)
    words = ("produce", "t", "-s", "avro", "-s", "key=long", "-k", "7")
    (await shell(*words, "--schema", str(file), typed=LINES)).check()
    wider = tmp_path / "wider.avsc"
    field = ',{"name":"more","type":"string","default":"x"}]}'
    wider.write_text(ORDER.removesuffix("]}") + field)
    typed = '{"id": 3, "amount": "1.50", "at": "2026-01-02T03:04:05Z"}\n'
    (await shell(*words, "--schema", str(wider), typed=typed)).check()
    for kind, read in (("parquet", pq.read_table), ("arrow", read_arrow)):
        path = str(tmp_path / f"orders.{kind}")
        at = ("-e", "-s", "avro", "-s", "key=long", f"--to-{kind}", path)
        (await shell("consume", "t", *at)).check()
        table = read(path)
        assert table.schema.field("key").type == pa.int64()
        amount = table.schema.field("value").type.field("amount").type
        assert amount == pa.decimal128(20, 2)
        assert table["key"].to_pylist() == [None, 7, 7, 7]
        values = table["value"].to_pylist()
        assert values[0] is None
        assert [each["id"] for each in values[1:]] == [1, 2, 3]
        assert values[1]["amount"] == Decimal("123456789012345.67")
        assert values[3]["at"] == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        assert "more" not in values[3]


def read_arrow(path: str) -> pa.Table:
    with pa.OSFile(path) as source:
        return pa.ipc.open_file(source).read_all()


@pytest.mark.parametrize(
    ("language", "values", "column"),
    [
        ("json", [b'{"a":1}', None], ['{"a":1}', None]),
        ("double", [bytes.fromhex("3ff8000000000000")], [1.5]),
        ("string", [b"x", None], ["x", None]),
        ("avro", [None], [None]),
    ],
)
async def test_columns_without_a_schema(
    shell: Shell,
    tmp_path: Path,
    language: str,
    values: list[bytes | None],
    column: list[object],
) -> None:
    await shell.send("t", *values)
    path = str(tmp_path / "t.parquet")
    (await shell("consume", "t", "-e", "-s", language, "--to-parquet", path)).check()
    assert pq.read_table(path)["value"].to_pylist() == column


async def test_columns_of_json_and_protobuf(shell: Shell, tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    schemas = {"json": CUSTOMER, "protobuf": EVENT}
    typed = '{"name": "Zoë"}\n'
    found = []
    for language, text in schemas.items():
        shell.broker.create_topic(language)
        schema = tmp_path / f"schema.{language}"
        schema.write_text(text)
        words = ("produce", language, "-s", language, "--schema", str(schema))
        (await shell(*words, typed=typed)).check()
        at = ("-e", "-s", language, "--to-parquet", path)
        (await shell("consume", language, *at)).check()
        found.append(pq.read_table(path)["value"].to_pylist())
    assert found == [[{"name": "Zoë", "age": None}], ['{"name":"Zoë","number":"0"}']]


async def test_columns_of_records_that_are_left_out(
    shell: Shell, file: Path, tmp_path: Path
) -> None:
    words = ("produce", "t", "-s", "avro", "--schema", str(file))
    (await shell(*words, typed=LINES)).check()
    await shell.send("t", b"plain")
    path = str(tmp_path / "t.parquet")
    at = ("-e", "-s", "avro", "--to-parquet", path, "--filter", "value.id == 2")
    assert "t-0@2" in (await shell("consume", "t", *at, "--skip-errors")).check(3).err
    assert [each["id"] for each in pq.read_table(path)["value"].to_pylist()] == [2]


async def test_schemas_that_use_others(shell: Shell) -> None:
    shell.registry.register(
        "money", Schema('{"type":"enum","name":"C","symbols":["EUR"]}')
    )
    text = '{"type":"record","name":"P","fields":[{"name":"c","type":"C"}]}'
    uses = Schema(text, "AVRO", (SchemaReference("C", "money", 1),))
    shell.registry.register("t-value", uses)
    (await shell("produce", "t", "-s", "avro", typed='{"c": "EUR"}\n')).check()
    shown = (await shell("consume", "t", "-e", "-s", "avro")).check()
    assert shown.out == '{"c":"EUR"}\n'
    wrong = (await shell("produce", "t", "-s", "avro", typed='{"c": "USD"}\n')).check(1)
    assert "c is none of the symbols" in wrong.err


@pytest.mark.parametrize(
    ("name", "text", "data"),
    [
        ("string", "Zürich", "Zürich".encode()),
        ("long", "-2", b"\xff" * 7 + b"\xfe"),
        ("q", "1", b"\0" * 7 + b"\1"),
        ("integer", "7", b"\0\0\0\7"),
        ("short", "7", b"\0\7"),
        ("double", "1.5", bytes.fromhex("3ff8000000000000")),
        ("float", "1.5", bytes.fromhex("3fc00000")),
        ("boolean", "true", b"\1"),
        (
            "uuid",
            "123e4567-e89b-12d3-a456-426614174000",
            b"123e4567-e89b-12d3-a456-426614174000",
        ),
    ],
)
async def test_the_formats_of_kafka(
    shell: Shell, name: str, text: str, data: bytes
) -> None:
    (await shell("produce", "t", "-s", name, typed=f"{text}\n")).check()
    assert await shell.values("t") == [data]
    shown = (await shell("consume", "t", "-e", "-s", name)).check()
    assert shown.out == f"{text}\n"
    (row,) = (await shell("consume", "t", "-e", "-s", name, "--jsonl")).check().lines
    is_text = name in {"string", "uuid"}
    assert row["value"] == (text if is_text else json.loads(text))
    assert not {key for key in row if key.endswith("schema_id")}
    (await shell("produce", "t", "-s", name, "--jsonl", typed=json.dumps(row))).check()
    assert await shell.values("t") == [data, data]


async def test_a_value_of_another_format_is_named(shell: Shell) -> None:
    for name, text in (
        ("long", "x"),
        ("short", "70000"),
        ("uuid", "x"),
        ("long", "1.5"),
    ):
        failed = await shell("produce", "t", "-s", name, typed=f"{text}\n")
        assert "line 1: value: " in failed.check(1).err
    assert await shell.values("t") == []


async def test_a_record_that_cannot_be_decoded_ends_the_command(
    shell: Shell, file: Path
) -> None:
    words = ("produce", "t", "-s", "avro", "--schema", str(file))
    (await shell(*words, typed=LINES)).check()
    await shell.send("t", b"plain text")
    (await shell(*words, typed=LINES)).check()
    failed = (await shell("consume", "t", "-e", "-s", "avro")).check(1)
    assert len(failed.out.splitlines()) == 2
    assert failed.err.startswith(
        "kafkaio consume: t-0@2 value: unknown magic byte 0x70"
    )
    assert len(failed.err.splitlines()) == 1
    document = await shell("consume", "t", "-e", "-s", "avro", "--json")
    (error,) = document.check(1).document["errors"]
    assert (error["item"], error["error"]) == ("t-0@2 value", "SerializationError")


async def test_a_group_does_not_commit_what_it_could_not_decode(
    shell: Shell, file: Path
) -> None:
    words = ("produce", "t", "-s", "avro", "--schema", str(file))
    (await shell(*words, typed=LINES)).check()
    await shell.send("t", b"plain text")
    for printed in (2, 0):
        failed = await shell("consume", "t", "-g", "g", "-s", "avro")
        assert len(failed.check(1).out.splitlines()) == printed
        assert "t-0@2 value" in failed.err


async def test_records_that_cannot_be_decoded_are_skipped(
    shell: Shell, file: Path
) -> None:
    words = ("produce", "t", "-s", "avro", "--schema", str(file))
    unknown = b"\0\0\0\0\x63rest"
    await shell.send("t", *[b"x"] * 12, unknown, b"\0\0\0\0")
    (await shell(*words, typed=LINES)).check()
    skip = ("consume", "t", "-e", "-s", "avro", "--skip-errors")
    some = (await shell(*skip)).check(3)
    assert len(some.out.splitlines()) == 2
    lines = some.err.splitlines()
    assert lines[0].startswith("kafkaio consume: t-0@0 value: ")
    assert lines[10:] == ["kafkaio consume: and 4 more"]
    shown = (await shell(*skip, "--json", "-o", "12")).check(3).document
    assert [each["item"] for each in shown["errors"]] == [
        "t-0@12 value",
        "t-0@13 value",
    ]
    assert [each["error"] for each in shown["errors"]] == [
        "SchemaError",
        "SerializationError",
    ]
    assert len(shown["records"]) == 2
    none = (await shell(*skip, "-c", "20", "-o", "0..3")).check(1)
    assert none.out == ""


async def test_a_schema_of_another_language_is_named(shell: Shell, file: Path) -> None:
    words = ("produce", "t", "-s", "avro", "--schema", str(file))
    (await shell(*words, typed=LINES)).check()
    failed = (await shell("consume", "t", "-e", "-s", "protobuf")).check(1)
    assert "schema 1 is of AVRO: use -s avro" in failed.err


async def test_a_registry_that_is_not_there(shell: Shell, file: Path) -> None:
    words = ("produce", "t", "-s", "avro", "--schema", str(file))
    (await shell(*words, typed=LINES)).check()
    await shell.registry.stop()
    failed = await shell("consume", "t", "-e", "-s", "avro", "--timeout", "1")
    assert shell.registry.url.removeprefix("http://") in failed.check(1).err
    assert failed.out == ""
    assert len(failed.err.splitlines()) == 1


async def test_without_the_extra(
    shell: Shell, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("produce", "t", "-s", "avro", "--schema", str(file))
    (await shell(*words, typed=LINES)).check()
    monkeypatch.setitem(sys.modules, "fastavro", None)
    for name in ("consume", "produce"):
        failed = await shell(name, "t", "-s", "avro", typed=LINES)
        assert "pip install 'kafkaio[registry]'" in failed.check(2).err
        assert len(failed.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("consume t -s xml", "'xml' is none of avro, json, protobuf, string"),
        ("consume t -s key=>I", "for kcat's >I use -f '%v{unpack[>I]}"),
        ("consume t -s avro -s value=json", "there are two for the value"),
        ("consume t -r http://r", "--registry needs -s avro, json, protobuf"),
        ("consume t -s long -r http://r", "--registry needs -s avro"),
        ("consume t --skip-errors", "--skip-errors needs -s"),
        ("produce t --schema f", "--schema for the value needs -s avro or json"),
        ("produce t -s avro --schema key=f", "--schema for the key needs -s key=avro"),
        ("produce t -s avro --message M", "--message for the value needs -s protobuf"),
        ("produce t -s avro --schema-id x", "'x' is not the id of a schema"),
        ("produce t -s avro --schema-id 1 --subject s", "--schema-id excludes"),
        ("produce t -s avro --schema /no/such", "/no/such: No such file"),
    ],
)
def test_options_that_do_not_go_together(line: str, message: str) -> None:
    assert message in run(*line.split()).check(2).err


async def test_keys_with_schemas_have_a_subject_of_their_own(
    shell: Shell, tmp_path: Path
) -> None:
    path = tmp_path / "key.avsc"
    path.write_text('"string"')
    words = ("produce", "t", "-s", "key=avro", "--schema", f"key={path}")
    (await shell(*words, "-f", r"%k %v\n", typed='"a" x\n')).check()
    assert shell.registry.subjects() == ["t-key"]
    shown = await shell("consume", "t", "-e", "-s", "key=avro", "-f", r"%k %v\n")
    assert shown.check().out == '"a" x\n'
    written = Long().serialize(1, SerializationContext("t", [], is_key=True))
    async with kafkaio.Producer(shell.broker.bootstrap_servers) as producer:
        await producer.send("t", b"y", key=written)
    failed = await shell("consume", "t", "-e", "-s", "key=avro")
    assert "t-0@1 key: " in failed.check(1).err
