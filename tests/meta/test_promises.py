"""The pages that promise something name tests that exist, for each promise."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.integration.every_change import ON_THE_NEWEST, ON_THE_OLDEST

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "pains.md"
EMBEDDED = ROOT / "docs" / "embedded.md"
PAINS = 26
ROW = re.compile(r"^\| (?P<number>\d+) \|(?P<cells>.*)\|$", re.MULTILINE)
TEST = re.compile(r"`(?P<path>tests/[\w/]+\.py)::(?P<name>\w+)`")
ROWS = {int(row["number"]): row["cells"] for row in ROW.finditer(PAGE.read_text())}
NAMED = sorted(
    {
        (t["path"], t["name"])
        for page in (PAGE, EMBEDDED)
        for t in TEST.finditer(page.read_text())
    }
)
PROMISES = re.findall(
    r"^\| (?!promise|---)(.*) \| (.*) \|$", EMBEDDED.read_text(), re.MULTILINE
)
SESSION = re.compile(r"`nox -s (?P<session>\w+)[^`]*`")


@cache
def functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return frozenset(n.name for n in ast.walk(tree) if isinstance(n, kinds))


def test_every_pain_has_a_row() -> None:
    assert sorted(ROWS) == list(range(1, PAINS + 1))


@pytest.mark.parametrize("number", sorted(ROWS))
def test_a_pain_has_a_test(number: int) -> None:
    assert TEST.search(ROWS[number])


@pytest.mark.parametrize("file", sorted({*ON_THE_NEWEST, *ON_THE_OLDEST}))
def test_what_runs_with_every_change_exists(file: str) -> None:
    tables = {*ON_THE_NEWEST.get(file, ()), *ON_THE_OLDEST.get(file, ())}
    named = {name.partition("[")[0] for name in tables}
    assert named <= functions(ROOT / "tests" / "integration" / file)


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_test_that_is_named_exists(path: str, name: str) -> None:
    assert name in functions(ROOT / path)


def test_every_promise_of_the_embedded_broker_has_a_test_or_a_command() -> None:
    sessions = functions(ROOT / "noxfile.py")
    assert len(PROMISES) > 50
    for promise, shown_by in PROMISES:
        found = SESSION.search(shown_by)
        assert (
            TEST.search(shown_by)
            or shown_by == "`python benchmarks/embedded.py`"
            or (found and found["session"] in sessions)
        ), promise
