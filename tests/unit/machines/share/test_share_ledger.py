from __future__ import annotations

from collections.abc import Sequence
from math import log2

import pytest
from hypothesis import given, strategies as st

from kafkaio._machines.share.acks import AckBatch, batches
from kafkaio._machines.share.leases import Lease
from kafkaio._machines.share.ledger import (
    RENEW,
    AckPlan,
    AckRange,
    AcquiredRange,
    ShareLedger,
)
from kafkaio._records._acquired import ACCEPT, FAILED, GAP, LOST, REJECT, RELEASE, STATE
from kafkaio._records.batch import Acquired
from kafkaio.errors import AcknowledgeFailed, LockLost, ProtocolError, UsageError
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.types import TopicPartition

TP, UP = TopicPartition("t", 0), TopicPartition("u", 0)
NODE, LOCK = 1, 10.0


class Log:
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.notified: list[int] = []
        self.confirms: list[AckRange] = []
        self.failures: list[AcknowledgeFailed] = []
        self.losses: list[LockLost] = []
        self.renewals: list[tuple[int, int]] = []

    def notify(self, node_id: int) -> None:
        self.notified.append(node_id)

    def confirmed(self, acquired: Acquired, ranges: Sequence[AckRange]) -> None:
        del acquired
        self.confirms += ranges

    def failed(self, acquired: Acquired, error: AcknowledgeFailed) -> None:
        del acquired
        self.failures.append(error)

    def lost(self, acquired: Acquired, error: LockLost) -> None:
        del acquired
        self.losses.append(error)

    def renewed(self, acquired: Acquired, first: int, last: int) -> None:
        del acquired
        self.renewals.append((first, last))


class Ledger(ShareLedger):
    """A ledger with its listener, and shorter calls."""

    def __init__(self, *, linger: float = 0.0, max_processing: float = 300.0) -> None:
        self.log = Log()
        super().__init__(self.log, linger=linger, max_processing=max_processing)

    def lock(
        self,
        *ranges: tuple[int, int],
        at: float = 0.0,
        tp: TopicPartition = TP,
        node: int = NODE,
        count: int = 1,
    ) -> tuple[Acquired, ...]:
        found = [AcquiredRange(first, last, count) for first, last in ranges]
        return self.acquired(node, tp, found, lock=LOCK, sent_at=at, now=at)

    def send(self, now: float, *, may_renew: bool = True) -> AckPlan:
        plan = self.plan(NODE, now, may_renew=may_renew)
        assert plan is not None
        return plan

    def has_nothing(self, now: float) -> bool:
        return self.plan(NODE, now, may_renew=True) is None


def accepted(first: int, last: int) -> AckRange:
    return AckRange(first, last, ACCEPT)


# ---- acquiring ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "ranges",
    [
        [(5, 4, 1)],
        [(-1, 3, 1)],
        [(5, 6, 1), (1, 2, 1)],
        [(1, 5, 1), (5, 6, 1)],
        [(0, 1, 0)],
        [(0, 1, -1)],
        [(0, 1, 2**15)],
        [(2**62, 2**62 + 1, 1)],
        [(0, 2**62, 1)],
        [(0, 2**23, 1), (2**24, 2**24 + 2**23, 1)],
    ],
)
def test_what_no_leader_can_have_acquired(ranges: list[tuple[int, int, int]]):
    ledger = Ledger()
    with pytest.raises(ProtocolError, match="t-0"):
        ledger.acquired(
            NODE,
            TP,
            [AcquiredRange(*each) for each in ranges],
            lock=LOCK,
            sent_at=0,
            now=0,
        )
    assert ledger.locked == 0
    assert ledger.next_expiry() is None


@pytest.mark.parametrize("late_by", [0.0, 20.0])
def test_an_answer_that_comes_when_its_locks_have_ended_locks_nothing(late_by: float):
    ledger = Ledger()
    (acquired,) = ledger.acquired(
        NODE,
        TP,
        [AcquiredRange(0, 9, 1)],
        lock=LOCK,
        sent_at=0.3,
        now=0.3 + LOCK + late_by,
    )
    assert not acquired.is_held(0)
    assert acquired.is_lost(9)
    assert ledger.held == 0  # it fades at the leader, which began later
    assert len(ledger.log.losses) == 1


def test_what_is_held_comes_once():
    ledger = Ledger()
    ledger.lock((0, 9))
    for count in (1, 0):
        with pytest.raises(ProtocolError):
            ledger.lock((20, 29), (9, 9), count=count)
    with pytest.raises(ProtocolError, match="9 to 9 as delivery 1, while 0 to 9"):
        ledger.lock((9, 9), (20, 29))
    assert ledger.locked == 10


