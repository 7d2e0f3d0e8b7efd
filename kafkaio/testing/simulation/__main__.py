"""``python -m kafkaio.testing.simulation``: simulate for hours, and tell about it."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from kafkaio.testing.simulation.report import simulate
from kafkaio.testing.simulation.scenario import Scenario
from kafkaio.testing.simulation.shrink import shrink
from kafkaio.testing.simulation.world import Outcome

__all__ = ["main"]


def _arguments(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(
        prog="python -m kafkaio.testing.simulation",
        description="Run a cluster, a producer and a group on a virtual clock, with"
        " faults drawn from a seed; check that nothing is lost. For tests only.",
    )
    known = Scenario()
    add = parser.add_argument
    add("--hours", type=float, default=1.0, help="simulated hours in all")
    add("--seed", type=int, default=0, help="what faults are drawn from")
    add("--part", type=int, default=0, help="the first run: to repeat one of many")
    add("--minutes", type=float, default=60.0, help="simulated minutes of one run")
    add("--members", type=int, default=known.members, help="consumers in the group")
    add("--fault-every", type=float, default=known.fault_every, help="seconds")
    add("--group-protocol", choices=("classic", "consumer"), default="classic")
    add("--jobs", type=int, default=1, help="processes that share the runs")
    add("--no-shrink", action="store_true", help="show a failing schedule as drawn")
    add("--verbose", action="store_true", help="tell of every run")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate as the command line says.

    Returns:
        1 if a law was broken, else 0.
    """
    asked = _arguments(arguments)
    scenario = Scenario(
        seed=asked.seed,
        part=asked.part,
        seconds=asked.minutes * 60,
        members=asked.members,
        fault_every=asked.fault_every,
        group_protocol=asked.group_protocol,
    )

    def tell(outcome: Outcome) -> None:
        if asked.verbose:
            print(
                f"part {outcome.scenario.part}: {outcome.acknowledged} acknowledged,"
                f" {outcome.delivered} handed out, digest {outcome.digest}",
                flush=True,
            )

    report = simulate(scenario, asked.hours, jobs=asked.jobs, on_outcome=tell)
    print(report)
    if report.failure is None:
        return 0
    print(f"\nFAILED, in part {report.failure.scenario.part}:")
    if not asked.no_shrink:
        print("(finding out which faults it takes)", flush=True)
    _tell_failure(report.failure if asked.no_shrink else shrink(report.failure))
    print(f"\nagain: {_again(report.failure.scenario)}")
    return 1


def _again(scenario: Scenario) -> str:
    return (
        f"python -m kafkaio.testing.simulation --seed {scenario.seed}"
        f" --part {scenario.part} --hours {scenario.seconds / 3600:g}"
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
    for line in outcome.last_words:
        print(f"  {line}")


if __name__ == "__main__":
    sys.exit(main())
