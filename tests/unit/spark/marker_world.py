"""Runs of one version in all orders: the protocol of markers without any I/O.

A log of markers, transactional ids with epochs, and generators that do one step at a
time: attempts of tasks, and the end of a run in its driver. What is drawn decides which
of them makes the next step, which dies, and when a driver dies and the next one begins,
with the same tasks or with others. Attempts of a dead driver go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from random import Random

from kafkaio.spark._marker_records import (
    MarkerReader,
    begun_record,
    done_record,
    rows_record,
    verified_record,
)
from kafkaio.spark._marker_state import (
    AppState,
    Decision,
    Outcome,
    RowSum,
    TaskReport,
    Verdict,
    decide,
    judge,
    may_commit,
    ours_lost,
    to_commit,
    to_fence,
)

SCOPE = "kafkaio-app"
ROWS = [1000 + number for number in range(12)]


class Fenced(Exception):
    """Another producer has the transactional id."""


class Mismatch(Exception):
    """The rows do not go together with those that are in."""


class Again(Exception):
    """The run has to be repeated."""


@dataclass
class Rules:
    """What is decided by whom; tests replace one of them by a wrong one."""

    decide: Callable[[AppState, int, int, str], Decision] = decide
    may_commit: Callable[[AppState, int, int, str], bool] = may_commit
    fences: bool = True


@dataclass
class Id:
    """A transactional id: who has it, and what is open."""

    epoch: int = 0
    is_open: bool = False
    rows: list[int] = field(default_factory=list)


@dataclass
class Plan:
    """How a run divides the rows, and which it has."""

    tasks: int
    rows: list[int] = field(default_factory=lambda: list(ROWS))

    def of(self, task: int) -> list[int]:
        return self.rows[task :: self.tasks]


def sum_of(rows: list[int]) -> RowSum:
    return RowSum(len(rows), sum(row * row for row in rows) % 2**64)


class World:
    """The broker's side: the log, the ids, and what readers see."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.rules = rules or Rules()
        self.reader = MarkerReader()
        self.ids: dict[int, Id] = {}
        self.visible: Counter[int] = Counter()
        # The epochs of transactions that were left open, by run and task.
        self.held: dict[tuple[str, int], int] = {}

    def take(self, task: int) -> int:
        """InitProducerId: fences, and aborts what is open."""
        each = self.ids.setdefault(task, Id())
        if each.is_open:
            self._end(task, kind=0)
        each.epoch += 1
        return each.epoch

    def write(
        self,
        task: int,
        epoch: int,
        record: tuple[bytes, bytes],
        rows: list[int] | None = None,
    ) -> None:
        each = self._checked(task, epoch)
        each.is_open = True
        each.rows += rows or []
        self.reader.record(task, *record, 0)

    def end(self, task: int, epoch: int, *, commit: bool) -> None:
        self._checked(task, epoch)
        self._end(task, kind=int(commit))

    def expire(self, task: int) -> None:
        """The transaction's time is over."""
        if task in self.ids:
            self.take(task)

    def _checked(self, task: int, epoch: int) -> Id:
        each = self.ids[task]
        if each.epoch != epoch:
            raise Fenced
        return each

    def _end(self, task: int, kind: int) -> None:
        each = self.ids[task]
        if kind:
            self.visible.update(each.rows)
        each.rows, each.is_open = [], False
        self.reader.control(task, kind)

    def state(self) -> AppState:
        return self.reader.state(SCOPE)


@dataclass(frozen=True)
class Task:
    """A task of a run: its rows, and their names."""

    world: World
    plan: Plan
    run: str
    number: int
    version: int = 0

    @property
    def rows(self) -> list[int]:
        return self.plan.of(self.number)

    @property
    def names(self) -> tuple[str, int, int, str]:
        return SCOPE, self.number, self.version, self.run


def attempt(task: Task) -> Iterator[TaskReport | None]:
    """One attempt of a task; yields None after each step, and its report at last."""
    world, number = task.world, task.number
    epoch = world.take(number)
    yield None
    world.write(number, epoch, begun_record(*task.names))
    yield None
    state = world.state()
    yield None
    decision = world.rules.decide(state, number, task.version, task.run)
    if decision in {Decision.WRITE, Decision.HOLD}:
        yield from writing(task, epoch, is_held=decision is Decision.HOLD)
        return
    world.end(number, epoch, commit=False)
    yield None
    rows = sum_of(task.rows)
    outcome = {Decision.COMPARE: Outcome.REPEATED, Decision.DONE: Outcome.DONE}.get(
        decision, Outcome.DIFFERS
    )
    if decision is not Decision.DONE and state.tasks[number].rows == rows:
        if decision is Decision.VERIFY:
            outcome = Outcome.VERIFIED
            world.write(number, epoch, verified_record(*task.names))
            world.end(number, epoch, commit=True)
            yield None
    else:
        assert decision is not Decision.COMPARE
    yield TaskReport(number, outcome, rows)


def writing(task: Task, epoch: int, *, is_held: bool) -> Iterator[TaskReport | None]:
    """Write the rows in two parts; commit, or leave the end to the driver."""
    world, number, mine = task.world, task.number, task.rows
    half, rows = len(mine) // 2, sum_of(mine)
    world.write(number, epoch, begun_record(*task.names), mine[:half])
    yield None
    world.write(number, epoch, rows_record(*task.names, rows), mine[half:])
    yield None
    if is_held:
        state = world.state()
        yield None
        if not world.rules.may_commit(state, number, task.version, task.run):
            world.held[task.run, number] = epoch
            yield TaskReport(number, Outcome.HELD, rows, None, number)
            return
    world.end(number, epoch, commit=True)
    yield None
    yield TaskReport(number, Outcome.WRITTEN, rows)


