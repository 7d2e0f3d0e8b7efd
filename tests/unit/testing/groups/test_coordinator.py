from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kafkaio.protocol.codec import encode
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from kafkaio.protocol.messages.join_group import JoinGroupResponse
from kafkaio.testing.groups.classic import ClassicGroup
from kafkaio.testing.groups.classic_member import Joining, State, Syncing
from kafkaio.testing.groups.config import GroupConfig
from kafkaio.testing.groups.consumer_member import Beat
from kafkaio.testing.groups.coordinator import GroupCoordinator
from kafkaio.testing.groups.offsets import Committed
from tests.unit.testing.groups.fake_home import FakeHome

DAY_MS = 86_400_000


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def wall_ms(self) -> int:
        return round(self.seconds * 1000)


def made(home: FakeHome, clock: Clock, **config: float) -> GroupCoordinator:
    return GroupCoordinator(
        home,
        now=clock.now,
        wall_ms=clock.wall_ms,
        config=GroupConfig(**config),  # type: ignore[arg-type]
    )


@pytest.fixture
def home() -> FakeHome:
    return FakeHome(t=2)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def joining(new_id: str = "1", **fields: object) -> Joining:
    said: dict[str, object] = {
        "member_id": "",
        "instance_id": None,
        "client_id": "c",
        "client_host": "/h",
        "session_timeout": 10.0,
        "rebalance_timeout": 60.0,
        "protocol_type": "consumer",
        "protocols": (("range", b"sub"),),
        "new_id": new_id,
        "knows_member_id_required": False,
    }
    return Joining(**(said | fields))  # type: ignore[arg-type]


def asking(group: ClassicGroup, request: Joining) -> Callable[[int, float], None]:
    return lambda reply, now: group.join(request, reply, now)


async def stable(coordinator: GroupCoordinator, **fields: object) -> str:
    group = coordinator.classic("g")
    assert group is not None
    answer = await coordinator.wait(group, asking(group, joining(**fields)))
    assert isinstance(answer, JoinGroupResponse)
    syncing = Syncing(
        member_id=answer.member_id,
        instance_id=fields.get("instance_id"),  # type: ignore[arg-type]
        generation=answer.generation_id,
        assignments={answer.member_id: b"part"},
    )
    await coordinator.wait(group, lambda reply, now: group.sync(syncing, reply, now))
    return answer.member_id


async def test_only_the_leader_of_a_shard_coordinates(
    home: FakeHome, clock: Clock
) -> None:
    coordinator = made(home, clock, load_time=1.0)
    assert coordinator.refuse(0, "g") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    clock.seconds = 1.0
    assert coordinator.refuse(0, "g") == ErrorCode.NONE
    assert coordinator.refuse(1, "g") == ErrorCode.NOT_COORDINATOR
    home.leader = 1
    coordinator.moved(0)
    assert coordinator.refuse(0, "g") == ErrorCode.NOT_COORDINATOR
    assert coordinator.refuse(1, "g") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    clock.seconds = 2.0
    assert coordinator.refuse(1, "g") == ErrorCode.NONE


async def test_a_join_waits_and_a_move_ends_the_wait(
    home: FakeHome, clock: Clock
) -> None:
    coordinator = made(home, clock, initial_rebalance_delay=3.0)
    group = coordinator.classic("g")
    assert group is not None
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(coordinator.wait(group, asking(group, joining())))
        await asyncio.sleep(0)
        assert not waiting.done()
        coordinator.moved(0)
    answer = waiting.result()
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    coordinator.close()


async def test_a_request_that_is_cancelled_is_forgotten(
    home: FakeHome, clock: Clock
) -> None:
    coordinator = made(home, clock, initial_rebalance_delay=3.0)
    group = coordinator.classic("g")
    assert group is not None
    task = asyncio.create_task(coordinator.wait(group, asking(group, joining())))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    clock.seconds = 3.0
    with coordinator.at_work(group) as now:
        group.tick(now)
    assert group.state is State.COMPLETING
    coordinator.close()


