"""Which fetched batches the application sees (KIP-98).

Control batches (transaction markers) never reach the application. Under
``read_committed`` neither do the batches of aborted transactions. A Fetch response
lists the aborted transactions that overlap its records as (producer id, first offset),
in no order. A batch belongs to one of them if that producer's transaction began at or
before the batch's last offset, and its abort marker has not come yet.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Final, Protocol

_ABORT: Final = 0


class BatchPort(Protocol):
    """The facts about a batch that a filter needs."""

    @property
    def last_offset(self) -> int:
        """Offset of the last record, removed or not."""

    @property
    def producer_id(self) -> int:
        """Id of the producer, -1 if it has none."""

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""

    @property
    def is_control(self) -> bool:
        """Whether the batch is a marker."""

    def control_type(self) -> int | None:
        """The type of a control batch; None if the log cleaner removed the marker."""


class ReadUncommitted:
    """Accepts every batch with data."""

    __slots__ = ()

    def passes(self, batch: BatchPort) -> bool:
        """Whether the batch's records go to the application."""
        return not batch.is_control


class ReadCommitted:
    """Accepts batches that are not part of an aborted transaction.

    Call `passes` for every batch of one partition's response, in order. A batch that
    passes may be checked again before the next one.

    Args:
        aborted: (producer id, first offset) of each aborted transaction listed.
    """

    __slots__ = ("_aborted", "_pending")

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        # A heap by first offset: transactions that begin after the batches so far.
        self._pending = [(first_offset, pid) for pid, first_offset in aborted]
        heapq.heapify(self._pending)
        # Producers inside an aborted transaction at the last batch.
        self._aborted: set[int] = set()

    def passes(self, batch: BatchPort) -> bool:
        """Whether the batch's records go to the application.

        Raises:
            CorruptRecord: a control batch cannot be decoded.
        """
        pending = self._pending
        while pending and pending[0][0] <= batch.last_offset:
            self._aborted.add(heapq.heappop(pending)[1])
        if batch.is_control:
            # An empty control batch lost its marker to the log cleaner, together with
            # every record of the transaction: there is nothing it could end.
            if batch.producer_id in self._aborted and batch.control_type() == _ABORT:
                self._aborted.discard(batch.producer_id)
            return False
        return not (batch.is_transactional and batch.producer_id in self._aborted)
