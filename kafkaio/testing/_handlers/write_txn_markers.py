"""WriteTxnMarkers, versions 1 and 2 (KIP-98, KIP-664, KIP-890).

For brokers, and for an operator who ends a hanging transaction.
"""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafkaio.testing._broker.producers import TransactionMarker
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(WriteTxnMarkersRequest, by_partition=True)
async def handle(
    context: RequestContext[WriteTxnMarkersRequest],
) -> WriteTxnMarkersResponse:
    """Write markers to the partitions that this node leads."""
    rights = context.rights
    denied = ErrorCode.NONE
    if not rights.may(Operation.ALTER, ResourceType.CLUSTER):
        denied = rights.denied(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=one.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index,
                                error_code=denied
                                or _write(context, one, (topic.name, index)),
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in one.topics
                ],
            )
            for one in context.request.markers
        ]
    )


def _write(
    context: RequestContext[WriteTxnMarkersRequest],
    asked: WritableTxnMarker,
    place: tuple[str, int],
) -> ErrorCode:
    cluster = context.cluster
    try:
        context.connection.check(*place)
        partition = cluster.require_partition(*place)
        partition.check_leader(context.node.node_id)
        cluster.write_marker(
            partition,
            TransactionMarker(
                asked.producer_id,
                asked.producer_epoch,
                asked.transaction_result,
                asked.coordinator_epoch,
                asked.transaction_version,
                cluster.clock.wall_ms(),
            ),
        )
    except Refusal as refusal:
        return refusal.code
    return ErrorCode.NONE
