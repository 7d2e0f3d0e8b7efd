"""Logs for the scripted brokers: Produce as a broker serves it, sequences included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kafkaio._records.batch import RecordBatch, read_batches
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.init_producer_id import InitProducerIdResponse
from kafkaio.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tests.fakes.broker import FakeCluster, FakeNode

REMEMBERED = 5


@dataclass
class Known:
    """What a partition knows of one producer."""

    epoch: int
    # (first, last, base offset) of the last batches.
    batches: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass
class PartitionLog:
    records: list[Any] = field(default_factory=list)
    batches: list[RecordBatch] = field(default_factory=list)
    producers: dict[int, Known] = field(default_factory=dict)

    @property
    def values(self) -> list[bytes]:
        return [record.value for record in self.records]

    def append(self, batch: RecordBatch, topic: str, partition: int) -> tuple[int, int]:
        """The error code and base offset of an append."""
        if batch.producer_id >= 0:
            code, base = self._check(batch)
            if code:
                return code, base
        base = len(self.records)
        records = batch.decode(topic, partition)
        assert [r.offset for r in records] == list(range(len(records)))
        self.records += records
        self.batches.append(batch)
        if batch.producer_id >= 0:
            last = (batch.base_sequence + batch.count - 1) % 2**31
            known = self.producers[batch.producer_id]
            known.batches.append((batch.base_sequence, last, base))
            del known.batches[:-REMEMBERED]
        return 0, base

    def _check(self, batch: RecordBatch) -> tuple[int, int]:
        known = self.producers.get(batch.producer_id)
        if known is None:
            # As brokers do: without any state, any first sequence is accepted.
            self.producers[batch.producer_id] = Known(batch.producer_epoch)
            return 0, -1
        if batch.producer_epoch < known.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        if batch.producer_epoch > known.epoch:
            if batch.base_sequence != 0:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            known.epoch = batch.producer_epoch
            known.batches.clear()
            return 0, -1
        last = (batch.base_sequence + batch.count - 1) % 2**31
        for first_known, last_known, base in known.batches:
            if (first_known, last_known) == (batch.base_sequence, last):
                return ErrorCode.DUPLICATE_SEQUENCE_NUMBER, base
        if known.batches:
            expected = (known.batches[-1][1] + 1) % 2**31
            if batch.base_sequence != expected:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        return 0, -1


class Logs:
    """All logs of a fake cluster, and the knobs of their brokers."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.logs: dict[tuple[str, int], PartitionLog] = {}
        self.next_producer_id = 1000
        self.max_message_bytes = 1 << 20
        self.poison = b"POISON"
        #: (topic, partition, batch) -> error code instead of an append, or 0.
        self.refuse: Callable[[str, int, RecordBatch], int] = lambda *_: 0
        cluster.on(ApiKey.PRODUCE, self.produce)
        cluster.on(ApiKey.INIT_PRODUCER_ID, self.init_producer_id)

    def log(self, topic: str, partition: int = 0) -> PartitionLog:
        return self.logs.setdefault((topic, partition), PartitionLog())

    def values(self, topic: str, partition: int = 0) -> list[bytes]:
        return self.log(topic, partition).values

    def init_producer_id(self, *_: object) -> InitProducerIdResponse:
        self.next_producer_id += 1
        return InitProducerIdResponse(
            producer_id=self.next_producer_id, producer_epoch=0
        )

    def produce(
        self, node: FakeNode, header: Any, request: ProduceRequest
    ) -> ProduceResponse:
        names = {t.topic_id: name for name, t in self.cluster.topics.items()}
        response = ProduceResponse()
        for topic in request.topic_data:
            name = topic.name or names[topic.topic_id]
            answer = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
            for data in topic.partition_data:
                answer.partition_responses.append(
                    self.append(node, name, data.index, data.records)
                )
            response.responses.append(answer)
        return response

    def append(
        self, node: FakeNode, topic: str, partition: int, data: Any
    ) -> PartitionProduceResponse:
        answer = PartitionProduceResponse(index=partition, base_offset=-1)
        if self.cluster.leader(topic, partition) != node.node_id:
            answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            return answer
        batches = list(read_batches(bytes(data)))
        assert len(batches) == 1
        batch = batches[0]
        assert isinstance(batch, RecordBatch)
        code = self.refuse(topic, partition, batch)
        if code:
            answer.error_code = code
            return answer
        if len(data) > self.max_message_bytes:
            answer.error_code = ErrorCode.MESSAGE_TOO_LARGE
            return answer
        bad = [
            index
            for index, record in enumerate(batch.decode(topic, partition))
            if record.value == self.poison
        ]
        if bad:
            answer.error_code = ErrorCode.INVALID_RECORD
            answer.error_message = "poisoned"
            answer.record_errors = [
                BatchIndexAndErrorMessage(
                    batch_index=index, batch_index_error_message="poison"
                )
                for index in bad
            ]
            return answer
        code, base = self.log(topic, partition).append(batch, topic, partition)
        answer.error_code = code
        answer.base_offset = base
        return answer
