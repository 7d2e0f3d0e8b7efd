"""KIP-848 groups on a real Kafka: ours among themselves, beside Java's, and migrating.

Runs on every version; where the cluster does not offer the protocol (before 4.0),
only what ``auto`` does about it.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

import kafkaio
from kafkaio._client import Client, Controller, GroupCoordinator
from kafkaio._consumer import Consumer
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._producer import Producer
from kafkaio.errors import BrokerError, GroupError, UnsupportedVersion
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from kafkaio.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import TopicPartition
from tests.integration.groups import java_member, member, numbers, reading, until
from tests.support.kafka import Kafka
from tests.support.patience import HANGS

pytestmark = pytest.mark.timeout(120)

NEW = pytest.mark.kafka_versions("4.0+")
COUNT = 6


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


class Chosen(kafkaio.Observer):
    """Which protocols were chosen, and what was lost."""

    def __init__(self) -> None:
        self.protocols: list[str] = []
        self.lost: list[TopicPartition] = []

    def group_protocol(
        self, group: str, protocol: str, cause: BaseException | None
    ) -> None:
        assert group
        assert cause is None or protocol == "classic"
        self.protocols.append(protocol)

    def rebalance(
        self,
        state: str,
        assigned: Collection[TopicPartition],
        revoked: Collection[TopicPartition],
        lost: Collection[TopicPartition],
    ) -> None:
        self.lost += lost


@asynccontextmanager
async def producing(kafka: Kafka, name: str) -> AsyncIterator[list[bytes]]:
    """Send numbered records all the while; what was sent so far."""
    sent: list[bytes] = []
    ends = asyncio.Event()

    async def send(producer: Producer) -> None:
        while not ends.is_set():
            value = b"%d" % len(sent)
            await producer.send(name, value, partition=len(sent) % COUNT)
            sent.append(value)
            await asyncio.sleep(0.005)

    async with (
        Producer(kafka.bootstrap_servers) as producer,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(send(producer))
        yield sent
        ends.set()


def merged(*counts: dict[bytes | None, int]) -> dict[bytes | None, int]:
    total: dict[bytes | None, int] = {}
    for one in counts:
        for value, count in one.items():
            total[value] = total.get(value, 0) + count
    return total


@pytest.mark.kafka_versions("2.1", "2.8", "3.9")
async def test_auto_is_classic_where_the_cluster_has_nothing_newer(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name, observer = topic(partitions=COUNT), Chosen()
    async with (
        Producer(real_kafka.bootstrap_servers) as producer,
        member(real_kafka, name, group, observer=observer) as one,
        reading(one) as seen,
    ):
        await producer.send(name, b"x", partition=0)
        await until(lambda: b"x" in seen)
        assert observer.protocols == ["consumer", "classic"]
        assert len(one.assignment) == COUNT
    with pytest.raises(
        (UnsupportedVersion, BrokerError), match=r"ConsumerGroupHeartbeat|classic"
    ):
        async with member(real_kafka, name, group, group_protocol="consumer"):
            pass


@pytest.mark.kafka_versions("3.9")
@pytest.mark.parametrize("pattern", [False, True], ids=["names", "pattern"])
async def test_the_preview_does_for_who_asks_for_it(
    group: str, *, pattern: bool
) -> None:
    """Version 0: the coordinator names the member, and matches no patterns."""
    served = {
        "group.coordinator.rebalance.protocols": "classic,consumer",
        "unstable.api.versions.enable": "true",
    }
    async with Kafka(version="3.9", config=served) as kafka:
        await kafka.create_topic("orders", partitions=COUNT)
        topics = re.compile("ord.*") if pattern else "orders"
        options = {"group_protocol": "consumer"}
        one = member(kafka, topics, group, **options)
        async with one, reading(one) as seen, Client(kafka.bootstrap_servers) as client:
            two = member(kafka, topics, group, **options)
            async with two, reading(two):
                await until(lambda: len(numbers(one)) == len(numbers(two)) == 3)
            await until(lambda: len(numbers(one)) == COUNT)
            async with Producer(client) as producer:
                await producer.send("orders", b"x", partition=0)
            await until(lambda: b"x" in seen)
            await one.commit()
        observer = Chosen()
        async with member(kafka, topics, f"{group}-auto", observer=observer):
            assert observer.protocols == ["consumer", "classic"]


@NEW
async def test_members_come_and_go_and_nothing_is_lost_or_repeated(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name, observer = topic(partitions=COUNT), Chosen()
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(
            member(real_kafka, name, group, observer=observer)
        )
        assert one.statistics().group_protocol == "consumer"
        assert len(one.assignment) == COUNT
        first = await stack.enter_async_context(reading(one))
        async with producing(real_kafka, name) as sent:
            two = member(real_kafka, name, group, observer=observer)
            async with two, reading(two) as second:
                await until(lambda: len(numbers(one)) == len(numbers(two)) == 3)
                three = member(real_kafka, name, group, observer=observer)
                async with three, reading(three) as third:
                    members = one, two, three
                    await until(lambda: {len(numbers(m)) for m in members} == {2})
                    await asyncio.sleep(0.5)
                await until(lambda: len(numbers(one)) + len(numbers(two)) == COUNT)
            await until(lambda: len(numbers(one)) == COUNT)
        await until(lambda: len(merged(first, second, third)) >= len(sent))
        total = merged(first, second, third)
        assert total.keys() == set(sent)
        assert set(total.values()) == {1}
        assert "STABLE (consumer " in repr(one)
    assert observer.lost == []
    assert set(observer.protocols) == {"consumer"}


@NEW
@pytest.mark.parametrize("assignor", ["uniform", "range", "nonsense"])
async def test_the_brokers_assignors(
    assignor: str, real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=COUNT)
    consumer = member(real_kafka, name, group, group_remote_assignor=assignor)
    if assignor == "nonsense":
        with pytest.raises(GroupError, match="nonsense"):
            await consumer.start()
        return
    async with consumer, reading(consumer):
        second = member(real_kafka, name, group, group_remote_assignor=assignor)
        async with second, reading(second):
            await until(lambda: len(numbers(consumer)) == len(numbers(second)) == 3)
            if assignor == "range":
                low, high = sorted([numbers(consumer), numbers(second)], key=min)
                assert (low, high) == ({0, 1, 2}, {3, 4, 5})


@NEW
async def test_a_member_that_is_thrown_out_comes_back(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name, observer = topic(partitions=COUNT), Chosen()
    lost: list[object] = []
    async with (
        Client(real_kafka.bootstrap_servers) as client,
        member(real_kafka, name, group, observer=observer, on_lost=lost.append) as one,
        reading(one) as seen,
        Producer(real_kafka.bootstrap_servers) as producer,
    ):
        await until(lambda: len(one.assignment) == COUNT)
        before = one.group_metadata
        # Somebody leaves in its name.
        await client.request(
            ConsumerGroupHeartbeatRequest(
                group_id=group, member_id=before.member_id, member_epoch=-1
            ),
            GroupCoordinator(group),
        )
        await until(lambda: len(observer.lost) == COUNT)
        await until(lambda: bool(lost))  # the callback has its turn later
        await until(lambda: len(one.assignment) == COUNT)
        assert one.group_metadata.member_id == before.member_id
        assert lost == [{TopicPartition(name, n) for n in range(COUNT)}]
        for number in range(COUNT):
            await producer.send(name, b"%d" % number, partition=number)
        await until(lambda: len(seen) == COUNT)
        await one.commit()


@NEW
async def test_a_static_member_finds_its_place_again(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name, observer = topic(partitions=COUNT), Chosen()
    async with (
        member(real_kafka, name, group, observer=observer) as other,
        reading(other),
    ):
        static = member(real_kafka, name, group, group_instance_id="s")
        async with static, reading(static):
            await until(lambda: len(numbers(static)) == len(numbers(other)) == 3)
            mine, epoch = numbers(static), other.group_metadata.generation
            twin = member(real_kafka, name, group, group_instance_id="s")
            with pytest.raises(GroupError, match=r"(?i)instance"):
                await twin.start()
        again = member(real_kafka, name, group, group_instance_id="s")
        async with again, reading(again):
            assert numbers(again) == mine
            # The others have not noticed.
            assert other.group_metadata.generation == epoch
            assert len(numbers(other)) == 3


@NEW
@pytest.mark.parametrize("kind", ["matched by the broker", "matched here"])
async def test_a_pattern_new_topics_and_new_partitions(
    kind: str, real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    stem = topic(partitions=1)
    other = topic(partitions=1)
    text = re.escape(stem) + ("" if kind == "matched by the broker" else "(?!xyz)")
    async with (
        member(
            real_kafka, re.compile(text + ".*"), group, metadata_max_age_ms=500
        ) as one,
        reading(one) as seen,
        Client(real_kafka.bootstrap_servers) as client,
        Producer(real_kafka.bootstrap_servers) as producer,
    ):
        assert other != stem
        await until(lambda: one.assignment == {TopicPartition(stem, 0)})
        await client.request(
            CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name=stem, count=3, assignments=None)],
                timeout_ms=10_000,
            ),
            Controller,
        )
        await until(lambda: len(one.assignment) == 3)
        if kind == "matched here":
            await real_kafka.create_topic(f"{stem}-more", partitions=2)
            await until(lambda: len(one.assignment) == 5)
        await producer.send(stem, b"new", partition=2)
        await until(lambda: b"new" in seen)
        one.subscribe(other)
        await until(lambda: one.assignment == {TopicPartition(other, 0)})
        one.unsubscribe()
        await until(lambda: not one.assignment)
        one.subscribe([stem, other])
        await until(lambda: len(one.assignment) == 4)


@NEW
async def test_who_does_not_poll_leaves_and_comes_back(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name, observer = topic(partitions=COUNT), Chosen()
    async with member(
        real_kafka, name, group, observer=observer, max_poll_interval_ms=1500
    ) as one:
        await until(lambda: len(observer.lost) == COUNT)
        assert one.statistics().group == "STALLED"
        async with reading(one):
            await until(lambda: len(one.assignment) == COUNT)


@NEW
async def test_the_coordinator_dies(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory, group: str
) -> None:
    name, observer = cluster_topic(partitions=COUNT), Chosen()
    kafka = real_kafka_cluster
    async with (
        Client(kafka.bootstrap_servers) as client,
        member(kafka, name, group, observer=observer) as one,
        reading(one) as first,
        member(kafka, name, group, observer=observer) as two,
        reading(two) as second,
        Producer(kafka.bootstrap_servers) as producer,
    ):
        await until(lambda: len(numbers(one)) == len(numbers(two)) == 3)
        await producer.send(name, b"before", partition=0)
        await until(lambda: b"before" in first | second)
        await one.commit()
        await two.commit()
        node = await client._cluster.coordinator(
            CoordinatorKind.GROUP, group, timeout=10
        )
        await kafka.kill(node)
        await producer.send(name, b"after", partition=0)
        await until(lambda: b"after" in first | second)
        async with asyncio.timeout(HANGS):
            await one.commit(dict.fromkeys(list(one.assignment)[:1], 1))
        await until(lambda: len(numbers(one)) == len(numbers(two)) == 3)
    assert set(merged(first, second).values()) == {1}
    assert set(observer.protocols) == {"consumer"}


@NEW
@pytest.mark.parametrize(
    "kind",
    ["consumer", "cooperative-sticky", "range"],
)
async def test_beside_a_java_member(
    kind: str, real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name, observer = topic(partitions=COUNT), Chosen()
    async with member(real_kafka, name, group, observer=observer) as one:
        async with (
            reading(one) as ours,
            java_member(real_kafka, group, name, kind) as java,
            Producer(real_kafka.bootstrap_servers) as producer,
        ):
            await until(lambda: len(java.assigned) == len(numbers(one)) == 3)
            assert not java.assigned & numbers(one)
            for number in range(COUNT):
                await producer.send(name, b"%d" % number, partition=number)
            await until(lambda: len(ours) + len(java.records) == COUNT)
        async with reading(one):
            await until(lambda: len(numbers(one)) == COUNT)
    assert set(ours.values()) == {1}
    assert observer.lost == []
    assert observer.protocols == ["consumer"]


@NEW
async def test_we_join_a_classic_group_of_java(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name, observer = topic(partitions=COUNT), Chosen()
    async with java_member(real_kafka, group, name, "cooperative-sticky") as java:
        await until(lambda: len(java.assigned) == COUNT)
        one = member(real_kafka, name, group, observer=observer)
        async with one, reading(one):
            await until(lambda: len(java.assigned) == len(numbers(one)) == 3)
            assert observer.protocols == ["consumer"]
        await until(lambda: len(java.assigned) == COUNT)


@NEW
@pytest.mark.parametrize("to", ["consumer", "classic"])
async def test_a_group_migrates_member_by_member(
    to: str, real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name, observer = topic(partitions=COUNT), Chosen()
    before = "classic" if to == "consumer" else "consumer"
    seen: list[dict[bytes | None, int]] = []

    def make(protocol: str) -> Consumer:
        return member(
            real_kafka, name, group, group_protocol=protocol, observer=observer
        )

    async with AsyncExitStack() as stack, producing(real_kafka, name) as sent:
        members: list[Consumer] = []
        ends: list[AsyncExitStack] = []

        async def come(protocol: str) -> None:
            end = await stack.enter_async_context(AsyncExitStack())
            members.append(await end.enter_async_context(make(protocol)))
            seen.append(await end.enter_async_context(reading(members[-1])))
            ends.append(end)
            await settled()

        async def go() -> None:
            del members[0]
            await ends.pop(0).aclose()
            await settled()

        async def settled() -> None:
            share = {COUNT // len(members)}
            await until(lambda: {len(numbers(one)) for one in members} == share)

        await come(before)
        await come(before)
        await come(to)
        # One after another: who goes while others still follow the one before leaves
        # a classic member behind that the group takes for one of the past.
        await go()
        await go()
        await come(to)
        await asyncio.sleep(0.5)
        end = len(sent)
        await until(lambda: len(merged(*seen)) >= end)
        total = merged(*seen)
        assert set(sent[:end]) <= total.keys()
        assert set(total.values()) == {1}
        assert [one.statistics().group_protocol for one in members] == [to, to]
    assert observer.lost == []


@NEW
@pytest.mark.parametrize(
    ("limits", "protocol"),
    [
        ("JoinGroup:5,Produce:9,Fetch:11", "consumer"),
        ({"Metadata": 9}, "classic"),  # assignments name topics by ids
        ({"ApiVersions": 0}, "classic"),  # which tells no features
    ],
)
async def test_versions_that_the_client_limits(
    real_kafka: Kafka, kafka_topic: str, limits: object, protocol: str
) -> None:
    servers, options = real_kafka.bootstrap_servers, {"max_versions": limits}
    async with Producer(servers, **options) as producer:  # type: ignore[arg-type]
        await producer.send(kafka_topic, b"1")
    consumer = Consumer(
        servers,
        topics=[kafka_topic],
        group_id=f"limits-{uuid.uuid4().hex[:8]}",
        auto_offset_reset="earliest",
        **options,  # type: ignore[arg-type]
    )
    async with consumer:
        assert (await anext(consumer)).value == b"1"
        await consumer.commit()
        assert consumer.statistics().group_protocol == protocol
