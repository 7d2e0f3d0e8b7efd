"""AlterClientQuotasRequest and AlterClientQuotasResponse (API key 49), versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "AlterClientQuotasRequest",
    "AlterClientQuotasRequestEntityData",
    "AlterClientQuotasRequestEntryData",
    "AlterClientQuotasResponse",
    "AlterClientQuotasResponseEntityData",
    "AlterClientQuotasResponseEntryData",
    "OpData",
]


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasResponseEntityData(Struct):
    """Part of AlterClientQuotasResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", (0, 1)),
        Field("entity_name", "string", (0, 1), nullable=(0, 1)),
    )

    entity_type: str = ""
    entity_name: str | None = ""


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasResponseEntryData(Struct):
    """Part of AlterClientQuotasResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1)),
        Field("entity", AlterClientQuotasResponseEntityData, (0, 1), array=True),
    )

    error_code: int = 0
    error_message: str | None = ""
    entity: list[AlterClientQuotasResponseEntityData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasResponse(Response):
    """Versions 0 to 1, API key 49."""

    API_KEY: ClassVar[int] = 49
    NAME: ClassVar[str] = "AlterClientQuotasResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("entries", AlterClientQuotasResponseEntryData, (0, 1), array=True),
    )

    throttle_time_ms: int = 0
    entries: list[AlterClientQuotasResponseEntryData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasRequestEntityData(Struct):
    """Part of AlterClientQuotasRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", (0, 1)),
        Field("entity_name", "string", (0, 1), nullable=(0, 1)),
    )

    entity_type: str = ""
    entity_name: str | None = ""


@dataclass(slots=True, kw_only=True)
class OpData(Struct):
    """Part of AlterClientQuotasRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", (0, 1)),
        Field("value", "float64", (0, 1)),
        Field("remove", "bool", (0, 1)),
    )

    key: str = ""
    value: float = 0.0
    remove: bool = False


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasRequestEntryData(Struct):
    """Part of AlterClientQuotasRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("entity", AlterClientQuotasRequestEntityData, (0, 1), array=True),
        Field("ops", OpData, (0, 1), array=True),
    )

    entity: list[AlterClientQuotasRequestEntityData] = field(default_factory=list)
    ops: list[OpData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasRequest(Request[AlterClientQuotasResponse]):
    """Versions 0 to 1, API key 49."""

    API_KEY: ClassVar[int] = 49
    NAME: ClassVar[str] = "AlterClientQuotasRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("entries", AlterClientQuotasRequestEntryData, (0, 1), array=True),
        Field("validate_only", "bool", (0, 1)),
    )

    entries: list[AlterClientQuotasRequestEntryData] = field(default_factory=list)
    validate_only: bool = False

    @classmethod
    def response_type(cls) -> type[AlterClientQuotasResponse]:
        """Return AlterClientQuotasResponse."""
        return AlterClientQuotasResponse
