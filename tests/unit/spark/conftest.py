"""Tests of the data source that need no Spark."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from kafkaio.spark import runtime
from kafkaio.testing import Broker
from kafkaio.testing.broker.faults import Fault


@pytest.fixture(autouse=True)
def _collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the collector of this process as it is, for the tests that come after."""
    monkeypatch.setenv("KAFKAIO_SPARK_FREEZE", "0")


@pytest.fixture(autouse=True)
def _limiter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test have its warnings: a process warns of one cause once in a while."""
    monkeypatch.setattr("kafkaio.spark.errors._limiter", None)


@pytest.fixture
def serving() -> Iterator[Callable[..., dict[str, str]]]:
    """Start a broker in a thread, with faults by the name of a request."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    brokers: list[Broker] = []

    async def open_one(given: dict[str, Fault]) -> str:
        broker = await Broker(topics={"t": 2}).__aenter__()
        brokers.append(broker)
        for name, fault in given.items():
            broker.faults.on(name, fault)
        return broker.bootstrap_servers

    async def close_all() -> None:
        for broker in brokers:
            await broker.__aexit__(None, None, None)

    def serve(**given: Fault) -> dict[str, str]:
        found = asyncio.run_coroutine_threadsafe(open_one(given), loop).result(10)
        return {"kafka.bootstrap.servers": found}

    yield serve
    runtime._home().end()
    asyncio.run_coroutine_threadsafe(close_all(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()
