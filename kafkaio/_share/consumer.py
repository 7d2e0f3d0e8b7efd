"""The share consumer: records of a share group, each acknowledged by itself (KIP-932).

`ShareConsumer` has every public method with its documentation. It checks arguments, and
delegates: to a `ShareCore` what concerns the group and the leaders, to `ShareReads`
what hands records out.
"""

from __future__ import annotations

import re
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from functools import partial
from typing import Self, Unpack, overload
from uuid import UUID

from kafkaio import _config
from kafkaio._arguments import count_of, seconds_of, type_name
from kafkaio._client.client import Client, cluster_of
from kafkaio._client.cluster import Cluster, with_client_id
from kafkaio._config import ShareConsumerConfig, with_functions
from kafkaio._config.signature import OptionsSignature
from kafkaio._consumer.parallel.dead_letter import DeadLetter
from kafkaio._consumer.parallel.handlers import observed
from kafkaio._consumer.reading.exclusive import UsedInHandler
from kafkaio._consumer.wanted import AnyTopics, Names, ReadSelection, Topics
from kafkaio._generic import Generic, K_co, V_co
from kafkaio._net.transport import Dial
from kafkaio._public import PropertySet, knows_other_clients, public
from kafkaio._records.batch import ShareRecord
from kafkaio._runtime.lifecycle import Closeable
from kafkaio._runtime.observer import observes
from kafkaio._share.core import ShareCore
from kafkaio._share.reading.iterators import ShareBatchIterator, ShareRecordIterator
from kafkaio._share.reading.reader import ShareReader
from kafkaio._share.reading.reads import ShareReads
from kafkaio._share.run import (
    FailedRecords,
    OnError,
    ShareRunner,
    check_on_error,
)
from kafkaio._share.statistics import ShareConsumerStatistics
from kafkaio._share.threaded.core import ThreadedShareCore
from kafkaio._share.threaded.reads import ThreadedReads
from kafkaio._topic import (
    AsyncDeserializer,
    DeserializerLike,
    PlainDeserializer,
    ReadableTopic,
)
from kafkaio.errors import ArgumentTypeError, KafkaError, Release
from kafkaio.types import Metric, TopicPartition


