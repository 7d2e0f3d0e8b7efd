"""The leaders of share partitions: sessions, timers and kept states of a cluster.

`SharePartition` is a pure state machine. After each change of one, `ShareLeaders` keeps
its state, wakes the fetches that wait for it, and sets the timer of its locks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from math import inf
from typing import Final
from uuid import UUID

from kafkaio._config.configs import iso_duration_ms
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages.share_fetch import ShareFetchRequest
from kafkaio.testing._broker.cluster import EmbeddedCluster
from kafkaio.testing._broker.configs import GROUP
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.partition import EmbeddedPartition
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._share.dead_letters import DeadLetters
from kafkaio.testing._share.partition import (
    AckBatch,
    Acquire,
    AcquiredRange,
    Decisions,
    Fetched,
    ShareImage,
    ShareLimits,
    SharePartition,
)
from kafkaio.testing._share.sessions import (
    SessionKey,
    SharedPartition,
    ShareSession,
    ShareSessions,
)
from kafkaio.testing._share.states import UNINITIALIZED, ShareKey, ShareStates

_STALE_STATE: Final = (
    "Error in write state RPC. The coordinator rejected the request because the state"
    " epoch did not match."
)
_BY_DURATION: Final = "by_duration:"


class LedPartition:
    """A share partition that a leader has in memory.

    Attributes:
        key: which it is.
        log: the partition of the topic.
        machine: its deliveries.
    """

    def __init__(
        self, key: ShareKey, log: EmbeddedPartition, machine: SharePartition, epoch: int
    ) -> None:
        self.key = key
        self.log = log
        self.machine = machine
        self.leader_epoch: int = log.leader_epoch
        self.state_epoch = epoch
        #: The state that was kept last.
        self.kept: ShareImage = machine.kept
        self.timer: asyncio.TimerHandle | None = None
        # A dict for its order: a simulation with the same seed must run the same way.
        self._waiters: dict[Wakeup, None] = {}

    def add_waiter(self, wakeup: Wakeup) -> None:
        """Notify ``wakeup`` when records are added or freed, until it is removed."""
        self._waiters[wakeup] = None
        self.log.add_waiter(wakeup)

    def remove_waiter(self, wakeup: Wakeup) -> None:
        """Stop to notify ``wakeup``."""
        self._waiters.pop(wakeup, None)
        self.log.remove_waiter(wakeup)

    def wake(self) -> None:
        """Notify the fetches that wait."""
        for wakeup in self._waiters:
            wakeup.notify()


class ShareLeaders:
    """The share partitions of all nodes in one object.

    Args:
        cluster: the cluster.

    Attributes:
        states: what is kept of share partitions.
    """

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self.states: ShareStates = ShareStates(cluster)
        self._letters = DeadLetters(cluster)
        self._sessions: dict[int, ShareSessions] = {}
        self._led: dict[ShareKey, LedPartition] = {}
        self._is_closed = False

    # ---- configs -----------------------------------------------------------------

    def config(self, group: str, name: str) -> str:
        """Return the value of a group's config, by its name without ``share.``."""
        own = self._cluster.configs.of(GROUP, group).get(f"share.{name}")
        if own is not None:
            return own
        return self._cluster.configs.in_force(f"group.share.{name}") or ""

    def limits(self, group: str) -> ShareLimits:
        """Return what a group's configs say."""
        return ShareLimits(
            int(self.config(group, "record.lock.duration.ms")) / 1000,
            int(self.config(group, "delivery.count.limit")),
            int(self.config(group, "partition.max.record.locks")),
            self.config(group, "renew.acknowledge.enable") != "false",
        )

    def is_committed_only(self, group: str) -> bool:
        """Whether a group sees only records of committed transactions."""
        return self.config(group, "isolation.level") == "read_committed"

    # ---- sessions ----------------------------------------------------------------

    def sessions(self, node_id: int) -> ShareSessions:
        """Return the sessions of a node."""
        found = self._sessions.get(node_id)
        if found is None:
            limit = self._cluster.configs.in_force("group.share.max.share.sessions")
            found = self._sessions[node_id] = ShareSessions(int(limit or 2000))
        return found

    def open_session(
        self, node_id: int, key: SessionKey, connection: ServerConnection
    ) -> ShareSession:
        """Open a session that ends with its connection.

        Raises:
            Refusal: SHARE_SESSION_LIMIT_REACHED.
        """
        session = self.sessions(node_id).open(key, connection)
        connection.when_closed(lambda: self._disconnected(node_id, connection))
        return session

    def session_of(
        self, node_id: int, request: Request[Response]
    ) -> Collection[SharedPartition]:
        """Return the partitions of the session that a ShareFetch uses; none for others.

        An acknowledgement concerns only the partitions that it names.
        """
        # By the key: a test run that imports modules anew has two such classes.
        if request.API_KEY != ShareFetchRequest.API_KEY:
            return ()
        asked: ShareFetchRequest = request  # type: ignore[assignment]
        key = SessionKey(asked.group_id or "", asked.member_id or "")
        session = self.sessions(node_id).find(key)
        return () if session is None else session.partitions

    def close_session(self, node_id: int, key: SessionKey) -> None:
        """Free what a member holds on a node, and forget its session.

        Raises:
            Refusal: SHARE_SESSION_NOT_FOUND.
        """
        sessions = self.sessions(node_id)
        session = sessions.require(key)
        sessions.remove(key)
        self._release(node_id, session)

    def _disconnected(self, node_id: int, connection: ServerConnection) -> None:
        session, empty = self.sessions(node_id).disconnected(connection)
        if session is not None:
            self._release(node_id, session)
        if empty is not None:
            # The next session reads the state again, which may have been altered.
            for led in self._led_by(node_id):
                if led.key.group == empty:
                    self._drop(led)

    def _release(self, node_id: int, session: ShareSession) -> None:
        group, member = session.key
        for topic_id, index in session.partitions:
            led = self._led.get(ShareKey(group, topic_id, index))
            # Another node may lead it by now, where the member has another session.
            if led is None or led.log.leader != node_id:
                continue
            if led.machine.release(member):
                self._quietly_changed(led)

    def end_sessions(self, group: str, member_id: str | None) -> int:
        """Forget sessions of a group, or of one member; return how many there were.

        Nothing is freed: members keep their locks.
        """

        def is_meant(key: SessionKey) -> bool:
            return key.group == group and member_id in {None, key.member}

        return sum(one.remove_where(is_meant) for one in self._sessions.values())

    def node_stopping(self, node_id: int) -> None:
        """End the sessions of a node, which shuts down: what members hold is freed.

        The state is kept before other nodes become leaders.
        """
        for session in self.sessions(node_id).remove_all():
            self._release(node_id, session)

    def node_killed(self, node_id: int) -> None:
        """Forget the sessions and the share partitions of a node."""
        self._sessions.pop(node_id, None)
        for led in self._led_by(node_id):
            self._drop(led)

    # ---- share partitions --------------------------------------------------------

    def led(self, key: ShareKey) -> LedPartition | None:
        """Return a share partition that is in memory."""
        return self._led.get(key)

    def _led_by(self, node_id: int) -> list[LedPartition]:
        return [one for one in self._led.values() if one.log.leader == node_id]

    def load(self, group: str, partition: EmbeddedPartition) -> LedPartition:
        """Return a share partition; read its state if it is not in memory.

        Raises:
            Refusal: UNKNOWN_SERVER_ERROR if no member of the group has ever subscribed
                to the topic.
        """
        key = ShareKey(group, partition.topic_id, partition.index)
        found = self._led.get(key)
        if found is not None:
            found.machine.limits = self.limits(group)
            return found
        state = self.states.get(key)
        if state is None:
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
        image = state.image
        if image.start == UNINITIALIZED:
            image = ShareImage(self._first_offset(group, partition))
        machine = SharePartition(image, self.limits(group))
        led = self._led[key] = LedPartition(key, partition, machine, state.epoch)
        return led

    def _first_offset(self, group: str, partition: EmbeddedPartition) -> int:
        """Return where a group begins that has not read the partition yet."""
        own = self._cluster.configs.of(GROUP, group)
        reset = own.get("share.auto.offset.reset", "latest")
        if reset == "earliest":
            return partition.start_offset
        if reset.startswith(_BY_DURATION):
            back = iso_duration_ms(reset.removeprefix(_BY_DURATION)) or 0
            when = self._cluster.clock.wall_ms() - back
            found = partition.log.offset_for_timestamp(when)
            if found is not None:
                return found.offset
        return partition.high_watermark

    def acquire(
        self, led: LedPartition, ask: Acquire, read: Fetched
    ) -> list[AcquiredRange]:
        """Lock records of what was read for a member."""
        found = led.machine.acquire(ask, read, self._cluster.clock.now())
        self._set_timer(led)
        return found

    def judge(
        self, led: LedPartition, member: str, acks: Sequence[AckBatch]
    ) -> Decisions:
        """Check a member's acknowledgements; `settle` applies them.

        Raises:
            Refusal: INVALID_RECORD_STATE, INVALID_REQUEST.
        """
        self.expire(led)
        led.machine.limits = self.limits(led.key.group)
        decided = led.machine.judge(member, acks, self._cluster.clock.now())
        # A renewal has moved a deadline.
        self._set_timer(led)
        return decided

    def settle(self, led: LedPartition, decided: Decisions) -> None:
        """Apply acknowledgements that were found right.

        Raises:
            Refusal: NOT_LEADER_OR_FOLLOWER if an administrator has changed the state
                meanwhile.
        """
        led.machine.settle(decided)
        self._changed(led)

    def expire(self, led: LedPartition) -> None:
        """Free what has been locked for too long."""
        if led.machine.expire(self._cluster.clock.now()):
            self._quietly_changed(led)

    def expire_locks(self, keys: Callable[[ShareKey], bool]) -> int:
        """End all locks of some share partitions now; return how many had any."""
        found = [led for key, led in list(self._led.items()) if keys(key)]
        count = 0
        for led in found:
            if led.machine.expire_all():
                count += 1
                self._quietly_changed(led)
        return count

    # ---- changes of the cluster --------------------------------------------------

    def leader_changed(self, partition: EmbeddedPartition, before: int) -> None:
        """Let the next leader read the states of a partition."""
        del before
        for led in list(self._led.values()):
            if led.log is partition:
                self._drop(led)

    def feature_changed(self, name: str, level: int) -> None:
        """Forget sessions and what is in memory, if share groups are switched off."""
        if name != "share.version" or level:
            return
        for sessions in self._sessions.values():
            sessions.remove_all()
        for led in list(self._led.values()):
            self._drop(led)

    def clock_moved(self) -> None:
        """Handle every deadline that a jump of the clock has passed."""
        for led in list(self._led.values()):
            self.expire(led)
            self._set_timer(led)

    def close(self) -> None:
        """Stop every timer."""
        self._is_closed = True
        for led in list(self._led.values()):
            self._drop(led)

    # ---- inside ------------------------------------------------------------------

    def _drop(self, led: LedPartition) -> None:
        self._led.pop(led.key, None)
        if led.timer is not None:
            led.timer.cancel()
            led.timer = None
        led.wake()

    def _quietly_changed(self, led: LedPartition) -> None:
        """Keep a change that no client waits for."""
        try:
            self._changed(led)
        except Refusal:
            # The share partition is dropped; its next fetch reads the state again.
            return

    def _changed(self, led: LedPartition) -> None:
        machine, state = led.machine, led.machine.kept
        if state is not led.kept:
            led.kept = state
            is_kept = self.states.write(
                led.key, state, led.state_epoch, led.leader_epoch
            )
            if not is_kept:
                self._drop(led)
                raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, _STALE_STATE)
        dead, machine.dead = machine.dead, []
        if dead:
            self._letters.write(led.key.group, led.log, dead)
        self._set_timer(led)
        led.wake()

    def _set_timer(self, led: LedPartition) -> None:
        if led.timer is not None:
            led.timer.cancel()
            led.timer = None
        deadline = led.machine.deadline
        if deadline < inf and not self._is_closed:
            loop = asyncio.get_running_loop()
            when = loop.time() + max(0.0, deadline - self._cluster.clock.now())
            led.timer = loop.call_at(when, self._tick, led)

    def _tick(self, led: LedPartition) -> None:
        led.timer = None
        if self._led.get(led.key) is led:
            self.expire(led)
            self._set_timer(led)

    # ---- what groups need --------------------------------------------------------

    def initialize(self, group: str, topic_id: UUID, count: int, /) -> bool:
        """Make the share partitions of a topic; return whether any is new."""
        # Not `any`, which would stop at the first that is new.
        new = [
            index
            for index in range(count)
            if self.states.initialize(ShareKey(group, topic_id, index))
        ]
        return bool(new)

    def forget(self, group: str, /) -> None:
        """Remove all share partitions of a group that is deleted."""
        for topic_id, partitions in self.states.of_group(group).items():
            for index in partitions:
                self.states.remove(ShareKey(group, topic_id, index))


class _LeaderFollower:
    """Reports new leaders to `ShareLeaders`; `share_leaders_of` finds them by it."""

    def __init__(self, leaders: ShareLeaders) -> None:
        self.leaders = leaders

    def __call__(self, partition: EmbeddedPartition, before: int) -> None:
        self.leaders.leader_changed(partition, before)


def share_leaders_of(cluster: EmbeddedCluster) -> ShareLeaders:
    """Return the leaders of a cluster's share partitions; create them at first."""
    # The cluster knows them only as a callback, so that a broker without share groups
    # does not import this module.
    for callback in cluster.leader_changed:
        if isinstance(callback, _LeaderFollower):
            return callback.leaders
    leaders = ShareLeaders(cluster)
    cluster.leader_changed.append(_LeaderFollower(leaders))
    cluster.feature_changed.append(leaders.feature_changed)
    cluster.share_session = leaders.session_of
    return leaders
