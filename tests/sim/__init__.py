"""Client and cluster on one virtual clock, with faults drawn from a seed.

::

    report = simulate(Scenario(seed=7), hours=100)
    if report.failure:
        print(shrink(report.failure).faults)

A cluster in memory, a producer and a consumer group run on an event loop whose clock
jumps from one timer to the next, so that an hour takes seconds. A schedule of faults is
drawn from the seed. Everything that happens is checked against the laws that hold for
any client, which `tests.sim.checker` states. The same seed gives the same run in every
process.

Invariant: nothing may take the time or a random number from anywhere but the loop and
`kafkaio._runtime.clock`, use a thread or a socket, or depend on the order of a set.
"""

from __future__ import annotations

from tests.sim.loop import VirtualClockLoop
from tests.sim.report import Report, simulate, simulate_all
from tests.sim.scenario import (
    Fault,
    Kind,
    Scenario,
    draw_faults,
    exactly_once,
    rebalancing,
    sharing,
)
from tests.sim.shrink import shrink
from tests.sim.violation import Violation
from tests.sim.world import Outcome, run

__all__ = [
    "Fault",
    "Kind",
    "Outcome",
    "Report",
    "Scenario",
    "Violation",
    "VirtualClockLoop",
    "draw_faults",
    "exactly_once",
    "rebalancing",
    "run",
    "sharing",
    "shrink",
    "simulate",
    "simulate_all",
]
