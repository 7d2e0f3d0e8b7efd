"""A fence says what a comparison of all numbers would say, whatever happens."""

from __future__ import annotations

from collections.abc import Mapping

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkaio._machines.membership.fence import Fence
from kafkaio._machines.membership.ledger import RevokeLedger
from kafkaio._machines.membership.protocol import Membership
from kafkaio.errors import PartitionLost
from kafkaio.types import TopicPartition
from tests.unit.machines.membership import test_classic_laws, test_kip848_laws

A, B, C, D = (TopicPartition("t", n) for n in range(4))
OWNED = st.sets(st.sampled_from([A, B, C]))
SOME = st.sets(st.sampled_from([A, B, C, D]), min_size=1)


def nothing_is_free() -> Mapping[TopicPartition, int]:
    return {}


def fence_of(ledger: RevokeLedger, *partitions: TopicPartition) -> Fence:
    return Fence(ledger, nothing_is_free, partitions)


def test_what_is_owned_may_be_committed() -> None:
    ledger = RevokeLedger()
    ledger.assign([A, B])
    fence = fence_of(ledger, A, B)
    assert fence.lost() is None
    assert not fence.is_foreign
    fence.check()


def test_another_assignment_of_the_same_partition_is_not_the_same() -> None:
    ledger = RevokeLedger()
    ledger.assign([A, B])
    fence, other = fence_of(ledger, A, B), fence_of(ledger, B)
    ledger.lose([A])
    ledger.assign([A])
    with pytest.raises(PartitionLost, match=r"\(any more\): t-0$"):
        fence.check()
    assert other.lost() is None


def test_a_requested_revocation_ends_nothing() -> None:
    ledger = RevokeLedger()
    ledger.assign([A])
    fence = fence_of(ledger, A)
    ledger.request([A], 10.0)
    ledger.leave()
    claims, _ = ledger.begin()
    fence.check()
    ledger.complete(claims)
    with pytest.raises(PartitionLost):
        fence.check()


def test_what_is_not_owned_was_lost_from_the_beginning() -> None:
    ledger = RevokeLedger()
    ledger.assign([A])
    assert fence_of(ledger, B).is_foreign
    fence = fence_of(ledger, A, B, C)
    assert not fence.is_foreign
    with pytest.raises(PartitionLost, match="t-1, t-2"):
        fence.check()
    ledger.assign([B, C])
    with pytest.raises(PartitionLost, match="t-1, t-2"):
        fence.check()


def test_without_a_change_no_number_is_read() -> None:
    ledger = RevokeLedger()
    ledger.assign([A])

    def read() -> Mapping[TopicPartition, int]:
        raise AssertionError("the version has not changed")

    fence = Fence(ledger, read, [A])
    fence.check()
    fence.check()


def test_a_fence_serves_the_next_commit_until_the_ledger_changes() -> None:
    ledger = RevokeLedger()
    ledger.assign([A, B])
    fence = fence_of(ledger, A)
    assert fence.serves([A])
    assert fence.serves({A: 1}.keys())
    assert not fence.serves([B])
    assert not fence.serves([A, B])
    ledger.assign([C])
    assert not fence.serves([A])
    # It has looked, and A is still under the same number.
    fence.check()
    assert fence.serves([A])
    ledger.lose([A])
    assert not fence.serves([A])
    assert fence.lost() is not None
    assert not fence.serves([A])


def test_a_fence_of_what_is_free_serves_one_commit() -> None:
    ledger = RevokeLedger()
    fence = Fence(ledger, lambda: {A: 1}, [A])
    fence.check()
    assert not fence.serves([A])


