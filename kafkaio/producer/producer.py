"""The producer, as users see it: `Producer`, whole.

A record passes through three stages. Taking it in is synchronous: `Producer` puts it
into the open batch of its partition, directly (`kafkaio._records._append`) or through
the accumulator (`kafkaio._machines.accumulator`), and returns a `Delivery`. The sender
(`kafkaio.producer.sender`) writes batches to the brokers, and `outcomes` settles their
deliveries by the answers. A call waits only where the buffer has no space
(`kafkaio.producer.backpressure`), or for deliveries.

Background tasks and callbacks hold the parts of a producer and never the producer, so
that one that is forgotten open is collected, warns and ends its parts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from functools import partial
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

import anyio

from kafkaio._dataclass import dataclass
from kafkaio._machines.accumulator import (
    Accumulator,
    AccumulatorStatistics,
    Chooser,
    Limits,
    PlainRecord,
    ProduceBatch,
    Receipt,
)
from kafkaio._machines.sequence import ProducerIdentity
from kafkaio._net.transport import Dial
from kafkaio._records._impl import OpenBatches, open_batch_first
from kafkaio._records.batch import BatchBuilder, Compression, Rows
from kafkaio._records.compression import Compressor
from kafkaio._runtime.clock import now, roll, wall_clock, wall_ms
from kafkaio._runtime.ending import Ending
from kafkaio._runtime.unclosed import Closeable, Home, weakly
from kafkaio.client.client import Client, shared
from kafkaio.client.cluster import Cluster
from kafkaio.client.signature import OptionsSignature
from kafkaio.config import ProducerConfig, ProducerOptions
from kafkaio.errors import BufferFull, ClosedError, InternalError, KafkaTimeout
from kafkaio.producer.arguments import RecordMaker, check_destination
from kafkaio.producer.delivery import Delivery, settled, waits_at
from kafkaio.producer.many import Sent, plan
from kafkaio.producer.room import Room
from kafkaio.producer.sender import Sender
from kafkaio.producer.table import SentRows, check_rows
from kafkaio.types import Headers, RecordMetadata, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Producer", "ProducerStatistics"]

#: Bytes that are taken in before the event loop gets a turn, by calls with one record
#: and by calls with many: less than a millisecond of work.
_TURN_BYTES = 65_536
_TURN_BYTES_MANY = 1_048_576
#: Seconds that cancelled tasks have to end.
_GRACE = 0.1


class State(Enum):
    """The states of a producer; it takes records only while RUNNING."""

    NEW = auto()
    STARTING = auto()
    RUNNING = auto()
    CLOSING = auto()
    CRASHED = auto()
    CLOSED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerStatistics:
    """A snapshot of a producer.

    Attributes:
        state: ``NEW``, ``STARTING``, ``RUNNING``, ``CLOSING``, ``CRASHED`` or
            ``CLOSED``.
        producer_id: the id that makes it idempotent (KIP-98), -1 while it has none.
        producer_epoch: the epoch of that id, -1 while it has none.
        waiting_for_room: calls that wait for buffer memory.
        buffer: what is buffered and in flight.
    """

    state: str
    producer_id: int
    producer_epoch: int
    waiting_for_room: int
    buffer: AccumulatorStatistics


class Producer(Closeable):
    """Writes records to Kafka.

    Records of one partition are written in the order of the calls that enqueued them,
    and, with idempotence (the default), each at most once, also when requests are
    retried. ``async with`` starts and closes the producer, as `start` and `close` do.
    If the block is left by an exception, closing waits at most ``request_timeout_ms``
    for acknowledgements.

    A producer belongs to the event loop and the process that started it. In another
    thread, on another loop and after a fork, its methods raise ClosedError. There is
    one limit: while its own loop is stopped, another loop in the same thread can get
    up to 255 records into each open batch before that. To await their deliveries there
    raises ClosedError, and the records are written when the producer's loop continues.
    A producer that is garbage-collected before it is closed emits a ResourceWarning;
    its tasks and connections end, and pending deliveries fail with ClosedError.

    Args:
        bootstrap_servers: ``"host:port,host2:port"``, a sequence of such strings, or a
            started `kafkaio.Client` to share. `close` leaves a shared client open.
        observer: an object with any of the methods of `kafkaio.Observer`, or a list of
            such objects. Not allowed with a shared client, which has its own.
        options: see `kafkaio.ProducerConfig`. A shared client has the options of
            `kafkaio.ClientConfig` already; none of them is allowed with it.

    Raises:
        ConfigurationError: an option is unknown or its value impossible.
    """

    __signature__ = OptionsSignature(ProducerOptions, ProducerConfig)

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        observer: object | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        if isinstance(bootstrap_servers, Client):
            # Keeps the shared client alive: a collected client ends its cluster.
            self._client = bootstrap_servers
            cluster, config = shared(
                bootstrap_servers, ProducerConfig, options, observer
            )
            self._set_up(config, cluster, owns_cluster=False)
        else:
            config = ProducerConfig.of(bootstrap_servers, options)
            cluster = Cluster(config, observer)
            self._set_up(config, cluster, owns_cluster=True)

    def _set_up(
        self, config: ProducerConfig, cluster: Cluster, *, owns_cluster: bool
    ) -> None:
        self.config = config
        self._cluster = cluster
        self._owns_cluster = owns_cluster
        self._state = State.NEW
        self._failure: Exception | None = None
        self._identity = ProducerIdentity() if config.enable_idempotence else None
        self._accumulator = _make_accumulator(
            config, self._identity, partial(_report_lost, cluster)
        )
        self._budget = self._accumulator.budget
        self._room = Room(self._accumulator, config.max_block_ms / 1000)
        self._make = RecordMaker(config).make
        # A serializer must run first, so that nothing can be taken in as it is passed.
        self._is_plain = not (config.key_serializer or config.value_serializer)
        self._open_batches = self._accumulator.budget.open_batches
        self._intake = self._open_batches if self._is_plain else None
        self._take = self._open_batches.take if self._is_plain else _take_nothing
        self._largest = min(config.max_request_size, config.buffer_memory)
        self._sender: Sender | None = None
        self._now = now
        self._undo: list[Callable[[], None]] = []
        self._ending = Ending(f"{config.client_id}: close")
        self._home: Home | None = None

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, object], *, observer: object | None = None
    ) -> Self:
        """Make a producer from Kafka's dotted names, such as ``bootstrap.servers``.

        Raises:
            ConfigurationError: a name is unknown, or a value is impossible.
        """
        config = ProducerConfig.from_properties(properties)
        return cls.from_config(config, observer=observer)

    @classmethod
    def from_config(
        cls,
        config: ProducerConfig,
        *,
        observer: object | None = None,
        dial: Dial | None = None,
    ) -> Self:
        """Make a producer from options that are checked already.

        Args:
            config: the options.
            observer: as for the constructor.
            dial: makes transports; None for TCP and TLS.
        """
        producer = cls.__new__(cls)
        cluster = Cluster(config, observer, dial)
        producer._set_up(config, cluster, owns_cluster=True)
        return producer

    def __repr__(self) -> str:
        buffer = self._accumulator.statistics()
        identity = self._identity and self._identity.current
        who = f" id={identity.producer_id}/{identity.epoch}" if identity else ""
        return (
            f"<Producer {self.config.client_id!r} {self._state.name}{who} | "
            f"{buffer.topics} topics | {buffer.waiting_batches} batches waiting, "
            f"{buffer.batches_on_wire} on the wire, {buffer.used_bytes} bytes>"
        )

    def statistics(self) -> ProducerStatistics:
        """The producer as it is now."""
        identity = self._identity.current if self._identity is not None else None
        return ProducerStatistics(
            state=self._state.name,
            producer_id=-1 if identity is None else identity.producer_id,
            producer_epoch=-1 if identity is None else identity.epoch,
            waiting_for_room=len(self._room),
            buffer=self._accumulator.statistics(),
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Whoever leaves by an exception wants to be gone: records are waited for no
        # longer than one attempt may take.
        attempt = self.config.request_timeout_ms / 1000
        await self.close(None if error is None else attempt)

    async def start(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Connect to the cluster; returns when it has answered.

        If it fails or is cancelled, the producer is closed.

        Args:
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Raises:
            BrokerNotAvailable: no bootstrap server answered in time.
            ClosedError: the producer was started before, or a shared client is not
                running.
        """
        if self._state is not State.NEW:
            raise ClosedError(f"{self!r} cannot be started again")
        self._state = State.STARTING
        self._home = home = Home(f"the producer {self.config.client_id!r}")
        home.on_fork = (
            self._open_batches.clear
        )  # what is taken in is not sent from there
        self._open_batches.bind(get_ident, home.check)
        self._accumulator.placement.wait = waits_at(home)
        cluster = self._cluster
        # Asked for once: finding the running loop would cost more than its time does.
        self._now = asyncio.get_running_loop().time
        try:
            if self._owns_cluster:
                await cluster.start(timeout)
            sender = Sender(
                cluster, self.config, self._accumulator, self._identity, self._room
            )
            sender.on_end = weakly(self._sender_ended)
            sender.start()
            self._sender = sender
            self._undo.append(cluster.add_metadata_listener(sender.metadata_changed))
            self._undo.append(cluster.add_crash_listener(weakly(self._crashed)))
            sender.metadata_changed(cluster.view)
            self._state = State.RUNNING
        except BaseException:
            await self.close(timeout=0)
            raise
        cluster.observer.started("producer", self.config.client_id)

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Send what was enqueued, then end. May be called again, and by several.

        From the call on, nothing more is taken in. When it returns, every delivery
        is done and every connection of its own client is closed. If the call is
        cancelled, what is not acknowledged fails at once, and the rest ends in the
        background if the call is cancelled again; another call waits for that.

        Args:
            timeout: seconds to wait for acknowledgements; what has none by then
                fails with ClosedError, though it may have been written. By default
                ``delivery_timeout_ms`` is the limit, as for every record.
        """
        if self._state in {State.CLOSING, State.CLOSED}:
            await self._ending.wait()
            return
        flushes = self._state is State.RUNNING and timeout != 0
        deadline = None if timeout is None else now() + timeout
        self._state = State.CLOSING
        self._room.fail(self._why_closed())
        await self._ending.begin(
            partial(self._flush_within, timeout) if flushes else None,
            partial(self._end, deadline),
        )

    # ---- records ---------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        value: object,
        *,
        key: object = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> RecordMetadata:
        """Write a record and wait until it is acknowledged.

        A lone record leaves at once. If the call is cancelled while it waits for
        buffer room, nothing is written; afterwards the record may still be.

        Args:
            topic: name of the topic.
            value: ``bytes``, or what ``value_serializer`` takes; None for a tombstone.
            key: ``bytes``, or what ``key_serializer`` takes. Records with the same
                key go to the same partition.
            headers: pairs of name and value (``bytes`` or None), or a mapping.
            timestamp: milliseconds since the Unix epoch; now by default.
            partition: number of the partition; chosen by the partitioner by default.

        Returns:
            Where the record was written.

        Raises:
            TypeError: an argument is of the wrong type; nothing was enqueued.
            ValueError: an argument is impossible; nothing was enqueued.
            RecordTooLarge: the record can never fit the limits in force.
            DeliveryTimeout: no acknowledgement within ``delivery_timeout_ms``.
            UnknownTopicOrPartition: no such topic or partition.
            BrokerError: the broker refused the record, for the reason given.
            KafkaTimeout: no buffer room within ``max_block_ms``.
            ClosedError: the producer is not started, or closed.
        """
        delivery = None
        if self._open_batches.taken < _TURN_BYTES:
            delivery = self._take(topic, value, key, headers, timestamp, partition)
        if delivery is None:
            self._check_running()
            check_destination(topic, partition)
            record = self._make(key, value, headers, timestamp)
            if self._open_batches.taken < _TURN_BYTES:
                delivery = self._enqueue_at_once(topic, partition, record)
            if delivery is None:
                delivery = await self._enqueue_later(topic, partition, record)
        return await delivery

    async def enqueue(
        self,
        topic: str,
        value: object,
        *,
        key: object = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery:
        """Take a record in, waiting for buffer room only, first come, first served.

        If the call is cancelled, nothing was taken in.

        Args:
            topic: see `send`, as for the others.
            value: likewise.
            key: likewise.
            headers: likewise.
            timestamp: likewise.
            partition: likewise.

        Returns:
            A handle to await the acknowledgement with, which raises what `send`
            raises for a record that failed on the way.

        Raises:
            TypeError: an argument is of the wrong type.
            ValueError: an argument is impossible.
            RecordTooLarge: the record can never fit the limits in force.
            KafkaTimeout: no buffer room within ``max_block_ms``.
            ClosedError: the producer is not started, or closed.
        """
        if self._open_batches.taken < _TURN_BYTES:
            delivery = self._take(topic, value, key, headers, timestamp, partition)
            if delivery is not None:
                return delivery
        check_destination(topic, partition)
        record = self._make(key, value, headers, timestamp)
        return await self._enqueue(topic, partition, record, _TURN_BYTES)

    async def _enqueue(
        self, topic: str, partition: int | None, record: PlainRecord, limit: int
    ) -> Delivery:
        self._check_running()
        if self._open_batches.taken < limit:
            delivery = self._enqueue_at_once(topic, partition, record)
            if delivery is not None:
                return delivery
        return await self._enqueue_later(topic, partition, record)

    def _enqueue_at_once(
        self, topic: str, partition: int | None, record: PlainRecord
    ) -> Delivery | None:
        size = self._budget.size_of(record)
        timestamp, key, value, headers = record
        delivery = self._open_batches.take(
            topic, value, key, headers, timestamp, partition
        )
        if delivery is None and self._room.try_reserve(size):
            delivery = self._take_in(topic, partition, record, size)
        return delivery

    async def _enqueue_later(
        self, topic: str, partition: int | None, record: PlainRecord
    ) -> Delivery:
        size = self._budget.size_of(record)
        if self._open_batches.taken >= _TURN_BYTES:
            # A loop that only enqueues would otherwise fill the buffer before the
            # sender, or anybody else, gets a turn.
            await asyncio.sleep(0)
            self._open_batches.taken = 0
            self._check_running()
            delivery = self._enqueue_at_once(topic, partition, record)
            if delivery is not None:
                return delivery
        self._wake()
        await self._room.reserve(size)
        try:
            self._check_running()
        except BaseException:
            self._budget.release(size)
            raise
        return self._take_in(topic, partition, record, size)

    @open_batch_first
    def enqueue_nowait(
        self,
        topic: str,
        value: object,
        *,
        key: object = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery:
        """Take a record in, or raise BufferFull where `enqueue` would wait.

        Args:
            topic: see `send`, as for the others.
            value: likewise.
            key: likewise.
            headers: likewise.
            timestamp: likewise.
            partition: likewise.

        Returns:
            A handle to await the acknowledgement with.

        Raises:
            TypeError: an argument is of the wrong type.
            ValueError: an argument is impossible.
            RecordTooLarge: the record can never fit the limits in force.
            BufferFull: no room now, or others wait for room.
            ClosedError: the producer is not started, or closed.
        """
        self._check_running()
        check_destination(topic, partition)
        record = self._make(key, value, headers, timestamp)
        delivery = self._enqueue_at_once(topic, partition, record)
        if delivery is None:
            self._wake()
            raise BufferFull(
                f"no room for {self._budget.size_of(record)} bytes in "
                f"buffer_memory={self.config.buffer_memory}; "
                f"{len(self._room)} calls wait for room"
            )
        return delivery

    def _take_in(
        self, topic: str, partition: int | None, record: PlainRecord, size: int
    ) -> Delivery:
        accumulator = self._accumulator
        at = self._now()
        receipt = accumulator.placement.append_reserved(
            topic, partition, record, at, size
        )
        if accumulator.backlog.has_news and self._sender is not None:
            self._sender.batch_begun()
        return Delivery(receipt, receipt.count - 1, record[0])

    async def send_many(
        self, topic: str, values: Sequence[object]
    ) -> Sequence[RecordMetadata]:
        """Write several records and wait until all of them are acknowledged.

        All are checked before the first is taken in. If the call is cancelled, those
        taken in may still be written.

        Args:
            topic: name of the topic.
            values: values as `send` takes them, or `kafkaio.NewRecord` objects.

        Returns:
            Where each record was written, in the order of ``values``: a read-only
            sequence that makes each item when it is taken.

        Raises:
            TypeError: a value is of the wrong type; nothing was enqueued.
            ValueError: a value is impossible; nothing was enqueued.
            RecordTooLarge: a record can never fit; nothing was enqueued.
            DeliveriesFailed: an exception group of what befell the records that
                failed; it tells which they are, and what became of the others.
            ClosedError: the producer is not started, or closed.
        """
        self._check_running()
        check_destination(topic, None)
        if self._is_plain and isinstance(values, list | tuple):
            plain = list(values)
            if self._open_batches.are_plain(plain):
                return await self._send_values(topic, plain)
        planned = plan(topic, values, self._make)
        for _, record in planned:
            self._budget.size_of(record)
        sent = Sent()
        try:
            for partition, record in planned:
                sent.add(await self._enqueue(topic, partition, record, _TURN_BYTES))
        except Exception as error:  # noqa: BLE001 - told with the others
            sent.fail_rest(len(planned), error)
        return await sent.outcome()

    async def _send_values(
        self, topic: str, values: list[object]
    ) -> Sequence[RecordMetadata]:
        lanes = self._open_batches
        sent = Sent()
        try:
            while sent.count < len(values):
                run = None
                if lanes.taken < _TURN_BYTES_MANY:
                    run = lanes.take_values(topic, values, sent.count)
                if run is None:
                    record = self._make(None, values[sent.count], (), None)
                    sent.add(await self._enqueue(topic, None, record, _TURN_BYTES_MANY))
                else:
                    sent.add_run(run)
        except Exception as error:  # noqa: BLE001 - told with the others
            sent.fail_rest(len(values), error)
        return await sent.outcome()

    async def send_table(  # noqa: PLR0913 - the columns, by name
        self,
        topic: str,
        table: pa.Table | pa.RecordBatch,
        *,
        key: str | None = None,
        value: str | None = "value",
        headers: str | None = None,
        timestamp: str | None = None,
        partition: int | None = None,
    ) -> pa.Table:
        """Write the rows of an Arrow table and wait until all are acknowledged.

        Rows go from the table's memory into batches without a Python object for each;
        the serializers are not asked. Rows of one partition keep their order. All are
        checked before the first is taken in. If the call is cancelled, those taken in
        may still be written.

        Args:
            topic: name of the topic.
            table: the table; it must not change meanwhile.
            key: name of the column of keys, binary or text; None for records without
                keys. Rows with the same key go to the same partition.
            value: name of the column of values, likewise; None for tombstones, as is
                a null in it.
            headers: name of the column of headers: lists of structs of name and
                value, or maps; None for records without headers.
            timestamp: name of the column of timestamps, of Arrow's type or integers
                that count milliseconds; None, as a null in it, for the present time.
            partition: number of the partition of all rows; chosen by the partitioner,
                row by row, by default.

        Returns:
            A table with a row for each: ``partition``, ``offset`` (null with
            ``acks=0``) and ``timestamp``.

        Raises:
            ImportError: pyarrow is not installed: ``pip install 'kafkaio[arrow]'``.
            KeyError: the table has no such column; nothing was enqueued.
            UsageError: a column or a row cannot be sent; nothing was enqueued.
            RecordTooLarge: a row can never fit; nothing was enqueued.
            UnknownTopicOrPartition: the cluster has no such topic; nothing was
                enqueued.
            DeliveriesFailed: an exception group of what befell the rows that failed;
                it tells which they are, and what became of the others.
            ClosedError: the producer is not started, or closed.
        """
        from kafkaio.arrow import rows_from_table

        self._check_running()
        check_destination(topic, partition)
        columns = {"key": key, "value": value, "headers": headers}
        now = wall_ms()
        parts = list(rows_from_table(table, now=now, timestamp=timestamp, **columns))
        check_rows(parts, self._largest)
        await self.partitions_for(topic)
        sent = SentRows(parts)
        try:
            for rows in parts:
                await self._enqueue_rows(topic, partition, rows, sent)
        except Exception as error:  # noqa: BLE001 - told with the others
            sent.fail_rest(error)
        return await sent.outcome()

    async def _enqueue_rows(
        self, topic: str, partition: int | None, rows: Rows, sent: SentRows
    ) -> None:
        lanes, start = self._open_batches, 0
        while start < rows.length:
            taken = lanes.take_rows(
                topic, partition, rows, start, sent.places, _TURN_BYTES_MANY
            )
            if not taken:
                row = rows.record(start)
                sent.add(await self._enqueue(topic, partition, row, _TURN_BYTES_MANY))
                taken = 1
            start += taken

    async def flush(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Wait until every record taken in before the call is done, or has failed.

        Batches leave at once instead of lingering. What failed is told by the
        deliveries, not here.

        Args:
            timeout: seconds; no limit but ``delivery_timeout_ms`` by default.

        Raises:
            KafkaTimeout: some records were not done in time; they stay on their way.
            ClosedError: the producer is not started, or closed.
        """
        self._check_running()
        with anyio.move_on_after(timeout) as scope:
            await self._flush()
        if scope.cancelled_caught:
            buffer = self._accumulator.statistics()
            raise KafkaTimeout(
                f"not flushed within {timeout:g} s: {buffer.waiting_batches} batches "
                f"waiting, {buffer.batches_on_wire} on the wire, "
                f"{buffer.undesignated_records} records without metadata"
            )

    async def partitions_for(
        self,
        topic: str,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> tuple[int, ...]:
        """Return the partitions of a topic, asking the cluster if need be.

        Args:
            topic: name of the topic.
            timeout: seconds; ``max_block_ms`` by default.

        Raises:
            UnknownTopicOrPartition: the cluster has no such topic.
            AuthorizationError: the topic may not be described to us.
            ClosedError: the producer is not started, or closed.
        """
        self._check_running()
        check_destination(topic, None)
        if timeout is None:
            timeout = self.config.max_block_ms / 1000
        view = await self._cluster.wait_for_topics([topic], timeout)
        return tuple(found.partition for found in view.partitions(topic))

    # ---- the end ---------------------------------------------------------------------

    async def _flush_within(self, limit: float | None) -> None:
        with anyio.move_on_after(limit):
            await self._flush()

    async def _end(self, deadline: float | None) -> None:
        self._abandon()
        try:
            if self._sender is not None:
                with anyio.move_on_after(_GRACE):
                    await self._sender.stopped()
        finally:
            was_open = self._state is not State.CLOSED and self._home is not None
            self._state = State.CLOSED
            if self._owns_cluster:
                left = None if deadline is None else max(0.0, deadline - now())
                await self._cluster.close(left)
            if was_open:
                self._cluster.observer.closed("producer", self.config.client_id)

    def _abandon(self) -> None:
        """Fail what is left, and begin to end the tasks."""
        _stop(self._undo, self._accumulator, self._sender, self._cluster)

    def _crashed(self, cause: BaseException) -> None:
        if self._state not in {State.RUNNING, State.CLOSING}:
            return
        if isinstance(cause, ClosedError):  # it was ended, with its loop perhaps
            self._give_up(ClosedError(str(cause)))
            return
        error = InternalError(
            f"a background task of the producer {self.config.client_id!r} crashed: "
            f"{type(cause).__name__}: {cause}"
        )
        error.__cause__ = cause
        self._give_up(error)

    def _sender_ended(self) -> None:
        if self._state is State.RUNNING:
            self._give_up(ClosedError("the producer's client was closed"))

    def _give_up(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
        if self._state is State.RUNNING:
            self._state = State.CRASHED
        self._room.fail(self._failure)
        self._accumulator.fail_all(lambda _: error)

    def _why_closed(self) -> Exception:
        if self._failure is not None:
            return self._failure
        if self._state is State.NEW:
            return ClosedError(
                "the producer is not started: use `async with` or start()"
            )
        return ClosedError(f"the producer {self.config.client_id!r} is closed")

    def _left_open(self) -> str | None:
        state = getattr(self, "_state", State.NEW)
        if state in {State.NEW, State.CLOSING, State.CLOSED}:
            return None
        if self._home is None or self._home.is_elsewhere:
            return None
        return f"the producer {self.config.client_id!r}"

    def _forgotten(self) -> None:
        if self._home is not None:
            parts = (self._undo, self._accumulator, self._sender, self._cluster)
            self._home.soon(partial(_stop, *parts))
            self._home.soon(partial(self._room.fail, self._why_closed()))
            if self._owns_cluster:
                self._home.soon(self._cluster.abandon)

    async def _flush(self) -> None:
        receipts = self._accumulator.seal()
        self._wake()
        await settled(receipts)

    def _check_running(self) -> None:
        if self._home is not None:
            self._home.check()
        if self._state is not State.RUNNING:
            raise self._why_closed()

    def _wake(self) -> None:
        if self._sender is not None:
            self._sender.wake()


# The functions below take the parts of a producer, which may be collected already.


def _stop(
    undo: list[Callable[[], None]],
    accumulator: Accumulator,
    sender: Sender | None,
    cluster: Cluster,
) -> None:
    for step in undo:
        step()
    undo.clear()
    accumulator.fail_all(_not_sent)
    if sender is not None:
        sender.stop()
        cluster.watch_topics(sender, None)


def _not_sent(batch: ProduceBatch | None) -> Exception:
    if batch is None or not batch.attempts:
        how = "before the record was sent"
    else:
        how = "before the record was acknowledged; it may have been written"
    error = ClosedError(f"the producer was closed {how}")
    if batch is not None:
        error.__cause__ = batch.cause
    return error


def _report_lost(cluster: Cluster, receipt: Receipt, count: int) -> None:
    assert receipt.error is not None
    tp = TopicPartition(receipt.topic, receipt.partition)
    cluster.observer.delivery_lost(tp, receipt.error, count)


def _take_nothing(*_: object) -> Delivery | None:
    return None


def _make_accumulator(
    config: ProducerConfig,
    identity: ProducerIdentity | None,
    on_lost: Callable[[Receipt, int], None],
) -> Accumulator:
    codec = Compression[config.compression_type.upper()]
    compressor = Compressor(codec, config.compression_level)

    limits = Limits(
        batch_size=min(config.batch_size, config.max_request_size),
        buffer_memory=config.buffer_memory,
        max_request_size=config.max_request_size,
        linger=config.linger_ms / 1000,
        delivery_timeout=config.delivery_timeout_ms / 1000,
        max_block=config.max_block_ms / 1000,
        max_in_flight=config.max_in_flight_requests_per_connection,
        availability_timeout=config.partitioner_availability_timeout_ms / 1000,
    )
    chooser = Chooser(
        roll,
        custom=config.partitioner,
        ignore_keys=config.partitioner_ignore_keys,
        adaptive=config.partitioner_adaptive_partitioning_enable,
    )
    new_builder = partial(BatchBuilder, compressor=compressor)
    open_batches = OpenBatches(
        wall_clock(),
        min(config.max_request_size, config.buffer_memory),
        ignore_keys=config.partitioner_ignore_keys,
    )
    return Accumulator(limits, chooser, identity, new_builder, open_batches, on_lost)
