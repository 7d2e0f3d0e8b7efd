"""Calls that meet in one producer: commits of offsets, ends of transactions, close."""

from __future__ import annotations

import asyncio
import contextvars
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias
from uuid import UUID

import pytest

from kafkaio._client.coordination import CoordinatorRpc
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._net.connection import Connection
from kafkaio._producer.transaction import Transaction, TransactionOutcome
from kafkaio._runtime.timer import Timer
from kafkaio._transactional import GroupOffsetsPort, TransactionalConsumer
from kafkaio.errors import (
    BrokerError,
    ClosedError,
    KafkaError,
    NetworkError,
    OutcomeUnknown,
    RequestTimeout,
    TransactionAborted,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import delay, drop, error
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from tests.unit.producer.transactional import BOTH, World, until, world

Task: TypeAlias = asyncio.Task[None]
#: Ends a transaction while commits of offsets are under way.
End: TypeAlias = Callable[[World, Transaction, list[Task]], Awaitable[None]]

COMMITTED, ABORTED = TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED
T0 = TopicPartition("t", 0)
GROUP = GroupMetadata("g")


def clock() -> float:
    return asyncio.get_running_loop().time()


class Offsets:
    """Offsets of a subscribed consumer: brokers must check its place."""

    is_fenced = True
    offsets: Mapping[TopicPartition, OffsetAndMetadata] = {T0: OffsetAndMetadata(7)}
    topic_ids: Mapping[str, UUID] = {}  # as with brokers that know none

    def identity(self) -> GroupMetadata:
        return GROUP

    def check(self) -> None:
        pass

    def refused(self, code: int, identity: GroupMetadata) -> bool:
        del code, identity
        return False

    def committed(self) -> None:
        pass


class FakeConsumer(TransactionalConsumer):
    """Has handed something out."""

    def _offsets_in_transaction(self, what: object = None) -> GroupOffsetsPort | None:
        del what
        return Offsets()

    def _join_transaction(
        self, on_revoke: Callable[[], None], on_lost: Callable[[KafkaError], None]
    ) -> FakeConsumer:
        del on_revoke, on_lost
        return self

    def handed_out(self) -> GroupOffsetsPort | None:
        return Offsets()

    async def rewind(self, *, is_unknown: bool = False) -> None:
        pass

    def end(self) -> None:
        pass


# ---- commits of offsets that take long


async def test_commits_that_wait_do_not_add_up() -> None:
    """The first one waits for the coordinator in vain; the others fail with it."""
    async with world() as there, there.producer(max_block_ms=5000) as producer:
        there.broker.faults.on(
            "FindCoordinator", error(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        )
        tx = producer.transaction()
        await tx.begin()
        commits = [
            asyncio.create_task(tx.commit_offsets(FakeConsumer())) for _ in range(5)
        ]
        began = clock()
        await asyncio.wait(commits)
        assert clock() - began < 6
        assert isinstance(commits[0].exception(), RequestTimeout)
        for commit in commits[1:]:
            failure = commit.exception()
            assert isinstance(failure, TransactionAborted)
            assert failure.__cause__ is commits[0].exception()
        with pytest.raises(TransactionAborted):
            await tx.commit()


@BOTH
@pytest.mark.parametrize("how", ["abort", "close"])
async def test_an_end_stops_the_attempts_of_a_commit(level: int, how: str) -> None:
    """EndTxn waits for the commit, which nobody needs any more."""
    async with world(level) as there, there.producer() as producer:
        busy = error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        there.broker.faults.on("TxnOffsetCommit", busy)
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"one")
        commit = asyncio.create_task(tx.commit_offsets(GROUP, {T0: 7}))
        await until(lambda: there.count(ApiKey.TXN_OFFSET_COMMIT) > 3)
        began = clock()
        await (tx.abort() if how == "abort" else producer.close(timeout=5))
        assert clock() - began < 2
        assert await tx.outcome is ABORTED
        reason = "by the user" if how == "abort" else "closed"
        with pytest.raises(TransactionAborted, match=reason):
            await commit
        await there.settle()
        assert clock() - began < 2
        assert there.log() == [("abort", [b"one"])]
        assert not there.broken


@BOTH
async def test_a_commit_that_was_lost_and_is_not_repeated(level: int) -> None:
    """It may still arrive: another epoch keeps it out of the next transaction."""
    async with (
        world(level) as there,
        there.producer(request_timeout_ms=500) as producer,
    ):
        rule = there.broker.faults.on("TxnOffsetCommit", drop())
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"one")
        commit = asyncio.create_task(tx.commit_offsets(GROUP, {T0: 7}))
        await until(lambda: rule.count)
        await tx.abort()
        assert rule.count == 1
        with pytest.raises(TransactionAborted):
            await commit
        there.broker.faults.remove(rule)
        async with producer.transaction() as tx:
            await tx.commit_offsets(GROUP, {T0: 8})
        await there.settle()
        assert there.broker.control.committed("g", T0) == 8
        assert (there.count(ApiKey.INIT_PRODUCER_ID) > 1) == (level == 1)
        assert not there.broken


