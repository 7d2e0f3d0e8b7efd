"""Assignors of aiokafka for a consumer of kafkaio."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import kafkaio
from kafkaio import TopicPartition
from kafkaio.aiokafka.cluster import ClusterMetadata
from kafkaio.aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafkaio.aiokafka.coordinator.assignors.range import RangePartitionAssignor
from kafkaio.aiokafka.coordinator.assignors.roundrobin import (
    RoundRobinPartitionAssignor,
)
from kafkaio.aiokafka.coordinator.assignors.sticky.sticky_assignor import (
    StickyPartitionAssignor,
)
from kafkaio.aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from kafkaio.aiokafka.structs import PartitionMetadata

_READY: tuple[type[AbstractPartitionAssignor], ...] = (
    RangePartitionAssignor,
    RoundRobinPartitionAssignor,
    StickyPartitionAssignor,
)


def adapted(
    strategy: Sequence[type[AbstractPartitionAssignor]],
) -> list[str | kafkaio.Assignor]:
    """Return the option ``partition_assignment_strategy`` of kafkaio.

    The assignors that aiokafka has are those of kafkaio, by name. Others, also those
    that inherit from one of these, are called as they are.

    Args:
        strategy: classes, the preferred one first. An object that behaves like such a
            class will do.

    Raises:
        ConfigurationError: there is none, or one inherits from the sticky assignor.
    """
    if not strategy:
        raise kafkaio.ConfigurationError(
            "partition_assignment_strategy names no assignor"
        )
    return [_adapted(each) for each in strategy]


def _adapted(kind: type[AbstractPartitionAssignor]) -> str | kafkaio.Assignor:
    if kind in _READY:
        return str(kind.name)
    # An object that behaves like such a class has no bases.
    if StickyPartitionAssignor in getattr(kind, "__mro__", ()):
        raise kafkaio.ConfigurationError(
            f"partition_assignment_strategy: {kind.__name__} inherits from "
            "StickyPartitionAssignor, which only names the assignor of kafkaio"
        )
    return _Adapted(kind)


class _Adapted:
    """An assignor of aiokafka as a `kafkaio.Assignor`."""

    #: Each rebalance takes every partition from every member, as with aiokafka.
    cooperative = False

    def __init__(self, kind: type[AbstractPartitionAssignor]) -> None:
        self.name = str(kind.name)
        self._kind = kind
        self._owned: frozenset[TopicPartition] = frozenset()

    def __repr__(self) -> str:
        return f"<assignor {self.name!r} of aiokafka>"

    def user_data(self, subscription: kafkaio.Subscription) -> bytes | None:
        """Return the data of the assignor; tells it before what was assigned last."""
        if subscription.owned != self._owned:
            self._owned = subscription.owned
            self._kind.on_assignment(
                ConsumerProtocolMemberAssignment(0, _by_topic(self._owned), b"")
            )
        made = self._kind.metadata(subscription.topics)
        if {*made.subscription} != subscription.topics:
            raise NotImplementedError(
                f"assignor {self.name!r}: metadata() changes the subscription from "
                f"{sorted(subscription.topics)} to {sorted(made.subscription)}"
            )
        return made.user_data or None

    def assign(
        self, layout: kafkaio.Layout, members: Mapping[str, kafkaio.Subscription]
    ) -> Mapping[str, Collection[TopicPartition]]:
        """Return the partitions of each member, as the assignor divides them."""
        cluster = ClusterMetadata().with_partitions(
            PartitionMetadata(
                topic,
                number,
                layout.leaders.get(TopicPartition(topic, number), -1),
                [],
                [],
                None,
            )
            for topic, count in layout.counts.items()
            for number in range(count)
        )
        found = self._kind.assign(
            cluster,
            {
                member: ConsumerProtocolMemberMetadata(
                    0, sorted(each.topics), each.user_data or b""
                )
                for member, each in members.items()
            },
        )
        if any(each.user_data for each in found.values()):
            raise NotImplementedError(
                f"assignor {self.name!r}: kafkaio sends no user_data of an assignment"
            )
        return {member: each.partitions() for member, each in found.items()}


def _by_topic(partitions: Collection[TopicPartition]) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return [*found.items()]
