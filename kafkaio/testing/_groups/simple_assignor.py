"""The assignor of share groups, ``simple``: several members may share a partition.

Each member gets about as many partitions as the others, each partition about as many
members, and as little as possible moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from kafkaio.testing._groups.assignors import Slot
from kafkaio.testing._groups.java import java_order, text_hash


def simple(
    subscriptions: Mapping[str, frozenset[UUID]],
    slots: Sequence[Slot],
    current: Mapping[str, frozenset[Slot]],
) -> dict[str, frozenset[Slot]]:
    """Assign partitions to the members of a share group.

    Args:
        subscriptions: the topics that each member subscribes to, by member id.
        slots: every partition that can be assigned, in order.
        current: the present target of each member, by member id.
    """
    members = java_order(subscriptions, text_hash)
    # With different subscriptions Kafka looks at each topic by itself.
    if len(set(subscriptions.values())) <= 1:
        parts = [(members, list(slots))]
    else:
        topics = dict.fromkeys(topic for topic, _ in slots)
        parts = [
            (
                [one for one in members if topic in subscriptions[one]],
                [slot for slot in slots if slot[0] == topic],
            )
            for topic in topics
        ]
    found: dict[str, set[Slot]] = {member: set() for member in members}
    for sharers, shared in parts:
        if sharers and shared:
            for member, mine in _share_out(sharers, shared, current).items():
                found[member] |= mine
    return {member: frozenset(mine) for member, mine in found.items()}


def _share_out(
    members: Sequence[str],
    slots: Sequence[Slot],
    current: Mapping[str, frozenset[Slot]],
) -> dict[str, set[Slot]]:
    # The number of members of a partition, rounded up, and the partitions of a member.
    sharing = -(-len(members) // len(slots))
    total = sharing * len(slots)
    quotas = {
        member: -(-total * (place + 1) // len(members))
        + (-total * place // len(members))
        for place, member in enumerate(members)
    }
    found = {
        one: [slot for slot in slots if slot in current.get(one, frozenset())]
        for one in members
    }
    unfilled = [one for one in members if len(found[one]) < quotas[one]]
    for member in members:
        # The first go, as in Kafka.
        del found[member][: max(0, len(found[member]) - quotas[member])]
    sharers = {slot: [one for one in members if slot in found[one]] for slot in slots}
    for slot in slots:
        for member in sharers[slot][: max(0, len(sharers[slot]) - sharing)]:
            found[member].remove(slot)
            sharers[slot].remove(member)
            if member not in unfilled:
                unfilled.append(member)
    _fill(slots, sharing, quotas, found, unfilled)
    return {member: set(mine) for member, mine in found.items()}


def _fill(
    slots: Sequence[Slot],
    sharing: int,
    quotas: Mapping[str, int],
    found: dict[str, list[Slot]],
    unfilled: list[str],
) -> None:
    """Give partitions with too few members to members with too few partitions."""
    for slot in slots:
        missing = sharing - sum(slot in mine for mine in found.values())
        for member in [one for one in unfilled if slot not in found[one]][:missing]:
            found[member].append(slot)
            unfilled.remove(member)
            # Those that still want more come last: members take turns.
            if len(found[member]) < quotas[member]:
                unfilled.append(member)
