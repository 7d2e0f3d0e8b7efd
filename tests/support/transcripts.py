"""Transcripts of the command line: what is typed, and what is printed, as text.

A transcript is a file of steps. ``pipe>`` runs a command without a terminal,
``terminal>`` in a pseudo-terminal of 150 columns, where each question is answered with
``y``. Below a command stands what it prints:

- a tab between columns is ``→``, a line of stderr begins with ``! ``, and an exit code
  other than 0 is a last line such as ``[exit 3]``;
- of ``--json`` the values at the top, and of a list how many rows it has, as ``[2]``:
  the document itself has been checked against its schema;
- of a terminal what its screen shows at the end;
- what differs from run to run by a name in angle brackets.

``<< `` begins a line of the command's stdin, ``# `` a comment. ``> FILE`` at the end of
a command writes what it prints to a file, which it does not show then.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.cli import Result, run, run_at_terminal

__all__ = ["Masks", "Step", "read", "replay", "text_of"]

#: Texts that differ from run to run, and what stands for them; groups 1 and 2 stay.
Masks = Sequence[tuple[str, str]]
_ALWAYS: Final[Masks] = (
    (r"()\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}()", "<uuid>"),
    (r"()\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:(?:\.\d+)?\+00:00|Z)()", "<time>"),
    (r"()\d\d:\d\d:\d\d UTC()", "<time>"),
    (r"(127\.0\.0\.1(?::|→| +))\d+()", "<port>"),
)
_PROMPT: Final = re.compile(r"(pipe|terminal)> kafkaio (.*)")


@dataclass
class Step:
    """One command.

    Attributes:
        where: ``pipe`` or ``terminal``.
        line: the command, without ``kafkaio``.
        typed: what comes from stdin, None for nothing.
        shown: what it prints.
        comments: the comments before it.
    """

    where: str
    line: str
    typed: str | None = None
    shown: str = ""
    comments: list[str] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        """The words of the command, without where its output goes."""
        return shlex.split(self.line.partition(" > ")[0])

    @property
    def succeeds(self) -> bool:
        """Whether it ends with exit code 0."""
        return re.search(r"^\[exit \d+\]$", self.shown, re.MULTILINE) is None


def read(text: str) -> list[Step]:
    """Read a transcript."""
    steps: list[Step] = []
    comments: list[str] = []
    for line in text.splitlines():
        if found := _PROMPT.fullmatch(line):
            steps.append(Step(found[1], found[2], comments=comments))
            comments = []
        elif line.startswith("# "):
            comments.append(line)
        elif line.startswith("<< "):
            steps[-1].typed = (steps[-1].typed or "") + line[3:] + "\n"
        elif steps and not comments:
            steps[-1].shown += line + "\n"
    for step in steps:
        step.shown = step.shown.strip("\n")
    return steps


def text_of(steps: Sequence[Step]) -> str:
    """Return a transcript as `read` reads it."""
    parts = []
    for step in steps:
        lines = [*step.comments, f"{step.where}> kafkaio {step.line}"]
        if step.typed is not None:
            lines += [f"<< {line}" for line in step.typed.splitlines()]
        if step.shown:
            lines.append(step.shown)
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def replay(step: Step, directory: Path, masks: Masks, known: dict[str, str]) -> str:
    """Run a step; return what it prints.

    Args:
        step: the step.
        directory: what ``$DIR`` means.
        masks: what differs from run to run in this transcript.
        known: the last text that each name stood for; a command may have the name.
    """
    line = step.line.replace("$DIR", str(directory))
    for name, text in known.items():
        line = line.replace(name, text)
    command, _, file = line.partition(" > ")
    words = shlex.split(command)
    act = run if step.where == "pipe" else run_at_terminal
    result = act(*words, typed=step.typed)
    if file:
        Path(file).write_text(result.out)
    shown = _shown(step, result, is_written=bool(file)).replace(str(directory), "$DIR")
    masked = _masked(shown, (*masks, *_ALWAYS), known)
    if step.where == "terminal" and masked != shown:  # its columns had other widths
        masked = re.sub("─+", "─", re.sub("  +", "  ", masked))
    return masked


def _shown(step: Step, result: Result, *, is_written: bool) -> str:
    lines: list[str] = []
    if "--json" in step.words and result.out:
        lines.append(_outline(result.document))
    elif not is_written:
        lines += [line.replace("\t", "→") for line in result.out.splitlines()]
    lines += [f"! {line}" for line in result.err.splitlines()]
    if result.code:
        lines.append(f"[exit {result.code}]")
    return "\n".join(lines).strip("\n")


def _outline(document: Mapping[str, object]) -> str:
    """Return the keys of a document, with its values or the length of its lists."""
    found = []
    for key, value in document.items():
        if isinstance(value, list):
            found.append(f"{key}: [{len(value)}]")
        elif isinstance(value, float | dict):
            found.append(key)
        else:
            found.append(f"{key}: {json.dumps(value)}")
    return ", ".join(found)


def _masked(shown: str, masks: Masks, known: dict[str, str]) -> str:
    """Put names for what differs from run to run."""
    for pattern, name in masks:
        for found in re.finditer(pattern, shown):
            known[name] = found[0][len(found[1]) : len(found[0]) - len(found[2])]
        shown = re.sub(pattern, rf"\g<1>{name}\g<2>", shown)
    return shown
