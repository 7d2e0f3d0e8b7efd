"""Fetch, versions 4 to 18 (KIP-227, KIP-320, KIP-392, KIP-516 for ids, KIP-951).

For consumers only: replicas share one log and do not fetch. With isolation level 1
(read committed) an answer ends at the last stable offset, and names the aborted
transactions in what it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kafkaio._runtime.clock import now
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kafkaio.testing._broker.batches import batches_of
from kafkaio.testing._broker.partition import NO_LEADER, EmbeddedPartition
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._broker.sessions import (
    PartitionKey,
    ServedFetchSession,
    SessionPartition,
)
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType

#: KIP-227.
_FIRST_WITH_SESSIONS: Final = 7
#: KIP-392.
_FIRST_WITH_RACK: Final = 11
#: KIP-595.
_FIRST_WITH_DIVERGENCE: Final = 12
#: KIP-516.
_FIRST_WITH_IDS: Final = 13
#: KIP-951.
_FIRST_WITH_HINTS: Final = 16
_HINTED: Final = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH}


@handler(FetchRequest, by_partition=True)
async def handle(context: RequestContext[FetchRequest]) -> FetchResponse:
    """Read; if there are fewer than min_bytes, wait for them or for max_wait_ms."""
    request, by_id = context.request, context.version >= _FIRST_WITH_IDS
    has_sessions = context.version >= _FIRST_WITH_SESSIONS
    session = context.node.fetch_sessions.find(
        request.session_id,
        request.session_epoch if has_sessions else -1,
        _changed(request, by_id=by_id),
        _forgotten(request, by_id=by_id),
        by_id=by_id,
    )
    return await _Fetch(context, session).serve()


def _changed(
    request: FetchRequest, *, by_id: bool
) -> list[tuple[PartitionKey, SessionPartition]]:
    return [
        (
            (topic.topic_id if by_id else topic.topic, part.partition),
            SessionPartition(
                part.fetch_offset,
                part.partition_max_bytes,
                part.current_leader_epoch,
                part.last_fetched_epoch,
            ),
        )
        for topic in request.topics
        for part in topic.partitions
    ]


def _forgotten(request: FetchRequest, *, by_id: bool) -> list[PartitionKey]:
    return [
        (topic.topic_id if by_id else topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]


@dataclass(slots=True)
class _Found:
    """The result of reading one partition."""

    key: PartitionKey
    asked: SessionPartition
    data: PartitionData
    partition: EmbeddedPartition | None

    @property
    def size(self) -> int:
        return len(self.data.records or b"")

    @property
    def is_urgent(self) -> bool:
        """Whether the answer has to be sent without waiting for records."""
        data = self.data
        return bool(
            data.error_code
            or data.diverging_epoch.end_offset >= 0
            or data.preferred_read_replica >= 0
        )

    @property
    def is_news(self) -> bool:
        """Whether an incremental answer has to name the partition."""
        return bool(
            self.size
            or self.is_urgent
            or self.data.high_watermark != self.asked.sent_watermark
            or self.data.log_start_offset != self.asked.sent_start
        )


class _Fetch:
    """One request while it is served."""

    def __init__(
        self, context: RequestContext[FetchRequest], session: ServedFetchSession
    ) -> None:
        self.node = context.node
        self.version = context.version
        self.request = context.request
        self.session = session
        self.connection = context.connection
        self.rights = context.rights

    async def serve(self) -> FetchResponse:
        answers = self._read_all()
        # By the loop's clock: skip_time moves the broker's, but not a client's timeout.
        until = now() + self.request.max_wait_ms / 1000
        if not self._is_enough(answers):
            answers = await self._wait(answers, until)
        return self._response(answers)

    async def _wait(self, answers: list[_Found], until: float) -> list[_Found]:
        """Read again at every change, until there is enough or the time is up."""
        wakeup = Wakeup()
        watched = [a.partition for a in answers if a.partition is not None]
        for partition in watched:
            partition.add_waiter(wakeup)
        try:
            # A client that has disconnected waits for nothing.
            while self.connection.is_open and await wakeup.wait(until):
                answers = self._read_all()
                if self._is_enough(answers):
                    break
        finally:
            for partition in watched:
                # Also when the request is cancelled, as its connection ends.
                partition.remove_waiter(wakeup)
        return answers

    def _is_enough(self, answers: list[_Found]) -> bool:
        if not answers or self.request.max_wait_ms <= 0:
            return True
        size = sum(answer.size for answer in answers)
        return size >= self.request.min_bytes or any(a.is_urgent for a in answers)

    # ---- reading -----------------------------------------------------------------

    def _read_all(self) -> list[_Found]:
        left = self.request.max_bytes
        # The first batch is read whatever its size, or a client could not get past it.
        min_one = True
        answers = []
        for key, asked in self.session.partitions.items():
            answer = self._read(key, asked, left, min_one=min_one)
            left -= answer.size
            # The exception is for one batch of the whole response.
            min_one = min_one and not answer.size
            answers.append(answer)
        return answers

    def _read(
        self, key: PartitionKey, asked: SessionPartition, left: int, *, min_one: bool
    ) -> _Found:
        partition: EmbeddedPartition | None = None
        data = PartitionData(partition_index=key[1], records=b"")
        try:
            partition = self._find(key)
            data.aborted_transactions = None
            self.connection.check(partition.topic, partition.index)
            # Epoch and leader before the offset, which only the leader can judge.
            self._check(partition, asked)
            diverges = self._diverges(partition, asked, data)
            if not diverges:
                self._check_range(partition, asked)
        except Refusal as refusal:
            data.error_code = refusal.code
            data.high_watermark = -1
            if partition is not None:
                self._hint(data, partition, refusal.code)
            return _Found(key, asked, data, partition)
        data.high_watermark = partition.high_watermark
        data.last_stable_offset = partition.last_stable_offset
        data.log_start_offset = partition.start_offset
        if self.request.isolation_level:
            data.aborted_transactions = []
        data.preferred_read_replica = self._nearest(partition)
        if data.preferred_read_replica < 0 and not diverges:
            room = min(left, asked.max_bytes)
            end = partition.fetchable(self.request.isolation_level)
            if asked.offset < end and (min_one or room > 0):
                self._take(partition, asked.offset, end, data, max(room, 0), min_one)
        return _Found(key, asked, data, partition)

    def _take(
        self,
        partition: EmbeddedPartition,
        offset: int,
        end: int,
        data: PartitionData,
        room: int,
        min_one: bool,  # noqa: FBT001
    ) -> None:
        log = partition.log
        records = log.read(offset, room, min_one=min_one, up_to=end)
        data.records = records
        if not self.request.isolation_level or not records:
            return
        # Only transactions that overlap what is returned: the client keeps them by
        # offset.
        *_, (last, _) = batches_of(records)
        data.aborted_transactions = [
            AbortedTransaction(
                producer_id=one.producer_id, first_offset=one.first_offset
            )
            for one in log.aborted_between(offset, last.next_offset)
        ]

    def _find(self, key: PartitionKey) -> EmbeddedPartition:
        topic_key, index = key
        cluster = self.node.cluster
        if isinstance(topic_key, UUID):
            topic, absent = cluster.known_by_id(topic_key), ErrorCode.UNKNOWN_TOPIC_ID
            if topic is not None:
                self.rights.require(Operation.READ, ResourceType.TOPIC, topic.name)
        else:
            # By name before the topic is looked up, so that the error does not say
            # whether it exists.
            self.rights.require(Operation.READ, ResourceType.TOPIC, topic_key)
            topic = cluster.known(topic_key)
            absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None:
            raise Refusal(absent)
        if not 0 <= index < len(topic.partitions):
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic.partitions[index]

    def _check(self, partition: EmbeddedPartition, asked: SessionPartition) -> None:
        partition.check_epoch(asked.leader_epoch, self.node.node_id)
        if not self._may_follow(partition):
            partition.check_leader(self.node.node_id)

    def _check_range(
        self, partition: EmbeddedPartition, asked: SessionPartition
    ) -> None:
        if not partition.start_offset <= asked.offset <= partition.high_watermark:
            raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE)

    def _may_follow(self, partition: EmbeddedPartition) -> bool:
        """Whether clients may read from followers: since the version with racks."""
        return self.version >= _FIRST_WITH_RACK and partition.is_leader_known

    def _nearest(self, partition: EmbeddedPartition) -> int:
        """The in-sync replica in the client's rack; -1 if the leader is in it."""
        rack = self.request.rack_id
        nodes = self.node.broker.nodes
        if (
            not rack
            or self.version < _FIRST_WITH_RACK
            or partition.leader != self.node.node_id
            or self.node.rack == rack
        ):
            return -1
        near = (
            replica
            for replica in partition.isr
            if replica in self.node.cluster.live and nodes[replica].rack == rack
        )
        return next(near, -1)

    def _diverges(
        self, partition: EmbeddedPartition, asked: SessionPartition, data: PartitionData
    ) -> bool:
        """Whether the log was truncated below what the client has read (KIP-595)."""
        if self.version < _FIRST_WITH_DIVERGENCE or asked.last_fetched_epoch < 0:
            return False
        epoch, end = partition.end_of_epoch(asked.last_fetched_epoch)
        if epoch < 0 or asked.offset < partition.start_offset:
            raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < asked.last_fetched_epoch or end < asked.offset:
            data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end)
            return True
        return False

    def _hint(
        self, data: PartitionData, partition: EmbeddedPartition, code: ErrorCode
    ) -> None:
        """Add the current leader to an error (KIP-951)."""
        if (
            code in _HINTED
            and self.version >= _FIRST_WITH_HINTS
            and partition.is_leader_known
            and partition.leader != NO_LEADER
        ):
            data.current_leader = LeaderIdAndEpoch(
                leader_id=partition.leader, leader_epoch=partition.leader_epoch
            )

    # ---- answering ---------------------------------------------------------------

    def _response(self, answers: list[_Found]) -> FetchResponse:
        response = FetchResponse(session_id=self.session.session_id)
        topics: dict[str | UUID, FetchableTopicResponse] = {}
        for answer in answers:
            # A partition without news is left out: that is what sessions are for.
            if not self.session.is_full and not answer.is_news:
                continue
            self._note(answer)
            topic_key, _ = answer.key
            topic = topics.get(topic_key)
            if topic is None:
                topic = topics[topic_key] = FetchableTopicResponse()
                if isinstance(topic_key, UUID):
                    topic.topic_id = topic_key
                else:
                    topic.topic = topic_key
                response.responses.append(topic)
            topic.partitions.append(answer.data)
        if self.version >= _FIRST_WITH_HINTS:
            self._endpoints(response)
        return response

    def _note(self, answer: _Found) -> None:
        """Store in the session the state that this answer reports."""
        is_error = answer.data.error_code != ErrorCode.NONE
        asked = answer.asked
        asked.sent_watermark = -1 if is_error else answer.data.high_watermark
        asked.sent_start = -1 if is_error else answer.data.log_start_offset
        if answer.size and answer.key in self.session.partitions:
            self.session.move_back(answer.key)

    def _endpoints(self, response: FetchResponse) -> None:
        leaders = {
            data.current_leader.leader_id
            for topic in response.responses
            for data in topic.partitions
            if data.current_leader.leader_id >= 0
        }
        # With the addresses, so that the client need not ask for metadata (KIP-951).
        for leader in sorted(leaders):
            peer = self.node.broker.nodes[leader]
            host, port = peer.address(self.connection)
            response.node_endpoints.append(
                NodeEndpoint(node_id=leader, host=host, port=port, rack=peer.rack)
            )
