"""Each failure of a read is one sentence in the driver: where, what, and what to do."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.spark.reading import FAILURES, Reading
from tests.spark.sessions import Sessions, Settings

PLANNING = r"planning \(host [^,]+, pid \d+\)"


@pytest.fixture
def reading(sessions: Sessions, real_kafka: Kafka, spark_directory: Path) -> Reading:
    return Reading(sessions.get(Settings(directory=spark_directory)), real_kafka)


def test_a_topic_that_does_not_exist(reading: Reading) -> None:
    error = reading.error(subscribe="no-such-topic")
    assert re.search(
        rf"{PLANNING}: looking up the offsets to read failed: UnknownTopicOrPartition: "
        ".*no-such-topic.*; check the topic's name, or create the topic",
        error,
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"subscribe": "no-such-topic"}, "there is no such topic"),
        ({"subscribe": "t", "startingOffset": "earliest"}, "did you mean 'startingOff"),
    ],
)
def test_the_sentence_is_near_the_top(
    reading: Reading, options: dict[str, str], sentence: str
) -> None:
    lines = reading.error(**options).splitlines()
    assert any(sentence in line for line in lines[:4]), lines


def test_a_partition_that_does_not_exist(reading: Reading, topic: TopicFactory) -> None:
    name = topic()
    error = reading.error(assign=f'{{"{name}":[0,7]}}')
    assert f"no such partition: {name}-7" in error


def test_no_broker(reading: Reading) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        frame = (
            reading.spark.read.format("kafkaio")
            .option("kafka.bootstrap.servers", address)
            .option("subscribe", "t")
            .option("kafka.request.timeout.ms", "1500")
            .load()
        )
        with pytest.raises(FAILURES) as caught:
            frame.collect()
    assert re.search(
        rf"{PLANNING}: .* failed: BrokerNotAvailable: .*{address}.*; check kafka.boot",
        str(caught.value),
    )


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (
            "values binary",
            "no column 'values' (did you mean 'value'?); a schema can have",
        ),
        ("value int", "column 'value' cannot be int; a schema can have any of"),
        ("offset string", "column 'offset' cannot be string"),
        ("timestamp timestamp_ntz", "column 'timestamp' cannot be timestamp_ntz"),
        ("headers map<string,binary>", "column 'headers' cannot be map<string,binary>"),
        ("value binary not null", "column 'value' cannot be NOT NULL"),
    ],
)
def test_schemas_that_do_not_fit(
    reading: Reading, topic: TopicFactory, schema: str, message: str
) -> None:
    frame = (
        reading.spark.read.format("kafkaio")
        .options(**reading.servers, subscribe="t")
        .schema(schema)
        .load()
    )
    with pytest.raises(FAILURES) as caught:
        frame.collect()
    assert message in str(caught.value)


def test_a_secret_is_never_shown(reading: Reading, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("hunter2", encoding="utf-8")
    error = reading.error(
        subscribe="t", **{"kafka.request.timeout.ms": f"${{dir:{tmp_path}:password}}"}
    )
    assert "one of kafka.request.timeout.ms" in error
    assert "hunter2" not in error
    error = reading.error(subscribe="t", **{"kafka.client.id": "${env:NOT_THERE_}"})
    assert "no variable 'NOT_THERE_'" in error
