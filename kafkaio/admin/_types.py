"""Arguments and results of the operations of `kafkaio.Admin`: immutable values."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from typing import Literal, TypeAlias
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio._public import public
from kafkaio.errors import BrokerError, KafkaError
from kafkaio.types import Broker, OffsetAndMetadata, TopicPartition

# ---- topics, partitions, replicas -----------------------------------------------


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; see `kafkaio.Admin.create_topics`.

    Attributes:
        name: its name.
        partitions: the number of partitions; None for the brokers' default, or if
            ``assignments`` say it.
        replication_factor: the number of replicas of each partition; None likewise.
        assignments: the node ids of the replicas of each partition, the preferred
            leader first, by the number of the partition. None lets the controller
            choose.
        configs: configs of the topic by their names, such as ``retention.ms``.
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignments: Mapping[int, Sequence[int]] | None = None
    configs: Mapping[str, str] | None = None


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic as it was created, or as it would be.

    Attributes:
        name: its name.
        topic_id: its id; None from brokers before 2.8, and if it was only validated.
        partitions: the number of partitions; None if the client may not know it, and
            from brokers before 2.4.
        replication_factor: the number of replicas of each partition; None likewise.
        configs: all configs of the topic by their names; None likewise.
    """

    name: str
    topic_id: UUID | None
    partitions: int | None
    replication_factor: int | None
    configs: Mapping[str, ConfigEntry] | None


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class TopicListing:
    """A topic, as `kafkaio.Admin.list_topics` finds it.

    Attributes:
        name: its name.
        topic_id: its id; None from brokers before 2.8.
        is_internal: whether it is a topic of Kafka itself.
        partitions: the number of partitions.
    """

    name: str
    topic_id: UUID | None
    is_internal: bool
    partitions: int


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition of a topic and its replicas, which are named by their node ids.

    Attributes:
        partition: the number of the partition.
        leader: the leader; None while the partition has none.
        leader_epoch: how often the leader has changed; None from brokers before 2.1.
        replicas: all replicas; the first is the preferred leader.
        isr: the replicas that are in sync.
        offline_replicas: the replicas that are down.
        elr: the replicas that may become leader although they are not in sync, because
            they lack nothing that is committed (KIP-966); empty before Kafka 4.0.
        last_known_elr: the last of these, where none is left.
    """

    partition: int
    leader: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic and its partitions.

    Attributes:
        name: its name.
        topic_id: its id; None from brokers before 2.8.
        is_internal: whether it is a topic of Kafka itself.
        partitions: its partitions, in the order of their numbers.
        authorized_operations: what the client may do with the topic; None if that was
            not asked for, or the broker is older than 2.3.
    """

    name: str
    topic_id: UUID | None
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
    authorized_operations: frozenset[AclOperation] | None = None


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class NewPartitions:
    """The new number of partitions of a topic; see `kafkaio.Admin.create_partitions`.

    Attributes:
        count: the number of partitions that it has afterwards.
        assignments: the node ids of the replicas of each new partition, the preferred
            leader first. None lets the controller choose.
    """

    count: int
    assignments: Sequence[Sequence[int]] | None = None


@public("kafkaio.admin")
class ElectionType(StrEnum):
    """The rule by which a replica becomes the leader of a partition."""

    PREFERRED = "preferred"  #: the first of the replicas
    UNCLEAN = "unclean"  #: any that is alive; records may be lost


