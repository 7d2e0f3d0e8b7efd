"""Spark, with its own connector for Kafka beside kafkaio's, and a real Kafka.

Spark's jars come with pyspark. Those of its connector are fetched as Kafka's are. The
newest connector that can be had is 4.2.0; it runs in Spark 4.3.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka.jars import Jar, fetch_jars
from kafkaio.testing.pytest_plugin import TopicFactory, topic_factory
from tests.spark.standalone import Standalone

CONNECTOR = [
    Jar(
        group="org.apache.spark",
        artifact="spark-sql-kafka-0-10_2.13",
        version="4.2.0",
        sha256="64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    ),
    Jar(
        group="org.apache.spark",
        artifact="spark-token-provider-kafka-0-10_2.13",
        version="4.2.0",
        sha256="641c7947afc8aa1189e433b7c2d305293993c8691bc1c2062d6d4f513b12518c",
    ),
    Jar(
        group="org.apache.kafka",
        artifact="kafka-clients",
        version="3.9.2",
        sha256="014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    ),
    Jar(
        group="org.apache.commons",
        artifact="commons-pool2",
        version="2.12.1",
        sha256="5273c8bc8c0dca2211175c0d27efbd7228efae99689aac001a8e1ef8e872e9ef",
    ),
]


def builder(directory: Path, master: str) -> SparkSession.Builder:
    """A session's settings: small, quiet, in UTC, with Spark's own connector."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    jars = ",".join(str(path) for path in fetch_jars(CONNECTOR))
    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.streaming.metricsEnabled": "false",
    }
    made = SparkSession.builder.master(master).appName("kafkaio")
    for name, value in settings.items():
        made = made.config(name, value)
    return made


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of two threads, in which a task may fail three times."""
    directory = tmp_path_factory.mktemp("spark")
    session = builder(directory, "local[2,4]").getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A cluster of a master and two workers, each a process of its own."""
    with Standalone(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


@pytest.fixture
def topic(real_kafka: Kafka, request: pytest.FixtureRequest) -> TopicFactory:
    """Make topics with new names on `real_kafka`."""
    return topic_factory(real_kafka, request)
