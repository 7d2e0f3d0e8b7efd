"""Authentication by SASL on a connection, against a scripted broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kafkaio._net.connection import Connection, Sasl
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.settings import NetSettings
from kafkaio._runtime.clock import now
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.supervisor import Supervisor
from kafkaio.errors import AuthenticationError
from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkaio.types import Broker
from tests.fakes.broker import FakeCluster
from tests.support.sasl import Peer, Rounds, ScriptedLogin
from tests.virtual_loop import VirtualClockLoop

SETTINGS = NetSettings()
BROKER = Broker(0, "broker0", 9092)


class Side:
    """A connection to one scripted broker, and what it reported."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.peer = Peer(cluster, now)
        self.login = ScriptedLogin()
        self.crashes: list[BaseException] = []
        self.lost: list[BaseException | None] = []
        self.supervisor = Supervisor("client", self.crashes.append)
        self.connections: list[Connection] = []
        self.replaced: list[Connection] = []

    def replace(self, connection: Connection) -> None:
        self.replaced.append(connection)
        connection.retire()

    async def open(self, within: float = 10.0) -> Connection:
        sasl = Sasl(
            login=self.login,
            start_soon=self.supervisor.start_soon,
            timeout=within,
            replace=self.replace,
        )
        connection = Connection(
            BROKER,
            ConnectionClass.SHARED,
            SETTINGS.identity("broker 0", BROKER),
            Observer(),
            lambda _, cause: self.lost.append(cause),
            sasl,
        )
        self.connections.append(connection)
        await connection.open(self.cluster.dial, SETTINGS.dial_options(within))
        return connection


@pytest.fixture
async def side() -> AsyncIterator[Side]:
    async with FakeCluster() as cluster:
        opened = Side(cluster)
        opened.supervisor.start()
        yield opened
        for connection in opened.connections:
            connection.close()
        await opened.supervisor.aclose()
        assert opened.crashes == []
        assert opened.peer.violations == []
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("rounds", [1, 2, 3])
async def test_a_connection_authenticates_before_it_is_ready(
    side: Side, rounds: int
) -> None:
    side.peer.rounds = rounds
    side.login.make = lambda: Rounds(rounds=rounds)
    connection = await side.open()
    assert side.login.hosts == ["broker0"]
    assert len(side.peer.authenticated) == 1
    await connection.call(MetadataRequest(), timeout=1)


async def test_a_refusal_has_the_words_of_the_broker(side: Side) -> None:
    side.peer.secret = "another one"
    with pytest.raises(AuthenticationError) as caught:
        await side.open()
    error = caught.value
    assert error.mechanism == "ROUNDS"
    assert error.broker == "broker0:9092"
    assert error.step == "SaslAuthenticate"
    assert error.reason == "Authentication failed: Invalid username or password"
    assert "Invalid username" in str(error)
    assert "hunter2" not in str(error)


# ---- renewal ---------------------------------------------------------------------


async def traffic(connection: Connection, until: float) -> int:
    """Send a request every 50 ms, four at a time; how many were answered."""
    count = 0

    async def one() -> None:
        nonlocal count
        while now() < until:
            await connection.call(MetadataRequest(), timeout=1)
            count += 1
            await asyncio.sleep(0.05)

    await asyncio.gather(*(one() for _ in range(4)))
    return count


@pytest.mark.parametrize("rounds", [1, 2, 3])
async def test_a_session_is_renewed_beside_the_traffic(side: Side, rounds: int) -> None:
    side.peer.rounds = rounds
    side.peer.lifetime_ms = 2000
    side.login.make = lambda: Rounds(rounds=rounds)
    connection = await side.open()
    assert await traffic(connection, 30.0) > 4 * 500
    [times] = side.peer.authenticated.values()
    assert len(times) == pytest.approx(30 / 1.8, abs=2)
    assert side.lost == []


async def test_an_unused_connection_renews_before_its_next_request(side: Side) -> None:
    side.peer.lifetime_ms = 2000
    connection = await side.open()
    await asyncio.sleep(60)
    [times] = side.peer.authenticated.values()
    assert len(times) == 1
    await connection.call(MetadataRequest(), timeout=1)
    assert len(times) == 2
    await asyncio.sleep(SETTINGS.idle_timeout)
    assert not connection.is_ready
    assert side.lost == [None]


async def test_a_blocked_loop_renews_before_its_next_request(side: Side) -> None:
    side.peer.lifetime_ms = 2000
    connection = await side.open()
    await connection.call(MetadataRequest(), timeout=1)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualClockLoop)
    loop.pass_time(5.0)
    await connection.call(MetadataRequest(), timeout=1)
    [times] = side.peer.authenticated.values()
    assert len(times) == 2


async def test_short_sessions_get_another_connection(side: Side) -> None:
    side.peer.lifetime_ms = 1000
    connection = await side.open()
    gate = side.cluster.hold(ApiKey.METADATA)
    side.peer.guard(ApiKey.METADATA)
    pending = connection.submit(MetadataRequest(), timeout=5)
    await asyncio.sleep(1.5)
    assert side.replaced == [connection]
    assert side.lost == []
    gate.release(outcome=MetadataResponse())
    await pending
    assert side.lost == [None]
