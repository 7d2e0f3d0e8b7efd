"""The open batches of a producer, which take records directly, in pure Python.

The accumulator opens a batch here with the bytes that the batch may still use, and
closes it before it does anything else with the batch. While a batch is open, a record
goes into it without a call of the accumulator.

`_append.pxi` has the compiled twin. This module is the reference: both behave the same,
and the tests compare them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Protocol, TypeVar

from kafkaio._public import public
from kafkaio._records._columns import Rows
from kafkaio._records._layout import HEADER_OVERHEAD, ONE_RECORD
from kafkaio._records._murmur2 import key_partition
from kafkaio._records._pure import RecordWriter
from kafkaio._records._receipts import Delivery, Receipt
from kafkaio.errors import UsageError
from kafkaio.types import Header, NewRecord

EnqueueT = TypeVar("EnqueueT", bound=Callable[..., Delivery])

_MAX_INT32 = 2**31 - 1
_MAX_INT64 = 2**63 - 1
# Finding the running loop takes as long as taking in a record.
_RECORDS_PER_CHECK = 256


class _TopicBatches:
    """The open batches of one topic, by partition."""

    __slots__ = ("batches", "sticky", "sticky_left", "sticky_taken")

    def __init__(self, partitions: int) -> None:
        self.batches: list[tuple[RecordWriter, Receipt, int] | None] = [
            None
        ] * partitions
        self.sticky = -1
        self.sticky_left = 0
        self.sticky_taken = 0


@public("kafkaio")
class RowReceipts:
    """The receipt of each row of a table, or of each record, and its index there.

    Args:
        length: the most rows that it can hold.
        has_times: whether it keeps their timestamps as well. Those of the rows of a
            table are in its columns.

    Attributes:
        receipts: the receipts, each once.
        slots: 32-bit integers: for each row, the index of its receipt among these.
        indices: 32-bit integers: for each row, its index in the receipt.
        times: 64-bit integers: the timestamp that each row was sent with; empty without
            ``has_times``.
        count: rows so far.
    """

    __slots__ = ("_length", "_slots", "count", "indices", "receipts", "slots", "times")

    def __init__(self, length: int, *, has_times: bool = False) -> None:
        if not 0 <= length <= _MAX_INT32:
            raise UsageError(f"there cannot be {length} rows")
        self.receipts: list[Receipt] = []
        self.slots: bytearray = bytearray(length * 4)
        self.indices: bytearray = bytearray(length * 4)
        self.times: bytearray = bytearray(length * 8 if has_times else 0)
        self.count: int = 0
        self._length = length
        self._slots: dict[Receipt, int] = {}

    def add(self, receipt: Receipt, index: int, time: int = 0) -> None:
        """Note where the next row went, and its timestamp.

        Raises:
            UsageError: there are more rows than expected.
        """
        if self.count >= self._length:
            raise UsageError(f"there are only {self._length} rows")
        slot = self._slots.get(receipt)
        if slot is None:
            slot = self._slots[receipt] = len(self.receipts)
            self.receipts.append(receipt)
        memoryview(self.slots).cast("i")[self.count] = slot
        memoryview(self.indices).cast("i")[self.count] = index
        if self.times:
            memoryview(self.times).cast("q")[self.count] = time
        self.count += 1


class OpenBatches:
    """The open batches of a producer.

    A record that no open batch takes, for any reason, is left to the accumulator, which
    raises the error or handles the rare case. So an open batch takes a record only if
    the accumulator would put it into the same batch, and checks nothing that the
    accumulator can check later.

    Args:
        clock: the wall clock, nanoseconds since the Unix epoch.
        largest: the size of the largest record, by `BatchBuilder.size_of`.
        ignore_keys: whether records with keys go where those without keys go.

    Attributes:
        taken: bytes taken in so far; the reader may set it back to 0.
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
        self._topics: dict[str, _TopicBatches] = {}
        self.taken: int = 0
        # Records come from this thread only; None for any thread.
        self._ident: Callable[[], int] | None = None
        self._thread = 0
        self._check: Callable[[], object] | None = None

    # For the accumulator.

    def open(
        self,
        topic: str,
        partition: int,
        partitions: int,
        batch: tuple[RecordWriter, Receipt],
        limit: int,
    ) -> None:
        """Let a batch take records until it is closed.

        Args:
            topic: name of its topic.
            partition: its partition.
            partitions: how many the topic has; the same in every call until `clear`.
            batch: the batch, which has a record already, and its receipt, whose
                ``count`` is kept up to date.
            limit: bytes that the batch may reach; a record that could exceed them is
                not taken.
        """
        topic_batches = self._topics.get(topic)
        if topic_batches is None:
            topic_batches = self._topics[topic] = _TopicBatches(partitions)
        topic_batches.batches[partition] = (*batch, limit)

    def stick(self, topic: str, partition: int, size: int) -> None:
        """Let records without a key go to this partition, until it had ``size`` bytes.

        Without effect for a topic without open batches.
        """
        topic_batches = self._topics.get(topic)
        if topic_batches is not None:
            topic_batches.sticky = partition
            topic_batches.sticky_left = size

    def close(self, topic: str, partition: int) -> None:
        """Close the open batch of a partition, if there is one."""
        topic_batches = self._topics.get(topic)
        if topic_batches is not None and partition < len(topic_batches.batches):
            topic_batches.batches[partition] = None

    def unstick(self, topic: str) -> int:
        """Take no more records without a key, until the next `stick`.

        Returns:
            Bytes of such records taken since the last call.
        """
        topic_batches = self._topics.get(topic)
        if topic_batches is None:
            return 0
        topic_batches.sticky = -1
        taken, topic_batches.sticky_taken = topic_batches.sticky_taken, 0
        return taken

    def clear(self) -> None:
        """Close all open batches, and forget the topics."""
        self._topics.clear()

    # For the producer.

    def bind(self, thread: Callable[[], int], check: Callable[[], object]) -> None:
        """Take single records from the current thread only, from now on.

        Args:
            thread: returns the identifier of the current thread:
                ``threading.get_ident``.
            check: called with every 256th record of a batch; raises if the wrong event
                loop runs. Of another loop in the right thread, the records between two
                checks are taken.
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
        """Take a record in, if a batch is open for it.

        Returns:
            Its delivery; None if no open batch takes it, for any reason.
        """
        if type(topic) is not str or not self._is_right_thread():
            return None
        topic_batches = self._topics.get(topic)
        plain = _plain_headers(headers)
        if topic_batches is None or plain is None:
            return None
        size = self._size_of(value, key, plain)
        if size < 0:
            return None
        number = self._partition(topic_batches, key, partition)
        batch = topic_batches.batches[number] if number >= 0 else None
        if batch is None:
            return None
        if timestamp is None:
            timestamp = self._clock() // 1_000_000
        elif type(timestamp) is not int or not 0 <= timestamp < _MAX_INT64:
            return None
        writer, receipt, limit = batch
        before = writer.size_bytes
        # `size` is an upper limit, so a record that could exceed the batch goes to the
        # accumulator, which computes exactly.
        if before + size > limit:
            return None
        if writer.count % _RECORDS_PER_CHECK == 0 and self._check is not None:
            self._check()
        index = writer.try_append(timestamp, key, value, plain)  # type: ignore[arg-type]  # _size_of checked their types
        if index < 0:
            return None
        is_sticky = partition is None and (key is None or self._ignore_keys)
        self._took(topic_batches, writer.size_bytes - before, is_sticky=is_sticky)
        receipt.count = index + 1
        return Delivery(receipt, index, timestamp)

    def _partition(
        self, topic_batches: _TopicBatches, key: object, partition: object
    ) -> int:
        """Return the partition of a record; -1 if the accumulator has to choose it."""
        count = len(topic_batches.batches)
        if partition is not None:
            is_fine = type(partition) is int and 0 <= partition < count
            return partition if is_fine else -1  # type: ignore[return-value]  # checked
        # The accumulator calls `clear` when the number of partitions changes, so the
        # hash is taken modulo the current number.
        if isinstance(key, bytes) and not self._ignore_keys:
            return key_partition(key, count)
        return topic_batches.sticky if topic_batches.sticky_left > 0 else -1

    def take_values(
        self, topic: str, values: list[object], start: int
    ) -> tuple[Receipt, int, int, int] | None:
        """Take in records without a key, as many as fit in one open batch.

        Args:
            topic: the topic.
            values: the values.
            start: index of the first one to take.

        Returns:
            Their receipt, the index of the first of them there, how many were taken,
            and their timestamp; None if no open batch takes the first.
        """
        if start < 0:
            raise IndexError(f"there is no value before the first, such as {start}")
        topic_batches = self._topics.get(topic)
        if topic_batches is None or topic_batches.sticky < 0:
            return None
        batch = topic_batches.batches[topic_batches.sticky]
        if batch is None:
            return None
        writer, receipt, limit = batch
        first = writer.count
        timestamp = self._clock() // 1_000_000
        for index in range(start, len(values)):
            value = values[index]
            size = self._size_of(value, None, ())
            before = writer.size_bytes
            if topic_batches.sticky_left <= 0 or size < 0 or before + size > limit:
                break
            if writer.try_append(timestamp, None, value) < 0:  # type: ignore[arg-type]  # _size_of checked its type
                break
            self._took(topic_batches, writer.size_bytes - before, is_sticky=True)
        if writer.count == first:
            return None
        receipt.count = writer.count
        return receipt, first, writer.count - first, timestamp

    def take_records(
        self,
        topic: str,
        records: list[object],
        start: int,
        places: RowReceipts,
        most: int,
    ) -> int:
        """Take records in, for as long as a batch is open for the next one.

        Args:
            topic: the topic.
            records: what `are_records` accepts, and pairs of a partition (None to
                choose one) and of the timestamp, key, value and headers of a record.
            start: index of the first one to take.
            places: gets the receipt of each record, and its timestamp.
            most: no record is taken while ``taken`` is at least this.

        Returns:
            How many were taken.

        Raises:
            UsageError: the records do not exist, or have no room in ``places``.
        """
        # Checked before the first record, so that none is in a batch without its
        # receipt in `places`.
        if start < 0 or places.count + len(records) - start > len(places.times) // 8:
            raise UsageError(f"there are no such records from {start} on")
        now = self._clock() // 1_000_000
        for number in range(start, len(records)):
            parts = _parts_of(records[number])
            if self.taken >= most or parts is None:
                return number - start
            timestamp, key, value, headers, partition = parts
            delivery = self.take(
                topic,
                value,
                key,
                headers,
                now if timestamp is None else timestamp,
                partition,
            )
            if delivery is None:
                return number - start
            places.add(*delivery.place())
        return max(len(records) - start, 0)

    def take_rows(  # noqa: PLR0913 - called once for thousands of rows
        self,
        topic: str | None,
        partition: int | None,
        rows: Rows,
        start: int,
        places: RowReceipts,
        most: int,
        end: int = -1,
    ) -> int:
        """Take rows in, for as long as a batch is open for the next row.

        Args:
            topic: the topic of rows without one of their own; None if all have one.
            partition: the partition of rows without one of their own; by key, else the
                sticky one, if None.
            rows: the rows; ``Rows.check`` accepted them, and none of them exceeds the
                largest record.
            start: the first row to take.
            places: gets the receipt of each row.
            most: no row is taken while ``taken`` is at least this.
            end: the first row that is not to be taken; -1 for none.

        Returns:
            How many were taken.

        Raises:
            UsageError: the rows do not exist.
        """
        if end < 0:
            end = rows.length
        # Checked before the first row, so that a row is never in a batch without its
        # receipt in `places`.
        if (
            not 0 <= start <= end <= rows.length
            or places.count + end - start > len(places.slots) // 4
        ):
            raise UsageError(f"there are no such rows from {start} on")
        for row in range(start, end):
            if self.taken >= most:
                return row - start
            time, key, value, headers = rows.record(row)
            own_topic, own_partition = rows.destination(row)
            delivery = self.take(
                topic if own_topic is None else own_topic,
                value,
                key,
                headers,
                time,
                partition if own_partition is None else own_partition,
            )
            if delivery is None:
                return row - start
            receipt, index, _ = delivery.place()
            places.add(receipt, index)
        return end - start

    def are_plain(self, values: list[object]) -> bool:
        """Return whether an open batch could take each of these values."""
        return all(self._size_of(value, None, ()) >= 0 for value in values)

    def are_records(self, values: list[object]) -> bool:
        """Return whether an open batch could take each of these.

        Each is a value, or a `kafkaio.NewRecord` whose fields are of plain types.
        """
        return all(self._is_record(value) for value in values)

    def _is_record(self, value: object) -> bool:
        if type(value) is tuple:
            return False
        parts = _parts_of(value)
        if parts is None:
            return False
        timestamp, key, value, headers, partition = parts
        plain = _plain_headers(headers)
        return (
            plain is not None
            and self._size_of(value, key, plain) >= 0
            and (timestamp is None or _is_from_0(timestamp, _MAX_INT64))
            and (partition is None or _is_from_0(partition, _MAX_INT32 + 1))
        )

    def _took(
        self, topic_batches: _TopicBatches, size: int, *, is_sticky: bool
    ) -> None:
        self.taken += size
        if is_sticky:
            topic_batches.sticky_left -= size
            topic_batches.sticky_taken += size

    def _size_of(self, value: object, key: object, headers: tuple[Header, ...]) -> int:
        """Return `BatchBuilder.size_of`; -1 if too large, or for types not plain."""
        # Subclasses of bytes are left to the accumulator.
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


def _parts_of(
    record: object,
) -> tuple[object, object, object, object, object] | None:
    """Return timestamp, key, value, headers and partition; None if not plain."""
    if type(record) is NewRecord:
        return (
            record.timestamp,
            record.key,
            record.value,
            record.headers,
            record.partition,
        )
    if type(record) is tuple:
        partition, (timestamp, key, value, headers) = record
        return timestamp, key, value, headers, partition
    if record is None or type(record) is bytes:
        return None, None, record, (), None
    return None


def _is_from_0(number: object, end: int) -> bool:
    return type(number) is int and 0 <= number < end


class _IntakePort(Protocol):
    _direct: OpenBatches | None


def open_batch_first(method: EnqueueT) -> EnqueueT:
    """Decorate a producer's ``enqueue_nowait``: try the open batches first.

    The method itself runs only for a record that no open batch takes. In the compiled
    codec that saves a frame of Python per record. The object that the method belongs to
    has ``_direct``: its open batches, or None while each record needs the method.

    The result is a method like any other: it binds to instances, subclasses override
    it and call it through ``super()``, and name, docstring and signature are those of
    ``method``.
    """

    @wraps(method)
    def enqueue_nowait(  # noqa: PLR0913 - as the method has them
        self: _IntakePort,
        topic: object,
        value: object,
        *,
        key: object = None,
        headers: object = (),
        timestamp: object = None,
        partition: object = None,
    ) -> Delivery:
        direct = self._direct
        if direct is not None:
            delivery = direct.take(topic, value, key, headers, timestamp, partition)
            if delivery is not None:
                return delivery
        return method(
            self,
            topic,
            value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            partition=partition,
        )

    return enqueue_nowait  # type: ignore[return-value]  # the same to its callers


def _plain_headers(headers: object) -> tuple[Header, ...] | None:
    """Return the headers as the writer takes them; None if they are not plain.

    Plain are a list, a tuple or a dict, nothing derived from these, of names that
    UTF-8 can express and values that are bytes, bytearray or None.
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
        # A copy: the user may change a bytearray after the call.
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
