"""The state that markers describe, and the decisions based on it; without I/O.

Terms: an *application* writes *versions* (batches), each by *tasks*. Spark may execute
the write of a version several times. Each execution is a *run*, with a random id that
all its attempts share. Two runs of a version may divide the same rows among different
tasks.

Markers, in the order of one log:

- *begun*: a transaction of a task is open, and of which run it is;
- *rows*: a transaction of the task was committed, with these rows;
- *verified*: a run had the same rows for a task that another run had committed;
- *done*: the whole version is in.

`decide` chooses the action of an attempt, after it has fenced the other attempts of its
task and its own *begun* is in the log. Of two attempts of different runs, one has its
*begun* later in the log, and reads the other's: open, committed or aborted. So at most
one run writes a version without having seen another one. Every other run *repairs* it:
its tasks leave their transactions open (`Decision.HOLD`), and the driver judges
(`judge`) when it knows the rows of all its tasks, before anything becomes visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from kafkaio._dataclass import dataclass

_MODULUS: Final = 2**64


@dataclass(frozen=True, slots=True)
class RowSum:
    """The number of rows, and the sum of their hashes (`kafkaio.spark._digest`).

    Attributes:
        rows: the number of rows.
        digest: the sum of their hashes.
        way: the version of the algorithm for the hashes.
    """

    rows: int = 0
    digest: int = 0
    way: int = 1

    def __str__(self) -> str:
        return f"{self.rows} rows, digest {self.digest:016x}"

    def is_same(self, other: RowSum) -> bool:
        """Return whether both are the same rows, as far as they can be compared.

        Digests of different algorithms cannot be compared: then the numbers of rows
        decide.
        """
        if self.rows != other.rows:
            return False
        return self.way != other.way or self.digest == other.digest

    @classmethod
    def total(cls, parts: Iterable[RowSum]) -> RowSum:
        """Add up the rows of several tasks; their division does not matter."""
        rows, digest, ways = 0, 0, set[int]()
        for part in parts:
            rows += part.rows
            digest = (digest + part.digest) % _MODULUS
            if part.rows:
                ways.add(part.way)
        # Hashes of different algorithms cannot be added up: 0 differs from the number
        # of each algorithm, so that only the numbers of rows are compared.
        way = ways.pop() if len(ways) == 1 else (0 if ways else 1)
        return cls(rows, digest, way)


@dataclass(frozen=True, slots=True)
class RowsMarker:
    """Says that rows are in: those of a task, or those of a whole version.

    Attributes:
        version: of which version they are.
        run: the run that committed them.
        rows: which rows; None if the marker does not say.
        timestamp: when it was written, in milliseconds since the Unix epoch.
    """

    version: int
    run: str
    rows: RowSum | None
    timestamp: int = -1


@dataclass(frozen=True, slots=True)
class Begun:
    """Says that a transaction of a task is open.

    Attributes:
        version: which version it writes.
        run: of which run it is.
        producer_id: the id of its producer.
        timestamp: when it began, in milliseconds since the Unix epoch.
    """

    version: int
    run: str
    producer_id: int
    timestamp: int = -1


@dataclass(slots=True, kw_only=True)
class AppState:
    """The state of an application, read from its markers.

    Attributes:
        done: the last version that is in as a whole.
        tasks: the rows that each task committed last.
        verified: the version and the run that verified the rows of a task last.
        open: the transactions that are open.
        is_begun_elsewhere: whether another run has begun the version that was asked
            about. It is for stores that do not know all open transactions.
        is_refused: whether a task of the version that was asked about had other rows
            than those that it has committed.
    """

    done: RowsMarker | None
    tasks: dict[int, RowsMarker]
    verified: dict[int, tuple[int, str]]
    open: dict[int, Begun]
    is_begun_elsewhere: bool = False
    is_refused: bool = False

    @classmethod
    def empty(cls) -> AppState:
        """Return the state of an application that has no markers."""
        return cls(done=None, tasks={}, verified={}, open={})

    def of_others(self, version: int, run: str) -> dict[int, RowsMarker]:
        """Return the tasks of a version that other runs have committed."""
        return {
            task: marker
            for task, marker in self.tasks.items()
            if marker.version == version and marker.run != run
        }

    def later_than(self, version: int) -> int | None:
        """Return a later version that has been written; None if there is none."""
        # Rows of one task are enough: Spark begins a version after it has committed the
        # one before.
        versions = [marker.version for marker in self.tasks.values()]
        if self.done is not None:
            versions.append(self.done.version)
        latest = max(versions, default=-1)
        return latest if latest > version else None


class Decision(Enum):
    """The action of an attempt of a task."""

    #: Write them and commit: no other run has begun the version.
    WRITE = "write"
    #: Compare them with those that this run has committed for the task already.
    COMPARE = "compare"
    #: Compare them with those that another run has committed for the task.
    VERIFY = "verify"
    #: Write them, and leave the commit to the driver.
    HOLD = "hold"
    #: Count them: the whole version is in.
    DONE = "done"
    #: Count them: a later version was written, so this one is in.
    LATER = "later"
    #: Write nothing: another task of the version had other rows than before.
    REFUSE = "refuse"


def decide(state: AppState, task: int, version: int, run: str) -> Decision:
    """Return the action of an attempt of a task.

    Args:
        state: the markers, read after this attempt fenced the others of its task, and
            at least up to its own *begun*.
        task: number of the task.
        version: the version that it writes.
        run: the run that it belongs to.
    """
    if state.later_than(version) is not None:
        return Decision.LATER
    if state.done is not None and state.done.version == version:
        return Decision.DONE
    own = state.tasks.get(task)
    if own is not None and own.version == version:
        if own.run == run:
            return Decision.COMPARE
        if _has_rows(own):
            return Decision.VERIFY
        # A task without rows committed nothing that could be doubled. Its run may have
        # divided the rows differently, so this attempt may have some.
    if state.is_refused:
        return Decision.REFUSE
    if _has_others(state, version, run):
        return Decision.HOLD
    return Decision.WRITE


def _has_others(state: AppState, version: int, run: str) -> bool:
    return (
        state.is_begun_elsewhere
        or bool(state.of_others(version, run))
        or any(
            begun.version == version and begun.run != run
            for begun in state.open.values()
        )
    )


def may_commit(state: AppState, task: int, version: int, run: str) -> bool:
    """Return whether a task of a repairing run may commit without the driver.

    It may if the run has verified all rows of the version that others have committed:
    then these are rows of other tasks of this run. Also, no other run may be able to
    commit more. So a long repetition with the same tasks does not have to hold all its
    transactions open until its end.

    Args:
        state: the markers, read after the task has written its rows.
        task: number of the task.
        version: the version that it writes.
        run: the run that it belongs to.
    """
    if state.is_begun_elsewhere or state.is_refused:
        return False
    if state.later_than(version) is not None:
        return False
    if state.done is not None and state.done.version == version:
        return False
    if any(
        begun.version == version and begun.run != run for begun in state.open.values()
    ):
        return False
    return all(
        other == task or state.verified.get(other) == (version, run)
        for other in state.of_others(version, run)
    )


class Outcome(Enum):
    """The fate of the rows of a task."""

    #: Committed by the attempt.
    WRITTEN = "written"
    #: Committed by an earlier attempt of the same run.
    REPEATED = "repeated"
    #: Committed by another run, in the same task.
    VERIFIED = "verified"
    #: Not written: another run has committed other rows in this task.
    DIFFERS = "differs"
    #: Written, in a transaction that is left open.
    HELD = "held"
    #: Not written: the whole version was in.
    DONE = "done"
    #: Not written: a later version was in.
    LATER = "later"


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The report of a task to its driver.

    Attributes:
        task: number of the task.
        outcome: the fate of its rows.
        rows: its rows.
        expected: the rows of the whole version, if it was in.
        producer_id: the producer whose transaction it has left open; -1 for none.
    """

    task: int
    outcome: Outcome
    rows: RowSum
    expected: RowSum | None = None
    producer_id: int = -1

    @property
    def is_settled(self) -> bool:
        """Whether its rows need no decision of the driver."""
        return self.outcome in {Outcome.WRITTEN, Outcome.REPEATED, Outcome.LATER}


