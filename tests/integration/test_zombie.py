"""A producer that was frozen does no harm to its successor.

The zombie is a process, and gets SIGSTOP at a step of its transaction; its successor
commits, and then the zombie goes on. The proxy between it and the broker tells the
steps that are requests, and holds what is still on its way.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

import pytest

from kafkaio import GroupMetadata, Producer
from kafkaio.protocol._api_keys import ApiKey as A
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import TopicPartition
from tests.integration.committed import assert_committed, group_offsets
from tests.support.interceptor import Interceptor, Rule
from tests.support.patience import HANGS

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("2.8+"),
    pytest.mark.not_embedded("of the real brokers; units show the embedded one"),
]


@dataclass(frozen=True)
class Freeze:
    """Where the zombie is frozen.

    Attributes:
        step: what it tells of itself, or nothing.
        api: the request that the proxy waits for, else.
        held: whether the request is held, or its answer.
        tv1: whether TV1 alone has the step.
    """

    step: str = ""
    api: A | None = None
    held: Literal["hold", "hold-request"] = "hold"
    tv1: bool = False


STEPS = {
    "initialised": Freeze("initialised"),
    "begun": Freeze("begun"),
    "partitions-added": Freeze(api=A.ADD_PARTITIONS_TO_TXN, tv1=True),
    "produce-on-its-way": Freeze(api=A.PRODUCE, held="hold-request"),
    "produce-written": Freeze(api=A.PRODUCE),
    "produce-answered": Freeze("written"),
    "offsets-added": Freeze(api=A.ADD_OFFSETS_TO_TXN, tv1=True),
    "offsets-on-their-way": Freeze(api=A.TXN_OFFSET_COMMIT, held="hold-request"),
    "offsets-answered": Freeze(api=A.TXN_OFFSET_COMMIT),
    "before-the-end": Freeze("offsets"),
    "end-on-its-way": Freeze(api=A.END_TXN, held="hold-request"),
}


class Zombie:
    """The process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.told: list[str] = []

    async def until(self, *names: str) -> str:
        """Let it go on until it tells one of these."""
        assert self._process.stdout is not None
        assert self._process.stdin is not None
        while line := (await self._process.stdout.readline()).decode().strip():
            self.told.append(line)
            if line in names:
                return line
            if " " not in line:
                self._process.stdin.write(b"\n")
        return ""

    def freeze(self) -> None:
        os.kill(self._process.pid, signal.SIGSTOP)

    async def thaw(self) -> None:
        assert self._process.stdin is not None
        os.kill(self._process.pid, signal.SIGCONT)
        self._process.stdin.write(b"\n")
        await self.until()
        assert await self._process.wait() == 0


@asynccontextmanager
async def started(*args: str) -> AsyncIterator[Zombie]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.zombie", *args),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Zombie(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def commit(producer: Producer, topic: str, group: str, number: int) -> None:
    async with producer.transaction() as tx:
        await tx.send(topic, b"%d" % number, partition=number % 2)
        at = {TopicPartition(topic, 0): number}
        await tx.commit_offsets(GroupMetadata(group), at)


@pytest.mark.parametrize("step", STEPS)
async def test_a_zombie_that_is_frozen(
    transactional: Kafka, tx_topic: TopicFactory, step: str
) -> None:
    servers, topic = transactional.bootstrap_servers, tx_topic(2)
    name, group = f"txn-{uuid.uuid4()}", f"group-{uuid.uuid4()}"
    where = STEPS[step]
    async with (
        asyncio.timeout(HANGS),
        Interceptor(servers) as wire,
        started(wire.servers, name, topic, group) as zombie,
    ):
        if where.api is None:
            await zombie.until(where.step)
            zombie.freeze()
        else:
            rule = wire.add(Rule(where.api, where.held, then=zombie.freeze))
            going = asyncio.ensure_future(zombie.until())
            met = asyncio.ensure_future(rule.met.wait())
            await asyncio.wait([going, met], return_when=asyncio.FIRST_COMPLETED)
            if not rule.met.is_set():  # TV2 does without this request
                assert where.tv1
                assert zombie.told[-2:] == ["error none", "after none"]
                return
            going.cancel()
            await asyncio.wait([going])
        async with Producer(servers, transactional_id=name) as successor:
            await commit(successor, topic, group, 0)
            tx = successor.transaction()
            await tx.begin()
            await tx.send(topic, b"1", partition=1)
            if where.api is not None:
                rule.release.set()
            await zombie.thaw()
            await tx.commit()
            await commit(successor, topic, group, 2)
    assert zombie.told[-2:] == ["error Fenced", "after Fenced"]
    await assert_committed(servers, topic, [b"0", b"1", b"2"], 2)
    assert (await group_offsets(servers, group, topic, 2))[0] == 2
