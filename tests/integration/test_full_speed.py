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
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import pytest

from kafkaio._producer import Producer
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.integration.groups import until
from tests.integration.keepers import BROKERS, COOPERATIVE, Log, Member

MEASURES: Final = bool(os.environ.get("KAFKAIO_FULL_SPEED"))
ROUNDS: Final = 8 if MEASURES else 1
SECONDS: Final = 10.0 if MEASURES else 3.0
COUNT: Final = 16
#: Bursts of `EACH` records to each partition, in a second: 1,600 records. More than
#: two cores bear beside three brokers is no steady traffic, but a queue.
PACE: Final = 20
EACH: Final = 5
BURST: Final = COUNT * EACH
#: Records until brokers and clients have run everything, and Java has compiled it.
WARM: Final = 64_000 if MEASURES else 8_000
TOLERANCE: Final = 0.10 if MEASURES else 0.30

pytestmark = [
    pytest.mark.timeout(600 if MEASURES else 180),
    pytest.mark.not_embedded("measures a real Kafka"),
]


@pytest.fixture(
    params=[
        pytest.param(BROKERS, marks=pytest.mark.kafka_versions("4.0+")),
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
                for number in (n for n in range(COUNT) for _ in range(EACH)):
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
        seconds: how long it was.
        latencies: seconds from sending to handing out, of every record.
    """

    seconds: float
    latencies: list[float] = field(repr=False)

    @property
    def throughput(self) -> float:
        """Records a second."""
        return len(self.latencies) / self.seconds

    @property
    def p99(self) -> float:
        """Seconds that 99 % of the records were handed out within."""
        return statistics.quantiles(self.latencies, n=100)[-1]

    def __str__(self) -> str:
        worst = max(self.latencies)
        return f"{self.throughput:.0f}/s, {self.p99 * 1e3:.1f} ({worst * 1e3:.0f}) ms"

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
            at - traffic.sent[tp.partition][offset]
            for at, _, tp, offset in log.entries
            if began < at <= ended and tp.partition in numbers
        ]
        return cls(ended - began, latencies)

    @classmethod
    def all(cls, windows: Iterable[Window]) -> Window:
        """Several as one, in which a single stall weighs little."""
        windows = list(windows)
        latencies = [each for window in windows for each in window.latencies]
        return cls(sum(window.seconds for window in windows), latencies)


@dataclass(frozen=True)
class Round:
    """A time in which nothing happened, and one in which a third member joined."""

    before: Window
    during: Window

    def __str__(self) -> str:
        return f"before {self.before}, during {self.during}"


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
        # One of the three has six. Where the owners do not let go in one rebalance, the
        # leader may choose another owner for that in the next, and a partition that is
        # let go already moves between the owners.
        others = given.keys() - moved
        assert given.keys() >= moved
        assert len(others) <= (self._where[2] == COOPERATIVE)
        for tp in others:
            assert not three.log.of(tp)
        for tp in moved:
            first, *_ = three.log.of(tp)
            assert first[0] > given[tp]  # its commit came before
        await self.settle()
        stay = set(range(COUNT)) - {tp.partition for tp in given}
        ended = max(given.values())
        return Round(
            Window.of(self.log, self.traffic, stay, began, joined),
            Window.of(self.log, self.traffic, stay, joined, ended),
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
            await until(lambda: group.traffic.total - len(group.log.entries) < BURST)
            for _ in range(ROUNDS):
                rounds.append(await group.round())
                await asyncio.sleep(1.0)
        await until(lambda: len(group.all().entries) >= group.traffic.total)
    group.all().check(group.traffic.topic, COUNT, group.traffic.total)
    before, during = (
        Window.all(each.before for each in rounds),
        Window.all(each.during for each in rounds),
    )
    with capsys.disabled():
        for each in [*rounds, Round(before, during)]:  # the last is all of them
            print(f"\n{assignor}: {each}", end="")  # noqa: T201
    assert during.throughput > before.throughput * (1 - TOLERANCE)
    if MEASURES:
        assert during.p99 < before.p99 * (1 + TOLERANCE)
