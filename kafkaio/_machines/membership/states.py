"""The states of a classic group member, as one table.

A member looks for its place (JOINING), is told the members if it leads (ASSIGNING),
waits for its share (SYNCING) and then holds it (STABLE). Deferred revocation
(KIP-983) adds two states in which the member waits for its user: PREPARING, before a
JoinGroup that may not be sent while partitions are still worked on, and RELEASING,
after a cooperative assignment (KIP-429) that asks for some of them back.

A pair that the table does not list is a bug in kafkaio: replies that come late are
dropped by their ticket before the table is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from kafkaio.errors import InternalError

__all__ = ["ENDED", "HEARTBEATING", "TRANSITIONS", "Event", "State", "transition"]


class State(Enum):
    """Where a member stands."""

    UNJOINED = auto()  #: nothing is subscribed
    STALLED = auto()  #: left, for the user does not poll; joins at the next poll
    PREPARING = auto()  #: gives up partitions, then sends JoinGroup
    JOINING = auto()  #: JoinGroup is at the coordinator, or waits for its next try
    ASSIGNING = auto()  #: leads; waits for the partition counts of the group's topics
    SYNCING = auto()  #: SyncGroup is at the coordinator
    STABLE = auto()  #: holds its share
    RELEASING = auto()  #: holds its share, and partitions that it must give back
    PARTING = auto()  #: unsubscribed; gives up everything, then sends LeaveGroup
    LEAVING = auto()  #: closing; gives up everything, then sends LeaveGroup
    LEFT = auto()  #: the end
    FATAL = auto()  #: the end, by an error that trying again does not cure


class Event(Enum):
    """What happened to a member."""

    SUBSCRIBED = auto()  #: the user's topics changed
    UNSUBSCRIBED = auto()
    POLLED = auto()  #: the user polls again
    POLL_EXPIRED = auto()  #: the user has not polled for max_poll_interval_ms
    REBALANCE_ASKED = auto()  #: by the coordinator, the user, or changed topics
    RELEASED = auto()  #: nothing that this state waits for is held any more
    RELEASE_DUE = auto()  #: some was released, and siblings had their chance to join in
    MEMBER_ID_GIVEN = auto()  #: join again under this id (KIP-394)
    JOINED = auto()
    ELECTED = auto()  #: joined, and this member computes the assignment
    ASSIGNMENT_MADE = auto()
    SYNCED = auto()  #: an assignment that takes nothing away
    SYNCED_LESS = auto()  #: an assignment that asks for partitions back
    SYNCED_STALE = auto()  #: an assignment for topics no longer subscribed
    RETRY = auto()  #: the request failed in a way that may pass
    GENERATION_LOST = auto()  #: the group went on without us, our id is still known
    MEMBER_LOST = auto()  #: the group does not know us any more
    REFUSED = auto()  #: the coordinator said no, for good
    CLOSED = auto()  #: the user is done
    LEAVE_ENDED = auto()  #: LeaveGroup was answered, failed, or was not needed


#: States in which nothing happens any more.
ENDED: Final = frozenset({State.LEFT, State.FATAL})

#: States in which the session must be kept alive. JoinGroup and SyncGroup do that by
#: themselves while they are parked at the coordinator, and block their connection.
HEARTBEATING: Final = frozenset(
    {
        State.PREPARING,
        State.ASSIGNING,
        State.STABLE,
        State.RELEASING,
        State.PARTING,
        State.LEAVING,
    }
)

_JOINED_STATES: Final = (
    State.PREPARING,
    State.JOINING,
    State.ASSIGNING,
    State.SYNCING,
    State.STABLE,
    State.RELEASING,
)
_GOING: Final = (State.PARTING, State.LEAVING)


def _stay(event: Event, *states: State) -> dict[tuple[State, Event], State]:
    return {(state, event): state for state in states}


def _go(event: Event, to: State, *states: State) -> dict[tuple[State, Event], State]:
    return {(state, event): to for state in states}


TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = MappingProxyType(
    {
        # The user.
        **_go(Event.SUBSCRIBED, State.JOINING, State.UNJOINED),
        # A JoinGroup under way carries the old topics: SYNCED_STALE finds out.
        **_stay(Event.SUBSCRIBED, State.STALLED, State.PREPARING, State.JOINING),
        **_stay(Event.SUBSCRIBED, State.ASSIGNING, State.SYNCING, *_GOING),
        **_go(Event.SUBSCRIBED, State.PREPARING, State.STABLE, State.RELEASING),
        **_go(Event.UNSUBSCRIBED, State.UNJOINED, State.UNJOINED, State.STALLED),
        **_go(Event.UNSUBSCRIBED, State.PARTING, *_JOINED_STATES),
        **_stay(Event.UNSUBSCRIBED, *_GOING),
        **_go(Event.POLLED, State.JOINING, State.STALLED),
        **_go(Event.POLL_EXPIRED, State.STALLED, State.PREPARING, State.ASSIGNING),
        **_go(Event.POLL_EXPIRED, State.STALLED, State.STABLE, State.RELEASING),
        **_go(Event.CLOSED, State.LEFT, State.UNJOINED, State.STALLED),
        **_go(Event.CLOSED, State.LEAVING, *_JOINED_STATES, *_GOING),
        # Rebalances.
        **_stay(Event.REBALANCE_ASKED, State.PREPARING, State.JOINING, *_GOING),
        **_go(Event.REBALANCE_ASKED, State.PREPARING, State.ASSIGNING, State.SYNCING),
        **_go(Event.REBALANCE_ASKED, State.PREPARING, State.STABLE, State.RELEASING),
        **_go(Event.RELEASED, State.JOINING, State.PREPARING),
        **_go(Event.RELEASED, State.PREPARING, State.RELEASING),
        **_go(Event.RELEASED, State.UNJOINED, State.PARTING),
        **_stay(Event.RELEASED, State.LEAVING),
        **_go(Event.RELEASE_DUE, State.PREPARING, State.RELEASING),
        # Answers.
        **_stay(Event.MEMBER_ID_GIVEN, State.JOINING),
        **_go(Event.JOINED, State.SYNCING, State.JOINING),
        **_go(Event.ELECTED, State.ASSIGNING, State.JOINING),
        **_go(Event.ASSIGNMENT_MADE, State.SYNCING, State.ASSIGNING),
        **_go(Event.SYNCED, State.STABLE, State.SYNCING),
        **_go(Event.SYNCED_LESS, State.RELEASING, State.SYNCING),
        **_go(Event.SYNCED_STALE, State.PREPARING, State.SYNCING),
        **_go(Event.LEAVE_ENDED, State.LEFT, State.LEAVING),
        # Failures. A heartbeat that fails in passing changes no state.
        **_go(Event.RETRY, State.JOINING, State.JOINING, State.SYNCING),
        **_go(Event.GENERATION_LOST, State.JOINING, *_JOINED_STATES),
        **_stay(Event.GENERATION_LOST, *_GOING),
        **_go(Event.MEMBER_LOST, State.JOINING, *_JOINED_STATES),
        **_stay(Event.MEMBER_LOST, *_GOING),
        **_go(Event.REFUSED, State.FATAL, *_JOINED_STATES),
        **_stay(Event.REFUSED, *_GOING),
    }
)


def transition(state: State, event: Event) -> State:
    """The state after ``event``.

    Raises:
        InternalError: the table does not list the pair.
    """
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise InternalError(f"group member: {event.name} while {state.name}") from None
