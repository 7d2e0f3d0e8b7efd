"""Automatic commits, and the signs of life that the group gets.

With ``enable_auto_commit``, and while `Consumer.run` is at work, the offsets of
finished records are committed every ``auto_commit_interval_ms``, before a partition is
released, and when the consumer closes. Records that `Consumer.run` has finished when it
ends are committed at once, and again with each interval until that succeeds.

The same task checks whether the user reads on, and only then reports it to the member,
which leaves the group after ``max_poll_interval_ms`` without a report.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from kafkaio._config import ConsumerConfig
from kafkaio._consumer.group.member import ConsumerMember
from kafkaio._consumer.reading.exclusive import ExclusiveReading
from kafkaio._consumer.reading.reader import Reader
from kafkaio._machines.offsets import Commit
from kafkaio._machines.patience import Patience
from kafkaio._runtime.clock import now
from kafkaio._runtime.supervisor import Child
from kafkaio.errors import (
    BrokerError,
    ClosedError,
    Fenced,
    GroupError,
    KafkaError,
    OffsetStoreError,
)
from kafkaio.types import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ReportPort

#: Most seconds between two checks whether the user reads on.
_LOOK_EVERY: Final = 1.0
#: Fewest checks within ``max_poll_interval_ms``.
_LOOKS: Final = 10


class AutoCommitter:
    """Commits finished records in the background, and shows signs of life.

    Args:
        config: the consumer's options.
        cluster: observes failed commits, and late timers of the event loop.
        reader: hands the records out.
        reading: whether a task reads.
        member: the membership in the group; None without a group.
        commit: commits offsets, and tries that for a while.
        start_soon: starts a background task.

    Attributes:
        is_enabled: whether finished records are committed automatically.
    """

    def __init__(  # noqa: PLR0913
        self,
        config: ConsumerConfig,
        cluster: ReportPort,
        reader: Reader,
        reading: ExclusiveReading,
        member: ConsumerMember | None,
        commit: Callable[[Commit, float, float], Awaitable[None]],
        start_soon: Callable[[Child, str], None],
    ) -> None:
        self.is_enabled: bool = config.enable_auto_commit and member is not None
        self._group_id = config.group_id or ""
        self._cluster = cluster
        self._reader = reader
        self._reading = reading
        self._member = member
        self._commit = commit
        self._start_soon = start_soon
        self._progress = 0
        self._is_starting = False
        # Offsets that `Consumer.run` had finished when it ended, each with the number
        # of the partition's assignment.
        self._left_over: dict[TopicPartition, tuple[int, OffsetAndMetadata]] = {}
        self._commit_every = config.auto_commit_interval_ms / 1000
        self._tick = min(
            _LOOK_EVERY, self._commit_every, config.max_poll_interval_ms / 1000 / _LOOKS
        )
        # A commit that took longer would be overtaken by the next one.
        self._patience = Patience.automatic(max(1.0, self._commit_every))

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Within the block the user waits for the start, which is a sign of life."""
        self._is_starting = True
        try:
            yield
        finally:
            self._is_starting = False

    @contextmanager
    def enabled(self) -> Iterator[None]:
        """Commit automatically within the block, and at its end all that it finished.

        Nothing changes if automatic commits are enabled anyway, or without a group.
        """
        if self.is_enabled or self._member is None:
            yield
            return
        self.is_enabled = True
        try:
            yield
        finally:
            self.is_enabled = False
            self._reader.sync()
            due = self._reader.ledger.due()
            self._left_over = {
                tp: (due.numbers[tp], offset) for tp, offset in due.offsets.items()
            }
            if self._left_over:
                with suppress(ClosedError):  # then closing commits it
                    self._start_soon(self.commit_quietly, "commit after run")

    def superseded(self, partitions: Iterable[TopicPartition]) -> None:
        """Leave these partitions to a commit of the user's."""
        if self._left_over:
            for tp in partitions:
                self._left_over.pop(tp, None)

    async def run(self) -> None:
        """Commit and show signs of life until cancelled."""
        next_commit = now() + self._commit_every
        while True:
            due = now() + self._tick
            await asyncio.sleep(self._tick)
            self._cluster.report_late_timer(now() - due)
            if self._member is not None and self._user_is_alive():
                self._member.polled(now())
            if now() >= next_commit or self._is_loss_near():
                await self.commit_quietly()
                next_commit = now() + self._commit_every

    def _is_loss_near(self) -> bool:
        # Partitions that are held past their deadline are lost then. Until then this
        # member can commit what is finished of them, and afterwards nobody can.
        due = None if self._member is None else self._member.revoke_due
        return due is not None and due - now() < 2 * self._tick

    def _user_is_alive(self) -> bool:
        # A user who takes records, or waits for one, is alive. This compares a counter,
        # so that taking a record need not read the clock.
        if self._is_starting:
            return True
        if (divider := self._reader.divider) is not None:
            return divider.shows_life()
        before, self._progress = self._progress, self._reader.progress
        return self._reading.is_on or before != self._progress

    def due(self, partitions: Collection[TopicPartition] | None = None) -> Commit:
        """Return the commit that is due, of some or all partitions."""
        self._reader.sync()
        ledger = self._reader.ledger
        if self.is_enabled:
            return ledger.due(partitions)
        return ledger.commit_of(
            {
                tp: offset
                for tp, (number, offset) in self._left_over.items()
                if ledger.number(tp) == number
                and (partitions is None or tp in partitions)
            }
        )

    @property
    def has_work(self) -> bool:
        """Whether there is something to commit, or may be."""
        return self.is_enabled or bool(self._left_over)

    async def commit_quietly(self, patience: Patience | None = None) -> None:
        """Commit the offsets that are due. If that fails, the next commit tries again.

        Partitions that can be committed are committed, also if others fail. Only errors
        that last are raised from the user's next call: a refusal such as a missing
        permission, and a failure of the offset store. A deleted topic raises nothing:
        it is reported, and the group takes the partition away.

        Args:
            patience: how long to try; None for as long as a regular commit.
        """
        if not self.has_work:
            return
        observer = self._cluster.observer
        commit = self.due()
        try:
            patience = patience or self._patience
            await self._commit(commit, patience.time, patience.doubt)
        except KafkaError as error:
            observer.commit_failed(self._group_id, error)
            lasts = (
                isinstance(error, BrokerError | OffsetStoreError)
                and not error.retriable
            )
            # Errors about the membership are for the member to react to.
            if lasts and not isinstance(error, Fenced | GroupError):
                self._left_over.clear()
                self._reader.fail(error)
            else:
                observer.retrying("auto-commit", 1, self._commit_every, error)
                self._forget_committed(commit.offsets)
        else:
            self._forget(commit)

    async def settle(
        self, partitions: Collection[TopicPartition], by: float, doubt: float
    ) -> None:
        """Commit the finished records of partitions before they are released.

        Records that are finished while that is on its way are committed once more: what
        nobody commits before the release is delivered again.

        Args:
            partitions: which ones.
            by: when to give up, on the clock of the event loop.
            doubt: how long an answer that does not come is waited for.

        Raises:
            KafkaError: something could not be committed.
        """
        for _ in range(2):
            if not self.has_work:
                return
            commit = self.due(partitions)
            await self._commit(commit, by - now(), doubt)
            self._forget(commit)

    def _forget(self, commit: Commit) -> None:
        # Not what a run that ended meanwhile has finished since this was sent.
        self.superseded(
            tp
            for tp, (_, offset) in tuple(self._left_over.items())
            if commit.offsets.get(tp) == offset
        )

    def _forget_committed(self, partitions: Collection[TopicPartition]) -> None:
        # Some of a commit that failed may have succeeded.
        ledger = self._reader.ledger
        self.superseded(
            tp for tp in partitions if tp not in ledger or not ledger.is_due(tp)
        )
