"""Values with a registry's prefix in Spark, as the guide reads and writes them."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from pyspark.sql import SparkSession, functions as F
from pyspark.sql.avro.functions import to_avro

import kafkaio
from kafkaio.registry import Avro, Registry
from kafkaio.testing import SchemaRegistry
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.pages import python_blocks

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "spark.md"
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


async def read_back(servers: str, topic: str, url: str) -> list[Any]:
    """Read what Spark has written behind them."""
    typed = kafkaio.Topic(topic, value=Avro(NEW, Registry(url)))
    async with kafkaio.Consumer(servers, topics=typed) as consumer:
        consumer.seek(kafkaio.TopicPartition(topic, 0), 5)
        return [(await anext(consumer)).value for _ in range(3)]


def test_values_with_a_prefix(
    spark: SparkSession,
    real_kafka: Kafka,
    topic: TopicFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = topic(partitions=1)
    servers = real_kafka.bootstrap_servers
    options = {"kafka.bootstrap.servers": servers}
    # Spark's sessions belong to their thread, so the registry runs in another one.
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(SchemaRegistry()) as schemas,
    ):
        asyncio.run(write(servers, name, Registry(schemas.url)))
        places = {
            "http://localhost:8081": schemas.url,
            "orders-value": f"{name}-value",
        }
        blocks = python_blocks("guide/spark.md", places)
        (program,) = [block for block in blocks if "from_avro" in block]
        orders = spark.read.format("kafkaio").options(**options, subscribe=name).load()
        names: dict[str, Any] = {"orders": orders}
        exec(program, names)
        printed = capsys.readouterr().out
        shown = re.findall(r"^\|\s*(\d)\|\s*(\d)\|\s*(\w+)\|", printed, re.MULTILINE)
        assert sorted(shown) == [
            ("0", "1", "EUR"),
            ("1", "2", "USD"),
            ("4", "3", "EUR"),
        ]

        (prefix,) = re.findall(r"`(concat\(X'00'.*?)` puts", GUIDE.read_text())
        newest = asyncio.run(Registry(schemas.url).latest(f"{name}-value"))
        written = names["framed"].select(
            to_avro(names["order"], newest.schema.text).alias("avro"),
            F.lit(newest.id).alias("id"),
        )
        rows = written.select(F.expr(prefix).alias("value"))
        rows.write.format("kafkaio").options(**options, topic=name).mode(
            "append"
        ).save()
        found = asyncio.run(read_back(servers, name, schemas.url))
    assert {value["id"] for value in found} == {1, 2, 3}
    assert {value["currency"] for value in found} == {"EUR", "USD"}
