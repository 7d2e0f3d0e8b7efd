"""Groups of ours and of foreign clients on the embedded broker."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import (
    StickyPartitionAssignor,
)
from confluent_kafka import Consumer as ConfluentConsumer, ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from kafkaio._client import Client, Controller
from kafkaio._consumer import Consumer
from kafkaio._producer import Producer
from kafkaio.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaio.testing import Broker, GroupConfig
from tests.support.patience import HANGS

# The version of a real Kafka means nothing here, so once is enough.
pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("runs on embedded brokers of its own in any case"),
]

COUNT = 20


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(nodes=3, topics={"orders": 4}) as broker:
        async with Producer(broker.bootstrap_servers) as producer:
            for number in range(COUNT):
                value = str(number).encode()
                await producer.send("orders", value, partition=number % 4)
        yield broker


async def until(condition: Callable[[], bool], limit: float = 30.0) -> None:
    async with asyncio.timeout(limit):
        while not condition():  # noqa: ASYNC110  (any of several objects may change)
            await asyncio.sleep(0.02)


def ours(
    broker: Broker,
    group: str,
    assignors: Sequence[str] | None = None,
    **options: object,
) -> Consumer:
    if assignors:
        options["assignors"] = list(assignors)
    if options.get("group_protocol") != "consumer":
        options["heartbeat_interval_ms"] = 100
    return Consumer(
        broker.bootstrap_servers,
        topics="orders",
        group_id=group,
        auto_offset_reset="earliest",
        **options,  # type: ignore[arg-type]  # options by name
    )


@asynccontextmanager
async def reading(*consumers: Consumer) -> AsyncIterator[list[bytes | None]]:
    seen: list[bytes | None] = []

    async def read(consumer: Consumer) -> None:
        while True:
            poll = await consumer.poll(timeout=0.5)
            seen.extend(record.value for record in poll.records)

    async with asyncio.TaskGroup() as tasks:
        readers = [tasks.create_task(read(consumer)) for consumer in consumers]
        yield seen
        for reader in readers:
            reader.cancel()


async def test_our_members_share_and_go_on_where_they_stopped(broker: Broker) -> None:
    async with ours(broker, "g") as one, ours(broker, "g") as two:
        async with reading(one, two) as seen:
            await until(lambda: len(one.assignment) == len(two.assignment) == 2)
            await until(lambda: len(seen) >= COUNT)
        await one.commit()
        await two.commit()
        assert len(set(seen)) == COUNT
    async with Producer(broker.bootstrap_servers) as producer:
        await producer.send("orders", b"later", partition=1)
    async with ours(broker, "g") as again, reading(again) as seen:
        await until(lambda: bool(seen))
        assert seen == [b"later"]


async def create(broker: Broker, name: str, partitions: int) -> None:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    async with Client(broker.bootstrap_servers) as client:
        request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        reply = await client.request(request, to=Controller)
        assert not reply.topics[0].error_code


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
async def test_a_new_topic_costs_a_pattern_one_generation(
    broker: Broker, assignor: str
) -> None:
    age = 2.0
    async with AsyncExitStack() as stack:
        members = list[Consumer]()
        for number in range(4):
            member = Consumer(
                broker.bootstrap_servers,
                topics=re.compile("many-.*"),
                group_id="g",
                group_protocol="classic",
                partition_assignment_strategy=(assignor,),
                heartbeat_interval_ms=100,
                metadata_max_age_ms=int(1000 * age),
            )
            if not number:
                await create(broker, "many-1", 4)
            members.append(await stack.enter_async_context(member))
            await asyncio.sleep(age / 4)  # each looks at metadata at another time
        await stack.enter_async_context(reading(*members))
        await until(lambda: all(len(one.assignment) == 1 for one in members))
        before = members[0].statistics().generation
        await create(broker, "many-2", 4)
        await until(lambda: sum(len(one.assignment) for one in members) == 8)
        await asyncio.sleep(2 * age)  # everybody has looked by now
        assert {one.statistics().generation for one in members} == {before + 1}


async def test_the_node_that_coordinates_dies(broker: Broker) -> None:
    async with AsyncExitStack() as stack:
        members = [await stack.enter_async_context(ours(broker, "g")) for _ in "ab"]
        seen = await stack.enter_async_context(reading(*members))
        await until(lambda: all(len(one.assignment) == 2 for one in members))
        dead = broker.control.coordinator("g")
        await broker.control.kill(dead)
        assert broker.control.coordinator("g") not in {dead, -1}
        async with Producer(broker.bootstrap_servers) as producer:
            for number in range(4):
                await producer.send("orders", b"late", partition=number)
        await until(lambda: seen.count(b"late") >= 4)
        await members[0].commit()


async def test_a_coordinator_that_moves_is_found_again(broker: Broker) -> None:
    async with ours(broker, "g") as member, reading(member) as seen:
        await until(lambda: len(seen) == COUNT)
        old = broker.control.coordinator("g")
        broker.control.move_coordinator("g", (old + 1) % 3)
        await member.commit()
        assert broker.control.coordinator("g") != old
        assert len(member.assignment) == 4


@pytest.mark.parametrize(
    "assignor",
    [RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor],
)
async def test_members_of_aiokafka(
    broker: Broker, assignor: type[AbstractPartitionAssignor]
) -> None:
    async with AsyncExitStack() as stack:
        members = []
        for _ in range(2):
            member = AIOKafkaConsumer(
                "orders",
                bootstrap_servers=broker.bootstrap_servers,
                group_id="aio",
                auto_offset_reset="earliest",
                heartbeat_interval_ms=100,
                partition_assignment_strategy=[assignor],
            )
            await member.start()
            stack.push_async_callback(member.stop)
            members.append(member)
        seen: set[bytes | None] = set()
        async with asyncio.timeout(HANGS):
            while len(seen) < COUNT or any(
                len(one.assignment()) != 2 for one in members
            ):
                for member in members:
                    found = await member.getmany(timeout_ms=50)
                    seen.update(one.value for it in found.values() for one in it)
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        await admin.start()
        stack.push_async_callback(admin.close)
        await members[0].commit()
        await members[1].commit()
        assert await admin.list_consumer_groups() == [("aio", "consumer")]
        (described,) = await admin.describe_consumer_groups(["aio"])
        ((_, _, state, _, protocol, told, *_),) = described.groups
        assert (state, protocol, len(told)) == ("Stable", assignor.name, 2)
        offsets = await admin.list_consumer_group_offsets("aio")
        assert sum(one.offset for one in offsets.values()) == COUNT


@pytest.mark.parametrize(
    "settings",
    [
        {"partition.assignment.strategy": "range"},
        {"partition.assignment.strategy": "roundrobin"},
        {"partition.assignment.strategy": "cooperative-sticky"},
        {"group.protocol": "consumer"},
        {"group.protocol": "consumer", "group.remote.assignor": "range"},
    ],
    ids=lambda settings: "-".join(settings.values()),
)
async def test_members_of_librdkafka(broker: Broker, settings: dict[str, str]) -> None:
    def consume() -> set[bytes | None]:
        if settings.get("group.protocol") != "consumer":
            settings["heartbeat.interval.ms"] = "100"
        members = [
            ConfluentConsumer(
                {
                    "bootstrap.servers": broker.bootstrap_servers,
                    "group.id": "ck",
                    "auto.offset.reset": "earliest",
                    **settings,
                }
            )
            for _ in range(2)
        ]
        seen: set[bytes | None] = set()
        deadline = time.monotonic() + 30
        try:
            for member in members:
                member.subscribe(["orders"])
            while time.monotonic() < deadline and (
                len(seen) < COUNT or any(len(one.assignment()) != 2 for one in members)
            ):
                for member in members:
                    record = member.poll(0.02)
                    if record is not None:
                        assert record.error() is None
                        seen.add(record.value())
            assert all(len(one.assignment()) == 2 for one in members)
        finally:
            for member in members:
                member.close()
        return seen

    def administer() -> tuple[str, list[int]]:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        (group,) = admin.list_consumer_groups().result().valid
        asked = [ConsumerGroupTopicPartitions("ck")]
        (found,) = admin.list_consumer_group_offsets(asked).values()
        offsets = [one.offset for one in found.result().topic_partitions]
        for done in admin.delete_consumer_groups(["ck"]).values():
            done.result()
        assert not admin.list_consumer_groups().result().valid
        return group.group_id, offsets

    assert len(await asyncio.to_thread(consume)) == COUNT
    name, offsets = await asyncio.to_thread(administer)
    assert (name, sum(offsets)) == ("ck", COUNT)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_members_go_on_after_a_restart_of_everything(
    protocol: str, tmp_path: Path
) -> None:
    def started(port: int = 0) -> Broker:
        groups = GroupConfig(consumer_heartbeat_interval=0.1)
        return Broker(topics={"orders": 4}, data_dir=tmp_path, port=port, groups=groups)

    async with AsyncExitStack() as stack:
        async with started() as broker:
            member = ours(broker, "g", group_protocol=protocol)
            await stack.enter_async_context(member)
            seen = await stack.enter_async_context(reading(member))
            await until(lambda: len(member.assignment) == 4)
            before = member.statistics().generation, broker.control.members("g")
            port = broker.nodes[0].port
        async with started(port) as broker:
            async with Producer(broker.bootstrap_servers) as producer:
                for number in range(4):
                    await producer.send("orders", b"later", partition=number)
            await until(lambda: len(seen) == 4)
            await member.commit()
            after = member.statistics().generation, broker.control.members("g")
            assert after == before
            await stack.aclose()


async def test_a_group_of_librdkafka_changes_its_protocol_and_back(
    broker: Broker,
) -> None:
    def member(protocol: str) -> ConfluentConsumer:
        settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "ck",
            "group.protocol": protocol,
        }
        if protocol == "classic":
            settings["heartbeat.interval.ms"] = "100"
        consumer = ConfluentConsumer(settings)
        consumer.subscribe(["orders"])
        return consumer

    def shared(*members: ConfluentConsumer) -> None:
        deadline = time.monotonic() + 40
        while {len(one.assignment()) for one in members} != {4 // len(members)}:
            assert time.monotonic() < deadline
            for one in members:
                one.poll(0.02)

    def migrate() -> None:
        old = member("classic")
        shared(old)
        new = member("consumer")
        shared(old, new)
        old.close()
        shared(new)
        back = member("classic")
        shared(new, back)
        new.close()
        shared(back)
        back.close()

    await asyncio.to_thread(migrate)
