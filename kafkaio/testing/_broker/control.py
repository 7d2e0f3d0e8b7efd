"""``broker.control``: what a test can do to a running cluster and its groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from kafkaio._public import public
from kafkaio.testing._broker.cluster import EmbeddedCluster
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._broker.partition import EmbeddedPartition


@public("kafkaio.testing")
@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """The transactions of a transactional id, as its coordinator knows them.

    Attributes:
        transactional_id: the id.
        state: Kafka's name of the state: "Empty", "Ongoing", "PrepareCommit",
            "PrepareAbort", "CompleteCommit" or "CompleteAbort".
        producer_id: the producer id in use.
        epoch: its epoch.
        partitions: the partitions in the transaction, without those whose marker is
            written, sorted.
        timeout: how long a transaction may be open, in seconds.
    """

    transactional_id: str
    state: str
    producer_id: int
    epoch: int
    partitions: tuple[tuple[str, int], ...]
    timeout: float


class GroupControlPort(Protocol):
    """The group coordinators, as `Control` sees them."""

    def members(self, group_id: str) -> list[str]:
        """Ids of a group's members."""

    def committed(self, group_id: str, topic: str, partition: int) -> int | None:
        """The offset that a group has committed for a partition; None for none."""

    def expel(self, group_id: str, member_id: str) -> None:
        """Remove a member as if its session had timed out."""

    def rebalance(self, group_id: str) -> None:
        """Force a rebalance."""

    def assign(
        self, group_id: str, targets: Mapping[str, Mapping[str, Iterable[int]]] | None
    ) -> None:
        """Set the target assignment of the members of a KIP-848 group."""

    def clock_moved(self) -> None:
        """Handle every deadline that a jump of the clock has passed."""


class TransactionControlPort(Protocol):
    """The transaction coordinators, as `Control` sees them."""

    def find(self, transactional_id: str) -> OpenTransaction | None:
        """The transactions of an id; None if the id is not known."""

    def all(self) -> list[OpenTransaction]:
        """The transactions of every id."""

    def set_epoch(self, transactional_id: str, epoch: int) -> None:
        """Set the epoch of an id that has no open transaction."""

    def time_out(self, transactional_id: str) -> None:
        """Abort an id's open transaction as if its time had run out."""

    def delay_markers(
        self, seconds: float | None, topic_partition: tuple[str, int] | None
    ) -> None:
        """Set how long after the end of a transaction markers are written."""

    def delay_log(self, seconds: float) -> None:
        """Set how long a write to the coordinators' log takes."""

    def write_markers(self) -> None:
        """Write all markers that are left."""

    def clock_moved(self) -> None:
        """Make the checks that a jump of the clock has passed."""


class ShareControlPort(Protocol):
    """The leaders of share partitions, as `Control` sees them."""

    def expire_locks(self, group: str, topic_partition: tuple[str, int] | None) -> int:
        """End locks of a group now; return how many partitions had any."""

    def end_sessions(self, group: str, member_id: str | None) -> int:
        """Forget sessions of a group; return how many there were."""

    def node_stopping(self, node_id: int) -> None:
        """Free what members hold on a node that shuts down."""

    def node_killed(self, node_id: int) -> None:
        """Forget what a node has in memory, as it is when a process is killed."""

    def clock_moved(self) -> None:
        """Handle every deadline that a jump of the clock has passed."""

    def close(self) -> None:
        """Stop every timer."""


