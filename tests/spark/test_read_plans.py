"""Random reads of logs with gaps give row for row what Spark's own connector gives."""

from __future__ import annotations

import json
import random

import pytest

from kafkaio import TopicPartition
from kafkaio.testing.kafka import Kafka
from tests.spark.reading import COMPACTED, Reading
from tests.spark.sessions import Sessions, Settings

#: Topics of the plans, with their numbers of partitions.
TOPICS = {"plans-plain": 3, "plans-transactions": 2, "plans-compacted": 1}


@pytest.fixture(scope="module")
def reading(
    sessions: Sessions, real_kafka: Kafka, tmp_path_factory: pytest.TempPathFactory
) -> Reading:
    directory = tmp_path_factory.mktemp("plans")
    found = Reading(sessions.get(Settings(directory=directory)), real_kafka)
    for name, partitions in TOPICS.items():
        config = COMPACTED if name == "plans-compacted" else None
        real_kafka.create_topic_blocking(name, partitions, None, config)
    found.fill("plans-plain", 300, partitions=3)
    found.delete_records("plans-plain", {1: 17})
    found.fill_with_transactions("plans-transactions", 20, 2)
    found.fill_and_compact("plans-compacted", 40)
    return found


#: Plans of the night, beside those of every change.
NIGHTLY = range(4, 10)


@pytest.mark.parametrize(
    "seed",
    [*range(4), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in NIGHTLY)],
)
def test_a_random_plan(reading: Reading, seed: int) -> None:
    draw = random.Random(seed)
    partitions = [
        TopicPartition(name, number)
        for name, count in TOPICS.items()
        for number in range(count)
    ]
    chosen = sorted(draw.sample(partitions, draw.randint(1, len(partitions))))
    latest = reading.latest(chosen)
    start: dict[str, dict[str, int]] = {}
    end: dict[str, dict[str, int]] = {}
    assigned: dict[str, list[int]] = {}
    for tp in chosen:
        first = 17 if tp == ("plans-plain", 1) else 0
        bounds = sorted(draw.randint(first, latest[tp]) for _ in range(2))
        start.setdefault(tp.topic, {})[str(tp.partition)] = draw.choice([-2, bounds[0]])
        end.setdefault(tp.topic, {})[str(tp.partition)] = draw.choice([-1, bounds[1]])
        assigned.setdefault(tp.topic, []).append(tp.partition)
    options = {
        "assign": json.dumps(assigned),
        "startingOffsets": json.dumps(start),
        "endingOffsets": json.dumps(end),
        "includeHeaders": draw.choice(["true", "false"]),
        "kafka.isolation.level": "read_committed" if seed % 2 else "read_uncommitted",
    }
    if draw.random() < 0.5:
        options["minPartitions"] = str(draw.randint(1, 12))
    if draw.random() < 0.3:
        options["maxRecordsPerPartition"] = str(draw.randint(5, 50))
    reading.both(**options)


def test_all_that_there_is(reading: Reading) -> None:
    names = ",".join(TOPICS)
    committed = {"kafka.isolation.level": "read_committed"}
    everything = reading.both(subscribe=names)
    rows = reading.both(subscribe=names, **committed)
    aborted = {
        row[4] for row in everything if row not in rows and row[2] == TRANSACTIONS
    }
    assert aborted
    compacted = [int(str(row[4])) for row in rows if row[2] == "plans-compacted"]
    assert len(compacted) < 40
    assert max(compacted) == 39


TRANSACTIONS = "plans-transactions"
