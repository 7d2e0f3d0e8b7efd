"""Commits that fail for long: what goes on, what is told, and by when (ADR 33).

On the embedded broker, in virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

import kafkaio
from kafkaio._client.client import Client
from kafkaio._config import ClientConfig
from kafkaio._consumer import Consumer
from kafkaio._runtime.clock import now
from kafkaio.errors import (
    ClosedError,
    KafkaTimeout,
    PartitionLost,
    RequestTimeout,
    TransactionAborted,
    UnknownTopicOrPartition,
)
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.testing import Broker, delay, drop, error, throttle
from kafkaio.types import TopicPartition
from tests.unit.consumer.group_fakes import until

GONE, KEPT = TopicPartition("gone", 0), TopicPartition("kept", 0)
#: The three ways to hand partitions over.
PROTOCOLS: dict[str, dict[str, Any]] = {
    "KIP-848": {"group_protocol": "consumer"},
    "cooperative": {"group_protocol": "classic", "heartbeat_interval_ms": 500},
    "range": {
        "group_protocol": "classic",
        "heartbeat_interval_ms": 500,
        "partition_assignment_strategy": "range",
    },
}
EVERY = pytest.mark.parametrize("protocol", PROTOCOLS)
LASTING = [
    E.NOT_COORDINATOR,
    E.COORDINATOR_NOT_AVAILABLE,
    E.COORDINATOR_LOAD_IN_PROGRESS,
    E.REQUEST_TIMED_OUT,
    E.UNKNOWN_TOPIC_OR_PARTITION,
    E.UNKNOWN_TOPIC_ID,
]
FAULTS = {
    **{code.name: error(code) for code in LASTING},
    "silent": drop(),
    "slow": delay(100),
    "throttled": throttle(100),
}
LASTS = pytest.mark.parametrize("name", FAULTS)


class Told:
    """What an observer was told."""

    def __init__(self) -> None:
        self.failed: list[BaseException] = []
        self.lost: set[TopicPartition] = set()

    def commit_failed(self, group: str, error: BaseException) -> None:
        assert group == "g"
        self.failed.append(error)

    def rebalance(
        self, state: str, assigned: object, revoked: object, lost: Any
    ) -> None:
        self.lost |= set(lost)


class World:
    """A broker, with a client for each who asks."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.told = Told()
        self._clients: list[Client] = []
        self._members: list[Consumer] = []

    async def client(self, observer: object = None) -> Client:
        options = {"metadata_max_age_ms": 2000, "allow_auto_create_topics": False}
        config = ClientConfig.of(self.broker.bootstrap_servers, options)
        client = Client.from_config(config, observer=observer, dial=self.broker.dial)
        await client.start()
        self._clients.append(client)
        return client

    async def member(self, protocol: str, **options: Any) -> Consumer:
        """Start a member of the group that reads both topics."""
        named = {
            "topics": ["gone", "kept"],
            "group_id": "g",
            "auto_offset_reset": "earliest",
            "auto_commit_interval_ms": 600_000,
            "session_timeout_ms": 45_000 if protocol != "KIP-848" else None,
        }
        named |= PROTOCOLS[protocol] | options
        named = {name: value for name, value in named.items() if value is not None}
        consumer = Consumer(await self.client(self.told), **named)
        self._members.append(consumer)
        await consumer.start()
        return consumer

    async def write(self, *partitions: TopicPartition) -> None:
        async with kafkaio.Producer(await self.client()) as producer:
            for topic, partition in partitions:
                await producer.send(topic, b"x", partition=partition)

    async def delete(self, *topics: str) -> None:
        async with kafkaio.Admin(await self.client()) as admin:
            await admin.delete_topics(topics)

    def committed(self, tp: TopicPartition) -> int | None:
        return self.broker.control.committed("g", tp)

    async def close(self) -> None:
        for consumer in self._members:
            await consumer.close(timeout=0)
        for client in self._clients:
            await client.close()


