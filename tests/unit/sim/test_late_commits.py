from tests.sim.late_commits import LateCommits


def test_what_is_under_way_on_a_dead_connection_may_come_late() -> None:
    stragglers = LateCommits()
    stragglers.sent(0, 27, 24, lambda: False)
    assert not stragglers.may_be(0, 27)
    stragglers.sent(0, 27, 24, lambda: True)
    stragglers.sent(0, 29, 27, lambda: True)
    assert stragglers.may_be(0, 27)
    assert not stragglers.may_be(0, 29)
    assert not stragglers.may_be(1, 27)


def test_what_took_effect_does_not_come_again() -> None:
    stragglers = LateCommits()
    stragglers.sent(0, 27, 24, lambda: False)
    stragglers.sent(0, 29, 27, lambda: True)
    assert not stragglers.may_be(0, 27)


def test_on_a_connection_that_lives_all_is_in_order() -> None:
    stragglers = LateCommits()
    stragglers.sent(0, 27, -1, lambda: True)
    stragglers.sent(0, 29, -1, lambda: True)
    assert not stragglers.may_be(0, 27)
