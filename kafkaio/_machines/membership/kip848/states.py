"""The states of a member of a KIP-848 group, as one table.

The coordinator divides the partitions; a member follows. It joins (JOINING), holds
what it was told to hold (STABLE), gives back and takes on (RECONCILING) and says so
(ACKNOWLEDGING). There is no state for a fenced member: it has lost everything at once
and joins again.

A pair that the table does not list is a bug in kafkaio: replies that come late are
dropped by their ticket before the table is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from kafkaio._machines.membership.table import following, go, stay

__all__ = ["ENDED", "JOINED", "SPEAKING", "TRANSITIONS", "Event", "State", "transition"]


class State(Enum):
    """Where a member stands."""

    UNJOINED = auto()  #: nothing is subscribed
    STALLED = auto()  #: left, for the user does not poll; joins at the next poll
    JOINING = auto()  #: the heartbeat with epoch 0 is out, or waits for its next try
    STABLE = auto()  #: holds its share, and the coordinator knows it
    RECONCILING = auto()  #: gives partitions back, or waits for names of topics
    ACKNOWLEDGING = auto()  #: the coordinator is being told what is held now
    PARTING = auto()  #: unsubscribed; gives up everything, then leaves
    LEAVING = auto()  #: closing; gives up everything, then leaves
    LEFT = auto()  #: the end
    FATAL = auto()  #: the end, by an error that trying again does not cure


class Event(Enum):
    """What happened to a member."""

    SUBSCRIBED = auto()  #: the user's topics changed
    UNSUBSCRIBED = auto()
    POLLED = auto()  #: the user polls again
    POLL_EXPIRED = auto()  #: the user has not polled for max_poll_interval_ms
    JOINED = auto()  #: the coordinator gave an epoch
    DIVERGED = auto()  #: something is to be given back, or has no name yet
    CONVERGED = auto()  #: nothing is on its way out; the coordinator must hear of it
    ACKNOWLEDGED = auto()  #: the coordinator knows what is held
    FENCED = auto()  #: the group went on without us
    REFUSED = auto()  #: the coordinator said no, for good
    CLOSED = auto()  #: the user is done
    RELEASED = auto()  #: nothing is held any more
    LEAVE_ENDED = auto()  #: the leave was answered, failed, or was not needed


#: States in which nothing happens any more.
ENDED: Final = frozenset({State.LEFT, State.FATAL})
#: States in which what is held follows what the coordinator says.
JOINED: Final = frozenset({State.STABLE, State.RECONCILING, State.ACKNOWLEDGING})
#: States in which heartbeats are sent.
SPEAKING: Final = JOINED | {State.JOINING, State.PARTING, State.LEAVING}

_MEMBER: Final = (State.JOINING, State.STABLE, State.RECONCILING, State.ACKNOWLEDGING)
_HELD: Final = (State.STABLE, State.RECONCILING, State.ACKNOWLEDGING)
_GOING: Final = (State.PARTING, State.LEAVING)


TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = MappingProxyType(
    {
        # The user.
        **go(Event.SUBSCRIBED, State.JOINING, State.UNJOINED),
        **stay(Event.SUBSCRIBED, State.STALLED, *_MEMBER, *_GOING),
        **go(Event.UNSUBSCRIBED, State.UNJOINED, State.UNJOINED, State.STALLED),
        **go(Event.UNSUBSCRIBED, State.PARTING, *_MEMBER),
        **stay(Event.UNSUBSCRIBED, *_GOING),
        **go(Event.POLLED, State.JOINING, State.STALLED),
        **go(Event.POLL_EXPIRED, State.STALLED, *_HELD),
        **go(Event.CLOSED, State.LEFT, State.UNJOINED, State.STALLED),
        **go(Event.CLOSED, State.LEAVING, *_MEMBER, *_GOING),
        # The coordinator.
        **go(Event.JOINED, State.STABLE, State.JOINING),
        **go(Event.DIVERGED, State.RECONCILING, *_HELD),
        **go(Event.CONVERGED, State.ACKNOWLEDGING, *_HELD),
        **go(Event.ACKNOWLEDGED, State.STABLE, *_HELD),
        **go(Event.RELEASED, State.UNJOINED, State.PARTING),
        **stay(Event.RELEASED, State.LEAVING),
        **go(Event.LEAVE_ENDED, State.LEFT, State.LEAVING),
        # Failures. A heartbeat that fails in passing changes no state.
        **go(Event.FENCED, State.JOINING, *_MEMBER),
        **stay(Event.FENCED, *_GOING),
        **go(Event.REFUSED, State.FATAL, *_MEMBER),
        **stay(Event.REFUSED, *_GOING),
    }
)


def transition(state: State, event: Event) -> State:
    """The state after ``event``.

    Raises:
        InternalError: the table does not list the pair.
    """
    return following(TRANSITIONS, state, event)
