"""Passes batches that cannot be read to a dead letter.

With ``Consumer.run(dead_letter=...)`` a batch that cannot be read is treated like a
record whose handler failed. It becomes one record at the offset where reading stands,
with the bytes of the batch as its value. Reading goes on behind the batch, and the
batch counts as finished when the dead letter has returned.
"""

from __future__ import annotations

from kafkaio._consumer.reading.deserializers import Pending
from kafkaio._consumer.reading.reader import Reader
from kafkaio._records.batch import Record as MadeRecord
from kafkaio.errors import CorruptRecord, RecordTooLarge
from kafkaio.types import Record, TopicPartition

#: The timestamp of a record that stands for a batch: it is not known.
_NO_TIME = -1


class UnreadableBatches:
    """The records that stand for batches, with the errors of these batches.

    Args:
        reader: has the batches.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        # By the identity of the record, which is kept here, so that no other record can
        # get the same identity.
        self._errors: dict[int, tuple[Record, Exception]] = {}
        # The offset of a wrong checksum by partition. The network may be the cause, so
        # such a batch is fetched again once before it goes to the dead letter.
        self._suspects: dict[TopicPartition, int] = {}
        self._again: TopicPartition | None = None

    def stand_in(
        self, tp: TopicPartition, error: CorruptRecord | RecordTooLarge
    ) -> list[Record] | None:
        """Return the record that stands for a batch, and read on behind the batch.

        Args:
            tp: the partition.
            error: why the batch cannot be read.

        Returns:
            None if the bytes of the batch are not known, or if it is fetched again
            first (`is_fetched_again`).
        """
        # A batch that is kept has a right checksum: fetching it again would not help.
        self._again = None
        if not error.raw:
            return None
        is_kept = self._reader.buffers.is_broken(tp)
        if not is_kept and self._suspects.get(tp) != error.offset:
            self._suspects[tp] = error.offset
            self._again = tp
            return None
        self._suspects.pop(tp, None)
        record = MadeRecord(*tp, error.offset, _NO_TIME, None, error.raw)
        self._errors[id(record)] = record, error
        self._reader.pass_over(tp, error.next_offset)
        return [record]

    def is_fetched_again(self, tp: TopicPartition) -> bool:
        """Whether `stand_in` returned None because the batch is fetched again."""
        return self._again == tp

    def has(self, record: Record) -> bool:
        """Whether a record stands for a batch."""
        return id(record) in self._errors

    def forget(self, record: Record) -> None:
        """Note that a record is finished."""
        self._errors.pop(id(record), None)

    def forget_partition(self, tp: TopicPartition) -> None:
        """Note that nothing of a partition is in hand any more."""
        self._suspects.pop(tp, None)
        for key, (record, _) in [*self._errors.items()]:
            if record.topic_partition == tp:
                del self._errors[key]

    def convert(self, record: Record) -> Record | Pending:
        """Deserialize a record, or begin to.

        Raises:
            CorruptRecord: it stands for a batch that cannot be read.
            RecordTooLarge: likewise.
            DeserializationError: a deserializer raised.
            KafkaError: a deserializer raised this, which is retriable.
        """
        if (found := self._errors.get(id(record))) is not None:
            raise found[1]
        deserialize = self._reader.deserialize
        return record if deserialize is None else deserialize(record)
