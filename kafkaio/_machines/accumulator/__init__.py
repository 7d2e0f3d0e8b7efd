"""The accumulator: a producer's records until they are acknowledged."""

from __future__ import annotations

from kafkaio._machines.accumulator.accumulator import Accumulator, AccumulatorStatistics
from kafkaio._machines.accumulator.availability import NodeState
from kafkaio._machines.accumulator.gate import Barrier
from kafkaio._machines.accumulator.landing import Landing
from kafkaio._machines.accumulator.limits import Limits
from kafkaio._machines.accumulator.outbox import Outlook
from kafkaio._machines.accumulator.placement import Chooser
from kafkaio._machines.accumulator.queue import PlainRecord, ProduceBatch, Receipt

__all__ = [
    "Accumulator",
    "AccumulatorStatistics",
    "Barrier",
    "Chooser",
    "Landing",
    "Limits",
    "NodeState",
    "Outlook",
    "PlainRecord",
    "ProduceBatch",
    "Receipt",
]