@BOTH
async def test_a_coordinator_that_cannot_be_reached_for_a_while(
    level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it would check the member is asked again, as the commit would be."""
    async with world(level, nodes=5) as there:
        dial, refused = there.broker.dial, list[int]()
        ports = [int(each[-4:]) for each in there.broker.bootstrap_servers.split(",")]
        strange = set(ports)

        async def refuse(host: str, port: int, *rest: Any) -> Any:
            if port == away and len(refused) < 3:
                refused.append(port)
                raise NetworkError("refused")
            strange.discard(port)
            return await dial(host, port, *rest)

        away = -1
        monkeypatch.setattr(type(there.broker), "dial", property(lambda _: refuse))
        producer = there.producer()
        await producer.start()
        async with producer.transaction() as tx:
            await tx.send("t", b"before")
        away = strange.pop()  # of a node to which no connection is open
        control = there.broker.control
        control.move_coordinator("g", ports.index(away))
        async with producer.transaction() as tx:
            await tx.send("t", b"one")
            await tx.commit_offsets(FakeConsumer())
        await there.settle()
        assert control.committed("g", T0) == 7
        assert len(refused) == 3


@BOTH
@pytest.mark.parametrize("is_fenced", [False, True])
async def test_a_commit_that_is_cancelled_before_it_is_sent(
    level: int, is_fenced: bool
) -> None:
    """It leaves the transaction as it was: empty, and EndTxn would be refused."""
    async with world(level) as there, there.producer() as producer:
        unknown = error(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        what: Any = (FakeConsumer(),) if is_fenced else (GROUP, {T0: 7})
        async with producer.transaction() as tx:
            await tx.send("t", b"before")
        rule = there.broker.faults.on("FindCoordinator", unknown)
        async with producer.transaction() as tx:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await tx.commit_offsets(*what)
        assert await tx.outcome is COMMITTED
        there.broker.faults.remove(rule)
        async with producer.transaction() as tx:
            await tx.commit_offsets(GROUP, {T0: 8})
        await there.settle()
        assert there.broker.control.committed("g", T0) == 8
        assert there.count(ApiKey.END_TXN) == 2
        assert not there.broken


@BOTH
@pytest.mark.parametrize("when", ["at first", "again"])
async def test_an_end_does_not_wait_for_the_search_for_a_groups_coordinator(
    level: int, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the commit was sent, or nothing that may still arrive."""
    searches = []
    connection = CoordinatorRpc.connection

    async def silent(rpc: CoordinatorRpc, *which: Any) -> Connection:
        if rpc.kind is CoordinatorKind.GROUP:
            searches.append(rpc.key)
            await asyncio.get_running_loop().create_future()
        return await connection(rpc, *which)

    async with world(level) as there, there.producer() as producer:
        if when == "again":
            async with producer.transaction() as tx:
                await tx.commit_offsets(GROUP, {T0: 6})
            moved = error(ErrorCode.NOT_COORDINATOR)
            there.broker.faults.on("TxnOffsetCommit", moved)
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"one")
        monkeypatch.setattr(CoordinatorRpc, "connection", silent)
        commit = asyncio.create_task(tx.commit_offsets(GROUP, {T0: 7}))
        await until(lambda: searches)
        began = clock()
        await tx.abort()
        assert clock() - began < 1
        await asyncio.wait([commit])
        assert isinstance(commit.exception(), TransactionAborted)
        monkeypatch.undo()
        there.broker.faults.clear()
        async with producer.transaction() as tx:
            await tx.commit_offsets(GROUP, {T0: 8})
        await there.settle()
        assert there.broker.control.committed("g", T0) == 8
        assert not there.broken


# ---- the lock that all commits of offsets share


async def abort(there: World, tx: Transaction, commits: list[Task]) -> None:
    """By another task, while one commit is answered late and the others wait."""
    del there, commits
    await tx.abort()


async def cancel_first(there: World, tx: Transaction, commits: list[Task]) -> None:
    """The one that has the lock."""
    del there
    commits[0].cancel()
    with pytest.raises(TransactionAborted):
        await tx.commit()


async def cancel_next(there: World, tx: Transaction, commits: list[Task]) -> None:
    """The one that gets the lock next; it has sent nothing, so nothing is harmed."""
    del there
    commits[1].cancel()
    await asyncio.wait(commits)
    await tx.commit()


async def cancel_owner(there: World, tx: Transaction, commits: list[Task]) -> None:
    """The call of commit, before EndTxn: that is an abort."""
    del there, commits
    committing = asyncio.create_task(tx.commit())
    await asyncio.sleep(0)
    committing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await committing


async def close(there: World, tx: Transaction, commits: list[Task]) -> None:
    del tx, commits
    await there.made[0].close()


async def fail(there: World, tx: Transaction, commits: list[Task]) -> None:
    """The run ends at once; the commits go on for a while."""
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    refusal = error(code, times=1)
    there.broker.faults.on("Produce", refusal)
    with pytest.raises(KafkaError):
        await tx.send("t", b"bad")
    with pytest.raises(BrokerError):
        await tx.commit()
    assert not commits[0].done()


