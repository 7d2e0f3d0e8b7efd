"""Groups of old consumers, which kept their offsets in a real ZooKeeper."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from kazoo import client as kazoo

from kafkaio import (
    DualOffsetStore,
    KafkaOffsetStore,
    OffsetAndMetadata,
    OffsetStore,
    Producer,
    TopicPartition,
    ZooKeeperOffsetStore,
)
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka._launcher import Launcher
from kafkaio.testing.kafka._releases import find_release
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.integration.groups import member, reading, until
from tests.support.kafka.zookeeper import ZooKeeper

pytestmark = pytest.mark.timeout(120)

COUNT, RECORDS = 3, 10


@pytest.fixture(scope="module", params=["2.1", "2.8"])
def zookeeper(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of ZooKeeper 3.4 or 3.5."""
    launcher = Launcher(find_release(request.param), "128m", fast=True)
    try:
        launcher.prepare()
        server = ZooKeeper(launcher)
        server.start(60.0)
        yield server.connect
    finally:
        launcher.close()


def leave_behind(zookeeper: str, group: str, partition: TopicPartition) -> None:
    """What a high-level consumer of Kafka 0.8 left that has read three records."""
    client = kazoo.KazooClient(hosts=zookeeper)
    client.start(30)
    try:
        path = f"/consumers/{group}/offsets/{partition.topic}/{partition.partition}"
        client.create(path, b"3", makepath=True)
    finally:
        client.stop()
        client.close()


async def test_an_old_group_moves_to_kafka_and_back(
    zookeeper: str, real_kafka: Kafka, topic: TopicFactory
) -> None:
    name, group = topic(partitions=COUNT), f"group-{uuid.uuid4().hex[:8]}"
    partitions = [TopicPartition(name, number) for number in range(COUNT)]
    for tp in partitions[:2]:
        leave_behind(zookeeper, group, tp)
    there, kafka = ZooKeeperOffsetStore(zookeeper), KafkaOffsetStore()

    async def read(store: OffsetStore | None, count: int) -> set[bytes | None]:
        async with member(real_kafka, name, group, offset_store=store) as consumer:
            async with reading(consumer) as seen:
                await until(lambda: len(seen) >= count)
            assert set(seen.values()) <= {1}
            await consumer.commit()
            found = await consumer.committed(partitions)
            ends = await consumer.end_offsets(partitions)
            assert {tp: at.offset for tp, at in found.items() if at} == ends
        return set(seen)

    async def write(offset: int) -> set[bytes | None]:
        async with Producer(real_kafka.bootstrap_servers) as producer:
            for tp in partitions:
                value = b"%d/%d" % (tp.partition, offset)
                await producer.send(name, value, partition=tp.partition)
        return {b"%d/%d" % (tp.partition, offset) for tp in partitions}

    written = set[bytes | None]()
    for offset in range(RECORDS):
        written |= await write(offset)
    old = {b"%d/%d" % (n, offset) for n in range(2) for offset in range(3)}
    # Where the old consumers were; the partition they never had, from its start.
    assert await read(DualOffsetStore(there, kafka), 3 * RECORDS - 6) == written - old
    new = await write(RECORDS)
    assert await read(DualOffsetStore(kafka, there), COUNT) == new
    new = await write(RECORDS + 1)
    assert await read(None, COUNT) == new
    # Two steps back there is everything but what was committed since.
    assert await read(DualOffsetStore(there, kafka), COUNT) == new


async def test_nobody_answers(real_kafka: Kafka, topic: TopicFactory) -> None:
    store = ZooKeeperOffsetStore("127.0.0.1:1", timeout=0.5)
    with pytest.raises(Exception, match="did not read offsets"):
        async with member(real_kafka, topic(), "g", offset_store=store) as consumer:
            await consumer.poll(timeout=30)


def test_the_numbers_are_those_of_old_consumers(zookeeper: str) -> None:
    client = kazoo.KazooClient(hosts=zookeeper)
    client.start(30)
    try:
        tp, group = TopicPartition("t", 0), f"group-{uuid.uuid4().hex[:8]}"
        ZooKeeperOffsetStore(zookeeper)._commit(group, {tp: OffsetAndMetadata(2**33)})
        data, _ = client.get(f"/consumers/{group}/offsets/t/0")
        assert data == b"8589934592"
    finally:
        client.stop()
        client.close()
