"""Processes the answers to fetches, partition by partition.

Data goes to the buffers; an error has the reaction that `kafkaio._machines.reactions`
lists. Data for a position that was changed meanwhile (by a seek, or a new assignment)
is dropped. Checksums are not computed here but when a batch is read, so that its bytes
pass through the processor's cache once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kafkaio._config import ConsumerConfig
from kafkaio._consumer.batch import Frame
from kafkaio._consumer.fetch.targets import FetchTargets, RecordsPort
from kafkaio._consumer.reading.buffers import Failure, Fetched
from kafkaio._dataclass import dataclass
from kafkaio._fetching.parts import (
    batches_of,
    bytes_needed,
    found_leader,
    isolation_of,
    too_large,
)
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.positions import FetchPoint
from kafkaio._machines.reactions import Reaction, ReactionStep, reaction
from kafkaio._machines.read_committed import ReadUncommitted
from kafkaio._named_tuple import NamedTuple
from kafkaio._records.batch import Decompressor
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.observer import FetchedPart, Observer, observes
from kafkaio.errors import AuthenticationError, KafkaError
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol.messages.fetch import FetchResponse, PartitionData
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ViewPort

#: Seconds of work on an answer before the event loop gets a turn.
_SLICE: Final = 0.001


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The bounds of a partition's log, from the last fetch.

    Attributes:
        log_start: offset of the first record kept, -1 if unknown.
        high_watermark: offset after the last record that consumers may see.
        last_stable: offset before which every transaction has ended.
    """

    log_start: int
    high_watermark: int
    last_stable: int


class SentFetch(NamedTuple):
    """A fetch that was sent.

    Attributes:
        node_id: the broker.
        at: when, in seconds.
    """

    node_id: int
    at: float


