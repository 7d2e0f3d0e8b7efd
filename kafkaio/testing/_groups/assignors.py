"""The assignors that a broker offers to KIP-848 groups: ``uniform`` and ``range``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from kafkaio.testing._groups.java import java_order, text_hash, uuid_hash

#: A partition: the topic's id and the partition's number.
Slot: TypeAlias = tuple[UUID, int]


@dataclass(frozen=True, slots=True)
class Spec:
    """The input of an assignor.

    Attributes:
        subscriptions: the topics that each member subscribes to, by member id.
        partitions: the number of partitions of each topic.
        current: the present target of each member, by member id.
        instances: the instance ids of static members, by member id.
    """

    subscriptions: Mapping[str, frozenset[UUID]]
    partitions: Mapping[UUID, int]
    current: Mapping[str, frozenset[Slot]]
    instances: Mapping[str, str]

    def order(self, members: list[str]) -> list[str]:
        """Sort members: static ones first, by instance id; the others by member id."""
        static = self.instances
        return sorted(
            members, key=lambda one: (one not in static, static.get(one, one))
        )

    def slots(self) -> list[Slot]:
        """Return every partition of the subscribed topics, in order."""
        wanted = frozenset().union(*self.subscriptions.values())
        return [
            (topic, partition)
            for topic in sorted(wanted)
            for partition in range(self.partitions.get(topic, 0))
        ]


Assignor: TypeAlias = Callable[[Spec], dict[str, frozenset[Slot]]]


def range_(spec: Spec) -> dict[str, frozenset[Slot]]:
    """Give each member a range of consecutive partitions of each of its topics.

    Topics with the same subscribers are divided alike, so that the partitions of one
    number go to the same member.
    """
    found: dict[str, set[Slot]] = {member: set() for member in spec.subscriptions}
    for topic in sorted(frozenset().union(*spec.subscriptions.values())):
        members = spec.order(
            [one for one, topics in spec.subscriptions.items() if topic in topics]
        )
        share, extra = divmod(spec.partitions.get(topic, 0), len(members))
        first = 0
        for place, member in enumerate(members):
            last = first + share + (place < extra)
            found[member].update((topic, number) for number in range(first, last))
            first = last
    return {member: frozenset(slots) for member, slots in found.items()}


def uniform(spec: Spec) -> dict[str, frozenset[Slot]]:
    """Divide the partitions evenly and move as few as possible."""
    # Kafka has two algorithms; the one for equal subscriptions is quick and exact.
    if len(set(spec.subscriptions.values())) == 1:
        return _uniform_alike(spec)
    slots = spec.slots()
    found = _keep(spec, set(slots))
    taken = {slot for mine in found.values() for slot in mine}
    members = spec.order(list(spec.subscriptions))
    for slot in slots:
        if slot not in taken:
            able = [one for one in members if slot[0] in spec.subscriptions[one]]
            found[min(able, key=lambda one: len(found[one]))].add(slot)
    while _even_out(spec, members, found):
        pass
    return {member: frozenset(mine) for member, mine in found.items()}


def _uniform_alike(spec: Spec) -> dict[str, frozenset[Slot]]:
    """Assign if all members subscribe to the same topics, in the same steps as Kafka.

    The order decides which partitions move, so it has to be Kafka's.
    """
    members = java_order(spec.subscriptions, text_hash)
    topics = java_order(spec.subscriptions[members[0]], uuid_hash)
    everything = [
        (topic, number)
        for topic in topics
        for number in range(spec.partitions.get(topic, 0))
    ]
    kept = _keep(spec, set(everything))
    given = {slot for mine in kept.values() for slot in mine}
    unassigned = [slot for slot in everything if slot not in given]
    share, extra = divmod(len(everything), len(members))
    place = {slot: number for number, slot in enumerate(everything)}
    found: dict[str, list[Slot]] = {}
    for member in members:
        quota = share + (extra > 0)
        mine = sorted(kept[member], key=lambda slot: place[slot])
        found[member] = mine[:quota]
        unassigned += mine[quota:]
        if extra > 0 and len(mine) >= quota:
            extra -= 1
    # Kafka takes both the members below quota and the free partitions from the end.
    for member in reversed(members):
        room = share - len(found[member])
        if extra > 0 and room >= 0:
            room += 1
            extra -= 1
        for _ in range(room):
            found[member].append(unassigned.pop())
    return {member: frozenset(mine) for member, mine in found.items()}


def _keep(spec: Spec, slots: set[Slot]) -> dict[str, set[Slot]]:
    """Return what each member keeps: partitions it still subscribes to, each once."""
    taken: set[Slot] = set()
    found: dict[str, set[Slot]] = {}
    for member, topics in spec.subscriptions.items():
        mine = {
            slot
            for slot in spec.current.get(member, frozenset())
            if slot in slots and slot[0] in topics and slot not in taken
        }
        found[member] = mine
        taken |= mine
    return found


def _even_out(spec: Spec, members: list[str], found: dict[str, set[Slot]]) -> bool:
    """Move a partition to a member with fewer, if one can move; return whether."""
    by_load = sorted(members, key=lambda one: -len(found[one]))
    for giver in by_load:
        for taker in reversed(by_load):
            # A difference of one is even.
            if len(found[giver]) - len(found[taker]) < 2:
                break
            wanted = spec.subscriptions[taker]
            movable = [slot for slot in found[giver] if slot[0] in wanted]
            if movable:
                # Not any: the same members and partitions give the same assignment.
                slot = max(movable)
                found[giver].remove(slot)
                found[taker].add(slot)
                return True
    return False


#: By name. The first is the default, also if as many members vote for another.
ASSIGNORS: dict[str, Assignor] = {"uniform": uniform, "range": range_}
