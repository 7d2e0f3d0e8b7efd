"""The protocol of a task on a real Kafka: its schedules, and what each step is for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import TypeVar

import pyarrow as pa
import pytest

from kafkaio._client import Client
from kafkaio._config import ProducerConfig
from kafkaio._producer import Producer
from kafkaio._producer.transaction import Transaction
from kafkaio.spark._exactly_once import AttemptFailed, Put, TaskAttempt, TaskName
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.spark import torture
from tests.spark.torture_protocol import (
    Cluster,
    MarkerFirst,
    OwnIds,
    Plan,
    WithoutMarker,
    batches_of,
    read,
    run,
)

AttemptT = TypeVar("AttemptT", bound=TaskAttempt)

PARTITIONS = 4
ROWS = [f"row {number}" for number in range(25)]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    # Hundreds of connections are cut on purpose.
    logger = logging.getLogger("kafkaio")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


@pytest.fixture
def cluster(real_kafka: Kafka) -> Cluster:
    return Cluster(real_kafka.bootstrap_servers)


@pytest.fixture
def out(topic: TopicFactory) -> str:
    return topic(partitions=PARTITIONS)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_row_once_under_any_schedule(
    cluster: Cluster, out: str, seed: int
) -> None:
    plan = Plan(batches=6)
    verdict = asyncio.run(run(cluster, out, seed, plan=plan))
    assert (verdict.duplicates, verdict.missing) == (0, 0)
    assert verdict.logged > verdict.wanted
    assert verdict.events["fenced"]
    assert verdict.events["skipped"]


@pytest.mark.parametrize("store", ["topic", "groups"])
def test_every_row_once_whatever_the_number_of_tasks(
    cluster: Cluster, topic: TopicFactory, store: str
) -> None:
    plan = Plan(batches=4, tasks=(1, 2, 4, 5), rows=60, restarts=0.5, store=store)
    judged = 0
    # Whether the driver has to judge depends on how fast the broker is, too.
    for seed in range(3, 9):
        out = topic(partitions=PARTITIONS)
        verdict = asyncio.run(run(cluster, out, seed, plan=plan))
        assert (verdict.duplicates, verdict.missing) == (0, 0)
        judged += verdict.events["judged"]
        if judged:
            break
    assert judged


def test_the_schedules_find_that_there_is_no_marker(cluster: Cluster, out: str) -> None:
    plan = Plan(batches=6)
    verdict = asyncio.run(run(cluster, out, 1, plan=plan, attempt=WithoutMarker))
    assert verdict.duplicates > 0


class Ordered(TaskAttempt):
    """Stops where `MarkerFirst` does, with the steps in their right order."""

    looked: asyncio.Event
    go_on: asyncio.Event

    async def start(self, producer: Producer) -> None:
        self.looked.set()
        await self.go_on.wait()
        await super().start(producer)


@pytest.mark.parametrize(("kind", "times"), [(Ordered, 1), (MarkerFirst, 2)])
def test_a_marker_that_is_read_too_early_doubles(
    cluster: Cluster, out: str, kind: type[Ordered] | type[MarkerFirst], times: int
) -> None:
    async def body() -> None:
        async with cluster.client() as one, cluster.client() as two:
            early = attempt(kind, one, out)
            early.looked, early.go_on = asyncio.Event(), asyncio.Event()
            async with asyncio.TaskGroup() as group:
                group.create_task(early.run(batches_of(ROWS), putting(out)))
                await early.looked.wait()
                other = attempt(TaskAttempt, two, out)
                await other.run(batches_of(ROWS), putting(out))
                early.go_on.set()

    asyncio.run(body())
    assert len(committed(cluster, out)) == times * len(ROWS)


@pytest.mark.parametrize(("kind", "times"), [(TaskAttempt, 1), (OwnIds, 2)])
def test_with_ids_of_their_own_attempts_do_not_fence_each_other(
    cluster: Cluster, out: str, kind: type[TaskAttempt], times: int
) -> None:
    async def body() -> None:
        reached, opened = asyncio.Event(), asyncio.Event()

        async def stopping(tx: Transaction, batch: pa.RecordBatch) -> None:
            await putting(out)(tx, batch)
            reached.set()
            await opened.wait()

        async def early(client: Client) -> None:
            try:
                await attempt(kind, client, out).run(batches_of(ROWS), stopping)
            except AttemptFailed:
                assert kind is TaskAttempt

        async with (
            cluster.client() as one,
            cluster.client() as two,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(early(one))
            await reached.wait()
            await attempt(kind, two, out).run(batches_of(ROWS), putting(out))
            opened.set()

    asyncio.run(body())
    assert len(committed(cluster, out)) == times * len(ROWS)


def attempt(kind: type[AttemptT], client: Client, topic: str) -> AttemptT:
    name = TaskName(app=topic, version=7, task=3)
    config = ProducerConfig.of(client.config.addresses, {"linger_ms": 0})
    return kind(client, name, marker_topic=topic, config=config)


def putting(topic: str) -> Put:
    async def put(tx: Transaction, batch: pa.RecordBatch) -> None:
        _ = await tx.enqueue_table(topic, batch)

    return put


def committed(cluster: Cluster, topic: str) -> list[bytes | None]:
    found = read(cluster, topic, PARTITIONS, "read_committed")
    return asyncio.run(found)


# ---- at night ------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("tasks", [["4"], ["1", "2", "4", "5"]])
def test_a_hundred_schedules(tasks: list[str]) -> None:
    assert torture.main(["--protocol", "100", "--tasks", *tasks]) == 0


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("more", [[], ["--tasks", "2", "4", "5"], ["--at-least-once"]])
def test_twenty_kills(more: list[str]) -> None:
    assert torture.main(["--kills", "20", "--seed", "1", *more]) == 0
