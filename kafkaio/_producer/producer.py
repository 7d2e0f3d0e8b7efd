"""The producer, as users see it: `Producer`, whole.

A record passes through three stages. Taking it in is synchronous: `Producer` puts it
into the open batch of its partition, directly (`kafkaio._records._append`) or through
the accumulator (`kafkaio._machines.accumulator`), and returns a `Delivery`. The sender
(`kafkaio._producer.sender`) writes batches to the brokers, and `outcomes` settles their
deliveries by the answers. A call waits only where the buffer has no space
(`kafkaio._producer.backpressure`), or for deliveries.

Background tasks and callbacks hold the parts of a producer and never the producer, so
that one that is forgotten open is collected, warns and ends its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Self, Unpack, overload
from uuid import UUID

from kafkaio import _config
from kafkaio._arguments import seconds_of, topic_name
from kafkaio._client.client import Client, cluster_of
from kafkaio._client.cluster import Cluster, with_client_id
from kafkaio._config import DEFAULT_REQUEST_SIZE, ProducerConfig, with_functions
from kafkaio._config.signature import OptionsSignature
from kafkaio._dataclass import dataclass
from kafkaio._generic import Generic, K_contra, KeyT, V_contra, ValueT
from kafkaio._machines.accumulator import (
    Accumulator,
    BufferStatistics,
    Chooser,
    Limits,
    ProduceBatch,
    Receipt,
)
from kafkaio._machines.sequence import ProducerIdentity
from kafkaio._net.transport import Dial
from kafkaio._producer.backpressure import BufferSpace
from kafkaio._producer.delivery import CallbackLoop, Delivery, settled, waiting_for
from kafkaio._producer.intake import TURN_BYTES, Intake
from kafkaio._producer.lost import LostRecords
from kafkaio._producer.sender import Sender
from kafkaio._producer.serializing import SerializerWaits
from kafkaio._public import (
    knows_other_clients,
    public,
    refuses_others,
    wrong_call,
)
from kafkaio._records._impl import OpenBatches, open_batch_first
from kafkaio._records.builder import BatchBuilder
from kafkaio._records.compression import Compression, Compressor
from kafkaio._runtime.clock import now, roll, wall_clock
from kafkaio._runtime.lifecycle import Closeable, Lifecycle, LifecycleState, weakly
from kafkaio._runtime.scopes import move_on_after
from kafkaio._topic import ReadableTopic, SerializerLike, Topic
from kafkaio._transactional import TransactionalConsumer
from kafkaio.errors import (
    ArgumentTypeError,
    ClosedError,
    KafkaTimeout,
    UsageError,
)
from kafkaio.types import Headers, Metric, NewRecord, RecordMetadata, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkaio._producer.bulk import TableDelivery
    from kafkaio._producer.raw import RawDelivery
    from kafkaio._producer.transaction import Transaction
    from kafkaio._producer.transaction_manager import TransactionManager
    from kafkaio._records.raw import RawBatch

#: Seconds that cancelled tasks have to end.
_GRACE = 0.1


@public("kafkaio")
@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerStatistics:
    """A snapshot of a producer.

    Attributes:
        state: ``new``, ``starting``, ``running``, ``failed`` (a background task
            crashed), ``closing`` or ``closed``.
        producer_id: the id that makes it idempotent (KIP-98), -1 while it has none.
        producer_epoch: the epoch of that id, -1 while it has none.
        transaction: where it is with its transactions, such as ``ready``, ``open`` or
            ``fenced``; None without a ``transactional_id``.
        waiting_for_room: calls that wait for buffer memory.
        waited_for_room: seconds that calls have waited for it, in sum.
        room_timeouts: calls that have waited for it longer than ``max_block_ms``.
        buffer_memory: bytes of it, used or not.
        buffer: the records that are buffered and in flight.
    """

    state: str
    producer_id: int
    producer_epoch: int
    transaction: str | None
    waiting_for_room: int
    waited_for_room: float
    room_timeouts: int
    buffer_memory: int
    buffer: BufferStatistics


@public("kafkaio")
@knows_other_clients("__init__", "close", is_hot=True)
class Producer(Closeable, Generic[K_contra, V_contra]):
    """Writes records to Kafka.

    ``Producer[str, Order]`` takes keys and values of these types. Type checkers infer
    them from the serializers; `Producer` alone takes bytes and None. A `Topic` that is
    given in the place of a topic's name brings types and serializers of its own.

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
        key_serializer: turns keys into bytes: a function, or an object with the method
            ``serialize``; see `kafkaio.serde.SerializerLike`. Without it keys are bytes
            or None.
        value_serializer: turns values into bytes, likewise.
        observer: an object with any of the methods of `kafkaio.Observer`, or a list of
            such objects. Not allowed with a shared client, which has its own.
        options: see `kafkaio.ProducerConfig`. A shared client has the options of
            `kafkaio.ClientConfig` already; none of them is allowed with it.

    Raises:
        ConfigurationError: an option is unknown or its value impossible.
    """

    __signature__: OptionsSignature = OptionsSignature(ProducerConfig)

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        key_serializer: SerializerLike[K_contra] | None = None,
        value_serializer: SerializerLike[V_contra] | None = None,
        observer: object | None = None,
        **options: Unpack[_config.ProducerOptions],
    ) -> None:
        serializers = {
            "key_serializer": key_serializer,
            "value_serializer": value_serializer,
        }
        given = with_functions(options, serializers)
        if isinstance(bootstrap_servers, Client):
            # Keeps the shared client alive: a collected client ends its cluster.
            self._client = bootstrap_servers
            config = ProducerConfig.sharing(bootstrap_servers.config, given, observer)
            self._set_up(config, cluster_of(bootstrap_servers), owns_cluster=False)
        else:
            config = ProducerConfig.of(bootstrap_servers, given)
            config = with_client_id(config, "producer")
            cluster = Cluster(config, observer)
            self._set_up(config, cluster, owns_cluster=True)

    def _set_up(
        self, config: ProducerConfig, cluster: Cluster, *, owns_cluster: bool
    ) -> None:
        self._life = Lifecycle("producer", config.client_id)
        self._life.add_crash_listener(weakly(self._fail_records))
        self.config = config
        self._cluster = cluster
        self._owns_cluster = owns_cluster
        is_transactional = config.transactional_id is not None
        self._identity = _make_identity(config)
        self._lost = LostRecords(partial(_report_lost, cluster))
        # A transaction reports every failed record when it ends.
        on_lost = None if is_transactional else self._lost.add
        new_receipt = partial(Receipt, on_lost=on_lost, wait=waiting_for(self._life))
        self._accumulator = _make_accumulator(config, self._identity, new_receipt)
        self._budget = self._accumulator.budget
        self._space = BufferSpace(
            self._budget,
            self._accumulator.gate,
            self._accumulator.share,
            config.max_block_ms / 1000,
        )
        self._waits = SerializerWaits(
            self._accumulator.gate, config.max_block_ms / 1000
        )
        self._intake = Intake(
            config,
            self._accumulator,
            self._space,
            self._waits,
            self._life.check,
            getattr(cluster.observer, "inject", None),
        )
        self._open_batches = self._intake.open_batches
        # Records of a transactional producer come by its transactions alone.
        is_plain = self._intake.is_plain and not is_transactional
        self._transactions: TransactionManager | None = None
        if is_transactional:
            # Imported late: most producers have no transactions.
            from kafkaio._producer.transaction_manager import TransactionManager

            assert self._identity is not None
            self._transactions = TransactionManager(
                cluster, config, self._accumulator, self._identity, self._space
            )
            self._intake = self._intake.checked_by(
                partial(_refuse_outside_transaction, self._life)
            )
        self._direct = self._open_batches if is_plain else None
        self._take = self._open_batches.take if is_plain else _take_nothing
        self._sender: Sender | None = None
        self._undo: list[Callable[[], None]] = []

    @classmethod
    def from_properties(
        cls,
        properties: Mapping[str, object],
        *,
        key_serializer: SerializerLike[K_contra] | None = None,
        value_serializer: SerializerLike[V_contra] | None = None,
        observer: object | None = None,
    ) -> Self:
        """Make a producer from Kafka's dotted names, such as ``bootstrap.servers``.

        Type checkers take the types of keys and values from the class that this is
        called on: ``Producer[str, Order].from_properties(...)``.

        Args:
            properties: options by their names.
            key_serializer: as for the constructor.
            value_serializer: as for the constructor.
            observer: as for the constructor.

        Raises:
            ConfigurationError: a name is unknown, or a value is impossible.
        """
        serializers = {
            "key.serializer": key_serializer,
            "value.serializer": value_serializer,
        }
        config = ProducerConfig.from_properties(with_functions(properties, serializers))
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

        Type checkers take the types of keys and values from the class that this is
        called on: ``Producer[str, Order].from_config(...)``.

        Args:
            config: the options.
            observer: as for the constructor.
            dial: makes transports; None for TCP and TLS.
        """
        producer = cls.__new__(cls)
        config = with_client_id(config, "producer")
        cluster = Cluster(config, observer, dial)
        producer._set_up(config, cluster, owns_cluster=True)
        return producer

    def __repr__(self) -> str:
        buffer = self._accumulator.statistics()
        identity = self._identity and self._identity.current
        who = f" id={identity.producer_id}/{identity.epoch}" if identity else ""
        return (
            f"<Producer {self.config.client_id!r} {self._life.state.value}{who} | "
            f"{buffer.topics} topics | {buffer.waiting_batches} batches waiting, "
            f"{buffer.batches_on_wire} on the wire, {buffer.used_bytes} bytes>"
        )

    def statistics(self) -> ProducerStatistics:
        """Return a snapshot of the producer."""
        identity = self._identity.current if self._identity is not None else None
        return ProducerStatistics(
            state=self._life.state.value,
            producer_id=-1 if identity is None else identity.producer_id,
            producer_epoch=-1 if identity is None else identity.epoch,
            transaction=(
                None if self._transactions is None else self._transactions.state
            ),
            waiting_for_room=len(self._space),
            waited_for_room=self._space.waited,
            room_timeouts=self._space.timeouts,
            buffer_memory=self.config.buffer_memory,
            buffer=self._accumulator.statistics(),
        )

    async def start(self, timeout: float | None = None) -> None:
        """Connect to the cluster; returns when it has answered.

        With a ``transactional_id``, the coordinator then fences the producer that used
        the id before, and aborts the transaction that it left open.

        If the call fails or is cancelled, the producer is closed.

        Args:
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Raises:
            ArgumentTypeError: the timeout is not a number.
            ArgumentValueError: the timeout is negative; nothing was started.
            BrokerNotAvailable: no bootstrap server answered in time.
            AuthenticationError: the brokers refuse the client.
            AuthorizationError: the principal may not use the ``transactional_id``.
            ConfigurationError: the brokers do not allow ``transaction_timeout_ms``.
            RequestTimeout: the transaction coordinator gave no identity in time.
            ClosedError: the producer was started or closed before, or a shared client
                is not running.
        """
        if timeout is not None:
            seconds_of("timeout", timeout)
        deadline = now() + (timeout or 0.0)
        home = self._life.begin()
        # A forked process has no sender: no record must go into an open batch there.
        home.on_fork = self._open_batches.clear
        self._open_batches.bind(get_ident, home.check)
        cluster, life = self._cluster, self._life
        # Bound once: to find the running loop costs more than to read its clock.
        self._intake.now = home.loop.time
        limit = self.config.max_block_ms / 1000
        self._intake.loop = CallbackLoop(life)
        self._intake.describe = lambda places: cluster.wait_for_partitions(
            places, limit
        )
        self._intake.partition_count = lambda topic: cluster.view.partition_count(topic)
        try:
            if self._owns_cluster:
                await cluster.start(timeout)
            sender = Sender(
                cluster,
                self.config,
                self._accumulator,
                self._identity,
                self._space,
                self._transactions,
            )
            sender.on_end = partial(
                life.crashed, ClosedError("the producer's client was closed")
            )
            sender.start()
            self._sender = sender
            self._intake.on_begun, self._intake.wake = sender.batch_begun, sender.wake
            self._undo.append(cluster.add_metadata_listener(sender.metadata_changed))
            self._undo.append(cluster.add_crash_listener(life.crashed))
            sender.metadata_changed(cluster.view)
            if self._transactions is not None:
                limit = self.config.default_api_timeout_ms / 1000
                within = limit if timeout is None else max(0.001, deadline - now())
                await self._transactions.start(sender, within)
            life.started()
            self._add_to_telemetry()
        except BaseException:
            await self.close(timeout=0)
            raise
        cluster.observer.started("producer", self.config.client_id, self)

    def _add_to_telemetry(self) -> None:
        name = self.config.transactional_id
        about = {} if name is None else {"transactional_id": name}
        remove = self._cluster.telemetry.add_user("producer", self, lambda: about)
        if not self._owns_cluster:  # else the last push comes after all else has ended
            self._undo.append(remove)

    async def close(self, timeout: float | None = None) -> None:
        """Send what was enqueued, then close. An open transaction is aborted.

        From the call on, no record is taken in. When it returns, every delivery is
        done and every connection of the producer's own client is closed. If the call
        is cancelled, what is not acknowledged fails at once and the call waits for the
        rest; cancelled again, it returns, and the rest is done in the background. It
        may be called again, also by several tasks: all of them wait for the same end.

        Args:
            timeout: seconds to wait for acknowledgements. Records without one by then
                fail with ClosedError, though they may have been written. By default
                ``delivery_timeout_ms`` is the limit, as for every record.

        Raises:
            ArgumentTypeError: the timeout is not a number.
            ArgumentValueError: the timeout is negative; nothing was closed.
            ClosedError: the producer belongs to another event loop or process.
        """
        if timeout is not None:
            seconds_of("timeout", timeout)
        before = self._life.begin_close()
        if before is None:
            await self._life.closed()
            return
        flushes = before is LifecycleState.RUNNING and timeout != 0
        deadline = None if timeout is None else now() + timeout
        self._space.close(self._life.why_unusable())
        self._waits.fail_all(self._life.why_unusable())
        await self._life.close(
            partial(self._flush_within, timeout) if flushes else None,
            partial(self._end, deadline),
        )

    # ---- records ---------------------------------------------------------------------

    @overload
    async def send(
        self,
        topic: str,
        value: V_contra | None,
        *,
        key: K_contra | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> RecordMetadata: ...

    @overload
    async def send(
        self,
        topic: Topic[KeyT, ValueT],
        value: ValueT | None,
        *,
        key: KeyT | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> RecordMetadata: ...

    @refuses_others
    async def send(
        self,
        topic: str | Topic[Any, Any],
        value: object,
        *_others: object,
        key: object = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
        **_foreign: object,
    ) -> RecordMetadata:
        """Write a record and wait until it is acknowledged.

        A record is sent at once if no request to its leader is in flight. If the call
        is cancelled while it waits for a serializer or for buffer memory, nothing is
        written; if it is cancelled later, the record may be written.

        Args:
            topic: name of the topic; or a `kafkaio.Topic`, whose serdes take the place
                of the producer's serializers.
            value: bytes, None for a tombstone, or what the serializer takes, which is
                ``value_serializer`` unless the topic has its own.
            key: bytes, None for no key, or what the serializer takes, likewise. Records
                with the same key go to the same partition.
            headers: pairs of name and bytes, or a mapping; a name may repeat in pairs.
            timestamp: milliseconds since the Unix epoch; now by default.
            partition: number of the partition; chosen by the partitioner by default.

        Returns:
            Where the record was written.

        Raises:
            ArgumentTypeError: an argument has the wrong type; nothing was enqueued.
            ArgumentValueError: an argument has an impossible value; nothing was
                enqueued.
            RecordTooLarge: the record can never be sent with the limits that are set.
            DeliveryTimeout: no acknowledgement came within ``delivery_timeout_ms``.
            UnknownTopicOrPartition: the topic or partition does not exist.
            RequestTimeout: no broker described the topic within ``max_block_ms``.
            BrokerError: the broker refused the record, for the reason given.
            KafkaTimeout: buffer memory did not become free within ``max_block_ms``, or
                a serializer was not done within that time.
            ClosedError: the producer is not started, or closed.
            Exception: a serializer raised it; nothing was enqueued.
        """
        if _others or _foreign:
            raise wrong_call("Producer.send", 2 + len(_others), _foreign)
        delivery = None
        if self._open_batches.taken < TURN_BYTES:
            delivery = self._take(topic, value, key, headers, timestamp, partition)
        if delivery is None:
            delivery = await self._intake.enqueue(
                topic, value, key, headers, timestamp, partition
            )
        return await delivery

    @overload
    async def enqueue(
        self,
        topic: str,
        value: V_contra | None,
        *,
        key: K_contra | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery: ...

    @overload
    async def enqueue(
        self,
        topic: Topic[KeyT, ValueT],
        value: ValueT | None,
        *,
        key: KeyT | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery: ...

    async def enqueue(
        self,
        topic: str | Topic[Any, Any],
        value: object,
        *,
        key: object = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery:
        """Take a record in, waiting for its serializer and for buffer memory only.

        Calls for a topic are served in their order, also while a serializer of one of
        them is awaited; calls for other topics pass. Calls that wait for memory are
        served in their order, too. Those for partitions without
        progress wait once such partitions hold ``stalled_partitions_buffer_percent`` of
        the buffer, and the others pass them. If the call is cancelled, the record
        was not taken in.

        Args:
            topic: as for `send`.
            value: as for `send`.
            key: as for `send`.
            headers: as for `send`.
            timestamp: as for `send`.
            partition: as for `send`.

        Returns:
            A handle to await the acknowledgement with. It raises what `send` raises for
            a record that fails after it was taken in.

        Raises:
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: an argument has an impossible value.
            RecordTooLarge: the record can never be sent with the limits that are set.
            KafkaTimeout: buffer memory did not become free within ``max_block_ms``, or
                a serializer was not done within that time.
            ClosedError: the producer is not started, or closed.
            Exception: a serializer raised it.
        """
        if self._open_batches.taken < TURN_BYTES:
            delivery = self._take(topic, value, key, headers, timestamp, partition)
            if delivery is not None:
                return delivery
        return await self._intake.enqueue(
            topic, value, key, headers, timestamp, partition
        )

    @overload
    def enqueue_nowait(
        self,
        topic: str,
        value: V_contra | None,
        *,
        key: K_contra | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery: ...

    @overload
    def enqueue_nowait(
        self,
        topic: Topic[KeyT, ValueT],
        value: ValueT | None,
        *,
        key: KeyT | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery: ...

    @open_batch_first
    def enqueue_nowait(
        self,
        topic: str | Topic[Any, Any],
        value: object,
        *,
        key: object = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery:
        """Take a record in, or raise BufferFull where `enqueue` would wait.

        Args:
            topic: as for `send`.
            value: as for `send`.
            key: as for `send`.
            headers: as for `send`.
            timestamp: as for `send`.
            partition: as for `send`.

        Returns:
            A handle to await the acknowledgement with, as `enqueue` returns.

        Raises:
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: an argument has an impossible value.
            RecordTooLarge: the record can never be sent with the limits that are set.
            BufferFull: there is not enough buffer memory now, or other calls wait for
                it, or calls for the topic wait for a serializer, or the partition makes
                no progress and such partitions hold their share of the buffer
                (``stalled_partitions_buffer_percent``).
            ConfigurationError: a serializer has to be awaited: use `enqueue`.
            ClosedError: the producer is not started, or closed.
            Exception: a serializer raised it.
        """
        return self._intake.enqueue_nowait(
            topic, value, key, headers, timestamp, partition
        )

    @overload
    async def send_many(
        self,
        topic: str,
        values: Sequence[V_contra | NewRecord[K_contra, V_contra] | None],
    ) -> Sequence[RecordMetadata]: ...

    @overload
    async def send_many(
        self,
        topic: Topic[KeyT, ValueT],
        values: Sequence[ValueT | NewRecord[KeyT, ValueT] | None],
    ) -> Sequence[RecordMetadata]: ...

    async def send_many(
        self, topic: str | Topic[Any, Any], values: Sequence[object]
    ) -> Sequence[RecordMetadata]:
        """Write several records and wait until all of them are acknowledged.

        All are checked and serialized, one after the other, before the first is taken
        in. Records of one partition are written in the order of ``values``. If the call
        is cancelled, records that were taken in may be written.

        Args:
            topic: name of the topic, or a `kafkaio.Topic`.
            values: values as `send` takes them, or `kafkaio.NewRecord` objects.

        Returns:
            Where each record was written, in the order of ``values``: a read-only
            sequence that makes each item when it is used.

        Raises:
            ArgumentTypeError: a value has the wrong type; nothing was enqueued.
            ArgumentValueError: a value is impossible; nothing was enqueued.
            RecordTooLarge: a record can never be sent; nothing was enqueued.
            KafkaTimeout: the serializers were not done within ``max_block_ms``; nothing
                was enqueued.
            DeliveriesFailed: some records failed: an exception group of their errors.
                It has the error of each record that failed, and the place of each
                other.
            ClosedError: the producer is not started, or closed.
            Exception: a serializer raised it; nothing was enqueued.
        """
        return await self._intake.send_many(topic, values)

    async def send_table(  # noqa: PLR0913 - the columns, by name
        self,
        topic: str | None,
        table: pa.Table | pa.RecordBatch,
        *,
        key: str | None = None,
        value: str | None = "value",
        headers: str | None = None,
        timestamp: str | None = None,
        partition: int | None = None,
        topic_column: str | None = None,
        partition_column: str | None = None,
    ) -> pa.Table:
        """Write the rows of an Arrow table and wait until all are acknowledged.

        As `enqueue_table` and awaiting what it returns, except that rows which cannot
        be taken in are reported with the others. If the call is cancelled, rows that
        were taken in may be written; a note of the exception says how many.

        Args:
            topic: as for `enqueue_table`.
            table: as for `enqueue_table`.
            key: as for `enqueue_table`.
            value: as for `enqueue_table`.
            headers: as for `enqueue_table`.
            timestamp: as for `enqueue_table`.
            partition: as for `enqueue_table`.
            topic_column: as for `enqueue_table`.
            partition_column: as for `enqueue_table`.

        Returns:
            A table with a row for each: ``partition``, ``offset`` (null with
            ``acks=0``) and ``timestamp``; with ``topic_column``, ``topic`` as well.

        Raises:
            ImportError: pyarrow is not installed: ``pip install 'kafkaio[arrow]'``.
            ArgumentTypeError: an argument has the wrong type; nothing was enqueued.
            ArgumentValueError: a column does not exist, or a column or a row cannot be
                sent; nothing was enqueued.
            RecordTooLarge: a row can never be sent; nothing was enqueued.
            UnknownTopicOrPartition: the cluster has no such topic, or the topic no such
                partition; nothing was enqueued.
            DeliveriesFailed: some rows failed: an exception group of their errors. It
                has the error of each row that failed, and the place of each other.
            ClosedError: the producer is not started, or closed.
        """
        from kafkaio._producer.bulk import TableArguments

        arguments = TableArguments(
            topic,
            partition,
            key,
            value,
            headers,
            timestamp,
            topic_column,
            partition_column,
        )
        return await self._intake.send_table(table, arguments)

    async def enqueue_table(  # noqa: PLR0913 - the columns, by name
        self,
        topic: str | None,
        table: pa.Table | pa.RecordBatch,
        *,
        key: str | None = None,
        value: str | None = "value",
        headers: str | None = None,
        timestamp: str | None = None,
        partition: int | None = None,
        topic_column: str | None = None,
        partition_column: str | None = None,
    ) -> TableDelivery:
        """Take the rows of an Arrow table in, waiting for buffer memory only.

        Rows are copied from the table's memory into batches without a Python object for
        each; serializers are not called. All are checked before the first is taken in.
        They are taken in in their order, and rows of one partition keep it; a table
        that is larger than the buffer is taken in as earlier rows are acknowledged. Of
        calls at the same time, rows can be mixed. The larger ``batch_size``, the less
        a row costs.

        Rows without a key and a partition are spread evenly: runs of them go to the
        partitions in turn, each of 4 KB at least. A partition that cannot be written,
        or for which more than its part of the buffer waits, is passed over.

        If the call is cancelled while it waits, the rows taken in until then may be
        written. A note of the exception (``__notes__``) says how many they are, and
        so it does if the call fails for want of memory or because the producer is
        closed.

        Args:
            topic: name of the topic; None with ``topic_column``.
            table: the table; it must not change during the call.
            key: name of the column of keys, binary or text; None for records without
                keys. Rows with the same key go to the same partition, which is that of
                Java's producer.
            value: name of the column of values, binary or text; None for tombstones, as
                is a null in it.
            headers: name of the column of headers: lists of structs of name and
                value, or maps; None for records without headers.
            timestamp: name of the column of timestamps, of Arrow's type or integers
                in milliseconds; None, as a null in it, for the current time.
            partition: number of the partition of all rows; chosen by the partitioner,
                row by row, by default.
            topic_column: name of the column of topics, text or a dictionary of text,
                without nulls; None if all rows go to ``topic``.
            partition_column: name of the column of partitions, integers; None, as a
                null in it, leaves it to the partitioner.

        Returns:
            A handle to await the acknowledgement of all rows with.

        Raises:
            ImportError: pyarrow is not installed: ``pip install 'kafkaio[arrow]'``.
            ArgumentTypeError: an argument has the wrong type; nothing was enqueued.
            ArgumentValueError: a column does not exist, or a column or a row cannot be
                sent; nothing was enqueued.
            RecordTooLarge: a row can never be sent; nothing was enqueued.
            UnknownTopicOrPartition: the cluster has no such topic, or the topic no such
                partition; nothing was enqueued.
            KafkaTimeout: buffer memory did not become free within ``max_block_ms``, or
                the topics were not described; in the first case some rows may be taken
                in.
            ClosedError: the producer is not started, or closed; if that happened during
                the call, some rows may be taken in.
        """
        from kafkaio._producer.bulk import TableArguments

        arguments = TableArguments(
            topic,
            partition,
            key,
            value,
            headers,
            timestamp,
            topic_column,
            partition_column,
        )
        return await self._intake.enqueue_table(table, arguments)

    async def send_raw(
        self,
        batch: RawBatch | Sequence[RawBatch],
        topic: str | Topic[Any, Any],
        partition: int,
    ) -> Sequence[RecordMetadata]:
        """Write batches that ``Consumer.raw_batches`` has yielded, and wait.

        As `enqueue_raw` and awaiting what it returns. If the call is cancelled, the
        batches may be written.

        Args:
            batch: the batch, or batches for the same partition in their order.
            topic: name of the topic, or a `kafkaio.Topic`, whose serdes are not used.
            partition: number of the partition.

        Returns:
            Where each record was written, as `send_many` returns it; the items are as
            many as the records that the batch stands for, and the timestamps -1 unless
            the broker has set them.

        Raises:
            DeliveriesFailed: some records failed, as a rule all of them: an exception
                group of their errors.
            KafkaError: as `enqueue_raw`.
        """
        return await (await self.enqueue_raw(batch, topic, partition))

    async def enqueue_raw(
        self,
        batch: RawBatch | Sequence[RawBatch],
        topic: str | Topic[Any, Any],
        partition: int,
    ) -> RawDelivery:
        """Take batches in that ``Consumer.raw_batches`` has yielded (KAFKA-1011).

        The compressed records are written as they are, under the producer's own id,
        epoch and sequence number: retries write nothing twice, and a transactional
        producer writes it in a transaction (`Transaction.enqueue_raw`). Keys, values,
        headers and timestamps stay as they are; offsets are the topic's own, and
        `RawDelivery.offsets` has those of the source. The batch is sent alone or with
        those of other partitions, in the order of the calls for its partition, and
        counts against ``buffer_memory`` with its bytes. Of several batches, such as
        those that `RawBatchIterator.take` returns, each stays by itself in the topic;
        together they cost the producer less, and have one delivery.

        A batch that is not whole (`RawBatch.is_whole`), or is larger than
        ``max_request_size`` or ``buffer_memory``, goes the long way: its records are
        decompressed and written anew with the producer's ``compression_type``, which
        the event loop waits for. So does one that the broker refuses as too large for
        the topic. Its records then need more memory than ``buffer_memory`` counts.

        Records that do not exist any more in the source are not written: offsets of
        the target have no gaps for them. A topic whose ``compression.type`` is not
        ``producer`` is compressed anew by its broker.

        If the call is cancelled, nothing of a whole batch was taken in; of one that
        goes the long way, or of several batches, a beginning may have been. Batches
        that cannot be decoded or are too large are found before anything is taken in.

        Args:
            batch: the batch, or batches for the same partition in their order.
            topic: name of the topic, or a `kafkaio.Topic`, whose serdes are not used.
            partition: number of the partition.

        Returns:
            A handle to await the acknowledgement with.

        Raises:
            ArgumentTypeError: an argument has the wrong type; nothing was enqueued.
            ArgumentValueError: the topic is empty, or the partition negative.
            CorruptRecord: the records have to be decoded, and cannot be.
            RecordTooLarge: a record can never be sent with the limits that are set.
            UnknownTopicOrPartition: the cluster has no such topic, or the topic no such
                partition.
            KafkaTimeout: buffer memory did not become free within ``max_block_ms``, or
                the topic was not described.
            ClosedError: the producer is not started, or closed.
        """
        return await self._intake.enqueue_raw(batch, topic, partition)

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until every record that was taken in before is acknowledged or failed.

        Batches leave at once instead of lingering. Errors of records are raised by
        their deliveries, not here. A call that still waits for a serializer or for
        buffer memory has not taken its record in. If the call is cancelled, the records
        stay on their way.

        Args:
            timeout: seconds; by default ``delivery_timeout_ms`` is the limit, as for
                every record.

        Raises:
            ArgumentTypeError: the timeout is not a number.
            ArgumentValueError: the timeout is negative.
            KafkaTimeout: some records were not done in time; they stay on their way.
            ClosedError: the producer is not started, or closed.
        """
        if timeout is not None:
            seconds_of("timeout", timeout)
        self._life.check()
        with move_on_after(timeout) as scope:
            await self._flush()
        if scope.cancelled_caught:
            buffer = self._accumulator.statistics()
            why = self._accumulator.placement.why_undescribed()
            is_late = buffer.undesignated_records and why
            raise KafkaTimeout(
                f"not flushed within {timeout:g} s: {buffer.waiting_batches} batches "
                f"waiting, {buffer.batches_on_wire} on the wire, "
                f"{buffer.undesignated_records} records without metadata"
                f"{f' ({why})' if is_late else ''}"
            )

    async def partitions_for(
        self,
        topic: str | ReadableTopic[object, object],
        timeout: float | None = None,
    ) -> tuple[int, ...]:
        """Return the partitions of a topic, from the metadata or from the cluster.

        Args:
            topic: name of the topic, or a `kafkaio.Topic`.
            timeout: seconds; ``max_block_ms`` by default.

        Raises:
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: the topic is empty, or the timeout negative.
            UnknownTopicOrPartition: the cluster has no such topic.
            AuthorizationError: the client is not allowed to describe the topic.
            KafkaTimeout: the cluster did not answer in time.
            ClosedError: the producer is not started, or closed.
        """
        self._life.check()
        name = topic_name(topic)
        if timeout is None:
            timeout = self.config.max_block_ms / 1000
        seconds_of("timeout", timeout)
        view = await self._cluster.wait_for_topics([name], timeout)
        return tuple(found.partition for found in view.partitions(name))

    # ---- transactions ----------------------------------------------------------------

    def transaction(
        self, consumer: TransactionalConsumer | None = None
    ) -> Transaction[K_contra, V_contra]:
        """Make a transaction, which ``async with`` begins and ends (KIP-98).

        ::

            async with producer.transaction() as tx:
                await tx.send("out", b"v", key=b"k")
                await tx.commit_offsets(consumer)

        Args:
            consumer: a consumer whose records the transaction works on. The offsets of
                all that it hands out in the block are committed with the transaction;
                until the end, no partition of these records is revoked; and if the
                transaction is aborted, the consumer goes back to what was committed,
                or where nothing was committed since a seek, to the first record of the
                transaction, so that the next one reads the records again. It needs
                ``enable_auto_commit=False``, and should read with
                ``isolation_level="read_committed"``.

        Raises:
            UsageError: the producer has no ``transactional_id``.
            ArgumentTypeError: ``consumer`` is not a consumer.
        """
        if self._transactions is None:
            raise UsageError(
                "transactions need a transactional_id: "
                "kafkaio.Producer(..., transactional_id='billing-1')"
            )
        if consumer is not None and not isinstance(consumer, TransactionalConsumer):
            raise ArgumentTypeError(
                f"consumer must be a kafkaio.Consumer, not {type(consumer).__name__}"
            )
        from kafkaio._producer.transaction import Transaction

        return Transaction(self._transactions, self._intake, self._life, consumer)

    # ---- telemetry ------------------------------------------------------------------

    async def client_instance_id(self, timeout: float | None = None) -> UUID:
        """Return the id by which the brokers know this client (KIP-714).

        A broker gives it when it is asked whether it wants metrics, soon after the
        start. Objects that share a client have one id. If the call is cancelled,
        nothing has changed.

        Args:
            timeout: seconds to wait for it; ``default_api_timeout_ms`` by default.

        Raises:
            UsageError: ``enable_metrics_push`` is off.
            UnsupportedVersion: the brokers offer no telemetry.
            RequestTimeout: no broker gave an id in time.
            KafkaError: telemetry has failed; says why.
            ClosedError: the producer is closed, or not started.
        """
        limit = self.config.default_api_timeout_ms / 1000
        within = limit if timeout is None else seconds_of("timeout", timeout)
        self._life.check()
        return await self._cluster.telemetry.instance_id(within)

    def register_metric(self, metric: Metric) -> None:
        """Push a metric of the application with those of the producer (KIP-1076).

        It is pushed if a broker asks for its name. One with the same name and
        attributes replaces it. It may be registered before the start, and is pushed
        until it is unregistered or the client is closed.

        Args:
            metric: its name, and the function that returns its value.

        Raises:
            ArgumentTypeError: it is not a `kafkaio.Metric`, or its name or an
                attribute is not text.
            ArgumentValueError: its name is empty or begins with ``org.apache.kafka.``,
                or its kind is unknown.
        """
        self._cluster.telemetry.register(metric)

    def unregister_metric(self, metric: Metric) -> None:
        """Stop pushing a metric. Does nothing if it was not registered.

        Args:
            metric: one with the name and the attributes of the one registered.

        Raises:
            ArgumentTypeError: it is not a `kafkaio.Metric`.
        """
        self._cluster.telemetry.unregister(metric)

    # ---- the end ---------------------------------------------------------------------

    async def _flush_within(self, limit: float | None) -> None:
        if self._transactions is not None:
            within = self.config.delivery_timeout_ms / 1000 if limit is None else limit
            await self._transactions.close(now() + within)
            return
        with move_on_after(limit):
            await self._flush()

    async def _end(self, deadline: float | None) -> None:
        life, sender = self._life, self._sender
        if self._transactions is not None:
            self._transactions.end(ClosedError("the producer is closed"))
        _stop(self._undo, self._accumulator, self._lost, sender, self._cluster)
        try:
            if sender is not None:
                with move_on_after(_GRACE):
                    await sender.stopped()
        finally:
            is_news = life.ended()
            if self._owns_cluster:
                left = None if deadline is None else max(0.0, deadline - now())
                await self._cluster.close(left)
            if is_news:
                name = self.config.client_id
                self._cluster.observer.closed("producer", name, self)

    async def _leave(self, error: BaseException | None) -> None:
        # A program that leaves by an exception wants to end soon: closing waits for
        # records only as long as one attempt may take.
        attempt = self.config.request_timeout_ms / 1000
        await self.close(None if error is None else attempt)

    def _fail_records(self, cause: BaseException) -> None:
        del cause  # in why_unusable()
        error = self._life.why_unusable()
        if self._transactions is not None:
            self._transactions.end(error)
        self._space.close(error)
        self._waits.fail_all(error)
        self._lost.hold()
        self._accumulator.fail_all(lambda _: error)
        self._lost.flush()

    def _abandon(self) -> None:
        life, cluster = self._life, self._cluster
        parts = (self._undo, self._accumulator, self._lost, self._sender, cluster)
        life.soon(partial(_stop, *parts))
        life.soon(partial(self._space.close, life.why_unusable()))
        life.soon(partial(self._waits.fail_all, life.why_unusable()))
        if self._owns_cluster:
            life.soon(cluster.abandon)

    async def _flush(self) -> None:
        receipts = self._accumulator.seal()
        self._wake()
        await settled(receipts)

    def _wake(self) -> None:
        if self._sender is not None:
            self._sender.wake()


# The functions below get the parts of a producer: the producer may be collected.


def _stop(
    undo: list[Callable[[], None]],
    accumulator: Accumulator,
    lost: LostRecords,
    sender: Sender | None,
    cluster: Cluster,
) -> None:
    for step in undo:
        step()
    undo.clear()
    lost.hold()
    accumulator.fail_all(_not_sent)
    lost.flush()
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


def _report_lost(
    cluster: Cluster, tp: TopicPartition, error: BaseException, count: int
) -> None:
    # Looked up now: observers may have been added since the producer was made.
    cluster.observer.delivery_lost(tp, error, count)


def _refuse_outside_transaction(life: Lifecycle) -> None:
    life.check()
    raise UsageError(
        "a producer with a transactional_id sends in transactions alone: "
        "async with producer.transaction() as tx: await tx.send(...)"
    )


def _take_nothing(*_: object) -> Delivery | None:
    return None


def _make_identity(config: ProducerConfig) -> ProducerIdentity | None:
    if not config.enable_idempotence:
        return None
    return ProducerIdentity(is_transactional=config.transactional_id is not None)


def _make_accumulator(
    config: ProducerConfig,
    identity: ProducerIdentity | None,
    new_receipt: Callable[..., Receipt],
) -> Accumulator:
    codec = Compression[config.compression_type.upper()]
    compressor = Compressor(codec, config.compression_level)

    limits = Limits(
        batch_size=min(config.batch_size, config.max_request_size),
        buffer_memory=config.buffer_memory,
        max_request_size=config.max_request_size,
        # Whoever sets a size wants no larger request. Compressing a large one would
        # block the event loop for long.
        may_grow=(
            config.max_request_size == DEFAULT_REQUEST_SIZE
            and codec is Compression.NONE
        ),
        linger=config.linger_ms / 1000,
        delivery_timeout=config.delivery_timeout_ms / 1000,
        max_block=config.max_block_ms / 1000,
        max_in_flight=config.max_in_flight_requests_per_connection,
        availability_timeout=config.partitioner_availability_timeout_ms / 1000,
        stalled_percent=config.stalled_partitions_buffer_percent,
    )
    chooser = Chooser(
        roll,
        custom=config.partitioner,
        ignore_keys=config.partitioner_ignore_keys,
        adaptive=config.partitioner_adaptive_partitioning_enable,
        rack=(config.partitioner_rack_aware and config.client_rack) or None,
    )
    new_builder = partial(
        BatchBuilder,
        compressor=compressor,
        transactional=config.transactional_id is not None,
    )
    open_batches = OpenBatches(
        wall_clock(),
        min(config.max_request_size, config.buffer_memory),
        ignore_keys=config.partitioner_ignore_keys,
    )
    return Accumulator(
        limits, chooser, identity, new_builder, open_batches, new_receipt
    )
