"""AlterReplicaLogDirs, versions 1 and 2 (KIP-113).

A node has one directory, so that a replica can only be moved to where it is.
"""

from __future__ import annotations

from collections import defaultdict

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(AlterReplicaLogDirsRequest, by_partition=True)
async def handle(
    context: RequestContext[AlterReplicaLogDirsRequest],
) -> AlterReplicaLogDirsResponse:
    """Say of each replica whether it could be moved to a directory."""
    denied = context.rights.denied(Operation.ALTER, ResourceType.CLUSTER)
    # A partition that is named twice is moved to where it is named last.
    paths = {
        (topic.name, index): directory.path
        for directory in context.request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    codes: dict[str, dict[int, ErrorCode]] = defaultdict(dict)
    for (topic, index), path in paths.items():
        codes[topic][index] = denied or _code(context.node, topic, index, path)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic,
                partitions=[
                    AlterReplicaLogDirPartitionResult(
                        partition_index=index, error_code=code
                    )
                    for index, code in found.items()
                ],
            )
            for topic, found in codes.items()
        ]
    )


def _code(node: BrokerNode, topic: str, index: int, path: str) -> ErrorCode:
    if path != node.log_dir:
        return ErrorCode.LOG_DIR_NOT_FOUND
    partition = node.cluster.partition(topic, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if node.node_id not in partition.replicas:
        return ErrorCode.REPLICA_NOT_AVAILABLE
    return ErrorCode.NONE
