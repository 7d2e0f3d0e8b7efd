"""Groups that are moved to other offsets while their members and traffic run."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from contextlib import AsyncExitStack

import pytest

from kafkaio import (
    Consumer,
    Producer,
    RewindRefused,
    TopicPartition,
    UnknownTopicOrPartition,
)
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.integration.groups import java_member, member, numbers, reading, until

pytestmark = pytest.mark.timeout(120)

COUNT = 6
RECORDS = 20


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
async def name(real_kafka: Kafka, topic: TopicFactory) -> str:
    """A topic whose records have the values ``PARTITION/OFFSET``."""
    name = topic(partitions=COUNT)
    async with Producer(real_kafka.bootstrap_servers) as producer:
        for offset in range(RECORDS):
            for number in range(COUNT):
                value = b"%d/%d" % (number, offset)
                await producer.send(name, value, partition=number)
    return name


def values(number: int, *offsets: int) -> dict[bytes | None, int]:
    return {b"%d/%d" % (number, offset): 1 for offset in offsets}


@pytest.mark.parametrize("strategy", ["cooperative-sticky", "range"])
async def test_three_members_go_on_from_the_new_offsets(
    strategy: str, real_kafka: Kafka, name: str, group: str
) -> None:
    partitions = [TopicPartition(name, number) for number in range(COUNT)]
    async with AsyncExitStack() as stack:
        members: list[Consumer] = []
        for _ in range(3):
            consumer = member(
                real_kafka,
                name,
                group,
                group_protocol="classic",
                partition_assignment_strategy=[strategy],
            )
            members.append(await stack.enter_async_context(consumer))
        seen = await stack.enter_async_context(reading(*members))
        await until(lambda: [len(numbers(each)) for each in members] == [2, 2, 2])
        await until(lambda: len(seen) == COUNT * RECORDS)
        one, two, three = members
        for turn, consumer in enumerate((one, three)):
            for each in members:
                await each.commit()
            seen.clear()
            # Each time partitions of all three.
            chosen = [sorted(each.assignment)[turn] for each in members]
            to = dict.fromkeys(chosen, RECORDS - 5)
            missing = TopicPartition(name, COUNT)
            with pytest.raises(UnknownTopicOrPartition) as caught:
                await consumer.rewind({missing: 0, **to})
            assert (caught.value.item, caught.value.results) == (missing, to)
            assert not seen
            found = await two.committed(partitions)
            assert {tp: at.offset for tp, at in found.items() if at} == {
                tp: RECORDS - 5 if tp in chosen else RECORDS for tp in partitions
            }
            wanted: dict[bytes | None, int] = {}
            for tp in chosen:
                wanted |= values(tp.partition, *range(RECORDS - 5, RECORDS))
            await until(lambda wanted=wanted: seen.keys() == wanted.keys())
            await until(lambda: sum(len(numbers(each)) for each in members) == COUNT)
            assert seen == wanted
        # What the old owners had finished did not come after the rewind.
        for each in members:
            await each.commit()
        found = await two.committed(partitions)
        assert {at.offset for at in found.values() if at} == {RECORDS}


def in_order(count: int, jumps: Mapping[int, int]) -> list[int]:
    """So many offsets, one after the other but for the jumps, by their places."""
    offsets: list[int] = []
    for place in range(count):
        after = offsets[-1] + 1 if offsets else 0
        offsets.append(jumps.get(place, after))
    return offsets


@pytest.mark.parametrize("strategy", ["cooperative-sticky", "range"])
async def test_under_traffic_nothing_old_comes_after_it_and_nothing_is_left_out(
    strategy: str, real_kafka: Kafka, name: str, group: str
) -> None:
    handed: dict[TopicPartition, list[int]] = {
        TopicPartition(name, number): [] for number in range(COUNT)
    }
    jumps: dict[TopicPartition, dict[int, int]] = {tp: {} for tp in handed}

    async def read(consumer: Consumer) -> None:
        async for record in consumer:
            handed[record.topic_partition].append(record.offset)

    async def write() -> None:
        async with Producer(real_kafka.bootstrap_servers) as producer:
            while True:
                for number in range(COUNT):
                    await producer.send(name, b"x", partition=number)
                await asyncio.sleep(0.01)

    async with AsyncExitStack() as stack:
        members = [
            await stack.enter_async_context(
                member(
                    real_kafka,
                    name,
                    group,
                    group_protocol="classic",
                    partition_assignment_strategy=[strategy],
                )
            )
            for _ in range(3)
        ]
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        running = [tasks.create_task(read(each)) for each in members]
        running.append(tasks.create_task(write()))
        for turn in range(6):
            lengths = {tp: len(offsets) for tp, offsets in handed.items()}
            await until(lambda n=lengths: all(len(handed[tp]) > n[tp] for tp in n))
            back = {tp: max(0, handed[tp][-1] - 7) for tp in sorted(handed)[turn % 3 :]}
            await members[turn % 3].rewind(back)
            for tp, offset in back.items():
                jumps[tp][len(handed[tp])] = offset
        await asyncio.sleep(3)
        for each in running:
            each.cancel()
    for tp, offsets in handed.items():
        assert len(offsets) > max(jumps[tp])
        assert offsets == in_order(len(offsets), jumps[tp])


async def test_a_java_member_goes_along(
    real_kafka: Kafka, name: str, group: str
) -> None:
    strategy = ["cooperative-sticky"]
    ours = member(
        real_kafka,
        name,
        group,
        group_protocol="classic",
        partition_assignment_strategy=strategy,
    )
    async with ours, reading(ours) as seen:
        await until(lambda: len(seen) == COUNT * RECORDS)
        java = java_member(real_kafka, group, name, "cooperative-sticky")
        async with java as theirs:
            await until(lambda: len(theirs.assigned) == len(numbers(ours)) == 3)
            chosen = min(theirs.assigned)
            seen.clear()
            await ours.rewind({TopicPartition(name, chosen): RECORDS - 3})
            await until(lambda: len(seen) + len(theirs.records) >= 3)
            await until(lambda: theirs.assigned | numbers(ours) == set(range(COUNT)))
        read = {*seen, *(record.encode() for record in theirs.records)}
        assert read == values(chosen, *range(RECORDS - 3, RECORDS)).keys()


async def test_a_java_leader_does_not_listen(
    real_kafka: Kafka, name: str, group: str
) -> None:
    java = java_member(real_kafka, group, name, "cooperative-sticky")
    async with java as theirs:
        await until(lambda: len(theirs.assigned) == COUNT)
        ours = member(
            real_kafka,
            name,
            group,
            group_protocol="classic",
            partition_assignment_strategy=["cooperative-sticky"],
        )
        async with ours, reading(ours):
            await until(lambda: len(theirs.assigned) == len(numbers(ours)) == 3)
            with pytest.raises(RewindRefused, match="which cannot withhold"):
                await ours.rewind({TopicPartition(name, min(theirs.assigned)): 0})
            await until(lambda: theirs.assigned | numbers(ours) == set(range(COUNT)))


@pytest.mark.kafka_versions("4.0+")
async def test_where_the_brokers_divide_each_moves_its_own(
    real_kafka: Kafka, name: str, group: str
) -> None:
    one, two = (
        member(real_kafka, name, group, group_protocol="consumer") for _ in range(2)
    )
    async with one, two, reading(one, two) as seen:
        await until(lambda: len(numbers(one)) == len(numbers(two)) == 3)
        await until(lambda: len(seen) == COUNT * RECORDS)
        mine, theirs = min(one.assignment), min(two.assignment)
        seen.clear()
        with pytest.raises(RewindRefused, match=f"withhold {name}-{theirs.partition}"):
            await one.rewind({mine: 0, theirs: 0})
        assert not seen
        await one.rewind({mine: RECORDS - 4})
        await until(lambda: len(seen) == 4)
        assert seen == values(mine.partition, *range(RECORDS - 4, RECORDS))
        assert len(numbers(one)) == len(numbers(two)) == 3
