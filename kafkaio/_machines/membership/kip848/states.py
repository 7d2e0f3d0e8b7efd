"""The states of a member of a KIP-848 group, as one table.

The coordinator computes the assignment and the member follows it. It joins (JOINING),
owns what it was assigned (STABLE), revokes and adds what has changed (RECONCILING) and
tells the coordinator the result (ACKNOWLEDGING). A fenced member has no state of its
own: it loses everything at once and joins again.

The states and the events explain themselves below; `TRANSITIONS` has every pair that
can occur. A pair that it does not list is a bug in kafkaio: late answers are dropped by
their ticket before they become events.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, TypeAlias

from kafkaio._machines.membership.table import following, go, stay


class Kip848State(Enum):
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


class Kip848Event(Enum):
    """An input that may change the state of a member."""

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


# Short names for the table.
_S: TypeAlias = Kip848State
_E: TypeAlias = Kip848Event

#: States that are never left.
ENDED: Final = frozenset({_S.LEFT, _S.FATAL})
#: States in which the owned partitions follow the coordinator's target.
JOINED: Final = frozenset({_S.STABLE, _S.RECONCILING, _S.ACKNOWLEDGING})
#: States in which heartbeats are sent.
HEARTBEATING: Final = JOINED | {_S.JOINING, _S.UNSUBSCRIBING, _S.LEAVING}

_MEMBER: Final = (_S.JOINING, _S.STABLE, _S.RECONCILING, _S.ACKNOWLEDGING)
_OWNING: Final = (_S.STABLE, _S.RECONCILING, _S.ACKNOWLEDGING)
_DEPARTING: Final = (_S.UNSUBSCRIBING, _S.LEAVING)


TRANSITIONS: Final[Mapping[tuple[_S, _E], _S]] = MappingProxyType(
    {
        # The application.
        **go(_E.SUBSCRIBED, _S.JOINING, _S.UNJOINED),
        **stay(_E.SUBSCRIBED, _S.STALLED, *_MEMBER, *_DEPARTING),
        **go(_E.UNSUBSCRIBED, _S.UNJOINED, _S.UNJOINED, _S.STALLED),
        **go(_E.UNSUBSCRIBED, _S.UNSUBSCRIBING, *_MEMBER),
        **stay(_E.UNSUBSCRIBED, *_DEPARTING),
        **go(_E.POLLED, _S.JOINING, _S.STALLED),
        **go(_E.POLL_EXPIRED, _S.STALLED, *_OWNING),
        **go(_E.CLOSED, _S.LEFT, _S.UNJOINED, _S.STALLED),
        **go(_E.CLOSED, _S.LEAVING, *_MEMBER, *_DEPARTING),
        # The coordinator.
        **go(_E.JOINED, _S.STABLE, _S.JOINING),
        **go(_E.DIVERGED, _S.RECONCILING, *_OWNING),
        **go(_E.CONVERGED, _S.ACKNOWLEDGING, *_OWNING),
        **go(_E.ACKNOWLEDGED, _S.STABLE, *_OWNING),
        **go(_E.RELEASED, _S.UNJOINED, _S.UNSUBSCRIBING),
        **stay(_E.RELEASED, _S.LEAVING),
        **go(_E.LEAVE_ENDED, _S.LEFT, _S.LEAVING),
        # Failures. A heartbeat that fails for a passing reason changes no state.
        **go(_E.FENCED, _S.JOINING, *_MEMBER),
        **stay(_E.FENCED, *_DEPARTING),
        **go(_E.REFUSED, _S.FATAL, *_MEMBER),
        **stay(_E.REFUSED, *_DEPARTING),
    }
)


def transition(state: Kip848State, event: Kip848Event) -> Kip848State:
    """The state after ``event``.

    Raises:
        InternalError: the table does not list the pair.
    """
    return following(TRANSITIONS, state, event)
