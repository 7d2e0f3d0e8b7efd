"""The position of each assigned partition: where reading goes on."""

from __future__ import annotations

from kafkaio._machines.positions.new_partitions import (
    KnownTopic,
    NewPartitions,
    follows_committed,
)
from kafkaio._machines.positions.overdue import PATIENCE, Overdue
from kafkaio._machines.positions.positions import Positions
from kafkaio._machines.positions.stages import (
    TRANSITIONS,
    Event,
    FetchPoint,
    PartitionPosition,
    Reset,
    ResetTo,
    Stage,
    Token,
    Truncation,
    Unvalidated,
)

__all__ = [
    "PATIENCE",
    "TRANSITIONS",
    "Event",
    "FetchPoint",
    "KnownTopic",
    "NewPartitions",
    "Overdue",
    "PartitionPosition",
    "Positions",
    "Reset",
    "ResetTo",
    "Stage",
    "Token",
    "Truncation",
    "Unvalidated",
    "follows_committed",
]
