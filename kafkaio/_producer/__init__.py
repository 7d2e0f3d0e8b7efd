"""The producer: records from the user's call to the broker's acknowledgement."""

from __future__ import annotations

from kafkaio._producer.delivery import Delivery as Delivery
from kafkaio._producer.producer import (
    Producer as Producer,
    ProducerStatistics as ProducerStatistics,
)
