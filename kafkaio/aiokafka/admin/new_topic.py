"""`NewTopic`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaio._public import public
from kafkaio.aiokafka.errors import IllegalArgumentError

__all__ = ["NewTopic"]


@public("kafkaio.aiokafka.admin")
class NewTopic:
    """A topic to create: with a number of partitions, or with all their replicas.

    Args:
        name: name of the topic.
        num_partitions: number of partitions; -1 with ``replica_assignments``.
        replication_factor: replicas of each; -1 with ``replica_assignments``.
        replica_assignments: ids of the brokers, by the number of the partition.
        topic_configs: configs of the topic.

    Raises:
        IllegalArgumentError: both ways are given, or neither.
    """

    def __init__(
        self,
        name: str,
        num_partitions: int,
        replication_factor: int,
        replica_assignments: Mapping[int, Sequence[int]] | None = None,
        topic_configs: Mapping[str, str | None] | None = None,
    ) -> None:
        has_numbers = num_partitions != -1 and replication_factor != -1
        if has_numbers is not (replica_assignments is None):
            raise IllegalArgumentError(
                "give num_partitions and replication_factor, or replica_assignments"
            )
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.replica_assignments: Mapping[int, Sequence[int]] = (
            replica_assignments or {}
        )
        self.topic_configs: Mapping[str, str | None] = topic_configs or {}
