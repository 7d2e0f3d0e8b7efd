"""Dead letters of share groups, written by the broker as Kafka 4.4.0 does."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafkaio._records.batch import read_batches
from kafkaio.testing import Broker
from tests.unit.testing.share.members import (
    ACCEPT,
    GROUP,
    REJECT,
    RELEASE,
    TOPIC,
    shared,
)

LETTERS = "dlq.t"
ENABLED = {"errors.deadletterqueue.group.enable": "true"}
NAMED = {"errors.deadletterqueue.topic.name": LETTERS}
Headers = dict[str, str]


def letters(broker: Broker, topic: str = LETTERS) -> list[tuple[bytes | None, Headers]]:
    """Values and headers of the letters in a topic, without the prefix of the names."""
    if topic not in broker.topics:
        return []
    found = []
    for partition in broker.topics[topic].partitions:
        data = partition.log.read(0, 1 << 20)
        for batch in read_batches(data):
            for record in batch.decode(topic, partition.index):
                headers = {
                    name.removeprefix("__dlq.errors."): value.decode()
                    for name, value in record.headers
                    if value is not None
                }
                found.append((record.value, headers))
    return found


async def test_what_is_rejected_or_delivered_too_often_is_written() -> None:
    configs = NAMED | {"share.delivery.count.limit": 2}
    async with shared(5, configs=configs) as (broker, member):
        broker.create_topic(LETTERS, 2, configs=ENABLED)
        await member.fetch()
        await member.acknowledge((0, 0, ACCEPT), (1, 2, REJECT), (3, 3, RELEASE))
        await member.fetch()
        await member.acknowledge((3, 3, RELEASE))
        broker.control.skip_time(31)
        await member.fetch()
        broker.control.skip_time(31)
        rejected = "Offset rejected by client."
        too_often = "Offset delivery count exceeded the threshold."
        assert [
            (value, headers["offset"], headers["delivery.count"], headers["message"])
            for value, headers in letters(broker)
        ] == [
            (None, "1", "1", rejected),
            (None, "2", "1", rejected),
            (None, "3", "2", too_often),
            (None, "4", "2", too_often),
        ]
        _, headers = letters(broker)[0]
        assert (headers["topic"], headers["partition"]) == (TOPIC, "0")
        assert headers["group"] == GROUP


async def test_records_are_copied_on_demand() -> None:
    configs = NAMED | {"errors.deadletterqueue.copy.record.enable": "true"}
    async with shared(3, 1, configs=configs) as (broker, member):
        broker.create_topic(LETTERS, configs=ENABLED)
        await member.fetch()
        await member.acknowledge((1, 3, REJECT))
        assert [value for value, _ in letters(broker)] == [b"value"] * 3


@pytest.mark.parametrize(
    ("release", "topic", "configs", "group"),
    [
        ("4.3", LETTERS, ENABLED, NAMED),
        ("4.4", LETTERS, {}, NAMED),
        ("4.4", "letters", ENABLED, NAMED | {next(iter(NAMED)): "letters"}),
        ("4.4", LETTERS, ENABLED, {}),
        ("4.4", "other", ENABLED, NAMED),
    ],
)
async def test_else_nothing_is_written_and_nobody_is_told(
    release: str,
    topic: str,
    configs: Mapping[str, str],
    group: Mapping[str, object],
) -> None:
    async with shared(1, configs=group, as_version=release) as (broker, member):
        broker.create_topic(topic, configs=configs)
        await member.fetch()
        answer = await member.acknowledge((0, 0, REJECT))
        assert answer.responses[0].partitions[0].error_code == 0
        assert letters(broker, topic) == letters(broker) == []


async def test_the_topic_is_created_where_brokers_may() -> None:
    config = {"errors.deadletterqueue.auto.create.topics.enable": "true"}
    async with shared(1, configs=NAMED, config=config) as (broker, member):
        await member.fetch()
        await member.acknowledge((0, 0, REJECT))
        assert len(letters(broker)) == 1
