"""``python -m tests.sim``: simulate for hours, and report the result."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace

from tests.sim.mutants import MUTANTS, find
from tests.sim.report import simulate, simulate_all
from tests.sim.scenario import Scenario, exactly_once, rebalancing, sharing
from tests.sim.shrink import shrink
from tests.sim.world import Outcome

__all__ = ["main"]


def _arguments(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(
        prog="python -m tests.sim",
        description="Run a cluster, a producer and a group on a virtual clock, with"
        " faults drawn from a seed; check that nothing is lost. For tests only.",
    )
    add = parser.add_argument
    add(
        "--scenario",
        choices=("faults", "rebalance", "exactly-once", "share"),
        default="faults",
        help="faults of every kind; or a group that rebalances all the time, whose"
        " members hold partitions that are to be revoked; or members that copy in"
        " transactions; or members of a share group",
    )
    add("--hours", type=float, help="simulated hours in all; one by default")
    add(
        "--seeds",
        type=int,
        help="instead of hours: the number of runs, each of its own seed",
    )
    add(
        "--seed",
        type=int,
        default=0,
        help="the first seed, from which faults are drawn",
    )
    add("--part", type=int, default=0, help="the first run: to repeat one of many")
    add("--minutes", type=float, help="simulated minutes of one run")
    add("--members", type=int, help="consumers in the group")
    add("--fault-every", type=float, help="seconds")
    add("--group-protocol", choices=("classic", "eager", "consumer"))
    add("--jobs", type=int, default=1, help="the number of processes")
    add(
        "--mutants",
        action="store_true",
        help="plant bugs of transactions, and find each within an hour",
    )
    add("--mutant", default="", help="plant only those with this in their names")
    add("--no-shrink", action="store_true", help="show a failing schedule as drawn")
    add("--verbose", action="store_true", help="report every run")
    asked = parser.parse_args(arguments)
    if asked.hours is not None and asked.seeds is not None:
        parser.error("give hours or seeds")
    return asked


def _scenario(asked: Namespace, seed: int) -> Scenario:
    if asked.scenario == "rebalance":
        scenario = rebalancing(seed, asked.group_protocol)
    elif asked.scenario == "exactly-once":
        scenario = exactly_once(seed, asked.group_protocol)
    elif asked.scenario == "share":
        scenario = sharing(seed)
    else:
        protocol = asked.group_protocol or "classic"
        scenario = Scenario(seed=seed, group_protocol=protocol)
    chosen = {
        "seconds": None if asked.minutes is None else asked.minutes * 60,
        "members": asked.members,
        "fault_every": asked.fault_every,
    }
    given = {name: value for name, value in chosen.items() if value is not None}
    return replace(scenario, part=asked.part, **given)


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate as the command line says.

    Returns:
        1 if a law was broken, else 0.
    """
    asked = _arguments(arguments)
    if asked.mutants:
        return _find_mutants(asked.mutant, asked.seed, asked.hours or 1.0)

    def tell(outcome: Outcome) -> None:
        if asked.verbose:
            scenario = outcome.scenario
            print(
                f"seed {scenario.seed} part {scenario.part}:"
                f" {outcome.acknowledged} acknowledged,"
                f" {outcome.delivered} handed out, digest {outcome.digest}",
                flush=True,
            )

    if asked.seeds is None:
        first, hours = _scenario(asked, asked.seed), asked.hours or 1.0
        report = simulate(first, hours, jobs=asked.jobs, on_outcome=tell)
    else:
        seeds = range(asked.seed, asked.seed + asked.seeds)
        scenarios = [_scenario(asked, seed) for seed in seeds]
        report = simulate_all(scenarios, jobs=asked.jobs, on_outcome=tell)
    print(report)
    if report.failure is None:
        return 0
    failed = report.failure.scenario
    print(f"\nFAILED, with seed {failed.seed}, in part {failed.part}:")
    if not asked.no_shrink:
        print("(finding out which faults it takes)", flush=True)
    _tell_failure(report.failure if asked.no_shrink else shrink(report.failure))
    print(f"\nagain: {_again(asked.scenario, failed)}")
    return 1


def _find_mutants(part: str, seed: int, hours: float) -> int:
    missed = 0
    for mutant in MUTANTS:
        if part in mutant.name:
            law, spent, of_seed = find(mutant, seed, hours)
            missed += not law
            print(f"{mutant.name:60} {law or 'NOT FOUND':28} {spent / 60:5.1f} min")
            print(f"{'':60} seed {of_seed}", flush=True)
    print(f"not found: {missed}")
    return 1 if missed else 0


def _again(name: str, scenario: Scenario) -> str:
    return (
        f"python -m tests.sim --scenario {name}"
        f" --seed {scenario.seed} --seeds 1 --part {scenario.part}"
        f" --minutes {scenario.seconds / 60:g} --members {scenario.members}"
        f" --fault-every {scenario.fault_every:g}"
        f" --group-protocol {scenario.group_protocol}"
    )


def _tell_failure(outcome: Outcome) -> None:
    for violation in outcome.violations:
        print(f"  {violation}")
    print(f"what it takes, of a run of {outcome.scenario.seconds:.1f} s:")
    for fault in outcome.faults:
        print(f"  {fault}")
    print("the last that happened:")
    for line in outcome.last_lines:
        print(f"  {line}")


if __name__ == "__main__":
    sys.exit(main())
