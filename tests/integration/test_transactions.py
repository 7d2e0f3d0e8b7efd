"""Transactions on real brokers, in both protocols, as every reader sees them.

The newest runs with each level of ``transaction.version``: 2 means TV2. 3.9 and 2.8
know TV1 only. `tests.integration.test_transaction_codes` has what brokers cannot be
made to say.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress

import pytest

from kafkaio import Client, Consumer, GroupMetadata, Producer
from kafkaio._producer.transaction import Transaction, TransactionOutcome
from kafkaio.admin import Admin, NewTopic
from kafkaio.errors import Fenced, TransactionAborted
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._transactions.records import read_key, read_value
from kafkaio.testing._transactions.transaction import (
    TransactionMetadata as LoggedTransaction,
)
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory, topic_factory
from kafkaio.types import TopicPartition
from tests.integration.committed import (
    assert_committed,
    group_offsets,
    partitions_of,
    read_whole,
    set_level,
    settled,
)
from tests.support.interceptor import Interceptor, Rule
from tests.support.patience import HANGS

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("2.8+"),
    pytest.mark.not_embedded("of the real brokers; units show the embedded one"),
]


def new_id() -> str:
    return f"txn-{uuid.uuid4()}"


def producer_on(servers: str, name: str | None = None, **options: int) -> Producer:
    return Producer(servers, transactional_id=name or new_id(), **options)


def is_tv2(producer: Producer) -> bool:
    """Whether the producer's next transaction is of TV2."""
    return producer._cluster.features.level("transaction.version") >= 2


class Mistake(Exception):
    """What a body raises."""


def fail_if(condition: bool) -> None:
    if condition:
        raise Mistake


async def mistaken(tx: Transaction, topic: str) -> None:
    async with tx:
        await tx.send(topic, b"aborted", partition=0)
        await tx.enqueue(topic, b"aborted, too", partition=1)
        raise Mistake


def bumps_in(wire: Interceptor) -> list[int]:
    """The epochs after which InitProducerId was to give the next one."""
    return [
        each.request.producer_epoch
        for each in wire.of(ApiKey.INIT_PRODUCER_ID)
        if each.request.producer_id >= 0
    ]


async def committed_by(producer: Producer, topic: str, *values: bytes) -> Transaction:
    async with producer.transaction() as tx:
        for value in values:
            await tx.enqueue(topic, value)
    return tx


async def test_readers_see_what_was_committed(
    transactional: Kafka, tx_topic: TopicFactory
) -> None:
    servers, topic = transactional.bootstrap_servers, tx_topic(2)
    async with Interceptor(servers) as wire, producer_on(wire.servers) as producer:
        async with producer.transaction() as tx:
            for number in range(40):
                await tx.enqueue(topic, b"a%d" % number, partition=number % 2)
        assert await tx.outcome is TransactionOutcome.COMMITTED
        tx = producer.transaction()
        with pytest.raises(Mistake):
            await mistaken(tx, topic)
        assert await tx.outcome is TransactionOutcome.ABORTED
        ends = len(wire.of(ApiKey.END_TXN))
        async with producer.transaction() as tx:
            pass
        assert await tx.outcome is TransactionOutcome.COMMITTED
        tx = producer.transaction()
        await tx.begin()
        await tx.abort()
        assert len(wire.of(ApiKey.END_TXN)) == ends  # nothing was in them
        await committed_by(producer, topic, b"last")
        tv2 = is_tv2(producer)
    expected = [b"a%d" % number for number in range(40)]
    await assert_committed(servers, topic, [*expected, b"last"], 2)
    produced = {each.version for each in wire.of(ApiKey.PRODUCE)}
    if tv2:
        assert min(produced) >= 12
        assert not wire.of(ApiKey.ADD_PARTITIONS_TO_TXN)
        assert {each.version for each in wire.of(ApiKey.END_TXN)} == {5}
    else:
        assert max(produced) <= 11
        assert max(each.version for each in wire.of(ApiKey.END_TXN)) <= 4


async def test_readers_do_not_see_what_is_open(
    transactional: Kafka, tx_topic: TopicFactory
) -> None:
    servers, topic = transactional.bootstrap_servers, tx_topic()
    (tp,) = partitions_of(topic, 1)
    async with (
        producer_on(servers) as producer,
        Consumer(servers, assign=[tp], isolation_level="read_committed") as reader,
    ):
        async with producer.transaction() as tx:
            await tx.send(topic, b"v")
            assert (await reader.end_offsets([tp]))[tp] == 0
        await settled(servers, topic, 1)
        assert (await reader.end_offsets([tp]))[tp] == 2
    await assert_committed(servers, topic, [b"v"])


