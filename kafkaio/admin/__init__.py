"""The admin client: what operators ask of a cluster, and change in it."""

from __future__ import annotations

from kafkaio.admin.admin import Admin
from kafkaio.admin.types import (
    HangingTransaction,
    ProducerIdAndEpoch,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)

__all__ = [
    "Admin",
    "HangingTransaction",
    "ProducerIdAndEpoch",
    "ProducerState",
    "TransactionDescription",
    "TransactionListing",
    "TransactionState",
]
