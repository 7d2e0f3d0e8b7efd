"""Sending the rows of an Arrow table."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkaio._records._impl import Places
from kafkaio._records.batch import Rows
from kafkaio.errors import RecordTooLarge
from kafkaio.producer.delivery import Delivery, settled
from kafkaio.producer.many import DeliveriesFailed
from kafkaio.types import RecordMetadata

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SentRows", "check_rows"]


def check_rows(parts: Sequence[Rows], largest: int) -> None:
    """Look at every row before the first is taken in.

    Args:
        parts: the rows.
        largest: the most bytes that a record may take.

    Raises:
        UsageError: a row cannot become a record.
        RecordTooLarge: a row can never be sent under the limits in force.
    """
    for rows in parts:
        size = rows.check()
        if size > largest:
            raise RecordTooLarge(
                f"a row takes up to {size} bytes with its batch header; "
                f"max_request_size and buffer_memory allow {largest}"
            )


class SentRows:
    """What one ``send_table`` has taken in so far.

    Attributes:
        places: where each row went.
    """

    def __init__(self, parts: Sequence[Rows]) -> None:
        self._parts = parts
        self._length = sum(rows.length for rows in parts)
        self.places = Places(self._length)
        self._failures: dict[int, Exception] = {}

    def add(self, delivery: Delivery) -> None:
        """Note the next row, which was taken in by itself."""
        receipt, index, _ = delivery.place()
        self.places.add(receipt, index)

    def fail_rest(self, error: Exception) -> None:
        """Note that no more rows could be taken in."""
        self._failures = dict.fromkeys(range(self.places.count, self._length), error)

    async def outcome(self) -> pa.Table:
        """Wait for all; where each was written.

        Raises:
            DeliveriesFailed: some rows failed.
        """
        receipts = self.places.receipts
        await settled(receipts)
        if self._failures or any(
            receipt.error is not None or receipt.moved is not None
            for receipt in receipts
        ):
            return self._one_by_one()
        return _table(self.places, self._times())

    def _times(self) -> array[int]:
        times = array("q")
        for rows in self._parts:
            if isinstance(rows.timestamps, int):
                times += array("q", [rows.timestamps]) * rows.length
            else:
                times.frombytes(memoryview(rows.timestamps).cast("B"))
        return times

    def _one_by_one(self) -> pa.Table:
        places, times = self.places, self._times()
        slots = memoryview(places.slots).cast("i")
        indices = memoryview(places.indices).cast("i")
        done: dict[int, RecordMetadata] = {}
        for row in range(places.count):
            receipt = places.receipts[slots[row]]
            delivery = Delivery(receipt, indices[row], times[row])
            error = delivery.exception()
            if error is None:
                done[row] = delivery.result()
            else:
                self._failures[row] = error
        if self._failures:
            raise DeliveriesFailed.of(self._failures, done)
        return _table_of(list(done.values()))


def _table(places: Places, times: array[int]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    count, receipts = places.count, places.receipts
    slots, indices, timestamps = (
        pa.Array.from_buffers(kind, count, [None, pa.py_buffer(numbers)])
        for kind, numbers in (
            (pa.int32(), places.slots),
            (pa.int32(), places.indices),
            (pa.int64(), times),
        )
    )
    bases = pa.array([_known(receipt.base_offset) for receipt in receipts], pa.int64())
    appended = [_known(receipt.log_append_time) for receipt in receipts]
    if any(time is not None for time in appended):
        timestamps = pc.coalesce(pa.array(appended, pa.int64()).take(slots), timestamps)
    return _columns(
        pa.array([receipt.partition for receipt in receipts], pa.int32()).take(slots),
        pc.add(bases.take(slots), indices),
        timestamps,
    )


def _table_of(metas: Sequence[RecordMetadata]) -> pa.Table:
    import pyarrow as pa

    return _columns(
        pa.array([meta.partition for meta in metas], pa.int32()),
        pa.array([_known(meta.offset) for meta in metas], pa.int64()),
        pa.array([meta.timestamp for meta in metas], pa.int64()),
    )


def _columns(partition: pa.Array, offset: pa.Array, timestamp: pa.Array) -> pa.Table:
    import pyarrow as pa

    return pa.table(
        {
            "partition": partition,
            "offset": offset,
            "timestamp": timestamp.view(pa.timestamp("ms", tz="UTC")),
        }
    )


def _known(number: int) -> int | None:
    return number if number >= 0 else None