@asynccontextmanager
async def world(version: str | None = None, **topics: int) -> AsyncIterator[World]:
    options: dict[str, Any] = {} if version is None else {"as_version": version}
    options["topics"] = topics or {"gone": 1, "kept": 1}
    async with Broker(nodes=3, memory_transport=True, **options) as broker:
        world = World(broker)
        try:
            yield world
        finally:
            await world.close()


async def read(consumer: Consumer, count: int) -> None:
    """Read so many records, and finish them by a further poll."""
    seen = 0
    while seen < count:
        seen += len((await consumer.poll(timeout=1)).records)
    await consumer.poll(timeout=0)


async def polled_until(consumer: Consumer, condition: Callable[[], bool]) -> float:
    """Poll until something holds; returns the seconds that it took."""
    begun = now()
    async with asyncio.timeout(600):
        while not condition():
            await consumer.poll(timeout=0.1)
    return now() - begun


async def both_have_two(first: Consumer, second: Consumer) -> None:
    """Poll both until each has half of the partitions."""
    async with asyncio.timeout(30):
        while len(first.assignment) != 2 or len(second.assignment) != 2:
            await first.poll(timeout=0.1)
            await second.poll(timeout=0.1)


async def taken(call: Awaitable[object]) -> float:
    begun = now()
    await call
    return now() - begun


# ---- before a release ----------------------------------------------------------------


@EVERY
@LASTS
async def test_a_release_does_not_wait_for_commits_without_end(
    protocol: str, name: str
) -> None:
    async with world(gone=2, kept=2) as there:
        first = await there.member(protocol)
        await there.write(GONE, KEPT)
        await read(first, 2)
        there.broker.faults.on("OffsetCommit", FAULTS[name])
        if name == "throttled":  # from the answer on
            await first.commit({GONE: 0})
        joining = asyncio.ensure_future(there.member(protocol))
        took = await polled_until(first, joining.done)
        assert took < 25
        second = await joining
        await both_have_two(first, second)
        assert there.told.failed
        assert not there.told.lost


@EVERY
async def test_a_release_has_a_part_of_the_groups_deadline(protocol: str) -> None:
    async with world(gone=2, kept=2) as there:
        first = await there.member(protocol, max_poll_interval_ms=6000)
        await there.write(GONE, KEPT)
        await read(first, 2)
        there.broker.faults.on("OffsetCommit", error(E.NOT_COORDINATOR))
        joining = asyncio.ensure_future(there.member(protocol))
        await polled_until(first, joining.done)
        second = await joining
        await both_have_two(first, second)
        assert isinstance(there.told.failed[0], RequestTimeout)
        assert not there.told.lost


@EVERY
async def test_a_deleted_topic_is_released_and_the_other_committed(
    protocol: str,
) -> None:
    async with world() as there:
        consumer = await there.member(protocol)
        await there.write(GONE, KEPT)
        await read(consumer, 2)
        await there.delete("gone")
        took = await polled_until(consumer, lambda: consumer.assignment == {KEPT})
        assert took < 8
        assert there.committed(KEPT) == (1 if protocol == "range" else None)
        [failed] = there.told.failed
        assert isinstance(failed, UnknownTopicOrPartition)
        assert "gone-0" in str(failed)
        assert "kept-0" not in str(failed)
        await there.write(KEPT)
        await read(consumer, 1)
        assert await taken(consumer.close()) < 1
        assert there.committed(KEPT) == 2
        assert not there.told.lost


# ---- automatic, and at the end -------------------------------------------------------


@EVERY
@LASTS
async def test_closing_commits_for_a_part_of_its_time(protocol: str, name: str) -> None:
    async with world() as there:
        consumer = await there.member(protocol)
        await there.write(GONE, KEPT)
        await read(consumer, 2)
        there.broker.faults.on("OffsetCommit", FAULTS[name])
        if name == "throttled":  # from the answer on
            await consumer.commit({KEPT: 0})
        # The request to leave waits for the throttle, too, as long as closing may take.
        assert await taken(consumer.close()) < (31 if name == "throttled" else 25)
        assert not there.told.lost
        if name != "throttled":
            assert not there.broker.control.members("g")  # it has left
        assert "gone-0" in str(there.told.failed[0])


