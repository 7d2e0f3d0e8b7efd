"""A classic group on the side of its coordinator: a pure state machine."""

from __future__ import annotations

from math import inf

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Response
from kafkaio.protocol.messages.join_group import (
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from kafkaio.protocol.messages.sync_group import SyncGroupResponse
from kafkaio.testing._broker.group_config import GroupConfig
from kafkaio.testing._groups.classic_member import (
    ClassicGroupState,
    ClassicMember,
    JoinRequest,
    SyncRequest,
)
from kafkaio.testing._groups.java import java_order, text_hash


class ClassicGroup:
    """Members, generation and state of one group. Time is an argument of its methods.

    The answer to a JoinGroup waits for the other members, that to a SyncGroup for the
    leader. The caller gives each of these requests a number (``reply``); the answer
    appears in ``answers`` with that number, at once or after a later call. The caller
    must call `tick` at `deadline`.

    The states are Kafka's: EMPTY; PREPARING while members join; COMPLETING while they
    wait for the leader's assignment; STABLE.

    Attributes:
        members: by member id, in the order in which they joined.
        static: member ids by instance id.
        answers: answers that are ready, to be taken by the caller.
        empty_since_ms: when the group became empty, for the expiration of offsets.
        changes: counts the changes that have to be written to the offsets topic.
    """

    def __init__(self, group_id: str, config: GroupConfig, now_ms: int = 0) -> None:
        self.id = group_id
        self.state: ClassicGroupState = ClassicGroupState.EMPTY
        self.generation: int = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static: dict[str, str] = {}
        self.answers: list[tuple[int, Response]] = []
        self.empty_since_ms = now_ms
        self.changes: int = 0
        self._config = config
        # Member ids that were handed out (KIP-394) but have not joined, and until when.
        self._pending: dict[str, float] = {}
        # Members of this generation that have sent no SyncGroup.
        self._unsynced: set[str] = set()
        # The join phase ends at _join_deadline. In the initial delay every new member
        # moves it, up to _join_limit.
        self._join_deadline = inf
        self._join_limit = inf
        self._sync_deadline = inf
        self._is_initial = False

    @property
    def deadline(self) -> float:
        """The time of the next `tick`; infinity for none."""
        sessions = (member.session_deadline for member in self.members.values())
        return min(
            self._join_deadline,
            self._sync_deadline,
            *self._pending.values(),
            *sessions,
            inf,
        )

    # Joining

    def join(self, joining: JoinRequest, reply: int, now: float) -> None:
        """Handle a JoinGroup; its answer may have to wait for the other members."""
        error = self._refuse(joining)
        if error:
            self._fail_join(reply, error, joining.member_id)
        elif joining.member_id:
            self._join_known(joining, reply, now)
        elif joining.instance_id is not None:
            self._join_static(joining, reply, now)
        elif joining.knows_member_id_required:
            member_id = f"{joining.client_id}-{joining.new_id}"
            self._pending[member_id] = now + joining.session_timeout
            self._fail_join(reply, ErrorCode.MEMBER_ID_REQUIRED, member_id)
        else:
            self._add(f"{joining.client_id}-{joining.new_id}", joining, reply, now)

    def _refuse(self, joining: JoinRequest) -> ErrorCode:
        if joining.member_id not in self.members and self._is_full:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if not self._supports(joining):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    @property
    def _is_full(self) -> bool:
        members = self.members.values()
        if self.state is ClassicGroupState.PREPARING:
            # While members join, only those that have joined count, as in Kafka: the
            # place of one that has not come back is free.
            counted = sum(member.join_reply is not None for member in members)
        else:
            counted = len(members)
        return counted >= self._config.max_size

    def _supports(self, joining: JoinRequest) -> bool:
        if not self.members:
            # The first member decides what the group is for.
            return bool(joining.protocol_type and joining.protocols)
        names = {name for name, _ in joining.protocols}
        return joining.protocol_type == self.protocol_type and bool(
            names & self._common_protocols()
        )

    def _common_protocols(self) -> set[str]:
        return set.intersection(
            *(
                {name for name, _ in member.protocols}
                for member in self.members.values()
            )
        )

    def _join_known(self, joining: JoinRequest, reply: int, now: float) -> None:
        member_id = joining.member_id
        if self._pending.pop(member_id, None) is not None:
            self._add(member_id, joining, reply, now)
            return
        member, error = self._find(member_id, joining.instance_id)
        if member is None:
            self._fail_join(reply, error, member_id)
        # A follower of a stable group that joins unchanged repeats a request whose
        # response was lost. The leader does so to cause a rebalance, such as for new
        # partitions.
        elif (
            self.state is ClassicGroupState.PREPARING
            or member.protocols != joining.protocols
            or (self.state is ClassicGroupState.STABLE and member.id == self.leader)
        ):
            self._rejoin(member, joining, reply, now)
        else:
            member.update(joining)
            member.renew_session(now)
            shows_members = (
                self.state is ClassicGroupState.COMPLETING and member.id == self.leader
            )
            self._answer_join(reply, member, with_members=shows_members)

    def _join_static(self, joining: JoinRequest, reply: int, now: float) -> None:
        assert joining.instance_id is not None
        old_id = self.static.get(joining.instance_id)
        new_id = f"{joining.instance_id}-{joining.new_id}"
        if old_id is None:
            self._add(new_id, joining, reply, now)
            return
        old_leader = self.leader
        member = self._replace(old_id, new_id)
        member.update(joining)
        member.renew_session(now)
        # A static member that comes back gets its assignment without a rebalance
        # (KIP-345), unless its protocols change what the group has agreed on.
        if self.state is not ClassicGroupState.STABLE or self.select() != self.protocol:
            self._rejoin(member, joining, reply, now)
            return
        self.changes += 1
        is_leader = self.leader == member.id
        skips = joining.may_skip_assignment and is_leader
        answer = self._joined(member, with_members=skips)
        answer.skip_assignment = skips
        if not joining.may_skip_assignment:
            # Before version 9, a client that is told that it leads would compute a new
            # assignment, which a stable group ignores. So it is told the old leader's
            # id and stays a follower.
            answer.leader = old_leader or ""
        self.answers.append((reply, answer))

    def _replace(self, old_id: str, new_id: str) -> ClassicMember:
        member = self.members[old_id]
        # The process that had this instance id before may still wait: it has to stop.
        self._fail_waiting(member, ErrorCode.FENCED_INSTANCE_ID)
        # In its place: the order of the members stays.
        self.members = {
            (new_id if id_ == old_id else id_): one for id_, one in self.members.items()
        }
        member.id = new_id
        assert member.instance_id is not None
        self.static[member.instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        if old_id in self._unsynced:
            self._unsynced.discard(old_id)
            self._unsynced.add(new_id)
        return member

    def _add(
        self, member_id: str, joining: JoinRequest, reply: int, now: float
    ) -> None:
        if not self.members:
            self.protocol_type = joining.protocol_type
        member = ClassicMember(
            id=member_id,
            instance_id=joining.instance_id,
            client_id=joining.client_id,
            client_host=joining.client_host,
            session_timeout=joining.session_timeout,
            rebalance_timeout=joining.rebalance_timeout,
            protocols=joining.protocols,
        )
        self.members[member_id] = member
        if joining.instance_id is not None:
            self.static[joining.instance_id] = member_id
        if self.leader is None:
            self.leader = member_id
        if self.state is ClassicGroupState.PREPARING and self._is_initial:
            delay = now + self._config.initial_rebalance_delay
            self._join_deadline = min(delay, self._join_limit)
        self._rejoin(member, joining, reply, now)

    def _rejoin(
        self, member: ClassicMember, joining: JoinRequest, reply: int, now: float
    ) -> None:
        member.update(joining)
        if member.join_reply is not None:
            # The client has abandoned the earlier request: it lost its connection.
            self._fail_join(
                member.join_reply, ErrorCode.REBALANCE_IN_PROGRESS, member.id
            )
        # While its request waits, a member sends no heartbeats and its session does not
        # expire.
        member.join_reply = reply
        member.session_deadline = inf
        self._prepare(now)

    def _prepare(self, now: float) -> None:
        """Start a rebalance, or continue the one that is in progress."""
        if self.state is not ClassicGroupState.PREPARING:
            for member in self.members.values():
                if self.state is ClassicGroupState.COMPLETING:
                    member.assignment = b""
                if member.sync_reply is not None:
                    self._fail_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
                    member.renew_session(now)
            self._is_initial = self.state is ClassicGroupState.EMPTY
            self._unsynced.clear()
            self._sync_deadline = inf
            self.state = ClassicGroupState.PREPARING
            timeout = self._rebalance_timeout
            self._join_limit = now + timeout
            delay = timeout
            if self._is_initial:
                delay = min(self._config.initial_rebalance_delay, timeout)
            self._join_deadline = now + delay
        self._maybe_complete(now)

    @property
    def _rebalance_timeout(self) -> float:
        timeouts = (member.rebalance_timeout for member in self.members.values())
        return max(timeouts, default=0.0)

    def _maybe_complete(self, now: float) -> None:
        joined = all(member.join_reply is not None for member in self.members.values())
        if self._join_deadline <= now or (
            joined and not self._pending and not self._is_initial
        ):
            self._complete(now)

    def _complete(self, now: float) -> None:
        """End the join phase: the members that joined form the next generation."""
        for member in list(self.members.values()):
            # A static member that has not joined stays until its session ends
            # (KIP-345).
            if member.join_reply is None and member.instance_id is None:
                self._remove(member)
        here = [one for one in self.members.values() if one.join_reply is not None]
        if self.members and not here:
            # Only static members are left, and none has joined: they may come back.
            self._join_deadline = now + self._rebalance_timeout
            return
        self._join_deadline = self._join_limit = inf
        self._is_initial = False
        self.generation += 1
        self.changes += 1
        if not here:
            self.state = ClassicGroupState.EMPTY
            self.protocol = None
            return
        if self.leader not in {member.id for member in here}:
            self.leader = here[0].id
        self.state = ClassicGroupState.COMPLETING
        self.protocol = self.select()
        self._unsynced = set(self.members)
        self._sync_deadline = now + self._rebalance_timeout
        for member in self.members.values():
            member.renew_session(now)
            if member.join_reply is not None:
                reply, member.join_reply = member.join_reply, None
                is_leader = member.id == self.leader
                self._answer_join(reply, member, with_members=is_leader)

    def select(self) -> str:
        """Return the protocol that all members support and most prefer."""
        common = self._common_protocols()
        votes: dict[str, int] = {}
        for member in self.members.values():
            best = next(name for name, _ in member.protocols if name in common)
            votes[best] = votes.get(best, 0) + 1
        # Of several with equal votes, the first in the order of Java's HashMap wins.
        return max(java_order(votes, text_hash), key=lambda name: votes[name])

    # SyncRequest, heartbeats, leaving

    def sync(self, syncing: SyncRequest, reply: int, now: float) -> None:
        """Handle a SyncGroup; its answer may have to wait for the leader's."""
        member, error = self._find(syncing.member_id, syncing.instance_id)
        if member is None:
            self._answer_sync(reply, b"", error)
        elif syncing.generation != self.generation:
            self._answer_sync(reply, b"", ErrorCode.ILLEGAL_GENERATION)
        elif not syncing.agrees(self.protocol_type, self.protocol):
            self._answer_sync(reply, b"", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif self.state is ClassicGroupState.PREPARING:
            self._answer_sync(reply, b"", ErrorCode.REBALANCE_IN_PROGRESS)
        else:
            self._sync(member, syncing.assignments, reply, now)

    def _sync(
        self,
        member: ClassicMember,
        assignments: dict[str, bytes],
        reply: int,
        now: float,
    ) -> None:
        self._unsynced.discard(member.id)
        if not self._unsynced:
            self._sync_deadline = inf
        # The leader was quicker: its assignment is there.
        if self.state is ClassicGroupState.STABLE:
            member.renew_session(now)
            self._answer_sync(reply, member.assignment)
            return
        if member.sync_reply is not None:
            self._fail_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
        member.sync_reply = reply
        member.session_deadline = inf
        # A follower waits for the leader, also without a heartbeat.
        if member.id != self.leader:
            return
        self.state = ClassicGroupState.STABLE
        self.changes += 1
        for one in self.members.values():
            one.assignment = assignments.get(one.id, b"")
            if one.sync_reply is not None:
                self._answer_sync(one.sync_reply, one.assignment)
                one.sync_reply = None
                one.renew_session(now)

    def heartbeat(
        self, member_id: str, instance_id: str | None, generation: int, now: float
    ) -> ErrorCode:
        """Renew a member's session; REBALANCE_IN_PROGRESS makes it join again."""
        member, error = self._find(member_id, instance_id)
        if member is None:
            return error
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        # Sessions of members that wait for an answer do not run.
        if member.join_reply is None and member.sync_reply is None:
            member.renew_session(now)
        if self.state is ClassicGroupState.PREPARING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, now: float
    ) -> ErrorCode:
        """Check that a commit is from a member of this generation.

        Whether the member owns the partitions is not checked. In a rebalance, a member
        may commit until the next generation exists, but not while it waits for its
        assignment.
        """
        if generation < 0 and self.state is ClassicGroupState.EMPTY:
            return ErrorCode.NONE
        member, error = self._find(member_id, instance_id)
        if member is None:
            return error
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if self.state is ClassicGroupState.COMPLETING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        if member.join_reply is None:
            member.renew_session(now)
        return ErrorCode.NONE

    def check_transactional_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        *,
        is_strict: bool,
    ) -> ErrorCode:
        """Check a commit in a transaction; one without a member id is not fenced.

        Args:
            member_id: empty for none.
            instance_id: None for none.
            generation: -1 for none.
            is_strict: whether a member and its generation have to be named together,
                as since Kafka 3; before, each is checked only if it is named, and the
                instance id never.
        """
        if not is_strict:
            instance_id = None
        names_member = bool(member_id) or instance_id is not None
        if not names_member and generation < 0:
            return ErrorCode.NONE
        if generation < 0 and self.state is ClassicGroupState.EMPTY:
            return ErrorCode.NONE
        if names_member or is_strict:
            member, error = self._find(member_id, instance_id)
            if member is None:
                return error
        is_checked = is_strict or generation >= 0
        if is_checked and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.NONE

    def leave(self, member_id: str, instance_id: str | None, now: float) -> ErrorCode:
        """Remove a member; a static one can be named by its instance id alone."""
        # An administrator knows the instance id alone (KIP-345).
        if not member_id and instance_id is not None:
            member_id = self.static.get(instance_id, "")
        if instance_id is None and self._pending.pop(member_id, None) is not None:
            if self.state is ClassicGroupState.PREPARING:
                self._maybe_complete(now)
            elif self.state is not ClassicGroupState.EMPTY:
                # As Kafka, although no member of the generation has left.
                self._prepare(now)
            return ErrorCode.NONE
        member, error = self._find(member_id, instance_id)
        if member is None:
            return error
        self.remove(member, now)
        return ErrorCode.NONE

    def remove(self, member: ClassicMember, now: float) -> None:
        """Remove a member and rebalance the others."""
        self._remove(member)
        self._prepare(now)

    def rebalance(self, now: float) -> None:
        """Make the members join again; an empty group stays as it is."""
        if self.members:
            self._prepare(now)

    def tick(self, now: float) -> None:
        """Handle the deadlines that have passed: of sessions and of rebalances."""
        for member_id, deadline in list(self._pending.items()):
            if deadline <= now:
                del self._pending[member_id]
        for member in list(self.members.values()):
            # Removing one member can complete a rebalance, which removes others.
            if member.session_deadline <= now and member.id in self.members:
                self.remove(member, now)
        if self._sync_deadline <= now:
            self._sync_deadline = inf
            for member_id in sorted(self._unsynced & set(self.members)):
                self._remove(self.members[member_id])
            self._unsynced.clear()
            self._prepare(now)
        if self.state is ClassicGroupState.PREPARING:
            self._maybe_complete(now)

    def fail_waiting(self, error: ErrorCode) -> None:
        """Answer all waiting requests with an error, because the group is replaced."""
        for member in self.members.values():
            self._fail_waiting(member, error)

    # Helpers

    def _find(
        self, member_id: str, instance_id: str | None
    ) -> tuple[ClassicMember | None, ErrorCode]:
        if instance_id is not None:
            known = self.static.get(instance_id)
            if known is None:
                return None, ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return None, ErrorCode.FENCED_INSTANCE_ID
        member = self.members.get(member_id)
        if member is None:
            return None, ErrorCode.UNKNOWN_MEMBER_ID
        return member, ErrorCode.NONE

    def _remove(self, member: ClassicMember) -> None:
        if member.join_reply is not None:
            # With an empty member id: the client has to join as a new member.
            self._fail_join(member.join_reply, ErrorCode.UNKNOWN_MEMBER_ID, "")
            member.join_reply = None
        self._fail_waiting(member, ErrorCode.UNKNOWN_MEMBER_ID)
        del self.members[member.id]
        self._unsynced.discard(member.id)
        if member.instance_id is not None:
            del self.static[member.instance_id]
        if self.leader == member.id:
            self.leader = next(iter(self.members), None)

    def _fail_waiting(self, member: ClassicMember, error: ErrorCode) -> None:
        if member.join_reply is not None:
            self._fail_join(member.join_reply, error, member.id)
            member.join_reply = None
        if member.sync_reply is not None:
            self._fail_sync(member, error)

    def _fail_join(self, reply: int, error: ErrorCode, member_id: str) -> None:
        answer = JoinGroupResponse(
            error_code=error, protocol_name=None, member_id=member_id
        )
        self.answers.append((reply, answer))

    def _fail_sync(self, member: ClassicMember, error: ErrorCode) -> None:
        assert member.sync_reply is not None
        self._answer_sync(member.sync_reply, b"", error)
        member.sync_reply = None

    def _answer_join(
        self, reply: int, member: ClassicMember, *, with_members: bool
    ) -> None:
        answer = self._joined(member, with_members=with_members)
        self.answers.append((reply, answer))

    def _joined(
        self, member: ClassicMember, *, with_members: bool
    ) -> JoinGroupResponse:
        assert self.protocol is not None
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=self.leader or "",
            member_id=member.id,
            members=[
                JoinGroupResponseMember(
                    member_id=one.id,
                    group_instance_id=one.instance_id,
                    metadata=one.metadata(self.protocol),
                )
                for one in self.members.values()
            ]
            if with_members
            else [],
        )

    def _answer_sync(
        self, reply: int, assignment: bytes, error: ErrorCode = ErrorCode.NONE
    ) -> None:
        answer = SyncGroupResponse(
            error_code=error,
            protocol_type=None if error else self.protocol_type,
            protocol_name=None if error else self.protocol,
            assignment=assignment,
        )
        self.answers.append((reply, answer))
