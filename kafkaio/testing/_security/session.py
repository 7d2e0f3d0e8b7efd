"""The authentication of one connection to a SASL listener: which request may come next.

The order is Kafka's: ApiVersions once, SaslHandshake, SaslAuthenticate until the
mechanism is done. Anything else ends the connection without an answer. Afterwards the
session may end (KIP-368): the first request after its end, other than a handshake that
authenticates again, closes the connection without an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol

from kafkaio._public import public
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._security.mechanism import (
    Broken,
    Refused,
    SaslIdentity,
    ServerMechanismPort,
)

#: Sooner after the last one nobody can authenticate again, in seconds.
_AT_LEAST: Final = 1.0


@public("kafkaio.testing")
@dataclass(slots=True)
class Authentications:
    """Counts of authentications on the SASL listeners of a cluster.

    Attributes:
        first: authentications of new connections, by mechanism.
        again: authentications of living connections (KIP-368), by mechanism.
        failed: authentications that were refused or broken off by the broker, by
            mechanism; "" before there is one.
        killed: connections closed because a request came after the end of the session.
    """

    first: Counter[str] = field(default_factory=Counter)
    again: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    killed: int = 0


class Closed(Exception):
    """The connection has to be closed without an answer.

    Args:
        is_late: whether that comes as late as a refusal.
    """

    def __init__(self, *, is_late: bool = False) -> None:
        super().__init__("closed without an answer")
        self.is_late = is_late


class RealmPort(Protocol):
    """The cluster of a session, as the session sees it."""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that are on."""

    @property
    def authentications(self) -> Authentications:
        """Counts what happens."""

    def mechanism(self, name: str) -> ServerMechanismPort:
        """Begin an authentication."""

    def now(self) -> float:
        """Seconds on a monotonic clock."""

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch."""


@dataclass(frozen=True, slots=True)
class SaslStep:
    """The answer to one message of a client.

    Attributes:
        code: the error code; NONE if the authentication is over or goes on.
        text: the text of the error; empty without one.
        data: the answer of the mechanism.
        lifetime_ms: how long the session lasts; 0 for no limit, or if it goes on.
    """

    code: ErrorCode = ErrorCode.NONE
    text: str = ""
    data: bytes = field(default=b"", repr=False)
    lifetime_ms: int = 0


class _SaslState(Enum):
    NEW = "nothing has come but perhaps an ApiVersions that was refused"
    HANDSHAKE = "SaslHandshake has to come"
    AUTHENTICATE = "SaslAuthenticate has to come"
    BAD_MECHANISM = "authenticates again, by another mechanism"
    COMPLETE = "authenticated"
    FAILED = "refused"
    FAILED_AGAIN = "refused, but served until it is told so"


#: The requests that may come, by state; once authenticated, all may.
_ALLOWED: Final[Mapping[_SaslState, tuple[ApiKey, ...]]] = {
    _SaslState.NEW: (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE),
    _SaslState.HANDSHAKE: (ApiKey.SASL_HANDSHAKE,),
    _SaslState.AUTHENTICATE: (ApiKey.SASL_AUTHENTICATE,),
    _SaslState.BAD_MECHANISM: (),
    _SaslState.FAILED: (),
    _SaslState.FAILED_AGAIN: (),
}
_SASL: Final = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


class SaslSession:
    """The authentication of one connection.

    Args:
        realm: the cluster's users, mechanisms and clocks.
        reauth_ms: the longest session by a mechanism, 0 for no limit.

    Attributes:
        identity: who has authenticated; None before.
        is_raw: whether the next frames are tokens without a header, as after version 0
            of SaslHandshake.
    """

    def __init__(self, realm: RealmPort, reauth_ms: Callable[[str], int]) -> None:
        self.identity: SaslIdentity | None = None
        self.is_raw: bool = False
        self._realm = realm
        self._reauth_ms = reauth_ms
        self._state = _SaslState.NEW
        self._name = ""
        self._mechanism: ServerMechanismPort | None = None
        self._is_again = False
        self._ends_at: float | None = None
        self._last_again: float | None = None

    @property
    def is_served(self) -> bool:
        """Whether requests are answered although the client is refused."""
        return self._state is _SaslState.FAILED_AGAIN

    @property
    def is_complete(self) -> bool:
        """Whether the client has authenticated, and does not do so again."""
        return self._state is _SaslState.COMPLETE

    def admit(self, api: int) -> ErrorCode:
        """A request comes.

        Returns:
            NONE, or the error to answer before the connection is closed.

        Raises:
            Closed: not now; the connection has to be closed.
        """
        if self._state is _SaslState.COMPLETE:
            self._admit_authenticated(api)
            return ErrorCode.NONE
        if self._state is _SaslState.FAILED_AGAIN and api not in _SASL:
            return ErrorCode.NONE
        if api in _ALLOWED[self._state]:
            if api == ApiKey.API_VERSIONS:
                self._state = _SaslState.HANDSHAKE
            return ErrorCode.NONE
        state = self._state
        self._fail()
        # In the middle of an authentication Kafka still answers, with this error.
        if state is _SaslState.AUTHENTICATE:
            return ErrorCode.ILLEGAL_SASL_STATE
        raise Closed(is_late=state is _SaslState.BAD_MECHANISM)

    def _admit_authenticated(self, api: int) -> None:
        if self._ends_at is None:
            return
        now = self._realm.now()
        if api == ApiKey.SASL_HANDSHAKE and (
            self._last_again is None or now - self._last_again >= _AT_LEAST
        ):
            self._last_again = now
            self._is_again = True
            self._state = _SaslState.HANDSHAKE
        # Only with the next request: a connection that is idle stays open.
        elif now > self._ends_at:
            self._realm.authentications.killed += 1
            raise Closed

    def handshake(self, name: str, version: int) -> ErrorCode:
        """The client names a mechanism.

        Returns:
            NONE, or the error to answer.

        Raises:
            Closed: the connection has to be closed without an answer.
        """
        if self._state is _SaslState.COMPLETE:
            return ErrorCode.ILLEGAL_SASL_STATE
        if name not in self._realm.mechanisms:
            self._name = name
            self._fail()
            if self._is_again:
                raise Closed
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM
        # The answer is as usual; the next message ends the connection, as in Kafka.
        if self._is_again and name != self._name:
            self._state = _SaslState.BAD_MECHANISM
            return ErrorCode.NONE
        self._name = name
        self._mechanism = self._realm.mechanism(name)
        self._state = _SaslState.AUTHENTICATE
        # Version 0 is followed by tokens without Kafka's header (KIP-43).
        self.is_raw = version == 0
        return ErrorCode.NONE

    def authenticate(self, message: bytes, version: int) -> SaslStep:
        """The client says something to its mechanism.

        Args:
            message: what it says.
            version: the version of SaslAuthenticate; 0 without it.

        Raises:
            Closed: the connection has to be closed without an answer.
        """
        mechanism = self._mechanism
        if self._state is _SaslState.COMPLETE or mechanism is None:
            return SaslStep(
                ErrorCode.ILLEGAL_SASL_STATE,
                "SaslAuthenticate request received after successful authentication",
            )
        try:
            data = mechanism.evaluate(message)
            if mechanism.identity is None:
                return SaslStep(data=data)
            self._check_unchanged(mechanism.identity)
        except Refused as refusal:
            self._fail()
            if self._is_again:
                self._state = _SaslState.FAILED_AGAIN
            text = refusal.text or (
                f"Authentication failed during {self._what} due to invalid credentials"
                f" with SASL mechanism {self._name}"
            )
            return SaslStep(ErrorCode.SASL_AUTHENTICATION_FAILED, text)
        except Broken:
            self._fail()
            raise Closed from None
        return SaslStep(
            data=data, lifetime_ms=self._complete(mechanism.identity, version)
        )

    @property
    def _what(self) -> str:
        return "re-authentication" if self._is_again else "authentication"

    def _check_unchanged(self, identity: SaslIdentity) -> None:
        before = self.identity
        # A living connection belongs to one principal, with whom its ACLs and quotas
        # were decided.
        if before is not None and before.name != identity.name:
            raise Refused(
                "Cannot change principals during re-authentication from"
                f" User.{before.name}: User.{identity.name}"
            )

    def _complete(self, identity: SaslIdentity, version: int) -> int:
        """The client is who it says; return how long the session lasts."""
        counts = self._realm.authentications
        (counts.again if self._is_again else counts.first)[self._name] += 1
        self.identity = identity
        self.is_raw = False
        self._state = _SaslState.COMPLETE
        self._mechanism = None
        limits = []
        if identity.expires_ms is not None:
            limits.append(identity.expires_ms - self._realm.wall_ms())
        if self._reauth_ms(self._name) > 0:
            limits.append(self._reauth_ms(self._name))
        if not limits:
            self._ends_at = None
            return 0
        # The sooner of the end of the token and the limit of the broker.
        lifetime_ms = max(0, min(limits))
        self._ends_at = self._realm.now() + lifetime_ms / 1000
        return lifetime_ms if version > 0 else 0

    def _fail(self) -> None:
        self._state = _SaslState.FAILED
        self._mechanism = None
        self._realm.authentications.failed[self._name] += 1
