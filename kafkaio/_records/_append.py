"""What takes records into a producer: receipts, deliveries and lanes, in pure Python.

A *receipt* tells what became of the records of one batch, a *delivery* is the place of
one record among them, and the *lanes* are the open batches that take records without
asking anybody: the accumulator grants a lane for a batch with all the room that the
batch may still use, and withdraws it before it does anything else with the batch.

`_append.pxi` is the compiled twin. What is right is said here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias

from kafkaio._records._layout import BATCH_HEADER_SIZE, MAX_RECORD_OVERHEAD
from kafkaio._records._murmur2 import key_partition
from kafkaio._records._pure import RecordWriter
from kafkaio.errors import UsageError
from kafkaio.types import RecordMetadata

__all__ = [
    "Delivery",
    "Lanes",
    "Receipt",
    "metadata_of",
    "metadata_of_all",
    "twin_of",
]

#: Makes the iterator that ``await delivery`` runs, for a record on its way.
Wait: TypeAlias = "Callable[[Delivery], Generator[object, None, RecordMetadata]]"

_ONE_RECORD = BATCH_HEADER_SIZE + MAX_RECORD_OVERHEAD
# What a header's name and value cost beside their bytes.
_HEADER_OVERHEAD = 10
_MAX_INT64 = 2**63 - 1


class Receipt:
    """What became of some records that travel together.

    It is settled once: acknowledged, failed, or moved (its records travel on under
    other receipts, because their batch was divided). Settling is one call however
    many records there are, and each waiter is called back once.

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
        self._waiters: dict[Callable[[], None], None] | None = None
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

    def see(self, index: int) -> None:
        """Note that somebody has learned of the error of record ``index``."""
        if self._seen is None:
            self._seen = set()
        self._seen.add(index)

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` once when it is settled, which it must not be yet."""
        assert not self.is_settled
        if self._waiters is None:
            self._waiters = {}
        self._waiters[callback] = None

    def forget(self, callback: Callable[[], None]) -> None:
        """Do not call ``callback`` any more; harmless if it was called."""
        if self._waiters is not None:
            self._waiters.pop(callback, None)

    def _settle(self) -> None:
        assert not self.is_settled
        self.is_settled = True
        waiters, self._waiters = self._waiters, None
        for callback in waiters or ():
            callback()


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
        return self._at_once()

    def _at_once(self) -> Generator[object, None, RecordMetadata]:
        yield from ()  # nothing to wait for, but awaiting takes an iterator
        return self.result()

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
        return metadata_of(receipt, self._index, 1, self._timestamp)[0]

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


def metadata_of(
    receipt: Receipt, first: int, count: int, timestamp: int
) -> list[RecordMetadata]:
    """Where ``count`` records of an acknowledged receipt were written, in order.

    Args:
        receipt: the receipt.
        first: index of the first of the records.
        count: how many they are.
        timestamp: the one that they were all sent with.
    """
    topic, partition = receipt.topic, receipt.partition
    if receipt.log_append_time >= 0:
        timestamp = receipt.log_append_time
    offset = receipt.base_offset
    if offset < 0:
        return [RecordMetadata(topic, partition, -1, timestamp)] * count
    return [
        RecordMetadata(topic, partition, at, timestamp)
        for at in range(offset + first, offset + first + count)
    ]


def metadata_of_all(
    runs: list[tuple[Receipt, int, int, int]],
) -> list[RecordMetadata]:
    """Where the records of several runs were written, each as `metadata_of` takes it."""
    return [made for run in runs for made in metadata_of(*run)]


def twin_of(error: Exception) -> Exception:
    """A copy of the error that the records of a batch share.

    Raised in several tasks, one object would collect all their tracebacks, and keep
    what these refer to: the deliveries too, which no garbage collector looks into.
    """
    try:
        twin = type(error).__new__(type(error), *error.args)
    except Exception:  # noqa: BLE001 - an exception class of the user's own making
        return error.with_traceback(None)
    twin.args = error.args
    vars(twin).update(vars(error))
    if error.__cause__ is not None:
        twin.__cause__ = error.__cause__
    return twin


class _Topic:
    """The lanes of one topic."""

    __slots__ = ("lanes", "sticky", "sticky_left", "sticky_taken")

    def __init__(self, partitions: int) -> None:
        self.lanes: list[tuple[RecordWriter, Receipt] | None] = [None] * partitions
        self.sticky = -1
        self.sticky_left = 0
        self.sticky_taken = 0


class Lanes:
    """The open batches of a producer that take records by themselves.

    What they do not take, for whatever reason, is left to the accumulator, which
    says what is wrong with it or does what is rare. So a lane takes only records that
    the accumulator would put in the same batch, and checks nothing that it can leave
    to it.

    Args:
        clock: the wall clock, nanoseconds since the Unix epoch.
        largest: the largest record, by `BatchBuilder.size_of`.
        ignore_keys: whether records with keys go where those without go.

    Attributes:
        taken: bytes taken in so far; whoever reads it may set it back to 0.
    """

    __slots__ = (
        "_clock",
        "_ignore_keys",
        "_largest",
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
        self.taken = 0

    # For the accumulator.

    def grant(
        self,
        topic: str,
        partition: int,
        partitions: int,
        writer: RecordWriter,
        receipt: Receipt,
    ) -> None:
        """Let a batch take records until it is withdrawn.

        Args:
            topic: name of its topic.
            partition: its partition.
            partitions: how many the topic has; as in every grant until `clear`.
            writer: the batch, which has a record already.
            receipt: its receipt, whose ``count`` is kept.
        """
        lanes = self._topics.get(topic)
        if lanes is None:
            lanes = self._topics[topic] = _Topic(partitions)
        lanes.lanes[partition] = (writer, receipt)

    def stick(self, topic: str, partition: int, size: int) -> None:
        """Let records without a key go to this partition, until it had ``size`` bytes.

        Without effect for a topic without lanes.
        """
        lanes = self._topics.get(topic)
        if lanes is not None:
            lanes.sticky = partition
            lanes.sticky_left = size

    def withdraw(self, topic: str, partition: int) -> None:
        """Close the lane of a batch, if it has one."""
        lanes = self._topics.get(topic)
        if lanes is not None and partition < len(lanes.lanes):
            lanes.lanes[partition] = None

    def unstick(self, topic: str) -> int:
        """Take no more records without a key, until the next `stick`.

        Returns:
            Bytes taken for their sake since this was last asked.
        """
        lanes = self._topics.get(topic)
        if lanes is None:
            return 0
        lanes.sticky = -1
        taken, lanes.sticky_taken = lanes.sticky_taken, 0
        return taken

    def clear(self) -> None:
        """Close all lanes, and forget the topics."""
        self._topics.clear()

    # For the producer.

    def take(
        self,
        topic: object,
        value: object,
        key: object,
        headers: object,
        timestamp: object,
        partition: object,
    ) -> Delivery | None:
        """Take a record in, if a lane is open for it.

        Returns:
            Its delivery; None if no lane takes it, for whatever reason.
        """
        lanes = self._topics.get(topic) if type(topic) is str else None
        if lanes is None or self._size_of(value, key, headers) < 0:
            return None
        number = self._partition(lanes, key, partition)
        lane = lanes.lanes[number] if number >= 0 else None
        if lane is None:
            return None
        if timestamp is None:
            timestamp = self._clock() // 1_000_000
        elif type(timestamp) is not int or not 0 <= timestamp < _MAX_INT64:
            return None
        writer, receipt = lane
        before = writer.size_bytes
        index = writer.try_append(timestamp, key, value, headers)  # type: ignore[arg-type]  # _size_of checked their types
        if index < 0:
            return None
        is_sticky = partition is None and (key is None or self._ignore_keys)
        self._took(lanes, writer.size_bytes - before, is_sticky=is_sticky)
        receipt.count = index + 1
        return Delivery(receipt, index, timestamp)

    def _partition(self, lanes: _Topic, key: object, partition: object) -> int:
        """Where a record goes; -1 if the accumulator has to say."""
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
        """Take in records of values alone, as many as fit in one open lane.

        Args:
            topic: the topic.
            values: the values.
            start: index of the first one to take.

        Returns:
            Their receipt, the index of the first of them there, how many were taken,
            and their timestamp; None if no lane takes the first.
        """
        lanes = self._topics.get(topic)
        if lanes is None or lanes.sticky < 0:
            return None
        lane = lanes.lanes[lanes.sticky]
        if lane is None:
            return None
        writer, receipt = lane
        first = writer.count
        timestamp = self._clock() // 1_000_000
        for index in range(start, len(values)):
            value = values[index]
            if lanes.sticky_left <= 0 or self._size_of(value, None, ()) < 0:
                break
            before = writer.size_bytes
            if writer.try_append(timestamp, None, value) < 0:  # type: ignore[arg-type]  # _size_of checked its type
                break
            self._took(lanes, writer.size_bytes - before, is_sticky=True)
        if writer.count == first:
            return None
        receipt.count = writer.count
        return receipt, first, writer.count - first, timestamp

    def are_plain(self, values: list[object]) -> bool:
        """Whether all values could go through a lane as far as they are concerned."""
        return all(self._size_of(value, None, ()) >= 0 for value in values)

    def _took(self, lanes: _Topic, size: int, *, is_sticky: bool) -> None:
        self.taken += size
        if is_sticky:
            lanes.sticky_left -= size
            lanes.sticky_taken += size

    def _size_of(self, value: object, key: object, headers: object) -> int:
        """What `BatchBuilder.size_of` says; -1 if it is too much or not plain."""
        size = _ONE_RECORD
        if type(value) is bytes:
            size += len(value)
        elif value is not None:
            return -1
        if type(key) is bytes:
            size += len(key)
        elif key is not None:
            return -1
        extra = _size_of_headers(headers)
        if extra < 0:
            return -1
        size += extra
        return size if size <= self._largest else -1


def _size_of_headers(headers: object) -> int:
    if type(headers) is not tuple:
        return -1
    size = 0
    for pair in headers:
        if type(pair) is not tuple or len(pair) != 2:
            return -1
        name, value = pair
        if type(name) is not str or (value is not None and type(value) is not bytes):
            return -1
        try:
            size += _HEADER_OVERHEAD + len(name.encode()) + len(value or b"")
        except UnicodeEncodeError:
            return -1
    return size
