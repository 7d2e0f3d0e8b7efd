"""The coordinators of a cluster's groups: timers, waiting requests and what is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import inf

from kafkaio._runtime.clock import now as loop_now
from kafkaio._runtime.clock import wall_ms as wall_clock_ms
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.message import Response
from kafkaio.testing.broker.cluster import OFFSETS_TOPIC, Cluster
from kafkaio.testing.broker.partition import Partition
from kafkaio.testing.groups.assignors import Slot
from kafkaio.testing.groups.classic import ClassicGroup
from kafkaio.testing.groups.classic_member import State
from kafkaio.testing.groups.config import GroupConfig
from kafkaio.testing.groups.consumer import ConsumerGroup
from kafkaio.testing.groups.describe import subscribed_topics
from kafkaio.testing.groups.home import ClusterHome, Home, KeyValue
from kafkaio.testing.groups.offsets import Committed, Offsets, Place
from kafkaio.testing.groups.records import (
    group_key,
    group_value,
    image_of,
    offset_key,
    offset_value,
    read_group,
    read_key,
    read_offset,
    restore,
)

__all__ = ["Group", "GroupCoordinator", "coordinator_of"]

Group = ClassicGroup | ConsumerGroup

#: How long after a commit expired positions are looked for, as Kafka does.
_EXPIRY_SECONDS = 600.0


class GroupCoordinator:
    """Every node's coordinator in one object; who may ask which is checked.

    The state machines are pure; this drives them with the loop's clock, lets requests
    wait for their answers, and writes to the offsets topic what must survive. What was
    written is read when a shard is first asked for, so a broker with a data directory
    finds its groups again. Groups of the consumer protocol are not written: their
    members join again after a restart of the whole cluster.

    Args:
        home: the cluster.
        now: seconds on the running loop's clock.
        wall_ms: milliseconds since the Unix epoch.
        config: settings.
    """

    def __init__(
        self,
        home: Home,
        *,
        now: Callable[[], float] = loop_now,
        wall_ms: Callable[[], int] = wall_clock_ms,
        config: GroupConfig | None = None,
    ) -> None:
        self.home = home
        self.config = config or GroupConfig()
        self.now = now
        self.wall_ms = wall_ms
        self.groups: dict[str, Group] = {}
        self.offsets: dict[str, Offsets] = {}
        self._loaded: set[int] = set()
        self._ready_at: dict[int, float] = {}
        self._replies: dict[int, asyncio.Future[Response]] = {}
        self._next_reply = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._saved: dict[str, int] = {}
        self._is_closed = False
        self._expiry: asyncio.TimerHandle | None = None

    # Who coordinates

    def refuse(self, node_id: int, group_id: str) -> ErrorCode:
        """Say why a node cannot speak for a group, NONE if it can; load its shard."""
        shard = self.home.shard_of(group_id)
        if self.home.coordinator(shard) != node_id:
            return ErrorCode.NOT_COORDINATOR
        # A shard that was never asked for is loaded when it first is.
        now = self.now()
        if self._ready_at.setdefault(shard, now + self.config.load_time) > now:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        self._load(shard)
        return ErrorCode.NONE

    def moved(self, shard: int) -> None:
        """Take note that a shard has another coordinator, which is to load it."""
        now = self.now()
        self._ready_at[shard] = now + self.config.load_time
        for group in list(self.groups.values()):
            if self.home.shard_of(group.id) == shard:
                with self.at_work(group):
                    group.move(now)

    def led_by(self, node_id: int) -> list[Group]:
        """Return the groups that a node coordinates, by name."""
        home = self.home
        for shard in home.shards():
            if home.coordinator(shard) == node_id:
                self._load(shard)
        return [
            group
            for name, group in sorted(self.groups.items())
            if home.coordinator(home.shard_of(name)) == node_id
        ]

    # Groups

    def find(self, group_id: str) -> Group | None:
        """Return a group that exists."""
        return self.groups.get(group_id)

    def classic(self, group_id: str) -> ClassicGroup | None:
        """Return a group to join by the classic protocol, None if it is of another.

        It is created if need be; a consumer group without members changes its kind.
        """
        found = self.groups.get(group_id)
        if isinstance(found, ClassicGroup):
            return found
        if found is not None and found.members:
            return None
        group = ClassicGroup(group_id, self.config, self.wall_ms())
        self.groups[group_id] = group
        return group

    def consumer(self, group_id: str) -> ConsumerGroup | None:
        """Return a group to join by the consumer protocol, None if it is of another.

        It is created if need be; a classic group without members changes its kind.
        """
        found = self.groups.get(group_id)
        if isinstance(found, ConsumerGroup):
            return found
        if found is not None and found.members:
            return None
        if found is not None:
            self._write(group_id, [(group_key(group_id), None)])
        group = ConsumerGroup(group_id, self.config, self.home, self.wall_ms())
        self.groups[group_id] = group
        return group

    def delete(self, group_id: str) -> None:
        """Remove a group and everything it committed."""
        for place in self.offsets_of(group_id).places():
            self.forget(group_id, place)
        self.offsets.pop(group_id, None)
        self._saved.pop(group_id, None)
        timer = self._timers.pop(group_id, None)
        if timer is not None:
            timer.cancel()
        if self.groups.pop(group_id, None) is not None:
            self._write(group_id, [(group_key(group_id), None)])

    @contextmanager
    def at_work(self, group: Group) -> Iterator[float]:
        """Let something happen to a group; then give its answers, save, set its timer.

        Yields:
            The time on the loop's clock.
        """
        had_members = bool(group.members)
        yield self.now()
        if had_members and not group.members:
            group.empty_since_ms = self.wall_ms()
        if isinstance(group, ClassicGroup):
            self._answer(group)
            self._save(group)
        self._set_timer(group)

    async def wait(
        self, group: ClassicGroup, ask: Callable[[int, float], None]
    ) -> Response:
        """Ask a classic group something and wait for its answer.

        Args:
            group: whom to ask.
            ask: is given the number of the answer and the time.
        """
        self._next_reply += 1
        reply = self._next_reply
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._replies[reply] = future
        try:
            with self.at_work(group) as now:
                ask(reply, now)
            return await future
        finally:
            self._replies.pop(reply, None)

    def close(self) -> None:
        """Stop every timer; requests that wait are left to be cancelled."""
        self._is_closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    # For tests

    def members(self, group_id: str) -> list[str]:
        """Ids of a group's members; none if there is no such group."""
        group = self.groups.get(group_id)
        return [] if group is None else list(group.members)

    def committed(self, group_id: str, topic: str, partition: int) -> int | None:
        """The offset that a group has committed, None for none."""
        offsets = self.offsets.get(group_id)
        found = None if offsets is None else offsets.get((topic, partition))
        return None if found is None else found.offset

    def expel(self, group_id: str, member_id: str) -> None:
        """Remove a member as if its session had ended.

        Raises:
            KeyError: no such group or member.
        """
        group = self.groups[group_id]
        with self.at_work(group) as now:
            if isinstance(group, ClassicGroup):
                group.remove(group.members[member_id], now)
            else:
                group.fence(group.members[member_id])

    def rebalance(self, group_id: str) -> None:
        """Force a rebalance of a group.

        Raises:
            KeyError: no such group.
        """
        group = self.groups[group_id]
        with self.at_work(group) as now:
            if isinstance(group, ClassicGroup):
                group.rebalance(now)
            else:
                group.rebalance()

    def assign(
        self, group_id: str, targets: Mapping[str, Mapping[str, Iterable[int]]] | None
    ) -> None:
        """Say by hand what the members of a consumer protocol's group shall have.

        Args:
            group_id: the group.
            targets: partitions by member id and topic; None lets the assignor decide
                again.

        Raises:
            KeyError: no such group or topic.
            TypeError: the group is of the classic protocol: its leader assigns.
        """
        group = self.groups[group_id]
        if not isinstance(group, ConsumerGroup):
            raise TypeError(f"the leader of the classic group {group_id} assigns")
        manual: dict[str, frozenset[Slot]] = {}
        for member_id, topics in (targets or {}).items():
            slots: set[Slot] = set()
            for name, partitions in topics.items():
                topic_id = self.home.topic_id(name)
                if topic_id is None:
                    raise KeyError(name)
                slots.update((topic_id, partition) for partition in partitions)
            manual[member_id] = frozenset(slots)
        group.manual = None if targets is None else manual
        self.rebalance(group_id)

    # Offsets

    def offsets_of(self, group_id: str) -> Offsets:
        """Return what a group has committed, but for topics that were deleted."""
        offsets = self.offsets.get(group_id)
        if offsets is None:
            return Offsets()
        for place in offsets.places():
            committed = offsets.get(place)
            assert committed is not None
            gone = committed.topic_id not in {None, self.home.topic_id(place[0])}
            if gone:
                offsets.drop(place)
                self._write(group_id, [(offset_key(group_id, place), None)])
        return offsets

    def commit(self, group_id: str, positions: dict[Place, Committed]) -> None:
        """Keep positions, and the group if it is new."""
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id, self.config, self.wall_ms())
        offsets = self.offsets.setdefault(group_id, Offsets())
        for place, committed in positions.items():
            offsets.put(place, committed)
        records: list[KeyValue] = [
            (offset_key(group_id, place), offset_value(committed))
            for place, committed in positions.items()
        ]
        if records:
            self._write(group_id, records)
        if self._expiry is None and not self._is_closed:
            loop = asyncio.get_running_loop()
            self._expiry = loop.call_later(_EXPIRY_SECONDS, self._check_expiry)

    def _check_expiry(self) -> None:
        # The next commit starts the timer anew; a broker that ended has none.
        self._expiry = None
        if self._has_coordinator():
            self.expire()

    def _has_coordinator(self) -> bool:
        return any(self.home.coordinator(shard) >= 0 for shard in self.home.shards())

    def forget(self, group_id: str, place: Place) -> None:
        """Forget a position."""
        if self.offsets_of(group_id).drop(place):
            self._write(group_id, [(offset_key(group_id, place), None)])

    def expire(self) -> None:
        """Forget positions whose time is over, and groups that nothing is left of.

        In a group with members, only topics that nobody reads any more are looked at.
        """
        now_ms = self.wall_ms()
        retention_ms = round(self.config.offsets_retention * 1000)
        for group_id, group in list(self.groups.items()):
            since = None
            had_members = isinstance(group, ConsumerGroup) or group.generation > 0
            if had_members and not group.members:
                since = group.empty_since_ms
            subscribed = subscribed_topics(group)
            if subscribed is None:
                continue
            offsets = self.offsets_of(group_id)
            for place in offsets.expired(now_ms, retention_ms, since, subscribed):
                self.forget(group_id, place)
            if not offsets and not group.members:
                self.delete(group_id)

    # Inside

    def _answer(self, group: ClassicGroup) -> None:
        answers, group.answers = group.answers, []
        for reply, response in answers:
            future = self._replies.get(reply)
            if future is not None and not future.done():
                future.set_result(response)

    def _save(self, group: ClassicGroup) -> None:
        settled = group.state in {State.STABLE, State.EMPTY}
        if settled and self._saved.get(group.id, 0) != group.changes:
            self._saved[group.id] = group.changes
            value = group_value(image_of(group, self.wall_ms()))
            self._write(group.id, [(group_key(group.id), value)])

    def _set_timer(self, group: Group) -> None:
        timer = self._timers.pop(group.id, None)
        if timer is not None:
            timer.cancel()
        has_coordinator = self.home.coordinator(self.home.shard_of(group.id)) >= 0
        if group.deadline < inf and has_coordinator and not self._is_closed:
            loop = asyncio.get_running_loop()
            when = loop.time() + max(0.0, group.deadline - self.now())
            self._timers[group.id] = loop.call_at(when, self._tick, group)

    def clock_moved(self) -> None:
        """Let happen what is due by a clock that jumped."""
        now = self.now()
        for group in list(self.groups.values()):
            if group.deadline <= now:
                self._tick(group)
            else:
                self._set_timer(group)
        if self._has_coordinator():
            self.expire()

    def _tick(self, group: Group) -> None:
        if self.groups.get(group.id) is group:
            with self.at_work(group) as now:
                group.tick(now)

    def _write(self, group_id: str, records: list[KeyValue]) -> None:
        self.home.write(self.home.shard_of(group_id), records, self.wall_ms())

    def _load(self, shard: int) -> None:
        if shard in self._loaded:
            return
        self._loaded.add(shard)
        images: dict[str, bytes] = {}
        for key, value in self.home.read(shard):
            found = read_key(key)
            if found is None:
                continue
            group_id, place = found
            if place is None:
                images.pop(group_id, None)
                if value is not None:
                    images[group_id] = value
            else:
                offsets = self.offsets.setdefault(group_id, Offsets())
                offsets.drop(place)
                if value is not None:
                    offsets.put(place, read_offset(value))
        committed = {name for name, offsets in self.offsets.items() if len(offsets)}
        for group_id in sorted(images.keys() | committed):
            if group_id in self.groups or self.home.shard_of(group_id) != shard:
                continue
            group = ClassicGroup(group_id, self.config, self.wall_ms())
            if group_id in images:
                restore(group, read_group(images[group_id]), self.now())
            self.groups[group_id] = group
            self._set_timer(group)


class _Follower:
    """Tells the coordinator of every move; held by the cluster, as long as it is."""

    def __init__(self, coordinator: GroupCoordinator) -> None:
        self.coordinator = coordinator

    def __call__(self, partition: Partition, before: int) -> None:
        del before
        if partition.topic == OFFSETS_TOPIC:
            self.coordinator.moved(partition.index)


def coordinator_of(cluster: Cluster) -> GroupCoordinator:
    """Return the coordinator of a cluster's groups, made when first asked for.

    Moves of the cluster's offsets partitions are followed.
    """
    for tell in cluster.leader_changed:
        if isinstance(tell, _Follower):
            return tell.coordinator
    clock = cluster.clock
    coordinator = GroupCoordinator(
        ClusterHome(cluster),
        now=clock.now,
        wall_ms=clock.wall_ms,
        config=cluster.group_config,
    )
    cluster.leader_changed.append(_Follower(coordinator))
    return coordinator
