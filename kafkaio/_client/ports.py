"""The ports of the cluster for the parts of producers, consumers and admins.

`kafkaio._client.cluster.Cluster` satisfies all of these ports, and documents what the
calls guarantee and raise. A part that needs one concern takes the port of that concern;
one that needs several takes `ClusterPort`. They exist for type checkers alone, so that
the module imports nothing at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Collection, Iterable
    from uuid import UUID

    from kafkaio._client.destinations import Destination
    from kafkaio._client.fanout import ItemT, Operation, Results, ValueT
    from kafkaio._client.retry import RetryPolicy
    from kafkaio._machines.coordinators import CoordinatorKind
    from kafkaio._machines.metadata import ClusterView, EndpointPort
    from kafkaio._machines.refresh import Topics
    from kafkaio._net.connection import Connection
    from kafkaio._net.connection_class import ConnectionClass
    from kafkaio._runtime.lifecycle import CrashListener
    from kafkaio._runtime.observer import Observer
    from kafkaio._runtime.supervisor import Child
    from kafkaio.errors import KafkaError
    from kafkaio.protocol._message import Request, ResponseT
    from kafkaio.types import TopicPartition


class ViewPort(Protocol):
    """The metadata of the cluster, and the ways to update it."""

    @property
    def view(self) -> ClusterView:
        """The metadata as it is now: an immutable snapshot."""
        ...

    def watch_topics(self, owner: object, topics: Topics | None) -> None:
        """Keep the description of topics up to date for an owner; None to stop."""

    def request_refresh(self, *topics: str) -> None:
        """Have a background task fetch metadata."""

    async def refresh(self, timeout: float) -> bool:
        """Fetch metadata now; return whether that succeeded in time."""
        ...

    async def wait_for_update(self, timeout: float | None = None) -> ClusterView:
        """Wait for the next metadata, without requesting it."""
        ...

    async def wait_for_topics(
        self, topics: Collection[str], timeout: float | None = None
    ) -> ClusterView:
        """Wait until the view describes every topic."""
        ...

    async def wait_for_partitions(
        self, partitions: Collection[TopicPartition], timeout: float | None = None
    ) -> None:
        """Wait until the view has the partitions."""

    async def check_topics(self, topics: Iterable[str], timeout: float) -> None:
        """Check that topics exist, without waiting for them."""

    async def missing_partitions(
        self, partitions: Iterable[TopicPartition], timeout: float
    ) -> dict[TopicPartition, KafkaError]:
        """Return the partitions that do not exist, each with the reason."""
        ...

    async def partitions_for(
        self,
        topics: Collection[str] | re.Pattern[str],
        timeout: float | None = None,
    ) -> dict[str, list[int]]:
        """Return the partitions of topics, as a broker knows them now."""
        ...

    async def topic_names(
        self, topic_ids: Collection[UUID], timeout: float | None = None
    ) -> dict[UUID, str]:
        """Return the names of topics by their ids, as far as they are known."""
        ...

    def add_metadata_listener(
        self, listener: Callable[[ClusterView], None]
    ) -> Callable[[], None]:
        """Call ``listener`` with every new view; return a function that removes it."""
        ...

    def apply_leader_hint(
        self,
        tp: TopicPartition,
        leader_id: int,
        leader_epoch: int,
        endpoints: Iterable[EndpointPort] = (),
    ) -> bool:
        """Apply the leader that an answer named; return whether it is newer."""
        ...

    def learned_epoch(self, tp: TopicPartition, epoch: int) -> bool:
        """Note the leader epoch of an answer; return whether it is newer."""
        ...


class RequestPort(Protocol):
    """Requests that are repeated while that helps."""

    @property
    def retry_policy(self) -> RetryPolicy:
        """The back-off of all retries."""
        ...

    @property
    def uses_controllers(self) -> bool:
        """Whether the cluster consists of the controllers alone (KIP-919)."""
        ...

    async def request(
        self,
        request: Request[ResponseT],
        to: Destination = ...,
        *,
        timeout: float | None = None,
    ) -> ResponseT:
        """Send a request, by default to any broker, and return the answer."""
        ...

    async def ask(
        self,
        operation: Operation[ItemT, ValueT, ResponseT],
        items: Iterable[ItemT],
        timeout: float,
        *,
        stops_at_failure: bool = False,
    ) -> Results[ItemT, ValueT]:
        """Ask for items until each has a result, or the time is over."""
        ...

    async def ask_once(
        self,
        operation: Operation[ItemT, ValueT, ResponseT],
        items: Iterable[ItemT],
        within: float,
    ) -> Results[ItemT, ValueT]:
        """Ask each broker once."""
        ...


class ConnectionPort(Protocol):
    """The connections, and the coordinators that they lead to."""

    async def connection(
        self, node_id: int, connection_class: ConnectionClass, /
    ) -> Connection:
        """Return the connection of that class to a broker; open it if necessary."""
        ...

    def ready_connection(
        self, node_id: int, connection_class: ConnectionClass, /
    ) -> Connection | None:
        """Return the open connection of that class to a broker, or None."""
        ...

    def prepare(self, node_id: int, connection_class: ConnectionClass, /) -> None:
        """Begin to open a connection that will be needed soon; does not wait."""

    def close_connections(self, node_id: int, cause: KafkaError) -> None:
        """Close the shared and the coordinator connections to a silent broker."""

    def end_class(self, connection_class: ConnectionClass) -> None:
        """Close all connections of a class, because its owner is gone."""

    def borrow_class(self, kind: ConnectionClass, borrower: object) -> ConnectionClass:
        """Lend a class of connections that nobody else uses meanwhile."""
        ...

    def return_class(self, lent: ConnectionClass) -> None:
        """Take back what `borrow_class` has lent."""

    def expect_coordinators(self, kind: CoordinatorKind, keys: Iterable[str]) -> None:
        """Name groups or ids that the next lookup finds, too."""

    async def coordinator(
        self,
        kind: CoordinatorKind,
        key: str,
        *,
        timeout: float | None = None,
        on_failure: Callable[[KafkaError], None] | None = None,
    ) -> int:
        """Return the node id of a coordinator; find it if it is not known."""
        ...

    def ready_coordinator(
        self, kind: CoordinatorKind, key: str, connection_class: ConnectionClass, /
    ) -> Connection | None:
        """Return the open connection to a coordinator that is known, or None."""
        ...

    def forget_coordinator(self, kind: CoordinatorKind, key: str, node_id: int) -> None:
        """Forget the coordinator of ``key``, if it is ``node_id``."""


class ReportPort(Protocol):
    """The observer, and the background tasks whose end is reported."""

    @property
    def observer(self) -> Observer:
        """Observes what happens."""
        ...

    def report_late_timer(self, seconds: float) -> None:
        """Report that the event loop ran a timer late by so many seconds."""

    def start_soon(self, child: Child, name: str) -> None:
        """Start a background task, which is cancelled when the cluster is closed."""

    def add_crash_listener(self, listener: CrashListener) -> Callable[[], None]:
        """Call ``listener`` once if a background task crashes, until it is removed."""
        ...


class ClusterPort(ViewPort, RequestPort, ConnectionPort, ReportPort, Protocol):
    """All of it, for a part that needs several concerns of the cluster."""
