"""Commits in order, fenced, and tried again; committed offsets read when stable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafkaio._client.client import Client
from kafkaio._client.cluster import Cluster
from kafkaio._config import ConsumerConfig
from kafkaio._consumer.commits.committer import OffsetCommitter
from kafkaio._machines.membership.fence import Fence
from kafkaio._machines.membership.ledger import RevokeLedger
from kafkaio.errors import (
    AuthorizationError,
    BrokerError,
    CommitFailed,
    Fenced,
    PartitionLost,
    RebalanceInProgress,
    RequestTimeout,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kafkaio.protocol.messages.sync_group import SyncGroupResponse
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from tests.fakes.broker import DISCONNECT, FakeCluster
from tests.unit.consumer.group_fakes import FakeGroup, Member, until, virtual

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def at(offset: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset)


def refuse(*codes: int) -> Callable[..., OffsetCommitResponse]:
    """Answer the partitions of a commit with these codes, in turn."""

    def handle(node: Any, header: Any, request: Any) -> OffsetCommitResponse:
        left = list(codes)
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=p.partition_index,
                            error_code=left.pop(0) if len(left) > 1 else left[0],
                        )
                        for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return handle


def offsets_answer(code: int = 0, group_code: int = 0, offset: int = 5) -> Any:
    return OffsetFetchResponse(
        groups=[
            OffsetFetchResponseGroup(
                group_id="g",
                error_code=group_code,
                topics=[
                    OffsetFetchResponseTopics(
                        name="t",
                        partitions=[
                            OffsetFetchResponsePartitions(
                                partition_index=0,
                                committed_offset=offset,
                                error_code=code,
                                metadata=None,
                            )
                        ],
                    )
                ],
            )
        ]
    )


@asynccontextmanager
async def alone(
    cluster: FakeCluster, observer: object = None
) -> AsyncIterator[OffsetCommitter]:
    """A committer without a membership."""
    config = ConsumerConfig(bootstrap_servers=cluster.bootstrap_servers, group_id="g")
    async with Client.from_config(
        config, observer=observer, dial=cluster.dial
    ) as client:
        yield OffsetCommitter(
            client._cluster, config, lambda: GroupMetadata(group_id="g")
        )


@virtual
async def test_without_a_membership() -> None:
    heard = []

    class Listener:
        def offsets_committed(self, offsets: object, seconds: float) -> None:
            heard.append(offsets)

    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with alone(cluster, Listener()) as committer:
            assert await committer.fetch([A, B], timeout=5) == {A: None, B: None}
            await committer.commit({}, timeout=5)
            await committer.commit(
                {A: OffsetAndMetadata(3, "note", 7), B: at(9)}, timeout=5
            )
            (request,) = cluster.requests(OffsetCommitRequest)
            assert (request.generation_id_or_member_epoch, request.member_id) == (
                -1,
                "",
            )
            assert heard == [{A: OffsetAndMetadata(3, "note", 7), B: at(9)}]
            found = await committer.fetch(None, timeout=5)
            assert found == {A: OffsetAndMetadata(3, "note", 7), B: at(9)}
            assert await committer.fetch([], timeout=5) == {}
            last = cluster.requests(OffsetFetchRequest)[-1]
            assert last.require_stable
            assert last.groups[0].topics is None
        group.close()


@virtual
async def test_commits_take_effect_in_the_order_of_the_calls() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        gate = cluster.hold(ApiKey.OFFSET_COMMIT)
        async with alone(cluster) as committer, asyncio.TaskGroup() as tasks:
            for offset in range(5):
                tasks.create_task(committer.commit({A: at(offset)}, timeout=50))
                await until(lambda: gate.waiting == 1)
            await asyncio.sleep(0)
            assert len(cluster.requests(OffsetCommitRequest)) == 1
            cluster.reset(ApiKey.OFFSET_COMMIT)
            cluster.on(ApiKey.OFFSET_COMMIT, group._commit)
            gate.release(
                outcome=refuse(E.COORDINATOR_LOAD_IN_PROGRESS)(
                    None, None, cluster.requests(OffsetCommitRequest)[0]
                )
            )
        sent = [
            r.topics[0].partitions[0].committed_offset
            for r in cluster.requests(OffsetCommitRequest)
        ]
        # The first one was refused; what is tried again has those that came since.
        assert sent == [0, 4]
        assert group.offsets[A] == at(4)
        group.close()


@virtual
async def test_a_commit_that_fails_as_it_begins_holds_up_no_other() -> None:
    broken = [False]

    def identity() -> GroupMetadata:
        if broken[0]:
            raise ArithmeticError
        return GroupMetadata(group_id="g")

    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        config = ConsumerConfig(
            bootstrap_servers=cluster.bootstrap_servers, group_id="g"
        )
        async with Client.from_config(config, dial=cluster.dial) as client:
            committer = OffsetCommitter(client._cluster, config, identity)
            await committer.commit({A: at(1)}, timeout=5)
            broken[0] = True
            with pytest.raises(ArithmeticError):
                await committer.commit({A: at(2)}, timeout=5)
            broken[0] = False
            await committer.commit({A: at(3)}, timeout=5)
        assert group.offsets == {A: at(3)}
        group.close()


@virtual
async def test_a_cancelled_commit_leaves_its_request_and_holds_up_no_other() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with alone(cluster) as committer:
            await committer.commit({A: at(1)}, timeout=5)
            gate = cluster.hold(ApiKey.OFFSET_COMMIT)
            begun = asyncio.ensure_future(committer.commit({A: at(2)}, timeout=50))
            await until(lambda: gate.waiting == 1)
            begun.cancel()
            with pytest.raises(asyncio.CancelledError):
                await begun
            cluster.reset(ApiKey.OFFSET_COMMIT)
            cluster.on(ApiKey.OFFSET_COMMIT, group._commit)
            following = asyncio.ensure_future(committer.commit({B: at(3)}, timeout=50))
            await asyncio.sleep(0)
            gate.release()
            await following
        assert group.offsets[B] == at(3)
        sent = cluster.requests(OffsetCommitRequest)
        # Nothing of the cancelled call is sent again.
        assert [len(each.topics[0].partitions) for each in sent] == [1, 1, 1]
        group.close()


@virtual
async def test_commits_called_at_once_go_out_together() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with alone(cluster) as committer, asyncio.TaskGroup() as tasks:
            for offset in range(1000):
                what = {TopicPartition("t", offset % 2): at(offset)}
                tasks.create_task(committer.commit(what, timeout=50))
        assert len(cluster.requests(OffsetCommitRequest)) == 1
        assert group.offsets == {A: at(998), B: at(999)}
        group.close()


@virtual
async def test_metadata_and_epochs_go_with_their_offset() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        early, late = OffsetAndMetadata(9, "early", 3), OffsetAndMetadata(2, "late", 1)
        async with alone(cluster) as committer, asyncio.TaskGroup() as tasks:
            for what in ({A: at(1)}, {A: early, B: early}, {A: late}):
                tasks.create_task(committer.commit(what, timeout=50))
        assert len(cluster.requests(OffsetCommitRequest)) == 1
        assert group.offsets == {A: late, B: early}
        group.close()


@virtual
async def test_of_commits_sent_together_each_is_told_of_its_own_partitions() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        gate = cluster.hold(ApiKey.OFFSET_COMMIT)
        async with alone(cluster) as committer, asyncio.TaskGroup() as tasks:
            first = tasks.create_task(committer.commit({A: at(1)}, timeout=50))
            await until(lambda: gate.waiting == 1)
            fine = tasks.create_task(committer.commit({A: at(2)}, timeout=50))
            both = {A: at(3), B: at(3)}
            tasks.create_task(_refused(committer, AuthorizationError, both))
            cluster.reset(ApiKey.OFFSET_COMMIT)
            refused = refuse(E.NONE, E.TOPIC_AUTHORIZATION_FAILED)
            cluster.on(ApiKey.OFFSET_COMMIT, refused)
            gate.release()
        assert first.done()
        assert fine.done()
        assert len(cluster.requests(OffsetCommitRequest)) == 2
        group.close()


@virtual
async def test_metadata_that_is_refused_fails_nobody_elses_offset() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        gate = cluster.hold(ApiKey.OFFSET_COMMIT)
        async with alone(cluster) as committer, asyncio.TaskGroup() as tasks:
            tasks.create_task(committer.commit({B: at(1)}, timeout=50))
            await until(lambda: gate.waiting == 1)
            tasks.create_task(committer.commit({A: at(2)}, timeout=50))
            much = {A: OffsetAndMetadata(3, "m" * 5000)}
            tasks.create_task(_refused(committer, BrokerError, much))
            cluster.reset(ApiKey.OFFSET_COMMIT)
            cluster.on(ApiKey.OFFSET_COMMIT, group._commit)
            unfit = refuse(E.OFFSET_METADATA_TOO_LARGE)
            cluster.on(ApiKey.OFFSET_COMMIT, unfit, times=1)
            gate.release()
        assert group.offsets[A] == at(2)
        group.close()


@virtual
async def test_who_is_cancelled_takes_back_its_own_wish_alone() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        gate = cluster.hold(ApiKey.OFFSET_COMMIT)
        async with alone(cluster) as committer, asyncio.TaskGroup() as tasks:
            sender = tasks.create_task(committer.commit({A: at(1)}, timeout=50))
            await until(lambda: gate.waiting == 1)
            tasks.create_task(committer.commit({A: at(2)}, timeout=50))
            gone = tasks.create_task(committer.commit({A: at(3), B: at(3)}, timeout=50))
            await asyncio.sleep(0)
            gone.cancel()
            cluster.reset(ApiKey.OFFSET_COMMIT)
            cluster.on(ApiKey.OFFSET_COMMIT, group._commit)
            sender.cancel()  # another sends in its place
            gate.release()
        assert group.offsets == {A: at(2)}
        group.close()


@virtual
async def test_a_refusal_of_the_group_is_told_to_each_that_it_met() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        FakeGroup(cluster)
        async with alone(cluster) as committer:
            cluster.on(ApiKey.OFFSET_COMMIT, refuse(E.UNKNOWN_MEMBER_ID))
            calls = [committer.commit({A: at(n)}, timeout=50) for n in range(5)]
            told = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(error) for error in told] == [CommitFailed] * 5
        assert len(set(map(id, told))) == 5
        assert len(cluster.requests(OffsetCommitRequest)) == 1


@virtual
async def test_an_assignment_that_ended_fails_its_commits_and_no_others() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        gate = cluster.hold(ApiKey.OFFSET_COMMIT)
        owner = Owner(is_subscribed=True)
        owner.committable = {A: 1, B: 1}
        async with alone(cluster) as committer, asyncio.TaskGroup() as tasks:
            committer.attach(owner)
            tasks.create_task(committer.commit({A: at(1)}, timeout=50))
            await until(lambda: gate.waiting == 1)
            tasks.create_task(committer.commit({A: at(2)}, timeout=50))
            both = {A: at(3), B: at(3)}
            tasks.create_task(_refused(committer, PartitionLost, both))
            await asyncio.sleep(0)
            owner.committable = {A: 1}
            cluster.reset(ApiKey.OFFSET_COMMIT)
            cluster.on(ApiKey.OFFSET_COMMIT, group._commit)
            gate.release()
        assert group.offsets == {A: at(2)}
        group.close()


@virtual
async def test_each_of_those_that_wait_has_its_own_time() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        gate = cluster.hold(ApiKey.OFFSET_COMMIT)
        async with alone(cluster) as committer, asyncio.TaskGroup() as tasks:
            brief = tasks.create_task(_fails(committer, RequestTimeout, 2))
            await until(lambda: gate.waiting == 1)
            patient = tasks.create_task(committer.commit({A: at(5)}, timeout=50))
            await _fails(committer, RequestTimeout, 1)
            assert not brief.done()
            cluster.reset(ApiKey.OFFSET_COMMIT)
            cluster.on(ApiKey.OFFSET_COMMIT, group._commit)
            await brief
            assert not patient.done()
        assert group.offsets == {A: at(5)}
        group.close()


@virtual
async def test_a_cancelled_commit_leaves_its_place() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with alone(cluster) as committer:
            gate = cluster.hold(ApiKey.OFFSET_COMMIT)
            for _ in range(2):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(1):
                        await committer.commit({A: at(1)}, timeout=50)
            gate.release()
            cluster.reset(ApiKey.OFFSET_COMMIT)
            cluster.on(ApiKey.OFFSET_COMMIT, group._commit)
            await committer.commit({A: at(2)}, timeout=50)
            assert group.offsets[A] == at(2)
        group.close()


@pytest.mark.parametrize(
    "code",
    [
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.REQUEST_TIMED_OUT,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ],
)
@virtual
async def test_what_passes_is_tried_again(code: E) -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with alone(cluster) as committer:
            cluster.on(ApiKey.OFFSET_COMMIT, refuse(code), times=3)
            await committer.commit({A: at(4)}, timeout=10)
            assert group.offsets[A] == at(4)
            assert len(cluster.requests(OffsetCommitRequest)) == 4
        group.close()


@virtual
async def test_only_what_failed_is_sent_again() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with alone(cluster) as committer:
            passing = refuse(E.NONE, E.UNKNOWN_TOPIC_OR_PARTITION)
            cluster.on(ApiKey.OFFSET_COMMIT, passing, times=1)
            await committer.commit({A: at(4), B: at(5)}, timeout=10)
            assert group.offsets == {B: at(5)}
        group.close()


@virtual
async def test_the_coordinator_moves_and_connections_break() -> None:
    async with FakeCluster(nodes=3, topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        cluster.move_coordinator("g", 0)
        async with alone(cluster) as committer:
            await committer.commit({A: at(1)}, timeout=10)
            cluster.move_coordinator("g", 1)
            await committer.commit({A: at(2)}, timeout=10)
            assert (await committer.fetch([A], timeout=5))[A] == at(2)
            cluster.move_coordinator("g", 2)
            assert (await committer.fetch([A], timeout=5))[A] == at(2)
            cluster.on(ApiKey.OFFSET_COMMIT, DISCONNECT, times=1)
            cluster.on(ApiKey.OFFSET_FETCH, DISCONNECT, times=1)
            await committer.commit({A: at(3)}, timeout=10)
            assert (await committer.fetch([A], timeout=5))[A] == at(3)
            cluster.move_coordinator("g", 0)
            cluster.stop(2)
            await committer.commit({A: at(4)}, timeout=10)
            assert group.offsets[A] == at(4)
        group.close()


@virtual
async def test_time_runs_out() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        FakeGroup(cluster)
        async with alone(cluster) as committer:
            code = E.COORDINATOR_LOAD_IN_PROGRESS
            cluster.on(ApiKey.OFFSET_COMMIT, refuse(code))
            began = asyncio.get_running_loop().time()
            with pytest.raises(RequestTimeout, match="COORDINATOR_LOAD") as caught:
                await committer.commit({A: at(4)}, timeout=10)
            assert isinstance(caught.value.__cause__, BrokerError)
            assert asyncio.get_running_loop().time() - began <= 10
            gate = cluster.hold(ApiKey.OFFSET_COMMIT)
            async with asyncio.TaskGroup() as tasks:
                slow = tasks.create_task(_fails(committer, RequestTimeout, 20))
                await until(lambda: gate.waiting == 1)
                # Its turn never comes.
                await _fails(committer, RequestTimeout, 3)
                assert not slow.done()


async def _refused(
    committer: OffsetCommitter,
    kind: type[Exception],
    what: dict[TopicPartition, OffsetAndMetadata],
) -> None:
    with pytest.raises(kind, match="t-"):
        await committer.commit(what, timeout=50)


async def _fails(
    committer: OffsetCommitter, kind: type[Exception], limit: float
) -> None:
    with pytest.raises(kind, match="did not succeed within"):
        await committer.commit({A: at(4)}, timeout=limit)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (E.GROUP_AUTHORIZATION_FAILED, AuthorizationError),
        (E.TOPIC_AUTHORIZATION_FAILED, AuthorizationError),
        (E.OFFSET_METADATA_TOO_LARGE, BrokerError),
        (E.INVALID_COMMIT_OFFSET_SIZE, BrokerError),
        (E.FENCED_INSTANCE_ID, Fenced),
        (E.UNKNOWN_MEMBER_ID, CommitFailed),
        (E.ILLEGAL_GENERATION, CommitFailed),
        (E.REBALANCE_IN_PROGRESS, RebalanceInProgress),
        (E.UNKNOWN_SERVER_ERROR, BrokerError),
    ],
)
@virtual
async def test_what_is_final_is_raised_at_once(code: E, kind: type[Exception]) -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        FakeGroup(cluster)
        async with alone(cluster) as committer:
            cluster.on(ApiKey.OFFSET_COMMIT, refuse(code))
            with pytest.raises(kind, match="group 'g'"):
                await committer.commit({A: at(4)}, timeout=10)
            assert len(cluster.requests(OffsetCommitRequest)) == 1


@virtual
async def test_no_coordinator_is_a_refusal_of_the_right_kind() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        FakeGroup(cluster)
        cluster.limit_version(ApiKey.OFFSET_COMMIT, -1)
        async with alone(cluster) as committer:
            with pytest.raises(UnsupportedVersion):
                await committer.commit({A: at(4)}, timeout=10)


# ---- as a member


@virtual
async def test_a_members_commit_carries_its_generation() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as member:
            await member.committer.commit({A: at(4)}, timeout=10)
            (request,) = cluster.requests(OffsetCommitRequest)
            assert request.generation_id_or_member_epoch == 1
            assert request.member_id == member.group.identity().member_id
            with pytest.raises(PartitionLost, match="u-0"):
                await member.committer.commit(
                    {TopicPartition("u", 0): at(1)}, timeout=10
                )
        group.close()


@virtual
async def test_a_commit_waits_for_our_own_sync() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as member:
            cluster.on(ApiKey.OFFSET_COMMIT, refuse(E.REBALANCE_IN_PROGRESS), times=2)
            await member.committer.commit({A: at(4)}, timeout=10)
            assert group.offsets[A] == at(4)
            cluster.on(ApiKey.OFFSET_COMMIT, refuse(E.REBALANCE_IN_PROGRESS))
            with pytest.raises(RebalanceInProgress, match="rebalancing"):
                await member.committer.commit({A: at(5)}, timeout=3)
            assert member.host.names() == ["assigned"]
        group.close()


@virtual
async def test_a_commit_of_the_last_generation_goes_out_again_as_the_new() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as member:
            gate = cluster.hold(ApiKey.OFFSET_COMMIT)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(member.committer.commit({A: at(4)}, timeout=30))
                await until(lambda: gate.waiting == 1)
                group.rebalance()
                await until(lambda: member.group.identity().generation == 2)
                cluster.reset(ApiKey.OFFSET_COMMIT)
                cluster.on(ApiKey.OFFSET_COMMIT, group._commit)
                held = cluster.requests(OffsetCommitRequest)[0]
                gate.release(outcome=refuse(E.ILLEGAL_GENERATION)(None, None, held))
            assert group.offsets[A] == at(4)
            assert member.host.of("lost") == []
        group.close()


@virtual
async def test_a_generation_that_began_before_we_heard_of_it_loses_nothing() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as member:
            gate = cluster.hold(ApiKey.JOIN_GROUP)
            group.rebalance()
            await until(lambda: gate.waiting == 1)
            cluster.on(ApiKey.OFFSET_COMMIT, refuse(E.ILLEGAL_GENERATION), times=1)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(member.committer.commit({A: at(4)}, timeout=30))
                await until(lambda: len(cluster.requests(OffsetCommitRequest)) == 1)
                cluster.reset(ApiKey.JOIN_GROUP)
                cluster.on(ApiKey.JOIN_GROUP, group._join)
                gate.release()
            assert member.group.identity().generation == 2
            assert group.offsets[A] == at(4)
            assert member.host.of("lost") == []
        group.close()


@asynccontextmanager
async def undone_generation(
    cluster: FakeCluster, member: Member, group: FakeGroup
) -> AsyncIterator[None]:
    """The coordinator moves after JoinGroup 2 and before SyncGroup 2 was stored.

    The new one knows generation 1. JoinGroup is not answered within the block.
    """
    sync = cluster.hold(ApiKey.SYNC_GROUP)
    group.rebalance()
    await until(lambda: sync.waiting == 1)
    assert member.group.identity().generation == 2
    group.generation, group.state = 1, "Stable"
    join = cluster.hold(ApiKey.JOIN_GROUP)
    sync.release(outcome=SyncGroupResponse(error_code=E.NOT_COORDINATOR))
    await until(lambda: join.waiting == 1)
    yield
    for key, answer in (
        (ApiKey.SYNC_GROUP, group._sync),
        (ApiKey.JOIN_GROUP, group._join),
    ):
        cluster.reset(key)
        cluster.on(key, answer)
    join.release()


@virtual
async def test_a_generation_that_a_failover_undid_does_not_stop_commits() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as member:
            async with undone_generation(cluster, member, group):
                await member.committer.commit({A: at(4)}, timeout=10)
                assert group.offsets[A] == at(4)
                assert member.group.identity().generation == 1
            await until(lambda: member.group.identity().generation == 2)
            await member.committer.commit({A: at(5)}, timeout=10)
            assert group.offsets[A] == at(5)
            assert member.host.of("lost") == []
        group.close()


@virtual
async def test_who_unsubscribes_after_a_failover_can_still_commit() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as member:

            async def commit(partitions: object) -> None:
                await member.committer.commit({A: at(4)}, timeout=10)

            member.host.on_revoking = commit
            async with undone_generation(cluster, member, group):
                member.group.unsubscribe()
                await until(lambda: "revoking" in member.host.names())
                assert group.offsets[A] == at(4)
        group.close()


@virtual
async def test_a_commit_waits_for_the_sync_that_decides_on_its_generation() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as member:
            gate = cluster.hold(ApiKey.SYNC_GROUP)
            group.rebalance()
            await until(lambda: gate.waiting == 1)
            cluster.on(ApiKey.OFFSET_COMMIT, refuse(E.ILLEGAL_GENERATION), times=2)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(member.committer.commit({A: at(4)}, timeout=30))
                await until(lambda: len(cluster.requests(OffsetCommitRequest)) == 2)
                cluster.reset(ApiKey.SYNC_GROUP)
                cluster.on(ApiKey.SYNC_GROUP, group._sync)
                gate.release()
            assert group.offsets[A] == at(4)
            assert member.host.of("lost") == []
        group.close()


@virtual
async def test_a_member_that_unsubscribed_and_was_removed_is_told_so() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as member:
            failures: list[CommitFailed] = []

            async def commit(partitions: object) -> None:
                group.forget("member-1")
                with pytest.raises(CommitFailed, match="went on without") as caught:
                    await member.committer.commit({A: at(4)}, timeout=10)
                failures.append(caught.value)

            member.host.on_revoking = commit
            member.group.unsubscribe()
            await until(lambda: bool(failures))
        group.close()


@pytest.mark.parametrize("code", [E.ILLEGAL_GENERATION, E.UNKNOWN_MEMBER_ID])
@virtual
async def test_a_refused_member_loses_its_partitions(code: E) -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as member:
            cluster.on(ApiKey.OFFSET_COMMIT, refuse(code), times=1)
            with pytest.raises(CommitFailed, match="went on without"):
                await member.committer.commit({A: at(4)}, timeout=10)
            with pytest.raises(PartitionLost):
                await member.committer.commit({A: at(4)}, timeout=10)
            if code == E.UNKNOWN_MEMBER_ID:
                group.forget("member-1")
            await until(lambda: len(member.tps) == 2)
            assert [len(lost) for lost in member.host.of("lost")] == [2]
        group.close()


@virtual
async def test_a_fenced_member_ends() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster, group_instance_id="i") as member:
            cluster.on(ApiKey.OFFSET_COMMIT, refuse(E.FENCED_INSTANCE_ID), times=1)
            with pytest.raises(Fenced):
                await member.committer.commit({A: at(4)}, timeout=10)
            await member.ended.wait()
            assert isinstance(member.error, Fenced)
        group.close()


@virtual
async def test_a_static_member_is_not_ended_by_what_its_former_self_sent() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster, group_instance_id="i") as member:
            gate = cluster.hold(ApiKey.OFFSET_COMMIT)
            async with asyncio.TaskGroup() as tasks:
                task = tasks.create_task(_lost(member.committer))
                await until(lambda: gate.waiting == 1)
                group.forget("member-1")
                await until(lambda: member.host.names()[-2:] == ["lost", "assigned"])
                held = cluster.requests(OffsetCommitRequest)[0]
                gate.release(outcome=refuse(E.FENCED_INSTANCE_ID)(None, None, held))
                await task
            assert len(cluster.requests(OffsetCommitRequest)) == 1
            assert not member.ended.is_set()
        group.close()


@virtual
async def test_a_commit_does_not_outlive_its_assignment() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        async with Member(cluster) as member:
            # Not acknowledged until the partition was lost and assigned again: then it
            # belongs to somebody else's past.
            code = E.COORDINATOR_LOAD_IN_PROGRESS
            cluster.on(ApiKey.OFFSET_COMMIT, refuse(code))
            async with asyncio.TaskGroup() as tasks:
                task = tasks.create_task(_lost(member.committer))
                await cluster.received(ApiKey.OFFSET_COMMIT, 2)
                group.forget("member-1")
                await until(lambda: member.host.names()[-2:] == ["lost", "assigned"])
                await task
            assert A not in group.offsets
        group.close()


async def _lost(committer: OffsetCommitter) -> None:
    with pytest.raises(PartitionLost, match="t-0"):
        await committer.commit({A: at(4)}, timeout=600)


# ---- looking up


@pytest.mark.parametrize(
    "answer",
    [
        offsets_answer(code=E.UNSTABLE_OFFSET_COMMIT),
        offsets_answer(group_code=E.COORDINATOR_LOAD_IN_PROGRESS),
        offsets_answer(group_code=E.NOT_COORDINATOR),
    ],
    ids=["unstable", "loading", "moved"],
)
@virtual
async def test_a_look_up_waits_for_what_passes(answer: OffsetFetchResponse) -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        FakeGroup(cluster)
        async with alone(cluster) as committer:
            cluster.on(ApiKey.OFFSET_FETCH, offsets_answer(offset=6))
            cluster.on(ApiKey.OFFSET_FETCH, answer, times=4)
            assert await committer.fetch([A, B], timeout=10) == {A: at(6), B: None}
            cluster.on(ApiKey.OFFSET_FETCH, answer)
            with pytest.raises(RequestTimeout, match="offsets of group 'g'"):
                await committer.fetch([A], timeout=5)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (offsets_answer(group_code=E.GROUP_AUTHORIZATION_FAILED), AuthorizationError),
        (offsets_answer(code=E.TOPIC_AUTHORIZATION_FAILED), AuthorizationError),
        (offsets_answer(code=E.UNKNOWN_TOPIC_OR_PARTITION), UnknownTopicOrPartition),
    ],
    ids=["group", "topic", "unknown"],
)
@virtual
async def test_a_look_up_refused(
    answer: OffsetFetchResponse, kind: type[Exception]
) -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        FakeGroup(cluster)
        async with alone(cluster) as committer:
            cluster.on(ApiKey.OFFSET_FETCH, answer)
            with pytest.raises(kind, match="group 'g'"):
                await committer.fetch([A], timeout=10)
            assert len(cluster.requests(OffsetFetchRequest)) == 1


@virtual
async def test_a_group_nobody_knows_has_no_offsets() -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        FakeGroup(cluster)
        async with alone(cluster) as committer:
            answer = OffsetFetchResponse(
                groups=[
                    OffsetFetchResponseGroup(
                        group_id="g", error_code=E.GROUP_ID_NOT_FOUND
                    )
                ]
            )
            cluster.on(ApiKey.OFFSET_FETCH, answer)
            assert await committer.fetch([A], timeout=10) == {A: None}


@pytest.mark.parametrize("version", range(1, 10))
@virtual
async def test_offsets_in_every_version(version: int) -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        group = FakeGroup(cluster)
        cluster.limit_version(ApiKey.OFFSET_FETCH, version)
        cluster.limit_version(ApiKey.OFFSET_COMMIT, max(version, 2))
        async with alone(cluster) as committer:
            await committer.commit({A: OffsetAndMetadata(8, "m")}, timeout=5)
            expected = {A: OffsetAndMetadata(8, "m"), B: None}
            assert await committer.fetch([A, B], timeout=5) == expected
            if version == 1:
                with pytest.raises(UnsupportedVersion, match="all partitions"):
                    await committer.fetch(None, timeout=5)
            else:
                found = await committer.fetch(None, timeout=5)
                assert found == {A: OffsetAndMetadata(8, "m")}
        group.close()


class Losing:
    """A client that takes long to find the coordinator: so long that all is lost."""

    def __init__(self, client: Cluster, member: Owner) -> None:
        self.client = client
        self.member = member

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    async def coordinator(self, *args: Any, **named: Any) -> int:
        self.member.committable.clear()
        return await self.client.coordinator(*args, **named)


class Owner:
    """A membership."""

    def __init__(self, *, is_subscribed: bool) -> None:
        self.is_subscribed = is_subscribed
        self.committable = {A: 1}

    def fence(self, partitions: Collection[TopicPartition]) -> Fence | None:
        fence = Fence(RevokeLedger(), lambda: self.committable, partitions)
        if fence.is_foreign and not self.is_subscribed:
            return None
        fence.check()
        return fence

    def commit_refused(self, code: int, identity: GroupMetadata) -> None:
        """Nothing is refused here."""


@pytest.mark.parametrize("is_subscribed", [True, False])
@virtual
async def test_what_is_lost_on_the_way_to_the_coordinator_is_not_committed(
    is_subscribed: bool,
) -> None:
    async with FakeCluster(topics={"t": 2}) as cluster:
        FakeGroup(cluster)
        config = ConsumerConfig(
            bootstrap_servers=cluster.bootstrap_servers, group_id="g"
        )
        owner = Owner(is_subscribed=is_subscribed)
        async with Client.from_config(config, dial=cluster.dial) as client:
            losing: Any = Losing(client._cluster, owner)
            committer = OffsetCommitter(
                losing, config, lambda: GroupMetadata(group_id="g")
            )
            committer.attach(owner)
            with pytest.raises(PartitionLost):
                await committer.commit({A: at(3)}, timeout=5)
        assert not cluster.requests(OffsetCommitRequest)
