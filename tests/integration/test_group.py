"""Groups on a real Kafka: our members among themselves, and beside a Java consumer."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack

import pytest

from kafkaio import Assignor, GroupError, Layout, Subscription
from kafkaio._client import Client
from kafkaio._consumer import Consumer
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._producer import Producer
from kafkaio.admin import Admin
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import TopicPartition
from tests.integration import groups
from tests.integration.groups import TOOLS, java_member, numbers, reading, until
from tests.support.patience import HANGS

pytestmark = pytest.mark.timeout(120)

GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
COUNT = 6


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


def member(
    kafka: Kafka, name: str | re.Pattern[str], group: str, **options: object
) -> Consumer:
    return groups.member(kafka, name, group, group_protocol="classic", **options)


@pytest.mark.parametrize(
    "assignor", ["cooperative-sticky", "range", "roundrobin", "sticky"]
)
async def test_three_members_one_of_them_java(
    assignor: str, real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=COUNT)
    lost: list[object] = []
    options: dict[str, object] = {
        "partition_assignment_strategy": (assignor,),
        "on_lost": lost.append,
    }
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(
            member(real_kafka, name, group, **options)
        )
        assert numbers(one) == set(range(COUNT))
        two = member(real_kafka, name, group, **options)
        async with (
            reading(one),
            java_member(real_kafka, group, name, assignor) as java,
        ):
            await until(lambda: len(java.assigned) == COUNT // 2)
            async with two, reading(two) as seen:

                def shares() -> list[set[int]]:
                    return [numbers(one), numbers(two), java.assigned]

                await until(lambda: [len(share) for share in shares()] == [2, 2, 2])
                assert set().union(*shares()) == set(range(COUNT))
                async with Producer(real_kafka.bootstrap_servers) as producer:
                    for number in range(COUNT):
                        value = b"%d" % number
                        await producer.send(name, value, partition=number)
                await until(lambda: len(seen) == 2 and len(java.records) == 2)
            await until(lambda: len(java.assigned) == len(numbers(one)) == 3)
    assert lost == []


async def test_who_divides_otherwise_is_told_how_the_group_does(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=2)
    options = {"partition_assignment_strategy": ("range", "roundrobin")}
    async with member(real_kafka, name, group, **options) as one, reading(one):
        options = {"partition_assignment_strategy": ("broker-range", "sticky")}
        other = member(real_kafka, name, group, **options)
        with pytest.raises(GroupError) as caught:
            await other.start()
        await other.close()
        assert "uses the assignor 'range'" in str(caught.value)
        assert "offers broker-range, sticky" in str(caught.value)
        assert numbers(one) == {0, 1}


async def test_an_assignor_of_our_own(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    class First:
        """Everything to the first member by name."""

        name = "first"
        cooperative = False

        def user_data(self, subscription: Subscription) -> bytes | None:
            return min(subscription.topics).encode()

        def assign(
            self, layout: Layout, members: Mapping[str, Subscription]
        ) -> Mapping[str, Collection[TopicPartition]]:
            assert all(s.user_data == name.encode() for s in members.values())
            assert layout.counts == {name: len(layout.leaders)}
            return {min(members): list(layout.leaders)}  # ids begin with client ids

    name = topic(partitions=3)
    assignor: Assignor = First()
    options: dict[str, object] = {"partition_assignment_strategy": [assignor]}
    async with (
        member(real_kafka, name, group, client_id="b", **options) as one,
        reading(one),
    ):
        assert numbers(one) == {0, 1, 2}
        async with (
            member(real_kafka, name, group, client_id="a", **options) as two,
            reading(two),
        ):
            await until(lambda: numbers(two) == {0, 1, 2} and not numbers(one))


async def test_the_tool_shows_our_member_and_its_offsets(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=2)
    async with Producer(real_kafka.bootstrap_servers) as producer:
        for number in range(5):
            await producer.send(name, b"%d" % number, partition=0)
    async with (
        # What is finished after the commit would be committed in its place.
        member(
            real_kafka, name, group, client_id="ours", enable_auto_commit=False
        ) as consumer,
        reading(consumer) as seen,
    ):
        await until(lambda: len(seen) == 5)
        await consumer.commit({TopicPartition(name, 0): 3})
        output = await TOOLS.run(
            GROUPS_TOOL,
            *("--bootstrap-server", real_kafka.bootstrap_servers),
            *("--describe", "--group", group),
            timeout=60,
        )
    (line,) = (x for x in output.lines if x.split()[1:3] == [name, "0"])
    current, end, lag = line.split()[3:6]
    assert (current, end, lag) == ("3", "5", "2")
    assert "ours" in line
    assert "cooperative-sticky" not in output.stderr


async def test_a_partition_moves_without_loss_or_repetition(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=COUNT)
    wanted = {b"%d" % number for number in range(300)}
    async with (
        Producer(real_kafka.bootstrap_servers) as producer,
        member(real_kafka, name, group) as one,
        reading(one) as first,
    ):
        for number in range(150):
            await producer.send(name, b"%d" % number, partition=number % COUNT)
        two = member(real_kafka, name, group)
        async with two, reading(two) as second:
            await until(lambda: len(numbers(one)) == len(numbers(two)) == 3)
            for number in range(150, 300):
                await producer.send(name, b"%d" % number, partition=number % COUNT)
            await until(lambda: first.keys() | second.keys() == wanted)
            # Finished records were committed before each revoke.
            assert not first.keys() & second.keys()
            assert set(first.values()) | set(second.values()) == {1}


async def test_a_pattern_and_a_new_topic(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    stem = topic(partitions=1)
    pattern = re.compile(re.escape(stem) + ".*")
    async with (
        member(real_kafka, pattern, group, metadata_max_age_ms=500) as one,
        reading(one),
    ):
        assert one.assignment == {TopicPartition(stem, 0)}
        await real_kafka.create_topic(f"{stem}-more", partitions=2)
        await until(lambda: len(one.assignment) == 3)


@pytest.mark.parametrize(
    "protocol",
    [
        "classic",
        pytest.param("consumer", marks=pytest.mark.kafka_versions("4.0+")),
    ],
)
async def test_partitions_that_are_added_begin_at_their_start(
    protocol: str, real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=1)
    options: dict[str, object] = {
        "group_protocol": protocol,
        "auto_offset_reset": "latest",
        "metadata_max_age_ms": 1000,
    }

    async def grow(admin: Admin, producer: Producer, size: int) -> None:
        await admin.create_partitions({name: size})
        for value in (b"1", b"2", b"3"):
            await producer.send(name, value, partition=size - 1)

    async with (
        Admin(real_kafka.bootstrap_servers) as admin,
        Producer(real_kafka.bootstrap_servers, metadata_max_age_ms=100) as producer,
    ):
        await producer.send(name, b"old", partition=0)
        async with groups.member(real_kafka, name, group, **options) as one:
            await grow(admin, producer, 2)
            async with asyncio.timeout(HANGS):
                assert [(await anext(one)).value for _ in range(3)] == [
                    b"1",
                    b"2",
                    b"3",
                ]
            await one.commit()
        await grow(admin, producer, 3)  # while the group is down
        async with groups.member(real_kafka, name, group, **options) as again:
            async with asyncio.timeout(HANGS):
                found = [await anext(again) for _ in range(3)]
            assert [(record.partition, record.value) for record in found] == [
                (2, b"1"),
                (2, b"2"),
                (2, b"3"),
            ]


async def test_the_coordinator_dies(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory, group: str
) -> None:
    name = cluster_topic(partitions=3)
    async with (
        Client(real_kafka_cluster.bootstrap_servers) as client,
        member(real_kafka_cluster, name, group) as one,
        reading(one) as seen,
        Producer(real_kafka_cluster.bootstrap_servers) as producer,
    ):
        await producer.send(name, b"before", partition=0)
        await until(lambda: b"before" in seen)
        await one.commit()
        node = await client._cluster.coordinator(
            CoordinatorKind.GROUP, group, timeout=10
        )
        await real_kafka_cluster.kill(node)
        await producer.send(name, b"after", partition=0)
        await until(lambda: b"after" in seen)
        assert len(one.assignment) == 3

        async def committed() -> int:
            found = await one.committed()
            place = found[TopicPartition(name, 0)]
            return 0 if place is None else place.offset

        # Auto-commit goes on, at the new coordinator.
        async with asyncio.timeout(HANGS):
            while await committed() < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
    assert set(seen.values()) == {1}


async def test_those_who_share_a_client_do_not_wait_for_each_other(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name, idle = topic(partitions=COUNT), topic()
    options = {"topics": name, "group_id": group, "group_protocol": "classic"}
    async with (
        Client(real_kafka.bootstrap_servers) as client,
        Consumer(client, assign=[TopicPartition(idle, 0)], fetch_max_wait_ms=20_000),
        Consumer(client, auto_offset_reset="earliest", **options) as one,  # type: ignore[arg-type]
        reading(one) as seen,
    ):
        # Its JoinGroup waits until the other has joined anew.
        async with (
            asyncio.timeout(HANGS),
            Consumer(client, auto_offset_reset="earliest", **options) as two,  # type: ignore[arg-type]
            reading(two) as others,
        ):
            await until(lambda: len(numbers(one)) == len(numbers(two)) == 3)
            async with Producer(client) as producer:
                for number in range(COUNT):
                    await producer.send(name, b"%d" % number, partition=number)
            await until(lambda: len(seen) + len(others) == COUNT, limit=15)
        await until(lambda: len(numbers(one)) == COUNT)
        kinds = [one.connection_class.kind for one in client.statistics().connections]
        # That of who has gone is gone.
        assert kinds.count("coordinator") == 1
        assert kinds.count("fetch") == 2
