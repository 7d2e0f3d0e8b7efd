"""The position of each assigned partition: where reading goes on."""

from __future__ import annotations

from kafkaio._machines.positions.new_partitions import (
    KnownTopic as KnownTopic,
    NewPartitionDetector as NewPartitionDetector,
    follows_committed as follows_committed,
)
from kafkaio._machines.positions.overdue import PATIENCE as PATIENCE, Overdue as Overdue
from kafkaio._machines.positions.positions import Positions as Positions
from kafkaio._machines.positions.stages import (
    TRANSITIONS as TRANSITIONS,
    FetchPoint as FetchPoint,
    PartitionPosition as PartitionPosition,
    PositionEvent as PositionEvent,
    PositionStage as PositionStage,
    PositionToken as PositionToken,
    Reset as Reset,
    ResetTo as ResetTo,
    Truncation as Truncation,
    Unvalidated as Unvalidated,
)
