"""How long to wait before a retry (KIP-580), and before connecting again."""

from __future__ import annotations

from kafkaio._dataclass import dataclass

#: Every wait is spread by this fraction to both sides, so that clients do not all come
#: at the same moment when a broker returns.
JITTER = 0.2
#: A broker that refuses the credentials is dialled again after the longest wait between
#: attempts, and after up to this many times as long: accounts are locked after too many
#: wrong passwords, and an early attempt gains nothing.
REFUSED_FACTOR = 10
#: Beyond this exponent the doubled base exceeds any limit that an option can have.
_MAX_EXPONENT = 62


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential back-off with jitter: ``min(max, base * 2**attempt)`` +-20 %.

    Attributes:
        base_ms: the wait after the first failure, in milliseconds.
        max_ms: no wait is longer than this before the jitter, in milliseconds.
    """

    base_ms: int
    max_ms: int

    def delay(self, attempt: int, roll: float) -> float:
        """How long to wait.

        Args:
            attempt: how many waits came before this one; 0 for the first.
            roll: a random number in [0, 1).

        Returns:
            Seconds.
        """
        exponent = min(max(attempt, 0), _MAX_EXPONENT)
        term: int = min(self.max_ms, self.base_ms << exponent)
        return term * (1 - JITTER + 2 * JITTER * roll) / 1000


@dataclass(slots=True)
class ReconnectSchedule:
    """When one broker may be dialled again, and how long the set-up may take.

    Only ``ready`` resets the schedule. A TCP connection alone proves little: a broker
    that accepts it and then closes it would be dialled without a pause.

    Attributes:
        backoff: the wait between attempts.
        set_up: the time that one attempt may take, growing with failed attempts.
        failures: failed attempts and lost connections since the last READY.
        set_up_failures: failed attempts since the last READY.
        refusals: attempts whose credentials the broker refused, since the last READY.
        not_before: when the next attempt may start.
    """

    backoff: Backoff
    set_up: Backoff
    failures: int = 0
    set_up_failures: int = 0
    refusals: int = 0
    # Invariant: never moves backwards while attempts keep failing.
    not_before: float = 0.0

    def remaining(self, now: float) -> float:
        """Seconds until the next attempt may start; 0 when it may start now."""
        return max(0.0, self.not_before - now)

    def set_up_timeout(self, roll: float) -> float:
        """Seconds that the next attempt may take."""
        return self.set_up.delay(self.set_up_failures, roll)

    def failed(self, now: float, roll: float) -> None:
        """Note that an attempt failed."""
        self.lost(now, roll)
        self.set_up_failures += 1

    def refused(self, now: float, roll: float) -> None:
        """Note that the broker refused the credentials: wait longer than otherwise."""
        longest = self.backoff.max_ms
        wait = Backoff(longest, REFUSED_FACTOR * longest).delay(self.refusals, roll)
        self.not_before = max(self.not_before, now + wait)
        self.failures += 1
        self.refusals += 1

    def lost(self, now: float, roll: float) -> None:
        """Note that a connection broke; the time for the set-up stays as it is."""
        wait = self.backoff.delay(self.failures, roll)
        self.not_before = max(self.not_before, now + wait)
        self.failures += 1

    def ready(self) -> None:
        """Note that a connection reached READY: the next failure is a first one."""
        self.failures = self.set_up_failures = self.refusals = 0
        self.not_before = 0.0
