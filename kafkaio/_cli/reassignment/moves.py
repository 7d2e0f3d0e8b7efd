"""Moves replicas: the current ones, the throttle, the wait until all have moved."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from kafkaio._cli.reassignment.files import (
    BROKER_THROTTLES,
    TOPIC_THROTTLES,
    throttled_replicas,
)
from kafkaio._cli.shell.progress import ProgressBar
from kafkaio._runtime.scopes import move_on_after
from kafkaio.admin import (
    ConfigChange,
    ConfigChangeType,
    ConfigResource,
    ConfigResourceType,
)
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio.admin import Admin, TopicDescription

Replicas: TypeAlias = Mapping[TopicPartition, tuple[int, ...]]

#: Seconds between two requests.
_POLL_SECONDS: Final = 0.25
#: Seconds for the brokers to learn of the end of a move.
_SEEN_SECONDS: Final = 5.0


async def replicas_of(
    admin: Admin, topics: Collection[str]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the replicas of all partitions of topics."""
    described = await admin.describe_topics(topics)
    return {tp: there for it in described.values() for tp, there in _replicas(it)}


def _replicas(it: TopicDescription) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
    for each in it.partitions:
        yield TopicPartition(it.name, each.partition), each.replicas


async def set_throttle(
    admin: Admin, current: Replicas, wanted: Replicas, rate: int
) -> None:
    """Limit the bytes per second at which brokers send and fetch moving replicas.

    Other replicas that fall behind are not throttled.
    """
    changes: dict[ConfigResource, list[ConfigChange]] = {}
    for topic, values in throttled_replicas(current, wanted).items():
        changes[ConfigResource(ConfigResourceType.TOPIC, topic)] = [
            ConfigChange(name, value)
            for name, value in zip(TOPIC_THROTTLES, values, strict=True)
        ]
    for node in _brokers(current, wanted):
        changes[ConfigResource(ConfigResourceType.BROKER, str(node))] = [
            ConfigChange(name, str(rate)) for name in BROKER_THROTTLES
        ]
    await admin.incremental_alter_configs(changes)


async def clear_throttle(admin: Admin, topics: Iterable[str]) -> None:
    """Remove the limits of all brokers and of topics."""
    # Of all brokers: the file names the new replicas, not those that sent to them.
    brokers = (await admin.describe_cluster()).brokers
    names: dict[ConfigResource, tuple[str, ...]] = {
        ConfigResource(ConfigResourceType.TOPIC, topic): TOPIC_THROTTLES
        for topic in sorted(set(topics))
    }
    for broker in brokers:
        resource = ConfigResource(ConfigResourceType.BROKER, str(broker.node_id))
        names[resource] = BROKER_THROTTLES
    await admin.incremental_alter_configs(
        {
            resource: [
                ConfigChange(name, None, ConfigChangeType.DELETE) for name in configs
            ]
            for resource, configs in names.items()
        }
    )


def _brokers(current: Replicas, wanted: Replicas) -> list[int]:
    """The brokers that send or fetch moving replicas."""
    moving = [tp for tp in wanted if {*wanted[tp]} - {*current.get(tp, ())}]
    return sorted({n for tp in moving for n in (*current.get(tp, ()), *wanted[tp])})


async def wait_until_moved(
    admin: Admin, partitions: Collection[TopicPartition]
) -> None:
    """Wait until no replica of the partitions moves, without a limit of time.

    At a terminal a bar on stderr shows the number of finished partitions.
    """
    with ProgressBar("moving", len(partitions), unit="partitions") as progress:
        while moving := await admin.list_partition_reassignments(partitions):
            # The count can go down: another client may move a partition again.
            progress.add(len(partitions) - len(moving) - progress.done)
            await asyncio.sleep(_POLL_SECONDS)
        progress.add(len(partitions) - progress.done)


async def wait_until_seen(admin: Admin, wanted: Replicas) -> None:
    """Wait until the brokers report the wanted replicas, for a few seconds.

    The controller ends a move first, and the brokers learn of it a moment later.
    """
    topics = sorted({tp.topic for tp in wanted})
    with move_on_after(_SEEN_SECONDS):
        while True:
            there = await replicas_of(admin, topics)
            if all(there.get(tp) == replicas for tp, replicas in wanted.items()):
                return
            await asyncio.sleep(_POLL_SECONDS)
