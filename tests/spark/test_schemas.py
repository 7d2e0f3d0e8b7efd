"""Values with a registry's prefix in Spark, as the guide reads and writes them."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession, functions as F
from pyspark.sql.avro.functions import to_avro

import kafkaio
from kafkaio.registry import Avro, Registry
from kafkaio.testing import SchemaRegistry
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.pages import python_blocks

OLD = """
{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
"""
NEW = """
{"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "long"},
  {"name": "currency", "type": "string", "default": "EUR"}
]}
"""


async def write(servers: str, topic: str, registry: Registry) -> None:
    """Write orders of both schemas, a tombstone, and what has no schema."""
    old = kafkaio.Topic(topic, value=Avro(OLD, registry))
    new = kafkaio.Topic(topic, value=Avro(NEW, registry))
    async with kafkaio.Producer(servers) as producer:
        await producer.send(old, {"id": 1})
        await producer.send(new, {"id": 2, "currency": "USD"})
        await producer.send(topic, None, key=b"gone")
        await producer.send(topic, b"no schema")
        await producer.send(old, {"id": 3})


def read_as_the_guide(
    spark: SparkSession, servers: str, topic: str, url: str
) -> dict[str, Any]:
    """Run the program of the guide; return its names."""
    places = {"http://localhost:8081": url, "orders-value": f"{topic}-value"}
    (program,) = [
        block
        for block in python_blocks("guide/spark.md", places)
        if "from_avro" in block
    ]
    orders = spark.read.format("kafkaio").option("kafka.bootstrap.servers", servers)
    names: dict[str, Any] = {"orders": orders.option("subscribe", topic).load()}
    exec(program, names)
    return names


async def test_values_with_a_prefix(
    spark: SparkSession,
    real_kafka: Kafka,
    topic: TopicFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = topic(partitions=1)
    servers = real_kafka.bootstrap_servers
    async with SchemaRegistry() as schemas, Registry(schemas.url) as registry:
        await write(servers, name, registry)
        # The program asks the registry, which runs in this loop.
        names = await asyncio.to_thread(
            read_as_the_guide, spark, servers, name, schemas.url
        )
        shown = re.findall(
            r"^\|\s*(\d+)\|\s*(\d+)\|\s*(\w+)\|", capsys.readouterr().out, re.MULTILINE
        )
        assert sorted(shown) == [
            ("0", "1", "EUR"),
            ("1", "2", "USD"),
            ("4", "3", "EUR"),
        ]
        newest = await registry.latest(f"{name}-value")

        guide = Path(__file__).parents[2] / "docs" / "guide" / "spark.md"
        (prefix,) = re.findall(r"`(concat\(X'00'.*?)` puts", guide.read_text())
        written = names["framed"].select(
            to_avro(names["order"], newest.schema.text).alias("avro"),
            F.lit(newest.id).alias("id"),
        )
        await asyncio.to_thread(
            written.select(F.expr(prefix).alias("value"))
            .write.format("kafkaio")
            .options(**{"kafka.bootstrap.servers": servers, "topic": name})
            .mode("append")
            .save
        )
        typed = kafkaio.Topic(name, value=Avro(NEW, registry))
        async with kafkaio.Consumer(
            servers, topics=typed, auto_offset_reset="earliest"
        ) as consumer:
            consumer.seek(kafkaio.TopicPartition(name, 0), 5)
            found = [(await anext(consumer)).value for _ in range(3)]
    assert {value["id"] for value in found} == {1, 2, 3}
    assert {value["currency"] for value in found} == {"EUR", "USD"}
