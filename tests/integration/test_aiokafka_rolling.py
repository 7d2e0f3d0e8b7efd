"""A running service moves from aiokafka to kafkaio, and back, without a change to it.

The members of a group, and the producer that writes to it, are processes of one program
that was written for aiokafka. One after the other is replaced, while records flow. Each
record is committed for itself, so that none may be missing, and none may come twice but
one that was in hand: whose commit was refused, or whose process was killed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from kafkaio.testing.pytest_plugin import TopicFactory
from tests.support import aiokafka_service
from tests.support.kafka import Kafka
from tests.support.patience import HANGS

PROGRAM: Final = Path(aiokafka_service.__file__)
#: How the same program is started on either client.
ON: Final = {
    "aiokafka": (sys.executable, str(PROGRAM)),
    "kafkaio": (sys.executable, "-m", "kafkaio.aiokafka", str(PROGRAM)),
}
PARTITIONS: Final = 6
MEMBERS: Final = 2
#: There and back once; the nightly session has more, and kills some of the members.
ROUNDS: Final = int(os.environ.get("KAFKAIO_ROLLING_ROUNDS", "1"))

pytestmark = pytest.mark.timeout(120 * (ROUNDS + 1))


class Service:
    """A process of the program, and what it has told so far."""

    def __init__(self, client: str, process: asyncio.subprocess.Process) -> None:
        self.client = client
        self.told: list[list[str]] = []
        self._process = process
        self._changed = asyncio.Condition()

    @classmethod
    @asynccontextmanager
    async def started(cls, client: str, *arguments: str) -> AsyncIterator[Service]:
        """Run it; it is killed if it still runs at the end."""
        process = await asyncio.create_subprocess_exec(
            *ON[client],
            *arguments,
            cwd=Path(__file__).parents[2],
            stdout=asyncio.subprocess.PIPE,
        )
        service = cls(client, process)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(service._listen())
            try:
                yield service
            finally:
                if process.returncode is None:
                    process.kill()

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            async with self._changed:
                self.told.append(line.decode().split())
                self._changed.notify_all()
        await self._process.wait()
        async with self._changed:
            self._changed.notify_all()

    def numbers(self, word: str) -> list[int]:
        """The numbers of the records of which it has told a step."""
        return [int(line[1]) for line in self.told if line[0] == word]

    @property
    def partitions(self) -> set[int]:
        """What it was assigned last."""
        for word, *numbers in reversed(self.told):
            if word == "assigned":
                return set(map(int, numbers))
            if word == "revoked":
                break
        return set()

    async def next(self, word: str) -> None:
        """Wait until it tells this step once more."""
        before = len(self.told)

        def has_told() -> bool:
            assert self._process.returncode is None, f"{self.client} ended: {self.told}"
            return any(line[0] == word for line in self.told[before:])

        async with asyncio.timeout(HANGS), self._changed:
            await self._changed.wait_for(has_told)

    async def stop(self) -> None:
        """End it as an operator does, and wait until it has ended well."""
        self._process.terminate()
        async with asyncio.timeout(HANGS):
            assert await self._process.wait() == 0
            async with self._changed:
                await self._changed.wait_for(lambda: self.told[-1] == ["stopped"])

    async def kill(self) -> None:
        """End it without a word to the group."""
        self._process.kill()
        async with asyncio.timeout(HANGS):
            await self._process.wait()


class Rolling:
    """The service as it is operated: some members, and one producer."""

    def __init__(self, stack: AsyncExitStack, servers: str, topic: str) -> None:
        self._stack = stack
        self._place = (servers, topic)
        self.members: list[Service] = []
        #: All that have ever run.
        self.consumers: list[Service] = []
        self.producers: list[Service] = []

    async def _start(self, kind: str, client: str, detail: str) -> Service:
        started = Service.started(client, kind, *self._place, detail)
        return await self._stack.enter_async_context(started)

    async def produce(self, client: str) -> None:
        """Replace the producer; the next one goes on where it stopped."""
        for former in self.producers[-1:]:
            await former.stop()
        first = sum(len(each.numbers("sent")) for each in self.producers)
        self.producers.append(await self._start("produce", client, str(first)))
        await self.producers[-1].next("sent")

    async def join(self, client: str) -> None:
        """Start a member, and wait until the group works with it."""
        member = await self._start("consume", client, f"group-{self._place[1]}")
        self.members.append(member)
        self.consumers.append(member)
        await self.works()

    async def leave(self, *, kill: bool) -> None:
        """End the oldest member, and wait until the group works without it."""
        oldest = self.members.pop(0)
        await (oldest.kill() if kill else oldest.stop())
        await self.works()

    async def works(self) -> None:
        """Wait until the members have all partitions, and each takes records."""
        everything = set(range(PARTITIONS))
        async with asyncio.timeout(HANGS):
            while self._assigned() != sorted(everything):
                async with asyncio.TaskGroup() as tasks:
                    waiting = [
                        tasks.create_task(each.next("assigned"))
                        for each in self.members
                    ]
                    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for task in waiting:
                        task.cancel()
            for member in self.members:
                await member.next("done")

    def _assigned(self) -> Sequence[int]:
        return sorted(number for each in self.members for number in each.partitions)


def judge(rolling: Rolling) -> None:
    """Assert that each record was done, and none twice but what was in hand."""
    sent = [n for each in rolling.producers for n in each.numbers("sent")]
    assert sent == list(range(len(sent)))

    def count(word: str) -> Counter[int]:
        return Counter(n for each in rolling.consumers for n in each.numbers(word))

    took, done, refused = count("took"), count("done"), count("refused")
    killed = {each for each in rolling.consumers if each.told[-1] != ["stopped"]}
    in_hand = Counter(
        each.numbers("took")[-1] for each in killed if each.told[-1][0] == "took"
    )
    assert set(sent) <= took.keys()
    for number, times in took.items():
        again = refused[number] + in_hand[number]
        assert times <= 1 + again, f"{number} was taken {times} times"
        assert done[number] <= 1, f"{number} was committed {done[number]} times"


async def test_members_are_replaced_there_and_back(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    name = topic(partitions=PARTITIONS)
    async with AsyncExitStack() as stack:
        rolling = Rolling(stack, real_kafka.bootstrap_servers, name)
        await rolling.produce("aiokafka")
        for _ in range(MEMBERS):
            await rolling.join("aiokafka")
        for turn in range(ROUNDS):
            for client in ("kafkaio", "aiokafka"):
                for number in range(MEMBERS):
                    await rolling.join(client)
                    await rolling.leave(kill=turn % 2 == 1 and number == 0)
                await rolling.produce(client)
        await rolling.producers[-1].stop()
        last = len([n for each in rolling.producers for n in each.numbers("sent")])
        async with asyncio.timeout(HANGS):
            while len({n for c in rolling.consumers for n in c.numbers("took")}) < last:
                await rolling.members[0].next("done")
        while rolling.members:
            await rolling.members.pop().stop()
    judge(rolling)
