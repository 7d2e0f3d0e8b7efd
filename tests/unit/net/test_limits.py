"""The limits of what is received, and of where a client may be led."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kafkaio._config import ClientConfig
from kafkaio._net.budget import ReceiveBudget
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.receive import SCRATCH_BYTES, FrameReceiver, LargeFrames
from kafkaio._net.settings import NetSettings
from kafkaio.errors import BrokerNotAvailable, ConfigurationError, ProtocolError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._message import Buffer, Request
from kafkaio.protocol._requests import request_type
from kafkaio.protocol.messages.metadata import MetadataRequest
from kafkaio.types import Broker
from tests.fakes.broker import FakeCluster, Raw
from tests.support.hostile import answering, groups
from tests.unit.net.test_pool import SETTINGS, Side, cluster, side

#: The fixtures of the pool's tests.
__all__ = ["cluster", "side"]
LARGE = 2 * SCRATCH_BYTES


class Peer:
    """A receiver with what it got, and whether it reads."""

    def __init__(self, budget: ReceiveBudget) -> None:
        self.got: list[int] = []
        self.is_paused = False
        self.receiver = FrameReceiver(
            2**20, self._take, self._pause, LargeFrames(budget=budget)
        )

    def _take(self, frame: Buffer) -> None:
        self.got.append(len(frame))

    def _pause(self, is_paused: bool) -> None:
        self.is_paused = is_paused

    def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            space = self.receiver.space()
            count = min(len(space), len(view))
            space[:count] = view[:count]
            self.receiver.filled(count)
            view = view[count:]


def length(size: int) -> bytes:
    return struct.pack(">i", size)


def test_a_frame_waits_until_another_one_is_complete() -> None:
    budget = ReceiveBudget(LARGE + 1)
    first, second = Peer(budget), Peer(budget)
    first.send(length(LARGE) + b"x" * 10)
    second.send(length(5) + b"small" + length(LARGE) + b"y" * 10)
    assert second.got == [5]
    assert second.is_paused
    assert not first.is_paused
    assert budget.reserved == LARGE
    assert repr(budget) == f"<ReceiveBudget {LARGE} reserved, 1 wait>"
    first.send(b"x" * (LARGE - 10))
    assert first.got == [LARGE]
    assert not second.is_paused
    second.send(b"y" * (LARGE - 10) + length(3) + b"end")
    assert second.got == [5, LARGE, 3]
    assert budget.reserved == 0


def test_one_frame_can_always_be_received() -> None:
    budget = ReceiveBudget(10)
    peer = Peer(budget)
    peer.send(length(LARGE) + bytes(LARGE))
    assert peer.got == [LARGE]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_connection_that_ends_gives_back_what_it_reserved(is_first: bool) -> None:
    budget = ReceiveBudget(LARGE)
    peers = [Peer(budget) for _ in range(3)]
    for peer in peers:
        peer.send(length(LARGE))
    ended = peers.pop(0 if is_first else 1)
    ended.receiver.close()
    assert budget.reserved == LARGE
    assert [peer.is_paused for peer in peers] == [False, True]
    for peer in peers:
        peer.send(bytes(LARGE))
        assert peer.got == [LARGE]
    assert budget.reserved == 0


def test_a_transport_that_cannot_pause_loses_nothing() -> None:
    budget = ReceiveBudget(LARGE)
    first, second = Peer(budget), Peer(budget)
    first.send(length(LARGE))
    second.send(length(LARGE) + bytes(LARGE))
    assert second.got == [LARGE]
    assert budget.reserved == LARGE


async def test_all_connections_of_a_client_share_the_budget(side: Side) -> None:
    body = groups(40_000)
    side.cluster.on(ApiKey.LIST_GROUPS, answering(body))
    side.pool._budget = budget = Counted(250_000)
    request: Request[Any] = request_type(ApiKey.LIST_GROUPS)()
    answers = [
        (await side.connect(node)).submit(request, timeout=60, max_version=5)
        for node in range(3)
    ]
    for answer in answers:
        assert len((await answer).groups) == 40_000
    assert len(body) <= budget.most <= 250_000
    assert budget.reserved == 0


class Counted(ReceiveBudget):
    """A budget that knows the most that was reserved at once."""

    most = 0

    def reserve(self, size: int, granted: Callable[[], None]) -> bool:
        done = super().reserve(size, granted)
        self.most = max(self.most, self.reserved)
        return done


# ---- who answers nonsense ------------------------------------------------------------


async def test_nonsense_ends_early_with_its_error(side: Side) -> None:
    side.cluster.on(ApiKey.API_VERSIONS, Raw(b"HTTP/1.1 400"), node=0)
    for _ in range(3):
        with pytest.raises(BrokerNotAvailable):
            await side.connect()
    with pytest.raises(
        ProtocolError, match=r"broker0:9092: the last 3 connections ended with: "
    ) as caught:
        await side.connect()
    assert isinstance(caught.value.__cause__, ProtocolError)
    await side.connect(1)  # another address is not affected
    side.cluster.reset(ApiKey.API_VERSIONS)
    await asyncio.sleep(1.5)
    assert (await side.connect()).is_ready


async def test_faults_that_are_not_in_a_row_are_forgotten(side: Side) -> None:
    for _ in range(5):
        side.cluster.on(ApiKey.METADATA, Raw(struct.pack(">ii", 4, 77)), times=1)
        connection = await side.connect()
        with pytest.raises(Exception, match="answer 77"):
            await connection.call(MetadataRequest(), timeout=5)
        await asyncio.sleep(61)
    connection = await side.connect()
    side.cluster.drop_connections(0)
    await asyncio.sleep(2)
    assert side.pool._faults._last == {}


# ---- where a client may be led -------------------------------------------------------


def allowed(hosts: Any) -> Callable[[str, int], bool]:
    config = ClientConfig.of("b:1", {"allowed_hosts": hosts})
    return NetSettings.from_config(config).is_allowed


@pytest.mark.parametrize(
    ("hosts", "host", "is_allowed"),
    [
        (None, "evil", True),
        ([], "broker1", False),
        (["*.example.com"], "B1.Example.COM.", True),
        (["*.example.com"], "example.com.evil", False),
        (["10.0.0.*:9092"], "10.0.0.7", True),
        (["10.0.0.*:9093"], "10.0.0.7", False),
        (lambda host, port: port == 9092, "evil", True),
        (lambda host, port: host == "good", "evil", False),
    ],
)
def test_patterns_of_allowed_hosts(hosts: Any, host: str, is_allowed: bool) -> None:
    assert allowed(hosts)(host, 9092) is is_allowed


@pytest.mark.parametrize("hosts", ["*.example.com", b"x", 7, [7], [""]])
def test_allowed_hosts_that_make_no_sense(hosts: Any) -> None:
    with pytest.raises(ConfigurationError, match="allowed_hosts"):
        allowed(hosts)


async def test_an_address_that_is_not_allowed_is_never_dialled(
    cluster: FakeCluster,
) -> None:
    side = Side(cluster, replace(SETTINGS, is_allowed=allowed(["*.example.com"])))
    side.supervisor.start()
    side.pool.set_brokers({7: Broker(7, "evil", 22), 8: Broker(8, "broker1", 9093)})
    for _ in range(2):
        with pytest.raises(
            BrokerNotAvailable, match="broker 7 is said to be at evil:22"
        ):
            await side.pool.connection(7, ConnectionClass.SHARED)
    assert side.dials == []
    assert len(side.heard.of("lost")) == 1
    assert side.pool.wait_before(7) > 0
    # Bootstrap servers are allowed, also where a broker advertises one.
    assert (await side.pool.connection(-1, ConnectionClass.SHARED)).is_ready
    assert (await side.pool.connection(8, ConnectionClass.SHARED)).is_ready
    await side.aclose()


async def test_a_function_of_allowed_hosts_that_raises(cluster: FakeCluster) -> None:
    side = Side(cluster, replace(SETTINGS, is_allowed=lambda host, port: 1 // 0 > 0))
    side.supervisor.start()
    side.pool.set_brokers({7: Broker(7, "evil", 22)})
    with pytest.raises(ConfigurationError, match="allowed_hosts raised ZeroDivision"):
        await side.pool.connection(7, ConnectionClass.SHARED)
    await side.aclose()
