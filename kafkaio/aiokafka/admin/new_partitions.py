"""`NewPartitions`."""

from __future__ import annotations

from collections.abc import Sequence

from kafkaio._public import public

__all__ = ["NewPartitions"]


@public("kafkaio.aiokafka.admin")
class NewPartitions:
    """How many partitions a topic is to have.

    Args:
        total_count: the number with those that it has.
        new_assignments: ids of the brokers of each new partition; None lets the cluster
            choose.
    """

    def __init__(
        self, total_count: int, new_assignments: Sequence[Sequence[int]] | None = None
    ) -> None:
        self.total_count = total_count
        self.new_assignments = new_assignments
