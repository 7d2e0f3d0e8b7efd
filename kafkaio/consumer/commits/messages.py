"""The messages OffsetCommit and OffsetFetch in all their versions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from itertools import groupby
from typing import Final

from kafkaio._dataclass import dataclass
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

__all__ = [
    "MAX_VERSION",
    "Fetched",
    "commit_codes",
    "commit_request",
    "fetch_request",
    "fetched",
]

#: The last version of both that has topic names; later ones have topic ids alone.
MAX_VERSION: Final = 9
# OffsetFetch: from this version on it has a list of groups.
_GROUPS_FROM: Final = 8
# From this version on it is fenced by member epochs (KIP-848).
_MEMBER_FROM: Final = 9
# From this version on it can wait for open transactions (KIP-447).
_STABLE_FROM: Final = 7
# From this version on it can return all partitions that have an offset.
_ALL_FROM: Final = 2

_Offsets = Mapping[TopicPartition, OffsetAndMetadata]


@dataclass(slots=True)
class Fetched:
    """What an OffsetFetch found.

    Attributes:
        error: the error of the group as a whole.
        offsets: committed offsets; None where there is none.
        errors: partitions that have an error of their own.
    """

    error: int = 0
    offsets: dict[TopicPartition, OffsetAndMetadata | None] = field(
        default_factory=dict
    )
    errors: dict[TopicPartition, int] = field(default_factory=dict)


def commit_request(identity: GroupMetadata, offsets: _Offsets) -> OffsetCommitRequest:
    """The request that commits ``offsets`` under that identity."""
    return OffsetCommitRequest(
        group_id=identity.group_id,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=tp.partition,
                        committed_offset=offsets[tp].offset,
                        committed_leader_epoch=offsets[tp].leader_epoch,
                        committed_metadata=offsets[tp].metadata,
                    )
                    for tp in partitions
                ],
            )
            for topic, partitions in _by_topic(offsets)
        ],
    )


def commit_codes(reply: OffsetCommitResponse) -> dict[TopicPartition, int]:
    """The error code of each partition."""
    return {
        TopicPartition(topic.name, partition.partition_index): partition.error_code
        for topic in reply.topics
        for partition in topic.partitions
    }


def fetch_request(
    identity: GroupMetadata,
    partitions: Collection[TopicPartition] | None,
    version: int,
) -> OffsetFetchRequest:
    """The request for the offsets of those partitions, or of all if None.

    It is fenced by the member epoch only if the identity has a member id.

    Raises:
        ValueError: the version cannot return all.
    """
    if partitions is None and version < _ALL_FROM:
        raise ValueError("OffsetFetch 1 cannot return the offsets of all partitions")
    request = OffsetFetchRequest(require_stable=version >= _STABLE_FROM)
    topics = None if partitions is None else list(_by_topic(partitions))
    if version >= _GROUPS_FROM:
        group = OffsetFetchRequestGroup(group_id=identity.group_id, topics=None)
        if version >= _MEMBER_FROM and identity.member_id:
            group.member_id = identity.member_id
            group.member_epoch = identity.generation
        if topics is not None:
            group.topics = [
                OffsetFetchRequestTopics(name=topic, partition_indexes=_numbers(tps))
                for topic, tps in topics
            ]
        request.groups = [group]
        return request
    request.group_id = identity.group_id
    request.topics = None
    if topics is not None:
        request.topics = [
            OffsetFetchRequestTopic(name=topic, partition_indexes=_numbers(tps))
            for topic, tps in topics
        ]
    return request


def fetched(reply: OffsetFetchResponse) -> Fetched:
    """The contents of an answer of any version."""
    found = Fetched(error=reply.error_code)
    for topic in reply.topics:
        for partition in topic.partitions:
            _note(found, topic.name, partition)
    for group in reply.groups:
        found.error = found.error or group.error_code
        for named in group.topics:
            for entry in named.partitions:
                _note(found, named.name, entry)
    return found


def _note(
    found: Fetched,
    topic: str,
    entry: OffsetFetchResponsePartition | OffsetFetchResponsePartitions,
) -> None:
    tp = TopicPartition(topic, entry.partition_index)
    if entry.error_code != ErrorCode.NONE:
        found.errors[tp] = entry.error_code
    elif entry.committed_offset < 0:
        found.offsets[tp] = None
    else:
        found.offsets[tp] = OffsetAndMetadata(
            offset=entry.committed_offset,
            metadata=entry.metadata or "",
            leader_epoch=entry.committed_leader_epoch,
        )


def _by_topic(
    partitions: Collection[TopicPartition],
) -> Iterator[tuple[str, list[TopicPartition]]]:
    for topic, group in groupby(sorted(partitions), key=lambda tp: tp.topic):
        yield topic, list(group)


def _numbers(partitions: Collection[TopicPartition]) -> list[int]:
    return [tp.partition for tp in partitions]
