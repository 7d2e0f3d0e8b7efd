"""Receipts and deliveries: the outcome of a producer's records, in pure Python.

A *receipt* is the outcome of the records of one batch; a *delivery* is the place of one
record in a receipt. There is a delivery for every record and a receipt for every batch,
so that settling a batch is one step however many records it has.

`_receipts.pxi` has the compiled twins. This module is the reference: both behave the
same, and the tests compare them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Protocol, TypeAlias

from kafkaio._records._layout import at_once, twin_of
from kafkaio.errors import UsageError
from kafkaio.types import RecordMetadata

__all__ = [
    "Delivery",
    "Receipt",
    "Wait",
    "Waiter",
    "metadata_run",
]

#: Makes the iterator that ``await delivery`` runs while the record is not settled.
Wait: TypeAlias = "Callable[[Delivery], Generator[object, None, RecordMetadata]]"


class Waiter(Protocol):
    """A future that waits for a receipt to be settled."""

    def done(self) -> bool:
        """Whether it waits no more."""

    def set_result(self, result: None, /) -> None:
        """Note that the receipt is settled; must not raise."""


class Receipt:
    """The outcome of some records that are sent together.

    It is settled once: acknowledged, failed, or moved. It moves when its batch is
    split, or when records without a partition get one: then each record has another
    receipt. Each waiter is called once.

    Attributes:
        topic: name of the topic.
        partition: number of the partition, -1 until there is one.
        count: number of the records.
        is_settled: whether their outcome is known.
        base_offset: offset of the first record, -1 if the broker did not say.
        log_append_time: milliseconds, -1 where the records keep their own timestamps.
        error: why the records failed, None if they did not.
        moved: for each record, its new receipt and index; None if they did not move.
        on_lost: called when the last delivery was dropped, with the receipt and the
            number of records whose error nobody has seen.
        wait: makes the iterator of ``await delivery``.
    """

    __slots__ = (
        "__weakref__",
        "_seen",
        "_waiters",
        "base_offset",
        "count",
        "error",
        "is_settled",
        "log_append_time",
        "moved",
        "on_lost",
        "partition",
        "topic",
        "wait",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        *,
        count: int = 0,
        on_lost: Callable[[Receipt, int], None] | None = None,
        wait: Wait | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.count = count
        self.is_settled = False
        self.base_offset = -1
        self.log_append_time = -1
        self.error: Exception | None = None
        self.moved: Sequence[tuple[Receipt, int]] | None = None
        self.on_lost = on_lost
        self.wait = wait
        self._waiters: dict[Waiter, None] | None = None
        # The records of a failed receipt whose error was seen.
        self._seen: set[int] | None = None

    def __del__(self) -> None:
        # The last delivery is gone, so no error can be seen any more. Those that were
        # seen were raised where they were awaited; the others are reported, once.
        if self.error is not None and self.on_lost is not None:
            unseen = self.count - (len(self._seen) if self._seen else 0)
            if unseen > 0:
                self.on_lost(self, unseen)

    def acknowledge(self, base_offset: int, log_append_time: int) -> None:
        """Settle: the broker has the records."""
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self._settle()

    def fail(self, error: Exception) -> None:
        """Settle: the records have failed."""
        self.error = error
        self._settle()

    def move(self, moved: Sequence[tuple[Receipt, int]]) -> None:
        """Settle: each record now has the receipt and index at its place here."""
        self.moved = moved
        self._settle()

    def written(self, index: int, timestamp: int) -> tuple[int, int]:
        """Return the offset of an acknowledged record, -1 if unknown, and a timestamp.

        Args:
            index: which of the records.
            timestamp: the one that it was sent with.
        """
        if self.log_append_time >= 0:
            timestamp = self.log_append_time
        return (self.base_offset + index if self.base_offset >= 0 else -1), timestamp

    def see(self, index: int) -> None:
        """Note that the error of record ``index`` was seen."""
        if self._seen is None:
            self._seen = set()
        self._seen.add(index)

    def when_settled(self, waiter: Waiter) -> None:
        """Call ``waiter`` when the receipt is settled, which it must not be yet."""
        assert not self.is_settled
        if self._waiters is None:
            self._waiters = {}
        self._waiters[waiter] = None

    def forget(self, waiter: Waiter) -> None:
        """Do not call ``waiter`` any more; harmless if it was called."""
        if self._waiters is not None:
            self._waiters.pop(waiter, None)

    def _settle(self) -> None:
        assert not self.is_settled
        self.is_settled = True
        waiters, self._waiters = self._waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)


class Delivery:
    """A record that was taken in and will be acknowledged, or fail.

    It can be awaited once, many times, by several tasks, or never. Cancelling one await
    affects neither the record nor other awaits. It always ends, at the latest when
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
            DeliveryTimeout: no acknowledgement came in time; the record may have been
                written.
            RecordTooLarge: the record is larger than the topic allows.
            UnknownTopicOrPartition: the topic or partition does not exist.
            BrokerError: the broker refused the record for another reason.
            ClosedError: the producer was closed first, or the event loop is not that
                of the producer.
        """
        wait = self.receipt().wait
        if wait is not None and not self._receipt.is_settled:
            return wait(self)
        return at_once(self)

    @property
    def is_done(self) -> bool:
        """Whether the record was acknowledged or has failed."""
        return self.receipt().is_settled

    def result(self) -> RecordMetadata:
        """Return where the record was written, without waiting.

        Raises:
            UsageError: the record is not done yet.
            KafkaError: the record failed; as for ``await``.
        """
        receipt = self._settled()
        if receipt.error is not None:
            receipt.see(self._index)
            raise twin_of(receipt.error)
        offset, timestamp = receipt.written(self._index, self._timestamp)
        return RecordMetadata(receipt.topic, receipt.partition, offset, timestamp)

    def exception(self) -> Exception | None:
        """Return why the record failed, None if it did not.

        Raises:
            UsageError: the record is not done yet.
        """
        receipt = self._settled()
        if receipt.error is not None:
            receipt.see(self._index)
        return receipt.error

    def receipt(self) -> Receipt:
        """Return the current receipt of the record; for kafkaio's own use."""
        # The record may have moved, for example because its batch was split.
        receipt = self._receipt
        moved = receipt.moved
        while moved is not None:
            receipt, self._index = moved[self._index]
            self._receipt = receipt
            moved = receipt.moved
        return receipt

    def place(self) -> tuple[Receipt, int, int]:
        """Return the receipt, the index there, the timestamp; for kafkaio's own use."""
        return self.receipt(), self._index, self._timestamp

    def _settled(self) -> Receipt:
        receipt = self.receipt()
        if not receipt.is_settled:
            raise UsageError("the record is still on its way: await its delivery")
        return receipt

    def __repr__(self) -> str:
        receipt = self.receipt()
        where = receipt.topic
        if receipt.partition >= 0:
            where += f"-{receipt.partition}"
        if not receipt.is_settled:
            return f"<Delivery {where} on its way>"
        if receipt.error is not None:
            return f"<Delivery {where} failed: {receipt.error!r}>"
        return f"<Delivery {where} done, offset {self.result().offset}>"


def metadata_run(
    topic: str, partition: int, offset: int, count: int, timestamp: int
) -> list[RecordMetadata]:
    """Return where ``count`` consecutive records were written, in order.

    Args:
        topic: name of their topic.
        partition: their partition.
        offset: offset of the first one, -1 if the broker did not say.
        count: number of records.
        timestamp: the timestamp of all of them.
    """
    if offset < 0:
        return [RecordMetadata(topic, partition, -1, timestamp)] * count
    return [
        RecordMetadata(topic, partition, at, timestamp)
        for at in range(offset, offset + count)
    ]
