"""What a group member's machine asks its shell to do: frozen values, in order.

A ``ticket`` comes back with the answer, so that the machine can tell an answer that
it still waits for from a late one.
"""

from __future__ import annotations

from typing import TypeAlias
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio._machines.membership.ledger import Claim
from kafkaio.errors import KafkaError
from kafkaio.types import TopicPartition

__all__ = [
    "Assign",
    "Effect",
    "Fail",
    "FallBack",
    "ForgetCoordinator",
    "Lose",
    "MatchTopics",
    "NameTopics",
    "RefreshTopics",
    "Report",
    "RequestRevoke",
    "ResolveTopics",
    "Revoke",
    "SendConsumerHeartbeat",
    "SendHeartbeat",
    "SendJoin",
    "SendLeave",
    "SendProbe",
    "SendSync",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SendJoin:
    """Send JoinGroup. It parks at the coordinator until the whole group is there."""

    ticket: int
    member_id: str
    protocols: tuple[tuple[str, bytes], ...]  #: assignor name and subscription
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SendSync:
    """Send SyncGroup, with everybody's share if this member leads."""

    ticket: int
    member_id: str
    generation: int
    protocol: str
    assignments: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SendHeartbeat:
    """Send Heartbeat; give up after ``timeout`` seconds."""

    ticket: int
    member_id: str
    generation: int
    timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SendLeave:
    """Send LeaveGroup once; nobody tries again when it fails."""

    ticket: int
    member_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SendProbe:
    """Ask the coordinator for a sign of life beside what is parked at it.

    It is silent if there is none within ``timeout`` seconds; tell ``probe_ended``.
    """

    ticket: int
    timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SendConsumerHeartbeat:
    """Send ConsumerGroupHeartbeat (KIP-848); None means: as told before.

    One with an epoch below 0 leaves. Nobody tries that again when it fails.
    """

    ticket: int
    member_id: str
    epoch: int
    timeout: float  #: seconds, infinite for the usual time
    is_new: bool = False  #: the coordinator has not answered this member yet
    rack: str | None = None
    assignor: str | None = None
    rebalance: float | None = None  #: seconds
    names: frozenset[str] | None = None
    regex: str | None = None  #: empty for no regular expression any more
    owned: frozenset[tuple[UUID, int]] | None = None


@dataclass(frozen=True, slots=True)
class ForgetCoordinator:
    """The coordinator is another broker by now, or gone: look it up again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveTopics:
    """Learn what partitions these topics have, and where; tell ``topics_resolved``."""

    ticket: int
    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class RefreshTopics:
    """Fetch metadata before JoinGroup, and subscribe to what the pattern matches now.

    Tell ``topics_refreshed``, also if that failed. The member joins after ``timeout``
    seconds in any case.
    """

    ticket: int
    timeout: float


@dataclass(frozen=True, slots=True)
class NameTopics:
    """Find the names of topics; tell ``topics_named``, whatever was found."""

    topic_ids: frozenset[UUID]


@dataclass(frozen=True, slots=True)
class MatchTopics:
    """The coordinator cannot match the user's pattern: subscribe to names instead."""


@dataclass(frozen=True, slots=True)
class RequestRevoke:
    """Tell the user's side to finish its work on these until ``deadline``.

    ``is_parting``: the user wants to go, so that nothing waits for another step.
    """

    partitions: frozenset[TopicPartition]
    deadline: float
    is_parting: bool = False


@dataclass(frozen=True, slots=True)
class Revoke:
    """Commit and call back for these until ``deadline``; tell ``revoke_ended``."""

    claims: tuple[Claim, ...]
    deadline: float

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions without their assignment numbers."""
        return frozenset(claim.partition for claim in self.claims)


@dataclass(frozen=True, slots=True)
class Assign:
    """These are new; ``owned`` is everything held now, pending revokes included."""

    added: frozenset[TopicPartition]
    owned: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Lose:
    """These are gone already; no commit of them can succeed."""

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Fail:
    """The membership has ended by this error."""

    error: KafkaError


@dataclass(frozen=True, slots=True)
class FallBack:
    """The membership never began: the classic protocol must do; and why."""

    error: KafkaError


@dataclass(frozen=True, slots=True)
class Report:
    """Raise this where the user calls next; the membership goes on."""

    error: KafkaError


Effect: TypeAlias = (
    SendJoin
    | SendSync
    | SendHeartbeat
    | SendLeave
    | SendProbe
    | SendConsumerHeartbeat
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
    | Report
)
