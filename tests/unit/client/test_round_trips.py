"""How many round trips lie between a constructor and the first record.

The cluster is far away, on virtual time (`tests.support.far`): what takes time is a
round trip, so time is their number. To connect is one of them. aiokafka 0.14 needs 7
for the first acknowledgement (8 with idempotence), 8 for the first record of a
partition, and 16 in a group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from kafkaio._client import Client
from kafkaio._config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio._consumer import Consumer
from kafkaio._net.transport import DialOptions, FrameSinkPort, TransportPort
from kafkaio._producer import Producer
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkaio.testing import Broker
from kafkaio.testing._broker.faults import error
from kafkaio.types import Broker as BrokerId, TopicPartition
from tests.fakes.broker import HANG, FakeCluster, Outcome
from tests.support.far import Far
from tests.unit.client.support import client_of

T0 = TopicPartition("t", 0)
LOADING = error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=1)
NODES = pytest.mark.parametrize("nodes", [1, 3])
#: The address of a bootstrap server that no broker has.
BOOT = "boot:1"


class Named:
    """Connects to the first broker also by a name that it does not advertise."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def __call__(
        self, host: str, port: int, sink: FrameSinkPort, options: DialOptions
    ) -> TransportPort:
        if host == "boot":
            host, number = self._broker.bootstrap_servers.split(",")[0].split(":")
            port = int(number)
        transport: TransportPort = await self._broker.dial(host, port, sink, options)
        return transport


async def trips(
    nodes: int, use: Callable[[Far, str], Awaitable[None]], servers: str = ""
) -> Far:
    """Run a use at a cluster that has a record; return what it asked."""
    async with Broker(memory_transport=True, nodes=nodes, topics={"t": 1}) as broker:
        near = ProducerConfig.of(broker.bootstrap_servers, {})
        async with Producer.from_config(near, dial=broker.dial) as producer:
            await producer.send("t", b"first", partition=0)
        far = Far(Named(broker))
        await use(far, servers or broker.bootstrap_servers)
        return far


async def first_ack(far: Far, servers: str) -> None:
    began = asyncio.get_running_loop().time()
    config = ProducerConfig.of(servers, {})
    async with Producer.from_config(config, dial=far) as producer:
        await producer.send("t", b"value", partition=0)
        assert round(far.trips_since(began), 1) <= 7


async def first_record(far: Far, servers: str, most: int, **options: Any) -> None:
    began = asyncio.get_running_loop().time()
    where = {"topics": ["t"]} if "group_id" in options else {"assign": [T0]}
    options["auto_offset_reset"] = "earliest"
    config = ConsumerConfig.of(servers, options)
    async with Consumer.from_config(config, dial=far, **where) as consumer:
        async for record in consumer:
            assert record.value == b"first"
            break
        assert round(far.trips_since(began), 1) <= most


@NODES
async def test_first_acknowledgement(nodes: int) -> None:
    far = await trips(nodes, first_ack)
    assert far.dialled == 2


async def test_leaders_are_connected_while_a_producer_id_is_awaited() -> None:
    async with Broker(memory_transport=True, topics={"t": 1}) as broker:
        far = Far(broker.dial)
        # Metadata is asked on the same connection, and answered behind this.
        broker.faults.on(ApiKey.INIT_PRODUCER_ID, LOADING)
        began = asyncio.get_running_loop().time()
        options = {"retry_backoff_ms": round(2_000 * far.round_trip)}
        config = ProducerConfig.of(broker.bootstrap_servers, options)
        async with Producer.from_config(config, dial=far) as producer:
            await producer.send("t", b"value", partition=0)
            # The second InitProducerId leaves after a back-off of two round trips, more
            # or less a fifth, and its answer is followed by Produce alone.
            assert far.trips_since(began) <= 4 + 2.4 + 1 + 1.1


@NODES
async def test_first_record_of_a_partition(nodes: int) -> None:
    await trips(nodes, lambda far, servers: first_record(far, servers, 7 - (nodes < 3)))


@NODES
@pytest.mark.parametrize(("protocol", "most"), [("classic", 14), ("consumer", 12)])
async def test_first_record_in_a_group(nodes: int, protocol: str, most: int) -> None:
    async def use(far: Far, servers: str) -> None:
        options = {"group_id": "g", "group_protocol": protocol}
        await first_record(far, servers, most - 2 * (nodes < 3), **options)

    await trips(nodes, use)


@NODES
async def test_a_bootstrap_server_serves_until_a_broker_is_connected(
    nodes: int,
) -> None:
    far = await trips(nodes, first_ack, BOOT)
    # The third one is to a broker, for requests that any broker answers.
    assert far.dialled == 3


