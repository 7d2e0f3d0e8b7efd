"""The ledger against a small model of leaders, in whatever order things happen.

The model does what Kafka 4.3 does: the acknowledgements of a partition in one request
stand or fall together, a lock runs out, what is below the start of the partition is
acknowledged in silence, a renewal starts the lock anew, and a lost connection frees
all. Beyond that it frees single locks in silence, which the ledger only learns by 121.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkaio._machines.share.acks import batches
from kafkaio._machines.share.ledger import (
    RENEW,
    AckPlan,
    AckRange,
    AcquiredRange,
    ShareLedger,
)
from kafkaio._records._acquired import (
    ACCEPT,
    DONE,
    FAILED,
    GAP,
    HELD,
    LOST,
    REJECT,
    RELEASE,
    STATE,
    TAKEN,
)
from kafkaio._records.batch import Acquired
from kafkaio.errors import AcknowledgeFailed, LockLost
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.types import TopicPartition

LOCK = 10.0
NODES = (1, 2)
PARTITIONS = {
    1: (TopicPartition("t", 0), TopicPartition("t", 1)),
    2: (TopicPartition("t", 2),),
}
DECISIONS = st.sampled_from([ACCEPT, RELEASE, REJECT, GAP])
SIZE = 60


@dataclass
class Slot:
    """What the leader knows of one offset."""

    state: str = "available"  # or "locked", "elsewhere", "accepted", "rejected"
    until: float = 0.0
    deliveries: int = 0


@dataclass
class Log:
    """One partition at its leader."""

    slots: list[Slot] = field(default_factory=lambda: [Slot() for _ in range(SIZE)])

    @property
    def start(self) -> int:
        ended = {"accepted", "rejected"}
        return next((n for n, s in enumerate(self.slots) if s.state not in ended), SIZE)

    def expire(self, now: float) -> None:
        for slot in self.slots:
            if slot.state == "locked" and slot.until <= now:
                slot.state = "available"

    def acquire(self, most: int, now: float) -> list[AcquiredRange]:
        self.expire(now)
        found: list[AcquiredRange] = []
        for offset, slot in enumerate(self.slots):
            if most and slot.state == "available":
                most -= 1
                slot.state, slot.until = "locked", now + LOCK
                slot.deliveries += 1
                before = found[-1] if found else None
                fits = before and (before.last + 1, before.delivery_count) == (
                    offset,
                    slot.deliveries,
                )
                if before and fits:
                    found[-1] = before._replace(last=offset)
                else:
                    found.append(AcquiredRange(offset, offset, slot.deliveries))
        return found

    def acknowledge(self, ranges: tuple[AckRange, ...], now: float) -> int:
        self.expire(now)
        start = self.start
        changes: list[tuple[Slot, int]] = []
        for batch in batches(ranges):
            count = batch.last - batch.first + 1
            assert len(batch.kinds) in {1, count}
            kinds = batch.kinds if len(batch.kinds) == count else batch.kinds * count
            for offset, kind in zip(
                range(batch.first, batch.last + 1), kinds, strict=True
            ):
                slot = self.slots[offset]
                if offset < start:
                    continue
                if slot.state != "locked":
                    return E.INVALID_RECORD_STATE
                changes.append((slot, kind))
        for slot, kind in changes:
            if kind == RENEW:
                slot.until = now + LOCK
            else:
                slot.state = {RELEASE: "available", REJECT: "rejected"}.get(
                    kind, "accepted"
                )
        return E.NONE


class Listener:
    """Checks that each delivery of an offset ends once."""

    def __init__(self) -> None:
        self.ends: dict[tuple[Acquired, int], str] = {}

    def _end(self, acquired: Acquired, first: int, last: int, how: str) -> None:
        for offset in range(first, last + 1):
            assert (acquired, offset) not in self.ends, "it has ended before"
            self.ends[acquired, offset] = how

    def notify(self, node_id: int) -> None:
        assert node_id in NODES

    def confirmed(self, acquired: Acquired, ranges: list[AckRange]) -> None:
        for first, last, kind in ranges:
            self._end(acquired, first, last, "confirmed")
            for offset in range(first, last + 1):
                state = acquired.states[offset - acquired.first]
                assert state & DONE
                assert (state & STATE) % GAP == kind

    def failed(self, acquired: Acquired, error: AcknowledgeFailed) -> None:
        how = "lost" if isinstance(error, LockLost) else "unknown"
        self._end(acquired, error.first_offset, error.last_offset, how)
        state = acquired.states[error.first_offset - acquired.first]
        assert state == (LOST if how == "lost" else FAILED)

    def lost(self, acquired: Acquired, error: LockLost) -> None:
        self._end(acquired, error.first_offset, error.last_offset, "lost")
        assert acquired.states[error.first_offset - acquired.first] == LOST

    def renewed(self, acquired: Acquired, first: int, last: int) -> None:
        assert acquired.first <= first <= last <= acquired.last


class LedgerLaws(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.listener = Listener()
        self.ledger = ShareLedger(self.listener, linger=0.0, max_processing=35.0)
        self.logs = {tp: Log() for tps in PARTITIONS.values() for tp in tps}
        self.ranges: list[Acquired] = []
        # When the lock of each offset ends by our clock.
        self.ends: dict[tuple[Acquired, int], float] = {}
        self.latest: dict[tuple[TopicPartition, int], Acquired] = {}
        # What is in flight; with the answer, if the leader has it already.
        self.plans: dict[int, tuple[AckPlan, dict[TopicPartition, int] | None]] = {}
        self.may_renew = True

    # ---- what happens ----------------------------------------------------------------

    @rule(node=st.sampled_from(NODES), most=st.integers(1, 15), delay=st.floats(0, 3))
    def fetch(self, node: int, most: int, delay: float) -> None:
        if node in self.plans:
            return
        plan = self.send(node, may_renew=False)
        sent_at, self.now = self.now, self.now + delay
        codes = self.perform(plan, sent_at + delay / 2)
        if plan is not None:
            self.take(plan, codes)
        for tp in PARTITIONS[node]:
            found = self.logs[tp].acquire(most, sent_at + delay / 2)
            taken = self.ledger.acquired(
                node, tp, found, lock=LOCK, sent_at=sent_at, now=self.now
            )
            assert [(a.first, a.last, a.delivery_count) for a in taken] == found
            for acquired in taken:
                acquired.handed_to = acquired.last
                self.note(acquired, sent_at)

    @precondition(lambda self: self.ranges)
    @rule(data=st.data(), decision=DECISIONS)
    def decide(self, data: st.DataObject, decision: int) -> None:
        alive = [a for a in self.ranges if a.held]
        if alive:
            acquired = data.draw(st.sampled_from(alive))
            first = data.draw(st.integers(acquired.first, acquired.last))
            last = data.draw(st.integers(first, acquired.last))
            before = acquired.held
            assert (
                acquired.decide_range(first, last, decision) == before - acquired.held
            )

    @rule(node=st.sampled_from(NODES), is_quick=st.booleans())
    def plan(self, node: int, *, is_quick: bool) -> None:
        """Send a request whose answer comes later."""
        if node not in self.plans and (
            plan := self.send(node, may_renew=self.may_renew)
        ):
            codes = self.perform(plan, self.now) if is_quick else None
            self.plans[node] = plan, codes

    @precondition(lambda self: self.plans)
    @rule(
        data=st.data(),
        fate=st.sampled_from(
            ["answered"] * 6
            + ["unheard", "lost", "refused", "unknown", "timeout", "moved", "omitted"]
        ),
    )
    def answer(self, data: st.DataObject, fate: str) -> None:
        node = data.draw(st.sampled_from(sorted(self.plans)))
        plan, codes = self.plans.pop(node)
        if codes is None and fate in {"unheard", "refused", "timeout", "moved"}:
            self.refuse(plan, fate)
            return
        codes = codes or self.perform(plan, self.now)
        if fate in {"lost", "unknown"}:
            self.ledger.unanswered(plan, self.now, is_last=fate == "unknown")
        else:
            self.take(plan, {} if fate == "omitted" else codes)

    def refuse(self, plan: AckPlan, fate: str) -> None:
        """The leader does nothing of it."""
        if fate == "unheard":
            self.ledger.unanswered(plan, self.now)
        elif fate == "refused":
            self.ledger.refused(plan, self.now, E.INVALID_SHARE_SESSION_EPOCH)
        elif fate == "timeout":
            self.take(plan, dict.fromkeys(plan.ranges, E.REQUEST_TIMED_OUT))
        else:
            for tp in plan.ranges:
                self.free(self.logs[tp])
            self.take(plan, dict.fromkeys(plan.ranges, E.NOT_LEADER_OR_FOLLOWER))

    @rule(delay=st.floats(0, 6))
    def wait(self, delay: float) -> None:
        self.now += delay
        self.ledger.expire(self.now)
        expiry = self.ledger.next_expiry()
        assert expiry is None or expiry > self.now

    @rule(node=st.sampled_from(NODES))
    def lose_connection(self, node: int) -> None:
        for tp in PARTITIONS[node]:
            self.free(self.logs[tp])
        plan, _ = self.plans.pop(node, (None, None))
        self.ledger.connection_lost(node, "the connection is gone", self.now)
        assert self.ledger.locked_at(node) == 0
        if plan is not None:  # a late word about it changes nothing
            self.ledger.unanswered(plan, self.now)
        assert self.ledger.next_send(node, self.now, may_renew=True) is None

    @rule(tp=st.sampled_from([tp for tps in PARTITIONS.values() for tp in tps]))
    def lose_partition(self, tp: TopicPartition) -> None:
        node = next(node for node, tps in PARTITIONS.items() if tp in tps)
        self.free(self.logs[tp])
        self.ledger.partition_lost(node, tp, "it has moved", self.now)

    @rule(
        tp=st.sampled_from([tp for tps in PARTITIONS.values() for tp in tps]),
        offset=st.integers(0, SIZE - 1),
    )
    def free_one(self, tp: TopicPartition, offset: int) -> None:
        """The leader frees a lock before its time, and another member gets it."""
        slot = self.logs[tp].slots[offset]
        if slot.state == "locked":
            slot.state = "elsewhere"

    # ---- how it is done --------------------------------------------------------------

    def send(self, node: int, *, may_renew: bool) -> AckPlan | None:
        plan = self.ledger.plan(node, self.now, may_renew=may_renew)
        if plan is None:
            return None
        assert self.ledger.plan(node, self.now, may_renew=may_renew) is None
        assert may_renew or not plan.renews
        for tp, ranges in plan.ranges.items():
            assert tp in PARTITIONS[node]
            after = 0
            for first, last, kind in ranges:
                assert after <= first <= last
                after = last + 1
                assert plan.renews or kind != RENEW
                for offset in range(first, last + 1):
                    acquired = self.latest[tp, offset]
                    assert self.ends[acquired, offset] > self.now, "its lock has ended"
                    state = acquired.states[offset - acquired.first]
                    assert state == HELD if kind == RENEW else state & TAKEN
        return plan

    def perform(self, plan: AckPlan | None, at: float) -> dict[TopicPartition, int]:
        if plan is None:
            return {}
        return {
            tp: self.logs[tp].acknowledge(ranges, at)
            for tp, ranges in plan.ranges.items()
        }

    def note(self, acquired: Acquired, sent_at: float) -> None:
        tp = TopicPartition(acquired.topic, acquired.partition)
        self.ranges.append(acquired)
        for offset in range(acquired.first, acquired.last + 1):
            self.ends[acquired, offset] = sent_at + LOCK
            self.latest[tp, offset] = acquired

    def take(self, plan: AckPlan, codes: dict[TopicPartition, int]) -> None:
        for tp, code in codes.items():
            for first, last, kind in plan.ranges[tp]:
                for offset in range(first, last + 1):
                    if kind == RENEW and code == E.NONE:
                        self.ends[self.latest[tp, offset], offset] = plan.sent_at + LOCK
        self.ledger.answered(plan, codes, self.now, LOCK)
        for acquired in self.ledger.live:
            if acquired not in self.ranges:
                # Lost before the leader said that it had renewed it: released.
                assert not acquired.held
                self.note(acquired, plan.sent_at)

    @staticmethod
    def free(log: Log) -> None:
        for slot in log.slots:
            if slot.state == "locked":
                slot.state = "available"

    # ---- laws ------------------------------------------------------------------------

    @invariant()
    def counts(self) -> None:
        """What is locked is what has not ended."""
        everything = sum(a.last - a.first + 1 for a in self.ranges)
        locked = self.ledger.locked - self.ledger.fading
        assert locked == everything - len(self.listener.ends)
        assert self.ledger.locked == sum(map(self.ledger.locked_at, NODES))
        assert self.ledger.held == sum(a.held for a in self.ranges)

    @invariant()
    def what_counts_is_true(self) -> None:
        """An acknowledgement that was confirmed is known to the leader."""
        for (acquired, offset), how in self.listener.ends.items():
            decision = acquired.states[offset - acquired.first] & STATE
            if how == "confirmed" and decision in {ACCEPT, GAP, REJECT}:
                tp = TopicPartition(acquired.topic, acquired.partition)
                assert self.logs[tp].slots[offset].state in {"accepted", "rejected"}

    def teardown(self) -> None:
        """Without faults everything ends, after few requests and within a lock."""
        for plan, codes in self.plans.values():
            self.take(plan, codes or self.perform(plan, self.now))
        self.drain()
        self.ledger.expire(self.now)
        self.agree()
        self.ledger.release_all()
        self.drain()
        # Renewals are none of the decisions; nothing is held, so nothing renews.
        while (due := self.ledger.next_expiry()) is not None:
            self.now = max(self.now, due)
            self.ledger.expire(self.now)
        assert self.ledger.locked == 0
        assert len(self.listener.ends) == len(self.ends)
        assert self.ledger.next_expiry() is None
        for node in NODES:
            assert self.ledger.next_send(node, self.now, may_renew=True) is None
            assert self.ledger.plan(node, self.now, may_renew=True) is None

    def drain(self) -> None:
        for node in NODES:
            requests = 0
            most = 20 + 4 * self.ledger.locked_at(node)
            while True:
                due = self.ledger.next_send(node, self.now, may_renew=False)
                if due is None:
                    break
                self.now = max(self.now, due)
                plan = self.send(node, may_renew=False)
                requests += plan is not None
                assert requests <= most
                if plan is not None:
                    self.take(plan, self.perform(plan, self.now))

    def agree(self) -> None:
        """What the ledger holds is locked, unless the leader freed it in silence."""
        for tp, log in self.logs.items():
            log.expire(self.now)
            for offset, slot in enumerate(log.slots):
                acquired = self.latest.get((tp, offset))
                is_held = (
                    acquired is not None
                    and acquired.states[offset - acquired.first] == HELD
                )
                if is_held:
                    assert slot.state in {"locked", "elsewhere"}


LedgerLaws.TestCase.settings = settings(max_examples=100, stateful_step_count=30)
TestLedgerLaws = LedgerLaws.TestCase
