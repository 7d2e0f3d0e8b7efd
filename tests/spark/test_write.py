"""Columns, options and errors of a write, beside those of Spark's own connector."""

from __future__ import annotations

import asyncio
import datetime
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, functions as f

import kafkaio.spark
from kafkaio._client import Client
from kafkaio._consumer import Consumer
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import Record, TopicPartition
from tests.spark.torture_sink import numbered, stream_of

PARTITIONS = 3
HEADERS = "array<struct<key string, value binary>>"
#: Not long ago: what is older than a week, Kafka deletes.
WHEN = datetime.datetime.now(datetime.UTC).replace(microsecond=5000)


class Sinks:
    """Writes data frames by both connectors, and reads what they wrote."""

    def __init__(self, spark: SparkSession, kafka: Kafka, topic: TopicFactory) -> None:
        self.spark = spark
        self.servers = kafka.bootstrap_servers
        self._topic = topic
        kafkaio.spark.register(spark)

    def topic(self) -> str:
        return self._topic(partitions=PARTITIONS)

    def write(
        self, rows: DataFrame, form: str, mode: str = "append", **options: str
    ) -> None:
        writer = rows.write.format(form).mode(mode)
        writer.options(**{"kafka.bootstrap.servers": self.servers, **options}).save()

    def records(self, topic: str) -> list[Record]:
        return asyncio.run(self._records(topic))

    async def _records(self, topic: str) -> list[Record]:
        places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        found: list[Record] = []
        async with Consumer(
            self.servers,
            assign=places,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        ) as consumer:
            ends = await consumer.end_offsets(places)
            while True:
                found += (await consumer.poll(timeout=0.1)).records
                at = [await consumer.position(place) for place in ends]
                if all(a >= b for a, b in zip(at, ends.values(), strict=True)):
                    return found

    async def groups(self, prefix: str) -> list[str]:
        from kafkaio.protocol.messages.list_groups import ListGroupsRequest

        async with Client(self.servers) as client:
            answer = await client.request(ListGroupsRequest())
        return sorted(
            each.group_id for each in answer.groups if each.group_id.startswith(prefix)
        )


@pytest.fixture
def sinks(spark: SparkSession, real_kafka: Kafka, topic: TopicFactory) -> Sinks:
    return Sinks(spark, real_kafka, topic)


def content(records: list[Record]) -> list[tuple[Any, ...]]:
    made = [(each.key, each.value, each.headers) for each in records]
    return sorted(made, key=repr)


def placed(records: list[Record]) -> list[tuple[Any, ...]]:
    return sorted(((r.partition, r.key, r.value) for r in records), key=repr)


def keyed(spark: SparkSession) -> DataFrame:
    return spark.range(500).selectExpr(
        "case when id % 7 = 0 then null else cast(id as string) end as key",
        "case when id % 5 = 0 then null "
        "else cast(cast(id * 2 as string) as binary) end as value",
        "id as offset",
        "'not a topic' as topic",
    )


# ---- columns -------------------------------------------------------------------------


def test_keys_and_values(sinks: Sinks) -> None:
    rows = keyed(sinks.spark)
    ours, theirs = sinks.topic(), sinks.topic()
    sinks.write(rows, "kafkaio", topic=ours)
    sinks.write(rows, "kafka", topic=theirs)
    assert content(sinks.records(ours)) == content(sinks.records(theirs))
    with_keys = [
        [row for row in placed(sinks.records(topic)) if row[1] is not None]
        for topic in (ours, theirs)
    ]
    assert with_keys[0] == with_keys[1]


def test_headers_partitions_and_topics_of_rows(sinks: Sinks) -> None:
    found = []
    for form in ("kafkaio", "kafka"):
        one, two = sinks.topic(), sinks.topic()
        rows = sinks.spark.range(200).selectExpr(
            f"case when id % 2 = 0 then '{one}' else '{two}' end as topic",
            "cast(id % 3 as int) as partition",
            "cast(id as string) as value",
            "case when id % 4 = 0 then null else "
            "array("
            "named_struct('key', 'a', 'value', cast(cast(id as string) as binary)), "
            "named_struct('key', 'b', 'value', null)) end as headers",
        )
        sinks.write(rows, form, includeHeaders="true")
        found.append([sinks.records(topic) for topic in (one, two)])
    for ours, theirs in zip(*found, strict=True):
        assert content(ours) == content(theirs)
        assert placed(ours) == placed(theirs)
        assert len(ours) == 100


def test_rows_without_a_partition_go_anywhere(sinks: Sinks) -> None:
    topic = sinks.topic()
    rows = sinks.spark.range(100).selectExpr(
        "cast(id as string) as value",
        "case when id % 2 = 0 then 1 else null end as partition",
    )
    sinks.write(rows, "kafkaio", topic=topic)
    even = [r for r in sinks.records(topic) if int(r.value or b"") % 2 == 0]
    assert len(even) == 50
    assert {r.partition for r in even} == {1}
    assert len(sinks.records(topic)) == 100


