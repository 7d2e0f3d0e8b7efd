"""The intake: takes records in, for a producer or for one of its transactions.

Taking a record in is synchronous. Most records go directly into an open batch
(`kafkaio._records._append`), which the public methods try first. The rest comes here:
the first record of a batch, records that must be serialized, wrong arguments, and
records that have to wait: for a serializer (`kafkaio._producer.serializing`), and then
for buffer memory (`kafkaio._producer.backpressure`).

The ``check`` of an intake raises if records cannot be taken in. It runs before each
record, and again after each wait, so that no record enters a producer that was closed
meanwhile, or a transaction that has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Sequence,
)
from typing import TYPE_CHECKING

from kafkaio._arguments import check_partition, topic_name, type_name
from kafkaio._config import ProducerConfig
from kafkaio._machines.accumulator import Accumulator, PlainRecord
from kafkaio._producer.arguments import Draft, RecordMaker, TopicLike
from kafkaio._producer.backpressure import BufferSpace, Waiter
from kafkaio._producer.delivery import Delivery
from kafkaio._producer.serializing import SerializerWaits, WaitingCall
from kafkaio._records._impl import OpenBatches, Rows
from kafkaio._records.builder import BatchBuilder
from kafkaio._runtime.clock import now, wall_ms
from kafkaio.errors import (
    ArgumentTypeError,
    BrokerError,
    BufferFull,
    ConfigurationError,
    KafkaError,
)
from kafkaio.types import Headers, RecordMetadata, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkaio._producer.bulk import TableArguments, TableDelivery, TableRows
    from kafkaio._producer.raw import RawDelivery
    from kafkaio._records._callbacks import LoopPort
    from kafkaio._records.raw import RawBatch

#: Bytes that are taken in before the event loop gets a turn, by calls with one record
#: and by calls with many; both are less than a millisecond of work.
TURN_BYTES = 65_536
_TURN_BYTES_MANY = 1_048_576
#: Raw batches are taken in by groups, of which so many have room in the buffer.
_GROUPS = 8
#: A table with rows for more topics is not divided: each topic has only a few of them.
_MOST_TOPICS = 32

_size_of = BatchBuilder.size_of


class Intake:
    """Takes records in.

    Args:
        config: the producer's options.
        accumulator: gets the records.
        space: the calls that wait for buffer memory.
        waits: the calls that wait for a serializer.
        check: raises if no record may be taken in now.
        inject: returns the headers to write for a topic and the headers of a record;
            None to write them as they are.

    Attributes:
        is_plain: whether records are taken as they are passed: without serializers,
            and without ``inject``.
        open_batches: the batches that take records past the accumulator.
        on_begun: called when a record has begun a batch.
        wake: makes the sender check in the next iteration.
        loop: the producer's own event loop, for deliveries of tables.
        describe: waits until the metadata has some partitions.
        partition_count: returns how many partitions a topic has, None if unknown.
        now: the clock.
    """

    __slots__ = (
        "_accumulator",
        "_budget",
        "_check",
        "_config",
        "_is_simple",
        "_records",
        "_share",
        "_space",
        "_waiting",
        "_waits",
        "describe",
        "is_plain",
        "loop",
        "now",
        "on_begun",
        "open_batches",
        "partition_count",
        "wake",
    )

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: Accumulator,
        space: BufferSpace,
        waits: SerializerWaits,
        check: Callable[[], None],
        inject: Callable[[str, Headers], Headers] | None = None,
    ) -> None:
        self._config = config
        self._accumulator = accumulator
        self._budget = accumulator.budget
        self._share = accumulator.share
        self._space = space
        self._waits = waits
        # Asked before every record: nothing is dearer than an empty dict.
        self._waiting = waits.waiting
        self._records = RecordMaker(config, inject)
        self._is_simple = self._records.is_simple
        self._check = check
        # A serializer has to run before a record can be taken in.
        serializes = config.key_serializer or config.value_serializer
        self.is_plain: bool = not serializes and inject is None
        self.open_batches: OpenBatches = accumulator.budget.open_batches
        self.on_begun: Callable[[], None] = _nothing
        self.wake: Callable[[], None] = _nothing
        self.loop: LoopPort | None = None
        self.describe: Callable[[Collection[TopicPartition]], Awaitable[object]] = (
            _unknown
        )
        self.partition_count: Callable[[str], int | None] = _uncounted
        self.now: Callable[[], float] = now

    def checked_by(self, check: Callable[[], None]) -> Intake:
        """Return an intake that differs in its check alone."""
        # Each transaction has one; copy.copy would take longer than all the rest.
        other = Intake.__new__(Intake)
        other._config, other._accumulator = self._config, self._accumulator
        other._budget, other._space = self._budget, self._space
        other._share = self._share
        other._waits, other._waiting = self._waits, self._waiting
        other._records, other._check = self._records, check
        other._is_simple = self._is_simple
        other.is_plain, other.open_batches = self.is_plain, self.open_batches
        other.on_begun, other.wake = self.on_begun, self.wake
        other.loop, other.describe = self.loop, self.describe
        other.partition_count, other.now = self.partition_count, self.now
        return other

    async def enqueue(
        self,
        topic: TopicLike,
        value: object,
        key: object,
        headers: Headers,
        timestamp: int | None,
        partition: int | None,
    ) -> Delivery:
        """Take a record in; see `Producer.enqueue`."""
        make = self._records.make
        if type(topic) is str and self._is_simple and not self._waiting:
            record = make(topic, partition, key, value, headers, timestamp)
            # Most need no wait, and so no other coroutine.
            delivery = self._unhindered(topic, partition, record, TURN_BYTES)
            if delivery is not None:
                return delivery
            return await self._enqueue(topic, partition, record, TURN_BYTES)
        self._check()
        made = self._records.make_in_context(
            topic, partition, key, value, headers, timestamp
        )
        name = topic_name(topic)
        if isinstance(made, Draft) or name in self._waiting:
            return await self._enqueue_in_turn(name, partition, made)
        return await self._enqueue(name, partition, made, TURN_BYTES)

    async def _enqueue_in_turn(
        self, topic: str, partition: int | None, made: PlainRecord | Draft
    ) -> Delivery:
        waits = self._waits
        call = waits.enter(topic, self)
        try:
            if isinstance(made, Draft):
                record = await waits.result(call, made.finish())
            else:
                record = made
            await waits.turn(call)
            return await self._enqueue(topic, partition, record, TURN_BYTES, call)
        finally:
            waits.leave(call)

    def enqueue_nowait(
        self,
        topic: TopicLike,
        value: object,
        key: object,
        headers: Headers,
        timestamp: int | None,
        partition: int | None,
    ) -> Delivery:
        """Take a record in, or raise BufferFull; see `Producer.enqueue_nowait`."""
        self._check()
        if type(topic) is str and self._is_simple and not self._waiting:
            record = self._records.make(
                topic, partition, key, value, headers, timestamp
            )
        else:
            record = self._made_at_once(
                topic, partition, key, value, headers, timestamp
            )
            topic = topic_name(topic)
        place = None
        if self._share.is_tight(self.now()):
            partition, place = self._destined(topic, partition, record)
        delivery = self._at_once(topic, partition, record, place)
        if delivery is None:
            self.wake()
            size = self._budget.size_of(record)
            raise BufferFull(
                self._space.why_held_back(size, place)
                or f"no space for {size} bytes in "
                f"buffer_memory={self._config.buffer_memory}; "
                f"{len(self._space)} calls wait for it"
            )
        return delivery

    def _made_at_once(
        self,
        topic: TopicLike,
        partition: int | None,
        key: object,
        value: object,
        headers: Headers,
        timestamp: int | None,
    ) -> PlainRecord:
        name = topic_name(topic)
        if name in self._waiting:
            raise BufferFull(
                f"records of the topic {name!r} wait for a serializer, and come first: "
                "use `await enqueue`"
            )
        made = self._records.make_in_context(
            topic, partition, key, value, headers, timestamp
        )
        if isinstance(made, Draft):
            made.drop()
            raise ConfigurationError(
                f"a serializer of the topic {name!r} has to be awaited, which "
                "enqueue_nowait cannot do: use `await enqueue`"
            )
        return made

    async def _enqueue(
        self,
        topic: str,
        partition: int | None,
        record: PlainRecord,
        limit: int,
        call: WaitingCall | None = None,
    ) -> Delivery:
        delivery = self._unhindered(topic, partition, record, limit)
        if delivery is not None:
            return delivery
        place = None
        if self._share.is_tight(self.now()):
            partition, place = self._destined(topic, partition, record)
            if self.open_batches.taken < limit:
                delivery = self._at_once(topic, partition, record, place)
                if delivery is not None:
                    return delivery
        return await self._later(topic, partition, record, place, call)

    def _unhindered(
        self, topic: str, partition: int | None, record: PlainRecord, limit: int
    ) -> Delivery | None:
        """Take a record in now, unless it may depend on its place, or has to wait."""
        self._check()
        budget, share = self._budget, self._share
        # The first condition of `is_tight`: it saves most records the call.
        may_be_tight = budget.used > share.limit or budget.held_back
        if self.open_batches.taken >= limit or (
            may_be_tight and share.is_tight(self.now())
        ):
            return None
        return self._at_once(topic, partition, record, None)

    def _destined(
        self, topic: str, partition: int | None, record: PlainRecord
    ) -> tuple[int | None, TopicPartition | None]:
        """Return the partition to name, and for which place a record has to wait."""
        return self._accumulator.placement.destination(topic, partition, record)

    def _at_once(
        self,
        topic: str,
        partition: int | None,
        record: PlainRecord,
        place: TopicPartition | None,
    ) -> Delivery | None:
        timestamp, key, value, headers = record
        size = _size_of(key, value, headers)
        if size > self._budget.largest:
            self._budget.size_of(record)  # raises
        delivery = self.open_batches.take(
            topic, value, key, headers, timestamp, partition
        )
        if delivery is None and self._space.try_reserve(size, place):
            delivery = self._take_in(topic, partition, record, size)
        return delivery

    async def _later(
        self,
        topic: str,
        partition: int | None,
        record: PlainRecord,
        place: TopicPartition | None,
        call: WaitingCall | None,
    ) -> Delivery:
        size = self._budget.size_of(record)
        if self.open_batches.taken >= TURN_BYTES:
            # Else a task that only enqueues fills the buffer before the sender, or any
            # other task, runs.
            await asyncio.sleep(0)
            self.open_batches.taken = 0
            self._check()
            if place is None and self._share.is_tight(self.now()):
                partition, place = self._destined(topic, partition, record)
            delivery = self._at_once(topic, partition, record, place)
            if delivery is not None:
                return delivery
        self.wake()
        if place is None:  # `reserve` has to know whether others may overtake the call
            partition, place = self._destined(topic, partition, record)
        waiter = self._space.queue(size, place)
        if call is not None:
            # It has its place in that queue, so the next of its topic may follow.
            self._waits.leave(call)
        await self._reserved(size, waiter)
        return self._take_in(topic, partition, record, size)

    async def _reserved(self, size: int, waiter: Waiter | None) -> None:
        """Wait until memory is set aside; return it if the producer has ended."""
        if waiter is not None:
            await self._space.reserved(waiter)
        try:
            self._check()
        except BaseException:
            self._budget.release(size)
            self._space.grant()  # another call may wait for these bytes
            raise

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
        self, topic: TopicLike, values: Sequence[object]
    ) -> Sequence[RecordMetadata]:
        """Write several records, and wait; see `Producer.send_many`."""
        self._check()
        name = topic_name(topic)
        if (
            self.is_plain
            and isinstance(values, list | tuple)
            and name is topic
            and name not in self._waiting
        ):
            plain = list(values)
            if self.open_batches.are_plain(plain):
                return await self._send_values(name, plain)
            if self.open_batches.are_records(plain):
                return await self._send_records(name, plain)
        from kafkaio._producer.bulk import plan

        planned = await self._planned(name, plan(topic, values, self._records))
        return await self._send_records(name, planned)

    async def _planned(
        self, topic: str, planned: Iterable[tuple[int | None, PlainRecord | Draft]]
    ) -> list[object]:
        """Return all records, serialized one after the other, when their turn has come.

        One after the other, because the first one waits for a schema that the others
        then find in a cache; and a thousand at once would be as many requests if there
        is no cache.
        """
        waits = self._waits
        records: list[object] = []
        call = waits.enter(topic, self) if topic in self._waiting else None
        try:
            for partition, made in planned:
                if isinstance(made, Draft):
                    if call is None:
                        call = waits.enter(topic, self)
                    record = await waits.result(call, made.finish())
                else:
                    record = made
                self._budget.size_of(record)  # raises if it is too large
                records.append((partition, record))
            if call is not None:
                await waits.turn(call)
                self._check()
        finally:
            if call is not None:
                waits.leave(call)
        return records

    def refuse_waiting(self) -> None:
        """Fail the calls that wait for a serializer, if `check` fails."""
        if not self._waiting:
            return  # as at the end of nearly every transaction
        try:
            self._check()
        except KafkaError as error:
            self._waits.fail_those_of(self, error)

    async def _send_values(
        self, topic: str, values: list[object]
    ) -> Sequence[RecordMetadata]:
        from kafkaio._producer.bulk import SentValues

        open_batches = self.open_batches
        sent = SentValues()
        try:
            while sent.count < len(values):
                run = None
                if open_batches.taken < _TURN_BYTES_MANY:
                    run = open_batches.take_values(topic, values, sent.count)
                if run is None:
                    value = values[sent.count]
                    record = self._records.make(topic, None, None, value, (), None)
                    limit = self._turn_bytes(topic)
                    sent.add(await self._enqueue(topic, None, record, limit))
                else:
                    sent.add_run(run)
        except Exception as error:  # noqa: BLE001 - raised with the others
            sent.fail_rest(len(values), error)
        return await sent.outcome()

    def _turn_bytes(self, topic: str) -> int:
        # Without metadata each record takes many times as long, and the metadata come
        # only when the event loop has turns.
        return TURN_BYTES if self.partition_count(topic) is None else _TURN_BYTES_MANY

    async def _send_records(
        self, topic: str, records: list[object]
    ) -> Sequence[RecordMetadata]:
        # Each is a value, a `NewRecord`, or what `_planned` returned.
        from kafkaio._producer.bulk import SentRecords, made

        open_batches = self.open_batches
        sent = SentRecords(len(records))
        places = sent.places
        try:
            while places.count < len(records):
                if not open_batches.take_records(
                    topic, records, places.count, places, _TURN_BYTES_MANY
                ):
                    each = records[places.count]
                    if isinstance(each, tuple):
                        partition, record = each
                    else:
                        partition, record = made(self._records.make, topic, each)
                    limit = self._turn_bytes(topic)
                    sent.add(await self._enqueue(topic, partition, record, limit))
        except Exception as error:  # noqa: BLE001 - raised with the others
            sent.fail_rest(error)
        return await sent.outcome()

    # ---- raw batches -----------------------------------------------------------------

    async def enqueue_raw(
        self,
        batches: RawBatch | Sequence[RawBatch],
        topic: TopicLike,
        partition: int,
    ) -> RawDelivery:
        """Take raw batches in; see `Producer.enqueue_raw`."""
        # Imported late: few producers do this.
        from kafkaio._producer.raw import Conversion, RawDelivery, grouped, took_in

        self._check()
        batches = _raw_batches(batches)
        tp = TopicPartition(topic_name(topic), partition)
        check_partition(partition)
        known = self.partition_count(tp.topic)
        if known is None or partition >= known:
            await self.describe([tp])
            self._check()
        config = self._config
        placement = self._accumulator.placement
        conversion = Conversion(
            min(config.max_request_size, config.buffer_memory),
            config.transactional_id is not None,
            placement.new_builder,
            self._budget.size_of,
        )
        offsets, pieces = conversion.converted(batches)
        if self._waiting:
            await self._waits.passed([tp.topic], self)
            self._check()
        assert self.loop is not None
        delivery = RawDelivery(offsets, self.loop)
        # A group that is a large part of the buffer would wait until most of what was
        # sent before is acknowledged.
        most = min(_TURN_BYTES_MANY, config.buffer_memory // _GROUPS)
        for size, group in grouped(pieces, most):
            await self._reserve_whole(size, tp)
            took_in(delivery, placement.put_batches(tp, group, self.now()))
            self.on_begun()
        return delivery

    async def _reserve_whole(self, size: int, place: TopicPartition) -> None:
        """Set memory for whole batches aside, in turn with the calls that wait."""
        if self.open_batches.taken >= _TURN_BYTES_MANY:
            await asyncio.sleep(0)
            self.open_batches.taken = 0
            self._check()
        if self._space.try_reserve(size, place):
            return
        self.wake()
        waiter = self._space.queue(size, place)
        await self._reserved(size, waiter)

    # ---- the rows of a table ---------------------------------------------------------

    async def send_table(
        self, table: pa.Table | pa.RecordBatch, arguments: TableArguments
    ) -> pa.Table:
        """Write the rows of a table, and wait; see `Producer.send_table`."""
        rows = await self._checked(table, arguments)
        delivery = self._delivery_of(rows, arguments)
        try:
            await self._take_table(rows, arguments, delivery)
        except Exception as error:  # noqa: BLE001 - raised with the others
            delivery.fail_rest(error)
        return await delivery

    async def enqueue_table(
        self, table: pa.Table | pa.RecordBatch, arguments: TableArguments
    ) -> TableDelivery:
        """Take the rows of a table in; see `Producer.enqueue_table`."""
        rows = await self._checked(table, arguments)
        delivery = self._delivery_of(rows, arguments)
        await self._take_table(rows, arguments, delivery)
        return delivery

    async def _checked(
        self, table: pa.Table | pa.RecordBatch, arguments: TableArguments
    ) -> TableRows:
        from kafkaio._producer.bulk import TableRows

        self._check()
        largest = min(self._config.max_request_size, self._config.buffer_memory)
        rows = TableRows(table, arguments, wall_ms(), largest)
        places = [TopicPartition(*each) for each in rows.reach.items()]
        try:
            await self.describe(places)
        except BrokerError as error:
            raise rows.located(error, self.partition_count) from error
        if self._waiting:
            await self._waits.passed(rows.reach, self)
            self._check()
        return rows

    def _delivery_of(self, rows: TableRows, arguments: TableArguments) -> TableDelivery:
        from kafkaio._producer.bulk import TableDelivery

        with_topics = arguments.topic_column is not None
        assert self.loop is not None
        return TableDelivery(rows, self.loop, with_topics=with_topics)

    async def _take_table(
        self, rows: TableRows, arguments: TableArguments, delivery: TableDelivery
    ) -> None:
        # An error says how many rows were taken in, also where the caller is cancelled.
        spread: Collection[str] = ()
        if len(rows.reach) <= _MOST_TOPICS and rows.has_choice(
            ignore_keys=self._config.partitioner_ignore_keys
        ):
            spread = rows.reach
        try:
            for part in rows.parts:
                if not spread:
                    await self._take_rows(part, 0, part.length, arguments, delivery)
                    continue
                start = 0
                for end in self._runs(spread, part.length, rows.size_of(part)):
                    await self._take_rows(part, start, end, arguments, delivery)
                    start = end
        except BaseException as error:
            delivery.note_in(error)
            raise
        finally:
            for topic in spread:
                self._accumulator.placement.end_turn(topic)

    def _runs(self, topics: Collection[str], length: int, size: int) -> Iterator[int]:
        """Divide rows into runs; yield the end of each once its partition has its turn.

        Args:
            topics: those whose rows without a key are spread over the partitions.
            length: number of rows.
            size: their bytes, about.
        """
        turn, size = self._accumulator.placement.turn, size // len(topics)
        # The first turn of each topic says how many runs there are.
        runs = max(turn(topic, size) for topic in topics)
        for number in range(1, runs):
            yield length * number // runs
            for topic in topics:
                turn(topic, size // runs, runs)
        yield length

    async def _take_rows(
        self,
        rows: Rows,
        start: int,
        end: int,
        arguments: TableArguments,
        delivery: TableDelivery,
    ) -> None:
        topic, partition = arguments.topic, arguments.partition
        open_batches = self.open_batches
        while start < end:
            taken = open_batches.take_rows(
                topic, partition, rows, start, delivery.places, _TURN_BYTES_MANY, end
            )
            if not taken:
                own_topic, own_partition = rows.destination(start)
                one = await self._enqueue(
                    own_topic or topic or "",
                    partition if own_partition is None else own_partition,
                    rows.record(start),
                    _TURN_BYTES_MANY,
                )
                delivery.add(one)
                taken = 1
            start += taken


def _raw_batches(given: object) -> Sequence[RawBatch]:
    from kafkaio._records.raw import RawBatch

    if isinstance(given, RawBatch):
        return (given,)
    if not isinstance(given, Sequence):
        raise ArgumentTypeError(f"batch must be RawBatch, not {type_name(given)}")
    batches = tuple(given)
    for each in batches:
        if not isinstance(each, RawBatch):
            raise ArgumentTypeError(f"a batch must be RawBatch, not {type_name(each)}")
    return batches


def _nothing() -> None:
    pass


async def _unknown(places: Collection[TopicPartition]) -> None:
    del places


def _uncounted(topic: str) -> int | None:
    del topic
    return None