def test_a_later_delivery_of_what_is_held_was_freed_by_the_leader():
    ledger = Ledger()
    (old,) = ledger.lock((0, 9))
    old.decide(4, ACCEPT)
    old.decide(8, ACCEPT)
    (new,) = ledger.lock((3, 6), count=2)
    assert ledger.locked == 6 + 4
    lost = [(e.first_offset, e.last_offset) for e in ledger.log.losses]
    assert lost == [(3, 3), (5, 6)]
    (failure,) = ledger.log.failures
    assert (failure.first_offset, failure.last_offset) == (4, 4)
    assert isinstance(failure, LockLost)
    with pytest.raises(UsageError, match="t-0 at offset 5"):
        old.decide(5, ACCEPT)
    new.decide(5, RELEASE)
    for ranges in [(AckRange(5, 5, RELEASE),), (accepted(8, 8),)]:
        plan = ledger.send(0.1)
        assert plan.ranges == {TP: ranges}
        ledger.answered(plan, {TP: 0}, 0.2, LOCK)


def test_a_partition_has_one_leader():
    ledger = Ledger()
    (old,) = ledger.lock((0, 9))
    (other,) = ledger.lock((0, 9), tp=UP)
    old.decide(0, ACCEPT)
    ledger.lock((3, 4), node=2, count=2)
    (loss,) = ledger.log.losses
    assert (loss.first_offset, loss.last_offset) == (1, 9)
    assert "broker 2 leads the partition now" in str(loss)
    assert len(ledger.log.failures) == 1
    assert (ledger.locked_at(NODE), ledger.locked_at(2)) == (10, 2)
    assert other.held == 10


def test_locks_count_until_they_have_ended_at_the_leader():
    ledger = Ledger()
    ledger.acquired(NODE, TP, [AcquiredRange(0, 9, 1)], lock=LOCK, sent_at=0.0, now=0.5)
    ledger.expire(10.0)
    assert len(ledger.log.losses) == 1
    assert (ledger.held, ledger.fading, ledger.locked_at(NODE)) == (0, 10, 10)
    # The leader has locked them before it answered, by 0.5.
    assert ledger.next_expiry() == 10.5
    ledger.expire(10.5)
    assert ledger.locked == 0
    assert ledger.log.notified == [NODE]  # there is room
    assert ledger.next_expiry() is None


def test_what_was_released_comes_again():
    ledger = Ledger()
    (old,) = ledger.lock((0, 9))
    old.decide_range(0, 4, RELEASE)
    ledger.answered(ledger.send(0.1), {TP: 0}, 0.2, LOCK)
    ledger.lock((0, 4), at=0.3, count=2)
    assert ledger.log.losses == ledger.log.failures == []
    assert ledger.locked == 10


# ---- what is sent ------------------------------------------------------------------


def test_decisions_linger_for_others():
    ledger = Ledger(linger=0.5)
    (acquired,) = ledger.lock((0, 9))
    assert ledger.next_send(NODE, 1.0, may_renew=False) is None
    acquired.decide(0, ACCEPT)
    acquired.decide(1, ACCEPT)
    assert ledger.log.notified == [NODE]  # once
    assert ledger.next_send(NODE, 1.0, may_renew=False) == 1.5
    assert ledger.next_send(NODE, 1.2, may_renew=False) == 1.5
    plan = ledger.send(1.2)  # other reasons may send it earlier
    assert plan.ranges == {TP: (accepted(0, 1),)}
    assert ledger.next_send(NODE, 1.2, may_renew=False) is None
    acquired.decide(2, ACCEPT)
    assert ledger.log.notified == [NODE, NODE]
    ledger.answered(plan, {TP: 0}, 1.3, LOCK)
    assert ledger.next_send(NODE, 1.3, may_renew=False) == 1.8
    assert ledger.locked == 8


def test_a_linger_is_shorter_than_a_lock():
    ledger = Ledger(linger=1e6)
    (acquired,) = ledger.lock((0, 9))
    acquired.decide(0, ACCEPT)
    due = ledger.next_send(NODE, 1.0, may_renew=False)
    assert due is not None
    assert due < LOCK


def test_kinds_and_gaps():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 5))
    for offset, decision in enumerate([ACCEPT, ACCEPT, RELEASE, REJECT, GAP]):
        acquired.decide(offset, decision)
    plan = ledger.send(0.1)
    assert plan.ranges[TP] == (
        AckRange(0, 1, 1),
        AckRange(2, 2, 2),
        AckRange(3, 3, 3),
        AckRange(4, 4, 0),
    )
    ledger.answered(plan, {TP: 0}, 0.2, LOCK)
    assert tuple(ledger.log.confirms) == plan.ranges[TP]
    assert ledger.locked == ledger.held == 1


