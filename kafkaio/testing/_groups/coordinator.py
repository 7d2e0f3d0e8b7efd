"""The group coordinators of a cluster: requests, timers, and the offsets topic.

The groups themselves are pure state machines (`ClassicGroup`, `Kip848Group`). After
everything that happens to a group, its coordinator sends the answers that are ready,
writes what changed to ``__consumer_offsets``, and sets the group's timer to its next
deadline (see `EmbeddedGroupCoordinator.changing`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import inf

from kafkaio._runtime.clock import now as loop_now, wall_ms as wall_clock_ms
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Response
from kafkaio.protocol.messages.join_group import JoinGroupResponse
from kafkaio.protocol.messages.sync_group import SyncGroupResponse
from kafkaio.testing._broker.cluster import OFFSETS_TOPIC, EmbeddedCluster
from kafkaio.testing._broker.configs import GROUP
from kafkaio.testing._broker.group_config import GroupConfig
from kafkaio.testing._broker.partition import EmbeddedPartition
from kafkaio.testing._broker.producers import TransactionMarker
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups import mixed
from kafkaio.testing._groups.classic import ClassicGroup
from kafkaio.testing._groups.classic_member import (
    ClassicGroupState,
    JoinRequest,
    SyncRequest,
)
from kafkaio.testing._groups.cluster_port import BrokerClusterPort, ClusterPort
from kafkaio.testing._groups.describe import subscribed_topics
from kafkaio.testing._groups.journal import Group as Group, Journal
from kafkaio.testing._groups.kip848 import Downgrade, HeartbeatReply, Kip848Group
from kafkaio.testing._groups.kip848_member import Kip848Heartbeat
from kafkaio.testing._groups.migration import downgraded, upgraded
from kafkaio.testing._groups.offsets import Committed, Offsets, Place
from kafkaio.testing._groups.share import (
    NoSharePartitions,
    ShareGroup,
    ShareHeartbeat,
    SharePartitionsPort,
)
from kafkaio.testing._share.leaders import share_leaders_of

#: Seconds from a commit to the check for expired offsets, as in Kafka.
_EXPIRY_SECONDS = 600.0


class EmbeddedGroupCoordinator:
    """The coordinators of all nodes in one object.

    Requests go through `refuse` first, which checks that the node they were sent to is
    the coordinator of the group. A shard is read from the offsets topic on the first
    request to one of its groups. So a broker with a data directory finds its groups
    again after a restart, and their members continue with the epochs that they had.

    Args:
        cluster: the cluster.
        now: returns seconds on a monotonic clock; by default that of the running loop.
        wall_ms: returns milliseconds since the Unix epoch.
        config: the group settings.
        config_of: returns the settings of a KIP-848 or share group, which can have its
            own, by the group's name; None if all groups have those of ``config``.
        shares: the share partitions of the cluster.

    Attributes:
        groups: the groups of all loaded shards, by name.
        offsets: their committed offsets, by group.
    """

    def __init__(
        self,
        cluster: ClusterPort,
        *,
        now: Callable[[], float] = loop_now,
        wall_ms: Callable[[], int] = wall_clock_ms,
        config: GroupConfig | None = None,
        config_of: Callable[[str], GroupConfig] | None = None,
        shares: SharePartitionsPort | None = None,
    ) -> None:
        self.cluster = cluster
        self._shares: SharePartitionsPort = shares or NoSharePartitions()
        self.config: GroupConfig = config or GroupConfig()
        self._config_of = config_of
        self.now = now
        self.wall_ms = wall_ms
        self.groups: dict[str, Group] = {}
        self.offsets: dict[str, Offsets] = {}
        self._loaded: set[int] = set()
        # When a shard can be used: until then requests get
        # COORDINATOR_LOAD_IN_PROGRESS.
        self._ready_at: dict[int, float] = {}
        # The requests that wait, by the number that their group has for the answer.
        self._replies: dict[int, asyncio.Future[Response]] = {}
        self._next_reply = 0
        # One timer for each group, at its deadline.
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._journal = Journal(cluster, wall_ms, self._shares)
        self._is_closed = False
        self._expiry: asyncio.TimerHandle | None = None

    def config_of(self, group_id: str) -> GroupConfig:
        """Return the settings of a KIP-848 or share group."""
        return self.config if self._config_of is None else self._config_of(group_id)

    def configs_changed(self) -> None:
        """Apply changed settings to all KIP-848 and share groups."""
        for group in self.groups.values():
            if isinstance(group, Kip848Group | ShareGroup):
                group.config = self.config_of(group.id)
                self._set_timer(group)

    # Shards

    def refuse(self, node_id: int, group_id: str) -> ErrorCode:
        """Return why a node cannot serve a group; NONE if it can.

        Loads the group's shard if it was not loaded yet.
        """
        shard = self.cluster.shard_of(group_id)
        if self.cluster.coordinator(shard) != node_id:
            return ErrorCode.NOT_COORDINATOR
        return self._load_in_time(shard)

    def _load_in_time(self, shard: int) -> ErrorCode:
        now = self.now()
        if self._ready_at.setdefault(shard, now + self.config.load_time) > now:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        self._load(shard, now)
        return ErrorCode.NONE

    def moved(self, shard: int) -> None:
        """Handle a change of a shard's coordinator: its groups are loaded again.

        State that was not written is lost, such as a rebalance in progress; members
        learn it from the errors in their answers.
        """
        now = self.now()
        self._ready_at[shard] = now + self.config.load_time
        self._loaded.discard(shard)
        for group in list(self.groups.values()):
            if self.cluster.shard_of(group.id) == shard:
                if isinstance(group, ClassicGroup):
                    # Before the group is dropped, or its requests would wait forever.
                    group.fail_waiting(ErrorCode.NOT_COORDINATOR)
                    self._answer(group)
                self._drop(group.id)
        # With the time at which the next coordinator is ready: the sessions of the
        # members begin then, as in Kafka.
        self._load(shard, self._ready_at[shard])

    def led_by(self, node_id: int) -> list[Group]:
        """Return the groups that a node coordinates, sorted by name.

        Raises:
            Refusal: COORDINATOR_LOAD_IN_PROGRESS.
        """
        cluster = self.cluster
        for shard in cluster.shards():
            if cluster.coordinator(shard) == node_id:
                error = self._load_in_time(shard)
                if error:
                    raise Refusal(error)
        return [
            group
            for name, group in sorted(self.groups.items())
            if cluster.coordinator(cluster.shard_of(name)) == node_id
        ]

    # Groups

    def find(self, group_id: str) -> Group | None:
        """Return a group; None if it does not exist."""
        return self.groups.get(group_id)

    def classic(self, group_id: str) -> ClassicGroup:
        """Return a group to join by the classic protocol; create it if necessary.

        It replaces a KIP-848 group without members; one with members must not be asked
        for here.
        """
        found = self.groups.get(group_id)
        if not isinstance(found, ClassicGroup):
            assert found is None or not found.members
            found = ClassicGroup(group_id, self.config, self.wall_ms())
            self.groups[group_id] = found
        return found

    async def join(self, group_id: str, joining: JoinRequest) -> JoinGroupResponse:
        """Handle a JoinGroup; wait until it can be answered.

        Raises:
            Refusal: the client cannot join a KIP-848 group by the classic protocol.
        """
        group = self.groups.get(group_id)
        if isinstance(group, ShareGroup):
            raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        # In a group with KIP-848 members the client becomes a member beside them; an
        # empty one is replaced by a classic group.
        if isinstance(group, Kip848Group) and group.members:
            with self.changing(group) as now:
                return mixed.join(group, joining, now)
        classic = self.classic(group_id)
        found = await self.wait(
            classic, lambda reply, now: classic.join(joining, reply, now)
        )
        assert isinstance(found, JoinGroupResponse)
        return found

    async def sync(self, group_id: str, syncing: SyncRequest) -> SyncGroupResponse:
        """Handle a SyncGroup; wait until it can be answered.

        Raises:
            Refusal: the client is not a member, or has to join again first.
        """
        group = self.groups.get(group_id)
        if group is None or isinstance(group, ShareGroup):
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, Kip848Group):
            with self.changing(group) as now:
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
        """Handle a classic heartbeat; REBALANCE_IN_PROGRESS makes it join again.

        Raises:
            Refusal: the client is not a classic member.
        """
        group = self.groups.get(group_id)
        if group is None or isinstance(group, ShareGroup):
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
        with self.changing(group) as now:
            if isinstance(group, Kip848Group):
                return mixed.heartbeat(group, member_id, instance_id, generation, now)
            return group.heartbeat(member_id, instance_id, generation, now)

    def kip848_heartbeat(self, group_id: str, beat: Kip848Heartbeat) -> HeartbeatReply:
        """Handle a heartbeat of the KIP-848 protocol.

        If it succeeds, the first one of a member creates the group, or makes a classic
        group a KIP-848 group.
        """
        before, now = self.groups.get(group_id), self.now()
        try:
            group = self._kip848(group_id, before, creates=beat.epoch == 0)
        except Refusal as refusal:
            return HeartbeatReply(refusal.code, refusal.message)
        reply = group.heartbeat(beat, now)
        if reply.error:
            return reply
        if isinstance(before, ClassicGroup):
            # Only after the heartbeat was accepted: a refused one leaves the classic
            # group as it is. Classic members that wait join again, now in the new
            # group.
            before.fail_waiting(ErrorCode.REBALANCE_IN_PROGRESS)
            self._answer(before)
        self.groups[group_id] = group
        self._after_change(group, now)
        return reply

    def _kip848(
        self, group_id: str, found: Group | None, *, creates: bool
    ) -> Kip848Group:
        if isinstance(found, Kip848Group):
            return found
        if not creates or isinstance(found, ShareGroup):
            reason = "not found" if found is None else "is not a consumer group"
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")
        # Not ``members``: a group in which clients wait to join is not empty either.
        if found is not None and found.state is not ClassicGroupState.EMPTY:
            return upgraded(found, self.config_of(group_id), self.cluster, self.now())
        return Kip848Group(group_id, self.config_of(group_id), self.cluster)

    def share_heartbeat(self, group_id: str, beat: ShareHeartbeat) -> HeartbeatReply:
        """Handle a heartbeat of a member of a share group.

        If it succeeds, the first one creates the group.
        """
        group = self.groups.get(group_id)
        if group is None and beat.epoch == 0:
            group = self._new_share_group(group_id)
        if not isinstance(group, ShareGroup):
            return HeartbeatReply(
                ErrorCode.GROUP_ID_NOT_FOUND, _no_share_group(group_id, group, beat)
            )
        now = self.now()
        reply = group.heartbeat(beat, now)
        if not reply.error:
            self.groups[group_id] = group
            self._after_change(group, now)
        return reply

    def _new_share_group(self, group_id: str) -> ShareGroup:
        config = self.config_of(group_id)
        return ShareGroup(group_id, config, self.cluster, self._shares)

    def share_group(self, group_id: str) -> ShareGroup:
        """Create a share group without members."""
        group = self._new_share_group(group_id)
        self.groups[group_id] = group
        self._after_change(group, self.now())
        return group

    def leave(
        self, group_id: str, leavers: Sequence[tuple[str, str | None]]
    ) -> list[ErrorCode]:
        """Remove members by a classic LeaveGroup.

        Args:
            group_id: the group.
            leavers: member id and instance id of each.

        Returns:
            An error code for each, in the same order.
        """
        group = self.groups.get(group_id)
        if group is None or isinstance(group, ShareGroup):
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(leavers)
        with self.changing(group) as now:
            if isinstance(group, Kip848Group):
                return group.leave(leavers)
            return [group.leave(*leaver, now) for leaver in leavers]

    def delete(self, group_id: str) -> None:
        """Delete a group and its committed offsets."""
        for place in self.offsets_of(group_id).places():
            self.forget(group_id, place)
        if isinstance(self.groups.get(group_id), ShareGroup):
            self._shares.forget(group_id)
        if self._drop(group_id):
            self._journal.remove(group_id)

    def _drop(self, group_id: str) -> bool:
        self.offsets.pop(group_id, None)
        timer = self._timers.pop(group_id, None)
        if timer is not None:
            timer.cancel()
        return self.groups.pop(group_id, None) is not None

    @contextmanager
    def changing(self, group: Group) -> Iterator[float]:
        """Change a group inside; after it, answer, write and set the group's timer.

        Yields:
            The time, by ``now``.
        """
        now = self.now()
        had_members = bool(group.members)
        try:
            yield now
        finally:
            # Also after an error: the group may have changed before it.
            if isinstance(group, ClassicGroup) and had_members and not group.members:
                group.empty_since_ms = self.wall_ms()
            self._after_change(group, now)

    async def wait(
        self, group: ClassicGroup, ask: Callable[[int, float], None]
    ) -> Response:
        """Give a request to a classic group and wait for its answer.

        Args:
            group: the group.
            ask: gives the request to the group; it is called with the number of the
                answer and the time.
        """
        self._next_reply += 1
        reply = self._next_reply
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._replies[reply] = future
        try:
            with self.changing(group) as now:
                ask(reply, now)
            return await future
        finally:
            # A client that disconnects cancels its request. The group answers all the
            # same, to nobody.
            self._replies.pop(reply, None)

    def close(self) -> None:
        """Stop every timer; the nodes cancel the requests that wait."""
        self._is_closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    # Offsets

    def offsets_of(self, group_id: str) -> Offsets:
        """Return a group's committed offsets, without those of deleted topics."""
        offsets = self.offsets.get(group_id)
        if offsets is None:
            return Offsets()
        for place in offsets.places():
            committed = offsets.get(place)
            assert committed is not None
            # The topic was deleted, or created again: then its offsets mean other
            # records.
            gone = committed.topic_id not in {None, self.cluster.topic_id(place[0])}
            if gone:
                offsets.drop(place)
                self._journal.commit(group_id, {place: None})
        return offsets

    def commit(
        self,
        group_id: str,
        positions: dict[Place, Committed],
        producer: tuple[int, int] | None = None,
    ) -> None:
        """Commit offsets; create the group if it does not exist.

        Args:
            group_id: the group.
            positions: the offsets.
            producer: producer id and epoch, if the offsets are part of a transaction:
                they are pending until its marker is written (`end_transaction`).
        """
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id, self.config, self.wall_ms())
        offsets = self.offsets.setdefault(group_id, Offsets())
        first = self._journal.commit(group_id, positions, producer)
        for number, (place, committed) in enumerate(positions.items()):
            written = replace(committed, written=first + number)
            if producer is None:
                offsets.put(place, written)
            else:
                offsets.put_pending(producer[0], place, written)
        if self._expiry is None and not self._is_closed:
            loop = asyncio.get_running_loop()
            self._expiry = loop.call_later(_EXPIRY_SECONDS, self._check_expiry)

    def end_transaction(self, shard: int, producer_id: int, *, commit: bool) -> None:
        """Commit or drop the pending offsets of a producer in a shard."""
        for group_id, offsets in self.offsets.items():
            if self.cluster.shard_of(group_id) == shard:
                offsets.end_transaction(producer_id, commit=commit)

    def _check_expiry(self) -> None:
        # The next commit starts the timer again.
        self._expiry = None
        if self._has_coordinator():
            self.expire()

    def _has_coordinator(self) -> bool:
        return any(
            self.cluster.coordinator(shard) >= 0 for shard in self.cluster.shards()
        )

    def forget(self, group_id: str, place: Place) -> None:
        """Delete the committed offset of a partition."""
        if self.offsets_of(group_id).drop(place):
            self._journal.commit(group_id, {place: None})

    def expire(self) -> None:
        """Delete expired offsets, and groups without members and offsets (KIP-211).

        In a group with members, only offsets of topics without a subscriber expire.
        """
        now_ms = self.wall_ms()
        retention_ms = round(self.config.offsets_retention * 1000)
        for group_id, group in list(self.groups.items()):
            # Only an administrator deletes one.
            if isinstance(group, ShareGroup):
                continue
            since = None
            # Without a generation the group has never had members: each of its offsets
            # expires by its own age.
            if isinstance(group, ClassicGroup) and group.generation > 0:
                since = None if group.members else group.empty_since_ms
            subscribed = subscribed_topics(group)
            if subscribed is None:
                continue
            offsets = self.offsets_of(group_id)
            for place in offsets.expired(now_ms, retention_ms, since, subscribed):
                self.forget(group_id, place)
            if not offsets and not offsets.has_pending and not group.members:
                self.delete(group_id)

    # Inside

    def _after_change(self, group: Group, now: float) -> None:
        """Send a group's answers, write its changes and set its timer.

        A KIP-848 group that has only classic members left becomes a classic group.
        """
        if isinstance(group, Kip848Group) and group.downgrade is not None:
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
            # None, or cancelled: the client has disconnected.
            if future is not None and not future.done():
                future.set_result(response)

    def _set_timer(self, group: Group) -> None:
        timer = self._timers.pop(group.id, None)
        if timer is not None:
            timer.cancel()
        # While a group has no coordinator, no session expires; loading it sets the
        # timer.
        has_coordinator = self.cluster.coordinator(self.cluster.shard_of(group.id)) >= 0
        if group.deadline < inf and has_coordinator and not self._is_closed:
            loop = asyncio.get_running_loop()
            when = loop.time() + max(0.0, group.deadline - self.now())
            self._timers[group.id] = loop.call_at(when, self._tick, group)

    def clock_moved(self) -> None:
        """Handle every deadline that a jump of the clock has passed."""
        now = self.now()
        for group in list(self.groups.values()):
            if group.deadline <= now:
                self._tick(group)
            else:
                self._set_timer(group)
        if self._has_coordinator():
            self.expire()

    def _tick(self, group: Group) -> None:
        # A group of the other protocol may have replaced it.
        if self.groups.get(group.id) is group:
            with self.changing(group) as now:
                group.tick(now)

    def _load(self, shard: int, now: float) -> None:
        if shard in self._loaded:
            return
        self._loaded.add(shard)
        groups, offsets = self._journal.read(shard, self.config, now)
        self.offsets |= offsets
        for group in groups:
            if isinstance(group, Kip848Group | ShareGroup):
                group.config = self.config_of(group.id)
            self.groups[group.id] = group
            self._set_timer(group)


