"""The example of workers on a queue, run as a user runs it."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from pathlib import Path

import kafkaio
from kafkaio.admin import ConfigChange, ConfigResource, ConfigResourceType
from kafkaio.testing import Broker
from tests.support.patience import HANGS

EXAMPLE = Path(__file__).parents[3] / "examples" / "worker_pool.py"
JOBS = 200


async def start(*words: str) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", str(EXAMPLE), *words),
        stdout=PIPE,  # on stderr asyncio may report that the machine is slow
    )


async def serve(bootstrap: str, done: Counter[bytes], enough: int) -> None:
    """Run a worker until so many jobs are done in total, then stop it."""
    process = await start("--bootstrap", bootstrap)
    assert process.stdout is not None
    output = []
    async for line in process.stdout:
        output.append(line)
        if line.startswith(b"done "):
            done[line] += 1
            if done.total() == enough:
                process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0, output
    assert output[0] == b"ready\n"
    assert output[-1].startswith(b"stopped after"), output


async def test_a_worker_stops_cleanly_and_another_does_the_rest() -> None:
    done = Counter[bytes]()
    async with (
        Broker(topics={"jobs": 2, "jobs.dead": 1}) as broker,
        asyncio.timeout(HANGS),
    ):
        servers = broker.bootstrap_servers
        group = ConfigResource(ConfigResourceType.GROUP, "worker-pool")
        earliest = ConfigChange("share.auto.offset.reset", "earliest")
        async with kafkaio.Admin(servers) as admin:
            await admin.incremental_alter_configs({group: [earliest]})
        async with kafkaio.Producer(servers) as producer:
            await producer.send_many("jobs", [b"%d" % n for n in range(JOBS)])
        await serve(servers, done, JOBS // 3)
        assert JOBS // 3 <= done.total() < JOBS
        await serve(servers, done, JOBS)
    assert len(done) == done.total() == JOBS


async def test_the_demonstration_does_every_job_once_and_puts_poison_aside() -> None:
    async with asyncio.timeout(HANGS):
        process = await start("--records", "300")
        output, _ = await process.communicate()
    assert process.returncode == 0, output
    last = output.splitlines()[-1]
    assert last == b"297 of 300 jobs done, 3 put aside, 0 done twice"
