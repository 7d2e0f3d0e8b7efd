"""Brokers that hang while a client connects: each attempt ends in time, and is told.

``socket_connection_setup_timeout_ms`` limits an attempt, whatever hangs in it.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

import kafkaio
from kafkaio.testing import Broker
from tests.support.patience import HANGS
from tests.support.sockets import black_hole, silent

LIMIT_MS = 300

Found = Callable[[str, int], Any]


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Callable[[Found], None]:
    """Say what names stand for."""

    def use(found: Found) -> None:
        monkeypatch.setattr(socket, "getaddrinfo", lambda h, p, **_: found(h, p))

    return use


def addresses(*of: tuple[str, int]) -> list[Any]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", each) for each in of]


class Attempts:
    """Observes how attempts to connect end."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.causes: list[str] = []
        self.first = asyncio.Event()
        self.seconds = 0.0

    def connection_lost(self, node_id: int, kind: str, cause: object) -> None:
        """An attempt has failed."""
        if not self.causes:
            self.seconds = time.monotonic() - self.began
        self.causes.append(str(cause))
        self.first.set()


@contextmanager
def hanging(what: str, resolve: Callable[[Found], None]) -> Iterator[str]:
    """Something that hangs; the address of it."""
    with ExitStack() as stack:
        if what == "black hole":
            yield f"127.0.0.1:{stack.enter_context(black_hole())}"
        elif what == "silent":
            yield f"127.0.0.1:{stack.enter_context(silent())}"
        elif what == "name server":
            release = threading.Event()
            stack.callback(release.set)
            resolve(lambda *_: release.wait())
            yield "kafka.example:9092"
        elif what == "ten black holes":
            ports = [stack.enter_context(black_hole()) for _ in range(10)]
            resolve(lambda *_: addresses(*(("127.0.0.1", port) for port in ports)))
            yield "kafka.example:9092"
        else:
            ports = [stack.enter_context(silent()) for _ in range(10)]
            resolve(lambda *_: addresses(*(("127.0.0.1", port) for port in ports)))
            yield "kafka.example:9092"


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize(
    ("what", "step"),
    [
        ("black hole", "connect"),
        ("silent", ""),
        ("name server", "resolve name"),
        ("ten black holes", "connect"),
        ("ten silent", ""),
    ],
)
async def test_each_attempt_ends_in_time(
    resolve: Callable[[Found], None], protocol: str, what: str, step: str
) -> None:
    options: dict[str, Any] = {"security_protocol": protocol}
    if protocol.startswith("SASL"):
        options |= {
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_username": "alice",
            "sasl_password": "alice-secret",
        }
    seen = Attempts()
    with hanging(what, resolve) as servers:
        client = kafkaio.Client(
            servers,
            observer=seen,
            socket_connection_setup_timeout_ms=LIMIT_MS,
            **options,
        )
        starting = asyncio.create_task(client.start(timeout=2 * HANGS))
        try:
            async with asyncio.timeout(HANGS):
                await seen.first.wait()
        finally:
            starting.cancel()
            await asyncio.wait([starting])
            await client.close()
    assert seen.seconds > LIMIT_MS / 2000  # the limit has 20 % of jitter
    expected = step or ("TLS handshake" if "SSL" in protocol else "negotiate versions")
    # Dialling has 95 % of the time, which on a busy machine may end as late.
    assert expected in seen.causes[0] or "connect: not done" in seen.causes[0]
    assert "within" in seen.causes[0]


@pytest.mark.skipif(
    not hasattr(socket, "TCP_USER_TIMEOUT"), reason="needs 127.0.0.2, as on Linux"
)
async def test_an_address_that_says_nothing_is_tried_last(
    resolve: Callable[[Found], None],
) -> None:
    # A broker that hangs takes connections: its address would win each race.
    async with Broker() as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        resolve(lambda *_: addresses(("127.0.0.2", port), ("127.0.0.1", port)))
        with silent("127.0.0.2", port):
            seen = Attempts()
            async with kafkaio.Client(
                f"kafka.example:{port}",
                observer=seen,
                socket_connection_setup_timeout_ms=LIMIT_MS,
            ):
                pass
    assert len([each for each in seen.causes if "negotiate versions" in each]) == 1


async def test_a_login_needs_none_of_the_applications_threads() -> None:
    loop, release = asyncio.get_running_loop(), threading.Event()
    async with Broker(sasl=True, users={"bob": "bob-secret"}) as broker:
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = loop.run_in_executor(None, release.wait)
        client = kafkaio.Client(
            broker.bootstrap("SASL").replace("127.0.0.1", "localhost"),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-512",
            sasl_username="bob",
            sasl_password="bob-secret",
        )
        try:
            await client.start(timeout=20)
            await client.close()
        finally:
            release.set()
            await busy
