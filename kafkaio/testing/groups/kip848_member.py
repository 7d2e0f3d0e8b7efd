"""A member of a group of the consumer protocol (KIP-848)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from math import inf

from kafkaio.testing.groups.assignors import Slot
from kafkaio.testing.groups.classic_member import Protocols

__all__ = [
    "LEAVE",
    "LEAVE_STATIC",
    "Beat",
    "ClassicSide",
    "ConsumerMember",
    "MemberState",
]

#: The epoch of a member that leaves.
LEAVE = -1
#: The epoch of a static member that will be back.
LEAVE_STATIC = -2


class MemberState(Enum):
    """How far a member is on its way to its target."""

    STABLE = "stable"
    UNREVOKED = "has to give partitions up"
    UNRELEASED = "waits for partitions that others have to give up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A ConsumerGroupHeartbeat; None is what the member does not say again."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout: float | None = None
    names: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: frozenset[Slot] | None = None
    client_id: str = ""
    client_host: str = ""

    @property
    def is_full(self) -> bool:
        """Whether everything is said, so that the assignment has to be answered."""
        return self.epoch == 0 or (
            self.rebalance_timeout is not None
            and (self.names is not None or self.regex is not None)
            and self.owned is not None
        )


@dataclass(frozen=True, slots=True)
class ClassicSide:
    """What a member of the classic protocol said when it joined; in seconds."""

    session_timeout: float
    protocols: Protocols


@dataclass(slots=True, kw_only=True)
class ConsumerMember:
    """A member as the group sees it.

    Attributes:
        classic: what a member that speaks the classic protocol said; None if it speaks
            the consumer protocol.
        assigned: what it may read, with the epoch since when (KIP-1251).
        revoking: what it has to give up, likewise; nobody else gets it before.
        revoke_deadline: when it loses everything unless it gave that up; set when the
            revocation begins, and nothing extends it.
        join_deadline: when a classic member has to have joined again.
        sync_deadline: when a classic member has to have asked for its assignment.
    """

    id: str
    instance_id: str | None = None
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    rebalance_timeout: float = 0.0
    names: frozenset[str] = frozenset()
    regex: str | None = None
    assignor: str | None = None
    classic: ClassicSide | None = None
    assigned: dict[Slot, int] = field(default_factory=dict)
    revoking: dict[Slot, int] = field(default_factory=dict)
    session_deadline: float = inf
    revoke_deadline: float = inf
    join_deadline: float = inf
    sync_deadline: float = inf

    @property
    def deadline(self) -> float:
        """When it is removed unless it is heard of."""
        return min(
            self.session_deadline,
            self.revoke_deadline,
            self.join_deadline,
            self.sync_deadline,
        )

    @property
    def subscription(self) -> tuple[frozenset[str], str | None]:
        """What decides which partitions it can have."""
        return self.names, self.regex

    @property
    def is_away(self) -> bool:
        """Whether it is a static member that said that it will be back."""
        return self.epoch == LEAVE_STATIC

    def update(self, beat: Beat) -> None:
        """Take over what a heartbeat says."""
        self.client_id, self.client_host = beat.client_id, beat.client_host
        self.classic = None
        if beat.rack is not None:
            self.rack = beat.rack
        if beat.rebalance_timeout is not None:
            self.rebalance_timeout = beat.rebalance_timeout
        if beat.names is not None:
            self.names = beat.names
        if beat.regex is not None:
            self.regex = beat.regex or None
        if beat.assignor is not None:
            self.assignor = beat.assignor

    def reconcile(
        self,
        target: frozenset[Slot],
        target_epoch: int,
        owned: frozenset[Slot] | None,
        taken: frozenset[Slot],
        unwanted: frozenset[Slot] = frozenset(),
    ) -> bool:
        """Go a step towards the target.

        Args:
            target: what it shall have.
            target_epoch: of which epoch the target is.
            owned: what it says it has; None if it does not say.
            taken: partitions that other members have not released.
            unwanted: what it has just unsubscribed from, and is to give up though it
                has not yet given up something else.

        Returns:
            Whether what it may read has changed.
        """
        if self.state is MemberState.UNREVOKED:
            # All or nothing: one partition still held keeps every one of them.
            if owned is None or owned & self.revoking.keys():
                return self._drop(unwanted, owned)
            self.revoking.clear()
            self.revoke_deadline = inf
        elif self.state is MemberState.STABLE and self.epoch == target_epoch:
            return self._drop(unwanted, owned)
        return self._advance(target, target_epoch, owned, taken)

    def _drop(self, unwanted: frozenset[Slot], owned: frozenset[Slot] | None) -> bool:
        """Give up what the member does not read any more, at the epoch it has."""
        dropped = {slot: self.assigned.pop(slot) for slot in unwanted}
        if not dropped:
            return False
        self.previous_epoch = self.epoch
        revoking = self.revoking | dropped
        if owned is None or owned & revoking.keys():
            self.revoking, self.state = revoking, MemberState.UNREVOKED
        return True

    def _advance(
        self,
        target: frozenset[Slot],
        target_epoch: int,
        owned: frozenset[Slot] | None,
        taken: frozenset[Slot],
    ) -> bool:
        before = frozenset(self.assigned)
        leaving = before - target
        if leaving and (owned is None or owned & leaving):
            self.revoking = {slot: self.assigned.pop(slot) for slot in leaving}
            self.state = MemberState.UNREVOKED
            self.previous_epoch = self.epoch
            return True
        kept = {slot: since for slot, since in self.assigned.items() if slot in target}
        missing = target - before
        free = missing - taken
        self.assigned = kept | dict.fromkeys(free, target_epoch)
        unreleased = missing - free
        self.state = MemberState.UNRELEASED if unreleased else MemberState.STABLE
        # Also where both are the same: Kafka forgets the previous epoch then.
        self.previous_epoch, self.epoch = self.epoch, target_epoch
        return frozenset(self.assigned) != before
