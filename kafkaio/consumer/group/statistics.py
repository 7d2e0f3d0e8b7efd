"""A membership in numbers."""

from __future__ import annotations

from kafkaio._dataclass import dataclass

__all__ = ["GroupStatistics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatistics:
    """A snapshot of a membership.

    Attributes:
        protocol: ``consumer`` (KIP-848) or ``classic``.
        state: name of the member's state.
        generation: the group's generation that the member belongs to, or its own epoch
            in a group of the consumer protocol; -1 for none.
        member_id: what the coordinator calls the member, empty if nothing.
        coordinator: node id of the coordinator, None while it is unknown.
        is_leader: whether this member divides the group's partitions; nobody does in a
            group of the consumer protocol.
        assigned: number of partitions owned.
        to_be_revoked: number of those that are to be given back.
        rebalances: how often an assignment was taken over.
        lost: how many partitions were lost.
    """

    protocol: str
    state: str
    generation: int
    member_id: str
    coordinator: int | None
    is_leader: bool
    assigned: int
    to_be_revoked: int
    rebalances: int
    lost: int
