"""Record batches that were fetched, on their way into another topic.

A whole batch is taken in as it is, as an `EncodedBatch`. Any other one goes the long
way: its records are decompressed and become batches of the producer. Both are taken in
by groups, for each of which memory is set aside at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from kafkaio._machines.accumulator import PlainRecord, Receipt
from kafkaio._named_tuple import NamedTuple
from kafkaio._producer.bulk import SentValues
from kafkaio._producer.delivery import settled, unsettled
from kafkaio._public import public
from kafkaio._records.builder import BatchBuilder
from kafkaio._records.raw import EncodedBatch, RawBatch, plain_records
from kafkaio.types import RecordMetadata

if TYPE_CHECKING:
    from kafkaio._machines.accumulator.queue import BatchRecords
    from kafkaio._records._callbacks import LoopPort


class Conversion(NamedTuple):
    """How a producer takes raw batches in.

    Attributes:
        largest: the most bytes that a batch may have.
        is_transactional: whether the batches become part of a transaction.
        new_builder: makes a builder of the given target size.
        check: raises if a record can never be sent.
    """

    largest: int
    is_transactional: bool
    new_builder: Callable[[int], BatchBuilder]
    check: Callable[[PlainRecord], object]

    def converted(
        self, batches: Sequence[RawBatch]
    ) -> tuple[Sequence[int], list[BatchRecords]]:
        """Return what to send for raw batches of a partition.

        Returns:
            The offset of each record where it was fetched, and batches, in order.

        Raises:
            CorruptRecord: records have to be decoded, and cannot be.
            RecordTooLarge: a record can never be sent, or the records of a batch
                decompress to more than the consumer allows.
        """
        pieces: list[BatchRecords] = []
        parts: list[Sequence[int]] = []
        first = end = batches[0].first_offset if batches else 0
        is_gapless = True
        for batch in batches:
            offsets: Sequence[int] = range(batch.first_offset, batch.next_offset)
            if batch.size_bytes <= self.largest and batch.is_whole:
                pieces.append(EncodedBatch(batch, transactional=self.is_transactional))
            else:
                offsets, builders = divided(
                    batch, self.largest, self.new_builder, self.check
                )
                pieces += builders
                is_gapless = False
            is_gapless &= batch.first_offset == end
            end = batch.next_offset
            parts.append(offsets)
        if is_gapless:
            return range(first, end), pieces
        return parts[0] if len(parts) == 1 else [*chain.from_iterable(parts)], pieces


def grouped(
    pieces: Sequence[BatchRecords], most: int
) -> Iterator[tuple[int, Sequence[BatchRecords]]]:
    """Divide batches into groups of at most so many bytes, or of one batch.

    Yields:
        The bytes of a group, and its batches.
    """
    start = size = 0
    for at, piece in enumerate(pieces):
        if at > start and size + piece.size_bytes > most:
            yield size, pieces[start:at]
            start, size = at, 0
        size += piece.size_bytes
    if start < len(pieces):
        yield size, pieces[start:]


def divided(
    batch: RawBatch,
    largest: int,
    new_builder: Callable[[int], BatchBuilder],
    check: Callable[[PlainRecord], object],
) -> tuple[Sequence[int], Sequence[BatchBuilder]]:
    """Return the records of a raw batch anew, if they cannot be sent as they are.

    Args:
        batch: the raw batch.
        largest: the most bytes that a batch may have.
        new_builder: makes a builder of the given target size.
        check: raises if a record can never be sent.

    Returns:
        The offset of each record where it was fetched, and batches of these records, in
        order.

    Raises:
        CorruptRecord: the records cannot be decoded.
        RecordTooLarge: a record can never be sent, or the records decompress to more
            than the consumer allows.
    """
    records = plain_records(batch)
    builders: list[BatchBuilder] = []
    for _, record in records:
        check(record)
        if not builders or builders[-1].try_append(*record) < 0:
            builders.append(new_builder(largest))
            builders[-1].try_append(*record)
    return [offset for offset, _ in records], builders


@public("kafkaio")
class RawDelivery:
    """The delivery of raw batches; see `Producer.enqueue_raw`.

    Await it for the outcome: once, repeatedly, from several tasks, or never. Cancelling
    one await affects neither the batches nor other awaits. The outcome is known at the
    latest when ``delivery_timeout_ms`` has passed or the producer is closed.

    Attributes:
        offsets: the offset of each record in the topic that it was fetched from, in the
            order of the outcome.
    """

    __slots__ = ("_loop", "_receipts", "offsets")

    def __init__(self, offsets: Sequence[int], loop: LoopPort) -> None:
        self.offsets: Sequence[int] = offsets
        self._loop = loop
        self._receipts: list[Receipt] = []

    def __await__(self) -> Generator[object, None, Sequence[RecordMetadata]]:
        """Wait until all records of the batches are acknowledged or have failed.

        Returns:
            Where each record was written, as `Producer.send_many` returns it. The
            timestamp is -1 unless the broker has set it.

        Raises:
            DeliveriesFailed: some records failed, as a rule all of them: an exception
                group of their errors. It has the error of each record that failed, and
                the place of each other.
            ClosedError: another event loop runs, or another process.
        """
        if not self.is_done:
            self._loop.check()
            yield from settled(self._receipts).__await__()
        sent = SentValues()
        for receipt in self._receipts:
            sent.add_run((receipt, 0, receipt.count, -1))
        return sent.settled()

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def is_done(self) -> bool:
        """Whether the outcome of all records is known."""
        return unsettled(self._receipts) is None

    def __repr__(self) -> str:
        state = "done" if self.is_done else "on its way"
        return f"<RawDelivery {state} | {len(self)} records>"


def took_in(delivery: RawDelivery, receipts: Sequence[Receipt]) -> None:
    """Note the next batches of a delivery."""
    delivery._receipts += receipts
