"""One node of the cluster: a listener, its connections, and what handlers need."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from kafkaio._net.transport import FrameSink, Transport
from kafkaio._runtime.supervisor import Supervisor
from kafkaio.protocol.api_keys import ApiKey, request_type
from kafkaio.protocol.message import Request, Response
from kafkaio.protocol.messages.api_versions import ApiVersion
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing.broker.clock import Clock
from kafkaio.testing.broker.cluster import Cluster
from kafkaio.testing.broker.connection import ServerConnection
from kafkaio.testing.broker.faults import Faults
from kafkaio.testing.broker.listener import Listener
from kafkaio.testing.broker.sessions import FetchSessions

__all__ = ["Handle", "Handler", "LoggedRequest", "Node", "Peers"]


class Handle(Protocol):
    """Serves the requests of one API."""

    async def __call__(
        self,
        node: Node,
        header: RequestHeader,
        request: Request[Response],
        connection: ServerConnection,
    ) -> Response | None:
        """Serve one request; None if there is no answer."""


@dataclass(frozen=True, slots=True)
class Handler:
    """One API.

    Attributes:
        api: the API.
        lowest: the oldest version that is served.
        highest: the newest that is served.
        load: finds who serves a request.
        by_partition: whether faults give errors to partitions or other parts of an
            answer, not to all of it.
        told_lowest: the oldest version that ApiVersions tells of.
    """

    api: ApiKey
    lowest: int
    highest: int
    load: Callable[[ApiKey], Handle]
    by_partition: bool = False
    told_lowest: int = 0

    @property
    def handle(self) -> Handle:
        """Serves a request."""
        return self.load(self.api)

    @property
    def can_refuse(self) -> bool:
        """Whether a fault can put an error in its answers."""
        kind = request_type(self.api).response_type()
        return self.by_partition or any(
            field.name == "error_code" for field in kind.SCHEMA
        )

    def speaks(self, version: int) -> bool:
        """Whether a version is served."""
        return self.lowest <= version <= self.highest


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request that came in.

    Attributes:
        at: when it was begun, in seconds of the loop's clock.
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


class Peers(Protocol):
    """What a node knows of the whole: the broker."""

    @property
    def auto_create_topics(self) -> bool:
        """Whether asking for a topic creates it."""

    @property
    def default_partitions(self) -> int:
        """Partitions of a topic whose number is not told."""

    @property
    def default_replication_factor(self) -> int:
        """Replicas of a topic whose number is not told."""

    @property
    def nodes(self) -> Mapping[int, Node]:
        """Every node, up or not."""

    @property
    def release(self) -> str:
        """The release of Kafka that this is taken for."""

    def record(self, request: LoggedRequest) -> None:
        """Add to the request log."""


class Node:
    """One node.

    Attributes:
        node_id: its id.
        host: the host that it tells clients.
        port: the port that it tells clients; 0 until it was opened.
        advertised_port: the port to tell clients, where it is not the one listened at.
        rack: its rack, for fetches from the nearest replica (KIP-392).
        cluster: what all nodes agree on.
        clock: what time it is.
        broker: the whole, and the other nodes.
        fetch_sessions: its clients' fetch sessions.
        connections: the open ones.
        is_paused: whether it reads and answers nothing for now.
    """

    def __init__(
        self,
        node_id: int,
        host: str,
        listener: Listener,
        cluster: Cluster,
        broker: Peers,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = 0
        self.advertised_port: int | None = None
        self.rack: str | None = None
        self.cluster = cluster
        self.broker = broker
        self.faults: Faults = Faults()
        self.handlers: Mapping[int, Handler] = {}
        self.fetch_sessions = FetchSessions()
        self.is_paused = False
        self.connections: dict[ServerConnection, None] = {}
        self._listener = listener
        self._supervisor: Supervisor | None = None
        self._pause_timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        state = "up" if self.is_up else "down"
        return f"<Node {self.node_id} {self.host}:{self.port} {state}>"

    @property
    def clock(self) -> Clock:
        """What time it is."""
        return self.cluster.clock

    @property
    def is_up(self) -> bool:
        """Whether it accepts connections."""
        return self._supervisor is not None

    # ---- its life ----------------------------------------------------------------

    async def start(self) -> None:
        """Accept connections; nothing is known of an earlier life."""
        self._supervisor = Supervisor(f"node {self.node_id}", self.report)
        self._supervisor.start()
        self.fetch_sessions = FetchSessions()
        port = await self._listener.open(self._accept)
        self.port = self.advertised_port or port

    def pause(self) -> None:
        """Accept connections and requests, and answer none until ``resume``."""
        self._end_pause()
        self.is_paused = True

    def in_pause(self, seconds: float, call: Callable[[], None]) -> None:
        """Call something if the pause lasts so long."""
        loop = asyncio.get_running_loop()
        self._pause_timer = loop.call_later(seconds, call)

    def resume(self) -> None:
        """Go on where ``pause`` came between."""
        self._end_pause()
        for connection in self.connections:
            connection.resumed()

    def _end_pause(self) -> None:
        self.is_paused = False
        if self._pause_timer is not None:
            self._pause_timer.cancel()
            self._pause_timer = None

    async def stop(self) -> None:
        """Break every connection off and end every task. May be called again."""
        supervisor, self._supervisor = self._supervisor, None
        self._end_pause()
        await self._listener.close()
        for connection in list(self.connections):
            connection.abort()
        self.connections.clear()
        if supervisor is not None:
            await supervisor.aclose()

    def _accept(self, transport: Transport, client_host: str) -> FrameSink:
        connection = ServerConnection(self, transport, client_host)
        if self._supervisor is None:
            transport.abort()
            return connection
        self.connections[connection] = None
        self._supervisor.start_soon(connection.run, "connection")
        return connection

    def report(self, cause: BaseException) -> None:
        """Tell the loop of a mistake of ours; the client sees a closed connection."""
        asyncio.get_running_loop().call_exception_handler(
            {"message": f"embedded broker: {self!r} failed", "exception": cause}
        )

    def own_configs(self) -> dict[str, str]:
        """The static configs of this node alone, as its ``server.properties`` has."""
        node_id = str(self.node_id)
        address = f"PLAINTEXT://{self.host}:{self.port}"
        configs = {
            "node.id": node_id,
            "broker.id": node_id,
            "advertised.listeners": address,
        }
        if "listeners" not in self.cluster.configs.static:
            configs["listeners"] = address
        if self.rack is not None:
            configs["broker.rack"] = self.rack
        return configs

    # ---- what connections need ---------------------------------------------------

    def handler(self, api: int) -> Handler | None:
        """Who serves an API, in this release of Kafka."""
        return self.handlers.get(api)

    def answers_by_partition(self, api: int) -> bool:
        """Whether an error is told for each partition, and not once."""
        handler = self.handlers.get(api)
        return handler is not None and handler.by_partition

    def advertised(self, only: ApiKey | None = None) -> list[ApiVersion]:
        """The APIs and versions to tell clients, in the order of their numbers."""
        return [
            ApiVersion(
                api_key=handler.api,
                min_version=handler.told_lowest,
                max_version=handler.highest,
            )
            for _, handler in sorted(self.handlers.items())
            if only is None or handler.api == only
        ]

    def log_request(self, header: RequestHeader) -> None:
        """Add to the broker's request log."""
        self.broker.record(
            LoggedRequest(
                self.clock.now(),
                self.node_id,
                ApiKey(header.request_api_key),
                header.request_api_version,
                header.client_id,
                header.correlation_id,
            )
        )
