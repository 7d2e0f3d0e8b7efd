"""What a fetch's answer says of one partition, for any reader.

Checksums are not computed here but when a batch is read, so that its bytes come near
the processor once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeAlias

from kafkaio._machines.metadata import Endpoint
from kafkaio._machines.read_committed import ReadCommitted, ReadUncommitted
from kafkaio._records.batch import (
    Batch,
    Decompressor,
    first_batch_size,
    read_batches,
)
from kafkaio.errors import CorruptRecord, RecordTooLarge
from kafkaio.protocol.messages.fetch import FetchResponse, PartitionData
from kafkaio.types import TopicPartition

__all__ = [
    "IsolationFilter",
    "LeaderHints",
    "batches_of",
    "bytes_needed",
    "found_leader",
    "isolation_of",
    "too_large",
]

#: Decides which batches of one answer the user gets (``isolation_level``).
IsolationFilter: TypeAlias = ReadCommitted | ReadUncommitted


class LeaderHints(Protocol):
    """What an answer may teach about leaders."""

    def request_refresh(self, *topics: str) -> None:
        """Ask for fresh metadata."""

    def apply_leader_hint(
        self,
        tp: TopicPartition,
        leader_id: int,
        leader_epoch: int,
        endpoints: Iterable[Endpoint] = (),
    ) -> bool:
        """Take over a leader that the answer names; whether that was news."""
        ...


def batches_of(
    data: PartitionData, tp: TopicPartition, offset: int, decompressor: Decompressor
) -> tuple[list[Batch], CorruptRecord | None]:
    """Cut the records of an answer into batches.

    Args:
        data: what the answer has of the partition.
        tp: the partition, for messages.
        offset: where the fetch began, for messages.
        decompressor: the reader's own, whose contexts are expensive to create.

    Returns:
        The whole batches, and what is wrong with the bytes after them.
    """
    batches: list[Batch] = []
    try:
        batches.extend(
            read_batches(
                data.records or b"", check_crcs=False, decompressor=decompressor
            )
        )
    except CorruptRecord as error:
        at = batches[-1].next_offset if batches else offset
        error.add_note(f"{tp.topic}-{tp.partition} at offset {at}")
        return batches, error
    return batches, None


def bytes_needed(data: PartitionData, max_bytes: int) -> int:
    """Return how many bytes bring the first batch, of which only a part came.

    Args:
        data: what the answer has of the partition; its header was checked.
        max_bytes: what the fetch asked for.
    """
    known = first_batch_size(data.records or b"")
    return 2 * max_bytes if known is None else known


def too_large(
    tp: TopicPartition, offset: int, needed: int, limit: int
) -> RecordTooLarge:
    """Return the error for a batch that no answer can carry."""
    return RecordTooLarge(
        f"the batch of {tp.topic}-{tp.partition} at offset {offset} takes {needed} "
        f"bytes, more than max_response_size={limit}"
    )


def isolation_of(data: PartitionData, isolation_level: int) -> IsolationFilter:
    """Return the filter for the batches of one answer.

    Args:
        data: what the answer has of the partition.
        isolation_level: 1 leaves aborted transactions out.
    """
    if not isolation_level:
        return ReadUncommitted()
    return ReadCommitted(
        (aborted.producer_id, aborted.first_offset)
        for aborted in data.aborted_transactions or ()
    )


def found_leader(
    cluster: LeaderHints,
    tp: TopicPartition,
    data: PartitionData,
    response: FetchResponse,
) -> bool:
    """Learn from an answer that the broker is not the leader (KIP-951).

    Returns:
        Whether the answer names a newer leader: it can be asked at once. Otherwise
        metadata was requested.
    """
    cluster.request_refresh(tp.topic)
    leader = data.current_leader
    return cluster.apply_leader_hint(
        tp, leader.leader_id, leader.leader_epoch, response.node_endpoints
    )
