"""The producer, as users see it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self, Unpack

import anyio

from kafkaio._machines.accumulator import PlainRecord
from kafkaio._net.transport import Dial
from kafkaio._records._impl import Enqueuer
from kafkaio._records.batch import Rows
from kafkaio._runtime.clock import wall_ms
from kafkaio.client.client import Client, cluster_of
from kafkaio.client.cluster import Cluster
from kafkaio.config import ProducerConfig, ProducerOptions
from kafkaio.config.signature import OptionsSignature
from kafkaio.errors import BufferFull, KafkaTimeout
from kafkaio.producer.arguments import check_destination
from kafkaio.producer.delivery import Delivery
from kafkaio.producer.life import ProducerLife, ProducerStatistics
from kafkaio.producer.many import Sent, plan
from kafkaio.producer.table import SentRows, check_rows
from kafkaio.types import Headers, RecordMetadata

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Producer", "ProducerStatistics"]

#: Bytes that may be taken in before the loop gets a turn, one record at a time, and
#: many in one call: less than a millisecond's work.
_TURN_BYTES = 65_536
_TURN_BYTES_MANY = 1_048_576


class Producer(ProducerLife):
    """Writes records to Kafka.

    Records of one partition are written in the order of the calls that enqueued them,
    and, with idempotence (the default), none of them twice, whatever fails on the
    way. ``async with`` opens and closes it; `start` and `close` are the same by hand.
    Who leaves by an exception waits ``request_timeout_ms`` at most for what is not
    acknowledged.

    It belongs to the event loop and the process that started it: in another thread, on
    another loop and after a fork its methods raise ClosedError. While its own loop
    stands still, another loop in the same thread may get up to 255 records into each
    open batch before that; awaiting their deliveries there raises ClosedError, and
    they are written when the producer's loop goes on. A producer that is forgotten open
    gives a ResourceWarning; its tasks and connections end, and deliveries on their
    way fail with ClosedError.

    Args:
        bootstrap_servers: ``"host:port,host2:port"``, a sequence of such, or a started
            `kafkaio.Client` to share, which `close` then leaves open.
        observer: an object with any of the methods of `kafkaio.Observer`, or a list of
            such objects. A shared client has its own; none can be given beside it.
        options: see `kafkaio.ProducerConfig`. A shared client has the options of
            `kafkaio.ClientConfig`; none of them can be given beside it.

    Raises:
        ConfigurationError: an option is unknown or impossible.
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
            # A client that nobody refers to any more ends its cluster.
            self._client = bootstrap_servers
            config = ProducerConfig.sharing(bootstrap_servers.config, options, observer)
            self._set_up(config, cluster_of(bootstrap_servers), owns_cluster=False)
        else:
            config = ProducerConfig.of(bootstrap_servers, options)
            cluster = Cluster(config, observer)
            self._set_up(config, cluster, owns_cluster=True)

    def _set_up(
        self, config: ProducerConfig, cluster: Cluster, *, owns_cluster: bool
    ) -> None:
        super()._set_up(config, cluster, owns_cluster=owns_cluster)
        if self._is_plain and type(self).enqueue_nowait is _ENQUEUE_NOWAIT:
            # The same without a frame of its own, which is a fifth of what it takes.
            enqueuer = Enqueuer(self._lanes, self._enqueue_now)
            vars(self)["enqueue_nowait"] = enqueuer.enqueue

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, object], *, observer: object | None = None
    ) -> Self:
        """Make a producer of Kafka's dotted names, such as ``bootstrap.servers``.

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
        """Make a producer of options that were checked before.

        Args:
            config: the options.
            observer: as for the constructor.
            dial: makes transports; None for TCP and TLS.
        """
        producer = cls.__new__(cls)
        cluster = Cluster(config, observer, dial)
        producer._set_up(config, cluster, owns_cluster=True)
        return producer

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
        if self._lanes.taken < _TURN_BYTES:
            delivery = self._take(topic, value, key, headers, timestamp, partition)
        if delivery is None:
            self._check_running()
            check_destination(topic, partition)
            record = self._make(key, value, headers, timestamp)
            if self._lanes.taken < _TURN_BYTES:
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
        if self._lanes.taken < _TURN_BYTES:
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
        if self._lanes.taken < limit:
            delivery = self._enqueue_at_once(topic, partition, record)
            if delivery is not None:
                return delivery
        return await self._enqueue_later(topic, partition, record)

    def _enqueue_at_once(
        self, topic: str, partition: int | None, record: PlainRecord
    ) -> Delivery | None:
        size = self._accumulator.size_of(record)
        timestamp, key, value, headers = record
        delivery = self._lanes.take(topic, value, key, headers, timestamp, partition)
        if delivery is None and self._room.try_reserve(size):
            delivery = self._take_in(topic, partition, record, size)
        return delivery

    async def _enqueue_later(
        self, topic: str, partition: int | None, record: PlainRecord
    ) -> Delivery:
        size = self._accumulator.size_of(record)
        if self._lanes.taken >= _TURN_BYTES:
            # A loop that only enqueues would otherwise fill the buffer before the
            # sender, or anybody else, gets a turn.
            await asyncio.sleep(0)
            self._lanes.taken = 0
            self._check_running()
            delivery = self._enqueue_at_once(topic, partition, record)
            if delivery is not None:
                return delivery
        self._wake()
        await self._room.reserve(size)
        try:
            self._check_running()
        except BaseException:
            self._accumulator.release(size)
            raise
        return self._take_in(topic, partition, record, size)

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
        delivery = self._take(topic, value, key, headers, timestamp, partition)
        if delivery is not None:
            return delivery
        return self._enqueue_now(topic, value, key, headers, timestamp, partition)

    def _enqueue_now(
        self,
        topic: str,
        value: object,
        key: object,
        headers: Headers,
        timestamp: int | None,
        partition: int | None,
    ) -> Delivery:
        self._check_running()
        check_destination(topic, partition)
        record = self._make(key, value, headers, timestamp)
        delivery = self._enqueue_at_once(topic, partition, record)
        if delivery is None:
            self._wake()
            raise BufferFull(
                f"no room for {self._accumulator.size_of(record)} bytes in "
                f"buffer_memory={self.config.buffer_memory}; "
                f"{len(self._room)} calls wait for room"
            )
        return delivery

    def _take_in(
        self, topic: str, partition: int | None, record: PlainRecord, size: int
    ) -> Delivery:
        accumulator = self._accumulator
        at = self._now()
        receipt = accumulator.append_reserved(topic, partition, record, at, size)
        if accumulator.has_news and self._sender is not None:
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
            if self._lanes.are_plain(plain):
                return await self._send_values(topic, plain)
        planned = plan(topic, values, self._make)
        for _, record in planned:
            self._accumulator.size_of(record)
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
        lanes = self._lanes
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
        lanes, start = self._lanes, 0
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


#: To tell where a subclass, or a test, has put another in its place.
_ENQUEUE_NOWAIT = Producer.enqueue_nowait
