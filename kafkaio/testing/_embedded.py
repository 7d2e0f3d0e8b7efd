"""``Broker``: a Kafka cluster in the event loop, for development and tests only.

This module puts the parts together. The state that all nodes share is in
``broker.cluster``; a node with its connections in ``broker.node``; the APIs in
``handlers``; the group coordinators in ``groups``, those of transactions in
``transactions``; the logs in ``log``.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kafkaio._net.memory import MemoryNetwork
from kafkaio._net.transport import Dial
from kafkaio._public import public
from kafkaio._runtime.loop import running_loop
from kafkaio._runtime.supervisor import Supervisor
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.testing._broker.clock import Clock
from kafkaio.testing._broker.cluster import (
    AT_ONCE,
    TRANSACTIONS_TOPIC,
    EmbeddedCluster,
    Topic,
)
from kafkaio.testing._broker.configs import BROKER, BrokerConfigs
from kafkaio.testing._broker.control import (
    Control,
    GroupControlPort,
    ShareControlPort,
    TransactionControlPort,
)
from kafkaio.testing._broker.faults import Faults
from kafkaio.testing._broker.group_config import GroupConfig
from kafkaio.testing._broker.listener import ListenerPort, MemoryListener, TcpListener
from kafkaio.testing._broker.node import BrokerNode, ListenerEndpoint, LoggedRequest
from kafkaio.testing._broker.properties import (
    EVERYWHERE,
    LARGEST_PORT,
    Address,
    changed_config,
    checked_config,
    listener,
)
from kafkaio.testing._broker.store import DiskStore, MemoryStore
from kafkaio.testing._broker.telemetry import PushedTelemetry
from kafkaio.testing._broker.versions import NEWEST, Release, rules_of
from kafkaio.testing._handlers import apis_of
from kafkaio.testing._security.config import SecurityConfig
from kafkaio.testing._security.files import Certificates, TlsFiles
from kafkaio.testing._security.security import Security

if TYPE_CHECKING:
    from kafkaio.testing._groups.coordinator import EmbeddedGroupCoordinator
    from kafkaio.testing._transactions.coordinator import EmbeddedTransactionCoordinator

_PLAINTEXT: Final = "PLAINTEXT"
_MTLS: Final = "MTLS"
_WITH_TLS: Final = frozenset({"SSL", _MTLS, "SASL_SSL"})
_USERS: Final[Mapping[str, str]] = {"alice": "alice-secret"}
_FIRST_MEMORY_PORT: Final = 9092
_ALL: Final = "0.0.0.0"  # noqa: S104  (listeners=PLAINTEXT://:9092 says so)
_MIN_ISR: Final = "min.insync.replicas"
_LOGGED: Final = 10_000
# Seconds between two flushes of logs, and flushes until retention and compaction
# run. Not sooner than Kafka's first check: tests like to write old timestamps.
_FLUSH_SECONDS: Final = 1.0
_FLUSHES: Final = 30


@public("kafkaio.testing")
class Broker:
    """A Kafka cluster in the running event loop. Any Kafka client can connect to it.

    For development and tests only: the replicas of a partition share one log, so no
    replica can lag or lose records as it could in production. It runs as an async
    context manager::

        async with Broker(nodes=3, topics={"orders": 6}) as broker:
            async with kafkaio.Producer(broker.bootstrap_servers) as producer:
                await producer.send("orders", b"one")

    Args:
        nodes: number of nodes.
        topics: topics to create at the start: number of partitions by name. A topic
            that ``data_dir`` holds already stays as it is.
        data_dir: directory for logs and metadata; None keeps them in memory.
        as_version: the release of Kafka whose API versions are served: "2.1", "2.8",
            "3.9", "4.0", "4.2", "4.3" or "4.4".
        host: the address to listen at and to advertise. With ``""``, ``0.0.0.0`` or
            ``::`` the broker listens on all interfaces, and every client is told the
            address that it has connected to.
        port: port of the first node, the other nodes take the next ones; 0 takes free
            ports.
        auto_create_topics: whether a Metadata request for an unknown topic creates it.
        default_partitions: number of partitions of a topic created without one.
        replication_factor: replication factor of a topic created without one; None for
            the number of nodes, at most 3.
        first_node_id: id of the first node; the others count from it.
        racks: the racks of the nodes, in their order (KIP-392).
        config: configs of the brokers by Kafka's names, as in a ``server.properties``;
            they take precedence over arguments of the same meaning. A config without
            an effect on the embedded broker is only stored, for DescribeConfigs.
        metadata_delay: seconds until nodes know of a new leader, or of a topic that a
            Metadata request created. Until then no node acts as the new leader, and
            clients are sent to the old one, as in a real cluster. A topic that
            CreateTopics made is known when the request is answered; the fault
            `metadata_lag` delays that.
        memory_transport: True to open no ports: clients connect with
            ``Client.from_config(config, dial=broker.dial)``. Or the in-memory network
            to listen in.
        clock: replaces the clocks of the event loop and of the system.
        groups: settings of the group coordinators; ``load_time`` applies to those of
            transactions, too.
        features: finalized levels of features, for "4.0" and later:
            ``{"transaction.version": 1}``; by default the highest, 2.
        sasl: whether there is a listener SASL beside PLAINTEXT: PLAIN, SCRAM-SHA-256,
            SCRAM-SHA-512 and OAUTHBEARER (without signatures, by default).
        tls: whether there is a listener SSL, and MTLS, which demands a certificate of
            the client; with ``sasl`` also SASL_SSL. Not with ``memory_transport``.
            Needs the package trustme.
        users: users and passwords; None for alice with alice-secret.
        reauth_ms: the longest session of a SASL connection in milliseconds (KIP-368), 0
            for no limit. Or such numbers by listener, by mechanism or by both:
            ``{"PLAIN": 2000, "SASL_SSL.OAUTHBEARER": 5000}``.
        security: further settings of SASL, TLS, delegation tokens and ACLs.
        acls: whether rights are checked by ACLs, as Kafka's authorizer does; the config
            ``authorizer.class.name`` says so, too. A client of PLAINTEXT is a
            super user, unless ``security`` or the config ``super.users`` says
            otherwise; all others may do what CreateAcls allows them.
        telemetry: whether clients may push their metrics (KIP-714), as to a Kafka with
            a plug-in that receives them; from "3.9" on.

    Attributes:
        control: stops nodes, moves leaders and coordinators, controls groups and time.
        faults: makes requests fail.
        nodes: the nodes by id.
        requests: the last 10,000 requests, oldest first.
        security: users, delegation tokens and ACLs, to be changed at any time, and how
            often clients have authenticated.
        telemetry: the metrics that clients have pushed.

    Raises:
        ValueError: ``nodes`` is below 1, ``as_version`` is not a known release,
            ``config`` has a value that Kafka does not accept, or ``features`` names
            a feature or level that the release does not have; the nodes need ports
            above 65535; or ``tls`` is asked for in memory.
    """

    def __init__(  # noqa: PLR0913  (settings by name, as a fixture writes them)
        self,
        *,
        nodes: int = 1,
        topics: Mapping[str, int] | None = None,
        data_dir: str | Path | None = None,
        as_version: Release = NEWEST,
        host: str = "127.0.0.1",
        port: int = 0,
        auto_create_topics: bool = True,
        default_partitions: int = 1,
        replication_factor: int | None = None,
        first_node_id: int = 0,
        racks: Sequence[str] = (),
        config: Mapping[str, str | float] | None = None,
        metadata_delay: float = 0.01,
        memory_transport: bool | MemoryNetwork = False,
        clock: Clock | None = None,
        groups: GroupConfig | None = None,
        features: Mapping[str, int] | None = None,
        sasl: bool = False,
        tls: bool = False,
        users: Mapping[str, str] | None = None,
        reauth_ms: int | Mapping[str, int] = 0,
        security: SecurityConfig | None = None,
        acls: bool = False,
        telemetry: bool = False,
    ) -> None:
        if nodes < 1:
            raise ValueError(f"nodes={nodes}: must be at least 1")
        self.release = as_version
        given = checked_config(config or {})
        groups = (groups or GroupConfig()).with_configs(given)
        static = groups.as_configs() | {
            "auto.create.topics.enable": str(auto_create_topics).lower(),
            "num.partitions": str(default_partitions),
            "default.replication.factor": str(replication_factor or min(nodes, 3)),
        }
        configs = BrokerConfigs(changed_config(static) | given)
        rules = rules_of(as_version)
        if rules.has_eligible_replicas:
            # As Kafka does when it formats a cluster with eligible leader replicas.
            isr = {_MIN_ISR: configs.in_force(_MIN_ISR) or "1"}
            configs.set(BROKER, "", isr)
        self._apply_static(configs)
        self.requests: deque[LoggedRequest] = deque(maxlen=_LOGGED)
        self._topics = dict(topics or {})
        self._network = MemoryNetwork() if memory_transport is True else None
        if isinstance(memory_transport, MemoryNetwork):
            self._network = memory_transport
        self._store = MemoryStore() if data_dir is None else DiskStore(Path(data_dir))
        self._is_open = False
        first_node_id = int(given.get("node.id", given.get("broker.id", first_node_id)))
        self._cluster = EmbeddedCluster(
            [first_node_id + index for index in range(nodes)],
            clock or Clock(),
            metadata_delay,
            self._store,
            configs,
        )
        self._cluster.rules = rules
        self._supervisor = Supervisor("embedded broker", self._clean_up_failed)
        self._has_sasl = sasl
        users = _USERS if users is None else users
        self._files = TlsFiles(users, _hosts(given, host)) if tls else None
        self._set_security(users, reauth_ms, security, given, acls=acls)
        self._cluster.group_config = groups
        self._set_features(features or {})
        self.telemetry: PushedTelemetry = PushedTelemetry(
            configs, self._cluster.clock.now
        )
        self._has_telemetry = telemetry
        self.nodes: dict[int, BrokerNode] = {}
        self.control: Control = self._new_control()
        if "broker.rack" in given:
            racks = [*racks, *[given["broker.rack"]] * nodes]
        self._add_nodes(list(self._new_nodes(given, Address(host, port))), racks)

    def _new_control(self) -> Control:
        # Each is imported on first use.
        return Control(
            self._cluster,
            self.nodes,
            self._group_control,
            self._transaction_control,
            self._share_control,
        )

    def _add_nodes(self, nodes: Sequence[BrokerNode], racks: Sequence[str]) -> None:
        apis = apis_of(self.release)
        if not self._has_telemetry:
            apis.pop(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, None)
            apis.pop(ApiKey.PUSH_TELEMETRY, None)
        self.faults: Faults = Faults(
            lambda api: api in apis and apis[api].can_refuse, self.nodes.keys()
        )
        for index, node in enumerate(nodes):
            node.faults = self.faults
            node.apis = apis
            node.rack = racks[index] if index < len(racks) else None
            self.nodes[node.node_id] = node

    def _set_security(
        self,
        accounts: Mapping[str, str],
        reauth_ms: int | Mapping[str, int],
        config: SecurityConfig | None,
        given: Mapping[str, str],
        *,
        acls: bool,
    ) -> None:
        if self._files is not None and self._network is not None:
            raise ValueError("tls=True: connections in memory have no TLS")
        clock = self._cluster.clock
        self.security: Security = Security(
            (config or SecurityConfig()).with_configs(given),
            accounts,
            reauth_ms,
            clock.now,
            clock.wall_ms,
            has_acls=acls or bool(given.get("authorizer.class.name")),
        )

    def _set_features(self, levels: Mapping[str, int]) -> None:
        """Set the levels of a new cluster of the release."""
        if self._cluster.rules.highest_levels:
            levels = {"transaction.version": 2} | dict(levels)
        elif levels:
            raise ValueError(f"features={levels}: {self.release} has none")
        for name, level in levels.items():
            self._cluster.set_feature(name, level)
        self._cluster.features_epoch = 1

    def _apply_static(self, configs: BrokerConfigs) -> None:
        """Apply the configs that cannot change while the brokers run."""
        self.auto_create_topics: bool = (
            configs.in_force("auto.create.topics.enable") == "true"
        )
        self.default_partitions: int = int(configs.in_force("num.partitions") or 1)
        factor = configs.in_force("default.replication.factor")
        self.default_replication_factor: int = int(factor or 1)

    def _new_nodes(
        self, config: Mapping[str, str], address: Address
    ) -> Iterator[BrokerNode]:
        """Create the nodes; each port is one above that of the node before."""
        bound = listener(config, "listeners") or address
        advertised = listener(config, "advertised.listeners")
        # On all interfaces each client is told the address that it has connected to;
        # the name localhost is for `bootstrap`, where no client has come yet.
        named = advertised.host if advertised else bound.host
        host = "localhost" if named in EVERYWHERE else named
        needed = len(self._cluster.node_ids) * len(self.listeners)
        if bound.port and bound.port + needed - 1 > LARGEST_PORT:
            raise ValueError(
                f"{needed} listeners from port {bound.port} need ports above"
                f" {LARGEST_PORT}"
            )
        for index, node_id in enumerate(self._cluster.node_ids):
            endpoints = []
            for number, (name, protocol) in enumerate(self._listener_names()):
                # The ports of the second listener follow those of the first.
                offset = index + number * len(self._cluster.node_ids)
                at = self._listener(name, bound, offset)
                one = ListenerEndpoint(name, protocol, host, at, bound.host or _ALL)
                one.follows_client = named in EVERYWHERE
                endpoints.append(one)
            if advertised is not None and advertised.port:
                endpoints[0].advertised_port = advertised.port + index
            yield BrokerNode(node_id, endpoints, self._cluster, self)

    def _listener_names(self) -> Iterator[tuple[str, str]]:
        """The listeners of each node, with their security protocols."""
        yield _PLAINTEXT, _PLAINTEXT
        if self._has_sasl:
            yield "SASL", "SASL_PLAINTEXT"
        if self._files is not None:
            yield "SSL", "SSL"
            yield _MTLS, "SSL"
            if self._has_sasl:
                yield "SASL_SSL", "SASL_SSL"

    def _coordinator(self) -> EmbeddedGroupCoordinator:
        # Imported on first use, as the handlers are, so that a broker starts fast.
        from kafkaio.testing._groups.coordinator import coordinator_of

        return coordinator_of(self._cluster)

    def _group_control(self) -> GroupControlPort:
        from kafkaio.testing._groups.control import GroupCoordinatorControl

        return GroupCoordinatorControl(self._coordinator())

    def _transactions(self) -> EmbeddedTransactionCoordinator:
        from kafkaio.testing._transactions.coordinator import coordinator_of

        return coordinator_of(self._cluster)

    def _transaction_control(self) -> TransactionControlPort:
        from kafkaio.testing._transactions.control import TransactionCoordinatorControl

        return TransactionCoordinatorControl(self._transactions())

    def _share_control(self) -> ShareControlPort:
        from kafkaio.testing._share.control import ShareLeadersControl
        from kafkaio.testing._share.leaders import share_leaders_of

        return ShareLeadersControl(share_leaders_of(self._cluster), self._cluster)

    def _listener(self, name: str, bound: Address, offset: int) -> ListenerPort:
        host = bound.host or _ALL
        if self._network is not None:
            port = (bound.port or _FIRST_MEMORY_PORT) + offset
            return MemoryListener(self._network, host, port)
        tls = None
        if self._files is not None and name in _WITH_TLS:
            rules = self.security.principal_rules
            tls = self._files.listener(rules, wants_certificate=name == _MTLS)
        return TcpListener(host, bound.port + offset if bound.port else 0, tls)

    def __repr__(self) -> str:
        up = sum(node.is_up for node in self.nodes.values())
        return (
            f"<Broker as {self.release}, for tests only | {up} of {len(self.nodes)}"
            f" nodes up, {len(self._cluster.topics)} topics>"
        )

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, for a client's configuration."""
        return self.bootstrap(_PLAINTEXT)

    def bootstrap(self, listener: str) -> str:
        """The addresses of all nodes' listeners of one name.

        Args:
            listener: PLAINTEXT, SASL, SSL, MTLS or SASL_SSL.

        Raises:
            KeyError: the listener does not exist.
        """
        found = [node.endpoints[listener] for node in self.nodes.values()]
        return ",".join(one.address for one in found)

    @property
    def listeners(self) -> tuple[str, ...]:
        """The names of the listeners that each node has."""
        return tuple(name for name, _ in self._listener_names())

    def bound(self, listener: str = _PLAINTEXT) -> str:
        """The addresses that the nodes listen at, ``0.0.0.0`` for all interfaces.

        Clients use the addresses of `bootstrap` instead.

        Args:
            listener: one of `listeners`.

        Raises:
            KeyError: the listener does not exist.
        """
        found = [node.endpoints[listener] for node in self.nodes.values()]
        return ",".join(one.bound for one in found)

    @property
    def has_tls(self) -> bool:
        """Whether there are listeners with TLS, and so `certificates`."""
        return self._files is not None

    @property
    def certificates(self) -> Certificates:
        """The TLS files for clients; they exist while the broker runs.

        Raises:
            RuntimeError: the broker has no TLS listener.
        """
        if self._files is None:
            raise RuntimeError("start it with tls=True")
        return self._files.certificates

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Every topic by name, including those that nodes do not know of yet."""
        return self._cluster.topics

    async def __aenter__(self) -> Broker:
        """Start the nodes and create the topics; clients can connect when it returns.

        Raises:
            OSError: an address or the directory cannot be used, for example because
                another broker uses it.
            ValueError: the directory holds the files of something else.
            UsageError: no event loop of asyncio runs.
        """
        running_loop()
        # Before anything is read: another broker may be about to write it.
        self._store.acquire()
        self._is_open = True
        try:
            self._cluster.load()
            if self._files is not None:
                self._files.make()
            for node in self.nodes.values():
                await node.start()
            self._supervisor.start(self._clean_up)
            if TRANSACTIONS_TOPIC in self._cluster.topics:
                self._transactions().load_all()
            # After the directory was read, whose topics stay as they are.
            for name, partitions in self._topics.items():
                if name not in self._cluster.topics:
                    self.create_topic(name, partitions)
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Abort all connections, end all tasks and close the logs."""
        await self._stop()

    async def _clean_up(self) -> None:
        while True:
            for _ in range(_FLUSHES):
                await asyncio.sleep(_FLUSH_SECONDS)
                self._cluster.flush()
            self._cluster.tidy()

    def _clean_up_failed(self, cause: BaseException) -> None:
        message = "embedded broker: flushing or cleaning a log failed"
        asyncio.get_running_loop().call_exception_handler(
            {"message": message, "exception": cause}
        )

    async def _stop(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        try:
            await self._close()
        finally:
            # The last of all: what is written without the lock harms another broker.
            self._store.release()

    async def _close(self) -> None:
        # Nothing flushes or cleans a log while it is closed.
        await self._supervisor.aclose()
        for node in self.nodes.values():
            await node.stop()
        if self._files is not None:
            self._files.remove()
        # Without a callback there, no request was ever about a group, and the
        # coordinator does not exist.
        if self._cluster.leader_changed:
            self._coordinator().close()
            self._share_control().close()
        if TRANSACTIONS_TOPIC in self._cluster.topics:
            self._transactions().close()
        self._cluster.close()

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        configs: Mapping[str, str] | None = None,
        *,
        topic_id: UUID | None = None,
    ) -> None:
        """Create a topic that all nodes know of at once. It needs no running loop.

        Args:
            name: its name.
            partitions: number of partitions.
            replication_factor: replicas of each partition; None for the broker's
                ``replication_factor``.
            configs: the topic's configs that differ from the defaults.
            topic_id: its id; None for a random one.

        Raises:
            Refusal: with the error code that a client would get, such as
                TOPIC_ALREADY_EXISTS.
        """
        factor = replication_factor or self.default_replication_factor
        self._cluster.create_topic(name, partitions, factor, configs, AT_ONCE, topic_id)

    @property
    def dial(self) -> Dial:
        """Connects in memory, for ``Client.from_config(config, dial=broker.dial)``.

        Raises:
            RuntimeError: the broker listens on ports.
        """
        if self._network is None:
            raise RuntimeError("dial needs a Broker(memory_transport=True)")
        return self._network.dial


def _hosts(config: Mapping[str, str], host: str) -> list[str]:
    """The names and addresses that a server's certificate has to be valid for."""
    given = (listener(config, name) for name in ("listeners", "advertised.listeners"))
    found = [host, *(one.host for one in given if one is not None)]
    if not EVERYWHERE.isdisjoint(found):
        found.append(socket.gethostname())
    # Systems have names, with "_" for example, for which no certificate can be issued.
    return [
        name
        for name in found
        if name not in EVERYWHERE and re.fullmatch(r"[A-Za-z0-9.:-]+", name)
    ]
