from dataclasses import replace

from hypothesis import given, strategies as st

from kafkaio.protocol._error_codes import ErrorCode
from tests.sim import (
    Fault,
    Kind,
    Scenario,
    draw_faults,
    rebalancing,
)
from tests.sim.scenario import exactly_once
from tests.sim.shrink import smallest


def test_a_seed_and_a_part_draw_a_schedule() -> None:
    scenario = Scenario(seed=4, part=2)
    drawn = draw_faults(scenario)
    assert drawn == draw_faults(scenario)
    assert drawn != draw_faults(replace(scenario, part=3))
    assert drawn != draw_faults(replace(scenario, seed=5))
    assert len(drawn) == 60
    assert list(drawn) == sorted(drawn, key=lambda fault: fault.at)
    assert draw_faults(replace(scenario, fault_every=0)) == ()


def test_every_kind_is_drawn_for_both_protocols() -> None:
    for protocol, api in (("classic", "Heartbeat"), ("consumer", "ConsumerGroup")):
        scenario = Scenario(seconds=200_000, group_protocol=protocol)
        drawn = draw_faults(scenario)
        in_group = draw_faults(replace(rebalancing(1, protocol), seconds=20_000))
        copies = replace(exactly_once(1, protocol), seconds=20_000)
        in_copies = draw_faults(copies)
        kinds = {fault.kind for fault in (*drawn, *in_group, *in_copies)}
        assert kinds == set(Kind)
        assert any(api in fault.api for fault in drawn)
        assert all(fault.code for fault in drawn if fault.kind is Kind.ERROR)


def test_seeds_go_through_protocols_and_through_what_goes_wrong() -> None:
    seeds = [rebalancing(seed) for seed in range(6)]
    protocols = ["consumer", "consumer", "classic", "classic", "eager", "eager"]
    assert [scenario.group_protocol for scenario in seeds] == protocols
    assert [Kind.KILL in scenario.weights for scenario in seeds] == 3 * [False, True]


def test_a_fault_is_told_in_a_line() -> None:
    stop = Fault(12.5, Kind.STOP, 2, 3.0)
    assert str(stop) == "    12.5 s  stop node 2 for 3.0"
    error = Fault(1, Kind.ERROR, api="Fetch", code=ErrorCode.UNKNOWN_TOPIC_ID, times=2)
    assert str(error) == "     1.0 s  error of 2 Fetch UNKNOWN_TOPIC_ID"


@given(st.sets(st.integers(0, 40)), st.integers(1, 40))
def test_shrinking_leaves_exactly_what_it_takes(needed: set[int], size: int) -> None:
    needed = {item for item in needed if item < size}

    def fails(items: object) -> bool:
        return needed <= set(items)  # type: ignore[call-overload,no-any-return]

    found = smallest(range(size), fails, 100_000)
    assert set(found) == needed
    assert list(found) == sorted(found)


def test_shrinking_asks_no_more_often_than_it_may() -> None:
    asked = []

    def fails(items: object) -> bool:
        asked.append(items)
        return False

    assert smallest(range(100), fails, 7) == range(100)
    assert len(asked) == 7