#: The same, as text.
ElectionName: TypeAlias = Literal["preferred", "unclean"]


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class PartitionReassignment:
    """The replicas of a partition while they are moved; all by node id.

    Attributes:
        replicas: all that it has now: those to keep, to add and to remove.
        adding_replicas: those that are being added.
        removing_replicas: those that will be removed.
    """

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class ReplicaOnDisk:
    """A replica in a log directory.

    Attributes:
        size: its size in bytes.
        offset_lag: how many offsets it is behind the end of the log.
        is_future: whether it is being moved into this directory from another one.
    """

    size: int
    offset_lag: int
    is_future: bool


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A directory in which a broker keeps logs.

    Attributes:
        path: its path on the broker.
        error: why it cannot be used, such as KAFKA_STORAGE_ERROR; None if it can.
        replicas: what is in it, by partition.
        total_bytes: the size of its volume; None from brokers before 3.3.
        usable_bytes: how much of that is free; None likewise.
        is_cordoned: whether it takes no new replicas (KIP-1066).
    """

    path: str
    error: BrokerError | None
    replicas: Mapping[TopicPartition, ReplicaOnDisk]
    total_bytes: int | None
    usable_bytes: int | None
    is_cordoned: bool


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class ReplicaDirectories:
    """The log directories of a broker in which a replica is.

    Attributes:
        current: the path of the directory that it is in; None if the broker has no such
            replica.
        current_offset_lag: how many offsets it is behind the end of the log; None
            likewise.
        future: the path of the directory into which it is being moved; None if it is
            not.
        future_offset_lag: how many offsets the copy there is behind; None likewise.
    """

    current: str | None = None
    current_offset_lag: int | None = None
    future: str | None = None
    future_offset_lag: int | None = None


# ---- configs --------------------------------------------------------------------


@public("kafkaio.admin")
class ConfigSource(StrEnum):
    """The source of the value of a config; see KIP-226."""

    TOPIC = "topic"  #: set for the topic
    BROKER = "broker"  #: set for this broker, while it runs
    BROKER_DEFAULT = "broker default"  #: set for all brokers, while they run
    STATIC = "static"  #: the broker's properties file
    DEFAULT = "default"  #: the value that Kafka has by itself
    BROKER_LOGGER = "broker logger"  #: set for a logger of this broker
    CLIENT_METRICS = "client metrics"  #: set for a subscription of client metrics
    GROUP = "group"  #: set for the group
    UNKNOWN = "unknown"  #: a source that this version of kafkaio does not know

    @classmethod
    def of(cls, number: int) -> ConfigSource:
        """The source that has a number on the wire."""
        known = (
            *(cls.UNKNOWN, cls.TOPIC, cls.BROKER, cls.BROKER_DEFAULT, cls.STATIC),
            *(cls.DEFAULT, cls.BROKER_LOGGER, cls.CLIENT_METRICS, cls.GROUP),
        )
        return known[number] if 0 <= number < len(known) else cls.UNKNOWN


@public("kafkaio.admin")
class ConfigType(StrEnum):
    """The type of the values of a config."""

    UNKNOWN = "unknown"  #: not told, or one that this version of kafkaio does not know
    BOOLEAN = "boolean"
    STRING = "string"
    INT = "int"
    SHORT = "short"
    LONG = "long"
    DOUBLE = "double"
    LIST = "list"
    CLASS = "class"
    PASSWORD = "password"  # noqa: S105 - the name of a type

    @classmethod
    def of(cls, number: int) -> ConfigType:
        """The type that has a number on the wire."""
        known = tuple(cls)
        return known[number] if 0 <= number < len(known) else cls.UNKNOWN


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A place where the value of a config could come from.

    Attributes:
        name: the name that the config has there.
        value: its value there; None if it has none, or is sensitive.
        source: the place.
    """

    name: str
    value: str | None
    source: ConfigSource


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """The value of one config.

    Attributes:
        name: its name.
        value: its value as text; None if it has none, or is sensitive.
        source: where the value comes from.
        is_read_only: whether it can be set only in the broker's properties file.
        is_sensitive: whether the broker keeps its value to itself.
        type: what kind of value it takes; UNKNOWN from brokers before 2.6.
        documentation: what Kafka says of it, in HTML; None if that was not asked for.
        synonyms: where the value could come from, the first that is set first; empty
            if that was not asked for.
    """

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    type: ConfigType = ConfigType.UNKNOWN
    documentation: str | None = None
    synonyms: tuple[ConfigSynonym, ...] = ()


@public("kafkaio.admin")
class ConfigResourceType(StrEnum):
    """The kinds of things that have configs."""

    TOPIC = "topic"
    BROKER = "broker"  #: by node id; the empty name stands for all brokers
    BROKER_LOGGER = "broker logger"  #: the levels of a broker's log, by node id
    CLIENT_METRICS = "client metrics"  #: a subscription of client metrics (KIP-714)
    GROUP = "group"


#: The same, as text.
ConfigResourceName: TypeAlias = Literal[
    "topic", "broker", "broker logger", "client metrics", "group"
]


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class ConfigResource:
    """Something that has configs.

    Attributes:
        type: what it is.
        name: the name of the topic, group or subscription, or the node id of the
            broker as text. The empty name of a broker stands for the defaults of all
            brokers.
    """

    type: ConfigResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name!r}"


