"""What a client tells about itself."""

from __future__ import annotations

from kafkaio._dataclass import dataclass
from kafkaio._net.connection import ConnectionStatistics

__all__ = ["ClientStatistics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientStatistics:
    """A client at one moment.

    Attributes:
        state: ``new``, ``starting``, ``running``, ``failed``, ``closing`` or
            ``closed``.
        cluster_id: the cluster's own id, None while unknown.
        brokers: how many brokers the cluster has.
        topics: how many topics are described in the view.
        view_number: counts the changes of the view.
        coordinators: how many coordinators are known.
        connections: the open connections.
    """

    state: str
    cluster_id: str | None
    brokers: int
    topics: int
    view_number: int
    coordinators: int
    connections: tuple[ConnectionStatistics, ...]
