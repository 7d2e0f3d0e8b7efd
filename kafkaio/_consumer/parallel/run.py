"""``Consumer.run``: a handler for each record, many at a time.

The caller's task keeps the schedule filled; up to ``concurrency`` worker tasks take
records from it. A worker lives as long as there is work, not for one record: a record
costs the handler's own coroutine and nothing else. Each worker has a cancel scope, by
which the handler of a lost partition is cancelled.

The schedule (`kafkaio._machines.schedule`) decides which record may begin: with
``ordering="key"`` the records of one key in one partition run one after the other, in
the order of their offsets, even while one of them waits for a retry. A partition counts
as finished up to its first unfinished record. When the group requests a partition back,
no more of its records begin, and it is released when all records up to the last one
that has begun are finished, so that the next owner repeats nothing.

With a producer, handlers run in transactions, one after another. A transaction takes
records for a while; then no more records begin, those that have begun are finished, and
the offsets are committed together with the records that the handlers sent. So, as at a
handover, each partition is finished up to the last record that has begun, and no output
is committed without its offset. Records that were taken and have not begun wait for the
next transaction. The workers of a transaction end with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Final, Protocol, TypeAlias, TypeVar

from kafkaio._consumer.batch import Piece, size_of
from kafkaio._consumer.parallel.dead_letter import DeadLetter, through
from kafkaio._consumer.parallel.handlers import Handler, NotAwaitable, work_of
from kafkaio._consumer.parallel.passing import PassingFailures
from kafkaio._consumer.parallel.ports import OpenTransactionPort, RunPort
from kafkaio._consumer.parallel.unreadable import UnreadableBatches
from kafkaio._consumer.parallel.workers import Worker, Workers
from kafkaio._consumer.reading.deserializers import Deserialize, Pending, is_passing
from kafkaio._dataclass import dataclass
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.retries import Retry
from kafkaio._machines.schedule import Job, Schedule
from kafkaio._machines.transaction import TransactionOutcome
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.group import TaskGroup
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.scopes import CancelScope
from kafkaio.errors import (
    ClosedError,
    CommitFailed,
    ConfigurationError,
    CorruptRecord,
    KafkaTimeout,
    OutcomeUnknown,
    PartitionLost,
    RebalanceInProgress,
    RecordTooLarge,
    TransactionAborted,
)
from kafkaio.types import Record, TopicPartition

#: Takes a record whose handler failed for good, with its bytes; the record is finished
#: when it returns.
OnDead: TypeAlias = Callable[[Record, Exception], Awaitable[object]]


#: Most seconds from a transaction that ends as it begins to the next.
_UNTIL_RELEASED: Final = 0.05

#: Errors that end a transaction, but not the run: the records are handed out again.
ABORTS: Final = (TransactionAborted, PartitionLost, CommitFailed, RebalanceInProgress)


class OutcomePort(Protocol):
    """A transaction, as far as `decided` needs it."""

    @property
    def outcome(self) -> Awaitable[TransactionOutcome]:
        """How the transaction ended, once that is known."""
        ...


OutcomePortT = TypeVar("OutcomePortT", bound=OutcomePort)


@asynccontextmanager
async def decided(
    transaction: AbstractAsyncContextManager[OutcomePortT],
    observer: Observer,
    what: str,
) -> AsyncIterator[OutcomePortT]:
    """Run a block in a transaction, and return when its outcome is known.

    A commit may remain unanswered for longer than the producer's ``max_block_ms``. That
    is reported to the observer, and the outcome is awaited: until it is known, the
    records can neither be skipped nor processed again.

    Raises:
        TransactionAborted: the outcome was unknown and turned out to be an abort; or
            the transaction could not begin in time, because of the previous one.
        OutcomeUnknown: it will never be known, because the producer is closed.
        Exception: the exception of the block or of the transaction.
    """
    is_begun = False
    # Set after the block: a KafkaTimeout of the block itself is not about the commit.
    ended: OutcomePortT | None = None
    try:
        async with transaction as tx:
            is_begun = True
            yield tx
            ended = tx
    except KafkaTimeout as error:
        if not is_begun:
            raise TransactionAborted(
                f"the transaction could not begin yet: {error}", reason="not begun"
            ) from error
        if ended is None or not isinstance(error, OutcomeUnknown):
            raise
        observer.retrying(f"the commit of a transaction of {what}", 1, 0.0, error)
        if await ended.outcome is not TransactionOutcome.COMMITTED:
            raise TransactionAborted(
                f"the commit was not answered in time, and was found to be refused: "
                f"{error}",
                reason="refused",
            ) from error


@dataclass(frozen=True, slots=True)
class TransactionalRun:
    """The transactions of a `Runner`.

    Attributes:
        begin: makes a transaction for the consumer's records.
        handler: the user's; takes a transaction and a record.
        on_dead: takes a transaction, a record and an exception; or a `DeadLetter`.
        max_records: most records of a transaction.
        max_wait: seconds for which a transaction takes records.
        backoff: the wait after a transaction that was aborted.
    """

    begin: Callable[[], AbstractAsyncContextManager[OpenTransactionPort]]
    handler: Callable[..., Awaitable[object]]
    on_dead: Callable[..., Awaitable[object]] | None
    max_records: int
    max_wait: float
    backoff: Backoff


class _LeftOut(TransactionAborted):
    """A transaction is done again without a partition that waits for its back-off."""


class Runner:
    """One call of ``Consumer.run``.

    Args:
        consumer: whose records they are.
        handler: the user's; transactions have one of their own.
        schedule: decides which record may begin.
        concurrency: most handlers at a time.
        retry: decides which failures are retried; None for none.
        on_dead: takes records that failed for good; without it they end the run.
        transactions: the transactions to run in; None for none.
    """

    def __init__(  # noqa: PLR0913
        self,
        consumer: RunPort,
        handler: Handler,
        schedule: Schedule,
        *,
        concurrency: int,
        retry: Retry | None,
        on_dead: OnDead | None,
        transactions: TransactionalRun | None = None,
    ) -> None:
        self._consumer = consumer
        self._transactions = transactions
        self._reader = consumer.reader
        self._handler = handler
        self._schedule = schedule
        self._concurrency = concurrency
        self._retry = retry
        self._on_dead = on_dead
        # In place of the reader's; None as long as there are no unreadable batches.
        self._convert: Deserialize | None = None
        # Records whose deserializer is awaited, and no worker with it: a partition
        # whose look-ups take long would otherwise keep the workers from the others.
        self._parked: dict[Job, tuple[CancelScope, Pending]] = {}
        # What came of that; taken when a worker begins the record again.
        self._made: dict[Job, Record | Exception] = {}
        self._passing = PassingFailures(
            consumer.reader.deserialization.backoff
            if transactions is None
            else transactions.backoff
        )
        self._workers = Workers[Job](
            concurrency,
            lambda: schedule.ready,
            self._take_jobs,
            consumer.user_code,
        )
        self._failure: Exception | None = None
        # An error of reading, and its partition: raised when the records before it are
        # finished. No more records are taken meanwhile.
        self._unread: tuple[TopicPartition, Exception] | None = None
        self._unreadable = UnreadableBatches(consumer.reader)
        self._is_draining = self._is_over = False
        self._over = Broadcast()
        self._group: TaskGroup | None = None
        # Partitions with records finished since the last `sync`: a record costs one
        # entry here, and the ledger is updated only before it is read.
        self._touched: set[TopicPartition] = set()
        self._went_on = True

    async def run(self) -> None:
        """Work until the consumer closes or something fails.

        Raises:
            Exception: an exception of a handler, or of reading.
        """
        with self._consumer.dividing(self):
            try:
                if self._transactions is None:
                    await self._in_group(self._fill)
                else:
                    await self._transact(self._transactions)
            finally:
                self._is_over = True
                self._over.notify_all()
        if self._failure is not None:
            raise self._failure

    async def _in_group(self, fill: Callable[[], Awaitable[None]]) -> None:
        # Run workers, while the caller's task fills their schedule.
        try:
            async with TaskGroup() as group:
                self._group = group
                self._workers.begin(group)
                await self._guard(fill)
                group.cancel_scope.cancel()
        finally:
            for _, pending in self._parked.values():
                pending.close()
            self._parked.clear()
            self._made.clear()

    # Calls of the reader (see `kafkaio._consumer.reading.divider.DividerPort`)

    @property
    def has_order(self) -> bool:
        """False: records are finished in any order."""
        return False

    def assigned(self, tp: TopicPartition) -> None:
        """Take records of a partition from now on."""
        if not self._is_draining:
            self._schedule.open(tp)

    def revoke_requested(self, tp: TopicPartition) -> None:
        """Release a partition when all its records that have begun are finished."""
        self._schedule.drain(tp)
        self._forget_unread(tp)

    def may_go(self, tp: TopicPartition) -> bool:
        """Whether all records of a partition that have begun are finished."""
        return self._schedule.is_drained(tp)

    def unassigned(self, tp: TopicPartition) -> None:
        """Cancel the handlers of a partition that is not assigned any more."""
        self._schedule.close(tp)
        self._forget_unread(tp)
        self._unreadable.forget_partition(tp)
        for worker in self._workers:
            job = worker.item
            if job is not None and not self._schedule.is_current(job):
                worker.scope.cancel()
        for job, (scope, _) in self._parked.items():
            if not self._schedule.is_current(job):
                scope.cancel()
        self._passing.forget(tp)

    def sync(self) -> None:
        """Note in the ledger up to where each partition is finished."""
        ledger = self._reader.ledger
        for tp in self._touched:
            if tp not in ledger:
                continue
            place = self._schedule.first_unfinished(tp)
            if place is None:
                ledger.finish_of(tp)
            else:
                ledger.finished_to(tp, place.offset, place.epoch)
        self._touched.clear()

    def committed(self) -> None:
        """Do nothing: no handler waits for a commit."""

    def shows_life(self) -> bool:
        """Whether a handler has ended since the last call, or none is running."""
        went_on, self._went_on = self._went_on, False
        return went_on or not self._schedule.running

    def begin_draining(self) -> None:
        """Begin no more records: the consumer closes."""
        self._is_draining = True
        for tp in self._schedule.partitions:
            self._schedule.drain(tp)
        self._consumer.notify()

    async def drain(self) -> None:
        """Wait until all records that have begun are finished."""
        while not self._is_over:
            await self._over.wait()

    def leave(self, task: asyncio.Task[object] | None) -> None:
        """Do nothing: a handler must not close the consumer, which raises there."""

    def stop(self) -> None:
        """Cancel the handlers that are still running."""
        if self._group is not None:
            self._group.cancel_scope.cancel()

    # The caller's task: fill the schedule

    async def _guard(self, fill: Callable[[], Awaitable[None]]) -> None:
        # An exception raised within the task group would be wrapped in a group.
        try:
            await fill()
        except Exception as error:  # noqa: BLE001  (raised again by run)
            self._fail(error)

    async def _fill(self) -> None:
        consumer, schedule = self._consumer, self._schedule
        while self._failure is None:
            # All records before the error are finished.
            if self._unread is not None and not schedule.in_hand:
                raise self._unread[1]
            if not self._is_draining:
                consumer.check()
                self._reader.check()
                if not schedule.in_hand:
                    consumer.check_wanted()
                self._take_in()
            elif not schedule.in_hand:
                return
            schedule.wake(now())
            self._workers.wake()
            await consumer.wait_for_news(schedule.next_wake())

    def _take_in(self, most: int | None = None) -> int:
        # Take records as far as the schedule has capacity; return their number.
        schedule, count = self._schedule, 0
        for tp in self._readable():
            while self._unread is None and (capacity := schedule.capacity(tp)):
                if most is not None and (capacity := min(capacity, most - count)) <= 0:
                    return count
                piece = self._take_of(tp, capacity)
                if piece is None:
                    break
                count += size_of(piece)
                schedule.add(tp, piece)
        return count

    def _readable(self) -> list[TopicPartition]:
        ready = [buffer.tp for buffer in self._reader.buffers.ready]
        if self._transactions is None:
            return ready
        moment = now()
        return [tp for tp in ready if not self._passing.holds(tp, moment)]

    def _take_of(self, tp: TopicPartition, capacity: int) -> Piece | None:
        try:
            return self._reader.take_of(tp, capacity, raw=True)
        except Exception as error:  # noqa: BLE001  (raised again by run)
            if self._on_dead is not None and isinstance(
                error, CorruptRecord | RecordTooLarge
            ):
                piece = self._unreadable.stand_in(tp, error)
                if piece is not None:
                    self._convert = self._unreadable.convert
                    return piece
                if self._unreadable.is_fetched_again(tp):
                    return None
            self._unread = tp, error
            # From now on the schedule reports when the last record ends.
            self._schedule.stop_adding()
            self._consumer.notify()
            return None

    def _forget_unread(self, tp: TopicPartition) -> None:
        # The next owner of the partition will meet the error.
        if self._unread is not None and self._unread[0] == tp:
            self._unread = None
            # With transactions the next one calls `go_on`.
            if self._transactions is None:
                self._schedule.go_on()

    # The caller's task, with transactions

    async def _transact(self, how: TransactionalRun) -> None:
        aborts = 0
        while await self._has_records():
            is_begun = False
            try:
                begun = how.begin()
                async with decided(begun, self._consumer.observer, "run()") as tx:
                    is_begun, is_over = True, tx.is_ending
                    await self._work_in(tx, how)
            except ABORTS as error:
                self._failure = None
                # An abort rewinds the consumer. Without one the records stay in hand.
                if is_begun:
                    self._forget()
                if isinstance(error, _LeftOut):
                    continue  # the cause was reported, and has a back-off of its own
                await self._pause(error, how.backoff.delay(aborts, roll()), aborts + 1)
                aborts += 1
            else:
                aborts = 0
                if is_over:
                    # It did nothing, and so it did not wait either. Whatever ended it
                    # needs turns of the loop, which a row of these would not give.
                    await self._consumer.wait_for_news(now() + _UNTIL_RELEASED)

    def _forget(self) -> None:
        # Drop all records in hand, begun or not: they are handed out again.
        self._touched.clear()
        self._unread = None
        positions = self._reader.positions
        for tp in self._schedule.partitions:
            self._unreadable.forget_partition(tp)
            self._schedule.open(tp)
            if positions[tp].is_revoking or self._is_draining:
                self._schedule.drain(tp)

    async def _has_records(self) -> bool:
        # Wait for records outside a transaction: an open one may hold back other
        # consumers, which read up to the last stable offset.
        consumer, reader, schedule = self._consumer, self._reader, self._schedule
        while not self._is_draining:
            consumer.check()
            reader.check()
            began_at = now()  # a back-off that ends from here on is not missed
            if schedule.is_holding_back or self._has_more():
                return True
            consumer.check_wanted()
            await consumer.wait_for_news(self._passing.next_due(began_at))
        return False

    def _has_more(self) -> bool:
        # The records before an error are finished and committed by now.
        if self._unread is not None:
            raise self._unread[1]
        return bool(self._readable())

    async def _pause(self, error: Exception, delay: float, attempt: int) -> None:
        self._consumer.observer.retrying(
            "a transaction of run()", attempt, delay, error
        )
        until = now() + delay
        while not self._is_draining and not await self._consumer.wait_for_news(until):
            pass

    async def _work_in(self, tx: OpenTransactionPort, how: TransactionalRun) -> None:
        self._handler = partial(how.handler, tx)
        dead = how.on_dead
        if isinstance(dead, DeadLetter):
            self._on_dead = through(tx, dead)
        else:
            self._on_dead = None if dead is None else partial(dead, tx)
        try:
            await self._in_group(partial(self._fill_transaction, tx, how))
        finally:
            self._group = None
            self._workers.end()
        if self._failure is not None:
            raise self._failure

    async def _fill_transaction(
        self, tx: OpenTransactionPort, how: TransactionalRun
    ) -> None:
        consumer, schedule = self._consumer, self._schedule
        until = now() + how.max_wait
        taken = schedule.go_on()
        while not (self._is_draining or tx.is_ending):
            consumer.check()
            self._reader.check()
            if taken < how.max_records:
                taken += self._take_in(how.max_records - taken)
            is_late = now() >= until
            if is_late and (schedule.running or schedule.in_hand < taken):
                break
            # If it is late and nothing has begun yet, the transaction goes on without
            # more records. Otherwise every transaction might end without progress.
            if is_late or taken >= how.max_records or self._unread is not None:
                schedule.stop_adding()
                if not schedule.in_hand:
                    break
            await self._wait_for_workers(None if is_late else until)
        schedule.hold_back()
        while schedule.in_hand:
            await self._wait_for_workers(None)

    async def _wait_for_workers(self, until: float | None) -> None:
        self._schedule.wake(now())
        self._workers.wake()
        wakes = [at for at in (self._schedule.next_wake(), until) if at is not None]
        await self._consumer.wait_for_news(min(wakes, default=None))

    # Workers

    async def _take_jobs(self, worker: Worker[Job]) -> None:
        time_slice, schedule = self._consumer.time_slice, self._schedule
        time_slice.woken()
        if self._group is not None and self._group.cancel_scope.cancel_called:
            return  # a worker that has just begun is cancelled only when it first waits
        # A handler that never waits gives a cancellation no chance to stop it.
        while self._failure is None:
            # The slice is shared: handlers of other workers use it up, too.
            if time_slice.is_over:
                await time_slice.take_turn()
            if (job := schedule.next()) is None:
                return
            try:
                if (work := self._begin(worker, job)) is None:
                    continue
                await work
            except Exception as error:  # noqa: BLE001  (retried, buried, or raised)
                await self._failed(worker, job, error)
            except BaseException:
                self._cut_short(worker, job)
                raise
            else:
                self._finished(job)
            worker.item = None
            if worker.scope.cancel_called:
                # A handler that suppressed the cancellation has finished its record.
                # The scope must not cancel the next one.
                return

    def _begin(self, worker: Worker[Job], job: Job) -> Awaitable[object] | None:
        # None if the record has to be waited for: the worker goes on with another.
        if self._schedule.ready and not self._workers.is_waking:
            self._workers.wake()
        worker.item, record = job, job.record
        if (convert := self._convert or self._reader.deserialize) is not None:
            made = self._deserialized(job, convert)
            if made is None:
                worker.item = None
                return None
            record = made
        return work_of(self._handler, record)

    # Deserializing

    def _deserialized(self, job: Job, convert: Deserialize) -> Record | None:
        # None if the record is not there yet. Then it is parked.
        made: Record | Pending | Exception | None = None
        if self._made:
            made = self._made.pop(job, None)
        if made is None:
            try:
                made = convert(job.record)
            except Exception as error:  # noqa: BLE001  (raised below)
                made = error
        if type(made) is Pending:
            self._park(job, made)
            return None
        if isinstance(made, Exception):
            self._not_deserialized(job, made)
            return None
        self._passing.succeeded(job.record)
        return made  # type: ignore[return-value]  # a record

    def _park(self, job: Job, pending: Pending) -> None:
        scope = CancelScope()
        self._parked[job] = scope, pending
        self._schedule.park(job)

        async def wait() -> None:
            made = list[Record | Exception]()  # nothing if the partition was lost
            try:
                with scope:
                    made.append(await pending.result())
            except Exception as error:  # noqa: BLE001  (raised by a worker)
                made.append(error)
            except BaseException:
                self._parked_cut_short(job)
                raise
            del self._parked[job]
            if made and self._schedule.is_current(job):
                self._made[job] = made[0]
                self._schedule.unpark(job)
                self._workers.wake()

        assert self._group is not None
        self._group.start_soon(wait, name="kafkaio run: deserialize")

    def _not_deserialized(self, job: Job, error: Exception) -> None:
        if isinstance(error, ConfigurationError | ClosedError):
            # Not of the record: every one would fail alike.
            self._give_up(job, error)
        elif is_passing(error) and not self._unreadable.has(job.record):
            self._deserialize_later(job, error)
        else:
            raise error

    def _parked_cut_short(self, job: Job) -> None:
        # As `_cut_short`: the partition would wait for this record for ever.
        assert self._group is not None
        if not self._group.cancel_scope.cancel_called and self._schedule.is_current(
            job
        ):
            place = _place(job.record)
            self._fail(ClosedError(f"the deserializer of {place} was cancelled"))

    def _deserialize_later(self, job: Job, error: Exception) -> None:
        # The record is not to blame: it is tried again without end, and never a dead
        # letter. Of many that fail together, one is reported.
        moment = now()
        until, attempt = self._passing.failed(job.record, moment, roll())
        if attempt:
            self._consumer.observer.retrying(
                f"the deserializer of {_place(job.record)}",
                attempt,
                until - moment,
                error,
            )
        self._went_on = True
        if self._transactions is None:
            self._schedule.park(job, until)
            self._consumer.notify()
            if not job.assignment.takes_more:
                # A partition that drains has given the record up: it was perhaps the
                # last that the partition waited for.
                self._release(job.assignment.tp)
            return
        # The transaction cannot end before all that has begun is finished. So that the
        # others go on, it is done again without this partition.
        aborted = _LeftOut(
            f"{_place(job.record)} cannot be deserialized yet: {error}",
            reason="aborted",
        )
        aborted.__cause__ = error
        self._schedule.abandoned(job)
        self._fail(aborted)

    # The ends of records

    def _finished(self, job: Job) -> None:
        self._went_on = True
        schedule = self._schedule
        tp = job.assignment.tp
        has_capacity = schedule.finished(job)
        self._touched.add(tp)
        if has_capacity:
            self._consumer.notify()
        elif not job.assignment.takes_more:
            self._release(tp)

    def _release(self, tp: TopicPartition) -> None:
        if self._schedule.is_drained(tp):
            self._consumer.notify()
            if not self._is_draining:
                self._consumer.release(tp)

    async def _failed(self, worker: Worker[Job], job: Job, error: Exception) -> None:
        schedule, delay = self._schedule, None
        # A retry, or the next record, would fail in the same way.
        if isinstance(error, NotAwaitable):
            self._give_up(job, error)
            return
        if self._transactions is not None and isinstance(error, ABORTS):
            self._give_up(job, error)  # the transaction is over
            return
        if self._retry is not None and not self._unreadable.has(job.record):
            delay = self._retry.delay(error, job.attempts, roll())
        # The partition was lost while the handler failed: the next owner repeats it.
        if not schedule.is_current(job):
            schedule.abandoned(job)
        elif delay is not None:
            self._try_again(job, delay, error)
        elif self._on_dead is None:
            self._give_up(job, error)
        else:
            await self._bury(worker, job, self._on_dead, error)

    def _try_again(self, job: Job, delay: float, error: Exception) -> None:
        self._consumer.observer.retrying(
            f"the handler of {_place(job.record)}", job.attempts, delay, error
        )
        self._went_on = True
        self._schedule.retry(job, now() + delay)
        self._consumer.notify()

    async def _bury(
        self, worker: Worker[Job], job: Job, on_dead: OnDead, error: Exception
    ) -> None:
        try:
            await on_dead(job.record, error)
        except Exception as worse:  # noqa: BLE001  (raised by run)
            self._give_up(job, worse)
        except BaseException:
            self._cut_short(worker, job)
            raise
        else:
            self._unreadable.forget(job.record)
            self._finished(job)

    def _give_up(self, job: Job, error: Exception) -> None:
        self._schedule.abandoned(job)
        error.add_note(f"raised for {_place(job.record)}")
        self._fail(error)

    def _cut_short(self, worker: Worker[Job], job: Job) -> None:
        # Cancelled: the record is not finished. Unless the runner cancelled it, the run
        # must fail, or the partition would wait for this record for ever.
        worker.item = None
        self._schedule.abandoned(job)
        assert self._group is not None
        if not (worker.scope.cancel_called or self._group.cancel_scope.cancel_called):
            place = _place(job.record)
            self._fail(ClosedError(f"the handler of {place} was cancelled"))

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
        elif error is not self._failure:
            # One note for many handlers that fail alike.
            note = f"and another: {error!r}"
            if note not in getattr(self._failure, "__notes__", ()):
                self._failure.add_note(note)
        self.stop()


def _place(record: Record) -> str:
    return f"{record.topic}-{record.partition} at offset {record.offset}"
