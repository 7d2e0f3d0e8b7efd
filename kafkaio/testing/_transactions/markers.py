"""Writes the markers of ended transactions to their partitions, a moment later.

A real coordinator answers EndTxn first and then asks the leaders of the partitions to
write markers. Here each marker waits for a set time, and then until its partition has a
leader that acts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from kafkaio.testing._broker.cluster import EmbeddedCluster
from kafkaio.testing._broker.partition import NO_LEADER, EmbeddedPartition
from kafkaio.testing._broker.producers import TransactionMarker
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._transactions.transaction import TopicPartition

#: Seconds from the end of a transaction to its markers, as on an idle real broker.
DEFAULT_DELAY = 0.002
_RETRY_SECONDS = 0.05

#: Called when a marker was written, with its partition.
Written = Callable[[TopicPartition], None]


@dataclass(slots=True)
class _PendingMarkers:
    marker: TransactionMarker
    left: dict[TopicPartition, asyncio.TimerHandle]
    written: Written


class MarkerWriter:
    """The markers that the coordinators of all nodes have still to write.

    Args:
        cluster: has the partitions.

    Attributes:
        delay: seconds from the end of a transaction until a marker is written.
        delays: the same for single partitions.
    """

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._pending: dict[str, _PendingMarkers] = {}
        self.delay: float = DEFAULT_DELAY
        self.delays: dict[TopicPartition, float] = {}

    def write(
        self,
        transactional_id: str,
        marker: TransactionMarker,
        partitions: set[TopicPartition],
        written: Written,
        *,
        after: float = 0.0,
    ) -> None:
        """Write a marker to every partition, each after its delay and ``after``."""
        self.forget(transactional_id)
        # An id ends one transaction at a time, so these markers replace those before.
        pending = self._pending[transactional_id] = _PendingMarkers(marker, {}, written)
        for place in sorted(partitions):
            seconds = after + self.delays.get(place, self.delay)
            self._try_later(transactional_id, pending, place, seconds)

    def _try_later(
        self,
        transactional_id: str,
        pending: _PendingMarkers,
        place: TopicPartition,
        seconds: float,
    ) -> None:
        pending.left[place] = asyncio.get_running_loop().call_later(
            seconds, self._try, transactional_id, pending, place
        )

    def _try(
        self, transactional_id: str, pending: _PendingMarkers, place: TopicPartition
    ) -> None:
        partition = self._cluster.partition(*place)
        coordinator = self._cluster.transactions_partition(transactional_id)
        # The coordinator sends the marker and the leader of the partition appends it:
        # while one of them is down or paused, the marker waits.
        waits = not self._can_write(coordinator) or (
            partition is not None and not self._can_write(partition)
        )
        if waits:
            self._try_later(transactional_id, pending, place, _RETRY_SECONDS)
            return
        if partition is not None:
            marker = pending.marker._replace(timestamp=self._cluster.clock.wall_ms())
            try:
                self._cluster.write_marker(partition, marker)
            except Refusal:
                # As Kafka: a coordinator whose marker is too old gives up.
                self.forget(transactional_id)
                return
        # The partition of a topic that was deleted needs no marker.
        del pending.left[place]
        if not pending.left:
            self._pending.pop(transactional_id, None)
        pending.written(place)

    def _can_write(self, partition: EmbeddedPartition) -> bool:
        leader = partition.leader
        acts = leader != NO_LEADER and self._cluster.acts(leader)
        return acts and partition.is_leader_known

    def write_now(self) -> None:
        """Write all markers whose partitions have a leader that acts."""
        for transactional_id, pending in list(self._pending.items()):
            for place, timer in list(pending.left.items()):
                timer.cancel()
                # The partition before may have refused the marker, which drops the
                # others.
                if self._pending.get(transactional_id) is pending:
                    self._try(transactional_id, pending, place)

    def forget(self, transactional_id: str) -> None:
        """Write none of the markers that are left of a transaction."""
        pending = self._pending.pop(transactional_id, None)
        if pending is not None:
            for timer in pending.left.values():
                timer.cancel()

    def close(self) -> None:
        """Write none of the markers that are left."""
        for transactional_id in list(self._pending):
            self.forget(transactional_id)