@BOTH
@pytest.mark.parametrize(
    "end", [abort, cancel_first, cancel_next, cancel_owner, close, fail]
)
async def test_one_transaction_after_another_has_the_lock_of_commits(
    level: int, end: End
) -> None:
    """Offsets of the first never come into the second, nor keep it waiting."""
    async with world(level) as there, there.producer() as producer:
        rule = there.broker.faults.on("TxnOffsetCommit", delay(1.0, times=1))
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", b"one")
        commits = [
            asyncio.create_task(tx.commit_offsets(GROUP, {T0: offset}))
            for offset in (5, 6, 7)
        ]
        await until(lambda: rule.count)
        await end(there, tx, commits)
        is_over = end in {close, fail}
        successor = there.producer() if is_over else producer
        if is_over:
            await successor.start()
        began = clock()
        async with successor.transaction() as second:
            await second.send("t", b"two")
            await second.commit_offsets(GROUP, {T0: 9})
            assert clock() - began < 0.5
        assert clock() - began < 0.5
        await asyncio.wait(commits)
        assert await second.outcome is COMMITTED
        await there.settle()
        is_committed = end is cancel_next
        assert (await tx.outcome is COMMITTED) == is_committed
        verdict = "commit" if is_committed else "abort"
        log = [each for each in there.log() if each[1]]  # TV1's seals have no records
        assert log == [(verdict, [b"one"]), ("commit", [b"two"])]
        assert there.broker.control.committed("g", T0) == 9
        assert not there.broken
        for each in (producer, successor):
            manager = each._transactions
            assert manager is not None
            assert not manager._offsets._order.locked()


# ---- close


async def test_a_begin_that_waits_for_an_epoch_fails_when_the_producer_closes() -> None:
    async with world(1) as there:
        producer = there.producer(request_timeout_ms=500)
        await producer.start()
        there.broker.faults.on("EndTxn", drop(times=1))
        busy = error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        rule = there.broker.faults.on("InitProducerId", busy)
        async with producer.transaction() as tx:
            await tx.send("t", b"one")
        second = producer.transaction()
        begin = asyncio.create_task(second.begin())
        await until(lambda: rule.count > 1)
        assert not begin.done()
        began = clock()
        closing = asyncio.create_task(producer.close())
        with pytest.raises(ClosedError):
            await begin
        assert clock() - began < 0.1
        assert await second.outcome is ABORTED
        there.broker.faults.remove(rule)
        await closing  # it lets the epoch change before
        assert clock() - began < 5
        assert not there.broken


@BOTH
async def test_close_waits_for_an_outcome_that_is_late(level: int) -> None:
    async with (
        world(level) as there,
        there.producer(max_block_ms=500, request_timeout_ms=200) as producer,
    ):
        rule = there.broker.faults.on("EndTxn", drop())
        with pytest.raises(OutcomeUnknown):
            async with producer.transaction() as tx:
                await tx.send("t", b"one")
        closing = asyncio.create_task(producer.close(timeout=10))
        await asyncio.sleep(1)
        assert not closing.done()
        there.broker.faults.remove(rule)
        await closing
        assert await tx.outcome is COMMITTED


# ---- timers


def timers() -> list[str]:
    """The timers of the loop that call a transaction manager, or its turns."""
    loop: Any = asyncio.get_running_loop()
    found = []
    for each in loop._scheduled:
        callback = each._callback
        if isinstance(timer := getattr(callback, "__self__", None), Timer):
            callback = timer._callback
        text = repr(callback)
        if not each.cancelled() and re.search("TransactionManager|RunTurns", text):
            found.append(text)
    return found


@BOTH
async def test_no_timer_is_left_of_a_late_end(level: int) -> None:
    async with world(level) as there:
        producer = there.producer(max_block_ms=2000, request_timeout_ms=500)
        await producer.start()
        rule = there.broker.faults.on("EndTxn", drop())
        first = producer.transaction()
        await first.begin()
        await first.send("t", b"one")
        stranger = contextvars.Context()
        # One begins to wait before it is late, the other after that.
        early = asyncio.create_task(producer.transaction().begin(), context=stranger)
        with pytest.raises(OutcomeUnknown):
            await first.commit()
        late = asyncio.create_task(producer.transaction().begin())
        await asyncio.sleep(0.1)
        assert len(timers()) == 3  # theirs, and the one of all transactions
        late.cancel()
        await asyncio.wait([late])
        there.broker.faults.remove(rule)
        assert await first.outcome is COMMITTED
        await early
        await producer.close()
        assert timers() == []


async def test_transactions_share_one_timer() -> None:
    async with world() as there:
        producer = there.producer()
        await producer.start()
        for _ in range(30):
            async with producer.transaction() as tx:
                await tx.send("t", b"v")
                await tx.commit_offsets(GROUP, {T0: 1})
        assert len(timers()) == 1
        await producer.close()
        assert timers() == []
