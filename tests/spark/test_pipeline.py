"""The example of a pipeline: by one command, and through crashes of its driver."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from uuid import uuid4

import pytest

import kafkaio
from kafkaio.testing.kafka import Kafka
from tests.spark.sessions import SHORT_LIVED
from tests.spark.standalone import Standalone

ROOT = Path(__file__).parents[2]
PIPELINE = ROOT / "examples" / "pipeline"
FINE = "the output is what the input demands"
pytestmark = pytest.mark.timeout(600)


class Command:
    """``run.py`` with the arguments that its steps have in common."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments

    async def start(self, *steps: str) -> asyncio.subprocess.Process:
        program = str(PIPELINE / "run.py")
        return await asyncio.create_subprocess_exec(
            *(sys.executable, program, *self._arguments, *steps),
            env=os.environ
            | {
                "PYTHONPATH": str(ROOT),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "JDK_JAVA_OPTIONS": SHORT_LIVED,
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )

    async def run(self, *steps: str) -> tuple[int | None, str]:
        process = await self.start(*steps)
        output, _ = await process.communicate()
        return process.returncode, output.decode()

    async def kill_within_batch(
        self, client: kafkaio.Client, topic: str, directory: Path
    ) -> None:
        """Kill the stream when a micro-batch has written rows and is not finished."""
        process = await self.start("stream")
        reading = asyncio.create_task(process.communicate())
        known, rows_before = batches(directory)[1], 0
        while True:
            assert not reading.done(), reading.result()
            begun, finished = batches(directory)
            rows = await length(client, topic)
            if finished > known:
                known, rows_before = finished, rows
            elif begun > finished and rows > rows_before:
                # It may have finished since; what is stopped changes no more.
                os.killpg(process.pid, signal.SIGSTOP)
                if batches(directory) == (begun, finished):
                    break
                os.killpg(process.pid, signal.SIGCONT)
            await asyncio.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)
        await reading


def command(kafka: Kafka, directory: Path, *more: str) -> tuple[Command, str]:
    name = f"pipeline-{uuid4().hex[:8]}"
    where = ("--kafka", kafka.bootstrap_servers, "--directory", str(directory))
    return Command(*where, "--name", name, *more), name


def batches(directory: Path) -> tuple[int, int]:
    """How many micro-batches the stream of revenue has begun, and finished."""
    log = directory / "checkpoints" / "revenue"
    begun, finished = (
        len([path for path in log.glob(f"{kind}/*") if path.name.isdigit()])
        for kind in ("offsets", "commits")
    )
    return begun, finished


async def test_one_command_runs_it_on_an_embedded_broker(tmp_path: Path) -> None:
    code, output = await Command("--directory", str(tmp_path)).run()
    assert code == 0, output
    assert FINE in output
    assert "Traceback" not in output


@pytest.mark.nightly
async def test_it_goes_on_where_its_driver_was_killed(
    real_kafka: Kafka, tmp_path: Path
) -> None:
    pipeline, name = command(real_kafka, tmp_path)
    assert await pipeline.run("generate") == (0, f"generate ({tmp_path})\n")
    async with kafkaio.Client(real_kafka.bootstrap_servers) as client:
        await pipeline.kill_within_batch(client, f"{name}.revenue", tmp_path)
    code, output = await pipeline.run("stream", "backfill", "check")
    assert code == 0, output
    assert FINE in output
    # What is wrong is seen, each kind of it.
    async with kafkaio.Producer(real_kafka.bootstrap_servers) as producer:
        row = b'{"window":0,"region":"north","orders":1,"cents":1}'
        await producer.send_many(f"{name}.backfill", [row])
    next((tmp_path / "backfill").glob("*.parquet")).unlink()
    code, output = await pipeline.run("check")
    assert code == 1
    assert "the backfill's revenue has ((0, 'north'), (1, 1)), and nothing" in output
    assert "the backfill's Parquet lacks (" in output


@pytest.mark.nightly
async def test_it_runs_on_a_cluster(
    real_kafka: Kafka, standalone: Standalone, tmp_path: Path
) -> None:
    pipeline, _ = command(real_kafka, tmp_path, "--master", standalone.url)
    code, output = await pipeline.run()
    assert code == 0, output
    assert FINE in output


async def length(client: kafkaio.Client, topic: str) -> int:
    numbers = (await client.partitions_for(topic))[topic]
    places = [kafkaio.TopicPartition(topic, number) for number in numbers]
    ends = await client.offsets(dict.fromkeys(places, "latest"))
    return sum(end.offset for end in ends.values() if end is not None)
