"""The laws of a connection: answers in order, every ticket ends once, deadlines."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from kafkaio._machines.connection.machine import (
    Closing,
    ConnectionMachine,
    ReceivedAnswer,
)
from kafkaio._machines.connection.pipeline import (
    RESERVED_IDS,
    LastAnswer,
    Ticket,
)
from kafkaio._machines.connection.states import TRANSITIONS, ConnectionState
from kafkaio.errors import (
    ConnectionLost,
    InternalError,
    ProtocolError,
    RequestTimeout,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._framing import FrameBuffer
from kafkaio.protocol._headers import decode_request, encode_response
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kafkaio.protocol.messages.fetch import FetchRequest
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaio.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkaio.protocol.messages.produce import ProduceRequest
from tests.unit.machines.connection.support import IDENTITY, taken

VERSIONS = ApiVersionsResponse(
    api_keys=[
        ApiVersion(api_key=ApiKey.PRODUCE, min_version=0, max_version=13),
        ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=13),
        ApiVersion(api_key=ApiKey.HEARTBEAT, min_version=0, max_version=4),
        ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=4),
    ]
)


def frame(response: Response, version: int, correlation_id: int) -> bytes:
    return encode_response(response, version, correlation_id)[4:]


def written(machine: ConnectionMachine) -> list[tuple[Any, Any]]:
    """What the machine wrote: (header, request) of each frame."""
    stream = b"".join(bytes(part) for part in taken(machine))
    return [decode_request(each) for each in FrameBuffer(2**20).feed(stream)]


def negotiating(now: float = 0.0, last_id: int = -1) -> ConnectionMachine:
    machine = ConnectionMachine(IDENTITY, now, last_id=last_id)
    machine.opened(now)
    return machine


def ready(now: float = 0.0, last_id: int = -1) -> ConnectionMachine:
    machine = negotiating(now, last_id)
    [(header, _)] = written(machine)
    answer = frame(VERSIONS, header.request_api_version, header.correlation_id)
    assert machine.receive(answer, now) is None
    assert machine.state is ConnectionState.READY
    return machine


def send(
    machine: ConnectionMachine,
    request: Request[Any],
    *,
    now: float,
    timeout: float,
    max_version: int | None = None,
) -> Any:
    """Send a request as the driver does."""
    kind = machine.kind_of(type(request), max_version)
    return machine.pipeline.send(request, kind, now=now, timeout=timeout)


def send_oneway(
    machine: ConnectionMachine,
    request: Request[Any],
    *,
    now: float,
    max_version: int | None = None,
) -> int:
    kind = machine.kind_of(type(request), max_version)
    machine.pipeline.send_oneway(request, kind, now=now)
    return kind.version


def heartbeat(
    machine: ConnectionMachine, now: float = 0.0, timeout: float = 30.0
) -> Any:
    return send(machine, HeartbeatRequest(), now=now, timeout=timeout)


def answer_to(ticket: Any, throttle_ms: int = 0) -> bytes:
    response = HeartbeatResponse(throttle_time_ms=throttle_ms)
    return frame(response, ticket.kind.version, ticket.correlation_id)


# ---- correlation ids -------------------------------------------------------------


def test_correlation_ids_leave_out_what_sasl_reserves() -> None:
    machine = ready(last_id=RESERVED_IDS - 3)
    tickets = [heartbeat(machine), heartbeat(machine), heartbeat(machine)]
    assert [t.correlation_id for t in tickets] == [RESERVED_IDS - 1, 0, 1]
    for ticket in tickets:
        assert isinstance(machine.receive(answer_to(ticket), 1.0), ReceivedAnswer)


# ---- negotiation -----------------------------------------------------------------


def test_asks_for_versions_first() -> None:
    machine = negotiating()
    [(header, request)] = written(machine)
    assert header.request_api_key == ApiKey.API_VERSIONS
    assert header.request_api_version == 4
    assert header.client_id == "me"
    assert request.client_software_name == "kafkaio"
    assert request.client_software_version == "1.0"
    assert "NEGOTIATING" in repr(machine)


def test_learns_what_the_broker_knows() -> None:
    assert ready().versions.max_version(ApiKey.HEARTBEAT) == 4


def test_asks_again_at_the_version_of_the_broker() -> None:
    machine = negotiating()
    written(machine)
    refusal = ApiVersionsResponse(
        error_code=35,
        api_keys=[ApiVersion(api_key=ApiKey.API_VERSIONS, max_version=2)],
    )
    assert machine.receive(frame(refusal, 0, 0), 1.0) is None
    [(header, _)] = written(machine)
    assert (header.request_api_version, header.correlation_id) == (2, 1)
    assert machine.receive(frame(VERSIONS, 2, 1), 1.5) is None
    assert machine.state is ConnectionState.READY
    assert machine.round_trip == 0.5  # of the last exchange, not of both


def test_asks_an_old_broker_in_version_0() -> None:
    machine = negotiating()
    written(machine)
    machine.receive(frame(ApiVersionsResponse(error_code=35), 0, 0), 1.0)
    [(header, _)] = written(machine)
    assert header.request_api_version == 0
    machine.receive(frame(VERSIONS, 0, 1), 1.0)
    assert machine.state is ConnectionState.READY


def test_gives_up_when_version_0_is_refused_too() -> None:
    machine = negotiating()
    machine.receive(frame(ApiVersionsResponse(error_code=35), 0, 0), 1.0)
    closing = machine.receive(frame(ApiVersionsResponse(error_code=35), 0, 1), 1.0)
    assert isinstance(closing, Closing)
    assert isinstance(closing.cause, UnsupportedVersion)
    assert machine.state is ConnectionState.CLOSED


def test_gives_up_on_nonsense() -> None:
    closing = negotiating().receive(b"\0\0\0\0\0", 1.0)
    assert isinstance(closing, Closing)
    assert isinstance(closing.cause, ProtocolError)


def test_negotiation_has_the_request_timeout() -> None:
    machine = negotiating(now=100.0)
    assert machine.pipeline.next_deadline == 130.0
    assert machine.expire(129.9) is None
    closing = machine.expire(130.0)
    assert closing is not None
    assert isinstance(closing.cause, RequestTimeout)
    assert "ApiVersions" in str(closing.cause)


def test_a_throttle_in_the_first_answer_counts() -> None:
    machine = negotiating()
    written(machine)
    throttled = ApiVersionsResponse(api_keys=VERSIONS.api_keys, throttle_time_ms=2_000)
    machine.receive(frame(throttled, 4, 0), 10.0)
    assert machine.pipeline.throttled_until == 12.0


# ---- the table -------------------------------------------------------------------


def test_nothing_can_be_sent_before_ready_or_after_closed() -> None:
    closed = ready()
    closed.closed(None)
    for machine in (ConnectionMachine(IDENTITY, 0.0), negotiating(), closed):
        with pytest.raises(ConnectionLost, match=machine.state.name.lower()):
            heartbeat(machine)
        with pytest.raises(ConnectionLost):
            send_oneway(machine, ProduceRequest(acks=0), now=0.0)


def test_a_step_that_is_not_listed_raises_and_changes_nothing() -> None:
    machine = ready()
    with pytest.raises(InternalError, match="OPENED while READY"):
        machine.opened(0.0)
    assert machine.state is ConnectionState.READY


def test_every_state_can_close() -> None:
    closed = {old for (old, _), new in TRANSITIONS.items() if new.name == "CLOSED"}
    assert closed == set(ConnectionState)


def test_a_closed_connection_stays_closed() -> None:
    machine = ready()
    ticket = heartbeat(machine)
    first = machine.closed(OSError("cut"))
    assert [each for each, _ in first.failed] == [ticket]
    assert machine.closed(OSError("again")).failed == ()
    assert machine.receive(answer_to(ticket), 1.0) is None
    assert machine.expire(10**6) is None
    assert machine.pipeline.next_deadline is None
    assert taken(machine) == []


def test_the_clock_does_not_matter_while_connecting() -> None:
    machine = ConnectionMachine(IDENTITY, 0.0)
    assert machine.expire(10**6) is None
    assert machine.state is ConnectionState.CONNECTING


# ---- requests and answers ----------------------------------------------------------


def test_an_answer_belongs_to_its_request() -> None:
    machine = ready()
    first = heartbeat(machine)
    second = send(machine, MetadataRequest(), now=0.0, timeout=5.0, max_version=9)
    assert [h.request_api_version for h, _ in written(machine)] == [4, 9]
    assert len(machine.pipeline) == 2
    answer = machine.receive(answer_to(first), 1.0)
    assert isinstance(answer, ReceivedAnswer)
    assert answer.ticket is first
    assert answer.response == HeartbeatResponse()
    answer = machine.receive(frame(MetadataResponse(), 9, second.correlation_id), 1.0)
    assert isinstance(answer, ReceivedAnswer)
    assert answer.ticket is second
    assert len(machine.pipeline) == 0


def test_a_kind_is_chosen_once_and_only_while_requests_can_be_sent() -> None:
    machine = negotiating()
    with pytest.raises(ConnectionLost):
        machine.kind_of(HeartbeatRequest)
    assert not machine.kinds
    machine = ready()
    kind = machine.kind_of(HeartbeatRequest)
    assert machine.kinds[HeartbeatRequest, None] is kind
    machine.closed(None)
    assert not machine.kinds


def test_an_answer_of_the_same_bytes_is_decoded_once() -> None:
    machine, last, answers = ready(), LastAnswer(), list[Response]()
    # The same; another one, which throttles, and so is not kept; and the first again.
    for now, throttle_ms in enumerate([0, 0, 5_000, 5_000, 0]):
        kind = machine.kind_of(HeartbeatRequest)
        ticket = machine.pipeline.send(
            HeartbeatRequest(), kind, now=now * 10.0, timeout=30.0, last=last
        )
        answer = machine.receive(answer_to(ticket, throttle_ms), now * 10.0)
        assert isinstance(answer, ReceivedAnswer)
        assert answer.response == HeartbeatResponse(throttle_time_ms=throttle_ms)
        assert answer.throttled == throttle_ms / 1000
        answers.append(answer.response)
    assert [answers[0] is each for each in answers] == [True, True, False, False, True]
    assert heartbeat(machine).last is None


def test_an_answer_of_another_version_is_decoded_again() -> None:
    last = LastAnswer()
    last.keep(1, b"\0\0\0\7\0\0", HeartbeatResponse())
    assert last.repeated(1, b"\0\0\0\10\0\0") == HeartbeatResponse()
    assert last.repeated(2, b"\0\0\0\10\0\0") is None


def test_an_answer_out_of_order_ends_the_connection() -> None:
    machine = ready()
    first, second = heartbeat(machine), heartbeat(machine)
    closing = machine.receive(answer_to(second), 1.0)
    assert isinstance(closing, Closing)
    assert isinstance(closing.cause, ProtocolError)
    assert [ticket for ticket, _ in closing.failed] == [first, second]
    assert all(isinstance(error, ConnectionLost) for _, error in closing.failed)
    assert "broker 1 (host:9092)" in str(closing.failed[0][1])
    assert closing.failed[0][1].__cause__ is closing.cause


def test_an_answer_to_nothing_ends_the_connection() -> None:
    closing = ready().receive(b"\0\0\0\7", 1.0)
    assert isinstance(closing, Closing)
    assert "to no request" in str(closing.cause)


def test_an_answer_that_cannot_be_decoded_may_be_an_accident() -> None:
    machine = ready()
    first, second = heartbeat(machine), heartbeat(machine)
    closing = machine.receive(answer_to(first)[:-1], 1.0)
    assert isinstance(closing, Closing)
    errors = dict(closing.failed)
    assert type(errors[first]) is ProtocolError
    assert errors[first].retriable
    assert "Heartbeat v4" in str(errors[first])
    assert type(errors[second]) is ConnectionLost


def test_what_cannot_be_sent_leaves_no_trace() -> None:
    machine = ready()
    with pytest.raises(UnsupportedVersion):
        send(machine, ListGroupsRequest(), now=0.0, timeout=1.0)
    with pytest.raises(UnsupportedVersion):  # a static member needs version 3
        send(
            machine,
            HeartbeatRequest(group_instance_id="x"),
            now=0.0,
            timeout=1.0,
            max_version=2,
        )
    assert len(machine.pipeline) == 0
    assert taken(machine) == []
    ticket = heartbeat(machine)
    assert ticket.correlation_id == 1


def test_a_oneway_request_waits_for_nothing() -> None:
    machine = ready()
    assert send_oneway(machine, ProduceRequest(acks=0), now=0.0, max_version=9) == 9
    assert len(written(machine)) == 1
    assert len(machine.pipeline) == 0
    ticket = heartbeat(machine)
    assert isinstance(machine.receive(answer_to(ticket), 1.0), ReceivedAnswer)


# ---- deadlines -------------------------------------------------------------------


def test_one_late_answer_fails_all() -> None:
    machine = ready()
    late, other = heartbeat(machine, timeout=5.0), heartbeat(machine, timeout=60.0)
    assert machine.pipeline.next_deadline == 5.0
    closing = machine.expire(5.0)
    assert closing is not None
    errors = dict(closing.failed)
    assert isinstance(errors[late], RequestTimeout)
    assert isinstance(errors[other], ConnectionLost)
    assert closing.cause is errors[late]


def test_an_answered_request_no_longer_expires() -> None:
    machine = ready()
    ticket = heartbeat(machine, timeout=5.0)
    machine.receive(answer_to(ticket), 1.0)
    assert machine.expire(5.0) is None
    assert machine.pipeline.next_deadline == 541.0


def test_an_idle_connection_closes() -> None:
    machine = ready(now=10.0)
    assert machine.pipeline.next_deadline is not None
    assert machine.expire(549.0) is None
    closing = machine.expire(550.0)
    assert closing == Closing(None, ())
    assert machine.state is ConnectionState.CLOSED


def test_a_connection_in_use_is_not_idle() -> None:
    machine = ready()
    heartbeat(machine, now=500.0, timeout=3_000.0)
    assert machine.expire(1_100.0) is None
    assert machine.state is ConnectionState.READY


def test_a_oneway_request_is_use() -> None:
    machine = ready()
    send_oneway(machine, ProduceRequest(acks=0), now=500.0)
    assert machine.expire(540.0) is None
    assert machine.pipeline.next_deadline == 1_040.0


def test_a_retired_connection_finishes_what_is_in_flight() -> None:
    machine = ready()
    ticket = heartbeat(machine)
    machine.is_retired = True
    assert machine.is_busy
    machine.receive(answer_to(ticket), 1.0)
    assert not machine.is_busy


# ---- throttling ------------------------------------------------------------------


def throttled(until: float = 10.0) -> ConnectionMachine:
    machine = ready()
    ticket = heartbeat(machine)
    written(machine)
    answer = machine.receive(answer_to(ticket, int(until * 1000)), 0.0)
    assert isinstance(answer, ReceivedAnswer)
    assert answer.throttled == until
    return machine


def test_a_throttled_connection_holds_requests_back() -> None:
    machine = throttled()
    first, second = heartbeat(machine, now=1.0), heartbeat(machine, now=1.0)
    assert taken(machine) == []
    assert len(machine.pipeline) == 2
    assert machine.pipeline.next_deadline == 10.0
    assert machine.expire(9.9) is None
    assert taken(machine) == []
    assert machine.expire(10.0) is None
    ids = [header.correlation_id for header, _ in written(machine)]
    assert ids == [first.correlation_id, second.correlation_id]
    assert first.sent_at == 10.0
    assert isinstance(machine.receive(answer_to(first), 11.0), ReceivedAnswer)


def test_order_holds_when_the_throttle_ends_before_the_timer() -> None:
    machine = throttled()
    held = heartbeat(machine, now=1.0)
    late = heartbeat(machine, now=10.5)
    assert taken(machine) == []
    machine.expire(10.5)
    ids = [header.correlation_id for header, _ in written(machine)]
    assert ids == [held.correlation_id, late.correlation_id]


def test_a_throttle_is_added_to_timeouts() -> None:
    machine = ready()
    first, second = heartbeat(machine), heartbeat(machine)
    machine.receive(answer_to(first, 10_000), 1.0)
    assert second.deadline == 40.0
    third = heartbeat(machine, now=2.0)
    assert third.deadline == 41.0
    assert machine.expire(39.0) is None


def test_a_throttle_never_shrinks() -> None:
    machine = ready()
    first, second = heartbeat(machine), heartbeat(machine)
    machine.receive(answer_to(first, 10_000), 0.0)
    machine.receive(answer_to(second, 1_000), 0.0)
    assert machine.pipeline.throttled_until == 10.0


def test_throttles_of_several_answers_do_not_add_up() -> None:
    machine = ready()
    tickets = [heartbeat(machine) for _ in range(4)]
    for ticket in tickets[:3]:
        machine.receive(answer_to(ticket, 10_000), 0.0)
    assert tickets[3].deadline == 40.0


def test_a_throttle_has_a_limit() -> None:
    machine = ready()
    first, second = heartbeat(machine), heartbeat(machine)
    answer = machine.receive(answer_to(first, 2**31 - 1), 0.0)
    assert isinstance(answer, ReceivedAnswer)
    assert answer.throttled == 60.0
    assert second.deadline == 90.0


def test_an_old_version_is_not_throttled_by_us() -> None:
    machine = ready()
    ticket = send(machine, HeartbeatRequest(), now=0.0, timeout=1.0, max_version=1)
    answer = machine.receive(answer_to(ticket, 10_000), 0.0)
    assert isinstance(answer, ReceivedAnswer)
    assert answer.throttled == 0.0
    assert machine.pipeline.throttled_until == 0.0


def test_a_oneway_request_is_held_back_too() -> None:
    machine = throttled()
    send_oneway(machine, ProduceRequest(acks=0), now=1.0)
    assert taken(machine) == []
    machine.expire(10.0)
    assert len(written(machine)) == 1


def test_a_held_request_can_be_withdrawn() -> None:
    machine = throttled()
    held, kept = heartbeat(machine, now=1.0), heartbeat(machine, now=1.0)
    assert machine.pipeline.withdraw(held)
    machine.expire(10.0)
    ids = [header.correlation_id for header, _ in written(machine)]
    assert ids == [kept.correlation_id]
    assert not machine.pipeline.withdraw(kept)
    assert isinstance(machine.receive(answer_to(kept), 11.0), ReceivedAnswer)


def test_held_requests_fail_with_the_connection() -> None:
    machine = throttled()
    held = heartbeat(machine, now=1.0)
    send_oneway(machine, ProduceRequest(acks=0), now=1.0)
    closing = machine.closed(None)
    assert [(t, type(error)) for t, error in closing.failed] == [(held, ConnectionLost)]
    assert "closed" in str(closing.failed[0][1])
    assert len(machine.pipeline) == 0


def test_a_cause_without_text_is_named() -> None:
    machine = ready()
    heartbeat(machine)
    [(_, error)] = machine.closed(EOFError()).failed
    assert "EOFError" in str(error)


# ---- all of it, in any order ---------------------------------------------------------


class Connections(RuleBasedStateMachine):
    """A client and a broker that answers in order, throttles, stalls and breaks."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.machine = ready()
        self.sent: list[Ticket[Any]] = []
        self.ended: list[int] = []
        # What the broker has and did not answer.
        self.at_broker: list[tuple[Any, Any]] = []
        self.written_ids: list[int] = []

    def pump(self) -> None:
        for header, request in written(self.machine):
            self.written_ids.append(header.correlation_id)
            if header.request_api_key != ApiKey.PRODUCE:
                self.at_broker.append((header, request))

    def note(self, closing: Closing | None) -> None:
        if closing is not None:
            self.ended += [ticket.correlation_id for ticket, _ in closing.failed]
            self.at_broker.clear()
            assert self.machine.state is ConnectionState.CLOSED

    def is_ready(self) -> bool:
        return self.machine.state is ConnectionState.READY

    @precondition(is_ready)
    @rule(timeout=st.floats(0.5, 40))
    def send(self, timeout: float) -> None:
        ticket = heartbeat(self.machine, self.now, timeout)
        assert ticket.deadline >= self.now + timeout
        self.sent.append(ticket)
        self.pump()

    @precondition(is_ready)
    @rule()
    def send_oneway(self) -> None:
        send_oneway(self.machine, ProduceRequest(acks=0), now=self.now)
        self.pump()

    @precondition(is_ready)
    @rule(index=st.integers(0, 5))
    def withdraw(self, index: int) -> None:
        pending = [t for t in self.sent if t.correlation_id not in self.ended]
        if index < len(pending) and self.machine.pipeline.withdraw(pending[index]):
            self.ended.append(pending[index].correlation_id)
            assert pending[index].correlation_id not in self.written_ids

    @precondition(lambda self: bool(self.at_broker))
    @rule(throttle=st.sampled_from([0, 0, 0, 500, 3_000]))
    def answer(self, throttle: int) -> None:
        header, _ = self.at_broker.pop(0)
        response = HeartbeatResponse(throttle_time_ms=throttle)
        data = frame(response, header.request_api_version, header.correlation_id)
        outcome = self.machine.receive(data, self.now)
        assert isinstance(outcome, ReceivedAnswer)
        assert outcome.ticket.correlation_id == header.correlation_id
        assert outcome.throttled == throttle / 1000
        if throttle:
            assert self.machine.pipeline.throttled_until >= self.now + outcome.throttled
        self.ended.append(header.correlation_id)

    @precondition(lambda self: len(self.at_broker) > 1)
    @rule()
    def answer_out_of_order(self) -> None:
        header, _ = self.at_broker.pop()
        data = frame(HeartbeatResponse(), 4, header.correlation_id)
        outcome = self.machine.receive(data, self.now)
        assert isinstance(outcome, Closing)
        self.note(outcome)

    @rule(seconds=st.floats(0, 20))
    def pass_time(self, seconds: float) -> None:
        """As a driver does: never past a deadline without asking."""
        until = self.now + seconds
        while (due := self.machine.pipeline.next_deadline) is not None and due <= until:
            self.now = max(self.now, due)
            self.note(self.machine.expire(self.now))
            self.pump()
        self.now = until

    @rule()
    def lose(self) -> None:
        self.note(self.machine.closed(OSError("cut")))

    @precondition(lambda self: not self.is_ready())
    @rule()
    def connect_again(self) -> None:
        self.sent.clear()
        self.ended.clear()
        self.written_ids.clear()
        self.machine = ready(self.now)

    @invariant()
    def every_ticket_ends_at_most_once(self) -> None:
        assert len(self.ended) == len(set(self.ended))

    @invariant()
    def none_is_forgotten(self) -> None:
        open_tickets = len(self.sent) - len(self.ended)
        held = len(self.machine.pipeline) - len(self.at_broker)
        assert open_tickets <= len(self.machine.pipeline)
        assert held >= 0
        if not self.is_ready():
            assert open_tickets == 0

    @invariant()
    def requests_are_written_in_order(self) -> None:
        assert self.written_ids == sorted(self.written_ids)

    @invariant()
    def nothing_is_overdue(self) -> None:
        due = self.machine.pipeline.next_deadline
        for ticket in self.sent:
            if ticket.correlation_id not in self.ended:
                assert due is not None
                assert due <= ticket.deadline

    @invariant()
    def nothing_is_written_while_throttled(self) -> None:
        assert not taken(self.machine)


