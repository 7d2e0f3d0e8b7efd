"""Running a command to its end; any program takes the place of Kafka's tools here."""

import sys
from pathlib import Path

import pytest

from tests.support.kafka.tools import run_program


def python(code: str) -> list[str | Path]:
    return [sys.executable, "-I", "-S", "-u", "-c", code]


async def test_a_program_runs_to_its_end() -> None:
    code = "import sys; print(sys.stdin.read()); sys.stderr.write('e'); sys.exit(3)"
    output = await run_program(python(code), stdin="a\nb")
    assert (output.returncode, output.lines, output.stderr) == (3, ["a", "b"], "e")


async def test_a_program_that_takes_too_long_is_killed() -> None:
    with pytest.raises(TimeoutError):
        await run_program(python("import time; time.sleep(60)"), timeout=0.05)
