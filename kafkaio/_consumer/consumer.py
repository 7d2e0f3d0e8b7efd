"""The consumer: records of topics, for a member of a group or for a lone reader.

`Consumer` has every public method with its documentation. It checks arguments, and
delegates to a core: a `Core` on the user's event loop or, with ``io_thread``, a
`ThreadedCore`, which runs the same methods in a thread of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    Never,
    Self,
    TypeAlias,
    TypeVar,
    Unpack,
    overload,
)
from uuid import UUID

from kafkaio import _config
from kafkaio._arguments import (
    check_topic,
    count_of,
    offset_of,
    partition_of,
    partitions_of,
    seconds_of,
    type_name,
)
from kafkaio._client.client import Client, cluster_of
from kafkaio._client.cluster import Cluster, with_client_id
from kafkaio._client.offsets import EARLIEST, LATEST
from kafkaio._config import ConsumerConfig, with_functions
from kafkaio._config.configs import iso_duration_ms
from kafkaio._config.signature import OptionsSignature
from kafkaio._consumer.commit import ToCommit as ToCommit
from kafkaio._consumer.core import Core
from kafkaio._consumer.reading.iterators import (
    BatchIterator,
    Poll,
    RawBatchIterator,
    RecordIterator,
    TableIterator,
    until_closed,
)
from kafkaio._consumer.rebalance.callbacks import HeldCallbacks, PartitionsCallback
from kafkaio._consumer.rebalance.events import RevokeRequested
from kafkaio._consumer.rebalance.feed import Rebalances
from kafkaio._consumer.statistics import ConsumerStatistics as ConsumerStatistics
from kafkaio._consumer.wanted import AnyTopics, Names, ReadSelection, Topics
from kafkaio._generic import Generic, K_co, V_co
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.positions import Reset, ResetTo
from kafkaio._net.transport import Dial
from kafkaio._public import (
    PropertySet,
    knows_other_clients,
    public,
    refuses_others,
    wrong_call,
)
from kafkaio._runtime.lifecycle import Closeable
from kafkaio._runtime.observer import Observer
from kafkaio._topic import (
    AsyncDeserializer,
    DeserializerLike,
    PlainDeserializer,
    ReadableTopic,
)
from kafkaio._transactional import (
    GroupOffsetsPort,
    JoinedConsumerPort,
    TransactionalConsumer,
)
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    KafkaError,
    PartitionLost,
)
from kafkaio.types import (
    GroupMetadata,
    Metric,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    Record,
    TopicPartition,
)

if TYPE_CHECKING:
    from datetime import timedelta

    from kafkaio._client.log_ranges import Bound, Edge
    from kafkaio._consumer.parallel.dead_letter import DeadLetter
    from kafkaio._consumer.parallel.lanes import LaneIterator
    from kafkaio._consumer.parallel.ports import (
        OpenTransactionPort,
        TransactionMakerPort,
    )
    from kafkaio._consumer.parallel.run import OnDead
    from kafkaio._consumer.threaded.core import ThreadedCore
    from kafkaio._machines.retries import Retry
    from kafkaio._machines.schedule import Ordering

    #: Where a group can be rewound to.
    RewindTo: TypeAlias = (
        int | OffsetAndMetadata | Literal["earliest", "latest"] | timedelta
    )

TransactionT = TypeVar("TransactionT", bound="OpenTransactionPort")

#: Most rows of a table by default: making it takes about a millisecond.
TABLE_ROWS: Final = 32_768


@public("kafkaio")
@knows_other_clients(
    *("__init__", "poll", "subscribe", "committed", "position", "seek"),
    *("beginning_offsets", "end_offsets", "offsets_for_times", "close"),
)
class Consumer(TransactionalConsumer, Closeable, Generic[K_co, V_co]):
    """Reads records one at a time, in batches, or by polling.

    ``Consumer[str, Order]`` reads records with keys and values of these types. Type
    checkers infer them from the deserializers or the topics; `Consumer` alone reads
    bytes and None. Whatever the type of the value, that of a tombstone is None, and so
    is the key of a record without one.

    ``async with`` starts and closes it; `start` and `close` do the same by hand. A
    consumer that is collected while it is open gives a ResourceWarning. Only one task
    may read at a time. The records of a partition come in the order of their offsets;
    the order between partitions is undefined.

    A record is *finished* when the next record (or batch, or poll) is asked for. A loop
    that is left, by an exception or a cancellation too, does not finish the record that
    it was working on. Automatic commits commit finished records only, so a crash
    repeats records and never skips one. ``commit()`` without arguments commits
    everything that was handed out: the call says that all of it is done.

    Args:
        bootstrap_servers: ``"host:port,host2:port"``, a sequence of such strings, or a
            started `kafkaio.Client` to share, which `close` then leaves open.
        topics: topics to subscribe to: names, a pattern, or `Topic` objects, whose
            deserializers are used then. With a ``group_id``, the group divides their
            partitions among its members. Without one, this consumer reads all of them,
            including partitions that are added later.
        assign: fixed partitions to read instead.
        on_assigned: called with partitions that were assigned, before their records
            are read. Like the other two, it may be a coroutine function, and the
            consumer's next call raises its error.
        on_revoked: called with partitions before they are released; commits of them
            still count.
        on_lost: called with partitions that were lost. Without it, ``on_revoked`` is
            called with them.
        observer: an object with any of the methods of `kafkaio.Observer`, or a list of
            such objects. Not allowed with a shared client, which has its own.
        key_deserializer: turns the bytes of a key into an object: a function, or an
            object with the method ``deserialize``; see
            `kafkaio.serde.DeserializerLike`. Without it keys are bytes or None.
        value_deserializer: turns the bytes of a value into an object, likewise.
        options: see `kafkaio.ConsumerConfig`. The options of `kafkaio.ClientConfig` are
            not allowed with a shared client, which has them.

    Raises:
        ConfigurationError: an option is unknown or invalid.
        ArgumentTypeError: an argument has the wrong type.
        ArgumentValueError: a topic has no name, or a partition a negative number.
        UsageError: both topics and partitions are given, or a shared client and
            ``io_thread``.
    """

    __signature__: OptionsSignature = OptionsSignature(ConsumerConfig)

    @overload
    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        topics: ReadableTopic[K_co, V_co] | Collection[ReadableTopic[K_co, V_co]],
        assign: Iterable[TopicPartition] | None = None,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
        observer: object | None = None,
        **options: Unpack[_config.ConsumerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        topics: Names | None = None,
        assign: Iterable[TopicPartition] | None = None,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
        observer: object | None = None,
        key_deserializer: (
            AsyncDeserializer[K_co] | PlainDeserializer[K_co] | None
        ) = None,
        value_deserializer: AsyncDeserializer[V_co],
        **options: Unpack[_config.ConsumerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        topics: Names | None = None,
        assign: Iterable[TopicPartition] | None = None,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
        observer: object | None = None,
        key_deserializer: AsyncDeserializer[K_co],
        value_deserializer: DeserializerLike[V_co] | None = None,
        **options: Unpack[_config.ConsumerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        topics: Names | None = None,
        assign: Iterable[TopicPartition] | None = None,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
        observer: object | None = None,
        key_deserializer: DeserializerLike[K_co] | None = None,
        value_deserializer: DeserializerLike[V_co] | None = None,
        **options: Unpack[_config.ConsumerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: Consumer[object, object],
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        topics: Collection[str | ReadableTopic[object, object]],
        assign: Iterable[TopicPartition] | None = None,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
        observer: object | None = None,
        key_deserializer: DeserializerLike[K_co] | None = None,
        value_deserializer: DeserializerLike[V_co] | None = None,
        **options: Unpack[_config.ConsumerOptions],
    ) -> None: ...

    def __init__(  # noqa: PLR0913
        self,
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        topics: AnyTopics | None = None,
        assign: Iterable[TopicPartition] | None = None,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
        observer: object | None = None,
        key_deserializer: DeserializerLike[object] | None = None,
        value_deserializer: DeserializerLike[object] | None = None,
        **options: Unpack[_config.ConsumerOptions],
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
            config = ConsumerConfig.sharing(bootstrap_servers.config, given, observer)
            cluster = cluster_of(bootstrap_servers)
        else:
            config = ConsumerConfig.of(bootstrap_servers, given)
            config = with_client_id(config, "consumer", config.group_id)
            cluster = Cluster(config, observer)
        wanted = ReadSelection.of(topics, assign)
        callbacks = _callbacks(on_assigned, on_revoked, on_lost)
        self._set_up(cluster, config, wanted, callbacks, owns_cluster=client is None)

    @classmethod
    def from_config(  # noqa: PLR0913
        cls,
        config: ConsumerConfig,
        *,
        topics: Topics[K_co, V_co] | None = None,
        assign: Iterable[TopicPartition] | None = None,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
        observer: object | None = None,
        dial: Dial | None = None,
    ) -> Self:
        """Make a consumer from options that were checked before.

        Type checkers take the types of keys and values from the class that this is
        called on: ``Consumer[str, Order].from_config(...)``.

        Args:
            config: the options.
            topics: as for the constructor, like those that follow.
            assign: fixed partitions.
            on_assigned: called with partitions that were assigned.
            on_revoked: called with partitions before they are released.
            on_lost: called with partitions that were lost.
            observer: an object, or a list of objects, with methods of `Observer`.
            dial: opens connections; None for TCP and TLS.

        Raises:
            ArgumentTypeError: as for the constructor.
            ArgumentValueError: as for the constructor.
            UsageError: as for the constructor.
        """
        consumer = cls.__new__(cls)
        consumer._client = None
        wanted = ReadSelection.of(topics, assign)
        callbacks = _callbacks(on_assigned, on_revoked, on_lost)
        config = with_client_id(config, "consumer", config.group_id)
        cluster = Cluster(config, observer, dial)
        consumer._set_up(cluster, config, wanted, callbacks, owns_cluster=True)
        return consumer

    @classmethod
    def from_properties(  # noqa: PLR0913
        cls,
        properties: Mapping[str, object],
        *,
        topics: Topics[K_co, V_co] | None = None,
        assign: Iterable[TopicPartition] | None = None,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
        observer: object | None = None,
        key_deserializer: DeserializerLike[K_co] | None = None,
        value_deserializer: DeserializerLike[V_co] | None = None,
    ) -> Self:
        """Make a consumer from the dotted names of Java and librdkafka.

        Type checkers take the types of keys and values from the class that this is
        called on: ``Consumer[str, Order].from_properties(...)``.

        Args:
            properties: options by names such as ``bootstrap.servers``.
            topics: as for the constructor, like those that follow.
            assign: fixed partitions.
            on_assigned: called with partitions that were assigned.
            on_revoked: called with partitions before they are released.
            on_lost: called with partitions that were lost.
            observer: an object, or a list of objects, with methods of `Observer`.
            key_deserializer: as for the constructor.
            value_deserializer: as for the constructor.

        Raises:
            ConfigurationError: a name is unknown, or a value is invalid.
            ArgumentTypeError: as for the constructor.
            ArgumentValueError: as for the constructor.
            UsageError: as for the constructor.
        """
        deserializers = {
            "key.deserializer": key_deserializer,
            "value.deserializer": value_deserializer,
        }
        return cls.from_config(
            ConsumerConfig.from_properties(with_functions(properties, deserializers)),
            topics=topics,
            assign=assign,
            on_assigned=on_assigned,
            on_revoked=on_revoked,
            on_lost=on_lost,
            observer=observer,
        )

    def _set_up(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        wanted: ReadSelection,
        callbacks: HeldCallbacks,
        *,
        owns_cluster: bool,
    ) -> None:
        kind = _threaded() if config.io_thread else Core
        self._core: Core | ThreadedCore = kind(
            cluster,
            config,
            owns_cluster=owns_cluster,
            on_assigned=callbacks.on_assigned,
            on_revoked=callbacks.on_revoked,
            on_lost=callbacks.on_lost,
        )
        self._life = self._core.life
        self._config = config
        # The core refers to the callbacks weakly.
        self._callbacks = callbacks
        # Raises for a selection that cannot be; the work for it begins with `start`.
        self._core.apply(wanted)

    def __repr__(self) -> str:
        numbers = self.statistics()
        name = self._config.group_id or self._config.client_id
        group = ""
        if numbers.group is not None:
            protocol, at = numbers.group_protocol, numbers.generation
            group = f" {numbers.group} ({protocol} {at})"
        return (
            f"<Consumer {name!r} {numbers.state}{group} | {numbers.assigned} assigned, "
            f"{numbers.paused} paused | {numbers.fetches_in_flight} fetches in flight, "
            f"{numbers.buffered_bytes} bytes buffered>"
        )

    # Life

    async def start(self, timeout: float | None = None) -> None:
        """Connect, join the group, and find every position; then records can be read.

        A record that is written after that is read, also with
        ``auto_offset_reset="latest"``, wherever the leader of its partition has
        answered. The call waits five seconds for a partition that has no leader, or
        whose leader or coordinator returns no offset; then the others are read. What
        is missing is reported (``positions_missing``) and logged as a warning, and the
        partition is read as soon as its position is found.

        If the call fails or is cancelled, the consumer is closed: it leaves the group
        and disconnects, within about a second.

        Args:
            timeout: seconds. Without it, ``default_api_timeout_ms`` bounds every step
                but the rebalance of the group, which may take as long as its members
                take. Waiting for a coordinator that is not found, or that keeps
                refusing for a passing reason, does not count as a rebalance.

        Raises:
            BrokerNotAvailable: no broker can be reached.
            UnknownTopicOrPartition: a topic or partition does not exist. In a group
                this is not raised for a topic, which may be created later; it is
                reported to the observer (``topic_unavailable``).
            InvalidTopic: the name of a topic is illegal.
            AuthorizationError: the principal may not describe a topic, or not read the
                group's offsets. If there is something else to read, a missing right on
                one topic is raised by the first call that reads instead, and the others
                are read.
            RequestTimeout: time is up; the message names the step, and the last
                failure, which is its cause. If no partition has a position, it says
                what each of them lacks; unless other members of the group read
                partitions of the same topics: this one may get some of them.
            ArgumentTypeError: the timeout is not a number.
            ArgumentValueError: the timeout is negative.
            ClosedError: the consumer was started before.
        """
        await self._core.start(_limit(timeout))

    async def close(self, timeout: float | None = None) -> None:
        """Commit finished records (with auto-commit), leave the group, disconnect.

        May be called again, by several tasks, and in every state; each call returns
        when everything has ended. Loops of other tasks over records, batches, tables
        and lanes end, and `run` returns. A call that waits (`poll`, ``anext``) raises
        ClosedError, and so does every call that comes later.

        If the call is cancelled, everything ends all the same: nothing is committed,
        the partitions are lost, running callbacks are cancelled, and the member leaves
        the group. The call waits at most half a second for the group's answer. If it is
        cancelled again, it returns at once, and the rest goes on in the background;
        another call waits for that.

        Waits for open holds and running lane bodies, except those entered by the
        calling task: calling `close` counts as leaving them. It does not wait for
        events of `rebalances` that belong to the calling task, or to a task that has
        ended.

        Args:
            timeout: most seconds that it takes, 30 by default. With 0, the member
                leaves the group and waits 0.04 s for the answer.

        Raises:
            UsageError: it is called in a callback or in a handler of `run`, and would
                wait for that; call it in another task.
            ArgumentTypeError: the timeout is not a number.
            ArgumentValueError: the timeout is negative.
            ClosedError: the consumer belongs to another event loop or process.
            Exception: raised by a callback meanwhile; everything has ended even so.
        """
        await self._core.close(_limit(timeout))

    def _abandon(self) -> None:
        self._core.abandon()

    # Reading

    def __aiter__(self) -> AsyncIterator[Record[K_co, V_co]]:
        """Return an iterator over records, which reads as ``__anext__`` does.

        A loop over it ends when the consumer is closed, by another task or in its own
        body. Fetched records that were not handed out by then are read again, by the
        next owner of their partition.

        While fetched records are there, a step makes no coroutine, future or task. The
        event loop gets a turn before a record all the same, if some milliseconds have
        passed since the last: also a body that never waits lets heartbeats go out, and
        cancellation arrive, between two records.

        Raises:
            ClosedError: the consumer is closed already.
        """
        return self._core.stream(self._next_record)

    def _next_record(self) -> Coroutine[Any, Any, Record[K_co, V_co]]:
        # A method of this object, so that the iterator keeps the consumer alive.
        return until_closed(self._core, self._core.next_record)

    def __anext__(self) -> Coroutine[Any, Any, Record[K_co, V_co]]:
        """Return the next record. If cancelled, none was taken.

        Raises:
            OffsetOutOfRange: a position is invalid and no reset policy is set.
            CorruptRecord: fetched data fails its checks, as each further step will say;
                ``seek(error.topic_partition, error.next_offset)`` goes past it.
            RecordTooLarge: a batch exceeds ``max_response_size`` or
                ``max_decompressed_batch_size``; likewise.
            DeserializationError: a deserializer raised; likewise.
            KafkaError: a deserializer raised this, and it is ``retriable`` or a
                `RegistryError` that is not about a schema; or, as RequestTimeout, it
                took longer than ``default_api_timeout_ms``. The record is tried again
                after a back-off.
            InvalidTopic: the name of a subscribed topic is illegal. Raised once; the
                other topics are read on.
            UsageError: another task reads at the same time, or nothing is to be read:
                no topics are subscribed to and no partitions are assigned. A read that
                waits raises the latter when `unsubscribe` is called, too.
            ClosedError: the consumer is not running, or is closed meanwhile. Only
                loops end by that (``async for``, `batches`, `arrow_batches`).
            Exception: raised by a callback, or the crash of a background task.
        """
        return self._core.take_next()

    async def poll(
        self,
        *,
        timeout: float | None = None,
        max_records: int | None = None,
        partitions: Collection[TopicPartition] | None = None,
    ) -> Poll[K_co, V_co]:
        """Take the records that are there; wait only if there are none.

        Returns early, and perhaps without records, when the group requests a revocation
        or partitions were lost. Partitions reported in ``to_be_revoked`` are released
        by the next poll, unless delayed (`delay_revoke`) or held. A request that
        arrives between two polls is first reported by the second, and released by the
        third. If cancelled, nothing was taken and nothing counts as reported.

        With ``partitions``, records of these alone are taken. What was fetched of the
        others stays for a later poll, and they are fetched on while at least half of
        ``fetch_buffer_bytes`` is free. The call finishes the records of these
        partitions alone: a program may work on those of others meanwhile. It releases
        any partition whose revocation was reported, as each poll does. It does not
        raise what another partition would raise.

        Args:
            timeout: most seconds to wait; None waits as long as it takes.
            max_records: most records to take, ``max_poll_records`` by default. With 0
                the call waits until there are some, and takes none.
            partitions: assigned partitions to read; all that are assigned by default.

        Raises:
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: the timeout or ``max_records`` is negative, or
                ``partitions`` is empty.
            UsageError: one of the partitions is not assigned; or none of them is
                any more, by a call of `assign` in another task.
            ClosedError: the consumer is not running, or another task closes it while
                this call waits; an empty result would promise a next poll.
            KafkaError: as ``__anext__`` does.
        """
        limit = 0
        if max_records != 0:
            most = self._config.max_poll_records
            limit = count_of("max_records", max_records, most)
        among = None if partitions is None else frozenset(partitions_of(partitions))
        if among is not None and not among:
            raise ArgumentValueError("partitions is empty: leave it out to read all")
        return await self._core.poll(limit, _limit(timeout), among)

    def records(self, *, until: Bound) -> RecordIterator[K_co, V_co]:
        """Return an iterator over records that ends, unlike the consumer itself.

        Each assigned partition is read from its position to its end: with
        ``"latest"``, the offset after the last record that it has when its end is
        looked up, in the first step. Records that are written later are not part of
        it. With ``read_committed`` that is the last stable offset: the iteration does
        not wait for transactions that are open. It ends when every position is at its
        end, whether or not a record comes last: markers of transactions and offsets
        that compaction has removed are passed over.

        In a group, a partition that is assigned meanwhile is read to its end as well,
        as it is then; one that is revoked or lost does not count any more. Without any
        partition, the iteration ends once the group has none for this member.

        A record is finished when the next one is asked for. Leaving the loop leaves
        nothing behind: the next read goes on there. If a step is cancelled, no record
        was taken.

        Args:
            until: ``"latest"``; a time, a datetime with a time zone or milliseconds
                since the Unix epoch: the first record that is not older is not read; or
                a mapping with an offset, a word or a datetime for each of some
                partitions, the others being read to their ends. An offset that the log
                does not have yet is waited for.

        Raises:
            ClosedError: the consumer is closed already.
            ArgumentTypeError: ``until`` has the wrong type.
            ArgumentValueError: an offset is negative, a datetime has no time zone, or a
                number is too small for a time.
            RequestTimeout: while iterating: nothing has moved for
                ``default_api_timeout_ms``, or the ends were not found within it. The
                text names the partitions, and what each of them lacks.
            UsageError: while iterating: all partitions that are not at their end are
                paused; or as ``__anext__``.
            UnknownTopicOrPartition: while iterating: a topic does not exist any more.
            KafkaError: while iterating: as ``__anext__``.
        """
        return self._core.records(self, _edge(until))

    async def read_to_end(
        self, timeout: float | None = None
    ) -> list[Record[K_co, V_co]]:
        """Return all records up to the ends of the assigned partitions, in one list.

        The same as ``records(until="latest")``, in one step: all of them count as
        handed out together, and as finished with the next read. The records of one
        partition are in the order of their offsets. They are in memory at once: for
        more than that, use `records`, or `batches` with ``until``.

        If the call fails or is cancelled, nothing was taken, and the records are read
        again. Records of partitions that were lost meanwhile are not returned. A group
        that requests a revocation meanwhile waits until the call has ended.

        Args:
            timeout: seconds for all of it; without it, ``default_api_timeout_ms``
                bounds the time without any progress.

        Raises:
            RequestTimeout: nothing has moved for ``default_api_timeout_ms``, the ends
                were not found within it, or time is up; see `records`.
            ArgumentTypeError: the timeout is not a number.
            ArgumentValueError: the timeout is negative.
            UsageError: all partitions that are not at their end are paused; or as
                ``__anext__``.
            KafkaError: as ``__anext__`` does.
        """
        limit = _limit(timeout)
        within = math.inf if limit is None else limit
        return await self._core.read_to_end(_edge("latest"), within)

    def batches(
        self,
        *,
        max_records: int | None = None,
        max_wait: float = 0.0,
        until: Bound | None = None,
    ) -> BatchIterator[K_co, V_co]:
        """Return an iterator over batches of one partition each.

        It returns a batch when a partition has ``max_records`` fetched records, or
        ``max_wait`` after the first fetched record. Asking for the next batch finishes
        the one before. If cancelled, nothing was taken. The iteration ends when the
        consumer is closed.

        Args:
            max_records: most records of a batch, ``max_poll_records`` by default.
            max_wait: seconds to wait for a full batch.
            until: where the iteration ends, as for `records`; None for no end.

        Raises:
            ClosedError: the consumer is closed already.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: ``max_records`` is below 1, or ``max_wait`` negative; or
                as `records` for ``until``.
            RequestTimeout: while iterating with ``until``: as `records`.
        """
        limit = count_of("max_records", max_records, self._config.max_poll_records)
        edge = None if until is None else _edge(until)
        return self._core.batches(self, limit, max_wait, edge)

    def raw_batches(self, *, until: Bound | None = None) -> RawBatchIterator:
        """Return an iterator over record batches as they were fetched (KAFKA-1011).

        Nothing is decompressed or deserialized. ``Producer.send_raw`` writes such a
        batch elsewhere, so that a mirror costs a fraction of reading and writing the
        records. Checksums are verified (``check_crcs``). The partitions take turns,
        batch by batch, in the order of offsets within each.

        Control batches, which mark the end of transactions, are left out, and with
        ``read_committed`` the batches of aborted transactions. Batches of old message
        formats are yielded, too.

        If the position is in the middle of a batch, because that is where the last
        commit or a seek was, the batch stands for the records from there on alone, and
        likewise before the end that ``until`` sets (`RawBatch.first_offset`,
        `RawBatch.next_offset`). If a part of a batch was read as records, its rest is
        fetched again.

        A batch counts as handed out as a whole, and asking for the next one finishes
        it; to commit a certain one, name its `RawBatch.next_offset`. If a step is
        cancelled, nothing was taken. The iteration ends when the consumer is closed.

        Args:
            until: where the iteration ends, as for `records`; None for no end.

        Raises:
            ClosedError: the consumer is closed already.
            ArgumentTypeError: ``until`` has the wrong type.
            ArgumentValueError: as `records` for ``until``.
            RequestTimeout: while iterating with ``until``: as `records`.
            KafkaError: while iterating: as ``__anext__`` does.
        """
        edge = None if until is None else _edge(until)
        return self._core.raw_batches(self, edge)

    def arrow_batches(
        self,
        *,
        max_records: int | None = None,
        max_wait: float = 0.0,
        headers: bool = False,
        until: Bound | None = None,
    ) -> TableIterator:
        """Return an iterator over pyarrow tables of all partitions.

        It returns a table when there are ``max_records`` fetched records, or
        ``max_wait`` after the first one. The records of one partition are consecutive
        in it, and in order. Asking for the next table finishes the one before. If
        cancelled, nothing was taken. `kafkaio.arrow` describes the columns; with
        deserializers, key and value have the types of their schemas (a deserializer
        with a method ``to_arrow``, such as `kafkaio.registry.Avro`), or the types that
        Arrow infers for the objects. The iteration ends when the consumer is closed.

        Args:
            max_records: most rows of a table, 32,768 by default.
            max_wait: seconds to wait for that many.
            headers: whether the tables have a column with the headers.
            until: where the iteration ends, as for `records`; None for no end.

        Raises:
            ImportError: pyarrow is not installed: ``pip install 'kafkaio[arrow]'``.
            ClosedError: the consumer is closed already.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: ``max_records`` is below 1, or ``max_wait`` negative.
            UsageError: while iterating: Arrow has no type for the objects, which were
                not read by that.
            KafkaError: while iterating: as ``__anext__`` does.
        """
        limit = count_of("max_records", max_records, TABLE_ROWS)
        edge = None if until is None else _edge(until)
        return self._core.tables(self, limit, max_wait, edge, headers=headers)

    # Reading with several tasks

    def partitions(self) -> LaneIterator[K_co, V_co]:
        """Return an iterator over lanes, one for each assignment of a partition.

        Each lane is for a task of its own, at its own pace: a slow lane delays no
        other. A lane ends when the revocation of its partition is requested, and the
        partition is released when the lane's body has ended; or when the partition is
        lost; see `Lane`. A partition that is assigned again has a new lane. The
        iteration ends when the consumer closes: `close` asks every lane to end, and
        waits for the bodies for 80 % of its timeout.

        From the first lane on, records are read from lanes alone, until the consumer
        closes. Lanes go on after this iteration was left, and another iteration
        returns the lanes that were not returned.

        If nothing is subscribed to or assigned, the iteration raises UsageError; if
        that ends while lanes run, it does so when the last lane has ended.

        With ``enable_auto_commit``, records that lanes have finished are committed
        automatically. Without it, `Lane.commit` commits, or `commit`, which without
        arguments commits everything that lanes have handed out.
        """
        return self._core.lanes(self)

    @overload
    async def run(
        self,
        handler: Callable[[Record[K_co, V_co]], Awaitable[object]],
        *,
        concurrency: int = 100,
        ordering: Ordering = "key",
        retry: Retry | None = None,
        dead_letter: OnDead | None = None,
    ) -> None: ...

    @overload
    async def run(
        self,
        handler: Callable[[TransactionT, Record[K_co, V_co]], Awaitable[object]],
        *,
        producer: TransactionMakerPort[TransactionT],
        concurrency: int = 100,
        ordering: Ordering = "key",
        retry: Retry | None = None,
        dead_letter: DeadLetter
        | Callable[[TransactionT, Record, Exception], Awaitable[object]]
        | None = None,
        max_records: int = 1000,
        max_wait: float = 0.2,
    ) -> None: ...

    async def run(  # noqa: PLR0913
        self,
        handler: Callable[..., Awaitable[object]],
        *,
        concurrency: int = 100,
        ordering: Ordering = "key",
        retry: Retry | None = None,
        dead_letter: Callable[..., Awaitable[object]] | None = None,
        producer: TransactionMakerPort[Any] | None = None,
        max_records: int = 1000,
        max_wait: float = 0.2,
    ) -> None:
        """Call a coroutine function with each record, many at a time.

        A record is finished when its handler returns. Finished records are committed
        automatically and in order, whatever ``enable_auto_commit`` says: a partition is
        committed up to its first record that is not finished, every
        ``auto_commit_interval_ms``, before it is released, when this call ends, and by
        `close`. ``commit()`` and ``commit(partitions)`` commit the same at once:
        nothing whose handler still runs. After this call, ``enable_auto_commit``
        decides again.

        When the revocation of a partition is requested, everything up to its last
        record that was begun is finished first, so that the next owner repeats none of
        them; no further record of it is begun, and the other partitions run on at full
        speed. Handlers of a partition that was lost are cancelled. A member counts as
        alive (``max_poll_interval_ms``) as long as handlers end.

        `close` does the same with all partitions, for 80 % of its timeout; then this
        call returns. That is the clean way to stop. If this call is cancelled, so are
        the handlers. A record whose handler was cancelled is not finished. Records that
        are not finished at the end are read again, by this consumer or by the next
        owner.

        With a ``producer``, everything happens in its transactions, one after another:
        ``handler(tx, record)`` sends by ``tx``, and what it sent is committed together
        with the offset of the record, or not at all. Nothing is committed in any other
        way. A transaction takes records until there are ``max_records`` of them, or
        for ``max_wait`` seconds, or until the revocation of a partition is requested.
        Then no further handler begins, those at work end, and the transaction is
        committed. A transaction begins with its first record. One that is
        aborted, because a partition was lost or the brokers refused something, is
        reported to the observer (``retrying``) and done again after a back-off, without
        end. A handler that fails for good aborts its transaction, and so does
        cancelling this call; everything in it is handed out again. Records that a
        failed attempt of a handler has sent stay in the transaction, so a handler that
        is tried again, or whose record goes to ``dead_letter``, should send last. Needs
        ``enable_auto_commit=False``, and no ``io_thread``.

        Args:
            handler: works on one record; with a ``producer``, it gets the transaction
                and the record.
            concurrency: most handlers that run at a time. Twice as many
                records, but at least ``max_poll_records``, are taken at most.
            ordering: records that never run at the same time, but in the order of
                offsets: those of one ``key`` in one partition (those without a key are
                independent), those of one ``partition``, or ``none``. Keys are
                compared as bytes, before they are deserialized.
            retry: which failed records are tried again, and when; None for none.
            dead_letter: called with a record, not deserialized, and the exception of
                its last attempt (an error of a deserializer that says nothing about the
                record, such as that of a registry that is down, is none: it is reported
                to the observer and tried again without end); a
                `DeadLetter`, or any coroutine function. The record is finished when it
                returns. A batch that cannot be read comes as one record, whose value is
                the bytes of the batch, with a `CorruptRecord` or `RecordTooLarge`. With
                a ``producer``, a `DeadLetter` writes in the transaction, and a function
                gets the transaction first.
            producer: a `Producer` with a ``transactional_id``, to work in transactions.
            max_records: most records of a transaction.
            max_wait: seconds for which a transaction takes records.

        Raises:
            Exception: what a handler raised last without a ``dead_letter``, or what
                that raised. Nothing of its partition from that record on is committed.
            UsageError: another task reads, or nothing is subscribed to or assigned
                (after `unsubscribe`, when what was begun is finished); or the consumer
                commits automatically, keeps its offsets outside Kafka, or has no
                group, and so cannot take part in transactions.
            CorruptRecord, RecordTooLarge: a batch cannot be read, and there is no
                ``dead_letter``, or the end of the batch is not known. The records
                taken before were worked on, and what is finished was committed.
            Fenced: another producer has the ``transactional_id`` now.
            OutcomeUnknown: it will never be known whether a transaction was
                committed, because the producer was closed or fenced before its end was
                answered. Until then, an outcome that is not known is awaited.
            ArgumentTypeError: an argument has the wrong type. A handler that is not a
                coroutine function is found with the first record, which is not
                finished, whatever ``retry`` and ``dead_letter`` are.
            ArgumentValueError: ``concurrency`` is below 1, or ``ordering`` is unknown.
            ClosedError: the consumer is not running.
            KafkaError: as iterating does.
        """
        limit = count_of("concurrency", concurrency, 100)
        if not callable(handler):
            raise ArgumentTypeError(
                f"handler must be callable, not {type_name(handler)}"
            )
        _check_callable("dead_letter", dead_letter)
        from kafkaio._consumer.parallel.handlers import observed
        from kafkaio._consumer.parallel.run import TransactionalRun
        from kafkaio._machines.retries import Retry

        if not isinstance(retry, Retry | None):
            raise ArgumentTypeError(
                f"retry must be a kafkaio.Retry or None, not {type_name(retry)}"
            )

        handler = observed(handler, self._core.observer, self._config.group_id)
        how = None
        if producer is not None:
            # Bound here: the core makes transactions without knowing producers.
            how = TransactionalRun(
                partial(producer.transaction, self),
                handler,
                dead_letter,
                count_of("max_records", max_records, 1000),
                seconds_of("max_wait", max_wait),
                Backoff(
                    self._config.retry_backoff_ms, self._config.retry_backoff_max_ms
                ),
            )
        await self._core.run(handler, limit, ordering, retry, dead_letter, how)

    # The selection

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are assigned by the present subscription, or fixed.

        `unsubscribe` empties this at once, though ``on_revoked``, which is called a
        little later, may still commit for the partitions.
        """
        return PropertySet("assignment", self._core.assignment())

    @property
    def subscription(self) -> frozenset[str] | re.Pattern[str]:
        """The subscription: names of topics, or the pattern that was given.

        Empty without a subscription, and so also with fixed partitions. A pattern is
        returned as such, because with KIP-848 the group coordinator matches it;
        `assignment` has the topics that are read.
        """
        wanted = self._core.wanted
        return wanted.pattern or PropertySet("subscription", wanted.topics or ())

    def subscribe(self, topics: Topics[K_co, V_co]) -> None:
        """Read these topics from now on, instead of those before.

        The next read raises an error for an illegal name (InvalidTopic), or for a
        topic that the principal may not describe (AuthorizationError).

        Args:
            topics: names or `Topic` objects, one or a collection, or a pattern that
                matches whole names. An empty collection is the same as `unsubscribe`.

        Raises:
            ArgumentTypeError: a topic has the wrong type.
            ArgumentValueError: a topic has no name.
            UsageError: partitions are assigned; unsubscribe first.
            ClosedError: the consumer is closed.
        """
        self._core.apply(ReadSelection.of(topics, None))

    def unsubscribe(self) -> None:
        """Stop reading: release topics, pattern and fixed partitions.

        From this call on, `assignment` is empty and no record is handed out; buffered
        records are dropped. The rest follows in the background: finished records are
        committed (with auto-commit), ``on_revoked`` is called, in which commits and
        `position` still work, and the member leaves the group. The record that was
        handed out last is not finished by this call. Holds and lanes keep their
        partitions as long as in any revocation, and the group waits for them.

        A later `subscribe` joins the group anew after all of that, even if it names the
        same topics and nothing was awaited in between. Until then reading raises
        UsageError, also a read that waits already; `run` and `partitions` raise it
        when the work that was begun has ended.

        Raises:
            ClosedError: the consumer is closed.
        """
        self._core.apply(ReadSelection())

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions; those that are read already are not touched.

        No partitions at all are the same as `unsubscribe`. The next read raises an
        error for a partition that the cluster does not have
        (UnknownTopicOrPartition, after ``default_api_timeout_ms`` if the topic is
        missing), or that the principal may not describe (AuthorizationError). It is
        raised again and again while the partition is assigned; the others are read
        meanwhile.

        Raises:
            ArgumentTypeError: a partition has the wrong type.
            ArgumentValueError: a topic has no name, or a number is negative.
            UsageError: topics are subscribed to; unsubscribe first.
            ClosedError: the consumer is closed.
        """
        self._core.apply(ReadSelection.of(None, partitions))

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out no records of these partitions; buffered records stay.

        Raises:
            ArgumentTypeError: a partition has the wrong type.
            UsageError: a partition is not assigned.
        """
        self._core.pause(partitions_of(partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        """End a pause.

        Raises:
            ArgumentTypeError: a partition has the wrong type.
            UsageError: a partition is not assigned.
        """
        self._core.resume(partitions_of(partitions))

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return PropertySet("paused", self._core.paused())

    # Positions and offsets of logs

    async def position(
        self,
        partition: TopicPartition,
        timeout: float | None = None,
    ) -> int:
        """Return the offset of the next record to be handed out, once it is known.

        A partition whose revocation is requested has a position until it is released.

        Args:
            partition: an assigned partition.
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Raises:
            ArgumentTypeError: an argument has the wrong type.
            UsageError: the partition is not assigned.
            RequestTimeout: the position is not known in time; the message says what
                the partition lacks.
            OffsetOutOfRange: there is none, and no policy to find one.
        """
        return await self._core.position(partition_of(partition), self._within(timeout))

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Read a partition from an offset; the next record handed out is from there.

        Raises:
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: the offset is negative.
            UsageError: the partition is not assigned.
        """
        self._core.seek(partition_of(partition), _readable(offset))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read these, or all assigned partitions, from the first record kept.

        Raises:
            ArgumentTypeError: a partition has the wrong type.
            UsageError: a partition is not assigned.
        """
        self._core.seek_to(partitions_of(partitions), Reset(ResetTo.EARLIEST))

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Read these, or all assigned partitions, from after the last record.

        Raises:
            ArgumentTypeError: a partition has the wrong type.
            UsageError: a partition is not assigned.
        """
        self._core.seek_to(partitions_of(partitions), Reset(ResetTo.LATEST))

    async def offsets_for_times(
        self,
        times: Mapping[TopicPartition, int],
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return each partition's first offset whose record is not older than a time.

        Args:
            times: milliseconds since the Unix epoch, by partition; any partitions.
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Returns:
            An entry for each partition: None if every record is older.

        Raises:
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: a time is negative.
            UnknownTopicOrPartition: a partition does not exist.
            RequestTimeout: time is up.
        """
        within = self._within(timeout)
        return await self._core.offsets(_times_of(times), within)

    async def beginning_offsets(
        self,
        partitions: Collection[TopicPartition],
        timeout: float | None = None,
    ) -> dict[TopicPartition, int]:
        """Return the offset of the first record kept, of any partitions.

        Args:
            partitions: the partitions.
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Raises:
            ArgumentTypeError: an argument has the wrong type.
            UnknownTopicOrPartition: a partition does not exist.
            RequestTimeout: time is up.
        """
        within = self._within(timeout)
        return await self._core.ends(partitions_of(partitions), EARLIEST, within)

    async def end_offsets(
        self,
        partitions: Collection[TopicPartition],
        timeout: float | None = None,
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record that can be read, of any partitions.

        With ``read_committed`` that is the last stable offset.

        Args:
            partitions: the partitions.
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Raises:
            ArgumentTypeError: an argument has the wrong type.
            UnknownTopicOrPartition: a partition does not exist.
            RequestTimeout: time is up.
        """
        within = self._within(timeout)
        return await self._core.ends(partitions_of(partitions), LATEST, within)

    async def lag(
        self,
        *partitions: TopicPartition,
        timeout: float | None = None,
    ) -> dict[TopicPartition, int]:
        """Return how many offsets the position is behind the end; asks the leaders.

        Args:
            partitions: assigned partitions; all that are assigned by default.
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Raises:
            ArgumentTypeError: an argument has the wrong type.
            UsageError: a partition is not assigned.
            RequestTimeout: time is up.
        """
        within = self._within(timeout)
        return await self._core.lag(partitions_of(partitions), within)

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """Return the offset after the last record that consumers may read.

        It is what the last fetch of the partition reported, and so it is out of date
        while the partition is not fetched (paused, or its revocation requested).
        `end_offsets` asks the leader. None before the first fetch was answered.

        Raises:
            ArgumentTypeError: the partition has the wrong type.
            UsageError: the partition is not assigned.
        """
        ends = self._core.log_ends(partition_of(partition))
        return None if ends is None or ends.high_watermark < 0 else ends.high_watermark

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        """Return the offset of the first record of an open transaction.

        Without one it is the high watermark. With ``read_committed`` nothing from there
        on is handed out. It is what the last fetch reported, as `high_watermark`.

        Raises:
            ArgumentTypeError: the partition has the wrong type.
            UsageError: the partition is not assigned.
        """
        ends = self._core.log_ends(partition_of(partition))
        return None if ends is None or ends.last_stable < 0 else ends.last_stable

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return how many offsets the position is behind the end; asks no broker.

        The end is the high watermark or, with ``read_committed``, the last stable
        offset, as the last fetch reported; the position is that of `position`. None
        before the first fetch was answered, and without a position. `lag` asks the
        leaders.

        Raises:
            ArgumentTypeError: the partition has the wrong type.
            UsageError: the partition is not assigned.
        """
        return self._core.current_lag(partition_of(partition))

    # Topics of the cluster

    async def topics(
        self,
        timeout: float | None = None,
    ) -> frozenset[str]:
        """Return the names of all topics that the principal may see; asks a broker.

        Internal topics are included with ``exclude_internal_topics=False``.

        Args:
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Raises:
            RequestTimeout: no broker answered in time.
            ClosedError: the consumer is not running.
        """
        return await self._core.topics(self._within(timeout))

    async def partitions_for_topic(
        self,
        topic: str,
        timeout: float | None = None,
    ) -> frozenset[int]:
        """Return the numbers of a topic's partitions; asks a broker, creates no topic.

        Args:
            topic: name of the topic.
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Raises:
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: the name is empty.
            UnknownTopicOrPartition: the topic does not exist.
            AuthorizationError: the principal may not describe the topic.
            BrokerError: the name is illegal.
            RequestTimeout: no broker answered in time.
            ClosedError: the consumer is not running.
        """
        check_topic(topic)
        return await self._core.partitions_for_topic(topic, self._within(timeout))

    # Committed offsets

    @refuses_others
    async def commit(
        self,
        what: ToCommit | None = None,
        timeout: float | None = None,
        *_others: Never,
        **_foreign: Never,
    ) -> None:
        """Commit offsets for the group; return when the group coordinator has them.

        Without arguments, everything that was handed out so far is committed, as by
        Java's ``commitSync()``: the call says that all of it is done, and automatic
        commits go on from there. A program that works on several partitions at once
        names those that it is done with, ``commit(partitions)``. While `run` is at
        work, its handlers decide what is done: both forms commit only up to the first
        record of a partition whose handler has not ended. With lanes (`partitions`),
        ``commit()`` commits what all lanes have handed out, and `Lane.commit` what one
        lane has.

        Commits take effect in the order of the calls. Those that are called while one
        is on its way are sent together, and each call raises the errors of its own
        partitions. A partition that is refused keeps no other from being committed. A
        call that began before the step that releases its partition counts: the release
        waits for it, up to 12 seconds. If the call is cancelled, the offsets may be
        committed all the same. A commit whose connection broke may arrive late, and
        overwrite what was committed after it: Kafka tells the two apart by the
        generation of the group only.

        With ``enable_auto_commit``, a commit of a partition stands until something more
        of it is finished.

        Args:
            what: None for everything that was handed out; or partitions of which
                everything that was handed out is done, one or a collection; or a record
                or batch that is done, which commits where reading goes on after it:
                markers of transactions that follow and were fetched are passed over
                (KIP-1094); or offsets of the next record by partition. A consumer that
                is not a member (for example after `unsubscribe`) can commit offsets of
                any partition while the group has no members.
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Raises:
            PartitionLost: a partition is not assigned to this consumer any more.
            RebalanceInProgress: read on to take part in it, then commit again.
            CommitFailed: the group has moved on without this member.
            UnknownTopicOrPartition: a topic does not exist (any more); raised at once
                if the metadata says so, too, and after 3 seconds otherwise.
            BrokerError: the coordinator refused for another reason.
            RequestTimeout: time is up; the offsets may be committed all the same. The
                text names the partitions and the reason: the last refusal, or the
                broker that throttles this client.
            ArgumentTypeError: ``what`` cannot be committed.
            ArgumentValueError: an offset is negative.
            UsageError: the consumer has no group, or a partition is named without an
                offset and is not assigned.
        """
        if _others or _foreign:
            raise wrong_call("Consumer.commit", 2 + len(_others), _foreign)
        await self._core.commit_for_user(what, self._within(timeout))

    async def committed(
        self,
        partitions: Collection[TopicPartition] | None = None,
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offsets; None where there is none.

        Args:
            partitions: any partitions; those assigned by default.
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Raises:
            ArgumentTypeError: an argument has the wrong type.
            BrokerError: the coordinator refused.
            RequestTimeout: time is up.
            UsageError: the consumer has no group.
        """
        chosen = None if partitions is None else partitions_of(partitions)
        return await self._core.committed(chosen, self._within(timeout))

    async def rewind(
        self,
        to: Mapping[TopicPartition, RewindTo],
        timeout: float | None = None,
    ) -> dict[TopicPartition, int]:
        """Move the whole running group to other offsets, back or ahead.

        The owners release the partitions as in any rebalance: work on their records is
        finished, holds and delays count, `RevokeRequested` and `Revoked` report it.
        While no member has the partitions, the offsets are committed; then they are
        assigned again. So when this returns, each record of them that any member is
        handed comes from there on, and no commit of an old owner can follow. Paused
        partitions are not paused afterwards. An ``offset_store`` has to be shared by
        the members.

        If the task that reads calls this, it is done with what it was handed, which is
        not finished by that. Do not call it in a handler of `run` or in the body of a
        lane of a partition to be moved: that work would wait for itself.

        With KIP-848 a member can move what it owns. In a classic group, the member that
        leads has to be a kafkaio consumer; the others may be of any client. If
        cancelled, the offsets may be committed all the same.

        Args:
            to: by partition, the offset of the next record to read; ``earliest`` or
                ``latest``; or so long ago: a ``datetime.timedelta``, or as text
                ``by_duration:...``, as for ``auto_offset_reset``.
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Returns:
            The offset at which the group goes on, by partition, in the order given.

        Raises:
            RewindRefused: the owners cannot be asked.
            UnknownTopicOrPartition: a partition does not exist.
            RequestTimeout: an owner did not release its partition in time, or a leader
                did not tell the offset.
            BrokerError: the coordinator refused the commit.
            OffsetStoreError: the ``offset_store`` failed.
            AdminErrors: partitions failed for several reasons.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: an offset is negative, or a place is unknown.
            UsageError: the consumer is not subscribed as a member of a group.

        Each partition is moved or fails for itself: an error has the offsets of those
        that were moved as its ``results``, and its ``item`` is the partition if it is
        about one.
        """
        places = {partition_of(tp): _place_of(place) for tp, place in to.items()}
        return await self._core.rewind(places, self._within(timeout))

    # Transactions: `TransactionalConsumer`, as producers know it.

    def _offsets_in_transaction(self, what: object = None) -> GroupOffsetsPort | None:
        return self._core.offsets_in_transaction(what)

    def _join_transaction(
        self,
        on_revoke: Callable[[], None],
        on_lost: Callable[[KafkaError], None],
    ) -> JoinedConsumerPort:
        return self._core.join_transaction(on_revoke, on_lost)

    # Rebalances

    @property
    def to_be_revoked(self) -> frozenset[TopicPartition]:
        """Partitions whose revocation is requested and that the next step releases.

        A delayed partition is among them again after that step.
        """
        return self._core.to_be_revoked()

    @property
    def lost(self) -> frozenset[TopicPartition]:
        """Partitions that the last poll reported as lost, or that were lost since."""
        return self._core.lost()

    def delay_revoke(self, partitions: Collection[TopicPartition]) -> bool:
        """Keep partitions through the next poll, because they are worked on (KIP-983).

        Call it after each poll that reports them, until the work is done and committed.
        That poll does not finish the records of them that were handed out, so automatic
        commits leave these out. The deadline stays: after it the partitions are lost.
        A partition without a requested revocation is ignored. This is for `poll`; with
        an iterator, hold the partitions (`rebalances`).

        Returns:
            False if some of them were lost or released; the others are kept even so.

        Raises:
            ArgumentTypeError: a partition has the wrong type.
        """
        return self._core.delay_revoke(partitions_of(partitions))

    def rebalances(self) -> Rebalances:
        """Return an iterator over the events of rebalances, from this call on.

        It may be called before `start`. The events are `Assigned`, `RevokeRequested`,
        `Revoked` and `Lost`, in order. Partitions with a requested revocation are kept
        while the event waits in the iterator, until the next event is asked for, and
        while ``event.hold()`` is entered; the other partitions are read on. There may
        be several such iterators, and all of them count. Events are never dropped: a
        slow listener keeps partitions until their deadline, and consecutive events of
        one kind that wait for it become one, except requests. The iteration ends when
        the consumer is closed. If cancelled, no event was taken.

        An iterator keeps partitions for the task that asked it for an event last. When
        that task has ended, in whatever way, the iterator keeps nothing any longer,
        after half a second in which another task may continue with it; the same holds
        for one that no task has iterated over. A task that leaves the loop by ``break``
        and goes on has not ended: unless nothing refers to the iterator any more, call
        ``aclose()``; else it keeps the request that it returned last, and those after
        it, until their deadlines. `asyncio.wait_for` before Python 3.12 runs each step
        in a task of its own: enter the hold of what it returns at once.

        Raises:
            Exception: while iterating: the crash of a background task.
        """
        return self._core.rebalances()

    @asynccontextmanager
    async def _held_request(self) -> AsyncIterator[RevokeRequested]:
        while True:
            request, hold = await self._core.next_revoke()
            # Entered in this task, whose end then ends the hold. The one that came with
            # the request is released after that, so nothing is let go in between.
            held = hold.another()
            try:
                held.take()
            except PartitionLost:  # all of them, since the request
                hold.release()
                continue
            try:
                yield request
            finally:
                held.release()
            return

    def wait_for_revoke(self) -> AbstractAsyncContextManager[RevokeRequested]:
        """Wait for the next requested revocation, and hold its partitions.

        For use as ``async with consumer.wait_for_revoke() as event:``. Entering waits
        until the group requests a revocation, or returns a pending request at once if
        this method did not return it before. The partitions are held while the block
        runs, at most until ``event.deadline``, and released after it as after any hold
        (`RevokeRequested.hold`). If entering is cancelled, no request was taken.

        Raises:
            UsageError: on entering: the consumer has no group.
            ClosedError: on entering: the consumer was closed.
            Exception: on entering: the crash of a background task.
        """
        return self._held_request()

    @property
    def group_metadata(self) -> GroupMetadata:
        """The identity in the group, by which transactional commits are fenced.

        Raises:
            UsageError: the consumer has no group.
        """
        return self._core.group_metadata()

    def enforce_rebalance(self, reason: str = "") -> None:
        """Make the group divide its partitions anew.

        Args:
            reason: for the broker's log.

        Raises:
            UsageError: this consumer is not a member of a group.
            ClosedError: the consumer is closed.
        """
        self._core.enforce_rebalance(reason)

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
            metric: its name, and the function that returns its value; with
                ``io_thread=True``, that runs in the I/O thread.

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

    def statistics(self) -> ConsumerStatistics:
        """Return a snapshot of the consumer."""
        return self._core.statistics()

    def _within(self, timeout: float | None) -> float:
        if timeout is None:
            return self._config.default_api_timeout_ms / 1000
        return seconds_of("timeout", timeout)


def passing_of(
    consumer: Consumer[object, object], error: BaseException
) -> tuple[int, float] | None:
    """Return what is known of a failure to deserialize that passes.

    Returns:
        How many attempts have failed in a row, and the seconds before the next one;
        None for any other error.
    """
    return consumer._core.passing(error)


def observer_of(consumer: Consumer[object, object]) -> Observer:
    """Return the observer of a consumer, for other parts of this library."""
    return consumer._core.observer


def _edge(until: Bound) -> Edge:
    # Imported late: most consumers read without an end.
    from kafkaio._client.log_ranges import edge_of

    return edge_of("until", until, LATEST)


def _limit(timeout: float | None) -> float | None:
    return None if timeout is None else seconds_of("timeout", timeout)


def _callbacks(
    on_assigned: PartitionsCallback | None,
    on_revoked: PartitionsCallback | None,
    on_lost: PartitionsCallback | None,
) -> HeldCallbacks:
    _check_callable("on_assigned", on_assigned)
    _check_callable("on_revoked", on_revoked)
    _check_callable("on_lost", on_lost)
    return HeldCallbacks(on_assigned, on_revoked, on_lost)


def _threaded() -> type[ThreadedCore]:
    from kafkaio._consumer.threaded.core import ThreadedCore  # with a thread alone

    return ThreadedCore


def _check_callable(name: str, function: object) -> None:
    if function is not None and not callable(function):
        raise ArgumentTypeError(f"{name} must be callable, not {type_name(function)}")


def _times_of(times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    for time in times.values():
        if type(time) is not int:
            raise ArgumentTypeError(
                f"times must be int milliseconds, not {type_name(time)}"
            )
        if time < 0:
            raise ArgumentValueError(f"times must not be negative: {time}")
    return {partition_of(tp): time for tp, time in times.items()}


def _place_of(place: RewindTo) -> OffsetAndMetadata | Reset:
    if not isinstance(place, str):
        return _moment_of(place)
    kind, _, duration = place.partition(":")
    is_invalid = kind == "by_duration" and iso_duration_ms(duration) is None
    reset = None if is_invalid else Reset.of(place)
    if reset is None:
        raise ArgumentValueError(f"{place!r} is not a place to rewind to")
    return reset


def _moment_of(place: int | OffsetAndMetadata | timedelta) -> OffsetAndMetadata | Reset:
    from datetime import timedelta  # a millisecond to load

    if not isinstance(place, timedelta):
        return _readable(place)
    if place < timedelta(0):
        raise ArgumentValueError(f"{place!r} is negative: it goes back by this")
    return Reset(ResetTo.DURATION, place // timedelta(milliseconds=1))


def _readable(offset: int | OffsetAndMetadata) -> OffsetAndMetadata:
    where = offset_of(offset)
    if where.offset < 0:
        raise ArgumentValueError(f"offset {where.offset} is negative")
    return where
