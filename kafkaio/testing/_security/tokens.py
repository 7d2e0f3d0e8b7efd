"""Delegation tokens (KIP-48): made, renewed, expired, and used by SCRAM."""

from __future__ import annotations

import hmac
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kafkaio._runtime.clock import random_uuid
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._security.credentials import StoredScramCredential
from kafkaio.testing._security.mechanism import SaslIdentity

#: The type and the name of a principal.
Principal: TypeAlias = tuple[str, str]

_ITERATIONS: Final = 4096


class TokenRefused(Exception):
    """A request about a token is refused.

    Args:
        code: the error code.
    """

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


@dataclass(slots=True)
class StoredToken:
    """One token. Times are in milliseconds since the Unix epoch.

    Attributes:
        token_id: its id, the user name for SCRAM.
        hmac: its secret; in base64, the password for SCRAM.
        owner: the principal of a client that logs in with it.
        requester: who made it.
        renewers: who else may renew and expire it.
        issued: when it was made.
        expires: when it ends, unless it is renewed.
        latest: when it ends in any case.
    """

    token_id: str
    hmac: bytes = field(repr=False)
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued: int
    expires: int
    latest: int
    credentials: dict[str, StoredScramCredential] = field(
        default_factory=dict, repr=False
    )

    def belongs_to(self, principal: Principal) -> bool:
        """Whether a principal is its owner or a renewer."""
        return principal == self.owner or principal in self.renewers


class DelegationTokens:
    """The tokens of a cluster.

    Args:
        max_life_ms: how long a token can live.
        expiry_ms: how long it lives if it is not renewed.
        now_ms: returns milliseconds since the Unix epoch.
    """

    def __init__(
        self, max_life_ms: int, expiry_ms: int, now_ms: Callable[[], int]
    ) -> None:
        self._max_life_ms = max_life_ms
        self._expiry_ms = expiry_ms
        self._now_ms = now_ms
        # Kafka has a config for it (delegation.token.secret.key), because all its
        # brokers must agree.
        self._key = random_uuid().bytes
        self._tokens: dict[str, StoredToken] = {}

    def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: Collection[Principal],
        max_life_ms: int,
    ) -> StoredToken:
        """Make a token; a maximum life of 0 or less stands for the longest possible."""
        now = self._now_ms()
        life = self._max_life_ms
        if max_life_ms > 0:
            life = min(life, max_life_ms)
        token_id = urlsafe_b64encode(random_uuid().bytes).decode().rstrip("=")
        token = StoredToken(
            token_id,
            hmac.digest(self._key, token_id.encode(), "sha512"),
            owner,
            requester,
            tuple(renewers),
            now,
            min(now + life, now + self._expiry_ms),
            now + life,
        )
        self._tokens[token_id] = token
        return token

    def renew(self, secret: bytes, by: Principal, period_ms: int) -> int:
        """Let a token live on; return when it ends now.

        Raises:
            TokenRefused: the token does not exist, has expired, or is another's.
        """
        token = self._find(secret)
        if self._has_expired(token):
            raise TokenRefused(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        self._check_owner(token, by)
        period = min(period_ms, self._expiry_ms) if period_ms > 0 else self._expiry_ms
        token.expires = min(token.latest, self._now_ms() + period)
        return token.expires

    def expire(self, secret: bytes, by: Principal, period_ms: int) -> int:
        """Set when a token ends, at once if the period is negative; return that time.

        Raises:
            TokenRefused: the token does not exist, has expired, or is another's.
        """
        token = self._find(secret)
        self._check_owner(token, by)
        now = self._now_ms()
        # Before the time is checked: a token that has expired can be deleted all the
        # same.
        if period_ms < 0:
            del self._tokens[token.token_id]
            return now
        if self._has_expired(token):
            raise TokenRefused(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        token.expires = min(token.latest, now + period_ms)
        return token.expires

    def of(self, owners: Collection[Principal] | None) -> list[StoredToken]:
        """The tokens that belong to any of these principals; all of them for None."""
        self._forget_expired()
        return [
            token
            for token in self._tokens.values()
            if owners is None or any(token.belongs_to(owner) for owner in owners)
        ]

    def credential(
        self, token_id: str, mechanism: str
    ) -> tuple[StoredScramCredential, SaslIdentity] | None:
        """The credential of a token for a SCRAM mechanism, and its identity."""
        token = self._tokens.get(token_id)
        if token is None or self._has_expired(token):
            return None
        credential = token.credentials.get(mechanism)
        if credential is None:
            # Derived on first use: hashing a password takes thousands of rounds.
            password = b64encode(token.hmac).decode()
            credential = StoredScramCredential.of_password(
                mechanism, password, _ITERATIONS
            )
            token.credentials[mechanism] = credential
        return credential, SaslIdentity(token.owner[1], token.expires, is_by_token=True)

    def _find(self, secret: bytes) -> StoredToken:
        for token in self._tokens.values():
            # In constant time, as secrets are compared.
            if hmac.compare_digest(token.hmac, secret):
                return token
        raise TokenRefused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)

    def _has_expired(self, token: StoredToken) -> bool:
        return min(token.expires, token.latest) < self._now_ms()

    def _forget_expired(self) -> None:
        gone = [key for key, token in self._tokens.items() if self._has_expired(token)]
        for token_id in gone:
            del self._tokens[token_id]

    @staticmethod
    def _check_owner(token: StoredToken, by: Principal) -> None:
        if not token.belongs_to(by):
            raise TokenRefused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