async def test_timers_run_on_the_loops_clock(home: FakeHome) -> None:
    coordinator = GroupCoordinator(
        home, config=GroupConfig(initial_rebalance_delay=0.01)
    )
    group = coordinator.classic("g")
    assert group is not None
    answer = await coordinator.wait(group, asking(group, joining()))
    assert isinstance(answer, JoinGroupResponse)
    assert answer.generation_id == 1
    coordinator.close()


async def test_groups_and_offsets_are_found_again(home: FakeHome, clock: Clock) -> None:
    first = made(home, clock)
    member = await stable(first, instance_id="i")
    first.commit("g", {("t", 0): Committed(7, 3, "meta", 5)})
    first.commit("g", {("t", 1): Committed(8, -1, "", 5)})
    first.forget("g", ("t", 1))
    first.commit("simple", {("t", 0): Committed(1, -1, "", 5)})
    await stable(first, instance_id="i", new_id="2")
    first.close()

    second = made(home, clock)
    assert second.refuse(0, "g") == ErrorCode.NONE
    group = second.find("g")
    assert isinstance(group, ClassicGroup)
    assert (group.state, group.generation, group.protocol) == (
        State.STABLE,
        1,
        "range",
    )
    (found,) = group.members.values()
    assert found.id == group.static["i"] != member
    assert (found.assignment, found.session_timeout) == (b"part", 10.0)
    assert found.metadata("range") == b"sub"
    assert group.deadline == 10.0
    assert second.offsets_of("g").get(("t", 0)) == Committed(7, 3, "meta", 5)
    assert second.offsets_of("g").places() == [("t", 0)]
    assert second.find("simple") is not None
    assert [one.id for one in second.led_by(0)] == ["g", "simple"]
    second.close()


async def test_a_group_that_is_deleted_is_gone_for_good(
    home: FakeHome, clock: Clock
) -> None:
    first = made(home, clock)
    member = await stable(first)
    first.commit("g", {("t", 0): Committed(7, 3, "", 5)})
    first.expel("g", member)
    first.delete("g")
    second = made(home, clock)
    assert second.refuse(0, "g") == ErrorCode.NONE
    assert second.find("g") is None
    assert len(second.offsets_of("g")) == 0


async def test_offsets_of_an_empty_group_expire_after_it_became_empty(
    home: FakeHome, clock: Clock
) -> None:
    coordinator = made(home, clock, offsets_retention=86400.0)
    said = b"\x00\x00" + encode(ConsumerProtocolSubscription(topics=["t"]), 0)
    member = await stable(coordinator, protocols=(("range", said),))
    coordinator.commit("g", {("t", 0): Committed(7, 3, "", 0)})
    clock.seconds = 200_000.0
    coordinator.expire()
    assert ("t", 0) in coordinator.offsets_of("g")
    coordinator.expel("g", member)
    clock.seconds += 86_399.0
    coordinator.expire()
    assert ("t", 0) in coordinator.offsets_of("g")
    clock.seconds += 1.0
    coordinator.expire()
    assert coordinator.find("g") is None


async def test_topics_that_members_read_do_not_expire(
    home: FakeHome, clock: Clock
) -> None:
    coordinator = made(home, clock, offsets_retention=1.0)
    home.topics["u"] = 1
    said = ConsumerProtocolSubscription(topics=["t"])
    subscription = b"\x00\x00" + encode(said, 0)
    await stable(coordinator, protocols=(("range", subscription),))
    coordinator.commit("g", {(topic, 0): Committed(7, 3, "", 0) for topic in "tu"})
    clock.seconds = 1.0
    coordinator.expire()
    assert coordinator.offsets_of("g").places() == [("t", 0)]
    coordinator.close()


