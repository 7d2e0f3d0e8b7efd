"""Which partitions a request is about, whatever its API: faults look for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from kafkaio.protocol.message import Request, Response, Struct

if TYPE_CHECKING:
    from kafkaio.testing.broker.node import Node

__all__ = ["mentions"]

# What the schemas of requests call a topic, and the number of a partition.
_TOPIC_FIELDS: Final = ("name", "topic", "topic_name", "topic_id")
_INDEX_FIELDS: Final = ("partition_index", "index", "partition")


def mentions(
    node: Node, request: Request[Response], topic: str, partition: int
) -> bool:
    """Whether a request names a partition, or its topic without any partition.

    An incremental Fetch is about all that its session has.
    """
    found = node.cluster.topics.get(topic)
    names = {topic} if found is None else {topic, found.topic_id}
    # Nothing but Fetch has sessions.
    session = node.fetch_sessions.get(getattr(request, "session_id", 0))
    if any((name, partition) in session for name in names):
        return True
    return any(
        _is_about(part, partition)
        for part in _structs(request)
        if not names.isdisjoint(_topics(part))
    )


def _structs(parent: Struct) -> list[Struct]:
    lists = (getattr(parent, field.name) for field in parent.SCHEMA if field.array)
    return [one for found in lists for one in found or () if isinstance(one, Struct)]


def _topics(part: Struct) -> list[str | UUID]:
    values = (getattr(part, name, None) for name in _TOPIC_FIELDS)
    return [value for value in values if isinstance(value, str | UUID)]


def _is_about(topic: Struct, partition: int) -> bool:
    """Whether what a request says of a topic is about one of its partitions."""
    numbers: list[int] = []
    for field in topic.SCHEMA:
        if field.array:
            for one in getattr(topic, field.name) or ():
                if isinstance(one, int):
                    numbers.append(one)
                else:
                    numbers += (getattr(one, name, -1) for name in _INDEX_FIELDS)
    named = [number for number in numbers if number >= 0]
    return partition in named or not named
