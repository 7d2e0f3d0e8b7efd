"""How large requests to a broker are: `NodeState`."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given, strategies as st

from kafkaio._machines.accumulator import Limits, NodeState

MIB = 1_048_576
LIMITS = Limits(may_grow=True)


def saturate(
    node: NodeState,
    *,
    round_trip: float,
    rate: float,
    each: float = 0.0,
    seconds: float = 4.0,
) -> tuple[float, list[float]]:
    """Keep as much in flight as the state allows, over a link that is simulated.

    Args:
        node: the state.
        round_trip: seconds of a round trip.
        rate: bytes that the broker takes in a second.
        each: seconds that the broker needs for a request, whatever its size.
        seconds: how long.

    Returns:
        Bytes answered in a second, in the second half; and how long each took.
    """
    now, busy_until, answered = 0.0, 0.0, 0
    flights: deque[tuple[float, tuple[float, int, int]]] = deque()
    spent: list[float] = []
    size = 100  # the first record is alone
    while now < seconds:
        while node.in_flight < LIMITS.max_in_flight:
            size = min(size, int(min(node.request_size, node.largest)))
            node.sent(now, 1, size)
            begins = max(now + round_trip / 2, busy_until)
            busy_until = begins + each + size / rate
            flights.append((busy_until + round_trip / 2, node.latest))
            if size == 100:
                break
        now, flight = flights.popleft()
        node.answered(now, flight)
        spent.append(now - flight[0])
        if now >= seconds / 2:
            answered += flight[1]
        size = 100 * MIB
    for now, flight in flights:
        node.answered(now, flight)
    assert not node.in_flight
    return answered / (seconds / 2), spent


@pytest.mark.parametrize(
    ("round_trip", "rate"),
    [(0.001, 300e6), (0.002, 100e6), (0.001, 2e6), (0.05, 10e6)],
)
def test_where_requests_carry_enough_they_do_not_grow(
    round_trip: float, rate: float
) -> None:
    node = NodeState(LIMITS)
    reached, _ = saturate(node, round_trip=round_trip, rate=rate, seconds=20.0)
    assert node.request_size == MIB
    assert reached > 0.9 * rate


@pytest.mark.parametrize("each", [0.0, 0.003])
@pytest.mark.parametrize("round_trip", [0.03, 0.05, 0.1])
def test_to_a_distant_broker_requests_grow_until_the_link_is_full(
    round_trip: float, each: float
) -> None:
    rate = 200e6
    before, _ = saturate(
        NodeState(Limits()), round_trip=round_trip, rate=rate, each=each
    )
    node = NodeState(LIMITS)
    after, spent = saturate(node, round_trip=round_trip, rate=rate, each=each)
    assert MIB < node.request_size <= LIMITS.grown_request_size
    assert after > 1.15 * before
    full = rate / (1 + each * rate / node.request_size)
    assert after > 0.9 * full
    # What more is in flight does not wait for long.
    assert max(spent[len(spent) // 2 :]) < 5.1 * (round_trip + each)


@given(st.floats(0.0001, 1.0), st.floats(1e6, 1e10), st.sampled_from([0.0, 0.001, 0.1]))
def test_requests_stay_within_their_bounds(
    round_trip: float, rate: float, each: float
) -> None:
    node = NodeState(LIMITS)
    saturate(node, round_trip=round_trip, rate=rate, each=each, seconds=20 * round_trip)
    assert MIB <= node.request_size <= LIMITS.grown_request_size
    assert 5 * LIMITS.grown_request_size <= LIMITS.buffer_memory


def sizes_at_first(node: NodeState, *, round_trip: float, rate: float) -> list[int]:
    """Return the sizes allowed at first, and after each of the first answers."""
    node.sent(0.0, 1, 100)
    node.answered(1.3 * round_trip, node.latest)  # the broker opens a file
    sizes, flights, busy_until = [node.request_size], [], 1.0
    for _ in range(5):
        node.sent(1.0, 6, node.request_size)
        busy_until += node.request_size / rate
        flights.append((busy_until + round_trip, node.latest))
    for now, flight in flights:
        node.answered(now, flight)
        sizes.append(node.request_size)
    return sizes


def test_to_a_distant_broker_the_first_requests_are_large() -> None:
    node = NodeState(LIMITS)
    node.met(0.05)
    sizes = sizes_at_first(node, round_trip=0.05, rate=200e6)
    assert sizes[0] == int(4 * 0.05 * 125e6 / 5)
    # What one round trip carries, or more, is in flight all the time.
    assert all(5 * size > 0.05 * 200e6 for size in sizes)
    node = NodeState(LIMITS)
    node.met(0.3)
    assert node.request_size == LIMITS.grown_request_size
    node = NodeState(Limits())
    node.met(0.3)
    assert node.request_size == MIB


def test_near_the_broker_the_first_requests_are_small() -> None:
    node = NodeState(LIMITS)
    node.met(0.001)
    assert set(sizes_at_first(node, round_trip=0.001, rate=200e6)) == {MIB}


def test_over_a_slow_link_the_first_late_answer_makes_requests_small() -> None:
    node = NodeState(LIMITS)
    node.met(0.05)
    sizes = sizes_at_first(node, round_trip=0.05, rate=10e6)
    assert sizes[0] > MIB
    assert set(sizes[1:]) == {MIB}


def test_a_size_that_was_asked_for_is_kept() -> None:
    node = NodeState(Limits())
    node.met(0.1)
    saturate(node, round_trip=0.1, rate=1e9)
    assert node.request_size == MIB


def test_a_broker_that_comes_nearer_or_goes_away_is_measured_anew() -> None:
    node = NodeState(LIMITS)
    saturate(node, round_trip=0.001, rate=200e6)
    assert node.request_size == MIB
    for number in range(100):  # records that come one at a time
        node.sent(10.0 + number, 1, 100)
        node.answered(10.1 + number, node.latest)
    saturate(node, round_trip=0.1, rate=200e6)
    assert node.request_size > 2 * MIB
    saturate(node, round_trip=0.001, rate=200e6)
    assert node.request_size == MIB


def test_a_size_under_which_the_connection_broke_is_avoided_ever_longer() -> None:
    node = NodeState(LIMITS)
    saturate(node, round_trip=0.05, rate=200e6, seconds=0.3)
    proven = node.request_size
    saturate(node, round_trip=0.05, rate=200e6)
    now, sizes = 100.0, []
    for pause in (600.0, 1_200.0, 2_400.0):
        node.sent(now, 1, 40 * MIB)
        node.broke(40 * MIB, now)
        node.ended(now, node.latest)
        sizes.append(node.largest)
        node.lift_limit(now + pause - 1)
        assert node.largest == sizes[0]
        node.lift_limit(now + pause)
        assert node.largest == float("inf")
        now += 10_000
    assert MIB < proven <= sizes[0] <= LIMITS.grown_request_size
    # A broker that restarts breaks connections under requests of any size.
    node.broke(int(sizes[0]), now)
    assert node.largest == float("inf")
