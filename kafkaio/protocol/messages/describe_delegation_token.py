"""DescribeDelegationTokenRequest and DescribeDelegationTokenResponse (API key 41), versions 1 to 3."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "DescribeDelegationTokenOwner",
    "DescribeDelegationTokenRequest",
    "DescribeDelegationTokenResponse",
    "DescribedDelegationToken",
    "DescribedDelegationTokenRenewer",
]


@dataclass(slots=True, kw_only=True)
class DescribedDelegationTokenRenewer(Struct):
    """Part of DescribeDelegationTokenResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", (1, 3)),
        Field("principal_name", "string", (1, 3)),
    )

    principal_type: str = ""
    principal_name: str = ""


@dataclass(slots=True, kw_only=True)
class DescribedDelegationToken(Struct):
    """Part of DescribeDelegationTokenResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", (1, 3)),
        Field("principal_name", "string", (1, 3)),
        Field("token_requester_principal_type", "string", (3, 3)),
        Field("token_requester_principal_name", "string", (3, 3)),
        Field("issue_timestamp", "int64", (1, 3)),
        Field("expiry_timestamp", "int64", (1, 3)),
        Field("max_timestamp", "int64", (1, 3)),
        Field("token_id", "string", (1, 3)),
        Field("hmac", "bytes", (1, 3)),
        Field("renewers", DescribedDelegationTokenRenewer, (1, 3), array=True),
    )

    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp: int = 0
    expiry_timestamp: int = 0
    max_timestamp: int = 0
    token_id: str = ""
    hmac: bytes = field(default=b"", repr=False)
    renewers: list[DescribedDelegationTokenRenewer] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeDelegationTokenResponse(Response):
    """Versions 1 to 3, API key 41."""

    API_KEY: ClassVar[int] = 41
    NAME: ClassVar[str] = "DescribeDelegationTokenResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (1, 3)),
        Field("tokens", DescribedDelegationToken, (1, 3), array=True),
        Field("throttle_time_ms", "int32", (1, 3)),
    )

    error_code: int = 0
    tokens: list[DescribedDelegationToken] = field(default_factory=list)
    throttle_time_ms: int = 0


@dataclass(slots=True, kw_only=True)
class DescribeDelegationTokenOwner(Struct):
    """Part of DescribeDelegationTokenRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", (1, 3)),
        Field("principal_name", "string", (1, 3)),
    )

    principal_type: str = ""
    principal_name: str = ""


@dataclass(slots=True, kw_only=True)
class DescribeDelegationTokenRequest(Request[DescribeDelegationTokenResponse]):
    """Versions 1 to 3, API key 41."""

    API_KEY: ClassVar[int] = 41
    NAME: ClassVar[str] = "DescribeDelegationTokenRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field(
            "owners", DescribeDelegationTokenOwner, (1, 3), array=True, nullable=(1, 3)
        ),
    )

    owners: list[DescribeDelegationTokenOwner] | None = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[DescribeDelegationTokenResponse]:
        """Return DescribeDelegationTokenResponse."""
        return DescribeDelegationTokenResponse
