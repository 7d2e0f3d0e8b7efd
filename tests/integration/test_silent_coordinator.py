"""A coordinator whose process is stopped: it accepts everything and answers nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio
import pytest

from kafkaio import Admin
from kafkaio._consumer import Consumer
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import TopicPartition
from tests.integration.groups import member, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
SESSION = 20.0
#: Seconds after which a cluster gives up a broker that it does not hear of (4.3: 9 s,
#: with ZooKeeper: 18 s), and another one has loaded its groups.
FAIL_OVER = 30.0
#: Seconds after which it does so at the earliest.
GIVEN_UP = 8.0


def coordinator_of(consumer: Consumer) -> int | None:
    group = consumer._core.member
    assert group is not None
    return group.statistics().coordinator


async def noticed(consumers: list[Consumer], old: int) -> float:
    """Seconds until none of them takes the old one for the coordinator any more."""
    begun = asyncio.get_running_loop().time()
    await until(lambda: all(coordinator_of(c) != old for c in consumers), limit=SESSION)
    return asyncio.get_running_loop().time() - begun


async def stop_coordinator(kafka: Kafka, consumer: Consumer) -> int:
    old = coordinator_of(consumer)
    assert old is not None
    await anyio.to_thread.run_sync(kafka.engine.pause, old)
    return old


def elsewhere(consumers: list[Consumer], old: int) -> Callable[[], bool]:
    return lambda: all(coordinator_of(c) not in {None, old} for c in consumers)


async def test_a_parked_join(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory
) -> None:
    name = cluster_topic(partitions=4, replication_factor=3)
    options = {
        "group_protocol": "classic",
        "partition_assignment_strategy": "range",
        "session_timeout_ms": int(SESSION * 1000),
        "heartbeat_interval_ms": 1_000,
    }
    one = member(real_kafka_cluster, name, name, **options)
    two = member(real_kafka_cluster, name, name, **options)
    async with one, asyncio.TaskGroup() as tasks:
        events = one.rebalances()
        joining = tasks.create_task(two.start())
        requested = await anext(events)
        async with requested.hold():  # so that the group waits for us
            await asyncio.sleep(2)
            assert not joining.done()
            old = await stop_coordinator(real_kafka_cluster, one)
            assert await noticed([one, two], old) < SESSION
            await until(elsewhere([one, two], old), limit=SESSION + FAIL_OVER)
        await events.aclose()  # who listens would keep what is asked for next
        await joining
        await until(lambda: len(one.assignment) == 2 == len(two.assignment))
        await two.close()


async def test_closing_keeps_its_bound(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory
) -> None:
    name = cluster_topic(partitions=4, replication_factor=3)
    consumer = member(real_kafka_cluster, name, name, group_protocol="classic")
    await consumer.start()
    await stop_coordinator(real_kafka_cluster, consumer)
    clock = asyncio.get_running_loop().time
    begun = clock()
    await consumer.close(1.0)
    # Before another node coordinates, which a member that leaves would wait for.
    assert clock() - begun < GIVEN_UP


protocols = pytest.mark.parametrize(
    "protocol",
    [
        "classic",
        pytest.param("consumer", marks=pytest.mark.kafka_versions("4.0+")),
    ],
)


@protocols
async def test_closing_leaves_the_successor(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory, protocol: str
) -> None:
    name = cluster_topic(partitions=4, replication_factor=3)
    options: dict[str, object] = {
        "group_protocol": protocol,
        "enable_auto_commit": False,
    }
    if protocol == "classic":
        options["session_timeout_ms"] = 300_000
    consumer = member(real_kafka_cluster, name, name, **options)
    await consumer.start()
    old = await stop_coordinator(real_kafka_cluster, consumer)
    begun = asyncio.get_running_loop().time()
    await consumer.close(FAIL_OVER + 10)
    assert asyncio.get_running_loop().time() - begun < FAIL_OVER
    assert coordinator_of(consumer) not in {None, old}
    async with Admin(real_kafka_cluster.bootstrap_servers) as admin:
        found = await admin.describe_consumer_groups([name])
    assert not found[name].members


@protocols
async def test_heartbeats_and_commits(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory, protocol: str
) -> None:
    name = cluster_topic(partitions=4, replication_factor=3)
    options: dict[str, object] = {"group_protocol": protocol}
    if protocol == "classic":
        options |= {
            "session_timeout_ms": int(SESSION * 1000),
            "heartbeat_interval_ms": 1_000,
        }
    async with member(real_kafka_cluster, name, name, **options) as consumer:
        generation = consumer.group_metadata.generation
        tp = TopicPartition(name, 0)
        await consumer.commit({tp: 0})
        old = await stop_coordinator(real_kafka_cluster, consumer)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(consumer.commit({tp: 0}, timeout=SESSION + FAIL_OVER))
            assert await noticed([consumer], old) < SESSION
        await until(elsewhere([consumer], old), limit=FAIL_OVER)
        await asyncio.sleep(3)  # some heartbeats
        # Nobody was expelled.
        assert len(consumer.assignment) == 4
        assert consumer.group_metadata.generation == generation
