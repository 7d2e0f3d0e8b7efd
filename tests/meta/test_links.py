"""Links between the pages that no documentation builder reads lead somewhere.

The build of the docs checks those below ``docs/`` (`nox -s docs`); the others are read
where the repository is, and in the description of a release.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]*))?\)")
PAGES = sorted(
    path
    for pattern in ("*.md", ".github/**/*.md", "benchmarks/*.md", "requirements/*.md")
    for path in ROOT.glob(pattern)
)
ALL = [*PAGES, *sorted((ROOT / "docs").rglob("*.md"))]


def prose(page: Path) -> str:
    """The text of a page without its code."""
    text = page.read_text("utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"``[^\n]*?``|`[^`\n]*`", "", text)


@cache
def headings(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub and MyST make them."""
    text = page.read_text("utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    wrong = []
    for path, anchor in LINK.findall(prose(page)):
        target = (page.parent / path) if path else page
        if not target.exists():
            wrong.append(path)
        elif anchor and target.suffix == ".md" and anchor not in headings(target):
            wrong.append(f"{path}#{anchor}")
    assert wrong == []


def test_there_are_pages() -> None:
    assert ROOT / "README.md" in PAGES
