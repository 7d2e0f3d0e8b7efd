"""The messages of OffsetCommit."""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import TYPE_CHECKING, Final

from kafkaio._machines.connection.pipeline import LastAnswer
from kafkaio.protocol._codec import encode, encode_by
from kafkaio.protocol._message import Buffer, Message
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafkaio.protocol._encoder import Encoder

#: The last version that has topic names; later ones have topic ids alone.
MAX_VERSION: Final = 9

_Offsets = Mapping[TopicPartition, OffsetAndMetadata]
#: Most partitions of a request whose bytes are kept: of a larger one, the broker's work
#: is what counts.
_MOST_KEPT: Final = 100
#: The offset of a partition, and its leader epoch, which version 6 has added.
_OFFSET: Final = Struct(">q")
_OFFSET_AND_EPOCH: Final = Struct(">qi")
_EPOCHS_SINCE: Final = 6


class _Kept(OffsetCommitRequest):
    """A request that is sent again with other numbers: its bytes are kept.

    Its partitions and their metadata stay the same.

    Args:
        request: what is sent; its partitions have the numbers.
    """

    __slots__ = ("_request", "bodies", "partitions")

    def __init__(self, request: OffsetCommitRequest) -> None:
        self._request = request
        self.partitions = [
            partition for topic in request.topics for partition in topic.partitions
        ]
        #: By version: the bytes, and where the numbers of each partition begin.
        self.bodies: dict[int, tuple[bytearray, list[int]]] = {}

    def __repr__(self) -> str:
        return repr(self._request)

    def body(self, version: int) -> tuple[bytearray, list[int]]:
        """Return the bytes, and where the numbers are in them."""
        # No byte of 0 is one of -1: the bytes in which the two encodings differ are
        # those of the numbers, and nothing else differs.
        before = [
            (each.committed_offset, each.committed_leader_epoch)
            for each in self.partitions
        ]
        content, other = self._filled(0, version), self._filled(-1, version)
        for each, numbers in zip(self.partitions, before, strict=True):
            each.committed_offset, each.committed_leader_epoch = numbers
        differ = [at for at, byte in enumerate(content) if byte != other[at]]
        size = len(differ) // len(self.partitions)
        return bytearray(content), differ[::size]

    def _filled(self, number: int, version: int) -> bytes:
        for each in self.partitions:
            each.committed_offset = each.committed_leader_epoch = number
        return encode(self._request, version)


def _encoder(version: int) -> Encoder:
    has_epochs = version >= _EPOCHS_SINCE

    def encode_kept(message: Message, out: bytearray, parts: list[Buffer]) -> None:
        assert isinstance(message, _Kept)
        body = message.bodies.get(version)
        if body is None:
            body = message.bodies[version] = message.body(version)
        content, places = body
        for place, each in zip(places, message.partitions, strict=True):
            at = each.committed_offset
            if has_epochs:
                write_both(content, place, at, each.committed_leader_epoch)
            else:
                _OFFSET.pack_into(content, place, at)
        out += content
        parts.append(out)

    write_both = _OFFSET_AND_EPOCH.pack_into
    return encode_kept


for _version in range(OffsetCommitRequest.MIN_VERSION, MAX_VERSION + 1):
    encode_by(_Kept, _version, _encoder(_version))


class CommitRequests:
    """Makes the requests that commit offsets, one after the other.

    A program that commits after each record commits the same partitions many times. So
    the last request is used again, with other offsets, while identity and partitions
    are the same; and its bytes are, while the metadata are the same, too. A connection
    encodes a request before `submit` returns.

    Attributes:
        last: the last answer: that no partition is refused, mostly.
    """

    __slots__ = ("_committed", "_identity", "_kept", "_partitions", "_request", "last")

    def __init__(self) -> None:
        # Of the last request.
        self._identity: GroupMetadata | None = None
        self._partitions: dict[TopicPartition, OffsetCommitRequestPartition] = {}
        self._request = OffsetCommitRequest()
        # The same with its bytes; None until it is sent a second time.
        self._kept: _Kept | None = None
        self.last: LastAnswer = LastAnswer()
        # An answer that committed all of a request of these partitions.
        self._committed: OffsetCommitResponse | None = None

    def make(self, identity: GroupMetadata, offsets: _Offsets) -> OffsetCommitRequest:
        """Return the request that commits ``offsets`` under that identity.

        It is valid until the next call.
        """
        is_repeated = (
            identity is self._identity and self._partitions.keys() == offsets.keys()
        )
        if not is_repeated:
            self._begin(identity, offsets)
        for tp, partition in self._partitions.items():
            at = offsets[tp]
            partition.committed_offset = at.offset
            partition.committed_leader_epoch = at.leader_epoch
            if partition.committed_metadata != at.metadata:
                partition.committed_metadata = at.metadata
                is_repeated, self._kept = False, None
        if self._kept is not None:
            return self._kept
        if is_repeated and len(offsets) <= _MOST_KEPT:
            self._kept = _Kept(self._request)
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
        self._identity, self._committed, self._kept = identity, None, None
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
