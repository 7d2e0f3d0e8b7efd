"""The assignor that leaves partitions where they are, as far as it is fair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NoReturn

from kafkaio.aiokafka.cluster import ClusterMetadata
from kafkaio.aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafkaio.aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

__all__ = ["StickyPartitionAssignor"]


class StickyPartitionAssignor(AbstractPartitionAssignor):
    """Divides partitions evenly, and moves as few of them as possible.

    A consumer that is given this class uses ``sticky`` of kafkaio, which keeps what a
    member had, for each consumer. This class only names it: it cannot be called, and a
    class that inherits from it cannot be used.
    """

    DEFAULT_GENERATION_ID = -1

    name = "sticky"
    version = 0
    member_assignment: None = None
    generation = DEFAULT_GENERATION_ID

    @classmethod
    def assign(
        cls,
        cluster: ClusterMetadata,
        members: Mapping[str, ConsumerProtocolMemberMetadata],
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Raise NotImplementedError: the consumer does it."""
        _refuse("assign")

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Raise NotImplementedError: the consumer does it."""
        _refuse("metadata")

    @classmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Raise NotImplementedError: the consumer does it."""
        _refuse("on_assignment")

    @classmethod
    def on_generation_assignment(cls, generation: int) -> None:
        """Raise NotImplementedError: the consumer does it."""
        _refuse("on_generation_assignment")

    @classmethod
    def parse_member_metadata(cls, metadata: ConsumerProtocolMemberMetadata) -> object:
        """Raise NotImplementedError: the consumer does it."""
        _refuse("parse_member_metadata")


def _refuse(method: str) -> NoReturn:
    raise NotImplementedError(
        f"StickyPartitionAssignor.{method}: the class only names the assignor of "
        "kafkaio; give the class itself to partition_assignment_strategy"
    )
