"""OffsetCommit, versions 2 to 10: commit offsets of a group."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafkaio.testing._groups.assignors import Slot
from kafkaio.testing._groups.classic import ClassicGroup
from kafkaio.testing._groups.coordinator import EmbeddedGroupCoordinator, coordinator_of
from kafkaio.testing._groups.offsets import Committed, Place
from kafkaio.testing._groups.share import ShareGroup
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(OffsetCommitRequest, by_partition=True)
async def handle(context: RequestContext[OffsetCommitRequest]) -> OffsetCommitResponse:
    """Commit offsets; an error of the whole request goes to every partition."""
    request = context.request
    version = context.version
    coordinator = coordinator_of(context.cluster)
    rights = context.rights
    denied = rights.denied(Operation.READ, ResourceType.GROUP, request.group_id)
    error = coordinator.refuse(context.node.node_id, request.group_id)
    if not error:
        error = _check(coordinator, request, version)
    positions: dict[Place, Committed] = {}
    is_accepted = False
    answer = OffsetCommitResponse()
    cluster = coordinator.cluster
    for topic in request.topics:
        name: str | None = topic.name
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if version >= 10:
            name = cluster.topic_name(topic.topic_id)
            unknown = ErrorCode.UNKNOWN_TOPIC_ID
        count = 0 if name is None else cluster.partition_count(name)
        answered = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        answer.topics.append(answered)
        refused = denied
        if not refused and name is not None:
            refused = rights.denied(Operation.READ, ResourceType.TOPIC, name)
        for one in topic.partitions:
            code = refused or context.connection.error_for(
                name or "", one.partition_index
            )
            if not code and not 0 <= one.partition_index < count:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if count else unknown
            code = code or error
            if not code and name is not None:
                is_accepted = True
                code = _add(coordinator, request, (name, one), positions)
            answered.partitions.append(
                OffsetCommitResponsePartition(
                    partition_index=one.partition_index, error_code=code
                )
            )
    # Even without an offset to commit, the request creates a group that is unknown.
    if is_accepted:
        coordinator.commit(request.group_id, positions)
    return answer


def _add(
    coordinator: EmbeddedGroupCoordinator,
    request: OffsetCommitRequest,
    position: tuple[str, OffsetCommitRequestPartition],
    positions: dict[Place, Committed],
) -> ErrorCode:
    name, one = position
    metadata = one.committed_metadata or ""
    if len(metadata) > coordinator.config.offset_metadata_max_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    now_ms = coordinator.wall_ms()
    retention = request.retention_time_ms
    positions[name, one.partition_index] = Committed(
        one.committed_offset,
        one.committed_leader_epoch,
        metadata,
        now_ms,
        None if retention < 0 else now_ms + retention,
        coordinator.cluster.topic_id(name),
    )
    return ErrorCode.NONE


def _check(
    coordinator: EmbeddedGroupCoordinator, request: OffsetCommitRequest, version: int
) -> ErrorCode:
    """Check that the request is from a member, or for a group without members."""
    group = coordinator.find(request.group_id)
    epoch = request.generation_id_or_member_epoch
    if group is None:
        if epoch < 0:
            return ErrorCode.NONE
        if version >= 9:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.ILLEGAL_GENERATION
    if isinstance(group, ShareGroup):
        return ErrorCode.GROUP_ID_NOT_FOUND
    if isinstance(group, ClassicGroup):
        # A commit renews the session of a classic member.
        with coordinator.changing(group) as now:
            return group.check_commit(
                request.member_id, request.group_instance_id, epoch, now
            )
    member = group.members.get(request.member_id)
    if version < 9 and member is not None and member.classic is None:
        # A KIP-848 member has to use a version that has a field for its epoch.
        return ErrorCode.UNSUPPORTED_VERSION
    slots = _slots(coordinator, request, version)
    return group.check_commit(request.member_id, epoch, slots)


def _slots(
    coordinator: EmbeddedGroupCoordinator, request: OffsetCommitRequest, version: int
) -> frozenset[Slot]:
    found: set[Slot] = set()
    for topic in request.topics:
        topic_id = topic.topic_id
        if version < 10:
            topic_id = coordinator.cluster.topic_id(topic.name) or topic_id
        found.update((topic_id, one.partition_index) for one in topic.partitions)
    return frozenset(found)
