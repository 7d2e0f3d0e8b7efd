"""The admin clients of aiokafka and of `kafkaio.aiokafka` say the same, on Kafka.

`tests/unit/aiokafka/test_admin.py` compares single calls on the embedded broker.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Awaitable
from importlib import import_module
from typing import Any

import pytest

import kafkaio
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.support.patience import HANGS

pytestmark = [pytest.mark.timeout(120), pytest.mark.kafka_versions("2.8+")]


def plain(answer: Any) -> Any:
    if hasattr(answer, "to_object"):
        return answer.to_object()
    return [*map(plain, answer)] if isinstance(answer, list) else answer


async def outcome(call: Awaitable[Any], errors: Any) -> Any:
    """What a call brings, or the class of what it raises."""
    try:
        return plain(await call)
    except errors.KafkaError as error:
        return type(error).__name__


async def lives(package: str, servers: str, mark: str) -> list[Any]:
    """The answers to calls about a topic and a group, from beginning to end."""
    a, errors = import_module(f"{package}.admin"), import_module(f"{package}.errors")
    resource = import_module(f"{package}.admin.config_resource").ConfigResource
    topic, group = f"t-{mark}", f"g-{mark}"
    tp = kafkaio.TopicPartition(topic, 0)
    admin = a.AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    found = []

    async def note(call: Awaitable[Any]) -> None:
        found.append(re.sub(mark, "MARK", repr(await outcome(call, errors))))

    try:
        configs = {"retention.ms": "100000"}
        await note(admin.create_topics([a.NewTopic(topic, 2, 1, None, configs)]))
        async with kafkaio.Producer(servers) as producer:
            for number in range(5):
                await producer.send(topic, b"%d" % number, partition=0)
        await note(admin.create_topics([a.NewTopic(topic, 2, 1)]))
        await note(admin.create_topics([a.NewTopic("bad/name", 1, 1)]))
        await note(admin.describe_configs([resource("topic", topic, configs)]))
        await note(admin.describe_configs([resource("topic", topic, configs)], True))
        await note(
            admin.alter_configs([resource("topic", topic, {"retention.ms": "700000"})])
        )
        # A broker learns of the change some time after the controller has answered.
        async with asyncio.timeout(HANGS):
            asked = [resource("topic", topic, configs)]
            while "700000" not in str(await admin.describe_configs(asked)):
                pass
        await note(admin.describe_configs([resource("topic", topic, configs)]))
        await note(admin.create_partitions({topic: a.NewPartitions(1)}))
        await note(admin.create_partitions({topic: a.NewPartitions(4)}))
        await note(admin.describe_consumer_groups([group]))
        await note(admin.list_consumer_group_offsets(group))
        for offsets in await life_of_a_group(admin, servers, group, tp):
            await note(offsets)
        await note(admin.delete_records({tp: a.RecordsToDelete(2)}))
        await note(admin.delete_records({tp: a.RecordsToDelete(99)}))
        await note(admin.delete_records({tp: a.RecordsToDelete(-1)}))
        assert topic in await admin.list_topics()
        await note(admin.delete_topics([topic]))
        await note(admin.delete_topics([f"{topic}-missing"]))
    finally:
        await admin.close()
    return found


async def life_of_a_group(
    admin: Any, servers: str, group: str, tp: kafkaio.TopicPartition
) -> list[Awaitable[Any]]:
    """Look at a group while it has a member; return the calls for its offsets."""
    async with kafkaio.Consumer(
        servers,
        topics=tp.topic,
        group_id=group,
        client_id="me",
        group_protocol="classic",
        enable_auto_commit=False,
        partition_assignment_strategy=["range"],
    ) as consumer:
        await consumer.commit({tp: kafkaio.OffsetAndMetadata(3, "text")})
        (answer,) = await admin.describe_consumer_groups([group])
        code, name, state, kind, assignor, members = answer.groups[0][:6]
        assert (code, name, state, kind) == (0, group, "Stable", "consumer")
        assert (assignor, [each[1] for each in members]) == ("range", ["me"])
        assert (group, "consumer") in await admin.list_consumer_groups()
    return [
        admin.list_consumer_group_offsets(group),
        admin.list_consumer_group_offsets(group, partitions=[tp]),
    ]


async def test_both_admin_clients_say_the_same(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    pytest.importorskip("aiokafka")
    async with kafkaio.Client(real_kafka.bootstrap_servers) as client:
        # aiokafka does not wait until the cluster has a coordinator at all.
        await client.committed("any", [kafkaio.TopicPartition(topic(), 0)])
    theirs, ours = [
        await lives(package, real_kafka.bootstrap_servers, uuid.uuid4().hex[:12])
        for package in ("aiokafka", "kafkaio.aiokafka")
    ]
    assert ours == theirs
