"""All leaders of one share consumer: which there are, their start and their end."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kafkaio._config import ShareConsumerConfig
from kafkaio._machines.share.ledger import ShareLedger
from kafkaio._machines.share.room import ShareRoom
from kafkaio._machines.share.session import TopicIdPartition
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._runtime.clock import now
from kafkaio._runtime.scopes import CancelScope
from kafkaio._runtime.supervisor import Child
from kafkaio._share.acknowledging import Acknowledgements
from kafkaio._share.leader import Fetching, Leader, LeaderParts
from kafkaio._share.partitions import AssignedPartitions
from kafkaio._share.ports import ReaderPort
from kafkaio.errors import ClosedError
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ClusterPort

#: Seconds that a leader gets to answer the last requests, beyond the longest wait of a
#: fetch. One that hangs does not hold up the end of the consumer.
_LAST_ANSWERS: Final = 5.0


class ShareLeaders:
    """Fetches from the leaders of the assigned partitions, and acknowledges to them.

    Args:
        cluster: has the connections and the metadata.
        config: the consumer's options.
        member_id: the member.
        ledger: has what is locked.
        acks: is notified about what became of it.
        reader: takes what was fetched.
        may_fetch: whether the member may fetch.
        start_soon: starts a task in the background.
        on_answer: called with a leader that has answered a request; it is to call
            `wake_others`.

    Attributes:
        connection_class: the connections of this consumer alone. Their end frees all
            locks, also where the client is shared.
        partitions: the assigned partitions.
        is_stopped: whether nothing is fetched any more: the consumer closes.
    """

    def __init__(  # noqa: PLR0913 - what all leaders share
        self,
        cluster: ClusterPort,
        config: ShareConsumerConfig,
        member_id: str,
        ledger: ShareLedger,
        acks: Acknowledgements,
        reader: ReaderPort,
        *,
        may_fetch: Callable[[], bool],
        start_soon: Callable[[Child, str], None],
        on_answer: Callable[[int], None],
    ) -> None:
        self.connection_class: ConnectionClass = ConnectionClass.FETCH.of(self)
        self.partitions: AssignedPartitions = AssignedPartitions(
            cluster, cluster.retry_policy.backoff, ledger, start_soon, self._changed
        )
        self.is_stopped: bool = False
        self._may_fetch = may_fetch
        self._start_soon = start_soon
        self._cluster = cluster
        self._observer = cluster.observer
        self._room = ShareRoom(
            config.max_in_flight,
            config.fetch_buffer_bytes,
            config.fetch_max_bytes,
            is_exact=config.acquire_mode == "record_limit",
        )
        self._longest_wait = config.fetch_max_wait_ms / 1000
        self._parts = LeaderParts(
            cluster=cluster,
            config=config,
            member_id=member_id,
            connection_class=self.connection_class,
            ledger=ledger,
            acks=acks,
            partitions=self.partitions,
            room=self._room,
            reader=reader,
            fetching=Fetching(self._fetches, self._count),
            on_answer=on_answer,
            on_end=self._leader_ended,
        )
        self._leaders: dict[int, Leader] = {}
        self._scopes: dict[int, CancelScope] = {}
        self._leader_end = Broadcast()
        # The partitions as they were reported last.
        self._reported = frozenset[TopicPartition]()

    def __repr__(self) -> str:
        return f"<ShareLeaders {sorted(self._leaders)} | {self._room}>"

    # ---- state -----------------------------------------------------------------------

    def _fetches(self) -> bool:
        return self._may_fetch() and not self.is_stopped

    def _count(self) -> int:
        return len(self.partitions.nodes)

    @property
    def fetches_in_flight(self) -> int:
        """The number of fetches that have no answer yet."""
        return self._room.in_flight

    @property
    def sessions(self) -> int:
        """The number of leaders with an open session."""
        return sum(leader.session.is_open for leader in self._leaders.values())

    # ---- what to do ------------------------------------------------------------------

    def assign(self, partitions: Collection[TopicIdPartition]) -> None:
        """Fetch from these partitions, and from no others."""
        self.partitions.assign(partitions)

    def update(self) -> None:
        """Check the leaders again: the metadata changed."""
        self.partitions.update()

    def _changed(self) -> None:
        if not self.is_stopped:
            for node_id in {*self.partitions.nodes} - self._leaders.keys():
                self._start(node_id)
        self._report()
        self.wake()

    def _report(self) -> None:
        before, self._reported = self._reported, self.partitions.named
        assigned, gone = self._reported - before, before - self._reported
        if assigned or gone:
            state = "STABLE" if self._may_fetch() else "FENCED"
            self._observer.rebalance(state, assigned, gone, ())

    def _start(self, node_id: int) -> None:
        leader, scope = Leader(node_id, self._parts), CancelScope()

        async def run() -> None:
            with scope:
                await leader.run()

        with suppress(ClosedError):  # the loop ends, and with it everything else
            self._start_soon(run, f"share fetch from broker {node_id}")
            self._leaders[node_id], self._scopes[node_id] = leader, scope

    def wake(self) -> None:
        """Wake every leader: there is room, or somebody reads, or something changed."""
        for leader in self._leaders.values():
            leader.wake()

    def wake_others(self, node_id: int) -> None:
        """Wake every leader but one: its answer has made room."""
        for leader in self._leaders.values():
            if leader.node_id != node_id:
                leader.wake()

    def wake_one(self, node_id: int) -> None:
        """Wake one leader, to which there is something to send."""
        leader = self._leaders.get(node_id)
        if leader is not None:
            leader.wake()

    def _leader_ended(self, node_id: int) -> None:
        del self._leaders[node_id], self._scopes[node_id]
        self._leader_end.notify_all()
        # Partitions may have come back to it while it closed its session.
        if not self.is_stopped and node_id in self.partitions.nodes:
            self._start(node_id)

    # ---- the end ---------------------------------------------------------------------

    def limit(self, max_records: int) -> None:
        """Lock at most that many records from now on."""
        self._room.max_records = max_records
        self.wake()

    def stop(self) -> None:
        """Fetch nothing more; what is locked is renewed and acknowledged as before."""
        self.is_stopped = True

    async def close(self, deadline: float) -> None:
        """Send the last acknowledgements, and close the sessions.

        Returns when every leader has answered, or at the deadline, or after some
        seconds without an answer. If the call is cancelled, the leaders go on.

        Args:
            deadline: a time of the loop's clock.
        """
        self.is_stopped = True
        for node_id, leader in self._leaders.items():
            leader.finish()
            if not leader.is_connected:
                # It may be connecting to a broker that hangs, and has nothing to send.
                self._scopes[node_id].cancel()
        limit = now() + self._longest_wait + _LAST_ANSWERS
        with CancelScope(deadline=min(deadline, limit)):
            while self._leaders:
                await self._leader_end.wait()

    def end(self) -> None:
        """Cancel what goes on, and close the connections: all locks are freed."""
        self.is_stopped = True
        for scope in self._scopes.values():
            scope.cancel()
        self._cluster.end_class(self.connection_class)
