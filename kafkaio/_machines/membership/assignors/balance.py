"""The balance that the sticky assignors compute: even, with as few moves as possible.

1. Ownership: if two members claim a partition, the later generation counts; if both
   claims are of the same generation, neither does (KIP-792).
2. Every owner keeps its partitions, up to its part. The rest goes to the members with
   the fewest. With unequal subscriptions partitions then move along the shortest chains
   of members from fuller ones to emptier ones, until no chain makes it more even, or
   the search has taken its limit of steps: members choose what they subscribe to, and
   nobody may keep the leader busy for minutes.
3. Among equally even assignments, members get partitions that have a replica in their
   own rack (KIP-881). With equal subscriptions a partition even leaves its owner for a
   member in a nearer rack; with unequal ones only unowned partitions go by racks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from itertools import islice
from typing import Final

from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.subscription import Subscription
from kafkaio.types import TopicPartition

#: Steps of the search for chains; they take about a second.
_MOST_STEPS: Final = 5_000_000

Assignment = dict[str, set[TopicPartition]]


def balance(layout: Layout, members: Mapping[str, Subscription]) -> Assignment:
    """The balanced assignment; some of it may still be owned by other members."""
    counts = layout.counts
    wanted = {
        member: frozenset(topic for topic in subscription.topics if topic in counts)
        for member, subscription in members.items()
    }
    assignment = {
        member: {
            tp
            for tp in claims
            if tp.topic in wanted[member] and tp.partition < counts[tp.topic]
        }
        for member, claims in _valid_claims(members).items()
    }
    held = {tp for assigned in assignment.values() for tp in assigned}
    topics = frozenset[str]().union(*wanted.values())
    free = sorted(
        TopicPartition(topic, number)
        for topic in topics
        for number in range(counts[topic])
        if (topic, number) not in held
    )
    if len(set(wanted.values())) == 1:
        _even_out(assignment, free, _Racks(layout, members))
    else:
        _deal(assignment, free, wanted, _Racks(layout, members))
        _level(assignment, wanted)
    return assignment


def _valid_claims(members: Mapping[str, Subscription]) -> Assignment:
    claims: Assignment = {member: set() for member in members}
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
    """Which members are near to which partitions; without a rack, to all."""

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


def _even_out(
    assignment: Assignment, free: list[TopicPartition], racks: _Racks
) -> None:
    # All members subscribe to the same topics, so each gets the quota or one more. The
    # members that own most already get the one more, because that moves the fewest.
    total = len(free) + sum(map(len, assignment.values()))
    quota, longer = divmod(total, len(assignment))
    order = sorted(assignment, key=lambda member: (-len(assignment[member]), member))
    limits = {m: quota + (place < longer) for place, m in enumerate(order)}
    for member in order:
        by_distance = sorted(
            (racks.is_far(tp, member), tp) for tp in assignment[member]
        )
        surplus = [tp for _, tp in by_distance[limits[member] :]]
        assignment[member].difference_update(surplus)
        free += surplus
    if racks:
        _draw_near(assignment, free, limits, racks)
    rest = iter(sorted(free))
    for member in order:
        capacity = limits[member] - len(assignment[member])
        assignment[member].update(islice(rest, capacity))


def _draw_near(
    assignment: Assignment,
    free: list[TopicPartition],
    limits: Mapping[str, int],
    racks: _Racks,
) -> None:
    owners = {
        tp: member
        for member, assigned in assignment.items()
        for tp in assigned
        if racks.is_far(tp, member)
    }
    for tp, member in owners.items():
        assignment[member].remove(tp)
    # Unowned partitions first, because they move anyway; among them those that are near
    # to the fewest members.
    nearest = {tp: racks.neighbours(tp) for tp in (*free, *owners)}
    far = list[TopicPartition]()
    for tp in sorted(nearest, key=lambda tp: (tp in owners, len(nearest[tp]), tp)):
        able = [m for m in nearest[tp] if len(assignment[m]) < limits[m]]
        if able:
            assignment[
                min(able, key=lambda m: (len(assignment[m]) - limits[m], m))
            ].add(tp)
        else:
            far.append(tp)
    free.clear()
    for tp in far:
        owner = owners.get(tp)
        if owner is not None and len(assignment[owner]) < limits[owner]:
            assignment[owner].add(tp)
        else:
            free.append(tp)


def _deal(
    assignment: Assignment,
    free: Iterable[TopicPartition],
    wanted: Mapping[str, frozenset[str]],
    racks: _Racks,
) -> None:
    readers: dict[str, list[str]] = {}
    for member in sorted(wanted):
        for topic in wanted[member]:
            readers.setdefault(topic, []).append(member)
    # Topics with the fewest subscribers first: the others have more choice left.
    for tp in sorted(free, key=lambda tp: (len(readers[tp.topic]), tp)):
        ranks = {
            member: (len(assignment[member]), racks.is_far(tp, member), member)
            for member in readers[tp.topic]
        }
        assignment[min(ranks, key=ranks.__getitem__)].add(tp)


class _Search:
    """How many steps are left; each compares a topic of one member with another."""

    def __init__(self) -> None:
        self.steps_left = _MOST_STEPS


def _level(assignment: Assignment, wanted: Mapping[str, frozenset[str]]) -> None:
    # A chain from one member to another with at least two partitions less makes it more
    # even. The sum of squares falls with each chain, so this ends. Chains of one step
    # are tried everywhere before those of two, because they move fewer partitions.
    search, reach = _Search(), 1
    while reach < len(wanted) and search.steps_left > 0:
        outcomes = set[_Outcome]()
        least = min(map(len, assignment.values()))
        for member in _fullest_first(assignment):
            if len(assignment[member]) <= least + 1:
                break  # no member has two less, and so for all that follow
            outcomes.add(_shift(assignment, wanted, member, reach, search))
            if _Outcome.MOVED in outcomes:
                break
        if _Outcome.MOVED in outcomes:
            reach = 1
        elif _Outcome.FURTHER in outcomes:
            reach += 1
        else:
            return


def _fullest_first(assignment: Assignment) -> list[str]:
    return sorted(assignment, key=lambda member: (-len(assignment[member]), member))


class _Outcome(Enum):
    MOVED = auto()  #: a chain was found
    FURTHER = auto()  #: a longer one may exist
    NONE = auto()  #: none exists


def _shift(
    assignment: Assignment,
    wanted: Mapping[str, frozenset[str]],
    start: str,
    reach: int,
    search: _Search,
) -> _Outcome:
    came: dict[str, tuple[str, str]] = {start: ("", "")}
    edge = [start]
    for _ in range(reach):
        edge = _spread(assignment, wanted, came, edge, search)
        least = min(
            edge, key=lambda member: (len(assignment[member]), member), default=start
        )
        if len(assignment[least]) <= len(assignment[start]) - 2:
            _move_along(assignment, came, start, least)
            return _Outcome.MOVED
    return _Outcome.FURTHER if edge else _Outcome.NONE


def _spread(
    assignment: Assignment,
    wanted: Mapping[str, frozenset[str]],
    came: dict[str, tuple[str, str]],
    edge: Iterable[str],
    search: _Search,
) -> list[str]:
    # Members that can take a partition from one at the edge, and are not reached yet.
    further = list[str]()
    for member in edge:
        held = {tp.topic for tp in assignment[member]}
        search.steps_left -= len(assignment[member]) + len(wanted)
        if search.steps_left <= 0:
            break
        for other in sorted(wanted.keys() - came.keys()):
            search.steps_left -= min(len(held), len(wanted[other]))
            if common := held & wanted[other]:
                came[other] = member, min(common)
                further.append(other)
    return further


def _move_along(
    assignment: Assignment, came: Mapping[str, tuple[str, str]], start: str, end: str
) -> None:
    while end != start:
        giver, topic = came[end]
        # The highest number, so that the result is deterministic.
        tp = max(tp for tp in assignment[giver] if tp.topic == topic)
        assignment[giver].remove(tp)
        assignment[end].add(tp)
        end = giver