@EVERY
async def test_closing_is_as_quick_as_without_the_deleted_topic(protocol: str) -> None:
    async with world() as there:
        consumer = await there.member(protocol)
        await there.write(GONE, KEPT)
        await read(consumer, 2)
        await there.delete("gone")
        assert await taken(consumer.close(timeout=4)) < 1.5
        assert there.committed(KEPT) == 1
        assert not there.told.lost
        assert not there.broker.control.members("g")


async def test_an_automatic_commit_commits_what_it_can_again_and_again() -> None:
    async with world() as there:
        rule = there.broker.faults.on(
            "OffsetCommit",
            error(E.UNKNOWN_TOPIC_OR_PARTITION),
            partition=("gone", 0),
        )
        consumer = await there.member("KIP-848", auto_commit_interval_ms=5000)
        await there.write(GONE, KEPT)
        await read(consumer, 2)
        await asyncio.sleep(7)
        assert there.committed(KEPT) == 1
        # The metadata has the topic: a second of doubt, and then the next interval.
        assert 0 < rule.count < 8
        ledger = consumer._core.reader.ledger  # type: ignore[union-attr]
        assert ledger.is_due(GONE)
        assert not ledger.is_due(KEPT)
        there.broker.faults.remove(rule)
        await asyncio.sleep(6)
        assert there.committed(GONE) == 1
        assert all("gone-0" in str(error) for error in there.told.failed)


async def test_what_run_finished_is_committed_but_for_the_deleted_topic() -> None:
    async def handler(record: Any) -> None:
        if record.topic == "kept" and record.offset == 1:
            raise RuntimeError("enough")

    async with world() as there:
        consumer = await there.member(
            "KIP-848", enable_auto_commit=False, auto_commit_interval_ms=1000
        )
        there.broker.faults.on(
            "OffsetCommit",
            error(E.UNKNOWN_TOPIC_OR_PARTITION),
            partition=("gone", 0),
        )
        await there.write(GONE, KEPT)
        running = asyncio.ensure_future(consumer.run(handler))
        await asyncio.sleep(5)
        assert there.committed(KEPT) == 1
        await there.write(KEPT)
        with pytest.raises(RuntimeError):
            await running
        await asyncio.sleep(5)
        assert set(consumer._core._autocommit._left_over) == {GONE}  # type: ignore[union-attr]


async def test_what_run_finished_last_outlives_the_commit_before_it() -> None:
    async def handler(record: Any) -> None:
        if record.offset == 2:
            raise RuntimeError("enough")

    async with world() as there:
        consumer = await there.member(
            "KIP-848", enable_auto_commit=False, auto_commit_interval_ms=1000
        )
        faults = there.broker.faults
        slow = faults.on("OffsetCommit", delay(0.5, times=1))
        await there.write(KEPT)
        running = asyncio.ensure_future(consumer.run(handler))
        await until(lambda: slow.count)
        refused = faults.on("OffsetCommit", error(E.COORDINATOR_NOT_AVAILABLE))
        await there.write(KEPT, KEPT)
        with pytest.raises(RuntimeError):
            await running
        # The commit of the first record is answered, and that of the second refused.
        await asyncio.sleep(5)
        assert there.committed(KEPT) == 1
        assert refused.count
        faults.remove(refused)
        await asyncio.sleep(3)
        assert there.committed(KEPT) == 2


# ---- what the user asks for ----------------------------------------------------------


async def test_a_commit_of_a_deleted_topic_says_so_at_once() -> None:
    async with world() as there:
        consumer = await there.member("range", enable_auto_commit=False)
        await there.write(GONE, KEPT)
        await read(consumer, 2)
        await there.delete("gone")
        begun = now()
        with pytest.raises(UnknownTopicOrPartition, match="gone-0") as caught:
            await consumer.commit({GONE: 1, KEPT: 1})
        assert now() - begun < 1
        assert "kept" not in str(caught.value)
        assert there.committed(KEPT) == 1


