"""The blobs that the members of a classic group exchange through the coordinator.

The coordinator passes these blobs on without reading them. A blob is an int16 version
and then the fields of that version, never flexible (ConsumerProtocol; owned partitions
KIP-429, generation KIP-792, rack KIP-881). A newer version than ours is read as our
newest, and the bytes after it are ignored.

kafkaio adds an extension behind the assignor's user data, where other clients do not
look. A member lists the partitions that the leader must assign to no member, so that
their offsets can be rewound. The leader answers which of them no member owns any more.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from itertools import groupby
from typing import Final, Protocol, TypeVar, runtime_checkable

from kafkaio._dataclass import dataclass
from kafkaio._machines.bounds import check
from kafkaio._machines.membership.layout import Layout
from kafkaio._public import public
from kafkaio.errors import ProtocolError
from kafkaio.protocol import _codec as codec
from kafkaio.protocol._message import Data
from kafkaio.protocol.messages import (
    consumer_protocol_assignment as assignments,
    consumer_protocol_subscription as subscriptions,
)
from kafkaio.types import TopicPartition

#: The most bytes of a member's subscription or assignment: a million partitions. The
#: other members of a group and its coordinator choose them.
MAX_BLOB: Final = 4_194_304
_VERSION: Final = struct.Struct(">h")
_MARK: Final = b"kafkaio withheld"
#: The end of user data with our extension: the extension's length, whether the
#: assignor's own user data comes before it, and the mark.
_TRAILER: Final = struct.Struct(f">i?{len(_MARK)}s")
DataT = TypeVar("DataT", bound=Data)


@public("kafkaio")
@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """The subscription of one member, and the partitions that it owns.

    Attributes:
        topics: the topics that it subscribes to.
        owned: the partitions that it owns.
        generation: the generation in which they were assigned, -1 if unknown.
        group_instance_id: its name if it is a static member.
        rack: where it runs, None if unknown.
        user_data: the data of its assignor; None for none.
        withheld: partitions that it asks to be assigned to no member.
    """

    topics: frozenset[str]
    owned: frozenset[TopicPartition] = field(default_factory=frozenset)
    generation: int = -1
    group_instance_id: str | None = None
    rack: str | None = None
    user_data: bytes | None = None
    withheld: frozenset[TopicPartition] = field(default_factory=frozenset)


@public("kafkaio")
@runtime_checkable
class Assignor(Protocol):
    """Computes the assignment of a classic group, in the member that leads it.

    One object may serve several consumers. Its results must depend on its arguments
    alone.

    Attributes:
        name: the name by which the members of a group agree on an assignor.
        cooperative: whether members may keep their partitions through a rebalance
            (KIP-429). The assignor must then never assign a partition to one member
            while another still owns it.
    """

    name: str
    cooperative: bool

    def user_data(self, subscription: Subscription) -> bytes | None:
        """What this member adds to its subscription, None for nothing.

        Args:
            subscription: what the member subscribes to, and what it was assigned last.
                It may have lost or released some of that since.
        """
        ...

    def assign(
        self, layout: Layout, members: Mapping[str, Subscription]
    ) -> Mapping[str, Collection[TopicPartition]]:
        """The partitions of each member; an exception ends the leader's membership.

        Args:
            layout: the partitions of all known topics of the group.
            members: subscriptions by member id.
        """
        ...


def encode_subscription(subscription: Subscription) -> bytes:
    """Encode the blob of JoinGroup for one assignor."""
    data = subscriptions.ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=_with_extension(
            subscription.user_data, subscription.withheld or None
        ),
        owned_partitions=[
            subscriptions.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in _by_topic(subscription.owned)
        ],
        generation_id=subscription.generation,
        rack_id=subscription.rack,
    )
    return _encode(data)


def decode_subscription(
    blob: bytes, group_instance_id: str | None = None
) -> Subscription:
    """Decode a member's subscription.

    Raises:
        ProtocolError: the bytes are not a subscription.
    """
    data = _decode(subscriptions.ConsumerProtocolSubscription, blob)
    user_data, withheld = _split(data.user_data)
    return Subscription(
        topics=frozenset(data.topics),
        owned=frozenset(
            TopicPartition(entry.topic, number)
            for entry in data.owned_partitions
            for number in entry.partitions
        ),
        generation=data.generation_id,
        group_instance_id=group_instance_id,
        rack=data.rack_id,
        user_data=user_data,
        withheld=withheld or frozenset(),
    )


def encode_assignment(
    partitions: Iterable[TopicPartition],
    free: Collection[TopicPartition] | None = None,
) -> bytes:
    """Encode the blob of SyncGroup for one member.

    Args:
        partitions: the partitions assigned to the member.
        free: which of the partitions that it asked to be withheld no member owns;
            None if it asked for none.
    """
    return _encode(
        assignments.ConsumerProtocolAssignment(
            assigned_partitions=[
                assignments.TopicPartition(topic=topic, partitions=numbers)
                for topic, numbers in _by_topic(partitions)
            ],
            user_data=_with_extension(None, free),
        )
    )


def decode_assignment(blob: bytes) -> frozenset[TopicPartition]:
    """Decode the partitions assigned to this member.

    Raises:
        ProtocolError: the bytes are not an assignment; empty bytes are not one either.
    """
    return _partitions(_decode(assignments.ConsumerProtocolAssignment, blob))


def decode_free(blob: bytes) -> frozenset[TopicPartition] | None:
    """Decode which of the partitions that we asked to be withheld are free.

    Returns:
        None if the leader does not know the extension, and so withholds nothing.

    Raises:
        ProtocolError: the bytes are not an assignment.
    """
    data = _decode(assignments.ConsumerProtocolAssignment, blob)
    return _split(data.user_data)[1]


def _with_extension(
    user_data: bytes | None, partitions: Collection[TopicPartition] | None
) -> bytes | None:
    if partitions is None:
        return user_data
    extension = encode_assignment(partitions)
    trailer = _TRAILER.pack(len(extension), user_data is not None, _MARK)
    return (user_data or b"") + extension + trailer


def _split(
    user_data: bytes | None,
) -> tuple[bytes | None, frozenset[TopicPartition] | None]:
    # The assignor's own user data, and the partitions of our extension, if any.
    if user_data is None or not user_data.endswith(_MARK):
        return user_data, None
    end = len(user_data) - _TRAILER.size
    try:
        length, has_own, _ = _TRAILER.unpack_from(user_data, end)
        start = end - length
        data = _decode(assignments.ConsumerProtocolAssignment, user_data[start:end])
    except (struct.error, ProtocolError):
        return user_data, None  # another program's data that ends like ours
    return user_data[:start] if has_own else None, _partitions(data)


def _partitions(
    data: assignments.ConsumerProtocolAssignment,
) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(entry.topic, number)
        for entry in data.assigned_partitions
        for number in entry.partitions
    )


def _by_topic(
    partitions: Iterable[TopicPartition],
) -> Iterable[tuple[str, list[int]]]:
    for topic, group in groupby(sorted(partitions), key=lambda tp: tp.topic):
        yield topic, [tp.partition for tp in group]


def _encode(data: Data) -> bytes:
    version = data.MAX_VERSION
    return _VERSION.pack(version) + codec.encode(data, version)


def _decode(kind: type[DataT], blob: bytes) -> DataT:
    if len(blob) < _VERSION.size:
        raise ProtocolError(
            f"{kind.NAME}: {len(blob)} bytes are too short for a version"
        )
    if len(blob) > MAX_BLOB:
        raise ProtocolError(f"{kind.NAME}: {len(blob)} bytes are too many")
    (version,) = _VERSION.unpack_from(blob)
    if version < 0:
        raise ProtocolError(f"{kind.NAME}: version {version} is negative")
    known = min(version, kind.MAX_VERSION)
    data = codec.decode(kind, known, memoryview(blob)[_VERSION.size :], exact=False)
    check(data)
    return data