def test_timestamps(sinks: Sinks) -> None:
    topic = sinks.topic()
    rows = sinks.spark.createDataFrame(
        [("a", WHEN)], "value string, timestamp timestamp"
    )
    sinks.write(rows, "kafkaio", topic=topic)
    (record,) = sinks.records(topic)
    assert record.timestamp == int(WHEN.timestamp() * 1000)


def test_rows_without_keys_are_spread_evenly(sinks: Sinks, topic: TopicFactory) -> None:
    name = topic(partitions=8)
    rows = sinks.spark.range(0, 20_000, numPartitions=4)
    rows = rows.selectExpr("cast(id as string) as value", "cast(null as string) as key")
    sinks.write(rows, "kafkaio", topic=name)

    async def ends() -> list[int]:
        async with Client(sinks.servers) as client:
            found = await client.offsets(
                {TopicPartition(name, number): "latest" for number in range(8)}
            )
        return [end.offset for end in found.values() if end is not None]

    written = asyncio.run(ends())
    assert sum(written) == 20_000
    assert max(written) <= 1.5 * min(written)


def test_no_rows(sinks: Sinks) -> None:
    topic = sinks.topic()
    sinks.write(sinks.spark.range(0).selectExpr("'x' as value"), "kafkaio", topic=topic)
    assert sinks.records(topic) == []


# ---- what both refuse ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["'k' as key"], "the column 'value' is missing"),
        (["1 as value"], "the column 'value' is int; it must be binary or string"),
        (["'a' as value", "1L as key"], "the column 'key' is bigint"),
        (["'a' as value", "map('a', 'b') as headers"], "the column 'headers' is map"),
        (["'a' as value", "1L as partition"], "the column 'partition' is bigint"),
    ],
)
def test_columns_that_both_refuse(
    sinks: Sinks, columns: list[str], message: str
) -> None:
    rows = sinks.spark.range(1).selectExpr(*columns)
    with pytest.raises(Exception, match=message):
        sinks.write(rows, "kafkaio", topic="never")
    with pytest.raises(Exception, match=r"value|key|headers|partition"):
        sinks.write(rows, "kafka", topic="never")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["'a' as value"], "there is no topic to write to"),
        (["'a' as value", "cast(null as string) as topic"], "topic"),
        (["'a' as value", "1 as topic"], "the column 'topic' is int"),
    ],
)
def test_topics_that_both_refuse(
    sinks: Sinks, columns: list[str], message: str
) -> None:
    rows = sinks.spark.range(1).selectExpr(*columns)
    with pytest.raises(Exception, match=message):
        sinks.write(rows, "kafkaio")
    with pytest.raises(Exception, match="topic"):
        sinks.write(rows, "kafka")


def test_overwriting_is_refused_by_both(sinks: Sinks) -> None:
    rows = sinks.spark.range(1).selectExpr("'a' as value")
    for form in ("kafkaio", "kafka"):
        with pytest.raises(Exception, match=r"(?i)overwrit"):
            sinks.write(rows, form, "overwrite", topic="never")


@pytest.mark.parametrize("name", ["kafka.key.serializer", "kafka.value.serializer"])
def test_serializers_are_refused_by_both(sinks: Sinks, name: str) -> None:
    rows = sinks.spark.range(1).selectExpr("'a' as value")
    for form in ("kafkaio", "kafka"):
        with pytest.raises(Exception, match="serializer"):
            sinks.write(rows, form, topic="never", **{name: "x"})


def test_options_of_the_producer_have_an_effect(sinks: Sinks) -> None:
    rows = sinks.spark.range(10).selectExpr("repeat('a', 2000) as value")
    for form in ("kafkaio", "kafka"):
        sinks.write(
            rows, form, topic=sinks.topic(), **{"kafka.compression.type": "lz4"}
        )
        with pytest.raises(Exception, match=r"max_request_size|max\.request\.size"):
            sinks.write(
                rows, form, topic=sinks.topic(), **{"kafka.max.request.size": "1000"}
            )


def test_brokers_that_are_not_there(sinks: Sinks) -> None:
    rows = sinks.spark.range(1).selectExpr("'a' as value")
    options = {
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "kafka.max.block.ms": "500",
    }
    began = time.monotonic()
    with pytest.raises(Exception, match=r"task [01] \(host .*127.0.0.1:1.*check"):
        sinks.write(rows, "kafkaio", topic="t", **options)
    # Four attempts of a minute each, if the option had no effect.
    assert time.monotonic() - began < 120


# ---- exactly once, in batches --------------------------------------------------------


