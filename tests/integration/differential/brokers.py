"""The two brokers, with the same settings where they have to do with answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

from kafkaio.protocol.messages import (
    CreateTopicsRequest,
    DescribeConfigsRequest,
    MetadataRequest,
)
from kafkaio.protocol.messages.create_topics import CreatableTopic
from kafkaio.protocol.messages.describe_configs import DescribeConfigsResource
from kafkaio.protocol.messages.metadata import MetadataRequestTopic
from kafkaio.testing import Broker
from kafkaio.testing.kafka._properties import Value
from tests.integration.differential.offsets import PARTITIONS, TOPICS
from tests.integration.differential.pair import Side
from tests.support.kafka import Kafka

#: The source of a config that is from ``server.properties``.
STATIC: Final = 4
#: Static configs that say where a broker is; no two are in one place.
PLACES: Final = frozenset(
    {
        "advertised.listeners",
        "controller.listener.names",
        "controller.quorum.voters",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dirs",
        "process.roles",
    }
)
#: What differs from the quick settings that a real Kafka of ours has for tests.
_PROPERTIES: Final[Mapping[str, Value]] = {
    "broker.rack": "r1",
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.assignor.offload.enable": False,
    "group.consumer.heartbeat.interval.ms": 5000,
    "group.consumer.session.timeout.ms": 45_000,
    "offsets.topic.num.partitions": 50,
    "group.min.session.timeout.ms": 6000,
    "group.consumer.migration.policy": "bidirectional",
    "group.share.assignment.interval.ms": 0,
    "group.share.min.record.lock.duration.ms": 1000,
}


def real() -> Kafka:
    """Return a real Kafka of one node that was not started yet."""
    return Kafka(config=_PROPERTIES)


def real_nodes() -> Kafka:
    """Return a real Kafka of three nodes that was not started yet."""
    own_racks = {name: v for name, v in _PROPERTIES.items() if name != "broker.rack"}
    return Kafka(brokers=3, config=own_racks)


def nodes_beside() -> Broker:
    """Return an embedded broker of three nodes with the same ids and racks."""
    return Broker(nodes=3, first_node_id=1, racks=["r1", "r2", "r3"])


@asynccontextmanager
async def beside(servers: str) -> AsyncIterator[Broker]:
    """Run an embedded broker of the same static configs and topics, with the same ids.

    With them, because Java's maps go through topics in the order of their ids, and
    the uniform assignor follows it.

    Args:
        servers: where the real broker is; topics that it lacks are created.
    """
    side = Side(servers)
    try:
        ids = await _topics(side)
        config = await _static_configs(side)
    finally:
        side.close()
    broker = Broker(config=config)
    async with broker:
        for name, topic_id in ids.items():
            broker.create_topic(name, PARTITIONS, 1, topic_id=topic_id)
        yield broker


async def _static_configs(side: Side) -> dict[str, str]:
    """What is in the ``server.properties`` of a real broker, but for its places."""
    resource = DescribeConfigsResource(
        resource_type=4, resource_name="1", configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (found,) = (await side.ask(request, 4)).results
    return {
        one.name: one.value or ""
        for config in found.configs
        for one in config.synonyms
        if one.source == STATIC and config.name not in PLACES
    }


async def _topics(side: Side) -> dict[str, UUID]:
    topics = [
        CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
        for name in TOPICS
    ]
    await side.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in TOPICS])
    while True:
        found = (await side.ask(asked, 12)).topics
        if not any(one.error_code for one in found):
            return {one.name or "": one.topic_id for one in found}
        await asyncio.sleep(0.02)
