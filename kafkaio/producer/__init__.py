"""The producer: records from the user's call to the broker's acknowledgement."""

from __future__ import annotations

from kafkaio.producer.bulk import DeliveriesFailed
from kafkaio.producer.delivery import Delivery
from kafkaio.producer.producer import Producer, ProducerStatistics

__all__ = ["DeliveriesFailed", "Delivery", "Producer", "ProducerStatistics"]
