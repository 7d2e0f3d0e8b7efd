"""The admin client: what operators ask of a cluster, and change in it."""

from __future__ import annotations

from kafkaio.admin.admin import Admin
from kafkaio.admin.types import (
    AclOperation,
    ConfigEntry,
    ConfigSource,
    CreatedTopic,
    HangingTransaction,
    NewTopic,
    PartitionDescription,
    ProducerIdAndEpoch,
    ProducerState,
    TopicDescription,
    TopicListing,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)

__all__ = [
    "AclOperation",
    "Admin",
    "ConfigEntry",
    "ConfigSource",
    "CreatedTopic",
    "HangingTransaction",
    "NewTopic",
    "PartitionDescription",
    "ProducerIdAndEpoch",
    "ProducerState",
    "TopicDescription",
    "TopicListing",
    "TransactionDescription",
    "TransactionListing",
    "TransactionState",
]