async def test_a_bootstrap_server_is_left_once_a_broker_is_connected() -> None:
    async def use(far: Far, servers: str) -> None:
        config = ClientConfig.of(servers, {})
        async with Client.from_config(config, dial=far) as client:
            await client.partitions_for("t")
            await asyncio.sleep(1)
            await client.partitions_for("t")
            nodes = [each.node_id for each in client.statistics().connections]
            assert len(nodes) == 1
            assert nodes[0] >= 0

    await trips(3, use, BOOT)


async def test_a_bootstrap_server_serves_while_no_broker_can_be_reached(
    cluster: FakeCluster,
) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    servers = cluster.bootstrap_servers[:1]

    def elsewhere(node: Any, header: Any, request: Any) -> Outcome:
        answer = cluster._metadata(node, header, request)
        for broker in answer.brokers:
            broker.host = "nowhere"
        return answer

    cluster.on(ApiKey.METADATA, elsewhere)
    async with client_of(cluster, bootstrap_servers=servers) as client:
        for _ in range(3):
            await client.request(ListGroupsRequest(), timeout=1)
            await asyncio.sleep(1)


# ---- the bootstrap server that is a broker -------------------------------------------


async def test_its_connection_is_that_of_the_broker(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    servers = cluster.bootstrap_servers[:1]
    async with client_of(cluster, bootstrap_servers=servers) as client:
        await client.request(ListGroupsRequest(), BrokerId(0))
        (connection,) = client.statistics().connections
        assert connection.node_id == 0
        assert cluster.connections_accepted == 1
        # It is asked whether it is that broker, and nobody waits for the answer.
        _, check = cluster.logged(ApiKey.API_VERSIONS, 0)
        assert check.version == 5
        assert (check.request.cluster_id, check.request.node_id) == (
            cluster.cluster_id,
            0,
        )


async def test_another_broker_that_has_the_address_is_left(
    cluster: FakeCluster,
) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    host, port = cluster.bootstrap_servers[0]

    def swapped(node: Any, header: Any, request: Any) -> Outcome:
        answer = cluster._metadata(node, header, request)
        first, second, _ = answer.brokers
        first.host, second.host = second.host, first.host
        first.port, second.port = second.port, first.port
        return answer

    cluster.on(ApiKey.METADATA, swapped, times=1)
    async with client_of(cluster, bootstrap_servers=((host, port),)) as client:
        await asyncio.sleep(5)
        assert client.cluster.brokers[0].host == host
        await client.request(ListGroupsRequest(), BrokerId(0), timeout=1)


async def test_an_address_of_several_brokers_is_that_of_none(
    cluster: FakeCluster,
) -> None:
    servers = cluster.bootstrap_servers[:1]

    def proxied(node: Any, header: Any, request: Any) -> Outcome:
        answer = cluster._metadata(node, header, request)
        for broker in answer.brokers:
            broker.host, broker.port = servers[0]
        return answer

    cluster.on(ApiKey.METADATA, proxied)
    async with client_of(cluster, bootstrap_servers=servers) as client:
        assert all(each.node_id < 0 for each in client.statistics().connections)


async def test_one_bootstrap_server_that_hangs_delays_by_a_head_start(
    cluster: FakeCluster,
) -> None:
    for node in (0, 1):
        cluster.on(ApiKey.API_VERSIONS, HANG, node=node)
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    async with client_of(cluster) as client:
        await client.request(ListGroupsRequest())
        assert asyncio.get_running_loop().time() < 1.5


async def test_a_bootstrap_server_that_is_lost_before_a_broker_is_connected(
    cluster: FakeCluster,
) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    cluster._listen(replace(cluster.nodes[0], host="boot", port=1))
    async with client_of(cluster, bootstrap_servers=(("boot", 1),)) as client:
        assert {each.node_id for each in client.statistics().connections} == {-1}
        cluster.drop_connections()
        await client.request(ListGroupsRequest(), timeout=1)
        assert {each.node_id >= 0 for each in client.statistics().connections} == {True}


async def test_an_old_broker_is_not_asked_who_it_is(cluster: FakeCluster) -> None:
    # It answers error 35 in version 0, and is then asked in a version that it knows.
    cluster.limit_version(ApiKey.API_VERSIONS, 2)
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    servers = cluster.bootstrap_servers[:1]
    async with client_of(cluster, bootstrap_servers=servers) as client:
        await client.request(ListGroupsRequest(), BrokerId(0))
        assert cluster.connections_accepted == 1
        asked = [each.version for each in cluster.logged(ApiKey.API_VERSIONS, 0)]
        assert asked == [2]
