"""The programs of the page on FastStream and taskiq, where these are installed."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest

from kafkaio.testing import Broker
from tests.pages import python_blocks

PAGE = "migration/faststream.md"
SECONDS = 60


def program(words: str, servers: str) -> str:
    """Return the program of the page that has these words."""
    replace = {"localhost:9092": servers}
    (found,) = (
        each
        for each in python_blocks(PAGE, replace)
        if words in each and "install()" in each
    )
    return found


async def output_of(*arguments: str, cwd: Path | None = None) -> list[bytes]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=cwd, stdout=PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.splitlines()


async def test_faststream() -> None:
    pytest.importorskip("faststream")
    async with Broker(topics={"orders": 1}) as broker, asyncio.timeout(SECONDS):
        code = program("faststream", broker.bootstrap_servers)
        expected = [b"written at offset 0", b"read 2 coffee"]
        assert [
            each for each in await output_of("-c", code) if each in expected
        ] == expected
        assert broker.control.committed("billing", ("orders", 0)) == 1


async def test_taskiq(tmp_path: Path) -> None:
    """A task is sent by the page's program, and done by a worker of taskiq's."""
    pytest.importorskip("taskiq_aio_kafka")
    async with Broker() as broker, asyncio.timeout(SECONDS):
        code = program("taskiq", broker.bootstrap_servers)
        (tmp_path / "service.py").write_text(code)
        worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "kafkaio.aiokafka", "-m", "taskiq"),
            *("worker", "service:broker", "--workers", "1"),
            cwd=tmp_path,
            stdout=PIPE,
            stderr=STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        try:
            # It reads what is new, and logs when it does.
            await line_of(worker, b"Listening started")
            await output_of("service.py", cwd=tmp_path)
            await line_of(worker, b"billed 2 coffee")
        finally:
            worker.terminate()
            await worker.wait()


async def line_of(process: asyncio.subprocess.Process, words: bytes) -> None:
    """Read what a process writes until a line has these words."""
    assert process.stdout is not None
    async for line in process.stdout:
        if words in line:
            return
    raise AssertionError(f"the process has ended without {words!r}")
