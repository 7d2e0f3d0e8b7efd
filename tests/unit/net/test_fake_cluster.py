"""The scripted brokers themselves: other tests believe them."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.settings import NetSettings
from kafkaio._runtime.clock import now
from kafkaio._runtime.observer import Observer
from kafkaio.errors import ConnectionLost
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._message import Request, ResponseT
from kafkaio.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaio.types import Broker
from tests.fakes.broker import DEFAULT, DISCONNECT, FakeCluster

SETTINGS = NetSettings()


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(
        3, topics={"a": 4, "b": 1}, features={"transaction.version": 2}
    ) as fake:
        yield fake


async def connect(cluster: FakeCluster, node: int = 0) -> Connection:
    host, port = cluster.bootstrap_servers[node]
    broker = Broker(node, host, port)
    connection = Connection(
        broker,
        ConnectionClass.SHARED,
        SETTINGS.identity("broker", broker),
        Observer(),
        lambda *_: None,
    )
    await connection.open(cluster.dial, SETTINGS.dial_options(5))
    return connection


async def ask(
    cluster: FakeCluster, request: Request[ResponseT], limit: int | None = None
) -> ResponseT:
    connection = await connect(cluster)
    try:
        return await connection.call(request, timeout=5, max_version=limit)
    finally:
        connection.close()


@pytest.mark.parametrize("version", [*range(14)])
async def test_metadata(cluster: FakeCluster, version: int) -> None:
    cluster.move_leader("a", 2, 0)
    cluster.move_leader("a", 3, -1)
    everything = None if version else []
    answer = await ask(cluster, MetadataRequest(topics=everything), version)
    assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [
        (0, "broker0", 9092),
        (1, "broker1", 9093),
        (2, "broker2", 9094),
    ]
    assert [topic.name for topic in answer.topics] == ["a", "b"]
    leaders = [p.leader_id for p in answer.topics[0].partitions]
    assert leaders == [0, 1, 0, -1]
    assert [p.error_code for p in answer.topics[0].partitions] == [0, 0, 0, 5]
    if version >= 7:
        assert [p.leader_epoch for p in answer.topics[0].partitions] == [0, 0, 1, 1]
    if version >= 10:
        assert answer.topics[0].topic_id == cluster.topics["a"].topic_id


async def test_metadata_of_some_topics(cluster: FakeCluster) -> None:
    known = cluster.topics["b"].topic_id
    unknown = known.__class__(int=known.int ^ 1)
    request = MetadataRequest(
        topics=[
            MetadataRequestTopic(name="a"),
            MetadataRequestTopic(name="nope"),
            MetadataRequestTopic(name=None, topic_id=known),
            MetadataRequestTopic(name=None, topic_id=unknown),
        ]
    )
    answer = await ask(cluster, request)
    assert [t.name for t in answer.topics] == ["a", "nope", "b", None]
    assert [t.error_code for t in answer.topics] == [0, 3, 0, 100]
    assert (await ask(cluster, MetadataRequest(topics=[]))).topics == []


async def test_a_stopped_node_is_not_in_the_metadata(cluster: FakeCluster) -> None:
    cluster.stop(2)
    answer = await ask(cluster, MetadataRequest(topics=None))
    assert [b.node_id for b in answer.brokers] == [0, 1]
    cluster.start(2)
    assert len((await ask(cluster, MetadataRequest())).brokers) == 3


async def test_find_coordinator(cluster: FakeCluster) -> None:
    cluster.move_coordinator("g", 1)
    cluster.move_coordinator("gone", -1)
    old = await ask(cluster, FindCoordinatorRequest(key="g"), 3)
    assert (old.node_id, old.host, old.port) == (1, "broker1", 9093)
    request = FindCoordinatorRequest(coordinator_keys=["g", "gone"])
    new = await ask(cluster, request)
    assert [(c.key, c.node_id, c.error_code) for c in new.coordinators] == [
        ("g", 1, 0),
        ("gone", -1, 15),
    ]


async def test_finalized_features(cluster: FakeCluster) -> None:
    connection = await connect(cluster)
    assert connection.versions.finalized_features == {"transaction.version": 2}
    assert connection.versions.finalized_features_epoch == 0
    connection.close()


async def test_handlers_are_stacked(cluster: FakeCluster) -> None:
    api, connection = ApiKey.HEARTBEAT, await connect(cluster)

    async def code() -> int:
        answer = await connection.call(HeartbeatRequest(), timeout=5)
        return answer.error_code

    cluster.on(api, HeartbeatResponse(error_code=1))
    cluster.on(api, HeartbeatResponse(error_code=2), times=2)
    cluster.on(api, HeartbeatResponse(error_code=3), node=1)
    cluster.on(api, DEFAULT, times=1)
    assert [await code() for _ in range(3)] == [2, 2, 1]
    cluster.delay(api, 7.0)
    began = now()
    assert await connection.call(HeartbeatRequest(), timeout=10)
    assert now() - began == pytest.approx(7)
    cluster.reset(api)
    cluster.on(api, DISCONNECT)
    with pytest.raises(ConnectionLost):
        await code()


async def test_one_request_at_a_time_and_in_order(cluster: FakeCluster) -> None:
    connection = await connect(cluster)
    gate = cluster.hold(ApiKey.HEARTBEAT)
    first = connection.submit(HeartbeatRequest(), timeout=5)
    second = connection.submit(MetadataRequest(), timeout=5)
    await cluster.received(ApiKey.HEARTBEAT)
    for _ in range(10):
        await asyncio.sleep(0)
    # The broker does not even look at the second one.
    assert cluster.logged(ApiKey.METADATA) == []
    assert gate.waiting == 1
    gate.release(1, HeartbeatResponse(error_code=27))
    assert (await first).error_code == 27
    await second
    assert gate.waiting == 0
    connection.close()


async def test_a_stalled_node_answers_when_it_flows(cluster: FakeCluster) -> None:
    connection = await connect(cluster)
    cluster.stall(0)
    pending = connection.submit(MetadataRequest(), timeout=5)
    await cluster.received(ApiKey.METADATA)
    await asyncio.sleep(1)
    assert not pending.done()
    cluster.flow(0)
    await pending
    connection.close()


async def broken(*_: object) -> HeartbeatResponse:
    raise ZeroDivisionError


async def test_what_no_handler_serves_is_a_failure() -> None:
    cluster = FakeCluster()
    with pytest.raises(ConnectionLost):
        await ask(cluster, HeartbeatRequest())
    cluster.on(ApiKey.HEARTBEAT, broken)
    with pytest.raises(ConnectionLost):
        await ask(cluster, HeartbeatRequest())
    missing, failed = cluster.failures
    assert "no handler for HEARTBEAT" in str(missing)
    assert isinstance(failed, ZeroDivisionError)
    await cluster.aclose()


async def test_a_version_that_was_not_announced_is_a_failure() -> None:
    cluster = FakeCluster()
    connection = await connect(cluster)
    cluster.limit_version(ApiKey.HEARTBEAT, 2)
    with pytest.raises(ConnectionLost):
        await connection.call(HeartbeatRequest(), timeout=5)
    [failure] = cluster.failures
    assert "HEARTBEAT v4 is not in 0-2" in str(failure)
    await cluster.aclose()


async def test_a_failure_fails_the_block() -> None:
    cluster = FakeCluster()
    cluster.failures.append(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await cluster.__aexit__(None, None, None)
    await cluster.__aexit__(ValueError, ValueError(), None)  # does not hide another
