"""A connection that authenticates, and again while it carries requests (KIP-368)."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from kafkaio._machines.connection.handshake import ClientIdentity
from kafkaio._machines.connection.machine import (
    Closing,
    ConnectionMachine,
    ReceivedAnswer,
    Renewal,
)
from kafkaio._machines.connection.pipeline import (
    RESERVED_IDS,
    next_reserved_id,
)
from kafkaio._machines.connection.states import ConnectionState
from kafkaio.errors import (
    AuthenticationError,
    ConnectionLost,
    ProtocolError,
    RequestTimeout,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._framing import FrameBuffer
from kafkaio.protocol._headers import decode_request, encode_response
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaio.protocol.messages.produce import ProduceRequest
from kafkaio.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from kafkaio.protocol.messages.sasl_handshake import SaslHandshakeResponse
from tests.support.sasl import Rounds
from tests.unit.machines.connection.support import IDENTITY, taken

VERSIONS = ApiVersionsResponse(
    api_keys=[
        ApiVersion(api_key=ApiKey.PRODUCE, min_version=0, max_version=9),
        ApiVersion(api_key=ApiKey.HEARTBEAT, min_version=0, max_version=4),
        ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=4),
        ApiVersion(api_key=ApiKey.SASL_HANDSHAKE, min_version=0, max_version=1),
        ApiVersion(api_key=ApiKey.SASL_AUTHENTICATE, min_version=0, max_version=2),
    ]
)
SHAKE, AUTH = ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE
BEAT = ApiKey.HEARTBEAT


def frame(header: Any, response: Response) -> bytes:
    version, id_ = header.request_api_version, header.correlation_id
    return encode_response(response, version, id_)[4:]


class Wire:
    """A machine, what it wrote that has no answer yet, and the time."""

    def __init__(
        self,
        *,
        lifetime_ms: int = 0,
        identity: ClientIdentity = IDENTITY,
        **mechanism: Any,
    ) -> None:
        self.lifetime_ms = lifetime_ms
        self.mechanism = mechanism
        self.now = 0.0
        self.machine = ConnectionMachine(identity, 0.0)
        self.unanswered: list[Any] = []
        self.machine.opened(0.0, Rounds(**mechanism), 0.5)

    def written(self) -> list[ApiKey]:
        """What the machine has written since the last call."""
        stream = b"".join(bytes(p) for p in taken(self.machine))
        headers = [decode_request(f)[0] for f in FrameBuffer(2**20).feed(stream)]
        self.unanswered += headers
        return [ApiKey(header.request_api_key) for header in headers]

    def answer(
        self, response: Response | None = None
    ) -> ReceivedAnswer | Closing | None:
        """Answer the oldest request."""
        header = self.unanswered.pop(0)
        if response is None:
            response = {
                ApiKey.API_VERSIONS: VERSIONS,
                SHAKE: SaslHandshakeResponse(),
                AUTH: SaslAuthenticateResponse(session_lifetime_ms=self.lifetime_ms),
                BEAT: HeartbeatResponse(),
            }[header.request_api_key]
        return self.machine.receive(frame(header, response), self.now)

    def connect(self) -> Wire:
        """Answer until the machine is ready."""
        while self.machine.state is not ConnectionState.READY:
            while work := self.machine.work:
                assert self.machine.worked(work(), self.now) is None
            self.written()
            assert self.answer() is None
        return self

    def send(self, timeout: float = 30.0, request: Request[Any] | None = None) -> Any:
        request = HeartbeatRequest() if request is None else request
        kind = self.machine.kind_of(type(request))
        return self.machine.pipeline.send(request, kind, now=self.now, timeout=timeout)

    def at(self, now: float) -> Closing | Renewal | None:
        """Let time pass, and look at the clock."""
        self.now = now
        return self.machine.expire(now)

    def renew(self, **mechanism: Any) -> Closing | None:
        made = Rounds(**(mechanism or self.mechanism))
        return self.machine.reauthenticate(made, self.now, 0.5)


# ---- the first one ---------------------------------------------------------------


def test_authentication_stands_between_negotiation_and_ready() -> None:
    wire = Wire(rounds=2)
    machine = wire.machine
    assert wire.written() == [ApiKey.API_VERSIONS]
    assert machine.handshake_step == "negotiate versions"
    assert wire.answer() is None
    assert machine.state is ConnectionState.AUTHENTICATING
    assert machine.versions.max_version(BEAT) == 4
    assert wire.written() == [SHAKE]
    assert machine.handshake_step == "SaslHandshake"
    with pytest.raises(ConnectionLost, match="authenticating"):
        wire.send()
    for _ in range(2):
        assert wire.answer() is None
        assert wire.written() == [AUTH]
    assert machine.handshake_step == "SaslAuthenticate"
    assert wire.answer() is None
    assert machine.state is ConnectionState.READY
    assert machine.session is not None
    assert machine.session.ends_at == inf
    ticket = wire.send()
    assert wire.written() == [BEAT]
    answer = wire.answer()
    assert isinstance(answer, ReceivedAnswer)
    assert answer.ticket is ticket


def test_a_single_message_is_not_pipelined_the_first_time() -> None:
    wire = Wire()
    wire.written()
    wire.answer()
    assert wire.written() == [SHAKE]


def test_authentication_has_the_reserved_ids() -> None:
    wire = Wire(rounds=9)
    wire.written()
    wire.answer()
    seen = []
    while wire.machine.state is ConnectionState.AUTHENTICATING:
        wire.written()
        seen.append(wire.unanswered[0].correlation_id - RESERVED_IDS)
        wire.answer()
    assert seen == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]
    assert next_reserved_id(17) == RESERVED_IDS


IDENTIFYING = replace(IDENTITY, cluster_id="c", node_id=1, first_version=5)
NEWEST = replace(
    VERSIONS,
    api_keys=[
        each
        if each.api_key != ApiKey.API_VERSIONS
        else ApiVersion(api_key=ApiKey.API_VERSIONS, max_version=5)
        for each in VERSIONS.api_keys
    ],
)


def test_a_broker_is_told_after_the_login_who_it_has_to_be() -> None:
    wire = Wire(identity=IDENTIFYING)
    wire.written()
    wire.answer(NEWEST)
    wire.written()
    while wire.machine.state is ConnectionState.AUTHENTICATING:
        wire.answer()
        wire.written()
    assert wire.machine.state is ConnectionState.CHECKING
    assert not wire.machine.is_usable
    [header] = wire.unanswered
    assert header.request_api_version == 5
    wire.answer(NEWEST)
    assert wire.machine.is_usable
    assert wire.written() == []
    assert wire.machine.session is not None


def test_another_broker_refuses_after_the_login() -> None:
    wire = Wire(identity=IDENTIFYING)
    wire.written()
    wire.answer(NEWEST)
    wire.written()
    while wire.machine.state is ConnectionState.AUTHENTICATING:
        wire.answer()
        wire.written()
    refusal = ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    closing = wire.answer(refusal)
    assert isinstance(closing, Closing)
    assert "not broker 1 of cluster c" in str(closing.cause)
    assert wire.machine.state is ConnectionState.CLOSED


def test_a_refused_authentication_closes_the_connection() -> None:
    wire = Wire()
    wire.written()
    wire.answer()
    wire.written()
    wire.answer()
    wire.written()
    closing = wire.answer(SaslAuthenticateResponse(error_code=58))
    assert isinstance(closing, Closing)
    assert isinstance(closing.cause, AuthenticationError)
    assert wire.machine.state is ConnectionState.CLOSED
    assert wire.machine.handshake_step == "SaslAuthenticate"
    assert wire.machine.exchange is not None
    assert wire.machine.exchange.mechanism == "ROUNDS"


def test_a_broker_without_sasl_requests_is_refused() -> None:
    wire = Wire()
    wire.written()
    closing = wire.answer(ApiVersionsResponse(api_keys=VERSIONS.api_keys[:3]))
    assert isinstance(closing, Closing)
    assert isinstance(closing.cause, UnsupportedVersion)


def test_an_authentication_without_an_answer_times_out() -> None:
    wire = Wire()
    wire.written()
    wire.answer()
    wire.written()
    closing = wire.at(IDENTITY.request_timeout)
    assert isinstance(closing, Closing)
    assert isinstance(closing.cause, RequestTimeout)


def test_an_answer_while_a_message_is_computed_is_none() -> None:
    wire = Wire(in_thread=True)
    wire.written()
    wire.answer()
    assert wire.machine.work is not None
    closing = wire.machine.receive(b"\x7f\xff\xff\xf8", 1.0)
    assert isinstance(closing, Closing)
    assert isinstance(closing.cause, ProtocolError)


# ---- work ------------------------------------------------------------------------


def test_work_is_done_between_messages() -> None:
    wire = Wire(rounds=2, in_thread=True).connect()
    assert wire.machine.work is None
    assert wire.machine.session is not None


@pytest.mark.parametrize(
    ("error", "match"),
    [
        (AuthenticationError("too many rounds"), r"ROUNDS\): too many rounds"),
        (ProtocolError("rubbish"), "^rubbish$"),
    ],
)
def test_work_that_fails_closes_the_connection(error: Any, match: str) -> None:
    wire = Wire(in_thread=True)
    wire.written()
    wire.answer()
    closing = wire.machine.work_failed(error)
    assert isinstance(closing, Closing)
    with pytest.raises(type(error), match=match):
        raise closing.cause or ValueError


def test_work_that_ends_with_a_broker_that_cannot_go_on() -> None:
    wire = Wire(in_thread=True)
    wire.written()
    wire.answer(ApiVersionsResponse(api_keys=VERSIONS.api_keys[:3]))
    closing = wire.machine.worked(b"first", 0.0)
    assert isinstance(closing, Closing)


def test_work_that_ends_after_the_connection_is_ignored() -> None:
    wire = Wire(in_thread=True)
    wire.written()
    wire.answer()
    wire.machine.closed(None)
    assert wire.machine.worked(b"late", 1.0) is None
    assert wire.machine.work_failed(ProtocolError("late")) is None
    assert wire.renew() is None
    idle = Wire()
    assert idle.machine.worked(b"none", 0.0) is None


# ---- renewal ---------------------------------------------------------------------


def used(lifetime_ms: int = 10_000, **mechanism: Any) -> Wire:
    """A ready connection with a request in flight."""
    wire = Wire(lifetime_ms=lifetime_ms, **mechanism).connect()
    wire.now = 0.1
    wire.send()
    assert wire.written() == [BEAT]
    return wire


def test_a_session_is_renewed_in_time() -> None:
    wire = used()
    assert wire.machine.pipeline.next_deadline == pytest.approx(9.0)
    assert wire.at(8.9) is None
    assert wire.at(9.0) is Renewal.AUTHENTICATE
    assert wire.at(9.1) is None  # told once
    assert wire.renew() is None
    assert wire.machine.state is ConnectionState.REAUTHENTICATING
    assert wire.machine.is_usable


def test_a_single_message_is_renewed_without_a_gap() -> None:
    wire = used()
    wire.at(9.0)
    wire.renew()
    assert wire.written() == [SHAKE, AUTH]
    behind = wire.send()
    assert wire.written() == [BEAT]
    assert isinstance(wire.answer(), ReceivedAnswer)  # what was in flight before
    assert wire.answer() is None
    assert wire.answer() is None
    assert wire.machine.state is ConnectionState.READY
    answer = wire.answer()
    assert isinstance(answer, ReceivedAnswer)
    assert answer.ticket is behind
    assert wire.machine.session is not None
    assert wire.machine.session.began_at == 9.0


def test_a_late_refusal_lets_what_is_behind_be_answered_first() -> None:
    """As Kafka does: it refuses after 0.3 s, and serves what was written meanwhile."""
    wire = used()
    wire.at(9.0)
    wire.renew()
    behind = [wire.send() for _ in range(3)]
    wire.written()
    assert isinstance(wire.answer(), ReceivedAnswer)
    assert wire.answer() is None
    refused = wire.unanswered.pop(0)
    for ticket in behind[:2]:
        large = wire.machine.announced(2**19)
        assert large is None
        answer = wire.answer()
        assert isinstance(answer, ReceivedAnswer)
        assert answer.ticket is ticket
    wire.unanswered.insert(0, refused)
    closing = wire.answer(SaslAuthenticateResponse(error_code=58, error_message="no"))
    assert isinstance(closing, Closing)
    assert isinstance(closing.cause, AuthenticationError)
    assert closing.cause.reason == "no"
    assert [ended.correlation_id for ended, _ in closing.failed] == [
        behind[2].correlation_id
    ]


def test_what_is_behind_may_not_overtake_otherwise() -> None:
    """Neither by more than one, nor before SaslHandshake, nor without a login."""
    for answered, skipped in ((1, 2), (2, 2), (4, 1)):
        wire = used()
        wire.at(9.0)
        wire.renew()
        for _ in range(3):
            wire.send()
        wire.written()
        for _ in range(answered):
            wire.answer()
        del wire.unanswered[:skipped]
        closing = wire.answer()
        assert isinstance(closing, Closing)
        assert isinstance(closing.cause, ProtocolError)


def test_several_messages_hold_what_comes_between() -> None:
    wire = used(rounds=2)
    wire.at(9.0)
    wire.renew()
    held = [wire.send() for _ in range(2)]
    assert wire.written() == [SHAKE]
    assert isinstance(wire.answer(), ReceivedAnswer)
    for _ in range(2):
        assert wire.answer() is None
        assert wire.at(9.5) is None
        assert wire.written() == [AUTH]
    assert wire.machine.pipeline.held == 2
    assert wire.answer() is None
    assert wire.machine.pipeline.next_deadline == 9.5
    assert wire.at(9.6) is None
    assert wire.written() == [BEAT, BEAT]
    # What they waited does not count.
    assert [ticket.deadline for ticket in held] == [pytest.approx(39.6)] * 2
    assert isinstance(wire.answer(), ReceivedAnswer)


def test_what_is_held_does_not_expire() -> None:
    wire = used(rounds=2)
    wire.at(9.0)
    wire.renew()
    wire.answer()
    wire.send(timeout=0.1)
    assert wire.at(10.0) is None
    assert wire.machine.pipeline.next_deadline is not None
    assert wire.machine.pipeline.next_deadline > 10.0


def test_it_waits_behind_what_is_parked() -> None:
    wire = Wire(lifetime_ms=10_000).connect()
    wire.now = 0.1
    wire.send(timeout=300.0)
    wire.at(9.0)
    wire.renew()
    wire.written()
    assert wire.at(300.0) is None
    assert isinstance(wire.answer(), ReceivedAnswer)
    assert wire.answer() is None
    assert wire.answer() is None
    assert wire.machine.state is ConnectionState.READY


def test_requests_after_the_session_wait_for_the_credentials() -> None:
    wire = used()
    assert wire.at(9.0) is Renewal.AUTHENTICATE
    wire.now = 9.9
    wire.send()
    assert wire.machine.pipeline.held == 1
    assert wire.at(9.95) is None
    assert wire.written() == []
    assert wire.renew() is None
    wire.at(9.96)
    assert wire.written() == [SHAKE, AUTH, BEAT]


def test_a_blocked_loop_renews_before_its_next_request() -> None:
    wire = used()
    wire.answer()
    wire.now = 50.0
    wire.send()
    assert wire.written() == []
    assert wire.machine.pipeline.next_deadline is not None
    assert wire.machine.pipeline.next_deadline <= 50.0
    assert wire.at(50.0) is Renewal.AUTHENTICATE
    wire.renew()
    wire.at(50.0)
    assert wire.written() == [SHAKE, AUTH, BEAT]


def test_a_late_timer_renews_before_the_next_request() -> None:
    wire = used()
    wire.answer()
    wire.now = 9.4
    wire.send()
    assert wire.written() == []
    assert wire.at(9.4) is Renewal.AUTHENTICATE
    wire.renew()
    wire.at(9.4)
    assert wire.written() == [SHAKE, AUTH, BEAT]


def test_no_request_waits_for_credentials_while_the_session_lasts() -> None:
    wire = used()
    wire.answer()
    wire.now = 9.4
    wire.send()
    assert wire.at(9.4) is Renewal.AUTHENTICATE
    assert wire.at(9.5) is None
    assert wire.written() == [BEAT]
    wire.now = 9.85
    wire.send()
    assert wire.written() == []


def test_what_was_not_used_renews_before_its_next_request() -> None:
    wire = Wire(lifetime_ms=10_000).connect()
    assert wire.at(9.0) is None
    assert wire.machine.pipeline.next_deadline == IDENTITY.idle_timeout
    wire.now = 9.5
    produce = wire.machine.pipeline.kind(ProduceRequest, 9)
    wire.machine.pipeline.send_oneway(ProduceRequest(acks=0), produce, now=9.5)
    assert wire.written() == []
    assert wire.at(9.5) is Renewal.AUTHENTICATE
    wire.renew()
    wire.at(9.5)
    assert wire.written() == [SHAKE, AUTH, ApiKey.PRODUCE]


def test_a_renewal_is_no_use() -> None:
    wire = used()
    wire.answer()
    wire.at(9.0)
    wire.renew()
    wire.written()
    wire.answer()
    wire.answer()
    assert wire.at(18.0) is None  # not used since
    closing = wire.at(9.0 + IDENTITY.idle_timeout)
    assert isinstance(closing, Closing)
    assert closing.cause is None


def test_a_throttle_keeps_requests_but_no_renewal() -> None:
    wire = used()
    wire.now = 8.9
    wire.answer(HeartbeatResponse(throttle_time_ms=5000))
    held = wire.send()
    assert wire.at(9.0) is Renewal.AUTHENTICATE
    wire.renew()
    assert wire.written() == [SHAKE, AUTH]
    assert wire.at(9.1) is None
    assert wire.machine.pipeline.next_deadline == pytest.approx(13.9)
    assert wire.answer() is None
    assert wire.answer() is None
    assert wire.at(13.9) is None
    assert wire.written() == [BEAT]
    assert held.deadline == pytest.approx(43.9)


def test_a_throttle_that_outlasts_the_session() -> None:
    wire = used(rounds=2)
    wire.now = 8.0
    wire.answer(HeartbeatResponse(throttle_time_ms=5000))
    wire.send()
    assert wire.at(9.0) is Renewal.AUTHENTICATE
    assert wire.at(13.0) is None  # no credentials yet
    assert wire.written() == []
    assert wire.machine.pipeline.is_blocked(13.0)


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_refused_renewal_ends_the_connection_with_the_reason(rounds: int) -> None:
    wire = used(rounds=rounds)
    wire.at(9.0)
    in_flight = wire.send()
    wire.renew()
    behind = wire.send()
    wire.written()
    for _ in range(2):
        assert isinstance(wire.answer(), ReceivedAnswer)
    wire.answer()
    wire.written()
    while isinstance(
        closing := wire.answer(
            SaslAuthenticateResponse(error_code=58, error_message="other principal")
        ),
        ReceivedAnswer,
    ):
        pass
    assert isinstance(closing, Closing)
    assert isinstance(closing.cause, AuthenticationError)
    errors = {id(ticket): error for ticket, error in closing.failed}
    assert id(in_flight) not in errors  # it was answered
    error = errors[id(behind)]
    assert isinstance(error, ConnectionLost)
    assert "other principal" in str(error)
    assert ("not sent" in str(error)) == (rounds > 1)


def test_credentials_that_cannot_be_used_end_the_connection() -> None:
    wire = used()
    wire.at(9.0)
    closing = wire.machine.reauthenticate(_Broken(), 9.0, 0.5)
    assert isinstance(closing, Closing)
    assert isinstance(closing.cause, AuthenticationError)


class _Broken(Rounds):
    def begin(self) -> Any:
        raise AuthenticationError("no ticket")


def test_a_retired_connection_is_not_renewed() -> None:
    wire = used()
    wire.machine.is_retired = True
    assert wire.at(9.0) is None
    assert wire.machine.is_busy
    assert isinstance(wire.answer(), ReceivedAnswer)
    assert not wire.machine.is_busy


def test_a_retired_connection_is_renewed_for_what_it_holds() -> None:
    wire = used()
    wire.machine.is_retired = True
    wire.at(9.0)
    wire.send()
    assert wire.at(9.0) is Renewal.AUTHENTICATE


def test_short_sessions_need_another_connection() -> None:
    wire = used(1000)
    assert wire.at(0.9) is Renewal.REPLACE
    wire.machine.is_retired = True
    assert wire.at(1.0) is None
    wire.send()  # by somebody who still has the connection
    assert wire.written() == []
    assert wire.at(1.0) is None
    assert wire.machine.pipeline.next_deadline == pytest.approx(1.1)
    assert wire.at(1.1) is Renewal.AUTHENTICATE


def test_a_renewed_session_may_have_no_end() -> None:
    wire = used()
    wire.at(9.0)
    wire.lifetime_ms = 0
    wire.renew()
    wire.written()
    for _ in range(3):
        wire.answer()
    wire.send()
    assert wire.written() == [BEAT]
    assert wire.at(30.0) is None


# ---- any interleaving ------------------------------------------------------------


class Broker:
    """What a broker demands of the frames of one connection, in their order."""

    def __init__(self, rounds: int, lifetime_ms: int) -> None:
        self.rounds = rounds
        self.lifetime_ms = lifetime_ms
        self.queue: list[tuple[Any, float]] = []
        self.due = 0
        self.authentications: list[float] = []

    def takes(self, header: Any, now: float) -> None:
        """Check one frame as it arrives, and queue its answer."""
        api = header.request_api_key
        last = self.authentications[-1] if self.authentications else -inf
        if api == SHAKE:
            assert not self.due
            assert now >= last + 1.0
            self.due = self.rounds
        elif api == AUTH:
            assert self.due
            self.due -= 1
            if not self.due:
                self.authentications.append(now)
        elif api != ApiKey.API_VERSIONS:
            assert not self.due, "a request within an authentication"
            assert self.authentications
            if self.lifetime_ms:
                assert now <= last + self.lifetime_ms / 1000, "the session is over"
        self.queue.append((header, now))


PATIENT = replace(IDENTITY, request_timeout=1e6, idle_timeout=1e9)


class Renewals(RuleBasedStateMachine):
    """A driver, a clock and a broker, in any order of events.

    Frames reach the broker when they are written, and are answered later, in order.
    """

    @initialize(
        rounds=st.sampled_from([1, 1, 2, 3]),
        in_thread=st.booleans(),
        lifetime_ms=st.sampled_from([0, 700, 2000, 2000, 10_000]),
    )
    def connect(self, rounds: int, in_thread: bool, lifetime_ms: int) -> None:
        self.now = 0.0
        self.broker = Broker(rounds, lifetime_ms)
        self.mechanism = {"rounds": rounds, "in_thread": in_thread}
        self.machine = ConnectionMachine(PATIENT, 0.0)
        self.wanted = self.closed = False
        self.pending: list[Any] = []
        self.machine.opened(0.0, Rounds(**self.mechanism), 0.5)
        while self.machine.state is not ConnectionState.READY:
            self.flush()
            if self.broker.queue:
                self.answer(0)
            else:
                self.work()

    def flush(self) -> None:
        stream = b"".join(bytes(p) for p in taken(self.machine))
        for each in FrameBuffer(2**20).feed(stream):
            self.broker.takes(decode_request(each)[0], self.now)

    def expire(self) -> None:
        outcome = self.machine.expire(self.now)
        if outcome is Renewal.REPLACE:
            self.machine.is_retired = True
        elif outcome is Renewal.AUTHENTICATE:
            assert not self.wanted
            self.wanted = True
        elif isinstance(outcome, Closing):
            assert outcome.cause is None  # nothing but idleness ends it here
            self.closed = True
        self.flush()

    @rule(pause=st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0, 3.0, 9.0]))
    @precondition(lambda self: not self.closed)
    def pass_time(self, pause: float) -> None:
        """The loop runs its timers; each at its time."""
        until = self.now + pause
        while (due := self.machine.pipeline.next_deadline) is not None and due <= until:
            self.now = max(self.now, due)
            self.expire()
        self.now = until

    @rule(pause=st.sampled_from([0.5, 2.5, 12.0]))
    @precondition(lambda self: not self.closed)
    def block(self, pause: float) -> None:
        """The loop is blocked: the time passes, and no timer runs."""
        self.now += pause

    @rule()
    @precondition(lambda self: self.machine.is_usable)
    def send(self) -> None:
        kind = self.machine.kind_of(HeartbeatRequest)
        ticket = self.machine.pipeline.send(
            HeartbeatRequest(), kind, now=self.now, timeout=1e6
        )
        self.pending.append(ticket)
        self.flush()

    @rule(throttle_ms=st.sampled_from([0, 0, 0, 300, 5000]))
    @precondition(lambda self: self.broker.queue and not self.closed)
    def answer(self, throttle_ms: int) -> None:
        header, _ = self.broker.queue.pop(0)
        response: Response = {
            ApiKey.API_VERSIONS: VERSIONS,
            SHAKE: SaslHandshakeResponse(),
            AUTH: SaslAuthenticateResponse(session_lifetime_ms=self.broker.lifetime_ms),
            BEAT: HeartbeatResponse(throttle_time_ms=throttle_ms),
        }[header.request_api_key]
        outcome = self.machine.receive(frame(header, response), self.now)
        if header.request_api_key == BEAT:
            assert isinstance(outcome, ReceivedAnswer)
            assert outcome.ticket is self.pending.pop(0)
        else:
            assert outcome is None
        self.flush()

    @rule()
    @precondition(lambda self: self.wanted)
    def credentials(self) -> None:
        self.wanted = False
        made = Rounds(**self.mechanism)
        assert self.machine.reauthenticate(made, self.now, 0.5) is None
        self.flush()

    @rule()
    @precondition(lambda self: self.machine.work is not None)
    def work(self) -> None:
        work = self.machine.work
        assert work is not None
        assert self.machine.worked(work(), self.now) is None
        self.flush()

    @invariant()
    def nothing_is_lost(self) -> None:
        if hasattr(self, "machine") and not self.closed:
            normal = [
                t
                for t in self.machine.pipeline.pending()
                if t.correlation_id < RESERVED_IDS
            ]
            assert normal == self.pending

    def teardown(self) -> None:
        """Whatever has happened, everything is answered in the end."""
        if not hasattr(self, "machine"):
            return
        for _ in range(200):
            if not self.pending or self.closed:
                break
            if self.broker.queue:
                self.answer(0)
            elif self.wanted:
                self.credentials()
            elif self.machine.work is not None:
                self.work()
            else:
                due = self.machine.pipeline.next_deadline
                assert due is not None, "nothing would ever wake the connection"
                self.pass_time(max(0.0, due - self.now))
        assert not self.pending


TestRenewals = Renewals.TestCase
TestRenewals.settings = settings(max_examples=150, stateful_step_count=40)
