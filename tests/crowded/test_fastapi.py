"""A web service: kafkaio in a FastAPI lifespan, as the how-to page has it."""

from __future__ import annotations

import asyncio
import logging
import socket
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT
from collections.abc import AsyncIterator
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

pytestmark = pytest.mark.anyio
ORDERS = 20


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def load(block: str, names: dict[str, Any]) -> Any:
    """Run a block of the page."""
    return eval(compile(block, "<page>", "exec", PyCF_ALLOW_TOP_LEVEL_AWAIT), names)


def make_service(bootstrap: str) -> FastAPI:
    """Make the service of the how-to page."""
    names: dict[str, Any] = {}
    load(python_blocks("howto/fastapi.md", {"localhost:9092": bootstrap})[0], names)
    app: FastAPI = names["app"]
    return app


async def ask_the_service() -> tuple[list[int], list[str]]:
    """Run the service in this loop, and ask it without a socket."""
    async with Broker(topics={"orders": 3}) as broker:
        app = make_service(broker.bootstrap_servers)
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://service") as web,
            asyncio.timeout(20),
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


def test_in_a_portal() -> None:
    """As test clients run a service: on a loop in a thread, with anyio's portal."""
    with start_blocking_portal("asyncio") as portal:
        answer = portal.call(ask_the_service)
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
async def served(bootstrap: str) -> AsyncIterator[httpx.AsyncClient]:
    """Serve with uvicorn, on a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        host, port = listener.getsockname()
        config = uvicorn.Config(make_service(bootstrap), log_config=None, lifespan="on")
        server = Server(config)
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve(sockets=[listener]))
            await server.ready.wait()
            async with httpx.AsyncClient(base_url=f"http://{host}:{port}") as web:
                yield web
            server.should_exit = True


async def test_under_uvicorn(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        Broker(topics={"orders": 3}) as broker,
        served(broker.bootstrap_servers) as web,
    ):
        answer = await order_and_wait(web)
        assert (await web.get("/health")).status_code == 200
    assert answer == ([200] * ORDERS, [str(i) for i in range(ORDERS)])
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


async def test_a_consuming_task_that_fails_is_told_by_health() -> None:
    async with Broker(topics={"orders": 3}) as broker:
        async with kafkaio.Producer(broker.bootstrap_servers) as producer:
            await producer.send("orders", b"\xff is no UTF-8")
        async with served(broker.bootstrap_servers) as web:
            while (answer := await web.get("/health")).status_code == 200:
                pass
            assert answer.status_code == 503
            while (answer := await web.post("/orders/one")).status_code == 200:
                pass  # the producer closes
            assert answer.status_code == 500


async def test_the_test_of_the_page() -> None:
    async with Broker(topics={"orders": 3}) as broker:
        blocks = python_blocks(
            "howto/fastapi.md", {"localhost:9092": broker.bootstrap_servers}
        )
        names: dict[str, Any] = {}
        load(blocks[0], names)
        async with asyncio.timeout(20):
            await load(blocks[1], names)
