"""What is said of the requests of a transactional producer."""

from __future__ import annotations

import struct
from itertools import count

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._headers import encode_request, encode_response
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from kafkaio.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkaio.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkaio.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafkaio.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.sim.network import Wire
from tests.sim.requests import Requests

E = ErrorCode


class _OpenWire(Wire):
    is_open = True


class Producer:
    """Writes requests of one client, and what their answers are."""

    def __init__(self) -> None:
        self.laws: list[str] = []
        self.refused: list[str] = []
        self.now = 0.0
        self._requests = Requests(
            lambda: self.now, lambda law, _: self.laws.append(law), self.refused.append
        )
        self._wire = _OpenWire("me", 9092)
        self._numbers = count()

    def asks(self, request: Request[Response], version: int) -> int:
        number = next(self._numbers)
        frame = encode_request(request, version, number, "me")[4:]
        self._requests.wrote(self._wire, bytes(frame))
        return number

    def is_told(self, number: int, response: Response, version: int) -> None:
        frame = encode_response(response, version, number)[4:]
        self._requests.received(self._wire, bytes(frame))

    def ends(
        self, code: int = 0, *, epoch: int = 0, commit: bool = True, version: int = 5
    ) -> None:
        request = EndTxnRequest(
            transactional_id="t", producer_id=1, producer_epoch=epoch, committed=commit
        )
        answer = EndTxnResponse(error_code=code)
        self.is_told(self.asks(request, version), answer, version)

    def adds(self, partition: int, code: int = 0, *, epoch: int = 0) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=1,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name="x", partitions=[partition])
            ],
        )
        result = AddPartitionsToTxnPartitionResult(
            partition_index=partition, partition_error_code=code
        )
        topic = AddPartitionsToTxnTopicResult(name="x", results_by_partition=[result])
        answer = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[topic])
        self.is_told(self.asks(request, 3), answer, 3)

    def writes(self, epoch: int, *, is_answered: bool = True) -> None:
        # What is looked at of a batch: producer id, epoch and first sequence.
        records = bytes(43) + struct.pack(">qhi", 1, epoch, 0) + bytes(4)
        request = ProduceRequest(
            transactional_id="t",
            topic_data=[
                TopicProduceData(
                    name="x",
                    partition_data=[PartitionProduceData(index=0, records=records)],
                )
            ],
        )
        number = self.asks(request, 11)
        if is_answered:
            self.is_told(number, ProduceResponse(responses=[]), 11)

    def looks(self) -> None:
        self._requests.look()

    def commits_offsets(self, *, member: str = "m") -> None:
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id="g",
            producer_id=1,
            producer_epoch=0,
            generation_id_or_member_epoch=1 if member else -1,
            member_id=member,
        )
        self.asks(request, 5)

    def bumps(self) -> None:
        request = InitProducerIdRequest(
            transactional_id="t", producer_id=1, producer_epoch=0
        )
        answer = InitProducerIdResponse(producer_id=1, producer_epoch=1)
        self.is_told(self.asks(request, 5), answer, 5)


def test_one_verdict_for_an_epoch() -> None:
    producer = Producer()
    producer.ends(E.CONCURRENT_TRANSACTIONS)
    producer.ends()
    producer.ends(epoch=1, commit=False)
    assert not producer.laws
    producer.ends(epoch=2)
    producer.ends(epoch=2, commit=False)
    assert producer.laws == ["two verdicts"]


def test_an_abort_may_ask_what_a_refused_commit_meant() -> None:
    producer = Producer()
    producer.ends(E.INVALID_TXN_STATE)
    producer.ends(commit=False)
    assert not producer.laws


def test_offsets_are_answered_before_a_commit_and_committed_by_a_member() -> None:
    producer = Producer()
    producer.commits_offsets()
    producer.ends(commit=False)
    assert not producer.laws
    producer = Producer()
    producer.commits_offsets()
    producer.ends()
    assert producer.laws == ["end with offsets on the wire"]
    producer = Producer()
    producer.commits_offsets(member="")
    assert producer.laws == ["offsets without a member"]


def test_what_was_refused_is_not_committed() -> None:
    producer = Producer()
    producer.adds(0)
    producer.adds(1, E.TRANSACTION_ABORTABLE)
    producer.ends(commit=False)
    producer.adds(0)
    producer.ends(epoch=1)
    assert not producer.laws
    producer.adds(0)
    producer.adds(1, E.TRANSACTION_ABORTABLE)
    producer.ends(epoch=2)
    assert producer.laws == ["committed after a refusal"]


def test_a_transaction_of_which_nothing_was_added_may_end_without_a_request() -> None:
    producer = Producer()
    producer.adds(0, E.TRANSACTION_ABORTABLE)
    assert producer.refused == ["me"]
    producer.adds(0)
    producer.ends()
    assert not producer.laws


def test_no_bump_after_a_fence_but_after_a_probe() -> None:
    producer = Producer()
    producer.ends()
    producer.ends(E.PRODUCER_FENCED)  # repeated: the next transaction has begun
    producer.bumps()
    assert not producer.laws
    producer.ends(E.PRODUCER_FENCED, epoch=1)
    producer.bumps()
    assert producer.laws == ["bump after a fence"]


def test_no_bump_in_a_transaction() -> None:
    producer = Producer()
    producer.adds(0)
    producer.bumps()
    assert producer.laws == ["bump in a transaction"]


def test_the_logs_are_told_the_next_epoch_after_a_lost_write() -> None:
    for is_sealed in (True, False):
        producer = Producer()
        producer.adds(0)
        producer.writes(0, is_answered=False)
        producer.laws.clear()
        producer.ends(commit=False, version=4)
        # It is on the wire of the fake, which has no broken connections.
        assert producer.laws == ["end with a batch on the wire"]
        producer.laws.clear()
        producer.bumps()
        producer.adds(0, epoch=1)
        if is_sealed:
            producer.ends(epoch=1, commit=False, version=4)
            producer.adds(0, epoch=1)
        producer.writes(1)
        assert producer.laws == ([] if is_sealed else ["not sealed"])


def test_the_logs_are_told_the_next_epoch_after_a_lost_commit_of_offsets() -> None:
    producer = Producer()
    producer.commits_offsets()
    producer.ends(commit=False, version=4)
    producer.bumps()
    producer.adds(0, epoch=1)
    producer.writes(1)
    assert producer.laws == ["not sealed"]


def test_what_is_answered_needs_no_seal() -> None:
    producer = Producer()
    producer.adds(0)
    producer.writes(0)
    producer.ends(commit=False, version=4)
    producer.bumps()
    producer.adds(0, epoch=1)
    producer.writes(1)
    assert not producer.laws


def test_a_wait_for_another_transaction_is_bounded_and_ends_with_its_own() -> None:
    producer = Producer()
    producer.adds(0, E.CONCURRENT_TRANSACTIONS)
    producer.now = 1000.0  # nothing is asked meanwhile
    producer.looks()
    assert not producer.laws
    producer.ends(version=4)
    producer.adds(0, E.CONCURRENT_TRANSACTIONS)
    producer.looks()
    assert not producer.laws
    producer.now = 1100.0
    producer.adds(0, E.CONCURRENT_TRANSACTIONS)
    producer.looks()
    assert producer.laws == ["busy for too long"]
