"""A broker that closes, stalls or lies at every byte of the handshake.

The client fails with an error of its own within the time that it was given, or is not
concerned, and nothing of it is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from itertools import accumulate

import pytest

from kafkaio import Client
from kafkaio._config import ClientConfig
from kafkaio._net.transport import DialOptions, FrameSinkPort, TransportPort
from kafkaio._runtime.clock import wall_ms
from kafkaio.errors import (
    AuthenticationError,
    BrokerNotAvailable,
    KafkaError,
    ProtocolError,
)
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Buffer
from kafkaio.testing import Broker
from kafkaio.testing._broker.faults import (
    Fault,
    close_at,
    disconnect_after_write,
    drop,
    endless_challenges,
    error,
    foreign_nonce,
    garbage,
    half_frame,
    invert_at,
    iteration_count,
    stall_at,
    wrong_correlation_id,
    wrong_signature,
)
from kafkaio.types import Token
from tests.unit.testing.broker.logins import token

#: Frames of a handshake, by mechanism: ApiVersions, SaslHandshake, SaslAuthenticate.
FRAMES = {"PLAIN": 3, "SCRAM-SHA-256": 4, "OAUTHBEARER": 3}
SECONDS = 3.0
#: What a handshake that fails may end with.
TYPED = BrokerNotAvailable | AuthenticationError | ProtocolError
HTTP = b"HTTP/1.1 400 Bad Request\r\n\r\n"


async def provide() -> Token:
    return Token(value=token(seconds=600), expires=wall_ms() / 1000 + 600)


class Counted:
    """A sink that counts the bytes of each frame on its way to another one."""

    def __init__(self, sink: FrameSinkPort) -> None:
        self.sink = sink
        self.sizes: list[int] = []

    def frame_received(self, frame: Buffer) -> None:
        self.sizes.append(4 + len(frame))
        self.sink.frame_received(frame)

    def connection_lost(self, cause: BaseException | None) -> None:
        self.sink.connection_lost(cause)


class Bench:
    """A broker, and clients that try to connect to it."""

    def __init__(self, broker: Broker, mechanism: str) -> None:
        self.broker = broker
        self.dialled: list[Counted] = []
        self.unhandled: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self.unhandled.append(context))
        host, _, port = broker.bootstrap("SASL").rpartition(":")
        by_token = mechanism == "OAUTHBEARER"
        self.config = ClientConfig(
            bootstrap_servers=((host, int(port)),),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_username=None if by_token else "alice",
            sasl_password=None if by_token else "alice-secret",
            sasl_oauth_token_provider=provide if by_token else None,
            socket_connection_setup_timeout_ms=1000,
            reconnect_backoff_ms=400,
            retry_backoff_ms=400,
        )

    async def dial(
        self, host: str, port: int, sink: FrameSinkPort, options: DialOptions
    ) -> TransportPort:
        self.dialled.append(Counted(sink))
        return await self.broker.dial(host, port, self.dialled[-1], options)

    async def handshake_bytes(self, mechanism: str) -> list[int]:
        """The sizes of the frames of a handshake."""
        assert await self.outcome() is None
        return self.dialled[0].sizes[: FRAMES[mechanism]]

    async def outcome(self) -> KafkaError | None:
        """How a client starts; fails if anything of it is left."""
        loop = asyncio.get_running_loop()
        before, since = asyncio.all_tasks(), loop.time()
        client = Client.from_config(self.config, dial=self.dial)
        failure = None
        try:
            await client.start(timeout=SECONDS)
        except KafkaError as cause:
            failure = cause
        assert loop.time() - since <= SECONDS + 0.01
        await client.close()
        for _ in range(10):
            await asyncio.sleep(0)
        left = asyncio.all_tasks() - before
        assert not {task for task in left if "connection" not in task.get_name()}
        await asyncio.sleep(0.5)  # what the broker still has to tell a client
        assert not asyncio.all_tasks() - before
        assert not self.broker.nodes[0].connections
        assert not self.unhandled
        assert "alice-secret" not in repr(failure)
        return failure

    async def outcomes(
        self, make: Callable[[int], Fault], positions: Iterable[int]
    ) -> dict[int, KafkaError | None]:
        """How a client starts when a fault is at each of the positions."""
        found = {}
        for position in positions:
            self.broker.faults.clear()
            self.broker.faults.on_connection(make(position), listener="SASL")
            found[position] = await self.outcome()
        return found


@pytest.fixture
async def benches() -> AsyncIterator[Callable[[str], Bench]]:
    async with Broker(memory_transport=True, sasl=True, metadata_delay=0.0) as broker:
        yield lambda mechanism: Bench(broker, mechanism)


#: At night each byte is tried; before, the edges of each frame and every fifth one. An
#: entry of ApiVersions has seven bytes: over five entries, each of them is tried.
STEPS = [pytest.param(1, marks=pytest.mark.nightly), 5]
EDGE = 8  # the length, and the correlation id


def positions(mechanism: str, sizes: list[int], step: int) -> list[int]:
    """Where to put faults into the frames of a handshake."""
    # ApiVersions is the same for all.
    frames = sizes if mechanism == "PLAIN" else [0, *sizes[1:]]
    found = set[int]()
    for size, end in zip(frames, accumulate(sizes), strict=True):
        start = end - size
        found.update(range(start, end, step))
        found.update(range(start, min(start + EDGE, end)))
        found.update(range(max(start, end - EDGE), end))
    return sorted(found)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("make", [close_at, stall_at])
@pytest.mark.parametrize("mechanism", FRAMES)
async def test_a_connection_ends_or_stalls_at_every_byte(
    benches: Callable[[str], Bench],
    mechanism: str,
    make: Callable[[int], Fault],
    step: int,
) -> None:
    bench = benches(mechanism)
    sizes = await bench.handshake_bytes(mechanism)
    failures = await bench.outcomes(make, positions(mechanism, sizes, step))
    assert len(failures) >= EDGE * FRAMES[mechanism]
    for failure in failures.values():
        assert isinstance(failure, TYPED)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("mechanism", FRAMES)
async def test_every_byte_is_wrong_once(
    benches: Callable[[str], Bench], mechanism: str, step: int
) -> None:
    bench = benches(mechanism)
    sizes = await bench.handshake_bytes(mechanism)
    failures = await bench.outcomes(invert_at, positions(mechanism, sizes, step))
    # A wrong length, correlation id or signature never goes unnoticed.
    at, end = sum(sizes[:-1]), sum(sizes)
    noticed = range(at, end - 9 if mechanism.startswith("SCRAM") else at + EDGE)
    assert all(failures[position] for position in noticed if position in failures)


@pytest.mark.parametrize("api", ["ApiVersions", "SaslHandshake", "SaslAuthenticate"])
@pytest.mark.parametrize(
    "fault",
    [
        drop(),
        half_frame(),
        disconnect_after_write(),
        garbage(HTTP),
        garbage(b"\xff\xff\xff\xff"),
        garbage(b"\0\0\0\0"),
        wrong_correlation_id(),
        error(ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
    ids=lambda fault: fault.action.value,
)
async def test_an_answer_is_none(
    benches: Callable[[str], Bench], api: str, fault: Fault
) -> None:
    bench = benches("SCRAM-SHA-256")
    bench.broker.faults.on(api, fault)
    assert isinstance(await bench.outcome(), TYPED)


@pytest.mark.parametrize(
    "fault",
    [
        wrong_signature(),
        foreign_nonce(),
        iteration_count(2**31 - 1),
        iteration_count(1),
        iteration_count(0),
    ],
    ids=lambda fault: f"{fault.action.value} {fault.position}",
)
async def test_a_broker_that_does_not_know_the_password(
    benches: Callable[[str], Bench], fault: Fault
) -> None:
    bench = benches("SCRAM-SHA-256")
    rule = bench.broker.faults.on("SaslAuthenticate", fault)
    failure = await bench.outcome()
    assert isinstance(failure, AuthenticationError)
    assert (failure.mechanism, failure.step) == ("SCRAM-SHA-256", "SaslAuthenticate")
    assert rule.count == 1


@pytest.mark.parametrize("data", [b"", b"more", b'{"status":"?"}', b"{" * 100_000])
@pytest.mark.parametrize("mechanism", FRAMES)
async def test_challenges_without_end(
    benches: Callable[[str], Bench], mechanism: str, data: bytes
) -> None:
    bench = benches(mechanism)
    rule = bench.broker.faults.on("SaslAuthenticate", endless_challenges(data))
    failure = await bench.outcome()
    # Without a challenge, PLAIN is over: the broker says that it knows the client.
    assert failure is not None or (mechanism, data) == ("PLAIN", b"")
    assert 0 < rule.count < 50


async def test_a_fault_that_happens_once_delays_a_client(
    benches: Callable[[str], Bench],
) -> None:
    bench = benches("PLAIN")
    for position in range(0, 400, 40):
        bench.broker.faults.clear()
        rule = bench.broker.faults.on_connection(close_at(position, times=1))
        assert await bench.outcome() is None
        assert rule.count == 1
