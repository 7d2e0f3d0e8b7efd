"""RenewDelegationTokenRequest and RenewDelegationTokenResponse (API key 39), versions 1 to 2."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response

__all__ = [
    "RenewDelegationTokenRequest",
    "RenewDelegationTokenResponse",
]


@dataclass(slots=True, kw_only=True)
class RenewDelegationTokenResponse(Response):
    """Versions 1 to 2, API key 39."""

    API_KEY: ClassVar[int] = 39
    NAME: ClassVar[str] = "RenewDelegationTokenResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (1, 2)),
        Field("expiry_timestamp_ms", "int64", (1, 2)),
        Field("throttle_time_ms", "int32", (1, 2)),
    )

    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0


@dataclass(slots=True, kw_only=True)
class RenewDelegationTokenRequest(Request[RenewDelegationTokenResponse]):
    """Versions 1 to 2, API key 39."""

    API_KEY: ClassVar[int] = 39
    NAME: ClassVar[str] = "RenewDelegationTokenRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("hmac", "bytes", (1, 2)),
        Field("renew_period_ms", "int64", (1, 2)),
    )

    hmac: bytes = field(default=b"", repr=False)
    renew_period_ms: int = 0

    @classmethod
    def response_type(cls) -> type[RenewDelegationTokenResponse]:
        """Return RenewDelegationTokenResponse."""
        return RenewDelegationTokenResponse
