"""The states of a member of a KIP-848 group, as one table.

The coordinator computes the assignment and the member follows it. It joins (JOINING),
owns what it was assigned (STABLE), revokes and adds what has changed (RECONCILING) and
tells the coordinator the result (ACKNOWLEDGING). A fenced member has no state of its
own: it loses everything at once and joins again.

`State` and `Event` explain themselves below; `TRANSITIONS` has every pair that can
occur. A pair that it does not list is a bug in kafkaio: late answers are dropped by
their ticket before they become events.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from kafkaio._machines.membership.table import following, go, stay


class State(Enum):
    """Where a member stands."""

    UNJOINED = auto()  #: no subscription
    STALLED = auto()  #: left, because the application stopped polling; a poll rejoins
    JOINING = auto()  #: the heartbeat with epoch 0 is under way, or due later
    STABLE = auto()  #: owns its assignment, and the coordinator knows it
    RECONCILING = auto()  #: revokes partitions, or waits for the names of topics
    ACKNOWLEDGING = auto()  #: a heartbeat tells the coordinator what is owned now
    UNSUBSCRIBING = auto()  #: unsubscribed: releases everything, then leaves
    LEAVING = auto()  #: closed: releases everything, then leaves
    LEFT = auto()  #: the end
    FATAL = auto()  #: the end, by an error that no retry can cure


class Event(Enum):
    """What happened to a member."""

    SUBSCRIBED = auto()  #: the subscription changed
    UNSUBSCRIBED = auto()  #: the subscription was cancelled
    POLLED = auto()  #: the application polls again
    POLL_EXPIRED = auto()  #: no poll for max_poll_interval_ms
    JOINED = auto()  #: the coordinator gave an epoch
    DIVERGED = auto()  #: a revocation is pending, or a topic has no name yet
    CONVERGED = auto()  #: no revocation is pending; the coordinator has to be told
    ACKNOWLEDGED = auto()  #: the coordinator knows what is owned
    FENCED = auto()  #: the coordinator no longer knows the member or its epoch
    REFUSED = auto()  #: the coordinator refused permanently
    CLOSED = auto()  #: the application closes the consumer
    RELEASED = auto()  #: everything is released
    LEAVE_ENDED = auto()  #: the leave was answered, failed, or was not needed


#: States that are never left.
ENDED: Final = frozenset({State.LEFT, State.FATAL})
#: States in which what is owned follows the coordinator's target.
JOINED: Final = frozenset({State.STABLE, State.RECONCILING, State.ACKNOWLEDGING})
#: States in which heartbeats are sent.
HEARTBEATING: Final = JOINED | {State.JOINING, State.UNSUBSCRIBING, State.LEAVING}

_MEMBER: Final = (State.JOINING, State.STABLE, State.RECONCILING, State.ACKNOWLEDGING)
_OWNING: Final = (State.STABLE, State.RECONCILING, State.ACKNOWLEDGING)
_DEPARTING: Final = (State.UNSUBSCRIBING, State.LEAVING)


TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = MappingProxyType(
    {
        # The application.
        **go(Event.SUBSCRIBED, State.JOINING, State.UNJOINED),
        **stay(Event.SUBSCRIBED, State.STALLED, *_MEMBER, *_DEPARTING),
        **go(Event.UNSUBSCRIBED, State.UNJOINED, State.UNJOINED, State.STALLED),
        **go(Event.UNSUBSCRIBED, State.UNSUBSCRIBING, *_MEMBER),
        **stay(Event.UNSUBSCRIBED, *_DEPARTING),
        **go(Event.POLLED, State.JOINING, State.STALLED),
        **go(Event.POLL_EXPIRED, State.STALLED, *_OWNING),
        **go(Event.CLOSED, State.LEFT, State.UNJOINED, State.STALLED),
        **go(Event.CLOSED, State.LEAVING, *_MEMBER, *_DEPARTING),
        # The coordinator.
        **go(Event.JOINED, State.STABLE, State.JOINING),
        **go(Event.DIVERGED, State.RECONCILING, *_OWNING),
        **go(Event.CONVERGED, State.ACKNOWLEDGING, *_OWNING),
        **go(Event.ACKNOWLEDGED, State.STABLE, *_OWNING),
        **go(Event.RELEASED, State.UNJOINED, State.UNSUBSCRIBING),
        **stay(Event.RELEASED, State.LEAVING),
        **go(Event.LEAVE_ENDED, State.LEFT, State.LEAVING),
        # Failures. A heartbeat that fails for a passing reason changes no state.
        **go(Event.FENCED, State.JOINING, *_MEMBER),
        **stay(Event.FENCED, *_DEPARTING),
        **go(Event.REFUSED, State.FATAL, *_MEMBER),
        **stay(Event.REFUSED, *_DEPARTING),
    }
)


def transition(state: State, event: Event) -> State:
    """The state after ``event``.

    Raises:
        InternalError: the table does not list the pair.
    """
    return following(TRANSITIONS, state, event)
