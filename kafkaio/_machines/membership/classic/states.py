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

from kafkaio._machines.membership.table import following, go, stay

__all__ = [
    "ENDED",
    "HEARTBEATING",
    "PARKING",
    "TRANSITIONS",
    "Event",
    "State",
    "transition",
]


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

#: States in which a request may be parked at the coordinator, however long.
PARKING: Final = frozenset({State.JOINING, State.SYNCING})

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


TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = MappingProxyType(
    {
        # The user.
        **go(Event.SUBSCRIBED, State.JOINING, State.UNJOINED),
        # A JoinGroup under way carries the old topics: SYNCED_STALE finds out.
        **stay(Event.SUBSCRIBED, State.STALLED, State.PREPARING, State.JOINING),
        **stay(Event.SUBSCRIBED, State.ASSIGNING, State.SYNCING, *_GOING),
        **go(Event.SUBSCRIBED, State.PREPARING, State.STABLE, State.RELEASING),
        **go(Event.UNSUBSCRIBED, State.UNJOINED, State.UNJOINED, State.STALLED),
        **go(Event.UNSUBSCRIBED, State.PARTING, *_JOINED_STATES),
        **stay(Event.UNSUBSCRIBED, *_GOING),
        **go(Event.POLLED, State.JOINING, State.STALLED),
        **go(Event.POLL_EXPIRED, State.STALLED, State.PREPARING, State.ASSIGNING),
        **go(Event.POLL_EXPIRED, State.STALLED, State.STABLE, State.RELEASING),
        **go(Event.CLOSED, State.LEFT, State.UNJOINED, State.STALLED),
        **go(Event.CLOSED, State.LEAVING, *_JOINED_STATES, *_GOING),
        # Rebalances.
        **stay(Event.REBALANCE_ASKED, State.PREPARING, State.JOINING, *_GOING),
        **go(Event.REBALANCE_ASKED, State.PREPARING, State.ASSIGNING, State.SYNCING),
        **go(Event.REBALANCE_ASKED, State.PREPARING, State.STABLE, State.RELEASING),
        **go(Event.RELEASED, State.JOINING, State.PREPARING),
        **go(Event.RELEASED, State.PREPARING, State.RELEASING),
        **go(Event.RELEASED, State.UNJOINED, State.PARTING),
        **stay(Event.RELEASED, State.LEAVING),
        **go(Event.RELEASE_DUE, State.PREPARING, State.RELEASING),
        # Answers.
        **stay(Event.MEMBER_ID_GIVEN, State.JOINING),
        **go(Event.JOINED, State.SYNCING, State.JOINING),
        **go(Event.ELECTED, State.ASSIGNING, State.JOINING),
        **go(Event.ASSIGNMENT_MADE, State.SYNCING, State.ASSIGNING),
        **go(Event.SYNCED, State.STABLE, State.SYNCING),
        **go(Event.SYNCED_LESS, State.RELEASING, State.SYNCING),
        **go(Event.SYNCED_STALE, State.PREPARING, State.SYNCING),
        **go(Event.LEAVE_ENDED, State.LEFT, State.LEAVING),
        # Failures. A heartbeat that fails in passing changes no state.
        **go(Event.RETRY, State.JOINING, State.JOINING, State.SYNCING),
        **go(Event.GENERATION_LOST, State.JOINING, *_JOINED_STATES),
        **stay(Event.GENERATION_LOST, *_GOING),
        **go(Event.MEMBER_LOST, State.JOINING, *_JOINED_STATES),
        **stay(Event.MEMBER_LOST, *_GOING),
        **go(Event.REFUSED, State.FATAL, *_JOINED_STATES),
        **stay(Event.REFUSED, *_GOING),
    }
)


def transition(state: State, event: Event) -> State:
    """The state after ``event``.

    Raises:
        InternalError: the table does not list the pair.
    """
    return following(TRANSITIONS, state, event)
