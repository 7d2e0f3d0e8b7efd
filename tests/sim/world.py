"""One run of a scenario: everything on one loop, on virtual time."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kafkaio._runtime import clock
from tests.sim.copying import CopyPlay
from tests.sim.group import GroupPlay
from tests.sim.loop import VirtualClockLoop
from tests.sim.scenario import Fault, Scenario, draw_faults
from tests.sim.sharing import SharePlay
from tests.sim.stage import Play, Stage
from tests.sim.violation import Violation

__all__ = ["Outcome", "run"]

#: Seconds since the Unix epoch at which every run begins.
_EPOCH: Final = 1_750_000_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one run.

    Attributes:
        scenario: the scenario.
        faults: its schedule.
        violations: the laws that were broken; the run ends with the first.
        digest: equal for runs in which the same happened at the same times.
        seconds: simulated seconds.
        acknowledged: the number of acknowledged records.
        failed: the number of failed deliveries, whose records may have been written.
        delivered: the number of records that consumers returned.
        repeated: how many of those had been returned before.
        requests: the number of requests that clients sent.
        last_lines: the last lines of the trace.
    """

    scenario: Scenario
    faults: tuple[Fault, ...]
    violations: tuple[Violation, ...]
    digest: str
    seconds: float
    acknowledged: int
    failed: int
    delivered: int
    repeated: int
    requests: int
    last_lines: tuple[str, ...]


def run(scenario: Scenario, faults: Sequence[Fault] | None = None) -> Outcome:
    """Run a scenario once, until its end or the first violation.

    A run does not depend on the time of day, on other threads or on the order of sets:
    the same scenario and faults give the same digest in every process. No event loop
    may be running in this thread.

    Args:
        scenario: the scenario.
        faults: the schedule; by default it is drawn from the scenario's seed.
    """
    schedule = draw_faults(scenario) if faults is None else tuple(faults)
    runner = asyncio.Runner(loop_factory=VirtualClockLoop)
    loop = runner.get_loop()
    stage = Stage(scenario, loop.time)
    play = _play(stage)
    loop.set_exception_handler(stage.unhandled)
    gc.freeze()  # what is there already need not be looked at again and again

    def wall_ns() -> int:
        return _EPOCH * 10**9 + round(loop.time() * 10**9)

    with clock.replaced(wall_ns, scenario.rng("client")):
        try:
            runner.run(stage.live(play, schedule))
        except RuntimeError as error:
            # Raised by the loop itself: a deadlock or a livelock.
            stage.stuck(error)
        finally:
            with suppress(RuntimeError):  # tasks may still be stuck
                runner.close()
            loop.close()
            gc.collect()  # reports coroutines that were never awaited
            gc.unfreeze()
    tally = play.tally
    return Outcome(
        scenario,
        schedule,
        tuple(stage.violations),
        stage.trace.digest,
        loop.time(),
        tally.acknowledged,
        tally.failed,
        tally.delivered,
        tally.repeated,
        stage.requests,
        tuple(stage.trace.last),
    )


def _play(stage: Stage) -> Play:
    if stage.scenario.shares:
        return SharePlay(stage)
    return CopyPlay(stage) if stage.scenario.copies else GroupPlay(stage)
