"""Exactly once: one attempt of a task, without Spark.

Spark runs a task several times: after a failure, and beside a slow attempt
(speculation). It repeats all tasks of a batch, and may divide the rows differently,
when a driver starts from a checkpoint or a job is run again. It also loses messages of
success. So each attempt has a transaction of its own, with a *marker*, from which later
attempts learn that its rows are in. `kafkaio.spark._marker_state` defines the markers,
and `kafkaio.spark._marker_stores` keeps them.

The transactional id is ``<prefix>-<app>-<task>``. The number of the attempt is not part
of it, because attempts have to fence each other. The correctness depends on the order
of the steps:

1. Wait for the first rows: a transaction has a time limit, and begins with step 3.
2. InitProducerId. It fences all other attempts of the task: none that is running can
   commit any more, and one that was committing has committed when it returns. A worker
   that wrote the previous version reuses its producer (`kafkaio.spark._kept` has the
   proof).
3. Write *begun* in the transaction, and read the markers at least up to it.
4. `decide` chooses the action. If no other run has begun, write all rows, add the
   marker, and commit the transaction.
5. If another run has begun the same version, rows that are in are compared and not
   written again. Others are written, and the transaction is left open. The driver ends
   it when it knows the rows of all tasks (`kafkaio.spark._judgement`).

Invariants: in each version, at most one attempt of a task commits, and nothing of a run
that divides the rows differently becomes visible. With steps 2 and 3 exchanged, two
attempts could both find no marker, and commit one after the other
(`docs/adr/0024-the-task-commits-and-not-the-driver.md`,
`docs/adr/0041-a-repeated-version-is-judged-by-its-driver.md`).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from kafkaio._client import Client
from kafkaio._client.client import cluster_of
from kafkaio._config import ProducerConfig
from kafkaio._dataclass import dataclass
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._producer import Producer
from kafkaio._producer.detached import DetachedTransaction, detach
from kafkaio._producer.transaction import Transaction
from kafkaio.errors import (
    BrokerError,
    Fenced,
    KafkaError,
    OutcomeUnknown,
    TransactionAborted,
)
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.spark._digest import RowDigest
from kafkaio.spark._judgement import (
    AttemptFailed as AttemptFailed,
    ReplayMismatch as ReplayMismatch,
)
from kafkaio.spark._kept import KeptProducers, sharing
from kafkaio.spark._marker_groups import GroupMarkers
from kafkaio.spark._marker_names import (
    TaskName as TaskName,
    transactional_id as transactional_id,
)
from kafkaio.spark._marker_state import (
    AppState,
    Decision,
    Outcome,
    RowsMarker,
    RowSum,
    decide,
    may_commit,
)
from kafkaio.spark._marker_stores import MarkerStorePort

if TYPE_CHECKING:
    import pyarrow as pa

#: Takes the rows of a batch into a transaction.
Put: TypeAlias = Callable[["Transaction", "pa.RecordBatch"], Awaitable[object]]

_log = logging.getLogger("kafkaio.spark")

#: The feature, and the level from which on a late request of a fenced attempt cannot
#: get into the transaction of the next one (KIP-890).
_FEATURE: Final = "transaction.version"
_SAFE_LEVEL: Final = 2
#: The coordinators of that many tasks are looked up with one request: a worker runs
#: other tasks later.
_FOUND_TOGETHER: Final = 64
#: Codes by which brokers refuse a producer that was fenced, or whose transaction has
#: timed out. They do not say which.
_FENCING: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """The result of a successful attempt.

    Attributes:
        rows: number of rows of its input.
        digest: their digest (`RowDigest`).
        is_skipped: whether nothing was written, since rows were in.
        outcome: the fate of its rows.
        found: its rows, as markers keep them.
        expected: the rows of the whole batch, if it was in.
        held: its transaction, if it was left open for the driver.
    """

    rows: int
    digest: str
    is_skipped: bool
    outcome: Outcome = Outcome.WRITTEN
    found: RowSum = RowSum()
    expected: RowSum | None = None
    held: DetachedTransaction | None = None


class TaskAttempt:
    """One attempt of a task.

    Args:
        client: a started client; its connections are used.
        name: which rows it writes.
        marker_topic: the topic on whose partition 0 groups keep markers.
        config: the options of the producer. Its ``transactional_id`` and the options
            of the client are not taken from it.
        on_mismatch: how to treat a replay with other rows: ``fail`` or ``warn``.
        run: the execution of the write that it belongs to. The driver of the run must
            decide on transactions that it leaves open. An empty run has no driver: the
            attempt leaves no transaction open, and a task with other rows than before
            stops all further tasks of the version.
        markers: keeps the markers; groups by default.
        producers: keeps producers for the next task; none is kept by default.
    """

    def __init__(  # noqa: PLR0913 - by name
        self,
        client: Client,
        name: TaskName,
        *,
        marker_topic: str,
        config: ProducerConfig,
        on_mismatch: Literal["fail", "warn"] = "fail",
        run: str = "",
        markers: MarkerStorePort | None = None,
        producers: KeptProducers | None = None,
    ) -> None:
        self.client = client
        self.name = name
        self.run_id = run
        self.markers: MarkerStorePort = markers or GroupMarkers(client, marker_topic)
        self._producers = KeptProducers(0) if producers is None else producers
        self._is_begun = False
        self._config = config
        self._on_mismatch = on_mismatch

    async def run(self, batches: AsyncIterable[pa.RecordBatch], put: Put) -> TaskResult:
        """Write the rows, unless an earlier attempt has committed them.

        Args:
            batches: the input; it is read to its end in any case.
            put: takes the rows of a batch into the transaction.

        Raises:
            AttemptFailed: another attempt has fenced this one; or it is not known
                whether its commit succeeded. Another attempt can be made.
            ReplayMismatch: the input differs from the committed rows.
            KafkaError: the cluster refused something, or did not answer; nothing was
                committed.
        """
        rows = await _begun(batches)
        kept = await self._producers.reuse(
            self.client,
            self.options(),
            after=self.name.version - 1,
            is_checked=not self.markers.begins_by_writing,
        )
        if kept is not None:
            try:
                return await self._run_with(kept, rows, put)
            except AttemptFailed:
                if self._is_begun:
                    raise
                # The kept producer was replaced, and has written nothing. The rows are
                # still unread, so the attempt can start over with a new producer.
        producer = self.producer()
        try:
            await self.start(producer)
        except BaseException:
            await producer.close(timeout=0)
            raise
        return await self._run_with(producer, rows, put)

    async def _run_with(
        self, producer: Producer, rows: AsyncIterable[pa.RecordBatch], put: Put
    ) -> TaskResult:
        try:
            result = await self._run(producer, rows, put)
        except BaseException as error:
            # Closed without waiting: an open transaction was aborted, or the next
            # attempt aborts it.
            await producer.close(timeout=0)
            if isinstance(error, KafkaError) and _is_of_attempt(error):
                raise self._failed(error) from error
            raise
        await self._producers.give_back(self.client, producer, self.name.version)
        return result

    def options(self) -> ProducerConfig:
        """Return the options of the producer."""
        return replace(self._config, transactional_id=self.name.transactional_id)

    def producer(self) -> Producer:
        """Make a new producer for this attempt."""
        return sharing(self.client, self.options())

    async def start(self, producer: Producer) -> None:
        """Fence all other attempts, and end their open transactions.

        Raises:
            KafkaError: what `Producer.start` raises, or the markers cannot be kept.
        """
        await self.markers.prepare()
        name = self.name
        first = name.task - name.task % _FOUND_TOGETHER
        tasks = range(first, first + _FOUND_TOGETHER)
        cluster_of(self.client).expect_coordinators(
            CoordinatorKind.TRANSACTION,
            (transactional_id(name.prefix, name.app, task) for task in tasks),
        )
        await producer.start()
        level = cluster_of(self.client).features.level(_FEATURE)
        if level < _SAFE_LEVEL:
            _warn_of_level(level)

    async def begin(self, tx: Transaction) -> AppState:
        """Note that the attempt has begun, and read the markers."""
        return await self.markers.begin(tx, self.name, self.run_id)

    async def _run(
        self, producer: Producer, rows: AsyncIterable[pa.RecordBatch], put: Put
    ) -> TaskResult:
        name = self.name
        async with producer.transaction() as tx:
            state = await self.begin(tx)
            self._is_begun = True
            decision = decide(state, name.task, name.version, self.run_id)
            if decision is Decision.WRITE:
                return await self._write(tx, rows, put)
            if decision is Decision.HOLD and self.run_id:
                return await self._hold(tx, rows, put)
            # Nothing is written. Abort now: an open transaction would hold up readers
            # of committed records while the input is read.
            await tx.abort()
        digest = RowDigest()
        async for batch in rows:
            digest.add(batch)
        found = digest.found
        if decision is Decision.COMPARE:
            return await self._repeated(state.tasks[name.task], found)
        if decision is Decision.VERIFY:
            return await self._verified(producer, state.tasks[name.task], found)
        if decision is Decision.LATER:
            return self._later(state, found)
        if decision is Decision.DONE:
            assert state.done is not None
            return _result(found, Outcome.DONE, expected=state.done.rows)
        return self._refused(found)

    async def _write(
        self, tx: Transaction, rows: AsyncIterable[pa.RecordBatch], put: Put
    ) -> TaskResult:
        """Write all rows and the marker; the end of the block commits them."""
        digest = RowDigest()
        async for batch in rows:
            digest.add(batch)
            await put(tx, batch)
        await self.markers.mark(tx, self.name, self.run_id, digest.found)
        return _result(digest.found, Outcome.WRITTEN)

    async def _hold(
        self, tx: Transaction, rows: AsyncIterable[pa.RecordBatch], put: Put
    ) -> TaskResult:
        """Write all rows and the marker; commit only if nothing is left to judge."""
        result = await self._write(tx, rows, put)
        name = self.name
        # Read again: since `begin`, other tasks of this run may have verified the rest.
        state = await self.markers.again(name, self.run_id)
        if may_commit(state, name.task, name.version, self.run_id):
            return result
        held = await detach(tx)
        return _result(result.found, Outcome.HELD, held=held)

    async def _repeated(self, marker: RowsMarker, found: RowSum) -> TaskResult:
        """Compare the rows with those that this run has committed."""
        if marker.rows is None or not marker.rows.is_same(found):
            await self._mismatch(marker, found)
            # The driver adds up the rows that are in, and not the dropped ones.
            return _result(marker.rows or found, Outcome.REPEATED)
        _log.info("%s was committed by an earlier attempt: skipped", self.name)
        return _result(found, Outcome.REPEATED)

    async def _verified(
        self, producer: Producer, marker: RowsMarker, found: RowSum
    ) -> TaskResult:
        """Compare the rows with those that another run has committed."""
        if marker.rows is None or not marker.rows.is_same(found):
            if not self.run_id:
                await self._mismatch(marker, found)
            _log.info("%s has other rows than an earlier run", self.name)
            return _result(found, Outcome.DIFFERS)
        if self.run_id:
            async with producer.transaction() as tx:
                await self.markers.verify(tx, self.name, self.run_id)
        _log.info("%s was committed by an earlier run: skipped", self.name)
        return _result(found, Outcome.VERIFIED)

    async def _mismatch(self, marker: RowsMarker, found: RowSum) -> None:
        """Raise, or warn; a run without a driver keeps further tasks from writing.

        Raises:
            ReplayMismatch: ``on_mismatch`` is ``fail``.
        """
        if not self.run_id:
            await self.markers.refuse(self.name, self.run_id)
        error = ReplayMismatch(
            f"{self.name} was run again with other rows ({found}) than it has committed"
            f" ({marker.rows or 'nothing noted'}): its rows are not written. The query "
            "must give the same rows each time, and the same rows to the same task; "
            "onReplayMismatch=warn goes on regardless"
        )
        self._raise_or_warn(error)

    def _refused(self, found: RowSum) -> TaskResult:
        """Write nothing: another task of the version had other rows than before."""
        self._raise_or_warn(
            ReplayMismatch(
                f"{self.name} is not written: the batch was begun before, and its tasks"
                " had other rows then, so these may be in already"
            )
        )
        return _result(found, Outcome.DIFFERS)

    def _raise_or_warn(self, error: ReplayMismatch) -> None:
        if self._on_mismatch == "fail":
            raise error
        _log.warning("%s", error)

    def _later(self, state: AppState, found: RowSum) -> TaskResult:
        _log.warning(
            "%s was skipped: batch %s was committed already. A query with a new "
            "checkpoint counts from 0 again and needs another txnAppId",
            self.name,
            state.later_than(self.name.version),
        )
        return _result(found, Outcome.LATER)

    def _failed(self, error: KafkaError) -> KafkaError:
        if isinstance(error, OutcomeUnknown):
            return AttemptFailed(
                f"{self.name}: whether its commit succeeded is not known ({error}); "
                "another attempt finds out"
            )
        limit = f"kafka.transaction.timeout.ms={self._config.transaction_timeout_ms}"
        if _is_fenced(error):
            return AttemptFailed(
                f"{self.name} has committed nothing: another attempt has taken over "
                f"the transactional id {self.name.transactional_id!r}, or the "
                f"transaction timed out ({limit})"
            )
        if isinstance(error, TransactionAborted) and error.reason == "timed out":
            return AttemptFailed(
                f"{self.name} has committed nothing: it took longer than its "
                f"transaction may ({limit}); make tasks smaller, or raise that option"
            )
        cause = error.__cause__ if isinstance(error.__cause__, KafkaError) else error
        return AttemptFailed(f"{self.name} has committed nothing: {cause}")


async def _begun(
    batches: AsyncIterable[pa.RecordBatch],
) -> AsyncIterator[pa.RecordBatch]:
    """Wait for the first batch, and return an iterator over all of them.

    Spark may compute for minutes before it gives the first row.
    """
    source = aiter(batches)
    first = await anext(source, None)

    async def all_of() -> AsyncIterator[pa.RecordBatch]:
        if first is not None:
            yield first
        async for batch in source:
            yield batch

    return all_of()


def _result(
    found: RowSum,
    outcome: Outcome,
    *,
    expected: RowSum | None = None,
    held: DetachedTransaction | None = None,
) -> TaskResult:
    return TaskResult(
        rows=found.rows,
        digest=f"{found.digest:016x}",
        is_skipped=outcome not in {Outcome.WRITTEN, Outcome.HELD},
        outcome=outcome,
        found=found,
        expected=expected,
        held=held,
    )


def _is_of_attempt(error: KafkaError) -> bool:
    """Return whether an error ends this attempt, and another one may succeed."""
    kinds = Fenced, TransactionAborted, OutcomeUnknown
    return isinstance(error, kinds) or _is_fenced(error)


def _is_fenced(error: BaseException | None) -> bool:
    # A producer's error may wrap the broker's.
    while error is not None:
        if isinstance(error, BrokerError) and error.code in _FENCING:
            return True
        error = error.__cause__
    return False


_warned: set[int] = set()


def _warn_of_level(level: int) -> None:
    if level in _warned:
        return
    _warned.add(level)
    _log.warning(
        "the cluster has transaction.version %d: before level 2 (Kafka 4.0) a late "
        "request of a fenced attempt can get into the transaction of the next one "
        "(KIP-890), so that exactlyOnce may repeat rows",
        level,
    )