def test_neighbours_of_one_kind_are_one_range():
    ledger = Ledger()
    for acquired in ledger.lock(*((n, n) for n in range(50))):
        acquired.decide(acquired.first, ACCEPT)
    assert ledger.send(0.1).ranges == {TP: (accepted(0, 49),)}


def test_decisions_whose_lock_ends_soon_go_apart_and_first():
    ledger = Ledger()
    (old,) = ledger.lock((0, 9), at=0)
    (new,) = ledger.lock((10, 19), at=5)
    (other,) = ledger.lock((0, 9), at=5, tp=UP)
    for each in (old, new, other):
        each.decide_range(each.first, each.last, ACCEPT)
    plan = ledger.send(9.5)
    assert plan.ranges == {TP: (accepted(0, 9),), UP: (accepted(0, 9),)}
    ledger.answered(plan, {TP: 121, UP: 0}, 9.6, LOCK)
    found = []
    while (plan := ledger.plan(NODE, 9.6, may_renew=False)) is not None:
        code = 121 if plan.ranges[TP][0].first < 10 else 0
        ledger.answered(plan, {TP: code}, 9.6, LOCK)
        found.append(code)
    assert found.count(0) == 1  # voided by none of the others
    assert ledger.locked == 0


def test_what_has_run_out_is_not_sent():
    ledger = Ledger()
    (old,) = ledger.lock((0, 9), at=0)
    (new,) = ledger.lock((10, 19), at=5)
    old.decide(3, ACCEPT)
    new.decide(13, ACCEPT)
    assert ledger.next_expiry() == 10
    plan = ledger.send(10.0)
    assert plan.ranges == {TP: (accepted(13, 13),)}
    (failure,) = ledger.log.failures
    assert isinstance(failure, LockLost)
    assert "t-0, offset 3: not acknowledged: the lock has run out" in str(failure)
    assert [(e.first_offset, e.last_offset) for e in ledger.log.losses] == [
        (0, 2),
        (4, 9),
    ]
    assert set(old.states) == {LOST}
    assert old.lost_because == "the lock has run out"
    assert ledger.next_expiry() == 15
    with pytest.raises(UsageError, match="its lock is gone"):
        old.decide(0, ACCEPT)


def test_many_runs_take_several_requests():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 30_000))
    for offset in range(0, 30_000, 2):
        acquired.decide(offset, ACCEPT)
    sizes = []
    while ledger.locked > 15_001:
        plan = ledger.send(0.1)
        sizes.append(len(plan.ranges[TP]))
        ledger.answered(plan, {TP: 0}, 0.1, LOCK)
    assert sizes == [5_000] * 3


# ---- answers -----------------------------------------------------------------------


@pytest.mark.parametrize("lost", [[0], [499], [250, 251], [0, 100, 200, 300, 400], []])
def test_121_is_halved_until_the_lost_offsets_are_known(lost: list[int]):
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 499))
    acquired.decide_range(0, 499, ACCEPT)
    requests = 0
    while (plan := ledger.plan(NODE, 0.1, may_renew=True)) is not None:
        requests += 1
        ((first, last, _),) = plan.ranges[TP]
        is_void = any(first <= each <= last for each in lost)
        ledger.answered(plan, {TP: 121 if is_void else 0}, 0.1, LOCK)
    assert [e.first_offset for e in ledger.log.failures] == lost
    assert sum(last - first + 1 for first, last, _ in ledger.log.confirms) == 500 - len(
        lost
    )
    assert ledger.locked == 0
    assert requests <= 1 + 2 * len(lost) * (1 + log2(500))


@pytest.mark.parametrize(
    "code",
    [
        E.NOT_LEADER_OR_FOLLOWER,
        E.FENCED_LEADER_EPOCH,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_ID,
    ],
)
def test_a_leader_that_has_moved_has_no_locks(code: E):
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    (other,) = ledger.lock((0, 9), tp=UP)
    acquired.decide(0, ACCEPT)
    other.decide(0, ACCEPT)
    ledger.answered(ledger.send(0.1), {TP: code, UP: 0}, 0.2, LOCK)
    (failure,) = ledger.log.failures
    assert isinstance(failure, LockLost)
    (loss,) = ledger.log.losses
    assert (loss.topic_partition, loss.first_offset, loss.last_offset) == (TP, 1, 9)
    assert ledger.locked == 9
    assert ledger.log.confirms == [accepted(0, 0)]


