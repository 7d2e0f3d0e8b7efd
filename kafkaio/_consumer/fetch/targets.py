"""Chooses the partitions of each broker's next fetch, and its size in bytes.

Two limits bound how far fetching runs ahead of the reader. The byte budget
(``fetch_buffer_bytes``, or a part of it, see `kafkaio._machines.read_ahead`) is shared
by all brokers: while it is used up nothing is fetched, and there is plenty to read. A
partition whose share of the budget is full is left out alone, so that it does not delay
the others.

Shares are exceeded all the same: by what a fetch brings beside them, by large batches,
and by records that are being worked on. Where several tasks read, slow ones could so
keep the budget from the others. After a while without room a little is fetched beside
it of the partitions of which nothing is here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from kafkaio._config import ConsumerConfig
from kafkaio._consumer.reading.buffers import Buffers, Fetched
from kafkaio._dataclass import dataclass
from kafkaio._fetching.brokers import FetchBrokers, target_of
from kafkaio._fetching.messages import have_ids
from kafkaio._machines.fetch_session import FetchTarget
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.positions import FetchPoint, Positions
from kafkaio._machines.read_ahead import ANSWERS, ReadAhead
from kafkaio._named_tuple import NamedTuple
from kafkaio._runtime.clock import now
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ViewPort

#: Answers' worth of bytes that a partition may have buffered.
_DEPTH: Final = 2
#: The part of the buffer that is fetched beside the budget at a time, and the size of
#: what is buffered, in buffers, from which on nothing is.
_BESIDE: Final = 8
_AT_MOST: Final = 2


class RecordsPort(Protocol):
    """The partitions that are read, and the records fetched from them.

    `kafkaio._consumer.reading.reader.Reader` satisfies it. Fetching needs neither a
    consumer nor a group.

    Attributes:
        positions: the offset at which the next fetch of each partition begins.
        buffers: records that were fetched and not taken yet.
        wake_below: ``on_room`` is called once at most this many bytes are unread.
        on_room: called when there is room to fetch more.
        selected: the partitions that are read; None for all. They are fetched first.
        is_awaited: returns whether a read waits for records.
    """

    positions: Positions
    buffers: Buffers
    wake_below: int
    on_room: Callable[[], None]
    selected: frozenset[TopicPartition] | None
    is_awaited: Callable[[], bool]

    @property
    def progress(self) -> int:
        """A number that grows whenever the user takes something."""
        ...

    @property
    def is_divided(self) -> bool:
        """Whether several tasks read, each at its own pace."""
        ...

    def add(self, tp: TopicPartition, fetched: Fetched) -> None:
        """Buffer the records fetched from a partition."""

    def fail(self, error: BaseException) -> None:
        """Raise ``error`` once where records are awaited."""

    def reset_position(self, tp: TopicPartition) -> None:
        """Apply the reset policy: the position is outside the log."""

    def created_again(self, tp: TopicPartition) -> None:
        """Find another position: the topic was deleted and created again."""

    def set_aside(self) -> None:
        """Bring the positions up to date with the records being handed out."""


class ReservationPort(Protocol):
    """The bytes that a broker's fetch loop has reserved.

    Attributes:
        reserved: bytes that the fetch in flight may bring; 0 while there is none.
    """

    reserved: int


@dataclass(frozen=True, slots=True)
class FetchChoice:
    """The partitions to fetch from a broker. The dictionaries are never changed.

    Attributes:
        points: the partitions, and from where.
        targets: their entries in the fetch.
        max_bytes: the sum of the entries' limits.
        has_ids: whether the ids of all topics are known.
        is_short: whether a partition was left out because its share is full.
    """

    points: Mapping[TopicPartition, FetchPoint]
    targets: Mapping[TopicPartition, FetchTarget]
    max_bytes: int
    has_ids: bool
    is_short: bool


class _Inputs(NamedTuple):
    """The inputs of a choice: while they are equal, so is the choice.

    The numbers count changes. ``view`` is compared by identity, as an immutable
    snapshot; ``favoured`` are the partitions that the fetch is limited to.
    """

    positions: int
    buffers: int
    brokers: int
    limits: int
    view: ClusterView
    favoured: frozenset[TopicPartition] | None


class _Chosen(NamedTuple):
    """A choice with its inputs, and the time when it expires."""

    inputs: _Inputs
    until: float
    choice: FetchChoice


class FetchTargets:
    """Chooses the partitions of the next fetch from a broker, and its size.

    Args:
        cluster: has the leaders.
        config: the consumer's options.
        records: has the positions and the buffers.
        loops: the brokers' fetch loops, by node id; changed by the Fetcher.

    Attributes:
        brokers: the broker that each partition is fetched from.
    """

    def __init__(
        self,
        cluster: ViewPort,
        config: ConsumerConfig,
        records: RecordsPort,
        loops: Mapping[int, ReservationPort],
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._records = records
        self._loops = loops
        # The number of brokers that lead assigned partitions.
        self._brokers = 0
        # Larger limits for partitions whose next batch did not fit.
        self._max_bytes: dict[TopicPartition, int] = {}
        self._ahead = ReadAhead(config.fetch_buffer_bytes)
        # Whether records were dropped for the partitions that are read. The others are
        # not fetched again until all are read: the same would be dropped once more.
        self._has_dropped = False
        # Which of the partitions of which nothing is here comes first.
        self._turn = 0
        # How often the limits of partitions changed.
        self._changes = 0
        # The last choice for each broker. While nothing changes it stays the same
        # object, so that the fetches of an idle consumer do not pay for its partitions.
        self._chosen: dict[int, _Chosen] = {}
        # The last target of each partition, with its inputs. Unchanged targets stay the
        # same objects, which `FetchSession` compares by identity.
        self._asked: dict[
            TopicPartition, tuple[FetchPoint, ClusterView, FetchTarget]
        ] = {}
        self.brokers: FetchBrokers = FetchBrokers(cluster, config.client_rack)

    def forget(self, tp: TopicPartition) -> None:
        """Drop the state of a partition that is not assigned any more."""
        self.shrink(tp)
        self._asked.pop(tp, None)
        self.brokers.leave_replica(tp)

    def forget_broker(self, node_id: int) -> None:
        """Drop the state of a broker that is not fetched from any more."""
        self._chosen.pop(node_id, None)

    # ---- which broker --------------------------------------------------------------

    def count_brokers(self) -> None:
        """Count the brokers that share the budget again."""
        nodes = {self.brokers.node_of(tp) for tp in self._records.positions}
        self._brokers = len(nodes - {None})

    # ---- which partitions ----------------------------------------------------------

    def from_broker(self, node_id: int) -> FetchChoice:
        """Return the partitions to fetch from a broker now."""
        inputs, at = self._inputs(), now()
        chosen = self._chosen.get(node_id)
        if chosen is None or at >= chosen.until or not _are_same(inputs, chosen.inputs):
            choice = self._choose(node_id, inputs, at)
            chosen = _Chosen(inputs, self._valid_until(at), choice)
            self._chosen[node_id] = chosen
        if chosen.choice.is_short:
            self._wait_for_room()
        return chosen.choice

    def _inputs(self) -> _Inputs:
        records = self._records
        favoured = records.selected
        if favoured is None:
            self._has_dropped = False
        elif not (self._has_dropped or self._is_half_full()):
            favoured = None
        return _Inputs(
            records.positions.changes,
            records.buffers.changes,
            self.brokers.changes,
            self._changes,
            self._cluster.view,
            favoured,
        )

    def _valid_until(self, at: float) -> float:
        retry_at = self._records.positions.next_retry(at)
        until = self.brokers.valid_until()
        return until if retry_at is None else min(until, retry_at)

    def _choose(self, node_id: int, inputs: _Inputs, at: float) -> FetchChoice:
        get, node_of = self._records.buffers.get, self.brokers.node_of
        share, favoured = self._share(), inputs.favoured
        points: dict[TopicPartition, FetchPoint] = {}
        targets: dict[TopicPartition, FetchTarget] = {}
        is_short = False
        for point in self._records.positions.fetchable(at):
            tp = point.tp
            if node_of(tp) != node_id:
                continue
            buffer = get(tp)
            if buffer is not None and buffer.failure is not None:
                continue  # until it was raised nothing is fetched
            is_full = buffer is not None and buffer.size >= share
            if is_full or (favoured is not None and tp not in favoured):
                is_short = True
                continue
            points[tp] = point
            targets[tp] = self._target(point)
        return FetchChoice(
            points,
            targets,
            sum(target.max_bytes for target in targets.values()),
            have_ids(targets.values()),
            is_short,
        )

    def next_retry(self, since: float) -> float | None:
        """Return when the next partition that waits after an error is due.

        Args:
            since: a time before the check that found nothing to fetch: a partition
                that became due after it is due at once.
        """
        return self._records.positions.next_retry(since)

    def progress(self) -> int:
        """A number that grows when the user takes something."""
        return self._records.progress

    def _share(self) -> int:
        partitions = max(1, len(self._records.positions))
        budget = self._ahead.size // partitions
        return max(1, min(_DEPTH * self._config.max_partition_fetch_bytes, budget))

    def _target(self, point: FetchPoint) -> FetchTarget:
        # With many partitions only a few move from one fetch to the next.
        tp, view = point.tp, self._cluster.view
        size = self.max_bytes(tp)
        asked = self._asked.get(tp)
        if asked is not None:
            for_point, seen, target = asked
            if for_point is point and seen is view and target.max_bytes == size:
                return target
        target = target_of(view, tp, point.offset, size)
        self._asked[tp] = point, view, target
        return target

    # ---- how many bytes ------------------------------------------------------------

    def max_bytes(self, tp: TopicPartition) -> int:
        """Return the most bytes of a partition that one fetch asks for."""
        return self._max_bytes.get(tp, self._config.max_partition_fetch_bytes)

    def grow(self, tp: TopicPartition, max_bytes: int) -> None:
        """Ask for more of a partition: its next batch did not fit."""
        self._max_bytes[tp] = max_bytes
        self._changes += 1

    def shrink(self, tp: TopicPartition) -> None:
        """Ask for as much as usual of a partition: its batch has come."""
        if self._max_bytes.pop(tp, None) is not None:
            self._changes += 1

    def answered(self, node_id: int, size: int) -> None:
        """Note an answer of so many bytes, before its records are buffered."""
        loop, records = self._loops.get(node_id), self._records
        if loop is None or 2 * size < loop.reserved or not size:
            return  # it says nothing about the reader
        is_awaited = records.is_awaited() or not records.buffers.has_any
        if self._ahead.answered(is_awaited=is_awaited):
            self._changes += 1  # so did the share of each partition

    def room(self) -> int:
        """Return the bytes that the next fetch may bring; 0 with too little room.

        A fetch keeps its room until it is answered, which may take long. So each
        broker that leads a partition gets no more than its share, including brokers
        without a fetch so far, and one more share is left for a new broker.
        """
        room = self._free_room()
        if not room and self._records.buffers.compact():
            room = self._free_room()
        if not room and self._records.selected is not None:
            self._make_room()
            room = self._free_room()
        if not room:
            self._wait_for_room()
        return room

    def _is_half_full(self) -> bool:
        return 2 * self._records.buffers.size > self._ahead.size

    def _make_room(self) -> None:
        # What is buffered of partitions that nobody reads would keep those that are
        # read from being fetched, for ever. So half of it is fetched again later.
        records, selected = self._records, self._records.selected
        if selected is None or not self._is_half_full():
            return
        records.set_aside()
        for tp in records.positions:
            if tp in selected or records.positions[tp].is_paused:
                continue  # what is buffered of a paused partition does not count
            if records.buffers.size_of(tp):
                records.buffers.drop(tp)
                records.positions.fetch_again(tp)
                self._has_dropped = True
                if not self._is_half_full():
                    return

    def _free_room(self) -> int:
        budget = self._ahead.limit
        reserved = [loop.reserved for loop in self._loops.values() if loop.reserved]
        free = self._ahead.size - self._records.buffers.size - sum(reserved)
        brokers = max(self._brokers, len(self._loops), 1)
        idle = max(brokers - len(reserved), 1)
        # Not too little either: the cost of a fetch grows with its partitions, however
        # few bytes it brings.
        least = max(
            1,
            min(self._config.max_partition_fetch_bytes, budget // (4 * brokers)),
            budget // (8 * brokers),
        )
        room = free // (idle + 1)
        if room < least:
            room = free // idle
        if room < least:
            return 0
        return min(room, self._config.fetch_max_bytes, max(least, budget // ANSWERS))

    def empty_handed(self, node_id: int) -> tuple[dict[FetchPoint, FetchTarget], int]:
        """Return the partitions of a broker of which nothing is here.

        They are fetched where there was no room for a while, each a little, so that
        the first of them leave something to the others.

        Returns:
            Their entries, and the most bytes to fetch of them all; 0 for none.
        """
        records, limit = self._records, self._ahead.limit
        buffers, node_of = records.buffers, self.brokers.node_of
        if not records.is_divided or buffers.size >= _AT_MOST * limit:
            return {}, 0
        points = [
            point
            for point in records.positions.fetchable(now())
            if node_of(point.tp) == node_id and buffers.has_nothing(point.tp)
        ]
        if not points:
            return {}, 0
        # The first one may bring a batch that is larger.
        self._turn = (self._turn + 1) % len(points)
        most = max(1, limit // _BESIDE // max(1, self._brokers))
        little = max(1, most // len(points))
        view = self._cluster.view
        return {
            point: target_of(view, point.tp, point.offset, little)
            for point in points[self._turn :] + points[: self._turn]
        }, most

    def has_room_beside(self) -> bool:
        """Whether there is room for one partition beside a fetch in flight."""
        free = self._ahead.size - self._records.buffers.size
        return free >= self._config.max_partition_fetch_bytes

    def _wait_for_room(self) -> None:
        # Not with every batch that is taken: wake up after half an answer's worth.
        step = self._config.max_partition_fetch_bytes // 2
        self._records.wake_below = max(0, self._records.buffers.unread - step)


def _are_same(inputs: _Inputs, before: _Inputs) -> bool:
    # Comparing two views by value would compare the metadata of all topics.
    return inputs.view is before.view and inputs == before
