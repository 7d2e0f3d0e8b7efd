"""Offsets that leaders know: the start of a log, its end, the first after a time.

Each partition's leader is asked (ListOffsets), all leaders at the same time, by
`kafkaio._client.fanout`. `OffsetLookup` does not know of consumers: it needs a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from kafkaio._arguments import partition_of, type_name
from kafkaio._client.destinations import Leader
from kafkaio._client.fanout import Answer, Operation, Results, Terms
from kafkaio._client.retry import Attempts
from kafkaio._runtime.clock import now, wall_ms
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    UnsupportedVersion,
)
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafkaio.types import OffsetAndTimestamp, TopicPartition

if TYPE_CHECKING:
    from datetime import datetime

    from kafkaio._client.ports import ClusterPort
    from kafkaio._machines.positions import Reset

    #: Which offset of a log is asked for. A number is milliseconds since 1970.
    Moment: TypeAlias = Literal["earliest", "latest"] | datetime | int

    #: The same, and places that only administrators ask for.
    AdminMoment: TypeAlias = (
        Moment
        | Literal[
            "max_timestamp",
            "earliest_local",
            "latest_tiered",
            "earliest_pending_upload",
        ]
    )

#: Times with a meaning of their own in ListOffsets.
LATEST: Final = -1
EARLIEST: Final = -2
_WORDS: Final = {
    "latest": LATEST,
    "earliest": EARLIEST,
    "max_timestamp": -3,
    "earliest_local": -4,
    "latest_tiered": -5,
    "earliest_pending_upload": -6,
}
#: The versions of ListOffsets that know the last, and Kafka's that know those.
_KNOWN_FROM: Final = {-3: (7, "3.0"), -4: (8, "3.6"), -5: (9, "3.9"), -6: (11, "4.2")}

_CONSUMER: Final = -1
_NO_OFFSET: Final = -1
#: From this version on ListOffsets carries a timeout (KIP-1075).
_WITH_TIMEOUT: Final = 10


#: The result for a partition: None if its log has no such offset.
_Found = OffsetAndTimestamp | None


class OffsetLookup:
    """Looks offsets up.

    Args:
        cluster: the way to the cluster.
        isolation_level: 1 takes the end to be the last stable offset.
    """

    def __init__(self, cluster: ClusterPort, isolation_level: int) -> None:
        self._cluster = cluster
        self._isolation_level = isolation_level

    async def offsets(
        self, times: Mapping[TopicPartition, int], *, within: float
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look up the offset of a time for each partition.

        Args:
            times: milliseconds since the Unix epoch, `LATEST` or `EARLIEST`.
            within: seconds for all of it, retries included.

        Returns:
            The first offset whose record is not older; None where there is none.

        Raises:
            UnknownTopicOrPartition: the partition does not exist.
            BrokerError: a broker refused, and asking again cannot help.
            RequestTimeout: the time is over; the cause says what happened last.
        """
        deadline = now() + within
        await self._cluster.wait_for_partitions(times, within)
        results = await self._cluster.ask(
            self._offsets_of(times), times, deadline - now(), stops_at_failure=True
        )
        return results.or_raise()

    async def each(
        self, times: Mapping[TopicPartition, int], *, within: float
    ) -> Results[TopicPartition, OffsetAndTimestamp | None]:
        """Look up the offset of a time for each partition; each fails for itself.

        Args:
            times: as for `offsets`, or another time with a meaning of its own.
            within: seconds for all of it, retries included.
        """
        deadline = now() + within
        missing = await self._cluster.missing_partitions(times, within)
        results = await self._cluster.ask(
            self._offsets_of(times),
            [tp for tp in times if tp not in missing],
            deadline - now(),
        )
        results.failed |= missing
        return results

    async def places(
        self, resets: Mapping[TopicPartition, Reset], *, within: float
    ) -> dict[TopicPartition, int]:
        """Look up where each reset leads, as `resets` does, until all are found.

        Raises:
            BrokerError: a broker refused, and asking again cannot help.
            RequestTimeout: the time is over; the cause says what happened last.
        """
        attempts = Attempts(
            "look up the offsets to begin at", self._cluster.retry_policy, within
        )
        found: dict[TopicPartition, _Found] = {}
        left = dict(resets)
        while left:
            result = await self.resets(left, within=attempts.within(within))
            for error in result.failed.values():
                raise error
            found |= result.found
            # Only partitions whose leader moved or did not answer; one pause for all.
            left = {tp: left[tp] for tp in result.again}
            for error in result.again.values():
                await attempts.pause(error)
                break
        return {tp: place.offset for tp, place in found.items() if place is not None}

    async def resets(
        self, resets: Mapping[TopicPartition, Reset], *, within: float
    ) -> Results[TopicPartition, OffsetAndTimestamp | None]:
        """Look up where each reset leads; each leader is asked once or twice.

        A time before now is looked up in two steps, the end of the log first. If no
        record is that new, reading begins at this end, as it was *before* the second
        lookup, so that records appended in between are not skipped (KIP-1106).
        """
        # A caller that has a reset has loaded the module already.
        from kafkaio._machines.positions import ResetTo

        # The first step has the ends, also for resets by duration.
        times = {
            tp: EARLIEST if reset.to is ResetTo.EARLIEST else LATEST
            for tp, reset in resets.items()
        }
        deadline = now() + within
        result = await self._ask_once(times, within)
        moments = {
            tp: wall_ms() - reset.duration_ms
            for tp, reset in resets.items()
            if reset.to is ResetTo.DURATION and tp in result.found
        }
        if moments:
            later = await self._ask_once(moments, deadline - now())
            # Without its second step a partition has no result: its end alone would
            # skip all records of the duration.
            for tp in [*later.again, *later.failed]:
                del result.found[tp]
            result.again |= later.again
            result.failed |= later.failed
            result.found |= {tp: o for tp, o in later.found.items() if o is not None}
        return result

    async def _ask_once(
        self, times: Mapping[TopicPartition, int], within: float
    ) -> Results[TopicPartition, _Found]:
        return await self._cluster.ask_once(self._offsets_of(times), times, within)

    def _offsets_of(
        self, times: Mapping[TopicPartition, int]
    ) -> Operation[TopicPartition, _Found, ListOffsetsResponse]:
        def build(items: Sequence[TopicPartition], terms: Terms) -> ListOffsetsRequest:
            for tp in items:
                # Older brokers do not refuse such a time: they would take it for a
                # moment before 1970, and answer with the first record.
                if times[tp] >= EARLIEST:
                    continue
                least, since = _KNOWN_FROM.get(times[tp], (0, ""))
                if terms.version < least:
                    raise UnsupportedVersion(
                        f"such an offset of {tp.topic}-{tp.partition} needs Kafka "
                        f"{since} or later"
                    )
            return self._request({tp: times[tp] for tp in items}, terms)

        return Operation(
            what="look up the offset of",
            request=ListOffsetsRequest,
            destination=Leader,
            build=build,
            read=_read,
        )

    def _request(
        self, times: Mapping[TopicPartition, int], terms: Terms
    ) -> ListOffsetsRequest:
        topics: dict[str, ListOffsetsTopic] = {}
        cluster = self._cluster.view
        for tp, time in times.items():
            topic = topics.get(tp.topic)
            if topic is None:
                topic = topics[tp.topic] = ListOffsetsTopic(name=tp.topic)
            view = cluster.partition(tp)
            topic.partitions.append(
                ListOffsetsPartition(
                    partition_index=tp.partition,
                    current_leader_epoch=-1 if view is None else view.leader_epoch,
                    timestamp=time,
                )
            )
        return ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=self._isolation_level,
            topics=list(topics.values()),
            timeout_ms=terms.timeout_ms if terms.version >= _WITH_TIMEOUT else 0,
        )


