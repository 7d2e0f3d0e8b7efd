"""What Spark's own connector reads, kafkaio reads, whatever the log looks like.

Number of rows, ends, and checksums of keys, values, headers, offsets and timestamps are
compared by partition, at both isolation levels.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kafkaio import TopicPartition
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.spark.logs import LOGS, hold_open
from tests.spark.reading import COMPACTED, FAILURES, SOURCES, Reading
from tests.spark.sessions import Sessions, Settings, end_queries
from tests.spark.streaming import Stream, read_by_both

LEVELS = ("read_uncommitted", "read_committed")
#: These are filled by `Reading`.
FILLED = ("equal-compacted", "equal-deleted", "equal-open")
#: A task for each of 200 partitions takes a minute.
NARROW = [name for name in (*LOGS, *FILLED) if name != "equal-wide"]


@pytest.fixture
def reading(
    sessions: Sessions, real_kafka: Kafka, spark_directory: Path
) -> Iterator[Reading]:
    session = sessions.get(Settings(directory=spark_directory))
    yield Reading(session, real_kafka)
    end_queries(session)


@pytest.fixture(scope="module")
def logs(
    sessions: Sessions, real_kafka: Kafka, spark_directory: Path
) -> Iterator[Reading]:
    """Topics of all shapes; a transaction of one stays open."""
    session = sessions.get(Settings(directory=spark_directory))
    reading = Reading(session, real_kafka)
    servers = real_kafka.bootstrap_servers
    for name, log in LOGS.items():
        real_kafka.create_topic_blocking(name, log.partitions, None, log.config)
    for name in FILLED:
        config = COMPACTED if name == "equal-compacted" else None
        partitions = 1 if name == "equal-compacted" else 2
        real_kafka.create_topic_blocking(name, partitions, None, config)

    async def fill() -> None:
        async with asyncio.TaskGroup() as tasks:
            for name, log in LOGS.items():
                tasks.create_task(log.write(servers, name))

    with asyncio.Runner() as runner:
        runner.run(fill())
        reading.fill_and_compact("equal-compacted", 40)
        reading.fill("equal-deleted", 40, partitions=2)
        reading.delete_records("equal-deleted", {0: 7, 1: 20})
        holding = runner.run(hold_open(servers, "equal-open"))
        yield reading
        runner.run(holding.close())


@pytest.mark.parametrize(
    "level", [LEVELS[0], pytest.param(LEVELS[1], marks=pytest.mark.nightly)]
)
def test_all_logs_at_once(logs: Reading, level: str) -> None:
    options = {"subscribe": ",".join(NARROW), "kafka.isolation.level": level}
    theirs, ours = (logs.digests(source, options) for source in SOURCES)
    assert ours == theirs
    # What is open ends what is committed: of partition 0, nothing after it began.
    rows = [row[2] for row in ours if row[0] == "equal-open"]
    assert rows == ([15, 25] if level == "read_committed" else [35, 25])


@pytest.mark.nightly
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", [*LOGS, *FILLED])
def test_a_whole_log(logs: Reading, name: str, level: str) -> None:
    options = {"subscribe": name, "kafka.isolation.level": level}
    theirs, ours = (logs.digests(source, options) for source in SOURCES)
    assert ours == theirs
    assert ours or (name, level) == ("equal-only-aborted", "read_committed")


@pytest.mark.parametrize("level", LEVELS)
def test_200_partitions_in_few_tasks(logs: Reading, level: str) -> None:
    options = {"subscribe": "equal-wide", "kafka.isolation.level": level}
    ours = logs.digests("kafkaio", options | {"minRecordsPerTask": "300"})
    # Each record went to the partition of its number.
    numbers = [n for n in range(1_000) if n % 200 % 7]
    assert [(row[1], row[2]) for row in ours] == [
        (number, 5) for number in sorted({n % 200 for n in numbers})
    ]


def random_bounds(draw: random.Random, logs: Reading) -> dict[str, str]:
    """Options that read some partitions, of any topics, between any offsets."""
    partitions = [
        TopicPartition(name, number)
        for name, log in LOGS.items()
        for number in range(log.partitions)
    ]
    chosen = sorted(draw.sample(partitions, draw.randint(1, 40)))
    latest = logs.latest(chosen)
    start: dict[str, dict[str, int]] = {}
    end: dict[str, dict[str, int]] = {}
    assigned: dict[str, list[int]] = {}
    for tp in chosen:
        first, last = sorted(draw.randint(0, latest[tp]) for _ in range(2))
        start.setdefault(tp.topic, {})[str(tp.partition)] = first
        end.setdefault(tp.topic, {})[str(tp.partition)] = last
        assigned.setdefault(tp.topic, []).append(tp.partition)
    return {
        "assign": json.dumps(assigned),
        "startingOffsets": json.dumps(start),
        "endingOffsets": json.dumps(end),
        "kafka.isolation.level": draw.choice(LEVELS),
    }


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=[pytest.mark.nightly] * (seed != 2))
        for seed in range(20)
    ],
)
def test_random_parts_of_all_logs(logs: Reading, seed: int) -> None:
    draw = random.Random(seed)
    options = random_bounds(draw, logs)
    ours = dict(options)
    if draw.random() < 0.5:
        options["minPartitions"] = ours["minPartitions"] = str(draw.randint(1, 60))
    # Only kafkaio puts small ranges into one task, and bounds its fetches.
    if draw.random() < 0.7:
        ours["minRecordsPerTask"] = str(draw.choice([1, 100, 1_000_000]))
    if draw.random() < 0.3:
        ours["fetchBytes"] = str(draw.choice([1_000, 100_000]))
    assert logs.digests("kafkaio", ours) == logs.digests("kafka", options)


@pytest.mark.parametrize(
    "level", [pytest.param(LEVELS[0], marks=pytest.mark.nightly), LEVELS[1]]
)
def test_a_stream_of_transactions(logs: Reading, tmp_path: Path, level: str) -> None:
    stream = read_by_both(
        logs,
        tmp_path,
        subscribe="equal-only-aborted,equal-open",
        startingOffsets="earliest",
        maxOffsetsPerTrigger="30",
        includeHeaders="true",
        **{"kafka.isolation.level": level},
    )
    assert len(stream.batches) > 2


@pytest.mark.nightly
def test_partitions_that_a_running_stream_gets(
    reading: Reading, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic(2)
    reading.fill(name, 10, partitions=2)
    streams = {
        source: Stream(
            reading, tmp_path / source, subscribe=name, startingOffsets="earliest"
        )
        for source in SOURCES
    }
    queries = [
        stream.start(source, is_available_now=False)
        for source, stream in streams.items()
    ]
    for partitions, first, more in ((2, 10, 0), (5, 20, 5), (5, 40, 0), (7, 60, 7)):
        for query in queries:
            query.processAllAvailable()
        if more:
            reading.add_partitions(name, more)
        reading.fill(name, 14, partitions=partitions, first=first)
    for query in queries:
        query.processAllAvailable()
        query.stop()
    assert streams["kafkaio"].rows() == streams["kafka"].rows()
    assert len(streams["kafkaio"].rows()) == 66
    assert {row[3] for row in streams["kafkaio"].rows()} == set(range(7))


@pytest.mark.nightly
@pytest.mark.parametrize("is_running", [False, True])
def test_a_topic_that_is_gone(
    reading: Reading, topic: TopicFactory, tmp_path: Path, is_running: bool
) -> None:
    name, other = topic(2), topic(1)
    reading.fill(name, 10, partitions=2)
    reading.fill(other, 10)
    streams = {
        source: Stream(
            reading,
            tmp_path / source,
            subscribePattern=f"^({name}|{other})$",
            startingOffsets="earliest",
            includeHeaders="true",
        )
        for source in SOURCES
    }
    queries = {
        source: stream.start(source, is_available_now=not is_running)
        for source, stream in streams.items()
    }
    for query in queries.values():
        query.processAllAvailable()
    reading.kafka.delete_topics_blocking([name])
    reading.fill(other, 5, first=10)
    for source, stream in streams.items():
        query = queries[source]
        again = query.processAllAvailable if is_running else partial(stream.run, source)
        with pytest.raises(FAILURES) as caught:
            again()
        if source == "kafkaio":
            assert f"partition {name}-0 is gone" in str(caught.value)
    for source, stream in streams.items():
        stream.run(source, failOnDataLoss="false")
    assert streams["kafkaio"].batches == streams["kafka"].batches
    assert streams["kafkaio"].offsets() == streams["kafka"].offsets()
    assert len(streams["kafkaio"].rows()) == 25


@pytest.mark.nightly
def test_a_topic_that_is_made_again_under_a_running_stream(
    reading: Reading, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic(1)
    reading.fill(name, 10)
    streams = {
        source: Stream(
            reading, tmp_path / source, subscribe=name, startingOffsets="earliest"
        )
        for source in SOURCES
    }
    queries = {
        source: stream.start(source, is_available_now=False)
        for source, stream in streams.items()
    }
    for query in queries.values():
        query.processAllAvailable()
    reading.kafka.delete_topics_blocking([name])
    reading.kafka.create_topic_blocking(name, 1, None, None)
    reading.fill(name, 4, first=100)
    for query in queries.values():
        with pytest.raises(FAILURES):
            query.processAllAvailable()
    for first in (200, 300):
        for source, stream in streams.items():
            stream.run(source, failOnDataLoss="false")
        reading.fill(name, 3, first=first)
    theirs, ours = streams["kafka"], streams["kafkaio"]
    assert ours.offsets()[-1] == theirs.offsets()[-1]
    # The connector skips what the new topic has up to the old offset.
    assert not set(theirs.rows()) - set(ours.rows())
    assert len(set(ours.rows())) == len(ours.rows())


@pytest.mark.nightly
def test_a_checkpoint_goes_there_and_back_over_transactions(
    reading: Reading, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic(2)
    stream = Stream(
        reading,
        tmp_path,
        subscribe=name,
        startingOffsets="earliest",
        maxOffsetsPerTrigger="25",
        **{"kafka.isolation.level": "read_committed"},
    )
    for source in ("kafka", "kafkaio", "kafka", "kafkaio"):
        reading.fill_with_transactions(name, 20, 2)
        stream.run(source)
    options = {"subscribe": name, "kafka.isolation.level": "read_committed"}
    assert stream.rows() == reading.rows("kafka", options)
    assert len(stream.rows()) == 4 * 13 * 3
