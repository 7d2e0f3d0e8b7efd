"""Many runs from one seed, and their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import blake2b
from multiprocessing import get_context
from typing import Final

from tests.sim.scenario import Scenario
from tests.sim.world import Outcome, run

__all__ = ["Report", "simulate", "simulate_all"]

_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Report:
    """The results of a simulation.

    Attributes:
        outcomes: all runs in order; only the last can have failed.
    """

    outcomes: tuple[Outcome, ...]

    @property
    def failure(self) -> Outcome | None:
        """The run that broke a law, None if none did."""
        return next((one for one in self.outcomes if one.violations), None)

    @property
    def digest(self) -> str:
        """Equal for two simulations in which the same happened."""
        whole = blake2b(digest_size=16)
        for outcome in self.outcomes:
            whole.update(outcome.digest.encode())
        return whole.hexdigest()

    def __str__(self) -> str:
        hours = sum(one.seconds for one in self.outcomes) / _HOUR
        faults = Counter(
            fault.kind.value for one in self.outcomes for fault in one.faults
        )
        failed = sum(bool(one.violations) for one in self.outcomes)
        lines = [
            f"simulated hours   {hours:.1f} in {len(self.outcomes)} runs",
            f"records           {self._sum('acknowledged')} acknowledged,"
            f" {self._sum('failed')} failed",
            f"handed out        {self._sum('delivered')},"
            f" {self._sum('repeated')} of them again",
            f"requests          {self._sum('requests')}",
            f"faults            {faults.total()}",
            *(f"  {count:6d}  {kind}" for kind, count in faults.most_common()),
            f"runs that failed  {failed}",
            f"digest            {self.digest}",
        ]
        return "\n".join(lines)

    def _sum(self, name: str) -> int:
        return sum(int(getattr(one, name)) for one in self.outcomes)


def simulate(
    scenario: Scenario,
    hours: float,
    *,
    jobs: int = 1,
    on_outcome: Callable[[Outcome], None] | None = None,
) -> Report:
    """Run a scenario for many simulated hours, until a law is broken.

    The hours are divided into runs of the scenario's length. Each run draws its own
    faults from the seed, starts with a new cluster, and ends when everything is read,
    committed, closed and checked. So a failure is one run, which its ``Scenario``
    repeats alone.

    Args:
        scenario: what to run; its ``part`` is the first.
        hours: simulated hours in all, at least one run.
        jobs: the number of processes; 1 runs everything in this one.
        on_outcome: called with every run, in order.

    Returns:
        The results, which do not depend on the number of jobs.
    """
    count = max(1, round(hours * _HOUR / scenario.seconds))
    parts = [replace(scenario, part=scenario.part + index) for index in range(count)]
    return simulate_all(parts, jobs=jobs, on_outcome=on_outcome)


def simulate_all(
    scenarios: Iterable[Scenario],
    *,
    jobs: int = 1,
    on_outcome: Callable[[Outcome], None] | None = None,
) -> Report:
    """Run scenarios one after the other, until a law is broken.

    Args:
        scenarios: what to run.
        jobs: the number of processes; 1 runs everything in this one.
        on_outcome: called with every run, in order.

    Returns:
        The results, which do not depend on the number of jobs.
    """
    outcomes: list[Outcome] = []
    with closing(_run_all(scenarios, jobs)) as found:
        for outcome in found:
            outcomes.append(outcome)
            if on_outcome is not None:
                on_outcome(outcome)
            if outcome.violations:
                break
    return Report(tuple(outcomes))


def _run_all(
    scenarios: Iterable[Scenario], jobs: int
) -> Generator[Outcome, None, None]:
    if jobs == 1:
        yield from map(run, scenarios)
        return
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    try:
        yield from pool.map(run, scenarios)
    finally:
        pool.shutdown(cancel_futures=True)
