"""What was refused, or never sent, does not hold up the end of a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kafkaio._config import ProducerConfig
from kafkaio._producer import Producer
from kafkaio._producer.transaction import TransactionOutcome
from kafkaio.errors import KafkaError, TransactionAborted
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker, error

BOTH = pytest.mark.parametrize("level", [1, 2])


@asynccontextmanager
async def transactional(level: int) -> AsyncIterator[tuple[Broker, Producer]]:
    """A broker of one topic and partition, and a producer of many small batches."""
    features = {"transaction.version": level}
    async with Broker(topics={"t": 1}, features=features, memory_transport=True) as at:
        options = {"transactional_id": "x", "linger_ms": 0, "batch_size": 1}
        config = ProducerConfig.of(at.bootstrap_servers, options)
        producer = Producer.from_config(config, dial=at.dial)
        async with producer:
            async with producer.transaction() as tx:
                await tx.send("t", b"first")
            yield at, producer


@BOTH
async def test_a_batch_that_waits_to_be_sent_again_leaves_no_gap_behind(
    level: int,
) -> None:
    async with transactional(level) as (broker, producer):
        rule = broker.faults.on("Produce", error(ErrorCode.NOT_ENOUGH_REPLICAS))
        tx = producer.transaction()
        await tx.begin()
        delivery = await tx.enqueue("t", b"refused")
        while not rule.count:  # noqa: ASYNC110  (the clock jumps)
            await asyncio.sleep(0.001)
        await tx.abort()
        with pytest.raises(TransactionAborted):
            await delivery
        broker.faults.remove(rule)
        async with producer.transaction() as tx:
            await tx.send("t", b"second")
        assert await tx.outcome is TransactionOutcome.COMMITTED


@BOTH
async def test_batches_behind_one_that_failed_do_not_wait_for_their_time(
    level: int,
) -> None:
    async with transactional(level) as (broker, producer):
        loop = asyncio.get_running_loop()
        broker.faults.on("Produce", error(ErrorCode.INVALID_RECORD, times=1))
        began = loop.time()
        with pytest.raises(KafkaError):
            async with producer.transaction() as tx:
                deliveries = [await tx.enqueue("t", b"%d" % i) for i in range(5)]
        for delivery in deliveries:
            with pytest.raises(KafkaError):
                await delivery
        assert loop.time() - began < 5
        async with producer.transaction() as tx:
            await tx.send("t", b"second")


@BOTH
async def test_deliveries_behind_one_that_failed_end_inside_the_block(
    level: int,
) -> None:
    async with transactional(level) as (broker, producer):
        loop = asyncio.get_running_loop()
        broker.faults.on("Produce", error(ErrorCode.INVALID_RECORD, times=1))
        tx = producer.transaction()
        await tx.begin()
        deliveries = [await tx.enqueue("t", b"%d" % i) for i in range(5)]
        results = await asyncio.gather(*deliveries, return_exceptions=True)
        assert all(isinstance(result, KafkaError) for result in results)
        assert loop.time() < 5
        await tx.abort()
