"""The admin client, as users see it: `Admin`, whole.

It has the life of any client: started, used by any number of tasks, closed. It starts
no task of its own. What its operations ask and change stands in the modules beside it,
by subject: `kafkaio.admin.transactions`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Literal, Self, TypeVar, Unpack, overload
from uuid import UUID

from kafkaio._arguments import partition_of, seconds_of, topics_of
from kafkaio._dataclass import dataclass
from kafkaio._net.transport import Dial
from kafkaio._runtime.clock import now
from kafkaio._runtime.lifecycle import Closeable, Lifecycle
from kafkaio.admin.asking import outcome
from kafkaio.admin.transactions import Transactions
from kafkaio.admin.types import (
    CreatedTopic,
    HangingTransaction,
    NewTopic,
    ProducerIdAndEpoch,
    ProducerState,
    TopicDescription,
    TopicListing,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kafkaio.client.client import Client, cluster_of
from kafkaio.client.cluster import Cluster
from kafkaio.client.fanout import Results
from kafkaio.config import ClientConfig, ClientOptions
from kafkaio.config.signature import OptionsSignature
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    KafkaError,
)
from kafkaio.protocol.messages.list_transactions import ListTransactionsRequest
from kafkaio.types import TopicPartition

__all__ = ["Admin", "AdminStatistics"]

ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT")

#: What brokers allow by default as ``transaction.max.timeout.ms``.
_MAX_TRANSACTION_TIMEOUT_MS = 900_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminStatistics:
    """A snapshot of an admin client.

    Attributes:
        state: ``new``, ``starting``, ``running``, ``failed``, ``closing`` or
            ``closed``.
        cluster_id: the id of the cluster, None while it is unknown.
        brokers: the number of brokers of the cluster.
    """

    state: str
    cluster_id: str | None
    brokers: int


class Admin(Closeable):
    """Asks a cluster what operators need to know, and changes it.

    ``async with`` starts and closes it, as `start` and `close` do. It belongs to the
    event loop and to the process in which it was started. Any number of tasks of that
    loop may use it at the same time; calls have no order among each other. One that is
    garbage collected without having been closed gives a ResourceWarning.

    Every operation has a ``timeout`` in seconds for all of its requests and retries,
    ``default_api_timeout_ms`` by default. What a broker refuses only for the moment is
    asked again until then. An operation on many items raises the error of the item
    that failed, and `kafkaio.AdminErrors` if several did; both have the results of the
    other items as ``results``. With ``return_errors=True`` it returns a dict with the
    results and the errors. If a call is cancelled, requests
    that were sent may still take effect.

    Args:
        bootstrap_servers: ``"host:port,host2:port"``, a sequence of such strings, or a
            started `kafkaio.Client` to share. `close` leaves a shared client open.
        observer: an object with any of the methods of `kafkaio.Observer`, or a list of
            such objects. Not allowed with a shared client, which has its own.
        options: see `kafkaio.ClientConfig`; none is allowed with a shared client.

    Raises:
        ConfigurationError: an option is unknown or impossible.
    """

    __signature__: OptionsSignature = OptionsSignature(ClientOptions, ClientConfig)

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        observer: object | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        if isinstance(bootstrap_servers, Client):
            # Keeps the shared client alive: a collected client ends its cluster.
            self._client = bootstrap_servers
            config = ClientConfig.sharing(bootstrap_servers.config, options, observer)
            self._set_up(config, cluster_of(bootstrap_servers), owns_cluster=False)
        else:
            config = ClientConfig.of(bootstrap_servers, options)
            self._set_up(config, Cluster(config, observer), owns_cluster=True)

    def _set_up(
        self, config: ClientConfig, cluster: Cluster, *, owns_cluster: bool
    ) -> None:
        self._life = Lifecycle("admin", config.client_id)
        #: The options.
        self.config: ClientConfig = config
        self._cluster = cluster
        self._owns_cluster = owns_cluster
        self._undo: list[Callable[[], None]] = []
        self._transactions = Transactions(cluster)

    @classmethod
    def from_config(
        cls,
        config: ClientConfig,
        *,
        observer: object | None = None,
        dial: Dial | None = None,
    ) -> Self:
        """Make an admin client from a configuration.

        Args:
            config: the options, which were checked when it was made.
            observer: as for the constructor.
            dial: opens transports, in place of TCP and TLS; for tests.
        """
        admin = cls.__new__(cls)
        admin._set_up(config, Cluster(config, observer, dial), owns_cluster=True)
        return admin

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, object], *, observer: object | None = None
    ) -> Self:
        """Make an admin client from Kafka's dotted names, as ``bootstrap.servers``.

        Args:
            properties: values by the names that Java or librdkafka have for them.
            observer: as for the constructor.

        Raises:
            ConfigurationError: a name is unknown, or a value is impossible.
        """
        config = ClientConfig.from_properties(properties)
        return cls.from_config(config, observer=observer)

    def __repr__(self) -> str:
        numbers = self.statistics()
        return (
            f"<Admin {self.config.client_id!r} {numbers.state} | "
            f"{numbers.cluster_id or 'unknown cluster'}, {numbers.brokers} brokers>"
        )

    def statistics(self) -> AdminStatistics:
        """Return a snapshot of the admin client."""
        view = self._cluster.view
        return AdminStatistics(
            state=self._life.state.value,
            cluster_id=view.cluster_id,
            brokers=len(view.brokers),
        )

    # ---- start and close -----------------------------------------------------------

    async def start(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Connect to the cluster; returns when it has answered.

        If the call fails or is cancelled, the admin client is closed.

        Args:
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Raises:
            BrokerNotAvailable: no bootstrap server answered in time.
            AuthenticationError: the brokers refuse the client.
            ClosedError: it was started or closed before, or a shared client is not
                running.
        """
        if timeout is not None:
            seconds_of("timeout", timeout)
        self._life.begin()
        cluster, life = self._cluster, self._life
        try:
            if self._owns_cluster:
                await cluster.start(timeout)
            cluster.life.check()
            self._undo.append(cluster.add_crash_listener(life.crashed))
            life.started()
        except BaseException:
            await self.close(timeout=0)
            raise
        cluster.observer.started("admin", self.config.client_id)

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Close the connections of its own client. May be called again.

        Calls that wait on them raise ClosedError; those on a shared client end by
        themselves. If the call is cancelled, closing goes on without it.

        Args:
            timeout: seconds after which the call returns although background tasks
                have not ended; they end later. 10 by default.

        Raises:
            ArgumentTypeError: the timeout is no number.
            ArgumentValueError: it is negative; nothing was closed.
            ClosedError: it belongs to another event loop or process.
        """
        if timeout is not None:
            seconds_of("timeout", timeout)
        if self._life.begin_close() is None:
            await self._life.closed()
            return
        await self._life.close(None, partial(self._end, timeout))

    async def _end(self, timeout: float | None) -> None:  # noqa: ASYNC109
        _call_all(self._undo)
        try:
            if self._owns_cluster:
                await self._cluster.close(timeout)
        finally:
            if self._life.ended():
                self._cluster.observer.closed("admin", self.config.client_id)

    def _abandon(self) -> None:
        self._life.soon(partial(_call_all, self._undo))
        if self._owns_cluster:
            self._life.soon(self._cluster.abandon)

    def _deadline(self, timeout: float | None) -> float:
        self._life.check()
        if timeout is None:
            return now() + self.config.default_api_timeout_ms / 1000
        return now() + seconds_of("timeout", timeout)

    # ---- topics -----------------------------------------------------------------

    @overload
    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        wait: bool = True,
        return_errors: Literal[False] = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[str, CreatedTopic]: ...

    @overload
    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        wait: bool = True,
        return_errors: Literal[True],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[str, CreatedTopic | KafkaError]: ...

    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        wait: bool = True,
        return_errors: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[str, CreatedTopic] | dict[str, CreatedTopic | KafkaError]:
        """Create topics.

        The controller creates each topic for itself: one that it refuses keeps no other
        from being created. Brokers learn of a new topic a moment later; with ``wait``
        the call returns when every broker knows a leader of every partition, so that
        the topics can be used at once.

        A call that is repeated by itself, because its answer was lost, may report
        TOPIC_ALREADY_EXISTS for a topic that it has created; the error has a note.
        If the call is cancelled, topics may still be created.

        Args:
            topics: the topics. Names that are illegal are refused before anything is
                sent.
            validate_only: whether the controller only checks whether it would create
                them.
            wait: whether to wait until all brokers can use them. A topic that some
                broker cannot use in time fails with a RequestTimeout that says so; it
                was created.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            What was created by name, in the order of ``topics``.

        Raises:
            InvalidTopic: a name is illegal.
            AuthorizationError: the client may not create a topic of that name.
            BrokerError: TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS,
                INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG,
                POLICY_VIOLATION or another refusal.
            UnsupportedVersion: brokers before 2.4 need numbers of partitions and
                replicas.
            RequestTimeout: there was no answer in time; topics may still be created.
            AdminErrors: several topics failed.
            ArgumentValueError: a name is there twice.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin.topics import Topics, check_new

        deadline = self._deadline(timeout)
        wanted = check_new(topics)
        results = await Topics(self._cluster).create(
            wanted, deadline, validate_only=validate_only, wait=wait
        )
        names = [topic.name for topic in wanted]
        return outcome("create topics", names, results, return_errors=return_errors)

    @overload
    async def delete_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[str | UUID, None]: ...

    @overload
    async def delete_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[str | UUID, KafkaError | None]: ...

    async def delete_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        return_errors: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[str | UUID, None] | dict[str | UUID, KafkaError | None]:
        """Delete topics, with all of their records.

        Each topic is deleted for itself. Brokers delete the records a moment later. If
        the call is cancelled, topics may still be deleted.

        Args:
            topics: topics by name, or by id (Kafka 2.8).
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by topic, in the order of ``topics``.

        Raises:
            UnknownTopicOrPartition: there is no such topic.
            AuthorizationError: the client may not delete a topic.
            BrokerError: TOPIC_DELETION_DISABLED or another refusal.
            UnsupportedVersion: the brokers do not know topics by their ids.
            RequestTimeout: there was no answer in time; topics may still be deleted.
            AdminErrors: several topics failed.
            ArgumentValueError: a topic is there twice.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin.topics import Topics, check_ids

        deadline = self._deadline(timeout)
        wanted = check_ids(topics)
        results = await Topics(self._cluster).delete(wanted, deadline)
        return outcome("delete topics", wanted, results, return_errors=return_errors)

    async def list_topics(
        self,
        *,
        internal: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[str, TopicListing]:
        """List the topics of the cluster.

        Topics that the client may not describe are left out: an empty list does not
        show that there are none.

        Args:
            internal: whether to list Kafka's own topics as well, such as
                ``__consumer_offsets``.
            timeout: seconds.

        Returns:
            The topics by name, sorted.

        Raises:
            RequestTimeout: no broker answered in time.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin.topics import Topics

        listed = await Topics(self._cluster).listed(self._deadline(timeout))
        return {each.name: each for each in listed if internal or not each.is_internal}

    @overload
    async def describe_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        include_authorized_operations: bool = False,
        return_errors: Literal[False] = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[str | UUID, TopicDescription]: ...

    @overload
    async def describe_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        include_authorized_operations: bool = False,
        return_errors: Literal[True],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[str | UUID, TopicDescription | KafkaError]: ...

    async def describe_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        include_authorized_operations: bool = False,
        return_errors: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> (
        dict[str | UUID, TopicDescription]
        | dict[str | UUID, TopicDescription | KafkaError]
    ):
        """Describe topics: their partitions, and where the replicas of these are.

        Args:
            topics: topics by name, or by id (Kafka 2.8).
            include_authorized_operations: whether to ask what the client may do with
                each topic (Kafka 2.3).
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            The descriptions by topic, in the order of ``topics``.

        Raises:
            UnknownTopicOrPartition: there is no such topic.
            AuthorizationError: the client may not describe a topic.
            InvalidTopic: a name is illegal.
            UnsupportedVersion: the brokers do not know topics by their ids.
            RequestTimeout: no broker answered in time.
            AdminErrors: several topics failed.
            ArgumentValueError: a topic is there twice.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin.topics import Topics, check_ids

        deadline = self._deadline(timeout)
        wanted = check_ids(topics)
        results = await Topics(self._cluster).described(
            wanted, deadline, with_operations=include_authorized_operations
        )
        return outcome("describe topics", wanted, results, return_errors=return_errors)

    async def wait_for_topics(
        self,
        topics: str | Iterable[str],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> None:
        """Wait until every broker knows a leader of every partition of topics.

        Args:
            topics: the name of a topic, or several names.
            timeout: seconds.

        Raises:
            RequestTimeout: a broker did not know a leader in time, or not the topic.
            AdminErrors: several topics were not ready in time.
            ArgumentTypeError: an argument has the wrong type.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin.topics import Topics

        deadline = self._deadline(timeout)
        names = topics_of(topics)
        missing = await Topics(self._cluster).unled(names, deadline)
        ready = dict.fromkeys(name for name in names if name not in missing)
        outcome("wait for topics", names, Results(ready, dict(missing)))

    # ---- partitions and their replicas ------------------------------------------

    # ---- offsets and records of partitions --------------------------------------

    # ---- configs ----------------------------------------------------------------

    # ---- groups -----------------------------------------------------------------

    # ---- offsets of groups ------------------------------------------------------

    # ---- access control lists ---------------------------------------------------

    # ---- quotas -----------------------------------------------------------------

    # ---- users and delegation tokens --------------------------------------------

    # ---- the cluster ------------------------------------------------------------

    # ---- transactions --------------------------------------------------------------

    async def list_transactions(
        self,
        *,
        states: Iterable[TransactionState | str] | None = None,
        producer_ids: Iterable[int] | None = None,
        duration_ms: int | None = None,
        pattern: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> list[TransactionListing]:
        """List the transactional ids of the cluster, of all coordinators (KIP-664).

        It needs Kafka 3.0. Every filter that is given must hold.

        Args:
            states: the states that are wanted.
            producer_ids: the producer ids that are wanted.
            duration_ms: the time in milliseconds for which a transaction must have
                been open (KIP-994, Kafka 3.8).
            pattern: a regular expression for the whole transactional id, in RE2 syntax
                (KIP-1152, Kafka 4.1).
            timeout: seconds.

        Returns:
            The ids, sorted. Ids that the client may not describe are left out.

        Raises:
            ArgumentValueError: an argument is impossible, or the brokers do not know a
                state.
            UnsupportedVersion: a broker is too old; the message names what is needed.
            KafkaError: a broker did not answer in time, or refused.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        if duration_ms is not None and duration_ms < 0:
            raise ArgumentValueError(f"duration_ms must not be negative: {duration_ms}")
        request = ListTransactionsRequest(
            state_filters=sorted({str(each) for each in states or ()}),
            producer_id_filters=sorted(set(producer_ids or ())),
            duration_filter=-1 if duration_ms is None else duration_ms,
            transactional_id_pattern=pattern or None,
        )
        return await self._transactions.listed(request, deadline)

    @overload
    async def describe_transactions(
        self,
        ids: Iterable[str],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[str, TransactionDescription]: ...

    @overload
    async def describe_transactions(
        self,
        ids: Iterable[str],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[str, TransactionDescription | KafkaError]: ...

    async def describe_transactions(
        self,
        ids: Iterable[str],
        *,
        return_errors: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> (
        dict[str, TransactionDescription]
        | dict[str, TransactionDescription | KafkaError]
    ):
        """Describe transactional ids, as their coordinators know them (KIP-664).

        It needs Kafka 3.0.

        Args:
            ids: transactional ids.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            The descriptions by id, in the order of ``ids``.

        Raises:
            BrokerError: an id is unknown (TRANSACTIONAL_ID_NOT_FOUND), or refused.
            UnsupportedVersion: a coordinator is too old.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several ids failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = _ids(ids)
        results = await self._transactions.described(wanted, deadline)
        return outcome(
            "describe the transactions", wanted, results, return_errors=return_errors
        )

    @overload
    async def describe_producers(
        self,
        partitions: Iterable[TopicPartition],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]: ...

    @overload
    async def describe_producers(
        self,
        partitions: Iterable[TopicPartition],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[TopicPartition, tuple[ProducerState, ...] | KafkaError]: ...

    async def describe_producers(
        self,
        partitions: Iterable[TopicPartition],
        *,
        return_errors: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> (
        dict[TopicPartition, tuple[ProducerState, ...]]
        | dict[TopicPartition, tuple[ProducerState, ...] | KafkaError]
    ):
        """Describe the producers that the leaders of partitions remember (KIP-664).

        It needs Kafka 2.8.

        Args:
            partitions: the partitions.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            The producers by partition, in the order of ``partitions``.

        Raises:
            UnknownTopicOrPartition: there is no such partition.
            BrokerError: the leader refuses.
            UnsupportedVersion: a leader is too old.
            RequestTimeout: a leader did not answer in time.
            AdminErrors: several partitions failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = list(dict.fromkeys(map(partition_of, partitions)))
        results = await self._transactions.producers(wanted, deadline)
        return outcome(
            "describe the producers", wanted, results, return_errors=return_errors
        )

    async def find_hanging_transactions(
        self,
        *,
        broker: int | None = None,
        topics: str | Collection[str] | None = None,
        max_transaction_timeout_ms: int = _MAX_TRANSACTION_TIMEOUT_MS,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> list[HangingTransaction]:
        """Find transactions that are open in a partition, and that nobody will end.

        A transaction hangs if it is open at the partition's leader for longer than any
        may be, while its coordinator does not have it, or has it without the
        partition. Readers with ``read_committed`` wait at its start for good, until
        `abort_transaction` ends it. Brokers before 3.6 let that happen; and Kafka 4.3.1
        loses the markers of partitions without a leader, of committed transactions as
        well. It needs Kafka
        3.0, and asks every broker, so that all of them have to answer. It needs the
        right to describe every transactional id: brokers say nothing of the others,
        whose old transactions then look as if nobody had them.

        Args:
            broker: looks only at partitions that this broker leads.
            topics: looks only at these topics; at all, internal ones included, by
                default.
            max_transaction_timeout_ms: the brokers' ``transaction.max.timeout.ms``. A
                transaction whose last record is younger than that and five minutes is
                passed over. Producers set the time of records.
            timeout: seconds.

        Returns:
            What was found, in the order of the partitions.

        Raises:
            ArgumentValueError: an argument is impossible.
            UnsupportedVersion: a broker is too old.
            KafkaError: a partition has no leader that answers, or a broker does not.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        if max_transaction_timeout_ms < 0:
            raise ArgumentValueError(
                "max_transaction_timeout_ms must not be negative: "
                f"{max_transaction_timeout_ms}"
            )
        names = None if topics is None else topics_of(topics)
        return await self._transactions.hanging(
            broker, names, max_transaction_timeout_ms, deadline
        )

    async def abort_transaction(
        self,
        partition: TopicPartition,
        start_offset: int,
        *,
        force: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> None:
        """Abort a hanging transaction in one partition, so that readers go on.

        It writes a marker that the coordinator knows nothing of. So it must not be
        used on a transaction that does not hang: that would be aborted in this
        partition and committed in all others. The coordinators are asked first, and a
        transaction that one of them still has is refused. They say nothing of ids that
        the client may not describe. It needs the right to alter the cluster, and Kafka
        3.0, or 2.8 with ``force``.

        What hangs may be committed. Kafka 4.3.1 drops the marker of a partition that
        has no leader, and calls the transaction complete; then the records that hang
        are committed ones, and an abort loses them. So it is refused, too, if the last
        transaction of the producer was committed. Once the producer has gone on to
        another transaction, nobody knows any more: look at the records before.

        Args:
            partition: where it is open, as `find_hanging_transactions` returns it.
            start_offset: its first offset.
            force: whether to abort without asking the coordinators.
            timeout: seconds.

        Raises:
            UsageError: no open transaction begins there, or its coordinator still has
                it: `fence_producers` aborts such a transaction as a whole. Or it may be
                committed.
            UnsupportedVersion: a broker is too old to be asked.
            AuthorizationError: the client may not alter the cluster.
            BrokerError: the leader refused the marker; TRANSACTION_COORDINATOR_FENCED
                if another was written meanwhile.
            RequestTimeout: the leader did not answer in time; it may be aborted.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        tp = partition_of(partition)
        await self._transactions.abort(tp, start_offset, deadline, force=force)

    @overload
    async def fence_producers(
        self,
        ids: Iterable[str],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[str, ProducerIdAndEpoch]: ...

    @overload
    async def fence_producers(
        self,
        ids: Iterable[str],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[str, ProducerIdAndEpoch | KafkaError]: ...

    async def fence_producers(
        self,
        ids: Iterable[str],
        *,
        return_errors: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[str, ProducerIdAndEpoch] | dict[str, ProducerIdAndEpoch | KafkaError]:
        """End the producers of transactional ids, and abort what they have open.

        Each id gets a new epoch, as if another producer had started with it: the one
        that has it now is ``Fenced`` with its next request. When the call
        returns, an open transaction was aborted. An id that is unknown is created.

        The call's timeout becomes the transaction timeout of the ids, until a producer
        starts with them: brokers refuse one above ``transaction.max.timeout.ms``.

        Args:
            ids: transactional ids.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            The new identities by id, in the order of ``ids``.

        Raises:
            AuthorizationError: the client may not write with an id.
            BrokerError: a coordinator refused for another reason.
            RequestTimeout: a coordinator did not answer in time, or could not abort
                the transaction in time; it may still.
            AdminErrors: several ids failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = _ids(ids)
        results = await self._transactions.fence(wanted, deadline)
        return outcome(
            "fence the producers", wanted, results, return_errors=return_errors
        )

    async def force_terminate_transaction(
        self,
        transactional_id: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> None:
        """Abort the open transaction of one transactional id, and fence its producer.

        It is `fence_producers` for one id. It ends also a transaction that takes part
        in a two-phase commit and has no timeout (KIP-939).

        Args:
            transactional_id: the id.
            timeout: seconds.

        Raises:
            KafkaError: as in `fence_producers`.
        """
        await self.fence_producers([transactional_id], timeout=timeout)


def _call_all(undo: list[Callable[[], None]]) -> None:
    while undo:
        undo.pop()()


def _ids(ids: Iterable[str]) -> list[str]:
    if isinstance(ids, str):
        raise ArgumentTypeError("ids must be several transactional ids, not one string")
    found = list(dict.fromkeys(ids))
    for each in found:
        if not isinstance(each, str):
            raise ArgumentTypeError(f"a transactional id must be a string: {each!r}")
        if not each:
            raise ArgumentValueError("a transactional id must not be empty")
    return found
