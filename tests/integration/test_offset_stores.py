"""Groups that keep their offsets elsewhere than in Kafka."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from kafkaio import (
    Consumer,
    DualOffsetStore,
    FileOffsetStore,
    KafkaOffsetStore,
    OffsetStore,
    Producer,
    SQLiteOffsetStore,
    TopicPartition,
)
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.integration.groups import member, numbers, reading, until

pytestmark = pytest.mark.timeout(120)

COUNT = 4


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
async def producer(real_kafka: Kafka) -> AsyncIterator[Producer]:
    async with Producer(real_kafka.bootstrap_servers) as producer:
        yield producer


async def committed(kafka: Kafka, group: str, partition: TopicPartition) -> int | None:
    """What Kafka itself has."""
    async with Consumer(
        kafka.bootstrap_servers,
        assign=[partition],
        group_id=group,
        enable_auto_commit=False,
    ) as consumer:
        found = (await consumer.committed([partition]))[partition]
        return None if found is None else found.offset


@pytest.mark.parametrize("make", [FileOffsetStore, SQLiteOffsetStore])
async def test_partitions_change_hands_without_loss_or_repetition(
    make: Callable[[Path], OffsetStore],
    real_kafka: Kafka,
    topic: TopicFactory,
    group: str,
    producer: Producer,
    tmp_path: Path,
) -> None:
    name = topic(partitions=COUNT)
    store = make(tmp_path / "offsets")
    wanted = {b"%d" % number for number in range(120)}
    one = member(real_kafka, name, group, offset_store=store)
    two = member(real_kafka, name, group, offset_store=make(tmp_path / "offsets"))
    async with one, reading(one) as first:
        for number in range(60):
            await producer.send(name, b"%d" % number, partition=number % COUNT)
        async with two, reading(two) as second:
            await until(lambda: len(numbers(one)) == len(numbers(two)) == COUNT // 2)
            for number in range(60, 120):
                await producer.send(name, b"%d" % number, partition=number % COUNT)
            await until(lambda: first.keys() | second.keys() == wanted)
            assert {*first.values(), *second.values()} == {1}
            assert not first.keys() & second.keys()
    # All left in order, so everything is committed, and none of it in Kafka.
    partitions = [TopicPartition(name, number) for number in range(COUNT)]
    async with member(real_kafka, name, group, offset_store=store) as third:
        found = await third.committed(partitions)
        assert {at.offset for at in found.values() if at} == {120 // COUNT}
        assert len(found) == COUNT
    assert await committed(real_kafka, group, partitions[0]) is None


async def test_from_kafka_to_another_store_and_back(
    real_kafka: Kafka,
    topic: TopicFactory,
    group: str,
    producer: Producer,
    tmp_path: Path,
) -> None:
    name = topic(partitions=1)
    kafka, other = KafkaOffsetStore(), SQLiteOffsetStore(tmp_path / "offsets")
    there: list[OffsetStore | None] = [
        None,
        DualOffsetStore(kafka, other),
        DualOffsetStore(other, kafka),
        other,
    ]
    back: list[OffsetStore | None] = [
        DualOffsetStore(other, kafka),
        DualOffsetStore(kafka, other),
        kafka,
    ]
    number = 0
    for store in [*there, *back]:
        for extra in range(3):
            await producer.send(name, b"%d" % (number + extra), partition=0)
        consumer = member(real_kafka, name, group, offset_store=store)
        async with consumer, reading(consumer) as seen:
            await until(lambda seen=seen: len(seen) == 3)  # type: ignore[misc]  # its own
        assert seen == {b"%d" % (number + extra): 1 for extra in range(3)}
        number += 3
        expected = number - 3 if store is other else number
        partition = TopicPartition(name, 0)
        assert await committed(real_kafka, group, partition) == expected