@pytest.mark.parametrize("store", ["topic", "groups"])
def test_a_batch_is_written_once_whatever_its_tasks_are(
    sinks: Sinks, store: str
) -> None:
    topic = sinks.topic()
    options = {"topic": topic, "exactlyOnce": "true", "transactionalIdPrefix": "team"}
    options |= {"markerStore": store, "txnAppId": topic}
    rows = sinks.spark.range(100).selectExpr("cast(id as string) as value")
    for version, tasks in (("1", 2), ("1", 4), ("1", 1), ("2", 3), ("2", 2)):
        sinks.write(rows.repartition(tasks), "kafkaio", txnVersion=version, **options)
    assert len(sinks.records(topic)) == 200
    # An earlier version is in, too.
    sinks.write(rows, "kafkaio", txnVersion="1", **options)
    assert len(sinks.records(topic)) == 200
    ids = [f"team-{topic}-{task}" for task in range(3)]
    groups = [*ids, f"team-{topic}-batch"] if store == "groups" else []
    assert asyncio.run(sinks.groups(f"team-{topic}-")) == groups
    kafka = {"kafka.bootstrap.servers": sinks.servers, "transactionalIdPrefix": "team"}
    (mine,) = [each for each in kafkaio.spark.marked_apps(kafka) if each.app == topic]
    assert (mine.version, mine.tasks, mine.store) == (2, 3, store)
    assert kafkaio.spark.cleanup(topic, kafka) == ids
    assert asyncio.run(sinks.groups(f"team-{topic}-")) == []
    assert topic not in [each.app for each in kafkaio.spark.marked_apps(kafka)]


def test_a_batch_with_other_rows(sinks: Sinks) -> None:
    topic = sinks.topic()
    once = {"exactlyOnce": "true", "txnAppId": topic, "txnVersion": "1", "topic": topic}
    sinks.write(sinks.spark.range(10).selectExpr("'a' as value"), "kafkaio", **once)
    other = sinks.spark.range(10).selectExpr("'b' as value")
    with pytest.raises(Exception, match=r"ReplayMismatch.*was run again with other"):
        sinks.write(other, "kafkaio", **once)
    sinks.write(other, "kafkaio", onReplayMismatch="warn", **once)
    assert {each.value for each in sinks.records(topic)} == {b"a"}


def test_topics_of_rows_with_a_topic_for_markers(sinks: Sinks) -> None:
    one, plain = sinks.topic(), sinks.topic()
    rows = sinks.spark.range(10).selectExpr("'a' as value", f"'{one}' as topic")
    once = {"exactlyOnce": "true", "txnAppId": one, "txnVersion": "1"}
    with pytest.raises(Exception, match="markerTopic"):
        sinks.write(rows, "kafkaio", markerStore="groups", **once)
    # Retention would delete markers there.
    with pytest.raises(Exception, match=rf"{plain}' has cleanup.policy=delete"):
        sinks.write(rows, "kafkaio", markerTopic=plain, **once)
    for _ in range(2):
        sinks.write(rows, "kafkaio", markerTopic=f"{one}-markers", **once)
    assert len(sinks.records(one)) == 10


# ---- streams -------------------------------------------------------------------------


def finished(writer: Any) -> None:
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()


def options(sinks: Sinks, directory: Path, **more: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": sinks.servers,
        "checkpointLocation": str(directory / "checkpoint"),
        **more,
    }


def test_a_stream_in_append_mode(sinks: Sinks, tmp_path: Path) -> None:
    topic = sinks.topic()
    wanted = numbered(tmp_path / "in", 2, 50)
    rows = stream_of(sinks.spark, tmp_path / "in", tasks=2)
    writer = rows.writeStream.format("kafkaio")
    finished(writer.options(**options(sinks, tmp_path, topic=topic)))
    assert sorted(each.value or b"" for each in sinks.records(topic)) == sorted(wanted)


def test_complete_mode_is_refused(sinks: Sinks, tmp_path: Path) -> None:
    numbered(tmp_path / "in", 1, 5)
    rows = stream_of(sinks.spark, tmp_path / "in", tasks=1)
    counts = rows.groupBy("value").count()
    writer = counts.writeStream.format("kafkaio").outputMode("complete")
    with pytest.raises(Exception, match="cannot be overwritten"):
        finished(writer.options(**options(sinks, tmp_path, topic="never")))


@pytest.mark.parametrize("once", [{}, {"exactlyOnce": "true"}])
def test_update_mode_by_foreach_batch(
    sinks: Sinks, tmp_path: Path, once: dict[str, str]
) -> None:
    topic = sinks.topic()
    numbered(tmp_path / "in", 2, 50)
    rows = stream_of(sinks.spark, tmp_path / "in", tasks=2)
    counts = rows.groupBy(f.substring("value", -1, 1).alias("key")).count()
    to_kafka = kafkaio.spark.foreach_batch_writer(
        {"kafka.bootstrap.servers": sinks.servers, "topic": topic, **once},
        select=lambda batch: batch.selectExpr("key", "cast(count as string) as value"),
    )
    writer = counts.writeStream.outputMode("update").foreachBatch(to_kafka)
    finished(writer.option("checkpointLocation", str(tmp_path / "checkpoint")))
    found = {(each.key, each.value) for each in sinks.records(topic)}
    assert len(sinks.records(topic)) == 20
    assert {count for _, count in found} == {b"5", b"10"}
    apps = [each.app for each in kafkaio.spark.marked_apps(kafka_of(sinks))]
    metadata = (tmp_path / "checkpoint" / "metadata").read_text()
    assert len([each for each in apps if each in metadata]) == (1 if once else 0)


def kafka_of(sinks: Sinks) -> dict[str, str]:
    return {"kafka.bootstrap.servers": sinks.servers}
