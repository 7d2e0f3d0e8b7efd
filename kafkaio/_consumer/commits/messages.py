"""The messages of OffsetCommit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkaio._machines.connection.pipeline import LastAnswer
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


class CommitRequests:
    """Makes the requests that commit offsets, one after the other.

    A program that commits after each record commits the same partitions many times. So
    the last request is used again, with other offsets, while identity and partitions
    are the same. A connection encodes a request before `submit` returns.

    Attributes:
        last: the last answer: that no partition is refused, mostly.
    """

    __slots__ = ("_committed", "_identity", "_partitions", "_request", "last")

    def __init__(self) -> None:
        # Of the last request.
        self._identity: GroupMetadata | None = None
        self._partitions: dict[TopicPartition, OffsetCommitRequestPartition] = {}
        self._request = OffsetCommitRequest()
        self.last: LastAnswer = LastAnswer()
        # An answer that committed all of a request of these partitions.
        self._committed: OffsetCommitResponse | None = None

    def make(self, identity: GroupMetadata, offsets: _Offsets) -> OffsetCommitRequest:
        """Return the request that commits ``offsets`` under that identity.

        It is valid until the next call.
        """
        if identity is not self._identity or self._partitions.keys() != offsets.keys():
            self._begin(identity, offsets)
        for tp, partition in self._partitions.items():
            at = offsets[tp]
            partition.committed_offset = at.offset
            partition.committed_leader_epoch = at.leader_epoch
            partition.committed_metadata = at.metadata
        return self._request

    def _begin(self, identity: GroupMetadata, offsets: _Offsets) -> None:
        # Sorted, so that the partitions of a topic follow one another.
        self._partitions = {
            tp: OffsetCommitRequestPartition(partition_index=tp.partition)
            for tp in sorted(offsets)
        }
        topics = list[OffsetCommitRequestTopic]()
        for tp, partition in self._partitions.items():
            if not topics or topics[-1].name != tp.topic:
                topics.append(OffsetCommitRequestTopic(name=tp.topic))
            topics[-1].partitions.append(partition)
        self._identity, self._committed = identity, None
        self._request = OffsetCommitRequest(
            group_id=identity.group_id,
            generation_id_or_member_epoch=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
            topics=topics,
        )

    def has_committed(self, reply: OffsetCommitResponse) -> bool:
        """Whether the answer to the last request refuses none of its partitions."""
        if reply is self._committed:
            return True
        if not commits_all(self._request, reply):
            return False
        self._committed = reply
        return True


def commits_all(request: OffsetCommitRequest, reply: OffsetCommitResponse) -> bool:
    """Whether an answer says of each partition of its request that it is committed.

    False also if the answer has them in another order: `commit_codes` then says more.
    """
    if len(request.topics) != len(reply.topics):
        return False
    for asked, topic in zip(request.topics, reply.topics, strict=True):
        if asked.name != topic.name or len(asked.partitions) != len(topic.partitions):
            return False
        for wanted, found in zip(asked.partitions, topic.partitions, strict=True):
            if found.error_code or found.partition_index != wanted.partition_index:
                return False
    return True


def commit_codes(reply: OffsetCommitResponse) -> dict[TopicPartition, int]:
    """Return the error code of each partition."""
    codes = dict[TopicPartition, int]()
    for topic in reply.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            codes[tp] = partition.error_code
    return codes
