"""The public client: single requests to the brokers of a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Self, Unpack

from kafkaio import _config
from kafkaio._arguments import (
    check_group,
    level_of,
    partitions_of,
    seconds_of,
    topics_of,
    type_name,
)
from kafkaio._client.cluster import ClientStatistics, Cluster, with_client_id
from kafkaio._client.destinations import ANY, Destination, check_destination
from kafkaio._client.retry import Attempts
from kafkaio._config import ClientConfig
from kafkaio._config.signature import OptionsSignature
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._machines.metadata import ClusterView
from kafkaio._net.transport import Dial
from kafkaio._public import knows_other_clients, public
from kafkaio._runtime.clock import now
from kafkaio._runtime.lifecycle import Closeable
from kafkaio.errors import ArgumentTypeError
from kafkaio.protocol._message import Request, ResponseT
from kafkaio.types import (
    FoundTopic,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    TopicPartition,
)

if TYPE_CHECKING:
    from kafkaio._client.offsets import Moment


@public("kafkaio")
@knows_other_clients("__init__")
class Client(Closeable):
    """Sends any request of the Kafka protocol to the broker that can answer it.

    ``async with`` starts and closes the client; `start` and `close` do the same
    explicitly. A client belongs to the event loop and to the process in which it was
    started. Any number of tasks of that loop may use it at the same time. Producers
    and consumers may share a client: give it to them in place of bootstrap servers.
    A client that is garbage collected without having been closed gives a
    ResourceWarning.

    Args:
        bootstrap_servers: ``"host:port,host2:port"``, or a sequence of ``"host:port"``;
            not given with ``bootstrap_controllers``.
        observer: an object with any of the methods of `kafkaio.Observer`, or a list of
            such objects.
        options: see `kafkaio.ClientConfig`.

    Raises:
        ConfigurationError: an option is unknown or impossible.
    """

    __signature__: OptionsSignature = OptionsSignature(ClientConfig)

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] = "localhost:9092",
        *,
        observer: object | None = None,
        **options: Unpack[_config.ClientOptions],
    ) -> None:
        config = with_client_id(ClientConfig.of(bootstrap_servers, options), "client")
        self._set_up(Cluster(config, observer))

    def _set_up(self, cluster: Cluster) -> None:
        # Background tasks refer to the cluster and never to the client: a client that
        # the user forgot can be collected, and `Closeable` then warns and abandons it.
        self._life = cluster.life
        self._cluster = cluster

    @classmethod
    def from_config(
        cls,
        config: ClientConfig,
        *,
        observer: object | None = None,
        dial: Dial | None = None,
    ) -> Self:
        """Make a client from a configuration.

        Args:
            config: the options, which were checked when it was made.
            observer: as for the constructor.
            dial: opens transports, in place of TCP and TLS; for tests.
        """
        client = cls.__new__(cls)
        config = with_client_id(config, "client")
        client._set_up(Cluster(config, observer, dial))
        return client

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, object], *, observer: object | None = None
    ) -> Self:
        """Make a client from Kafka's dotted names, such as ``bootstrap.servers``.

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
            f"<Client {self.config.client_id!r} {numbers.state} | "
            f"{numbers.cluster_id or 'unknown cluster'}, "
            f"{numbers.brokers} brokers, {numbers.topics} topics | "
            f"{len(numbers.connections)} connections>"
        )

    @property
    def config(self) -> ClientConfig:
        """The options of this client."""
        return self._cluster.config

    @property
    def cluster(self) -> ClusterView:
        """What the client knows of the cluster: an immutable snapshot.

        A new one takes its place when metadata arrives.
        """
        return self._cluster.view

    def statistics(self) -> ClientStatistics:
        """Return the state of the client and of its connections."""
        return self._cluster.statistics()

    def _abandon(self) -> None:
        self._life.soon(self._cluster.abandon)

    async def start(self, timeout: float | None = None) -> None:
        """Connect to the cluster, and return when a broker has described it.

        If the call fails or is cancelled, the client is closed.

        Args:
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Raises:
            BrokerNotAvailable: no bootstrap server answered in time, or the name of
                none can be resolved (``bootstrap_resolve_timeout_ms``); the message
                names each of them, the step that failed and the cause.
            AuthenticationError: the servers refuse the client's identity.
            ClosedError: the client was started before.
        """
        await self._cluster.start(timeout)

    async def close(self, timeout: float | None = None) -> None:
        """Close all connections and end all background tasks. May be called again.

        Calls that wait on the client raise ClosedError. Nothing is sent any more, so
        closing takes only as long as the background tasks take to end. If the call is
        cancelled, closing goes on without it, and another call waits for its end.

        Args:
            timeout: seconds after which the call returns although background tasks
                have not ended; they end later. 10 by default.

        Raises:
            ArgumentTypeError: the timeout is not a number.
            ArgumentValueError: it is negative or NaN; nothing was closed.
            ClosedError: the client belongs to another event loop or process.
        """
        await self._cluster.close(timeout)

    async def request(
        self,
        request: Request[ResponseT],
        to: Destination = ANY,
        *,
        timeout: float | None = None,
    ) -> ResponseT:
        """Send a request to a broker and return the answer.

        The request is sent again, after a back-off, if the connection was lost, if the
        attempt timed out, or if the broker answers that it is the wrong one (not the
        leader, coordinator or controller, or still loading). An answer with an error
        for each of its items is such an answer only if no item took effect. All other
        errors are in the answer, which is returned as the broker sent it. So are all
        errors of a broker that was named: ``to=Broker(3)`` asks that broker and no
        other, and returns its answer at once.

        As with the Java client, requests that change something are repeated, too. If
        the answer to the first attempt was lost, the second may report that the work
        is already done, for example by TOPIC_ALREADY_EXISTS.

        If the call is cancelled, the request may still take effect. Requests that run
        at the same time have no order among each other.

        Args:
            request: a request of ``kafkaio.messages``.
            to: ``ANY``, ``Broker(3)``, ``Controller``, ``Leader(tp)``,
                ``GroupCoordinator("g")`` or ``TransactionCoordinator("t")``.
            timeout: seconds for all attempts together; ``default_api_timeout_ms``
                by default. One attempt may take ``request_timeout_ms``.

        Raises:
            RequestTimeout: no answer came in time; the cause is the failure of the
                last attempt, and the message names it.
            ArgumentTypeError: an argument has the wrong type.
            UnsupportedVersion: the broker knows no version of the request that can
                carry its values.
            AuthorizationError: the client may not know the coordinator or the leader.
            AuthenticationError: the brokers refuse the client's identity.
            ClosedError: the client is closed, or not started.
        """
        _check_request(request)
        check_destination(to)
        return await self._cluster.request(request, to, timeout=timeout)

    # ---- topics and offsets ----------------------------------------------------------

    async def partitions_for(
        self,
        topics: str | Iterable[str] | re.Pattern[str],
        *,
        timeout: float | None = None,
    ) -> dict[str, list[int]]:
        """Return the partitions of topics; asks a broker, creates no topic.

        Args:
            topics: the name of a topic, several names, or a pattern that whole names
                match. A pattern matches no internal topic, such as
                ``__consumer_offsets``, and no topic that the principal may not see.
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Returns:
            The numbers of the partitions in ascending order, by the names of the
            topics, which are sorted. For a pattern that matches nothing it is empty.

        Raises:
            UnknownTopicOrPartition: the cluster has no topic of a name given; raised
                at once.
            AuthorizationError: the client may not describe a topic given.
            BrokerError: a name is illegal.
            RequestTimeout: no broker answered in time.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: a name is empty.
            ClosedError: the client is closed, or not started.
        """
        wanted = topics if isinstance(topics, re.Pattern) else topics_of(topics)
        return await self._cluster.partitions_for(wanted, self._within(timeout))

    async def find_topics(
        self,
        topics: str | Iterable[str] | re.Pattern[str],
        *,
        skip_unknown: bool = False,
        timeout: float | None = None,
    ) -> dict[str, FoundTopic]:
        """Return the ids and partitions of topics; asks a broker, creates no topic.

        Both come from one answer, so they belong to the same topic even if a topic is
        deleted and created again, which gives it another id (KIP-516). `kafkaio.arrow`
        takes ids along with ranges of offsets, so that it never reads records of
        another topic with the same name.

        Args:
            topics: the name of a topic, several names, or a pattern that whole names
                match. A pattern matches no internal topic.
            skip_unknown: whether to leave topics named out that do not exist.
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Returns:
            The topics found, by name, in the order of their names.

        Raises:
            UnknownTopicOrPartition: the cluster has no topic of a name given, and
                ``skip_unknown`` is off; raised at once.
            AuthorizationError: the client may not describe a topic given.
            BrokerError: a name is illegal.
            RequestTimeout: no broker answered in time.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: a name is empty.
            ClosedError: the client is closed, or not started.
        """
        wanted = topics if isinstance(topics, re.Pattern) else topics_of(topics)
        return await self._cluster.topics_for(
            wanted, self._within(timeout), skips_unknown=skip_unknown
        )

    async def offsets(
        self,
        partitions: Mapping[TopicPartition, Moment],
        *,
        isolation_level: Literal[
            "read_uncommitted", "read_committed"
        ] = "read_uncommitted",
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look up offsets in the logs of partitions, with one request per leader.

        Requests are repeated, after a back-off, when a leader moves or a connection
        breaks. If the call is cancelled, nothing has changed.

        Args:
            partitions: what to look up, by partition. ``"earliest"`` is the offset of
                the first record kept. ``"latest"`` is the offset after the last record
                that can be read: the high watermark, or with ``read_committed`` the
                last stable offset. A datetime with a time zone, or milliseconds since
                the Unix epoch, is the first record with that timestamp or a later one.
            isolation_level: what ``"latest"`` means.
            timeout: seconds for all of it; ``default_api_timeout_ms`` by default.

        Returns:
            An entry for each partition, in the order given. It is None if every record
            is older than the time; never for ``"earliest"`` and ``"latest"``, whose
            ``timestamp`` is -1.

        Raises:
            UnknownTopicOrPartition: the topic or partition does not exist. No topic
                is created.
            AuthorizationError: the client may not describe a topic.
            RequestTimeout: a leader did not answer in time; the cause is the last
                failure.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: a word is unknown, a time is before 1970, or a datetime
                has no time zone.
            ClosedError: the client is closed, or not started.
        """
        from kafkaio._client.offsets import OffsetLookup, times_of

        times = times_of(partitions)
        level = level_of(isolation_level)
        within = self._within(timeout)
        deadline = now() + within
        # The lookup itself waits for missing topics. Without this check a misspelt name
        # would use up the time, and might create the topic.
        await self._cluster.check_topics((tp.topic for tp in times), within)
        lookup = OffsetLookup(self._cluster, level)
        return await lookup.offsets(times, within=deadline - now())

    async def committed(
        self,
        group: str,
        partitions: Iterable[TopicPartition],
        *,
        require_stable: bool = True,
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the offsets that a group has committed; joins no group.

        Requests are repeated, after a back-off, when the group coordinator moves or is
        loading, when a connection breaks, and while offsets are not stable. If the
        call is cancelled, nothing has changed.

        Args:
            group: the name of the group, which need not exist.
            partitions: the partitions; their topics must exist from Kafka 4.0 on.
            require_stable: whether to wait for transactions that have committed offsets
                of these partitions and have not ended (KIP-447). Otherwise, and from
                brokers before 2.5, the offsets are those committed before.
            timeout: seconds for all of it; ``default_api_timeout_ms`` by default.

        Returns:
            An entry for each partition, sorted; None where nothing is committed.

        Raises:
            RequestTimeout: no answer came in time. The cause is the last failure:
                a BrokerError with the code UNSTABLE_OFFSET_COMMIT if a transaction is
                still open.
            AuthorizationError: the client may not describe the group or a topic.
            BrokerError: the coordinator refused for another reason.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: the name of the group is empty.
            ClosedError: the client is closed, or not started.
        """
        from kafkaio._client.committed import CommittedOffsets
        from kafkaio._client.coordination import CoordinatorRpc

        check_group(group)
        wanted = partitions_of(partitions)
        within = self._within(timeout)
        # Before the short way out: an empty request on a closed client fails as well.
        self._life.check()
        if not wanted:
            return {}
        rpc = CoordinatorRpc(self._cluster, CoordinatorKind.GROUP, group)
        stored = CommittedOffsets(
            rpc,
            self.config.request_timeout_ms / 1000,
            requires_stable=require_stable,
        )
        what = f"looking up the offsets of {rpc.name}"
        attempts = Attempts(what, self._cluster.retry_policy, within)
        return await stored.fetch(frozenset(wanted), attempts)

    def _within(self, timeout: float | None) -> float:
        if timeout is None:
            return self.config.default_api_timeout_ms / 1000
        return seconds_of("timeout", timeout)


def _check_request(request: object) -> None:
    if not isinstance(request, Request):
        raise ArgumentTypeError(
            f"request must be a request of kafkaio.messages, not {type_name(request)}"
        )


def cluster_of(client: Client) -> Cluster:
    """Return the cluster of a client, for a producer or a consumer that shares it.

    It is a function and not a property of `Client`, because it is not meant for users.
    The caller must keep a reference to the client, too: a client that is collected
    ends its cluster.
    """
    return client._cluster
