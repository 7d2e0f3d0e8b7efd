"""The driver's part of a write, after all tasks have reported.

Usually all tasks have committed, and a batch only records that it is in as a whole.
Where another run had begun the same version, tasks have left their transactions open.
Then the driver

1. fences the open transactions of other runs, and waits until they have ended;
2. reads the markers again;
3. judges (`kafkaio.spark._marker_state.judge`): it commits the transactions of its
   tasks if they complete what other runs have committed. It aborts them if the version
   is in already, or if the rows do not match, which is a `ReplayMismatch`;
4. records that the version is in.

It may die between any two of these steps. The next attempt of a task, the next driver,
or the time limit aborts a transaction that it leaves open. For the next run, one that
it has committed is a transaction of another run.

Processes that live for one call import this module, so it does not import pyarrow.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from kafkaio._client import Client
from kafkaio._dataclass import dataclass
from kafkaio._producer.detached import DetachedTransaction, end_detached
from kafkaio.errors import KafkaError, OutcomeUnknown, RequestTimeout
from kafkaio.spark._errors import one_of_many
from kafkaio.spark._marker_groups import UNKNOWN_RUN
from kafkaio.spark._marker_names import marker_scope, transactional_id
from kafkaio.spark._marker_state import (
    AppState,
    Begun,
    Judgement,
    Outcome,
    RowSum,
    TaskReport,
    Verdict,
    judge,
    ours_lost,
    to_commit,
    to_fence,
)
from kafkaio.spark._marker_stores import MarkerStorePort

_log = logging.getLogger("kafkaio.spark")

#: Seconds for aborting the open transactions of other runs.
_FENCE_TIMEOUT: Final = 60.0


class AttemptFailed(KafkaError):
    """An attempt ended without a confirmed commit.

    Another attempt can succeed: the markers show whether this one has committed.
    """

    retriable = True


class ReplayMismatch(KafkaError):
    """A batch, or a task of it, was run again with other rows than those that are in.

    Writing them would double rows, and dropping them may lose rows. Either the query
    does not repeat its rows, or they were divided differently after some tasks, but not
    all, had committed.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionName:
    """A version of an application's output, and a run that writes it.

    Attributes:
        app: who writes.
        version: which of its batches.
        run: the run.
        prefix: the first part of all names.
    """

    app: str
    version: int
    run: str
    prefix: str = "kafkaio"

    def __str__(self) -> str:
        return f"batch {self.version} of {self.app!r}"

    @property
    def scope(self) -> str:
        """The common beginning of the names of all tasks of the application."""
        return marker_scope(self.prefix, self.app)

    def id_of(self, task: int) -> str:
        """Return the transactional id of a task."""
        return transactional_id(self.prefix, self.app, task)


async def fence(client: Client, ids: Sequence[str], timeout: float) -> None:
    """Abort the open transactions of transactional ids, and fence their producers.

    Args:
        client: a started client.
        ids: the transactional ids.
        timeout: seconds for all of it.

    Raises:
        KafkaError: not all of them are known to be aborted.
    """
    from kafkaio.admin import Admin  # most runs end without it

    with one_of_many():
        async with Admin(client) as admin:
            await admin.fence_producers(ids, timeout=timeout)


