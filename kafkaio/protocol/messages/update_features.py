"""UpdateFeaturesRequest and UpdateFeaturesResponse (API key 57), versions 0 to 2."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "FeatureUpdateKey",
    "UpdatableFeatureResult",
    "UpdateFeaturesRequest",
    "UpdateFeaturesResponse",
]


@dataclass(slots=True, kw_only=True)
class UpdatableFeatureResult(Struct):
    """Part of UpdateFeaturesResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("feature", "string", (0, 2)),
        Field("error_code", "int16", (0, 2)),
        Field("error_message", "string", (0, 2), nullable=(0, 2)),
    )

    feature: str = ""
    error_code: int = 0
    error_message: str | None = ""


@dataclass(slots=True, kw_only=True)
class UpdateFeaturesResponse(Response):
    """Versions 0 to 2, API key 57."""

    API_KEY: ClassVar[int] = 57
    NAME: ClassVar[str] = "UpdateFeaturesResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 2)),
        Field("error_code", "int16", (0, 2)),
        Field("error_message", "string", (0, 2), nullable=(0, 2)),
        Field("results", UpdatableFeatureResult, (0, 1), array=True, ignorable=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: list[UpdatableFeatureResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class FeatureUpdateKey(Struct):
    """Part of UpdateFeaturesRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("feature", "string", (0, 2)),
        Field("max_version_level", "int16", (0, 2)),
        Field("allow_downgrade", "bool", (0, 0)),
        Field("upgrade_type", "int8", (1, 2), default=1),
    )

    feature: str = ""
    max_version_level: int = 0
    allow_downgrade: bool = False
    upgrade_type: int = 1


@dataclass(slots=True, kw_only=True)
class UpdateFeaturesRequest(Request[UpdateFeaturesResponse]):
    """Versions 0 to 2, API key 57."""

    API_KEY: ClassVar[int] = 57
    NAME: ClassVar[str] = "UpdateFeaturesRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("timeout_ms", "int32", (0, 2), default=60000),
        Field("feature_updates", FeatureUpdateKey, (0, 2), array=True),
        Field("validate_only", "bool", (1, 2)),
    )

    timeout_ms: int = 60000
    feature_updates: list[FeatureUpdateKey] = field(default_factory=list)
    validate_only: bool = False

    @classmethod
    def response_type(cls) -> type[UpdateFeaturesResponse]:
        """Return UpdateFeaturesResponse."""
        return UpdateFeaturesResponse
