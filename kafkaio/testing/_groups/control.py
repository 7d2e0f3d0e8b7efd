"""The part of ``broker.control`` that shows and changes groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafkaio.testing._groups.classic import ClassicGroup
from kafkaio.testing._groups.coordinator import EmbeddedGroupCoordinator
from kafkaio.testing._groups.embedded_protocol import slots_of
from kafkaio.testing._groups.kip848 import Kip848Group


class GroupCoordinatorControl:
    """Shows and changes the groups of a coordinator; a `GroupControl`."""

    def __init__(self, coordinator: EmbeddedGroupCoordinator) -> None:
        self._coordinator = coordinator

    def members(self, group_id: str) -> list[str]:
        """Return the ids of a group's members; empty if the group does not exist."""
        group = self._coordinator.groups.get(group_id)
        return [] if group is None else list(group.members)

    def committed(self, group_id: str, topic: str, partition: int) -> int | None:
        """Return the offset that a group committed for a partition; None for none."""
        offsets = self._coordinator.offsets.get(group_id)
        found = None if offsets is None else offsets.get((topic, partition))
        return None if found is None else found.offset

    def expel(self, group_id: str, member_id: str) -> None:
        """Remove a member as if its session had timed out.

        Raises:
            KeyError: the group or member does not exist.
        """
        group = self._coordinator.groups[group_id]
        with self._coordinator.changing(group) as now:
            if isinstance(group, ClassicGroup):
                group.remove(group.members[member_id], now)
            elif isinstance(group, Kip848Group):
                group.fence(group.members[member_id])
            else:
                group.fence(group.members[member_id])

    def rebalance(self, group_id: str) -> None:
        """Start a rebalance of a group.

        Raises:
            KeyError: the group does not exist.
        """
        group = self._coordinator.groups[group_id]
        with self._coordinator.changing(group) as now:
            if isinstance(group, ClassicGroup):
                group.rebalance(now)
            else:
                group.rebalance()

    def assign(
        self, group_id: str, targets: Mapping[str, Mapping[str, Iterable[int]]] | None
    ) -> None:
        """Set the target assignment of the members of a KIP-848 group.

        Args:
            group_id: the group.
            targets: partition numbers by member id and topic; None returns the choice
                to the group's assignor.

        Raises:
            KeyError: the group or topic does not exist.
            TypeError: it is a classic group, whose leader assigns.
        """
        group = self._coordinator.groups[group_id]
        if isinstance(group, ClassicGroup):
            raise TypeError(f"{group_id} is a classic group: its leader assigns")
        cluster = self._coordinator.cluster
        for name in frozenset[str]().union(*(targets or {}).values()):
            if cluster.topic_id(name) is None:
                raise KeyError(name)
        group.manual = None
        if targets is not None:
            group.manual = {
                member_id: frozenset(slots_of(topics.items(), cluster))
                for member_id, topics in targets.items()
            }
        self.rebalance(group_id)

    def clock_moved(self) -> None:
        """Handle every deadline that a jump of the clock has passed."""
        self._coordinator.clock_moved()
