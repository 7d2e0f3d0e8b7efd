"""The values that aiokafka's calls take and return.

`TopicPartition` is kafkaio's own. Records are kafkaio's, too: a consumer hands them out
as they are, and `ConsumerRecord` is their type for ``isinstance`` and annotations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

from kafkaio import TopicPartition
from kafkaio._named_tuple import NamedTuple
from kafkaio._public import public
from kafkaio.aiokafka.errors import KafkaError
from kafkaio.types import Record

__all__ = [
    "BrokerMetadata",
    "ConsumerRecord",
    "OffsetAndMetadata",
    "PartitionMetadata",
    "RecordMetadata",
    "TopicPartition",
]

KT = TypeVar("KT")
VT = TypeVar("VT")


class BrokerMetadata(NamedTuple):
    """A broker of the cluster.

    Attributes:
        nodeId: its number; a text for a bootstrap server whose number is not known yet.
        host: name or address to connect to.
        port: port to connect to.
        rack: its rack, None if it has none.
    """

    nodeId: int | str
    host: str
    port: int
    rack: str | None


class PartitionMetadata(NamedTuple):
    """A partition of the cluster's metadata.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        leader: number of the broker that leads it, -1 if there is none.
        replicas: numbers of the brokers that have a replica.
        isr: numbers of those whose replica is in sync.
        error: why the partition cannot be used; None if it can.
    """

    topic: str
    partition: int
    leader: int
    replicas: list[int]
    isr: list[int]
    error: KafkaError | None


@public("kafkaio.aiokafka")
class OffsetAndMetadata(NamedTuple):
    """A committed offset, or one to commit: that of the next record to read.

    Attributes:
        offset: offset of the next record to read.
        metadata: text stored with the offset; empty for none.
    """

    offset: int
    metadata: str


class RecordMetadata(NamedTuple):
    """Where an acknowledged record was written.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        topic_partition: both.
        offset: position in the log; -1 with ``acks=0``.
        timestamp: milliseconds since the Unix epoch; None if the broker sent none.
        timestamp_type: 0 for the producer's timestamp, 1 for the broker's.
        log_start_offset: first offset of the log; None if it is not known.
    """

    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    timestamp: int | None
    timestamp_type: int
    log_start_offset: int | None


@public("kafkaio.aiokafka")
class OffsetAndTimestamp(NamedTuple):
    """The first offset at or after a time.

    Attributes:
        offset: the offset found.
        timestamp: milliseconds since the Unix epoch of the record there.
    """

    offset: int
    timestamp: int | None


class _RecordType(type):
    """Lets ``isinstance`` take the records of kafkaio for a `ConsumerRecord`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Record) or super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, Record) or super().__subclasscheck__(subclass)


@public("kafkaio.aiokafka")
@dataclass
class ConsumerRecord(Generic[KT, VT], metaclass=_RecordType):
    """A record as a consumer hands it out.

    A consumer makes none of these: its records are `kafkaio.Record`, which has the same
    attributes and for which ``isinstance(record, ConsumerRecord)`` is true. Programs
    make them for their tests.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        offset: position in the partition's log.
        timestamp: milliseconds since the Unix epoch, -1 if there is none.
        timestamp_type: 0 for the producer's timestamp, 1 for the broker's.
        key: the key, deserialized; None if the record has none.
        value: the value, deserialized; None for a tombstone.
        checksum: always None: record batches have checksums, and records none.
        serialized_key_size: size of the key in bytes, -1 if there is none.
        serialized_value_size: size of the value in bytes, -1 if there is none.
        headers: pairs of name and value, in the order in which they were written.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: KT | None
    value: VT | None
    checksum: int | None
    serialized_key_size: int
    serialized_value_size: int
    headers: Sequence[tuple[str, bytes]]

    def __eq__(self, other: object) -> bool:
        """Return whether all fields are equal, also to those of a `kafkaio.Record`."""
        if not isinstance(other, ConsumerRecord):
            return NotImplemented
        return all(
            getattr(self, field.name) == getattr(other, field.name, None)
            for field in fields(self)
        )
