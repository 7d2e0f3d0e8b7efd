"""A transactional id that was idle for longer than the brokers keep it.

Brokers of their own, because the time is an option of brokers: seven days by default,
and two seconds here.
"""

from __future__ import annotations

import asyncio

import pytest

from kafkaio import (
    Consumer,
    Producer,
    Record,
    Transaction,
    TransactionAborted,
    exactly_once,
)
from tests.integration.groups import until
from tests.support.kafka import Kafka

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("2.8", "3.9", "newest"),
    pytest.mark.not_embedded("it keeps ids for ever"),
]

#: Seconds after which an id is certainly forgotten.
IDLE = 6.0
CONFIG = {
    "transactional.id.expiration.ms": 2_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 500,
    "producer.id.expiration.ms": 2_000,
}


async def rest(servers: str) -> list[int]:
    """Commit, rest, and commit again; return the producer ids."""
    async with Producer(servers, transactional_id="rests") as producer:
        async with producer.transaction() as tx:
            await tx.send("quiet", b"before")
        ids = [producer.statistics().producer_id]
        await asyncio.sleep(IDLE)
        with pytest.raises(TransactionAborted, match="idle for longer than"):
            async with producer.transaction() as tx:
                await tx.send("quiet", b"forgotten")
        for _ in range(2):
            async with producer.transaction() as tx:
                await tx.send("quiet", b"after")
        return [*ids, producer.statistics().producer_id]


async def copy(servers: str) -> None:
    """Copy a record, rest, and copy another one."""

    async def handle(tx: Transaction, records: list[Record]) -> None:
        for record in records:
            await tx.send("copy", record.value)

    async with (
        Producer(servers) as writer,
        Consumer(
            servers,
            topics="input",
            group_id="copiers",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        ) as consumer,
        Producer(servers, transactional_id="copies") as producer,
    ):
        copying = asyncio.create_task(exactly_once(consumer, producer, handle))
        await writer.send("input", b"one")
        await until(lambda: producer.statistics().transaction == "ready")
        await asyncio.sleep(IDLE)
        await writer.send("input", b"two")
        async with Consumer(
            servers,
            topics="copy",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as reader:
            copied: list[bytes | None] = []
            async for record in reader:
                copied.append(record.value)
                if len(copied) == 2:
                    break
        assert copied == [b"one", b"two"]
        assert not copying.done()
        copying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await copying


async def test_a_producer_that_rested_for_too_long_goes_on(kafka_version: str) -> None:
    async with Kafka(brokers=1, version=kafka_version, config=CONFIG) as kafka:
        for name in ("quiet", "input", "copy"):
            await kafka.create_topic(name)
        servers = kafka.bootstrap_servers
        ids, _ = await asyncio.gather(rest(servers), copy(servers))
        assert ids[1] > ids[0]
