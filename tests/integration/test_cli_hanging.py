"""``kafkaio transactions hanging`` and ``abort``, on a transaction that does hang."""

from __future__ import annotations

import asyncio

import pytest

from kafkaio._client import Client
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import topic_factory
from kafkaio.types import TopicPartition
from tests.integration.test_admin_transactions import hanging, stable
from tests.support.cli import run_at_terminal, run_beside
from tests.support.raw_transactions import Cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.not_embedded("has a Kafka of its own, with a setting of its own"),
]


@pytest.mark.kafka_versions("3.9+")
async def test_a_hanging_transaction_is_shown_and_aborted(
    unverified: Kafka, request: pytest.FixtureRequest
) -> None:
    topic = topic_factory(unverified, request)()
    servers = ("-b", unverified.bootstrap_servers)
    words = ("transactions", "hanging", "--topic", topic, *servers)
    async with Client(unverified.bootstrap_servers) as client:
        cluster = Cluster(client)
        raw = await hanging(cluster, TopicPartition(topic, 0))

        shown = await run_beside(*words)
        heads, row = shown.check().rows
        assert heads == [
            *("TOPIC", "PARTITION", "START OFFSET", "PRODUCER ID", "PRODUCER EPOCH"),
            *("LAST TIME", "TRANSACTIONAL ID"),
        ]
        who = [str(raw.who.producer_id), str(raw.who.epoch)]
        assert [*row[:5], row[6]] == [topic, "0", "2", *who, raw.name]
        drawn = await asyncio.to_thread(run_at_terminal, *words, columns=250)
        assert {topic, raw.name} <= set(drawn.check().out.split())
        (found,) = (await run_beside(*words, "--json")).document["transactions"]
        assert (found["partition"], found["start_offset"]) == (0, 2)
        young = await run_beside(*words, "--max-transaction-timeout", "2h")
        assert young.check().rows == [heads]

        abort = ("transactions", "abort", f"{topic}:0", "2", *servers)
        done = await asyncio.to_thread(run_at_terminal, *abort)
        asked = f"abort: the transaction in {topic}-0 from offset 2"
        assert done.check().out.splitlines()[0] == asked
        await stable(cluster, TopicPartition(topic, 0), 4)
        assert (await run_beside(*words)).check().rows == [heads]


@pytest.mark.kafka_versions("2.8")
async def test_what_a_broker_lacks_to_find_it_is_named(
    unverified: Kafka, request: pytest.FixtureRequest
) -> None:
    topic = topic_factory(unverified, request)()
    async with Client(unverified.bootstrap_servers) as client:
        await hanging(Cluster(client), TopicPartition(topic, 0))
        words = ("transactions", "hanging", "-b", unverified.bootstrap_servers)
        failed = (await run_beside(*words)).check(1)
    assert failed.out == ""
    assert "ListTransactions needs Kafka 3.0 or later" in failed.err
