"""Fetches ranges of offsets, one after the other, each time that it is asked.

A `RangeFetcher` has no task. It has at most one fetch in flight and one answer that is
being read, a `RangePart`. `RangeFetcher.part` returns the answer that comes next, and
has written the fetch after it to the connection by then: the broker works while the
caller reads, also if the caller stops the event loop in between.

Invariants:

- The *position* is the offset up to which the caller has accepted what it read
  (`RangeFetcher.accept`). Whatever fails, and whoever is cancelled, reading goes on
  from there: no record is lost, and none is read twice.
- The fetch in flight begins where the part that is being read ends: in the same range
  if that goes on, else at the start of the next one. `RangeFetcher.rewind` drops both.
- A range ends when the position reaches its end. Compaction, aborted transactions and
  markers leave offsets without records, so the last record of a range may be far from
  its end, and nothing is fetched from the end on.

A fetch is outside of any fetch session (KIP-227): it asks for one partition, so that a
session would save nothing, and would take one of the places that a broker has for
sessions until it is closed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol
from uuid import UUID

import anyio

from kafkaio._machines.fetch_session import FetchPlan
from kafkaio._machines.reactions import Step, reaction
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._records.batch import Batch, Decompressor
from kafkaio._runtime.clock import now
from kafkaio.client import offsets
from kafkaio.client.offsets import EARLIEST, LATEST, OffsetLookup
from kafkaio.client.retry import Attempts
from kafkaio.config import ClientConfig
from kafkaio.errors import (
    BrokerError,
    CorruptRecord,
    KafkaError,
    KafkaTimeout,
    LogTruncated,
    NetworkError,
    OffsetOutOfRange,
    RecordTooLarge,
    UnknownTopicOrPartition,
)
from kafkaio.fetching.brokers import FetchBrokers, KnownCluster, target_of
from kafkaio.fetching.messages import (
    FetchLimits,
    answers,
    fetch_request,
    highest_version,
    sessionless,
)
from kafkaio.fetching.parts import (
    AT_ONCE,
    SLICE,
    IsolationFilter,
    LeaderHints,
    Unreadable,
    batches_of,
    bytes_needed,
    found_leader,
    isolation_of,
    too_large,
    unreadable,
)
from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.broker_errors import broker_error
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from kafkaio.types import OffsetRange, TopicPartition

__all__ = ["RangeFetcher", "RangePart"]

#: How long a broker may wait for records that a range claims and the log has not.
_WAIT_MS: Final = 500
#: Bytes of a record, where none has been seen; a little more than most have.
_RECORD: Final = 1024
#: Bytes to ask for beyond what the rest of a range is expected to take: its last batch
#: may go on after the end.
_MARGIN: Final = 65_536
#: How much denser than what was read the rest of a range may be.
_SLACK: Final = 1.25


class Cluster(KnownCluster, LeaderHints, offsets.Cluster, Protocol):
    """What reading ranges needs of the cluster."""

    def borrow_class(
        self, kind: ConnectionClass, borrower: object, /
    ) -> ConnectionClass:
        """Lend a class of connections that nobody else uses meanwhile."""
        ...

    def return_class(self, lent: ConnectionClass, /) -> None:
        """Take back a class of connections."""

    def ready_connection(
        self, node_id: int, connection_class: ConnectionClass, /
    ) -> Connection | None:
        """The open connection to a broker, or None."""
        ...

    async def connection(
        self, node_id: int, connection_class: ConnectionClass, /
    ) -> Connection:
        """The connection to a broker, opened if there is none."""
        ...

    async def check_topics(self, topics: Sequence[str], timeout: float) -> None:  # noqa: ASYNC109
        """Check that topics exist, without creating them."""
        ...


class _NothingYet(KafkaError):
    """A broker has no records at an offset before the end of a range."""

    retriable = True


class _Flight:
    """A fetch in flight, and what became of it; see `kafkaio._net.connection.Reply`.

    Attributes:
        index: the number of its range.
        offset: where it begins.
        plan: what it asks for.
        max_bytes: how many bytes of records it asks for.
        is_follower: whether a follower was asked.
        response: the answer, once it has come.
        error: why there is none.
    """

    __slots__ = (
        "_is_dropped",
        "_waiter",
        "error",
        "index",
        "is_follower",
        "max_bytes",
        "offset",
        "plan",
        "response",
    )

    def __init__(
        self, index: int, offset: int, plan: FetchPlan, max_bytes: int
    ) -> None:
        self.index: int = index
        self.offset: int = offset
        self.plan: FetchPlan = plan
        self.max_bytes: int = max_bytes
        self.response: FetchResponse | None = None
        self.error: Exception | None = None
        self._is_dropped = False
        self._waiter: asyncio.Future[None] | None = None

    def drop(self) -> None:
        """Have the answer dropped when it comes."""
        self._is_dropped = True
        self.response = None

    def done(self) -> bool:
        """Whether nobody needs the answer any more."""
        return self._is_dropped

    def set_result(self, response: FetchResponse) -> None:
        """Take the answer."""
        self.response = response
        self._wake()

    def set_exception(self, error: Exception) -> None:
        """Take the reason why there is none."""
        self.error = error
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def has_ended(self) -> bool:
        """Whether there is an answer, or a reason why there is none."""
        return self.response is not None or self.error is not None

    async def wait(self) -> None:
        """Wait for the answer, or for the reason why there is none."""
        while not self.has_ended:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter


class RangePart:
    """The batches of one range that one fetch has brought.

    Read it as ``while (batch := part.next()) is not None: ...; part.advance()``.

    Args:
        index: the number of its range.
        within: the range.
        offset: where the fetch began.
        batches: whole batches, at least one; the first may begin before the offset, and
            the last may go on after the end of the range.
        isolation: which of them the user gets.

    Attributes:
        index: the number of its range.
        within: the range.
        position: records before it are not part of the rest.
        next_offset: where the fetch after this part begins.
    """

    __slots__ = ("_batches", "_isolation", "index", "next_offset", "position", "within")

    def __init__(
        self,
        index: int,
        within: OffsetRange,
        offset: int,
        batches: Sequence[Batch],
        isolation: IsolationFilter,
    ) -> None:
        self.index: int = index
        self.within: OffsetRange = within
        self.position: int = offset
        self.next_offset: int = max(offset, batches[-1].next_offset)
        self._batches = deque(batches)
        self._isolation = isolation

    @property
    def is_read(self) -> bool:
        """Whether nothing is left of it."""
        return not self._batches

    def next(self) -> Batch | None:
        """Return the next batch with records of the range, whose checksum is right.

        Raises:
            CorruptRecord: the checksum is wrong; nothing in the batch is believed.
        """
        while self._batches:
            if self.position >= self.within.end:
                self._batches.clear()
                break
            batch = self._batches[0]
            self.check(batch)
            try:
                passes = self._isolation.passes(batch)
            except CorruptRecord as error:
                self.locate(error)
                raise
            if passes and batch.next_offset > self.position:
                return batch
            self.advance()
        return None

    def check(self, batch: Batch) -> None:
        """Verify the checksum of a batch.

        Raises:
            CorruptRecord: it is wrong; the error says where the batch is.
        """
        try:
            batch.check_crc()
        except CorruptRecord as error:
            tp = self.within.partition
            unreadable(error, batch, tp, self.position, is_sound=False)
            raise

    async def prepare(self) -> None:
        """Decompress the next batch, with turns of the event loop if it is large.

        Raises:
            CorruptRecord: it cannot be read.
            RecordTooLarge: it decompresses to more than the limit.
        """
        if (batch := self.next()) is None:
            return
        most = AT_ONCE
        try:
            while not batch.prepare(most):
                await asyncio.sleep(0)
                most = SLICE
        except (CorruptRecord, RecordTooLarge) as error:
            self.locate(error)
            raise

    def locate(self, error: Unreadable) -> None:
        """Say in an error that the next batch cannot be read, unless it says so."""
        if error.topic_partition is None:
            batch, tp = self._batches[0], self.within.partition
            unreadable(error, batch, tp, self.position, is_sound=True)

    @property
    def is_prepared(self) -> bool:
        """Whether the batch that `next` returned can be read at once."""
        return self._batches[0].prepare(AT_ONCE)

    def advance(self) -> None:
        """Note that the batch that `next` returned was read."""
        batch = self._batches.popleft()
        self.position = max(self.position, batch.next_offset)


class RangeFetcher:
    """Fetches ranges of offsets.

    Args:
        cluster: the way to the cluster.
        config: the client's options.
        ranges: the ranges, in the order in which they are read.
        isolation_level: 1 leaves aborted transactions out.
        fetch_bytes: the most bytes of one answer, unless a batch is larger.
        borrower: who reads; while it lives, and until `close`, the fetcher has
            connections of its own.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ClientConfig,
        ranges: Sequence[OffsetRange],
        *,
        isolation_level: int,
        fetch_bytes: int,
        borrower: object,
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._ranges = tuple(each for each in ranges if each.start < each.end)
        self._isolation_level = isolation_level
        self._fetch_bytes = fetch_bytes
        # Fetches that wait at a broker delay nobody else's.
        self._connection_class = cluster.borrow_class(ConnectionClass.FETCH, borrower)
        self._brokers = FetchBrokers(cluster)
        self._decompressor = Decompressor()
        self._is_checked = False
        # How far the caller has come: the number of the range, and the offset.
        self._index = 0
        self._position = self._ranges[0].start if self._ranges else 0
        self._part: RangePart | None = None
        self._flight: _Flight | None = None
        # The bytes that the batch at the position needs, if it did not fit.
        self._needed = 0
        # Bytes per offset in the last answer of each topic.
        self._density: dict[str, float] = {}
        # The ids that the topics had when they were first fetched.
        self._topic_ids: dict[str, UUID] = {}
        # Of the range that is fetched: the epoch of its last batch, -1 if there is
        # none, and the epoch of the leader whose log is known to have that batch.
        self._last_epoch = -1
        self._leader_epoch = -1

    async def part(self) -> RangePart | None:
        """Return what comes next, with the fetch after it on its way.

        The same part is returned until it is read. If the call is cancelled, or raises,
        another call goes on at the same position.

        Returns:
            The part; None if everything is read.

        Raises:
            OffsetOutOfRange: the log does not have the range.
            LogTruncated: a new leader's log has lost what was read.
            UnknownTopicOrPartition: there is no such topic or partition.
            RecordTooLarge: a batch is larger than ``max_response_size``.
            RequestTimeout: there was nothing for ``default_api_timeout_ms``.
            BrokerError: a broker refused, and asking again cannot help.
        """
        attempts = Attempts(
            self._what(),
            self._cluster.retry_policy,
            self._config.default_api_timeout_ms / 1000,
            surfaced=(UnknownTopicOrPartition,),
        )
        if self._ranges and not self._is_checked:
            await self._check(attempts)
        while True:
            self._end_ranges()
            point = self._next_point()
            if point is not None and self._flight is None:
                error = await self._launch(*point)
                if error is not None and self._part is None:
                    await self._fail(error, attempts)
            if self._part is not None:
                return self._part
            if self._flight is None:
                if point is None:
                    return None
            else:
                await self._receive(self._flight, attempts)

    def accept(self) -> None:
        """Note that the part was read up to its position."""
        part = self._part
        if part is not None:
            self._index, self._position = part.index, part.position

    def rewind(self) -> None:
        """Fetch again from the position that was accepted last."""
        self._part = None
        if self._flight is not None:
            self._flight.drop()
            self._flight = None

    def close(self) -> None:
        """Read nothing more; leave the connections to the next reader."""
        self.rewind()
        self._cluster.return_class(self._connection_class)
        self._ranges, self._index = (), 0

    # ---- where reading is ----------------------------------------------------------

    def _end_ranges(self) -> None:
        """Leave a part that was read, and a range whose end was reached."""
        part = self._part
        if part is not None and part.is_read:
            self._part = None
        if self._part is not None or self._index == len(self._ranges):
            return
        if self._position >= self._ranges[self._index].end:
            self._index += 1
            if self._index < len(self._ranges):
                self._position = self._ranges[self._index].start

    def _next_point(self) -> tuple[int, int] | None:
        """Where the next fetch begins; None if everything was fetched."""
        index, offset = self._index, self._position
        if self._part is not None:
            index, offset = self._part.index, self._part.next_offset
            if offset >= self._ranges[index].end:
                index += 1
                offset = self._ranges[index].start if index < len(self._ranges) else 0
        return (index, offset) if index < len(self._ranges) else None

    async def _check(self, attempts: Attempts) -> None:
        partitions = [each.partition for each in self._ranges]
        topics = sorted({tp.topic for tp in partitions})
        left = self._config.default_api_timeout_ms / 1000
        await self._cluster.check_topics(topics, attempts.within(left))
        await self._cluster.wait_for_partitions(partitions, attempts.within(left))
        self._is_checked = True

    async def _fail(self, error: KafkaError, attempts: Attempts) -> None:
        """Wait for the back-off after a failure that may pass; raise any other."""
        if not error.retriable:
            raise error
        attempts.what = self._what()
        await attempts.pause(error)

    def _what(self) -> str:
        if self._index >= len(self._ranges):
            return "read ranges"
        tp, _, end = self._ranges[self._index]
        return f"read {tp.topic}-{tp.partition} from offset {self._position} to {end}"

    # ---- one fetch -----------------------------------------------------------------

    async def _launch(self, index: int, offset: int) -> KafkaError | None:
        """Send a fetch; returns why that was not possible."""
        cluster, within = self._cluster, self._ranges[index]
        tp = within.partition
        node_id = self._brokers.node_of(tp)
        if node_id is None:
            return self._leaderless(tp)
        if offset == within.start:
            self._last_epoch = -1
        if (error := await self._validate(tp, offset)) is not None:
            return error
        connection = cluster.ready_connection(node_id, self._connection_class)
        if connection is None:
            try:
                connection = await cluster.connection(node_id, self._connection_class)
            except NetworkError as failure:
                cluster.request_refresh(tp.topic)
                return failure
        max_bytes = self._max_bytes(within, offset)
        target = target_of(cluster.view, tp, offset, max_bytes)
        if target.topic_id.int:
            # A topic that was deleted and created again has other records.
            first_id = self._topic_ids.setdefault(tp.topic, target.topic_id)
            if target.topic_id != first_id:
                code = ErrorCode.UNKNOWN_TOPIC_ID
                return UnknownTopicOrPartition(
                    f"topic {tp.topic!r} was deleted and created again meanwhile",
                    code=code,
                    name=code.name,
                )
        plan = sessionless(connection.versions.usable(FetchRequest), {tp: target})
        limits = FetchLimits(
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=self._isolation_level,
            rack=self._config.client_rack,
        )
        self._flight = _Flight(index, offset, plan, max_bytes)
        connection.submit_to(
            self._flight,
            fetch_request(plan, limits),
            timeout=(self._config.request_timeout_ms + _WAIT_MS) / 1000,
            max_version=highest_version(plan),
        )
        return None

    async def _validate(self, tp: TopicPartition, offset: int) -> KafkaError | None:
        """Check that a new leader's log has what was read (KIP-320)."""
        view = self._cluster.view.partition(tp)
        epoch = -1 if view is None else view.leader_epoch
        is_known = epoch in {-1, self._leader_epoch, self._last_epoch}
        if self._last_epoch >= 0 and not is_known:
            from kafkaio.fetching.epochs import EpochLookup  # rarely needed

            seconds = self._config.request_timeout_ms / 1000
            lookup = EpochLookup(self._cluster, seconds)
            result = await lookup.ask({tp: self._last_epoch})
            for error in (*result.failed.values(), *result.again.values()):
                return error
            end = result.found[tp]
            if end is not None and end.offset < offset:
                return LogTruncated(tp.topic, tp.partition, offset, end.offset)
        self._leader_epoch = epoch
        return None

    def _leaderless(self, tp: TopicPartition) -> KafkaError:
        self._cluster.request_refresh(tp.topic)
        name = f"{tp.topic}-{tp.partition}"
        if self._cluster.view.partition(tp) is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return broker_error(code, f"the cluster does not describe {name}")
        return broker_error(ErrorCode.LEADER_NOT_AVAILABLE, f"{name} has no leader now")

    def _max_bytes(self, within: OffsetRange, offset: int) -> int:
        if self._needed:
            return self._needed
        # No more than the rest of the range is likely to take.
        density = self._density.get(within.partition.topic)
        each = _RECORD if density is None else density * _SLACK
        expected = int((within.end - offset) * each) + _MARGIN
        return min(self._fetch_bytes, expected)

    async def _receive(self, flight: _Flight, attempts: Attempts) -> None:
        """Wait for the answer, and make a part of it."""
        with anyio.CancelScope(deadline=attempts.deadline):
            await flight.wait()
        if not flight.has_ended:
            raise attempts.expired()
        self._flight = None
        error = flight.error
        if error is None:
            assert flight.response is not None
            error = await self._land(flight, flight.response)
        elif isinstance(error, NetworkError | KafkaTimeout):
            tp = self._ranges[flight.index].partition
            self._cluster.request_refresh(tp.topic)
        if isinstance(error, KafkaError):
            await self._fail(error, attempts)
        elif error is not None:
            raise error

    async def _land(
        self, flight: _Flight, response: FetchResponse
    ) -> KafkaError | None:
        """Read an answer; returns what is to be waited for before the next fetch."""
        tp = self._ranges[flight.index].partition
        if response.error_code:
            return _refusal(response.error_code, tp, flight.offset)
        data = answers(flight.plan, response).get(tp)
        if data is None:
            return NetworkError(f"{_what(tp, flight.offset)}: the answer leaves it out")
        if data.error_code:
            return await self._on_error(flight, tp, data, response)
        if data.records:
            return self._on_records(flight, data)
        if data.preferred_read_replica >= 0:
            until = now() + self._config.metadata_max_age_ms / 1000
            self._brokers.prefer_replica(tp, data.preferred_read_replica, until)
            return None
        return self._nothing_yet(self._ranges[flight.index], flight.offset, data)

    def _on_records(self, flight: _Flight, data: PartitionData) -> KafkaError | None:
        within = self._ranges[flight.index]
        tp = within.partition
        batches, error = batches_of(
            data,
            tp,
            flight.offset,
            self._decompressor,
            self._config.max_decompressed_batch_size,
        )
        if not batches:
            if error is not None:
                raise error
            needed = bytes_needed(data, flight.max_bytes)
            if needed >= self._config.max_response_size:
                limit = self._config.max_response_size
                raise too_large(tp, flight.offset, needed, limit, data)
            self._needed = needed
            return None
        # What is wrong after the batches is seen by the fetch that begins there.
        self._needed = 0
        part = RangePart(
            flight.index,
            within,
            flight.offset,
            batches,
            isolation_of(data, self._isolation_level),
        )
        span = part.next_offset - flight.offset
        if span <= 0:
            for batch in batches:  # one that is corrupt may claim any offset
                part.check(batch)
            what = _what(tp, flight.offset)
            return NetworkError(f"{what}: the answer has older records only")
        self._last_epoch = batches[-1].leader_epoch
        self._density[tp.topic] = len(data.records or b"") / span
        self._part = part
        return None

    def _nothing_yet(
        self, within: OffsetRange, offset: int, data: PartitionData
    ) -> KafkaError:
        end, kind = data.high_watermark, "high watermark"
        if self._isolation_level and 0 <= data.last_stable_offset < end:
            end, kind = data.last_stable_offset, "last stable offset"
        tp = within.partition
        return _NothingYet(
            f"{tp.topic}-{tp.partition} has no records at offset {offset}: its {kind} "
            f"is {end}, and the range ends at {within.end}"
        )

    # ---- errors --------------------------------------------------------------------

    async def _on_error(
        self,
        flight: _Flight,
        tp: TopicPartition,
        data: PartitionData,
        response: FetchResponse,
    ) -> KafkaError | None:
        error = _refusal(data.error_code, tp, flight.offset)
        what = reaction(ApiKey.FETCH, data.error_code)
        if self._brokers.leave_replica(tp):
            # The leader's log may have what a follower lacks.
            passing = NetworkError(f"a follower refused: {error}")
            passing.__cause__ = error
            return passing
        if what.step is Step.RESET_POSITION:
            raise await self._out_of_range(self._ranges[flight.index], flight.offset)
        if what.refresh_metadata and found_leader(self._cluster, tp, data, response):
            return None
        return error

    async def _out_of_range(self, within: OffsetRange, offset: int) -> KafkaError:
        tp, start, end = within
        bounds: list[int] = []
        cause: KafkaError | None = None
        lookup = OffsetLookup(self._cluster, self._isolation_level)
        seconds = self._config.request_timeout_ms / 1000
        for moment in (EARLIEST, LATEST):
            try:
                found = await lookup.offsets({tp: moment}, within=seconds)
            except KafkaError as failure:
                bounds, cause = [-1, -1], failure
                break
            place = found[tp]
            bounds.append(-1 if place is None else place.offset)
        earliest, latest = bounds
        has = f"its log has {earliest} to {latest}" if cause is None else str(cause)
        error = OffsetOutOfRange(
            f"the range {start} to {end} of {tp.topic}-{tp.partition} cannot be read "
            f"from offset {offset} on: {has}",
            topic=tp.topic,
            partition=tp.partition,
            position=offset,
            earliest=earliest,
            latest=latest,
        )
        error.__cause__ = cause
        return error


def _refusal(code: int, tp: TopicPartition, offset: int) -> BrokerError:
    what = _what(tp, offset)
    return broker_error(code, what, api=ApiKey.FETCH, topic=tp.topic)


def _what(tp: TopicPartition, offset: int) -> str:
    return f"fetch {tp.topic}-{tp.partition} from offset {offset}"