Connections.TestCase.settings = settings(max_examples=120, stateful_step_count=40)
TestConnections = Connections.TestCase


@given(st.binary(max_size=60))
def test_hostile_bytes_end_in_a_closing_or_an_answer(data: bytes) -> None:
    machine = ready()
    heartbeat(machine)
    outcome = machine.receive(data, 1.0)
    if isinstance(outcome, Closing):
        assert isinstance(outcome.cause, ProtocolError)
        assert len(outcome.failed) == 1
    else:
        assert isinstance(outcome, ReceivedAnswer)


# ---- large answers -----------------------------------------------------------------


def large(correlation_id: int, groups: int = 20_000) -> bytes:
    listed = [ListedGroup(group_id=str(number)) for number in range(groups)]
    return frame(ListGroupsResponse(groups=listed), 5, correlation_id)


def ask_for_groups(machine: ConnectionMachine) -> Ticket[Any]:
    kind = machine.pipeline.kind(ListGroupsRequest, 5)
    return machine.pipeline.send(ListGroupsRequest(), kind, now=0.0, timeout=30.0)


def decoded(machine: ConnectionMachine) -> list[ReceivedAnswer]:
    found = []
    while machine.large_answers:
        outcome = machine.decode(1.0)
        assert not isinstance(outcome, Closing)
        if outcome is not None:
            found.append(outcome)
    return found


