"""What happens to the brokers of a run, and for how long things happen."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Literal, TypeAlias

from kafkaio import Client, Controller, KafkaError
from kafkaio.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkaio.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    TopicPartitions,
)
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka._properties import PLAINTEXT
from kafkaio.testing.kafka._wire import WireMetadata, metadata
from tests.torture.journal import DIRECTOR, Journal

Death: TypeAlias = Literal["broker-killed", "broker-stopped", "broker-frozen"]
_DEATHS: Final[dict[Death, int]] = {"broker-killed": 3, "broker-stopped": 1}
#: With brokers that hang and wake again.
AND_FREEZES: Final[dict[Death, int]] = _DEATHS | {"broker-frozen": 2}
#: The topics of the coordinators.
OFFSETS: Final = "__consumer_offsets"
STATES: Final = "__transaction_state"
_IN_SYNC_SECONDS: Final = 120.0
_MOVE_SECONDS: Final = 5.0


class Period:
    """The time in which faults are injected."""

    def __init__(self) -> None:
        self._is_over = asyncio.Event()

    def end(self) -> None:
        self._is_over.set()

    async def pause(self, seconds: float) -> bool:
        """Wait, at most until the end; return whether it goes on."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._is_over.wait()
        return not self._is_over.is_set()


class Brokers:
    """The brokers of a run.

    Args:
        kafka: the cluster.
        period: for how long things happen.
        journal: where they are told.
        topics: what must be in sync before the next broker may die.
    """

    def __init__(
        self, kafka: Kafka, period: Period, journal: Journal, topics: tuple[str, ...]
    ) -> None:
        self._kafka = kafka
        self._topics = topics
        self._period = period
        self._journal = journal

    async def die(
        self,
        rng: random.Random,
        seconds: float,
        deaths: dict[Death, int] = _DEATHS,
    ) -> None:
        """Kill, shut down or freeze one after the other, and start it again.

        Args:
            rng: draws what happens.
            seconds: how long things happen in all.
            deaths: the ways to die, and their weights.
        """
        end: dict[Death, Callable[[int], Awaitable[None]]] = {
            "broker-killed": self._kafka.kill,
            "broker-stopped": self._kafka.stop,
            "broker-frozen": self._kafka.pause,
        }
        longest = min(16.0, seconds / 3)
        while await self._period.pause(rng.uniform(longest / 2, longest)):
            (what,) = rng.choices(list(deaths), list(deaths.values()))
            node = rng.choice(self._kafka.node_ids)
            self._journal.write(DIRECTOR, what, node)
            await end[what](node)
            await self._period.pause(rng.uniform(2, 8))
            if what == "broker-frozen":
                await self._kafka.resume(node)
            await self._kafka.start(node)
            self._journal.write(DIRECTOR, "broker-started", node)
            await self.in_sync()

    async def in_sync(self) -> None:
        """Wait until all replicas are in sync, so that at most one is ever missing."""
        async with asyncio.timeout(_IN_SYNC_SECONDS):
            while not await asyncio.to_thread(self._are_in_sync):  # noqa: ASYNC110
                await asyncio.sleep(0.5)

    def _are_in_sync(self) -> bool:
        try:
            views = self._views()
        except OSError:
            return False
        return all(
            partition.leader >= 0 and set(partition.in_sync) == set(partition.replicas)
            for view in views
            for partitions in view.topics.values()
            for partition in partitions
        )

    def _views(self) -> list[WireMetadata]:
        addresses = self._kafka.engine.addresses(PLAINTEXT)
        return [metadata(address, self._topics) for address in addresses]

    def leaders(self, topic: str) -> dict[int, int]:
        """Return the leader of each partition of a topic; blocks.

        Raises:
            OSError: a broker does not answer.
        """
        return {each.index: each.leader for each in self._views()[0].topics[topic]}

    # ---- coordinators ----------------------------------------------------------------

    async def move_coordinators(self, rng: random.Random) -> None:
        """Move coordinators of groups and transactions from broker to broker."""
        async with Client(self._kafka.bootstrap_servers) as client:
            while await self._period.pause(rng.uniform(4, 10)):
                topic = rng.choice((OFFSETS, STATES))
                try:
                    moved = await self._move(client, topic, rng)
                except (OSError, LookupError, KafkaError):  # a broker is away
                    continue
                self._journal.write(DIRECTOR, "coordinator-moved", topic, *moved)

    async def _move(
        self, client: Client, topic: str, rng: random.Random
    ) -> tuple[int, int]:
        """Make another replica of a partition its leader; return partition, leader."""
        views = await asyncio.to_thread(self._views)
        place = rng.choice(views[0].topics[topic])
        others = [node for node in place.in_sync if node != place.leader]
        if not others:
            raise OSError(f"{topic}-{place.index} has one replica in sync")
        leader = rng.choice(others)
        order = [leader, *(node for node in place.replicas if node != leader)]
        wanted = ReassignablePartition(partition_index=place.index, replicas=order)
        await client.request(
            AlterPartitionReassignmentsRequest(
                topics=[ReassignableTopic(name=topic, partitions=[wanted])]
            ),
            Controller,
            timeout=_MOVE_SECONDS,
        )
        await client.request(
            ElectLeadersRequest(
                topic_partitions=[
                    TopicPartitions(topic=topic, partitions=[place.index])
                ]
            ),
            Controller,
            timeout=_MOVE_SECONDS,
        )
        return place.index, leader
