"""The two loops that work in transactions: ``exactly_once`` and ``run(producer=)``."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest

import kafkaio
from kafkaio import Retry
from kafkaio._consumer import Consumer
from kafkaio._consumer.parallel import DeadLetter
from kafkaio._producer.transaction import Transaction
from kafkaio.errors import (
    ArgumentTypeError,
    ClosedError,
    CommitFailed,
    Fenced,
    KafkaError,
    OutcomeUnknown,
    TransactionAborted,
    UsageError,
)
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import disconnect_before_write, drop
from kafkaio.types import Record
from tests.unit.consumer.fake_transactions import (
    PROTOCOLS,
    FakeProducer,
    FakeTransaction,
    World,
    committing,
    world,
)
from tests.unit.consumer.group_fakes import virtual
from tests.unit.consumer.in_parallel import ORDERS, eventually

EVERY = pytest.mark.parametrize("protocol", PROTOCOLS)
COUNT = 30
VALUES = sorted(b"%d" % number for number in range(COUNT))
DONE = dict.fromkeys(ORDERS, COUNT // 3)

#: Works on one record in a transaction.
Work: TypeAlias = Callable[[FakeTransaction, Record], Awaitable[None]]
#: Runs a loop with such a handler.
Loop: TypeAlias = Callable[..., Awaitable[None]]


async def copy(tx: FakeTransaction, record: Record) -> None:
    await tx.send("out", record.value)


async def ignore(tx: object, records: list[Record]) -> None:
    """Do nothing."""
    del tx, records


async def by_exactly_once(
    consumer: Consumer, producer: FakeProducer, work: Work, **options: Any
) -> None:
    async def handler(tx: FakeTransaction, records: list[Record]) -> None:
        assert records
        for record in records:
            await work(tx, record)

    await kafkaio.exactly_once(consumer, producer, handler, **options)


async def by_run(
    consumer: Consumer, producer: FakeProducer, work: Work, **options: Any
) -> None:
    await consumer.run(work, producer=producer, **options)


LOOPS = pytest.mark.parametrize("loop", [by_exactly_once, by_run], ids=["loop", "run"])


@asynccontextmanager
async def running(work: Awaitable[None]) -> AsyncIterator[asyncio.Task[None]]:
    """Run a loop in a task; cancel it at the end."""
    task = asyncio.ensure_future(work)
    assert isinstance(task, asyncio.Task)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


class Aborts:
    """Notes what is retried."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []

    def retrying(
        self, what: str, attempt: int, delay: float, error: BaseException
    ) -> None:
        if "transaction" in what or "exactly_once" in what:
            self.errors.append(error)


@virtual
@EVERY
@LOOPS
async def test_everything_is_copied_once(protocol: str, loop: Loop) -> None:
    async with world(protocol) as there, await there.consumer() as one:
        producer = FakeProducer(committing(one))
        async with running(loop(one, producer, copy, max_records=7)):
            await asyncio.sleep(30)
            assert not producer.all  # nothing to do, no transaction
            await there.write(*VALUES)
            await eventually(lambda: len(producer.committed) == COUNT)
        assert await there.committed() == DONE
        assert max(len(tx.sent) for tx in producer.all) <= 7
        assert len(producer.all) >= COUNT // 7


@virtual
@LOOPS
async def test_an_aborted_transaction_is_done_again(loop: Loop) -> None:
    seen = Aborts()
    async with world("kip848") as there:
        await there.write(*VALUES)
        one = await there.consumer(observer=seen)
        async with one:
            producer = FakeProducer(committing(one))
            producer.fails = [
                TransactionAborted("no", reason="timed out"),
                CommitFailed("no"),
            ]
            async with running(loop(one, producer, copy, max_records=7)):
                await eventually(lambda: len(producer.committed) == COUNT)
                await asyncio.sleep(20)
        assert sorted(producer.committed) == VALUES  # type: ignore[type-var]
        assert await there.committed() == DONE
    assert len(seen.errors) == 2


@virtual
@LOOPS
async def test_a_transaction_that_is_doomed_while_handlers_work(loop: Loop) -> None:
    async def work(tx: FakeTransaction, record: Record) -> None:
        if len(producer.all) == 2 and len(tx.sent) == 3:
            tx.doom = ClosedError("a record failed")
        await tx.send("out", record.value)

    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        async with running(loop(one, producer, work, max_records=7)):
            await eventually(lambda: len(producer.committed) == COUNT)
            await asyncio.sleep(20)
        assert sorted(producer.committed) == VALUES  # type: ignore[type-var]


@virtual
@LOOPS
async def test_a_handler_that_fails_aborts_all_of_it(loop: Loop) -> None:
    async def work(tx: FakeTransaction, record: Record) -> None:
        await tx.send("out", record.value)
        if len(producer.committed) >= 7 and len(tx.sent) == 4:
            raise ZeroDivisionError

    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        with pytest.raises(ZeroDivisionError):
            await loop(one, producer, work, max_records=7)
        assert not producer.all[-1].is_committed
        done = len(producer.committed)
        assert sum((await there.committed()).values()) == done
        async with running(loop(one, producer, copy)):
            await eventually(lambda: len(producer.committed) == COUNT)
        assert sorted(producer.committed) == VALUES  # type: ignore[type-var]


@virtual
@LOOPS
async def test_a_handler_cannot_cancel_the_loop(loop: Loop) -> None:
    asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asked.cancel()

    async def work(tx: FakeTransaction, record: Record) -> None:
        await tx.send("out", record.value)
        if len(producer.committed) >= 7:
            await asked

    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        # In a task: raised there, a CancelledError would be the end of the task, of
        # which nobody hears.
        task = asyncio.ensure_future(loop(one, producer, work, max_records=7))
        await asyncio.wait([task])
        assert not task.cancelled()
        with pytest.raises(ClosedError, match="cancelled"):
            await task
        assert not producer.all[-1].is_committed
        async with running(loop(one, producer, copy)):
            await eventually(lambda: len(producer.committed) == COUNT)
        assert sorted(producer.committed) == VALUES  # type: ignore[type-var]


@virtual
@LOOPS
async def test_a_handler_is_called_again(loop: Loop) -> None:
    failed = 0

    async def work(tx: FakeTransaction, record: Record) -> None:
        nonlocal failed
        if record.value == b"11" and failed < 2:
            failed += 1
            raise ZeroDivisionError
        await tx.send("out", record.value)

    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        retry = Retry(attempts=3, on=(ZeroDivisionError,))
        async with running(loop(one, producer, work, retry=retry, max_records=9)):
            await eventually(lambda: len(producer.committed) == COUNT)
        assert sorted(producer.committed) == VALUES  # type: ignore[type-var]
        assert await there.committed() == DONE


@virtual
@LOOPS
@pytest.mark.parametrize("which", ["consumer", "producer"])
async def test_it_returns_when_one_of_them_is_closed(loop: Loop, which: str) -> None:
    async def work(tx: FakeTransaction, record: Record) -> None:
        await asyncio.sleep(0.5)
        await tx.send("out", record.value)

    async with world("kip848") as there:
        await there.write(*VALUES)
        one = await there.consumer()
        await one.start()
        producer = FakeProducer(committing(one))
        options: dict[str, Any] = {"max_records": 5}
        if loop is by_run:
            options["concurrency"] = 3
        async with running(loop(one, producer, work, **options)) as task:
            await eventually(lambda: producer.all and producer.all[-1].sent)
            if which == "consumer":
                await one.close()
                await asyncio.wait([task], timeout=30)
                assert task.done()
                assert task.exception() is None
            elif loop is by_exactly_once:
                producer.is_closed = True
                await asyncio.wait([task], timeout=30)
                assert task.exception() is None
        assert all(tx.is_committed for tx in producer.all[:-1])
        assert sum((await there.committed()).values()) == len(producer.committed)
        await one.close()


@virtual
@LOOPS
async def test_what_was_taken_is_finished_when_the_consumer_closes(loop: Loop) -> None:
    async with world("kip848") as there:
        await there.write(*VALUES[:3])
        one = await there.consumer()
        await one.start()
        producer = FakeProducer(committing(one))
        async with running(loop(one, producer, copy, max_wait=30)) as task:
            await eventually(lambda: producer.all)
            await asyncio.sleep(1)
            await one.close()
            await asyncio.wait([task], timeout=40)
            assert task.exception() is None
        assert sorted(producer.committed) == VALUES[:3]  # type: ignore[type-var]
        assert len(producer.all) == 1


@virtual
@LOOPS
async def test_without_a_wait_each_transaction_gets_on(loop: Loop) -> None:
    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        async with running(loop(one, producer, copy, max_wait=0)):
            await eventually(lambda: len(producer.committed) == len(VALUES))
        assert sorted(producer.committed) == VALUES  # type: ignore[type-var]
        assert len(producer.all) <= len(VALUES) + 1


@virtual
@LOOPS
async def test_fenced_ends_it(loop: Loop) -> None:
    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        error = broker_error(ErrorCode.PRODUCER_FENCED, "another has the id")

        def fenced(consumer: object) -> FakeTransaction:
            raise error

        producer.transaction = fenced  # type: ignore[method-assign,assignment]
        with pytest.raises(Fenced):
            await loop(one, producer, copy)


async def copied(there: World) -> list[object]:
    """What a reader of committed records finds in the output."""
    found: list[object] = []
    options = {"topics": "out", "group_id": "r", "isolation_level": "read_committed"}
    async with await there.consumer(**options) as reader:
        while records := (await reader.poll(timeout=3)).records:
            found += [record.value for record in records]
    return found


#: A producer whose calls give up soon, and whose transactions live for long.
IMPATIENT = {"max_block_ms": 1_000, "request_timeout_ms": 500}


@virtual
@LOOPS
@pytest.mark.parametrize("is_committed", [True, False])
async def test_an_unknown_outcome_is_awaited(loop: Loop, is_committed: bool) -> None:
    """It was committed: on it goes. The coordinator has aborted it: once more."""
    seen = Aborts()
    async with (
        world("kip848") as there,
        await there.consumer(observer=seen) as one,
        there.producer(
            **IMPATIENT, transaction_timeout_ms=100_000 if is_committed else 4_000
        ) as producer,
    ):
        await there.write(*VALUES)
        faults = there.broker.faults
        rule = faults.on("EndTxn", disconnect_before_write())
        async with running(loop(one, producer, copy, max_records=7)) as task:
            await asyncio.sleep(30)
            assert not task.done()
            assert await copied(there) == []
            faults.remove(rule)
            await eventually(lambda: there.offsets() == DONE)
        assert sorted(await copied(there)) == VALUES  # type: ignore[type-var]
    kinds = [type(error) for error in seen.errors]
    assert kinds == [OutcomeUnknown, *([] if is_committed else [TransactionAborted])]


@virtual
@LOOPS
async def test_an_outcome_that_will_never_be_known_ends_it(loop: Loop) -> None:
    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = there.producer(**IMPATIENT)
        await producer.start()
        there.broker.faults.on("EndTxn", disconnect_before_write())
        async with running(loop(one, producer, copy)) as task:
            await asyncio.sleep(10)
            await producer.close(timeout=1)
            with pytest.raises(OutcomeUnknown):
                await task


