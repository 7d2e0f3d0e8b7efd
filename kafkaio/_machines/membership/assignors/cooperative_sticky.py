"""Cooperative sticky: balanced, and whoever loses nothing reads on.

A partition that would go to one member while another still has it is given to nobody:
the other gives it up and joins again, and only then does it move (KIP-429).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kafkaio._machines.membership.assignors.balance import balance
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.subscription import Subscription
from kafkaio.types import TopicPartition

__all__ = ["CooperativeStickyAssignor"]

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
        """Everybody's share for now; partitions on the move are in none."""
        members = {member: _with_generation(s) for member, s in members.items()}
        shares = balance(layout, members)
        taken = {
            tp
            for member, subscription in members.items()
            for tp in subscription.owned - shares[member]
        }
        return {
            member: sorted(tp for tp in share if tp in owned or tp not in taken)
            for member, share in shares.items()
            for owned in (members[member].owned,)
        }


def _with_generation(subscription: Subscription) -> Subscription:
    data = subscription.user_data
    if subscription.generation >= 0 or data is None or len(data) < _GENERATION.size:
        return subscription
    (generation,) = _GENERATION.unpack_from(data)
    return replace(subscription, generation=generation)
