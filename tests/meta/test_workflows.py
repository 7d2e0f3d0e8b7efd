"""The workflows and pins, checked without running them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINS = sorted((ROOT / "requirements").glob("*.txt"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_takes_nothing_that_can_change(path: Path) -> None:
    text = path.read_text()
    used = re.findall(r"uses: (.*)", text)
    assert used
    for action in used:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", action), action
    for command in re.findall(r"pip install (.*)", text):
        assert command.startswith("--require-hashes -r requirements/"), command
    # Nobody has more rights than it needs.
    assert "permissions:\n  contents: read" in text
    # The token of the checkout stays in no later step.
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_names_sessions_that_exist(path: Path) -> None:
    sessions = re.findall(r"@nox.session.*?\ndef (\w+)", _noxfile(), re.DOTALL)
    for names in re.findall(r"nox -s (.*)", path.read_text()):
        assert set(names.split()) <= set(sessions)


@pytest.mark.parametrize("path", PINS, ids=lambda path: path.name)
def test_everything_pinned_has_hashes(path: Path) -> None:
    requirements = path.read_text().replace("\\\n", " ").splitlines()
    assert len(requirements) > 10
    for requirement in requirements:
        assert re.match(r"[\w.\[\],-]+==\S+ ", requirement), requirement
        assert "--hash=sha256:" in requirement
        # An address would be of one machine's own index.
        assert "://" not in requirement


def test_every_python_of_the_package_gets_a_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = re.findall(
        r"Python :: 3\.(\d+)", "\n".join(project["project"]["classifiers"])
    )
    built = project["tool"]["cibuildwheel"]["build"].split()
    assert {f"cp3{number}-*" for number in named} < set(built)
    assert any("t-" in name for name in built)  # without the global lock


def _noxfile() -> str:
    return (ROOT / "noxfile.py").read_text()
