"""Declarative pipelines that are run again: from topics, over a table, into a topic."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

import kafkaio
from kafkaio.arrow import read_ranges
from kafkaio.testing import Broker
from tests.spark_connect.pipelines import spark_pipelines

SPEC = """
name: numbers
storage: file://{directory}/storage
libraries:
  - glob:
      include: transformations/**
configuration:
  spark.sql.shuffle.partitions: "2"
"""
#: A topic into a table, two topics into another topic.
PIPELINE = """
import os

from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()
SERVERS = {"kafka.bootstrap.servers": os.environ["KAFKA"]}

dp.create_streaming_table("numbers")
dp.create_sink(
    name="doubled",
    format="kafkaio",
    options={**SERVERS, "topic": "doubled", "exactlyOnce": "true"},
)


def read(topic):
    stream = spark.readStream.format("kafkaio").schema("value string")
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    return stream.options(**SERVERS, **options).load()


@dp.append_flow(target="numbers")
def numbers():
    return read("odd").selectExpr("cast(value as int) as n")


@dp.append_flow(target="doubled")
def doubled_odd():
    return read("odd").selectExpr("cast(2 * cast(value as int) as string) as value")


@dp.append_flow(target="doubled")
def doubled_even():
    return read("even").selectExpr("cast(2 * cast(value as int) as string) as value")
"""


async def fill(servers: str, numbers: range) -> None:
    async with kafkaio.Producer(servers) as producer:
        for topic, remainder in (("even", 0), ("odd", 1)):
            chosen = [b"%d" % n for n in numbers if n % 2 == remainder]
            await producer.send_many(topic, chosen)


async def written(servers: str) -> list[int]:
    async with kafkaio.Client(servers) as client:
        partitions = [kafkaio.TopicPartition("doubled", n) for n in range(2)]
        ends = await client.offsets(
            dict.fromkeys(partitions, "latest"), isolation_level="read_committed"
        )
        ranges = [
            kafkaio.OffsetRange(tp, 0, end.offset)
            for tp, end in ends.items()
            if end is not None
        ]
        batches = read_ranges(client, ranges, isolation_level="read_committed")
        values = [v for b in [b async for b in batches] for v in b["value"].to_pylist()]
    return sorted(map(int, values))


@pytest.mark.nightly
@pytest.mark.timeout(300)
async def test_a_pipeline_ends_and_goes_on_when_it_is_run_again(tmp_path: Path) -> None:
    spec = tmp_path / "spark-pipeline.yml"
    spec.write_text(SPEC.format(directory=tmp_path))
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations" / "numbers.py").write_text(PIPELINE)
    async with Broker(topics={"odd": 2, "even": 3, "doubled": 2}) as broker:
        servers = broker.bootstrap_servers
        for numbers in (range(100), range(100, 150)):
            await fill(servers, numbers)
            # It ends by itself: each flow reads what there is.
            async with asyncio.timeout(120):
                code, output = await spark_pipelines(spec, {"KAFKA": servers})
            assert code == 0, output
            for flow in ("numbers", "doubled_odd", "doubled_even"):
                assert f"{flow} has COMPLETED" in output
            expected = [2 * n for n in range(numbers.stop)]
            assert await written(servers) == expected
            # Spark's catalog ends with its process, and refuses files that are left:
            # the table is made again. The flows into the sink go on.
            shutil.rmtree(tmp_path / "spark-warehouse")
            shutil.rmtree(tmp_path / "storage" / "_checkpoints" / "spark_catalog")