@public("kafkaio.admin")
class ConfigChangeType(StrEnum):
    """The kinds of changes of a config."""

    SET = "set"
    DELETE = "delete"  #: the default holds again
    APPEND = "append"  #: values are added to a list
    SUBTRACT = "subtract"  #: values are taken from a list


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A change of one config; see `kafkaio.Admin.incremental_alter_configs`.

    Attributes:
        name: the name of the config.
        value: the value as text, and None with DELETE. The values of a list have commas
            between them.
        type: how to change it.
    """

    name: str
    value: str | None
    type: ConfigChangeType = ConfigChangeType.SET


# ---- groups ---------------------------------------------------------------------


@public("kafkaio.admin")
class GroupType(StrEnum):
    """The protocol by which the members of a group divide their work."""

    CLASSIC = "classic"
    CONSUMER = "consumer"  #: KIP-848
    SHARE = "share"  #: KIP-932
    STREAMS = "streams"  #: KIP-1071
    UNKNOWN = "unknown"  #: a type that this version of kafkaio does not know

    @classmethod
    def _missing_(cls, value: object) -> GroupType:
        for each in cls:
            if isinstance(value, str) and value.casefold() == each.value:
                return each
        return cls.UNKNOWN


#: The same, as text, for filters.
GroupTypeName: TypeAlias = Literal["classic", "consumer", "share", "streams"]


@public("kafkaio.admin")
class GroupState(StrEnum):
    """The state of a group; the values are Kafka's names."""

    PREPARING_REBALANCE = "PreparingRebalance"  #: members are to join again
    COMPLETING_REBALANCE = "CompletingRebalance"  #: the leader divides the partitions
    ASSIGNING = "Assigning"  #: the coordinator divides the partitions
    RECONCILING = "Reconciling"  #: members give partitions up and take them over
    STABLE = "Stable"
    EMPTY = "Empty"  #: it has no members
    DEAD = "Dead"  #: it is being deleted
    NOT_READY = "NotReady"  #: a streams group lacks topics
    UNKNOWN = "Unknown"  #: a state that this version of kafkaio does not know

    @classmethod
    def _missing_(cls, value: object) -> GroupState:
        del value
        return cls.UNKNOWN


