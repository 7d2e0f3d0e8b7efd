"""The accumulator: records from the moment they are sent until they have landed."""

from __future__ import annotations

from kafkaio._machines.accumulator.accumulator import Accumulator, Outlook
from kafkaio._machines.accumulator.batch import PlainRecord, ProduceBatch, Receipt
from kafkaio._machines.accumulator.limits import AccumulatorStatistics, Limits
from kafkaio._machines.accumulator.topic import Chooser

__all__ = [
    "Accumulator",
    "AccumulatorStatistics",
    "Chooser",
    "Limits",
    "Outlook",
    "PlainRecord",
    "ProduceBatch",
    "Receipt",
]
