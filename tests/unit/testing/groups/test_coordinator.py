from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kafkaio.protocol._codec import encode
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from kafkaio.protocol.messages.join_group import JoinGroupResponse
from kafkaio.testing._broker.group_config import GroupConfig
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.classic import ClassicGroup
from kafkaio.testing._groups.classic_member import (
    ClassicGroupState,
    JoinRequest,
    SyncRequest,
)
from kafkaio.testing._groups.control import GroupCoordinatorControl
from kafkaio.testing._groups.coordinator import EmbeddedGroupCoordinator
from kafkaio.testing._groups.kip848 import Kip848Group
from kafkaio.testing._groups.kip848_member import Kip848Heartbeat
from kafkaio.testing._groups.offsets import Committed
from tests.unit.testing.groups.fake_cluster_port import FakeClusterPort

DAY_MS = 86_400_000


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def wall_ms(self) -> int:
        return round(self.seconds * 1000)


def made(
    cluster: FakeClusterPort, clock: Clock, **config: float
) -> EmbeddedGroupCoordinator:
    return EmbeddedGroupCoordinator(
        cluster,
        now=clock.now,
        wall_ms=clock.wall_ms,
        config=GroupConfig(**config),  # type: ignore[arg-type]
    )


@pytest.fixture
def cluster() -> FakeClusterPort:
    return FakeClusterPort(t=2)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def joining(new_id: str = "1", **fields: object) -> JoinRequest:
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
    return JoinRequest(**(said | fields))  # type: ignore[arg-type]


def asking(group: ClassicGroup, request: JoinRequest) -> Callable[[int, float], None]:
    return lambda reply, now: group.join(request, reply, now)


async def stable(coordinator: EmbeddedGroupCoordinator, **fields: object) -> str:
    group = coordinator.classic("g")
    assert group is not None
    request = joining(**fields)  # type: ignore[arg-type]
    answer = await coordinator.wait(group, asking(group, request))
    assert isinstance(answer, JoinGroupResponse)
    syncing = SyncRequest(
        member_id=answer.member_id,
        instance_id=fields.get("instance_id"),  # type: ignore[arg-type]
        generation=answer.generation_id,
        assignments={answer.member_id: b"part"},
    )
    await coordinator.wait(group, lambda reply, now: group.sync(syncing, reply, now))
    return answer.member_id


async def test_only_the_leader_of_a_shard_coordinates(
    cluster: FakeClusterPort, clock: Clock
) -> None:
    coordinator = made(cluster, clock, load_time=1.0)
    assert coordinator.refuse(0, "g") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    clock.seconds = 1.0
    assert coordinator.refuse(0, "g") == ErrorCode.NONE
    assert coordinator.refuse(1, "g") == ErrorCode.NOT_COORDINATOR
    cluster.leader = 1
    coordinator.moved(0)
    assert coordinator.refuse(0, "g") == ErrorCode.NOT_COORDINATOR
    assert coordinator.refuse(1, "g") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    clock.seconds = 2.0
    assert coordinator.refuse(1, "g") == ErrorCode.NONE


async def test_a_join_waits_and_a_move_ends_the_wait(
    cluster: FakeClusterPort, clock: Clock
) -> None:
    coordinator = made(cluster, clock, initial_rebalance_delay=3.0)
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
    cluster: FakeClusterPort, clock: Clock
) -> None:
    coordinator = made(cluster, clock, initial_rebalance_delay=3.0)
    group = coordinator.classic("g")
    assert group is not None
    task = asyncio.create_task(coordinator.wait(group, asking(group, joining())))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    clock.seconds = 3.0
    with coordinator.changing(group) as now:
        group.tick(now)
    assert group.state is ClassicGroupState.COMPLETING
    coordinator.close()


async def test_timers_run_on_the_loops_clock(cluster: FakeClusterPort) -> None:
    coordinator = EmbeddedGroupCoordinator(
        cluster, config=GroupConfig(initial_rebalance_delay=0.01)
    )
    group = coordinator.classic("g")
    assert group is not None
    answer = await coordinator.wait(group, asking(group, joining()))
    assert isinstance(answer, JoinGroupResponse)
    assert answer.generation_id == 1
    coordinator.close()


