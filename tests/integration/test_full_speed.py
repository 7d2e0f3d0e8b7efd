"""Partitions that are handed over do not slow the others down (KIP-983).

A group of two reads steady traffic; a third member joins while the owners keep what
they are asked for. Here it is shown that nothing is lost or repeated, and that what
stays is read on. How fast, beside a time in which nothing happens, is for
``KAFKAIO_FULL_SPEED=1`` on a quiet machine: `nox -s full_speed`.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import pytest

from kafkaio.producer import Producer
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.integration.groups import until
from tests.integration.keepers import BROKERS, COOPERATIVE, Log, Member

MEASURES: Final = bool(os.environ.get("KAFKAIO_FULL_SPEED"))
ROUNDS: Final = 3 if MEASURES else 1
SECONDS: Final = 10.0 if MEASURES else 3.0
COUNT: Final = 16
#: Rounds of one record to each partition, in a second: 2,000 records.
PACE: Final = 125
#: Records until brokers and clients have run everything once.
WARM: Final = 20_000 if MEASURES else 8_000
TOLERANCE: Final = 0.10 if MEASURES else 0.30

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.not_embedded("measures a real Kafka"),
]


@pytest.fixture(
    params=[
        pytest.param(BROKERS, marks=pytest.mark.kafka_versions("4.0", "4.3")),
        COOPERATIVE,
    ]
)
def assignor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@dataclass
class Traffic:
    """Records for every partition, at a steady pace; when each was sent."""

    topic: str
    sent: defaultdict[int, list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )

    @property
    def total(self) -> int:
        return sum(map(len, self.sent.values()))

    async def _send(self, producer: Producer, is_over: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        began, rounds = loop.time(), 0
        while not is_over.is_set():
            while rounds < (loop.time() - began) * PACE:
                for number in range(COUNT):
                    await producer.enqueue(self.topic, b"%d" % rounds, partition=number)
                    self.sent[number].append(loop.time())
                rounds += 1
            await asyncio.sleep(began + rounds / PACE - loop.time())

    @asynccontextmanager
    async def flowing(self, kafka: Kafka) -> AsyncIterator[None]:
        is_over = asyncio.Event()
        producer = Producer(kafka.bootstrap_servers)
        async with producer, asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send(producer, is_over))
            try:
                yield
            finally:
                is_over.set()


@dataclass(frozen=True)
class Window:
    """Some partitions for some time.

    Attributes:
        throughput: records a second.
        p99: seconds from sending to handing out that 99 % were below.
        worst: the longest.
        worst_at: seconds into the window when it was handed out.
    """

    throughput: float
    p99: float
    worst: float
    worst_at: float

    @classmethod
    def of(
        cls,
        log: Log,
        traffic: Traffic,
        numbers: Collection[int],
        began: float,
        ended: float,
    ) -> Window:
        """What was handed out of these partitions in that time."""
        latencies = [
            (at - traffic.sent[tp.partition][offset], at - began)
            for at, _, tp, offset in log.entries
            if began < at <= ended and tp.partition in numbers
        ]
        p99 = statistics.quantiles([seconds for seconds, _ in latencies], n=100)[-1]
        return cls(len(latencies) / (ended - began), p99, *max(latencies))


@dataclass
class Round:
    """A time in which nothing happened, and one in which a third member joined."""

    before: Window
    during: Window
    moved: int

    @property
    def throughput(self) -> float:
        return self.during.throughput / self.before.throughput

    @property
    def p99(self) -> float:
        return self.during.p99 / self.before.p99


class Group:
    """A group of two, which a third member joins and leaves again."""

    def __init__(self, kafka: Kafka, topic: str, assignor: str) -> None:
        self.log = Log()
        #: What the third member read, each time that there was one.
        self.others: list[Log] = []
        self.traffic = Traffic(topic)
        self._where = kafka, topic, assignor
        self._name = f"group-{uuid.uuid4().hex[:8]}"
        self.owners = self._member("one", self.log), self._member("two", self.log)

    def _member(self, who: str, log: Log) -> Member:
        return Member(who, *self._where, log, group_id=self._name)

    def shares(self, *members: Member) -> list[int]:
        return sorted(len(member.consumer.assignment) for member in members)

    def all(self) -> Log:
        """What all have read."""
        entries = [e for log in (self.log, *self.others) for e in log.entries]
        return Log(sorted(entries))

    async def settle(self) -> None:
        await until(lambda: self.shares(*self.owners) == [8, 8])

    async def round(self) -> Round:
        """Nothing happens; then a third member joins, and gets what was kept."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(SECONDS)
        joined = loop.time()
        for owner in self.owners:
            owner.holds.clear()
            owner.keeps = SECONDS
        self.others.append(Log())
        three = self._member("three", self.others[-1])
        async with three.running():
            await until(lambda: self.shares(*self.owners, three) == [5, 5, 6])
            for owner in self.owners:
                owner.keeps = 0.0
            moved = three.consumer.assignment
            await until(lambda: all(three.log.of(tp) for tp in moved))
        given = {
            tp: end
            for owner in self.owners
            for _, end, tps in owner.holds
            for tp in tps
        }
        assert given.keys() == moved
        for tp, end in given.items():
            first, *_ = three.log.of(tp)
            assert first[0] > end  # its commit came before
        await self.settle()
        stay = set(range(COUNT)) - {tp.partition for tp in moved}
        ended = max(given.values())
        return Round(
            Window.of(self.log, self.traffic, stay, began, joined),
            Window.of(self.log, self.traffic, stay, joined, ended),
            len(moved),
        )


async def test_the_others_keep_their_pace(
    real_kafka_cluster: Kafka,
    cluster_topic: TopicFactory,
    assignor: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    group = Group(real_kafka_cluster, cluster_topic(partitions=COUNT), assignor)
    one, two = group.owners
    rounds = []
    async with one.running(), two.running():
        await group.settle()
        async with group.traffic.flowing(real_kafka_cluster):
            await until(lambda: len(group.log.entries) > WARM)
            await until(lambda: group.traffic.total - len(group.log.entries) < PACE)
            for _ in range(ROUNDS):
                rounds.append(await group.round())
                await asyncio.sleep(1.0)
        await until(lambda: len(group.all().entries) >= group.traffic.total)
    group.all().check(group.traffic.topic, COUNT, group.traffic.total)
    with capsys.disabled():
        for each in rounds:
            print(f"\n{assignor}: {each}")  # noqa: T201
    assert statistics.median(each.throughput for each in rounds) > 1 - TOLERANCE
    if MEASURES:
        assert statistics.median(each.p99 for each in rounds) < 1 + TOLERANCE
