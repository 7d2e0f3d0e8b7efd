"""A web service that hands records to websockets, as the how-to page has it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import uvicorn
import websockets
from fastapi import FastAPI

import kafkaio
from kafkaio.testing import Broker
from tests.pages import python_blocks
from tests.support.patience import HANGS

pytestmark = pytest.mark.anyio
LARGE = "x" * 100_000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Server(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[str]:
    """Serve with uvicorn, on a free port; gives the address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        host, port = listener.getsockname()
        server = Server(uvicorn.Config(app, log_config=None, lifespan="on"))
        async with asyncio.timeout(HANGS), asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve(sockets=[listener]))
            await server.ready.wait()
            yield f"{host}:{port}"
            server.should_exit = True


@asynccontextmanager
async def service(
    monkeypatch: pytest.MonkeyPatch, **changes: Any
) -> AsyncIterator[tuple[str, kafkaio.Producer, Any]]:
    """The service of the page; gives its address, a producer and its names."""
    block = python_blocks("howto/websockets.md")[0]
    names: dict[str, Any] = {}
    exec(block, names)
    names.update(changes)
    async with Broker(topics={"prices": 2}) as broker:
        monkeypatch.setenv("KAFKA", broker.bootstrap_servers)
        async with (
            kafkaio.Producer(broker.bootstrap_servers) as producer,
            served(names["app"]) as address,
        ):
            yield address, producer, names


async def until(names: dict[str, Any], listeners: int) -> None:
    """Wait until so many websockets listen."""
    while True:
        if len(names["app"].state.feed.queues) == listeners:
            return
        await asyncio.sleep(0.01)


async def code_at_the_end(socket: websockets.ClientConnection) -> AsyncIterator[str]:
    """All messages, and then the code with which the service closes."""
    try:
        while True:
            yield str(await socket.recv())
    except websockets.ConnectionClosed as closed:
        yield str(closed.rcvd and closed.rcvd.code)


async def test_every_websocket_gets_every_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with service(monkeypatch) as (address, producer, names):
        prices = f"ws://{address}/prices"
        async with websockets.connect(prices) as one, websockets.connect(prices) as two:
            await until(names, 2)
            for n in range(50):
                await producer.send("prices", b"%d" % n, key=b"stock")
            for each in (one, two):
                assert [await each.recv() for _ in range(50)] == [
                    str(n) for n in range(50)
                ]
        await until(names, 0)
        async with httpx.AsyncClient() as web:
            answer = await web.get(f"http://{address}/health")
        assert answer.status_code == 200


async def test_a_slow_websocket_is_closed_and_delays_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with service(monkeypatch, WAITING=5) as (address, producer, names):
        prices = f"ws://{address}/prices"
        async with (
            websockets.connect(prices, max_queue=1, compression=None) as slow,
            websockets.connect(prices) as quick,
        ):
            await until(names, 2)
            count = 0
            while len(names["app"].state.feed.queues) == 2:  # slow reads nothing
                await producer.send("prices", LARGE.encode())
                assert await quick.recv() == LARGE
                count += 1
            received = [message async for message in code_at_the_end(slow)]
            assert received[-1] == "1013"
            assert len(received) - 1 < count  # the rest was left out
            await producer.send("prices", b"on")
            assert await quick.recv() == "on"


async def test_a_websocket_that_reads_nothing_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with service(monkeypatch, WAITING=5, SECONDS=0.2) as service_:
        address, producer, names = service_
        ended = asyncio.Event()
        send = names["send"]

        async def watched(*args: Any) -> None:
            try:
                await send(*args)
            except TimeoutError:
                ended.set()
                raise

        names["send"] = watched
        prices = f"ws://{address}/prices"
        impatient = {"max_queue": 1, "compression": None, "close_timeout": 0.1}
        async with websockets.connect(prices, **impatient):
            await until(names, 1)
            while names["app"].state.feed.queues:
                await producer.send("prices", LARGE.encode())
            await ended.wait()
        assert not names["app"].state.reading.done()


async def test_the_latest_of_each_key() -> None:
    names: dict[str, Any] = {}
    exec(python_blocks("howto/websockets.md")[1], names)
    latest = names["Latest"]()
    messages = latest.messages()
    for n in range(100):  # the browser takes nothing meanwhile
        latest.put(b"a", f"a {n}")
        latest.put(b"b", f"b {n}")
    assert [await anext(messages), await anext(messages)] == ["a 99", "b 99"]
    waiting = asyncio.create_task(anext(messages))
    await asyncio.sleep(0)
    assert not waiting.done()
    latest.put(b"c", "c 0")
    assert await waiting == "c 0"
    await messages.aclose()
