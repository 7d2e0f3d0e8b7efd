"""The operations on transactions, on real brokers.

The brokers do not verify that a partition is in a transaction, as none did before 3.6:
so the newest Kafka has hanging transactions, too. Transactions are made by single
requests in the old protocol, which brokers of all versions know.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator

import pytest

from kafkaio._client import Client
from kafkaio.admin import (
    Admin,
    HangingTransaction,
    TransactionState,
    settled,
)
from kafkaio.errors import BrokerError, UnsupportedVersion, UsageError
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory, topic_factory
from kafkaio.types import TopicPartition
from tests.support.raw_transactions import OLD, Cluster, Ends, RawProducer, ends, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("2.8+"),
    pytest.mark.not_embedded("has a Kafka of its own, with a setting of its own"),
]

HOUR_AGO_MS = int(time.time() * 1000) - 3_600_000
#: These say of the whole cluster which transactions there are.
LISTS_TRANSACTIONS = pytest.mark.kafka_versions("3.9+")


@pytest.fixture
def new_topic(unverified: Kafka, request: pytest.FixtureRequest) -> TopicFactory:
    return topic_factory(unverified, request)


@pytest.fixture
async def client(unverified: Kafka) -> AsyncIterator[Client]:
    async with Client(unverified.bootstrap_servers) as client:
        yield client


@pytest.fixture
def cluster(client: Client) -> Cluster:
    return Cluster(client)


@pytest.fixture
async def admin(client: Client) -> AsyncIterator[Admin]:
    async with Admin(client) as admin:
        yield admin


async def stable(cluster: Cluster, tp: TopicPartition, offset: int) -> None:
    """Wait until readers with read_committed can get that far."""

    async def is_stable() -> bool:
        return (await ends(cluster, tp)).last_stable_offset == offset

    await until(is_stable)


async def started(cluster: Cluster) -> RawProducer:
    """A producer in the protocol that every broker knows."""
    raw = RawProducer(cluster, f"txn-{uuid.uuid4()}", OLD)
    await raw.start()
    return raw


async def begun(cluster: Cluster, tp: TopicPartition) -> RawProducer:
    """A producer with an open transaction that has one record in a partition."""
    raw = await started(cluster)
    await raw.enter(tp)
    assert await raw.write(tp, 0, at_ms=HOUR_AGO_MS) == E.NONE
    return raw


async def hanging(
    cluster: Cluster, tp: TopicPartition, *, commit: bool = False
) -> RawProducer:
    """A producer whose last write came after the end of its transaction."""
    raw = await begun(cluster, tp)
    assert await raw.end(commit=commit) == E.NONE
    await stable(cluster, tp, 2)
    assert await raw.write(tp, 1, at_ms=HOUR_AGO_MS) == E.NONE
    assert await ends(cluster, tp) == Ends(3, 2)
    return raw


@LISTS_TRANSACTIONS
async def test_an_open_transaction_is_seen_and_fenced(
    cluster: Cluster, admin: Admin, new_topic: TopicFactory
) -> None:
    tp = TopicPartition(new_topic(2), 1)
    raw = await begun(cluster, tp)
    name = raw.name

    ongoing = await admin.list_transactions(
        states=["Ongoing"], producer_ids=[raw.who.producer_id]
    )
    assert [(each.transactional_id, each.state) for each in ongoing] == [
        (name, TransactionState.ONGOING)
    ]
    (described,) = (await admin.describe_transactions([name])).values()
    assert described.partitions == {tp}
    assert described.start_time_ms is not None
    assert (described.producer_id, described.producer_epoch, described.timeout_ms) == (
        *(raw.who.producer_id, raw.who.epoch),
        60_000,
    )
    assert described.coordinator == ongoing[0].coordinator
    (producer,) = (await admin.describe_producers([tp]))[tp]
    assert (producer.producer_id, producer.transaction_start_offset) == (
        *(raw.who.producer_id,),
        0,
    )
    assert (producer.last_sequence, producer.coordinator_epoch) == (0, None)

    assert await admin.find_hanging_transactions() == []
    with pytest.raises(UsageError, match=f"has it as '{name}' in state Ongoing"):
        await admin.abort_transaction(tp, 0)
    assert (await ends(cluster, tp)).last_stable_offset == 0

    fenced = (await admin.fence_producers([name], timeout=30))[name]
    assert fenced.producer_id == raw.who.producer_id
    assert fenced.epoch > raw.who.epoch
    await stable(cluster, tp, 2)
    assert await raw.end(commit=True) == E.PRODUCER_FENCED
    (described,) = (await admin.describe_transactions([name])).values()
    assert not described.state.is_open
    assert not described.partitions
    assert described.start_time_ms is None
    # The call's own timeout is stored, until a producer starts.
    assert 29_000 < described.timeout_ms <= 30_000
    with pytest.raises(UsageError, match="no open transaction that begins at offset 0"):
        await admin.abort_transaction(tp, 0)


@LISTS_TRANSACTIONS
async def test_a_hanging_transaction_is_found_and_aborted(
    cluster: Cluster, admin: Admin, new_topic: TopicFactory
) -> None:
    topic = new_topic(2)
    tp, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
    raw = await hanging(cluster, tp)
    # This one lives: its transaction is as old by its records, and its coordinator
    # has it.
    alive = await begun(cluster, other)

    expected = HangingTransaction(
        *(tp, 2, raw.who.producer_id, raw.who.epoch, HOUR_AGO_MS, raw.name)
    )
    assert await admin.find_hanging_transactions(topics=topic) == [expected]
    assert expected in await admin.find_hanging_transactions(broker=1)
    too_young = await admin.find_hanging_transactions(
        topics=topic, max_transaction_timeout_ms=2 * 3_600_000
    )
    assert too_young == []

    await admin.abort_transaction(tp, 2)
    await stable(cluster, tp, 4)
    assert await admin.find_hanging_transactions(topics=topic) == []
    with pytest.raises(UsageError, match="no open transaction"):
        await admin.abort_transaction(tp, 2)
    await admin.force_terminate_transaction(alive.name)
    await stable(cluster, other, 2)


@LISTS_TRANSACTIONS
async def test_what_hangs_after_a_commit_may_be_committed(
    cluster: Cluster, admin: Admin, new_topic: TopicFactory
) -> None:
    tp = TopicPartition(new_topic(), 0)
    raw = await hanging(cluster, tp, commit=True)
    with pytest.raises(UsageError, match=r"may be committed.*CompleteCommit") as raised:
        await admin.abort_transaction(tp, 2)
    assert raw.name in str(raised.value)
    assert await ends(cluster, tp) == Ends(3, 2)
    await admin.abort_transaction(tp, 2, force=True)
    await stable(cluster, tp, 4)


@pytest.mark.kafka_versions("2.8")
async def test_a_hanging_transaction_of_a_broker_that_lists_none(
    cluster: Cluster, admin: Admin, new_topic: TopicFactory
) -> None:
    tp = TopicPartition(new_topic(), 0)
    raw = await hanging(cluster, tp)
    with pytest.raises(UnsupportedVersion, match=r"needs Kafka 3\.0"):
        await admin.find_hanging_transactions(topics=tp.topic)
    with pytest.raises(UnsupportedVersion, match="force=True"):
        await admin.abort_transaction(tp, 2)
    (producer,) = (await admin.describe_producers([tp]))[tp]
    assert producer.transaction_start_offset == 2
    assert (producer.producer_id, producer.producer_epoch, producer.last_timestamp) == (
        *(raw.who.producer_id, raw.who.epoch),
        HOUR_AGO_MS,
    )
    assert producer.coordinator_epoch is not None  # a marker was written here
    await admin.abort_transaction(tp, 2, force=True)
    await stable(cluster, tp, 4)


async def test_one_that_hangs_where_no_marker_was_ever_written(
    cluster: Cluster, admin: Admin, new_topic: TopicFactory, kafka_version: str
) -> None:
    tp = TopicPartition(new_topic(), 0)
    raw = await started(cluster)
    assert await raw.write(tp, 0, at_ms=HOUR_AGO_MS) == E.NONE
    (producer,) = (await admin.describe_producers([tp]))[tp]
    assert producer.coordinator_epoch is None
    assert (await ends(cluster, tp)).last_stable_offset == 0
    is_old = kafka_version.startswith("2.")
    await admin.abort_transaction(tp, 0, force=is_old)
    await stable(cluster, tp, 2)


async def test_fencing_works_on_every_broker(
    cluster: Cluster, admin: Admin, new_topic: TopicFactory
) -> None:
    tp = TopicPartition(new_topic(), 0)
    first, second = await begun(cluster, tp), f"txn-{uuid.uuid4()}"
    found = await admin.fence_producers([first.name, second])
    await stable(cluster, tp, 2)
    assert found[first.name].epoch > first.who.epoch
    assert found[second].epoch == 0  # it was unknown
    assert await first.end(commit=True) in {E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH}
    refused = await settled(admin.fence_producers([second], timeout=16 * 60))
    error = refused.failed[second]
    assert isinstance(error, BrokerError)
    assert error.name == "INVALID_TRANSACTION_TIMEOUT"


async def test_filters_of_newer_brokers(
    cluster: Cluster, admin: Admin, new_topic: TopicFactory, kafka_version: str
) -> None:
    tp = TopicPartition(new_topic(), 0)
    raw = await begun(cluster, tp)
    name = raw.name
    version = tuple(map(int, kafka_version.split(".")[:2]))

    async def listed(**filters: object) -> bool:
        found = await admin.list_transactions(**filters)  # type: ignore[arg-type]
        return name in {each.transactional_id for each in found}

    if version < (3, 0):
        with pytest.raises(UnsupportedVersion, match=r"needs Kafka 3\.0"):
            await listed()
    else:
        assert await listed()
    if version < (3, 8):
        with pytest.raises(UnsupportedVersion, match=r"needs Kafka 3\.8"):
            await listed(duration_ms=1)
    else:
        assert await listed(duration_ms=0)
        assert not await listed(duration_ms=3_600_000)
    if version < (4, 1):
        with pytest.raises(UnsupportedVersion, match=r"needs Kafka 4\.1"):
            await listed(pattern="txn-.*")
    else:
        assert await listed(pattern="txn-.*")
        assert not await listed(pattern="txn")
    assert await raw.end(commit=False) == 0


@LISTS_TRANSACTIONS
async def test_an_id_that_nobody_knows(admin: Admin) -> None:
    with pytest.raises(BrokerError, match="TRANSACTIONAL_ID_NOT_FOUND"):
        await admin.describe_transactions(["nobody"])
