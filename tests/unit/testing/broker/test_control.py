"""The hand on groups: what a test does to them by way of ``broker.control``."""

from __future__ import annotations

import asyncio

import pytest

from kafkaio._consumer import Consumer
from kafkaio.testing import Broker, GroupConfig
from kafkaio.types import TopicPartition


def member(broker: Broker) -> Consumer:
    return Consumer(
        broker.bootstrap_servers,
        topics="orders",
        group_id="billing",
        group_protocol="classic",
        heartbeat_interval_ms=50,
        metadata_max_age_ms=200,
    )


async def test_a_member_that_is_expelled_joins_again() -> None:
    async with (
        Broker(topics={"orders": 2}, groups=GroupConfig()) as broker,
        member(broker) as consumer,
    ):
        before = consumer.group_metadata
        broker.control.expel_member("billing", before.member_id)
        async with asyncio.timeout(10):
            while consumer.group_metadata.member_id in {before.member_id, ""}:
                await consumer.poll(timeout=0.02)
        assert len(consumer.assignment) == 2


async def test_a_rebalance_that_is_forced_begins_a_generation() -> None:
    async with (
        Broker(topics={"orders": 2}) as broker,
        member(broker) as consumer,
    ):
        before = consumer.group_metadata
        broker.control.force_rebalance("billing")
        async with asyncio.timeout(10):
            while consumer.group_metadata.generation <= before.generation:
                await consumer.poll(timeout=0.02)
        assert consumer.group_metadata.member_id == before.member_id


async def test_members_and_commits_can_be_looked_at() -> None:
    async with (
        Broker(topics={"orders": 2}) as broker,
        member(broker) as consumer,
    ):
        control = broker.control
        assert control.members("billing") == [consumer.group_metadata.member_id]
        assert control.committed("billing", ("orders", 1)) is None
        await consumer.commit({TopicPartition("orders", 1): 0})
        assert control.committed("billing", ("orders", 1)) == 0
        assert control.committed("nobody", ("orders", 1)) is None
        assert control.members("nobody") == []


async def test_an_assignment_is_driven_by_hand() -> None:
    groups = GroupConfig(consumer_heartbeat_interval=0.05)
    async with (
        asyncio.timeout(10),
        Broker(topics={"orders": 3}, groups=groups) as broker,
        Consumer(
            broker.bootstrap_servers,
            topics="orders",
            group_id="billing",
            group_protocol="consumer",
        ) as consumer,
    ):

        async def until_assigned(*wanted: int) -> None:
            while {tp.partition for tp in consumer.assignment} != set(wanted):
                await consumer.poll(timeout=0.02)

        await until_assigned(0, 1, 2)
        me = consumer.group_metadata.member_id
        broker.control.assign_members("billing", {me: {"orders": [1]}})
        await until_assigned(1)
        broker.control.assign_members("billing", {me: {"orders": [0, 2]}})
        await until_assigned(0, 2)
        broker.control.assign_members("billing", None)
        await until_assigned(0, 1, 2)


async def test_what_is_not_there() -> None:
    async with Broker(topics={"orders": 2}) as broker, member(broker):
        with pytest.raises(KeyError):
            broker.control.expel_member("nobody", "x")
        with pytest.raises(KeyError):
            broker.control.force_rebalance("nobody")
        with pytest.raises(TypeError):
            broker.control.assign_members("billing", {})


async def test_members_get_added_partitions() -> None:
    async with (
        Broker(topics={"orders": 2}) as broker,
        member(broker) as consumer,
    ):
        broker.control.add_partitions("orders", 3)
        async with asyncio.timeout(10):
            while len(consumer.assignment) < 5:
                await consumer.poll(timeout=0.02)
        with pytest.raises(ValueError, match="does not exist"):
            broker.control.add_partitions("unknown", 1)
