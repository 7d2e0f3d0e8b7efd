"""Every assignment ends once: given back or lost, and never while it is held."""

from __future__ import annotations

from itertools import product

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkaio._machines.membership.ledger import (
    TRANSITIONS,
    Claim,
    RevokeLedger,
    Stage,
)
from kafkaio.types import TopicPartition

A, B, C = (TopicPartition("t", n) for n in range(3))
ALL = [A, B, C]


def requested(*partitions: TopicPartition, deadline: float = 10.0) -> RevokeLedger:
    ledger = RevokeLedger()
    ledger.assign(ALL)
    assert ledger.request(partitions, deadline) == set(partitions)
    return ledger


def step(ledger: RevokeLedger) -> set[TopicPartition]:
    """The user hears of everything and takes a step: what begins to go."""
    ledger.report()
    ledger.step()
    return {claim.partition for claim in ledger.begin()[0]}


def test_the_way_out() -> None:
    ledger = requested(A)
    assert ledger.stage(A) is Stage.REQUESTED
    ledger.step()
    assert ledger.stage(A) is Stage.REQUESTED  # the user knows nothing of it
    ledger.report()
    assert ledger.begin() == ((), float("inf"))
    ledger.step()
    assert ledger.stage(A) is Stage.READY
    assert ledger.next_to_go == {A}
    claims, deadline = ledger.begin()
    assert claims == ledger.claims([A, TopicPartition("u", 0)])
    assert deadline == 10.0 == ledger.deadline(A)
    assert ledger.stage(A) is Stage.COMPLETING
    assert ledger.next_to_go == frozenset()
    assert ledger.owned == {A, B, C}
    assert ledger.complete([*claims, *claims]) == {A}
    assert ledger.owned == {B, C}
    assert ledger.stage(A) is None
    assert ledger.complete(claims) == frozenset()


def test_a_delay_lasts_for_one_step() -> None:
    ledger = requested(A, B)
    ledger.report()
    assert ledger.delay([A, C]) == frozenset()
    assert ledger.next_to_go == {B}
    assert ledger.stage(C) is Stage.ASSIGNED
    assert step(ledger) == {B}
    assert ledger.next_to_go == {A}
    assert ledger.delay([A, B]) == {B}  # on its way already
    assert step(ledger) == set()
    assert step(ledger) == {A}


def test_it_may_be_delayed_before_it_is_reported() -> None:
    ledger = requested(A)
    ledger.delay([A])
    ledger.release([A])  # nobody works on it, but the user wants it
    assert step(ledger) == set()
    assert step(ledger) == {A}


def test_holds_keep_it_all_the_while() -> None:
    ledger = requested(A)
    (claim,) = ledger.claims([A])
    assert ledger.hold([claim]) == (claim,)
    assert ledger.hold([claim]) == (claim,)
    assert step(ledger) == set()
    assert ledger.next_to_go == {A}
    ledger.unhold([claim])
    assert ledger.begin()[0] == ()
    ledger.unhold([claim])
    assert ledger.begin()[0] == (claim,)
    assert ledger.hold([claim]) == ()  # too late
    ledger.complete([claim])
    ledger.assign([A])
    assert ledger.hold([claim]) == ()


def test_a_hold_may_come_before_the_request() -> None:
    ledger = RevokeLedger()
    ledger.assign([A])
    held = ledger.hold(ledger.claims([A]))
    ledger.request([A], 10.0)
    assert step(ledger) == set()
    assert ledger.delay([A]) == frozenset()
    assert step(ledger) == set()
    ledger.leave()
    ledger.unhold(held)
    assert ledger.begin()[0] == held


def test_who_leaves_waits_for_no_step() -> None:
    ledger = requested(A, B)
    ledger.delay([A])
    ledger.leave()
    assert [claim.partition for claim in ledger.begin()[0]] == [A, B]


def test_an_old_claim_does_not_touch_a_new_assignment() -> None:
    ledger = requested(A)
    (claim,) = ledger.hold(ledger.claims([A]))
    assert ledger.lose() == {A, B, C}
    ledger.assign([A])
    assert ledger.numbers[A] > claim.number
    ledger.unhold([claim])
    assert ledger.complete([claim]) == frozenset()
    assert ledger.stage(A) is Stage.ASSIGNED
    ledger.request([A], 5.0)
    assert step(ledger) == {A}


