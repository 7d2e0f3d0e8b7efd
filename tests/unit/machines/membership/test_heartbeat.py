"""The timers of a group member."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from kafkaio._machines.membership.heartbeat import Heartbeat, PollTimer


def test_nothing_is_due_before_the_start_and_after_the_stop() -> None:
    beat = Heartbeat(3.0, 10.0)
    assert not beat.is_due(1e9)
    assert not beat.is_expired(1e9)
    beat.start(5.0)
    assert beat.deadline() == 8.0
    assert beat.is_due(8.0)
    beat.stop()
    assert not beat.is_due(1e9)
    assert beat.deadline() == float("inf")


def test_the_session_counts_from_the_sending() -> None:
    beat = Heartbeat(3.0, 10.0)
    beat.start(0.0)
    beat.sent(3.0)
    assert beat.deadline() == 10.0
    assert not beat.is_due(6.0)
    beat.answered()
    assert beat.session_end == 13.0
    assert beat.is_due(6.0)
    assert not beat.is_expired(12.9)
    assert beat.is_expired(13.0)
    beat.renew(13.0)
    assert beat.is_due(13.0)
    assert not beat.is_expired(13.0)


def test_heartbeats_come_soon_where_a_rebalance_is_expected() -> None:
    beat = Heartbeat(3.0, 10.0)
    beat.start(0.0)
    beat.expect_rebalance(0.0)
    times = list[float]()
    for _ in range(8):
        times.append(round(beat.next_at, 6))
        beat.sent(beat.next_at)
        beat.answered()
    # Each takes as long again as all before it, until the interval is the usual one.
    assert times == [0.1, 0.3, 0.7, 1.5, 3.1, 6.1, 9.1, 12.1]
    beat.start(20.0)  # nothing is expected of the next generation
    assert beat.next_at == 23.0


def test_an_interval_that_is_short_stays_as_it_is() -> None:
    beat = Heartbeat(0.05, 10.0)
    beat.start(0.0)
    beat.expect_rebalance(0.0)
    assert beat.next_at == 0.05
    beat.sent(0.05)
    assert beat.next_at == 0.1


def test_polls() -> None:
    timer = PollTimer(300.0)
    assert not timer.is_expired(1e9)
    timer.polled(10.0)
    assert not timer.is_expired(309.9)
    assert timer.is_expired(310.0)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["answer", "fail", "wait", "expect"]),
            st.floats(0.0, 5.0),
            st.floats(0, 9),
        ),
        max_size=30,
    )
)
def test_the_next_is_never_later_than_the_interval(
    steps: list[tuple[str, float, float]],
) -> None:
    beat, now = Heartbeat(3.0, 10.0), 0.0
    beat.start(now)
    last = now
    for what, wait, delay in steps:
        now += wait
        if beat.is_due(now):
            beat.sent(now)
            last = now
        elif beat.in_flight and what == "answer":
            beat.answered()
        elif beat.in_flight and what == "fail":
            beat.failed(now, delay)
        elif what == "expect":
            beat.expect_rebalance(now)
        if not beat.in_flight:
            assert beat.next_at <= max(last + 3.0, last)
