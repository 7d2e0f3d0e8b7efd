"""The part of ``broker.control`` that is about share groups."""

from __future__ import annotations

from uuid import UUID

from kafkaio.testing._broker.cluster import EmbeddedCluster
from kafkaio.testing._share.leaders import ShareLeaders
from kafkaio.testing._share.states import ShareKey


class ShareLeadersControl:
    """Controls the leaders of share partitions; a `ShareControlPort`."""

    def __init__(self, leaders: ShareLeaders, cluster: EmbeddedCluster) -> None:
        self._leaders = leaders
        self._cluster = cluster

    def expire_locks(self, group: str, topic_partition: tuple[str, int] | None) -> int:
        """End locks of a group now; return how many partitions had any.

        Raises:
            KeyError: the topic does not exist.
        """
        wanted: tuple[UUID, int] | None = None
        if topic_partition is not None:
            topic, index = topic_partition
            wanted = self._cluster.topics[topic].topic_id, index

        def is_meant(key: ShareKey) -> bool:
            place = key.topic_id, key.partition
            return key.group == group and wanted in {None, place}

        return self._leaders.expire_locks(is_meant)

    def end_sessions(self, group: str, member_id: str | None) -> int:
        """Forget sessions of a group; return how many there were."""
        return self._leaders.end_sessions(group, member_id)

    def node_stopping(self, node_id: int) -> None:
        """Free what members hold on a node that shuts down."""
        self._leaders.node_stopping(node_id)

    def node_killed(self, node_id: int) -> None:
        """Forget what a node has in memory, as it is when a process is killed."""
        self._leaders.node_killed(node_id)

    def clock_moved(self) -> None:
        """Handle every deadline that a jump of the clock has passed."""
        self._leaders.clock_moved()

    def close(self) -> None:
        """Stop every timer."""
        self._leaders.close()
