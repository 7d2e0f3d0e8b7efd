"""`AIOKafkaProducer`, on `kafkaio.Producer`."""

from __future__ import annotations

import asyncio
import math
import ssl
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias

import kafkaio
from kafkaio._public import public
from kafkaio.aiokafka import errors
from kafkaio.aiokafka._options import check_loop, deprecated_loop, warn_unclosed
from kafkaio.aiokafka._translation import made, translated, translating
from kafkaio.aiokafka.abc import AbstractTokenProvider
from kafkaio.aiokafka.client import AIOKafkaClient
from kafkaio.aiokafka.partitioner import DefaultPartitioner
from kafkaio.aiokafka.producer._futures import (
    BatchFuture,
    Futures,
    Sent,
    Settle,
    metadata_of,
    settle,
    settle_without,
)
from kafkaio.aiokafka.producer._transactions import (
    NativeProducer,
    NativeTransaction,
    Transactions,
    WrongState,
)
from kafkaio.aiokafka.producer.message_accumulator import (
    BatchBuilder,
    records_of,
    timestamp_of,
)
from kafkaio.aiokafka.structs import OffsetAndMetadata, RecordMetadata
from kafkaio.aiokafka.util import commit_structure_validate

if TYPE_CHECKING:
    from kafkaio.aiokafka.cluster import ClusterMetadata

__all__ = ["AIOKafkaProducer", "TransactionContext"]

#: Stands for ``acks`` that was not given.
_missing = object()

_DEFAULT_PARTITIONER = DefaultPartitioner()
#: Chooses the partition of a record; see `AIOKafkaProducer`.
Partitioner: TypeAlias = Callable[[bytes | None, list[int], list[int]], int]
#: Topics that a producer remembers as described.
_MOST_TOPICS: Final = 10_000
_OUTSIDE: Final = "Can't send messages while not in transaction"
#: Milliseconds that a record of an idempotent producer has at least. aiokafka sets no
#: limit for it, so that its futures may wait for ever.
_IDEMPOTENT_MS: Final = 120_000


