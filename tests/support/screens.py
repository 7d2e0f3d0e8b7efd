"""Pictures of a terminal: commands and what they print there, as SVG."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

__all__ = ["COLUMNS", "svg_of"]

#: The width of the terminals in the pictures.
COLUMNS: Final = 92
#: Rich's picture of a terminal, without fonts that a browser would have to load.
_FORMAT: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""  # noqa: E501


def svg_of(name: str, shown: Sequence[tuple[str, str]]) -> str:
    """Draw a terminal.

    Args:
        name: tells the picture from others on the same page.
        shown: commands, without ``kafkaio``, and all that each wrote to its terminal.
    """
    console = Console(
        record=True,
        width=COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
    for number, (line, printed) in enumerate(shown):
        if number:
            console.print()
        prompt = Text.assemble(("$ ", "bold green"), (f"kafkaio {line}", "bold"))
        console.print(prompt, soft_wrap=True)
        text = printed.replace("\r\n", "\n").rstrip("\n")
        assert not re.search(r"\x1b\[[0-9;?]*[A-ln-zA-Z]|\r", text), "the cursor moves"
        console.print(Text.from_ansi(text), soft_wrap=True, highlight=False)
    svg = console.export_svg(
        title="", theme=MONOKAI, code_format=_FORMAT, unique_id=f"kafkaio-{name}"
    )
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
