"""DescribeUserScramCredentialsRequest and DescribeUserScramCredentialsResponse (API key 50), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "CredentialInfo",
    "DescribeUserScramCredentialsRequest",
    "DescribeUserScramCredentialsResponse",
    "DescribeUserScramCredentialsResult",
    "UserName",
]


@dataclass(slots=True, kw_only=True)
class CredentialInfo(Struct):
    """Part of DescribeUserScramCredentialsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("mechanism", "int8", (0, 0)),
        Field("iterations", "int32", (0, 0)),
    )

    mechanism: int = 0
    iterations: int = 0


@dataclass(slots=True, kw_only=True)
class DescribeUserScramCredentialsResult(Struct):
    """Part of DescribeUserScramCredentialsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("user", "string", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0)),
        Field("credential_infos", CredentialInfo, (0, 0), array=True),
    )

    user: str = ""
    error_code: int = 0
    error_message: str | None = ""
    credential_infos: list[CredentialInfo] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeUserScramCredentialsResponse(Response):
    """Versions 0 to 0, API key 50."""

    API_KEY: ClassVar[int] = 50
    NAME: ClassVar[str] = "DescribeUserScramCredentialsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0)),
        Field("results", DescribeUserScramCredentialsResult, (0, 0), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: list[DescribeUserScramCredentialsResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class UserName(Struct):
    """Part of DescribeUserScramCredentialsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("name", "string", (0, 0)),)

    name: str = ""


@dataclass(slots=True, kw_only=True)
class DescribeUserScramCredentialsRequest(
    Request[DescribeUserScramCredentialsResponse]
):
    """Versions 0 to 0, API key 50."""

    API_KEY: ClassVar[int] = 50
    NAME: ClassVar[str] = "DescribeUserScramCredentialsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("users", UserName, (0, 0), array=True, nullable=(0, 0)),
    )

    users: list[UserName] | None = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[DescribeUserScramCredentialsResponse]:
        """Return DescribeUserScramCredentialsResponse."""
        return DescribeUserScramCredentialsResponse
