"""Has members copy a topic in transactions, while everything around them fails."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final, Literal, TypeAlias, assert_never
from uuid import uuid4

from kafkaio import Consumer, TopicPartition
from kafkaio.testing.kafka import Kafka
from tests.torture.brokers import AND_FREEZES, OFFSETS, STATES, Brokers, Period
from tests.torture.chaos import Chaos, ProxiedCluster
from tests.torture.copied import CopyVerdict, Evidence, judge
from tests.torture.copying import WAYS
from tests.torture.crowd import JAVA_COPIER, TOOLS, Java, Ours
from tests.torture.inspection import Inspection
from tests.torture.journal import DIRECTOR, Journal, Journals
from tests.torture.plan import SESSION_SECONDS, TRANSACTION_SECONDS, Job, Plan, Settings
from tests.torture.traffic import Traffic

Fate: TypeAlias = Literal["leave", "cancel", "stall", "kill", "freeze", "zombie"]
_FATES: Final[dict[Fate, int]] = {
    "leave": 5,
    "cancel": 3,
    "stall": 2,
    "kill": 3,
    "freeze": 2,
    "zombie": 2,
}
_JAVA_FATES: Final = ("leave", "kill", "freeze")
_MODULE: Final = "tests.torture.copier"
_DRAIN_SECONDS: Final = 180.0
_TOLD_SECONDS: Final = 10.0
_SETTLE_SECONDS: Final = 2 * TRANSACTION_SECONDS
#: Words of members that are counted.
_COUNTED: Final = {
    *("joined", "left", "killed", "cancelled", "fenced", "again", "stalling"),
    *("frozen", "zombie", "assigned", "lost"),
    *("broker-killed", "broker-stopped", "broker-frozen", "coordinator-moved"),
    *("proxy-cut", "proxy-stall", "proxy-delay", "proxy-swallow"),
}
#: Words after which a slot is free.
_GONE: Final = {"left", "fenced", "cancelled"}


@dataclass
class CopySlot:
    """A transactional id, which one process after the other uses."""

    number: int
    home: Ours
    member: str | None = None
    names: count[int] = field(default_factory=count)


class CopyDirector:
    """A run of the plan.

    Args:
        plan: what to do.
        kafka: where.
        cluster: the same cluster, with its proxies.
        directory: for the journals.
        say: hears how it goes.
    """

    def __init__(
        self,
        plan: Plan,
        kafka: Kafka,
        cluster: ProxiedCluster,
        directory: Path,
        say: Callable[[str], None] = print,
    ) -> None:
        name = f"torture-{uuid4().hex[:8]}"
        self._plan = plan
        self._kafka = kafka
        self._directory = directory
        self._say = say
        self._settings = Settings(
            bootstrap=cluster.chaotic_servers, topic=name, group=name, seed=plan.seed
        )
        self._output = f"{name}-output"
        self._journal = Journal(directory / "director.journal")
        self._period = Period()
        self._brokers = Brokers(
            kafka,
            self._period,
            self._journal,
            (name, self._output, OFFSETS, STATES),
        )
        self._chaos = Chaos(
            cluster, lambda word, node: self._journal.write(DIRECTOR, word, node)
        )
        self._inspection = Inspection(
            TOOLS, cluster, self._brokers, kafka.bootstrap_servers
        )
        self._homes = count()
        self._slots = [CopySlot(n, self._home(n)) for n in range(plan.members)]
        #: Processes whose transactional id another one uses by now.
        self._replaced: list[Ours] = []
        self._traffic = Traffic(name, plan.partitions, plan.rate)
        self._journals = Journals(directory)
        self._events: Counter[str] = Counter()
        self._failed: list[str] = []

    def _home(self, number: int) -> Ours:
        job = Job(
            output=self._output,
            partitions=self._plan.partitions,
            transactional_id=f"{self._settings.topic}-{number}",
            client=self._plan.client,
            sabotage=self._plan.sabotage,
        )
        path = self._directory / f"process-{next(self._homes)}.journal"
        return Ours(self._settings, path, self._journal, _MODULE, job.dumps())

    async def run(self) -> CopyVerdict:
        """Run the plan.

        Raises:
            Exception: the run itself failed.
        """
        for topic in (self._settings.topic, self._output):
            await self._kafka.create_topic(topic, self._plan.partitions)
        await self._chaos.start()
        java: list[Java] = []

        def processes() -> list[Ours | Java]:
            return [*self._running(), *java]

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
            await self._chaos.close()
        return await self._judge()

    def _running(self) -> list[Ours]:
        return [*(slot.home for slot in self._slots), *self._replaced]

    async def _inject_faults(self, tasks: asyncio.TaskGroup, java: list[Java]) -> None:
        plan, rng = self._plan, random.Random(self._plan.seed)

        def own() -> random.Random:
            return random.Random(rng.random())

        for slot in self._slots:
            await slot.home.start()
            self._join(slot, rng)
        async with self._traffic.flowing(self._kafka.bootstrap_servers):
            fates = [
                self._members(own()),
                self._chaos.run(own(), self._period.pause),
                self._brokers.move_coordinators(own()),
                *(self._java(n, own(), java) for n in range(plan.java)),
            ]
            if plan.kill_brokers:
                fates.append(self._brokers.die(own(), plan.seconds, AND_FREEZES))
            running = [tasks.create_task(fate) for fate in fates]
            await asyncio.sleep(plan.seconds)
            self._period.end()
            await asyncio.wait(running)
            await self._brokers.in_sync()
        self._say("the chaos is over; draining")
        await self._drain(rng)

    async def _drain(self, rng: random.Random) -> None:
        """Wait until the group has committed the end of the input, with a timeout."""
        for process in self._running():
            process.signal(signal.SIGCONT)
        for old in self._replaced:
            if old.is_running:
                old.tell("end")
        ends = self._ends()
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while await self._committed() != ends:
                    self._read()
                    for slot in self._slots:
                        await self._revive(slot, rng)
                    await asyncio.sleep(1.0)

    def _ends(self) -> dict[int, int]:
        """The end of each partition of the input."""
        ends: dict[int, int] = {}
        for place in self._traffic.acknowledged:
            ends[place.partition] = max(ends.get(place.partition, 0), place.offset + 1)
        return ends

    # ---- members ---------------------------------------------------------------------

    async def _members(self, rng: random.Random) -> None:
        """Inject one fault after the other into a member."""
        async with asyncio.TaskGroup() as tasks:
            while await self._period.pause(rng.expovariate(1 / self._plan.pace)):
                self._read()
                absent = [slot for slot in self._slots if slot.member is None]
                if absent and rng.random() < 0.7:
                    await self._revive(rng.choice(absent), rng)
                    continue
                (what,) = rng.choices(list(_FATES), list(_FATES.values()))
                slot = rng.choice(self._slots)
                await self._happen(what, slot, rng, tasks)

    async def _happen(
        self,
        what: Fate,
        slot: CopySlot,
        rng: random.Random,
        tasks: asyncio.TaskGroup,
    ) -> None:
        home, member = slot.home, slot.member or ""
        match what:
            case _ if not home.is_running:
                pass
            case "leave":
                home.tell("leave", member=member)
            case "cancel":
                home.tell("cancel", member=member, seconds=rng.choice((0, 0.02, 0.5)))
            case "stall":
                longest = rng.choice((2.0, 1.5 * TRANSACTION_SECONDS))
                home.tell("stall", member=member, seconds=f"{longest:.1f}")
            case "kill":
                await home.kill()
                slot.member = None
            case "freeze":
                self._journal.write(member or DIRECTOR, "frozen")
                home.signal(signal.SIGSTOP)
                tasks.create_task(self._thaw(home, rng))
            case "zombie":
                self._journal.write(member or DIRECTOR, "zombie")
                home.signal(signal.SIGSTOP)
                self._replaced.append(home)
                slot.home, slot.member = self._home(slot.number), None
                await self._revive(slot, rng)
                tasks.create_task(self._thaw(home, rng))
            case _:
                assert_never(what)

    async def _thaw(self, home: Ours, rng: random.Random) -> None:
        longest = rng.choice((1.0, 5.0, 1.5 * SESSION_SECONDS))
        await self._period.pause(rng.uniform(0.5, 1) * longest)
        home.signal(signal.SIGCONT)

    async def _revive(self, slot: CopySlot, rng: random.Random) -> None:
        """Start the process of a slot and its member, unless they are there."""
        if not slot.home.is_running:
            slot.home = self._home(slot.number)
            slot.member = None
            await slot.home.start()
        if slot.member is None:
            self._join(slot, rng)

    def _join(self, slot: CopySlot, rng: random.Random) -> None:
        slot.member = f"{slot.number:02}.{next(slot.names)}"
        slot.home.members.add(slot.member)
        slot.home.tell(
            "join",
            member=slot.member,
            style=rng.choice(list(WAYS)),
            protocol=self._plan.draw_protocol(rng),
        )

    async def _java(self, number: int, rng: random.Random, java: list[Java]) -> None:
        """Have a Java member join, and leave or die, again and again."""
        transactional_id = f"{self._settings.topic}-java-{number}"
        extra = self._output, str(self._plan.partitions), transactional_id
        for name in (f"java-{number}.{n}" for n in count()):
            protocol = self._plan.draw_protocol(rng)
            member = Java(
                *(name, protocol, self._settings, self._directory, self._journal),
                *(JAVA_COPIER, *extra, str(round(TRANSACTION_SECONDS * 1000))),
            )
            java.append(member)
            await member.start()
            if not await self._period.pause(rng.uniform(15, 45)):
                break
            if rng.random() < 0.5:
                await member.kill()
            else:
                await member.end()
            if not await self._period.pause(rng.uniform(1, 8)):
                break

    # ---- the result ------------------------------------------------------------------

    def _read(self) -> None:
        """Read what the members have written."""
        for line in self._journals.news():
            if line.word == "failed":
                self._failed.append(f"{line.member}: {' '.join(line.details)}")
            elif line.word in _COUNTED:
                self._events[line.word] += 1
            if line.word in _GONE or line.word == "failed":
                for slot in self._slots:
                    if slot.member == line.member:
                        slot.member = None

    async def _tell(self) -> None:
        began = time.monotonic()
        while True:
            await asyncio.sleep(_TOLD_SECONDS)
            self._read()
            present = sum(slot.member is not None for slot in self._slots)
            sent = len(self._traffic.acknowledged)
            left = sum(self._ends().values()) - sum((await self._committed()).values())
            self._say(
                f"{time.monotonic() - began:4.0f} s  {present} members, {sent} sent, "
                f"{left} to commit"
            )

    async def _committed(self) -> dict[int, int]:
        """The committed offsets of the group; none while nobody tells them."""
        topic = self._settings.topic
        tps = [TopicPartition(topic, n) for n in range(self._plan.partitions)]
        consumer = Consumer(
            self._kafka.bootstrap_servers,
            assign=tps,
            group_id=self._settings.group,
            enable_auto_commit=False,
        )
        with suppress(OSError, TimeoutError):
            async with consumer:
                found = await consumer.committed(tps)
                return {
                    tp.partition: at.offset
                    for tp, at in found.items()
                    if at is not None
                }
        return {}

    async def _judge(self) -> CopyVerdict:
        """Count, when the last transaction has ended or timed out."""
        await asyncio.sleep(_SETTLE_SECONDS)
        self._read()
        look = self._inspection
        sent: Counter[int] = Counter()
        for each in self._traffic.acknowledged.values():
            sent[each.key] += 1
        committed, _ = await look.offsets(self._settings.group)
        hanging = [
            f"{directory}, producer {producer}"
            for directory, producer in sorted(await look.open_offsets())
        ]
        if self._kafka.options.release.version >= "3":
            hanging += await look.hanging()
        verdict = judge(
            Evidence(
                sent=sent,
                read=await look.read_committed(self._output),
                replay=await look.replay(self._output),
                ends=self._ends(),
                committed=committed,
                coordinated=await look.coordinated(),
                hanging=hanging,
                failed=self._failed,
            )
        )
        verdict.events = self._events
        verdict.events["rebalances"] = self._events.pop("assigned", 0)
        return verdict
