"""A group that hardly ever rests: laws of the deferred revoke, and bugs against them.

A thousand seeds are ``nox -s simulate -- --scenario rebalance --seeds 1000``.
"""

from collections.abc import Callable, Collection, Iterable

import pytest

from kafkaio._consumer.parallel.lane import Track
from kafkaio._consumer.parallel.run import Runner
from kafkaio._consumer.reading.reader import Reader
from kafkaio._consumer.rebalance.assignment import PartitionAssignment
from kafkaio._consumer.rebalance.feed import RebalanceFeed
from kafkaio._machines.membership.ledger import (
    Claim,
    RevokeLedger,
    Stage,
)
from kafkaio._machines.schedule import Ordering, Schedule
from kafkaio.types import TopicPartition
from tests.sim import rebalancing, run, shrink, simulate_all

Plant = Callable[[pytest.MonkeyPatch], None]
Partitions = frozenset[TopicPartition]

KEPT = {"revoked while in use"}


def a_revoke_that_waits_for_no_hold(patch: pytest.MonkeyPatch) -> None:
    """Whoever holds a partition is passed over."""
    right = RevokeLedger.begin

    def begin(self: RevokeLedger) -> tuple[tuple[Claim, ...], float]:
        for entry in self._entries.values():
            if entry.stage is Stage.READY:
                entry.holds = 0
        return right(self)

    patch.setattr(RevokeLedger, "begin", begin)


def a_delay_that_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A delay is accepted, and the next poll gives the partition up."""

    def delay(self: RevokeLedger, partitions: Iterable[TopicPartition]) -> Partitions:
        return frozenset(tp for tp in partitions if tp not in self._entries)

    patch.setattr(RevokeLedger, "delay", delay)


def a_lane_that_is_not_drained(patch: pytest.MonkeyPatch) -> None:
    """A lane is over when it is asked to end, whatever its body does."""
    patch.setattr(Track, "_is_at_work", lambda _: False)


def handlers_that_nobody_waits_for(patch: pytest.MonkeyPatch) -> None:
    """A partition goes while handlers work on its records."""
    patch.setattr(Runner, "may_go", lambda *_: True)


def a_revoke_without_its_commit(patch: pytest.MonkeyPatch) -> None:
    """The revoke completes before what was finished is committed."""

    async def commit(
        self: PartitionAssignment, partitions: Collection[TopicPartition]
    ) -> None:
        return

    patch.setattr(PartitionAssignment, "_settle_commits", commit)


def a_deadline_that_passes(patch: pytest.MonkeyPatch) -> None:
    """What is held stays, until the group throws the member out."""
    patch.setattr(RevokeLedger, "expire", lambda *_: frozenset())
    patch.setattr(RevokeLedger, "next_deadline", lambda _: None)


def a_world_that_is_stopped(patch: pytest.MonkeyPatch) -> None:
    """While some partitions are asked for, nothing at all is read."""
    right = PartitionAssignment.stop_handing_out

    def stop(self: PartitionAssignment, partitions: Partitions) -> None:
        right(self, partitions | frozenset(self.reader.positions))

    patch.setattr(PartitionAssignment, "stop_handing_out", stop)


def a_key_in_two_hands(patch: pytest.MonkeyPatch) -> None:
    """Records of one key are worked on at the same time."""
    right = Schedule.__init__

    def init(self: Schedule, ordering: Ordering, limit: int) -> None:
        right(self, "none" if ordering == "key" else ordering, limit)

    patch.setattr(Schedule, "__init__", init)


def a_commit_of_less_than_was_handed_out(patch: pytest.MonkeyPatch) -> None:
    """``commit()`` leaves out what the last step handed out."""
    patch.setattr(Reader, "acknowledge", lambda *_: None)


def a_request_without_an_end(patch: pytest.MonkeyPatch) -> None:
    """Nobody hears that partitions were given up."""
    patch.setattr(RebalanceFeed, "revoked", RebalanceFeed._forget)


@pytest.mark.parametrize(
    ("plant", "laws", "seed"),
    [
        (a_revoke_that_waits_for_no_hold, {"hold refused"}, 0),
        (a_delay_that_is_forgotten, KEPT, 0),
        (a_lane_that_is_not_drained, KEPT, 20),
        (handlers_that_nobody_waits_for, {*KEPT, "repeated without need"}, 29),
        (a_revoke_without_its_commit, {"repeated without need"}, 0),
        (a_deadline_that_passes, {"held past the deadline"}, 3),
        (a_world_that_is_stopped, {"stopped by a revoke", "never read"}, 2),
        (a_key_in_two_hands, {"out of order"}, 4),
        (a_commit_of_less_than_was_handed_out, {"repeated without need"}, 7),
        (a_request_without_an_end, {"request without an end"}, 0),
    ],
)
def test_a_bug_is_found(
    plant: Plant, laws: set[str], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    report = simulate_all(map(rebalancing, range(seed, seed + 20)))
    assert report.failure is not None
    assert report.failure.violations[0].law in laws


def test_a_failure_is_repeated_exactly_and_shrunk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a_delay_that_is_forgotten(monkeypatch)
    failed = run(rebalancing(1))
    assert failed.violations
    assert run(failed.scenario, failed.faults) == failed
    short = shrink(failed, most_runs=20)
    assert short.violations[0].law == failed.violations[0].law
    assert len(short.faults) < 5 < len(failed.faults)


@pytest.mark.parametrize("seed", range(6))
def test_no_seed_breaks_a_law(seed: int) -> None:
    failure = simulate_all([rebalancing(seed)]).failure
    assert failure is None, (failure.violations, failure.last_lines)