def _read(
    response: ListOffsetsResponse, _: Sequence[TopicPartition]
) -> Iterator[Answer[TopicPartition, _Found]]:
    for topic in response.topics:
        for item in topic.partitions:
            tp = TopicPartition(topic.name, item.partition_index)
            found = None
            if item.offset != _NO_OFFSET and not item.error_code:
                found = OffsetAndTimestamp(
                    item.offset, item.timestamp, item.leader_epoch
                )
            yield Answer(tp, found, item.error_code)


def times_of(moments: Mapping[TopicPartition, Moment]) -> dict[TopicPartition, int]:
    """Return the times to ask for, by partition, from the argument of a user.

    Raises:
        ArgumentTypeError: they are not a mapping, a key is not a partition, or a value
            is not a str, datetime or int.
        ArgumentValueError: a word is unknown, a datetime has no time zone, or a time
            is before 1970.
    """
    _check_mapping(moments)
    return {partition_of(tp): time_of(moment) for tp, moment in moments.items()}


def places_of(
    moments: Mapping[TopicPartition, AdminMoment],
) -> dict[TopicPartition, int]:
    """Return the times to ask for, as `times_of`, also for administrators' places.

    Raises:
        ArgumentTypeError: as `times_of`.
        ArgumentValueError: as `times_of`.
    """
    _check_mapping(moments)
    times: dict[TopicPartition, int] = {}
    for tp, moment in moments.items():
        time = _WORDS.get(moment) if isinstance(moment, str) else None
        times[partition_of(tp)] = time_of(moment) if time is None else time
    return times


def _check_mapping(moments: object) -> None:
    if not isinstance(moments, Mapping):
        raise ArgumentTypeError(
            "partitions must be a mapping from TopicPartition to 'earliest', 'latest' "
            f"or a time, not {type_name(moments)}"
        )


def time_of(moment: object) -> int:
    """Return the time to ask for, from one value of `times_of`.

    Raises:
        ArgumentTypeError: as `times_of`.
        ArgumentValueError: as `times_of`.
    """
    if moment == "earliest":
        return EARLIEST
    if moment == "latest":
        return LATEST
    if isinstance(moment, int) and not isinstance(moment, bool):
        time = moment
    elif isinstance(moment, str):
        raise ArgumentValueError(
            f"{moment!r} is not a place in a log: give 'earliest', 'latest', a "
            "datetime or milliseconds since the Unix epoch"
        )
    else:
        time = _time_of_datetime(moment)
    if time < 0:
        raise ArgumentValueError(f"the time {moment} is before 1970")
    return time


def _time_of_datetime(moment: object) -> int:
    # A millisecond to load, and most programs do without.
    from datetime import UTC, datetime, timedelta

    if not isinstance(moment, datetime):
        raise ArgumentTypeError(
            "a place in a log must be 'earliest', 'latest', a datetime or an int of "
            f"milliseconds, not {type_name(moment)}"
        )
    if moment.tzinfo is None:
        raise ArgumentValueError(
            f"the datetime {moment.isoformat()} has no time zone; without one it "
            "is ambiguous"
        )
    # Rounded up: a record of the millisecond before is older.
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return -((epoch - moment) // timedelta(milliseconds=1))
