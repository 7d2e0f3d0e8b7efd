"""The tables of all kinds of group member, pair by pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from kafkaio._machines.membership.classic import states
from kafkaio._machines.membership.kip848 import states as kip848
from kafkaio._machines.share import states as share
from kafkaio.errors import InternalError


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it is, and as it is to be.

    In a grid the columns are the states in their order, by a letter each; a letter in
    a row is the state that follows, and "." says that there is no such pair.
    """

    states: type[Enum]
    events: type[Enum]
    transitions: Mapping[Any, Enum]
    transition: Callable[[Any, Any], Enum]
    ended: frozenset[Enum]
    speaking: frozenset[Enum]
    grid: str

    def pairs(self) -> Iterator[tuple[Enum, Enum, Enum | None]]:
        """Every state with every event, and the state that is to follow."""
        (_, *letters), *rows = [line.split() for line in self.grid.strip().splitlines()]
        by_letter = {".": None, **dict(zip(letters, self.states, strict=True))}
        assert [name for name, *_ in rows] == [event.name for event in self.events]
        for name, *cells in rows:
            for state, cell in zip(self.states, cells, strict=True):
                yield state, self.events[name], by_letter[cell]


CLASSIC = Table(
    states.ClassicState,
    states.ClassicEvent,
    states.TRANSITIONS,
    states.transition,
    states.ENDED,
    states.HEARTBEATING,
    """
EVENT              U T P J A S B R Q L X F
SUBSCRIBED         J T P J A S P P Q L . .
UNSUBSCRIBED       U U Q Q Q Q Q Q Q L . .
POLLED             . J . . . . . . . . . .
POLL_EXPIRED       . . T . T . T T . . . .
REBALANCE_NEEDED    . . P J P P P P Q L . .
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
""",
)
KIP848 = Table(
    kip848.Kip848State,
    kip848.Kip848Event,
    kip848.TRANSITIONS,
    kip848.transition,
    kip848.ENDED,
    kip848.HEARTBEATING,
    """
EVENT           U T J S R A Q L X F
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
""",
)
SHARE = Table(
    share.ShareState,
    share.ShareEvent,
    share.TRANSITIONS,
    share.transition,
    share.ENDED,
    share.HEARTBEATING,
    """
EVENT           U J S Q L X F
SUBSCRIBED      J J S Q . . .
UNSUBSCRIBED    U Q Q Q . . .
JOINED          . S . . . . .
FENCED          . J J . . . .
REFUSED         . F F . . . .
CLOSED          L L L L . . .
LEAVE_ENDED     . . . U X . .
""",
)
TABLES = {"classic": CLASSIC, "kip848": KIP848, "share": SHARE}
ALL = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


@pytest.mark.parametrize(
    ("table", "state", "event", "after"),
    [
        pytest.param(table, *pair, id=f"{kind}-{pair[0].name}-{pair[1].name}")
        for kind, table in TABLES.items()
        for pair in table.pairs()
    ],
)
def test_every_pair(table: Table, state: Enum, event: Enum, after: Enum | None) -> None:
    if after is None:
        with pytest.raises(InternalError, match=f"{event.name} while {state.name}"):
            table.transition(state, event)
    else:
        assert table.transition(state, event) is after


@ALL
def test_nothing_follows_the_end(table: Table) -> None:
    assert not [pair for pair in table.transitions if pair[0] in table.ended]
    assert not table.ended & table.speaking


@ALL
def test_the_end_is_in_reach_from_everywhere(table: Table) -> None:
    for state in set(table.states) - table.ended:
        reached = {state}
        while True:
            more = {
                after for (s, _), after in table.transitions.items() if s in reached
            }
            if more <= reached:
                break
            reached |= more
        assert table.states["LEFT"] in reached
