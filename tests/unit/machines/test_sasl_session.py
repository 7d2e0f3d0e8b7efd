"""When a session has to be renewed."""

from math import inf

from hypothesis import given, strategies as st

from kafkaio._machines.sasl.session import AuthenticatedSession

ROLLS = st.floats(0, 1, exclude_max=True)


def test_a_session_without_a_limit_is_never_renewed() -> None:
    session = AuthenticatedSession.begun(10.0, 9.0, 0.0, 0.5)
    assert session.ends_at == session.renew_at == inf
    assert not session.is_short


@given(ROLLS, st.floats(1.3, 1e6), st.floats(0, 0.1))
def test_a_session_is_renewed_before_its_end(
    roll: float, lifetime: float, delay: float
) -> None:
    session = AuthenticatedSession.begun(100.0 + delay, 100.0, lifetime, roll)
    assert not session.is_short
    assert session.renew_at >= session.renewable_at == 100.0 + delay + 1.1
    assert session.renew_at >= 100.0 + 0.85 * lifetime
    assert session.renew_at <= max(100.0 + 0.95 * lifetime, session.renewable_at)
    # What was sent before the renewal may wait for a busy broker, too.
    ahead = 100.0 + lifetime - session.renew_at
    is_held_up = session.renew_at == session.renewable_at
    assert ahead >= min(0.15 * lifetime, 0.3) - 1e-6 or is_held_up
    # A request that is sent just before the end still has time to arrive.
    assert 100.0 + 0.95 * lifetime < session.ends_at < 100.0 + lifetime
    assert lifetime <= 100 or session.ends_at >= 100.0 + lifetime - 1.01


@given(ROLLS, st.floats(0.001, 1.29))
def test_a_short_session_ends_before_it_can_be_renewed(
    roll: float, lifetime: float
) -> None:
    session = AuthenticatedSession.begun(5.0, 5.0, lifetime, roll)
    assert session.is_short
    assert 5.0 + 0.85 * lifetime <= session.renew_at < session.ends_at
    assert session.renewable_at == 5.0 + 1.1