class VersionWrite:
    """The end of a run, in its driver.

    Args:
        client: a started client; its connections are used.
        name: which run of which version.
        markers: keeps the markers.
        is_strict: whether rows that do not go together with those that are in are an
            error, in place of a warning. They are written in neither case.
    """

    def __init__(
        self,
        client: Client,
        name: VersionName,
        markers: MarkerStorePort,
        *,
        is_strict: bool = True,
    ) -> None:
        self._client = client
        self._name = name
        self._markers = markers
        self._is_strict = is_strict

    async def commit(
        self, reports: Sequence[TaskReport], held: Mapping[int, DetachedTransaction]
    ) -> None:
        """Decide on the open transactions of the tasks; record that the version is in.

        Args:
            reports: the reports of all tasks.
            held: the transactions that they have left open, by task.

        Raises:
            AttemptFailed: not all of the version is in, and the run has to be repeated:
                a transaction was aborted by its time-out or by another attempt, or
                cannot be decided.
            ReplayMismatch: the rows do not go together with those that are in; nothing
                of the run became visible.
            KafkaError: the cluster refused something, or did not answer.
        """
        by_task = {report.task: report for report in reports}
        total = RowSum.total(report.rows for report in reports)
        if all(report.is_settled for report in reports):
            if not any(report.outcome is Outcome.LATER for report in reports):
                await self._finish(total)
            return
        state = await self._decided(by_task)
        later = state.later_than(self._name.version)
        if later is not None:
            _log.warning("%s was dropped: batch %d is in", self._name, later)
            await self.drop(held)
            return
        judgement = judge(state, self._name.version, self._name.run, by_task)
        if judgement.verdict is Verdict.COMMIT:
            await self._commit(state, by_task, held)
            await self._finish(total)
            return
        await self.drop(held)
        if judgement.verdict is Verdict.MISMATCH:
            self._mismatch(judgement)
        if state.done is None or state.done.version != self._name.version:
            await self._finish(judgement.committed)

    async def drop(self, held: Mapping[int, DetachedTransaction]) -> None:
        """Abort the open transactions of the tasks.

        Raises:
            KafkaError: not all of it is known to be aborted.
        """
        await self._fence(sorted(held))

    async def _fence(self, tasks: Sequence[int]) -> None:
        if tasks:
            ids = [self._name.id_of(task) for task in tasks]
            await fence(self._client, ids, _FENCE_TIMEOUT)

    async def _decided(self, reports: Mapping[int, TaskReport]) -> AppState:
        """Fence the open transactions of other runs; return the markers after that."""
        state = await self._look(reports)
        others = to_fence(state, self._name.version, self._name.run)
        if not others:
            return state
        await self._fence(others)
        # Fencing has ended these transactions, so the markers show how. One that is
        # open now has lost its control batch, or belongs to another driver.
        state = await self._look(reports)
        if others := to_fence(state, self._name.version, self._name.run):
            ids = ", ".join(self._name.id_of(task) for task in others)
            raise AttemptFailed(
                f"{self._name}: transactions of earlier runs are open in "
                f"{self._markers.topic!r} though they have ended ({ids}), or they have "
                "begun again; repeat the batch when no other driver writes it, and "
                "look for hanging transactions"
            )
        return state

    async def _look(self, reports: Mapping[int, TaskReport]) -> AppState:
        name = self._name
        state = await self._markers.look(name.scope, name.version)
        for task, report in reports.items():
            # Groups list open transactions without their runs: the producer id shows
            # which ones are our own.
            begun = state.open.get(task)
            if begun is None or begun.run != UNKNOWN_RUN:
                continue
            if begun.producer_id == report.producer_id:
                state.open[task] = Begun(name.version, name.run, begun.producer_id)
        return state

    async def _commit(
        self,
        state: AppState,
        reports: Mapping[int, TaskReport],
        held: Mapping[int, DetachedTransaction],
    ) -> None:
        """Commit the open transactions of the tasks; none, if one of them is gone."""
        version, run = self._name.version, self._name.run
        if lost := ours_lost(state, version, run, reports):
            raise AttemptFailed(
                f"{self._name} has to be repeated: the transactions of tasks "
                f"{lost} were aborted before the batch was complete, by "
                "kafka.transaction.timeout.ms or by another attempt"
            )
        unknown: list[int] = []
        for task in to_commit(state, version, run, reports):
            try:
                await end_detached(self._client, held[task], commit=True)
            except (OutcomeUnknown, RequestTimeout):
                unknown.append(task)
            except KafkaError as error:
                raise AttemptFailed(
                    f"{self._name} has to be repeated: task {task} was not committed "
                    f"({error})"
                ) from error
        if unknown:
            await self._find_out(unknown)

    async def _find_out(self, tasks: Sequence[int]) -> None:
        """Find out whether commits without an answer have succeeded."""
        # Fencing waits for a commit that is under way, so that the markers are final.
        await self._fence(tasks)
        state = await self._markers.look(self._name.scope, self._name.version)
        expected = self._name.version, self._name.run
        lost = [
            task
            for task in tasks
            if (marker := state.tasks.get(task)) is None
            or (marker.version, marker.run) != expected
        ]
        if lost:
            raise AttemptFailed(
                f"{self._name} has to be repeated: the commits of tasks {lost} got no "
                "answer, and were not taken"
            )

    async def _finish(self, rows: RowSum) -> None:
        """Record that the version is in; a failure is only logged: the rows are in."""
        name = self._name
        try:
            await self._markers.finish(name.scope, name.version, name.run, rows)
        except KafkaError as error:
            _log.warning("%s is in, but that was not noted: %s", name, error)

    def _mismatch(self, judgement: Judgement) -> None:
        error = ReplayMismatch(
            f"{self._name} was run again with other rows ({judgement.repeated}) than "
            f"are in ({judgement.committed}): nothing of the repetition is written. "
            "The query must give the same rows each time; and if a batch was committed "
            "in part, it must be divided among the same tasks. onReplayMismatch=warn "
            "goes on with the rows that are in"
        )
        if self._is_strict:
            raise error
        _log.warning("%s", error)
