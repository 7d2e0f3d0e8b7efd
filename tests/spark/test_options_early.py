"""When options that are not possible are told of, and what SQL does with options.

Spark 4.3 asks for the schema of a read in ``load()``, if the user has given none, and
for the writer of a batch in ``save()``. All else comes when the query runs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.spark.reading import FAILURES

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:1"}
MISSPELT = {**SERVERS, "subscribe": "t", "startingOfsets": "earliest"}


def error_of(act: Callable[[], object]) -> str:
    with pytest.raises(FAILURES) as caught:
        act()
    return str(caught.value)


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_read_is_checked_by_load(spark: SparkSession, is_stream: bool) -> None:
    reader = spark.readStream if is_stream else spark.read
    source = reader.format("kafkaio").options(**MISSPELT)
    assert "did you mean 'startingOffsets'?" in error_of(source.load)


def test_a_read_with_a_schema_is_checked_when_it_runs(spark: SparkSession) -> None:
    """Spark 4.3 makes no data source before."""
    source = spark.read.format("kafkaio").options(**MISSPELT).schema("value string")
    assert "did you mean 'startingOffsets'?" in error_of(source.load().collect)


def test_a_read_of_nothing_is_checked_by_load(spark: SparkSession) -> None:
    source = spark.read.format("kafkaio").options(**SERVERS)
    assert "exactly one of subscribe, subscribePattern and" in error_of(source.load)


def test_a_time_in_nanoseconds(spark: SparkSession) -> None:
    source = spark.read.format("kafkaio").options(
        **SERVERS, subscribe="t", startingTimestamp="1735689600000000000"
    )
    assert "is a time in nanoseconds, it seems" in error_of(source.load)


def test_a_batch_is_checked_by_save(spark: SparkSession) -> None:
    writer = rows(spark).write.format("kafkaio").options(**SERVERS, topc="t")
    assert "did you mean 'topic'?" in error_of(writer.mode("append").save)


def test_the_write_of_a_stream_is_checked_when_it_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    rates = spark.readStream.format("rate").load()
    query = (
        rates.selectExpr("CAST(value AS STRING) AS value")
        .writeStream.format("kafkaio")
        .options(**SERVERS, topc="t")
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    assert "did you mean 'topic'?" in error_of(query.awaitTermination)


def test_a_stream_with_columns_that_do_not_fit(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark asks for the reader when the query runs; the sentence is the last one."""
    frame = (
        spark.readStream.format("kafkaio")
        .options(**SERVERS, subscribe="t")
        .schema("timestamp bigint")
        .load()
    )
    query = (
        frame.writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    error = error_of(query.awaitTermination)
    assert "column 'timestamp' cannot be bigint" in error
    assert "unix_millis(timestamp)" in error
    assert "UnboundLocalError" not in error


def test_timestamps_that_are_numbers(spark: SparkSession) -> None:
    frame = rows(spark).selectExpr("value", "1735689600000000000 AS timestamp")
    writer = frame.write.format("kafkaio").options(**SERVERS, topic="t")
    error = error_of(writer.mode("append").save)
    assert "the column 'timestamp' is bigint; it must be timestamp" in error
    assert "timestamp_micros(timestamp div 1000)" in error


# ---- SQL -----------------------------------------------------------------------------


def test_tables_of_sql(
    spark: SparkSession, real_kafka: Kafka, topic: TopicFactory
) -> None:
    """What the guide says under "SQL"."""
    name = topic(partitions=1)
    servers = f"'kafka.bootstrap.servers' = '{real_kafka.bootstrap_servers}'"
    spark.sql("CREATE TABLE events (key STRING, value STRING) USING kafkaio")
    spark.sql(
        f"INSERT INTO events WITH ({servers}, 'topic' = '{name}') VALUES ('k', 'v')"
    )
    source = f"events WITH ({servers}, 'subscribe' = '{name}')"
    assert values(spark.sql(f"SELECT value FROM {source}")) == ["v"]
    spark.sql(f"CREATE VIEW orders AS SELECT * FROM {source}")
    assert values(spark.sql("SELECT value FROM orders")) == ["v"]
    spark.sql(
        "CREATE TEMPORARY VIEW passing (value STRING, offset BIGINT) USING kafkaio "
        f"OPTIONS ({servers}, 'subscribe' = '{name}')"
    )
    assert values(spark.sql("SELECT value FROM passing WHERE offset = 0")) == ["v"]
    # A table without columns of its own has the default ones.
    spark.sql("CREATE TABLE whole USING kafkaio")
    assert len(spark.table("whole").columns) == 7


@pytest.mark.parametrize("how", ["OPTIONS", "TBLPROPERTIES"])
def test_options_of_a_table_are_refused(spark: SparkSession, how: str) -> None:
    """Spark 4.3 would lose them, and say nothing."""
    create = f"CREATE TABLE lost USING kafkaio {how} ('kafka.bootstrap.servers' = 'a')"
    assert "SELECT ... FROM t WITH (...)" in error_of(lambda: spark.sql(create))


def rows(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT 'a' AS value")


def values(frame: DataFrame) -> list[str]:
    return [row.value for row in frame.collect()]
