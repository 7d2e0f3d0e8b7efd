"""Which address is asked, and when: the laws of `Attempts`."""

from __future__ import annotations

from hypothesis import given, strategies as st

from kafkaio.registry._attempts import CONNECT_LIMIT, Attempt, Attempts

NOW = 1_000.0


def all_of(attempts: Attempts, taken: float, pause: float = 0.0) -> list[Attempt]:
    """Every attempt of a call, each of which takes some seconds and fails."""
    now = NOW
    found = [attempts.begin(now)]
    while True:
        now += found[-1].wait + taken
        following = attempts.failed(now, 0.5, pause)
        if following is None:
            return found
        found.append(following)


@given(st.integers(1, 5), st.integers(0, 4), st.integers(0, 6))
def test_every_round_asks_each_address_once(
    addresses: int, first: int, retries: int
) -> None:
    first %= addresses
    found = all_of(Attempts(addresses, first, retries, NOW + 1e6), 0.0)
    order = [(first + at) % addresses for at in range(addresses)]
    assert [each.address for each in found] == order * (retries + 1)
    # No pause within a round, and one that grows before each of the others.
    assert not any(each.wait for at, each in enumerate(found) if at % addresses)
    pauses = [each.wait for each in found[addresses::addresses]]
    assert all(pauses)
    assert pauses == sorted(pauses)


@given(
    addresses=st.integers(1, 4),
    retries=st.integers(0, 5),
    timeout=st.floats(0.01, 60),
    taken=st.floats(0, 20),
    pause=st.floats(0, 100),
)
def test_nothing_begins_after_the_deadline(
    addresses: int, retries: int, timeout: float, taken: float, pause: float
) -> None:
    attempts = Attempts(addresses, 0, retries, NOW + timeout)
    now = NOW
    attempt: Attempt | None = attempts.begin(now)
    made = 0
    while attempt is not None:
        made += 1
        now += attempt.wait
        assert attempt.limit > 0
        assert now + attempt.limit <= NOW + timeout + 1e-6
        assert attempt.connect_limit <= attempt.limit
        now += min(taken, attempt.limit)
        attempt = attempts.failed(now, 0.0, pause)
    assert made == attempts.made <= addresses * (retries + 1)


def test_one_that_is_silent_leaves_time_for_another_attempt() -> None:
    attempt = Attempts(1, 0, 3, NOW + 10).begin(NOW)
    assert attempt.limit == 5
    assert Attempts(1, 0, 0, NOW + 10).begin(NOW).limit == 10


def test_a_dead_address_beside_others_costs_little() -> None:
    attempt = Attempts(3, 0, 3, NOW + 60).begin(NOW)
    assert attempt.connect_limit == CONNECT_LIMIT
    assert Attempts(1, 0, 3, NOW + 60).begin(NOW).connect_limit == 30


def test_a_pause_that_is_asked_for_is_made() -> None:
    attempts = Attempts(1, 0, 3, NOW + 10)
    attempts.begin(NOW)
    following = attempts.failed(NOW, 0.5, 4.0)
    assert following is not None
    assert following.wait == 4.0


def test_a_pause_beyond_the_deadline_ends_the_call() -> None:
    attempts = Attempts(1, 0, 3, NOW + 10)
    attempts.begin(NOW)
    assert attempts.failed(NOW, 0.5, 11.0) is None


def test_an_address_that_asked_for_no_pause_is_not_held_back() -> None:
    attempts = Attempts(2, 0, 3, NOW + 10)
    attempts.begin(NOW)
    second = attempts.failed(NOW, 0.5, 8.0)
    assert second is not None
    assert (second.address, second.wait) == (1, 0.0)
    third = attempts.failed(NOW, 0.5, 0.0)
    assert third is not None
    assert third.address == 0
    assert third.wait < 1
