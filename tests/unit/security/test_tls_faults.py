"""A broker that closes, stalls or lies at every byte of a TLS handshake."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Sequence

import pytest

from kafkaio._net.dialling import TcpDial
from kafkaio._net.transport import DialOptions
from kafkaio.errors import AuthenticationError, BrokerNotAvailable
from kafkaio.protocol._message import Buffer
from kafkaio.testing import Broker
from kafkaio.testing._broker.faults import Fault, close_at, invert_at, stall_at

SECONDS = 0.3
BATCH = 200
#: A signature of ECDSA differs in length by some bytes from one to the next.
VARIATION = 12


class Sink:
    def frame_received(self, frame: Buffer) -> None:
        raise AssertionError(bytes(frame))

    def connection_lost(self, cause: BaseException | None) -> None:
        del cause


def first_flight(broker: Broker) -> int:
    """How many bytes a node sends until the client has proof of who it is."""
    files = broker._files
    assert files is not None
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = broker.certificates.client_context().wrap_bio(
        ours, theirs, server_hostname="127.0.0.1"
    )
    context = files.server_context(wants_certificate=False)
    sent = ssl.MemoryBIO()
    server = context.wrap_bio(theirs, sent, server_side=True)
    for end in (client, server):
        with pytest.raises(ssl.SSLWantReadError):
            end.do_handshake()
    return sent.pending


async def attempt(
    address: tuple[str, int], context: ssl.SSLContext, seconds: float
) -> None:
    """Connect; whatever fails, fails with an error of ours."""
    options = DialOptions(timeout=seconds, max_frame_size=1 << 20, ssl_context=context)
    async with asyncio.timeout(60):
        transport = await TcpDial()(*address, Sink(), options)
    transport.abort()


async def outcomes(
    broker: Broker, faults: Sequence[Fault], seconds: float = SECONDS
) -> list[BrokerNotAvailable | AuthenticationError | None]:
    """How attempts end, each with a fault of its own; all wait at the same time."""
    host, _, port = broker.bootstrap("SSL").rpartition(":")
    context = broker.certificates.client_context()
    found: list[BrokerNotAvailable | AuthenticationError | None] = [None] * len(faults)

    async def one(index: int) -> None:
        try:
            await attempt((host, int(port)), context, seconds)
        except (BrokerNotAvailable, AuthenticationError) as failure:
            found[index] = failure

    async with asyncio.TaskGroup() as group:
        for index, fault in enumerate(faults):
            rule = broker.faults.on_connection(fault, listener="SSL")
            group.create_task(one(index))
            while not rule.count:  # noqa: ASYNC110  (the node has it in some iterations)
                await asyncio.sleep(0)
            broker.faults.remove(rule)
    return found


def open_files() -> int:
    """How many files and sockets are open; 0 where the system does not tell."""
    return len(os.listdir("/dev/fd")) if os.path.isdir("/dev/fd") else 0


@pytest.mark.parametrize("make", [close_at, stall_at, invert_at])
async def test_every_byte_of_a_handshake(make: Callable[[int], Fault]) -> None:
    async with Broker(tls=True) as broker, asyncio.timeout(120):
        size = first_flight(broker) - VARIATION
        before, tasks = open_files(), asyncio.all_tasks()
        for start in range(0, size, BATCH):
            positions = range(start, min(size, start + BATCH))
            found = await outcomes(broker, [make(position) for position in positions])
            passed = [p for p, one in zip(positions, found, strict=True) if one is None]
            # The version of a record is not looked at (RFC 8446, section 5.1).
            assert not passed or (make is invert_at and len(passed) <= 8), passed
        while open_files() > before or asyncio.all_tasks() - tasks:  # noqa: ASYNC110  (nothing tells)
            await asyncio.sleep(0.01)
        assert await outcomes(broker, [close_at(1 << 20)], seconds=30) == [None]
