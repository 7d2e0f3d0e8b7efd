"""DeleteShareGroupOffsets, version 0 (KIP-932): forget topics of share groups."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._handlers._handler import (
    RequestContext,
    coordinated,
    handler,
    right,
    with_message,
)
from kafkaio.testing._handlers._share import check_enabled
from kafkaio.testing._handlers._share_offsets import NO_PARTITION, empty_group
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._share.leaders import share_leaders_of
from kafkaio.testing._share.states import ShareKey


@handler(
    DeleteShareGroupOffsetsRequest,
    check_enabled,
    right(Operation.DELETE, ResourceType.GROUP, "group_id"),
    coordinated(coordinator_of, "group_id"),
    refused=with_message,
)
async def handle(
    context: RequestContext[DeleteShareGroupOffsetsRequest],
) -> DeleteShareGroupOffsetsResponse:
    """Forget all that a group without members knows of topics."""
    group_id = context.request.group_id
    empty_group(context.cluster, group_id, creates=False)
    return DeleteShareGroupOffsetsResponse(
        responses=[
            _delete(context, group_id, one.topic_name) for one in context.request.topics
        ]
    )


def _delete(
    context: RequestContext[DeleteShareGroupOffsetsRequest], group_id: str, name: str
) -> DeleteShareGroupOffsetsResponseTopic:
    answer = DeleteShareGroupOffsetsResponseTopic(topic_name=name)
    answer.error_code = context.rights.denied(Operation.READ, ResourceType.TOPIC, name)
    if answer.error_code:
        return answer
    states = share_leaders_of(context.cluster).states
    topic = context.cluster.known(name)
    known = {} if topic is None else states.of_group(group_id).get(topic.topic_id, {})
    if topic is None or not known:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answer.error_message = (
            NO_PARTITION
            if topic is None
            else "There is no offset information to delete."
        )
        return answer
    answer.topic_id = topic.topic_id
    for index in known:
        states.remove(ShareKey(group_id, topic.topic_id, index))
    return answer
