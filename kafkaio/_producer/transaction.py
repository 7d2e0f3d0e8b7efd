"""One transaction, as users see it: `Transaction`, whole.

It takes records in as the producer does (`kafkaio._producer.intake`), as long as it is
open. `kafkaio._producer.transaction_manager` begins and ends it.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Awaitable, Generator, Mapping, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, overload

from kafkaio._generic import Generic, K_contra, KeyT, V_contra, ValueT
from kafkaio._machines.detached import DetachedTransaction
from kafkaio._machines.transaction import TransactionOutcome as TransactionOutcome
from kafkaio._producer.bulk import TableArguments, TableDelivery
from kafkaio._producer.delivery import Delivery
from kafkaio._producer.intake import TURN_BYTES, Intake
from kafkaio._producer.transaction_manager import TransactionManager
from kafkaio._producer.turns import Run
from kafkaio._public import knows_other_clients, public
from kafkaio._records._impl import OpenBatches, open_batch_first
from kafkaio._runtime.lifecycle import Lifecycle
from kafkaio._topic import Topic
from kafkaio._transactional import GroupOffsetsPort, TransactionalConsumer
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    KafkaError,
    PartitionLost,
    RequestTimeout,
    UnsupportedVersion,
    UsageError,
)
from kafkaio.types import (
    GroupMetadata,
    Headers,
    NewRecord,
    OffsetAndMetadata,
    RecordMetadata,
    TopicPartition,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkaio._producer.raw import RawDelivery
    from kafkaio._records.raw import RawBatch

#: The transaction that this task, or the one that started it, has begun last.
_current: ContextVar[Transaction[Any, Any] | None] = ContextVar("kafkaio_transaction")


@public("kafkaio")
@knows_other_clients(is_hot=True)
class Transaction(Generic[K_contra, V_contra], ABC):
    """Records and offsets that become visible together, or not at all (KIP-98).

    Made by `Producer.transaction`. ``async with`` begins it, commits it at the end of
    the block, and aborts it if the block raises, cancellation included; `begin`,
    `commit` and `abort` do the same by hand. Nothing is sent before the first record or
    offset, and a transaction without either costs no request.

    An exception of the block is raised unchanged after the abort, unless it is an error
    of kafkaio's and the abort shows that this producer is over: then the error that
    ended the producer is raised, such as `Fenced`. A leader refuses the producer's
    epoch both after a time-out, when the body can be run again, and because of another
    producer with the transactional id. Only the coordinator's answer to the abort
    distinguishes them.

    If any record of it fails, it is aborted at the end, even if that record was not
    awaited. Several tasks may send in it until it ends; put an `asyncio.TaskGroup`
    inside the block. Transactions of one producer follow one another: a task that
    begins one waits until the one before has ended, first come, first served.
    """

    def __init__(
        self,
        manager: TransactionManager,
        intake: Intake,
        life: Lifecycle,
        consumer: TransactionalConsumer | None,
    ) -> None:
        self._manager = manager
        self._life = life
        self._run = Run(self._closed)
        self._intake = intake.checked_by(self._check)
        self._open_batches = intake.open_batches
        self._consumer = consumer
        # The open batches, while records may go into them past the accumulator.
        self._direct: OpenBatches | None = None
        self._is_begun = False
        # The one before it, of another producer, that was open in its task.
        self._outer: Transaction[Any, Any] | None = None
        # Whether its owner has asked for its end.
        self._is_end_asked = False

    def __repr__(self) -> str:
        run = self._run
        if run.is_detached:
            state = "detached"
        elif run.outcome is not None:
            state = run.outcome.name.lower()
        elif run.is_ending:
            state = "ending"
        else:
            state = "open" if run.is_open else "not begun"
        return f"<Transaction of {self._manager.transactional_id!r} {state}>"

    # ---- begin and end ---------------------------------------------------------------

    async def begin(self) -> None:
        """Begin the transaction; `commit` or `abort` must follow.

        Waits until the transactions that were begun before have ended. If the call is
        cancelled, nothing was begun.

        Raises:
            UsageError: this task, or the one that started it, has a transaction of the
                same producer open; or the transaction was begun before.
            KafkaTimeout: the end of the transaction before was not known within
                ``max_block_ms``.
            Fenced: a newer producer has the transactional id; this one is over.
            ClosedError: the producer is not started, or closed.
        """
        self._life.check()
        outer = _current.get(None)
        # Ended ones are passed over, or each would keep those before it in memory.
        while outer is not None and not outer._run.is_open:
            outer = outer._outer
        self._outer = outer
        while outer is not None:
            if outer._run.is_open and outer._manager is self._manager:
                raise UsageError(
                    "transactions cannot be nested: this task, or the one that started "
                    "it, has a transaction of this producer open"
                )
            outer = outer._outer
        if self._is_begun:
            raise UsageError("a transaction begins once: make another one")
        self._is_begun = True
        run = self._run
        try:
            await self._manager.begin(run)
        except BaseException:
            self._manager.not_begun(run)
            raise
        try:
            # Only now: until its turn, the transaction before may have the consumer.
            if self._consumer is not None:
                run.consumer = self._consumer._join_transaction(
                    self._on_revoke, self._on_lost
                )
        except BaseException:
            await self._manager.abort(run)
            raise
        if self._intake.is_plain:
            self._direct = self._open_batches
        _current.set(self)

    async def commit(self) -> None:
        """Write what was enqueued, commit the offsets, and commit the transaction.

        With a consumer, the offsets of all that it handed out are committed with it.
        When the call returns, the commit is decided; readers see it some milliseconds
        later. If the call is cancelled before EndTxn is sent, the transaction is
        aborted; later the commit goes on in the background, and `outcome` is its end.

        Raises:
            TransactionAborted: a record or an offset of it failed, which is the cause;
                or the coordinator aborted it after ``transaction_timeout_ms``, or has
                forgotten the producer, which was idle for too long. The body can be
                run again.
            OutcomeUnknown: the end was not acknowledged within ``max_block_ms``. It
                goes on in the background; `outcome` and the next transaction wait for
                it.
            Fenced: a newer producer has the transactional id; this one is over.
            UnsupportedVersion: the brokers (before Kafka 2.5) would not check whether
                the consumer is still a member of its group. The transaction is aborted.
            UsageError: the transaction is not open.
        """
        run, manager = self._run, self._manager
        if not run.is_open:
            manager.check(run)
        self._is_end_asked = True
        manager.begin_commit(run)
        try:
            if run.consumer is not None and manager.is_committable(run):
                offsets = run.consumer.handed_out()
                if offsets is not None:
                    await manager.commit_offsets(run, offsets)
        except UnsupportedVersion as error:
            # Not a TransactionAborted: running the body again would not help.
            await self._abort_after(error)
            raise
        except KafkaError as error:
            manager.fail_run(run, error, "offsets were not committed")
        except BaseException:
            await manager.abort_behind(run, "cancelled")
            raise
        await manager.commit(run)

    async def abort(self) -> None:
        """Abort the transaction: nothing of it becomes visible.

        Records that were not sent yet fail with TransactionAborted. If the call is
        cancelled, the abort goes on in the background.

        Raises:
            RequestTimeout: it was not acknowledged within ``max_block_ms``; it goes on.
            Fenced: a newer producer has the transactional id; this one is over.
            UsageError: the transaction is not open.
        """
        self._check_begun()
        self._is_end_asked = True
        await self._manager.abort(self._run)

    async def _detach(self) -> DetachedTransaction:
        # `kafkaio._producer.detached.detach`.
        self._check_begun()
        if self._run.consumer is not None:
            raise UsageError(
                "the end of a transaction with a consumer cannot be left to another "
                "process: the consumer holds its partitions until then"
            )
        self._is_end_asked = True
        self._manager.begin_commit(self._run)
        return await self._manager.detach(self._run)

    async def __aenter__(self) -> Self:
        await self.begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_end_asked:
            return  # the body has committed or aborted by itself
        if error is not None:
            await self._abort_after(error)
        elif self._run.is_ending:
            # The body has not ended it: the producer is over, or was closed.
            await self._manager.commit(self._run)
        else:
            await self.commit()

    async def _abort_after(self, error: BaseException) -> None:
        # The exception of the body is raised even if the abort fails. But an error of
        # kafkaio's may mean that the body can be run again, which is wrong if the abort
        # finds the producer over.
        if not isinstance(error, Exception):
            await self._manager.abort_behind(self._run, "cancelled")
            return
        try:
            await self._manager.abort(self._run)
        except KafkaError as failure:
            is_over = not isinstance(failure, RequestTimeout)
            if is_over and isinstance(error, KafkaError):
                if type(failure) is type(error):
                    return
                raise
            error.add_note(f"and the transaction was not aborted yet: {failure!r}")

    @property
    def outcome(self) -> Awaitable[TransactionOutcome]:
        """How the transaction ended, once that is known: ``await tx.outcome``.

        A transaction whose `begin` failed is ABORTED: nothing of it was written.
        Awaiting raises OutcomeUnknown if the outcome will never be known, because the
        producer was closed or fenced while the end was not acknowledged; and
        UsageError if `begin` was never called.
        """
        return _OutcomeOf(self._manager, self._run, self._is_begun)

    @property
    def is_ending(self) -> bool:
        """Whether to take no more records, and to end the block soon.

        True once a partition whose records it works on is to be revoked, and once it
        cannot be committed any more.
        """
        return self._run.is_revoked or not self._manager.is_committable(self._run)

    def _check_begun(self) -> None:
        if not self._run.is_open:
            self._manager.check(self._run)

    def _check(self) -> None:
        self._life.check()
        self._manager.check(self._run)

    def _closed(self) -> None:
        self._direct = None
        # Records that wait for a serializer are refused now: they are not part of it.
        self._intake.refuse_waiting()

    def _on_revoke(self) -> None:
        self._run.is_revoked = True

    def _on_lost(self, error: KafkaError) -> None:
        self._manager.fail_run(self._run, error, "a partition was lost")

    # ---- records ---------------------------------------------------------------------

    @overload
    async def send(
        self,
        topic: str,
        value: V_contra | None,
        *,
        key: K_contra | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> RecordMetadata: ...

    @overload
    async def send(
        self,
        topic: Topic[KeyT, ValueT],
        value: ValueT | None,
        *,
        key: KeyT | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> RecordMetadata: ...

    async def send(
        self,
        topic: str | Topic[Any, Any],
        value: object,
        *,
        key: object = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> RecordMetadata:
        """Write a record in the transaction, and wait until it is acknowledged.

        Acknowledged is not committed: readers with ``read_committed`` see it after the
        commit. The arguments, and the rest, are as in `Producer.send`.

        Raises:
            TransactionAborted: the transaction cannot be committed any more.
            UsageError: the transaction is not open.
            KafkaError: as `Producer.send`; the transaction will be aborted if
                the record was taken in.
        """
        delivery = self._take(topic, value, key, headers, timestamp, partition)
        if delivery is None:
            delivery = await self._intake.enqueue(
                topic, value, key, headers, timestamp, partition
            )
        return await delivery

    @overload
    async def enqueue(
        self,
        topic: str,
        value: V_contra | None,
        *,
        key: K_contra | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery: ...

    @overload
    async def enqueue(
        self,
        topic: Topic[KeyT, ValueT],
        value: ValueT | None,
        *,
        key: KeyT | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery: ...

    async def enqueue(
        self,
        topic: str | Topic[Any, Any],
        value: object,
        *,
        key: object = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery:
        """Take a record into the transaction.

        Waits for its serializer and for buffer memory only. A call that still waits
        when the end of the transaction is asked for raises UsageError, and its record
        is not part of it. The commit waits for the acknowledgement of those taken in.
        The arguments, and the rest, are as in `Producer.enqueue`.

        Returns:
            A handle to await the acknowledgement with, if it is of interest.

        Raises:
            TransactionAborted: the transaction cannot be committed any more.
            UsageError: the transaction is not open.
            KafkaError: as `Producer.enqueue`.
        """
        delivery = self._take(topic, value, key, headers, timestamp, partition)
        if delivery is not None:
            return delivery
        return await self._intake.enqueue(
            topic, value, key, headers, timestamp, partition
        )

    def _take(
        self,
        topic: str | Topic[Any, Any],
        value: object,
        key: object,
        headers: Headers,
        timestamp: int | None,
        partition: int | None,
    ) -> Delivery | None:
        direct = self._direct
        if direct is None or direct.taken >= TURN_BYTES:
            return None
        return direct.take(topic, value, key, headers, timestamp, partition)

    @overload
    def enqueue_nowait(
        self,
        topic: str,
        value: V_contra | None,
        *,
        key: K_contra | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery: ...

    @overload
    def enqueue_nowait(
        self,
        topic: Topic[KeyT, ValueT],
        value: ValueT | None,
        *,
        key: KeyT | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery: ...

    @open_batch_first
    def enqueue_nowait(
        self,
        topic: str | Topic[Any, Any],
        value: object,
        *,
        key: object = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery:
        """Take a record into the transaction, or raise BufferFull.

        The arguments, and the rest, are as in `Producer.enqueue_nowait`.

        Raises:
            TransactionAborted: the transaction cannot be committed any more.
            UsageError: the transaction is not open.
            KafkaError: as `Producer.enqueue_nowait`.
        """
        return self._intake.enqueue_nowait(
            topic, value, key, headers, timestamp, partition
        )

    @overload
    async def send_many(
        self,
        topic: str,
        values: Sequence[V_contra | NewRecord[K_contra, V_contra] | None],
    ) -> Sequence[RecordMetadata]: ...

    @overload
    async def send_many(
        self,
        topic: Topic[KeyT, ValueT],
        values: Sequence[ValueT | NewRecord[KeyT, ValueT] | None],
    ) -> Sequence[RecordMetadata]: ...

    async def send_many(
        self, topic: str | Topic[Any, Any], values: Sequence[object]
    ) -> Sequence[RecordMetadata]:
        """Write several records in the transaction, and wait until all are done.

        The arguments, and the rest, are as in `Producer.send_many`.

        Raises:
            DeliveriesFailed: some records failed; the transaction will be aborted.
            TransactionAborted: the transaction cannot be committed any more.
            UsageError: the transaction is not open.
            KafkaError: as `Producer.send_many`.
        """
        return await self._intake.send_many(topic, values)

    async def send_table(  # noqa: PLR0913 - the columns, by name
        self,
        topic: str | None,
        table: pa.Table | pa.RecordBatch,
        *,
        key: str | None = None,
        value: str | None = "value",
        headers: str | None = None,
        timestamp: str | None = None,
        partition: int | None = None,
        topic_column: str | None = None,
        partition_column: str | None = None,
    ) -> pa.Table:
        """Write the rows of an Arrow table in the transaction, and wait.

        The arguments, and the rest, are as in `Producer.send_table`.

        Raises:
            DeliveriesFailed: some rows failed; the transaction will be aborted.
            TransactionAborted: the transaction cannot be committed any more.
            UsageError: the transaction is not open.
            KafkaError: as `Producer.send_table`.
        """
        arguments = TableArguments(
            topic,
            partition,
            key,
            value,
            headers,
            timestamp,
            topic_column,
            partition_column,
        )
        return await self._intake.send_table(table, arguments)

    async def enqueue_table(  # noqa: PLR0913 - the columns, by name
        self,
        topic: str | None,
        table: pa.Table | pa.RecordBatch,
        *,
        key: str | None = None,
        value: str | None = "value",
        headers: str | None = None,
        timestamp: str | None = None,
        partition: int | None = None,
        topic_column: str | None = None,
        partition_column: str | None = None,
    ) -> TableDelivery:
        """Take the rows of an Arrow table into the transaction.

        Waits for buffer memory only; the commit waits for the acknowledgement of the
        rows. The arguments, and the rest, are as in `Producer.enqueue_table`.

        Returns:
            A handle to await the acknowledgement of all rows with, if it is of
            interest.

        Raises:
            TransactionAborted: the transaction cannot be committed any more.
            UsageError: the transaction is not open.
            KafkaError: as `Producer.enqueue_table`.
        """
        arguments = TableArguments(
            topic,
            partition,
            key,
            value,
            headers,
            timestamp,
            topic_column,
            partition_column,
        )
        return await self._intake.enqueue_table(table, arguments)

    async def send_raw(
        self,
        batch: RawBatch | Sequence[RawBatch],
        topic: str | Topic[Any, Any],
        partition: int,
    ) -> Sequence[RecordMetadata]:
        """Write raw batches in the transaction, and wait.

        The arguments, and the rest, are as in `Producer.send_raw`.

        Raises:
            DeliveriesFailed: some records failed; the transaction will be aborted.
            TransactionAborted: the transaction cannot be committed any more.
            UsageError: the transaction is not open.
            KafkaError: as `Producer.send_raw`.
        """
        return await (await self.enqueue_raw(batch, topic, partition))

    async def enqueue_raw(
        self,
        batch: RawBatch | Sequence[RawBatch],
        topic: str | Topic[Any, Any],
        partition: int,
    ) -> RawDelivery:
        """Take raw batches into the transaction.

        Waits for buffer memory only; the commit waits for the acknowledgement. The
        arguments, and the rest, are as in `Producer.enqueue_raw`.

        Returns:
            A handle to await the acknowledgement with, if it is of interest.

        Raises:
            TransactionAborted: the transaction cannot be committed any more.
            UsageError: the transaction is not open.
            KafkaError: as `Producer.enqueue_raw`.
        """
        return await self._intake.enqueue_raw(batch, topic, partition)

    # ---- offsets ---------------------------------------------------------------------

    async def commit_offsets(
        self, consumer: TransactionalConsumer | GroupMetadata, what: object = None
    ) -> None:
        """Commit offsets of a group with the transaction (KIP-98, KIP-447).

        They take effect when the transaction is committed. The group's coordinator
        checks the consumer's place in the group, and the consumer checks that the
        partitions are still assigned to it; so a consumer that the group has replaced
        cannot commit. If the call is cancelled after the request was sent, the
        transaction cannot be committed any more.

        Args:
            consumer: a consumer of the group, with ``enable_auto_commit=False``; or,
                for a group without members, its ``GroupMetadata``.
            what: what `Consumer.commit` takes: partitions, a record, a batch, or a
                mapping of partitions to offsets; None for all that was handed out. With
                a `GroupMetadata`, the mapping.

        Raises:
            UsageError: the transaction is not open; or the consumer commits by itself,
                keeps its offsets outside Kafka, or has no group. Nothing was sent.
            UnsupportedVersion: the brokers (before Kafka 2.5) would not check the
                consumer's place. Nothing was sent.
            PartitionLost: a partition is not assigned to the consumer any more; the
                transaction will be aborted.
            CommitFailed: the group went on without the consumer; the transaction will
                be aborted.
            TransactionAborted: the transaction cannot be committed any more.
            KafkaError: the offsets were refused; the transaction will be aborted.
        """
        self._check()
        if isinstance(consumer, GroupMetadata):
            offsets: GroupOffsetsPort | None = _offsets_of(consumer, what)
        elif isinstance(consumer, TransactionalConsumer):
            try:
                offsets = consumer._offsets_in_transaction(what)
            except PartitionLost as error:
                self._manager.fail_run(self._run, error, "a partition was lost")
                raise
        else:
            raise ArgumentTypeError(
                "consumer must be a kafkaio.Consumer or a kafkaio.GroupMetadata, not "
                f"{type(consumer).__name__}"
            )
        if offsets is not None:
            await self._manager.commit_offsets(self._run, offsets)


class _OutcomeOf:
    """The result of `Transaction.outcome`; several tasks may await it."""

    __slots__ = ("_is_begun", "_manager", "_run")

    def __init__(self, manager: TransactionManager, run: Run, is_begun: bool) -> None:  # noqa: FBT001
        self._manager = manager
        self._run = run
        self._is_begun = is_begun

    def __await__(self) -> Generator[object, None, TransactionOutcome]:
        if not self._is_begun:
            raise UsageError("the transaction was not begun")
        return self._manager.outcome(self._run).__await__()


class _OffsetsWithoutMember(GroupOffsetsPort):
    """Offsets for a group without members, which the user names."""

    def __init__(
        self,
        metadata: GroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
    ) -> None:
        self._metadata = metadata
        self._offsets = offsets

    @property
    def offsets(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Offsets of the next records to read."""
        return self._offsets

    def identity(self) -> GroupMetadata:
        """Return the group, as the user named it."""
        return self._metadata


def _offsets_of(metadata: GroupMetadata, what: object) -> GroupOffsetsPort | None:
    if not isinstance(what, Mapping):
        raise ArgumentTypeError(
            "offsets of a GroupMetadata must be a mapping of partitions to offsets, "
            f"not {type(what).__name__}"
        )
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    for tp, at in what.items():
        if not isinstance(tp, TopicPartition):
            raise ArgumentTypeError(f"not a TopicPartition: {tp!r}")
        if isinstance(at, bool) or not isinstance(at, int | OffsetAndMetadata):
            raise ArgumentTypeError(f"not an offset: {at!r}")
        place = OffsetAndMetadata(at) if isinstance(at, int) else at
        if place.offset < 0:
            raise ArgumentValueError(
                f"{tp.topic}-{tp.partition} has no offset {place.offset}"
            )
        offsets[tp] = place
    return _OffsetsWithoutMember(metadata, offsets) if offsets else None
