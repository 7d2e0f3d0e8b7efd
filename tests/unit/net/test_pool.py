"""Pool and connections against scripted brokers, in memory, under a virtual clock."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from kafkaio._config import ClientConfig
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.pool import Pool
from kafkaio._net.settings import NetSettings
from kafkaio._net.transport import DialOptions, FrameSinkPort, TransportPort
from kafkaio._runtime.clock import now
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.supervisor import Supervisor
from kafkaio.errors import (
    BrokerNotAvailable,
    ClosedError,
    ConnectionLost,
    ProtocolError,
    RequestTimeout,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkaio.protocol.messages.produce import ProduceRequest
from kafkaio.types import Broker
from tests.fakes.broker import (
    DISCONNECT,
    HANG,
    NO_REPLY,
    FakeCluster,
    Raw,
)

SETTINGS = NetSettings(client_id="tester")


class Heard(Observer):
    """Keeps what it hears, as (method, arguments)."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def connection_opened(self, *event: Any) -> None:
        self.events.append(("opened", *event))

    def connection_lost(self, *event: Any) -> None:
        self.events.append(("lost", *event))

    def request_sent(self, *event: Any) -> None:
        self.events.append(("sent", *event))

    def request_answered(self, *event: Any) -> None:
        self.events.append(("answered", *event))

    def throttled(self, *event: Any) -> None:
        self.events.append(("throttled", *event))

    def of(self, kind: str) -> list[tuple[Any, ...]]:
        return [event[1:] for event in self.events if event[0] == kind]


class Side:
    """The client's side: a pool with its supervisor, and all it reported."""

    def __init__(self, cluster: FakeCluster, settings: NetSettings = SETTINGS) -> None:
        self.cluster = cluster
        self.crashes: list[BaseException] = []
        self.lost: list[tuple[int, ConnectionClass, BaseException | None]] = []
        self.heard = Heard()
        self.supervisor = Supervisor("client", self.crashes.append)
        self.dials: list[tuple[float, str, DialOptions]] = []
        self.pool = Pool(
            settings,
            cluster.bootstrap_servers,
            self.supervisor.start_soon,
            dial=self.dial,
            observer=self.heard,
            on_lost=lambda *event: self.lost.append(event),
        )
        self.learn()

    def learn(self) -> None:
        self.pool.set_brokers(
            {
                n: Broker(n, node.host, node.port)
                for n, node in self.cluster.nodes.items()
            }
        )

    async def dial(
        self, host: str, port: int, sink: FrameSinkPort, options: DialOptions
    ) -> TransportPort:
        self.dials.append((now(), host, options))
        return await self.cluster.dial(host, port, sink, options)

    async def connect(
        self, node: int = 0, connection_class: ConnectionClass = ConnectionClass.SHARED
    ) -> Connection:
        return await self.pool.connection(node, connection_class)

    async def aclose(self) -> None:
        await self.pool.aclose()
        await self.supervisor.aclose()
        assert self.crashes == []


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(nodes=3, topics={"t": 3}) as fake:
        yield fake


@pytest.fixture
async def side(cluster: FakeCluster) -> AsyncIterator[Side]:
    side = Side(cluster)
    side.supervisor.start()
    yield side
    await side.aclose()
    assert cluster.connections() == 0
    assert len(asyncio.all_tasks()) <= 2  # the test's runner and this fixture's


def heartbeat(name: str = "") -> HeartbeatRequest:
    return HeartbeatRequest(group_id=name)


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# ---- opening -----------------------------------------------------------------------


async def test_a_connection_is_opened_once_and_shared(side: Side) -> None:
    assert side.pool.ready(0, ConnectionClass.SHARED) is None
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(side.connect()) for _ in range(5)]
        await asyncio.sleep(0)
        assert side.pool.is_opening(0)
    assert len({id(task.result()) for task in tasks}) == 1
    assert side.pool.ready(0, ConnectionClass.SHARED) is tasks[0].result()
    assert side.cluster.connections_accepted == 1
    assert side.heard.of("opened") == [(0, "shared", "broker0", 9092)]
    assert repr(side.pool) == "<Pool 1 open, 0 opening>"


