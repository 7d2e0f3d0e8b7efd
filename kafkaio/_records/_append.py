"""Appends a producer's records directly to open batches: the pure twin.

`Lanes` holds those open batches to which records can be appended without the
accumulator. The accumulator grants a batch with a limit on its size, and withdraws it
before it does anything else with the batch. A record that cannot be appended directly,
for whatever reason, is left to the accumulator. So this fast path only ever appends a
record where the accumulator would, and checks nothing that the accumulator can check.

`_append.pxi` has the compiled twin; this module defines what is right.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkaio._records._columns import Rows
from kafkaio._records._layout import HEADER_OVERHEAD, ONE_RECORD
from kafkaio._records._murmur2 import key_partition
from kafkaio._records._pure import RecordWriter
from kafkaio._records._receipts import Delivery, Receipt
from kafkaio.errors import UsageError
from kafkaio.types import Header

__all__ = ["Enqueuer", "Lanes", "Places"]

_MAX_INT32 = 2**31 - 1
_MAX_INT64 = 2**63 - 1
# How often the running event loop is checked: a check costs as much as an append.
_RECORDS_PER_CHECK = 256


class _Topic:
    """The open batches of one topic.

    Attributes:
        lanes: by partition: writer, receipt and limit of the open batch; None for none.
        sticky: the partition of records without a key; -1 if the accumulator decides.
        sticky_left: bytes that the sticky partition still gets.
        sticky_taken: bytes that it got and that the accumulator was not told of yet.
    """

    __slots__ = ("lanes", "sticky", "sticky_left", "sticky_taken")

    def __init__(self, partitions: int) -> None:
        self.lanes: list[tuple[RecordWriter, Receipt, int] | None] = [None] * partitions
        self.sticky = -1
        self.sticky_left = 0
        self.sticky_taken = 0


class Places:
    """The places of the rows of a table: the receipt of each, and its index there.

    Args:
        length: the most rows.

    Attributes:
        receipts: the receipts, each once.
        slots: 32-bit integers: for each row, the index of its receipt in ``receipts``.
        indices: 32-bit integers: for each row, its index in the receipt.
        count: number of rows so far.
    """

    __slots__ = ("_length", "_slots", "count", "indices", "receipts", "slots")

    def __init__(self, length: int) -> None:
        if not 0 <= length <= _MAX_INT32:
            raise UsageError(f"there cannot be {length} rows")
        self.receipts: list[Receipt] = []
        self.slots: bytearray = bytearray(length * 4)
        self.indices: bytearray = bytearray(length * 4)
        self.count: int = 0
        self._length = length
        self._slots: dict[Receipt, int] = {}

    def add(self, receipt: Receipt, index: int) -> None:
        """Add the place of the next row.

        Raises:
            UsageError: there are more rows than ``length``.
        """
        if self.count >= self._length:
            raise UsageError(f"there are only {self._length} rows")
        slot = self._slots.get(receipt)
        if slot is None:
            slot = self._slots[receipt] = len(self.receipts)
            self.receipts.append(receipt)
        memoryview(self.slots).cast("i")[self.count] = slot
        memoryview(self.indices).cast("i")[self.count] = index
        self.count += 1


class Lanes:
    """The open batches of a producer to which records can be appended directly.

    Args:
        clock: the wall clock, nanoseconds since the Unix epoch.
        largest: size of the largest record, by `BatchBuilder.size_of`.
        ignore_keys: whether records with keys are partitioned like those without.

    Attributes:
        taken: bytes appended so far; the reader of this attribute can reset it to 0.
    """

    __slots__ = (
        "_check",
        "_clock",
        "_ident",
        "_ignore_keys",
        "_largest",
        "_thread",
        "_topics",
        "taken",
    )

    def __init__(
        self,
        clock: Callable[[], int],
        largest: int,
        *,
        ignore_keys: bool = False,
    ) -> None:
        self._clock = clock
        self._largest = largest
        self._ignore_keys = ignore_keys
        self._topics: dict[str, _Topic] = {}
        self.taken: int = 0
        # Returns the id of the running thread, which must be _thread; None allows any.
        self._ident: Callable[[], int] | None = None
        self._thread = 0
        self._check: Callable[[], object] | None = None

    # For the accumulator.

    def grant(
        self,
        topic: str,
        partition: int,
        partitions: int,
        batch: tuple[RecordWriter, Receipt],
        limit: int,
    ) -> None:
        """Allow direct appends to a batch until it is withdrawn.

        Args:
            topic: name of its topic.
            partition: its partition.
            partitions: number of partitions of the topic; the same in every call until
                `clear`.
            batch: the batch, which has one record at least, and its receipt, whose
                ``count`` is kept up to date.
            limit: the most bytes of the batch; a record that could exceed it is left to
                the accumulator.
        """
        lanes = self._topics.get(topic)
        if lanes is None:
            lanes = self._topics[topic] = _Topic(partitions)
        lanes.lanes[partition] = (*batch, limit)

    def stick(self, topic: str, partition: int, size: int) -> None:
        """Append records without a key to this partition, until it got ``size`` bytes.

        No effect for a topic of which no batch was granted.
        """
        lanes = self._topics.get(topic)
        if lanes is not None:
            lanes.sticky = partition
            lanes.sticky_left = size

    def withdraw(self, topic: str, partition: int) -> None:
        """End direct appends to the batch of a partition, if they are allowed."""
        lanes = self._topics.get(topic)
        if lanes is not None and partition < len(lanes.lanes):
            lanes.lanes[partition] = None

    def unstick(self, topic: str) -> int:
        """Append no more records without a key until the next `stick`.

        Returns:
            Bytes of such records that were appended since the last call.
        """
        lanes = self._topics.get(topic)
        if lanes is None:
            return 0
        lanes.sticky = -1
        taken, lanes.sticky_taken = lanes.sticky_taken, 0
        return taken

    def clear(self) -> None:
        """End all direct appends, and forget the topics."""
        self._topics.clear()

    # For the producer.

    def belong(self, thread: Callable[[], int], check: Callable[[], object]) -> None:
        """Accept single records from the running thread only.

        Args:
            thread: ``threading.get_ident``.
            check: called with every 256th record of a batch; raises if the running
                event loop is not the producer's. So a record from another event loop in
                the same thread is not always noticed.
        """
        self._ident = thread
        self._thread = thread()
        self._check = check

    def _is_right_thread(self) -> bool:
        return self._ident is None or self._ident() == self._thread

    def take(
        self,
        topic: object,
        value: object,
        key: object,
        headers: object,
        timestamp: object,
        partition: object,
    ) -> Delivery | None:
        """Append a record to the open batch of its partition, if that is allowed.

        Returns:
            Its delivery; None if the accumulator has to handle the record.
        """
        if type(topic) is not str or not self._is_right_thread():
            return None
        lanes = self._topics.get(topic)
        plain = _plain_headers(headers)
        if lanes is None or plain is None:
            return None
        size = self._size_of(value, key, plain)
        if size < 0:
            return None
        number = self._partition(lanes, key, partition)
        lane = lanes.lanes[number] if number >= 0 else None
        if lane is None:
            return None
        if timestamp is None:
            timestamp = self._clock() // 1_000_000
        elif type(timestamp) is not int or not 0 <= timestamp < _MAX_INT64:
            return None
        writer, receipt, limit = lane
        before = writer.size_bytes
        if before + size > limit:
            return None
        if writer.count % _RECORDS_PER_CHECK == 0 and self._check is not None:
            self._check()
        index = writer.try_append(timestamp, key, value, plain)  # type: ignore[arg-type]  # _size_of checked their types
        if index < 0:
            return None
        is_sticky = partition is None and (key is None or self._ignore_keys)
        self._took(lanes, writer.size_bytes - before, is_sticky=is_sticky)
        receipt.count = index + 1
        return Delivery(receipt, index, timestamp)

    def _partition(self, lanes: _Topic, key: object, partition: object) -> int:
        """The partition of a record; -1 if the accumulator has to decide."""
        count = len(lanes.lanes)
        if partition is not None:
            is_fine = type(partition) is int and 0 <= partition < count
            return partition if is_fine else -1  # type: ignore[return-value]  # checked
        if isinstance(key, bytes) and not self._ignore_keys:
            return key_partition(key, count)
        return lanes.sticky if lanes.sticky_left > 0 else -1

    def take_values(
        self, topic: str, values: list[object], start: int
    ) -> tuple[Receipt, int, int, int] | None:
        """Append records of values only, as many as fit in one open batch.

        Args:
            topic: the topic.
            values: the values.
            start: index of the first value to append.

        Returns:
            Their receipt, the index of the first of them there, their number, and their
            timestamp; None if the accumulator has to handle the first.
        """
        lanes = self._topics.get(topic)
        if lanes is None or lanes.sticky < 0:
            return None
        lane = lanes.lanes[lanes.sticky]
        if lane is None:
            return None
        writer, receipt, limit = lane
        first = writer.count
        timestamp = self._clock() // 1_000_000
        for index in range(start, len(values)):
            value = values[index]
            size = self._size_of(value, None, ())
            before = writer.size_bytes
            if lanes.sticky_left <= 0 or size < 0 or before + size > limit:
                break
            if writer.try_append(timestamp, None, value) < 0:  # type: ignore[arg-type]  # _size_of checked its type
                break
            self._took(lanes, writer.size_bytes - before, is_sticky=True)
        if writer.count == first:
            return None
        receipt.count = writer.count
        return receipt, first, writer.count - first, timestamp

    def take_rows(
        self,
        topic: str,
        partition: int | None,
        rows: Rows,
        start: int,
        places: Places,
        most: int,
    ) -> int:
        """Append rows until the accumulator has to handle one.

        Args:
            topic: the topic.
            partition: the partition; None for that of the key, or the sticky one.
            rows: the rows, which ``Rows.check`` has found valid and not larger than the
                largest record.
            start: the first row to append.
            places: gets the place of each row.
            most: stop when ``taken`` has reached it.

        Returns:
            The number of rows appended.

        Raises:
            UsageError: there are no such rows, or ``places`` is too short for them.
        """
        if (
            not 0 <= start <= rows.length
            or places.count + rows.length - start > len(places.slots) // 4
        ):
            raise UsageError(f"there are no such rows from {start} on")
        for row in range(start, rows.length):
            if self.taken >= most:
                return row - start
            time, key, value, headers = rows.record(row)
            delivery = self.take(topic, value, key, headers, time, partition)
            if delivery is None:
                return row - start
            receipt, index, _ = delivery.place()
            places.add(receipt, index)
        return rows.length - start

    def are_plain(self, values: list[object]) -> bool:
        """Whether all values are bytes or None, and none of them is too large."""
        return all(self._size_of(value, None, ()) >= 0 for value in values)

    def _took(self, lanes: _Topic, size: int, *, is_sticky: bool) -> None:
        self.taken += size
        if is_sticky:
            lanes.sticky_left -= size
            lanes.sticky_taken += size

    def _size_of(self, value: object, key: object, headers: tuple[Header, ...]) -> int:
        """The size by `BatchBuilder.size_of`; -1 if it is too large or not bytes."""
        size = ONE_RECORD
        if type(value) is bytes:
            size += len(value)
        elif value is not None:
            return -1
        if type(key) is bytes:
            size += len(key)
        elif key is not None:
            return -1
        for name, field in headers:
            size += HEADER_OVERHEAD + len(name.encode()) + len(field or b"")
        return size if size <= self._largest else -1


class Enqueuer:
    """The implementation of `kafkaio.Producer.enqueue_nowait`: one call per record.

    It refers to the producer by ``otherwise``. `Lanes` does not, because background
    tasks refer to it, and an abandoned producer has to be freed.

    Args:
        lanes: tried first.
        otherwise: called for a record that `Lanes.take` leaves to the accumulator, with
            the same arguments.
    """

    __slots__ = ("_lanes", "_otherwise")

    def __init__(self, lanes: Lanes, otherwise: Callable[..., Delivery]) -> None:
        self._lanes = lanes
        self._otherwise = otherwise

    def enqueue(
        self,
        topic: object,
        value: object,
        *,
        key: object = None,
        headers: object = (),
        timestamp: object = None,
        partition: object = None,
    ) -> Delivery:
        """Do what `kafkaio.Producer.enqueue_nowait` does."""
        delivery = self._lanes.take(topic, value, key, headers, timestamp, partition)
        if delivery is not None:
            return delivery
        return self._otherwise(topic, value, key, headers, timestamp, partition)


def _plain_headers(headers: object) -> tuple[Header, ...] | None:
    """The headers in the form that the writer expects; None if they are not plain.

    Plain headers are a list, a tuple or a dict (no subclass), with names that UTF-8 can
    encode and values that are bytes, bytearray or None.
    """
    if headers is None:
        return ()
    if type(headers) is dict:
        headers = tuple(headers.items())
    if type(headers) is not tuple and type(headers) is not list:
        return None
    plain: list[Header] = []
    for pair in headers:
        if (type(pair) is not tuple and type(pair) is not list) or len(pair) != 2:
            return None
        name, value = pair
        if type(name) is not str or not _is_unicode(name):
            return None
        if type(value) is bytearray:
            value = bytes(value)
        if value is not None and type(value) is not bytes:
            return None
        plain.append((name, value))
    return tuple(plain)


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
