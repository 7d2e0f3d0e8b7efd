"""Runs the producer and the members, and injects faults into members and brokers."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final, Literal, TypeAlias, assert_never
from uuid import uuid4

from kafkaio import Consumer, TopicPartition
from kafkaio.testing.kafka import Kafka
from tests.torture.brokers import OFFSETS, Brokers, Period
from tests.torture.crowd import Java, Ours
from tests.torture.journal import Journal, Journals, Line
from tests.torture.plan import Plan, Settings
from tests.torture.styles import STYLES
from tests.torture.traffic import Traffic
from tests.torture.verdict import Place, Verdict, judge

Fate: TypeAlias = Literal["leave", "block", "cancel", "kill", "freeze", "stall"]
#: The faults of members, and their weights.
GENTLE: Final[dict[Fate, int]] = {"leave": 4, "block": 2}
DEADLY: Final = GENTLE | {"cancel": 3, "kill": 1, "freeze": 1, "stall": 2}
_STALL_SECONDS: Final = (18.0, 22.0)
_DRAIN_SECONDS: Final = 120.0
_TOLD_SECONDS: Final = 10.0


@dataclass
class Slot:
    """A slot, which one member after the other occupies."""

    number: int
    home: Ours
    #: The member in it.
    member: str | None = None
    names: count[int] = field(default_factory=count)


class Director:
    """A run of the plan.

    Args:
        plan: what to do.
        kafka: where; its nodes are killed if the plan says so.
        directory: for the journals.
        say: hears how it goes.
    """

    def __init__(
        self,
        plan: Plan,
        kafka: Kafka,
        directory: Path,
        say: Callable[[str], None] = print,
    ) -> None:
        name = f"torture-{uuid4().hex[:8]}"
        self._plan = plan
        self._kafka = kafka
        self._directory = directory
        self._say = say
        self._settings = Settings(
            bootstrap=kafka.bootstrap_servers, topic=name, group=name, seed=plan.seed
        )
        self._journal = Journal(directory / "director.journal")
        self._homes = [
            Ours(self._settings, directory / f"process-{n}.journal", self._journal)
            for n in range(plan.processes)
        ]
        self._slots = [
            Slot(n, self._homes[n % plan.processes]) for n in range(plan.members)
        ]
        self._traffic = Traffic(name, plan.partitions, plan.rate)
        self._lines: list[Line] = []
        self._journals = Journals(directory)
        self._done: set[Place] = set()
        self._period = Period()
        self._brokers = Brokers(kafka, self._period, self._journal, (name, OFFSETS))

    async def run(self) -> Verdict:
        """Run the plan.

        Raises:
            Exception: the run itself failed.
        """
        await self._kafka.create_topic(self._settings.topic, self._plan.partitions)
        java: list[Java] = []

        def processes() -> list[Ours | Java]:
            return [*self._homes, *java]

        try:
            async with asyncio.TaskGroup() as tasks:
                telling = tasks.create_task(self._tell())
                await self._inject_faults(tasks, java)
                telling.cancel()
            for process in processes():
                await process.end()
        finally:
            for process in processes():
                await process.kill()
        self._read()
        return judge(self._traffic.acknowledged, self._lines, await self._ends())

    async def _inject_faults(self, tasks: asyncio.TaskGroup, java: list[Java]) -> None:
        """Inject faults for the time of the plan, then wait for the group to settle."""
        plan, rng = self._plan, random.Random(self._plan.seed)
        for home in self._homes:
            await home.start()
        async with self._traffic.flowing(self._settings.bootstrap):
            for slot in self._slots:
                self._join(slot, rng)
            fates = [self._members(random.Random(rng.random()))]
            fates += [
                self._java(n, random.Random(rng.random()), java)
                for n in range(plan.java)
            ]
            if plan.kill_brokers:
                brokers = random.Random(rng.random())
                fates.append(self._brokers.die(brokers, plan.seconds))
            running = [tasks.create_task(fate) for fate in fates]
            await asyncio.sleep(plan.seconds)
            self._period.end()
            await asyncio.wait(running)
            for slot in self._slots:
                self._join(slot, rng)
        await self._drain()

    async def _drain(self) -> None:
        """Wait until every record was processed, with a timeout."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while self._traffic.acknowledged.keys() - self._done:
                    await asyncio.sleep(0.5)
                    self._read()

    # ---- members ---------------------------------------------------------------------

    async def _members(self, rng: random.Random) -> None:
        """Inject one fault after the other into a member."""
        weights = DEADLY if self._plan.deaths else GENTLE
        while await self._period.pause(rng.expovariate(1 / self._plan.pace)):
            absent = [slot for slot in self._slots if slot.member is None]
            present = [slot for slot in self._slots if slot.member is not None]
            if absent and rng.random() < len(absent) / len(present):
                self._join(rng.choice(absent), rng)
                continue
            (what,) = rng.choices(list(weights), list(weights.values()))
            slot = rng.choice(present)
            await self._happen(what, slot, rng)

    async def _happen(self, what: Fate, slot: Slot, rng: random.Random) -> None:
        home, member = slot.home, slot.member
        stall = f"{rng.uniform(*_STALL_SECONDS):.1f}"
        match what:
            case "leave":
                home.tell("leave", member=member)
                slot.member = None
            case "cancel":
                home.tell("cancel", member=member, seconds=rng.choice((0, 0.02, 0.5)))
                slot.member = None
            case "stall":
                home.tell("stall", member=member, seconds=stall)
            case "freeze":
                home.tell("block", seconds=stall)
            case "block":
                home.tell("block", seconds=f"{rng.uniform(0.1, 1.5):.1f}")
            case "kill":
                await home.kill()
                await home.start()
                for each in self._slots:
                    if each.home is home:
                        each.member = None
            case _:
                assert_never(what)

    def _join(self, slot: Slot, rng: random.Random) -> None:
        if slot.member is not None:
            return
        protocol = self._plan.draw_protocol(rng)
        style = rng.choice(list(STYLES))
        slot.member = f"{slot.number:02}.{next(slot.names)}"
        slot.home.members.add(slot.member)
        slot.home.tell("join", member=slot.member, style=style, protocol=protocol)

    async def _java(self, number: int, rng: random.Random, java: list[Java]) -> None:
        """Have a Java member join, and leave or die, again and again."""
        for name in (f"java-{number}.{n}" for n in count()):
            protocol = self._plan.draw_protocol(rng)
            member = Java(
                name, protocol, self._settings, self._directory, self._journal
            )
            java.append(member)
            await member.start()
            if not await self._period.pause(rng.uniform(15, 45)):
                break
            if self._plan.deaths and rng.random() < 0.5:
                await member.kill()
            else:
                await member.end()
            if not await self._period.pause(rng.uniform(1, 8)):
                break

    # ---- the result ------------------------------------------------------------------

    def _read(self) -> None:
        for line in self._journals.news():
            self._lines.append(line)
            if line.word == "did":
                partition, offset, *_ = map(int, line.details)
                self._done.add(Place(partition, offset))

    async def _tell(self) -> None:
        began = time.monotonic()
        while True:
            await asyncio.sleep(_TOLD_SECONDS)
            self._read()
            present = sum(slot.member is not None for slot in self._slots)
            sent = len(self._traffic.acknowledged)
            self._say(
                f"{time.monotonic() - began:4.0f} s  {present} members, {sent} sent, "
                f"{sent - len(self._done)} to do"
            )

    async def _ends(self) -> dict[int, int]:
        """The committed offsets of the group."""
        topic = self._settings.topic
        tps = [TopicPartition(topic, n) for n in range(self._plan.partitions)]
        consumer = Consumer(
            self._settings.bootstrap, assign=tps, group_id=self._settings.group
        )
        async with consumer:
            found = await consumer.committed(tps)
        return {tp.partition: at.offset for tp, at in found.items() if at is not None}
