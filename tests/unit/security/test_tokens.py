"""One token for all connections: sharing, refresh, back-off, bad providers."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, strategies as st

from kafkaio._machines.backoff import Backoff
from kafkaio._machines.token import PAUSE, TokenRefresh
from kafkaio.errors import AuthenticationError, ClosedError
from kafkaio.security._tokens import TokenSource
from kafkaio.types import Token

SECRET = "token-0451"
LATER = 32503680000.0


class Provider:
    """Returns tokens of a given life; fails while ``error`` is set."""

    def __init__(self, life: float = 3600.0) -> None:
        self.life = life
        self.calls = 0
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.called = asyncio.Event()
        self.asked: asyncio.Queue[int] = asyncio.Queue()

    async def __call__(self) -> Token:
        self.calls += 1
        self.called.set()
        self.asked.put_nowait(self.calls)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return Token(value=f"{SECRET}.{self.calls}", expires=time.time() + self.life)


async def test_a_hundred_callers_share_one_call() -> None:
    provider = Provider()
    source = TokenSource(provider)
    tokens = await asyncio.gather(*(source.token() for _ in range(100)))
    assert len({id(token) for token in tokens}) == 1
    assert provider.calls == 1
    assert SECRET not in repr(source)
    await source.aclose()


async def test_a_cancelled_caller_does_not_end_the_call() -> None:
    provider = Provider()
    provider.gate.clear()
    source = TokenSource(provider)
    first, second = (asyncio.create_task(source.token()) for _ in range(2))
    await provider.called.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    provider.gate.set()
    assert (await second).value == f"{SECRET}.1"
    await source.aclose()


async def test_the_old_token_is_used_while_a_new_one_is_asked_for() -> None:
    provider = Provider(life=3.0)
    source = TokenSource(provider)
    old = await source.token()
    provider.gate.clear()
    provider.called.clear()
    await provider.called.wait()
    assert await source.token() is old
    assert time.time() < old.expires
    provider.gate.set()
    await source._asking.wait()  # type: ignore[union-attr]
    assert await source.token() is not old
    assert provider.calls == 2
    await source.aclose()


async def test_the_old_token_survives_a_failed_refresh() -> None:
    provider = Provider(life=3.0)
    source = TokenSource(provider)
    old = await source.token()
    provider.error = RuntimeError(SECRET)
    provider.gate.clear()
    while await provider.asked.get() < 2:
        assert await source.token() is old
    asking = source._asking
    assert asking is not None
    provider.gate.set()
    await asking.wait()
    assert await source.token() is old
    assert source._refresh.failures == 1
    provider.error = None
    while await provider.asked.get() < 3:
        assert provider.calls < 3
    while await source.token() is old:  # noqa: ASYNC110
        await asyncio.sleep(0)  # the call ends
    assert (await source.token()).value == f"{SECRET}.3"
    await source.aclose()


async def test_after_a_failure_the_error_is_told_without_a_call() -> None:
    provider = Provider()
    provider.error = RuntimeError(SECRET)
    source = TokenSource(provider)
    for _ in range(3):
        with pytest.raises(AuthenticationError, match="failed with RuntimeError"):
            await source.token()
    assert provider.calls == 1
    provider.error = None
    while await provider.asked.get() < 2:
        assert provider.calls < 2
    assert (await source.token()).value == f"{SECRET}.2"
    await source.aclose()


async def test_closing_ends_a_call_that_hangs() -> None:
    provider = Provider()
    provider.gate.clear()
    source = TokenSource(provider)
    caller = asyncio.create_task(source.token())
    await provider.called.wait()
    await source.aclose()
    with pytest.raises(ClosedError):
        await caller
    with pytest.raises(ClosedError):
        await source.token()
    await source.aclose()


async def test_a_provider_that_hangs() -> None:
    provider = Provider()
    provider.gate.clear()
    source = TokenSource(provider, timeout=0.05)
    with pytest.raises(AuthenticationError, match="no token within"):
        await source.token()
    await source.aclose()


@pytest.mark.parametrize("is_at_once", [False, True])
async def test_a_provider_that_lets_a_cancellation_out(is_at_once: bool) -> None:
    """As one of a connection that was closed: it ends that call, and no other."""
    outcomes: list[Exception | asyncio.CancelledError] = [
        asyncio.CancelledError(),
        ValueError(SECRET),
        asyncio.CancelledError(),
    ]

    async def provide() -> Token:
        await asyncio.sleep(0)
        if outcomes:
            raise outcomes.pop()
        return Token(value=SECRET, expires=LATER)

    def provide_at_once() -> Awaitable[Token]:
        if outcomes:
            raise outcomes.pop()
        return provide()

    source = TokenSource(provide_at_once if is_at_once else provide)
    with pytest.raises(AuthenticationError, match="nothing had cancelled it"):
        await source.token()
    # Asked again in the background, until it works.
    async with asyncio.timeout(10):
        while not source._refresh.is_valid(time.time()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert outcomes == []
    assert (await source.token()).value == SECRET
    await source.aclose()


def returning(result: object) -> Callable[[], Awaitable[Token]]:
    async def provide() -> Token:
        return result  # type: ignore[return-value]

    return provide


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (None, "NoneType, and not Token"),
        (SECRET, "str, and not Token"),
        (Token(value=SECRET.encode(), expires=LATER), "type bytes"),  # type: ignore[arg-type]
        (Token(value="", expires=LATER), "an empty token"),
        (Token(value=f"{SECRET}\n", expires=LATER), "line breaks"),
        (Token(value=SECRET, expires=1.0), "expired"),
        (Token(value=SECRET, expires=float("nan")), "not a number of seconds"),
        (Token(value=SECRET, expires=LATER, extensions={"a": 1}), "extensions"),  # type: ignore[dict-item]
    ],
)
async def test_rubbish(result: object, problem: str) -> None:
    source = TokenSource(returning(result))
    with pytest.raises(AuthenticationError, match=problem) as caught:
        await source.token()
    assert "returning.<locals>.provide" in str(caught.value)
    assert (caught.value.mechanism, caught.value.step) == ("OAUTHBEARER", "get a token")
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    await source.aclose()


async def test_a_function_that_is_not_async() -> None:
    source = TokenSource(lambda: Token(value=SECRET, expires=LATER))  # type: ignore[arg-type, return-value]
    with pytest.raises(AuthenticationError, match="make it async"):
        await source.token()
    await source.aclose()


rolls = st.floats(0, 1, exclude_max=True)


@given(life=st.floats(2, 1e6), roll=rolls)
def test_the_next_token_is_due_at_most_at_four_fifths(life: float, roll: float) -> None:
    refresh = TokenRefresh(Backoff(500, 30_000))
    assert refresh.may_ask(0.0)
    assert not refresh.is_valid(0.0)
    refresh.obtained(0.0, life, roll)
    assert refresh.is_valid(life / 2)
    assert not refresh.is_valid(life)
    assert max(0.72 * life, PAUSE) - 1e-6 <= refresh.due <= 0.8 * life + 1e-6


@given(count=st.integers(1, 40), roll=rolls)
def test_failures_wait_longer_and_longer(count: int, roll: float) -> None:
    refresh = TokenRefresh(Backoff(500, 30_000))
    refresh.obtained(0.0, 100.0, roll)
    for _ in range(count):
        refresh.failed(50.0, roll)
    assert refresh.is_valid(99.0)
    expected = min(30.0, 0.5 * 2 ** (count - 1))
    assert 0.79 * expected < refresh.due - 50.0 < 1.21 * expected
    assert not refresh.may_ask(50.0)
    assert refresh.may_ask(refresh.due)
    refresh.obtained(60.0, 100.0, roll)
    assert refresh.failures == 0
