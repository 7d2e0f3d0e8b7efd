"""Futures, flush and counts of acknowledgements, above a ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from kafkaio._machines.share.ledger import AcquiredRange, ShareLedger
from kafkaio._records.batch import ACCEPT, GAP, REJECT, RELEASE, Acquired
from kafkaio._runtime.observer import AcknowledgedPart, Observer, guarded
from kafkaio._share.acknowledging import Acknowledgements
from kafkaio.errors import (
    AcknowledgeFailed,
    ClosedError,
    KafkaError,
    LockLost,
    RequestTimeout,
)
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.types import TopicPartition

TP = TopicPartition("jobs", 0)
OTHER = TopicPartition("jobs", 1)
LEADER = 1


class Reports(Observer):
    def __init__(self) -> None:
        self.seen: list[object] = []

    def records_acknowledged(
        self,
        group: str,
        node_id: int,
        seconds: float,
        parts: Mapping[TopicPartition, AcknowledgedPart],
    ) -> None:
        self.seen.append((group, node_id, seconds, dict(parts)))

    def acknowledgement_failed(
        self,
        group: str,
        partition: TopicPartition,
        first_offset: int,
        last_offset: int,
        error: AcknowledgeFailed,
    ) -> None:
        self.seen.append(("failed", partition, first_offset, last_offset, error))

    def lock_lost(
        self,
        group: str,
        partition: TopicPartition,
        first_offset: int,
        last_offset: int,
        error: LockLost,
    ) -> None:
        self.seen.append(("lost", partition, first_offset, last_offset, error))

    def locks_renewed(
        self, group: str, node_id: int, partition: TopicPartition, records: int
    ) -> None:
        self.seen.append(("renewed", partition, records))


class Bench:
    """A ledger with its listener, and a leader that answers when it is told to."""

    def __init__(self) -> None:
        self.reports = Reports()
        self.notified: list[int] = []
        self.acks = Acknowledgements(
            "workers", guarded(self.reports), self.notified.append
        )
        self.ledger = ShareLedger(self.acks, linger=0.0, max_processing=100.0)

    def acquire(self, last: int = 9, tp: TopicPartition = TP) -> Acquired:
        ranges = [AcquiredRange(0, last, 1)]
        (acquired,) = self.ledger.acquired(
            LEADER, tp, ranges, lock=30.0, sent_at=0.0, now=0.0
        )
        return acquired

    def answer(
        self, code: int = 0, at: float = 1.0, *, may_renew: bool = False
    ) -> None:
        plan = self.ledger.plan(LEADER, at, may_renew=may_renew)
        assert plan is not None
        self.ledger.answered(plan, dict.fromkeys(plan.ranges, code), at, 30.0)
        self.acks.report(LEADER, 0.25)


async def settled(future: asyncio.Future[None]) -> None:
    async with asyncio.timeout(5):
        await future


async def test_a_record_is_acked_when_the_leader_has_answered() -> None:
    bench = Bench()
    acquired = bench.acquire()
    waiting = asyncio.ensure_future(bench.acks.acked(acquired, 3))
    other = asyncio.ensure_future(bench.acks.acked(acquired, 4))
    await asyncio.sleep(0)
    is_awaited = bench.acks.is_awaited
    assert is_awaited
    acquired.decide(3, ACCEPT)
    assert bench.notified == [LEADER]
    await asyncio.sleep(0)
    assert not waiting.done()
    bench.answer()
    await settled(waiting)
    other.cancel()
    await asyncio.sleep(0)
    acquired.decide(4, ACCEPT)
    bench.answer()
    assert not bench.acks.is_awaited
    # Asked for afterwards, it is done at once.
    await asyncio.wait_for(bench.acks.acked(acquired, 3), 1)


async def test_a_record_whose_lock_is_gone_is_not_acked() -> None:
    bench = Bench()
    acquired = bench.acquire(1)
    acquired.decide(0, ACCEPT)
    waiting = [asyncio.ensure_future(bench.acks.acked(acquired, n)) for n in (0, 1)]
    await asyncio.sleep(0)
    bench.ledger.connection_lost(LEADER, "the connection was lost", 2.0)
    for each in waiting:
        with pytest.raises(LockLost, match="the connection was lost"):
            await settled(each)
    with pytest.raises(LockLost, match="jobs-0 at offset 1 did not count"):
        await bench.acks.acked(acquired, 1)
    kinds = [each[0] for each in bench.reports.seen if isinstance(each, tuple)]
    assert kinds == ["failed", "lost"]
    assert (bench.acks.failed_count, bench.acks.lost_count) == (1, 1)


async def test_flush_waits_for_what_was_decided_and_for_nothing_else() -> None:
    bench = Bench()
    acquired = bench.acquire()
    acquired.decide(0, ACCEPT)
    flush = asyncio.ensure_future(bench.acks.flush(bench.ledger.live, 10))
    await asyncio.sleep(0)
    plan = bench.ledger.plan(LEADER, 1.0, may_renew=False)
    assert plan is not None
    acquired.decide(1, ACCEPT)  # after the call
    await asyncio.sleep(0)
    assert not flush.done()
    bench.ledger.answered(plan, {TP: 0}, 1.0, 30.0)
    await settled(flush)
    assert bench.ledger.locked == 9


async def test_flush_without_decisions_returns_at_once() -> None:
    bench = Bench()
    bench.acquire()
    await asyncio.wait_for(bench.acks.flush(bench.ledger.live, 10), 1)
    assert await bench.acks.commit(bench.ledger.live, 10) == {}


async def test_flush_raises_what_failed_and_what_failed_before_once() -> None:
    bench = Bench()
    acquired = bench.acquire(0)
    acquired.decide(0, ACCEPT)
    bench.answer(E.INVALID_RECORD_STATE)
    with pytest.raises(LockLost, match="no lock"):
        await bench.acks.flush(bench.ledger.live, 10)
    await bench.acks.flush(bench.ledger.live, 10)


async def test_commit_has_a_result_for_each_partition() -> None:
    bench = Bench()
    good, bad = bench.acquire(0), bench.acquire(0, OTHER)
    good.decide(0, ACCEPT)
    bad.decide(0, ACCEPT)
    commit = asyncio.ensure_future(bench.acks.commit(bench.ledger.live, 10))
    await asyncio.sleep(0)
    plan = bench.ledger.plan(LEADER, 1.0, may_renew=False)
    assert plan is not None
    codes = {TP: 0, OTHER: E.INVALID_RECORD_STATE.value}
    bench.ledger.answered(plan, codes, 1.0, 30.0)
    async with asyncio.timeout(5):
        results = await commit
    assert results[TP] is None
    assert isinstance(results[OTHER], LockLost)


async def test_what_has_no_answer_in_time() -> None:
    bench = Bench()
    acquired = bench.acquire()
    for offset in range(3):
        acquired.decide(offset, ACCEPT)
    with pytest.raises(RequestTimeout, match="3 acknowledgements of jobs-0"):
        await bench.acks.flush(bench.ledger.live, 0.01)
    assert not bench.acks.is_awaited
    bench.answer()
    await bench.acks.flush(bench.ledger.live, 10)


async def test_a_cancelled_flush_takes_nothing() -> None:
    bench = Bench()
    acquired = bench.acquire(0)
    acquired.decide(0, ACCEPT)
    flush = asyncio.ensure_future(bench.acks.flush(bench.ledger.live, 10))
    await asyncio.sleep(0)
    flush.cancel()
    await asyncio.wait([flush])
    bench.answer(E.INVALID_RECORD_STATE)
    with pytest.raises(AcknowledgeFailed):
        await bench.acks.flush(bench.ledger.live, 10)


async def test_the_end_fails_whatever_waits() -> None:
    def why() -> KafkaError:
        return ClosedError("the share consumer is closed")

    bench = Bench()
    acquired = bench.acquire(1)
    acquired.decide(0, ACCEPT)
    waiting = [
        asyncio.ensure_future(bench.acks.flush(bench.ledger.live, 10)),
        asyncio.ensure_future(bench.acks.acked(acquired, 0)),
    ]
    await asyncio.sleep(0)
    bench.acks.end(why)
    for each in waiting:
        with pytest.raises(ClosedError):
            await settled(each)
    with pytest.raises(ClosedError):
        await bench.acks.acked(acquired, 1)
    with pytest.raises(ClosedError):
        await bench.acks.flush(bench.ledger.live, 10)


async def test_counts_and_reports_say_what_became_of_records() -> None:
    bench = Bench()
    acquired = bench.acquire()
    acquired.decide_range(0, 4, ACCEPT)
    acquired.decide_range(5, 6, RELEASE)
    acquired.decide_range(7, 7, REJECT)
    acquired.decide_range(8, 8, GAP)
    bench.answer()
    part = AcknowledgedPart(accepted=5, released=2, rejected=1, gaps=1)
    assert bench.reports.seen == [("workers", LEADER, 0.25, {TP: part})]
    acks = bench.acks
    assert (acks.accepted, acks.released, acks.rejected) == (5, 2, 1)
    bench.answer(at=20.0, may_renew=True)
    assert bench.reports.seen[1:] == [("renewed", TP, 1)]
    assert acks.renewed_count == 1
