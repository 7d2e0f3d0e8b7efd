"""The effects that a membership machine asks its caller for: frozen values, in order.

Three groups. A `Send` is a request to the coordinator; the module that speaks the
machine's protocol performs it. ``ResolveTopics``, ``RefreshTopics``, ``NameTopics`` and
``MatchTopics`` ask for metadata. The others tell the application's side what happens to
its partitions, or how the membership goes on.

A ``ticket`` comes back with the answer, so that the machine can tell an answer that it
still needs from a late one.
"""

from __future__ import annotations

from typing import TypeAlias
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio._machines.membership.ledger import Claim
from kafkaio.errors import KafkaError
from kafkaio.types import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class SendGroupRequest:
    """A request to the coordinator, of whichever protocol."""

    ticket: int

    @property
    def is_leave(self) -> bool:
        """Whether the request leaves the group.

        It is repeated until the coordinator has answered. Its result goes to
        ``leave_ended``.
        """
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SendJoin(SendGroupRequest):
    """Send JoinGroup. The coordinator answers when the whole group has joined."""

    member_id: str
    protocols: tuple[tuple[str, bytes], ...]  #: assignor name and subscription
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SendSync(SendGroupRequest):
    """Send SyncGroup, with the assignments of all members if this one leads."""

    member_id: str
    generation: int
    protocol: str
    assignments: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SendHeartbeat(SendGroupRequest):
    """Send Heartbeat; it has failed after ``timeout`` seconds."""

    member_id: str
    generation: int
    timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SendLeave(SendGroupRequest):
    """Send LeaveGroup, until it is answered."""

    member_id: str
    reason: str

    @property
    def is_leave(self) -> bool:
        """Always."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class SendProbe(SendGroupRequest):
    """Check that the coordinator is alive while it keeps another request waiting.

    It is silent if it does not answer within ``timeout`` seconds. The result goes to
    ``probe_ended``.
    """

    timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SendConsumerGroupHeartbeat(SendGroupRequest):
    """Send ConsumerGroupHeartbeat (KIP-848); None means: unchanged since the last.

    One with an epoch below 0 leaves the group. A heartbeat that joins again takes its
    place: the member has the same id.
    """

    member_id: str
    member_epoch: int
    timeout: float  #: seconds, infinite for the usual time
    is_new: bool = False  #: the coordinator has not answered this member yet
    rack: str | None = None
    assignor: str | None = None
    rebalance: float | None = None  #: seconds
    names: frozenset[str] | None = None
    regex: str | None = None  #: empty: the regular expression is withdrawn
    owned: frozenset[tuple[UUID, int]] | None = None

    @property
    def is_leave(self) -> bool:
        """Whether the epoch says so."""
        return self.member_epoch < 0


@dataclass(frozen=True, slots=True)
class ForgetCoordinator:
    """The coordinator has moved or does not answer: look it up again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveTopics:
    """Find the partitions of these topics, and where they are.

    The result goes to ``topics_resolved``.
    """

    ticket: int
    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class RefreshTopics:
    """Fetch metadata before JoinGroup, and subscribe to what the pattern matches now.

    Call ``topics_refreshed`` afterwards, also if that failed. After ``timeout``
    seconds the member joins in any case.
    """

    ticket: int
    timeout: float


@dataclass(frozen=True, slots=True)
class NameTopics:
    """Find the names of topics; ``topics_named`` takes whatever was found."""

    topic_ids: frozenset[UUID]


@dataclass(frozen=True, slots=True)
class MatchTopics:
    """The coordinator cannot match the pattern: match on the client, and subscribe."""


@dataclass(frozen=True, slots=True)
class RequestRevoke:
    """Tell the application that these are to be revoked at ``deadline`` at the latest.

    ``is_leaving``: the application leaves the group, so no further poll is awaited.
    """

    partitions: frozenset[TopicPartition]
    deadline: float
    is_leaving: bool = False


@dataclass(frozen=True, slots=True)
class Revoke:
    """Commit these and call the user's callback, until ``deadline`` at the latest.

    Call ``revoke_ended`` afterwards.
    """

    claims: tuple[Claim, ...]
    deadline: float

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions without their assignment numbers."""
        return frozenset(claim.partition for claim in self.claims)


@dataclass(frozen=True, slots=True)
class Assign:
    """``added`` are new; ``owned`` are all owned now, pending revocations included."""

    added: frozenset[TopicPartition]
    owned: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Lose:
    """These are lost: another member may own them, and no commit can succeed."""

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Fail:
    """The membership has ended with this error."""

    error: KafkaError


@dataclass(frozen=True, slots=True)
class FallBack:
    """KIP-848 could not be used at all, for this reason: use the classic protocol."""

    error: KafkaError


@dataclass(frozen=True, slots=True)
class ReportError:
    """Raise this from the application's next call; the membership goes on."""

    error: KafkaError


Effect: TypeAlias = (
    SendGroupRequest
    | ForgetCoordinator
    | ResolveTopics
    | RefreshTopics
    | NameTopics
    | MatchTopics
    | RequestRevoke
    | Revoke
    | Assign
    | Lose
    | Fail
    | FallBack
    | ReportError
)
