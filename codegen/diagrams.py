"""Draws the state diagrams in the docs from the transition tables of the machines.

``python -m codegen.diagrams`` writes each diagram between two comments of its page;
with ``--check`` it only compares, and fails if a page is out of date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

from codegen.pages import with_part
from kafkaio._machines import transaction
from kafkaio._machines.membership import ledger
from kafkaio._machines.membership.classic import states as classic
from kafkaio._machines.membership.kip848 import states as kip848

GUIDE: Final = Path(__file__).parent.parent / "docs" / "guide"

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)


def diagram(
    table: Mapping[tuple[S, E], S],
    begin: S,
    ends: Collection[S],
    omit: str = "",
    hide: Collection[S] = (),
) -> str:
    """A Mermaid state diagram of a transition table.

    Args:
        table: where each event leads from each state. An event that leaves the state
            unchanged is not drawn.
        begin: the first state.
        ends: the states that are never left.
        omit: a pattern; events whose name matches it are not drawn.
        hide: states that are not drawn, with what leads to them and from them.
    """
    arrows: dict[tuple[S, S], list[str]] = {}
    for (state, event), to in table.items():
        if to is state or state in hide or to in hide:
            continue
        if not (omit and re.fullmatch(omit, event.name)):
            arrows.setdefault((state, to), []).append(_name(event))
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {begin.name}"]
    for (state, to), events in arrows.items():
        lines.append(f"    {state.name} --> {to.name}: {', '.join(events)}")
    lines += [f"    {end.name} --> [*]" for end in ends]
    return "\n".join([*lines, "```"])


def _name(event: Enum) -> str:
    return event.name.lower().replace("_", " ")


def memberships() -> dict[str, str]:
    """The diagrams of revocation and membership, by their names in the page."""
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


def transactions() -> dict[str, str]:
    """The diagram of a transaction: what users see of it."""
    states = transaction.TxnState
    seen = (
        *(states.READY, states.OPEN, states.COMMITTING, states.ABORT_ONLY),
        *(states.ABORTING, states.UNKNOWN),
    )
    drawn = diagram(
        transaction.TRANSITIONS,
        states.READY,
        [],
        hide=[state for state in states if state not in seen],
    )
    return {"transaction": drawn}


#: What draws the diagrams of each page.
PAGES: Final[Mapping[str, Callable[[], Mapping[str, str]]]] = {
    "rebalancing.md": memberships,
    "exactly-once.md": transactions,
}


def updated(page: str, diagrams: Mapping[str, str]) -> str:
    """The page with up-to-date diagrams."""
    for name, text in diagrams.items():
        page = with_part(page, "diagram", name, text)
    return page


def main(arguments: list[str]) -> int:
    """Update the pages, or with ``--check`` tell whether they are up to date."""
    stale = 0
    for name, draw in PAGES.items():
        page = GUIDE / name
        text = page.read_text()
        wanted = updated(text, draw())
        if wanted == text:
            continue
        stale += 1
        if "--check" in arguments:
            print(f"{name} differs from the transition tables")
        else:
            page.write_text(wanted)
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
