"""Reads the part of a fetch answer that belongs to one partition, for any reader.

Checksums are not computed here but when a batch is read, so that its bytes pass through
the processor's cache once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from kafkaio._machines.read_committed import ReadCommitted, ReadUncommitted
from kafkaio._records.batch import (
    Batch,
    Decompressor,
    claimed_end,
    first_batch_size,
    read_batches,
)
from kafkaio.errors import CorruptRecord, RecordTooLarge
from kafkaio.protocol.messages.fetch import FetchResponse, PartitionData
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ViewPort

#: Bytes that are decompressed at once: 2 ms with lz4 and zstd, 12 ms with gzip.
AT_ONCE: Final = 4 * 1024 * 1024
#: Bytes of a larger batch that are decompressed between two turns of the event loop,
#: which takes half a millisecond to two milliseconds.
SLICE: Final = 256 * 1024

#: An error that says where a batch is.
Unreadable: TypeAlias = CorruptRecord | RecordTooLarge

#: Decides which batches of one answer the user gets (``isolation_level``).
IsolationFilter: TypeAlias = ReadCommitted | ReadUncommitted


def located(
    error: Unreadable,
    tp: TopicPartition,
    offset: int,
    next_offset: int = -1,
    raw: bytes = b"",
) -> None:
    """Add the place of the unreadable batch to an error.

    Args:
        error: the error.
        tp: the partition.
        offset: the offset at which reading stands.
        next_offset: the offset after the batch, if it is known.
        raw: the bytes of the batch, if its end is known.
    """
    # A corrupt batch may claim to end before it begins. Skipping it must make progress.
    error.topic_partition = tp
    error.offset = offset
    error.next_offset = max(next_offset, offset + 1)
    error.raw = raw
    error.add_note(f"{tp.topic}-{tp.partition} at offset {offset}")


def unreadable(
    error: Unreadable, batch: Batch, tp: TopicPartition, offset: int, *, is_sound: bool
) -> None:
    """Add the place and the bytes of an unreadable batch to an error; see `located`.

    Args:
        error: the error.
        batch: the batch.
        tp: the partition.
        offset: the offset at which reading stands.
        is_sound: whether the checksum of the batch is right.
    """
    # With a wrong checksum the header's own length is the best guess at the end.
    raw = batch.raw
    end = batch.next_offset if is_sound else claimed_end(raw)
    located(error, tp, offset, end, raw)


def batches_of(
    data: PartitionData,
    tp: TopicPartition,
    offset: int,
    decompressor: Decompressor,
    max_decompressed: int,
) -> tuple[list[Batch], CorruptRecord | None]:
    """Cut the records of an answer into batches.

    Args:
        data: the partition's part of the answer.
        tp: the partition, for messages.
        offset: where the fetch began, for messages.
        decompressor: the reader's own, whose contexts are expensive to create.
        max_decompressed: the most bytes that a batch may decompress to.

    Returns:
        The whole batches, and the error in the bytes after them, if there is one.
    """
    # The batches before a corrupt one are good: the list outlives the exception.
    batches: list[Batch] = []
    try:
        batches.extend(
            read_batches(
                data.records or b"",
                check_crcs=False,
                max_decompressed=max_decompressed,
                decompressor=decompressor,
            )
        )
    except CorruptRecord as error:
        at = batches[-1].next_offset if batches else offset
        located(error, tp, max(at, offset))
        return batches, error
    return batches, None


def bytes_needed(data: PartitionData, max_bytes: int) -> int:
    """Return the number of bytes to ask for if only a part of the first batch came.

    Args:
        data: the partition's part of the answer; the batch's header was checked.
        max_bytes: the limit of the fetch.
    """
    # Kafka does not send a part of the first batch any more (KIP-74), but other brokers
    # may. If not even the batch's length has arrived, the limit doubles.
    known = first_batch_size(data.records or b"")
    return 2 * max_bytes if known is None else known


def too_large(
    tp: TopicPartition, offset: int, needed: int, limit: int, data: PartitionData
) -> RecordTooLarge:
    """Return the error for a batch that no answer can carry.

    Args:
        tp: the partition.
        offset: the offset at which reading stands.
        needed: the size of the batch, or more.
        limit: the most bytes of an answer.
        data: the partition's part of the answer.
    """
    error = RecordTooLarge(
        f"the batch of {tp.topic}-{tp.partition} at offset {offset} takes {needed} "
        f"bytes, more than max_response_size={limit}"
    )
    located(error, tp, offset, claimed_end(data.records or b""))
    return error


def isolation_of(data: PartitionData, isolation_level: int) -> IsolationFilter:
    """Return the filter for the batches of one answer.

    Args:
        data: the partition's part of the answer.
        isolation_level: 1 leaves aborted transactions out.
    """
    # The list of aborted transactions is null at level 0.
    if not isolation_level:
        return ReadUncommitted()
    return ReadCommitted(
        (aborted.producer_id, aborted.first_offset)
        for aborted in data.aborted_transactions or ()
    )


def found_leader(
    cluster: ViewPort,
    tp: TopicPartition,
    data: PartitionData,
    response: FetchResponse,
) -> bool:
    """Apply an answer which says that the broker is not the leader (KIP-951).

    Returns:
        Whether the answer names a newer leader, which can be asked at once. Metadata
        is requested in any case.
    """
    cluster.request_refresh(tp.topic)
    leader = data.current_leader
    return cluster.apply_leader_hint(
        tp, leader.leader_id, leader.leader_epoch, response.node_endpoints
    )
