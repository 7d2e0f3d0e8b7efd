"""The consumer embedded protocol: subscriptions and assignments of classic members.

The classic group protocol carries them as opaque bytes. A blob begins with a version;
fields of newer versions stand at the end and are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkaio.errors import ProtocolError
from kafkaio.protocol._codec import decode, encode
from kafkaio.protocol.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition as AssignedTopic,
)
from kafkaio.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from kafkaio.testing._groups.assignors import Slot
from kafkaio.testing._groups.cluster_port import ClusterPort
from kafkaio.testing._groups.java import java_order, uuid_hash

#: The protocol type of groups of consumers.
CONSUMER = "consumer"
_VERSION_BYTES = 2


def _version(blob: bytes) -> int:
    """Return the version by which to read a blob, at most the newest known.

    Raises:
        ProtocolError: the blob does not begin with a version.
    """
    version = int.from_bytes(blob[:_VERSION_BYTES], signed=True)
    if len(blob) < _VERSION_BYTES or version < 0:
        raise ProtocolError(f"not a version of the consumer protocol: {blob[:2]!r}")
    # Newer versions add fields at the end, so an older reader finds what it knows.
    return min(version, ConsumerProtocolSubscription.LAST_VERSION)


def read_subscription(blob: bytes) -> ConsumerProtocolSubscription:
    """Read a member's subscription.

    Raises:
        ProtocolError: the blob is malformed.
    """
    body = blob[_VERSION_BYTES:]
    return decode(ConsumerProtocolSubscription, _version(blob), body, exact=False)


def read_assignment(blob: bytes) -> ConsumerProtocolAssignment:
    """Read a member's assignment; an empty blob assigns no partition.

    Raises:
        ProtocolError: the blob is malformed.
    """
    # A member that has not been assigned anything has no version either.
    if not blob:
        return ConsumerProtocolAssignment()
    body = blob[_VERSION_BYTES:]
    return decode(ConsumerProtocolAssignment, _version(blob), body, exact=False)


def write_assignment(
    slots: Iterable[Slot], subscription: bytes, cluster: ClusterPort
) -> bytes:
    """Write a member's assignment, in the version of the member's subscription."""
    by_topic: dict[str, list[int]] = {}
    slots = sorted(slots)
    # In the order of Kafka's HashMap: the bytes are compared with those of a real
    # broker.
    for topic_id in java_order({topic: None for topic, _ in slots}, uuid_hash):
        name = cluster.topic_name(topic_id)
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


def slots_of(
    topics: Iterable[tuple[str, Iterable[int]]], cluster: ClusterPort
) -> list[Slot]:
    """Return partitions by topic id, without topics that do not exist.

    Args:
        topics: name and partition numbers of each topic.
        cluster: knows the ids.
    """
    return [
        (topic_id, number)
        for name, numbers in topics
        if (topic_id := cluster.topic_id(name)) is not None
        for number in numbers
    ]
