"""Requests to the group coordinator, whichever broker that is now.

`GroupRpc` sends a request once. Who calls it decides what to retry: a member's machine,
or the loop of a commit. A coordinator that hangs up or does not answer is forgotten, so
that the next attempt looks it up again.
"""

from __future__ import annotations

from typing import TypeVar

import anyio

from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.clock import now
from kafkaio.consumer.group.ports import CoordinatorCluster, CoordinatorConnection
from kafkaio.errors import ConnectionLost, KafkaError, NetworkError, RequestTimeout
from kafkaio.protocol.message import Request, Response
from kafkaio.protocol.messages.api_versions import ApiVersionsRequest

__all__ = ["GroupRpc"]

ResponseT = TypeVar("ResponseT", bound=Response)


class GroupRpc:
    """Sends the requests of one group to its coordinator.

    Args:
        cluster: finds the coordinator, and connects to it.
        group_id: the group.
    """

    __slots__ = ("_cluster", "_leave_sent", "_node_id", "connection_class", "group_id")

    def __init__(self, cluster: CoordinatorCluster, group_id: str) -> None:
        self._cluster = cluster
        self.group_id: str = group_id
        #: The connection for JoinGroup and SyncGroup, which the coordinator answers
        #: only when all members have sent theirs. No other request is sent on it,
        #: because it would wait behind them; another member has a class of its own.
        self.connection_class: ConnectionClass = ConnectionClass.COORDINATOR.of(self)
        # The node that the last request went to. None before the first request, and
        # once the node is known not to be the coordinator.
        self._node_id: int | None = None
        # The ticket of the last request to leave the group that was sent.
        self._leave_sent = 0

    @property
    def node_id(self) -> int | None:
        """The coordinator as it was known last."""
        return self._node_id

    def forget(self) -> None:
        """The coordinator has moved: the next request looks it up."""
        if self._node_id is not None:
            self._cluster.forget_coordinator(
                CoordinatorKind.GROUP, self.group_id, self._node_id
            )
            self._node_id = None

    async def connection(
        self, connection_class: ConnectionClass, deadline: float
    ) -> CoordinatorConnection:
        """A connection to the coordinator.

        Args:
            connection_class: which of its connections.
            deadline: the time of the loop's clock by which there must be one.

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

    def sending_leave(self, ticket: int) -> None:
        """Note that a request to leave the group is sent now, without an await."""
        self._leave_sent = ticket

    def has_sent_leave(self, ticket: int) -> bool:
        """Whether the request with that ticket was the last to leave that was sent."""
        return self._leave_sent == ticket

    def ready(
        self, *connection_classes: ConnectionClass
    ) -> CoordinatorConnection | None:
        """The first open connection of these to the coordinator; opens nothing."""
        node_id = self._node_id
        if node_id is None:
            return None
        found = (
            self._cluster.ready_connection(node_id, each) for each in connection_classes
        )
        return next((connection for connection in found if connection), None)

    async def probe(self, within: float) -> bool:
        """Check on another connection whether the coordinator answers anything.

        If it is silent, all that is in flight to it fails. A coordinator that refuses
        the connection or hangs up is not silent, nor is one that is not known.

        Args:
            within: seconds after which it counts as silent.

        Returns:
            Whether it is alive.
        """
        node_id = self._node_id
        if node_id is None:
            return True
        silence = RequestTimeout(
            f"group {self.group_id!r}: its coordinator {node_id} is silent"
        )
        try:
            # A connection alone proves nothing: the kernel of a process that hangs
            # accepts connections.
            with anyio.move_on_after(within):
                connection = await self._cluster.connection(
                    node_id, ConnectionClass.SHARED
                )
                # Every broker answers this, whatever else it refuses.
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

        Args:
            request: what to ask.
            connection_class: which connection to the coordinator to use.
            timeout: seconds for the connection, and again for the answer.
            is_vital: as in `call_on`.

        Raises:
            KafkaError: as `connection` and `call_on`.
        """
        connection = await self.connection(connection_class, now() + timeout)
        return await self.call_on(
            connection, request, timeout=timeout, is_vital=is_vital
        )

    async def call_on(
        self,
        connection: CoordinatorConnection,
        request: Request[ResponseT],
        *,
        timeout: float,  # noqa: ASYNC109  (it is part of the request)
        max_version: int | None = None,
        is_vital: bool = False,
    ) -> ResponseT:
        """Send a request once on a connection that `connection` returned.

        Args:
            connection: where to send it.
            request: what to ask.
            timeout: seconds for the answer.
            max_version: the highest version of the request to use.
            is_vital: whether a coordinator that does not answer it counts as dead: all
                that is in flight to it fails then.

        Raises:
            KafkaError: what the connection raises. A coordinator that hangs up or does
                not answer is forgotten.
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
