"""The table of a member of a KIP-848 group, pair by pair."""

from __future__ import annotations

import itertools

import pytest

from kafkaio._machines.membership.consumer_states import (
    ENDED,
    SPEAKING,
    TRANSITIONS,
    Event,
    State,
    transition,
)
from kafkaio.errors import InternalError

# Columns in the order of State; a letter is the state that follows, "." no such pair.
LETTERS = dict(zip("UTJSRAQLXF", State, strict=True))
GRID = """
                U T J S R A Q L X F
SUBSCRIBED      J T J S R A Q L . .
UNSUBSCRIBED    U U Q Q Q Q Q L . .
POLLED          . J . . . . . . . .
POLL_EXPIRED    . . . T T T . . . .
JOINED          . . S . . . . . . .
DIVERGED        . . . R R R . . . .
CONVERGED       . . . A A A . . . .
ACKNOWLEDGED    . . . S S S . . . .
FENCED          . . J J J J Q L . .
REFUSED         . . F F F F Q L . .
CLOSED          X X L L L L L L . .
RELEASED        . . . . . . U L . .
LEAVE_ENDED     . . . . . . . X . .
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
    assert not ENDED & SPEAKING


def test_the_end_is_in_reach_from_everywhere() -> None:
    for state in set(State) - ENDED:
        reached = {state}
        while True:
            more = {after for (s, _), after in TRANSITIONS.items() if s in reached}
            if more <= reached:
                break
            reached |= more
        assert State.LEFT in reached
