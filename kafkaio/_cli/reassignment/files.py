"""The JSON of kafka-reassign-partitions, and the configs that throttle a move.

Pure. The tool has two kinds of files: what to move where (``partitions``), and which
topics to plan for (``topics``). Errors name the place in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kafkaio.types import TopicPartition

#: Configs of a broker: the bytes per second at which it sends and fetches throttled
#: replicas.
BROKER_THROTTLES: Final[tuple[str, str]] = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
)
#: Configs of a topic: its throttled replicas as ``partition:broker``, first those that
#: send, then those that fetch.
TOPIC_THROTTLES: Final[tuple[str, str]] = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
_VERSION: Final = 1
#: The directory in the tool's files that leaves the choice to the broker.
_ANY_DIRECTORY: Final = "any"


class BadFile(Exception):
    """A file does not have the format of the tool; the message is one line."""


def read_assignment(text: str) -> dict[TopicPartition, tuple[int, ...]]:
    """Read the replicas that partitions are to have, in the order of the file.

    Raises:
        BadFile: the file has another format, a partition twice, or a log directory.
    """
    found: dict[TopicPartition, tuple[int, ...]] = {}
    for at, entry in enumerate(_entries(text, "partitions")):
        where = f"partitions[{at}]"
        tp = TopicPartition(
            _text(entry, where, "topic"), _number(entry, where, "partition")
        )
        if tp in found:
            raise BadFile(f"{where}: {tp.topic}-{tp.partition} occurs twice")
        found[tp] = _replicas(entry, where)
    if not found:
        raise BadFile("partitions: the list is empty")
    return found


def read_topics(text: str) -> list[str]:
    """Read the names of topics to plan for, in the order of the file.

    Raises:
        BadFile: the file has another format.
    """
    found = [
        _text(entry, f"topics[{at}]", "topic")
        for at, entry in enumerate(_entries(text, "topics"))
    ]
    if not found:
        raise BadFile("topics: the list is empty")
    return list(dict.fromkeys(found))


def assignment_document(
    replicas: Mapping[TopicPartition, Sequence[int]],
) -> dict[str, object]:
    """Return the document that kafka-reassign-partitions reads."""
    return {
        "version": _VERSION,
        "partitions": [
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "replicas": list(there),
                "log_dirs": [_ANY_DIRECTORY] * len(there),
            }
            for tp, there in sorted(replicas.items())
        ],
    }


def throttled_replicas(
    current: Mapping[TopicPartition, Sequence[int]],
    wanted: Mapping[TopicPartition, Sequence[int]],
) -> dict[str, tuple[str, str]]:
    """Return the values of `TOPIC_THROTTLES` for each topic of a move.

    Every current replica may send, because each can become the leader; the new ones
    fetch. A partition without new replicas copies nothing and is left out.
    """
    sources: dict[str, list[str]] = {}
    targets: dict[str, list[str]] = {}
    for tp in sorted(wanted):
        before, new = current.get(tp, ()), wanted[tp]
        added = [node for node in new if node not in before]
        if added:
            sources.setdefault(tp.topic, []).extend(_named(tp, before))
            targets.setdefault(tp.topic, []).extend(_named(tp, added))
    return {
        topic: (",".join(sources[topic]), ",".join(targets[topic])) for topic in sources
    }


def _named(tp: TopicPartition, nodes: Iterable[int]) -> list[str]:
    return [f"{tp.partition}:{node}" for node in nodes]


def _entries(text: str, name: str) -> list[object]:
    """The list of that name in the document."""
    try:
        document: object = json.loads(text)
    except ValueError as error:
        raise BadFile(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadFile("it must be a JSON object")
    # The version is optional in the tool, too.
    version = document.get("version", _VERSION)
    if version != _VERSION:
        raise BadFile(f"version: {version!r} is unknown, only {_VERSION} is known")
    entries = document.get(name)
    if not isinstance(entries, list):
        raise BadFile(f"{name}: a list is missing")
    return entries


def _field(entry: object, where: str, name: str) -> object:
    if not isinstance(entry, dict):
        raise BadFile(f"{where} must be a JSON object")
    if name not in entry:
        raise BadFile(f"{where}.{name} is missing")
    value: object = entry[name]
    return value


def _text(entry: object, where: str, name: str) -> str:
    value = _field(entry, where, name)
    if not isinstance(value, str) or not value:
        raise BadFile(f"{where}.{name} must be a name")
    return value


def _number(entry: object, where: str, name: str) -> int:
    value = _field(entry, where, name)
    if not _is_number(value):
        raise BadFile(f"{where}.{name} must be a number of at least 0")
    return int(str(value))


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _replicas(entry: object, where: str) -> tuple[int, ...]:
    value = _field(entry, where, "replicas")
    if not isinstance(value, list) or not value or not all(map(_is_number, value)):
        raise BadFile(f"{where}.replicas must be a list of node ids")
    if len(set(value)) < len(value):
        raise BadFile(f"{where}.replicas: a broker occurs twice")
    directories = entry.get("log_dirs") if isinstance(entry, dict) else None
    if directories is not None:
        _check_directories(directories, where, len(value))
    return tuple(value)


def _check_directories(directories: object, where: str, count: int) -> None:
    if not isinstance(directories, list) or len(directories) != count:
        raise BadFile(f"{where}.log_dirs must be a list of {count}")
    named = [each for each in directories if each != _ANY_DIRECTORY]
    if named:
        raise BadFile(
            f"{where}.log_dirs: {named[0]!r}: moves between log directories are not "
            f'supported, only "{_ANY_DIRECTORY}"'
        )
