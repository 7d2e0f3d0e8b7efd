"""ShareAcknowledge, versions 1 and 2 (KIP-932, KIP-1222 for renewals)."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.share_acknowledge import (
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler, right
from kafkaio.testing._handlers._share import (
    Acknowledging,
    LeaderHints,
    by_topic_id,
    check_enabled,
    check_faults,
    check_member,
)
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._share.leaders import share_leaders_of
from kafkaio.testing._share.sessions import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    SessionKey,
    SharedPartition,
)


@handler(
    ShareAcknowledgeRequest,
    check_enabled,
    check_member,
    check_faults,
    right(Operation.READ, ResourceType.GROUP, "group_id"),
    by_partition=True,
)
async def handle(
    context: RequestContext[ShareAcknowledgeRequest],
) -> ShareAcknowledgeResponse:
    """Apply acknowledgements; with the last epoch, end the session after them."""
    request = context.request
    leaders = share_leaders_of(context.cluster)
    key = SessionKey(request.group_id or "", request.member_id or "")
    node_id, epoch = context.node.node_id, request.share_session_epoch
    sessions = leaders.sessions(node_id)
    if epoch == FIRST_EPOCH:
        raise Refusal(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    if epoch == FINAL_EPOCH:
        sessions.require(key)
    else:
        sessions.advance(key, epoch)
    acknowledging = Acknowledging(context, leaders, *key, renews=request.is_renew_ack)
    acknowledging.judge(
        {
            (topic.topic_id, one.partition_index): one.acknowledgement_batches
            for topic in request.topics
            for one in topic.partitions
            if one.acknowledgement_batches
        }
    )
    found = acknowledging.settle()
    if epoch == FINAL_EPOCH:
        leaders.close_session(node_id, key)
    answer = _answer(context, found)
    answer.acquisition_lock_timeout_ms = round(
        leaders.limits(key.group).lock_duration * 1000
    )
    return answer


def _answer(
    context: RequestContext[ShareAcknowledgeRequest],
    found: dict[SharedPartition, Refusal | None],
) -> ShareAcknowledgeResponse:
    answer = ShareAcknowledgeResponse()
    hints = LeaderHints(context)
    for topic_id, keys in by_topic_id(found).items():
        topic = ShareAcknowledgeTopicResponse(topic_id=topic_id)
        answer.responses.append(topic)
        for key in keys:
            data = PartitionData(partition_index=key[1])
            topic.partitions.append(data)
            refusal = found[key]
            if refusal is not None:
                refusal.write_to(data)
                hints.add(key, refusal.code, data.current_leader)
    answer.node_endpoints = [
        NodeEndpoint(node_id=leader, host=host, port=port, rack=rack)
        for leader, host, port, rack in hints.endpoints()
    ]
    return answer
