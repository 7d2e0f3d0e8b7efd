"""The producers of a partition: sequences and transactions (KIP-98, KIP-360, KIP-890).

`ProducerStates` knows what the leader of a real cluster knows of each producer id: its
epoch, its last five batches, the first offset of its open transaction, the epoch of
the coordinator that wrote its last marker. From these follow the refusals of batches
and markers, and the last stable offset.

Before the first batch of a transaction the leader asks the transaction coordinator;
what the batch said is noted as a *verification* until a batch is appended. As in
Kafka, the lowest sequence number noted has to come first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kafkaio._named_tuple import NamedTuple
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._log import AbortedTransaction, ProducerEntry

#: As in Kafka: a producer's last five batches are recognised if they are sent again.
REMEMBERED: Final = 5
_SEQUENCES: Final = 2**31
_NONE: Final = -1
#: The transaction version from which a marker's epoch must be a new one.
_BUMPING: Final = 2


class ProducerBatch(NamedTuple):
    """The fields of a batch header that the producer sets."""

    producer_id: int
    epoch: int
    base_sequence: int
    record_count: int
    is_transactional: bool = False
    timestamp: int = -1

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; it wraps after 2**31 - 1."""
        return (self.base_sequence + self.record_count - 1) % _SEQUENCES


class TransactionMarker(NamedTuple):
    """The end of a transaction in a partition.

    Attributes:
        producer_id: id of the producer.
        epoch: the epoch that the marker has.
        is_commit: whether the transaction is committed.
        coordinator_epoch: epoch of the coordinator that ended it.
        transaction_version: 2 if the epoch has to be higher than that of the records
            (KIP-890), lower if it can be the same.
        timestamp: when it was written, in milliseconds of the wall clock.
    """

    producer_id: int
    epoch: int
    is_commit: bool
    coordinator_epoch: int = 0
    transaction_version: int = 0
    timestamp: int = -1


class _Appended(NamedTuple):
    base_sequence: int
    last_sequence: int
    base_offset: int
    log_append_time: int
    offset_delta: int


