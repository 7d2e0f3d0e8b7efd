"""What a test does to a cluster: stop, kill, restart nodes, move leaders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from kafkaio.testing.broker.cluster import Cluster
from kafkaio.testing.broker.node import Node
from kafkaio.testing.broker.partition import Partition

__all__ = ["Control", "GroupControl"]


class GroupControl(Protocol):
    """What a test does to groups; ``kafkaio.testing.groups`` does it."""

    def members(self, group_id: str) -> list[str]:
        """Ids of a group's members."""

    def committed(self, group_id: str, topic: str, partition: int) -> int | None:
        """The offset that a group has committed, None for none."""

    def expel(self, group_id: str, member_id: str) -> None:
        """Remove a member as if its session had ended."""

    def rebalance(self, group_id: str) -> None:
        """Force a rebalance."""

    def assign(
        self, group_id: str, targets: Mapping[str, Mapping[str, Iterable[int]]] | None
    ) -> None:
        """Say by hand what members of a consumer protocol's group shall have."""

    def clock_moved(self) -> None:
        """Let happen what is due by a clock that jumped."""


class Control:
    """The hand on the cluster. Everything has happened when a call returns.

    Of a new leader, though, nodes know only after the broker's ``metadata_delay``.
    """

    def __init__(
        self,
        cluster: Cluster,
        nodes: Mapping[int, Node],
        groups: Callable[[], GroupControl],
    ) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._groups = groups

    def _partition(self, topic: str, partition: int) -> Partition:
        found = self._cluster.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            raise ValueError(f"there is no partition {topic}-{partition}")
        return found.partitions[partition]

    def _node(self, node_id: int) -> Node:
        if node_id not in self._nodes:
            raise ValueError(f"there is no node {node_id}")
        return self._nodes[node_id]

    def leader(self, topic_partition: tuple[str, int]) -> int:
        """Id of the node that leads a partition; -1 for none.

        Raises:
            ValueError: if there is no such partition.
        """
        return self._partition(*topic_partition).leader

    def move_leader(self, topic_partition: tuple[str, int], node_id: int) -> None:
        """Let another node lead a partition, in the next leader epoch.

        The old leader answers NOT_LEADER_OR_FOLLOWER from now on, and the new one until
        it knows. It becomes a replica, if it was none.

        Raises:
            ValueError: if there is no such partition, or the node is not up.
        """
        if not self._node(node_id).is_up:
            raise ValueError(f"node {node_id} is not up")
        self._cluster.move_leader(self._partition(*topic_partition), node_id)

    def add_partitions(self, topic: str, count: int) -> None:
        """Add empty partitions to a topic, as many as ``count``.

        Raises:
            ValueError: if there is no such topic.
        """
        self._partition(topic, 0)
        self._cluster.add_partitions(self._cluster.topics[topic], count)

    def coordinator(self, group: str) -> int:
        """Id of the node that coordinates a group; -1 for none."""
        return self._cluster.offsets_partition(group).leader

    def move_coordinator(self, group: str, node_id: int) -> None:
        """Let another node coordinate a group, and those that share its partition.

        Raises:
            ValueError: if the node is not up.
        """
        partition = self._cluster.offsets_partition(group)
        self.move_leader((partition.topic, partition.index), node_id)

    def members(self, group: str) -> list[str]:
        """Ids of a group's members, as its coordinator has them; none without it."""
        return self._groups().members(group)

    def committed(self, group: str, topic_partition: tuple[str, int]) -> int | None:
        """The offset that a group has committed for a partition, None for none."""
        return self._groups().committed(group, *topic_partition)

    def expel_member(self, group: str, member_id: str) -> None:
        """Remove a member from its group as if its session had ended.

        Raises:
            KeyError: no such group or member.
        """
        self._groups().expel(group, member_id)

    def force_rebalance(self, group: str) -> None:
        """Let the members of a group join again.

        Raises:
            KeyError: no such group.
        """
        self._groups().rebalance(group)

    def assign_members(
        self, group: str, targets: Mapping[str, Mapping[str, Iterable[int]]] | None
    ) -> None:
        """Say by hand what the members of a KIP-848 group shall have.

        Args:
            group: the group.
            targets: partitions by member id and topic; None lets the assignor decide.

        Raises:
            KeyError: no such group or topic.
            TypeError: the group is of the classic protocol: its leader assigns.
        """
        self._groups().assign(group, targets)

    def shrink_isr(self, topic_partition: tuple[str, int], node_id: int) -> None:
        """Let a replica fall out of sync, as one that is too slow does.

        Below the topic's ``min.insync.replicas``, writes with acks=all are refused
        with NOT_ENOUGH_REPLICAS.

        Raises:
            ValueError: if there is no such partition, or the node is its leader or no
                in-sync replica.
        """
        partition = self._partition(*topic_partition)
        if node_id == partition.leader or node_id not in partition.isr:
            raise ValueError(f"node {node_id} is no follower in sync of {partition!r}")
        rest = [replica for replica in partition.isr if replica != node_id]
        self._cluster.set_isr(partition, rest)

    def expand_isr(self, topic_partition: tuple[str, int], node_id: int) -> None:
        """Let a replica be in sync again.

        Raises:
            ValueError: if there is no such partition, or the node is not up or none of
                its replicas.
        """
        partition = self._partition(*topic_partition)
        if node_id not in partition.replicas or not self._node(node_id).is_up:
            raise ValueError(
                f"node {node_id} is no replica of {partition!r} that is up"
            )
        self._cluster.set_isr(partition, [*partition.isr, node_id])

    def producers(self, topic_partition: tuple[str, int]) -> Mapping[int, int]:
        """The epochs of the idempotent producers that wrote, by producer id.

        Raises:
            ValueError: if there is no such partition.
        """
        return self._partition(*topic_partition).producers.epochs

    def fence_producer(self, producer_id: int) -> int:
        """Refuse what a producer sends, in every partition, for its epoch is too old.

        It is answered INVALID_PRODUCER_EPOCH; for other answers there are faults.

        Returns:
            The lowest epoch that is let in now.
        """
        return self._cluster.fence_producer(producer_id)

    def skip_time(self, seconds: float) -> None:
        """Let the clocks of all nodes jump: what is due by then happens now.

        Sessions of group members end, retention and compaction run, topics that were
        just created are known. Delays of faults and waiting fetches go on as before.

        Raises:
            ValueError: if time would go back.
        """
        self._cluster.clock.skip(seconds)
        self._groups().clock_moved()
        self._cluster.flush()
        self._cluster.tidy()

    def pause(self, node_id: int, fenced_after: float | None = None) -> None:
        """Let a node hang: it accepts connections and requests, and answers nothing.

        Args:
            node_id: the node.
            fenced_after: seconds until the others take it for dead and lead in its
                place, as ``broker.session.timeout.ms`` has them do. Without it, it
                stays leader and coordinator of what it is.

        Raises:
            ValueError: if the node is not up.
        """
        node = self._node(node_id)
        if not node.is_up:
            raise ValueError(f"node {node_id} is not up")
        node.pause()
        if fenced_after is not None:
            node.in_pause(fenced_after, lambda: self._cluster.node_down(node_id))

    def resume(self, node_id: int) -> None:
        """Let a node that was paused go on, with all that has come in meanwhile."""
        node = self._node(node_id)
        if node.is_paused and node_id not in self._cluster.live:
            self._cluster.node_up(node_id)
        node.resume()

    async def stop(self, node_id: int) -> None:
        """Stop a node in good order: others lead before its connections close.

        What no other replica is in sync for has no leader then. Nothing happens if it
        is not up.
        """
        node = self._node(node_id)
        if node.is_up:
            self._cluster.node_down(node_id)
            await node.stop()

    async def kill(self, node_id: int) -> None:
        """Stop a node at once: connections break before others lead."""
        node = self._node(node_id)
        if node.is_up:
            await node.stop()
            self._cluster.node_down(node_id)

    async def restart(self, node_id: int) -> None:
        """Bring a node up at its old address; stop it first where it is up."""
        node = self._node(node_id)
        await self.stop(node_id)
        await node.start()
        self._cluster.node_up(node_id)

    def tidy(self) -> None:
        """Let every log forget and compact what is due, now."""
        self._cluster.tidy()

    def disconnect(self, node_id: int) -> None:
        """Break every connection to a node off; it stays up."""
        for connection in list(self._node(node_id).connections):
            connection.abort()