#: The same, as text, for filters.
GroupStateName: TypeAlias = Literal[
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Stable",
    "Empty",
    "Dead",
    "NotReady",
]


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group, as `kafkaio.Admin.list_groups` finds it.

    Attributes:
        group_id: its name.
        type: the protocol of its members.
        protocol_type: what the members are, such as ``consumer`` or ``connect``; empty
            if nobody was ever a member.
        state: its state; None from brokers before 2.6.
        coordinator: node id of the broker that coordinates it.
    """

    group_id: str
    type: GroupType
    protocol_type: str
    state: GroupState | None
    coordinator: int


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group of consumers.

    Attributes:
        member_id: its id.
        instance_id: the ``group_instance_id`` of a static member, else None.
        client_id: its ``client_id``.
        host: the address from which it is connected.
        rack: its ``client_rack``; None if it has none, or is in a classic group.
        assignment: the partitions that it has.
        target_assignment: the partitions that it is to have; None in a classic group.
        member_epoch: its epoch; None in a classic group.
        is_classic: whether it speaks the classic protocol in a group of KIP-848; None
            if that is not known.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    assignment: frozenset[TopicPartition]
    target_assignment: frozenset[TopicPartition] | None = None
    member_epoch: int | None = None
    is_classic: bool | None = None


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group of consumers and its members.

    Attributes:
        group_id: its name.
        type: the protocol of its members.
        protocol_type: ``consumer``, or what else the members are.
        state: its state.
        coordinator: node id of the broker that coordinates it.
        assignor: the name of the assignor; empty while there is none.
        members: the members.
        group_epoch: its epoch; None for a classic group.
        assignment_epoch: the epoch of the target assignment; None likewise.
        authorized_operations: what the client may do with the group; None if that was
            not asked for.
    """

    group_id: str
    type: GroupType
    protocol_type: str
    state: GroupState
    coordinator: int
    assignor: str
    members: tuple[GroupMember, ...]
    group_epoch: int | None = None
    assignment_epoch: int | None = None
    authorized_operations: frozenset[AclOperation] | None = None


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class ShareGroupMember:
    """A member of a share group.

    Attributes:
        member_id: its id.
        client_id: its ``client_id``.
        host: the address from which it is connected.
        rack: its ``client_rack``; None if it has none.
        member_epoch: its epoch.
        subscription: the topics that it reads.
        assignment: the partitions from which it gets records. Other members may get
            some of the same partitions.
    """

    member_id: str
    client_id: str
    host: str
    rack: str | None
    member_epoch: int
    subscription: frozenset[str]
    assignment: frozenset[TopicPartition]


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class ShareGroupDescription:
    """A share group and its members (KIP-932).

    Attributes:
        group_id: its name.
        state: its state.
        coordinator: node id of the broker that coordinates it.
        assignor: the name of the broker's assignor.
        members: the members.
        group_epoch: its epoch.
        assignment_epoch: the epoch of the target assignment.
        authorized_operations: what the client may do with the group; None if that was
            not asked for.
    """

    group_id: str
    state: GroupState
    coordinator: int
    assignor: str
    members: tuple[ShareGroupMember, ...]
    group_epoch: int
    assignment_epoch: int
    authorized_operations: frozenset[AclOperation] | None = None


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class ShareOffset:
    """The progress of a share group in a partition.

    Attributes:
        start_offset: the first offset that may still be delivered; all before it are
            finished. Records after it may be finished, too.
        leader_epoch: the epoch of the partition's leader; None if it is not known.
        lag: how many records are not finished; None if it is not known, and from
            brokers before 4.2.
    """

    start_offset: int
    leader_epoch: int | None
    lag: int | None


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class StreamsTopic:
    """A topic that Kafka Streams makes for itself.

    Attributes:
        partitions: the number of its partitions; 0 where Kafka Streams chooses.
        replication_factor: the number of replicas; 0 for the brokers' default.
        configs: its configs by their names.
    """

    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class StreamsSubtopology:
    """A part of a topology whose tasks are assigned together.

    Attributes:
        subtopology_id: its id.
        source_topics: the topics that it reads.
        repartition_sink_topics: the topics that it writes for other subtopologies.
        state_changelog_topics: the topics that keep its state, by name.
        repartition_source_topics: the topics that other subtopologies write for it, by
            name.
    """

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: Mapping[str, StreamsTopic]
    repartition_source_topics: Mapping[str, StreamsTopic]


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class StreamsTasks:
    """The tasks of a member, as numbers of partitions by the id of the subtopology.

    Attributes:
        active: the tasks that process records.
        standby: the tasks that keep a copy of the state of others.
        warmup: the tasks that restore state in order to become active.
    """

    active: Mapping[str, tuple[int, ...]]
    standby: Mapping[str, tuple[int, ...]]
    warmup: Mapping[str, tuple[int, ...]]


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class StreamsGroupMember:
    """A member of a streams group.

    Attributes:
        member_id: its id.
        instance_id: the id of a static member, else None.
        client_id: its ``client.id``.
        host: the address from which it is connected.
        rack: its ``client.rack``; None if it has none.
        member_epoch: its epoch.
        topology_epoch: the epoch of the topology that it runs.
        process_id: the process that it belongs to; one process may have several
            members.
        endpoint: host and port for interactive queries; None if it has none.
        client_tags: its tags, which keep copies of state in different racks or zones.
        task_offsets: how far the state of its tasks is restored, by the id of the
            subtopology and the number of the partition.
        task_end_offsets: the ends of the logs that these are restored from, likewise.
        assignment: the tasks that it has.
        target_assignment: the tasks that it is to have.
        is_classic: whether it speaks the classic protocol.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    member_epoch: int
    topology_epoch: int
    process_id: str
    endpoint: tuple[str, int] | None
    client_tags: Mapping[str, str]
    task_offsets: Mapping[tuple[str, int], int]
    task_end_offsets: Mapping[tuple[str, int], int]
    assignment: StreamsTasks
    target_assignment: StreamsTasks
    is_classic: bool


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class StreamsGroupDescription:
    """A group of Kafka Streams and its members (KIP-1071).

    Attributes:
        group_id: its name.
        state: its state.
        coordinator: node id of the broker that coordinates it.
        members: the members.
        group_epoch: its epoch.
        assignment_epoch: the epoch of the target assignment.
        topology_epoch: the epoch of the topology; None if the group has none.
        subtopologies: the parts of the topology; empty likewise.
        authorized_operations: what the client may do with the group; None if that was
            not asked for.
    """

    group_id: str
    state: GroupState
    coordinator: int
    members: tuple[StreamsGroupMember, ...]
    group_epoch: int
    assignment_epoch: int
    topology_epoch: int | None
    subtopologies: tuple[StreamsSubtopology, ...]
    authorized_operations: frozenset[AclOperation] | None = None


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class PartitionLag:
    """The lag of a group in one partition.

    Attributes:
        committed: what the group has committed; None if nothing.
        end: the end of the log; None if it could not be looked up.
        error: why it could not, for example because the topic was deleted.
    """

    committed: OffsetAndMetadata | None
    end: int | None
    error: KafkaError | None = None

    @property
    def lag(self) -> int | None:
        """The number of offsets between the two; None if one is not known."""
        if self.committed is None or self.end is None:
            return None
        return max(0, self.end - self.committed.offset)


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class GroupLag:
    """The lag of a group.

    Attributes:
        partitions: by partition, for all partitions with a committed offset.
    """

    partitions: Mapping[TopicPartition, PartitionLag]

    @property
    def total(self) -> int:
        """The sum over the partitions whose lag is known."""
        return sum(each.lag or 0 for each in self.partitions.values())


#: The targets of `kafkaio.Admin.reset_offsets`.
OffsetTarget: TypeAlias = (
    Literal["earliest", "latest"] | datetime | timedelta | Mapping[TopicPartition, int]
)


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class OffsetReset:
    """The change of one committed offset by `kafkaio.Admin.reset_offsets`.

    Attributes:
        before: the offset that was committed; None if there was none.
        after: the offset that is committed now, or would be.
    """

    before: int | None
    after: int


# ---- access control lists, quotas, users, tokens --------------------------------


@public("kafkaio.admin")
class AclOperation(StrEnum):
    """The operations that entries allow or deny; see Kafka's documentation."""

    ANY = "ANY"  #: in filters: any operation
    ALL = "ALL"  #: every operation
    READ = "READ"
    WRITE = "WRITE"
    CREATE = "CREATE"
    DELETE = "DELETE"
    ALTER = "ALTER"
    DESCRIBE = "DESCRIBE"
    CLUSTER_ACTION = "CLUSTER_ACTION"
    DESCRIBE_CONFIGS = "DESCRIBE_CONFIGS"
    ALTER_CONFIGS = "ALTER_CONFIGS"
    IDEMPOTENT_WRITE = "IDEMPOTENT_WRITE"
    CREATE_TOKENS = "CREATE_TOKENS"
    DESCRIBE_TOKENS = "DESCRIBE_TOKENS"
    TWO_PHASE_COMMIT = "TWO_PHASE_COMMIT"
    UNKNOWN = "UNKNOWN"  #: an operation that this version of kafkaio does not know


