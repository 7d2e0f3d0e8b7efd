"""``ShareConsumer.run``: a handler for each record, many at a time.

Up to ``concurrency`` worker tasks take records directly from the reader. A worker lives
as long as there is work, not for one record: a record costs the handler's own coroutine
and nothing else. The caller's task waits for news, raises errors of reading, and wakes
the first worker; each worker wakes the next one, as long as there are records.

Records have no order, and each is decided by itself. What ends a handler decides about
its record: a return accepts it, an exception asks `FailedRecords`, and a cancellation
releases it. The decision is a byte that the leader's task sends with others.

Records are deserialized by the worker that has them, not by the reader: a look-up in a
registry must not keep the others from their work, and a record that cannot be
deserialized goes, as it came, where records go whose handler fails.

Each worker has a cancel scope, by which a handler is cancelled whose record is not
locked any more: another member may work on it by now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from kafkaio._arguments import type_name
from kafkaio._consumer.parallel.dead_letter import DeadLetter
from kafkaio._consumer.parallel.handlers import NotAwaitable, work_of
from kafkaio._consumer.parallel.passing import PassingFailures
from kafkaio._consumer.parallel.workers import Worker, Workers
from kafkaio._consumer.reading.deserializers import Deserialize, Pending, is_passing
from kafkaio._consumer.reading.exclusive import UsedInHandler
from kafkaio._machines.backoff import Backoff
from kafkaio._records._acquired import ACCEPT, REJECT, RELEASE
from kafkaio._records.batch import Acquired, ShareRecord, acquired_of, settle
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.group import TaskGroup
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.scopes import CancelScope
from kafkaio._share.ports import WorkPort
from kafkaio._share.reading.iterators import Holder
from kafkaio._share.reading.reader import ShareReader
from kafkaio._share.reading.reads import ShareReads
from kafkaio.errors import (
    ArgumentTypeError,
    ClosedError,
    ConfigurationError,
    CorruptRecord,
    InternalError,
    RecordTooLarge,
    Reject,
    Release,
    UsageError,
)
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._records._acquired import AnyShareRecord

#: A user's handler of one record.
ShareHandler: TypeAlias = "Callable[[AnyShareRecord], Awaitable[object]]"
#: What becomes of a record: `Release`, `Reject`, or None if it is dealt with.
Verdict: TypeAlias = Release | Reject | type[Release] | type[Reject] | None
#: What becomes of records whose handler fails; see ``ShareConsumer.run``.
OnError: TypeAlias = (
    Release
    | Reject
    | type[Release]
    | type[Reject]
    | DeadLetter
    | Callable[[ShareRecord, Exception], Verdict | Awaitable[Verdict]]
)

#: Records that are locked for each handler: the one that it works on, and the next.
_AHEAD: Final = 2
#: Or as many as handlers begin in so many seconds, if these are more.
_SOON: Final = 0.05
#: By how much that has to change.
_CHANGE: Final = 1.25
#: The wait before a record whose handler has failed is released, by its deliveries. A
#: failure of everything, such as that of a database, would otherwise use up the
#: group's limit of deliveries in a moment, and archive what cannot be worked on now.
_BEFORE_RELEASE: Final = Backoff(1_000, 10_000)
_WORDS: Final = {ACCEPT: "accepted", RELEASE: "released", REJECT: "rejected"}


def verdict_of(given: object) -> int | None:
    """Return the decision that a `Release`, a `Reject` or None stands for.

    Returns:
        None for anything else.
    """
    if given is None:
        return ACCEPT
    if isinstance(given, Release) or given is Release:
        return RELEASE
    if isinstance(given, Reject) or given is Reject:
        return REJECT
    return None


class FailedRecords:
    """Decides about records whose handler has raised.

    Args:
        on_error: the user's choice.
        group: the share group.
        observer: is told about each failure.
        broker_topic: the topic to which the brokers write the group's dead letters
            (KIP-1191); None if they write none. Then they write the records that this
            consumer rejects, and a `DeadLetter` writes none.

    Raises:
        ArgumentTypeError: ``on_error`` is not what it may be.
    """

    __slots__ = ("_decision", "_group", "_letter", "_observer", "_on_error")

    def __init__(
        self,
        on_error: OnError,
        group: str,
        observer: Observer,
        broker_topic: str | None = None,
    ) -> None:
        check_on_error(on_error)
        self._group = group
        self._observer = observer
        self._letter = on_error if isinstance(on_error, DeadLetter) else None
        self._decision = verdict_of(on_error)
        self._on_error: Callable[..., object] | None = None
        if self._letter is not None and broker_topic is not None:
            self._letter, self._decision = None, REJECT
        elif self._letter is None and self._decision is None:
            self._on_error = on_error  # type: ignore[assignment]  # it is callable

    async def decide(self, record: AnyShareRecord, error: Exception) -> int:
        """Return what becomes of a record.

        Args:
            record: the record as it came, not deserialized.
            error: what its handler raised, or why it cannot be deserialized.

        Raises:
            Exception: the user's function raised it.
        """
        given = verdict_of(error)
        if given is not None:
            return given
        if self._letter is not None:
            decision = await self._write(self._letter, record, error)
        elif self._on_error is not None:
            decision = await self._ask(self._on_error, record, error)
        else:
            assert self._decision is not None
            decision = self._decision
        self.report(record, error, _WORDS[decision])
        return decision

    def is_held_back(self, error: Exception) -> bool:
        """Whether a record is released only after a wait: nobody has asked for it."""
        return self._on_error is None and verdict_of(error) is None

    def report(self, record: AnyShareRecord, error: Exception, outcome: str) -> None:
        """Tell the observer about a failure."""
        self._observer.handler_failed(
            self._group,
            record.topic_partition,
            record.offset,
            record.delivery_count,
            outcome,
            error,
        )

    async def _write(
        self, letter: DeadLetter, record: AnyShareRecord, error: Exception
    ) -> int:
        try:
            await letter(record, error)
        except Exception as worse:  # noqa: BLE001  (reported: the record comes again)
            self._observer.retrying(
                f"the dead letter of {place_of(record)}",
                record.delivery_count,
                0.0,
                worse,
            )
            return RELEASE
        return ACCEPT

    async def _ask(
        self, function: Callable[..., object], record: AnyShareRecord, error: Exception
    ) -> int:
        try:
            made = function(record, error)
            if isawaitable(made):
                made = await made
        except (Release, Reject) as verdict:
            made = verdict
        decision = verdict_of(made)
        if decision is None:
            raise UsageError(
                f"on_error of run() returns Release, Reject or None, not {made!r}"
            )
        return decision


class FailedPort(Protocol):
    """Decides about records whose handler has raised; see `FailedRecords`."""

    async def decide(self, record: AnyShareRecord, error: Exception) -> int:
        """Return what becomes of a record."""
        ...

    def is_held_back(self, error: Exception) -> bool:
        """Whether a record is released only after a wait."""
        ...

    def report(self, record: AnyShareRecord, error: Exception, outcome: str) -> None:
        """Tell the observer about a failure."""


def check_on_error(on_error: object) -> None:
    """Raise unless it is what ``on_error`` of ``ShareConsumer.run`` may be.

    Raises:
        ArgumentTypeError: it is not.
    """
    is_class = isinstance(on_error, type) and on_error not in {Release, Reject}
    if (
        on_error is None
        or is_class
        or not (callable(on_error) or verdict_of(on_error) is not None)
    ):
        raise ArgumentTypeError(
            "on_error must be a Release, a Reject, a DeadLetter or a function, not "
            f"{type_name(on_error)}"
        )


class ShareRunner:
    """One call of ``ShareConsumer.run``.

    Args:
        engine: fetches, and says whether the consumer can be used.
        reads: lets the workers take records.
        reader: has the records.
        handler: the user's.
        failed: decides about records whose handler fails.
        concurrency: most handlers at a time.
        max_processing: seconds for which the locks of a record are renewed; None for
            the consumer's option.
    """

    def __init__(  # noqa: PLR0913
        self,
        engine: WorkPort,
        reads: ShareReads,
        reader: ShareReader,
        handler: ShareHandler,
        failed: FailedPort,
        *,
        concurrency: int,
        max_processing: float | None,
    ) -> None:
        self._engine = engine
        self._reads = reads
        self._reader = reader
        self._handler = handler
        self._failed_records = failed
        self._concurrency = concurrency
        self._max_processing = max_processing
        self._passing = PassingFailures(reader.deserialization.backoff)
        self._take = reader.handout.take
        self._workers = Workers["AnyShareRecord"](
            concurrency, reader.has_any, self._take_records, reads.user_code
        )
        # Records that are worked on, and batches that cannot be read.
        self._running = 0
        # How many may be locked; and how many were begun since a time.
        self._most = _AHEAD * concurrency
        self._begun = 0
        self._since = 0.0
        self._failure: Exception | None = None
        # No more records begin; the run ends when those that have begun are done, with
        # this error if there is one.
        self._is_ending = False
        self._last_error: Exception | None = None
        self._ending = Broadcast()
        self._is_over = False
        self._over = Broadcast()
        self._group: TaskGroup | None = None

    async def run(self) -> None:
        """Work until the consumer closes or something fails.

        Raises:
            Exception: an error of reading, or what cannot be decided.
        """
        self._since = now()
        self._reads.time_slice.start()  # its clock is read for each record
        try:
            with self._reads.dividing(Holder("run")):
                self._engine.begin_work(self)
                try:
                    await self._in_group()
                finally:
                    self._engine.end_work(self)
        finally:
            self._is_over = True
            self._over.notify_all()
        if self._failure is not None:
            raise self._failure

    async def _in_group(self) -> None:
        async with TaskGroup() as group:
            self._group = group
            self._workers.begin(group)
            # An exception raised within the group would be wrapped in a group.
            try:
                await self._watch()
            except Exception as error:  # noqa: BLE001  (raised again by run)
                self._fail(error)
            group.cancel_scope.cancel()

    # The engine's side (`HandlersPort`)

    @property
    def most_records(self) -> int:
        """How many records may be locked."""
        return self._most

    @property
    def max_processing(self) -> float | None:
        """How long locks are renewed."""
        return self._max_processing

    def lost(self, acquired: Acquired) -> None:
        """Cancel the handlers whose records are not locked any more."""
        for worker in self._workers:
            record = worker.item
            if record is None or acquired_of(record) is not acquired:
                continue
            if record.is_lost:
                worker.scope.cancel()

    def begin_draining(self) -> None:
        """Begin no more records: the consumer closes."""
        self._end_soon(None)

    async def drain(self) -> None:
        """Wait until the records that have begun are done."""
        while not self._is_over:
            await self._over.wait()

    def stop(self) -> None:
        """Cancel the handlers that are still running; their records are released."""
        if self._group is not None:
            self._group.cancel_scope.cancel()

    # The caller's task

    async def _watch(self) -> None:
        while self._failure is None:
            if not self._is_ending:
                self._check()
            if not self._is_ending:
                self._workers.wake()
            elif not self._running:
                break
            await self._engine.wait_for_news(None)
        if self._last_error is not None:
            raise self._last_error

    def _check(self) -> None:
        # After an error of reading, the records that have begun can be finished.
        try:
            self._engine.check()
            self._reads.check_topics()
            self._check_reader()
        except (ClosedError, InternalError):
            raise
        except Exception as error:  # noqa: BLE001  (raised by run, later)
            self._end_soon(error)

    def _check_reader(self) -> None:
        while True:
            try:
                self._reader.check()
            except (CorruptRecord, RecordTooLarge) as error:
                self._bury_batch(error)
            else:
                return

    def _end_soon(self, error: Exception | None) -> None:
        self._is_ending = True
        if self._last_error is None:
            self._last_error = error
        self._ending.notify_all()
        self._engine.notify()

    def _bury_batch(self, error: CorruptRecord | RecordTooLarge) -> None:
        # The reader has decided about the batch. It comes as one record, with the bytes
        # of the batch, since nobody will see it otherwise.
        tp = error.topic_partition or TopicPartition("", -1)
        record = ShareRecord(*tp, error.offset, -1, None, error.raw)

        async def bury() -> None:
            try:
                await self._failed_records.decide(record, error)
            except Exception as worse:  # noqa: BLE001  (raised by run)
                self._give_up(record, worse)
            except BaseException:
                self._fail_if_foreign(record)
                raise
            finally:
                self._ended()

        assert self._group is not None
        self._running += 1
        self._group.start_soon(bury, name="kafkaio run: corrupt batch")

    # Workers

    async def _take_records(self, worker: Worker[AnyShareRecord]) -> None:
        time_slice, handler = self._reads.time_slice, self._handler
        time_slice.woken()
        if self._group is not None and self._group.cancel_scope.cancel_called:
            return  # a worker that has just begun is cancelled only when it first waits
        # A handler that never waits gives a cancellation no chance to stop it.
        while self._failure is None:
            # The slice is shared: handlers of other workers use it up, too.
            if time_slice.is_over:
                await time_slice.take_turn()
            # From here to the handler there is no await: a record that was taken is
            # decided, whatever happens.
            if (record := self._next()) is None:
                return
            worker.item = record
            try:
                convert = self._reader.deserialization.deserializers.deserialize
                if convert is None:
                    await work_of(handler, record)
                else:
                    await self._begin(record, convert)
            except Exception as error:  # noqa: BLE001  (decided about, or raised)
                await self._failed(worker, record, error)
            except BaseException:
                self._cut_short(worker, record)
                raise
            else:
                settle(record, ACCEPT)
            worker.item = None
            self._ended()
            if worker.scope.cancel_called:
                # A handler that suppressed the cancellation has returned all the same.
                # The scope must not cancel the next one.
                return

    def _next(self) -> AnyShareRecord | None:
        # None if no record may begin now, or none is here.
        if self._is_ending:
            return None
        # The short way first; see `ShareReader`.
        record: Any = self._take()
        if record is None and (record := self._read_on()) is None:
            return None
        self._running += 1
        self._begun += 1
        if not self._workers.is_waking:
            self._workers.wake()
        return record  # type: ignore[no-any-return]  # a share record

    def _read_on(self) -> object:
        reader = self._reader
        if not reader.errors:
            reader.check()
            record = reader.take_one()
            if record is not None:
                return record
        if reader.errors:
            self._engine.notify()  # the caller's task raises them
        else:
            self._starve()
        return None

    def _starve(self) -> None:
        # A worker finds no record. Handlers that take less time than a fetch would wait
        # for one most of the time, if no more were locked than they begin meanwhile.
        moment = now()
        seconds = moment - self._since
        if seconds < _SOON:
            return
        least = _AHEAD * self._concurrency
        most = max(least, round(self._begun / seconds * _SOON))
        self._since, self._begun = moment, 0
        is_other = most == least or not 1 / _CHANGE < most / self._most < _CHANGE
        if is_other and most != self._most:
            self._most = most
            self._engine.bound_work(self)

    def _begin(self, record: AnyShareRecord, convert: Deserialize) -> Awaitable[object]:
        # Deserialize a record, and call the handler.
        made = _attempt(record, convert)
        if type(made) is Pending or isinstance(made, Exception):
            return self._work_later(record, convert, made)
        return work_of(self._handler, made)  # type: ignore[arg-type]  # a record

    async def _work_later(
        self, record: AnyShareRecord, convert: Deserialize, made: object
    ) -> None:
        # Wait for the deserializer. What says nothing about the record is tried again
        # as long as its lock lasts, and never a failure of the record.
        while True:
            if type(made) is Pending:
                try:
                    made = await made.result()
                except Exception as error:
                    if not is_passing(error):
                        raise
                    made = error
            elif isinstance(made, Exception):
                await self._pause(record, made)
                made = _attempt(record, convert)
            else:
                break
        self._passing.succeeded(record)
        await work_of(self._handler, made)  # type: ignore[arg-type]  # a record

    async def _pause(self, record: AnyShareRecord, error: Exception) -> None:
        # Of many that fail together, one is reported.
        moment = now()
        until, attempt = self._passing.failed(record, moment, roll())
        if attempt:
            what = f"the deserializer of {place_of(record)}"
            self._engine.observer.retrying(what, attempt, until - moment, error)
        try:
            await asyncio.sleep(until - now())
        except BaseException:
            self._passing.forget(record.topic_partition)
            raise

    # Ends of records

    def _ended(self) -> None:
        self._running -= 1
        if self._is_ending and not self._running:
            self._engine.notify()

    async def _failed(
        self, worker: Worker[AnyShareRecord], record: AnyShareRecord, error: Exception
    ) -> None:
        # A handler raised, or the deserializer of its record.
        if isinstance(error, (NotAwaitable, UsedInHandler)):
            # To deliver every record again and again would end in their archive.
            self._give_up(record, error)
            return
        if isinstance(error, _Unusable):
            self._give_up(record, error.cause)
            return
        if not acquired_of(record).is_held(record.offset):
            # Its lock is gone, or the handler has decided before it raised.
            if verdict_of(error) is None:
                outcome = "lost" if record.is_lost else "decided before"
                self._failed_records.report(record, error, outcome)
            return
        try:
            decision = await self._failed_records.decide(record, error)
            if decision == RELEASE and self._failed_records.is_held_back(error):
                await self._hold_back(record)
        except Exception as worse:  # noqa: BLE001  (raised by run)
            self._give_up(record, worse)
        except BaseException:
            self._cut_short(worker, record)
            raise
        else:
            settle(record, decision)

    async def _hold_back(self, record: AnyShareRecord) -> None:
        # The worker waits, too: while all records fail, they are worked on less often.
        if self._is_ending:
            return
        moment = now()
        wait = _BEFORE_RELEASE.delay(record.delivery_count - 1, roll())
        # A lock that is not renewed must last until the release has arrived.
        left = record.lock_deadline - moment
        with CancelScope(deadline=moment + min(wait, left / 2)):
            await self._ending.wait()

    def _cut_short(
        self, worker: Worker[AnyShareRecord], record: AnyShareRecord
    ) -> None:
        # Cancelled: the record is not finished.
        worker.item = None
        settle(record, RELEASE)
        self._ended()
        if not worker.scope.cancel_called:
            self._fail_if_foreign(record)

    def _fail_if_foreign(self, record: AnyShareRecord) -> None:
        # Without this, the group of tasks would end, and the run return.
        assert self._group is not None
        if not self._group.cancel_scope.cancel_called:
            place = place_of(record)
            self._fail(ClosedError(f"the handler of {place} was cancelled"))

    def _give_up(self, record: AnyShareRecord, error: Exception) -> None:
        settle(record, RELEASE)
        error.add_note(f"raised for {place_of(record)}")
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
        elif error is not self._failure:
            # One note for many handlers that fail alike.
            note = f"and another: {error!r}"
            if note not in getattr(self._failure, "__notes__", ()):
                self._failure.add_note(note)
        self.stop()


class _Unusable(Exception):
    """A deserializer that cannot be used: every record would fail alike."""

    def __init__(self, cause: ConfigurationError) -> None:
        self.cause = cause


def _attempt(record: AnyShareRecord, convert: Deserialize) -> object:
    """Deserialize a record.

    Returns:
        The record; a `Pending`; or an exception that says nothing about the record.

    Raises:
        Exception: the record cannot be deserialized.
    """
    try:
        return convert(record)
    except ConfigurationError as error:
        raise _Unusable(error) from error
    except Exception as error:
        if not is_passing(error):
            raise
        return error


def place_of(record: AnyShareRecord) -> str:
    """Return the words for a record."""
    return f"{record.topic}-{record.partition} at offset {record.offset}"
