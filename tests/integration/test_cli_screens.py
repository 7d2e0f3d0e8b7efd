"""The pictures of the command line in the docs are what it prints.

Each is a transcript in ``screens``, as `tests.support.transcripts` has them; the
commands at a terminal are drawn, with their colours, and the others make what these
show. ``KAFKAIO_WRITE_TRANSCRIPTS=1`` in the environment writes transcripts and pictures
anew: look at what has changed.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

from kafkaio.testing import Broker
from tests.support.cli import environment, printed_at_terminal, screen
from tests.support.screens import COLUMNS, svg_of
from tests.support.transcripts import Step, read, replay, text_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(60),
    pytest.mark.kafka_versions("newest"),
]

ROOT = Path(__file__).parents[2]
SCREENS = {p.stem: p for p in sorted((Path(__file__).parent / "screens").glob("*.txt"))}
STATIC = ROOT / "docs" / "_static"
GUIDE = ROOT / "docs" / "guide" / "cli.md"


def perform(step: Step, directory: Path) -> tuple[str, str]:
    """Run a step; return what it shows, and all that it wrote to its terminal."""
    if step.where == "pipe":
        return replay(step, directory, (), {}), ""
    code, printed = printed_at_terminal(*step.words, columns=COLUMNS)
    shown = screen(printed).strip("\n")
    return shown + (f"\n[exit {code}]" if code else ""), printed


@pytest.mark.parametrize("name", SCREENS)
async def test_a_picture_shows_what_is_printed(name: str, tmp_path: Path) -> None:
    steps = read(SCREENS[name].read_text())
    is_writing = bool(os.environ.get("KAFKAIO_WRITE_TRANSCRIPTS"))
    drawn: list[tuple[str, str]] = []
    async with Broker(nodes=3, first_node_id=1) as broker:
        with environment(
            XDG_CONFIG_HOME=str(tmp_path),
            KAFKAIO_BOOTSTRAP_SERVERS=broker.bootstrap_servers,
        ):
            for step in steps:
                shown, printed = await asyncio.to_thread(perform, step, tmp_path)
                if is_writing:
                    step.shown = shown
                assert shown == step.shown, step.line
                if step.where == "terminal":
                    drawn.append((step.line, printed))
    picture = STATIC / f"cli-{name}.svg"
    svg = svg_of(name, drawn)
    if is_writing:
        SCREENS[name].write_text(text_of(steps))
        picture.write_text(svg)
    assert picture.read_text() == svg


def test_the_guide_shows_every_picture() -> None:
    shown = re.findall(r"\.\./_static/cli-(\w+)\.svg", GUIDE.read_text())
    assert sorted(shown) == sorted(SCREENS)
