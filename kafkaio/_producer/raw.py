"""Record batches that were fetched, on their way into another topic.

A whole batch is taken in as it is, as an `EncodedBatch`. Any other one goes the long
way: its records are decompressed and become batches of the producer, which are taken
in one after the other, each as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from kafkaio._machines.accumulator import PlainRecord, Receipt
from kafkaio._producer.bulk import SentValues
from kafkaio._public import public
from kafkaio._records.batch import BatchBuilder
from kafkaio._records.raw import EncodedBatch, RawBatch, plain_records
from kafkaio.types import RecordMetadata

if TYPE_CHECKING:
    from kafkaio._records._callbacks import LoopPort


class Pieces:
    """What is sent for a raw batch.

    Args:
        batch: the raw batch.
        transactional: whether it becomes part of a transaction.
        largest: the most bytes that a batch may have.
        new_builder: makes a builder of the given target size.
        check: raises if a record can never be sent.

    Attributes:
        offsets: the offset of each record where it was fetched.
        batches: batches of these records, in order.

    Raises:
        CorruptRecord: the records have to be decoded, and cannot be.
        RecordTooLarge: a record can never be sent, or the records decompress to more
            than the consumer allows.
    """

    def __init__(
        self,
        batch: RawBatch,
        *,
        transactional: bool,
        largest: int,
        new_builder: Callable[[int], BatchBuilder],
        check: Callable[[PlainRecord], object],
    ) -> None:
        self.offsets: Sequence[int] = range(batch.first_offset, batch.next_offset)
        self.batches: Sequence[EncodedBatch | BatchBuilder]
        if batch.is_whole and batch.size_bytes <= largest:
            self.batches = [EncodedBatch(batch, transactional=transactional)]
            return
        records = plain_records(batch)
        self.offsets = [offset for offset, _ in records]
        builders: list[BatchBuilder] = []
        for _, record in records:
            check(record)
            if not builders or builders[-1].try_append(*record) < 0:
                builders.append(new_builder(largest))
                builders[-1].try_append(*record)
        self.batches = builders


@public("kafkaio")
class RawDelivery:
    """The delivery of one raw batch; see `Producer.enqueue_raw`.

    Await it for the outcome: once, repeatedly, from several tasks, or never. Cancelling
    one await affects neither the batch nor other awaits. The outcome is known at the
    latest when ``delivery_timeout_ms`` has passed or the producer is closed.

    Attributes:
        offsets: the offset of each record in the topic that it was fetched from, in the
            order of the outcome.
    """

    __slots__ = ("_loop", "_receipts", "_sent", "offsets")

    def __init__(self, offsets: Sequence[int], loop: LoopPort) -> None:
        self.offsets: Sequence[int] = offsets
        self._loop = loop
        self._sent = SentValues()
        self._receipts: list[Receipt] = []

    def __await__(self) -> Generator[object, None, Sequence[RecordMetadata]]:
        """Wait until all records of the batch are acknowledged or have failed.

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
        return (yield from self._sent.outcome().__await__())

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def is_done(self) -> bool:
        """Whether the outcome of all records is known."""
        return all(_is_settled(receipt) for receipt in self._receipts)

    def __repr__(self) -> str:
        state = "done" if self.is_done else "on its way"
        return f"<RawDelivery {state} | {len(self)} records>"


def took_in(delivery: RawDelivery, receipt: Receipt) -> None:
    """Note the next batch of a delivery."""
    delivery._receipts.append(receipt)
    delivery._sent.add_run((receipt, 0, receipt.count, -1))


def _is_settled(receipt: Receipt) -> bool:
    if receipt.moved is None:
        return receipt.is_settled
    return all(_is_settled(part) for part, _ in receipt.moved)
