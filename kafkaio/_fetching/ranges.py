"""Fetches ranges of offsets on demand, many with one request.

`kafkaio._machines.ranges.RangeSchedule` decides what is fetched from which broker, and
which range is read next. A `RangeFetcher` sends the fetches, one at a time to each
broker, and reads the answers. When `RangeFetcher.part` returns the next `RangePart`,
the fetches after it are written to the connections: the brokers work while the caller
reads, even if the caller blocks the event loop in between.

It has no task of its own, except while it opens the connection to a broker or asks a
new leader whether its log has the records that were read: a broker that is gone must
not delay the others. Such a task ends with the answer, or with its time limit.

Invariants:

- The *position* of a range is the offset up to which the caller has accepted records
  (`RangeFetcher.accept`). After any failure or cancellation reading goes on from there:
  no record is lost, and none is read twice.
- An answer counts for a range only if the range still waits for the fetch. A range that
  was taken back (`RangeFetcher.take_back`) waits for none.
- A range ends when the position reaches its end. Compaction, aborted transactions and
  markers leave offsets without records, so the last record of a range may be far from
  its end.
- All records of a topic in one reader are of one topic id. A topic that is created
  again before anything of it was read is read as it is now, unless the caller has given
  its id.

Fetches are outside of any fetch session (KIP-227): each names other ranges, and a
session would occupy one of the broker's slots until it is closed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import UUID

from kafkaio._client.offsets import EARLIEST, LATEST, OffsetLookup
from kafkaio._client.retry import Attempts
from kafkaio._config import ClientConfig
from kafkaio._fetching.brokers import FetchBrokers, target_of
from kafkaio._fetching.messages import (
    FetchLimits,
    answers,
    fetch_request,
    highest_version,
    sessionless,
)
from kafkaio._fetching.parts import (
    AT_ONCE,
    SLICE,
    IsolationFilter,
    Unreadable,
    batches_of,
    bytes_needed,
    found_leader,
    isolation_of,
    too_large,
    unreadable,
)
from kafkaio._machines.fetch_session import FetchPlan, FetchTarget
from kafkaio._machines.ranges import FetchedAnswer, RangeSchedule, RangeState
from kafkaio._machines.reactions import ReactionStep, reaction
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._records.batch import Batch, Decompressor
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.wakeup import Wakeup
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
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from kafkaio.types import OffsetRange, TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ClusterPort

#: How long a broker may wait for records that a range claims and the log has not.
_WAIT_MS: Final = 500
#: Seconds to wait for a range while there are records of later ones.
_PATIENCE: Final = 0.5
#: How often metadata is fetched for topics whose id is not the expected one.
_CHECKS: Final = 3


#: The contents of a flight: partitions, their ranges, and the offsets asked for.
_Asked: TypeAlias = Sequence[tuple[TopicPartition, RangeState, int]]


class _NothingYet(KafkaError):
    """A broker has no records at an offset before the end of a range."""

    retriable = True


class _Flight:
    """A fetch in flight, and its result; see `kafkaio._net.connection.Reply`.

    Attributes:
        node: the broker that was asked.
        sent_at: when.
        ranges: the ranges that it asks for, by their partitions.
        plan: the plan of the request.
        max_bytes: the most bytes of records that it asks for.
        response: the answer, once it has arrived.
        error: the reason why there is none.
    """

    __slots__ = (
        "_is_dropped",
        "_on_end",
        "error",
        "max_bytes",
        "node",
        "plan",
        "ranges",
        "response",
        "sent_at",
    )

    def __init__(
        self,
        node: int,
        ranges: Mapping[TopicPartition, RangeState],
        plan: FetchPlan,
        max_bytes: int,
        on_end: Callable[[_Flight], None],
    ) -> None:
        self.node: int = node
        self.sent_at: float = now()
        self.ranges: Mapping[TopicPartition, RangeState] = ranges
        self.plan: FetchPlan = plan
        self.max_bytes: int = max_bytes
        self.response: FetchResponse | None = None
        self.error: Exception | None = None
        self._on_end = on_end
        self._is_dropped = False

    def drop(self) -> None:
        """Have the answer dropped when it comes."""
        self._is_dropped = True

    def done(self) -> bool:
        """Whether nobody needs the answer any more."""
        return self._is_dropped

    def set_result(self, response: FetchResponse) -> None:
        """Take the answer."""
        self.response = response
        self._on_end(self)

    def set_exception(self, error: Exception) -> None:
        """Take the reason why there is none."""
        self.error = error
        self._on_end(self)

    def asks(self) -> Iterator[tuple[TopicPartition, RangeState, int]]:
        """Yield the ranges that still wait for it, with the offsets asked for."""
        # A range that was taken back meanwhile has another request, or none.
        for tp, each in self.ranges.items():
            if each.request is self:
                yield tp, each, self.plan.wanted[tp].offset


class RangePart:
    """The batches of one range that one fetch has brought.

    Read it as ``while (batch := part.next()) is not None: ...; part.advance()``.

    Args:
        state: the progress of the range.
        offset: the offset of the fetch.
        batches: whole batches, at least one; the first may begin before the offset, and
            the last may go on after the end of the range.
        isolation: decides which of them the user gets.

    Attributes:
        state: the progress of the range.
        within: the range.
        position: the offset up to which the part was read.
        next_offset: the offset at which the next fetch begins.
    """

    __slots__ = ("_batches", "_isolation", "next_offset", "position", "state", "within")

    def __init__(
        self,
        state: RangeState,
        offset: int,
        batches: Sequence[Batch],
        isolation: IsolationFilter,
    ) -> None:
        self.state: RangeState = state
        self.within: OffsetRange = state.within
        self.position: int = offset
        self.next_offset: int = max(offset, batches[-1].next_offset)
        self._batches = deque(batches)
        self._isolation = isolation

    @property
    def is_read(self) -> bool:
        """Whether it was read to its end."""
        return not self._batches

    def next(self) -> Batch | None:
        """Return the next batch with records of the range, whose checksum is right.

        Raises:
            CorruptRecord: the checksum is wrong, so nothing in the batch is reliable.
        """
        while self._batches:
            if self.position >= self.within.end:
                self._batches.clear()
                break
            batch = self._batches[0]
            # Before the filter, which would read a corrupt header.
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
        # The first slice is larger: a batch of normal size needs no turn of the loop.
        most = AT_ONCE
        try:
            while not batch.prepare(most):
                await asyncio.sleep(0)
                most = SLICE
        except (CorruptRecord, RecordTooLarge) as error:
            self.locate(error)
            raise

    def locate(self, error: Unreadable) -> None:
        """Add the place of the next batch to an error that has none."""
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
        topic_ids: the ids that topics had when the ranges were chosen.
        borrower: the reader; until it is collected, or until `close`, the fetcher has
            connections of its own.
    """

    def __init__(  # noqa: PLR0913 - the arguments of `read_ranges`
        self,
        cluster: ClusterPort,
        config: ClientConfig,
        ranges: Sequence[OffsetRange],
        *,
        isolation_level: int,
        fetch_bytes: int,
        topic_ids: Mapping[str, UUID],
        borrower: object,
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._isolation_level = isolation_level
        self._ranges = RangeSchedule(
            [each for each in ranges if each.start < each.end],
            fetch_bytes=fetch_bytes,
            backoff=cluster.retry_policy.backoff,
        )
        # Of its own: a fetch that waits at a broker delays the requests behind it.
        self._connection_class = cluster.borrow_class(ConnectionClass.FETCH, borrower)
        self._brokers = FetchBrokers(cluster, config.client_rack)
        self._decompressor = Decompressor()
        self._is_checked = False
        self._wakeup = Wakeup()
        self._flights: set[_Flight] = set()
        # Flights that have ended, with answers that were not read yet.
        self._ended: list[_Flight] = []
        # The ids of the topics: as given by the caller, else as of the first answer.
        self._topic_ids = dict(topic_ids)

    async def part(self) -> RangePart | None:
        """Return the next part, after sending the fetches that follow it.

        The same part is returned until it is read. If the call is cancelled, or raises,
        another call goes on at the same positions.

        Returns:
            The part; None if everything is read.

        Raises:
            OffsetOutOfRange: the log does not have the range.
            LogTruncated: a new leader's log has lost records that were read.
            UnknownTopicOrPartition: there is no such topic or partition, or the topic
                was deleted and made again.
            RecordTooLarge: a batch is larger than ``max_response_size``.
            RequestTimeout: there was nothing for ``default_api_timeout_ms``.
            BrokerError: a broker refused, and asking again cannot help.
        """
        ranges = self._ranges
        attempts = Attempts(
            "read ranges",
            self._cluster.retry_policy,
            self._config.default_api_timeout_ms / 1000,
            surfaced=(UnknownTopicOrPartition,),
        )
        if not self._is_checked:
            await self._check(attempts)
        # When to read later ranges first; the deadline stands for never.
        until = attempts.deadline
        while True:
            # Before choosing: a retry that becomes due meanwhile is not missed.
            began_at = now()
            # Send before returning a part: brokers work while the caller reads it.
            self._take_answers()
            self._send_all()
            if (part := await self._next()) is not None or ranges.is_done():
                return part
            if now() >= attempts.deadline:
                raise self._expired(attempts)
            # The range whose turn it is has let others wait for long enough.
            if now() >= until:
                ranges.pass_over()
                until = attempts.deadline
                continue
            if until == attempts.deadline and ranges.has_parts():
                until = min(until, now() + _PATIENCE)
            await self._wait(began_at, until)

    async def _next(self) -> RangePart | None:
        each = self._ranges.turn()
        if each is None:
            return None
        if (part := self.first_part(each)) is not None:
            return part
        # Raised once: another call fetches the range again.
        error, each.final = each.final, None
        assert error is not None  # else it was not its turn
        if type(error) is OffsetOutOfRange:  # and not LogTruncated
            error = await self._out_of_range(each)
        raise error

    @staticmethod
    def first_part(each: RangeState) -> RangePart | None:
        """Return the part of a range that is read next."""
        if not each.parts:
            return None
        part = each.parts[0][0]
        assert isinstance(part, RangePart)
        return part

    def following(self) -> RangePart | None:
        """Return the next part, if it has arrived."""
        each = self._ranges.turn()
        return None if each is None else self.first_part(each)

    def accept(self, part: RangePart) -> None:
        """Note that a part, the first one of its range, was read up to its position."""
        self._ranges.accept(part.state)

    def take_back(self, each: RangeState, accepted: int) -> None:
        """Fetch a range again from an offset that was accepted before."""
        self._ranges.take_back(each, accepted)

    def remaining(self) -> list[OffsetRange]:
        """Return the rest of the ranges, from the accepted positions on."""
        return [
            OffsetRange(each.within.partition, each.accepted, each.within.end)
            for each in self._ranges.unread()
        ]

    def close(self) -> None:
        """Read nothing more; leave the connections to the next reader."""
        # The connections stay open for the next reader, so answers still arrive there.
        for flight in self._flights:
            flight.drop()
        self._flights.clear()
        self._cluster.return_class(self._connection_class)

    # ---- before the first fetch ------------------------------------------------------

    async def _check(self, attempts: Attempts) -> None:
        """Check that the partitions exist, and that the topics have the given ids."""
        partitions = [each.within.partition for each in self._ranges.unread()]
        topics = sorted({tp.topic for tp in partitions})
        left = self._config.default_api_timeout_ms / 1000
        if topics:
            await self._cluster.check_topics(topics, attempts.within(left))
            await self._cluster.wait_for_partitions(partitions, attempts.within(left))
        for check in range(_CHECKS):
            # The view may be old, and brokers learn of a new topic at different times:
            # an id that differs is checked again before it is an error.
            if not (others := self._remade(topics)):
                break
            if check:
                await attempts.pause(self._other_id(others[0]))
            self._cluster.request_refresh(*others)
            await self._cluster.wait_for_update(attempts.within(left))
        self._is_checked = True

    def _remade(self, topics: Sequence[str]) -> list[str]:
        """Return the topics whose ids differ from those expected."""
        view = self._cluster.view
        return [
            topic
            for topic in topics
            if topic in self._topic_ids
            and (known := view.topic_id(topic)) is not None
            and known != self._topic_ids[topic]
        ]

    @staticmethod
    def _other_id(topic: str) -> UnknownTopicOrPartition:
        code = ErrorCode.UNKNOWN_TOPIC_ID
        return UnknownTopicOrPartition(
            f"topic {topic!r} was deleted and created again meanwhile",
            code=code,
            name=code.name,
        )

    # ---- waiting ---------------------------------------------------------------------

    async def _wait(self, since: float, until: float) -> None:
        due = self._ranges.next_due(since)
        await self._wakeup.wait(until if due is None else min(until, due))

    def _expired(self, attempts: Attempts) -> KafkaError:
        unread = self._ranges.unread()
        late = next((each for each in unread if each.failure is not None), unread[0])
        (topic, partition), _, end = late.within
        attempts.what = f"read {topic}-{partition} from offset {late.accepted} to {end}"
        if late.failure is not None:
            attempts.note(late.failure)
        return attempts.expired()

    def _failed(self, each: RangeState, error: KafkaError) -> None:
        """Note a failure of one range, which is fetched again if that may help."""
        if not error.retriable:
            self._ranges.refuse(each, error)
            return
        failures, delay = self._ranges.failed(each, error, now(), roll())
        self._report(each, failures, delay, error)

    def _node_failed(
        self, node: int, ranges: Iterable[RangeState], error: KafkaError, since: float
    ) -> None:
        """Note that a broker did not answer a fetch of that time for some ranges."""
        ranges = list(ranges)
        # Of a follower nothing is final: the leaders have the records, too.
        was_follower = self._brokers.failed(node, now() - since)
        if not (error.retriable or was_follower):
            for each in ranges:
                self._ranges.refuse(each, error)
            return
        failures, delay = self._ranges.node_failed(node, now(), roll())
        for each in ranges:
            each.failure = error
        if ranges:
            self._report(ranges[0], failures, delay, error)

    def _report(
        self, each: RangeState, failures: int, delay: float, error: KafkaError
    ) -> None:
        what = f"read {_name(each.within.partition)} from offset {each.next_offset}"
        self._cluster.retry_policy.observer.retrying(what, failures, delay, error)

    # ---- sending ---------------------------------------------------------------------

    def _send_all(self) -> None:
        """Send a fetch to each broker that has ranges to fetch."""
        brokers = len(self._cluster.view.brokers)
        choice = self._ranges.choose(self._brokers.node_of, brokers, now())
        for each in choice.leaderless:
            self._failed(each, self._leaderless(each.within.partition))
        for node, group in choice.groups.items():
            # Never wait here: opening a connection would delay all other brokers.
            connection = self._cluster.ready_connection(node, self._connection_class)
            moved = [each for each in group if self._has_moved(each)]
            if connection is None or moved:
                self._prepare(node, group, moved)
            else:
                self._send(node, connection, group)

    def _leaderless(self, tp: TopicPartition) -> KafkaError:
        self._cluster.request_refresh(tp.topic)
        if self._cluster.view.partition(tp) is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return broker_error(code, f"the cluster does not describe {_name(tp)}")
        code = ErrorCode.LEADER_NOT_AVAILABLE
        return broker_error(code, f"{_name(tp)} has no leader now")

    def _send(
        self, node: int, connection: Connection, group: Sequence[RangeState]
    ) -> None:
        view, ranges = self._cluster.view, self._ranges
        targets: dict[TopicPartition, FetchTarget] = {}
        asked: dict[TopicPartition, RangeState] = {}
        for each in group:
            tp = each.within.partition
            target = target_of(view, tp, each.next_offset, ranges.max_bytes(each))
            wanted = self._topic_ids.get(tp.topic)
            if target.topic_id.int and wanted is not None and target.topic_id != wanted:
                # The topic was deleted and created again: same name, other records.
                ranges.refuse(each, self._other_id(tp.topic))
                continue
            targets[tp], asked[tp] = target, each
        if not asked:
            return
        max_bytes = ranges.total_bytes(asked.values())
        plan = sessionless(connection.versions.usable(FetchRequest), targets)
        limits = FetchLimits(
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=self._isolation_level,
            rack=self._brokers.rack,
        )
        flight = _Flight(node, asked, plan, max_bytes, self._flight_ended)
        for each in asked.values():
            each.request = flight
        self._flights.add(flight)
        ranges.asking(node, max_bytes)
        connection.submit_to(
            flight,
            fetch_request(plan, limits),
            timeout=(self._config.request_timeout_ms + _WAIT_MS) / 1000,
            max_version=highest_version(plan),
        )

    def _flight_ended(self, flight: _Flight) -> None:
        self._ended.append(flight)
        self._wakeup.notify()

    # ---- connections and new leaders -------------------------------------------------

    def _has_moved(self, each: RangeState) -> bool:
        """Whether a new leader's log may lack records that were read (KIP-320)."""
        view = self._cluster.view.partition(each.within.partition)
        epoch = -1 if view is None else view.leader_epoch
        # No comparison if nothing was read, the epoch is unknown, this leader was
        # compared before, or the last batch is its own.
        if each.last_epoch < 0 or epoch in {-1, each.leader_epoch, each.last_epoch}:
            each.leader_epoch = epoch
            return False
        return True

    def _prepare(
        self, node: int, group: Sequence[RangeState], moved: Sequence[RangeState]
    ) -> None:
        """Open the connection to a broker, and validate ranges that have moved."""

        async def prepare() -> None:
            began = now()
            try:
                if moved:
                    await self._validate(moved)
                await self._cluster.connection(node, self._connection_class)
            except KafkaError as failure:
                topics = {each.within.partition.topic for each in group}
                self._cluster.request_refresh(*topics)
                self._node_failed(node, group, failure, began)
            finally:
                self._ranges.answered(node)
                self._wakeup.notify()

        # After `start_soon`, which raises if the client is closed: a broker that is
        # marked as busy would never be asked again.
        self._cluster.start_soon(prepare, f"ranges at {node}")
        self._ranges.asking(node)

    async def _validate(self, moved: Sequence[RangeState]) -> None:
        from kafkaio._fetching.epochs import EpochLookup  # rarely needed

        view = self._cluster.view
        seconds = self._config.request_timeout_ms / 1000
        asked = {
            each.within.partition: (each, each.next_offset, each.last_epoch)
            for each in moved
        }
        # The epochs now: the answer holds for the leader that is asked, and not for one
        # that the view may have when it arrives.
        epochs = {tp: view.partition(tp) for tp in asked}
        result = await EpochLookup(self._cluster, seconds).ask(
            {tp: last for tp, (_, _, last) in asked.items()}
        )
        for tp, (each, offset, last) in asked.items():
            if each.next_offset != offset or each.last_epoch != last:
                continue  # it was taken back meanwhile
            error = result.failed.get(tp) or result.again.get(tp)
            end = result.found.get(tp)
            if error is not None:
                self._failed(each, error)
            elif end is not None and end.offset < offset:
                truncated = LogTruncated(tp.topic, tp.partition, offset, end.offset)
                self._ranges.refuse(each, truncated)
            else:
                asked_of = epochs[tp]
                each.leader_epoch = -1 if asked_of is None else asked_of.leader_epoch

    # ---- answers ---------------------------------------------------------------------

    def _take_answers(self) -> None:
        """Process the flights that have ended."""
        while self._ended:
            flight = self._ended.pop(0)
            self._flights.discard(flight)
            self._ranges.answered(flight.node, flight.max_bytes)
            # Before `request` is reset, since `asks` compares it with the flight.
            asked = list(flight.asks())
            for _, each, _ in asked:
                each.request = None
            if flight.response is not None:
                self._read_answer(flight, flight.response, asked)
                continue
            error = flight.error
            if isinstance(error, NetworkError | KafkaTimeout):
                self._cluster.request_refresh(*{tp.topic for tp, _, _ in asked})
            if not isinstance(error, KafkaError):
                assert error is not None
                raise error
            states = [each for _, each, _ in asked]
            self._node_failed(flight.node, states, error, flight.sent_at)

    def _read_answer(
        self, flight: _Flight, response: FetchResponse, asked: _Asked
    ) -> None:
        """Read an answer."""
        if response.error_code:
            states = [each for _, each, _ in asked]
            if asked:
                tp, _, offset = asked[0]
                error = _refusal(response.error_code, tp, offset)
                self._node_failed(flight.node, states, error, flight.sent_at)
            return
        self._ranges.node_answered(flight.node)
        found = answers(flight.plan, response)
        answer = FetchedAnswer(flight.node, 0)
        empty: list[tuple[RangeState, PartitionData]] = []
        for tp, each, offset in asked:
            data = found.get(tp)
            if data is None:
                what = f"{_what(tp, offset)}: the answer leaves it out"
                self._failed(each, NetworkError(what))
            elif data.error_code:
                self._on_error(each, tp, data, response)
            elif data.records:
                self._pin(flight, tp)
                self._on_records(each, data, answer, flight.plan.wanted[tp].max_bytes)
            elif data.preferred_read_replica >= 0:
                until = now() + self._config.metadata_max_age_ms / 1000
                self._brokers.prefer_replica(tp, data.preferred_read_replica, until)
            else:
                self._pin(flight, tp)
                empty.append((each, data))
        # Last: whether the answer was full is known when all its records are counted.
        for each, data in empty:
            self._on_nothing(each, data, had_room=not answer.left)

    def _pin(self, flight: _Flight, tp: TopicPartition) -> None:
        """Remember the id of a topic from the first answer of its leader.

        Leaders before Kafka 3.1 are asked by name, so the id is that of the metadata.
        If the metadata was old, the topic later seems to be another one: a transient
        error is better than records of two topics.
        """
        topic_id = flight.plan.wanted[tp].topic_id
        if topic_id.int:
            self._topic_ids.setdefault(tp.topic, topic_id)

    def _on_records(
        self, each: RangeState, data: PartitionData, answer: FetchedAnswer, asked: int
    ) -> None:
        tp, offset = each.within.partition, each.next_offset
        batches, error = batches_of(
            data,
            tp,
            offset,
            self._decompressor,
            self._config.max_decompressed_batch_size,
        )
        if not batches:
            if error is not None:
                self._ranges.refuse(each, error)
                return
            needed = bytes_needed(data, asked)
            limit = self._config.max_response_size
            if needed < limit:
                each.needed = needed
            else:
                large = too_large(tp, offset, needed, limit, data)
                self._ranges.refuse(each, large)
            return
        # An error after the batches is found again by the fetch that begins there.
        isolation = isolation_of(data, self._isolation_level)
        part = RangePart(each, offset, batches, isolation)
        if part.next_offset <= offset:
            self._on_older(each, part, batches)
            return
        each.last_epoch = batches[-1].leader_epoch
        size = len(data.records or b"")
        self._ranges.received(each, part, answer, part.next_offset, size)

    def _on_older(
        self, each: RangeState, part: RangePart, batches: Sequence[Batch]
    ) -> None:
        """Handle an answer whose records are all before the offset."""
        try:
            for batch in batches:  # one that is corrupt may claim any offset
                part.check(batch)
        except CorruptRecord as error:
            self._ranges.refuse(each, error)
            return
        what = _what(each.within.partition, each.next_offset)
        older = NetworkError(f"{what}: the answer has older records only")
        self._failed(each, older)

    def _on_nothing(
        self, each: RangeState, data: PartitionData, *, had_room: bool
    ) -> None:
        """Handle an answer without records of a range.

        Either the log has none there yet, or other ranges have filled the answer.
        """
        # With read_committed the log ends, for this reader, at the last stable offset.
        end, kind = data.high_watermark, "high watermark"
        if self._isolation_level and 0 <= data.last_stable_offset < end:
            end, kind = data.last_stable_offset, "last stable offset"
        if end > each.next_offset and not had_room:
            each.is_tight = True
            return
        name = _name(each.within.partition)
        self._failed(
            each,
            _NothingYet(
                f"{name} has no records at offset {each.next_offset}: its {kind} is "
                f"{end}, and the range ends at {each.within.end}"
            ),
        )

    # ---- errors ----------------------------------------------------------------------

    def _on_error(
        self,
        each: RangeState,
        tp: TopicPartition,
        data: PartitionData,
        response: FetchResponse,
    ) -> None:
        error: KafkaError = _refusal(data.error_code, tp, each.next_offset)
        what = reaction(apis.FETCH, data.error_code)
        if self._brokers.refused(tp):
            # A follower may be behind: the leader's log may have the offset.
            passing = NetworkError(f"a follower refused: {error}")
            passing.__cause__ = error
            self._failed(each, passing)
        elif what.step is ReactionStep.RESET_POSITION:
            self._ranges.refuse(each, _no_such_offset(each, -1, -1, str(error)))
        elif not (
            what.refresh_metadata and found_leader(self._cluster, tp, data, response)
        ):
            self._failed(each, error)

    async def _out_of_range(self, each: RangeState) -> KafkaError:
        """Return the error for a range outside the log, with the bounds of the log."""
        tp = each.within.partition
        lookup = OffsetLookup(self._cluster, self._isolation_level)
        seconds = self._config.request_timeout_ms / 1000
        bounds: list[int] = []
        for moment in (EARLIEST, LATEST):
            try:
                found = await lookup.offsets({tp: moment}, within=seconds)
            except KafkaError as failure:
                unknown = _no_such_offset(each, -1, -1, str(failure))
                unknown.__cause__ = failure
                return unknown
            place = found[tp]
            bounds.append(-1 if place is None else place.offset)
        earliest, latest = bounds
        has = f"its log has {earliest} to {latest}"
        return _no_such_offset(each, earliest, latest, has)


def _no_such_offset(
    each: RangeState, earliest: int, latest: int, why: str
) -> OffsetOutOfRange:
    (topic, partition), start, end = each.within
    offset = each.next_offset
    return OffsetOutOfRange(
        f"the range {start} to {end} of {topic}-{partition} cannot be read from offset "
        f"{offset} on: {why}",
        topic=topic,
        partition=partition,
        position=offset,
        earliest=earliest,
        latest=latest,
    )


def _refusal(code: int, tp: TopicPartition, offset: int) -> BrokerError:
    what = _what(tp, offset)
    return broker_error(code, what, api=apis.FETCH, topic=tp.topic)


def _what(tp: TopicPartition, offset: int) -> str:
    return f"fetch {_name(tp)} from offset {offset}"


def _name(tp: TopicPartition) -> str:
    return f"{tp.topic}-{tp.partition}"