async def test_lanes_and_nodes_have_connections_of_their_own(side: Side) -> None:
    connections = [
        await side.connect(0),
        await side.connect(0, ConnectionClass.FETCH),
        await side.connect(1),
        await side.connect(-2),
    ]
    assert len(set(map(id, connections))) == 4
    assert [c.node_id for c in connections] == [0, 0, 1, -2]
    assert side.pool.bootstrap == (-1, -2, -3)
    assert {s.connection_class for s in side.pool.statistics()} == {
        ConnectionClass.SHARED,
        ConnectionClass.FETCH,
    }


async def test_an_unknown_broker_is_named(side: Side) -> None:
    with pytest.raises(BrokerNotAvailable, match="broker 9 is not in the metadata"):
        await side.connect(9)


async def test_a_dead_broker_is_named_with_step_and_cause(side: Side) -> None:
    side.cluster.stop(1)
    with pytest.raises(
        BrokerNotAvailable, match="broker1:9093: connect: connection refused"
    ):
        await side.connect(1)
    [(node, connection_class, cause)] = side.lost
    assert (node, connection_class) == (1, ConnectionClass.SHARED)
    assert isinstance(cause, BrokerNotAvailable)


async def test_a_broker_that_drops_us_is_named_with_the_step(side: Side) -> None:
    side.cluster.on(ApiKey.API_VERSIONS, DISCONNECT)
    with pytest.raises(
        BrokerNotAvailable, match=r"broker0:9092: negotiate versions: .*closed"
    ):
        await side.connect()


async def test_a_broker_that_does_not_negotiate_times_out(side: Side) -> None:
    side.cluster.on(ApiKey.API_VERSIONS, HANG)
    with pytest.raises(BrokerNotAvailable, match="negotiate versions: not done within"):
        await side.connect()
    assert now() == pytest.approx(side.dials[0][2].timeout / 0.95)


@pytest.mark.parametrize("is_old", [True, False])
async def test_negotiates_with_older_brokers(side: Side, is_old: bool) -> None:
    side.cluster.limit_version(ApiKey.API_VERSIONS, 2)
    side.cluster.nodes[0].is_old = is_old
    connection = await side.connect()
    assert connection.is_ready
    [entry] = side.cluster.logged(ApiKey.API_VERSIONS)
    assert entry.version == (0 if is_old else 2)
    assert entry.header.client_id == "tester"


async def test_versions_belong_to_the_connection(side: Side) -> None:
    side.cluster.limit_version(ApiKey.HEARTBEAT, 2)
    old = await side.connect()
    assert old.versions.max_version(ApiKey.HEARTBEAT) == 2
    side.cluster.drop_connections()
    await turns()
    side.cluster.nodes[0].versions[ApiKey.HEARTBEAT] = (0, 4)
    new = await side.connect()
    assert new.versions.max_version(ApiKey.HEARTBEAT) == 4


async def test_a_cancelled_caller_does_not_end_the_attempt(side: Side) -> None:
    gate = side.cluster.hold(ApiKey.API_VERSIONS)
    first = asyncio.create_task(side.connect())
    second = asyncio.create_task(side.connect())
    await side.cluster.received(ApiKey.API_VERSIONS)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    gate.release()
    assert (await second).is_ready


# ---- connecting again --------------------------------------------------------------


async def test_attempts_back_off(side: Side) -> None:
    side.cluster.stop(1)
    for _ in range(8):
        with pytest.raises(BrokerNotAvailable):
            await side.connect(1)
        assert side.pool.wait_before(1) > 0
    times = [when for when, _, _ in side.dials]
    waits = [b - a for a, b in itertools.pairwise(times)]
    for wait, middle in zip(waits, [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0], strict=True):
        assert middle * 0.79 <= wait <= middle * 1.21
    limits = [options.timeout / 0.95 for _, _, options in side.dials]
    assert 8 <= limits[0] <= 12
    assert 16 <= limits[1] <= 24
    assert 24 <= limits[-1] <= 36


async def test_only_ready_ends_the_back_off(side: Side) -> None:
    side.cluster.on(ApiKey.API_VERSIONS, DISCONNECT, times=4)
    for _ in range(4):  # a TCP connection each, and no more
        with pytest.raises(BrokerNotAvailable):
            await side.connect()
    assert side.pool.wait_before(0) >= 0.4 * 0.8
    await side.connect()
    assert side.pool.wait_before(0) == 0.0


