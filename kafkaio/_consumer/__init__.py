"""Reading records: the consumer, and what it hands out."""

from __future__ import annotations

from kafkaio._consumer.batch import Batch as Batch
from kafkaio._consumer.commit import ToCommit as ToCommit
from kafkaio._consumer.consumer import Consumer as Consumer
from kafkaio._consumer.reading.iterators import (
    BatchIterator as BatchIterator,
    Poll as Poll,
    RawBatchIterator as RawBatchIterator,
    RecordIterator as RecordIterator,
    TableIterator as TableIterator,
)
from kafkaio._consumer.rebalance.events import (
    Assigned as Assigned,
    Hold as Hold,
    Lost as Lost,
    Rebalance as Rebalance,
    Revoked as Revoked,
    RevokeRequested as RevokeRequested,
)
from kafkaio._consumer.rebalance.feed import Rebalances as Rebalances
from kafkaio._consumer.statistics import (
    ConsumerStatistics as ConsumerStatistics,
    PartitionStatistics as PartitionStatistics,
)
