"""ShareFetch, versions 1 and 2 (KIP-932, KIP-1206 for exact limits, KIP-1222)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kafkaio._runtime.clock import now
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.share_fetch import (
    AcquiredRecords,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from kafkaio.testing._broker.batches import batches_of, marker_of
from kafkaio.testing._broker.partition import EmbeddedPartition
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler, right
from kafkaio.testing._handlers._share import (
    Acknowledging,
    LeaderHints,
    by_topic_id,
    check_enabled,
    check_faults,
    check_member,
    find_partition,
)
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._share.leaders import LedPartition, ShareLeaders, share_leaders_of
from kafkaio.testing._share.partition import Acquire, AcquiredRange, Fetched
from kafkaio.testing._share.sessions import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    SessionKey,
    SharedPartition,
    ShareSession,
)

_BATCH_OPTIMIZED: Final = 0
_RECORD_LIMIT: Final = 1


@handler(
    ShareFetchRequest,
    check_enabled,
    check_member,
    check_faults,
    right(Operation.READ, ResourceType.GROUP, "group_id"),
    by_partition=True,
)
async def handle(context: RequestContext[ShareFetchRequest]) -> ShareFetchResponse:
    """Apply acknowledgements, then acquire records; wait for some if there are none."""
    request = context.request
    _check(request)
    leaders = share_leaders_of(context.cluster)
    key = SessionKey(request.group_id or "", request.member_id or "")
    epoch = request.share_session_epoch
    try:
        session = _session(context, leaders, key)
    except Refusal as refusal:
        if refusal.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            # So that a client without a session does not ask without a pause.
            await _idle(context, request.max_wait_ms)
        raise
    acknowledging = Acknowledging(context, leaders, *key, renews=request.is_renew_ack)
    acknowledging.judge(
        {
            (topic.topic_id, one.partition_index): one.acknowledgement_batches
            for topic in request.topics
            for one in topic.partitions
            if one.acknowledgement_batches
        }
    )
    if epoch == FINAL_EPOCH:
        acknowledging.settle()
        leaders.close_session(context.node.node_id, key)
        found = []
    else:
        fetch = _ShareFetch(context, leaders, session, key)
        found = await fetch.serve(acknowledging)
    news = _news(session, found, is_full=epoch == FIRST_EPOCH)
    answer = _answer(context, news, acknowledging.settle())
    answer.acquisition_lock_timeout_ms = round(
        leaders.limits(key.group).lock_duration * 1000
    )
    return answer


def _check(request: ShareFetchRequest) -> None:
    """Check what the request asks for.

    Raises:
        Refusal: INVALID_REQUEST; UNKNOWN_SERVER_ERROR for an unknown acquire mode, for
            which Kafka has no check.
    """
    if request.share_acquire_mode not in {_BATCH_OPTIMIZED, _RECORD_LIMIT}:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    # A renewal brings no records.
    if request.is_renew_ack and any(
        (request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records)
    ):
        raise Refusal(ErrorCode.INVALID_REQUEST)


def _session(
    context: RequestContext[ShareFetchRequest], leaders: ShareLeaders, key: SessionKey
) -> ShareSession:
    """Open the session of a request, or find it."""
    request, node_id = context.request, context.node.node_id
    added = [
        (topic.topic_id, one.partition_index)
        for topic in request.topics
        for one in topic.partitions
    ]
    sessions = leaders.sessions(node_id)
    if request.share_session_epoch == FINAL_EPOCH:
        return sessions.require(key)
    if request.share_session_epoch == FIRST_EPOCH:
        if any(
            one.acknowledgement_batches
            for topic in request.topics
            for one in topic.partitions
        ):
            raise Refusal(ErrorCode.INVALID_REQUEST)
        session = leaders.open_session(node_id, key, context.connection)
    else:
        session = sessions.advance(key, request.share_session_epoch)
    forgotten = [
        (topic.topic_id, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    session.update(added, forgotten)
    return session


async def _idle(context: RequestContext[ShareFetchRequest], wait_ms: int) -> None:
    wakeup = Wakeup()
    context.connection.when_closed(wakeup.notify)
    try:
        await wakeup.wait(now() + wait_ms / 1000)
    finally:
        context.connection.forget_close(wakeup.notify)


@dataclass(slots=True)
class _Found:
    """What one partition has for the answer."""

    key: SharedPartition
    refusal: Refusal | None = None
    records: bytes = b""
    acquired: list[AcquiredRange] = field(default_factory=list)
    # Whether it was not looked at: it is full, or others have had as many records as
    # the request allows.
    is_skipped: bool = False


class _ShareFetch:
    """One request while it is served."""

    def __init__(
        self,
        context: RequestContext[ShareFetchRequest],
        leaders: ShareLeaders,
        session: ShareSession,
        key: SessionKey,
    ) -> None:
        self._context = context
        self._request = context.request
        self._leaders = leaders
        self._key = key
        # Each request begins with another partition, so that none is starved.
        keys = list(session.partitions)
        first = self._request.share_session_epoch % len(keys) if keys else 0
        self._keys = [*keys[first:], *keys[:first]]
        self._is_committed = leaders.is_committed_only(key.group)

    async def serve(self, acknowledging: Acknowledging) -> list[_Found]:
        request = self._request
        if not request.max_records or not request.max_bytes:
            return []
        # By the loop's clock: skip_time moves the broker's, but not a client's timeout.
        until = now() + request.max_wait_ms / 1000
        is_late = request.max_wait_ms <= 0
        led, found = self._load()
        is_done = not led or self._acquire(led, found, is_late=is_late) or is_late
        # Only now, as in Kafka, where it takes the time of a write: what this request
        # releases is not what it gets, if there is anything else.
        acknowledging.settle()
        return found if is_done else await self._wait(until)

    async def _wait(self, until: float) -> list[_Found]:
        """Try again at every change, until there is enough or the time is up."""
        wakeup = Wakeup()
        self._context.connection.when_closed(wakeup.notify)
        watched: list[LedPartition] = []
        try:
            while True:
                for one in watched:
                    one.remove_waiter(wakeup)
                watched, found = self._load()
                for one in watched:
                    one.add_waiter(wakeup)
                if not watched:
                    return found
                is_late = until <= now()
                # The records of a client that has disconnected would be locked.
                if not self._context.connection.is_open:
                    return found
                if self._acquire(watched, found, is_late=is_late) or is_late:
                    return found
                await wakeup.wait(until)
        finally:
            # A connection has many fetches.
            self._context.connection.forget_close(wakeup.notify)
            for one in watched:
                one.remove_waiter(wakeup)

    def _load(self) -> tuple[list[LedPartition], list[_Found]]:
        """Find the share partitions; the errors of the others."""
        led: list[LedPartition] = []
        found: list[_Found] = []
        for key in self._keys:
            one = _Found(key)
            found.append(one)
            try:
                partition = find_partition(self._context, key)
                partition.check_leader(self._context.node.node_id)
                loaded = self._leaders.load(self._key.group, partition)
            except Refusal as refusal:
                one.refusal = refusal
            else:
                self._leaders.expire(loaded)
                led.append(loaded)
        return led, found

    def _acquire(
        self, led: list[LedPartition], found: list[_Found], *, is_late: bool
    ) -> bool:
        """Acquire records, if there are enough; return whether any were acquired."""
        by_key = {one.key: one for one in found}
        readable: list[tuple[LedPartition, Fetched, bytes]] = []
        able = [one for one in led if one.machine.can_acquire]
        for one in led:
            # Kafka does not look at what is full.
            by_key[one.key[1:]].is_skipped = one not in able
        for one in able:
            one.machine.log_starts_at(one.log.start_offset)
            share = max(self._request.max_bytes // len(able), 1)
            # The first batch is read whatever its size, or nobody could get past it.
            data, read = self._read(one, share, min_one=not readable)
            if data:
                readable.append((one, read, data))
        if not is_late and sum(len(data) for *_, data in readable) < min(
            self._request.min_bytes, self._request.max_bytes
        ):
            return False
        left = self._request.max_records
        for one, read, data in readable:
            ask = Acquire(
                member=self._key.member,
                max_records=left,
                batch_size=max(self._request.batch_size, 1),
                is_exact=self._request.share_acquire_mode == _RECORD_LIMIT,
            )
            ranges = self._leaders.acquire(one, ask, read)
            left -= sum(last - first + 1 for first, last, _ in ranges)
            answered = by_key[one.key[1:]]
            answered.acquired = ranges
            answered.records = _sliced(data, ranges)
        if left <= 0:
            done = [one.key for one, *_ in readable if by_key[one.key[1:]].acquired]
            for one in led:
                by_key[one.key[1:]].is_skipped = one.key not in done
        return left < self._request.max_records

    def _read(
        self, led: LedPartition, max_bytes: int, *, min_one: bool
    ) -> tuple[bytes, Fetched]:
        offset, partition = led.machine.next_offset, led.log
        end = partition.fetchable(int(self._is_committed))
        data = b""
        if offset < end:
            data = partition.log.read(offset, max_bytes, min_one=min_one, up_to=end)
        borders = [(one.base_offset, one.last_offset) for one, _ in batches_of(data)]
        aborted = _aborted(partition, data) if self._is_committed and data else []
        return data, Fetched(offset, borders, aborted)


def _aborted(partition: EmbeddedPartition, data: bytes) -> list[tuple[int, int]]:
    """Return the batches of aborted transactions, without their markers."""
    batches = list(batches_of(data))
    first, last = batches[0][0].base_offset, batches[-1][0].next_offset
    waiting = sorted(
        (one.first_offset, one.producer_id)
        for one in partition.log.aborted_between(first, last)
    )
    aborting: set[int] = set()
    found: list[tuple[int, int]] = []
    for header, raw in batches:
        while waiting and waiting[0][0] <= header.last_offset:
            aborting.add(waiting.pop(0)[1])
        if header.is_control:
            marker = marker_of(header, raw)
            if marker is not None and not marker.is_commit:
                aborting.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in aborting:
            found.append((header.base_offset, header.last_offset))
    return found


def _sliced(data: bytes, ranges: list[AcquiredRange]) -> bytes:
    """Return the batches from the first acquired record to the last."""
    if not ranges:
        return b""
    first, last = ranges[0].first, ranges[-1].last
    return b"".join(
        raw
        for header, raw in batches_of(data)
        if header.last_offset >= first and header.base_offset <= last
    )


def _news(
    session: ShareSession, found: list[_Found], *, is_full: bool
) -> dict[SharedPartition, _Found]:
    """Return the partitions that the answer names: those with something to say."""
    news: dict[SharedPartition, _Found] = {}
    for one in found:
        is_due = session.partitions.get(one.key, False) or is_full
        if one.is_skipped:
            continue
        if one.refusal is not None or one.acquired or is_due:
            news[one.key] = one
            if one.key not in session.partitions:
                continue
            if one.records and not is_full:
                # Others come first next time.
                del session.partitions[one.key]
            session.partitions[one.key] = one.refusal is not None
    return news


def _answer(
    context: RequestContext[ShareFetchRequest],
    news: dict[SharedPartition, _Found],
    acked: dict[SharedPartition, Refusal | None],
) -> ShareFetchResponse:
    answer = ShareFetchResponse()
    hints = LeaderHints(context)
    for key in acked:
        news.setdefault(key, _Found(key))
    for topic_id, keys in by_topic_id(news).items():
        topic = ShareFetchableTopicResponse(topic_id=topic_id)
        answer.responses.append(topic)
        for key in keys:
            topic.partitions.append(_data(news[key], acked.get(key), hints))
    answer.node_endpoints = [
        NodeEndpoint(node_id=leader, host=host, port=port, rack=rack)
        for leader, host, port, rack in hints.endpoints()
    ]
    return answer


def _data(found: _Found, ack: Refusal | None, hints: LeaderHints) -> PartitionData:
    data = PartitionData(
        partition_index=found.key[1],
        records=found.records,
        acquired_records=[
            AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in found.acquired
        ],
    )
    if found.refusal is not None:
        found.refusal.write_to(data)
        hints.add(found.key, found.refusal.code, data.current_leader)
    if ack is not None:
        data.acknowledge_error_code = ack.code
        data.acknowledge_error_message = ack.message
        hints.add(found.key, ack.code, data.current_leader)
    return data
