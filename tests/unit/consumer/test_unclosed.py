"""Who forgets to close what was started is told so."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from kafkaio.client.client import Client
from kafkaio.config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio.consumer import Consumer
from kafkaio.errors import ConfigurationError
from kafkaio.producer import Producer
from kafkaio.testing import Broker

CLOSED = "was started and never closed: use `async with`, or close"


def consumer(broker: Broker) -> Consumer:
    options: Any = {"group_id": "g"}
    config = ConsumerConfig.of(broker.bootstrap_servers, options)
    client = Client.from_config(config, dial=broker.dial)
    return Consumer.from_config(config, client=client, topics="t")


def producer(broker: Broker) -> Producer:
    config = ProducerConfig.of(broker.bootstrap_servers, {"client_id": "p"})
    return Producer.from_config(
        config, client=Client.from_config(config, dial=broker.dial)
    )


def client(broker: Broker) -> Client:
    config = ClientConfig.of(broker.bootstrap_servers, {"client_id": "c"})
    return Client.from_config(config, dial=broker.dial)


Make = Callable[[Broker], Consumer | Producer | Client]
KINDS = pytest.mark.parametrize(
    ("make", "name"),
    [(consumer, "consumer 'g'"), (producer, "producer 'p'"), (client, "client 'c'")],
)


async def live(make: Make, how: str) -> None:
    async with Broker(topics={"t": 1}, memory_transport=True) as broker:
        it = make(broker)
        if how == "never started":
            return
        await it.start()
        if how == "crashed, and closed":
            task = next(
                t for t in asyncio.all_tasks() if "MetadataKeeper" in t.get_name()
            )
            task.cancel()
            await asyncio.sleep(0.1)
        if how != "left":
            await it.close()


@KINDS
def test_what_was_left_open_says_so_once_its_loop_has_ended(
    make: Make, name: str
) -> None:
    def leave() -> None:
        asyncio.run(live(make, "left"))
        gc.collect()

    with pytest.warns(ResourceWarning, match=CLOSED) as told:
        leave()
    assert [name in str(word.message) for word in told] == [True]  # not of its client


@KINDS
@pytest.mark.parametrize("how", ["never started", "closed", "crashed, and closed"])
def test_all_else_says_nothing(make: Make, name: str, how: str) -> None:
    del name
    with warnings.catch_warnings(record=True, action="always") as told:
        asyncio.run(live(make, how))
        gc.collect()
    assert told == []


def test_nor_does_what_could_not_be_made() -> None:
    with warnings.catch_warnings(record=True, action="always") as told:
        for kind in (Consumer, Producer, Client):
            with pytest.raises(ConfigurationError):
                kind(request_timeout_ms=-1)
        gc.collect()
    assert told == []


def test_nor_does_it_in_another_process() -> None:
    async def fork() -> bool:
        async with Broker(memory_transport=True) as broker:
            it = client(broker)
            await it.start()
            assert it._left_open()
            it._life._pid = os.getpid() + 1  # as after a fork
            word = it._left_open()
            it._life._pid = os.getpid()
            await it.close()
            return word is None

    assert asyncio.run(fork())


def runs() -> bool:
    return any(thread.name == "kafkaio I/O" for thread in threading.enumerate())


def test_one_with_a_thread_says_so_and_ends_the_thread() -> None:
    async def leave() -> None:
        async with Broker(topics={"t": 1}) as broker:
            servers = broker.bootstrap_servers
            it = [Consumer(servers, topics="t", group_id="g", io_thread=True)]
            await it[0].start()

            async def forget() -> None:
                it.clear()
                while runs():  # the thread may be using it at any moment
                    gc.collect()
                    await asyncio.sleep(0.01)

            with pytest.warns(ResourceWarning, match=f"consumer 'g' {CLOSED}"):
                await asyncio.wait_for(forget(), 10)

    asyncio.run(leave())
