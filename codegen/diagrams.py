"""``python -m codegen.diagrams``: state diagrams in the docs, from transition tables.

A diagram stands between two comments of its page; ``--check`` only compares.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

from codegen.pages import with_part
from kafkaio._machines.membership import ledger as revoke_ledger
from kafkaio._machines.membership.classic import states
from kafkaio._machines.membership.kip848 import states as consumer_states

PAGE: Final = Path(__file__).parent.parent / "docs" / "guide" / "rebalancing.md"

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)


def diagram(
    table: Mapping[tuple[S, E], S], begin: S, ends: Collection[S], omit: str = ""
) -> str:
    """A Mermaid state diagram of a transition table.

    Args:
        table: where each event leads from each state. One that changes nothing is not
            drawn.
        begin: the first state.
        ends: the states that are left no more.
        omit: a pattern; events that match are not drawn.
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
    """Every diagram, by its name in the page."""
    stage, state, newer = revoke_ledger.Stage, states.State, consumer_states.State
    # From everywhere: what fails leads to FATAL, what is closed to LEAVING.
    common = "REFUSED|CLOSED|UNSUBSCRIBED|POLL_EXPIRED"
    return {
        "revoke": diagram(
            revoke_ledger.TRANSITIONS, stage.ASSIGNED, [stage.REVOKED, stage.LOST]
        ),
        "classic": diagram(
            states.TRANSITIONS,
            state.UNJOINED,
            [state.LEFT],
            omit=f"{common}|MEMBER_LOST|GENERATION_LOST",
        ),
        "consumer": diagram(
            consumer_states.TRANSITIONS,
            newer.UNJOINED,
            [newer.LEFT],
            omit=f"{common}|FENCED",
        ),
    }


def updated(page: str) -> str:
    """The page with its diagrams as they are to be."""
    for name, text in diagrams().items():
        page = with_part(page, "diagram", name, text)
    return page


def main(arguments: list[str]) -> int:
    """Bring the page up to date, or with ``--check`` say whether it is."""
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