async def test_a_topic_that_only_the_coordinator_does_not_know_has_a_moment() -> None:
    async with world() as there:
        consumer = await there.member("KIP-848", enable_auto_commit=False)
        unknown = error(E.UNKNOWN_TOPIC_OR_PARTITION, times=3)
        there.broker.faults.on("OffsetCommit", unknown)
        await consumer.commit({GONE: 1})
        there.broker.faults.on("OffsetCommit", error(E.UNKNOWN_TOPIC_OR_PARTITION))
        begun = now()
        with pytest.raises(UnknownTopicOrPartition):
            await consumer.commit({GONE: 2})
        assert 2 < now() - begun < 5


async def test_of_two_unknown_topics_each_has_its_own_end() -> None:
    async with world() as there:
        consumer = await there.member("KIP-848", enable_auto_commit=False)
        there.broker.faults.on(
            "OffsetCommit",
            error(E.UNKNOWN_TOPIC_OR_PARTITION, times=4),
            partition=("kept", 0),
        )
        await there.delete("gone")
        with pytest.raises(UnknownTopicOrPartition, match="gone-0 "):
            await consumer.commit({GONE: 1, KEPT: 1})
        assert there.committed(KEPT) == 1


async def test_a_commit_creates_no_topic() -> None:
    async with world() as there:
        options = {"allow_auto_create_topics": True, "metadata_max_age_ms": 1000}
        config = ClientConfig.of(there.broker.bootstrap_servers, options)
        async with Client.from_config(config, dial=there.broker.dial) as client:
            consumer = Consumer(client, assign=[KEPT], group_id="g")
            async with consumer:
                with pytest.raises(UnknownTopicOrPartition, match="typo-0"):
                    await consumer.commit({TopicPartition("typo", 0): 1})
                assert "typo" not in await consumer.topics()


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (error(E.NOT_COORDINATOR), "NOT_COORDINATOR"),
        (error(E.COORDINATOR_LOAD_IN_PROGRESS), "COORDINATOR_LOAD_IN_PROGRESS"),
        (drop(), "broker"),
        (delay(100), "broker"),
    ],
    ids=["moved", "loads", "silent", "slow"],
)
async def test_a_commit_ends_in_its_time_and_says_why(fault: Any, why: str) -> None:
    async with world() as there:
        consumer = await there.member("KIP-848", enable_auto_commit=False)
        there.broker.faults.on("OffsetCommit", fault)
        begun = now()
        with pytest.raises(RequestTimeout, match=why) as caught:
            await consumer.commit({GONE: 1, KEPT: 2}, timeout=3)
        assert now() - begun < 3.5
        assert "gone-0, kept-0" in str(caught.value)


#: Everything of a consumer that waits for a broker, with the request that it sends.
CALLS: dict[str, tuple[str, Callable[[Consumer], Awaitable[object]]]] = {
    "commit": ("OffsetCommit", lambda c: c.commit({KEPT: 1}, timeout=3)),
    "committed": ("OffsetFetch", lambda c: c.committed([KEPT], timeout=3)),
    "lag": ("ListOffsets", lambda c: c.lag(KEPT, timeout=3)),
    "beginning": ("ListOffsets", lambda c: c.beginning_offsets([KEPT], timeout=3)),
    "end": ("ListOffsets", lambda c: c.end_offsets([KEPT], timeout=3)),
    "times": ("ListOffsets", lambda c: c.offsets_for_times({KEPT: 0}, timeout=3)),
    "topics": ("Metadata", lambda c: c.topics(timeout=3)),
    "partitions": ("Metadata", lambda c: c.partitions_for_topic("kept", timeout=3)),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", ["throttled", "silent"])
async def test_every_call_ends_in_its_time(name: str, kind: str) -> None:
    api, call = CALLS[name]
    async with world() as there:
        consumer = await there.member("KIP-848", enable_auto_commit=False)
        await there.write(KEPT)
        await read(consumer, 1)
        if kind == "throttled":
            there.broker.faults.on(api, throttle(40))
            for _ in range(4):  # nodes
                try:
                    await call(consumer)
                except KafkaTimeout:
                    break
        else:
            there.broker.faults.on(api, drop())
        begun = now()
        with pytest.raises(KafkaTimeout):
            await call(consumer)
        assert now() - begun < 3.5


@pytest.mark.parametrize("name", ["commit", "committed"])
@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (error(E.COORDINATOR_NOT_AVAILABLE), "COORDINATOR_NOT_AVAILABLE"),
        (drop(), "coordinator"),
        (throttle(40), "throttle"),
    ],
    ids=["none", "silent", "throttled"],
)
async def test_no_coordinator_can_be_found(name: str, fault: Any, why: str) -> None:
    _, call = CALLS[name]
    async with world() as there:
        consumer = await there.member("KIP-848", enable_auto_commit=False)
        there.broker.faults.on("FindCoordinator", fault)
        failures = list[str]()
        for _ in range(3):  # what a node throttles takes no further request
            consumer._core.cluster._finder.cache.clear()  # type: ignore[union-attr]
            begun = now()
            try:
                await call(consumer)
            except RequestTimeout as late:
                failures.append(str(late))
            assert now() - begun < 3.5
        assert all(why in failure for failure in failures)
        assert failures or why == "throttle"