@pytest.mark.parametrize(
    "code",
    [E.REQUEST_TIMED_OUT, E.COORDINATOR_NOT_AVAILABLE, E.UNKNOWN_SERVER_ERROR],
)
def test_what_may_pass_is_sent_again_while_the_lock_holds(code: E):
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    acquired.decide(0, ACCEPT)
    now, sent = 0.0, []
    while (due := ledger.next_send(NODE, now, may_renew=False)) is not None:
        now = due
        if (plan := ledger.plan(NODE, now, may_renew=False)) is None:
            break
        sent.append(now)
        assert plan.ranges == {TP: (accepted(0, 0),)}
        ledger.answered(plan, {TP: code}, now, LOCK)
    assert 8 < len(sent) < 20
    assert sent[-1] < LOCK
    (failure,) = ledger.log.failures
    assert isinstance(failure, LockLost)


def test_a_final_refusal_has_failed():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    acquired.decide(0, ACCEPT)
    ledger.answered(ledger.send(0.1), {TP: E.TOPIC_AUTHORIZATION_FAILED}, 0.2, LOCK)
    (failure,) = ledger.log.failures
    assert not isinstance(failure, LockLost)
    assert "TOPIC_AUTHORIZATION_FAILED" in str(failure)
    assert acquired.states[0] == FAILED
    assert ledger.locked == ledger.held == 9
    with pytest.raises(UsageError, match="did not confirm"):
        acquired.decide(0, ACCEPT)


@pytest.mark.parametrize("how", ["unanswered", "omitted"])
def test_without_an_answer_it_is_asked_again_apart(how: str):
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    acquired.decide_range(0, 3, ACCEPT)
    plan = ledger.send(0.1)
    if how == "unanswered":
        ledger.unanswered(plan, 1.0)
    else:
        ledger.answered(plan, {UP: 0}, 1.0, LOCK)
    acquired.decide(5, ACCEPT)
    first, second = ledger.send(1.0), None
    ledger.answered(first, {TP: 0}, 1.1, LOCK)
    second = ledger.send(1.2)
    assert {first.ranges[TP], second.ranges[TP]} == {
        (accepted(0, 3),),
        (accepted(5, 5),),
    }
    ledger.answered(second, {TP: 0}, 1.3, LOCK)
    assert ledger.locked == 5
    assert ledger.log.failures == []


def test_121_after_doubt_says_nothing():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    acquired.decide_range(0, 3, ACCEPT)
    ledger.unanswered(ledger.send(0.1), 1.0)
    ledger.answered(ledger.send(1.0), {TP: 121}, 1.1, LOCK)
    assert ledger.has_nothing(1.1)
    (failure,) = ledger.log.failures
    assert not isinstance(failure, LockLost)
    assert (failure.first_offset, failure.last_offset) == (0, 3)
    assert "unknown" in str(failure)
    assert ledger.locked == 6


def test_a_release_in_doubt_that_comes_again_has_worked():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    acquired.decide_range(0, 3, RELEASE)
    acquired.decide_range(4, 5, ACCEPT)
    ledger.unanswered(ledger.send(0.1), 1.0)
    ledger.lock((2, 4), at=1.1, count=2)
    assert ledger.log.confirms == [AckRange(2, 3, RELEASE)]
    (failure,) = ledger.log.failures
    assert (failure.first_offset, failure.last_offset) == (4, 4)
    # The rest is still asked for.
    assert ledger.send(1.2).ranges == {TP: (AckRange(0, 1, RELEASE), accepted(5, 5))}


def test_the_last_request_is_not_repeated():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    acquired.decide_range(0, 9, ACCEPT)
    ledger.unanswered(ledger.send(0.1), 1.0, is_last=True)
    assert ledger.locked == 0
    (failure,) = ledger.log.failures
    assert "unknown" in str(failure)


@pytest.mark.parametrize(
    "code", [E.SHARE_SESSION_NOT_FOUND, E.INVALID_SHARE_SESSION_EPOCH]
)
def test_a_session_that_ended_is_no_loss(code: E):
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    acquired.decide_range(0, 9, ACCEPT)
    ledger.refused(ledger.send(0.1), 0.2, code)
    assert ledger.next_send(NODE, 0.2, may_renew=False) == 0.2
    plan = ledger.send(0.2)
    assert plan.ranges == {TP: (accepted(0, 9),)}
    # The next time with a pause.
    ledger.refused(plan, 0.3, code)
    due = ledger.next_send(NODE, 0.3, may_renew=False)
    assert due is not None
    assert due > 0.3


def test_a_request_that_is_refused_for_good_has_failed():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    acquired.decide_range(0, 3, ACCEPT)
    ledger.refused(ledger.send(0.1), 0.2, E.GROUP_AUTHORIZATION_FAILED)
    (failure,) = ledger.log.failures
    assert "GROUP_AUTHORIZATION_FAILED" in str(failure)
    assert ledger.has_nothing(0.3)


