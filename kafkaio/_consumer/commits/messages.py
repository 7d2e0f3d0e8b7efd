"""The messages of OffsetCommit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
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


def _by_topic(
    partitions: Collection[TopicPartition],
) -> Iterator[tuple[str, list[TopicPartition]]]:
    for topic, group in groupby(sorted(partitions), key=lambda tp: tp.topic):
        yield topic, list(group)