async def test_a_throttle_is_named_in_the_error() -> None:
    async with world() as there:
        consumer = await there.member("KIP-848", enable_auto_commit=False)
        there.broker.faults.on("OffsetCommit", throttle(40, times=1))
        await consumer.commit({KEPT: 1}, timeout=3)
        for what in ("commit", "committed"):
            begun = now()
            with pytest.raises(RequestTimeout, match=r"broker \d.* throttles this"):
                await CALLS[what][1](consumer)
            assert now() - begun < 3.5
        await asyncio.sleep(40)
        await consumer.commit({KEPT: 2}, timeout=3)
        # What was given up while it waited was never sent.
        assert there.committed(KEPT) == 2


# ---- commits on their way ------------------------------------------------------------


class Store:
    """Keeps offsets in memory, and takes its time."""

    def __init__(self) -> None:
        self.kept: dict[TopicPartition, Any] = {}

    async def commit(self, group: Any, offsets: Any) -> None:
        await asyncio.sleep(0.3)
        self.kept |= offsets

    async def load(self, group: Any, partitions: Any) -> dict[TopicPartition, Any]:
        return {tp: self.kept[tp] for tp in partitions if tp in self.kept}


@EVERY
@pytest.mark.parametrize("where", ["kafka", "store"])
async def test_a_commit_begun_before_the_poll_that_releases_counts(
    protocol: str, where: str
) -> None:
    store = Store()
    options: dict[str, Any] = {"enable_auto_commit": False}
    if where == "store":
        options["offset_store"] = store
    async with world(gone=2, kept=2) as there:
        first = await there.member(protocol, **options)
        await there.write(GONE, KEPT)
        await read(first, 2)
        joining = asyncio.ensure_future(there.member(protocol, **options))
        while not (poll := await first.poll(timeout=0.1)).to_be_revoked:
            pass
        going = poll.to_be_revoked
        there.broker.faults.on("OffsetCommit", delay(0.3))
        commit = asyncio.ensure_future(first.commit(dict.fromkeys(going, 1)))
        polling = asyncio.ensure_future(polled_until(first, joining.done))
        await commit
        await polling
        await joining
        assert not there.told.lost
        for tp in going:
            kept = there.committed(tp) if where == "kafka" else store.kept[tp].offset
            assert kept == 1


@EVERY
async def test_a_commit_that_hangs_holds_a_release_for_a_while(protocol: str) -> None:
    async with world(gone=2, kept=2) as there:
        first = await there.member(protocol, enable_auto_commit=False)
        await there.write(GONE, KEPT)
        await read(first, 2)
        joining = asyncio.ensure_future(there.member(protocol))
        while not (poll := await first.poll(timeout=0.1)).to_be_revoked:
            pass
        there.broker.faults.on("OffsetCommit", error(E.NOT_COORDINATOR))
        commit = asyncio.ensure_future(
            first.commit(dict.fromkeys(poll.to_be_revoked, 1))
        )
        await asyncio.sleep(0)
        assert await polled_until(first, commit.done) < 25
        with pytest.raises(PartitionLost):
            await commit
        await both_have_two(first, await joining)
        assert not there.told.lost


