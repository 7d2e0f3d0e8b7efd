from math import inf

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from kafkaio._machines.backoff import Backoff
from kafkaio._machines.metadata import ClusterView, Merged, TopicView
from kafkaio._machines.refresh import ALL_TOPICS, RefreshRequest, RefreshSchedule

ROLL = 0.5  # no jitter


def schedule(**options: float) -> RefreshSchedule:
    return RefreshSchedule(Backoff(100, 1_000), max_age=300, idle=300, **options)


def merged(
    *topics: str, progressed: bool = True, unsettled: tuple[str, ...] = ()
) -> Merged:
    view = ClusterView(by_name={name: TopicView(name) for name in topics})
    return Merged(view, progressed, frozenset(unsettled))


def settle(plan: RefreshSchedule, now: float) -> None:
    """Do all that is due by now."""
    while plan.next_at() <= now:
        request = plan.begin(now)
        plan.succeeded(request, merged(*(request.topics or ())), now, ROLL)


def test_the_first_refresh_is_due_at_once() -> None:
    plan = schedule()
    assert plan.is_wanted
    assert plan.next_at() == -inf
    assert plan.begin(0) == RefreshRequest(frozenset(), partial=False, number=1)
    assert plan.next_at() == inf
    assert plan.is_wanted


def test_then_the_age_counts() -> None:
    plan = schedule()
    settle(plan, 10)
    assert plan.next_at() == 310
    assert not plan.is_wanted


def test_a_demand_is_met_at_once_by_a_later_answer() -> None:
    plan = schedule()
    settle(plan, 10)
    assert plan.demand(10.05, recent=0.1) is None  # it is as fresh as can be
    asked = plan.demand(10.2, recent=0.1)
    assert asked is not None
    assert plan.next_at() == -inf  # no back-off
    assert not plan.is_satisfied(asked)
    settle(plan, 10.2)
    assert plan.is_satisfied(asked)
    request = plan.begin(400)
    late = plan.demand(400.5, recent=0.1)
    assert late is not None
    plan.succeeded(request, merged(), 401, ROLL)
    assert not plan.is_satisfied(late)  # that answer may be older


def test_requests_wait_for_the_back_off() -> None:
    plan = schedule()
    settle(plan, 10)
    plan.request()
    plan.request()
    assert plan.next_at() == pytest.approx(10.1)
    settle(plan, 10.1)
    assert not plan.is_wanted
    plan.request(at_once=True)
    assert plan.next_at() == -inf


def test_the_back_off_grows_while_answers_bring_nothing_new() -> None:
    plan = schedule()
    now, waits = 0.0, []
    for _ in range(6):
        plan.request()
        now = max(now, plan.next_at())
        plan.succeeded(plan.begin(now), merged(progressed=False), now, ROLL)
        plan.request()
        waits.append(plan.next_at() - now)
    assert waits == pytest.approx([0.2, 0.4, 0.8, 1.0, 1.0, 1.0])
    plan.succeeded(plan.begin(now + 1), merged(), now + 1, ROLL)
    plan.request()
    assert plan.next_at() - (now + 1) == pytest.approx(0.1)


def test_the_back_off_grows_with_failures() -> None:
    plan = schedule()
    delays = []
    for _ in range(5):
        plan.begin(0)
        delays.append(plan.failed(0, ROLL))
    assert delays == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0])
    assert plan.failures == 5
    assert plan.next_at() == pytest.approx(1.0)
    plan.begin(1)
    plan.succeeded(RefreshRequest(None, partial=False, number=1), merged(), 1, ROLL)
    assert plan.failures == 0


def test_a_request_made_while_an_answer_is_on_its_way_is_not_lost() -> None:
    plan = schedule()
    request = plan.begin(0)
    plan.request()
    plan.succeeded(request, merged(), 0, ROLL)
    assert plan.next_at() == pytest.approx(0.1)


def test_new_topics_do_not_wait_for_the_back_off() -> None:
    plan = schedule()
    settle(plan, 10)
    plan.watch("me", ["a", "b"])
    assert plan.next_at() == -inf
    request = plan.begin(10)
    assert request == RefreshRequest(frozenset("ab"), partial=True, number=1)
    plan.succeeded(request, merged("a", "b"), 10, ROLL)
    assert plan.next_at() == 310
    plan.watch("me", ["b"])
    plan.watch("you", ["a"])
    assert plan.next_at() == 310


def test_new_topics_wait_for_the_back_off_of_failures() -> None:
    plan = schedule()
    settle(plan, 10)
    plan.watch("me", ["a"])
    plan.begin(10)
    plan.failed(10, ROLL)
    plan.watch("me", ["a", "b"])
    assert plan.next_at() == pytest.approx(10.1)