@pytest.mark.parametrize("fields", [{"protocol_type": "connect"}, {}])
async def test_members_that_do_not_say_what_they_read_keep_all_offsets(
    home: FakeHome, clock: Clock, fields: dict[str, object]
) -> None:
    coordinator = made(home, clock, offsets_retention=1.0)
    await stable(coordinator, **fields)
    coordinator.commit("g", {("t", 0): Committed(7, 3, "", 0)})
    clock.seconds = 1.0
    coordinator.expire()
    assert coordinator.offsets_of("g").places() == [("t", 0)]
    coordinator.close()


async def test_offsets_without_members_expire_by_their_commit(
    home: FakeHome, clock: Clock
) -> None:
    coordinator = made(home, clock, offsets_retention=86400.0)
    coordinator.commit("g", {("t", 0): Committed(7, 3, "", 0)})
    coordinator.commit("g", {("t", 1): Committed(7, 3, "", 0, DAY_MS * 2)})
    clock.seconds = 86_400.0
    coordinator.expire()
    assert coordinator.offsets_of("g").places() == [("t", 1)]
    clock.seconds *= 2
    coordinator.expire()
    assert coordinator.find("g") is None


async def test_a_group_without_members_may_change_its_protocol(
    home: FakeHome, clock: Clock
) -> None:
    coordinator = made(home, clock)
    member = await stable(coordinator)
    assert coordinator.consumer("g") is None
    coordinator.expel("g", member)
    group = coordinator.consumer("g")
    assert group is not None
    assert coordinator.consumer("g") is group
    beat = Beat(
        member_id="m",
        epoch=0,
        rebalance_timeout=1.0,
        names=frozenset({"t"}),
        owned=frozenset(),
    )
    with coordinator.at_work(group) as now:
        assert group.heartbeat(beat, now).epoch == 2
    assert coordinator.classic("g") is None
    coordinator.rebalance("g")
    assert group.epoch == 3
    coordinator.expel("g", "m")
    clock.seconds = 1.0
    assert group.empty_since_ms == 0
    assert isinstance(coordinator.classic("g"), ClassicGroup)


async def test_no_timer_runs_while_nobody_coordinates(
    home: FakeHome, clock: Clock
) -> None:
    coordinator = made(home, clock)
    await stable(coordinator)
    assert coordinator._timers
    home.leader = -1
    coordinator.moved(0)
    assert not coordinator._timers
    home.leader = 1
    clock.seconds = 5.0
    coordinator.moved(0)
    assert coordinator._timers
    assert coordinator.groups["g"].deadline == 15.0
    coordinator.close()


async def test_a_target_by_hand(home: FakeHome, clock: Clock) -> None:
    coordinator = made(home, clock)
    group = coordinator.consumer("g")
    assert group is not None
    beat = Beat(
        member_id="m",
        epoch=0,
        rebalance_timeout=1.0,
        names=frozenset({"t"}),
        owned=frozenset(),
    )
    with coordinator.at_work(group) as now:
        group.heartbeat(beat, now)
    coordinator.assign("g", {"m": {"t": [1]}})
    assert group.target == {"m": {(home.topic_id("t"), 1)}}
    with pytest.raises(KeyError, match="none"):
        coordinator.assign("g", {"m": {"none": [1]}})
    coordinator.assign("g", None)
    with coordinator.at_work(group) as now:
        group.heartbeat(beat, now)
    assert len(group.target["m"]) == 2
    coordinator.commit("classic", {})
    with pytest.raises(TypeError, match="the leader"):
        coordinator.assign("classic", {})
    coordinator.close()


async def test_what_was_committed_expires_by_itself(
    home: FakeHome, clock: Clock
) -> None:
    coordinator = made(home, clock, offsets_retention=1.0)
    coordinator.commit("g", {("t", 0): Committed(7, 3, "", 0)})
    clock.seconds = 1.0
    home.leader = -1
    coordinator._check_expiry()
    assert coordinator.find("g") is not None
    home.leader = 0
    coordinator._check_expiry()
    assert coordinator.find("g") is None
