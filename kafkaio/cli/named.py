"""Items of operations by the names that people give them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from kafkaio.cli.exits import CommandFailed, Exit
from kafkaio.errors import KafkaError
from kafkaio.types import TopicPartition

__all__ = ["by_name", "known_brokers", "partition_name", "partition_of", "place"]

K = TypeVar("K")
V = TypeVar("V")

_PARTITION: Final = re.compile(r"(?P<topic>[^:@]+):(?P<partition>\d+)")


def by_name(
    results: Mapping[K, V | KafkaError], name: Callable[[K], str]
) -> dict[K, V | KafkaError]:
    """Give errors their item's name, which messages and ``--json`` show."""
    for item, value in results.items():
        if isinstance(value, KafkaError):
            value.item = name(item)
    return dict(results)


def known_brokers(wanted: Iterable[int], brokers: Iterable[int]) -> list[int]:
    """Return the brokers that are wanted: all, if none is named.

    Raises:
        CommandFailed: one is not among the brokers of the cluster.
    """
    there = sorted(brokers)
    chosen = list(dict.fromkeys(wanted))
    for node in chosen:
        if node not in there:
            names = ", ".join(map(str, there))
            raise CommandFailed(f"there is no broker {node}: the brokers are {names}")
    return chosen or there


def partition_name(tp: TopicPartition) -> str:
    """Return ``topic-0``."""
    return f"{tp.topic}-{tp.partition}"


def place(tp: TopicPartition) -> dict[str, object]:
    """Return the columns of a partition."""
    return {"topic": tp.topic, "partition": tp.partition}


def partition_of(text: str) -> TopicPartition:
    """Return the partition of ``TOPIC:NUMBER``.

    Raises:
        CommandFailed: it is none.
    """
    found = _PARTITION.fullmatch(text)
    if found is None:
        message = f"{text!r} is not TOPIC:PARTITION, such as orders:0"
        raise CommandFailed(message, Exit.USAGE)
    return TopicPartition(found["topic"], int(found["partition"]))