async def test_after_ready_the_back_off_begins_anew(side: Side) -> None:
    side.cluster.on(ApiKey.API_VERSIONS, DISCONNECT, times=5)
    for _ in range(5):
        with pytest.raises(BrokerNotAvailable):
            await side.connect()
    await side.connect()
    side.cluster.drop_connections()
    await turns()
    assert 0 < side.pool.wait_before(0) <= 0.06
    await side.connect()
    assert side.dials[-1][2].timeout <= 12


async def test_a_lost_connection_is_made_again_after_a_short_wait(side: Side) -> None:
    connection = await side.connect()
    side.cluster.drop_connections(0)
    await turns()
    assert not connection.is_ready
    assert side.pool.ready(0, ConnectionClass.SHARED) is None
    assert 0 < side.pool.wait_before(0) <= 0.06
    assert await side.connect() is not connection
    [(node, connection_class, cause)] = side.heard.of("lost")
    assert (node, connection_class) == (0, "shared")
    assert "closed the connection" in str(cause)


async def test_other_lanes_do_not_wait(side: Side) -> None:
    await side.connect(0)
    side.cluster.drop_connections()
    await turns()
    assert side.pool.wait_before(0, ConnectionClass.FETCH) == 0.0


# ---- brokers come and go -------------------------------------------------------------


async def test_a_moved_broker_gets_a_new_connection(side: Side) -> None:
    gate = side.cluster.hold(ApiKey.HEARTBEAT)
    old = await side.connect()
    pending = old.submit(heartbeat(), timeout=5)
    await side.cluster.received(ApiKey.HEARTBEAT)
    node = side.cluster.nodes[0]
    side.cluster.network.unlisten(node.host, node.port)
    node.host = "elsewhere"
    side.cluster.start(0)
    side.learn()
    new = await side.connect()
    assert new.broker.host == "elsewhere"
    assert old.is_ready
    gate.release(outcome=HeartbeatResponse())
    assert await pending == HeartbeatResponse()
    assert not old.is_ready  # retired with its last answer
    assert new.is_ready


async def test_an_attempt_to_the_old_address_is_cancelled(side: Side) -> None:
    side.cluster.on(ApiKey.API_VERSIONS, HANG)
    task = asyncio.create_task(side.connect())
    await side.cluster.received(ApiKey.API_VERSIONS)
    side.pool.set_brokers({0: Broker(0, "elsewhere", 1)})
    with pytest.raises(BrokerNotAvailable, match="broker 0 has moved"):
        await task
    assert not side.pool.is_opening(0)


async def test_a_missing_broker_keeps_its_connection(side: Side) -> None:
    connection = await side.connect()
    side.pool.set_brokers({})
    assert side.pool.ready(0, ConnectionClass.SHARED) is connection


async def test_close_node(side: Side) -> None:
    connection = await side.connect(0)
    side.cluster.on(ApiKey.API_VERSIONS, HANG)
    opening = asyncio.create_task(side.connect(0, ConnectionClass.FETCH))
    side.cluster.on(ApiKey.HEARTBEAT, HANG)
    pending = connection.submit(heartbeat(), timeout=5)
    await side.cluster.received(ApiKey.API_VERSIONS, 2)
    side.pool.close_node(0)
    with pytest.raises(ConnectionLost):
        await pending
    with pytest.raises(BrokerNotAvailable, match="broker 0: closed"):
        await opening
    assert side.pool.statistics() == ()
    assert side.pool.wait_before(0) == 0.0  # we closed it: nothing failed


async def test_a_lane_of_ones_own_ends_with_its_owner(side: Side) -> None:
    mine, yours = ConnectionClass.FETCH.of(object()), ConnectionClass.FETCH.of(object())
    first = await side.connect(0, mine)
    assert await side.connect(0, mine) is first
    assert await side.connect(0, yours) is not first
    await side.connect(1, mine)
    side.pool.end_class(mine)
    left = [(one.node_id, one.connection_class) for one in side.pool.statistics()]
    assert left == [(0, yours)]
    side.pool.close_classes(
        0, [ConnectionClass.FETCH], ClosedError("silent")
    )  # whosever it is
    assert side.pool.statistics() == ()


