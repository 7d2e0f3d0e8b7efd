"""When subscriptions are asked for and metrics pushed, whatever the brokers answer."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from kafkaio._machines.telemetry import (
    DEFAULT_INTERVAL,
    PushedSums,
    TelemetryMachine,
    TelemetryStep,
)
from kafkaio.protocol._error_codes import ErrorCode

ME = UUID(int=7)
INTERVAL = 10.0
RETRIED = [
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ErrorCode.TELEMETRY_TOO_LARGE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    31_000,  # a code that nobody knows
]


def subscribe(
    machine: TelemetryMachine, now: float = 0.0, roll: float = 0.5, **changed: Any
) -> None:
    given: dict[str, Any] = {
        "instance_id": ME,
        "subscription_id": 3,
        "accepted": [4, 3, 1, 2],
        "interval": INTERVAL,
        "max_bytes": 1000,
        "is_delta": True,
        "prefixes": ["*"],
    }
    machine.subscribed(now, roll, **given | changed)


def subscribed(codecs: Sequence[int] = (1, 4), **changed: Any) -> TelemetryMachine:
    machine = TelemetryMachine(codecs)
    subscribe(machine, **changed)
    return machine


def test_it_begins_by_asking_for_a_subscription_at_once() -> None:
    machine = TelemetryMachine()
    assert (machine.step, machine.due) == (TelemetryStep.SUBSCRIBE, -inf)
    assert machine.instance_id is None
    assert machine.interval == DEFAULT_INTERVAL


@pytest.mark.parametrize(("roll", "due"), [(0.0, 5.0), (0.5, 10.0), (1.0, 15.0)])
def test_the_first_pushes_are_spread(roll: float, due: float) -> None:
    machine = subscribed(roll=roll)
    assert (machine.step, machine.due) == (TelemetryStep.PUSH, due)


def test_further_pushes_come_at_the_interval() -> None:
    machine = subscribed()
    machine.pushed(10.0)
    assert (machine.step, machine.due) == (TelemetryStep.PUSH, 20.0)


def test_without_metrics_it_asks_again_after_the_interval() -> None:
    machine = subscribed(prefixes=[])
    assert (machine.step, machine.due) == (TelemetryStep.SUBSCRIBE, INTERVAL)
    assert not machine.terminate()


def test_the_instance_id_stays() -> None:
    machine = subscribed()
    subscribe(machine, instance_id=UUID(int=8))
    assert machine.instance_id == ME
    assert machine.subscription is not None
    assert machine.subscription.instance_id == ME


def test_an_answer_without_an_id_is_no_subscription() -> None:
    machine = subscribed(instance_id=UUID(int=0))
    assert machine.subscription is None
    assert (machine.step, machine.due) == (TelemetryStep.SUBSCRIBE, DEFAULT_INTERVAL)


def test_impossible_numbers_are_replaced() -> None:
    found = subscribed(interval=-1.0, max_bytes=-5).subscription
    assert found is not None
    assert (found.interval, found.max_bytes) == (DEFAULT_INTERVAL, 0)


@pytest.mark.parametrize(
    ("codecs", "accepted", "chosen"),
    [((1, 4), [4, 1], 4), ((1,), [4, 3, 1], 1), ((2,), [4], 0), ((), [4], 0)],
)
def test_the_codec_that_the_broker_prefers(
    codecs: list[int], accepted: list[int], chosen: int
) -> None:
    found = subscribed(codecs, accepted=accepted).subscription
    assert found is not None
    assert found.compression == chosen


def test_which_metrics_are_wanted() -> None:
    some = subscribed(prefixes=["org.apache.kafka.producer.", "com.x"]).subscription
    assert some is not None
    assert some.wants("com.x.y")
    assert some.wants("org.apache.kafka.producer.request.total")
    assert not some.wants("org.apache.kafka.consumer.request.total")
    every = subscribed().subscription
    assert every is not None
    assert every.wants("anything")


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_RECORD,
        ErrorCode.UNSUPPORTED_VERSION,
    ],
)
def test_codes_that_end_it(code: int) -> None:
    asking, pushing = TelemetryMachine(), subscribed()
    for machine in (asking, pushing):
        machine.refused(code, 1.0)
        assert machine.has_ended
        assert machine.due == inf
        assert not machine.terminate()


def test_an_unknown_subscription_is_asked_for_at_once() -> None:
    machine = subscribed()
    machine.refused(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, 1.0)
    assert (machine.step, machine.due) == (TelemetryStep.SUBSCRIBE, 1.0)
    # A broker that answers so to that, too, is not asked without end.
    machine.refused(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, 2.0)
    assert (machine.step, machine.due) == (TelemetryStep.SUBSCRIBE, 2.0 + INTERVAL)


def test_a_codec_that_is_refused_is_not_used_again() -> None:
    machine = subscribed()
    machine.refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, 1.0)
    assert (machine.step, machine.due) == (TelemetryStep.SUBSCRIBE, 1.0)
    subscribe(machine)
    assert machine.subscription is not None
    assert machine.subscription.compression == 1


@pytest.mark.parametrize("code", RETRIED)
def test_codes_that_mean_later(code: int) -> None:
    asking, pushing = TelemetryMachine(), subscribed()
    asking.refused(code, 1.0)
    assert (asking.step, asking.due) == (
        TelemetryStep.SUBSCRIBE,
        1.0 + DEFAULT_INTERVAL,
    )
    pushing.refused(code, 1.0)
    assert (pushing.step, pushing.due) == (TelemetryStep.SUBSCRIBE, 1.0 + INTERVAL)


def test_the_last_push_is_one() -> None:
    machine = subscribed()
    assert machine.terminate()
    assert not machine.terminate()
    machine.pushed(3.0)
    machine.unanswered(3.0)
    subscribe(machine)
    assert (machine.step, machine.due) == (TelemetryStep.NOTHING, inf)


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["subscribed", "none", "pushed", "refused", "lost", "end"]),
        st.sampled_from([*RETRIED, 42, 76, 87, 117]),
        st.floats(0.0, 1.0),
        st.floats(0.0, 20.0),
    ),
    max_size=30,
)


@given(EVENTS)
def test_whatever_happens(events: list[tuple[str, int, float, float]]) -> None:
    machine = TelemetryMachine([1, 2, 3, 4])
    now = 0.0
    pushed_at = -inf
    last_pushes = 0
    for what, code, roll, late in events:
        ended = machine.has_ended
        if not ended and machine.step is not TelemetryStep.NOTHING:
            now = max(now, machine.due) + late
        is_push = machine.step is TelemetryStep.PUSH
        if is_push:
            # Never sooner than half an interval after a subscription, or an interval
            # after a push.
            assert now - pushed_at >= INTERVAL / 2 - 1e-9  # rounding
        if what == "end":
            last_pushes += machine.terminate()
        elif what == "refused":
            machine.refused(code, now)
        elif what == "lost" or (is_push and what == "none"):
            machine.unanswered(now)
        elif is_push:
            machine.pushed(now)
        else:
            prefixes = [] if what == "none" else ["*"]
            subscribe(machine, now, roll, prefixes=prefixes)
        if is_push:
            pushed_at = now
        assert machine.has_ended or not ended
        assert machine.has_ended == (machine.due == inf)
        assert machine.instance_id in {None, ME}
        if machine.step is TelemetryStep.PUSH:
            assert machine.subscription is not None
            assert machine.subscription.prefixes
    assert last_pushes <= 1


@given(st.lists(st.tuples(st.integers(0, 100), st.booleans()), max_size=20))
def test_increases_add_up_to_the_total(steps: list[tuple[int, bool]]) -> None:
    ledger = PushedSums()
    total = told = 0.0
    for grown, is_refused in steps:
        total += grown
        increase = ledger.increase("a", total)
        ledger.sending({"a": total})
        ledger.settle(is_refused=is_refused)
        told += 0.0 if is_refused else increase
        assert told + ledger.increase("a", total) == total


def test_a_sum_that_shrinks_has_no_increase() -> None:
    ledger = PushedSums()
    ledger.sending({"a": 5.0})
    ledger.settle(is_refused=False)
    assert ledger.increase("a", 3.0) == 0.0
