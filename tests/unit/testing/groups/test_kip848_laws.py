"""Whatever members do, a partition has one owner, and the group becomes stable."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from tests.unit.testing.groups.test_kip848 import Driver

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["join", "beat", "ack", "leave", "grow", "wait"]),
        st.sampled_from("abcd"),
    ),
    max_size=40,
)


def owners(driver: Driver) -> list[tuple[object, int]]:
    return [
        slot
        for member in driver.group.members.values()
        for slots in (member.assigned, member.revoking)
        for slot in slots
    ]


def step(driver: Driver, action: str, member: str) -> None:
    if action == "grow":
        driver.cluster.topics["t"] += 1
    elif action == "wait":
        driver.now += 11.0
        driver.group.tick(driver.now)
    elif action == "join":
        driver.join(member)
    elif member in driver.group.members and driver.epochs.get(member, -1) > 0:
        if action == "leave":
            driver.send(member, -1)
            driver.owned.pop(member)
        elif action == "ack":
            driver.ack(member)
        else:
            driver._take(member, driver.beat(member))


@given(STEPS)
@settings(max_examples=80)
def test_no_partition_has_two_owners(steps: list[tuple[str, str]]) -> None:
    driver = Driver(partitions=3)
    for action, member in steps:
        step(driver, action, member)
        owned = owners(driver)
        assert len(owned) == len(set(owned))
    driver.owned = {
        one: it for one, it in driver.owned.items() if one in driver.group.members
    }
    driver.settle()
    if driver.group.members:
        assert driver.group.state == "Stable"
        assert len(owners(driver)) == driver.cluster.topics["t"]
        loads = [len(one.assigned) for one in driver.group.members.values()]
        assert max(loads) - min(loads) <= 1