def test_a_full_refresh_that_is_due_takes_new_topics_along() -> None:
    plan = schedule()
    plan.watch("me", ["a"])
    assert plan.begin(0) == RefreshRequest(frozenset("a"), partial=False, number=1)
    plan.abandoned()
    settle(plan, 0)
    plan.watch("me", ["a", "b"])
    plan.request()
    assert plan.begin(0.01).partial
    plan.abandoned()
    assert plan.begin(0.2) == RefreshRequest(frozenset("ab"), partial=False, number=2)


def test_what_is_left_open_is_asked_for_again() -> None:
    plan = schedule()
    request = plan.begin(0)
    plan.succeeded(request, merged(unsettled=("t",)), 0, ROLL)
    assert plan.is_wanted
    assert plan.next_at() == pytest.approx(0.1)


def test_all_topics() -> None:
    plan = schedule()
    settle(plan, 0)
    plan.watch("me", ALL_TOPICS)
    assert plan.next_at() == -inf
    request = plan.begin(0)
    assert request.topics is None
    plan.succeeded(request, merged("a"), 0, ROLL)
    plan.watch("you", ALL_TOPICS)
    plan.watch("third", ["a"])
    assert not plan.is_wanted
    # One that the cluster does not list may still be made by asking for it.
    plan.use(["b"], 0)
    assert plan.begin(0) == RefreshRequest(frozenset("b"), partial=True, number=2)
    plan.abandoned()
    plan.watch("me", None)
    assert plan.interest.topics() is None
    plan.watch("you", None)
    assert plan.interest.topics() == frozenset("ab")


def test_topics_merely_used_are_forgotten() -> None:
    plan = schedule()
    plan.use(["a"], 0)
    plan.use(["b"], 100)
    settle(plan, 100)
    assert plan.begin(350).topics == frozenset("b")


def test_starting_over() -> None:
    plan = schedule(rebootstrap_after=60)
    assert plan.rebootstrap_at() == inf
    plan.begin(5)
    plan.failed(5, ROLL)
    plan.begin(6)
    plan.failed(6, ROLL)
    assert plan.rebootstrap_at() == 65
    plan.rebootstrapped(65)
    assert plan.next_at() == -inf
    assert plan.rebootstrap_at() == 125
    request = plan.begin(65)
    plan.succeeded(request, merged(), 65, ROLL)
    assert plan.rebootstrap_at() == inf


def test_starting_over_again_and_again_has_a_back_off() -> None:
    plan = schedule()
    waits = []
    for _ in range(4):
        plan.begin(0)
        plan.rebootstrapped(0)
        waits.append(plan.failed(0, ROLL))
    assert waits == pytest.approx([0.1, 0.2, 0.4, 0.8])


class Refreshing(RuleBasedStateMachine):
    """Whatever happens: one in flight, never two refreshes without a wait."""

    @initialize()
    def start(self) -> None:
        self.now = 0.0
        self.plan = schedule()
        self.request: RefreshRequest | None = None
        self.last_full = -inf
        self.wanted: frozenset[str] = frozenset()

    @rule(seconds=st.sampled_from([0.0, 0.05, 0.2, 2.0, 400.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def request(self) -> None:
        self.plan.request()

    @rule(topics=st.frozensets(st.sampled_from("abc")))
    def watch(self, topics: frozenset[str]) -> None:
        self.plan.watch(self, topics)
        self.wanted = topics

    @precondition(lambda self: self.request is None and self.plan.next_at() <= self.now)
    @rule()
    def begin(self) -> None:
        self.request = self.plan.begin(self.now)
        if self.request.partial:
            assert self.request.topics
            assert self.request.topics <= self.wanted
        else:
            assert self.request.topics == self.wanted
            assert self.now - self.last_full >= 0.08
            self.last_full = self.now

    @precondition(lambda self: self.request is not None)
    @rule(progressed=st.booleans(), unsettled=st.booleans(), roll=st.floats(0, 0.99))
    def succeed(self, progressed: bool, unsettled: bool, roll: float) -> None:
        assert self.request is not None
        result = merged(
            *(self.request.topics or ()),
            progressed=progressed,
            unsettled=("x",) if unsettled else (),
        )
        self.plan.succeeded(self.request, result, self.now, roll)
        self.last_full = max(
            self.last_full, self.now if not self.request.partial else -inf
        )
        self.request = None

    @precondition(lambda self: self.request is not None)
    @rule(roll=st.floats(0, 0.99))
    def fail(self, roll: float) -> None:
        self.plan.failed(self.now, roll)
        self.request = None
        assert self.plan.next_at() > self.now

    @invariant()
    def next_is_bounded(self) -> None:
        if self.request is not None:
            assert self.plan.next_at() == inf
        else:
            assert self.plan.next_at() <= self.now + 301
            if self.plan.is_wanted:
                assert self.plan.next_at() <= self.now + 1.2


TestRefreshing = Refreshing.TestCase
