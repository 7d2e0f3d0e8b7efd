"""Members of a group that keep, for a while, the partitions they are asked for."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kafkaio import Lost, Revoked, RevokeRequested
from kafkaio._consumer import Consumer, Rebalance
from kafkaio.testing import Broker
from kafkaio.testing.kafka import Kafka
from kafkaio.types import TopicPartition

COOPERATIVE, EAGER = "cooperative-sticky", "range"
#: The protocol in which the brokers divide (KIP-848), and no member's assignor.
BROKERS = "consumer"


@dataclass
class Log:
    """Who read what, in the order in which it was read."""

    entries: list[tuple[float, str, TopicPartition, int]] = field(default_factory=list)

    def of(self, tp: TopicPartition) -> list[tuple[float, str, int]]:
        return [(at, name, offset) for at, name, p, offset in self.entries if p == tp]

    def check(self, topic: str, partitions: int, sent: int) -> None:
        """Every record was read, once and in order, whoever read it."""
        for number in range(partitions):
            offsets = [o for *_, o in self.of(TopicPartition(topic, number))]
            twice = [o for o, times in Counter(offsets).items() if times > 1]
            assert not twice, f"read more than once of {number}: {twice}"
            assert offsets == list(range(len(offsets)))
        assert len(self.entries) == sent


class Member:
    """A member of a group that reads, and keeps what it is asked for a while.

    Attributes:
        keeps: seconds that it keeps partitions.
        gate: what it waits for before; None to wait for nothing.
        holding: what it keeps now, or an empty set.
        strays: records of kept partitions that it was given all the same.
    """

    def __init__(
        self,
        name: str,
        kafka: Kafka | Broker,
        topic: str,
        assignor: str,
        log: Log,
        **options: object,
    ) -> None:
        settings: dict[str, object] = {
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
        }
        if assignor == BROKERS:
            settings["group_protocol"] = "consumer"
        else:
            settings |= {
                "heartbeat_interval_ms": 200,
                # A machine that stands still for ten seconds removes nobody.
                "session_timeout_ms": 300_000,
                "partition_assignment_strategy": (assignor,),
            }
        self.name = name
        self.consumer = Consumer(
            kafka.bootstrap_servers,
            topics=topic,
            **(settings | options),  # type: ignore[arg-type]  # options by name
        )
        self.log = log
        self.keeps = 0.0
        self.gate: asyncio.Event | None = None
        self.holding: frozenset[TopicPartition] = frozenset()
        self.since = 0.0
        self.strays: list[tuple[TopicPartition, int]] = []
        self._polls = self._last_poll = 0
        self.done: dict[TopicPartition, int] = {}
        self.lost: list[frozenset[TopicPartition]] = []
        self.events: list[Rebalance] = []
        self.holds: list[tuple[float, float, frozenset[TopicPartition]]] = []

    async def read(self) -> None:
        """Work on records at once; commit them when they are asked for."""
        loop = asyncio.get_running_loop()
        while True:
            self._polls += 1
            poll = await self.consumer.poll(timeout=0.2)
            for record in poll.records:
                tp = record.topic_partition
                if tp in self.holding and self._polls > self._last_poll:
                    self.strays.append((tp, record.offset))
                self.log.entries.append((loop.time(), self.name, tp, record.offset))
                self.done[tp] = record.offset + 1
            if poll.lost:
                self.lost.append(poll.lost)

    async def listen(self) -> None:
        loop = asyncio.get_running_loop()
        async for event in self.consumer.rebalances():
            self.events.append(event)
            match event:
                case RevokeRequested(partitions):
                    async with event.hold() as held:
                        assert held == partitions
                        began = self.since = loop.time()
                        # What a poll that has begun returns was taken before.
                        self.holding, self._last_poll = partitions, self._polls
                        if self.gate is not None:
                            await self.gate.wait()
                        await asyncio.sleep(self.keeps)
                        self.holding = frozenset()
                        mine = {tp: at for tp, at in self.done.items() if tp in held}
                        await self.consumer.commit(mine)
                        self.holds.append((began, loop.time(), partitions))
                case Revoked(partitions) | Lost(partitions):
                    for tp in partitions:
                        self.done.pop(tp, None)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Member]:
        """Be a member of the group, within the block."""
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(self.listen())
            await asyncio.sleep(0)
            async with self.consumer:
                reading = tasks.create_task(self.read())
                try:
                    yield self
                finally:
                    reading.cancel()
            await listening
