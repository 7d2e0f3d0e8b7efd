"""The accumulator: a producer's records until they are acknowledged."""

from __future__ import annotations

from kafkaio._machines.accumulator.accumulator import (
    Accumulator as Accumulator,
    BufferStatistics as BufferStatistics,
)
from kafkaio._machines.accumulator.availability import NodeState as NodeState
from kafkaio._machines.accumulator.completion import Completion as Completion
from kafkaio._machines.accumulator.gate import Barrier as Barrier
from kafkaio._machines.accumulator.limits import Limits as Limits
from kafkaio._machines.accumulator.outbox import Outlook as Outlook
from kafkaio._machines.accumulator.placement import Chooser as Chooser
from kafkaio._machines.accumulator.queue import (
    PlainRecord as PlainRecord,
    ProduceBatch as ProduceBatch,
    Receipt as Receipt,
)
