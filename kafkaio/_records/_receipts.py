"""The outcome of a producer's records: receipts and deliveries, the pure twins.

A *receipt* holds the outcome of the records of one batch. A *delivery* is the user's
object for one record: a receipt and the record's index in it. So an acknowledgement
costs the same for a batch of one record and one of thousands. If a batch is divided,
its receipt refers each record to a new receipt, and deliveries follow.

`_receipts.pxi` has the compiled twins; this module is the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from kafkaio._public import public
from kafkaio._records._layout import at_once, twin_of
from kafkaio.errors import UsageError
from kafkaio.types import RecordMetadata

if TYPE_CHECKING:
    from contextvars import Context

    from kafkaio._records._callbacks import WaiterPort

#: Makes the iterator that ``await delivery`` runs while the outcome is unknown.
Wait: TypeAlias = "Callable[[Delivery], Generator[object, None, RecordMetadata]]"


class Receipt:
    """The outcome of records that are sent in one batch.

    It is settled once: acknowledged, failed, or moved (its records have other receipts
    now, because their batch was divided). Settling it is one call for all records, and
    notifies each waiter once.

    Attributes:
        topic: name of the topic.
        partition: number of the partition, -1 until it is chosen.
        count: number of records.
        is_settled: whether the outcome is known.
        base_offset: offset of the first record, -1 if the broker did not return it.
        log_append_time: the broker's timestamp in milliseconds, -1 if the records keep
            their own.
        error: why the records failed, None if they did not.
        moved: for each record, its new receipt and index; None if they did not move.
        on_lost: called when nothing refers to a failed receipt any more, with the
            receipt and the number of records whose error nobody has read.
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
        self.topic: str = topic
        self.partition: int = partition
        self.count: int = count
        self.is_settled: bool = False
        self.base_offset: int = -1
        self.log_append_time: int = -1
        self.error: Exception | None = None
        self.moved: Sequence[tuple[Receipt, int]] | None = None
        self.on_lost: Callable[[Receipt, int], None] | None = on_lost
        self.wait: Wait | None = wait
        self._waiters: dict[WaiterPort, WaiterPort] | None = None
        # Indices of the records whose error was read, in a failed receipt.
        self._seen: set[int] | None = None

    def __del__(self) -> None:
        # No delivery refers to the receipt any more, so nobody can read the remaining
        # errors. They are reported, once per receipt.
        if self.error is not None and self.on_lost is not None:
            unseen = self.count - (len(self._seen) if self._seen else 0)
            if unseen > 0:
                self.on_lost(self, unseen)

    def acknowledge(self, base_offset: int, log_append_time: int) -> None:
        """Settle it: the broker has acknowledged the records."""
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self._settle()

    def fail(self, error: Exception) -> None:
        """Settle it: the records have failed and will not be sent again."""
        self.error = error
        self._settle()

    def move(self, moved: Sequence[tuple[Receipt, int]]) -> None:
        """Settle it: record number i has the receipt and index ``moved[i]`` now."""
        self.moved = moved
        self._settle()

    def written(self, index: int, timestamp: int) -> tuple[int, int]:
        """Return the offset (-1 if unknown) and timestamp of an acknowledged record.

        Args:
            index: the record's index.
            timestamp: the timestamp that it was sent with.
        """
        if self.log_append_time >= 0:
            timestamp = self.log_append_time
        return (self.base_offset + index if self.base_offset >= 0 else -1), timestamp

    def see(self, index: int) -> None:
        """Record that the error of the record ``index`` was read."""
        if self._seen is None:
            self._seen = set()
        self._seen.add(index)

    def when_settled(self, waiter: WaiterPort) -> None:
        """Notify ``waiter`` when the receipt, which must not be settled, is settled."""
        assert not self.is_settled
        if self._waiters is None:
            self._waiters = {}
        self._waiters[waiter] = waiter

    def forget(self, waiter: WaiterPort) -> None:
        """Do not notify ``waiter``; no effect if it was notified already."""
        if self._waiters is not None:
            self._waiters.pop(waiter, None)

    def waiter_like(self, waiter: WaiterPort) -> WaiterPort | None:
        """Return the waiter that is equal to one; None if there is none."""
        return None if self._waiters is None else self._waiters.get(waiter)

    def _settle(self) -> None:
        assert not self.is_settled
        # First the state, then the waiters: a waiter may read the outcome at once.
        self.is_settled = True
        waiters, self._waiters = self._waiters, None
        for waiter in waiters or ():
            # A future that was cancelled is done, and would raise.
            if not waiter.done():
                waiter.set_result(None)


