"""Produce, versions 3 to 13 (KIP-98, KIP-467, KIP-951, KIP-516 for ids).

Advertised as 0 to 13, as Kafka does because old librdkafka versions need it. Since
version 12 the leader adds a transaction's partitions at its coordinator (KIP-890).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Buffer
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
from kafkaio.testing._broker.batches import batch_of, only_batch
from kafkaio.testing._broker.cluster import Topic
from kafkaio.testing._broker.partition import NO_LEADER, EmbeddedPartition
from kafkaio.testing._broker.producers import ProducerBatch
from kafkaio.testing._broker.refusal import Malformed, Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType

#: KIP-516.
_FIRST_WITH_IDS: Final = 13
#: KIP-951.
_FIRST_WITH_HINTS: Final = 10
#: Clients from here on know TRANSACTION_ABORTABLE (KIP-890).
_FIRST_TO_ABORT: Final = 11
#: From here on the leader adds the partition itself (KIP-890).
_FIRST_WITH_BUMP: Final = 12
# The errors with which Kafka does not return the log start offset.
_WITHOUT_START: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE,
}
_HINTED: Final = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH}


class _Produce:
    """One request while it is served."""

    def __init__(self, context: RequestContext[ProduceRequest]) -> None:
        self.node = context.node
        self.version = context.version
        self.acks = context.request.acks
        self.connection = context.connection
        self.response = ProduceResponse()
        self.failed = False
        self.rights = context.rights
        self.denied = ErrorCode.NONE
        self.refused: Mapping[tuple[str, int], Refusal] = {}

    async def admit(self, request: ProduceRequest) -> None:
        """Have the coordinator asked about the transactional batches of a request."""
        batches = [
            (partition, batch)
            for data in request.topic_data
            for part in data.partition_data
            if (partition := self._find(data, part)) is not None
            and (batch := self._transactional(partition, part)) is not None
        ]
        if not batches:
            return
        name = request.transactional_id
        # Before any partition: the whole request is refused, as in Kafka.
        if name is None or not self.rights.may(
            Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name
        ):
            self.denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            return
        # Imported on first use, as the handlers are.
        from kafkaio.testing._transactions.verification import Speaker, admit

        speaker = Speaker(
            name,
            self.version >= _FIRST_WITH_BUMP,
            self.version >= _FIRST_TO_ABORT,
        )
        self.refused = await admit(self.node.cluster, speaker, batches)

    def _transactional(
        self, partition: EmbeddedPartition, part: PartitionProduceData
    ) -> ProducerBatch | None:
        """The batch for a partition, if it is transactional and for this leader."""
        try:
            header = only_batch(_records_of(part))
            if not header.is_transactional:
                return None
            self.connection.check(partition.topic, partition.index)
            partition.check_leader(self.node.node_id)
        except Refusal:
            # It is refused for this when it is appended.
            return None
        return batch_of(header)

    def _topic(self, data: TopicProduceData) -> Topic | None:
        cluster = self.node.cluster
        if self.version >= _FIRST_WITH_IDS:
            return cluster.known_by_id(data.topic_id)
        return cluster.known(data.name)

    def _find(
        self, data: TopicProduceData, part: PartitionProduceData
    ) -> EmbeddedPartition | None:
        topic = self._topic(data)
        if topic is None or not 0 <= part.index < len(topic.partitions):
            return None
        return topic.partitions[part.index]

    def topic(self, data: TopicProduceData) -> None:
        absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self.version >= _FIRST_WITH_IDS and self._topic(data) is None:
            absent = ErrorCode.UNKNOWN_TOPIC_ID
        answer = TopicProduceResponse(name=data.name, topic_id=data.topic_id)
        denied = self._denied(data)
        for part in data.partition_data:
            if denied:
                result = PartitionProduceResponse(
                    index=part.index, base_offset=-1, error_code=denied
                )
            else:
                result = self.partition(part, self._find(data, part), absent)
            self.failed = self.failed or result.error_code != ErrorCode.NONE
            answer.partition_responses.append(result)
        self.response.responses.append(answer)

    def _denied(self, data: TopicProduceData) -> ErrorCode:
        """The error for a topic that the client may not write to; NONE if it may."""
        if self.denied:
            return self.denied
        name: str | None = data.name
        if self.version >= _FIRST_WITH_IDS:
            topic = self._topic(data)
            name = None if topic is None else topic.name
        if name is None:
            return ErrorCode.NONE
        return self.rights.denied(Operation.WRITE, ResourceType.TOPIC, name)

    def partition(
        self,
        part: PartitionProduceData,
        partition: EmbeddedPartition | None,
        absent: ErrorCode,
    ) -> PartitionProduceResponse:
        result = PartitionProduceResponse(index=part.index, base_offset=-1)
        if partition is None:
            self._refuse(result, Refusal(absent), None)
            return result
        records = _records_of(part)
        place = (partition.topic, partition.index)
        try:
            self.connection.check(*place)
            partition.check_leader(self.node.node_id)
            # After the leader was checked again: it may have moved while the
            # coordinator was asked.
            if self.refused and (refusal := self.refused.get(place)) is not None:
                raise refusal
            now_ms = self.node.clock.wall_ms()
            written = partition.produce(records, self.acks, now_ms)
        except Refusal as refusal:
            self._refuse(result, refusal, partition)
        else:
            result.base_offset = written.base_offset
            result.log_append_time_ms = written.log_append_time
            result.log_start_offset = partition.start_offset
        return result

    def _refuse(
        self,
        result: PartitionProduceResponse,
        refusal: Refusal,
        partition: EmbeddedPartition | None,
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

    def _hint(
        self, result: PartitionProduceResponse, partition: EmbeddedPartition
    ) -> None:
        """Add the current leader to an error (KIP-951)."""
        is_known = partition.is_leader_known and partition.leader != NO_LEADER
        if self.version < _FIRST_WITH_HINTS or not is_known:
            return
        result.current_leader = LeaderIdAndEpoch(
            leader_id=partition.leader, leader_epoch=partition.leader_epoch
        )
        endpoints = self.response.node_endpoints
        # Each leader is named once for all its partitions.
        if all(point.node_id != partition.leader for point in endpoints):
            peer = self.node.broker.nodes[partition.leader]
            host, port = peer.address(self.connection)
            endpoints.append(
                NodeEndpoint(node_id=peer.node_id, host=host, port=port, rack=peer.rack)
            )


def _records_of(part: PartitionProduceData) -> Buffer:
    records = part.records or b""
    # Records come in several pieces only in a request that is to be sent.
    assert isinstance(records, bytes | bytearray | memoryview)
    return records


@handler(ProduceRequest, by_partition=True)
async def handle(context: RequestContext[ProduceRequest]) -> ProduceResponse | None:
    """Append batches. With acks=0 it never answers; errors close the connection."""
    request = context.request
    call = _Produce(context)
    await call.admit(request)
    for data in request.topic_data:
        call.topic(data)
    if request.acks == 0:
        # With acks=0 a closed connection is the only sign of an error for the client.
        if call.failed:
            context.connection.abort()
        return None
    return call.response
