"""AlterUserScramCredentialsRequest and AlterUserScramCredentialsResponse (API key 51), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "AlterUserScramCredentialsRequest",
    "AlterUserScramCredentialsResponse",
    "AlterUserScramCredentialsResult",
    "ScramCredentialDeletion",
    "ScramCredentialUpsertion",
]


@dataclass(slots=True, kw_only=True)
class AlterUserScramCredentialsResult(Struct):
    """Part of AlterUserScramCredentialsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("user", "string", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0)),
    )

    user: str = ""
    error_code: int = 0
    error_message: str | None = ""


@dataclass(slots=True, kw_only=True)
class AlterUserScramCredentialsResponse(Response):
    """Versions 0 to 0, API key 51."""

    API_KEY: ClassVar[int] = 51
    NAME: ClassVar[str] = "AlterUserScramCredentialsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("results", AlterUserScramCredentialsResult, (0, 0), array=True),
    )

    throttle_time_ms: int = 0
    results: list[AlterUserScramCredentialsResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ScramCredentialDeletion(Struct):
    """Part of AlterUserScramCredentialsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("mechanism", "int8", (0, 0)),
    )

    name: str = ""
    mechanism: int = 0


@dataclass(slots=True, kw_only=True)
class ScramCredentialUpsertion(Struct):
    """Part of AlterUserScramCredentialsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("mechanism", "int8", (0, 0)),
        Field("iterations", "int32", (0, 0)),
        Field("salt", "bytes", (0, 0)),
        Field("salted_password", "bytes", (0, 0)),
    )

    name: str = ""
    mechanism: int = 0
    iterations: int = 0
    salt: bytes = field(default=b"", repr=False)
    salted_password: bytes = field(default=b"", repr=False)


@dataclass(slots=True, kw_only=True)
class AlterUserScramCredentialsRequest(Request[AlterUserScramCredentialsResponse]):
    """Versions 0 to 0, API key 51."""

    API_KEY: ClassVar[int] = 51
    NAME: ClassVar[str] = "AlterUserScramCredentialsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("deletions", ScramCredentialDeletion, (0, 0), array=True),
        Field("upsertions", ScramCredentialUpsertion, (0, 0), array=True),
    )

    deletions: list[ScramCredentialDeletion] = field(default_factory=list)
    upsertions: list[ScramCredentialUpsertion] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[AlterUserScramCredentialsResponse]:
        """Return AlterUserScramCredentialsResponse."""
        return AlterUserScramCredentialsResponse