class FetchAnswers:
    """Processes the answers to fetches.

    Args:
        cluster: is told about leaders that moved.
        config: the consumer's options.
        records: takes the fetched records.
        targets: is told about batches that did not fit, and followers to read from.
        on_moved: called when a partition is to be fetched from another broker.
        observer: is notified of answers.

    Attributes:
        ends: the bounds of each partition's log in its last answer.
        stale: the number of partitions in answers whose data was dropped, because the
            position had changed.
    """

    def __init__(
        self,
        cluster: ViewPort,
        config: ConsumerConfig,
        records: RecordsPort,
        targets: FetchTargets,
        on_moved: Callable[[], None],
        observer: Observer,
    ) -> None:
        self.ends: dict[TopicPartition, LogEnds] = {}
        self.stale: int = 0
        self._cluster = cluster
        self._config = config
        self._records = records
        self._targets = targets
        self._on_moved = on_moved
        self._observer = observer
        # Whether an observer takes the number of records: counting them costs a pass
        # over the batches. The count is that of the partition processed last.
        self._is_observed = False
        self._records_of_last = 0
        # Whether `on_moved` is due. It takes as long as there are partitions, so it is
        # called once for an answer and not for each of its partitions.
        self._has_moved = False
        self._decompressor = Decompressor()
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._isolation_level = int(config.isolation_level == "read_committed")

    def forget(self, tp: TopicPartition) -> None:
        """Drop the state of a partition that is not assigned any more."""
        self.ends.pop(tp, None)

    def failed(self, topics: Iterable[str], error: KafkaError | None = None) -> None:
        """Note that a broker did not answer: others may lead its partitions by now.

        If it refused the credentials, the reader raises that error. The fetch loop goes
        on, because other brokers may accept them, and they may be corrected.
        """
        self._cluster.request_refresh(*sorted(set(topics)))
        if isinstance(error, AuthenticationError):
            self._records.fail(error)

    def node_failed(self, node_id: int, seconds: float) -> None:
        """Have leaders serve what a broker that has failed served as a follower."""
        if self._targets.brokers.failed(node_id, seconds):
            self._on_moved()

    async def judge(
        self,
        points: Mapping[TopicPartition, FetchPoint],
        found: Mapping[TopicPartition, PartitionData],
        response: FetchResponse,
        sent: SentFetch,
    ) -> None:
        """Process an answer, with turns of the event loop in between.

        A large answer takes milliseconds. A partition that is moved while the loop runs
        other tasks is noticed when its data is processed.

        Args:
            points: the requested partitions.
            found: the data by partition.
            response: the answer.
            sent: the fetch that was answered.
        """
        frame, parts = self._frame_of(found, sent), self._parts()
        began = now()
        end = began + _SLICE
        for tp, data in found.items():
            if now() >= end:
                await asyncio.sleep(0)
                end = now() + _SLICE
            self._judge(points[tp], data, frame, response)
            if parts is not None and data.records:
                parts[tp] = FetchedPart(self._records_of_last, len(data.records))
        if self._has_moved:
            self._report_moved()
        if parts is not None:
            self._observer.fetch_answered(sent.node_id, began - sent.at, parts)

    def judge_at_once(
        self,
        points: Mapping[TopicPartition, FetchPoint],
        found: Mapping[TopicPartition, PartitionData],
        response: FetchResponse,
        sent: SentFetch,
    ) -> None:
        """Process a small answer, as `judge` does, without turns of the loop."""
        frame, parts = self._frame_of(found, sent), self._parts()
        for tp, data in found.items():
            self._judge(points[tp], data, frame, response)
            if parts is not None and data.records:
                parts[tp] = FetchedPart(self._records_of_last, len(data.records))
        if self._has_moved:
            self._report_moved()
        if parts is not None:
            self._observer.fetch_answered(sent.node_id, now() - sent.at, parts)

    def _report_moved(self) -> None:
        self._has_moved = False
        self._on_moved()

    def _frame_of(
        self, found: Mapping[TopicPartition, PartitionData], sent: SentFetch
    ) -> Frame:
        frame = Frame(sum(len(data.records or b"") for data in found.values()))
        self._targets.answered(sent.node_id, frame.size)
        return frame

    def _parts(self) -> dict[TopicPartition, FetchedPart] | None:
        """Return the dictionary to report by partition; None without an observer."""
        self._is_observed = observes(self._observer, "fetch_answered")
        return {} if self._is_observed else None

    def _judge(
        self,
        point: FetchPoint,
        data: PartitionData,
        frame: Frame,
        response: FetchResponse,
    ) -> None:
        self._records_of_last = 0
        # First, because an error of an old position must not affect the new one.
        if not self._records.positions.accepts(point):
            self.stale += 1
        elif data.error_code:
            self._on_error(point, data, response)
        else:
            self._on_data(point, data, frame)

    # ---- data ----------------------------------------------------------------------

    def _on_data(self, point: FetchPoint, data: PartitionData, frame: Frame) -> None:
        tp = point.tp
        self.ends[tp] = LogEnds(
            data.log_start_offset, data.high_watermark, data.last_stable_offset
        )
        # A leader that names a follower sends no records itself (KIP-392).
        if data.records:
            self._on_records(point, data, frame)
        elif data.preferred_read_replica >= 0:
            until = now() + self._config.metadata_max_age_ms / 1000
            self._targets.brokers.prefer_replica(tp, data.preferred_read_replica, until)
            self._has_moved = True

    def _on_records(self, point: FetchPoint, data: PartitionData, frame: Frame) -> None:
        tp = point.tp
        batches, error = batches_of(
            data,
            tp,
            point.offset,
            self._decompressor,
            self._config.max_decompressed_batch_size,
        )
        if self._is_observed:
            self._records_of_last = sum(batch.count for batch in batches)
        failure: Failure | None = None
        if error is not None:
            failure = Failure(error, point)
        elif not batches:
            failure = self._grow(point, data)
        if batches and error is None:
            self._targets.shrink(tp)
        if batches or failure is not None:
            isolation = isolation_of(data, self._isolation_level)
            self._records.add(tp, Fetched(batches, isolation, frame, failure))

    def _grow(self, point: FetchPoint, data: PartitionData) -> Failure | None:
        # Only a part of the first batch came: ask for all of it, up to the limit.
        limit = self._config.max_response_size
        needed = bytes_needed(data, self._targets.max_bytes(point.tp))
        if needed < limit:
            self._targets.grow(point.tp, needed)
            return None
        return Failure(too_large(point.tp, point.offset, needed, limit, data), point)

    # ---- errors --------------------------------------------------------------------

    def _on_error(
        self, point: FetchPoint, data: PartitionData, response: FetchResponse
    ) -> None:
        tp = point.tp
        what = reaction(apis.FETCH, data.error_code)
        if self._targets.brokers.refused(tp):
            # Of a follower nothing is final: it may be behind. Its leader is asked now.
            if what.refresh_metadata:
                self._cluster.request_refresh(tp.topic)
            self._has_moved = True
        elif what.step is ReactionStep.RESET_POSITION:
            self._on_out_of_range(point)
        elif what.retry or what.step is ReactionStep.RESET_SESSION:
            self._retry(point, data, response, what)
        else:
            error = broker_error(
                data.error_code,
                f"fetching {tp.topic}-{tp.partition} failed",
                api=apis.FETCH,
                topic=tp.topic,
            )
            self._raise_later(point, error)

    def _raise_later(self, point: FetchPoint, error: KafkaError) -> None:
        self._delay(point)
        self._add_failure(Failure(error, point))

    def _on_out_of_range(self, point: FetchPoint) -> None:
        if self._records.positions[point.tp].position == point.offset:
            self._records.reset_position(point.tp)
            return
        # Data that is buffered before this offset is read first; then the policy.
        self._add_failure(Failure(None, point))

    def _add_failure(self, failure: Failure) -> None:
        fetched: Fetched = Fetched([], ReadUncommitted(), Frame(0), failure)
        self._records.add(failure.point.tp, fetched)

    def _retry(
        self,
        point: FetchPoint,
        data: PartitionData,
        response: FetchResponse,
        what: Reaction,
    ) -> None:
        # A newer leader in the answer (KIP-951) is asked at once, without a back-off.
        if what.refresh_metadata and found_leader(
            self._cluster, point.tp, data, response
        ):
            self._has_moved = True
            return
        self._delay(point)

    def _delay(self, point: FetchPoint) -> None:
        positions = self._records.positions
        delay = self._backoff.delay(positions[point.tp].attempts, roll())
        positions.retry_later(point.tp, point.token, now() + delay)
