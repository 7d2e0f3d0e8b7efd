"""The assigned partitions: names that are looked up, leaders that change."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from itertools import pairwise
from typing import cast
from uuid import UUID

import pytest

from kafkaio._client.ports import ClusterPort
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.metadata import ClusterView, PartitionView, TopicView
from kafkaio._machines.share.session import TopicIdPartition
from kafkaio._runtime.clock import now
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.supervisor import Child
from kafkaio._share.partitions import AssignedPartitions
from kafkaio.errors import RequestTimeout
from kafkaio.types import TopicPartition

ONE, TWO, NEW = UUID(int=1), UUID(int=2), UUID(int=3)


def view(*topics: tuple[str, UUID, dict[int, int]]) -> ClusterView:
    """Make a view of topics with the leaders of their partitions."""
    return ClusterView(
        by_name={
            name: TopicView(
                name,
                topic_id,
                partitions={
                    number: PartitionView(name, number, leader=leader, leader_epoch=1)
                    for number, leader in leaders.items()
                },
            )
            for name, topic_id, leaders in topics
        }
    )


class FakeCluster:
    def __init__(self, seen: ClusterView) -> None:
        self.view = seen
        self.observer = Observer()
        self.requested: list[tuple[str, ...]] = []
        self.known: dict[UUID, str] = {}
        self.asked: list[set[UUID]] = []
        self.failures: list[Exception] = []
        self.retry_policy = self

    def request_refresh(self, *topics: str) -> None:
        self.requested.append(topics)

    async def topic_names(
        self, topic_ids: Collection[UUID], timeout: float | None = None
    ) -> dict[UUID, str]:
        assert timeout is not None
        self.asked.append(set(topic_ids))
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop()
        return {each: self.known[each] for each in topic_ids if each in self.known}

    async def sleep(self, seconds: float) -> None:
        assert seconds < 1
        await asyncio.sleep(0)


class Bench:
    def __init__(self, seen: ClusterView) -> None:
        self.cluster = FakeCluster(seen)
        self.lost: list[tuple[int, TopicPartition, str]] = []
        self.changes = 0
        self.tasks: list[asyncio.Task[None]] = []
        self.partitions = AssignedPartitions(
            cast("ClusterPort", self.cluster),
            Backoff(100, 1000),
            self,
            self.start_soon,
            self.changed,
        )

    def partition_lost(
        self, node_id: int, tp: TopicPartition, why: str, now: float
    ) -> None:
        assert now >= 0
        self.lost.append((node_id, tp, why))

    def start_soon(self, child: Child, name: str) -> None:
        self.tasks.append(asyncio.create_task(child(), name=name))

    def changed(self) -> None:
        self.changes += 1

    def assign(self, *partitions: tuple[UUID, int]) -> None:
        self.partitions.assign([TopicIdPartition(*each) for each in partitions])


async def test_partitions_are_asked_for_at_their_leaders() -> None:
    bench = Bench(view(("jobs", ONE, {0: 1, 1: 2, 2: 1})))
    bench.assign((ONE, 2), (ONE, 1), (ONE, 0))
    at = bench.partitions.at
    assert [each.partition for each in at(1, now())] == [0, 2]
    assert [each.partition for each in at(2, now())] == [1]
    assert set(bench.partitions.nodes) == {1, 2}
    assert bench.partitions.named == {TopicPartition("jobs", n) for n in range(3)}
    assert TopicIdPartition(ONE, 1) in bench.partitions
    assert bench.partitions.with_id(TopicPartition("jobs", 1)) == (ONE, 1)
    bench.assign((ONE, 1))
    assert not bench.partitions.leads(1)
    assert len(bench.partitions) == 1
    assert bench.changes == 2


async def test_one_without_a_leader_waits_for_metadata() -> None:
    bench = Bench(view(("jobs", ONE, {0: -1, 1: 2})))
    bench.assign((ONE, 0), (ONE, 1))
    assert bench.cluster.requested == [("jobs",)]
    assert set(bench.partitions.nodes) == {2}
    bench.cluster.view = view(("jobs", ONE, {0: 3, 1: 2}))
    bench.partitions.update()
    assert set(bench.partitions.nodes) == {2, 3}
    assert bench.lost == []


async def test_locks_are_lost_when_the_leader_changes() -> None:
    bench = Bench(view(("jobs", ONE, {0: 1})))
    bench.assign((ONE, 0))
    tp = TopicPartition("jobs", 0)
    # While nobody leads it, the old one may come back.
    bench.cluster.view = view(("jobs", ONE, {0: -1}))
    bench.partitions.update()
    assert bench.lost == []
    bench.cluster.view = view(("jobs", ONE, {0: 2}))
    bench.partitions.update()
    assert bench.lost == [(1, tp, "broker 2 leads the partition now")]
    # Also if it was taken away meanwhile.
    bench.assign()
    bench.cluster.view = view(("jobs", ONE, {0: 3}))
    bench.assign((ONE, 0))
    assert bench.lost[1:] == [(2, tp, "broker 3 leads the partition now")]


async def test_a_name_that_is_not_known_is_looked_up_beside_the_others() -> None:
    bench = Bench(view(("jobs", ONE, {0: 1})))
    bench.cluster.failures.append(RequestTimeout("no broker answers"))
    bench.assign((ONE, 0), (TWO, 0))
    assert set(bench.partitions.nodes) == {1}
    (task,) = bench.tasks
    await asyncio.sleep(0)
    bench.partitions.update()
    assert len(bench.tasks) == 1  # one look-up at a time
    bench.cluster.known[TWO] = "more"
    bench.cluster.view = view(("jobs", ONE, {0: 1}), ("more", UUID(int=9), {0: 2}))
    async with asyncio.timeout(5):
        await task
    assert bench.cluster.asked[0] == {TWO}
    assert TopicPartition("more", 0) in bench.partitions.named
    assert set(bench.partitions.nodes) == {1, 2}


async def test_a_look_up_ends_when_the_topic_is_not_assigned_any_more() -> None:
    bench = Bench(view())
    bench.assign((TWO, 0))
    (task,) = bench.tasks
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    bench.assign()
    async with asyncio.timeout(5):
        await task
    bench.assign((TWO, 0))
    assert len(bench.tasks) == 2
    bench.tasks[1].cancel()


async def test_a_topic_that_was_created_again_has_none_of_the_old_locks() -> None:
    bench = Bench(view(("jobs", ONE, {0: 1, 1: 1})))
    bench.assign((ONE, 0), (ONE, 1))
    bench.cluster.view = view(("jobs", NEW, {0: 1}))
    bench.assign((NEW, 0))
    assert [(node, tp.partition) for node, tp, _ in bench.lost] == [(1, 0), (1, 1)]
    assert all("created again" in why for *_, why in bench.lost)
    assert bench.partitions.with_id(TopicPartition("jobs", 0)) == (NEW, 0)
    assert bench.partitions.named == {TopicPartition("jobs", 0)}


async def test_a_partition_pauses_longer_after_each_error() -> None:
    bench = Bench(view(("jobs", ONE, {0: 1, 1: 1})))
    bench.assign((ONE, 0), (ONE, 1))
    first, other = TopicIdPartition(ONE, 0), TopicIdPartition(ONE, 1)
    partitions = bench.partitions
    waits = [partitions.pause(first) for _ in range(4)]
    assert all(a < b for a, b in pairwise(waits))
    at = now()
    assert partitions.at(1, at) == [other]
    due = partitions.next_due(1, at)
    assert due == pytest.approx(at + waits[-1], abs=0.1)
    assert partitions.next_due(2, at) is None
    assert partitions.at(1, at + 10) == [first, other]
    partitions.succeeded([first])
    assert partitions.pause(first) < waits[1]
    # Another leader may do better.
    bench.cluster.view = view(("jobs", ONE, {0: 2, 1: 1}))
    partitions.update()
    assert partitions.at(2, at) == [first]
    partitions.pause(first)
    bench.assign((ONE, 1))
    bench.assign((ONE, 0), (ONE, 1))
    assert partitions.at(2, at) == [first]
