"""Share groups: queues on Kafka (KIP-932)."""

from __future__ import annotations

from kafkaio._share.batch import ShareBatch as ShareBatch
from kafkaio._share.consumer import ShareConsumer as ShareConsumer
from kafkaio._share.reading.iterators import (
    ShareBatchIterator as ShareBatchIterator,
    ShareRecordIterator as ShareRecordIterator,
)
from kafkaio._share.statistics import (
    ShareConsumerStatistics as ShareConsumerStatistics,
)
