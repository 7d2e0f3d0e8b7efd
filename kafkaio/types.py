"""Values that users and every layer share: immutable, and without behaviour."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio._generic import Generic, K_co, V_co
from kafkaio._named_tuple import NamedTuple
from kafkaio._public import knows_other_clients, public

__all__ = [
    "Broker",
    "FoundTopic",
    "GroupMetadata",
    "Header",
    "Headers",
    "Metric",
    "NewRecord",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetRange",
    "OffsetStore",
    "Record",
    "RecordMetadata",
    "TimestampType",
    "Token",
    "TopicPartition",
]

#: One record header: a name, and a value that may be None.
Header: TypeAlias = tuple[str, bytes | None]
#: What callers can pass as headers; a mapping keeps its order.
Headers: TypeAlias = Sequence[Header] | Mapping[str, bytes | None]


@public("kafkaio")
class TopicPartition(NamedTuple):
    """A partition of a topic. Compares and sorts by topic name, then by number."""

    topic: str
    partition: int


@public("kafkaio")
class OffsetRange(NamedTuple):
    """The offsets of a partition from ``start`` up to, and not including, ``end``.

    Attributes:
        partition: the partition.
        start: the first offset.
        end: the offset after the last one.
    """

    partition: TopicPartition
    start: int
    end: int


class FoundTopic(NamedTuple):
    """A topic as a broker describes it; see `kafkaio.Client.find_topics`.

    Attributes:
        topic_id: its id (KIP-516); None from brokers before 2.8.
        partitions: the numbers of its partitions, ascending.
    """

    topic_id: UUID | None
    partitions: list[int]


@public("kafkaio")
@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric of an application, to be pushed with those of the client (KIP-1076).

    Attributes:
        name: its name, such as ``com.example.orders.open``. Brokers ask for metrics by
            the beginning of their names. ``org.apache.kafka.`` is Kafka's own.
        read: returns its value, quickly; called on the event loop at each push. If it
            raises, the metric is pushed no longer.
        kind: ``gauge``, or ``sum`` for a total since the start that only grows.
        attributes: what it is about, by name, such as ``{"shop": "berlin"}``. Several
            metrics may have the same name and different attributes.
    """

    name: str
    read: Callable[[], float]
    kind: Literal["gauge", "sum"] = "gauge"
    attributes: Mapping[str, str] = field(default_factory=dict)


@public("kafkaio")
class TimestampType(IntEnum):
    """Who set a record's timestamp."""

    NONE = -1  #: the record has none (message format 0)
    CREATE = 0  #: the producer
    LOG_APPEND = 1  #: the broker, when it appended the record


class Sizes:
    """The sizes of a record whose key and value were deserialized.

    Unset in all other records: their key and value are bytes, which tell them.
    """

    __slots__ = ("_sizes",)
    _sizes: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Record(Sizes, Generic[K_co, V_co], metaclass=ABCMeta):
    """A record as a consumer receives it.

    ``Record[str, Order]`` is one with deserialized keys and values; ``Record`` alone is
    ``Record[bytes | None, bytes | None]``. Whatever the type of the value, that of a
    tombstone is None, and so is the key of a record without one.

    With the compiled codec, ``kafkaio.Record`` is a compiled class with the same fields
    and behaviour. It is registered as a subclass of this one, and records of the two
    classes with equal fields are equal. Records are hashable, and can be copied and
    pickled. A record owns its bytes: keeping it does not keep the batch it came in.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        offset: position in the partition's log.
        timestamp: milliseconds since the Unix epoch, -1 if there is none.
        key: the key, as bytes or deserialized; None if the record has no key.
        value: the value, as bytes or deserialized; None for a tombstone.
        headers: pairs of name and value in the order in which they were written.
        timestamp_type: who set the timestamp.
        leader_epoch: epoch of the leader that appended the record, -1 if unknown.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: K_co
    value: V_co
    headers: tuple[Header, ...] = ()
    timestamp_type: TimestampType = TimestampType.CREATE
    leader_epoch: int = -1

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that the record came from."""
        return TopicPartition(self.topic, self.partition)

    @property
    def serialized_key_size(self) -> int:
        """Size of the key in bytes, before it was deserialized.

        -1 if there is none, and if it is not known: a record that was made by hand with
        an object for a key.
        """
        return sizes_of(self)[0]

    @property
    def serialized_value_size(self) -> int:
        """Size of the value in bytes, before it was deserialized; -1 likewise."""
        return sizes_of(self)[1]