@public("kafkaio")
@knows_other_clients("__init__", "poll")
class ShareConsumer(Closeable, Generic[K_co, V_co]):
    """A member of a share group: a queue's consumer on Kafka (KIP-932).

    The records of a partition go to any number of members, each record to one of them.
    It is locked for that member until it is *accepted* (`ShareRecord.ack`), *released*
    (it is delivered again, to any member) or *rejected* (it is never delivered again),
    or until its lock ends: then it is delivered again. How often a record is delivered
    at most, how long a lock lasts and where a new group begins are configs of the group
    at the brokers; see `kafkaio.ShareConsumerConfig`. A record may be delivered more
    than once, so work on it must bear repetition. The order of records means nothing.

    ``ShareConsumer[str, Order]`` reads records with keys and values of these types.
    Type checkers infer them from the deserializers or the topics; `ShareConsumer` alone
    reads bytes and None.

    ``async with`` starts and closes it; `start` and `close` do the same by hand. A
    consumer that is collected while it is open gives a ResourceWarning. Only one task
    may read at a time, by an iterator, a poll or ``run``. Any task of the event loop
    may acknowledge.

    Nothing is accepted unless the program says so. Leaving a loop by ``break``, an
    exception or a cancellation releases the record that was handed out last, if the
    program has not decided about it. Records handed out before stay locked, and
    theirs who has them: their locks are renewed (``renew_locks``) for at most
    ``max_processing_ms``. With ``acknowledgement="implicit"``, asking for the next
    record (or batch, or poll, or `commit`) accepts what was handed out before and has
    no decision.

    While nobody reads, nothing is fetched, and records that were fetched ahead are
    given back at once: when an iterator is left, when ``run`` ends, and one second
    after a `poll` that no other one followed.

    Args:
        bootstrap_servers: ``"host:port,host2:port"``, a sequence of such strings, or a
            started `kafkaio.Client` to share, which `close` then leaves open.
        topics: topics to subscribe to: names, a pattern, or `Topic` objects, whose
            deserializers are used then.
        observer: an object with any of the methods of `kafkaio.Observer`, or a list of
            such objects. Not allowed with a shared client, which has its own.
        key_deserializer: turns the bytes of a key into an object: a function, or an
            object with the method ``deserialize``; see
            `kafkaio.serde.DeserializerLike`. Without it keys are bytes or None.
        value_deserializer: turns the bytes of a value into an object, likewise.
        options: see `kafkaio.ShareConsumerConfig`; ``group_id`` is required. The
            options of `kafkaio.ClientConfig` are not allowed with a shared client,
            which has them.

    Raises:
        ConfigurationError: an option is unknown, missing or invalid.
        ArgumentTypeError: an argument has the wrong type.
        ArgumentValueError: a topic has no name.
    """

    __signature__: OptionsSignature = OptionsSignature(ShareConsumerConfig)

    @overload
    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        topics: ReadableTopic[K_co, V_co] | Collection[ReadableTopic[K_co, V_co]],
        observer: object | None = None,
        **options: Unpack[_config.ShareConsumerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        topics: Names | None = None,
        observer: object | None = None,
        key_deserializer: (
            AsyncDeserializer[K_co] | PlainDeserializer[K_co] | None
        ) = None,
        value_deserializer: AsyncDeserializer[V_co],
        **options: Unpack[_config.ShareConsumerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        topics: Names | None = None,
        observer: object | None = None,
        key_deserializer: AsyncDeserializer[K_co],
        value_deserializer: DeserializerLike[V_co] | None = None,
        **options: Unpack[_config.ShareConsumerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        topics: Names | None = None,
        observer: object | None = None,
        key_deserializer: DeserializerLike[K_co] | None = None,
        value_deserializer: DeserializerLike[V_co] | None = None,
        **options: Unpack[_config.ShareConsumerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: ShareConsumer[object, object],
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        topics: Collection[str | ReadableTopic[object, object]],
        observer: object | None = None,
        key_deserializer: DeserializerLike[K_co] | None = None,
        value_deserializer: DeserializerLike[V_co] | None = None,
        **options: Unpack[_config.ShareConsumerOptions],
    ) -> None: ...

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        topics: AnyTopics | None = None,
        observer: object | None = None,
        key_deserializer: DeserializerLike[object] | None = None,
        value_deserializer: DeserializerLike[object] | None = None,
        **options: Unpack[_config.ShareConsumerOptions],
    ) -> None:
        deserializers = {
            "key_deserializer": key_deserializer,
            "value_deserializer": value_deserializer,
        }
        given = with_functions(options, deserializers)
        # A client that nobody refers to any more would end its cluster.
        self._client = client = (
            bootstrap_servers if isinstance(bootstrap_servers, Client) else None
        )
        if isinstance(bootstrap_servers, Client):
            config = ShareConsumerConfig.sharing(
                bootstrap_servers.config, given, observer
            )
            cluster = cluster_of(bootstrap_servers)
        else:
            config = ShareConsumerConfig.of(bootstrap_servers, given)
            config = with_client_id(config, "share-consumer", config.group_id)
            cluster = Cluster(config, observer)
        wanted = ReadSelection.of(topics, None)
        self._set_up(cluster, config, wanted, owns_cluster=client is None)

    @classmethod
    def from_config(
        cls,
        config: ShareConsumerConfig,
        *,
        topics: Topics[K_co, V_co] | None = None,
        observer: object | None = None,
        dial: Dial | None = None,
    ) -> Self:
        """Make a share consumer from options that were checked before.

        Type checkers take the types of keys and values from the class that this is
        called on: ``ShareConsumer[str, Order].from_config(...)``.

        Args:
            config: the options.
            topics: as for the constructor.
            observer: an object, or a list of objects, with methods of `Observer`.
            dial: opens connections; None for TCP and TLS.

        Raises:
            ArgumentTypeError: as for the constructor.
            ArgumentValueError: as for the constructor.
        """
        consumer = cls.__new__(cls)
        consumer._client = None
        wanted = ReadSelection.of(topics, None)
        config = with_client_id(config, "share-consumer", config.group_id)
        cluster = Cluster(config, observer, dial)
        consumer._set_up(cluster, config, wanted, owns_cluster=True)
        return consumer

    @classmethod
    def from_properties(
        cls,
        properties: Mapping[str, object],
        *,
        topics: Topics[K_co, V_co] | None = None,
        observer: object | None = None,
        key_deserializer: DeserializerLike[K_co] | None = None,
        value_deserializer: DeserializerLike[V_co] | None = None,
    ) -> Self:
        """Make a share consumer from the dotted names of Java and librdkafka.

        Java's ``share.acknowledgement.mode``, ``share.acquire.mode`` and
        ``max.poll.records`` are among them; the last one is ``max_in_flight`` here.
        Type checkers take the types of keys and values from the class that this is
        called on: ``ShareConsumer[str, Order].from_properties(...)``.

        Args:
            properties: options by names such as ``bootstrap.servers``.
            topics: as for the constructor.
            observer: an object, or a list of objects, with methods of `Observer`.
            key_deserializer: as for the constructor.
            value_deserializer: as for the constructor.

        Raises:
            ConfigurationError: a name is unknown, has no meaning in a share group (the
                message says where it is set), or a value is invalid.
            ArgumentTypeError: as for the constructor.
            ArgumentValueError: as for the constructor.
        """
        deserializers = {
            "key.deserializer": key_deserializer,
            "value.deserializer": value_deserializer,
        }
        config = ShareConsumerConfig.from_properties(
            with_functions(properties, deserializers)
        )
        return cls.from_config(config, topics=topics, observer=observer)

    def _set_up(
        self,
        cluster: Cluster,
        config: ShareConsumerConfig,
        wanted: ReadSelection,
        *,
        owns_cluster: bool,
    ) -> None:
        self._config = config
        core = ShareCore(cluster, config, owns_cluster=owns_cluster)
        reader = ShareReader(config, on_change=core.wake, on_news=core.notify)
        reads = ShareReads(core, core.life, reader)
        reader.prepare_with(core.spawn)
        if observes(core.observer, "records_handed_out"):
            reader.on_handed = core.observer.records_handed_out
        core.attach(reader)
        self._life = core.life
        self._reader = reader
        self._core: ShareCore | ThreadedShareCore = core
        self._reads: ShareReads | ThreadedReads = reads
        if config.io_thread:
            self._core = threaded = ThreadedShareCore(core, reader, reads)
            self._reads = threaded.reads
        self._select = partial(_select, core, reader, reads)
        # Raises for a selection that cannot be; the work for it begins with `start`.
        self._apply(wanted)

    def _apply(self, wanted: ReadSelection) -> None:
        if isinstance(self._core, ThreadedShareCore):
            self._core.ask(partial(self._select, wanted))
        else:
            self._select(wanted)

    def __repr__(self) -> str:
        numbers = self.statistics()
        return (
            f"<ShareConsumer {self._config.group_id!r} {numbers.state} {numbers.group} "
            f"| {numbers.assigned} assigned | {numbers.in_flight} records locked, "
            f"{numbers.buffered} of them buffered>"
        )

    # Life

    async def start(self, timeout: float | None = None) -> None:
        """Connect, and join the group.

        Returns when the group coordinator has accepted the member: with an assignment,
        unless there are no partitions to assign. The first member of the first share
        group of a cluster waits some seconds, because the brokers then make their topic
        for the state of share groups.

        Nothing is fetched before somebody reads. A new group with
        ``share.auto.offset.reset=latest``, the brokers' default, begins at the end of
        each partition's log at its first fetch: it gets no record that was written
        before. ``earliest`` gives it all.

        If the call fails or is cancelled, the consumer is closed: it leaves the group
        and disconnects, within about a second.

        Args:
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Raises:
            BrokerNotAvailable: no broker can be reached.
            UnsupportedVersion: the cluster offers no share groups: its brokers are
                older than Kafka 4.1, or the feature ``share.version`` is 0.
            GroupError: the group is of another kind, such as a consumer group.
            AuthorizationError: the principal may not read the group or a topic.
            RequestTimeout: time is up; the message names the step.
            ArgumentTypeError: the timeout is not a number.
            ArgumentValueError: the timeout is negative.
            ClosedError: the consumer was started before.
        """
        await self._core.start(_limit(timeout))
        self._reads.time_slice.start()

    async def close(self, timeout: float | None = None) -> None:
        """Release what has no decision, send the last acknowledgements, and leave.

        Fetching stops at once. Loops of other tasks over records and batches end, and
        so does ``run``, whose handlers have 80 % of the time to finish their records.
        Then everything that was handed out and not decided, or fetched ahead, is
        released: other members get it at once, not when its lock ends. Afterwards an
        acknowledgement raises UsageError.

        May be called again, by several tasks, and in every state; each call returns
        when everything has ended. A call that waits (`poll`, ``anext``) raises
        ClosedError, and so does every call that comes later. If the call is cancelled,
        everything ends all the same: the leaders release the records when the
        connections are closed.

        Args:
            timeout: most seconds that it takes, 30 by default.

        Raises:
            UsageError: it is called in a handler of ``run``, and would wait for that;
                call it in another task.
            ArgumentTypeError: the timeout is not a number.
            ArgumentValueError: the timeout is negative.
            ClosedError: the consumer belongs to another event loop or process.
        """
        limit = _limit(timeout)
        if self._reads.user_code.have_caller:
            raise UsedInHandler(
                "close() is called in a handler of run(), and would wait for that "
                "handler; call it in another task"
            )
        self._reads.settle()
        await self._core.close(limit)

    def _abandon(self) -> None:
        self._core.abandon()

    # Reading

    def __aiter__(self) -> ShareRecordIterator[K_co, V_co]:
        """Return an iterator over records, for ``async for``.

        A step waits for the next record as long as it takes. If cancelled, none was
        taken. While fetched records are there, a step makes no coroutine, future or
        task. The event loop gets a turn before a record all the same, if some
        milliseconds have passed since the last.

        The loop ends when the consumer is closed, by another task or in its own body.
        Leaving it in another way releases the record that was handed out last, if there
        is no decision about it, and what was fetched ahead; see `ShareRecordIterator`.

        Raises (while iterating):
            CorruptRecord: a batch fails its checks. It was rejected as a whole, and is
                reported once; the next step goes on with others.
            RecordTooLarge: a batch exceeds ``max_decompressed_batch_size``. It was
                released as a whole; likewise.
            DeserializationError: a deserializer raised. The record was released or
                rejected (``undeserializable``), and is reported once; likewise.
            KafkaError: a deserializer raised this for longer than
                ``default_api_timeout_ms``, and it is ``retriable`` or a
                `RegistryError` that is not about a schema. The record was released.
            GroupError: the group refuses this member.
            AuthorizationError: the principal may not read the group or a topic.
            UsageError: another task reads at the same time, or nothing is subscribed
                to.
            ClosedError: the consumer is not running.

        Raises:
            ClosedError: the consumer is closed already.
        """
        self._core.check_open()
        return ShareRecordIterator(self._reads, self)

    async def poll(
        self,
        *,
        timeout: float | None = None,
        max_records: int | None = None,
    ) -> list[ShareRecord[K_co, V_co]]:
        """Take the records that are there; wait only if there are none.

        The records stay the program's until it acknowledges them, or their locks end;
        a later poll changes nothing of that, unless ``acknowledgement="implicit"``:
        then it accepts those that have no decision. If cancelled, nothing was taken.

        Args:
            timeout: most seconds to wait; None waits as long as it takes.
            max_records: most records to take, ``max_in_flight`` by default.

        Returns:
            The records, partition by partition; empty when the time is up.

        Raises:
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: the timeout is negative, or ``max_records`` below 1.
            ClosedError: the consumer is not running, or another task closes it while
                this call waits.
            KafkaError: as iterating does.
        """
        limit = count_of("max_records", max_records, self._config.max_in_flight)
        return await self._reads.poll(limit, _limit(timeout))

    def batches(
        self, *, max_records: int | None = None, max_wait: float = 0.0
    ) -> ShareBatchIterator[K_co, V_co]:
        """Return an iterator over batches of one partition each.

        It returns a batch when a partition has ``max_records`` fetched records, or
        ``max_wait`` after the first fetched record. A batch is acknowledged as a whole
        at no cost per record. If cancelled, nothing was taken. The iteration ends when
        the consumer is closed; leaving it in another way releases what has no decision
        of the last batch.

        Args:
            max_records: most records of a batch, ``max_in_flight`` by default.
            max_wait: seconds to wait for a full batch. The locks of the records that
                wait are running.

        Raises:
            ClosedError: the consumer is closed already.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: ``max_records`` is below 1, or ``max_wait`` negative.
        """
        limit = count_of("max_records", max_records, self._config.max_in_flight)
        self._core.check_open()
        return ShareBatchIterator(self._reads, self._reader, limit, max_wait, self)

    async def run(
        self,
        handler: Callable[[ShareRecord[K_co, V_co]], Awaitable[object]],
        *,
        concurrency: int = 10,
        max_processing_ms: int | None = None,
        on_error: OnError = Release,
    ) -> None:
        """Call a coroutine function with each record, many at a time, in any order.

        A record whose handler returns is accepted. A handler that raises
        `kafkaio.Release` or `kafkaio.Reject` has that done to its record; any other
        exception asks ``on_error``, and is reported (``handler_failed``, a warning in
        the log). What a handler has decided itself, by ``record.reject()`` for example,
        stays. Each decision joins the next request to the leader; `flush` waits for it.
        ``acknowledgement="implicit"`` changes nothing here.

        Twice ``concurrency`` records are locked at most, or as many as handlers begin
        in 50 ms (and ``max_in_flight``), so that no lock runs for a record that no
        handler begins soon. With ``acquire_mode="batch_optimized"`` leaders lock whole
        batches all the same: for handlers that take long, ``record_limit`` leaves the
        rest to other members.

        The locks of records whose handler runs are renewed (``renew_locks``), for
        ``max_processing_ms`` at most. A handler whose record is not locked any more is
        cancelled, because another member may work on the record by now.

        `close` begins no more records, and waits for those that have begun, for 80 % of
        its timeout; then this call returns. That is the clean way to stop. If this call
        is cancelled, so are the handlers. A record whose handler was cancelled is
        released: another member gets it at once.

        Args:
            handler: works on one record. It must not close the consumer.
            concurrency: most handlers that run at a time.
            max_processing_ms: how long the locks of a record are renewed after it was
                handed out; the option of that name by default.
            on_error: what becomes of a record whose handler fails, or that cannot be
                deserialized. `Release` (the class, or an object of it): it comes again,
                up to the group's limit of deliveries, and is archived then. The worker
                waits before that, 1 second after the first delivery, then twice as long
                each time, 10 at most, and never longer than half of what is left of the
                lock. If what all handlers need is down for longer than that bridges,
                records are lost: wait in the handler, or in a coroutine function given
                here. `Reject`: it never comes again. A `DeadLetter`: it is written
                there and accepted; if that fails, it is released in the same way. Where
                the brokers write the group's dead letters (KIP-1191, Kafka 4.4) it is
                rejected instead, so that they do, which is reported once. A function,
                or coroutine function, of the record and the exception: it returns or
                raises Release or Reject, or returns None to have the record accepted.
                These get the record as it came, not deserialized. A batch that cannot
                be read was rejected (if it is only too large, released), and comes as
                one record, whose value is the bytes of the batch, with a
                `CorruptRecord` or `RecordTooLarge`.

        Raises:
            Exception: ``on_error`` is a function, and raised it, or returned something
                else. The record is released.
            UsageError: another task reads, or nothing is subscribed to (after
                `unsubscribe`, when what has begun is done).
            KafkaError: as iterating does, apart from errors of single records and
                batches. A deserializer that fails for a reason that passes, such as a
                registry that is down, is reported (``retrying``), and tried again as
                long as the lock of its record lasts.
            ArgumentTypeError: an argument has the wrong type. A handler that is not a
                coroutine function is found with the first record, which is released.
            ArgumentValueError: ``concurrency`` or ``max_processing_ms`` is below 1.
            ClosedError: the consumer is not running.
        """
        limit = count_of("concurrency", concurrency, 10)
        if not callable(handler):
            raise ArgumentTypeError(
                f"handler must be callable, not {type_name(handler)}"
            )
        longest = None
        if max_processing_ms is not None:
            longest = count_of("max_processing_ms", max_processing_ms, 1) / 1000
        check_on_error(on_error)
        topic = None
        if isinstance(on_error, DeadLetter):
            topic = await self._core.broker_dead_letters()
        handler = observed(handler, self._core.observer, self._config.group_id)
        failed = FailedRecords(
            on_error, self._config.group_id, self._core.observer, topic
        )
        if isinstance(self._reads, ThreadedReads):
            assert isinstance(self._core, ThreadedShareCore)
            await self._core.run(
                handler, failed, concurrency=limit, max_processing=longest
            )
            return
        assert isinstance(self._core, ShareCore)
        runner = ShareRunner(
            self._core,
            self._reads,
            self._reader,
            handler,
            failed,
            concurrency=limit,
            max_processing=longest,
        )
        await runner.run()

    # Acknowledgements

    async def flush(self, timeout: float | None = None) -> None:
        """Send every decision, and wait until the leaders have confirmed them.

        If cancelled, the acknowledgements are sent all the same.

        Args:
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Raises:
            AcknowledgeFailed: some did not count, now or since the last `flush` or
                `commit`; of several, the first. `LockLost` if the lock was gone.
            RequestTimeout: time is up; what was decided is still sent.
            ArgumentTypeError: the timeout is not a number.
            ArgumentValueError: the timeout is negative.
            ClosedError: the consumer is not running.
        """
        self._reads.settle()
        await self._core.flush(self._within(timeout))

    async def commit(
        self, timeout: float | None = None
    ) -> dict[TopicPartition, KafkaError | None]:
        """Send every decision, and return what became of each partition.

        With ``acknowledgement="implicit"`` everything that was handed out and has no
        decision is accepted first, as by Java's ``commitSync``. If cancelled, the
        acknowledgements are sent all the same.

        Args:
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Returns:
            By partition that had decisions: None if all of them count, else the first
            error.

        Raises:
            RequestTimeout: time is up; what was decided is still sent.
            ArgumentTypeError: the timeout is not a number.
            ArgumentValueError: the timeout is negative.
            ClosedError: the consumer is not running.
        """
        self._reads.settle()
        self._reads.accept()
        return dict(await self._core.commit(self._within(timeout)))

    # The selection

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that the group has assigned to this member.

        Other members may have the same ones.
        """
        return PropertySet("assignment", self._core.assignment)

    @property
    def subscription(self) -> frozenset[str] | re.Pattern[str]:
        """The subscription: names of topics, or the pattern that was given.

        Empty without a subscription.
        """
        subscribed = self._core.subscription
        if isinstance(subscribed, re.Pattern):
            return subscribed
        return PropertySet("subscription", subscribed)

    def subscribe(self, topics: Topics[K_co, V_co]) -> None:
        """Read these topics from now on, instead of those before.

        Records of the topics before that were handed out stay locked until they are
        acknowledged.

        Args:
            topics: names or `Topic` objects, one or a collection, or a pattern that
                matches whole names. Share groups know no patterns, so it is matched
                here, against the topics that the principal may describe. An empty
                collection is the same as `unsubscribe`.

        Raises:
            ArgumentTypeError: a topic has the wrong type.
            ArgumentValueError: a topic has no name.
            ClosedError: the consumer is closed.
        """
        self._apply(ReadSelection.of(topics, None))

    def unsubscribe(self) -> None:
        """Stop reading, and leave the group.

        Records that were handed out can still be acknowledged. A later `subscribe`
        joins the group again. Until then reading raises UsageError.

        Raises:
            ClosedError: the consumer is closed.
        """
        self._apply(ReadSelection())

    # Telemetry

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
            ClosedError: the consumer is closed, or not started.
        """
        return await self._core.client_instance_id(self._within(timeout))

    def register_metric(self, metric: Metric) -> None:
        """Push a metric of the application with those of the consumer (KIP-1076).

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
        self._core.register_metric(metric)

    def unregister_metric(self, metric: Metric) -> None:
        """Push a metric no longer. Nothing happens if it was not registered.

        Args:
            metric: one with the name and the attributes of the one registered.

        Raises:
            ArgumentTypeError: it is not a `kafkaio.Metric`.
        """
        self._core.unregister_metric(metric)

    # Looking inside

    def statistics(self) -> ShareConsumerStatistics:
        """Return a snapshot of the consumer."""
        return self._core.statistics()

    def _within(self, timeout: float | None) -> float:
        if timeout is None:
            return self._config.default_api_timeout_ms / 1000
        return seconds_of("timeout", timeout)


def _select(
    core: ShareCore, reader: ShareReader, reads: ShareReads, wanted: ReadSelection
) -> None:
    core.subscribe(wanted.pattern or wanted.topics or frozenset())
    reader.deserialize_as(wanted)
    reads.subscribed(has_topics=not wanted.is_nothing)


def _limit(timeout: float | None) -> float | None:
    return None if timeout is None else seconds_of("timeout", timeout)