#: The operations by their numbers on the wire.
ACL_OPERATIONS: tuple[AclOperation, ...] = (
    AclOperation.UNKNOWN,
    *(each for each in AclOperation if each is not AclOperation.UNKNOWN),
)

#: The bits of authorized operations that were not asked for.
_NOT_ASKED = -(1 << 31)


def operations_of(bits: int) -> frozenset[AclOperation] | None:
    """Return the operations whose bits are set; None if they were not asked for."""
    if bits == _NOT_ASKED:
        return None
    return frozenset(
        ACL_OPERATIONS[number] if number < len(ACL_OPERATIONS) else AclOperation.UNKNOWN
        for number in range(bits.bit_length())
        if bits >> number & 1
    )


@public("kafkaio.admin")
class AclResourceType(StrEnum):
    """The kinds of resources that entries are about."""

    ANY = "ANY"  #: in filters: any kind
    TOPIC = "TOPIC"
    GROUP = "GROUP"
    CLUSTER = "CLUSTER"  #: the cluster; its name is ``kafka-cluster``
    TRANSACTIONAL_ID = "TRANSACTIONAL_ID"
    DELEGATION_TOKEN = "DELEGATION_TOKEN"  # noqa: S105 - no password
    USER = "USER"
    UNKNOWN = "UNKNOWN"  #: a kind that this version of kafkaio does not know