def test_a_lost_connection_frees_everything_at_once():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    (elsewhere,) = ledger.lock((0, 4), tp=UP, node=2)
    acquired.decide_range(0, 3, ACCEPT)
    plan = ledger.send(0.1)
    acquired.decide(4, ACCEPT)
    ledger.connection_lost(NODE, "the connection is gone", 0.2)
    sent, unsent = ledger.log.failures
    assert not isinstance(sent, LockLost)  # it may count
    assert isinstance(unsent, LockLost)
    (loss,) = ledger.log.losses
    assert (loss.first_offset, loss.last_offset) == (5, 9)
    assert (ledger.locked_at(NODE), ledger.locked_at(2)) == (0, 5)
    ledger.answered(plan, {TP: 0}, 0.3, LOCK)  # late, and ignored
    assert ledger.log.confirms == []
    assert elsewhere.held == 5


def test_release_all():
    ledger = Ledger()
    (first, second) = ledger.lock((0, 9), (20, 29))
    first.decide(3, ACCEPT)
    ledger.release_all()
    assert ledger.held == second.held == 0
    plan = ledger.send(0.1)
    assert plan.ranges[TP] == (
        AckRange(0, 2, RELEASE),
        accepted(3, 3),
        AckRange(4, 9, RELEASE),
        AckRange(20, 29, RELEASE),
    )
    ledger.release_all()
    ledger.answered(plan, {TP: 0}, 0.2, LOCK)
    assert ledger.locked == 0
    assert [state & STATE for state in first.states[:4]] == [2, 2, 2, 1]


# ---- renewal -----------------------------------------------------------------------


def test_locks_are_renewed_at_half_time_and_count_from_the_sending():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    acquired.handed_to = 10
    acquired.decide(4, ACCEPT)
    ledger.answered(ledger.send(0.1), {TP: 0}, 0.2, LOCK)
    assert ledger.next_send(NODE, 1.0, may_renew=True) == 5.0
    assert ledger.next_send(NODE, 1.0, may_renew=False) is None
    assert ledger.has_nothing(4.9)
    plan = ledger.send(5.0)
    assert plan.renews
    assert plan.ranges == {TP: (AckRange(0, 3, RENEW), AckRange(5, 9, RENEW))}
    ledger.answered(plan, {TP: 0}, 6.0, 20.0)
    assert acquired.deadline == 25.0
    assert ledger.log.renewals == [(0, 3), (5, 9)]
    assert ledger.next_send(NODE, 6.0, may_renew=True) == 15.0
    assert ledger.next_expiry() == 25.0


@pytest.mark.parametrize("jitter", [0.0, 0.25, 0.99])
def test_consumers_renew_at_different_times(jitter: float):
    ledger = ShareLedger(Log(), linger=0, max_processing=300, jitter=jitter)
    ledger.acquired(NODE, TP, [AcquiredRange(0, 9, 1)], lock=LOCK, sent_at=0, now=0)
    due = ledger.next_send(NODE, 0, may_renew=True)
    assert due == pytest.approx(4 + 2 * jitter)


def test_a_renewal_on_its_way_keeps_no_lock_that_has_ended_by_the_clock():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    acquired.decide(0, ACCEPT)
    ledger.answered(ledger.send(0.1), {TP: 0}, 0.2, LOCK)
    plan = ledger.send(9.0)
    ledger.expire(10.0)
    assert acquired.is_lost(3)
    assert ledger.locked == 0
    assert ledger.next_expiry() is None
    # But it was in time: what nobody works on is given back at once.
    ledger.answered(plan, {TP: 0}, 12.0, LOCK)
    assert ledger.locked == 9
    plan = ledger.send(12.0)
    assert plan.ranges == {TP: (AckRange(1, 9, RELEASE),)}
    ledger.answered(plan, {TP: 0}, 12.1, LOCK)
    assert ledger.locked == 0
    assert len(ledger.log.losses) == 1


def test_a_renewal_in_time_keeps_the_locks():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    plan = ledger.send(9.0)
    acquired.decide(0, ACCEPT)
    ledger.answered(plan, {TP: 0}, 9.9, LOCK)
    ledger.expire(12.0)
    assert acquired.deadline == 19.0
    assert ledger.send(12.0).ranges == {TP: (accepted(0, 0),)}
    assert ledger.log.losses == []


@pytest.mark.parametrize("how", ["unanswered", "refused", "timed out"])
def test_a_renewal_that_fails_is_tried_again(how: str):
    ledger = Ledger()
    ledger.lock((0, 9))
    plan = ledger.send(5.0)
    if how == "unanswered":
        ledger.unanswered(plan, 6.0)
    elif how == "refused":
        ledger.refused(plan, 6.0, E.SHARE_SESSION_NOT_FOUND)
    else:
        ledger.answered(plan, {TP: E.REQUEST_TIMED_OUT}, 6.0, LOCK)
    assert ledger.next_expiry() == 10
    assert ledger.send(6.0).renews
    assert ledger.has_nothing(6.0)


