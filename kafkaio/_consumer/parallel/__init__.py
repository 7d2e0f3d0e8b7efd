"""Working on many records at a time: a handler for each, or a lane per partition."""

from kafkaio._consumer.parallel.dead_letter import DeadLetter
from kafkaio._consumer.parallel.lane import Lane, LaneBatches
from kafkaio._consumer.parallel.lanes import LaneIterator

__all__ = ["DeadLetter", "Lane", "LaneBatches", "LaneIterator"]
