"""The messages of OffsetCommit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

#: The last version that has topic names; later ones have topic ids alone.
MAX_VERSION: Final = 9

_Offsets = Mapping[TopicPartition, OffsetAndMetadata]


def commit_request(identity: GroupMetadata, offsets: _Offsets) -> OffsetCommitRequest:
    """Return the request that commits ``offsets`` under that identity."""
    # Sorted, so that the partitions of a topic follow one another.
    topics = list[OffsetCommitRequestTopic]()
    for tp in sorted(offsets):
        if not topics or topics[-1].name != tp.topic:
            topics.append(OffsetCommitRequestTopic(name=tp.topic))
        at = offsets[tp]
        topics[-1].partitions.append(
            OffsetCommitRequestPartition(
                partition_index=tp.partition,
                committed_offset=at.offset,
                committed_leader_epoch=at.leader_epoch,
                committed_metadata=at.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=identity.group_id,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        topics=topics,
    )


def commit_codes(reply: OffsetCommitResponse) -> dict[TopicPartition, int]:
    """Return the error code of each partition."""
    codes = dict[TopicPartition, int]()
    for topic in reply.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            codes[tp] = partition.error_code
    return codes