@public("kafkaio.admin")
class AclPatternType(StrEnum):
    """How the name in an entry is compared with the names of resources."""

    ANY = "ANY"  #: in filters: any type, with the name as it is
    MATCH = "MATCH"  #: in filters: whatever applies to a resource of the name
    LITERAL = "LITERAL"  #: the name itself; ``*`` stands for all names
    PREFIXED = "PREFIXED"  #: names that begin so
    UNKNOWN = "UNKNOWN"  #: a type that this version of kafkaio does not know


@public("kafkaio.admin")
class AclPermission(StrEnum):
    """Allow or deny. An entry that denies overrides all that allow."""

    ANY = "ANY"  #: in filters: either
    DENY = "DENY"
    ALLOW = "ALLOW"
    UNKNOWN = "UNKNOWN"  #: a permission that this version of kafkaio does not know


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class AclBinding:
    """One entry of the access control lists: who may, or may not, do what with what.

    Attributes:
        resource_type: the kind of the resource.
        resource_name: its name, which ``pattern_type`` says how to take.
        principal: who: ``User:alice``, or ``User:*`` for everybody.
        operation: what the principal does.
        permission: whether that is allowed or denied.
        host: the address that it comes from; ``*`` for any.
        pattern_type: ``LITERAL`` or ``PREFIXED``.
    """

    resource_type: AclResourceType
    resource_name: str
    principal: str
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW
    host: str = "*"
    pattern_type: AclPatternType = AclPatternType.LITERAL


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class AclBindingFilter:
    """A filter for entries of the access control lists; without arguments, for all.

    Attributes:
        resource_type: the kind of the resource.
        resource_name: its name; None for any.
        principal: who, such as ``User:alice``; None for any. ``User:*`` means entries
            for everybody, and no others.
        operation: what the principal does.
        permission: whether that is allowed or denied.
        host: the address; None for any. ``*`` means entries for any address.
        pattern_type: how ``resource_name`` is compared with names in entries.
    """

    resource_type: AclResourceType = AclResourceType.ANY
    resource_name: str | None = None
    principal: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY
    host: str | None = None
    pattern_type: AclPatternType = AclPatternType.ANY


@public("kafkaio.admin")
class QuotaName(Enum):
    """Stand-ins for a name in entities and filters of quotas."""

    #: The quota of all users, client ids or addresses that have none of their own.
    DEFAULT = "DEFAULT"
    #: In filters: any name, or the default.
    ANY = "ANY"


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaEntity:
    """The subject of a quota: a user, a client id, both together, or an IP address.

    Attributes:
        user: the name of a user; None if the quota names none.
        client_id: a client id; None likewise.
        ip: an IP address, which goes with nothing else; None likewise.
    """

    user: str | Literal[QuotaName.DEFAULT] | None = None
    client_id: str | Literal[QuotaName.DEFAULT] | None = None
    ip: str | Literal[QuotaName.DEFAULT] | None = None


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFilter:
    """A filter for quotas; without arguments, for all.

    Attributes:
        user: a name, the default, or any of them; None asks nothing of the user.
        client_id: likewise for the client id.
        ip: likewise for the IP address.
        strict: whether an entity must have nothing but what is given here.
    """

    user: str | QuotaName | None = None
    client_id: str | QuotaName | None = None
    ip: str | QuotaName | None = None
    strict: bool = False