@public("kafkaio.aiokafka")
class AIOKafkaProducer:
    """Writes records to Kafka, with the names of aiokafka.

    Nothing happens in the constructor. `start` connects; `stop` sends what is left, and
    has to be called in the end. ``async with`` does both.

    Records of one partition are written in the order of the calls that sent them, also
    when a request has to be repeated. Without idempotence a repeated request may write
    its records twice.

    ``request_timeout_ms`` bounds one request, the wait for room in the buffer, and,
    without idempotence, the time that a record has. With idempotence, or a
    ``transactional_id``, a record is sent again until it is acknowledged.

    Args:
        loop: the event loop. Deprecated: the running one is used.
        bootstrap_servers: ``"host:port"``, several of these with commas, or a list.
        client_id: name that brokers see; ``aiokafka-producer-N`` by default.
        metadata_max_age_ms: metadata is fetched again after this time.
        request_timeout_ms: see above.
        api_version: deprecated; has no effect.
        acks: replicas that must have a record before it is acknowledged: ``"all"``
            (or -1), 1 or 0. By default 1, and ``"all"`` with idempotence.
        key_serializer: turns keys into bytes; called for None, too.
        value_serializer: turns values into bytes; called for None, too.
        compression_type: ``"gzip"``, ``"snappy"``, ``"lz4"``, ``"zstd"`` or None.
        max_batch_size: most bytes of a batch, before compression.
        partitioner: called with the serialized key, all partitions and those that have
            a leader; returns the partition of a record that names none.
        max_request_size: most bytes of a request, and so of a record.
        linger_ms: longest time that a batch waits for more records.
        retry_backoff_ms: first pause between retries.
        security_protocol: ``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``.
        ssl_context: TLS settings, needed with ``SSL`` and ``SASL_SSL``.
        connections_max_idle_ms: an unused connection is closed after this time; None
            for never.
        enable_idempotence: repeated requests write no record twice (KIP-98).
        transactional_id: name under which transactions run. Implies idempotence.
        transaction_timeout_ms: time after which the brokers abort a transaction.
        sasl_mechanism: ``PLAIN``, ``SCRAM-SHA-256``, ``SCRAM-SHA-512``, ``GSSAPI`` or
            ``OAUTHBEARER``.
        sasl_plain_password: password for PLAIN and SCRAM.
        sasl_plain_username: user for PLAIN and SCRAM.
        sasl_kerberos_service_name: name of the brokers' principal, for GSSAPI.
        sasl_kerberos_domain_name: not supported.
        sasl_oauth_token_provider: returns the tokens, for OAUTHBEARER.

    Attributes:
        client: the client that the producer uses.

    Raises:
        ValueError: an option is impossible, or not supported.
        RuntimeError: no event loop is running, and none was given.
    """

    _PRODUCER_CLIENT_ID_SEQUENCE = 0

    # None until the constructor has succeeded, for `__del__`. Others read it, too.
    _closed: bool | None = None
    _source_traceback: traceback.StackSummary | None = None
    # None until `start` has succeeded.
    _producer: NativeProducer | None = None
    _native: kafkaio.Client | None = None
    _transactions: Transactions | None = None

    def __init__(  # noqa: PLR0913 - the options of aiokafka
        self,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        bootstrap_servers: str | Sequence[str] = "localhost",
        client_id: str | None = None,
        metadata_max_age_ms: int = 300_000,
        request_timeout_ms: int = 40_000,
        api_version: str | None = None,
        acks: object = _missing,
        key_serializer: Callable[..., object] | None = None,
        value_serializer: Callable[..., object] | None = None,
        compression_type: str | None = None,
        max_batch_size: int = 16_384,
        partitioner: Partitioner = _DEFAULT_PARTITIONER,
        max_request_size: int = 1_048_576,
        linger_ms: float = 0,
        retry_backoff_ms: int = 100,
        security_protocol: str = "PLAINTEXT",
        ssl_context: ssl.SSLContext | None = None,
        connections_max_idle_ms: int | None = 540_000,
        enable_idempotence: bool = False,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
        sasl_mechanism: str = "PLAIN",
        sasl_plain_password: str | None = None,
        sasl_plain_username: str | None = None,
        sasl_kerberos_service_name: str = "kafka",
        sasl_kerberos_domain_name: str | None = None,
        sasl_oauth_token_provider: AbstractTokenProvider | None = None,
    ) -> None:
        self._loop = deprecated_loop(loop)
        if self._loop.get_debug():
            self._source_traceback = traceback.extract_stack(sys._getframe(1))
        options = _options(
            acks=acks,
            compression_type=compression_type,
            enable_idempotence=enable_idempotence,
            linger_ms=linger_ms,
            max_batch_size=max_batch_size,
            max_request_size=max_request_size,
            request_timeout_ms=request_timeout_ms,
            transactional_id=transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
        )
        AIOKafkaProducer._PRODUCER_CLIENT_ID_SEQUENCE += 1
        if client_id is None:
            client_id = f"aiokafka-producer-{self._PRODUCER_CLIENT_ID_SEQUENCE}"
        self.client: AIOKafkaClient = AIOKafkaClient(
            loop=self._loop,
            bootstrap_servers=bootstrap_servers,
            client_id=client_id,
            metadata_max_age_ms=metadata_max_age_ms,
            request_timeout_ms=request_timeout_ms,
            api_version=api_version,
            retry_backoff_ms=retry_backoff_ms,
            security_protocol=security_protocol,
            ssl_context=ssl_context,
            connections_max_idle_ms=connections_max_idle_ms,
            sasl_mechanism=sasl_mechanism,
            sasl_plain_username=sasl_plain_username,
            sasl_plain_password=sasl_plain_password,
            sasl_kerberos_service_name=sasl_kerberos_service_name,
            sasl_kerberos_domain_name=sasl_kerberos_domain_name,
            sasl_oauth_token_provider=sasl_oauth_token_provider,
        )
        self._options = options
        self._request_timeout_ms = request_timeout_ms
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._partitioner = partitioner
        # kafkaio has the default rules itself, and quicker.
        self._chooses = not isinstance(partitioner, DefaultPartitioner)
        self._settle: Settle = settle if options["acks"] else settle_without
        self._futures = Futures()
        # Topics that the metadata had once: asked before every record.
        self._described: set[str] = set()
        self._closed = False

    # Warns as aiokafka does. The parts end by themselves when they are collected.
    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if self._closed is False:
            warn_unclosed(self, "producer", self._loop, self._source_traceback, _warn)

    async def start(self) -> None:
        """Connect to the cluster; returns when a broker has described it.

        The bootstrap servers are tried again and again for ``request_timeout_ms``. With
        a ``transactional_id``, the producer that used it before is fenced, and its open
        transaction is aborted. If the call fails, it may be made again.

        Raises:
            KafkaConnectionError: no bootstrap server answered in time, or they refuse
                the login: then it is an AuthenticationFailedError, too.
            TransactionalIdAuthorizationFailed: the principal may not use the
                ``transactional_id``.
            KafkaTimeoutError: the transaction coordinator did not answer in time.
            ProducerClosed: the producer was stopped.
        """
        check_loop(self._loop)
        if self._closed:
            raise errors.ProducerClosed("the producer was stopped")
        if self._producer is not None:
            return
        await self.client.bootstrap()
        native = self.client.native
        assert native is not None
        producer = NativeProducer(native, **self._options)
        with translating(closed=errors.ProducerClosed):
            await producer.start(timeout=self._request_timeout_ms / 1000)
        self._native, self._producer = native, producer
        if self._options.get("transactional_id") is not None:
            self._transactions = Transactions(producer)

    async def stop(self) -> None:
        """Send what was taken in, then close all connections. May be called again.

        An open transaction is aborted. Records that are not acknowledged after twice
        ``request_timeout_ms`` fail with ProducerClosed.

        If the call is cancelled, what is not acknowledged fails at once.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self._producer is not None:
                await self._producer.close(timeout=2 * self._request_timeout_ms / 1000)
        finally:
            await self.client.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        await self.stop()

    async def flush(self) -> None:
        """Wait until all records that were taken in before are acknowledged or failed.

        Their futures are done then. Errors of records are raised by their futures.
        """
        if self._producer is None or self._closed:
            return
        with translating(closed=errors.ProducerClosed):
            await self._producer.flush()

    async def partitions_for(self, topic: str) -> set[int]:
        """Return the partitions of a topic.

        Raises:
            UnknownTopicOrPartitionError: no broker described the topic within
                ``request_timeout_ms``.
            TopicAuthorizationFailedError: the principal may not describe it.
        """
        if self._producer is None:
            raise self._why_unusable()
        try:
            with translating(closed=errors.ProducerClosed):
                return {*await self._producer.partitions_for(topic)}
        except (kafkaio.RequestTimeout, kafkaio.NetworkError) as error:
            # aiokafka does not say whether a broker has answered.
            raise made(errors.UnknownTopicOrPartitionError, error) from error

    # ---- records ---------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        partition: int | None = None,
        timestamp_ms: float | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Take a record in; it is sent in the background.

        Waits for the topic's metadata and for room in the buffer only. If the call is
        cancelled, the record is not sent. To cancel the future does nothing to it.

        Args:
            topic: name of the topic.
            value: bytes, or what ``value_serializer`` takes; None for a tombstone,
                which needs a key.
            key: bytes, or what ``key_serializer`` takes; None for no key.
            partition: number of the partition; the partitioner chooses it by default.
            timestamp_ms: milliseconds since the Unix epoch; now by default.
            headers: pairs of name and value.

        Returns:
            A future of the record's `RecordMetadata`; with ``acks=0`` of None.

        Raises:
            UnknownTopicOrPartitionError: no broker described the topic within
                ``request_timeout_ms``.
            KafkaTimeoutError: there was no room in the buffer for
                ``request_timeout_ms``.
            MessageSizeTooLargeError: the record is larger than ``max_request_size``.
            IllegalOperation: the producer is transactional, and no transaction is open.
            ProducerClosed: the producer was stopped.
            AssertionError: neither a key nor a value is given, or the topic has no such
                partition.
            TypeError: an argument has the wrong type.
            Exception: a serializer or the partitioner raised it.
        """
        delivery = await self._enqueue(
            topic, value, key, partition, timestamp_ms, headers
        )
        future: Sent = self._loop.create_future()
        self._futures.add(future, delivery, self._settle)
        return future

    async def send_and_wait(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        partition: int | None = None,
        timestamp_ms: float | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
    ) -> RecordMetadata:
        """Write a record, and wait until it is acknowledged.

        The arguments are those of `send`. If the call is cancelled while it waits for
        the acknowledgement, the record may be written.

        Returns:
            Where the record was written; with ``acks=0`` None.

        Raises:
            KafkaTimeoutError: it was not acknowledged in time, see the class.
            KafkaError: it was refused, for the reason given; and what `send` raises.
        """
        if type(self).send is not _SEND or "send" in self.__dict__:
            # Instrumentations, subclasses and tests replace `send`, and expect to see
            # these records, too.
            future = await self.send(
                topic, value, key, partition, timestamp_ms, headers
            )
            return await future
        delivery = await self._enqueue(
            topic, value, key, partition, timestamp_ms, headers
        )
        try:
            at = await delivery
        except kafkaio.KafkaError as error:
            raise translated(error, closed=errors.ProducerClosed) from error
        if self._settle is settle_without:
            return None  # type: ignore[return-value]  # see above
        return metadata_of(at, delivery)

    async def _enqueue(
        self,
        topic: str,
        value: object,
        key: object,
        partition: int | None,
        timestamp: float | None,
        headers: Sequence[tuple[str, bytes | None]] | None,
    ) -> kafkaio.Delivery:
        if value is None and key is None:
            raise WrongState("Need at least one: key or value")
        if topic not in self._described:
            await self._describe(topic)
        if partition is not None:
            self._check_partition(topic, partition)
        # Each condition saves a call for nearly every record.
        transactions = self._transactions
        target = self._producer if transactions is None else transactions.open(_OUTSIDE)
        assert target is not None
        if self._key_serializer is not None:
            key = self._key_serializer(key)
        if self._value_serializer is not None:
            value = self._value_serializer(value)
        if partition is None and self._chooses:
            partition = await self._chosen(topic, key)
        if timestamp is not None and type(timestamp) is not int:
            timestamp = timestamp_of(timestamp)
        try:
            return await target.enqueue(
                topic,
                value,
                key=key,
                headers=headers or (),
                timestamp=timestamp,
                partition=partition,
            )
        except kafkaio.KafkaError as error:
            raise translated(error, closed=errors.ProducerClosed) from error

    def _why_unusable(self) -> errors.KafkaError:
        if self._closed:
            return errors.ProducerClosed("the producer was stopped")
        return errors.IllegalStateError("the producer is not started")

    async def _describe(self, topic: str) -> None:
        """Wait until the metadata has a topic; see `partitions_for`."""
        await self.partitions_for(topic)
        if len(self._described) >= _MOST_TOPICS:
            self._described.clear()
        self._described.add(topic)

    async def _chosen(self, topic: str, key: object) -> int:
        """Return what the partitioner chooses for a serialized key."""
        assert self._native is not None
        if not self._native.cluster.partition_count(topic):
            await self.partitions_for(topic)  # the metadata has forgotten it
        return self._partition(topic, None, key, None, key, None)

    def _check_partition(self, topic: str, partition: int) -> None:
        assert self._native is not None
        known = self._native.cluster.by_name.get(topic)
        # Metadata forgets a topic that was not used for a while. kafkaio finds it again
        # when it sends the record, and then checks the partition, too.
        if known is not None and known.partitions and partition not in known.partitions:
            raise WrongState(f"Unrecognized partition: {topic} has no {partition!r}")

    def _partition(
        self,
        topic: str,
        partition: int | None,
        key: object,
        value: object,
        serialized_key: object,
        serialized_value: object,
    ) -> int:
        """Return the partition that a record of a known topic goes to.

        Instrumentations call it. For a record without a key and a partition, the
        default partitioner returns any: kafkaio chooses when it takes the record in.
        """
        del key, value, serialized_value
        if partition is not None:
            self._check_partition(topic, partition)
            return partition
        assert self._native is not None
        known = self._native.cluster.partitions(topic)
        if known:
            every = [each.partition for each in known]
            available = [each.partition for each in known if each.leader >= 0]
        else:
            # Instrumentations come before the first record, and ask the client.
            cluster = self.client.cluster
            every = sorted(cluster.partitions_for_topic(topic) or ())
            available = sorted(cluster.available_partitions_for_topic(topic) or ())
        # `send` checks what it has as a key.
        return self._partitioner(serialized_key, every, available)  # type: ignore[arg-type]

    @property
    def _metadata(self) -> ClusterMetadata:
        return self.client.cluster

    # ---- batches ---------------------------------------------------------------------

    def create_batch(self) -> BatchBuilder:
        """Return an empty batch of ``max_batch_size``, to be sent by `send_batch`."""
        return BatchBuilder(
            self._options["batch_size"],
            self._options["compression_type"],
            is_transactional=self._options.get("transactional_id") is not None,
            key_serializer=self._key_serializer,
            value_serializer=self._value_serializer,
        )

    async def send_batch(
        self, batch: BatchBuilder, topic: str, *, partition: int | None
    ) -> asyncio.Future[RecordMetadata]:
        """Take the records of a batch in; they are sent in the background.

        They are written in their order, and no record that is sent meanwhile comes
        between them unless the call has to wait for room in the buffer. They need not
        share a record batch of the log with each other, or have one for themselves; so
        some may be written while others fail. The batch is closed by the call.

        Args:
            batch: the batch, from `create_batch`.
            topic: name of the topic.
            partition: number of the partition; None lets the partitioner choose one,
                as for a record without a key.

        Returns:
            A future of the `RecordMetadata` of the first record, when all are
            acknowledged; of None for an empty batch, and with ``acks=0``. If a record
            fails, its error. To cancel the future does nothing to the records.

        Raises:
            KafkaError: as `send`; some of the records may be taken in.
            AssertionError: the topic has no such partition.
        """
        if self._closed:
            raise self._why_unusable()
        if topic not in self._described:
            await self._describe(topic)
        partition = self._partition(topic, partition, None, None, None, None)
        transactions = self._transactions
        target = self._producer if transactions is None else transactions.open(_OUTSIDE)
        assert target is not None
        future: Sent = self._loop.create_future()
        with translating(closed=errors.ProducerClosed):
            deliveries = [
                await _taken(target, topic, partition, record)
                for record in records_of(batch)
            ]
        if not deliveries:
            future.set_result(None)  # type: ignore[arg-type]  # see above
            return future
        whole = BatchFuture(future, deliveries, self._settle)
        for delivery in deliveries:
            self._futures.add(future, delivery, whole.record_settled)
        return future

    # ---- transactions ----------------------------------------------------------------

    def _transactional(self) -> Transactions:
        if self._options.get("transactional_id") is None:
            raise errors.IllegalOperation(
                "You need to configure transaction_id to use transactions"
            )
        if self._transactions is None or self._closed:
            raise self._why_unusable()
        return self._transactions

    async def begin_transaction(self) -> None:
        """Begin a transaction; `commit_transaction` or `abort_transaction` must follow.

        Records that are sent until then are part of it. If the call is cancelled,
        nothing was begun.

        Raises:
            IllegalOperation: the producer has no ``transactional_id``, or a transaction
                is open: then it is an AssertionError, too.
            ProducerFenced: a newer producer has the ``transactional_id``.
            KafkaTimeoutError: the end of the transaction before is not known after
                ``request_timeout_ms``.
        """
        await self._transactional().begin()

    async def commit_transaction(self) -> None:
        """Write what was sent, and commit the transaction.

        If the call is cancelled before the brokers were asked to commit, the
        transaction is aborted; later the commit goes on in the background.

        Raises:
            IllegalOperation: no transaction is open (an AssertionError, too), or the
                producer has no ``transactional_id``.
            ProducerFenced: a newer producer has the ``transactional_id``.
            KafkaTimeoutError: the commit was not acknowledged within
                ``request_timeout_ms``. It goes on in the background.
            KafkaError: a record or an offset has failed, and the transaction is
                aborted. It is the error of the record, and a
                `kafkaio.TransactionAborted`.
        """
        await self._transactional().commit()

    async def abort_transaction(self) -> None:
        """Abort the transaction: nothing of it becomes visible.

        If the call is cancelled, the abort goes on in the background.

        Raises:
            IllegalOperation: no transaction is open (an AssertionError, too), or the
                producer has no ``transactional_id``.
            ProducerFenced: a newer producer has the ``transactional_id``.
            RequestTimedOutError: it was not acknowledged within ``request_timeout_ms``.
                It goes on in the background.
            KafkaTimeoutError: a commit of the transaction was not acknowledged, and
                goes on.
        """
        await self._transactional().abort()

    def transaction(self) -> TransactionContext:
        """Return a context: ``async with`` begins a transaction, and ends it.

        It is committed at the end of the block, and aborted if the block raises.
        """
        return TransactionContext(self)

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[
            kafkaio.TopicPartition, int | tuple[int, str] | OffsetAndMetadata
        ],
        group_id: str,
    ) -> None:
        """Commit offsets of a group with the transaction.

        The group is named and not the member, so the brokers do not check that the
        consumer is still a member of it: a transaction that has taken long may commit
        offsets of partitions that belong to another member by now.

        Args:
            offsets: the offsets of the next records to read, with metadata or without.
            group_id: name of the group.

        Raises:
            IllegalOperation: no transaction is open, or the producer has no
                ``transactional_id``.
            ValueError: no group or no offset is given.
            GroupAuthorizationFailedError: the principal may not commit for the group.
            KafkaError: the offsets were refused; the transaction can only be aborted.
        """
        transactions = self._transactional()
        transactions.open("Not in the middle of a transaction")
        if not group_id or not isinstance(group_id, str):
            raise ValueError(group_id)
        await transactions.send_offsets(commit_structure_validate(offsets), group_id)


