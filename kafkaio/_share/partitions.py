"""The partitions to fetch: their names, their leaders, and which of them wait.

Assignments and requests name topics by ids, and the ledger and the user by names. A
name that the view does not know is looked up in the background, and the other
partitions do not wait for it.

A new leader does not know the locks of the old one, and hands the same records out
again. So the locks of a partition are lost when its leader changes, before the new one
is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol
from uuid import UUID

from kafkaio._machines.backoff import Backoff
from kafkaio._machines.share.session import TopicIdPartition
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.supervisor import Child
from kafkaio.errors import KafkaError
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ClusterPort

#: Seconds that one look-up of names may take.
_LOOKUP: Final = 10.0


class LocksPort(Protocol):
    """The ledger, as far as leaders that change concern it."""

    def partition_lost(
        self, node_id: int, tp: TopicPartition, why: str, now: float
    ) -> None:
        """Note that a leader has freed the locks of a partition: it leads no more."""


class _Pause:
    """A partition that is not asked for until some time.

    Attributes:
        until: that time.
        failures: failures in a row.
    """

    __slots__ = ("failures", "until")

    def __init__(self) -> None:
        self.until: float = 0.0
        self.failures: int = 0


class AssignedPartitions:
    """The partitions that a member is to fetch, by leader.

    Args:
        cluster: has names and leaders.
        backoff: how long a partition pauses after errors.
        locks: learns of changes of leaders.
        start_soon: starts a look-up in the background.
        on_change: called when something may be fetched that was not before.
    """

    def __init__(
        self,
        cluster: ClusterPort,
        backoff: Backoff,
        locks: LocksPort,
        start_soon: Callable[[Child, str], None],
        on_change: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._backoff = backoff
        self._locks = locks
        self._start_soon = start_soon
        self._on_change = on_change
        # Sorted, so that requests and logs have one order.
        self._assigned: tuple[TopicIdPartition, ...] = ()
        self._are_assigned = frozenset[TopicIdPartition]()
        self._names: dict[UUID, str] = {}
        # The id that each name has now; of partitions that were taken away, too,
        # because what is locked of them is still to be acknowledged.
        self._ids: dict[str, UUID] = {}
        # The leaders that were asked last. A partition that was taken away stays here:
        # it may come back when its leader has moved, and is locked at the old one.
        self._leaders: dict[TopicIdPartition, int] = {}
        # Invariant: the assigned partitions with a leader, by leader. Each request asks
        # for them, and ids cost more to hash than names.
        self._by_leader: dict[int, list[TopicIdPartition]] = {}
        self._pauses: dict[TopicIdPartition, _Pause] = {}
        self._is_looking_up = False

    def __repr__(self) -> str:
        nodes = sorted(self.nodes)
        return f"<AssignedPartitions {len(self._assigned)} | of brokers {nodes}>"

    # ---- what is assigned ------------------------------------------------------------

    def assign(self, partitions: Collection[TopicIdPartition]) -> None:
        """Fetch from these partitions, and from no others."""
        self._assigned = tuple(sorted(partitions))
        self._are_assigned = frozenset(partitions)
        for gone in self._pauses.keys() - self._are_assigned:
            del self._pauses[gone]
        self.update()

    def __contains__(self, each: object) -> bool:
        return each in self._are_assigned

    def __len__(self) -> int:
        return len(self._assigned)

    @property
    def named(self) -> frozenset[TopicPartition]:
        """The partitions whose names are known."""
        return frozenset(
            TopicPartition(name, each.partition)
            for each in self._assigned
            if (name := self._names.get(each.topic_id)) is not None
        )

    # ---- names -----------------------------------------------------------------------

    def name(self, each: TopicIdPartition) -> TopicPartition | None:
        """Return a partition by its name; None while that is unknown."""
        name = self._names.get(each.topic_id)
        return None if name is None else TopicPartition(name, each.partition)

    def with_id(self, tp: TopicPartition) -> TopicIdPartition:
        """Return a partition that was fetched from by the id of its topic."""
        return TopicIdPartition(self._ids[tp.topic], tp.partition)

    def _learn(self, topic_id: UUID, name: str) -> None:
        self._names[topic_id] = name
        before = self._ids.get(name)
        if before is not None and before != topic_id:
            # Its records are gone, and offsets begin again at 0.
            self._forget_topic(before, name)
        self._ids[name] = topic_id

    def _forget_topic(self, topic_id: UUID, name: str) -> None:
        why = f"the topic {name} was deleted and created again"
        for each, leader in [*self._leaders.items()]:
            if each.topic_id == topic_id:
                tp = TopicPartition(name, each.partition)
                self._locks.partition_lost(leader, tp, why, now())
                del self._leaders[each]
        self._names.pop(topic_id, None)

    async def _look_up(self) -> None:
        pause = _Pause()
        try:
            while unknown := {e.topic_id for e in self._assigned} - self._names.keys():
                found = dict[UUID, str]()
                try:
                    found = await self._cluster.topic_names(unknown, _LOOKUP)
                except KafkaError as error:
                    if not error.retriable:
                        raise
                    self._cluster.observer.retrying("topic names", 1, 0.0, error)
                for topic_id, name in found.items():
                    self._learn(topic_id, name)
                if found:
                    self.update()
                else:
                    # A broker may learn of a new topic later than the coordinator.
                    await self._cluster.retry_policy.sleep(self._delay_of(pause))
        finally:
            self._is_looking_up = False

    # ---- leaders ---------------------------------------------------------------------

    def update(self) -> None:
        """Check names and leaders again: the assignment or the metadata changed."""
        view = self._cluster.view
        leaderless, has_unknown = set[str](), False
        for each in self._assigned:
            if each.topic_id not in self._names:
                name = view.topic_name(each.topic_id)
                if name is None:
                    has_unknown = True
                    continue
                self._learn(each.topic_id, name)
            tp = TopicPartition(self._names[each.topic_id], each.partition)
            leader = view.leader(tp)
            if leader is None:
                leaderless.add(tp.topic)
            else:
                self._lead(each, tp, leader)
        self._by_leader = {}
        for each in self._assigned:
            if (node_id := self._leaders.get(each)) is not None:
                self._by_leader.setdefault(node_id, []).append(each)
        if leaderless:
            self._cluster.request_refresh(*sorted(leaderless))
        if has_unknown and not self._is_looking_up:
            self._is_looking_up = True
            self._start_soon(self._look_up, "topic names")
        self._on_change()

    def _lead(self, each: TopicIdPartition, tp: TopicPartition, leader: int) -> None:
        before = self._leaders.get(each)
        if before == leader:
            return
        if before is not None:
            why = f"broker {leader} leads the partition now"
            self._locks.partition_lost(before, tp, why, now())
            self._pauses.pop(each, None)
        self._leaders[each] = leader

    @property
    def nodes(self) -> Collection[int]:
        """The leaders of the partitions."""
        return self._by_leader.keys()

    def at(self, node_id: int, moment: float) -> Sequence[TopicIdPartition]:
        """Return the partitions that a leader is asked for now."""
        its, pauses = self._by_leader.get(node_id, ()), self._pauses
        if not pauses:
            return its
        return [
            each for each in its if each not in pauses or pauses[each].until <= moment
        ]

    def leads(self, node_id: int) -> bool:
        """Whether a broker leads any of the partitions."""
        return node_id in self._by_leader

    # ---- pauses ----------------------------------------------------------------------

    def pause(self, each: TopicIdPartition) -> float:
        """Let a partition wait after an error; return for how many seconds."""
        pause = self._pauses.setdefault(each, _Pause())
        delay = self._delay_of(pause)
        pause.until = now() + delay
        return delay

    def _delay_of(self, pause: _Pause) -> float:
        delay = self._backoff.delay(pause.failures, roll())
        pause.failures += 1
        return delay

    def succeeded(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Note that partitions were fetched from without an error."""
        if self._pauses:
            for each in partitions:
                self._pauses.pop(each, None)

    def next_due(self, node_id: int, since: float) -> float | None:
        """Return when the next of a leader's partitions ends its pause.

        Args:
            node_id: the leader.
            since: a time before the partitions to fetch were chosen: a pause that has
                ended after it ends now.
        """
        leaders = self._leaders
        return min(
            (
                pause.until
                for each, pause in self._pauses.items()
                if leaders.get(each) == node_id and pause.until > since
            ),
            default=None,
        )
