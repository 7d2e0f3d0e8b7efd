"""Values that users and every layer share: frozen, slotted, free of behaviour."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from importlib import import_module
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from kafkaio._dataclass import dataclass

__all__ = [
    "Broker",
    "GroupMetadata",
    "Header",
    "Headers",
    "NewRecord",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetStore",
    "Record",
    "RecordMetadata",
    "TimestampType",
    "TopicPartition",
]

#: One record header: a name and a value, which may be absent.
Header: TypeAlias = tuple[str, bytes | None]
#: What callers may pass as headers; a mapping keeps its order.
Headers: TypeAlias = Sequence[Header] | Mapping[str, bytes | None]


class TopicPartition(NamedTuple):
    """A partition of a topic. Compares and sorts by topic name, then by number."""

    topic: str
    partition: int


class TimestampType(IntEnum):
    """Who set a record's timestamp."""

    NONE = -1  #: the record has none (message format 0)
    CREATE = 0  #: the producer
    LOG_APPEND = 1  #: the broker, when it appended the record


def restore_record(*fields: object) -> Record:
    """Make a record anew from its fields: what pickles and copies of it call.

    It is of the class that this process has for records, compiled or not, whichever
    of them was pickled.
    """
    # By name, because what makes records stands above this module.
    door = import_module("kafkaio._records._impl")
    record: Record = door.restore_record(fields)
    return record


@dataclass(frozen=True, slots=True)
class Record(metaclass=ABCMeta):
    """A record as a consumer receives it.

    Where kafkaio has its compiled codec, ``kafkaio.Record`` is a compiled class with
    the same fields and behaviour, registered as a subclass of this one, and equal
    records of the two are equal. Records are hashable, and can be copied and pickled;
    they own their bytes, so that keeping one keeps no more than itself.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        offset: position in the partition's log.
        timestamp: milliseconds since the Unix epoch, -1 where there is none.
        key: key bytes, None where the record has no key.
        value: value bytes, None for a tombstone.
        headers: name and value pairs in the order they were written.
        timestamp_type: who set the timestamp.
        leader_epoch: epoch of the leader that appended the record, -1 if unknown.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp_type: TimestampType = TimestampType.CREATE
    leader_epoch: int = -1

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that the record came from."""
        return TopicPartition(self.topic, self.partition)

    def __reduce__(self) -> tuple[object, ...]:
        return restore_record, (
            self.topic,
            self.partition,
            self.offset,
            self.timestamp,
            self.key,
            self.value,
            self.headers,
            self.timestamp_type,
            self.leader_epoch,
        )


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to be produced by ``send_many``.

    Attributes:
        value: value bytes, None for a tombstone.
        key: key bytes, None for a record without a key.
        headers: name and value pairs.
        timestamp: milliseconds since the Unix epoch, None for now.
        partition: the partition to write to, None to let the partitioner choose.
    """

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class RecordMetadata:
    """Where an acknowledged record was written.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        offset: position in the log, -1 with ``acks=0`` and for a batch that the
            broker recognised as one it had already written.
        timestamp: milliseconds since the Unix epoch; the broker's where the topic
            uses log append time.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """An offset to commit: that of the next record to read.

    Attributes:
        offset: offset of the next record to read (one past the last one done).
        metadata: free text kept beside the offset, at most 4,096 bytes by default.
        leader_epoch: epoch of the record before ``offset``, -1 if unknown.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class OffsetAndTimestamp:
    """The first offset at or after a time.

    Attributes:
        offset: the offset found.
        timestamp: milliseconds since the Unix epoch of the record there.
        leader_epoch: epoch of that record, -1 if unknown.
    """

    offset: int
    timestamp: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker: as the cluster's metadata names it, or as one to send a request to.

    Attributes:
        node_id: the number that the cluster knows the broker by.
        host: name or address to connect to; empty where only the number matters, as
            in ``client.request(..., to=Broker(3))``.
        port: port to connect to, -1 with an empty host.
        rack: rack that the broker stands in, None if it names none.
    """

    node_id: int
    host: str = ""
    port: int = -1
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadata:
    """What fences a transactional offset commit (KIP-447): the member's identity.

    Attributes:
        group_id: name of the group.
        generation: generation (classic) or member epoch (KIP-848), -1 if none.
        member_id: identity that the coordinator knows the member by.
        group_instance_id: the static member's name, if it has one.
        topics: topics of the partitions assigned now.
    """

    group_id: str
    generation: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: frozenset[str] = field(default_factory=frozenset)


@runtime_checkable
class OffsetStore(Protocol):
    """Where a group keeps its offsets, if not in Kafka: ``offset_store`` of a consumer.

    The consumer calls ``commit`` in the order of its commits, one at a time, and only
    for partitions that are assigned to it when it calls. No coordinator refuses the
    commits of a member that the group has put out without its knowledge.

    Of what a method raises, a `KafkaError` with ``retriable`` is tried again (a commit
    with the next one); anything else reaches the user, as an `OffsetStoreError`
    unless it is a `KafkaError`. Both methods may be cancelled, when time is up
    among others; a commit that was cancelled must not take effect after a later one.
    """

    async def load(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """The offsets committed last; a partition without one is left out."""
        ...

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Keep the offsets; they are safe when this returns.

        Args:
            group: the group, and who commits for it.
            offsets: offsets of the next records to read.
        """
        ...
