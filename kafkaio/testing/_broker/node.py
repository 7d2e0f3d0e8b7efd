"""One node of the cluster: a listener, its connections, and what handlers need.

A node knows which handler serves which API (`ServedApi`), the faults to apply, and its
clients' fetch sessions. What all nodes have in common is in its `EmbeddedCluster`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol
from uuid import UUID

from kafkaio._net.transport import FrameSinkPort, TransportPort
from kafkaio._public import public
from kafkaio._runtime.supervisor import Supervisor
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._message import Request, Response, Struct
from kafkaio.protocol._requests import request_type
from kafkaio.protocol.messages.api_versions import ApiVersion
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.clock import Clock
from kafkaio.testing._broker.cluster import EmbeddedCluster
from kafkaio.testing._broker.connection import Peer, ServerConnection
from kafkaio.testing._broker.faults import Fault, Faults, Rule
from kafkaio.testing._broker.listener import AcceptedClient, ListenerPort
from kafkaio.testing._broker.sessions import FetchSessions
from kafkaio.testing._broker.telemetry import PushedTelemetry
from kafkaio.testing._broker.versions import ServedVersions
from kafkaio.testing._security.security import Security

# The names that the schemas of requests have for a topic, and for a partition's number.
_TOPIC_FIELDS: Final = ("name", "topic", "topic_name", "topic_id")
_INDEX_FIELDS: Final = ("partition_index", "index", "partition")


class HandlerPort(Protocol):
    """Serves the requests of one API."""

    @property
    def by_partition(self) -> bool:
        """Whether a response has an error code for each partition or other part."""

    async def __call__(
        self,
        node: BrokerNode,
        header: RequestHeader,
        request: Request[Response],
        connection: ServerConnection,
    ) -> Response | None:
        """Serve one request; None if it is not answered."""


@dataclass(frozen=True, slots=True)
class ServedApi:
    """One API in one release of Kafka.

    Attributes:
        api: the API.
        versions: the versions of it.
        load: imports the handler of an API.
    """

    api: ApiKey
    versions: ServedVersions
    load: Callable[[ApiKey], HandlerPort]

    @property
    def handler(self) -> HandlerPort:
        """Serves its requests; imported on first use."""
        return self.load(self.api)

    @property
    def by_partition(self) -> bool:
        """Whether a response has an error code for each partition or other part."""
        return self.handler.by_partition

    @property
    def can_refuse(self) -> bool:
        """Whether a fault can put an error in its answers."""
        kind = request_type(self.api).response_type()
        return self.by_partition or any(
            field.name == "error_code" for field in kind.SCHEMA
        )

    def speaks(self, version: int) -> bool:
        """Whether a version of the API is served."""
        return self.versions.lowest <= version <= self.versions.highest


@public("kafkaio.testing")
@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request that a node received.

    Attributes:
        at: when the node began to serve it, in seconds of the loop's clock.
        node: id of the node.
        api: Kafka's number of the API.
        version: the API's version.
        client_id: the client's id.
        correlation_id: the request's number on its connection.
    """

    at: float
    node: int
    api: ApiKey
    version: int
    client_id: str | None
    correlation_id: int


@dataclass(slots=True)
class ListenerEndpoint:
    """One of a node's listeners.

    Attributes:
        name: the listener's name.
        protocol: its security protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        host: the advertised host.
        listener: accepts the connections.
        bound_host: the address that it listens at.
        advertised_port: the port to advertise, if it is not the one listened at.
        follows_client: whether each client is told the address that it connected to
            itself, in place of ``host``. A broker that listens on all interfaces has no
            single address that everybody can reach.
        port: the advertised port; 0 until the node has started.
        bound_port: the port that it listens at; 0 until the node has started.
    """

    name: str
    protocol: str
    host: str
    listener: ListenerPort
    bound_host: str
    advertised_port: int | None = None
    follows_client: bool = False
    port: int = 0
    bound_port: int = 0

    @property
    def address(self) -> str:
        """The advertised address, as a client's configuration has it."""
        return _address(self.host, self.port)

    @property
    def bound(self) -> str:
        """The address that it listens at."""
        return _address(self.bound_host, self.bound_port)

    @property
    def has_sasl(self) -> bool:
        """Whether clients have to authenticate by SASL."""
        return self.protocol.startswith("SASL")


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class BrokerPort(Protocol):
    """The `Broker` that a node belongs to, as the node sees it."""

    @property
    def auto_create_topics(self) -> bool:
        """Whether a Metadata request for an unknown topic creates it."""

    @property
    def default_partitions(self) -> int:
        """Number of partitions of a topic created without one."""

    @property
    def default_replication_factor(self) -> int:
        """Replication factor of a topic created without one."""

    @property
    def nodes(self) -> Mapping[int, BrokerNode]:
        """Every node, up or not."""

    @property
    def release(self) -> str:
        """The release of Kafka whose API versions are served."""

    @property
    def security(self) -> Security:
        """The users and tokens of the cluster."""

    @property
    def telemetry(self) -> PushedTelemetry:
        """The metrics that clients have pushed."""

    @property
    def requests(self) -> deque[LoggedRequest]:
        """The log of requests."""


