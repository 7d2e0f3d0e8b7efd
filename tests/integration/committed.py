"""What readers with read_committed see of a topic, ours and librdkafka's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import confluent_kafka

from kafkaio import Client, Consumer, Record, TopicPartition
from kafkaio._client import Controller
from kafkaio.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from tests.support.patience import HANGS

_FEATURE = "transaction.version"
_UPGRADE, _SAFE_DOWNGRADE = 1, 2


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, index) for index in range(count)]


async def settled(servers: str, topic: str, partitions: int) -> None:
    """Wait until no transaction is open on a topic."""
    tps = partitions_of(topic, partitions)
    async with (
        asyncio.timeout(HANGS),
        Consumer(servers, assign=tps) as all_of_it,
        Consumer(servers, assign=tps, isolation_level="read_committed") as stable,
    ):
        # Every question is a round trip, so this leaves the broker its time.
        while await all_of_it.end_offsets(tps) != await stable.end_offsets(tps):
            pass


async def read_whole(
    servers: str, tps: Sequence[TopicPartition], isolation_level: str
) -> list[Record]:
    """Every record that a consumer of kafkaio reads, up to the end of each log."""
    found: list[Record] = []
    async with (
        asyncio.timeout(HANGS),
        Consumer(
            servers,
            assign=tps,
            auto_offset_reset="earliest",
            isolation_level=isolation_level,
        ) as consumer,
    ):
        ends = await consumer.end_offsets(tps)
        while any([await consumer.position(tp) < ends[tp] for tp in tps]):
            found += (await consumer.poll(timeout=0.1)).records
    return found


async def ours(servers: str, topic: str, partitions: int = 1) -> list[bytes]:
    """The values that a consumer of kafkaio reads, up to the last stable offset."""
    tps = partitions_of(topic, partitions)
    found = await read_whole(servers, tps, "read_committed")
    return sorted(record.value or b"" for record in found)


def _librdkafka(servers: str, topic: str, partitions: int) -> list[list[bytes]]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign(
        [
            confluent_kafka.TopicPartition(
                topic, index, confluent_kafka.OFFSET_BEGINNING
            )
            for index in range(partitions)
        ]
    )
    found: list[list[bytes]] = [[] for _ in range(partitions)]
    at_end: set[int] = set()
    try:
        while len(at_end) < partitions:
            message = consumer.poll(30)
            assert message is not None, "nothing came"
            error = message.error()
            partition = message.partition() or 0
            if error is None:
                found[partition].append(message.value() or b"")
            else:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                at_end.add(partition)
    finally:
        consumer.close()
    return found


async def librdkafkas_order(
    servers: str, topic: str, partitions: int = 1
) -> list[list[bytes]]:
    """The values that confluent_kafka's consumer reads, by partition, in order."""
    return await asyncio.to_thread(_librdkafka, servers, topic, partitions)


async def librdkafkas(servers: str, topic: str, partitions: int = 1) -> list[bytes]:
    """The values that confluent_kafka's consumer reads."""
    found = await librdkafkas_order(servers, topic, partitions)
    return sorted(value for values in found for value in values)


async def assert_committed(
    servers: str, topic: str, expected: Iterable[bytes], partitions: int = 1
) -> None:
    """Both readers see exactly these values, once no transaction is open."""
    await settled(servers, topic, partitions)
    values = sorted(expected)
    assert await ours(servers, topic, partitions) == values
    assert await librdkafkas(servers, topic, partitions) == values


async def group_offsets(
    servers: str, group: str, topic: str, partitions: int = 1
) -> list[int | None]:
    """What a group has committed; an open transaction's offsets are waited for."""
    tps = partitions_of(topic, partitions)
    # It looks only: by itself it would commit where it begins to read.
    async with Consumer(
        servers, group_id=group, assign=tps, enable_auto_commit=False
    ) as consumer:
        found = await consumer.committed(tps)
    at = [found[tp] for tp in tps]
    return [None if each is None else each.offset for each in at]


def _librdkafkas_offsets(
    servers: str, group: str, topic: str, partitions: int
) -> dict[int, int]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": group}
    )
    try:
        found = consumer.committed(
            [
                confluent_kafka.TopicPartition(topic, index)
                for index in range(partitions)
            ],
            timeout=30,
        )
    finally:
        consumer.close()
    return {one.partition: one.offset for one in found if one.offset >= 0}


async def librdkafkas_offsets(
    servers: str, group: str, topic: str, partitions: int
) -> dict[int, int]:
    """What a group has committed, as confluent_kafka's consumer is told."""
    return await asyncio.to_thread(
        _librdkafkas_offsets, servers, group, topic, partitions
    )


async def set_level(servers: str, level: int) -> None:
    """Finalize a level of ``transaction.version``, and wait until brokers tell it."""
    async with asyncio.timeout(HANGS), Client(servers) as client:
        before = client._cluster.features.level(_FEATURE)
        if level == before:
            return
        how = _UPGRADE if level > before else _SAFE_DOWNGRADE
        update = FeatureUpdateKey(
            feature=_FEATURE, max_version_level=level, upgrade_type=how
        )
        request = UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update])
        answer = await client.request(request, Controller)
        assert answer.error_code == 0, answer
    async with asyncio.timeout(HANGS):
        while before != level:
            async with Client(servers) as client:
                before = client._cluster.features.level(_FEATURE)
