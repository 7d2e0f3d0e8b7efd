"""``kafkaio.exactly_once``: consume, work and produce, one transaction after another.

The module must not have the function's name: importing it would hide the function.

It stands above producer and consumer, which do not import each other (ADR 21). One turn
of the loop:

1. Wait for records by a poll, without a transaction: one that is open holds up the
   readers of its partitions.
2. Begin a transaction that works on the consumer's records, and poll for more until
   there are enough, or time is up, or the transaction should end.
3. Call the handler. When it returns, the transaction commits what was sent together
   with the offsets of the records.

A partition polled before the transaction began may be lost in between. So the handler
gets only records whose offsets the transaction will commit. And if the transaction
cannot begin, the consumer goes back to the committed offsets, as after an abort:
otherwise the next poll would count the records as finished, though no handler has seen
them.

`in_transactions` is the loop for anything that a consumer hands out (`TakerPort`);
``kafkaio copy --raw`` takes record batches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Final, Generic, Protocol, TypeVar

from kafkaio._arguments import count_of, seconds_of, type_name
from kafkaio._consumer.consumer import Consumer, observer_of, passing_of
from kafkaio._consumer.parallel.handlers import observed
from kafkaio._consumer.parallel.ports import EndingTransactionPort
from kafkaio._consumer.parallel.run import ABORTS, decided
from kafkaio._generic import KeyT, ValueT
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.retries import Retry
from kafkaio._public import public
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.scopes import is_foreign, move_on_after
from kafkaio.errors import (
    ArgumentTypeError,
    ClosedError,
    CorruptRecord,
    DeserializationError,
    KafkaError,
    RecordTooLarge,
)
from kafkaio.types import Record, TopicPartition

#: The wait after a transaction that was aborted.
_BACKOFF: Final = Backoff(100, 10_000)

#: Seconds to wait for the rewind when the loop is left.
_LEAVING: Final = 1.0

#: States of a consumer or a producer in which the loop returns.
_OVER: Final = frozenset({"closing", "closed"})

#: Errors that every poll raises again until the partition is moved.
_UNREADABLE: Final = (CorruptRecord, DeserializationError, RecordTooLarge)


ItemT = TypeVar("ItemT")
TransactionT = TypeVar("TransactionT", bound=EndingTransactionPort)
TransactionT_co = TypeVar(
    "TransactionT_co", bound=EndingTransactionPort, covariant=True
)


class ProducerLifePort(Protocol):
    """A snapshot of a producer."""

    @property
    def state(self) -> str:
        """The state of its life."""
        ...


class TransactionalProducer(Protocol[TransactionT_co]):
    """Makes transactions: `kafkaio.Producer` with a ``transactional_id``."""

    def transaction(
        self, consumer: Consumer[object, object], /
    ) -> AbstractAsyncContextManager[TransactionT_co]:
        """Return a transaction that works on a consumer's records."""
        ...

    def statistics(self) -> ProducerLifePort:
        """Return a snapshot."""
        ...


class TakerPort(Protocol[ItemT]):
    """Takes from a consumer what the transactions of a loop work on.

    A call that is cancelled or raises has taken nothing.
    """

    async def first(self) -> list[ItemT] | None:
        """Wait for something, without a transaction.

        Returns:
            What was taken; nothing if the consumer has to go on first; None at the end.
        """
        ...

    async def more(self, taken: list[ItemT], timeout: float) -> list[ItemT] | None:
        """Take more for a transaction, and wait for that many seconds at most.

        Args:
            taken: what the transaction has already.
            timeout: the seconds.

        Returns:
            What was taken; None if the transaction has enough.
        """
        ...

    def place(self, item: ItemT) -> tuple[TopicPartition, int]:
        """Return the partition of an item, and the offset after it."""
        ...


class _Records(Generic[KeyT, ValueT]):
    """Takes records."""

    def __init__(self, consumer: Consumer[KeyT, ValueT], most: int) -> None:
        self._consumer = consumer
        self._most = most

    async def first(self) -> list[Record[KeyT, ValueT]]:
        """Take records; none if a revocation was requested: see `Consumer.poll`."""
        return (await self._consumer.poll(max_records=self._most)).records

    async def more(
        self,
        taken: list[Record[KeyT, ValueT]],
        timeout: float,
    ) -> list[Record[KeyT, ValueT]] | None:
        """Take more, up to the number for one transaction."""
        left = self._most - len(taken)
        if left <= 0:
            return None
        return (await self._consumer.poll(timeout=timeout, max_records=left)).records

    def place(self, item: Record[KeyT, ValueT]) -> tuple[TopicPartition, int]:
        """Return the partition of a record, and the offset after it."""
        return item.topic_partition, item.offset + 1


