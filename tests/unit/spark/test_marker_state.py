"""What follows from markers, in all orders of events."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from kafkaio.spark._marker_state import (
    AppState,
    Begun,
    Decision,
    Outcome,
    RowsMarker,
    RowSum,
    TaskReport,
    Verdict,
    decide,
    judge,
    may_commit,
    ours_lost,
    to_fence,
)
from tests.unit.spark.marker_world import ROWS, Plan, Rules, Schedule, Simulation, World

SOME = RowSum(3, 7)
seeds = st.integers(0, 2**32)


def simulated(
    seed: int, plans: list[Plan], rules: Rules | None = None
) -> tuple[World, str]:
    world = World(rules)
    outcome = Simulation(world, Schedule(plans), Random(seed)).run()
    return world, outcome


def drawn(seed: int, most: int = 5) -> list[Plan]:
    rng = Random(seed)
    return [Plan(rng.randrange(1, most)) for _ in range(rng.randrange(1, 6))]


# ---- laws ----------------------------------------------------------------------------


@settings(max_examples=400)
@given(seeds)
def test_no_row_is_visible_twice_and_a_success_has_all_rows(seed: int) -> None:
    world, outcome = simulated(seed, drawn(seed))
    assert not [row for row, count in world.visible.items() if count > 1]
    if outcome == "done":
        assert sorted(world.visible) == ROWS


@settings(max_examples=300)
@given(seeds, st.integers(1, 5))
def test_the_same_tasks_always_come_to_an_end(seed: int, tasks: int) -> None:
    plans = [Plan(tasks) for _ in range(Random(seed).randrange(1, 6))]
    world, outcome = simulated(seed, plans)
    assert outcome == "done"
    assert sorted(world.visible.elements()) == ROWS


@settings(max_examples=200)
@given(seeds)
def test_other_rows_become_visible_in_no_part(seed: int) -> None:
    # The first driver comes to its end; then runs follow that have other rows.
    rng = Random(seed)
    world = World()
    first = Simulation(world, Schedule([Plan(rng.randrange(1, 5))]), rng).run()
    assert first == "done"
    other = [row + 500 for row in ROWS]
    plans = [Plan(rng.randrange(1, 5), other) for _ in range(rng.randrange(1, 4))]
    assert Simulation(world, Schedule(plans), rng).run() == "mismatch"
    assert sorted(world.visible.elements()) == ROWS


@settings(max_examples=300)
@given(seeds)
def test_rows_of_runs_that_differ_are_never_visible_together(seed: int) -> None:
    rng = Random(seed)
    other = [row + 500 for row in ROWS]
    plans = [Plan(rng.randrange(1, 5), rng.choice([ROWS, other])) for _ in range(4)]
    world, outcome = simulated(seed, plans)
    assert not (set(ROWS) & set(world.visible) and set(other) & set(world.visible))
    if outcome == "done":
        assert sorted(world.visible.elements()) in (ROWS, other)


def finds_duplicates(rules: Rules) -> bool:
    for seed in range(400):
        world, _ = simulated(seed, drawn(seed), rules)
        if world.visible and max(world.visible.values()) > 1:
            return True
    return False


def _without_others(state: AppState, task: int, version: int, run: str) -> Decision:
    found = decide(state, task, version, run)
    return Decision.WRITE if found is Decision.HOLD else found


def test_the_simulation_finds_runs_that_do_not_see_one_another() -> None:
    assert finds_duplicates(Rules(decide=_without_others))


def test_the_simulation_finds_commits_without_a_judgement() -> None:
    assert finds_duplicates(Rules(may_commit=lambda *_: True))


def test_the_simulation_finds_that_nobody_fences_earlier_runs() -> None:
    assert finds_duplicates(Rules(fences=False))


# ---- single decisions ----------------------------------------------------------------


def state(**given: object) -> AppState:
    found = AppState.empty()
    for name, value in given.items():
        setattr(found, name, value)
    return found


@pytest.mark.parametrize(
    ("found", "decision"),
    [
        (state(), Decision.WRITE),
        (state(tasks={0: RowsMarker(6, "a", SOME)}), Decision.WRITE),
        (state(tasks={1: RowsMarker(7, "a", SOME)}), Decision.WRITE),
        (state(tasks={0: RowsMarker(7, "a", SOME)}), Decision.COMPARE),
        (state(tasks={0: RowsMarker(7, "b", SOME)}), Decision.VERIFY),
        (state(tasks={0: RowsMarker(7, "b", None)}), Decision.VERIFY),
        (state(tasks={0: RowsMarker(7, "b", RowSum())}), Decision.HOLD),
        (state(tasks={1: RowsMarker(7, "b", SOME)}), Decision.HOLD),
        (state(open={1: Begun(7, "b", 5)}), Decision.HOLD),
        (state(open={1: Begun(7, "a", 5)}), Decision.WRITE),
        (state(open={1: Begun(6, "b", 5)}), Decision.WRITE),
        (state(is_begun_elsewhere=True), Decision.HOLD),
        (state(is_refused=True), Decision.REFUSE),
        (state(done=RowsMarker(7, "b", SOME)), Decision.DONE),
        (state(done=RowsMarker(6, "b", SOME)), Decision.WRITE),
        (state(done=RowsMarker(8, "b", SOME)), Decision.LATER),
        (state(tasks={4: RowsMarker(8, "b", SOME)}), Decision.LATER),
    ],
)
def test_what_an_attempt_does(found: AppState, decision: Decision) -> None:
    assert decide(found, 0, 7, "a") is decision


def test_a_task_commits_by_itself_when_all_of_the_others_is_verified() -> None:
    one = RowsMarker(7, "b", SOME)
    found = state(tasks={1: one, 2: one}, verified={1: (7, "a"), 2: (7, "c")})
    assert not may_commit(found, 0, 7, "a")
    found.verified[2] = (7, "a")
    assert may_commit(found, 0, 7, "a")
    found.open[5] = Begun(7, "b", 1)
    assert not may_commit(found, 0, 7, "a")


def test_what_is_fenced_are_transactions_of_other_runs() -> None:
    found = state(open={1: Begun(7, "a", 1), 2: Begun(7, "b", 1), 3: Begun(6, "c", 1)})
    assert to_fence(found, 7, "a") == [2, 3]


@pytest.mark.parametrize(
    "begun", [None, Begun(7, "b", 5), Begun(7, "a", 6)], ids=["gone", "run", "producer"]
)
def test_what_is_left_open_may_be_lost(begun: Begun | None) -> None:
    report = TaskReport(0, Outcome.HELD, SOME, None, 5)
    found = state(open={} if begun is None else {0: begun})
    assert ours_lost(found, 7, "a", {0: report}) == [0]
    found.open[0] = Begun(7, "a", 5)
    assert ours_lost(found, 7, "a", {0: report}) == []


def reports(**outcomes: tuple[Outcome, int]) -> dict[int, TaskReport]:
    return {
        int(name[1:]): TaskReport(int(name[1:]), outcome, RowSum(rows, rows * 11))
        for name, (outcome, rows) in outcomes.items()
    }


@pytest.mark.parametrize(
    ("others", "told", "verdict"),
    [
        ({}, {"t0": (Outcome.HELD, 5)}, Verdict.COMMIT),
        (
            {0: 5},
            {"t0": (Outcome.VERIFIED, 5), "t1": (Outcome.HELD, 5)},
            Verdict.COMMIT,
        ),
        # The version is in, in other tasks.
        (
            {0: 5, 1: 5},
            {
                "t0": (Outcome.DIFFERS, 4),
                "t1": (Outcome.DIFFERS, 3),
                "t2": (Outcome.HELD, 3),
            },
            Verdict.COMPLETE,
        ),
        ({0: 5, 1: 5}, {"t0": (Outcome.DIFFERS, 10)}, Verdict.COMPLETE),
        # A part of it is in, in other tasks.
        (
            {0: 5},
            {"t0": (Outcome.DIFFERS, 4), "t1": (Outcome.HELD, 6)},
            Verdict.MISMATCH,
        ),
        # A task that is in has no like in the repetition.
        (
            {0: 5, 2: 5},
            {"t0": (Outcome.VERIFIED, 5), "t1": (Outcome.HELD, 10)},
            Verdict.MISMATCH,
        ),
        # A late attempt of the earlier run has committed the rows that this one holds.
        (
            {0: 5, 1: 5},
            {
                "t0": (Outcome.VERIFIED, 5),
                "t1": (Outcome.HELD, 5),
                "t2": (Outcome.HELD, 5),
            },
            Verdict.COMMIT,
        ),
        # One without rows needs none.
        (
            {0: 5, 2: 0},
            {"t0": (Outcome.VERIFIED, 5), "t1": (Outcome.HELD, 10)},
            Verdict.COMMIT,
        ),
    ],
)
def test_a_judgement(
    others: dict[int, int], told: dict[str, tuple[Outcome, int]], verdict: Verdict
) -> None:
    tasks = {
        task: RowsMarker(7, "b", RowSum(rows, rows * 11))
        for task, rows in others.items()
    }
    assert judge(state(tasks=tasks), 7, "a", reports(**told)).verdict is verdict


@pytest.mark.parametrize(
    ("rows", "verdict"), [(10, Verdict.COMPLETE), (11, Verdict.MISMATCH)]
)
def test_a_version_that_is_in_is_compared_as_a_whole(
    rows: int, verdict: Verdict
) -> None:
    done = state(done=RowsMarker(7, "b", RowSum(10, 110)))
    told = reports(t0=(Outcome.DONE, 4), t1=(Outcome.DONE, rows - 4))
    assert judge(done, 7, "a", told).verdict is verdict


def test_sums_of_different_ways_are_compared_by_their_numbers() -> None:
    total = RowSum.total([RowSum(2, 5, 1), RowSum(3, 6, 2)])
    assert total.is_same(RowSum(5, 99, 1))
    assert not total.is_same(RowSum(6, 11, 1))
    assert RowSum.total([RowSum(2, 2**64 - 1), RowSum(0, 0, 2)]).is_same(
        RowSum(2, 2**64 - 1)
    )
