"""A producer belongs to the event loop and the process that started it."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pyarrow as pa
import pytest

from kafkaio._config import ProducerConfig
from kafkaio._producer import Producer
from kafkaio.errors import ClosedError
from kafkaio.testing import Broker

ELSEWHERE = "the producer 'p' was started on another event loop"
FORKED = "the producer 'p' was started in another process: make a new one after fork"


async def started(broker: Broker) -> Producer:
    options: Any = {"client_id": "p"}
    config = ProducerConfig.of(broker.bootstrap_servers, options)
    producer = Producer.from_config(config, dial=broker.dial)
    await producer.start()
    return producer


async def enqueue_nowait(producer: Producer) -> object:
    return producer.enqueue_nowait("t", b"stray", partition=0)


Use = Callable[[Producer], Awaitable[object]]
USES: dict[str, Use] = {
    "send": lambda p: p.send("t", b"stray", partition=0),
    "enqueue": lambda p: p.enqueue("t", b"stray", partition=0),
    "enqueue_nowait": enqueue_nowait,
    "send_many": lambda p: p.send_many("t", [b"stray"]),
    "send_table": lambda p: p.send_table("t", pa.table({"value": [b"stray"]})),
    "enqueue_table": lambda p: p.enqueue_table("t", pa.table({"value": [b"stray"]})),
    "flush": lambda p: p.flush(),
    "partitions_for": lambda p: p.partitions_for("t"),
}
EVERY_USE = pytest.mark.parametrize("use", USES.values(), ids=USES.keys())


def run_elsewhere(use: Use, producer: Producer) -> None:
    async def fails() -> None:
        with pytest.raises(ClosedError, match=ELSEWHERE):
            await asyncio.wait_for(use(producer), 5)

    asyncio.run(fails())


async def with_an_open_batch(broker: Broker, producer: Producer) -> None:
    """Have one that takes records by itself: what came before it gets no answer."""
    await producer.send("t", b"before", partition=0)
    broker.control.pause(0)
    producer.enqueue_nowait("t", b"on the way", partition=0)
    await asyncio.sleep(0.01)
    producer.enqueue_nowait("t", b"in the open batch", partition=0)


async def opened(*, batch: bool = False) -> tuple[Broker, Producer]:
    broker = await Broker(topics={"t": 1}, memory_transport=True).__aenter__()
    producer = await started(broker)
    if batch:
        await with_an_open_batch(broker, producer)
    else:
        await producer.send("t", b"before", partition=0)
    return broker, producer


async def ended(broker: Broker, producer: Producer) -> int:
    """Records written."""
    broker.control.resume(0)
    last = await producer.send("t", b"last", partition=0)
    await producer.close()
    await broker.__aexit__(None, None, None)
    return last.offset


@EVERY_USE
@pytest.mark.parametrize("batch", [False, True])
def test_it_is_not_used_in_another_thread(use: Use, batch: bool) -> None:
    async def go() -> None:
        broker, producer = await opened(batch=batch)
        await asyncio.to_thread(run_elsewhere, use, producer)
        assert await ended(broker, producer) == (3 if batch else 1)

    asyncio.run(go())


@EVERY_USE
def test_it_is_not_used_on_another_loop(use: Use) -> None:
    with asyncio.Runner() as home:
        broker, producer = home.run(opened())
        run_elsewhere(use, producer)
        assert home.run(ended(broker, producer)) == 1


def test_nor_in_a_thread_without_a_loop() -> None:
    async def go() -> None:
        broker, producer = await opened(batch=True)
        with pytest.raises(ClosedError, match=ELSEWHERE):
            await asyncio.to_thread(producer.enqueue_nowait, "t", b"stray", partition=0)
        assert await ended(broker, producer) == 3

    asyncio.run(go())


def test_a_delivery_is_not_awaited_on_another_loop() -> None:
    async def waits(delivery: Awaitable[object]) -> None:
        with pytest.raises(ClosedError, match=ELSEWHERE):
            await asyncio.wait_for(delivery, 5)

    async def go() -> None:
        broker, producer = await opened(batch=True)
        delivery = producer.enqueue_nowait("t", b"x", partition=0)
        table = await producer.enqueue_table("t", pa.table({"value": [b"y"]}))
        for each in (delivery, table):
            await asyncio.to_thread(lambda each=each: asyncio.run(waits(each)))
        assert await ended(broker, producer) == 5
        assert (await delivery).offset == 3
        assert (await table)["offset"].to_pylist() == [4]

    asyncio.run(go())


def test_while_its_loop_stands_still_another_one_gets_few_records_in() -> None:
    # With open batches, the running loop is looked at now and then alone.
    async def stray(producer: Producer) -> int:
        taken: list[Awaitable[object]] = []

        def enqueue() -> None:
            while len(taken) < 300:
                taken.append(producer.enqueue_nowait("t", b"stray", partition=0))

        with pytest.raises(ClosedError, match=ELSEWHERE):
            enqueue()
        for delivery in taken:
            with pytest.raises(ClosedError, match=ELSEWHERE):
                await delivery
        with pytest.raises(ClosedError, match=ELSEWHERE):
            await producer.send("t", b"stray", partition=0)
        return len(taken)

    with asyncio.Runner() as home:
        broker, producer = home.run(opened(batch=True))
        taken = asyncio.run(stray(producer))
        assert taken < 256
        # Those that got in are written: none is lost without a word.
        assert home.run(ended(broker, producer)) == 3 + taken


def test_a_second_run_says_that_it_is_another_loop() -> None:
    made: list[Producer] = []

    async def first() -> None:
        _, producer = await opened()
        made.append(producer)

    asyncio.run(first())
    for use in USES.values():
        run_elsewhere(use, made[0])
    with pytest.warns(ResourceWarning, match="producer 'p' was started and never"):
        forget(made)


def forget(made: list[Producer]) -> None:
    made.clear()
    gc.collect()


def test_a_loop_that_ends_under_it_is_no_bug_of_its_own() -> None:
    async def go() -> None:
        broker, producer = await opened()
        for task in asyncio.all_tasks():
            if task.get_name() == "p":
                task.cancel()  # as asyncio.run does at its end
        await asyncio.sleep(0)
        with pytest.raises(ClosedError, match="cancelled from outside"):
            await producer.send("t", b"x")
        await producer.close()
        await broker.__aexit__(None, None, None)

    asyncio.run(go())


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_it_is_not_used_in_a_forked_process() -> None:
    with asyncio.Runner() as home:
        broker, producer = home.run(opened(batch=True))
        delivery = producer.enqueue_nowait("t", b"in the open batch", partition=0)
        child = os.fork()
        if not child:
            os._exit(_uses_in_child(producer, delivery))
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert home.run(ended(broker, producer)) == 4


def _uses_in_child(producer: Producer, delivery: Awaitable[object]) -> int:
    """How many uses were not refused; 100 if something else went wrong."""

    async def wait(_: Producer) -> object:
        return await delivery

    try:
        wrong = 0
        for use in [*USES.values(), wait]:
            try:
                asyncio.run(asyncio.wait_for(use(producer), 5))
            except ClosedError as error:
                wrong += FORKED not in str(error)
            except BaseException:  # noqa: BLE001  (told by the code)
                wrong += 1
            else:
                wrong += 1
        wrong += producer._life.left_open is not None
    except BaseException:  # noqa: BLE001  (nothing may get past the fork)
        return 100
    return wrong
