"""What docs/design.md says of each walk is what `benchmarks/walks.py` counts."""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import kafkaio

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "design.md").read_text()

CLAIM = re.compile(
    r"`python benchmarks/walks\.py --act (?P<act>[\w]+|\"[\w ]+\")`"
    r" counts (?P<functions>\d+) functions in (?P<files>\d+) files"
)
COUNTED = re.compile(
    r"^(?P<act>\w+( \w+)*) +(?P<functions>\d+) functions in +(?P<files>\d+) files"
)
STEP = re.compile(r"^  . +\S+  (?P<path>[\w/.]+):\d+$", re.MULTILINE)
CLAIMS = {claim["act"].strip('"'): claim for claim in CLAIM.finditer(TEXT)}


#: A heartbeat or a timer may fall into an act, and more easily on a busy machine.
ATTEMPTS = 3


@cache
def walks(attempt: int = 0) -> dict[str, str]:
    """What the program prints of each act; each attempt runs it again."""
    program = ROOT / "benchmarks" / "walks.py"
    # In its debug mode asyncio calls methods of ours: a handle that is cancelled, for
    # example, keeps the text of its arguments.
    env = os.environ | {"PYTHONASYNCIODEBUG": ""}
    printed = subprocess.run(
        [sys.executable, program, "--list"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=env,
    ).stdout
    found: dict[str, str] = {}
    act = ""
    for line in printed.splitlines(keepends=True):
        if counted := COUNTED.match(line):
            act = counted["act"]
        found[act] = found.get(act, "") + line
    return found


def test_the_walks_of_a_record_are_counted() -> None:
    assert {"send", "send to socket"} <= set(CLAIMS) <= set(walks())


@pytest.mark.parametrize("act", CLAIMS)
def test_no_more_runs_than_the_page_says(act: str) -> None:
    # Fewer on newer Pythons, where a comprehension is not a function.
    assert any(
        functions_of(act, attempt) <= int(CLAIMS[act]["functions"])
        for attempt in range(ATTEMPTS)
    )


def functions_of(act: str, attempt: int) -> int:
    counted = COUNTED.match(walks(attempt)[act])
    assert counted
    return int(counted["functions"])


@pytest.mark.parametrize("act", CLAIMS)
def test_every_file_that_runs_is_named(act: str) -> None:
    section = TEXT[: CLAIMS[act].end()].rpartition("\n### ")[2]
    section += re.split(r"^###? ", TEXT[CLAIMS[act].end() :], flags=re.MULTILINE)[0]
    for attempt in range(ATTEMPTS):
        ran = set(STEP.findall(walks(attempt)[act]))
        if not kafkaio.accelerated:  # the codec in Python has files of its own
            ran = {path for path in ran if not path.startswith("_records/")}
        assert len(ran) > 5
        missing = {path for path in ran if f"`{path}`" not in section}
        if not missing:
            break
    assert not missing
