"""Cancelled at every await of every call, a transaction is whole or not at all.

After each cancellation: no record of an aborted transaction is committed, and none is
committed in part; every outcome ends, and is what the log says; no request broke the
laws of `tests.sim.requests` (no EndTxn with a batch on the wire, one verdict for a
transaction, no bump in one); nothing runs on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pyarrow as pa
import pytest

from kafkaio._producer import Producer
from kafkaio._producer.transaction import Transaction, TransactionOutcome
from kafkaio.errors import ClosedError, KafkaError, OutcomeUnknown
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.testing import drop
from kafkaio.types import GroupMetadata, TopicPartition
from tests.unit.producer.transactional import BOTH, ID, World, until, world

COMMITTED, ABORTED = TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED
T0 = TopicPartition("t", 0)
GROUP = GroupMetadata("g")
#: What every transaction here writes.
WHOLE = [b"1", b"2", b"3"]

Body = Callable[[Producer, list[Transaction]], Awaitable[None]]


async def write(tx: Transaction) -> None:
    await tx.send("t", WHOLE[0])
    delivery = await tx.enqueue("t", WHOLE[1])
    await tx.commit_offsets(GROUP, {T0: 7})
    await tx.send_many("t", WHOLE[2:])
    await delivery


async def by_block(producer: Producer, made: list[Transaction]) -> None:
    async with producer.transaction() as tx:
        made.append(tx)
        await write(tx)


async def by_hand(producer: Producer, made: list[Transaction]) -> None:
    tx = producer.transaction()
    await tx.begin()
    made.append(tx)
    try:
        await write(tx)
    except BaseException:
        await tx.abort()
        raise
    await tx.commit()


async def aborted(producer: Producer, made: list[Transaction]) -> None:
    tx = producer.transaction()
    await tx.begin()
    made.append(tx)
    try:
        await write(tx)
    finally:
        await tx.abort()


async def by_columns(producer: Producer, made: list[Transaction]) -> None:
    async with producer.transaction() as tx:
        made.append(tx)
        delivery = tx.enqueue_nowait("t", WHOLE[0])
        await tx.send_table("t", pa.table({"value": WHOLE[1:]}))
        await tx.commit_offsets(GROUP, {T0: 7})
        await delivery


async def raising(producer: Producer, made: list[Transaction]) -> None:
    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        async with producer.transaction() as tx:
            made.append(tx)
            await write(tx)
            raise ZeroDivisionError


async def second(producer: Producer, made: list[Transaction]) -> None:
    """Right after another one: markers are waited for."""
    async with producer.transaction() as tx:
        await tx.send("t", b"before")
    await by_block(producer, made)


async def cancelled_after(
    steps: int, again: int | None, work: Awaitable[None], step: float = 0
) -> tuple[bool, float]:
    """Cancel after so many turns of the loop; again ``again`` turns later.

    Virtual time stands still meanwhile, unless a turn takes ``step`` seconds.

    Returns:
        Whether it was cancelled, and how many seconds it took from then on.
    """
    task = asyncio.ensure_future(work)
    for _ in range(steps):
        if task.done():
            break
        await asyncio.sleep(step)
    began = asyncio.get_running_loop().time()
    was_cancelled = task.cancel()
    if again is not None:
        for _ in range(again):
            await asyncio.sleep(0)
        task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        assert was_cancelled
    return was_cancelled, asyncio.get_running_loop().time() - began


def whole_or_nothing(there: World) -> list[str]:
    """The verdicts on the transactions of `write`, whose log is checked."""
    verdicts: list[str] = []
    for verdict, values in there.log():
        if values in ([b"before"], [b"next"]):
            continue
        assert values == WHOLE[: len(values)]
        if verdict == "commit":
            assert values == WHOLE
        verdicts.append(verdict)
    return verdicts


async def check_laws(there: World, producer: Producer, made: list[Transaction]) -> None:
    async with asyncio.timeout(20):
        outcomes = [await tx.outcome for tx in made]
        await there.settle()
        is_committed = "commit" in whole_or_nothing(there)
        assert is_committed == (COMMITTED in outcomes)
        committed = there.broker.control.committed("g", ("t", 0))
        assert committed == (7 if is_committed else None)
        async with producer.transaction() as tx:
            await tx.send("t", b"next")
        await there.settle()
        assert b"next" in there.committed()
        assert "open" not in dict(there.log())
    assert not there.broken


@BOTH
# At night each turn of the loop; before, every third one, and each case begins with
# another: together they cover all.
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.nightly), 3])
@pytest.mark.parametrize(
    ("body", "again"),
    [
        (by_block, None),
        (by_block, 2),
        (by_hand, None),
        (by_columns, None),
        (aborted, None),
        (raising, 1),
        (second, None),
        (second, 2),
    ],
)
async def test_cancelled_at_every_await(
    level: int, again: int | None, body: Body, every: int
) -> None:
    steps, is_cancelled = (level + (again or 0)) % every, True
    while is_cancelled:
        async with world(level) as there:
            before = asyncio.all_tasks()
            producer = there.producer()
            await producer.start()
            made: list[Transaction] = []
            is_cancelled, took = await cancelled_after(
                steps, again, body(producer, made), 0.0001 if body is second else 0
            )
            assert took <= 1.1
            await check_laws(there, producer, made)
            await producer.close()
            left = asyncio.all_tasks() - before
            assert not [task for task in left if "broker" not in task.get_name()]
        steps += every if steps < 30 else max(every, 2)
    assert steps > 8


@BOTH
async def test_a_start_that_is_cancelled(level: int) -> None:
    steps, is_cancelled = 0, True
    while is_cancelled:
        async with world(level) as there:
            producer = there.producer()
            is_cancelled, _ = await cancelled_after(steps, None, producer.start())
            if is_cancelled:
                await producer.close()
                producer = there.producer()
                await producer.start()
            await check_laws(there, producer, [])
        steps += 1
    assert steps > 5


@BOTH
async def test_a_close_that_is_cancelled(level: int) -> None:
    steps, is_cancelled = 0, True
    while is_cancelled:
        async with world(level) as there:
            producer = there.producer()
            await producer.start()
            tx = producer.transaction()
            await tx.begin()
            await tx.send("t", b"1")
            is_cancelled, _ = await cancelled_after(steps, None, producer.close())
            async with asyncio.timeout(20):
                await producer.close()
                assert await tx.outcome is ABORTED
            with pytest.raises(ClosedError):
                await producer.transaction().begin()
            async with there.producer() as successor:  # aborts what may be open
                await check_laws(there, successor, [])
        steps += 1
    assert steps > 3


@BOTH
async def test_an_outcome_that_is_cancelled(level: int) -> None:
    async with world(level) as there, there.producer() as producer:
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", WHOLE[0])
        waiting = [asyncio.ensure_future(tx.outcome) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        await tx.abort()
        assert await waiting[0] is await waiting[2] is ABORTED
        assert waiting[1].cancelled()


@BOTH
async def test_leaving_waits_for_a_second_at_most(level: int) -> None:
    """The abort begins at once, and goes on behind; the next one waits for it."""
    async with (
        world(level) as there,
        there.producer(request_timeout_ms=500) as producer,
    ):
        rule = there.broker.faults.on("EndTxn", drop())
        made: list[Transaction] = []

        async def stays() -> None:
            async with producer.transaction() as tx:
                made.append(tx)
                await tx.send("t", WHOLE[0])
                await asyncio.sleep(100)

        task = asyncio.create_task(stays())
        await until(lambda: there.log())
        clock = asyncio.get_running_loop().time
        began = clock()
        task.cancel()
        await until(lambda: there.count(ApiKey.END_TXN))
        assert clock() - began < 0.1
        with pytest.raises(asyncio.CancelledError):
            await task
        assert 0.9 < clock() - began < 1.1
        waiting = asyncio.create_task(by_block(producer, made))
        await asyncio.sleep(1)
        assert not waiting.done()
        there.broker.faults.remove(rule)
        await waiting
        assert await made[0].outcome is ABORTED
        assert await made[1].outcome is COMMITTED
        await there.settle()
        assert there.log() == [("abort", WHOLE[:1]), ("commit", WHOLE)]


@BOTH
async def test_a_commit_that_was_sent_goes_on_behind(level: int) -> None:
    async with (
        world(level) as there,
        there.producer(request_timeout_ms=500) as producer,
    ):
        rule = there.broker.faults.on("EndTxn", drop())
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", WHOLE[0])
        committing = asyncio.create_task(tx.commit())
        await until(lambda: there.count(ApiKey.END_TXN))
        clock = asyncio.get_running_loop().time
        began = clock()
        committing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await committing
        assert clock() - began < 0.1
        there.broker.faults.remove(rule)
        assert await tx.outcome is COMMITTED
        await there.settle()
        assert there.committed() == WHOLE[:1]


async def test_cancelled_and_never_answered() -> None:
    async with world() as there:
        producer = there.producer(request_timeout_ms=500)
        await producer.start()
        there.broker.faults.on("EndTxn", drop())
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", WHOLE[0])
        committing = asyncio.create_task(tx.commit())
        await until(lambda: there.count(ApiKey.END_TXN))
        committing.cancel()
        await asyncio.wait([committing])
        await producer.close(timeout=1)
        with pytest.raises(OutcomeUnknown):
            await tx.outcome
        # The coordinator knows it by this id, and another producer ends it.
        there.broker.faults.clear()
        async with there.producer() as successor:
            await successor.transaction().begin()
        assert there.broker.control.transaction(ID) is not None


async def test_cancelled_while_it_waits_for_its_turn() -> None:
    async with world() as there, there.producer() as producer:
        made: list[Transaction] = []
        order: list[int] = []

        async def one(number: int) -> None:
            async with producer.transaction() as tx:
                order.append(number)
                await tx.send("t", b"next")

        for steps in range(40):
            tasks = [asyncio.create_task(one(number)) for number in range(4)]
            for _ in range(steps):
                await asyncio.sleep(0)
            tasks[1].cancel()
            tasks[2].cancel()
            async with asyncio.timeout(10):
                await asyncio.gather(*tasks, return_exceptions=True)
            assert order == sorted(order)
            assert {0, 3} <= set(order)
            order.clear()
        await check_laws(there, producer, made)


async def test_an_error_after_a_cancellation_is_not_lost() -> None:
    """Fenced meanwhile: the next call tells."""
    async with world() as there, there.producer() as producer:
        made: list[Transaction] = []

        async def stays() -> None:
            async with producer.transaction() as tx:
                made.append(tx)
                await tx.send("t", WHOLE[0])
                await asyncio.sleep(100)

        task = asyncio.create_task(stays())
        await until(lambda: there.log())
        async with there.producer() as successor:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(KafkaError, match="another producer"):
                await producer.transaction().begin()
            await by_block(successor, made)
        assert await made[0].outcome is ABORTED
