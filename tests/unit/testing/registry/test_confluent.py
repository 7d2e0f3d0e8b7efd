"""confluent-kafka's client and its serdes on the embedded registry."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Schema as TheirSchema,
    SchemaRegistryClient,
    SchemaRegistryError,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import (
    JSONDeserializer,
    JSONSerializer,
)
from confluent_kafka.schema_registry.protobuf import (
    ProtobufDeserializer,
    ProtobufSerializer,
)
from confluent_kafka.serialization import MessageField, SerializationContext
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from kafkaio.testing import SchemaRegistry

INT = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
TEXT = INT.replace('"int"', '"string"')
JSON = '{"title":"R","type":"object","properties":{"a":{"type":"string"}}}'


def context(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, [])


async def test_confluents_client(kafka_registry: SchemaRegistry) -> None:
    def work(url: str) -> None:
        client = SchemaRegistryClient({"url": url})
        assert client.register_schema("a", TheirSchema(INT, "AVRO")) == 1
        assert client.get_latest_version("a").version == 1
        assert client.lookup_schema("a", TheirSchema(INT, "AVRO")).schema_id == 1
        with pytest.raises(SchemaRegistryError) as refused:
            client.register_schema("a", TheirSchema(TEXT, "AVRO"))
        assert refused.value.http_status_code == 409
        assert not client.test_compatibility("a", TheirSchema(TEXT, "AVRO"))
        client.set_compatibility("a", "NONE")
        assert client.get_compatibility("a") == "NONE"
        assert client.register_schema("a", TheirSchema(TEXT, "AVRO")) == 2
        assert client.get_subjects() == ["a"]
        assert client.delete_version("a", 1) == 1
        assert client.delete_subject("a") == [2]
        assert client.delete_subject("a", permanent=True) == [1, 2]
        client.close()

    await asyncio.to_thread(work, kafka_registry.url)


async def test_confluents_serdes(kafka_registry: SchemaRegistry) -> None:
    def work(url: str, stack: ExitStack) -> None:
        def client() -> SchemaRegistryClient:
            return stack.enter_context(SchemaRegistryClient({"url": url}))

        value: Any = {"a": "something"}
        data = AvroSerializer(client(), TEXT)(value, context("avro"))
        assert AvroDeserializer(client())(data, context("avro")) == value

        data = JSONSerializer(JSON, client())(value, context("json"))
        read = JSONDeserializer(None, schema_registry_client=client())
        assert read(data, context("json")) == value

        # Its file imports others, which are registered and referred to.
        conf = {"use.deprecated.format": False}
        span = Span(name="something")
        data = ProtobufSerializer(Span, client(), conf)(span, context("protobuf"))
        read = ProtobufDeserializer(Span, conf, client())
        assert read(data, context("protobuf")) == span

        conf = {"schema.id.serializer": header_schema_id_serializer}
        header = context("header")
        data = AvroSerializer(client(), TEXT, conf=conf)(value, header)
        assert dict(header.headers or ()).keys() == {"__value_schema_id"}
        assert AvroDeserializer(client())(data, header) == value

    with ExitStack() as stack:
        await asyncio.to_thread(work, kafka_registry.url, stack)
    assert kafka_registry.count("GET /schemas/guids/*") == 1