class BrokerNode:
    """One node.

    Attributes:
        node_id: its id.
        endpoints: its listeners by name; the first is the one of ``host`` and ``port``.
        rack: its rack, for fetches from the nearest replica (KIP-392).
        cluster: the state that all nodes share.
        clock: the clock of the cluster.
        broker: the broker that the node belongs to, with the other nodes.
        faults: the faults to apply to requests.
        apis: the APIs that are served, by Kafka's number.
        fetch_sessions: its clients' fetch sessions.
        connections: the open ones, oldest first.
        is_paused: whether it serves and answers nothing for now.
    """

    def __init__(
        self,
        node_id: int,
        endpoints: Sequence[ListenerEndpoint],
        cluster: EmbeddedCluster,
        broker: BrokerPort,
    ) -> None:
        self.node_id = node_id
        self.endpoints: dict[str, ListenerEndpoint] = {
            one.name: one for one in endpoints
        }
        self._main = endpoints[0]
        self.rack: str | None = None
        self.cluster = cluster
        self.broker = broker
        self.faults: Faults = Faults()
        self.apis: Mapping[int, ServedApi] = {}
        self.fetch_sessions: FetchSessions = FetchSessions()
        self.is_paused: bool = False
        self.connections: dict[ServerConnection, None] = {}
        self._supervisor: Supervisor | None = None
        self._pause_timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        state = "up" if self.is_up else "down"
        return f"<Node {self.node_id} {self._main.address} {state}>"

    @property
    def clock(self) -> Clock:
        """The clock of the cluster."""
        return self.cluster.clock

    @property
    def log_dir(self) -> str:
        """The name of the directory of its logs."""
        return f"embedded-{self.node_id}"

    @property
    def is_up(self) -> bool:
        """Whether it accepts connections."""
        return self._supervisor is not None

    @property
    def host(self) -> str:
        """The advertised host of the first listener."""
        return self._main.host

    @property
    def port(self) -> int:
        """The advertised port of the first listener; 0 until the node has started."""
        return self._main.port

    def address(self, connection: ServerConnection) -> tuple[str, int]:
        """The host and port to tell a client: of the listener that it connected to."""
        endpoint = self.endpoints[connection.peer.listener]
        reached = connection.peer.reached
        # A client may reach the broker by another interface than the next one does.
        host = reached if endpoint.follows_client and reached else endpoint.host
        return host, endpoint.port

    # ---- start, pause, stop ------------------------------------------------------

    async def start(self) -> None:
        """Accept connections, with no fetch sessions, as a restarted node."""
        self._supervisor = Supervisor(f"node {self.node_id}", self.report)
        self._supervisor.start()
        # Sessions end with the process: clients have to open new ones.
        self.fetch_sessions = FetchSessions()
        for endpoint in self.endpoints.values():
            port = await endpoint.listener.open(
                partial(self._accept, endpoint), partial(self._stream_fault, endpoint)
            )
            endpoint.bound_port = port
            # Kept when the node starts again: clients know it under this port.
            endpoint.port = endpoint.advertised_port or port

    def pause(self) -> None:
        """Accept connections and requests, and answer none until ``resume``."""
        self._end_pause()
        self.is_paused = True
        # The cluster does not wait for it: leaders and coordinators on it do nothing.
        self.cluster.paused.add(self.node_id)

    def in_pause(self, seconds: float, call: Callable[[], None]) -> None:
        """Call a function once the current pause has lasted ``seconds`` seconds."""
        loop = asyncio.get_running_loop()
        # By the event loop: a paused node counts as dead in real time.
        self._pause_timer = loop.call_later(seconds, call)

    def resume(self) -> None:
        """Serve what came in since ``pause``, and continue."""
        self._end_pause()
        for connection in self.connections:
            connection.resumed()

    def _end_pause(self) -> None:
        self.is_paused = False
        self.cluster.paused.discard(self.node_id)
        if self._pause_timer is not None:
            self._pause_timer.cancel()
            self._pause_timer = None

    async def stop(self) -> None:
        """Abort every connection and end every task. May be called again."""
        # First: a connection that is accepted from here on is aborted.
        supervisor, self._supervisor = self._supervisor, None
        self._end_pause()
        for endpoint in self.endpoints.values():
            await endpoint.listener.close()
        # Over a copy: a connection that ends removes itself.
        for connection in list(self.connections):
            connection.abort()
        self.connections.clear()
        if supervisor is not None:
            await supervisor.aclose()

    def _accept(
        self,
        endpoint: ListenerEndpoint,
        transport: TransportPort,
        client: AcceptedClient,
    ) -> FrameSinkPort:
        connection = ServerConnection(self, transport, self._peer(endpoint, client))
        # The listener accepts until it is closed, and the node may be stopping.
        if self._supervisor is None:
            transport.abort()
            return connection
        self.connections[connection] = None
        self._supervisor.start_soon(connection.run, "connection")
        return connection

    def _peer(self, endpoint: ListenerEndpoint, client: AcceptedClient) -> Peer:
        peer = Peer(client.host, endpoint.name, endpoint.protocol, client.principal)
        peer.reached = client.reached
        if endpoint.has_sasl:
            security = self.broker.security
            # A session for each connection: authentication is the connection's.
            peer.sasl = security.session(endpoint.name)
            peer.refusal_delay = security.config.refusal_delay
            peer.max_receive_bytes = security.config.max_receive_bytes
        return peer

    def _stream_fault(self, endpoint: ListenerEndpoint) -> Fault | None:
        return self.faults.of_stream(self.node_id, endpoint.name)

    def report(self, cause: BaseException) -> None:
        """Report a bug of the embedded broker to the event loop.

        The client sees a closed connection.
        """
        asyncio.get_running_loop().call_exception_handler(
            {"message": f"embedded broker: {self!r} failed", "exception": cause}
        )

    def own_configs(self) -> dict[str, str]:
        """The static configs of this node alone, as in its ``server.properties``."""
        node_id = str(self.node_id)
        address = ",".join(
            f"{one.name}://{one.address}" for one in self.endpoints.values()
        )
        configs = {
            "node.id": node_id,
            "broker.id": node_id,
            "advertised.listeners": address,
        }
        # With one listener its name is its protocol, which is Kafka's default.
        if len(self.endpoints) > 1:
            configs["listener.security.protocol.map"] = ",".join(
                f"{one.name}:{one.protocol}" for one in self.endpoints.values()
            )
        # A user's own value is described as it was given.
        if "listeners" not in self.cluster.configs.static:
            configs["listeners"] = address
        if self.rack is not None:
            configs["broker.rack"] = self.rack
        return configs

    # ---- what connections need ---------------------------------------------------

    def advertised(self, only: ApiKey | None = None) -> list[ApiVersion]:
        """The APIs and versions that ApiVersions reports, in the order of the keys."""
        return [
            ApiVersion(
                api_key=served.api,
                min_version=served.versions.advertised_lowest,
                max_version=served.versions.highest,
            )
            for _, served in sorted(self.apis.items())
            if only is None or served.api == only
        ]

    def begin(self, header: RequestHeader, request: Request[Response]) -> list[Rule]:
        """Add a request to the broker's log; return the faults that apply to it."""
        self.broker.requests.append(
            LoggedRequest(
                self.clock.now(),
                self.node_id,
                ApiKey(header.request_api_key),
                header.request_api_version,
                header.client_id,
                header.correlation_id,
            )
        )
        return self.faults.matching(
            header.request_api_key,
            self.node_id,
            header.client_id,
            lambda topic, index: self._concerns(request, topic, index),
        )

    async def handle(
        self,
        header: RequestHeader,
        request: Request[Response],
        connection: ServerConnection,
    ) -> Response | None:
        """Serve a request; None if it has no answer."""
        served = self.apis[header.request_api_key]
        return await served.handler(self, header, request, connection)

    def in_background(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run something until it ends, or until the node stops."""
        if self._supervisor is not None:
            self._supervisor.start_soon(work, "late duplicate")

    def disconnected(self, connection: ServerConnection) -> None:
        """Remove a connection that has ended."""
        self.connections.pop(connection, None)

    def _concerns(self, request: Request[Response], topic: str, partition: int) -> bool:
        """Whether a request names a partition, or its topic without any partition.

        An incremental Fetch or ShareFetch concerns every partition of its session.
        """
        found = self.cluster.topics.get(topic)
        # Requests name topics by id or by name, depending on their version.
        names = {topic} if found is None else {topic, found.topic_id}
        # Only Fetch requests have a session.
        session = self.fetch_sessions.get(getattr(request, "session_id", 0))
        shared = self.cluster.share_session(self.node_id, request)
        # An incremental request names only what has changed.
        if any((name, partition) in session for name in names):
            return True
        if found is not None and (found.topic_id, partition) in shared:
            return True
        return any(
            _names_partition(part, partition)
            for part in _structs(request)
            if not names.isdisjoint(_topics(part))
        )


def _structs(parent: Struct) -> list[Struct]:
    lists = (getattr(parent, field.name) for field in parent.SCHEMA if field.array)
    return [one for found in lists for one in found or () if isinstance(one, Struct)]


def _topics(part: Struct) -> list[str | UUID]:
    values = (getattr(part, name, None) for name in _TOPIC_FIELDS)
    return [value for value in values if isinstance(value, str | UUID)]


def _names_partition(topic: Struct, partition: int) -> bool:
    """Whether a topic's part of a request names a partition, or no partition at all."""
    numbers: list[int] = []
    for field in topic.SCHEMA:
        if field.array:
            for one in getattr(topic, field.name) or ():
                if isinstance(one, int):
                    numbers.append(one)
                else:
                    numbers += (getattr(one, name, -1) for name in _INDEX_FIELDS)
    named = [number for number in numbers if number >= 0]
    # A request that names a topic alone is about all its partitions.
    return partition in named or not named
