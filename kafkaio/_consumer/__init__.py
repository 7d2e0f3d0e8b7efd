"""Reading records: the consumer, and what it hands out."""

from __future__ import annotations

from kafkaio._consumer.batch import Batch as Batch
from kafkaio._consumer.commit import ToCommit as ToCommit
from kafkaio._consumer.consumer import Consumer as Consumer
from kafkaio._consumer.consumer import RewindTo as RewindTo
from kafkaio._consumer.parallel import DeadLetter as DeadLetter
from kafkaio._consumer.parallel import Lane as Lane
from kafkaio._consumer.parallel import LaneBatches as LaneBatches
from kafkaio._consumer.parallel import LaneIterator as LaneIterator
from kafkaio._consumer.reading.iterators import BatchIterator as BatchIterator
from kafkaio._consumer.reading.iterators import Poll as Poll
from kafkaio._consumer.reading.iterators import TableIterator as TableIterator
from kafkaio._consumer.rebalance.events import (
    Assigned as Assigned,
)
from kafkaio._consumer.rebalance.events import (
    Hold as Hold,
)
from kafkaio._consumer.rebalance.events import (
    Lost as Lost,
)
from kafkaio._consumer.rebalance.events import (
    Rebalance as Rebalance,
)
from kafkaio._consumer.rebalance.events import (
    Revoked as Revoked,
)
from kafkaio._consumer.rebalance.events import (
    RevokeRequested as RevokeRequested,
)
from kafkaio._consumer.rebalance.feed import Rebalances as Rebalances
from kafkaio._consumer.statistics import ConsumerStatistics as ConsumerStatistics
from kafkaio._consumer.statistics import PartitionStatistics as PartitionStatistics
from kafkaio._machines.membership.layout import Layout as Layout
from kafkaio._machines.membership.subscription import Assignor as Assignor
from kafkaio._machines.membership.subscription import Subscription as Subscription
