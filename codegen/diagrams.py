"""Draws the state diagrams in the docs from the transition tables of the machines.

``python -m codegen.diagrams`` writes each diagram between two comments of its page;
with ``--check`` it only compares, and fails if the page is out of date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

from codegen.pages import with_part
from kafkaio._machines.membership import ledger
from kafkaio._machines.membership.classic import states as classic
from kafkaio._machines.membership.kip848 import states as kip848

PAGE: Final = Path(__file__).parent.parent / "docs" / "guide" / "rebalancing.md"

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)


def diagram(
    table: Mapping[tuple[S, E], S], begin: S, ends: Collection[S], omit: str = ""
) -> str:
    """A Mermaid state diagram of a transition table.

    Args:
        table: where each event leads from each state. An event that leaves the state
            unchanged is not drawn.
        begin: the first state.
        ends: the states that are never left.
        omit: a pattern; events whose name matches it are not drawn.
    """
    arrows: dict[tuple[S, S], list[str]] = {}
    for (state, event), to in table.items():
        if to is not state and not (omit and re.fullmatch(omit, event.name)):
            arrows.setdefault((state, to), []).append(_name(event))
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {begin.name}"]
    for (state, to), events in arrows.items():
        lines.append(f"    {state.name} --> {to.name}: {', '.join(events)}")
    lines += [f"    {end.name} --> [*]" for end in ends]
    return "\n".join([*lines, "```"])


def _name(event: Enum) -> str:
    return event.name.lower().replace("_", " ")


def diagrams() -> dict[str, str]:
    """All diagrams, by their names in the page."""
    # From every state a refusal leads to FATAL, and closing to LEAVING.
    common = "REFUSED|CLOSED|UNSUBSCRIBED|POLL_EXPIRED"
    return {
        "revoke": diagram(
            ledger.TRANSITIONS,
            ledger.Stage.ASSIGNED,
            [ledger.Stage.REVOKED, ledger.Stage.LOST],
        ),
        "classic": diagram(
            classic.TRANSITIONS,
            classic.ClassicState.UNJOINED,
            [classic.ClassicState.LEFT],
            omit=f"{common}|MEMBER_LOST|GENERATION_LOST",
        ),
        "kip848": diagram(
            kip848.TRANSITIONS,
            kip848.Kip848State.UNJOINED,
            [kip848.Kip848State.LEFT],
            omit=f"{common}|FENCED",
        ),
    }


def updated(page: str) -> str:
    """The page with up-to-date diagrams."""
    for name, text in diagrams().items():
        page = with_part(page, "diagram", name, text)
    return page


def main(arguments: list[str]) -> int:
    """Update the page, or with ``--check`` tell whether it is up to date."""
    text = PAGE.read_text()
    wanted = updated(text)
    if wanted == text:
        return 0
    if "--check" in arguments:
        print(f"{PAGE.name} differs from the transition tables")
        return 1
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
