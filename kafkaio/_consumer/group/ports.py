"""What membership and commits need of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol
from uuid import UUID

from kafkaio._client.coordination import CoordinatorCluster
from kafkaio._client.retry import RetryPolicy
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.refresh import Topics
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.observer import Observer


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

    async def refresh(self, timeout: float) -> bool:
        """Fetch metadata now; returns whether that succeeded in time."""
        ...

    async def wait_for_update(self, timeout: float | None = None) -> ClusterView:
        """Wait for the next metadata."""
        ...

    async def topic_names(
        self,
        topic_ids: Collection[UUID],
        timeout: float | None = None,
    ) -> dict[UUID, str]:
        """Names of topics by their ids, as far as they are known."""
        ...


class MemberCluster(CoordinatorCluster, Protocol):
    """The coordinator of a group, its connections, and the pace of retries."""

    @property
    def retry_policy(self) -> RetryPolicy:
        """The back-off of all retries."""
        ...

    def end_class(self, connection_class: ConnectionClass) -> None:
        """Close all connections of a class, because its owner is gone."""
        ...


class GroupCluster(MemberCluster, TopicCluster, Protocol):
    """What a group member needs of the cluster."""

    def add_metadata_listener(
        self, listener: Callable[[ClusterView], None]
    ) -> Callable[[], None]:
        """Call ``listener`` with new metadata until the returned function is called."""
        ...
