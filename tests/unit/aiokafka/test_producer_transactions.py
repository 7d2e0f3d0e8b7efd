"""Transactions of `AIOKafkaProducer` on the embedded broker, beside aiokafka's."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

import kafkaio
from kafkaio.aiokafka import AIOKafkaProducer, errors
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.testing import Broker, drop, error
from tests.unit.aiokafka.side import SIDES, Side, side

TOPIC_AUTHORIZATION_FAILED = kafkaio.ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_AUTHORIZATION_FAILED = kafkaio.ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 3}) as broker:
        yield broker


@pytest.fixture
def it(name: str) -> Side:
    return side(name)


def transactional(it: Side, broker: Broker, name: str = "billing", **more: Any) -> Any:
    return it.producer(broker.bootstrap_servers, transactional_id=name, **more)


async def committed(broker: Broker) -> set[bytes | None]:
    """Return the values of the topic that readers of committed records see."""
    places = [kafkaio.TopicPartition("t", number) for number in range(3)]
    async with kafkaio.Consumer(
        broker.bootstrap_servers,
        assign=places,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        ends = await consumer.end_offsets(places)
        found: set[bytes | None] = set()
        while [tp for tp, end in ends.items() if await consumer.position(tp) < end]:
            poll = await consumer.poll(timeout=0.1)
            found |= {record.value for record in poll.records}
    return found


@SIDES
async def test_what_is_committed_and_aborted(it: Side, broker: Broker) -> None:
    async with transactional(it, broker) as producer:
        async with producer.transaction() as context:
            assert isinstance(context, type(producer.transaction()))
            await producer.send_and_wait("t", b"by context")

        async def fail() -> None:
            async with producer.transaction():
                await producer.send_and_wait("t", b"aborted by context")
                raise LookupError

        with pytest.raises(LookupError):
            await fail()

        await producer.begin_transaction()
        batch = producer.create_batch()
        batch.append(timestamp=None, key=None, value=b"in a batch")
        await producer.send_batch(batch, "t", partition=0)
        await producer.send("t", b"by hand")
        await producer.commit_transaction()

        await producer.begin_transaction()
        await producer.send("t", b"aborted by hand")
        await producer.abort_transaction()
    assert await committed(broker) == {b"by context", b"in a batch", b"by hand"}


@SIDES
async def test_a_commit_waits_for_the_futures(it: Side, broker: Broker) -> None:
    async with transactional(it, broker) as producer:
        await producer.begin_transaction()
        futures = [await producer.send("t", b"%d" % n) for n in range(10)]
        await producer.commit_transaction()
        assert all(each.done() for each in futures)
    assert await committed(broker) == {b"%d" % n for n in range(10)}


@SIDES
async def test_a_transaction_without_records(it: Side, broker: Broker) -> None:
    async with transactional(it, broker) as producer:
        await producer.begin_transaction()
        await producer.commit_transaction()
        await producer.begin_transaction()
        await producer.abort_transaction()
        async with producer.transaction():
            pass
    apis = [request.api for request in broker.requests]
    assert ApiKey.END_TXN not in apis


@SIDES
async def test_nothing_is_sent_outside(it: Side, broker: Broker) -> None:
    async with transactional(it, broker) as producer:
        batch = producer.create_batch()
        batch.append(timestamp=None, key=None, value=b"v")
        for _ in range(2):
            with pytest.raises(it.errors.IllegalOperation):
                await producer.send("t", b"v")
            with pytest.raises(it.errors.IllegalOperation):
                await producer.send_and_wait("t", b"v")
            with pytest.raises(it.errors.IllegalOperation):
                await producer.send_batch(batch, "t", partition=0)
            async with producer.transaction():
                await producer.send("t", b"inside")
    assert await committed(broker) == {b"inside"}


@SIDES
async def test_nothing_is_sent_while_it_ends(it: Side, broker: Broker) -> None:
    async with transactional(it, broker) as producer:
        await producer.begin_transaction()
        await producer.send("t", b"inside")
        commit = asyncio.create_task(producer.commit_transaction())
        await asyncio.sleep(0)
        with pytest.raises(it.errors.IllegalOperation):
            await producer.send("t", b"late")
        with pytest.raises(AssertionError):
            await producer.begin_transaction()
        await commit
    assert await committed(broker) == {b"inside"}


@SIDES
async def test_calls_in_the_wrong_order(it: Side, broker: Broker) -> None:
    async with transactional(it, broker) as producer:
        with pytest.raises(AssertionError):
            await producer.commit_transaction()
        with pytest.raises(AssertionError):
            await producer.abort_transaction()
        await producer.begin_transaction()
        with pytest.raises(AssertionError):
            await producer.begin_transaction()
        await producer.commit_transaction()


@SIDES
async def test_it_needs_a_transactional_id(it: Side, broker: Broker) -> None:
    async with it.producer(broker.bootstrap_servers) as producer:
        for call in (
            producer.begin_transaction,
            producer.commit_transaction,
            producer.abort_transaction,
        ):
            with pytest.raises(it.errors.IllegalOperation):
                await call()
        with pytest.raises(it.errors.IllegalOperation):
            await producer.send_offsets_to_transaction({}, "g")
        with pytest.raises(it.errors.IllegalOperation):
            await producer.transaction().__aenter__()


@SIDES
async def test_offsets_are_committed_with_it(it: Side, broker: Broker) -> None:
    first, second = (it.top.TopicPartition("t", number) for number in range(2))
    async with transactional(it, broker) as producer:
        async with producer.transaction():
            await producer.send("t", b"v")
            await producer.send_offsets_to_transaction(
                {first: 7, second: (9, "m")}, "g"
            )

        await producer.begin_transaction()
        await producer.send_offsets_to_transaction({first: 100}, "g")
        await producer.abort_transaction()
    places = [kafkaio.TopicPartition("t", number) for number in range(3)]
    async with kafkaio.Client(broker.bootstrap_servers) as client:
        found = await client.committed("g", places)
    assert {
        tp.partition: (at.offset, at.metadata) for tp, at in found.items() if at
    } == {
        0: (7, ""),
        1: (9, "m"),
    }


@SIDES
async def test_offsets_that_are_refused(it: Side, broker: Broker) -> None:
    tp = it.top.TopicPartition("t", 0)
    async with transactional(it, broker) as producer:
        with pytest.raises(it.errors.IllegalOperation):
            await producer.send_offsets_to_transaction({tp: 1}, "g")
        async with producer.transaction():
            for offsets, group in (({tp: 1}, None), ({tp: 1}, ""), ({}, "g")):
                with pytest.raises(ValueError, match=r".*"):
                    await producer.send_offsets_to_transaction(offsets, group)
            with pytest.raises(TypeError):
                await producer.send_offsets_to_transaction({"t": 1}, "g")


@SIDES
async def test_a_group_that_is_forbidden(it: Side, broker: Broker) -> None:
    broker.faults.on("TxnOffsetCommit", error(GROUP_AUTHORIZATION_FAILED, times=1))
    refused = it.errors.GroupAuthorizationFailedError
    async with transactional(it, broker) as producer:
        await producer.begin_transaction()
        with pytest.raises(refused):
            await producer.send_offsets_to_transaction(
                {it.top.TopicPartition("t", 0): 1}, "g"
            )
        with pytest.raises(refused):
            await producer.commit_transaction()
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send("t", b"next")
    assert await committed(broker) == {b"next"}


@SIDES
async def test_a_newer_producer_fences_it(it: Side, broker: Broker) -> None:
    async with (
        transactional(it, broker) as older,
        transactional(it, broker) as newer,
    ):
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        async with newer.transaction():
            await newer.send_and_wait("t", b"newer")

        async def fenced() -> None:
            async with older.transaction():
                await older.send_and_wait("t", b"older")

        with pytest.raises(it.errors.ProducerFenced):
            await fenced()
    assert await committed(broker) == {b"newer"}


async def test_a_fenced_producer_begins_nothing(broker: Broker) -> None:
    it = side("kafkaio.aiokafka")
    async with transactional(it, broker) as older, transactional(it, broker) as newer:
        del newer
        await older.begin_transaction()
        await older.send("t", b"older")
        with pytest.raises(errors.ProducerFenced) as caught:
            await older.commit_transaction()
        assert isinstance(caught.value, kafkaio.Fenced)
        await older.abort_transaction()
        with pytest.raises(errors.ProducerFenced):
            await older.begin_transaction()


async def test_row_a_record_that_fails_in_a_transaction(broker: Broker) -> None:
    """aiokafka commits the others; here nothing of the transaction is visible."""
    broker.faults.on("Produce", error(TOPIC_AUTHORIZATION_FAILED, times=1))
    it = side("kafkaio.aiokafka")
    async with transactional(it, broker) as producer:
        await producer.begin_transaction()
        future = await producer.send("t", b"refused", partition=0)
        await asyncio.wait([future])
        with pytest.raises(errors.TopicAuthorizationFailedError) as caught:
            await producer.commit_transaction()
        assert isinstance(caught.value, kafkaio.TransactionAborted)
        assert isinstance(future.exception(), errors.TopicAuthorizationFailedError)
        # As programs of aiokafka do; the transaction is aborted already.
        await producer.abort_transaction()
        with pytest.raises(AssertionError):
            await producer.abort_transaction()
        async with producer.transaction():
            await producer.send("t", b"next")
    assert await committed(broker) == {b"next"}


async def test_row_a_commit_has_a_time_limit(broker: Broker) -> None:
    """aiokafka waits for the coordinator without a limit."""
    it = side("kafkaio.aiokafka")
    async with transactional(it, broker, request_timeout_ms=500) as producer:
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"v")
        lost = broker.faults.on("EndTxn", drop())
        with pytest.raises(errors.KafkaTimeoutError) as caught:
            await producer.commit_transaction()
        assert isinstance(caught.value, kafkaio.OutcomeUnknown)
        # It may still be committed, so nobody is told that it was aborted.
        with pytest.raises(errors.KafkaTimeoutError):
            await producer.abort_transaction()
        broker.faults.remove(lost)
        # It goes on, and the next one waits for it.
        async with producer.transaction():
            await producer.send("t", b"next")
    assert await committed(broker) == {b"v", b"next"}


async def test_row_a_cancelled_commit(broker: Broker) -> None:
    """aiokafka commits behind; here it is aborted unless the commit was asked for."""
    it = side("kafkaio.aiokafka")
    async with transactional(it, broker, linger_ms=5) as producer:
        await producer.begin_transaction()
        await producer.send("t", b"cancelled")
        commit = asyncio.create_task(producer.commit_transaction())
        await asyncio.sleep(0)
        commit.cancel()
        with pytest.raises(asyncio.CancelledError):
            await commit
        async with producer.transaction():
            await producer.send("t", b"next")
    assert await committed(broker) == {b"next"}


async def test_a_cancelled_begin_has_begun_nothing(broker: Broker) -> None:
    it = side("kafkaio.aiokafka")
    async with transactional(it, broker) as producer:
        begin = asyncio.create_task(producer.begin_transaction())
        begin.cancel()
        with pytest.raises(asyncio.CancelledError):
            await begin
        async with producer.transaction():
            await producer.send("t", b"v")
    assert await committed(broker) == {b"v"}


async def test_a_block_that_has_ended_it_by_itself(broker: Broker) -> None:
    it = side("kafkaio.aiokafka")
    async with transactional(it, broker) as producer:

        async def ended() -> None:
            async with producer.transaction():
                await producer.send("t", b"v")
                await producer.abort_transaction()
                raise LookupError

        with pytest.raises(LookupError):
            await ended()
    assert await committed(broker) == set()


async def test_the_error_of_a_block_is_raised_also_after_stop(broker: Broker) -> None:
    producer = transactional(side("kafkaio.aiokafka"), broker)
    await producer.start()

    async def stopped() -> None:
        async with producer.transaction():
            await producer.send("t", b"v")
            await producer.stop()
            raise LookupError

    with pytest.raises(LookupError):
        await stopped()


async def test_stop_aborts_what_is_open(broker: Broker) -> None:
    it = side("kafkaio.aiokafka")
    producer = transactional(it, broker)
    await producer.start()
    await producer.begin_transaction()
    await producer.send_and_wait("t", b"open")
    await producer.stop()
    with pytest.raises(errors.ProducerClosed):
        await producer.commit_transaction()
    with pytest.raises(errors.ProducerClosed):
        await producer.begin_transaction()
    assert await committed(broker) == set()


async def test_one_that_is_not_started_begins_nothing() -> None:
    producer = AIOKafkaProducer(transactional_id="billing")
    with pytest.raises(errors.IllegalStateError):
        await producer.begin_transaction()
    await producer.stop()


async def test_row_records_of_an_aborted_transaction_fail(broker: Broker) -> None:
    """Their errors are not logged as ones that nobody has read."""
    logged: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, it: logged.append(it["message"]))
    async with transactional(side("kafkaio.aiokafka"), broker) as producer:
        await producer.begin_transaction()
        futures = [await producer.send("t", b"aborted") for _ in range(3)]
        batch = producer.create_batch()
        batch.append(timestamp=None, key=None, value=b"aborted, too")
        futures.append(await producer.send_batch(batch, "t", partition=0))
        await producer.abort_transaction()
        await asyncio.wait(futures)
        with pytest.raises(errors.KafkaError):
            await futures[0]
        del futures
        gc.collect()
        await asyncio.sleep(0)
    assert not logged
    assert not await committed(broker)
