"""What a hostile answer costs: memory in proportion, and never the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import Any
from uuid import UUID

import pytest

from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.settings import NetSettings
from kafkaio._runtime.observer import Observer
from kafkaio.errors import ConnectionLost, ProtocolError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._codec import encode
from kafkaio.protocol._message import Request
from kafkaio.protocol._requests import request_type
from kafkaio.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkaio.types import Broker
from tests.fakes.broker import FakeCluster
from tests.support.hostile import (
    Cost,
    answering,
    fetched_topics,
    groups,
    measured,
    quotas,
    replicas,
    tags,
)

BROKER = Broker(0, "broker0", 9092)
MIB = 2**20


@asynccontextmanager
async def opened(
    cluster: FakeCluster, settings: NetSettings
) -> AsyncIterator[Connection]:
    connection = Connection(
        BROKER,
        ConnectionClass.SHARED,
        settings.identity("broker 0", BROKER),
        Observer(),
        lambda *_: None,
    )
    await connection.open(cluster.dial, settings.dial_options(5.0))
    try:
        yield connection
    finally:
        connection.close()


#: API, version, an answer of about 1 MiB, and whether its decoding is refused.
HOSTILE: dict[str, tuple[ApiKey, int, bytes, str]] = {
    "groups of 5 bytes": (ApiKey.LIST_GROUPS, 5, groups(MIB // 5), ""),
    "a quarter of them": (ApiKey.LIST_GROUPS, 5, groups(MIB // 20), ""),
    "replicas": (ApiKey.METADATA, 12, replicas(MIB // 4), ""),
    "entries of 3 bytes": (
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        1,
        quotas(MIB // 3),
        "too much memory",
    ),
    "a million tags": (ApiKey.LIST_GROUPS, 5, tags(MIB // 2), "524288 tagged fields"),
    "topics of 3 bytes": (
        ApiKey.FETCH,
        12,
        fetched_topics(MIB // 3),
        "too much memory",
    ),
}


async def cost_of(name: str, *, memory: bool) -> Cost:
    """Measure what one answer costs."""
    api, version, body, refused = HOSTILE[name]
    async with FakeCluster() as cluster:
        cluster.on(api, answering(body))
        async with opened(cluster, NetSettings()) as connection:
            request: Request[Any] = request_type(api)()
            with measured(memory=memory) as cost:
                answer = connection.submit(request, timeout=60, max_version=version)
                if refused:
                    with pytest.raises(ProtocolError, match=refused):
                        await answer
                else:
                    assert type(await answer) is request.response_type()
    return cost


#: A trace of memory asks for the line of each allocation, which costs most in a long
#: function such as this decoder: ten seconds, so that a quarter has to do.
LONG_TO_TRACE = {"groups of 5 bytes": [pytest.mark.nightly]}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=LONG_TO_TRACE.get(name, [])) for name in HOSTILE],
)
async def test_the_memory_of_a_hostile_answer(name: str) -> None:
    cost = await cost_of(name, memory=True)
    body = HOSTILE[name][2]
    # The peer is in this process, and its own copy counts as well.
    assert cost.peak <= 20 * len(body) + len(body)


@pytest.mark.parametrize("name", HOSTILE)
async def test_the_time_of_a_hostile_answer(name: str) -> None:
    """The loop gets a turn at least every 0.1 s: once of three times is proof.

    A processor that is shared with other programs takes longer for the same.
    """
    longest = inf
    for _ in range(3):
        if longest >= 0.1:
            longest = (await cost_of(name, memory=False)).longest
    assert longest < 0.1


async def test_the_metadata_of_a_large_cluster_can_be_read() -> None:
    nodes = list(range(1_000, 1_100))
    topics = [
        MetadataResponseTopic(
            name=f"topic-{number}",
            topic_id=UUID(int=number + 1),
            partitions=[
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=nodes[index],
                    leader_epoch=300,
                    replica_nodes=nodes[index : index + replication],
                    isr_nodes=nodes[index : index + replication],
                )
                for index in range(20)
            ],
        )
        for number in range(1_000)
        for replication in [1 + number % 2 * 2]
    ]
    brokers = [MetadataResponseBroker(node_id=n, host=f"b{n}", port=1) for n in nodes]
    body = encode(MetadataResponse(brokers=brokers, topics=topics), 12)
    async with FakeCluster() as cluster:
        cluster.on(ApiKey.METADATA, answering(body))
        # As large in proportion as 16 MiB for 100,000 partitions.
        settings = NetSettings(max_control_response_size=2**24 // 5)
        async with opened(cluster, settings) as connection:
            with measured(memory=False) as cost:
                answer = await connection.call(
                    MetadataRequest(), timeout=60, max_version=12
                )
    assert sum(len(topic.partitions) for topic in answer.topics) == 20_000
    assert cost.longest < 0.1


async def test_an_answer_without_records_has_its_own_limit() -> None:
    async with FakeCluster() as cluster:
        cluster.on(ApiKey.LIST_GROUPS, answering(groups(30_000)))
        settings = NetSettings(max_control_response_size=100_000)
        async with opened(cluster, settings) as connection:
            request: Request[Any] = request_type(ApiKey.LIST_GROUPS)()
            behind = connection.submit(MetadataRequest(), timeout=60)
            large = connection.submit(request, timeout=60, max_version=5)
            last = connection.submit(MetadataRequest(), timeout=60)
            await behind  # was answered before
            with pytest.raises(
                ProtocolError,
                match=r"ListGroups v5: .* 150015 bytes; max_control_response_size "
                "allows 100000",
            ):
                await large
            with pytest.raises(ConnectionLost):
                await last
            assert not connection.is_ready


async def test_what_comes_behind_a_large_answer_keeps_its_order() -> None:
    async with FakeCluster() as cluster:
        cluster.on(ApiKey.LIST_GROUPS, answering(groups(100_000)))
        async with opened(cluster, NetSettings()) as connection:
            request: Request[Any] = request_type(ApiKey.LIST_GROUPS)()
            ended: list[str] = []
            for name, asked in (("large", request), ("small", MetadataRequest())):
                answer = connection.submit(asked, timeout=60, max_version=5)
                answer.add_done_callback(lambda _, name=name: ended.append(name))
            await answer
            assert ended == ["large", "small"]
            assert connection.in_flight == 0


async def test_closing_while_a_large_answer_is_decoded() -> None:
    async with FakeCluster() as cluster:
        cluster.on(ApiKey.LIST_GROUPS, answering(groups(200_000)))
        async with opened(cluster, NetSettings()) as connection:
            request: Request[Any] = request_type(ApiKey.LIST_GROUPS)()
            answer = connection.submit(request, timeout=60, max_version=5)
            for _ in range(100):
                await asyncio.sleep(0)
                if connection._turn is not None:
                    break
            assert connection.in_flight == 1
            assert connection._budget.reserved > 1_000_000
            connection.close()
            with pytest.raises(ConnectionLost):
                await answer
            assert connection._budget.reserved == 0