def to_fence(state: AppState, version: int, run: str) -> list[int]:
    """Return the tasks whose open transactions other runs could still commit."""
    return sorted(
        task
        for task, begun in state.open.items()
        if begun.version <= version and begun.run != run
    )


def to_commit(
    state: AppState, version: int, run: str, reports: Mapping[int, TaskReport]
) -> list[int]:
    """Return the tasks whose transactions the driver has to commit.

    Tasks whose rows another run has committed meanwhile are left out: a late attempt of
    that run fenced the open transaction.
    """
    others = state.of_others(version, run)
    return sorted(
        task
        for task, report in reports.items()
        if report.outcome is Outcome.HELD
        and ((marker := others.get(task)) is None or not _has_rows(marker))
    )


def ours_lost(
    state: AppState, version: int, run: str, reports: Mapping[int, TaskReport]
) -> list[int]:
    """Return the tasks whose transactions should be committed, and are not open."""
    # By the producer, too: an attempt that has fenced ours may have begun again.
    return [
        task
        for task in to_commit(state, version, run, reports)
        if (begun := state.open.get(task)) is None
        or begun.run != run
        or begun.producer_id != reports[task].producer_id
    ]


def _has_rows(marker: RowsMarker) -> bool:
    # Unknown rows count as some, so that nothing is doubled.
    return marker.rows is None or marker.rows.rows > 0


