"""Which address of a registry is asked next, when, and when to give up.

A state machine without clock and random numbers. All addresses are asked in rounds. In
a round each is asked once, without a pause: one that is dead costs the time until it is
known. Between two rounds there is a pause, which grows. Invariant: no attempt begins,
and no pause ends, after the deadline.
"""

from __future__ import annotations

from typing import Final

from kafkaio._dataclass import dataclass
from kafkaio._machines.backoff import Backoff

_BACKOFF: Final = Backoff(100, 2_000)
#: Seconds for the connection to one of several addresses. A machine that is switched
#: off answers nothing, and without this it would take a share of the whole time.
CONNECT_LIMIT: Final = 2.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request to one address.

    Attributes:
        address: its number.
        wait: seconds to wait before.
        limit: seconds for the request, after the wait.
        connect_limit: seconds of those for the connection.
    """

    address: int
    wait: float
    limit: float
    connect_limit: float


class Attempts:
    """The attempts of one call.

    Args:
        addresses: how many there are.
        first: which of them is asked first.
        retries: how many rounds follow the first one.
        deadline: when the call ends, in seconds on the clock of ``now``.
    """

    __slots__ = ("_addresses", "_deadline", "_first", "_made", "_pauses", "_retries")

    def __init__(
        self, addresses: int, first: int, retries: int, deadline: float
    ) -> None:
        self._addresses = addresses
        self._first = first
        self._retries = retries
        self._deadline = deadline
        # Attempts that have failed.
        self._made = 0
        # What each address of this round asked to wait, in seconds.
        self._pauses: list[float] = []

    @property
    def made(self) -> int:
        """How many attempts have failed."""
        return self._made

    def begin(self, now: float) -> Attempt:
        """Return the first attempt."""
        return self._attempt(0.0, now)

    def failed(self, now: float, roll: float, pause: float = 0.0) -> Attempt | None:
        """Return what to do after an attempt failed in a way that may pass.

        Args:
            now: the time.
            roll: a random number in [0, 1).
            pause: seconds that the address asks to wait (``Retry-After``).

        Returns:
            The next attempt; None to give up.
        """
        self._made += 1
        self._pauses.append(pause)
        rounds, begun = divmod(self._made, self._addresses)
        if begun:
            wait = 0.0
        elif rounds > self._retries:
            return None
        else:
            # An address that did not ask for a pause may be asked before the others.
            wait = max(_BACKOFF.delay(rounds - 1, roll), min(self._pauses))
            self._pauses.clear()
        if now + wait >= self._deadline:
            return None
        return self._attempt(wait, now)

    def _attempt(self, wait: float, now: float) -> Attempt:
        rounds, begun = divmod(self._made, self._addresses)
        left = self._deadline - now - wait
        others = self._addresses - begun - 1
        is_last = rounds == self._retries and not others
        # A share, so that one that is silent leaves time for the others, and for
        # another round.
        limit = left if is_last else left / (others + 2)
        return Attempt(
            address=(self._first + begun) % self._addresses,
            wait=wait,
            limit=limit,
            connect_limit=min(limit, CONNECT_LIMIT) if self._addresses > 1 else limit,
        )