@dataclass(slots=True)
class _Producer:
    """A producer.

    Attributes:
        epoch: the last epoch seen.
        batches: the last batches of this epoch.
        coordinator_epoch: of the last marker; -1 for none.
        timestamp: of the last batch or marker.
        open_since: first offset of the open transaction; -1 for none.
    """

    epoch: int
    batches: deque[_Appended] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    coordinator_epoch: int = -1
    timestamp: int = -1
    open_since: int = _NONE

    def enter(self, epoch: int) -> None:
        """Note the epoch of a batch or marker; a new one begins without batches."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


@dataclass(slots=True)
class _Verification:
    epoch: int
    lowest_sequence: int
    is_from_zero: bool


class ProducerStates:
    """The producers of one partition.

    The leader calls `find_duplicate` and `check` before it appends a batch, and
    `appended` afterwards; for markers `check_marker` and `ended`.

    Args:
        fenced: the lowest epoch accepted, by producer id, in all partitions.
    """

    def __init__(self, fenced: Mapping[int, int] | None = None) -> None:
        self._producers: dict[int, _Producer] = {}
        self._fenced: Mapping[int, int] = {} if fenced is None else fenced
        self._verifications: dict[int, _Verification] = {}
        # First offsets of open transactions, by producer id.
        self._open: dict[int, int] = {}

    @property
    def epochs(self) -> dict[int, int]:
        """The latest epoch of every producer that wrote, by producer id."""
        return {found: one.epoch for found, one in self._producers.items()}

    @property
    def first_unstable(self) -> int | None:
        """The first offset of all open transactions; None if there is none."""
        return min(self._open.values()) if self._open else None

    @property
    def open_transactions(self) -> dict[int, int]:
        """The first offsets of open transactions, by producer id."""
        return dict(self._open)

    # ---- batches -----------------------------------------------------------------

    def find_duplicate(self, batch: ProducerBatch) -> tuple[int, int] | None:
        """Base offset and append time of the same batch, if it is a recent one."""
        producer = self._producers.get(batch.producer_id)
        # A new epoch begins its sequence numbers anew, so equal numbers are other
        # records.
        if producer is None or producer.epoch != batch.epoch:
            return None
        # A fenced producer must learn it, even from a batch that it repeats.
        if batch.epoch < self._fenced.get(batch.producer_id, 0):
            return None
        for kept in producer.batches:
            if (kept.base_sequence, kept.last_sequence) == (
                batch.base_sequence,
                batch.last_sequence,
            ):
                return kept.base_offset, kept.log_append_time
        return None

    def begin_verification(self, batch: ProducerBatch, *, is_from_zero: bool) -> bool:
        """Note a transactional batch, for which the coordinator is to be asked.

        Args:
            batch: the batch.
            is_from_zero: whether a sequence that is not known has to begin at 0.

        Returns:
            False if its transaction is open here: then there is nothing to ask.

        Raises:
            Refusal: INVALID_PRODUCER_EPOCH for an epoch older than the last.
        """
        self.check_epoch(batch.producer_id, batch.epoch)
        producer = self._producers.get(batch.producer_id)
        is_known = producer is not None and producer.epoch == batch.epoch
        # The transaction has a batch here, so the coordinator has the partition.
        if is_known and batch.producer_id in self._open:
            return False
        known = self._verifications.get(batch.producer_id)
        if known is None or batch.epoch > known.epoch:
            self._verifications[batch.producer_id] = _Verification(
                batch.epoch, batch.base_sequence, is_from_zero
            )
        # A later batch of the transaction can overtake the first: the lowest sequence
        # number is the one to wait for.
        elif batch.epoch == known.epoch:
            known.lowest_sequence = min(known.lowest_sequence, batch.base_sequence)
        return True

    def check_epoch(self, producer_id: int, epoch: int) -> None:
        """Check that a producer's epoch is not older than the last.

        Raises:
            Refusal: INVALID_PRODUCER_EPOCH.
        """
        producer = self._producers.get(producer_id)
        known = 0 if producer is None else producer.epoch
        lowest = max(known, self._fenced.get(producer_id, 0))
        if epoch < lowest:
            raise Refusal(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch {epoch} is older than {lowest}",
            )

    def check(self, batch: ProducerBatch) -> None:
        """Check that a batch follows the producer's last batch.

        An unknown producer may begin with any sequence number, as on a real broker
        whose state of it has expired; with 0 only, if its verification says so.

        Raises:
            Refusal: INVALID_PRODUCER_EPOCH for an epoch older than the last,
                OUT_OF_ORDER_SEQUENCE_NUMBER for any other sequence number than the
                next, INVALID_TXN_STATE for a plain batch while the producer's
                transaction is open.
        """
        self.check_epoch(batch.producer_id, batch.epoch)
        producer = self._producers.get(batch.producer_id)
        self._check_verification(batch, is_new=producer is None or not producer.batches)
        if producer is None:
            return
        # After a marker of a new epoch there are no batches to follow.
        if batch.epoch != producer.epoch or not producer.batches:
            expected = 0
        else:
            expected = (producer.batches[-1].last_sequence + 1) % _SEQUENCES
        if batch.base_sequence != expected:
            raise _out_of_order(batch, f"expected {expected}")
        # Its records would be committed or aborted with the transaction, although they
        # are not part of it.
        if producer.open_since != _NONE and not batch.is_transactional:
            raise Refusal(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {batch.producer_id} has an open transaction here",
            )

    def _check_verification(self, batch: ProducerBatch, *, is_new: bool) -> None:
        noted = self._verifications.get(batch.producer_id)
        if noted is None:
            return
        if noted.is_from_zero and is_new and batch.base_sequence != 0:
            raise _out_of_order(batch, "expected 0")
        if batch.base_sequence > noted.lowest_sequence:
            raise _out_of_order(batch, f"seen {noted.lowest_sequence} before")

    def appended(
        self, batch: ProducerBatch, base_offset: int, log_append_time: int
    ) -> None:
        """Record a batch that was appended."""
        producer = self._producers.setdefault(batch.producer_id, _Producer(batch.epoch))
        producer.enter(batch.epoch)
        producer.timestamp = batch.timestamp
        # Committed offsets, which a coordinator writes, have no sequence numbers.
        if batch.base_sequence >= 0:
            delta = batch.record_count - 1
            producer.batches.append(
                _Appended(
                    batch.base_sequence,
                    batch.last_sequence,
                    base_offset,
                    log_append_time,
                    delta,
                )
            )
        if batch.is_transactional:
            self._verifications.pop(batch.producer_id, None)
            if producer.open_since == _NONE:
                producer.open_since = base_offset
                self._open[batch.producer_id] = base_offset

    # ---- markers -----------------------------------------------------------------

    def check_marker(self, marker: TransactionMarker) -> None:
        """Check the epochs of a marker that is to be appended.

        Raises:
            Refusal: INVALID_PRODUCER_EPOCH for an epoch that is too old,
                TRANSACTION_COORDINATOR_FENCED for an older coordinator's marker.
        """
        producer = self._producers.get(marker.producer_id)
        if producer is None:
            return
        bumps = marker.transaction_version >= _BUMPING
        # A marker that is written again after the transaction has ended changes
        # nothing (KAFKA-19999).
        is_again = marker.epoch == producer.epoch and producer.open_since == _NONE
        is_old = marker.epoch < producer.epoch or (
            bumps and marker.epoch == producer.epoch and not is_again
        )
        if is_old:
            raise Refusal(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"the marker's epoch {marker.epoch} is too old: {producer.epoch} is"
                " known",
            )
        # A coordinator that was replaced, and does not know it, must not end a
        # transaction of the next one.
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise Refusal(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch} is older than"
                f" {producer.coordinator_epoch}",
            )

    def ended(
        self, marker: TransactionMarker, offset: int
    ) -> AbortedTransaction | None:
        """Record a marker that was appended; return the transaction if it aborts one.

        Args:
            marker: the marker.
            offset: its offset.
        """
        producer = self._producers.setdefault(
            marker.producer_id, _Producer(marker.epoch)
        )
        first, producer.open_since = producer.open_since, _NONE
        # In TV2 a marker has the epoch after that of its records (KIP-890): late
        # batches of the transaction are fenced from here on.
        producer.enter(marker.epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.timestamp = marker.timestamp
        self._verifications.pop(marker.producer_id, None)
        self._open.pop(marker.producer_id, None)
        if first == _NONE or marker.is_commit:
            return None
        # The last stable offset after this marker: readers below it need not know of
        # the transaction.
        stable = self.first_unstable
        return AbortedTransaction(
            marker.producer_id, first, offset, offset + 1 if stable is None else stable
        )

    # ---- as a whole --------------------------------------------------------------

    def expire(self, oldest_ms: int) -> None:
        """Forget the producers without an open transaction that wrote nothing since.

        Args:
            oldest_ms: when their last batch or marker must have been written, in
                milliseconds of the wall clock, to be remembered.
        """
        for producer_id, producer in list(self._producers.items()):
            # A producer with an open transaction stays, or its marker would find
            # nothing to end.
            if producer.open_since == _NONE and producer.timestamp <= oldest_ms:
                del self._producers[producer_id]

    def clear(self) -> None:
        """Forget every producer; the fenced epochs stay."""
        self._producers.clear()
        self._verifications.clear()
        self._open.clear()

    def image(self) -> list[ProducerEntry]:
        """Return what a snapshot has, in the order in which the producers came."""
        found = []
        for producer_id, producer in self._producers.items():
            last = producer.batches[-1] if producer.batches else None
            found.append(
                ProducerEntry(
                    producer_id,
                    producer.epoch,
                    _NONE if last is None else last.last_sequence,
                    _NONE if last is None else last.base_offset + last.offset_delta,
                    0 if last is None else last.offset_delta,
                    producer.timestamp,
                    producer.coordinator_epoch,
                    producer.open_since,
                )
            )
        return found

    def restore(self, entries: list[ProducerEntry]) -> None:
        """Take over the producers of a snapshot."""
        self.clear()
        for entry in entries:
            producer = self._producers[entry.producer_id] = _Producer(
                entry.producer_epoch,
                coordinator_epoch=entry.coordinator_epoch,
                timestamp=entry.timestamp,
                open_since=entry.first_offset,
            )
            # A snapshot has the last batch only; older duplicates are not recognised
            # after a restart, as in Kafka.
            if entry.last_sequence >= 0:
                first = (entry.last_sequence - entry.offset_delta) % _SEQUENCES
                offset = entry.last_offset - entry.offset_delta
                producer.batches.append(
                    _Appended(
                        first, entry.last_sequence, offset, -1, entry.offset_delta
                    )
                )
            if entry.first_offset >= 0:
                self._open[entry.producer_id] = entry.first_offset


def _out_of_order(batch: ProducerBatch, why: str) -> Refusal:
    return Refusal(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {batch.producer_id} sent sequence {batch.base_sequence}, {why}",
    )