def test_a_large_answer_is_decoded_in_slices_and_what_follows_waits() -> None:
    machine = ready()
    first, second = ask_for_groups(machine), ask_for_groups(machine)
    assert machine.receive(large(first.correlation_id), 1.0) is None
    small = large(second.correlation_id, 1)
    assert machine.receive(small, 1.0) is None
    assert len(machine.large_answers) == 2
    assert machine.large_answers.size > len(small)
    machine.is_retired = True
    assert machine.is_busy
    assert machine.expire(10_000.0) is None  # it is not idle
    assert machine.decode(1.0) is None
    answers = decoded(machine)
    assert [answer.ticket for answer in answers] == [first, second]
    assert [len(answer.response.groups) for answer in answers] == [20_000, 1]  # type: ignore[attr-defined]
    assert not machine.is_busy
    assert machine.large_answers.size == 0


def test_a_large_answer_that_cannot_be_decoded_ends_with_its_cause() -> None:
    machine = ready()
    first, second = ask_for_groups(machine), ask_for_groups(machine)
    assert machine.receive(large(first.correlation_id)[:-1], 1.0) is None
    outcome = None
    while outcome is None:
        outcome = machine.decode(1.0)
    assert isinstance(outcome, Closing)
    errors = {ticket.correlation_id: error for ticket, error in outcome.failed}
    assert type(errors[first.correlation_id]) is ProtocolError
    assert type(errors[second.correlation_id]) is ConnectionLost
    assert not machine.large_answers


