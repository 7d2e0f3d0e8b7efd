import pytest
from hypothesis import given, strategies as st

from kafkaio._machines.backoff import JITTER, Backoff, ReconnectSchedule

ROLLS = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize(
    ("attempt", "seconds"),
    [(0, 0.1), (1, 0.2), (3, 0.8), (4, 1.0), (10_000, 1.0), (-1, 0.1)],
)
def test_doubles_up_to_the_limit(attempt: int, seconds: float) -> None:
    assert Backoff(100, 1000).delay(attempt, 0.5) == pytest.approx(seconds)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 200), ROLLS)
def test_jitter_stays_within_its_share(
    base: int, limit: int, attempt: int, roll: float
) -> None:
    middle = min(limit, base * 2 ** min(attempt, 62)) / 1000
    delay = Backoff(base, limit).delay(attempt, roll)
    assert middle * (1 - JITTER) - 1e-9 <= delay <= middle * (1 + JITTER) + 1e-9


def test_the_roll_moves_the_delay() -> None:
    backoff = Backoff(100, 1000)
    assert backoff.delay(0, 0.0) < backoff.delay(0, 0.5) < backoff.delay(0, 0.99)


def schedule() -> ReconnectSchedule:
    return ReconnectSchedule(Backoff(50, 1000), Backoff(10_000, 30_000))


def test_the_first_attempt_need_not_wait() -> None:
    assert schedule().remaining(now=123.0) == 0.0


def test_waits_and_set_up_time_grow_with_failures() -> None:
    plan = schedule()
    assert plan.set_up_timeout(0.5) == pytest.approx(10)
    plan.failed(now=5.0, roll=0.5)
    assert plan.remaining(5.0) == pytest.approx(0.05)
    assert plan.remaining(5.04) == pytest.approx(0.01)
    assert plan.remaining(6.0) == 0.0
    assert plan.set_up_timeout(0.5) == pytest.approx(20)
    plan.failed(now=6.0, roll=0.5)
    assert plan.remaining(6.0) == pytest.approx(0.1)
    assert plan.set_up_timeout(0.5) == pytest.approx(30)


def test_a_lost_connection_does_not_lengthen_the_set_up() -> None:
    plan = schedule()
    plan.lost(now=5.0, roll=0.5)
    assert plan.remaining(5.0) == pytest.approx(0.05)
    assert plan.set_up_timeout(0.5) == pytest.approx(10)


def test_a_refusal_is_never_repeated_hot() -> None:
    plan = schedule()
    waits = []
    for _ in range(6):
        now = plan.not_before
        plan.refused(now, roll=0.5)
        waits.append(plan.remaining(now))
    assert waits == pytest.approx([1.0, 2.0, 4.0, 8.0, 10.0, 10.0])
    assert plan.set_up_timeout(0.5) == pytest.approx(10)
    plan.ready()
    plan.refused(now=0.0, roll=0.5)
    assert plan.remaining(0.0) == pytest.approx(1.0)


def test_only_ready_resets() -> None:
    plan = schedule()
    for _ in range(10):
        plan.failed(now=0.0, roll=0.5)
    assert plan.remaining(0.0) == pytest.approx(1.0)
    plan.ready()
    assert plan.remaining(0.0) == 0.0
    plan.failed(now=0.0, roll=0.5)
    assert plan.remaining(0.0) == pytest.approx(0.05)


@given(st.lists(st.tuples(st.floats(0, 10), ROLLS), min_size=1))
def test_the_time_of_the_next_attempt_never_moves_back(
    failures: list[tuple[float, float]],
) -> None:
    plan, now, before = schedule(), 0.0, 0.0
    for passed, roll in failures:
        now += passed
        plan.failed(now, roll)
        assert plan.not_before >= before
        assert 0 < plan.remaining(now) <= 1.2 + 1e-9
        before = plan.not_before
