"""The table of a group member, pair by pair."""

from __future__ import annotations

import itertools

import pytest

from kafkaio._machines.membership.states import (
    ENDED,
    HEARTBEATING,
    TRANSITIONS,
    Event,
    State,
    transition,
)
from kafkaio.errors import InternalError

# Columns in the order of State; a letter is the state that follows, "." no such pair.
LETTERS = dict(zip("UTPJASBRQLXF", State, strict=True))
GRID = """
                   U T P J A S B R Q L X F
SUBSCRIBED         J T P J A S P P Q L . .
UNSUBSCRIBED       U U Q Q Q Q Q Q Q L . .
POLLED             . J . . . . . . . . . .
POLL_EXPIRED       . . T . T . T T . . . .
REBALANCE_ASKED    . . P J P P P P Q L . .
RELEASED           . . J . . . . P U L . .
RELEASE_DUE        . . . . . . . P . . . .
MEMBER_ID_GIVEN    . . . J . . . . . . . .
JOINED             . . . S . . . . . . . .
ELECTED            . . . A . . . . . . . .
ASSIGNMENT_MADE    . . . . S . . . . . . .
SYNCED             . . . . . B . . . . . .
SYNCED_LESS        . . . . . R . . . . . .
SYNCED_STALE       . . . . . P . . . . . .
RETRY              . . . J . J . . . . . .
GENERATION_LOST    . . J J J J J J Q L . .
MEMBER_LOST        . . J J J J J J Q L . .
REFUSED            . . F F F F F F Q L . .
CLOSED             X X L L L L L L L L . .
LEAVE_ENDED        . . . . . . . . . X . .
"""


def expected() -> dict[tuple[State, Event], State | None]:
    header, *rows = [line.split() for line in GRID.strip().splitlines()]
    return {
        (LETTERS[column], Event[name]): LETTERS.get(cell)
        for name, *cells in rows
        for column, cell in zip(header, cells, strict=True)
    }


@pytest.mark.parametrize(
    ("state", "event"), list(itertools.product(State, Event)), ids=str
)
def test_every_pair(state: State, event: Event) -> None:
    after = expected()[state, event]
    if after is None:
        with pytest.raises(InternalError, match=f"{event.name} while {state.name}"):
            transition(state, event)
    else:
        assert transition(state, event) is after


def test_nothing_follows_the_end() -> None:
    assert not [pair for pair in TRANSITIONS if pair[0] in ENDED]
    assert not ENDED & HEARTBEATING


def test_the_end_is_in_reach_from_everywhere() -> None:
    for state in set(State) - ENDED:
        reached = {state}
        while True:
            more = {after for (s, _), after in TRANSITIONS.items() if s in reached}
            if more <= reached:
                break
            reached |= more
        assert State.LEFT in reached
