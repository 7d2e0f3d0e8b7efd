"""A web service: kafkaio in a FastAPI lifespan, asked over HTTP."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn
from anyio.from_thread import start_blocking_portal
from fastapi import FastAPI, Request

import kafkaio
from kafkaio.testing import Broker

pytestmark = pytest.mark.anyio
ORDERS = 20


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def make_service(bootstrap: str) -> FastAPI:
    """Make a service that writes orders to Kafka and counts those that come back."""

    async def count(consumer: kafkaio.Consumer, seen: list[bytes | None]) -> None:
        async for record in consumer:
            seen.append(record.value)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with (
            kafkaio.Producer(bootstrap) as producer,
            kafkaio.Consumer(
                bootstrap,
                topics="orders",
                group_id="web",
                auto_offset_reset="earliest",
            ) as consumer,
            asyncio.TaskGroup() as tasks,
        ):
            app.state.producer, app.state.seen = producer, []
            counting = tasks.create_task(count(consumer, app.state.seen))
            yield
            counting.cancel()

    app = FastAPI(lifespan=lifespan)

    @app.post("/orders/{name}")
    async def order(name: str, request: Request) -> dict[str, int]:
        producer: kafkaio.Producer = request.app.state.producer
        meta = await producer.send("orders", name.encode(), key=name.encode())
        return {"partition": meta.partition, "offset": meta.offset}

    @app.get("/orders")
    async def orders(request: Request) -> list[str]:
        return [value.decode() for value in request.app.state.seen]

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


async def test_under_uvicorn(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        host, port = listener.getsockname()
        async with Broker(topics={"orders": 3}) as broker:
            config = uvicorn.Config(
                make_service(broker.bootstrap_servers), log_config=None, lifespan="on"
            )
            server = Server(config)
            async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
                tasks.create_task(server.serve(sockets=[listener]))
                await server.ready.wait()
                async with httpx.AsyncClient(base_url=f"http://{host}:{port}") as web:
                    answer = await order_and_wait(web)
                server.should_exit = True
    assert answer == ([200] * ORDERS, [str(i) for i in range(ORDERS)])
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []
