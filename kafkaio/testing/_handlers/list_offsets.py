"""ListOffsets, versions 1 to 11 (KIP-79, KIP-734, KIP-405, KIP-1005)."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkaio.testing._broker.partition import EmbeddedPartition
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType

#: KIP-320.
_FIRST_WITH_EPOCH: Final = 4
_LATEST: Final = -1
_EARLIEST: Final = -2
_MAX_TIMESTAMP: Final = -3
_EARLIEST_LOCAL: Final = -4
_LATEST_TIERED: Final = -5
_EARLIEST_PENDING_UPLOAD: Final = -6


@handler(ListOffsetsRequest, by_partition=True)
async def handle(context: RequestContext[ListOffsetsRequest]) -> ListOffsetsResponse:
    """Look up offsets by timestamp. Nothing is ever in tiered storage."""
    request = context.request
    rights = context.rights
    denied = {
        topic.name: rights.denied(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        for topic in request.topics
    }
    response = ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _denied(asked, denied[topic.name])
                    or _one(context, topic.name, asked, request.isolation_level)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
    if context.version < _FIRST_WITH_EPOCH:
        for topic in response.topics:
            for result in topic.partitions:
                result.leader_epoch = -1
    return response


def _denied(
    asked: ListOffsetsPartition, code: ErrorCode
) -> ListOffsetsPartitionResponse | None:
    """The answer for a topic that the client may not see; None if it may."""
    if not code:
        return None
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index, error_code=code
    )


def _one(
    context: RequestContext[ListOffsetsRequest],
    topic: str,
    asked: ListOffsetsPartition,
    isolation_level: int,
) -> ListOffsetsPartitionResponse:
    result = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    try:
        partition = context.cluster.require_partition(topic, asked.partition_index)
        context.connection.check(topic, partition.index)
        partition.check_epoch(asked.current_leader_epoch, context.node.node_id)
        partition.check_leader(context.node.node_id)
        # For a reader of committed records the log ends at the last stable offset.
        end = partition.fetchable(isolation_level)
        _look_up(partition, asked.timestamp, end, result)
    except Refusal as refusal:
        result.error_code = refusal.code
    return result


def _look_up(
    partition: EmbeddedPartition,
    timestamp: int,
    end: int,
    result: ListOffsetsPartitionResponse,
) -> None:
    if timestamp == _LATEST:
        result.offset = end
        result.leader_epoch = partition.leader_epoch
    elif timestamp in {_EARLIEST, _EARLIEST_LOCAL}:
        result.offset = partition.start_offset
        result.leader_epoch = partition.leader_epoch
    # Nothing is in tiered storage, or on its way there.
    elif timestamp in {_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD}:
        result.offset = -1
    elif timestamp < 0 and timestamp != _MAX_TIMESTAMP:
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION)
    else:
        log = partition.log
        found = (
            log.max_timestamp()
            if timestamp == _MAX_TIMESTAMP
            else log.offset_for_timestamp(timestamp)
        )
        # Records that the client cannot read yet are not found.
        if found is not None and found.offset < end:
            result.offset, result.timestamp, result.leader_epoch = found
