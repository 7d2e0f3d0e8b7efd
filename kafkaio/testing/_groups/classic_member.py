"""A member of a classic group, and the requests with which it joins and syncs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from math import inf

#: The protocols that a member supports, best first: name and metadata.
Protocols = tuple[tuple[str, bytes], ...]


class ClassicGroupState(Enum):
    """The states of a classic group, by Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """A JoinGroup request; durations are in seconds.

    Attributes:
        member_id: empty if the client has none yet.
        new_id: the unique part of a member id, if the member gets a new one.
        knows_member_id_required: since version 4: a dynamic member without an id is
            answered MEMBER_ID_REQUIRED with an id first (KIP-394).
        may_skip_assignment: since version 9: a static leader that comes back can be
            told that the assignment stays as it is (KIP-814).
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
class SyncRequest:
    """A SyncGroup request; the protocol is None if the version has no such field."""

    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: dict[str, bytes] = field(default_factory=dict)

    def agrees(self, protocol_type: str | None, protocol: str | None) -> bool:
        """Return whether the client names the protocol that the group has chosen."""
        return self.protocol_type in {None, protocol_type} and (
            self.protocol in {None, protocol}
        )


@dataclass(slots=True, kw_only=True)
class ClassicMember:
    """A member of a classic group; durations are in seconds.

    Attributes:
        session_deadline: when the session times out; infinity while a request of the
            member waits for its answer.
        join_reply: the number of its JoinGroup that waits for an answer; None for
            none.
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
        """Return the member's metadata for a protocol, which it must support."""
        return dict(self.protocols)[protocol]

    def renew_session(self, now: float) -> None:
        """Start the session timeout again."""
        self.session_deadline = now + self.session_timeout

    def update(self, joining: JoinRequest) -> None:
        """Apply the settings of a member that joins again."""
        self.session_timeout = joining.session_timeout
        self.rebalance_timeout = joining.rebalance_timeout
        self.protocols = joining.protocols