async def test_a_lanes_commit_counts_also_when_the_lane_has_ended() -> None:
    async with world(gone=2, kept=2) as there:
        first = await there.member("KIP-848", enable_auto_commit=False)
        await there.write(*(TopicPartition("kept", n) for n in range(2)))
        await there.write(*(TopicPartition("gone", n) for n in range(2)))
        there.broker.faults.on("OffsetCommit", delay(0.3))
        commits: dict[TopicPartition, asyncio.Future[None]] = {}

        async def work(lane: Any) -> None:
            async with lane:
                async for record in lane:
                    del record
                commit = asyncio.ensure_future(lane.commit())
                commits[lane.topic_partition] = commit
                await asyncio.sleep(0)
            await commit

        async def divide() -> None:
            async with asyncio.TaskGroup() as tasks:
                async for lane in first.partitions():
                    tasks.create_task(work(lane))

        dividing = asyncio.ensure_future(divide())
        await asyncio.sleep(1)
        second = await there.member("KIP-848")
        await until(lambda: len(second.assignment) == 2)
        for tp in second.assignment:
            await commits[tp]
            assert there.committed(tp) == 1
        await first.close()
        await dividing


@EVERY
async def test_an_iterators_commit_counts_though_nothing_else_holds_the_partition(
    protocol: str,
) -> None:
    async with world(gone=2, kept=2) as there:
        first = await there.member(protocol, enable_auto_commit=False)
        await there.write(
            *(TopicPartition(topic, n) for topic in ("gone", "kept") for n in (0, 1))
        )
        there.broker.faults.on("OffsetCommit", delay(0.4))
        commits: dict[TopicPartition, asyncio.Future[None]] = {}

        async def iterate() -> None:
            async for record in first:
                tp = record.topic_partition
                commits[tp] = asyncio.ensure_future(first.commit(record))

        iterating = asyncio.ensure_future(iterate())
        joining = asyncio.ensure_future(there.member(protocol))
        second = await joining
        await until(lambda: len(first.assignment) == len(second.assignment) == 2)
        await asyncio.gather(*commits.values())
        assert len(commits) == 4
        assert all(there.committed(tp) == 1 for tp in commits)
        assert not there.told.lost
        await first.close()
        with suppress(ClosedError):
            await iterating


async def test_a_commit_at_the_end_of_a_hold_counts() -> None:
    async with world(gone=2, kept=2) as there:
        first = await there.member("KIP-848", enable_auto_commit=False)
        await there.write(GONE, KEPT)
        await read(first, 2)
        there.broker.faults.on("OffsetCommit", delay(0.4))

        async def held() -> tuple[frozenset[TopicPartition], asyncio.Future[None]]:
            async with first.wait_for_revoke() as request:
                offsets = dict.fromkeys(request.partitions, 1)
                commit = asyncio.ensure_future(first.commit(offsets))
                await asyncio.sleep(0)
            return request.partitions, commit

        holding = asyncio.ensure_future(held())
        joining = asyncio.ensure_future(there.member("KIP-848"))
        await polled_until(first, joining.done)
        partitions, commit = await holding
        await commit
        assert all(there.committed(tp) == 1 for tp in partitions)
        assert not there.told.lost


@pytest.mark.parametrize("is_member", [True, False])
async def test_closing_waits_for_a_commit_on_its_way(is_member: bool) -> None:
    async with world() as there:
        what: dict[str, Any] = {"topics": ["kept"]} if is_member else {"assign": [KEPT]}
        consumer = Consumer(
            await there.client(), **what, group_id="g", enable_auto_commit=False
        )
        await consumer.start()
        there.broker.faults.on("OffsetCommit", delay(0.5))
        commit = asyncio.ensure_future(consumer.commit({KEPT: 1}))
        await asyncio.sleep(0)
        assert await taken(consumer.close()) < 2
        await commit
        assert there.committed(KEPT) == 1


