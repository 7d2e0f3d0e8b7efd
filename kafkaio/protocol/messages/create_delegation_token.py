"""CreateDelegationTokenRequest and CreateDelegationTokenResponse (API key 38), versions 1 to 3."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "CreatableRenewers",
    "CreateDelegationTokenRequest",
    "CreateDelegationTokenResponse",
]


@dataclass(slots=True, kw_only=True)
class CreateDelegationTokenResponse(Response):
    """Versions 1 to 3, API key 38."""

    API_KEY: ClassVar[int] = 38
    NAME: ClassVar[str] = "CreateDelegationTokenResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (1, 3)),
        Field("principal_type", "string", (1, 3)),
        Field("principal_name", "string", (1, 3)),
        Field("token_requester_principal_type", "string", (3, 3)),
        Field("token_requester_principal_name", "string", (3, 3)),
        Field("issue_timestamp_ms", "int64", (1, 3)),
        Field("expiry_timestamp_ms", "int64", (1, 3)),
        Field("max_timestamp_ms", "int64", (1, 3)),
        Field("token_id", "string", (1, 3)),
        Field("hmac", "bytes", (1, 3)),
        Field("throttle_time_ms", "int32", (1, 3)),
    )

    error_code: int = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp_ms: int = 0
    expiry_timestamp_ms: int = 0
    max_timestamp_ms: int = 0
    token_id: str = ""
    hmac: bytes = field(default=b"", repr=False)
    throttle_time_ms: int = 0


@dataclass(slots=True, kw_only=True)
class CreatableRenewers(Struct):
    """Part of CreateDelegationTokenRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", (1, 3)),
        Field("principal_name", "string", (1, 3)),
    )

    principal_type: str = ""
    principal_name: str = ""


@dataclass(slots=True, kw_only=True)
class CreateDelegationTokenRequest(Request[CreateDelegationTokenResponse]):
    """Versions 1 to 3, API key 38."""

    API_KEY: ClassVar[int] = 38
    NAME: ClassVar[str] = "CreateDelegationTokenRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("owner_principal_type", "string", (3, 3), nullable=(3, 3)),
        Field("owner_principal_name", "string", (3, 3), nullable=(3, 3)),
        Field("renewers", CreatableRenewers, (1, 3), array=True),
        Field("max_lifetime_ms", "int64", (1, 3)),
    )

    owner_principal_type: str | None = ""
    owner_principal_name: str | None = ""
    renewers: list[CreatableRenewers] = field(default_factory=list)
    max_lifetime_ms: int = 0

    @classmethod
    def response_type(cls) -> type[CreateDelegationTokenResponse]:
        """Return CreateDelegationTokenResponse."""
        return CreateDelegationTokenResponse