@public("kafkaio.admin")
class ScramMechanism(StrEnum):
    """A kind of SCRAM; the values are the names of the SASL mechanisms."""

    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    UNKNOWN = "UNKNOWN"  #: a mechanism that this version of kafkaio does not know


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class ScramCredential:
    """A password of a user, as far as brokers describe it.

    Attributes:
        mechanism: the mechanism that it is for.
        iterations: how often it was hashed.
    """

    mechanism: ScramMechanism
    iterations: int


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class ScramUpsertion:
    """A password to set for a user and a mechanism.

    Attributes:
        user: the name of the user, who need not have had one.
        mechanism: the mechanism.
        password: the password. It is not sent: brokers get its salted hash.
        iterations: how often to hash it. Brokers take 4,096 to 16,384.
        salt: random bytes; None to have them made.
    """

    user: str
    mechanism: ScramMechanism
    password: str = field(repr=False)
    iterations: int = 8_192
    salt: bytes | None = field(default=None, repr=False)


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class ScramDeletion:
    """A password to delete.

    Attributes:
        user: the name of the user.
        mechanism: the mechanism.
    """

    user: str
    mechanism: ScramMechanism


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token with which another client can log in as its owner (KIP-48).

    Such a client has ``sasl_mechanism`` SCRAM-SHA-256 or SCRAM-SHA-512, the
    ``token_id`` as ``sasl_username``, the `password` as ``sasl_password``, and
    ``sasl_delegation_token=True``.

    Attributes:
        token_id: the id of the token.
        hmac: its secret.
        owner: whom it stands for, such as ``User:alice``.
        requester: who asked for it; None from brokers before 3.3.
        issue_time: when it was made.
        expiry_time: when it expires, unless it is renewed.
        max_time: when it expires although it is renewed.
        renewers: who may renew it besides the owner.
    """

    token_id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str | None
    issue_time: datetime
    expiry_time: datetime
    max_time: datetime
    renewers: tuple[str, ...] = ()

    @property
    def password(self) -> str:
        """The secret as ``sasl_password`` takes it."""
        return b64encode(self.hmac).decode("ascii")


# ---- the cluster ----------------------------------------------------------------


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """The cluster, as a broker describes it, or a controller.

    Attributes:
        cluster_id: the id of the cluster.
        controller: the node id of the active controller, as far as the node says it:
            brokers of a cluster without ZooKeeper name a broker that forwards to it.
            None while no controller is active.
        brokers: the brokers, in the order of their node ids; with
            ``bootstrap_controllers`` the controllers.
        fenced: the node ids of the brokers that are registered and not alive. Empty
            unless they were asked for.
        authorized_operations: what the client may do with the cluster; None if that was
            not asked for, or the broker is older than 2.3.
    """

    cluster_id: str | None
    controller: int | None
    brokers: tuple[Broker, ...]
    fenced: frozenset[int] = frozenset()
    authorized_operations: frozenset[AclOperation] | None = None


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class FeatureLevels:
    """A range of levels of a feature.

    Attributes:
        min_level: the lowest.
        max_level: the highest.
    """

    min_level: int
    max_level: int


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class FeaturesDescription:
    """The features of the cluster, and of the broker that was asked (KIP-584).

    Attributes:
        finalized: the levels in force in the whole cluster, by the names of features.
        finalized_epoch: grows whenever those change; None if the broker does not know
            them.
        supported: the levels that the broker supports, by the names of features.
    """

    finalized: Mapping[str, FeatureLevels]
    finalized_epoch: int | None
    supported: Mapping[str, FeatureLevels]


@public("kafkaio.admin")
class FeatureUpgradeType(StrEnum):
    """The direction that an update of a feature may take."""

    UPGRADE = "UPGRADE"  #: raise the level
    SAFE_DOWNGRADE = "SAFE_DOWNGRADE"  #: lower it, if no metadata is lost by that
    UNSAFE_DOWNGRADE = "UNSAFE_DOWNGRADE"  #: lower it, whatever is lost


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """A level to put in force.

    Attributes:
        max_level: the level; 0 switches the feature off, which is a downgrade.
        upgrade_type: what it may do.
    """

    max_level: int
    upgrade_type: FeatureUpgradeType = FeatureUpgradeType.UPGRADE


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class RaftEndpoint:
    """A listener of a controller.

    Attributes:
        listener: its name, such as ``CONTROLLER``.
        host: its host name or address.
        port: its port.
    """

    listener: str
    host: str
    port: int


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """A node that keeps the cluster's metadata.

    Attributes:
        node_id: its node id.
        directory_id: the id of the directory with its metadata; None if the quorum has
            static voters, and from brokers before 3.9.
        log_end_offset: how far it has come in the log of the metadata; None if the
            leader does not know.
        last_fetch_time: when it last fetched from the leader; for the leader the time
            of its answer. None if the leader does not know.
        last_caught_up_time: when it last had all of the log; None likewise.
    """

    node_id: int
    directory_id: UUID | None
    log_end_offset: int | None
    last_fetch_time: datetime | None
    last_caught_up_time: datetime | None


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """The controllers, which keep the cluster's metadata by Raft (KIP-595).

    Attributes:
        leader: the node id of the active controller; None while no controller is
            active.
        leader_epoch: how often it has changed.
        high_watermark: the end of what is committed in the log of the metadata.
        voters: the controllers, in the order of their node ids.
        observers: the other nodes that read the log.
        endpoints: the listeners of the voters by node id; empty before Kafka 3.9.
    """

    leader: int | None
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: Mapping[int, tuple[RaftEndpoint, ...]]


# ---- transactions ----------------------------------------------------------------


@public("kafkaio.admin")
class TransactionState(StrEnum):
    """The state of a transaction; the values are Kafka's names."""

    EMPTY = "Empty"  #: the producer has begun no transaction yet
    ONGOING = "Ongoing"  #: partitions were added, and it has not ended
    PREPARE_COMMIT = "PrepareCommit"  #: committed; markers are being written
    PREPARE_ABORT = "PrepareAbort"  #: aborted; markers are being written
    COMPLETE_COMMIT = "CompleteCommit"  #: the last one was committed, everywhere
    COMPLETE_ABORT = "CompleteAbort"  #: the last one was aborted, everywhere
    DEAD = "Dead"  #: the transactional id has expired
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"  #: the producer is being fenced
    UNKNOWN = "Unknown"  #: a state that this version of kafkaio does not know

    @classmethod
    def _missing_(cls, value: object) -> TransactionState:
        del value
        return cls.UNKNOWN

    @property
    def is_open(self) -> bool:
        """Whether the coordinator will still write markers for it, or may have to."""
        return self not in {
            TransactionState.EMPTY,
            TransactionState.COMPLETE_COMMIT,
            TransactionState.COMPLETE_ABORT,
            TransactionState.DEAD,
        }