@pytest.mark.parametrize("is_member", [True, False])
async def test_closing_does_not_wait_without_end(is_member: bool) -> None:
    async with world() as there:
        what: dict[str, Any] = {"topics": ["kept"]} if is_member else {"assign": [KEPT]}
        consumer = Consumer(
            await there.client(), **what, group_id="g", enable_auto_commit=False
        )
        await consumer.start()
        there.broker.faults.on("OffsetCommit", error(E.NOT_COORDINATOR))
        commit = asyncio.ensure_future(consumer.commit({KEPT: 1}))
        await asyncio.sleep(0)
        assert await taken(consumer.close(4)) < 4
        with pytest.raises((PartitionLost, ClosedError, RequestTimeout)):
            await commit
        assert not there.broker.control.members("g")


def test_a_commit_begun_before_the_poll_counts_in_an_io_thread() -> None:
    async def go() -> None:
        async with Broker(topics={"t": 2}) as broker:
            servers = broker.bootstrap_servers
            options: dict[str, Any] = {
                "topics": "t",
                "group_id": "g",
                "auto_offset_reset": "earliest",
                "enable_auto_commit": False,
                "group_protocol": "classic",
                "heartbeat_interval_ms": 100,
            }
            async with kafkaio.Producer(servers) as producer:
                for partition in range(2):
                    await producer.send("t", b"x", partition=partition)
            first = Consumer(servers, **options, io_thread=True)
            second = Consumer(servers, **options)
            async with first, asyncio.timeout(60):
                await read(first, 2)
                joining = asyncio.ensure_future(second.start())
                while not (poll := await first.poll(timeout=0.1)).to_be_revoked:
                    pass
                broker.faults.on("OffsetCommit", delay(0.3))
                offsets = dict.fromkeys(poll.to_be_revoked, 1)
                commit = asyncio.ensure_future(first.commit(offsets))
                await asyncio.sleep(0)
                await first.poll(timeout=0.1)
                await commit
                while not joining.done():
                    await first.poll(timeout=0.1)
                assert all(broker.control.committed("g", tp) == 1 for tp in offsets)
            await second.close()

    asyncio.run(go())


# ---- in transactions -----------------------------------------------------------------


class Copying:
    """Copies records in transactions, and lets one of the deleted topic wait."""

    def __init__(self) -> None:
        self.done: list[TopicPartition] = []
        self.has_begun = asyncio.Event()
        self.may_end = asyncio.Event()

    async def many(self, tx: Any, records: list[Any]) -> None:
        for record in records:
            await self.one(tx, record)

    async def one(self, tx: Any, record: Any) -> None:
        await tx.send("out", record.value)
        self.done.append(record.topic_partition)
        if record.topic_partition == GONE:
            self.has_begun.set()
            await self.may_end.wait()


@EVERY
@pytest.mark.parametrize("loop", ["exactly_once", "run"])
async def test_a_deleted_topic_does_not_stop_transactions(
    protocol: str, loop: str
) -> None:
    async with world(gone=1, kept=1, out=1) as there:
        consumer = await there.member(protocol, enable_auto_commit=False)
        producer = kafkaio.Producer(await there.client(), transactional_id="copies")
        async with producer:
            copying = Copying()
            if loop == "run":
                work = consumer.run(copying.one, producer=producer)
            else:
                work = kafkaio.exactly_once(consumer, producer, copying.many)
            working = asyncio.ensure_future(work)
            await there.write(GONE)
            await copying.has_begun.wait()
            await there.delete("gone")
            await there.write(KEPT)
            copying.may_end.set()
            begun = now()
            await until(lambda: there.committed(KEPT) == 1)
            assert now() - begun < 5
            await until(lambda: consumer.assignment == {KEPT}, limit=10)
            assert await taken(consumer.close()) < 2
            await working
        assert not there.told.lost


