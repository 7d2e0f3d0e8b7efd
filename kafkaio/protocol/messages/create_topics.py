"""CreateTopicsRequest and CreateTopicsResponse (API key 19), versions 2 to 7."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "CreatableReplicaAssignment",
    "CreatableTopic",
    "CreatableTopicConfig",
    "CreatableTopicConfigs",
    "CreatableTopicResult",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
]


@dataclass(slots=True, kw_only=True)
class CreatableTopicConfigs(Struct):
    """Part of CreateTopicsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (5, 7)),
        Field("value", "string", (5, 7), nullable=(5, 7)),
        Field("read_only", "bool", (5, 7)),
        Field("config_source", "int8", (5, 7), default=-1, ignorable=True),
        Field("is_sensitive", "bool", (5, 7)),
    )

    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


@dataclass(slots=True, kw_only=True)
class CreatableTopicResult(Struct):
    """Part of CreateTopicsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (2, 7)),
        Field("topic_id", "uuid", (7, 7), ignorable=True),
        Field("error_code", "int16", (2, 7)),
        Field("error_message", "string", (2, 7), nullable=(2, 7), ignorable=True),
        Field(
            "topic_config_error_code",
            "int16",
            (5, 7),
            tag=0,
            tagged=(5, 7),
            ignorable=True,
        ),
        Field("num_partitions", "int32", (5, 7), default=-1, ignorable=True),
        Field("replication_factor", "int16", (5, 7), default=-1, ignorable=True),
        Field(
            "configs",
            CreatableTopicConfigs,
            (5, 7),
            array=True,
            nullable=(5, 7),
            ignorable=True,
        ),
    )

    name: str = ""
    topic_id: UUID = ZERO_UUID
    error_code: int = 0
    error_message: str | None = ""
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: list[CreatableTopicConfigs] | None = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class CreateTopicsResponse(Response):
    """Versions 2 to 7, API key 19."""

    API_KEY: ClassVar[int] = 19
    NAME: ClassVar[str] = "CreateTopicsResponse"
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 7
    LAST_VERSION: ClassVar[int] = 7
    FLEXIBLE_FROM: ClassVar[int | None] = 5
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (2, 7), ignorable=True),
        Field("topics", CreatableTopicResult, (2, 7), array=True),
    )

    throttle_time_ms: int = 0
    topics: list[CreatableTopicResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class CreatableReplicaAssignment(Struct):
    """Part of CreateTopicsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (2, 7)),
        Field("broker_ids", "int32", (2, 7), array=True),
    )

    partition_index: int = 0
    broker_ids: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class CreatableTopicConfig(Struct):
    """Part of CreateTopicsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (2, 7)),
        Field("value", "string", (2, 7), nullable=(2, 7)),
    )

    name: str = ""
    value: str | None = ""


@dataclass(slots=True, kw_only=True)
class CreatableTopic(Struct):
    """Part of CreateTopicsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (2, 7)),
        Field("num_partitions", "int32", (2, 7)),
        Field("replication_factor", "int16", (2, 7)),
        Field("assignments", CreatableReplicaAssignment, (2, 7), array=True),
        Field("configs", CreatableTopicConfig, (2, 7), array=True),
    )

    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: list[CreatableReplicaAssignment] = field(default_factory=list)
    configs: list[CreatableTopicConfig] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class CreateTopicsRequest(Request[CreateTopicsResponse]):
    """Versions 2 to 7, API key 19."""

    API_KEY: ClassVar[int] = 19
    NAME: ClassVar[str] = "CreateTopicsRequest"
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 7
    LAST_VERSION: ClassVar[int] = 7
    FLEXIBLE_FROM: ClassVar[int | None] = 5
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topics", CreatableTopic, (2, 7), array=True),
        Field("timeout_ms", "int32", (2, 7), default=60000),
        Field("validate_only", "bool", (2, 7)),
    )

    topics: list[CreatableTopic] = field(default_factory=list)
    timeout_ms: int = 60000
    validate_only: bool = False

    @classmethod
    def response_type(cls) -> type[CreateTopicsResponse]:
        """Return CreateTopicsResponse."""
        return CreateTopicsResponse
