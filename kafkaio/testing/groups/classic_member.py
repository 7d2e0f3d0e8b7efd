"""A member of a classic group, and what it says when it joins."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from math import inf

__all__ = ["Joining", "Member", "Protocols", "State", "Syncing"]

#: The protocols of a member, best first: name and what the member says under it.
Protocols = tuple[tuple[str, bytes], ...]


class State(Enum):
    """The states of a classic group, by the names that Kafka shows."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """A JoinGroup request, its durations in seconds.

    Attributes:
        member_id: empty if the client has none yet.
        new_id: the unique part of a member id, should one be needed.
        knows_member_id_required: version 4 on: a dynamic member is first told its id.
        may_skip_assignment: version 9 on: a returning static leader is told that
            the assignment stands.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: float
    rebalance_timeout: float
    protocol_type: str
    protocols: Protocols
    new_id: str
    knows_member_id_required: bool = True
    may_skip_assignment: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Syncing:
    """A SyncGroup request; the protocol is None where the version has no field."""

    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: dict[str, bytes] = field(default_factory=dict)

    def agrees(self, protocol_type: str | None, protocol: str | None) -> bool:
        """Say whether the client means the protocol that the group has chosen."""
        return self.protocol_type in {None, protocol_type} and (
            self.protocol in {None, protocol}
        )


@dataclass(slots=True, kw_only=True)
class Member:
    """A member as the group sees it.

    Attributes:
        session_deadline: when the session ends unless the member is heard of; never
            while a request of it waits for the others.
        join_reply: the number of the JoinGroup that waits for its answer.
        sync_reply: the same for SyncGroup.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: float
    rebalance_timeout: float
    protocols: Protocols
    assignment: bytes = b""
    session_deadline: float = field(default=inf)
    join_reply: int | None = None
    sync_reply: int | None = None

    def metadata(self, protocol: str) -> bytes:
        """Return what the member says under ``protocol``; it must support it."""
        return dict(self.protocols)[protocol]

    def heard(self, now: float) -> None:
        """Start the session anew."""
        self.session_deadline = now + self.session_timeout

    def update(self, joining: Joining) -> None:
        """Take over what a rejoining member says of itself."""
        self.session_timeout = joining.session_timeout
        self.rebalance_timeout = joining.rebalance_timeout
        self.protocols = joining.protocols
