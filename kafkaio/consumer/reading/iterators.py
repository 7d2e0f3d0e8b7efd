"""Iterating over batches: classes with ``__anext__``, so that ``break`` is harmless."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, Self, TypeVar
from weakref import ref

from kafkaio._runtime.clock import now
from kafkaio.consumer.arguments import seconds_of
from kafkaio.consumer.batch import Batch, Piece, first_of, to_table
from kafkaio.consumer.core import Core
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BatchIterator", "TableIterator"]

T = TypeVar("T")


class _Gathering(Generic[T]):
    # Waits until there is enough, or has been something for long enough.

    #: Held, so that a consumer that is iterated over is not taken for forgotten.
    consumer: object = None

    def __init__(self, core: Core, max_records: int, max_wait: float) -> None:
        self._core = core
        self._reader = core.reader
        self._max_records = max_records
        self._max_wait = seconds_of("max_wait", max_wait)
        # When what there is has waited long enough; None while there is nothing at
        # hand. Full ones do not put it off, so none waits for ever.
        self._until: float | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """The next one. If cancelled, nothing was taken."""
        while True:
            taken = await self._core.read(self._take, self._deadline)
            if taken is not None:
                return taken

    def _deadline(self) -> float | None:
        return self._until

    def _take(self) -> T | None:
        if not self._reader.has_any():
            self._until = None
            return None
        moment = now()
        if self._until is None:
            self._until = moment + self._max_wait
        is_due = moment >= self._until
        if not is_due and not self._is_full():
            return None
        taken = self._gather(is_due=is_due)
        if is_due:
            self._until = None
        return taken

    def _is_full(self) -> bool:
        raise NotImplementedError

    def _gather(self, *, is_due: bool) -> T | None:
        raise NotImplementedError


class BatchIterator(_Gathering[Batch]):
    """Yields batches of one partition each, as ``Consumer.batches`` says.

    Args:
        core: the consumer's inner works.
        max_records: most records of a batch.
        max_wait: seconds to wait for that many, once there are any.
    """

    def __init__(self, core: Core, max_records: int, max_wait: float) -> None:
        super().__init__(core, max_records, max_wait)
        self._newest: Callable[[], Batch | None] = _nothing
        self._older: Callable[[], Batch | None] = _nothing

    def _is_full(self) -> bool:
        return self._reader.buffers.has_full(self._max_records)

    def _gather(self, *, is_due: bool) -> Batch | None:
        batch = self._reader.take_batch(self._max_records, prefer_full=not is_due)
        if batch is not None:
            batch.detach_from_ended()
            # While this one is worked on, the loop that asked for it may still name
            # the one before. Whoever has an older one keeps it, perhaps for long.
            older, self._newest = self._newest, ref(batch)
            kept, self._older = self._older(), older
            if kept is not None:
                kept.detach()
        return batch


def _nothing() -> None:
    """No batch."""


class TableIterator(_Gathering["pa.Table"]):
    """Yields tables of any partitions, as ``Consumer.arrow_batches`` says.

    Args:
        core: the consumer's inner works.
        max_records: most rows of a table.
        max_wait: seconds to wait for that many, once there are any.
        headers: whether the tables have the records' headers.

    Raises:
        ImportError: pyarrow is not installed.
    """

    def __init__(
        self, core: Core, max_records: int, max_wait: float, *, headers: bool
    ) -> None:
        to_table([], 0)  # before anything is taken
        super().__init__(core, max_records, max_wait)
        self._headers = headers

    def _is_full(self) -> bool:
        return self._reader.buffers.all_at_hand >= self._max_records

    def _gather(self, *, is_due: bool) -> pa.Table | None:
        del is_due
        taken: list[tuple[TopicPartition, Piece]] = []
        try:
            table = to_table(
                self._take_pieces(taken), self._most(), headers=self._headers
            )
        except BaseException:
            # Deserialized objects that Arrow has no type for: they were not read.
            for tp, piece in reversed(taken):
                self._reader.seek(tp, first_of(piece).offset)
            raise
        return table if taken else None

    def _most(self) -> int:
        return min(self._max_records, self._reader.buffers.all_at_hand)

    def _take_pieces(
        self, taken: list[tuple[TopicPartition, Piece]]
    ) -> Iterator[tuple[TopicPartition, Piece]]:
        for part in self._reader.take_pieces(self._max_records):
            taken.append(part)
            yield part