def sizes_of(record: AnyRecord) -> tuple[int, int]:
    """Return the sizes of a record's key and value, as they were serialized."""
    try:
        return record._sizes
    except AttributeError:
        return _size(record.key), _size(record.value)


def _size(data: object) -> int:
    return len(data) if isinstance(data, bytes) else -1


#: A record inside a consumer: only the consumer itself knows the types of its keys and
#: values, by those of its deserializers.
AnyRecord: TypeAlias = Record[Any, Any]


@public("kafkaio")
@dataclass(frozen=True, slots=True)
class NewRecord(Generic[K_co, V_co]):
    """A record to be produced by ``send_many``.

    Attributes:
        value: the value, as `Producer.send` takes it; None for a tombstone.
        key: the key, as `Producer.send` takes it; None for a record without a key.
        headers: pairs of name and value, or a mapping.
        timestamp: milliseconds since the Unix epoch, None for now.
        partition: the partition to write to, None to let the partitioner choose.
    """

    value: V_co | None
    key: K_co | None = None
    headers: Headers = ()
    timestamp: int | None = None
    partition: int | None = None


@public("kafkaio")
@knows_other_clients(is_hot=True)
@dataclass(frozen=True, slots=True)
class RecordMetadata:
    """Where an acknowledged record was written.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        offset: position in the log. -1 with ``acks=0``, and for a batch that the broker
            recognised as one that it had already written.
        timestamp: milliseconds since the Unix epoch; the broker's if the topic uses
            log append time.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that the record was written to."""
        return TopicPartition(self.topic, self.partition)


@public("kafkaio")
@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed offset, or one to commit: that of the next record to read.

    Attributes:
        offset: offset of the next record to read: one more than that of the last
            record that is finished.
        metadata: text stored with the offset; brokers accept 4,096 bytes by default.
        leader_epoch: epoch of the record before ``offset``, -1 if unknown.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


@public("kafkaio")
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


@public("kafkaio")
@dataclass(frozen=True, slots=True)
class Broker:
    """A broker of the cluster's metadata, or the broker to send a request to.

    Attributes:
        node_id: the number of the broker in its cluster.
        host: name or address to connect to; empty if only the number matters, as in
            ``client.request(..., to=Broker(3))``.
        port: port to connect to, -1 with an empty host.
        rack: the broker's rack, None if it has none.
    """

    node_id: int
    host: str = ""
    port: int = -1
    rack: str | None = None


@public("kafkaio")
@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """The identity of a group member, which fences commits in transactions (KIP-447).

    Attributes:
        group_id: name of the group.
        generation: generation (classic) or member epoch (KIP-848), -1 if none.
        member_id: the id that the group coordinator has for the member.
        group_instance_id: the name of a static member, else None.
        topics: topics of the partitions assigned now.
    """

    group_id: str
    generation: int = field(default=-1, kw_only=True)
    member_id: str = field(default="", kw_only=True)
    group_instance_id: str | None = field(default=None, kw_only=True)
    topics: frozenset[str] = field(default_factory=frozenset, kw_only=True)


@public("kafkaio")
@runtime_checkable
class OffsetStore(Protocol):
    """Where a group keeps its offsets, if not in Kafka: ``offset_store`` of a consumer.

    The consumer calls ``commit`` in the order of its commits, one at a time, and only
    for partitions that are assigned to it at that time. The group coordinator does not
    see these commits, so it cannot refuse those of a member that it has removed from
    the group and that has not noticed yet.

    If a method raises a `KafkaError` with ``retriable``, the consumer repeats the call
    (a commit with the next one). Any other exception reaches the user, as an
    `OffsetStoreError` unless it is a `KafkaError`. Both methods can be cancelled, for
    example when a time limit is reached. A commit that was cancelled must not take
    effect after a later one.
    """

    async def load(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Return the offsets committed last; a partition without one is left out."""
        ...

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Store the offsets; they are stored durably when the call returns.

        Args:
            group: the group, and the member that commits for it.
            offsets: offsets of the next records to read.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A bearer token with which a client logs in (KIP-255).

    Attributes:
        value: the token as it is sent to brokers; never part of ``repr``.
        expires: when it ends, in seconds since 1970.
        principal: whom it stands for; informative.
        extensions: SASL extensions, such as ``logicalCluster`` (RFC 7628): names of
            letters, values of printable ASCII.
    """

    value: str = field(repr=False)
    expires: float
    principal: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)
