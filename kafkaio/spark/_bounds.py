"""The topics of a read, and where it starts and ends, as the options say.

`check_bounds` refuses bounds that a batch cannot have. `kafkaio.spark._offsets` applies
bounds to the partitions that exist.

State: none; everything here is immutable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from kafkaio._config.declaration import wrong_value
from kafkaio._dataclass import dataclass
from kafkaio.errors import ConfigurationError
from kafkaio.types import TopicPartition

#: In the JSON of offsets: the first offset of the partition.
EARLIEST: Final = -2
#: In the JSON of offsets: the offset after the last record of the partition.
LATEST: Final = -1

_MAX = 2**63 - 1
#: More than the year 9999 in milliseconds, and less than any time of this century in
#: microseconds. The greatest 64-bit integer means no end.
_LATEST_TIME = 10**15
_NANOSECONDS = 10**17


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """A bound by offset for each partition.

    Attributes:
        offsets: an offset, `EARLIEST` or `LATEST` for each partition.
    """

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTime:
    """A bound by one time for all partitions.

    Attributes:
        timestamp: milliseconds since the Unix epoch.
    """

    timestamp: int


@dataclass(frozen=True, slots=True)
class AtTimes:
    """A bound by a time for each partition.

    Attributes:
        timestamps: milliseconds since the Unix epoch for each partition.
    """

    timestamps: Mapping[TopicPartition, int]


#: Where a read starts or ends.
Bound: TypeAlias = Literal["earliest", "latest"] | AtOffsets | AtTime | AtTimes


@dataclass(frozen=True, slots=True)
class ReadTopics:
    """The topics of a read: one of the three attributes is set.

    Attributes:
        names: topics by name (``subscribe``).
        pattern: a regular expression that is found in a topic's name
            (``subscribePattern``).
        partitions: single partitions (``assign``).
    """

    names: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()


# Readers of values. Each takes the option's name, for messages, and the text.


def read_names(name: str, text: str) -> ReadTopics:
    """Read topics, separated by commas.

    Raises:
        ConfigurationError: there is none.
    """
    topics = tuple(dict.fromkeys(t.strip() for t in text.split(",") if t.strip()))
    if not topics:
        raise ConfigurationError(f"{name} names no topic")
    return ReadTopics(names=topics)


def read_pattern(name: str, text: str) -> ReadTopics:
    """Read a regular expression for the names of topics.

    Raises:
        ConfigurationError: Python cannot compile it.
    """
    try:
        re.compile(text)
    except re.error as error:
        what = f"is not a valid regular expression of Python: {error}"
        raise wrong_value(name, text, what) from None
    return ReadTopics(pattern=text)


def read_partitions(name: str, text: str) -> ReadTopics:
    """Read partitions: JSON of lists by topic.

    Raises:
        ConfigurationError: the text has another form, or names no partition.
    """
    example = '{"orders":[0,1],"payments":[0]}'
    found = []
    for topic, numbers in _json(name, text, example).items():
        # `type`, and not isinstance: JSON's true is an int of Python.
        if not isinstance(numbers, list) or not all(
            type(n) is int and n >= 0 for n in numbers
        ):
            raise ConfigurationError(f"{name}: JSON such as {example} is needed")
        found += [TopicPartition(topic, n) for n in numbers]
    if not found:
        raise ConfigurationError(f"{name} names no partition")
    return ReadTopics(partitions=tuple(sorted(set(found))))


def read_offsets(name: str, text: str) -> Bound:
    """Read ``earliest``, ``latest``, or JSON of offsets by topic and partition.

    Raises:
        ConfigurationError: the text has another form.
    """
    word = text.lower()
    if word == "earliest":
        return "earliest"
    if word == "latest":
        return "latest"
    example = 'earliest, latest or {"orders":{"0":23,"1":-1,"2":-2}}'
    return AtOffsets(_by_partition(name, text, example, EARLIEST))


def read_times(name: str, text: str) -> AtTimes:
    """Read JSON of times by topic and partition.

    Raises:
        ConfigurationError: the text has another form, or a time another unit.
    """
    example = '{"orders":{"0":1735689600000,"1":1735689600000}}'
    found = _by_partition(name, text, example, 0)
    for tp, time in found.items():
        _check_time(f"{name}: {time} for {tp.topic}-{tp.partition}", time)
    return AtTimes(found)


def read_time(name: str, text: str) -> AtTime:
    """Read a time in milliseconds since the Unix epoch.

    Raises:
        ConfigurationError: the text is another form of a time, or has another unit.
    """
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        raise wrong_value(
            name, text, f"is not an integer: {_unit(_milliseconds(text))}"
        )
    time = int(text)
    if time < 0:
        raise ConfigurationError(f"{name}={time} is less than 0")
    _check_time(f"{name}={time}", time)
    return AtTime(time)


def _check_time(what: str, time: int) -> None:
    """Refuse a time that was certainly given in another unit.

    Raises:
        ConfigurationError: names the unit that is meant, and the time in it.
    """
    if time < _LATEST_TIME or time == _MAX:
        return
    # A time of 2001 and later in nanoseconds is above 10**18, and one in microseconds
    # is below 10**17 until the year 5138.
    is_nano = time >= _NANOSECONDS
    unit, factor = ("nanoseconds", 10**6) if is_nano else ("microseconds", 10**3)
    raise ConfigurationError(
        f"{what} is a time in {unit}, it seems: {_unit(time // factor)}"
    )


def _milliseconds(text: str) -> int:
    """Return the time that a text of ISO 8601 has, in UTC unless it says otherwise."""
    # Loaded for mistakes alone.
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 1735689600000  # an example: the start of 2025
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _unit(example: int) -> str:
    return (
        f"milliseconds since the Unix epoch are needed, such as {example} "
        "(int(moment.timestamp() * 1000) in Python)"
    )


def _json(name: str, text: str, example: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found:
        raise ConfigurationError(f"{name}: JSON such as {example} is needed")
    return found


def _by_partition(
    name: str, text: str, example: str, least: int
) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, numbers in _json(name, text, example).items():
        for number, value in (
            numbers.items() if isinstance(numbers, dict) else [("", None)]
        ):
            if not re.fullmatch("[0-9]{1,10}", number) or type(value) is not int:
                raise ConfigurationError(f"{name}: JSON such as {example} is needed")
            if not least <= value <= _MAX:
                raise ConfigurationError(
                    f"{name}: {value} for {topic}-{number} is not between {least} and "
                    f"{_MAX}"
                )
            found[TopicPartition(topic, int(number))] = value
    return found


# ---- bounds of a batch ---------------------------------------------------------------


def check_bounds(starting: Bound, ending: Bound) -> None:
    """Check the bounds of a batch.

    Raises:
        ConfigurationError: it starts at the latest, ends at the earliest, or starts
            after its end.
    """
    _check_bound("start", "startingOffsets", starting, "latest", LATEST)
    _check_bound("end", "endingOffsets", ending, "earliest", EARLIEST)
    for first, last, what in (
        (_pairs(starting, AtOffsets), _pairs(ending, AtOffsets), "offset"),
        (_pairs(starting, AtTimes), _pairs(ending, AtTimes), "timestamp"),
    ):
        if first is not None and last is not None:
            _check_pairs(first, last, what)


def _check_bound(
    side: str, name: str, bound: Bound, wrong: str, wrong_offset: int
) -> None:
    if bound == wrong:
        raise ConfigurationError(
            f"{name}={wrong}: a batch cannot {side} at the {wrong}"
        )
    if isinstance(bound, AtOffsets):
        for tp, offset in bound.offsets.items():
            if offset == wrong_offset:
                raise ConfigurationError(
                    f"{name}: {offset} for {tp.topic}-{tp.partition} is the {wrong}: "
                    f"a batch cannot {side} there"
                )


def _pairs(
    bound: Bound, kind: type[AtOffsets | AtTimes]
) -> Mapping[TopicPartition, int] | None:
    if not isinstance(bound, kind):
        return None
    return bound.offsets if isinstance(bound, AtOffsets) else bound.timestamps


def _check_pairs(
    first: Mapping[TopicPartition, int], last: Mapping[TopicPartition, int], what: str
) -> None:
    # A partition with only one of the bounds would be read from or to an offset that
    # nobody has chosen.
    odd = sorted(first.keys() ^ last.keys())
    if odd:
        names = ", ".join(f"{t}-{p}" for t, p in odd)
        raise ConfigurationError(
            f"starting and ending {what}s name different partitions: only one of them "
            f"has {names}"
        )
    for tp, start in first.items():
        # A negative end is -1 (the latest) or -2: only the cluster knows its place.
        if 0 <= last[tp] < start:
            raise ConfigurationError(
                f"{tp.topic}-{tp.partition}: the starting {what} {start} is after the "
                f"ending {what} {last[tp]}"
            )