def test_renewals_go_apart_until_the_leader_has_renewed():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    acquired.decide(0, ACCEPT)
    plans = [ledger.send(5.0)]
    ledger.answered(plans[0], {TP: 0}, 5.1, LOCK)
    plans.append(ledger.send(5.1))
    ledger.answered(plans[1], {TP: 0}, 5.2, LOCK)
    assert sorted(plan.renews for plan in plans) == [False, True]
    acquired.decide(1, ACCEPT)
    plan = ledger.send(11.0)
    assert plan.ranges == {TP: (accepted(1, 1), AckRange(2, 9, RENEW))}


def test_a_fetch_carries_no_renewals():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    ledger.answered(ledger.send(5.0), {TP: 0}, 5.1, LOCK)
    acquired.decide(0, ACCEPT)
    plan = ledger.send(11.0, may_renew=False)
    assert plan.ranges == {TP: (accepted(0, 0),)}
    ledger.answered(plan, {TP: 0}, 11.1, LOCK)
    assert ledger.send(11.1).renews


def test_121_of_a_group_that_forbids_renewals_loses_nothing():
    # Kafka 4.3 and 4.4 answer 121, whatever else goes with the renewals.
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 99))
    requests = 0
    while (plan := ledger.plan(NODE, 5.0, may_renew=True)) is not None:
        requests += 1
        ledger.answered(plan, {TP: 121 if plan.renews else 0}, 5.0, LOCK)
    assert requests < 15
    assert not ledger.can_renew(NODE, 5.0)
    assert acquired.held == 100
    acquired.decide_range(0, 49, ACCEPT)
    ledger.answered(ledger.send(6.0), {TP: 0}, 6.0, LOCK)
    ledger.expire(10.0)
    (loss,) = ledger.log.losses
    assert (loss.first_offset, loss.last_offset) == (50, 99)
    # The config may change.
    assert ledger.can_renew(NODE, 70.0)


def test_a_group_that_forbids_renewals_while_it_runs_voids_no_decision():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    ledger.answered(ledger.send(5.0), {TP: 0}, 5.0, LOCK)
    acquired.decide_range(0, 4, ACCEPT)
    plan = ledger.send(10.0)
    assert len(plan.ranges[TP]) == 2
    while plan is not None:
        ledger.answered(plan, {TP: 121 if plan.renews else 0}, 10.0, LOCK)
        plan = ledger.plan(NODE, 10.0, may_renew=True)
    assert ledger.log.confirms == [accepted(0, 4)]
    assert ledger.log.failures == ledger.log.losses == []


@pytest.mark.parametrize("is_top", [False, True])
@pytest.mark.parametrize("code", [E.INVALID_REQUEST, E.UNSUPPORTED_VERSION])
def test_a_broker_that_knows_no_renewals(code: E, is_top: bool):
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    plan = ledger.send(5.0)
    assert plan.renews
    if is_top:
        ledger.refused(plan, 5.1, code)
    else:
        ledger.answered(plan, {TP: code}, 5.1, LOCK)
    assert not ledger.can_renew(NODE, 1e9)
    assert ledger.next_send(NODE, 6.0, may_renew=True) in {None, float("inf")}
    ledger.expire(10.0)
    assert set(acquired.states) == {LOST}


def test_renewal_ends_some_time_after_the_hand_out():
    ledger = Ledger(max_processing=12.0)
    (acquired,) = ledger.lock((0, 9))
    acquired.handed_to = 3  # the rest is handed out later
    renewed = []
    now = 0.0
    while (due := ledger.next_send(NODE, now, may_renew=True)) is not None:
        now = due
        if now > 8:
            acquired.handed_to = 10
        plan = ledger.plan(NODE, now, may_renew=True)
        if plan is None:
            break
        renewed.append((now, plan.ranges[TP]))
        ledger.answered(plan, {TP: 0}, now, LOCK)
    assert [ranges[0].first for _, ranges in renewed] == [0, 0, 0, 3]
    assert renewed[-1] == (20.0, (AckRange(3, 9, RENEW),))
    # Each runs out by itself.
    ledger.expire(25.0)
    assert [(e.first_offset, e.last_offset) for e in ledger.log.losses] == [(0, 2)]
    assert acquired.deadline == 30.0
    ledger.expire(30.0)
    assert ledger.locked == 0


