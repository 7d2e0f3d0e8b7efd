"""Every option of a batch read against what Spark's own connector does with it."""

from __future__ import annotations

import json
import re

import pytest
from pyspark.sql import functions as f

from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.spark.reading import FIRST_TIMESTAMP, SOURCES, Reading
from tests.spark.sessions import Sessions, Settings

COUNT, PARTITIONS = 60, 3


@pytest.fixture(scope="module")
def reading(
    sessions: Sessions, real_kafka: Kafka, tmp_path_factory: pytest.TempPathFactory
) -> Reading:
    directory = tmp_path_factory.mktemp("reading")
    return Reading(sessions.get(Settings(directory=directory)), real_kafka)


@pytest.fixture(scope="module")
def name(reading: Reading) -> str:
    """A topic of three partitions, 20 records in each."""
    reading.kafka.create_topic_blocking("read-options", PARTITIONS, None, None)
    reading.fill("read-options", COUNT, partitions=PARTITIONS)
    return "read-options"


def by_partition(name: str, values: dict[int, int]) -> str:
    return json.dumps({name: {str(number): n for number, n in values.items()}})


# ---- what is read --------------------------------------------------------------------


def test_topics_by_name_by_pattern_and_by_partition(
    reading: Reading, name: str
) -> None:
    everything = reading.both(subscribe=f" {name} ,")
    assert len(everything) == COUNT
    assert reading.both(subscribePattern="read-opt.*s") == everything
    assert len(reading.both(assign=json.dumps({name: [0, 2]}))) == 40


def test_a_pattern_is_found_anywhere_in_a_name(reading: Reading, name: str) -> None:
    assert len(reading.both(subscribePattern="d-opt")) == COUNT
    assert reading.both(subscribePattern="^ead-opt") == []
    assert reading.both(subscribePattern="nothing-like-this") == []


def test_letter_case_is_ignored(reading: Reading, name: str) -> None:
    found = reading.both(SUBSCRIBE=name, STARTINGOFFSETS="earliest", minpartitions="4")
    assert len(found) == COUNT


def test_headers(reading: Reading, name: str) -> None:
    rows = reading.both(subscribe=name, includeHeaders="true")
    assert {type(row[7]) for row in rows} == {list, type(None)}
    schemas = [
        reading.load(source, {"subscribe": name, "includeHeaders": "true"}).schema
        for source in SOURCES
    ]
    assert schemas[0] == schemas[1]
    plain = [reading.load(source, {"subscribe": name}).schema for source in SOURCES]
    assert plain[0] == plain[1]


# ---- where it starts and ends --------------------------------------------------------

START = FIRST_TIMESTAMP + 20_000
END = FIRST_TIMESTAMP + 40_000


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": "earliest", "endingOffsets": "latest"},
        {"startingOffsets": {0: 5, 1: -2, 2: 20}},
        {"startingOffsets": {0: 5, 1: -2, 2: 0}, "endingOffsets": {0: 5, 1: -1, 2: 3}},
        {"endingOffsets": {0: 0, 1: 7, 2: -1}},
        {"startingTimestamp": str(START)},
        {"endingTimestamp": str(END)},
        {"startingTimestamp": str(START), "endingTimestamp": str(END)},
        {"startingOffsetsByTimestamp": {0: START, 1: 0, 2: END}},
        {"endingOffsetsByTimestamp": {0: START, 1: 1, 2: END * 2}},
        {"startingTimestamp": str(START), "startingOffsets": {0: 1, 1: 1, 2: 1}},
        {
            "startingOffsetsByTimestamp": {0: START, 1: START, 2: START},
            "startingOffsets": "earliest",
            "endingTimestamp": str(END),
            "endingOffsetsByTimestamp": {0: 0, 1: 0, 2: 0},
            "endingOffsets": {0: 1, 1: 1, 2: 1},
        },
    ],
    ids=str,
)
def test_bounds(
    reading: Reading, name: str, options: dict[str, str | dict[int, int]]
) -> None:
    given = {
        key: value if isinstance(value, str) else by_partition(name, value)
        for key, value in options.items()
    }
    rows = reading.both(subscribe=name, **given)
    assert len(rows) <= COUNT


