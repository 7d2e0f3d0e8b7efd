"""The programs of the page on other libraries run as they are printed there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages import python_blocks
from tests.support.served import ServedBroker

LOCAL = "localhost:9092"


@pytest.fixture
def served() -> Iterator[ServedBroker]:
    with ServedBroker() as served:
        served.create("orders", 1)
        yield served


def run(word: str, served: ServedBroker, tmp_path: Path, then: str = "") -> str:
    """Run the program of the page that has a word of its own; return its output.

    It runs as a process, because it chooses a loop or configures the logging of one.
    """
    blocks = python_blocks("howto/libraries.md", {LOCAL: served.servers})
    (block,) = (block for block in blocks if word in block)
    path = tmp_path / "program.py"
    path.write_text(block + then)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout or done.stderr


def test_structlog_shows_what_kafkaio_logs(
    served: ServedBroker, tmp_path: Path
) -> None:
    producing = f"""
import asyncio
import kafkaio

async def main():
    async with kafkaio.Producer({served.servers!r}, client_id="shop"):
        structlog.get_logger("shop").info("sold", amount=2)

asyncio.run(main())
"""
    output = run("ExtraAdder", served, tmp_path, producing)
    lines = [json.loads(line) for line in output.splitlines()]
    assert {"timestamp", "level", "logger", "event"} <= lines[0].keys()
    ours = [line for line in lines if line["logger"].startswith("kafkaio.")]
    assert any("[shop]" in line["event"] for line in ours)
    assert {line["kafka_client_id"] for line in ours} == {"shop"}
    assert "started" in {line["kafka_event"] for line in ours}
    (sold,) = [line for line in lines if line["event"] == "sold"]
    assert (sold["amount"], sold["level"]) == (2, "info")


def test_a_program_without_a_loop(served: ServedBroker, tmp_path: Path) -> None:
    assert run("blocking_portal", served, tmp_path) == "written at offset 0\n"


def test_uvloop(served: ServedBroker, tmp_path: Path) -> None:
    assert run("uvloop", served, tmp_path) == "on uvloop\n"


def test_a_scope_of_anyio(served: ServedBroker, tmp_path: Path) -> None:
    assert run("move_on_after", served, tmp_path) == ""
    written = run("blocking_portal", served, tmp_path)
    assert written == "written at offset 0\n"
    assert run("move_on_after", served, tmp_path) == "read b'one'\n"
