"""The requests of one connection: encoded, written, waiting for their answers.

A broker answers the requests of a connection one by one, in the order in which they
came. So the requests in flight are a queue: a frame from the broker answers the first
of them, and its correlation id must say so.

While a quota is in force (see ``throttle``) frames are held back in their order, and
the pause is added to the deadline of every request.

Each request costs one comparison for its deadline: `Pipeline.next_deadline` is never
later than the earliest thing that can expire, and may be earlier. A stale value costs
one idle wake-up.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Generic, TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio.errors import ProtocolError
from kafkaio.protocol.headers import encode_request_parts, peek_correlation_id
from kafkaio.protocol.message import Buffer, Request, Response, ResponseT

__all__ = ["AnyTicket", "Pipeline", "Ticket", "next_correlation_id"]

#: Kafka's clients keep the ids from here to 2^31-1 for authentication requests, which
#: are sent again while others are in flight (KIP-368).
RESERVED_IDS: Final = 2**31 - 8


@dataclass(slots=True, eq=False)
class Ticket(Generic[ResponseT]):
    """One request that waits for its answer.

    Attributes:
        correlation_id: number of the request on its connection.
        response_type: class of the answer.
        version: version of request and answer.
        deadline: when the request times out; moved by throttling.
        sent_at: when the request was written; before that, when it was encoded.
    """

    correlation_id: int
    response_type: type[ResponseT]
    version: int
    deadline: float
    sent_at: float


AnyTicket: TypeAlias = Ticket[Response]


def next_correlation_id(last: int) -> int:
    """The id after ``last``; it wraps to 0 before the reserved ids."""
    following = last + 1
    return following if following < RESERVED_IDS else 0


class Pipeline:
    """The requests of one connection that have no answer yet.

    Args:
        client_id: the client id in every request header.
        idle_timeout: seconds without use after which the connection is idle.
        now: the time; seconds of any monotonic clock, as in every method.
        last_id: the correlation id before the first one.

    Attributes:
        throttled_until: when frames may be written again; in the past if nothing is
            throttled.
        next_deadline: when the pipeline has to be looked at, at the latest; None for
            never.
    """

    __slots__ = (
        "_client_id",
        "_held",
        "_idle_timeout",
        "_in_flight",
        "_last_id",
        "_last_used",
        "_output",
        "next_deadline",
        "throttled_until",
    )

    def __init__(
        self, client_id: str, idle_timeout: float, now: float, *, last_id: int = -1
    ) -> None:
        self._client_id = client_id
        self._idle_timeout = idle_timeout
        self._last_id = last_id
        self._last_used = now
        # Written and not answered, oldest first: the broker's order of answering.
        self._in_flight: deque[AnyTicket] = deque()
        # Encoded but held back by a throttle; None for a request without an answer.
        self._held: deque[tuple[AnyTicket | None, list[Buffer]]] = deque()
        self._output: list[Buffer] = []
        self.throttled_until = now
        self.next_deadline: float | None = None

    def __len__(self) -> int:
        """How many requests wait for an answer, those held back included."""
        return len(self._in_flight) + len(self._held)

    @property
    def held(self) -> int:
        """How many requests a throttle holds back."""
        return len(self._held)

    # ---- requests --------------------------------------------------------------------

    def send(
        self, request: Request[ResponseT], version: int, *, now: float, timeout: float
    ) -> Ticket[ResponseT]:
        """Encode a request that will be answered.

        Raises:
            UnsupportedVersion: the version cannot carry what is set.
            ProtocolError: a value has the wrong type or is out of range.
        """
        parts = self._encode(request, version)
        deadline = max(now, self.throttled_until) + timeout
        kind = request.response_type()
        ticket = Ticket(self._last_id, kind, version, deadline, now)
        self._put(ticket, parts, now)
        self.expire_by(deadline)
        return ticket

    def send_oneway(
        self, request: Request[Response], version: int, *, now: float
    ) -> None:
        """Encode a request that the broker will not answer; raises what `send` does."""
        self._put(None, self._encode(request, version), now)

    def withdraw(self, ticket: AnyTicket) -> bool:
        """Forget a request that a throttle still holds back.

        Returns:
            Whether it was held; else its answer will come, as for any other.
        """
        before = len(self._held)
        self._held = deque(held for held in self._held if held[0] is not ticket)
        return len(self._held) < before

    def take_output(self) -> list[Buffer]:
        """Hand over what must be written now, in order."""
        output, self._output = self._output, []
        return output

    def _encode(self, request: Request[Response], version: int) -> list[Buffer]:
        correlation_id = next_correlation_id(self._last_id)
        parts = encode_request_parts(request, version, correlation_id, self._client_id)
        # A request that cannot be encoded takes no id.
        self._last_id = correlation_id
        return parts

    def _put(self, ticket: AnyTicket | None, parts: list[Buffer], now: float) -> None:
        self._last_used = now
        # What comes after a held frame has to wait as well, to keep the order.
        if self._held or now < self.throttled_until:
            self._held.append((ticket, parts))
            self.expire_by(self.throttled_until)
            return
        if ticket is not None:
            self._in_flight.append(ticket)
        self._output += parts

    # ---- answers ---------------------------------------------------------------------

    def claim(self, frame: Buffer, now: float) -> AnyTicket:
        """Take the oldest request off the queue: the frame has to answer it.

        Raises:
            ProtocolError: it answers another one, or none.
        """
        self._last_used = now
        correlation_id = peek_correlation_id(frame)
        if not self._in_flight:
            raise ProtocolError(f"answer {correlation_id} to no request")
        expected = self._in_flight[0]
        if correlation_id != expected.correlation_id:
            raise ProtocolError(
                f"answer {correlation_id} came where {expected.correlation_id} was due"
            )
        return self._in_flight.popleft()

    def put_back(self, ticket: AnyTicket) -> None:
        """Undo `claim`: the ticket has no answer after all."""
        self._in_flight.appendleft(ticket)

    # ---- throttling ------------------------------------------------------------------

    def pause(self, seconds: float, now: float) -> None:
        """Write nothing for a while, and give every request that much more time."""
        # Never shortened by a later answer with a smaller throttle.
        self.throttled_until = max(self.throttled_until, now + seconds)
        for pending in self.pending():
            pending.deadline += seconds

    def release(self, now: float) -> None:
        """Write what was held back, if the throttle is over."""
        if now < self.throttled_until:
            return
        while self._held:
            ticket, parts = self._held.popleft()
            if ticket is not None:
                ticket.sent_at = now
                self._in_flight.append(ticket)
            self._output += parts

    # ---- deadlines and the end -------------------------------------------------------

    @property
    def idle_at(self) -> float:
        """When the connection is idle, if it is not used until then."""
        return self._last_used + self._idle_timeout

    def overdue(self, now: float) -> list[AnyTicket]:
        """The requests whose time has run out.

        A request that is held back is none of them: its time begins when the throttle
        ends.
        """
        return [ticket for ticket in self._in_flight if ticket.deadline <= now]

    def expire_by(self, deadline: float) -> None:
        """Bring `next_deadline` forward, if it is later."""
        if self.next_deadline is None or deadline < self.next_deadline:
            self.next_deadline = deadline

    def update_deadline(self) -> None:
        """Set `next_deadline` to the earliest thing that can expire."""
        deadlines = [ticket.deadline for ticket in self.pending()]
        if self._held:
            deadlines.append(self.throttled_until)
        self.next_deadline = min(deadlines, default=self.idle_at)

    def pending(self) -> list[AnyTicket]:
        """Every ticket that has not ended, oldest first."""
        return [*self._in_flight, *(ticket for ticket, _ in self._held if ticket)]

    def clear(self) -> list[AnyTicket]:
        """Forget everything. Returns the tickets that had not ended."""
        pending = self.pending()
        self._in_flight.clear()
        self._held.clear()
        self._output.clear()
        self.next_deadline = None
        return pending
