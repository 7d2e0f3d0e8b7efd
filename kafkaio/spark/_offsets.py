"""Offsets of many partitions: their JSON, their bounds, limits, and lost records.

Everything here is a pure function, or an object that gets the time as an argument.
`kafkaio.spark._lookup` asks the cluster.

Offsets are those of Spark's own connector: for each partition, the offset of the next
record to read. Their JSON, ``{"orders": {"0": 23, "1": 7}}``, is written into Spark's
checkpoints, and means the same to the connector, so that a checkpoint can go from one
to the other and back.

The ids of the topics (KIP-516) stand beside them, each as the key of an empty object:
``{"orders": {"0": 23}, "kafkaio.topic-id:orders:4e5f...": {}}``. The connector finds no
offsets in an empty object, so it reads such a checkpoint, too. No topic can have such a
name, since none has a colon.

Signs of lost records are returned as sentences. The caller decides by
``failOnDataLoss`` whether they are an error or a warning. The ranges are those that the
connector would plan.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal, TypeAlias
from uuid import UUID

from kafkaio._named_tuple import NamedTuple
from kafkaio.errors import ConfigurationError
from kafkaio.spark._bounds import (
    EARLIEST,
    LATEST,
    AtOffsets,
    AtTime,
    AtTimes,
    Bound,
)
from kafkaio.spark._errors import listed
from kafkaio.types import OffsetAndTimestamp, OffsetRange, TopicPartition

#: The next offset to read of each partition.
Offsets: TypeAlias = Mapping[TopicPartition, int]
#: The question to a partition's leader: one of its ends, or a time in milliseconds.
Moment: TypeAlias = Literal["earliest", "latest"] | int

#: The beginning of the key of a topic's id, and the form of the id.
_ID: Final = "kafkaio.topic-id:"
_UUID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ENDS: Mapping[int, Moment] = {EARLIEST: "earliest", LATEST: "latest"}


def name_of(partition: TopicPartition) -> str:
    """Return the name of a partition in messages: ``orders-0``."""
    return f"{partition.topic}-{partition.partition}"


def _names_of(partitions: Iterable[TopicPartition]) -> str:
    return listed(map(name_of, sorted(partitions)))


# JSON.


def to_json(
    offsets: Offsets, topic_ids: Mapping[str, UUID] | None = None
) -> dict[str, dict[str, int]]:
    """Return offsets as Spark takes them, with the ids of their topics.

    Args:
        offsets: by partition.
        topic_ids: the ids that are known; those of other topics are left out.
    """
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    known = topic_ids or {}
    ids = {topic: known[topic] for topic in found if topic in known}
    return found | {f"{_ID}{topic}:{ids[topic]}": {} for topic in ids}


def from_json(value: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """Return the offsets that Spark hands over, from a checkpoint perhaps.

    Raises:
        ConfigurationError: they are not offsets: another source wrote the checkpoint.
    """
    found: dict[TopicPartition, int] = {}
    for topic, numbers in value.items():
        if not isinstance(numbers, Mapping):
            raise _foreign(value)
        # The ids of topics are empty objects: nothing is found in them.
        for number, offset in numbers.items():
            if not re.fullmatch("[0-9]+", number) or type(offset) is not int:
                raise _foreign(value)
            found[TopicPartition(topic, int(number))] = offset
    return found


def topic_ids_of(value: Mapping[str, object]) -> dict[str, UUID]:
    """Return the ids of topics that stand beside offsets; empty if there are none."""
    found: dict[str, UUID] = {}
    for key in value:
        # A later version of kafkaio may write ids of another form: they are ignored.
        topic, _, text = key.removeprefix(_ID).rpartition(":")
        if key.startswith(_ID) and _UUID.fullmatch(text):
            found[topic] = UUID(text)
    return found


def remade(before: Mapping[str, UUID], now: Mapping[str, UUID]) -> list[str]:
    """Return the topics that have another id than before: they were made again."""
    # A topic whose id is unknown on one side counts as the same: brokers before 2.8
    # have no ids, nor has a checkpoint of the connector.
    both = sorted(before.keys() & now.keys())
    return [topic for topic in both if before[topic] != now[topic]]


def without(offsets: Offsets, topics: Collection[str]) -> dict[TopicPartition, int]:
    """Return offsets without those of some topics."""
    return {tp: offset for tp, offset in offsets.items() if tp.topic not in topics}


def another_topic(
    topic: str, before: Mapping[str, UUID], now: Mapping[str, UUID]
) -> str:
    """Return the sentence for a topic that was made again."""
    return (
        f"topic {topic!r} was deleted and made again: its id is {now[topic]} and was "
        f"{before[topic]}"
    )


def _foreign(value: object) -> ConfigurationError:
    return ConfigurationError(
        f"the checkpoint has the offsets of another kind of source: {value!r}; start "
        "the query with a checkpointLocation of its own"
    )


# Bounds.


def lookups(
    bound: Bound, partitions: Collection[TopicPartition], side: str
) -> dict[TopicPartition, Moment]:
    """Return the questions whose answers resolve a bound.

    Args:
        bound: where to start or end.
        partitions: those that are read.
        side: ``start`` or ``end``, for messages.

    Raises:
        ConfigurationError: the bound names other partitions than those.
    """
    if bound == "earliest" or bound == "latest":
        return dict.fromkeys(partitions, bound)
    if isinstance(bound, AtTime):
        return dict.fromkeys(partitions, bound.timestamp)
    if isinstance(bound, AtTimes):
        _check_partitions(bound.timestamps, partitions, f"{side}ingOffsetsByTimestamp")
        return dict(bound.timestamps)
    _check_partitions(bound.offsets, partitions, f"{side}ingOffsets")
    return {tp: _ENDS[n] for tp, n in bound.offsets.items() if n in _ENDS}


def _check_partitions(
    named: Offsets, partitions: Collection[TopicPartition], option: str
) -> None:
    missing, odd = set(partitions) - named.keys(), named.keys() - set(partitions)
    if missing or odd:
        what = [
            f"{_names_of(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        ] * bool(missing) + [f"{_names_of(odd)} cannot be read here"] * bool(odd)
        raise ConfigurationError(
            f"{option} must name every partition that is read, and no other: "
            f"{' and '.join(what)}; use -2 for the earliest offset, -1 for the latest"
        )


def resolved(
    bound: Bound, found: Mapping[TopicPartition, OffsetAndTimestamp | None]
) -> tuple[dict[TopicPartition, int], list[TopicPartition]]:
    """Return the offset of each partition.

    Args:
        bound: where to start or end.
        found: the answers to `lookups`; None where no record has the time.

    Returns:
        The offsets, and the partitions without a record at or after the time.
    """
    offsets: dict[TopicPartition, int] = {}
    if isinstance(bound, AtOffsets):
        offsets = {tp: n for tp, n in bound.offsets.items() if n not in _ENDS}
    offsets |= {tp: answer.offset for tp, answer in found.items() if answer is not None}
    return offsets, sorted(tp for tp, answer in found.items() if answer is None)


def no_record(bound: Bound, missing: Iterable[TopicPartition]) -> ConfigurationError:
    """Return the error for partitions without a record to start at.

    Args:
        bound: an `AtTime` or `AtTimes`.
        missing: the partitions.
    """
    tp = min(missing)
    option, at = "startingTimestamp", 0
    if isinstance(bound, AtTime):
        at = bound.timestamp
    elif isinstance(bound, AtTimes):
        option, at = "startingOffsetsByTimestamp", bound.timestamps[tp]
    return ConfigurationError(
        f"{name_of(tp)} has no record at or after the timestamp {at} of {option}; set "
        "startingOffsetsByTimestampStrategy=latest to start such partitions at their "
        "latest offset"
    )


# Limits.


def limited(
    limit: int, start: Offsets, latest: Offsets, earliest_of_new: Offsets
) -> dict[TopicPartition, int]:
    """Return the end of a micro-batch of at most so many offsets.

    Each partition gets a share in proportion to its offsets, rounded down, but at least
    one offset, as in Spark's own connector.

    Args:
        limit: most offsets.
        start: where the micro-batch starts.
        latest: what there is.
        earliest_of_new: the first offset of each partition that ``start`` lacks.
    """
    begin = {
        tp: start.get(tp, earliest_of_new.get(tp, end)) for tp, end in latest.items()
    }
    sizes = {tp: end - begin[tp] for tp, end in latest.items() if end > begin[tp]}
    # A float, and the same order of operations as in Spark's connector: other
    # roundings would give other micro-batches.
    total = float(sum(sizes.values()))
    found = dict(latest)
    for tp, size in sizes.items():
        share = limit * (size / total)
        whole = math.ceil(share) if share < 1 else math.floor(share)
        found[tp] = min(latest[tp], begin[tp] + whole)
    return found


class TriggerDelay:
    """Whether a micro-batch waits for more offsets (``minOffsetsPerTrigger``).

    Args:
        least: offsets that a micro-batch waits for.
        longest: seconds after the last micro-batch at which it waits no more.
    """

    __slots__ = ("_last", "_least", "_longest")

    def __init__(self, least: int, longest: float) -> None:
        self._least = least
        self._longest = longest
        self._last: float | None = None

    def waits(self, now: float, start: Offsets, latest: Offsets) -> bool:
        """Return whether to wait; if not, the time counts from now.

        The first call never waits.

        Args:
            now: seconds of a monotonic clock.
            start: where the micro-batch starts.
            latest: what there is.
        """
        # A restarted query does not wait for its first micro-batch.
        is_due = self._last is None or now - self._last >= self._longest
        new = sum(end - start.get(tp, 0) for tp, end in latest.items())
        if not is_due and new < self._least:
            return True
        self._last = now
        return False


# Ranges and lost records.


class PlannedRanges(NamedTuple):
    """The ranges of a micro-batch.

    Attributes:
        ranges: one for each partition; some may be empty, or end before they start.
        losses: a sentence for each sign that records were lost.
    """

    ranges: list[OffsetRange]
    losses: list[str]


def ranges_between(
    start: Offsets, end: Offsets, earliest_of_new: Offsets
) -> PlannedRanges:
    """Return the ranges between two offsets.

    New partitions are read from their earliest offset. Partitions that are gone are
    left out, and so are those whose offsets went back: their topic was deleted and made
    again, and the next micro-batch goes on at its new offsets.

    Args:
        start: of the micro-batch.
        end: of the micro-batch.
        earliest_of_new: the first offset of each partition that ``start`` lacks; those
            that are missing were deleted meanwhile.
    """
    losses = [
        f"partition {name_of(tp)} is gone, which was read up to offset {start[tp]}"
        for tp in sorted(start.keys() - end.keys())
    ]
    ranges = []
    for tp in sorted(end):
        first = start.get(tp, earliest_of_new.get(tp))
        if first is None:
            losses.append(f"new partition {name_of(tp)} was deleted before it was read")
            continue
        # Only for new partitions: the range of a known one is checked by `outside`.
        if tp not in start and first > 0:
            losses.append(f"new partition {name_of(tp)} starts at {first} instead of 0")
        # The range is kept, though it ends before it starts, as in the connector: the
        # plan leaves it out.
        if end[tp] < first:
            losses.append(
                f"the end of {name_of(tp)} went back from {first} to {end[tp]}: its "
                "topic was deleted and made again, or its log lost records"
            )
        ranges.append(OffsetRange(tp, first, end[tp]))
    return PlannedRanges(ranges, losses)


def outside(
    ranges: Iterable[OffsetRange], earliest: Offsets, latest: Offsets
) -> list[str]:
    """Return a sentence for each range that the logs do not have whole.

    Args:
        ranges: what is to be read.
        earliest: the first offset of each partition's log; none of those that are gone.
        latest: the end of each partition's log; likewise.
    """
    losses = []
    for tp, start, end in sorted(ranges):
        if start >= end:
            continue
        what = f"{name_of(tp)} is to be read from {start} to {end}"
        if tp not in earliest or tp not in latest:
            losses.append(f"{what}, but the partition is gone")
        elif start < earliest[tp] or end > latest[tp]:
            losses.append(f"{what}, but its log has {earliest[tp]} to {latest[tp]}")
    return losses


def inside(
    ranges: Iterable[OffsetRange], earliest: Offsets, latest: Offsets
) -> list[OffsetRange]:
    """Return the parts of ranges that the logs have, in order, without empty ones.

    Args:
        ranges: what is to be read.
        earliest: the first offset of each partition's log; none of those that are gone.
        latest: the end of each partition's log; likewise.
    """
    found = [
        OffsetRange(tp, max(start, earliest[tp]), min(end, latest[tp]))
        for tp, start, end in ranges
        if tp in earliest and tp in latest
    ]
    return [r for r in found if r.start < r.end]


# Lag.


def lag_of(end: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
    """Return how many offsets behind the latest each partition is."""
    return {tp: max(0, last - end.get(tp, 0)) for tp, last in latest.items()}
