"""The turns of transactions: one producer has one transaction at a time.

A transaction is a `Run`. `RunTurns` queues the calls of `begin` in order, until the run
before has ended.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import field
from math import inf

from kafkaio._dataclass import dataclass
from kafkaio._machines.transaction import TransactionOutcome
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._transactional import GroupOffsetsPort, JoinedConsumerPort
from kafkaio.errors import ClosedError, KafkaError


@dataclass(slots=True, eq=False)
class Run:
    """One transaction, from its begin to its end.

    Attributes:
        on_closed: called when it takes no more in; perhaps more than once.
        is_open: whether records and offsets are taken in.
        is_revoked: whether a partition that it works on is to be revoked.
        outcome: how it ended; None while it has not.
        cause: why it was aborted; None if it was asked to, or has not ended so.
        reason: the same in a few words.
        consumer: holds the partitions whose records it works on.
        is_detached: whether its end was left to another process.
        is_late: whether EndTxn has no answer after ``max_block_ms``.
        late_at: when that is to be noted; infinity before EndTxn is sent.
        ends_since: when its end was decided on; 0 before.
        is_ending: whether its end was asked for.
        is_done: whether its end is complete.
        commits: commits of offsets under way.
        is_commit_lost: whether one of them got no answer.
        offsets: those that the coordinator of a group has accepted.
    """

    on_closed: Callable[[], None]
    is_open: bool = False
    is_revoked: bool = False
    outcome: TransactionOutcome | None = None
    cause: KafkaError | None = None
    reason: str = ""
    consumer: JoinedConsumerPort | None = None
    is_detached: bool = False
    is_late: bool = False
    late_at: float = inf
    ends_since: float = 0.0
    is_ending: bool = False
    is_done: bool = False
    commits: int = 0
    is_commit_lost: bool = False
    offsets: list[GroupOffsetsPort] = field(default_factory=list)

    def note_cause(self, cause: KafkaError | None, reason: str) -> None:
        """Note why it is aborted; the first cause counts."""
        if self.cause is None and not self.reason:
            self.cause, self.reason = cause, reason


class RunTurns:
    """Gives the runs of one producer their turns, in the order of their begins.

    Args:
        max_block: seconds that a begin waits once the end of the run before is late.
        unknown: makes the error of such a begin.

    Attributes:
        run: the run that has its turn, from its begin to its end; None for no run.
        is_closing: whether no run may begin any more.
        ended: wakes when a run has ended, its consumer included, and when one is late.
    """

    def __init__(self, max_block: float, unknown: Callable[[], KafkaError]) -> None:
        self.run: Run | None = None
        self.is_closing: bool = False
        self.ended: Broadcast = Broadcast()
        self._max_block = max_block
        self._unknown = unknown
        self._waiters: deque[asyncio.Future[None]] = deque()

    def has(self, run: Run) -> bool:
        """Whether the run was begun, and has not ended."""
        return run is self.run and run.outcome is None

    async def queue(self) -> None:
        """Wait until the runs before have ended; the caller sets `run` at once then.

        Raises:
            OutcomeUnknown: the end of the run before is late, and stayed so.
            ClosedError: the producer is closed.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        if self.run is not None and self.run.is_late:
            self._bound(waiter)
        try:
            await waiter
        except BaseException:
            # Race: its turn had come, and the task was cancelled before it ran.
            if waiter.done() and not waiter.cancelled() and not waiter.exception():
                self.pass_on()
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
            raise

    def pass_on(self) -> None:
        """Give the turn to the run that waits longest."""
        # Race: `run` stays set until the next run has taken its turn, or a begin
        # that is called in between would come first.
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self.run = None

    def end(self, run: Run) -> None:
        """Note that the end of a run is complete."""
        if run.is_done:
            return
        run.is_done = True
        if run is self.run:
            self.pass_on()
        self.ended.notify_all()

    async def wait(self, run: Run) -> None:
        """Wait until the end of a run is complete, or late."""
        while not run.is_done and not run.is_late:
            await self.ended.wait()

    def late(self, run: Run) -> None:
        """Note that the end of the run is late: the calls that wait are limited."""
        run.late_at, run.is_late = inf, True
        for waiter in self._waiters:
            self._bound(waiter)
        self.ended.notify_all()

    def _bound(self, waiter: asyncio.Future[None]) -> None:
        def fail() -> None:
            if not waiter.done():
                waiter.set_exception(self._unknown())

        timer = asyncio.get_running_loop().call_later(self._max_block, fail)
        waiter.add_done_callback(lambda _: timer.cancel())

    def close(self) -> None:
        """Let no run begin any more; the calls that wait raise ClosedError."""
        self.is_closing = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(ClosedError("the producer was closed"))
