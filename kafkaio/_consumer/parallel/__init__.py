"""Working on many records at a time: a handler for each, or a lane per partition."""

from kafkaio._consumer.parallel.dead_letter import (
    DeadLetter as DeadLetter,
    RecordSender as RecordSender,
)
from kafkaio._consumer.parallel.lane import Lane as Lane, LaneBatches as LaneBatches
from kafkaio._consumer.parallel.lanes import LaneIterator as LaneIterator
