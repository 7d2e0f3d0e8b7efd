"""The handle of a record on its way."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from functools import partial

from kafkaio._machines.accumulator import Receipt
from kafkaio.errors import UsageError
from kafkaio.types import RecordMetadata

__all__ = ["Delivery", "settled"]


class Delivery:
    """A record that was taken in and will be acknowledged, or fail.

    Await it once, many times, from several tasks, or never. Cancelling one await
    harms neither the record nor other awaits. It always ends: at the latest when
    ``delivery_timeout_ms`` has passed or the producer is closed.
    """

    __slots__ = ("_index", "_receipt", "_timestamp")

    # A reference and two numbers: there is one of these per record.
    def __init__(self, receipt: Receipt, index: int, timestamp: int) -> None:
        self._receipt = receipt
        self._index = index
        self._timestamp = timestamp

    def __await__(self) -> Generator[object, None, RecordMetadata]:
        """Wait until the record is acknowledged.

        Returns:
            Where it was written.

        Raises:
            DeliveryTimeout: not acknowledged in time; it may have been written.
            RecordTooLarge: larger than the topic allows.
            UnknownTopicOrPartition: the topic or partition does not exist.
            BrokerError: the broker refused it for another reason.
            ClosedError: the producer was closed first.
        """
        receipt = self._where()
        while not receipt.is_settled:
            yield from _wait(receipt)
            receipt = self._where()
        return self._outcome(receipt)

    @property
    def is_done(self) -> bool:
        """Whether it is known what became of the record."""
        return self._where().is_settled

    def result(self) -> RecordMetadata:
        """Return where the record was written, without waiting.

        Raises:
            UsageError: that is not known yet.
            KafkaError: the record failed; as for awaiting.
        """
        receipt = self._where()
        if not receipt.is_settled:
            raise UsageError("the record is still on its way: await its delivery")
        return self._outcome(receipt)

    def exception(self) -> Exception | None:
        """Return why the record failed, None if it did not.

        Raises:
            UsageError: that is not known yet.
        """
        receipt = self._where()
        if not receipt.is_settled:
            raise UsageError("the record is still on its way: await its delivery")
        if receipt.error is not None:
            receipt.see(self._index)
        return receipt.error

    def _where(self) -> Receipt:
        # Its batch may have been divided meanwhile, or only now have come to be.
        receipt = self._receipt
        moved = receipt.moved
        while moved is not None:
            receipt, self._index = moved[self._index]
            self._receipt = receipt
            moved = receipt.moved
        return receipt

    def _outcome(self, receipt: Receipt) -> RecordMetadata:
        if receipt.error is not None:
            receipt.see(self._index)
            raise _twin(receipt.error)
        offset = receipt.base_offset
        log_append_time = receipt.log_append_time
        return RecordMetadata(
            receipt.topic,
            receipt.partition,
            offset + self._index if offset >= 0 else -1,
            self._timestamp if log_append_time < 0 else log_append_time,
        )

    def __repr__(self) -> str:
        receipt = self._where()
        where = receipt.topic
        if receipt.partition >= 0:
            where += f"-{receipt.partition}"
        if not receipt.is_settled:
            return f"<Delivery {where} on its way>"
        if receipt.error is not None:
            return f"<Delivery {where} failed: {receipt.error!r}>"
        return f"<Delivery {where} done, offset {self._outcome(receipt).offset}>"


def _twin(error: Exception) -> Exception:
    # The records of a batch share their error. Raised in several tasks, one object
    # would collect all their tracebacks, and keep what these refer to.
    try:
        twin = type(error).__new__(type(error), *error.args)
    except Exception:  # noqa: BLE001 - an exception class of the user's own making
        return error.with_traceback(None)
    twin.args = error.args
    vars(twin).update(vars(error))
    if error.__cause__ is not None:
        twin.__cause__ = error.__cause__
    return twin


def _wait(receipt: Receipt) -> Generator[object, None, None]:
    # A future of its own for each waiter: cancelling a shared one would cancel all.
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    callback = partial(_release, waiter)
    receipt.when_settled(callback)
    try:
        yield from waiter
    except BaseException:
        receipt.forget(callback)
        raise


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def settled(receipts: list[Receipt]) -> None:
    """Wait until all of ``receipts`` are settled, whatever became of the records."""
    pending = list(receipts)
    while pending:
        receipt = pending.pop()
        if not receipt.is_settled:
            await _Settled(receipt)
        if receipt.moved is not None:
            pending += {part for part, _ in receipt.moved}


class _Settled:
    __slots__ = ("_receipt",)

    def __init__(self, receipt: Receipt) -> None:
        self._receipt = receipt

    def __await__(self) -> Generator[object, None, None]:
        return _wait(self._receipt)
