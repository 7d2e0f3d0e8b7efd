"""The argument of ``commit()``, and the offsets that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias, TypeGuard

from kafkaio._arguments import offset_of, partition_of, type_name
from kafkaio._consumer.batch import Batch
from kafkaio._consumer.reading.reader import Reader
from kafkaio._machines.offsets import Commit
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    PartitionLost,
    UsageError,
)
from kafkaio.types import AnyRecord, OffsetAndMetadata, Record, TopicPartition

#: The argument of ``commit()``: a record or batch that is done, offsets of next
#: records, or partitions of which everything that was handed out is done.
ToCommit: TypeAlias = (
    Record[object, object]
    | Batch[object, object]
    | Mapping[TopicPartition, int | OffsetAndMetadata]
    | TopicPartition
    | Collection[TopicPartition]
)


def partitions_alone(what: object) -> frozenset[TopicPartition] | None:
    """Return the partitions that are named without offsets.

    None if ``what`` is something else than one partition or a collection of them.
    """
    if _is_partition(what):
        return frozenset([partition_of(what)])
    if isinstance(what, Record | Batch | Mapping) or not isinstance(what, Collection):
        return None
    if not all(map(_is_partition, what)):
        return None
    return frozenset(map(partition_of, what))


def partitions_with_offsets(what: ToCommit | None) -> Collection[TopicPartition]:
    """Return the partitions of a record, a batch or a mapping; of all else, none."""
    if isinstance(what, Record | Batch):
        return {what.topic_partition}
    return {partition_of(tp) for tp in what} if isinstance(what, Mapping) else ()


def commit_of(
    what: object, reader: Reader, check_record: Callable[[AnyRecord], None]
) -> Commit:
    """Return the commit of a record, a batch or a mapping of offsets.

    Args:
        what: which of them.
        reader: hands the records out.
        check_record: refuses a record of an assignment that has ended.

    Raises:
        PartitionLost: the record or batch is of an assignment that has ended.
        UsageError: it is a record or a batch, and `Consumer.run` is at work.
        ArgumentTypeError: it is nothing that can be committed.
        ArgumentValueError: an offset is negative, or a partition does not exist.
    """
    divider = reader.divider
    if not (isinstance(what, Mapping) or divider is None or divider.has_order):
        raise UsageError(
            "run() commits automatically and in order: a finished record does not "
            "finish those before it"
        )
    reader.sync()
    ledger = reader.ledger
    if isinstance(what, Batch):
        tp = what.topic_partition
        if what.assignment != ledger.number(tp):
            raise PartitionLost(
                f"{tp.topic}-{tp.partition} was revoked or lost since the batch was "
                "read"
            )
    elif isinstance(what, Record):
        check_record(what)
    if isinstance(what, Batch | Record):
        return ledger.commit_of({what.topic_partition: reader.place_after(what)})
    if not isinstance(what, Mapping):
        raise ArgumentTypeError(
            "commit() takes partitions, a record, a batch or offsets by partition, not "
            f"{type_name(what)}: {what!r:.100}"
        )
    return ledger.commit_of(
        {partition_of(tp): _committable(tp, offset) for tp, offset in what.items()}
    )


def _committable(tp: TopicPartition, offset: object) -> OffsetAndMetadata:
    where = offset_of(offset)
    if where.offset < 0:  # a broker would accept it, and have no offset afterwards
        raise ArgumentValueError(f"{tp[0]}-{tp[1]} has no offset {where.offset}")
    return where


def _is_partition(what: object) -> TypeGuard[tuple[str, int]]:
    return isinstance(what, tuple) and list(map(type, what)) == [str, int]
