"""Cooperative sticky: as even as can be, and no partition moves that need not.

1. Who owns what: of two members that claim a partition the later generation is right;
   of two in the same generation neither is (KIP-792).
2. Every owner keeps what it reads, up to its share; the rest goes to whoever has
   least. With unequal subscriptions partitions then move along the shortest chains
   of members from the fuller to the emptier until no chain makes it more even.
3. A partition that would go to one member while another still has it is given to
   nobody: the other gives it up and joins again, and only then does it move (KIP-429).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from kafkaio._machines.membership.subscription import Subscription
from kafkaio.types import TopicPartition

__all__ = ["CooperativeStickyAssignor"]

_GENERATION: Final = struct.Struct(">i")
_Shares = dict[str, set[TopicPartition]]


class CooperativeStickyAssignor:
    """The assignor that Kafka calls ``cooperative-sticky``."""

    name = "cooperative-sticky"
    cooperative = True

    def user_data(self, subscription: Subscription) -> bytes | None:
        """The generation, for leaders that do not read it from the subscription."""
        return _GENERATION.pack(subscription.generation)

    def assign(
        self, counts: Mapping[str, int], members: Mapping[str, Subscription]
    ) -> dict[str, list[TopicPartition]]:
        """Everybody's share for now; partitions on the move are in none."""
        shares = balance(counts, members)
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


def balance(counts: Mapping[str, int], members: Mapping[str, Subscription]) -> _Shares:
    """The shares to reach, whoever has what now."""
    wanted = {
        member: frozenset(topic for topic in subscription.topics if topic in counts)
        for member, subscription in members.items()
    }
    shares = {
        member: {
            tp
            for tp in claims
            if tp.topic in wanted[member] and tp.partition < counts[tp.topic]
        }
        for member, claims in _valid_claims(members).items()
    }
    held = {tp for share in shares.values() for tp in share}
    topics = frozenset[str]().union(*wanted.values())
    free = sorted(
        TopicPartition(topic, number)
        for topic in topics
        for number in range(counts[topic])
        if (topic, number) not in held
    )
    if len(set(wanted.values())) == 1:
        _even_out(shares, free)
    else:
        _deal(shares, free, wanted)
        _level(shares, wanted)
    return shares


def _generation(subscription: Subscription) -> int:
    data = subscription.user_data
    if subscription.generation < 0 and data is not None and len(data) >= 4:
        (generation,) = _GENERATION.unpack_from(data)
        return int(generation)
    return subscription.generation


def _valid_claims(members: Mapping[str, Subscription]) -> _Shares:
    claims: _Shares = {member: set() for member in members}
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    for member in sorted(members):
        generation = _generation(members[member])
        for tp in members[member].owned:
            rival, _ = best.get(tp, (-2, None))
            if generation > rival:
                best[tp] = generation, member
            elif generation == rival:
                best[tp] = generation, None
    for tp, (_, owner) in best.items():
        if owner is not None:
            claims[owner].add(tp)
    return claims


def _even_out(shares: _Shares, free: list[TopicPartition]) -> None:
    # Everybody reads the same, so a share is the quota or one more. Those who have
    # most already get the one more: that moves the fewest.
    total = len(free) + sum(map(len, shares.values()))
    quota, longer = divmod(total, len(shares))
    order = sorted(shares, key=lambda member: (-len(shares[member]), member))
    limits = {m: quota + (place < longer) for place, m in enumerate(order)}
    for member in order:
        surplus = sorted(shares[member])[limits[member] :]
        shares[member].difference_update(surplus)
        free += surplus
    rest = iter(sorted(free))
    for member in order:
        room = limits[member] - len(shares[member])
        shares[member].update(islice(rest, room))


def _deal(
    shares: _Shares,
    free: Iterable[TopicPartition],
    wanted: Mapping[str, frozenset[str]],
) -> None:
    readers: dict[str, list[str]] = {}
    for member in sorted(wanted):
        for topic in wanted[member]:
            readers.setdefault(topic, []).append(member)
    # The topics with the fewest readers first: the others can still go elsewhere.
    for tp in sorted(free, key=lambda tp: (len(readers[tp.topic]), tp)):
        least = min(readers[tp.topic], key=lambda member: (len(shares[member]), member))
        shares[least].add(tp)


def _level(shares: _Shares, wanted: Mapping[str, frozenset[str]]) -> None:
    # A chain from a full member to one with at least two less makes it more even, and
    # the sum of squares falls with each, so this ends. One step is tried everywhere
    # before two are tried anywhere: that moves fewer partitions.
    reaches = range(1, len(wanted))
    while any(
        _shift(shares, wanted, member, reach)
        for reach in reaches
        for member in _fullest_first(shares)
    ):
        pass


def _fullest_first(shares: _Shares) -> list[str]:
    return sorted(shares, key=lambda member: (-len(shares[member]), member))


def _shift(
    shares: _Shares, wanted: Mapping[str, frozenset[str]], start: str, reach: int
) -> bool:
    came: dict[str, tuple[str, str]] = {start: ("", "")}
    edge = [start]
    for _ in range(reach):
        edge = _spread(shares, wanted, came, edge)
        least = min(
            edge, key=lambda member: (len(shares[member]), member), default=start
        )
        if len(shares[least]) <= len(shares[start]) - 2:
            _move_along(shares, came, start, least)
            return True
    return False


def _spread(
    shares: _Shares,
    wanted: Mapping[str, frozenset[str]],
    came: dict[str, tuple[str, str]],
    edge: Iterable[str],
) -> list[str]:
    # Who can take something from a member at the edge, and has not been reached yet.
    further = list[str]()
    for member in edge:
        held = {tp.topic for tp in shares[member]}
        for other in sorted(wanted.keys() - came.keys()):
            if common := held & wanted[other]:
                came[other] = member, min(common)
                further.append(other)
    return further


def _move_along(
    shares: _Shares, came: Mapping[str, tuple[str, str]], start: str, end: str
) -> None:
    while end != start:
        giver, topic = came[end]
        # The highest number: deterministic, and the low ones stay where they are.
        tp = max(tp for tp in shares[giver] if tp.topic == topic)
        shares[giver].remove(tp)
        shares[end].add(tp)
        end = giver
