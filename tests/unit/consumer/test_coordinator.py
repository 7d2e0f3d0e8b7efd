"""Members of a group on scripted brokers, under a clock that jumps."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import ClassVar

import pytest

from kafkaio._client.client import Client
from kafkaio._config import ConsumerConfig
from kafkaio._consumer.commits.committer import OffsetCommitter
from kafkaio._consumer.group.member import ConsumerMember
from kafkaio._machines.membership.assignors import RangeAssignor
from kafkaio._machines.membership.classic.states import ClassicState
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.subscription import Subscription
from kafkaio.errors import (
    BrokerError,
    ClosedError,
    Fenced,
    GroupError,
    PartitionLost,
    UnsupportedVersion,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsResponse,
)
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaio.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafkaio.protocol.messages.sync_group import SyncGroupResponse
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from tests.fakes.broker import DISCONNECT, HANG, FakeCluster
from tests.unit.consumer.group_fakes import (
    FakeGroup,
    FakeHost,
    Member,
    until,
    virtual,
)


def everything(topic: str, count: int) -> set[tuple[str, int]]:
    return {(topic, number) for number in range(count)}


@virtual
async def test_a_lone_member_gets_everything_and_leaves() -> None:
    async with FakeCluster(nodes=2, topics={"t": 4}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as member:
            assert member.tps == everything("t", 4)
            assert member.host.calls == [("assigned", frozenset(everything("t", 4)))]
            assert member.group.identity().generation == 1
            assert member.group.statistics().is_leader
        assert member.host.names() == ["assigned", "requested", "revoking"]
        assert group.left == [member_id for member_id in group.left if member_id]
        assert len(group.left) == 1
        assert not group.members
        group.close()


@virtual
async def test_two_members_share_without_stopping_each_other() -> None:
    async with FakeCluster(nodes=2, topics={"t": 4}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as one, Member(cluster) as two:
            await until(lambda: len(two.tps) == 2)
            assert len(one.tps) == 2
            assert one.tps | two.tps == everything("t", 4)
            assert one.host.of("lost") == []
            # What stayed was never taken away.
            assert one.host.of("revoking") == [frozenset(two.tps)]
            await two.group.leave()
            await until(lambda: len(one.tps) == 4)
        group.close()


@virtual
async def test_eager_members_give_all_up_and_share() -> None:
    async with FakeCluster(nodes=1, topics={"t": 4}) as cluster:
        group = FakeGroup(cluster)
        options = {"partition_assignment_strategy": ("range",)}
        async with Member(cluster, **options) as one:
            async with Member(cluster, **options) as two:
                await until(lambda: len(one.host.owned) == 2 == len(two.host.owned))
                assert one.host.names() == [
                    "assigned",
                    "requested",
                    "revoking",
                    "assigned",
                ]
                assert one.tps | two.tps == everything("t", 4)
            await until(lambda: len(one.tps) == 4)
        group.close()


@virtual
async def test_a_busy_partition_is_kept_until_the_step() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as one:
            one.host.busy = set(one.group.assignment)
            async with Member(cluster) as two:
                await until(lambda: bool(one.group.to_be_revoked))
                await asyncio.sleep(20)
                # Twice the session timeout: nothing is lost, and nothing is given.
                assert len(one.tps) == 2
                assert not two.tps
                assert not group.expired
                (held,) = one.group.to_be_revoked
                await one.committer.commit({held: OffsetAndMetadata(7)}, timeout=5)
                assert group.offsets[held].offset == 7
                one.group.reported()
                one.group.step_taken()
                await until(lambda: two.tps == {held})
                assert one.host.of("revoking") == [frozenset({held})]
                with pytest.raises(PartitionLost, match=f"t-{held.partition}"):
                    await one.committer.commit({held: OffsetAndMetadata(8)}, timeout=5)
        group.close()


@virtual
async def test_what_is_never_released_is_lost_before_the_groups_deadline() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as one:
            one.host.busy = set(one.group.assignment)
            async with Member(cluster) as two:
                await until(lambda: bool(one.group.to_be_revoked))
                since = asyncio.get_running_loop().time()
                while not two.tps:
                    one.group.polled(asyncio.get_running_loop().time())
                    two.group.polled(asyncio.get_running_loop().time())
                    await asyncio.sleep(0.5)
                waited = asyncio.get_running_loop().time() - since
                assert 55 < waited < 62
                assert one.host.of("lost") == [frozenset(two.tps)]
                assert one.group.lost == frozenset(two.tps)
                assert not group.expired
                one.group.clear_lost()
                assert not one.group.lost
        group.close()


@virtual
async def test_an_eager_deadline_keeps_the_member_in_the_group() -> None:
    options = {
        "partition_assignment_strategy": ("range",),
        "max_poll_interval_ms": 20_000,
    }
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster, **options) as one:
            one.host.busy = set(one.group.assignment)
            two = Member(cluster, **options)
            await two.start()
            while not two.tps:
                one.group.polled(asyncio.get_running_loop().time())
                await asyncio.sleep(0.5)
            assert one.host.of("lost") == [frozenset(everything("t", 2))]
            assert not group.expired
            assert len(one.tps) == 1
            await two.stop()
        group.close()


@virtual
async def test_a_callback_without_end_is_cut_off() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster, max_poll_interval_ms=30_000) as one:

            async def hang(partitions: object) -> None:
                await asyncio.sleep(1e6)

            one.host.on_revoking = hang
            async with Member(cluster) as two:
                while not two.tps:
                    one.group.polled(asyncio.get_running_loop().time())
                    await asyncio.sleep(0.5)
                assert one.host.of("lost") == [frozenset(two.tps)]
                assert not group.expired
            one.host.on_revoking = None
        group.close()


@virtual
async def test_the_coordinator_moves() -> None:
    async with FakeCluster(nodes=2, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        cluster.move_coordinator("g", 0)
        async with Member(cluster) as one:
            assert one.group.statistics().coordinator == 0
            cluster.move_coordinator("g", 1)
            before = len(cluster.logged(ApiKey.HEARTBEAT, 1))
            await until(lambda: len(cluster.logged(ApiKey.HEARTBEAT, 1)) > before + 2)
            assert one.group.statistics().coordinator == 1
            assert one.host.names() == ["assigned"]
            assert group.generation == 1
            # And the node goes down with all its connections.
            cluster.move_coordinator("g", 0)
            cluster.stop(1)
            await asyncio.sleep(15)
            assert one.group.statistics().coordinator == 0
            assert one.host.names() == ["assigned"]
        group.close()


@virtual
async def test_a_coordinator_that_hangs_is_noticed_within_the_session() -> None:
    async with FakeCluster(nodes=2, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        cluster.move_coordinator("g", 0)
        async with Member(cluster) as one:
            cluster.stall(0)
            cluster.move_coordinator("g", 1)
            at = asyncio.get_running_loop().time()
            await until(lambda: one.group.statistics().coordinator != 0)
            assert asyncio.get_running_loop().time() - at <= 10.5
            # The look-up itself may go to the node that hangs first.
            await cluster.received(ApiKey.HEARTBEAT, node=1)
            assert one.group.state is ClassicState.STABLE
        group.close()


@virtual
async def test_a_coordinator_that_loads_is_waited_for() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        cluster.on(ApiKey.JOIN_GROUP, JoinGroupResponse(error_code=code), times=3)
        cluster.on(ApiKey.SYNC_GROUP, SyncGroupResponse(error_code=code), times=1)
        cluster.on(ApiKey.HEARTBEAT, HeartbeatResponse(error_code=code), times=2)
        async with Member(cluster) as one:
            assert len(one.tps) == 2
            await cluster.received(ApiKey.HEARTBEAT, 4)
            assert one.host.names() == ["assigned"]
        group.close()


@virtual
async def test_no_coordinator_yet() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        cluster.move_coordinator("g", -1)
        one = await Member(cluster).start()
        await asyncio.sleep(100)
        assert one.error is None
        cluster.move_coordinator("g", 0)
        one.group.polled(asyncio.get_running_loop().time())
        await one.group.wait_joined()
        assert len(one.tps) == 2
        await one.stop()
        group.close()


@virtual
async def test_thrown_out_it_loses_all_and_comes_back() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as one:
            numbers = dict(one.group.assignment)
            group.forget(one.group.identity().member_id)
            await until(lambda: one.host.names()[-2:] == ["lost", "assigned"])
            assert one.tps == everything("t", 2)
            assert all(one.group.assignment[tp] > n for tp, n in numbers.items())
            assert one.group.lost == frozenset()
            assert one.group.statistics().lost == 2
        group.close()


@virtual
async def test_who_does_not_poll_makes_room_and_may_return() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster, max_poll_interval_ms=15_000) as one:
            member_id = one.group.identity().member_id
            await until(lambda: one.group.state is ClassicState.STALLED)
            await until(lambda: group.left == [member_id])
            assert one.host.names()[-1] == "lost"
            one.group.polled(asyncio.get_running_loop().time())
            await until(lambda: len(one.tps) == 2)
            assert one.group.identity().member_id != member_id
        group.close()


@virtual
async def test_a_pattern_finds_topics_now_and_later() -> None:
    async with FakeCluster(nodes=1, topics={"a-1": 1, "b": 1}) as cluster:
        cluster.add_topic("a-internal", is_internal=True)
        group = FakeGroup(cluster)
        options = {"metadata_max_age_ms": 5_000}
        async with Member(cluster, re.compile("a-.*"), **options) as one:
            assert one.tps == {("a-1", 0)}
            cluster.add_topic("a-2", 2)
            await until(lambda: len(one.tps) == 3)
            assert one.host.of("lost") == []
            one.group.subscribe(frozenset({"b"}))
            await until(lambda: one.tps == {("b", 0)})
            assert not one.host.owned ^ set(one.group.assignment)
        group.close()


@virtual
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
async def test_a_new_topic_costs_a_pattern_one_generation(assignor: str) -> None:
    pattern, options = (
        re.compile("a-.*"),
        {"partition_assignment_strategy": (assignor,)},
    )
    async with (
        FakeCluster(nodes=1, topics={"a-1": 2}) as cluster,
        AsyncExitStack() as s,
    ):
        group, members = FakeGroup(cluster), list[Member]()
        for _ in range(4):
            member = Member(cluster, pattern, metadata_max_age_ms=20_000, **options)
            members.append(await s.enter_async_context(member))
            await asyncio.sleep(5)  # each sees a new topic at another time
        await asyncio.sleep(20)
        before = group.generation
        cluster.add_topic("a-2", 2)
        await asyncio.sleep(60)
        assert group.generation == before + 1
        owned = [tp for member in members for tp in member.tps]
        assert sorted(owned) == sorted(everything("a-1", 2) | everything("a-2", 2))
    group.close()


@virtual
async def test_a_pattern_joins_though_metadata_cannot_be_had() -> None:
    async with FakeCluster(nodes=2, topics={"a-1": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster, re.compile("a-.*")) as one:
            await asyncio.sleep(5)
            cluster.on(ApiKey.METADATA, lambda *_: HANG)
            before, start = group.generation, asyncio.get_running_loop().time()
            group.rebalance()
            await until(lambda: group.generation == before + 1)
            await until(lambda: one.group.state is ClassicState.STABLE)
            taken = asyncio.get_running_loop().time() - start
            assert taken < 1.0 + 10 / 3 + 1.0  # a heartbeat, the limit, and some more
            assert group.expired == []
        group.close()


@virtual
async def test_moved_partitions_are_assigned_within_a_second() -> None:
    interval = {"heartbeat_interval_ms": 3_000}
    async with FakeCluster(nodes=2, topics={"t": 6}) as cluster:
        group = FakeGroup(cluster)
        async with (
            Member(cluster, **interval) as one,
            Member(cluster, **interval) as two,
        ):
            await until(lambda: len(one.tps) == len(two.tps) == 3)
            async with Member(cluster, **interval) as three:
                await until(lambda: len(one.tps) + len(two.tps) < 6)
                moved_at = asyncio.get_running_loop().time()
                await until(lambda: len(three.tps) == 2)
                assert asyncio.get_running_loop().time() - moved_at < 1.0
            await asyncio.sleep(10)  # the handover of what the third one had
            beats = len(cluster.requests(HeartbeatRequest))
            await asyncio.sleep(60)
            # A quiet group sends no more of them than before.
            assert len(cluster.requests(HeartbeatRequest)) - beats <= 2 * 20
        group.close()


@virtual
async def test_the_leader_sees_new_partitions_of_anybodys_topic() -> None:
    async with FakeCluster(nodes=1, topics={"a": 1, "b": 1}) as cluster:
        group = FakeGroup(cluster)
        options = {"metadata_max_age_ms": 5_000}
        async with (
            Member(cluster, frozenset({"a"}), **options) as one,
            Member(cluster, frozenset({"b"}), **options) as two,
        ):
            assert one.group.statistics().is_leader
            cluster.add_topic("b", 3)
            await until(lambda: len(two.tps) == 3)
            assert one.tps == {("a", 0)}
        group.close()


@virtual
async def test_a_topic_that_comes_later() -> None:
    async with FakeCluster(nodes=1) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster, metadata_max_age_ms=5_000) as one:
            assert not one.tps
            assert one.host.of("assigned") == [frozenset()]
            cluster.add_topic("t", 2)
            await until(lambda: len(one.tps) == 2)
        group.close()


@virtual
async def test_unsubscribing_leaves_and_subscribing_joins_again() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as one:
            assert one.group.is_subscribed
            one.group.unsubscribe()
            assert not one.group.is_subscribed
            await until(lambda: len(group.left) == 1)
            assert not one.tps
            assert one.host.names()[-1] == "revoking"
            one.group.subscribe(frozenset({"t"}))
            await one.group.wait_joined()
            assert len(one.tps) == 2
            # Nothing to wait for.
            one.group.subscribe(frozenset({"t"}))
            await one.group.wait_joined()
            assert group.generation == 2
            assert one.group.identity().topics == {"t"}
        group.close()


@virtual
async def test_a_static_member_takes_its_place_again() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster, group_instance_id="i") as one:
            assert len(one.tps) == 2
        assert group.left == []
        async with Member(cluster, group_instance_id="i") as two:
            assert len(two.tps) == 2
            (request, *_) = cluster.requests(JoinGroupRequest)
            assert request.group_instance_id == "i"
        group.close()


@virtual
async def test_a_static_member_needs_a_broker_that_knows_such() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        FakeGroup(cluster)
        cluster.limit_version(ApiKey.JOIN_GROUP, 4)
        one = await Member(cluster, group_instance_id="i").start()
        with pytest.raises(UnsupportedVersion, match="group_instance_id"):
            await one.group.wait_joined()
        await one.client.close()


@virtual
async def test_old_brokers() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        for api, version in {
            ApiKey.JOIN_GROUP: 3,
            ApiKey.SYNC_GROUP: 2,
            ApiKey.HEARTBEAT: 2,
            ApiKey.LEAVE_GROUP: 2,
            ApiKey.FIND_COORDINATOR: 2,
            ApiKey.OFFSET_COMMIT: 6,
            ApiKey.OFFSET_FETCH: 5,
        }.items():
            cluster.limit_version(api, version)
        async with Member(cluster) as one:
            tp = TopicPartition("t", 0)
            await one.committer.commit({tp: OffsetAndMetadata(5, "x", 2)}, timeout=5)
            found = await one.committer.fetch([tp], timeout=5)
            assert found == {tp: OffsetAndMetadata(5, "x", 2)}
        assert len(group.left) == 1
        group.close()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.INVALID_GROUP_ID, GroupError),
        (ErrorCode.INVALID_SESSION_TIMEOUT, GroupError),
    ],
)
@virtual
async def test_a_final_refusal_reaches_all_who_wait(
    code: ErrorCode, kind: type[BrokerError]
) -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        cluster.on(ApiKey.JOIN_GROUP, JoinGroupResponse(error_code=code))
        one = await Member(cluster).start()
        with pytest.raises(kind, match="'g'"):
            await one.group.wait_joined()
        await one.ended.wait()
        assert isinstance(one.error, kind)
        with pytest.raises(kind):
            await one.group.wait_joined()
        await one.stop()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            DescribeGroupsResponse(
                groups=[DescribedGroup(protocol_type="consumer", protocol_data="range")]
            ),
            "uses the assignor 'range'; this member offers cooperative-sticky",
        ),
        (DISCONNECT, "another assignor"),
    ],
    ids=["asked", "not asked"],
)
@virtual
async def test_who_divides_otherwise_is_told_how_the_group_does(
    answer: DescribeGroupsResponse, text: str
) -> None:
    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        cluster.on(ApiKey.JOIN_GROUP, JoinGroupResponse(error_code=code))
        cluster.on(ApiKey.DESCRIBE_GROUPS, answer)
        one = await Member(cluster).start()
        with pytest.raises(GroupError, match=text):
            await one.group.wait_joined()
        await one.stop()


@virtual
async def test_an_assignor_knows_where_partitions_are() -> None:
    class Mine(RangeAssignor):
        name = "mine"
        layouts: ClassVar[list[Layout]] = []

        def assign(
            self, layout: Layout, members: Mapping[str, Subscription]
        ) -> dict[str, list[TopicPartition]]:
            self.layouts.append(layout)
            return super().assign(layout, members)

    async with FakeCluster(nodes=2, topics={"t": 2, "other": 1}) as cluster:
        group = FakeGroup(cluster)
        cluster.nodes[0].rack = "x"
        async with Member(cluster, partition_assignment_strategy=(Mine(),)) as one:
            assert len(one.tps) == 2
            view = one.client.cluster
            partitions = {
                TopicPartition("t", p.partition): p for p in view.partitions("t")
            }
            (layout,) = Mine.layouts
            assert layout.counts == {"t": 2}
            assert layout.leaders == {tp: p.leader for tp, p in partitions.items()}
            assert layout.racks == {
                tp: frozenset({"x"} if 0 in p.replicas else ())
                for tp, p in partitions.items()
            }
        group.close()


@virtual
async def test_fenced_while_it_holds_partitions() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        one = await Member(cluster, group_instance_id="i").start()
        await one.group.wait_joined()
        code = ErrorCode.FENCED_INSTANCE_ID
        cluster.on(ApiKey.HEARTBEAT, HeartbeatResponse(error_code=code))
        await one.ended.wait()
        assert isinstance(one.error, Fenced)
        assert one.host.names()[-1] == "lost"
        await one.client.close()
        group.close()


@virtual
async def test_a_host_that_crashes_ends_the_membership() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        one = Member(cluster)

        async def crash(partitions: object) -> None:
            raise ZeroDivisionError("a bug")

        one.host.on_assigned = crash
        await one.start()
        with pytest.raises(ZeroDivisionError):
            await one.group.wait_joined()
        await one.ended.wait()
        assert isinstance(one.error, ZeroDivisionError)
        await one.client.close()
        group.close()


@pytest.mark.parametrize(
    "api",
    [
        ApiKey.FIND_COORDINATOR,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
    ],
)
@virtual
async def test_leaving_is_bounded_in_every_state(api: ApiKey) -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        cluster.hold(api)
        one = await Member(cluster).start()
        if api is not ApiKey.LEAVE_GROUP:
            await cluster.received(api)
        else:
            await one.group.wait_joined()
        at = asyncio.get_running_loop().time()
        await one.group.leave()
        # At most what one request may take.
        assert asyncio.get_running_loop().time() - at <= 30.5
        await one.ended.wait()
        assert one.error is None
        assert one.group.state is ClassicState.LEFT
        with pytest.raises(ClosedError):
            await one.group.wait_joined()
        await one.client.close(timeout=1)
        group.close()


@virtual
async def test_leaving_without_a_cluster() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        one = await Member(cluster).start()
        await one.group.wait_joined()
        cluster.stop(0)
        await asyncio.sleep(0.5)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(3):
                await one.group.leave()
        assert one.host.names()[-1] == "revoking"
        await one.client.close(timeout=1)
        assert one.ended.is_set()
        group.close()


@virtual
async def test_leaving_before_it_began_and_running_twice() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        one = Member(cluster)
        await one.group.leave()
        assert one.group.state is ClassicState.LEFT
        async with Member(cluster) as two:
            with pytest.raises(UsageError, match="once"):
                await two.group.run()
        group.close()


@virtual
async def test_the_observer_hears() -> None:
    heard = []

    class Listener:
        def rebalance(
            self, state: str, assigned: object, revoked: object, lost: object
        ) -> None:
            heard.append((state, assigned, revoked, lost))

    async with FakeCluster(nodes=1, topics={"t": 1}) as cluster:
        group = FakeGroup(cluster)
        one = Member(cluster, observer=Listener())
        await one.start()
        await one.group.wait_joined()
        await one.stop()
        group.close()
    tp = frozenset({TopicPartition("t", 0)})
    assert heard[0] == ("STABLE", tp, (), ())
    assert ("LEAVING", (), tp, ()) in heard


@virtual
async def test_a_forced_rebalance_says_why() -> None:
    async with FakeCluster(nodes=1, topics={"t": 1}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as one:
            one.group.enforce_rebalance("lag")
            await until(lambda: group.generation == 2)
            assert cluster.requests(JoinGroupRequest)[-1].reason == "lag"
            assert "STABLE" in repr(one.group)
        group.close()


def test_a_group_needs_a_name() -> None:
    config = ConsumerConfig(bootstrap_servers=(("h", 1),))
    client = Client.from_config(config)
    with pytest.raises(UsageError, match="group_id"):
        OffsetCommitter(client._cluster, config, GroupMetadata)
    with pytest.raises(UsageError, match="group_id"):
        ConsumerMember(client._cluster, config, FakeHost())


@virtual
async def test_a_request_is_told_before_anything_else_can_happen() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as one:
            one.host.busy = set(one.group.assignment)
            one.group.subscribe(frozenset({"u"}))
            # Else a user who reads on in this very turn of the loop would step past it.
            assert one.host.of("requested") == [frozenset(one.host.busy)]
            one.group.reported()
            one.group.step_taken()
            await until(lambda: one.host.of("revoking") == [one.host.busy])
        group.close()


@virtual
async def test_a_host_that_fails_ends_the_membership() -> None:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        one = await Member(cluster).start()
        await one.group.wait_joined()

        def fail(*args: object) -> None:
            raise ZeroDivisionError("mine")

        one.host.revoke_requested = fail  # type: ignore[method-assign]
        one.group.unsubscribe()
        await one.ended.wait()
        assert isinstance(one.error, ZeroDivisionError)
        await one.stop()
        group.close()
