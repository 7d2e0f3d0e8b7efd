"""Items of operations by name, and errors that name them."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._cli.text.values import partitions_of_topic
from kafkaio.errors import KafkaError, UsageError
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio.admin import Admin

K = TypeVar("K")
V = TypeVar("V")

#: Messages for groups that are not groups of consumers, by type.
_ELSEWHERE: Final = {
    "share": "{0!r} is a share group: use kafkaio share-groups",
    "streams": (
        "{0!r} is a streams group: kafkaio groups offsets shows its offsets, and "
        "kafka-streams-groups.sh its members"
    ),
}
_PARTITION: Final = re.compile(r"(?P<topic>[^:@]+):(?P<partition>\d+)")


async def outcomes(operation: Awaitable[Mapping[K, V]]) -> dict[K, V | KafkaError]:
    """Await an operation on many items; return the result or the error of each."""
    from kafkaio.admin import settled

    items = await settled(operation)
    return {**items.found, **items.failed}


def by_name(
    results: Mapping[K, V | KafkaError], name: Callable[[K], str]
) -> dict[K, V | KafkaError]:
    """Name the item in each error; messages and ``--json`` show the name."""
    for item, value in results.items():
        if isinstance(value, KafkaError):
            value.item = name(item)
    return dict(results)


def no_group(name: str) -> UsageError:
    """Return the error for a group that does not exist."""
    return UsageError(f"group {name!r} does not exist")


async def not_of_consumers(
    admin: Admin, groups: Iterable[str], *, unknown: bool = False
) -> dict[str, KafkaError]:
    """Return an error for each group of another type; it names the command to use.

    Args:
        admin: asks the cluster.
        groups: the names.
        unknown: whether to return an error for groups that do not exist, too.
    """
    names = list(groups)
    if not names:
        return {}
    try:
        known = await admin.list_groups()
    except (KafkaError, ExceptionGroup):
        # Without the right to list groups the type is unknown: the broker's own answer
        # for the group, which the caller has, says more than this error.
        return {}
    found: dict[str, KafkaError] = {}
    for name in names:
        kind = str(known[name].type) if name in known else ""
        if kind in _ELSEWHERE:
            found[name] = UsageError(_ELSEWHERE[kind].format(name))
        elif unknown and name not in known:
            found[name] = no_group(name)
    return found


def known_brokers(wanted: Iterable[int], brokers: Iterable[int]) -> list[int]:
    """Return the named brokers, or all if none is named.

    Raises:
        CommandFailed: a broker is not in the cluster.
    """
    there = sorted(brokers)
    chosen = list(dict.fromkeys(wanted))
    for node in chosen:
        if node not in there:
            names = ", ".join(map(str, there))
            text = f"broker {node} does not exist: the brokers are {names}"
            raise CommandFailed(text)
    return chosen or there


async def brokers_there(admin: Admin, wanted: Iterable[int]) -> list[int]:
    """Return the named brokers of the cluster, or all if none is named.

    Raises:
        CommandFailed: a broker is not in the cluster.
    """
    # Admin would wait for a broker that is named until the call times out, because it
    # may be starting. On a command line a wrong number is likelier.
    brokers = (await admin.describe_cluster()).brokers
    return known_brokers(wanted, (it.node_id for it in brokers))


def partition_name(tp: TopicPartition) -> str:
    """Return ``topic-0``."""
    return f"{tp.topic}-{tp.partition}"


def partition_of(text: str) -> TopicPartition:
    """Return the partition of ``TOPIC:NUMBER``.

    Raises:
        CommandFailed: the text has another form.
    """
    found = _PARTITION.fullmatch(text)
    if found is None:
        message = f"{text!r} is not TOPIC:PARTITION, such as orders:0"
        raise CommandFailed(message, Exit.USAGE)
    return TopicPartition(found["topic"], int(found["partition"]))


async def partitions_meant(admin: Admin, texts: Iterable[str]) -> list[TopicPartition]:
    """Return the partitions of ``TOPIC`` or ``TOPIC:0,1,4-6``, each once.

    Raises:
        click.UsageError: the partitions are not numbers.
        UnknownTopicOrPartition: a topic that stands for all of its partitions does not
            exist.
    """
    # Only topics without numbers need a look-up. Numbers are sent as they were typed,
    # and the broker's error names a partition that does not exist.
    parts = [partitions_of_topic(text) for text in texts]
    topics = list(dict.fromkeys(topic for topic, numbers in parts if numbers is None))
    described = await admin.describe_topics(topics) if topics else {}
    found: dict[TopicPartition, None] = {}
    for topic, numbers in parts:
        meant = (
            [each.partition for each in described[topic].partitions]
            if numbers is None
            else numbers
        )
        found |= dict.fromkeys(TopicPartition(topic, number) for number in meant)
    return list(found)
