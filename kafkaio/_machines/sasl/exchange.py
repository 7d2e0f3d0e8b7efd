"""One authentication by SASL in Kafka's requests (KIP-43, KIP-152, KIP-368).

SaslHandshake names the mechanism. SaslAuthenticate then carries one message of the
mechanism each, and the answer is the broker's message. The last answer may limit the
session.

One authentication goes through these stages::

    begin() --> PREPARING --> HANDSHAKE --> AUTHENTICATE --> COMPLETE
                                            |          ^
                                            +----------+  for each further message

The first message is computed before SaslHandshake is sent, so that a pipelined exchange
can send both in one write: nothing comes between them, and no answer is awaited.
A message that takes long to compute is a `Work`, which the caller performs; until it
calls `SaslExchange.worked`, nothing of the exchange is in flight but what was sent
before.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from kafkaio._machines.api_versions import ApiVersions
from kafkaio._machines.bounds import seconds
from kafkaio._machines.sasl.mechanism import MechanismPort, Outcome, Work
from kafkaio._named_tuple import NamedTuple
from kafkaio.errors import AuthenticationError, InternalError, UnsupportedVersion
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._headers import decode_response
from kafkaio.protocol._message import Buffer, Request, Response
from kafkaio.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkaio.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

#: The most characters of a broker's text that an error repeats.
_LONGEST_TEXT: Final = 1_000
#: The most mechanisms of a broker that an error names.
_MOST_NAMES: Final = 20
#: SaslHandshake 0 is followed by bytes without Kafka's headers, and so without a reason
#: for a refusal. Brokers know version 1 since 1.0.
_LOWEST_HANDSHAKE: Final = 1


class SaslRequest(NamedTuple):
    """One request of an exchange, and the version to encode it in."""

    request: Request[Response]
    version: int


class _ExchangeStage(Enum):
    PREPARING = auto()  # the mechanism computes its first message
    HANDSHAKE = auto()  # SaslHandshake has no answer yet
    AUTHENTICATE = auto()  # a message has no answer yet, or the next one is computed
    COMPLETE = auto()  # both sides are satisfied


class SaslExchange:
    """The requests of one authentication on a connection, and their answers.

    `begin`, `receive` and `worked` return the requests to send next, in one write. If
    they return none, either an answer is due, or ``work`` is to be performed, or the
    exchange is complete.

    Args:
        mechanism: computes the messages; used for this exchange only.
        versions: the broker's announcement.
        peer: the name of the broker in error messages.
        address: ``host:port`` of the broker, for `AuthenticationError`.
        is_pipelined: whether the first message is sent together with SaslHandshake.
            Only a mechanism that is ``is_single`` can be pipelined.
    """

    __slots__ = (
        "_address",
        "_first",
        "_is_pipelined",
        "_mechanism",
        "_peer",
        "_stage",
        "_versions",
        "lifetime",
        "sent_bytes",
        "work",
    )

    def __init__(
        self,
        mechanism: MechanismPort,
        versions: ApiVersions,
        *,
        peer: str,
        address: str,
        is_pipelined: bool,
    ) -> None:
        self._mechanism = mechanism
        self._versions = versions
        self._peer = peer
        self._address = address
        self._is_pipelined = is_pipelined and mechanism.is_single
        self._stage = _ExchangeStage.PREPARING
        # The first message, until it is sent.
        self._first = b""
        #: The message to compute in a thread before the exchange can go on.
        self.work: Work | None = None
        #: Seconds that the session lasts, by the last answer; 0 for no limit.
        self.lifetime: float = 0.0
        #: The size of the last message sent; 0 before the first.
        self.sent_bytes: int = 0

    @property
    def mechanism(self) -> str:
        """The name of the mechanism."""
        return self._mechanism.name

    @property
    def is_complete(self) -> bool:
        """Whether both sides are satisfied."""
        return self._stage is _ExchangeStage.COMPLETE

    @property
    def is_pipelined(self) -> bool:
        """Whether other requests may be sent right behind its first ones."""
        return self._is_pipelined

    @property
    def step(self) -> str:
        """The current step, for error messages."""
        if self._stage is _ExchangeStage.PREPARING:
            return "prepare SASL"
        is_handshake = self._stage is _ExchangeStage.HANDSHAKE
        return "SaslHandshake" if is_handshake else "SaslAuthenticate"

    # ---- what happens ----------------------------------------------------------------

    def begin(self) -> Sequence[SaslRequest]:
        """Ask the mechanism for its first message.

        Raises:
            AuthenticationError: the credentials cannot be used.
            UnsupportedVersion: the broker does not know SASL in these requests.
        """
        try:
            outcome = self._mechanism.begin()
        except AuthenticationError as error:
            raise self._named(error) from error
        return self._go_on(outcome)

    def worked(self, message: bytes | None) -> Sequence[SaslRequest]:
        """Take the result of ``work``.

        Raises:
            UnsupportedVersion: the broker does not know SASL in these requests.
        """
        self.work = None
        return self._go_on(message)

    def failed(self, error: AuthenticationError) -> AuthenticationError:
        """Name mechanism, broker and step in an error that ``work`` has raised."""
        return self._named(error)

    def receive(self, frame: Buffer) -> Sequence[SaslRequest]:
        """Take the answer to the oldest request of the exchange.

        Raises:
            AuthenticationError: the broker refuses the client, or did not prove who it
                is.
            ProtocolError: the answer is malformed.
        """
        if self._stage is _ExchangeStage.HANDSHAKE:
            return self._take_handshake(frame)
        return self._take_challenge(frame)

    # ---- SaslHandshake ---------------------------------------------------------------

    def _go_on(self, outcome: Outcome) -> Sequence[SaslRequest]:
        """Take the next step of the mechanism."""
        if callable(outcome):
            self.work = outcome
            return ()
        if self._stage is _ExchangeStage.AUTHENTICATE:
            if outcome is not None:
                return (self._authenticate(outcome),)
            self._stage = _ExchangeStage.COMPLETE
            return ()
        if outcome is None:
            raise InternalError(f"{self.mechanism} has no first message")
        # Both are chosen first: nothing is sent to a broker that cannot go on.
        handshake = SaslRequest(
            SaslHandshakeRequest(mechanism=self.mechanism), self._handshake_version()
        )
        self._versions.usable(SaslAuthenticateRequest)
        self._stage = _ExchangeStage.HANDSHAKE
        if self._is_pipelined:
            return handshake, self._authenticate(outcome)
        self._first = outcome
        return (handshake,)

    def _handshake_version(self) -> int:
        version = self._versions.usable(SaslHandshakeRequest)
        if version < _LOWEST_HANDSHAKE:
            raise UnsupportedVersion(
                f"{self._peer}: the broker knows SaslHandshake only in version "
                f"{version}; Kafka since 1.0 knows version {_LOWEST_HANDSHAKE}"
            )
        return version

    def _take_handshake(self, frame: Buffer) -> Sequence[SaslRequest]:
        version = self._handshake_version()
        answer = decode_response(SaslHandshakeResponse, version, frame)
        if answer.error_code:
            raise self._refused(self._handshake_refusal(answer))
        self._stage = _ExchangeStage.AUTHENTICATE
        if self._is_pipelined:
            return ()  # its answer is the next to come
        first, self._first = self._first, b""
        return (self._authenticate(first),)

    def _handshake_refusal(self, answer: SaslHandshakeResponse) -> str:
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            enabled = ", ".join(sorted(answer.mechanisms)[:_MOST_NAMES]) or "none"
            return (
                f"the listener does not enable {self.mechanism}, but "
                f"{_printable(enabled)} (sasl_mechanism)"
            )
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            return (
                "the listener does not take SASL requests now; if it has no SASL at "
                "all, security_protocol is to be PLAINTEXT or SSL"
            )
        return f"SaslHandshake was refused with {_code(answer.error_code)}"

    # ---- SaslAuthenticate ------------------------------------------------------------

    def _authenticate(self, message: bytes) -> SaslRequest:
        self.sent_bytes = len(message)
        version = self._versions.usable(SaslAuthenticateRequest)
        return SaslRequest(SaslAuthenticateRequest(auth_bytes=message), version)

    def _take_challenge(self, frame: Buffer) -> Sequence[SaslRequest]:
        version = self._versions.usable(SaslAuthenticateRequest)
        answer = decode_response(SaslAuthenticateResponse, version, frame)
        if answer.error_code:
            words = _printable(answer.error_message or "")
            if answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED:
                raise self._refused(words or "the broker refuses the credentials")
            raise self._refused(f"{_code(answer.error_code)} {words}".rstrip())
        self.lifetime = seconds("session_lifetime_ms", answer.session_lifetime_ms)
        try:
            outcome = self._mechanism.receive(answer.auth_bytes)
        except AuthenticationError as error:
            raise self._named(error) from error
        if self._is_pipelined and outcome is not None:
            # Other requests were written behind: a further message would come after
            # them, where the broker does not expect it.
            raise self._refused(_printable(bytes(answer.auth_bytes).decode("latin-1")))
        return self._go_on(outcome)

    # ---- errors ----------------------------------------------------------------------

    def _refused(self, reason: str) -> AuthenticationError:
        """The error for a refusal in the broker's words, or about its answer."""
        return AuthenticationError(
            f"{self._peer}: {self.step} ({self.mechanism}): {reason}",
            mechanism=self.mechanism,
            broker=self._address,
            step=self.step,
            reason=reason,
        )

    def _named(self, error: AuthenticationError) -> AuthenticationError:
        """The error of a mechanism, with what only the exchange knows."""
        return AuthenticationError(
            f"{self._peer}: {self.step} ({self.mechanism}): {_printable(str(error))}",
            mechanism=self.mechanism,
            broker=self._address,
            step=error.step or self.step,
            reason=_printable(error.reason),
        )


def _printable(text: str) -> str:
    """A broker's text: bounded, and without characters that control a terminal."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return shown if len(shown) <= _LONGEST_TEXT else f"{shown[:_LONGEST_TEXT]}..."


def _code(number: int) -> str:
    return f"{ErrorCode(number).name} (code {number})"
