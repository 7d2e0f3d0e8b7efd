"""Iterating over batches: a class with ``__anext__``, so that ``break`` is harmless."""

from __future__ import annotations

from typing import Self

from kafkaio._runtime.clock import now
from kafkaio.consumer.batch import Batch
from kafkaio.consumer.engine import Engine

__all__ = ["BatchIterator"]


class BatchIterator:
    """Yields batches of one partition each, as ``Consumer.batches`` says.

    Args:
        engine: the consumer's inner works.
        max_records: most records of a batch.
        max_wait: seconds to wait for that many, once there are any.
    """

    def __init__(self, engine: Engine, max_records: int, max_wait: float) -> None:
        self._engine = engine
        self._max_records = max_records
        self._max_wait = max_wait
        # When a batch that is not full has waited long enough; None while there is
        # nothing at hand. Full ones do not put it off, so none waits for ever.
        self._until: float | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        """The next batch. If cancelled, nothing was taken."""
        engine = self._engine
        while True:
            batch = await engine.read(self._take, self._deadline)
            if batch is not None:
                return batch

    def _deadline(self) -> float | None:
        return self._until

    def _take(self) -> Batch | None:
        reader = self._engine.reader
        if not reader.has_any():
            self._until = None
            return None
        moment = now()
        if self._until is None:
            self._until = moment + self._max_wait
        is_due = moment >= self._until
        if not is_due and not reader.has_full(self._max_records):
            return None
        batch = reader.take_batch(self._max_records, prefer_full=not is_due)
        if is_due:
            self._until = None
        return batch
