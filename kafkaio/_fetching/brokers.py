"""Chooses the broker to fetch a partition from: its leader, or a follower (KIP-392).

A leader names a follower as long as that one is in sync, whether or not clients reach
it, know it, or get the records there. So after a follower has failed or refused, or if
the metadata do not have it, leaders are asked without a rack for a while: with one they
would name it again, and send no records. The while is ten times as long as the failure
took, and a few seconds at least. So a follower that hangs costs a tenth of the time at
most, and one that restarts is read from again soon.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from kafkaio._machines.fetch_session import FetchTarget
from kafkaio._machines.metadata import ClusterView
from kafkaio._runtime.clock import now
from kafkaio.protocol._message import ZERO_UUID
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ViewPort

#: How many times as long as it took to fail a follower is avoided, and the fewest
#: seconds: one that refuses connections fails at once.
_AVOIDED: Final = 10
_AVOIDED_AT_LEAST: Final = 5.0


class FetchBrokers:
    """The brokers to fetch partitions from (KIP-392).

    Args:
        cluster: has the leaders.
        rack: the client's rack; empty to fetch from leaders alone.

    Attributes:
        changes: a number that grows when a follower is named or left; see
            `valid_until`.
    """

    def __init__(self, cluster: ViewPort, rack: str) -> None:
        self.changes: int = 0
        self._cluster = cluster
        self._rack = rack
        # Followers that leaders named to read from, and until when. After that time the
        # leader is asked again, which may name another one.
        self._replicas: dict[TopicPartition, tuple[int, float]] = {}
        # Followers that have failed, and until when they are not read from.
        self._avoided: dict[int, float] = {}

    @property
    def rack(self) -> str:
        """The rack to name in the next fetch; empty while a follower is avoided."""
        if self._avoided:
            at = now()
            self._avoided = {n: end for n, end in self._avoided.items() if end > at}
        return "" if self._avoided else self._rack

    @property
    def has_followers(self) -> bool:
        """Whether a partition is fetched from a follower."""
        return bool(self._replicas)

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
        """Fetch a partition from a follower up to a moment, unless it is avoided."""
        if node_id not in self._cluster.view.brokers:
            # Newer than the metadata, or unknown to the listener of this client.
            self._cluster.request_refresh(tp.topic)
            self._avoid(node_id)
        elif node_id == self._cluster.view.leader(tp):
            # A leader that names itself would do so again, without records.
            self._avoid(node_id)
            self.leave_replica(tp)
        # Race: the leader may have been asked before the follower failed.
        elif now() >= self._avoided.get(node_id, -math.inf):
            self._replicas[tp] = node_id, until
            self.changes += 1

    def failed(self, node_id: int, seconds: float) -> bool:
        """Note that a broker did not answer: its leaders serve what it served.

        Args:
            node_id: the broker.
            seconds: how long that took.

        Returns:
            Whether a partition was fetched from it as a follower.
        """
        left = [tp for tp, (node, _) in self._replicas.items() if node == node_id]
        for tp in left:
            del self._replicas[tp]
        if left:
            self._avoid(node_id, seconds)
            self.changes += 1
        return bool(left)

    def refused(self, tp: TopicPartition) -> bool:
        """Note an error in an answer for a partition: its leader serves it.

        Returns:
            Whether it was fetched from a follower.
        """
        replica = self._replicas.get(tp)
        if replica is not None:
            self._avoid(replica[0])
        return self.leave_replica(tp)

    def _avoid(self, node_id: int, seconds: float = 0.0) -> None:
        until = now() + max(_AVOIDED_AT_LEAST, _AVOIDED * seconds)
        self._avoided[node_id] = max(until, self._avoided.get(node_id, until))

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