class Watched:
    """A fence, and the numbers that it has to stand for."""

    def __init__(
        self,
        fence: Fence,
        partitions: set[TopicPartition],
        numbers: Mapping[TopicPartition, int],
    ) -> None:
        self.fence = fence
        self.numbers = {tp: numbers.get(tp) for tp in partitions}
        self.was_lost = False

    def agrees(self, numbers: Mapping[TopicPartition, int]) -> None:
        gone = {
            tp
            for tp, number in self.numbers.items()
            if number is None or numbers.get(tp) != number
        }
        lost = self.fence.lost()
        if lost is None:
            assert not gone
        else:
            assert str(lost).split(": ")[1] == ", ".join(
                f"{tp.topic}-{tp.partition}" for tp in sorted(gone)
            )
        assert lost is not None or not self.was_lost  # it never comes back
        self.was_lost = lost is not None


class LedgerFences(RuleBasedStateMachine):
    """The ledger alone; partition D is never owned, and free at times."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = RevokeLedger()
        self.free: dict[TopicPartition, int] = {}
        self.serial = 0
        self.now = 0.0
        self.fences: list[Watched] = []

    def numbers(self) -> Mapping[TopicPartition, int]:
        return {**self.ledger.numbers, **self.free}

    @rule(partitions=SOME)
    def commit(self, partitions: set[TopicPartition]) -> None:
        fence = Fence(self.ledger, lambda: self.free, partitions)
        self.fences.append(Watched(fence, partitions, self.numbers()))

    @rule(partitions=OWNED)
    def assign(self, partitions: set[TopicPartition]) -> None:
        self.ledger.assign(partitions)

    @rule(partitions=OWNED)
    def request(self, partitions: set[TopicPartition]) -> None:
        self.ledger.request(partitions, self.now + 2)

    @rule()
    def release(self) -> None:
        self.ledger.leave()
        self.ledger.complete(self.ledger.begin()[0])

    @rule(partitions=OWNED)
    def lose(self, partitions: set[TopicPartition]) -> None:
        self.ledger.lose(partitions)

    @rule()
    def pass_time(self) -> None:
        self.now += 1
        self.ledger.expire(self.now)

    @rule()
    def becomes_free(self) -> None:
        self.serial -= 1
        self.free = {D: self.serial}

    @rule()
    def is_free_no_longer(self) -> None:
        self.free = {}

    @invariant()
    def fences_agree(self) -> None:
        for each in self.fences:
            each.agrees(self.numbers())


def _numbers(machine: Membership) -> Mapping[TopicPartition, int]:
    return {**machine.ledger.numbers, **machine.free}


class ClassicFences(test_classic_laws.Laws):
    """A classic member, in whatever order things happen to it."""

    def __init__(self) -> None:
        super().__init__()
        self.fences: list[Watched] = []

    @rule(partitions=test_classic_laws.SHARES)
    def commit(self, partitions: frozenset[TopicPartition]) -> None:
        fence, numbers = self.machine.fence(partitions), _numbers(self.machine)
        self.fences.append(Watched(fence, set(partitions), numbers))

    @invariant()
    def fences_agree(self) -> None:
        for each in self.fences:
            each.agrees(_numbers(self.machine))


class Kip848Fences(test_kip848_laws.Laws):
    """A KIP-848 member, in whatever order things happen to it."""

    def __init__(self) -> None:
        super().__init__()
        self.fences: list[Watched] = []

    @rule(share=test_kip848_laws.SHARES)
    def commit(self, share: test_kip848_laws.Slots) -> None:
        ids = test_kip848_laws.IDS
        partitions = {TopicPartition(ids[i], n) for i, n in share}
        fence, numbers = self.machine.fence(partitions), _numbers(self.machine)
        self.fences.append(Watched(fence, partitions, numbers))

    @invariant()
    def fences_agree(self) -> None:
        for each in self.fences:
            each.agrees(_numbers(self.machine))


TestLedgerFences = LedgerFences.TestCase
TestLedgerFences.settings = settings(max_examples=200, stateful_step_count=30)
TestClassicFences = ClassicFences.TestCase
TestClassicFences.settings = settings(max_examples=60, stateful_step_count=40)
TestKip848Fences = Kip848Fences.TestCase
TestKip848Fences.settings = settings(max_examples=60, stateful_step_count=25)