async def logged(servers: str, name: str) -> list[LoggedTransaction]:
    """What the coordinator has written of a transactional id, in order."""
    topic = "__transaction_state"
    async with Client(servers) as client:
        tps = partitions_of(topic, len((await client.partitions_for(topic))[topic]))
    found: list[LoggedTransaction] = []
    for record in await read_whole(servers, tps, "read_uncommitted"):
        if record.key is not None and read_key(record.key) == name:
            assert record.value is not None
            found.append(read_value(name, record.value))
    return found


async def test_partitions_that_the_producer_adds_itself(
    transactional: Kafka, tx_topic: TopicFactory
) -> None:
    """Also in TV2, where their leaders would. The end is one of TV2 nevertheless."""
    servers, topic, name = transactional.bootstrap_servers, tx_topic(4), new_id()
    values: list[bytes] = []
    async with (
        Interceptor(servers) as wire,
        Producer(
            wire.servers, transactional_id=name, transaction_adds_explicitly=True
        ) as producer,
    ):
        for number in range(9):
            tx = producer.transaction()
            await tx.begin()
            sent = [b"%d-%d" % (number, index) for index in range(4)]
            for index, value in enumerate(sent):
                await tx.enqueue(topic, value, partition=index)
            await producer.flush()
            if number % 3 == 1:
                await tx.abort()
            else:
                await tx.commit()
                values += sent
        tv2 = is_tv2(producer)
    await assert_committed(servers, topic, values, 4)
    added = [each.request for each in wire.of(ApiKey.ADD_PARTITIONS_TO_TXN)]
    at_once = [len(one.v3_and_below_topics[0].partitions) for one in added]
    assert set(at_once) == {4}
    assert all(each.version >= 12 for each in wire.of(ApiKey.PRODUCE)) is tv2
    log = await logged(servers, name)
    completed = [one for one in log if one.state.name.startswith("COMPLETE")]
    assert len(completed) == 9
    assert [one.state.name.endswith("ABORT") for one in completed] == [
        number % 3 == 1 for number in range(9)
    ]
    epochs = [one.epoch for one in completed]
    if tv2:
        assert {one.client_version for one in completed} == {2}
        assert epochs == list(range(epochs[0], epochs[0] + 9))
    else:
        assert len(set(epochs)) == 1


async def test_offsets_by_the_groups_name(
    transactional: Kafka, tx_topic: TopicFactory
) -> None:
    servers, topic, group = transactional.bootstrap_servers, tx_topic(), new_id()
    tp = TopicPartition(topic, 0)
    async with producer_on(servers) as producer:
        async with producer.transaction() as tx:
            await tx.enqueue(topic, b"v")
            await tx.commit_offsets(GroupMetadata(group), {tp: 7})
        assert await group_offsets(servers, group, topic) == [7]
        tx = producer.transaction()
        await tx.begin()
        await tx.commit_offsets(GroupMetadata(group), {tp: 9})
        await tx.abort()
        assert await group_offsets(servers, group, topic) == [7]
        async with producer.transaction() as tx:  # offsets alone
            await tx.commit_offsets(GroupMetadata(group), {tp: 11})
    assert await group_offsets(servers, group, topic) == [11]
    await assert_committed(servers, topic, [b"v"])


