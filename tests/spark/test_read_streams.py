"""Streams: what each micro-batch reads, checkpoints, topics that change, lag."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kafkaio import Client, TopicPartition
from kafkaio.spark import LagListener, lag, source_metrics
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.spark.reading import FAILURES, SOURCES, Reading
from tests.spark.sessions import Sessions, Settings, end_queries
from tests.spark.streaming import Stream, read_by_both


@pytest.fixture
def reading(
    sessions: Sessions, real_kafka: Kafka, spark_directory: Path
) -> Iterator[Reading]:
    session = sessions.get(Settings(directory=spark_directory))
    yield Reading(session, real_kafka)
    end_queries(session)


def test_a_limit_is_shared_as_the_connector_shares_it(
    reading: Reading, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic(3)
    reading.fill(name, 60, partitions=2)
    reading.fill(name, 3, partitions=3, first=60)
    stream = read_by_both(
        reading,
        tmp_path,
        subscribe=name,
        startingOffsets="earliest",
        maxOffsetsPerTrigger="20",
        includeHeaders="true",
    )
    assert len(stream.rows()) == 63
    assert len(stream.batches) >= 3


def test_a_micro_batch_waits_for_offsets(
    reading: Reading, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic()
    streams = {}
    queries = {}
    reading.fill(name, 5)
    for source in SOURCES:
        streams[source] = stream = Stream(
            reading,
            tmp_path / source,
            subscribe=name,
            startingOffsets="earliest",
            minOffsetsPerTrigger="10",
            maxOffsetsPerTrigger="12",
            maxTriggerDelay="1h",
        )
        queries[source] = stream.start(source, is_available_now=False)
    for first, count in ((5, 5), (10, 8), (18, 4)):
        # The first one waits for nothing, the next one until there are ten.
        for query in queries.values():
            query.processAllAvailable()
        reading.fill(name, count, first=first)
    for query in queries.values():
        query.processAllAvailable()
        query.stop()
    assert streams["kafkaio"].batches == streams["kafka"].batches
    sizes = [len(rows) for rows in streams["kafkaio"].batches.values()]
    assert sizes == [5, 12]


def test_available_now_waits_for_nothing(
    reading: Reading, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic()
    reading.fill(name, 25)
    stream = Stream(
        reading,
        tmp_path,
        subscribe=name,
        startingOffsets="earliest",
        minOffsetsPerTrigger="15",
        maxOffsetsPerTrigger="20",
    )
    stream.run("kafkaio")
    # The connector leaves the last five for another run.
    assert [len(rows) for rows in stream.batches.values()] == [20, 5]


def test_available_now_reads_what_there_is_and_no_more(
    reading: Reading, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic(2)
    reading.fill(name, 10, partitions=2)
    stream = read_by_both(reading, tmp_path, subscribe=name, startingOffsets="earliest")
    assert list(stream.batches) == [0]
    # The next run goes on where this one ended.
    reading.fill(name, 4, partitions=2, first=10)
    query = stream.run("kafkaio")
    assert len(stream.batches[1]) == 4
    assert lag(query.lastProgress) == {
        TopicPartition(name, 0): 0,
        TopicPartition(name, 1): 0,
    }


def test_a_stream_that_starts_at_the_latest_is_anchored(
    reading: Reading, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic()
    reading.fill(name, 5)
    stream = read_by_both(reading, tmp_path, subscribe=name)
    assert stream.rows() == []
    reading.fill(name, 3, first=5)
    stream.run("kafkaio")
    assert [row[4] for row in stream.rows()] == [5, 6, 7]


@pytest.mark.parametrize("bound", ["offsets", "timestamp", "timestamps"])
def test_where_a_stream_starts(
    reading: Reading, topic: TopicFactory, tmp_path: Path, bound: str
) -> None:
    name = topic()
    reading.fill(name, 10)
    rows = reading.rows("kafkaio", {"subscribe": name})
    at = int(rows[4][5].timestamp() * 1000)  # type: ignore[attr-defined]
    options: Mapping[str, str] = {
        "offsets": {"startingOffsets": json.dumps({name: {"0": 4}})},
        "timestamp": {"startingTimestamp": str(at)},
        "timestamps": {"startingOffsetsByTimestamp": json.dumps({name: {"0": at}})},
    }[bound]
    stream = read_by_both(reading, tmp_path, subscribe=name, **options)
    assert stream.rows() == rows[4:]


def test_new_partitions_are_read_from_their_first_offset(
    reading: Reading, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic()
    reading.fill(name, 4)
    streams = {
        source: Stream(
            reading, tmp_path / source, subscribe=name, maxOffsetsPerTrigger="3"
        )
        for source in SOURCES
    }
    for source, stream in streams.items():
        stream.run(source, startingOffsets="earliest")
    reading.add_partitions(name, 3)
    reading.fill(name, 9, partitions=3, first=6)
    for source, stream in streams.items():
        stream.run(source)
    assert streams["kafkaio"].batches == streams["kafka"].batches
    assert streams["kafkaio"].offsets() == streams["kafka"].offsets()
    assert len(streams["kafkaio"].rows()) == 13


@pytest.mark.nightly
def test_a_topic_that_was_deleted_and_made_again(
    reading: Reading, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic()
    reading.fill(name, 8)
    streams = {
        source: Stream(
            reading, tmp_path / source, subscribe=name, startingOffsets="earliest"
        )
        for source in SOURCES
    }
    for source, stream in streams.items():
        stream.run(source)
    reading.kafka.delete_topics_blocking([name])
    reading.kafka.create_topic_blocking(name, 1, None, None)
    reading.fill(name, 3)
    for source, stream in streams.items():
        with pytest.raises(FAILURES) as caught:
            stream.run(source)
        if source == "kafkaio":
            assert f"topic '{name}' was deleted and made again" in str(caught.value)
            assert "failOnDataLoss=false" in str(caught.value)
    for source, stream in streams.items():
        stream.run(source, failOnDataLoss="false")
    reading.fill(name, 2, first=100)
    for source, stream in streams.items():
        stream.run(source, failOnDataLoss="false")
    # The connector skips the first three of the new topic.
    assert len(streams["kafka"].rows()) == 10
    assert len(streams["kafkaio"].rows()) == 13
    assert streams["kafkaio"].offsets()[-1] == streams["kafka"].offsets()[-1]


@pytest.mark.nightly
def test_a_longer_topic_that_was_made_again_is_not_read_on(
    reading: Reading, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic()
    reading.fill(name, 8)
    stream = Stream(reading, tmp_path, subscribe=name, startingOffsets="earliest")
    stream.run("kafkaio")
    reading.kafka.delete_topics_blocking([name])
    reading.kafka.create_topic_blocking(name, 1, None, None)
    reading.fill(name, 12)
    with pytest.raises(FAILURES, match=f"topic '{name}' was deleted and made again"):
        stream.run("kafkaio")
    stream.run("kafkaio", failOnDataLoss="false")
    assert [row[4] for row in stream.rows()] == sorted([*range(8), *range(12)])


def test_records_that_were_deleted_before_they_were_read(
    reading: Reading, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic()
    reading.fill(name, 4)
    stream = Stream(reading, tmp_path, subscribe=name, startingOffsets="earliest")
    stream.run("kafkaio")
    reading.fill(name, 6, first=4)
    reading.delete_records(name, {0: 7})
    with pytest.raises(FAILURES, match=f"{name}-0 is to be read from 4 to 10, but its"):
        stream.run("kafkaio")
    stream.run("kafkaio", failOnDataLoss="false")
    assert [row[4] for row in stream.rows()] == [0, 1, 2, 3, 7, 8, 9]


@pytest.mark.nightly
def test_a_checkpoint_goes_from_the_connector_to_kafkaio_and_back(
    reading: Reading, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic(13)
    stream = Stream(
        reading,
        tmp_path,
        subscribe=name,
        startingOffsets="earliest",
        maxOffsetsPerTrigger="60",
    )
    written = 0
    for source, batches in (("kafka", 7), ("kafkaio", 7), ("kafka", 6)):
        before = len(stream.batches)
        reading.fill(name, 65 * batches - 26, partitions=13, first=written)
        written += 65 * batches - 26
        stream.run(source)
        assert len(stream.batches) > before + 3
    assert len(stream.batches) >= 20
    rows = stream.rows()
    assert rows == reading.rows("kafka", {"subscribe": name})
    assert len(rows) == written
    for offsets in stream.offsets():
        assert sorted(map(int, offsets[name])) == [*range(13)]
    # The connector has gone on from a checkpoint with the ids of topics.
    has_ids = stream.has_ids()
    assert not has_ids[0]
    assert any(has_ids)
    assert not has_ids[-1]


def test_a_micro_batch_that_failed_is_read_again(
    reading: Reading, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic(2)
    reading.fill(name, 20, partitions=2)
    stream = Stream(
        reading,
        tmp_path,
        subscribe=name,
        startingOffsets="earliest",
        maxOffsetsPerTrigger="10",
    )
    stream.run("kafkaio")
    last = max(stream.batches)
    first_time = dict(stream.batches)
    # Spark takes a micro-batch without a commit for one that failed.
    commits = stream.checkpoint / "commits"
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink()
    stream.run("kafkaio")
    assert stream.batches == first_time


class Lags:
    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[TopicPartition, int]]] = []
        self.started_as = "query"

    def query_lag(self, query: str, lag: Mapping[TopicPartition, int]) -> None:
        self.seen.append((query, dict(lag)))

    def started(self, kind: str, name: str, source: object) -> None:
        self.started_as = kind


def test_lag_is_reported_and_committed(
    reading: Reading, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic()
    reading.fill(name, 10)
    stream = Stream(
        reading,
        tmp_path,
        subscribe=name,
        startingOffsets="earliest",
        maxOffsetsPerTrigger="4",
        commitGroupId=f"group-of-{name}",
    )
    lags = Lags()
    listener = LagListener(lags)  # type: ignore[arg-type]
    reading.spark.streams.addListener(listener)
    try:
        query = stream.run("kafkaio")
    finally:
        reading.spark.streams.removeListener(listener)
    tp = TopicPartition(name, 0)
    assert [lag(progress) for progress in query.recentProgress[:3]] == [
        {tp: 6},
        {tp: 2},
        {tp: 0},
    ]
    assert lag(None) == {}
    assert source_metrics(query.recentProgress[1]) == {
        "minOffsetsBehindLatest": 2,
        "maxOffsetsBehindLatest": 2,
        "avgOffsetsBehindLatest": 2,
    }
    assert lags.started_as == "query"
    # Events come in a thread of Spark's, and may still be on their way.
    assert [each for _, each in lags.seen] == [{tp: 6}, {tp: 2}, {tp: 0}][
        : len(lags.seen)
    ]

    async def committed(client: Client) -> int:
        found = await client.committed(f"group-of-{name}", [tp])
        offset = found[tp]
        assert offset is not None
        return offset.offset

    # The last micro-batch is committed by the next run.
    assert reading.with_client(committed) == 8
