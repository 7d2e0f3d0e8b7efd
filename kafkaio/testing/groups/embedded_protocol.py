"""What consumers say inside the classic protocol: subscriptions and assignments."""

from __future__ import annotations

from collections.abc import Iterable

from kafkaio.errors import ProtocolError
from kafkaio.protocol.codec import decode, encode
from kafkaio.protocol.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
)
from kafkaio.protocol.messages.consumer_protocol_assignment import (
    TopicPartition as AssignedTopic,
)
from kafkaio.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from kafkaio.testing.groups.assignors import Slot
from kafkaio.testing.groups.home import Home
from kafkaio.testing.groups.java import java_order, uuid_hash

__all__ = [
    "CONSUMER",
    "read_assignment",
    "read_subscription",
    "slots_of",
    "write_assignment",
]

#: The protocol type of groups of consumers.
CONSUMER = "consumer"
_VERSION_BYTES = 2


def _version(blob: bytes) -> int:
    """Return the version to read a blob as: what newer ones add stands at the end.

    Raises:
        ProtocolError: there is none.
    """
    version = int.from_bytes(blob[:_VERSION_BYTES], signed=True)
    if len(blob) < _VERSION_BYTES or version < 0:
        raise ProtocolError(f"no version of the consumer protocol: {blob[:2]!r}")
    return min(version, ConsumerProtocolSubscription.LAST_VERSION)


def read_subscription(blob: bytes) -> ConsumerProtocolSubscription:
    """Read what a member says it reads.

    Raises:
        ProtocolError: it says nothing intelligible.
    """
    body = blob[_VERSION_BYTES:]
    return decode(ConsumerProtocolSubscription, _version(blob), body, exact=False)


def read_assignment(blob: bytes) -> ConsumerProtocolAssignment:
    """Read what a leader has given a member; nothing at all is no partition.

    Raises:
        ProtocolError: it is not intelligible.
    """
    if not blob:
        return ConsumerProtocolAssignment()
    body = blob[_VERSION_BYTES:]
    return decode(ConsumerProtocolAssignment, _version(blob), body, exact=False)


def write_assignment(slots: Iterable[Slot], subscription: bytes, home: Home) -> bytes:
    """Tell a member its partitions, in the version of what it has said itself."""
    by_topic: dict[str, list[int]] = {}
    slots = sorted(slots)
    for topic_id in java_order({topic: None for topic, _ in slots}, uuid_hash):
        name = home.topic_name(topic_id)
        if name is not None:
            by_topic[name] = [number for topic, number in slots if topic == topic_id]
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignedTopic(topic=name, partitions=numbers)
            for name, numbers in by_topic.items()
        ]
    )
    version = _version(subscription)
    return version.to_bytes(_VERSION_BYTES) + encode(assignment, version)


def slots_of(topics: Iterable[tuple[str, Iterable[int]]], home: Home) -> list[Slot]:
    """Return partitions by the ids of their topics; what there is none of is left out.

    Args:
        topics: name and partitions of each topic.
        home: where topics are.
    """
    return [
        (topic_id, number)
        for name, numbers in topics
        if (topic_id := home.topic_id(name)) is not None
        for number in numbers
    ]
