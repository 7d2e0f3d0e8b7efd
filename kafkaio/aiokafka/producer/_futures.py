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
#: Gives a future the outcome of a record.
Settle: TypeAlias = Callable[[asyncio.Future[RecordMetadata], kafkaio.Delivery], None]
#: Called with a delivery whose outcome is known.
Callback: TypeAlias = Callable[[kafkaio.Delivery], None]


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


def settle(future: asyncio.Future[RecordMetadata], delivery: kafkaio.Delivery) -> None:
    """Give a future the outcome of a record."""
    # Read in any case, so that it is not reported as an error that nobody has read.
    error = delivery.exception()
    if future.done():
        return  # it was cancelled, which does nothing to the record
    if error is None:
        future.set_result(metadata_of(delivery.result(), delivery))
    else:
        # Not raised here: the traceback would refer to the future.
        future.set_exception(translated(error, closed=errors.ProducerClosed))


def settle_without(
    future: asyncio.Future[RecordMetadata], delivery: kafkaio.Delivery
) -> None:
    """Give a future the outcome of a record without acknowledgement: None."""
    error = delivery.exception()
    if future.done():
        return
    if error is None:
        future.set_result(None)  # type: ignore[arg-type]  # see `AIOKafkaProducer.send`
    else:
        future.set_exception(translated(error, closed=errors.ProducerClosed))


class BatchFuture:
    """Gives one future the outcome of several records, when all are settled.

    The future gets what the first record gets, or the error of the first that failed.

    Args:
        future: the future.
        deliveries: the records, at least one.
        settle: gives a future the outcome of a record.
    """

    def __init__(
        self,
        future: asyncio.Future[RecordMetadata],
        deliveries: Sequence[kafkaio.Delivery],
        settle: Settle,
    ) -> None:
        self._future = future
        self._deliveries = deliveries
        self._settle = settle
        self._left = len(deliveries)

    def record_settled(self, delivery: kafkaio.Delivery) -> None:
        """Note that the outcome of one more record is known."""
        del delivery
        self._left -= 1
        if self._left:
            return
        # All errors are read here, so that none is reported as one nobody has read.
        failed = [each for each in self._deliveries if each.exception() is not None]
        self._settle(self._future, (failed or self._deliveries)[0])


class _Waiter:
    """Calls a function when a record is settled."""

    __slots__ = ("_callback", "_delivery")

    def __init__(self, delivery: kafkaio.Delivery, callback: Callback) -> None:
        self._delivery = delivery
        self._callback = callback

    def done(self) -> bool:
        return False

    def set_result(self, result: None) -> None:
        when_done(self._delivery, self._callback)


def when_done(delivery: kafkaio.Delivery, callback: Callback) -> None:
    """Call a function with a delivery as soon as its outcome is known."""
    receipt = delivery.receipt()
    if receipt.is_settled:
        callback(delivery)
    else:
        receipt.when_settled(_Waiter(delivery, callback))
