"""Members of a share group by three clients, while everything around them fails.

Each member is a process that accepts numbered records (`tests.support.share_peers`).
Members are killed, frozen beyond their locks, and leave; leaders move; on a cluster
with proxies connections are cut, too. At the end a member that joins gets nothing: all
records were accepted.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final, Literal, TypeAlias, assert_never
from uuid import uuid4

from kafkaio import Producer, TopicPartition
from kafkaio.admin import (
    Admin,
    ConfigChange,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
)
from kafkaio.errors import KafkaError
from tests.support.share_peers import CLIENTS, Client, Deliveries, SharePeer
from tests.torture.brokers import Period
from tests.torture.chaos import Chaos

Fate: TypeAlias = Literal["kill", "freeze", "leave"]
_FATES: Final[dict[Fate, int]] = {"kill": 3, "freeze": 3, "leave": 2}
#: The most deliveries of a record; Kafka allows no more.
LIMIT: Final = 10
_STARTED_SECONDS: Final = 60.0
_DRAIN_SECONDS: Final = 90.0
#: The records that are written at once.
_ROW: Final = 24
_NAMED: Final = 5


@dataclass(frozen=True)
class SharePlan:
    """What happens.

    Attributes:
        records: how many are written, besides those until all members have joined.
        seconds: over which time.
        seed: draws what happens.
        members: how many of each client.
        partitions: of the topic.
        fate_seconds: from one fate of a member to the next, on average.
        move_seconds: from one move of leaders to the next.
        lock_seconds: how long a lock lasts.
        quiet_seconds: without a delivery, after which nothing is left: longer than a
            lock, and than clients take to reconnect.
        clients: whose members they are.
    """

    records: int
    seconds: float
    seed: int = 1
    members: int = 2
    partitions: int = 8
    fate_seconds: float = 3.0
    move_seconds: float = 10.0
    lock_seconds: float = 2.0
    quiet_seconds: float = 15.0
    clients: Sequence[Client] = CLIENTS


@dataclass
class ShareVerdict:
    """What came of it.

    Attributes:
        wrong: what must not be; empty if all is well.
        counts: what happened how often.
    """

    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        numbers = ", ".join(f"{n} {what}" for what, n in sorted(self.counts.items()))
        return f"{numbers}\n" + "\n".join(self.wrong or ["all is well"])


def judge(found: Deliveries, records: int, left: set[int]) -> ShareVerdict:
    """Judge what members got and accepted.

    Args:
        found: their journals.
        records: how many records were written: 0, 1, ...
        left: the numbers that a member got which came when all was over.
    """
    wanted, verdict = set(range(records)), ShareVerdict()
    wrong = verdict.wrong
    if unseen := wanted - found.seen:
        wrong.append(f"{len(unseen)} records were never delivered: {_some(unseen)}")
    if left:
        wrong.append(f"{len(left)} records were not accepted: {_some(left)}")
    if dead := found.dead(LIMIT):
        wrong.append(f"{len(dead)} records used up their deliveries: {_some(dead)}")
    if found.most() > LIMIT:
        wrong.append(f"a record was delivered {found.most()} times, of {LIMIT}")
    if again := found.after_acceptance():
        wrong.append(f"{len(again)} were delivered after their acceptance: {again[:3]}")
    if quiet := found.unannounced():
        wrong.append(f"{len(quiet)} repetitions were not announced: {quiet[:3]}")
    unanswered = wanted - found.done
    verdict.counts.update(
        {
            "records": records,
            "delivered again": found.repeated(),
            "accepted without an answer": len(unanswered & found.seen),
            "deliveries at most": found.most(),
        }
    )
    for row in found.got.values():
        for each in row:
            verdict.counts[f"got by {each.member.partition('-')[0]}"] += 1
    return verdict


def _some(numbers: set[int]) -> str:
    return ", ".join(map(str, sorted(numbers)[:_NAMED]))


class Sharing:
    """One run.

    Args:
        plan: what happens.
        servers: where members and the director connect.
        directory: where journals are written.
        say: hears of what happens.
        calm: where the director connects; the servers of the members by default.
        chaos: the proxies between members and brokers; None for none.
    """

    def __init__(
        self,
        plan: SharePlan,
        servers: str,
        directory: Path,
        say: Callable[[str], None],
        calm: str | None = None,
        chaos: Chaos | None = None,
    ) -> None:
        self._plan = plan
        self._servers = servers
        self._calm = calm or servers
        self._directory = directory
        self._say = say
        self._chaos = chaos
        self._rng = random.Random(plan.seed)
        self._period = Period()
        name = uuid4().hex[:12]
        self._topic, self._group = f"shared-{name}", f"sharers-{name}"
        self._names = count(1)
        self._peers: list[SharePeer] = []
        self._found = Deliveries(directory)
        self._happened: Counter[str] = Counter()
        # The next number to write.
        self._written = 0

    async def run(self) -> ShareVerdict:
        """Let it happen, and judge it."""
        async with Admin(self._calm) as admin:
            await self._set_up(admin)
            try:
                await self._happen(admin)
                await self._drain()
                for peer in self._peers:
                    await peer.end()
                left = await self._leftovers()
            finally:
                for peer in self._peers:
                    await peer.kill()
        verdict = judge(self._found, self._written, left)
        verdict.counts.update(self._happened)
        return verdict

    async def _set_up(self, admin: Admin) -> None:
        nodes = len((await admin.describe_cluster()).brokers)
        topic = NewTopic(self._topic, self._plan.partitions, min(3, nodes))
        await admin.create_topics([topic])
        options = {
            "share.auto.offset.reset": "earliest",
            "share.record.lock.duration.ms": str(round(self._plan.lock_seconds * 1000)),
            "share.delivery.count.limit": str(LIMIT),
        }
        changes = [ConfigChange(name, value) for name, value in options.items()]
        group = ConfigResource(ConfigResourceType.GROUP, self._group)
        await admin.incremental_alter_configs({group: changes})

    async def _happen(self, admin: Admin) -> None:
        plan = self._plan
        for client in (*plan.clients,) * plan.members:
            await self._begin(client)
        async with Producer(self._calm) as producer:
            await self._until_all_got_some(producer)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read())
                tasks.create_task(self._fates())
                tasks.create_task(self._move_leaders(admin))
                if self._chaos is not None:
                    tasks.create_task(self._chaos.run(self._rng, self._period.pause))
                try:
                    await self._write_all(producer)
                finally:
                    self._period.end()

    async def _until_all_got_some(self, producer: Producer) -> None:
        names = {peer.name for peer in self._peers}
        async with asyncio.timeout(_STARTED_SECONDS):
            while names:
                await self._write(producer)
                await asyncio.sleep(0.1)
                self._found.update()
                names = {name for name in names if not self._found.of(name)}

    async def _read(self) -> None:
        """Read the journals as they grow.

        At the end that would take seconds, in which the proxies would stand still.
        """
        while await self._period.pause(0.5):
            await asyncio.to_thread(self._found.update)

    async def _write_all(self, producer: Producer) -> None:
        first, began = self._written, time.monotonic()
        while (done := self._written - first) < self._plan.records:
            due = began + self._plan.seconds * done / self._plan.records
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await self._write(producer)

    async def _write(self, producer: Producer) -> None:
        # To all partitions: without a number, one would get all for a while.
        sent = [
            await producer.enqueue(
                self._topic, b"%d" % number, partition=number % self._plan.partitions
            )
            for number in range(self._written, self._written + _ROW)
        ]
        self._written += _ROW
        await asyncio.gather(*sent)

    async def _begin(self, client: Client) -> SharePeer:
        name = f"{client}-{next(self._names)}"
        peer = SharePeer(
            *(client, name, self._servers, self._group, self._topic),
            directory=self._directory,
        )
        self._peers.append(peer)
        await peer.start()
        return peer

    async def _fates(self) -> None:
        plan, rng = self._plan, self._rng
        while await self._period.pause(rng.uniform(0.5, 1.5) * plan.fate_seconds):
            peer = rng.choice(self._peers)
            (fate,) = rng.choices(list(_FATES), list(_FATES.values()))
            self._tell(fate, peer)
            match fate:
                case "kill":
                    await peer.kill()
                case "freeze":
                    peer.pause()
                    await self._period.pause(plan.lock_seconds * rng.uniform(1.2, 2.0))
                    peer.resume()
                    continue
                case "leave":
                    await peer.end()
                case _:
                    assert_never(fate)
            self._peers.remove(peer)
            await self._begin(peer.client)

    def _tell(self, what: str, whom: object) -> None:
        self._happened[what] += 1
        self._say(f"{what} {whom}")

    async def _move_leaders(self, admin: Admin) -> None:
        """Let the next replica of each partition lead it, again and again."""
        partitions = [
            TopicPartition(self._topic, number)
            for number in range(self._plan.partitions)
        ]
        while await self._period.pause(self._plan.move_seconds):
            described = (await admin.describe_topics([self._topic]))[self._topic]
            orders = {
                tp: [*replicas[1:], replicas[0]]
                for tp in partitions
                if len(replicas := described.partitions[tp.partition].replicas) > 1
            }
            try:
                await admin.alter_partition_reassignments(orders)
                await admin.elect_leaders("preferred", orders)
            except KafkaError as error:
                self._say(f"leaders stay: {error}")
                continue
            self._tell("move", "leaders")

    async def _drain(self) -> None:
        """Wait until all is accepted, or nothing is delivered any more.

        Raises:
            TimeoutError: records are delivered all the time.
        """
        found, began = self._found, time.monotonic()
        async with asyncio.timeout(_DRAIN_SECONDS):
            while True:
                await asyncio.to_thread(found.update)
                quiet = time.monotonic() - max(began, found.last_at)
                # The numbers of all places differ.
                is_done = len(found.accepted) == self._written
                if is_done or quiet > self._plan.quiet_seconds:
                    return
                await asyncio.sleep(0.1)

    async def _leftovers(self) -> set[int]:
        """The numbers that a new member gets when all others have left."""
        auditor = await self._begin("confluent")
        await asyncio.sleep(2 * self._plan.lock_seconds)
        await auditor.end()
        self._found.update()
        return self._found.of(auditor.name)
