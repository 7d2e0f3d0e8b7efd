"""ShareGroupDescribe, version 1 (KIP-932): describe share groups."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)
from kafkaio.testing._groups.cluster_port import ClusterPort
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._groups.describe import by_topic
from kafkaio.testing._groups.share import ShareGroup, ShareMember
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType

_UNSEEN: Final = "The group has topics that the client is not authorized to describe."


@handler(ShareGroupDescribeRequest)
async def handle(
    context: RequestContext[ShareGroupDescribeRequest],
) -> ShareGroupDescribeResponse:
    """Describe share groups and their members."""
    groups = [_described(context, name) for name in context.request.group_ids]
    return ShareGroupDescribeResponse(groups=groups)


def _described(
    context: RequestContext[ShareGroupDescribeRequest], group_id: str
) -> DescribedGroup:
    found = DescribedGroup(group_id=group_id)
    if not context.cluster.has_share_groups:
        found.error_code = ErrorCode.UNSUPPORTED_VERSION
        return found
    rights = context.rights
    coordinator = coordinator_of(context.cluster)
    found.error_code = rights.denied(
        Operation.DESCRIBE, ResourceType.GROUP, group_id
    ) or coordinator.refuse(context.node.node_id, group_id)
    if found.error_code:
        return found
    group = coordinator.find(group_id)
    if not isinstance(group, ShareGroup):
        is_other = "" if group is None else "is not a share group."
        found.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        found.error_message = f"Group {group_id} {is_other or 'not found.'}"
        return found
    members = [_member(one, coordinator.cluster) for one in group.members.values()]
    # The whole group is hidden: an assignment without some topics would be a wrong one.
    if not all(
        rights.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.topic_name)
        for member in members
        for topic in member.assignment.topic_partitions
    ):
        found.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        found.error_message = _UNSEEN
        return found
    found.group_state = group.state
    found.group_epoch = group.epoch
    found.assignment_epoch = group.target_epoch
    found.assignor_name = group.assignor
    found.members = members
    found.authorized_operations = rights.operations(
        ResourceType.GROUP,
        group_id,
        is_asked=context.request.include_authorized_operations,
    )
    return found


def _member(member: ShareMember, cluster: ClusterPort) -> Member:
    return Member(
        member_id=member.id,
        rack_id=member.rack,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.names),
        assignment=Assignment(
            topic_partitions=[
                TopicPartitions(
                    topic_id=topic_id,
                    topic_name=cluster.topic_name(topic_id) or "",
                    partitions=partitions,
                )
                for topic_id, partitions in by_topic(member.assigned).items()
            ]
        ),
    )
