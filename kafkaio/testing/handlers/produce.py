"""Produce, versions 3 to 13 (KIP-98, KIP-467, KIP-951, KIP-516 for ids).

Advertised as 0 to 13, as Kafka does because old librdkafka versions need it.
Transactional batches are refused.
"""

from __future__ import annotations

from typing import Final

from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing.broker.connection import ServerConnection
from kafkaio.testing.broker.node import Node
from kafkaio.testing.broker.partition import NO_LEADER, Partition
from kafkaio.testing.broker.refusal import Malformed, Refusal

_FIRST_WITH_IDS: Final = 13
_FIRST_WITH_HINTS: Final = 10
# The errors with which Kafka does not return the log start offset.
_WITHOUT_START: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE,
}
_HINTED: Final = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH}


class _Call:
    """One request while it is served."""

    def __init__(
        self, node: Node, version: int, acks: int, connection: ServerConnection
    ) -> None:
        self.node = node
        self.version = version
        self.acks = acks
        self.connection = connection
        self.response = ProduceResponse()
        self.failed = False

    def topic(self, data: TopicProduceData) -> None:
        cluster = self.node.cluster
        by_id = self.version >= _FIRST_WITH_IDS
        topic = (
            cluster.known_by_id(data.topic_id) if by_id else cluster.known(data.name)
        )
        answer = TopicProduceResponse(name=data.name, topic_id=data.topic_id)
        for part in data.partition_data:
            found = None
            if topic is not None and 0 <= part.index < len(topic.partitions):
                found = topic.partitions[part.index]
            absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if topic is None and by_id:
                absent = ErrorCode.UNKNOWN_TOPIC_ID
            result = self.partition(part, found, absent)
            self.failed = self.failed or result.error_code != ErrorCode.NONE
            answer.partition_responses.append(result)
        self.response.responses.append(answer)

    def partition(
        self,
        part: PartitionProduceData,
        partition: Partition | None,
        absent: ErrorCode,
    ) -> PartitionProduceResponse:
        result = PartitionProduceResponse(index=part.index, base_offset=-1)
        if partition is None:
            self._refuse(result, Refusal(absent), None)
            return result
        records = part.records or b""
        # Records come in several pieces only in a request that is to be sent.
        assert isinstance(records, bytes | bytearray | memoryview)
        try:
            self.connection.check(partition.topic, partition.index)
            partition.check_leader(self.node.node_id)
            now_ms = self.node.clock.wall_ms()
            place = partition.produce(records, self.acks, now_ms)
        except Refusal as refusal:
            self._refuse(result, refusal, partition)
        else:
            result.base_offset = place.base_offset
            result.log_append_time_ms = place.log_append_time
            result.log_start_offset = partition.start_offset
        return result

    def _refuse(
        self,
        result: PartitionProduceResponse,
        refusal: Refusal,
        partition: Partition | None,
    ) -> None:
        result.error_code = refusal.code
        # As Kafka, which has a message only if it names the records at fault.
        result.error_message = refusal.message if refusal.bad_records else None
        result.record_errors = [
            BatchIndexAndErrorMessage(
                batch_index=index, batch_index_error_message=refusal.message
            )
            for index in refusal.bad_records
        ]
        knows_start = refusal.code not in _WITHOUT_START
        if partition and knows_start and not isinstance(refusal, Malformed):
            result.log_start_offset = partition.start_offset
        if partition is not None and refusal.code in _HINTED:
            self._hint(result, partition)

    def _hint(self, result: PartitionProduceResponse, partition: Partition) -> None:
        """Add the current leader to an error (KIP-951)."""
        is_known = partition.is_leader_known and partition.leader != NO_LEADER
        if self.version < _FIRST_WITH_HINTS or not is_known:
            return
        result.current_leader = LeaderIdAndEpoch(
            leader_id=partition.leader, leader_epoch=partition.leader_epoch
        )
        endpoints = self.response.node_endpoints
        if all(point.node_id != partition.leader for point in endpoints):
            peer = self.node.broker.nodes[partition.leader]
            endpoints.append(
                NodeEndpoint(
                    node_id=peer.node_id, host=peer.host, port=peer.port, rack=peer.rack
                )
            )


async def handle(
    node: Node,
    header: RequestHeader,
    request: ProduceRequest,
    connection: ServerConnection,
) -> ProduceResponse | None:
    """Append batches. With acks=0 there is no answer; errors close the connection."""
    call = _Call(node, header.request_api_version, request.acks, connection)
    for data in request.topic_data:
        call.topic(data)
    if request.acks == 0:
        if call.failed:
            connection.abort()
        return None
    return call.response
