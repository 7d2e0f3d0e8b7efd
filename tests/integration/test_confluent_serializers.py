"""confluent-kafka's own serializers, which are functions of a value and a context."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import StringDeserializer, StringSerializer

from kafkaio import Consumer, Producer
from kafkaio.testing import Broker

# The version of a real Kafka means nothing here, so once is enough.
pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("runs on embedded brokers of its own in any case"),
]

SCHEMA = """{
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}]
}"""


async def test_they_are_told_the_topic() -> None:
    """Else they could not form the subject, under which they register the schema."""
    registry = SchemaRegistryClient.new_client({"url": "mock://orders"})
    serializers: dict[str, Any] = {
        "key_serializer": StringSerializer(),
        "value_serializer": AvroSerializer(registry, SCHEMA),
    }
    deserializers: dict[str, Any] = {
        "key_deserializer": StringDeserializer(),
        "value_deserializer": AvroDeserializer(registry),
    }
    async with Broker(topics={"orders": 1}) as broker:
        servers = broker.bootstrap_servers
        async with Producer(servers, **serializers) as producer:
            for number in range(3):
                await producer.send("orders", {"id": number}, key=f"key {number}")
            producer.enqueue_nowait("orders", {"id": 3}, key="key 3")
            await producer.flush()
        async with Consumer(
            servers, topics="orders", auto_offset_reset="earliest", **deserializers
        ) as consumer:
            records = [await anext(consumer) for _ in range(4)]
    read = [(record.key, record.value) for record in records]
    assert read == [(f"key {number}", {"id": number}) for number in range(4)]
    assert registry.get_subjects() == ["orders-value"]
