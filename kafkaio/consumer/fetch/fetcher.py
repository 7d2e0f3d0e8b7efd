"""Fetching ahead of the reader: one loop per broker, one session each.

A loop keeps one fetch in flight, which overlaps with the user's work: the next goes
out as soon as the last was answered, while its data waits in the buffers. Two limits
bound that. The byte budget (``fetch_buffer_bytes``) is shared by all brokers: when it
is used up nothing is fetched, and there is plenty to read. A partition that has its
share of it buffered is left out alone, so that it cannot hold the others back.

A broker answers a fetch when one of its partitions has data, or after
``fetch_max_wait_ms``. A partition that was left out has to wait for that answer when
it is empty again; so a fetch that leaves one out asks for a shorter wait, which grows
while the user does not read. What becomes fetchable while a fetch waits is fetched
beside it, see `kafkaio.consumer.fetch.side_fetch`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kafkaio._dataclass import dataclass
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.fetch_session import FetchTarget
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.positions import FetchPoint, Stage
from kafkaio._machines.reactions import Reaction, Step, reaction
from kafkaio._machines.read_committed import ReadCommitted, ReadUncommitted
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._records.batch import (
    Decompressor,
    LegacyBatch,
    RecordBatch,
    first_batch_size,
    read_batches,
)
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.supervisor import Child
from kafkaio.client.cluster import Cluster
from kafkaio.config import ConsumerConfig
from kafkaio.consumer.fetch.node import NodeFetcher
from kafkaio.consumer.reading.buffers import Failure, Fetched, Frame, Sieve
from kafkaio.consumer.reading.reader import Reader
from kafkaio.errors import CorruptRecord, KafkaError, RecordTooLarge
from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.broker_errors import broker_error
from kafkaio.protocol.messages.fetch import FetchResponse, PartitionData
from kafkaio.protocol.schema import ZERO_UUID
from kafkaio.types import TopicPartition

__all__ = ["Fetcher", "LogEnds"]

#: A partition may have this many answers' worth of bytes buffered.
_DEPTH: Final = 2
#: Answers that share the budget, at least.
_ANSWERS: Final = 5
#: Seconds that an answer is worked on before the loop gets a turn.
_SLICE: Final = 0.001


@dataclass(frozen=True, slots=True)
class LogEnds:
    """What a fetch told of a partition's log.

    Attributes:
        log_start: offset of the first record kept, -1 if unknown.
        high_watermark: offset after the last record that consumers may see.
        last_stable: offset before which every transaction has ended.
    """

    log_start: int
    high_watermark: int
    last_stable: int


class Fetcher:
    """Decides what each broker's loop fetches, and judges what comes back.

    Args:
        cluster: the way to the cluster.
        config: the consumer's options.
        reader: takes what is fetched, and knows what is wanted.
        start_soon: starts a loop in the background.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        reader: Reader,
        start_soon: Callable[[Child, str], None],
    ) -> None:
        self.cluster = cluster
        self.config = config
        self.ends: dict[TopicPartition, LogEnds] = {}
        self.stale_answers = 0
        #: Nobody else's fetches hold ours up while they wait for data.
        self.connection_class = ConnectionClass.FETCH.of(self)
        self._reader = reader
        self._start_soon = start_soon
        self._nodes: dict[int, NodeFetcher] = {}
        # How many brokers lead assigned partitions.
        self._brokers = 0
        self._decompressor = Decompressor()
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._reads_committed = config.isolation_level == "read_committed"
        # Larger limits for partitions whose next batch did not fit.
        self._max_bytes: dict[TopicPartition, int] = {}
        # What was asked for last of each partition, and what followed from what.
        self._asked: dict[
            TopicPartition, tuple[FetchPoint, ClusterView, FetchTarget]
        ] = {}
        # Followers that brokers told us to read from (KIP-392), and until when.
        self._replicas: dict[TopicPartition, tuple[int, float]] = {}
        reader.on_room = self.wake

    @property
    def in_flight(self) -> int:
        """Fetches without an answer yet."""
        return sum(node.is_fetching for node in self._nodes.values())

    def update(self) -> None:
        """Something changed (positions, metadata, room): every loop looks again."""
        positions = self._reader.positions
        self._brokers = len({self._node_of(tp) for tp in positions} - {None})
        self._see_leaders()
        leaderless = set()
        for point in positions.fetchable(now()):
            node_id = self._node_of(point.tp)
            if node_id is None:
                leaderless.add(point.tp.topic)
            elif node_id not in self._nodes:
                node = NodeFetcher(self, node_id)
                self._nodes[node_id] = node
                self._start_soon(node.run, f"fetch from broker {node_id}")
                self._start_soon(node.beside.run, f"catch up with broker {node_id}")
        if leaderless:
            self.cluster.request_refresh(*sorted(leaderless))
        self.wake()
        for node in self._nodes.values():
            node.beside.wake()

    def _see_leaders(self) -> None:
        # What a leader sent ahead may not be in the log of the next one.
        reader = self._reader
        for tp in reader.positions:
            view, entry = self.cluster.view.partition(tp), reader.positions[tp]
            if view is None or entry.stage is not Stage.FETCHING:
                continue
            if view.leader_epoch <= entry.leader_epoch:
                continue
            reader.set_aside()  # the machine must know how far it was read
            if reader.positions.leader_seen(tp, view.leader_epoch):
                reader.buffers.drop(tp)

    def wake(self) -> None:
        """There is room, or something else may be fetched: every loop looks again."""
        for node in self._nodes.values():
            node.wake()

    def ended(self, node_id: int) -> None:
        """A loop has nothing left to do: its broker is gone."""
        self._nodes.pop(node_id, None)

    def forget(self, tp: TopicPartition) -> None:
        """A partition is not assigned any more."""
        self.ends.pop(tp, None)
        self._max_bytes.pop(tp, None)
        self._asked.pop(tp, None)
        self._replicas.pop(tp, None)

    def close_sessions(self) -> None:
        """Tell the brokers that they may forget our sessions; wait for no answer."""
        for node in self._nodes.values():
            node.close_session()

    # What to fetch

    def wanted(self, node_id: int) -> tuple[dict[FetchPoint, FetchTarget], bool]:
        """What to fetch from a broker now.

        Returns:
            The partitions, and whether one was left out because it is full.
        """
        buffers = self._reader.buffers
        points = [
            point
            for point in self._reader.positions.fetchable(now())
            if self._node_of(point.tp) == node_id and not buffers.has_failed(point.tp)
        ]
        share = self._share()
        open_points = [p for p in points if buffers.size_of(p.tp) < share]
        is_short = len(open_points) < len(points)
        if is_short:
            self._wait_for_room()
        cluster = self.cluster.view
        return {p: self._target(p, cluster) for p in open_points}, is_short

    def room(self) -> int:
        """Bytes that the next fetch may bring: 0 while there is too little room.

        A fetch keeps its room until it is answered, which may take long. So each
        broker that leads a partition gets no more than its share, also those that
        are not fetched from yet; and one more is left for a broker to come.
        """
        room = self._free_room()
        if not room and self._reader.buffers.compact():
            room = self._free_room()
        if not room:
            self._wait_for_room()
        return room

    def _free_room(self) -> int:
        budget = self.config.fetch_buffer_bytes
        fetching = [node for node in self._nodes.values() if node.is_fetching]
        free = budget - self._reader.buffers.size - sum(n.reserved for n in fetching)
        brokers = max(self._brokers, len(self._nodes), 1)
        idle = max(brokers - len(fetching), 1)
        # Not too little either: what a fetch costs grows with the partitions asked for.
        least = max(
            1,
            min(self.config.max_partition_fetch_bytes, budget // (4 * brokers)),
            budget // (8 * brokers),
        )
        room = free // (idle + 1)
        if room < least:
            room = free // idle
        if room < least:
            return 0
        # Memory is used again sooner where several answers share the budget.
        return min(room, self.config.fetch_max_bytes, max(least, budget // _ANSWERS))

    def has_room_beside(self) -> bool:
        """Whether a partition's worth may come beside a fetch in flight."""
        free = self.config.fetch_buffer_bytes - self._reader.buffers.size
        return free >= self.config.max_partition_fetch_bytes

    def progress(self) -> int:
        """A number that grows when the user takes something."""
        return self._reader.progress

    def next_retry(self) -> float | None:
        """When the next partition that waits after an error is due."""
        return self._reader.positions.next_retry(now())

    def _wait_for_room(self) -> None:
        # Not with every batch that is taken: half an answer's worth is enough.
        step = self.config.max_partition_fetch_bytes // 2
        self._reader.wake_below = max(0, self._reader.buffers.unread - step)

    def _share(self) -> int:
        budget = self.config.fetch_buffer_bytes // max(1, len(self._reader.positions))
        return max(1, min(_DEPTH * self.config.max_partition_fetch_bytes, budget))

    def _target(self, point: FetchPoint, cluster: ClusterView) -> FetchTarget:
        # Of many partitions few move from one fetch to the next.
        tp = point.tp
        size = self._max_bytes.get(tp, self.config.max_partition_fetch_bytes)
        asked = self._asked.get(tp)
        if asked is not None:
            for_point, seen, target = asked
            if for_point is point and seen is cluster and target.max_bytes == size:
                return target
        view = cluster.partition(tp)
        epoch = -1 if view is None else view.leader_epoch
        topic_id = cluster.topic_id(tp.topic) or ZERO_UUID
        target = FetchTarget(point.offset, size, epoch, topic_id)
        self._asked[tp] = point, cluster, target
        return target

    def _node_of(self, tp: TopicPartition) -> int | None:
        replica = self._replicas.get(tp)
        if replica is not None:
            node_id, until = replica
            if now() < until and node_id in self.cluster.view.brokers:
                return node_id
            del self._replicas[tp]
        return self.cluster.view.leader(tp)

    # What came back

    def failed(self, topics: Iterable[str]) -> None:
        """A broker did not answer: perhaps others lead its partitions by now."""
        self.cluster.request_refresh(*sorted(set(topics)))

    async def answered(
        self,
        points: Mapping[TopicPartition, FetchPoint],
        found: Mapping[TopicPartition, PartitionData],
        response: FetchResponse,
    ) -> None:
        """Judge an answer, partition by partition.

        A large one takes milliseconds, so the loop gets its turn in between; whatever
        happens to the other partitions meanwhile is noticed.
        """
        frame = _frame_of(found)
        end = now() + _SLICE
        for tp, data in found.items():
            if now() >= end:
                await asyncio.sleep(0)
                end = now() + _SLICE
            self._judge(points[tp], data, frame, response)

    def answered_at_once(
        self,
        points: Mapping[TopicPartition, FetchPoint],
        found: Mapping[TopicPartition, PartitionData],
        response: FetchResponse,
    ) -> None:
        """Judge a small answer, as ``answered`` does, without a turn of the loop."""
        frame = _frame_of(found)
        for tp, data in found.items():
            self._judge(points[tp], data, frame, response)

    def _judge(
        self,
        point: FetchPoint,
        data: PartitionData,
        frame: Frame,
        response: FetchResponse,
    ) -> None:
        if not self._reader.positions.accepts(point):
            self.stale_answers += 1
        elif data.error_code:
            self._on_error(point, data, response)
        else:
            self._on_data(point, data, frame)

    def _on_data(self, point: FetchPoint, data: PartitionData, frame: Frame) -> None:
        tp = point.tp
        self.ends[tp] = LogEnds(
            data.log_start_offset, data.high_watermark, data.last_stable_offset
        )
        if data.records:
            self._on_records(point, data, frame)
        elif data.preferred_read_replica >= 0:
            until = now() + self.config.metadata_max_age_ms / 1000
            self._replicas[tp] = (data.preferred_read_replica, until)
            self.update()

    def _on_records(self, point: FetchPoint, data: PartitionData, frame: Frame) -> None:
        assert data.records is not None
        batches: list[RecordBatch | LegacyBatch] = []
        failure: Failure | None = None
        try:
            batches.extend(self._read(data))
            needed = 0 if batches else self._needed(point, data)
        except CorruptRecord as error:
            at = batches[-1].next_offset if batches else point.offset
            error.add_note(f"{point.tp.topic}-{point.tp.partition} at offset {at}")
            failure, needed = Failure(error, point), 0
        if needed:
            failure = self._grow(point, needed)
        elif batches:
            self._max_bytes.pop(point.tp, None)
        if batches or failure is not None:
            fetched = Fetched(batches, self._sieve(data), frame, failure)
            self._reader.add(point.tp, fetched)

    def _read(self, data: PartitionData) -> Iterable[RecordBatch | LegacyBatch]:
        return read_batches(
            data.records or b"",
            check_crcs=False,  # the reader holds each batch against it in its turn
            decompressor=self._decompressor,
        )

    def _needed(self, point: FetchPoint, data: PartitionData) -> int:
        # Only a part of the first batch came: what would bring it whole.
        known = first_batch_size(data.records or b"")
        doubled = 2 * self._max_bytes.get(
            point.tp, self.config.max_partition_fetch_bytes
        )
        return doubled if known is None else known

    def _grow(self, point: FetchPoint, needed: int) -> Failure | None:
        limit = self.config.max_response_size
        if needed < limit:
            self._max_bytes[point.tp] = needed
            return None
        error = RecordTooLarge(
            f"the batch of {point.tp.topic}-{point.tp.partition} at offset "
            f"{point.offset} takes {needed} bytes, more than max_response_size={limit}"
        )
        return Failure(error, point)

    def _sieve(self, data: PartitionData) -> Sieve:
        if not self._reads_committed:
            return ReadUncommitted()
        return ReadCommitted(
            (aborted.producer_id, aborted.first_offset)
            for aborted in data.aborted_transactions or ()
        )

    def _on_error(
        self, point: FetchPoint, data: PartitionData, response: FetchResponse
    ) -> None:
        tp = point.tp
        from_replica = self._replicas.pop(tp, None) is not None
        what = reaction(ApiKey.FETCH, data.error_code)
        if what.step is Step.RESET_POSITION:
            if not from_replica:  # else the leader is asked, which knows better
                self._on_out_of_range(point)
        elif what.retry or what.step is Step.RESET_SESSION:
            self._retry(point, data, response, what)
        else:
            error = broker_error(
                data.error_code, f"fetching {tp.topic}-{tp.partition} failed"
            )
            self._raise_later(point, error)

    def _raise_later(self, point: FetchPoint, error: KafkaError) -> None:
        self._delay(point)
        fetched = Fetched([], ReadUncommitted(), Frame(0), Failure(error, point))
        self._reader.add(point.tp, fetched)

    def _on_out_of_range(self, point: FetchPoint) -> None:
        if self._reader.positions[point.tp].position == point.offset:
            self._reader.reset_position(point.tp)
            return
        # There is data to read before it.
        fetched = Fetched([], ReadUncommitted(), Frame(0), Failure(None, point))
        self._reader.add(point.tp, fetched)

    def _retry(
        self,
        point: FetchPoint,
        data: PartitionData,
        response: FetchResponse,
        what: Reaction,
    ) -> None:
        if what.refresh_metadata:
            self.cluster.request_refresh(point.tp.topic)
            leader = data.current_leader
            if self.cluster.apply_leader_hint(
                point.tp,
                leader.leader_id,
                leader.leader_epoch,
                response.node_endpoints,
            ):
                self.update()
                return
        self._delay(point)

    def _delay(self, point: FetchPoint) -> None:
        positions = self._reader.positions
        delay = self._backoff.delay(positions[point.tp].attempts, roll())
        positions.retry_later(point.tp, point.token, now() + delay)


def _frame_of(found: Mapping[TopicPartition, PartitionData]) -> Frame:
    return Frame(sum(len(data.records or b"") for data in found.values()))