@virtual
@LOOPS
async def test_unknown_is_not_said_of_what_a_handler_raises(loop: Loop) -> None:
    """Another producer's outcome may be unknown to the handler."""

    async def work(tx: FakeTransaction, record: Record) -> None:
        await tx.send("out", record.value)
        raise OutcomeUnknown("of something else")

    async with (
        world("kip848") as there,
        await there.consumer() as one,
        there.producer() as producer,
    ):
        await there.write(*VALUES)
        with pytest.raises(OutcomeUnknown, match="something else"):
            await loop(one, producer, work)
        assert await copied(there) == []


@virtual
@LOOPS
@pytest.mark.parametrize("how", ["fenced", "cancelled"])
async def test_records_of_a_transaction_that_cannot_begin_come_again(
    loop: Loop, how: str
) -> None:
    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES[:15])
        first = there.producer()
        await first.start()
        async with running(loop(one, first, copy)) as task:
            await eventually(lambda: sum(there.offsets().values()) == 15)
            if how == "fenced":
                second = there.producer()
                await second.start()
                await there.write(*VALUES[15:])
                with pytest.raises(Fenced):
                    await task
                # The first call finds it out, and the next one knows it at once.
                with pytest.raises(Fenced):
                    await loop(one, first, copy)
            else:
                second = first
                async with first.transaction():  # which has the turn
                    await there.write(*VALUES[15:])
                    await asyncio.sleep(1)
                    task.cancel()
                    await asyncio.wait([task])
        async with running(loop(one, second, copy)):
            await eventually(lambda: there.offsets() == DONE)
        assert sorted(await copied(there)) == VALUES  # type: ignore[type-var]
        await first.close()
        await second.close()


@virtual
async def test_records_in_hand_outlive_a_transaction_that_cannot_begin() -> None:
    """They were taken for the one before it, which had no time for them."""

    async def slowly(tx: FakeTransaction, record: Record) -> None:
        await asyncio.sleep(0.2)
        await copy(tx, record)

    async with (
        world("kip848") as there,
        await there.consumer() as one,
        there.producer(max_block_ms=2000) as producer,
    ):
        await there.write(*VALUES)
        options = {"max_wait": 0.5, "concurrency": 1}
        async with running(by_run(one, producer, slowly, **options)):
            stranger = producer.transaction()
            await eventually(lambda: sum(there.offsets().values()) > 0)
            await stranger.begin()
            await stranger.send("out", b"of somebody else")
            rule = there.broker.faults.on("EndTxn", drop())
            with pytest.raises(OutcomeUnknown):
                await stranger.commit()
            await asyncio.sleep(10)
            assert sum(there.offsets().values()) < COUNT
            there.broker.faults.remove(rule)
            await eventually(lambda: there.offsets() == DONE)
        assert sorted(set(await copied(there)) - {b"of somebody else"}) == VALUES


@virtual
@LOOPS
async def test_the_loop_outlives_an_end_before_it_that_is_late(loop: Loop) -> None:
    """Longer than a transaction waits for it before it begins."""
    async with (
        world("kip848") as there,
        await there.consumer() as one,
        there.producer(max_block_ms=2000) as producer,
    ):
        await there.write(*VALUES)
        rule = there.broker.faults.on("EndTxn", drop())
        stranger = producer.transaction()
        await stranger.begin()
        await stranger.send("out", b"of somebody else")
        context = contextvars.Context()
        task = asyncio.create_task(loop(one, producer, copy), context=context)
        with pytest.raises(OutcomeUnknown):
            await stranger.commit()
        await asyncio.sleep(30)
        assert not task.done()
        assert sum(there.offsets().values()) == 0
        there.broker.faults.remove(rule)
        await eventually(lambda: there.offsets() == DONE)
        task.cancel()
        await asyncio.wait([task])
        assert sorted(set(await copied(there)) - {b"of somebody else"}) == VALUES