def test_what_is_never_handed_out_is_not_renewed_for_ever():
    ledger = Ledger(max_processing=12.0)
    ledger.lock((0, 9))
    now = 0.0
    while (due := ledger.next_send(NODE, now, may_renew=True)) is not None:
        now = due
        plan = ledger.plan(NODE, now, may_renew=True)
        if plan is None:
            break
        ledger.answered(plan, {TP: 0}, now, LOCK)
    ledger.expire(now + LOCK)
    assert now + LOCK < 30
    assert ledger.locked == 0


@pytest.mark.parametrize(
    ("said", "kept"), [(0.0, 30.0), (-1.0, 30.0), (1e-6, 0.1), (1e12, 3600.0)]
)
def test_the_duration_of_a_lock_has_bounds(said: float, kept: float):
    ledger = Ledger()
    (acquired,) = ledger.acquired(
        NODE, TP, [AcquiredRange(0, 1, 1)], lock=said, sent_at=1.0, now=1.0
    )
    assert acquired.deadline == 1.0 + kept


# ---- the wire ----------------------------------------------------------------------


def test_neighbours_become_one_batch_where_that_is_smaller():
    assert batches([]) == []
    assert batches([AckRange(0, 0, 1), AckRange(1, 1, 2)]) == [AckBatch(0, 1, (1, 2))]
    assert batches([AckRange(0, 999, 1), AckRange(1000, 1999, 2)]) == [
        AckBatch(0, 999, (1,)),
        AckBatch(1000, 1999, (2,)),
    ]
    assert batches([AckRange(0, 0, 1), AckRange(2, 2, 1)]) == [
        AckBatch(0, 0, (1,)),
        AckBatch(2, 2, (1,)),
    ]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 30), st.integers(0, 4)), max_size=30
    )
)
def test_batches_say_the_same_in_fewer_bytes(parts: list[tuple[int, int, int]]):
    ranges, at = [], 0
    for gap, count, kind in parts:
        ranges.append(AckRange(at + gap, at + gap + count - 1, kind))
        at += gap + count
    found = batches(ranges)
    said = {
        offset: batch.kinds[(offset - batch.first) if len(batch.kinds) > 1 else 0]
        for batch in found
        for offset in range(batch.first, batch.last + 1)
    }
    assert said == {n: kind for a, b, kind in ranges for n in range(a, b + 1)}
    assert all(len(each.kinds) in {1, each.last - each.first + 1} for each in found)
    assert sum(18 + len(each.kinds) for each in found) <= 19 * len(ranges)


def test_whether_a_lock_has_ended_is_asked_of_the_clock() -> None:
    moment = 0.0
    ledger = ShareLedger(Log(), linger=0, max_processing=300, clock=lambda: moment)
    ranges = [AcquiredRange(0, 9, 1)]
    (acquired,) = ledger.acquired(NODE, TP, ranges, lock=LOCK, sent_at=0.0, now=0.0)
    assert not acquired.is_lost(3)
    moment = LOCK - 0.1
    assert not acquired.is_lost(3)
    moment = LOCK
    # Nobody has called `expire`: the loop was blocked.
    assert acquired.is_lost(3)
    assert acquired.states[3] & STATE != LOST
    ledger.expire(moment)
    assert acquired.states[3] & STATE == LOST
    assert acquired.is_lost(3)
    without = Ledger().lock((0, 9))[0]
    assert not without.is_lost(3)


# ---- the rest ----------------------------------------------------------------------


def test_their_texts_say_how_they_stand():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    assert repr(ledger) == "<ShareLedger 10 locked | 1 ranges>"
    lease = Lease(acquired, TP, 0.0, LOCK)
    assert repr(lease).startswith("<Lease ")
    assert "0 to 9 | 10 open" in repr(lease)


def test_of_a_leader_without_locks_there_is_nothing():
    ledger = Ledger()
    assert ledger.locked_at(7) == 0
    assert ledger.can_renew(7, 0.0)
    assert ledger.longest_lock == 30.0
    assert ledger.plan(7, 0.0, may_renew=True) is None
    assert ledger.next_send(7, 0.0, may_renew=True) is None
    ledger.connection_lost(7, "gone", 0.0)
    ledger.partition_lost(7, TP, "gone", 0.0)
    ledger.acquired(7, TP, [], lock=LOCK, sent_at=0.0, now=0.0)
    assert ledger.longest_lock == LOCK
    (acquired,) = ledger.lock((0, 9))
    ledger.connection_lost(NODE, "gone", 0.0)
    ledger.decided(acquired)  # too late
    assert ledger.log.notified == []