async def test_groups_and_offsets_are_found_again(
    cluster: FakeClusterPort, clock: Clock
) -> None:
    first = made(cluster, clock)
    member = await stable(first, instance_id="i")
    first.commit("g", {("t", 0): Committed(7, 3, "meta", 5)})
    first.commit("g", {("t", 1): Committed(8, -1, "", 5)})
    first.forget("g", ("t", 1))
    first.commit("simple", {("t", 0): Committed(1, -1, "", 5)})
    await stable(first, instance_id="i", new_id="2")
    first.close()

    second = made(cluster, clock)
    assert second.refuse(0, "g") == ErrorCode.NONE
    group = second.find("g")
    assert isinstance(group, ClassicGroup)
    assert (group.state, group.generation, group.protocol) == (
        ClassicGroupState.STABLE,
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
    cluster: FakeClusterPort, clock: Clock
) -> None:
    first = made(cluster, clock)
    member = await stable(first)
    first.commit("g", {("t", 0): Committed(7, 3, "", 5)})
    GroupCoordinatorControl(first).expel("g", member)
    first.delete("g")
    second = made(cluster, clock)
    assert second.refuse(0, "g") == ErrorCode.NONE
    assert second.find("g") is None
    assert len(second.offsets_of("g")) == 0


async def test_offsets_of_an_empty_group_expire_after_it_became_empty(
    cluster: FakeClusterPort, clock: Clock
) -> None:
    coordinator = made(cluster, clock, offsets_retention=86400.0)
    said = b"\x00\x00" + encode(ConsumerProtocolSubscription(topics=["t"]), 0)
    member = await stable(coordinator, protocols=(("range", said),))
    coordinator.commit("g", {("t", 0): Committed(7, 3, "", 0)})
    clock.seconds = 200_000.0
    coordinator.expire()
    assert ("t", 0) in coordinator.offsets_of("g")
    GroupCoordinatorControl(coordinator).expel("g", member)
    clock.seconds += 86_399.0
    coordinator.expire()
    assert ("t", 0) in coordinator.offsets_of("g")
    clock.seconds += 1.0
    coordinator.expire()
    assert coordinator.find("g") is None


async def test_topics_that_members_read_do_not_expire(
    cluster: FakeClusterPort, clock: Clock
) -> None:
    coordinator = made(cluster, clock, offsets_retention=1.0)
    cluster.topics["u"] = 1
    said = ConsumerProtocolSubscription(topics=["t"])
    subscription = b"\x00\x00" + encode(said, 0)
    await stable(coordinator, protocols=(("range", subscription),))
    coordinator.commit("g", {(topic, 0): Committed(7, 3, "", 0) for topic in "tu"})
    clock.seconds = 1.0
    coordinator.expire()
    assert coordinator.offsets_of("g").places() == [("t", 0)]
    coordinator.close()


@pytest.mark.parametrize("fields", [{"protocol_type": "connect"}, {}])
async def test_members_with_malformed_subscriptions_keep_all_offsets(
    cluster: FakeClusterPort, clock: Clock, fields: dict[str, object]
) -> None:
    coordinator = made(cluster, clock, offsets_retention=1.0)
    await stable(coordinator, **fields)
    coordinator.commit("g", {("t", 0): Committed(7, 3, "", 0)})
    clock.seconds = 1.0
    coordinator.expire()
    assert coordinator.offsets_of("g").places() == [("t", 0)]
    coordinator.close()


async def test_offsets_without_members_expire_by_their_commit(
    cluster: FakeClusterPort, clock: Clock
) -> None:
    coordinator = made(cluster, clock, offsets_retention=86400.0)
    coordinator.commit("g", {("t", 0): Committed(7, 3, "", 0)})
    coordinator.commit("g", {("t", 1): Committed(7, 3, "", 0, DAY_MS * 2)})
    clock.seconds = 86_400.0
    coordinator.expire()
    assert coordinator.offsets_of("g").places() == [("t", 1)]
    clock.seconds *= 2
    coordinator.expire()
    assert coordinator.find("g") is None


def joining_beat(member_id: str = "m", **fields: object) -> Kip848Heartbeat:
    said: dict[str, object] = {
        "rebalance_timeout": 1.0,
        "names": frozenset({"t"}),
        "owned": frozenset(),
    }
    return Kip848Heartbeat(member_id=member_id, epoch=0, **(said | fields))  # type: ignore[arg-type]


async def test_a_group_without_members_may_change_its_protocol(
    cluster: FakeClusterPort, clock: Clock
) -> None:
    coordinator = made(cluster, clock)
    member = await stable(coordinator)
    assert (
        coordinator.kip848_heartbeat("g", joining_beat()).error
        == ErrorCode.GROUP_ID_NOT_FOUND
    )
    GroupCoordinatorControl(coordinator).expel("g", member)
    assert coordinator.kip848_heartbeat("g", joining_beat()).epoch == 2
    group = coordinator.find("g")
    assert isinstance(group, Kip848Group)
    GroupCoordinatorControl(coordinator).rebalance("g")
    assert group.epoch == 3
    GroupCoordinatorControl(coordinator).expel("g", "m")
    assert isinstance(coordinator.classic("g"), ClassicGroup)


