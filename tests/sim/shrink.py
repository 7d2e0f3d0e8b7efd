"""Finding the few faults of a schedule that a failure needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from tests.sim.world import Outcome, run

__all__ = ["shrink", "smallest"]

T = TypeVar("T")

#: Runs that shrinking may take.
_MOST_RUNS: Final = 80
#: Seconds that a run goes on after its last fault may have shown.
_MARGIN: Final = 1.0


def smallest(
    items: Sequence[T], fails: Callable[[Sequence[T]], bool], most_runs: int
) -> Sequence[T]:
    """Leave out of ``items`` what is not needed (Zeller's ddmin).

    Args:
        items: what fails as a whole.
        fails: whether some of them fail, too.
        most_runs: how often that may be asked.

    Returns:
        Items that fail, in their order. Unless there were too many runs, it takes
        every one of them to fail.
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
        outcome: a run that failed; one that did not comes back as it is.
        most_runs: runs that it may take, each as long as the failed one at most.

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

    # What would have come later cannot matter, but for what needed the end.
    scenario = outcome.scenario
    if first.at < scenario.seconds:
        scenario = replace(scenario, seconds=first.at + _MARGIN)
    earlier = [fault for fault in outcome.faults if fault.at <= first.at]
    smallest(earlier, fails, most_runs)
    return best