_SEND: Final = AIOKafkaProducer.send


class TransactionContext:
    """A transaction of a producer as a context; see `AIOKafkaProducer.transaction`."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._producer = producer

    async def __aenter__(self) -> Self:
        await self._producer.begin_transaction()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        transactions = self._producer._transactions
        if exc_value is None:
            await self._producer.commit_transaction()
        elif transactions is not None and not self._producer._closed:
            await transactions.abort_after(exc_value)


async def _taken(
    target: NativeProducer | NativeTransaction,
    topic: str,
    partition: int,
    record: kafkaio.NewRecord[bytes, bytes],
) -> kafkaio.Delivery:
    try:
        # Without a turn of the event loop, so that nothing comes between two records.
        return target.enqueue_nowait(
            topic,
            record.value,
            key=record.key,
            headers=record.headers,
            timestamp=record.timestamp,
            partition=partition,
        )
    except kafkaio.BufferFull:
        return await target.enqueue(
            topic,
            record.value,
            key=record.key,
            headers=record.headers,
            timestamp=record.timestamp,
            partition=partition,
        )


def _options(  # noqa: PLR0913 - by name, from one place
    *,
    acks: object,
    compression_type: str | None,
    enable_idempotence: bool,
    linger_ms: float,
    max_batch_size: int,
    max_request_size: int,
    request_timeout_ms: int,
    transactional_id: str | None,
    transaction_timeout_ms: int,
) -> kafkaio.ProducerOptions:
    """Return the options of kafkaio that those of aiokafka stand for.

    Raises:
        ValueError: an option is impossible.
    """
    is_idempotent = enable_idempotence or transactional_id is not None
    delivery_ms = request_timeout_ms + math.ceil(linger_ms)
    options: kafkaio.ProducerOptions = {
        "acks": _acks(acks, is_idempotent=is_idempotent),
        "enable_idempotence": is_idempotent,
        "compression_type": _compression(compression_type),
        "batch_size": max_batch_size,
        "max_request_size": max_request_size,
        "linger_ms": linger_ms,
        "max_block_ms": request_timeout_ms,
        "delivery_timeout_ms": max(_IDEMPOTENT_MS, delivery_ms)
        if is_idempotent
        else delivery_ms,
        # Without sequence numbers, two requests in flight may change the order of
        # records, which aiokafka keeps.
        "max_in_flight_requests_per_connection": 5 if is_idempotent else 1,
    }
    if transactional_id is not None:
        options["transactional_id"] = transactional_id
        options["transaction_timeout_ms"] = transaction_timeout_ms
    # Checked here, because `start` is late for a wrong option.
    kafkaio.ProducerConfig.of(
        "localhost:9092", {**options, "request_timeout_ms": request_timeout_ms}
    )
    return options


def _compression(
    name: str | None,
) -> Literal["none", "gzip", "snappy", "lz4", "zstd"]:
    match name:
        case None:
            return "none"
        case "gzip" | "snappy" | "lz4" | "zstd":
            return name
        case _:
            raise kafkaio.ConfigurationError("Invalid compression type!")


def _acks(acks: object, *, is_idempotent: bool) -> Literal["all", 0, 1]:
    if acks is _missing:
        return "all" if is_idempotent else 1
    if acks in ("all", -1):
        return "all"
    if acks not in (0, 1):
        raise kafkaio.ConfigurationError("Invalid ACKS parameter")
    if is_idempotent:
        raise kafkaio.ConfigurationError(
            f"acks={acks} not supported if enable_idempotence=True"
        )
    return 1 if acks else 0
