"""The base class of assignors."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafkaio.aiokafka.cluster import ClusterMetadata
from kafkaio.aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

__all__ = ["AbstractPartitionAssignor"]


class AbstractPartitionAssignor(abc.ABC):
    """Divides the partitions of a classic group, in the member that leads it.

    A consumer takes the class, and not an object: ``partition_assignment_strategy=
    (MyAssignor,)``. Members agree on an assignor by its name.
    """

    if TYPE_CHECKING:
        # Assignors have an attribute of the class in its place.
        name: str
    else:

        @property
        @abc.abstractmethod
        def name(self) -> str:
            """The name of the assignor."""

    @classmethod
    @abc.abstractmethod
    def assign(
        cls,
        cluster: ClusterMetadata,
        members: Mapping[str, ConsumerProtocolMemberMetadata],
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Return the partitions of each member.

        Args:
            cluster: the topics of the group and their partitions.
            members: the subscriptions by the ids of the members.
        """

    @classmethod
    @abc.abstractmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return what this member sends to the leader of the group.

        Args:
            topics: the topics that it subscribes to. All of them have to be in it.
        """

    @classmethod
    @abc.abstractmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Note what this member was assigned.

        It is called before `metadata` of the next rebalance, and not at once.

        Args:
            assignment: the partitions, without the assignor's data.
        """
