"""What a connection does about its transport, where the pool does not show it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

import kafkaio
from kafkaio._net.connection import LINGER, Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.memory import MemoryTransport
from kafkaio._net.settings import NetSettings
from kafkaio._net.socket_writer import write_parts
from kafkaio._net.transport import (
    DialOptions,
    FrameSinkPort,
    TransportPort,
)
from kafkaio._runtime.clock import now
from kafkaio._runtime.observer import Observer
from kafkaio.errors import BrokerNotAvailable, ConnectionLost
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol.messages.metadata import MetadataRequest
from kafkaio.protocol.messages.produce import ProduceRequest
from kafkaio.types import Broker
from tests.fakes.broker import HANG, NO_REPLY, FakeCluster

SETTINGS = NetSettings()
BROKER = Broker(0, "broker0", 9092)


class Opened:
    """A connection and its own end of the stream."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.lost: list[BaseException | None] = []
        self.transport: MemoryTransport
        self.connection = Connection(
            BROKER,
            ConnectionClass.SHARED,
            SETTINGS.identity("broker 0", BROKER),
            Observer(),
            lambda _, cause: self.lost.append(cause),
        )

    async def dial(
        self, host: str, port: int, sink: FrameSinkPort, options: DialOptions
    ) -> TransportPort:
        transport = await self.cluster.dial(host, port, sink, options)
        assert isinstance(transport, MemoryTransport)
        self.transport = transport
        return transport

    async def open(self) -> Connection:
        await self.connection.open(self.dial, SETTINGS.dial_options(5.0))
        return self.connection


@pytest.fixture
async def opened() -> AsyncIterator[Opened]:
    async with FakeCluster() as cluster:
        yield Opened(cluster)


async def test_a_cancelled_open_leaves_nothing(opened: Opened) -> None:
    opened.cluster.on(ApiKey.API_VERSIONS, HANG)
    task = asyncio.create_task(opened.open())
    await opened.cluster.received(ApiKey.API_VERSIONS)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not opened.transport.is_open
    assert opened.lost == []  # it never was ready


async def test_closing_while_it_opens(opened: Opened) -> None:
    opened.cluster.on(ApiKey.API_VERSIONS, HANG)
    task = asyncio.create_task(opened.open())
    await opened.cluster.received(ApiKey.API_VERSIONS)
    opened.connection.close()
    with pytest.raises(BrokerNotAvailable, match="negotiate versions: closed"):
        await task


async def test_nothing_can_be_submitted_before_it_is_open(opened: Opened) -> None:
    with pytest.raises(ConnectionLost, match="connecting"):
        await opened.connection.submit(MetadataRequest(), timeout=1)


class SlowToClose(MemoryTransport):
    """As TCP with bytes that the peer does not read: only abort ends it."""

    def close(self) -> None:
        pass


async def test_a_close_waits_for_a_slow_peer_only_so_long(opened: Opened) -> None:
    connection = await opened.open()
    opened.transport.__class__ = SlowToClose
    connection.close()
    assert opened.transport.is_open
    await connection.wait_gone(now() + LINGER)
    assert now() == pytest.approx(LINGER)
    assert not opened.transport.is_open
    assert opened.lost == [None]


async def test_bytes_that_nobody_reads_do_not_linger_for_ever(opened: Opened) -> None:
    connection = await opened.open()
    opened.cluster.on(ApiKey.PRODUCE, NO_REPLY)
    opened.transport.__class__ = SlowToClose
    opened.transport.stall()
    connection.submit_oneway(ProduceRequest(acks=0), max_version=9)
    assert connection.statistics().bytes_unsent > 0
    connection.close()
    await asyncio.sleep(LINGER + 0.1)
    assert not opened.transport.is_open


async def test_retire_waits_for_requests_without_an_answer(opened: Opened) -> None:
    connection = await opened.open()
    opened.cluster.on(ApiKey.PRODUCE, NO_REPLY)
    opened.transport.stall()
    connection.submit_oneway(ProduceRequest(acks=0), max_version=9)
    connection.retire()
    await asyncio.sleep(LINGER + 0.1)
    assert opened.transport.is_open
    opened.transport.flow()
    await opened.cluster.received(ApiKey.PRODUCE)
    await asyncio.sleep(0.1)
    assert not opened.transport.is_open
    assert opened.lost == [None]


async def test_retire_closes_at_once_where_nothing_is_in_flight(
    opened: Opened,
) -> None:
    connection = await opened.open()
    connection.retire()
    assert not connection.is_ready
    assert opened.lost == [None]


async def test_a_reset_names_its_cause(opened: Opened) -> None:
    connection = await opened.open()
    opened.cluster.on(ApiKey.METADATA, HANG)
    pending = connection.submit(MetadataRequest(), timeout=5)
    opened.transport.reset(ConnectionResetError("cable cut"))
    with pytest.raises(ConnectionLost, match=r"broker 0 .*connection lost: cable cut"):
        await pending
    await connection.wait_gone(now() + LINGER)


def test_brokers_see_the_version_of_the_package() -> None:
    assert SETTINGS.identity("x", BROKER).software_version == kafkaio.__version__


class Written(asyncio.WriteTransport):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[object] = []

    def write(self, data: object) -> None:
        self.calls.append(data)


def test_small_parts_are_joined_and_large_ones_not_copied() -> None:
    transport, large = Written(), memoryview(bytearray(100_000))
    write_parts(transport, [b"a", b"b", large, b"c"])
    assert transport.calls[0] == b"ab"
    assert transport.calls[1] is large
    assert transport.calls[2] == b"c"
    assert len(transport.calls) == 3
