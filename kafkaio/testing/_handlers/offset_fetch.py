"""OffsetFetch, versions 1 to 10: return a group's committed offsets."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kafkaio.testing._groups.coordinator import EmbeddedGroupCoordinator, coordinator_of
from kafkaio.testing._groups.kip848 import Kip848Group
from kafkaio.testing._groups.offsets import Committed, Offsets
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._rights import Rights
from kafkaio.testing._security.acls import Operation, ResourceType

_NOTHING = Committed(-1, -1, "", 0)


@handler(OffsetFetchRequest, by_partition=True)
async def handle(context: RequestContext[OffsetFetchRequest]) -> OffsetFetchResponse:
    """Return committed offsets; before version 8 of one group."""
    request = context.request
    version = context.version
    coordinator = coordinator_of(context.cluster)
    asked = request.groups
    if version < 8:
        # One way for all versions: the older ones are a request for a single group.
        asked = [_as_group(request)]
    fault = context.connection.error_for("", -1)
    rights = context.rights
    found = [
        _group(
            coordinator,
            one,
            rights.denied(Operation.DESCRIBE, ResourceType.GROUP, one.group_id)
            or fault
            or coordinator.refuse(context.node.node_id, one.group_id),
            version,
            rights,
            require_stable=request.require_stable,
        )
        for one in asked
    ]
    if version >= 8:
        return OffsetFetchResponse(groups=found)
    return _as_single(found[0], asked[0], version)


def _as_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(
                name=one.name, partition_indexes=one.partition_indexes
            )
            for one in request.topics
        ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _as_single(
    group: OffsetFetchResponseGroup, asked: OffsetFetchRequestGroup, version: int
) -> OffsetFetchResponse:
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=one.partition_index,
                    committed_offset=one.committed_offset,
                    committed_leader_epoch=one.committed_leader_epoch,
                    metadata=one.metadata,
                    error_code=one.error_code,
                )
                for one in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    if version < 2 and group.error_code:
        # These versions have error codes for partitions only.
        topics = [
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index,
                        committed_offset=-1,
                        error_code=group.error_code,
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in asked.topics or ()
        ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)


def _group(
    coordinator: EmbeddedGroupCoordinator,
    asked: OffsetFetchRequestGroup,
    error: ErrorCode,
    version: int,
    rights: Rights,
    *,
    require_stable: bool,
) -> OffsetFetchResponseGroup:
    answer = OffsetFetchResponseGroup(group_id=asked.group_id)
    answer.error_code = error or _check(coordinator, asked)
    if answer.error_code:
        return answer
    offsets = coordinator.offsets_of(asked.group_id)
    cluster = coordinator.cluster
    # All offsets of the group, except of topics that the client may not see.
    if asked.topics is None:
        answer.topics = [
            _topic(
                offsets, name, cluster.topic_id(name), partitions, stable=require_stable
            )
            for name, partitions in offsets.topics().items()
            if (version < 10 or cluster.topic_id(name) is not None)
            and rights.may(Operation.DESCRIBE, ResourceType.TOPIC, name)
        ]
        return answer
    for topic in asked.topics:
        name: str | None = topic.name
        # By id since then (KIP-848): offsets of a topic that was created again are not
        # found.
        if version >= 10:
            name = cluster.topic_name(topic.topic_id)
        code = ErrorCode.UNKNOWN_TOPIC_ID
        if name is not None:
            code = rights.denied(Operation.DESCRIBE, ResourceType.TOPIC, name)
        if code:
            answer.topics.append(_failed(topic, code))
            continue
        answer.topics.append(
            _topic(
                offsets,
                name or "",
                topic.topic_id,
                topic.partition_indexes,
                stable=require_stable,
            )
        )
    return answer


def _failed(
    topic: OffsetFetchRequestTopics, code: ErrorCode
) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=_NOTHING.offset,
                committed_leader_epoch=_NOTHING.leader_epoch,
                metadata=_NOTHING.metadata,
                error_code=code,
            )
            for index in topic.partition_indexes
        ],
    )


def _topic(
    offsets: Offsets,
    name: str,
    topic_id: UUID | None,
    partitions: Sequence[int],
    *,
    stable: bool,
) -> OffsetFetchResponseTopics:
    answer = OffsetFetchResponseTopics(name=name)
    if topic_id is not None:
        answer.topic_id = topic_id
    for index in partitions:
        committed = offsets.get((name, index)) or _NOTHING
        code = ErrorCode.NONE
        # KIP-447: the offset of a transaction that may still commit. The client asks
        # again.
        if stable and offsets.is_pending((name, index)):
            committed, code = _NOTHING, ErrorCode.UNSTABLE_OFFSET_COMMIT
        answer.partitions.append(
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                error_code=code,
            )
        )
    return answer


def _check(
    coordinator: EmbeddedGroupCoordinator, asked: OffsetFetchRequestGroup
) -> ErrorCode:
    """Compare a member's epoch with the group's, if the request names a member."""
    # A client that is not a member, such as an administrator, may look at any time.
    if asked.member_id is None and asked.member_epoch < 0:
        return ErrorCode.NONE
    group = coordinator.find(asked.group_id)
    if isinstance(group, Kip848Group):
        return group.check_fetch(asked.member_id or "", asked.member_epoch)
    return ErrorCode.NONE
