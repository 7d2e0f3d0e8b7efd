"""The states of a member of a share group (KIP-932), as one table.

A member joins (JOINING) and is then told what to fetch (STABLE). Partitions are shared,
so nothing is revoked or acknowledged. A fenced member has no state of its own: it stops
fetching at once, and joins again under the same id.

`TRANSITIONS` has every pair that can occur. A pair that it does not list is a bug in
kafkaio: late answers are dropped by their ticket before they become events.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, TypeAlias

from kafkaio._machines.membership.table import following, go, stay


class ShareState(Enum):
    """Where a member stands."""

    UNJOINED = auto()  #: no topics are wanted
    JOINING = auto()  #: the heartbeat with epoch 0 is under way, or due later
    STABLE = auto()  #: the group has accepted the member
    UNSUBSCRIBING = auto()  #: the request to leave is under way; it may join again
    LEAVING = auto()  #: closed: the last request to leave is under way
    LEFT = auto()  #: the end
    FATAL = auto()  #: the end, by an error that no retry can cure


class ShareEvent(Enum):
    """An input that may change the state of a member."""

    SUBSCRIBED = auto()  #: topics are wanted
    UNSUBSCRIBED = auto()  #: no topics are wanted any more, and the group may know it
    JOINED = auto()  #: the coordinator gave an epoch
    FENCED = auto()  #: the coordinator no longer knows the member or its epoch
    REFUSED = auto()  #: the coordinator refused permanently
    CLOSED = auto()  #: the application closes the consumer
    LEAVE_ENDED = auto()  #: the leave was answered, failed, or was not needed


# Short names for the table.
_S: TypeAlias = ShareState
_E: TypeAlias = ShareEvent

#: States that are never left.
ENDED: Final = frozenset({_S.LEFT, _S.FATAL})
#: States in which heartbeats are sent.
HEARTBEATING: Final = frozenset({_S.JOINING, _S.STABLE})

TRANSITIONS: Final[Mapping[tuple[_S, _E], _S]] = MappingProxyType(
    {
        # The application.
        **go(_E.SUBSCRIBED, _S.JOINING, _S.UNJOINED),
        **stay(_E.SUBSCRIBED, _S.JOINING, _S.STABLE, _S.UNSUBSCRIBING),
        **go(_E.UNSUBSCRIBED, _S.UNSUBSCRIBING, _S.JOINING, _S.STABLE),
        **stay(_E.UNSUBSCRIBED, _S.UNJOINED, _S.UNSUBSCRIBING),
        **go(_E.CLOSED, _S.LEAVING, _S.UNJOINED, _S.JOINING, _S.STABLE),
        **go(_E.CLOSED, _S.LEAVING, _S.UNSUBSCRIBING),
        # The coordinator.
        **go(_E.JOINED, _S.STABLE, _S.JOINING),
        **go(_E.LEAVE_ENDED, _S.UNJOINED, _S.UNSUBSCRIBING),
        **go(_E.LEAVE_ENDED, _S.LEFT, _S.LEAVING),
        # Failures. A heartbeat that fails for a passing reason changes no state.
        **go(_E.FENCED, _S.JOINING, _S.JOINING, _S.STABLE),
        **go(_E.REFUSED, _S.FATAL, _S.JOINING, _S.STABLE),
    }
)


def transition(state: ShareState, event: ShareEvent) -> ShareState:
    """The state after ``event``.

    Raises:
        InternalError: the table does not list the pair.
    """
    return following(TRANSITIONS, state, event)
