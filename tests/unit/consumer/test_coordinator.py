"""Members of a group on scripted brokers, under a clock that jumps."""

from __future__ import annotations

from tests.fakes.broker import FakeCluster
from tests.unit.consumer.group_fakes import FakeGroup, Member, until, virtual


def everything(topic: str, count: int) -> set[tuple[str, int]]:
    return {(topic, number) for number in range(count)}


@virtual
async def test_a_lone_member_gets_everything_and_leaves() -> None:
    async with FakeCluster(nodes=2, topics={"t": 4}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as member:
            assert member.tps == everything("t", 4)
            assert member.host.calls == [("assigned", frozenset(everything("t", 4)))]
            assert member.group.metadata.generation == 1
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