class Verdict(Enum):
    """The driver's decision on a repetition."""

    #: Commit its open transactions: they complete the rows of other runs.
    COMMIT = "commit"
    #: Abort its open transactions: the version is in, in these or in other tasks.
    COMPLETE = "complete"
    #: Abort its open transactions: its rows and those that are in do not match.
    MISMATCH = "mismatch"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, and the rows that it is based on.

    Attributes:
        verdict: the decision.
        committed: the rows of the version that are in.
        repeated: the rows of the repetition.
    """

    verdict: Verdict
    committed: RowSum
    repeated: RowSum


def judge(
    state: AppState, version: int, run: str, reports: Mapping[int, TaskReport]
) -> Judgement:
    """Judge a repetition, when all its tasks have reported.

    Args:
        state: the markers, read after everything of other runs was fenced.
        version: the version.
        run: the run.
        reports: the reports of all its tasks, by their numbers.
    """
    repeated = RowSum.total(report.rows for report in reports.values())
    present = [each for each in state.tasks.values() if each.version == version]
    committed = RowSum.total(each.rows or RowSum() for each in present)
    # The note of the whole version wins: markers of tasks may be of several runs.
    done = state.done
    if done is not None and done.version == version and done.rows is not None:
        committed = done.rows
    elif _completes(state, version, run, reports):
        return Judgement(Verdict.COMMIT, committed, repeated)
    is_same = committed.is_same(repeated)
    verdict = Verdict.COMPLETE if is_same else Verdict.MISMATCH
    return Judgement(verdict, committed, repeated)


def _completes(
    state: AppState, version: int, run: str, reports: Mapping[int, TaskReport]
) -> bool:
    """Return whether a run repeats the rows of others in the same tasks."""
    if any(report.outcome is Outcome.DIFFERS for report in reports.values()):
        return False
    for task, marker in state.of_others(version, run).items():
        if not _has_rows(marker):
            continue
        report = reports.get(task)
        if report is None or report.outcome not in {Outcome.VERIFIED, Outcome.HELD}:
            return False
        if marker.rows is None or not marker.rows.is_same(report.rows):
            return False
    return True
