"""GSSAPI: Kerberos tickets (RFC 4752, KIP-12).

Kerberos itself is behind the port `SecurityContext`. Here are the messages around it::

    client  tokens of the context  <-->  tokens of the broker, until it is complete
    broker  wrap(the security layers that it offers)
    client  wrap(no security layer)
    broker  (nothing)

A security layer would sign or encrypt the rest of the stream. Kafka leaves that to TLS.
The identity to act as stays empty, so it is that of the ticket.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, Protocol

from kafkaio._machines.sasl.mechanism import Outcome
from kafkaio.errors import AuthenticationError, ProtocolError

#: The most messages of a broker; Kerberos needs three.
_MOST_ROUNDS: Final = 10
#: The most bytes of one; tickets with many groups have some 50 KiB.
_LONGEST_MESSAGE: Final = 65_536
#: The bit of "no security layer", and the length of an offer: bits, and a size.
_NO_LAYER: Final = 0x01
_OFFER_BYTES: Final = 4
#: "No security layer", and no bytes that it would take.
_CHOICE: Final = bytes([_NO_LAYER, 0, 0, 0])


class SecurityContext(Protocol):
    """The client's side of a GSS-API context (RFC 2743) with mutual authentication."""

    @property
    def is_complete(self) -> bool:
        """Whether both sides have proven who they are."""

    def step(self, token: bytes | None) -> bytes:
        """Take the broker's token, None at first; return the next one.

        It may ask a Kerberos server, and so take seconds.

        Raises:
            AuthenticationError: no ticket can be had, or the broker's token is wrong.
        """

    def wrap(self, message: bytes) -> bytes:
        """Sign a message; does not block."""

    def unwrap(self, message: bytes) -> bytes:
        """Check the signature of the broker's message, and return what it signs.

        Raises:
            AuthenticationError: the signature is wrong.
        """


class _ContextStage(Enum):
    CONTEXT = auto()  # the context has tokens to exchange
    OFFER = auto()  # the broker has to offer security layers
    CHOSEN = auto()  # none was chosen; the broker has to agree


class Gssapi:
    """One authentication by Kerberos.

    Args:
        context: a new context with the broker.
    """

    name: Final = "GSSAPI"
    is_single: Final = False
    __slots__ = ("_context", "_rounds", "_stage")

    def __init__(self, context: SecurityContext) -> None:
        self._context = context
        self._stage = _ContextStage.CONTEXT
        self._rounds = 0

    def __repr__(self) -> str:
        return f"<Gssapi {self._stage.name}>"

    def begin(self) -> Outcome:
        """See `MechanismPort`: a `Work`, since the ticket may have to be fetched."""
        return lambda: self._step(None)

    def receive(self, challenge: bytes) -> Outcome:
        """See `MechanismPort`."""
        self._rounds += 1
        if self._rounds > _MOST_ROUNDS:
            raise ProtocolError(f"GSSAPI takes more than {_MOST_ROUNDS} messages")
        if len(challenge) > _LONGEST_MESSAGE:
            raise ProtocolError(f"a GSSAPI message of {len(challenge)} bytes")
        message = bytes(challenge)
        if self._stage is _ContextStage.CONTEXT:
            return lambda: self._step(message)
        if self._stage is _ContextStage.OFFER:
            return self._choose(message)
        if message:
            raise ProtocolError("the broker goes on after GSSAPI is over")
        return None

    def _step(self, token: bytes | None) -> bytes:
        answer = self._context.step(token)
        if self._context.is_complete:
            self._stage = _ContextStage.OFFER
        elif not answer:
            raise ProtocolError("GSSAPI is not over, and has nothing to send")
        # The last token may be empty. It is sent all the same: the offer answers it.
        return answer

    def _choose(self, message: bytes) -> bytes:
        offer = self._context.unwrap(message)
        if len(offer) != _OFFER_BYTES:
            raise ProtocolError(f"an offer of security layers of {len(offer)} bytes")
        if not offer[0] & _NO_LAYER:
            raise AuthenticationError(
                "the broker demands a security layer of GSSAPI, which Kafka does not "
                "have: protect the connection with security_protocol='SASL_SSL'"
            )
        self._stage = _ContextStage.CHOSEN
        return self._context.wrap(_CHOICE)
