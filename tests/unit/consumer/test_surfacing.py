"""Whatever ends a background task reaches whoever reads, within a second.

A task that the tables below do not name fails the first test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import pytest

from kafkaio._client.client import Client
from kafkaio._config import ClientConfig
from kafkaio._consumer import Consumer
from kafkaio._producer import Producer
from kafkaio._runtime.clock import now
from kafkaio.errors import ClosedError
from kafkaio.testing import Broker
from tests.unit.consumer.group_fakes import virtual

CLASSIC: dict[str, Any] = {"group_id": "g", "group_protocol": "classic"}
NEWER: dict[str, Any] = {"group_id": "g", "group_protocol": "consumer"}
NO_GROUP: dict[str, Any] = {}

#: Those that own others, and do nothing else.
OWNERS = ["kafkaio", "kafkaio consumer", "kafkaio group g"]
#: Every task that lasts, by name.
CLIENT = [
    "kafkaio",
    "kafkaio: CoordinatorFinder.run",
    "kafkaio: MetadataUpdater.run",
]
CONSUMER = [
    *CLIENT,
    "kafkaio consumer",
    "kafkaio consumer: AutoCommitter.run",
    "kafkaio consumer: Positioner.run",
    "kafkaio consumer: assign",
    "kafkaio consumer: catch up with broker 0",
    "kafkaio consumer: fetch from broker 0",
]
GROUP = [
    "kafkaio consumer: group",
    "kafkaio group g",
    "kafkaio group g: callbacks",
]
LANES = ["kafkaio consumer: lanes"]
PRODUCER = [*CLIENT, "kafkaio: producer"]


class Bug(Exception):
    pass


def cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()


def crash(task: asyncio.Task[Any]) -> None:
    """Let what a task waits for raise what nobody expects."""
    if task.get_name() in OWNERS:  # has nothing of its own that could fail
        task.cancel()
        return
    waiter = task._fut_waiter  # type: ignore[attr-defined]
    waiter.set_exception(Bug("planted"))


Form: TypeAlias = Callable[[Consumer], Coroutine[Any, Any, None]]


async def by_record(consumer: Consumer) -> None:
    async for _ in consumer:
        pass


async def at_work(consumer: Consumer) -> None:
    # With records at hand all the time.
    async for _ in consumer:
        await asyncio.sleep(0.01)


async def by_poll(consumer: Consumer) -> None:
    while True:
        await consumer.poll()


async def by_batch(consumer: Consumer) -> None:
    async for _ in consumer.batches():
        pass


async def by_lane(consumer: Consumer) -> None:
    async for lane in consumer.partitions():
        async for _ in lane:
            pass


async def waiting_for_lanes(consumer: Consumer) -> None:
    _kept = [lane async for lane in consumer.partitions()]


async def by_handler(consumer: Consumer) -> None:
    async def handle(_: object) -> None:
        await asyncio.sleep(0)

    await consumer.run(handle, concurrency=2)


async def by_busy_handlers(consumer: Consumer) -> None:
    async def handle(_: object) -> None:
        await asyncio.sleep(0.1)

    await consumer.run(handle, concurrency=2)


async def by_event(consumer: Consumer) -> None:
    async for _ in consumer.rebalances():
        pass


async def for_a_revoke(consumer: Consumer) -> None:
    async with consumer.wait_for_revoke():
        pass


FORMS = [
    by_record,
    at_work,
    by_poll,
    by_batch,
    by_lane,
    waiting_for_lanes,
    by_handler,
    by_busy_handlers,
    by_event,
    for_a_revoke,
]


def lasting(names: set[asyncio.Task[Any]]) -> dict[str, asyncio.Task[Any]]:
    return {
        task.get_name(): task for task in names if task.get_name().startswith("kafkaio")
    }


def client_of(broker: Broker) -> Client:
    config = ClientConfig.of(broker.bootstrap_servers, {"client_id": "kafkaio"})
    return Client.from_config(config, dial=broker.dial)


async def fill(client: Client, count: int) -> None:
    async with Producer(client) as producer:
        for number in range(count):
            await producer.enqueue("t", b"%d" % number, partition=number % 2)


async def surfaces(
    options: dict[str, Any],
    form: Form,
    fault: Callable[[asyncio.Task[Any]], None],
    victim: str,
) -> set[str]:
    """Read, let something happen to a task, see it; names of the tasks there are."""
    async with (
        Broker(topics={"t": 2}, memory_transport=True) as broker,
        client_of(broker) as client,
    ):
        # Enough to be at work all the time, and more than a fetch brings.
        await fill(client, 2_000 if "work" in form.__name__ else 20)
        consumer = Consumer(client, topics="t", auto_offset_reset="earliest", **options)
        await consumer.start()
        reading = asyncio.ensure_future(form(consumer))
        await asyncio.sleep(2.5)
        tasks = lasting(asyncio.all_tasks())
        if victim:
            assert not reading.done()
            fault(tasks[victim])
            begun = now()
            await asyncio.wait([reading], timeout=10)
            assert reading.done(), "nobody heard of it"
            assert now() - begun <= 1.0
            check_cause(reading, cancel if victim in OWNERS else fault)
        reading.cancel()
        await asyncio.wait([reading])
        await consumer.close(1.0)
    return set(tasks)


def check_cause(
    ended: asyncio.Future[Any], fault: Callable[[asyncio.Task[Any]], None]
) -> None:
    error = ended.exception()
    assert error is not None
    causes = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    if fault is crash:
        assert isinstance(causes[-1], Bug), causes
    else:
        assert isinstance(causes[-1], ClosedError)
        assert "cancelled from outside" in str(causes[-1])


@virtual
@pytest.mark.parametrize("form", [by_record, by_lane])
@pytest.mark.parametrize("options", [CLASSIC, NEWER, NO_GROUP])
async def test_every_task_is_named_here(options: dict[str, Any], form: Form) -> None:
    expected = {*CONSUMER, *(GROUP if options else ())}
    expected |= {*(LANES if form is by_lane else ())}
    assert await surfaces(options, form, cancel, "") == expected


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@virtual
async def test_in_a_group_a_task_is_cancelled(form: Form) -> None:
    # Each way to end, for each way to read; and each task, for one way to read.
    some = [CLIENT[0], CLIENT[1], CONSUMER[-1], *GROUP]
    for victim in [*CONSUMER, *GROUP] if form is by_record else some:
        await surfaces(CLASSIC, form, cancel, victim)


@virtual
async def test_in_a_group_a_task_crashes() -> None:
    for victim in [*CONSUMER, *GROUP]:
        await surfaces(CLASSIC, by_handler, crash, victim)


@pytest.mark.parametrize("fault", [cancel, crash])
@virtual
async def test_in_a_group_of_the_consumer_protocol(
    fault: Callable[[asyncio.Task[Any]], None],
) -> None:
    for victim in GROUP:
        await surfaces(NEWER, by_record, fault, victim)


@pytest.mark.parametrize("fault", [cancel, crash])
@virtual
async def test_without_a_group(fault: Callable[[asyncio.Task[Any]], None]) -> None:
    for victim in CONSUMER:
        await surfaces(NO_GROUP, by_record, fault, victim)


@pytest.mark.parametrize("fault", [cancel, crash])
@pytest.mark.parametrize("form", [by_lane, waiting_for_lanes])
@virtual
async def test_the_task_behind_the_lanes(
    form: Form, fault: Callable[[asyncio.Task[Any]], None]
) -> None:
    await surfaces(CLASSIC, form, fault, *LANES)


@pytest.mark.parametrize("fault", [cancel, crash])
@pytest.mark.parametrize("victim", PRODUCER)
@virtual
async def test_a_producer(
    victim: str, fault: Callable[[asyncio.Task[Any]], None]
) -> None:
    async with (
        Broker(topics={"t": 2}, memory_transport=True) as broker,
        client_of(broker) as client,
    ):
        producer = Producer(client)
        await producer.start()
        await producer.send("t", b"before")
        broker.control.pause(0)
        sending = asyncio.ensure_future(producer.send("t", b"hangs"))
        await asyncio.sleep(1)
        tasks = lasting(asyncio.all_tasks())
        assert tasks.keys() == {*PRODUCER}
        fault(tasks[victim])
        begun = now()
        await asyncio.wait([sending], timeout=10)
        assert now() - begun <= 1.0
        check_cause(sending, cancel if victim in OWNERS else fault)
        with pytest.raises(type(sending.exception() or Bug())):
            await producer.send("t", b"after")
        await producer.close(1.0)
