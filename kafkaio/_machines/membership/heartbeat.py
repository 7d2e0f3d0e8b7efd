"""The timers of a group member: its heartbeats, its session, and the polls."""

from __future__ import annotations

from dataclasses import field

from kafkaio._dataclass import dataclass

_NEVER = float("inf")
#: Seconds until the first heartbeat when a rebalance is expected.
_SOON = 0.1


@dataclass(slots=True)
class Heartbeat:
    """Decides when to send a heartbeat and when the session has run out.

    Invariant: while none is in flight, the next one is due at most ``interval`` seconds
    after the last one was sent.

    When a rebalance is expected, the first heartbeats come sooner: each interval is
    twice the one before, until it is the usual one. The rebalance is then noticed after
    at most twice the time that it took to begin, at the cost of a few more heartbeats
    in each generation.

    The session counts from the moment at which an answered request was *sent*: the
    broker cannot have started its own timer earlier.

    Attributes:
        interval: seconds between two heartbeats.
        session: seconds after which the broker removes a silent member.
        next_at: when the next heartbeat is due.
        session_end: when the session runs out, if nothing is answered until then.
        in_flight: whether a heartbeat has no answer yet.
    """

    interval: float
    session: float
    next_at: float = _NEVER
    session_end: float = _NEVER
    in_flight: bool = False
    _sent_at: float = field(default=0.0, repr=False)
    # The next interval when a rebalance is expected, 0 when none is.
    _soon: float = field(default=0.0, repr=False)

    def start(self, now: float) -> None:
        """Another request has just shown that the member is alive."""
        self.next_at = now + self.interval
        self.session_end = now + self.session
        self.in_flight = False
        self._soon = 0.0

    def expect_rebalance(self, now: float) -> None:
        """The group is about to rebalance, and only a heartbeat can tell when."""
        self._soon = _SOON
        self.next_at = min(self.next_at, now + self._next_interval())

    def stop(self) -> None:
        """Stop: the member has no session to keep alive."""
        self.next_at = self.session_end = _NEVER
        self.in_flight = False
        self._soon = 0.0

    def is_due(self, now: float) -> bool:
        """Whether to send a heartbeat now."""
        return not self.in_flight and now >= self.next_at

    def sent(self, now: float) -> None:
        """A heartbeat was sent."""
        self.in_flight = True
        self._sent_at = now
        self.next_at = now + self._next_interval()

    def _next_interval(self) -> float:
        if not 0 < self._soon < self.interval:
            self._soon = 0.0
            return self.interval
        interval, self._soon = self._soon, 2 * self._soon
        return interval

    def answered(self) -> None:
        """The coordinator has answered: the session is extended."""
        self.in_flight = False
        # From the moment of sending: the coordinator may have begun the session then.
        self.session_end = self._sent_at + self.session

    def failed(self, now: float, delay: float) -> None:
        """Try again after ``delay`` s, or when the next is due: no answer came."""
        self.in_flight = False
        self.next_at = min(self.next_at, now + delay)

    def is_expired(self, now: float) -> bool:
        """Whether the coordinator must have removed the member by now."""
        return now >= self.session_end

    def renew(self, now: float) -> None:
        """Start a new session: the coordinator is being looked up again."""
        self.in_flight = False
        self.next_at = now
        self.session_end = now + self.session

    def deadline(self) -> float:
        """When there is something to do next."""
        # While one is in flight, no other is sent, however late its answer is.
        return (
            self.session_end if self.in_flight else min(self.next_at, self.session_end)
        )


@dataclass(slots=True)
class PollTimer:
    """Notices that the application has stopped polling (``max_poll_interval_ms``)."""

    interval: float
    expires_at: float = _NEVER

    def polled(self, now: float) -> None:
        """The application has polled."""
        self.expires_at = now + self.interval

    def is_expired(self, now: float) -> bool:
        """Whether the application has not polled for too long."""
        return now >= self.expires_at