@virtual
@EVERY
@LOOPS
async def test_members_that_come_and_go_repeat_nothing(
    protocol: str, loop: Loop
) -> None:
    async def work(tx: FakeTransaction, record: Record) -> None:
        await asyncio.sleep(0.2)
        await tx.send("out", record.value)

    values = sorted(b"%d" % number for number in range(300))
    out: list[object] = []
    async with world(protocol) as there:
        await there.write(*values)
        members: list[tuple[Consumer, FakeProducer]] = []
        tasks: list[asyncio.Task[None]] = []
        for _ in range(3):
            consumer = await there.consumer()
            producer = FakeProducer(committing(consumer))
            producer.committed = out
            await consumer.start()
            members.append((consumer, producer))
            tasks.append(
                asyncio.ensure_future(loop(consumer, producer, work, max_records=20))
            )
            await asyncio.sleep(3)
        await members[0][0].close()
        await tasks[0]
        await eventually(lambda: len(out) >= len(values))
        for consumer, _ in members[1:]:
            await consumer.close()
        await asyncio.gather(*tasks)
        assert sorted(out) == values  # type: ignore[type-var]
        assert await there.committed() == dict.fromkeys(ORDERS, 100)
        transactions = [tx for _, producer in members for tx in producer.all]
        assert all(tx.is_committed for tx in transactions)


@virtual
@EVERY
@pytest.mark.parametrize("ordering", ["key", "none"])
async def test_what_waits_when_a_transaction_is_aborted_is_not_done_twice(
    protocol: str, ordering: str
) -> None:
    async def work(tx: FakeTransaction, record: Record) -> None:
        await asyncio.sleep(0.1)
        await tx.send("out", record.value)

    async with world(protocol) as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        producer.fails = [CommitFailed("no") for _ in range(5)]
        options: dict[str, Any] = {"ordering": ordering, "concurrency": 4}
        async with running(one.run(work, producer=producer, **options)):
            await eventually(lambda: len(producer.committed) >= COUNT)
            await asyncio.sleep(5)
        assert sorted(producer.committed) == VALUES  # type: ignore[type-var]
        assert await there.committed() == DONE


@virtual
@EVERY
@LOOPS
async def test_aborts_while_members_come(protocol: str, loop: Loop) -> None:
    async def work(tx: FakeTransaction, record: Record) -> None:
        await asyncio.sleep(0.2)
        await tx.send("out", record.value)

    values = sorted(b"%d" % number for number in range(150))
    out: list[object] = []
    async with world(protocol) as there:
        await there.write(*values)
        members: list[Consumer] = []
        tasks: list[asyncio.Task[None]] = []
        for _ in range(3):
            consumer = await there.consumer()
            producer = FakeProducer(committing(consumer))
            producer.committed = out
            producer.fails = [CommitFailed("no") for _ in range(3)]
            await consumer.start()
            members.append(consumer)
            tasks.append(
                asyncio.ensure_future(loop(consumer, producer, work, max_records=10))
            )
            await asyncio.sleep(2)
        await eventually(lambda: len(out) >= len(values))
        await asyncio.sleep(5)
        for consumer in members:
            await consumer.close()
        await asyncio.gather(*tasks)
        assert sorted(out) == values  # type: ignore[type-var]
        assert await there.committed() == dict.fromkeys(ORDERS, 50)


@virtual
@EVERY
async def test_what_was_begun_is_finished_in_its_transaction(protocol: str) -> None:
    """What waits behind a slow handler of its key goes into the next transaction."""
    gate = asyncio.Event()

    async def work(tx: FakeTransaction, record: Record) -> None:
        if record.value == b"0":
            await gate.wait()
        await asyncio.sleep(0.1)
        await tx.send("out", record.value)

    async with world(protocol) as there, await there.consumer() as one:
        await there.write(*VALUES, partitions=1)
        producer = FakeProducer(committing(one))
        async with running(
            one.run(work, producer=producer, ordering="none", concurrency=5)
        ):
            await asyncio.sleep(10)
            assert len(producer.all) == 1
            first = producer.all[0]
            begun = len(first.sent) + 1
            assert begun < COUNT
            gate.set()
            await eventually(lambda: len(producer.committed) == COUNT)
        assert len(first.sent) == begun
        assert sorted(producer.committed) == VALUES  # type: ignore[type-var]


