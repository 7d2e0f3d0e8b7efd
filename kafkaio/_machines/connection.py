"""One connection to a broker, without its socket and its clock.

Theory of operation. A broker answers the requests of a connection one by one, in the
order in which they came. So the requests in flight are a queue; an answer belongs to
the first of them, and its correlation id must say so. A connection opens, negotiates
versions (KIP-35), is ready, and closes; ``TRANSITIONS`` has every step there is.

Each request gets a ``Ticket``, and each ticket ends exactly once: it is answered, or it
is among the failures of the one ``Closing``. A request whose time has run out closes
the whole connection, because every later answer would have to wait behind it.

A broker that enforces a quota answers first and then stops reading (KIP-219). From the
version in ``THROTTLED_FROM`` on it relies on the client to pause, so frames wait in
``_held``, and the pause is added to the deadline of every request.

The driver hands in what happened, with the time, writes what ``take_output`` gives it,
and calls ``expire`` at ``next_deadline``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, Generic, NamedTuple, TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio._machines.api_versions import THROTTLED_FROM, ApiVersions, next_attempt
from kafkaio.errors import (
    ConnectionLost,
    InternalError,
    KafkaError,
    ProtocolError,
    RequestTimeout,
    UnsupportedVersion,
)
from kafkaio.protocol.headers import (
    decode_api_versions,
    decode_response,
    encode_request_parts,
    peek_correlation_id,
)
from kafkaio.protocol.message import Buffer, Request, Response, ResponseT
from kafkaio.protocol.messages.api_versions import ApiVersionsRequest

__all__ = [
    "Answer",
    "Closing",
    "ConnectionMachine",
    "ConnectionState",
    "Identity",
    "Ticket",
    "next_correlation_id",
]

#: Correlation ids from here to 2^31-1 belong to SASL, whose requests interleave.
RESERVED_IDS: Final = 2**31 - 8


class ConnectionState(Enum):
    """Where a connection is in its life."""

    CONNECTING = auto()
    NEGOTIATING = auto()
    READY = auto()
    CLOSED = auto()


# Every request asks for these two; from a module they come in a fifth of the time.
_READY: Final = ConnectionState.READY
_CLOSED: Final = ConnectionState.CLOSED


class _Event(Enum):
    OPENED = auto()
    NEGOTIATED = auto()
    CLOSED = auto()


# SASL will add AUTHENTICATING between CONNECTING and NEGOTIATING.
TRANSITIONS: Final[Mapping[tuple[ConnectionState, _Event], ConnectionState]] = (
    MappingProxyType(
        {
            (ConnectionState.CONNECTING, _Event.OPENED): ConnectionState.NEGOTIATING,
            (ConnectionState.NEGOTIATING, _Event.NEGOTIATED): ConnectionState.READY,
            **{
                (state, _Event.CLOSED): ConnectionState.CLOSED
                for state in ConnectionState
            },
        }
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """How we present ourselves on a connection, and how long we wait on it.

    Attributes:
        peer: who is at the other end, as error messages shall name it.
        client_id: the client id in every request header.
        software_name: what ApiVersions tells the broker about this library.
        software_version: its version, fit for brokers (see ``software_version``).
        request_timeout: seconds to wait for the answer to ApiVersions.
        idle_timeout: seconds without use after which the connection is closed.
    """

    peer: str
    client_id: str
    software_name: str
    software_version: str
    request_timeout: float
    idle_timeout: float


@dataclass(slots=True, eq=False)
class Ticket(Generic[ResponseT]):
    """One request that waits for its answer.

    Attributes:
        correlation_id: number of the request on its connection.
        response_type: class of the answer.
        version: version of request and answer.
        deadline: when the time of the request runs out; moved by throttling.
        sent_at: when the request was written; before that, when it was encoded.
    """

    correlation_id: int
    response_type: type[ResponseT]
    version: int
    deadline: float
    sent_at: float


AnyTicket: TypeAlias = Ticket[Response]


class Answer(NamedTuple):
    """A ticket that ended well.

    Attributes:
        ticket: the request.
        response: its answer, of ``ticket.response_type``.
        throttled: seconds that the broker asks us to pause; 0 for none.
    """

    ticket: AnyTicket
    response: Response
    throttled: float


@dataclass(frozen=True, slots=True)
class Closing:
    """The connection has to be closed, or was.

    Attributes:
        cause: why; None where it was closed on purpose.
        failed: every ticket that had not ended, with the error it ends with.
    """

    cause: BaseException | None
    failed: tuple[tuple[AnyTicket, KafkaError], ...]


def next_correlation_id(last: int) -> int:
    """The id after ``last``; it wraps to 0 before the ids reserved for SASL."""
    following = last + 1
    return following if following < RESERVED_IDS else 0


class ConnectionMachine:
    """Decides what one connection writes, whom an answer is for, and when to end.

    Args:
        identity: what to say to the broker and how long to wait.
        now: the time; seconds of any monotonic clock, as in every method.
        last_id: the correlation id before the first one.
    """

    def __init__(self, identity: Identity, now: float, *, last_id: int = -1) -> None:
        self._identity = identity
        self._last_id = last_id
        self._last_used = now
        self.state = ConnectionState.CONNECTING
        self.versions = ApiVersions()
        # Written and not answered, oldest first: the broker's order of answering.
        self._in_flight: deque[AnyTicket] = deque()
        # Encoded but held back by a throttle; None for a request without an answer.
        self._held: deque[tuple[AnyTicket | None, list[Buffer]]] = deque()
        self._output: list[Buffer] = []
        # When frames may be written again; in the past where nothing is throttled.
        self.throttled_until = now
        # When expire() must be called at the latest, None for never.
        # Never later than the earliest thing that can expire; recomputed by expire().
        # So a request costs one comparison, and a stale value one idle wake-up.
        self.next_deadline: float | None = None
        self._asked_version = ApiVersionsRequest.MAX_VERSION
        self._retiring = False

    def __repr__(self) -> str:
        return (
            f"<ConnectionMachine {self._identity.peer} {self.state.name} | "
            f"{len(self._in_flight)} in flight, {len(self._held)} held>"
        )

    @property
    def in_flight(self) -> int:
        """How many requests wait for an answer, those held back included."""
        return len(self._in_flight) + len(self._held)

    def opened(self, now: float) -> None:
        """The transport is connected: ask for the broker's versions."""
        self._step(_Event.OPENED)
        self._last_used = now
        self._ask_versions(now)

    def send(
        self,
        request: Request[ResponseT],
        *,
        now: float,
        timeout: float,
        max_version: int | None = None,
    ) -> Ticket[ResponseT]:
        """Encode a request that will be answered.

        Args:
            request: what to ask.
            now: the time.
            timeout: seconds until it has failed; a throttle in force is added.
            max_version: the highest version to use.

        Raises:
            ConnectionLost: the connection is closed, or not ready yet.
            UnsupportedVersion: no version serves, or none carries what is set.
        """
        version = self._version(type(request), max_version)
        return self._send(request, version, now=now, timeout=timeout)

    def send_oneway(
        self, request: Request[ResponseT], *, now: float, max_version: int | None = None
    ) -> int:
        """Encode a request that the broker will not answer: Produce with acks=0.

        Returns:
            The version used.

        Raises:
            ConnectionLost: the connection is closed, or not ready yet.
            UnsupportedVersion: no version serves, or none carries what is set.
        """
        version = self._version(type(request), max_version)
        parts = self._encode(request, version)
        self._put(None, parts, now)
        return version

    def withdraw(self, ticket: Ticket[ResponseT]) -> bool:
        """Forget a request that nobody waits for, if it is still held back.

        Returns:
            Whether it was; else its answer will come, as for any other.
        """
        before = len(self._held)
        self._held = deque(held for held in self._held if held[0] is not ticket)
        return len(self._held) < before

    def retire(self) -> None:
        """Ask for the end as soon as nothing is in flight; see ``is_finished``."""
        self._retiring = True

    @property
    def is_finished(self) -> bool:
        """Whether the connection was retired and has nothing left to do."""
        return self._retiring and not self._in_flight and not self._held

    def take_output(self) -> list[Buffer]:
        """Hand over what must be written now, in order."""
        output, self._output = self._output, []
        return output

    def receive(self, frame: Buffer, now: float) -> Answer | Closing | None:
        """Take one frame without its length.

        Returns:
            The answer to the oldest request; a Closing where the frame makes no sense;
            None while versions are negotiated and after the connection has closed.
        """
        if self.state is _CLOSED:
            return None
        self._last_used = now
        try:
            ticket = self._claim(frame)
        except ProtocolError as error:
            return self.closed(error)
        if self.state is not _READY:
            return self._negotiate(ticket, frame, now)
        try:
            response = decode_response(ticket.response_type, ticket.version, frame)
        except ProtocolError as error:
            return self._undecodable(ticket, error)
        return Answer(ticket, response, self._throttle(ticket, response, now))

    def expire(self, now: float) -> Closing | None:
        """Look at the clock: send what a throttle held, end what is overdue.

        Returns:
            A Closing where a request had no answer in time, or nothing was sent and
            received for the idle timeout.
        """
        if self.state in {ConnectionState.CONNECTING, ConnectionState.CLOSED}:
            return None
        self._release(now)
        # What is held back cannot be overdue: its time begins with the throttle's end.
        overdue = [t for t in self._in_flight if t.deadline <= now]
        if overdue:
            return self._timed_out(overdue)
        if not self.in_flight and now >= self._idle_at:
            return self.closed(None)
        self.next_deadline = self._earliest()
        return None

    def closed(self, cause: BaseException | None) -> Closing:
        """The connection is gone, or has to go: end every ticket. Once is enough.

        Args:
            cause: what broke it; None where this side closes it.
        """
        return self._close(cause, {})

    # ---- how a connection begins -------------------------------------------------

    def _step(self, event: _Event) -> None:
        try:
            self.state = TRANSITIONS[self.state, event]
        except KeyError:
            what = f"{event.name} while {self.state.name}"
            raise InternalError(f"{self._identity.peer}: {what}") from None

    def _ask_versions(self, now: float) -> None:
        request = ApiVersionsRequest(
            client_software_name=self._identity.software_name,
            client_software_version=self._identity.software_version,
        )
        timeout = self._identity.request_timeout
        self._send(request, self._asked_version, now=now, timeout=timeout)

    def _negotiate(
        self, ticket: AnyTicket, frame: Buffer, now: float
    ) -> Closing | None:
        try:
            response = decode_api_versions(self._asked_version, frame)
            retry = next_attempt(self._asked_version, response)
        except (ProtocolError, UnsupportedVersion) as error:
            return self.closed(error)
        if retry is not None:
            self._asked_version = retry
            self._ask_versions(now)
            return None
        self.versions = ApiVersions.from_response(response)
        self._throttle(ticket, response, now)
        self._step(_Event.NEGOTIATED)
        self._expire_by(self._idle_at)
        return None

    # ---- requests ----------------------------------------------------------------

    def _version(self, kind: type[Request[Response]], limit: int | None) -> int:
        if self.state is not _READY:
            state = self.state.name.lower()
            raise ConnectionLost(f"{self._identity.peer}: the connection is {state}")
        return self.versions.usable(kind, limit)

    def _encode(self, request: Request[ResponseT], version: int) -> list[Buffer]:
        correlation_id = next_correlation_id(self._last_id)
        parts = encode_request_parts(
            request, version, correlation_id, self._identity.client_id
        )
        self._last_id = correlation_id
        return parts

    def _send(
        self, request: Request[ResponseT], version: int, *, now: float, timeout: float
    ) -> Ticket[ResponseT]:
        parts = self._encode(request, version)
        deadline = max(now, self.throttled_until) + timeout
        kind = request.response_type()
        ticket = Ticket(self._last_id, kind, version, deadline, now)
        self._put(ticket, parts, now)
        self._expire_by(deadline)
        return ticket

    def _put(self, ticket: AnyTicket | None, parts: list[Buffer], now: float) -> None:
        self._last_used = now
        if self._held or now < self.throttled_until:
            self._held.append((ticket, parts))
            self._expire_by(self.throttled_until)
            return
        if ticket is not None:
            self._in_flight.append(ticket)
        self._output += parts

    def _release(self, now: float) -> None:
        """Write what was held back, once the throttle is over."""
        if now < self.throttled_until:
            return
        while self._held:
            ticket, parts = self._held.popleft()
            if ticket is not None:
                ticket.sent_at = now
                self._in_flight.append(ticket)
            self._output += parts

    # ---- answers -----------------------------------------------------------------

    def _claim(self, frame: Buffer) -> AnyTicket:
        """Take the oldest request off the queue: the frame has to answer it."""
        correlation_id = peek_correlation_id(frame)
        if not self._in_flight:
            raise ProtocolError(f"answer {correlation_id} to no request")
        expected = self._in_flight[0]
        if correlation_id != expected.correlation_id:
            raise ProtocolError(
                f"answer {correlation_id} came where {expected.correlation_id} was due"
            )
        return self._in_flight.popleft()

    def _throttle(self, ticket: AnyTicket, response: Response, now: float) -> float:
        throttle_ms: int = getattr(response, "throttle_time_ms", 0)
        if throttle_ms <= 0 or ticket.version < THROTTLED_FROM.get(response.API_KEY, 0):
            return 0.0
        pause = throttle_ms / 1000
        # Never shortened by a later answer with a smaller throttle.
        self.throttled_until = max(self.throttled_until, now + pause)
        for pending in self._pending():
            pending.deadline += pause
        return pause

    # ---- deadlines and the end ---------------------------------------------------

    @property
    def _idle_at(self) -> float:
        return self._last_used + self._identity.idle_timeout

    def _pending(self) -> list[AnyTicket]:
        return [*self._in_flight, *(ticket for ticket, _ in self._held if ticket)]

    def _expire_by(self, deadline: float) -> None:
        if self.next_deadline is None or deadline < self.next_deadline:
            self.next_deadline = deadline

    def _earliest(self) -> float:
        deadlines = [ticket.deadline for ticket in self._pending()]
        if self._held:
            deadlines.append(self.throttled_until)
        return min(deadlines, default=self._idle_at)

    def _timed_out(self, overdue: list[AnyTicket]) -> Closing:
        errors = {
            ticket.correlation_id: RequestTimeout(
                f"{self._identity.peer}: no answer to {_api(ticket)} in time"
            )
            for ticket in overdue
        }
        return self._close(errors[overdue[0].correlation_id], errors)

    def _undecodable(self, ticket: AnyTicket, cause: ProtocolError) -> Closing:
        """End the ticket with the cause itself: asking again would not help it."""
        self._in_flight.appendleft(ticket)
        error = ProtocolError(f"{self._identity.peer}: {_api(ticket)}: {cause}")
        error.__cause__ = cause
        return self._close(error, {ticket.correlation_id: error})

    def _close(
        self, cause: BaseException | None, errors: Mapping[int, KafkaError]
    ) -> Closing:
        pending = self._pending()
        self._in_flight.clear()
        self._held.clear()
        self._output.clear()
        self.next_deadline = None
        self._step(_Event.CLOSED)
        failed = [
            (t, errors.get(t.correlation_id) or self._lost(cause)) for t in pending
        ]
        return Closing(cause, tuple(failed))

    def _lost(self, cause: BaseException | None) -> ConnectionLost:
        why = "closed" if cause is None else str(cause) or type(cause).__name__
        error = ConnectionLost(f"{self._identity.peer}: connection lost: {why}")
        error.__cause__ = cause
        return error


def _api(ticket: AnyTicket) -> str:
    return f"{ticket.response_type.NAME.removesuffix('Response')} v{ticket.version}"
