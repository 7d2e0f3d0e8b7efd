"""Partitions that are added begin at their start, also with ``latest``."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any

import pytest

from kafkaio._client.client import Client
from kafkaio._config import ClientConfig, ConsumerConfig
from kafkaio._consumer import Consumer
from kafkaio._producer import Producer
from kafkaio.admin import Admin, NewTopic
from kafkaio.errors import OffsetOutOfRange
from kafkaio.testing import Broker
from kafkaio.types import GroupMetadata, OffsetAndMetadata, Record, TopicPartition

PROTOCOLS = pytest.mark.parametrize("protocol", ["consumer", "classic"])


class Site:
    """An embedded broker, a producer, and consumers that are closed at the end."""

    def __init__(self, broker: Broker, producer: Producer) -> None:
        self.broker = broker
        self._producer = producer
        self._sizes = {"t": 1}
        self._made: list[Consumer] = []

    def grow(self, topic: str, size: int) -> None:
        more = size - self._sizes.get(topic, 1)
        self._sizes[topic] = size
        self.broker.control.add_partitions(topic, more)

    async def consumer(self, **options: Any) -> Consumer:
        own = {
            name: options.pop(name)
            for name in ("topics", "assign", "observer")
            if name in options
        }
        if "assign" not in own:
            own.setdefault("topics", "t")
        base = {"group_id": "g", "metadata_max_age_ms": 1000}
        config = ConsumerConfig.of(self.broker.bootstrap_servers, base | options)
        made = Consumer.from_config(config, dial=self.broker.dial, **own)
        self._made.append(made)
        await made.start()
        return made

    async def send(self, topic: str, partition: int, *values: bytes) -> None:
        for value in values:
            await self._producer.send(topic, value, partition=partition)

    async def close(self) -> None:
        for each in self._made:
            await each.close(timeout=1)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Broker(topics={"t": 1}, memory_transport=True) as broker:
        config = ClientConfig.of(broker.bootstrap_servers, {"metadata_max_age_ms": 100})
        async with (
            Client.from_config(config, dial=broker.dial) as client,
            Producer(client) as producer,
        ):
            site = Site(broker, producer)
            yield site
            await site.close()


async def values(consumer: Consumer, count: int, limit: float = 30) -> list[bytes]:
    found: list[Record] = []
    async with asyncio.timeout(limit):
        while len(found) < count:
            found += (await consumer.poll(timeout=1)).records
    return [record.value or b"" for record in found]


async def nothing(consumer: Consumer, seconds: float = 5) -> None:
    assert (await consumer.poll(timeout=seconds)).records == []


async def until(condition: Callable[[], bool], consumer: Consumer) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await consumer.poll(timeout=0.1)


def has(consumer: Consumer, *partitions: tuple[str, int]) -> Callable[[], bool]:
    return lambda: {TopicPartition(*tp) for tp in partitions} <= consumer.assignment


@PROTOCOLS
async def test_a_partition_that_is_added_is_read_from_its_start(
    site: Site, protocol: str
):
    consumer = await site.consumer(group_protocol=protocol)
    site.grow("t", 2)
    await site.send("t", 1, b"1", b"2", b"3")
    assert await values(consumer, 3) == [b"1", b"2", b"3"]


@PROTOCOLS
async def test_so_is_a_topic_that_is_created(site: Site, protocol: str):
    consumer = await site.consumer(group_protocol=protocol, topics=["t", "later"])
    await site.send("later", 0, b"1", b"2")
    assert await values(consumer, 2) == [b"1", b"2"]


@PROTOCOLS
async def test_so_is_a_topic_that_comes_to_match_a_pattern(site: Site, protocol: str):
    await site.send("t", 0, b"old")
    consumer = await site.consumer(
        group_protocol=protocol, topics=re.compile("t|later.*")
    )
    await site.send("later.1", 0, b"1", b"2")
    site.grow("t", 2)
    await site.send("t", 1, b"3")
    # A coordinator that matches patterns looks at them now and then.
    assert sorted(await values(consumer, 3, 900)) == [b"1", b"2", b"3"]


@PROTOCOLS
async def test_the_first_start_of_a_group_begins_at_the_end(site: Site, protocol: str):
    site.grow("t", 4)
    for number in range(4):
        await site.send("t", number, b"old")
    one = await site.consumer(group_protocol=protocol)
    two = await site.consumer(group_protocol=protocol, topics=re.compile("t"))
    await until(lambda: len(one.assignment) == 2, one)
    await until(lambda: len(two.assignment) == 2, two)
    await nothing(one)
    await nothing(two)


@PROTOCOLS
async def test_what_was_added_while_the_group_was_down_is_new(
    site: Site, protocol: str
):
    await site.send("t", 0, b"old")
    one = await site.consumer(group_protocol=protocol)
    await one.close()
    site.grow("t", 3)
    await site.send("t", 1, b"1")
    await site.send("t", 2, b"2")
    again = await site.consumer(group_protocol=protocol)
    assert sorted(await values(again, 2)) == [b"1", b"2"]


@PROTOCOLS
async def test_a_member_that_joins_later_begins_where_the_group_has_no_offset(
    site: Site, protocol: str
):
    # It has the partition from a member that read it, and committed none of it.
    options = {"group_protocol": protocol, "enable_auto_commit": False}
    one = await site.consumer(**options)
    await site.send("t", 0, b"0")
    assert await values(one, 1) == [b"0"]
    await one.commit([TopicPartition("t", 0)])
    site.grow("t", 2)
    await site.send("t", 1, b"1", b"2")
    assert await values(one, 2) == [b"1", b"2"]
    two = await site.consumer(**options)
    await until(lambda: len(two.assignment) == len(one.assignment) == 1, one)
    owner = one if has(one, ("t", 1))() else two
    if owner is one:
        await one.close()
        owner = two
        await until(has(two, ("t", 1)), two)
    assert await values(owner, 2) == [b"1", b"2"]


@PROTOCOLS
async def test_one_before_what_was_committed_is_not_new(site: Site, protocol: str):
    # The group commits record by record, and this partition had none.
    site.grow("t", 3)
    await site.send("t", 1, b"old")
    options = {"group_protocol": protocol, "enable_auto_commit": False}
    one = await site.consumer(**options)
    await site.send("t", 2, b"2")
    await one.commit(await anext(one))
    await one.close()
    await nothing(await site.consumer(**options))


@PROTOCOLS
async def test_a_topic_created_again_is_read_from_its_start(site: Site, protocol: str):
    await site.send("t", 0, *[b"old"] * 5)
    consumer = await site.consumer(group_protocol=protocol)
    config = ClientConfig.of(site.broker.bootstrap_servers, {})
    async with (
        Client.from_config(config, dial=site.broker.dial) as client,
        Admin(client) as admin,
    ):
        await admin.delete_topics(["t"])
    await site.send("t", 0, b"1", b"2")
    assert await values(consumer, 2) == [b"1", b"2"]


@pytest.mark.parametrize("how", ["consumer", "classic", "assign"])
@pytest.mark.parametrize("policy", ["latest", "earliest"])
async def test_so_it_is_if_it_has_more_records_than_were_read(
    site: Site, how: str, policy: str
):
    """The position is inside the log, but it is of another one."""
    # A commit on its way would be one of the new topic.
    options: dict[str, Any] = {"group_protocol": how, "enable_auto_commit": False}
    if how == "assign":
        options = {"assign": [TopicPartition("t", 0)], "group_id": None}
    consumer = await site.consumer(auto_offset_reset=policy, **options)
    await site.send("t", 0, *[b"old"] * 3)
    assert await values(consumer, 3) == [b"old"] * 3
    config = ClientConfig.of(site.broker.bootstrap_servers, {})
    async with (
        Client.from_config(config, dial=site.broker.dial) as client,
        Admin(client) as admin,
    ):
        await admin.delete_topics(["t"])
        await admin.create_topics([NewTopic("t", 1)])
    new = [b"%d" % n for n in range(8)]
    await site.send("t", 0, *new)
    assert await values(consumer, 8) == new
    await nothing(consumer)


@PROTOCOLS
async def test_the_option_decides(site: Site, protocol: str):
    consumer = await site.consumer(
        group_protocol=protocol, auto_offset_reset_new_partitions="latest"
    )
    site.grow("t", 2)
    await site.send("t", 1, b"before")
    await until(has(consumer, ("t", 1)), consumer)
    await consumer.position(TopicPartition("t", 1))
    await site.send("t", 1, b"after")
    assert await values(consumer, 1) == [b"after"]


async def test_the_option_decides_without_a_group(site: Site):
    consumer = await site.consumer(
        group_id=None, auto_offset_reset_new_partitions="none"
    )
    site.grow("t", 2)
    with pytest.raises(OffsetOutOfRange, match="t-1"):
        await until(lambda: False, consumer)


async def test_none_is_silent_about_what_is_certain_alone(site: Site):
    await site.send("t", 0, b"0")
    options: dict[str, Any] = {"auto_offset_reset": "none"}
    first = await site.consumer(auto_offset_reset="earliest")
    assert await values(first, 1) == [b"0"]
    await first.commit()
    await first.close()
    site.grow("t", 2)
    second = await site.consumer(**options)
    with pytest.raises(OffsetOutOfRange, match="t-1"):  # perhaps it was deleted
        await second.poll(timeout=1)
    second.seek_to_beginning(TopicPartition("t", 1))
    site.grow("t", 3)
    await site.send("t", 2, b"2")
    assert await values(second, 1) == [b"2"]


async def test_fixed_partitions_are_never_new(site: Site):
    fixed = [TopicPartition("t", 0), TopicPartition("t", 1)]
    site.grow("t", 2)
    await site.send("t", 1, b"old")
    one = await site.consumer(assign=fixed[:1])
    await one.commit({fixed[0]: 0})
    await one.close()
    await nothing(await site.consumer(assign=fixed))


class Memory:
    """An offset store."""

    def __init__(self) -> None:
        self._offsets: dict[TopicPartition, OffsetAndMetadata] = {}

    async def load(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        return {tp: self._offsets[tp] for tp in partitions if tp in self._offsets}

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        self._offsets |= offsets


async def test_an_offset_store_is_asked_for_the_offsets(site: Site):
    options = {"offset_store": Memory()}
    one = await site.consumer(**options)
    await site.send("t", 0, b"0")
    assert await values(one, 1) == [b"0"]
    await one.commit()
    await one.close()
    site.grow("t", 2)
    await site.send("t", 1, b"1")
    assert await values(await site.consumer(**options), 1) == [b"1"]


async def test_observers_are_told(site: Site):
    told: list[Collection[TopicPartition]] = []

    class Observer:
        def new_partitions(self, partitions: Collection[TopicPartition]) -> None:
            told.append(partitions)

    consumer = await site.consumer(observer=Observer())
    assert told == []
    site.grow("t", 2)
    await until(has(consumer, ("t", 1)), consumer)
    await consumer.position(TopicPartition("t", 1))
    assert told == [[TopicPartition("t", 1)]]