# ---- closing -------------------------------------------------------------------------


async def test_a_closed_pool_refuses(side: Side) -> None:
    await side.connect()
    side.cluster.on(ApiKey.API_VERSIONS, HANG)
    opening = asyncio.create_task(side.connect(1))
    await side.cluster.received(ApiKey.API_VERSIONS, 2)
    await side.pool.aclose()
    with pytest.raises(ClosedError):
        await opening
    with pytest.raises(ClosedError):
        await side.connect()
    await side.pool.aclose()
    assert side.heard.of("lost") == [(0, "shared", None)]


async def test_closing_right_after_asking(side: Side) -> None:
    task = asyncio.create_task(side.connect())
    await asyncio.sleep(0)
    await side.pool.aclose()
    with pytest.raises(ClosedError):
        await task


@pytest.mark.parametrize("delay", range(12))
async def test_closing_at_any_turn_leaves_nothing(side: Side, delay: int) -> None:
    task = asyncio.create_task(side.connect())
    await turns(delay)
    await side.pool.aclose()
    await asyncio.wait([task])
    error = task.exception()
    assert error is None or isinstance(error, ClosedError)
    await turns()
    assert side.cluster.connections() == 0
    assert side.pool.statistics() == ()


@pytest.mark.parametrize("delay", range(12))
async def test_a_drop_at_any_turn_is_survived(side: Side, delay: int) -> None:
    task = asyncio.create_task(side.connect())
    await turns(delay)
    side.cluster.drop_connections()
    await asyncio.wait([task])
    error = task.exception()
    assert error is None or isinstance(error, BrokerNotAvailable)
    await turns()
    assert len(side.pool.statistics()) == side.cluster.connections()
    assert (await side.connect()).is_ready


async def test_a_supervisor_that_ends_first(cluster: FakeCluster) -> None:
    side = Side(cluster)
    side.supervisor.start()
    cluster.on(ApiKey.API_VERSIONS, HANG)
    task = asyncio.create_task(side.connect())
    await cluster.received(ApiKey.API_VERSIONS)
    await side.supervisor.aclose()
    with pytest.raises(ClosedError):
        await task
    await side.pool.aclose()
    assert cluster.connections() == 0


# ---- requests ----------------------------------------------------------------------


async def test_requests_are_pipelined(side: Side) -> None:
    connection = await side.connect()
    gate = side.cluster.hold(ApiKey.HEARTBEAT)
    futures = [connection.submit(heartbeat(str(n)), timeout=5) for n in range(20)]
    assert connection.in_flight == 20
    for n in range(20):
        await turns(4)
        gate.release(outcome=HeartbeatResponse(error_code=n))
    answers = [await future for future in futures]
    assert [answer.error_code for answer in answers] == list(range(20))
    names = [r.group_id for r in side.cluster.requests(HeartbeatRequest)]
    assert names == [str(n) for n in range(20)]
    assert connection.in_flight == 0
    sent = side.heard.of("sent")
    assert len(sent) == 20
    assert {event[:3] for event in sent} == {("Heartbeat", 4, 0)}
    api, version, node, seconds, size = side.heard.of("answered")[0]
    assert (api, version, node) == ("Heartbeat", 4, 0)
    assert size == 4 + 4 + 1 + 4 + 2 + 1  # length, id, tags, throttle, error, tags
    [statistics] = side.pool.statistics()
    handshake = statistics.bytes_sent - sum(event[3] for event in sent)
    assert 0 < handshake < 100  # ApiVersions
    assert seconds >= 0
    assert "READY | 0 in flight" in repr(connection)


async def test_a_cancelled_call_drops_its_answer(side: Side) -> None:
    connection = await side.connect()
    gate = side.cluster.hold(ApiKey.HEARTBEAT)
    call = asyncio.create_task(connection.call(heartbeat(), timeout=5))
    other = connection.submit(MetadataRequest(topics=None), timeout=5)
    await side.cluster.received(ApiKey.HEARTBEAT)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    gate.release(outcome=HeartbeatResponse())
    assert [t.name for t in (await other).topics] == ["t"]
    assert connection.is_ready


