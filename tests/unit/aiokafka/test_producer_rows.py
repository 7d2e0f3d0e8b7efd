"""What is not the same as in aiokafka's producer: a test for each row.

The rows stand in docs/migration/aiokafka.md. `test_producer_transactions.py` has those
of transactions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

import kafkaio
from kafkaio import ErrorCode
from kafkaio.aiokafka import AIOKafkaProducer, errors
from kafkaio.testing import Broker, delay, drop, error
from tests.unit.aiokafka.side import side


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 3, "small": 1}, auto_create_topics=False) as broker:
        yield broker


def producer_on(broker: Broker, **options: object) -> AIOKafkaProducer:
    producer: AIOKafkaProducer = side("kafkaio.aiokafka").producer(
        broker.bootstrap_servers, **options
    )
    return producer


async def test_row_records_without_a_key_stay_together(broker: Broker) -> None:
    """aiokafka draws a partition for each; kafkaio fills one batch, then draws."""
    async with producer_on(broker, linger_ms=50) as producer:
        futures = [await producer.send("t", b"v") for _ in range(30)]
        places = {(await each).partition for each in futures}
    assert len(places) == 1


async def test_row_a_batch_lingers_only_while_another_is_in_flight(
    broker: Broker,
) -> None:
    """With aiokafka each record waits for linger_ms."""
    async with producer_on(broker, linger_ms=60_000) as producer, asyncio.timeout(20):
        await producer.send_and_wait("t", b"v")


async def test_row_the_buffer_is_of_all_partitions(broker: Broker) -> None:
    """With aiokafka a record waits while a full batch of its partition waits."""
    stuck = broker.faults.on("Produce", drop())
    async with producer_on(broker, max_batch_size=1_000) as producer:
        async with asyncio.timeout(20):
            futures = [
                await producer.send("t", b"x" * 500, partition=0) for _ in range(100)
            ]
        assert not any(each.done() for each in futures)
        broker.faults.remove(stuck)
        for each in futures:
            each.cancel()


async def test_row_the_log_start_is_not_told(broker: Broker) -> None:
    """aiokafka returns the first offset of the log with each record."""
    async with producer_on(broker) as producer:
        at = await producer.send_and_wait("t", b"v")
    assert at.log_start_offset is None


async def test_row_records_too_large_together_are_divided(broker: Broker) -> None:
    """aiokafka fails all records of a batch that the topic does not take."""
    async with kafkaio.Admin(broker.bootstrap_servers) as admin:
        small = {"max.message.bytes": "500"}
        await admin.create_topics([kafkaio.NewTopic("divided", 1, configs=small)])
    async with producer_on(broker) as producer:
        batch = producer.create_batch()
        for _ in range(6):
            assert batch.append(timestamp=None, key=None, value=b"x" * 200) is not None
        future = await producer.send_batch(batch, "divided", partition=0)
        assert (await future).offset == 0
        assert (await producer.send_and_wait("divided", b"next")).offset == 6


async def test_row_a_batch_is_closed_when_it_is_sent(broker: Broker) -> None:
    """With aiokafka an open batch takes records until it leaves."""
    async with producer_on(broker) as producer:
        batch = producer.create_batch()
        batch.append(timestamp=None, key=None, value=b"v")
        await producer.send_batch(batch, "t", partition=0)
        assert batch.closed()
        assert batch.append(timestamp=None, key=None, value=b"w") is None


async def test_row_records_of_a_batch_may_be_written_in_several(
    broker: Broker,
) -> None:
    """aiokafka writes a batch as one; here its first records can fail alone."""
    broker.faults.on("Produce", delay(0.2, times=1))
    broker.faults.on("Produce", error(ErrorCode.INVALID_RECORD, times=1))
    async with producer_on(broker, max_batch_size=1_000) as producer:
        await producer.partitions_for("t")
        first = await producer.send("t", b"x" * 700, partition=0)
        batch = producer.create_batch()
        values = [b"%d" % n * 60 for n in range(8)]
        for value in values:
            assert batch.append(timestamp=None, key=None, value=value) is not None
        whole = await producer.send_batch(batch, "t", partition=0)
        await asyncio.wait([first, whole])
        # The first request had records of both.
        assert first.exception() is not None
        assert whole.exception() is not None
        place = kafkaio.TopicPartition("t", 0)
        async with kafkaio.Client(broker.bootstrap_servers) as client:
            end = (await client.offsets({place: "latest"}))[place]
    assert end is not None
    assert 0 < end.offset < len(values)


async def test_row_stop_has_a_time_limit(broker: Broker) -> None:
    """aiokafka's producer with idempotence waits for an answer for ever."""
    broker.faults.on("Produce", drop())
    producer = producer_on(broker, enable_idempotence=True, request_timeout_ms=100)
    await producer.start()
    future = await producer.send("t", b"v")
    async with asyncio.timeout(20):
        await producer.stop()
    assert isinstance(future.exception(), errors.ProducerClosed)


async def test_row_start_waits_for_a_server() -> None:
    """aiokafka tries each server once."""
    async with Broker() as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
    producer = side("kafkaio.aiokafka").producer(f"127.0.0.1:{port}")
    start = asyncio.create_task(producer.start())
    await asyncio.sleep(0.05)
    assert not start.done()
    async with Broker(port=port, topics={"t": 1}):
        await start
        assert (await producer.send_and_wait("t", b"v")).offset == 0
        await producer.stop()


async def test_row_a_producer_that_is_not_started(broker: Broker) -> None:
    """A call of aiokafka's waits for ever."""
    producer = producer_on(broker)
    with pytest.raises(errors.IllegalStateError):
        await producer.send_and_wait("t", b"v")
    with pytest.raises(errors.IllegalStateError):
        await producer.partitions_for("t")
    await producer.stop()
    with pytest.raises(errors.ProducerClosed):
        await producer.start()


async def test_row_stop_aborts_an_open_transaction(broker: Broker) -> None:
    """With aiokafka it stays open until transaction_timeout_ms."""
    producer = producer_on(broker, transactional_id="open")
    await producer.start()
    await producer.begin_transaction()
    await producer.send_and_wait("t", b"v")
    await producer.stop()
    async with kafkaio.Admin(broker.bootstrap_servers) as admin:
        found = (await admin.describe_transactions(["open"]))["open"]
    assert found.state.lower() == "completeabort"


async def test_a_buffer_that_stays_full(broker: Broker) -> None:
    broker.faults.on("Produce", drop())
    producer = producer_on(broker, enable_idempotence=True, request_timeout_ms=200)
    await producer.start()

    async def fill() -> None:
        while True:
            await producer.send("t", b"x" * 1_000_000, partition=0)

    with pytest.raises(errors.KafkaTimeoutError):
        await fill()
    broker.faults.clear()
    await producer.stop()