def test_no_record_at_the_time_to_start_at(reading: Reading, name: str) -> None:
    late = str(FIRST_TIMESTAMP * 2)
    error = reading.both_refuse(subscribe=name, startingTimestamp=late)
    assert "startingOffsetsByTimestampStrategy=latest" in error
    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    assert reading.both(subscribe=name, startingTimestamp=late, **latest) == []
    mixed = by_partition(name, {0: START, 1: FIRST_TIMESTAMP * 2, 2: START})
    found = reading.both(subscribe=name, startingOffsetsByTimestamp=mixed, **latest)
    assert {row[3] for row in found} == {0, 2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOffsets": "latest"}, "cannot start at the latest"),
        ({"endingOffsets": "earliest"}, "cannot end at the earliest"),
        ({"startingOffsets": '{"read-options":{"0":1}}'}, "read-options-1, read-opt"),
        ({"startingOffsets": "{"}, "JSON such as"),
        (
            {"startingOffsetsByTimestamp": '{"read-options":{"0":1}}'},
            "must name every partition",
        ),
        ({"startingTimestamp": "noon"}, "is not an integer"),
        ({"startingOffsetsByTimestampStrategy": "soon", "startingTimestamp": "1"}, "n"),
        ({"minPartitions": "0"}, "minPartitions=0 is less than 1"),
        ({"maxRecordsPerPartition": "0"}, "maxRecordsPerPartition=0 is less than 1"),
        ({"failOnDataLoss": "perhaps"}, "neither true nor false"),
        ({"includeHeaders": "perhaps"}, "neither true nor false"),
        ({"kafka.auto.offset.reset": "latest"}, "use startingOffsets"),
        ({"kafka.key.deserializer": "x"}, "keys are bytes"),
        ({"kafka.value.deserializer": "x"}, "values are bytes"),
        ({"kafka.enable.auto.commit": "true"}, "Spark keeps the offsets"),
        ({"kafka.interceptor.classes": "x"}, "operations on the DataFrame"),
        ({"kafka.isolation.level": "sometimes"}, "isolation_level='sometimes'"),
        ({"assign": '{"read-options":[0]}'}, "exactly one of subscribe"),
    ],
)
def test_what_both_refuse(
    reading: Reading, name: str, options: dict[str, str], message: str
) -> None:
    assert message in reading.both_refuse(subscribe=name, **options)


def test_what_kafkaio_refuses_and_the_connector_ignores(
    reading: Reading, name: str
) -> None:
    error = reading.error(subscribe=name, startingOffset="earliest")
    assert "did you mean 'startingOffsets'?" in error
    error = reading.error(subscribe=name, **{"kafka.max.poll.recs": "1"})
    assert "did you mean" in error
    error = reading.error(subscribe=name, topic=name)
    assert "topic is an option of a batch write" in error


#: In a batch the connector splits by ``maxRecordsPerPartition`` where both bounds are
#: offsets, and not where they are words.
WHOLE = {"startingOffsets": "FROM ZERO", "endingOffsets": "TO END"}


# ---- tasks ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"minPartitions": "2"},
        {"minPartitions": "8"},
        pytest.param({"minPartitions": "100"}, marks=pytest.mark.nightly),
        {"maxRecordsPerPartition": "7", **WHOLE},
        {"maxRecordsPerPartition": "7", "minPartitions": "20", **WHOLE},
        {"minPartitions": "7", "startingOffsets": "UNEVEN"},
    ],
    ids=str,
)
def test_tasks_are_those_of_the_connector(
    reading: Reading, name: str, options: dict[str, str]
) -> None:
    bounds = {
        "UNEVEN": by_partition(name, {0: 19, 1: 3, 2: -2}),
        "FROM ZERO": by_partition(name, {0: 0, 1: 0, 2: 0}),
        "TO END": by_partition(name, {0: 20, 1: 20, 2: 20}),
    }
    given = {key: bounds.get(value, value) for key, value in options.items()}
    tasks = []
    for source in SOURCES:
        frame = reading.load(source, {"subscribe": name, **given})
        found = (
            frame.groupBy(f.spark_partition_id(), "partition")
            .agg(f.min("offset"), f.max("offset"))
            .collect()
        )
        tasks.append(sorted(tuple(row)[1:] for row in found))
    assert tasks[0] == tasks[1]


