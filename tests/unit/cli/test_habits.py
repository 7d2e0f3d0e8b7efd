"""docs/guide/cli.md: whoever comes from other tools finds commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from kafkaio._cli.registry import BARE, COMMANDS
from kafkaio._cli.root import root
from kafkaio._cli.shell.command import COMMON

GUIDE = (Path(__file__).parents[3] / "docs/guide/cli.md").read_text("utf-8")
HABITS = [
    (there, words)
    for there, here in re.findall(
        r"^\| (.*?) \| (`kafkaio .*?) \|$", GUIDE, re.MULTILINE
    )
    for words in re.findall(r"`kafkaio ([^`]*)`", here)
]
TOOLS = ("kafka-", "rpk ", "kcat ", "kcl ")


def test_the_table_has_the_tools() -> None:
    assert len(HABITS) >= 18
    assert all(any(tool in there for tool in TOOLS) for there, _ in HABITS)


@pytest.mark.parametrize("words", dict.fromkeys(words for _, words in HABITS))
def test_a_command_for_a_habit_exists(words: str) -> None:
    first, *rest = words.split()
    if first in BARE:
        return
    found = root.get_command(click.Context(root), first)
    assert found is not None, first
    if isinstance(found, click.Group):
        found = found.commands[rest.pop(0)]
    context = click.Context(found, info_name=first, resilient_parsing=False)
    # Parses: every option and argument is known.
    found.parse_args(context, rest)


def test_every_command_and_common_option_is_in_the_guide() -> None:
    for name in [*BARE, *(name for part in COMMANDS.values() for name in part)]:
        assert f"| `{name}` |" in GUIDE, name
    for option in COMMON - {"-h", "--help"}:
        assert f"`{option}" in GUIDE, option
