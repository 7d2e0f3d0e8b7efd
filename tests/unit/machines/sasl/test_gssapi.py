"""GSSAPI over a context that a test scripts: the rounds, the layers, the limits."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, strategies as st

from kafkaio._machines.sasl.gssapi import Gssapi
from kafkaio._machines.sasl.mechanism import Outcome
from kafkaio.errors import AuthenticationError, ProtocolError

OFFER = bytes([1, 0, 0, 0])


@dataclass
class Context:
    """A context that sends ``tokens``, and signs by a prefix."""

    tokens: list[bytes] = field(default_factory=lambda: [b"AP-REQ", b""])
    taken: list[bytes | None] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        return not self.tokens

    def step(self, token: bytes | None) -> bytes:
        self.taken.append(token)
        if token == b"lie":
            raise AuthenticationError("Kerberos: wrong token")
        return self.tokens.pop(0)

    def wrap(self, message: bytes) -> bytes:
        return b"signed by client:" + message

    def unwrap(self, message: bytes) -> bytes:
        if not message.startswith(b"signed:"):
            raise AuthenticationError("Kerberos: wrong signature")
        return message.removeprefix(b"signed:")


def done(outcome: Outcome) -> bytes | None:
    return outcome() if callable(outcome) else outcome


def offered(context: Context) -> Gssapi:
    """A mechanism to which the layers are offered next."""
    mechanism = Gssapi(context)
    assert done(mechanism.begin()) == b"AP-REQ"
    assert done(mechanism.receive(b"AP-REP")) == b""
    return mechanism


def test_the_rounds_of_kerberos() -> None:
    context = Context()
    mechanism = Gssapi(context)
    assert (mechanism.name, mechanism.is_single) == ("GSSAPI", False)
    # What may ask a Kerberos server is done in a thread.
    first = mechanism.begin()
    assert callable(first)
    assert context.taken == []
    assert first() == b"AP-REQ"
    second = mechanism.receive(b"AP-REP")
    assert callable(second)
    assert second() == b""
    assert context.taken == [None, b"AP-REP"]
    assert mechanism.receive(b"signed:" + OFFER) == b"signed by client:" + OFFER
    assert mechanism.receive(b"") is None
    assert repr(mechanism) == "<Gssapi CHOSEN>"


def test_no_layer_is_chosen_among_several() -> None:
    mechanism = offered(Context())
    answer = mechanism.receive(b"signed:" + bytes([7, 0, 255, 255]))
    assert answer == b"signed by client:" + OFFER


@pytest.mark.parametrize(
    ("offer", "kind", "text"),
    [
        (b"signed:" + bytes([6, 0, 255, 255]), AuthenticationError, "demands a secu"),
        (b"signed:" + bytes(3), ProtocolError, "of 3 bytes"),
        (b"signed:" + OFFER + b"x", ProtocolError, "of 5 bytes"),
        (OFFER, AuthenticationError, "wrong signature"),
        (b"", AuthenticationError, "wrong signature"),
        (b"x" * 65_537, ProtocolError, "message of 65537 bytes"),
    ],
)
def test_a_hostile_offer(offer: bytes, kind: type, text: str) -> None:
    with pytest.raises(kind, match=text):
        offered(Context()).receive(offer)


def test_a_broker_that_goes_on_after_the_end() -> None:
    mechanism = offered(Context())
    mechanism.receive(b"signed:" + OFFER)
    with pytest.raises(ProtocolError, match="goes on after"):
        mechanism.receive(b"x")


def test_endless_rounds() -> None:
    mechanism = Gssapi(Context([b"more"] * 100))
    done(mechanism.begin())
    for _ in range(10):
        assert done(mechanism.receive(b"more")) == b"more"
    with pytest.raises(ProtocolError, match="more than 10 messages"):
        mechanism.receive(b"more")


def test_a_context_that_stops_halfway() -> None:
    mechanism = Gssapi(Context([b"AP-REQ", b"", b""]))
    done(mechanism.begin())
    with pytest.raises(ProtocolError, match="nothing to send"):
        done(mechanism.receive(b"AP-REP"))


@given(st.lists(st.sampled_from([b"", b"lie", OFFER, b"signed:"]) | st.binary()))
def test_no_answers_without_a_signature_succeed(answers: list[bytes]) -> None:
    mechanism = Gssapi(Context())
    done(mechanism.begin())
    try:
        for answer in answers:
            assert done(mechanism.receive(answer)) is not None
    except (AuthenticationError, ProtocolError):
        pass
