"""What confluent-kafka's serdes write is read, and the other way round.

Both sides share confluent-kafka's registry in process, which has GUIDs: so the header
form is tested here, for which no real registry is at hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

pytest.importorskip("confluent_kafka.schema_registry.avro")

from datetime import UTC

from confluent_kafka import schema_registry as theirs
from confluent_kafka.schema_registry import SchemaRegistryClient, avro as their_avro
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import (
    ProtobufDeserializer,
    ProtobufSerializer,
)
from confluent_kafka.serialization import MessageField, SerializationContext as Context

from kafkaio.registry import (
    Avro,
    JsonSchema,
    Protobuf,
    RegisteredSchema,
    Schema,
    SchemaReference,
)
from tests.unit.registry import messages as m
from tests.unit.registry.through import read, write

TIME = {"type": "long", "logicalType": "timestamp-micros"}
ORDER = {
    "type": "record",
    "name": "acme.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {
            "name": "created",
            "type": {"type": "long", "logicalType": "timestamp-micros"},
        },
    ],
}
JSON_ORDER = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}},
}


class Bridge:
    """Our registry's names over confluent-kafka's registry in process."""

    def __init__(self) -> None:
        self.client: Any = SchemaRegistryClient.new_client({"url": "mock://"})

    def known(self, schema_id: int | UUID) -> Schema | None:
        return None

    def known_id(self, subject: str, schema: Schema) -> RegisteredSchema | None:
        return None

    async def schema(self, schema_id: int) -> Schema:
        return _ours(self.client.get_schema(schema_id))

    async def schema_by_guid(self, guid: UUID) -> Schema:
        return _ours(self.client.get_schema_by_guid(str(guid)))

    async def references(self, schema: Schema) -> Mapping[str, Schema]:
        found: dict[str, Schema] = {}
        for each in schema.references:
            got = _ours(self.client.get_version(each.subject, each.version).schema)
            found |= await self.references(got)
            found[each.name] = got
        return found

    async def register(
        self, subject: str, schema: Schema, *, normalize: bool = False
    ) -> RegisteredSchema:
        self.client.register_schema(subject, _theirs(schema))
        return await self.lookup(subject, schema)

    async def lookup(
        self, subject: str, schema: Schema, *, normalize: bool = False
    ) -> RegisteredSchema:
        found = self.client.lookup_schema(subject, _theirs(schema))
        return RegisteredSchema(
            subject, found.version, found.schema_id, schema, UUID(found.guid)
        )

    async def latest(self, subject: str) -> RegisteredSchema:
        found = self.client.get_latest_version(subject)
        return RegisteredSchema(
            subject, found.version, found.schema_id, _ours(found.schema)
        )


def _ours(schema: Any) -> Schema:
    references = tuple(
        SchemaReference(each.name, each.subject, each.version)
        for each in schema.references or ()
    )
    return Schema(schema.schema_str, schema.schema_type or "AVRO", references)


def _theirs(schema: Schema) -> Any:
    references = [
        theirs.SchemaReference(each.name, each.subject, each.version)
        for each in schema.references
    ]
    return theirs.Schema(schema.text, schema.type, references)


FORMS = {
    "prefix": {},
    "header": {"schema.id.serializer": theirs.header_schema_id_serializer},
}


@pytest.fixture(params=["prefix", "header"])
def wire(request: pytest.FixtureRequest) -> Any:
    return request.param


async def exchange(ours: Any, writer: Any, reader: Any, value: Any) -> None:
    """Check that each side reads what the other one wrote, bytes and headers alike."""
    our_headers: list[Any] = []
    our_data = await write(ours, value, our_headers)
    their_headers: list[Any] = []
    their_data = writer(value, Context("t", MessageField.VALUE, their_headers))
    assert our_data == their_data
    assert our_headers == their_headers
    assert await read(ours, their_data, tuple(their_headers)) == value
    context = Context("t", MessageField.VALUE, our_headers)
    assert reader(our_data, context) == value


async def test_avro_is_exchanged(wire: Any) -> None:
    from datetime import datetime

    bridge: Any = Bridge()
    created = datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    await exchange(
        Avro(ORDER, bridge, wire=wire),
        their_avro.AvroSerializer(bridge.client, json.dumps(ORDER), conf=FORMS[wire]),
        their_avro.AvroDeserializer(bridge.client),
        {"id": 1, "note": None, "created": created},
    )


async def test_json_is_exchanged(wire: Any) -> None:
    bridge: Any = Bridge()

    def compact(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"))

    await exchange(
        JsonSchema(JSON_ORDER, bridge, wire=wire),
        JSONSerializer(
            json.dumps(JSON_ORDER), bridge.client, conf=FORMS[wire], json_encode=compact
        ),
        JSONDeserializer(json.dumps(JSON_ORDER), schema_registry_client=bridge.client),
        {"id": 1},
    )


@pytest.mark.parametrize(
    "message",
    [
        m.Refund(id=1),
        m.Order(id=1, lines=[m.Line(sku="a")], total=m.Money(units=1)),
        m.Line(sku="a"),
        m.Part(name="p"),
    ],
)
async def test_protobuf_is_exchanged(wire: Any, message: Any) -> None:
    bridge: Any = Bridge()
    await exchange(
        Protobuf(type(message), bridge, wire=wire),
        ProtobufSerializer(type(message), bridge.client, conf=FORMS[wire]),
        ProtobufDeserializer(type(message), schema_registry_client=bridge.client),
        message,
    )
