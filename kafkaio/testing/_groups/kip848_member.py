"""A member of a KIP-848 group: its heartbeats, and its way to the target assignment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from math import inf

from kafkaio.testing._groups.assignors import Slot
from kafkaio.testing._groups.classic_member import Protocols

#: The epoch in the heartbeat of a member that leaves.
LEAVE = -1
#: The epoch in the heartbeat of a static member that leaves temporarily.
LEAVE_STATIC = -2


class MemberState(Enum):
    """The progress of a member towards its target, by Kafka's names."""

    STABLE = "stable"
    UNREVOKED = "has to revoke partitions"
    UNRELEASED = "waits for partitions that others have to release"


def sees_everything(topic: str) -> bool:
    """Whether a client without limits may know of a topic."""
    del topic
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Kip848Heartbeat:
    """A ConsumerGroupHeartbeat request; None stands for a field that is left out.

    ``sees`` returns whether its client may describe a topic.
    """

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
    sees: Callable[[str], bool] = sees_everything

    @property
    def is_full(self) -> bool:
        """Whether it has all fields, so that the answer must have the assignment."""
        return self.epoch == 0 or (
            self.rebalance_timeout is not None
            and (self.names is not None or self.regex is not None)
            and self.owned is not None
        )


@dataclass(frozen=True, slots=True)
class ClassicMetadata:
    """The session timeout (in seconds) and the protocols of a classic member."""

    session_timeout: float
    protocols: Protocols


@dataclass(slots=True, kw_only=True)
class Kip848Member:
    """A member of a KIP-848 group. It is removed when one of its deadlines passes.

    Attributes:
        classic: what a member that uses the classic protocol joined with; None if it
            uses the KIP-848 protocol.
        assigned: the partitions that it may read, with the epoch in which it got each
            (KIP-1251).
        revoking: the partitions that it has to revoke, likewise. No other member gets
            them before it has.
        revoke_deadline: until when it has to revoke them. It is set when the revocation
            begins, and never extended.
        join_deadline: until when a classic member has to join again.
        sync_deadline: until when a classic member has to send SyncGroup.
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
    classic: ClassicMetadata | None = None
    assigned: dict[Slot, int] = field(default_factory=dict)
    revoking: dict[Slot, int] = field(default_factory=dict)
    session_deadline: float = inf
    revoke_deadline: float = inf
    join_deadline: float = inf
    sync_deadline: float = inf

    @property
    def deadline(self) -> float:
        """When it is removed, unless a request comes before."""
        return min(
            self.session_deadline,
            self.revoke_deadline,
            self.join_deadline,
            self.sync_deadline,
        )

    @property
    def subscription(self) -> tuple[frozenset[str], str | None]:
        """The topic names and the pattern that it subscribes to."""
        return self.names, self.regex

    @property
    def left_temporarily(self) -> bool:
        """Whether it is a static member that left temporarily."""
        return self.epoch == LEAVE_STATIC

    def update(self, beat: Kip848Heartbeat) -> None:
        """Apply the fields of a heartbeat."""
        self.client_id, self.client_host = beat.client_id, beat.client_host
        # A heartbeat of KIP-848 comes from a member that has left the classic protocol.
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
        """Take one step towards the target.

        A member revokes first. Only when it reports to own none of the revoked
        partitions does it get the epoch of the target, and those of its new partitions
        that no other member still has.

        Args:
            target: the partitions that it is to have.
            target_epoch: the epoch of the target.
            owned: the partitions that it reports to own; None if it reports none.
            taken: partitions that other members have not released.
            unwanted: partitions of topics that it has just unsubscribed from; they are
                revoked even if an earlier revocation is not complete.

        Returns:
            Whether the partitions that it may read changed.
        """
        if self.state is MemberState.UNREVOKED:
            # A revocation is complete when every partition is released, not before.
            if owned is None or owned & self.revoking.keys():
                return self._drop(unwanted, owned)
            self.revoking.clear()
            self.revoke_deadline = inf
        # It has what it is to have.
        elif self.state is MemberState.STABLE and self.epoch == target_epoch:
            return self._drop(unwanted, owned)
        return self._advance(target, target_epoch, owned, taken)

    def _drop(self, unwanted: frozenset[Slot], owned: frozenset[Slot] | None) -> bool:
        """Revoke partitions of topics that it unsubscribed from, in the same epoch."""
        dropped = {slot: self.assigned.pop(slot) for slot in unwanted}
        if not dropped:
            return False
        self.previous_epoch = self.epoch
        revoking = self.revoking | dropped
        # A member that reports to own none of them has released them already.
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
        # First the member gives up what is not its own any more; a partition is never
        # with two.
        if leaving and (owned is None or owned & leaving):
            self.revoking = {slot: self.assigned.pop(slot) for slot in leaving}
            self.state = MemberState.UNREVOKED
            self.previous_epoch = self.epoch
            return True
        kept = {slot: since for slot, since in self.assigned.items() if slot in target}
        missing = target - before
        free = missing - taken
        # With the epoch since which it has each of them: a commit of an older epoch is
        # refused only for partitions that came later (KIP-1251).
        self.assigned = kept | dict.fromkeys(free, target_epoch)
        unreleased = missing - free
        self.state = MemberState.UNRELEASED if unreleased else MemberState.STABLE
        # Even if both epochs are equal, as in Kafka: the previous epoch is lost then.
        self.previous_epoch, self.epoch = self.epoch, target_epoch
        return frozenset(self.assigned) != before
