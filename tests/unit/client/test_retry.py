"""The attempts of one operation, on virtual time."""

import asyncio
from itertools import pairwise
from typing import Any

import anyio
import pytest

from kafkaio._client.retry import Attempts, RetryLater, RetryPolicy, hedged
from kafkaio._config import ClientConfig
from kafkaio._machines.backoff import Backoff
from kafkaio._runtime.observer import guarded
from kafkaio.errors import (
    AuthenticationError,
    BrokerNotAvailable,
    ConnectionLost,
    NetworkError,
    RebalanceInProgress,
    RequestTimeout,
)
from tests.support.patience import HANGS
from tests.virtual_loop import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]

LOST = ConnectionLost("lost")


def now() -> float:
    return asyncio.get_running_loop().time()


class Heard:
    """Notes what is tried again."""

    def __init__(self) -> None:
        self.retries: list[tuple[str, int, float, BaseException]] = []

    def retrying(
        self, what: str, attempt: int, delay: float, cause: BaseException
    ) -> None:
        self.retries.append((what, attempt, delay, cause))


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def policy(heard: Heard) -> RetryPolicy:
    return RetryPolicy(Backoff(100, 1_000), guarded(heard))


class Flaky:
    """Fails with each of some errors in turn, and then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.called_at: list[float] = []

    async def __call__(self) -> str:
        self.called_at.append(now())
        if self.errors:
            raise self.errors.pop(0)
        return "done"


async def test_a_success_is_not_repeated(policy: RetryPolicy, heard: Heard) -> None:
    attempt = Flaky()
    assert await Attempts("x", policy, 5).run(attempt) == "done"
    assert len(attempt.called_at) == 1
    assert heard.retries == []


async def test_retriable_failures_are_repeated_with_a_back_off(
    policy: RetryPolicy, heard: Heard
) -> None:
    attempt = Flaky(LOST, LOST, LOST)
    assert await Attempts("x", policy, 5).run(attempt) == "done"
    waits = [b - a for a, b in pairwise(attempt.called_at)]
    for wait, nominal in zip(waits, (0.1, 0.2, 0.4), strict=True):
        assert 0.8 * nominal <= wait <= 1.2 * nominal
    assert [(what, n, why) for what, n, _, why in heard.retries] == [
        ("x", n, LOST) for n in (1, 2, 3)
    ]
    assert [delay for _, _, delay, _ in heard.retries] == pytest.approx(waits)


async def test_other_failures_are_raised_at_once(policy: RetryPolicy) -> None:
    attempt = Flaky(LOST, AuthenticationError("no"))
    with pytest.raises(AuthenticationError):
        await Attempts("x", policy, 5).run(attempt)
    assert len(attempt.called_at) == 2


async def test_the_deadline_ends_it_with_the_last_failure(policy: RetryPolicy) -> None:
    attempts = Attempts("finding it", policy, 3)
    with pytest.raises(RequestTimeout) as raised:
        await attempts.run(Flaky(*[LOST] * 99))
    assert str(raised.value) == (
        "finding it did not succeed within 3 s; the last failure: lost"
    )
    assert raised.value.__cause__ is LOST
    assert now() == pytest.approx(3)


async def test_the_deadline_cancels_an_attempt_that_hangs(policy: RetryPolicy) -> None:
    attempts = Attempts("x", policy, 2.5)
    attempts.stage = "it waits for godot"
    with pytest.raises(RequestTimeout, match=r"within 2.5 s; it waits for godot$"):
        await attempts.run(anyio.sleep_forever)
    assert now() == pytest.approx(2.5)


async def test_an_attempt_that_hangs_after_a_failure_is_named_too(
    policy: RetryPolicy,
) -> None:
    attempts = Attempts("x", policy, 2.5)
    calls = 0

    async def fail_and_hang() -> None:
        nonlocal calls
        calls += 1
        attempts.stage = "it waits for godot"
        if calls == 1:
            raise LOST
        await anyio.sleep_forever()

    text = r"within 2.5 s; it waits for godot; the last failure: lost$"
    with pytest.raises(RequestTimeout, match=text):
        await attempts.run(fail_and_hang)


async def test_a_better_reason_for_the_end(policy: RetryPolicy) -> None:
    why = BrokerNotAvailable("nobody is there")
    with pytest.raises(RequestTimeout, match="nobody is there") as raised:
        await Attempts("x", policy, 1).run(Flaky(*[LOST] * 99), lambda: why)
    assert raised.value.__cause__ is why
    with pytest.raises(RequestTimeout) as raised:
        await Attempts("x", policy, 1).run(Flaky(*[LOST] * 99), lambda: None)
    assert raised.value.__cause__ is LOST


async def test_an_attempt_that_waits_for_an_event(
    policy: RetryPolicy, heard: Heard
) -> None:
    event = anyio.Event()
    asyncio.get_running_loop().call_later(2, event.set)
    first = RetryLater(LOST, event.wait)
    unasked = RetryLater(LOST, event.wait, is_failure=False)
    attempt = Flaky(first, unasked)
    attempts = Attempts("x", policy, 5)
    assert await attempts.run(attempt) == "done"
    assert attempt.called_at == pytest.approx([0, 2, 2])
    assert heard.retries == [("x", 1, 0.0, LOST)]
    assert attempts.failures == 1


async def test_the_wait_for_an_event_may_fail(policy: RetryPolicy) -> None:
    wait = Flaky(LOST, AuthenticationError("no"))
    attempt = Flaky(*[RetryLater(LOST, wait)] * 3)
    with pytest.raises(AuthenticationError):
        await Attempts("x", policy, 5).run(attempt)
    assert len(attempt.called_at) == 2


async def test_pausing_in_a_loop_of_ones_own(policy: RetryPolicy, heard: Heard) -> None:
    attempts = Attempts("x", policy, 1)
    for _ in range(3):
        await attempts.pause(LOST)
    # 0.1 + 0.2 + 0.4 s; the next wait would end after the deadline.
    with pytest.raises(RequestTimeout, match="x did not succeed within 1 s"):
        await attempts.pause(LOST)
    assert len(heard.retries) == 3
    assert 0.5 < now() < 0.9


async def test_failures_that_are_not_told(policy: RetryPolicy, heard: Heard) -> None:
    attempts = Attempts("x", policy)
    await attempts.pause(LOST)
    before = now()
    await attempts.pause(None)
    assert [why for *_, why in heard.retries] == [LOST]
    assert now() > before
    assert attempts.failures == 2


async def test_waiting_for_what_failed_elsewhere(
    policy: RetryPolicy, heard: Heard
) -> None:
    attempts = Attempts("x", policy)
    attempts.failed(LOST)
    await anyio.sleep(0.05)
    await attempts.wait()
    assert now() == attempts.due
    ((_, attempt, delay, why),) = heard.retries
    assert (attempt, why) == (1, LOST)
    assert delay == pytest.approx(attempts.due - 0.05)
    await attempts.wait()
    assert len(heard.retries) == 1


async def test_without_a_back_off_others_run(heard: Heard) -> None:
    attempts = Attempts("x", RetryPolicy(Backoff(0, 0), guarded(heard)))
    ran: list[int] = []
    asyncio.get_running_loop().call_soon(ran.append, 1)
    await attempts.pause(LOST)
    assert ran == [1]
    assert heard.retries == [("x", 1, 0.0, LOST)]


async def test_a_success_in_between(policy: RetryPolicy, heard: Heard) -> None:
    attempts = Attempts("x", policy)
    for _ in range(5):
        await attempts.pause(LOST)
    attempts.succeeded()
    before = now()
    await attempts.wait()
    assert now() == before
    await attempts.pause(LOST)
    assert heard.retries[-1][1] == 1
    assert now() - before < 0.13


async def test_errors_that_surface(policy: RetryPolicy) -> None:
    attempts = Attempts("x", policy, 1, surfaced=(RebalanceInProgress,))
    rebalancing = RebalanceInProgress("wait")
    attempts.note(rebalancing)
    assert attempts.expired() is rebalancing
    attempts.note(LOST)
    assert isinstance(attempts.expired(), RequestTimeout)


async def test_an_attempt_that_the_deadline_cuts_short(policy: RetryPolicy) -> None:
    attempts = Attempts("x", policy, 2)
    await anyio.sleep(2)
    attempts.note(RequestTimeout("no answer"))
    assert attempts.last is not None  # it is all that is known
    attempts = Attempts("x", policy, 2)
    attempts.note(LOST)
    await anyio.sleep(2)
    attempts.note(RequestTimeout("no answer"))
    error = attempts.expired()
    assert str(error) == (
        "x did not succeed within 2 s; no answer; the last failure: lost"
    )
    assert error.__cause__ is LOST


async def test_what_is_left(policy: RetryPolicy) -> None:
    attempts = Attempts("x", policy, 2)
    assert attempts.within(30) == pytest.approx(2)
    assert attempts.within(1) == 1
    await anyio.sleep(3)
    assert attempts.within(30) == 0.001
    assert Attempts("x", policy).within(30) == 30


async def test_a_policy_of_options(heard: Heard) -> None:
    async def sleep(seconds: float) -> None:
        raise AuthenticationError(f"closed, not {seconds >= 0.4}")

    config = ClientConfig(retry_backoff_ms=500, retry_backoff_max_ms=500)
    policy = RetryPolicy.from_config(config, guarded(heard), sleep)
    with pytest.raises(AuthenticationError, match="closed, not True"):
        await Attempts("x", policy, 5).run(Flaky(LOST))


async def test_a_hedged_attempt_that_ends_early_starts_no_task() -> None:
    async def first() -> set[asyncio.Task[Any]]:
        await asyncio.sleep(0)
        return asyncio.all_tasks()

    async def another() -> set[asyncio.Task[Any]]:
        raise AssertionError

    assert await hedged(first, another, HANGS) == asyncio.all_tasks()


async def test_a_hedged_attempt_that_takes_long_is_beaten() -> None:
    ended: list[str] = []

    async def first() -> int:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("first")
        return 1

    async def another() -> int:
        return 2

    assert await hedged(first, another, 0.001) == 2
    assert ended == ["first"]


async def test_a_hedged_attempt_beats_the_other_one() -> None:
    began, ended = asyncio.Event(), list[str]()

    async def first() -> int:
        await began.wait()
        return 1

    async def another() -> int:
        began.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("another")
        return 2

    assert await hedged(first, another, 0.001) == 1
    assert ended == ["another"]


async def test_hedged_attempts_that_fail() -> None:
    began = asyncio.Event()

    async def first() -> int:
        await began.wait()
        raise NetworkError("first")

    async def another() -> int:
        began.set()
        raise NetworkError("another")

    async def fails_at_once() -> int:
        raise NetworkError("at once")

    with pytest.raises(NetworkError, match="another"):
        await hedged(first, another, 0.001)
    began.clear()
    with pytest.raises(NetworkError, match="at once"):
        await hedged(fails_at_once, another, HANGS)
    assert not began.is_set()
