"""What a partition remembers of idempotent producers (KIP-98, KIP-360)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.testing.broker.refusal import Refusal

__all__ = ["ProducerBatch", "ProducerStates"]

#: Kafka recognises a repetition of any of a producer's last five batches.
REMEMBERED: Final = 5
_SEQUENCES: Final = 2**31


class ProducerBatch(NamedTuple):
    """The producer's half of a batch header."""

    producer_id: int
    epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; it wraps after 2**31 - 1."""
        return (self.base_sequence + self.record_count - 1) % _SEQUENCES


class _Kept(NamedTuple):
    base_sequence: int
    last_sequence: int
    base_offset: int
    log_append_time: int


@dataclass(slots=True)
class _Producer:
    epoch: int
    batches: deque[_Kept] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


class ProducerStates:
    """The producers of one partition.

    ``find_duplicate`` and ``check`` come before an append, ``appended`` after it.

    Args:
        fenced: the lowest epoch that is let in, by producer id, in all partitions.
    """

    def __init__(self, fenced: Mapping[int, int] | None = None) -> None:
        self._producers: dict[int, _Producer] = {}
        self._fenced: Mapping[int, int] = {} if fenced is None else fenced

    @property
    def epochs(self) -> dict[int, int]:
        """The epoch of every producer that wrote, by its id."""
        return {found: one.epoch for found, one in self._producers.items()}

    def find_duplicate(self, batch: ProducerBatch) -> tuple[int, int] | None:
        """Base offset and append time of the same batch, if it is among the last."""
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
        """Hold a batch against what came before it.

        A producer that is not known may begin with any sequence number, as on a real
        broker that has forgotten it.

        Raises:
            Refusal: INVALID_PRODUCER_EPOCH for an older epoch than the last,
                OUT_OF_ORDER_SEQUENCE_NUMBER for a gap or a step back.
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
                f" expected was {expected}",
            )

    def forget(self) -> None:
        """Know no producer any more; fences stay."""
        self._producers.clear()

    def appended(
        self, batch: ProducerBatch, base_offset: int, log_append_time: int
    ) -> None:
        """Remember a batch that is in the log now."""
        producer = self._producers.get(batch.producer_id)
        if producer is None or producer.epoch != batch.epoch:
            producer = self._producers[batch.producer_id] = _Producer(batch.epoch)
        producer.batches.append(
            _Kept(
                batch.base_sequence, batch.last_sequence, base_offset, log_append_time
            )
        )
