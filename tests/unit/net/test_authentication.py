"""Authentication by SASL on a connection, against a scripted broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from math import inf
from typing import Any

import pytest

from kafkaio._net.connection import EARLY_FRAME_SIZE, Connection, Sasl
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.pool import Pool
from kafkaio._net.settings import NetSettings
from kafkaio._runtime.clock import now
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.supervisor import Supervisor
from kafkaio.errors import (
    AuthenticationError,
    BrokerNotAvailable,
    ClosedError,
    ConnectionLost,
    NetworkError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkaio.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from kafkaio.types import Broker
from tests.fakes.broker import HANG, FakeCluster
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


async def used(side: Side) -> Connection:
    """A connection that carried a request in its session, and so will be renewed."""
    connection = await side.open()
    await asyncio.sleep(0.01)
    await connection.call(MetadataRequest(), timeout=1)
    return connection


async def test_a_throttled_connection_is_renewed(side: Side) -> None:
    side.peer.lifetime_ms = 2000
    connection = await side.open()
    throttle = MetadataResponse(throttle_time_ms=1500)
    side.cluster.on(ApiKey.METADATA, throttle, times=4)
    side.peer.guard(ApiKey.METADATA)
    for _ in range(4):
        await connection.call(MetadataRequest(), timeout=1)
    [times] = side.peer.authenticated.values()
    assert len(times) > 2
    assert side.lost == []


async def test_a_refused_renewal_ends_the_connection(side: Side) -> None:
    side.peer.lifetime_ms = 2000
    connection = await side.open()
    side.peer.secret = "another one"
    gate = side.cluster.hold(ApiKey.METADATA)
    side.peer.guard(ApiKey.METADATA)
    pending = connection.submit(MetadataRequest(), timeout=5)
    await asyncio.sleep(1.95)
    gate.release(outcome=MetadataResponse())
    await pending
    await asyncio.sleep(0.1)
    [cause] = side.lost
    assert isinstance(cause, AuthenticationError)
    assert "Invalid username" in str(cause)


async def test_what_a_refused_renewal_held_was_not_sent(side: Side) -> None:
    side.peer.rounds = 2
    side.peer.lifetime_ms = 2000
    side.login.make = lambda: Rounds(rounds=2)
    connection = await used(side)
    side.peer.secret = "another one"
    before = len(side.cluster.logged(ApiKey.METADATA))
    gate = side.cluster.hold(ApiKey.SASL_AUTHENTICATE)
    await asyncio.sleep(1.95)
    held = connection.submit(MetadataRequest(), timeout=5)
    gate.release()
    with pytest.raises(ConnectionLost, match="not sent"):
        await held
    assert len(side.cluster.logged(ApiKey.METADATA)) == before


async def test_credentials_that_fail_leave_a_session_its_time(side: Side) -> None:
    side.peer.lifetime_ms = 20_000
    connection = await used(side)
    side.login.failure = AuthenticationError("the provider is down")
    await asyncio.sleep(19.2)
    assert len(side.login.hosts) > 1
    await connection.call(MetadataRequest(), timeout=1)  # the session still lasts
    pending = connection.submit(MetadataRequest(), timeout=1)
    await pending
    await asyncio.sleep(2)
    assert not connection.is_ready
    assert side.lost == [side.login.failure]


async def test_credentials_that_come_late_are_used(side: Side) -> None:
    side.peer.lifetime_ms = 10_000
    connection = await used(side)
    side.login.delay = 3.0
    await asyncio.sleep(9.9)
    await connection.call(MetadataRequest(), timeout=0.1)  # it waits for them
    [times] = side.peer.authenticated.values()
    assert len(times) == 2


async def test_credentials_that_never_come(side: Side) -> None:
    side.peer.lifetime_ms = 10_000
    connection = await used(side)
    side.login.delay = inf
    await asyncio.sleep(9.9)
    held = connection.submit(MetadataRequest(), timeout=0.1)
    with pytest.raises(ConnectionLost, match="no credentials for ROUNDS within 10 s"):
        await held
    [cause] = side.lost
    assert isinstance(cause, AuthenticationError)
    assert cause.step == "get credentials"


async def test_opening_does_not_wait_for_credentials_for_ever(side: Side) -> None:
    side.login.delay = inf
    with pytest.raises(AuthenticationError, match="no credentials") as caught:
        await side.open(within=2.0)
    assert now() == 2.0
    assert caught.value.step == "get credentials"
    assert side.cluster.connections_accepted == 0


async def test_a_broker_that_stalls_in_the_handshake(side: Side) -> None:
    side.cluster.on(ApiKey.SASL_AUTHENTICATE, HANG)
    with pytest.raises(BrokerNotAvailable, match="SaslAuthenticate: not done within 2"):
        await side.open(within=2.0)
    assert now() == 2.0
    await asyncio.sleep(0)
    assert not side.cluster.connections()


async def test_closing_while_credentials_are_awaited(side: Side) -> None:
    side.peer.lifetime_ms = 2000
    connection = await used(side)
    side.login.delay = inf
    await asyncio.sleep(1.95)
    connection.close()
    await asyncio.sleep(0)
    assert side.lost == [None]


async def test_a_cancelled_renewal_leaves_no_task(side: Side) -> None:
    side.peer.lifetime_ms = 2000
    connection = await used(side)
    side.cluster.on(ApiKey.SASL_HANDSHAKE, HANG)
    await asyncio.sleep(1.95)
    assert connection.statistics().state == "REAUTHENTICATING"
    connection.retire()
    await asyncio.sleep(1)
    connection.close()
    assert side.lost == [None]


async def test_a_retired_connection_finishes_its_renewal(side: Side) -> None:
    side.peer.lifetime_ms = 2000
    connection = await used(side)
    gate = side.cluster.hold(ApiKey.SASL_AUTHENTICATE)
    await asyncio.sleep(1.95)
    connection.retire()
    assert connection.is_ready
    gate.release()
    await asyncio.sleep(0.1)
    assert side.lost == [None]


async def test_statistics_tell_the_end_of_the_session(side: Side) -> None:
    side.peer.lifetime_ms = 10_000
    connection = await side.open()
    assert connection.statistics().session_left == pytest.approx(9.8)
    side.peer.lifetime_ms = 0
    other = await side.open()
    assert other.statistics().session_left == inf


async def test_frames_are_small_before_a_connection_is_ready(side: Side) -> None:
    large = SaslAuthenticateResponse(auth_bytes=bytes(EARLY_FRAME_SIZE))
    side.cluster.on(ApiKey.SASL_AUTHENTICATE, large)
    with pytest.raises(BrokerNotAvailable, match="at most 524288 are allowed"):
        await side.open()


# ---- work in threads -------------------------------------------------------------


@pytest.fixture
async def threads(side: Side, monkeypatch: pytest.MonkeyPatch) -> Side:
    """What belongs in a thread ends after a second of the virtual clock."""
    loop = asyncio.get_running_loop()

    def start_thread(work: Callable[[], Any], name: str) -> Any:
        del name
        future = loop.create_future()

        def end() -> None:
            if future.done():
                return
            try:
                future.set_result(work())
            except Exception as error:  # noqa: BLE001 - as a thread does
                future.set_exception(error)

        loop.call_later(1.0, end)
        return future

    monkeypatch.setattr("kafkaio._net.connection.start_thread", start_thread)
    return side


async def test_work_runs_beside_the_loop(threads: Side) -> None:
    threads.peer.rounds = 2
    threads.peer.lifetime_ms = 10_000
    threads.login.make = lambda: Rounds(rounds=2, in_thread=True)
    connection = await used(threads)
    assert now() == pytest.approx(2.01)
    assert await traffic(connection, 30.0) > 1000
    [times] = threads.peer.authenticated.values()
    assert len(times) > 2


async def test_closing_while_work_runs(threads: Side) -> None:
    threads.login.make = lambda: Rounds(in_thread=True)
    task = asyncio.create_task(threads.open())
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(2)
    assert threads.peer.authenticated == {}


async def test_closing_when_work_has_just_ended(threads: Side) -> None:
    """What was computed is dropped, and is not computed again."""
    loop = asyncio.get_running_loop()
    computed: list[bytes] = []

    def compute(message: bytes) -> bytes:
        computed.append(message)
        # Before the connection hears of the result.
        loop.call_soon(threads.connections[0].close)
        return message

    threads.login.make = lambda: Rounds(in_thread=True, compute=compute)
    with pytest.raises(BrokerNotAvailable, match="closed"):
        await threads.open()
    await asyncio.sleep(10)
    assert len(computed) == 1
    assert threads.peer.authenticated == {}


@pytest.mark.parametrize(
    ("raised", "expected", "match"),
    [
        (AuthenticationError("too many"), AuthenticationError, "too many"),
        (ValueError("hunter2"), BrokerNotAvailable, "SASL: ValueError$"),
    ],
)
async def test_work_that_fails(
    threads: Side, raised: Exception, expected: type[Exception], match: str
) -> None:
    def fail(message: bytes) -> bytes:
        raise raised

    threads.login.make = lambda: Rounds(in_thread=True, compute=fail)
    with pytest.raises(expected, match=match) as caught:
        await threads.open()
    assert "hunter2" not in str(caught.value)


async def test_credentials_that_cannot_be_used_again(side: Side) -> None:
    class Broken(Rounds):
        def begin(self) -> Any:
            raise AuthenticationError("no ticket")

    side.peer.lifetime_ms = 2000
    await used(side)
    side.login.make = Broken
    await asyncio.sleep(2)
    [cause] = side.lost
    assert isinstance(cause, AuthenticationError)
    assert cause.broker == "broker0:9092"


# ---- the pool --------------------------------------------------------------------


class Heard(Observer):
    """Keeps what concerns authentication."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self.failures: list[tuple[Any, ...]] = []

    def authentication_failed(self, *event: Any, is_renewal: bool) -> None:
        self.failures.append((*event, is_renewal))

    def authenticated(self, *event: Any, is_renewal: bool) -> None:
        self.events.append((*event, is_renewal))

    def credentials_exposed(self, *event: Any) -> None:
        self.events.append(event)


