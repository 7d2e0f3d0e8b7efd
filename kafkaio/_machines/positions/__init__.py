"""The position of each assigned partition: where reading goes on."""

from __future__ import annotations

from kafkaio._machines.positions.new_partitions import (
    KnownTopic as KnownTopic,
)
from kafkaio._machines.positions.new_partitions import (
    NewPartitions as NewPartitions,
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
    Event as Event,
)
from kafkaio._machines.positions.stages import (
    FetchPoint as FetchPoint,
)
from kafkaio._machines.positions.stages import (
    PartitionPosition as PartitionPosition,
)
from kafkaio._machines.positions.stages import (
    Reset as Reset,
)
from kafkaio._machines.positions.stages import (
    ResetTo as ResetTo,
)
from kafkaio._machines.positions.stages import (
    Stage as Stage,
)
from kafkaio._machines.positions.stages import (
    Token as Token,
)
from kafkaio._machines.positions.stages import (
    Truncation as Truncation,
)
from kafkaio._machines.positions.stages import (
    Unvalidated as Unvalidated,
)
