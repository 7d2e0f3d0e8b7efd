"""Tests of the data source that need no Spark."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from typing import TypeVar

import pytest

from kafkaio.spark import _runtime as runtime
from kafkaio.testing import Broker
from kafkaio.testing._broker.faults import Fault

T = TypeVar("T")


@pytest.fixture(autouse=True)
def _collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the collector of this process as it is, for the tests that come after."""
    monkeypatch.setenv("KAFKAIO_SPARK_FREEZE", "0")


@pytest.fixture(autouse=True)
def _limiter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test have its warnings: a process warns of one cause once in a while."""
    monkeypatch.setattr("kafkaio.spark._errors._limiter", None)


class Serving:
    """Brokers in a thread with a loop of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._brokers: list[Broker] = []

    def __call__(self, **faults: Fault) -> dict[str, str]:
        """Start a broker with faults by the name of a request; return its option."""
        servers = self._run(self._open())
        self.fail(**faults)
        return {"kafka.bootstrap.servers": servers}

    def fail(self, **faults: Fault) -> None:
        """Make requests fail from now on."""
        self._run(self._fail(faults))

    def end(self) -> None:
        """Stop all brokers."""
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _run(self, coroutine: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(20)

    async def _open(self) -> str:
        broker = await Broker(topics={"t": 2}).__aenter__()
        self._brokers.append(broker)
        return broker.bootstrap_servers

    async def _fail(self, faults: dict[str, Fault]) -> None:
        for broker in self._brokers:
            for name, fault in faults.items():
                broker.faults.on(name, fault)

    async def _close(self) -> None:
        for broker in self._brokers:
            await broker.__aexit__(None, None, None)


@pytest.fixture
def serving() -> Iterator[Serving]:
    """Starts brokers."""
    found = Serving()
    yield found
    runtime._home().end()
    found.end()