def test_a_later_delivery_cuts_what_waits_in_two():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    acquired.decide_range(0, 9, ACCEPT)
    ledger.refused(ledger.send(0.1), 0.2, E.SHARE_SESSION_NOT_FOUND)
    ledger.lock((3, 4), at=0.3, count=2)
    plan = ledger.send(0.4)
    assert plan.ranges == {TP: (accepted(0, 2), accepted(5, 9))}
    ledger.answered(plan, {TP: 0}, 0.5, LOCK)
    assert ledger.locked == 2


def test_two_ranges_may_begin_at_one_offset():
    ledger = Ledger()
    (old,) = ledger.lock((0, 9))
    old.decide_range(0, 4, RELEASE)
    ledger.answered(ledger.send(0.1), {TP: 0}, 0.2, LOCK)
    (new,) = ledger.lock((0, 4), at=0.3, count=2)
    for acquired in (old, new):
        acquired.decide_range(0, 9, ACCEPT)
        ledger.answered(ledger.send(0.4), {TP: 0}, 0.5, LOCK)
    assert ledger.locked == 0


def test_decisions_do_not_wait_for_renewals_that_a_fetch_cannot_carry():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    ledger.answered(ledger.send(5.0), {TP: 0}, 5.1, LOCK)
    acquired.decide(0, ACCEPT)
    mixed = ledger.send(11.0)
    assert len(mixed.ranges[TP]) == 2
    # Only the second half of it waits for another request.
    ledger.answered(mixed, {TP: 121}, 11.1, LOCK)
    plan = ledger.send(11.1, may_renew=False)
    assert plan.ranges == {TP: (accepted(0, 0),)}
    ledger.answered(plan, {TP: 0}, 11.2, LOCK)
    assert ledger.next_send(NODE, 11.2, may_renew=False) is None
    assert ledger.send(11.2).renews


def test_many_settled_ranges_leave_nothing_behind():
    ledger = Ledger()
    for number in range(500):
        (acquired,) = ledger.lock((number, number), at=number * 0.001)
        acquired.decide(number, ACCEPT)
        ledger.answered(ledger.send(number * 0.001), {TP: 0}, number * 0.001, LOCK)
    assert ledger.locked == 0
    entries = (
        ledger._expiries._entries,
        ledger._leaders[NODE].renewals._entries,
    )
    assert all(len(each) < 100 for each in entries)


def test_renewals_beyond_what_a_request_may_have_follow_with_the_next():
    ledger = Ledger()
    for acquired in ledger.lock(*((2 * n, 2 * n) for n in range(5_003))):
        acquired.handed_to = acquired.last + 1
    sizes = []
    while (plan := ledger.plan(NODE, 5.0, may_renew=True)) is not None:
        sizes.append(len(plan.ranges[TP]))
        ledger.answered(plan, {TP: 0}, 5.0, LOCK)
    assert sizes == [5_000, 3]


def test_a_mixed_group_that_a_fetch_takes_leaves_its_renewals():
    ledger = Ledger()
    (acquired,) = ledger.lock((0, 9))
    ledger.answered(ledger.send(5.0), {TP: 0}, 5.1, LOCK)
    # Two groups: the one that ends first goes first, and the other one is mixed.
    (late,) = ledger.lock((20, 29), at=6.5)
    acquired.decide(0, ACCEPT)
    late.decide(20, ACCEPT)
    plan = ledger.send(14.2)
    assert plan.ranges[TP][0] == accepted(0, 0)
    ledger.answered(plan, {TP: 0}, 14.3, LOCK)
    plan = ledger.send(14.3, may_renew=False)
    assert plan.ranges == {TP: (accepted(20, 20),)}
    ledger.answered(plan, {TP: 0}, 14.4, LOCK)
    assert ledger.send(14.4).renews


def test_the_clock_says_whether_a_lock_has_ended():
    now = [0.0]
    ledger = ShareLedger(Log(), linger=0, max_processing=300, clock=lambda: now[0])
    (acquired,) = ledger.acquired(
        NODE, TP, [AcquiredRange(0, 9, 1)], lock=LOCK, sent_at=0, now=0
    )
    assert not ledger.has_ended(acquired, 3)
    now[0] = 10.0
    assert ledger.has_ended(acquired, 3)
    ledger.expire(10.0)
    assert not ledger.has_ended(acquired, 3)  # it is known to be lost


def test_a_slack_that_is_too_short_for_the_clock_keeps_nothing_locked() -> None:
    ledger = Ledger()
    # The answer came so soon that 10.0 and the slack are 10.0.
    ledger.acquired(
        NODE, TP, [AcquiredRange(0, 0, 1)], lock=LOCK, sent_at=0.0, now=7e-227
    )
    ledger.expire(LOCK)
    assert ledger.log.losses
    assert ledger.locked == 0
    assert ledger.next_expiry() is None
