"""Checks of arguments that producers, consumers and clients have in common.

A wrong argument raises `ArgumentTypeError` or `ArgumentValueError`, before anything is
sent or changed. The message begins with the name of the argument.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkaio._topic import Topic
from kafkaio.errors import ArgumentTypeError, ArgumentValueError
from kafkaio.types import OffsetAndMetadata, TopicPartition

_LARGEST_OFFSET = 2**63 - 1


def check_topic(topic: object) -> None:
    """Check the type of a topic name; the broker decides whether it is legal.

    Raises:
        ArgumentTypeError: it is not a str.
        ArgumentValueError: it is empty.
    """
    if not isinstance(topic, str):
        raise ArgumentTypeError(f"topic must be str, not {type_name(topic)}")
    if not topic:
        raise ArgumentValueError("topic must not be empty")


def topic_name(topic: object) -> str:
    """Return the name of a topic, which is given by its name or as a `kafkaio.Topic`.

    Raises:
        ArgumentTypeError: it is neither.
        ArgumentValueError: it is empty.
    """
    if isinstance(topic, Topic):
        return topic.name
    if not isinstance(topic, str):
        raise ArgumentTypeError(
            f"topic must be a name (str) or a kafkaio.Topic, not {type_name(topic)}"
        )
    check_topic(topic)
    return topic


def topics_of(topics: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names of topics, each once: one, or any number of them.

    Raises:
        ArgumentTypeError: they are not a collection, or one of them is not a str.
        ArgumentValueError: one of them is empty.
    """
    names: object = [topics] if isinstance(topics, str) else topics
    if isinstance(names, bytes) or not isinstance(names, Iterable):
        raise ArgumentTypeError(
            f"topics must be str or a collection of str, not {type_name(topics)}"
        )
    found = list(names)
    for name in found:
        check_topic(name)
    return tuple(dict.fromkeys(found))


def check_partition(partition: object) -> None:
    """Check the number of a partition.

    Raises:
        ArgumentTypeError: it is not an int.
        ArgumentValueError: it is negative.
    """
    if not _is_int(partition):
        raise ArgumentTypeError(
            f"partition must be int or None, not {type_name(partition)}"
        )
    if partition < 0:  # type: ignore[operator]  # an int
        raise ArgumentValueError(f"partition must not be negative: {partition}")


def partition_of(partition: object) -> TopicPartition:
    """Return a pair of topic and number as a TopicPartition.

    Raises:
        ArgumentTypeError: it is not such a pair.
        ArgumentValueError: the topic is empty, or the number negative.
    """
    if isinstance(partition, list | set | frozenset):
        raise ArgumentTypeError(
            f"{partition!r} is not a TopicPartition: pass one, or several one by one"
        )
    if not isinstance(partition, tuple) or len(partition) != 2:
        raise ArgumentTypeError(f"{partition!r} is not a TopicPartition")
    topic, number = partition
    if isinstance(topic, Topic):
        raise ArgumentTypeError(
            f"the topic of a TopicPartition must be str, not Topic: pass the name, "
            f"{topic.name!r}"
        )
    if not isinstance(topic, str) or not _is_int(number):
        raise ArgumentTypeError(f"{partition!r} is not a TopicPartition")
    if not topic or number < 0:
        raise ArgumentValueError(f"there is no partition {number} of a topic {topic!r}")
    if isinstance(partition, TopicPartition):
        return partition
    return TopicPartition(topic, number)


def partitions_of(partitions: object) -> list[TopicPartition]:
    """Return a collection of partitions as a list.

    Raises:
        ArgumentTypeError: it is not a collection, or an item is not a TopicPartition.
        ArgumentValueError: a topic is empty, or a number negative.
    """
    if not isinstance(partitions, Iterable):
        raise ArgumentTypeError(
            "partitions must be a collection of TopicPartition, not "
            f"{type_name(partitions)}"
        )
    if isinstance(partitions, TopicPartition):
        raise ArgumentTypeError(
            "partitions must be a collection of TopicPartition, not one: pass "
            f"[{partitions!r}]"
        )
    return [partition_of(tp) for tp in partitions]


def check_group(group: object) -> None:
    """Check the name of a group.

    Raises:
        ArgumentTypeError: it is not a str.
        ArgumentValueError: it is empty.
    """
    if not isinstance(group, str):
        raise ArgumentTypeError(f"group must be str, not {type_name(group)}")
    if not group:
        raise ArgumentValueError("group must not be empty")


def level_of(isolation_level: object) -> int:
    """Return the number that requests have for an isolation level.

    Raises:
        ArgumentValueError: it is neither ``read_uncommitted`` nor ``read_committed``.
    """
    if isolation_level not in ("read_uncommitted", "read_committed"):
        raise ArgumentValueError(
            "isolation_level must be 'read_uncommitted' or 'read_committed', not "
            f"{isolation_level!r}"
        )
    return int(isolation_level == "read_committed")


def offset_of(offset: object) -> OffsetAndMetadata:
    """Return an offset with what is committed beside it.

    Negative offsets pass: some callers give them a meaning.

    Raises:
        ArgumentTypeError: it is neither an int nor an OffsetAndMetadata of an int.
        ArgumentValueError: it is larger than any offset of Kafka.
    """
    where: object = OffsetAndMetadata(offset) if _is_int(offset) else offset  # type: ignore[arg-type]
    if (
        not isinstance(where, OffsetAndMetadata)
        or not _is_int(where.offset)
        or not _is_str(where.metadata)
        or not _is_int(where.leader_epoch)
    ):
        raise ArgumentTypeError(
            f"{offset!r} is not an offset: give an int or an OffsetAndMetadata"
        )
    if where.offset > _LARGEST_OFFSET:
        raise ArgumentValueError(f"{where.offset} is larger than any offset")
    return where


def count_of(name: str, count: object, default: int) -> int:
    """Return a count, which is at least 1.

    Raises:
        ArgumentTypeError: it is neither an int nor None.
        ArgumentValueError: it is less than 1.
    """
    if count is None:
        return default
    if type(count) is not int:
        raise ArgumentTypeError(f"{name} must be int or None, not {count!r}")
    if count < 1:
        raise ArgumentValueError(f"{name}={count} must be at least 1")
    return count


def seconds_of(name: str, seconds: object, least: float = 0.0) -> float:
    """Return a time limit in seconds, which may be infinite.

    Args:
        name: the argument's name, for messages.
        seconds: what was given.
        least: the least number that is accepted.

    Raises:
        ArgumentTypeError: it is not a number.
        ArgumentValueError: it is less than ``least``, or not a number (NaN).
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise ArgumentTypeError(f"{name} must be a number of seconds, not {seconds!r}")
    # Not `seconds < least`, which is false for NaN.
    if not seconds >= least:
        raise ArgumentValueError(f"{name}={seconds} must be {least:g} seconds or more")
    return seconds


def type_name(value: object) -> str:
    """Return the name of a value's type, for messages."""
    return type(value).__name__


def _is_str(value: object) -> bool:
    return isinstance(value, str)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