@virtual
@pytest.mark.parametrize("kind", ["topic", "function"])
async def test_dead_letters_go_through_the_transaction(kind: str) -> None:
    async def work(tx: FakeTransaction, record: Record) -> None:
        if record.value == b"3":
            raise ZeroDivisionError
        await tx.send("out", record.value)

    async def bury(tx: FakeTransaction, record: Record, error: Exception) -> None:
        await tx.send("dead", (record.value, type(error)))

    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        letter = DeadLetter(FakeTransaction(producer, None), "dead")
        dead: Any = letter if kind == "topic" else bury
        async with running(one.run(work, producer=producer, dead_letter=dead)):
            await eventually(lambda: len(producer.committed) == COUNT)
        buried = b"3" if kind == "topic" else (b"3", ZeroDivisionError)
        assert buried in producer.committed
        assert await there.committed() == DONE


@virtual
async def test_who_cannot_take_part() -> None:
    async with world("kip848") as there:
        automatic = await there.consumer(enable_auto_commit=True)
        async with automatic:
            producer = FakeProducer()
            for loop in (by_exactly_once, by_run):
                with pytest.raises(UsageError, match="enable_auto_commit"):
                    await loop(automatic, producer, copy)
        one = await there.consumer()
        wrong: Any = "handler"
        with pytest.raises(ArgumentTypeError, match="callable"):
            await kafkaio.exactly_once(one, producer, wrong)
        with pytest.raises(ArgumentTypeError, match="Retry"):
            await kafkaio.exactly_once(one, producer, by_run, retry=wrong)
        with pytest.raises(ClosedError):
            await by_exactly_once(one, producer, copy)


