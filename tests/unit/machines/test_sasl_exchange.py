"""One authentication: what it sends, and what each answer means."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from kafkaio._machines.api_versions import ApiVersions
from kafkaio._machines.sasl.exchange import SaslExchange, SaslRequest
from kafkaio._machines.sasl.mechanism import Outcome
from kafkaio.errors import (
    AuthenticationError,
    InternalError,
    ProtocolError,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._headers import encode_response
from kafkaio.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkaio.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

SASL = ApiVersions(
    ranges={ApiKey.SASL_HANDSHAKE: (0, 1), ApiKey.SASL_AUTHENTICATE: (0, 2)}
)


@dataclass
class Script:
    """A mechanism that does what it is told, and keeps what it gets."""

    outcomes: list[Outcome | Exception]
    name: str = "PLAIN"
    is_single: bool = True
    got: list[bytes] = field(default_factory=list)

    def begin(self) -> Outcome:
        return self._next()

    def receive(self, challenge: bytes) -> Outcome:
        self.got.append(challenge)
        return self._next()

    def _next(self) -> Outcome:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def exchange(
    script: Script, versions: ApiVersions = SASL, *, is_pipelined: bool = False
) -> SaslExchange:
    return SaslExchange(
        script,
        versions,
        peer="broker 1 (host:9092)",
        address="host:9092",
        is_pipelined=is_pipelined,
    )


def handshake(code: int = 0, *mechanisms: str) -> bytes:
    answer = SaslHandshakeResponse(error_code=code, mechanisms=list(mechanisms))
    return encode_response(answer, 1, 0)[4:]


def challenge(data: bytes = b"", lifetime_ms: int = 0, version: int = 2) -> bytes:
    answer = SaslAuthenticateResponse(
        auth_bytes=data, session_lifetime_ms=lifetime_ms, error_message=None
    )
    return encode_response(answer, version, 0)[4:]


def refusal(code: int, words: str | None) -> bytes:
    answer = SaslAuthenticateResponse(error_code=code, error_message=words)
    return encode_response(answer, 2, 0)[4:]


def named(mechanism: str) -> SaslRequest:
    return SaslRequest(SaslHandshakeRequest(mechanism=mechanism), 1)


def message(data: bytes, version: int = 2) -> SaslRequest:
    return SaslRequest(SaslAuthenticateRequest(auth_bytes=data), version)


def at_authenticate(script: Script) -> SaslExchange:
    one = exchange(script)
    one.begin()
    one.receive(handshake())
    return one


# ---- what goes well --------------------------------------------------------------


def test_messages_go_one_at_a_time() -> None:
    script = Script([b"a", b"b", None], "SCRAM", is_single=False)
    one = exchange(script)
    assert one.step == "prepare SASL"
    assert list(one.begin()) == [named("SCRAM")]
    assert one.step == "SaslHandshake"
    assert list(one.receive(handshake(0, "SCRAM"))) == [message(b"a")]
    assert one.step == "SaslAuthenticate"
    assert list(one.receive(challenge(b"x", 500))) == [message(b"b")]
    assert one.sent_bytes == 1
    assert not one.is_complete
    assert list(one.receive(challenge(b"y", 2000))) == []
    assert one.is_complete
    assert one.lifetime == 2.0
    assert script.got == [b"x", b"y"]


def test_a_single_message_is_pipelined() -> None:
    one = exchange(Script([b"a", None]), is_pipelined=True)
    assert one.is_pipelined
    assert list(one.begin()) == [named("PLAIN"), message(b"a")]
    assert list(one.receive(handshake())) == []
    assert list(one.receive(challenge())) == []
    assert one.is_complete
    assert one.lifetime == 0.0


def test_several_messages_are_never_pipelined() -> None:
    one = exchange(Script([b"a"], is_single=False), is_pipelined=True)
    assert not one.is_pipelined
    assert list(one.begin()) == [named("PLAIN")]


def test_work_is_handed_out_at_each_message() -> None:
    script = Script([lambda: b"a", lambda: None], "GSSAPI")
    one = exchange(script)
    assert list(one.begin()) == []
    assert one.step == "prepare SASL"
    assert one.work is not None
    assert list(one.worked(one.work())) == [named("GSSAPI")]
    assert one.work is None
    assert list(one.receive(handshake())) == [message(b"a")]
    assert list(one.receive(challenge(b"x", 1500))) == []
    assert one.work is not None
    assert not one.is_complete
    assert list(one.worked(one.work())) == []
    assert one.is_complete
    assert one.lifetime == 1.5


def test_a_broker_from_before_sessions_tells_no_lifetime() -> None:
    old = ApiVersions(
        ranges={ApiKey.SASL_HANDSHAKE: (0, 1), ApiKey.SASL_AUTHENTICATE: (0, 0)}
    )
    one = exchange(Script([b"a", None]), old)
    one.begin()
    assert list(one.receive(handshake())) == [message(b"a", 0)]
    one.receive(challenge(version=0))
    assert one.is_complete
    assert one.lifetime == 0.0


def test_a_negative_lifetime_is_none() -> None:
    one = at_authenticate(Script([b"a", None]))
    one.receive(challenge(lifetime_ms=-5))
    assert one.lifetime == 0.0


# ---- what is refused -------------------------------------------------------------


def test_another_mechanism_names_those_that_are_enabled() -> None:
    one = exchange(Script([b"a"]))
    one.begin()
    with pytest.raises(AuthenticationError, match="GSSAPI, SCRAM-SHA-256") as caught:
        one.receive(handshake(33, "SCRAM-SHA-256", "GSSAPI"))
    error = caught.value
    assert (error.mechanism, error.broker) == ("PLAIN", "host:9092")
    assert error.step == "SaslHandshake"
    assert "sasl_mechanism" in str(error)


def test_no_mechanism_at_all() -> None:
    one = exchange(Script([b"a"]))
    one.begin()
    with pytest.raises(AuthenticationError, match="but none"):
        one.receive(handshake(33))


def test_a_listener_without_sasl() -> None:
    one = exchange(Script([b"a"]))
    one.begin()
    with pytest.raises(AuthenticationError, match="security_protocol"):
        one.receive(handshake(34))


def test_another_refusal_of_the_handshake() -> None:
    one = exchange(Script([b"a"]))
    one.begin()
    with pytest.raises(AuthenticationError, match="INVALID_REQUEST"):
        one.receive(handshake(42))


@pytest.mark.parametrize(
    ("code", "words", "reason"),
    [
        (58, "Invalid username or password", "Invalid username or password"),
        (58, None, "the broker refuses the credentials"),
        (58, "a\nb\x1b[31m", "a\ufffdb\ufffd[31m"),
        (58, "x" * 5000, "x" * 1000 + "..."),
        (34, "after successful", "ILLEGAL_SASL_STATE (code 34) after successful"),
        (42, "", "INVALID_REQUEST (code 42)"),
    ],
)
def test_a_refusal_has_the_words_of_the_broker(
    code: int, words: str | None, reason: str
) -> None:
    one = at_authenticate(Script([b"secret"]))
    with pytest.raises(AuthenticationError) as caught:
        one.receive(refusal(code, words))
    error = caught.value
    assert error.reason == reason
    assert error.step == "SaslAuthenticate"
    assert error.broker == "host:9092"
    assert str(error) == f"broker 1 (host:9092): SaslAuthenticate (PLAIN): {reason}"


def test_the_mechanism_refuses_the_broker() -> None:
    wrong = AuthenticationError("wrong signature", reason="none")
    one = at_authenticate(Script([b"a", wrong]))
    with pytest.raises(AuthenticationError, match="wrong signature") as caught:
        one.receive(challenge())
    error = caught.value
    assert error.__cause__ is wrong
    assert (error.mechanism, error.broker) == ("PLAIN", "host:9092")
    assert (error.step, error.reason) == ("SaslAuthenticate", "none")


def test_there_are_no_credentials() -> None:
    one = exchange(Script([AuthenticationError("no ticket", step="kinit")]))
    with pytest.raises(AuthenticationError, match="no ticket") as caught:
        one.begin()
    assert caught.value.step == "kinit"


def test_work_that_fails() -> None:
    one = exchange(Script([lambda: b"a"]))
    one.begin()
    error = one.failed(AuthenticationError("too many iterations"))
    assert str(error).endswith("prepare SASL (PLAIN): too many iterations")
    assert error.mechanism == "PLAIN"


def test_a_further_message_cannot_follow_what_is_pipelined() -> None:
    one = exchange(Script([b"token", b"\1"], "OAUTHBEARER"), is_pipelined=True)
    one.begin()
    one.receive(handshake())
    with pytest.raises(AuthenticationError) as caught:
        one.receive(challenge(b'{"status":"invalid_token"}'))
    assert caught.value.reason == '{"status":"invalid_token"}'


def test_a_mechanism_without_a_first_message_is_a_bug() -> None:
    with pytest.raises(InternalError, match="PLAIN has no first message"):
        exchange(Script([None])).begin()


@pytest.mark.parametrize(
    ("ranges", "match"),
    [
        ({}, "SaslHandshake"),
        ({ApiKey.SASL_HANDSHAKE: (0, 1)}, "SaslAuthenticate"),
        (
            {ApiKey.SASL_HANDSHAKE: (0, 0), ApiKey.SASL_AUTHENTICATE: (0, 0)},
            "only in version 0",
        ),
    ],
)
def test_a_broker_that_does_not_know_the_requests(
    ranges: dict[int, tuple[int, int]], match: str
) -> None:
    one = exchange(Script([b"a"]), ApiVersions(ranges=ranges))
    with pytest.raises(UnsupportedVersion, match=match):
        one.begin()


@pytest.mark.parametrize("is_first", [True, False])
def test_bytes_that_are_no_answer(is_first: bool) -> None:
    one = exchange(Script([b"a"])) if is_first else at_authenticate(Script([b"a"]))
    if is_first:
        one.begin()
    with pytest.raises(ProtocolError):
        one.receive(b"\0\0\0\1\0")
