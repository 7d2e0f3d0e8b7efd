"""The state of idempotent producers in a partition (KIP-98, KIP-360)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.testing.broker.refusal import Refusal

__all__ = ["ProducerBatch", "ProducerStates"]

#: As in Kafka: a producer's last five batches are recognised if they are sent again.
REMEMBERED: Final = 5
_SEQUENCES: Final = 2**31


class ProducerBatch(NamedTuple):
    """The fields of a batch header that the producer sets."""

    producer_id: int
    epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; it wraps after 2**31 - 1."""
        return (self.base_sequence + self.record_count - 1) % _SEQUENCES


class _Appended(NamedTuple):
    base_sequence: int
    last_sequence: int
    base_offset: int
    log_append_time: int


@dataclass(slots=True)
class _Producer:
    epoch: int
    batches: deque[_Appended] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


class ProducerStates:
    """The producers of one partition.

    The leader calls `find_duplicate` and `check` before it appends a batch, and
    `appended` afterwards.

    Args:
        fenced: the lowest epoch accepted, by producer id, in all partitions.
    """

    def __init__(self, fenced: Mapping[int, int] | None = None) -> None:
        self._producers: dict[int, _Producer] = {}
        self._fenced: Mapping[int, int] = {} if fenced is None else fenced

    @property
    def epochs(self) -> dict[int, int]:
        """The latest epoch of every producer that wrote, by producer id."""
        return {found: one.epoch for found, one in self._producers.items()}

    def find_duplicate(self, batch: ProducerBatch) -> tuple[int, int] | None:
        """Base offset and append time of the same batch, if it is a recent one."""
        producer = self._producers.get(batch.producer_id)
        if producer is None or producer.epoch != batch.epoch:
            return None
        if batch.epoch < self._fenced.get(batch.producer_id, 0):
            return None
        for kept in producer.batches:
            if (kept.base_sequence, kept.last_sequence) == (
                batch.base_sequence,
                batch.last_sequence,
            ):
                return kept.base_offset, kept.log_append_time
        return None

    def check(self, batch: ProducerBatch) -> None:
        """Check that a batch follows the producer's last batch.

        An unknown producer may begin with any sequence number, as on a real broker
        whose state of it has expired.

        Raises:
            Refusal: INVALID_PRODUCER_EPOCH for an epoch older than the last,
                OUT_OF_ORDER_SEQUENCE_NUMBER for any other sequence number than the
                next.
        """
        producer = self._producers.get(batch.producer_id)
        known = 0 if producer is None else producer.epoch
        lowest = max(known, self._fenced.get(batch.producer_id, 0))
        if batch.epoch < lowest:
            raise Refusal(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch {batch.epoch} is older than {lowest}",
            )
        if producer is None:
            return
        expected = 0
        if batch.epoch == producer.epoch:
            if not producer.batches:
                return
            expected = (producer.batches[-1].last_sequence + 1) % _SEQUENCES
        if batch.base_sequence != expected:
            raise Refusal(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {batch.producer_id} sent sequence {batch.base_sequence},"
                f" expected {expected}",
            )

    def clear(self) -> None:
        """Forget every producer; the fenced epochs stay."""
        self._producers.clear()

    def appended(
        self, batch: ProducerBatch, base_offset: int, log_append_time: int
    ) -> None:
        """Record a batch that was appended."""
        producer = self._producers.get(batch.producer_id)
        if producer is None or producer.epoch != batch.epoch:
            producer = self._producers[batch.producer_id] = _Producer(batch.epoch)
        producer.batches.append(
            _Appended(
                batch.base_sequence, batch.last_sequence, base_offset, log_append_time
            )
        )
