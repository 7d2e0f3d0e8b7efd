"""Bugs put in on purpose are found, and what is found can be repeated.

The hundred hours themselves are ``nox -s simulate -- --hours 100``. With
``KAFKAIO_SIM_HOURS`` the bugs are looked for under its conditions, for so many hours.
"""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from kafkaio._machines.accumulator.completion import Completion
from kafkaio._machines.accumulator.queue import ProduceBatch
from kafkaio._machines.positions import FetchPoint, Positions, PositionStage
from tests.fakes.planted import a_commit_after_giving_up
from tests.sim import Scenario, simulate

HOURS = float(os.environ.get("KAFKAIO_SIM_HOURS", "0"))

Plant = Callable[[pytest.MonkeyPatch], None]


def a_batch_resent_behind_the_next(patch: pytest.MonkeyPatch) -> None:
    """Two batches of a partition were refused: they change places, and numbers."""
    right = Completion.refused

    def refused(
        self: Completion,
        batch: ProduceBatch,
        cause: Exception,
        retry_at: float,
        *,
        is_busy: bool = False,
    ) -> None:
        right(self, batch, cause, retry_at, is_busy=is_busy)
        queue = self._backlog.active.get(batch.partition)
        both = [] if queue is None or queue.sequence is None else queue.waiting
        pair = [b for b in both if b.identity is not None][:2]
        if len(pair) < 2 or any(b.is_on_wire or b.is_uncertain for b in pair):
            return
        assert queue is not None
        assert queue.sequence is not None
        if pair != queue.sequence.under_way[:2]:
            return
        first, second = pair
        second.base_sequence = first.base_sequence
        first.base_sequence = second.base_sequence + second.count
        first.rank, second.rank = second.rank, first.rank
        queue.sequence.under_way[:2] = [second, first]
        for moved in pair:
            queue.waiting.remove(moved)
        queue.put_back(pair)

    patch.setattr(Completion, "refused", refused)


def a_position_moved_by_a_stale_reply(patch: pytest.MonkeyPatch) -> None:
    """Whatever a fetch brings is taken, wherever the user has gone meanwhile."""

    def accepts(self: Positions, point: FetchPoint) -> bool:
        entry = self._partitions.get(point.tp)
        if (
            entry is None
            or entry.stage is not PositionStage.FETCHING
            or entry.is_revoking
        ):
            return False
        if entry.fetch_offset != point.offset:
            entry.position = entry.fetch_offset = point.offset
        return True

    patch.setattr(Positions, "accepts", accepts)


@pytest.mark.parametrize(
    ("plant", "laws", "scenario"),
    [
        pytest.param(
            a_commit_after_giving_up,
            {"committed after release"},
            Scenario(seed=2, seconds=300, fault_every=20),
            id="commit after giving up",
        ),
        pytest.param(
            a_batch_resent_behind_the_next,
            {"written out of order"},
            Scenario(seed=8, seconds=300, members=1, period=0.1, fault_every=5),
            id="batch out of order",
        ),
        pytest.param(
            a_position_moved_by_a_stale_reply,
            {"out of order", "record skipped", "repeated without need"},
            Scenario(seed=3, seconds=300, fault_every=5),
            id="stale reply",
        ),
    ],
)
def test_a_bug_is_found(
    plant: Plant, laws: set[str], scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    report = simulate(Scenario(seed=1), HOURS) if HOURS else simulate(scenario, hours=2)
    assert report.failure is not None
    assert report.failure.violations[0].law in laws


def test_a_run_is_the_same_in_every_process() -> None:
    code = (
        "from tests.sim import Scenario, simulate;"
        "print(simulate(Scenario(seed=9, seconds=200, fault_every=6), 0.1).digest)"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
            timeout=300,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(seen) == 1


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_minutes_of_every_seed_break_no_law(seed: int, protocol: str) -> None:
    scenario = Scenario(seed=seed, seconds=300, fault_every=20, group_protocol=protocol)
    failure = simulate(scenario, hours=1 / 12).failure
    assert failure is None, (failure.violations, failure.last_lines)
