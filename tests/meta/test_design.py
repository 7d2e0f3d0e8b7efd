"""docs/design.md names what exists, and maps every file; `test_walks` counts."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "kafkaio"
TEXT = (ROOT / "docs" / "design.md").read_text()

TEST = re.compile(r"`(?P<path>tests/[\w/]+\.py)::(?P<name>\w+)`")
FILE = re.compile(r"`(?P<path>[\w./]+\.(?:py|pyx|md|toml))`")
FOLDER = re.compile(r"^### `kafkaio/(?P<folder>[\w/]*)`$", re.MULTILINE)
FIRST_CELL = re.compile(r"^\| (?P<cell>`.*?`) \|", re.MULTILINE)

#: As many facts as a newcomer is promised, each with a test and a commit.
FACTS = 25


def part(heading: str) -> str:
    """What stands under a heading, up to the next one of its level or above."""
    level = heading.partition(" ")[0]
    _, _, rest = TEXT.partition(f"\n{heading}\n")
    assert rest, f"there is no heading {heading!r}"
    return re.split(rf"^#{{1,{len(level)}}} ", rest, flags=re.MULTILINE)[0]


def mapped() -> Iterator[str]:
    """The files in the map, as paths in the package."""
    the_map = part("## The map")
    headings = list(FOLDER.finditer(the_map))
    ends = [heading.start() for heading in headings[1:]] + [len(the_map)]
    for heading, end in zip(headings, ends, strict=True):
        for row in FIRST_CELL.finditer(the_map, heading.end(), end):
            for name in re.findall(r"`([\w/.]+)`", row["cell"]):
                yield f"{heading['folder']}{name}"


def written_by_hand() -> set[str]:
    """Every module that is neither generated nor the front of a package."""
    return {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if path.name != "__init__.py" and path.parent.name != "messages"
    }


@cache
def functions(path: Path) -> frozenset[str]:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def test_every_file_is_in_the_map_once() -> None:
    rows = list(mapped())
    assert len(rows) == len(set(rows))
    assert {row for row in rows if not row.endswith("/")} == written_by_hand()


def test_every_folder_has_a_table() -> None:
    folders = {Path(row).parent for row in mapped() if not row.endswith("/")}
    assert folders == {Path(path).parent for path in written_by_hand()}
    assert "protocol/messages/" in set(mapped())


def test_every_file_that_is_named_exists() -> None:
    prose = TEXT.replace(part("## The map"), "")
    named = {found["path"] for found in FILE.finditer(prose)}
    assert len(named) > 50
    missing = [
        path
        for path in sorted(named)
        if not (PACKAGE / path).exists() and not (ROOT / path).exists()
    ]
    assert not missing


def test_every_fact_has_a_test_that_exists_and_a_commit() -> None:
    rows = [
        row.split(" | ")
        for row in part("## Not obvious").splitlines()
        if row.startswith("| ") and not row.startswith(("| fact", "| ---"))
    ]
    assert len(rows) >= FACTS
    for fact, shown_by, commit in rows:
        named = TEST.fullmatch(shown_by)
        assert named, fact
        assert named["name"] in functions(ROOT / named["path"]), shown_by
        assert re.fullmatch(r"`[0-9a-f]{7}` \|", commit), fact


def test_every_test_that_is_named_exists() -> None:
    for named in TEST.finditer(TEXT):
        assert named["name"] in functions(ROOT / named["path"]), named[0]
