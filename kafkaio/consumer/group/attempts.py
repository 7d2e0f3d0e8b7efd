"""The time that one call has for its attempts."""

from __future__ import annotations

import anyio

from kafkaio._machines.backoff import Backoff
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.observer import Observer
from kafkaio.errors import KafkaError, RebalanceInProgress, RequestTimeout

__all__ = ["Attempts"]


class Attempts:
    """One call's time: how long it has, and how long it waits in between.

    Args:
        what: what is tried, for messages.
        timeout: seconds, from now on.
    """

    __slots__ = ("_attempt", "_last", "_timeout", "_what", "deadline")

    def __init__(self, what: str, timeout: float) -> None:
        self._what = what
        self._timeout = timeout
        self.deadline = now() + timeout
        self._attempt = 0
        self._last: KafkaError | None = None

    def failed(self, error: KafkaError) -> None:
        """Note what the last attempt failed by, which `expired` tells."""
        self._last = error

    def within(self, limit: float) -> float:
        """What is left, but not more than ``limit``; a moment at least."""
        return max(0.001, min(limit, self.deadline - now()))

    async def pause(
        self, error: KafkaError, backoff: Backoff, observer: Observer
    ) -> None:
        """Wait before the next attempt.

        Raises:
            RequestTimeout: there is no time for one.
            RebalanceInProgress: that is what the last attempt failed by.
        """
        self.failed(error)
        delay = backoff.delay(self._attempt, roll())
        self._attempt += 1
        if now() + delay >= self.deadline:
            raise self.expired()
        observer.retrying(self._what, self._attempt, delay, error)
        await anyio.sleep(delay)

    def expired(self) -> KafkaError:
        """What to raise when time is up."""
        if isinstance(self._last, RebalanceInProgress):
            return self._last
        last = "" if self._last is None else f"; the last failure: {self._last}"
        error = RequestTimeout(
            f"{self._what} did not succeed within {self._timeout:g} s{last}"
        )
        error.__cause__ = self._last
        return error