@virtual
async def test_what_was_lost_before_the_transaction_began_is_left_out() -> None:
    """The producer's turn may come late; then other members may have the records."""

    class Slow(FakeProducer):
        def transaction(self, consumer: Any = None) -> FakeTransaction:
            made = super().transaction(consumer)
            return made if self.all else _Late(self, consumer, one)

    class _Late(FakeTransaction):
        def __init__(self, made: FakeProducer, consumer: Any, one: Consumer) -> None:
            super().__init__(made, consumer)
            self._one = one

        async def __aenter__(self) -> Any:
            self._one.assign([ORDERS[0]])
            return await super().__aenter__()

    async with (
        world("kip848") as there,
        await there.consumer(topics=None, assign=ORDERS) as one,
    ):
        await there.write(*VALUES)
        producer = Slow(committing(one))
        async with running(by_exactly_once(one, producer, copy)):
            await eventually(lambda: len(producer.committed) == COUNT // 3)
            await asyncio.sleep(5)
        assert await there.committed() == {ORDERS[0]: COUNT // 3}


@virtual
@EVERY
@LOOPS
async def test_what_was_lost_and_comes_back_in_a_transaction_is_copied(
    protocol: str, loop: Loop
) -> None:
    """The transaction polls for more while the member loses all, and joins again."""
    async with world(protocol) as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        async with running(loop(one, producer, copy, max_wait=60.0)):
            await eventually(lambda: producer.current)
            await asyncio.sleep(1)
            member_id = one.group_metadata.member_id
            there.broker.control.expel_member("g", member_id)
            await eventually(lambda: len(producer.committed) >= COUNT)
            await asyncio.sleep(20)
        assert sorted(producer.committed) == VALUES  # type: ignore[type-var]
        assert not producer.all[0].is_committed
        assert await there.committed() == DONE


def test_the_loop_is_a_name_of_the_package() -> None:
    assert kafkaio.exactly_once.__module__ == "kafkaio"
    assert World.__doc__


@virtual
async def test_a_cancellation_does_not_wait_for_the_committed_offsets() -> None:
    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES)
        await eventually(lambda: one.assignment)
        producer = there.producer()
        await producer.start()
        first = producer.transaction()
        await first.begin()  # which has the turn
        stranger = contextvars.Context()
        task = asyncio.create_task(
            kafkaio.exactly_once(one, producer, ignore), context=stranger
        )
        await asyncio.sleep(1)
        rule = there.broker.faults.on("OffsetFetch", drop())
        began = asyncio.get_running_loop().time()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.get_running_loop().time() < began + 1.1
        assert rule.count
        there.broker.faults.remove(rule)
        await first.abort()
        async with running(by_exactly_once(one, producer, copy)):
            await eventually(lambda: there.offsets() == DONE)
        assert sorted(await copied(there)) == VALUES  # type: ignore[type-var]
        await producer.close()


@virtual
@pytest.mark.parametrize("protocol", ["kip848", "cooperative"])
async def test_others_are_worked_on_while_a_partition_is_released(
    protocol: str,
) -> None:
    """Records of it were handed out and never begun, and its callback takes long."""
    calls = list[asyncio.Event]()

    async def revoked(partitions: object) -> None:
        del partitions
        calls.append(asyncio.Event())
        await calls[-1].wait()

    async def work(tx: FakeTransaction, record: Record) -> None:
        await asyncio.sleep(0.05)
        await tx.send("out", record.value)

    async with (
        world(protocol) as there,
        await there.consumer(on_revoked=revoked) as one,
    ):
        await there.write(*(b"%d" % number for number in range(3000)))
        producer = FakeProducer(committing(one))
        async with (
            running(by_run(one, producer, work, max_records=500, concurrency=2)),
            await there.consumer(),
        ):
            await eventually(lambda: calls)
            begun, done = len(producer.all), len(producer.committed)
            await asyncio.sleep(10)
            assert len(producer.committed) - done > 100
            # And none of the transactions ends as it begins.
            assert len(producer.committed) - done > 4 * (len(producer.all) - begun)
            calls[0].set()


@virtual
async def test_transactions_that_end_as_they_begin_leave_the_loop_its_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each holds a partition that another task is about to release."""
    turns, begun = [0], dict[object, int]()
    is_ending = Transaction.is_ending.fget
    assert is_ending is not None

    def turn() -> None:
        turns[0] += 1

    def ends(tx: Transaction) -> bool:
        begun.setdefault(tx, turns[0])
        asyncio.get_running_loop().call_soon(turn)
        return len(begun) < 5 or bool(is_ending(tx))

    monkeypatch.setattr(Transaction, "is_ending", property(ends))
    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = there.producer()
        await producer.start()
        async with running(by_run(one, producer, copy)):
            await eventually(lambda: there.offsets() == DONE)
        assert sorted(await copied(there)) == VALUES  # type: ignore[type-var]
        await producer.close()
    first, *others = begun.values()
    for following in others[:4]:
        assert following > first
        first = following


@virtual
@LOOPS
async def test_a_producer_that_crashes_skips_nothing(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The consumer lives on, and another producer works on what it had handed out."""
    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES[:15])
        first = there.producer()
        await first.start()

        def broken(*_: object, **__: object) -> None:
            raise RuntimeError("a bug")

        assert first._sender is not None
        for name in ("answered", "acknowledged"):
            monkeypatch.setattr(first._sender._outcomes, name, broken)
        with pytest.raises(KafkaError):
            await loop(one, first, copy)
        await first.close()
        await there.write(*VALUES[15:])
        second = there.producer()
        await second.start()
        async with running(loop(one, second, copy)):
            await eventually(lambda: there.offsets() == DONE)
        assert sorted(await copied(there)) == VALUES  # type: ignore[type-var]
        await second.close()
