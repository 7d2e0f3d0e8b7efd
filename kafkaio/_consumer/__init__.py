"""Reading records: the consumer, and what it hands out."""

from __future__ import annotations

from kafkaio._consumer.batch import Batch
from kafkaio._consumer.commit import ToCommit
from kafkaio._consumer.consumer import Consumer, RewindTo
from kafkaio._consumer.parallel import DeadLetter, Lane, LaneBatches, LaneIterator
from kafkaio._consumer.reading.iterators import BatchIterator, Poll, TableIterator
from kafkaio._consumer.rebalance.events import (
    Assigned,
    Hold,
    Lost,
    Rebalance,
    Revoked,
    RevokeRequested,
)
from kafkaio._consumer.rebalance.feed import Rebalances
from kafkaio._consumer.statistics import ConsumerStatistics, PartitionStatistics
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.subscription import Assignor, Subscription

__all__ = [
    "Assigned",
    "Assignor",
    "Batch",
    "BatchIterator",
    "Consumer",
    "ConsumerStatistics",
    "DeadLetter",
    "Hold",
    "Lane",
    "LaneBatches",
    "LaneIterator",
    "Layout",
    "Lost",
    "PartitionStatistics",
    "Poll",
    "Rebalance",
    "Rebalances",
    "RevokeRequested",
    "Revoked",
    "RewindTo",
    "Subscription",
    "TableIterator",
    "ToCommit",
]
