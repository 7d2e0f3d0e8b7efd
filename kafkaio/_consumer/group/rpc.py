"""The coordinator of a group as its member uses it, besides plain requests.

It has a connection of its own, checks whether a silent coordinator lives, and repeats
its request to leave until that is answered. The requests themselves go through
`kafkaio._client.coordination.CoordinatorRpc`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Final, TypeVar

from kafkaio._client.coordination import CoordinatorRpc
from kafkaio._client.retry import Attempts
from kafkaio._machines.api_versions import ApiVersions
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.clock import now
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.scopes import move_on_after
from kafkaio.errors import KafkaError, RequestTimeout
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from kafkaio._client.ports import ClusterPort

ResponseT = TypeVar("ResponseT", bound=Response)

#: Most seconds that one attempt to leave the group waits for a connection, and again
#: for the answer. Brokers write the departure to a log, which may take 5 s. A
#: coordinator that hangs is then looked up again while closing still has time.
_LEAVE_ATTEMPT: Final = 6.0
#: A throttle of so many seconds makes a leaving member use a connection of its own.
_LONG_THROTTLE: Final = 1.0


class GroupRpc:
    """The coordinator as a member of one group uses it.

    Args:
        cluster: finds the coordinator, and connects to it.
        group_id: the group.
        observer: observes heartbeats; may be None.

    Attributes:
        coordinator: sends requests to the coordinator.
        connection_class: the connection for JoinGroup and SyncGroup, which the
            coordinator answers only when all members have sent theirs. No other
            request is sent on it, because it would wait behind them; another member
            has a class of its own.
    """

    __slots__ = (
        "_cluster",
        "_leave_sent",
        "_leaving",
        "_observer",
        "alive_at",
        "connection_class",
        "coordinator",
        "failure",
        "is_parked",
    )

    def __init__(
        self,
        cluster: ClusterPort,
        group_id: str,
        observer: Observer | None = None,
    ) -> None:
        self._cluster = cluster
        self._observer = observer
        self.coordinator: CoordinatorRpc = CoordinatorRpc(
            cluster, CoordinatorKind.GROUP, group_id
        )
        self.connection_class: ConnectionClass = ConnectionClass.COORDINATOR.of(self)
        self.failure: KafkaError | None = None
        self.alive_at: float = -inf
        self.is_parked: bool = False
        # The ticket of the last request to leave the group that was sent.
        self._leave_sent = 0
        # Owns the connection on which a throttled member leaves.
        self._leaving = object()

    @property
    def group_id(self) -> str:
        """The group."""
        return self.coordinator.key

    @contextmanager
    def parked(self, connection: Connection) -> Iterator[None]:
        """Within the block, a request waits at the coordinator for other members."""
        # One that a throttle holds back has not been sent.
        self.is_parked = not connection.throttled
        try:
            yield
        finally:
            self.is_parked = False

    def answered(self, api: int, code: int) -> None:
        """Note the error code of an answer to this member."""
        self.failure = None
        if code not in {ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED}:
            from kafkaio.protocol._api_keys import ApiKey

            what = f"{ApiKey(api).name} of {self.coordinator.name}"
            self.failure = broker_error(code, what)

    def heartbeat_answered(self, sent_at: float) -> None:
        """Note that a heartbeat which was sent at that time was answered."""
        if self._observer is not None:
            self._observer.heartbeat_answered(self.group_id, now() - sent_at)

    async def leave(
        self,
        ticket: int,
        request: Callable[[ApiVersions], Request[ResponseT]],
        code: Callable[[ResponseT], int],
        connection_class: ConnectionClass,
        within: float,
    ) -> int:
        """Leave the group: send the request until it is answered for good.

        The coordinator is looked up again when it has moved, hangs up, or does not
        answer. If the call is cancelled, the request may still take effect.

        Args:
            ticket: of the request.
            request: makes the request for a broker that supports these versions.
            code: reads the error code of an answer.
            connection_class: which connection to the coordinator to use.
            within: seconds for all attempts: when the session has ended, the
                coordinator has removed the member by itself.

        Returns:
            The error code: of success, or a refusal that is not to be retried.

        Raises:
            KafkaError: no answer came in time, or the coordinator may not be looked
                up.
        """
        name = f"leaving group {self.group_id!r}"
        ready = self.coordinator.ready(connection_class)
        if ready is not None and ready.throttled > _LONG_THROTTLE:
            # The broker reads nothing from a connection that it throttles.
            connection_class = ConnectionClass.COORDINATOR.of(self._leaving)
        # One that has moved is looked up at once: a member that is being cancelled has
        # less time than the first back-off.
        at_once = iter([0.0])

        def pace(code: int) -> float | None:
            return next(at_once, None) if code == ErrorCode.NOT_COORDINATOR else None

        try:
            answer = await self.coordinator.repeat(
                request,
                Attempts(name, self._cluster.retry_policy, within),
                timeout=min(_LEAVE_ATTEMPT, within),
                code=code,
                connection_class=connection_class,
                pace=pace,
                on_sent=lambda: self.sending_leave(ticket),
            )
        finally:
            self._cluster.end_class(ConnectionClass.COORDINATOR.of(self._leaving))
        return code(answer)

    def sending_leave(self, ticket: int) -> None:
        """Note that a request to leave the group is sent now, without an await."""
        self._leave_sent = ticket

    def has_sent_leave(self, ticket: int) -> bool:
        """Whether the request with that ticket was the last to leave that was sent."""
        return self._leave_sent == ticket

    async def probe(self, within: float) -> bool:
        """Check on another connection whether the coordinator answers anything.

        If it is silent, all that is in flight to it fails. A coordinator that refuses
        the connection or hangs up is not silent, nor is one that is not known.

        Args:
            within: seconds after which it counts as silent.

        Returns:
            Whether it is alive.
        """
        node_id = self.coordinator.node_id
        if node_id is None:
            return True
        try:
            # A connection alone proves nothing: the kernel of a process that hangs
            # accepts connections.
            with move_on_after(within):
                connection = await self._cluster.connection(
                    node_id, ConnectionClass.SHARED
                )
                # Every broker answers this, whatever else it refuses.
                await connection.call(
                    ApiVersionsRequest(), timeout=within, max_version=2
                )
                if self.is_parked:
                    self.alive_at = now()
                return True
        except KafkaError as error:
            took_too_long = isinstance(error.__cause__, TimeoutError)
            if not took_too_long and not isinstance(error, RequestTimeout):
                return True
        name = self.coordinator.name
        self.coordinator.silent(
            RequestTimeout(f"{name}: its coordinator {node_id} is silent")
        )
        return False