async def test_offsets_of_a_deleted_topic_abort_a_transaction() -> None:
    async with world(gone=1, kept=1, out=1) as there:
        consumer = await there.member("KIP-848", enable_auto_commit=False)
        await there.write(GONE, KEPT)
        await read(consumer, 2)
        producer = kafkaio.Producer(await there.client(), transactional_id="copies")
        async with producer:
            await there.delete("gone")
            begun = now()
            transaction = producer.transaction()
            await transaction.begin()
            with pytest.raises(UnknownTopicOrPartition, match="gone-0"):
                await transaction.commit_offsets(consumer, {GONE: 1, KEPT: 1})
            with pytest.raises(TransactionAborted, match="gone-0"):
                await transaction.commit()
            assert now() - begun < 4
            async with producer.transaction() as tx:
                await tx.commit_offsets(consumer, {KEPT: 1})
        await until(lambda: there.committed(KEPT) == 1)


@pytest.mark.parametrize("version", ["4.4", "4.3"])
async def test_offsets_are_of_the_topic_that_was_read(version: str) -> None:
    async with world(version, gone=1, kept=1, out=1) as there:
        consumer = await there.member("range", enable_auto_commit=False)
        producer = kafkaio.Producer(await there.client(), transactional_id="copies")
        async with producer, kafkaio.Admin(await there.client()) as admin:
            await there.write(GONE)
            begun = now()
            with suppress(TransactionAborted):
                async with producer.transaction(consumer):
                    await anext(aiter(consumer))
                    await admin.delete_topics(["gone"])
                    await admin.create_topics([kafkaio.admin.NewTopic("gone", 1, 1)])
            assert now() - begun < 2
            if version == "4.3":  # it has names alone
                await until(lambda: there.committed(GONE) == 1)
                return
            assert there.committed(GONE) is None
            await there.write(GONE)
            async with producer.transaction(consumer):
                record = await anext(aiter(consumer))
            assert (record.topic_partition, record.offset) == (GONE, 0)
            await until(lambda: there.committed(GONE) == 1)


async def test_offsets_that_the_user_names_are_of_the_topic_of_that_name() -> None:
    async with world() as there:
        await there.write(GONE)
        group = kafkaio.GroupMetadata("g")
        producer = kafkaio.Producer(await there.client(), transactional_id="copies")
        async with producer, kafkaio.Admin(await there.client()) as admin:
            await producer.partitions_for("gone")
            await admin.delete_topics(["gone"])
            await admin.create_topics([kafkaio.admin.NewTopic("gone", 1, 1)])
            async with producer.transaction() as tx:
                await tx.commit_offsets(group, {GONE: 1})
        await until(lambda: there.committed(GONE) == 1)


@EVERY
@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS])
async def test_a_revocation_ends_a_transaction_whose_offsets_are_refused(
    protocol: str, code: E
) -> None:
    async with world(gone=2, kept=2, out=1) as there:
        first = await there.member(protocol, enable_auto_commit=False)
        producer = kafkaio.Producer(await there.client(), transactional_id="copies")
        async with producer:
            copying = Copying()
            copying.may_end.set()
            rule = there.broker.faults.on("TxnOffsetCommit", error(code))
            working = asyncio.ensure_future(
                kafkaio.exactly_once(first, producer, copying.many)
            )
            await there.write(GONE, KEPT)
            await until(lambda: rule.count > 2)
            begun = now()
            second = await there.member(protocol)
            await until(lambda: len(second.assignment) == 2)
            assert now() - begun < 25
            there.broker.faults.remove(rule)
            await first.close()
            await working
        assert not there.told.lost


async def test_a_throttle_is_named_where_a_transaction_ends_for_it() -> None:
    async with world(gone=1, kept=1, out=1) as there:
        consumer = await there.member("KIP-848", enable_auto_commit=False)
        await there.write(KEPT)
        await read(consumer, 1)
        producer = kafkaio.Producer(
            await there.client(), transactional_id="copies", max_block_ms=3000
        )
        async with producer:
            there.broker.faults.on("TxnOffsetCommit", throttle(10, times=1))
            async with producer.transaction() as tx:
                await tx.commit_offsets(consumer, {KEPT: 0})
            begun = now()
            transaction = producer.transaction()
            await transaction.begin()
            with pytest.raises(RequestTimeout, match="throttles this client"):
                await transaction.commit_offsets(consumer, {KEPT: 1})
            assert now() - begun < 4
            with pytest.raises(TransactionAborted):
                await transaction.commit()
