"""kafkaio's own clients with faults and controls of the broker, over TCP."""

from __future__ import annotations

import asyncio

import pytest

from kafkaio._consumer import Consumer
from kafkaio._producer import Producer
from kafkaio.errors import Fenced
from kafkaio.testing import Broker, delay, duplicate, reorder
from kafkaio.testing._broker.faults import Fault
from kafkaio.types import TopicPartition
from tests.support.patience import HANGS


async def test_sessions_end_when_time_is_skipped() -> None:
    async with (
        asyncio.timeout(HANGS),
        Broker(topics={"orders": 2}) as broker,
        Consumer(
            broker.bootstrap_servers,
            topics="orders",
            group_id="billing",
            group_protocol="classic",
            heartbeat_interval_ms=50,
        ) as consumer,
    ):
        before = consumer.group_metadata
        broker.control.skip_time(3600)
        while consumer.group_metadata.member_id in {before.member_id, ""}:
            await consumer.poll(timeout=0.02)


async def test_a_paused_leader_delays_a_producer() -> None:
    async with Broker(nodes=2) as broker, asyncio.timeout(HANGS):
        broker.create_topic("t", 1, 2)
        async with Producer(
            broker.bootstrap_servers, request_timeout_ms=200
        ) as producer:
            await producer.send("t", b"one")
            broker.control.pause(0)
            delivery = await producer.enqueue("t", b"two")
            await asyncio.sleep(0.1)
            assert not delivery.is_done
            broker.control.move_leader(("t", 0), 1)
            assert (await delivery).offset == 1


async def test_a_producer_waits_for_replicas_and_is_fenced() -> None:
    async with Broker(nodes=3) as broker, asyncio.timeout(HANGS):
        broker.create_topic("t", 1, 3, {"min.insync.replicas": "3"})
        async with Producer(broker.bootstrap_servers) as producer:
            broker.control.shrink_isr(("t", 0), 2)
            delivery = await producer.enqueue("t", b"one")
            await asyncio.sleep(0.3)
            assert not delivery.is_done
            broker.control.expand_isr(("t", 0), 2)
            assert (await delivery).offset == 0
            (producer_id,) = broker.control.producers(("t", 0))
            broker.control.fence_producer(producer_id)
            with pytest.raises(Fenced):
                await producer.send("t", b"two")


@pytest.mark.parametrize("fault", [duplicate(), reorder(), reorder(rate=0.5)])
async def test_an_idempotent_producer_survives_network_faults(fault: Fault) -> None:
    async with Broker(topics={"t": 1}) as broker, asyncio.timeout(HANGS):
        rule = broker.faults.on("Produce", fault, partition=("t", 0))
        async with Producer(broker.bootstrap_servers, linger_ms=0) as producer:
            deliveries = []
            for number in range(50):
                deliveries.append(await producer.enqueue("t", b"%d" % number))
                await asyncio.sleep(0)
            offsets = [(await delivery).offset for delivery in deliveries]
        assert offsets == list(range(50))
        assert rule.count > 0


class Batches:
    """An observer that remembers how large batches were."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def batch_sent(self, tp: TopicPartition, records: int, size: int) -> None:
        self.sizes.append(size)


async def test_what_comes_while_requests_are_out_leaves_in_few_large_batches() -> None:
    seen = Batches()
    async with (
        asyncio.timeout(HANGS),
        Broker(topics={"t": 4}) as broker,
        Producer(broker.bootstrap_servers, observer=seen) as producer,
    ):
        await producer.send("t", b"")
        broker.faults.on("Produce", delay(0.01))
        sent = [await producer.enqueue("t", b"v" * 1024) for _ in range(4_000)]
        await producer.flush()
    assert all(delivery.exception() is None for delivery in sent)
    assert len(seen.sizes) < 40  # 16 KiB each, as Java's client sends, would be 270
    assert max(seen.sizes) > 200_000