def test_closing_ends_what_is_not_decoded() -> None:
    machine = ready()
    ticket = ask_for_groups(machine)
    assert machine.receive(large(ticket.correlation_id), 1.0) is None
    assert machine.decode(1.0) is None
    closing = machine.closed(None)
    assert [failed for failed, _ in closing.failed] == [ticket]
    assert machine.announced(2**30) is None  # nothing is left to check


def test_an_announced_answer_is_as_large_as_its_api_allows() -> None:
    machine = ready()
    ask_for_groups(machine)
    limit = IDENTITY.max_control_response_size
    assert machine.announced(limit) is None
    closing = machine.announced(limit + 1)
    assert isinstance(closing, Closing)
    [(_, error)] = closing.failed
    assert not error.retriable
    with pytest.raises(ProtocolError, match="max_control_response_size allows"):
        raise error


def test_an_announced_fetch_has_the_limit_of_all_answers() -> None:
    machine = ready()
    fetch = machine.pipeline.kind(FetchRequest, 12)
    machine.pipeline.send(FetchRequest(), fetch, now=0.0, timeout=30.0)
    assert machine.announced(100 * 2**20) is None


def test_an_announced_answer_to_nothing_is_refused() -> None:
    closing = ready().announced(100_000)
    assert isinstance(closing, Closing)
    with pytest.raises(ProtocolError, match="100000 bytes to no request"):
        raise closing.cause or AssertionError
