"""The operations on transactions, on real brokers.

The brokers do not verify that a partition is in a transaction, as none did before 3.6:
so the newest Kafka has hanging transactions, too. Transactions are made by single
requests in the old protocol, which brokers of all versions know.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from kafkaio._net.connection_class import ConnectionClass
from kafkaio._records.batch import BatchBuilder
from kafkaio.admin import Admin, HangingTransaction, TransactionState
from kafkaio.client import Client, CoordinatorKind, Leader
from kafkaio.errors import BrokerError, UnsupportedVersion, UsageError
from kafkaio.protocol.error_codes import ErrorCode as E
from kafkaio.protocol.message import Request, ResponseT
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kafkaio.protocol.messages.end_txn import EndTxnRequest
from kafkaio.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkaio.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory, topic_factory
from kafkaio.types import TopicPartition

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("2.8", "3.9", "4.0", "4.3"),
    pytest.mark.not_embedded("has a Kafka of its own, with a setting of its own"),
]

HOUR_AGO_MS = int(time.time() * 1000) - 3_600_000
#: These say of the whole cluster which transactions there are.
LISTS_TRANSACTIONS = pytest.mark.kafka_versions("3.9", "4.0", "4.3")
PASSING = {
    E.CONCURRENT_TRANSACTIONS,
    E.COORDINATOR_LOAD_IN_PROGRESS,
    E.COORDINATOR_NOT_AVAILABLE,
    E.NOT_COORDINATOR,
}


@pytest.fixture
def new_topic(unverified: Kafka, request: pytest.FixtureRequest) -> TopicFactory:
    return topic_factory(unverified, request)


@pytest.fixture
async def client(unverified: Kafka) -> AsyncIterator[Client]:
    async with Client(unverified.bootstrap_servers) as client:
        yield client


@pytest.fixture
async def admin(client: Client) -> AsyncIterator[Admin]:
    async with Admin(client) as admin:
        yield admin


@dataclass
class Raw:
    """A transactional producer by hand, in the protocol that every broker knows."""

    client: Client
    transactional_id: str
    producer_id: int = -1
    epoch: int = -1
    sequence: int = 0

    async def _ask(
        self, request: Request[ResponseT], max_version: int, to: int | None = None
    ) -> ResponseT:
        cluster = self.client._cluster
        if to is None:
            kind = CoordinatorKind.TRANSACTION
            to = await cluster.coordinator(kind, self.transactional_id)
        connection = await cluster.connection(to, ConnectionClass.SHARED)
        return await connection.call(request, timeout=10, max_version=max_version)

    async def init(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=60_000
        )
        async with asyncio.timeout(30):
            while (answer := await self._ask(request, 4)).error_code in PASSING:
                self.client._cluster.forget_coordinator(
                    CoordinatorKind.TRANSACTION, self.transactional_id, 1
                )
                await asyncio.sleep(0.05)
        assert answer.error_code == 0
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    async def add(self, tp: TopicPartition) -> None:
        topic = AddPartitionsToTxnTopic(name=tp.topic, partitions=[tp.partition])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[topic],
        )
        async with asyncio.timeout(30):
            while True:
                answer = await self._ask(request, 3)
                (found,) = answer.results_by_topic_v3_and_below
                (partition,) = found.results_by_partition
                if partition.partition_error_code not in PASSING:
                    break
                await asyncio.sleep(0.02)
        assert partition.partition_error_code == 0

    async def produce(self, tp: TopicPartition, at: int = HOUR_AGO_MS) -> None:
        builder = BatchBuilder(transactional=True)
        builder.try_append(at, None, b"value", ())
        batch = builder.build(
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
        )
        self.sequence += 1
        data = PartitionProduceData(index=tp.partition, records=batch)
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=5000,
            topic_data=[TopicProduceData(name=tp.topic, partition_data=[data])],
        )
        view = await self.client._cluster.wait_for_topics([tp.topic])
        answer = await self._ask(request, 11, to=view.leader(tp))
        assert answer.responses[0].partition_responses[0].error_code == 0

    async def end(self, *, commit: bool = True) -> int:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        return (await self._ask(request, 4)).error_code


async def end_offset(client: Client, tp: TopicPartition, isolation: int = 1) -> int:
    """The last stable offset; with isolation 0 the high watermark."""
    partition = ListOffsetsPartition(partition_index=tp.partition, timestamp=-1)
    topic = ListOffsetsTopic(name=tp.topic, partitions=[partition])
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=isolation, topics=[topic]
    )
    answer = await client.request(request, Leader(tp))
    (found,) = answer.topics[0].partitions
    assert found.error_code == 0
    return found.offset


async def stable(client: Client, tp: TopicPartition, offset: int) -> None:
    """Wait until readers with read_committed can get that far."""
    async with asyncio.timeout(30):
        # Every question is a round trip, so this leaves the broker its time.
        while await end_offset(client, tp) != offset:
            pass


async def begun(client: Client, tp: TopicPartition) -> Raw:
    """A producer with an open transaction that has one record in a partition."""
    raw = Raw(client, f"txn-{uuid.uuid4()}")
    await raw.init()
    await raw.add(tp)
    await raw.produce(tp)
    return raw


async def hanging(client: Client, tp: TopicPartition) -> Raw:
    """A producer whose last write came after the end of its transaction."""
    raw = await begun(client, tp)
    assert await raw.end() == 0
    await stable(client, tp, 2)
    await raw.produce(tp)
    assert await end_offset(client, tp) == 2
    assert await end_offset(client, tp, 0) == 3
    return raw


@LISTS_TRANSACTIONS
async def test_an_open_transaction_is_seen_and_fenced(
    client: Client, admin: Admin, new_topic: TopicFactory
) -> None:
    tp = TopicPartition(new_topic(2), 1)
    raw = await begun(client, tp)
    name = raw.transactional_id

    ongoing = await admin.list_transactions(
        states=["Ongoing"], producer_ids=[raw.producer_id]
    )
    assert [(each.transactional_id, each.state) for each in ongoing] == [
        (name, TransactionState.ONGOING)
    ]
    (described,) = (await admin.describe_transactions([name])).values()
    assert described.partitions == {tp}
    assert described.start_time_ms is not None
    assert (described.producer_id, described.producer_epoch, described.timeout_ms) == (
        *(raw.producer_id, raw.epoch),
        60_000,
    )
    assert described.coordinator == ongoing[0].coordinator
    (producer,) = (await admin.describe_producers([tp]))[tp]
    assert (producer.producer_id, producer.transaction_start_offset) == (
        *(raw.producer_id,),
        0,
    )
    assert (producer.last_sequence, producer.coordinator_epoch) == (0, None)

    assert await admin.find_hanging_transactions() == []
    with pytest.raises(UsageError, match=f"has it as '{name}' in state Ongoing"):
        await admin.abort_transaction(tp, 0)
    assert await end_offset(client, tp) == 0

    fenced = (await admin.fence_producers([name], timeout=30))[name]
    assert fenced.producer_id == raw.producer_id
    assert fenced.epoch > raw.epoch
    await stable(client, tp, 2)
    assert await raw.end() == E.PRODUCER_FENCED
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
    client: Client, admin: Admin, new_topic: TopicFactory
) -> None:
    topic = new_topic(2)
    tp, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
    raw = await hanging(client, tp)
    # This one lives: its transaction is as old by its records, and its coordinator
    # has it.
    alive = await begun(client, other)

    expected = HangingTransaction(
        *(tp, 2, raw.producer_id, raw.epoch, HOUR_AGO_MS, raw.transactional_id)
    )
    assert await admin.find_hanging_transactions(topics=topic) == [expected]
    assert expected in await admin.find_hanging_transactions(broker=1)
    too_young = await admin.find_hanging_transactions(
        topics=topic, max_transaction_timeout_ms=2 * 3_600_000
    )
    assert too_young == []

    await admin.abort_transaction(tp, 2)
    await stable(client, tp, 4)
    assert await admin.find_hanging_transactions(topics=topic) == []
    with pytest.raises(UsageError, match="no open transaction"):
        await admin.abort_transaction(tp, 2)
    await admin.force_terminate_transaction(alive.transactional_id)
    await stable(client, other, 2)


@pytest.mark.kafka_versions("2.8")
async def test_a_hanging_transaction_of_a_broker_that_lists_none(
    client: Client, admin: Admin, new_topic: TopicFactory
) -> None:
    tp = TopicPartition(new_topic(), 0)
    raw = await hanging(client, tp)
    with pytest.raises(UnsupportedVersion, match=r"needs Kafka 3\.0"):
        await admin.find_hanging_transactions(topics=tp.topic)
    with pytest.raises(UnsupportedVersion, match="force=True"):
        await admin.abort_transaction(tp, 2)
    (producer,) = (await admin.describe_producers([tp]))[tp]
    assert producer.transaction_start_offset == 2
    assert (producer.producer_id, producer.producer_epoch, producer.last_timestamp) == (
        *(raw.producer_id, raw.epoch),
        HOUR_AGO_MS,
    )
    assert producer.coordinator_epoch is not None  # a marker was written here
    await admin.abort_transaction(tp, 2, force=True)
    await stable(client, tp, 4)


async def test_one_that_hangs_where_no_marker_was_ever_written(
    client: Client, admin: Admin, new_topic: TopicFactory, kafka_version: str
) -> None:
    tp = TopicPartition(new_topic(), 0)
    raw = Raw(client, f"txn-{uuid.uuid4()}")
    await raw.init()
    await raw.produce(tp)
    (producer,) = (await admin.describe_producers([tp]))[tp]
    assert producer.coordinator_epoch is None
    assert await end_offset(client, tp) == 0
    is_old = kafka_version.startswith("2.")
    await admin.abort_transaction(tp, 0, force=is_old)
    await stable(client, tp, 2)


async def test_fencing_works_on_every_broker(
    client: Client, admin: Admin, new_topic: TopicFactory
) -> None:
    tp = TopicPartition(new_topic(), 0)
    first, second = await begun(client, tp), f"txn-{uuid.uuid4()}"
    found = await admin.fence_producers([first.transactional_id, second])
    await stable(client, tp, 2)
    assert found[first.transactional_id].epoch > first.epoch
    assert found[second].epoch == 0  # it was unknown
    assert await first.end() in {E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH}
    refused = await admin.fence_producers([second], timeout=16 * 60, return_errors=True)
    error = refused[second]
    assert isinstance(error, BrokerError)
    assert error.name == "INVALID_TRANSACTION_TIMEOUT"


async def test_filters_of_newer_brokers(
    client: Client, admin: Admin, new_topic: TopicFactory, kafka_version: str
) -> None:
    tp = TopicPartition(new_topic(), 0)
    raw = await begun(client, tp)
    name = raw.transactional_id
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
