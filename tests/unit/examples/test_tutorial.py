"""The tutorial: the page has the programs verbatim, and they do what it says."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

import kafkaio
from kafkaio.testing import Broker

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "guide" / "tutorial.md"
PROGRAMS = ROOT / "examples" / "tutorial"

#: The code blocks of the page that have a file name, by file name.
FENCED = r"^<!-- (\S+\.py) -->\n```python\n(.*?)^```$"
BLOCKS = dict(re.findall(FENCED, PAGE.read_text(), re.MULTILINE | re.DOTALL))
#: Shorter heartbeats than the default, so that rebalances are fast.
CONFIG = {
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
}


async def start(bootstrap: str, *words: str, cwd: Path = PROGRAMS) -> Process:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", *words),
        cwd=cwd,
        env=os.environ | {"BOOTSTRAP": bootstrap, "PYTHONPATH": path},
        stdout=PIPE,  # on stderr asyncio may report that the machine is slow
    )


async def run(bootstrap: str, *words: str, cwd: Path = PROGRAMS) -> str:
    process = await start(bootstrap, *words, cwd=cwd)
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def line(process: Process, beginning: str) -> str:
    """Return the next line of output with this beginning."""
    assert process.stdout is not None
    seen = []
    async for found in process.stdout:
        seen.append(found.decode().rstrip())
        if seen[-1].startswith(beginning):
            return seen[-1]
    raise AssertionError(f"no line {beginning!r} in {seen}")


async def rest(process: Process) -> list[str]:
    """Return the remaining output of a program that ends with status 0."""
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode().splitlines()


async def invoiced(bootstrap: str) -> list[int]:
    """Return the orders that have an invoice, sorted."""
    found = []
    async with kafkaio.Consumer(
        bootstrap, topics="invoices", auto_offset_reset="earliest"
    ) as consumer:
        ends = await consumer.end_offsets(consumer.assignment)
        while len(found) < sum(ends.values()):
            poll = await consumer.poll()
            found += [json.loads(r.value or b"")["order"] for r in poll.records]
    return sorted(found)


def test_the_page_has_the_programs_verbatim() -> None:
    programs = {
        str(path.relative_to(ROOT)): path.read_text() for path in PROGRAMS.glob("*.py")
    }
    assert len(programs) == 4
    assert programs | {"test_service.py": BLOCKS["test_service.py"]} == BLOCKS


async def test_sending_and_reading() -> None:
    async with Broker(topics={"orders": 4}) as broker, asyncio.timeout(60):
        bootstrap = broker.bootstrap_servers
        sent = (await run(bootstrap, "send.py")).splitlines()
        shown = re.findall(r"^order \d+: .*$", PAGE.read_text(), re.MULTILINE)
        assert sent[: len(shown)] == shown
        assert len(sent) == 12
        reader = await start(bootstrap, "read.py")
        await line(reader, "ready")
        assert reader.stdout is not None
        records = [(await reader.stdout.readline()).decode() for _ in range(12)]
        assert len(set(records)) == 12
        reader.send_signal(signal.SIGINT)
        assert await rest(reader) == []
        # The group continues at its committed offsets.
        again = await start(bootstrap, "read.py")
        await line(again, "ready")
        await run(bootstrap, "send.py")
        records = [await line(again, "") for _ in range(12)]
        assert {int(text.split()[1]) for text in records} == {3, 4, 5, 6, 7, 8, 9}
        again.send_signal(signal.SIGINT)
        assert await rest(again) == []


async def test_a_send_that_fails() -> None:
    async with Broker() as broker, asyncio.timeout(60):
        output = await run(broker.bootstrap_servers, "send_errors.py")
    for expected in ("written at", "too large:", "refused with INVALID_TOPIC"):
        (found,) = re.findall(f"^{expected}.*$", output, re.MULTILINE)
        assert found in PAGE.read_text()


async def test_the_service_stops_and_goes_on() -> None:
    topics = {"orders": 4, "invoices": 4}
    async with Broker(topics=topics) as broker, asyncio.timeout(60):
        bootstrap = broker.bootstrap_servers
        await run(bootstrap, "send.py")
        first = await start(bootstrap, "service.py")
        assert await line(first, "assigned") == "assigned: 0 1 2 3"
        await line(first, "invoice for")
        first.send_signal(signal.SIGTERM)
        assert (await rest(first))[-2:] == ["revoked: 0 1 2 3", "stopped"]
        await run(bootstrap, "send.py")
        second = await start(bootstrap, "service.py")
        while len(numbers := await invoiced(bootstrap)) < 24:
            await line(second, "invoice for")
        second.send_signal(signal.SIGTERM)
        assert (await rest(second))[-1] == "stopped"
        assert numbers == sorted([*range(12), *range(12)])
        assert await invoiced(bootstrap) == numbers


async def test_a_second_member() -> None:
    topics = {"orders": 4, "invoices": 4}
    async with (
        Broker(topics=topics, config=CONFIG) as broker,
        asyncio.timeout(60),
    ):
        bootstrap = broker.bootstrap_servers
        first = await start(bootstrap, "service.py")
        assert await line(first, "assigned") == "assigned: 0 1 2 3"
        second = await start(bootstrap, "service.py")
        assert await line(first, "revoked") == "revoked: 2 3"
        assert await line(second, "assigned") == "assigned: 2 3"
        await run(bootstrap, "send.py")
        await line(first, "invoice for order 1")
        await line(second, "invoice for order 0")
        first.send_signal(signal.SIGTERM)
        assert (await rest(first))[-1] == "stopped"
        assert await line(second, "assigned") == "assigned: 0 1"
        second.send_signal(signal.SIGTERM)
        assert (await rest(second))[-1] == "stopped"
        assert await invoiced(bootstrap) == list(range(12))


async def test_the_tests_of_the_page(tmp_path: Path) -> None:
    for name in ("service.py", "test_service.py"):
        text = BLOCKS.get(name) or (PROGRAMS / name).read_text()
        (tmp_path / name).write_text(text)
    plugins = ["-p", "kafkaio.testing.pytest_plugin", "-p", "no:cacheprovider"]
    scope = "asyncio_default_fixture_loop_scope=function"
    options = ["-c", os.devnull, "--rootdir", ".", "-q", "-o", scope]
    async with asyncio.timeout(60):
        output = await run("nowhere", "-m", "pytest", *plugins, *options, cwd=tmp_path)
    assert "2 passed" in output, output


@pytest.mark.parametrize("name", ["orders", "invoices"])
def test_the_page_makes_the_topics_of_the_programs(name: str) -> None:
    assert f'"{name}"' in BLOCKS["examples/tutorial/service.py"]
    assert f"--topic {name}:4" in PAGE.read_text()
