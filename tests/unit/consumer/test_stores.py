"""Offsets in two places, and a consumer that keeps them elsewhere than in Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kafkaio import (
    DualOffsetStore,
    KafkaOffsetStore,
    OffsetStoreError,
)
from kafkaio._client.client import Client
from kafkaio._config import ConsumerConfig
from kafkaio._consumer.commits.committer import OffsetCommitter
from kafkaio.errors import (
    ConfigurationError,
    ConnectionLost,
    PartitionLost,
    RequestTimeout,
    UsageError,
)
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from tests.fakes.broker import FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs
from tests.unit.consumer.group_fakes import FakeGroup, Member, until, virtual

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ONE = TopicPartition("one", 0)
GROUP = GroupMetadata(group_id="g")


def at(offset: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset)


class MemoryStore:
    """Offsets in a dictionary, and who committed them."""

    def __init__(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        self.offsets = {tp: at(offset) for tp, offset in (offsets or {}).items()}
        self.commits: list[dict[TopicPartition, int]] = []
        self.groups: list[GroupMetadata] = []
        self.failure: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    def __repr__(self) -> str:
        return "MemoryStore()"

    async def load(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        self.groups.append(group)
        return {tp: self.offsets[tp] for tp in partitions if tp in self.offsets}

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        self.groups.append(group)
        self.commits.append({tp: each.offset for tp, each in offsets.items()})
        self.offsets |= offsets


# ---- two at once


async def test_both_are_committed_to_and_the_first_is_right() -> None:
    old, new = MemoryStore({A: 5, B: 9}), MemoryStore({A: 3})
    dual = DualOffsetStore(new, old)
    assert await dual.load(GROUP, [A, B, ONE]) == {A: at(3), B: at(9)}
    await dual.commit(GROUP, {A: at(6)})
    assert old.offsets[A] == new.offsets[A] == at(6)
    assert repr(dual) == "DualOffsetStore(MemoryStore(), MemoryStore())"
    old.failure = OSError("gone")
    assert await dual.load(GROUP, [A]) == {A: at(6)}
    with pytest.raises(OffsetStoreError, match=r"MemoryStore\(\) did not write.*gone"):
        await dual.commit(GROUP, {A: at(7)})
    with pytest.raises(OffsetStoreError, match=r"MemoryStore\(\) did not read.*gone"):
        await dual.load(GROUP, [B])
    assert new.offsets[A] == at(7)
    new.failure = OSError("gone as well")
    with pytest.raises(OffsetStoreError, match="as well"):
        await dual.commit(GROUP, {A: at(8)})


@given(
    steps=st.lists(
        st.tuples(st.sampled_from([-1, 0, 1]), st.sampled_from([A, B]), st.booleans()),
        max_size=20,
    )
)
def test_a_migration_loses_nothing_there_and_back(
    steps: list[tuple[int, TopicPartition, bool]],
) -> None:
    async def migrate() -> None:
        old, new = MemoryStore({A: 1}), MemoryStore()
        ways = [old, DualOffsetStore(old, new), DualOffsetStore(new, old)]
        last, way = {A: 1}, 0
        for step, tp, commits in steps:
            way = min(max(way + step, 0), 2)
            if way == 1 and step == 1:
                # As the guide has it: every partition is committed before it goes on.
                await ways[way].commit(GROUP, {tp: at(n) for tp, n in last.items()})
            found = await ways[way].load(GROUP, [A, B])
            assert {tp: each.offset for tp, each in found.items()} == last
            if commits:
                last[tp] = last.get(tp, 0) + 1
                await ways[way].commit(GROUP, {tp: at(last[tp])})

    asyncio.run(migrate())


async def test_kafka_is_no_store_by_itself() -> None:
    store = KafkaOffsetStore()
    assert repr(store) == "KafkaOffsetStore()"
    with pytest.raises(UsageError):
        await store.load(GROUP, [A])
    with pytest.raises(UsageError):
        await store.commit(GROUP, {A: at(1)})


# ---- in the committer


@virtual
async def test_kafka_and_another_in_either_order() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        other = MemoryStore({B: 4})
        async with Member(
            cluster, offset_store=DualOffsetStore(KafkaOffsetStore(), other)
        ) as one:
            await until(lambda: len(one.tps) == 2)
            found = await one.committer.fetch([A, B], timeout=5)
            assert found == {A: None, B: at(4)}
            await one.committer.commit({A: at(7)}, timeout=5)
            assert group.offsets[A].offset == other.offsets[A].offset == 7
            assert other.groups[-1].generation == group.generation
        group.offsets[B] = at(8)
        async with Member(
            cluster, offset_store=DualOffsetStore(other, KafkaOffsetStore())
        ) as one:
            found = await one.committer.fetch([A, B], timeout=5)
            assert found == {A: at(7), B: at(4)}
            assert "KafkaOffsetStore()" in repr(one.committer._store)
        async with Member(cluster, offset_store=KafkaOffsetStore()) as one:
            assert await one.committer.fetch([B], timeout=5) == {B: at(8)}
        group.close()


@virtual
async def test_a_store_is_fenced_and_asked_in_order() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        store = MemoryStore()
        async with Member(cluster, offset_store=store) as one:
            await until(lambda: len(one.tps) == 2)
            store.gate.clear()
            async with asyncio.TaskGroup() as tasks:
                for offset in (1, 2, 3):
                    tasks.create_task(one.committer.commit({A: at(offset)}, timeout=50))
                await asyncio.sleep(1)
                store.gate.set()
            assert store.commits == [{A: 1}, {A: 2}, {A: 3}]
            with pytest.raises(PartitionLost):
                await one.committer.commit({ONE: at(1)}, timeout=5)
            # What is lost while a commit waits for its turn is not committed.
            store.gate.clear()
            number = one.group.assignment[A]
            first = asyncio.ensure_future(one.committer.commit({A: at(4)}, timeout=50))
            second = asyncio.ensure_future(one.committer.commit({A: at(5)}, timeout=50))
            await asyncio.sleep(0.1)
            group.forget(one.group.identity().member_id)
            await until(lambda: one.group.assignment.get(A) != number)
            store.gate.set()
            await first
            with pytest.raises(PartitionLost):
                await second
            assert store.offsets[A] == at(4)
        group.close()


@virtual
async def test_a_store_that_fails_or_hangs() -> None:
    async with FakeCluster(nodes=1) as cluster:
        store = MemoryStore()
        config = ConsumerConfig.of(
            cluster.bootstrap, {"group_id": "g", "offset_store": store}
        )
        client = Client.from_config(config, dial=cluster.dial)
        one = OffsetCommitter(client._cluster, config, lambda: GROUP)
        store.failure = ZeroDivisionError("oops")
        with pytest.raises(
            OffsetStoreError, match=r"MemoryStore.*write.*oops"
        ) as caught:
            await one.commit({A: at(1)}, timeout=5)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        with pytest.raises(OffsetStoreError, match=r"MemoryStore.*read.*oops"):
            await one.fetch([A], timeout=5)
        # What is of our own kind is not disguised.
        store.failure = ConnectionLost("for a moment")
        with pytest.raises(ConnectionLost):
            await one.commit({A: at(1)}, timeout=5)
        store.failure = None
        store.gate.clear()
        with pytest.raises(RequestTimeout):
            await one.commit({A: at(1)}, timeout=5)
        with pytest.raises(RequestTimeout):
            await one.fetch([A], timeout=5)
        with pytest.raises(UsageError, match="by name"):
            await one.fetch(None, timeout=5)
        assert store.commits == []


@pytest.mark.parametrize(
    ("store", "group_id", "text"),
    [
        (object(), "g", "methods"),
        (MemoryStore, "g", "methods"),
        (MemoryStore(), None, "group_id"),
    ],
)
def test_what_is_no_store(store: object, group_id: str | None, text: str) -> None:
    options = {"offset_store": store, "group_id": group_id}
    with pytest.raises(ConfigurationError, match=text):
        ConsumerConfig.of("broker:1", options)


# ---- in a consumer


def five(logs: FakeLogs) -> None:
    logs.append("one", 0, *[b"%d" % n for n in range(5)])


async def test_a_consumer_goes_on_where_its_store_says_and_commits_what_is_finished(
    logs: FakeLogs, make: MakeConsumer
) -> None:
    five(logs)
    store = MemoryStore({ONE: 1})
    options = {"assign": [ONE], "group_id": "g", "offset_store": store}
    async with make(**options, auto_commit_interval_ms=1000) as consumer:
        offsets = [(await anext(consumer)).offset for _ in range(3)]
        assert offsets == [1, 2, 3]
        await asyncio.sleep(1.5)
        assert store.commits == [{ONE: 3}]
        assert await consumer.committed() == {ONE: store.offsets[ONE]}
    assert store.offsets[ONE].offset == 3
    assert logs.commits == []


@pytest.mark.parametrize("when", ["loading", "committing"])
async def test_a_store_that_fails_reaches_who_reads(
    logs: FakeLogs, make: MakeConsumer, when: str
) -> None:
    five(logs)
    store = MemoryStore({ONE: 1})
    options = {"assign": [ONE], "group_id": "g", "offset_store": store}
    consumer = make(**options, auto_commit_interval_ms=1000)

    async def read() -> None:
        async with consumer:
            await anext(consumer)
            await anext(consumer)
            store.failure = OSError("disk full")
            await asyncio.sleep(1.5)
            await anext(consumer)

    if when == "loading":
        store.failure = OSError("disk full")
    with pytest.raises(OffsetStoreError, match="disk full"):
        await read()