def ending(
    world: World, run: str, reports: dict[int, TaskReport], version: int = 0
) -> Iterator[None]:
    """The end of a run in its driver; raises Mismatch or Again."""
    total = RowSum.total(report.rows for report in reports.values())
    if not all(report.is_settled for report in reports.values()):
        state = yield from decided(world, run, version)
        total = yield from judged(world, state, run, reports)
    yield None
    world.reader.record(-1, *done_record(SCOPE, version, run, total), 0)


def decided(world: World, run: str, version: int) -> Generator[None, None, AppState]:
    """Fence what other runs have open."""
    state = world.state()
    yield None
    if world.rules.fences:
        for task in to_fence(state, version, run):
            world.take(task)
            yield None
        state = world.state()
        yield None
        if to_fence(state, version, run):
            raise Again
    return state


def judged(
    world: World, state: AppState, run: str, reports: dict[int, TaskReport]
) -> Generator[None, None, RowSum]:
    """Commit or abort what the tasks hold; return the rows of the version."""
    judgement = judge(state, 0, run, reports)
    if judgement.verdict is Verdict.COMMIT:
        if ours_lost(state, 0, run, reports):
            raise Again
        for task in to_commit(state, 0, run, reports):
            try:
                world.end(task, world.held[run, task], commit=True)
            except Fenced:
                raise Again from None
            yield None
        return judgement.repeated
    for task, each in reports.items():
        if each.outcome is Outcome.HELD:
            world.take(task)
            yield None
    if judgement.verdict is Verdict.MISMATCH:
        raise Mismatch
    return judgement.committed


@dataclass
class Schedule:
    """What may go wrong.

    Attributes:
        plans: the plans of the drivers, one after the other; each dies but the last.
        dies: how often an attempt dies at a step.
        driver_dies: how often a driver dies at a step of anything.
        expires: how often a transaction times out at a step.
    """

    plans: list[Plan]
    dies: float = 0.05
    driver_dies: float = 0.04
    expires: float = 0.02


class Simulation:
    """Runs of a version, until the last driver has come to an end."""

    def __init__(self, world: World, schedule: Schedule, rng: Random) -> None:
        self.world = world
        self._schedule = schedule
        self._rng = rng
        # Attempts of dead drivers, and those that speculation leaves.
        self._zombies: list[Iterator[TaskReport | None]] = []

    def run(self) -> str:
        """Return how the last driver has ended."""
        *early, last = self._schedule.plans
        for number, plan in enumerate(early):
            self._drive(plan, f"run-{number}", self._schedule.driver_dies)
        # The last ones die no more; but transactions of zombies are still in the way.
        self._schedule.dies = self._schedule.expires = 0.0
        outcome = ""
        for number in range(20):
            outcome = self._drive(last, f"last-{number}", 0.0)
            if outcome != "again":
                break
            self._zombies.clear()
        return outcome

    def _drive(self, plan: Plan, run: str, dies: float) -> str:
        rng, world = self._rng, self.world
        reports: dict[int, TaskReport] = {}
        running: dict[int, list[Iterator[TaskReport | None]]] = {}
        waiting = list(range(plan.tasks))
        rng.shuffle(waiting)
        slots = rng.randrange(1, plan.tasks + 1)
        while len(reports) < plan.tasks:
            if rng.random() < dies:
                self._zombies += [each for many in running.values() for each in many]
                return "died"
            while waiting and len(running) < slots:
                task = Task(world, plan, run, waiting.pop())
                speculated = rng.random() < 0.15
                attempts = [attempt(task) for _ in range(1 + speculated)]
                running[task.number] = attempts
            self._step_zombie()
            self._step_one(running, waiting, reports)
        return self._end(ending(world, run, reports), dies)

    def _step_one(
        self,
        running: dict[int, list[Iterator[TaskReport | None]]],
        waiting: list[int],
        reports: dict[int, TaskReport],
    ) -> None:
        task = self._rng.choice(list(running))
        each = self._rng.choice(running[task])
        report = self._step(each)
        if report is False:
            running[task].remove(each)
            if not running[task]:
                del running[task]
                waiting.append(task)
        elif isinstance(report, TaskReport):
            reports[task] = report
            self._zombies += [it for it in running.pop(task) if it is not each]

    def _end(self, end: Iterator[None], dies: float) -> str:
        try:
            for _ in end:
                self._step_zombie()
                if self._rng.random() < dies:
                    return "died"
        except Mismatch:
            return "mismatch"
        except Again:
            return "again"
        return "done"

    def _step(self, each: Iterator[TaskReport | None]) -> TaskReport | bool | None:
        # Returns False if the attempt has ended without a report.
        rng = self._rng
        if rng.random() < self._schedule.dies:
            return False
        if rng.random() < self._schedule.expires and self.world.ids:
            self.world.expire(rng.choice(list(self.world.ids)))
        try:
            return next(each, False)
        except Fenced:
            return False

    def _step_zombie(self) -> None:
        if self._zombies and self._rng.random() < 0.4:
            each = self._rng.choice(self._zombies)
            if self._step(each) is not None:
                self._zombies.remove(each)
