"""A group of the consumer protocol (KIP-848), as its coordinator keeps it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from math import inf

from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.testing.groups.assignors import (
    ASSIGNORS,
    Slot,
    Spec,
)
from kafkaio.testing.groups.config import GroupConfig
from kafkaio.testing.groups.home import Home
from kafkaio.testing.groups.kip848_member import (
    LEAVE,
    LEAVE_STATIC,
    Beat,
    ConsumerMember,
    MemberState,
)
from kafkaio.testing.groups.regex import is_re2
from kafkaio.testing.groups.subscriptions import Subscriptions

__all__ = ["ConsumerGroup", "Downgrade", "Reply", "State"]


class State:
    """The states of a group, by the names that Kafka shows."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class Downgrade(Enum):
    """What is to happen to a group that only classic members are left in."""

    KEEP = "they keep what they have"
    REBALANCE = "they divide the partitions anew"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a heartbeat is answered; ``assignment`` None means: as before."""

    error: ErrorCode
    message: str | None = None
    epoch: int = 0
    assignment: frozenset[Slot] | None = None


class ConsumerGroup:
    """Members, epochs and target of one group; pure: time is an argument.

    The group's epoch counts the changes of members, subscriptions and topics; the
    target is computed for an epoch; each member follows at its own pace, and keeps its
    old epoch until it has released what it must. ``tick`` must be called at
    ``deadline``. Members may be of the classic protocol, which ``mixed`` speaks.

    Attributes:
        downgrade: set when only classic members are left: whoever keeps the group is
            to make it a classic one.
    """

    def __init__(self, group_id: str, config: GroupConfig, home: Home) -> None:
        self.id = group_id
        self.epoch = 1
        self.members: dict[str, ConsumerMember] = {}
        self.static: dict[str, str] = {}
        self.target: dict[str, frozenset[Slot]] = {}
        self.target_epoch = 0
        #: Targets given by hand; while there is one, no assignor is asked.
        self.manual: dict[str, frozenset[Slot]] | None = None
        self.downgrade: Downgrade | None = None
        self.config = config
        self.home = home
        self.subscriptions = Subscriptions(home, config.regex_refresh_interval)
        self._assigned_at = -inf

    @property
    def state(self) -> str:
        """The state by its name."""
        if not self.members:
            return State.EMPTY
        if self.target_epoch < self.epoch:
            return State.ASSIGNING
        if all(
            one.state is MemberState.STABLE and one.epoch == self.target_epoch
            for one in self.members.values()
        ):
            return State.STABLE
        return State.RECONCILING

    @property
    def assignor(self) -> str:
        """The assignor that most members want, the default if none says."""
        return max(ASSIGNORS, key=lambda name: self._votes[name])

    @property
    def _votes(self) -> Counter[str]:
        return Counter(one.assignor for one in self.members.values() if one.assignor)

    @property
    def deadline(self) -> float:
        """When ``tick`` is due next."""
        return min(
            [self.subscriptions.due, *(one.deadline for one in self.members.values())]
        )

    # Heartbeats

    def heartbeat(self, beat: Beat, now: float) -> Reply:
        """Take a heartbeat in that is well formed; answer it."""
        if beat.epoch in {LEAVE, LEAVE_STATIC}:
            return self._leave(beat, now)
        pattern = beat.regex
        if pattern and not is_re2(pattern):
            message = f"SubscribedTopicRegex `{pattern}` is not a valid regex."
            return Reply(ErrorCode.INVALID_REGULAR_EXPRESSION, message)
        member, error = self._member(beat)
        if member is None:
            return error
        self.enter(member)
        before = member.subscription
        member.update(beat)
        is_changed = self.notice(member, before, now)
        self.assign(member, now)
        member.session_deadline = now + self.config.consumer_session_timeout
        # Whoever joins anew has nothing, whatever it had.
        owned = frozenset[Slot]() if beat.epoch == 0 else beat.owned
        changed = self.reconcile(member, owned, now, is_changed=is_changed)
        shows = changed or beat.is_full
        assignment = frozenset(member.assigned) if shows else None
        return Reply(ErrorCode.NONE, None, member.epoch, assignment)

    def notice(
        self,
        member: ConsumerMember,
        before: tuple[frozenset[str], str | None],
        now: float,
    ) -> bool:
        """Take note of what a member reads, and of topics, which moves the group on.

        Args:
            member: who has just said what it reads.
            before: its subscription until now.
            now: the time.

        Returns:
            Whether the member reads something else.
        """
        is_changed = member.subscription != before
        # What a new pattern matches is found out later, and moves the group on then.
        waits = member.names == before[0] and member.regex not in {
            None,
            *self.subscriptions.matches,
        }
        if is_changed:
            self.subscriptions.find(self.members.values(), now)
        if self.subscriptions.look(self.members.values()) or (is_changed and not waits):
            self.epoch += 1
        return is_changed

    def taken(self, member: ConsumerMember) -> frozenset[Slot]:
        """Return what other members than this one have not given up."""
        return frozenset(
            slot
            for one in self.members.values()
            if one is not member
            for slots in (one.assigned, one.revoking)
            for slot in slots
        )

    def reconcile(
        self,
        member: ConsumerMember,
        owned: frozenset[Slot] | None,
        now: float,
        *,
        is_changed: bool,
    ) -> bool:
        """Go a step towards a member's target; say whether what it may read changed.

        Args:
            member: the member.
            owned: what it says it has; None if it does not say.
            now: the time.
            is_changed: whether it has just subscribed to something else.
        """
        wanted = self.subscriptions.wanted(member)
        target = frozenset(
            one for one in self.target.get(member.id, ()) if one[0] in wanted
        )
        unwanted = frozenset[Slot]()
        if is_changed:
            unwanted = frozenset(one for one in member.assigned if one[0] not in wanted)
        changed = member.reconcile(
            target, self.target_epoch, owned, self.taken(member), unwanted
        )
        # Classic members have until they joined again, and then until they synced.
        starts = changed and member.state is MemberState.UNREVOKED
        if starts and member.classic is None:
            member.revoke_deadline = now + member.rebalance_timeout
        return changed

    def _member(self, beat: Beat) -> tuple[ConsumerMember | None, Reply]:
        """Find or make the member that a heartbeat is from; else say what is wrong."""
        if self.is_full and beat.member_id not in self.members:
            message = (
                "The consumer group has reached its maximum capacity of"
                f" {self.config.max_size} members."
            )
            return None, Reply(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
        if beat.instance_id is not None:
            known = self.static.get(beat.instance_id)
            if known is not None and (known != beat.member_id or beat.epoch == 0):
                return self._successor(beat, self.members[known])
            if known is None and beat.epoch > 0:
                return None, Reply(
                    ErrorCode.UNKNOWN_MEMBER_ID,
                    f"Instance id {beat.instance_id} is unknown.",
                )
        member = self.members.get(beat.member_id)
        if member is not None:
            return self._checked(beat, member)
        if beat.epoch > 0:
            return None, _unknown(beat.member_id, self.id)
        fresh = ConsumerMember(id=beat.member_id, instance_id=beat.instance_id)
        return fresh, Reply(ErrorCode.NONE)

    def _successor(
        self, beat: Beat, old: ConsumerMember
    ) -> tuple[ConsumerMember | None, Reply]:
        """Let a static member take the place it left, under its new id."""
        if beat.epoch > 0:
            return None, Reply(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Static member {beat.member_id} with instance id {beat.instance_id}"
                f" was fenced by member {old.id}.",
            )
        if not old.is_away and old.classic is None:
            return None, Reply(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {beat.member_id} with instance id {beat.instance_id}"
                " cannot join the group because the instance id is owned by"
                f" {old.id} member.",
            )
        return self.succeed(old, beat.member_id), Reply(ErrorCode.NONE)

    def succeed(self, old: ConsumerMember, member_id: str) -> ConsumerMember:
        """Give a static member's place and target to who comes under a new id."""
        target = self.target.pop(old.id, frozenset())
        del self.members[old.id]
        member = replace(
            old,
            id=member_id,
            epoch=0,
            previous_epoch=0,
            revoke_deadline=inf,
            join_deadline=inf,
            sync_deadline=inf,
        )
        self.enter(member)
        self.target[member_id] = target
        return member

    def _checked(
        self, beat: Beat, member: ConsumerMember
    ) -> tuple[ConsumerMember | None, Reply]:
        if member.is_away:
            return None, _fenced("larger", member.epoch)
        if beat.epoch > member.epoch:
            return None, _fenced("larger", member.epoch)
        if 0 < beat.epoch < member.epoch and not (
            # The answer that made it go on was lost: it may catch up, if it has
            # nothing that it must not have.
            beat.epoch == member.previous_epoch
            and beat.owned is not None
            and beat.owned <= member.assigned.keys()
        ):
            return None, _fenced("smaller", member.epoch)
        return member, Reply(ErrorCode.NONE)

    @property
    def is_full(self) -> bool:
        """Whether nobody else may join."""
        return len(self.members) >= self.config.max_size

    def enter(self, member: ConsumerMember) -> None:
        """Add a member, or know it by its ids anew."""
        self.members[member.id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.id

    # Leaving

    def _leave(self, beat: Beat, now: float) -> Reply:
        member_id = beat.member_id
        if beat.instance_id is not None:
            known = self.static.get(beat.instance_id)
            if known is None:
                message = f"Instance id {beat.instance_id} is unknown."
                return Reply(ErrorCode.UNKNOWN_MEMBER_ID, message)
            if known != member_id:
                return Reply(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"Static member {member_id} with instance id {beat.instance_id}"
                    f" was fenced by member {known}.",
                )
        member = self.members.get(member_id)
        if member is None:
            return _unknown(member_id, self.id)
        if beat.epoch == LEAVE_STATIC:
            member.epoch = LEAVE_STATIC
            # Its process ends: what it was to give up, it has.
            member.revoking = {}
            member.state = MemberState.STABLE
            member.revoke_deadline = inf
            member.session_deadline = now + self.config.consumer_session_timeout
        else:
            self.fence(member)
        return Reply(ErrorCode.NONE, None, beat.epoch)

    def leave(self, leavers: Iterable[tuple[str, str | None]]) -> list[ErrorCode]:
        """Remove members by a classic LeaveGroup; they go at once, as one change.

        Args:
            leavers: member id and instance id of each; static members may be named by
                the latter alone.

        Returns:
            An error for each.
        """
        errors: list[ErrorCode] = []
        leaving: dict[str, ConsumerMember] = {}
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

    def fence(self, *leaving: ConsumerMember) -> None:
        """Remove members; what they had is free for the others."""
        is_downgraded = self.can_downgrade(leaving)
        for member in leaving:
            del self.members[member.id]
            self.target.pop(member.id, None)
            if member.instance_id is not None:
                self.static.pop(member.instance_id, None)
        if is_downgraded and self.members:
            self.downgrade = Downgrade.REBALANCE
            return
        # The next heartbeat has the target computed.
        self.subscriptions.look(self.members.values())
        self.epoch += 1

    def can_downgrade(self, without: Iterable[ConsumerMember]) -> bool:
        """Say whether only classic members are there but for some who go."""
        going = {one.id for one in without}
        return self.config.allows_downgrade and all(
            one.classic is not None or one.id in going for one in self.members.values()
        )

    def rebalance(self) -> None:
        """Have the next heartbeat compute the target; one by hand is there at once."""
        self.epoch += 1
        if self.manual is not None:
            self.target, self.target_epoch = dict(self.manual), self.epoch

    def tick(self, now: float) -> None:
        """Do what is due: sessions and revocations that took too long, and patterns."""
        for member in list(self.members.values()):
            if member.deadline <= now and self.downgrade is None:
                self.fence(member)
        due = self.subscriptions.due
        is_changed = due <= now and self.subscriptions.match(self.members.values(), now)
        if is_changed:
            self.subscriptions.look(self.members.values())
            self.epoch += 1

    def resume(self, assigned_at: float, fingerprint: int, now: float) -> None:
        """Go on where an earlier coordinator stopped, with sessions begun anew.

        Args:
            assigned_at: when the target was computed.
            fingerprint: that of the topics then: if they are others now, the group
                has to move on.
            now: the time.
        """
        self._assigned_at = assigned_at
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
        """Say whether a member may commit.

        An epoch that is behind is good for partitions that the member has had since
        then (KIP-1251); one partition that is not refuses them all.
        """
        if not self.members and epoch < 0:
            return ErrorCode.NONE
        error = self.check_fetch(member_id, epoch)
        member = self.members.get(member_id)
        if not error or member is None or epoch > member.epoch:
            return error
        since = member.assigned | member.revoking
        if all(slot in since and since[slot] <= epoch for slot in slots):
            return ErrorCode.NONE
        return error

    def check_fetch(self, member_id: str, epoch: int) -> ErrorCode:
        """Say whether a request is from a member that knows its epoch."""
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if epoch == member.epoch:
            return ErrorCode.NONE
        if member.classic is not None:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.STALE_MEMBER_EPOCH

    # Topics and targets

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the names of the topics that a member reads."""
        return self.subscriptions.topics_of(member)

    def assign(self, member: ConsumerMember, now: float) -> None:
        """Compute the target if it is of an earlier epoch, and if it is time."""
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

    def _chosen(self, member: ConsumerMember) -> str:
        """Return the assignor to ask, which may not be the one that is told.

        If as many members want another, Kafka prefers what only the member wants that
        has the target computed.
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
            current=self.target,
            instances={member: instance for instance, member in self.static.items()},
        )


def _fenced(than: str, epoch: int) -> Reply:
    return Reply(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {than} member epoch than the one known by"
        f" the group coordinator ({epoch}). The member must abandon all its partitions"
        " and rejoin.",
    )


def _unknown(member_id: str, group_id: str) -> Reply:
    message = f"Member {member_id} is not a member of group {group_id}."
    return Reply(ErrorCode.UNKNOWN_MEMBER_ID, message)