def pool_of(side: Side, heard: Heard, host: str = "broker0") -> Pool:
    settings = NetSettings(login=side.login)
    pool = Pool(
        settings,
        [(host, 9092)],
        side.supervisor.start_soon,
        dial=side.cluster.dial,
        observer=heard,
    )
    pool.set_brokers({0: Broker(0, host, 9092)})
    return pool


async def test_short_sessions_change_the_connection_under_the_traffic(
    side: Side,
) -> None:
    side.peer.lifetime_ms = 1000
    heard = Heard()
    pool = pool_of(side, heard)
    for _ in range(200):
        connection = await pool.connection(0, ConnectionClass.SHARED)
        await connection.call(MetadataRequest(), timeout=1)
        await asyncio.sleep(0.05)
    assert side.cluster.connections_accepted == pytest.approx(11, abs=1)
    assert heard.events[0] == (0, "shared", "ROUNDS", 1.0, 0.0, False)
    assert len(heard.events) == side.cluster.connections_accepted
    await pool.aclose()


async def test_a_refused_login_and_a_refused_renewal_are_reported(side: Side) -> None:
    side.peer.lifetime_ms = 10_000
    heard = Heard()
    pool = pool_of(side, heard)
    connection = await pool.connection(0, ConnectionClass.SHARED)
    assert heard.events == [(0, "shared", "ROUNDS", 10.0, 0.0, False)]
    await connection.call(MetadataRequest(), timeout=1)
    side.peer.secret = "another one"
    while connection.is_ready:
        await asyncio.sleep(0.5)
        with suppress(NetworkError):
            await connection.call(MetadataRequest(), timeout=1)
    with pytest.raises(AuthenticationError):
        await pool.connection(0, ConnectionClass.SHARED)
    renewal, login = heard.failures
    assert (renewal[:3], renewal[4]) == ((0, "shared", "ROUNDS"), True)
    assert (login[:3], login[4]) == ((0, "shared", "ROUNDS"), False)
    assert "Invalid username" in str(login[3])
    await pool.aclose()


