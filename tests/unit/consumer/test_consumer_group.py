"""A member of a KIP-848 group, its scripted coordinator, and the choice of protocol."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from kafkaio.errors import AuthorizationError, CommitFailed, UnsupportedVersion
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataResponse
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
)
from kafkaio.types import OffsetAndMetadata, TopicPartition
from tests.fakes.broker import DEFAULT, DISCONNECT, HANG, FakeCluster
from tests.unit.consumer.group_fakes import FakeGroup, Member, until, virtual

HEARTBEAT = ApiKey.CONSUMER_GROUP_HEARTBEAT
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@dataclass
class Coordinator:
    """Gives its one member what a test says."""

    cluster: FakeCluster
    share: Collection[tuple[str, int]] = (A, B)
    epoch: int = 1
    errors: list[E] = field(default_factory=list)
    shown: object = None
    ids: dict[str, UUID] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ids = {n: topic.topic_id for n, topic in self.cluster.topics.items()}
        self.cluster.on(HEARTBEAT, self.handle)

    @property
    def heard(self) -> list[ConsumerGroupHeartbeatRequest]:
        return self.cluster.requests(ConsumerGroupHeartbeatRequest)

    def handle(self, node: Any, header: Any, request: Any) -> Any:
        if request.member_epoch < 0:
            return ConsumerGroupHeartbeatResponse(member_epoch=request.member_epoch)
        if self.errors:
            return ConsumerGroupHeartbeatResponse(error_code=self.errors.pop(0))
        reply = ConsumerGroupHeartbeatResponse(
            member_id=request.member_id or "given",
            member_epoch=self.epoch,
            heartbeat_interval_ms=1000,
        )
        if request.member_epoch == 0 or self.share != self.shown:
            self.shown = self.share
            reply.assignment = Assignment(
                topic_partitions=[
                    ConsumerGroupHeartbeatResponseTopicPartitions(
                        topic_id=self.ids[topic], partitions=[number]
                    )
                    for topic, number in self.share
                ]
            )
        return reply


class Told:
    def __init__(self) -> None:
        self.protocols: list[tuple[str, str, str]] = []

    def group_protocol(
        self, group: str, protocol: str, cause: BaseException | None
    ) -> None:
        self.protocols.append((group, protocol, type(cause).__name__))


def fake(**options: Any) -> FakeCluster:
    topics = {"t": 2, "u": 1}
    return FakeCluster(**{"features": {"group.version": 1}, "topics": topics} | options)


def member(cluster: FakeCluster, **options: Any) -> Member:
    settings = {"session_timeout_ms": 45_000, "heartbeat_interval_ms": 3_000}
    return Member(cluster, **settings | {"group_protocol": "consumer"} | options)


@virtual
async def test_joining_taking_on_giving_up_and_leaving() -> None:
    async with fake() as cluster:
        there = Coordinator(cluster)
        async with member(cluster, group_remote_assignor="range") as one:
            assert one.tps == {A, B}
            join = there.heard[0]
            assert UUID(join.member_id)
            assert join.subscribed_topic_names == ["t"]
            assert join.server_assignor == "range"
            assert (join.rebalance_timeout_ms, join.topic_partitions) == (60_000, [])
            await until(lambda: one.group.statistics().state == "STABLE")
            (owned,) = there.heard[1].topic_partitions or []
            assert (owned.topic_id, owned.partitions) == (there.ids["t"], [0, 1])
            there.share, there.epoch = (A,), 2
            await until(lambda: one.tps == {A})
            await until(lambda: one.group.identity().generation == 2)
            assert one.host.of("revoking") == [frozenset({B})]
            told = one.group.statistics()
            assert (told.protocol, told.is_leader) == ("consumer", False)
            assert "consumer STABLE 2 | 1 assigned" in repr(one.group)
        assert there.heard[-1].member_epoch == -1
        assert there.heard[-1].member_id == join.member_id


@virtual
async def test_brokers_of_the_preview_name_the_member() -> None:
    async with fake() as cluster:
        there = Coordinator(cluster)
        cluster.nodes[0].versions[HEARTBEAT] = (0, 0)
        async with member(cluster) as one:
            assert there.heard[0].member_id == ""
            assert one.group.identity().member_id == "given"
            await until(lambda: len(there.heard) > 1)
            assert there.heard[1].member_id == "given"


@virtual
async def test_a_pattern_is_for_the_coordinator_to_match() -> None:
    async with fake() as cluster:
        there = Coordinator(cluster, share=(A, TopicPartition("u", 0)))
        pattern = re.compile("[tu]")
        # The broker asked for names knows one of the topics only later.
        cluster.on(ApiKey.METADATA, _without_names(), times=1)
        async with member(cluster, topics=pattern) as one:
            assert there.heard[0].subscribed_topic_regex == "[tu]"
            await until(lambda: len(one.tps) == 2)
            assert cluster.requests(MetadataRequest)
            one.group.subscribe(frozenset({"t"}))
            await until(lambda: there.heard[-1].subscribed_topic_regex == "")


def _without_names() -> Any:
    def handle(node: Any, header: Any, request: Any) -> Any:
        return DISCONNECT if request.topics else MetadataResponse()

    return handle


@virtual
async def test_a_name_that_cannot_be_found_out_now_is_asked_for_again() -> None:
    def by_id(request: Any) -> bool:
        return any(topic.name is None for topic in request.topics or ())

    async with fake() as cluster:
        Coordinator(cluster)
        hidden = cluster.topics.pop("t")
        one = member(cluster, topics=re.compile("t"), max_poll_interval_ms=600_000)
        await one.start()

        def asked() -> int:
            return sum(map(by_id, cluster.requests(MetadataRequest)))

        await until(lambda: asked() > 2)
        assert not one.tps
        # And now the broker does not answer at all.
        cluster.on(ApiKey.METADATA, lambda n, h, r: HANG if by_id(r) else DEFAULT)
        count = asked()
        await until(lambda: asked() > count + 1)
        cluster.topics["t"] = hidden
        cluster.reset(ApiKey.METADATA)
        await until(lambda: one.tps == {A, B})
        await one.stop()


@virtual
async def test_a_pattern_is_matched_here_for_brokers_that_cannot() -> None:
    async with fake() as cluster:
        there = Coordinator(cluster)
        cluster.nodes[0].versions[HEARTBEAT] = (0, 0)
        async with member(cluster, topics=re.compile("[tu]")) as one:
            await until(
                lambda: (
                    there.heard[-1].subscribed_topic_names == ["t", "u"]
                    or len(one.tps) == 2
                )
            )
            named = [r.subscribed_topic_names for r in there.heard]
            assert ["t", "u"] in named
            assert not any(r.subscribed_topic_regex for r in there.heard)


@virtual
async def test_a_pattern_of_pythons_own_is_matched_here() -> None:
    async with fake() as cluster:
        there = Coordinator(cluster)
        async with member(cluster, topics=re.compile("(?!u).")) as one:
            await until(lambda: one.tps == {A, B})
            assert ["t"] in [r.subscribed_topic_names for r in there.heard]
            one.group.unsubscribe()
            await until(lambda: not one.tps)
            assert there.heard[-1].member_epoch == -1


@virtual
async def test_auto_takes_what_the_cluster_offers() -> None:
    told = Told()
    async with fake() as cluster:
        Coordinator(cluster)
        async with member(cluster, observer=told, group_protocol="auto") as one:
            assert one.tps == {A, B}
    assert told.protocols == [("g", "consumer", "NoneType")]


@virtual
async def test_auto_is_classic_for_an_assignor_of_the_clients() -> None:
    told = Told()
    options = {"partition_assignment_strategy": "range", "group_protocol": "auto"}
    async with fake() as cluster:
        group = FakeGroup(cluster)
        async with member(cluster, observer=told, **options) as one:
            assert one.tps == {A, B}
            assert one.group.statistics().is_leader
        group.close()
    assert told.protocols == [("g", "classic", "NoneType")]


@pytest.mark.parametrize("topics", [frozenset({"t"}), re.compile("t")])
@pytest.mark.parametrize("why", ["feature", "request", "group"])
@virtual
async def test_auto_falls_back_to_classic(why: str, topics: object) -> None:
    told = Told()
    features = {} if why == "feature" else {"group.version": 1}
    async with fake(features=features) as cluster:
        group = FakeGroup(cluster)
        there = Coordinator(cluster, errors=[E.GROUP_ID_NOT_FOUND])
        if why == "request":
            del cluster.nodes[0].versions[HEARTBEAT]
        async with member(
            cluster, topics=topics, observer=told, group_protocol="auto"
        ) as one:
            assert one.tps == {A, B}
            assert one.group.statistics().protocol == "classic"
        assert len(there.heard) == (why == "group")
        group.close()
    assert [protocol for _, protocol, _ in told.protocols] == ["consumer", "classic"]
    assert told.protocols[1][2] != "NoneType"


@virtual
async def test_unsubscribed_before_the_fallback() -> None:
    async with fake(features={}) as cluster:
        gate = cluster.hold(ApiKey.FIND_COORDINATOR)
        one = await member(cluster, group_protocol="auto").start()
        await until(lambda: gate.waiting > 0)
        one.group.unsubscribe()
        gate.release()
        await until(lambda: one.group.statistics().state == "UNJOINED")
        assert one.group.statistics().protocol == "consumer"
        await one.stop()


@virtual
async def test_who_wants_the_protocol_is_told_that_there_is_none() -> None:
    async with fake() as cluster:
        del cluster.nodes[0].versions[HEARTBEAT]
        one = await member(cluster).start()
        with pytest.raises(UnsupportedVersion):
            await one.group.wait_joined()
        await one.client.close()


@virtual
async def test_the_preview_does_for_who_asks_for_it() -> None:
    async with fake(features={}) as cluster:
        Coordinator(cluster)
        async with member(cluster) as one:
            assert one.tps == {A, B}


@virtual
async def test_what_may_not_be_read_reaches_the_user_and_heartbeats_go_on() -> None:
    async with fake() as cluster:
        there = Coordinator(cluster)
        async with member(cluster) as one:
            there.errors = [E.TOPIC_AUTHORIZATION_FAILED]
            await until(lambda: bool(one.host.failures))
            assert isinstance(one.host.failures[0], AuthorizationError)
            count = len(there.heard)
            await until(lambda: len(there.heard) > count + 2)
            assert one.tps == {A, B}


@virtual
async def test_commits_follow_the_epoch() -> None:
    async with fake() as cluster:
        there = Coordinator(cluster)
        codes = [E.STALE_MEMBER_EPOCH, E.NONE, E.FENCED_MEMBER_EPOCH]
        cluster.on(ApiKey.OFFSET_COMMIT, lambda *_: _committed(codes.pop(0)))
        async with member(cluster) as one:
            there.epoch = 5
            await one.committer.commit({A: OffsetAndMetadata(1)}, timeout=5)
            told = cluster.requests(OffsetCommitRequest)
            epochs = [r.generation_id_or_member_epoch for r in told]
            assert epochs == [1, 5]
            assert {r.member_id for r in told} == {one.group.identity().member_id}
            with pytest.raises(CommitFailed):
                await one.committer.commit({A: OffsetAndMetadata(2)}, timeout=5)
            await until(lambda: one.host.of("lost") == [frozenset({A, B})])
            await until(lambda: one.tps == {A, B})


def _committed(code: E) -> OffsetCommitResponse:
    partition = OffsetCommitResponsePartition(partition_index=0, error_code=code)
    topic = OffsetCommitResponseTopic(name="t", partitions=[partition])
    return OffsetCommitResponse(topics=[topic])


@virtual
async def test_who_asks_for_offsets_says_who_it_is() -> None:
    async with fake() as cluster:
        Coordinator(cluster)
        codes = [E.STALE_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID, E.NONE]
        cluster.on(
            ApiKey.OFFSET_FETCH,
            lambda *_: OffsetFetchResponse(
                groups=[OffsetFetchResponseGroup(group_id="g", error_code=codes.pop(0))]
            ),
        )
        async with member(cluster) as one:
            who = one.group.identity().member_id
            assert await one.committer.fetch([A], timeout=5) == {A: None}
            asked = [r.groups[0] for r in cluster.requests(OffsetFetchRequest)]
            assert {g.member_id for g in asked} <= {who, None}
            assert (asked[0].member_id, asked[0].member_epoch) == (who, 1)
            assert one.host.of("lost") == [frozenset({A, B})]
