"""Futures of asyncio for the deliveries of kafkaio, without a task for each record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import kafkaio
from kafkaio.aiokafka import errors
from kafkaio.aiokafka._translation import translated
from kafkaio.aiokafka.structs import RecordMetadata, TopicPartition

_new: Final = tuple.__new__
#: A future of what `AIOKafkaProducer.send` returns.
Sent: TypeAlias = asyncio.Future[RecordMetadata]
#: Gives a future the outcome of a record.
Settle: TypeAlias = Callable[[Sent, kafkaio.Delivery], None]


def metadata_of(
    at: kafkaio.RecordMetadata, delivery: kafkaio.Delivery
) -> RecordMetadata:
    """Return where an acknowledged record was written, as aiokafka says it."""
    topic, partition = at.topic, at.partition
    # As the constructors do it, at a third of the time: each record has these two.
    return _new(
        RecordMetadata,
        (
            topic,
            partition,
            _new(TopicPartition, (topic, partition)),
            at.offset,
            at.timestamp,
            1 if delivery.receipt().log_append_time >= 0 else 0,
            None,
        ),
    )


def settle(future: Sent, delivery: kafkaio.Delivery) -> None:
    """Give a future the outcome of a record."""
    # Read in any case, so that it is not reported as an error that nobody has read.
    error = delivery.exception()
    if future.done():
        return  # it was cancelled, which does nothing to the record
    if error is None:
        future.set_result(metadata_of(delivery.result(), delivery))
    else:
        _fail(future, error)


def settle_without(future: Sent, delivery: kafkaio.Delivery) -> None:
    """Give a future the outcome of a record without acknowledgement: None."""
    error = delivery.exception()
    if future.done():
        return
    if error is None:
        future.set_result(None)  # type: ignore[arg-type]  # see `AIOKafkaProducer.send`
    else:
        _fail(future, error)


def _fail(future: Sent, error: Exception) -> None:
    # Not raised here: the traceback would refer to the future.
    future.set_exception(translated(error, closed=errors.ProducerClosed))
    if isinstance(error, kafkaio.TransactionAborted):
        # The program has aborted it, or its commit has raised why. Read here, so that
        # the event loop does not report futures that nobody awaits.
        future.exception()


class BatchFuture:
    """Gives one future the outcome of several records, when all are settled.

    The future gets what the first record gets, or the error of the first that failed.

    Args:
        future: the future.
        deliveries: the records, at least one.
        settle: gives a future the outcome of a record.
    """

    def __init__(
        self, future: Sent, deliveries: Sequence[kafkaio.Delivery], settle: Settle
    ) -> None:
        self._future = future
        self._deliveries = deliveries
        self._settle = settle
        self._left = len(deliveries)

    def record_settled(self, future: Sent, delivery: kafkaio.Delivery) -> None:
        """Note that the outcome of one more record is known."""
        del future, delivery
        self._left -= 1
        if self._left:
            return
        # All errors are read here, so that none is reported as one nobody has read.
        failed = [each for each in self._deliveries if each.exception() is not None]
        self._settle(self._future, (failed or self._deliveries)[0])


class Futures:
    """Settles futures when the records are settled that they stand for.

    One object waits for all records of a batch. It waits for their receipt, which is
    kafkaio's own: to give each delivery a callback costs twice as much as all the rest
    of a `send`.
    """

    __slots__ = ("_batches",)

    def __init__(self) -> None:
        self._batches: dict[object, _Batch] = {}

    def add(self, future: Sent, delivery: kafkaio.Delivery, settle: Settle) -> None:
        """Call ``settle`` with a future and a delivery when that is settled."""
        receipt = delivery.receipt()
        batch = self._batches.get(receipt)
        if batch is None:
            if receipt.is_settled:
                settle(future, delivery)
                return
            batch = self._batches[receipt] = _Batch(self, receipt)
            receipt.when_settled(batch)
        batch.waiting.append((future, delivery, settle))

    def pop(self, receipt: object) -> None:
        """Forget a batch that is settled."""
        del self._batches[receipt]


class _Batch:
    """Waits until the records of a batch are settled, as a future would."""

    __slots__ = ("_futures", "_receipt", "waiting")

    def __init__(self, futures: Futures, receipt: object) -> None:
        self._futures = futures
        self._receipt = receipt
        self.waiting: list[tuple[Sent, kafkaio.Delivery, Settle]] = []

    def done(self) -> bool:
        """Return False: it waits."""
        return False

    def set_result(self, result: None) -> None:
        """Settle the futures; of records that have moved to other batches, wait."""
        del result
        self._futures.pop(self._receipt)
        for future, delivery, settle in self.waiting:
            if delivery.is_done:
                settle(future, delivery)
            else:
                self._futures.add(future, delivery, settle)
