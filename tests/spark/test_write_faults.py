"""Faults of tasks, of the driver's commit and of whole queries, with and without
``exactlyOnce``."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.spark.torture_protocol import Cluster, read
from tests.spark.torture_sink import FaultySource, numbered, stream_of

BATCHES, ROWS, PARTITIONS = 3, 200, 2


class Query:
    """A streaming query from files to a topic, that can be started again."""

    def __init__(
        self, spark: SparkSession, kafka: Kafka, topic: str, directory: Path
    ) -> None:
        self.spark = spark
        self.cluster = Cluster(kafka.bootstrap_servers)
        self.topic = topic
        self.directory = directory
        self.wanted = numbered(directory / "in", BATCHES, ROWS)
        spark.dataSource.register(FaultySource)

    def run(self, fault: str = "", tasks: int = 4, **options: str) -> None:
        """Run the query until all files are done.

        Args:
            fault: what goes wrong.
            tasks: number of tasks of a micro-batch.
            options: options of the write.

        Raises:
            StreamingQueryException: it has failed.
        """
        stream = stream_of(self.spark, self.directory / "in", tasks)
        writer = stream.writeStream.format("faulty").trigger(availableNow=True)
        query = writer.options(
            **{
                "kafka.bootstrap.servers": self.cluster.bootstrap_servers,
                "topic": self.topic,
                "test.faults": str(self.directory),
                "test.fault": fault,
                "checkpointLocation": str(self.directory / "checkpoint"),
                **options,
            }
        ).start()
        query.awaitTermination()

    async def open_transactions(self) -> list[str]:
        """The transactional ids of the query that have a transaction open."""
        async with self.cluster.admin() as admin:
            found = await admin.list_transactions(states=["Ongoing"])
        return [each.transactional_id for each in found]

    @property
    def events(self) -> list[str]:
        return (self.directory / "events").read_text().splitlines()

    def values(self, isolation: str = "read_committed") -> Counter[bytes | None]:
        found = read(self.cluster, self.topic, PARTITIONS, isolation)
        return Counter(asyncio.run(found))


@pytest.fixture
def query(
    spark: SparkSession, real_kafka: Kafka, topic: TopicFactory, tmp_path: Path
) -> Query:
    name = topic(partitions=PARTITIONS)
    return Query(spark, real_kafka, name, tmp_path)


@pytest.mark.nightly
def test_a_stream_without_faults(query: Query) -> None:
    query.run(exactlyOnce="true")
    assert query.values() == Counter(query.wanted)
    assert query.values("read_uncommitted") == Counter(query.wanted)


@pytest.mark.parametrize("fault", ["mid", "lost", "worker"])
def test_a_task_that_fails_is_run_again(query: Query, fault: str) -> None:
    query.run(fault, exactlyOnce="true")
    assert (query.directory / fault).exists()
    assert "attempt of 1-1-1" in query.events
    assert query.values() == Counter(query.wanted)
    # Without the fault there is nothing to show: rows of a transaction that was not
    # committed are in the log, except where the rows were in.
    logged = query.values("read_uncommitted").total()
    assert (logged > len(query.wanted)) == (fault != "lost")


def test_a_task_that_takes_longer_than_its_transaction_may(query: Query) -> None:
    limit: dict[str, Any] = {"kafka.transaction.timeout.ms": "2000"}
    query.run("late", exactlyOnce="true", **limit)
    [failed] = [event for event in query.events if event.startswith("failed")]
    assert "has committed nothing" in failed
    assert "it took longer than its transaction may" in failed
    assert "kafka.transaction.timeout.ms=2000" in failed
    assert "attempt of 1-1-1" in query.events
    assert query.values() == Counter(query.wanted)
    assert query.values("read_uncommitted").total() > len(query.wanted)


def test_a_commit_that_fails_is_repeated_by_the_next_start(query: Query) -> None:
    with pytest.raises(StreamingQueryException):
        query.run("commit", exactlyOnce="true")
    assert query.events.count("abort of 1") == 1
    query.run("commit", exactlyOnce="true")
    assert query.events.count("attempt of 1-1-0") == 2
    assert query.values() == Counter(query.wanted)
    assert query.values("read_uncommitted") == Counter(query.wanted)


@pytest.mark.parametrize("tasks", [2, 6])
def test_a_repeated_micro_batch_may_have_other_tasks(query: Query, tasks: int) -> None:
    with pytest.raises(StreamingQueryException):
        query.run("commit", exactlyOnce="true")
    query.run("commit", tasks, exactlyOnce="true")
    assert query.values() == Counter(query.wanted)
    assert asyncio.run(query.open_transactions()) == []


def test_a_micro_batch_that_is_in_in_part_is_completed_by_its_tasks_alone(
    query: Query,
) -> None:
    with pytest.raises(StreamingQueryException):
        query.run("workers", exactlyOnce="true")
    before = query.values()
    assert 0 < before.total() < len(query.wanted)
    with pytest.raises(StreamingQueryException, match="was run again with other rows"):
        query.run("", 3, exactlyOnce="true")
    assert query.values() == before
    query.run("", exactlyOnce="true")
    assert query.values() == Counter(query.wanted)


@pytest.mark.parametrize("fault", ["mid", "commit"])
def test_at_least_once_repeats(query: Query, fault: str) -> None:
    if fault == "commit":
        with pytest.raises(StreamingQueryException):
            query.run(fault)
    query.run(fault)
    found = query.values()
    assert set(found) == query.wanted
    assert found.total() > len(query.wanted)


def test_an_abort_ends_what_killed_tasks_have_left_open(query: Query) -> None:
    with pytest.raises(StreamingQueryException):
        query.run("workers", exactlyOnce="true")
    assert query.events.count("abort of 1") == 1
    assert "attempt of 1-1-3" in query.events
    # Readers wait for nobody, though no time-out has passed.
    assert query.values().total() >= ROWS
    assert asyncio.run(query.open_transactions()) == []
    query.run(exactlyOnce="true")
    assert query.values() == Counter(query.wanted)
