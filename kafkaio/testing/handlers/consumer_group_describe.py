"""ConsumerGroupDescribe, versions 0 and 1: describe KIP-848 groups."""

from __future__ import annotations

from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.message import Request, Response
from kafkaio.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing.broker.connection import ServerConnection
from kafkaio.testing.broker.node import Node
from kafkaio.testing.groups.coordinator import coordinator_of
from kafkaio.testing.groups.describe import describe_kip848_member
from kafkaio.testing.groups.kip848 import Kip848Group

__all__ = ["handle"]


async def handle(
    node: Node,
    header: RequestHeader,
    request: Request[Response],
    connection: ServerConnection,
) -> ConsumerGroupDescribeResponse:
    """Serve one request."""
    del header, connection
    assert isinstance(request, ConsumerGroupDescribeRequest)
    coordinator = coordinator_of(node.cluster)
    answer = ConsumerGroupDescribeResponse()
    for group_id in request.group_ids:
        error = coordinator.refuse(node.node_id, group_id)
        group = coordinator.find(group_id)
        found = DescribedGroup(group_id=group_id, error_code=error)
        answer.groups.append(found)
        if error:
            continue
        if not isinstance(group, Kip848Group):
            found.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            found.error_message = f"Group {group_id} not found."
            if group is not None:
                found.error_message = f"Group {group_id} is not a consumer group."
            continue
        found.group_state = group.state
        found.group_epoch = group.epoch
        found.assignment_epoch = group.target_epoch
        found.assignor_name = group.assignor
        found.members = [
            describe_kip848_member(group, one, coordinator.cluster)
            for one in group.members.values()
        ]
    return answer
