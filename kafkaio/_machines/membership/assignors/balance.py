"""As even as can be, and no partition moves that need not: what sticky ones share.

1. Who owns what: of two members that claim a partition the later generation is right;
   of two in the same generation neither is (KIP-792).
2. Every owner keeps what it reads, up to its share; the rest goes to whoever has
   least. With unequal subscriptions partitions then move along the shortest chains
   of members from the fuller to the emptier until no chain makes it more even.
3. Between equally even shares, members get partitions that have a replica in their
   own rack (KIP-881). With equal subscriptions a partition even leaves its owner for a
   member that is nearer to it; with unequal ones only what is free goes by racks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.subscription import Subscription
from kafkaio.types import TopicPartition

__all__ = ["Shares", "balance"]

Shares = dict[str, set[TopicPartition]]


def balance(layout: Layout, members: Mapping[str, Subscription]) -> Shares:
    """The shares to reach, whoever has what now."""
    counts = layout.counts
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
        _even_out(shares, free, _Racks(layout, members))
    else:
        _deal(shares, free, wanted, _Racks(layout, members))
        _level(shares, wanted)
    return shares


def _valid_claims(members: Mapping[str, Subscription]) -> Shares:
    claims: Shares = {member: set() for member in members}
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    for member in sorted(members):
        generation = members[member].generation
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


class _Racks:
    """Who is near to what; a member that names no rack is near to everything."""

    def __init__(self, layout: Layout, members: Mapping[str, Subscription]) -> None:
        self._layout = layout
        self._rack_of = {member: s.rack for member, s in members.items()}
        self._members_in: dict[str, list[str]] = {}
        for member in sorted(members):
            if (rack := self._rack_of[member]) is not None:
                self._members_in.setdefault(rack, []).append(member)

    def __bool__(self) -> bool:
        return bool(self._members_in)

    def is_far(self, tp: TopicPartition, member: str) -> bool:
        return not self._layout.is_near(tp, self._rack_of[member])

    def neighbours(self, tp: TopicPartition) -> list[str]:
        racks = self._layout.racks.get(tp, ())
        return [m for rack in sorted(racks) for m in self._members_in.get(rack, ())]


def _even_out(shares: Shares, free: list[TopicPartition], racks: _Racks) -> None:
    # Everybody reads the same, so a share is the quota or one more. Those who have
    # most already get the one more: that moves the fewest.
    total = len(free) + sum(map(len, shares.values()))
    quota, longer = divmod(total, len(shares))
    order = sorted(shares, key=lambda member: (-len(shares[member]), member))
    limits = {m: quota + (place < longer) for place, m in enumerate(order)}
    for member in order:
        by_distance = sorted((racks.is_far(tp, member), tp) for tp in shares[member])
        surplus = [tp for _, tp in by_distance[limits[member] :]]
        shares[member].difference_update(surplus)
        free += surplus
    if racks:
        _draw_near(shares, free, limits, racks)
    rest = iter(sorted(free))
    for member in order:
        room = limits[member] - len(shares[member])
        shares[member].update(islice(rest, room))


def _draw_near(
    shares: Shares,
    free: list[TopicPartition],
    limits: Mapping[str, int],
    racks: _Racks,
) -> None:
    owners = {
        tp: member
        for member, share in shares.items()
        for tp in share
        if racks.is_far(tp, member)
    }
    for tp, member in owners.items():
        shares[member].remove(tp)
    # What is free goes first: it moves anyway. Of that, what is near to the fewest.
    nearest = {tp: racks.neighbours(tp) for tp in (*free, *owners)}
    far = list[TopicPartition]()
    for tp in sorted(nearest, key=lambda tp: (tp in owners, len(nearest[tp]), tp)):
        able = [m for m in nearest[tp] if len(shares[m]) < limits[m]]
        if able:
            shares[min(able, key=lambda m: (len(shares[m]) - limits[m], m))].add(tp)
        else:
            far.append(tp)
    free.clear()
    for tp in far:
        owner = owners.get(tp)
        if owner is not None and len(shares[owner]) < limits[owner]:
            shares[owner].add(tp)
        else:
            free.append(tp)


def _deal(
    shares: Shares,
    free: Iterable[TopicPartition],
    wanted: Mapping[str, frozenset[str]],
    racks: _Racks,
) -> None:
    readers: dict[str, list[str]] = {}
    for member in sorted(wanted):
        for topic in wanted[member]:
            readers.setdefault(topic, []).append(member)
    # The topics with the fewest readers first: the others can still go elsewhere.
    for tp in sorted(free, key=lambda tp: (len(readers[tp.topic]), tp)):
        ranks = {
            member: (len(shares[member]), racks.is_far(tp, member), member)
            for member in readers[tp.topic]
        }
        shares[min(ranks, key=ranks.__getitem__)].add(tp)


def _level(shares: Shares, wanted: Mapping[str, frozenset[str]]) -> None:
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


def _fullest_first(shares: Shares) -> list[str]:
    return sorted(shares, key=lambda member: (-len(shares[member]), member))


def _shift(
    shares: Shares, wanted: Mapping[str, frozenset[str]], start: str, reach: int
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
    shares: Shares,
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
    shares: Shares, came: Mapping[str, tuple[str, str]], start: str, end: str
) -> None:
    while end != start:
        giver, topic = came[end]
        # The highest number: deterministic, and the low ones stay where they are.
        tp = max(tp for tp in shares[giver] if tp.topic == topic)
        shares[giver].remove(tp)
        shares[end].add(tp)
        end = giver