async def test_no_timer_runs_without_a_coordinator(
    cluster: FakeClusterPort, clock: Clock
) -> None:
    coordinator = made(cluster, clock)
    await stable(coordinator)
    assert coordinator._timers
    cluster.leader = -1
    coordinator.moved(0)
    assert not coordinator._timers
    cluster.leader = 1
    clock.seconds = 5.0
    coordinator.moved(0)
    assert coordinator._timers
    assert coordinator.groups["g"].deadline == 15.0
    coordinator.close()


async def test_a_target_by_hand(cluster: FakeClusterPort, clock: Clock) -> None:
    coordinator = made(cluster, clock)
    coordinator.kip848_heartbeat("g", joining_beat())
    group = coordinator.find("g")
    assert isinstance(group, Kip848Group)
    GroupCoordinatorControl(coordinator).assign("g", {"m": {"t": [1]}})
    assert group.target == {"m": {(cluster.topic_id("t"), 1)}}
    with pytest.raises(KeyError, match="none"):
        GroupCoordinatorControl(coordinator).assign("g", {"m": {"none": [1]}})
    GroupCoordinatorControl(coordinator).assign("g", None)
    coordinator.kip848_heartbeat("g", joining_beat())
    assert len(group.target["m"]) == 2
    coordinator.commit("classic", {})
    with pytest.raises(TypeError, match="its leader assigns"):
        GroupCoordinatorControl(coordinator).assign("classic", {})
    coordinator.close()


async def test_committed_offsets_expire_by_a_timer(
    cluster: FakeClusterPort, clock: Clock
) -> None:
    coordinator = made(cluster, clock, offsets_retention=1.0)
    coordinator.commit("g", {("t", 0): Committed(7, 3, "", 0)})
    clock.seconds = 1.0
    cluster.leader = -1
    coordinator._check_expiry()
    assert coordinator.find("g") is not None
    cluster.leader = 0
    coordinator._check_expiry()
    assert coordinator.find("g") is None


# Groups that change their protocol


def said() -> tuple[tuple[str, bytes], ...]:
    subscription = ConsumerProtocolSubscription(topics=["t"])
    return (("range", b"\x00\x00" + encode(subscription, 0)),)


async def test_waiting_members_of_an_upgraded_group_have_to_join_again(
    cluster: FakeClusterPort, clock: Clock
) -> None:
    coordinator = made(cluster, clock)
    member = await stable(coordinator, protocols=said())
    first = coordinator.find("g")
    assert isinstance(first, ClassicGroup)
    first.members[member].assignment = b""
    waiting = asyncio.ensure_future(
        coordinator.join("g", joining("2", client_id="d", protocols=said()))
    )
    await asyncio.sleep(0)
    assert coordinator.kip848_heartbeat("g", joining_beat()).error == ErrorCode.NONE
    answer = await waiting
    assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    group = coordinator.find("g")
    assert isinstance(group, Kip848Group)
    assert group.members.keys() == {member, answer.member_id, "m"}
    joined = await coordinator.join(
        "g", joining(member_id=answer.member_id, protocols=said())
    )
    assert joined.generation_id == group.epoch
    told = await coordinator.sync(
        "g",
        SyncRequest(
            member_id=joined.member_id,
            instance_id=None,
            generation=joined.generation_id,
        ),
    )
    assert told.error_code == ErrorCode.NONE
    coordinator.close()


async def test_a_first_heartbeat_that_fails_leaves_the_group_as_it_is(
    cluster: FakeClusterPort, clock: Clock
) -> None:
    coordinator = made(cluster, clock)
    await stable(coordinator, protocols=said())
    first, written = coordinator.find("g"), len(cluster.records)
    assert isinstance(first, ClassicGroup)
    first.members[next(iter(first.members))].assignment = b""
    wrong = joining_beat(regex="(")
    error = coordinator.kip848_heartbeat("g", wrong).error
    assert error == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert coordinator.find("g") is first
    assert coordinator.kip848_heartbeat("new", wrong).error == error
    assert coordinator.find("new") is None
    assert len(cluster.records) == written
    coordinator.close()