@public("kafkaio")
class Delivery:
    """The delivery of one record, returned when the producer has accepted the record.

    Await it for the outcome: once, repeatedly, from several tasks, or never. Cancelling
    one await affects neither the record nor other awaits. The outcome is known at the
    latest when ``delivery_timeout_ms`` has passed or the producer is closed. `done`,
    `cancelled`, `result`, `exception` and `add_done_callback` are those of a future, so
    that `asyncio.wait` takes it; cancelling is not possible.
    """

    __slots__ = ("_index", "_receipt", "_timestamp")

    # A reference and two numbers only, because each record has one.
    def __init__(self, receipt: Receipt, index: int, timestamp: int) -> None:
        self._receipt = receipt
        self._index = index
        self._timestamp = timestamp

    def __await__(self) -> Generator[object, None, RecordMetadata]:
        """Wait until the record is acknowledged.

        Returns:
            The record's topic, partition, offset and timestamp.

        Raises:
            DeliveryTimeout: it was not acknowledged in time; it may have been written.
            RecordTooLarge: it is larger than the topic allows.
            UnknownTopicOrPartition: the topic or partition does not exist.
            BrokerError: the broker refused it for another reason.
            ClosedError: the producer was closed first.
        """
        # `receipt` follows the record to its present batch before the check.
        wait = self.receipt().wait
        if wait is not None and not self._receipt.is_settled:
            return wait(self)
        return at_once(self)

    @property
    def is_done(self) -> bool:
        """Whether the outcome is known: the record was acknowledged or has failed."""
        return self.receipt().is_settled

    def done(self) -> bool:
        """Return `is_done`, as a future does."""
        return self.receipt().is_settled

    def cancelled(self) -> bool:
        """Return False: a record that was taken in cannot be cancelled."""
        return False

    def add_done_callback(
        self,
        fn: Callable[[Delivery], object],
        /,
        *,
        context: Context | None = None,
    ) -> None:
        """Call a function with this delivery, soon after the outcome is known.

        As that of a future: it is called by the event loop, in the order of adding and
        once for each time that it was added; at once in the loop's next turn if the
        outcome is known. What it raises goes to the loop's exception handler. A record
        that fails still counts as lost, unless the function asks for its `result` or
        `exception`.

        Args:
            fn: gets the delivery.
            context: the context to call it in; a copy of the present one by default.

        Raises:
            ClosedError: another event loop runs than the producer's, or another
                process.
        """
        # Imported late: most deliveries are awaited.
        from kafkaio._records._callbacks import add_done_callback

        loop = getattr(self.receipt().wait, "loop", None)
        add_done_callback(self, loop, fn, context)

    def remove_done_callback(self, fn: Callable[[Delivery], object], /) -> int:
        """Do not call a function; return how often it had been added.

        One that is about to be called, because the outcome is known, is called.
        """
        from kafkaio._records._callbacks import remove_done_callback

        return remove_done_callback(self, fn)

    def result(self) -> RecordMetadata:
        """Return the record's topic, partition, offset and timestamp without waiting.

        Raises:
            UsageError: the outcome is not known yet.
            KafkaError: the record failed, with the errors of ``await``.
        """
        receipt = self._settled()
        if receipt.error is not None:
            # Seen, so that it is not reported as unread.
            receipt.see(self._index)
            raise twin_of(receipt.error)
        offset, timestamp = receipt.written(self._index, self._timestamp)
        return RecordMetadata(receipt.topic, receipt.partition, offset, timestamp)

    def exception(self) -> Exception | None:
        """Return the error with which the record failed, None if it did not.

        Raises:
            UsageError: the outcome is not known yet.
        """
        receipt = self._settled()
        if receipt.error is not None:
            receipt.see(self._index)
        return receipt.error

    def receipt(self) -> Receipt:
        """The record's present receipt; for kafkaio's own use."""
        # The record has moved if its batch was divided, or if it waited for a batch.
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
    """Return the metadata of ``count`` consecutive records, in order.

    Args:
        topic: name of their topic.
        partition: their partition.
        offset: offset of the first, -1 if the broker did not return it.
        count: number of records.
        timestamp: the timestamp of all of them.
    """
    if offset < 0:
        return [RecordMetadata(topic, partition, -1, timestamp)] * count
    return [
        RecordMetadata(topic, partition, at, timestamp)
        for at in range(offset, offset + count)
    ]