def _no_share_group(group_id: str, found: Group | None, beat: ShareHeartbeat) -> str:
    if found is not None:
        return f"Group {group_id} is not a share group."
    kind = "Group" if beat.epoch < 0 else "Share group"
    return f"{kind} {group_id} not found."


class _OffsetsLeaderFollower:
    """Reports every new leader and marker of the offsets topic to a coordinator.

    It is one of the cluster's callbacks; `coordinator_of` finds the coordinator by it.
    """

    def __init__(self, coordinator: EmbeddedGroupCoordinator) -> None:
        self.coordinator = coordinator

    def __call__(self, partition: EmbeddedPartition, before: int) -> None:
        del before
        if partition.topic == OFFSETS_TOPIC:
            self.coordinator.moved(partition.index)

    def marker_written(
        self, partition: EmbeddedPartition, marker: TransactionMarker
    ) -> None:
        if partition.topic == OFFSETS_TOPIC:
            self.coordinator.end_transaction(
                partition.index, marker.producer_id, commit=marker.is_commit
            )


def coordinator_of(cluster: EmbeddedCluster) -> EmbeddedGroupCoordinator:
    """Return the coordinator of a cluster's groups; create it on the first call."""
    # The cluster knows a coordinator only as a callback, so that a broker without
    # groups does not import this module.
    for callback in cluster.leader_changed:
        if isinstance(callback, _OffsetsLeaderFollower):
            return callback.coordinator
    clock = cluster.clock
    config = cluster.group_config or GroupConfig()
    kip848 = config
    # Kafka limits classic and KIP-848 groups by configs of their own.
    if (most := cluster.configs.static.get("group.consumer.max.size")) is not None:
        kip848 = config.with_configs({"group.max.size": most})
    coordinator = EmbeddedGroupCoordinator(
        BrokerClusterPort(cluster),
        now=clock.now,
        wall_ms=clock.wall_ms,
        config=config,
        config_of=lambda group: kip848.with_configs(cluster.configs.dynamic()).of_group(
            cluster.configs.of(GROUP, group)
        ),
        shares=share_leaders_of(cluster),
    )
    follower = _OffsetsLeaderFollower(coordinator)
    cluster.leader_changed.append(follower)
    cluster.marker_written.append(follower.marker_written)
    cluster.configs_changed.append(coordinator.configs_changed)
    return coordinator
