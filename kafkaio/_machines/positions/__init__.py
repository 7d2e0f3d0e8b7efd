"""Where reading stands in each assigned partition."""

from __future__ import annotations

from kafkaio._machines.positions.positions import Positions
from kafkaio._machines.positions.stages import (
    TRANSITIONS,
    Cut,
    Event,
    FetchPoint,
    PartitionPosition,
    Reset,
    ResetTo,
    Stage,
    Token,
    Unproven,
)

__all__ = [
    "TRANSITIONS",
    "Cut",
    "Event",
    "FetchPoint",
    "PartitionPosition",
    "Positions",
    "Reset",
    "ResetTo",
    "Stage",
    "Token",
    "Unproven",
]