async def test_a_renewal_is_reported_as_such(side: Side) -> None:
    side.peer.lifetime_ms = 10_000
    heard = Heard()
    pool = pool_of(side, heard)
    connection = await pool.connection(0, ConnectionClass.SHARED)
    await traffic(connection, now() + 15)
    assert [event[-1] for event in heard.events] == [False, True]
    assert heard.failures == []
    await pool.aclose()


@pytest.mark.parametrize(
    ("host", "mechanism", "is_exposed"),
    [
        ("broker0", "PLAIN", True),
        ("10.0.0.7", "OAUTHBEARER", True),
        ("broker0", "SCRAM-SHA-256", False),
        ("LOCALHOST.", "PLAIN", False),
        ("127.0.0.9", "PLAIN", False),
        ("::1", "PLAIN", False),
    ],
)
async def test_exposed_credentials_are_reported_once(
    side: Side, host: str, mechanism: str, is_exposed: bool
) -> None:
    side.login.mechanism = mechanism
    heard = Heard()
    pool = pool_of(side, heard, host)
    for _ in range(2):
        for kind in (ConnectionClass.SHARED, ConnectionClass.FETCH):
            with suppress(BrokerNotAvailable):
                await pool.connection(0, kind)
        pool.close_node(0)
    warnings = [event for event in heard.events if len(event) == 2]
    assert warnings == ([(mechanism, host)] if is_exposed else [])
    await pool.aclose()


async def test_a_renewal_that_cannot_start_ends_the_connection(side: Side) -> None:
    side.peer.lifetime_ms = 2000
    await used(side)
    await side.supervisor.aclose()
    await asyncio.sleep(2)
    [cause] = side.lost
    assert isinstance(cause, ClosedError)
