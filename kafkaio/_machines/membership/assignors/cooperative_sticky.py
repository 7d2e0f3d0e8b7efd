"""Cooperative sticky: balanced, and members keep reading during a rebalance.

A partition that has to move while its old owner still has it is assigned to no member
at first. The owner releases it and joins again; only then does it move (KIP-429).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from kafkaio._dataclass import replace
from kafkaio._machines.membership.assignors.balance import balance
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.subscription import Subscription
from kafkaio.types import TopicPartition

_GENERATION: Final = struct.Struct(">i")


class CooperativeStickyAssignor:
    """The assignor that Kafka calls ``cooperative-sticky``."""

    name = "cooperative-sticky"
    cooperative = True

    def user_data(self, subscription: Subscription) -> bytes | None:
        """The generation, for leaders that do not read it from the subscription."""
        return _GENERATION.pack(subscription.generation)

    def assign(
        self, layout: Layout, members: Mapping[str, Subscription]
    ) -> dict[str, list[TopicPartition]]:
        """The partitions of each member; those that have to move are omitted."""
        members = {member: _with_generation(s) for member, s in members.items()}
        assignment = balance(layout, members)
        # Assigned to another member than its owner: nobody gets it before the owner has
        # released it and joined again (KIP-429).
        taken = {
            tp
            for member, subscription in members.items()
            for tp in subscription.owned - assignment[member]
        }
        return {
            member: sorted(tp for tp in assigned if tp in owned or tp not in taken)
            for member, assigned in assignment.items()
            for owned in (members[member].owned,)
        }


def _with_generation(subscription: Subscription) -> Subscription:
    data = subscription.user_data
    if subscription.generation >= 0 or data is None or len(data) < _GENERATION.size:
        return subscription
    (generation,) = _GENERATION.unpack_from(data)
    return replace(subscription, generation=generation)
