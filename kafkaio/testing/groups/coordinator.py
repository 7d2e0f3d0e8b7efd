"""The coordinators of a cluster's groups: timers, waiting requests and what is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf

from kafkaio._runtime.clock import now as loop_now
from kafkaio._runtime.clock import wall_ms as wall_clock_ms
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.message import Response
from kafkaio.protocol.messages.join_group import JoinGroupResponse
from kafkaio.protocol.messages.sync_group import SyncGroupResponse
from kafkaio.testing.broker.cluster import OFFSETS_TOPIC, Cluster
from kafkaio.testing.broker.configs import GROUP
from kafkaio.testing.broker.partition import Partition
from kafkaio.testing.broker.refusal import Refusal
from kafkaio.testing.groups import mixed
from kafkaio.testing.groups.classic import ClassicGroup
from kafkaio.testing.groups.classic_member import Joining, State, Syncing
from kafkaio.testing.groups.config import GroupConfig
from kafkaio.testing.groups.describe import subscribed_topics
from kafkaio.testing.groups.home import ClusterHome, Home
from kafkaio.testing.groups.journal import Group, Journal
from kafkaio.testing.groups.kip848 import ConsumerGroup, Downgrade, Reply
from kafkaio.testing.groups.kip848_member import Beat
from kafkaio.testing.groups.levers import Levers
from kafkaio.testing.groups.migration import downgraded, upgraded
from kafkaio.testing.groups.offsets import Committed, Offsets, Place

__all__ = ["Group", "GroupCoordinator", "coordinator_of"]

#: How long after a commit expired positions are looked for, as Kafka does.
_EXPIRY_SECONDS = 600.0


class GroupCoordinator:
    """Every node's coordinator in one object; who may ask which is checked.

    The state machines are pure; this drives them with the loop's clock, lets requests
    wait for their answers, and writes to the offsets topic what must survive. What was
    written is read when a shard is first asked for, so a broker with a data directory
    finds its groups again, and their members go on with the epochs they had.

    Args:
        home: the cluster.
        now: seconds on the running loop's clock.
        wall_ms: milliseconds since the Unix epoch.
        config: settings.
        config_of: the settings of a group of the KIP-848 protocol, by its name, where
            it has any of its own.
    """

    def __init__(
        self,
        home: Home,
        *,
        now: Callable[[], float] = loop_now,
        wall_ms: Callable[[], int] = wall_clock_ms,
        config: GroupConfig | None = None,
        config_of: Callable[[str], GroupConfig] | None = None,
    ) -> None:
        self.home = home
        self.config = config or GroupConfig()
        self._config_of = config_of
        self.now = now
        self.wall_ms = wall_ms
        self.groups: dict[str, Group] = {}
        self.offsets: dict[str, Offsets] = {}
        self._loaded: set[int] = set()
        self._ready_at: dict[int, float] = {}
        self._replies: dict[int, asyncio.Future[Response]] = {}
        self._next_reply = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._journal = Journal(home, wall_ms)
        #: For tests.
        self.levers = Levers(self)
        self._is_closed = False
        self._expiry: asyncio.TimerHandle | None = None

    def config_of(self, group_id: str) -> GroupConfig:
        """Return the settings of a group of the KIP-848 protocol."""
        return self.config if self._config_of is None else self._config_of(group_id)

    def configs_changed(self) -> None:
        """Let changed settings of groups take effect."""
        for group in self.groups.values():
            if isinstance(group, ConsumerGroup):
                group.config = self.config_of(group.id)
                self._set_timer(group)

    # Who coordinates

    def refuse(self, node_id: int, group_id: str) -> ErrorCode:
        """Say why a node cannot speak for a group, NONE if it can; load its shard."""
        shard = self.home.shard_of(group_id)
        if self.home.coordinator(shard) != node_id:
            return ErrorCode.NOT_COORDINATOR
        # A shard that was never asked for is loaded when it first is.
        return self._load_in_time(shard)

    def _load_in_time(self, shard: int) -> ErrorCode:
        now = self.now()
        if self._ready_at.setdefault(shard, now + self.config.load_time) > now:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        self._load(shard, now)
        return ErrorCode.NONE

    def moved(self, shard: int) -> None:
        """Take note that a shard has another coordinator, which is to load it.

        What was not written is lost: a rebalance under way, for one, which members
        find out by the errors that they are answered.
        """
        now = self.now()
        self._ready_at[shard] = now + self.config.load_time
        self._loaded.discard(shard)
        for group in list(self.groups.values()):
            if self.home.shard_of(group.id) == shard:
                if isinstance(group, ClassicGroup):
                    group.release(ErrorCode.NOT_COORDINATOR)
                    self._answer(group)
                self._drop(group.id)
        self._load(shard, self._ready_at[shard])

    def led_by(self, node_id: int) -> list[Group]:
        """Return the groups that a node coordinates, by name.

        Raises:
            Refusal: it has not loaded them all.
        """
        home = self.home
        for shard in home.shards():
            if home.coordinator(shard) == node_id:
                error = self._load_in_time(shard)
                if error:
                    raise Refusal(error)
        return [
            group
            for name, group in sorted(self.groups.items())
            if home.coordinator(home.shard_of(name)) == node_id
        ]

    # Groups

    def find(self, group_id: str) -> Group | None:
        """Return a group that exists."""
        return self.groups.get(group_id)

    def classic(self, group_id: str) -> ClassicGroup:
        """Return a group to join by the classic protocol, created if need be.

        A consumer group without members changes its kind; one with members must not
        be asked for so.
        """
        found = self.groups.get(group_id)
        if not isinstance(found, ClassicGroup):
            assert found is None or not found.members
            found = ClassicGroup(group_id, self.config, self.wall_ms())
            self.groups[group_id] = found
        return found

    async def join(self, group_id: str, joining: Joining) -> JoinGroupResponse:
        """Let somebody join a group by the classic protocol.

        Raises:
            Refusal: it may not join a group of the consumer protocol.
        """
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup) and group.members:
            with self.at_work(group) as now:
                return mixed.join(group, joining, now)
        classic = self.classic(group_id)
        found = await self.wait(
            classic, lambda reply, now: classic.join(joining, reply, now)
        )
        assert isinstance(found, JoinGroupResponse)
        return found

    async def sync(self, group_id: str, syncing: Syncing) -> SyncGroupResponse:
        """Let a classic member ask for its partitions.

        Raises:
            Refusal: it is not a member, or may not ask now.
        """
        group = self.groups.get(group_id)
        if group is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, ConsumerGroup):
            with self.at_work(group) as now:
                return mixed.sync(group, syncing, now)
        classic = group
        found = await self.wait(
            classic, lambda reply, now: classic.sync(syncing, reply, now)
        )
        assert isinstance(found, SyncGroupResponse)
        return found

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Take a classic heartbeat in; say whether the member has to join again.

        Raises:
            Refusal: it is no classic member.
        """
        group = self.groups.get(group_id)
        if group is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
        with self.at_work(group) as now:
            if isinstance(group, ConsumerGroup):
                return mixed.heartbeat(group, member_id, instance_id, generation, now)
            return group.heartbeat(member_id, instance_id, generation, now)

    def beat(self, group_id: str, beat: Beat) -> Reply:
        """Take a heartbeat of the consumer protocol in.

        The first of a member makes the group, or changes its protocol, if it succeeds.
        """
        before, now = self.groups.get(group_id), self.now()
        try:
            group = self._consumer(group_id, before, creates=beat.epoch == 0)
        except Refusal as refusal:
            return Reply(refusal.code, refusal.message)
        reply = group.heartbeat(beat, now)
        if reply.error:
            return reply
        if isinstance(before, ClassicGroup):
            before.release(ErrorCode.REBALANCE_IN_PROGRESS)
            self._answer(before)
        self.groups[group_id] = group
        self._settle(group, now)
        return reply

    def _consumer(
        self, group_id: str, found: Group | None, *, creates: bool
    ) -> ConsumerGroup:
        if isinstance(found, ConsumerGroup):
            return found
        if not creates:
            reason = "not found" if found is None else "is not a consumer group"
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")
        # With nobody but those who know only their ids yet, a group is not empty.
        if found is not None and found.state is not State.EMPTY:
            return upgraded(found, self.config_of(group_id), self.home, self.now())
        return ConsumerGroup(group_id, self.config_of(group_id), self.home)

    def leave(
        self, group_id: str, leavers: Sequence[tuple[str, str | None]]
    ) -> list[ErrorCode]:
        """Remove members by a classic LeaveGroup.

        Args:
            group_id: the group.
            leavers: member id and instance id of each.

        Returns:
            An error for each.
        """
        group = self.groups.get(group_id)
        if group is None:
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(leavers)
        with self.at_work(group) as now:
            if isinstance(group, ConsumerGroup):
                return group.leave(leavers)
            return [group.leave(*leaver, now) for leaver in leavers]

    def delete(self, group_id: str) -> None:
        """Remove a group and everything it committed."""
        for place in self.offsets_of(group_id).places():
            self.forget(group_id, place)
        if self._drop(group_id):
            self._journal.remove(group_id)

    def _drop(self, group_id: str) -> bool:
        self.offsets.pop(group_id, None)
        timer = self._timers.pop(group_id, None)
        if timer is not None:
            timer.cancel()
        return self.groups.pop(group_id, None) is not None

    @contextmanager
    def at_work(self, group: Group) -> Iterator[float]:
        """Let something happen to a group; then give its answers, save, set its timer.

        Yields:
            The time on the loop's clock.
        """
        now = self.now()
        had_members = bool(group.members)
        try:
            yield now
        finally:
            if isinstance(group, ClassicGroup) and had_members and not group.members:
                group.empty_since_ms = self.wall_ms()
            self._settle(group, now)

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
                self._journal.commit(group_id, {place: None})
        return offsets

    def commit(self, group_id: str, positions: dict[Place, Committed]) -> None:
        """Keep positions, and the group if it is new."""
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id, self.config, self.wall_ms())
        offsets = self.offsets.setdefault(group_id, Offsets())
        for place, committed in positions.items():
            offsets.put(place, committed)
        self._journal.commit(group_id, positions)
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
            self._journal.commit(group_id, {place: None})

    def expire(self) -> None:
        """Forget positions whose time is over, and groups that nothing is left of.

        In a group with members, only topics that nobody reads any more are looked at.
        """
        now_ms = self.wall_ms()
        retention_ms = round(self.config.offsets_retention * 1000)
        for group_id, group in list(self.groups.items()):
            since = None
            if isinstance(group, ClassicGroup) and group.generation > 0:
                since = None if group.members else group.empty_since_ms
            subscribed = subscribed_topics(group)
            if subscribed is None:
                continue
            offsets = self.offsets_of(group_id)
            for place in offsets.expired(now_ms, retention_ms, since, subscribed):
                self.forget(group_id, place)
            if not offsets and not group.members:
                self.delete(group_id)

    # Inside

    def _settle(self, group: Group, now: float) -> None:
        """Give the answers of a group that something happened to, save, set its timer.

        One that its last member of the consumer protocol has left becomes classic.
        """
        if isinstance(group, ConsumerGroup) and group.downgrade is not None:
            is_stale = group.downgrade is Downgrade.REBALANCE
            group = downgraded(group, now, self.wall_ms())
            self.groups[group.id] = group
            self._journal.save(group)
            if is_stale:
                group.rebalance(now)
        if isinstance(group, ClassicGroup):
            self._answer(group)
        self._journal.save(group)
        self._set_timer(group)

    def _answer(self, group: ClassicGroup) -> None:
        answers, group.answers = group.answers, []
        for reply, response in answers:
            future = self._replies.get(reply)
            if future is not None and not future.done():
                future.set_result(response)

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

    def _load(self, shard: int, now: float) -> None:
        if shard in self._loaded:
            return
        self._loaded.add(shard)
        groups, offsets = self._journal.read(shard, self.config, now)
        self.offsets |= offsets
        for group in groups:
            if isinstance(group, ConsumerGroup):
                group.config = self.config_of(group.id)
            self.groups[group.id] = group
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
    config = cluster.group_config or GroupConfig()
    consumer = config
    if (most := cluster.configs.static.get("group.consumer.max.size")) is not None:
        consumer = config.with_configs({"group.max.size": most})
    coordinator = GroupCoordinator(
        ClusterHome(cluster),
        now=clock.now,
        wall_ms=clock.wall_ms,
        config=config,
        config_of=lambda group: consumer.with_configs(
            cluster.configs.dynamic()
        ).of_group(cluster.configs.of(GROUP, group)),
    )
    cluster.leader_changed.append(_Follower(coordinator))
    cluster.configs_changed.append(coordinator.configs_changed)
    return coordinator