def test_small_ranges_share_a_task(reading: Reading, name: str) -> None:
    frame = reading.load("kafkaio", {"subscribe": name, "minRecordsPerTask": "30"})
    assert frame.rdd.getNumPartitions() == 2
    assert frame.count() == COUNT


# ---- names and times that change nothing that is read --------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"kafkaConsumer.pollTimeoutMs": "20000"},
        {"fetchOffset.numRetries": "5", "fetchOffset.retryIntervalMs": "20"},
        {"groupIdPrefix": "some-prefix"},
        {"kafka.group.id": "some-group"},
        {"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "1"},
        {"maxTriggerDelay": "1m"},
        {"kafka.max.partition.fetch.bytes": "200", "kafka.max.poll.records": "3"},
        {"failOnDataLoss": "false"},
    ],
    ids=str,
)
def test_the_same_rows(reading: Reading, name: str, options: dict[str, str]) -> None:
    assert len(reading.both(subscribe=name, **options)) == COUNT


def test_small_fetches(reading: Reading, name: str) -> None:
    rows = reading.rows("kafkaio", {"subscribe": name, "fetchBytes": "100"})
    assert rows == reading.rows("kafka", {"subscribe": name})


# ---- isolation, loss -----------------------------------------------------------------


def test_isolation_levels(reading: Reading, topic: TopicFactory) -> None:
    name = topic(2)
    reading.fill_with_transactions(name, 9, 2)
    assert len(reading.both(subscribe=name)) == 27
    committed = {"kafka.isolation.level": "read_committed"}
    assert len(reading.both(subscribe=name, **committed)) == 18


def test_records_that_were_deleted(reading: Reading, topic: TopicFactory) -> None:
    name = topic(2)
    reading.fill(name, 20, partitions=2)
    reading.delete_records(name, {0: 4})
    assert len(reading.both(subscribe=name)) == 16
    from_zero = by_partition(name, {0: 0, 1: 0})
    error = reading.both_refuse(subscribe=name, startingOffsets=from_zero)
    assert f"{name}-0 is to be read from 0 to 10, but its log has 4 to 10" in error
    lenient = reading.both(
        subscribe=name, startingOffsets=from_zero, failOnDataLoss="false"
    )
    assert len(lenient) == 16


def test_an_end_that_the_log_does_not_have(
    reading: Reading, topic: TopicFactory
) -> None:
    name = topic()
    reading.fill(name, 5)
    # The connector waits for its poll timeout here.
    error = reading.error(subscribe=name, endingOffsets=by_partition(name, {0: 9}))
    assert f"{name}-0 is to be read from 0 to 9, but its log has 0 to 5" in error
    options = {"endingOffsets": by_partition(name, {0: 9}), "failOnDataLoss": "false"}
    assert len(reading.rows("kafkaio", {"subscribe": name, **options})) == 5


# ---- columns -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        "value binary",
        "offset bigint, value string, partition int",
        "headers array<struct<key:string,value:binary>>, KEY string",
        "timestampType int, timestamp timestamp, topic string",
    ],
)
def test_a_schema_chooses_columns(reading: Reading, name: str, schema: str) -> None:
    frame = (
        reading.spark.read.format("kafkaio")
        .options(**reading.servers, subscribe=name)
        .schema(schema)
        .load()
    )
    theirs = reading.load("kafka", {"subscribe": name, "includeHeaders": "true"})
    casts = [
        f.col(field.name).cast(field.dataType).alias(field.name)
        for field in frame.schema.fields
    ]
    assert frame.schema.fieldNames() == [
        re.split(r"[ ,]+", p)[0] for p in split(schema)
    ]
    assert sorted(map(repr, frame.collect())) == sorted(
        map(repr, theirs.select(*casts).collect())
    )


def split(schema: str) -> list[str]:
    return re.split(r", (?![^<]*>)", schema)


def test_bytes_that_are_no_text(reading: Reading, topic: TopicFactory) -> None:
    name = topic()
    rows = reading.spark.createDataFrame([(bytearray(b"\xff\xfe"),)], "value binary")
    rows.write.format("kafka").options(**reading.servers, topic=name).save()
    frame = (
        reading.spark.read.format("kafkaio")
        .options(**reading.servers, subscribe=name)
        .schema("value string")
        .load()
    )
    with pytest.raises(Exception, match=f"{name}-0.*UTF-8"):
        frame.collect()
