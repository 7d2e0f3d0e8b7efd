"""The intake: takes records in, for a producer or for one of its transactions.

Taking a record in is synchronous. Most records go into an open batch directly
(`kafkaio._records._append`), which the public methods try first. What the open batch
did not take comes here: the first record of a batch, a record that must be serialized,
wrong arguments, and every record for which there is no buffer memory at the moment.

`Intake.check` says whether records may be taken in at all. It is called before each
record, also after a wait, so that no record enters a producer that was closed, or a
transaction that has ended, meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from kafkaio._arguments import check_topic
from kafkaio._machines.accumulator import Accumulator, PlainRecord
from kafkaio._records._impl import OpenBatches
from kafkaio._records.batch import Rows
from kafkaio._runtime.clock import now, wall_ms
from kafkaio.config import ProducerConfig
from kafkaio.errors import BufferFull
from kafkaio.producer.arguments import RecordMaker, check_destination
from kafkaio.producer.backpressure import BufferSpace
from kafkaio.producer.bulk import SentRows, SentValues, check_rows, plan
from kafkaio.producer.delivery import Delivery
from kafkaio.types import Headers, RecordMetadata

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TURN_BYTES", "Intake"]

#: Bytes that are taken in before the event loop gets a turn, by calls with one record
#: and by calls with many: less than a millisecond of work.
TURN_BYTES = 65_536
_TURN_BYTES_MANY = 1_048_576


class Intake:
    """Takes records in.

    Args:
        config: the producer's options.
        accumulator: gets the records.
        space: the calls that wait for buffer memory.
        check: raises if no record may be taken in now.

    Attributes:
        is_plain: whether keys and values are taken as they are, without serializers.
        open_batches: the batches that take records past the accumulator.
        on_begun: called when a record has begun a batch.
        wake: makes the sender look.
        describe: waits until the metadata has a topic.
        now: the clock.
    """

    __slots__ = (
        "_accumulator",
        "_budget",
        "_check",
        "_config",
        "_make",
        "_space",
        "describe",
        "is_plain",
        "now",
        "on_begun",
        "open_batches",
        "wake",
    )

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: Accumulator,
        space: BufferSpace,
        check: Callable[[], None],
    ) -> None:
        self._config = config
        self._accumulator = accumulator
        self._budget = accumulator.budget
        self._space = space
        self._make = RecordMaker(config).make
        self._check = check
        # A serializer must run first, so that nothing can be taken in as it is passed.
        self.is_plain: bool = not (config.key_serializer or config.value_serializer)
        self.open_batches: OpenBatches = accumulator.budget.open_batches
        self.on_begun: Callable[[], None] = _nothing
        self.wake: Callable[[], None] = _nothing
        self.describe: Callable[[str], Awaitable[object]] = _unknown
        self.now: Callable[[], float] = now

    def checked_by(self, check: Callable[[], None]) -> Intake:
        """Return an intake that differs in its check alone."""
        # One for each transaction: copy.copy would take longer than the rest of it.
        other = Intake.__new__(Intake)
        other._config, other._accumulator = self._config, self._accumulator
        other._budget, other._space = self._budget, self._space
        other._make, other._check = self._make, check
        other.is_plain, other.open_batches = self.is_plain, self.open_batches
        other.on_begun, other.wake = self.on_begun, self.wake
        other.describe, other.now = self.describe, self.now
        return other

    async def send(
        self,
        topic: str,
        value: object,
        key: object,
        headers: Headers,
        timestamp: int | None,
        partition: int | None,
    ) -> Delivery:
        """Take a record in for `Producer.send`, which then awaits the delivery."""
        self._check()
        check_destination(topic, partition)
        record = self._make(key, value, headers, timestamp)
        if self.open_batches.taken < TURN_BYTES:
            delivery = self._at_once(topic, partition, record)
            if delivery is not None:
                return delivery
        return await self._later(topic, partition, record)

    async def enqueue(
        self,
        topic: str,
        value: object,
        key: object,
        headers: Headers,
        timestamp: int | None,
        partition: int | None,
    ) -> Delivery:
        """Take a record in; see `Producer.enqueue`."""
        check_destination(topic, partition)
        record = self._make(key, value, headers, timestamp)
        return await self._enqueue(topic, partition, record, TURN_BYTES)

    def enqueue_nowait(
        self,
        topic: str,
        value: object,
        key: object,
        headers: Headers,
        timestamp: int | None,
        partition: int | None,
    ) -> Delivery:
        """Take a record in, or raise BufferFull; see `Producer.enqueue_nowait`."""
        self._check()
        check_destination(topic, partition)
        record = self._make(key, value, headers, timestamp)
        delivery = self._at_once(topic, partition, record)
        if delivery is None:
            self.wake()
            raise BufferFull(
                f"no space for {self._budget.size_of(record)} bytes in "
                f"buffer_memory={self._config.buffer_memory}; "
                f"{len(self._space)} calls wait for it"
            )
        return delivery

    async def _enqueue(
        self, topic: str, partition: int | None, record: PlainRecord, limit: int
    ) -> Delivery:
        self._check()
        if self.open_batches.taken < limit:
            delivery = self._at_once(topic, partition, record)
            if delivery is not None:
                return delivery
        return await self._later(topic, partition, record)

    def _at_once(
        self, topic: str, partition: int | None, record: PlainRecord
    ) -> Delivery | None:
        size = self._budget.size_of(record)
        timestamp, key, value, headers = record
        delivery = self.open_batches.take(
            topic, value, key, headers, timestamp, partition
        )
        if delivery is None and self._space.try_reserve(size):
            delivery = self._take_in(topic, partition, record, size)
        return delivery

    async def _later(
        self, topic: str, partition: int | None, record: PlainRecord
    ) -> Delivery:
        size = self._budget.size_of(record)
        if self.open_batches.taken >= TURN_BYTES:
            # A task that only enqueues would otherwise fill the buffer before the
            # sender, or any other task, runs.
            await asyncio.sleep(0)
            self.open_batches.taken = 0
            self._check()
            delivery = self._at_once(topic, partition, record)
            if delivery is not None:
                return delivery
        self.wake()
        await self._space.reserve(size)
        try:
            self._check()
        except BaseException:
            self._budget.release(size)
            raise
        return self._take_in(topic, partition, record, size)

    def _take_in(
        self, topic: str, partition: int | None, record: PlainRecord, size: int
    ) -> Delivery:
        accumulator = self._accumulator
        at = self.now()
        receipt = accumulator.placement.append_reserved(
            topic, partition, record, at, size
        )
        if accumulator.backlog.has_news:
            self.on_begun()
        return Delivery(receipt, receipt.count - 1, record[0])

    # ---- many records ----------------------------------------------------------------

    async def send_many(
        self, topic: str, values: Sequence[object]
    ) -> Sequence[RecordMetadata]:
        """Write several records, and wait; see `Producer.send_many`."""
        self._check()
        check_topic(topic)
        if self.is_plain and isinstance(values, list | tuple):
            plain = list(values)
            if self.open_batches.are_plain(plain):
                return await self._send_values(topic, plain)
        planned = plan(values, self._make)
        for _, record in planned:
            self._budget.size_of(record)
        sent = SentValues()
        try:
            for partition, record in planned:
                sent.add(await self._enqueue(topic, partition, record, TURN_BYTES))
        except Exception as error:  # noqa: BLE001 - raised with the others
            sent.fail_rest(len(planned), error)
        return await sent.outcome()

    async def _send_values(
        self, topic: str, values: list[object]
    ) -> Sequence[RecordMetadata]:
        open_batches = self.open_batches
        sent = SentValues()
        try:
            while sent.count < len(values):
                run = None
                if open_batches.taken < _TURN_BYTES_MANY:
                    run = open_batches.take_values(topic, values, sent.count)
                if run is None:
                    record = self._make(None, values[sent.count], (), None)
                    sent.add(await self._enqueue(topic, None, record, _TURN_BYTES_MANY))
                else:
                    sent.add_run(run)
        except Exception as error:  # noqa: BLE001 - raised with the others
            sent.fail_rest(len(values), error)
        return await sent.outcome()

    async def send_table(
        self,
        topic: str,
        table: pa.Table | pa.RecordBatch,
        partition: int | None,
        timestamp: str | None,
        columns: dict[str, str | None],
    ) -> pa.Table:
        """Write the rows of a table, and wait; see `Producer.send_table`."""
        from kafkaio.arrow import rows_from_table

        self._check()
        check_destination(topic, partition)
        at = wall_ms()
        parts = list(rows_from_table(table, now=at, timestamp=timestamp, **columns))
        largest = min(self._config.max_request_size, self._config.buffer_memory)
        check_rows(parts, largest)
        await self.describe(topic)
        sent = SentRows(parts)
        try:
            for rows in parts:
                await self._enqueue_rows(topic, partition, rows, sent)
        except Exception as error:  # noqa: BLE001 - raised with the others
            sent.fail_rest(error)
        return await sent.outcome()

    async def _enqueue_rows(
        self, topic: str, partition: int | None, rows: Rows, sent: SentRows
    ) -> None:
        open_batches, start = self.open_batches, 0
        while start < rows.length:
            taken = open_batches.take_rows(
                topic, partition, rows, start, sent.places, _TURN_BYTES_MANY
            )
            if not taken:
                row = rows.record(start)
                sent.add(await self._enqueue(topic, partition, row, _TURN_BYTES_MANY))
                taken = 1
            start += taken


def _nothing() -> None:
    pass


async def _unknown(topic: str) -> None:
    del topic
