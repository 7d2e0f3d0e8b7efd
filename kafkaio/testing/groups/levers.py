"""What a test does to groups that no client can."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafkaio.testing.groups.classic import ClassicGroup
from kafkaio.testing.groups.embedded_protocol import slots_of
from kafkaio.testing.groups.kip848 import ConsumerGroup

if TYPE_CHECKING:
    from kafkaio.testing.groups.coordinator import GroupCoordinator

__all__ = ["Levers"]


class Levers:
    """Looks into groups, and moves them by hand."""

    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    def members(self, group_id: str) -> list[str]:
        """Ids of a group's members; none if there is no such group."""
        group = self._coordinator.groups.get(group_id)
        return [] if group is None else list(group.members)

    def committed(self, group_id: str, topic: str, partition: int) -> int | None:
        """The offset that a group has committed, None for none."""
        offsets = self._coordinator.offsets.get(group_id)
        found = None if offsets is None else offsets.get((topic, partition))
        return None if found is None else found.offset

    def expel(self, group_id: str, member_id: str) -> None:
        """Remove a member as if its session had ended.

        Raises:
            KeyError: no such group or member.
        """
        group = self._coordinator.groups[group_id]
        with self._coordinator.at_work(group) as now:
            if isinstance(group, ClassicGroup):
                group.remove(group.members[member_id], now)
            else:
                group.fence(group.members[member_id])

    def rebalance(self, group_id: str) -> None:
        """Force a rebalance of a group.

        Raises:
            KeyError: no such group.
        """
        group = self._coordinator.groups[group_id]
        with self._coordinator.at_work(group) as now:
            if isinstance(group, ClassicGroup):
                group.rebalance(now)
            else:
                group.rebalance()

    def assign(
        self, group_id: str, targets: Mapping[str, Mapping[str, Iterable[int]]] | None
    ) -> None:
        """Say by hand what the members of a consumer protocol's group shall have.

        Args:
            group_id: the group.
            targets: partitions by member id and topic; None lets the assignor decide
                again.

        Raises:
            KeyError: no such group or topic.
            TypeError: the group is of the classic protocol: its leader assigns.
        """
        group = self._coordinator.groups[group_id]
        if not isinstance(group, ConsumerGroup):
            raise TypeError(f"the leader of the classic group {group_id} assigns")
        home = self._coordinator.home
        for name in frozenset[str]().union(*(targets or {}).values()):
            if home.topic_id(name) is None:
                raise KeyError(name)
        group.manual = None
        if targets is not None:
            group.manual = {
                member_id: frozenset(slots_of(topics.items(), home))
                for member_id, topics in targets.items()
            }
        self.rebalance(group_id)

    def clock_moved(self) -> None:
        """Let happen what is due by a clock that jumped."""
        self._coordinator.clock_moved()
