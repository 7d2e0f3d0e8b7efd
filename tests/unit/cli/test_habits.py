"""docs/guide/cli.md: whoever comes from other tools finds commands that exist."""

from __future__ import annotations

import re
import shlex
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


PAGES = Path(__file__).parents[3] / "docs/guide"
#: What is typed, unless the next line shows that it is wrong.
CONSOLE = re.compile(
    r"^\$ (?:[^\n]*\| )?kafkaio ((?:schemas|consume|produce) .*)(?!\nkafkaio )$",
    re.MULTILINE,
)
SHOWN = CONSOLE.findall((PAGES / "cli-records.md").read_text("utf-8"))


@pytest.mark.parametrize("line", dict.fromkeys(SHOWN))
def test_a_command_of_the_guide_is_parsed(line: str) -> None:
    typed = shlex.split(line.replace("$format", "%v"), comments=True)
    end = next((n for n, word in enumerate(typed) if word in "<>|&&"), len(typed))
    first, *words = typed[:end]
    found = root.get_command(click.Context(root), first)
    assert found is not None, first
    if isinstance(found, click.Group):
        found = found.commands[words.pop(0)]
    found.parse_args(click.Context(found, info_name=first), words)


def test_the_guide_shows_schemas() -> None:
    assert len([line for line in SHOWN if line.startswith("schemas ")]) >= 6
    assert len([line for line in SHOWN if " -s " in line]) >= 5
