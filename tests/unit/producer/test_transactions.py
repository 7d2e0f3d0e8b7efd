"""Transactions begun, committed, aborted, in turns: on an embedded broker."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import weakref

import pyarrow as pa
import pytest

from kafkaio._producer import Producer
from kafkaio._producer.bulk import DeliveriesFailed
from kafkaio._producer.transaction import Transaction, TransactionOutcome
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BrokerError,
    BufferFull,
    ClosedError,
    DeliveryTimeout,
    Fenced,
    KafkaError,
    KafkaTimeout,
    OutcomeUnknown,
    RecordTooLarge,
    RequestTimeout,
    TransactionAborted,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import delay, drop, error
from kafkaio.testing._broker.versions import NEWEST
from kafkaio.types import GroupMetadata, TopicPartition
from tests.unit.producer.transactional import BOTH, ID, until, world

COMMITTED, ABORTED = TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED


async def commit_one(producer: Producer, value: bytes = b"next") -> None:
    async with producer.transaction() as tx:
        await tx.send("t", value)


# ---- the steps


@BOTH
async def test_a_transaction_costs_a_round_trip_for_each_request(level: int) -> None:
    async with world(level) as there, there.producer() as producer:
        await commit_one(producer, b"first")
        await there.settle()
        await asyncio.sleep(1)  # its markers are written long ago: nothing is probed
        before = len(there.asked())
        await commit_one(producer)
        added = ["ADD_PARTITIONS_TO_TXN"] if level == 1 else []
        assert there.asked()[before:] == [*added, "PRODUCE", "END_TXN"]


@BOTH
async def test_a_transaction_by_block(level: int) -> None:
    async with world(level) as there, there.producer() as producer:
        async with producer.transaction() as tx:
            place = await tx.send("t", b"one", key=b"k", headers=[("h", b"1")])
            await tx.enqueue("t", b"two", partition=0)
            tx.enqueue_nowait("t", b"three")
            await tx.send_many("t", [b"four", b"five"])
            assert repr(tx) == f"<Transaction of '{ID}' open>"
        assert place.offset == 0
        assert await tx.outcome is COMMITTED
        assert repr(tx) == f"<Transaction of '{ID}' committed>"
        await there.settle()
        values = [b"one", b"two", b"three", b"four", b"five"]
        assert there.log() == [("commit", values)]


@BOTH
async def test_a_transaction_by_hand(level: int) -> None:
    async with world(level) as there, there.producer() as producer:
        for verdict in ("commit", "abort"):
            tx = producer.transaction()
            assert "not begun" in repr(tx)
            await tx.begin()
            await tx.send("t", verdict.encode())
            await getattr(tx, verdict)()
            await there.settle()
        assert there.log() == [("commit", [b"commit"]), ("abort", [b"abort"])]
        assert await tx.outcome is ABORTED


@BOTH
async def test_an_end_inside_of_the_block_is_the_end(level: int) -> None:
    async with world(level) as there, there.producer() as producer:
        async with producer.transaction() as tx:
            await tx.send("t", b"one")
            await tx.abort()
            with pytest.raises(UsageError):
                await tx.commit()
            with pytest.raises(UsageError):
                await tx.abort()
        async with producer.transaction() as tx:
            await tx.send("t", b"two")
            await tx.commit()
        await there.settle()
        assert there.log() == [("abort", [b"one"]), ("commit", [b"two"])]


@BOTH
async def test_a_transaction_without_records_costs_no_request(level: int) -> None:
    async with world(level) as there, there.producer() as producer:
        before = len(there.broker.requests)
        async with producer.transaction() as tx:
            pass
        assert await tx.outcome is COMMITTED
        with pytest.raises(ZeroDivisionError):
            async with producer.transaction() as tx:
                raise ZeroDivisionError
        assert await tx.outcome is ABORTED
        other = producer.transaction()
        await other.begin()
        await other.abort()
        await asyncio.sleep(5)
        names = [one.api.name for one in list(there.broker.requests)[before:]]
        assert set(names) <= {"METADATA"}
    assert there.asked() == ["INIT_PRODUCER_ID"]


async def test_what_goes_over_the_wire() -> None:
    async with world(1) as there, there.producer() as producer:
        for _ in range(2):
            await commit_one(producer)
            await there.settle()
    one = ["ADD_PARTITIONS_TO_TXN", "PRODUCE", "END_TXN"]
    assert there.asked() == ["INIT_PRODUCER_ID", *one, *one]
    assert max(there.versions(ApiKey.PRODUCE)) == 11
    assert max(there.versions(ApiKey.END_TXN)) == 4
    async with world(2) as there, there.producer() as producer:
        for _ in range(2):
            await commit_one(producer)
            await asyncio.sleep(1)
    assert there.asked() == ["INIT_PRODUCER_ID", *["PRODUCE", "END_TXN"] * 2]
    assert min(there.versions(ApiKey.PRODUCE)) >= 12
    assert min(there.versions(ApiKey.END_TXN)) == 5


@BOTH
async def test_the_exception_of_the_body_is_raised_unchanged(level: int) -> None:
    async with world(level) as there, there.producer() as producer:
        mine = ValueError("mine")
        with pytest.raises(ValueError, match="mine") as raised:  # noqa: PT012
            async with producer.transaction() as tx:
                await tx.send("t", b"one")
                raise mine
        assert raised.value is mine
        assert not hasattr(mine, "__notes__")
        await commit_one(producer)
        await there.settle()
        assert there.log() == [("abort", [b"one"]), ("commit", [b"next"])]


@BOTH
async def test_a_note_says_that_the_abort_failed(level: int) -> None:
    async with (
        world(level) as there,
        there.producer(max_block_ms=500, request_timeout_ms=200) as producer,
    ):
        mine = ValueError("mine")
        rule = there.broker.faults.on("EndTxn", error(ErrorCode.NOT_COORDINATOR))
        with pytest.raises(ValueError, match="mine"):  # noqa: PT012
            async with producer.transaction() as tx:
                await tx.send("t", b"one")
                raise mine
        assert "was not acknowledged within max_block_ms=500" in mine.__notes__[0]
        with pytest.raises(KafkaTimeout):  # the next call tells
            await producer.transaction().begin()
        there.broker.faults.remove(rule)
        assert await tx.outcome is ABORTED
        await commit_one(producer)
        await there.settle()
        assert there.committed() == [b"next"]


async def test_arrow_tables_and_serializers() -> None:
    options = {"value_serializer": lambda value: f"<{value}>".encode()}
    async with world() as there:
        async with there.producer() as producer, producer.transaction() as tx:
            table = pa.table({"value": [b"one", b"two"]})
            written = await tx.send_table("t", table)
            rows = {"value": [b"a", b"b"], "to": ["t", "t"], "p": [0, None]}
            columns = {"topic_column": "to", "partition_column": "p"}
            nobody = await tx.enqueue_table(None, pa.table(rows), **columns)
            awaited = await tx.enqueue_table("t", table)
            assert (await awaited)["offset"].to_pylist() == [4, 5]
        assert nobody.is_done
        assert written.column("offset").to_pylist() == [0, 1]
        async with there.producer(**options) as producer:
            async with producer.transaction() as tx:
                await tx.send("t", 3)
                await tx.enqueue("t", 4)
                tx.enqueue_nowait("t", 5)
                await tx.send_many("t", [6])
            with pytest.raises(UsageError):
                tx.enqueue_nowait("t", 7)
        await there.settle()
        one = [b"one", b"two", b"a", b"b", b"one", b"two"]
        assert there.committed() == [*one, b"<3>", b"<4>", b"<5>", b"<6>"]


# ---- outside of a transaction


@BOTH
async def test_nothing_slips_in_from_outside(level: int) -> None:
    async with world(level) as there, there.producer() as producer:
        table = pa.table({"value": [b"stranger"]})

        async def refused() -> None:
            for call in (
                lambda: producer.send("t", b"stranger"),
                lambda: producer.enqueue("t", b"stranger"),
                lambda: producer.send_many("t", [b"stranger"]),
                lambda: producer.send_table("t", table),
                lambda: producer.enqueue_table("t", table),
            ):
                with pytest.raises(UsageError, match="transaction"):
                    await call()
            with pytest.raises(UsageError, match="transaction"):
                producer.enqueue_nowait("t", b"stranger")

        await refused()
        async with producer.transaction() as tx:
            await tx.send("t", b"first")
            for number in range(20):
                # Open batches take records past every other check.
                tx.enqueue_nowait("t", b"%d" % number)
                await tx.enqueue("t", b"%d" % number)
                await refused()
        await refused()
        for call in (tx.send, tx.enqueue):
            with pytest.raises(UsageError, match="has ended"):
                await call("t", b"late")
        with pytest.raises(UsageError, match="has ended"):
            tx.enqueue_nowait("t", b"late")
        with pytest.raises(UsageError, match="has ended"):
            await tx.send_many("t", [b"late"])
        with pytest.raises(UsageError, match="has ended"):
            await tx.send_table("t", table)
        with pytest.raises(UsageError, match="has ended"):
            await tx.enqueue_table("t", table)
        await commit_one(producer)
        await there.settle()
        assert len(there.committed()) == 42
        assert not {b"stranger", b"late"} & set(there.committed())


async def test_a_handle_of_the_transaction_before_takes_nothing_for_the_next() -> None:
    async with world() as there, there.producer() as producer:
        async with producer.transaction() as before:
            await before.send("t", b"one")
        take = before.enqueue_nowait
        async with producer.transaction() as tx:
            for _ in range(5):
                tx.enqueue_nowait("t", b"two")
                with pytest.raises(UsageError):
                    take("t", b"late")
                with pytest.raises(UsageError):
                    await before.send("t", b"late")
                with pytest.raises(UsageError):
                    await before.enqueue("t", b"late")
        await there.settle()
        assert there.committed() == [b"one", *[b"two"] * 5]


async def test_transactions_need_an_id() -> None:
    async with world() as there, there.producer(transactional_id=None) as producer:
        with pytest.raises(UsageError, match="transactional_id"):
            producer.transaction()
    assert await there.producer(transactional_id=None).close() is None


async def test_wrong_arguments() -> None:
    async with world() as there, there.producer() as producer:
        with pytest.raises(ArgumentTypeError, match=r"kafkaio\.Consumer"):
            producer.transaction(object())  # type: ignore[arg-type]
        tx = producer.transaction()
        for call in (tx.commit, tx.abort):
            with pytest.raises(UsageError, match="not begun"):
                await call()
        with pytest.raises(UsageError, match="not begun"):
            await tx.outcome
        with pytest.raises(UsageError, match="not begun"):
            await tx.send("t", b"v")
        async with tx:
            with pytest.raises(ArgumentTypeError):
                await tx.send("t", 3)
            with pytest.raises(ArgumentValueError):
                await tx.send("t", b"v", partition=-1)
        with pytest.raises(UsageError, match="begins once"):
            await tx.begin()
    with pytest.raises(ClosedError):
        await producer.transaction().begin()
    with pytest.raises(ClosedError):
        await tx.send("t", b"v")
    with pytest.raises(ClosedError):
        await there.producer().transaction().begin()


# ---- one failed record


@BOTH
@pytest.mark.parametrize("how", ["awaited", "caught", "ignored"])
async def test_one_refused_record_aborts_it_all(level: int, how: str) -> None:
    async with world(level) as there, there.producer() as producer:
        await commit_one(producer, b"before")
        await there.settle()
        refuse = error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, times=1)
        with pytest.raises(KafkaError) as raised:  # noqa: PT012
            async with producer.transaction() as tx:
                await tx.send("t", b"good")
                there.broker.faults.on("Produce", refuse)
                if how == "awaited":
                    await tx.send("t", b"bad")
                elif how == "caught":
                    with pytest.raises(BrokerError):
                        await tx.send("t", b"bad")
                else:
                    delivery = tx.enqueue_nowait("t", b"bad")
        if how == "awaited":
            assert isinstance(raised.value, BrokerError)
        else:
            assert isinstance(raised.value, TransactionAborted)
            assert raised.value.reason == "a record failed"
            assert isinstance(raised.value.__cause__, BrokerError)
            assert raised.value.retriable
        if how == "ignored":
            with pytest.raises(BrokerError):
                await delivery
        assert await tx.outcome is ABORTED
        await commit_one(producer)
        await there.settle()
        assert there.committed() == [b"before", b"next"]
    # The gap in the numbers needs another epoch: in the newer protocol each end has it.
    assert (there.count(ApiKey.INIT_PRODUCER_ID) > 1) == (level == 1)


@BOTH
async def test_a_record_too_large_for_the_broker_aborts(level: int) -> None:
    async with (
        world(level, config={"message.max.bytes": "2000"}) as there,
        there.producer() as producer,
    ):
        with pytest.raises(TransactionAborted) as raised:  # noqa: PT012
            async with producer.transaction() as tx:
                await tx.send("t", b"good")
                tx.enqueue_nowait("t", b"x" * 5000)
        assert isinstance(raised.value.__cause__, RecordTooLarge)
        await commit_one(producer)
        await there.settle()
        assert there.committed() == [b"next"]


@BOTH
async def test_a_record_that_was_never_taken_in_harms_nothing(level: int) -> None:
    async with world(level) as there, there.producer() as producer:
        async with producer.transaction() as tx:
            with pytest.raises(RecordTooLarge):
                await tx.send("t", b"x" * 2_000_000)
            await tx.send("t", b"good")
        await there.settle()
        assert there.committed() == [b"good"]


@BOTH
async def test_an_unknown_topic_aborts(level: int) -> None:
    async with (
        world(level, auto_create_topics=False) as there,
        there.producer(max_block_ms=500) as producer,
    ):
        with pytest.raises(TransactionAborted) as raised:  # noqa: PT012
            async with producer.transaction() as tx:
                await tx.send("t", b"good")
                tx.enqueue_nowait("nowhere", b"bad")
        assert isinstance(raised.value.__cause__, KafkaError)
        await commit_one(producer)
        await there.settle()
        assert there.committed() == [b"next"]


@BOTH
@pytest.mark.parametrize("was_sent", [False, True])
async def test_an_expired_record_aborts(level: int, was_sent: bool) -> None:
    async with (
        world(level) as there,
        there.producer(delivery_timeout_ms=1_000, request_timeout_ms=400) as producer,
    ):
        await commit_one(producer, b"before")
        await there.settle()
        rule = there.broker.faults.on(
            "Produce", drop() if was_sent else error(ErrorCode.NOT_ENOUGH_REPLICAS)
        )
        with pytest.raises(TransactionAborted) as raised:  # noqa: PT012
            async with producer.transaction() as tx:
                tx.enqueue_nowait("t", b"late")
                await asyncio.sleep(2)
                there.broker.faults.remove(rule)
                assert tx.is_ending
        assert isinstance(raised.value.__cause__, DeliveryTimeout)
        await commit_one(producer)
        await there.settle()
        assert there.committed() == [b"before", b"next"]


@BOTH
async def test_a_batch_given_up_between_attempts_leaves_no_gap_behind(
    level: int,
) -> None:
    """The body raises while a batch that has a number waits to be sent again."""
    async with world(level) as there, there.producer() as producer:
        await commit_one(producer, b"before")
        await there.settle()
        rule = there.broker.faults.on(
            "Produce", error(ErrorCode.NOT_ENOUGH_REPLICAS, times=1)
        )
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with producer.transaction() as tx:
                tx.enqueue_nowait("t", b"dropped")
                await until(lambda: rule.count)
                raise ZeroDivisionError
        there.broker.faults.clear()
        await commit_one(producer)
        await commit_one(producer, b"third")
        await there.settle()
        assert there.committed() == [b"before", b"next", b"third"]


@BOTH
async def test_an_abort_sends_nothing_again_that_was_refused(level: int) -> None:
    async with world(level) as there, there.producer() as producer:
        await commit_one(producer, b"before")
        await there.settle()
        there.broker.faults.on("Produce", delay(0.5, times=1))
        rule = there.broker.faults.on("Produce", error(ErrorCode.NOT_ENOUGH_REPLICAS))
        tx = producer.transaction()
        await tx.begin()
        delivery = tx.enqueue_nowait("t", b"refused")
        await until(lambda: there.count(ApiKey.PRODUCE) == 2)
        async with asyncio.timeout(2):
            await tx.abort()
        with pytest.raises(TransactionAborted):
            await delivery
        there.broker.faults.remove(rule)
        await commit_one(producer)
        await there.settle()
        assert there.committed() == [b"before", b"next"]


@BOTH
async def test_a_doomed_transaction_takes_nothing_more(level: int) -> None:
    async with world(level) as there, there.producer() as producer:
        there.broker.faults.on("Produce", error(ErrorCode.INVALID_RECORD, times=1))
        async with asyncio.timeout(50):
            tx = producer.transaction()
            await tx.begin()
            with pytest.raises(BrokerError):
                await tx.send("t", b"bad")
            assert tx.is_ending
            for call in (tx.send, tx.enqueue):
                with pytest.raises(TransactionAborted, match="a record failed"):
                    await call("t", b"more")
            with pytest.raises(TransactionAborted):
                tx.enqueue_nowait("t", b"more")
            with pytest.raises(TransactionAborted):
                await tx.send_many("t", [b"more"])
            with pytest.raises(TransactionAborted):
                await tx.commit()
        await commit_one(producer)
        await there.settle()
        assert there.committed() == [b"next"]


@BOTH
async def test_a_block_tells_that_the_producer_ended_meanwhile(level: int) -> None:
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    async with world(level) as there, there.producer() as producer:
        there.broker.faults.on("Produce", error(code, times=1))

        async def block() -> None:
            async with producer.transaction() as tx:
                await tx.enqueue("t", b"lost")
                await until(lambda: tx.is_ending)

        with pytest.raises(BrokerError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
            await block()
        with pytest.raises(BrokerError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
            await producer.transaction().begin()


@BOTH
async def test_a_block_tells_that_the_producer_was_closed_meanwhile(
    level: int,
) -> None:
    async with world(level) as there:
        producer = there.producer()
        await producer.start()

        async def block() -> None:
            async with producer.transaction() as tx:
                await tx.send("t", b"aborted")
                await producer.close()

        with pytest.raises(ClosedError):
            await block()


@BOTH
async def test_an_end_that_was_refused_is_not_sent_again(level: int) -> None:
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    async with world(level) as there, there.producer() as producer:
        there.broker.faults.on("EndTxn", error(code, times=1))
        with pytest.raises(BrokerError, match="is over: close it, and make another"):
            await commit_one(producer)
        with pytest.raises(BrokerError, match="is over: close it, and make another"):
            await producer.transaction().begin()
        assert there.count(ApiKey.END_TXN) == 1


async def test_a_forgotten_producer_takes_another_epoch() -> None:
    async with world(1) as there, there.producer() as producer:
        await commit_one(producer, b"before")
        code = ErrorCode.UNKNOWN_PRODUCER_ID
        there.broker.faults.on("AddPartitionsToTxn", error(code, times=1))
        with pytest.raises(TransactionAborted):
            await commit_one(producer, b"refused")
        await commit_one(producer)
        assert there.count(ApiKey.INIT_PRODUCER_ID) >= 2


@BOTH
async def test_offsets_refused_for_their_epoch_are_no_fence(level: int) -> None:
    at = {TopicPartition("t", 0): 1}
    async with world(level) as there, there.producer() as producer:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
        there.broker.faults.on("TxnOffsetCommit", error(code, times=1))
        tx = producer.transaction()
        await tx.begin()
        with pytest.raises(TransactionAborted):
            await tx.commit_offsets(GroupMetadata("g"), at)
        await tx.abort()
        await commit_one(producer)


@BOTH
async def test_what_was_not_sent_fails_with_the_abort(level: int) -> None:
    async with world(level) as there, there.producer(linger_ms=10_000) as producer:
        there.broker.faults.on("Produce", delay(0.5, times=1))
        tx = producer.transaction()
        await tx.begin()
        first = tx.enqueue_nowait("t", b"sent")
        await until(lambda: there.count(ApiKey.PRODUCE))
        second = tx.enqueue_nowait("t", b"not sent")
        await tx.abort()
        assert (await first).offset == 0
        with pytest.raises(TransactionAborted, match="by the user"):
            await second
        await there.settle()
        assert there.log() == [("abort", [b"sent"])]


async def test_send_many_in_a_transaction_tells_what_failed() -> None:
    async with world() as there, there.producer() as producer:
        there.broker.faults.on("Produce", error(ErrorCode.INVALID_RECORD, times=1))
        with pytest.raises(DeliveriesFailed):
            async with producer.transaction() as tx:
                await tx.send_many("t", [b"one", b"two"])
        assert await tx.outcome is ABORTED


# ---- nested, in turns, several tasks


async def test_transactions_are_not_nested() -> None:
    async with (
        world() as there,
        there.producer() as producer,
        there.producer(transactional_id="other") as other,
    ):
        async with producer.transaction() as tx:
            with pytest.raises(UsageError, match="nested"):
                await producer.transaction().begin()

            async def child() -> None:
                async with producer.transaction():
                    raise AssertionError

            with pytest.raises(UsageError, match="nested"):
                await asyncio.create_task(child())
            await tx.send("t", b"one")
            async with other.transaction() as second:  # of another producer
                await second.send("t", b"two")
        await commit_one(producer)
        await there.settle()
        assert sorted(there.committed(), key=str) == [b"next", b"one", b"two"]


async def test_nested_although_another_producer_comes_between() -> None:
    async with (
        world() as there,
        there.producer() as producer,
        there.producer(transactional_id="other") as other,
        asyncio.timeout(10),
    ):
        async with producer.transaction():
            for _ in range(2):
                async with other.transaction():
                    with pytest.raises(UsageError, match="nested"):
                        await producer.transaction().begin()
                with pytest.raises(UsageError, match="nested"):
                    await producer.transaction().begin()
        async with other.transaction(), producer.transaction() as inner:
            pass
        assert await inner.outcome is COMMITTED


async def test_transactions_before_are_not_kept() -> None:
    async with (
        world() as there,
        there.producer() as producer,
        there.producer(transactional_id="other") as other,
        producer.transaction(),
    ):
        made: list[weakref.ref[Transaction]] = []
        for _ in range(5):
            async with other.transaction() as tx:
                made.append(weakref.ref(tx))
        del tx
        gc.collect()
        # The last one is the current one of this task.
        assert [ref() is None for ref in made] == [True] * 4 + [False]


@BOTH
async def test_tasks_take_turns_in_order(level: int) -> None:
    async with world(level) as there, there.producer() as producer:
        open_now: list[int] = []
        order: list[int] = []

        async def one(number: int) -> None:
            async with producer.transaction() as tx:
                assert not open_now
                open_now.append(number)
                order.append(number)
                for _ in range(3):
                    await tx.send("t", b"%d" % number)
                open_now.clear()
                if number % 3 == 1:
                    raise ZeroDivisionError

        tasks = [asyncio.create_task(one(number)) for number in range(7)]
        await asyncio.sleep(0)
        tasks[3].cancel()  # while it waits
        await asyncio.gather(*tasks, return_exceptions=True)
        assert order == [0, 1, 2, 4, 5, 6]
        await there.settle()
        assert there.committed() == [
            b"%d" % number for number in (0, 2, 5, 6) for _ in range(3)
        ]


async def test_several_tasks_send_in_one_transaction() -> None:
    async with world() as there, there.producer() as producer:
        async with producer.transaction() as tx, asyncio.TaskGroup() as group:
            for number in range(10):
                group.create_task(tx.send("t", b"%d" % number))
        await there.settle()
        assert sorted(there.committed()) == [b"%d" % number for number in range(10)]


async def test_a_task_that_comes_late_is_refused() -> None:
    async with world() as there, there.producer() as producer:
        ended = asyncio.Event()

        async def late(tx: Transaction) -> None:
            await ended.wait()
            with pytest.raises(UsageError, match="end of its block"):
                await tx.send("t", b"late")

        async with producer.transaction() as tx:
            task = asyncio.create_task(late(tx))
            await tx.send("t", b"one")
        ended.set()
        await task
        await there.settle()
        assert there.committed() == [b"one"]


@BOTH
@pytest.mark.parametrize("how", ["commit", "abort", "doomed"])
async def test_a_task_that_waits_for_memory(level: int, how: str) -> None:
    """It is refused when the transaction ends meanwhile, and its record is not sent."""
    async with (
        world(level) as there,
        there.producer(
            buffer_memory=20_000, batch_size=16_384, max_request_size=20_000
        ) as producer,
    ):
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"first")
        if how == "doomed":
            refusal = error(ErrorCode.INVALID_RECORD, times=1)
            there.broker.faults.on("Produce", refusal)
        there.broker.faults.on("Produce", delay(1.0, times=1))
        tx.enqueue_nowait("t", b"x" * 15_000)
        await until(lambda: there.count(ApiKey.PRODUCE) == 2)
        with pytest.raises(BufferFull):
            tx.enqueue_nowait("t", b"y" * 15_000)
        waiting = asyncio.create_task(tx.enqueue("t", b"y" * 15_000))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        if how == "abort":
            await tx.abort()
        elif how == "commit":
            await tx.commit()
        else:
            await until(lambda: tx.is_ending)
        with pytest.raises((UsageError, TransactionAborted)):
            await waiting
        if how == "doomed":
            with pytest.raises(TransactionAborted):
                await tx.commit()
        await commit_one(producer)
        await there.settle()
        everything = [value for _, values in there.log() for value in values]
        assert b"y" * 15_000 not in everything
        assert there.committed()[-1] == b"next"
        assert (b"first" in there.committed()) == (how == "commit")


@BOTH
async def test_several_tasks_that_wait_for_memory(level: int) -> None:
    """There is memory for one of them at a time; each learns of the end at once."""
    async with (
        world(level) as there,
        there.producer(
            buffer_memory=20_000, batch_size=16_384, max_request_size=20_000
        ) as producer,
    ):
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"first")
        there.broker.faults.on("Produce", delay(1.0, times=1))
        tx.enqueue_nowait("t", b"x" * 15_000)
        await until(lambda: there.count(ApiKey.PRODUCE) == 2)
        waiting = [
            asyncio.create_task(tx.enqueue("t", b"y" * 15_000)) for _ in range(3)
        ]
        await asyncio.sleep(0.1)
        await tx.commit()
        began = asyncio.get_running_loop().time()
        for task in waiting:
            with pytest.raises(UsageError):
                await task
        assert asyncio.get_running_loop().time() - began < 0.1


# ---- time


async def test_a_transaction_that_is_open_for_too_long() -> None:
    for level in (1, 2):
        async with (
            world(level) as there,
            there.producer(transaction_timeout_ms=1_000) as producer,
        ):
            with pytest.raises(TransactionAborted) as raised:  # noqa: PT012
                async with producer.transaction() as tx:
                    await tx.send("t", b"one")
                    await asyncio.sleep(1.5)
                    assert tx.is_ending
                    with pytest.raises(TransactionAborted, match="timed out"):
                        await tx.send("t", b"two")
            assert raised.value.reason == "timed out"
            assert isinstance(raised.value.__cause__, KafkaTimeout)
            assert await tx.outcome is ABORTED
            await commit_one(producer)
            await there.settle()
            assert there.committed() == [b"next"]


@BOTH
async def test_records_expire_at_the_end_of_the_transaction(level: int) -> None:
    async with (
        world(level) as there,
        there.producer(
            transaction_timeout_ms=1_000, delivery_timeout_ms=60_000
        ) as producer,
    ):
        loop = asyncio.get_running_loop()
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"one")
        began = loop.time()
        rule = there.broker.faults.on("Produce", error(ErrorCode.NOT_ENOUGH_REPLICAS))
        with pytest.raises((DeliveryTimeout, TransactionAborted)):
            await tx.send("t", b"two")
        assert 0.5 < loop.time() - began < 1.5
        there.broker.faults.remove(rule)
        with pytest.raises(TransactionAborted):
            await tx.commit()
        await commit_one(producer)
        await there.settle()
        assert there.committed() == [b"next"]


async def test_aborted_by_the_coordinator_alone() -> None:
    async with world(2) as there, there.producer() as producer:
        with pytest.raises(TransactionAborted) as raised:  # noqa: PT012
            async with producer.transaction() as tx:
                await tx.send("t", b"one")
                there.broker.control.time_out_transaction(ID)
                await there.settle()
        assert raised.value.reason == "timed out"
        assert await tx.outcome is ABORTED
        assert there.count(ApiKey.END_TXN) > 1  # commit: 48; abort: 0
        await commit_one(producer)
        await there.settle()
        assert there.committed() == [b"next"]
    async with world(1) as there, there.producer() as producer:
        with pytest.raises(Fenced, match="another producer") as fenced:  # noqa: PT012
            async with producer.transaction() as tx:
                await tx.send("t", b"one")
                there.broker.control.time_out_transaction(ID)
                await there.settle()
        assert "transaction_timeout_ms" in str(fenced.value)
        assert await tx.outcome is ABORTED
        assert there.count(ApiKey.INIT_PRODUCER_ID) == 1
        assert there.committed() == []


# ---- EndTxn without an answer


@BOTH
async def test_the_outcome_is_unknown_until_endtxn_is_answered(level: int) -> None:
    async with (
        world(level) as there,
        there.producer(max_block_ms=3_000, request_timeout_ms=200) as producer,
    ):
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"one")
        rule = there.broker.faults.on("EndTxn", drop())
        with pytest.raises(OutcomeUnknown, match="max_block_ms=3000"):
            await tx.commit()
        outcome = asyncio.ensure_future(tx.outcome)
        other = producer.transaction()
        with pytest.raises(OutcomeUnknown):
            await other.begin()
        waiting = asyncio.create_task(commit_one(producer))
        await asyncio.sleep(0.1)
        assert not outcome.done()
        assert not waiting.done()
        there.broker.faults.remove(rule)
        assert await outcome is COMMITTED
        await waiting
        assert there.count(ApiKey.END_TXN) > 2
        await there.settle()
        assert there.log() == [("commit", [b"one"]), ("commit", [b"next"])]
    # In TV1, a late EndTxn could end the next transaction: another epoch comes first.
    assert (there.count(ApiKey.INIT_PRODUCER_ID) > 1) == (level == 1)


@BOTH
async def test_it_stays_unknown_when_the_producer_is_closed(level: int) -> None:
    async with (
        world(level) as there,
        there.producer(max_block_ms=500, request_timeout_ms=200) as producer,
    ):
        there.broker.faults.on("EndTxn", drop())
        with pytest.raises(OutcomeUnknown):
            async with producer.transaction() as tx:
                await tx.send("t", b"one")
        outcome = asyncio.ensure_future(tx.outcome)
        await asyncio.sleep(0)
        await producer.close(timeout=1)
        with pytest.raises(OutcomeUnknown):
            await outcome
        with pytest.raises(OutcomeUnknown):
            await tx.outcome
        with pytest.raises(ClosedError):
            await producer.transaction().begin()


# ---- another producer of the same id


@pytest.mark.parametrize(("release", "at_once"), [("4.0", 1), (NEWEST, 2)])
async def test_first_batches_where_leaders_take_any_sequence(
    release: str, at_once: int
) -> None:
    """A leader of 4.0 would take the second, and could not take the first any more."""
    topics = {"t": 1, "new": 1}
    async with (
        world(as_version=release, topics=topics) as there,
        there.producer() as producer,
    ):
        await commit_one(producer, b"before")
        await asyncio.sleep(0.1)  # so long that the next one does not probe
        code = ErrorCode.CONCURRENT_TRANSACTIONS
        there.broker.faults.on("Produce", error(code, times=1))
        async with producer.transaction() as tx:
            tx.enqueue_nowait("new", b"1")
            backlog = producer._accumulator.backlog
            while backlog.is_empty or not backlog.is_all_sent:  # noqa: ASYNC110
                await asyncio.sleep(0)
            tx.enqueue_nowait("new", b"2")
        await there.settle()
        assert there.committed("new") == [b"1", b"2"]
        # The first one refused, the second one too if it was on the wire; then both.
        assert there.count(ApiKey.PRODUCE) == 1 + at_once + 2


@BOTH
async def test_a_second_producer_fences_the_first(level: int) -> None:
    async with world(level) as there, there.producer() as first:
        tx = first.transaction()
        await tx.begin()
        await tx.send("t", b"zombie")
        async with there.producer() as second:
            successor = second.transaction()
            await successor.begin()
            await successor.send("t", b"good")
            with pytest.raises(KafkaError):
                await tx.send("t", b"zombie 2")
            with pytest.raises(Fenced):
                await tx.commit()
            with pytest.raises(Fenced) as one:
                await first.transaction().begin()
            with pytest.raises(Fenced) as two:
                await first.transaction().begin()
            assert one.value is not two.value
            assert await tx.outcome is ABORTED
            await first.close()
            await successor.commit()
        await there.settle()
        assert there.committed() == [b"good"]
    assert there.count(ApiKey.INIT_PRODUCER_ID) >= 2


@BOTH
async def test_the_fenced_one_never_touches_its_successor(level: int) -> None:
    """Fenced at each step: it asks for no epoch, and the successor commits."""
    for step in ("begin", "send", "commit", "abort", "close"):
        async with world(level) as there, there.producer() as first:
            await commit_one(first, b"before")
            tx = first.transaction()
            await tx.begin()
            if step != "begin":
                await tx.send("t", b"zombie")
            async with there.producer() as second:
                inits = there.count(ApiKey.INIT_PRODUCER_ID)
                async with second.transaction() as successor:
                    await successor.send("t", b"good")
                    with pytest.raises((KafkaError, AssertionError)):  # noqa: PT012
                        if step in ("begin", "send"):
                            await tx.send("t", b"zombie")
                        elif step == "close":
                            await first.close()
                            raise AssertionError
                        else:
                            await getattr(tx, step)()
                    await first.close()
                assert there.count(ApiKey.INIT_PRODUCER_ID) == inits
            await there.settle()
            assert there.committed() == [b"before", b"good"]


# ---- the end of the producer


@BOTH
async def test_close_aborts_what_is_open(level: int) -> None:
    async with world(level) as there:
        producer = there.producer()
        await producer.start()
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"one")
        stranger = contextvars.Context()
        waiting = asyncio.create_task(producer.transaction().begin(), context=stranger)
        await asyncio.sleep(0)
        await producer.close()
        assert await tx.outcome is ABORTED
        with pytest.raises(ClosedError):
            await waiting
        with pytest.raises(ClosedError):
            await tx.commit()
        with pytest.raises(ClosedError):
            await tx.send("t", b"two")
        await there.settle()
        assert there.log() == [("abort", [b"one"])]


@BOTH
async def test_close_keeps_to_its_time(level: int) -> None:
    async with world(level) as there:
        producer = there.producer()
        await producer.start()
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"one")
        there.broker.faults.on("EndTxn", drop())
        began = asyncio.get_running_loop().time()
        await producer.close(timeout=2)
        assert asyncio.get_running_loop().time() - began < 4
        # It can only be aborted: no commit was sent.
        assert await tx.outcome is ABORTED


async def test_a_commit_under_way_is_not_turned_by_close() -> None:
    async with world() as there:
        producer = there.producer()
        await producer.start()
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"one")
        there.broker.faults.on("EndTxn", delay(0.5))
        committing = asyncio.create_task(tx.commit())
        await until(lambda: there.count(ApiKey.END_TXN) or committing.done())
        await producer.close()
        await committing
        assert await tx.outcome is COMMITTED
        await there.settle()
        assert there.committed() == [b"one"]


async def test_a_crash_ends_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world() as there, there.producer() as producer:
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"one")

        def broken(*_: object, **__: object) -> None:
            raise RuntimeError("a bug")

        assert producer._sender is not None
        monkeypatch.setattr(producer._sender._outcomes, "acknowledged", broken)
        with pytest.raises(KafkaError):
            await tx.send("t", b"two")
        with pytest.raises(KafkaError):
            await tx.commit()
        assert await tx.outcome is ABORTED
        with pytest.raises(KafkaError):
            await producer.transaction().begin()


async def test_request_timeout_of_start() -> None:
    async with world() as there:
        there.broker.faults.on("InitProducerId", error(ErrorCode.NOT_COORDINATOR))
        producer = there.producer(max_block_ms=500)
        with pytest.raises(RequestTimeout):
            await producer.start()


async def test_offsets_wait_until_records_were_written() -> None:
    """The coordinator would turn one of the two away for 20 ms (TV2)."""
    at = {TopicPartition("t", 0): 3}
    async with world(2) as there, there.producer(linger_ms=10_000) as producer:
        there.broker.faults.on("Produce", delay(0.01, times=1))
        tx = producer.transaction()
        await tx.begin()
        first = asyncio.create_task(tx.send("t", b"v"))
        await asyncio.sleep(0)
        await tx.commit_offsets(GroupMetadata("g"), at)
        assert first.done()
        assert there.asked(ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT) == [
            "PRODUCE",
            "TXN_OFFSET_COMMIT",
        ]
        await tx.commit()


async def test_offsets_do_not_wait_for_a_slow_leader() -> None:
    at = {TopicPartition("t", 0): 3}
    async with world(2) as there, there.producer() as producer:
        there.broker.faults.on("Produce", delay(5.0, times=1))
        tx = producer.transaction()
        await tx.begin()
        first = asyncio.create_task(tx.send("t", b"v"))
        await asyncio.sleep(0)
        await tx.commit_offsets(GroupMetadata("g"), at)
        assert not first.done()
        await tx.commit()
        assert first.done()


async def test_partitions_of_a_row_of_records_are_added_together() -> None:
    """Also after a record that was sent alone, whose successors leave at once."""
    async with world(1, topics={"t": 4}) as there, there.producer() as producer:
        async with producer.transaction() as tx:
            await tx.send("t", b"alone", partition=0)
            before = there.count(ApiKey.ADD_PARTITIONS_TO_TXN)
            for partition in range(1, 4):
                await tx.enqueue("t", b"x", partition=partition)
        assert there.count(ApiKey.ADD_PARTITIONS_TO_TXN) == before + 1
