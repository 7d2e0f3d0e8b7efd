"""The page of pains names tests that exist, for every pain."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "pains.md"
PAINS = 25
ROW = re.compile(r"^\| (?P<number>\d+) \|(?P<cells>.*)\|$", re.MULTILINE)
TEST = re.compile(r"`(?P<path>tests/[\w/]+\.py)::(?P<name>\w+)`")
ROWS = {int(row["number"]): row["cells"] for row in ROW.finditer(PAGE.read_text())}
NAMED = sorted({(t["path"], t["name"]) for t in TEST.finditer(PAGE.read_text())})


@cache
def functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return frozenset(n.name for n in ast.walk(tree) if isinstance(n, kinds))


def test_every_pain_has_a_row() -> None:
    assert sorted(ROWS) == list(range(1, PAINS + 1))


@pytest.mark.parametrize("number", sorted(ROWS))
def test_a_pain_has_a_test_or_says_that_it_is_to_come(number: int) -> None:
    assert TEST.search(ROWS[number]) or "Not in kafkaio yet" in ROWS[number]


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_test_that_is_named_exists(path: str, name: str) -> None:
    assert name in functions(ROOT / path)
