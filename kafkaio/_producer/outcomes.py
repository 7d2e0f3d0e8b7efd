"""Outcomes: judges each batch of a produce request by the answer.

Each batch of a request is completed once (`kafkaio._machines.accumulator.completion`):
it is acknowledged, sent again, split, sent again without its bad records, or failed.
The table of reactions (`kafkaio._machines.reactions`) decides by the error. An answer
after which the batch may have been appended is distinguished from one after which it
was not, because the sequence numbers depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from kafkaio._config import ProducerConfig
from kafkaio._machines.accumulator import Completion, NodeState, ProduceBatch
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.metadata import EndpointPort
from kafkaio._machines.reactions import (
    Harm,
    Reaction,
    ReactionStep,
    known_code,
    reaction,
)
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.observer import AcknowledgedBatch, Observer, observes
from kafkaio.errors import (
    BrokerError,
    ConnectionLost,
    KafkaError,
    ProtocolError,
    RecordTooLarge,
    TransactionAborted,
)
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
)
from kafkaio.types import TopicPartition

#: Errors after which the batch may have been appended nevertheless.
_MAY_BE_WRITTEN = frozenset(
    (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)
#: Errors whose answer names the current leader (KIP-951).
_LEADS_ELSEWHERE = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
    )
)


#: Connections that break in a row under the same batch before smaller requests are
#: tried. Restarts of brokers and failures of networks seldom reach it.
_BREAKS = 3
#: Bytes of a batch that is small enough for any service.
_SMALL = 16_384
#: Seconds until a batch is sent again to a leader that waits for the markers of the
#: transaction before; the leader has waited 100 ms already.
_MARKERS = 0.02


class LeadersPort(Protocol):
    """The part of the metadata that answers to produce requests change."""

    def apply_leader_hint(
        self,
        tp: TopicPartition,
        leader_id: int,
        leader_epoch: int,
        endpoints: Iterable[EndpointPort] = (),
    ) -> bool:
        """Take over the leader that an answer names; whether it is a newer one."""
        ...

    def request_refresh(self, *topics: str) -> None:
        """Ask for fresh metadata."""


class FailuresPort(Protocol):
    """The part of the transaction manager that failed records concern."""

    def failed(self, error: Exception, *, harm: Harm) -> None:
        """Note that a record of the open transaction has failed."""


class Outcomes:
    """Completes batches by the answers to their requests.

    Args:
        leaders: notes leaders that moved.
        observer: observes retries and failures.
        config: retries and back-off.
        completion: settles batches or puts them back.
        transaction: is notified of failed records; None without transactions.
    """

    def __init__(
        self,
        leaders: LeadersPort,
        observer: Observer,
        config: ProducerConfig,
        completion: Completion,
        transaction: FailuresPort | None = None,
    ) -> None:
        self._transaction = transaction
        self._leaders = leaders
        self._observer = observer
        self._completion = completion
        self._retries = config.retries
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._is_idempotent = bool(config.enable_idempotence)

    def answered(
        self,
        node_id: int,
        batches: Sequence[ProduceBatch],
        names: Mapping[int, str],
        response: ProduceResponse,
    ) -> None:
        """Complete the batches of one request by the broker's answer.

        Args:
            node_id: the broker.
            batches: the batches of the request.
            names: the topics that were sent by id, by the number of the id.
            response: the answer.
        """
        answers: dict[tuple[str, int], PartitionProduceResponse] = {}
        for topic in response.responses:
            name = topic.name or names.get(topic.topic_id.int, "")
            for answer in topic.partition_responses:
                answers[name, answer.index] = answer
        is_observed = observes(self._observer, "batch_acknowledged")
        acknowledged = self._completion.acknowledged
        for batch in batches:
            found = answers.get(batch.partition)
            if found is None:
                self._no_answer(batch)
            elif found.error_code:
                self._judge(node_id, batch, found, response)
            elif is_observed:
                self.acknowledged(node_id, batch, found)
            else:  # saves a call for each batch
                acknowledged(batch, found.base_offset, found.log_append_time_ms)

    def unanswered(
        self,
        batches: Sequence[ProduceBatch],
        error: Exception,
        node: NodeState | None = None,
    ) -> None:
        """Complete the batches of a request that was lost, timed out or not sent.

        Args:
            batches: the batches of the request.
            error: the reason.
            node: the broker, if the request was sent.
        """
        is_retriable = isinstance(error, KafkaError) and error.retriable
        if node is not None and isinstance(error, ConnectionLost):
            error = self._broken(batches, error, node)
        for batch in batches:
            if self._is_to_divide(batch, batches):
                self._divide(batch, error)
            elif is_retriable:
                self._again(batch, error, may_be_written=True)
                self._leaders.request_refresh(batch.partition.topic)
            else:
                self._fail(batch, error)

    def _broken(
        self, batches: Sequence[ProduceBatch], error: ConnectionLost, node: NodeState
    ) -> ConnectionLost:
        """Note that the connection broke under a request; add its size to the error.

        Services with a limit of their own close the connection on a larger request. So
        after some breaks, later requests have fewer batches, and then smaller ones.
        """
        size = sum(batch.wire_size for batch in batches)
        for batch in batches:
            batch.breaks += 1
        node.broke(size, now())
        if size > _SMALL and max(batch.breaks for batch in batches) >= _BREAKS:
            node.limit_to(size // 2, now())
        sized = ConnectionLost(f"{error}; the request had {size} bytes of records")
        sized.__cause__ = error
        return sized

    def _is_to_divide(
        self, batch: ProduceBatch, batches: Sequence[ProduceBatch]
    ) -> bool:
        return (
            len(batches) == 1
            and batch.breaks >= _BREAKS
            and batch.attempts <= self._retries
            and batch.count > 1
            and batch.wire_size > _SMALL
        )

    def _divide(self, batch: ProduceBatch, error: Exception) -> None:
        """Split a batch that breaks connections although it is alone in its request."""
        batch.retry_at = self._retry_at(batch, error)
        batch.breaks -= 1  # for the parts: the next break leads to smaller ones
        self._observer.batch_split(batch.partition, batch.count)
        self._completion.split(batch, error, may_be_written=self._is_idempotent)

    def unacknowledged(self, node_id: int, batches: Sequence[ProduceBatch]) -> None:
        """Complete the batches of a request that has no answer (``acks=0``)."""
        is_observed = observes(self._observer, "batch_acknowledged")
        for batch in batches:
            self._completion.acknowledged(batch, -1, -1)
            if is_observed:
                self._report(node_id, batch, 0.0)

    def acknowledged(
        self, node_id: int, batch: ProduceBatch, answer: PartitionProduceResponse
    ) -> None:
        """Complete a batch that the broker has written."""
        self._completion.acknowledged(
            batch, answer.base_offset, answer.log_append_time_ms
        )
        # An expired batch was reported as failed, though the broker has it now.
        if not batch.is_expired and observes(self._observer, "batch_acknowledged"):
            self._report(node_id, batch, now() - batch.sent_at)

    def _report(self, node_id: int, batch: ProduceBatch, seconds: float) -> None:
        assert batch.first_sent_at is not None
        acknowledged = AcknowledgedBatch(
            partition=batch.partition,
            node_id=node_id,
            records=batch.count,
            size=batch.builder.size_bytes,
            wire_size=batch.wire_size,
            queue_seconds=batch.first_sent_at - batch.created,
            seconds=seconds,
            attempts=batch.attempts,
        )
        self._observer.batch_acknowledged(acknowledged)

    def _no_answer(self, batch: ProduceBatch) -> None:
        topic, partition = batch.partition
        error = ProtocolError(f"the broker's answer leaves {topic}-{partition} out")
        self._again(batch, error, may_be_written=True)

    def _judge(
        self,
        node_id: int,
        batch: ProduceBatch,
        answer: PartitionProduceResponse,
        response: ProduceResponse,
    ) -> None:
        batch.breaks = 0
        code = known_code(answer.error_code)
        what = reaction(apis.PRODUCE, code)
        if what.step is ReactionStep.SUCCESS:
            self.acknowledged(node_id, batch, answer)
            return
        topic, partition = batch.partition
        detail = f": {answer.error_message}" if answer.error_message else ""
        error = broker_error(
            answer.error_code,
            f"{topic}-{partition}{detail}",
            api=apis.PRODUCE,
            topic=topic,
        )
        if code in _ABORTED_BY and self._transaction is not None:
            self._fail(batch, _ABORTED_BY[code](error))
            return
        if code in _LEADS_ELSEWHERE and answer.current_leader.leader_id >= 0:
            self._leaders.apply_leader_hint(
                batch.partition,
                answer.current_leader.leader_id,
                answer.current_leader.leader_epoch,
                response.node_endpoints,
            )
        if what.refresh_metadata:
            self._leaders.request_refresh(topic)
        self._refused(batch, answer, what, error)

    def _refused(
        self,
        batch: ProduceBatch,
        answer: PartitionProduceResponse,
        what: Reaction,
        error: BrokerError,
    ) -> None:
        if what.step is ReactionStep.SPLIT_BATCH:
            self._too_large(batch, error)
        elif what.step is ReactionStep.CHECK_SEQUENCE and self._is_idempotent:
            self._check_sequence(batch, answer, error)
        elif what.retry:
            code = known_code(answer.error_code)
            may_be_written = code in _MAY_BE_WRITTEN
            is_busy = code is ErrorCode.CONCURRENT_TRANSACTIONS
            self._again(batch, error, may_be_written=may_be_written, is_busy=is_busy)
        elif answer.record_errors:
            self._fail_listed(batch, answer, error)
        else:
            self._fail(batch, error, is_fatal=what.step is ReactionStep.FATAL)

    def _again(
        self,
        batch: ProduceBatch,
        error: Exception,
        *,
        may_be_written: bool,
        is_busy: bool = False,
    ) -> None:
        if batch.attempts > self._retries:
            self._fail(batch, error)
        elif may_be_written:
            self._completion.lost(batch, error, self._retry_at(batch, error))
        else:
            retry_at = self._retry_at(batch, error, is_busy=is_busy)
            self._completion.refused(batch, error, retry_at, is_busy=is_busy)

    def _retry_at(
        self, batch: ProduceBatch, error: Exception, *, is_busy: bool = False
    ) -> float:
        delay = self._backoff.delay(batch.attempts - 1, roll())
        if is_busy:
            delay = _MARKERS
        topic, partition = batch.partition
        operation = f"produce to {topic}-{partition}"
        self._observer.retrying(operation, batch.attempts, delay, error)
        self._observer.batch_retried(
            batch.partition, batch.count, batch.attempts, error
        )
        return now() + delay

    def _check_sequence(
        self, batch: ProduceBatch, answer: PartitionProduceResponse, error: BrokerError
    ) -> None:
        is_out_of_order = (
            known_code(answer.error_code) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        )
        if is_out_of_order and batch.is_ambiguous:
            # A new number could write its records twice: the whole batch, of which this
            # is a part, may be in the log.
            self._fail(batch, _ambiguous(error))
            return
        # Records never cause a gap, so `retries` is not the limit here; the delivery
        # timeout is.
        retry_at = self._retry_at(batch, error)
        if is_out_of_order:
            self._completion.out_of_order(batch, error, retry_at)
        elif answer.log_start_offset == -1:
            self._completion.refused(batch, error, retry_at)
        else:
            self._completion.forgotten(batch, error, retry_at)

    def _too_large(self, batch: ProduceBatch, error: BrokerError) -> None:
        if batch.count > 1:
            self._observer.batch_split(batch.partition, batch.count)
            self._completion.split(batch, error)
            return
        too_large = RecordTooLarge(
            f"{error}: the record of {batch.builder.size_bytes} bytes is larger than "
            "the topic's max.message.bytes or the broker's limit"
        )
        too_large.__cause__ = error
        self._fail(batch, too_large)

    def _fail_listed(
        self, batch: ProduceBatch, answer: PartitionProduceResponse, error: BrokerError
    ) -> None:
        # The broker refused the whole batch because of the records that it lists.
        bad: dict[int, Exception] = {}
        for entry in answer.record_errors:
            detail = entry.batch_index_error_message
            if 0 <= entry.batch_index < batch.count:
                bad[entry.batch_index] = broker_error(
                    answer.error_code, detail or str(answer.error_message or error)
                )
        if not bad:
            self._fail(batch, error)
            return
        self._observer.record_failed(batch.partition, error, len(bad))
        self._completion.fail_records(batch, bad, error)
        if self._transaction is not None:
            self._transaction.failed(error, harm=Harm.BUMP)

    def _fail(
        self, batch: ProduceBatch, error: Exception, *, is_fatal: bool = False
    ) -> None:
        if not batch.is_expired:
            self._observer.record_failed(batch.partition, error, batch.count)
        self._completion.failed(batch, error)
        if self._transaction is not None:
            # A batch that was sent and failed leaves a gap in the sequence.
            harm = Harm.FATAL if is_fatal else Harm.BUMP
            self._transaction.failed(error, harm=harm)


def _ambiguous(error: KafkaError) -> KafkaError:
    found = KafkaError(
        f"{error}: it is not known whether the record was written: connections broke "
        "while its batch was on them, and it was sent again in a smaller one"
    )
    found.__cause__ = error
    return found


def in_doubt(error: KafkaError) -> TransactionAborted:
    """Return the error of a transaction whose epoch a broker has refused.

    Leaders and group coordinators answer the same after a timeout and for another
    producer with the id. The end of the transaction shows which it was.
    """
    aborted = TransactionAborted(
        f"{error}: the coordinator has aborted the transaction, because its time ran "
        "out, or for another producer with this transactional id",
        reason="timed out or fenced",
    )
    aborted.__cause__ = error
    return aborted


def forgotten(error: KafkaError) -> TransactionAborted:
    """Return the error of a transaction whose producer id a coordinator has forgotten.

    The next transaction has another id.
    """
    aborted = TransactionAborted(
        f"{error}: the coordinator does not know the producer's id any more, because "
        "it was idle for longer than transactional.id.expiration.ms, or because "
        "another producer with this transactional id was started",
        reason="forgotten by the coordinator",
    )
    aborted.__cause__ = error
    return aborted


#: Codes of a leader whose transaction coordinator refuses the producer. The body can
#: run again, unless the end of the transaction shows that the producer is fenced.
_ABORTED_BY: Mapping[ErrorCode, Callable[[KafkaError], TransactionAborted]] = {
    ErrorCode.INVALID_PRODUCER_EPOCH: in_doubt,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: forgotten,
}
