"""The requests of one connection: encoded, written, waiting for their answers.

A broker answers the requests of a connection one by one, in the order in which they
came. So the requests in flight are a queue: a frame from the broker answers the first
of them, and its correlation id must say so.

While a quota is in force (see ``throttle``) frames are held back in their order, and
the pause is added to the deadline of every request. Frames are also held back while no
request may come between those of an authentication, and once the session is over
(KIP-368). The requests of an authentication themselves are never held back: a quota
only keeps the broker from reading them.

Each request costs one comparison for its deadline: `Pipeline.next_deadline` is never
later than the earliest thing that can expire, and may be earlier. A stale value costs
one idle wake-up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import inf
from typing import Final, TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio._generic import Generic
from kafkaio.errors import ProtocolError
from kafkaio.protocol._headers import (
    RequestKind,
    peek_correlation_id,
    request_kind,
)
from kafkaio.protocol._message import Buffer, Request, Response, ResponseT

#: Kafka's clients keep the ids from here to 2^31-1 for authentication requests, which
#: are sent again while others are in flight (KIP-368).
RESERVED_IDS: Final = 2**31 - 8
_LAST_ID: Final = 2**31 - 1
#: Bytes of the correlation id, with which each answer begins.
_ID_SIZE: Final = 4


class LastAnswer:
    """The last answer to requests that mostly get the same one.

    Their owner passes it with each of them. An answer of the same bytes is the same
    object, which nobody may change: it is neither decoded nor checked again.
    """

    __slots__ = ("_content", "_response", "_version")

    def __init__(self) -> None:
        self._content: Buffer = b""
        self._version = -1
        self._response: Response | None = None

    def repeated(self, version: int, frame: Buffer) -> Response | None:
        """The answer, if a frame has its bytes; None for another one."""
        is_same = version == self._version and frame[_ID_SIZE:] == self._content
        return self._response if is_same else None

    def keep(self, version: int, frame: Buffer, response: Response) -> None:
        """Keep the answer that was decoded from a frame."""
        self._content, self._version = frame[_ID_SIZE:], version
        self._response = response


@dataclass(slots=True, eq=False)
class Ticket(Generic[ResponseT]):
    """One request that waits for its answer.

    Attributes:
        correlation_id: number of the request on its connection.
        kind: the API and the version, with the class of the answer.
        deadline: when the request times out; moved by throttling.
        sent_at: when the request was written; before that, when it was encoded.
        last: the last answer to requests like this one; None if each gets another.
        patience: seconds that it has once the requests before it are answered, at
            least; 0 if its time does not depend on them.
    """

    correlation_id: int
    kind: RequestKind[ResponseT]
    deadline: float
    sent_at: float
    last: LastAnswer | None = None
    patience: float = 0.0


AnyTicket: TypeAlias = Ticket[Response]


def next_reserved_id(last: int) -> int:
    """The reserved id after ``last``."""
    return last + 1 if RESERVED_IDS <= last < _LAST_ID else RESERVED_IDS


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
        hold_from: from when on frames are held back for an authentication; ``inf`` for
            never, ``-inf`` while they are held.
        last_used: when a request was put in or a frame came, the latest of them.
        last_size: bytes of the request that was encoded last, its length included.
        output: what has to be written now, in order: the driver takes the list, and
            puts an empty one in its place.
        written: bytes put into the output so far.
        next_deadline: when the pipeline has to be checked, at the latest; None for
            never.
    """

    __slots__ = (
        "_client_id",
        "_held",
        "_idle_timeout",
        "_in_flight",
        "_last_id",
        "_last_reserved_id",
        "hold_from",
        "last_size",
        "last_used",
        "next_deadline",
        "output",
        "throttled_until",
        "written",
    )

    def __init__(
        self, client_id: str, idle_timeout: float, now: float, *, last_id: int = -1
    ) -> None:
        self._client_id = client_id
        self._idle_timeout = idle_timeout
        self._last_id = last_id
        self._last_reserved_id = _LAST_ID
        self.last_used = now
        self.last_size = 0
        # Written and not answered, oldest first: the broker's order of answering.
        self._in_flight: deque[AnyTicket] = deque()
        # Encoded but held back; None for a request without an answer.
        self._held: deque[tuple[AnyTicket | None, list[Buffer]]] = deque()
        self.output: list[Buffer] = []
        self.written = 0
        self.throttled_until = now
        self.hold_from = inf
        self.next_deadline: float | None = None

    def __len__(self) -> int:
        """How many requests wait for an answer, those held back included."""
        return len(self._in_flight) + len(self._held)

    @property
    def held(self) -> int:
        """How many requests are held back."""
        return len(self._held)

    @property
    def held_bytes(self) -> int:
        """Bytes of the requests that are held back."""
        return sum(_size(parts) for _, parts in self._held) if self._held else 0

    # ---- requests --------------------------------------------------------------------

    def kind(
        self, request_type: type[Request[ResponseT]], version: int
    ) -> RequestKind[ResponseT]:
        """Return the kind of a request, to be passed to `send`."""
        return request_kind(request_type, version, self._client_id)

    def send(
        self,
        request: Request[ResponseT],
        kind: RequestKind[ResponseT],
        *,
        now: float,
        timeout: float,
        last: LastAnswer | None = None,
    ) -> Ticket[ResponseT]:
        """Encode a request that will be answered.

        Raises:
            UnsupportedVersion: the version cannot carry what is set.
            ProtocolError: a value has the wrong type or is out of range.
        """
        correlation_id, throttled_until = self._last_id + 1, self.throttled_until
        if correlation_id == RESERVED_IDS:
            correlation_id = 0
        parts = kind.encode(request, correlation_id)
        # Only now: a request that cannot be encoded must not use up an id.
        self._last_id = correlation_id
        size = self.last_size = len(parts[0]) if len(parts) == 1 else _size(parts)
        self.last_used = now
        # Not `max`, which takes as long as all of this.
        begins = now if now > throttled_until else throttled_until  # noqa: FURB136
        deadline = begins + timeout
        ticket = Ticket(correlation_id, kind, deadline, now, last)
        # A frame behind one that is held back has to wait as well, to keep the order.
        if self._held or not throttled_until <= now < self.hold_from:
            self._held.append((ticket, parts))
            self.expire_by(begins)
            return ticket
        self.output += parts
        self.written += size
        self._in_flight.append(ticket)
        if self.next_deadline is None or deadline < self.next_deadline:
            self.next_deadline = deadline
        return ticket

    def send_oneway(
        self, request: Request[ResponseT], kind: RequestKind[ResponseT], *, now: float
    ) -> None:
        """Encode a request without an answer; raises the same as `send`."""
        self.send(request, kind, now=now, timeout=inf)
        # Nothing waits for an answer: only the bytes stay, if they are held back.
        if self._held:
            _, parts = self._held.pop()
            self._held.append((None, parts))
        else:
            self._in_flight.pop()

    def send_authentication(
        self, request: Request[Response], version: int, *, now: float, timeout: float
    ) -> None:
        """Encode a request of an authentication, with a reserved correlation id.

        It is never held back, and does not count as use of the connection. The broker
        reads it after the requests that were written before, so its time begins when
        theirs ends.

        Raises:
            ProtocolError: a value has the wrong type or is out of range.
        """
        id_ = next_reserved_id(self._last_reserved_id)
        kind = self.kind(type(request), version)
        self._write(kind.encode(request, id_))
        self._last_reserved_id = id_
        before = (ticket.deadline for ticket in self._in_flight)
        deadline = max(now, self.throttled_until, *before) + timeout
        ticket = Ticket(id_, kind, deadline, now, patience=timeout)
        self._in_flight.append(ticket)
        self.expire_by(deadline)

    def withdraw(self, ticket: AnyTicket) -> bool:
        """Forget a request that is still held back.

        Returns:
            Whether it was held; else its answer will come, as for any other.
        """
        before = len(self._held)
        self._held = deque(held for held in self._held if held[0] is not ticket)
        return len(self._held) < before

    def _write(self, parts: list[Buffer]) -> None:
        self.output += parts
        self.written += _size(parts)

    # ---- answers ---------------------------------------------------------------------

    def claim(self, frame: Buffer, now: float) -> AnyTicket:
        """Take the oldest request off the queue: the frame has to answer it.

        A broker that refuses a further authentication says so 0.3 s later, and answers
        meanwhile what was written behind. So the oldest request but one may be answered
        first, if the oldest one belongs to an authentication.

        Raises:
            ProtocolError: it answers another one, or none.
        """
        self.last_used = now
        correlation_id = peek_correlation_id(frame)
        if not self._in_flight:
            raise ProtocolError(f"answer {correlation_id} to no request")
        in_flight = self._in_flight
        expected = in_flight[0]
        if correlation_id == expected.correlation_id:
            in_flight.popleft()
            if in_flight and in_flight[0].patience:
                following = in_flight[0]
                least = now + following.patience
                following.deadline = max(following.deadline, least)
            return expected
        behind = self._behind_authentication
        if behind is None or correlation_id != behind.correlation_id:
            raise ProtocolError(
                f"answer {correlation_id} came where {expected.correlation_id} was due"
            )
        del self._in_flight[1]
        return behind

    @property
    def _behind_authentication(self) -> AnyTicket | None:
        """The oldest request but one, if the oldest belongs to an authentication."""
        is_first = len(self._in_flight) > 1 and (
            self._in_flight[0].correlation_id >= RESERVED_IDS
        )
        return self._in_flight[1] if is_first else None

    @property
    def next_large(self) -> AnyTicket | None:
        """The request that a large frame has to answer; None for none.

        No answer of an authentication is large.
        """
        if self._behind_authentication is not None:
            return self._behind_authentication
        return self._in_flight[0] if self._in_flight else None

    def put_back(self, ticket: AnyTicket) -> None:
        """Undo `claim`: the ticket has no answer after all."""
        self._in_flight.appendleft(ticket)

    # ---- holding back ----------------------------------------------------------------

    def is_blocked(self, now: float) -> bool:
        """Whether requests wait only for an authentication."""
        return bool(self._held) and now >= max(self.hold_from, self.throttled_until)

    def pause(self, seconds: float, now: float) -> None:
        """Write nothing for a while, and give every request that much more time."""
        # Never shortened by a later answer with a smaller throttle.
        more = now + seconds - max(self.throttled_until, now)
        if more <= 0:
            return
        self.throttled_until = now + seconds
        for pending in self.pending():
            pending.deadline += more

    def release(self, now: float) -> None:
        """Write what was held back, if nothing holds it back any more."""
        if not self.throttled_until <= now < self.hold_from:
            return
        while self._held:
            ticket, parts = self._held.popleft()
            if ticket is not None:
                # The rest of its wait, after the throttle, was for an authentication.
                waited = now - max(ticket.sent_at, self.throttled_until)
                ticket.deadline += max(0.0, waited)
                ticket.sent_at = now
                self._in_flight.append(ticket)
            self._write(parts)

    # ---- deadlines and the end -------------------------------------------------------

    @property
    def idle_at(self) -> float:
        """When the connection is idle, if it is not used until then."""
        return self.last_used + self._idle_timeout

    def overdue(self, now: float) -> list[AnyTicket]:
        """The requests whose time has run out.

        A request that is held back is none of them: its time begins when it is written.
        """
        return [ticket for ticket in self._timed() if ticket.deadline <= now]

    def _timed(self) -> Iterator[AnyTicket]:
        """The requests that were written, without those whose turn has not come."""
        for ticket in self._in_flight:
            if not ticket.patience or ticket is self._in_flight[0]:
                yield ticket

    def expire_by(self, deadline: float) -> None:
        """Bring `next_deadline` forward, if it is later."""
        if self.next_deadline is None or deadline < self.next_deadline:
            self.next_deadline = deadline

    def update_deadline(self, now: float) -> None:
        """Set `next_deadline` to the earliest thing that can expire after ``now``."""
        deadlines = [ticket.deadline for ticket in self._timed()]
        if self._held and now < self.throttled_until:
            deadlines.append(self.throttled_until)
        elif not self._held and not deadlines:
            deadlines.append(self.idle_at)
        self.next_deadline = min(deadlines, default=None)

    @property
    def unwritten(self) -> list[AnyTicket]:
        """Every ticket that is still held back, oldest first."""
        return [ticket for ticket, _ in self._held if ticket]

    def pending(self) -> list[AnyTicket]:
        """Every ticket that has not ended, oldest first."""
        return [*self._in_flight, *self.unwritten]

    def clear(self) -> list[AnyTicket]:
        """Forget everything. Returns the tickets that had not ended."""
        pending = self.pending()
        self._in_flight.clear()
        self._held.clear()
        self.output.clear()
        self.next_deadline = None
        return pending


def _size(parts: list[Buffer]) -> int:
    return sum(map(len, parts))
