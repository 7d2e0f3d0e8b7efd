"""The ranges of offsets that a user names: topics, a place to begin and one to end.

A place is the beginning or the end of the logs, a time, or an offset for each
partition. `LogRanges` converts all places to offsets, once, so that records that are
written later are not part of the ranges.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final, SupportsIndex, TypeAlias

from kafkaio._arguments import check_topic, partition_of, type_name
from kafkaio._client.offsets import LATEST, OffsetLookup, time_of
from kafkaio._dataclass import dataclass
from kafkaio._runtime.clock import now
from kafkaio.errors import ArgumentTypeError, ArgumentValueError, OffsetOutOfRange
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import OffsetRange, TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.offsets import Moment
    from kafkaio._client.ports import ClusterPort

    #: Where to begin or to end: a place in all logs, or an offset or a place for each
    #: of some partitions.
    Bound: TypeAlias = Moment | Mapping[TopicPartition, Moment]

#: Smaller numbers are offsets by mistake, not times: this one is in March 1973.
_LEAST_TIME: Final = 100_000_000_000

_Offsets: TypeAlias = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which partitions are read.

    Attributes:
        topics: names of topics, of which all partitions are read.
        partitions: single partitions.
    """

    topics: tuple[str, ...]
    partitions: tuple[TopicPartition, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The topics of all of them."""
        return tuple({*self.topics, *(tp.topic for tp in self.partitions)})


@dataclass(frozen=True, slots=True)
class Edge:
    """Where ranges begin, or where they end.

    Attributes:
        offsets: an offset for each of some partitions.
        times: a time for each of others: milliseconds since the Unix epoch, ``LATEST``
            or ``EARLIEST`` of `kafkaio._client.offsets`.
        otherwise: the time for all other partitions.
    """

    offsets: Mapping[TopicPartition, int]
    times: Mapping[TopicPartition, int]
    otherwise: int

    def time(self, tp: TopicPartition) -> int | None:
        """Return the time for a partition; None if the edge is an offset."""
        return None if tp in self.offsets else self.times.get(tp, self.otherwise)


def selection_of(topic: object) -> Selection:
    """Return which partitions a user names.

    Raises:
        ArgumentTypeError: they are neither the name of a topic, nor a TopicPartition,
            nor a collection of these.
        ArgumentValueError: a name is empty, a partition negative, or nothing is named.
    """
    one = isinstance(topic, str | TopicPartition)
    if not one and not isinstance(topic, Iterable):
        raise ArgumentTypeError(
            "topic must be str, a TopicPartition or a collection of these, not "
            f"{type_name(topic)}"
        )
    items: list[object] = [topic] if one else list(topic)  # type: ignore[call-overload]
    if not items:
        raise ArgumentValueError("topic must name a topic or a partition, not nothing")
    topics: dict[str, None] = {}
    partitions: dict[TopicPartition, None] = {}
    for item in items:
        if isinstance(item, tuple):
            partitions[_partition_of(item)] = None
        else:
            check_topic(item)
            topics[str(item)] = None
    return Selection(tuple(topics), tuple(partitions))


def edge_of(name: str, given: object, otherwise: int) -> Edge:
    """Return where ranges begin or end, from the argument of a user.

    Args:
        name: of the argument, for messages.
        given: ``"earliest"``, ``"latest"``, a datetime, milliseconds since the Unix
            epoch; or a mapping from partitions to offsets, words and datetimes.
        otherwise: the time for partitions that a mapping does not name.

    Raises:
        ArgumentTypeError: it is something else.
        ArgumentValueError: an offset is negative, a word is unknown, a datetime has no
            time zone, or a number is too small to be a time.
    """
    if not isinstance(given, Mapping):
        given = _number_of(given)
        if type(given) is int and 0 <= given < _LEAST_TIME:
            raise ArgumentValueError(
                f"{name}={given} would be a time in milliseconds, before March 1973; "
                f"give an offset for each partition: {{TopicPartition(...): {given}}}"
            )
        return Edge({}, {}, time_of(given))
    places, times = {}, {}
    for key, place in given.items():
        tp, value = _partition_of(key), _number_of(place)
        if type(value) is not int:
            times[tp] = time_of(value)
        elif value < 0:
            raise ArgumentValueError(f"{name} has the negative offset {value}")
        else:
            places[tp] = value
    return Edge(places, times, otherwise)


def _partition_of(item: object) -> TopicPartition:
    if isinstance(item, tuple) and len(item) == 2:
        item = (item[0], _number_of(item[1]))
    return partition_of(item)


def _number_of(value: object) -> object:
    """Return integers of other kinds, such as those of NumPy, as int."""
    if isinstance(value, SupportsIndex) and not isinstance(value, int):
        return operator.index(value)
    return value


def check_edges(selection: Selection, start: Edge, end: Edge) -> None:
    """Check the edges of ranges against each other and against the selection.

    Raises:
        ArgumentValueError: an edge names a partition that is not read, or an offset to
            end at is before the one to begin at.
    """
    for name, edge in (("start", start), ("end", end)):
        for tp in [*edge.offsets, *edge.times]:
            if tp.topic not in selection.topics and tp not in selection.partitions:
                raise ArgumentValueError(
                    f"{name} names {tp.topic}-{tp.partition}, which is not read"
                )
    for tp in start.offsets.keys() & end.offsets.keys():
        first, last = start.offsets[tp], end.offsets[tp]
        if first > last:
            raise ArgumentValueError(
                f"the range of {tp.topic}-{tp.partition} would end at {last}, before "
                f"its start {first}"
            )


class LogRanges:
    """Looks up the ranges that a user names.

    Args:
        cluster: the way to the cluster.
        isolation_level: 1 takes the end of a log to be the last stable offset.
        within: seconds for all of it.
    """

    def __init__(
        self, cluster: ClusterPort, isolation_level: int, within: float
    ) -> None:
        self._cluster = cluster
        self._isolation_level = isolation_level
        self._deadline = now() + within

    async def find(
        self, selection: Selection, start: Edge, end: Edge
    ) -> list[OffsetRange]:
        """Return the ranges, at most one for each partition, sorted.

        A partition without offsets between its start and its end is left out.

        Raises:
            OffsetOutOfRange: an offset to begin at is after the end of its log.
            UnknownTopicOrPartition: the topic or partition does not exist.
            AuthorizationError: the client may not describe a topic.
            RequestTimeout: no answer came in time.
            BrokerError: a broker refused, and asking again cannot help.
        """
        wanted = await self._partitions(selection, start, end)
        # The ends of the logs are looked up first. Records that the later lookups find
        # behind these ends were written meanwhile, and are not read.
        whole = dict.fromkeys((tp for tp in wanted if tp not in end.offsets), LATEST)
        latest = await self._look_up(whole)
        await self._check_starts(start, latest)
        starts = await self._resolve(start, wanted, latest)
        ends = await self._resolve(end, wanted, latest)
        ranges = []
        for tp in wanted:
            first, last = starts.get(tp), ends.get(tp)
            if tp in latest:
                last = latest[tp] if last is None else min(last, latest[tp])
            # No start: every record is older than the time. Equal places: no records.
            if first is not None and last is not None and first < last:
                ranges.append(OffsetRange(tp, first, last))
        return ranges

    async def _partitions(
        self, selection: Selection, *edges: Edge
    ) -> list[TopicPartition]:
        numbers = await self._cluster.partitions_for(selection.names, self._left())
        found = {TopicPartition(t, n) for t in numbers for n in numbers[t]}
        named = {tp for edge in edges for tp in [*edge.offsets, *edge.times]}
        for tp in sorted(named.union(selection.partitions) - found):
            raise broker_error(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {tp.topic!r} has no partition {tp.partition}",
            )
        topics = frozenset(selection.topics)
        return sorted(
            {tp for tp in found if tp.topic in topics}.union(selection.partitions)
        )

    async def _resolve(
        self, edge: Edge, wanted: Collection[TopicPartition], latest: _Offsets
    ) -> _Offsets:
        """Return the offsets of an edge; none where every record is older."""
        found = {tp: edge.offsets[tp] for tp in wanted if tp in edge.offsets}
        times: dict[TopicPartition, int] = {}
        for tp in wanted:
            time = edge.time(tp)
            if time == LATEST and tp in latest:
                # Not looked up again: the log may have grown since.
                found[tp] = latest[tp]
            elif time is not None:
                times[tp] = time
        return found | await self._look_up(times)

    async def _check_starts(self, start: Edge, latest: _Offsets) -> None:
        """Refuse offsets to begin at that their logs never had, or have lost."""
        beyond = {tp for tp, end in latest.items() if start.offsets.get(tp, 0) > end}
        if beyond and self._isolation_level:
            # With read_committed the end is the last stable offset. An offset between
            # it and the high watermark exists: records of open transactions are there.
            latest = await self._look_up(dict.fromkeys(beyond, LATEST), level=0)
        for tp in sorted(beyond):
            offset, end = start.offsets[tp], latest[tp]
            if offset > end:
                raise OffsetOutOfRange(
                    f"{tp.topic}-{tp.partition} cannot be read from offset {offset} "
                    f"on: its log ends at {end}",
                    topic=tp.topic,
                    partition=tp.partition,
                    position=offset,
                    latest=end,
                )

    async def _look_up(
        self, times: Mapping[TopicPartition, int], level: int | None = None
    ) -> _Offsets:
        if not times:
            return {}
        lookup = OffsetLookup(
            self._cluster, self._isolation_level if level is None else level
        )
        found = await lookup.offsets(times, within=self._left())
        return {tp: place.offset for tp, place in found.items() if place is not None}

    def _left(self) -> float:
        return max(0.0, self._deadline - now())
