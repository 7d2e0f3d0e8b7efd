"""What is said of members that copy in transactions."""

from __future__ import annotations

import pytest

from kafkaio._producer.transaction import TransactionOutcome
from kafkaio.errors import OutcomeUnknown
from tests.sim.copy_laws import CopyChecker, Life


class Copying:
    """A checker of one member, and the laws that it has broken."""

    def __init__(self, *, may_be_fenced: bool = False) -> None:
        self.laws: list[str] = []
        self.life = Life("me.0", "me", 0)
        self.checker = CopyChecker(
            lambda: 0.0,
            lambda law, _: self.laws.append(law),
            lambda _: -1,
            lambda: True,
            list,
            [],
            lambda _: may_be_fenced,
        )
        self.checker.lives.append(self.life)
        self.entry = self.checker.began(self.life)
        self.entry.inputs.append((1, 0))


async def unknown() -> TransactionOutcome:
    raise OutcomeUnknown("for ever")


@pytest.mark.parametrize("is_open", [True, False])
def test_a_partition_is_kept_while_a_transaction_works_on_it(is_open: bool) -> None:
    copying = Copying()
    copying.checker.revoked(copying.life, [0], is_open=is_open)
    assert not copying.laws
    copying.checker.revoked(copying.life, [0, 1], is_open=is_open)
    assert copying.laws == ["revoked in a transaction"] * is_open


def test_a_partition_that_was_lost_may_be_assigned_and_revoked_again() -> None:
    copying = Copying()
    copying.checker.lost(copying.life, [1])
    copying.checker.revoked(copying.life, [1], is_open=True)
    assert not copying.laws


def test_what_has_ended_keeps_no_partition() -> None:
    copying = Copying()
    copying.entry.outcome = TransactionOutcome.COMMITTED
    copying.checker.revoked(copying.life, [1], is_open=True)
    assert not copying.laws


@pytest.mark.parametrize("may_be_fenced", [True, False])
async def test_an_outcome_stays_unknown_after_a_fence_alone(
    may_be_fenced: bool,
) -> None:
    copying = Copying(may_be_fenced=may_be_fenced)
    await copying.checker.watch(copying.entry, unknown())
    assert copying.entry.is_over
    assert copying.laws == ["outcome not known"] * (not may_be_fenced)


async def committed() -> TransactionOutcome:
    return TransactionOutcome.COMMITTED


async def test_what_the_coordinator_refused_is_not_committed() -> None:
    copying = Copying()
    copying.checker.must_abort("another")
    await copying.checker.watch(copying.entry, committed())
    assert not copying.laws
    copying = Copying()
    copying.checker.must_abort(copying.life.name)
    await copying.checker.watch(copying.entry, committed())
    assert copying.laws == ["committed after a refusal"]
