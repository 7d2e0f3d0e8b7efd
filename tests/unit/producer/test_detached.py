"""Transactions that one process writes and another one ends."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafkaio._client import Client
from kafkaio._config import ClientConfig
from kafkaio._producer import Producer
from kafkaio._producer.detached import DetachedTransaction, detach, end_detached
from kafkaio._producer.transaction import TransactionOutcome
from kafkaio.errors import (
    AuthorizationError,
    Fenced,
    OutcomeUnknown,
    RequestTimeout,
    TransactionAborted,
    UnsupportedVersion,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.faults import disconnect_after_write, drop, error
from kafkaio.types import GroupMetadata, TopicPartition
from tests.unit.producer.transactional import BOTH, ID, World, until, world

COMMITTED, ABORTED = TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED
VALUES = [b"0", b"1", b"2"]


@asynccontextmanager
async def driver(there: World, **options: Any) -> AsyncIterator[Client]:
    """The other process: it shares nothing with the producer."""
    config = ClientConfig.of(there.broker.bootstrap_servers, options)
    async with Client.from_config(config, dial=there.broker.dial) as client:
        yield client


async def started(there: World, **options: Any) -> Producer:
    producer = there.producer(**options)
    await producer.start()
    return producer


async def written(there: World, **options: Any) -> DetachedTransaction:
    """Three records in a detached transaction, whose producer is closed."""
    producer = await started(there, **options)
    async with producer.transaction() as tx:
        for value in VALUES:
            await tx.enqueue("t", value)
        detached = await detach(tx)
    await producer.close()
    made: DetachedTransaction = pickle.loads(pickle.dumps(detached))
    return made


@BOTH
async def test_another_process_commits(level: int) -> None:
    async with world(level) as there:
        detached = await written(there, linger_ms=10_000)
        assert detached.level == level
        assert not detached.is_empty
        assert there.count(ApiKey.END_TXN) == 0
        assert there.log() == [("open", VALUES)]
        async with driver(there) as client:
            assert await end_detached(client, detached, commit=True) is COMMITTED
            await there.settle()
            assert there.committed() == VALUES
            # Again, as after a lost answer, and the other verdict: nothing changes.
            assert await end_detached(client, detached, commit=True) is COMMITTED
            assert await end_detached(client, detached, commit=False) is COMMITTED
        assert there.log() == [("commit", VALUES)]
        assert set(there.versions(ApiKey.END_TXN)) == {5 if level == 2 else 4}
        assert not there.broken


@BOTH
async def test_another_process_aborts(level: int) -> None:
    async with world(level) as there:
        detached = await written(there)
        async with driver(there) as client:
            assert await end_detached(client, detached, commit=False) is ABORTED
            await there.settle()
            assert await end_detached(client, detached, commit=False) is ABORTED
            with pytest.raises(TransactionAborted, match="'billing'"):
                await end_detached(client, detached, commit=True)
        assert there.log() == [("abort", VALUES)]


@BOTH
async def test_the_id_can_be_used_again(level: int) -> None:
    async with world(level) as there:
        detached = await written(there)
        async with driver(there) as client:
            await end_detached(client, detached, commit=True)
        producer = await started(there)
        async with producer.transaction() as tx:
            await tx.send("t", b"next")
        await there.settle()
        assert there.committed() == [*VALUES, b"next"]


@BOTH
async def test_offsets_are_in_it(level: int) -> None:
    async with world(level) as there:
        producer = await started(there)
        async with producer.transaction() as tx:
            await tx.commit_offsets(GroupMetadata("g"), {TopicPartition("t", 0): 7})
            detached = await detach(tx)
        assert there.broker.control.committed("g", ("t", 0)) is None
        async with driver(there) as client:
            await end_detached(client, detached, commit=True)
        await there.settle()
        assert there.broker.control.committed("g", ("t", 0)) == 7


async def test_an_empty_one_costs_no_request() -> None:
    async with world() as there:
        producer = await started(there)
        async with producer.transaction() as tx:
            detached = await detach(tx)
        assert detached.is_empty
        async with driver(there) as client:
            assert await end_detached(client, detached, commit=True) is COMMITTED
            assert await end_detached(client, detached, commit=False) is ABORTED
        assert there.asked() == ["INIT_PRODUCER_ID"]


@BOTH
async def test_a_lost_answer_is_asked_for_again(level: int) -> None:
    async with world(level) as there:
        detached = await written(there)
        there.broker.faults.on("EndTxn", disconnect_after_write(times=1))
        moved = error(ErrorCode.NOT_COORDINATOR, times=1)
        async with driver(there) as client:
            assert await end_detached(client, detached, commit=True) is COMMITTED
            there.broker.faults.on("EndTxn", moved)
            assert await end_detached(client, detached, commit=True) is COMMITTED
        assert there.count(ApiKey.END_TXN) == 4
        await there.settle()
        assert there.committed() == VALUES


@BOTH
async def test_after_its_time_out_it_is_aborted(level: int) -> None:
    async with world(level) as there:
        detached = await written(there)
        there.broker.control.time_out_transaction(ID)
        await there.settle()
        async with driver(there) as client:
            expected = TransactionAborted if level == 2 else Fenced
            with pytest.raises(expected):
                await end_detached(client, detached, commit=True)
        assert there.log() == [("abort", VALUES)]


@BOTH
async def test_a_newer_producer_ends_it(level: int) -> None:
    async with world(level) as there:
        detached = await written(there)
        await started(there)
        async with driver(there) as client:
            for commit in (True, False):
                with pytest.raises(Fenced, match="'billing'"):
                    await end_detached(client, detached, commit=commit)
        assert there.log() == [("abort", VALUES)]


async def test_a_lost_commit_and_then_a_newer_producer() -> None:
    async with world() as there:
        detached = await written(there)
        faults = there.broker.faults
        faults.on("EndTxn", disconnect_after_write(times=1))
        faults.on("EndTxn", error(ErrorCode.PRODUCER_FENCED, times=2))
        async with driver(there) as client:
            with pytest.raises(OutcomeUnknown):
                await end_detached(client, detached, commit=True)
            # The call before has not reached the coordinator after all.
            assert await end_detached(client, detached, commit=True) is COMMITTED


async def test_a_silent_coordinator() -> None:
    async with world() as there:
        detached = await written(there)
        rule = there.broker.faults.on("EndTxn", drop())
        async with driver(there, request_timeout_ms=100) as client:
            with pytest.raises(OutcomeUnknown, match=r"0\.5 s"):
                await end_detached(client, detached, commit=True, timeout=0.5)
            with pytest.raises(RequestTimeout, match="'billing'"):
                await end_detached(client, detached, commit=False, timeout=0.5)
            there.broker.faults.remove(rule)
            assert await end_detached(client, detached, commit=True) is COMMITTED


@pytest.mark.parametrize("commit", [True, False])
async def test_who_may_not_end_it(commit: bool) -> None:
    async with world() as there:
        detached = await written(there)
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        there.broker.faults.on("EndTxn", error(refused, times=1))
        async with driver(there) as client:
            with pytest.raises(AuthorizationError, match="'billing'"):
                await end_detached(client, detached, commit=commit)


async def test_an_older_coordinator_can_only_abort() -> None:
    async with world(as_version="2.8") as there:
        detached = await written(there)
        assert detached.level == 1
        newer = DetachedTransaction(ID, detached.producer_id, detached.producer_epoch)
        async with driver(there) as client:
            with pytest.raises(UnsupportedVersion):
                await end_detached(client, newer, commit=True)
            assert await end_detached(client, newer, commit=False) is ABORTED
        await there.settle()
        assert there.log() == [("abort", VALUES)]


# ---- the producer --------------------------------------------------------------------


@BOTH
async def test_its_producer_is_over(level: int) -> None:
    async with world(level) as there:
        producer = await started(there)
        tx = producer.transaction()
        await tx.begin()
        waiting = asyncio.ensure_future(producer.transaction().begin())
        await tx.enqueue("t", b"x")
        await detach(tx)
        assert repr(tx).endswith("detached>")
        assert producer.statistics().transaction == "detached"
        with pytest.raises(UsageError, match="detach"):
            await waiting
        with pytest.raises(UsageError, match="detach"):
            await tx.send("t", b"y")
        with pytest.raises(UsageError, match="detach"):
            await tx.abort()
        with pytest.raises(UsageError, match="detach"):
            await detach(tx)
        with pytest.raises(OutcomeUnknown, match="detach"):
            await tx.outcome
        await producer.close()
        assert there.count(ApiKey.END_TXN) == 0
        assert there.log() == [("open", [b"x"])]


@BOTH
async def test_a_failed_record_aborts_it(level: int) -> None:
    async with world(level) as there:
        producer = await started(there)
        there.broker.faults.on("Produce", error(ErrorCode.MESSAGE_TOO_LARGE, times=1))
        tx = producer.transaction()
        await tx.begin()
        await tx.enqueue("t", b"x")
        with pytest.raises(TransactionAborted, match="a record failed"):
            await detach(tx)
        async with producer.transaction() as tx:
            await tx.send("t", b"again")
        await there.settle()
        assert there.committed() == [b"again"]


@BOTH
async def test_a_cancelled_call_aborts_it(level: int) -> None:
    async with world(level) as there:
        producer = await started(there, request_timeout_ms=500)
        rule = there.broker.faults.on("Produce", drop(times=1))
        tx = producer.transaction()
        await tx.begin()
        await tx.enqueue("t", b"x")
        call = asyncio.ensure_future(detach(tx))
        await until(lambda: rule.count)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await tx.outcome is ABORTED
        await there.settle()
        assert there.committed() == []


async def test_a_consumer_keeps_its_partitions_here() -> None:
    async with world() as there:
        producer = await started(there)
        consumer = there.consumer("t")
        await consumer.start()
        async with producer.transaction(consumer) as tx:
            await tx.send("t", b"x")
            with pytest.raises(UsageError, match="consumer"):
                await detach(tx)
        assert await tx.outcome is COMMITTED
