"""OAUTHBEARER (RFC 7628, KIP-255), the server's side, and tokens without a signature.

A token that is refused is answered by JSON with the status, and the authentication
fails once the client has answered that, in turn, with a byte of 1.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from kafkaio._public import public
from kafkaio._runtime.clock import wall_ms
from kafkaio.testing._security.mechanism import Refused, SaslIdentity

_INITIAL: Final = re.compile(
    r"n,(?:a=(?P<authorized>(?:[^=,\0]|=2C|=3D)+))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_BEARER: Final = re.compile(r"bearer +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.IGNORECASE)
#: The year 10000: the latest end of a token, in seconds since the Unix epoch.
_LATEST: Final = 253_402_300_800
_JWT: Final = re.compile(r"(?P<header>[-\w]+=*)\.(?P<claims>[-\w]+=*)\.")


@public("kafkaio.testing")
@dataclass(frozen=True, slots=True)
class TokenClaims:
    """The claims of a token that was verified.

    Attributes:
        principal: the name of the user.
        expires_ms: when the token ends, in milliseconds since the Unix epoch.
    """

    principal: str
    expires_ms: int


#: Verifies a token; raises ValueError if it is refused.
VerifyToken: TypeAlias = Callable[[str], TokenClaims]


def unsecured(token: str) -> TokenClaims:
    """Take a token that nobody signed: a JWT with the algorithm ``none`` (RFC 7515).

    Raises:
        ValueError: it is not such a token, has no ``sub`` or ``exp``, or has expired.
    """
    found = _JWT.fullmatch(token)
    if found is None:
        raise ValueError("not a JWT without a signature")
    header, claims = (_decoded(found[part]) for part in ("header", "claims"))
    if header.get("alg") != "none":
        raise ValueError(f"algorithm {header.get('alg')!r}: must be 'none'")
    principal, expires = claims.get("sub"), claims.get("exp")
    if not isinstance(principal, str) or not principal:
        raise ValueError("no principal in claim 'sub'")
    if not isinstance(expires, int | float):
        raise ValueError("no time in claim 'exp'")  # noqa: TRY004  (bad input)
    # Kafka, too, takes the longest time that it knows for one beyond it.
    return TokenClaims(principal, round(max(0, min(expires, _LATEST)) * 1000))


def _decoded(part: str) -> dict[str, object]:
    # JWTs leave the padding out.
    data = urlsafe_b64decode(part + "=" * (-len(part) % 4))
    try:
        value = json.loads(data, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("a part of the JWT has too many levels") from None
    if not isinstance(value, dict):
        raise ValueError("a part of the JWT is not an object")  # noqa: TRY004  (bad input)
    return value


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


class OAuthServer:
    """One authentication by OAUTHBEARER; a ServerMechanism.

    Args:
        verify: verifies a token.
        now_ms: returns milliseconds since the Unix epoch.
        skew_ms: how long a token is still taken after its end.
    """

    def __init__(
        self,
        verify: VerifyToken,
        now_ms: Callable[[], int] = wall_ms,
        skew_ms: int = 0,
    ) -> None:
        self.identity: SaslIdentity | None = None
        self._verify = verify
        self._now_ms = now_ms
        self._skew_ms = skew_ms
        self._failure = ""

    def evaluate(self, message: bytes) -> bytes:
        """See ServerMechanism."""
        if self._failure:
            # The client's answer makes no difference.
            raise Refused(self._failure)
        found = _INITIAL.fullmatch(message.decode("latin-1"))
        if found is None:
            raise Refused
        pairs = dict(
            pair.split("=", 1) for pair in found["pairs"].split("\x01") if pair
        )
        bearer = _BEARER.fullmatch(pairs.get("auth", ""))
        if bearer is None:
            raise Refused
        claims = self._verified(bearer["token"])
        if claims is None:
            # By RFC 7628 the error is told in a challenge, which the client answers
            # before the authentication fails.
            self._failure = '{"status":"invalid_token"}'
            return self._failure.encode()
        # The name of the token counts; a client cannot act as another.
        if found["authorized"] not in {None, claims.principal}:
            raise Refused(
                "Authentication failed: Client requested an authorization id"
                f" ({found['authorized']}) that is different from the token's principal"
                f" name ({claims.principal})"
            )
        self.identity = SaslIdentity(claims.principal, claims.expires_ms)
        return b""

    def _verified(self, token: str) -> TokenClaims | None:
        try:
            claims = self._verify(token)
        except ValueError:
            return None
        now_ms = self._now_ms() - self._skew_ms
        return claims if claims.expires_ms > now_ms else None
