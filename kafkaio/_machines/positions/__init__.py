"""The position of each assigned partition: where reading goes on."""

from __future__ import annotations

from kafkaio._machines.positions.new_partitions import (
    KnownTopic as KnownTopic,
)
from kafkaio._machines.positions.new_partitions import (
    NewPartitionDetector as NewPartitionDetector,
)
from kafkaio._machines.positions.new_partitions import (
    follows_committed as follows_committed,
)
from kafkaio._machines.positions.overdue import PATIENCE as PATIENCE
from kafkaio._machines.positions.overdue import Overdue as Overdue
from kafkaio._machines.positions.positions import Positions as Positions
from kafkaio._machines.positions.stages import (
    TRANSITIONS as TRANSITIONS,
)
from kafkaio._machines.positions.stages import (
    FetchPoint as FetchPoint,
)
from kafkaio._machines.positions.stages import (
    PartitionPosition as PartitionPosition,
)
from kafkaio._machines.positions.stages import (
    PositionEvent as PositionEvent,
)
from kafkaio._machines.positions.stages import (
    PositionStage as PositionStage,
)
from kafkaio._machines.positions.stages import (
    PositionToken as PositionToken,
)
from kafkaio._machines.positions.stages import (
    Reset as Reset,
)
from kafkaio._machines.positions.stages import (
    ResetTo as ResetTo,
)
from kafkaio._machines.positions.stages import (
    Truncation as Truncation,
)
from kafkaio._machines.positions.stages import (
    Unvalidated as Unvalidated,
)