#: The same, as text, for filters.
TransactionStateName: TypeAlias = Literal[
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
]


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id, as `kafkaio.Admin.list_transactions` finds it.

    Attributes:
        transactional_id: the id.
        producer_id: the producer id that belongs to it.
        state: how far its last transaction has come.
        coordinator: node id of the broker that coordinates it.
    """

    transactional_id: str
    producer_id: int
    state: TransactionState
    coordinator: int


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id, as its coordinator describes it.

    Attributes:
        transactional_id: the id.
        coordinator: node id of the broker that coordinates it.
        state: how far its last transaction has come.
        producer_id: the producer id that belongs to it.
        producer_epoch: the epoch of that id.
        timeout_ms: milliseconds after which the coordinator aborts a transaction.
        start_time_ms: when the open transaction began, in milliseconds since the Unix
            epoch; None if none is open, where Java's Admin has that of the last one.
        partitions: the partitions of the open transaction.
    """

    transactional_id: str
    coordinator: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int | None
    partitions: frozenset[TopicPartition]


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class ProducerState:
    """A producer, as the leader of a partition remembers it.

    Attributes:
        producer_id: the producer id.
        producer_epoch: its epoch, as of the last batch or marker.
        last_sequence: the sequence number of the last record; -1 if there is none
            under this epoch.
        last_timestamp: the time of its last batch, in milliseconds since the Unix
            epoch; -1 if it is not known. Producers set it, unless the topic uses log
            append time.
        coordinator_epoch: the epoch of the transaction coordinator that wrote the last
            marker here; None without a marker.
        transaction_start_offset: the first offset of the transaction that is open in
            the partition; None if none is.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    transaction_start_offset: int | None


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class HangingTransaction:
    """A transaction that is open in a partition, and that no coordinator will end.

    Attributes:
        partition: where it is open.
        start_offset: its first offset; readers with ``read_committed`` wait there.
        producer_id: the producer id that wrote it.
        producer_epoch: its epoch.
        last_timestamp: the time of its last batch, in milliseconds since the Unix
            epoch.
        transactional_id: the id that has the producer id now; None if none has.
    """

    partition: TopicPartition
    start_offset: int
    producer_id: int
    producer_epoch: int
    last_timestamp: int
    transactional_id: str | None


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class ProducerIdAndEpoch:
    """The identity that fences a producer off.

    Attributes:
        producer_id: the producer id.
        epoch: its epoch: producers with an older one are refused.
    """

    producer_id: int
    epoch: int
