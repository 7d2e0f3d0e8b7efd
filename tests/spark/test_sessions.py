"""What the other tests stand on: sessions, the connector, the cluster."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.spark.standalone import Standalone


def test_both_sources_read_what_the_connector_wrote(
    spark: SparkSession, real_kafka: Kafka, topic: TopicFactory
) -> None:
    name = topic(partitions=2)
    servers = {"kafka.bootstrap.servers": real_kafka.bootstrap_servers}
    rows = spark.range(100).selectExpr("cast(id as string) as value")
    rows.write.format("kafka").options(**servers, topic=name).save()
    for source in ("kafka", "kafkaio"):
        read = spark.read.format(source).options(**servers, subscribe=name).load()
        values = {int(row.value) for row in read.select("value").collect()}
        assert values == set(range(100)), source


@pytest.mark.nightly
def test_a_cluster_has_two_executors(
    cluster_spark: SparkSession,
    standalone: Standalone,
    real_kafka: Kafka,
    topic: TopicFactory,
) -> None:
    name = topic(partitions=2)
    servers = {"kafka.bootstrap.servers": real_kafka.bootstrap_servers}
    rows = cluster_spark.range(100).selectExpr("cast(id as string) as value")
    rows.write.format("kafka").options(**servers, topic=name).save()
    read = cluster_spark.read.format("kafkaio").options(**servers, subscribe=name)
    assert read.load().count() == 100
    assert len(standalone.executors()) == 2
    assert standalone.python_workers()
