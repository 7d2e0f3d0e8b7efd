"""Whether a producer that was idle still has its transactional id."""

from __future__ import annotations

import asyncio

import pytest

from kafkaio._producer import Producer
from kafkaio._producer.current import is_current
from kafkaio.errors import ClosedError, Fenced, KafkaError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.faults import (
    disconnect_after_write,
    disconnect_before_write,
    drop,
    error,
)
from tests.unit.producer.transactional import BOTH, ID, World, until, world

WITHIN = 10.0


async def started(there: World) -> Producer:
    producer = there.producer()
    await producer.start()
    return producer


async def commit(producer: Producer, value: bytes = b"x") -> None:
    async with producer.transaction() as tx:
        await tx.send("t", value)


async def abort(producer: Producer) -> None:
    async with producer.transaction() as tx:
        await tx.send("t", b"aborted")
        await tx.abort()


async def nothing(producer: Producer) -> None:
    async with producer.transaction():
        pass


@BOTH
@pytest.mark.parametrize("last", [None, commit, abort, nothing])
async def test_it_has_its_id(level: int, last: object) -> None:
    async with world(level) as there:
        producer = await started(there)
        if callable(last):
            await last(producer)
        for _ in range(3):
            before = len(list(there.broker.requests))
            assert await is_current(producer, WITHIN)
            asked = [one.api for one in list(there.broker.requests)[before:]]
            assert set(asked) == {ApiKey.END_TXN}
        before = there.count(ApiKey.INIT_PRODUCER_ID)
        await commit(producer, b"next")
        await there.settle()
        assert there.committed()[-1] == b"next"
        assert there.count(ApiKey.INIT_PRODUCER_ID) == before == 1
        assert not there.broken


@BOTH
@pytest.mark.parametrize("last", [None, commit])
async def test_it_was_replaced(level: int, last: object) -> None:
    async with world(level) as there:
        producer = await started(there)
        if callable(last):
            await last(producer)
        successor = await started(there)
        async with successor.transaction() as tx:
            await tx.send("t", b"successor's")
            # The question harms nothing that the successor has open.
            assert not await is_current(producer, WITHIN)
        await there.settle()
        assert there.committed()[-1] == b"successor's"
        assert producer.statistics().transaction == "fenced"
        with pytest.raises(Fenced):
            await commit(producer)
        assert not await is_current(producer, WITHIN)


@BOTH
async def test_it_waits_for_the_markers(level: int) -> None:
    async with world(level) as there:
        producer = await started(there)
        there.broker.control.delay_markers(0.5)
        await commit(producer)
        assert there.broker.control.open_transactions()
        assert await is_current(producer, WITHIN)
        assert not there.broker.control.open_transactions()


@BOTH
@pytest.mark.parametrize("last", [None, commit])
@pytest.mark.parametrize("fault", [disconnect_after_write, disconnect_before_write])
async def test_an_answer_that_is_lost(level: int, last: object, fault: object) -> None:
    """Late, the request could end the next transaction, unless its epoch is old."""
    assert callable(fault)
    async with world(level) as there:
        producer = await started(there)
        if callable(last):
            await last(producer)
        there.broker.faults.on("EndTxn", fault(times=1))
        is_old = level == 2 and last is not None
        assert await is_current(producer, WITHIN) is is_old
        expected = "ready" if is_old else "failed"
        assert producer.statistics().transaction == expected
        if not is_old:
            with pytest.raises(ClosedError):
                await commit(producer)


async def test_no_answer_in_time() -> None:
    async with world() as there:
        producer = await started(there)
        await commit(producer)
        there.broker.faults.on("EndTxn", drop())
        assert not await is_current(producer, 1.0)
        assert producer.statistics().transaction == "failed"


@BOTH
async def test_a_cancelled_question(level: int) -> None:
    async with world(level) as there:
        producer = await started(there)
        rule = there.broker.faults.on("EndTxn", drop())
        call = asyncio.ensure_future(is_current(producer, WITHIN))
        await until(lambda: rule.count)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert producer.statistics().transaction == "failed"


@BOTH
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    ],
)
async def test_the_coordinator_refuses(level: int, code: ErrorCode) -> None:
    async with world(level) as there:
        producer = await started(there)
        await commit(producer)
        await there.settle()
        there.broker.faults.on("EndTxn", error(code, times=1))
        assert not await is_current(producer, WITHIN)
        with pytest.raises(KafkaError):
            await commit(producer)


@BOTH
async def test_its_coordinator_has_moved(level: int) -> None:
    async with world(level) as there:
        producer = await started(there)
        await commit(producer)
        moved = error(ErrorCode.NOT_COORDINATOR, times=1)
        there.broker.faults.on("EndTxn", moved)
        assert await is_current(producer, WITHIN)
        await commit(producer)


async def test_the_last_epoch() -> None:
    async with world() as there:
        producer = await started(there)
        await producer.close()
        there.broker.control.set_producer_epoch(ID, 2**15 - 3)
        producer = await started(there)
        before = producer.statistics()
        await commit(producer)
        assert producer.statistics().producer_id != before.producer_id
        assert await is_current(producer, WITHIN)
        await commit(producer)


@BOTH
async def test_not_beside_a_transaction(level: int) -> None:
    async with world(level) as there:
        producer = await started(there)
        async with producer.transaction() as tx:
            await tx.send("t", b"1")
            assert not await is_current(producer, WITHIN)
            await tx.send("t", b"2")
        there.broker.control.delay_markers(0.5)
        await commit(producer)
        question = asyncio.ensure_future(is_current(producer, WITHIN))
        await asyncio.sleep(0)
        await commit(producer, b"3")  # its turn comes after the answer
        assert question.done()
        assert await question


async def test_a_producer_without_an_id_or_a_life() -> None:
    async with world() as there:
        plain = there.producer(transactional_id=None)
        await plain.start()
        assert not await is_current(plain, WITHIN)
        producer = await started(there)
        await producer.close()
        assert not await is_current(producer, WITHIN)


@BOTH
async def test_it_is_closed_meanwhile(level: int) -> None:
    async with world(level) as there:
        producer = await started(there)
        rule = there.broker.faults.on("EndTxn", drop())
        call = asyncio.ensure_future(is_current(producer, WITHIN))
        await until(lambda: rule.count)
        await producer.close(timeout=1.0)
        assert not await call
