"""What ends a transaction besides its owner, and what is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafkaio._config import ProducerConfig
from kafkaio._producer import Producer
from kafkaio._producer.transaction import TransactionOutcome
from kafkaio._transactional import GroupOffsetsPort, TransactionalConsumer
from kafkaio.errors import KafkaError, PartitionLost, TransactionAborted
from kafkaio.testing import Broker
from kafkaio.testing._broker.faults import delay
from kafkaio.types import GroupMetadata, TopicPartition
from tests.unit.consumer.in_parallel import eventually

Body = Callable[[Broker, Producer], Awaitable[None]]


class FakeConsumer(TransactionalConsumer):
    """Hands nothing out, and loses a partition when it is told to."""

    def _offsets_in_transaction(self, what: object = None) -> GroupOffsetsPort | None:
        del what
        return None

    def _join_transaction(
        self, on_revoke: Callable[[], None], on_lost: Callable[[KafkaError], None]
    ) -> FakeConsumer:
        del on_revoke
        self.lose = on_lost
        return self

    def handed_out(self) -> GroupOffsetsPort | None:
        return None

    async def rewind(self, *, is_unknown: bool = False) -> None:
        pass

    def end(self) -> None:
        pass


@asynccontextmanager
async def world() -> AsyncGenerator[tuple[Broker, Producer]]:
    async with Broker(topics={"t": 1}, memory_transport=True) as broker:
        options: Any = {"transactional_id": "one"}
        config = ProducerConfig.of(broker.bootstrap_servers, options)
        async with Producer.from_config(config, dial=broker.dial) as producer:
            yield broker, producer


async def test_a_partition_lost_after_endtxn_changes_nothing() -> None:
    async with world() as (broker, producer):
        consumer = FakeConsumer()
        tx = producer.transaction(consumer)
        await tx.begin()
        await tx.send("t", b"x")
        rule = broker.faults.on("EndTxn", delay(0.2, times=1))
        commit = asyncio.ensure_future(tx.commit())
        await eventually(lambda: rule.count)
        consumer.lose(PartitionLost("gone"))
        await commit
        assert await tx.outcome is TransactionOutcome.COMMITTED


async def two_records(broker: Broker, producer: Producer) -> None:
    async with producer.transaction() as tx:
        await tx.send("t", b"x")
        broker.control.time_out_transaction("one")
        broker.control.write_markers()
        await tx.send("t", b"y")


async def offsets_twice(broker: Broker, producer: Producer) -> None:
    group, offsets = GroupMetadata("g"), {TopicPartition("t", 0): 1}
    async with producer.transaction() as tx:
        await tx.commit_offsets(group, offsets)
        broker.control.time_out_transaction("one")
        broker.control.write_markers()
        await tx.commit_offsets(group, offsets)


@pytest.mark.parametrize("body", [two_records, offsets_twice])
async def test_after_the_time_out_the_producer_goes_on(body: Body) -> None:
    async with world() as (broker, producer):
        with pytest.raises(TransactionAborted) as caught:
            await body(broker, producer)
        assert caught.value.reason == "timed out or fenced"
        async with producer.transaction() as tx:
            await tx.send("t", b"z")
        assert await tx.outcome is TransactionOutcome.COMMITTED
