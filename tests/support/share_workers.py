"""Share consumers of other people, put to work on the embedded broker.

A worker is a process that takes records and does with each what its value says:

- ``good...``: it accepts it;
- ``bad...``: it rejects it;
- ``later...``: it releases the first delivery, and accepts the next one;
- ``hold...``: it keeps it, and takes no more.

It prints value and delivery count of each, and ``left`` when its input has ended and it
has left.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from kafkaio import Producer, TopicPartition
from kafkaio.admin import Admin, ConfigChange, ConfigResource, ConfigResourceType
from kafkaio.testing import Broker
from tests.support.patience import HANGS

TOPIC: Final = "t"
GROUP: Final = "workers"
PARTITIONS: Final = 3
_COUNT: Final = 60


class Worker:
    """A worker that runs: read what it did, end it or kill it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def did(self, count: int = 1) -> list[str]:
        """Return its next lines.

        Raises:
            RuntimeError: it has ended.
        """
        assert self._process.stdout is not None
        found: list[str] = []
        async with asyncio.timeout(HANGS):
            while len(found) < count:
                line = await self._process.stdout.readline()
                if not line:
                    raise RuntimeError(f"it has ended after {found}")
                found.append(line.decode().strip())
        return found

    async def leave(self) -> None:
        """End its input, and wait until it has left."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert await self.did() == ["left"]
        assert await self._process.wait() == 0

    async def kill(self) -> None:
        """Kill it (SIGKILL), if it runs."""
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def working(
    command: Sequence[str | Path], broker: Broker
) -> AsyncIterator[Worker]:
    """Run a worker, whose program is given without its arguments."""
    process = await asyncio.create_subprocess_exec(
        *command,
        *(broker.bootstrap_servers, GROUP, TOPIC),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parent.parent.parent,
    )
    worker = Worker(process)
    try:
        yield worker
    finally:
        await worker.kill()


async def prepare(broker: Broker, **configs: str) -> None:
    """Let the group begin at the first record, and have other configs."""
    wanted = {"share.auto.offset.reset": "earliest"} | {
        name.replace("_", "."): value for name, value in configs.items()
    }
    changes = [ConfigChange(name, value) for name, value in wanted.items()]
    async with Admin(broker.bootstrap_servers) as admin:
        resource = ConfigResource(ConfigResourceType.GROUP, GROUP)
        await admin.incremental_alter_configs({resource: changes})


async def produce(broker: Broker, *values: str) -> None:
    """Write records to the partitions by turns."""
    async with Producer(broker.bootstrap_servers) as producer:
        for number, value in enumerate(values):
            await producer.send(TOPIC, value.encode(), partition=number % PARTITIONS)


async def lag(broker: Broker) -> int:
    """The number of records that the group is not done with."""
    partitions = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    async with Admin(broker.bootstrap_servers) as admin:
        found = await admin.list_share_group_offsets({GROUP: partitions})
    return sum((one.lag or 0) if one else 0 for one in found[GROUP].values())


async def check_work(command: Sequence[str | Path], broker: Broker) -> None:
    """Let a worker accept, release, reject, and be killed with records in its hands."""
    await prepare(broker)
    good = [f"good-{number}" for number in range(_COUNT)]
    later, bad = ["later-0", "later-1"], ["bad-0", "bad-1", "bad-2"]
    await produce(broker, *later, *good, *bad)
    expected = [f"{value} 1" for value in [*good, *bad, *later]]
    expected += [f"{value} 2" for value in later]
    async with working(command, broker) as worker:
        assert sorted(await worker.did(len(expected))) == sorted(expected)
        # The answers come before it prints what it got next.
        await produce(broker, "hold-0")
        assert await worker.did() == ["hold-0 1"]
        assert await lag(broker) == 1
        assert len(broker.control.members(GROUP)) == 1
        await worker.kill()
    async with working(command, broker) as other:
        # Freed by the end of its connection, long before the lock is over.
        assert await other.did() == ["hold-0 2"]
        await other.leave()
    # What is held is released by whoever leaves.
    async with working(command, broker) as third:
        assert await third.did() == ["hold-0 3"]
        await third.kill()
