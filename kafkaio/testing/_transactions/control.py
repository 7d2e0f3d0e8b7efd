"""The part of ``broker.control`` that shows and changes transactions."""

from __future__ import annotations

from kafkaio.testing._broker.control import OpenTransaction
from kafkaio.testing._transactions.coordinator import EmbeddedTransactionCoordinator
from kafkaio.testing._transactions.markers import DEFAULT_DELAY
from kafkaio.testing._transactions.transaction import (
    TopicPartition,
    TransactionMetadata,
    TransactionStatus,
)


class TransactionCoordinatorControl:
    """Shows and changes the transactions of a coordinator; a `TransactionControl`."""

    def __init__(self, coordinator: EmbeddedTransactionCoordinator) -> None:
        self._coordinator = coordinator

    def find(self, transactional_id: str) -> OpenTransaction | None:
        """Return the transactions of an id; None if the id is not known."""
        found = self._coordinator.transactions.get(transactional_id)
        return None if found is None else _shown(found)

    def all(self) -> list[OpenTransaction]:
        """Return the transactions of every id, sorted by id."""
        return [
            _shown(one) for _, one in sorted(self._coordinator.transactions.items())
        ]

    def set_epoch(self, transactional_id: str, epoch: int) -> None:
        """Set the epoch of an id.

        Raises:
            KeyError: the id is not known, or has an open transaction.
        """
        found = self._coordinator.transactions[transactional_id]
        if found.state is TransactionStatus.ONGOING or found.state.is_prepared:
            raise KeyError(f"{transactional_id} has an open transaction")
        self._coordinator.set_epoch(found, epoch)

    def time_out(self, transactional_id: str) -> None:
        """Abort an open transaction as if its time had run out.

        Raises:
            KeyError: the id has no open transaction.
        """
        found = self._coordinator.transactions[transactional_id]
        if found.state is not TransactionStatus.ONGOING:
            raise KeyError(f"{transactional_id} has no open transaction")
        self._coordinator.fence(found)

    def delay_markers(
        self, seconds: float | None, topic_partition: TopicPartition | None
    ) -> None:
        """Set how long after the end of a transaction markers are written."""
        markers = self._coordinator.markers
        if topic_partition is None:
            markers.delay = DEFAULT_DELAY if seconds is None else seconds
        elif seconds is None:
            markers.delays.pop(topic_partition, None)
        else:
            markers.delays[topic_partition] = seconds

    def delay_log(self, seconds: float) -> None:
        """Set how long a write to the coordinators' log takes."""
        self._coordinator.log_delay = seconds

    def write_markers(self) -> None:
        """Write all markers whose partitions have a leader that acts."""
        self._coordinator.markers.write_now()

    def clock_moved(self) -> None:
        """Make the checks that a jump of the clock has passed."""
        self._coordinator.clock_moved()


def _shown(one: TransactionMetadata) -> OpenTransaction:
    return OpenTransaction(
        one.transactional_id,
        one.state.label,
        one.producer_id,
        one.epoch,
        tuple(sorted(one.partitions)),
        one.timeout_ms / 1000,
    )
