"""The other side of an exchange: producer, consumer and serdes of confluent-kafka."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeAlias

import confluent_kafka
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    header_schema_id_serializer,
    topic_subject_name_strategy,
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

from tests.support.patience import HANGS
from tests.support.shop import AVRO, JSON, OrderMessage

__all__ = ["Language", "TheirSerdes", "read_theirs", "send_theirs", "their_serdes"]

Language: TypeAlias = Literal["avro", "json", "protobuf"]
_REQUEST_SECONDS: Final = 60


class TheirSerdes:
    """confluent-kafka's serdes for orders in one language.

    Args:
        client: the client of the registry.
        language: the language.
        wire: where the schema is named.
    """

    def __init__(
        self, client: Any, language: Language, wire: Literal["prefix", "header"]
    ) -> None:
        conf: dict[str, Any] = {
            "subject.name.strategy": topic_subject_name_strategy,
        }
        mine = dict(conf)
        if wire == "header":
            mine["schema.id.serializer"] = header_schema_id_serializer
        self._serialize: Any
        self._deserialize: Any
        if language == "avro":
            self._serialize = AvroSerializer(client, AVRO, conf=mine)
            self._deserialize = AvroDeserializer(client, conf=conf)
        elif language == "json":
            self._serialize = JSONSerializer(JSON, client, conf=mine)
            self._deserialize = JSONDeserializer(
                None, schema_registry_client=client, conf=conf
            )
        else:
            plain = {"use.deprecated.format": False}
            self._serialize = ProtobufSerializer(OrderMessage, client, mine | plain)
            self._deserialize = ProtobufDeserializer(OrderMessage, conf | plain, client)

    def serialize(self, topic: str, value: Any) -> tuple[bytes, list[Any]]:
        """Return the bytes of a value, and the headers that name its schema."""
        context = SerializationContext(topic, MessageField.VALUE, [])
        data = self._serialize(value, context)
        return data, [*(context.headers or ())]

    def deserialize(self, topic: str, data: bytes | None, headers: Any) -> Any:
        """Return the value of bytes."""
        context = SerializationContext(topic, MessageField.VALUE, headers or [])
        return self._deserialize(data, context)


@contextmanager
def their_serdes(
    url: str, language: Language, wire: Literal["prefix", "header"] = "prefix"
) -> Iterator[TheirSerdes]:
    """Make serdes with a client of a registry, which is closed at the end."""
    # Their client waits without a limit by default.
    with SchemaRegistryClient({"url": url, "timeout": _REQUEST_SECONDS}) as client:
        yield TheirSerdes(client, language, wire)


def send_theirs(
    servers: str, topic: str, serdes: TheirSerdes, values: Iterable[Any]
) -> None:
    """Send values to partition 0 by confluent-kafka; it blocks."""
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for value in values:
        data, headers = serdes.serialize(topic, value)
        producer.produce(topic, data, partition=0, headers=headers)
    assert producer.flush(HANGS) == 0


def read_theirs(servers: str, topic: str, serdes: TheirSerdes, count: int) -> list[Any]:
    """Read the first values of partition 0 by confluent-kafka; it blocks."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": f"{topic}-theirs"}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[Any] = []
    end = time.monotonic() + HANGS
    try:
        while len(found) < count:
            assert time.monotonic() < end, f"{len(found)} of {count} records"
            message = consumer.poll(1.0)
            if message is not None:
                assert message.error() is None, message.error()
                data, headers = message.value(), message.headers()
                found.append(serdes.deserialize(topic, data, headers))
    finally:
        consumer.close()
    return found
