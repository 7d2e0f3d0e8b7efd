"""The admin client, as users see it: `Admin`, whole.

It has the life of any client: started, used by any number of tasks, closed. It starts
no task of its own. What its operations ask and change stands in the modules beside it,
by subject: `kafkaio.admin._transactions`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Literal, Self, TypeVar, Unpack, overload
from uuid import UUID

from kafkaio._arguments import (
    check_group,
    level_of,
    offset_of,
    partition_of,
    partitions_of,
    seconds_of,
    topics_of,
    type_name,
)
from kafkaio._client.client import Client, cluster_of
from kafkaio._client.cluster import Cluster
from kafkaio._client.fanout import Results
from kafkaio._client.offsets import AdminMoment
from kafkaio._config import ClientConfig, ClientOptions
from kafkaio._config.signature import OptionsSignature
from kafkaio._dataclass import dataclass
from kafkaio._net.transport import Dial
from kafkaio._public import public
from kafkaio._runtime.clock import now
from kafkaio._runtime.lifecycle import Closeable, Lifecycle
from kafkaio.admin._asking import distinct, items_of, outcome
from kafkaio.admin._transactions import Transactions
from kafkaio.admin._types import (
    AclBinding,
    AclBindingFilter,
    ClusterDescription,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    CreatedTopic,
    DelegationToken,
    ElectionType,
    FeaturesDescription,
    FeatureUpdate,
    GroupDescription,
    GroupLag,
    GroupListing,
    GroupState,
    GroupType,
    HangingTransaction,
    LogDirectory,
    NewPartitions,
    NewTopic,
    OffsetReset,
    OffsetTarget,
    PartitionReassignment,
    ProducerIdAndEpoch,
    ProducerState,
    QuorumDescription,
    QuotaEntity,
    QuotaFilter,
    RaftEndpoint,
    ReplicaDirectories,
    ScramCredential,
    ScramDeletion,
    ScramUpsertion,
    ShareGroupDescription,
    ShareOffset,
    StreamsGroupDescription,
    TopicDescription,
    TopicListing,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    KafkaError,
)
from kafkaio.protocol.messages.list_transactions import ListTransactionsRequest
from kafkaio.types import (
    Metric,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    TopicPartition,
)

ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT")

#: What brokers allow by default as ``transaction.max.timeout.ms``.
_MAX_TRANSACTION_TIMEOUT_MS = 900_000


@public("kafkaio.admin")
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


@public("kafkaio")
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
            started `kafkaio.Client` to share. `close` leaves a shared client open. With
            ``bootstrap_controllers``, or a client that has them, it asks controllers
            alone (KIP-919): what only brokers can answer raises UnsupportedVersion.
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
            self._set_up(config, _cluster(config, observer), owns_cluster=True)

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
        admin._set_up(config, _cluster(config, observer, dial), owns_cluster=True)
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

    async def start(self, timeout: float | None = None) -> None:
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
            remove = cluster.telemetry.add_user("admin.client", self, dict)
            if not self._owns_cluster:
                self._undo.append(remove)
        except BaseException:
            await self.close(timeout=0)
            raise
        cluster.observer.started("admin", self.config.client_id, self)

    async def close(self, timeout: float | None = None) -> None:
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

    async def _end(self, timeout: float | None) -> None:
        _call_all(self._undo)
        try:
            if self._owns_cluster:
                await self._cluster.close(timeout)
        finally:
            if self._life.ended():
                self._cluster.observer.closed("admin", self.config.client_id, self)

    def _abandon(self) -> None:
        self._life.soon(partial(_call_all, self._undo))
        if self._owns_cluster:
            self._life.soon(self._cluster.abandon)

    def _deadline(self, timeout: float | None) -> float:
        self._life.check()
        if timeout is None:
            return now() + self.config.default_api_timeout_ms / 1000
        return now() + seconds_of("timeout", timeout)

    # ---- telemetry ----------------------------------------------------------------

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
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        return await self._cluster.telemetry.instance_id(deadline - now())

    def register_metric(self, metric: Metric) -> None:
        """Push a metric of the application with those of the admin client (KIP-1076).

        It is pushed if a broker asks for its name. One with the same name and
        attributes replaces it. It may be registered before the start, and is pushed
        until it is unregistered or the client is closed.

        Args:
            metric: its name, and the function that returns its value.

        Raises:
            ArgumentTypeError: it is not a `kafkaio.Metric`, or its name or an
                attribute is not text.
            ArgumentValueError: its name is empty or begins with ``org.apache.kafka.``,
                or there is no such kind.
        """
        self._cluster.telemetry.register(metric)

    def unregister_metric(self, metric: Metric) -> None:
        """Push a metric no longer. Nothing happens if it was not registered.

        Args:
            metric: one with the name and the attributes of the one registered.

        Raises:
            ArgumentTypeError: it is not a `kafkaio.Metric`.
        """
        self._cluster.telemetry.unregister(metric)

    # ---- topics -----------------------------------------------------------------

    @overload
    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        wait: bool = True,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, CreatedTopic]: ...

    @overload
    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        wait: bool = True,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, CreatedTopic | KafkaError]: ...

    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        wait: bool = True,
        return_errors: bool = False,
        timeout: float | None = None,
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
        from kafkaio.admin._topics import Topics, check_new

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
        timeout: float | None = None,
    ) -> dict[str | UUID, None]: ...

    @overload
    async def delete_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str | UUID, KafkaError | None]: ...

    async def delete_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
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
        from kafkaio.admin._topics import Topics, check_ids

        deadline = self._deadline(timeout)
        wanted = check_ids(topics)
        results = await Topics(self._cluster).delete(wanted, deadline)
        return outcome("delete topics", wanted, results, return_errors=return_errors)

    async def list_topics(
        self,
        *,
        internal: bool = False,
        timeout: float | None = None,
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
        from kafkaio.admin._topics import Topics

        listed = await Topics(self._cluster).listed(self._deadline(timeout))
        return {each.name: each for each in listed if internal or not each.is_internal}

    @overload
    async def describe_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        include_authorized_operations: bool = False,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str | UUID, TopicDescription]: ...

    @overload
    async def describe_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        include_authorized_operations: bool = False,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str | UUID, TopicDescription | KafkaError]: ...

    async def describe_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        include_authorized_operations: bool = False,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> (
        dict[str | UUID, TopicDescription]
        | dict[str | UUID, TopicDescription | KafkaError]
    ):
        """Describe topics: their partitions, and where the replicas of these are.

        Args:
            topics: topics by name, or by id (Kafka 3.1).
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
        from kafkaio.admin._topics import Topics, check_ids

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
        timeout: float | None = None,
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
        from kafkaio.admin._topics import Topics

        deadline = self._deadline(timeout)
        names = topics_of(topics)
        if not names:
            return
        missing = await Topics(self._cluster).unled(names, deadline)
        ready = dict.fromkeys(name for name in names if name not in missing)
        outcome("wait for topics", names, Results(ready, dict(missing)))

    # ---- partitions and their replicas ------------------------------------------

    @overload
    async def create_partitions(
        self,
        counts: Mapping[str, int | NewPartitions],
        *,
        validate_only: bool = False,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, None]: ...

    @overload
    async def create_partitions(
        self,
        counts: Mapping[str, int | NewPartitions],
        *,
        validate_only: bool = False,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, KafkaError | None]: ...

    async def create_partitions(
        self,
        counts: Mapping[str, int | NewPartitions],
        *,
        validate_only: bool = False,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[str, None] | dict[str, KafkaError | None]:
        """Add partitions to topics.

        The records of a key go to another partition from then on. If the call is
        cancelled, partitions may still be added.

        Args:
            counts: how many partitions each topic is to have afterwards.
            validate_only: whether the controller only checks whether it would add them.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by topic, in the order of ``counts``.

        Raises:
            UnknownTopicOrPartition: there is no such topic.
            AuthorizationError: the client may not alter a topic.
            BrokerError: INVALID_PARTITIONS if a topic has as many already, or more;
                INVALID_REPLICA_ASSIGNMENT or another refusal.
            RequestTimeout: there was no answer in time; partitions may be added.
            AdminErrors: several topics failed.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._partitions import Partitions, check_counts

        deadline = self._deadline(timeout)
        wanted = check_counts(counts)
        results = await Partitions(self._cluster).created(
            wanted, deadline, validate_only=validate_only
        )
        return outcome("add partitions", wanted, results, return_errors=return_errors)

    @overload
    async def elect_leaders(
        self,
        election: ElectionType | str = "preferred",
        partitions: Iterable[TopicPartition] | None = None,
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, bool]: ...

    @overload
    async def elect_leaders(
        self,
        election: ElectionType | str = "preferred",
        partitions: Iterable[TopicPartition] | None = None,
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[TopicPartition, bool | KafkaError]: ...

    async def elect_leaders(
        self,
        election: ElectionType | str = "preferred",
        partitions: Iterable[TopicPartition] | None = None,
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, bool] | dict[TopicPartition, bool | KafkaError]:
        """Elect the leaders of partitions (KIP-183, KIP-460, Kafka 2.2).

        Args:
            election: ``preferred``: the first replica becomes the leader, if it is in
                sync. ``unclean`` (Kafka 2.4): any replica that is alive may, where no
                replica in sync is; records can be lost by that.
            partitions: the partitions; all of the cluster by default.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            By partition whether a leader was elected; False where there was nothing to
            do. For all partitions of the cluster only those where a leader was elected
            may be named.

        Raises:
            UnknownTopicOrPartition: there is no such partition.
            AuthorizationError: the client may not alter the cluster.
            BrokerError: PREFERRED_LEADER_NOT_AVAILABLE or
                ELIGIBLE_LEADERS_NOT_AVAILABLE if no replica can become the leader.
            UnsupportedVersion: the brokers are too old.
            RequestTimeout: there was no answer in time.
            AdminErrors: several partitions failed.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._asking import member_of
        from kafkaio.admin._partitions import Partitions

        deadline = self._deadline(timeout)
        kind = member_of("election", ElectionType, election)
        wanted = None if partitions is None else partitions_of(partitions)
        results = await Partitions(self._cluster).elected(kind, wanted, deadline)
        items = [*results.found, *results.failed] if wanted is None else wanted
        return outcome("elect leaders", items, results, return_errors=return_errors)

    @overload
    async def alter_partition_reassignments(
        self,
        replicas: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None]: ...

    @overload
    async def alter_partition_reassignments(
        self,
        replicas: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[TopicPartition, KafkaError | None]: ...

    async def alter_partition_reassignments(
        self,
        replicas: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None] | dict[TopicPartition, KafkaError | None]:
        """Move replicas to other brokers (KIP-455, Kafka 2.4).

        The call returns when the controller has begun; `list_partition_reassignments`
        tells what is still being moved.

        Args:
            replicas: the node ids of the replicas that a partition is to have, the
                preferred leader first; None to stop moving them.
            allow_replication_factor_change: whether a partition may get more or fewer
                replicas than it has; False needs Kafka 4.1.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by partition, in the order of ``replicas``.

        Raises:
            UnknownTopicOrPartition: there is no such partition.
            AuthorizationError: the client may not alter the cluster.
            BrokerError: INVALID_REPLICA_ASSIGNMENT; NO_REASSIGNMENT_IN_PROGRESS if
                there is none to stop; or another refusal.
            UnsupportedVersion: the brokers are too old.
            RequestTimeout: there was no answer in time; replicas may be moved.
            AdminErrors: several partitions failed.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._partitions import Partitions, check_replicas

        deadline = self._deadline(timeout)
        wanted = check_replicas(replicas)
        results = await Partitions(self._cluster).reassigned(
            wanted,
            deadline,
            allow_replication_factor_change=allow_replication_factor_change,
        )
        return outcome("move replicas", wanted, results, return_errors=return_errors)

    async def list_partition_reassignments(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, PartitionReassignment]:
        """List the replicas that are being moved (KIP-455, Kafka 2.4).

        Args:
            partitions: the partitions to look at; all of the cluster by default.
            timeout: seconds.

        Returns:
            What is being moved, by partition, sorted. A partition whose replicas stay
            where they are is not in it.

        Raises:
            AuthorizationError: the client may not describe the cluster.
            UnsupportedVersion: the brokers are too old.
            RequestTimeout: there was no answer in time.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._partitions import Partitions

        deadline = self._deadline(timeout)
        wanted = None if partitions is None else partitions_of(partitions)
        if wanted == []:
            return {}
        return await Partitions(self._cluster).moving(wanted, deadline)

    @overload
    async def describe_log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[int, dict[str, LogDirectory]]: ...

    @overload
    async def describe_log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[int, dict[str, LogDirectory] | KafkaError]: ...

    async def describe_log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> (
        dict[int, dict[str, LogDirectory]]
        | dict[int, dict[str, LogDirectory] | KafkaError]
    ):
        """Describe the log directories of brokers, and the replicas in them.

        Args:
            brokers: node ids; all brokers of the cluster by default.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            By node id the log directories by path.

        Raises:
            AuthorizationError: the client may not describe the cluster.
            RequestTimeout: a broker did not answer in time, or there is no such broker.
            AdminErrors: several brokers failed.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._asking import items_of
        from kafkaio.admin._partitions import Partitions

        deadline = self._deadline(timeout)
        wanted: list[int] | None = None
        if brokers is not None:
            wanted = list(dict.fromkeys(items_of("brokers", brokers)))
        nodes, results = await Partitions(self._cluster).directories(wanted, deadline)
        return outcome(
            "describe log directories", nodes, results, return_errors=return_errors
        )

    @overload
    async def describe_replica_log_dirs(
        self,
        replicas: Iterable[tuple[TopicPartition, int]],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[tuple[TopicPartition, int], ReplicaDirectories]: ...

    @overload
    async def describe_replica_log_dirs(
        self,
        replicas: Iterable[tuple[TopicPartition, int]],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[tuple[TopicPartition, int], ReplicaDirectories | KafkaError]: ...

    async def describe_replica_log_dirs(
        self,
        replicas: Iterable[tuple[TopicPartition, int]],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> (
        dict[tuple[TopicPartition, int], ReplicaDirectories]
        | dict[tuple[TopicPartition, int], ReplicaDirectories | KafkaError]
    ):
        """Tell in which log directories replicas are, with one request per broker.

        `describe_log_dirs` tells what is in the directories.

        Args:
            replicas: each by its partition and the node id of its broker.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            The directories by replica, in the order of ``replicas``. A broker that has
            no such replica tells none.

        Raises:
            AuthorizationError: the client may not describe the cluster.
            RequestTimeout: a broker did not answer in time, or there is no such broker.
            AdminErrors: several replicas failed.
            ArgumentValueError: a replica is there twice.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._partitions import Partitions, check_places

        deadline = self._deadline(timeout)
        wanted = check_places(replicas)
        results = await Partitions(self._cluster).placed(wanted, deadline)
        return outcome("find replicas", wanted, results, return_errors=return_errors)

    @overload
    async def alter_replica_log_dirs(
        self,
        directories: Mapping[tuple[TopicPartition, int], str],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[tuple[TopicPartition, int], None]: ...

    @overload
    async def alter_replica_log_dirs(
        self,
        directories: Mapping[tuple[TopicPartition, int], str],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[tuple[TopicPartition, int], KafkaError | None]: ...

    async def alter_replica_log_dirs(
        self,
        directories: Mapping[tuple[TopicPartition, int], str],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> (
        dict[tuple[TopicPartition, int], None]
        | dict[tuple[TopicPartition, int], KafkaError | None]
    ):
        """Move replicas to another log directory of their broker (KIP-113).

        The call returns when the broker has begun; `describe_log_dirs` shows the
        replica in both directories until it is moved.

        Args:
            directories: the path on the broker, by partition and node id.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by replica, in the order of ``directories``.

        Raises:
            BrokerError: LOG_DIR_NOT_FOUND; KAFKA_STORAGE_ERROR, if the directory is
                offline; REPLICA_NOT_AVAILABLE, if the broker has no such replica: it
                makes one there when it gets it; or another refusal.
            AuthorizationError: the client may not alter the cluster.
            RequestTimeout: a broker did not answer in time.
            AdminErrors: several replicas failed.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._partitions import Partitions

        deadline = self._deadline(timeout)
        results = await Partitions(self._cluster).put_into(directories, deadline)
        return outcome(
            "move replicas", directories, results, return_errors=return_errors
        )

    # ---- offsets and records of partitions --------------------------------------

    @overload
    async def list_offsets(
        self,
        partitions: Mapping[TopicPartition, AdminMoment],
        *,
        isolation_level: Literal[
            "read_uncommitted", "read_committed"
        ] = "read_uncommitted",
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]: ...

    @overload
    async def list_offsets(
        self,
        partitions: Mapping[TopicPartition, AdminMoment],
        *,
        isolation_level: Literal[
            "read_uncommitted", "read_committed"
        ] = "read_uncommitted",
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp | KafkaError | None]: ...

    async def list_offsets(
        self,
        partitions: Mapping[TopicPartition, AdminMoment],
        *,
        isolation_level: Literal[
            "read_uncommitted", "read_committed"
        ] = "read_uncommitted",
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> (
        dict[TopicPartition, OffsetAndTimestamp | None]
        | dict[TopicPartition, OffsetAndTimestamp | KafkaError | None]
    ):
        """Look up offsets in the logs of partitions, with one request per leader.

        It is `kafkaio.Client.offsets` with places that only administrators ask for.

        Args:
            partitions: what to look up, by partition: ``"earliest"``, ``"latest"``, a
                datetime or milliseconds as for `kafkaio.Client.offsets`, and
                ``"max_timestamp"``: the record with the highest timestamp (Kafka 3.0);
                ``"earliest_local"``: the first that is on the broker's own disk (3.6);
                ``"latest_tiered"``: the last that is in remote storage (3.9);
                ``"earliest_pending_upload"``: the first that is not there yet (4.2).
            isolation_level: what ``"latest"`` means.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            An entry for each partition, in the order given; None if the log has no such
            record.

        Raises:
            UnknownTopicOrPartition: there is no such topic or partition.
            AuthorizationError: the client may not describe a topic.
            UnsupportedVersion: a leader does not know such a place.
            RequestTimeout: a leader did not answer in time.
            AdminErrors: several partitions failed.
            ArgumentValueError: a word is unknown, a time is before 1970, or a datetime
                has no time zone.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio._client.offsets import OffsetLookup, places_of

        deadline = self._deadline(timeout)
        times = places_of(partitions)
        level = level_of(isolation_level)
        lookup = OffsetLookup(self._cluster, level)
        results = await lookup.each(times, within=deadline - now())
        return outcome("list offsets", times, results, return_errors=return_errors)

    @overload
    async def delete_records(
        self,
        offsets: Mapping[TopicPartition, int | Literal["latest"]],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, int]: ...

    @overload
    async def delete_records(
        self,
        offsets: Mapping[TopicPartition, int | Literal["latest"]],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[TopicPartition, int | KafkaError]: ...

    async def delete_records(
        self,
        offsets: Mapping[TopicPartition, int | Literal["latest"]],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, int] | dict[TopicPartition, int | KafkaError]:
        """Delete the records of partitions before some offsets (KIP-204).

        Args:
            offsets: the offset of the first record to keep, by partition; ``"latest"``
                deletes all records that are there.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            By partition the offset at which its log begins now, in the order given.

        Raises:
            UnknownTopicOrPartition: there is no such partition.
            AuthorizationError: the client may not delete from a topic.
            OffsetOutOfRange: the log does not reach that far.
            BrokerError: POLICY_VIOLATION if the topic is only compacted, or another
                refusal.
            RequestTimeout: a leader did not answer in time; records may be deleted.
            AdminErrors: several partitions failed.
            ArgumentValueError: an offset is negative.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._partitions import Partitions, check_ends

        deadline = self._deadline(timeout)
        wanted = check_ends(offsets)
        results = await Partitions(self._cluster).deleted(wanted, deadline)
        return outcome("delete records", wanted, results, return_errors=return_errors)

    # ---- configs ----------------------------------------------------------------

    @overload
    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]: ...

    @overload
    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[ConfigResource, dict[str, ConfigEntry] | KafkaError]: ...

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> (
        dict[ConfigResource, dict[str, ConfigEntry]]
        | dict[ConfigResource, dict[str, ConfigEntry] | KafkaError]
    ):
        """Describe the configs of topics, brokers, loggers, groups and others.

        Args:
            resources: what the configs belong to.
            include_synonyms: whether to ask where each value could come from.
            include_documentation: whether to ask for Kafka's documentation (Kafka 2.6).
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            The configs by name, by resource in the order of ``resources``.

        Raises:
            UnknownTopicOrPartition: there is no such topic.
            AuthorizationError: the client may not describe the configs.
            BrokerError: the broker refuses for another reason.
            RequestTimeout: there was no answer in time, or no such broker.
            AdminErrors: several resources failed.
            ArgumentValueError: the name of a broker is no node id.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._configs import Configs, check_resources

        deadline = self._deadline(timeout)
        wanted = check_resources(resources)
        results = await Configs(self._cluster).described(
            wanted,
            deadline,
            synonyms=include_synonyms,
            documentation=include_documentation,
        )
        return outcome("describe configs", wanted, results, return_errors=return_errors)

    @overload
    async def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[ConfigChange]],
        *,
        validate_only: bool = False,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[ConfigResource, None]: ...

    @overload
    async def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[ConfigChange]],
        *,
        validate_only: bool = False,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[ConfigResource, KafkaError | None]: ...

    async def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[ConfigChange]],
        *,
        validate_only: bool = False,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[ConfigResource, None] | dict[ConfigResource, KafkaError | None]:
        """Change single configs of resources; all others keep their values (KIP-339).

        The changes of one resource take effect together or not at all. Brokers before
        2.3 can only replace all configs of a topic or broker: there they are read,
        changed and written, so that a change that another client makes meanwhile is
        lost. If the call is cancelled, the changes may still take effect.

        Args:
            changes: the changes of each resource.
            validate_only: whether the brokers only check the changes.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by resource, in the order of ``changes``, also for one without changes.

        Raises:
            UnknownTopicOrPartition: there is no such topic.
            AuthorizationError: the client may not alter the configs.
            BrokerError: INVALID_CONFIG, INVALID_REQUEST or another refusal.
            UnsupportedVersion: the broker does not know such a resource.
            RequestTimeout: there was no answer in time; the changes may take effect.
            AdminErrors: several resources failed.
            ArgumentValueError: a config is changed twice, or lacks a value.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._configs import Configs, check_changes

        deadline = self._deadline(timeout)
        wanted = check_changes(changes)
        results = await Configs(self._cluster).altered(
            wanted, deadline, validate_only=validate_only
        )
        return outcome("alter configs", wanted, results, return_errors=return_errors)

    async def list_config_resources(
        self,
        types: Iterable[ConfigResourceType | str] | None = None,
        *,
        timeout: float | None = None,
    ) -> list[ConfigResource]:
        """List what has configs (KIP-1142, Kafka 4.1).

        Brokers before 4.1 list only the subscriptions of client metrics (Kafka 3.7).

        Args:
            types: what to list; everything by default.
            timeout: seconds.

        Returns:
            The resources, sorted by type and name.

        Raises:
            AuthorizationError: the client may not describe configs of the cluster.
            UnsupportedVersion: the broker cannot list these types.
            RequestTimeout: no broker answered in time.
            ArgumentValueError: a type is unknown.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._asking import member_of
        from kafkaio.admin._configs import Configs

        deadline = self._deadline(timeout)
        kinds = (
            None
            if types is None
            else [
                member_of("types", ConfigResourceType, each)
                for each in items_of("types", types)
            ]
        )
        if kinds == []:
            return []
        return await Configs(self._cluster).listed(kinds, deadline)

    # ---- groups -----------------------------------------------------------------

    async def list_groups(
        self,
        *,
        states: Iterable[GroupState | str] | None = None,
        types: Iterable[GroupType | str] | None = None,
        timeout: float | None = None,
    ) -> dict[str, GroupListing]:
        """List the groups of the cluster, of all coordinators.

        Groups that the client may not describe are left out: an empty list does not
        show that there are none.

        Args:
            states: only groups in these states (Kafka 2.6); in any by default.
            types: only groups of these types (Kafka 3.8; older brokers have classic
                ones alone); of any by default.
            timeout: seconds.

        Returns:
            The groups by name, sorted.

        Raises:
            KafkaError: a broker did not answer in time, or refused. ``results`` has the
                groups of the others, by node id.
            AdminErrors: several brokers did not; likewise.
            UnsupportedVersion: a broker is too old for the filter.
            ArgumentValueError: a state or a type is unknown.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._asking import member_of
        from kafkaio.admin._groups import Groups

        deadline = self._deadline(timeout)
        results = await Groups(self._cluster).listed(
            [member_of("states", GroupState, each) for each in states or ()],
            [member_of("types", GroupType, each) for each in types or ()],
            deadline,
        )
        listed = sorted(
            (each for found in results.found.values() for each in found),
            key=lambda each: each.group_id,
        )
        found = {each.group_id: each for each in listed}
        if results.failed:
            outcome("list groups", [*results.found, *results.failed], results)
        return found

    @overload
    async def describe_consumer_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, GroupDescription]: ...

    @overload
    async def describe_consumer_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, GroupDescription | KafkaError]: ...

    async def describe_consumer_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[str, GroupDescription] | dict[str, GroupDescription | KafkaError]:
        """Describe groups of consumers, of the classic protocol and of KIP-848.

        Args:
            groups: their names.
            include_authorized_operations: whether to ask what the client may do with
                each group (Kafka 2.3).
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            The descriptions by name, in the order of ``groups``.

        Raises:
            GroupError: there is no such group (GROUP_ID_NOT_FOUND).
            AuthorizationError: the client may not describe a group.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several groups failed.
            ArgumentValueError: a group is there twice, or a name is empty.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._groups import Groups

        deadline = self._deadline(timeout)
        wanted = _names("groups", groups)
        results = await Groups(self._cluster).described(
            wanted, deadline, with_operations=include_authorized_operations
        )
        return outcome("describe groups", wanted, results, return_errors=return_errors)

    @overload
    async def describe_classic_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, GroupDescription]: ...

    @overload
    async def describe_classic_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, GroupDescription | KafkaError]: ...

    async def describe_classic_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[str, GroupDescription] | dict[str, GroupDescription | KafkaError]:
        """Describe groups of the classic protocol, whatever their members are.

        `describe_consumer_groups` describes such groups of consumers as well, beside
        those of KIP-848. Others, for example of Kafka Connect, are described here: the
        ``protocol_type`` tells what they are, and their members have no partitions.

        Args:
            groups: their names.
            include_authorized_operations: whether to ask what the client may do with
                each group (Kafka 2.3).
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            The descriptions by name, in the order of ``groups``.

        Raises:
            GroupError: there is no classic group of that name (GROUP_ID_NOT_FOUND).
            AuthorizationError: the client may not describe a group.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several groups failed.
            ArgumentValueError: a group is there twice, or a name is empty.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._groups import Groups

        deadline = self._deadline(timeout)
        wanted = _names("groups", groups)
        results = await Groups(self._cluster).described_as_classic(
            wanted, deadline, with_operations=include_authorized_operations
        )
        return outcome("describe groups", wanted, results, return_errors=return_errors)

    @overload
    async def delete_consumer_groups(
        self,
        groups: Iterable[str],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, None]: ...

    @overload
    async def delete_consumer_groups(
        self,
        groups: Iterable[str],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, KafkaError | None]: ...

    async def delete_consumer_groups(
        self,
        groups: Iterable[str],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[str, None] | dict[str, KafkaError | None]:
        """Delete groups that have no members, with their committed offsets.

        Args:
            groups: their names.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by name, in the order of ``groups``.

        Raises:
            GroupError: a group has members (NON_EMPTY_GROUP), or there is none of that
                name (GROUP_ID_NOT_FOUND).
            AuthorizationError: the client may not delete a group.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several groups failed.
            ArgumentValueError: a group is there twice, or a name is empty.
            ClosedError: the admin client is closed, or not started.
        """
        return await self._delete_groups(
            groups, return_errors=return_errors, timeout=timeout
        )

    async def _delete_groups(
        self,
        groups: Iterable[str],
        *,
        return_errors: bool,
        timeout: float | None,
    ) -> dict[str, None] | dict[str, KafkaError | None]:
        from kafkaio.admin._groups import Groups

        deadline = self._deadline(timeout)
        wanted = _names("groups", groups)
        results = await Groups(self._cluster).deleted(wanted, deadline)
        return outcome("delete groups", wanted, results, return_errors=return_errors)

    @overload
    async def remove_members_from_consumer_group(
        self,
        group: str,
        instance_ids: Iterable[str] | None = None,
        *,
        reason: str | None = None,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, None]: ...

    @overload
    async def remove_members_from_consumer_group(
        self,
        group: str,
        instance_ids: Iterable[str] | None = None,
        *,
        reason: str | None = None,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, KafkaError | None]: ...

    async def remove_members_from_consumer_group(
        self,
        group: str,
        instance_ids: Iterable[str] | None = None,
        *,
        reason: str | None = None,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[str, None] | dict[str, KafkaError | None]:
        """Remove members from a group; it rebalances without them (KIP-345, Kafka 2.4).

        A member that is removed and still runs joins again.

        Args:
            group: the name of the group.
            instance_ids: the ``group_instance_id`` of static members; None removes all
                members, of whatever kind.
            reason: why, for the log of the broker (Kafka 3.2).
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by instance id, or by member id if all are removed.

        Raises:
            GroupError: the group has no such member (UNKNOWN_MEMBER_ID), or there is no
                such group.
            AuthorizationError: the client may not read the group.
            UnsupportedVersion: the coordinator is too old.
            RequestTimeout: the coordinator did not answer in time.
            AdminErrors: several members failed.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._groups import Groups

        deadline = self._deadline(timeout)
        check_group(group)
        ids = None if instance_ids is None else _names("instance_ids", instance_ids)
        results = await Groups(self._cluster).removed(group, ids, reason, deadline)
        items = [*results.found, *results.failed] if ids is None else ids
        return outcome("remove members", items, results, return_errors=return_errors)

    # ---- offsets of groups ------------------------------------------------------

    @overload
    async def list_consumer_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata | None]]: ...

    @overload
    async def list_consumer_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata | None] | KafkaError]: ...

    async def list_consumer_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> (
        dict[str, dict[TopicPartition, OffsetAndMetadata | None]]
        | dict[str, dict[TopicPartition, OffsetAndMetadata | None] | KafkaError]
    ):
        """Return what groups have committed: one request per coordinator (KIP-709).

        Args:
            groups: the names of groups, for all partitions that have an offset; or the
                partitions by group, where None stands for all.
            require_stable: whether to wait for transactions that have committed offsets
                and have not ended (KIP-447).
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            By group the offsets by partition, sorted; None where nothing is committed.
            A group that does not exist has committed nothing.

        Raises:
            AuthorizationError: the client may not describe a group.
            RequestTimeout: a coordinator did not answer in time; the cause is a
                BrokerError UNSTABLE_OFFSET_COMMIT if a transaction is still open.
            AdminErrors: several groups failed.
            ClosedError: the admin client is closed, or not started.
        """
        return await self._list_offsets(
            groups,
            require_stable=require_stable,
            return_errors=return_errors,
            timeout=timeout,
        )

    async def _list_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool,
        return_errors: bool,
        timeout: float | None,
    ) -> (
        dict[str, dict[TopicPartition, OffsetAndMetadata | None]]
        | dict[str, dict[TopicPartition, OffsetAndMetadata | None] | KafkaError]
    ):
        from kafkaio.admin._groups import Groups

        deadline = self._deadline(timeout)
        wanted = _partitions_by_group(groups)
        results = await Groups(self._cluster).offsets(
            wanted, deadline, require_stable=require_stable
        )
        return outcome("fetch offsets", wanted, results, return_errors=return_errors)

    @overload
    async def alter_consumer_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None]: ...

    @overload
    async def alter_consumer_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[TopicPartition, KafkaError | None]: ...

    async def alter_consumer_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None] | dict[TopicPartition, KafkaError | None]:
        """Commit offsets for a group that has no members.

        Args:
            group: the name of the group, which need not exist.
            offsets: the offset of the next record to read, by partition.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by partition, in the order of ``offsets``.

        Raises:
            GroupError: the group has members, which alone may commit.
            UnknownTopicOrPartition: there is no such partition.
            AuthorizationError: the client may not read the group or a topic.
            RequestTimeout: the coordinator did not answer in time.
            AdminErrors: several partitions failed.
            ClosedError: the admin client is closed, or not started.
        """
        return await self._alter_offsets(
            group, offsets, return_errors=return_errors, timeout=timeout
        )

    async def _alter_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        *,
        return_errors: bool,
        timeout: float | None,
    ) -> dict[TopicPartition, None] | dict[TopicPartition, KafkaError | None]:
        from kafkaio.admin._groups import Groups

        deadline = self._deadline(timeout)
        check_group(group)
        wanted = {partition_of(tp): offset_of(it) for tp, it in offsets.items()}
        results = await Groups(self._cluster).altered(group, wanted, deadline)
        return outcome("alter offsets", wanted, results, return_errors=return_errors)

    @overload
    async def delete_consumer_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None]: ...

    @overload
    async def delete_consumer_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[TopicPartition, KafkaError | None]: ...

    async def delete_consumer_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None] | dict[TopicPartition, KafkaError | None]:
        """Delete committed offsets of topics that no member reads (KIP-496, Kafka 2.4).

        Args:
            group: the name of the group.
            partitions: the partitions.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by partition, in the order of ``partitions``.

        Raises:
            GroupError: a member subscribes to the topic (GROUP_SUBSCRIBED_TO_TOPIC), or
                there is no such group.
            UnknownTopicOrPartition: there is no such partition.
            UnsupportedVersion: the coordinator is too old.
            RequestTimeout: the coordinator did not answer in time.
            AdminErrors: several partitions failed.
            ClosedError: the admin client is closed, or not started.
        """
        return await self._delete_offsets(
            group, partitions, return_errors=return_errors, timeout=timeout
        )

    async def _delete_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition],
        *,
        return_errors: bool,
        timeout: float | None,
    ) -> dict[TopicPartition, None] | dict[TopicPartition, KafkaError | None]:
        from kafkaio.admin._groups import Groups

        deadline = self._deadline(timeout)
        check_group(group)
        wanted = partitions_of(partitions)
        results = await Groups(self._cluster).forgotten(group, wanted, deadline)
        return outcome("delete offsets", wanted, results, return_errors=return_errors)

    @overload
    async def lag(
        self,
        groups: Iterable[str],
        *,
        isolation_level: Literal[
            "read_uncommitted", "read_committed"
        ] = "read_uncommitted",
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, GroupLag]: ...

    @overload
    async def lag(
        self,
        groups: Iterable[str],
        *,
        isolation_level: Literal[
            "read_uncommitted", "read_committed"
        ] = "read_uncommitted",
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, GroupLag | KafkaError]: ...

    async def lag(
        self,
        groups: Iterable[str],
        *,
        isolation_level: Literal[
            "read_uncommitted", "read_committed"
        ] = "read_uncommitted",
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[str, GroupLag] | dict[str, GroupLag | KafkaError]:
        """Tell how far groups are behind the ends of the logs.

        Each coordinator gets one request for all of its groups, and each leader one for
        all partitions. The two are not from the same moment.

        Args:
            groups: their names.
            isolation_level: what the end of a log is; with ``read_committed`` the last
                stable offset.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            The lag by group, in the order of ``groups``. A partition whose end is not
            known, because its topic was deleted for example, has its error.

        Raises:
            AuthorizationError: the client may not describe a group.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several groups failed.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._groups import Groups

        deadline = self._deadline(timeout)
        wanted = _names("groups", groups)
        level = level_of(isolation_level)
        results = await Groups(self._cluster).lag(wanted, level, deadline)
        return outcome("look up the lag", wanted, results, return_errors=return_errors)

    async def reset_offsets(
        self,
        group: str,
        to: OffsetTarget | None = None,
        *,
        shift_by: int = 0,
        partitions: Iterable[TopicPartition] | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetReset]:
        """Set the committed offsets of a group that has no members.

        An offset outside the log becomes the nearest one that the log has.

        Args:
            group: the name of the group.
            to: ``"earliest"`` or ``"latest"``; a datetime: the first record with that
                timestamp or a later one; a timedelta: as long ago; or an offset by
                partition. None, with ``shift_by``.
            shift_by: how many offsets forward, or backward if it is negative.
            partitions: the partitions; all that have a committed offset by default.
            dry_run: whether to change nothing, and only tell what would be.
            timeout: seconds.

        Returns:
            The offset before and after by partition, sorted.

        Raises:
            GroupError: the group has members, which alone may commit.
            UnknownTopicOrPartition: there is no such partition.
            AuthorizationError: the client may not read the group or a topic.
            RequestTimeout: a broker did not answer in time.
            AdminErrors: several partitions failed.
            ArgumentValueError: none, or both, of ``to`` and ``shift_by`` are given; a
                datetime has no time zone or is before 1970; or there is no offset to
                shift.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._groups import Groups, check_reset

        deadline = self._deadline(timeout)
        check_group(group)
        check_reset(to, shift_by)
        wanted = None if partitions is None else partitions_of(partitions)
        operations = Groups(self._cluster)
        resets = await operations.places(group, wanted, to, shift_by, deadline)
        if not dry_run:
            offsets = {tp: OffsetAndMetadata(it.after) for tp, it in resets.items()}
            results = await operations.altered(group, offsets, deadline)
            outcome("reset offsets", offsets, results)
        return resets

    # ---- share groups -----------------------------------------------------------

    @overload
    async def describe_share_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, ShareGroupDescription]: ...

    @overload
    async def describe_share_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, ShareGroupDescription | KafkaError]: ...

    async def describe_share_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> (
        dict[str, ShareGroupDescription] | dict[str, ShareGroupDescription | KafkaError]
    ):
        """Describe share groups (KIP-932, Kafka 4.1).

        Args:
            groups: their names.
            include_authorized_operations: whether to ask what the client may do with
                each group.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            The descriptions by name, in the order of ``groups``.

        Raises:
            GroupError: there is no share group of that name (GROUP_ID_NOT_FOUND).
            AuthorizationError: the client may not describe a group.
            UnsupportedVersion: a coordinator is older than 4.1.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several groups failed.
            ArgumentValueError: a group is there twice, or a name is empty.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._share_groups import ShareGroups

        deadline = self._deadline(timeout)
        wanted = _names("groups", groups)
        results = await ShareGroups(self._cluster).described(
            wanted, deadline, with_operations=include_authorized_operations
        )
        return outcome("describe groups", wanted, results, return_errors=return_errors)

    @overload
    async def delete_share_groups(
        self,
        groups: Iterable[str],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, None]: ...

    @overload
    async def delete_share_groups(
        self,
        groups: Iterable[str],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, KafkaError | None]: ...

    async def delete_share_groups(
        self,
        groups: Iterable[str],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[str, None] | dict[str, KafkaError | None]:
        """Delete share groups that have no members, with their offsets.

        Brokers delete groups of any kind by one request: `delete_consumer_groups` and
        `delete_streams_groups` do the same.

        Args:
            groups: their names.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by name, in the order of ``groups``.

        Raises:
            GroupError: a group has members (NON_EMPTY_GROUP), or there is none of that
                name (GROUP_ID_NOT_FOUND).
            AuthorizationError: the client may not delete a group.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several groups failed.
            ArgumentValueError: a group is there twice, or a name is empty.
            ClosedError: the admin client is closed, or not started.
        """
        return await self._delete_groups(
            groups, return_errors=return_errors, timeout=timeout
        )

    @overload
    async def list_share_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, dict[TopicPartition, ShareOffset | None]]: ...

    @overload
    async def list_share_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, dict[TopicPartition, ShareOffset | None] | KafkaError]: ...

    async def list_share_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> (
        dict[str, dict[TopicPartition, ShareOffset | None]]
        | dict[str, dict[TopicPartition, ShareOffset | None] | KafkaError]
    ):
        """Return how far share groups are: one request per coordinator (Kafka 4.1).

        The numbers lag behind: a coordinator learns a moment later what was finished.

        Args:
            groups: the names of groups, for all partitions that have an offset; or the
                partitions by group, where None stands for all.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            By group the offsets by partition, sorted; None where nothing was delivered
            yet. A group that does not exist, or is no share group, has none.

        Raises:
            AuthorizationError: the client may not describe a group or a topic.
            UnsupportedVersion: a coordinator is older than 4.1.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several groups failed.
            ArgumentValueError: a group is there twice, or a name is empty.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._share_groups import ShareGroups

        deadline = self._deadline(timeout)
        wanted = _partitions_by_group(groups)
        results = await ShareGroups(self._cluster).offsets(wanted, deadline)
        return outcome("list offsets", wanted, results, return_errors=return_errors)

    @overload
    async def alter_share_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None]: ...

    @overload
    async def alter_share_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[TopicPartition, KafkaError | None]: ...

    async def alter_share_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None] | dict[TopicPartition, KafkaError | None]:
        """Set where a share group without members goes on (KIP-932, Kafka 4.1).

        All records from there on are delivered again, finished or not. The change has
        no effect on a partition while a connection is open by which a member got
        records of it: end the consumers, and their clients, first.

        Args:
            group: the name of the group, which need not exist.
            offsets: the first offset to deliver, by partition.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by partition, in the order of ``offsets``.

        Raises:
            GroupError: the group has members (NON_EMPTY_GROUP), or is no share group
                (GROUP_ID_NOT_FOUND).
            UnknownTopicOrPartition: there is no such partition.
            AuthorizationError: the client may not read the group or a topic.
            UnsupportedVersion: the coordinator is older than 4.1.
            RequestTimeout: the coordinator did not answer in time; offsets may be
                altered.
            AdminErrors: several partitions failed.
            ArgumentValueError: an offset is negative.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._share_groups import ShareGroups, check_starts

        deadline = self._deadline(timeout)
        check_group(group)
        wanted = check_starts(offsets)
        results = await ShareGroups(self._cluster).altered(group, wanted, deadline)
        return outcome("alter offsets", wanted, results, return_errors=return_errors)

    @overload
    async def delete_share_group_offsets(
        self,
        group: str,
        topics: Iterable[str],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, None]: ...

    @overload
    async def delete_share_group_offsets(
        self,
        group: str,
        topics: Iterable[str],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, KafkaError | None]: ...

    async def delete_share_group_offsets(
        self,
        group: str,
        topics: Iterable[str],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[str, None] | dict[str, KafkaError | None]:
        """Delete the offsets of a share group without members in topics (Kafka 4.1).

        Args:
            group: the name of the group.
            topics: the names of the topics.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by topic, in the order of ``topics``.

        Raises:
            GroupError: the group has members (NON_EMPTY_GROUP), or there is no share
                group of that name (GROUP_ID_NOT_FOUND).
            UnknownTopicOrPartition: there is no such topic, or the group has no offset
                in it.
            AuthorizationError: the client may not delete the group or read a topic.
            UnsupportedVersion: the coordinator is older than 4.1.
            RequestTimeout: the coordinator did not answer in time.
            AdminErrors: several topics failed.
            ArgumentValueError: a topic is there twice, or a name is empty.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._share_groups import ShareGroups

        deadline = self._deadline(timeout)
        check_group(group)
        wanted = _names("topics", topics)
        results = await ShareGroups(self._cluster).forgotten(group, wanted, deadline)
        return outcome("delete offsets", wanted, results, return_errors=return_errors)

    # ---- streams groups ---------------------------------------------------------

    @overload
    async def describe_streams_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, StreamsGroupDescription]: ...

    @overload
    async def describe_streams_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, StreamsGroupDescription | KafkaError]: ...

    async def describe_streams_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> (
        dict[str, StreamsGroupDescription]
        | dict[str, StreamsGroupDescription | KafkaError]
    ):
        """Describe groups of Kafka Streams: topology, members, tasks (KIP-1071).

        It needs Kafka 4.1. Applications that use the classic protocol are groups of
        consumers.

        Args:
            groups: their names.
            include_authorized_operations: whether to ask what the client may do with
                each group.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            The descriptions by name, in the order of ``groups``.

        Raises:
            GroupError: there is no streams group of that name (GROUP_ID_NOT_FOUND).
            AuthorizationError: the client may not describe a group.
            UnsupportedVersion: a coordinator is older than 4.1.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several groups failed.
            ArgumentValueError: a group is there twice, or a name is empty.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._streams_groups import StreamsGroups

        deadline = self._deadline(timeout)
        wanted = _names("groups", groups)
        results = await StreamsGroups(self._cluster).described(
            wanted, deadline, with_operations=include_authorized_operations
        )
        return outcome("describe groups", wanted, results, return_errors=return_errors)

    @overload
    async def delete_streams_groups(
        self,
        groups: Iterable[str],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, None]: ...

    @overload
    async def delete_streams_groups(
        self,
        groups: Iterable[str],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, KafkaError | None]: ...

    async def delete_streams_groups(
        self,
        groups: Iterable[str],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[str, None] | dict[str, KafkaError | None]:
        """Delete groups of Kafka Streams without members, with their offsets.

        Brokers delete groups of any kind by one request: `delete_consumer_groups` and
        `delete_share_groups` do the same. Internal topics of the application stay.

        Args:
            groups: their names.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by name, in the order of ``groups``.

        Raises:
            GroupError: a group has members (NON_EMPTY_GROUP), or there is none of that
                name (GROUP_ID_NOT_FOUND).
            AuthorizationError: the client may not delete a group.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several groups failed.
            ArgumentValueError: a group is there twice, or a name is empty.
            ClosedError: the admin client is closed, or not started.
        """
        return await self._delete_groups(
            groups, return_errors=return_errors, timeout=timeout
        )

    @overload
    async def list_streams_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata | None]]: ...

    @overload
    async def list_streams_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata | None] | KafkaError]: ...

    async def list_streams_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> (
        dict[str, dict[TopicPartition, OffsetAndMetadata | None]]
        | dict[str, dict[TopicPartition, OffsetAndMetadata | None] | KafkaError]
    ):
        """Return what groups of Kafka Streams have committed.

        Coordinators keep it as for consumers: `list_consumer_group_offsets` does the
        same, and documents it.

        Args:
            groups: the names of groups, or the partitions by group.
            require_stable: whether to wait for open transactions.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            By group the offsets by partition, sorted.

        Raises:
            KafkaError: as in `list_consumer_group_offsets`.
        """
        return await self._list_offsets(
            groups,
            require_stable=require_stable,
            return_errors=return_errors,
            timeout=timeout,
        )

    @overload
    async def alter_streams_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None]: ...

    @overload
    async def alter_streams_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[TopicPartition, KafkaError | None]: ...

    async def alter_streams_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None] | dict[TopicPartition, KafkaError | None]:
        """Commit offsets for a group of Kafka Streams that has no members.

        Coordinators keep them as for consumers: `alter_consumer_group_offsets` does the
        same, and documents it.

        Args:
            group: the name of the group.
            offsets: the offset of the next record to read, by partition.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by partition, in the order of ``offsets``.

        Raises:
            KafkaError: as in `alter_consumer_group_offsets`.
        """
        return await self._alter_offsets(
            group, offsets, return_errors=return_errors, timeout=timeout
        )

    @overload
    async def delete_streams_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None]: ...

    @overload
    async def delete_streams_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[TopicPartition, KafkaError | None]: ...

    async def delete_streams_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None] | dict[TopicPartition, KafkaError | None]:
        """Delete offsets of a group of Kafka Streams in topics that no member reads.

        Coordinators keep them as for consumers: `delete_consumer_group_offsets` does
        the same, and documents it.

        Args:
            group: the name of the group.
            partitions: the partitions.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by partition, in the order of ``partitions``.

        Raises:
            KafkaError: as in `delete_consumer_group_offsets`.
        """
        return await self._delete_offsets(
            group, partitions, return_errors=return_errors, timeout=timeout
        )

    # ---- access control lists ---------------------------------------------------

    async def describe_acls(
        self,
        filter: AclBindingFilter | None = None,  # noqa: A002 - Java's name
        *,
        timeout: float | None = None,
    ) -> list[AclBinding]:
        """Return the entries of the access control lists that a filter matches.

        Brokers learn of a change a moment after it was made.

        Args:
            filter: which entries; all by default.
            timeout: seconds.

        Returns:
            The entries, sorted.

        Raises:
            AuthorizationError: the client may not describe the cluster.
            BrokerError: SECURITY_DISABLED, if the brokers check no rights.
            ArgumentTypeError: the filter is none.
            ArgumentValueError: a part of it is impossible.
            RequestTimeout: no broker answered in time.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._acls import Acls, check_filter

        deadline = self._deadline(timeout)
        wanted = check_filter(AclBindingFilter() if filter is None else filter)
        return await Acls(self._cluster).described(wanted, deadline)

    @overload
    async def create_acls(
        self,
        bindings: Iterable[AclBinding],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[AclBinding, None]: ...

    @overload
    async def create_acls(
        self,
        bindings: Iterable[AclBinding],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[AclBinding, KafkaError | None]: ...

    async def create_acls(
        self,
        bindings: Iterable[AclBinding],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[AclBinding, None] | dict[AclBinding, KafkaError | None]:
        """Create entries of the access control lists.

        Each entry is created for itself; one that exists stays as it is. Brokers heed
        it a moment later. If the call is cancelled, entries may still be created.

        Args:
            bindings: the entries.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by entry, in the order of ``bindings``.

        Raises:
            AuthorizationError: the client may not alter the cluster.
            BrokerError: SECURITY_DISABLED, if the brokers check no rights;
                INVALID_REQUEST or another refusal.
            ArgumentTypeError: a part of an entry has the wrong type.
            ArgumentValueError: an entry is there twice, or a part of it is impossible.
            RequestTimeout: there was no answer in time; entries may be created.
            AdminErrors: several entries failed.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._acls import Acls, check_bindings

        deadline = self._deadline(timeout)
        wanted = check_bindings(bindings)
        results = await Acls(self._cluster).create(wanted, deadline)
        return outcome("create entries", wanted, results, return_errors=return_errors)

    @overload
    async def delete_acls(
        self,
        filters: Iterable[AclBindingFilter],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[AclBindingFilter, tuple[AclBinding, ...]]: ...

    @overload
    async def delete_acls(
        self,
        filters: Iterable[AclBindingFilter],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[AclBindingFilter, tuple[AclBinding, ...] | KafkaError]: ...

    async def delete_acls(
        self,
        filters: Iterable[AclBindingFilter],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> (
        dict[AclBindingFilter, tuple[AclBinding, ...]]
        | dict[AclBindingFilter, tuple[AclBinding, ...] | KafkaError]
    ):
        """Delete the entries of the access control lists that filters match.

        A filter without anything matches every entry. If the call is cancelled,
        entries may still be deleted.

        Args:
            filters: which entries.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            The entries that were deleted by filter, in the order of ``filters``. If
            the answer to the first attempt was lost, those that it deleted are missing.

        Raises:
            AuthorizationError: the client may not alter the cluster.
            BrokerError: SECURITY_DISABLED, if the brokers check no rights; or an entry
                could not be deleted: the message names it, and those that were.
            ArgumentTypeError: a part of a filter has the wrong type.
            ArgumentValueError: a filter is there twice, or a part of it is impossible.
            RequestTimeout: there was no answer in time; entries may be deleted.
            AdminErrors: several filters failed.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._acls import Acls, check_filters

        deadline = self._deadline(timeout)
        wanted = check_filters(filters)
        results = await Acls(self._cluster).delete(wanted, deadline)
        return outcome("delete entries", wanted, results, return_errors=return_errors)

    # ---- quotas -----------------------------------------------------------------

    async def describe_client_quotas(
        self,
        filter: QuotaFilter | None = None,  # noqa: A002 - Java's name
        *,
        timeout: float | None = None,
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Return the quotas of clients that a filter matches (KIP-546).

        It needs Kafka 2.6. Brokers learn of a change a moment after it was made.

        Args:
            filter: which quotas; all by default.
            timeout: seconds.

        Returns:
            Numbers by the names of quotas, such as ``producer_byte_rate``, by entity.

        Raises:
            AuthorizationError: the client may not describe the configs of the cluster.
            BrokerError: INVALID_REQUEST, if the filter is impossible.
            ArgumentTypeError: the filter is none, or a name in it has the wrong type.
            UnsupportedVersion: the broker is too old.
            RequestTimeout: no broker answered in time.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._quotas import Quotas, check_filter

        deadline = self._deadline(timeout)
        wanted = check_filter(QuotaFilter() if filter is None else filter)
        return await Quotas(self._cluster).described(wanted, deadline)

    @overload
    async def alter_client_quotas(
        self,
        alterations: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[QuotaEntity, None]: ...

    @overload
    async def alter_client_quotas(
        self,
        alterations: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[QuotaEntity, KafkaError | None]: ...

    async def alter_client_quotas(
        self,
        alterations: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[QuotaEntity, None] | dict[QuotaEntity, KafkaError | None]:
        """Set and remove quotas of clients (KIP-546).

        It needs Kafka 2.6. Each entity is changed for itself, and all of its quotas
        that are named, or none. Others stay as they are. If the call is cancelled,
        quotas may still be changed.

        Args:
            alterations: by entity, a number for each quota to set, such as
                ``producer_byte_rate``, and None for each quota to remove.
            validate_only: whether the controller only checks whether it would do it.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by entity, in the order of ``alterations``.

        Raises:
            AuthorizationError: the client may not alter the configs of the cluster.
            BrokerError: INVALID_REQUEST, if there is no such quota or entity.
            ArgumentTypeError: an entity or a quota has the wrong type.
            ArgumentValueError: an entity names nobody.
            UnsupportedVersion: the broker is too old.
            RequestTimeout: there was no answer in time; quotas may be changed.
            AdminErrors: several entities failed.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._quotas import Quotas, check_alterations

        deadline = self._deadline(timeout)
        wanted = check_alterations(alterations)
        results = await Quotas(self._cluster).alter(
            wanted, deadline, validate_only=validate_only
        )
        return outcome("alter quotas", wanted, results, return_errors=return_errors)

    # ---- users and delegation tokens --------------------------------------------

    @overload
    async def describe_user_scram_credentials(
        self,
        users: Iterable[str] | None = None,
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, tuple[ScramCredential, ...]]: ...

    @overload
    async def describe_user_scram_credentials(
        self,
        users: Iterable[str] | None = None,
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, tuple[ScramCredential, ...] | KafkaError]: ...

    async def describe_user_scram_credentials(
        self,
        users: Iterable[str] | None = None,
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> (
        dict[str, tuple[ScramCredential, ...]]
        | dict[str, tuple[ScramCredential, ...] | KafkaError]
    ):
        """Return for which mechanisms of SCRAM users have a password (KIP-554).

        It needs Kafka 2.7.

        Args:
            users: names of users; None for all that have a password.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            What there is by user, in the order of ``users``, or sorted.

        Raises:
            AuthorizationError: the client may not describe the cluster.
            BrokerError: RESOURCE_NOT_FOUND, if a user has no password.
            ArgumentTypeError: the name of a user is no str.
            ArgumentValueError: a name is empty, or there twice.
            UnsupportedVersion: the broker is too old.
            RequestTimeout: no broker answered in time. Kafka 4.3.1 never answers
                a client that asks for all users and may not describe the cluster.
            AdminErrors: several users failed.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._users import Users, check_users

        deadline = self._deadline(timeout)
        if users is None:
            results = await Users(self._cluster).all(deadline)
            wanted = sorted([*results.found, *results.failed])
        else:
            wanted = check_users(users)
            results = await Users(self._cluster).described(wanted, deadline)
        return outcome("describe users", wanted, results, return_errors=return_errors)

    @overload
    async def alter_user_scram_credentials(
        self,
        alterations: Iterable[ScramUpsertion | ScramDeletion],
        *,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[str, None]: ...

    @overload
    async def alter_user_scram_credentials(
        self,
        alterations: Iterable[ScramUpsertion | ScramDeletion],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, KafkaError | None]: ...

    async def alter_user_scram_credentials(
        self,
        alterations: Iterable[ScramUpsertion | ScramDeletion],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> dict[str, None] | dict[str, KafkaError | None]:
        """Set and delete the passwords of users for SCRAM (KIP-554).

        It needs Kafka 2.7. Passwords are hashed in a thread and never sent. Each user
        is changed for itself. Brokers take a new password a moment later; connections
        that are open stay open, although the password is gone. If the call is
        cancelled, passwords may still be changed.

        Args:
            alterations: what to set and what to delete.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            None by user, in the order of ``alterations``.

        Raises:
            AuthorizationError: the client may not alter the cluster.
            BrokerError: RESOURCE_NOT_FOUND, if there is no password to delete;
                UNACCEPTABLE_CREDENTIAL, if there are too few iterations or too many.
            ArgumentTypeError: a part of an alteration has the wrong type.
            ArgumentValueError: a user and a mechanism are there twice, or a part is
                impossible.
            UnsupportedVersion: the broker is too old.
            RequestTimeout: there was no answer in time; passwords may be changed.
            AdminErrors: several users failed.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._users import Users, check_alterations

        deadline = self._deadline(timeout)
        wanted = check_alterations(alterations)
        results = await Users(self._cluster).alter(wanted, deadline)
        names = list(dict.fromkeys(each.user for each in wanted))
        return outcome("alter passwords", names, results, return_errors=return_errors)

    async def create_delegation_token(
        self,
        *,
        renewers: Iterable[str] = (),
        owner: str | None = None,
        max_lifetime: float | None = None,
        timeout: float | None = None,
    ) -> DelegationToken:
        """Make a token with which other clients can log in as its owner (KIP-48).

        Brokers learn of it a moment later: a login with it is refused until then. If
        the call is cancelled or repeated by itself, because an answer was lost, there
        may be a token that nobody uses; it expires.

        Args:
            renewers: who may renew and expire it besides the owner, such as
                ``User:alice``.
            owner: whom it is for; by default whoever the client is. Another needs
                Kafka 3.3 and the right to create tokens for that user (KIP-373).
            max_lifetime: seconds after which it expires although it is renewed; the
                brokers' ``delegation.token.max.lifetime.ms`` by default.
            timeout: seconds.

        Raises:
            BrokerError: DELEGATION_TOKEN_AUTH_DISABLED; or
                DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, if the client came without a
                login or logged in with a token; or another refusal.
            AuthorizationError: the client may make no token for the owner.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: a principal has no type, or a time is impossible.
            UnsupportedVersion: the broker knows no tokens for others.
            RequestTimeout: there was no answer in time.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._single import milliseconds, principal_of
        from kafkaio.admin._tokens import Tokens, check_principals

        deadline = self._deadline(timeout)
        lifetime = (
            -1 if max_lifetime is None else milliseconds("max_lifetime", max_lifetime)
        )
        return await Tokens(self._cluster).create(
            None if owner is None else principal_of("owner", owner),
            check_principals("renewers", renewers),
            lifetime,
            deadline,
        )

    async def renew_delegation_token(
        self,
        token: DelegationToken | bytes,
        *,
        period: float | None = None,
        timeout: float | None = None,
    ) -> datetime:
        """Let a token live on (KIP-48).

        Args:
            token: the token, or its hmac.
            period: seconds from now after which it expires; the brokers'
                ``delegation.token.expiry.time.ms`` by default.
            timeout: seconds.

        Returns:
            When it expires; not after its ``max_time``.

        Raises:
            BrokerError: DELEGATION_TOKEN_AUTH_DISABLED; or
                DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, if the client came without a
                login or logged in with a token; or another refusal.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: a time is impossible.
            RequestTimeout: there was no answer in time; it may be renewed.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._single import milliseconds
        from kafkaio.admin._tokens import Tokens, secret_of

        deadline = self._deadline(timeout)
        after = -1 if period is None else milliseconds("period", period)
        return await Tokens(self._cluster).renew(secret_of(token), after, deadline)

    async def expire_delegation_token(
        self,
        token: DelegationToken | bytes,
        *,
        period: float | None = None,
        timeout: float | None = None,
    ) -> datetime:
        """Let a token expire at once, or soon (KIP-48).

        Connections that were made with it stay open until they have to log in again.

        Args:
            token: the token, or its hmac.
            period: seconds from now after which it expires; None deletes it now.
            timeout: seconds.

        Returns:
            When it expires.

        Raises:
            BrokerError: DELEGATION_TOKEN_AUTH_DISABLED; or
                DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, if the client came without a
                login or logged in with a token; or another refusal.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: a time is impossible.
            RequestTimeout: there was no answer in time; it may have expired.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._single import milliseconds
        from kafkaio.admin._tokens import Tokens, secret_of

        deadline = self._deadline(timeout)
        after = -1 if period is None else milliseconds("period", period)
        return await Tokens(self._cluster).expire(secret_of(token), after, deadline)

    async def describe_delegation_token(
        self,
        owners: Iterable[str] | None = None,
        *,
        timeout: float | None = None,
    ) -> list[DelegationToken]:
        """Return the tokens that the client may see (KIP-48).

        It sees those that it owns or may renew, and those that it has the right to
        describe. Brokers learn of a token a moment after it was made.

        Args:
            owners: whose tokens, such as ``User:alice``: those that they own, or may
                renew. None for everybody's.
            timeout: seconds.

        Returns:
            The tokens, the oldest first.

        Raises:
            BrokerError: DELEGATION_TOKEN_AUTH_DISABLED; or
                DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, if the client came without a
                login or logged in with a token; or another refusal.
            ArgumentTypeError: an owner is no str.
            ArgumentValueError: an owner has no type, or is there twice.
            RequestTimeout: no broker answered in time.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._tokens import Tokens, check_principals

        deadline = self._deadline(timeout)
        wanted = None if owners is None else check_principals("owners", owners)
        if wanted is not None and not wanted:
            return []
        return await Tokens(self._cluster).described(wanted, deadline)

    # ---- the cluster ------------------------------------------------------------

    async def describe_cluster(
        self,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
        timeout: float | None = None,
    ) -> ClusterDescription:
        """Describe the cluster: its id, its controller, its brokers (KIP-700).

        With ``bootstrap_controllers`` it describes the controllers (KIP-919).

        Args:
            include_authorized_operations: whether to say what the client may do with
                the cluster.
            include_fenced_brokers: whether to list brokers that are registered and not
                alive, too (KIP-1073, Kafka 4.0).
            timeout: seconds.

        Raises:
            UnsupportedVersion: the broker knows no brokers that are not alive.
            BrokerError: the broker refuses.
            RequestTimeout: no broker answered in time.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._cluster import ClusterOperations

        return await ClusterOperations(self._cluster).described(
            self._deadline(timeout),
            with_operations=include_authorized_operations,
            with_fenced=include_fenced_brokers,
        )

    async def describe_features(
        self,
        *,
        node_id: int | None = None,
        timeout: float | None = None,
    ) -> FeaturesDescription:
        """Return the features in force, and those that a broker supports (KIP-584).

        It needs Kafka 2.7.

        Args:
            node_id: the broker to ask; any by default.
            timeout: seconds.

        Raises:
            UnsupportedVersion: the broker is too old.
            RequestTimeout: there was no answer in time; or there is no such broker.
            ArgumentTypeError: the node id is no int.
            ArgumentValueError: it is negative.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._cluster import ClusterOperations, check_node

        deadline = self._deadline(timeout)
        if node_id is not None:
            check_node(node_id)
        return await ClusterOperations(self._cluster).features(node_id, deadline)

    async def update_features(
        self,
        updates: Mapping[str, FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Put levels of features in force (KIP-584, KIP-778).

        It needs Kafka 2.7. Since Kafka 4.0 all features are updated, or none. If the
        call is cancelled, they may still be updated.

        Args:
            updates: the levels by the names of features, such as
                ``metadata.version``.
            validate_only: whether the controller only checks whether it would do it
                (Kafka 3.3).
            timeout: seconds.

        Raises:
            AuthorizationError: the client may not alter the cluster.
            BrokerError: INVALID_UPDATE_VERSION or FEATURE_UPDATE_FAILED: the message
                says which feature, and why. Before Kafka 4.0 the others are updated.
            AdminErrors: several features failed, before Kafka 4.0.
            UnsupportedVersion: the broker is too old.
            ArgumentTypeError: ``updates`` has the wrong type.
            ArgumentValueError: a level is impossible.
            RequestTimeout: there was no answer in time; features may be updated.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._cluster import ClusterOperations, check_updates

        deadline = self._deadline(timeout)
        if wanted := check_updates(updates):
            await ClusterOperations(self._cluster).update_features(
                wanted, deadline, validate_only=validate_only
            )

    async def describe_metadata_quorum(
        self,
        *,
        timeout: float | None = None,
    ) -> QuorumDescription:
        """Describe the controllers, and how far each has come (KIP-836).

        It needs Kafka 3.3, without ZooKeeper.

        Args:
            timeout: seconds.

        Raises:
            AuthorizationError: the client may not describe the cluster.
            UnsupportedVersion: the cluster has no such quorum.
            RequestTimeout: there was no answer in time.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._cluster import ClusterOperations

        return await ClusterOperations(self._cluster).quorum(self._deadline(timeout))

    async def add_raft_voter(
        self,
        node_id: int,
        directory_id: UUID,
        endpoints: Iterable[RaftEndpoint],
        *,
        cluster_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Make a controller a voter of the quorum (KIP-853).

        It needs Kafka 3.9, and voters that are not static. Those that were formatted as
        static ones cease to be when `update_features` raises ``kraft.version`` to 1:
        with Kafka 4.3, while 3.9 and 4.0 take that update and change nothing. If the
        call is cancelled, the controller may still become a voter.

        Args:
            node_id: the node id of the controller.
            directory_id: the id of the directory with its metadata, as
                `describe_metadata_quorum` returns it for an observer. The controller's
                ``meta.properties`` has its 16 bytes in base64.
            endpoints: its listeners.
            cluster_id: the cluster that it has to be; not checked by default.
            timeout: seconds.

        Raises:
            AuthorizationError: the client may not alter the cluster.
            BrokerError: DUPLICATE_VOTER, if it is one; INCONSISTENT_CLUSTER_ID;
                UNSUPPORTED_VERSION, if the voters are static; or another refusal.
            UnsupportedVersion: the brokers are too old.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: the node id is negative, or there is no endpoint.
            RequestTimeout: there was no answer in time.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._cluster import (
            ClusterOperations,
            check_endpoints,
            check_node,
        )

        deadline = self._deadline(timeout)
        check_node(node_id, directory_id)
        await ClusterOperations(self._cluster).add_voter(
            node_id, directory_id, check_endpoints(endpoints), cluster_id, deadline
        )

    async def remove_raft_voter(
        self,
        node_id: int,
        directory_id: UUID,
        *,
        cluster_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Take a controller's vote in the quorum away (KIP-853).

        It needs Kafka 3.9, and voters that are not static, as `add_raft_voter` does. If
        the call is cancelled, the controller may still lose its vote.

        Args:
            node_id: the node id of the controller.
            directory_id: the id of the directory with its metadata, as
                `describe_metadata_quorum` returns it.
            cluster_id: the cluster that it has to be; not checked by default.
            timeout: seconds.

        Raises:
            AuthorizationError: the client may not alter the cluster.
            BrokerError: VOTER_NOT_FOUND, if it is none; INCONSISTENT_CLUSTER_ID;
                UNSUPPORTED_VERSION, if the voters are static; or another refusal.
            UnsupportedVersion: the brokers are too old.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: the node id is negative.
            RequestTimeout: there was no answer in time.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._cluster import ClusterOperations, check_node

        deadline = self._deadline(timeout)
        check_node(node_id, directory_id)
        await ClusterOperations(self._cluster).remove_voter(
            node_id, directory_id, cluster_id, deadline
        )

    async def unregister_broker(
        self,
        node_id: int,
        *,
        timeout: float | None = None,
    ) -> None:
        """Forget a broker that was shut down for good (KIP-500).

        It needs a cluster without ZooKeeper. A broker that runs registers again. If
        the call is cancelled, it may still be forgotten.

        Args:
            node_id: the node id of the broker.
            timeout: seconds.

        Raises:
            AuthorizationError: the client may not alter the cluster.
            BrokerError: BROKER_ID_NOT_REGISTERED, if there is none.
            UnsupportedVersion: the cluster has ZooKeeper.
            ArgumentTypeError: the node id is no int.
            ArgumentValueError: it is negative.
            RequestTimeout: there was no answer in time.
            ClosedError: the admin client is closed, or not started.
        """
        from kafkaio.admin._cluster import ClusterOperations, check_node

        deadline = self._deadline(timeout)
        check_node(node_id)
        await ClusterOperations(self._cluster).unregister(node_id, deadline)

    # ---- transactions --------------------------------------------------------------

    async def list_transactions(
        self,
        *,
        states: Iterable[TransactionState | str] | None = None,
        producer_ids: Iterable[int] | None = None,
        duration_ms: int | None = None,
        pattern: str | None = None,
        timeout: float | None = None,
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
            KafkaError: a broker did not answer in time, or refused. ``results`` has the
                transactions of the others, by node id.
            AdminErrors: several brokers did not; likewise.
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
        timeout: float | None = None,
    ) -> dict[str, TransactionDescription]: ...

    @overload
    async def describe_transactions(
        self,
        ids: Iterable[str],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, TransactionDescription | KafkaError]: ...

    async def describe_transactions(
        self,
        ids: Iterable[str],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
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
        broker: int | None = None,
        return_errors: Literal[False] = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]: ...

    @overload
    async def describe_producers(
        self,
        partitions: Iterable[TopicPartition],
        *,
        broker: int | None = None,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[TopicPartition, tuple[ProducerState, ...] | KafkaError]: ...

    async def describe_producers(
        self,
        partitions: Iterable[TopicPartition],
        *,
        broker: int | None = None,
        return_errors: bool = False,
        timeout: float | None = None,
    ) -> (
        dict[TopicPartition, tuple[ProducerState, ...]]
        | dict[TopicPartition, tuple[ProducerState, ...] | KafkaError]
    ):
        """Describe the producers that the leaders of partitions remember (KIP-664).

        It needs Kafka 2.8.

        Args:
            partitions: the partitions.
            broker: the node id of a broker whose replicas to ask; None asks the
                leaders.
            return_errors: whether to return errors in place of raising them.
            timeout: seconds.

        Returns:
            The producers by partition, in the order of ``partitions``.

        Raises:
            UnknownTopicOrPartition: there is no such partition.
            BrokerError: NOT_LEADER_OR_FOLLOWER, if ``broker`` has no replica of the
                partition; or another refusal.
            UnsupportedVersion: a broker is too old.
            RequestTimeout: a broker did not answer in time.
            AdminErrors: several partitions failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = list(dict.fromkeys(map(partition_of, partitions)))
        results = await self._transactions.producers(wanted, deadline, broker)
        return outcome(
            "describe the producers", wanted, results, return_errors=return_errors
        )

    async def find_hanging_transactions(
        self,
        *,
        broker: int | None = None,
        topics: str | Collection[str] | None = None,
        max_transaction_timeout_ms: int = _MAX_TRANSACTION_TIMEOUT_MS,
        timeout: float | None = None,
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
                Where it is a leader, ``results`` has what hangs in the other
                partitions, by partition.
            AdminErrors: several partitions have none; likewise.
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
        timeout: float | None = None,
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
        timeout: float | None = None,
    ) -> dict[str, ProducerIdAndEpoch]: ...

    @overload
    async def fence_producers(
        self,
        ids: Iterable[str],
        *,
        return_errors: Literal[True],
        timeout: float | None = None,
    ) -> dict[str, ProducerIdAndEpoch | KafkaError]: ...

    async def fence_producers(
        self,
        ids: Iterable[str],
        *,
        return_errors: bool = False,
        timeout: float | None = None,
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
        timeout: float | None = None,
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


def _names(name: str, names: Iterable[str]) -> list[str]:
    """Check several names, each of which may be there once."""
    found: list[object] = items_of(name, names)
    for each in found:
        if not isinstance(each, str):
            raise ArgumentTypeError(f"{name} must be str, not {type_name(each)}")
        if not each:
            raise ArgumentValueError(f"{name}: a name must not be empty")
    return distinct(name, items_of(name, found))


def _partitions_by_group(
    groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
) -> dict[str, list[TopicPartition] | None]:
    """Check names of groups, or the partitions of each; None stands for all."""
    names = _names("groups", groups)
    if not isinstance(groups, Mapping):
        return dict.fromkeys(names)
    return {
        name: None if tps is None else partitions_of(tps)
        for name, tps in groups.items()
    }


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


def _cluster(
    config: ClientConfig, observer: object | None, dial: Dial | None = None
) -> Cluster:
    """The cluster of an admin client, which never creates a topic by asking for it.

    An operation on a topic that was deleted would bring it back otherwise.
    """
    if config.allow_auto_create_topics:
        config = replace(config, allow_auto_create_topics=False)
    return Cluster(config, observer, dial)
