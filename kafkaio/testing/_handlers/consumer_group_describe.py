"""ConsumerGroupDescribe, versions 0 and 1: describe KIP-848 groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
)
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._groups.describe import describe_kip848_member
from kafkaio.testing._groups.kip848 import Kip848Group
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._rights import Rights
from kafkaio.testing._security.acls import Operation, ResourceType

_UNSEEN: Final = "The group has topics that the client is not authorized to describe."


@handler(ConsumerGroupDescribeRequest)
async def handle(
    context: RequestContext[ConsumerGroupDescribeRequest],
) -> ConsumerGroupDescribeResponse:
    """Describe groups and their members."""
    request = context.request
    coordinator = coordinator_of(context.cluster)
    rights = context.rights
    answer = ConsumerGroupDescribeResponse()
    if not context.cluster.has_consumer_groups:
        code = ErrorCode.UNSUPPORTED_VERSION
        answer.groups = [
            DescribedGroup(group_id=name, error_code=code) for name in request.group_ids
        ]
        return answer
    for group_id in request.group_ids:
        error = rights.denied(
            Operation.DESCRIBE, ResourceType.GROUP, group_id
        ) or coordinator.refuse(context.node.node_id, group_id)
        group = coordinator.find(group_id)
        found = DescribedGroup(group_id=group_id, error_code=error)
        answer.groups.append(found)
        if error:
            continue
        # A client that does not know the protocol of a group asks by both APIs.
        if not isinstance(group, Kip848Group):
            found.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            found.error_message = f"Group {group_id} not found."
            if group is not None:
                found.error_message = f"Group {group_id} is not a consumer group."
            continue
        members = [
            describe_kip848_member(group, one, coordinator.cluster)
            for one in group.members.values()
        ]
        # The whole group is hidden: an assignment without some topics would be a wrong
        # one.
        if not _sees_topics(rights, members):
            found.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            found.error_message = _UNSEEN
            continue
        found.group_state = group.state
        found.group_epoch = group.epoch
        found.assignment_epoch = group.target_epoch
        found.assignor_name = group.assignor
        found.members = members
        found.authorized_operations = rights.operations(
            ResourceType.GROUP,
            group_id,
            is_asked=request.include_authorized_operations,
        )
    return answer


def _sees_topics(rights: Rights, members: Sequence[Member]) -> bool:
    """Whether the client may see every topic that members have or will have."""
    return all(
        rights.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.topic_name)
        for member in members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    )
