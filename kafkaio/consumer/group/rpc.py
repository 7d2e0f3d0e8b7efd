"""Requests to a group's coordinator, wherever it is by now."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Collection
from typing import Protocol, TypeVar
from uuid import UUID

import anyio

from kafkaio._machines.api_versions import ApiVersions
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.refresh import Topics
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.clock import now
from kafkaio._runtime.observer import Observer
from kafkaio.errors import ConnectionLost, KafkaError, NetworkError, RequestTimeout
from kafkaio.protocol.message import Request, Response
from kafkaio.protocol.messages.api_versions import ApiVersionsRequest

__all__ = ["GroupCluster", "GroupConnection", "GroupRpc"]

ResponseT = TypeVar("ResponseT", bound=Response)


class GroupConnection(Protocol):
    """What is needed of a connection."""

    @property
    def versions(self) -> ApiVersions:
        """What the broker understands."""
        ...

    async def call(
        self,
        request: Request[ResponseT],
        *,
        timeout: float,  # noqa: ASYNC109  (it is part of the request)
        max_version: int | None = None,
    ) -> ResponseT:
        """Send a request and wait for its answer."""
        ...

    def submit(
        self, request: Request[ResponseT], *, timeout: float
    ) -> Future[ResponseT]:
        """Send a request now; its answer comes later, if it is not cancelled."""
        ...


class GroupCluster(Protocol):
    """What is needed of a client."""

    @property
    def observer(self) -> Observer:
        """Who hears what happens."""
        ...

    @property
    def view(self) -> ClusterView:
        """What is known of the cluster now."""
        ...

    async def coordinator(
        self,
        kind: CoordinatorKind,
        key: str,
        *,
        timeout: float,  # noqa: ASYNC109
    ) -> int:
        """The node that coordinates a group."""
        ...

    def forget_coordinator(self, kind: CoordinatorKind, key: str, node_id: int) -> None:
        """It is not that node any more."""
        ...

    async def connection(
        self, node_id: int, connection_class: ConnectionClass
    ) -> GroupConnection:
        """A connection to the node."""
        ...

    def ready_connection(
        self, node_id: int, connection_class: ConnectionClass
    ) -> GroupConnection | None:
        """The open connection to the node, or None; opens nothing."""
        ...

    def close_connections(self, node_id: int, cause: KafkaError) -> None:
        """The node does not answer: fail what is in flight to it."""
        ...

    def watch_topics(self, owner: object, topics: Topics | None) -> None:
        """Keep metadata of these topics fresh for an owner; None for no more."""
        ...

    def request_refresh(self, *topics: str) -> None:
        """Refresh metadata soon."""
        ...

    async def refresh(self, timeout: float) -> bool:  # noqa: ASYNC109
        """Fetch metadata now; whether that succeeded in time."""
        ...

    async def wait_for_update(self, timeout: float | None = None) -> ClusterView:  # noqa: ASYNC109
        """Wait for the next metadata."""
        ...

    async def topic_names(
        self,
        topic_ids: Collection[UUID],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[UUID, str]:
        """Names of topics by their ids, as far as they are known."""
        ...

    def add_metadata_listener(
        self, listener: Callable[[ClusterView], None]
    ) -> Callable[[], None]:
        """Hear of new metadata until the returned function is called."""
        ...


class GroupRpc:
    """Sends the requests of one group to its coordinator."""

    __slots__ = ("_cluster", "_node_id", "_sent", "connection_class", "group_id")

    def __init__(self, cluster: GroupCluster, group_id: str) -> None:
        self._cluster = cluster
        self.group_id = group_id
        #: Where JoinGroup and SyncGroup wait for members: nobody else's requests
        #: stand behind them, not even those of another member.
        self.connection_class = ConnectionClass.COORDINATOR.of(self)
        # The node that the last request went to; None before the first, and once it
        # is known to be the wrong one.
        self._node_id: int | None = None
        # The ticket of the last request to leave the group.
        self._sent = 0

    @property
    def node_id(self) -> int | None:
        """The coordinator as it was known last."""
        return self._node_id

    def forget(self) -> None:
        """The coordinator is elsewhere: the next request looks it up."""
        if self._node_id is not None:
            self._cluster.forget_coordinator(
                CoordinatorKind.GROUP, self.group_id, self._node_id
            )
            self._node_id = None

    async def connection(
        self, connection_class: ConnectionClass, deadline: float
    ) -> GroupConnection:
        """A connection to the coordinator.

        Args:
            connection_class: which of its connections.
            deadline: time of the loop's clock by which there must be one.

        Raises:
            RequestTimeout: there was none in time.
            NetworkError: the coordinator cannot be reached, and is forgotten.
            BrokerError: the look-up was refused for good.
        """
        step = "no coordinator was found"
        with anyio.CancelScope(deadline=deadline):
            self._node_id = await self._cluster.coordinator(
                CoordinatorKind.GROUP,
                self.group_id,
                timeout=max(0.001, deadline - now()),
            )
            step = f"no connection to its coordinator {self._node_id} could be made"
            try:
                return await self._cluster.connection(self._node_id, connection_class)
            except NetworkError:
                self.forget()
                raise
        raise RequestTimeout(f"group {self.group_id!r}: {step} in time")

    def sending(self, ticket: int) -> None:
        """A request to leave the group goes out now, and before anything is awaited."""
        self._sent = ticket

    def has_sent(self, ticket: int) -> bool:
        """Whether that was the last request to leave the group that went out."""
        return self._sent == ticket

    def ready(self, *classes: ConnectionClass) -> GroupConnection | None:
        """An open connection to the coordinator, the first there is; opens nothing."""
        if self._node_id is None:
            return None
        found = (
            self._cluster.ready_connection(self._node_id, connection_class)
            for connection_class in classes
        )
        return next((connection for connection in found if connection), None)

    async def gives_sign_of_life(self, within: float) -> bool:
        """Whether the coordinator answers anything at all, on another connection.

        What is in flight to one that is silent fails. One that hangs up, or of which
        nobody knows which it is, is not silent.

        Args:
            within: seconds after which it is silent.
        """
        node_id = self._node_id
        if node_id is None:
            return True
        silence = RequestTimeout(
            f"group {self.group_id!r}: its coordinator {node_id} is silent"
        )
        try:
            # Until it is connected, too: a process that hangs accepts connections.
            with anyio.move_on_after(within):
                connection = await self._cluster.connection(
                    node_id, ConnectionClass.SHARED
                )
                # What every broker answers, whatever else it refuses us.
                await connection.call(
                    ApiVersionsRequest(), timeout=within, max_version=2
                )
                return True
        except KafkaError as error:
            took_too_long = isinstance(error.__cause__, TimeoutError)
            if not took_too_long and not isinstance(error, RequestTimeout):
                return True
        self.forget()
        self._cluster.close_connections(node_id, silence)
        return False

    async def call(
        self,
        request: Request[ResponseT],
        connection_class: ConnectionClass,
        *,
        timeout: float,  # noqa: ASYNC109  (it is part of the request)
        is_vital: bool = False,
    ) -> ResponseT:
        """Send a request once.

        If the call is cancelled, the request may still take effect.

        Raises:
            KafkaError: as ``connection``, and what the connection raises. A
                coordinator that hangs up or does not answer is forgotten.
        """
        connection = await self.connection(connection_class, now() + timeout)
        return await self.call_on(
            connection, request, timeout=timeout, is_vital=is_vital
        )

    async def call_on(
        self,
        connection: GroupConnection,
        request: Request[ResponseT],
        *,
        timeout: float,  # noqa: ASYNC109  (it is part of the request)
        max_version: int | None = None,
        is_vital: bool = False,
    ) -> ResponseT:
        """Send a request once on a connection that ``connection`` gave.

        Args:
            connection: where to.
            request: what to ask.
            timeout: seconds for the answer.
            max_version: the highest version of the request to use.
            is_vital: whether a coordinator that does not answer it is taken for dead:
                all that is in flight to it fails then.
        """
        node_id = self._node_id
        try:
            return await connection.call(
                request, timeout=timeout, max_version=max_version
            )
        except (ConnectionLost, RequestTimeout) as error:
            self.forget()
            if is_vital and node_id is not None and isinstance(error, RequestTimeout):
                self._cluster.close_connections(node_id, error)
            raise