def test_a_deadline_only_comes_nearer() -> None:
    ledger = RevokeLedger()
    ledger.assign([A, B])
    ledger.request([A, C], 10.0)
    assert ledger.request([A, B], 20.0) == {B}
    ledger.hold(ledger.claims([A]))
    assert ledger.next_deadline() == 10.0
    assert ledger.expire(9.9) == frozenset()
    assert ledger.expire(10.0) == {A}  # held or not
    assert ledger.request([B], 15.0) == frozenset()
    assert ledger.next_deadline() == 15.0
    assert ledger.lose([B, C]) == {B}
    assert ledger.next_deadline() is None


def test_only_what_was_requested_is_released() -> None:
    ledger = requested(A)
    ledger.release([A, B, TopicPartition("u", 0)])
    assert [claim.partition for claim in ledger.begin()[0]] == [A]
    assert ledger.stage(B) is Stage.ASSIGNED


def test_nothing_follows_the_end() -> None:
    ended = {Stage.REVOKED, Stage.LOST}
    assert not any(stage in ended for stage, _ in TRANSITIONS)
    assert {to for (_, move), to in TRANSITIONS.items() if to in ended} == ended


#: What may happen to one assignment, for every order of them.
DEEDS = {
    "request": lambda ledger, _: ledger.request([A], 10.0),
    "report": lambda ledger, _: ledger.report(),
    "delay": lambda ledger, _: ledger.delay([A]),
    "hold": lambda ledger, claim: ledger.hold([claim]),
    "unhold": lambda ledger, claim: ledger.unhold([claim]),
    "step": lambda ledger, _: ledger.step(),
    "idle": lambda ledger, _: ledger.release([A]),
    "begin": lambda ledger, _: ledger.begin(),
    "complete": lambda ledger, claim: ledger.complete([claim]),
    "expire": lambda ledger, _: ledger.expire(10.0),
}


def test_every_order_of_five_deeds() -> None:
    orders = 0
    for deeds in product(DEEDS, repeat=5):
        if not _is_possible(deeds):
            continue
        orders += 1
        ledger = RevokeLedger()
        ledger.assign([A])
        (claim,) = ledger.claims([A])
        holds, reported, stepped = 0, False, False
        for deed in deeds:
            before = ledger.stage(A)
            out = DEEDS[deed](ledger, claim)  # type: ignore[no-untyped-call]  # by name
            if deed == "hold":
                holds += len(out)
            elif deed == "unhold":
                holds -= 1
            reported |= deed in {"report", "delay"} and before is Stage.REQUESTED
            stepped |= deed == "idle" or (deed == "step" and reported)
            if deed == "begin" and out[0]:
                assert stepped
                assert holds == 0
            if deed == "complete" and out:
                assert before is Stage.COMPLETING
            if deed == "expire":
                assert bool(out) == (before not in {None, Stage.ASSIGNED})
            assert ledger.owned in ({A}, set())
    assert orders > 10_000


def _is_possible(deeds: tuple[str, ...]) -> bool:
    # Nobody ends a hold that was not taken; without a request little happens.
    held = 0
    for deed in deeds:
        held += (deed == "hold") - (deed == "unhold")
        if held < 0:
            return False
    return "request" in deeds


