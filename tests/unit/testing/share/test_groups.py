"""Membership, description and offsets of share groups of the embedded broker."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from kafkaio.protocol.messages.api_versions import ApiVersionsRequest
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from kafkaio.protocol.messages.delete_groups import DeleteGroupsRequest
from kafkaio.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kafkaio.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kafkaio.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from kafkaio.protocol.messages.list_groups import ListGroupsRequest
from kafkaio.protocol.messages.offset_commit import OffsetCommitRequest
from kafkaio.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
)
from kafkaio.testing._security.acls import Operation, ResourceType
from tests.unit.testing.broker.calls import Caller, connect, started
from tests.unit.testing.broker.test_acls import grant, guarded
from tests.unit.testing.share.members import (
    ACCEPT,
    GROUP,
    RELEASE,
    TOPIC,
    Member,
    acquired,
    another,
    code_of,
    data_of,
    fill,
    reader,
    shared,
)


def partitions_of(answer: object) -> list[int] | None:
    assignment = answer.assignment  # type: ignore[attr-defined]
    if assignment is None:
        return None
    return sorted(n for topic in assignment.topic_partitions for n in topic.partitions)


async def test_members_share_partitions() -> None:
    async with shared(partitions=2) as (broker, member):
        assert member.epoch == 3
        again = await member.heartbeat()
        assert (again.error_code, partitions_of(again)) == (0, None)
        other = await another(broker, "other")
        mine = partitions_of(await member.heartbeat())
        theirs = partitions_of(await other.heartbeat(names=[TOPIC]))
        assert sorted([*(mine or ()), *(theirs or ())]) == [0, 1]
        # More members than partitions: some have one together.
        others = [await another(broker, name) for name in ("c", "d")]
        await member.heartbeat()
        described = await describe(member.caller)
        counts = [
            len(topic.partitions)
            for one in described.members
            for topic in one.assignment.topic_partitions
        ]
        assert (len(described.members), sum(counts)) == (4, 4)
        for one in (other, *others):
            assert (await one.heartbeat(-1)).error_code == 0
        assert partitions_of(await member.heartbeat()) == [0, 1]


async def test_a_member_that_is_silent_is_forgotten_and_its_locks_are_not() -> None:
    async with shared(2) as (broker, member):
        await member.fetch()
        broker.control.skip_time(46)
        gone = await member.heartbeat()
        assert gone.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert broker.control.members(GROUP) == []
        # By then the locks have ended of themselves; a stranger may lock them again.
        assert acquired(await member.fetch()) == [(0, 1, 2)]


@pytest.mark.parametrize(
    ("member", "epoch", "names", "message"),
    [
        ("", 0, [TOPIC], None),
        ("x", 0, [], "SubscribedTopicNames must be set in first request."),
        ("x", 0, None, "SubscribedTopicNames must be set in first request."),
        ("x", -2, None, "MemberEpoch is invalid."),
    ],
)
async def test_what_a_heartbeat_has_to_say(
    member: str, epoch: int, names: list[str] | None, message: str | None
) -> None:
    async with shared() as (broker, _):
        client = await reader(broker, member)
        answer = await client.heartbeat(epoch, names)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert answer.error_message == message


async def test_epochs_ahead_and_behind_are_fenced() -> None:
    async with shared() as (broker, member):
        ahead = await member.heartbeat(member.epoch + 5)
        assert ahead.error_code == ErrorCode.FENCED_MEMBER_EPOCH
        first = member.epoch
        await another(broker, "b")
        await member.heartbeat()
        # The answer with the new epoch may have been lost.
        assert (await member.heartbeat(first)).error_code == 0
        await another(broker, "c")
        await member.heartbeat()
        behind = await member.heartbeat(first)
        assert behind.error_code == ErrorCode.FENCED_MEMBER_EPOCH
        assert (await member.join()).error_code == 0


async def test_topics_that_come_and_go_start_a_new_epoch() -> None:
    async with shared() as (broker, member):
        await member.heartbeat(names=[TOPIC, "later"])
        assert partitions_of(await member.heartbeat()) is None
        broker.create_topic("later", 2)
        assert partitions_of(await member.heartbeat()) == [0, 0, 1]
        broker.control.add_partitions(TOPIC, 1)
        assert partitions_of(await member.heartbeat()) == [0, 0, 1, 1]


async def test_a_group_has_one_kind() -> None:
    async with shared() as (_, member):
        caller = member.caller
        newer = await caller.call(
            ConsumerGroupHeartbeatRequest(
                group_id=GROUP,
                member_id="k",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                subscribed_topic_names=[TOPIC],
                topic_partitions=[],
            ),
            1,
        )
        assert newer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        classic = await caller.call(join_request(GROUP), 9)
        assert classic.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        commit = await caller.call(
            OffsetCommitRequest(group_id=GROUP, generation_id_or_member_epoch=-1), 9
        )
        assert commit.topics == []
        joined = await caller.call(join_request("classic"), 9)
        assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
        member.group = "classic"
        other = await member.heartbeat(0, [TOPIC])
        assert other.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert other.error_message == "Group classic is not a share group."
        assert (await describe(caller, "classic")).error_code == 69


def join_request(group: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


async def describe(caller: Caller, group: str = GROUP) -> DescribedGroup:
    answer = await caller.call(ShareGroupDescribeRequest(group_ids=[group]), 1)
    (found,) = answer.groups
    return found


async def test_groups_are_listed_described_and_deleted() -> None:
    async with shared(1) as (_, member):
        caller = member.caller
        found = await describe(caller)
        assert (found.group_state, found.assignor_name) == ("Stable", "simple")
        assert (found.group_epoch, found.assignment_epoch) == (3, 3)
        assert [one.client_id for one in found.members] == ["caller"]
        listed = await caller.call(ListGroupsRequest(types_filter=["Share"]), 5)
        (one,) = listed.groups
        assert (one.group_id, one.protocol_type, one.group_type) == (
            GROUP,
            "share",
            "share",
        )
        delete = DeleteGroupsRequest(groups_names=[GROUP])
        refused = await caller.call(delete, 2)
        assert refused.results[0].error_code == ErrorCode.NON_EMPTY_GROUP
        await member.heartbeat(-1)
        assert (await describe(caller)).group_state == "Empty"
        assert (await caller.call(delete, 2)).results[0].error_code == 0
        assert (await describe(caller)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert await offsets(caller) == {}


# ---- offsets -------------------------------------------------------------------------


async def offsets(
    caller: Caller, group: str = GROUP, partitions: Sequence[int] | None = None
) -> dict[int, tuple[int, int]]:
    """Start and lag of the partitions of the topic."""
    topics = None
    if partitions is not None:
        topics = [
            DescribeShareGroupOffsetsRequestTopic(
                topic_name=TOPIC, partitions=list(partitions)
            )
        ]
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)
    answer = await caller.call(DescribeShareGroupOffsetsRequest(groups=[asked]), 1)
    (found,) = answer.groups
    return {
        one.partition_index: (one.start_offset, one.lag)
        for topic in found.topics
        for one in topic.partitions
    }


async def alter(
    caller: Caller, start: int, topic: str = TOPIC
) -> AlterShareGroupOffsetsResponse:
    partition = AlterShareGroupOffsetsRequestPartition(
        partition_index=0, start_offset=start
    )
    return await caller.call(
        AlterShareGroupOffsetsRequest(
            group_id=GROUP,
            topics=[
                AlterShareGroupOffsetsRequestTopic(
                    topic_name=topic, partitions=[partition]
                )
            ],
        ),
        0,
    )


async def test_what_is_described_trails_behind() -> None:
    async with shared(10, partitions=2) as (_, member):
        assert await offsets(member.caller) == {0: (-1, -1), 1: (-1, -1)}
        await member.fetch(5)
        await member.acknowledge((0, 2, ACCEPT), (4, 4, ACCEPT))
        # The start before the acknowledgement, and what it has completed.
        assert (await offsets(member.caller))[0] == (0, 6)
        await member.acknowledge((3, 3, ACCEPT))
        assert (await offsets(member.caller))[0] == (3, 5)
        assert await offsets(member.caller, "none", [0]) == {0: (-1, -1)}


async def test_the_start_is_altered_for_the_leader_that_reads_it_next() -> None:
    async with shared(4) as (broker, member):
        await member.fetch()
        await member.acknowledge((0, 3, ACCEPT))
        admin = await connect(broker)
        refused = await alter(admin, 0)
        assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
        # The session ends, and its connection does not: the leader goes on.
        await member.fetch(epoch=-1)
        await member.heartbeat(-1)
        assert (await alter(admin, 0)).error_code == 0
        member.session = 0
        assert acquired(await member.fetch()) == []
        await fill(admin, 1)
        assert acquired(await member.fetch()) == [(4, 4, 1)]
        # Its state is not the current one any more, as the next change shows.
        stale = await member.acknowledge((4, 4, RELEASE))
        (topic,) = stale.responses
        code = topic.partitions[0].error_code
        assert code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert acquired(await member.fetch()) == [(0, 4, 1)]
        await member.acknowledge((0, 4, ACCEPT))
        assert member.caller.transport is not None
        member.caller.transport.abort()
        assert (await alter(admin, 2)).error_code == 0
        assert acquired(await (await reader(broker, "next")).fetch()) == [(2, 4, 1)]


async def test_offsets_of_topics_are_deleted() -> None:
    async with shared(1) as (_, member):
        caller = member.caller
        request = DeleteShareGroupOffsetsRequest(
            group_id=GROUP,
            topics=[
                DeleteShareGroupOffsetsRequestTopic(topic_name=name)
                for name in (TOPIC, "none")
            ],
        )
        refused = await caller.call(request, 0)
        assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
        await member.heartbeat(-1)
        answer = await caller.call(request, 0)
        assert [one.error_code for one in answer.responses] == [
            0,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert await offsets(caller) == {}
        unknown = await alter(caller, 0, "none")
        code = unknown.responses[0].partitions[0].error_code
        assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("reset", "first"),
    [("earliest", 0), ("latest", 3), ("by_duration:PT1H", 0), ("by_duration:PT0S", 3)],
)
async def test_a_group_begins_where_its_config_says(reset: str, first: int) -> None:
    configs = {"share.auto.offset.reset": reset}
    async with shared(3, configs=configs) as (broker, member):
        await member.fetch()
        await fill(await connect(broker), 2)
        # A later fetch does not look again.
        other = await another(broker, "other")
        ranges = acquired(await other.fetch())
        held = [] if first else [(0, 2, 1)]
        assert [*held, *ranges][0][0] == first
        assert ranges[-1][1] == 4


# ---- versions and rights -------------------------------------------------------------

SHARE_APIS = {
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
}


@pytest.mark.parametrize(
    ("release", "level"), [("4.0", None), ("4.2", 1), ("4.3", 1), ("4.4", 2)]
)
async def test_the_feature_is_that_of_the_release(
    release: str, level: int | None
) -> None:
    async with started(as_version=release) as (_, caller):
        answer = await caller.call(
            ApiVersionsRequest(client_software_name="x", client_software_version="1"),
            4,
        )
        offered = {ApiKey(one.api_key) for one in answer.api_keys} & SHARE_APIS
        assert offered == (set() if level is None else SHARE_APIS)
        levels = {one.name: one.max_version_level for one in answer.finalized_features}
        assert levels.get("share.version") == level


async def test_share_groups_can_be_switched_off() -> None:
    async with shared(1) as (broker, member):
        await member.fetch()
        broker.control.set_feature("share.version", 0)
        code = ErrorCode.UNSUPPORTED_VERSION
        assert (await member.heartbeat()).error_code == code
        assert (await member.fetch()).error_code == code
        assert (await member.acknowledge((0, 0, ACCEPT))).error_code == code
        assert (await describe(member.caller)).error_code == code
        broker.control.set_feature("share.version", 1)
        # Sessions and locks are gone.
        assert (await member.fetch()).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        member.session = 0
        assert acquired(await member.fetch()) == [(0, 0, 1)]


async def test_a_client_needs_rights() -> None:
    read_group = (ResourceType.GROUP, Operation.READ)
    async with guarded() as (broker, caller):
        member = Member(caller, broker.topics[TOPIC].topic_id)
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert (await member.heartbeat(0, [TOPIC])).error_code == code
        assert (await member.fetch()).error_code == code
        assert (await member.acknowledge((0, 0, ACCEPT), epoch=1)).error_code == code
        assert (await describe(caller)).error_code == code
        assert (await alter(caller, 0)).error_code == code
        grant(broker, read_group)
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert (await member.heartbeat(0, [TOPIC])).error_code == code
        grant(broker, (ResourceType.TOPIC, Operation.DESCRIBE))
        await member.join()
        data = data_of(await member.fetch())
        assert data.error_code == code
        assert code_of(await member.acknowledge((0, 0, ACCEPT))) == code
        grant(broker, (ResourceType.TOPIC, Operation.READ))
        assert acquired(await member.fetch()) == []