async def test_a_group_goes_from_one_protocol_to_the_other_and_back(
    cluster: FakeClusterPort, clock: Clock
) -> None:
    coordinator = made(cluster, clock)
    member = await stable(coordinator, protocols=said())
    classic = coordinator.find("g")
    assert isinstance(classic, ClassicGroup)
    classic.members[member].assignment = b""
    classic.generation = 7
    coordinator.kip848_heartbeat("g", joining_beat())
    again = made(cluster, clock)
    assert again.refuse(0, "g") == ErrorCode.NONE
    assert isinstance(again.find("g"), Kip848Group)
    leaves = Kip848Heartbeat(member_id="m", epoch=-1)
    assert coordinator.kip848_heartbeat("g", leaves).error == ErrorCode.NONE
    group = coordinator.find("g")
    assert isinstance(group, ClassicGroup)
    assert (group.state, group.generation) == (ClassicGroupState.PREPARING, 8)
    assert coordinator.heartbeat("g", member, None, 8) == (
        ErrorCode.REBALANCE_IN_PROGRESS
    )
    # What was written at the change is there, although the group is not stable.
    again = made(cluster, clock)
    assert again.refuse(0, "g") == ErrorCode.NONE
    found = again.find("g")
    assert isinstance(found, ClassicGroup)
    assert (found.state, found.generation) == (ClassicGroupState.STABLE, 8)
    coordinator.close()
    again.close()


async def test_a_coordinator_that_moves_has_what_was_written(
    cluster: FakeClusterPort, clock: Clock
) -> None:
    coordinator = made(cluster, clock, load_time=2.0)
    member = await stable(coordinator)
    coordinator.commit("g", {("t", 0): Committed(7, 3, "", 0)})
    waiting = asyncio.ensure_future(coordinator.join("g", joining("2")))
    await asyncio.sleep(0)
    coordinator.moved(0)
    assert (await waiting).error_code == ErrorCode.NOT_COORDINATOR
    group = coordinator.find("g")
    assert isinstance(group, ClassicGroup)
    # The rebalance is lost, with the members that joined in it.
    assert (group.state, list(group.members)) == (ClassicGroupState.STABLE, [member])
    assert group.members[member].session_deadline == 12.0
    assert GroupCoordinatorControl(coordinator).committed("g", "t", 0) == 7
    with pytest.raises(Refusal, match="COORDINATOR_LOAD_IN_PROGRESS"):
        coordinator.led_by(0)
    clock.seconds = 2.0
    assert coordinator.led_by(0) == [group]
    coordinator.close()


async def test_requests_to_unknown_groups(
    cluster: FakeClusterPort, clock: Clock
) -> None:
    coordinator = made(cluster, clock)
    syncing = SyncRequest(member_id="m", instance_id=None, generation=1)
    with pytest.raises(Refusal, match="UNKNOWN_MEMBER_ID"):
        await coordinator.sync("g", syncing)
    with pytest.raises(Refusal, match="UNKNOWN_MEMBER_ID"):
        coordinator.heartbeat("g", "m", None, 1)
    assert coordinator.leave("g", [("m", None)]) == [ErrorCode.UNKNOWN_MEMBER_ID]
    beat = Kip848Heartbeat(member_id="m", epoch=1)
    assert coordinator.kip848_heartbeat("g", beat).error == ErrorCode.GROUP_ID_NOT_FOUND


async def test_a_member_that_is_told_to_join_is_waited_for(
    cluster: FakeClusterPort, clock: Clock
) -> None:
    coordinator = made(cluster, clock)
    coordinator.kip848_heartbeat("g", joining_beat())
    joined = await coordinator.join("g", joining(member_id="c", protocols=said()))
    coordinator.kip848_heartbeat("g", joining_beat("n"))
    group = coordinator.find("g")
    assert isinstance(group, Kip848Group)
    group.members["c"].sync_deadline = 1000.0
    syncing = SyncRequest(
        member_id="c", instance_id=None, generation=joined.generation_id
    )
    with pytest.raises(Refusal, match="REBALANCE_IN_PROGRESS"):
        await coordinator.sync("g", syncing)
    # The timer runs, although the request failed.
    assert group.members["c"].join_deadline < 1000.0
    assert coordinator._timers
    coordinator.close()


async def test_a_group_with_only_pending_members_is_replaced(
    cluster: FakeClusterPort, clock: Clock
) -> None:
    coordinator = made(cluster, clock)
    member = await stable(coordinator, protocols=said())
    told = await coordinator.join(
        "g", joining("2", protocols=said(), knows_member_id_required=True)
    )
    assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert coordinator.leave("g", [(member, None)]) == [ErrorCode.NONE]
    # Its epoch continues from the generation of the classic group.
    assert coordinator.kip848_heartbeat("g", joining_beat()).epoch == 2
    group = coordinator.find("g")
    assert isinstance(group, Kip848Group)
    assert group.members.keys() == {"m"}
    coordinator.close()
