"""A KIP-848 group on the side of its coordinator: a pure state machine.

The group's epoch grows with each change of its members, of their subscriptions or of
the topics. A target assignment is computed for an epoch. Each member moves towards its
target at its own pace: it first revokes what it must, then gets what is free, and only
then has the epoch of the target (see `Kip848Member.reconcile`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from math import inf

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.group_config import GroupConfig
from kafkaio.testing._groups.assignors import (
    ASSIGNORS,
    Slot,
    Spec,
)
from kafkaio.testing._groups.cluster_port import ClusterPort
from kafkaio.testing._groups.kip848_member import (
    LEAVE,
    LEAVE_STATIC,
    Kip848Heartbeat,
    Kip848Member,
    MemberState,
)
from kafkaio.testing._groups.regex import is_re2
from kafkaio.testing._groups.subscriptions import Subscriptions


class Kip848GroupState:
    """The states of a group, by Kafka's names."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class Downgrade(Enum):
    """The way in which a group with only classic members becomes a classic group."""

    KEEP = "members keep their partitions"
    REBALANCE = "members rebalance"


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """The answer to a heartbeat; ``assignment`` is None if it has not changed."""

    error: ErrorCode
    message: str | None = None
    epoch: int = 0
    assignment: frozenset[Slot] | None = None


