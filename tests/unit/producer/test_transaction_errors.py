"""What each error of a broker leads to: sent again, aborted, or the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

import kafkaio
from kafkaio._consumer import Consumer
from kafkaio._producer import Producer
from kafkaio._producer.transaction import Transaction, TransactionOutcome
from kafkaio.errors import (
    AuthorizationError,
    CommitFailed,
    ConfigurationError,
    Fenced,
    KafkaError,
    KafkaTimeout,
    OutcomeUnknown,
    RequestTimeout,
    TransactionAborted,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.end_txn import EndTxnResponse
from kafkaio.testing import (
    delay,
    disconnect_after_write,
    disconnect_before_write,
    drop,
    duplicate,
    error,
)
from kafkaio.testing._broker.faults import Fault
from kafkaio.types import GroupMetadata, OffsetAndMetadata, Record, TopicPartition
from tests.unit.producer.transactional import BOTH, ID, World, until, world

E = ErrorCode
T0 = TopicPartition("t", 0)
GROUP = GroupMetadata("g")
COMMITTED, ABORTED = TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED

#: The requests of a transaction that writes a record and commits offsets, by level.
STEPS = {
    1: (
        "AddPartitionsToTxn",
        "AddOffsetsToTxn",
        "TxnOffsetCommit",
        "Produce",
        "EndTxn",
    ),
    2: ("TxnOffsetCommit", "Produce", "EndTxn"),
}
ALL_STEPS = [(level, api) for level, apis in STEPS.items() for api in apis]
AT_COORDINATOR = [(level, api) for level, api in ALL_STEPS if api != "Produce"]
AT_TRANSACTIONS = [
    (level, api) for level, api in AT_COORDINATOR if api != "TxnOffsetCommit"
]


def named(code: object) -> str:
    return code.name if isinstance(code, ErrorCode) else str(code)


async def work(producer: Producer, value: bytes = b"v", offset: int = 5) -> None:
    """A transaction with a record and an offset."""
    async with producer.transaction() as tx:
        delivery = await tx.enqueue("t", value)
        await tx.commit_offsets(GROUP, {T0: offset})
        await delivery


async def begin_anew(there: World, producer: Producer) -> None:
    """Commit a transaction, and wait so long that the next one does not probe."""
    await work(producer, b"before")
    await there.settle()
    await asyncio.sleep(0.1)


async def lives(there: World, producer: Producer, *before: bytes) -> None:
    """The producer goes on, and nothing but ``before`` was committed."""
    there.broker.faults.clear()
    await work(producer, b"next", 9)
    await there.settle()
    assert there.committed() == [*before, b"next"]
    assert there.broker.control.committed("g", T0) == 9


async def is_over(
    there: World, producer: Producer, kind: type[KafkaError]
) -> KafkaError:
    """Every call raises an error of its own, of the first cause; nothing is sent."""
    await asyncio.sleep(0.001)  # what was sent before has arrived
    before = there.asked()
    seen: list[BaseException] = []
    for _ in range(2):
        with pytest.raises(kind) as raised:
            await producer.transaction().begin()
        seen.append(raised.value)
    assert seen[0] is not seen[1]
    assert str(seen[0]) == str(seen[1])
    await producer.close()
    assert there.asked() == before
    found = seen[0]
    assert isinstance(found, KafkaError)
    return found


# ---- sent again


@pytest.mark.parametrize(
    "code",
    [
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.CONCURRENT_TRANSACTIONS,
        E.REQUEST_TIMED_OUT,
    ],
    ids=named,
)
@pytest.mark.parametrize(("level", "api"), AT_TRANSACTIONS)
async def test_coordinators_are_asked_again(
    level: int, api: str, code: ErrorCode
) -> None:
    async with world(level) as there, there.producer() as producer:
        await begin_anew(there, producer)
        looked_up = there.count(ApiKey.FIND_COORDINATOR)
        rule = there.broker.faults.on(api, error(code, times=2))
        await work(producer, b"v", 7)
        assert rule.count == 2
        has_moved = code in (E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR)
        assert (there.count(ApiKey.FIND_COORDINATOR) > looked_up) == has_moved
        await lives(there, producer, b"before", b"v")


@pytest.mark.parametrize(
    "code",
    [
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.REQUEST_TIMED_OUT,
        E.CONCURRENT_TRANSACTIONS,
    ],
    ids=named,
)
@BOTH
async def test_commits_of_offsets_are_sent_again(level: int, code: ErrorCode) -> None:
    async with world(level) as there, there.producer() as producer:
        rule = there.broker.faults.on("TxnOffsetCommit", error(code, times=2))
        await work(producer)
        assert rule.count == 2
        await lives(there, producer, b"v")


@pytest.mark.parametrize(
    "code",
    [
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.CONCURRENT_TRANSACTIONS,
    ],
    ids=named,
)
async def test_initialisation_is_asked_again(code: ErrorCode) -> None:
    async with world() as there:
        rule = there.broker.faults.on("InitProducerId", error(code, times=3))
        async with there.producer() as producer:
            assert rule.count == 3
            await lives(there, producer)


@pytest.mark.parametrize(
    "code",
    [
        E.NOT_LEADER_OR_FOLLOWER,
        E.NOT_ENOUGH_REPLICAS,
        E.CONCURRENT_TRANSACTIONS,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.REQUEST_TIMED_OUT,
    ],
    ids=named,
)
@BOTH
async def test_records_are_sent_again(level: int, code: ErrorCode) -> None:
    async with world(level) as there, there.producer() as producer:
        rule = there.broker.faults.on("Produce", error(code, times=2))
        await work(producer)
        assert rule.count == 2
        await lives(there, producer, b"v")


async def test_a_topic_that_is_new_to_the_coordinator() -> None:
    async with world(1) as there, there.producer() as producer:
        unknown = error(E.UNKNOWN_TOPIC_OR_PARTITION, times=2)
        rule = there.broker.faults.on("AddPartitionsToTxn", unknown)
        await work(producer)
        assert rule.count == 2


@pytest.mark.parametrize(
    "fault",
    [disconnect_before_write, disconnect_after_write, drop, duplicate],
    ids=lambda fault: fault.__name__,
)
@pytest.mark.parametrize(("level", "api"), ALL_STEPS)
async def test_lost_at_each_step(
    level: int, api: str, fault: Callable[..., Fault]
) -> None:
    """Requests and answers that are lost, or arrive twice: committed once."""
    async with (
        world(level) as there,
        there.producer(request_timeout_ms=500) as producer,
    ):
        await begin_anew(there, producer)
        rule = there.broker.faults.on(api, fault(times=1))
        await work(producer, b"v", 7)
        assert rule.count == 1
        await there.settle()
        assert there.broker.control.committed("g", T0) == 7
        await lives(there, producer, b"before", b"v")


@pytest.mark.parametrize("api", ["AddPartitionsToTxn", "AddOffsetsToTxn"])
async def test_a_lost_addition_may_have_been_served_though_the_next_is_refused(
    api: str,
) -> None:
    async with (
        world(1) as there,
        there.producer(request_timeout_ms=500) as producer,
    ):
        epochs = there.count(ApiKey.INIT_PRODUCER_ID)
        lost = there.broker.faults.on(api, disconnect_after_write(times=1))
        working = asyncio.create_task(work(producer))
        await until(lambda: lost.count)
        there.broker.faults.on(api, error(E.TRANSACTION_ABORTABLE, times=1))
        with pytest.raises(TransactionAborted):
            await working
        await there.settle()
        assert not there.broker.control.open_transactions()
        assert there.count(ApiKey.INIT_PRODUCER_ID) == epochs + 1
        await lives(there, producer)


# ---- aborted


@pytest.mark.parametrize(
    ("level", "api", "code"),
    [
        (1, "AddPartitionsToTxn", E.TOPIC_AUTHORIZATION_FAILED),
        (1, "AddPartitionsToTxn", E.OPERATION_NOT_ATTEMPTED),
        (1, "AddPartitionsToTxn", E.TRANSACTION_ABORTABLE),
        (1, "AddPartitionsToTxn", E.UNKNOWN_PRODUCER_ID),
        # Codes that this API does not have say nothing of what was done.
        (1, "AddPartitionsToTxn", E.UNKNOWN_SERVER_ERROR),
        (1, "AddPartitionsToTxn", E.NON_EMPTY_GROUP),
        (1, "AddOffsetsToTxn", E.UNKNOWN_SERVER_ERROR),
        (1, "AddOffsetsToTxn", E.GROUP_AUTHORIZATION_FAILED),
        (1, "AddOffsetsToTxn", E.TRANSACTION_ABORTABLE),
        (1, "AddOffsetsToTxn", E.UNKNOWN_PRODUCER_ID),
        (1, "EndTxn", E.UNKNOWN_PRODUCER_ID),
        (1, "EndTxn", E.TRANSACTION_ABORTABLE),
        (2, "EndTxn", E.UNKNOWN_PRODUCER_ID),
        (2, "EndTxn", E.TRANSACTION_ABORTABLE),
        (2, "EndTxn", E.INVALID_TXN_STATE),
        *(
            (level, "TxnOffsetCommit", code)
            for level in (1, 2)
            for code in (
                E.GROUP_AUTHORIZATION_FAILED,
                E.TOPIC_AUTHORIZATION_FAILED,
                E.ILLEGAL_GENERATION,
                E.UNKNOWN_MEMBER_ID,
                E.FENCED_INSTANCE_ID,
                E.TRANSACTION_ABORTABLE,
                E.OFFSET_METADATA_TOO_LARGE,
                E.INVALID_COMMIT_OFFSET_SIZE,
            )
        ),
        *(
            (level, "Produce", code)
            for level in (1, 2)
            for code in (
                E.INVALID_TXN_STATE,
                E.TRANSACTION_ABORTABLE,
                E.INVALID_RECORD,
                E.INVALID_TIMESTAMP,
                E.TOPIC_AUTHORIZATION_FAILED,
                E.MESSAGE_TOO_LARGE,
                E.UNKNOWN_SERVER_ERROR,
            )
        ),
        (2, "Produce", E.INVALID_PRODUCER_EPOCH),
    ],
    ids=named,
)
async def test_aborted_and_the_producer_lives(
    level: int, api: str, code: ErrorCode
) -> None:
    async with world(level) as there, there.producer() as producer:
        await begin_anew(there, producer)
        there.broker.faults.on(api, error(code, times=1))
        inits = there.count(ApiKey.INIT_PRODUCER_ID)
        tx = producer.transaction()
        with pytest.raises(KafkaError) as raised:  # noqa: PT012
            async with tx:
                delivery = await tx.enqueue("t", b"bad")
                await tx.commit_offsets(GROUP, {T0: 7})
                await delivery
        assert not isinstance(raised.value, Fenced)
        if api == "EndTxn":
            assert isinstance(raised.value, TransactionAborted)
        assert await tx.outcome is ABORTED
        await lives(there, producer, b"before")
        is_gap = api == "Produce" or code is E.UNKNOWN_PRODUCER_ID
        if level == 2:
            assert there.count(ApiKey.INIT_PRODUCER_ID) == inits
        elif is_gap and api in ("Produce", "EndTxn"):
            assert there.count(ApiKey.INIT_PRODUCER_ID) > inits


@pytest.mark.parametrize(
    ("level", "api"),
    [(1, "add_partitions_to_txn"), (1, "txn_offset_commit"), (2, "txn_offset_commit")],
)
async def test_what_an_answer_leaves_out_was_not_done(
    level: int, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle: Any = import_module(f"kafkaio.testing._handlers.{api}").handle
    serve = handle._serve

    async def leave_out(context: Any) -> Any:
        request = context.request
        is_commit = api == "txn_offset_commit"
        del (request.topics if is_commit else request.v3_and_below_topics)[-1]
        return await serve(context)

    async with world(level) as there, there.producer() as producer:
        await begin_anew(there, producer)
        monkeypatch.setattr(handle, "_serve", leave_out)
        before = there.count(ApiKey.PRODUCE)
        tx = producer.transaction()
        with pytest.raises(KafkaError):  # noqa: PT012
            async with tx:
                delivery = await tx.enqueue("t", b"bad")
                await tx.commit_offsets(GROUP, {T0: 7})
                await delivery
        assert await tx.outcome is ABORTED
        if api == "add_partitions_to_txn":
            # A leader that does not ask the coordinator would accept it.
            assert there.count(ApiKey.PRODUCE) == before
        monkeypatch.undo()
        await lives(there, producer, b"before")


@pytest.mark.parametrize(
    "code", [E.ILLEGAL_GENERATION, E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID], ids=named
)
@BOTH
async def test_a_group_that_went_on(level: int, code: ErrorCode) -> None:
    async with world(level) as there, there.producer() as producer:
        there.broker.faults.on("TxnOffsetCommit", error(code, times=1))
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"bad")
        with pytest.raises(CommitFailed):
            await tx.commit_offsets(GROUP, {T0: 1})
        assert tx.is_ending
        with pytest.raises(TransactionAborted) as raised:
            await tx.commit()
        assert isinstance(raised.value.__cause__, CommitFailed)
        await lives(there, producer)


# ---- forgotten


def forget(there: World) -> None:
    """Let the coordinator forget the transactional id, as one that was idle."""
    control: Any = there.broker.control._transactions()
    del control._coordinator.transactions[ID]


@BOTH
@pytest.mark.parametrize("first", ["record", "offsets", "both"])
async def test_an_id_that_was_idle_for_too_long_gets_another_producer_id(
    level: int, first: str
) -> None:
    async with world(level) as there, there.producer() as producer:
        await begin_anew(there, producer)
        before = producer.statistics().producer_id
        inits = there.count(ApiKey.INIT_PRODUCER_ID)
        forget(there)
        tx = producer.transaction()
        with pytest.raises(TransactionAborted, match="idle for longer than"):  # noqa: PT012
            async with tx:
                if first != "offsets":
                    await tx.enqueue("t", b"forgotten")
                if first != "record":
                    await tx.commit_offsets(GROUP, {T0: 7})
        assert await tx.outcome is ABORTED
        await lives(there, producer, b"before")
        assert there.count(ApiKey.INIT_PRODUCER_ID) == inits + 1
        assert producer.statistics().producer_id > before
        for number in range(3):
            await work(producer, b"more", 10 + number)


@BOTH
async def test_the_block_of_a_forgotten_producer_is_told_to_run_again(
    level: int,
) -> None:
    async with world(level) as there, there.producer() as producer:
        await begin_anew(there, producer)
        forget(there)
        with pytest.raises(TransactionAborted, match="idle for longer than"):
            async with producer.transaction() as tx:
                await tx.send("t", b"forgotten")
        await lives(there, producer, b"before")


@pytest.mark.parametrize(("level", "api"), ALL_STEPS)
async def test_any_step_may_find_that_the_producer_is_forgotten(
    level: int, api: str
) -> None:
    code = E.INVALID_PRODUCER_ID_MAPPING
    async with world(level) as there, there.producer() as producer:
        await begin_anew(there, producer)
        rule = there.broker.faults.on(api, error(code, times=1))
        with pytest.raises(TransactionAborted):
            await work(producer, b"refused", 7)
        assert rule.count == 1
        await lives(there, producer, b"before")


@BOTH
async def test_an_abort_may_find_that_the_producer_is_forgotten(level: int) -> None:
    code = E.INVALID_PRODUCER_ID_MAPPING
    async with world(level) as there, there.producer() as producer:
        await begin_anew(there, producer)
        there.broker.faults.on("EndTxn", error(code, times=1))
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"aborted")
        await tx.abort()
        await lives(there, producer, b"before")


async def test_a_bump_may_find_that_the_producer_is_forgotten() -> None:
    code = E.INVALID_PRODUCER_ID_MAPPING
    async with world(1) as there, there.producer() as producer:
        await begin_anew(there, producer)
        there.broker.faults.on("Produce", error(E.INVALID_RECORD, times=1))
        there.broker.faults.on("InitProducerId", error(code, times=1))
        with pytest.raises(KafkaError):
            await work(producer, b"refused", 7)
        await lives(there, producer, b"before")


@BOTH
async def test_a_forgotten_producer_leaves_its_successor_alone(level: int) -> None:
    """The successor has another producer id; its transaction goes on."""
    async with world(level) as there, there.producer() as producer:
        await begin_anew(there, producer)
        forget(there)
        async with there.producer() as successor:
            async with successor.transaction() as tx:
                await tx.send("t", b"of the successor")
                with pytest.raises(KafkaError):
                    await work(producer, b"fenced", 7)
                with pytest.raises(Fenced):  # once it has asked for another id
                    await producer.transaction().begin()
                await is_over(there, producer, Fenced)
            await there.settle()
            assert there.committed() == [b"before", b"of the successor"]


@BOTH
async def test_a_lost_commit_of_a_forgotten_producer_is_unknown(level: int) -> None:
    async with world(level) as there, there.producer() as producer:
        await begin_anew(there, producer)
        lost = there.broker.faults.on("EndTxn", disconnect_after_write(times=1))
        there.broker.faults.on("FindCoordinator", delay(0.5, times=1))
        tx = producer.transaction()
        working = asyncio.create_task(_commit(tx))
        await until(lambda: lost.count)
        there.broker.faults.on("EndTxn", error(E.INVALID_PRODUCER_ID_MAPPING))
        with pytest.raises(KafkaError):
            await working
        with pytest.raises(OutcomeUnknown):
            await tx.outcome
        await is_over(there, producer, KafkaError)


async def _commit(tx: Transaction) -> None:
    async with tx:
        await tx.send("t", b"perhaps")


# ---- over


@pytest.mark.parametrize(
    ("level", "api", "code"),
    [
        *(
            (level, api, code)
            for level, api in AT_TRANSACTIONS
            for code in (
                E.PRODUCER_FENCED,
                E.INVALID_PRODUCER_EPOCH,
                E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            )
        ),
        (1, "AddPartitionsToTxn", E.INVALID_TXN_STATE),
        (1, "AddOffsetsToTxn", E.INVALID_TXN_STATE),
        (1, "EndTxn", E.INVALID_TXN_STATE),
        # The abort is accepted, but what follows would need another epoch. To ask for
        # one could abort the transaction of another producer with the id.
        (1, "Produce", E.INVALID_PRODUCER_EPOCH),
        *(
            (level, "Produce", E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            for level in (1, 2)
        ),
        *(
            (level, "TxnOffsetCommit", code)
            for level in (1, 2)
            for code in (
                E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                E.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            )
        ),
    ],
    ids=named,
)
async def test_the_producer_is_over(level: int, api: str, code: ErrorCode) -> None:
    async with world(level) as there, there.producer() as producer:
        await begin_anew(there, producer)
        there.broker.faults.on(api, error(code))
        inits = there.count(ApiKey.INIT_PRODUCER_ID)
        tx = producer.transaction()
        with pytest.raises(KafkaError):  # noqa: PT012
            async with tx:
                delivery = await tx.enqueue("t", b"bad")
                await tx.commit_offsets(GROUP, {T0: 7})
                await delivery
        is_fenced = code in (E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH)
        found = await is_over(there, producer, Fenced if is_fenced else KafkaError)
        if is_fenced:
            assert "another producer with this transactional id" in str(found)
            assert ("transaction_timeout_ms" in str(found)) == (level == 1)
        with pytest.raises(KafkaError):
            await tx.send("t", b"more")
        # It never asks for an epoch: that would abort the transaction of another one.
        assert there.count(ApiKey.INIT_PRODUCER_ID) == inits
        assert await tx.outcome is ABORTED
        assert there.committed() == [b"before"]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (E.INVALID_TRANSACTION_TIMEOUT, ConfigurationError),
        (E.INVALID_REQUEST, KafkaError),
        (E.UNSUPPORTED_VERSION, KafkaError),
        (E.PRODUCER_FENCED, Fenced),
        (E.INVALID_PRODUCER_EPOCH, Fenced),
        (E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, AuthorizationError),
        (E.CLUSTER_AUTHORIZATION_FAILED, AuthorizationError),
        (E.TRANSACTION_ABORTABLE, KafkaError),
    ],
    ids=named,
)
async def test_initialisation_is_refused(
    code: ErrorCode, kind: type[KafkaError]
) -> None:
    async with world() as there:
        rule = there.broker.faults.on("InitProducerId", error(code))
        producer = there.producer()
        with pytest.raises(kind):
            await producer.start()
        assert rule.count == 1


@pytest.mark.parametrize("code", [E.NON_EMPTY_GROUP, E.UNKNOWN_SERVER_ERROR], ids=named)
@BOTH
async def test_a_code_of_another_api_is_one_bad_answer(
    level: int, code: ErrorCode
) -> None:
    async with world(level) as there:
        faults = there.broker.faults
        faults.on("InitProducerId", error(code, times=2))
        async with there.producer() as producer:
            faults.on("EndTxn", error(code, times=2))
            tx = producer.transaction()
            async with tx:
                await tx.send("t", b"before")
            assert await tx.outcome is TransactionOutcome.COMMITTED
            await lives(there, producer, b"before")


@BOTH
async def test_one_that_stays_ends_the_producer_which_says_so(level: int) -> None:
    async with world(level) as there, there.producer() as producer:
        there.broker.faults.on("EndTxn", error(E.NON_EMPTY_GROUP))
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"bad")
        with pytest.raises(KafkaError):
            await tx.commit()
        with pytest.raises(KafkaError, match="make another one in its place"):
            await producer.transaction().begin()


async def test_a_start_that_meets_a_foreign_code_can_be_tried_again() -> None:
    async with world() as there:
        rule = there.broker.faults.on("InitProducerId", error(E.NON_EMPTY_GROUP))
        producer = there.producer()
        with pytest.raises(KafkaError):
            await producer.start()
        assert rule.count > 1
        await producer.close()


@pytest.mark.parametrize("lie", [(-1, -1), (0, -1), (0, 7_777), (5, 9)])
async def test_an_impossible_identity_is_asked_for_again(
    lie: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = list[EndTxnResponse]()
    init = EndTxnResponse.__init__

    def lying(self: EndTxnResponse, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        if "producer_id" in options and len(told) < 2:
            told.append(self)
            self.producer_id = self.producer_id + lie[0] if lie[0] >= 0 else -1
            self.producer_epoch = lie[1]

    async with world(2) as there, there.producer() as producer:
        monkeypatch.setattr(EndTxnResponse, "__init__", lying)
        tx = producer.transaction()
        async with tx:
            await tx.send("t", b"before")
        assert await tx.outcome is TransactionOutcome.COMMITTED
        await lives(there, producer, b"before")
        assert len(told) == 2


async def test_a_timeout_that_the_brokers_do_not_allow() -> None:
    async with world(config={"transaction.max.timeout.ms": "5000"}) as there:
        producer = there.producer(transaction_timeout_ms=6_000)
        with pytest.raises(ConfigurationError, match=r"transaction\.max\.timeout\.ms"):
            await producer.start()


async def test_a_bump_that_is_refused_ends_the_producer() -> None:
    async with world(1) as there, there.producer() as producer:
        there.broker.faults.on("Produce", error(E.INVALID_RECORD, times=1))
        there.broker.faults.on("InitProducerId", error(E.PRODUCER_FENCED))
        with pytest.raises(KafkaError):
            await work(producer)
        with pytest.raises(Fenced):
            await producer.transaction().begin()
        await is_over(there, producer, Fenced)


# ---- offsets


@BOTH
async def test_offsets_of_a_group_without_members(level: int) -> None:
    async with world(level) as there, there.producer() as producer:
        async with producer.transaction() as tx:
            await tx.commit_offsets(GROUP, {T0: OffsetAndMetadata(3, "m", 0)})
            assert there.broker.control.committed("g", T0) is None
            await tx.commit_offsets(GROUP, {})
            await tx.commit_offsets(GROUP, {T0: 4})
        assert await tx.outcome is COMMITTED
        await there.settle()
        assert there.broker.control.committed("g", T0) == 4
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with producer.transaction() as tx:
                await tx.commit_offsets(GROUP, {T0: 8})
                raise ZeroDivisionError
        await there.settle()
        assert there.broker.control.committed("g", T0) == 4
    # Once per group and transaction.
    assert there.count(ApiKey.ADD_OFFSETS_TO_TXN) == (2 if level == 1 else 0)


@BOTH
async def test_the_last_commit_of_offsets_counts_though_the_first_is_retried(
    level: int,
) -> None:
    async with world(level) as there, there.producer() as producer:
        there.broker.faults.on(
            "TxnOffsetCommit", error(E.COORDINATOR_LOAD_IN_PROGRESS, times=1)
        )
        async with producer.transaction() as tx, asyncio.TaskGroup() as tasks:
            for offset in (3, 4, 5):
                tasks.create_task(tx.commit_offsets(GROUP, {T0: offset}))
        await there.settle()
        assert there.broker.control.committed("g", T0) == 5


@BOTH
async def test_a_lost_commit_of_offsets_is_not_followed_by_another(level: int) -> None:
    async with (
        world(level) as there,
        there.producer(request_timeout_ms=500) as producer,
    ):
        await begin_anew(there, producer)
        with pytest.raises(TransactionAborted) as caught:  # noqa: PT012
            async with producer.transaction() as tx:
                there.broker.faults.on("TxnOffsetCommit", drop(times=1))
                await tx.commit_offsets(GROUP, {T0: 6})
                with pytest.raises(KafkaTimeout, match="may still arrive"):
                    await tx.commit_offsets(GROUP, {T0: 7})
        assert isinstance(caught.value.__cause__, KafkaTimeout)
        await there.settle()
        await lives(there, producer, b"before")


@BOTH
async def test_a_cancelled_commit_of_offsets_dooms(level: int) -> None:
    async with world(level) as there, there.producer() as producer:
        await begin_anew(there, producer)
        count = there.count(ApiKey.TXN_OFFSET_COMMIT)
        rule = there.broker.faults.on("TxnOffsetCommit", drop())
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"bad")
        task = asyncio.create_task(tx.commit_offsets(GROUP, {T0: 7}))
        await until(lambda: there.count(ApiKey.TXN_OFFSET_COMMIT) > count)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert tx.is_ending
        there.broker.faults.remove(rule)
        with pytest.raises(TransactionAborted) as raised:
            await tx.commit()
        assert raised.value.reason == "offsets were not committed"
        await lives(there, producer, b"before")


@BOTH
async def test_a_consumer_commits_what_it_handed_out(level: int) -> None:
    async with (
        world(level) as there,
        there.producer(transactional_id=None) as plain,
        there.producer() as producer,
    ):
        for number in range(5):
            await plain.send("t", b"%d" % number)
        async with there.consumer("t", group_id="readers") as consumer:
            async with producer.transaction() as tx:
                poll = await consumer.poll(timeout=20, max_records=3)
                for record in poll.records:
                    await tx.enqueue("out", record.value)
                await tx.commit_offsets(consumer)
            await there.settle()
            position = 1 + poll.records[-1].offset
            control = there.broker.control
            assert control.committed("readers", T0) == position
            assert there.committed("out") == [r.value for r in poll.records]


async def test_brokers_that_check_no_member() -> None:
    """Before Kafka 2.5; a group without members has none to check."""
    async with world(as_version="2.1") as there, there.producer() as producer:
        async with there.producer(transactional_id=None) as plain:
            await plain.send("t", b"v")
        async with there.consumer("t", group_id="readers") as consumer:
            poll = await consumer.poll(timeout=20, max_records=1)
            assert poll.records
            async with producer.transaction() as tx:
                await tx.send("out", b"v")
                with pytest.raises(UnsupportedVersion, match=r"2\.5"):
                    await tx.commit_offsets(consumer)
            assert there.count(ApiKey.ADD_OFFSETS_TO_TXN) == 0
            assert there.count(ApiKey.TXN_OFFSET_COMMIT) == 0
            assert await tx.outcome is COMMITTED
        await work(producer)
        await there.settle()
        assert there.broker.control.committed("g", T0) == 5


@pytest.mark.parametrize("loop", ["exactly_once", "run", "by hand"])
async def test_loops_end_where_no_broker_checks_members(loop: str) -> None:
    """To run the body again would not help; what was read is handed out again."""
    async with world(as_version="2.1") as there, there.producer() as producer:
        async with there.producer(transactional_id=None) as plain:
            await plain.send("t", b"v")

        async def copy(tx: Transaction, records: list[Record]) -> None:
            for record in records:
                await tx.send("out", record.value)

        async def copy_one(tx: Transaction, record: Record) -> None:
            await copy(tx, [record])

        async def once(consumer: Consumer) -> None:
            match loop:
                case "exactly_once":
                    await kafkaio.exactly_once(consumer, producer, copy)
                case "run":
                    await consumer.run(copy_one, producer=producer)
                case _:
                    poll = await consumer.poll(timeout=20)
                    async with producer.transaction(consumer) as tx:
                        await copy(tx, poll.records)

        async with there.consumer("t", group_id="readers") as consumer:
            for _ in range(2):
                with pytest.raises(UnsupportedVersion, match=r"2\.5"):
                    await once(consumer)
        await there.settle()
        assert there.committed("out") == []
        assert there.broker.control.committed("readers", T0) is None


# ---- old brokers, levels, epochs, coordinators


@pytest.mark.parametrize("release", ["2.1", "2.8", "3.9", "4.0"])
async def test_every_release(release: str) -> None:
    async with world(as_version=release) as there, there.producer() as producer:
        for number in range(3):
            await work(producer, b"%d" % number, number)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with producer.transaction() as tx:
                await tx.send("t", b"bad")
                raise ZeroDivisionError
        there.broker.faults.on("Produce", error(E.INVALID_RECORD, times=1))
        with pytest.raises(KafkaError):
            await work(producer, b"bad")
        await lives(there, producer, b"0", b"1", b"2")


async def test_the_level_changes_while_it_runs() -> None:
    async with world(1) as there, there.producer() as producer:
        control, expected = there.broker.control, []
        for level, api in ((2, 5), (1, 4), (2, 5)):
            value = b"%d" % len(expected)
            await work(producer, value)
            expected.append(value)
            await there.settle()
            control.set_feature("transaction.version", level)
            async with producer.transaction() as tx:  # it ends as it began
                await tx.send("t", b"x")
                control.disconnect(0)  # a new connection learns of the level
                await tx.send("t", b"y")
            expected += [b"x", b"y"]
            await work(producer, b"z")
            expected.append(b"z")
            await there.settle()
            assert there.versions(ApiKey.END_TXN)[-1] == api
            versions = there.versions(ApiKey.PRODUCE)
            assert (versions[-1] >= 12) == (level == 2)
        assert there.committed() == expected


@BOTH
@pytest.mark.parametrize("epoch", [32_763, 32_764, 32_765, 32_766])
async def test_epochs_end(level: int, epoch: int) -> None:
    async with world(level) as there, there.producer() as first:
        await work(first, b"before")
        await there.settle()
        await first.close()
        there.broker.control.set_producer_epoch(ID, epoch)
        async with there.producer() as producer:
            values = [b"%d" % number for number in range(6)]
            for number, value in enumerate(values):
                await work(producer, value, number)
                if number % 2:
                    there.broker.faults.on("Produce", error(E.INVALID_RECORD, times=1))
                    with pytest.raises(KafkaError):
                        await work(producer, b"bad")
            await there.settle()
            assert there.committed() == [b"before", *values]


@pytest.mark.parametrize("lost", [False, True])
async def test_an_endtxn_whose_answer_has_another_producer_id(lost: bool) -> None:
    async with world(2) as there, there.producer() as first:
        await work(first, b"before")
        await there.settle()
        await first.close()
        there.broker.control.set_producer_epoch(ID, 32_765)
        async with there.producer() as producer:
            if lost:
                there.broker.faults.on("EndTxn", disconnect_after_write(times=1))
            await work(producer, b"1")
            await work(producer, b"2")
            await lives(there, producer, b"before", b"1", b"2")


@BOTH
@pytest.mark.parametrize("step", range(5))
@pytest.mark.parametrize("how", ["moves", "dies"])
async def test_the_coordinator_goes_at_each_step(
    level: int, step: int, how: str
) -> None:
    async with (
        world(level, nodes=3) as there,
        there.producer(request_timeout_ms=2_000) as producer,
    ):
        await begin_anew(there, producer)
        control = there.broker.control

        async def go(at: int) -> None:
            if at != step:
                return
            node = control.transaction_coordinator(ID)
            if how == "moves":
                control.move_transaction_coordinator(ID, (node + 1) % 3)
            else:
                await control.kill(node)

        await go(0)
        tx = producer.transaction()
        await tx.begin()
        await go(1)
        await tx.send("t", b"v")
        await go(2)
        await tx.commit_offsets(GROUP, {T0: 7})
        await go(3)
        committing = asyncio.create_task(tx.commit())
        await asyncio.sleep(0.0005)
        await go(4)
        await committing
        assert await tx.outcome is COMMITTED
        await lives(there, producer, b"before", b"v")


# ---- one after the other


@BOTH
async def test_markers_that_are_late(level: int) -> None:
    """CONCURRENT_TRANSACTIONS is waited for, but not for ever."""
    async with (
        world(level) as there,
        there.producer(delivery_timeout_ms=5_000, request_timeout_ms=1_000) as producer,
    ):
        there.broker.control.delay_markers(0.5)
        await work(producer, b"1")
        await work(producer, b"2")
        there.broker.control.delay_markers(60)
        await work(producer, b"3")
        with pytest.raises(KafkaError):
            async with asyncio.timeout(70):
                await work(producer, b"never")
        there.broker.control.write_markers()
        there.broker.control.delay_markers(None)
        await lives(there, producer, b"1", b"2", b"3")


@BOTH
@pytest.mark.parametrize("is_commit", [True, False])
async def test_a_coordinator_that_is_busy_for_ever(level: int, is_commit: bool) -> None:
    """As 4.3 is after transaction.version was lowered to 0 under the producer."""
    async with (
        world(level) as there,
        there.producer(max_block_ms=2_000, transaction_timeout_ms=8_000) as producer,
    ):
        there.broker.faults.on("EndTxn", error(E.CONCURRENT_TRANSACTIONS))
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"v")
        with pytest.raises(OutcomeUnknown if is_commit else RequestTimeout):
            await (tx.commit() if is_commit else tx.abort())
        if is_commit:
            with pytest.raises(OutcomeUnknown):
                await tx.outcome
        else:
            assert await tx.outcome is ABORTED
        found = await is_over(there, producer, KafkaError)
        assert "'billing': its coordinator, broker 0, has been busy" in str(found)
        assert "for 10 s" in str(found) or "for 11 s" in str(found)
        before = there.count(ApiKey.END_TXN)
        assert before < 100
        await asyncio.sleep(100)
        assert there.count(ApiKey.END_TXN) == before


async def test_a_bump_that_finds_the_coordinator_busy_for_ever() -> None:
    async with (
        world(1) as there,
        there.producer(max_block_ms=2_000, transaction_timeout_ms=8_000) as producer,
    ):
        there.broker.faults.on("Produce", error(E.INVALID_RECORD, times=1))
        there.broker.faults.on("InitProducerId", error(E.CONCURRENT_TRANSACTIONS))
        with pytest.raises(KafkaError):
            await work(producer)
        await asyncio.sleep(20)
        found = await is_over(there, producer, KafkaError)
        assert "has been busy" in str(found)


async def test_the_next_transaction_asks_whether_markers_are_written() -> None:
    async with world(2) as there, there.producer() as producer:
        await work(producer, b"1")
        await work(producer, b"2")  # right after it
        probed = there.count(ApiKey.END_TXN)
        assert probed > 2
        assert there.count(ApiKey.PRODUCE) == 2
        await asyncio.sleep(1)
        await work(producer, b"3")  # long after it
        assert there.count(ApiKey.END_TXN) == probed + 1
        there.broker.faults.on("EndTxn", disconnect_before_write(times=1))
        await work(producer, b"4")
        await lives(there, producer, b"1", b"2", b"3", b"4")


@BOTH
async def test_eight_looks_for_markers_follow_one_another(level: int) -> None:
    """Then they are paced: probes each millisecond, requests to add less and less."""
    api = ApiKey.END_TXN if level == 2 else ApiKey.ADD_PARTITIONS_TO_TXN
    async with world(level) as there, there.producer() as producer:
        await work(producer, b"1")
        there.broker.control.write_markers()
        there.broker.control.delay_markers(60)
        await work(producer, b"2")  # its markers are not written
        ended = there.count(api)
        async with producer.transaction() as tx:
            record = asyncio.create_task(tx.send("t", b"3"))
            await asyncio.sleep(0.000_9)
            assert there.count(api) - ended in {8, 9}
            await asyncio.sleep(0.02)
            paced = there.count(api) - ended - 8
            assert paced in {18, 19, 20} if level == 2 else paced in {4, 5, 6}
            assert not record.done()
            there.broker.control.write_markers()
            there.broker.control.delay_markers(None)
            await record
        await lives(there, producer, b"1", b"2", b"3")


@pytest.mark.parametrize("request_timeout", [1_000, 5_000, 30_000])
async def test_a_coordinator_that_never_adds_a_partition(request_timeout: int) -> None:
    """It is asked for ``transaction_timeout_ms``, however often that is."""
    options = {"request_timeout_ms": request_timeout, "transaction_timeout_ms": 8_000}
    async with world(1) as there, there.producer(**options) as producer:
        there.broker.faults.on("AddPartitionsToTxn", drop())
        loop = asyncio.get_running_loop()
        began = loop.time()
        # The coordinator's own time-out comes at the same moment, and may be first.
        with pytest.raises((TransactionAborted, Fenced)):
            await work(producer, b"never")
        assert 6 < loop.time() - began < 12


async def test_a_coordinator_that_does_not_answer_the_probe_holds_no_record_up() -> (
    None
):
    """Nor an abort. Another broker leads the partition."""
    async with world(2, nodes=2, topics={"t": 2}) as there:
        coordinator = there.broker.control.transaction_coordinator(ID)
        led = there.broker.topics["t"].partitions
        partition = next(n for n, p in enumerate(led) if p.leader != coordinator)
        async with there.producer() as producer:
            await work(producer, b"1")
            rule = there.broker.faults.on("EndTxn", drop())
            async with asyncio.timeout(1):
                tx = producer.transaction()
                await tx.begin()
                await tx.send("t", b"2", partition=partition)
            there.broker.faults.remove(rule)
            await tx.abort()
            await lives(there, producer, b"1")


@BOTH
async def test_no_endtxn_while_a_batch_is_on_the_wire(level: int) -> None:
    async with world(level, topics={"t": 1, "u": 3}) as there:
        order: list[str] = []
        async with there.producer(request_timeout_ms=500) as producer:
            there.broker.faults.on("Produce", drop(times=1))
            there.broker.faults.on(
                "Produce", error(E.NOT_ENOUGH_REPLICAS, rate=0.3, seed=4)
            )
            for number in range(10):
                async with producer.transaction() as tx:
                    for part in range(3):
                        await tx.enqueue("u", b"%d" % number, partition=part)
                order.append("ended")
                assert producer._accumulator.backlog.is_empty
            await there.settle()
            assert not there.broker.control.open_transactions()
        expected = [b"%d" % number for number in range(10)]
        assert there.committed("u") == expected * 3


async def test_a_vendor_that_answers_endtxn_with_minus_one() -> None:
    """The outcome stays unknown until the same EndTxn is answered."""
    async with world(2) as there, there.producer(max_block_ms=2_000) as producer:
        rule = there.broker.faults.on("EndTxn", error(E.UNKNOWN_SERVER_ERROR))
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"v")
        with pytest.raises(OutcomeUnknown):
            await tx.commit()
        there.broker.faults.remove(rule)
        assert await tx.outcome is COMMITTED
        await lives(there, producer, b"v")


# ---- what may still arrive


async def given_up(there: World, producer: Producer) -> Transaction:
    """A transaction of which two writes were never answered; the next epoch is due."""
    there.broker.faults.on("InitProducerId", delay(0.5, times=1))
    rule = there.broker.faults.on("Produce", disconnect_before_write())
    tx = producer.transaction()
    with pytest.raises(TransactionAborted):  # noqa: PT012
        async with tx:
            for partition in range(2):
                await tx.enqueue("u", b"given up", partition=partition)
            await tx.commit_offsets(GROUP, {T0: 7})
    there.broker.faults.remove(rule)
    return tx


IMPATIENT = {"delivery_timeout_ms": 3_000, "request_timeout_ms": 500}
#: The new epoch, and what tells it to the logs.
SEAL = [
    "INIT_PRODUCER_ID",
    "ADD_PARTITIONS_TO_TXN",
    "ADD_OFFSETS_TO_TXN",
    "END_TXN",
]


@BOTH
async def test_what_was_given_up_is_kept_out_of_every_log(level: int) -> None:
    """Several batches expire at once, while the transaction is being committed."""
    async with (
        world(level, topics={"t": 1, "u": 2}) as there,
        there.producer(**IMPATIENT) as producer,
    ):
        tx = await given_up(there, producer)
        assert await tx.outcome is ABORTED
        await producer.transaction().begin()
        after = there.asked()[there.asked().index("END_TXN") + 1 :]
        # The epoch is asked for again while markers are written.
        assert after[-len(SEAL) :] == (SEAL if level == 1 else [])
        assert not there.broken
    assert not there.committed("u")


@pytest.mark.parametrize("is_closed", [True, False])
async def test_nothing_that_comes_late_is_taken(is_closed: bool) -> None:
    """By a broker that verifies nothing, as before 3.6."""
    options = {"as_version": "2.8", "topics": {"t": 1, "u": 2}}
    async with world(1, **options) as there, there.producer(**IMPATIENT) as producer:
        await work(producer, b"1")
        await given_up(there, producer)
        if is_closed:
            await producer.close()
        else:
            await producer.transaction().begin()
        assert there.asked()[-len(SEAL) :] == SEAL
        assert not there.broken


@pytest.mark.parametrize(
    ("api", "code", "seal"),
    [
        ("AddPartitionsToTxn", E.UNKNOWN_TOPIC_OR_PARTITION, SEAL),
        ("AddPartitionsToTxn", E.TOPIC_AUTHORIZATION_FAILED, SEAL),
        ("AddPartitionsToTxn", E.OPERATION_NOT_ATTEMPTED, SEAL),
        ("AddOffsetsToTxn", E.GROUP_AUTHORIZATION_FAILED, SEAL),
        ("AddPartitionsToTxn", E.NOT_COORDINATOR, [*SEAL[:2], *SEAL[1:]]),
        ("EndTxn", E.CONCURRENT_TRANSACTIONS, [*SEAL, SEAL[-1]]),
    ],
    ids=named,
)
async def test_a_seal_that_is_refused_in_part(
    api: str, code: ErrorCode, seal: list[str]
) -> None:
    async with (
        world(1, topics={"t": 1, "u": 2}) as there,
        there.producer(**IMPATIENT) as producer,
    ):
        await given_up(there, producer)
        there.broker.faults.on(api, error(code, times=1))
        await producer.transaction().begin()
        assert there.asked()[-len(seal) :] == seal


@pytest.mark.parametrize("api", ["AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"])
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (E.PRODUCER_FENCED, Fenced),
        (E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, KafkaError),
    ],
    ids=named,
)
async def test_a_seal_that_is_refused_for_good(
    api: str, code: ErrorCode, kind: type[KafkaError]
) -> None:
    async with (
        world(1, topics={"t": 1, "u": 2}) as there,
        there.producer(**IMPATIENT) as producer,
    ):
        tx = await given_up(there, producer)
        there.broker.faults.on(api, error(code, times=1))
        with pytest.raises(kind):
            await producer.transaction().begin()
        await is_over(there, producer, kind)
        assert await tx.outcome is ABORTED


@pytest.mark.parametrize("what", [disconnect_before_write, disconnect_after_write])
@pytest.mark.parametrize("api", ["AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"])
async def test_a_seal_without_an_answer_takes_another_epoch(
    api: str, what: Callable[..., Fault]
) -> None:
    async with (
        world(1, topics={"t": 1, "u": 2}) as there,
        there.producer(**IMPATIENT) as producer,
    ):
        await given_up(there, producer)
        there.broker.faults.on(api, what(times=1))
        await producer.transaction().begin()
        assert there.asked()[-1] == "INIT_PRODUCER_ID"
        assert not there.broken


async def test_offsets_that_may_come_twice_are_kept_out_after_a_commit() -> None:
    async with world(1) as there, there.producer(**IMPATIENT) as producer:
        there.broker.faults.on("TxnOffsetCommit", disconnect_before_write(times=1))
        async with producer.transaction() as tx:
            await tx.send("t", b"v")
            await tx.commit_offsets(GROUP, {T0: 7})
        assert await tx.outcome is COMMITTED
        await producer.transaction().begin()
        assert there.asked()[-len(SEAL) :] == SEAL
        await there.settle()
        assert there.committed() == [b"v"]
        assert there.broker.control.committed("g", ("t", 0)) == 7