@public("kafkaio")
async def exactly_once(
    consumer: Consumer[KeyT, ValueT],
    producer: TransactionalProducer[TransactionT],
    handler: Callable[[TransactionT, list[Record[KeyT, ValueT]]], Awaitable[object]],
    *,
    max_records: int = 1000,
    max_wait: float = 0.2,
    retry: Retry | None = None,
) -> None:
    """Work on a consumer's records in transactions: each record once, or not yet.

    ``handler(tx, records)`` sends its output by ``tx``. When it returns, that is
    committed together with the offsets of the records: readers with
    ``isolation_level="read_committed"`` see both or neither (KIP-98, KIP-447). Other
    effects of the handler, such as a call of another service, may happen again.

    The loop runs until it is cancelled, or until the consumer or the producer is
    closed; then it returns. Closing the consumer lets the transaction at work be
    finished, within the timeout of `Consumer.close`. If this call is cancelled, the
    transaction is aborted, and its records are handed out again, by this consumer or
    by the partitions' next owners.

    When the revocation of a partition is requested, the transaction takes no more
    records and is committed, and then the partition is released. The next owner
    repeats nothing. A transaction that takes longer than the group allows is aborted.

    A deserializer that fails with a retriable `KafkaError`, or with a `RegistryError`
    that is not about a schema, is reported and tried again in the same way, without
    end: a registry is down, or refuses the login. Only its partition waits.

    An aborted transaction is reported to the observer (``retrying``), and its records
    are worked on again after a back-off of 0.1 to 10 seconds, without end: because a
    partition was lost, the group moved on, or brokers refused something. If the handler
    raises anything else, the transaction is aborted, and the exception is raised unless
    ``retry`` allows another attempt; the records are handed out again then.

    A commit that gets no answer within the producer's ``max_block_ms`` is reported as
    well. The loop waits until its outcome is known, and goes on from there. So is a
    transaction that cannot begin within ``max_block_ms``, because the one before it has
    not come to its end; the loop tries again after the back-off.

    Args:
        consumer: a consumer that is running, in a group, with
            ``enable_auto_commit=False``; use ``isolation_level="read_committed"`` if
            the topics are written in transactions. Only the loop may read from it.
        producer: a producer that is running, with a ``transactional_id``, which each
            running instance of the program needs for itself.
        handler: works on records: at least one, partition by partition in the order of
            their offsets.
        max_records: most records of a transaction.
        max_wait: seconds to wait for that many, once there are any.
        retry: after which exceptions of the handler, how often, and when the records
            are worked on again; None for never.

    Raises:
        Exception: an exception of the handler.
        ClosedError: the handler raised CancelledError, and nobody had cancelled this
            call.
        Fenced: another producer has the ``transactional_id`` now.
        OutcomeUnknown: it will never be known whether a transaction was committed,
            because the producer was closed or fenced before its end was answered.
        UsageError: the consumer commits automatically, keeps its offsets outside Kafka,
            or has no group; or the producer has no ``transactional_id``.
        ArgumentTypeError: an argument has the wrong type.
        ArgumentValueError: ``max_records`` is below 1, or ``max_wait`` negative.
        CorruptRecord, RecordTooLarge, DeserializationError: the next record cannot be
            read; the records before it were worked on and committed.
        KafkaError: as `Consumer.poll` and a transaction do.
    """
    if not callable(handler):
        raise ArgumentTypeError(f"handler must be callable, not {type_name(handler)}")
    if not isinstance(retry, Retry | None):
        raise ArgumentTypeError(
            f"retry must be a kafkaio.Retry or None, not {type_name(retry)}"
        )
    most = count_of("max_records", max_records, 1000)
    wait = seconds_of("max_wait", max_wait)
    consumer._offsets_in_transaction()  # raises if it cannot take part
    group = consumer.group_metadata.group_id
    handler = observed(handler, observer_of(consumer), group)
    taker = _Records(consumer, most)
    await in_transactions(
        consumer, producer, taker, handler, max_wait=wait, retry=retry
    )


