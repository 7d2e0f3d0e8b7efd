"""Batches of records of one partition, as a share consumer hands them out.

A batch is acknowledged by ranges: a decision about all of it costs no time per record,
and makes no records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from kafkaio._arguments import type_name
from kafkaio._consumer.batch import (
    Batch,
    Frame,
    Piece,
    detach,
    detach_if_alone,
    is_most_of_what_it_keeps,
)
from kafkaio._generic import Generic, K_co, V_co
from kafkaio._named_tuple import NamedTuple
from kafkaio._public import public
from kafkaio._records._acquired import ACCEPT, REJECT, RELEASE
from kafkaio._records.batch import Acquired, ShareRecord, acquired_of
from kafkaio.errors import ArgumentTypeError, UsageError
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa


class Part(NamedTuple):
    """Records that were handed out at once, of one record batch.

    Attributes:
        acquired: the ranges that they are of.
        first: the first offset.
        end: the offset after the last one.
    """

    acquired: tuple[Acquired, ...]
    first: int
    end: int


@public("kafkaio")
class ShareBatch(Generic[K_co, V_co]):
    """Records of one partition, at least one, that are locked for this consumer.

    They are in the order of their offsets, but need not be consecutive: other members
    may have those in between. Records are made when they are asked for; `values`,
    `keys`, `to_arrow` and the acknowledgements make none.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
    """

    __slots__ = ("__weakref__", "_batch", "_parts", "partition", "topic")

    topic: str
    partition: int

    def __init__(
        self,
        tp: TopicPartition,
        pieces: list[Piece],
        frames: Sequence[Frame | None],
        parts: Sequence[Part],
    ) -> None:
        self.topic, self.partition = tp
        self._batch: Batch[Any, Any] = Batch(tp, pieces, -1, frames)
        self._parts = parts

    def __repr__(self) -> str:
        return (
            f"<ShareBatch {self.topic}-{self.partition} | {len(self)} records, offsets "
            f"{self.first_offset}-{self.last_offset}>"
        )

    # Reading

    def __len__(self) -> int:
        return len(self._batch)

    def __iter__(self) -> Iterator[ShareRecord[K_co, V_co]]:
        return iter(self._batch)  # type: ignore[arg-type]  # share records

    @overload
    def __getitem__(self, index: int) -> ShareRecord[K_co, V_co]: ...

    @overload
    def __getitem__(self, index: slice) -> list[ShareRecord[K_co, V_co]]: ...

    def __getitem__(
        self, index: int | slice
    ) -> ShareRecord[K_co, V_co] | list[ShareRecord[K_co, V_co]]:
        return self.records[index]

    @property
    def records(self) -> list[ShareRecord[K_co, V_co]]:
        """The records in the order of their offsets, made at once and then kept."""
        return self._batch.records  # type: ignore[return-value]  # share records

    def values(self) -> list[V_co]:
        """Return the values of the records, without making the records."""
        return self._batch.values()

    def keys(self) -> list[K_co]:
        """Return the keys of the records, without making the records."""
        return self._batch.keys()

    def to_arrow(self, *, headers: bool = False) -> pa.Table:
        """Return the records as a pyarrow table, without making the records.

        `kafkaio.arrow` describes the columns. With deserializers, key and value have
        the types of their schemas (a deserializer with a method ``to_arrow``, such as
        `kafkaio.registry.Avro`), or the types that Arrow infers for the objects.

        Args:
            headers: whether the table has a column with the headers.

        Raises:
            ImportError: pyarrow is not installed: ``pip install 'kafkaio[arrow]'``.
            UsageError: Arrow has no type for the deserialized objects.
        """
        return self._batch.to_arrow(headers=headers)

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the records."""
        return TopicPartition(self.topic, self.partition)

    @property
    def first_offset(self) -> int:
        """Offset of the first record."""
        return self._batch.first_offset

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        return self._batch.last_offset

    # Acknowledging

    def ack(self) -> int:
        """Accept the records that have no decision: they are done.

        Nothing is sent by this: the decision joins the next request to the leader.
        Records that were decided one by one keep their decision, and those whose lock
        is gone are delivered again. ``await share.flush()`` waits for the answer.

        Returns:
            How many records were accepted; fewer than ``len(batch)`` if some were
            decided before, or if the lock of some is gone.
        """
        return self._decide(ACCEPT)

    def release(
        self, records: Iterable[ShareRecord[object, object]] | None = None
    ) -> int:
        """Give records back: they are delivered again, to any member of the group.

        Args:
            records: records of this batch; all that have no decision by default.

        Returns:
            How many records were released.

        Raises:
            UsageError: a record is not of this batch, was decided before, or its lock
                is gone. Then nothing was released.
            ArgumentTypeError: something in ``records`` is not a `ShareRecord`.
        """
        if records is None:
            return self._decide(RELEASE)
        return self._decide_each(records, RELEASE)

    def reject(
        self, records: Iterable[ShareRecord[object, object]] | None = None
    ) -> int:
        """Refuse records for good: they are not delivered again.

        Args:
            records: records of this batch; all that have no decision by default.

        Returns:
            How many records were rejected.

        Raises:
            UsageError: a record is not of this batch, was decided before, or its lock
                is gone. Then nothing was rejected.
            ArgumentTypeError: something in ``records`` is not a `ShareRecord`.
        """
        if records is None:
            return self._decide(REJECT)
        return self._decide_each(records, REJECT)

    def _decide(self, decision: int) -> int:
        return sum(decide_part(part, decision) for part in self._parts)

    def _decide_each(
        self, records: Iterable[ShareRecord[object, object]], decision: int
    ) -> int:
        if isinstance(records, ShareRecord):
            raise ArgumentTypeError(
                "records must be several ShareRecord objects: give one in a list"
            )
        chosen: dict[int, Acquired] = {}
        for record in records:
            acquired = self._range_of(record)
            if record.offset in chosen:
                raise UsageError(f"{_place(record)} is there twice")
            if not acquired.is_held(record.offset):
                raise acquired.refusal(record.offset)
            chosen[record.offset] = acquired
        for offset, acquired in chosen.items():
            acquired.decide(offset, decision)
        return len(chosen)

    def _range_of(self, record: ShareRecord[object, object]) -> Acquired:
        if not isinstance(record, ShareRecord):
            raise ArgumentTypeError(
                f"records must be ShareRecord objects, not {type_name(record)}"
            )
        acquired = acquired_of(record)
        for part in self._parts:
            if part.first <= record.offset < part.end and acquired in part.acquired:
                return acquired
        raise UsageError(f"{_place(record)} is not a record of this batch: {self!r}")


#: A share batch inside a consumer, which alone knows the types.
AnyShareBatch: TypeAlias = ShareBatch[Any, Any]


def decide_part(part: Part, decision: int) -> int:
    """Decide what becomes of the records of a part that are held; return how many."""
    return sum(
        acquired.decide_range(
            max(part.first, acquired.first),
            min(part.end - 1, acquired.last),
            decision,
        )
        for acquired in part.acquired
        if acquired.held and acquired.first < part.end and acquired.last >= part.first
    )


def own_bytes(batch: AnyShareBatch, *, if_alone: bool = False) -> None:
    """Copy the bytes of a batch's records, so that it keeps no fetch response.

    Args:
        batch: the batch.
        if_alone: do so only if nothing else keeps one of its responses, and most of
            these is not the batch.
    """
    if if_alone:
        if not is_most_of_what_it_keeps(batch._batch):
            detach_if_alone(batch._batch)
    else:
        detach(batch._batch)


def _place(record: ShareRecord[object, object]) -> str:
    return f"{record.topic}-{record.partition} at offset {record.offset}"
