"""The position of each assigned partition: where reading goes on."""

from __future__ import annotations

from kafkaio._machines.positions.new_partitions import (
    KnownTopic as KnownTopic,
    NewPartitions as NewPartitions,
    follows_committed as follows_committed,
)
from kafkaio._machines.positions.overdue import PATIENCE as PATIENCE, Overdue as Overdue
from kafkaio._machines.positions.positions import Positions as Positions
from kafkaio._machines.positions.stages import (
    TRANSITIONS as TRANSITIONS,
    Event as Event,
    FetchPoint as FetchPoint,
    PartitionPosition as PartitionPosition,
    Reset as Reset,
    ResetTo as ResetTo,
    Stage as Stage,
    Token as Token,
    Truncation as Truncation,
    Unvalidated as Unvalidated,
)
