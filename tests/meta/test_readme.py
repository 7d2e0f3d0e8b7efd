"""The README's first command is one that a newcomer can bear."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_first_command_shows_its_progress_and_brings_no_extra() -> None:
    readme = (ROOT / "README.md").read_text()
    commands = re.findall(r"^\$ (.*)$", readme, re.MULTILINE)
    first = commands[0]
    assert "pip install . &&" in first
    assert "examples/quickstart.py" in first