@public("kafkaio.testing")
class Control:
    """Controls a running cluster: nodes, leaders, coordinators, groups, time.

    When a call returns, the change is done. Only a new leader is known to the nodes
    after the broker's ``metadata_delay``.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster,
        nodes: Mapping[int, BrokerNode],
        groups: Callable[[], GroupControlPort],
        transactions: Callable[[], TransactionControlPort],
        shares: Callable[[], ShareControlPort],
    ) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._groups = groups
        self._transactions = transactions
        self._shares = shares

    def _partition(self, topic: str, partition: int) -> EmbeddedPartition:
        found = self._cluster.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            raise ValueError(f"partition {topic}-{partition} does not exist")
        return found.partitions[partition]

    def _node(self, node_id: int) -> BrokerNode:
        if node_id not in self._nodes:
            raise ValueError(f"node {node_id} does not exist")
        return self._nodes[node_id]

    def leader(self, topic_partition: tuple[str, int]) -> int:
        """Return the id of a partition's leader; -1 for none.

        Raises:
            ValueError: the partition does not exist.
        """
        return self._partition(*topic_partition).leader

    def move_leader(self, topic_partition: tuple[str, int], node_id: int) -> None:
        """Make another node the leader of a partition, in the next leader epoch.

        The old leader answers NOT_LEADER_OR_FOLLOWER at once; the new one does until
        ``metadata_delay`` has passed. A node that has no replica gets one.

        Raises:
            ValueError: the partition does not exist, or the node is not up.
        """
        if not self._node(node_id).is_up:
            raise ValueError(f"node {node_id} is not up")
        self._cluster.move_leader(self._partition(*topic_partition), node_id)

    def add_partitions(self, topic: str, count: int) -> None:
        """Add ``count`` empty partitions to a topic.

        Raises:
            ValueError: the topic does not exist.
        """
        # Raises for a topic that does not exist.
        self._partition(topic, 0)
        self._cluster.add_partitions(self._cluster.topics[topic], count)

    def coordinator(self, group: str) -> int:
        """Return the id of the node that coordinates a group; -1 for none."""
        return self._cluster.offsets_partition(group).leader

    def move_coordinator(self, group: str, node_id: int) -> None:
        """Make another node the coordinator of a group.

        It becomes the leader of the group's partition of ``__consumer_offsets``, and
        so coordinates every other group of that partition, too.

        Raises:
            ValueError: the node is not up.
        """
        # By the leader of its partition: the group coordinator is nothing else.
        partition = self._cluster.offsets_partition(group)
        self.move_leader((partition.topic, partition.index), node_id)

    def members(self, group: str) -> list[str]:
        """Return the ids of a group's members; empty if no node coordinates it."""
        return self._groups().members(group)

    def committed(self, group: str, topic_partition: tuple[str, int]) -> int | None:
        """Return the offset that a group committed for a partition; None for none."""
        return self._groups().committed(group, *topic_partition)

    def expel_member(self, group: str, member_id: str) -> None:
        """Remove a member from its group as if its session had timed out.

        Raises:
            KeyError: the group or member does not exist.
        """
        self._groups().expel(group, member_id)

    def expire_locks(
        self, group: str, topic_partition: tuple[str, int] | None = None
    ) -> int:
        """End now the locks that members of a share group have on records.

        The records are delivered again, as if the lock duration had passed, or archived
        if that was their last delivery.

        Args:
            group: the group.
            topic_partition: for this partition alone.

        Returns:
            The number of partitions on which there were locks.

        Raises:
            KeyError: the topic does not exist.
        """
        return self._shares().expire_locks(group, topic_partition)

    def end_share_sessions(self, group: str, member_id: str | None = None) -> int:
        """Forget the share sessions of a group, or of one member, on all nodes.

        Members keep their locks. Their next request is refused with
        SHARE_SESSION_NOT_FOUND.

        Returns:
            The number of sessions that there were.
        """
        return self._shares().end_sessions(group, member_id)

    def force_rebalance(self, group: str) -> None:
        """Start a rebalance of a group.

        Raises:
            KeyError: the group does not exist.
        """
        self._groups().rebalance(group)

    def assign_members(
        self, group: str, targets: Mapping[str, Mapping[str, Iterable[int]]] | None
    ) -> None:
        """Set the target assignment of the members of a KIP-848 group.

        Args:
            group: the group.
            targets: partition numbers by member id and topic; None returns the choice
                to the group's assignor.

        Raises:
            KeyError: the group or topic does not exist.
            TypeError: it is a classic group, whose leader assigns.
        """
        self._groups().assign(group, targets)

    def transaction_coordinator(self, transactional_id: str) -> int:
        """Return the node that coordinates a transactional id; -1 for none."""
        return self._cluster.transactions_partition(transactional_id).leader

    def move_transaction_coordinator(self, transactional_id: str, node_id: int) -> None:
        """Make another node the coordinator of a transactional id.

        It becomes the leader of the id's partition of ``__transaction_state``, and so
        coordinates every other id of that partition, too.

        Raises:
            ValueError: the node is not up.
        """
        partition = self._cluster.transactions_partition(transactional_id)
        self.move_leader((partition.topic, partition.index), node_id)

    def transaction(self, transactional_id: str) -> OpenTransaction | None:
        """Return the transactions of an id; None if it is not known."""
        return self._transactions().find(transactional_id)

    def open_transactions(self) -> list[OpenTransaction]:
        """Return the transactions that have begun and are not complete, by id."""
        found = self._transactions().all()
        # Until its markers are written, a prepared transaction holds the last stable
        # offset back.
        return [one for one in found if one.state.startswith(("Ongoing", "Prepare"))]

    def unstable_since(self, topic_partition: tuple[str, int]) -> Mapping[int, int]:
        """Return the first offsets of a partition's open transactions.

        Returns:
            The offsets by producer id: those of hanging transactions, too.

        Raises:
            ValueError: the partition does not exist.
        """
        partition = self._partition(*topic_partition)
        partition.open()
        return partition.producers.open_transactions

    def last_stable_offset(self, topic_partition: tuple[str, int]) -> int:
        """Return the offset up to which a partition has no open transaction.

        Raises:
            ValueError: the partition does not exist.
        """
        return self._partition(*topic_partition).last_stable_offset

    def time_out_transaction(self, transactional_id: str) -> None:
        """Abort an open transaction now, as if its time had run out.

        Raises:
            KeyError: the id has no open transaction.
        """
        self._transactions().time_out(transactional_id)

    def set_producer_epoch(self, transactional_id: str, epoch: int) -> None:
        """Set the epoch of a transactional id, to see what happens where they end.

        Its producer has to be initialised after it.

        Raises:
            KeyError: the id is not known, or has an open transaction.
        """
        self._transactions().set_epoch(transactional_id, epoch)

    def delay_markers(
        self, seconds: float | None, topic_partition: tuple[str, int] | None = None
    ) -> None:
        """Set how long after the end of a transaction its markers are written.

        It applies to transactions that end from now on. Until its markers are written,
        a transaction's records are not stable, and a next transaction is refused with
        CONCURRENT_TRANSACTIONS.

        Args:
            seconds: the time, by the clock of the event loop; None for the default of
                2 ms.
            topic_partition: for this partition alone.
        """
        self._transactions().delay_markers(seconds, topic_partition)

    def delay_transaction_log(self, seconds: float) -> None:
        """Set how long a write to the log of transactions takes: no time at first.

        A request that changes a transaction is answered when that is written, and its
        markers are written after it. Until then every other request of the id is
        refused with CONCURRENT_TRANSACTIONS.
        """
        self._transactions().delay_log(seconds)

    def write_markers(self) -> None:
        """Write now the markers of all transactions that have ended.

        Those wait on whose partition has no leader, or one that is paused.
        """
        self._transactions().write_markers()

    def set_feature(self, name: str, level: int) -> None:
        """Set the finalized level of a feature.

        They are ``transaction.version``, 0 to 2; ``group.version``, 0 or 1, where 0
        switches the groups of KIP-848 off; and ``share.version``, 0 to 2 (before 4.4,
        to 1), where 0 switches share groups off.

        ApiVersions reports it with a higher epoch; open connections are not told.

        Raises:
            ValueError: the feature or level does not exist.
        """
        self._cluster.set_feature(name, level)

    def shrink_isr(self, topic_partition: tuple[str, int], node_id: int) -> None:
        """Remove a follower from the in-sync replicas, as if it had become too slow.

        If fewer replicas than the topic's ``min.insync.replicas`` are left, writes with
        acks=all fail with NOT_ENOUGH_REPLICAS.

        Raises:
            ValueError: the partition does not exist, or the node is its leader, or not
                an in-sync replica.
        """
        partition = self._partition(*topic_partition)
        if node_id == partition.leader or node_id not in partition.isr:
            raise ValueError(
                f"node {node_id} is not an in-sync follower of {partition!r}"
            )
        # The replica stays assigned and up; it lags, as far as clients can see.
        rest = [replica for replica in partition.isr if replica != node_id]
        self._cluster.set_isr(partition, rest)

    def expand_isr(self, topic_partition: tuple[str, int], node_id: int) -> None:
        """Add a replica to the in-sync replicas.

        Raises:
            ValueError: the partition does not exist, or the node is not up or has no
                replica of it.
        """
        partition = self._partition(*topic_partition)
        if node_id not in partition.replicas or not self._node(node_id).is_up:
            raise ValueError(
                f"node {node_id} is down, or has no replica of {partition!r}"
            )
        self._cluster.set_isr(partition, [*partition.isr, node_id])

    def producers(self, topic_partition: tuple[str, int]) -> Mapping[int, int]:
        """Return the epochs of the idempotent producers that wrote, by producer id.

        Raises:
            ValueError: the partition does not exist.
        """
        partition = self._partition(*topic_partition)
        partition.open()
        return partition.producers.epochs

    def fence_producer(self, producer_id: int) -> int:
        """Make a producer's current epoch too old in every partition.

        Its batches are refused with INVALID_PRODUCER_EPOCH from now on. For another
        error, use a fault.

        Returns:
            The lowest epoch that is accepted now.
        """
        return self._cluster.fence_producer(producer_id)

    def skip_time(self, seconds: float) -> None:
        """Move the clocks of all nodes forward; what is due by then happens now.

        Sessions of group members and transactions time out, retention and compaction
        run, and the metadata delay passes. The delays of faults and markers and the
        waits of fetches are not affected.

        Raises:
            ValueError: ``seconds`` is negative.
        """
        # First the clock, then all that goes by it: sessions end before their offsets
        # expire.
        self._cluster.clock.skip(seconds)
        # The coordinators have timers of the event loop, which does not know of the
        # jump.
        self._groups().clock_moved()
        self._transactions().clock_moved()
        self._shares().clock_moved()
        self._cluster.flush()
        self._cluster.tidy()

    def pause(self, node_id: int, fenced_after: float | None = None) -> None:
        """Make a node hang: it accepts connections and requests, but answers nothing.

        Args:
            node_id: the node.
            fenced_after: seconds until the node counts as dead and others become
                leaders in its place, as after ``broker.session.timeout.ms``; None to
                let it stay leader and coordinator.

        Raises:
            ValueError: the node is not up.
        """
        node = self._node(node_id)
        if not node.is_up:
            raise ValueError(f"node {node_id} is not up")
        node.pause()
        if fenced_after is not None:
            # As in Kafka, where the controller fences a node whose heartbeats stop.
            node.in_pause(fenced_after, lambda: self._cluster.node_down(node_id))

    def resume(self, node_id: int) -> None:
        """Let a paused node continue; it serves the requests that came in meanwhile."""
        node = self._node(node_id)
        # It was fenced meanwhile, and registers again.
        if node.is_paused and node_id not in self._cluster.live:
            self._cluster.node_up(node_id)
        node.resume()

    async def stop(self, node_id: int) -> None:
        """Shut a node down: other nodes become leaders before its connections close.

        A partition without another in-sync replica has no leader then. Nothing happens
        if the node is not up.
        """
        node = self._node(node_id)
        if node.is_up:
            # As in Kafka, where a shutdown ends the sessions of share groups first.
            self._shares().node_stopping(node_id)
            self._cluster.node_down(node_id)
            await node.stop()

    async def kill(self, node_id: int) -> None:
        """Kill a node: its connections break before other nodes become leaders."""
        node = self._node(node_id)
        if node.is_up:
            # What members of share groups hold is not freed, but forgotten.
            self._shares().node_killed(node_id)
            await node.stop()
            self._cluster.node_down(node_id)

    async def restart(self, node_id: int) -> None:
        """Start a node at its old address; stop it first if it is up."""
        node = self._node(node_id)
        # A restart of a node that runs moves its leaderships first.
        await self.stop(node_id)
        await node.start()
        self._cluster.node_up(node_id)

    def tidy(self) -> None:
        """Apply retention and compaction to every log now."""
        self._cluster.tidy()

    def disconnect(self, node_id: int) -> None:
        """Abort every connection to a node; the node stays up."""
        # Over a copy: a connection that ends removes itself.
        for connection in list(self._node(node_id).connections):
            connection.abort()
