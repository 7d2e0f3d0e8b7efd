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
from kafkaio._producer.delivery import settled, unsettled
from kafkaio._public import public
from kafkaio._records.builder import BatchBuilder
from kafkaio._records.raw import RawBatch, plain_records
from kafkaio.types import RecordMetadata

if TYPE_CHECKING:
    from kafkaio._records._callbacks import LoopPort


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
    """The delivery of one raw batch; see `Producer.enqueue_raw`.

    Await it for the outcome: once, repeatedly, from several tasks, or never. Cancelling
    one await affects neither the batch nor other awaits. The outcome is known at the
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


def took_in(delivery: RawDelivery, receipt: Receipt) -> None:
    """Note the next batch of a delivery."""
    delivery._receipts.append(receipt)
