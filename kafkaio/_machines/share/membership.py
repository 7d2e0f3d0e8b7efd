"""The member of a share group (KIP-932), as a machine without I/O.

States: UNJOINED, JOINING, STABLE, FENCED, LEAVING, ENDED. Nobody at the brokers checks
whether a member that fetches belongs to the group, so the machine says when fetching
must stop: when it is fenced (25, 110), leaves, or its session has ended by the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio._machines.share.session import TopicIdPartition
from kafkaio.errors import KafkaError


@dataclass(frozen=True, slots=True)
class SendShareHeartbeat:
    """Send a ShareGroupHeartbeat; epoch 0 joins, -1 leaves; None: unchanged."""

    ticket: int
    member_id: str
    member_epoch: int
    topics: tuple[str, ...] | None
    timeout: float


@dataclass(frozen=True, slots=True)
class SetAssignment:
    """Fetch from these partitions, and from no others; none while fenced."""

    partitions: frozenset[TopicIdPartition]


@dataclass(frozen=True, slots=True)
class EndMembership:
    """The member cannot go on: the group refuses it for good."""

    error: KafkaError


ShareEffect: TypeAlias = SendShareHeartbeat | SetAssignment | EndMembership


class ShareHeartbeatPort(Protocol):
    """The fields of a ShareGroupHeartbeatResponse that the machine reads."""

    error_code: int
    error_message: str | None
    member_epoch: int
    heartbeat_interval_ms: int


class ShareMembership:
    """One member of a share group.

    Args:
        group_id: the group.
        member_id: chosen by the client, for life (a UUID as Kafka writes it).
    """

    def __init__(self, group_id: str, member_id: str) -> None:
        raise NotImplementedError

    @property
    def is_joined(self) -> bool:
        """Whether the group has accepted the member, and has not fenced it since."""
        raise NotImplementedError

    @property
    def may_fetch(self) -> bool:
        """Whether the member may fetch: joined, and its session has not ended."""
        raise NotImplementedError

    def subscribe(self, topics: frozenset[str], now: float) -> Sequence[ShareEffect]:
        """Want these topics; the first call joins. None of them: leave, stay ready."""
        raise NotImplementedError

    def heartbeat_answered(
        self,
        ticket: int,
        answer: ShareHeartbeatPort,
        assignment: frozenset[TopicIdPartition] | None,
        now: float,
        roll: float,
    ) -> Sequence[ShareEffect]:
        """Take an answer; an assignment of None is unchanged."""
        raise NotImplementedError

    def request_failed(
        self, ticket: int, error: KafkaError, now: float, roll: float
    ) -> Sequence[ShareEffect]:
        """Note that a request got no answer."""
        raise NotImplementedError

    def tick(self, now: float) -> Sequence[ShareEffect]:
        """Do what is due."""
        raise NotImplementedError

    def next_deadline(self) -> float | None:
        """When `tick` is to be called next."""
        raise NotImplementedError

    def close(self, now: float) -> Sequence[ShareEffect]:
        """Leave the group."""
        raise NotImplementedError
