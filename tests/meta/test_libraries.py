"""What the page on other libraries is shown by exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "howto" / "libraries.md"
ROWS = re.findall(
    r"^\| (?!library|---)(.*?) \| .* \| (.*?) \|$", PAGE.read_text(), re.MULTILINE
)


def test_the_page_has_a_table() -> None:
    assert len(ROWS) > 15


@pytest.mark.parametrize(("library", "shown_by"), ROWS)
def test_each_line_names_tests_or_a_session(library: str, shown_by: str) -> None:
    assert library
    paths = re.findall(r"`(tests/[\w/.]+)`", shown_by)
    sessions = re.findall(r"`nox -s \"?(?:nightly\()?([\w-]+)", shown_by)
    assert paths or sessions
    assert all((ROOT / path).exists() for path in paths)
    nox = (ROOT / "noxfile.py").read_text()
    for session in sessions:
        # A function, a part of the nightly run, or one that is made of a name.
        made = session.removesuffix("-suite")
        assert re.search(rf"def {session}\(|\"({session}|{made})\"", nox), session
