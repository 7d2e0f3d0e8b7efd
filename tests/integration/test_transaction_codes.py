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
from kafkaio._producer.transaction import TransactionOutcome
from kafkaio.errors import (
    AuthorizationError,
    ConfigurationError,
    Fenced,
    KafkaError,
    OutcomeUnknown,
    RequestTimeout,
    TransactionAborted,
)
from kafkaio.protocol._api_keys import ApiKey as A
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import TopicPartition
from tests.integration.committed import group_offsets, ours, settled
from tests.support.interceptor import Interceptor, Rule
from tests.support.patience import HANGS

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("2.8+"),
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
FATAL = (E.INVALID_TXN_STATE, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
#: What a coordinator says of a producer that it has forgotten. The abort shows that it
#: has not, and the next transaction takes another epoch.
FORGOTTEN = (E.INVALID_PRODUCER_ID_MAPPING, E.UNKNOWN_PRODUCER_ID)


def adding(api: A, *more: E) -> list[Row]:
    """What both of the requests that add something are answered with, in TV1 only."""
    abortable = (E.OPERATION_NOT_ATTEMPTED, E.TRANSACTION_ABORTABLE, *more)
    return [
        *rows(api, (None, T.COMMITTED), *BUSY, times=2),
        *rows(api, (None, T.FENCED), *FENCING),
        *rows(api, (None, T.OVER), *FATAL, E.INVALID_REQUEST),
        *rows(api, (None, T.ABORTED), *abortable),
        *rows(api, (None, T.BUMPED), *FORGOTTEN),
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
        *(E.REQUEST_TIMED_OUT, E.CORRUPT_MESSAGE, E.UNKNOWN_TOPIC_OR_PARTITION),
        *(E.LEADER_NOT_AVAILABLE, E.KAFKA_STORAGE_ERROR),
        times=2,
    ),
    *rows(A.PRODUCE, T.COMMITTED, E.UNKNOWN_PRODUCER_ID),  # numbered from 0 again
    # The numbers of a batch that was refused are missing: TV1 needs another epoch.
    *rows(
        A.PRODUCE,
        T.BUMPED,
        *(E.INVALID_TXN_STATE, E.TRANSACTION_ABORTABLE),
        *(E.MESSAGE_TOO_LARGE, E.INVALID_RECORD, E.TOPIC_AUTHORIZATION_FAILED),
        *(E.RECORD_LIST_TOO_LARGE, E.INVALID_TIMESTAMP),
        *(E.OUT_OF_ORDER_SEQUENCE_NUMBER, E.INVALID_PRODUCER_ID_MAPPING),
    ),
    # Perhaps another producer has the id: TV1 must not ask for another epoch then.
    *rows(A.PRODUCE, (T.ABORTED, T.FENCED), E.INVALID_PRODUCER_EPOCH),
    *rows(A.PRODUCE, T.OVER, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
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
        E.INVALID_PRODUCER_ID_MAPPING,
    ),
    *rows(A.TXN_OFFSET_COMMIT, T.FENCED, E.PRODUCER_FENCED),
    *rows(
        A.TXN_OFFSET_COMMIT,
        T.OVER,
        *(*FATAL, E.UNSUPPORTED_VERSION, E.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    ),
    *rows(
        A.END_TXN,
        T.COMMITTED,
        *(*BUSY, E.REQUEST_TIMED_OUT, E.UNKNOWN_SERVER_ERROR),
        times=2,
    ),
    *rows(A.END_TXN, T.FENCED, *FENCING),
    *rows(A.END_TXN, (T.ABORTED, T.OVER), E.INVALID_TXN_STATE),
    *rows(A.END_TXN, T.OVER, *FATAL[1:], E.INVALID_REQUEST),
    *rows(A.END_TXN, T.BUMPED, *FORGOTTEN),
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
        asyncio.timeout(HANGS),
        Interceptor(servers) as wire,
        producer_on(wire.servers, name) as producer,
    ):
        await one(producer, topic, b"before", group, 1)
        is_tv2 = producer._cluster.features.level("transaction.version") >= 2
        then = row.tv2 if is_tv2 else row.tv1
        if then is None:
            assert not wire.of(row.api)
            return
        times = row.times
        if is_tv2 and row.api is A.END_TXN and row.code in FENCING:
            # It may have come before the end before was complete: it is asked again.
            times = 2
        rule = wire.refuse(row.api, row.code, times)
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


@pytest.mark.parametrize(
    ("then", "code"),
    [
        *((T.ABORTED, code) for code in (*BUSY, E.REQUEST_TIMED_OUT)),
        (T.ABORTED, E.UNKNOWN_SERVER_ERROR),
        *((T.FENCED, code) for code in FENCING),
        *((T.OVER, code) for code in (*FATAL, E.INVALID_REQUEST)),
        # There is nothing left that could be done about these.
        *((T.OVER, code) for code in (E.TRANSACTION_ABORTABLE, E.UNKNOWN_PRODUCER_ID)),
        (T.BUMPED, E.INVALID_PRODUCER_ID_MAPPING),
    ],
    ids=lambda value: value.name.lower(),
)
async def test_an_abort_is_answered(
    transactional: Kafka, tx_topic: TopicFactory, then: Then, code: E
) -> None:
    goes_on = {T.ABORTED, T.BUMPED}
    servers, topic, name = transactional.bootstrap_servers, tx_topic(), new_id()
    async with Interceptor(servers) as wire, producer_on(wire.servers, name) as first:
        wire.refuse(A.END_TXN, code, 2 if then is T.ABORTED else 1)
        tx = first.transaction()
        await tx.begin()
        await tx.send(topic, b"aborted")
        if then in goes_on:
            await tx.abort()
            await one(first, topic, b"next", name, 1)
        else:
            with pytest.raises(KafkaError) as caught:
                await tx.abort()
            assert isinstance(caught.value, Fenced) == (then is T.FENCED)
            with pytest.raises(type(caught.value)):
                await first.transaction().begin()
        assert await tx.outcome is TransactionOutcome.ABORTED
    values, at = await seen_by_readers(servers, name, topic, name)
    assert values == ([b"next"] if then in goes_on else [])
    assert at == [1 if then in goes_on else None]


@pytest.mark.parametrize(
    ("then", "code"),
    [
        *((T.BUMPED, code) for code in (*BUSY, E.REQUEST_TIMED_OUT)),
        *((T.FENCED, code) for code in FENCING),
        (T.OVER, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (T.OVER, E.CLUSTER_AUTHORIZATION_FAILED),
        (T.OVER, E.INVALID_TRANSACTION_TIMEOUT),
        (T.ABORTED, E.INVALID_PRODUCER_ID_MAPPING),  # then it asks for a new id
        *((T.OVER, code) for code in (E.UNSUPPORTED_VERSION, E.INVALID_REQUEST)),
        *((T.OVER, code) for code in (E.TRANSACTION_ABORTABLE, E.INVALID_TXN_STATE)),
    ],
    ids=lambda value: value.name.lower(),
)
async def test_a_bump_is_answered(
    transactional: Kafka, tx_topic: TopicFactory, then: Then, code: E
) -> None:
    """TV1: after an abort, the next transaction needs another epoch."""
    servers, topic = transactional.bootstrap_servers, tx_topic()
    name, group = new_id(), new_id()
    async with (
        asyncio.timeout(HANGS),
        Interceptor(servers) as wire,
        producer_on(wire.servers, name) as producer,
    ):
        await one(producer, topic, b"before", group, 1)
        wire.refuse(A.PRODUCE, E.INVALID_RECORD)
        rule = wire.refuse(A.INIT_PRODUCER_ID, code, 2 if then is T.BUMPED else 1)
        with pytest.raises(KafkaError):
            await one(producer, topic, b"aborted", group, 2)
        is_tv2 = producer._cluster.features.level("transaction.version") >= 2
        expected, at = [b"before"], 1
        if is_tv2 or then in {T.BUMPED, T.ABORTED}:
            await one(producer, topic, b"next", group, 3)
            expected, at = [*expected, b"next"], 3
            assert bumps_in(wire) == (0 if is_tv2 else 1)
        else:
            with pytest.raises(KafkaError) as caught:
                await one(producer, topic, b"next", group, 3)
            assert isinstance(caught.value, Fenced) == (then is T.FENCED)
            asked = len(wire.seen)
            with pytest.raises(type(caught.value)):
                await producer.transaction().begin()
            assert len(wire.seen) == asked
        assert is_tv2 or not rule.times
    found = await seen_by_readers(servers, name, topic, group)
    assert found == (sorted(expected), [at])


@pytest.mark.parametrize(
    ("then", "code"),
    [
        *((T.COMMITTED, code) for code in BUSY[:3]),
        (T.ABORTED, E.GROUP_AUTHORIZATION_FAILED),
    ],
    ids=lambda value: value.name.lower(),
)
async def test_the_lookup_of_a_group_is_answered(
    transactional: Kafka, tx_topic: TopicFactory, then: Then, code: E
) -> None:
    servers, topic = transactional.bootstrap_servers, tx_topic()
    name, group = new_id(), new_id()
    async with (
        asyncio.timeout(HANGS),
        Interceptor(servers) as wire,
        producer_on(wire.servers, name) as producer,
    ):
        rule = wire.refuse(A.FIND_COORDINATOR, code, 2 if then is T.COMMITTED else 1)
        rule.accepts = lambda request: request.key_type == 0
        if then is T.COMMITTED:
            await one(producer, topic, b"now", group, 1)
        else:
            with pytest.raises(AuthorizationError):
                await one(producer, topic, b"aborted", group, 1)
            await one(producer, topic, b"now", group, 1)
        assert not rule.times
    assert await seen_by_readers(servers, name, topic, group) == ([b"now"], [1])


@pytest.mark.parametrize(
    "api",
    [
        *(A.ADD_PARTITIONS_TO_TXN, A.ADD_OFFSETS_TO_TXN),
        *(A.PRODUCE, A.TXN_OFFSET_COMMIT),
    ],
    ids=lambda api: api.name.lower(),
)
async def test_a_request_that_comes_after_the_coordinators_time_out(
    transactional: Kafka, tx_topic: TopicFactory, api: A
) -> None:
    """TV2 learns by the abort that its time ran out; TV1 cannot tell it from a fence.

    `tests.integration.test_transactions` has EndTxn.
    """
    servers, topic, name = transactional.bootstrap_servers, tx_topic(2), new_id()
    place = {TopicPartition(topic, 0): 1}
    async with (
        asyncio.timeout(HANGS),
        Interceptor(servers) as wire,
        producer_on(wire.servers, name, transaction_timeout_ms=1000) as producer,
    ):
        is_tv2 = producer._cluster.features.level("transaction.version") >= 2
        if is_tv2 and api in {A.ADD_PARTITIONS_TO_TXN, A.ADD_OFFSETS_TO_TXN}:
            return
        is_write = api in {A.PRODUCE, A.ADD_PARTITIONS_TO_TXN}
        tx = producer.transaction()
        await tx.begin()
        await tx.send(topic, b"aborted", partition=0)
        held = wire.add(Rule(api, "hold-request"))
        going = asyncio.ensure_future(
            tx.send(topic, b"late", partition=1)
            if is_write
            else tx.commit_offsets(GroupMetadata(name), place)
        )
        await held.met.wait()
        await settled(servers, topic, 1)  # the coordinator has aborted it
        held.release.set()
        with pytest.raises(KafkaError):
            await going
        with pytest.raises(TransactionAborted if is_tv2 else Fenced) as caught:
            await tx.commit()
        if is_tv2:
            assert isinstance(caught.value, TransactionAborted)
            assert caught.value.reason == "timed out"
            await one(producer, topic, b"next", name, 2)
        assert await tx.outcome is TransactionOutcome.ABORTED
    async with producer_on(servers, name):
        await settled(servers, topic, 2)
    assert await ours(servers, topic, 2) == ([b"next"] if is_tv2 else [])
    assert await group_offsets(servers, name, topic) == [2 if is_tv2 else None]


@pytest.mark.parametrize(
    ("api", "code"),
    [
        *((A.FIND_COORDINATOR, code) for code in BUSY[:3]),
        *((A.INIT_PRODUCER_ID, code) for code in (*BUSY, E.REQUEST_TIMED_OUT)),
    ],
    ids=lambda value: value.name.lower(),
)
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
        (A.FIND_COORDINATOR, E.TRANSACTION_ABORTABLE, KafkaError),
        (A.FIND_COORDINATOR, E.INVALID_REQUEST, KafkaError),
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
    async with asyncio.timeout(HANGS), Interceptor(servers) as wire:
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
        # Also of the transactions whose answers are not late.
        producer_on(wire.servers, name, max_block_ms=2_000) as producer,
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
