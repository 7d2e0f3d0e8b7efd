"""Chooses the broker to fetch a partition from: its leader, or a follower (KIP-392)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kafkaio._machines.fetch_session import FetchTarget
from kafkaio._machines.metadata import ClusterView
from kafkaio._runtime.clock import now
from kafkaio.protocol._message import ZERO_UUID
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ViewPort


class FetchBrokers:
    """The brokers to fetch partitions from (KIP-392).

    Args:
        cluster: has the leaders.

    Attributes:
        changes: a number that grows when a follower is named or left; see
            `valid_until`.
    """

    def __init__(self, cluster: ViewPort) -> None:
        self.changes: int = 0
        self._cluster = cluster
        # Followers that leaders named to read from, and until when. After that time the
        # leader is asked again, which may name another one.
        self._replicas: dict[TopicPartition, tuple[int, float]] = {}

    def node_of(self, tp: TopicPartition) -> int | None:
        """Return the broker to fetch a partition from; None without a leader."""
        replica = self._replicas.get(tp)
        if replica is not None:
            node_id, until = replica
            if now() < until and node_id in self._cluster.view.brokers:
                return node_id
            # Expired, or the follower left the cluster.
            del self._replicas[tp]
        return self._cluster.view.leader(tp)

    def valid_until(self) -> float:
        """Return until when `node_of` has the same results with the same metadata.

        Unless ``changes`` grows meanwhile.
        """
        return min((until for _, until in self._replicas.values()), default=math.inf)

    def prefer_replica(self, tp: TopicPartition, node_id: int, until: float) -> None:
        """Fetch a partition from a follower up to a moment."""
        self._replicas[tp] = node_id, until
        self.changes += 1

    def leave_replica(self, tp: TopicPartition) -> bool:
        """Fetch a partition from its leader again; return whether this is a change."""
        is_change = self._replicas.pop(tp, None) is not None
        self.changes += is_change
        return is_change


def target_of(
    view: ClusterView, tp: TopicPartition, offset: int, max_bytes: int
) -> FetchTarget:
    """Return the entry of a partition in a fetch, with the leader epoch known."""
    partition = view.partition(tp)
    epoch = -1 if partition is None else partition.leader_epoch
    topic_id = view.topic_id(tp.topic) or ZERO_UUID
    return FetchTarget(offset, max_bytes, epoch, topic_id)