async def test_a_lost_connection_fails_everything_once(side: Side) -> None:
    connection = await side.connect()
    side.cluster.on(ApiKey.HEARTBEAT, DISCONNECT)
    futures = [connection.submit(heartbeat(), timeout=5) for _ in range(3)]
    for future in futures:
        with pytest.raises(ConnectionLost, match=r"broker 0 \(broker0:9092\)"):
            await future
    with pytest.raises(ConnectionLost):
        await connection.call(heartbeat(), timeout=5)
    with pytest.raises(ConnectionLost):
        connection.submit_oneway(ProduceRequest(acks=0))
    assert len(side.lost) == 1


async def test_a_late_answer_closes_the_connection(side: Side) -> None:
    connection = await side.connect()
    began = now()
    side.cluster.on(ApiKey.HEARTBEAT, HANG)
    late = connection.submit(heartbeat(), timeout=5)
    other = connection.submit(MetadataRequest(), timeout=50)
    with pytest.raises(RequestTimeout, match="no answer to Heartbeat v4 in time"):
        await late
    assert now() - began == pytest.approx(5)
    with pytest.raises(ConnectionLost):
        await other
    assert not connection.is_ready
    assert isinstance(side.lost[0][2], RequestTimeout)


async def test_an_unsupported_request_fails_its_future_alone(side: Side) -> None:
    side.cluster.limit_version(ApiKey.HEARTBEAT, -1)
    connection = await side.connect()
    with pytest.raises(UnsupportedVersion, match="HeartbeatRequest"):
        await connection.call(heartbeat(), timeout=5)
    assert connection.is_ready


async def test_versions_that_serve_nobody_are_asked_for_again(side: Side) -> None:
    side.cluster.limit_version(ApiKey.HEARTBEAT, -1)
    old = await side.connect()
    with pytest.raises(UnsupportedVersion):
        await old.call(heartbeat(), timeout=5)
    assert await side.connect() is old
    side.cluster.nodes[0].versions[ApiKey.HEARTBEAT] = (0, 4)
    side.cluster.on(ApiKey.HEARTBEAT, HeartbeatResponse())
    await asyncio.sleep(5)
    new = await side.connect()
    assert not old.is_ready
    await new.call(heartbeat(), timeout=5)
    await asyncio.sleep(20)
    assert await side.connect() is new


async def test_max_version_limits_a_request(side: Side) -> None:
    connection = await side.connect()
    side.cluster.on(ApiKey.HEARTBEAT, HeartbeatResponse())
    await connection.call(heartbeat(), timeout=5, max_version=1)
    assert side.cluster.logged(ApiKey.HEARTBEAT)[0].version == 1


async def test_hostile_bytes_close_the_connection(side: Side) -> None:
    connection = await side.connect()
    side.cluster.on(ApiKey.HEARTBEAT, Raw(b"\x7f\xff\xff\xffgarbage"))
    with pytest.raises(ConnectionLost, match="a frame announces"):
        await connection.call(heartbeat(), timeout=5)


async def test_an_answer_out_of_order_closes_the_connection(side: Side) -> None:
    connection = await side.connect()
    side.cluster.on(ApiKey.HEARTBEAT, NO_REPLY)
    skipped = connection.submit(heartbeat(), timeout=5)
    answered = connection.submit(MetadataRequest(), timeout=5)
    for future in (skipped, answered):
        with pytest.raises(ConnectionLost) as caught:
            await future
        assert isinstance(caught.value.__cause__, ProtocolError)


async def test_oneway_requests_share_the_connection(side: Side) -> None:
    connection = await side.connect()
    side.cluster.on(ApiKey.PRODUCE, NO_REPLY)
    for _ in range(3):
        connection.submit_oneway(ProduceRequest(acks=0), max_version=9)
    answer = await connection.call(MetadataRequest(topics=None), timeout=5)
    assert isinstance(answer, MetadataResponse)
    assert len(side.cluster.requests(ProduceRequest)) == 3
    assert connection.statistics().requests == 4


async def test_what_was_written_before_a_close_still_arrives(side: Side) -> None:
    connection = await side.connect()
    side.cluster.on(ApiKey.PRODUCE, NO_REPLY)
    connection.submit_oneway(ProduceRequest(acks=0), max_version=9)
    await side.pool.aclose()
    assert len(side.cluster.requests(ProduceRequest)) == 1


