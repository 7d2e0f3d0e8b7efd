"""One broker at a time uses a data directory."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import kafkaio
from kafkaio._cli import main
from kafkaio.testing import Broker
from kafkaio.testing._broker.lock import DirectoryLock

#: A broker in a process of its own, which is killed while it holds the lock.
HOLDER = """
import asyncio, sys
from kafkaio.testing import Broker

async def hold():
    async with Broker(data_dir=sys.argv[1]):
        print("held", flush=True)
        await asyncio.Event().wait()

asyncio.run(hold())
"""


async def test_a_second_broker_is_refused(tmp_path: Path) -> None:
    async with Broker(topics={"t": 1}, data_dir=tmp_path) as one:
        before = (tmp_path / "cluster.json").read_bytes()
        second = Broker(data_dir=tmp_path, topics={"other": 1})
        with pytest.raises(OSError, match="another broker uses this directory") as told:
            await second.__aenter__()
        assert told.value.filename == str(tmp_path)
        # It has changed nothing, also not when it is closed all the same.
        await second.__aexit__(None, None, None)
        assert (tmp_path / "cluster.json").read_bytes() == before
        async with kafkaio.Producer(one.bootstrap_servers) as producer:
            await producer.send("t", b"v")
    async with Broker(data_dir=tmp_path) as again:
        assert again.topics["t"].partitions[0].high_watermark == 1


async def test_closing_a_second_time_writes_nothing(tmp_path: Path) -> None:
    first = Broker(topics={"t": 1}, data_dir=tmp_path)
    await first.__aenter__()
    await first.__aexit__(None, None, None)
    async with Broker(topics={"later": 1}, data_dir=tmp_path):
        written = (tmp_path / "cluster.json").read_bytes()
        await first.__aexit__(None, None, None)
        assert (tmp_path / "cluster.json").read_bytes() == written


async def test_a_start_that_fails_gives_the_lock_back(tmp_path: Path) -> None:
    async with Broker() as other:
        port = other.nodes[0].port
        with pytest.raises(OSError, match="in use"):
            await Broker(data_dir=tmp_path, port=port).__aenter__()
    async with Broker(data_dir=tmp_path):
        pass


async def test_a_broker_that_cannot_be_saved_gives_the_lock_back(
    tmp_path: Path,
) -> None:
    (tmp_path / "cluster.json.new").mkdir()
    with pytest.raises(OSError, match="directory"):
        await Broker(data_dir=tmp_path).__aenter__()
    (tmp_path / "cluster.json.new").rmdir()
    async with Broker(data_dir=tmp_path):
        pass


def test_the_lock_ends_with_the_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"held\n"
            words = ["broker", "--port", "0", "--data-dir", str(tmp_path)]
            assert main(words) == 2
        finally:
            process.kill()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kafkaio broker: {tmp_path}: another broker uses this")
    lock = DirectoryLock(tmp_path)
    lock.acquire()
    lock.release()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_does_not_keep_the_lock(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    lock.acquire()
    child = os.fork()
    if not child:
        signal.pause()
    try:
        lock.release()
        lock.release()
        other = DirectoryLock(tmp_path)
        other.acquire()
        other.release()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
