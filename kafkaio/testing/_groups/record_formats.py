"""Schemas of the values of KIP-848 and share groups in ``__consumer_offsets``.

They are Kafka's; the names of the fields follow those of the generated messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

from kafkaio.protocol._message import ZERO_UUID, Data, Field, Range, Struct

_ALL: Range = (0, 0)


@dataclass(slots=True, kw_only=True)
class Value(Data):
    """The value of a record; each has one version."""

    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0


@dataclass(slots=True, kw_only=True)
class GroupValue(Value):
    """The group's epoch, and a hash of the topics, to notice that they changed."""

    NAME: ClassVar[str] = "ConsumerGroupMetadataValue"
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", _ALL),
        Field("metadata_hash", "int64", _ALL, tag=0, tagged=_ALL),
    )

    epoch: int = 0
    metadata_hash: int = 0


@dataclass(slots=True, kw_only=True)
class ClassicProtocol(Struct):
    """A protocol that a classic member supports, and its metadata."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", _ALL),
        Field("metadata", "bytes", _ALL),
    )

    name: str = ""
    metadata: bytes = b""


@dataclass(slots=True, kw_only=True)
class ClassicMemberMetadata(Struct):
    """The part of a member's metadata that only classic members have."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("session_timeout_ms", "int32", _ALL),
        Field("supported_protocols", ClassicProtocol, _ALL, array=True),
    )

    session_timeout_ms: int = 0
    supported_protocols: list[ClassicProtocol] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class MemberValue(Value):
    """A member and its subscription."""

    NAME: ClassVar[str] = "ConsumerGroupMemberMetadataValue"
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("instance_id", "string", _ALL, nullable=_ALL),
        Field("rack_id", "string", _ALL, nullable=_ALL),
        Field("client_id", "string", _ALL),
        Field("client_host", "string", _ALL),
        Field("subscribed_topic_names", "string", _ALL, array=True),
        Field("subscribed_topic_regex", "string", _ALL, nullable=_ALL),
        Field("rebalance_timeout_ms", "int32", _ALL),
        Field("server_assignor", "string", _ALL, nullable=_ALL),
        # Null is written explicitly: Kafka reads a missing field as a classic member.
        Field(
            "classic_member_metadata",
            ClassicMemberMetadata,
            _ALL,
            nullable=_ALL,
            tag=0,
            tagged=_ALL,
        ),
    )

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(default_factory=list)
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic_member_metadata: ClassicMemberMetadata | None = field(
        default_factory=ClassicMemberMetadata
    )


@dataclass(slots=True, kw_only=True)
class TargetEpochValue(Value):
    """The epoch for which the target was computed, and when."""

    NAME: ClassVar[str] = "ConsumerGroupTargetAssignmentMetadataValue"
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("assignment_epoch", "int32", _ALL),
        Field("assignment_timestamp", "int64", _ALL, tag=0, tagged=_ALL),
    )

    assignment_epoch: int = 0
    assignment_timestamp: int = 0


@dataclass(slots=True, kw_only=True)
class TopicPartitions(Struct):
    """Partitions of a topic."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", _ALL),
        Field("partitions", "int32", _ALL, array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TargetValue(Value):
    """The target assignment of a member."""

    NAME: ClassVar[str] = "ConsumerGroupTargetAssignmentMemberValue"
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_partitions", TopicPartitions, _ALL, array=True),
    )

    topic_partitions: list[TopicPartitions] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TopicPartitionsWithEpochs(Struct):
    """Partitions of a topic, and the epoch in which the member got each."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", _ALL),
        Field("partitions", "int32", _ALL, array=True),
        Field(
            "assignment_epochs",
            "int32",
            _ALL,
            array=True,
            nullable=_ALL,
            tag=0,
            tagged=_ALL,
            default=None,
        ),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[int] = field(default_factory=list)
    assignment_epochs: list[int] | None = None


@dataclass(slots=True, kw_only=True)
class CurrentAssignmentValue(Value):
    """The current assignment of a member, and its state."""

    NAME: ClassVar[str] = "ConsumerGroupCurrentMemberAssignmentValue"
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("member_epoch", "int32", _ALL),
        Field("previous_member_epoch", "int32", _ALL),
        Field("state", "int8", _ALL),
        Field("assigned_partitions", TopicPartitionsWithEpochs, _ALL, array=True),
        Field(
            "partitions_pending_revocation", TopicPartitionsWithEpochs, _ALL, array=True
        ),
    )

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: list[TopicPartitionsWithEpochs] = field(default_factory=list)
    partitions_pending_revocation: list[TopicPartitionsWithEpochs] = field(
        default_factory=list
    )


@dataclass(slots=True, kw_only=True)
class PatternValue(Value):
    """The topics that a pattern matched, and when."""

    NAME: ClassVar[str] = "ConsumerGroupRegularExpressionValue"
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topics", "string", _ALL, array=True),
        Field("version", "int64", _ALL),
        Field("timestamp", "int64", _ALL),
    )

    topics: list[str] = field(default_factory=list)
    version: int = 0
    timestamp: int = 0


@dataclass(slots=True, kw_only=True)
class ShareMemberValue(Value):
    """A member and its subscription."""

    NAME: ClassVar[str] = "ShareGroupMemberMetadataValue"
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("rack_id", "string", _ALL, nullable=_ALL),
        Field("client_id", "string", _ALL),
        Field("client_host", "string", _ALL),
        Field("subscribed_topic_names", "string", _ALL, array=True),
    )

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ShareGroupValue(Value):
    """The group's epoch, and a hash of the topics, to notice that they changed."""

    NAME: ClassVar[str] = "ShareGroupMetadataValue"
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", _ALL),
        Field("metadata_hash", "int64", _ALL),
    )

    epoch: int = 0
    metadata_hash: int = 0


@dataclass(slots=True, kw_only=True)
class ShareCurrentValue(Value):
    """The current assignment of a member."""

    NAME: ClassVar[str] = "ShareGroupCurrentMemberAssignmentValue"
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("member_epoch", "int32", _ALL),
        Field("previous_member_epoch", "int32", _ALL),
        Field("state", "int8", _ALL),
        Field("assigned_partitions", TopicPartitions, _ALL, array=True),
    )

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: list[TopicPartitions] = field(default_factory=list)