class LedgerLaws(RuleBasedStateMachine):
    """The rules of the deferred revoke, for whatever happens in whatever order."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = RevokeLedger()
        self.now = 0.0
        self.open: dict[int, TopicPartition] = {}
        self.ended: set[int] = set()
        self.deadlines: dict[int, float] = {}
        self.reported: set[int] = set()
        self.free: set[int] = set()  # needs nothing more of the reader
        self.delayed: set[int] = set()
        self.holds: list[Claim] = []
        self.going: list[Claim] = []

    def numbers(self, partitions: set[TopicPartition]) -> set[int]:
        return {n for n, tp in self.open.items() if tp in partitions}

    def end(self, partitions: frozenset[TopicPartition]) -> None:
        for number in self.numbers(set(partitions)):
            del self.open[number]
            assert number not in self.ended
            self.ended.add(number)

    @rule(partitions=st.sets(st.sampled_from(ALL)))
    def assign(self, partitions: set[TopicPartition]) -> None:
        before = set(self.open.values())
        assert self.ledger.assign(partitions) == partitions - before
        for tp in partitions - before:
            number = self.ledger.numbers[tp]
            assert number not in self.ended  # rule 7: it is a new assignment
            self.open[number] = tp

    @rule(partitions=st.sets(st.sampled_from(ALL)), wait=st.integers(1, 5))
    def request(self, partitions: set[TopicPartition], wait: int) -> None:
        asked = self.ledger.request(partitions, self.now + wait)
        for number in self.numbers(partitions):
            assert (self.open[number] in asked) == (number not in self.deadlines)
            at = self.deadlines.get(number, self.now + wait)
            self.deadlines[number] = min(at, self.now + wait)

    @rule()
    def tell(self) -> None:
        self.ledger.report()
        self.reported |= self.deadlines.keys()

    @rule(partitions=st.sets(st.sampled_from(ALL)))
    def delay(self, partitions: set[TopicPartition]) -> None:
        late = self.ledger.delay(partitions)
        going = {claim.number for claim in self.going}
        for tp in partitions:
            # Rule 6: what is lost cannot be delayed.
            numbers = self.numbers({tp}) - going
            assert (tp in late) == (not numbers)
            self.delayed |= numbers & self.deadlines.keys()
            self.free -= numbers

    @rule(partitions=st.sets(st.sampled_from(ALL)))
    def hold(self, partitions: set[TopicPartition]) -> None:
        self.holds += self.ledger.hold(self.ledger.claims(partitions))

    @precondition(lambda self: self.going)
    @rule(data=st.data())
    def hold_too_late(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.going))
        assert self.ledger.hold([claim]) == ()

    @precondition(lambda self: self.holds)
    @rule(data=st.data())
    def unhold(self, data: st.DataObject) -> None:
        claim = self.holds.pop(data.draw(st.integers(0, len(self.holds) - 1)))
        self.ledger.unhold([claim])

    @rule()
    def step(self) -> None:
        self.ledger.step()
        self.free |= self.reported - self.delayed  # rule 1
        self.reported |= self.delayed
        self.delayed.clear()

    @rule(partitions=st.sets(st.sampled_from(ALL)))
    def idle(self, partitions: set[TopicPartition]) -> None:
        self.ledger.release(partitions)
        asked = self.numbers(partitions) & self.deadlines.keys()
        self.free |= asked - self.delayed

    @rule()
    def part(self) -> None:
        self.ledger.leave()
        self.free |= self.deadlines.keys()
        self.delayed.clear()

    @rule()
    def begin(self) -> None:
        claims, deadline = self.ledger.begin()
        held = {claim.number for claim in self.holds}
        going = {claim.number for claim in self.going}
        due = (self.free & self.open.keys()) - held - going
        assert {claim.number for claim in claims} == due
        soonest = min((self.deadlines[n] for n in due), default=float("inf"))
        assert deadline == soonest
        self.going += claims

    @precondition(lambda self: self.going)
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.going))
        ended = self.ledger.complete([claim])
        assert bool(ended) == (claim.number in self.open)
        self.end(ended)

    @rule(wait=st.integers(1, 5))
    def pass_time(self, wait: int) -> None:
        self.now += wait
        late = {n for n in self.open if self.deadlines.get(n, self.now + 1) <= self.now}
        lost = self.ledger.expire(self.now)
        assert self.numbers(set(lost)) == late  # rule 6, and nothing but those
        self.end(lost)
        deadline = self.ledger.next_deadline()
        assert deadline is None or deadline > self.now

    @rule(partitions=st.none() | st.sets(st.sampled_from(ALL)))
    def lose(self, partitions: set[TopicPartition] | None) -> None:
        self.end(self.ledger.lose(partitions))

    @invariant()
    def agrees(self) -> None:
        ledger = self.ledger
        assert ledger.numbers == {tp: n for n, tp in self.open.items()}
        assert ledger.owned == set(self.open.values())
        asked = {n: tp for n, tp in self.open.items() if n in self.deadlines}
        assert ledger.pending == set(asked.values())
        going = {claim.number for claim in self.going}
        assert ledger.next_to_go == {
            tp for n, tp in asked.items() if n not in self.delayed | going
        }


TestLedgerLaws = LedgerLaws.TestCase
TestLedgerLaws.settings = settings(max_examples=100, stateful_step_count=30)
