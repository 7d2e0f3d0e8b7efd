"""The admin client, as users see it: the life of `Admin`, and its subjects.

It has the life of any client: started, used by any number of tasks, closed. It starts
no task of its own. Its operations stand in the modules beside it, by subject, each
whole: signature, docstring, checks of arguments, request and reading of the answer.
`Admin` inherits them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Self, Unpack
from uuid import UUID

from kafkaio import _config
from kafkaio._arguments import (
    seconds_of,
)
from kafkaio._client.client import Client, cluster_of
from kafkaio._client.cluster import Cluster, with_client_id
from kafkaio._config import ClientConfig
from kafkaio._config.signature import OptionsSignature
from kafkaio._dataclass import dataclass, replace
from kafkaio._net.transport import Dial
from kafkaio._public import knows_other_clients, public
from kafkaio._runtime.clock import now
from kafkaio._runtime.lifecycle import Closeable, Lifecycle
from kafkaio.admin._acls import Acls
from kafkaio.admin._cluster import ClusterOperations
from kafkaio.admin._configs import Configs
from kafkaio.admin._groups import Groups
from kafkaio.admin._partitions import Partitions
from kafkaio.admin._quotas import Quotas
from kafkaio.admin._share_groups import ShareGroups
from kafkaio.admin._streams_groups import StreamsGroups
from kafkaio.admin._tokens import Tokens
from kafkaio.admin._topics import Topics
from kafkaio.admin._transactions import Transactions
from kafkaio.admin._users import Users
from kafkaio.types import (
    Metric,
)


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
@knows_other_clients("__init__")
class Admin(
    Topics,
    Partitions,
    Configs,
    ShareGroups,
    StreamsGroups,
    Groups,
    Acls,
    Quotas,
    Users,
    Tokens,
    ClusterOperations,
    Transactions,
    Closeable,
):
    """Asks a cluster what operators need to know, and changes it.

    ``async with`` starts and closes it, as `start` and `close` do. It belongs to the
    event loop and to the process in which it was started. Any number of tasks of that
    loop may use it at the same time; calls have no order among each other. One that is
    garbage collected without having been closed gives a ResourceWarning.

    Every operation has a ``timeout`` in seconds for all of its requests and retries,
    ``default_api_timeout_ms`` by default. What a broker refuses only for the moment is
    asked again until then. An operation on many items raises the error of the item
    that failed, and `kafkaio.AdminErrors` if several did; both have the results of the
    other items as ``results``. `kafkaio.admin.settled` returns results and errors in
    place of raising them. If a call is cancelled, requests that were sent may still
    take effect.

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

    __signature__: OptionsSignature = OptionsSignature(ClientConfig)

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        observer: object | None = None,
        **options: Unpack[_config.ClientOptions],
    ) -> None:
        if isinstance(bootstrap_servers, Client):
            # The reference keeps the shared client alive: a client that is collected
            # ends its cluster.
            self._client = bootstrap_servers
            config = ClientConfig.sharing(bootstrap_servers.config, options, observer)
            self._set_up(config, cluster_of(bootstrap_servers), owns_cluster=False)
        else:
            config = with_client_id(
                ClientConfig.of(bootstrap_servers, options), "admin"
            )
            self._set_up(config, _cluster(config, observer), owns_cluster=True)

    def _set_up(
        self, config: ClientConfig, cluster: Cluster, *, owns_cluster: bool
    ) -> None:
        self._life = Lifecycle("admin", config.client_id)
        self.config = config
        self._cluster = cluster
        self._owns_cluster = owns_cluster
        self._undo: list[Callable[[], None]] = []

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
        config = with_client_id(config, "admin")
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
            # A shared client may not be running, or belong to another event loop.
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

        Calls that wait on them raise ClosedError; calls on a shared client go on. If
        this call is cancelled, closing goes on without it.

        Args:
            timeout: seconds after which the call returns although background tasks
                have not ended; they end later. 10 by default.

        Raises:
            ArgumentTypeError: the timeout is not a number.
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
        # Neither refers to this object, which is being collected: `_undo` is its list.
        self._life.soon(partial(_call_all, self._undo))
        if self._owns_cluster:
            self._life.soon(self._cluster.abandon)

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
                or its kind is unknown.
        """
        self._cluster.telemetry.register(metric)

    def unregister_metric(self, metric: Metric) -> None:
        """Stop pushing a metric. Nothing happens if it was not registered.

        Args:
            metric: one with the name and the attributes of the one registered.

        Raises:
            ArgumentTypeError: it is not a `kafkaio.Metric`.
        """
        self._cluster.telemetry.unregister(metric)


def _call_all(undo: list[Callable[[], None]]) -> None:
    while undo:
        undo.pop()()


def _cluster(
    config: ClientConfig, observer: object | None, dial: Dial | None = None
) -> Cluster:
    """Make the cluster of an admin client, which creates no topic by asking for it."""
    # Otherwise an operation on a topic that was deleted would create it again.
    if config.allow_auto_create_topics:
        config = replace(config, allow_auto_create_topics=False)
    return Cluster(config, observer, dial)
