"""What a transactional producer does about each error code, and about lost answers.

A proxy before a real broker gives the answers that the broker cannot be made to give.
A request that is refused so has not reached the broker: a retry, an abort and the next
transaction meet its real state. Readers judge what became of the records.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import pytest

from kafkaio import GroupMetadata, Producer
from kafkaio.errors import (
    AuthorizationError,
    ConfigurationError,
    Fenced,
    KafkaError,
    OutcomeUnknown,
    RequestTimeout,
)
from kafkaio.producer.transaction import TransactionOutcome
from kafkaio.protocol.api_keys import ApiKey as A
from kafkaio.protocol.error_codes import ErrorCode as E
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import TopicPartition
from tests.integration.committed import group_offsets, ours, settled
from tests.support.interceptor import Interceptor, Rule

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("2.8", "3.9", "4.0", "4.3"),
    pytest.mark.not_embedded("of the real brokers; units show the embedded one"),
]


class Then(Enum):
    """What becomes of the transaction, and of the producer."""

    COMMITTED = auto()  #: the request is repeated
    ABORTED = auto()  #: the next transaction commits
    BUMPED = auto()  #: so it does, in TV1 under the next epoch
    FENCED = auto()  #: the producer is over
    OVER = auto()  #: so it is, for another reason


@dataclass(frozen=True)
class Row:
    """One code in the answers of one API.

    Attributes:
        api: whose requests are refused.
        code: with what.
        tv2: what follows in TV2; None where the request is not sent.
        tv1: what follows in TV1.
        times: how many requests are refused.
    """

    api: A
    code: E
    tv2: Then | None
    tv1: Then
    times: int = 1


def rows(
    api: A, then: Then | tuple[Then | None, Then], *codes: E, times: int = 1
) -> list[Row]:
    tv2, tv1 = then if isinstance(then, tuple) else (then, then)
    return [Row(api, code, tv2, tv1, times) for code in codes]


T = Then
BUSY = (
    E.COORDINATOR_LOAD_IN_PROGRESS,
    E.COORDINATOR_NOT_AVAILABLE,
    E.NOT_COORDINATOR,
    E.CONCURRENT_TRANSACTIONS,
)
FENCING = (E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED)
FATAL = (
    E.INVALID_TXN_STATE,
    E.INVALID_PRODUCER_ID_MAPPING,
    E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)


def adding(api: A, *more: E) -> list[Row]:
    """What both of the requests that add something are answered with, in TV1 only."""
    abortable = (E.OPERATION_NOT_ATTEMPTED, E.TRANSACTION_ABORTABLE, *more)
    return [
        *rows(api, (None, T.COMMITTED), *BUSY, times=2),
        *rows(api, (None, T.FENCED), *FENCING),
        *rows(api, (None, T.OVER), *FATAL, E.INVALID_REQUEST),
        *rows(api, (None, T.ABORTED), *abortable),
        *rows(api, (None, T.BUMPED), E.UNKNOWN_PRODUCER_ID),
    ]


ROWS = [
    *adding(A.ADD_PARTITIONS_TO_TXN, E.TOPIC_AUTHORIZATION_FAILED),
    *rows(A.ADD_PARTITIONS_TO_TXN, (None, T.COMMITTED), E.UNKNOWN_TOPIC_OR_PARTITION),
    *adding(A.ADD_OFFSETS_TO_TXN, E.GROUP_AUTHORIZATION_FAILED),
    *rows(
        A.PRODUCE,
        T.COMMITTED,
        *(E.CONCURRENT_TRANSACTIONS, E.NOT_ENOUGH_REPLICAS),
        *(E.NOT_LEADER_OR_FOLLOWER, E.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        E.REQUEST_TIMED_OUT,
        times=2,
    ),
    *rows(A.PRODUCE, T.COMMITTED, E.UNKNOWN_PRODUCER_ID),  # numbered from 0 again
    # The numbers of a batch that was refused are missing: TV1 needs another epoch.
    *rows(
        A.PRODUCE,
        T.BUMPED,
        *(E.INVALID_PRODUCER_EPOCH, E.INVALID_TXN_STATE, E.TRANSACTION_ABORTABLE),
        *(E.MESSAGE_TOO_LARGE, E.INVALID_RECORD, E.TOPIC_AUTHORIZATION_FAILED),
        *(E.RECORD_LIST_TOO_LARGE, E.INVALID_TIMESTAMP),
        E.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ),
    *rows(
        A.PRODUCE,
        T.OVER,
        *(E.INVALID_PRODUCER_ID_MAPPING, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ),
    *rows(
        A.TXN_OFFSET_COMMIT,
        T.COMMITTED,
        *(*BUSY, E.UNKNOWN_TOPIC_OR_PARTITION, E.REQUEST_TIMED_OUT),
        times=2,
    ),
    *rows(
        A.TXN_OFFSET_COMMIT,
        T.ABORTED,
        *(E.GROUP_AUTHORIZATION_FAILED, E.TOPIC_AUTHORIZATION_FAILED),
        *(E.ILLEGAL_GENERATION, E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID),
        *(E.TRANSACTION_ABORTABLE, E.OFFSET_METADATA_TOO_LARGE),
        *(E.INVALID_COMMIT_OFFSET_SIZE, E.INVALID_PRODUCER_EPOCH),
    ),
    *rows(A.TXN_OFFSET_COMMIT, T.FENCED, E.PRODUCER_FENCED),
    *rows(A.TXN_OFFSET_COMMIT, T.OVER, *FATAL, E.UNSUPPORTED_VERSION),
    *rows(
        A.END_TXN,
        T.COMMITTED,
        *(*BUSY, E.REQUEST_TIMED_OUT, E.UNKNOWN_SERVER_ERROR),
        times=2,
    ),
    *rows(A.END_TXN, T.FENCED, *FENCING),
    *rows(A.END_TXN, (T.ABORTED, T.OVER), E.INVALID_TXN_STATE),
    *rows(A.END_TXN, T.OVER, *FATAL[1:], E.INVALID_REQUEST),
    *rows(A.END_TXN, T.BUMPED, E.UNKNOWN_PRODUCER_ID),
    *rows(A.END_TXN, T.ABORTED, E.TRANSACTION_ABORTABLE),
]


def producer_on(servers: str, name: str, **options: int) -> Producer:
    return Producer(servers, transactional_id=name, linger_ms=0, **options)


def new_id() -> str:
    return f"txn-{uuid.uuid4()}"


def bumps_in(wire: Interceptor) -> int:
    asked = wire.of(A.INIT_PRODUCER_ID)
    return len({e.request.producer_epoch for e in asked if e.request.producer_id >= 0})


def no_probe(wire: Interceptor) -> Callable[[Any], bool]:
    """Accept what is no EndTxn of TV2 that was sent again, to look for its markers."""
    last = wire.of(A.END_TXN)[-1]
    if last.version < 5:
        return lambda request: True
    return lambda request: request != last.request


async def one(
    producer: Producer, topic: str, value: bytes, group: str, at: int
) -> None:
    """A transaction with a record and an offset."""
    async with producer.transaction() as tx:
        await tx.enqueue(topic, value)
        await tx.commit_offsets(GroupMetadata(group), {TopicPartition(topic, 0): at})


async def seen_by_readers(
    servers: str, name: str, topic: str, group: str
) -> tuple[list[bytes], list[int | None]]:
    # Whatever the producer left open is ended by its successor.
    async with producer_on(servers, name):
        await settled(servers, topic, 1)
        return await ours(servers, topic), await group_offsets(servers, group, topic)


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row.api.name}-{row.code.name}".lower()
)
async def test_a_code(transactional: Kafka, tx_topic: TopicFactory, row: Row) -> None:
    servers, topic = transactional.bootstrap_servers, tx_topic()
    name, group = new_id(), new_id()
    async with (
        asyncio.timeout(60),
        Interceptor(servers) as wire,
        producer_on(wire.servers, name) as producer,
    ):
        await one(producer, topic, b"before", group, 1)
        is_tv2 = producer._cluster.feature_level("transaction.version") >= 2
        then = row.tv2 if is_tv2 else row.tv1
        if then is None:
            assert not wire.of(row.api)
            return
        rule = wire.refuse(row.api, row.code, row.times)
        rule.accepts = no_probe(wire)
        expected, at = [b"before"], 1
        is_over = False
        if then is Then.COMMITTED:
            await one(producer, topic, b"now", group, 2)
            expected.append(b"now")
        else:
            with pytest.raises(KafkaError) as caught:
                await one(producer, topic, b"now", group, 2)
            is_over = then in {Then.FENCED, Then.OVER}
            assert isinstance(caught.value, Fenced) == (then is Then.FENCED)
        assert rule.times == 0
        if is_over:
            asked = len(wire.seen)
            with pytest.raises(type(caught.value)):
                await one(producer, topic, b"next", group, 3)
            assert len(wire.seen) == asked
        else:
            await one(producer, topic, b"next", group, 3)
            expected.append(b"next")
            at = 3
            is_bumped = then is Then.BUMPED and not is_tv2
            assert bumps_in(wire) == (1 if is_bumped else 0)
    found = await seen_by_readers(servers, name, topic, group)
    assert found == (sorted(expected), [at])


async def test_abortable_is_fatal_when_an_abort_says_it(
    transactional: Kafka, tx_topic: TopicFactory
) -> None:
    servers, topic, name = transactional.bootstrap_servers, tx_topic(), new_id()
    async with Interceptor(servers) as wire, producer_on(wire.servers, name) as first:
        wire.refuse(A.END_TXN, E.TRANSACTION_ABORTABLE)
        tx = first.transaction()
        await tx.begin()
        await tx.send(topic, b"v")
        with pytest.raises(KafkaError) as caught:
            await tx.abort()
        with pytest.raises(type(caught.value)):
            await first.transaction().begin()


@pytest.mark.parametrize("api", [A.FIND_COORDINATOR, A.INIT_PRODUCER_ID])
@pytest.mark.parametrize("code", BUSY[:3], ids=lambda code: code.name.lower())
async def test_the_start_goes_on_trying(
    transactional: Kafka, tx_topic: TopicFactory, api: A, code: E
) -> None:
    servers, topic = transactional.bootstrap_servers, tx_topic()
    async with Interceptor(servers) as wire:
        rule = wire.refuse(api, code, 2)
        async with producer_on(wire.servers, new_id()) as producer:
            assert rule.times == 0
            await one(producer, topic, b"v", new_id(), 1)
    await settled(servers, topic, 1)
    assert await ours(servers, topic) == [b"v"]


@pytest.mark.parametrize(
    ("api", "code", "error"),
    [
        (
            A.FIND_COORDINATOR,
            E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            AuthorizationError,
        ),
        (
            A.INIT_PRODUCER_ID,
            E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            AuthorizationError,
        ),
        (A.INIT_PRODUCER_ID, E.CLUSTER_AUTHORIZATION_FAILED, AuthorizationError),
        (A.INIT_PRODUCER_ID, E.INVALID_TRANSACTION_TIMEOUT, ConfigurationError),
        (A.INIT_PRODUCER_ID, E.INVALID_PRODUCER_EPOCH, Fenced),
        (A.INIT_PRODUCER_ID, E.PRODUCER_FENCED, Fenced),
        (A.INIT_PRODUCER_ID, E.UNSUPPORTED_VERSION, KafkaError),
        (A.INIT_PRODUCER_ID, E.INVALID_REQUEST, KafkaError),
        (A.INIT_PRODUCER_ID, E.TRANSACTION_ABORTABLE, KafkaError),
    ],
)
async def test_the_start_is_refused(
    transactional: Kafka, api: A, code: E, error: type[KafkaError]
) -> None:
    async with Interceptor(transactional.bootstrap_servers) as wire:
        wire.refuse(api, code)
        producer = producer_on(wire.servers, new_id())
        try:
            with pytest.raises(error):
                await producer.start()
        finally:
            await producer.close()
        async with producer_on(wire.servers, new_id()):
            pass


@pytest.mark.parametrize("what", ["lose", "cut"])
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(
    "api",
    [
        *(A.ADD_PARTITIONS_TO_TXN, A.ADD_OFFSETS_TO_TXN, A.TXN_OFFSET_COMMIT),
        *(A.INIT_PRODUCER_ID, A.PRODUCE, A.END_TXN),
    ],
    ids=lambda api: api.name.lower(),
)
async def test_an_answer_or_a_request_is_lost(
    transactional: Kafka, tx_topic: TopicFactory, api: A, times: int, what: str
) -> None:
    servers, topic = transactional.bootstrap_servers, tx_topic()
    name, group = new_id(), new_id()
    async with asyncio.timeout(60), Interceptor(servers) as wire:
        wire.add(Rule(api, "lose" if what == "lose" else "cut", times))
        async with producer_on(wire.servers, name) as producer:
            await one(producer, topic, b"first", group, 1)
            ends = [each.request for each in wire.of(A.END_TXN)]
            assert all(end == ends[0] for end in ends)
            await one(producer, topic, b"second", group, 2)
    found = await seen_by_readers(servers, name, topic, group)
    assert found == ([b"first", b"second"], [2])


async def test_an_abort_whose_answer_is_lost(
    transactional: Kafka, tx_topic: TopicFactory
) -> None:
    servers, topic, name = transactional.bootstrap_servers, tx_topic(), new_id()
    async with (
        Interceptor(servers) as wire,
        producer_on(wire.servers, name) as producer,
    ):
        wire.lose(A.END_TXN, 2)
        tx = producer.transaction()
        await tx.begin()
        await tx.send(topic, b"aborted")
        await tx.abort()
        assert await tx.outcome is TransactionOutcome.ABORTED
        assert {each.request.committed for each in wire.of(A.END_TXN)} == {False}
        await one(producer, topic, b"next", name, 1)
    assert await seen_by_readers(servers, name, topic, name) == ([b"next"], [1])


@pytest.mark.parametrize("is_commit", [True, False], ids=["commit", "abort"])
async def test_an_answer_that_is_late(
    transactional: Kafka, tx_topic: TopicFactory, is_commit: bool
) -> None:
    servers, topic, name = transactional.bootstrap_servers, tx_topic(), new_id()
    async with (
        Interceptor(servers) as wire,
        producer_on(wire.servers, name, max_block_ms=500) as producer,
    ):
        await one(producer, topic, b"before", name, 1)
        held = wire.hold(A.END_TXN)
        held.accepts = no_probe(wire)
        tx = producer.transaction()
        await tx.begin()
        await tx.send(topic, b"late")
        with pytest.raises(OutcomeUnknown if is_commit else RequestTimeout):
            await (tx.commit() if is_commit else tx.abort())
        with pytest.raises(KafkaError, match="max_block_ms"):
            await producer.transaction().begin()
        outcome = asyncio.ensure_future(tx.outcome)
        held.release.set()
        assert await outcome is (
            TransactionOutcome.COMMITTED if is_commit else TransactionOutcome.ABORTED
        )
        await one(producer, topic, b"next", name, 2)
    values = sorted([b"before", b"next", *([b"late"] if is_commit else [])])
    assert await seen_by_readers(servers, name, topic, name) == (values, [2])
