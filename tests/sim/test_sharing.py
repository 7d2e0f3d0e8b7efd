"""Members of a share group: a few seeds.

Hundreds of them are ``nox -s "nightly(simulation-share)"``.
"""

import pytest

from tests.sim import run, sharing, simulate_all


@pytest.mark.parametrize("seed", [0, 3])
def test_no_seed_breaks_a_law(seed: int) -> None:
    failure = simulate_all([sharing(seed)]).failure
    assert failure is None, (failure.violations, failure.last_lines)


def test_a_run_is_repeated_exactly() -> None:
    assert run(sharing(1)).digest == run(sharing(1)).digest
