"""How the transition tables of both group protocols are written."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from kafkaio.errors import InternalError

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)


def stay(event: E, *states: S) -> dict[tuple[S, E], S]:
    """Rows of the states that an event does not change."""
    return {(state, event): state for state in states}


def go(event: E, to: S, *states: S) -> dict[tuple[S, E], S]:
    """Rows of the states that an event leads to the state ``to``."""
    return {(state, event): to for state in states}


def following(table: Mapping[tuple[S, E], S], state: S, event: E) -> S:
    """The state after ``event``.

    Raises:
        InternalError: the table does not list the pair.
    """
    try:
        return table[state, event]
    except KeyError:
        raise InternalError(f"group member: {event.name} while {state.name}") from None
