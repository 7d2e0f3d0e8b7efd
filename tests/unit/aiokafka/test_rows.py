"""What differs from aiokafka as its own tests show: rows of the page on aiokafka."""

from __future__ import annotations

import asyncio
import gc
import warnings

import pytest
from aiokafka import AIOKafkaProducer as TheirProducer

import kafkaio
from kafkaio.aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from kafkaio.aiokafka.abc import ConsumerRebalanceListener
from kafkaio.aiokafka.errors import ProducerClosed, UnknownTopicOrPartitionError
from kafkaio.testing import Broker
from tests.support.patience import HANGS


async def test_row_texts_of_exceptions() -> None:
    """The classes are aiokafka's; the texts are kafkaio's."""
    texts = []
    for producer in (TheirProducer, AIOKafkaProducer):
        with pytest.raises(ValueError, match="security_protocol") as raised:
            producer(security_protocol="SOME")
        texts.append(str(raised.value))
    theirs, ours = texts
    assert theirs != ours
    assert "'SOME'" in ours


async def test_row_who_is_not_closed_is_warned_of_by_its_parts_too() -> None:
    async with Broker() as broker:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        await producer.start()
        asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
        found: list[str] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del producer
            for _ in range(6):
                gc.collect()
                found += [str(each.message) for each in caught]
                # The warnings refer to the parts, which end in the event loop.
                caught.clear()
                await asyncio.sleep(0)
    assert sum("Unclosed AIOKafkaProducer" in each for each in found) == 1
    assert any("was started and never closed" in each for each in found)


class Told(ConsumerRebalanceListener):
    """Counts the assignments."""

    def __init__(self) -> None:
        self.assigned = asyncio.Semaphore(0)

    def on_partitions_revoked(self, revoked: object) -> None: ...

    def on_partitions_assigned(self, assigned: object) -> None:
        self.assigned.release()


async def test_row_a_rebalance_waits_for_the_next_read() -> None:
    """A member of aiokafka gives up the partition of the record that is in hand."""
    told = Told()
    async with (
        Broker(topics={"t": 2}) as broker,
        asyncio.timeout(HANGS),
    ):
        options = {
            "bootstrap_servers": broker.bootstrap_servers,
            "group_id": "g",
            "heartbeat_interval_ms": 20,
            "auto_offset_reset": "earliest",
        }
        first = AIOKafkaConsumer(**options)
        first.subscribe(["t"], listener=told)
        async with AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers
        ) as producer:
            await producer.send_and_wait("t", b"in hand")
        second = AIOKafkaConsumer("t", **options)
        async with first:
            await told.assigned.acquire()
            await first.getone()
            joining = asyncio.create_task(second.start())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(told.assigned.acquire(), 0.5)
            assert not joining.done()
            while not joining.done():
                await first.getmany(timeout_ms=20)
            await joining
            owned = first.assignment() | second.assignment()
            assert owned == {TopicPartition("t", 0), TopicPartition("t", 1)}
            await second.stop()


async def test_row_a_stopped_producer_cannot_be_started() -> None:
    async with Broker(topics={"t": 1}) as broker:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        await producer.start()
        await producer.stop()
        with pytest.raises(ProducerClosed):
            await producer.start()


async def test_a_topic_that_no_broker_describes() -> None:
    """aiokafka raises the same, whether a broker answers or not."""
    async with Broker(topics={"t": 1}) as broker:
        producer = AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, request_timeout_ms=300
        )
        await producer.start()
    with pytest.raises(UnknownTopicOrPartitionError) as caught:
        await producer.send("t", b"v")
    assert isinstance(caught.value, kafkaio.NetworkError | kafkaio.RequestTimeout)
    await producer.stop()