async def test_an_idle_connection_is_closed(side: Side) -> None:
    connection = await side.connect()
    await connection.call(MetadataRequest(), timeout=5)
    await asyncio.sleep(539)
    assert connection.is_ready
    await connection.call(MetadataRequest(), timeout=5)
    await asyncio.sleep(541)
    assert not connection.is_ready
    assert side.lost == [(0, ConnectionClass.SHARED, None)]
    assert side.pool.ready(0, ConnectionClass.SHARED) is None
    assert (await side.connect()).is_ready


# ---- throttling ----------------------------------------------------------------------


async def throttle(side: Side, connection: Connection, milliseconds: int) -> None:
    answer = HeartbeatResponse(throttle_time_ms=milliseconds)
    side.cluster.on(ApiKey.HEARTBEAT, answer, times=1)
    await connection.call(heartbeat(), timeout=5)


async def test_a_throttled_connection_pauses(side: Side) -> None:
    connection, free = await side.connect(0), await side.connect(1)
    await throttle(side, connection, 40_000)
    assert connection.throttled == pytest.approx(40)
    assert free.throttled == 0
    assert side.heard.of("throttled") == [(0, 40.0, "Heartbeat")]
    began = now()
    # Longer than the timeout: the pause is added to it.
    await connection.call(MetadataRequest(), timeout=30)
    assert now() - began == pytest.approx(40)
    assert connection.throttled == 0.0


async def test_a_request_cancelled_behind_a_throttle_is_never_sent(side: Side) -> None:
    connection = await side.connect()
    await throttle(side, connection, 2_000)
    gone = connection.submit(MetadataRequest(), timeout=5)
    kept = connection.submit(MetadataRequest(topics=None), timeout=5)
    gone.cancel()
    assert (await kept).topics
    assert len(side.cluster.requests(MetadataRequest)) == 1
    assert connection.in_flight == 0


# ---- statistics and settings ---------------------------------------------------------


async def test_statistics(side: Side) -> None:
    connection = await side.connect(2)
    side.cluster.on(ApiKey.HEARTBEAT, HANG)
    pending = connection.submit(heartbeat(), timeout=5)
    [stats] = side.pool.statistics()
    assert (stats.node_id, stats.host, stats.port) == (2, "broker2", 9094)
    assert (stats.state, stats.in_flight, stats.requests) == ("READY", 1, 1)
    assert stats.bytes_received > 0
    assert stats.throttled == 0.0
    pending.cancel()
    connection.close()
    assert connection.statistics().state == "CLOSED"


def test_settings_come_from_the_configuration() -> None:
    config = ClientConfig(
        client_id="me", request_timeout_ms=1500, reconnect_backoff_ms=70
    )
    settings = NetSettings.from_config(config)
    assert settings.client_id == "me"
    assert settings.request_timeout == 1.5
    assert settings.reconnect.base_ms == 70
    assert settings.tls is None
    identity = settings.identity("peer", Broker(1, "host", 9092))
    assert identity.peer == "peer (host:9092)"
    assert identity.software_name == "kafkaio"
    assert identity.software_version[0].isdigit()
    assert settings.dial_options(3.0).timeout == 3.0


def test_tls_without_a_context_gets_the_default_one() -> None:
    config = replace(ClientConfig(), security_protocol="SSL")
    tls = NetSettings.from_config(config).tls
    assert tls is not None
    assert tls().check_hostname


async def test_two_connections_find_that_a_broker_answers_again(side: Side) -> None:
    """It closed each connection at its first request, and both of them ask it."""
    side.cluster.on(ApiKey.HEARTBEAT, DISCONNECT, times=3)
    for _ in range(3):
        connection = await side.connect()
        with pytest.raises(ConnectionLost):
            await connection.call(heartbeat(), timeout=5)
    gate = side.cluster.hold(ApiKey.METADATA)
    kinds = ConnectionClass.SHARED, ConnectionClass.PRODUCE
    both = asyncio.gather(*(side.connect(0, kind) for kind in kinds))
    async with asyncio.timeout(60):
        while gate.waiting < 2:  # noqa: ASYNC110  (the clock jumps)
            await asyncio.sleep(0.01)
    gate.release()
    assert all(connection.is_ready for connection in await both)
