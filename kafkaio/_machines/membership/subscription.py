"""What members tell each other through the coordinator, which looks at none of it.

A blob is an int16 version and then the fields of that version, never flexible
(ConsumerProtocol; owned partitions KIP-429, generation KIP-792, rack KIP-881). A
version newer than ours is read as our newest, and what follows it is ignored.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, Protocol, TypeVar, runtime_checkable

from kafkaio._machines.membership.layout import Layout
from kafkaio.errors import ProtocolError
from kafkaio.protocol import codec
from kafkaio.protocol.message import Data
from kafkaio.protocol.messages import consumer_protocol_assignment as assignments
from kafkaio.protocol.messages import consumer_protocol_subscription as subscriptions
from kafkaio.types import TopicPartition

__all__ = [
    "Assignor",
    "Subscription",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
    "encode_subscription",
]

_VERSION: Final = struct.Struct(">h")
DataT = TypeVar("DataT", bound=Data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What one member wants and has.

    Attributes:
        topics: the topics that it reads.
        owned: the partitions that it holds.
        generation: the generation in which it got them, -1 if unknown.
        group_instance_id: its name if it is a static member.
        rack: where it runs, None if unknown.
        user_data: what its assignor adds, None for nothing.
    """

    topics: frozenset[str]
    owned: frozenset[TopicPartition] = field(default_factory=frozenset)
    generation: int = -1
    group_instance_id: str | None = None
    rack: str | None = None
    user_data: bytes | None = None


@runtime_checkable
class Assignor(Protocol):
    """Divides partitions among the members of a classic group; the leader's is asked.

    An object may serve several consumers: what it is told is all that it may rest on.

    Attributes:
        name: what members of a group must have in common.
        cooperative: whether members may keep their partitions through a rebalance
            (KIP-429). The assignor must then never give a partition to one member
            while another still owns it.
    """

    name: str
    cooperative: bool

    def user_data(self, subscription: Subscription) -> bytes | None:
        """What this member adds to its subscription, None for nothing.

        Args:
            subscription: what the member wants, and what it was given last; the
                member may have lost or given up some of that.
        """
        ...

    def assign(
        self, layout: Layout, members: Mapping[str, Subscription]
    ) -> Mapping[str, Collection[TopicPartition]]:
        """Everybody's share; whatever it raises ends the leader's membership.

        Args:
            layout: the partitions of every known topic of the group.
            members: subscriptions by member id.
        """
        ...


def encode_subscription(subscription: Subscription) -> bytes:
    """The blob that JoinGroup carries for one assignor."""
    data = subscriptions.ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
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
    """Read a member's subscription.

    Raises:
        ProtocolError: the bytes are none.
    """
    data = _decode(subscriptions.ConsumerProtocolSubscription, blob)
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
        user_data=data.user_data,
    )


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """The blob that SyncGroup carries for one member."""
    return _encode(
        assignments.ConsumerProtocolAssignment(
            assigned_partitions=[
                assignments.TopicPartition(topic=topic, partitions=numbers)
                for topic, numbers in _by_topic(partitions)
            ]
        )
    )


def decode_assignment(blob: bytes) -> frozenset[TopicPartition]:
    """Read our share.

    Raises:
        ProtocolError: the bytes are none; an empty blob is none either.
    """
    data = _decode(assignments.ConsumerProtocolAssignment, blob)
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
        raise ProtocolError(f"{kind.NAME}: {len(blob)} bytes have no version")
    (version,) = _VERSION.unpack_from(blob)
    if version < 0:
        raise ProtocolError(f"{kind.NAME}: version {version} cannot be")
    known = min(version, kind.MAX_VERSION)
    return codec.decode(kind, known, memoryview(blob)[_VERSION.size :], exact=False)
