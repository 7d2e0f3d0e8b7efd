"""Leader elections when nodes start, stop and hang; unclean elections."""

from __future__ import annotations

import asyncio

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.describe_cluster import DescribeClusterRequest
from kafkaio.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaio.testing import Broker
from kafkaio.testing._broker.partition import EmbeddedPartition
from tests.unit.testing.broker.calls import (
    Caller,
    batch,
    connect,
    fetch,
    fetched,
    produced,
    started,
    with_producer,
)

UNCLEAN = {"unclean.leader.election.enable": "true"}


def isr(broker: Broker) -> tuple[int, list[int]]:
    """The leader and the in-sync replicas of the first partition of t."""
    (partition, *_) = broker.topics["t"].partitions
    return partition.leader, partition.isr


async def diverge(broker: Broker, caller: Caller) -> EmbeddedPartition:
    """Write one batch to both replicas of t, another to the leader alone; kill it."""
    data = with_producer(batch(), 7, 0, 0)
    assert (await produced(caller, "t", 0, data)).base_offset == 0
    await broker.control.kill(1)
    data = with_producer(batch(), 7, 0, 1)
    assert (await produced(caller, "t", 0, data)).base_offset == 1
    assert isr(broker) == (0, [0])
    await broker.control.kill(0)
    assert isr(broker) == (-1, [0])
    return broker.topics["t"].partitions[0]


async def test_an_unclean_election_loses_what_the_replica_does_not_have() -> None:
    async with started(nodes=2) as (broker, caller):
        broker.create_topic("t", 1, 2, UNCLEAN)
        partition = await diverge(broker, caller)
        assert partition.high_watermark == 2
        await broker.control.restart(1)
        assert isr(broker) == (1, [1])
        assert partition.high_watermark == 1
        caller = await connect(broker, 1)
        (data,) = await fetched(caller, fetch("t", {0: 2}))
        assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        # The producer's lost batch is not a duplicate: it is written again.
        again = with_producer(batch(), 7, 0, 1)
        assert (await produced(caller, "t", 0, again)).base_offset == 1
        await broker.control.restart(0)
        assert isr(broker) == (1, [0, 1])
        assert partition.high_watermark == 2


async def test_without_unclean_election_there_is_no_leader_and_no_loss() -> None:
    async with started(nodes=2) as (broker, caller):
        broker.create_topic("t", 1, 2)
        partition = await diverge(broker, caller)
        await broker.control.restart(1)
        assert isr(broker) == (-1, [0])
        await broker.control.restart(0)
        assert isr(broker) == (0, [0])
        assert partition.high_watermark == 2
        broker.control.expand_isr(("t", 0), 1)
        assert isr(broker) == (0, [0, 1])


async def test_allowing_unclean_election_elects_at_once() -> None:
    async with started(nodes=3) as (broker, caller):
        broker.create_topic("t", 1, 2)
        await diverge(broker, caller)
        await broker.control.restart(1)
        configs = [AlterableConfig(name=name, value=v) for name, v in UNCLEAN.items()]
        resource = AlterConfigsResource(
            resource_type=2, resource_name="t", configs=configs
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        await (await connect(broker, 2)).call(request, 1)
        assert isr(broker) == (1, [1])


async def test_a_replica_out_of_sync_becomes_an_unclean_leader() -> None:
    async with started(nodes=2) as (broker, caller):
        broker.create_topic("t", 1, 2, UNCLEAN)
        broker.control.shrink_isr(("t", 0), 1)
        await produced(caller, "t", 0, batch())
        await broker.control.kill(0)
        assert isr(broker) == (1, [1])
        assert broker.topics["t"].partitions[0].high_watermark == 0


async def test_a_node_that_is_paused_too_long_is_fenced() -> None:
    async with started(nodes=2) as (broker, caller):
        broker.create_topic("t", 1, 2)
        broker.control.pause(0, fenced_after=5.0)
        await asyncio.sleep(4)
        assert isr(broker) == (0, [0, 1])
        await asyncio.sleep(2)
        assert isr(broker) == (1, [1])
        caller = await connect(broker, 1)
        told = await caller.call(DescribeClusterRequest(), 0)
        assert [node.broker_id for node in told.brokers] == [1]
        broker.control.resume(0)
        assert isr(broker) == (1, [0, 1])


async def test_a_node_that_is_resumed_in_time_stays_leader() -> None:
    async with started(nodes=2) as (broker, _):
        broker.create_topic("t", 1, 2)
        broker.control.pause(0, fenced_after=5.0)
        await asyncio.sleep(4)
        broker.control.resume(0)
        await asyncio.sleep(4)
        assert isr(broker) == (0, [0, 1])


async def test_every_cluster_has_an_id_of_its_own() -> None:
    ids = set()
    for _ in range(2):
        async with started() as (_, caller):
            ids.add((await caller.call(DescribeClusterRequest(), 0)).cluster_id)
    assert {len(one) for one in ids} == {22}
    assert len(ids) == 2
