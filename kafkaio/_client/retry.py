"""The attempts of one operation: repeated with a back-off until a deadline.

`Attempts` counts the failures of one operation, computes the waits between its
attempts (KIP-580), reports each retry to the observer, and makes the error that is
raised when the time is over. It has two forms of use. `Attempts.run` repeats a
callable. Code that decides by itself what is worth another attempt, and acts on a
failure in between, has its own loop and calls `Attempts.pause`::

    attempts = Attempts("get a producer id", policy)
    while (error := await ask()) is not None:
        forget_what_was_wrong(error)
        await attempts.pause(error)

`kafkaio._client.fanout` does the same for operations on many items at many brokers.
`race` is for attempts at the same thing that may run at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from math import inf
from typing import Self, TypeVar

from kafkaio._config import ClientConfig
from kafkaio._dataclass import dataclass
from kafkaio._machines.backoff import Backoff
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.group import TaskGroup
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.scopes import CancelScope
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import KafkaError, RequestTimeout

T = TypeVar("T")

#: The least seconds for an attempt, however close the deadline is: a timeout of 0 would
#: fail before it has begun.
_LEAST: float = 0.001
#: The part of the remaining time that connecting may take; see `Attempts.to_connect`.
_CONNECTING: float = 0.95


class RetryLater(Exception):
    """Raised by an attempt that waits for an event before it is worth repeating.

    Args:
        reason: why the attempt did not succeed.
        wait: waits for the event; replaces the back-off.
        is_failure: whether the attempt counts as failed. It does not if it lacks
            information that was not asked for yet.
    """

    def __init__(
        self,
        reason: KafkaError,
        wait: Callable[[], Awaitable[object]],
        *,
        is_failure: bool = True,
    ) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.wait = wait
        self.is_failure = is_failure


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The policy of all retries of a client.

    Attributes:
        backoff: the waits between attempts.
        observer: each retry is reported to it.
        sleep: waits for some seconds; raises once the client is closed.
    """

    backoff: Backoff
    observer: Observer
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    @classmethod
    def from_config(
        cls,
        config: ClientConfig,
        observer: Observer,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> Self:
        """Make the policy of a client's options."""
        backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        return cls(backoff, observer, sleep)


class Attempts:
    """The attempts of one operation.

    Args:
        what: names the operation, for messages and for the observer.
        policy: the back-off, and the observer of retries.
        timeout: seconds for all attempts, from now on; None sets no limit.
        surfaced: errors that are raised as they are when the time is over, if the
            last attempt failed with one. All others become a RequestTimeout.
        at: the time, for callers that know it; None asks the clock.

    Attributes:
        what: names the operation.
        deadline: the time of the loop's clock at which the attempts end.
        failures: failed attempts since the last success.
        last: the last failure.
        due: the time of the loop's clock before which no attempt should begin.
        stage: how far the present attempt has come, for the error when the time is
            over; empty between two attempts.
        held: returns what keeps the present attempt from being sent, such as a
            throttle; empty for nothing. The error has it in place of the stage.
    """

    # What does not change if the first attempt succeeds stands in the class, where it
    # costs nothing: a commit after each record makes one of these each time.
    failures: int = 0
    last: KafkaError | None = None
    due: float = 0.0
    stage: str = ""
    held: Callable[[], str] = str
    _delay: float = 0.0
    #: The failures with a wait of their own, which do not make the back-off grow.
    _paced: int = 0
    #: The failure that `wait` reports; None if it is not to be reported.
    _reason: KafkaError | None = None

    def __init__(
        self,
        what: str,
        policy: RetryPolicy,
        timeout: float | None = None,
        surfaced: tuple[type[KafkaError], ...] = (),
        at: float | None = None,
    ) -> None:
        self.what: str = what
        if timeout is None:
            self.deadline: float = inf
        else:
            self.deadline = (now() if at is None else at) + timeout
        self._policy = policy
        self._timeout = timeout
        self._surfaced = surfaced

    def within(self, limit: float) -> float:
        """Return the seconds left, at most ``limit``, at least a millisecond."""
        return max(_LEAST, min(limit, self.deadline - now()))

    def to_connect(self, limit: float) -> float:
        """Return the seconds for finding a broker and connecting to it.

        It is at most ``limit``, and less than the time left: then the error names the
        step that failed, and not only the timeout of the whole.
        """
        return max(_LEAST, min(limit, _CONNECTING * (self.deadline - now())))

    def leave(self, seconds: float) -> None:
        """Shorten the time left to so many seconds, if it is limited and longer."""
        cut = self.deadline - now() - seconds
        if self._timeout is not None and cut > 0:
            self.deadline -= cut
            self._timeout -= cut

    def note(self, error: KafkaError) -> None:
        """Remember a failure for `expired`, without counting it.

        An attempt that the deadline has cut short says less than a failure before it,
        such as a refusal: it is the stage that was reached, and not the last failure.
        """
        # Timers may fire a little before the deadline.
        is_cut = isinstance(error, RequestTimeout) and self.deadline - now() < _LEAST
        if is_cut and self.last is not None:
            self.stage = str(error)
        else:
            self.last = error

    def failed(self, error: KafkaError | None, delay: float | None = None) -> None:
        """Count a failure: the next attempt is ``due`` after the back-off.

        Args:
            error: the failure; None for one that is not to be reported.
            delay: seconds to wait in place of the back-off, which does not grow then.
        """
        self._reason = error
        self.stage = ""
        if error is not None:
            self.last = error
        if delay is None:
            grown = self.failures - self._paced
            self._delay = self._policy.backoff.delay(grown, roll())
        else:
            self._delay = delay
            self._paced += 1
        self.failures += 1
        self.due = now() + self._delay

    def succeeded(self) -> None:
        """Note a success: the next failure is a first one, and no wait is due."""
        self.failures, self._paced, self.due, self.last = 0, 0, 0.0, None
        self._reason = None

    async def wait(self) -> None:
        """Wait until the next attempt is due, and report the retry.

        Raises:
            RequestTimeout: it is not due before the deadline; or a ``surfaced`` error.
        """
        delay = self.due - now()
        if delay > 0:
            await self._wait(delay)

    async def pause(self, error: KafkaError | None) -> None:
        """Count a failure, report the retry, and wait for the back-off.

        The event loop runs at least once, even if the back-off is 0 ms.

        Args:
            error: the failure; None for one that is not to be reported.

        Raises:
            RequestTimeout: as in `wait`; or a ``surfaced`` error.
        """
        self.failed(error)
        await self._wait(self._delay)

    async def _wait(self, delay: float) -> None:
        if self.due >= self.deadline:
            raise self.expired()
        if self._reason is not None:
            self._report(delay, self._reason)
        await self._policy.sleep(delay)

    async def run(
        self,
        attempt: Callable[[], Awaitable[T]],
        explain: Callable[[], KafkaError | None] | None = None,
    ) -> T:
        """Repeat ``attempt`` until it succeeds, while its failures are retriable.

        An attempt, or a wait, that is under way at the deadline is cancelled.

        Args:
            attempt: raises a retriable KafkaError or `RetryLater` to be repeated.
            explain: returns a better reason than the last failure, or None; called
                at the deadline.

        Raises:
            RequestTimeout: the deadline has passed; the cause is the last failure.
            KafkaError: a failure that is not retriable.
        """
        with CancelScope(deadline=self.deadline):
            wait: Callable[[], Awaitable[object]] | None = None
            while True:
                try:
                    # In the `try`, too: a failure of the wait, such as an event that
                    # cannot happen any more, is judged like one of the attempt.
                    if wait is not None:
                        await wait()
                        wait = None
                    return await attempt()
                except RetryLater as later:
                    wait = self._later(later)
                except KafkaError as error:
                    if not error.retriable:
                        raise
                    self.failed(error)
                    self._report(self._delay, error)
                    wait = self._sleep
        if explain is not None:
            self.last = explain() or self.last
        raise self.expired()

    def _later(self, later: RetryLater) -> Callable[[], Awaitable[object]]:
        self.stage = ""
        if later.is_failure:
            self.last = later.reason
            self.failures += 1
            self._report(0.0, later.reason)
        return later.wait

    async def _sleep(self) -> None:
        await self._policy.sleep(self._delay)

    def _report(self, delay: float, error: KafkaError) -> None:
        self._policy.observer.retrying(self.what, self.failures, delay, error)

    def expired(self) -> KafkaError:
        """Make the error for an operation whose time is over.

        Returns:
            A RequestTimeout that names and has as its cause the last failure; or the
            last failure itself, if it is ``surfaced``.
        """
        if isinstance(self.last, self._surfaced):
            return self.last
        why = self.last or self.stage
        now = self.held() or self.stage
        return timed_out(self.what, self._timeout or 0.0, why, now)


def timed_out(
    what: str, timeout: float, why: KafkaError | str, now: str = ""
) -> RequestTimeout:
    """Make the error for an operation that had no success in time.

    Args:
        what: names the operation.
        timeout: seconds that it had.
        why: the last failure, which becomes the cause; or the stage it had reached.
        now: the stage reached since the last failure, or what keeps it from being sent.
    """
    is_failure = isinstance(why, KafkaError)
    last = f"the last failure: {why}" if is_failure else why
    told = [now, last] if is_failure else [now or last]
    tail = "".join(f"; {text}" for text in told if text)
    # The number that the caller gave, and not what was left of it at the first attempt.
    seconds = round(timeout, 3 if timeout < 1 else 2)
    error = RequestTimeout(f"{what} did not succeed within {seconds:g} s{tail}")
    error.__cause__ = why if isinstance(why, KafkaError) else None
    return error


async def _sort(
    attempt: Callable[[], Awaitable[T]], won: list[T], failures: list[KafkaError]
) -> None:
    """Add the outcome of an attempt to one of the lists."""
    try:
        won.append(await attempt())
    except KafkaError as error:
        failures.append(error)


async def race(
    attempts: Iterable[Callable[[], Awaitable[T]]], head_start: float
) -> tuple[list[T], list[KafkaError]]:
    """Run attempts until one succeeds; the others are cancelled then.

    Args:
        attempts: the attempts, in order.
        head_start: seconds after which the next attempt begins beside one that has
            not ended; it begins at once after one that has failed.

    Returns:
        The result of the first to succeed, or nothing; and the failures before that.
    """
    won: list[T] = []
    failures: list[KafkaError] = []
    progress = Wakeup()

    async def run(attempt: Callable[[], Awaitable[T]]) -> None:
        await _sort(attempt, won, failures)
        progress.notify()

    async def ended(running: int, until: float | None) -> None:
        while not won and len(failures) < running:
            if not await progress.wait(until):
                return

    async with TaskGroup() as group:
        running = 0
        for attempt in attempts:
            group.start_soon(run, attempt)
            running += 1
            await ended(running, now() + head_start)
            if won:
                break
        await ended(running, None)
        # Nobody would take the results of the attempts that still run.
        group.cancel_scope.cancel()
    return won, failures


async def hedged(
    first: Callable[[], Awaitable[T]],
    another: Callable[[], Awaitable[T]],
    head_start: float,
) -> T:
    """Run an attempt, and another one beside it if it takes long.

    Args:
        first: the attempt. If it fails within the head start, the other never begins.
        another: the other attempt.
        head_start: seconds until the other attempt begins.

    Returns:
        The result of the first to succeed; the other one is cancelled.

    Raises:
        KafkaError: the first failure; if both run, both have failed.
    """
    won: list[T] = []
    failures: list[KafkaError] = []
    # Most attempts end before the other one begins, and need no task: the first is made
    # in this one, and the other is started by a timer.
    here = CancelScope()

    async def run_another() -> None:
        await _sort(another, won, failures)
        if won:
            here.cancel()

    async with TaskGroup() as group:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(head_start, group.start_soon, run_another)
        try:
            with here:
                await _sort(first, won, failures)
        finally:
            timer.cancel()
        if won:
            group.cancel_scope.cancel()
    if won:
        return won[0]
    raise failures[0]
