"""A share group (KIP-932) on the side of its coordinator: a pure state machine.

Its epoch grows with each change of its members, of their subscriptions or of the
topics. Nobody has to release a partition before another gets it, so that each member
has its target at its next heartbeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Protocol
from uuid import UUID

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.group_config import GroupConfig
from kafkaio.testing._groups.assignors import Slot
from kafkaio.testing._groups.cluster_port import ClusterPort
from kafkaio.testing._groups.kip848 import HeartbeatReply, Kip848GroupState
from kafkaio.testing._groups.kip848_member import LEAVE
from kafkaio.testing._groups.simple_assignor import simple
from kafkaio.testing._groups.subscriptions import fingerprint_of


class SharePartitionsPort(Protocol):
    """The share partitions of a cluster, as a group sees them."""

    def initialize(self, group: str, topic_id: UUID, count: int, /) -> bool:
        """Make the share partitions of a topic; return whether any is new."""

    def forget(self, group: str, /) -> None:
        """Remove all share partitions of a group that is deleted."""


class NoSharePartitions:
    """Stands for share partitions where there are none."""

    def initialize(self, group: str, topic_id: UUID, count: int, /) -> bool:
        """Do nothing."""
        del group, topic_id, count
        return False

    def forget(self, group: str, /) -> None:
        """Do nothing."""
        del group


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareHeartbeat:
    """A ShareGroupHeartbeat request; None stands for a field that is left out."""

    member_id: str
    epoch: int
    rack: str | None = None
    names: frozenset[str] | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(slots=True, kw_only=True)
class ShareMember:
    """A member of a share group."""

    id: str
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    epoch: int = 0
    previous_epoch: int = 0
    names: frozenset[str] = frozenset()
    assigned: frozenset[Slot] = frozenset()
    session_deadline: float = inf


class ShareGroup:
    """Members, epochs and target of one share group. Time is an argument.

    The caller must call `tick` at `deadline`.

    Attributes:
        epoch: the epoch of the group.
        members: by member id.
        target: the target assignment, by member id.
        target_epoch: the epoch for which the target was computed.
    """

    #: The assignor of every share group.
    assignor: str = "simple"

    def __init__(
        self,
        group_id: str,
        config: GroupConfig,
        cluster: ClusterPort,
        shares: SharePartitionsPort,
    ) -> None:
        self.id = group_id
        self.epoch: int = 1
        self.members: dict[str, ShareMember] = {}
        self.target: dict[str, frozenset[Slot]] = {}
        self.target_epoch: int = 0
        #: A target that a test has set; the assignor is not used while there is one.
        self.manual: dict[str, frozenset[Slot]] | None = None
        self.config = config
        self._cluster = cluster
        self._shares = shares
        self._shape: dict[str, tuple[UUID, int]] = {}
        # When the target was computed: the first one comes at once.
        self._assigned_at = -inf

    @property
    def state(self) -> str:
        """The state: whether it has members."""
        return Kip848GroupState.STABLE if self.members else Kip848GroupState.EMPTY

    @property
    def deadline(self) -> float:
        """The time of the next `tick`; infinity for none."""
        return min((one.session_deadline for one in self.members.values()), default=inf)

    def heartbeat(self, beat: ShareHeartbeat, now: float) -> HeartbeatReply:
        """Handle a valid heartbeat; return its answer."""
        member = self.members.get(beat.member_id)
        if beat.epoch == LEAVE:
            if member is None:
                return _unknown(beat.member_id, self.id)
            self.fence(member)
            return HeartbeatReply(ErrorCode.NONE, None, LEAVE)
        if member is None:
            if beat.epoch > 0:
                return _unknown(beat.member_id, self.id)
            if len(self.members) >= self.config.share_max_size:
                message = (
                    "The share group has reached its maximum capacity of"
                    f" {self.config.share_max_size} members."
                )
                return HeartbeatReply(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
            member = ShareMember(id=beat.member_id)
        elif refused := _refusal(beat.epoch, member):
            return refused
        self._update(member, beat)
        self._assign(now)
        member.session_deadline = now + self.config.share_session_timeout
        before = member.assigned
        member.assigned = self.target.get(member.id, frozenset())
        if member.epoch != self.target_epoch:
            member.previous_epoch, member.epoch = member.epoch, self.target_epoch
        shows = beat.epoch == 0 or beat.names is not None or member.assigned != before
        assignment = member.assigned if shows else None
        return HeartbeatReply(ErrorCode.NONE, None, member.epoch, assignment)

    def _update(self, member: ShareMember, beat: ShareHeartbeat) -> None:
        member.client_id, member.client_host = beat.client_id, beat.client_host
        if beat.rack is not None:
            member.rack = beat.rack
        is_new = member.id not in self.members
        is_changed = beat.names is not None and beat.names != member.names
        if beat.names is not None:
            member.names = beat.names
        self.members[member.id] = member
        if is_new or is_changed:
            self.epoch += 1
            self._refresh_topics()
        elif self._refresh_topics():
            self.epoch += 1
        # Kafka knows that partitions have got their state one epoch later.
        if self._initialize_all():
            self.epoch += 1

    def _refresh_topics(self) -> bool:
        names = frozenset[str]().union(*(one.names for one in self.members.values()))
        shape: dict[str, tuple[UUID, int]] = {}
        for name in sorted(names):
            topic_id = self._cluster.topic_id(name)
            if topic_id is not None:
                shape[name] = topic_id, self._cluster.partition_count(name)
        is_changed = shape != self._shape
        self._shape = shape
        return is_changed

    def _initialize_all(self) -> bool:
        new = [
            self._shares.initialize(self.id, topic_id, count)
            for topic_id, count in self._shape.values()
        ]
        return any(new)

    def _assign(self, now: float) -> None:
        if self.target_epoch == self.epoch:
            return
        if now < self._assigned_at + self.config.share_assignment_interval:
            return
        self._assigned_at = now
        self.target_epoch = self.epoch
        if self.manual is not None:
            self.target = dict(self.manual)
            return
        ids = {name: topic_id for name, (topic_id, _) in self._shape.items()}
        self.target = simple(
            {
                one.id: frozenset(ids[name] for name in one.names if name in ids)
                for one in self.members.values()
            },
            [
                (topic_id, number)
                for topic_id, count in sorted(self._shape.values())
                for number in range(count)
            ],
            self.target,
        )

    def fence(self, *leaving: ShareMember) -> None:
        """Remove members; the next heartbeat computes the target."""
        for member in leaving:
            del self.members[member.id]
            self.target.pop(member.id, None)
        self._refresh_topics()
        self.epoch += 1
        if not self.members:
            # Nobody is left whose heartbeat would compute it.
            self.target_epoch = self.epoch

    def rebalance(self) -> None:
        """Start a new epoch: the next heartbeat computes the target."""
        self.epoch += 1
        if self.manual is not None:
            self.target, self.target_epoch = dict(self.manual), self.epoch

    def tick(self, now: float) -> None:
        """Remove the members whose sessions have ended."""
        gone = [one for one in self.members.values() if one.session_deadline <= now]
        if gone:
            self.fence(*gone)

    @property
    def fingerprint(self) -> int:
        """A hash of the subscribed topics, their ids and sizes; 0 for no topic."""
        return fingerprint_of(self._shape)

    def resume(self, fingerprint: int, now: float) -> None:
        """Continue a group that was read from the offsets topic; renew all sessions.

        Args:
            fingerprint: fingerprint of the topics at that time; if it differs now, a
                new epoch starts.
            now: the time.
        """
        self._refresh_topics()
        if self.fingerprint != fingerprint:
            self.epoch += 1
        for member in self.members.values():
            member.session_deadline = now + self.config.share_session_timeout

    def topics_of(self, member: ShareMember) -> frozenset[str]:
        """Return the names of the topics that a member subscribes to."""
        return member.names

    @property
    def topics(self) -> Mapping[str, UUID]:
        """The ids of the subscribed topics that exist, by name."""
        return {name: topic_id for name, (topic_id, _) in self._shape.items()}


def _refusal(epoch: int, member: ShareMember) -> HeartbeatReply | None:
    """Return the answer to a heartbeat with a wrong epoch; None if it is right."""
    rest = "The member must abandon all its partitions and rejoin."
    known = "the one known by the group coordinator"
    if epoch > member.epoch:
        return HeartbeatReply(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a greater member epoch ({epoch}) than {known}"
            f" ({member.epoch}). {rest}",
        )
    # The answer with the new epoch may have been lost.
    if epoch in {0, member.epoch, member.previous_epoch}:
        return None
    return HeartbeatReply(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a smaller member epoch ({epoch}) than {known}"
        f" ({member.epoch}), and it does not match the previous member epoch"
        f" ({member.previous_epoch}). {rest}",
    )


def _unknown(member_id: str, group_id: str) -> HeartbeatReply:
    message = f"Member {member_id} is not a member of group {group_id}."
    return HeartbeatReply(ErrorCode.UNKNOWN_MEMBER_ID, message)