async def in_transactions(
    consumer: Consumer[KeyT, ValueT],
    producer: TransactionalProducer[TransactionT],
    taker: TakerPort[ItemT],
    handler: Callable[[TransactionT, list[ItemT]], Awaitable[object]],
    *,
    max_wait: float,
    retry: Retry | None = None,
) -> None:
    """Work in transactions on what a consumer hands out, as `exactly_once` does.

    Args:
        consumer: may take part in transactions.
        producer: makes them.
        taker: takes from the consumer, and says when the end is reached.
        handler: works on what was taken: something.
        max_wait: seconds to wait for more, once something was taken.
        retry: as for `exactly_once`.
    """
    attempts = 0
    while True:
        try:
            if await _one_transaction(consumer, producer, taker, handler, max_wait):
                return
        except ClosedError:
            states = consumer.statistics().state, producer.statistics().state
            if not _OVER.isdisjoint(states):
                return
            raise
        except Exception as error:
            if _is_passing(consumer, error):
                continue
            attempts += 1
            delay = _delay(error, attempts, retry)
            if delay is None:
                raise
            observer_of(consumer).retrying("exactly_once", attempts, delay, error)
            await asyncio.sleep(delay)
        else:
            attempts = 0


async def _one_transaction(
    consumer: Consumer[KeyT, ValueT],
    producer: TransactionalProducer[TransactionT],
    taker: TakerPort[ItemT],
    handler: Callable[[TransactionT, list[ItemT]], Awaitable[object]],
    wait: float,
) -> bool:
    # Returns whether the end is reached.
    taken = await taker.first()
    if not taken:  # a revocation was requested: the next poll takes part in it
        return taken is None
    until = now() + wait
    is_begun = False
    try:
        transaction = producer.transaction(consumer)
        async with decided(transaction, observer_of(consumer), "exactly_once") as tx:
            is_begun = True
            await _work(consumer, tx, taker, handler, taken, until)
    except BaseException:
        if not is_begun:
            await _hand_out_again(consumer)
        raise
    return False


async def _hand_out_again(consumer: Consumer[object, object]) -> None:
    # The consumer goes back at once. The look-up of the committed offsets goes on in
    # the background, and nothing is read before its end.
    with suppress(KafkaError), move_on_after(_LEAVING):
        await consumer._join_transaction(_ignore, _ignore).rewind()


def _ignore(error: KafkaError | None = None) -> None:
    del error


async def _work(
    consumer: Consumer[KeyT, ValueT],
    tx: TransactionT,
    taker: TakerPort[ItemT],
    handler: Callable[[TransactionT, list[ItemT]], Awaitable[object]],
    taken: list[ItemT],
    until: float,
) -> None:
    taken = _covered(consumer, taker, taken)
    while not tx.is_ending and (left := until - now()) > 0:
        try:
            more = await taker.more(taken, left)
        except (ClosedError, *_UNREADABLE):
            break  # what is in hand is finished first; the next read raises it again
        except KafkaError as error:
            if _is_passing(consumer, error):
                continue
            raise
        if more is None:
            break
        taken += more
    if taken:
        await _handle(handler, tx, taken)


async def _handle(
    handler: Callable[[TransactionT, list[ItemT]], Awaitable[object]],
    tx: TransactionT,
    taken: list[ItemT],
) -> None:
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    try:
        await handler(tx, taken)
    except BaseException as error:
        if not is_foreign(error, before):
            raise
        # As `Consumer.run` does. Nobody would hear of a task that ends as cancelled.
        raise ClosedError("the handler of exactly_once was cancelled") from error


def _is_passing(consumer: Consumer[object, object], error: Exception) -> bool:
    # Whether a deserializer failed for a reason that passes. The consumer lets the
    # partition wait, and reads the others: there is nothing to wait for here.
    found = passing_of(consumer, error)
    if found is not None:
        observer_of(consumer).retrying("exactly_once", *found, error)
    return found is not None


def _covered(
    consumer: Consumer[KeyT, ValueT], taker: TakerPort[ItemT], taken: list[ItemT]
) -> list[ItemT]:
    # What was taken under assignments that still exist.
    found = consumer._offsets_in_transaction()
    offsets = {} if found is None else found.offsets
    kept = []
    for item in taken:
        tp, after = taker.place(item)
        end = offsets.get(tp)
        if end is not None and after <= end.offset:
            kept.append(item)
    return kept


def _delay(error: Exception, attempts: int, retry: Retry | None) -> float | None:
    # How long to wait before the next attempt; None for none.
    if isinstance(error, ABORTS):
        return _BACKOFF.delay(attempts - 1, roll())
    return None if retry is None else retry.delay(error, attempts, roll())
