"""Commits of deleted topics, and behind markers of transactions, on a real Kafka."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

import kafkaio
from kafkaio.errors import UnknownTopicOrPartition
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import TopicPartition
from tests.support.patience import HANGS, NEVER_MS

pytestmark = pytest.mark.timeout(120)

NEWER = pytest.mark.kafka_versions("4.0+")
PROTOCOLS: list[Any] = [
    pytest.param({"group_protocol": "consumer"}, marks=NEWER, id="KIP-848"),
    pytest.param({"group_protocol": "classic"}, id="cooperative"),
    pytest.param(
        {"group_protocol": "classic", "partition_assignment_strategy": "range"},
        id="range",
    ),
]


async def finish(consumer: kafkaio.Consumer, count: int) -> None:
    """Read so many records, and finish them by a further poll."""
    async with asyncio.timeout(HANGS):
        seen = 0
        while seen < count:
            seen += len((await consumer.poll(timeout=0.5)).records)
        await consumer.poll(timeout=0)


async def refused(consumer: kafkaio.Consumer, offsets: Any) -> None:
    """Commit until the coordinator knows that a topic is gone, and says so."""
    async with asyncio.timeout(HANGS):
        while True:
            await consumer.commit(offsets)


async def is_committed(
    consumer: kafkaio.Consumer, tp: TopicPartition, offset: int
) -> bool:
    at = (await consumer.committed([tp]))[tp]
    return at is not None and at.offset == offset


@pytest.mark.parametrize("options", PROTOCOLS)
async def test_a_deleted_topic_is_released_and_the_other_committed(
    real_kafka: Kafka, topic: TopicFactory, options: dict[str, Any]
) -> None:
    gone, kept = TopicPartition(topic(), 0), TopicPartition(topic(), 0)
    group = f"deleted-{uuid.uuid4().hex[:8]}"
    servers = real_kafka.bootstrap_servers
    async with (
        kafkaio.Admin(servers) as admin,
        kafkaio.Producer(servers, allow_auto_create_topics=False) as producer,
        kafkaio.Consumer(
            servers,
            topics=[gone.topic, kept.topic],
            group_id=group,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=600_000,
            metadata_max_age_ms=1000,
            allow_auto_create_topics=False,
            **options,
        ) as consumer,
    ):
        for tp in (gone, kept):
            await producer.send(tp.topic, b"x", partition=tp.partition)
        await finish(consumer, 2)
        await admin.delete_topics([gone.topic])
        with pytest.raises(UnknownTopicOrPartition, match=gone.topic):
            await refused(consumer, {gone: 1, kept: 1})
        async with asyncio.timeout(HANGS):
            while consumer.assignment != {kept}:
                await consumer.poll(timeout=0.1)
        await producer.send(kept.topic, b"y", partition=0)
        await finish(consumer, 1)
        async with asyncio.timeout(HANGS):
            await consumer.close(NEVER_MS / 1000)  # it does not wait for the other
        offsets = (await admin.list_consumer_group_offsets([group]))[group]
        assert offsets[kept].offset == 2


@NEWER
async def test_a_deleted_topic_does_not_stop_transactions(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    gone, kept, out = topic(), topic(), topic()
    name = f"deleted-{uuid.uuid4().hex[:8]}"
    servers = real_kafka.bootstrap_servers
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def copy(tx: Any, records: list[Any]) -> None:
        for record in records:
            await tx.send(out, record.value)
            if record.topic == gone:
                has_begun.set()
                await may_end.wait()

    async with (
        kafkaio.Admin(servers) as admin,
        kafkaio.Producer(servers, allow_auto_create_topics=False) as writer,
        kafkaio.Producer(servers, transactional_id=name) as producer,
        kafkaio.Consumer(
            servers,
            topics=[gone, kept],
            group_id=name,
            group_protocol="classic",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            allow_auto_create_topics=False,
        ) as consumer,
    ):
        working = asyncio.ensure_future(kafkaio.exactly_once(consumer, producer, copy))
        await writer.send(gone, b"x")
        await has_begun.wait()
        await admin.delete_topics([gone])
        await writer.send(kept, b"y")
        may_end.set()
        async with asyncio.timeout(HANGS):
            while not await is_committed(  # noqa: ASYNC110  (a broker changes it)
                consumer, TopicPartition(kept, 0), 1
            ):
                await asyncio.sleep(0.1)
        await consumer.close()
        await working


@pytest.mark.parametrize("isolation_level", ["read_committed", "read_uncommitted"])
async def test_a_commit_of_the_last_batch_leaves_no_lag(
    real_kafka: Kafka, topic: TopicFactory, isolation_level: Any
) -> None:
    name = topic()
    servers = real_kafka.bootstrap_servers
    async with (
        kafkaio.Admin(servers) as admin,
        kafkaio.Producer(servers, transactional_id=name) as producer,
    ):
        for _ in range(2):
            async with producer.transaction() as tx:
                await tx.send(name, b"x")
        async with kafkaio.Consumer(
            servers,
            topics=name,
            group_id=name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level=isolation_level,
        ) as consumer:
            async with asyncio.timeout(HANGS):
                async for batch in consumer.batches(max_records=2, max_wait=5):
                    await consumer.commit(batch)
                    if batch.last_offset == 2:
                        break
        assert (await admin.lag([name]))[name].total == 0
