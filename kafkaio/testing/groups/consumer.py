"""A group of the consumer protocol (KIP-848), as its coordinator keeps it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import inf
from uuid import UUID

from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.testing.groups.assignors import (
    ASSIGNORS,
    Slot,
    Spec,
)
from kafkaio.testing.groups.config import GroupConfig
from kafkaio.testing.groups.consumer_member import (
    LEAVE,
    LEAVE_STATIC,
    Beat,
    ConsumerMember,
    MemberState,
)
from kafkaio.testing.groups.home import Home
from kafkaio.testing.groups.regex import compile_re2, is_re2

__all__ = ["ConsumerGroup", "Reply", "State"]


class State:
    """The states of a group, by the names that Kafka shows."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


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
    ``deadline``.
    """

    def __init__(
        self, group_id: str, config: GroupConfig, topics: Home, now_ms: int = 0
    ) -> None:
        self.id = group_id
        self.epoch = 1
        self.members: dict[str, ConsumerMember] = {}
        self.static: dict[str, str] = {}
        self.target: dict[str, frozenset[Slot]] = {}
        self.target_epoch = 0
        #: Targets given by hand; while there is one, no assignor is asked.
        self.manual: dict[str, frozenset[Slot]] | None = None
        self.empty_since_ms = now_ms
        self._config = config
        self._topics = topics
        self._shape: dict[str, tuple[UUID, int]] = {}
        self._matches: dict[str, frozenset[str]] = {}
        self._regex_due = inf
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
        times = [self._regex_due]
        for one in self.members.values():
            times += (one.session_deadline, one.revoke_deadline)
        return min(times)

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
        self._enter(member)
        before = member.subscription
        member.update(beat)
        is_changed = member.subscription != before
        # What a new pattern matches is found out later, and moves the group on then.
        waits = member.names == before[0] and member.regex not in {None, *self._matches}
        if is_changed:
            self._find_matches(now)
        if self._look_at_topics() or (is_changed and not waits):
            self.epoch += 1
        self._assign(member, now)
        member.session_deadline = now + self._config.consumer_session_timeout
        changed = self._reconcile(member, beat, now, is_changed=is_changed)
        shows = changed or beat.is_full
        assignment = frozenset(member.assigned) if shows else None
        return Reply(ErrorCode.NONE, None, member.epoch, assignment)

    def _reconcile(
        self, member: ConsumerMember, beat: Beat, now: float, *, is_changed: bool
    ) -> bool:
        taken = frozenset(
            slot
            for one in self.members.values()
            if one is not member
            for slots in (one.assigned, one.revoking)
            for slot in slots
        )
        # Whoever joins anew has nothing, whatever it had.
        owned = frozenset[Slot]() if beat.epoch == 0 else beat.owned
        target = self.target.get(member.id, frozenset())
        unwanted = frozenset[Slot]()
        if is_changed:
            wanted = self._wanted(member)
            unwanted = frozenset(one for one in member.assigned if one[0] not in wanted)
        changed = member.reconcile(target, self.target_epoch, owned, taken, unwanted)
        if changed and member.state is MemberState.UNREVOKED:
            member.revoke_deadline = now + member.rebalance_timeout
        return changed

    def _member(self, beat: Beat) -> tuple[ConsumerMember | None, Reply]:
        """Find or make the member that a heartbeat is from; else say what is wrong."""
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
        if len(self.members) >= self._config.max_size:
            message = (
                "The consumer group has reached its maximum capacity of"
                f" {self._config.max_size} members."
            )
            return None, Reply(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
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
        if not old.is_away:
            return None, Reply(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {beat.member_id} with instance id {beat.instance_id}"
                " cannot join the group because the instance id is owned by"
                f" {old.id} member.",
            )
        target = self.target.pop(old.id, frozenset())
        del self.members[old.id]
        member = replace(old, id=beat.member_id, epoch=0, previous_epoch=0)
        self.members[member.id] = member
        self.target[member.id] = target
        return member, Reply(ErrorCode.NONE)

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

    def _enter(self, member: ConsumerMember) -> None:
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
            member.session_deadline = now + self._config.consumer_session_timeout
        else:
            self.fence(member)
        return Reply(ErrorCode.NONE, None, beat.epoch)

    def leave(self, member_id: str, instance_id: str | None, now: float) -> ErrorCode:
        """Remove a member that an administrator names."""
        if instance_id is not None:
            known = self.static.get(instance_id, "")
            if known and member_id not in {"", known}:
                return ErrorCode.FENCED_INSTANCE_ID
            member_id = known
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self.fence(member)
        return ErrorCode.NONE

    def fence(self, member: ConsumerMember) -> None:
        """Remove a member; what it had is free for the others."""
        del self.members[member.id]
        self.target.pop(member.id, None)
        if member.instance_id is not None:
            self.static.pop(member.instance_id, None)
        # The next heartbeat has the target computed.
        self._look_at_topics()
        self.epoch += 1

    def rebalance(self) -> None:
        """Have the next heartbeat compute the target; one by hand is there at once."""
        self.epoch += 1
        if self.manual is not None:
            self.target, self.target_epoch = dict(self.manual), self.epoch

    def tick(self, now: float) -> None:
        """Do what is due: sessions and revocations that took too long, and patterns."""
        for member in list(self.members.values()):
            if min(member.session_deadline, member.revoke_deadline) <= now:
                self.fence(member)
        is_changed = self._regex_due <= now and self._match(now)
        if is_changed:
            self._look_at_topics()
            self.epoch += 1

    def move(self, now: float) -> None:
        """Start every session anew: another node is the coordinator from now on."""
        for member in self.members.values():
            member.session_deadline = now + self._config.consumer_session_timeout

    # Commits

    def check_commit(
        self, member_id: str, epoch: int, slots: frozenset[Slot] | None = None
    ) -> ErrorCode:
        """Say whether a member may commit, or with ``slots`` None fetch, offsets.

        An epoch that is behind is good for partitions that the member has had since
        then (KIP-1251); one partition that is not refuses them all.
        """
        if not self.members and epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if epoch == member.epoch:
            return ErrorCode.NONE
        if epoch > member.epoch or slots is None:
            return ErrorCode.STALE_MEMBER_EPOCH
        since = member.assigned | member.revoking
        if all(slot in since and since[slot] <= epoch for slot in slots):
            return ErrorCode.NONE
        return ErrorCode.STALE_MEMBER_EPOCH

    # Topics and targets

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the names of the topics that a member reads."""
        matches = self._matches.get(member.regex or "", frozenset())
        return member.names | matches

    def _wanted(self, member: ConsumerMember) -> frozenset[UUID]:
        """Return the ids of the topics that a member reads and that there are."""
        names = self.topics_of(member) & self._shape.keys()
        return frozenset(self._shape[name][0] for name in names)

    def _find_matches(self, now: float) -> None:
        """Have patterns that are new matched soon: an answer does not wait for it."""
        patterns = {one.regex for one in self.members.values() if one.regex}
        self._matches = {
            one: names for one, names in self._matches.items() if one in patterns
        }
        if patterns - self._matches.keys():
            self._regex_due = now
        elif not patterns:
            self._regex_due = inf

    def _match(self, now: float) -> bool:
        patterns = {one.regex for one in self.members.values() if one.regex}
        names = list(self._topics.topic_names())
        matches = {
            pattern: frozenset(filter(compile_re2(pattern).fullmatch, names))
            for pattern in patterns
        }
        is_changed = any(
            names != self._matches.get(pattern, frozenset())
            for pattern, names in matches.items()
        )
        self._matches = matches
        self._regex_due = inf
        if patterns:
            self._regex_due = now + self._config.regex_refresh_interval
        return is_changed

    def _look_at_topics(self) -> bool:
        """Say whether topics came, went or grew."""
        shape: dict[str, tuple[UUID, int]] = {}
        for name in frozenset().union(*map(self.topics_of, self.members.values())):
            topic_id = self._topics.topic_id(name)
            if topic_id is not None:
                shape[name] = topic_id, self._topics.partition_count(name)
        is_changed = shape != self._shape
        self._shape = shape
        return is_changed

    def _assign(self, member: ConsumerMember, now: float) -> None:
        if self.target_epoch == self.epoch:
            return
        due = self._assigned_at + self._config.assignment_interval
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
            subscriptions={one.id: self._wanted(one) for one in self.members.values()},
            partitions=dict(self._shape.values()),
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
