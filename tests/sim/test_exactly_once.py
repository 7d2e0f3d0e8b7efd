"""Members that copy a topic in transactions: a few seeds, and bugs against their laws.

A hundred hours, and every bug, are ``nox -s "nightly(simulation-exactly-once)"``.
"""

import pytest

from tests.sim import exactly_once, run, simulate_all
from tests.sim.mutants import MUTANTS, find


@pytest.mark.parametrize("seed", [0, 1])
def test_no_seed_breaks_a_law(seed: int) -> None:
    failure = simulate_all([exactly_once(seed)]).failure
    assert failure is None, (failure.violations, failure.last_lines)


def test_a_run_is_repeated_exactly() -> None:
    scenario = exactly_once(2)
    assert run(scenario).digest == run(scenario).digest


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_a_mutant_can_be_planted_and_taken_back(mutant: object) -> None:
    chosen = next(one for one in MUTANTS if one is mutant)
    right = vars(chosen.owner)[chosen.function]
    with chosen.planted():
        assert vars(chosen.owner)[chosen.function] is not right
    assert vars(chosen.owner)[chosen.function] is right


def test_a_bug_is_found() -> None:
    mutant = next(one for one in MUTANTS if "rewound" in one.name)
    law, _, _ = find(mutant, 1, hours=1.0)
    assert law in {"lost", "offsets and output differ", "out of order"}
