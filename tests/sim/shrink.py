"""Find the few faults of a schedule that a failure needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from tests.sim.world import Outcome, run

__all__ = ["shrink", "smallest"]

T = TypeVar("T")

#: Runs that shrinking may take.
_MOST_RUNS: Final = 80
#: Seconds that a run goes on after the time of the failure.
_MARGIN: Final = 1.0


def smallest(
    items: Sequence[T], fails: Callable[[Sequence[T]], bool], most_runs: int
) -> Sequence[T]:
    """Remove from ``items`` what a failure does not need (Zeller's ddmin).

    Args:
        items: they fail together.
        fails: whether a part of them still fails.
        most_runs: the most calls of ``fails``.

    Returns:
        Items that fail, in their order. Unless ``most_runs`` was reached, none of them
        can be removed.
    """
    if most_runs > 0 and fails(items[:0]):
        return items[:0]
    runs, parts = 1, 2
    while len(items) > 1:
        size = -(-len(items) // parts)
        for start in range(0, len(items), size):
            if runs >= most_runs:
                return items
            rest = [*items[:start], *items[start + size :]]
            runs += 1
            if fails(rest):
                items, parts = rest, max(parts - 1, 2)
                break
        else:
            if parts >= len(items):
                return items
            parts = min(2 * parts, len(items))
    return items


def shrink(outcome: Outcome, most_runs: int = _MOST_RUNS) -> Outcome:
    """Find a short schedule that breaks the same law as a failed run.

    Args:
        outcome: a run that failed; one that did not is returned as it is.
        most_runs: the most runs, each at most as long as the failed one.

    Returns:
        The run of the short schedule.
    """
    if not outcome.violations:
        return outcome
    first = outcome.violations[0]
    best = outcome

    def fails(faults: Sequence[object]) -> bool:
        nonlocal best
        chosen = [fault for fault in outcome.faults if fault in faults]
        found = run(scenario, chosen)
        has_failed = bool(found.violations) and found.violations[0].law == first.law
        if has_failed:
            best = found
        return has_failed

    # Later faults cannot matter, unless the law is checked at the end of the run.
    scenario = outcome.scenario
    if first.at < scenario.seconds:
        scenario = replace(scenario, seconds=first.at + _MARGIN)
    earlier = [fault for fault in outcome.faults if fault.at <= first.at]
    smallest(earlier, fails, most_runs)
    return best
