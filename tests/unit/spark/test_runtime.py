"""The loop and the clients of a process that Spark runs."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Iterator

import pytest

from kafkaio._client import Client
from kafkaio._config import ClientConfig, ProducerConfig
from kafkaio.errors import KafkaError
from kafkaio.spark import _runtime as runtime
from kafkaio.testing import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker on sockets, in a thread with a loop of its own."""
    made: list[Broker] = []
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    ended = asyncio.Event()

    async def serve() -> None:
        async with Broker(topics={"t": 1}) as one:
            made.append(one)
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(10)
    yield made[0]
    runtime._home().end()
    loop.call_soon_threadsafe(ended.set)
    thread.join(10)
    loop.close()


def config_of(broker: Broker, client_id: str = "spark") -> ClientConfig:
    return ClientConfig.of(broker.bootstrap_servers, {"client_id": client_id})


def test_a_result_and_an_exception_come_back() -> None:
    async def result() -> int:
        return 7

    async def failure() -> None:
        raise KeyError("why")

    assert runtime.run(result()) == 7
    with pytest.raises(KeyError, match="why"):
        runtime.run(failure())


def test_a_client_is_kept_from_task_to_task(broker: Broker) -> None:
    config = config_of(broker)
    first = runtime.run(runtime.client(config))
    assert runtime.run(_ask(first))
    assert runtime.run(runtime.client(config_of(broker))) is first


async def _ask(client: Client) -> bool:
    return await client.partitions_for("t") == {"t": [0]}


def test_a_client_that_has_ended_is_replaced(broker: Broker) -> None:
    config = config_of(broker)
    first = runtime.run(runtime.client(config))
    runtime.run(first.close())
    second = runtime.run(runtime.client(config))
    assert second is not first
    assert runtime.run(_ask(second))


def test_few_are_kept(broker: Broker) -> None:
    made = [
        runtime.run(runtime.client(config_of(broker, name))) for name in ("a", "b", "c")
    ]
    states = [one.statistics().state for one in made]
    assert states == ["closed", "running", "running"]


def test_a_producer_is_kept(broker: Broker) -> None:
    config = ProducerConfig.of(broker.bootstrap_servers, {})
    first = runtime.run(runtime.producer(config))
    assert runtime.run(first.send("t", b"v")).offset == 0
    second = runtime.run(runtime.producer(config))
    assert second is first
    assert runtime.run(second.send("t", b"v")).offset == 1


def test_what_cannot_start_is_not_kept() -> None:
    config = ClientConfig.of("127.0.0.1:1", {"default_api_timeout_ms": 50})
    for _ in range(2):
        with pytest.raises(KafkaError):
            runtime.run(runtime.client(config))


async def test_where_a_loop_runs_already(broker: Broker) -> None:
    """A notebook's thread runs a loop: the work is done in another thread."""

    async def work() -> tuple[bool, int]:
        found = await runtime.client(config_of(broker))
        return await _ask(found), threading.get_ident()

    is_there, thread = runtime.run(work())
    assert is_there
    assert thread != threading.get_ident()

    async def failure() -> None:
        raise KeyError("why")

    with pytest.raises(KeyError, match="why"):
        runtime.run(failure())


def test_a_forked_process_opens_its_own(broker: Broker) -> None:
    config = config_of(broker)
    first = runtime.run(runtime.client(config))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            second = runtime.run(runtime.client(config))
            if second is not first and runtime.run(_ask(second)):
                status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert runtime.run(_ask(first))


def test_the_collector_is_frozen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(gc, "freeze", lambda: calls.append(1))
    monkeypatch.setattr(runtime, "_frozen_pid", 0)
    monkeypatch.setenv("KAFKAIO_SPARK_FREEZE", "0")
    runtime.freeze()
    assert not calls
    monkeypatch.delenv("KAFKAIO_SPARK_FREEZE")
    runtime.freeze()
    runtime.freeze()
    assert calls == [1]
