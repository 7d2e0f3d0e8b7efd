from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import pytest

from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._codec import decode, encode
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages import consumer_group_heartbeat as beats
from kafkaio.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
)
from kafkaio.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from kafkaio.protocol.messages.delete_groups import DeleteGroupsRequest
from kafkaio.protocol.messages.describe_groups import DescribeGroupsRequest
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest
from kafkaio.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kafkaio.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaio.protocol.messages.list_groups import ListGroupsRequest
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaio.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from kafkaio.testing import Broker
from kafkaio.testing._groups.coordinator import coordinator_of

AnswerT = TypeVar("AnswerT", bound=Response)
SUBSCRIPTION = b"\x00\x01" + encode(ConsumerProtocolSubscription(topics=["t"]), 1)


class FakeConnection:
    client_host = "127.0.0.1"

    def __init__(self) -> None:
        self.fault: ErrorCode | None = None

    def error_for(self, topic: str, partition: int) -> ErrorCode | None:
        return self.fault


class Asker:
    """Sends requests to a broker's nodes as they come off the wire, and back."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.connection = FakeConnection()

    async def ask(
        self, request: Request[AnswerT], version: int, node: int | None = None
    ) -> AnswerT:
        api = ApiKey(request.API_KEY)
        if node is None:
            node = self.broker.control.coordinator("g")
        header = RequestHeader(
            request_api_key=api, request_api_version=version, client_id="c"
        )
        serving = self.broker.nodes[node]
        served = serving.apis[api]
        assert served.speaks(version)
        heard = decode(type(request), version, encode(request, version))
        answer = await served.handler(serving, header, heard, self.connection)  # type: ignore[arg-type]
        assert answer is not None
        return decode(type(request).response_type(), version, encode(answer, version))

    async def join(
        self, member_id: str = "", version: int = 9, **fields: object
    ) -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id="g",
            member_id=member_id,
            session_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return await self.ask(request, version)

    async def member(self) -> JoinGroupResponse:
        told = await self.join()
        assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
        joined = await self.join(told.member_id)
        await self.ask(
            SyncGroupRequest(
                group_id="g",
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[
                    SyncGroupRequestAssignment(
                        member_id=joined.member_id, assignment=b"all"
                    )
                ],
            ),
            5,
        )
        return joined

    async def beat(
        self, member_id: str = "m", epoch: int = 0, version: int = 1, **fields: object
    ) -> beats.ConsumerGroupHeartbeatResponse:
        request = beats.ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member_id, member_epoch=epoch
        )
        if epoch == 0:
            request.rebalance_timeout_ms = 60_000
            request.subscribed_topic_names = ["t"]
            request.topic_partitions = []
        for name, value in fields.items():
            setattr(request, name, value)
        return await self.ask(request, version)

    async def commit(
        self,
        version: int,
        *,
        topic: str = "t",
        partition: int = 0,
        member: tuple[str, int] = ("", -1),
        metadata: str | None = "",
    ) -> int:
        topics = self.broker.topics
        topic_id = topics[topic].topic_id if topic in topics else UUID(int=9)
        request = OffsetCommitRequest(
            group_id="g",
            member_id=member[0],
            generation_id_or_member_epoch=member[1],
            topics=[
                OffsetCommitRequestTopic(
                    name=topic if version < 10 else "",
                    topic_id=topic_id if version >= 10 else UUID(int=0),
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=5,
                            committed_leader_epoch=2 if version >= 6 else -1,
                            committed_metadata=metadata,
                        )
                    ],
                )
            ],
        )
        answer = await self.ask(request, version)
        return answer.topics[0].partitions[0].error_code


@pytest.fixture
async def asker() -> AsyncIterator[Asker]:
    async with Broker(
        nodes=2, topics={"t": 2}, memory_transport=True, metadata_delay=0.0
    ) as broker:
        yield Asker(broker)


@pytest.mark.parametrize("version", range(10))
async def test_join_in_every_version(asker: Asker, version: int) -> None:
    answer = await asker.join(version=version)
    if version >= 4:
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        answer = await asker.join(answer.member_id, version=version)
    assert (answer.error_code, answer.generation_id) == (0, 1)
    assert answer.members[0].metadata == SUBSCRIPTION
    assert answer.leader == answer.member_id


@pytest.mark.parametrize("version", [0, 6, 7, 9])
async def test_errors_of_joins(asker: Asker, version: int) -> None:
    answer = await asker.join("x", version)
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    answer = await asker.join(version=version, group_id="")
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID
    for milliseconds in (5_999, 1_800_001):
        answer = await asker.join(version=version, session_timeout_ms=milliseconds)
        assert answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT


async def test_requests_to_another_node_than_the_coordinator(asker: Asker) -> None:
    other = 1 - asker.broker.control.coordinator("g")
    code = ErrorCode.NOT_COORDINATOR
    for request, version in (
        (JoinGroupRequest(group_id="g"), 9),
        (SyncGroupRequest(group_id="g"), 4),
        (HeartbeatRequest(group_id="g"), 4),
        (LeaveGroupRequest(group_id="g"), 5),
        (OffsetFetchRequest(group_id="g"), 7),
        (OffsetDeleteRequest(group_id="g"), 0),
        (beats.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m"), 0),
    ):
        if isinstance(request, beats.ConsumerGroupHeartbeatRequest):
            request.member_epoch = 1
        answer = await asker.ask(request, version, other)
        assert answer.error_code == code, request  # type: ignore[attr-defined]
    described = await asker.ask(DescribeGroupsRequest(groups=["g"]), 6, other)
    assert described.groups[0].error_code == code
    shown = await asker.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1, other)
    assert shown.groups[0].error_code == code
    deleted = await asker.ask(DeleteGroupsRequest(groups_names=["g"]), 2, other)
    assert deleted.results[0].error_code == code


async def test_while_a_coordinator_loads(asker: Asker) -> None:
    await asker.member()
    coordinator = coordinator_of(asker.broker.nodes[0].cluster)
    coordinator._ready_at[coordinator.cluster.shard_of("g")] = coordinator.now() + 60
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert (await asker.join()).error_code == loading
    beat = await asker.ask(HeartbeatRequest(group_id="g"), 4)
    assert beat.error_code == 0
    sync = await asker.ask(SyncGroupRequest(group_id="g"), 4)
    assert sync.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert await asker.commit(9) == loading
    listed = await asker.ask(ListGroupsRequest(), 5)
    assert (listed.error_code, listed.groups) == (loading, [])
    # The other node has loaded what it coordinates.
    other = 1 - asker.broker.control.coordinator("g")
    assert (await asker.ask(ListGroupsRequest(), 5, other)).error_code == 0


async def test_a_group_continues_after_its_coordinator_moves(asker: Asker) -> None:
    joined = await asker.member()
    member = joined.member_id, joined.generation_id
    assert await asker.commit(9, member=member) == 0
    old = asker.broker.control.coordinator("g")
    asker.broker.control.move_coordinator("g", 1 - old)
    beat = HeartbeatRequest(group_id="g", member_id=member[0], generation_id=member[1])
    assert (await asker.ask(beat, 4, old)).error_code == ErrorCode.NOT_COORDINATOR
    assert (await asker.ask(beat, 4, 1 - old)).error_code == 0
    assert await asker.commit(9, member=member) == 0


@pytest.mark.parametrize("version", range(5))
async def test_heartbeats(asker: Asker, version: int) -> None:
    joined = await asker.member()
    request = HeartbeatRequest(
        group_id="g", member_id=joined.member_id, generation_id=joined.generation_id
    )
    assert (await asker.ask(request, version)).error_code == 0
    request.generation_id += 1
    answer = await asker.ask(request, version)
    assert answer.error_code == ErrorCode.ILLEGAL_GENERATION
    asker.broker.control.coordinator("none")
    answer = await asker.ask(
        HeartbeatRequest(group_id="none"),
        version,
        asker.broker.control.coordinator("none"),
    )
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(6))
async def test_leaving(asker: Asker, version: int) -> None:
    joined = await asker.member()
    request = LeaveGroupRequest(group_id="g")
    if version < 3:
        request.member_id = joined.member_id
        assert (await asker.ask(request, version)).error_code == 0
        answer = await asker.ask(request, version)
        assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        return
    request.members = [
        MemberIdentity(member_id=one) for one in (joined.member_id, "stranger")
    ]
    answer = await asker.ask(request, version)
    assert answer.error_code == 0
    assert [one.error_code for one in answer.members] == [
        0,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]


async def test_a_group_without_a_name(asker: Asker) -> None:
    for request, version in (
        (SyncGroupRequest(), 4),
        (HeartbeatRequest(), 4),
        (LeaveGroupRequest(), 5),
        (OffsetDeleteRequest(), 0),
    ):
        answer = await asker.ask(request, version)
        assert answer.error_code == ErrorCode.INVALID_GROUP_ID  # type: ignore[attr-defined]


async def test_a_sync_that_does_not_name_its_protocol(asker: Asker) -> None:
    answer = await asker.ask(SyncGroupRequest(group_id="g"), 5)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


async def test_unknown_groups(asker: Asker) -> None:
    sync = await asker.ask(SyncGroupRequest(group_id="g"), 4)
    assert sync.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    leave = await asker.ask(LeaveGroupRequest(group_id="g"), 2)
    assert leave.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    forget = await asker.ask(OffsetDeleteRequest(group_id="g"), 0)
    assert forget.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    beat = await asker.beat(epoch=1)
    assert beat.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert await asker.commit(9, member=("m", 1)) == ErrorCode.GROUP_ID_NOT_FOUND
    assert await asker.commit(8, member=("m", 1)) == ErrorCode.ILLEGAL_GENERATION


# Offsets


@pytest.mark.parametrize("version", range(2, 11))
async def test_commits_in_every_version(asker: Asker, version: int) -> None:
    assert await asker.commit(version, metadata="m") == 0
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await asker.commit(version, partition=2) == unknown
    if version >= 10:
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
    assert await asker.commit(version, topic="none") == unknown
    too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert await asker.commit(version, metadata="m" * 4097) == too_large
    asker.connection.fault = ErrorCode.NOT_COORDINATOR
    assert await asker.commit(version) == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("version", range(1, 11))
async def test_fetches_in_every_version(asker: Asker, version: int) -> None:
    assert await asker.commit(9, metadata=None) == 0
    topic_id = asker.broker.topics["t"].topic_id
    if version < 8:
        topic = OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])
        single = await asker.ask(
            OffsetFetchRequest(group_id="g", topics=[topic]), version
        )
        assert single.error_code == 0
        found = [
            (one.committed_offset, one.metadata, one.error_code)
            for one in single.topics[0].partitions
        ]
    else:
        wanted = OffsetFetchRequestTopics(partition_indexes=[0, 1])
        if version >= 10:
            wanted.topic_id = topic_id
        else:
            wanted.name = "t"
        groups = [OffsetFetchRequestGroup(group_id="g", topics=[wanted])]
        answer = await asker.ask(OffsetFetchRequest(groups=groups), version)
        found = [
            (one.committed_offset, one.metadata, one.error_code)
            for one in answer.groups[0].topics[0].partitions
        ]
    assert found == [(5, "", 0), (-1, "", 0)]


@pytest.mark.parametrize("version", [2, 7, 8, 9, 10])
async def test_all_committed_offsets(asker: Asker, version: int) -> None:
    await asker.commit(9, partition=1)
    request = OffsetFetchRequest(group_id="g", topics=None)
    if version >= 8:
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]
        )
    answer = await asker.ask(request, version)
    topics = answer.topics if version < 8 else answer.groups[0].topics
    assert [one.partition_index for one in topics[0].partitions] == [1]


async def test_offsets_are_deleted_with_their_topic(asker: Asker) -> None:
    await asker.commit(9)
    cluster = asker.broker.nodes[0].cluster
    cluster.delete_topic(cluster.topics["t"])
    asker.broker.create_topic("t", 2)
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    answer = await asker.ask(OffsetFetchRequest(group_id="g", topics=[topic]), 7)
    assert answer.topics[0].partitions[0].committed_offset == -1
    assert len(coordinator_of(cluster).offsets_of("g")) == 0


async def test_errors_of_fetches(asker: Asker) -> None:
    unknown = OffsetFetchRequestTopics(topic_id=UUID(int=9), partition_indexes=[0])
    asked = OffsetFetchRequestGroup(group_id="g", topics=[unknown])
    answer = await asker.ask(OffsetFetchRequest(groups=[asked]), 10)
    partition = answer.groups[0].topics[0].partitions[0]
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    asker.connection.fault = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    old = await asker.ask(OffsetFetchRequest(group_id="g", topics=[topic]), 1)
    assert old.topics[0].partitions[0].error_code == asker.connection.fault


async def test_fetches_of_members(asker: Asker) -> None:
    async def code(member_id: str | None, epoch: int) -> int:
        asked = OffsetFetchRequestGroup(
            group_id="g", member_id=member_id, member_epoch=epoch, topics=None
        )
        answer = await asker.ask(OffsetFetchRequest(groups=[asked]), 9)
        return answer.groups[0].error_code

    assert await code("m", 1) == 0  # a group that is not there has committed nothing
    await asker.beat()
    assert await code("m", 2) == 0
    assert await code("m", 0) == ErrorCode.STALE_MEMBER_EPOCH
    assert await code("x", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert await code(None, -1) == 0


async def test_commits_of_members(asker: Asker) -> None:
    joined = await asker.member()
    assert await asker.commit(9, member=(joined.member_id, 1)) == 0
    assert await asker.commit(9) == ErrorCode.UNKNOWN_MEMBER_ID
    wrong = await asker.commit(9, member=(joined.member_id, 2))
    assert wrong == ErrorCode.ILLEGAL_GENERATION


async def test_commits_of_kip848_members(asker: Asker) -> None:
    await asker.beat()
    assert await asker.commit(10, member=("m", 2)) == 0
    assert await asker.commit(9, member=("m", 2)) == 0
    stale = ErrorCode.STALE_MEMBER_EPOCH
    assert await asker.commit(9, member=("m", 3)) == stale
    old = await asker.commit(8, member=("m", 2))
    assert old == ErrorCode.UNSUPPORTED_VERSION


async def test_offsets_are_deleted_unless_members_subscribe(asker: Asker) -> None:
    async def forget(partition: int = 0) -> int:
        one = OffsetDeleteRequestPartition(partition_index=partition)
        topic = OffsetDeleteRequestTopic(name="t", partitions=[one])
        request = OffsetDeleteRequest(group_id="g", topics=[topic])
        return (await asker.ask(request, 0)).topics[0].partitions[0].error_code

    await asker.commit(9)
    joined = await asker.member()
    assert await forget() == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    await asker.ask(LeaveGroupRequest(group_id="g", member_id=joined.member_id), 2)
    assert await forget() == 0
    assert await forget(9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    coordinator = coordinator_of(asker.broker.nodes[0].cluster)
    assert len(coordinator.offsets_of("g")) == 0
    await asker.beat()
    assert await forget() == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


async def test_a_malformed_subscription_counts_as_all_topics(asker: Asker) -> None:
    garbage = JoinGroupRequestProtocol(name="range", metadata=b"?")
    await asker.join(version=0, protocols=[garbage])
    one = OffsetDeleteRequestPartition(partition_index=0)
    topic = OffsetDeleteRequestTopic(name="t", partitions=[one])
    answer = await asker.ask(OffsetDeleteRequest(group_id="g", topics=[topic]), 0)
    partition = answer.topics[0].partitions[0]
    assert partition.error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


async def test_a_group_of_another_protocol_type_keeps_its_offsets(asker: Asker) -> None:
    await asker.join(version=0, protocol_type="connect")
    answer = await asker.ask(OffsetDeleteRequest(group_id="g"), 0)
    assert answer.error_code == ErrorCode.NON_EMPTY_GROUP


# Descriptions of groups


@pytest.mark.parametrize("version", range(7))
async def test_describing_classic_groups(asker: Asker, version: int) -> None:
    (none,) = (await asker.ask(DescribeGroupsRequest(groups=["g"]), version)).groups
    expected = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0
    assert (none.group_state, none.error_code) == ("Dead", expected)
    joined = await asker.member()
    (found,) = (await asker.ask(DescribeGroupsRequest(groups=["g"]), version)).groups
    assert (found.group_state, found.protocol_data) == ("Stable", "range")
    (member,) = found.members
    assert (member.member_id, member.client_host) == (joined.member_id, "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (SUBSCRIPTION, b"all")


async def test_describing_kip848_groups(asker: Asker) -> None:
    async def describe() -> object:
        request = ConsumerGroupDescribeRequest(group_ids=["g"])
        return (await asker.ask(request, 1)).groups[0]

    assert (await describe()).error_code == ErrorCode.GROUP_ID_NOT_FOUND  # type: ignore[attr-defined]
    await asker.beat(rack_id="r")
    found = await describe()
    assert (found.group_state, found.group_epoch) == ("Stable", 2)  # type: ignore[attr-defined]
    assert found.assignor_name == "uniform"  # type: ignore[attr-defined]
    (member,) = found.members  # type: ignore[attr-defined]
    assert (member.member_id, member.rack_id, member.member_type) == ("m", "r", 1)
    (assigned,) = member.assignment.topic_partitions
    assert (assigned.topic_name, assigned.partitions) == ("t", [0, 1])
    assert member.target_assignment == member.assignment
    (dead,) = (await asker.ask(DescribeGroupsRequest(groups=["g"]), 6)).groups
    assert dead.error_message == "Group g is not a classic group."


async def test_describing_a_classic_group_as_another(asker: Asker) -> None:
    await asker.commit(9)
    request = ConsumerGroupDescribeRequest(group_ids=["g"])
    (found,) = (await asker.ask(request, 0)).groups
    assert found.error_message == "Group g is not a consumer group."


@pytest.mark.parametrize("version", range(6))
async def test_listing(asker: Asker, version: int) -> None:
    await asker.beat()
    (found,) = (await asker.ask(ListGroupsRequest(), version)).groups
    assert (found.group_id, found.protocol_type) == ("g", "consumer")
    if version >= 4:
        stable = ListGroupsRequest(states_filter=["STABLE"])
        assert len((await asker.ask(stable, version)).groups) == 1
        empty = ListGroupsRequest(states_filter=["Empty"])
        assert (await asker.ask(empty, version)).groups == []
    if version >= 5:
        classic = ListGroupsRequest(types_filter=["Classic"])
        assert (await asker.ask(classic, version)).groups == []
    other = 1 - asker.broker.control.coordinator("g")
    assert (await asker.ask(ListGroupsRequest(), version, other)).groups == []


@pytest.mark.parametrize("version", range(3))
async def test_deleting(asker: Asker, version: int) -> None:
    async def delete() -> int:
        request = DeleteGroupsRequest(groups_names=["g"])
        return (await asker.ask(request, version)).results[0].error_code

    assert await delete() == ErrorCode.GROUP_ID_NOT_FOUND
    await asker.beat()
    assert await delete() == ErrorCode.NON_EMPTY_GROUP
    await asker.beat(epoch=-1)
    assert await delete() == 0
    assert (await asker.ask(ListGroupsRequest(), 5)).groups == []


# The KIP-848 protocol


async def test_a_members_first_heartbeat(asker: Asker) -> None:
    answer = await asker.beat()
    assert (answer.error_code, answer.member_epoch) == (0, 2)
    assert answer.heartbeat_interval_ms == 5000
    assert answer.assignment is not None
    (topic,) = answer.assignment.topic_partitions
    assert topic.topic_id == asker.broker.topics["t"].topic_id
    assert topic.partitions == [0, 1]
    assert (await asker.beat(epoch=2)).assignment is None
    assert (await asker.beat(epoch=-1)).member_epoch == -1


async def test_version_0_gives_ids(asker: Asker) -> None:
    answer = await asker.beat("", version=0)
    assert (answer.error_code, bool(answer.member_id)) == (0, True)


@pytest.mark.parametrize(
    "fields",
    [
        {"member_id": ""},
        {"group_id": ""},
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {
            "topic_partitions": [
                beats.ConsumerGroupHeartbeatRequestTopicPartitions(partitions=[0])
            ]
        },
        {"subscribed_topic_names": None},
        {"epoch": -2},
        {"epoch": -3},
    ],
)
async def test_invalid_heartbeats(asker: Asker, fields: dict[str, object]) -> None:
    answer = await asker.beat(**fields)  # type: ignore[arg-type]
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message


async def test_other_errors_of_heartbeats(asker: Asker) -> None:
    answer = await asker.beat(server_assignor="magic")
    assert answer.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    answer = await asker.beat(subscribed_topic_regex="(")
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    await asker.beat()
    assert (await asker.beat(epoch=7)).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    joined = await asker.join(protocol_type="connect")
    assert joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def on_disk(directory: Path) -> Broker:
    return Broker(
        topics={"t": 2}, data_dir=directory, memory_transport=True, metadata_delay=0.0
    )


async def test_groups_survive_on_disk(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as broker:
        asker = Asker(broker)
        joined = await asker.member()
        member = joined.member_id, joined.generation_id
        assert await asker.commit(9, member=member) == 0
    async with on_disk(tmp_path) as broker:
        asker = Asker(broker)
        (listed,) = (await asker.ask(ListGroupsRequest(), 5)).groups
        assert (listed.group_id, listed.group_state) == ("g", "Stable")
        asked = OffsetFetchRequestGroup(group_id="g", topics=None)
        answer = await asker.ask(OffsetFetchRequest(groups=[asked]), 9)
        (partition,) = answer.groups[0].topics[0].partitions
        assert partition.committed_offset == 5
        assert await asker.commit(9, member=member) == 0


async def test_both_protocols_in_one_group(asker: Asker) -> None:
    nothing = SyncGroupRequest(group_id="g", generation_id=1, member_id="m")
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert (await asker.ask(nothing, 4)).error_code == unknown
    await asker.beat(server_assignor="range")
    told = await asker.join(version=6)
    assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
    joined = await asker.join("classic", version=6)
    assert (joined.error_code, joined.generation_id) == (0, 3)
    assert (joined.protocol_name, joined.leader) == ("range", "")
    sync = SyncGroupRequest(group_id="g", generation_id=3, member_id="classic")
    assert (await asker.ask(sync, 4)).error_code == 0
    assert (await asker.ask(nothing, 4)).error_code == unknown
    beat = HeartbeatRequest(group_id="g", member_id="classic", generation_id=3)
    assert (await asker.ask(beat, 4)).error_code == 0
    beat.generation_id = 2
    assert (await asker.ask(beat, 4)).error_code == ErrorCode.ILLEGAL_GENERATION
    # A classic member can commit in any version, a KIP-848 member cannot.
    assert await asker.commit(8, member=("classic", 3)) == 0
    unsupported = await asker.commit(8, member=("m", 2))
    assert unsupported == ErrorCode.UNSUPPORTED_VERSION
    request = ConsumerGroupDescribeRequest(group_ids=["g"])
    (described,) = (await asker.ask(request, 1)).groups
    assert {one.member_id: one.member_type for one in described.members} == {
        "m": 1,
        "classic": 0,
    }
    leave = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")])
    (left,) = (await asker.ask(leave, 5)).members
    assert left.error_code == 0
    (listed,) = (await asker.ask(ListGroupsRequest(), 5)).groups
    assert (listed.group_type, listed.group_state) == ("classic", "PreparingRebalance")


async def test_kip848_members_survive_on_disk(
    tmp_path: Path,
) -> None:
    async with on_disk(tmp_path) as first:
        asker = Asker(first)
        joined = await asker.beat()
        assert joined.assignment is not None
        assert await asker.commit(9, member=("m", joined.member_epoch)) == 0
    async with on_disk(tmp_path) as second:
        asker = Asker(second)
        beat = await asker.beat("m", joined.member_epoch)
        assert (beat.error_code, beat.member_epoch) == (0, joined.member_epoch)
        assert beat.assignment is None
        request = ConsumerGroupDescribeRequest(group_ids=["g"])
        (described,) = (await asker.ask(request, 1)).groups
        assert described.group_state == "Stable"
        assert second.control.committed("g", ("t", 0)) == 5
