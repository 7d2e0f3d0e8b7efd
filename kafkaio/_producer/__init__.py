"""The producer: records from the user's call to the broker's acknowledgement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaio._producer.bulk import (
    DeliveriesFailed as DeliveriesFailed,
    TableDelivery as TableDelivery,
)
from kafkaio._producer.delivery import Delivery as Delivery
from kafkaio._producer.producer import (
    Producer as Producer,
    ProducerStatistics as ProducerStatistics,
)

if TYPE_CHECKING:
    from kafkaio._producer.transaction import (
        Transaction as Transaction,
        TransactionOutcome as TransactionOutcome,
    )


def __getattr__(name: str) -> object:
    # Imported late: most producers have no transactions.
    if name not in {"Transaction", "TransactionOutcome"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kafkaio._producer import transaction

    value: object = getattr(transaction, name)
    return value
