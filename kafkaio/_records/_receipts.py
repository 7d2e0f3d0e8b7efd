"""What a producer tells of records: receipts and deliveries, in pure Python.

A *receipt* tells what became of the records of one batch, a *delivery* is the place of
one record among them. `_receipts.pxi` has the compiled twins. What is right is said
here.
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

#: Makes the iterator that ``await delivery`` runs, for a record on its way.
Wait: TypeAlias = "Callable[[Delivery], Generator[object, None, RecordMetadata]]"


class Waiter(Protocol):
    """Who waits for a receipt to be settled: a future."""

    def done(self) -> bool:
        """Whether it wants to hear no more."""

    def set_result(self, result: None, /) -> None:
        """Hear that the receipt is settled; must not raise."""


class Receipt:
    """What became of some records that travel together.

    It is settled once: acknowledged, failed, or moved (its records travel on under
    other receipts, because their batch was divided). Settling is one call however
    many records there are, and each waiter is told once.

    Attributes:
        topic: name of the topic.
        partition: number of the partition, -1 until there is one.
        count: records it stands for.
        is_settled: whether it is known what became of them.
        base_offset: offset of the first record, -1 if the broker did not say.
        log_append_time: milliseconds, -1 where the records keep their own timestamps.
        error: why the records failed, None if they did not.
        moved: for each record, its new receipt and index; None if they did not move.
        on_lost: told of the receipt, and of how many of its records failed without
            anybody asking, when its last handle is gone.
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
        # Records of a failed receipt whose error reached somebody.
        self._seen: set[int] | None = None

    def __del__(self) -> None:
        # The last handle is gone, so nobody can ask any more. Asked-for errors were
        # raised where they were awaited; the rest is reported, once per receipt.
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
        """Settle: the records are given up."""
        self.error = error
        self._settle()

    def move(self, moved: Sequence[tuple[Receipt, int]]) -> None:
        """Settle: each record now has the receipt and index at its place here."""
        self.moved = moved
        self._settle()

    def written(self, index: int, timestamp: int) -> tuple[int, int]:
        """The offset of an acknowledged record, -1 if unknown, and its timestamp.

        Args:
            index: which of the records.
            timestamp: the one that it was sent with.
        """
        if self.log_append_time >= 0:
            timestamp = self.log_append_time
        return (self.base_offset + index if self.base_offset >= 0 else -1), timestamp

    def see(self, index: int) -> None:
        """Note that somebody has learned of the error of record ``index``."""
        if self._seen is None:
            self._seen = set()
        self._seen.add(index)

    def when_settled(self, waiter: Waiter) -> None:
        """Tell ``waiter`` when it is settled, which it must not be yet."""
        assert not self.is_settled
        if self._waiters is None:
            self._waiters = {}
        self._waiters[waiter] = None

    def forget(self, waiter: Waiter) -> None:
        """Tell ``waiter`` no more; harmless if it was told."""
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
        wait = self.receipt().wait
        if wait is not None and not self._receipt.is_settled:
            return wait(self)
        return at_once(self)

    @property
    def is_done(self) -> bool:
        """Whether it is known what became of the record."""
        return self.receipt().is_settled

    def result(self) -> RecordMetadata:
        """Return where the record was written, without waiting.

        Raises:
            UsageError: that is not known yet.
            KafkaError: the record failed; as for awaiting.
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
            UsageError: that is not known yet.
        """
        receipt = self._settled()
        if receipt.error is not None:
            receipt.see(self._index)
        return receipt.error

    def receipt(self) -> Receipt:
        """The receipt that tells of the record now; for kafkaio's own use."""
        # Its batch may have been divided meanwhile, or only now have come to be.
        receipt = self._receipt
        moved = receipt.moved
        while moved is not None:
            receipt, self._index = moved[self._index]
            self._receipt = receipt
            moved = receipt.moved
        return receipt

    def place(self) -> tuple[Receipt, int, int]:
        """The receipt, the index there, and the timestamp; for kafkaio's own use."""
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
    """Where ``count`` records that stand one after the other were written, in order.

    Args:
        topic: name of their topic.
        partition: their partition.
        offset: that of the first, -1 if the broker did not say.
        count: how many they are.
        timestamp: the one that all of them have.
    """
    if offset < 0:
        return [RecordMetadata(topic, partition, -1, timestamp)] * count
    return [
        RecordMetadata(topic, partition, at, timestamp)
        for at in range(offset, offset + count)
    ]
