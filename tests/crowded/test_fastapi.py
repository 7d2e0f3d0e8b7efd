"""A web service: kafkaio in a FastAPI lifespan, as the how-to page has it."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import types
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from anyio.from_thread import start_blocking_portal
from fastapi import FastAPI

import kafkaio
from kafkaio.testing import Broker
from tests.pages import python_blocks
from tests.support.patience import HANGS

pytestmark = pytest.mark.anyio
ORDERS = 20


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def load(block: int, names: dict[str, Any]) -> dict[str, Any]:
    """Run a block of the page."""
    exec(python_blocks("howto/fastapi.md")[block], names)
    return names


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Callable[[Broker], None]:
    """Tells the service which broker to use."""
    return lambda broker: monkeypatch.setenv("KAFKA", broker.bootstrap_servers)


def make_service() -> FastAPI:
    """Make the service of the how-to page."""
    app: FastAPI = load(0, {})["app"]
    return app


async def ask_the_service(
    kafka: Callable[[Broker], None],
) -> tuple[list[int], list[str]]:
    """Run the service in this loop, and ask it without a socket."""
    async with Broker(topics={"orders": 3}) as broker:
        kafka(broker)
        app = make_service()
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://service") as web,
            asyncio.timeout(HANGS),
        ):
            return await order_and_wait(web)


async def order_and_wait(web: httpx.AsyncClient) -> tuple[list[int], list[str]]:
    """Order, and wait until every order was consumed."""
    codes = [(await web.post(f"/orders/{i}")).status_code for i in range(ORDERS)]
    seen: list[str] = []
    while len(seen) < ORDERS and set(codes) == {200}:
        seen = (await web.get("/orders")).json()
        await asyncio.sleep(0)
    return codes, sorted(seen, key=int)


def test_in_a_portal(kafka: Callable[[Broker], None]) -> None:
    """As test clients run a service: on a loop in a thread, with anyio's portal."""
    with start_blocking_portal("asyncio") as portal:
        answer = portal.call(ask_the_service, kafka)
    assert answer == ([200] * ORDERS, [str(i) for i in range(ORDERS)])


class Server(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@asynccontextmanager
async def served() -> AsyncIterator[httpx.AsyncClient]:
    """Serve with uvicorn, on a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        host, port = listener.getsockname()
        config = uvicorn.Config(make_service(), log_config=None, lifespan="on")
        server = Server(config)
        async with asyncio.timeout(HANGS), asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve(sockets=[listener]))
            await server.ready.wait()
            async with httpx.AsyncClient(base_url=f"http://{host}:{port}") as web:
                yield web
            server.should_exit = True


async def test_under_uvicorn(
    kafka: Callable[[Broker], None], caplog: pytest.LogCaptureFixture
) -> None:
    async with Broker(topics={"orders": 3}) as broker:
        kafka(broker)
        async with served() as web:
            answer = await order_and_wait(web)
            assert (await web.get("/health")).status_code == 200
    assert answer == ([200] * ORDERS, [str(i) for i in range(ORDERS)])
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


async def test_a_consuming_task_that_fails_is_told_by_health(
    kafka: Callable[[Broker], None],
) -> None:
    async with Broker(topics={"orders": 3}) as broker:
        kafka(broker)
        async with kafkaio.Producer(broker.bootstrap_servers) as producer:
            await producer.send("orders", b"\xff is no UTF-8")
        async with served() as web:
            while (answer := await web.get("/health")).status_code == 200:
                pass
            assert answer.status_code == 503
            while (answer := await web.post("/orders/one")).status_code == 200:
                pass  # the producer closes
            assert answer.status_code == 500


async def test_the_test_of_the_page(
    kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = types.ModuleType("service")
    load(0, vars(service))
    monkeypatch.setitem(sys.modules, "service", service)
    test = load(1, {})["test_an_order_is_written"]
    async with asyncio.timeout(HANGS):
        await test(kafka_broker, monkeypatch)
