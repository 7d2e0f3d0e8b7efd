"""Transactions that one process writes and another one ends, on real brokers.

`tests/unit/producer/test_detached.py` has what brokers cannot be made to do.
"""

from __future__ import annotations

import uuid

import pytest

from kafkaio import Client, Producer
from kafkaio._producer.detached import DetachedTransaction, detach, end_detached
from kafkaio._producer.transaction import TransactionOutcome
from kafkaio.errors import Fenced, TransactionAborted
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import topic_factory
from tests.integration.committed import ours, settled

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("2.8+"),
    pytest.mark.not_embedded("of the real brokers; units show the embedded one"),
]

COMMITTED, ABORTED = TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED


async def written(servers: str, name: str, topic: str) -> DetachedTransaction:
    async with (
        Producer(servers, transactional_id=name) as producer,
        producer.transaction() as tx,
    ):
        await tx.enqueue(topic, name.encode())
        return await detach(tx)


async def test_the_end_in_another_process(
    transactional: Kafka, request: pytest.FixtureRequest
) -> None:
    topic = topic_factory(transactional, request)(partitions=1)
    servers = transactional.bootstrap_servers
    one, two, three = (f"{name}-{uuid.uuid4()}" for name in ("one", "two", "three"))
    async with Client(servers) as driver:
        detached = await written(servers, one, topic)
        assert await ours(servers, topic) == []
        for commit in (True, True, False):  # the end does not change any more
            assert await end_detached(driver, detached, commit=commit) is COMMITTED

        detached = await written(servers, two, topic)
        for _ in range(2):
            assert await end_detached(driver, detached, commit=False) is ABORTED
        with pytest.raises(TransactionAborted):
            await end_detached(driver, detached, commit=True)

        detached = await written(servers, three, topic)
        async with Producer(servers, transactional_id=three):
            for commit in (True, False):
                with pytest.raises(Fenced):
                    await end_detached(driver, detached, commit=commit)
    await settled(servers, topic, 1)
    assert await ours(servers, topic) == [one.encode()]