class Kip848Group:
    """Members, epochs and target of one group. Time is an argument of its methods.

    The caller must call `tick` at `deadline`. Some members may use the classic
    protocol; their requests are handled by ``mixed``.

    Attributes:
        epoch: the epoch of the group.
        members: by member id.
        static: member ids by instance id.
        target: the target assignment, by member id.
        target_epoch: the epoch for which the target was computed.
        downgrade: set when only classic members are left: the coordinator has to make
            the group a classic one.
    """

    def __init__(
        self, group_id: str, config: GroupConfig, cluster: ClusterPort
    ) -> None:
        self.id = group_id
        self.epoch: int = 1
        self.members: dict[str, Kip848Member] = {}
        self.static: dict[str, str] = {}
        self.target: dict[str, frozenset[Slot]] = {}
        self.target_epoch: int = 0
        #: A target that a test has set; the assignor is not used while there is one.
        self.manual: dict[str, frozenset[Slot]] | None = None
        self.downgrade: Downgrade | None = None
        self.config = config
        self.cluster = cluster
        self.subscriptions: Subscriptions = Subscriptions(
            cluster, config.regex_refresh_interval
        )
        # When the target was computed: the first one comes at once.
        self._assigned_at = -inf

    @property
    def state(self) -> str:
        """The state, one of `Kip848GroupState`."""
        if not self.members:
            return Kip848GroupState.EMPTY
        if self.target_epoch < self.epoch:
            return Kip848GroupState.ASSIGNING
        if all(
            one.state is MemberState.STABLE and one.epoch == self.target_epoch
            for one in self.members.values()
        ):
            return Kip848GroupState.STABLE
        return Kip848GroupState.RECONCILING

    @property
    def assignor(self) -> str:
        """The assignor that most members ask for; the default if none asks."""
        # Of assignors with equal votes, `max` takes the first: the default.
        return max(ASSIGNORS, key=lambda name: self._votes[name])

    @property
    def _votes(self) -> Counter[str]:
        return Counter(one.assignor for one in self.members.values() if one.assignor)

    @property
    def deadline(self) -> float:
        """The time of the next `tick`; infinity for none."""
        return min(
            [self.subscriptions.due, *(one.deadline for one in self.members.values())]
        )

    # Heartbeats

    def heartbeat(self, beat: Kip848Heartbeat, now: float) -> HeartbeatReply:
        """Handle a valid heartbeat; return its answer."""
        if beat.epoch in {LEAVE, LEAVE_STATIC}:
            return self._leave(beat, now)
        pattern = beat.regex
        if pattern and not is_re2(pattern):
            message = f"SubscribedTopicRegex `{pattern}` is not a valid regex."
            return HeartbeatReply(ErrorCode.INVALID_REGULAR_EXPRESSION, message)
        assignor, epoch = self.assignor, self.epoch
        member, error = self._member(beat)
        if member is None:
            return error
        self.add(member)
        # The right of the member whose heartbeat comes: patterns match only topics that
        # it may describe.
        self.subscriptions.sees = beat.sees
        before = member.subscription
        member.update(beat)
        is_changed = self.update_subscription(member, before, now)
        # Kafka 4.4 compares what is described with what would be used now. Where the
        # two differ without a change, a new epoch starts with each such heartbeat.
        is_followed = self.cluster.has_epochs_of_4_4 and self.epoch == epoch
        if is_followed and self._chosen(member) != assignor:
            self.epoch += 1
        self.assign(member, now)
        member.session_deadline = now + self.config.consumer_session_timeout
        # A member that joins again owns nothing, whatever it owned before.
        owned = frozenset[Slot]() if beat.epoch == 0 else beat.owned
        changed = self.reconcile(member, owned, now, is_changed=is_changed)
        shows = changed or beat.is_full
        assignment = frozenset(member.assigned) if shows else None
        return HeartbeatReply(ErrorCode.NONE, None, member.epoch, assignment)

    def update_subscription(
        self,
        member: Kip848Member,
        before: tuple[frozenset[str], str | None],
        now: float,
    ) -> bool:
        """Start a new epoch if a subscription or the subscribed topics changed.

        Args:
            member: a member whose subscription was just updated.
            before: its subscription until now.
            now: the time.

        Returns:
            Whether the member's subscription changed.
        """
        is_changed = member.subscription != before
        # A new pattern is matched later, and starts a new epoch then.
        waits = member.names == before[0] and member.regex not in {
            None,
            *self.subscriptions.matches,
        }
        if is_changed:
            self.subscriptions.schedule_matching(self.members.values(), now)
        if self.subscriptions.refresh_topics(self.members.values()) or (
            is_changed and not waits
        ):
            self.epoch += 1
        return is_changed

    def owned_by_others(self, member: Kip848Member) -> frozenset[Slot]:
        """Return the partitions that other members have and did not yet release."""
        return frozenset(
            slot
            for one in self.members.values()
            if one is not member
            for slots in (one.assigned, one.revoking)
            for slot in slots
        )

    def reconcile(
        self,
        member: Kip848Member,
        owned: frozenset[Slot] | None,
        now: float,
        *,
        is_changed: bool,
    ) -> bool:
        """Take one step towards a member's target; return whether it changed anything.

        Args:
            member: the member.
            owned: the partitions that it reports to own; None if it reports none.
            now: the time.
            is_changed: whether its subscription has just changed.

        Returns:
            Whether the partitions that the member may read changed.
        """
        wanted = self.subscriptions.wanted(member)
        target = frozenset(
            one for one in self.target.get(member.id, ()) if one[0] in wanted
        )
        # A topic that the member has just unsubscribed from is taken from it at once,
        # without waiting for a new target.
        unwanted = frozenset[Slot]()
        if is_changed:
            unwanted = frozenset(one for one in member.assigned if one[0] not in wanted)
        changed = member.reconcile(
            target, self.target_epoch, owned, self.owned_by_others(member), unwanted
        )
        # Classic members have a join deadline and a sync deadline instead.
        starts = changed and member.state is MemberState.UNREVOKED
        if starts and member.classic is None:
            member.revoke_deadline = now + member.rebalance_timeout
        return changed

    def _member(
        self, beat: Kip848Heartbeat
    ) -> tuple[Kip848Member | None, HeartbeatReply]:
        """Find or create the member of a heartbeat; if that fails, return the error."""
        if self.is_full and beat.member_id not in self.members:
            message = (
                "The consumer group has reached its maximum capacity of"
                f" {self.config.max_size} members."
            )
            return None, HeartbeatReply(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
        if beat.instance_id is not None:
            known = self.static.get(beat.instance_id)
            # A static member that joins again is replaced even under its own id: its
            # process is a new one.
            if known is not None and (known != beat.member_id or beat.epoch == 0):
                return self._replacement(beat, self.members[known])
            if known is None and beat.epoch > 0:
                return None, HeartbeatReply(
                    ErrorCode.UNKNOWN_MEMBER_ID,
                    f"Instance id {beat.instance_id} is unknown.",
                )
        member = self.members.get(beat.member_id)
        if member is not None:
            return self._checked(beat, member)
        if beat.epoch > 0:
            return None, _unknown(beat.member_id, self.id)
        fresh = Kip848Member(id=beat.member_id, instance_id=beat.instance_id)
        return fresh, HeartbeatReply(ErrorCode.NONE)

    def _replacement(
        self, beat: Kip848Heartbeat, old: Kip848Member
    ) -> tuple[Kip848Member | None, HeartbeatReply]:
        """Replace a static member that comes back under a new member id."""
        if beat.epoch > 0:
            return None, HeartbeatReply(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Static member {beat.member_id} with instance id {beat.instance_id}"
                f" was fenced by member {old.id}.",
            )
        # A KIP-848 process that has not left may still read: two of them with one
        # instance id are an error of the user. A classic member cannot announce that it
        # leaves for a moment.
        if not old.left_temporarily and old.classic is None:
            return None, HeartbeatReply(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {beat.member_id} with instance id {beat.instance_id}"
                " cannot join the group because the instance id is owned by"
                f" {old.id} member.",
            )
        return self.replace_static(old, beat.member_id), HeartbeatReply(ErrorCode.NONE)

    def replace_static(self, old: Kip848Member, member_id: str) -> Kip848Member:
        """Replace a static member by one with a new id, which gets its target."""
        target = self.target.pop(old.id, frozenset())
        del self.members[old.id]
        # The new process gets the target of the old one and starts from epoch 0, so
        # that it learns its assignment.
        member = replace(
            old,
            id=member_id,
            epoch=0,
            previous_epoch=0,
            revoke_deadline=inf,
            join_deadline=inf,
            sync_deadline=inf,
        )
        self.add(member)
        self.target[member_id] = target
        return member

    def _checked(
        self, beat: Kip848Heartbeat, member: Kip848Member
    ) -> tuple[Kip848Member | None, HeartbeatReply]:
        # Its process has ended: only one that joins anew, with epoch 0, may take its
        # place.
        if member.left_temporarily:
            return None, _fenced("larger", member.epoch)
        if beat.epoch > member.epoch:
            return None, _fenced("larger", member.epoch)
        if 0 < beat.epoch < member.epoch and not (
            # The answer with the new epoch was lost. The member may continue from the
            # previous epoch if it owns only partitions that are assigned to it.
            beat.epoch == member.previous_epoch
            and beat.owned is not None
            and beat.owned <= member.assigned.keys()
        ):
            return None, _fenced("smaller", member.epoch)
        return member, HeartbeatReply(ErrorCode.NONE)

    @property
    def is_full(self) -> bool:
        """Whether the group has as many members as it can have."""
        return len(self.members) >= self.config.max_size

    def add(self, member: Kip848Member) -> None:
        """Add a member, or update what is known by its ids."""
        self.members[member.id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.id

    # Leaving

    def _leave(self, beat: Kip848Heartbeat, now: float) -> HeartbeatReply:
        member_id = beat.member_id
        if beat.instance_id is not None:
            known = self.static.get(beat.instance_id)
            if known is None:
                message = f"Instance id {beat.instance_id} is unknown."
                return HeartbeatReply(ErrorCode.UNKNOWN_MEMBER_ID, message)
            if known != member_id:
                return HeartbeatReply(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"Static member {member_id} with instance id {beat.instance_id}"
                    f" was fenced by member {known}.",
                )
        member = self.members.get(member_id)
        if member is None:
            return _unknown(member_id, self.id)
        if beat.epoch == LEAVE_STATIC:
            member.epoch = LEAVE_STATIC
            # Its process ends, so it has released what it had to revoke.
            member.revoking = {}
            member.state = MemberState.STABLE
            member.revoke_deadline = inf
            member.session_deadline = now + self.config.consumer_session_timeout
        else:
            self.fence(member)
        return HeartbeatReply(ErrorCode.NONE, None, beat.epoch)

    def leave(self, leavers: Iterable[tuple[str, str | None]]) -> list[ErrorCode]:
        """Remove members by a classic LeaveGroup, all in one change of the epoch.

        Args:
            leavers: member id and instance id of each; a static member can be named by
                the instance id alone.

        Returns:
            An error code for each, in the same order.
        """
        errors: list[ErrorCode] = []
        leaving: dict[str, Kip848Member] = {}
        for member_id, instance_id in leavers:
            known = member_id
            if instance_id is not None:
                known = self.static.get(instance_id, "")
            if known and instance_id is not None and member_id not in {"", known}:
                errors.append(ErrorCode.FENCED_INSTANCE_ID)
            elif known in self.members:
                leaving[known] = self.members[known]
                errors.append(ErrorCode.NONE)
            else:
                errors.append(ErrorCode.UNKNOWN_MEMBER_ID)
        if leaving:
            self.fence(*leaving.values())
        return errors

    def fence(self, *leaving: Kip848Member) -> None:
        """Remove members; their partitions become free for others."""
        # Before they are removed: whether one of those that stay is a KIP-848 member.
        is_downgraded = self.can_downgrade(leaving)
        for member in leaving:
            del self.members[member.id]
            self.target.pop(member.id, None)
            if member.instance_id is not None:
                self.static.pop(member.instance_id, None)
        # The epoch stays: it becomes the generation of the classic group.
        if is_downgraded and self.members:
            self.downgrade = Downgrade.REBALANCE
            return
        # The next heartbeat computes the target.
        self.subscriptions.refresh_topics(self.members.values())
        self.epoch += 1
        if not self.members and self.cluster.has_epochs_of_4_4:
            # There is nothing to compute, and the next member has not to wait.
            self.target_epoch, self._assigned_at = self.epoch, -inf

    def can_downgrade(self, without: Iterable[Kip848Member]) -> bool:
        """Return whether only classic members are left without those given.

        False as well if the migration policy does not allow a downgrade.
        """
        leaving = {one.id for one in without}
        return self.config.allows_downgrade and all(
            one.classic is not None or one.id in leaving
            for one in self.members.values()
        )

    def rebalance(self) -> None:
        """Start a new epoch: the next heartbeat computes the target.

        A target set by a test takes effect at once.
        """
        self.epoch += 1
        if self.manual is not None:
            self.target, self.target_epoch = dict(self.manual), self.epoch

    def tick(self, now: float) -> None:
        """Handle the deadlines that have passed: of members and of patterns."""
        for member in list(self.members.values()):
            # The coordinator replaces a group with only classic members, with all of
            # those that are left.
            if member.deadline <= now and self.downgrade is None:
                self.fence(member)
        due = self.subscriptions.due
        is_changed = due <= now and self.subscriptions.match(self.members.values(), now)
        if is_changed:
            self.subscriptions.refresh_topics(self.members.values())
            self.epoch += 1

    def resume(self, assigned_at: float, fingerprint: int, now: float) -> None:
        """Continue a group that was read from the offsets topic; renew all sessions.

        Args:
            assigned_at: when the target was computed.
            fingerprint: fingerprint of the topics at that time; if it differs now, a
                new epoch starts.
            now: the time.
        """
        is_new = not self.members and self.cluster.has_epochs_of_4_4
        self._assigned_at = -inf if is_new else assigned_at
        self.subscriptions.resume(self.members.values(), now)
        if self.subscriptions.fingerprint != fingerprint:
            self.epoch += 1
        for member in self.members.values():
            member.session_deadline = now + self.config.consumer_session_timeout
            if member.state is MemberState.UNREVOKED:
                member.revoke_deadline = now + member.rebalance_timeout

    # Commits

    def check_commit(
        self, member_id: str, epoch: int, slots: frozenset[Slot]
    ) -> ErrorCode:
        """Check whether a member may commit offsets of these partitions.

        An older epoch than the member's is accepted for partitions that the member has
        had since that epoch (KIP-1251). One other partition refuses the whole commit.
        """
        if not self.members and epoch < 0:
            return ErrorCode.NONE
        error = self.check_fetch(member_id, epoch)
        member = self.members.get(member_id)
        if not error or member is None or epoch > member.epoch:
            return error
        # Partitions that it still has to revoke are its own until it has done so.
        since = member.assigned | member.revoking
        if all(slot in since and since[slot] <= epoch for slot in slots):
            return ErrorCode.NONE
        return error

    def check_fetch(self, member_id: str, epoch: int) -> ErrorCode:
        """Check that a request names a member and its current epoch."""
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if epoch == member.epoch:
            return ErrorCode.NONE
        if member.classic is not None:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.STALE_MEMBER_EPOCH

    # Topics and targets

    def topics_of(self, member: Kip848Member) -> frozenset[str]:
        """Return the names of the topics that a member subscribes to."""
        return self.subscriptions.topics_of(member)

    def assign(self, member: Kip848Member, now: float) -> None:
        """Compute the target if it is of an older epoch.

        Not before ``assignment_interval`` has passed since the last computation.
        """
        if self.target_epoch == self.epoch:
            return
        due = self._assigned_at + self.config.assignment_interval
        if now < due:
            return
        self._assigned_at = now
        self.target_epoch = self.epoch
        if self.manual is not None:
            self.target = dict(self.manual)
        elif self.members:
            self.target = ASSIGNORS[self._chosen(member)](self._spec())

    def _chosen(self, member: Kip848Member) -> str:
        """Return the assignor to use, which can differ from the one that is described.

        If each assignor has one vote at most, Kafka uses that of the member whose
        heartbeat computes the target.
        """
        votes = self._votes
        if member.assignor and votes[member.assignor] == max(votes.values()) == 1:
            return member.assignor
        return self.assignor

    def _spec(self) -> Spec:
        return Spec(
            subscriptions={
                one.id: self.subscriptions.wanted(one) for one in self.members.values()
            },
            partitions=self.subscriptions.partitions,
            # The target and not what members own: what is on its way to a member stays
            # with it.
            current=self.target,
            instances={member: instance for instance, member in self.static.items()},
        )


def _fenced(than: str, epoch: int) -> HeartbeatReply:
    return HeartbeatReply(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {than} member epoch than the one known by"
        f" the group coordinator ({epoch}). The member must abandon all its partitions"
        " and rejoin.",
    )


def _unknown(member_id: str, group_id: str) -> HeartbeatReply:
    message = f"Member {member_id} is not a member of group {group_id}."
    return HeartbeatReply(ErrorCode.UNKNOWN_MEMBER_ID, message)
