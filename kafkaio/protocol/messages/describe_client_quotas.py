"""DescribeClientQuotasRequest and DescribeClientQuotasResponse (API key 48), versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "ComponentData",
    "DescribeClientQuotasRequest",
    "DescribeClientQuotasResponse",
    "EntityData",
    "EntryData",
    "ValueData",
]


@dataclass(slots=True, kw_only=True)
class EntityData(Struct):
    """Part of DescribeClientQuotasResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", (0, 1)),
        Field("entity_name", "string", (0, 1), nullable=(0, 1)),
    )

    entity_type: str = ""
    entity_name: str | None = ""


@dataclass(slots=True, kw_only=True)
class ValueData(Struct):
    """Part of DescribeClientQuotasResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", (0, 1)),
        Field("value", "float64", (0, 1)),
    )

    key: str = ""
    value: float = 0.0


@dataclass(slots=True, kw_only=True)
class EntryData(Struct):
    """Part of DescribeClientQuotasResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("entity", EntityData, (0, 1), array=True),
        Field("values", ValueData, (0, 1), array=True),
    )

    entity: list[EntityData] = field(default_factory=list)
    values: list[ValueData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeClientQuotasResponse(Response):
    """Versions 0 to 1, API key 48."""

    API_KEY: ClassVar[int] = 48
    NAME: ClassVar[str] = "DescribeClientQuotasResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1)),
        Field("entries", EntryData, (0, 1), array=True, nullable=(0, 1)),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    entries: list[EntryData] | None = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ComponentData(Struct):
    """Part of DescribeClientQuotasRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", (0, 1)),
        Field("match_type", "int8", (0, 1)),
        Field("match", "string", (0, 1), nullable=(0, 1)),
    )

    entity_type: str = ""
    match_type: int = 0
    match: str | None = ""


@dataclass(slots=True, kw_only=True)
class DescribeClientQuotasRequest(Request[DescribeClientQuotasResponse]):
    """Versions 0 to 1, API key 48."""

    API_KEY: ClassVar[int] = 48
    NAME: ClassVar[str] = "DescribeClientQuotasRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("components", ComponentData, (0, 1), array=True),
        Field("strict", "bool", (0, 1)),
    )

    components: list[ComponentData] = field(default_factory=list)
    strict: bool = False

    @classmethod
    def response_type(cls) -> type[DescribeClientQuotasResponse]:
        """Return DescribeClientQuotasResponse."""
        return DescribeClientQuotasResponse
