"""When a group member speaks: its heartbeat, its session, and the user's polls."""

from __future__ import annotations

from dataclasses import field

from kafkaio._dataclass import dataclass

__all__ = ["Heartbeat", "PollTimer"]

_NEVER = float("inf")
#: Seconds until the first heartbeat where a rebalance is expected.
_SOON = 0.1


@dataclass(slots=True)
class Heartbeat:
    """Decides when to send a heartbeat and when the session has run out.

    Law: while none is in flight, the next one is due at most ``interval`` seconds after
    the last one was sent. Where a rebalance is expected the first ones come sooner:
    each interval is twice the one before, until it is the usual one, so that the
    rebalance is noticed after at most twice the time that it took to begin, for a
    handful of heartbeats more in each generation. The session counts from the moment
    at which an answered request was *sent*: the broker's own clock for us cannot have
    started earlier.
    """

    interval: float
    session: float
    next_at: float = _NEVER
    session_end: float = _NEVER
    in_flight: bool = False
    _sent_at: float = field(default=0.0, repr=False)
    # The next interval where a rebalance is expected, 0 where none is.
    _soon: float = field(default=0.0, repr=False)

    def start(self, now: float) -> None:
        """The member has just proved to be alive by another request."""
        self.next_at = now + self.interval
        self.session_end = now + self.session
        self.in_flight = False
        self._soon = 0.0

    def expect_rebalance(self, now: float) -> None:
        """The group is about to rebalance, which only a heartbeat can tell."""
        self._soon = _SOON
        self.next_at = min(self.next_at, now + self._next_interval())

    def stop(self) -> None:
        """Nothing to keep alive."""
        self.next_at = self.session_end = _NEVER
        self.in_flight = False
        self._soon = 0.0

    def is_due(self, now: float) -> bool:
        """Whether to send one now."""
        return not self.in_flight and now >= self.next_at

    def sent(self, now: float) -> None:
        """One is on its way."""
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
        """The coordinator has heard us."""
        self.in_flight = False
        self.session_end = self._sent_at + self.session

    def failed(self, now: float, delay: float) -> None:
        """No answer; try again after ``delay`` seconds, or when the next is due."""
        self.in_flight = False
        self.next_at = min(self.next_at, now + delay)

    def is_expired(self, now: float) -> bool:
        """Whether the coordinator must have given us up by now."""
        return now >= self.session_end

    def renew(self, now: float) -> None:
        """Count a session anew, for the coordinator is being looked up again."""
        self.in_flight = False
        self.next_at = now
        self.session_end = now + self.session

    def deadline(self) -> float:
        """The next moment at which there is something to do."""
        return (
            self.session_end if self.in_flight else min(self.next_at, self.session_end)
        )


@dataclass(slots=True)
class PollTimer:
    """Notices a user who has stopped polling (``max_poll_interval_ms``)."""

    interval: float
    expires_at: float = _NEVER

    def polled(self, now: float) -> None:
        """The user is there."""
        self.expires_at = now + self.interval

    def is_expired(self, now: float) -> bool:
        """Whether the user is taken for stuck."""
        return now >= self.expires_at
