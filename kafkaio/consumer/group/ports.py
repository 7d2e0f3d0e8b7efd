"""What membership and commits need of the cluster."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Collection
from typing import Protocol, TypeVar
from uuid import UUID

from kafkaio._machines.api_versions import ApiVersions
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.refresh import Topics
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.observer import Observer
from kafkaio.errors import KafkaError
from kafkaio.protocol.message import Request, Response

__all__ = [
    "CoordinatorCluster",
    "CoordinatorConnection",
    "GroupCluster",
    "TopicCluster",
]

ResponseT = TypeVar("ResponseT", bound=Response)


class CoordinatorConnection(Protocol):
    """A connection to the group coordinator."""

    @property
    def versions(self) -> ApiVersions:
        """The versions of requests that the broker supports."""
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
        """Send a request now; the future gets its answer, unless it is cancelled."""
        ...


class CoordinatorCluster(Protocol):
    """Finds and connects to the group coordinator."""

    async def coordinator(
        self,
        kind: CoordinatorKind,
        key: str,
        *,
        timeout: float,  # noqa: ASYNC109
    ) -> int:
        """The node id of the coordinator."""
        ...

    def forget_coordinator(self, kind: CoordinatorKind, key: str, node_id: int) -> None:
        """The coordinator is no longer that node."""
        ...

    async def connection(
        self, node_id: int, connection_class: ConnectionClass, /
    ) -> CoordinatorConnection:
        """The connection of that class to a broker, opened if there is none."""
        ...

    def ready_connection(
        self, node_id: int, connection_class: ConnectionClass, /
    ) -> CoordinatorConnection | None:
        """The open connection of that class to a broker, or None; opens nothing."""
        ...

    def close_connections(self, node_id: int, cause: KafkaError) -> None:
        """A broker does not answer: fail the requests that are in flight to it."""
        ...


class TopicCluster(Protocol):
    """What is known of topics, and how to learn more."""

    @property
    def observer(self) -> Observer:
        """Hears what happens."""
        ...

    @property
    def view(self) -> ClusterView:
        """The metadata known now."""
        ...

    def watch_topics(self, owner: object, topics: Topics | None) -> None:
        """Keep metadata of these topics fresh for an owner; None for no longer."""
        ...

    def request_refresh(self, *topics: str) -> None:
        """Refresh metadata soon."""
        ...

    async def refresh(self, timeout: float) -> bool:  # noqa: ASYNC109
        """Fetch metadata now; returns whether that succeeded in time."""
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


class GroupCluster(CoordinatorCluster, TopicCluster, Protocol):
    """What a group member needs of the cluster."""

    def add_metadata_listener(
        self, listener: Callable[[ClusterView], None]
    ) -> Callable[[], None]:
        """Call ``listener`` with new metadata until the returned function is called."""
        ...