async def test_offsets_of_a_consumer(
    transactional: Kafka, tx_topic: TopicFactory, kafka_version: str
) -> None:
    servers, source, topic = transactional.bootstrap_servers, tx_topic(), tx_topic()
    group = new_id()
    async with Producer(servers) as producer:
        await producer.send_many(source, [b"%d" % number for number in range(20)])
    async with (
        asyncio.timeout(HANGS),
        Interceptor(servers) as wire,
        producer_on(wire.servers) as producer,
        Consumer(
            servers,
            topics=source,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer,
    ):
        copied: list[bytes] = []
        aborts = 0
        while len(copied) < 20:
            polled: list[bytes] = []
            try:
                async with producer.transaction() as tx:
                    records = (await consumer.poll(max_records=7)).records
                    for record in records:
                        assert record.value is not None
                        polled.append(record.value)
                        await tx.enqueue(topic, record.value)
                    await tx.commit_offsets(consumer)
                    aborts += 1
                    fail_if(aborts == 1)
            except Mistake:
                for tp in consumer.assignment:
                    consumer.seek(tp, 0)
            else:
                copied += polled
    assert sorted(copied) == sorted(b"%d" % number for number in range(20))
    assert await group_offsets(servers, group, source) == [20]
    await assert_committed(servers, topic, copied)
    versions = {each.version for each in wire.of(ApiKey.TXN_OFFSET_COMMIT)}
    assert min(versions) >= 3
    if kafka_version == "2.8":
        assert versions == {3}


@pytest.mark.kafka_versions("4.0+")
async def test_offsets_are_of_the_topic_that_was_read(
    transactional: Kafka,
) -> None:
    servers, out = transactional.bootstrap_servers, new_id()
    source, group = new_id(), new_id()
    tp = TopicPartition(source, 0)
    async with (
        asyncio.timeout(HANGS),
        Interceptor(servers) as wire,
        Admin(servers) as admin,
        Producer(servers) as writer,
        producer_on(wire.servers) as producer,
        Consumer(
            servers,
            topics=source,
            group_id=group,
            group_protocol="classic",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            allow_auto_create_topics=False,
        ) as consumer,
    ):
        await admin.create_topics([NewTopic(source, 1, 1), NewTopic(out, 1, 1)])
        await writer.send(source, b"of the first")
        with suppress(TransactionAborted):
            async with producer.transaction(consumer) as tx:
                record = await anext(aiter(consumer))
                await tx.send(out, record.value)
                await admin.delete_topics([source])
                await admin.create_topics([NewTopic(source, 1, 1)])
        versions = {each.version for each in wire.of(ApiKey.TXN_OFFSET_COMMIT)}
        if max(versions) < 6:  # TV1, or names alone
            assert await group_offsets(servers, group, source) == [1]
            return
        assert (await consumer.committed([tp]))[tp] is None
        await writer.send(source, b"of the second")
        async with producer.transaction(consumer) as tx:
            record = await anext(aiter(consumer))
            assert (record.offset, record.value) == (0, b"of the second")
            await tx.send(out, record.value)
        assert await group_offsets(servers, group, source) == [1]
    await assert_committed(servers, out, [b"of the second"])
    assert versions == {6}


async def test_the_second_producer_of_an_id_fences_the_first(
    transactional: Kafka, tx_topic: TopicFactory
) -> None:
    servers, topic, name = transactional.bootstrap_servers, tx_topic(), new_id()
    async with producer_on(servers, name) as first:
        await committed_by(first, topic, b"first")
        tx = first.transaction()
        await tx.begin()
        await tx.send(topic, b"of the fenced")
        async with producer_on(servers, name) as second:
            await committed_by(second, topic, b"second")
            with pytest.raises(Fenced, match="another producer with this trans"):
                await tx.commit()
            with pytest.raises(Fenced):
                await first.transaction().begin()
            assert await tx.outcome is TransactionOutcome.ABORTED
            await committed_by(second, topic, b"third")
    await assert_committed(servers, topic, [b"first", b"second", b"third"])


@pytest.mark.kafka_versions("4.0+")
async def test_a_first_batch_that_is_refused_is_not_overtaken(
    transactional: Kafka, tx_topic: TopicFactory
) -> None:
    """A leader of 4.0 takes the second batch then, and the first one never after."""
    servers, topic = transactional.bootstrap_servers, tx_topic()
    values = [b"%d" % number * 150 for number in range(5)]
    async with (
        Interceptor(servers) as wire,
        producer_on(wire.servers, batch_size=200) as producer,
    ):
        code = ErrorCode.CONCURRENT_TRANSACTIONS
        wire.add(Rule(ApiKey.PRODUCE, "refuse", code=code))
        tx = await committed_by(producer, topic, *values)
        assert await tx.outcome is TransactionOutcome.COMMITTED
    await assert_committed(servers, topic, values)


async def test_aborted_by_the_coordinators_time_out(
    transactional: Kafka, tx_topic: TopicFactory
) -> None:
    """The client's clock is behind: its EndTxn comes after the coordinator's abort."""
    servers, topic = transactional.bootstrap_servers, tx_topic()
    async with (
        Interceptor(servers) as wire,
        producer_on(wire.servers, transaction_timeout_ms=800) as producer,
    ):
        held = wire.add(Rule(ApiKey.END_TXN, "hold-request"))
        tx = producer.transaction()
        await tx.begin()
        await tx.send(topic, b"late")
        commit = asyncio.create_task(tx.commit())
        await held.met.wait()
        await settled(servers, topic, 1)  # the coordinator has aborted it
        held.release.set()
        if is_tv2(producer):
            with pytest.raises(TransactionAborted) as caught:
                await commit
            assert caught.value.reason == "timed out"
            await committed_by(producer, topic, b"next")
            expected = [b"next"]
        else:
            with pytest.raises(Fenced, match=r"was started, or .* transaction_timeout"):
                await commit
            expected = []
        assert await tx.outcome is TransactionOutcome.ABORTED
    await assert_committed(servers, topic, expected)


async def test_a_transaction_that_stays_open_too_long(
    transactional: Kafka, tx_topic: TopicFactory
) -> None:
    """The client's own clock ends it, about when the coordinator does."""
    servers, topic = transactional.bootstrap_servers, tx_topic()
    async with producer_on(servers, transaction_timeout_ms=800) as producer:
        tx = producer.transaction()
        await tx.begin()
        await tx.send(topic, b"late")
        await settled(servers, topic, 1)
        async with asyncio.timeout(HANGS):
            while not tx.is_ending:  # noqa: ASYNC110 - nothing tells it
                await asyncio.sleep(0.01)
        if is_tv2(producer):
            with pytest.raises(TransactionAborted) as caught:
                await tx.commit()
            assert caught.value.reason == "timed out"
            await committed_by(producer, topic, b"next")
        else:
            with pytest.raises(Fenced):
                await tx.commit()
    await assert_committed(servers, topic, [b"next"] if is_tv2(producer) else [])


async def test_a_batch_that_expires_on_the_wire_costs_an_epoch(
    transactional: Kafka, tx_topic: TopicFactory
) -> None:
    servers, topic = transactional.bootstrap_servers, tx_topic()
    tp = TopicPartition(topic, 0)
    async with (
        Interceptor(servers) as wire,
        Admin(servers) as admin,
        producer_on(
            wire.servers,
            delivery_timeout_ms=4_000,  # also of what is to arrive
            request_timeout_ms=3_000,
            linger_ms=0,
        ) as producer,
    ):
        await committed_by(producer, topic, b"before")
        await settled(servers, topic, 1)
        (before,) = (await admin.describe_producers([tp]))[tp]
        for _ in range(20):
            wire.add(Rule(ApiKey.PRODUCE, "cut"))
        with pytest.raises(TransactionAborted):
            await committed_by(producer, topic, b"expired")
        for rule in wire.rules:
            rule.times = 0
        await committed_by(producer, topic, b"after")
        await settled(servers, topic, 1)
        (after,) = (await admin.describe_producers([tp]))[tp]
        assert after.producer_id == before.producer_id
        bumps = bumps_in(wire)
        if is_tv2(producer):
            assert not bumps
            assert after.producer_epoch == before.producer_epoch + 2
        else:
            assert set(bumps) == {before.producer_epoch}
            assert after.producer_epoch == before.producer_epoch + 1
    await assert_committed(servers, topic, [b"before", b"after"])


@pytest.mark.kafka_versions("newest")
async def test_the_level_changes_while_the_producer_runs(
    switchable: Kafka, request: pytest.FixtureRequest
) -> None:
    servers = switchable.bootstrap_servers
    topic = topic_factory(switchable, request)()
    async with Interceptor(servers) as wire, producer_on(wire.servers) as producer:
        values: list[bytes] = []

        async def commit() -> int:
            """Commit a transaction; the version of its EndTxn."""
            values.append(b"%d" % len(values))
            await committed_by(producer, topic, values[-1])
            return wire.of(ApiKey.END_TXN)[-1].version

        assert await commit() < 5
        assert await commit() < 5
        async with producer.transaction() as tx:
            values.append(b"across")
            await tx.send(topic, values[-1])
            await set_level(servers, 2)
            wire.cut()  # whoever connects anew is told
        assert wire.of(ApiKey.END_TXN)[-1].version < 5  # it ends as it began
        assert not bumps_in(wire)
        assert await commit() == 5
        assert bumps_in(wire)  # a late write of TV1 cannot join
        assert await commit() == 5
        async with producer.transaction() as tx:
            values.append(b"back")
            await tx.send(topic, values[-1])
            await set_level(servers, 1)
            wire.cut()
        assert wire.of(ApiKey.END_TXN)[-1].version == 5
        assert await commit() < 5
        assert await commit() < 5
    await assert_committed(servers, topic, values)


async def test_many_transactions_back_to_back(
    transactional: Kafka, tx_topic: TopicFactory
) -> None:
    servers, topic = transactional.bootstrap_servers, tx_topic(4)
    async with producer_on(servers) as producer:
        for number in range(50):
            async with producer.transaction() as tx:
                for index in range(4):
                    await tx.enqueue(topic, b"%d-%d" % (number, index), partition=index)
    expected = [b"%d-%d" % (n, index) for n in range(50) for index in range(4)]
    await assert_committed(servers, topic, expected, 4)
