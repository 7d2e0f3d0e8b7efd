"""Reading records: the consumer, and what it hands out."""

from __future__ import annotations

from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.subscription import Assignor, Subscription
from kafkaio.consumer.batch import Batch
from kafkaio.consumer.commit import ToCommit
from kafkaio.consumer.consumer import Consumer, RewindTo
from kafkaio.consumer.parallel import DeadLetter, Lane, LaneBatches, LaneIterator
from kafkaio.consumer.reading.iterators import BatchIterator, Poll, TableIterator
from kafkaio.consumer.rebalance.events import (
    Assigned,
    Hold,
    Lost,
    Rebalance,
    Revoked,
    RevokeRequested,
)
from kafkaio.consumer.rebalance.feed import Rebalances
from kafkaio.consumer.statistics import ConsumerStatistics, PartitionStatistics

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
