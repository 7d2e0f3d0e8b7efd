"""Logs, fetch sessions and committed offsets behind the scripted brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from kafkaio._records.batch import Compression, encode_batch, with_base_offset
from kafkaio._records.control import ControlType, EndTxnMarker, control_batch
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kafkaio.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from tests.fakes.broker import DEFAULT, HANG, FakeCluster, FakeNode, Outcome


def naming_follower(
    cluster: FakeCluster, request: FetchRequest, node: int = 2
) -> FetchResponse:
    """The answer of a leader that names a nearer node (KIP-392), to be read from."""
    data = PartitionData(preferred_read_replica=node, high_watermark=5)
    topic = FetchableTopicResponse(
        topic_id=cluster.topics["one"].topic_id, partitions=[data]
    )
    return FetchResponse(session_id=request.session_id, responses=[topic])


def refusing(cluster: FakeCluster, request: FetchRequest, code: int) -> FetchResponse:
    """An answer with an error for the partition."""
    topic = FetchableTopicResponse(
        topic_id=cluster.topics["one"].topic_id,
        partitions=[PartitionData(error_code=code)],
    )
    return FetchResponse(session_id=request.session_id, responses=[topic])


def name_follower(cluster: FakeCluster, node: int = 2, most: int = 1_000) -> None:
    """Have node 0 name a nearer one to whoever has a rack, and send it no records.

    Args:
        cluster: the brokers.
        node: the one that it names.
        most: after so many fetches it hangs, so that a client that asks without a
            pause comes to an end.
    """

    def refer(asked: Any, header: Any, request: Any) -> Outcome:
        if len(cluster.requests(FetchRequest, 0)) > most:
            return HANG
        if not request.rack_id:
            return DEFAULT
        return naming_follower(cluster, request, node)

    cluster.on(ApiKey.FETCH, refer, node=0)


class Log:
    """One partition: encoded batches with their last offsets."""

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self.last_stable: int | None = None
        self.batches: list[tuple[int, int, int, bytes]] = []
        self.aborted: list[tuple[int, int, int]] = []
        self.epochs: list[tuple[int, int]] = []

    def append(
        self,
        values: Iterable[bytes | None],
        *,
        timestamp: int = 1000,
        epoch: int = 0,
        compression: Compression = Compression.NONE,
    ) -> int:
        records = [(timestamp, None, value, ()) for value in values]
        batch = encode_batch(
            records, base_offset=self.end, leader_epoch=epoch, compression=compression
        )
        if not self.epochs or self.epochs[-1][0] != epoch:
            self.epochs.append((epoch, self.end))
        return self.raw(batch, len(records), timestamp)

    def truncate(self, offset: int) -> None:
        """Lose what an unclean election loses; ``offset`` begins a batch."""
        self.batches = [batch for batch in self.batches if batch[1] < offset]
        self.epochs = [(epoch, at) for epoch, at in self.epochs if at < offset]
        self.end = offset

    def epoch_end(self, asked: int) -> tuple[int, int]:
        """The last epoch up to ``asked`` that the log has, and where it ends."""
        known = [epoch for epoch, _ in self.epochs if epoch <= asked]
        if not known:
            return -1, -1
        later = [at for epoch, at in self.epochs if epoch > asked]
        return known[-1], min(later, default=self.end)

    def raw(self, batch: bytes, count: int, timestamp: int = 1000) -> int:
        base = self.end
        self.batches.append((base, base + count - 1, timestamp, batch))
        self.end = base + count
        return base

    def marker(self, producer_id: int, *, commit: bool) -> int:
        batch = control_batch(
            EndTxnMarker(ControlType.COMMIT if commit else ControlType.ABORT),
            producer_id=producer_id,
            producer_epoch=0,
            timestamp=1000,
        )
        return self.raw(with_base_offset(batch, self.end, 0), 1)

    @property
    def visible_end(self) -> int:
        return self.end if self.last_stable is None else self.last_stable

    def read(self, offset: int, max_bytes: int, limit: int) -> bytes:
        found = b""
        for _, last, _, batch in self.batches:
            if last < offset or last >= limit:
                continue
            if found and len(found) + len(batch) > max_bytes:
                break
            found += batch
        return found


class FakeLogs:
    """Serves Fetch, ListOffsets, OffsetCommit and OffsetFetch for a FakeCluster."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.logs: dict[tuple[str, int], Log] = {}
        self.committed: dict[tuple[str, int], int] = {}
        self.committed_epochs: dict[tuple[str, int], int] = {}
        self.commits: list[dict[tuple[str, int], int]] = []
        self.grants_sessions = True
        self.cuts_batches = False
        self.sessions: dict[tuple[int, int], dict[tuple[str, int], Any]] = {}
        self.errors: dict[tuple[str, int], list[int]] = {}
        self.refusals: dict[tuple[str, int], int] = {}
        self._last_session = 0
        self._grown: list[asyncio.Future[None]] = []
        cluster.on(ApiKey.FETCH, self.fetch)
        cluster.on(ApiKey.LIST_OFFSETS, self.list_offsets)
        cluster.on(ApiKey.OFFSET_FOR_LEADER_EPOCH, self.epoch_ends)
        cluster.on(ApiKey.OFFSET_COMMIT, self.commit)
        cluster.on(ApiKey.OFFSET_FETCH, self.offset_fetch)

    def log(self, topic: str, partition: int = 0) -> Log:
        return self.logs.setdefault((topic, partition), Log())

    def append(self, topic: str, partition: int, *values: bytes, **how: Any) -> int:
        base = self.log(topic, partition).append(values, **how)
        self.grow()
        return base

    def grow(self) -> None:
        grown, self._grown = self._grown, []
        for future in grown:
            if not future.done():
                future.set_result(None)

    def fail(self, topic: str, partition: int, *codes: int) -> None:
        self.errors.setdefault((topic, partition), []).extend(codes)

    # Fetch

    async def fetch(self, node: FakeNode, header: Any, request: Any) -> FetchResponse:
        version = header.request_api_version
        key = (node.node_id, request.session_id)
        is_outside = (request.session_id, request.session_epoch) == (0, -1)
        full = version < 7 or request.session_epoch == 0 or is_outside
        if not full and request.session_epoch < 0:
            self.sessions.pop(key, None)
            return FetchResponse()
        if not full and key not in self.sessions:
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        session_id = request.session_id
        if full and not is_outside:
            session_id = self._new_session(key)
        session = self._session(node, session_id, request, version)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + request.max_wait_ms / 1000
        while True:
            found = self._answer(node, session, request, full=full)
            if any(p.records or p.error_code for p in found.values()):
                break
            if loop.time() >= deadline:
                break
            await self._wait(deadline)
        topics: dict[str, FetchableTopicResponse] = {}
        for (topic_name, _), data in found.items():
            topic_id = self.cluster.topics[topic_name].topic_id
            topics.setdefault(
                topic_name, FetchableTopicResponse(topic=topic_name, topic_id=topic_id)
            ).partitions.append(data)
        return FetchResponse(session_id=session_id, responses=list(topics.values()))

    def _new_session(self, old: tuple[int, int]) -> int:
        self.sessions.pop(old, None)
        if not self.grants_sessions:
            return 0
        self._last_session += 1
        self.sessions[old[0], self._last_session] = {}
        return self._last_session

    def _session(
        self, node: FakeNode, session_id: int, request: Any, version: int
    ) -> dict[tuple[str, int], Any]:
        by_id = {t.topic_id: name for name, t in self.cluster.topics.items()}

        def name(topic: Any) -> str:
            return by_id[topic.topic_id] if version >= 13 else topic.topic

        session = self.sessions.get((node.node_id, session_id), {})
        for topic in request.topics:
            session |= {(name(topic), p.partition): p for p in topic.partitions}
        for topic in request.forgotten_topics_data:
            for number in topic.partitions:
                session.pop((name(topic), number), None)
        return session

    async def _wait(self, deadline: float) -> None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._grown.append(future)
        timer = loop.call_at(deadline, lambda: future.done() or future.set_result(None))
        try:
            await future
        finally:
            timer.cancel()

    def _answer(
        self, node: FakeNode, session: Any, request: Any, *, full: bool
    ) -> dict[tuple[str, int], PartitionData]:
        found = {}
        left = request.max_bytes
        for tp, wanted in session.items():
            data = self._partition(node, tp, wanted, request, left)
            left -= len(data.records or b"")
            if full or data.records or data.error_code:
                found[tp] = data
        return found

    def _partition(
        self, node: FakeNode, tp: Any, wanted: Any, request: Any, left: int
    ) -> PartitionData:
        log = self.log(*tp)
        stable = log.visible_end
        committed = request.isolation_level == 1
        data = PartitionData(
            partition_index=tp[1],
            high_watermark=log.end,
            last_stable_offset=stable,
            log_start_offset=log.start,
        )
        if self.errors.get(tp):
            data.error_code = self.errors[tp].pop(0)
        elif self.cluster.leader(*tp) != node.node_id:
            data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif not log.start <= wanted.fetch_offset <= log.end:
            data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        elif left > 0:
            limit = stable if committed else log.end
            size = min(left, wanted.partition_max_bytes)
            records = log.read(wanted.fetch_offset, size, limit)
            data.records = records[:size] if self.cuts_batches else records
            if committed:
                data.aborted_transactions = [
                    AbortedTransaction(producer_id=pid, first_offset=first)
                    for pid, first, last in log.aborted
                    if last >= wanted.fetch_offset
                ]
        return data

    # Offsets

    def list_offsets(
        self, node: FakeNode, header: Any, request: Any
    ) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        self._offset(node, topic.name, p, request)
                        for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _offset(
        self, node: FakeNode, topic: str, item: Any, request: Any
    ) -> ListOffsetsPartitionResponse:
        log = self.log(topic, item.partition_index)
        answer = ListOffsetsPartitionResponse(partition_index=item.partition_index)
        if (topic, item.partition_index) in self.refusals:
            answer.error_code = self.refusals[topic, item.partition_index]
        elif self.cluster.leader(topic, item.partition_index) != node.node_id:
            answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif item.timestamp == -1:
            answer.offset = log.visible_end if request.isolation_level else log.end
        elif item.timestamp == -2:
            answer.offset = log.start
        else:
            for base, _, timestamp, _ in log.batches:
                if timestamp >= item.timestamp:
                    answer.offset, answer.timestamp = base, timestamp
                    break
        return answer

    def epoch_ends(
        self, node: FakeNode, header: Any, request: Any
    ) -> OffsetForLeaderEpochResponse:
        assert request.replica_id == -1
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[
                        self._epoch_end(node, topic.topic, p) for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _epoch_end(self, node: FakeNode, topic: str, asked: Any) -> EpochEndOffset:
        answer = EpochEndOffset(partition=asked.partition)
        state = self.cluster.partition(topic, asked.partition)
        if (topic, asked.partition) in self.refusals:
            answer.error_code = self.refusals[topic, asked.partition]
        elif state.leader != node.node_id:
            answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif asked.current_leader_epoch not in {-1, state.epoch}:
            answer.error_code = ErrorCode.FENCED_LEADER_EPOCH
        else:
            log = self.log(topic, asked.partition)
            answer.leader_epoch, answer.end_offset = log.epoch_end(asked.leader_epoch)
        return answer

    def commit(self, node: FakeNode, header: Any, request: Any) -> OffsetCommitResponse:
        by_id = {t.topic_id: name for name, t in self.cluster.topics.items()}
        named = {
            (by_id.get(t.topic_id, t.name), p.partition_index): p.committed_offset
            for t in request.topics
            for p in t.partitions
        }
        self.committed |= named
        self.commits.append(named)
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=t.name,
                    topic_id=t.topic_id,
                    partitions=[
                        OffsetCommitResponsePartition(partition_index=p.partition_index)
                        for p in t.partitions
                    ],
                )
                for t in request.topics
            ]
        )

    def offset_fetch(
        self, node: FakeNode, header: Any, request: Any
    ) -> OffsetFetchResponse:
        by_id = {t.topic_id: name for name, t in self.cluster.topics.items()}
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(
                    group_id=group.group_id,
                    topics=[
                        OffsetFetchResponseTopics(
                            name=t.name,
                            topic_id=t.topic_id,
                            partitions=[
                                OffsetFetchResponsePartitions(
                                    partition_index=n,
                                    committed_offset=self.committed.get(
                                        (by_id.get(t.topic_id, t.name), n), -1
                                    ),
                                    committed_leader_epoch=self.committed_epochs.get(
                                        (by_id.get(t.topic_id, t.name), n), -1
                                    ),
                                )
                                for n in t.partition_indexes
                            ],
                        )
                        for t in group.topics or ()
                    ],
                )
                for group in request.groups
            ]
        )
