"""Who forgets to close what was started is told so."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from kafkaio._client.client import Client
from kafkaio._config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio._consumer import Consumer
from kafkaio._producer import Producer
from kafkaio.errors import ClosedError, ConfigurationError
from kafkaio.testing import Broker

CLOSED = "was started and never closed: use `async with`, or close"


def consumer(broker: Broker) -> Consumer:
    options: Any = {"group_id": "g"}
    config = ConsumerConfig.of(broker.bootstrap_servers, options)
    return Consumer.from_config(config, dial=broker.dial, topics="t")


def producer(broker: Broker) -> Producer:
    config = ProducerConfig.of(broker.bootstrap_servers, {"client_id": "p"})
    return Producer.from_config(config, dial=broker.dial)


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
                t for t in asyncio.all_tasks() if "MetadataUpdater" in t.get_name()
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


class Owner:
    """Has a consumer, and calls itself back."""

    def __init__(self, broker: Broker, **options: Any) -> None:
        config = ConsumerConfig.of(broker.bootstrap_servers, options)
        dial = None if config.io_thread else broker.dial
        self.called = 0
        self.consumer = Consumer.from_config(
            config,
            dial=dial,
            topics="t",
            on_assigned=self.call,
            on_revoked=self.wait,
            on_lost=self.call,
        )

    def call(self, _: object) -> None:
        self.called += 1

    async def wait(self, _: object) -> None:
        self.called += 1


def owned(broker: Broker) -> Consumer:
    return Owner(broker, group_id="g").consumer


def owned_without_group(broker: Broker) -> Consumer:
    return Owner(broker, client_id="g").consumer


def owned_in_thread(broker: Broker) -> Consumer:
    return Owner(broker, group_id="g", io_thread=True).consumer


def producer_with_batches(broker: Broker) -> Producer:
    return producer(broker)


WHILE_IT_RUNS: list[Make] = [
    consumer,
    owned,
    owned_without_group,
    owned_in_thread,
    producer,
    producer_with_batches,
    client,
]


def tasks_beside() -> frozenset[str]:
    """Names of all tasks but this one and the broker's."""
    names = {task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}}
    return frozenset(n for n in names if not n.startswith(("node", "embedded")))


async def forget(it: list[Any], kept: frozenset[str] = frozenset()) -> None:
    """Drop what is in the list; returns when only some tasks are left."""
    gone = weakref.ref(it[0])

    async def drop() -> None:
        it.clear()
        async with asyncio.timeout(10):
            while tasks_beside() != kept or runs():
                gc.collect()
                await asyncio.sleep(0.001)

    with pytest.warns(ResourceWarning, match=CLOSED):
        await drop()
    gc.collect()  # the warning refers to its source
    assert gone() is None


@pytest.mark.parametrize("make", WHILE_IT_RUNS)
def test_what_is_forgotten_ends_while_its_loop_runs(make: Make) -> None:
    async def go() -> None:
        in_thread = make is owned_in_thread  # the memory's network has one loop
        async with Broker(topics={"t": 1}, memory_transport=not in_thread) as broker:
            it: list[Any] = [make(broker)]
            await it[0].start()
            if make is producer_with_batches:
                await it[0].send("t", b"x")
                broker.control.pause(0)
                for _ in range(3):
                    it[0].enqueue_nowait("t", b"y")
                    await asyncio.sleep(0)
            assert tasks_beside()
            reports: list[object] = []
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: reports.append(context))
            await forget(it)
            assert reports == []

    asyncio.run(go())


@pytest.mark.parametrize("make", [producer, consumer])
def test_on_a_shared_client_only_what_is_forgotten_ends(make: Make) -> None:
    async def go() -> None:
        async with (
            Broker(topics={"t": 1}, memory_transport=True) as broker,
            client(broker) as shared,
        ):
            kept = tasks_beside()
            own_listeners = len(shared._cluster.life._listeners)
            it: list[Any] = [
                Producer(shared)
                if make is producer
                else Consumer(shared, topics="t", group_id="g")
            ]
            await it[0].start()
            if make is producer:
                await it[0].send("t", b"x")
            await forget(it, kept)
            assert len(shared._cluster.life._listeners) == own_listeners
            async with Producer(shared) as other:
                await other.send("t", b"y")

    asyncio.run(go())


def test_deliveries_of_a_forgotten_producer_fail() -> None:
    async def go() -> None:
        async with Broker(topics={"t": 1}, memory_transport=True) as broker:
            it: list[Any] = [producer(broker)]
            await it[0].start()
            await it[0].send("t", b"x")
            broker.control.pause(0)
            delivery = it[0].enqueue_nowait("t", b"y")
            await forget(it)
            with pytest.raises(ClosedError, match="closed before the record"):
                await delivery

    asyncio.run(go())


@pytest.mark.parametrize(
    "how", [Consumer.__aiter__, Consumer.batches, Consumer.partitions]
)
def test_who_iterates_holds_the_consumer(how: Callable[[Consumer], Any]) -> None:
    async def go() -> None:
        async with Broker(topics={"t": 1}, memory_transport=True) as broker:
            it: list[Any] = [owned(broker)]
            await it[0].start()
            iterator = how(it[0])
            gone = weakref.ref(it.pop())
            gc.collect()
            still = gone()
            assert still is not None
            del iterator
            await still.close()

    asyncio.run(go())


def test_who_holds_enqueue_nowait_holds_the_producer() -> None:
    async def go() -> None:
        async with Broker(topics={"t": 1}, memory_transport=True) as broker:
            it: list[Any] = [producer(broker)]
            await it[0].start()
            enqueue = it[0].enqueue_nowait
            gone = weakref.ref(it.pop())
            gc.collect()
            assert (await enqueue("t", b"x")).offset == 0
            still = gone()
            assert still is not None
            await still.close()

    asyncio.run(go())


def test_callbacks_of_an_owner_are_called_while_it_is_held() -> None:
    async def go() -> None:
        async with Broker(topics={"t": 1}, memory_transport=True) as broker:
            owner = Owner(broker, group_id="g")
            async with owner.consumer:
                gc.collect()
                assert owner.called == 1
            assert owner.called == 2

    asyncio.run(go())


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
            assert it._life.left_open
            assert it._life.home is not None
            it._life.home.forked()  # as the interpreter calls it
            word = it._life.left_open
            it._life.home.is_elsewhere = False
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
