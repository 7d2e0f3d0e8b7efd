"""The producer, as users see it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum, auto
from types import TracebackType
from typing import Self, Unpack

import anyio

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
from kafkaio._records.batch import BatchBuilder, Compression
from kafkaio._records.compression import Compressor
from kafkaio._runtime.clock import now, roll
from kafkaio.client.client import Client
from kafkaio.config import ClientConfig, ProducerConfig, ProducerOptions
from kafkaio.errors import (
    BufferFull,
    ClosedError,
    ConfigurationError,
    InternalError,
    KafkaTimeout,
)
from kafkaio.producer.arguments import RecordMaker, check_destination
from kafkaio.producer.delivery import Delivery, settled
from kafkaio.producer.many import DeliveriesFailed, plan
from kafkaio.producer.room import Room
from kafkaio.producer.sender import Sender
from kafkaio.types import Headers, RecordMetadata, TopicPartition

__all__ = ["Producer", "ProducerStatistics"]

#: Bytes that may be taken in before the loop gets a turn: about a millisecond's work.
_BYTES_PER_TURN = 65_536
#: Seconds in which tasks that were cancelled must have ended.
_GRACE = 5.0


class _State(Enum):
    NEW = auto()
    STARTING = auto()
    RUNNING = auto()
    CLOSING = auto()
    CRASHED = auto()
    CLOSED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerStatistics:
    """A producer at one moment.

    Attributes:
        state: ``NEW``, ``STARTING``, ``RUNNING``, ``CLOSING``, ``CRASHED`` or
            ``CLOSED``.
        producer_id: the id that makes it idempotent, -1 while it has none.
        producer_epoch: the epoch of that id, -1 while it has none.
        waiting_for_room: calls of ``enqueue`` that wait for buffer room.
        buffer: what is buffered and on the wire.
    """

    state: str
    producer_id: int
    producer_epoch: int
    waiting_for_room: int
    buffer: AccumulatorStatistics


class Producer:
    """Writes records to Kafka.

    Records of one partition are written in the order of the calls that enqueued them,
    and, with idempotence (the default), none of them twice, whatever fails on the
    way. ``async with`` opens and closes it; `start` and `close` are the same by hand.
    It belongs to the event loop that started it.

    Args:
        bootstrap: ``"host:port,host2:port"``, a sequence of such, or a started
            `kafkaio.Client` to share, which `close` then leaves open.
        observer: an object with any of the methods of `kafkaio.Observer`; with a
            shared client, that client's observer is used and none may be given.
        options: see `kafkaio.ProducerConfig`. With a shared client, those of the
            client are taken from it.

    Raises:
        ConfigurationError: an option is unknown or impossible.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str] | Client = "localhost:9092",
        *,
        observer: object | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        if isinstance(bootstrap, Client):
            if observer is not None:
                raise ConfigurationError(
                    "observer: a producer on a shared client has that client's observer"
                )
            config = shared_config(bootstrap.config, options)
            self._set_up(config, bootstrap, owns_client=False)
        else:
            config = ProducerConfig.of(bootstrap, options)
            client = Client.from_config(config, observer)
            self._set_up(config, client, owns_client=True)

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, object], observer: object | None = None
    ) -> Self:
        """Make a producer of Kafka's dotted names, such as ``bootstrap.servers``."""
        return cls.from_config(ProducerConfig.from_properties(properties), observer)

    @classmethod
    def from_config(
        cls,
        config: ProducerConfig,
        observer: object | None = None,
        client: Client | None = None,
    ) -> Self:
        """Make a producer of options that were checked before.

        Args:
            config: the options.
            observer: as for the constructor.
            client: a client that the producer takes over: it starts and closes it.
        """
        producer = cls.__new__(cls)
        client = client or Client.from_config(config, observer)
        producer._set_up(config, client, owns_client=True)
        return producer

    def _set_up(
        self, config: ProducerConfig, client: Client, *, owns_client: bool
    ) -> None:
        self.config = config
        self._client = client
        self._owns_client = owns_client
        self._state = _State.NEW
        self._failure: Exception | None = None
        self._identity = ProducerIdentity() if config.enable_idempotence else None
        self._accumulator = make_accumulator(config, self._identity, self._lost)
        self._room = Room(self._accumulator, config.max_block_ms / 1000)
        self._make = RecordMaker(config).make
        self._sender: Sender | None = None
        self._undo: list[Callable[[], None]] = []
        self._closed = asyncio.Event()

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

    # ---- life ----------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

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
        if self._state is not _State.NEW:
            raise ClosedError(f"{self!r} cannot be started again")
        self._state = _State.STARTING
        client = self._client
        try:
            if self._owns_client:
                await client.start(timeout)
            sender = Sender(
                client, self.config, self._accumulator, self._identity, self._room
            )
            sender.on_end = self._sender_ended
            sender.start()
            self._sender = sender
            self._undo.append(client.add_metadata_listener(sender.metadata_changed))
            self._undo.append(client.add_crash_listener(self._crashed))
            sender.metadata_changed(client.cluster)
            self._state = _State.RUNNING
        except BaseException:
            await self.close(timeout=0)
            raise

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Send what was enqueued, then end. May be called again, and by several.

        From the call on, nothing more is taken in. When it returns, every delivery
        is done. If the call is cancelled, what is not acknowledged fails at once.

        Args:
            timeout: seconds to wait for acknowledgements; what has none by then
                fails with ClosedError, though it may have been written. By default
                ``delivery_timeout_ms`` is the limit, as for every record.
        """
        if self._state in {_State.CLOSING, _State.CLOSED}:
            await self._closed.wait()
            return
        was_running = self._state is _State.RUNNING
        self._state = _State.CLOSING
        self._room.fail(self._why_closed())
        try:
            if was_running and timeout != 0:
                with anyio.move_on_after(timeout):
                    await self._flush()
        finally:
            self._abandon()
            try:
                with anyio.CancelScope(shield=True):
                    await self._end()
            finally:
                self._state = _State.CLOSED
                self._closed.set()

    def _abandon(self) -> None:
        """Fail what is left, and begin to end the tasks."""
        for undo in self._undo:
            undo()
        self._undo.clear()
        self._accumulator.fail_all(self._not_sent)
        if self._sender is not None:
            self._sender.stop()
            self._client.watch_topics(self._sender, None)

    async def _end(self) -> None:
        if self._sender is not None:
            with anyio.move_on_after(_GRACE):
                await self._sender.stopped()
        if self._owns_client:
            await self._client.close()

    def _crashed(self, cause: BaseException) -> None:
        if self._state not in {_State.RUNNING, _State.CLOSING}:
            return
        error = InternalError(
            f"a background task of the producer {self.config.client_id!r} crashed: "
            f"{type(cause).__name__}: {cause}"
        )
        error.__cause__ = cause
        self._give_up(error)

    def _sender_ended(self) -> None:
        if self._state is _State.RUNNING:
            self._give_up(ClosedError("the producer's client was closed"))

    def _give_up(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
        if self._state is _State.RUNNING:
            self._state = _State.CRASHED
        self._room.fail(self._failure)
        self._accumulator.fail_all(lambda _: error)

    def _why_closed(self) -> Exception:
        if self._failure is not None:
            return self._failure
        if self._state is _State.NEW:
            return ClosedError(
                "the producer is not started: use `async with` or start()"
            )
        return ClosedError(f"the producer {self.config.client_id!r} is closed")

    def _not_sent(self, batch: ProduceBatch | None) -> Exception:
        if batch is None or not batch.attempts:
            how = "before the record was sent"
        else:
            how = "before the record was acknowledged; it may have been written"
        error = ClosedError(f"the producer was closed {how}")
        if batch is not None:
            error.__cause__ = batch.cause
        return error

    def _lost(self, receipt: Receipt, count: int) -> None:
        assert receipt.error is not None
        tp = TopicPartition(receipt.topic, receipt.partition)
        self._client.observer.delivery_lost(tp, receipt.error, count)

    # ---- producing -----------------------------------------------------------------

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
        delivery = await self.enqueue(
            topic,
            value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            partition=partition,
        )
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
        check_destination(topic, partition)
        record = self._make(key, value, headers, timestamp)
        return await self._enqueue(topic, partition, record)

    async def _enqueue(
        self, topic: str, partition: int | None, record: PlainRecord
    ) -> Delivery:
        self._check_running()
        accumulator = self._accumulator
        size = accumulator.size_of(record)
        if accumulator.fresh_bytes >= _BYTES_PER_TURN:
            # A loop that only enqueues would otherwise fill the buffer before the
            # sender, or anybody else, gets a turn.
            await asyncio.sleep(0)
            self._check_running()
        if not self._room.try_reserve(size):
            self._wake()
            await self._room.reserve(size)
        try:
            self._check_running()
        except BaseException:
            accumulator.release(size)
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
        if self._state is not _State.RUNNING:
            raise self._why_closed()
        check_destination(topic, partition)
        record = self._make(key, value, headers, timestamp)
        size = self._accumulator.size_of(record)
        if not self._room.try_reserve(size):
            self._wake()
            raise BufferFull(
                f"no room for {size} bytes in buffer_memory="
                f"{self.config.buffer_memory}; {len(self._room)} calls wait for room"
            )
        return self._take_in(topic, partition, record, size)

    def _take_in(
        self, topic: str, partition: int | None, record: PlainRecord, size: int
    ) -> Delivery:
        accumulator = self._accumulator
        receipt = accumulator.append_reserved(topic, partition, record, now(), size)
        if accumulator.has_news:
            self._wake()
        return Delivery(receipt, receipt.count - 1, record[0])

    async def send_many(
        self, topic: str, values: Sequence[object]
    ) -> list[RecordMetadata]:
        """Write several records and wait until all of them are acknowledged.

        All are checked before the first is taken in. If the call is cancelled, those
        taken in may still be written.

        Args:
            topic: name of the topic.
            values: values as `send` takes them, or `kafkaio.NewRecord` objects.

        Returns:
            Where each record was written, in the order of ``values``.

        Raises:
            TypeError: a value is of the wrong type; nothing was enqueued.
            ValueError: a value is impossible; nothing was enqueued.
            RecordTooLarge: a record can never fit; nothing was enqueued.
            DeliveriesFailed: an exception group of what befell the records that
                failed; it tells which they are, and what became of the others.
            ClosedError: the producer is not started, or closed.
        """
        self._check_running()
        planned = plan(topic, values, self._make)
        for _, record in planned:
            self._accumulator.size_of(record)
        deliveries: list[Delivery] = []
        failures: dict[int, Exception] = {}
        for index, (partition, record) in enumerate(planned):
            try:
                deliveries.append(await self._enqueue(topic, partition, record))
            except Exception as error:  # noqa: BLE001 - told with the others
                rest = range(index, len(planned))
                failures.update(dict.fromkeys(rest, error))
                break
        done: dict[int, RecordMetadata] = {}
        for index, delivery in enumerate(deliveries):
            try:
                done[index] = await delivery
            except Exception as error:  # noqa: BLE001 - told with the others
                failures[index] = error
        if failures:
            raise DeliveriesFailed.of(failures, done)
        return list(done.values())

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

    async def _flush(self) -> None:
        receipts = self._accumulator.seal()
        self._wake()
        await settled(receipts)

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
        view = await self._client.wait_for_topics([topic], timeout)
        return tuple(found.partition for found in view.partitions(topic))

    def _check_running(self) -> None:
        if self._state is not _State.RUNNING:
            raise self._why_closed()

    def _wake(self) -> None:
        if self._sender is not None:
            self._sender.wake()


def shared_config(
    shared: ClientConfig, options: Mapping[str, object]
) -> ProducerConfig:
    """Make the options of a producer on a client that has its own already."""
    inherited = {f.name: getattr(shared, f.name) for f in fields(ClientConfig)}
    servers = inherited.pop("bootstrap_servers")
    named = [f"[{h}]:{port}" if ":" in h else f"{h}:{port}" for h, port in servers]
    return ProducerConfig.of(named, {**inherited, **options})


def make_accumulator(
    config: ProducerConfig,
    identity: ProducerIdentity | None,
    on_lost: Callable[[Receipt, int], None],
) -> Accumulator:
    """Make the accumulator that a producer's options ask for."""
    codec = Compression[config.compression_type.upper()]
    compressor = Compressor(codec, config.compression_level)

    def new_builder(target_size: int) -> BatchBuilder:
        return BatchBuilder(target_size=target_size, compressor=compressor)

    limits = Limits(
        batch_size=config.batch_size,
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
    return Accumulator(limits, chooser, identity, new_builder, on_lost)
